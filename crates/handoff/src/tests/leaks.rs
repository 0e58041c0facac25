//! A test that no secret leaves by a handoff, whichever way it came in.

use serde_json::{Value, json};

use crate::{
    Generator, IncludedFile, Marker, PreservedState, Sources, TurnStanding, scratchpad::Parsed,
    signal, summary::fallback,
};
use pitstop_base::redact::planted::planted;
use pitstop_transcript::{human::HumanWords, work::Work};

/// Returns the ways in through the transcript: records with a text in one place.
fn records(text: &str) -> Vec<(&'static str, Vec<Value>)> {
    let prompt = |text: &str| json!({ "type": "user", "message": { "content": text } });
    let says = |blocks: Value| json!({ "type": "assistant", "message": { "content": blocks } });
    let calls = |tool: &str, input: Value| {
        says(json!([{ "type": "tool_use", "id": "t1", "name": tool, "input": input }]))
    };
    let answers = |text: &str, failed: bool| {
        let result = json!({ "type": "tool_result", "tool_use_id": "t1", "content": text, "is_error": failed });
        json!({ "type": "user", "message": { "content": [result] } })
    };
    let queued =
        json!({ "type": "attachment", "attachment": { "type": "queued_command", "prompt": text } });
    let bash = |command: &str| calls("Bash", json!({ "command": command }));
    let edit =
        json!({ "file_path": "/p/a.rs", "old_string": text, "new_string": format!("x {text}") });
    let path = format!("/p/{}.rs", text.replace('\n', " "));
    let failing = vec![
        bash(&format!("cargo test {text}")),
        answers(
            &format!(
                "test {text} ... FAILED\n\nfailures:\n    {text}\n\ntest result: FAILED. 0 passed; 1 failed; 0 ignored; 0 measured; 0 filtered out"
            ),
            true,
        ),
    ];
    let mut chosen = answers("ok", false);
    chosen["toolUseResult"] =
        json!({ "questions": [], "answers": { text: text }, "response": text });
    let mut refused = answers(
        &format!(
            "The user doesn't want to proceed with this tool use. To tell you how to proceed, the user said:\n{text}"
        ),
        true,
    );
    refused["toolDenialKind"] = json!("user-rejected");
    let operation =
        |name: &str| json!({ "type": "queue-operation", "operation": name, "content": text });
    let todo = json!({ "todos": [{ "content": text, "status": "pending", "activeForm": text }] });
    vec![
        ("prompt", vec![prompt(&format!("Build it. {text}"))]),
        (
            "later prompt",
            vec![
                prompt("Build it."),
                prompt(text),
                prompt("Go on, please, with it"),
            ],
        ),
        ("queued prompt", vec![prompt("Build it."), queued]),
        (
            "prompt that waits",
            vec![prompt("Build it."), operation("enqueue")],
        ),
        (
            "prompt taken back",
            vec![
                prompt("Build it."),
                operation("enqueue"),
                operation("popAll"),
            ],
        ),
        (
            "pasted text",
            vec![prompt(&format!(
                "See:\n```\n{text}\n```\n<pasted_content id=\"1\">\n{text}\n</pasted_content>\nFix it."
            ))],
        ),
        (
            "command of the human",
            vec![
                prompt(&format!("<bash-input>{text}</bash-input>")),
                prompt(&format!(
                    "<bash-stdout>{text}</bash-stdout><bash-stderr>{text}</bash-stderr>"
                )),
            ],
        ),
        (
            "answer",
            vec![
                calls(
                    "AskUserQuestion",
                    json!({ "questions": [{ "question": text }] }),
                ),
                chosen,
            ],
        ),
        ("refusal", vec![bash("ls"), refused]),
        ("failing test", failing),
        (
            "file name",
            vec![
                calls("Read", json!({ "file_path": path })),
                answers("ok", false),
            ],
        ),
        (
            "written file",
            vec![
                calls("Write", json!({ "file_path": "/p/a.env", "content": text })),
                answers("ok", false),
            ],
        ),
        (
            "address",
            vec![
                calls(
                    "WebFetch",
                    json!({ "url": format!("https://h/?q={text}"), "prompt": text }),
                ),
                answers(text, true),
            ],
        ),
        (
            "plan",
            vec![
                calls("ExitPlanMode", json!({ "plan": text })),
                answers("ok", false),
            ],
        ),
        (
            "order to a subagent",
            vec![
                calls("Task", json!({ "description": text, "prompt": text })),
                answers(text, false),
            ],
        ),
        (
            "commit",
            vec![
                bash(&format!("git commit -m '{text}'")),
                answers(&format!("[main 1a2b3c4] {text}\n 1 file changed"), false),
            ],
        ),
        (
            "words",
            vec![says(
                json!([{ "type": "text", "text": format!("I use {text} here.") }]),
            )],
        ),
        ("command", vec![bash(text), answers("ok", false)]),
        (
            "command in a chain",
            vec![
                bash(&format!("cd sub && {text}; true")),
                answers("ok", false),
            ],
        ),
        ("failed command", vec![bash(text), answers("denied", true)]),
        ("output", vec![bash("env"), answers(text, false)]),
        (
            "failed output",
            vec![
                bash("env"),
                answers(&format!("error: {text}\nfatal: {text}"), true),
            ],
        ),
        ("edit", vec![calls("Edit", edit), answers("ok", false)]),
        (
            "search",
            vec![
                calls("Grep", json!({ "pattern": text, "path": "src" })),
                answers(text, false),
            ],
        ),
        (
            "to do",
            vec![calls("TodoWrite", todo), answers("ok", false)],
        ),
        (
            "tool of others",
            vec![
                calls(
                    "mcp__x__y",
                    json!({ "query": text, "deep": { "list": [text] } }),
                ),
                answers(text, false),
            ],
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
        for (place, records) in records(&text) {
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
