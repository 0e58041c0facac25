//! Reboots in place: with the demo, and with the real client.

use std::{fs, time::Instant};

use serde_json::{Value, json};

use super::{MODS_FROM, bridge, demo, live, say, wait_for, wait_for_figure, walk};
use crate::kit::{
    client::is_at_least,
    messages_api::Answer,
    supervisor::{SOON, Supervisor, key},
};

/// A draft of three lines, and its length.
const DRAFT: (&str, u64) = ("one\ntwo\nthree", 13);

/// What every handoff begins with.
const MARKER: &str = "pitstop handoff · ";

#[track_caller]
fn wait_for_draft(supervisor: &Supervisor) -> Value {
    wait_for(supervisor, |bridge| bridge["draft_characters"] == DRAFT.1)
}

/// Approves a reboot in place; gives when.
#[track_caller]
fn replace(supervisor: &Supervisor) -> Instant {
    let output = supervisor.run(&["ctl", "reboot", "--way", "in-place"]);
    assert!(output.status.success(), "{output:?}");
    supervisor.wait_for_phase("review", SOON);
    let approved = Instant::now();
    assert_eq!(supervisor.ctl("approve").0, 0);
    approved
}

/// The text of a session's transcript.
fn transcript(supervisor: &Supervisor, session: &Value) -> String {
    let name = format!("{}.jsonl", session.as_str().expect("a session"));
    let files = walk(&supervisor.launch.the_home().path(""));
    let file = files.iter().find(|path| path.ends_with(&name));
    fs::read_to_string(file.expect("a transcript")).expect("it can be read")
}

#[test]
fn the_demo_s_conversation_is_replaced_and_an_undo_brings_it_back() {
    let supervisor = demo().start();
    wait_for(&supervisor, |bridge| bridge["state"] == "in_force");
    say(&supervisor, "the old talk");
    let before = wait_for_figure(&supervisor, 28_000);
    supervisor.wait_for_state("idle", SOON);
    supervisor.keys(["one", "\n", "two", "\n", "three"]);
    wait_for_draft(&supervisor);
    let pid = supervisor.agent_pid();
    replace(&supervisor);
    let status = supervisor.wait_for_iteration(2, SOON);
    assert_eq!(status["session_id"], before["session_id"]);
    assert_eq!(supervisor.agent_pid(), pid);
    assert_eq!(bridge(&status)["draft_characters"], DRAFT.1);
    let text = transcript(&supervisor, &status["session_id"]);
    assert_eq!(text.matches(MARKER).count(), 1);
    let history = supervisor.history();
    let second = &history["iterations"][1];
    assert_eq!(
        (&second["way"], &second["compactions"]),
        (&json!("in-place"), &json!(0))
    );
    let given = supervisor.launch.project().join(".pitstop/runs");
    let run = history["run_id"].as_str().expect("a run");
    let handoff = given.join(run).join("iteration-2/handoff.md");
    assert!(handoff.exists(), "the handoff is kept");
    supervisor.wait_for_state("idle", SOON);

    assert_eq!(supervisor.ctl("undo").0, 0);
    let status = supervisor.wait_for_iteration(3, SOON);
    assert_ne!(status["session_id"], before["session_id"]);
    let text = transcript(&supervisor, &status["session_id"]);
    assert!(text.contains("the old talk") && !text.contains(MARKER));
    // It goes over, as into any other session.
    wait_for_draft(&supervisor);
}

#[test]
#[ignore = "live: needs PITSTOP_CLAUDE"]
fn the_real_client_s_conversation_is_replaced_and_an_undo_brings_it_back() {
    assert!(is_at_least(MODS_FROM), "this client runs no mods");
    let launch = live();
    launch.api().report_usage([30_000, 21_000, 31_000]);
    let talk = ["the old answer", "the new answer", "the last answer"];
    launch.api().answer(talk.map(Answer::text));
    let supervisor = launch.start();
    wait_for(&supervisor, |bridge| bridge["state"] == "in_force");
    supervisor.wait_for_state("idle", SOON);
    supervisor.prompt("the old talk");
    let before = wait_for_figure(&supervisor, 30_000);
    supervisor.wait_for_state("idle", SOON);
    supervisor.keys(["\x1b[200~one\ntwo\nthree\x1b[201~"]);
    wait_for_draft(&supervisor);

    let approved = replace(&supervisor);
    let calls = launch.api().wait_for_calls(2, SOON);
    println!("from the approval to the request: {:?}", approved.elapsed());
    let messages = calls[1]["messages"].to_string();
    assert_eq!(messages.matches(MARKER).count(), 1);
    assert!(messages.contains("# Environment"), "the client's reminders");
    assert!(!messages.contains(r#""role":"assistant""#), "no old talk");
    let status = supervisor.wait_for_iteration(2, SOON);
    assert_eq!(status["session_id"], before["session_id"]);
    wait_for_draft(&supervisor);
    let status = wait_for_figure(&supervisor, 21_000);
    assert_eq!(status["iteration"], 2);
    supervisor.wait_for_state("idle", SOON);
    let history = supervisor.history();
    let second = &history["iterations"][1];
    assert_eq!(
        (&second["way"], &second["compactions"]),
        (&json!("in-place"), &json!(0))
    );
    let start = second["tokens"]["at_start"].as_u64();
    assert!(
        start.is_some_and(|start| (21_000..22_000).contains(&start)),
        "{second:#}"
    );
    assert_eq!(launch.api().main_calls().len(), 2, "no call for a summary");

    assert_eq!(supervisor.ctl("undo").0, 0);
    supervisor.wait_for_iteration(3, SOON);
    let status = wait_for_draft(&supervisor);
    assert_ne!(status["session_id"], before["session_id"]);
    supervisor.wait_for_text("the old answer", SOON);
    supervisor.keys([key::CTRL_U, "\x7f", key::CTRL_U, "\x7f", key::CTRL_U]);
    wait_for(&supervisor, |bridge| bridge["draft_characters"] == 0);
    supervisor.prompt("and now");
    let calls = launch.api().wait_for_calls(3, SOON);
    let messages = calls[2]["messages"].to_string();
    assert!(messages.contains("the old talk") && messages.contains("the old answer"));
    assert!(!messages.contains(MARKER) && !messages.contains("the new answer"));
}

#[test]
#[ignore = "live: needs PITSTOP_CLAUDE"]
fn a_turn_of_the_real_client_s_is_stopped_for_it_and_orders_are_asked_for_while_the_next_one_runs()
{
    assert!(is_at_least(MODS_FROM), "this client runs no mods");
    let launch = live();
    launch.api().answer([Answer::Stall, Answer::Stall]);
    let supervisor = launch.start();
    wait_for(&supervisor, |bridge| bridge["state"] == "in_force");
    supervisor.wait_for_state("idle", SOON);
    supervisor.prompt("the old talk");
    wait_for(&supervisor, |bridge| bridge["turn_runs"] == true);
    replace(&supervisor);
    supervisor.wait_for_phase("waiting", SOON);
    assert_eq!(supervisor.ctl("approve").0, 0);
    let calls = launch.api().wait_for_calls(2, SOON);
    let messages = calls[1]["messages"].to_string();
    assert_eq!(messages.matches(MARKER).count(), 1);
    supervisor.wait_for_iteration(2, SOON);
    let age = |bridge: &Value| bridge["age_ms"].as_u64().unwrap_or_default();
    wait_for(&supervisor, |bridge| age(bridge) > 5_000);
    let status = wait_for(&supervisor, |bridge| age(bridge) < 2_000);
    assert_eq!(bridge(&status)["turn_runs"], true);
}
