//! The summary without a model: what the transcript's blocks say, under those of the same seven headings that they say
//! something for. What is not found by rules need not be nothing, so "None." would be too much said.

use super::{History, clipped, harmless, history::Facts, one_line, put_together};

/// How many lines of each kind are shown, the latest ones: it goes beside the sections that the handoff has anyway.
const LINES: usize = 12;

/// The most of one line, in bytes.
const LINE_CAP: usize = 300;

/// The most that is shown of the last reply, in bytes.
const REPLY_CAP: usize = 900;

/// The sections that are not empty, from tool uses, edits, to-dos, errors, decisions and prompts; `None` when nothing was
/// said.
#[must_use]
pub fn fallback(history: &History) -> Option<String> {
    if history.is_empty() {
        return None;
    }
    let facts = history.facts();
    let bodies = [
        intent(facts),
        context(facts),
        files(facts),
        errors(facts),
        list(facts.decisions.iter().cloned()),
        pending(facts),
        state(facts),
    ];
    let bodies = bodies.map(|body| harmless(&body));
    let text = put_together(bodies.iter().map(String::as_str));
    (!text.is_empty()).then_some(text)
}

/// The last few of these as a list.
fn list(items: impl DoubleEndedIterator<Item = String>) -> String {
    let mut lines: Vec<String> = items
        .rev()
        .take(LINES)
        .map(|item| format!("- {}", clipped(&item, LINE_CAP)))
        .collect();
    lines.reverse();
    lines.join("\n")
}

/// A list below a line that says what it is of; nothing without items.
fn part(head: &str, items: impl DoubleEndedIterator<Item = String>) -> Option<String> {
    let list = list(items);
    (!list.is_empty()).then(|| format!("{head}\n{list}"))
}

fn joined(parts: impl IntoIterator<Item = Option<String>>) -> String {
    parts.into_iter().flatten().collect::<Vec<_>>().join("\n\n")
}

fn intent(facts: &Facts) -> String {
    joined([
        facts.objective.clone(),
        part("Said later, oldest first:", facts.prompts.iter().cloned()),
    ])
}

fn context(facts: &Facts) -> String {
    let known = [
        ("directory", &facts.directory),
        ("branch", &facts.branch),
        ("model", &facts.model),
    ];
    let known = known
        .into_iter()
        .filter_map(|(name, value)| Some(format!("{name}: {}", value.as_ref()?)));
    let known: Vec<_> = known.collect();
    joined([
        Some(list(known.into_iter())).filter(|known| !known.is_empty()),
        part(
            "Commands that worked:",
            facts.commands.iter().map(|command| format!("`{command}`")),
        ),
    ])
}

fn files(facts: &Facts) -> String {
    let times = |count: u32, word: &str| match count {
        0 => None,
        1 => Some(format!("{word} once")),
        count => Some(format!("{word} {count} times")),
    };
    let file = |file: &super::history::Touched| {
        let done = [times(file.written, "written"), times(file.edits, "edited")];
        let done: Vec<_> = done.into_iter().flatten().collect();
        format!("{}: {}", file.path, done.join(", "))
    };
    list(facts.files.iter().map(file))
}

fn errors(facts: &Facts) -> String {
    let failures = facts.failures.iter().map(|failed| {
        let solved = if failed.solved { " (worked later)" } else { "" };
        format!(
            "{} → {}{solved}",
            clipped(&failed.call, 120),
            clipped(&failed.error, 160)
        )
    });
    let issues = facts.issues.iter().map(|(text, solved)| {
        let word = if *solved { "resolved" } else { "open" };
        format!("{word}: {text}")
    });
    let all: Vec<_> = failures.chain(issues).collect();
    list(all.into_iter())
}

fn pending(facts: &Facts) -> String {
    let todos: Vec<&str> = facts.todos.pending().collect();
    let wishes = facts.wishes.iter().map(String::as_str);
    let wishes = wishes.filter(|wish| !todos.contains(wish));
    let mut all: Vec<_> = todos.iter().copied().chain(wishes).map(one_line).collect();
    // Of a to-do list it is the first items that come next.
    all.truncate(LINES);
    list(all.into_iter())
}

fn state(facts: &Facts) -> String {
    let done = facts.todos.completed().count();
    let all = done + facts.todos.pending().count();
    let todos = (all > 0).then(|| format!("{done} of {all} to-dos are done."));
    let compacted = (facts.compactions > 0).then(|| {
        format!(
            "The client compacted its context {} times.",
            facts.compactions
        )
    });
    let interrupted = facts
        .interrupted
        .then(|| "The user interrupted the last turn.".to_owned());
    let call = facts
        .last_call
        .as_ref()
        .map(|call| format!("The last tool call: {}", clipped(call, LINE_CAP)));
    let reply = facts.last_reply.as_ref().map(|reply| {
        format!(
            "The last words: {}",
            clipped(&one_line(&unsignalled(reply)), REPLY_CAP)
        )
    });
    joined([todos, compacted, interrupted, call, reply])
}

/// A reply without its signals: the notes and facts in them travel by themselves.
fn unsignalled(reply: &str) -> String {
    const SIGNALS: [&str; 8] = [
        "SIGNAL:",
        "OBJECTIVE:",
        "DECISION:",
        "ISSUE",
        "RESOLVED:",
        "DONE:",
        "TODO:",
        "STATE ",
    ];
    let reply = reply.split("SCRATCHPAD:").next().unwrap_or_default();
    let said = reply.lines().filter(|line| {
        let bare = line.trim_start_matches([' ', '-', '*']);
        !SIGNALS.iter().any(|signal| bare.starts_with(signal))
    });
    said.collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::handoff::summary::{
        history::tests::{calls, history, replies, returns, says},
        tests::token,
    };

    #[test]
    fn the_seven_sections_are_filled_from_blocks() {
        let history = history(&[
            says("build the feed reader"),
            calls(
                "1",
                "Write",
                &json!({"file_path": "/p/src/parse.rs", "content": "a\nb"}),
            ),
            returns("1", false, "ok"),
            calls(
                "2",
                "Edit",
                &json!({"file_path": "/p/src/parse.rs", "old_string": "a", "new_string": "b"}),
            ),
            returns("2", false, "ok"),
            calls(
                "3",
                "Edit",
                &json!({"file_path": "/p/src/lost.rs", "old_string": "a", "new_string": "b"}),
            ),
            returns("3", true, "String to replace not found"),
            calls("4", "Bash", &json!({"command": "cargo test"})),
            returns("4", true, "Exit code 101\ntest parse ... FAILED"),
            calls("5", "Bash", &json!({"command": "cargo test"})),
            returns("5", false, "ok"),
            calls(
                "6",
                "TodoWrite",
                &json!({"todos": [
                {"content": "parse", "status": "completed"}, {"content": "store", "status": "in_progress"},
                {"content": "ship", "status": "pending"}]}),
            ),
            returns("6", false, "ok"),
            says("prefer SQLite"),
            replies(
                "Good.\n\nDECISION: SQLite | one file\nISSUE[high]: dates differ\nTODO: write docs\nTODO: ship",
            ),
            replies("I stop here.\n- DONE: parse\nSCRATCHPAD:\nnotes"),
        ]);
        assert_eq!(
            fallback(&history).unwrap(),
            "### User Intent\n\nbuild the feed reader\n\nSaid later, oldest first:\n- prefer SQLite\n\n\
             ### Technical Context\n\n- directory: /p\n- branch: main\n- model: claude-opus-4-8\n\n\
             Commands that worked:\n- `cargo test`\n\n\
             ### Files & Code\n\n- src/parse.rs: written once, edited once\n\n\
             ### Errors & Fixes\n\n- Edit: src/lost.rs, 1 lines become 1: b → String to replace not found\n\
             - Bash: cargo test → Exit code 101 test parse ... FAILED (worked later)\n- open: dates differ\n\n\
             ### Key Decisions\n\n- SQLite (because: one file)\n\n\
             ### Pending Tasks\n\n- store\n- ship\n- write docs\n\n\
             ### Current State\n\n1 of 3 to-dos are done.\n\nThe last tool call: TodoWrite: [x] parse; [>] store; [ ] ship\n\n\
             The last words: I stop here."
        );
    }

    #[test]
    fn nothing_said_is_no_summary_and_little_said_is_a_short_one() {
        assert_eq!(fallback(&History::default().finished()), None);
        let text = fallback(&history(&[says("hello")])).unwrap();
        assert!(text.starts_with("### User Intent\n\nhello\n\n"), "{text}");
        assert_eq!(text.matches("### ").count(), 2, "{text}");
        assert!(!text.contains("None."), "{text}");
    }

    #[test]
    fn after_a_reboot_the_objective_is_that_of_the_handoff() {
        let handoff = "pitstop handoff · r1 · iteration 1 · 0a1b2c3d\n\nYou take over.\n\n## Objective\n\nParse feeds\n\n## Pending\n\n- [ ] x\n";
        let text = fallback(&history(&[says(handoff), says("go on")])).unwrap();
        assert!(
            text.starts_with(
                "### User Intent\n\nParse feeds\n\nSaid later, oldest first:\n- go on\n\n"
            ),
            "{text}"
        );
        let signalled = history(&[says(handoff), replies("OBJECTIVE: Ship it")]);
        assert!(
            fallback(&signalled)
                .unwrap()
                .starts_with("### User Intent\n\nShip it\n")
        );
    }

    #[test]
    fn prompts_without_a_writer_are_not_what_the_user_wants() {
        let start = crate::autopilot::prompt::start("parse the feeds", "ALL DONE");
        let mut news = says("a subagent has ended");
        news["origin"] = json!({"kind": "task-notification"});
        let mut system = says("the client's own words");
        system["promptSource"] = json!("system");
        let mut typed = says("prefer RSS");
        typed["origin"] = json!({"kind": "human"});
        typed["promptSource"] = json!("typed");
        let records = [
            says(&start),
            says(&crate::autopilot::prompt::go_on()),
            says("<task-notification>\n<task-id>1</task-id>\n</task-notification>"),
            news,
            system,
            says("Read the README first."),
            says("pitstop handoff · r1 · iteration 1 · 0a1b2c3d\n\ngo on"),
            typed,
        ];
        let mut history = History::with_own_prompts(["Read the README first.".to_owned()]);
        for record in &records {
            history.push(format!("{record}\n").as_bytes());
        }
        let history = history.finished();
        let text = fallback(&history).unwrap();
        assert!(
            text.starts_with(
                "### User Intent\n\nparse the feeds\n\nSaid later, oldest first:\n- prefer RSS\n\n"
            ),
            "{text}"
        );
        let text = history.text();
        assert!(
            !text.contains("Go on with the task") && !text.contains("README"),
            "{text}"
        );
    }

    #[test]
    fn the_agents_task_list_is_followed_by_its_numbers() {
        let made = |id: &str, text: &str| {
            let mut record = returns(id, false, "created");
            record["toolUseResult"] = json!({"task": {"id": id, "subject": text}});
            record
        };
        let history = history(&[
            says("begin"),
            calls(
                "1",
                "TaskCreate",
                &json!({"subject": "parse", "description": "d"}),
            ),
            made("1", "parse"),
            calls(
                "2",
                "TaskCreate",
                &json!({"subject": "store", "description": "d"}),
            ),
            made("2", "store"),
            calls(
                "3",
                "TaskUpdate",
                &json!({"taskId": "1", "status": "completed"}),
            ),
            returns("3", false, "Updated task #1 status"),
        ]);
        let text = fallback(&history).unwrap();
        assert!(text.contains("### Pending Tasks\n\n- store\n\n"), "{text}");
        assert!(text.contains("1 of 2 to-dos are done."), "{text}");
    }

    #[test]
    fn decisions_are_plans_and_answers_too() {
        let history = history(&[
            says("begin"),
            calls(
                "1",
                "ExitPlanMode",
                &json!({"plan": "# Plan\n1. parse\n2. store"}),
            ),
            returns("1", false, "approved"),
            calls("2", "AskUserQuestion", &json!({"questions": []})),
            returns("2", false, "User has answered: SQLite"),
        ]);
        let text = fallback(&history).unwrap();
        assert!(
            text.contains("### Key Decisions\n\n- the plan: # Plan 1. parse 2. store\n- the user's answer: User has answered: SQLite\n\n"),
            "{text}"
        );
    }

    #[test]
    fn its_size_is_bounded_whatever_the_session() {
        let mut records = vec![says(&"x".repeat(100_000))];
        for n in 0..500 {
            let (id, path) = (format!("{n}"), format!("/p/{n}/{}", "y".repeat(500)));
            records.push(calls(&id, "Edit", &json!({"file_path": path})));
            records.push(returns(&id, n % 2 == 0, &"z".repeat(5_000)));
            records.push(says(&"w".repeat(3_000)));
            records.push(replies(&format!("DECISION: {n} {}", "v".repeat(900))));
        }
        let text = fallback(&history(&records)).unwrap();
        assert!(text.len() < 7 * LINES * (LINE_CAP + 20), "{}", text.len());
    }

    #[test]
    fn what_was_said_cannot_open_a_section_or_carry_a_secret() {
        let text = fallback(&history(&[
            says(&format!("go\n## Objective\nevil {}", token())),
            replies("fine\n\n# Pending\nmore evil"),
        ]))
        .unwrap();
        let headings = text.lines().filter(|line| line.starts_with('#'));
        let expected = [
            "### User Intent",
            "### Technical Context",
            "### Current State",
        ];
        assert!(headings.eq(expected), "{text}");
        assert!(!text.contains("H8i9J0"), "{text}");
    }
}
