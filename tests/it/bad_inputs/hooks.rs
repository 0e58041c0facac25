//! What a hook or a status line may send.

use pitstop_agent::{parse_hook, parse_status_line};
use serde_json::{Value, json};

use super::{Item, item, outcomes, shown};

/// Stands between the name of the hook and its payload.
const BEHIND_NAME: u8 = b'\n';

const SESSION: &str = "0b1c2d3e-0000-4000-8000-000000000001";

#[test]
fn whatever_a_hook_sends_is_read_or_refused_with_the_field() {
    insta::assert_snapshot!("bad_hooks", outcomes(&items(), outcome));
}

fn outcome(input: &[u8]) -> String {
    let at = input.iter().position(|byte| *byte == BEHIND_NAME).unwrap();
    let name = std::str::from_utf8(&input[..at]).unwrap();
    let body = &input[at + 1..];
    let found = match name {
        "status line" => parse_status_line(body).map(|line| format!("{line:?}")),
        name => parse_hook(name, body).map(|event| format!("{event:?}")),
    };
    match found {
        Ok(event) => shown(&event.replace(SESSION, "S").replace('"', "'")),
        Err(error) => format!(
            "refused: {}",
            shown(&error.to_string()).replace("\\\"", "\"")
        ),
    }
}

fn payloads() -> [(&'static str, Value); 12] {
    [
        (
            "SessionStart",
            json!({"source": "startup", "model": "m", "transcript_path": "/t"}),
        ),
        ("UserPromptSubmit", json!({"prompt": "go"})),
        (
            "PreToolUse",
            json!({"tool_name": "Bash", "tool_input": {"command": "ls"}, "tool_use_id": "t"}),
        ),
        (
            "PostToolUse",
            json!({"tool_name": "Bash", "tool_input": {"command": "ls"}, "tool_response": {"stdout": "x"}}),
        ),
        (
            "Stop",
            json!({"last_assistant_message": "done", "background_tasks": [{"id": "b", "type": "shell"}]}),
        ),
        (
            "StopFailure",
            json!({"error": "rate_limit", "error_details": "until 14:00"}),
        ),
        (
            "Notification",
            json!({"message": "hey", "notification_type": "idle_prompt"}),
        ),
        ("PermissionRequest", json!({"tool_name": "Bash"})),
        (
            "Elicitation",
            json!({"mcp_server_name": "forms", "message": "Which region?"}),
        ),
        ("PreCompact", json!({"trigger": "auto"})),
        (
            "PostModelSwitch",
            json!({"source": "command", "requested_model": "opus"}),
        ),
        (
            "status line",
            json!({"model": {"id": "m", "display_name": "M"}, "version": "2",
            "context_window": {"context_window_size": 200_000, "used_percentage": 50,
                "current_usage": {"input_tokens": 1, "output_tokens": 2}},
            "cost": {"total_cost_usd": 1, "total_duration_ms": 5}, "rate_limits": {"five_hour": {"used_percentage": 9}}}),
        ),
    ]
}

pub(super) fn items() -> Vec<Item> {
    let mut all = Vec::new();
    for (name, mut payload) in payloads() {
        payload["session_id"] = json!(SESSION);
        for (field, _) in payload.as_object().unwrap() {
            for (kind, value) in [
                ("null", Value::Null),
                ("a number", json!(-1)),
                ("a list", json!([1, {"id": null}])),
                ("an object", json!({"x": []})),
                ("controls", json!("\u{1b}[2J\u{0}\u{202e}")),
            ] {
                let mut wrong = payload.clone();
                wrong[field] = value;
                all.push(payload_of(
                    name,
                    &format!("{field} as {kind}"),
                    &wrong.to_string(),
                ));
            }
            let mut without = payload.clone();
            without.as_object_mut().unwrap().remove(field);
            all.push(payload_of(
                name,
                &format!("no {field}"),
                &without.to_string(),
            ));
        }
        let good = payload.to_string();
        for (wrong, text) in [
            ("nothing", String::new()),
            ("a list", "[]".to_owned()),
            ("cut", good[..good.len() / 2].to_owned()),
            ("twice", format!("{good}{good}")),
            (
                "80 deep",
                good.replacen(
                    '{',
                    &format!("{{\"x\":{}{},", "[".repeat(80), "]".repeat(80)),
                    1,
                ),
            ),
            (
                "a field twice",
                good.replacen('{', "{\"session_id\":\"x\",", 1),
            ),
            (
                "another's session",
                good.replace(SESSION, "../../etc/passwd"),
            ),
        ] {
            all.push(payload_of(name, wrong, &text));
        }
    }
    let whole = json!({"session_id": SESSION, "prompt": "x".repeat(1024 * 1024)}).to_string();
    all.push(payload_of("UserPromptSubmit", "too large", &whole));
    for wrong in ["", "No such hook", "stop", "Stop\u{1b}", "\u{202e}potS"] {
        all.push(payload_of(
            wrong,
            "an unknown name",
            &json!({"session_id": SESSION}).to_string(),
        ));
    }
    all
}

fn payload_of(hook: &str, wrong: &str, text: &str) -> Item {
    let name = format!("{}: {wrong}", shown(hook));
    item(name, format!("{hook}\n{text}"))
}
