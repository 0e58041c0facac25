//! How full the context window is, from the client's own mouth to `pitstop status --json`.

use std::{
    fs,
    io::Write as _,
    path::{Path, PathBuf},
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use serde_json::{Value, json};

use crate::kit::{
    home::Home,
    supervisor::{Launch, SOON, Supervisor},
};

/// How late a figure may be after the client's own status line: a second on a machine with nothing else to do.
const LATEST: Duration = Duration::from_secs(3);

/// The contexts that the script walks through, in tokens, and their levels of 180 000 usable.
const WALK: [(u64, &str, f64); 3] = [
    (100_000, "warning", 55.6),
    (130_000, "critical", 72.2),
    (155_000, "overflow", 86.1),
];

/// A status line command of the user's own that notes when it ran and what it was given.
///
/// It is also how the test knows when the client itself drew its line: ours runs it.
fn own_status_line(launch: &Launch, config_dir: &Path) {
    let text = "#!/bin/sh\nread -r line\nprintf '%s %s\\n' \"$(date +%s%N)\" \"$line\" >>\"$HOME/lines\"\necho 'my own line'\n";
    let script = launch.the_home().program("line.sh", text);
    fs::create_dir_all(config_dir).unwrap();
    let settings = json!({ "statusLine": { "type": "command", "command": script } });
    fs::write(config_dir.join("settings.json"), settings.to_string()).unwrap();
}

/// When the client's status line first told this context, with its payload.
fn reported_at(supervisor: &Supervisor, used: u64) -> Option<(SystemTime, Value)> {
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

/// A level as the panel's title has it.
fn shown_as(level: &str) -> &'static str {
    match level {
        "healthy" => "Context · ok",
        "warning" => "Context · notice",
        "critical" => "Context · warn",
        _ => "Context · compact",
    }
}

/// Walks a session through the figures; the levels are those of a window of `window` tokens.
fn the_figures_are_shown(launch: &Launch, config_dir: &Path, window: u64) {
    own_status_line(launch, config_dir);
    let supervisor = launch.start_idle();
    for (turn, (used, level, percent)) in WALK.into_iter().enumerate() {
        supervisor.prompt(&format!("step number {turn}"));
        let shows = |status: &Value| {
            let context = &status["context"];
            // The real client says the same by the bridge.
            matches!(context["source"].as_str(), Some("bridge" | "status_line"))
                && context["used"]
                    .as_u64()
                    .is_some_and(|found| within_a_percent(found, used))
        };
        let status = supervisor.wait_for_status(shows);
        let seen = SystemTime::now();
        supervisor.wait_until("the user's own status line", || {
            reported_at(&supervisor, used).is_some()
        });
        let (at, payload) = reported_at(&supervisor, used).unwrap();
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
            |screen| screen.contains(shown_as(level)) && screen.contains("my own line"),
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
fn the_demo_s_usage_is_shown_with_level_and_percent() {
    let launch = demo("claude-demo-1");
    let dir = launch.the_home().path("state/pitstop/demo");
    the_figures_are_shown(&launch, &dir, 200_000);
}

#[test]
fn the_same_usage_of_a_demo_with_a_million_tokens_is_healthy() {
    let launch = demo("claude-demo-1[1m]").set("guard.preset=\"late\"");
    let dir = launch.the_home().path("state/pitstop/demo");
    the_figures_are_shown(&launch, &dir, 1_000_000);
}

#[test]
#[ignore = "live: needs PITSTOP_CLAUDE"]
fn the_real_client_s_usage_is_shown_with_level_and_percent() {
    let launch = live("claude-sonnet-4-5");
    let dir = launch.the_home().claude_dir();
    the_figures_are_shown(&launch, &dir, 200_000);
}

#[test]
#[ignore = "live: needs PITSTOP_CLAUDE"]
fn the_same_usage_of_a_real_client_with_a_million_tokens_is_healthy() {
    let launch = live("claude-sonnet-4-5[1m]").set("guard.preset=\"late\"");
    let dir = launch.the_home().claude_dir();
    the_figures_are_shown(&launch, &dir, 1_000_000);
}

/// The transcript of the present session.
fn transcript(supervisor: &Supervisor) -> PathBuf {
    let status = supervisor.status();
    let name = format!("{}.jsonl", status["session_id"].as_str().unwrap());
    let home = supervisor.launch.the_home();
    let found = || {
        home.transcripts()
            .into_iter()
            .chain(demo_transcripts(home))
            .find(|path| path.ends_with(&name))
    };
    supervisor.wait_until("the transcript", || found().is_some());
    found().unwrap()
}

fn demo_transcripts(home: &Home) -> Vec<PathBuf> {
    let projects = fs::read_dir(home.path("state/pitstop/demo/projects"))
        .into_iter()
        .flatten()
        .flatten();
    projects
        .flat_map(|project| fs::read_dir(project.path()).into_iter().flatten().flatten())
        .map(|file| file.path())
        .collect()
}

fn append(path: &Path, bytes: &[u8]) {
    let mut file = fs::OpenOptions::new().append(true).open(path).unwrap();
    file.write_all(bytes).unwrap();
}

#[track_caller]
fn wait_for_figure(supervisor: &Supervisor, source: &str, used: u64) -> Value {
    let shows = |status: &Value| {
        let context = &status["context"];
        let found = context["used"].as_u64();
        context["source"] == source && found.is_some_and(|found| within_a_percent(found, used))
    };
    supervisor.wait_for_status(shows)
}

/// Without a status line the transcript counts; torn and endless lines cost nothing but themselves; when it
/// vanishes there is still the estimate.
fn the_next_source_takes_over(launch: Launch) {
    let supervisor = launch.losing("statusLine").start_idle();
    supervisor.prompt("step one");
    let status = wait_for_figure(&supervisor, "transcript", 100_000);
    assert_eq!(status["context"]["level"], "warning");
    supervisor.wait_for_state("idle", SOON);

    let path = transcript(&supervisor);
    let before = crate::pane::memory(&supervisor, "VmHWM:");
    let mut bad =
        b"{\"type\":\"assistant\",\"message\":{\"usage\":{\"input_to\n\xff\xfe\0\n".to_vec();
    bad.extend_from_slice(b"{\"type\":\"user\",\"message\":{\"role\":\"user\",\"content\":\"");
    bad.resize(bad.len() + 50_000_000, b'x');
    bad.extend_from_slice(b"\"}}\n");
    append(&path, &bad);
    supervisor.wait_for_log("lines of the transcript were skipped", SOON);
    supervisor.prompt("step two");
    let status = wait_for_figure(&supervisor, "transcript", 130_000);
    assert_eq!(status["context"]["level"], "critical");
    supervisor.wait_for_state("idle", SOON);
    let grown = crate::pane::memory(&supervisor, "VmHWM:") - before;
    eprintln!("memory grew by {grown} KiB for a line of 50 MB");
    assert!(grown < 95 * 1024, "{grown} KiB");

    fs::remove_file(&path).unwrap();
    // The client's last records may come after that, and begin the file again before anybody has seen that it was gone.
    let noticed = || {
        supervisor
            .log()
            .contains("the transcript cannot be followed")
            || (path.exists() && supervisor.status()["context"]["used"] != 130_000)
    };
    supervisor.wait_until("the file is missed, or followed again", noticed);
    supervisor.prompt("step three");
    // The client begins the file again, the demo does not.
    let status = supervisor.wait_for_status(|status| {
        let context = &status["context"];
        let used = context["used"].as_u64().unwrap_or(0);
        context["source"] == "estimate"
            || context["source"] == "transcript" && within_a_percent(used, 155_000)
    });
    assert!(status["context"]["used"].as_u64() > Some(0));
    supervisor.wait_for_state("idle", SOON);
}

#[test]
fn the_next_source_takes_over_on_the_demo() {
    the_next_source_takes_over(demo("claude-demo-1").set("agent.bridge=false"));
}

#[test]
#[ignore = "live: needs PITSTOP_CLAUDE"]
fn the_next_source_takes_over_on_the_real_client() {
    the_next_source_takes_over(live("claude-sonnet-4-5").set("agent.bridge=false"));
}

#[test]
fn a_status_line_that_falls_silent_gives_way_to_the_transcript() {
    let supervisor = demo("claude-demo-1").start_idle();
    supervisor.prompt("step one");
    wait_for_figure(&supervisor, "status_line", 100_000);
    supervisor.wait_for_status(|status| status["context"]["age_ms"].as_u64() > Some(5_500));
    // The session goes on, and the status line says nothing about it.
    let record = json!({
        "type": "assistant", "isSidechain": false, "uuid": "u", "parentUuid": null,
        "message": {
            "id": "msg_later", "type": "message", "role": "assistant", "model": "claude-demo-1",
            "content": [{ "type": "text", "text": "on I go" }], "stop_reason": "end_turn",
            "usage": {
                "input_tokens": 0, "cache_creation_input_tokens": 0,
                "cache_read_input_tokens": 130_000, "output_tokens": 0,
            },
        },
    });
    append(&transcript(&supervisor), format!("{record}\n").as_bytes());
    let status = wait_for_figure(&supervisor, "transcript", 130_000);
    assert_eq!(status["context"]["level"], "critical");
    supervisor.wait_for_text("transcript", SOON);
}

/// A hook as the agent's own would be, but told nothing about us: it finds us by the directory.
#[track_caller]
fn hook(supervisor: &Supervisor, event: &str, payload: &[u8]) {
    let output = supervisor.run_with_input(&["hook", event], payload);
    assert!(output.status.success(), "{output:?}");
    assert!(
        output.stdout.is_empty() && output.stderr.is_empty(),
        "{output:?}"
    );
}

#[test]
fn a_hook_without_our_address_finds_us_by_the_directory() {
    let supervisor = demo("claude-demo-1").start();
    let status = supervisor.wait_for_state("idle", SOON);
    let session = status["session_id"].as_str().unwrap();
    let payload = |event: &str| {
        let payload = json!({
            "session_id": session, "hook_event_name": event, "cwd": supervisor.launch.project(),
            "transcript_path": "/nowhere.jsonl", "prompt": "by hand",
        });
        payload.to_string().into_bytes()
    };
    hook(
        &supervisor,
        "UserPromptSubmit",
        &payload("UserPromptSubmit"),
    );
    assert_eq!(supervisor.status()["agent"]["state"], "busy");
    hook(&supervisor, "Stop", &payload("Stop"));
    assert_eq!(supervisor.status()["agent"]["state"], "idle");
    supervisor.wait_for_log(
        "a transcript outside the agent's own directory is not read",
        SOON,
    );
}

#[test]
fn payloads_that_make_no_sense_are_logged_and_change_nothing() {
    let supervisor = demo("claude-demo-1").start_idle();
    supervisor.prompt("step one");
    wait_for_figure(&supervisor, "status_line", 100_000);
    let before = supervisor.wait_for_state("idle", SOON);

    let deep = "[".repeat(100_000);
    let huge = format!("{{\"session_id\":\"{}\"}}", "x".repeat(3_000_000));
    for payload in [
        "",
        "{",
        "null",
        "[]",
        "\u{fffd}\0",
        "{\"session_id\":7}",
        &deep,
        &huge,
    ] {
        for event in ["Stop", "UserPromptSubmit", "SessionStart", "NoSuchEvent"] {
            hook(&supervisor, event, payload.as_bytes());
        }
        let output = supervisor.run_with_input(&["statusline"], payload.as_bytes());
        assert!(output.status.success(), "{output:?}");
    }
    let stranger = json!({
        "session_id": "8f14e45f-ceea-467f-a8b5-2a8b9d3c1e70", "hook_event_name": "UserPromptSubmit",
        "transcript_path": transcript(&supervisor), "cwd": "/", "prompt": "not of this session",
    });
    for line in [
        "a hook payload was ignored",
        "a status line payload was ignored",
        "an event of another session was ignored",
    ] {
        // A hook gives up after 300 ms, which a crowded machine can use up: it is sent until it is received.
        let received = || {
            hook(
                &supervisor,
                "UserPromptSubmit",
                stranger.to_string().as_bytes(),
            );
            hook(&supervisor, "Stop", b"{");
            supervisor.run_with_input(&["statusline"], b"{");
            supervisor.log().contains(line)
        };
        supervisor.wait_until(line, received);
    }
    let after = supervisor.status();
    for fact in [
        "/session_id",
        "/agent/state",
        "/context/used",
        "/context/source",
        "/iteration",
    ] {
        assert_eq!(before.pointer(fact), after.pointer(fact), "{fact}");
    }
    supervisor.prompt("step two");
    wait_for_figure(&supervisor, "status_line", 130_000);
}
