//! Signal lines in assistant text, by which the agent names the facts that must survive.
//!
//! ```text
//! SCRATCHPAD:            everything up to a line `SIGNAL:` or the end replaces the scratchpad
//! OBJECTIVE: text        DECISION: text | why       ISSUE[high]: text       RESOLVED: text
//! DONE: item             TODO: item                 STATE key=value
//! CONSTRAINT: text       REJECTED: what | why
//! ```
//!
//! List marks or bold marks around a signal are ignored. A signal in a code fence or in a quotation is
//! talk about signals and does not count; tool output never comes here.

use super::preserved::{Origin, PreservedState, Severity, named_files};
use pitstop_base::redact::redact;
use pitstop_transcript::{
    human::Said,
    words::{Fences, signal_word},
};

/// The longest one-line signal, in bytes: longer lines are text that happens to look like a signal.
const LINE_LIMIT: usize = 2_000;

/// The most signals of one message: more are a flood and not notes.
const SIGNALS_LIMIT: usize = 500;

/// A fact that the agent wants to be kept.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Signal {
    /// The whole scratchpad, as raw Markdown.
    Scratchpad(String),
    /// The purpose of the work.
    Objective(String),
    /// A decision with its reason.
    Decision {
        /// The decision itself.
        text: String,
        /// The reason; empty if not given.
        why: String,
    },
    /// A constraint that must hold.
    Constraint(String),
    /// An approach that was rejected, with the reason.
    Rejected {
        /// The approach.
        what: String,
        /// The reason; empty if not given.
        why: String,
    },
    /// A problem.
    Issue {
        /// The severity of the problem.
        severity: Severity,
        /// The description of the problem.
        text: String,
    },
    /// An issue that is resolved.
    Resolved(String),
    /// An item that is done.
    Done(String),
    /// An item that is to do.
    Todo(String),
    /// A value to keep.
    State {
        /// The name of the value.
        key: String,
        /// The value; empty to forget it.
        value: String,
    },
}

/// Parses the signals of one message, in their order.
pub fn parse_signals(message: &str) -> Vec<Signal> {
    let mut signals = Vec::new();
    let mut notes: Option<Vec<&str>> = None;
    let mut fences = Fences::default();
    for line in message.lines() {
        if signals.len() >= SIGNALS_LIMIT {
            return signals;
        }
        let outside = fences.is_outside(line);
        if let Some(lines) = &mut notes {
            if outside && signal_word(line).is_some_and(|(word, _)| word == "SIGNAL") {
                signals.extend(scratchpad_signal(&notes.take().unwrap_or_default()));
            } else {
                lines.push(line);
            }
            continue;
        }
        if !outside {
            continue;
        }
        match signal_word(line) {
            Some(("SCRATCHPAD", rest)) => notes = Some(vec![rest]),
            Some((word, rest)) if rest.len() <= LINE_LIMIT => {
                // A part of a secret's command may stand on either side of a bar.
                signals.extend(one_line_signal(word, &redact(rest)));
            }
            _ => {}
        }
    }
    signals.extend(notes.and_then(|lines| scratchpad_signal(&lines)));
    signals
}

/// Parses the signals in the text of a pane, where the marks of Markdown are gone and the program may have put a mark of
/// its own before a message and a frame around it.
pub fn parse_pane(text: &str) -> Vec<Signal> {
    const FRAME: [char; 5] = ['│', '┃', '▌', '⏺', '●'];
    let unframed = |line: &str| {
        let inner = line.trim_start_matches([' ', '│', '┃', '▌', '⏺', '●']);
        let framed = line.trim_start().starts_with(FRAME);
        let inner = inner.trim_end().trim_end_matches(['│', '┃']).trim_end();
        // Without a frame the indentation is the notes' own.
        if framed {
            inner.to_owned()
        } else {
            line.to_owned()
        }
    };
    let lines: Vec<String> = text.lines().map(unframed).collect();
    parse_signals(&lines.join("\n"))
}

/// Returns the notes without the blank lines around them. Empty notes are ignored: they would erase the human's.
fn scratchpad_signal(lines: &[&str]) -> Option<Signal> {
    let text = lines.join("\n");
    let text = text.trim_matches('\n').trim_end();
    (!text.trim().is_empty()).then(|| Signal::Scratchpad(format!("{text}\n")))
}

fn one_line_signal(word: &str, rest: &str) -> Option<Signal> {
    let text = || (!rest.is_empty()).then(|| rest.to_owned());
    let with_reason = || {
        let (what, why) = rest.split_once('|').unwrap_or((rest, ""));
        let (what, why) = (what.trim().to_owned(), why.trim().to_owned());
        (!what.is_empty()).then_some((what, why))
    };
    match word {
        "OBJECTIVE" => text().map(Signal::Objective),
        "RESOLVED" => text().map(Signal::Resolved),
        "DONE" => text().map(Signal::Done),
        "TODO" => text().map(Signal::Todo),
        "CONSTRAINT" => text().map(Signal::Constraint),
        "REJECTED" => with_reason().map(|(what, why)| Signal::Rejected { what, why }),
        "DECISION" => with_reason().map(|(text, why)| Signal::Decision { text, why }),
        "ISSUE" => issue_signal(rest),
        "STATE" => {
            let (key, value) = rest.split_once('=')?;
            let (key, value) = (key.trim().to_owned(), value.trim().to_owned());
            let plain = !key.is_empty() && !key.contains(char::is_whitespace);
            plain.then_some(Signal::State { key, value })
        }
        _ => None,
    }
}

/// Parses `[high]: text`, or just the text.
fn issue_signal(rest: &str) -> Option<Signal> {
    let (severity, text) = match rest.strip_prefix('[') {
        None => (Severity::default(), rest),
        Some(rest) => {
            let (word, text) = rest.split_once(']')?;
            let severity = Severity::read(word)?;
            (
                severity,
                text.trim_start_matches(['*', '_'])
                    .strip_prefix(':')?
                    .trim(),
            )
        }
    };
    (!text.is_empty()).then(|| Signal::Issue {
        severity,
        text: text.to_owned(),
    })
}

/// Reports whether a line would count as a signal if the assistant wrote it.
pub fn is_signal(line: &str) -> bool {
    signal_word(line).is_some()
}

impl PreservedState {
    /// Applies a signal; the scratchpad is a file and is not kept here.
    pub fn feed_signal(&mut self, signal: &Signal, at: chrono::DateTime<chrono::Utc>) {
        match signal {
            Signal::Scratchpad(_) => {}
            Signal::Objective(text) => self.set_objective(text, Origin::Signal),
            Signal::Decision { text, why } => {
                self.record_decision(text, why, Some(at), Origin::Signal);
            }
            Signal::Issue { severity, text } => {
                self.record_issue(text, *severity, named_files(text), Origin::Signal);
            }
            Signal::Resolved(text) => self.resolve_issue(text, Origin::Signal),
            Signal::Constraint(text) => {
                let said = Said {
                    text: text.clone(),
                    at: Some(at),
                };
                self.add_constraint(said, Origin::Signal);
            }
            Signal::Rejected { what, why } => self.add_rejected(what, why, Origin::Signal),
            Signal::Done(item) => self.mark_completed(item, Origin::Signal),
            Signal::Todo(item) => self.add_pending(item, Origin::Signal),
            Signal::State { key, value } => self.set_custom(key, value, Origin::Signal),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::preserved::Item;

    #[test]
    fn the_files_of_an_issue_are_those_it_quotes() {
        let text = "`src/a-b.rs` and `lib.rs` break `Vec<T>`, `a::b`, `1.5`, `../x.rs`, `/etc/a.rs`, src/c.rs";
        assert_eq!(named_files(text), ["src/a-b.rs", "lib.rs"]);
    }

    #[test]
    fn a_flood_of_signals_is_cut() {
        assert_eq!(
            parse_signals(&"TODO: a\n".repeat(9_000)).len(),
            SIGNALS_LIMIT
        );
    }

    #[test]
    fn one_liners_are_read_with_and_without_marks() {
        let message = "Some talk.\nOBJECTIVE: ship it\n- **DECISION:** use sqlite | one file\n* DONE: the parser\n\
             **TODO: the lexer**\nISSUE[high]: it leaks\nISSUE: it squeaks\nRESOLVED: it leaks\nSTATE port=8080\nSTATE: a = b\n";
        let expected = [
            Signal::Objective("ship it".into()),
            Signal::Decision {
                text: "use sqlite".into(),
                why: "one file".into(),
            },
            Signal::Done("the parser".into()),
            Signal::Todo("the lexer".into()),
            Signal::Issue {
                severity: Severity::High,
                text: "it leaks".into(),
            },
            Signal::Issue {
                severity: Severity::Medium,
                text: "it squeaks".into(),
            },
            Signal::Resolved("it leaks".into()),
            Signal::State {
                key: "port".into(),
                value: "8080".into(),
            },
            Signal::State {
                key: "a".into(),
                value: "b".into(),
            },
        ];
        assert_eq!(parse_signals(message), expected);
    }

    #[test]
    fn a_scratchpad_signal_keeps_the_text_around_it_out() {
        let message = "Before.\n\nSCRATCHPAD:\n## Current Plan\n- [x] **one**\n\n```\nSIGNAL:\n```\n- [ ] two\nSIGNAL:\nAfter.\nDONE: one";
        let notes = "## Current Plan\n- [x] **one**\n\n```\nSIGNAL:\n```\n- [ ] two\n";
        assert_eq!(
            parse_signals(message),
            [Signal::Scratchpad(notes.into()), Signal::Done("one".into())]
        );
    }

    #[test]
    fn a_scratchpad_signal_without_an_end_goes_to_the_end() {
        assert_eq!(
            parse_signals("SCRATCHPAD: a\nb"),
            [Signal::Scratchpad("a\nb\n".into())]
        );
        assert_eq!(
            parse_signals("SCRATCHPAD:\n\nSIGNAL:"),
            [],
            "empty notes would wipe the human's"
        );
    }

    #[test]
    fn fences_quotes_and_talk_do_not_count() {
        for talk in [
            "```\nDONE: a\n```",
            "~~~~\n```\nDONE: a\n~~~~",
            "> DONE: a",
            "The word DONE: means this",
            "DONE a",
            "done: a",
            "DONE:",
            "ISSUE[awful]: a",
            "STATE a b=c",
            "DECISION: | why",
        ] {
            assert_eq!(parse_signals(talk), [], "{talk:?}");
        }
    }

    #[test]
    fn signals_change_the_preserved_state() {
        let mut state = PreservedState::default();
        let message = "TODO: a\nTODO: b\nDONE: a\nISSUE[low]: x\nRESOLVED: x\nSTATE k=v\nOBJECTIVE: o\nDECISION: d | w";
        for signal in parse_signals(message) {
            state.feed_signal(&signal, chrono::DateTime::UNIX_EPOCH);
        }
        assert_eq!(state.pending_items, [Item::new("b", Origin::Signal)]);
        assert_eq!(state.completed_items, [Item::new("a", Origin::Signal)]);
        assert!(state.known_issues[0].addressed);
        assert_eq!(state.custom.get("k"), Some(&Item::new("v", Origin::Signal)));
        assert_eq!(
            state.current_objective,
            Some(Item::new("o", Origin::Signal))
        );
        assert_eq!(state.decisions[0].rationale, "w");
    }

    proptest::proptest! {
        #[test]
        fn any_text_is_read_without_a_panic(text in "(SCRATCHPAD|SIGNAL|DONE|ISSUE|STATE|:|\\[|\\]|=|\\*|`|~|\n| |-|é|x){0,80}") {
            let _ = parse_signals(&text);
        }
    }
}
