//! The reboot, from the key to the proof that the handoff has arrived: on the demo and on the real client.

use std::{
    fs,
    path::PathBuf,
    time::{Duration, Instant},
};

use pitstop_base::clean;
use rustix::process::Signal;
use serde_json::{Value, json};
use uuid::Uuid;

use crate::kit::{
    client::{ASKS_FIRST, live_client},
    messages_api::{Answer, user_texts},
    shape::Shape,
    supervisor::{Launch, SOON, Supervisor, group_members, key, session_of},
};

/// Notes with something to go on with, so that the handoff has no remarks.
const NOTES: &str = "# Scratchpad\n\n## Current Understanding\nfeeds are parsed\n\n## Current Plan\n- [x] parse\n- [ ] write the store\n";

fn demo() -> Launch {
    Launch::manual_demo(NOTES)
}

/// A demo whose person has this shell script for an editor.
fn edited_by(script: &str) -> Launch {
    let launch = demo();
    let text = format!("#!/bin/sh\n{script}\n");
    let editor = launch.the_home().program("editor", &text);
    launch.env("EDITOR", editor)
}

fn live() -> Launch {
    Launch::live()
        .set("reboot.mode=\"manual\"")
        .agent_args(["--model", "claude-sonnet-4-5"])
        .notes(NOTES)
}

/// Starts and takes the first turn.
#[track_caller]
fn started(launch: &Launch) -> Supervisor {
    let supervisor = launch.start_idle();
    take_a_turn(&supervisor, "begin the work");
    supervisor
}

/// Types a prompt and waits until its turn is over and counted.
#[track_caller]
fn take_a_turn(supervisor: &Supervisor, prompt: &str) {
    let before = supervisor.history();
    let output = |history: &Value| {
        let iterations = history["iterations"].as_array().unwrap();
        iterations.last().unwrap()["tokens"]["output"]
            .as_u64()
            .unwrap_or(0)
    };
    let before = output(&before);
    supervisor.prompt(prompt);
    supervisor.wait_until("the turn is counted", || {
        output(&supervisor.history()) > before
    });
    supervisor.wait_for_state("idle", SOON);
}

/// The text of the first prompt that the agent of the session got: what the API was sent, or for the
/// demo, which calls no API, what it recorded.
fn first_prompt(supervisor: &Supervisor, session: &str) -> Option<String> {
    if supervisor.launch.has_api() {
        let calls = supervisor.launch.api().main_calls();
        let call = calls
            .iter()
            .find(|call| call["metadata"]["user_id"].to_string().contains(session))?;
        return user_texts(call).into_iter().next();
    }
    let name = format!("{session}.jsonl");
    let transcript = transcripts(supervisor)
        .into_iter()
        .find(|path| path.ends_with(&name))?;
    let lines = fs::read_to_string(transcript).ok()?;
    let record = lines
        .lines()
        .filter_map(|line| serde_json::from_str::<Value>(line).ok())
        .find(|record| record["type"] == "user")?;
    let content = &record["message"]["content"];
    let text = content.as_str().or_else(|| content[0]["text"].as_str());
    text.map(str::to_owned)
}

fn transcripts(supervisor: &Supervisor) -> Vec<PathBuf> {
    let home = supervisor.launch.the_home();
    let demo = home.path("state/pitstop/demo/projects");
    let projects = fs::read_dir(demo).into_iter().flatten().flatten();
    let mut found = home.transcripts();
    found.extend(
        projects
            .flat_map(|dir| fs::read_dir(dir.path()).into_iter().flatten().flatten())
            .map(|file| file.path()),
    );
    found
}

#[track_caller]
fn arrived(supervisor: &Supervisor, session: &str) -> String {
    supervisor.wait_until("the first prompt of the new session", || {
        first_prompt(supervisor, session).is_some()
    });
    first_prompt(supervisor, session).unwrap()
}

/// Opens the review, approves it, waits for the next iteration; gives what was shown and what arrived.
#[track_caller]
pub(crate) fn reboot(supervisor: &Supervisor) -> (String, String) {
    let next = supervisor.status()["iteration"].as_u64().unwrap() + 1;
    supervisor.review();
    supervisor.wait_for_text("review the handoff", SOON);
    let shown = supervisor.handoff_text();
    supervisor.keys([key::ENTER]);
    let status = supervisor.wait_for_iteration(next, SOON * 2);
    let got = arrived(supervisor, &session_of(&status));
    (shown, got)
}

/// What a human rules in a first prompt of one line, and at the end of a long one.
const RULES: [&str; 3] = [
    "Never delete a file below ~/feeds.",
    "We use SQLite because two write.",
    "Only ever talk to the staging server, the other one is live.",
];

/// A prompt of 900 bytes whose last sentence rules.
fn long_prompt() -> String {
    let mut text = "A word on the feeds.".to_owned();
    for number in 1.. {
        let sentence = format!(" Feed {number} of the list has dates of its own kind.");
        if text.len() + sentence.len() + 1 + RULES[2].len() > 900 {
            break;
        }
        text.push_str(&sentence);
    }
    let gap = " ".repeat(900 - text.len() - RULES[2].len());
    text + &gap + RULES[2]
}

/// Rules that the human gave once stand in the message of each of three reboots, and in what the last session is asked.
fn rules_stand_through_three_reboots(launch: &Launch) {
    let supervisor = launch.start_idle();
    take_a_turn(&supervisor, &RULES[..2].join(" "));
    let long = long_prompt();
    assert_eq!(long.len(), 900);
    let output = |supervisor: &Supervisor| {
        let history = supervisor.history();
        history["iterations"][0]["tokens"]["output"].as_u64()
    };
    let before = output(&supervisor);
    supervisor.keys([long.as_str()]);
    supervisor.wait_until("the long prompt is in the box", || {
        let screen = supervisor.screen();
        screen.contains("one is live.") || screen.contains("[Pasted text")
    });
    supervisor.keys([key::ENTER]);
    supervisor.wait_until("its turn is counted", || output(&supervisor) > before);
    supervisor.wait_for_state("idle", SOON);
    for round in 1..=3 {
        let (shown, got) = reboot(&supervisor);
        supervisor.wait_for_state("idle", SOON);
        assert_eq!(got, shown);
        for rule in RULES {
            assert!(got.contains(rule), "reboot {round}, {rule}: {got}");
        }
        take_a_turn(&supervisor, &format!("go on with part {round}"));
    }
    if launch.has_api() {
        let session = session_of(&supervisor.status());
        let calls = launch.api().main_calls();
        let of_last = |call: &&Value| call["metadata"]["user_id"].to_string().contains(&session);
        let last = calls
            .iter()
            .rfind(of_last)
            .expect("a call of the last session");
        let said = user_texts(last).join("\n");
        for rule in RULES {
            assert!(said.contains(rule), "{rule}");
        }
    }
}

#[test]
fn rules_stand_through_three_reboots_of_the_demo() {
    rules_stand_through_three_reboots(&demo());
}

fn iteration(history: &Value, number: usize) -> Value {
    history["iterations"][number - 1].clone()
}

/// From the approval to the proof, by the record.
fn transition(history: &Value, number: usize) -> Duration {
    let steps = iteration(history, number)["transition_time_ms"].clone();
    let steps = steps.as_object().expect("steps");
    eprintln!("transition of iteration {number}: {steps:?}");
    Duration::from_millis(steps.values().filter_map(Value::as_u64).sum())
}

/// A key, a look, Enter: a new session has the message that was looked at. Gives the time it took.
fn a_reboot_hands_over(launch: &Launch) -> Duration {
    let supervisor = started(launch);
    let before = supervisor.status();
    let old_group = supervisor.agent_pid();
    let (shown, got) = reboot(&supervisor);
    let after = supervisor.status();
    assert_eq!(got, shown);
    assert!(
        got.contains("- [ ] write the store") || got.contains("write the store"),
        "{got}"
    );
    assert_ne!(session_of(&before), session_of(&after));
    assert!(group_members(old_group).is_empty());
    assert_ne!(supervisor.agent_pid(), old_group);
    supervisor.wait_for_state("idle", SOON);
    supervisor.wait_until("the new iteration's tokens", || {
        iteration(&supervisor.history(), 2)["tokens"]["at_end"].is_u64()
    });

    let history = supervisor.history();
    let (first, second) = (iteration(&history, 1), iteration(&history, 2));
    assert_eq!(first["end_reason"], "user_reboot", "{history:#}");
    assert_eq!(first["session_id"], before["session_id"]);
    assert!(first["tokens"]["at_end"].as_u64() > Some(0), "{history:#}");
    assert!(first["tokens"]["output"].as_u64() > Some(0), "{history:#}");
    assert_eq!(second["cause"], "key");
    assert_eq!(second["session_id"], after["session_id"]);
    assert_eq!(second["previous_session_id"], before["session_id"]);
    assert_eq!(second["handoff_bytes"], shown.len());
    assert_eq!(history["iterations"].as_array().unwrap().len(), 2);
    for step in ["ending", "starting", "verifying"] {
        assert!(second["transition_time_ms"][step].is_u64(), "{step}");
    }
    // It is kept beside the iteration too.
    let run = after["run_id"].as_str().unwrap();
    let kept = format!(".pitstop/runs/{run}/iteration-2/handoff.md");
    assert_eq!(
        fs::read_to_string(launch.project().join(kept)).unwrap(),
        shown
    );
    transition(&history, 2)
}

#[test]
fn a_reboot_of_the_demo_hands_over_what_was_shown() {
    let took = a_reboot_hands_over(&demo());
    eprintln!("from the approval to the proof: {took:?}");
}

#[test]
#[ignore = "live: needs PITSTOP_CLAUDE"]
fn a_reboot_of_the_real_client_hands_over_what_was_shown() {
    let launch = live();
    let own = plain_start(&launch);
    let took = a_reboot_hands_over(&launch);
    eprintln!("from the approval to the proof: {took:?}; the client's own start: {own:?}");
}

/// The mode that a person chose behind the last turn, which no hook has reported, is the one of the next session.
#[test]
#[ignore = "live: needs PITSTOP_CLAUDE"]
fn a_fresh_session_of_the_real_client_begins_in_the_mode_of_the_one_before() {
    let supervisor = started(&live());
    for mode in ["accept edits on", "plan mode on"] {
        // The next one in the client's order.
        supervisor.keys(["\u{1b}[Z"]);
        supervisor.wait_for_text(mode, SOON);
        reboot(&supervisor);
        supervisor.wait_for_state("idle", SOON);
        supervisor.wait_for_text(mode, SOON);
    }
    // Whoever goes back finds the session as they have left it, and not as it was started.
    supervisor.keys(["\u{1b}[Z"]);
    supervisor.wait_for_text("manual mode on", SOON);
    supervisor.keys([key::PREFIX, "u"]);
    supervisor.wait_for_status(|status| status["iteration"] == 4);
    supervisor.wait_for_text("plan mode on", SOON);
}

/// A model that a person chooses in the client is the one of the next session, whatever the first one was started with, and so is the
/// name that they give the session.
#[test]
#[ignore = "live: needs PITSTOP_CLAUDE"]
fn a_fresh_session_of_the_real_client_has_the_model_and_the_name_that_were_chosen() {
    let supervisor = started(&live());
    supervisor.prompt("/rename --移行 of the importer");
    supervisor.wait_for_text("renamed", SOON);
    supervisor.prompt("/model claude-haiku-4-5");
    supervisor.wait_for_text("Switch model?", SOON);
    supervisor.keys(["\r"]);
    supervisor.wait_for_text("Set model to", SOON);
    reboot(&supervisor);
    supervisor.wait_for_text("iteration 2 · Haiku 4.5", SOON);
    let title = "“✳ --移行 of the importer”";
    supervisor.wait_for_text(title, SOON);
}

/// What a session was started with would outweigh what a person has chosen in it, also where they leave and come back.
#[test]
#[ignore = "live: needs PITSTOP_CLAUDE"]
fn whoever_comes_back_to_the_real_client_finds_the_mode_and_the_name_that_they_chose() {
    let launch = Launch::live_without_mode().size(200, 50);
    let args = ["--permission-mode", *ASKS_FIRST, "-n", "the first name"];
    let supervisor = started(&launch.clone().agent_args(args));
    supervisor.prompt("/rename 移行 of it");
    supervisor.wait_for_text("renamed", SOON);
    supervisor.keys(["\u{1b}[Z"]);
    supervisor.wait_for_text("accept edits on", SOON);
    supervisor.quit();
    let printed = String::from_utf8_lossy(&supervisor.terminal.output()).into_owned();
    let chosen = "pitstop -- --permission-mode acceptEdits '--name=移行 of it' --resume ";
    assert!(printed.contains(chosen), "{printed}");
    let supervisor = launch.asking().start_showing("Enter resume");
    supervisor.keys([key::ENTER]);
    for text in ["“✳ 移行 of it”", "accept edits on"] {
        supervisor.wait_for_text(text, SOON);
    }
}

/// The client ends a goal with its process: it is set again behind the first turn of the next one.
#[test]
#[ignore = "live: needs PITSTOP_CLAUDE"]
fn a_goal_that_a_person_has_set_in_the_real_client_is_set_again_in_a_fresh_session() {
    let supervisor = started(&live());
    supervisor.turn("/goal すべてのテスト pass", "/goal active");
    reboot(&supervisor);
    supervisor.wait_for_text("Goal set: すべてのテスト pass", SOON);
}

/// All hooks of a prompt run side by side, so that ours reports what another one refuses. The agent has not been given it.
#[test]
#[ignore = "live: needs PITSTOP_CLAUDE"]
fn what_a_hook_of_the_users_refuses_in_the_real_client_has_not_arrived() {
    let launch = live();
    let gate = "in=$(cat); case $in in *シマウマ*|*'pitstop handoff'*) echo 'no ticket' >&2; exit 2;; esac";
    let hook = json!([{ "hooks": [{ "type": "command", "command": gate }] }]);
    let settings = json!({ "hooks": { "UserPromptSubmit": hook } });
    let file = launch.the_home().claude_dir().join("settings.json");
    fs::write(file, settings.to_string()).expect("written");
    let supervisor = started(&launch);
    supervisor.keys(["use the シマウマ key", key::ENTER]);
    supervisor.wait_for_text("no ticket", SOON);
    let is_said = || supervisor.handoff_text().contains("シマウマ");
    supervisor.wait_until("it is not said", || !is_said());
    // The client has put it back.
    supervisor.keys(["\u{3}"]);
    let before = session_of(&supervisor.status());
    supervisor.review();
    supervisor.keys([key::ENTER]);
    supervisor.wait_for_text("a hook has refused the handoff", SOON);
    supervisor.wait_for_iteration(3, SOON);
    supervisor.wait_for_state("idle", SOON);
    assert_eq!(session_of(&supervisor.status()), before);
    assert_eq!(said_to(&supervisor), ["begin the work"]);
}

/// How long the client itself takes from its start to `UserPromptSubmit`, without us.
fn plain_start(launch: &Launch) -> Duration {
    let home = launch.the_home();
    let mark = home.path(&format!("submitted-{}", Uuid::new_v4()));
    let command = format!("cat >/dev/null; touch {}", mark.display());
    let settings = json!({ "hooks": { "UserPromptSubmit": [
        { "hooks": [{ "type": "command", "command": command }] }
    ] } });
    let settings = settings.to_string();
    let args = ["--settings", &settings, "hello"];
    let began = Instant::now();
    let client = launch.terminal(live_client(), args, (100, 40));
    while !mark.exists() {
        assert!(began.elapsed() < SOON, "{}", client.screen_text());
        std::thread::park_timeout(Duration::from_millis(2));
    }
    let took = began.elapsed();
    client.signal(Signal::INT);
    client.wait_for_exit(SOON);
    took
}

/// What is typed into the scratchpad panel is on disk and in the message that arrives.
fn an_edit_of_the_notes_arrives(launch: &Launch) {
    let supervisor = started(launch);
    supervisor.keys([
        key::F3,
        "e",
        key::CTRL_END,
        "\r",
        "- [ ] typed by hand: naïve 日本 🎯",
        key::ESC,
    ]);
    supervisor.wait_until("the line is on disk", || {
        supervisor
            .notes()
            .contains("- [ ] typed by hand: naïve 日本 🎯")
    });
    let (shown, got) = reboot(&supervisor);
    assert_eq!(got, shown);
    assert!(got.contains("typed by hand: naïve 日本 🎯"), "{got}");
}

#[test]
fn an_edit_of_the_notes_arrives_at_the_demo() {
    an_edit_of_the_notes_arrives(&demo());
}

/// What is changed in the review is what arrives.
fn an_edit_in_the_review_arrives(launch: &Launch) {
    let supervisor = started(launch);
    supervisor.review();
    supervisor.keys(["e", key::CTRL_END, "\r", "and mind the café", key::ESC]);
    supervisor.wait_for_handoff("and mind the café");
    let shown = supervisor.handoff_text();
    supervisor.keys([key::ENTER]);
    let status = supervisor.wait_for_iteration(2, SOON);
    assert_eq!(arrived(&supervisor, &session_of(&status)), shown);
    // The next message is drafted again, and lists what was written as the human's words.
    supervisor.wait_for_handoff(": and mind the café");
}

#[test]
fn an_edit_in_the_review_arrives_at_the_demo() {
    an_edit_in_the_review_arrives(&demo());
}

#[test]
fn the_notes_go_through_the_user_s_own_editor_and_back() {
    let script = "printf 'EDITOR %s\\n' \"$#\"\nprintf -- '- [ ] from the editor\\n' >>\"$1\"";
    let supervisor = started(&edited_by(script));
    supervisor.keys([key::PREFIX, "E"]);
    supervisor.wait_until("the editor's line is on disk", || {
        supervisor.notes().ends_with("- [ ] from the editor\n")
    });
    assert!(supervisor.notes().starts_with(NOTES));
    supervisor.wait_for_text("from the editor", SOON);
    let (shown, got) = reboot(&supervisor);
    assert_eq!(got, shown);
    assert!(got.contains("from the editor"));
    // The terminal is asked nothing whose answer only the blocked loop could read.
    let output = supervisor.terminal.output();
    assert!(!output.windows(4).any(|bytes| bytes == b"\x1b[6n"));
}

#[test]
fn what_happens_while_the_editor_is_open_is_not_lost() {
    let script = "echo EDITING\nuntil [ -e \"$HOME/done\" ]; do sleep 0.05; done\n\
         echo '- [ ] mine' >>\"$1\"";
    let launch = edited_by(script).env("PITSTOP_DEMO_PACE_MS", "400");
    let supervisor = launch.start_idle();
    supervisor.prompt("take your time");
    supervisor.wait_for_state("busy", SOON);
    supervisor.keys([key::PREFIX, "E"]);
    supervisor.wait_for_text("EDITING", SOON);
    supervisor.wait_until("the turn has ended", || {
        let said = |path: &PathBuf| fs::read_to_string(path).unwrap_or_default();
        transcripts(&supervisor)
            .iter()
            .any(|path| said(path).contains("Understood."))
    });
    // Hooks and doors do not wait for the editor, nor does what the agent writes.
    supervisor.wait_for_state("idle", SOON);
    let (code, reported) = supervisor.ctl("save");
    assert_eq!(code, 0, "{reported}");
    let notes = supervisor.notes();
    fs::write(supervisor.launch.scratchpad(), format!("theirs\n\n{notes}")).unwrap();
    supervisor.wait_for_handoff("theirs");
    // What is typed for the editor is not typed into the agent's prompt.
    supervisor.keys(["for the editor"]);
    fs::write(supervisor.launch.the_home().path("done"), "").unwrap();
    supervisor.wait_for_text("Understood.", SOON);
    supervisor.wait_until("both edits are on disk", || {
        supervisor.notes() == format!("theirs\n\n{notes}- [ ] mine\n")
    });
}

#[test]
fn an_editor_that_hangs_does_not_keep_the_supervisor() {
    let script = "echo $$ >\"$HOME/editor.pid\"\necho EDITING\nwhile :; do sleep 1; done";
    let supervisor = started(&edited_by(script));
    supervisor.keys([key::PREFIX, "E"]);
    supervisor.wait_for_text("EDITING", SOON);
    let pid = fs::read_to_string(supervisor.launch.the_home().path("editor.pid")).unwrap();
    let (code, reported) = supervisor.ctl("stop");
    assert_eq!(code, 0, "{reported}");
    supervisor.wait_for_exit(SOON);
    let alive = PathBuf::from("/proc").join(pid.trim()).exists();
    assert!(!alive, "the editor has been ended, too");
}

#[test]
fn the_handoff_goes_through_the_user_s_own_editor_and_back() {
    let supervisor = started(&edited_by("printf 'from the editor\\n' >>\"$1\""));
    supervisor.review();
    supervisor.keys([key::PREFIX, "E"]);
    supervisor.wait_for_handoff("from the editor");
    let shown = supervisor.handoff_text();
    supervisor.keys([key::ENTER]);
    let status = supervisor.wait_for_iteration(2, SOON);
    assert_eq!(arrived(&supervisor, &session_of(&status)), shown);
}

#[test]
fn an_editor_that_fails_changes_nothing() {
    let launch = demo().env("EDITOR", "/nowhere/no-editor");
    let supervisor = started(&launch);
    supervisor.keys([key::PREFIX, "E"]);
    supervisor.wait_for_log("the editor failed", SOON);
    assert_eq!(supervisor.notes(), NOTES);
    take_a_turn(&supervisor, "go on");
}

#[test]
fn what_an_editor_has_saved_before_it_is_killed_counts() {
    let script = "printf -- '- [ ] saved before the end\\n' >>\"$1\"\nkill -9 $$";
    let supervisor = started(&edited_by(script));
    supervisor.keys([key::PREFIX, "E"]);
    supervisor.wait_for_notes("- [ ] saved before the end");
}

#[test]
fn what_an_editor_that_dies_leaves_of_its_settings_is_gone_at_the_end() {
    for settings in ["raw -echo", "-icanon -echo", "-isig -opost"] {
        let script = format!("stty {settings}\nkill -9 $$");
        let supervisor = started(&edited_by(&script));
        supervisor.keys([key::PREFIX, "E"]);
        supervisor.wait_for_log("the editor failed", SOON);
        supervisor.quit();
        supervisor.wait_for_exit(SOON);
        assert!(supervisor.terminal.has_its_settings_back(), "{settings}");
    }
}

#[test]
fn what_the_agent_writes_into_the_notes_is_on_the_screen_within_a_second() {
    let supervisor = started(&demo());
    for (round, word) in ["heron", "plover", "avocet"].into_iter().enumerate() {
        let text = format!("{NOTES}- [ ] count the {word}\n");
        let file = supervisor.launch.scratchpad();
        // In place, as an editor does, and by a new file, as the client does.
        let began = Instant::now();
        if round % 2 == 0 {
            fs::write(&file, text).unwrap();
        } else {
            let aside = file.with_extension("new");
            fs::write(&aside, text).unwrap();
            fs::rename(aside, &file).unwrap();
        }
        let needle = format!("count the {word}");
        supervisor.wait_for_text(&needle, SOON);
        let took = began.elapsed();
        eprintln!("on the screen after {took:?}");
        assert!(took < Duration::from_secs(1), "{took:?}");
        assert!(supervisor.handoff_text().contains(&needle));
    }
}

#[test]
fn what_the_agent_writes_while_the_human_edits_is_merged() {
    let supervisor = started(&demo());
    supervisor.keys([key::F3, "e", key::CTRL_END, "\r", "- [ ] mine"]);
    supervisor.wait_for_notes("- [ ] mine");
    supervisor.keys([" and more"]);
    let theirs = supervisor
        .notes()
        .replace("feeds are parsed", "feeds are parsed and stored");
    fs::write(supervisor.launch.scratchpad(), theirs).unwrap();
    supervisor.wait_for_text("parsed and stored", SOON);
    supervisor.keys([key::ESC]);
    supervisor.wait_until("both edits are on disk", || {
        let notes = supervisor.notes();
        notes.contains("- [ ] mine and more") && notes.contains("parsed and stored")
    });
}

#[test]
fn of_contradicting_edits_none_is_lost() {
    let supervisor = started(&demo());
    supervisor.keys([key::F3, "e", key::CTRL_END, "X"]);
    let theirs = NOTES.replace("write the store", "write the cache");
    supervisor.keys(["YZ mine"]);
    fs::write(supervisor.launch.scratchpad(), &theirs).unwrap();
    supervisor.keys([key::ESC]);
    let all = || {
        let aside = supervisor
            .launch
            .project()
            .join(".pitstop/scratchpad.agent.md");
        supervisor.notes() + &fs::read_to_string(aside).unwrap_or_default()
    };
    supervisor.wait_until("both versions are kept", || {
        all().contains("XYZ mine") && all().contains("write the cache")
    });
}

/// A message of 50 KB and more with everything that has broken such deliveries.
fn large_notes() -> String {
    let mut notes =
        String::from("# Scratchpad\n\n## Current Plan\n- [ ] go on\n\n## Current Understanding\n");
    notes.extend((0..1500).map(|line| {
        let piece = match line % 6 {
            0 => "emoji 🦀👩‍👩‍👧 and \"quotes\" 'single' `tick`",
            1 => "漢字かな交じり文 한국어 中文",
            2 => "\ttab\tand \\ backslash $HOME $(id) %s",
            3 => "paste end \x1b[201~ and start \x1b[200~ here",
            4 => "bell \x07 nul-like \x01 delete \x7f csi \u{9b}31m",
            _ => "ñandú naïve e\u{301} — “curly” …",
        };
        format!("{line:04} {piece}\n")
    }));
    assert!(notes.len() > 50_000, "{}", notes.len());
    notes
}

/// Arrives exact: the control characters that could end a paste are gone, and only those.
fn a_large_message_arrives_exact(launch: Launch, typed: bool) {
    let mut notes = large_notes();
    if typed {
        // The client's prompt box turns tabs into blanks and composes accents.
        notes = clean::composed(&notes.replace('\t', "  "));
    }
    let launch = launch.notes(&notes).set("handoff.max_state_size=200000");
    let supervisor = started(&launch);
    let (shown, got) = reboot(&supervisor);
    let differs = shown
        .lines()
        .zip(got.lines())
        .find(|(shown, got)| shown != got);
    assert!(
        got == shown,
        "{} bytes shown, {} arrived; the first line that differs: {differs:?}",
        shown.len(),
        got.len()
    );
    eprintln!("{} bytes arrived", got.len());
    assert!(got.len() > 50_000);
    assert!(
        !got.chars()
            .any(|c| c.is_control() && c != '\n' && c != '\t')
    );
    let kept = |line: &str| -> String {
        line.chars()
            .filter(|c| !c.is_control() || *c == '\t')
            .collect()
    };
    let mut lines = got.lines();
    for line in notes
        .lines()
        .filter(|line| line.starts_with(|c: char| c.is_ascii_digit()))
    {
        // A mark that ends a paste goes whole, of others its control character.
        let wanted = kept(&line.replace("\x1b[201~", ""));
        assert!(lines.any(|found| found == wanted), "lost: {line:?}");
    }
    assert!(!supervisor.screen().contains("arrived changed"));
}

#[test]
fn a_large_message_arrives_exact_at_the_demo() {
    a_large_message_arrives_exact(demo(), false);
}

#[test]
#[ignore = "live: needs PITSTOP_CLAUDE"]
fn a_large_message_arrives_exact_at_the_real_client() {
    a_large_message_arrives_exact(live(), false);
}

#[test]
fn a_large_message_arrives_exact_at_the_demo_by_paste() {
    a_large_message_arrives_exact(demo().set("reboot.delivery=\"paste\""), true);
}

#[test]
#[ignore = "live: needs PITSTOP_CLAUDE"]
fn a_large_message_arrives_exact_at_the_real_client_by_paste() {
    a_large_message_arrives_exact(live().set("reboot.delivery=\"paste\""), true);
}

/// A pasted message is delivered, submitted and proven like one at the start.
fn a_pasted_message_arrives(launch: Launch) {
    let took = a_reboot_hands_over(&launch.set("reboot.delivery=\"paste\""));
    eprintln!("from the approval to the proof, pasted: {took:?}");
}

#[test]
fn a_pasted_message_arrives_at_the_demo() {
    a_pasted_message_arrives(demo());
}

#[test]
#[ignore = "live: needs PITSTOP_CLAUDE"]
fn a_message_that_arrives_changed_is_reported() {
    // What the bridge fills in arrives as it is; of a typed tab the client makes four blanks.
    let launch = live()
        .set("agent.bridge=false")
        .set("reboot.delivery=\"paste\"")
        .notes(&format!("{NOTES}\n- [ ] a\ttab\n"));
    let supervisor = started(&launch);
    let (shown, got) = reboot(&supervisor);
    assert_eq!(got, shown.replace('\t', "    "));
    supervisor.wait_for_log("the handoff arrived changed", SOON);
}

/// A demo or client whose window is full after its first turn; the client's has 24 calls of tools, of which the last one passes the line.
fn full(launch: Launch) -> Launch {
    let launch = launch.set("reboot.typing_quiet=\"300ms\"");
    if launch.has_api() {
        return launch.playing(&Shape::long_turn(24, 20_000, 155_000));
    }
    launch.env("PITSTOP_DEMO_USAGE", "155000")
}

fn demo_that(mode: &str) -> Launch {
    full(demo().set(&format!("reboot.mode=\"{mode}\"")))
}

fn live_that(mode: &str) -> Launch {
    full(live().set(&format!("reboot.mode=\"{mode}\"")))
}

/// In `ask` mode a banner and a call ask for a review, and nothing happens without a word: keys go to the agent.
fn a_full_window_asks(launch: &Launch) {
    let supervisor = started(launch);
    let status = supervisor.wait_for_phase("review", SOON);
    assert_eq!(status["reboot"]["reason"], "threshold");
    assert_eq!(status["context"]["level"], "overflow");
    let agent = supervisor.agent_pid();
    let screen = supervisor.wait_for_text("Reboot advised: context 86 % full · F5", SOON);
    assert!(!screen.contains("review the handoff"), "{screen}");
    let called = || {
        supervisor.terminal.output().ends_with(b"\x07") || {
            let output = supervisor.terminal.output();
            output
                .windows(4)
                .any(|bytes| bytes == b"\x1b]9;" || bytes == b"\x1b]77")
        }
    };
    supervisor.wait_until("a person is called", called);
    supervisor.keys(["and day by day"]);
    supervisor.wait_for_text("and day by day", SOON);
    let status = supervisor.status();
    assert_eq!(status["reboot"]["phase"], "review", "{status:#}");
    supervisor.keys([key::CTRL_U]);
    supervisor.keys([key::F5]);
    supervisor.wait_for_text("review the handoff", SOON);
    supervisor.keys([key::ESC]);
    supervisor.wait_for_phase("idle", SOON);
    supervisor.wait_for_text("Not now · asked again after the next turn", SOON);
    // The window is as full after the next turn.
    supervisor.prompt("carry on then");
    let status = supervisor.wait_for_phase("review", SOON);
    assert_eq!(status["iteration"], 1);
    assert_eq!(supervisor.agent_pid(), agent);
    // A person may still ask for it.
    let (shown, got) = reboot(&supervisor);
    assert_eq!(got, shown);
}

#[test]
fn a_full_window_of_the_demo_asks() {
    a_full_window_asks(&demo_that("ask"));
}

#[test]
fn a_deferred_reboot_asks_again_after_three_turns() {
    let supervisor = started(&demo_that("ask"));
    supervisor.wait_for_phase("review", SOON);
    supervisor.keys([key::PREFIX, "D"]);
    supervisor.wait_for_phase("idle", SOON);
    take_a_turn(&supervisor, "the second turn");
    take_a_turn(&supervisor, "the third turn");
    assert_eq!(supervisor.status()["reboot"]["phase"], "idle");
    supervisor.prompt("the fourth turn");
    supervisor.wait_for_phase("review", SOON);
    assert_eq!(supervisor.status()["iteration"], 1);
}

/// In `auto` mode it goes ahead by itself.
fn a_full_window_reboots_by_itself(launch: Launch) {
    let launch = launch.set("reboot.auto_delay=\"300ms\"");
    let supervisor = started(&launch);
    let status = supervisor.wait_for_iteration(2, SOON * 2);
    let history = supervisor.history();
    assert_ne!(
        iteration(&history, 1)["session_id"],
        session_of(&status).as_str()
    );
    assert_eq!(iteration(&history, 1)["end_reason"], "context_limit");
    assert_eq!(iteration(&history, 2)["cause"], "threshold");
    let got = arrived(&supervisor, &session_of(&status));
    assert!(got.contains("write the store"), "{got}");
}

#[test]
fn a_full_window_of_the_demo_reboots_by_itself() {
    a_full_window_reboots_by_itself(demo_that("auto"));
}

#[test]
#[ignore = "live: needs PITSTOP_CLAUDE"]
fn a_full_window_of_the_real_client_reboots_by_itself() {
    a_full_window_reboots_by_itself(live_that("auto"));
}

#[test]
fn a_conversation_that_is_cleared_in_the_demo_is_not_rebooted_any_more() {
    cleared_while_announced(demo_that("auto"));
}

#[test]
#[ignore = "live: needs PITSTOP_CLAUDE"]
fn a_conversation_that_is_cleared_in_the_real_client_is_not_rebooted_any_more() {
    cleared_while_announced(live_that("auto"));
}

/// What was full is gone with the conversation.
fn cleared_while_announced(launch: Launch) {
    // Long enough for a busy machine to take the command before it is over.
    let delay = Duration::from_secs(12);
    let supervisor = started(&launch.set(&format!("reboot.auto_delay=\"{}s\"", delay.as_secs())));
    let status = supervisor.wait_for_phase("review", SOON);
    let (old, agent) = (session_of(&status), supervisor.agent_pid());
    supervisor.wait_for_text("Rebooting in", SOON);
    supervisor.prompt("/clear");
    let status = supervisor
        .wait_for_status(|status| status["reboot"]["phase"] == "idle" && session_of(status) != old);
    let cleared = (session_of(&status), Instant::now());
    supervisor.wait_until("its time is over", || cleared.1.elapsed() > delay);
    let status = supervisor.status();
    assert_eq!(status["reboot"]["phase"], "idle", "{status:#}");
    assert_eq!(
        (&status["iteration"], session_of(&status)),
        (&json!(1), cleared.0)
    );
    assert_eq!(supervisor.agent_pid(), agent);
    assert!(!supervisor.screen().contains("Rebooting in"));
}

#[test]
fn a_review_that_a_person_opens_stops_an_automatic_reboot() {
    let supervisor = started(&demo_that("auto").set("reboot.auto_delay=\"2s\""));
    supervisor.wait_for_phase("review", SOON);
    let begun = Instant::now();
    supervisor.keys([key::F5]);
    supervisor.wait_for_text("review the handoff", SOON);
    // What is being edited is not sent half-way.
    supervisor.keys(["e", key::CTRL_END, "half a sen"]);
    supervisor.wait_for_text("half a sen", SOON);
    supervisor.wait_until("its time is over", || {
        begun.elapsed() > Duration::from_secs(3)
    });
    let status = supervisor.status();
    assert_eq!(status["reboot"]["phase"], "review");
    assert_eq!(status["iteration"], 1);
    supervisor.keys([key::ESC]);
    supervisor.keys([key::ESC]);
    supervisor.wait_for_phase("idle", SOON);
    assert_eq!(supervisor.status()["iteration"], 1);
    // It is not switched off: after the next turn it is announced again, and goes ahead.
    supervisor.prompt("carry on then");
    supervisor.wait_for_text("Rebooting in", SOON);
    supervisor.wait_for_iteration(2, SOON);
}

#[test]
fn manual_mode_only_shows() {
    let supervisor = started(&demo_that("manual"));
    take_a_turn(&supervisor, "and one more");
    let status = supervisor.status();
    assert_eq!(status["context"]["level"], "overflow");
    assert_eq!(status["reboot"]["phase"], "idle");
    assert_eq!(status["iteration"], 1);
}

/// Nothing is drafted while a person types, and what they type is not taken for a decision.
fn typing_holds_the_review_back(launch: Launch) {
    // Longer than the pause between two questions, each of which is a process, on a machine that is busy.
    let supervisor = launch.set("reboot.typing_quiet=\"6s\"").start_idle();
    supervisor.prompt("fill the window");
    let status = supervisor.wait_for_phase("armed", SOON);
    assert_eq!(status["reboot"]["reason"], "threshold");
    supervisor.wait_for_status(|status| {
        supervisor.keys(["w"]);
        status["reboot"]["phase"] == "armed" && status["reboot"]["blocked_by"] == json!(["typing"])
    });
    supervisor.keys(["in a draft"]);
    supervisor.wait_for_text("win a draft", SOON);
    supervisor.wait_for_phase("review", SOON);
    // All of it is still in the prompt, and the agent has not seen it.
    supervisor.wait_for_text("win a draft", SOON);
    assert_eq!(supervisor.status()["agent"]["state"], "idle");
    supervisor.keys([key::ENTER]);
    supervisor.wait_until("the draft is submitted", || {
        said_to(&supervisor)
            .iter()
            .any(|text| text.ends_with("win a draft"))
    });
}

/// Everything the user said in any session.
fn said_to(supervisor: &Supervisor) -> Vec<String> {
    let lines = transcripts(supervisor)
        .into_iter()
        .filter_map(|path| fs::read_to_string(path).ok());
    let lines: String = lines.collect();
    lines
        .lines()
        .filter_map(|line| serde_json::from_str::<Value>(line).ok())
        .filter(|record| record["type"] == "user")
        .filter_map(|record| record["message"]["content"].as_str().map(str::to_owned))
        .collect()
}

#[test]
fn typing_holds_the_review_of_the_demo_back() {
    typing_holds_the_review_back(demo_that("ask"));
}

/// While a turn runs it waits and says so; asked again, it interrupts.
fn a_running_turn_is_waited_for_then_interrupted(launch: &Launch) {
    let supervisor = launch.start_idle();
    supervisor.prompt("a long piece of work");
    supervisor.wait_for_state("busy", SOON);
    let group = supervisor.agent_pid();
    supervisor.review();
    supervisor.keys([key::ENTER]);
    let status = supervisor.wait_for_phase("waiting", SOON);
    assert_eq!(status["reboot"]["blocked_by"], json!(["turn"]));
    supervisor.terminal.wait_for(
        |screen| {
            screen.contains("Approved, waits for the turn to end")
                && screen.contains("F5 Enter now")
        },
        SOON,
    );
    supervisor.keys([key::F5]);
    supervisor.wait_for_text("review the handoff", SOON);
    supervisor.keys([key::ENTER]);
    let status = supervisor.wait_for_iteration(2, SOON * 2);
    assert!(group_members(group).is_empty());
    let got = arrived(&supervisor, &session_of(&status));
    assert!(got.contains("write the store"), "{got}");
    transition(&supervisor.history(), 2);
}

#[test]
fn a_running_turn_of_the_demo_is_waited_for_then_interrupted() {
    a_running_turn_is_waited_for_then_interrupted(&demo().env("PITSTOP_DEMO_PACE_MS", "60000"));
}

#[test]
#[ignore = "live: needs PITSTOP_CLAUDE"]
fn a_running_turn_of_the_real_client_is_waited_for_then_interrupted() {
    let launch = live();
    launch.api().answer([Answer::Stall]);
    a_running_turn_is_waited_for_then_interrupted(&launch);
}

#[test]
fn a_turn_that_ends_lets_the_reboot_go_on() {
    let supervisor = demo().env("PITSTOP_DEMO_PACE_MS", "1500").start_idle();
    supervisor.prompt("a short piece of work");
    supervisor.wait_for_state("busy", SOON);
    supervisor.review();
    supervisor.keys([key::ENTER]);
    supervisor.wait_for_iteration(2, SOON);
}

/// An agent that has gone can be had back with its session.
fn an_agent_that_went_is_resumed(launch: &Launch, reason: &str, end: impl Fn(&Supervisor)) {
    let supervisor = started(launch);
    let before = session_of(&supervisor.status());
    end(&supervisor);
    supervisor.wait_for_state("exited", SOON);
    supervisor.wait_for_text("Enter", SOON);
    supervisor.keys([key::ENTER]);
    let status = supervisor
        .wait_for_status(|status| status["iteration"] == 2 && status["agent"]["state"] == "idle");
    assert_eq!(session_of(&status), before);
    let history = supervisor.history();
    assert_eq!(iteration(&history, 1)["end_reason"], reason, "{history:#}");
    assert_eq!(iteration(&history, 2)["cause"], "agent_exit", "{history:#}");
    take_a_turn(&supervisor, "are you back");
    if supervisor.launch.has_api() {
        let calls = supervisor.launch.api().main_calls();
        let texts = user_texts(calls.last().unwrap());
        assert!(
            texts.iter().any(|text| text == "begin the work"),
            "{texts:?}"
        );
    }
}

fn by_exit(supervisor: &Supervisor) {
    supervisor.prompt("/exit");
}

fn by_a_crash(supervisor: &Supervisor) {
    let agent = supervisor.agent_pid();
    rustix::process::kill_process(agent, Signal::KILL).unwrap();
}

#[test]
fn a_demo_that_ended_is_resumed() {
    an_agent_that_went_is_resumed(&demo(), "natural", by_exit);
}

#[test]
#[ignore = "live: needs PITSTOP_CLAUDE"]
fn a_real_client_that_ended_is_resumed() {
    an_agent_that_went_is_resumed(&live(), "natural", by_exit);
}

#[test]
fn a_demo_that_crashed_is_resumed() {
    an_agent_that_went_is_resumed(&demo(), "crash", by_a_crash);
}

/// A new agent that dies at once costs nothing: the old session goes on.
fn a_new_agent_that_dies_is_rolled_back(launch: Launch) {
    let launch = launch.behind(
        "case \"$*\" in *--resume*) ;; *) if [ -e \"$HOME/broken\" ]; then echo broken; exit 3; fi;; esac",
    );
    let supervisor = started(&launch);
    let before = session_of(&supervisor.status());
    fs::write(launch.the_home().path("broken"), "").unwrap();
    supervisor.review();
    supervisor.keys([key::ENTER]);
    let status = supervisor.wait_for_status(|status| {
        status["iteration"] == 3
            && status["reboot"]["phase"] == "idle"
            && status["agent"]["state"] == "idle"
    });
    assert_eq!(session_of(&status), before);
    let reported = status["reboot"]["reason"].as_str().unwrap_or_default();
    assert!(
        reported.contains("the new agent ended at once"),
        "{status:#}"
    );
    // The notice stands for some seconds only, and the old session may take longer to come back.
    supervisor.wait_until("it is said", || {
        supervisor.log().contains("reboot rolled back")
    });
    take_a_turn(&supervisor, "still there");
    // With the fault mended the next one succeeds.
    fs::remove_file(launch.the_home().path("broken")).unwrap();
    let (shown, got) = reboot(&supervisor);
    assert_eq!(got, shown);
}

#[test]
fn a_new_demo_that_dies_is_rolled_back() {
    a_new_agent_that_dies_is_rolled_back(demo());
}

#[test]
#[ignore = "live: needs PITSTOP_CLAUDE"]
fn a_new_real_client_that_dies_is_rolled_back() {
    a_new_agent_that_dies_is_rolled_back(live());
}

/// Undo gives the session before the reboot back.
fn a_reboot_can_be_undone(launch: &Launch) {
    let supervisor = started(launch);
    let before = session_of(&supervisor.status());
    reboot(&supervisor);
    supervisor.wait_for_state("idle", SOON);
    take_a_turn(&supervisor, "never by night");
    let group = supervisor.agent_pid();
    supervisor.keys([key::PREFIX, "u"]);
    let status = supervisor
        .wait_for_status(|status| status["iteration"] == 3 && status["agent"]["state"] == "idle");
    assert_eq!(session_of(&status), before);
    // What was said since stays, and is found where it was said.
    let text = supervisor.handoff()["text"].to_string();
    assert!(text.contains("never by night"), "{text}");
    let unfounded = || {
        let check = supervisor.run(&["handoff", "--check", "--json"]);
        serde_json::from_slice::<Value>(&check.stdout).unwrap()["unfounded"].clone()
    };
    supervisor.wait_until("no line without ground", || unfounded() == json!([]));
    assert!(group_members(group).is_empty());
    let history = supervisor.history();
    assert_eq!(iteration(&history, 3)["cause"], "undo", "{history:#}");
    take_a_turn(&supervisor, "as if nothing had been");
    let (shown, got) = reboot(&supervisor);
    assert_eq!(got, shown);
}

#[test]
fn a_reboot_of_the_demo_can_be_undone() {
    a_reboot_can_be_undone(&demo());
}

#[test]
#[ignore = "live: needs PITSTOP_CLAUDE"]
fn a_reboot_of_the_real_client_can_be_undone() {
    a_reboot_can_be_undone(&live());
}

/// What the session has cost by the client's last figure, once that is above another.
fn cost_above(supervisor: &Supervisor, before: f64) -> f64 {
    let figure = |status: &Value| status["cost_usd"].as_f64().unwrap_or(0.0);
    figure(&supervisor.wait_for_status(|status| figure(status) > before + 1e-9))
}

#[test]
#[ignore = "live: needs PITSTOP_CLAUDE"]
fn what_a_resumed_session_of_the_real_client_had_cost_is_counted_once() {
    let launch = live();
    let supervisor = started(&launch);
    let first = cost_above(&supervisor, 0.0);
    take_a_turn(&supervisor, "and go on");
    cost_above(&supervisor, first);
    reboot(&supervisor);
    supervisor.wait_for_state("idle", SOON);
    let between = cost_above(&supervisor, 0.0);
    let old = iteration(&supervisor.history(), 1)["cost_usd"].as_f64();
    supervisor.keys([key::PREFIX, "u"]);
    supervisor
        .wait_for_status(|status| status["iteration"] == 3 && status["agent"]["state"] == "idle");
    take_a_turn(&supervisor, "as if nothing had been");
    let last = cost_above(&supervisor, old.expect("a cost"));
    let history = supervisor.history();
    let costs = [1, 2, 3].map(|number| iteration(&history, number)["cost_usd"].as_f64());
    let sum: f64 = costs.iter().flatten().sum();
    assert!(
        (sum - (last + between)).abs() < 1e-6,
        "{costs:?}, the sessions' last figures: {last} and {between}"
    );
}

#[test]
fn a_generic_agent_is_estimated_and_given_the_handoff_by_paste() {
    let launch = Launch::generic("");
    let reader = launch.the_home().program(
        "reader",
        "#!/bin/sh\nwhile read -r line; do echo \"got <$line>\"; done\n",
    );
    let launch = Launch::generic(reader.to_str().unwrap()).home(launch.the_home());
    let supervisor = launch.notes(NOTES).start_idle();
    let group = supervisor.agent_pid();
    for _ in 0..20 {
        supervisor.keys(["words that the estimate can count\r"]);
    }
    let status =
        supervisor.wait_for_status(|status| status["context"]["used"].as_u64() > Some(100));
    assert_eq!(status["context"]["source"], "estimate");
    assert_eq!(status["agent"]["kind"], "generic");
    supervisor.review();
    let shown = supervisor.handoff_text();
    supervisor.keys([key::ENTER]);
    supervisor.wait_for_iteration(2, SOON);
    assert!(group_members(group).is_empty());
    let marker = shown.lines().next().unwrap().to_owned();
    supervisor.wait_for_text("got <Carry on with ", SOON);
    assert!(marker.starts_with("pitstop handoff"), "{marker}");
    assert_eq!(
        iteration(&supervisor.history(), 1)["end_reason"],
        "user_reboot"
    );
}

#[test]
fn an_agent_that_floods_and_ignores_signals_is_ended_all_the_same() {
    let launch = Launch::generic("sh -c \"trap '' HUP TERM INT; yes flood\"")
        .set("reboot.hangup_timeout=\"300ms\"")
        .set("reboot.terminate_timeout=\"300ms\"");
    let supervisor = launch.start_showing("flood");
    assert_eq!(supervisor.quit().code, 0);
}

/// A dialog is answered by the human alone; the message waits behind it and is delivered once.
fn a_dialog_at_the_start_is_left_to_the_human(launch: Launch) {
    let asks = "case $* in *--version*) ;; *) echo 'Do you trust this folder?'; read -r _ ;; esac";
    // A reboot by the bridge starts no process that could ask.
    let launch = launch
        .behind(asks)
        .set("agent.bridge=false")
        .set("reboot.verify_timeout=\"1s\"");
    let supervisor = launch.start_showing("trust");
    assert_eq!(supervisor.status()["agent"]["state"], "starting");
    supervisor.keys([key::ENTER]);
    supervisor.wait_for_state("idle", SOON);
    take_a_turn(&supervisor, "begin the work");
    supervisor.review();
    let shown = supervisor.handoff_text();
    supervisor.keys([key::ENTER]);
    supervisor.wait_for_status(|status| status["iteration"] == 2);
    supervisor.wait_for_log("the handoff is not confirmed", SOON);
    supervisor.terminal.wait_for(
        |screen| screen.contains("trust") && screen.contains("not confirmed"),
        SOON,
    );
    let status = supervisor.status();
    assert_eq!(status["agent"]["state"], "starting", "{status:#}");
    assert_ne!(status["reboot"]["phase"], "idle", "{status:#}");
    supervisor.keys([key::ENTER]);
    let status = supervisor.wait_for_iteration(2, SOON);
    assert_eq!(arrived(&supervisor, &session_of(&status)), shown);
    supervisor.wait_for_state("idle", SOON);
    let handoffs = said_to(&supervisor);
    let count = handoffs.iter().filter(|text| **text == shown).count();
    assert_eq!(count, 1, "{handoffs:#?}");
}

#[test]
fn a_dialog_at_the_start_is_left_to_the_human_with_a_start_prompt() {
    a_dialog_at_the_start_is_left_to_the_human(demo());
}

#[test]
fn a_dialog_at_the_start_is_left_to_the_human_with_a_paste() {
    a_dialog_at_the_start_is_left_to_the_human(demo().set("reboot.delivery=\"paste\""));
}

#[test]
fn a_dialog_in_a_turn_holds_the_reboot_back_until_it_is_answered() {
    let launch = demo().without_env("PITSTOP_DEMO_REPLY");
    let answered = launch.the_home().path("answered");
    let ask = launch.the_home().program(
        "ask",
        &format!(
            "#!/bin/sh\necho '{{\"tool_name\":\"Bash\",\"session_id\":\"'$CLAUDE_CODE_SESSION_ID'\"}}' |\n\
             \"$PITSTOP\" hook PermissionRequest\nwhile [ ! -e {} ]; do sleep 0.05; done\n",
            answered.display()
        ),
    );
    let turns = launch.the_home().path("turns");
    fs::write(
        &turns,
        format!("I shall look\t$ {}\tDone.\n", ask.display()),
    )
    .unwrap();
    let supervisor = launch.env("PITSTOP_DEMO_SCRIPT", turns).start_idle();
    supervisor.prompt("look around");
    supervisor.wait_for_state("dialog", SOON);
    supervisor.review();
    supervisor.keys([key::ENTER]);
    let status = supervisor.wait_for_phase("waiting", SOON);
    assert_eq!(status["reboot"]["blocked_by"], json!(["dialog"]));
    assert_eq!(status["agent"]["state"], "dialog");
    fs::write(answered, "").unwrap();
    supervisor.wait_for_iteration(2, SOON);
    let end = iteration(&supervisor.history(), 1);
    assert_eq!(end["end_reason"], "user_reboot");
}

#[test]
fn scripts_may_order_a_reboot_and_get_the_reason_of_a_refusal() {
    let supervisor = started(&demo());
    let (code, reported) = supervisor.ctl("approve");
    assert_eq!(code, 1);
    assert!(reported.contains("no reboot waits"), "{reported}");
    let (code, reported) = supervisor.ctl("undo");
    assert_eq!(code, 1);
    assert!(reported.contains("nothing to undo"), "{reported}");
    assert_eq!(supervisor.ctl("reboot").0, 0);
    supervisor.wait_for_phase("review", SOON);
    assert_eq!(supervisor.ctl("approve").0, 0);
    supervisor.wait_for_iteration(2, SOON);
    assert_eq!(iteration(&supervisor.history(), 2)["cause"], "ctl");
    assert_eq!(supervisor.ctl("undo").0, 0);
    supervisor.wait_for_iteration(3, SOON);
    assert_eq!(supervisor.ctl("stop").0, 0);
    assert_eq!(supervisor.wait_for_exit(SOON).code, 0);
    assert_eq!(supervisor.run(&["status"]).status.code(), Some(3));
}

#[test]
fn what_an_editor_has_saved_outlives_a_stop() {
    let script =
        "printf -- '- [ ] saved, not left\\n' >>\"$1\"\necho EDITING\nwhile :; do sleep 1; done";
    let supervisor = started(&edited_by(script));
    supervisor.keys([key::PREFIX, "E"]);
    supervisor.wait_for_text("EDITING", SOON);
    let (code, reported) = supervisor.ctl("stop");
    assert_eq!(code, 0, "{reported}");
    supervisor.wait_for_exit(SOON);
    let notes = supervisor.notes();
    assert!(notes.ends_with("- [ ] saved, not left\n"), "{notes}");
}
