//! A prompt cache that has gone cold, in the real client: a session that is resumed hours later.

use std::fs;

use chrono::{DateTime, SecondsFormat, TimeDelta, Utc};
use serde_json::Value;

use crate::kit::{
    messages_api::{Answer, user_texts},
    supervisor::{Launch, SOON, Supervisor, key, session_of},
};

/// The list price of Opus 4.8 for writing a million tokens into the cache for five minutes, in US dollars.
const WRITE: f64 = 6.25;

/// The tokens that the session holds.
const FULL: u64 = 90_000;

/// A session of the real client that holds 90k tokens and was left hours ago, resumed with prompts that are asked about.
fn resumed_after_hours() -> (Launch, Supervisor) {
    let launch = Launch::live()
        .set("guard.cold_cache=\"ask\"")
        .set("summary.generate_summaries=false")
        .size(160, 45);
    launch.api().report_usage([18_000, FULL]);
    launch
        .api()
        .answer(["One.", "Two.", "Three."].map(Answer::text));
    let launch = launch.agent_args(["--model", "claude-opus-4-8"]);
    let pitstop = launch.start_idle();
    for (prompt, answer) in [("begin", "One."), ("go on", "Two.")] {
        pitstop.turn(prompt, answer);
    }
    let status = pitstop.wait_for_status(|status| status["prompt_cache"]["warm"] == true);
    assert!(!pitstop.screen().contains("Cache cold"), "it is warm");
    let session = session_of(&status);
    pitstop.quit();
    drop(pitstop);
    make_older(&launch, &session);
    let launch = launch.agent_args(["--resume", &session]);
    let pitstop = launch.start_idle();
    pitstop.wait_for_status(|status| status["agent"]["bridge"]["state"] == "in_force");
    // Until the client has counted what a fresh session begins with, no prompt is held.
    pitstop.wait_for_text("Cache cold: this prompt re-reads", SOON);
    (launch, pitstop)
}

/// Sets each time in a transcript back by five hours.
fn make_older(launch: &Launch, session: &str) {
    let projects = launch.the_home().claude_dir().join("projects");
    let directory = fs::read_dir(&projects).expect("projects").next();
    let path = directory.expect("a project").expect("a directory").path();
    let path = path.join(format!("{session}.jsonl"));
    let text = fs::read_to_string(&path).expect("a transcript");
    let older = text.lines().map(|line| {
        let mut line: Value = serde_json::from_str(line).expect("JSON");
        if let Some(at) = line["timestamp"].as_str() {
            let at: DateTime<Utc> = at.parse().expect("a time");
            let at = at - TimeDelta::hours(5);
            line["timestamp"] = at.to_rfc3339_opts(SecondsFormat::Millis, true).into();
        }
        format!("{line}\n")
    });
    fs::write(&path, older.collect::<String>()).expect("it is written");
}

#[test]
#[ignore = "live: needs PITSTOP_CLAUDE"]
fn a_prompt_into_a_cold_cache_waits_for_its_person_with_both_prices() {
    let (launch, pitstop) = resumed_after_hours();
    let cache = &pitstop.status()["prompt_cache"];
    let (tokens, usd) = (&cache["recache_tokens"], &cache["recache_usd"]);
    let tokens = tokens.as_f64().expect("it is known");
    assert!((tokens / FULL as f64 - 1.0).abs() < 0.01, "{tokens}");
    let price = usd.as_f64().expect("the model is listed") / (tokens * WRITE / 1e6);
    assert!((price - 1.0).abs() < 0.01, "{cache}");
    let fresh = cache["fresh_usd"].as_f64().expect("it is known");
    assert!(fresh < usd.as_f64().expect("it is known") / 2.0, "{cache}");

    let calls = launch.api().main_calls().len();
    pitstop.prompt("what is left?");
    pitstop.wait_for_text("Enter sends it", SOON);
    assert_eq!(launch.api().main_calls().len(), calls);
    // Esc: it is in the box again, and not in the conversation.
    pitstop.keys([key::ESC]);
    pitstop.wait_for_text("❯\u{a0}what is left?", SOON);
    let is_gone = |text: &str| !text.contains("Enter sends it");
    pitstop.terminal.wait_for(is_gone, SOON);
    pitstop.keys([key::ENTER]);
    pitstop.wait_for_text("Enter sends it", SOON);
    assert_eq!(launch.api().main_calls().len(), calls);
    pitstop.keys([key::ENTER]);
    let sent = || launch.api().main_calls().len() == calls + 1;
    pitstop.wait_until("the prompt is sent", sent);
    let texts = user_texts(&launch.api().main_calls()[calls]);
    assert_eq!(
        texts.iter().filter(|text| *text == "what is left?").count(),
        1,
        "{texts:?}"
    );
}

#[test]
#[ignore = "live: needs PITSTOP_CLAUDE"]
fn instead_of_the_cold_cache_the_conversation_is_replaced_in_place_and_the_prompt_is_kept() {
    let (launch, pitstop) = resumed_after_hours();
    let calls = launch.api().main_calls().len();
    pitstop.prompt("what is left?");
    pitstop.wait_for_text("Enter sends it", SOON);
    pitstop.review();
    pitstop.keys(["w"]);
    pitstop.wait_for_text("▸ In place", SOON);
    pitstop.keys([key::ENTER]);
    let status = pitstop.wait_for_iteration(2, SOON);
    assert_eq!(status["reboot"]["way"], Value::Null);
    pitstop.wait_for_state("idle", SOON);
    pitstop.wait_for_text("❯\u{a0}what is left?", SOON);
    let asked = launch.api().wait_for_calls(calls + 1, SOON);
    let asked = &asked[calls..];
    assert_eq!(asked.len(), 1, "the handoff alone is sent");
    assert!(
        !user_texts(&asked[0])
            .iter()
            .any(|text| text == "what is left?")
    );
    assert_eq!(pitstop.history()["iterations"][1]["way"], "in-place");
}
