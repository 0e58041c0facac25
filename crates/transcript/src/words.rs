//! An assistant's own words: the rest of its Markdown without code fences and quotations.
//!
//! Text in a fence or in a quotation is shown, not said; signals (`handoff`) and the stop phrase of an autonomous run
//! (`autopilot`) count only outside of both. Lines that are signals address pitstop, not a reader.

use super::prompts::IMAGE_SOURCE;

/// The state of the code fences of a text, followed line by line.
#[derive(Clone, Copy, Debug, Default)]
pub struct Fences {
    /// The mark of the fence that is open, and the least number of marks that closes it.
    open: Option<(char, usize)>,
}

/// The kind of a line by the fences around it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LineKind {
    /// The line is outside of every fence.
    Text,
    /// The line opens or closes a fence.
    Fence,
    /// The line is inside a fence.
    Code,
}

impl Fences {
    /// Takes the next line and returns its kind.
    pub fn kind(&mut self, line: &str) -> LineKind {
        let line = line.trim_start();
        let mark = line.chars().next().filter(|c| matches!(c, '`' | '~'));
        let run = mark.map_or(0, |mark| line.chars().take_while(|c| *c == mark).count());
        let rest = line.get(run..).unwrap_or_default();
        match (self.open, mark) {
            // Three backticks that are closed on their own line are code within the line.
            (None, Some(mark)) if run >= 3 && !(mark == '`' && rest.contains('`')) => {
                self.open = Some((mark, run));
                LineKind::Fence
            }
            (Some((open, least)), Some(mark))
                if mark == open && run >= least && rest.trim().is_empty() =>
            {
                self.open = None;
                LineKind::Fence
            }
            (Some(_), _) => LineKind::Code,
            (None, _) => LineKind::Text,
        }
    }

    /// Takes the next line and reports whether it is outside of every fence; the lines of the marks are not.
    pub fn is_outside(&mut self, line: &str) -> bool {
        self.kind(line) == LineKind::Text
    }

    /// Returns the line that closes the open fence, if there is one.
    pub fn closing(self) -> Option<String> {
        let (mark, length) = self.open?;
        Some(mark.to_string().repeat(length))
    }
}

/// Reports whether a word is in a list of words with bars between them.
pub fn is_among(list: &str, word: &str) -> bool {
    list.split('|').any(|one| one == word)
}

/// The characters that join those around them: where one of these is cut off, the client does not keep the joiner.
const JOINERS: [char; 2] = ['\u{200c}', '\u{200d}'];

/// Returns the start and the end of a text, half of `most` bytes each; none for a text that is not longer than `most`.
pub fn split_ends(text: &str, most: usize) -> Option<(&str, &str)> {
    (text.len() > most).then(|| {
        let head = text.floor_char_boundary(most / 2);
        let tail = text.ceil_char_boundary(text.len() - most / 2);
        let (head, tail) = (&text[..head], &text[tail..]);
        (
            head.trim_end_matches(JOINERS),
            tail.trim_start_matches(JOINERS),
        )
    })
}

/// Returns a text without what the client says of its images at its end.
pub fn without_images(mut text: &str) -> &str {
    while text.ends_with(']')
        && let Some(at) = text.rfind(IMAGE_SOURCE).filter(|at| *at > 0)
    {
        text = text[..at].trim_end();
    }
    text
}

/// Returns the key by which two texts of a person are equal: their letters and digits in small letters, and the signs in which
/// two texts may differ that mean something else: `C` and `C++`, `x < 1` and `x > 1`, `10` and `10 %`, `5` and `-5`.
///
/// The client's lines about the images in a prompt, which a hook does not have, make no difference.
pub fn plain_key(text: &str) -> String {
    let lower = without_images(text).to_lowercase();
    let (mut key, mut before) = (String::with_capacity(lower.len()), ' ');
    let mut rest = lower.chars();
    while let Some(c) = rest.next() {
        let is_behind_word = before.is_alphanumeric() || before == c && key.trim_end().ends_with(c);
        let is_meant = match c {
            '<' | '>' | '=' | '%' | '$' | '€' | '£' | '≤' | '≥' | '≠' => true,
            '+' | '#' => is_behind_word,
            '-' => {
                !before.is_alphanumeric()
                    && rest
                        .as_str()
                        .starts_with(|next: char| next.is_ascii_digit())
            }
            _ => false,
        };
        match c {
            _ if c.is_alphanumeric() => key.push(c),
            _ if is_meant => key.extend([' ', c, ' ']),
            _ => key.push(' '),
        }
        before = c;
    }
    on_one_line(&key)
}

/// Returns a text on one line: each run of blanks becomes one blank.
pub fn on_one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Returns the start of a text in at most `limit` bytes, with a mark if that is less than all of it.
pub fn clipped(text: &str, limit: usize) -> String {
    let text = text.trim();
    if text.len() <= limit {
        return text.to_owned();
    }
    let start = text[..text.floor_char_boundary(limit)].trim_end();
    format!("{} …", start.trim_end_matches(JOINERS))
}

/// Returns the start of a text on one line, as [`on_one_line`] and [`clipped`] make it, and stops to read once that is full.
pub fn clipped_line(text: &str, limit: usize) -> String {
    let mut line = String::new();
    for word in text.split_whitespace() {
        if !line.is_empty() {
            line.push(' ');
        }
        line.push_str(word);
        if line.len() > limit {
            break;
        }
    }
    clipped(&line, limit)
}

/// Reports whether a line is a quotation.
pub fn is_quotation(line: &str) -> bool {
    line.trim_start().starts_with('>')
}

/// Returns the lines outside of code fences and quotations.
pub fn own_lines(message: &str) -> impl Iterator<Item = &str> {
    let mut fences = Fences::default();
    message
        .lines()
        .filter(move |line| fences.is_outside(line) && !is_quotation(line))
}

/// Returns the signal word that a line begins with and the text that follows it; marks around both are dropped.
pub fn signal_word(line: &str) -> Option<(&str, &str)> {
    let mut rest = line.trim();
    for bullet in ["- ", "* ", "+ ", "• "] {
        rest = rest.strip_prefix(bullet).unwrap_or(rest).trim_start();
    }
    rest = without_number(rest);
    for check in ["[ ] ", "[x] ", "[X] "] {
        rest = rest.strip_prefix(check).unwrap_or(rest).trim_start();
    }
    let bold = rest.starts_with("**") || rest.starts_with("__");
    let italic = (!bold).then(|| rest.chars().next().filter(|c| matches!(c, '*' | '_')));
    rest = rest.trim_start_matches(['*', '_', '#', ' ']);
    let end = rest.find(|c: char| !c.is_ascii_uppercase())?;
    let (word, mut rest) = rest.split_at(end);
    match word {
        "STATE" => {
            rest = rest
                .trim_start_matches(['*', '_'])
                .strip_prefix([' ', ':'])?
                .trim_start_matches(':');
        }
        // The severity in brackets belongs to what follows.
        "ISSUE" if rest.starts_with('[') => {}
        "SCRATCHPAD" | "SIGNAL" | "OBJECTIVE" | "DECISION" | "CONSTRAINT" | "REJECTED"
        | "ISSUE" | "RESOLVED" | "DONE" | "TODO" => {
            rest = rest.trim_start_matches(['*', '_']).strip_prefix(':')?;
        }
        _ => return None,
    }
    if bold {
        rest = rest
            .trim_start_matches(['*', '_'])
            .trim_end_matches("**")
            .trim_end_matches("__");
    }
    // The mark that opened in front of the word closes behind the text.
    if let Some(mark) = italic.flatten() {
        rest = rest.strip_suffix(mark).unwrap_or(rest);
    }
    Some((word, rest.trim()))
}

/// Returns the line without the number of a list item: up to nine digits, as in Markdown, with a dot or a bracket.
pub(super) fn without_number(line: &str) -> &str {
    match item_number(line) {
        Some((1..=9, item)) if item.starts_with(' ') => item.trim_start(),
        _ => line,
    }
}

/// Returns the number of digits in the number of a list item, and the text behind its dot or bracket.
pub(super) fn item_number(line: &str) -> Option<(usize, &str)> {
    let behind = line.trim_start_matches(|c: char| c.is_ascii_digit());
    let digits = line.len() - behind.len();
    Some((digits, behind.strip_prefix(['.', ')'])?)).filter(|_| digits > 0)
}

/// Returns a message without its signals: the lines that are signals, and all notes up to `SIGNAL:` or the end, are removed.
pub fn without_signals(message: &str) -> String {
    let mut fences = Fences::default();
    let mut in_notes = false;
    let own = message.lines().filter(|line| {
        let word = fences
            .is_outside(line)
            .then(|| signal_word(line))
            .flatten()
            .map(|(word, _)| word);
        let was_in_notes = in_notes;
        in_notes = match word {
            Some("SIGNAL") => false,
            Some("SCRATCHPAD") => true,
            _ => in_notes,
        };
        word.is_none() && !was_in_notes
    });
    own.collect::<Vec<_>>().join("\n").trim().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn own(message: &str) -> Vec<&str> {
        own_lines(message).collect()
    }

    #[test]
    fn clips_stand_on_characters() {
        assert_eq!(clipped("  aé  ", 3), "aé");
        assert_eq!(clipped("aéb", 2), "a …");
        assert_eq!(on_one_line(" a \n\tb  c"), "a b c");
        let family = "ab 👩\u{200d}👧";
        for limit in 3..family.len() {
            let clip = clipped(family, limit);
            assert!(!clip.contains('\u{200d}'), "{limit}: {clip:?}");
            let (head, tail) = split_ends(family, limit).unwrap();
            let loose = head.ends_with('\u{200d}') || tail.starts_with('\u{200d}');
            assert!(!loose, "{limit}: {head:?} {tail:?}");
        }
    }

    #[test]
    fn a_clipped_line_is_the_line_clipped() {
        for text in [
            "",
            " a \n\tb  c",
            "aé b",
            "a b c d e f",
            "abcdefgh ij",
            "aéééé",
        ] {
            for limit in 0..12 {
                let whole = clipped(&on_one_line(text), limit);
                assert_eq!(clipped_line(text, limit), whole, "{text:?} in {limit}");
            }
        }
    }

    #[test]
    fn texts_are_equal_whatever_ends_their_sentences_and_differ_by_signs_that_mean_something() {
        for (one, other) in [
            ("Never push to main.", "never push: to main!"),
            ("**Use** `tabs`", "use tabs"),
            ("## Issue #12", "issue 12"),
            ("at most 10 %", "At most 10%."),
            ("a well-known 2026-11-20", "a well known 2026 11 20"),
            ("- one\n- two", "one, two"),
        ] {
            assert_eq!(plain_key(one), plain_key(other), "{one}");
        }
        for (one, other) in [
            ("Use C.", "Use C++."),
            ("Use C++.", "Use C#."),
            ("keep x < 5", "keep x > 5"),
            ("a = b", "a == b"),
            ("10 at most", "10 % at most"),
            ("an offset of 5", "an offset of -5"),
            ("it costs 5 $", "it costs 5 €"),
            ("n ≤ 3", "n ≥ 3"),
        ] {
            assert_ne!(plain_key(one), plain_key(other), "{one}");
        }
        assert_eq!(plain_key("👍 ## ++ ..."), "");
    }

    #[test]
    fn fences_and_quotations_are_left_out() {
        assert_eq!(own("a\n```rust\nb\n```\nc\n> d\n  > e\nf"), ["a", "c", "f"]);
        assert_eq!(own("~~~~\n```\na\n~~~\nb\n~~~~\nc"), ["c"]);
        assert_eq!(own("a\n```\nnever closed\nb"), ["a"]);
    }

    #[test]
    fn of_a_long_text_the_ends_are_whole_characters() {
        assert_eq!(split_ends("abcdef", 6), None);
        assert_eq!(split_ends("abcdefg", 6), Some(("abc", "efg")));
        assert_eq!(split_ends("aé漢字éa", 6), Some(("aé", "éa")));
    }

    #[test]
    fn a_fence_is_closed_by_its_own_mark_alone() {
        assert_eq!(own("```\na\n```rust\nb\n```\nc"), ["c"]);
        assert_eq!(own("````\n```\na\n````\nb"), ["b"]);
    }

    #[test]
    fn backticks_closed_on_their_line_open_no_fence() {
        assert_eq!(own("```code``` and more\na"), ["```code``` and more", "a"]);
    }

    #[test]
    fn signals_are_no_words_for_a_reader() {
        let message = "Done with it.\n- DECISION: one | two\n\n```\nTODO: an example\n```\nSo much.\n\
                       SCRATCHPAD:\n- [ ] a\n```\nSIGNAL:\n```\nSIGNAL:\nNext.\n**DONE:** x\nSCRATCHPAD:\nto the end";
        assert_eq!(
            without_signals(message),
            "Done with it.\n\n```\nTODO: an example\n```\nSo much.\nNext."
        );
        assert_eq!(without_signals("TODO: x\nSTATE a=b"), "");
    }
}
