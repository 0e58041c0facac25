//! The summary without a model: the facts that are known of the session anyway, under those of the same seven headings that
//! have content. If the rules find nothing for a heading, there may still be something, so "None." would claim too much.

use super::{make_harmless, put_together};
use crate::{PreservedState, sections::decision_text, work};
use pitstop_transcript::{words::clipped_line, work::WorkAtHand};

/// The number of lines of each kind that are shown.
const LINES: usize = 12;

/// The most of one line and of the last words, in bytes.
const LINE_CAP: usize = 300;
const WORDS_CAP: usize = 900;

/// Returns the sections that are not empty; `None` if there are none. `requests` are the human's first and latest one.
pub fn fallback(state: &PreservedState, requests: &[&str], work: &WorkAtHand) -> Option<String> {
    let bodies = [
        intent_section(state, requests),
        context_section(work),
        list_first(work.files.iter().map(work::file_text)),
        errors_section(state, work),
        list_first(latest_few(&state.decisions).map(decision_text)),
        list_first(state.pending_items.iter().map(|item| item.text.clone())),
        current_section(state, work),
    ];
    let bodies = bodies.map(|body| make_harmless(&body));
    let text = put_together(bodies.iter().map(String::as_str));
    (!text.is_empty()).then_some(text)
}

/// Returns the first few of these items as a list.
fn list_first(items: impl Iterator<Item = String>) -> String {
    let items = items.take(LINES);
    let lines = items.map(|item| format!("- {}", clipped_line(&item, LINE_CAP)));
    lines.collect::<Vec<_>>().join("\n")
}

/// Returns the last few of a list whose latest item comes last.
fn latest_few<T>(items: &[T]) -> impl Iterator<Item = &T> {
    items[items.len().saturating_sub(LINES)..].iter()
}

fn join_parts(parts: impl IntoIterator<Item = String>) -> String {
    let parts = parts.into_iter().filter(|part| !part.is_empty());
    parts.collect::<Vec<_>>().join("\n\n")
}

fn intent_section(state: &PreservedState, requests: &[&str]) -> String {
    let objective = state.current_objective.as_ref();
    let objective = objective.map_or("", |objective| objective.as_str());
    let others = requests
        .iter()
        .filter(|request| !request.is_empty() && request.trim() != objective);
    join_parts([
        clipped_line(objective, LINE_CAP),
        list_first(others.map(|request| (*request).to_owned())),
    ])
}

fn context_section(work: &WorkAtHand) -> String {
    join_parts([
        list_first(work.references.iter().cloned()),
        work::command_lines(work),
    ])
}

fn errors_section(known: &PreservedState, work: &WorkAtHand) -> String {
    let last = work.last_failure.iter();
    let failures = last.chain(&work.tried).map(work::tried_text);
    let issues = latest_few(&known.known_issues).map(|issue| {
        let state = if issue.addressed { "resolved" } else { "open" };
        format!("{state}: {}", issue.description)
    });
    list_first(failures.chain(issues))
}

fn current_section(state: &PreservedState, work: &WorkAtHand) -> String {
    let done = state.completed_items.len();
    let all = done + state.pending_items.len();
    let done = if all > 0 {
        format!("{done} of {all} items are done.")
    } else {
        String::new()
    };
    let words = match work.last_words.as_slice() {
        [] => String::new(),
        words => format!(
            "The last words: {}",
            clipped_line(&words.join(" "), WORDS_CAP)
        ),
    };
    join_parts([done, words])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        preserved::{Item, Origin, Severity},
        summary::tests::token,
    };
    use pitstop_transcript::work::{Failure, FileAtHand};

    #[test]
    fn the_seven_sections_are_filled_from_what_is_known() {
        let mut state = PreservedState::default();
        state.set_objective("build the feed reader", Origin::Human);
        state.record_decision(
            "SQLite",
            "one file",
            Some(chrono::DateTime::UNIX_EPOCH),
            Origin::Human,
        );
        state.record_issue("dates differ", Severity::High, Vec::new(), Origin::Human);
        state.pending_items = vec![Item::new("ship", Origin::Todo)];
        state.completed_items = vec![Item::new("parse", Origin::Todo)];
        let failed = |call: &str, line: &str| Failure {
            call: call.into(),
            lines: vec![line.into(), "more".into()],
            worked_later: false,
        };
        let work = WorkAtHand {
            files: vec![FileAtHand {
                path: "src/parse.rs".into(),
                changed: true,
                line: Some(7),
                names: vec!["parse_feed".into()],
            }],
            references: vec!["branch main".into()],
            commands: vec!["cargo test".into()],
            last_failure: Some(failed("cargo test", "FAILED")),
            tried: vec![failed("Edit src/lost.rs", "String to replace not found")],
            last_words: vec!["I stop".into(), "here.".into()],
            ..WorkAtHand::default()
        };
        assert_eq!(
            fallback(&state, &["build the feed reader", "prefer SQLite"], &work).unwrap(),
            "### User Intent\n\nbuild the feed reader\n\n- prefer SQLite\n\n\
             ### Technical Context\n\n- branch main\n\n- `cargo test`\n\n\
             ### Files & Code\n\n- src/parse.rs:7 (changed): parse_feed\n\n\
             ### Errors & Fixes\n\n- `cargo test`: FAILED\n\
             - `Edit src/lost.rs`: String to replace not found\n- open: dates differ\n\n\
             ### Key Decisions\n\n- SQLite (because: one file)\n\n\
             ### Pending Tasks\n\n- ship\n\n\
             ### Current State\n\n1 of 2 items are done.\n\nThe last words: I stop here."
        );
    }

    #[test]
    fn nothing_known_is_no_summary_and_little_is_a_short_one() {
        let mut state = PreservedState::default();
        let work = WorkAtHand::default();
        assert_eq!(fallback(&state, &["", ""], &work), None);
        state.set_objective("hello", Origin::Human);
        assert_eq!(
            fallback(&state, &["hello"], &work).unwrap(),
            "### User Intent\n\nhello"
        );
    }

    #[test]
    fn its_size_is_bounded_and_it_opens_no_section_and_carries_no_secret() {
        let mut state = PreservedState::default();
        state.set_objective(
            &format!("go\n## Objective\nevil {}", token()),
            Origin::Human,
        );
        let huge = format!("# Pending\n{}", "y".repeat(100_000));
        state.pending_items = vec![Item::new(&huge, Origin::Todo); 500];
        let work = WorkAtHand {
            references: vec![huge.clone(); 100],
            last_words: vec![huge.clone(); 9],
            tried: vec![
                Failure {
                    call: huge.clone(),
                    ..Failure::default()
                };
                99
            ],
            ..WorkAtHand::default()
        };
        let text = fallback(&state, &[&huge, &huge], &work).unwrap();
        assert!(text.len() < 7 * LINES * (LINE_CAP + 20), "{}", text.len());
        let headings = text.lines().filter(|line| line.starts_with('#'));
        let expected = [
            "### User Intent",
            "### Technical Context",
            "### Errors & Fixes",
            "### Pending Tasks",
            "### Current State",
        ];
        assert!(headings.eq(expected), "{text}");
        assert!(!text.contains("H8i9J0"), "{text}");
    }
}
