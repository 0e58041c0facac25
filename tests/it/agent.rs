//! The agent room against real programs: Claude Code itself, when `PITSTOP_CLAUDE` names it, and the
//! demo.

use std::{
    env,
    ffi::{OsStr, OsString},
    fs,
    os::unix::fs::PermissionsExt as _,
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

use pitstop::agent::{
    AgentEvent, AgentKind, Launch, Start, StatusLine, claude, command_line, parse_hook,
    parse_status_line, submit,
};
use rustix::process::Signal;

use crate::kit::{
    home::Home,
    messages_api::{Answer, MessagesApi, user_texts},
    terminal::{Answers, Spec, Terminal},
};

const LIMIT: Duration = Duration::from_secs(20);

/// Polls `found` until it gives something.
#[track_caller]
fn eventually<T>(what: &str, found: impl Fn() -> Option<T>) -> T {
    let end = Instant::now() + LIMIT;
    loop {
        if let Some(found) = found() {
            return found;
        }
        assert!(Instant::now() < end, "waited {LIMIT:?} in vain for {what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// The real client.
fn claude_binary() -> OsString {
    env::var_os("PITSTOP_CLAUDE").expect("PITSTOP_CLAUDE names the claude binary")
}

/// A stand-in for the `pitstop` executable that files every hook's and status line's body.
fn recorder(home: &Home) -> PathBuf {
    let exe = home.path("it's the recorder");
    let dir = home.path("seen");
    fs::create_dir_all(&dir).unwrap();
    // Written aside and renamed, so that a reader never meets half a body.
    let script = "#!/bin/sh\nn=$(date +%s%N)-$$\ncase $1 in hook) name=$2;; *) name=$1;; esac\n\
         cat >\"$HOME/seen/.$n\"\nmv \"$HOME/seen/.$n\" \"$HOME/seen/$n-$name\"\n";
    fs::write(&exe, script).unwrap();
    fs::set_permissions(&exe, fs::Permissions::from_mode(0o700)).unwrap();
    exe
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
}

impl Agent {
    fn claude(api: &MessagesApi) -> Self {
        let home = Home::with_project("a [b] (c)").unwrap();
        let env = home.claude_env(&api.base_url());
        Self {
            home,
            kind: AgentKind::Claude,
            program: claude_binary(),
            env,
        }
    }

    fn scratchpad(&self) -> PathBuf {
        self.home.project().join(".pitstop/scratchpad.md")
    }

    fn start(&self, session: &str, way: Start, prompt: Option<&str>) -> Terminal {
        let settings = claude::settings(
            claude::Injection {
                exe: &recorder(&self.home),
                observe: Path::new("/a file/observe"),
                scratchpad: &self.scratchpad(),
            },
            None,
        )
        .unwrap();
        let settings_file = self.home.path("settings.json");
        fs::write(&settings_file, settings.json).unwrap();
        let line = command_line(&Launch {
            kind: self.kind,
            program: self.program.clone(),
            lead_args: Vec::new(),
            session: session.parse().unwrap(),
            way,
            first: true,
            prompt: prompt.map(str::to_owned),
            user_args: Vec::new(),
            settings_file,
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
    let mut text = String::from("pitstop handoff \u{b7} it's \"quoted\" $HOME `x` \\\n");
    let line = "\t\u{1f469}\u{200d}\u{1f467} \u{65e5}\u{672c} e\u{301} --flag with words\n";
    text.push_str(&line.repeat(1500));
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

#[test]
#[ignore = "live: needs PITSTOP_CLAUDE"]
fn a_prompt_pasted_into_the_client_is_answered_once_and_told_by_hooks() {
    let api = MessagesApi::start().unwrap();
    api.answer([Answer::text("Seen by the kit.")]);
    api.report_usage([100_000]);
    let agent = Agent::claude(&api);
    let terminal = agent.start(FIRST, Start::Fresh, None);
    agent.wait_for_start();
    terminal.wait_for_text("\u{276f}", LIMIT);
    let prompt = nasty_prompt();
    for keys in submit(&prompt, true) {
        terminal.send(&keys.bytes);
        std::thread::sleep(keys.then);
    }
    // The rule of the paste: one more lone Enter if no proof came.
    let end = Instant::now() + Duration::from_secs(1);
    while prompts(&agent.home).is_empty() && Instant::now() < end {
        std::thread::sleep(Duration::from_millis(10));
    }
    if prompts(&agent.home).is_empty() {
        terminal.send(b"\r");
    }
    agent.wait_for_turns(1);
    terminal.wait_for_text("Seen by the kit.", LIMIT);
    let line = eventually("a status line with usage", || {
        status_lines(&agent.home)
            .into_iter()
            .rfind(|line| line.usage.is_some())
    });
    assert_eq!(line.usage.unwrap().context().0, 100_020);
    // Measured with 2.1.197: the prompt box turns a tab into four spaces. Whoever needs every byte
    // gives the prompt as an argument.
    let [arrived] = prompts(&agent.home).try_into().expect("one prompt");
    assert_same(&arrived, &prompt.replace('\t', "    "));
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
    assert!(user_texts(&calls[1]).iter().any(|text| text == "one"));
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
    assert_eq!(failure, pitstop::agent::Failure::ContextLimit);
}
