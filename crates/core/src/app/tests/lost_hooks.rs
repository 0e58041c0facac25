//! Hooks that are lost on a busy machine: the transcript has what they would have reported, and what both report counts once.

use std::collections::VecDeque;

use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;
use crate::app::event::TranscriptFacts;
use pitstop_agent::hook::parse_hook;
use pitstop_handoff::{PreservedState, signal};
use pitstop_transcript::{
    digest::{Age, Digest},
    usage::UsageScan,
};

/// A step of a recorded session.
enum Step {
    /// The client calls this hook.
    Hook(&'static str, Value),
    /// The client writes this record.
    Record(Value),
    /// The title is calm, and stays so.
    Rests,
}

/// The recorded session.
fn recorded() -> Vec<Step> {
    let mut steps = Vec::new();
    turn(&mut steps, "Build it.", "OBJECTIVE: a parser", &[]);
    let shell = |command: &str| json!({"command": command});
    let failing = "running 2 tests\ntest a ... ok\ntest b ... FAILED\n\ntest result: FAILED. 1 passed; 1 failed; 0 ignored; 0 measured; 0 filtered out\n";
    let passing = "running 2 tests\ntest a ... ok\ntest b ... ok\n\ntest result: ok. 2 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out\n";
    let made = |id: &str| json!({"task": {"id": id, "subject": "x"}});
    let edit = json!({"file_path": "/p/a.rs"});
    let calls = [
        ("TaskCreate", json!({"subject": "lexer"}), made("1")),
        ("TaskCreate", json!({"subject": "grammar"}), made("2")),
        ("Bash", shell("cargo test"), json!(failing)),
        ("Edit", edit.clone(), json!("ok")),
        (
            "Bash",
            shell("cargo test"),
            json!({"stdout": passing, "stderr": ""}),
        ),
        (
            "TaskUpdate",
            json!({"taskId": "1", "status": "completed"}),
            json!({"success": true}),
        ),
    ];
    turn(
        &mut steps,
        "Go on.",
        "DONE: lexer\nDECISION: no cache",
        &calls,
    );
    let commit = "[main 1234567] add a lexer\n 1 file changed\n";
    let calls = [
        ("Edit", edit, json!("ok")),
        (
            "Bash",
            shell("git commit -m 'add a lexer'"),
            json!({"stdout": commit, "stderr": ""}),
        ),
    ];
    turn(&mut steps, "Commit it.", "ISSUE: it is slow", &calls);
    steps
}

fn hooks(steps: &[Step]) -> usize {
    let is_hook = |step: &&Step| matches!(step, Step::Hook(..));
    steps.iter().filter(is_hook).count()
}

/// Adds a turn with these last signals and these calls: a shell that printed a plain text has failed.
fn turn(steps: &mut Vec<Step>, prompt: &str, signals: &str, calls: &[(&str, Value, Value)]) {
    let said = |blocks: Value| {
        let message = json!({"id": "m", "model": "claude-x", "content": blocks});
        Step::Record(json!({"type": "assistant", "message": message}))
    };
    let user = |content: Value, result: &Value| {
        Step::Record(
            json!({"type": "user", "origin": {"kind": "human"}, "message": {"content": content}, "toolUseResult": result}),
        )
    };
    steps.push(Step::Hook("UserPromptSubmit", json!({"prompt": prompt})));
    steps.push(user(json!(prompt), &Value::Null));
    for (tool, input, result) in calls {
        let id = format!("t{}", steps.len());
        let failed = *tool == "Bash" && result.is_string();
        let call = json!({"tool_name": tool, "tool_input": input, "tool_use_id": id, "cwd": "/p"});
        let with = |field: &str| {
            let mut with = call.clone();
            with[field] = result.clone();
            with
        };
        let printed = result["stdout"]
            .as_str()
            .or(result.as_str())
            .unwrap_or("ok");
        steps.push(said(
            json!([{"type": "tool_use", "id": id, "name": tool, "input": input}]),
        ));
        steps.push(Step::Hook("PreToolUse", call.clone()));
        steps.push(if failed {
            Step::Hook("PostToolUseFailure", with("error"))
        } else {
            Step::Hook("PostToolUse", with("tool_response"))
        });
        let block = json!({"type": "tool_result", "tool_use_id": id, "is_error": failed, "content": printed});
        steps.push(user(json!([block]), result));
    }
    let words = format!("It is done.\n\nSIGNAL:\n{signals}");
    steps.push(said(json!([{"type": "text", "text": words}])));
    steps.push(Step::Hook("Stop", json!({"last_assistant_message": words})));
    steps.push(Step::Rests);
}

/// The reader of the transcript.
#[derive(Default)]
struct Reader {
    digest: Digest,
    scan: UsageScan,
    unread: VecDeque<String>,
}

impl Reader {
    /// Reads on until so many records are left.
    fn read(&mut self, bench: &mut Bench, left: usize) {
        while self.unread.len() > left
            && let Some(line) = self.unread.pop_front()
        {
            let age = Age {
                behind: 0,
                is_new: true,
            };
            self.digest.take_line(line.as_bytes(), age);
            self.scan.feed_line(line.as_bytes());
            let said = self.digest.take_said();
            bench.facts_read(TranscriptFacts {
                turns: self.scan.turns(),
                old_turns: Some(0),
                whole: true,
                last_prompt: self.scan.last_prompt().map(str::to_owned),
                signals: said
                    .iter()
                    .flat_map(|text| signal::parse_signals(text))
                    .collect(),
                said: said.into_iter().next_back(),
                human: self.digest.take_human(),
                todos: self.digest.todos().clone(),
                ran: self.digest.take_ran(),
                calls_open: self.digest.calls_open(),
                closing: self.digest.closing().cloned(),
                closings: self.digest.closings(),
                ..TranscriptFacts::default()
            });
        }
    }
}

/// What is left of a session: what it preserves, and the numbers of its turns, commits, and test runs that passed and failed.
type Left = (PreservedState, u32, [u64; 3]);

/// Plays the recorded session; a hook of which `lost` says so does not come, and the transcript is so many records late.
fn play(lost: impl Fn(usize) -> bool, late: usize) -> Left {
    let (mut bench, mut reader) = (Bench::new(), Reader::default());
    reader.digest = Digest::new(8);
    let mut hook = 0;
    for step in recorded() {
        match step {
            Step::Hook(event, mut payload) => {
                if event == "UserPromptSubmit" {
                    let activity = &mut bench.model.session.agent.activity;
                    activity.elsewhere.submitted();
                    bench.titled("⠂ work");
                }
                payload["session_id"] = json!(session(OLD).to_string());
                let parsed = parse_hook(event, payload.to_string().as_bytes()).expect("a hook");
                if !lost(hook) {
                    bench.send(Event::Agent(parsed));
                }
                hook += 1;
            }
            Step::Record(mut record) => {
                record["timestamp"] = json!(bench.at().wall);
                record["cwd"] = json!("/p");
                reader.unread.push_back(record.to_string());
            }
            Step::Rests => {
                reader.read(&mut bench, 0);
                bench.titled("✳ work");
                bench.stands();
            }
        }
        reader.read(&mut bench, late);
    }
    let mut state = bench.model.draft.preserved.clone();
    if late > 0 {
        // The outcome of a run counts in the order of the runs, but not what it changed of one that was overtaken.
        let tests = &mut state.test_state;
        (tests.fixed, tests.regressed) = Default::default();
        tests.passing.sort();
    }
    let counters = &bench.model.outside.counters;
    let counts = [
        counters.commits,
        counters.tests_passed,
        counters.tests_failed,
    ];
    (state, bench.model.session.agent.turns, counts)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn a_session_whose_hooks_are_lost_at_random_leaves_the_same(lost: u64, late in 0_usize..6) {
        let steps = recorded();
        let whole = play(|_| false, late);
        prop_assert_eq!((whole.1, whole.2), (3, [1, 1, 1]));
        prop_assert_eq!(texts(&whole.0.pending_items), ["next", "grammar"]);
        prop_assert!(hooks(&steps) <= 64);
        prop_assert_eq!(play(|hook| lost >> hook & 1 == 1, late), whole);
    }
}

fn texts(items: &[pitstop_handoff::preserved::Item]) -> Vec<&str> {
    items.iter().map(|item| item.text.as_str()).collect()
}
