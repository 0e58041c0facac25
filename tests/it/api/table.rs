//! Every endpoint with good, missing, wrong-type, oversized and non-UTF-8 input; and all of them under load.

use std::sync::atomic::{AtomicUsize, Ordering};

use pitstop_core::api::endpoint::{Endpoint, Method};

use super::*;

const COMMIT: &str = "/hooks/git-commit";
const TESTS: &str = "/hooks/test-result";
const SAVE: &str = "/context/auto-save";

#[test]
fn reports_are_taken_in_the_right_form_only() {
    let supervisor = Supervisor::start();
    let cases: [(&str, &[u8], u16); 57] = [
        (COMMIT, br#"{"commit_sha": "1a2b3c4"}"#, 202),
        (COMMIT, br#"{"commit_sha": "1A2B3C4D5E", "environment": null, "branch": null, "commit_message": null, "files_changed": null}"#, 202),
        (COMMIT, br#"{"environment": "dev", "commit_sha": "1a2b3c4", "commit_message": "x\ny", "branch": "main", "files_changed": 3, "more": [1]}"#, 202),
        (COMMIT, br#"{"commit_sha": "1a2b3c4", "branch": "refused"}"#, 409),
        (COMMIT, b"", 400),
        (COMMIT, b"{}", 400),
        (COMMIT, b"[]", 400),
        (COMMIT, b"null", 400),
        (COMMIT, br#"{"commit_sha": 7}"#, 400),
        (COMMIT, br#"{"commit_sha": null}"#, 400),
        (COMMIT, br#"{"commit_sha": ""}"#, 400),
        (COMMIT, br#"{"commit_sha": "1a2b3c"}"#, 400),
        (COMMIT, br#"{"commit_sha": "1a2b3cg"}"#, 400),
        (COMMIT, br#"{"commit_sha": "--help!"}"#, 400),
        (COMMIT, br#"{"commit_sha": "1a2b3c4", "files_changed": -1}"#, 400),
        (COMMIT, br#"{"commit_sha": "1a2b3c4", "files_changed": 1.5}"#, 400),
        (COMMIT, br#"{"commit_sha": "1a2b3c4", "files_changed": "3"}"#, 400),
        (COMMIT, br#"{"commit_sha": "1a2b3c4", "files_changed": ["a"]}"#, 400),
        (COMMIT, br#"{"commit_sha": "1a2b3c4", "files_changed": 1000000001}"#, 400),
        (COMMIT, br#"{"commit_sha": "1a2b3c4", "branch": 1}"#, 400),
        (COMMIT, br#"{"commit_sha": "1a2b3c4", "commit_message": {}}"#, 400),
        (COMMIT, b"{\"commit_sha\": \"1a2b3c4\", \"branch\": \"\xff\"}", 400),
        (COMMIT, br#"{"commit_sha": "1a2b3c4", "commit_sha": "1a2b3c5"}"#, 400),
        (COMMIT, br#"{"commit_sha": "1a2b3c4"} x"#, 400),
        (TESTS, br#"{"passed": true}"#, 202),
        (TESTS, br#"{"environment": "dev", "passed": false, "test_count": 14, "failed_count": 2, "duration_seconds": 1.25, "test_command": "cargo test"}"#, 202),
        (TESTS, br#"{"passed": false, "failing_tests": ["a::b", "c"]}"#, 202),
        (TESTS, br#"{"passed": true, "failing_tests": null}"#, 202),
        (TESTS, br#"{"passed": false, "failing_tests": "a"}"#, 400),
        (TESTS, br#"{"passed": false, "failing_tests": ["a", 1]}"#, 400),
        (TESTS, br#"{"passed": false, "failing_tests": ["a", " "]}"#, 400),
        (TESTS, br#"{"passed": false, "failed_count": 1, "failing_tests": ["a", "b"]}"#, 400),
        (TESTS, b"", 400),
        (TESTS, b"{}", 400),
        (TESTS, br#"{"passed": "yes"}"#, 400),
        (TESTS, br#"{"passed": 1}"#, 400),
        (TESTS, br#"{"passed": true, "test_count": -1}"#, 400),
        (TESTS, br#"{"passed": true, "test_count": 1e3}"#, 400),
        (TESTS, br#"{"passed": true, "test_count": 99999999999999999999}"#, 400),
        (TESTS, br#"{"passed": false, "test_count": 1, "failed_count": 2}"#, 400),
        (TESTS, br#"{"passed": true, "duration_seconds": -0.5}"#, 400),
        (TESTS, br#"{"passed": true, "duration_seconds": "1 s"}"#, 400),
        (TESTS, br#"{"passed": true, "duration_seconds": 1e999}"#, 400),
        (TESTS, b"{\"passed\": true, \"test_command\": \"\xc3\x28\"}", 400),
        (SAVE, b"", 202),
        (SAVE, b"{}", 202),
        (SAVE, br#"{"environment": "dev"}"#, 202),
        (SAVE, br#"{"used_tokens": 5, "inferred_task": "x", "inferred_context": null}"#, 202),
        (SAVE, br#"{"environment": 1}"#, 400),
        (SAVE, br#"{"used_tokens": -1}"#, 400),
        (SAVE, br#"{"used_tokens": 1000000000001}"#, 400),
        (SAVE, br#"{"inferred_task": ["x"]}"#, 400),
        (SAVE, b"[]", 400),
        (SAVE, b"{", 400),
        (SAVE, b"\xff", 400),
        ("/statusline", b"", 200),
        ("/hooks/claude/Stop", b"\xff", 202),
    ];
    for (path, body, status) in cases {
        let answer = supervisor.request("observe", "POST", path, body);
        assert_eq!(
            answer.status,
            status,
            "{path} {}: {answer:?}",
            String::from_utf8_lossy(body)
        );
        answer.expect(status);
    }
    let good = cases
        .iter()
        .filter(|(_, _, status)| *status < 300 || *status == 409);
    supervisor.receives(good.count());
}

#[test]
fn fields_that_are_not_known_are_named_in_the_answer() {
    let supervisor = Supervisor::start();
    for (path, known) in [
        (COMMIT, r#""commit_sha": "1a2b3c4", "branch": null"#),
        (TESTS, r#""passed": true"#),
        (SAVE, r#""used_tokens": 5"#),
        ("/control/save", r#""tags": ["x"]"#),
        ("/control/reboot", r#""way": null"#),
        ("/control/say", r#""text": "go""#),
    ] {
        for name in ["author", "größe", "commit_shas"] {
            let body = format!(r#"{{{known}, "{name}": {{}}}}"#);
            let answer = supervisor.request("control", "POST", path, body.as_bytes());
            let named = format!(r#""unknown_fields":["{name}"]"#);
            assert!(answer.body.contains(&named), "{path}: {answer:?}");
        }
    }
    let path = "/context/usage?used_token=5&max_tokens=200000";
    let answer = supervisor.request("observe", "GET", path, b"");
    let named = r#""unknown_fields":["used_token"]"#;
    assert!(answer.body.contains(named), "{answer:?}");
}

#[test]
fn a_refusal_names_the_field_its_value_and_what_is_expected() {
    let supervisor = Supervisor::start();
    let long = format!(r#"{{"text": "{}"}}"#, "x".repeat(64 * 1024 + 1));
    // Those with numbers in their query are read, all others are posted.
    #[rustfmt::skip]
    let cases = [
        (COMMIT, r#"{"branch": "x"}"#, "commit_sha", ["a value", "none"]),
        (COMMIT, r#"{"commit_sha": "no\u001b"}"#, "commit_sha", ["7 to 64 hex", r#""no\u{1b}""#]),
        (COMMIT, r#"{"commit_sha": "1a2b3c4", "files_changed": -3}"#, "files_changed", ["whole number", "-3"]),
        (COMMIT, r#"{"commit_sha": "1a2b3c4", "files_changed": 2000000000}"#, "files_changed", ["1000000000", "2000000000"]),
        (TESTS, r#"{"passed": 1}"#, "passed", ["true or false", "1"]),
        (TESTS, r#"{"passed": false, "test_count": 1, "failed_count": 2}"#, "failed_count", ["at most 1", "found 2"]),
        (TESTS, r#"{"passed": false, "failing_tests": ["a", 7]}"#, "failing_tests[1]", ["a text", "7"]),
        (TESTS, r#"{"passed": true, "duration_seconds": -0.5}"#, "duration_seconds", ["0 or more", "-0.5"]),
        (SAVE, r#"{"used_tokens": "many"}"#, "used_tokens", ["whole number", "many"]),
        (SAVE, r#"{"inferred_context": {}}"#, "inferred_context", ["a text", "an object"]),
        ("/control/reboot", r#"{"way": "sideways"}"#, "way", ["`fresh`, `in-place`, `on-the-fly`, `trim`", "`sideways`"]),
        ("/control/save", r#"{"tags": ["a", "b c"]}"#, "tags[1]", ["letters, digits", r#""b c""#]),
        ("/control/save", r#"{"next_steps": [" "]}"#, "next_steps[0]", ["some text", r#"" ""#]),
        ("/control/say", r#"{"text": ""}"#, "text", ["some text", r#""""#]),
        ("/control/say", &long, "text", ["65536 bytes", "65537 bytes"]),
        ("/context/usage?used_tokens=-1", "", "used_tokens", ["0 to", r#""-1""#]),
        ("/context/usage?max_tokens=0", "", "max_tokens", ["1 to", r#""0""#]),
        ("/context/usage?max_tokens=1&max_tokens=2", "", "max_tokens", ["one value", "second"]),
    ];
    for (path, body, field, parts) in cases {
        let method = if path.contains('?') { "GET" } else { "POST" };
        let answer = supervisor.request("control", method, path, body.as_bytes());
        let reported: serde_json::Value = serde_json::from_str(&answer.body).unwrap();
        assert_eq!(reported["field"], field, "{path} {body:.80}: {reported}");
        let error = reported["error"].as_str().unwrap();
        assert!(
            error.contains(field) && parts.iter().all(|part| error.contains(part)),
            "{error}"
        );
    }
    // No field is to blame for what is no JSON.
    let answer = supervisor.request("control", "POST", SAVE, b"{");
    assert!(
        !answer.body.contains("field") && answer.status == 400,
        "{answer:?}"
    );
    assert_eq!(supervisor.received(), []);
}

#[test]
fn every_endpoint_refuses_what_is_too_large_too_deep_or_no_json() {
    let supervisor = Supervisor::start();
    let deep = [
        b"{\"x\":".to_vec(),
        vec![b'['; 100],
        vec![b']'; 100],
        b"}".to_vec(),
    ]
    .concat();
    for endpoint in Endpoint::ALL {
        let path = endpoint
            .path()
            .replace("{event}", "Stop")
            .replace("{id}", "current")
            .replace("{order}", "save");
        let method = endpoint.method().word();
        let large = vec![b'a'; BODY_LIMIT + 1];
        supervisor.expects(413, "control", method, &path, &large);
        // Neither takes a body.
        if endpoint.method() == Method::Get || *endpoint == Endpoint::Attach {
            continue;
        }
        let token = format!("Authorization: Bearer {}", supervisor.token("control"));
        let first = format!("POST {path} HTTP/1.1");
        for kind in [
            "X: y",
            "Content-Type: text/plain",
            "Content-Type: text/html",
        ] {
            let headers = [token.as_str(), kind, "Content-Length: 2"];
            supervisor
                .raw(&message(&first, &headers, b"{}"))
                .expect(415);
        }
        if !matches!(endpoint, Endpoint::Hook | Endpoint::StatusLine) {
            supervisor.expects(400, "control", "POST", &path, &deep);
        }
    }
    assert_eq!(supervisor.received(), []);
}

#[test]
fn metrics_are_text_for_prometheus() {
    let supervisor = Supervisor::start();
    supervisor.expects(202, "observe", "POST", "/hooks/claude/Stop", b"{}");
    let answer = supervisor.request("observe", "GET", "/metrics", b"");
    answer.expect(200);
    assert!(
        answer
            .head
            .contains("content-type: text/plain; version=0.0.4")
    );
    for line in [
        "pitstop_context_used_tokens 128400",
        "pitstop_hook_seconds_count 1",
    ] {
        assert!(
            answer.body.lines().any(|one| one == line),
            "{}",
            answer.body
        );
    }
}

/// One request after the other, each on a connection of its own, until `count` have been made by all together.
fn hammer(client: &ApiClient, path: &str, made: &AtomicUsize, count: usize) -> Vec<Duration> {
    let mut times = Vec::new();
    while made.fetch_add(1, Ordering::Relaxed) < count {
        let began = Instant::now();
        let answer = client.get(path, Instant::now() + PATIENCE).unwrap();
        times.push(began.elapsed());
        assert_eq!(
            answer.status,
            200,
            "{}",
            String::from_utf8_lossy(&answer.body)
        );
    }
    times
}

#[test]
fn ten_thousand_requests_from_sixty_four_connections_are_all_answered() {
    const REQUESTS: usize = 10_000;
    let supervisor = Supervisor::start();
    let client = ApiClient::from_file(supervisor.secrets.control_file()).unwrap();
    let made = AtomicUsize::new(0);
    let mut times: Vec<Duration> = thread::scope(|scope| {
        let connections: Vec<_> = (0..64)
            .map(|number| {
                let path = ["/context/usage", "/status", "/metrics", "/history"][number % 4];
                let (client, made) = (&client, &made);
                scope.spawn(move || hammer(client, path, made, REQUESTS))
            })
            .collect();
        connections
            .into_iter()
            .flat_map(|connection| connection.join().unwrap())
            .collect()
    });
    assert_eq!(times.len(), REQUESTS);
    times.sort();
    let (half, most) = (times[REQUESTS / 2], times[REQUESTS * 99 / 100]);
    println!("10 000 requests from 64 connections: p50 {half:?}, p99 {most:?}");
    // The contract's 20 ms are for a release build on a machine of its own (`cargo run --release --example doors_speed`).
    assert!(most < Duration::from_secs(10), "{most:?}");
}
