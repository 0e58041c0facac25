//! A test that no secret leaves by a handoff, whichever way it came in.

use serde_json::{Value, json};

use crate::{
    Generator, IncludedFile, Marker, PreservedState, Sources, TurnStanding, scratchpad::Parsed,
    signal, summary::fallback,
};
use pitstop_base::redact::planted::planted;
use pitstop_transcript::{human::HumanWords, work::Work};

/// A way in through the transcript: its name, and records with a text in one place.
type Way = (&'static str, Vec<Value>);

fn prompt(text: &str) -> Value {
    json!({ "type": "user", "message": { "content": text } })
}

fn says(blocks: &Value) -> Value {
    json!({ "type": "assistant", "message": { "content": blocks } })
}

fn result(text: &str, failed: bool) -> Value {
    let block =
        json!({ "type": "tool_result", "tool_use_id": "t1", "content": text, "is_error": failed });
    json!({ "type": "user", "message": { "content": [block] } })
}

/// Returns a call of a tool with its answer.
fn call(tool: &str, input: &Value, answer: Value) -> Vec<Value> {
    let block = json!([{ "type": "tool_use", "id": "t1", "name": tool, "input": input }]);
    vec![says(&block), answer]
}

fn bash(command: &str, answer: Value) -> Vec<Value> {
    call("Bash", &json!({ "command": command }), answer)
}

/// Returns the ways in by the words of the human.
fn words(text: &str) -> Vec<Way> {
    let begun = |records: &[Value]| [&[prompt("Build it.")], records].concat();
    let queued =
        json!({ "type": "attachment", "attachment": { "type": "queued_command", "prompt": text } });
    let queue =
        |name: &str| json!({ "type": "queue-operation", "operation": name, "content": text });
    let pasted = format!(
        "See:\n```\n{text}\n```\n<pasted_content id=\"1\">\n{text}\n</pasted_content>\nFix it."
    );
    let typed = [
        format!("<bash-input>{text}</bash-input>"),
        format!("<bash-stdout>{text}</bash-stdout><bash-stderr>{text}</bash-stderr>"),
    ];
    let mut chosen = result("ok", false);
    chosen["toolUseResult"] =
        json!({ "questions": [], "answers": { text: text }, "response": text });
    let unwanted = "The user doesn't want to proceed with this tool use. To tell you how to proceed, the user said:\n";
    let mut refused = result(&format!("{unwanted}{text}"), true);
    refused["toolDenialKind"] = json!("user-rejected");
    let question = json!({ "questions": [{ "question": text }] });
    vec![
        ("prompt", vec![prompt(&format!("Build it. {text}"))]),
        (
            "later prompt",
            begun(&[prompt(text), prompt("Go on, please, with it")]),
        ),
        ("queued prompt", begun(&[queued])),
        ("prompt that waits", begun(&[queue("enqueue")])),
        (
            "prompt taken back",
            begun(&[queue("enqueue"), queue("popAll")]),
        ),
        ("pasted text", vec![prompt(&pasted)]),
        (
            "command of the human",
            typed.iter().map(|text| prompt(text)).collect(),
        ),
        ("answer", call("AskUserQuestion", &question, chosen)),
        ("refusal", bash("ls", refused)),
    ]
}

/// Returns the ways in by what the agent says and does.
fn deeds(text: &str) -> Vec<Way> {
    let said = json!([{ "type": "text", "text": format!("I use {text} here.") }]);
    let edit =
        json!({ "file_path": "/p/a.rs", "old_string": text, "new_string": format!("x {text}") });
    let todo = json!({ "todos": [{ "content": text, "status": "pending", "activeForm": text }] });
    let path = json!({ "file_path": format!("/p/{}.rs", text.replace('\n', " ")) });
    let written = json!({ "file_path": "/p/a.env", "content": text });
    let address = json!({ "url": format!("https://h/?q={text}"), "prompt": text });
    let order = json!({ "description": text, "prompt": text });
    let deep = json!({ "query": text, "deep": { "list": [text] } });
    let failed = format!(
        "test {text} ... FAILED\n\nfailures:\n    {text}\n\ntest result: FAILED. 0 passed; 1 failed; 0 ignored"
    );
    let made = format!("[main 1a2b3c4] {text}\n 1 file changed");
    let ok = || result("ok", false);
    vec![
        ("words", vec![says(&said)]),
        ("command", bash(text, ok())),
        (
            "command in a chain",
            bash(&format!("cd sub && {text}; true"), ok()),
        ),
        ("failed command", bash(text, result("denied", true))),
        ("output", bash("env", result(text, false))),
        (
            "failed output",
            bash(
                "env",
                result(&format!("error: {text}\nfatal: {text}"), true),
            ),
        ),
        (
            "failing test",
            bash(&format!("cargo test {text}"), result(&failed, true)),
        ),
        (
            "commit",
            bash(&format!("git commit -m '{text}'"), result(&made, false)),
        ),
        ("edit", call("Edit", &edit, ok())),
        ("written file", call("Write", &written, ok())),
        ("file name", call("Read", &path, ok())),
        (
            "search",
            call(
                "Grep",
                &json!({ "pattern": text, "path": "src" }),
                result(text, false),
            ),
        ),
        ("address", call("WebFetch", &address, result(text, true))),
        ("plan", call("ExitPlanMode", &json!({ "plan": text }), ok())),
        (
            "order to a subagent",
            call("Task", &order, result(text, false)),
        ),
        ("to do", call("TodoWrite", &todo, ok())),
        (
            "tool of others",
            call("mcp__x__y", &deep, result(text, false)),
        ),
    ]
}

/// The ways in other than the transcript.
const OTHERS: [&str; 13] = [
    "objective",
    "decision",
    "rejected",
    "issue",
    "done",
    "state",
    "constraint",
    "scratchpad",
    "git",
    "failing test",
    "summary",
    "included file",
    "recent command",
];

/// Returns the message, and the summary without a model, of a session that has this text in one place.
fn outputs(text: &str, place: &str, records: &[Value]) -> String {
    let (mut work, mut human) = (Work::default(), HumanWords::default());
    for record in records {
        work.take_record(record);
        human.take_record(record);
    }
    let at = |here: &str| if place == here { text } else { "plain" };
    let line = text.replace('\n', " ");
    let mut state = PreservedState::default();
    if let "objective" | "decision" | "rejected" | "issue" | "done" | "state" | "constraint" = place
    {
        let said = match place {
            "objective" => format!("OBJECTIVE: {line}"),
            "decision" => format!("DECISION: {line} | {line}"),
            "rejected" => format!("REJECTED: {line} | {line}"),
            "issue" => format!("ISSUE[high]: {line}"),
            "done" => format!("DONE: {line}\nTODO: again {line}"),
            "state" => format!("STATE how={line}"),
            _ => format!("CONSTRAINT: {line}"),
        };
        for one in signal::parse_signals(&said) {
            state.feed_signal(&one, chrono::DateTime::UNIX_EPOCH);
        }
    }
    state.feed_human(&human);
    state.test_state.failing.push(at("failing test").to_owned());
    let notes = Parsed::read(&format!(
        "## Current Plan\n- [ ] {0}\n\n## Last Action\n{0}",
        at("scratchpad")
    ));
    state.feed_scratchpad(&notes);
    let report = work.report();
    let own = fallback(&state, &[at("prompt")], &report).unwrap_or_default();
    let first = human.first.as_ref().map_or("", |said| &said.text);
    let latest = human.latest.as_ref().map_or("", |said| &said.text);
    let git = [
        format!("branch {}", at("git")),
        format!("abc1234 {}", at("git")),
    ];
    let files = [IncludedFile::new("a.env", at("included file"))];
    let commands = [format!("$ {0}\n{0}", at("recent command"))];
    let marker = Marker::read("pitstop handoff · r1 · iteration 1 · 0a1b2c3d").unwrap();
    let sources = Sources {
        scratchpad: &notes,
        git: &git,
        summary: Some(at("summary")),
        recent_commands: &commands,
        commands_first: place == "recent command",
        first_request: first,
        latest_request: latest,
        work: Some(&report),
        turn: TurnStanding::Running,
        included_files: &files,
        ..Sources::new(&marker, &state)
    };
    let made = Generator::default().generate(&sources, 50_000).unwrap();
    // Data derived from a transcript is masked before it is kept; the rest is masked where it is stored.
    format!("{}\n{own}\n{report:?}\n{human:?}", made.text)
}

#[test]
fn eighty_kinds_of_secrets_by_every_way_in_get_out_by_none() {
    let mut leaks = Vec::new();
    for (kind, text, rest) in planted().into_iter().step_by(4) {
        for (place, records) in words(&text).into_iter().chain(deeds(&text)) {
            if outputs(&text, place, &records).contains(&rest) {
                leaks.push(format!("{kind} by the {place}"));
            }
        }
        for place in OTHERS {
            if outputs(&text, place, &[]).contains(&rest) {
                leaks.push(format!("{kind} by the {place}"));
            }
        }
    }
    assert!(
        leaks.is_empty(),
        "{} leaks:\n{}",
        leaks.len(),
        leaks.join("\n")
    );
}
