//! The real client resumes a trimmed copy.

use std::{collections::BTreeSet, fs};

use rustix::process::Signal;
use serde_json::Value;

use super::{PLACEHOLDERS, lines};
use crate::kit::{
    messages_api::Answer,
    supervisor::{Launch, SOON, Supervisor},
};

/// What stands in the file that the session reads.
const FILE: &str = "the text of the file that is read";

/// What a newer client appends to a result when it sends it.
const REMINDER: &str = "<system-reminder>";

/// Everything that a request's tool results hold, in order, without the client's reminders.
pub(super) fn results(call: &Value) -> Vec<(String, String)> {
    let messages = call["messages"].as_array().into_iter().flatten();
    let blocks = messages.flat_map(|message| message["content"].as_array().into_iter().flatten());
    blocks
        .filter(|block| block["type"] == "tool_result")
        .map(|block| {
            let text = match &block["content"] {
                Value::String(text) => text.clone(),
                Value::Array(parts) => parts
                    .iter()
                    .filter_map(|part| part["text"].as_str())
                    .collect(),
                other => other.to_string(),
            };
            let text = text.split(REMINDER).next().unwrap_or_default().trim_end();
            let id = block["tool_use_id"].as_str().unwrap();
            (id.to_owned(), text.to_owned())
        })
        .collect()
}

/// What the API itself insists on: every call's response is in the next message, and answers nothing else.
#[track_caller]
pub(super) fn every_call_is_answered_next(call: &Value) {
    let ids = |message: &Value, kind: &str, key: &str| -> BTreeSet<String> {
        let blocks = message["content"].as_array().into_iter().flatten();
        let ours = blocks.filter(|block| block["type"] == kind);
        ours.filter_map(|block| block[key].as_str().map(str::to_owned))
            .collect()
    };
    let mut asked = BTreeSet::new();
    for message in call["messages"].as_array().expect("messages") {
        let answered = ids(message, "tool_result", "tool_use_id");
        assert_eq!(asked, answered, "calls and the responses next to them");
        asked = ids(message, "tool_use", "id");
    }
    assert!(
        asked.is_empty(),
        "the last calls have no response: {asked:?}"
    );
}

fn ended(supervisor: Supervisor) {
    supervisor.signal(Signal::TERM);
    supervisor.wait_for_exit(SOON);
    // It looks for processes left behind.
    drop(supervisor);
}

#[test]
#[ignore = "live: needs PITSTOP_CLAUDE"]
fn the_real_client_goes_on_from_a_trimmed_copy() {
    let launch = Launch::live()
        .set("reboot.mode=\"manual\"")
        .agent_args(["--model", "claude-sonnet-4-5"]);
    let file = launch.project().join("read-me.txt");
    fs::write(&file, FILE).unwrap();
    let read = || Answer::Tool {
        name: "Read".into(),
        input: serde_json::json!({ "file_path": file }),
    };
    let shell = |word: &str| Answer::shell(&format!("echo the-output-of-{word}-{word}-{word}"));
    launch.api().answer([
        shell("one"),
        shell("two"),
        read(),
        shell("three"),
        Answer::text("All is run."),
    ]);
    let first = launch.start();
    let status = first.wait_for_state("idle", SOON);
    let session = status["session_id"].as_str().unwrap().to_owned();
    first.prompt("run the four");
    let calls = launch.api().wait_for_calls(5, SOON);
    let before = results(calls.last().unwrap());
    assert_eq!(before.len(), 4, "{before:?}\n{}", first.screen());
    assert!(before[0].1.contains("the-output-of-one") && before[2].1.contains(FILE));
    first.wait_for_state("idle", SOON);
    let transcript = launch
        .the_home()
        .transcripts()
        .into_iter()
        .find(|path| path.to_string_lossy().contains(&session))
        .expect("a transcript");
    // The client writes behind its own screen.
    first.wait_until("the last answer is in the transcript", || {
        fs::read_to_string(&transcript).is_ok_and(|text| text.contains("All is run."))
    });
    ended(first);

    let output = launch.run(&["trim", &session, "--level", "100", "--json"]);
    let reported: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    assert_eq!(reported["copy"]["responses"], 4);
    let copy = reported["copy"]["session_id"].as_str().unwrap().to_owned();
    let original = fs::read(&transcript).unwrap();
    let bytes = fs::read(reported["copy"]["path"].as_str().unwrap()).unwrap();
    assert_eq!(lines(&original).len(), lines(&bytes).len());

    // The copy goes on, and what was removed can be fetched again.
    launch
        .api()
        .answer([read(), Answer::text("It is read again.")]);
    let second = launch.clone().agent_args(["--resume", &copy]).start_idle();
    second.prompt("and now");
    let calls = launch.api().wait_for_calls(7, SOON);
    assert_eq!(calls.len(), 7, "{}", second.screen());
    for call in &calls {
        every_call_is_answered_next(call);
    }
    let after = results(&calls[5]);
    let ids = |results: &[(String, String)]| -> Vec<String> {
        results.iter().map(|(id, _)| id.clone()).collect()
    };
    assert_eq!(ids(&after), ids(&before));
    for (id, text) in &after {
        assert!(
            PLACEHOLDERS.contains(&text.as_str()),
            "{id} still says {text}"
        );
    }
    let request = calls[5]["messages"].to_string();
    assert!(!request.contains(FILE));
    assert!(request.contains("All is run.") && request.contains("run the four"));
    let again = results(&calls[6]);
    assert!(again.last().unwrap().1.contains(FILE), "{again:?}");
    let status = second.wait_for_state("idle", SOON);
    assert_eq!(status["session_id"], copy);
}

#[test]
#[ignore = "live: needs PITSTOP_CLAUDE"]
fn a_trimmed_copy_of_a_session_that_is_full_takes_prompts_again() {
    takes_prompts(&Launch::live());
}

#[test]
#[ignore = "live: needs PITSTOP_CLAUDE"]
fn it_does_without_compaction_too() {
    takes_prompts(&Launch::live().env("DISABLE_AUTO_COMPACT", "1"));
}

/// In the copy the last call still says how full the session was: the client must not go by that.
#[track_caller]
fn takes_prompts(launch: &Launch) {
    let launch = launch
        .clone()
        .set("reboot.mode=\"manual\"")
        .agent_args(["--model", "claude-sonnet-4-5"]);
    let file = launch.project().join("long.txt");
    fs::write(&file, "a line that is read again and again\n".repeat(400)).unwrap();
    let read = || Answer::Tool {
        name: "Read".into(),
        input: serde_json::json!({ "file_path": file }),
    };
    launch
        .api()
        .answer([read(), read(), Answer::text("All is run.")]);
    launch
        .api()
        .report_usage([30_000, 100_000, 178_500, 60_000]);
    let first = launch.start();
    let status = first.wait_for_state("idle", SOON);
    let session = status["session_id"].as_str().unwrap().to_owned();
    first.prompt("run the two");
    launch.api().wait_for_calls(3, SOON);
    first.wait_for_state("idle", SOON);
    let transcripts = || launch.the_home().transcripts();
    first.wait_until("the last answer is in the transcript", || {
        transcripts()
            .iter()
            .any(|path| fs::read_to_string(path).is_ok_and(|text| text.contains("All is run.")))
    });
    ended(first);
    let output = launch.run(&["trim", &session, "--level", "100", "--json"]);
    let reported: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    let copy = reported["copy"]["session_id"].as_str().unwrap().to_owned();
    launch.api().answer([Answer::text("It goes on.")]);
    let second = launch.clone().agent_args(["--resume", &copy]).start();
    let status = second.wait_for_state("idle", SOON);
    println!("after the resume: {:#}", status["context"]);
    second.prompt("and now");
    let calls = launch.api().wait_for_calls(4, SOON);
    println!(
        "after the prompt: {:#}\n{}",
        second.status()["context"],
        second.screen()
    );
    assert_eq!(calls.len(), 4, "{}", second.screen());
    second.wait_for_text("It goes on.", SOON);
}
