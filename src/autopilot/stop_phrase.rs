//! The stop phrase: the exact text by which the agent says that the whole task is done.
//!
//! It counts only in the assistant's own words: not in a code fence, a quotation, a code span or quotation marks, and not as
//! a part of a longer word. A prompt or a tool's output never comes here.

use crate::transcript::words::own_lines;

/// The stop phrase of a run that was given none.
pub const DEFAULT: &str = "PITSTOP TASK COMPLETE";

/// The longest stop phrase, in bytes: it is a mark, not a text.
pub const LIMIT: usize = 200;

/// The pairs of marks between which a text is quoted. A single straight mark is an apostrophe as often as not, so it
/// quotes only where it stands at both ends of the stop phrase.
const QUOTES: [(char, char); 6] = [
    ('`', '`'),
    ('"', '"'),
    ('“', '”'),
    ('„', '“'),
    ('«', '»'),
    ('‘', '’'),
];

/// Whether the message gives the stop phrase in its own words.
#[must_use]
pub fn is_given(stop_phrase: &str, message: &str) -> bool {
    line(stop_phrase, message).is_some()
}

/// The line of the message that gives the stop phrase.
#[must_use]
pub fn line<'a>(stop_phrase: &str, message: &'a str) -> Option<&'a str> {
    let stop_phrase = stop_phrase.trim();
    let mut lines = own_lines(message).filter(|_| !stop_phrase.is_empty());
    lines.find(|line| is_in_line(stop_phrase, line))
}

fn is_in_line(stop_phrase: &str, line: &str) -> bool {
    line.match_indices(stop_phrase).any(|(at, _)| {
        let (before, behind) = (&line[..at], &line[at + stop_phrase.len()..]);
        stands_alone(before, behind) && !is_quoted(stop_phrase, before, behind)
    })
}

/// Whether no word goes on at either end: `DONE` is neither in `UNDONE` nor in `NOT_DONE`, but in `_DONE_`.
fn stands_alone(before: &str, behind: &str) -> bool {
    !joins(before.chars().rev()) && !joins(behind.chars())
}

fn joins(mut outward: impl Iterator<Item = char>) -> bool {
    match outward.next() {
        Some('_' | '-') => outward.next().is_some_and(char::is_alphanumeric),
        next => next.is_some_and(char::is_alphanumeric),
    }
}

/// Whether a quotation is open before the stop phrase and closed behind it. Marks that the stop phrase has itself say nothing.
fn is_quoted(stop_phrase: &str, before: &str, behind: &str) -> bool {
    let by_pair = QUOTES.iter().any(|&(open, close)| {
        if stop_phrase.contains([open, close]) {
            return false;
        }
        let is_open = if open == close {
            before.matches(open).count() % 2 == 1
        } else {
            before.rfind(open) > before.rfind(close)
        };
        is_open && behind.contains(close)
    });
    by_pair || (before.ends_with('\'') && behind.starts_with('\''))
}

#[cfg(test)]
mod tests {
    use super::*;

    const PROMISE: &str = "ALL DONE";

    #[test]
    fn the_stop_phrase_counts_in_the_assistants_own_words() {
        for said in [
            "ALL DONE",
            "Everything is built.\n\nALL DONE\n",
            "**ALL DONE**",
            "_ALL DONE_",
            "# ALL DONE!",
            "- [x] parse\nALL DONE.",
            "It's ALL DONE, don't worry.",
            "<promise>ALL DONE</promise>",
            "```\ncode\n```\nALL DONE",
            "> a quote\n\nALL DONE",
            "I ran `cargo test` and \"cargo doc\": ALL DONE (see `log`)",
        ] {
            assert!(is_given(PROMISE, said), "{said:?}");
        }
    }

    #[test]
    fn the_stop_phrase_does_not_count_where_it_is_talked_about() {
        for talk in [
            "",
            "all done",
            "ALL  DONE",
            "ALL\nDONE",
            "NALL DONE",
            "ALL DONEX",
            "ALL DONE_NOT",
            "```\nALL DONE\n```",
            "~~~text\nALL DONE\n~~~",
            "```\nALL DONE",
            "> ALL DONE",
            "  >> ALL DONE",
            "I will say `ALL DONE` at the end.",
            "I will say \"ALL DONE\" at the end.",
            "I will say “ALL DONE” at the end.",
            "I will say 'ALL DONE' at the end.",
            "I shall write `the words ALL DONE` then.",
            "« ALL DONE »",
        ] {
            assert!(!is_given(PROMISE, talk), "{talk:?}");
        }
    }

    #[test]
    fn a_stop_phrase_may_hold_marks_itself() {
        assert!(is_given("say \"hi\"", "now I say \"hi\""));
        assert!(is_given("`done`", "`done`"));
        assert!(!is_given("", "anything"));
        assert!(!is_given("  ", "a  b"));
    }

    proptest::proptest! {
        #[test]
        fn any_message_is_read_without_a_panic(message in "(ALL DONE|`|\"|“|”|'|>|_|\n| |é|日){0,40}") {
            let _ = is_given(PROMISE, &message);
        }
    }
}
