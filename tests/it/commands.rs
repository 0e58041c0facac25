//! `pitstop context`: the shell commands of a project's sessions, read from files alone.

use std::{
    fs,
    process::{Command, Output},
};

use serde_json::{Value, json};

use crate::kit::{home::Home, supervisor::PITSTOP};

const FIRST: &str = "0a0b0c0d-0001-4002-8003-000000000001";
const SECOND: &str = "0a0b0c0d-0001-4002-8003-000000000002";

fn context(home: &Home, args: &[&str]) -> Output {
    Command::new(PITSTOP)
        .arg("context")
        .args(args)
        .current_dir(home.project())
        .env_clear()
        .envs(home.env())
        .output()
        .unwrap()
}

fn text(output: &Output) -> String {
    assert!(output.status.success(), "{output:?}");
    String::from_utf8(output.stdout.clone()).unwrap()
}

fn transcript(home: &Home, session: &str, command: &str, printed: &str) {
    let call = json!({"type": "assistant", "sessionId": session, "message": {"content": [
        {"type": "tool_use", "id": "t1", "name": "Bash", "input": {"command": command}}]}});
    let result = json!({"type": "user", "sessionId": session, "toolUseResult": {"stdout": printed, "stderr": ""},
        "message": {"content": [{"type": "tool_result", "tool_use_id": "t1", "content": printed}]}});
    let directory = home.claude_dir().join("projects/anything");
    fs::create_dir_all(&directory).unwrap();
    let file = directory.join(format!("{session}.jsonl"));
    fs::write(file, format!("{call}\n{result}\n")).unwrap();
}

/// A run whose iterations spoke in these sessions.
fn run(home: &Home, sessions: &[Option<&str>]) {
    let directory = home.project().join(".pitstop/runs/20260101-000000-abcdef");
    fs::create_dir_all(&directory).unwrap();
    let iterations: Vec<Value> = sessions
        .iter()
        .enumerate()
        .map(|(n, session)| {
            let mut one = json!({"iteration": n + 1, "started_at": "2026-01-01T00:00:00Z", "tokens": {"input": 0, "output": 0}});
            if let Some(session) = session {
                one["session_id"] = json!(session);
            }
            one
        })
        .collect();
    let meta = json!({"run": "20260101-000000-abcdef", "iterations": iterations});
    fs::write(directory.join("meta.json"), meta.to_string()).unwrap();
}

#[test]
fn the_present_session_is_the_last_one_of_the_newest_run() {
    let home = Home::new().unwrap();
    run(&home, &[Some(FIRST), Some(SECOND)]);
    transcript(&home, FIRST, "make", "old\n");
    transcript(&home, SECOND, "cargo test", "\u{1b}[32mok\u{1b}[0m\n");
    assert_eq!(text(&context(&home, &[])), "$ cargo test\nok\n");
    assert_eq!(
        text(&context(&home, &["--all"])),
        format!(
            "=== Session {FIRST} ===\n$ make\nold\n\n=== Session {SECOND} ===\n$ cargo test\nok\n"
        )
    );
    let json: Value = serde_json::from_str(&text(&context(&home, &["--json"]))).unwrap();
    assert_eq!(json["sessions"][0]["id"], SECOND);
    assert_eq!(json["sessions"][0]["commands"][0]["output"], "ok\n");
    assert_eq!(json["sessions"][1], Value::Null);
}

#[test]
fn an_agent_without_a_transcript_has_its_recording() {
    let home = Home::new().unwrap();
    run(&home, &[None]);
    let iteration = home
        .project()
        .join(".pitstop/runs/20260101-000000-abcdef/iteration-1");
    fs::create_dir_all(&iteration).unwrap();
    let event = json!([
        0.1,
        "o",
        "\u{1b}]133;B\u{7}ls\r\n\u{1b}]133;C\u{7}a\r\n\u{1b}]133;D;0\u{7}"
    ]);
    let header = json!({"version": 2, "width": 80, "height": 24});
    fs::write(iteration.join("pane.cast"), format!("{header}\n{event}\n")).unwrap();
    assert_eq!(text(&context(&home, &[])), "$ ls\na\n");
    assert!(
        text(&context(&home, &["--all"]))
            .starts_with("=== Session 20260101-000000-abcdef/1 ===\n$ ls\n")
    );
}

#[test]
fn a_project_without_sessions_says_so() {
    let home = Home::new().unwrap();
    let output = context(&home, &[]);
    assert_eq!(output.status.code(), Some(1));
    assert!(
        String::from_utf8_lossy(&output.stderr).contains("no session of this project is known")
    );
    assert_eq!(text(&context(&home, &["--json"])), "{\"sessions\":[]}\n");
}
