//! The agent room against real programs: Claude Code itself, when `PITSTOP_CLAUDE` names it, and the
//! demo.

use std::{
    ffi::{OsStr, OsString},
    fs,
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

use pitstop_agent::{
    AgentEvent, AgentKind, Launch, Start, StatusLine, claude, command_line, parse_hook,
    parse_status_line,
};
use pitstop_base::clean::composed;
use rustix::process::Signal;

use crate::kit::{
    client::{ASKS_FIRST, live_client},
    home::Home,
    messages_api::{Answer, MessagesApi, user_texts},
    poll,
    terminal::{Answers, Spec, Terminal},
};

/// How long anything may take on a machine that others use too.
const LIMIT: Duration = Duration::from_secs(120);

/// Polls `found` until it gives something.
#[track_caller]
fn eventually<T>(what: &str, found: impl Fn() -> Option<T>) -> T {
    poll::until(LIMIT, found, || {
        format!("waited {LIMIT:?} in vain for {what}")
    })
}

/// A stand-in for the `pitstop` executable that files every hook's and status line's body.
fn recorder(home: &Home) -> PathBuf {
    let dir = home.path("seen");
    fs::create_dir_all(&dir).unwrap();
    // Written aside and renamed, so that a reader never meets half a body.
    let script = "#!/bin/sh\nn=$(date +%s%N)-$$\ncase $1 in hook) name=$2;; *) name=$1;; esac\n\
         cat >\"$HOME/seen/.$n\"\nmv \"$HOME/seen/.$n\" \"$HOME/seen/$n-$name\"\n";
    home.program("it's the recorder", script)
}

/// Everything recorded so far, oldest first.
fn seen(home: &Home) -> Vec<(String, Vec<u8>)> {
    let mut files: Vec<_> = fs::read_dir(home.path("seen"))
        .unwrap()
        .flatten()
        .map(|file| file.path())
        .filter(|path| {
            !path
                .file_name()
                .unwrap()
                .as_encoded_bytes()
                .starts_with(b".")
        })
        .collect();
    files.sort();
    files
        .into_iter()
        .map(|path| {
            let name = path.file_name().unwrap().to_str().unwrap();
            let event = name.rsplit('-').next().unwrap().to_owned();
            (event, fs::read(&path).unwrap())
        })
        .collect()
}

fn events(home: &Home) -> Vec<AgentEvent> {
    seen(home)
        .iter()
        .filter(|(name, _)| name != "statusline")
        .map(|(name, body)| parse_hook(name, body).unwrap())
        .collect()
}

fn status_lines(home: &Home) -> Vec<StatusLine> {
    seen(home)
        .iter()
        .filter(|(name, _)| name == "statusline")
        .map(|(_, body)| parse_status_line(body).unwrap())
        .collect()
}

fn prompts(home: &Home) -> Vec<String> {
    let prompt = |event| match event {
        AgentEvent::PromptSubmitted { prompt, .. } => Some(prompt),
        _ => None,
    };
    events(home).into_iter().filter_map(prompt).collect()
}

/// An agent with the recorder injected.
struct Agent {
    home: Home,
    kind: AgentKind,
    program: OsString,
    env: Vec<(OsString, OsString)>,
    /// Where our mods lie, if the client is to load them.
    mods: Option<PathBuf>,
}

impl Agent {
    fn claude(api: &MessagesApi) -> Self {
        let home = Home::with_project("a [b] (c)").unwrap();
        let env = home.claude_env(&api.base_url());
        Self {
            home,
            kind: AgentKind::Claude,
            program: live_client().into_os_string(),
            env,
            mods: None,
        }
    }

    /// The demo at full speed, waiting for a prompt after each turn, with `control` set.
    fn demo(control: &[(&str, &str)]) -> Self {
        let home = Home::with_project("it's a [demo]").unwrap();
        let mut env = home.env();
        let calm = [("PITSTOP_DEMO_PACE_MS", "0"), ("PITSTOP_DEMO_AUTO", "0")];
        env.extend(
            calm.iter()
                .chain(control)
                .map(|(name, value)| (name.into(), value.into())),
        );
        Self {
            home,
            kind: AgentKind::Demo,
            program: env!("CARGO_BIN_EXE_pitstop").into(),
            env,
            mods: None,
        }
    }

    fn scratchpad(&self) -> PathBuf {
        self.home.project().join(".pitstop/scratchpad.md")
    }

    fn start(&self, session: &str, way: Start, prompt: Option<&str>) -> Terminal {
        let settings = claude::settings(
            claude::SettingsValues {
                no_compaction: false,
                reports_switches: false,
                exe: &recorder(&self.home),
                observe: Path::new("/a file/observe"),
                bridge: &[self.home.path("bridge")],
                server: false,
                scratchpad: &self.scratchpad(),
                given: &self.home.path("given"),
                own: None,
            },
            None,
        )
        .unwrap();
        let settings_file = self.home.path("settings.json");
        fs::write(&settings_file, settings.json).unwrap();
        let line = command_line(&Launch {
            kind: self.kind,
            program: self.program.clone(),
            lead_args: match self.kind {
                AgentKind::Demo => vec!["demo-agent".into()],
                _ => Vec::new(),
            },
            session: session.parse().unwrap(),
            way,
            first: true,
            prompt: prompt.map(str::to_owned),
            user_args: match self.kind {
                AgentKind::Claude => vec!["--permission-mode".into(), (*ASKS_FIRST).into()],
                _ => Vec::new(),
            },
            settings_file,
            mods: self.mods.clone(),
            mcp_config: None,
            user_append: None,
        })
        .unwrap();
        Terminal::spawn(&Spec {
            program: OsStr::new(&line.program),
            args: &line.args,
            env: &self.env,
            dir: self.home.project(),
            columns: 120,
            rows: 40,
            answers: Answers::All,
        })
    }

    fn wait_for_event(&self, what: &str, is: impl Fn(&AgentEvent) -> bool) -> AgentEvent {
        eventually(what, || events(&self.home).into_iter().find(&is))
    }

    fn wait_for_start(&self) {
        self.wait_for_event("SessionStart", |e| {
            matches!(e, AgentEvent::SessionStarted { .. })
        });
    }

    fn wait_for_turns(&self, count: usize) {
        eventually("the end of a turn", || {
            let ended = |e: &&AgentEvent| matches!(e, AgentEvent::TurnEnded { .. });
            (events(&self.home).iter().filter(ended).count() >= count).then_some(())
        });
    }
}

const FIRST: &str = "8f14e45f-ceea-467f-a8b5-2a8b9d3c1e70";

/// Compares long texts and shows only the place where they part.
#[track_caller]
fn assert_same(found: &str, expected: &str) {
    let same = found
        .bytes()
        .zip(expected.bytes())
        .take_while(|(a, b)| a == b)
        .count();
    let around = |text: &str| {
        let bytes = text.as_bytes();
        let window = &bytes[same.saturating_sub(20)..bytes.len().min(same + 20)];
        String::from_utf8_lossy(window).into_owned()
    };
    assert!(
        found == expected,
        "{} bytes and {} bytes part at {same}: found {:?}, expected {:?}",
        found.len(),
        expected.len(),
        around(found),
        around(expected),
    );
}

/// A prompt with everything that could be mangled on its way, of about 50 KB and 1 500 lines.
fn nasty_prompt() -> String {
    nasty(1500)
}

fn nasty(lines: usize) -> String {
    let mut text = String::from("pitstop handoff \u{b7} it's \"quoted\" $HOME `x` \\\n");
    let line = "\t\u{1f469}\u{200d}\u{1f467} \u{65e5}\u{672c} e\u{301} --flag with words\n";
    text.push_str(&line.repeat(lines));
    text.push_str("this is its end");
    text
}

#[test]
#[ignore = "live: needs PITSTOP_CLAUDE"]
fn the_client_takes_a_50_kb_start_prompt_exactly() {
    let api = MessagesApi::start().unwrap();
    let agent = Agent::claude(&api);
    let prompt = nasty_prompt();
    assert!(prompt.len() > 50_000);
    let _terminal = agent.start(FIRST, Start::Fresh, Some(&prompt));
    agent.wait_for_turns(1);
    let [arrived] = prompts(&agent.home).try_into().expect("one prompt");
    assert_same(&arrived, &prompt);
    assert!(user_texts(&api.main_calls()[0]).contains(&prompt));
}

/// The client draws its prompt box before it reads keys, and drops what came until then: a letter is typed until it is shown,
/// and taken away again.
fn wait_until_it_reads(terminal: &Terminal) {
    terminal.wait_for_text("\u{276f}", LIMIT);
    let shown = |screen: &str| screen.contains("\u{276f}\u{a0}x");
    let end = Instant::now() + LIMIT;
    while !shown(&terminal.screen_text()) {
        assert!(Instant::now() < end, "{}", terminal.screen_text());
        terminal.send("x");
        std::thread::sleep(Duration::from_millis(500));
    }
    terminal.send("\x15");
    terminal.wait_for(|screen| !shown(screen), LIMIT);
}

/// A client with our mods and a socket on which nothing listens, or one that takes what comes and never answers.
#[track_caller]
fn goes_on_as_ever_with_mods(answers: bool) {
    let api = MessagesApi::start().unwrap();
    let mut agent = Agent::claude(&api);
    let mods = agent.home.path("mods");
    for (directories, name, text) in pitstop_agent::bridge::FILES {
        let directory = directories
            .iter()
            .fold(mods.clone(), |at, one| at.join(one));
        fs::create_dir_all(&directory).unwrap();
        fs::write(directory.join(name), text).unwrap();
    }
    agent.mods = Some(mods);
    let socket = agent.home.path("s.sock");
    let _kept = answers.then(|| std::os::unix::net::UnixListener::bind(&socket).unwrap());
    let place = format!("{}\ntoken\n", socket.display());
    fs::write(agent.home.path("bridge"), place).unwrap();
    let terminal = agent.start(FIRST, Start::Fresh, None);
    agent.wait_for_start();
    wait_until_it_reads(&terminal);
    for number in 1..=2 {
        let began = Instant::now();
        terminal.send(format!("prompt {number}"));
        terminal.wait_for_text(&format!("prompt {number}"), LIMIT);
        terminal.send(claude::ENTER);
        agent.wait_for_turns(number);
        eprintln!("turn {number} took {:?}", began.elapsed());
    }
    let shown = terminal.screen_text();
    assert!(!shown.contains("hooks module"), "{shown}");
    let began = Instant::now();
    rustix::process::kill_process(terminal.pid(), rustix::process::Signal::INT).unwrap();
    agent.wait_for_event("SessionEnd", |event| {
        matches!(event, AgentEvent::SessionEnded { .. })
    });
    // One call of a mod may last 30 s: none may hold the exit up.
    assert!(began.elapsed() < Duration::from_secs(10));
}

#[test]
#[ignore = "live: needs PITSTOP_CLAUDE"]
fn the_client_with_our_mods_goes_on_as_ever_when_no_pitstop_is_there() {
    goes_on_as_ever_with_mods(false);
}

#[test]
#[ignore = "live: needs PITSTOP_CLAUDE"]
fn the_client_with_our_mods_goes_on_as_ever_when_pitstop_hangs() {
    goes_on_as_ever_with_mods(true);
}

#[test]
#[ignore = "live: needs PITSTOP_CLAUDE"]
fn a_prompt_pasted_into_the_client_is_answered_once_and_reported_by_hooks() {
    let api = MessagesApi::start().unwrap();
    api.answer([Answer::text("Seen by the kit.")]);
    api.report_usage([100_000]);
    let agent = Agent::claude(&api);
    let terminal = agent.start(FIRST, Start::Fresh, None);
    agent.wait_for_start();
    wait_until_it_reads(&terminal);
    // A terminal hands on at most 4095 bytes at once: a client that is busy at the cut may lose what follows.
    let prompt = nasty(90);
    let pieces = claude::pieces(&prompt);
    let pasted = format!("\x1b[200~{}\x1b[201~", pieces.join("\x1b[201~\x1b[200~"));
    terminal.send(pasted);
    terminal.wait_for_text("this is its end", LIMIT);
    terminal.send(claude::ENTER);
    agent.wait_for_turns(1);
    terminal.wait_for_text("Seen by the kit.", LIMIT);
    let line = eventually("a status line with usage", || {
        status_lines(&agent.home)
            .into_iter()
            .rfind(|line| line.usage.is_some())
    });
    assert_eq!(line.usage.unwrap().context().0, 100_020);
    // Measured with 2.1.197 and 2.1.330: the prompt box turns a tab into four spaces and composes accents. A prompt
    // as an argument keeps every byte.
    let [arrived] = prompts(&agent.home).try_into().expect("one prompt");
    assert_same(
        &composed(&arrived),
        &composed(prompt.trim_end()).replace('\t', "    "),
    );
    assert_eq!(api.main_calls().len(), 1);
}

#[test]
#[ignore = "live: needs PITSTOP_CLAUDE"]
fn the_scratchpad_may_be_written_without_asking_and_nothing_else() {
    let api = MessagesApi::start().unwrap();
    let agent = Agent::claude(&api);
    let write = |path: &Path| Answer::Tool {
        name: "Write".into(),
        input: serde_json::json!({ "file_path": path, "content": "notes\n" }),
    };
    api.answer([
        write(&agent.scratchpad()),
        write(&agent.home.project().join("other.md")),
    ]);
    let _terminal = agent.start(FIRST, Start::Fresh, Some("go"));
    let asked = agent.wait_for_event("a dialog", |e| matches!(e, AgentEvent::DialogOpened { .. }));
    assert!(matches!(asked, AgentEvent::DialogOpened { about, .. } if about == "Write"));
    assert_eq!(fs::read_to_string(agent.scratchpad()).unwrap(), "notes\n");
    assert!(!agent.home.project().join("other.md").exists());
}

#[test]
#[ignore = "live: needs PITSTOP_CLAUDE"]
fn an_interrupt_ends_the_client_cleanly_even_with_a_draft_and_it_can_be_resumed() {
    let api = MessagesApi::start().unwrap();
    let agent = Agent::claude(&api);
    let terminal = agent.start(FIRST, Start::Fresh, Some("one"));
    agent.wait_for_turns(1);
    terminal.send("half a thought");
    terminal.wait_for_text("half a thought", LIMIT);
    terminal.signal(Signal::INT);
    let exit = terminal.wait_for_exit(LIMIT);
    assert_eq!((exit.code, exit.signal), (0, None));
    assert_eq!(terminal.modes_left_on(), [""; 0]);
    agent.wait_for_event("SessionEnd", |e| {
        matches!(e, AgentEvent::SessionEnded { .. })
    });

    let resumed = agent.start(FIRST, Start::Resume, Some("two"));
    agent.wait_for_turns(2);
    assert_eq!(prompts(&agent.home), ["one", "two"]);
    let calls = api.wait_for_calls(2, LIMIT);
    let is_known = user_texts(&calls[1]).iter().any(|text| text == "one");
    let written = fs::read_to_string(&agent.home.transcripts()[0]);
    let sent = &calls[1]["messages"];
    assert!(is_known, "{sent}\nof the transcript {written:?}");
    drop(resumed);
}

#[test]
#[ignore = "live: needs PITSTOP_CLAUDE"]
fn a_refused_call_is_a_failed_turn() {
    let api = MessagesApi::start().unwrap();
    api.answer([Answer::Error {
        status: 400,
        kind: "invalid_request_error".into(),
        message: "prompt is too long: 210000 tokens > 200000 maximum".into(),
    }]);
    let agent = Agent::claude(&api);
    let _terminal = agent.start(FIRST, Start::Fresh, Some("go"));
    let failed = agent.wait_for_event("StopFailure", |e| {
        matches!(e, AgentEvent::TurnFailed { .. })
    });
    let AgentEvent::TurnFailed { failure, .. } = failed else {
        unreachable!()
    };
    assert_eq!(failure, pitstop_agent::Failure::ContextLimit);
}

/// Types a prompt as a person does: text, then Enter by itself.
fn type_in(terminal: &Terminal, text: &str) {
    terminal.send(text);
    terminal.wait_for_text(text, LIMIT);
    terminal.send("\r");
}

#[test]
fn the_demo_takes_a_start_prompt_exactly_and_reports_its_turn_by_hooks() {
    let agent = Agent::demo(&[("PITSTOP_DEMO_SCRIPT", "")]);
    let prompt = nasty_prompt();
    let terminal = agent.start(FIRST, Start::Fresh, Some(&prompt));
    agent.wait_for_turns(1);
    let [arrived] = prompts(&agent.home).try_into().expect("one prompt");
    assert_same(&arrived, &prompt);
    let kinds: Vec<_> = seen(&agent.home)
        .into_iter()
        .map(|(name, _)| name)
        .collect();
    for kind in ["SessionStart", "PreToolUse", "PostToolUse", "Stop"] {
        assert!(kinds.iter().any(|name| name == kind), "{kind} in {kinds:?}");
    }
    let [transcript] = agent.home.transcripts().try_into().expect("one transcript");
    assert!(transcript.ends_with(format!("{FIRST}.jsonl")));
    terminal.signal(Signal::INT);
    assert_eq!(terminal.wait_for_exit(LIMIT).code, 0);
    assert_eq!(terminal.modes_left_on(), [""; 0]);
}

#[test]
fn the_demo_reports_the_usage_it_was_given() {
    let agent = Agent::demo(&[("PITSTOP_DEMO_USAGE", "100000,130000,155000")]);
    let terminal = agent.start(FIRST, Start::Fresh, None);
    agent.wait_for_start();
    for (turn, used) in [100_000, 130_000, 155_000].into_iter().enumerate() {
        type_in(&terminal, &format!("turn {turn}"));
        eventually("the turn's usage in a status line", || {
            let context = |line: StatusLine| line.usage.map(|usage| usage.context().0);
            let lines = status_lines(&agent.home).into_iter();
            lines
                .filter_map(context)
                .any(|context| context == used)
                .then_some(())
        });
    }
}

#[test]
fn the_demo_refuses_prompts_near_the_end_of_its_window_without_a_stop() {
    let agent = Agent::demo(&[("PITSTOP_DEMO_USAGE", "177000")]);
    let terminal = agent.start(FIRST, Start::Fresh, Some("fill it"));
    agent.wait_for_turns(1);
    type_in(&terminal, "one more");
    terminal.wait_for_text("Context limit reached", LIMIT);
    assert_eq!(prompts(&agent.home).len(), 2);
    let ended = |event: &AgentEvent| matches!(event, AgentEvent::TurnEnded { .. });
    assert_eq!(events(&agent.home).into_iter().filter(ended).count(), 1);
}

#[test]
fn left_alone_the_demo_goes_on_until_its_window_is_full() {
    let agent = Agent::demo(&[("PITSTOP_DEMO_AUTO", "1"), ("PITSTOP_DEMO_REPLY", "On it.")]);
    let terminal = agent.start(FIRST, Start::Fresh, Some("build it"));
    terminal.wait_for_text("Context limit reached", LIMIT);
    assert!(prompts(&agent.home).len() > 15);
}

#[test]
fn the_demo_resumes_what_it_wrote_and_refuses_unknown_and_used_ids() {
    let agent = Agent::demo(&[("PITSTOP_DEMO_USAGE", "90000")]);
    let unknown = agent.start(FIRST, Start::Resume, None);
    assert_eq!(unknown.wait_for_exit(LIMIT).code, 1);
    assert!(unknown.screen_text().contains("No conversation found"));

    let first = agent.start(FIRST, Start::Fresh, Some("begin"));
    agent.wait_for_turns(1);
    type_in(&first, "/exit");
    assert_eq!(first.wait_for_exit(LIMIT).code, 0);
    let ended = agent.wait_for_event("SessionEnd", |e| {
        matches!(e, AgentEvent::SessionEnded { .. })
    });
    let AgentEvent::SessionEnded { reason, .. } = ended else {
        unreachable!()
    };
    assert_eq!(reason, pitstop_agent::EndReason::PromptExit);

    let used = agent.start(FIRST, Start::Fresh, None);
    assert_eq!(used.wait_for_exit(LIMIT).code, 1);
    assert!(used.screen_text().contains("already in use"));

    let before = status_lines(&agent.home).len();
    let _resumed = agent.start(FIRST, Start::Resume, None);
    let line = eventually("the first status line of the resumed session", || {
        status_lines(&agent.home).into_iter().nth(before)
    });
    assert_eq!(line.usage.unwrap().context().0, 90_000);
}

#[test]
fn the_demo_ends_by_each_signal_as_the_client_does() {
    for (signal, code) in [(Signal::INT, 0), (Signal::HUP, 129), (Signal::TERM, 143)] {
        let agent = Agent::demo(&[("PITSTOP_DEMO_PACE_MS", "1000")]);
        let terminal = agent.start(FIRST, Start::Fresh, Some("go"));
        agent.wait_for_start();
        terminal.signal(signal);
        assert_eq!(terminal.wait_for_exit(LIMIT).code, code, "{signal:?}");
        assert_eq!(terminal.modes_left_on(), [""; 0], "{signal:?}");
        agent.wait_for_event("SessionEnd", |e| {
            matches!(e, AgentEvent::SessionEnded { .. })
        });
    }
}

#[test]
fn the_demo_goes_on_from_a_handoff_where_the_last_session_stopped() {
    let agent = Agent::demo(&[("PITSTOP_DEMO_USAGE", "150000")]);
    let prompt = "pitstop handoff \u{b7} run \u{b7} 2\n\n- demo_next: 4\n";
    let _terminal = agent.start(FIRST, Start::Fresh, Some(prompt));
    let ended = agent.wait_for_event("Stop", |e| matches!(e, AgentEvent::TurnEnded { .. }));
    let AgentEvent::TurnEnded { last_message, .. } = ended else {
        unreachable!()
    };
    assert!(last_message.unwrap().contains("STATE demo_next=5"));
    let line = eventually("usage", || {
        status_lines(&agent.home)
            .into_iter()
            .rfind(|line| line.usage.is_some())
    });
    assert!(line.usage.unwrap().context().0 < 40_000);
}

#[test]
fn the_demo_draws_in_frames_and_survives_any_size() {
    let agent = Agent::demo(&[("PITSTOP_DEMO_PACE_MS", "20")]);
    let terminal = agent.start(FIRST, Start::Fresh, Some("go"));
    for (columns, rows) in [(20, 5), (3, 2), (200, 60), (1, 1), (100, 30)] {
        terminal.resize(columns, rows);
    }
    agent.wait_for_turns(1);
    terminal.wait_for_text("tests pass", LIMIT);
    assert!(terminal.title().contains("pitstop demo"));
    let output = terminal.output();
    let count = |needle: &[u8]| {
        output
            .windows(needle.len())
            .filter(|w| *w == needle)
            .count()
    };
    assert!(count(b"\x1b[?2026h") > 3);
    assert_eq!(count(b"\x1b[?2026h"), count(b"\x1b[?2026l"));
}

#[test]
fn the_demo_sums_up_as_json() {
    let home = Home::new().unwrap();
    let output = std::process::Command::new(env!("CARGO_BIN_EXE_pitstop"))
        .args(["demo-agent", "-p", "--output-format", "json"])
        .env_clear()
        .envs(home.env())
        .env("PITSTOP_DEMO_PACE_MS", "0")
        .stdin(std::process::Stdio::null())
        .current_dir(home.project())
        .output()
        .unwrap();
    let envelope: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    let result = envelope["result"].as_str().unwrap();
    assert_eq!(result.matches("\n## ").count(), 7, "{result}");
    assert_eq!(envelope["is_error"], false);
}
