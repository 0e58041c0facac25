//! How full the context window is, from the client's own mouth to `pitstop status --json`.

use std::{
    fs,
    os::unix::fs::PermissionsExt as _,
    path::Path,
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use serde_json::{Value, json};

use crate::kit::supervisor::{Launch, SOON, Supervisor};

/// How late a figure may be after the client's own status line (issue 2).
const LATEST: Duration = Duration::from_secs(1);

/// The contexts that the script walks through, in tokens, and their levels of 180 000 usable.
const WALK: [(u64, &str, f64); 3] = [
    (100_000, "warning", 55.6),
    (130_000, "critical", 72.2),
    (155_000, "overflow", 86.1),
];

/// A status line command of the user's own that notes when it ran and what it was given.
///
/// It is also how the test knows when the client itself drew its line: ours runs it (DESIGN 9).
fn own_status_line(launch: &Launch, config_dir: &Path) {
    let script = launch.the_home().path("line.sh");
    let text = "#!/bin/sh\nread -r line\nprintf '%s %s\\n' \"$(date +%s%N)\" \"$line\" >>\"$HOME/lines\"\necho 'my own line'\n";
    fs::write(&script, text).unwrap();
    fs::set_permissions(&script, fs::Permissions::from_mode(0o700)).unwrap();
    fs::create_dir_all(config_dir).unwrap();
    let settings = json!({ "statusLine": { "type": "command", "command": script } });
    fs::write(config_dir.join("settings.json"), settings.to_string()).unwrap();
}

/// When the client's status line first told this context, with its payload.
fn told_at(supervisor: &Supervisor, used: u64) -> Option<(SystemTime, Value)> {
    let lines = fs::read_to_string(supervisor.launch.the_home().path("lines")).ok()?;
    lines.lines().find_map(|line| {
        let (nanos, payload) = line.split_once(' ')?;
        let payload: Value = serde_json::from_str(payload).ok()?;
        let usage = payload["context_window"]["current_usage"].as_object()?;
        let sum: u64 = usage.values().filter_map(Value::as_u64).sum();
        let at = UNIX_EPOCH + Duration::from_nanos(nanos.parse().ok()?);
        within_a_percent(sum, used).then_some((at, payload))
    })
}

fn within_a_percent(found: u64, wanted: u64) -> bool {
    found.abs_diff(wanted) * 100 <= wanted
}

/// Walks a session through the figures; the levels are those of a window of `window` tokens.
fn the_figures_are_told(launch: &Launch, config_dir: &Path, window: u64) {
    own_status_line(launch, config_dir);
    let supervisor = launch.start();
    supervisor.wait_for_state("idle", SOON);
    for (turn, (used, level, percent)) in WALK.into_iter().enumerate() {
        supervisor.prompt(&format!("step number {turn}"));
        let shows = |status: &Value| {
            let context = &status["context"];
            context["source"] == "status_line"
                && context["used"]
                    .as_u64()
                    .is_some_and(|found| within_a_percent(found, used))
        };
        let status = supervisor.wait_for_status(shows, SOON);
        let seen = SystemTime::now();
        supervisor.wait_until(
            "the user's own status line",
            || told_at(&supervisor, used).is_some(),
            SOON,
        );
        let (at, payload) = told_at(&supervisor, used).unwrap();
        let late = seen.duration_since(at).unwrap_or_default();
        eprintln!("{used} tokens: {late:?} after the client's own status line");
        assert!(late < LATEST, "{late:?} late for {used} tokens");
        assert_eq!(payload["context_window"]["context_window_size"], window);

        let context = &status["context"];
        assert_eq!(context["window"], window);
        assert_eq!(context["usable"], window - 20_000);
        let (level, percent) = if window == 200_000 {
            (level, percent)
        } else {
            ("healthy", 100.0 * used as f64 / (window - 20_000) as f64)
        };
        assert_eq!(context["level"], level);
        let found = context["percent"].as_f64().unwrap();
        assert!((found - percent).abs() < 1.0, "{found} for {percent}");
        assert!(context["age_ms"].as_u64().unwrap() < 5_000);
        // The human sees the same word and figure.
        supervisor.terminal.wait_for(
            |screen| screen.contains(level) && screen.contains("my own line"),
            SOON,
        );
        supervisor.wait_for_state("idle", SOON);
    }
}

fn demo(model: &str) -> Launch {
    Launch::demo()
        .env("PITSTOP_DEMO_AUTO", "0")
        .env("PITSTOP_DEMO_USAGE", "100000,130000,155000")
        .env("PITSTOP_DEMO_REPLY", "Understood.")
        .set("reboot.mode=\"manual\"")
        .agent_args(["--model", model])
}

fn live(model: &str) -> Launch {
    let launch = Launch::live()
        .set("reboot.mode=\"manual\"")
        .agent_args(["--model", model]);
    launch.api().report_usage(WALK.map(|(used, ..)| used));
    launch
}

#[test]
fn the_demo_s_usage_is_told_with_level_and_percent() {
    let launch = demo("claude-demo-1");
    let dir = launch.the_home().path("state/pitstop/demo");
    the_figures_are_told(&launch, &dir, 200_000);
}

#[test]
fn the_same_usage_of_a_demo_with_a_million_tokens_is_healthy() {
    let launch = demo("claude-demo-1[1m]");
    let dir = launch.the_home().path("state/pitstop/demo");
    the_figures_are_told(&launch, &dir, 1_000_000);
}

#[test]
#[ignore = "live: needs PITSTOP_CLAUDE"]
fn the_real_client_s_usage_is_told_with_level_and_percent() {
    let launch = live("claude-sonnet-4-5");
    let dir = launch.the_home().claude_dir();
    the_figures_are_told(&launch, &dir, 200_000);
}

#[test]
#[ignore = "live: needs PITSTOP_CLAUDE"]
fn the_same_usage_of_a_real_client_with_a_million_tokens_is_healthy() {
    let launch = live("claude-sonnet-4-5[1m]");
    let dir = launch.the_home().claude_dir();
    the_figures_are_told(&launch, &dir, 1_000_000);
}
