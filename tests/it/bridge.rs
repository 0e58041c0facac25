//! The real client with our mods: what it reports by itself, and that everything goes on where it cannot.

mod answer;
mod broken;
mod compaction;
mod hostile;
mod in_place;

use std::{fs, process::Command};

use serde_json::{Value, json};

use crate::kit::{
    client::{is_at_least, live_client},
    messages_api::{Answer, user_texts},
    supervisor::{Launch, SOON, Supervisor, key},
};

/// The first client that runs mods, by its patch number.
pub const MODS_FROM: u32 = 287;

fn live() -> Launch {
    Launch::live().set("reboot.mode=\"manual\"")
}

fn bridge(status: &Value) -> &Value {
    &status["agent"]["bridge"]
}

#[track_caller]
fn wait_for(supervisor: &Supervisor, holds: impl Fn(&Value) -> bool) -> Value {
    supervisor.wait_for_status(|status| holds(bridge(status)))
}

/// The bridge is in force and the agent idle.
#[track_caller]
pub fn wait_until_it_rests(supervisor: &Supervisor) {
    wait_for(supervisor, |bridge| bridge["state"] == "in_force");
    supervisor.wait_for_state("idle", SOON);
}

/// A figure of just so many tokens, by the bridge.
#[track_caller]
fn wait_for_figure(supervisor: &Supervisor, used: u64) -> Value {
    let figure = |status: &Value| {
        let context = &status["context"];
        context["source"] == "bridge" && context["used"] == used
    };
    supervisor.wait_for_status(figure)
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
    let status = supervisor.wait_for_status(loaded);
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
    wait_until_it_rests(&supervisor);
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
    supervisor.wait_for_status(cleared);
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
    let supervisor = launch.start_idle();
    supervisor.prompt("step one");
    launch.api().wait_for_calls(1, SOON);
    let used = |status: &Value| {
        // With the output, where the status line or the transcript speaks.
        let used = status["context"]["used"].as_u64();
        used.is_some_and(|used| used.abs_diff(42_000) < 100)
    };
    supervisor.wait_for_status(used);
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

/// The client checks mods by reading them: what it does not follow, such as a second handler of an event, it does not load.
#[test]
#[ignore = "live: needs PITSTOP_CLAUDE"]
fn the_real_client_finds_nothing_wrong_with_the_mods() {
    assert!(is_at_least(MODS_FROM), "this client runs no mods");
    let launch = live();
    let mods = launch.the_home().path("mods");
    for (directories, name, text) in pitstop_agent::bridge::FILES {
        let directory = mods.join(directories.join("/"));
        fs::create_dir_all(&directory).expect("a directory");
        let text = pitstop_agent::bridge::text_of(name, text, true);
        fs::write(directory.join(name), &*text).expect("written");
    }
    for plugin in fs::read_dir(&mods).expect("the mods").flatten() {
        let output = Command::new(live_client())
            .args(["plugin", "validate"])
            .arg(plugin.path())
            .env_clear()
            .envs(launch.environment())
            .output()
            .expect("it runs");
        let said = String::from_utf8_lossy(&output.stdout).into_owned();
        let said: String = said.chars().take(1_000).collect();
        assert!(output.status.success(), "{said}");
    }
}

/// All files below a directory.
pub fn walk(directory: &std::path::Path) -> Vec<std::path::PathBuf> {
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
    let supervisor = launch.start_idle();
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
    supervisor.wait_until("the agent's own file", || own.exists());
    assert!(!theirs.exists(), "the agent has changed its client's mods");
}

/// The demo with a bridge of its own, which ends its turns at once.
fn demo() -> Launch {
    Launch::manual_demo("- [ ] go on")
        .env("PITSTOP_DEMO_BRIDGE", "1")
        .env("PITSTOP_DEMO_USAGE", "28000")
}

#[track_caller]
fn say(supervisor: &Supervisor, text: &str) {
    supervisor.wait_for_state("idle", SOON);
    let taken = || {
        let output = supervisor.run_with_input(&["ctl", "say", "-"], text.as_bytes());
        let why = String::from_utf8_lossy(&output.stderr).into_owned();
        let taken = output.status.success();
        let not_yet = ["not a safe moment", "holds a text that was not submitted"];
        assert!(
            taken || not_yet.iter().any(|one| why.contains(one)),
            "{why}"
        );
        taken
    };
    supervisor.wait_until("a safe moment", taken);
}

/// A text of several lines, as no one could type it at once.
const SAID: &str = "second, from a script\n\twith a tab\nand\nfive\nlines";

#[test]
fn the_demo_is_given_prompts_by_its_bridge_as_the_person_s_own() {
    let supervisor = demo().start();
    wait_for(&supervisor, |bridge| bridge["state"] == "in_force");
    say(&supervisor, "first");
    wait_for(&supervisor, |bridge| bridge["prompt_origin"] == "composer");
    wait_for_figure(&supervisor, 28_000);
    say(&supervisor, SAID);
    let prompts = |text: &str| {
        let transcript = transcript_of(&supervisor);
        transcript.matches(&json!(text).to_string()).count()
    };
    supervisor.wait_until("the prompt is kept", || prompts(SAID) > 0);
    supervisor.wait_for_state("idle", SOON);
    assert_eq!((prompts("first"), prompts(SAID)), (1, 1));
    wait_for(&supervisor, |bridge| bridge["prompt_origin"] == "composer");
}

/// The text of the agent's transcripts.
fn transcript_of(supervisor: &Supervisor) -> String {
    let files = walk(&supervisor.launch.the_home().path(""));
    files
        .iter()
        .filter(|path| path.extension().is_some_and(|ending| ending == "jsonl"))
        .filter_map(|path| std::fs::read_to_string(path).ok())
        .collect()
}

/// Types a draft of three lines and reboots over it, until it stands in the next session's prompt box.
#[track_caller]
fn carry_a_draft_over(supervisor: &Supervisor, keys: &[&str]) {
    wait_until_it_rests(supervisor);
    supervisor.keys(keys.iter().copied());
    wait_for(supervisor, |bridge| bridge["draft_characters"] == 13);
    supervisor.review();
    supervisor.keys([key::ENTER]);
    supervisor.wait_for_status_within(SOON * 2, |status| {
        status["iteration"] == 2 && bridge(status)["draft_characters"] == 13
    });
}

#[test]
fn a_draft_is_read_and_filled_by_the_demo_s_bridge() {
    let supervisor = demo().start();
    carry_a_draft_over(&supervisor, &["one", "\n", "two", "\n", "three"]);
    supervisor.wait_for_text("your unsent prompt stands", SOON);
    supervisor.wait_for_log("the bridge is in force", SOON);
}

#[test]
#[ignore = "live: needs PITSTOP_CLAUDE"]
fn the_real_client_is_given_prompts_as_the_person_s_own_in_each_conversation() {
    assert!(is_at_least(MODS_FROM), "this client runs no mods");
    let launch = live();
    let supervisor = launch.start();
    wait_for(&supervisor, |bridge| bridge["state"] == "in_force");
    say(&supervisor, "first, from a script");
    let calls = launch.api().wait_for_calls(1, SOON);
    assert!(calls[0].to_string().contains("# Environment"));
    supervisor.wait_for_text("first, from", SOON);
    assert!(!supervisor.screen().contains("pitstop plugin"));

    say(&supervisor, SAID);
    let calls = launch.api().wait_for_calls(2, SOON);
    let texts = user_texts(&calls[1]);
    assert_eq!(texts.last().map(String::as_str), Some(SAID));
    supervisor.wait_for_state("idle", SOON);
    assert!(!supervisor.screen().contains("pitstop plugin"));

    // A conversation of its own has no reminders yet: they come with the first prompt that is a person's.
    let before = supervisor.status()["session_id"].clone();
    supervisor.prompt("/clear");
    let cleared =
        |status: &Value| status["session_id"] != before && bridge(status)["state"] == "in_force";
    supervisor.wait_for_status(cleared);
    say(&supervisor, "third");
    let calls = launch.api().wait_for_calls(3, SOON);
    assert!(calls[2].to_string().contains("# Environment"));
    supervisor.wait_for_state("idle", SOON);
    assert_eq!(launch.api().main_calls().len(), 3);
}

#[test]
#[ignore = "live: needs PITSTOP_CLAUDE"]
fn a_draft_of_three_lines_stands_in_the_real_client_s_next_session_with_its_cursor() {
    assert!(is_at_least(MODS_FROM), "this client runs no mods");
    let launch = live();
    let supervisor = launch.start();
    wait_until_it_rests(&supervisor);
    supervisor.prompt("step one");
    launch.api().wait_for_calls(1, SOON);
    let left = "\x1b[D";
    let draft = "\x1b[200~one\ntwo\nthree\x1b[201~";
    carry_a_draft_over(&supervisor, &[draft, left, left]);
    supervisor.keys(["X"]);
    supervisor.wait_for_text("thrXee", SOON);
    supervisor.wait_for_state("idle", SOON);
    assert_eq!(
        launch.api().main_calls().len(),
        2,
        "nothing but the handoff"
    );
    // Each of the two sessions has a bridge of its own, and nothing large is left of them.
    let files = walk(&launch.project().join(".pitstop/runs"));
    let mods = files
        .iter()
        .filter(|path| path.components().any(|part| part.as_os_str() == "bridge"));
    let sizes: Vec<u64> = mods
        .map(|path| path.metadata().map_or(0, |file| file.len()))
        .collect();
    assert_eq!(
        sizes.len(),
        2 * pitstop_agent::bridge::FILES.len(),
        "{files:?}"
    );
    assert!(sizes.iter().sum::<u64>() < 64 * 1024, "{sizes:?}");
}
