//! `pitstop hook` against a real supervisor: what the hosted agent's hooks report arrives, all of it, in order.

use std::process::{Child, Stdio};

use serde_json::json;

use crate::kit::{
    events::Events,
    input::input,
    messages_api::Answer,
    supervisor::{Launch, Supervisor},
};

/// A burst: as many events as a turn of some hundred tool calls reports.
const BURST: usize = 200;

/// A session that is not the supervisor's. Its events change nothing but are named in the log one by one, which
/// shows what arrived.
fn session(number: usize) -> String {
    format!("00000000-0000-4000-8000-{number:012}")
}

/// Starts a hook as the hosted agent would.
fn hook(supervisor: &Supervisor, number: usize) -> Child {
    let payload = json!({
        "session_id": session(number), "hook_event_name": "UserPromptSubmit", "cwd": "/",
        "transcript_path": "/nowhere.jsonl", "prompt": format!("number {number}"),
    });
    let mut command = supervisor.launch.command(&["hook", "UserPromptSubmit"]);
    command
        .stdin(input(payload.to_string().as_bytes()))
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    command.spawn().unwrap()
}

/// It ends well and says nothing.
fn ends_in_silence(child: Child) {
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success(), "{output:?}");
    assert!(
        output.stdout.is_empty() && output.stderr.is_empty(),
        "{output:?}"
    );
}

/// The numbers of the events in the order of their arrival.
fn arrived(supervisor: &Supervisor) -> Vec<usize> {
    let log = supervisor.log();
    let lines = log.lines().filter(|line| line.contains("another session"));
    lines
        .filter_map(|line| {
            let (_, after) = line.split_once("00000000-0000-4000-8000-")?;
            after.get(..12)?.parse().ok()
        })
        .collect()
}

fn wait_for_all(supervisor: &Supervisor) -> Vec<usize> {
    let all = || arrived(supervisor).len() >= BURST;
    supervisor.wait_until("all events of the burst", all);
    arrived(supervisor)
}

#[test]
fn a_burst_of_events_one_after_the_other_arrives_whole_and_in_order() {
    let supervisor = Launch::quiet_demo().start_idle();
    for number in 0..BURST {
        ends_in_silence(hook(&supervisor, number));
    }
    let wanted: Vec<usize> = (0..BURST).collect();
    assert_eq!(wait_for_all(&supervisor), wanted);
}

#[test]
fn events_that_are_reported_all_at_once_arrive_each_once() {
    let supervisor = Launch::quiet_demo().start_idle();
    // More at a time than the door has seats would be refused by design: a turn runs some tools in parallel.
    for numbers in (0..BURST).collect::<Vec<_>>().chunks(25) {
        let children: Vec<Child> = numbers.iter().map(|n| hook(&supervisor, *n)).collect();
        children.into_iter().for_each(ends_in_silence);
    }
    let mut found = wait_for_all(&supervisor);
    found.sort_unstable();
    let wanted: Vec<usize> = (0..BURST).collect();
    assert_eq!(found, wanted);
}

/// What the client's own hooks report in one turn of many tool calls, in order: each it waits for before it goes on.
#[test]
#[ignore = "live: needs PITSTOP_CLAUDE"]
fn a_burst_of_the_real_clients_own_hooks_arrives_whole_and_in_order() {
    const CALLS: usize = 40;
    let launch = Launch::live();
    let mut answers: Vec<Answer> = (0..CALLS)
        .map(|number| Answer::shell(&format!("echo {number}")))
        .collect();
    answers.push(Answer::text("All of them ran."));
    launch.api().answer(answers);
    let supervisor = launch.start_idle();
    let mut events = Events::of(launch.the_home());
    supervisor.prompt("run them all");
    let is_stop = |hook: &serde_json::Value| hook["event"] == "Stop";
    let limit = std::time::Duration::from_secs(300);
    let received: Vec<(String, String)> = events
        .up_to("hook", is_stop, limit)
        .into_iter()
        .filter(|(name, _)| name == "hook")
        .map(|(_, data)| {
            let text = |field: &str| data[field].as_str().unwrap_or_default().to_owned();
            (text("event"), text("tool_use_id"))
        })
        // The start's own may still be on its way when the client is idle.
        .filter(|(event, _)| !["Notification", "SessionStart"].contains(&event.as_str()))
        .collect();
    assert_eq!(received.len(), 2 * CALLS + 1, "{received:?}");
    assert_eq!(received[0].0, "UserPromptSubmit");
    for pair in received[1..].chunks(2) {
        let [(before, one), (after, other)] = pair else {
            panic!("{pair:?}");
        };
        assert_eq!(
            (before.as_str(), after.as_str()),
            ("PreToolUse", "PostToolUse")
        );
        assert_eq!(one, other);
    }
}
