//! What a person changed in a message before it was sent. The change applies to all later messages too.
//!
//! ```text
//!   change                                             in later messages
//!   a prompt, rule, decision or rejection is removed   it is left out
//!   the objective is rewritten                         it is the objective
//!   a line is added anywhere else                      it is the human's own words
//! ```
//!
//! An edit is compared with the text that was edited, and not with what the sources have made of the message since.

use std::collections::HashSet;

use chrono::{DateTime, Utc};
use pitstop_base::redact::redact;
use pitstop_transcript::human::{OBJECTIVE_HEADING, PROMPTS_HEADING, Said, as_listed, parse_item};
use serde::{Deserialize, Serialize};

use crate::{PreservedState, preserved::Origin, sections::decision_text, work::rejected_text};

/// The heading of the rules that the agent has stated.
const RULES_HEADING: &str = "## Constraints";

/// The changes of a message that is still to be sent, by all edits of it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(default)]
pub struct Edits {
    /// The prompts that were added to their list, each as its line.
    prompts: Vec<String>,
    /// The texts that were added elsewhere, each a block of whole lines.
    added: Vec<String>,
    /// The lines of prompts and rules that were removed or changed.
    withdrawn: Vec<String>,
    /// The other lines that were removed or changed.
    removed: Vec<String>,
    /// The objective, if that was changed.
    objective: Option<String>,
}

impl Edits {
    /// Takes in one edit: the text as the editor was given it, and as it was left.
    pub fn take_in(&mut self, before: &str, after: &str) {
        let lines = |text: &str| text.lines().map(|line| line.trim().to_owned()).collect();
        let (old, new): (HashSet<String>, HashSet<String>) = (lines(before), lines(after));
        let mut gone = Vec::new();
        for (heading, line) in below_headings(before) {
            if new.contains(line) {
                continue;
            }
            gone.push(line);
            if [PROMPTS_HEADING, RULES_HEADING].contains(&heading) {
                self.withdrawn.push(line.to_owned());
            } else {
                self.removed.push(line.to_owned());
            }
        }
        // A line of which only a part was removed says nothing new.
        let is_new =
            |line: &str| !old.contains(line) && !gone.iter().any(|all| is_part_of(line, all));
        let mut block = String::new();
        for (heading, line) in below_headings(after) {
            if !is_new(line) || line.starts_with("## ") || line.starts_with("```") {
                self.add(&std::mem::take(&mut block));
            } else if heading == PROMPTS_HEADING && parse_item(line).is_some() {
                self.prompts.push(line.to_owned());
            } else if heading != OBJECTIVE_HEADING {
                block.push_str(line.strip_prefix("- ").unwrap_or(line));
                block.push('\n');
            }
        }
        self.add(&block);
        let objective = |text| {
            let lines = below_headings(text).filter(|(heading, _)| *heading == OBJECTIVE_HEADING);
            let lines: Vec<_> = lines.skip(1).map(|(_, line)| line).collect();
            lines.join("\n").trim().to_owned()
        };
        let objective = (objective(before), objective(after));
        if objective.0 != objective.1 {
            self.objective = Some(objective.1);
        }
    }

    fn add(&mut self, block: &str) {
        let text = block.trim();
        if !text.is_empty() {
            self.added.push(text.to_owned());
        }
    }

    /// Applies the changes that are still in the text as it is sent, with the time of the human's words.
    pub fn apply(self, sent: &str, at: DateTime<Utc>, state: &mut PreservedState) {
        let lines: HashSet<&str> = sent.lines().map(str::trim).collect();
        let is_there =
            |line: &str| lines.contains(line) || lines.contains(format!("- {line}").as_str());
        let withdrawn = self.withdrawn.iter().filter(|line| !is_there(line));
        for said in withdrawn.filter_map(|line| parse_item(line)) {
            state.withdraw_constraint(&said);
        }
        let prompts = self.prompts.iter().filter(|line| is_there(line));
        for said in prompts.filter_map(|line| parse_item(line)) {
            state.restate_constraint(said);
        }
        for text in self.added {
            let kept = text.lines().filter(|line| is_there(line));
            let text = as_listed(&redact(&kept.collect::<Vec<_>>().join("\n")));
            state.restate_constraint(Said { text, at: Some(at) });
        }
        if let Some(objective) = self.objective {
            state.set_objective(&redact(&objective), Origin::Human);
        }
        let removed = |text: String| {
            let line = format!("- {text}");
            self.removed.contains(&line) && !is_there(&line)
        };
        state.decisions.retain(|one| !removed(decision_text(one)));
        state.rejected.retain(|one| !removed(rejected_text(one)));
    }
}

/// Returns the lines without the blanks around them, each with the heading that it is below; a heading is below itself.
fn below_headings(text: &str) -> impl Iterator<Item = (&str, &str)> {
    text.lines().map(str::trim).scan("", |heading, line| {
        if line.starts_with("## ") {
            *heading = line;
        }
        Some((*heading, line))
    })
}

/// Reports whether a text is what is left of another one where words, or one piece of any kind, are removed.
fn is_part_of(text: &str, whole: &str) -> bool {
    let mut words = whole.split_whitespace();
    let same = text.chars().zip(whole.chars());
    let same = same.take_while(|(one, other)| one == other);
    let same: usize = same.map(|(one, _)| one.len_utf8()).sum();
    text.split_whitespace()
        .all(|word| words.any(|other| other == word))
        || whole[same..].ends_with(&text[same..])
}

#[cfg(test)]
mod tests {
    use super::*;

    const MESSAGE: &str = "Read all of it.\n\n## Objective\n\nPort it\n\n## What the human said\n\n- 2026-11-20: Never a.\n\n\
                           ## Key decisions\n\n- use sqlite (because: one file)\n- use tabs\n\n## Rejected\n\n- redis\n\n\
                           ## Git\n\n- branch main\n\n## Carry on\n\nCarry on with \"the tests\".";

    fn state() -> PreservedState {
        let mut state = PreservedState::default();
        state.set_objective("Port it", Origin::Signal);
        state.record_decision("use sqlite", "one file", None, Origin::Signal);
        state.record_decision("use tabs", "", None, Origin::Signal);
        state.add_rejected("redis", "", Origin::Signal);
        state
    }

    /// Returns the state after these edits of the message, each of the text that the one before left.
    fn edited(steps: &[(&str, &str)]) -> PreservedState {
        let (mut edits, mut text) = (Edits::default(), MESSAGE.to_owned());
        for (from, to) in steps {
            let after = text.replace(from, to);
            edits.take_in(&text, &after);
            text = after;
        }
        let mut state = state();
        edits.apply(&text, DateTime::UNIX_EPOCH, &mut state);
        state
    }

    #[test]
    fn prompts_are_changed_in_their_list() {
        for (to, expected) in [
            ("", vec![]),
            ("- 2026-11-20: Never a again.\n", vec!["Never a again."]),
            ("- 2026-11-20: Never a.\n- b\n", vec!["Never a.", "b"]),
        ] {
            let (mut edits, mut state) = (Edits::default(), state());
            let never = |at| Said {
                text: "Never a.".to_owned(),
                at,
            };
            state.add_constraint(never(None), Origin::Human);
            let text = MESSAGE.replace("- 2026-11-20: Never a.\n", to);
            edits.take_in(MESSAGE, &text);
            // What was said after the edit is in no line of it.
            let later = Said {
                text: "said later".to_owned(),
                at: None,
            };
            state.add_constraint(later, Origin::Human);
            edits.apply(&text, DateTime::UNIX_EPOCH, &mut state);
            // The transcript, which is read again, has it still.
            state.add_constraint(never(None), Origin::Human);
            let mut words = words(&state);
            words.retain(|word| *word != "said later");
            assert_eq!(words, expected);
            assert_eq!(state.prompts().count(), expected.len() + 1);
        }
    }

    fn words(state: &PreservedState) -> Vec<&str> {
        let prompts = state.prompts();
        prompts.map(|prompt| prompt.said.text.as_str()).collect()
    }

    #[test]
    fn what_a_person_adds_anywhere_is_their_word() {
        for (step, expected) in [
            (
                (
                    "Read all of it.",
                    "Read all of it.\nUse port 9999.\nIt is free.",
                ),
                "Use port 9999.\nIt is free.",
            ),
            (
                ("- branch main", "- branch main\n- Никогда не трогай master"),
                "Никогда не трогай master",
            ),
            (
                ("\"the tests\".", "\"the tests\". 先に README を読む"),
                "Carry on with \"the tests\". 先に README を読む",
            ),
            (
                ("## Git", "## My notes\n\nthe crane leaks\n\n## Git"),
                "the crane leaks",
            ),
            (("- use tabs", "- use spaces"), "use spaces"),
            (
                (
                    "- 2026-11-20: Never a.",
                    "- 2026-11-20: Never a.\nNever b either.",
                ),
                "Never b either.",
            ),
            (
                (
                    "- 2026-11-20: Never a.",
                    "絶対に b しない\n- 2026-11-20: Never a.",
                ),
                "絶対に b しない",
            ),
            (
                (
                    "- 2026-11-20: Never a.",
                    "- 2026-11-20: Never a.\n\nAsk first.\nThen push.",
                ),
                "Ask first.\nThen push.",
            ),
        ] {
            assert_eq!(words(&edited(&[step])), [expected]);
        }
        // What is shorter now says nothing new.
        assert!(words(&edited(&[("the tests\"", "tests\"")])).is_empty());
    }

    #[test]
    fn what_was_typed_and_removed_again_is_not_said() {
        let added = ("- branch main", "- branch main\nfirst\nsecond");
        assert_eq!(words(&edited(&[added, ("first\n", "")])), ["second"]);
        assert!(words(&edited(&[added, ("\nfirst\nsecond", "")])).is_empty());
    }

    #[test]
    fn a_changed_objective_is_the_objective() {
        let objective =
            |state: PreservedState| state.current_objective.map(|one| (one.text, one.origin));
        let human = |text: &str| Some((text.to_owned(), Origin::Human));
        assert_eq!(
            objective(edited(&[("Port it", "Port it to C\n\nand test it")])),
            human("Port it to C\n\nand test it")
        );
        let agents = Some(("Port it".to_owned(), Origin::Signal));
        assert_eq!(objective(edited(&[("use tabs", "use spaces")])), agents);
    }

    #[test]
    fn a_decision_and_a_rejection_that_were_removed_do_not_come_back() {
        let state = edited(&[
            ("- use sqlite (because: one file)\n", ""),
            ("- redis\n", ""),
        ]);
        let left: Vec<_> = state
            .decisions
            .iter()
            .map(|one| one.description.as_str())
            .collect();
        assert_eq!((left, state.rejected.len()), (vec!["use tabs"], 0));
        // Taken out and put back.
        let state = edited(&[("- redis\n", ""), ("## Git", "- redis\n\n## Git")]);
        assert_eq!(state.rejected.len(), 1);
    }

    #[test]
    fn neither_a_long_text_nor_a_pasted_log_fills_the_list() {
        let added = |text: &str| edited(&[("- branch main", &format!("- branch main\n{text}"))]);
        let long = added(&"a word ".repeat(5_000));
        assert!(words(&long)[0].len() < 3_000);
        let pasted = added(&"line of a log\n".repeat(5_000));
        assert_eq!(words(&pasted), words(&added("")));
    }

    #[test]
    fn a_short_line_is_new_though_its_letters_are_in_a_removed_one() {
        let decision = "- use sqlite (because: one file)";
        for (line, new) in [
            ("- use it", Some("use it")),
            ("- see", Some("see")),
            ("- use line", Some("use line")),
            ("- use sqlite", None),
            ("- use file)", None),
            ("- use sqlite (one file)", None),
        ] {
            let state = edited(&[(decision, line)]);
            assert_eq!(words(&state), Vec::from_iter(new), "{line}");
        }
        for (line, whole) in [
            ("既に書く", "既に長い本文を書く"),
            ("не", "никогда не трогай"),
        ] {
            assert!(is_part_of(line, whole), "{line}");
        }
        assert!(!is_part_of("書本", "既に書く長い本文"));
    }
}
