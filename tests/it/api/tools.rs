//! The agent's tools at their endpoint: the right to report is enough for them, and hostile bodies reach nothing.

use pitstop_agent::bridge::{Caller, Tool};
use serde_json::{Value, json};

use super::*;

#[test]
fn a_tool_is_called_with_the_observe_token_and_its_texts_arrive_on_one_clean_line() {
    let supervisor = Supervisor::start();
    let session = "5b1fb70c-12ef-4add-a791-d6648daa787b";
    let body = json!({ "session": session, "input": { "text": "a\u{1b}[2J\nb", "agentId": 7 } });
    let answer = supervisor.request(
        "observe",
        "POST",
        "/tools/note",
        body.to_string().as_bytes(),
    );
    answer.expect(200);
    let said: Value = serde_json::from_str(&answer.body).unwrap();
    assert_eq!(said, json!({ "text": "kept" }));
    let caller = Caller {
        session: session.parse().ok(),
        iteration: None,
    };
    let text = "a[2J b".to_owned();
    assert_eq!(
        supervisor.received(),
        [Request::Tool(caller, Tool::Note { text })]
    );
}

#[test]
fn hostile_calls_of_tools_are_refused_and_reach_nothing() {
    let supervisor = Supervisor::start();
    let long = json!({ "input": { "text": "x".repeat(2_001) } }).to_string();
    let nested = format!("{{\"input\":{}1{}}}", "[".repeat(200), "]".repeat(200));
    for (path, body, status) in [
        ("/tools/approve", "{}", 404),
        ("/tools/..%2Fcontrol%2Fapprove", "{}", 404),
        ("/tools/note", "", 400),
        ("/tools/note", "[]", 400),
        ("/tools/note", "{}", 400),
        ("/tools/note", r#"{"input":[]}"#, 400),
        ("/tools/note", r#"{"input":{"text":7}}"#, 400),
        ("/tools/note", r#"{"input":{"text":" \u001b "}}"#, 400),
        ("/tools/note", &long, 400),
        ("/tools/note", &nested, 400),
        ("/tools/context", r#"{"session":"../x"}"#, 400),
        ("/tools/context", r#"{"iteration":-1}"#, 400),
    ] {
        let answer = supervisor.request("observe", "POST", path, body.as_bytes());
        let shown: String = body.chars().take(60).collect();
        assert_eq!(answer.status, status, "{path} {shown}: {answer:?}");
        if shown.contains("\"text\"") {
            let said: Value = serde_json::from_str(&answer.body).unwrap();
            assert_eq!(said["field"], "text", "{said}");
        }
    }
    assert_eq!(supervisor.received(), []);
    let refused = supervisor.request("observe", "POST", "/tools/context", br#"{"iteration":9}"#);
    refused.expect(409);
}
