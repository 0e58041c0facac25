//! The real client with our mods: what it reports by itself, and that everything goes on where it cannot.

use serde_json::{Value, json};

use crate::kit::{
    client::is_at_least,
    messages_api::Answer,
    supervisor::{Launch, SOON, Supervisor, key},
};

/// The first client that runs mods, by its patch number.
const MODS_FROM: u32 = 287;

fn live() -> Launch {
    Launch::live().set("reboot.mode=\"manual\"")
}

fn bridge(status: &Value) -> &Value {
    &status["agent"]["bridge"]
}

#[track_caller]
fn wait_for(supervisor: &Supervisor, holds: impl Fn(&Value) -> bool) -> Value {
    supervisor.wait_for_status(|status| holds(bridge(status)), SOON)
}

/// A figure of just so many tokens, by the bridge.
#[track_caller]
fn wait_for_figure(supervisor: &Supervisor, used: u64) -> Value {
    let figure = |status: &Value| {
        let context = &status["context"];
        context["source"] == "bridge" && context["used"] == used
    };
    supervisor.wait_for_status(figure, SOON)
}

#[test]
#[ignore = "live: needs PITSTOP_CLAUDE"]
fn the_real_client_reports_usage_turns_and_the_draft_by_itself() {
    assert!(is_at_least(MODS_FROM), "this client runs no mods");
    let launch = live();
    launch.api().report_usage([18_000, 42_017]);
    launch
        .api()
        .answer([Answer::text("Understood."), Answer::Stall]);
    let supervisor = launch.start();
    let status = wait_for(&supervisor, |bridge| bridge["state"] == "in_force");
    assert_eq!(bridge(&status)["why"], Value::Null);
    supervisor.wait_for_state("idle", SOON);

    // Before a word is said, the load that every session has.
    let loaded = |status: &Value| {
        let base = bridge(status)["base_tokens"].as_u64();
        base.is_some_and(|base| base > 1_000)
    };
    let status = supervisor.wait_for_status(loaded, SOON);
    assert_eq!(status["context"]["used"], Value::Null, "an estimate");
    let rows = bridge(&status)["categories"].as_array().unwrap();
    assert!(rows.iter().any(|row| row["kind"] == "free"), "{rows:?}");

    supervisor.keys(["half a thought"]);
    wait_for(&supervisor, |bridge| bridge["draft_characters"] == 14);
    supervisor.keys([key::CTRL_U]);
    wait_for(&supervisor, |bridge| bridge["draft_characters"] == 0);

    supervisor.prompt("step one");
    wait_for_figure(&supervisor, 18_000);
    let status = wait_for(&supervisor, |bridge| bridge["turn_runs"] == false);
    assert_eq!(bridge(&status)["prompt_origin"], "composer");

    // A turn that is stopped by its person ends for the bridge too, where no hook says so.
    supervisor.prompt("step two");
    wait_for(&supervisor, |bridge| bridge["turn_runs"] == true);
    supervisor.keys([key::ESC]);
    wait_for(&supervisor, |bridge| bridge["turn_runs"] == false);
}

#[test]
#[ignore = "live: needs PITSTOP_CLAUDE"]
fn the_figure_of_the_real_client_s_bridge_follows_within_a_turn_and_into_the_next_session() {
    assert!(is_at_least(MODS_FROM), "this client runs no mods");
    let launch = live().agent_args(["--allowed-tools", "Bash(true)"]);
    launch.api().report_usage([30_000, 31_000, 32_000, 19_000]);
    let shell = || Answer::shell("true");
    launch.api().answer([shell(), shell(), Answer::Stall]);
    let supervisor = launch.start();
    wait_for(&supervisor, |bridge| bridge["state"] == "in_force");
    supervisor.wait_for_state("idle", SOON);
    supervisor.prompt("read the dates");
    // Two tools have ended, the turn has not.
    let status = wait_for_figure(&supervisor, 31_000);
    assert_eq!(bridge(&status)["turn_runs"], true);
    assert_eq!(launch.api().wait_for_calls(3, SOON).len(), 3);
    supervisor.keys([key::ESC]);
    wait_for(&supervisor, |bridge| bridge["turn_runs"] == false);
    let before = supervisor.status()["session_id"].clone();
    supervisor.keys([key::CTRL_U]);
    wait_for(&supervisor, |bridge| bridge["draft_characters"] == 0);
    supervisor.prompt("/clear");
    let cleared =
        |status: &Value| status["session_id"] != before && bridge(status)["state"] == "in_force";
    supervisor.wait_for_status(cleared, SOON);
    supervisor.prompt("again");
    wait_for_figure(&supervisor, 19_000);
}

#[test]
#[ignore = "live: needs PITSTOP_CLAUDE"]
fn a_client_without_the_bridge_goes_on_and_says_why() {
    // A client that is too old does not run mods; a newer one not with this flag.
    let (launch, why) = if is_at_least(MODS_FROM) {
        (live().agent_args(["--safe-mode"]), "flag")
    } else {
        (live(), "too_old")
    };
    launch.api().report_usage([42_000]);
    let supervisor = launch.start();
    supervisor.wait_for_state("idle", SOON);
    supervisor.prompt("step one");
    launch.api().wait_for_calls(1, SOON);
    let used = |status: &Value| {
        // With the output, where the status line or the transcript speaks.
        let used = status["context"]["used"].as_u64();
        used.is_some_and(|used| used.abs_diff(42_000) < 100)
    };
    supervisor.wait_for_status(used, SOON);
    let status = wait_for(&supervisor, |bridge| bridge["state"] == "absent");
    assert_eq!(bridge(&status)["why"], why);
    assert!(bridge(&status)["reason"].as_str().unwrap().len() > 10);
    let doctor = supervisor.run(&["doctor"]);
    let text = String::from_utf8_lossy(&doctor.stdout).into_owned();
    let line = text.lines().find(|line| line.contains("bridge"));
    assert!(line.is_some(), "{text}");
}

#[test]
#[ignore = "live: needs PITSTOP_CLAUDE"]
fn a_client_whose_hooks_are_switched_off_goes_on_without_the_bridge() {
    if !is_at_least(MODS_FROM) {
        return;
    }
    let launch = live().agent_args(["--settings", r#"{"disableAllHooks":true}"#]);
    let supervisor = launch.start();
    supervisor.wait_for_state("idle", SOON);
    let status = wait_for(&supervisor, |bridge| bridge["state"] == "absent");
    assert_eq!(bridge(&status)["why"], "no_hello");
    supervisor.prompt("step one");
    let calls = launch.api().wait_for_calls(1, SOON);
    assert_eq!(calls.len(), 1);
}

#[test]
#[ignore = "live: needs PITSTOP_CLAUDE"]
fn a_bridge_that_is_switched_off_is_not_loaded() {
    let supervisor = live().set("agent.bridge=false").start();
    let status = wait_for(&supervisor, |bridge| bridge["state"] == "absent");
    assert_eq!(bridge(&status)["why"], "switched_off");
    let mods = supervisor.launch.project().join(".pitstop");
    let written = walk(&mods)
        .into_iter()
        .any(|path| path.ends_with("register.js"));
    assert!(!written);
}

#[test]
#[ignore = "live: needs PITSTOP_CLAUDE"]
fn a_rebooted_session_has_a_bridge_of_its_own_and_nothing_large_is_left() {
    assert!(is_at_least(MODS_FROM), "this client runs no mods");
    let launch = live();
    let supervisor = launch.start();
    wait_for(&supervisor, |bridge| bridge["state"] == "in_force");
    supervisor.wait_for_state("idle", SOON);
    supervisor.prompt("step one");
    supervisor.wait_until("a call", || !launch.api().main_calls().is_empty(), SOON);
    supervisor.wait_for_state("idle", SOON);
    crate::reboot::reboot(&supervisor);
    supervisor.wait_for_iteration(2, SOON);
    supervisor.wait_for_status(
        |status| status["iteration"] == 2 && bridge(status)["state"] == "in_force",
        SOON,
    );
    let files = walk(&launch.project().join(".pitstop/runs"));
    let mods = files
        .iter()
        .filter(|path| path.components().any(|part| part.as_os_str() == "bridge"));
    let sizes: Vec<u64> = mods
        .map(|path| path.metadata().map_or(0, |file| file.len()))
        .collect();
    assert_eq!(sizes.len(), 2 * pitstop::bridge::FILES.len(), "{files:?}");
    assert!(sizes.iter().sum::<u64>() < 64 * 1024, "{sizes:?}");
}

/// All files below a directory.
fn walk(directory: &std::path::Path) -> Vec<std::path::PathBuf> {
    let entries = std::fs::read_dir(directory).into_iter().flatten().flatten();
    entries
        .flat_map(|entry| {
            let path = entry.path();
            if path.is_dir() {
                walk(&path)
            } else {
                vec![path]
            }
        })
        .collect()
}

#[test]
#[ignore = "live: needs PITSTOP_CLAUDE"]
fn the_agent_may_not_write_what_its_client_was_given() {
    let launch = Launch::live_without_mode()
        .agent_args(["--permission-mode", "acceptEdits"])
        .set("reboot.mode=\"manual\"");
    let supervisor = launch.start();
    supervisor.wait_for_state("idle", SOON);
    let settings = walk(&launch.project().join(".pitstop/runs"))
        .into_iter()
        .find(|path| path.ends_with("settings.json"))
        .expect("the session's settings");
    let theirs = settings.with_file_name("bridge").join("pitstop/hooks/x.js");
    let own = launch.project().join("own.txt");
    let write = |path: &std::path::Path| Answer::Tool {
        name: "Write".into(),
        input: json!({"file_path": path, "content": "x"}),
    };
    let done = Answer::text("Done.");
    launch.api().answer([write(&theirs), write(&own), done]);
    supervisor.prompt("write");
    supervisor.wait_until("the agent's own file", || own.exists(), SOON);
    assert!(!theirs.exists(), "the agent has changed its client's mods");
}
