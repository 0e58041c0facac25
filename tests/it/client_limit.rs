//! Where the client itself compacts, and that a reboot comes before it.

use std::fs;

use serde_json::{Value, json};

use crate::kit::{
    client::is_at_least,
    shape::Shape,
    side_by_side::side_by_side,
    supervisor::{Launch, SOON, Supervisor},
};

/// The model of these sessions: its window has a million tokens, so that only what is set brings the client's point down.
const MODEL: &str = "claude-opus-4-8";

/// An auto-compact window of 200 000 tokens, by which the client compacts from 167 000 on.
const WINDOW: u64 = 200_000;

fn live() -> Launch {
    Launch::live()
        .agent_args(["--model", MODEL])
        // By itself the compact line would be low enough.
        .set("guard.compact_tokens=0")
        .set("reboot.mode=\"auto\"")
        .set("reboot.auto_delay=\"200ms\"")
        .set("reboot.typing_quiet=\"300ms\"")
        .notes("# Scratchpad\n\n## Current Plan\n- [ ] write the store\n")
}

/// Two turns of eight calls of tools: the second one passes pitstop's line, and ends below the client's own.
fn two_turns(launch: Launch) -> Launch {
    let mut shape = Shape::sessions(2, 8, 20_000, 100_000);
    for step in &mut shape.turns[1] {
        step.growth = step.growth * 9 / 16;
    }
    launch.playing(&shape)
}

/// The client's own settings file of the user.
fn user_settings(launch: &Launch, settings: &Value) {
    let directory = launch.the_home().claude_dir();
    fs::create_dir_all(&directory).expect("a directory");
    fs::write(directory.join("settings.json"), settings.to_string()).expect("written");
}

#[track_caller]
fn wait_for_limit(supervisor: &Supervisor, origin: &str) -> Value {
    supervisor.wait_for_status(|status| {
        let context = &status["context"];
        context["window"] == 1_000_000 && context["client_limit"]["origin"] == origin
    })
}

/// The lines lie below the client's point within a turn.
#[track_caller]
fn the_lines_are_lowered(launch: &Launch, origin: &str) -> Supervisor {
    let supervisor = launch.start_idle();
    supervisor.prompt("the first");
    let status = wait_for_limit(&supervisor, origin);
    let context = &status["context"];
    assert_eq!(context["client_limit"]["at"], 167_000, "{context}");
    assert_eq!(context["client_limit"]["act"], "compacts", "{context}");
    assert_eq!(context["lines"]["compact"], 141_950, "{context}");
    assert_eq!(context["lines"]["lowered"], true, "{context}");
    supervisor.wait_for_text("lowered: Claude compacts at 167k", SOON);
    supervisor
}

#[test]
#[ignore = "live: needs PITSTOP_CLAUDE"]
fn the_reboot_comes_before_the_compaction_that_a_flag_brings() {
    let launch = two_turns(live().agent_args(["--autocompact", "200k"]));
    let supervisor = the_lines_are_lowered(&launch, "--autocompact");
    supervisor.wait_for_state("idle", SOON);
    supervisor.prompt("the second");
    supervisor.wait_for_iteration(2, SOON * 2);
    let history = supervisor.history();
    assert_eq!(history["iterations"][1]["cause"], "threshold", "{history}");
    assert_eq!(history["iterations"][0]["compactions"], 0, "{history}");
    let goes_on = || !launch.api().played().seams().is_empty();
    supervisor.wait_until("the next session's request", goes_on);
    let played = launch.api().played();
    assert_eq!(played.summaries(), 0);
    let before = played.seams()[0].before.tokens;
    assert!((141_950..167_000).contains(&before), "{before}");
}

#[test]
#[ignore = "live: needs PITSTOP_CLAUDE"]
fn the_lines_are_below_the_compaction_that_a_setting_or_a_variable_brings() {
    let by_setting = two_turns(live());
    let of_model = json!({ "modelSettings": { MODEL: { "autoCompactWindow": WINDOW } } });
    user_settings(&by_setting, &of_model);
    let variable = "CLAUDE_CODE_AUTO_COMPACT_WINDOW";
    let by_variable = two_turns(live().env(variable, WINDOW.to_string()));
    let both = [(by_setting, "your settings"), (by_variable, variable)];
    side_by_side(both, |(launch, origin)| {
        drop(the_lines_are_lowered(&launch, origin));
    });
}

/// A session in whose first turn the client's default counts; then the user's settings have another limit, and a second turn
/// follows.
fn settings_change(launch: &Launch) -> Supervisor {
    launch
        .api()
        .report_usage([100_000, 101_000, 155_000, 156_000]);
    let supervisor = launch.start_idle();
    supervisor.prompt("the first");
    wait_for_limit(&supervisor, "its default");
    supervisor.wait_for_state("idle", SOON);
    user_settings(launch, &json!({ "autoCompactWindow": WINDOW }));
    supervisor.prompt("the second");
    supervisor
}

#[test]
#[ignore = "live: needs PITSTOP_CLAUDE"]
fn a_setting_that_changes_while_the_client_runs_is_followed() {
    let launch = live()
        .set("reboot.mode=\"manual\"")
        .set("agent.bridge=false");
    let supervisor = settings_change(&launch);
    let status = wait_for_limit(&supervisor, "your settings");
    assert_eq!(status["context"]["client_limit"]["at"], 167_000);
}

/// The client reads its limit once, at its start (2.1.330), and reports it by the bridge; which of the two comes first at the end
/// of the turn is open, so the next one decides.
#[test]
#[ignore = "live: needs PITSTOP_CLAUDE"]
fn what_the_client_reports_counts_more_than_settings_that_changed() {
    assert!(is_at_least(287), "this client runs no mods");
    let launch = live().set("reboot.mode=\"manual\"");
    let supervisor = settings_change(&launch);
    supervisor.wait_for_status(|status| {
        status["context"]["used"] == 101_000 && status["agent"]["state"] == "idle"
    });
    supervisor.prompt("the third");
    let status = wait_for_limit(&supervisor, "its own figure");
    assert_eq!(status["context"]["client_limit"]["at"], 967_000);
}

/// The real client with a window that pitstop does not know of, as a server's setting would be.
fn with_a_window_of_its_own() -> Launch {
    let launch = live().set("reboot.mode=\"manual\"");
    let script = format!(
        "#!/bin/sh\nexport CLAUDE_CODE_AUTO_COMPACT_WINDOW={WINDOW}\nexec {} \"$@\"\n",
        crate::kit::client::live_client().display()
    );
    let client = launch.the_home().program("client", &script);
    launch.client(&client)
}

/// Its footer shows it.
#[test]
#[ignore = "live: needs PITSTOP_CLAUDE"]
fn the_client_s_own_words_are_believed() {
    let launch = with_a_window_of_its_own().set("agent.bridge=false");
    launch.api().report_usage([100_000, 155_000]);
    let supervisor = launch.start_idle();
    supervisor.prompt("the first");
    wait_for_limit(&supervisor, "its default");
    supervisor.wait_for_state("idle", SOON);
    supervisor.prompt("the second");
    supervisor.wait_for_text("% until auto-compact", SOON);
    let status = wait_for_limit(&supervisor, "its screen");
    let at = status["context"]["client_limit"]["at"]
        .as_u64()
        .expect("a figure");
    assert!((165_000..=167_000).contains(&at), "{at}");
}
