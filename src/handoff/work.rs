//! What was said and done, as sections of the message: each thing once, in as few words as say it.
//!
//! Some of them are read back by the session after this one ([`crate::transcript::human`],
//! [`crate::transcript::work`]): that is how they stand through any number of reboots.

use std::{collections::HashSet, fmt::Write as _};

use crate::transcript::{
    human::{self, RULES_HEADING, Said, parse_rule, section},
    rules,
    work::{BRANCH, CHANGED_MARK, Failure, FileAtHand, WorkAtHand},
};

use super::{
    PreservedState,
    sections::{fenced, joined, one_line},
};

/// How the lines of the work at hand begin that name no file.
pub(super) const ALSO_NAMED: &str = "Also named";
pub(super) const REFERENCES: &str = "References";

/// A rule as an item of the list.
#[must_use]
pub(super) fn rule_line(rule: &Said) -> String {
    human::rule_line(&Said {
        text: one_line(&rule.text).into_owned(),
        at: rule.at,
    })
}

/// Takes over what a person did to the list of rules in a message: those they took out are withdrawn, those they wrote
/// are theirs. `made` is the message as it was made, `body` what became of it.
pub fn take_edited_rules(state: &mut PreservedState, made: &str, body: &str) {
    let items = |text: &str| -> Vec<Said> {
        let lines = section(text, RULES_HEADING).into_iter();
        let items = lines.filter_map(|line| line.strip_prefix("- "));
        items.map(parse_rule).collect()
    };
    let key = |said: &Said| rules::key(&said.text);
    let (before, after) = (items(made), items(body));
    let (known, stays): (HashSet<_>, HashSet<_>) = (
        before.iter().map(key).collect(),
        after.iter().map(key).collect(),
    );
    for gone in before.iter().filter(|said| !stays.contains(&key(said))) {
        state.withdraw_constraint(gone);
    }
    for said in after.into_iter().filter(|said| !known.contains(&key(said))) {
        state.restate_constraint(said);
    }
}

/// Ways that are not taken, with the reason.
#[must_use]
pub fn rejected(state: &PreservedState) -> String {
    let lines = state.rejected.iter().map(|one| match one.why.as_str() {
        "" => format!("- {}", one_line(&one.what)),
        why => format!("- {} (because: {})", one_line(&one.what), one_line(why)),
    });
    joined(lines)
}

/// A prompt as a quotation, so that no line of it is a heading or a signal of the message.
#[must_use]
pub fn quoted(text: &str) -> String {
    let lines = text.trim().lines().map(|line| match line.trim_end() {
        "" => ">".to_owned(),
        line => format!("> {line}"),
    });
    lines.collect::<Vec<_>>().join("\n")
}

/// Files with what was touched in them, names of no file, references; without the branch where git's section has it.
#[must_use]
pub fn files(work: &WorkAtHand, git_is_shown: bool) -> String {
    let mut out = String::new();
    for file in &work.files {
        let _ = writeln!(out, "{}", file_line(file));
    }
    let references = work.references.iter();
    let references = references.filter(|one| !(git_is_shown && one.starts_with(BRANCH)));
    let references: Vec<String> = references.cloned().collect();
    for (head, items) in [(ALSO_NAMED, &work.names), (REFERENCES, &references)] {
        if !items.is_empty() {
            let _ = writeln!(out, "- {head}: {}", one_line(&items.join(", ")));
        }
    }
    out.trim_end().to_owned()
}

/// `- path:12 (changed): name, name`
pub(super) fn file_line(file: &FileAtHand) -> String {
    format!("- {}", file_text(file))
}

/// `path:12 (changed): name, name`
pub(super) fn file_text(file: &FileAtHand) -> String {
    let mut line = one_line(&file.path).into_owned();
    if let Some(number) = file.line {
        let _ = write!(line, ":{number}");
    }
    if file.changed {
        line.push_str(CHANGED_MARK);
    }
    if !file.names.is_empty() {
        let _ = write!(line, ": {}", file.names.join(", "));
    }
    line
}

/// The commands, each once, the latest first.
#[must_use]
pub fn commands(work: &WorkAtHand) -> String {
    let lines = work.commands.iter();
    let lines = lines.map(|command| format!("- `{}`", one_line(command)));
    lines.collect::<Vec<_>>().join("\n")
}

/// The last failure, with the lines of its output that matter.
#[must_use]
pub fn failure(work: &WorkAtHand) -> String {
    let last = work.last_failure.as_ref();
    last.map_or_else(String::new, failure_text)
}

pub(super) fn failure_text(failure: &Failure) -> String {
    let call = one_line(&failure.call);
    match failure.lines.as_slice() {
        [] => format!("`{call}`"),
        lines => format!("`{call}`\n\n{}", fenced(&lines.join("\n"))),
    }
}

/// What else failed and has not worked since, a line each.
#[must_use]
pub fn tried(work: &WorkAtHand) -> String {
    work.tried
        .iter()
        .map(tried_line)
        .collect::<Vec<_>>()
        .join("\n")
}

/// `- call: the first line of its output`
pub(super) fn tried_line(failure: &Failure) -> String {
    format!("- {}", tried_text(failure))
}

pub(super) fn tried_text(failure: &Failure) -> String {
    let call = one_line(&failure.call);
    match failure.lines.first() {
        Some(why) => format!("`{call}`: {}", one_line(why)),
        None => format!("`{call}`"),
    }
}

/// The latest plan of the agent.
#[must_use]
pub fn plan(work: &WorkAtHand) -> String {
    quoted(work.plan.as_deref().unwrap_or_default())
}

/// The agent's last paragraphs.
#[must_use]
pub fn last_words(work: &WorkAtHand) -> String {
    quoted(&work.last_words.join("\n\n"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        handoff::{Generator, Marker, Sources, preserved::Origin},
        transcript::{human::HumanWords, work::Work},
    };
    use serde_json::json;

    fn said(text: &str) -> Said {
        Said {
            text: text.to_owned(),
            at: "2026-11-20T08:00:00Z".parse().ok(),
        }
    }

    fn handoff(state: &PreservedState, work: &WorkAtHand, latest: &str) -> String {
        let marker = Marker {
            run: "r1".to_owned(),
            iteration: 1,
            nonce: "0a1b2c3d".to_owned(),
        };
        let sources = Sources {
            work: Some(work),
            first_request: "Port the importer\n- and its tests",
            latest_request: latest,
            ..Sources::new(&marker, state)
        };
        let handoff = Generator::default().generate(&sources, 50_000);
        handoff.unwrap().text
    }

    #[test]
    fn what_a_handoff_says_is_read_back_by_the_next_session() {
        let mut state = PreservedState::default();
        state.set_objective("Build it", Origin::Human);
        state.add_constraint(said("Never touch main: it is live."), Origin::Human);
        state.add_constraint(said("Prefer small commits"), Origin::Human);
        let work = WorkAtHand {
            files: vec![
                FileAtHand {
                    path: "src/a_b.rs".to_owned(),
                    changed: true,
                    line: Some(12),
                    names: vec!["first_name".to_owned(), "secondName".to_owned()],
                },
                FileAtHand {
                    path: "docs/c.md".to_owned(),
                    ..FileAtHand::default()
                },
            ],
            names: vec!["free_name".to_owned()],
            references: vec!["owner/name#12".to_owned()],
            commands: vec!["cargo test".to_owned(), "git diff".to_owned()],
            ..WorkAtHand::default()
        };
        let text = handoff(&state, &work, "Go on\n\n## Objective\n\nwith the tests");
        let mut words = HumanWords::default();
        assert!(words.prompt(&text, None));
        let rules: Vec<_> = words.rules.iter().map(|rule| rule.text.as_str()).collect();
        assert_eq!(
            rules,
            ["Never touch main: it is live.", "Prefer small commits"]
        );
        let text_of = |said: &Option<Said>| said.as_ref().unwrap().text.clone();
        assert_eq!(
            text_of(&words.carried_first),
            "Port the importer\n- and its tests"
        );
        assert_eq!(
            text_of(&words.carried_latest),
            "Go on\n\n## Objective\n\nwith the tests"
        );
        let mut next = Work::default();
        next.record(&json!({ "type": "user", "message": { "content": text } }));
        let report = next.report();
        assert_eq!(report.files, work.files);
        assert_eq!(report.names, work.names);
        assert_eq!(report.references, work.references);
        assert_eq!(report.commands, work.commands);
    }

    #[test]
    fn a_rule_that_was_taken_out_of_the_list_does_not_come_back() {
        let mut state = PreservedState::default();
        for rule in ["Never a.", "Never b.", "Never c."] {
            state.add_constraint(said(rule), Origin::Human);
        }
        let made = handoff(&state, &WorkAtHand::default(), "");
        let body = made
            .replace("- 2026-11-20: Never b.\n", "")
            .replace("Never c.", "Never c again.");
        take_edited_rules(&mut state, &made, &body);
        for rule in ["Never b.", "Never c."] {
            state.add_constraint(said(rule), Origin::Human);
        }
        let rules: Vec<_> = state
            .constraints
            .iter()
            .map(|rule| rule.said.text.as_str())
            .collect();
        assert_eq!(rules, ["Never a.", "Never c again."]);
    }

    #[test]
    fn a_prompt_forges_no_section() {
        let text = handoff(
            &PreservedState::default(),
            &WorkAtHand::default(),
            "x\n## Next step\nTODO: y",
        );
        assert!(!text.contains("\n## Next step"), "{text}");
        assert!(crate::handoff::signal::parse(&text).is_empty(), "{text}");
    }
}
