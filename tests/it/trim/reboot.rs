//! Trim as the third way of a reboot: the review, the copy, the resumed session, and back.

use std::{
    fs,
    path::{Path, PathBuf},
};

use serde_json::{Value, json};

use super::{gone, live::every_call_is_answered_next, live::results};
use crate::kit::{
    home::Home,
    messages_api::Answer,
    supervisor::{Launch, SOON, Supervisor, key, processes_of, session_of},
};

/// What the demo says at the end of its turn.
const REPLY: &str = "All is run.";

/// The demo in a session of 150 000 tokens, of which ten tool responses hold 10 000 each.
pub(crate) fn filled() -> Launch {
    let launch = Launch::quiet_demo();
    let script = launch.the_home().path("script");
    let steps = ["$ yes | head -c 40000"; 10].join("\t");
    fs::write(&script, format!("{steps}\t{REPLY}\n")).expect("a script");
    launch
        .env("PITSTOP_DEMO_SCRIPT", script)
        .env("PITSTOP_DEMO_USAGE", "150000")
        .set("reboot.mode=\"manual\"")
}

/// Starts and fills the session; gives it.
#[track_caller]
pub(crate) fn fill(supervisor: &Supervisor) -> String {
    supervisor.wait_for_state("idle", SOON);
    supervisor.prompt("run the ten");
    supervisor.wait_for_text(REPLY, SOON);
    let full = |used: &Value| used.as_u64().is_some_and(|used| used >= 150_000);
    let status = supervisor.wait_for_status(|status| {
        status["agent"]["state"] == "idle" && full(&status["context"]["used"])
    });
    session_of(&status)
}

/// Opens the review, waits until the trim is offered, chooses it and approves.
#[track_caller]
pub(crate) fn choose_trim(supervisor: &Supervisor) {
    supervisor.review();
    let removed = "tool responses removed";
    supervisor.wait_for_text(removed, SOON);
    supervisor.keys(["t"]);
    supervisor.wait_for_text("Enter/a trim", SOON);
}

/// The transcript of a session, of the demo or of the real client.
#[track_caller]
pub(crate) fn transcript(home: &Home, session: &str) -> PathBuf {
    let demo = home.path("state/pitstop/demo/projects");
    let projects = fs::read_dir(demo).into_iter().flatten().flatten();
    let of_demo = projects.map(|project| project.path().join(format!("{session}.jsonl")));
    let found = of_demo
        .filter(|path| path.exists())
        .chain(home.transcripts())
        .find(|path| path.to_string_lossy().contains(session));
    found.unwrap_or_else(|| panic!("no transcript of {session}"))
}

/// How many of a session's responses are placeholders.
#[track_caller]
pub(crate) fn removed(home: &Home, session: &str) -> usize {
    gone(&fs::read(transcript(home, session)).expect("a transcript")).len()
}

fn is_told_a_handoff(path: &Path) -> bool {
    fs::read_to_string(path).is_ok_and(|text| text.contains("pitstop handoff"))
}

/// The command lines of the agents of a home.
fn agents(home: &Home) -> Vec<String> {
    let all = processes_of(home).into_iter();
    all.filter(|one| one.group == one.pid && one.command.contains("--settings"))
        .map(|one| one.command)
        .collect()
}

#[test]
fn t_and_enter_go_on_in_a_trimmed_copy_and_an_undo_in_the_whole_session() {
    let launch = filled();
    let home = launch.the_home();
    let supervisor = launch.start();
    let old = fill(&supervisor);
    choose_trim(&supervisor);
    let screen = supervisor.screen();
    assert!(
        screen.contains("5 of 10 tool responses removed"),
        "{screen}"
    );
    assert!(
        screen.contains("▸ Trim") && screen.contains("150k"),
        "{screen}"
    );
    supervisor.keys([key::ENTER]);
    let status = supervisor.wait_for_iteration(2, SOON);
    let new = session_of(&status);
    assert_ne!(new, old);
    assert_eq!((removed(home, &old), removed(home, &new)), (0, 5));
    assert!(!is_told_a_handoff(&transcript(home, &new)));
    let agents = agents(home);
    assert_eq!(agents.len(), 1, "{agents:#?}");
    assert!(agents[0].contains("--resume") || !agents[0].contains("--session-id"));
    // What the old call used is not taken for what the trimmed session holds.
    supervisor.wait_for_status(|status| {
        let used = status["context"]["used"].as_u64();
        used.is_some_and(|used| used < 122_400)
    });
    let second = supervisor.history()["iterations"][1].clone();
    assert_eq!(
        (&second["way"], &second["cause"], &second["handoff_bytes"]),
        (&json!("trim"), &json!("key"), &Value::Null)
    );
    let trim = &second["trim"];
    assert_eq!(
        (&trim["level"], &trim["responses"], &trim["of"]),
        (&json!(50), &json!(5), &json!(10))
    );
    assert_eq!(trim["tokens_before"], 150_000);
    assert!(trim["tokens_after"].as_u64() < Some(101_000), "{trim}");
    assert_eq!(second["previous_session_id"], json!(old));
    let table = String::from_utf8(supervisor.run(&["history"]).stdout).unwrap();
    assert!(table.contains("key, trim"), "{table}");

    // It goes on, and then the whole session is back.
    supervisor.prompt("go on");
    supervisor.wait_until("the trimmed session goes on", || {
        fs::read_to_string(transcript(home, &new)).is_ok_and(|text| text.contains("go on"))
    });
    supervisor.wait_for_state("idle", SOON);
    supervisor.keys([key::PREFIX, "u"]);
    let status = supervisor.wait_for_iteration(3, SOON);
    assert_eq!(session_of(&status), old);
    assert_eq!(removed(home, &old), 0);
}

#[test]
fn a_script_chooses_the_way_and_the_review_shows_it() {
    let launch = filled();
    let supervisor = launch.start();
    let old = fill(&supervisor);
    let output = supervisor.run(&["ctl", "reboot", "--way", "trim"]);
    assert!(output.status.success());
    supervisor.wait_for_text("Reboot requested by a script", SOON);
    supervisor.keys([key::F5]);
    supervisor.wait_for_text("Enter/a trim", SOON);
    let removed_text = "tool responses removed";
    supervisor.wait_for_text(removed_text, SOON);
    assert_eq!(supervisor.ctl("approve").0, 0);
    let status = supervisor.wait_for_iteration(2, SOON);
    assert_ne!(session_of(&status), old);
    assert_eq!(removed(launch.the_home(), &session_of(&status)), 5);
    let output = supervisor.run(&["ctl", "save", "--way", "trim"]);
    assert_eq!(output.status.code(), Some(2));
    let output = supervisor.run(&["ctl", "reboot", "--way", "sideways"]);
    assert_eq!(output.status.code(), Some(2));
}

#[test]
fn a_trim_that_wins_too_little_is_not_offered() {
    let launch = Launch::quiet_demo()
        .env("PITSTOP_DEMO_REPLY", REPLY)
        .env("PITSTOP_DEMO_USAGE", "150000")
        .set("reboot.mode=\"manual\"");
    let supervisor = launch.start();
    fill(&supervisor);
    supervisor.review();
    supervisor.wait_for_text("Trim is not possible: without any tool output", SOON);
    supervisor.keys(["t"]);
    supervisor.wait_for_text("trim is not offered", SOON);
    let (code, said) = supervisor.ctl("approve");
    assert_eq!(code, 0, "{said}");
    supervisor.wait_for_iteration(2, SOON);
    assert_eq!(supervisor.history()["iterations"][1]["way"], "fresh");
}

/// An agent command that is the demo, but refuses the first session that it is to resume.
fn refusing_once() -> Launch {
    let launch = filled();
    let mark = launch.the_home().path("refused");
    let mark = mark.display();
    launch.behind(&format!(
        "case \"$*\" in *--resume*) [ -e {mark} ] || {{ : >{mark}; echo No conversation found; exit 1; }} ;; esac"
    ))
}

#[test]
fn a_client_that_refuses_the_copy_gets_the_old_session_back() {
    let launch = refusing_once();
    let supervisor = launch.start();
    let old = fill(&supervisor);
    choose_trim(&supervisor);
    supervisor.keys([key::ENTER]);
    let status = supervisor.wait_for_iteration(3, SOON);
    assert_eq!(session_of(&status), old);
    supervisor.wait_for_text("reboot rolled back, the old session is resumed", SOON);
    supervisor.wait_for_state("idle", SOON);
    assert_eq!(removed(launch.the_home(), &old), 0);
    assert_eq!(agents(launch.the_home()).len(), 1);
}

#[test]
#[ignore = "live: needs PITSTOP_CLAUDE"]
fn live_t_and_enter_resume_a_trimmed_copy_of_the_real_client_s_session() {
    let launch = Launch::live()
        .set("reboot.mode=\"manual\"")
        .agent_args(["--model", "claude-sonnet-4-5"]);
    // A file that was read already is not read again.
    let read = |name: &str| {
        let file = launch.project().join(name);
        fs::write(
            &file,
            format!("a line of {name} that fills\n").repeat(1_500),
        )
        .unwrap();
        Answer::Tool {
            name: "Read".into(),
            input: json!({ "file_path": file }),
        }
    };
    let reads = ["one.txt", "two.txt", "three.txt", "four.txt"].map(read);
    launch
        .api()
        .answer(reads.into_iter().chain([Answer::text(REPLY)]));
    launch
        .api()
        .report_usage([30_000, 60_000, 90_000, 120_000, 150_000]);
    let supervisor = launch.start();
    let old = fill(&supervisor);
    let before = results(launch.api().main_calls().last().unwrap());
    assert_eq!(before.len(), 4, "{before:?}");
    choose_trim(&supervisor);
    println!("{}", supervisor.screen());
    supervisor.keys([key::ENTER]);
    let status = supervisor.wait_for_iteration(2, SOON * 2);
    let new = session_of(&status);
    assert_ne!(new, old);
    println!("after the resume: {:#}", status["context"]);
    assert!(status["context"]["used"].as_u64() < Some(122_400));
    let second = supervisor.history()["iterations"][1].clone();
    println!("{second:#}");
    assert_eq!(second["way"], "trim");
    let count = second["trim"]["responses"].as_u64().unwrap();
    supervisor.wait_for_state("idle", SOON);
    assert_eq!(launch.api().main_calls().len(), 5, "nothing was sent by us");

    launch.api().answer([Answer::text("It goes on.")]);
    launch.api().report_usage([121_000]);
    supervisor.prompt("and now");
    let calls = launch.api().wait_for_calls(6, SOON);
    assert_eq!(calls.len(), 6, "{}", supervisor.screen());
    every_call_is_answered_next(&calls[5]);
    let after = results(&calls[5]);
    let is_mark = |text: &str| super::PLACEHOLDERS.contains(&text);
    let marks = after.iter().filter(|(_, text)| is_mark(text)).count();
    assert_eq!((after.len() as u64, marks as u64), (4, count));
    let texts = calls[5]["messages"].to_string();
    assert!(texts.contains(REPLY) && !texts.contains("pitstop handoff"));
    supervisor.wait_for_text("It goes on.", SOON);
    let grown = |used: &Value| used.as_u64().is_some_and(|used| used >= 121_000);
    supervisor.wait_for_status(|status| grown(&status["context"]["used"]));
    supervisor.wait_for_state("idle", SOON);

    supervisor.keys([key::PREFIX, "u"]);
    let status = supervisor.wait_for_iteration(3, SOON * 2);
    assert_eq!(session_of(&status), old);
    supervisor.wait_for_state("idle", SOON);
    launch.api().answer([Answer::text("It is whole.")]);
    supervisor.prompt("and back");
    let calls = launch.api().wait_for_calls(7, SOON);
    assert_eq!(calls.len(), 7, "{}", supervisor.screen());
    assert_eq!(results(&calls[6]), before, "nothing is missing");
}
