//! What may stand in a session's record; those that were written by hand stand in `tests/fixtures/`.

use pitstop_transcript::tail::Tail;
use serde_json::{Value, json};

use super::{Item, item, outcomes, shown};
use crate::hostile;

#[test]
fn whatever_a_transcript_holds_its_readers_go_on() {
    insta::assert_snapshot!("bad_transcripts", outcomes(&items(), outcome));
}

#[test]
fn a_field_of_any_other_kind_costs_at_most_its_record() {
    for one in fields() {
        let reported = hostile::transcript(&one.input).join(" | ");
        // The good record before and the one behind are read.
        assert!(
            reported.contains("1 turns") || reported.contains("2 turns"),
            "{}: {reported}",
            one.name
        );
        assert!(
            reported.starts_with("2100 tokens"),
            "{}: {reported}",
            one.name
        );
    }
}

/// Far deeper than the stack would take.
const DEPTH: usize = 50_000;

fn outcome(input: &[u8]) -> String {
    shown(&hostile::transcript(input).join(" | "))
}

/// Follows the file as the supervisor does.
pub(super) fn followed(input: &[u8]) {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("session.jsonl");
    std::fs::write(&path, input).unwrap();
    let mut tail = Tail::open(&path).unwrap();
    while tail.read_new(1 << 20).unwrap().more {}
}

fn prompt(text: &str) -> Value {
    json!({"type": "user", "uuid": "u1", "parentUuid": null, "sessionId": "s", "timestamp": "2026-11-20T10:00:00Z",
        "message": {"role": "user", "content": text}})
}

fn answer(id: &str, used: u64) -> Value {
    json!({"type": "assistant", "uuid": format!("u-{id}"), "parentUuid": "u1", "requestId": format!("r-{id}"), "sessionId": "s",
        "timestamp": "2026-11-20T10:00:01Z", "isSidechain": false,
        "message": {"id": id, "model": "claude-opus-4-8", "role": "assistant", "stop_reason": "tool_use",
            "content": [{"type": "text", "text": "look"}, {"type": "tool_use", "id": "t1", "name": "Bash", "input": {"command": "ls"}}],
            "usage": {"input_tokens": used, "cache_read_input_tokens": 0, "cache_creation_input_tokens": 0, "output_tokens": 100}}})
}

fn result() -> Value {
    json!({"type": "user", "uuid": "u3", "parentUuid": "u-b", "sessionId": "s", "timestamp": "2026-11-20T10:00:02Z",
        "message": {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "t1", "content": "a\nb", "is_error": false}]},
        "toolUseResult": {"stdout": "a\nb", "stderr": "", "interrupted": false}})
}

/// Each field of each record as each other kind of value, between two good records.
pub(super) fn fields() -> Vec<Item> {
    let kinds = [
        ("null", Value::Null),
        ("a flag", json!(true)),
        ("a number", json!(-7)),
        ("a fraction", json!(1e300)),
        ("a text", json!("x\u{0}\u{1b}[2J")),
        ("a list", json!([[[]], {}, null])),
        ("an object", json!({"": {"": []}})),
    ];
    let mut all = Vec::new();
    for (record, whole) in [("answer", answer("b", 5_000)), ("result", result())] {
        let mut places = Vec::new();
        paths(&whole, &mut String::new(), &mut places);
        for place in places {
            for (kind, value) in &kinds {
                let mut wrong = whole.clone();
                let field = wrong.pointer_mut(&place).unwrap();
                if field == value {
                    continue;
                }
                field.clone_from(value);
                let lines = [prompt("go"), wrong, answer("c", 2_000)];
                let text: String = lines.iter().map(|line| format!("{line}\n")).collect();
                all.push(item(format!("{record}{place} as {kind}"), text));
            }
        }
    }
    all
}

/// The places of all values in a record.
fn paths(value: &Value, at: &mut String, all: &mut Vec<String>) {
    let mut below = |name: &str, value: &Value| {
        let length = at.len();
        at.push('/');
        at.push_str(name);
        all.push(at.clone());
        paths(value, at, all);
        at.truncate(length);
    };
    match value {
        Value::Object(fields) => fields.iter().for_each(|(name, value)| below(name, value)),
        Value::Array(values) => values
            .iter()
            .enumerate()
            .for_each(|(place, value)| below(&place.to_string(), value)),
        _ => {}
    }
}

/// Files that are broken as a whole.
pub(super) fn items() -> Vec<Item> {
    let good = format!(
        "{}\n{}\n{}\n{}\n",
        prompt("go"),
        answer("b", 1_000),
        result(),
        answer("c", 2_000)
    );
    let mut all = Vec::new();
    // Cut at places spread over the whole.
    for share in 1..20 {
        let end = good.len() * share / 20;
        all.push(item(format!("cut at {share}/20"), &good.as_bytes()[..end]));
        let (front, back) = good.as_bytes().split_at(end);
        all.push(item(
            format!("a run of NULs at {share}/20"),
            [front, &[0; 512], back].concat(),
        ));
        all.push(item(
            format!("a bad byte at {share}/20"),
            [front, b"\xff", back].concat(),
        ));
    }
    let deep = |open: &str, close: &str| {
        let text = format!("{}1{}", open.repeat(DEPTH), close.repeat(DEPTH));
        format!(
            "{good}{{\"type\":\"assistant\",\"message\":{text}}}\n{}\n",
            answer("d", 3_000)
        )
    };
    for (name, text) in [
        ("lists 50 000 deep", deep("[", "]")),
        ("objects 50 000 deep", deep("{\"a\":", "}")),
        (
            "a line of 2 MB",
            format!(
                "{good}{{\"type\":\"user\",\"message\":{{\"content\":\"{}\"}}}}\n{}\n",
                "x".repeat(2_000_000),
                answer("d", 3_000)
            ),
        ),
        (
            "100 000 empty lines",
            format!("{}{good}", "\n".repeat(100_000)),
        ),
        (
            "100 000 brackets",
            format!("{}\n{good}", "[".repeat(100_000)),
        ),
        ("lines ended by CR alone", good.replace('\n', "\r")),
        ("UTF-16", good.chars().flat_map(|c| [c, '\0']).collect()),
        ("all on one line", good.replace('\n', "")),
        (
            "each line twice",
            good.lines()
                .map(|line| format!("{line}\n{line}\n"))
                .collect(),
        ),
        (
            "the lines reversed",
            good.lines().rev().map(|line| format!("{line}\n")).collect(),
        ),
        ("numbers without end", good.replace("1000", "1e999")),
        ("negative figures", good.replace("2000", "-2000")),
        (
            "figures beyond all",
            good.replace("2000", "99999999999999999999999"),
        ),
        (
            "a time that is none",
            good.replace("2026-11-20T10", "2026-99-99T99"),
        ),
        ("a comma behind the last", good.replace("}\n", ",}\n")),
        ("single quotes", good.replace('"', "'")),
        ("comments", good.replace('\n', " // so\n")),
        (
            "lone surrogates",
            good.replace("\"go\"", "\"\\ud800 \\udc00\""),
        ),
        (
            "names in other letters",
            good.replace("\"type\"", "\"t\\u0079pe\""),
        ),
        (
            "a name twice in each",
            good.replace("{\"type\"", "{\"type\":7,\"type\""),
        ),
        (
            "another case",
            good.replace("\"assistant\"", "\"ASSISTANT\""),
        ),
    ] {
        all.push(item(name, text));
    }
    all
}
