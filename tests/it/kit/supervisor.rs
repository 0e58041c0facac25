//! The whole program in a terminal: `pitstop` with its home, its agent and its sub-commands.

// The kit is shared, and each test uses a part of it.
#![allow(dead_code)]

use std::{
    ffi::{OsStr, OsString},
    fs,
    io::{BufRead as _, BufReader, Read},
    os::unix::ffi::OsStrExt as _,
    path::{Path, PathBuf},
    process::{Child, Command, Output, Stdio},
    sync::{Arc, OnceLock},
    thread,
    time::{Duration, Instant},
};

use parking_lot::Mutex;
use pitstop_core::config::load::paths::{Paths, project_hash};
use pitstop_server::client::ApiClient;
use rustix::process::{Pid, Signal};
use serde_json::Value;

use super::{
    client::{ASKS_FIRST, live_client},
    failure,
    home::Home,
    input::input,
    messages_api::MessagesApi,
    player::TOOLS,
    poll,
    shape::Shape,
    terminal::{Answers, Exit, Spec, Terminal, beside_no_opening},
};

pub use super::process::{Process, look, server_of};

/// The program under test.
pub const PITSTOP: &str = env!("CARGO_BIN_EXE_pitstop");

/// `pitstop` with these arguments, in the project of a home and with no other environment.
pub fn pitstop_at(home: &Home, args: &[&str]) -> Command {
    let mut command = Command::new(PITSTOP);
    command.args(args).current_dir(home.project());
    command.env_clear().envs(home.env());
    command
}

/// How long anything that should take a moment may take on a machine that others use too.
pub const SOON: Duration = Duration::from_secs(120);

/// The exit code of a client whose supervisor was killed: 128 and the signal's number.
pub const KILLED: u32 = 137;

/// What a question for the status costs at least, for the supervisor has to answer it, too.
const QUESTION: Duration = Duration::from_millis(15);

/// How long it may take to answer one of them.
const ANSWER_LIMIT: Duration = Duration::from_secs(10);

/// How long a client may take to show what a key has done to its prompt box, on a machine that others use too. Too short, and
/// the same key comes beside the first.
const SEEN_WITHIN: Duration = Duration::from_secs(8);

/// How long a supervisor has to leave after SIGTERM: the sum of its ladder, and some.
const LEAVING: Duration = Duration::from_secs(60);

/// Keys as a terminal sends them.
pub mod key {
    pub const F1: &str = "\x1bOP";
    pub const F2: &str = "\x1bOQ";
    pub const F3: &str = "\x1bOR";
    pub const F4: &str = "\x1bOS";
    pub const F5: &str = "\x1b[15~";
    pub const F6: &str = "\x1b[17~";
    pub const F7: &str = "\x1b[18~";
    pub const F8: &str = "\x1b[19~";
    pub const F9: &str = "\x1b[20~";
    pub const F10: &str = "\x1b[21~";
    pub const ENTER: &str = "\r";
    /// Escape by the kitty protocol, so that what follows at once cannot make it Alt.
    pub const ESC: &str = "\x1b[27u";
    pub const END: &str = "\x1b[F";
    pub const CTRL_END: &str = "\x1b[1;5F";
    pub const CTRL_C: &str = "\x03";
    pub const CTRL_U: &str = "\x15";
    pub const PREFIX: &str = "\x11";
}

/// Which agent is hosted.
#[derive(Clone)]
enum Hosted {
    Demo,
    DemoElsewhere(Vec<String>),
    Claude(PathBuf),
    Generic(String),
}

/// How a supervisor is started; the same home can be started again and again.
#[derive(Clone)]
pub struct Launch {
    home: Arc<Home>,
    api: Option<Arc<MessagesApi>>,
    hosted: Hosted,
    settings: Vec<String>,
    agent_args: Vec<String>,
    env: Vec<(OsString, OsString)>,
    size: (u16, u16),
    answers: Answers,
    directory: Option<PathBuf>,
    /// The flags of `pitstop run`; without them it is a session that a person leads.
    order: Option<Vec<String>>,
    restoring: Option<Vec<String>>,
    /// What the shell does that starts it.
    before: Option<String>,
    /// Whether it may ask what to do with earlier work.
    asks: bool,
}

impl Launch {
    fn new(hosted: Hosted) -> Self {
        failure::show_at_once();
        Self {
            home: Arc::new(Home::new().expect("a home")),
            api: None,
            hosted,
            // A model that is asked for a summary would take replies out of the script.
            settings: vec!["summary.generate_summaries=false".to_owned()],
            agent_args: Vec::new(),
            env: Vec::new(),
            size: (140, 45),
            answers: Answers::All,
            directory: None,
            order: None,
            restoring: None,
            before: None,
            asks: false,
        }
    }

    /// Lets it ask what to do with earlier work, as it does where a person starts it.
    pub fn asking(mut self) -> Self {
        self.asks = true;
        self
    }

    /// `pitstop demo` as users call it, in a temporary project below this directory; it goes on by itself, with quick steps.
    pub fn temporary_demo(temporary: &Path, flags: &[&str]) -> Self {
        let flags = flags.iter().copied().map(str::to_owned).collect();
        Self::new(Hosted::DemoElsewhere(flags))
            .env("PITSTOP_DEMO_PACE_MS", "20")
            .env("TMPDIR", temporary)
    }

    /// `pitstop demo --here` with quick steps; it goes on by itself until told otherwise.
    pub fn demo() -> Self {
        Self::new(Hosted::Demo).env("PITSTOP_DEMO_PACE_MS", "20")
    }

    /// `pitstop demo --here` whose agent waits for each prompt and has no task at its start.
    pub fn quiet_demo() -> Self {
        Self::demo()
            .env("PITSTOP_DEMO_AUTO", "0")
            .agent_args(["--model", "claude-demo-1"])
    }

    /// A quiet demo that says "Understood." to all, with these notes; it is rebooted only when someone says so.
    pub fn manual_demo(notes: &str) -> Self {
        Self::quiet_demo()
            .env("PITSTOP_DEMO_REPLY", "Understood.")
            .set("reboot.mode=\"manual\"")
            .notes(notes)
    }

    /// `pitstop` with the real client and a stand-in API; needs `PITSTOP_CLAUDE`. It asks before each risky call.
    #[track_caller]
    pub fn live() -> Self {
        Self::live_without_mode().agent_args(["--permission-mode", *ASKS_FIRST])
    }

    /// The same in the permission mode that the client chooses by itself.
    #[track_caller]
    pub fn live_without_mode() -> Self {
        let mut launch = Self::new(Hosted::Claude(live_client()));
        let api = MessagesApi::start().expect("a stand-in API");
        launch.api = Some(Arc::new(api));
        launch
    }

    /// `pitstop --agent COMMAND`.
    pub fn generic(command: &str) -> Self {
        Self::new(Hosted::Generic(command.to_owned()))
    }

    /// With this program as `[agent] command`: what pitstop takes for Claude Code.
    pub fn client(mut self, program: &Path) -> Self {
        self.hosted = Hosted::Claude(program.to_owned());
        self
    }

    /// With a program of our own in the place of the agent: these commands run first, then the demo or the real client.
    pub fn behind(self, commands: &str) -> Self {
        let agent = match &self.hosted {
            Hosted::Claude(program) => program.display().to_string(),
            _ => format!("{PITSTOP} demo-agent"),
        };
        let text = format!("#!/bin/sh\n{commands}\nexec {agent} \"$@\"\n");
        let path = self.home.program("agent.sh", &text);
        self.client(&path)
    }

    /// With an agent whose settings have lost the keys that this expression of `sed` matches on the way.
    pub fn losing(self, keys: &str) -> Self {
        self.behind(&format!(
            "for arg; do\n\
               shift\n\
               if [ \"$last\" = --settings ]; then\n\
                 sed -E 's/\"({keys})\"/\"no-\\1\"/' \"$arg\" >\"$HOME/settings.json\"\n\
                 arg=$HOME/settings.json\n\
               fi\n\
               last=$arg\n\
               set -- \"$@\" \"$arg\"\n\
             done"
        ))
    }

    /// From a shell that has run these commands and becomes it.
    pub fn after(mut self, commands: &str) -> Self {
        self.before = Some(commands.to_owned());
        self
    }

    /// In the home of another supervisor.
    pub fn home(mut self, home: &Arc<Home>) -> Self {
        self.home = Arc::clone(home);
        self
    }

    /// With `--set setting`, such as `reboot.mode="manual"`.
    pub fn set(mut self, setting: &str) -> Self {
        self.settings.push(setting.to_owned());
        self
    }

    /// By `pitstop restore` with these arguments: the checkpoint says whether it is the demo's.
    pub fn restoring(mut self, args: &[&str]) -> Self {
        self.restoring = Some(args.iter().copied().map(str::to_owned).collect());
        self
    }

    /// With these arguments for the agent after `--`.
    pub fn agent_args<'a>(mut self, args: impl IntoIterator<Item = &'a str>) -> Self {
        self.agent_args.extend(args.into_iter().map(str::to_owned));
        self
    }

    /// With a variable more in the environment; the last one of a name counts.
    pub fn env(mut self, name: &str, value: impl AsRef<OsStr>) -> Self {
        self.env.retain(|(known, _)| known != name);
        self.env.push((name.into(), value.as_ref().into()));
        self
    }

    /// With a demo whose model answers with this when it is asked for a summary, or fails with it.
    pub fn summed_up(self, answer: &str, well: bool) -> Self {
        let envelope = serde_json::json!({
            "type": "result", "subtype": "success", "is_error": !well, "duration_ms": 100,
            "total_cost_usd": 0.01, "result": answer,
        });
        let file = self.home.path("answer");
        fs::write(&file, envelope.to_string()).expect("an answer");
        let command = format!("cat '{}'; exit {}", file.display(), i32::from(!well));
        self.env("PITSTOP_DEMO_SUMMARY", command)
    }

    /// Without this variable.
    pub fn without_env(mut self, name: &str) -> Self {
        self.env.retain(|(known, _)| known != name);
        self
    }

    /// With a model that plays this shape, and a client as people have it that may run the shape's tools.
    #[track_caller]
    pub fn playing(self, shape: &Shape) -> Self {
        self.api().play(shape, self.project());
        self.agent_args(["--allowed-tools", TOOLS])
    }

    /// In this directory instead of the home's project.
    pub fn in_directory(mut self, directory: &Path) -> Self {
        self.directory = Some(directory.to_owned());
        self
    }

    /// `pitstop run` with these flags.
    pub fn order<'a>(mut self, flags: impl IntoIterator<Item = &'a str>) -> Self {
        let order = self.order.get_or_insert_default();
        order.extend(flags.into_iter().map(str::to_owned));
        self
    }

    /// In a terminal of this size.
    pub fn size(mut self, columns: u16, rows: u16) -> Self {
        self.size = (columns, rows);
        self
    }

    /// In a terminal that answers no questions.
    pub fn mute(mut self) -> Self {
        self.answers = Answers::None;
        self
    }

    /// In a terminal that answers questions in this way.
    pub fn answering(mut self, answers: Answers) -> Self {
        self.answers = answers;
        self
    }

    /// In a terminal like xterm: light, and without the kitty keyboard protocol.
    pub fn xterm(mut self) -> Self {
        self.answers = Answers::Xterm;
        self
    }

    /// The project directory.
    pub fn project(&self) -> &Path {
        self.directory
            .as_deref()
            .unwrap_or_else(|| self.home.project())
    }

    /// The home that it starts in.
    pub fn the_home(&self) -> &Arc<Home> {
        &self.home
    }

    /// The stand-in API of a live one.
    #[track_caller]
    pub fn api(&self) -> &MessagesApi {
        self.api.as_ref().expect("only the real client has an API")
    }

    /// Whether it has a stand-in API.
    pub fn has_api(&self) -> bool {
        self.api.is_some()
    }

    /// The scratchpad file.
    pub fn scratchpad(&self) -> PathBuf {
        self.project().join(".pitstop/scratchpad.md")
    }

    /// Writes the scratchpad before the start.
    pub fn notes(self, text: &str) -> Self {
        let file = self.scratchpad();
        fs::create_dir_all(file.parent().expect("a directory")).expect("a directory");
        fs::write(file, text).expect("the scratchpad is written");
        self
    }

    /// The whole environment that it is started with.
    pub fn environment(&self) -> Vec<(OsString, OsString)> {
        let mut env = match &self.api {
            Some(api) => self.home.claude_env(&api.base_url()),
            None => self.home.env(),
        };
        env.retain(|(name, _)| !self.env.iter().any(|(own, _)| own == name));
        env.extend(self.env.clone());
        env
    }

    /// A sub-command in the project directory, ready to run.
    pub fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(PITSTOP);
        command
            .args(args)
            .env_clear()
            .envs(self.environment())
            .current_dir(self.project())
            .stdin(Stdio::null());
        command
    }

    fn args(&self) -> Vec<OsString> {
        let mut args: Vec<OsString> = Vec::new();
        if let Some(order) = &self.order {
            args.push("run".into());
            args.extend(order.iter().map(OsString::from));
        }
        if let Some(restoring) = &self.restoring {
            args.push("restore".into());
            args.extend(restoring.iter().map(OsString::from));
        }
        match &self.hosted {
            Hosted::Demo if self.order.is_some() => args.extend(["--demo".into(), "--here".into()]),
            Hosted::Demo if self.restoring.is_some() => {}
            Hosted::Demo => args.extend(["demo".into(), "--here".into()]),
            Hosted::DemoElsewhere(flags) => {
                args.push("demo".into());
                args.extend(flags.iter().map(OsString::from));
            }
            Hosted::Claude(path) => {
                let path = path.display();
                args.extend(["--set".into(), format!("agent.command=\"{path}\"").into()]);
                if self.order.is_none() && self.restoring.is_none() && !self.asks {
                    args.push("--new".into());
                }
            }
            Hosted::Generic(command) => args.extend(["--agent".into(), command.into()]),
        }
        for setting in &self.settings {
            args.extend(["--set".into(), setting.into()]);
        }
        if !self.agent_args.is_empty() {
            args.push("--".into());
            args.extend(self.agent_args.iter().map(OsString::from));
        }
        args
    }

    /// Runs a sub-command to its end.
    #[track_caller]
    pub fn run(&self, args: &[&str]) -> Output {
        self.command(args).output().expect("a sub-command runs")
    }

    /// Any program in a terminal of this size, in the project and with the environment of this.
    pub fn terminal<A: Into<OsString>>(
        &self,
        program: impl AsRef<OsStr>,
        args: impl IntoIterator<Item = A>,
        (columns, rows): (u16, u16),
    ) -> Terminal {
        let args: Vec<OsString> = args.into_iter().map(Into::into).collect();
        Terminal::spawn(&Spec {
            program: program.as_ref(),
            args: &args,
            env: &self.environment(),
            dir: self.project(),
            columns,
            rows,
            answers: Answers::All,
        })
    }

    /// Starts the supervisor without a terminal, with nothing on its standard input.
    pub fn start_headless(&self) -> Headless {
        let mut command = Command::new(PITSTOP);
        command
            .args(self.args())
            .env_clear()
            .envs(self.environment())
            .current_dir(self.project())
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        let mut child = beside_no_opening(|| command.spawn()).expect("it starts");
        let lines = Arc::new(Mutex::new(Vec::new()));
        let out = child.stdout.take().map(|out| keep_lines(out, &lines));
        let err = child.stderr.take().map(|err| keep_lines(err, &lines));
        Headless {
            launch: self.clone(),
            child,
            lines,
            readers: [out, err].into_iter().flatten().collect(),
        }
    }

    /// Starts the supervisor.
    pub fn start(&self) -> Supervisor {
        let mut args = self.args();
        let mut program = OsStr::new(PITSTOP);
        if let Some(before) = &self.before {
            let line = format!("{before}; exec \"$0\" \"$@\"").into();
            args.splice(..0, ["-c".into(), line, program.into()]);
            program = OsStr::new("/bin/sh");
        }
        let terminal = Terminal::spawn(&Spec {
            program,
            args: &args,
            env: &self.environment(),
            dir: self.project(),
            columns: self.size.0,
            rows: self.size.1,
            answers: self.answers,
        });
        Supervisor {
            launch: self.clone(),
            terminal,
            server: OnceLock::new(),
            checks: true,
        }
    }

    /// Starts the supervisor, and waits until its agent is idle.
    #[track_caller]
    pub fn start_idle(&self) -> Supervisor {
        let supervisor = self.start();
        supervisor.wait_for_state("idle", SOON);
        supervisor
    }

    /// Starts the supervisor, and waits until its terminal shows a text.
    #[track_caller]
    pub fn start_showing(&self, text: &str) -> Supervisor {
        let supervisor = self.start();
        supervisor.wait_for_text(text, SOON);
        supervisor
    }
}

/// A running supervisor. Dropped, it is told to end and must leave no process behind.
pub struct Supervisor {
    pub launch: Launch,
    /// The terminal, with the process that has handed it over.
    pub terminal: Terminal,
    /// The supervisor's own process, once it was seen.
    server: OnceLock<Pid>,
    checks: bool,
}

impl Supervisor {
    /// The supervisor's own process, if it has been started.
    fn seek_pid(&self) -> Option<Pid> {
        if self.server.get().is_none() {
            let orphan = || {
                let all = processes_of(&self.launch.home);
                let server = all.into_iter().find(Process::is_server)?;
                Pid::from_raw(server.pid).filter(|_| self.terminal.has_ended())
            };
            let found = server_of(self.terminal.pid()).or_else(orphan)?;
            let _ = self.server.set(found);
        }
        self.server.get().copied()
    }

    /// The supervisor's own process.
    #[track_caller]
    pub fn pid(&self) -> Pid {
        poll::until(
            SOON,
            || self.seek_pid(),
            || format!("no supervisor runs; the screen:\n{}", self.screen()),
        )
    }

    /// Sends the supervisor's own process a signal.
    #[track_caller]
    pub fn signal(&self, signal: Signal) {
        // It may end at this very moment.
        let _ = rustix::process::kill_process(self.pid(), signal);
    }

    /// Sends keys, each as a write of its own.
    pub fn keys<'a>(&self, keys: impl IntoIterator<Item = &'a str>) {
        for key in keys {
            self.terminal.send(key);
        }
    }

    /// Runs a sub-command to its end.
    #[track_caller]
    pub fn run(&self, args: &[&str]) -> Output {
        self.launch.run(args)
    }

    /// Runs a sub-command with this on its standard input.
    #[track_caller]
    pub fn run_with_input(&self, args: &[&str], bytes: &[u8]) -> Output {
        let mut command = self.launch.command(args);
        command.stdin(input(bytes));
        command.output().expect("a sub-command runs")
    }

    /// What a sub-command prints that must succeed.
    #[track_caller]
    fn json(&self, args: &[&str]) -> Value {
        let output = self.run(args);
        assert!(output.status.success(), "{args:?}: {output:?}");
        serde_json::from_slice(&output.stdout).expect("it prints JSON")
    }

    /// What `pitstop status --json` prints, if a supervisor answers. It is asked without a process: starting one for each question
    /// takes more processor time than what the tests wait for.
    pub fn try_status(&self) -> Option<Value> {
        let launch = &self.launch;
        let paths = Paths::of_process_with(&launch.environment(), launch.project()).ok()?;
        let name = format!("{}.control", project_hash(launch.project()).ok()?);
        let mut files = paths.run_dirs().map(|place| place.join(&name));
        let client = files.find_map(|file| ApiClient::from_file(&file).ok())?;
        let answer = client.get("/status", Instant::now() + ANSWER_LIMIT).ok()?;
        let status = || serde_json::from_slice(&answer.body).expect("it answers in JSON");
        (answer.status == 200).then(status)
    }

    /// As [`Supervisor::try_status`], where one answers.
    #[track_caller]
    pub fn status(&self) -> Value {
        let status = self.try_status();
        status.unwrap_or_else(|| panic!("no status; the screen:\n{}", self.screen()))
    }

    /// Waits until the status fulfils a condition; gives that status.
    #[track_caller]
    pub fn wait_for_status(&self, holds: impl Fn(&Value) -> bool) -> Value {
        self.wait_for_status_within(SOON, holds)
    }

    /// The same for what may take another time.
    #[track_caller]
    pub fn wait_for_status_within(&self, limit: Duration, holds: impl Fn(&Value) -> bool) -> Value {
        let end = Instant::now() + limit;
        let mut last = None;
        while Instant::now() < end {
            let asked = Instant::now();
            if let Some(status) = self.try_status() {
                if holds(&status) {
                    return status;
                }
                last = Some(status);
            }
            poll::pause_after(asked.elapsed().max(QUESTION));
        }
        panic!(
            "waited {limit:?} in vain; the last status: {last:#?}\nthe screen:\n{}\nthe log:\n{}",
            self.screen(),
            self.log()
        );
    }

    /// Waits until its terminal shows a text; gives the screen.
    #[track_caller]
    pub fn wait_for_text(&self, text: &str, limit: Duration) -> String {
        self.terminal.wait_for_text(text, limit)
    }

    /// Waits for the agent's state's word.
    #[track_caller]
    pub fn wait_for_state(&self, word: &str, limit: Duration) -> Value {
        self.wait_for_status_within(limit, |status| status["agent"]["state"] == word)
    }

    /// Waits until the reboot's phase has this word.
    #[track_caller]
    pub fn wait_for_phase(&self, word: &str, limit: Duration) -> Value {
        self.wait_for_status_within(limit, |status| status["reboot"]["phase"] == word)
    }

    /// Opens the review by its key.
    #[track_caller]
    pub fn review(&self) {
        self.keys([key::F5]);
        self.wait_for_phase("review", SOON);
    }

    /// Waits until iteration `number` runs and no reboot is under way.
    #[track_caller]
    pub fn wait_for_iteration(&self, number: u64, limit: Duration) -> Value {
        self.wait_for_status_within(limit, |status| {
            status["iteration"] == number && status["reboot"]["phase"] == "idle"
        })
    }

    /// `pitstop history --json`.
    #[track_caller]
    pub fn history(&self) -> Value {
        self.json(&["history", "--json"])
    }

    /// `pitstop handoff --json`.
    #[track_caller]
    pub fn handoff(&self) -> Value {
        self.json(&["handoff", "--json"])
    }

    /// The text of the handoff as it would be sent now.
    #[track_caller]
    pub fn handoff_text(&self) -> String {
        self.handoff()["text"].as_str().expect("a text").to_owned()
    }

    /// `pitstop ctl ACTION`: the exit code and what it says.
    pub fn ctl(&self, action: &str) -> (i32, String) {
        let output = self.run(&["ctl", action]);
        let reported = [output.stdout, output.stderr].concat();
        (
            output.status.code().unwrap_or(-1),
            String::from_utf8_lossy(&reported).into_owned(),
        )
    }

    /// Submits a prompt; the answer is shown, and the agent is idle again.
    #[track_caller]
    pub fn turn(&self, prompt: &str, answer: &str) {
        self.prompt(prompt);
        self.wait_for_text(answer, SOON);
        self.wait_for_state("idle", SOON);
    }

    /// Types a prompt into the pane and submits it.
    #[track_caller]
    pub fn prompt(&self, text: &str) {
        if self.launch.has_api() {
            self.prompt_the_client(text);
            return;
        }
        self.keys([text]);
        self.terminal.wait_for_text(text, SOON);
        self.keys([key::ENTER]);
    }

    /// Types and submits a prompt as a person does, with a look at the prompt box before each step.
    ///
    /// A client that starts, or that comes back from its agent view, does not read at once. What is typed then is lost, or the
    /// terminal echoes it anywhere on the screen and makes a line feed of the Enter, which breaks a line once it is read. So the
    /// text is typed where a box is, and again, in place of the first, where it does not come to stand there; and Enter is
    /// pressed again while it still stands there. Only the box has a no-break space behind its mark.
    #[track_caller]
    fn prompt_the_client(&self, text: &str) {
        let end = Instant::now() + SOON;
        let boxed = |text: &str| self.screen().contains(&format!("\u{276f}\u{a0}{text}"));
        self.wait_until("a prompt box", || boxed(""));
        self.keys([text]);
        while !poll::within(SEEN_WITHIN, || boxed(text)) {
            assert!(Instant::now() < end, "not typed:\n{}", self.screen());
            self.keys([key::CTRL_U, text]);
        }
        self.keys([key::ENTER]);
        // At any other time an Enter could answer a question. A test that waits for the turn says that there is none.
        let rests = |status: Value| status["agent"]["state"] == "idle";
        while !poll::within(SEEN_WITHIN, || !boxed(text))
            && Instant::now() < end
            && self.try_status().is_some_and(rests)
        {
            self.keys([key::ENTER]);
        }
    }

    /// What is on the screen.
    pub fn screen(&self) -> String {
        self.terminal.screen_text()
    }

    /// The project's scratchpad as it is on disk.
    pub fn notes(&self) -> String {
        fs::read_to_string(self.launch.scratchpad()).unwrap_or_default()
    }

    /// All that was logged so far.
    pub fn log(&self) -> String {
        log_of(&self.launch.home)
    }

    /// Waits until the log holds `needle`.
    #[track_caller]
    pub fn wait_for_log(&self, needle: &str, limit: Duration) {
        self.wait_until_within(limit, needle, || self.log().contains(needle));
    }

    /// Takes so many prompts and their turns back, as the client offers it, the first of which has this answer. The prompt is back in
    /// the box then.
    #[track_caller]
    pub fn rewind(&self, prompts: usize, answer: &str) {
        self.keys([key::ESC, key::ESC]);
        self.terminal.wait_for_text("Rewind", SOON);
        // They are above the present one.
        self.keys(vec!["\x1b[A"; prompts]);
        self.keys([key::ENTER]);
        self.terminal.wait_for_text("Restore conversation", SOON);
        self.keys([key::ENTER]);
        let is_back = || !self.screen().contains(answer);
        self.wait_until("the prompt is back in the box", is_back);
    }

    /// Waits until something outside is so; `what` is told when it is not.
    #[track_caller]
    pub fn wait_until(&self, what: &str, holds: impl Fn() -> bool) {
        self.wait_until_within(SOON, what, holds);
    }

    /// The same for what may take another time.
    #[track_caller]
    pub fn wait_until_within(&self, limit: Duration, what: &str, holds: impl Fn() -> bool) {
        poll::until_true(limit, holds, || {
            let (screen, log) = (self.screen(), self.log());
            format!("waited {limit:?} in vain: {what}\nthe screen:\n{screen}\nthe log:\n{log}")
        });
    }

    /// Waits until this is in the scratchpad on disk.
    #[track_caller]
    pub fn wait_for_notes(&self, text: &str) {
        self.wait_until(text, || self.notes().contains(text));
    }

    /// Waits until this is in the handoff.
    #[track_caller]
    pub fn wait_for_handoff(&self, text: &str) {
        self.wait_until(text, || self.handoff_text().contains(text));
    }

    /// Waits until the host terminal has been asked for something so many times.
    #[track_caller]
    pub fn wait_for_request(&self, request: &str, times: usize) {
        let count = || {
            let output = self.terminal.output();
            String::from_utf8_lossy(&output).matches(request).count()
        };
        self.wait_until(request, || count() == times);
    }

    /// The hosted agent's process, by the supervisor's children.
    #[track_caller]
    pub fn agent_pid(&self) -> Pid {
        let own = self.pid().as_raw_nonzero().get();
        let runs = || {
            let pane = processes_of(&self.launch.home)
                .into_iter()
                .find(|one| one.parent == own && one.leads_session());
            pane.and_then(|one| Pid::from_raw(one.pid))
        };
        // A generic agent counts as idle before it runs.
        poll::until(SOON, runs, || {
            format!("no agent runs; the screen:\n{}", self.screen())
        })
    }

    /// Kills the supervisor as a crash would; the same home can be started again.
    pub fn kill(mut self) -> Launch {
        self.checks = false;
        // It may have died already, and at the very start it is not there yet.
        poll::within(SOON, || match self.seek_pid() {
            Some(server) => {
                let _ = rustix::process::kill_process(server, Signal::KILL);
                true
            }
            None => self.terminal.has_ended(),
        });
        self.terminal.wait_for_exit(SOON);
        self.launch.clone()
    }

    /// Quits by the key, and says yes where it asks first: a client may begin something by itself after it was idle.
    #[track_caller]
    pub fn quit(&self) -> Exit {
        self.keys([key::F10]);
        let asks = || self.screen().contains("Quit?");
        let either = || self.terminal.has_ended() || asks();
        self.wait_until("it quits, or asks", either);
        if asks() {
            self.keys([key::ENTER]);
        }
        self.wait_for_exit(SOON)
    }

    /// Waits for the supervisor's own end.
    #[track_caller]
    pub fn wait_for_exit(&self, limit: Duration) -> Exit {
        self.terminal.wait_for_exit(limit)
    }

    /// Leaves other processes of this home alone when dropped, unless the test has failed.
    pub fn check_nothing(&mut self) {
        self.checks = false;
    }
}

impl Drop for Supervisor {
    fn drop(&mut self) {
        if !self.checks && !thread::panicking() {
            return;
        }
        match self.seek_pid() {
            Some(_) => self.signal(Signal::TERM),
            None => self.terminal.signal(Signal::TERM),
        }
        let gone = || processes_of(&self.launch.home).is_empty();
        if thread::panicking() {
            // The test has failed already: no more than order is wanted.
            poll::within(Duration::from_secs(5), gone);
            kill_all(&self.launch.home);
            return;
        }
        self.terminal.wait_for_exit(LEAVING);
        if !poll::within(Duration::from_secs(3), gone) {
            let left = processes_of(&self.launch.home);
            kill_all(&self.launch.home);
            panic!("processes left behind: {left:#?}");
        }
    }
}

fn keep_lines(
    stream: impl Read + Send + 'static,
    lines: &Arc<Mutex<Vec<String>>>,
) -> thread::JoinHandle<()> {
    let lines = Arc::clone(lines);
    thread::spawn(move || {
        for line in BufReader::new(stream).lines().map_while(Result::ok) {
            lines.lock().push(line);
        }
    })
}

/// A running supervisor without a terminal. Dropped, it is told to end and must leave no process behind.
pub struct Headless {
    pub launch: Launch,
    child: Child,
    lines: Arc<Mutex<Vec<String>>>,
    readers: Vec<thread::JoinHandle<()>>,
}

impl Headless {
    /// What it has printed so far, line by line.
    pub fn lines(&self) -> Vec<String> {
        self.lines.lock().clone()
    }

    /// The JSON lines it has printed so far.
    #[track_caller]
    pub fn events(&self) -> Vec<Value> {
        let lines = self.lines();
        let parsed = lines.iter().map(|line| {
            serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line}"))
        });
        parsed.collect()
    }

    /// How often this event was told so far.
    pub fn count(&self, event: &str) -> usize {
        let mark = format!("\"event\":\"{event}\"");
        self.lines()
            .iter()
            .filter(|line| line.contains(&mark))
            .count()
    }

    /// Waits until something is so; `what` is told when it is not.
    #[track_caller]
    pub fn wait_until(&mut self, what: &str, holds: impl Fn(&Self) -> bool) {
        self.wait_until_within(SOON, what, holds);
    }

    /// The same for what may take another time.
    #[track_caller]
    pub fn wait_until_within(
        &mut self,
        limit: Duration,
        what: &str,
        holds: impl Fn(&Self) -> bool,
    ) {
        let end = Instant::now() + limit;
        loop {
            let asked = Instant::now();
            if holds(self) {
                return;
            }
            let ended = self.child.try_wait().ok().flatten();
            assert!(
                Instant::now() < end && ended.is_none(),
                "waited {limit:?} in vain: {what}\nended: {ended:?}\n{}\nthe log:\n{}",
                self.lines().join("\n"),
                log_of(&self.launch.home)
            );
            poll::pause_after(asked.elapsed());
        }
    }

    /// Waits for its end; gives the exit code, or none if a signal ended it.
    #[track_caller]
    pub fn wait_for_exit(&mut self, limit: Duration) -> Option<i32> {
        let ended = || self.child.try_wait().expect("a child can be waited for");
        let status = poll::until(limit, ended, || {
            let (lines, log) = (self.lines.lock().join("\n"), log_of(&self.launch.home));
            format!("runs after {limit:?}\n{lines}\nthe log:\n{log}")
        });
        for reader in self.readers.drain(..) {
            reader.join().expect("a reader ends with its stream");
        }
        status.code()
    }

    /// Its process.
    pub fn pid(&self) -> Pid {
        Pid::from_child(&self.child)
    }

    /// Sends it a signal.
    pub fn signal(&self, signal: Signal) {
        // It may end at this very moment.
        let _ = rustix::process::kill_process(self.pid(), signal);
    }

    /// The hosted agent's process, if one runs.
    pub fn agent_pid(&self) -> Option<Pid> {
        let own = self.pid().as_raw_nonzero().get();
        let pane = processes_of(&self.launch.home)
            .into_iter()
            .find(|one| one.parent == own && one.leads_session())?;
        Pid::from_raw(pane.pid)
    }

    /// Runs a sub-command to its end.
    pub fn run(&self, args: &[&str]) -> Output {
        self.launch.run(args)
    }
}

impl Drop for Headless {
    fn drop(&mut self) {
        let running = || matches!(self.child.try_wait(), Ok(None));
        let mut running = running;
        if running() {
            let _ = rustix::process::kill_process(Pid::from_child(&self.child), Signal::TERM);
        }
        let end = Instant::now() + LEAVING;
        while !processes_of(&self.launch.home).is_empty() {
            if Instant::now() > end {
                kill_all(&self.launch.home);
                let _ = self.child.wait();
                assert!(thread::panicking(), "processes were left behind");
                return;
            }
            let _ = self.child.try_wait();
            thread::park_timeout(Duration::from_millis(20));
        }
        let _ = self.child.wait();
    }
}

fn log_of(home: &Home) -> String {
    let directory = home.path("state").join("pitstop/log");
    let files = fs::read_dir(directory).into_iter().flatten().flatten();
    files
        .filter_map(|file| fs::read_to_string(file.path()).ok())
        .collect()
}

/// The session of a status or of an iteration's record.
#[track_caller]
pub fn session_of(status: &Value) -> String {
    status["session_id"].as_str().expect("a session").to_owned()
}

/// How long an agent may outlive its supervisor.
const ORPHAN_LIMIT: Duration = Duration::from_secs(5);

/// Waits until nothing runs any more that was started in this home; gives the time that took.
#[track_caller]
pub fn wait_for_end(home: &Home) -> Duration {
    let began = Instant::now();
    let ended = || processes_of(home).is_empty();
    poll::until_true(ORPHAN_LIMIT, ended, || {
        format!("still alive: {:#?}", processes_of(home))
    });
    began.elapsed()
}

/// All living processes whose `HOME` is this one.
pub fn processes_of(home: &Home) -> Vec<Process> {
    let mut mark = b"HOME=".to_vec();
    mark.extend_from_slice(home.path("").as_os_str().as_bytes());
    while mark.last() == Some(&b'/') {
        mark.pop();
    }
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    entries
        .filter_map(|entry| entry.file_name().to_str()?.parse::<i32>().ok())
        .filter(|pid| {
            let environ = fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
            environ.split(|byte| *byte == 0).any(|one| one == mark)
        })
        .filter_map(look)
        .collect()
}

/// The living processes of a process group.
pub fn group_members(group: Pid) -> Vec<Process> {
    let group = group.as_raw_nonzero().get();
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    entries
        .filter_map(|entry| look(entry.file_name().to_str()?.parse().ok()?))
        .filter(|one| one.group == group)
        .collect()
}

/// The living agents of a home; the supervisor itself is not one. A child of an agent looks like it until it becomes the
/// program that it is to run.
pub fn agents(home: &Home) -> Vec<Process> {
    let is_agent = |one: &Process| {
        one.group == one.pid
            && (one.command.contains("demo-agent") || one.command.contains("--settings"))
    };
    let mut found: Vec<Process> = processes_of(home).into_iter().filter(is_agent).collect();
    let pids: Vec<i32> = found.iter().map(|one| one.pid).collect();
    found.retain(|one| !pids.contains(&one.parent));
    found
}

fn kill_all(home: &Home) {
    for one in processes_of(home) {
        if let Some(pid) = Pid::from_raw(one.pid) {
            // It may end at this very moment.
            let _ = rustix::process::kill_process(pid, Signal::KILL);
        }
    }
}

/// Removes a directory into which others write: again where something was added meanwhile.
#[track_caller]
pub fn remove(directory: &Path) {
    let removed = || fs::remove_dir_all(directory).is_ok();
    poll::until_true(SOON, removed, || format!("{} stays", directory.display()));
}

/// Puts a file in the place of a directory into which others write: nothing can be made there.
#[track_caller]
pub fn replace_by_file(directory: &Path) {
    let replaced = || {
        // Gone already, or refused because something was added meanwhile: the file says which.
        let _ = fs::remove_dir_all(directory);
        fs::write(directory, "").is_ok()
    };
    poll::until_true(SOON, replaced, || format!("{} stays", directory.display()));
}
