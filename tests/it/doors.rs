//! The doors of a real supervisor: what scripts ask and order, and what a good moment brings.

use std::{
    path::PathBuf,
    time::{Duration, Instant},
};

use pitstop_server::client::ApiClient;
use serde_json::{Value, json};

use crate::{
    kit::{
        events::Events,
        home::Home,
        supervisor::{Launch, SOON, key, remove, session_of},
    },
    reboot::reboot,
};

fn control_file(home: &Home) -> PathBuf {
    let mut files = std::fs::read_dir(home.path("state/pitstop/run")).unwrap();
    let is_control = |path: &PathBuf| path.extension().is_some_and(|end| end == "control");
    files
        .find_map(|file| Some(file.unwrap().path()).filter(is_control))
        .unwrap()
}

fn soon() -> Instant {
    Instant::now() + Duration::from_secs(60)
}

fn get(home: &Home, path: &str) -> (u16, String) {
    let client = ApiClient::from_file(&control_file(home)).unwrap();
    let answer = client.get(path, soon()).unwrap();
    (answer.status, String::from_utf8(answer.body).unwrap())
}

fn post(home: &Home, path: &str, body: &Value) -> (u16, Value) {
    let client = ApiClient::from_file(&control_file(home)).unwrap();
    let answer = client
        .post(path, body.to_string().as_bytes(), soon())
        .unwrap();
    (answer.status, serde_json::from_slice(&answer.body).unwrap())
}

const SHA: &str = "0123456789abcdef0123456789abcdef01234567";

#[test]
fn scripts_are_answered_and_recorded() {
    let supervisor = Launch::quiet_demo()
        .env("PITSTOP_DEMO_USAGE", "90000")
        .set("guard.warn=60")
        .start();
    let home = supervisor.launch.the_home();
    supervisor.wait_for_state("idle", SOON);
    let known = json!({"used_tokens": 90_000, "inferred_task": "port it", "inferred_context": "half\ndone"});
    let (status, body) = post(home, "/context/auto-save", &known);
    assert_eq!(status, 202, "{body}");
    assert_eq!(body["status"], "saved");
    let listed = supervisor
        .launch
        .command(&["restore", "--list", "--json"])
        .output();
    let listed: Value = serde_json::from_slice(&listed.unwrap().stdout).unwrap();
    let one = &listed["checkpoints"][0];
    assert_eq!(
        (&one["id"], &one["task"]),
        (&body["checkpoint_id"], &json!("port it"))
    );
    assert_eq!(one["auto_save"], known);
    assert_eq!(body["restart_command"], "pitstop restore project");
    supervisor.prompt("read the dates");
    supervisor.wait_for_status(|status| status["context"]["used"] == 90_000);
    let (status, body) = get(home, "/context/usage");
    let live: Value = serde_json::from_str(&body).unwrap();
    assert_eq!(
        (status, &live["percent"], &live["status"]),
        (200, &50.0.into(), &"warning".into())
    );
    // A calculator, by this configuration's thresholds.
    let (_, body) = get(home, "/context/usage?used_tokens=110000&max_tokens=200000");
    let asked: Value = serde_json::from_str(&body).unwrap();
    assert_eq!(
        asked,
        json!({"used": 110_000, "max": 200_000, "usable": 180_000, "percent": 61.1, "status": "critical",
            "action": {"type": "save", "message": asked["action"]["message"], "auto": false}})
    );
    let report = json!({"environment": "project", "commit_sha": SHA, "commit_message": "x",
        "branch": "main", "files_changed": 2});
    let (status, body) = post(home, "/hooks/git-commit", &report);
    let session = supervisor.status()["session_id"].clone();
    assert_eq!(
        (status, body),
        (
            202,
            json!({"status": "saved", "known": false, "session_id": session, "commit": &SHA[..8]})
        )
    );
    let (status, body) = post(
        home,
        "/hooks/test-result",
        &json!({"environment": "q", "passed": true, "failed_tests": 0}),
    );
    assert_eq!(
        (status, body),
        (
            202,
            json!({"status": "saved", "known": false, "session_id": session, "tests_passed": true,
                "unknown_fields": ["failed_tests"]})
        )
    );
    let (status, body) = get(
        home,
        "/api/sessions/0b1c2d3e-0000-4000-8000-000000000000/handoff",
    );
    assert!(
        status == 404 && body.contains("the store knows no session 0b1c2d3e-"),
        "{body}"
    );
    // The figure comes before the turn's end.
    supervisor.wait_for_state("idle", SOON);
    let (_, metrics) = get(home, "/metrics");
    for line in [
        "pitstop_context_used_tokens 90000",
        "pitstop_context_level{level=\"warning\"} 1",
        "pitstop_turns_total 1",
        "pitstop_commits_total 1",
        "pitstop_info{version=\"0.1.0\",agent=\"demo\"} 1",
    ] {
        assert!(metrics.lines().any(|one| one == line), "{line}\n{metrics}");
    }
    let hooks = |line: &str| {
        line.strip_prefix("pitstop_hook_seconds_count ")
            .map(str::to_owned)
    };
    let hooks = metrics.lines().find_map(hooks).unwrap();
    assert!(hooks.parse::<u64>().unwrap() >= 3, "{metrics}");
}

#[test]
fn a_text_is_said_by_command_and_refused_while_a_turn_runs() {
    let supervisor = Launch::quiet_demo()
        .env("PITSTOP_DEMO_PACE_MS", "400")
        .start_idle();
    let mut events = Events::of(supervisor.launch.the_home());
    let output = supervisor.run(&["ctl", "say", "hello from a script"]);
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    assert_eq!(output.stdout, b"it is typed into the agent's prompt\n");
    events.wait_for("hook", |hook| hook["event"] == "UserPromptSubmit", SOON);
    supervisor.wait_for_text("hello from a script", SOON);
    let output = supervisor.run(&["ctl", "say", "too early"]);
    let reported = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(1), "{reported}");
    assert!(
        reported.contains("not a safe moment: wait for the turn to end"),
        "{reported}"
    );
    events.wait_for("hook", |hook| hook["event"] == "Stop", SOON);
    // The turn is over once the agent says so itself, a moment later.
    supervisor.wait_for_state("idle", SOON);
    let output = supervisor.run_with_input(&["ctl", "say", "-"], b"from a pipe");
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    supervisor.wait_for_text("from a pipe", SOON);
    for wrong in [
        &["ctl", "say"][..],
        &["ctl", "save", "me"],
        &["ctl", "shout"],
    ] {
        assert_eq!(supervisor.run(wrong).status.code(), Some(2), "{wrong:?}");
    }
    let long = "x".repeat(70_000);
    let output = supervisor.run_with_input(&["ctl", "say", "-"], long.as_bytes());
    assert_eq!(output.status.code(), Some(1));
    assert!(
        String::from_utf8_lossy(&output.stderr).contains("expected a text of at most 65536 bytes")
    );
}

#[test]
fn behind_the_warn_line_a_commit_asks_with_its_reason() {
    let supervisor = Launch::quiet_demo()
        .env("PITSTOP_DEMO_USAGE", "130000")
        .start();
    let home = supervisor.launch.the_home();
    supervisor.wait_for_state("idle", SOON);
    supervisor.prompt("read the dates");
    supervisor.wait_for_status(|status| {
        status["context"]["used"] == 130_000 && status["agent"]["state"] == "idle"
    });
    assert_eq!(supervisor.status()["reboot"]["phase"], "idle");
    let report =
        json!({"commit_sha": SHA, "commit_message": "parser: read dates", "branch": "main"});
    assert_eq!(post(home, "/hooks/git-commit", &report).0, 202);
    let status = supervisor.wait_for_phase("review", SOON);
    assert_eq!(status["reboot"]["reason"], "breakpoint");
    let reason = "Good moment to reboot: commit 0123456 parser: read dates";
    supervisor.wait_for_text(reason, SOON);
}

#[test]
fn the_handoff_of_every_session_of_the_store_is_served() {
    let launch = Launch::manual_demo("# Scratchpad\n\n## Current Plan\n- [ ] change the bulb\n");
    let supervisor = launch.start();
    let home = supervisor.launch.the_home();
    let first = session_of(&supervisor.wait_for_state("idle", SOON));
    let (shown, _) = reboot(&supervisor);
    supervisor.wait_for_phase("idle", SOON);
    let second = session_of(&supervisor.wait_for_state("idle", SOON));
    let of = |session: &str| {
        let (status, body) = get(home, &format!("/api/sessions/{session}/handoff"));
        let report: Value = serde_json::from_str(&body).unwrap();
        (status, report)
    };
    // From the store: the files may be gone.
    remove(&supervisor.launch.project().join(".pitstop/runs"));
    let (status, given) = of(&first);
    assert_eq!(
        (status, &given["kind"]),
        (200, &"given".into()),
        "{given:#}"
    );
    assert_eq!(given["text"], shown.as_str());
    assert_eq!(given["session_id"], first.as_str());
    assert_eq!(of(&second.to_uppercase()).1["kind"], "present");
    supervisor.quit();

    // A later run serves them too, and what a session was given where it handed over nothing itself.
    let supervisor = supervisor.launch.start_idle();
    assert_eq!(of(&first).1, given);
    let (status, received) = of(&second);
    assert_eq!(
        (status, &received["kind"]),
        (200, &"received".into()),
        "{received:#}"
    );
    assert_eq!(received["text"], given["text"]);
    // And so does the history: behind this run's iteration stand those of the run before, newest first.
    supervisor.keys([key::F6, "\x1b[B", "\r"]);
    supervisor.wait_for_text("Handoff it was given", SOON);
    supervisor.keys(["\x1b[B"]);
    supervisor.wait_for_text("Handoff it gave", SOON);
    let (status, none) = of("0b1c2d3e-0000-4000-8000-000000000000");
    assert_eq!(status, 404, "{none}");
    assert_eq!(of("yesterday").0, 404);
}
