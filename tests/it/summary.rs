//! The summary: asked of a model in the background, carried by the handoff, replaced when there is none, and never a
//! process left behind.

use std::{fs, time::Duration};

use serde_json::Value;

use crate::kit::{
    messages_api::{Answer, user_texts},
    supervisor::{Launch, Process, SOON, Supervisor, key, processes_of},
};

/// What the scripted model says when it is asked.
const SUMMARY: &str = "<analysis>Thought through: HIDDEN.</analysis>\n\n\
    ## User Intent\n\nCount the herons.\n\n## Technical Context\n\nRust.\n\n## Files & Code\n\n- `heron.rs`\n\n\
    ## Errors & Fixes\n\nNone.\n\n## Key Decisions\n\nOne heron, one line.\n\n## Pending Tasks\n\nThe egrets.\n\n\
    ## Current State\n\nAll herons are counted.\n";

/// Above the warn line of a window of 200 000 tokens, below the compact line.
const WARN: u64 = 130_000;

/// A model that says nothing until it is killed, with the mark by which the kit knows the writers of summaries.
const HANGS: &str = "while sleep 0.2; do :; done # --no-session-persistence";

fn demo() -> Launch {
    Launch::quiet_demo()
        .env("PITSTOP_DEMO_REPLY", "Understood.")
        .env("PITSTOP_DEMO_USAGE", WARN.to_string())
        .set("summary.generate_summaries=true")
        .set("reboot.mode=\"manual\"")
        .notes("## Current Plan\n- [ ] count the egrets\n")
}

fn live() -> Launch {
    Launch::live()
        .set("summary.generate_summaries=true")
        .set("reboot.mode=\"manual\"")
        .agent_args(["--model", "claude-sonnet-4-5"])
        .notes("## Current Plan\n- [ ] count the egrets\n")
}

/// A live one whose first turn ends above the warn line, and whose next call gets this answer.
fn live_that_is_asked(answer: Answer) -> Launch {
    let launch = live();
    launch.api().report_usage([WARN]);
    launch.api().answer([Answer::text("Herons, then."), answer]);
    launch
}

/// Starts, and takes the turn that crosses the warn line.
#[track_caller]
fn crossed(launch: &Launch) -> Supervisor {
    let supervisor = launch.start_idle();
    supervisor.prompt("count the herons");
    supervisor.wait_for_status(|status| {
        status["context"]["used"].as_u64() >= Some(WARN) && status["agent"]["state"] == "idle"
    });
    supervisor
}

fn iteration(supervisor: &Supervisor, number: usize) -> Value {
    supervisor.history()["iterations"][number - 1].clone()
}

/// Waits until the first iteration's summary is of this source; gives its record.
#[track_caller]
fn made(supervisor: &Supervisor, source: &str, reason: &str) -> Value {
    let holds = || {
        let made = iteration(supervisor, 1)["summary_made"].clone();
        let reported = made["reason"].as_str().unwrap_or_default();
        made["source"] == source && reported.contains(reason)
    };
    supervisor.wait_until(&format!("a summary: {source}, {reason}"), holds);
    iteration(supervisor, 1)["summary_made"].clone()
}

/// Reboots; gives the message as it was kept beside the new iteration.
#[track_caller]
fn handed_over(supervisor: &Supervisor) -> String {
    supervisor.review();
    approved(supervisor)
}

/// Approves the message in the review; gives it as it was kept beside the new iteration.
#[track_caller]
fn approved(supervisor: &Supervisor) -> String {
    supervisor.keys([key::ENTER]);
    let status = supervisor.wait_for_iteration(2, SOON * 2);
    kept(supervisor, &status, 2, "handoff.md")
}

fn kept(supervisor: &Supervisor, status: &Value, iteration: usize, name: &str) -> String {
    let run = status["run_id"].as_str().unwrap();
    let path = format!(".pitstop/runs/{run}/iteration-{iteration}/{name}");
    let path = supervisor.launch.project().join(path);
    // It is written in the background, a moment after the record that names it.
    supervisor.wait_until(name, || path.exists());
    fs::read_to_string(path).unwrap()
}

/// Waits until a session's first prompt, as the API got it, is this message.
#[track_caller]
fn reaches_the_api(supervisor: &Supervisor, message: &str) {
    let arrived = || {
        let calls = supervisor.launch.api().main_calls();
        calls
            .iter()
            .any(|call| user_texts(call).first().is_some_and(|text| text == message))
    };
    supervisor.wait_until("the new session gets the message", arrived);
}

#[track_caller]
fn wait_until_it_is_asked(supervisor: &Supervisor) {
    let is_asked = || !side_processes(supervisor).is_empty();
    supervisor.wait_until("it is asked", is_asked);
}

#[track_caller]
fn wait_until_it_is_gone(supervisor: &Supervisor) {
    let is_gone = || side_processes(supervisor).is_empty();
    supervisor.wait_until("it is gone", is_gone);
}

fn side_processes(supervisor: &Supervisor) -> Vec<Process> {
    let all = processes_of(supervisor.launch.the_home());
    all.into_iter().filter(Process::is_side).collect()
}

#[test]
fn the_demo_s_own_summary_is_in_the_message_the_record_and_a_file() {
    let supervisor = crossed(&demo());
    let made = made(&supervisor, "model", "");
    assert_eq!(made["reason"], Value::Null, "{made}");
    assert!(made["cost_usd"].as_f64() > Some(0.0), "{made}");
    assert!(made["duration_ms"].as_u64() > Some(0), "{made}");
    assert!(
        supervisor
            .handoff_text()
            .contains("### Key Decisions\n\nOne entry type for both feed formats.")
    );
    let message = handed_over(&supervisor);
    let begin = "## Summary of the session before\n\n### User Intent\n\nBuild tidepool, a small command-line feed reader.\n";
    assert!(message.contains(begin), "{message}");
    assert!(!message.contains("Read it all."), "thoughts are dropped");
    let first = iteration(&supervisor, 1);
    let said = first["summary"].as_str().unwrap();
    assert!(
        said.ends_with("### Current State\n\nAll tests pass."),
        "{said}"
    );
    let status = supervisor.status();
    assert_eq!(kept(&supervisor, &status, 1, "summary.md"), said);
    supervisor.keys([key::F6, "\x1b[B", key::ENTER]);
    supervisor.wait_for_text("by a model", SOON);
    // The next session begins without one.
    assert_eq!(iteration(&supervisor, 2)["summary"], Value::Null);
}

/// What a model makes up is marked in the message, in the record and in the file; what it says again stands once.
#[test]
fn what_a_model_makes_up_is_marked() {
    let answer = "## User Intent\n- Never touch main.\n## Technical Context\nIt holds 4711 rows.\n## Files & Code\n\
        - `src/heron.rs`: count_herons counts\n- `src/egret.rs`: count_egrets counts\n## Errors & Fixes\nNone.\n\
        ## Key Decisions\nNone.\n## Pending Tasks\nNone.\n## Current State\nDone.";
    let launch = demo()
        .env("PITSTOP_DEMO_REPLY", "src/heron.rs has count_herons now.")
        .summed_up(answer, true);
    let supervisor = launch.start_idle();
    supervisor.prompt("Count the herons. Never touch main.");
    made(&supervisor, "model", "");
    let message = handed_over(&supervisor);
    for part in [
        "\nIt holds 4711 (not found in the session) rows.\n",
        "\n- `src/heron.rs`: count_herons counts\n",
        "\n- `src/egret.rs` (not found in the session): count_egrets (not found in the session) counts\n",
    ] {
        assert!(message.contains(part), "{part} is not in {message}");
    }
    assert_eq!(
        message.matches("\n- Never touch main").count(),
        0,
        "{message}"
    );
    assert!(
        message.contains("## Objective\n\nCount the herons. Never touch main.\n"),
        "{message}"
    );
    let said = iteration(&supervisor, 1)["summary"].clone();
    let file = kept(&supervisor, &supervisor.status(), 1, "summary.md");
    assert_eq!(said, file);
    assert!(
        file.contains("4711 (not found in the session) rows"),
        "{file}"
    );
}

/// Of the same transcript the work at hand says what the summary without a model would.
#[track_caller]
fn without_the_fallback(message: &str) {
    assert!(message.contains("## Last steps\n"), "{message}");
    assert!(!message.contains("## Summary"), "{message}");
}

#[test]
fn an_overloaded_service_leaves_the_transcript_s_own_summary_and_its_words() {
    let supervisor = crossed(&demo().summed_up("API Error: 529 Overloaded", false));
    let made = made(&supervisor, "fallback", "529 Overloaded");
    assert!(made["duration_ms"].as_u64() > Some(0), "{made}");
    supervisor.review();
    // Where the end of the turn came after the first answer, a model is asked again.
    self::made(&supervisor, "fallback", "529 Overloaded");
    let message = approved(&supervisor);
    without_the_fallback(&message);
    assert!(message.contains("\nagent: Understood.\n"), "{message}");
    let summary = iteration(&supervisor, 1)["summary"].clone();
    let summary = summary.as_str().unwrap();
    assert!(summary.contains("### User Intent\n"), "{summary}");
    assert!(summary.contains("The last words: Understood."), "{summary}");
    supervisor.keys([key::F6, "\x1b[B", key::ENTER]);
    supervisor.wait_for_text("529 Overloaded", SOON);
}

#[test]
fn an_answer_without_its_sections_is_no_summary() {
    let supervisor = crossed(&demo().summed_up("## User Intent\nhalf of it", true));
    made(
        &supervisor,
        "fallback",
        "6 of 7 sections are missing: Technical Context,",
    );
}

#[test]
fn one_that_takes_too_long_is_ended_and_reported() {
    let launch = demo()
        .env("PITSTOP_DEMO_SUMMARY", HANGS)
        .set("summary.timeout=\"1s\"");
    let supervisor = crossed(&launch);
    made(&supervisor, "fallback", "no answer within 1 s");
    wait_until_it_is_gone(&supervisor);
}

#[test]
fn a_review_does_not_wait_and_says_afterwards_that_it_did_not() {
    let supervisor = crossed(&demo().env("PITSTOP_DEMO_SUMMARY", HANGS));
    wait_until_it_is_asked(&supervisor);
    let message = handed_over(&supervisor);
    without_the_fallback(&message);
    made(
        &supervisor,
        "fallback",
        "approved before the model had answered",
    );
    wait_until_it_is_gone(&supervisor);
}

#[test]
fn auto_mode_waits_for_the_summary() {
    let launch = demo()
        .set("reboot.mode=\"auto\"")
        .set("reboot.auto_delay=\"0s\"")
        .env("PITSTOP_DEMO_USAGE", "160000")
        .env("PITSTOP_DEMO_PACE_MS", "100");
    let supervisor = crossed(&launch);
    let status = supervisor.wait_for_iteration(2, SOON * 2);
    assert_eq!(iteration(&supervisor, 2)["cause"], "threshold");
    let message = kept(&supervisor, &status, 2, "handoff.md");
    assert!(message.contains("Build tidepool"), "{message}");
    assert_eq!(iteration(&supervisor, 1)["summary_made"]["source"], "model");
}

#[test]
fn switched_off_no_process_is_started() {
    let launch = demo()
        .set("summary.generate_summaries=false")
        // It would never end.
        .env("PITSTOP_DEMO_SUMMARY", HANGS);
    let supervisor = crossed(&launch);
    let message = handed_over(&supervisor);
    without_the_fallback(&message);
    made(&supervisor, "fallback", "generate_summaries is off");
    assert!(side_processes(&supervisor).is_empty());
}

/// Leaving ends the process that writes a summary, too; the kit finds whatever is left of this home.
#[track_caller]
fn leaving_ends_it(supervisor: &Supervisor) {
    wait_until_it_is_asked(supervisor);
    // While a turn runs it would ask first.
    supervisor.wait_for_state("idle", SOON);
    supervisor.quit();
    assert!(
        side_processes(supervisor).is_empty(),
        "{:?}",
        side_processes(supervisor)
    );
}

#[test]
fn leaving_ends_a_summary_of_the_demo() {
    leaving_ends_it(&crossed(&demo().env("PITSTOP_DEMO_SUMMARY", HANGS)));
}

#[cfg(target_os = "linux")]
#[test]
fn a_crash_of_the_supervisor_ends_it_too() {
    let supervisor = crossed(&demo().env("PITSTOP_DEMO_SUMMARY", HANGS));
    wait_until_it_is_asked(&supervisor);
    let launch = supervisor.kill();
    // The next one finds what may be left, and ends it.
    let next = launch.start_idle();
    next.wait_until("it is gone", || side_processes(&next).is_empty());
}

#[test]
#[ignore = "live: needs PITSTOP_CLAUDE"]
fn a_real_client_s_summary_reaches_the_next_session() {
    let launch = live_that_is_asked(Answer::text(SUMMARY));
    let supervisor = crossed(&launch);
    let found = made(&supervisor, "model", "");
    eprintln!("{found}");
    assert!(found["cost_usd"].as_f64() > Some(0.0), "{found}");
    let message = handed_over(&supervisor);
    assert!(
        message.contains("### Current State\n\nAll herons are counted."),
        "{message}"
    );
    assert!(!message.contains("HIDDEN"));
    // What the API was sent: the question, with the history and the one tool; then the handoff. On a slow machine the turn's
    // end is heard of so late that the question is asked before it, and once more at the reboot.
    reaches_the_api(&supervisor, &message);
    let calls = launch.api().main_calls();
    let history = "<history>\nUser: count the herons\n\nAssistant: Herons, then.\n";
    let asks = |call: &&Value| user_texts(call).concat().contains(history);
    let Some(asked) = calls.iter().find(asks) else {
        panic!("{:?}", calls.iter().map(user_texts).collect::<Vec<_>>())
    };
    // The session's model, which is not the client's default.
    assert_eq!(asked["model"], "claude-sonnet-4-5");
    let tools: Vec<_> = asked["tools"]
        .as_array()
        .unwrap()
        .iter()
        .map(|tool| &tool["name"])
        // What newer clients put in the place of tools that they hold back.
        .filter(|name| **name != "DeferredToolPlaceholder")
        .collect();
    assert_eq!(tools, ["Read"]);
    // It left no session behind, and told no hook of ours.
    let sessions = [1, 2].map(|number| iteration(&supervisor, number)["session_id"].clone());
    let stem = |path: std::path::PathBuf| path.file_stem().unwrap().to_str().map(str::to_owned);
    for found in launch.the_home().transcripts().into_iter().map(stem) {
        assert!(sessions.contains(&serde_json::json!(found)), "{found:?}");
    }
    assert_eq!(supervisor.status()["iteration"], 2);
    assert!(
        !supervisor.log().contains("another session"),
        "{}",
        supervisor.log()
    );
}

#[test]
#[ignore = "live: needs PITSTOP_CLAUDE"]
fn a_real_client_that_is_refused_leaves_the_fallback_and_the_reason() {
    let overloaded = || Answer::Error {
        status: 529,
        kind: "overloaded_error".to_owned(),
        message: "Overloaded".to_owned(),
    };
    let launch = live_that_is_asked(overloaded());
    // The client tries again before it gives up.
    launch.api().answer([overloaded()]);
    let supervisor = crossed(&launch);
    let found = made(&supervisor, "fallback", "529");
    eprintln!("{found}");
    let message = handed_over(&supervisor);
    without_the_fallback(&message);
    reaches_the_api(&supervisor, &message);
}

#[test]
#[ignore = "live: needs PITSTOP_CLAUDE"]
fn leaving_ends_a_summary_of_the_real_client() {
    leaving_ends_it(&crossed(&live_that_is_asked(Answer::Stall)));
}

#[test]
#[ignore = "live: needs PITSTOP_CLAUDE"]
fn a_real_client_that_says_nothing_is_ended_in_time() {
    let launch = live_that_is_asked(Answer::Stall).set("summary.timeout=\"4s\"");
    let supervisor = crossed(&launch);
    made(&supervisor, "fallback", "no answer within 4 s");
    supervisor.wait_until_within(Duration::from_secs(5), "it is gone", || {
        side_processes(&supervisor).is_empty()
    });
}
