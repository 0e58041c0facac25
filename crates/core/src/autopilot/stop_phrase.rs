//! The stop phrase: the exact text by which the agent says that the whole task is done.
//!
//! It counts only in the assistant's own words, on a line of its own, as the prompt asks, or in its tag: anywhere else it
//! is talked about ("not all done yet"). Emphasis, a heading's mark, a check mark and a full stop around it do not matter. Text in
//! a code fence or a quotation does not count. A prompt or a tool's output never comes here.

use pitstop_transcript::words::own_lines;

/// The stop phrase of a run that was given none.
pub const DEFAULT: &str = "PITSTOP TASK COMPLETE";

/// The longest stop phrase, in bytes: it is a mark, not a text.
pub const LIMIT: usize = 200;

/// The tags that a stop phrase may be between, as loops of other tools ask for it.
const TAG: (&str, &str) = ("<promise>", "</promise>");

/// The pairs of marks between which a text is quoted. A single straight mark is an apostrophe as often as not, so it quotes
/// only where it is at both ends of the tags.
const QUOTES: [(char, char); 6] = [
    ('`', '`'),
    ('"', '"'),
    ('“', '”'),
    ('„', '“'),
    ('«', '»'),
    ('‘', '’'),
];

/// Reports whether the message gives the stop phrase in its own words.
pub fn is_given(stop_phrase: &str, message: &str) -> bool {
    line(stop_phrase, message).is_some()
}

/// Returns the line of the message that gives the stop phrase.
pub fn line<'a>(stop_phrase: &str, message: &'a str) -> Option<&'a str> {
    let stop_phrase = stop_phrase.trim();
    let mut lines = own_lines(message).filter(|_| !stop_phrase.is_empty());
    lines.find(|line| is_alone(stop_phrase, line) || is_in_tag(stop_phrase, line))
}

/// Reports whether the line holds nothing but the stop phrase.
fn is_alone(stop_phrase: &str, line: &str) -> bool {
    let is_mark = |c: char| c.is_whitespace() || "*_#✅✓✔☑🎉\u{fe0f}".contains(c);
    line.match_indices(stop_phrase).any(|(at, _)| {
        let behind = &line[at + stop_phrase.len()..];
        line[..at].chars().all(is_mark)
            && behind.chars().all(|c| is_mark(c) || ".!。！".contains(c))
    })
}

/// Reports whether the line has the stop phrase between its tags, which a stop phrase may have itself.
fn is_in_tag(stop_phrase: &str, line: &str) -> bool {
    let (open, close) = TAG;
    let bare = stop_phrase.strip_prefix(open).unwrap_or(stop_phrase);
    let bare = bare.strip_suffix(close).unwrap_or(bare).trim();
    line.match_indices(open).any(|(at, _)| {
        let inside = line[at + open.len()..].split_once(close);
        inside.is_some_and(|(said, behind)| said.trim() == bare && !is_quoted(&line[..at], behind))
    })
}

/// Reports whether a quotation is open before the tags and closed behind them.
fn is_quoted(before: &str, behind: &str) -> bool {
    let by_pair = QUOTES.iter().any(|&(open, close)| {
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
            "  ALL DONE  \r\nThat was all.",
            "**ALL DONE**。",
            "✅ ALL DONE",
            "## ✔️ **ALL DONE** 🎉",
            "<promise>ALL DONE</promise>",
            "It's over: <promise> ALL DONE </promise> Don't worry.",
            "<promise>\nALL DONE\n</promise>",
            "```\ncode\n```\nALL DONE",
            "> a quote\n\nALL DONE",
            "I ran `cargo test`: <promise>ALL DONE</promise> (see `log`)",
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
            "Not ALL DONE yet",
            "Soon I can say: ALL DONE",
            "ALL DONE, except for the tests.",
            "It's ALL DONE, don't worry.",
            "ALL DONE?",
            "- [ ] ALL DONE",
            "Status: not\nALL DONE yet.",
            "<promise>not ALL DONE</promise>",
            "<promise>ALL DONE",
            "At the end I say `<promise>ALL DONE</promise>`.",
            "At the end I say \"<promise>ALL DONE</promise>\".",
        ] {
            assert!(!is_given(PROMISE, talk), "{talk:?}");
        }
    }

    #[test]
    fn a_stop_phrase_may_hold_marks_itself() {
        assert!(is_given("say \"hi\"", "Now:\nsay \"hi\""));
        let tagged = "<promise>DONE!</promise>";
        assert!(is_given(tagged, "So: <promise>DONE!</promise>"));
        assert!(!is_given(tagged, "DONE!"));
        assert!(is_given("`done`", "`done`"));
        assert!(!is_given("", "anything"));
        assert!(!is_given("  ", "a  b"));
    }

    proptest::proptest! {
        #[test]
        fn any_message_is_read_without_a_panic(message in "(ALL DONE|<promise>|</promise>|`|\"|“|”|'|>|_|\n| |é|日){0,40}") {
            let _ = is_given(PROMISE, &message);
        }
    }
}
