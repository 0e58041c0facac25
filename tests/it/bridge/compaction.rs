//! The client's own compactions, answered with the handoff: with the demo, and with the real client.
//!
//! Most turns here are one call of the model, as the subject is what the client does before a prompt and behind one; compactions within
//! long turns are in `long_turn`.

use serde_json::Value;

use super::{MODS_FROM, wait_until_it_rests};
use crate::kit::{
    client::is_at_least,
    messages_api::Answer,
    supervisor::{Launch, SOON, Supervisor, key},
};

/// What every handoff begins with.
const MARKER: &str = "pitstop handoff · ";

/// The real client, which compacts before its second prompt.
fn live(mode: &str) -> Launch {
    assert!(is_at_least(MODS_FROM), "this client runs no mods");
    let launch = Launch::live()
        .set(&format!("reboot.mode={mode:?}"))
        .set("reboot.auto_delay=\"1h\"")
        .env("CLAUDE_CODE_AUTO_COMPACT_WINDOW", "100000");
    launch
        .api()
        .report_usage([95_000, 21_000, 22_000, 23_000, 24_000]);
    launch
}

/// The first turn has filled the window past the client's own line, and the second prompt is given.
#[track_caller]
fn full(launch: &Launch) -> Supervisor {
    let talk = ["the old answer", "the new answer", "the last answer"];
    launch.api().answer(talk.map(Answer::text));
    let supervisor = launch.start();
    wait_until_it_rests(&supervisor);
    supervisor.prompt("the old talk");
    launch.api().wait_for_calls(1, SOON);
    let used = |status: &Value| status["context"]["used"] == 95_000;
    supervisor.wait_for_status(used);
    supervisor.wait_for_state("idle", SOON);
    supervisor.prompt("the pending words");
    supervisor
}

/// What the model was asked behind the answered compaction.
#[track_caller]
fn goes_on_from_the_handoff(call: &Value) {
    let messages = call["messages"].to_string();
    assert_eq!(messages.matches(MARKER).count(), 1, "{messages}");
    assert!(messages.contains("the pending words"), "{messages}");
    assert!(!messages.contains(r#""role":"assistant""#), "{messages}");
}

fn cause(supervisor: &Supervisor, iteration: usize) -> Value {
    supervisor.history()["iterations"][iteration - 1]["cause"].clone()
}

#[test]
#[ignore = "live: needs PITSTOP_CLAUDE"]
fn what_was_reviewed_takes_the_place_of_the_real_client_s_summary() {
    let launch = live("ask");
    let supervisor = full(&launch);
    let holds = || supervisor.screen().contains("Claude compacts in");
    supervisor.wait_until("the banner", holds);
    assert_eq!(launch.api().main_calls().len(), 1, "the client waits");
    supervisor.keys([key::F5]);
    supervisor.wait_for_text("Esc lets Claude compact", SOON);
    supervisor.keys([key::ENTER]);
    let calls = launch.api().wait_for_calls(2, SOON);
    goes_on_from_the_handoff(&calls[1]);
    let status = supervisor.wait_for_iteration(2, SOON);
    supervisor.wait_for_state("idle", SOON);
    assert_eq!(cause(&supervisor, 2), "compaction");
    assert_eq!(launch.api().main_calls().len(), 2, "no call for a summary");

    // The old talk is had back, without the handoff.
    assert_eq!(supervisor.ctl("undo").0, 0);
    let undone = |now: &Value| now["iteration"] == 3 && now["session_id"] != status["session_id"];
    supervisor.wait_for_status(undone);
    supervisor.wait_for_text("the old answer", SOON);
}

#[test]
#[ignore = "live: needs PITSTOP_CLAUDE"]
fn in_auto_the_real_client_s_compaction_is_answered_at_once_and_so_is_its_command() {
    let launch = live("auto");
    let supervisor = full(&launch);
    let calls = launch.api().wait_for_calls(2, SOON);
    goes_on_from_the_handoff(&calls[1]);
    supervisor.wait_for_iteration(2, SOON);
    supervisor.wait_for_state("idle", SOON);
    supervisor.prompt("/compact");
    supervisor.wait_for_iteration(3, SOON);
    assert_eq!(launch.api().main_calls().len(), 2, "no call for a summary");
    supervisor.prompt("and now");
    let calls = launch.api().wait_for_calls(3, SOON);
    let messages = calls[2]["messages"].to_string();
    assert_eq!(messages.matches(MARKER).count(), 1);
    assert!(messages.contains("and now") && !messages.contains(r#""role":"assistant""#));
    // One call has crossed both lines, pitstop's and the client's own: either may come first.
    let first = cause(&supervisor, 2);
    assert!(first == "compaction" || first == "threshold", "{first}");
    assert_eq!(cause(&supervisor, 3), "compact_command");
}

#[test]
#[ignore = "live: needs PITSTOP_CLAUDE"]
fn a_compaction_of_the_real_client_without_an_answer_goes_as_is_set() {
    for (unanswered, iteration) in [("client", 1), ("handoff", 2)] {
        let launch = live("ask")
            .set("guard.answer_within=\"2s\"")
            .set(&format!("guard.unanswered={unanswered:?}"));
        let supervisor = full(&launch);
        if unanswered == "handoff" {
            let calls = launch.api().wait_for_calls(2, SOON);
            goes_on_from_the_handoff(&calls[1]);
        } else {
            // So few messages are not worth a summary of its own: it goes on with all of them.
            let calls = launch.api().wait_for_calls(2, SOON);
            let messages = calls[1]["messages"].to_string();
            assert!(messages.contains("the pending words") && !messages.contains(MARKER));
            supervisor.wait_for_phase("idle", SOON);
        }
        supervisor.wait_for_state("idle", SOON);
        assert_eq!(supervisor.status()["iteration"], iteration);
    }
}

#[test]
#[ignore = "live: needs PITSTOP_CLAUDE"]
fn a_compaction_in_the_middle_of_the_real_client_s_turn_keeps_the_tool_s_result() {
    // In `auto` pitstop would reboot on the fly before the client compacts by itself.
    let launch = live("ask")
        .set("guard.answer_within=\"2s\"")
        .set("guard.unanswered=\"handoff\"")
        .agent_args(["--allowed-tools", "Bash(echo found-it)"]);
    launch
        .api()
        .answer([Answer::shell("echo found-it"), Answer::text("Understood.")]);
    let supervisor = launch.start();
    wait_until_it_rests(&supervisor);
    supervisor.prompt("look for it");
    let calls = launch.api().wait_for_calls(2, SOON);
    let messages = calls[1]["messages"].to_string();
    assert_eq!(messages.matches(MARKER).count(), 1, "{messages}");
    assert!(messages.contains("found-it"), "{messages}");
    supervisor.wait_for_iteration(2, SOON);
    supervisor.wait_for_state("idle", SOON);
    assert_eq!(cause(&supervisor, 2), "compaction");
}

#[test]
#[ignore = "live: needs PITSTOP_CLAUDE"]
fn a_compaction_that_is_stopped_in_the_real_client_changes_nothing() {
    let launch = live("ask");
    let supervisor = full(&launch);
    let holds = || supervisor.screen().contains("Claude compacts in");
    supervisor.wait_until("the banner", holds);
    supervisor.keys([key::ESC]);
    supervisor.wait_until("its end", || !holds());
    supervisor.wait_for_state("idle", SOON);
    assert_eq!(supervisor.status()["iteration"], 1);
    assert_eq!(launch.api().main_calls().len(), 1);
}
