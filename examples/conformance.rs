//! Makes the recordings that `tests/it/conformance.rs` compares, and what they must show.
//!
//! ```text
//! cargo run --example conformance -- record NAME…     runs the recipes, makes NAME.cast and NAME.grid
//! cargo run --example conformance -- expect NAME…     makes NAME.grid again from NAME.cast, by tmux
//! cargo run --example conformance -- compare NAME…    shows how our screen and tmux differ at moments on the way, and writes nothing
//! ```
//!
//! Without a name, all of them. The programs run in `/tmp/demo`, which is made for it and removed; so that no name of
//! a user, a host or a process of yours gets in, run `record` as root in namespaces of its own:
//! `unshare -u -p -f --mount-proc sh -c 'hostname demo; exec target/debug/examples/conformance record NAME'`.
//! For the recipes with `client`, `PITSTOP_CLAUDE` is the path of the real client.

#![allow(clippy::disallowed_methods, reason = "real programs take real time")]

use std::{
    env,
    ffi::OsString,
    fs,
    path::{Path, PathBuf},
    process::{Command, ExitCode},
    thread,
    time::{Duration, Instant},
};

use pitstop_terminal::{
    PaneSize,
    pane::{
        PaneSpec,
        pty::{self, Pty, PtyEvent, PtyMessage, Signal},
        recording::Recording,
    },
    screen::Screen,
};
use serde::Deserialize;
use serde_json::Value;
use tokio::sync::mpsc::{Receiver, error::TryRecvError};

#[path = "../tests/it/kit"]
mod kit {
    pub mod grid;
    pub mod home;
    pub mod messages_api;
    pub mod played;
    pub mod player;
    pub mod poll;
    pub mod prompt_cache;
    pub mod shape;
    pub mod tmux;
    pub mod transcripts;
}

use kit::{
    grid::Grid,
    home,
    messages_api::{Answer, MessagesApi},
    tmux::Tmux,
};

/// Where the programs run: a name that says nothing.
const HOME: &str = "/tmp/demo";

/// How long a program may take to get where a step waits for it.
const LIMIT: Duration = Duration::from_secs(60);

/// Output that comes this soon after other output is one event of the recording.
const TOGETHER: Duration = Duration::from_millis(20);

/// At how many moments of a recording `compare` looks, at most.
const MOMENTS: usize = 12;

/// Larger recordings are not worth their room.
const LARGEST: u64 = 150_000;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Recipes {
    /// A shell script that fills the project directory.
    setup: String,
    recording: Vec<Recipe>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Recipe {
    name: String,
    /// Columns and rows, as `80x24`.
    size: String,
    /// A shell command.
    run: String,
    #[serde(default)]
    env: Vec<(String, String)>,
    #[serde(default)]
    steps: Vec<Step>,
    /// What the stand-in API answers the real client, if that is what runs.
    client: Option<Vec<Said>>,
    /// Why the lines above the screen are not as tmux has them, if they are not.
    above: Option<String>,
    /// Where tmux is not to be believed.
    #[serde(default)]
    ours: Vec<Ours>,
}

#[derive(Deserialize)]
#[serde(rename_all = "lowercase")]
enum Step {
    /// Waits until the screen shows this.
    Wait(String),
    /// Types this.
    Type(String),
    /// Changes the size.
    Resize(String),
    /// Waits until nothing has been written for so many milliseconds.
    Quiet(u64),
    /// Waits until the program has ended.
    End,
}

#[derive(Deserialize)]
#[serde(rename_all = "lowercase")]
enum Said {
    Text(String),
    Shell(String),
}

/// Rows whose cells are taken from our screen instead of tmux's.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Ours {
    rows: Vec<usize>,
    /// Whether the cursor is too.
    #[serde(default)]
    cursor: bool,
    why: String,
}

fn directory() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/recordings")
}

fn main() -> ExitCode {
    let mut args = env::args().skip(1);
    let verb = args.next().unwrap_or_default();
    let names: Vec<String> = args.collect();
    let text = fs::read_to_string(directory().join("recipes.toml")).expect("the recipes");
    let recipes: Recipes = toml::from_str(&text).unwrap_or_else(|fault| panic!("{fault}"));
    let chosen = |recipe: &&Recipe| names.is_empty() || names.contains(&recipe.name);
    let mut faults = 0;
    for recipe in recipes.recording.iter().filter(chosen) {
        let done = match verb.as_str() {
            "record" => record(recipe, &recipes.setup).and_then(|()| expect(recipe)),
            "expect" => expect(recipe),
            "compare" => compare(recipe),
            _ => Err("expected `record`, `expect` or `compare`".to_owned()),
        };
        match done {
            Ok(()) => println!("{}: done", recipe.name),
            Err(fault) => {
                println!("{}: {fault}", recipe.name);
                faults += 1;
            }
        }
    }
    ExitCode::from(u8::from(faults > 0))
}

fn size(text: &str) -> PaneSize {
    let (columns, rows) = text.split_once('x').expect("a size such as 80x24");
    let side = |side: &str| side.parse().expect("a number of cells");
    PaneSize::new(side(columns), side(rows))
}

/// The running program, and what has been seen of it.
struct Stage {
    pty: Pty,
    output: Receiver<PtyMessage>,
    screen: Screen,
    recording: Recording,
    begin: Instant,
    /// Output that is not recorded yet, and when it began.
    pending: Option<(Instant, Vec<u8>)>,
    last: Instant,
    ended: bool,
}

impl Stage {
    /// Takes what has come.
    fn listen(&mut self) {
        loop {
            match self.output.try_recv() {
                Ok(message) => match message.event {
                    PtyEvent::Output(bytes) => self.output(&bytes),
                    PtyEvent::OutputEnded => self.ended = true,
                    PtyEvent::Stopped(_) | PtyEvent::Continued | PtyEvent::Exited(_) => {}
                },
                Err(TryRecvError::Empty) => break,
                Err(TryRecvError::Disconnected) => {
                    self.ended = true;
                    break;
                }
            }
        }
        if self
            .pending
            .as_ref()
            .is_some_and(|(since, _)| since.elapsed() > TOGETHER)
        {
            self.write();
        }
        thread::sleep(Duration::from_millis(1));
    }

    fn output(&mut self, bytes: &[u8]) {
        let now = Instant::now();
        self.last = now;
        self.screen.feed(bytes, now);
        for reply in self.screen.take_replies() {
            let _ = self.pty.try_write(reply);
        }
        self.screen.take_facts();
        self.pending
            .get_or_insert((now, Vec::new()))
            .1
            .extend_from_slice(bytes);
    }

    fn write(&mut self) {
        if let Some((since, bytes)) = self.pending.take() {
            let at = Duration::from_millis((since - self.begin).as_millis() as u64);
            self.recording
                .output(at, &bytes)
                .expect("it can be written");
        }
    }

    fn until(&mut self, what: &str, holds: impl Fn(&mut Self) -> bool) -> Result<(), String> {
        let begin = Instant::now();
        while !holds(self) {
            if begin.elapsed() > LIMIT {
                return Err(format!(
                    "waited in vain for {what}; the screen:\n{}",
                    self.screen.text()
                ));
            }
            self.listen();
            self.screen.expire(Instant::now());
        }
        Ok(())
    }

    fn step(&mut self, step: &Step) -> Result<(), String> {
        match step {
            Step::Wait(text) => {
                self.until(text, |stage| stage.screen.text().contains(text.as_str()))
            }
            Step::Type(text) => {
                self.pty
                    .try_write(text.clone().into_bytes())
                    .map_err(|fault| fault.to_string())?;
                // The next key is one of its own for programs that look at the time between them.
                let typed = Instant::now();
                self.until("a moment", |_| typed.elapsed() > Duration::from_millis(80))
            }
            Step::Resize(text) => {
                let size = size(text);
                self.listen();
                self.write();
                let at = Duration::from_millis(self.begin.elapsed().as_millis() as u64);
                self.recording.resize(at, size);
                self.screen.resize(size);
                self.pty.resize(size).map_err(|fault| fault.to_string())
            }
            Step::Quiet(milliseconds) => {
                let (since, span) = (Instant::now(), Duration::from_millis(*milliseconds));
                self.until("silence", |stage| since.max(stage.last).elapsed() > span)
            }
            Step::End => self.until("its end", |stage| stage.ended),
        }
    }
}

fn record(recipe: &Recipe, setup: &str) -> Result<(), String> {
    let project = prepare(setup)?;
    let api = recipe.client.as_ref().map(|said| answering(said));
    let mut environment = environment(recipe);
    if let Some(api) = &api {
        environment.extend(client(&api.base_url(), &project));
    }
    let (sender, output) = pty::channel();
    let spec = PaneSpec {
        program: "sh".into(),
        args: vec!["-c".into(), recipe.run.clone().into()],
        env: environment,
        cwd: project,
    };
    let size = size(&recipe.size);
    let path = directory().join(&recipe.name).with_extension("cast");
    let recording =
        Recording::create(&path, size, 0, LARGEST).map_err(|fault| fault.to_string())?;
    let pty = pty::spawn(spec, size, 1, &sender).map_err(|fault| fault.to_string())?;
    drop(sender);
    let now = Instant::now();
    let mut stage = Stage {
        pty,
        output,
        screen: Screen::new(size, 1000),
        recording,
        begin: now,
        pending: None,
        last: now,
        ended: false,
    };
    let played = recipe.steps.iter().try_for_each(|step| stage.step(step));
    stage.write();
    let Stage { pty, recording, .. } = stage;
    let whole = recording.close().map_err(|fault| fault.to_string())?;
    let _ = pty.signal(Signal::HUP);
    thread::sleep(Duration::from_millis(200));
    let _ = pty.signal(Signal::KILL);
    pty.release();
    drop(pty);
    let _ = fs::remove_dir_all(HOME);
    played?;
    if !whole {
        return Err(format!("it is longer than {LARGEST} bytes"));
    }
    clean(&path)
}

/// Makes the home and the project that the programs see.
fn prepare(setup: &str) -> Result<PathBuf, String> {
    let _ = fs::remove_dir_all(HOME);
    let project = Path::new(HOME).join("project");
    fs::create_dir_all(&project).map_err(|fault| format!("{HOME}: {fault}"))?;
    let done = Command::new("sh")
        .args(["-ec", setup])
        .current_dir(&project)
        .env("HOME", HOME)
        .output()
        .map_err(|fault| fault.to_string())?;
    if done.status.success() {
        Ok(project)
    } else {
        Err(String::from_utf8_lossy(&done.stderr).into_owned())
    }
}

fn environment(recipe: &Recipe) -> Vec<(OsString, OsString)> {
    let real = env::var("HOME").unwrap_or_default();
    let rust = |name: &str, dir: &str| env::var(name).unwrap_or_else(|_| format!("{real}/{dir}"));
    let fixed = [
        ("HOME", HOME.to_owned()),
        ("PATH", env::var("PATH").unwrap_or_default()),
        ("TERM", "xterm-256color".to_owned()),
        ("COLORTERM", "truecolor".to_owned()),
        ("LANG", "C.UTF-8".to_owned()),
        ("TZ", "UTC".to_owned()),
        ("USER", "demo".to_owned()),
        ("SHELL", "/bin/bash".to_owned()),
        ("CARGO_HOME", rust("CARGO_HOME", ".cargo")),
        ("RUSTUP_HOME", rust("RUSTUP_HOME", ".rustup")),
    ];
    let fixed = fixed.map(|(name, value)| (name.to_owned(), value));
    let all = fixed.into_iter().chain(recipe.env.iter().cloned());
    all.map(|(name, value)| (name.into(), value.into()))
        .collect()
}

fn answering(said: &[Said]) -> MessagesApi {
    let api = MessagesApi::start().expect("a port on loopback");
    api.answer(said.iter().map(|said| match said {
        Said::Text(text) => Answer::text(text),
        Said::Shell(command) => Answer::shell(command),
    }));
    api
}

/// What the real client needs to run with no account: it is told that its first-run dialogs are over.
fn client(base_url: &str, project: &Path) -> Vec<(OsString, OsString)> {
    let known = home::onboarded(project);
    fs::write(Path::new(HOME).join(".claude.json"), known).expect("a file");
    let program =
        env::var("PITSTOP_CLAUDE").expect("PITSTOP_CLAUDE, the path of the claude binary");
    let mut names = home::client_env(base_url);
    names.push(("CLAUDE".into(), program.into()));
    names
}

/// Refuses a recording that shows where it was made.
fn clean(path: &Path) -> Result<(), String> {
    let text = fs::read_to_string(path).map_err(|fault| fault.to_string())?;
    let name = |file: &str| {
        fs::read_to_string(file)
            .unwrap_or_default()
            .trim()
            .to_owned()
    };
    let mut private = vec![
        name("/proc/sys/kernel/hostname"),
        "/work/".to_owned(),
        "/root".to_owned(),
    ];
    private.extend(env::var("HOME"));
    private.retain(|word| word.len() > 1 && word != "demo");
    match private.iter().find(|word| text.contains(word.as_str())) {
        Some(word) => Err(format!("it contains {word:?}")),
        None => Ok(()),
    }
}

/// The events of a recording, output that follows output joined.
fn events(path: &Path) -> Result<Vec<Event>, String> {
    let text = fs::read_to_string(path).map_err(|fault| fault.to_string())?;
    let lines = text
        .lines()
        .skip(1)
        .filter_map(|line| serde_json::from_str::<Value>(line).ok());
    let events = lines.map(|event| {
        let text = event[2].as_str().unwrap_or_default();
        if event[1] == "r" {
            Event::Resize(size(text))
        } else {
            Event::Output(text.to_owned())
        }
    });
    Ok(events.collect())
}

enum Event {
    Output(String),
    Resize(PaneSize),
}

/// What tmux and our screen show after these events.
fn shown(first: PaneSize, events: &[Event]) -> Result<(Grid, Grid), String> {
    let mut screen = Screen::new(first, 10_000);
    let mut tmux = Tmux::mute(first.columns().into(), first.rows().into());
    let mut output = String::new();
    for event in events {
        match event {
            Event::Output(text) => output.push_str(text),
            Event::Resize(size) => {
                tmux.feed(std::mem::take(&mut output).as_bytes());
                tmux.resize(size.columns().into(), size.rows().into());
            }
        }
        match event {
            Event::Output(text) => screen.feed_at_once(text.as_bytes()),
            Event::Resize(size) => screen.resize(*size),
        }
    }
    tmux.feed(output.as_bytes());
    Ok((tmux.grid()?, Grid::with_above(&mut screen)))
}

/// Lets tmux and our screen show the recording; returns the differences, and writes what must be shown.
fn expect(recipe: &Recipe) -> Result<(), String> {
    let path = directory().join(&recipe.name).with_extension("cast");
    let (mut expected, found) = shown(size(&recipe.size), &events(&path)?)?;
    for ours in &recipe.ours {
        expected.notes.push(format!(
            "rows {:?} not as tmux has them: {}",
            ours.rows, ours.why
        ));
        for row in &ours.rows {
            expected.lines[*row].clone_from(&found.lines[*row]);
        }
        if ours.cursor {
            expected.cursor = found.cursor;
        }
    }
    if let Some(why) = &recipe.above {
        expected.notes.push(format!(
            "lines above the screen not as tmux has them: {why}"
        ));
        expected.above.clone_from(&found.above);
    }
    for difference in expected.differences(&found) {
        println!("{}: {difference}", recipe.name);
    }
    if Grid::parse(&expected.to_string()).as_ref() != Ok(&expected) {
        return Err("what must be shown cannot be written".to_owned());
    }
    fs::write(path.with_extension("grid"), expected.to_string()).map_err(|fault| fault.to_string())
}

/// Reports the differences at moments before the end too.
fn compare(recipe: &Recipe) -> Result<(), String> {
    let path = directory().join(&recipe.name).with_extension("cast");
    let events = events(&path)?;
    for moment in (1..=events.len()).step_by(events.len().div_ceil(MOMENTS)) {
        let (expected, found) = shown(size(&recipe.size), &events[..moment])?;
        for difference in expected.differences(&found) {
            println!(
                "{} after {moment} of {}: {difference}",
                recipe.name,
                events.len()
            );
        }
    }
    Ok(())
}
