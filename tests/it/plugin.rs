//! pitstop as a plugin of the client's own, which no pitstop hosts.

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
    process::{Command, Output},
};

use serde_json::{Value, json};

use crate::{
    bridge::{MODS_FROM, walk},
    kit::{
        client::{ASKS_FIRST, is_at_least, live_client},
        home::Home,
        messages_api::{Answer, user_texts},
        poll,
        supervisor::{Launch, PITSTOP, SOON, key, pitstop_at},
        terminal::Terminal,
    },
};

/// Runs a command in the project of a home, with this on its standard input.
fn pitstop(home: &Home, args: &[&str], input: &str) -> Output {
    let given = home.path("run/input");
    fs::write(&given, input).unwrap();
    let given_file = fs::File::open(&given).unwrap();
    let output = pitstop_at(home, args).stdin(given_file).output().unwrap();
    fs::remove_file(given).unwrap();
    output
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// The plugin's directory in a home, where each of its sessions finds it.
fn place(home: &Home) -> PathBuf {
    home.path(".claude/skills/pitstop")
}

#[track_caller]
fn install(home: &Home) -> String {
    let directory = place(home).display().to_string();
    let output = pitstop(home, &["plugin", "install", &directory], "");
    assert!(output.status.success(), "{}", text(&output.stderr));
    text(&output.stdout)
}

#[track_caller]
fn remove(home: &Home) {
    let directory = place(home).display().to_string();
    let output = pitstop(home, &["plugin", "remove", &directory], "");
    assert!(output.status.success(), "{}", text(&output.stderr));
}

/// All files below a directory, with their content.
fn files(directory: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let read = |path: PathBuf| {
        let bytes = fs::read(&path).unwrap_or_default();
        (path, bytes)
    };
    walk(directory).into_iter().map(read).collect()
}

#[test]
fn the_plugin_is_written_into_its_directory_alone_and_leaves_no_file() {
    let home = Home::new().unwrap();
    let before = files(&home.path(""));
    let said = install(&home);
    for part in [
        "nothing else was written",
        "/pitstop:reboot",
        "It cannot start a fresh process",
        "plugin remove",
    ] {
        assert!(said.contains(part), "{said}");
    }
    let mut after = files(&home.path(""));
    after.retain(|path, _| !before.contains_key(path));
    let root = place(&home);
    let names: Vec<_> = after
        .keys()
        .map(|path| path.strip_prefix(&root).unwrap().display().to_string())
        .collect();
    assert_eq!(
        names,
        [
            ".claude-plugin/plugin.json",
            ".claude-plugin/types",
            "commands/go.md",
            "commands/reboot.md",
            "hooks/figures.js",
            "hooks/hooks.json",
            "hooks/place.js",
            "hooks/register.js",
        ]
    );

    // An earlier one is brought up to date.
    fs::write(root.join("hooks/register.js"), "// old").unwrap();
    fs::write(root.join("handoffs/x.md"), "a handoff").unwrap();
    install(&home);
    assert_eq!(fs::read(root.join("handoffs/x.md")).unwrap(), b"a handoff");
    let code = root.join("hooks/register.js");
    assert_eq!(fs::read(&code).unwrap(), after[&code]);

    remove(&home);
    assert!(!root.exists());
    assert_eq!(files(&home.path("")), before);
    let directory = root.display().to_string();
    let again = pitstop(&home, &["plugin", "remove", &directory], "");
    assert_eq!(again.status.code(), Some(1));
    assert!(
        text(&again.stderr).contains("there is no plugin"),
        "{again:?}"
    );
}

#[test]
fn a_directory_that_holds_other_things_is_left_as_it_is() {
    let home = Home::new().unwrap();
    let directory = place(&home);
    let shown = directory.display().to_string();
    for foreign in [
        "notes.md",
        "hooks/mine.js",
        "commands",
        ".claude-plugin/a/b",
    ] {
        let file = directory.join(foreign);
        fs::create_dir_all(file.parent().unwrap()).unwrap();
        fs::write(&file, "mine").unwrap();
        let before = files(&home.path(""));
        let output = pitstop(&home, &["plugin", "install", &shown], "");
        let said = text(&output.stderr);
        assert_eq!(output.status.code(), Some(1), "{foreign}: {said}");
        assert!(said.contains("holds other files, such as"), "{said}");
        assert_eq!(files(&home.path("")), before, "{foreign}");
        fs::remove_dir_all(&directory).unwrap();
    }
    // What was put beside the plugin is not removed with it.
    install(&home);
    fs::write(directory.join("hooks/mine.js"), "mine").unwrap();
    let before = files(&home.path(""));
    let output = pitstop(&home, &["plugin", "remove", &shown], "");
    assert_eq!(output.status.code(), Some(1));
    assert!(text(&output.stderr).contains("hooks/mine.js"), "{output:?}");
    assert_eq!(files(&home.path("")), before);
    // Of a link only the link would be removed.
    fs::remove_file(directory.join("hooks/mine.js")).unwrap();
    let link = home.path("link");
    std::os::unix::fs::symlink(&directory, &link).unwrap();
    let linked = link.display().to_string();
    let output = pitstop(&home, &["plugin", "remove", &linked], "");
    assert_eq!(output.status.code(), Some(1));
    assert!(text(&output.stderr).contains("is a link"), "{output:?}");
    assert!(directory.join("hooks").is_dir());
}

#[test]
fn the_handoff_of_a_session_is_made_of_its_transcript_without_a_supervisor() {
    let home = Home::new().unwrap();
    install(&home);
    let session = "2baa54e0-3f7f-4168-9977-e8622e7e025c";
    let line = |kind: &str, content: &str| {
        let message = json!({ "role": kind, "content": content });
        json!({ "type": kind, "sessionId": session, "message": message, "origin": { "kind": "human" } })
    };
    let order = "<command-name>/compact</command-name>\n<command-args>pitstop-order 0a1b2c3d</command-args>";
    let lines = [
        line("user", "Port the importer to the new parser."),
        line(
            "assistant",
            "DECISION: keep the old format | callers\nTODO: test the importer",
        ),
        line("user", order),
    ];
    let transcript = home.path("session.jsonl");
    fs::write(
        &transcript,
        lines.map(|line| line.to_string()).join("\n") + "\n",
    )
    .unwrap();
    let question = json!({ "session": session, "transcript": transcript, "directory": place(&home).join("handoffs") });
    let output = pitstop(&home, &["plugin", "handoff"], &question.to_string());
    assert!(output.status.success(), "{}", text(&output.stderr));
    let answer: Value = serde_json::from_slice(&output.stdout).unwrap();
    let file = place(&home).join(format!("handoffs/{session}.md"));
    assert_eq!(answer["file"], json!(file));
    let handoff = fs::read_to_string(&file).unwrap();
    let nonce = answer["nonce"].as_str().unwrap();
    assert!(
        handoff.lines().next().unwrap().ends_with(nonce),
        "{handoff}"
    );
    for part in [
        "Port the importer",
        "keep the old format",
        "test the importer",
    ] {
        assert!(handoff.contains(part), "{handoff}");
    }
    assert!(!handoff.contains("pitstop-order"), "{handoff}");
    assert!(handoff.contains("The turn was over."), "{handoff}");
    let call =
        json!([{ "type": "tool_use", "id": "1", "name": "Bash", "input": { "command": "make" } }]);
    let assistant = |content: Value| json!({ "type": "assistant", "sessionId": session, "message": { "role": "assistant", "content": content } });
    for (more, standing) in [
        (assistant(call), "The turn was stopped before its end"),
        (line("user", "Go on with it."), "the last request is open"),
        (
            line("user", "[Request interrupted by user]"),
            "The turn was stopped",
        ),
        (line("assistant", "It is done."), "The turn was over."),
    ] {
        let mut written = fs::read_to_string(&transcript).unwrap();
        written.push_str(&format!("{more}\n"));
        fs::write(&transcript, written).unwrap();
        let output = pitstop(&home, &["plugin", "handoff"], &question.to_string());
        assert!(output.status.success(), "{}", text(&output.stderr));
        let handoff = fs::read_to_string(&file).unwrap();
        assert!(handoff.contains(standing), "{more}: {handoff}");
    }

    // Once it is removed nothing is written any more.
    remove(&home);
    let before = files(&home.path(""));
    let output = pitstop(&home, &["plugin", "handoff"], &question.to_string());
    assert_eq!(output.status.code(), Some(1));
    assert!(text(&output.stderr).contains("is gone"), "{output:?}");
    assert_eq!(files(&home.path("")), before);
}

/// The real client in a terminal of its own, with the plugin in its place.
struct Bare {
    launch: Launch,
    terminal: Terminal,
}

impl Bare {
    /// Starts the client where the plugin is installed; its window has 200k tokens.
    fn start(launch: Launch) -> Self {
        Self::start_by(&live_client(), launch)
    }

    /// The same by a program that becomes the client.
    fn start_by(program: &Path, launch: Launch) -> Self {
        assert!(is_at_least(MODS_FROM), "this client runs no mods");
        let args = [
            "--permission-mode",
            *ASKS_FIRST,
            "--model",
            MODEL,
            "--allowed-tools",
            "Bash",
        ];
        let terminal = launch.terminal(program, args, (140, 45));
        let bare = Self { launch, terminal };
        bare.terminal.wait_for_text("manual mode on", SOON);
        bare
    }

    /// Types a prompt and waits until it has been sent to the service.
    #[track_caller]
    fn prompt(&self, text: &str) -> Value {
        let before = self.launch.api().main_calls().len();
        self.enter(text);
        let calls = self.launch.api().wait_for_calls(before + 1, SOON);
        assert!(calls.len() > before, "{}", self.terminal.screen_text());
        calls[before].clone()
    }

    #[track_caller]
    fn enter(&self, text: &str) {
        self.terminal.send(text);
        self.terminal.wait_for_text(text, SOON);
        self.terminal.send(key::ENTER);
    }

    #[track_caller]
    fn sees(&self, text: &str) {
        self.terminal
            .wait_for(|screen| on_one_line(screen).contains(text), SOON);
    }

    /// Presses a key in the open question until it has an effect: the client takes none in the first moments of a dialog.
    #[track_caller]
    fn choose(&self, key: &str, has_effect: impl Fn(&str) -> bool) {
        let seen = || has_effect(&on_one_line(&self.terminal.screen_text()));
        let press = || {
            self.terminal.send(key);
            poll::within(SOON / 40, seen)
        };
        poll::until_true(SOON, press, || self.terminal.screen_text());
    }

    /// The handoff of the session, once it says this: its file and its text.
    #[track_caller]
    fn handoff(&self, part: &str) -> (PathBuf, String) {
        let directory = place(self.launch.the_home()).join("handoffs");
        let written = || {
            let [file] = <[PathBuf; 1]>::try_from(walk(&directory)).ok()?;
            let text = fs::read_to_string(&file).ok()?;
            text.contains(part).then_some((file, text))
        };
        poll::until(SOON, written, || format!("no handoff says {part:?}"))
    }
}

/// What the client breaks into lines of its own, put together.
fn on_one_line(screen: &str) -> String {
    let words: Vec<_> = screen
        .split(|c: char| c.is_whitespace() || c == '│')
        .collect();
    words
        .into_iter()
        .filter(|word| !word.is_empty())
        .collect::<Vec<_>>()
        .join(" ")
}

const MODEL: &str = "claude-haiku-4-5";

const ASKED: &str = "Replace this conversation by its handoff";

/// The real client with the plugin in its place.
fn live() -> Launch {
    let launch = Launch::live();
    install(launch.the_home());
    launch
}

#[test]
#[ignore = "live: needs PITSTOP_CLAUDE"]
fn the_plugin_alone_shows_warns_hands_over_and_reboots_in_place() {
    let launch = live();
    launch
        .api()
        .report_usage([42_000, 130_000, 155_000, 156_000, 21_000]);
    launch.api().answer([
        Answer::text("A heron.\n\nDECISION: count herons | they are large"),
        Answer::text("An egret."),
        Answer::text("A crane."),
    ]);
    let bare = Bare::start(launch);
    bare.prompt("name the first bird");
    bare.sees("42k of 180k usable · 23 % · ok");
    bare.prompt("name the second bird");
    bare.sees("130k of 180k usable · 72 % · warn");
    bare.sees("past the warn line");
    bare.handoff("name the second bird");

    // At the compact line it asks, and a no changes nothing.
    bare.prompt("name the third bird");
    bare.sees(ASKED);
    bare.sees("155k of 180k usable · 86 % · compact");
    bare.choose(key::ENTER, |screen| !screen.contains(ASKED));
    let call = bare.prompt("name the fourth bird");
    assert!(
        user_texts(&call)
            .iter()
            .any(|one| one == "name the first bird")
    );
    bare.sees("156k of 180k usable");
    assert!(
        !on_one_line(&bare.terminal.screen_text()).contains(ASKED),
        "once a crossing"
    );

    // By its command it asks again; the handoff can be edited where it says.
    bare.enter("/pitstop:reboot");
    bare.sees(ASKED);
    bare.choose("3", |screen| {
        screen.contains("may be edited before you answer")
    });
    let (file, handoff) = bare.handoff("name the fourth bird");
    assert!(handoff.contains("count herons"), "{handoff}");
    let edited = handoff.trim_end().to_owned() + "\n\nThe ibis comes last.";
    fs::write(&file, &edited).unwrap();
    let before = bare.launch.api().main_calls().len();
    bare.choose("2", |screen| !screen.contains(ASKED));
    let calls = bare.launch.api().wait_for_calls(before + 1, SOON);
    let texts = user_texts(&calls[before]);
    assert_eq!(texts[0].trim_end(), edited, "{texts:?}");
    let last = texts.last().unwrap();
    assert!(
        last.starts_with("Carry on from the handoff above"),
        "{last}"
    );
    let whole = calls[before].to_string();
    assert!(
        !whole.contains(r#""role":"assistant""#),
        "the old conversation is gone"
    );
    assert!(
        whole.contains("# Environment"),
        "the client's reminders are there"
    );
    bare.sees("21k of 180k usable · 11 % · ok");
    assert_eq!(bare.launch.api().main_calls().len(), before + 1);

    // The client has written nothing into it, and nothing of it is left.
    let home = bare.launch.the_home().clone();
    let after = walk(&place(&home)).len();
    assert_eq!(after, 9, "{:?}", walk(&place(&home)));
    drop(bare);
    remove(&home);
    let left = walk(&home.path(""));
    let of_plugin = |path: &&PathBuf| path.to_string_lossy().contains("skills");
    assert_eq!(left.iter().find(of_plugin), None);
}

#[test]
#[ignore = "live: needs PITSTOP_CLAUDE"]
fn a_line_that_is_passed_within_a_turn_is_asked_about_at_its_end_and_never_over_a_text_that_is_typed()
 {
    for draft in ["", "half a thought"] {
        let launch = live();
        launch.api().report_usage([155_000]);
        let go = launch.project().join("go");
        let wait = format!("until [ -e {} ]; do sleep 0.05; done", go.display());
        let answers = [
            Answer::shell("true"),
            Answer::shell(&wait),
            Answer::text("Done."),
        ];
        launch.api().answer(answers);
        let bare = Bare::start(launch);
        bare.prompt("wait for it");
        bare.sees("past the compact");
        bare.terminal.send(draft);
        bare.sees(draft);
        assert!(!on_one_line(&bare.terminal.screen_text()).contains(ASKED));
        fs::write(go, "").unwrap();
        if draft.is_empty() {
            bare.sees(ASKED);
        } else {
            bare.sees("/pitstop:reboot offers a");
            let screen = on_one_line(&bare.terminal.screen_text());
            assert!(
                screen.contains(draft) && !screen.contains(ASKED),
                "{screen}"
            );
        }
    }
}

#[test]
#[ignore = "live: needs PITSTOP_CLAUDE"]
fn the_plugin_is_silent_where_pitstop_hosts_the_session() {
    for bridge in ["agent.bridge=true", "agent.bridge=false"] {
        let launch = live().set("reboot.mode=\"manual\"").set(bridge);
        let launch = launch.agent_args(["--model", MODEL]);
        launch.api().report_usage([155_000]);
        let supervisor = launch.start_idle();
        let state = if bridge.ends_with("true") {
            "in_force"
        } else {
            "absent"
        };
        supervisor.wait_for_status(|status| status["agent"]["bridge"]["state"] == state);
        supervisor.prompt("step one");
        supervisor.wait_for_status(|status| status["context"]["used"].as_u64() >= Some(155_000));
        supervisor.wait_for_state("idle", SOON);
        supervisor.prompt("step two");
        launch.api().wait_for_calls(2, SOON);
        supervisor.wait_for_state("idle", SOON);
        let screen = on_one_line(&supervisor.screen());
        assert!(
            !screen.contains(ASKED) && !screen.contains("░"),
            "{bridge}: {screen}"
        );
        let handoffs = place(launch.the_home()).join("handoffs");
        assert!(walk(&handoffs).is_empty(), "{bridge}");
    }
}

#[test]
#[ignore = "live: needs PITSTOP_CLAUDE"]
fn where_the_program_has_vanished_the_client_goes_on_and_it_is_said_once() {
    let launch = live();
    let file = place(launch.the_home()).join("hooks/place.js");
    let code = fs::read_to_string(&file)
        .unwrap()
        .replace(PITSTOP, "/no/such/pitstop");
    fs::write(&file, code).unwrap();
    let bare = Bare::start(launch);
    bare.prompt("step one");
    bare.sees("/no/such/pitstop: cannot be started");
    bare.prompt("step two");
    bare.prompt("step three");
    bare.sees("step three");
    let screen = bare.terminal.screen_text();
    assert_eq!(screen.matches("/no/such/pitstop").count(), 1, "{screen}");
    assert!(!screen.contains("░"), "{screen}");
    // What a person asks for is answered each time.
    bare.enter("/pitstop:reboot");
    let twice = |screen: &str| screen.matches("/no/such/pitstop").count() > 1;
    bare.terminal.wait_for(twice, SOON);
}

/// With managed settings the client passes over a mod's answers to compactions: the order must not become its own summary.
#[test]
#[ignore = "live: needs PITSTOP_CLAUDE and namespaces"]
fn where_the_client_passes_over_the_plugin_s_answer_the_conversation_stays() {
    let launch = live();
    let copy = launch.the_home().path("etc");
    fs::create_dir_all(copy.join("claude-code")).unwrap();
    let settings = json!({ "env": { "A": "b" } }).to_string();
    fs::write(copy.join("claude-code/managed-settings.json"), settings).unwrap();
    let script = format!(
        "#!/bin/sh\ncp -r /etc/. {0}/ 2>/dev/null; exec unshare -rm /bin/sh -c 'mount --bind {0} /etc && exec \"$0\" \"$@\"' {1} \"$@\"\n",
        copy.display(),
        live_client().display()
    );
    let client = launch.the_home().program("client.sh", &script);
    let bare = Bare::start_by(&client, launch);
    bare.prompt("name the first bird");
    bare.enter("/pitstop:reboot");
    bare.sees(ASKED);
    bare.choose("2", |screen| !screen.contains(ASKED));
    bare.sees("the conversation was not replaced");
    let call = bare.prompt("name the second bird");
    assert!(
        user_texts(&call)
            .iter()
            .any(|one| one == "name the first bird")
    );
    assert_eq!(bare.launch.api().main_calls().len(), 2, "no summary");
}

#[test]
#[ignore = "live: needs PITSTOP_CLAUDE"]
fn the_real_client_finds_nothing_wrong_with_the_plugin() {
    assert!(is_at_least(MODS_FROM), "this client runs no mods");
    let launch = live();
    let output = Command::new(live_client())
        .args(["plugin", "validate"])
        .arg(place(launch.the_home()))
        .env_clear()
        .envs(launch.environment())
        .output()
        .unwrap();
    let said = text(&output.stdout);
    assert!(output.status.success(), "{said}");
}

#[test]
#[ignore = "live: needs PITSTOP_CLAUDE"]
fn a_turn_that_begins_while_the_handoff_is_made_is_not_asked_over() {
    let launch = live();
    let made = launch.the_home().path("made");
    let slow = format!(
        "#!/bin/sh\n[ \"$2\" = handoff ] || exec {PITSTOP} \"$@\"\nsleep 2\n{PITSTOP} \"$@\"\ncode=$?\n\
         echo >>{}\nexit $code\n",
        made.display()
    );
    let slow = launch.the_home().program("slow.sh", &slow);
    let file = place(launch.the_home()).join("hooks/place.js");
    let code = fs::read_to_string(&file).unwrap();
    fs::write(&file, code.replace(PITSTOP, &slow.display().to_string())).unwrap();
    launch.api().report_usage([155_000]);
    let go = launch.project().join("go");
    let wait = format!("until [ -e {} ]; do sleep 0.05; done", go.display());
    launch.api().answer([
        Answer::text("A heron."),
        Answer::shell(&wait),
        Answer::text("Done."),
    ]);
    let bare = Bare::start(launch);
    bare.prompt("name the first bird");
    bare.sees("past the compact");
    bare.prompt("wait for it");
    // The handoff is made at the end of the first turn, and again for the question.
    let twice = || fs::read_to_string(&made).is_ok_and(|made| made.lines().count() > 1);
    poll::until_true(SOON, twice, || bare.terminal.screen_text());
    let asks = || on_one_line(&bare.terminal.screen_text()).contains(ASKED);
    assert!(!poll::within(SOON / 40, asks), "a turn runs");
    fs::write(go, "").unwrap();
    bare.sees(ASKED);
}

#[test]
fn a_plugin_with_other_files_beside_it_is_removed_once_they_are_elsewhere() {
    let home = Home::new().unwrap();
    install(&home);
    fs::write(place(&home).join("notes.md"), "mine").unwrap();
    let directory = place(&home).display().to_string();
    let output = pitstop(&home, &["plugin", "remove", &directory], "");
    let said = text(&output.stderr);
    assert!(
        said.contains("notes.md") && said.contains("move them elsewhere"),
        "{said}"
    );
    fs::remove_file(place(&home).join("notes.md")).unwrap();
    remove(&home);
}
