//! The check whether the names in a model's summary are found in its session.
//!
//! A path, an identifier, a reference or a number that is nowhere in the session was made up, or read in a file of the
//! project: the next session must know that only the summary supports it. So it is marked in place.
//! Numbers below ten are not looked for, because they occur everywhere.

use std::{
    borrow::Cow,
    cell::LazyCell,
    collections::BTreeSet,
    ops::{Deref, Range},
    sync::LazyLock,
};

use memchr::memmem;
use regex::Regex;
use serde_json::Value;

use crate::check::is_whole_in;
use pitstop_base::{clean, redact::redact};
use pitstop_transcript::{
    facts::{Fact, each_fact},
    record::{Splitter, parsed_records},
    words::{Fences, on_one_line},
    work::below_work_tree,
};

/// The mark after a name or a number that was not found.
pub const NOT_FOUND: &str = "(not found in the session)";

/// The beginning of both marks.
const MARK: &str = "(not found in the session";

/// The beginning of the line that lists those in the code above it.
const NOT_FOUND_ABOVE: &str = "(not found in the session: ";

/// The most claims of one summary that are looked for: far more than a useful summary of its size has.
const CLAIMS: usize = 2_000;

/// The fields of a record's content that do not contain words: checksums, images, ids.
const WORDLESS: [&str; 6] = ["signature", "data", "id", "tool_use_id", "uuid", "usage"];

/// A claim of a text that something is in the session.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Claim {
    /// A path, an identifier or a reference.
    Word(String),
    /// A commit, of which the session may have more digits.
    Commit(String),
    /// A number, without commas.
    Number(String),
    /// A whole text, as [`plain_text`] makes it.
    Text(String),
    /// A part of such a text that remained when the rest was cut.
    Part(String),
    /// One of two such texts.
    Either(String, String),
}

impl Claim {
    pub(crate) fn text(&self) -> &str {
        match self {
            Self::Word(text)
            | Self::Commit(text)
            | Self::Number(text)
            | Self::Text(text)
            | Self::Part(text)
            | Self::Either(text, _) => text,
        }
    }

    /// Reports whether the claim is found in a text. `plain` is the text as [`plain_text`] makes it, and the same without the session's
    /// directory.
    fn stands_in(
        &self,
        text: &str,
        plain: &impl Deref<Target = [String; 2]>,
        directory: &str,
    ) -> bool {
        let is_plain = |what: &str| plain.iter().any(|plain| is_whole_in(plain, what));
        match self {
            Self::Word(word) => {
                let below = word
                    .strip_prefix(directory)
                    .filter(|_| !directory.is_empty());
                let below = below.and_then(|rest| rest.strip_prefix('/'));
                let home = word.strip_prefix("~/").or(word.strip_prefix("../"));
                let home = home.map(|rest| rest.trim_start_matches("../"));
                // A session that goes on elsewhere names it from there.
                let others = [below.or(home), below_work_tree(word)];
                is_whole_in(text, word)
                    || others.iter().flatten().any(|rest| is_whole_in(text, rest))
            }
            Self::Text(text) => is_plain(text),
            Self::Either(whole, part) => is_plain(whole) || is_plain(part),
            Self::Part(part) => plain.iter().any(|plain| plain.contains(part)),
            Self::Commit(digits) => memmem::find(text.as_bytes(), digits.as_bytes()).is_some(),
            Self::Number(number) => {
                is_number_in(text, number) || is_number_in(text, &with_commas(number))
            }
        }
    }
}

/// A summary with its claims that have not been found yet in the session, whose bytes are passed in as pieces of any size.
#[derive(Debug)]
pub struct Evidence {
    text: String,
    splitter: Splitter,
    sought: Sought,
}

/// The claims that are still to be found.
#[derive(Debug, Default)]
pub(crate) struct Sought {
    claims: BTreeSet<Claim>,
    /// The directory of the session, with which its paths begin.
    directory: String,
}

impl Evidence {
    /// Creates the evidence for a summary, of which no claim is found yet.
    pub fn of_summary(summary: &str) -> Self {
        let mut claims = BTreeSet::new();
        // A list of an earlier summary that the model has kept is removed here and created again.
        let lines = summary
            .lines()
            .filter(|line| !line.starts_with(NOT_FOUND_ABOVE));
        let text = lines.collect::<Vec<_>>().join("\n");
        for line in text.lines() {
            each_claim(line, &mut |claim, _| {
                if claims.len() < CLAIMS {
                    claims.insert(claim);
                }
            });
        }
        Self {
            text,
            splitter: Splitter::default(),
            sought: Sought::new(claims),
        }
    }

    /// Takes the next bytes of the transcript; returns whether anything is still to be found.
    pub fn push(&mut self, piece: &[u8]) -> bool {
        let sought = &mut self.sought;
        self.splitter.push(piece, |line| sought.look_in_line(line));
        !sought.claims.is_empty()
    }

    /// Ends the reading and returns the summary with a mark after everything that was not found.
    pub fn into_marked(mut self) -> String {
        self.sought.look_in_line(self.splitter.pending());
        let missing = self.sought.claims;
        if missing.is_empty() {
            return self.text;
        }
        let mut out: Vec<Cow<'_, str>> = Vec::new();
        let mut fences = Fences::default();
        let mut in_code: Vec<&str> = Vec::new();
        for line in self.text.lines() {
            let outside = fences.is_outside(line);
            let mut places = BTreeSet::new();
            each_claim(line, &mut |claim, range| {
                let Some(claim) = missing.get(&claim) else {
                    return;
                };
                let place = place_behind(line, range.end);
                if outside && is_marked(&line[place..]) {
                    // The model has kept the mark of an earlier summary.
                } else if outside {
                    places.insert(place);
                } else if !in_code.contains(&claim.text()) {
                    in_code.push(claim.text());
                }
            });
            if outside && !in_code.is_empty() {
                out.push(named_above(&mut in_code).into());
            }
            let mut line = Cow::Borrowed(line);
            for place in places.into_iter().rev() {
                line.to_mut().insert_str(place, &format!(" {NOT_FOUND}"));
            }
            out.push(line);
        }
        if !in_code.is_empty() {
            out.push(named_above(&mut in_code).into());
        }
        out.join("\n")
    }
}

/// Returns the number of marks in a summary.
pub fn count_marks(summary: &str) -> usize {
    summary.matches(NOT_FOUND).count() + summary.matches(NOT_FOUND_ABOVE).count()
}

/// Returns the line that lists the names not found in code, which itself is left unchanged, and clears them.
fn named_above(names: &mut Vec<&str>) -> String {
    let line = format!("{NOT_FOUND_ABOVE}`{}`)", names.join("`, `"));
    names.clear();
    line
}

impl Sought {
    pub(crate) const fn new(claims: BTreeSet<Claim>) -> Self {
        Self {
            claims,
            directory: String::new(),
        }
    }

    pub(crate) fn is_found(&self) -> bool {
        self.claims.is_empty()
    }

    pub(crate) fn still_seeks(&self, claim: &Claim) -> bool {
        self.claims.contains(claim)
    }

    fn look_in_line(&mut self, line: &[u8]) {
        if self.claims.is_empty() {
            return;
        }
        for record in parsed_records(line) {
            self.look_in_record(&record);
        }
    }

    pub(crate) fn look_in_record(&mut self, record: &Value) {
        if self.directory.is_empty()
            && let Some(directory) = record["cwd"].as_str()
        {
            directory
                .trim_end_matches('/')
                .clone_into(&mut self.directory);
        }
        for key in ["content", "toolUseResult", "attachment", "cwd", "gitBranch"] {
            self.look_in_value(&record[key]);
        }
        self.look_in_value(&record["message"]["content"]);
    }

    fn look_in_value(&mut self, value: &Value) {
        match value {
            Value::String(text) => self.look_in(text),
            Value::Number(number) => self.look_in(&number.to_string()),
            Value::Array(values) => values.iter().for_each(|value| self.look_in_value(value)),
            Value::Object(fields) => {
                for (key, value) in fields {
                    if !WORDLESS.contains(&key.as_str()) {
                        self.look_in_value(value);
                    }
                }
            }
            Value::Null | Value::Bool(_) => {}
        }
    }

    pub(crate) fn look_in(&mut self, text: &str) {
        // Colour sequences precede names without a blank between.
        let text = &clean::without_escapes(text);
        let (directory, doubted) = (&self.directory, doubted_claims(text));
        let plain = LazyCell::new(|| {
            let shown = plain_text(text);
            let below = shown.replace(&format!("{directory}/"), "");
            [shown, below]
        });
        self.claims
            .retain(|claim| doubted.contains(claim) || !claim.stands_in(text, &plain, directory));
    }
}

/// Returns a text as a handoff may contain it: without controls, its secrets masked, each run of blanks reduced to one.
pub(crate) fn plain_text(text: &str) -> String {
    let text = clean::typed(text);
    on_one_line(&redact(&text))
}

/// Returns the claims that this text itself marks as not found: a handoff with a summary is not evidence for names that the
/// summary had made up.
fn doubted_claims(text: &str) -> BTreeSet<Claim> {
    let mut doubted = BTreeSet::new();
    if memmem::find(text.as_bytes(), MARK.as_bytes()).is_none() {
        return doubted;
    }
    for line in text.lines().filter(|line| line.contains(MARK)) {
        let is_list = line.starts_with(NOT_FOUND_ABOVE);
        each_claim(line, &mut |claim, range| {
            if is_list || is_marked(&line[place_behind(line, range.end)..]) {
                doubted.insert(claim);
            }
        });
    }
    doubted
}

/// Reports whether this begins with a mark, after any blanks.
fn is_marked(rest: &str) -> bool {
    rest.trim_start().starts_with(NOT_FOUND)
}

/// Passes each claim of a line to `sink`, with its range in the line.
pub(crate) fn each_claim(line: &str, sink: &mut impl FnMut(Claim, Range<usize>)) {
    let place = |part: &str| {
        let start = part.as_ptr() as usize - line.as_ptr() as usize;
        start..start + part.len()
    };
    each_fact(line, &mut |fact| {
        let (Fact::File(word) | Fact::Name(word) | Fact::Reference(word)) = fact;
        let is_commit = word.bytes().all(|byte| byte.is_ascii_hexdigit());
        let claim = if is_commit {
            Claim::Commit
        } else {
            Claim::Word
        };
        sink(claim(word.to_owned()), place(word));
    });
    // A single word of code is a name, whatever its form.
    let parts: Vec<&str> = line.split('`').collect();
    let closed = &parts[..parts.len() - 1];
    for span in closed.iter().skip(1).step_by(2) {
        let word: &str = span.strip_suffix("()").unwrap_or(span);
        if is_plain_name(word) {
            sink(Claim::Word(word.to_owned()), place(word));
        }
    }
    for range in number_ranges(line) {
        let number = line[range.clone()].replace(',', "");
        if number.len() > 1 {
            sink(Claim::Number(number), range);
        }
    }
}

/// Reports whether this is a word of 4 to 80 letters, digits and underscores that does not begin with a digit.
fn is_plain_name(word: &str) -> bool {
    let first = word.bytes().next();
    (4..=80).contains(&word.len())
        && first.is_some_and(|byte| byte.is_ascii_alphabetic() || byte == b'_')
        && word
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
}

/// Returns the numbers of a line that are not part of a word and do not number its items: `12`, `1,200`, `0.3.2`, `40` of `40ms`.
fn number_ranges(line: &str) -> impl Iterator<Item = Range<usize>> {
    static NUMBER: LazyLock<Regex> =
        LazyLock::new(|| Regex::new("[0-9](?:[.,]?[0-9])*").expect("a valid pattern"));
    let found = NUMBER.find_iter(line).filter(|found| {
        let (before, behind) = (&line[..found.start()], &line[found.end()..]);
        // The letters after it are a unit, or the rest of a word.
        let end = behind.find(|c: char| !c.is_alphanumeric() && c != '_');
        let unit = &behind[..end.unwrap_or(behind.len())];
        let is_unit = unit.chars().count() <= 3 && unit.chars().all(char::is_alphabetic);
        let numbers_an_item = before.trim().is_empty()
            && behind.starts_with(['.', ')'])
            && behind[1..].starts_with(' ');
        is_unit && !numbers_an_item && !continues_a_word(before)
    });
    found.map(|found| found.range())
}

/// Reports whether the text after `before` belongs to a word: `utf-8`, `v1`, `x_1`, `dir/12`.
fn continues_a_word(before: &str) -> bool {
    let mut last = before.chars().rev();
    match last.next() {
        Some('-' | '/' | '.') => last.next().is_some_and(|c| c.is_alphabetic() || c == '_'),
        Some(c) => c.is_alphanumeric() || c == '_',
        None => false,
    }
}

/// Formats `1200` as `1,200`.
fn with_commas(number: &str) -> String {
    let whole = number.find('.').unwrap_or(number.len());
    let mut out = String::new();
    for (at, c) in number.char_indices() {
        if at > 0 && at < whole && (whole - at).is_multiple_of(3) {
            out.push(',');
        }
        out.push(c);
    }
    out
}

/// Reports whether a number is in a text and is not part of a longer one.
fn is_number_in(text: &str, number: &str) -> bool {
    let bytes = text.as_bytes();
    let digit = |at: Option<usize>| {
        at.and_then(|at| bytes.get(at))
            .is_some_and(u8::is_ascii_digit)
    };
    let point = |at: Option<usize>| {
        let byte = at.and_then(|at| bytes.get(at));
        byte.is_some_and(|byte| matches!(byte, b'.' | b','))
    };
    memmem::find_iter(bytes, number).any(|at| {
        let end = at + number.len();
        let (before, after) = (at.checked_sub(1), Some(end));
        let longer_before = digit(before) || point(before) && digit(at.checked_sub(2));
        let longer_after = digit(after) || point(after) && digit(Some(end + 1));
        !longer_before && !longer_after
    })
}

/// Returns the position of the mark for something that ends at `end`: after the word, and after the code that contains it.
fn place_behind(line: &str, end: usize) -> usize {
    let rest = &line[end..];
    if line[..end].matches('`').count() % 2 == 1
        && let Some(close) = rest.find('`')
    {
        let ticks = rest[close..].bytes().take_while(|byte| *byte == b'`');
        return end + close + ticks.count();
    }
    let is_of_word =
        |c: char| c.is_alphanumeric() || matches!(c, '_' | '-' | '/' | ':' | '.' | '%' | '=' | '+');
    let word = rest.find(|c| !is_of_word(c)).unwrap_or(rest.len());
    end + rest[..word].trim_end_matches(['.', ':', '-', '=']).len()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn marked(summary: &str, session: &[Value]) -> String {
        let mut evidence = Evidence::of_summary(summary);
        for record in session {
            evidence.push(format!("{record}\n").as_bytes());
        }
        evidence.into_marked()
    }

    fn said(text: &str) -> Value {
        json!({
            "type": "assistant", "cwd": "/home/me/project", "timestamp": "2026-11-22T10:47:58Z",
            "message": { "content": [{ "type": "text", "text": text }], "usage": { "input_tokens": 4711 } },
        })
    }

    #[test]
    fn what_stands_nowhere_in_the_session_is_marked_where_it_stands() {
        let session = [
            said(
                "I changed\nsrc/parse.rs:12 and read_all; 1,200 rows in 40 ms, commit 0a1b2c3d4e5f.",
            ),
            json!({ "type": "user", "toolUseResult": { "filePath": "/home/me/project/docs/a.md", "numLines": 77 } }),
        ];
        let summary = "### Files & Code\n\n\
            - `src/parse.rs:12`: `read_all()` takes 1200 rows in 40ms, 0a1b2c3\n\
            - `src/made_up.rs:12`: **parse_all**, `retry()` and `serde`.\n\
            - /home/me/project/src/parse.rs, docs/a.md with 77 lines: 4711 tokens, 47 errors\n\
            1. utf-8, v2, 3 of 9\n10. more";
        assert_eq!(
            marked(summary, &session),
            "### Files & Code\n\n\
            - `src/parse.rs:12`: `read_all()` takes 1200 rows in 40ms, 0a1b2c3\n\
            - `src/made_up.rs:12` (not found in the session): **parse_all (not found in the session)**, \
            `retry()` (not found in the session) and `serde` (not found in the session).\n\
            - /home/me/project/src/parse.rs, docs/a.md with 77 lines: 4711 (not found in the session) tokens, \
            47 (not found in the session) errors\n\
            1. utf-8, v2, 3 of 9\n10. more"
        );
    }

    #[test]
    fn code_is_left_as_it_is_and_what_was_not_found_in_it_is_named_below() {
        let summary = "```rust\nfn new_name(old_name: u32) {}\n```\nThat is `old_name`.\n```\nlet last_name = 12;\n```";
        let marked = marked(summary, &[said("old_name")]);
        assert_eq!(
            marked,
            "```rust\nfn new_name(old_name: u32) {}\n```\n(not found in the session: `new_name`)\nThat is `old_name`.\n\
             ```\nlet last_name = 12;\n```\n(not found in the session: `last_name`, `12`)"
        );
        assert_eq!(count_marks(&marked), 2);
    }

    #[test]
    fn what_an_earlier_summary_made_up_is_no_evidence_for_a_later_one() {
        let first = "The flag is `PLUM_77`, in src/made_up.rs:12, for 4711 rows.\n```\nlet made_up = PLUM_78;\n```\n\
                     read_all is real.";
        let session = [said("read_all")];
        let marked_once = marked(first, &session);
        assert_eq!(count_marks(&marked_once), 4, "{marked_once}");
        // The next session gets it in the handoff.
        let second = [
            json!({ "type": "user", "message": { "content": format!("# Handoff\n\n{marked_once}") } }),
            said("I go on with read_all."),
        ];
        assert_eq!(marked(first, &second), marked_once);
        // If a model keeps the marks, they are not added twice.
        assert_eq!(marked(&marked_once, &second), marked_once);
        // A name that is found later counts as evidence.
        let found = [&second[..], &[said("grep: src/made_up.rs:12: PLUM_77")]].concat();
        assert_eq!(count_marks(&marked(first, &found)), 2);
    }

    #[test]
    fn a_part_of_a_longer_word_or_number_is_no_evidence() {
        let summary = "parse_all, src/a.rs and 12";
        let session = [said(
            "parse_all_of_it src/a.rs2 xsrc/a.rs 112 12.5 1,12 12,000",
        )];
        assert_eq!(count_marks(&marked(summary, &session)), 3);
        assert_eq!(
            count_marks(&marked(summary, &[said("(parse_all) ./src/a.rs:3 12.")])),
            0
        );
    }

    #[test]
    fn a_session_that_says_it_all_changes_nothing_and_is_read_no_further() {
        let mut evidence = Evidence::of_summary("no names");
        assert!(!evidence.push(b"x"));
        let mut evidence = Evidence::of_summary("see `abcd`");
        let line = format!("{}\n", said("abcd"));
        let (head, tail) = line.split_at(20);
        assert!(evidence.push(head.as_bytes()));
        assert!(!evidence.push(tail.as_bytes()));
        assert_eq!(evidence.into_marked(), "see `abcd`");
    }

    proptest::proptest! {
        #[test]
        fn any_text_is_only_added_to(text in "([a-z_`./# \n0-9,é]|``` ){0,80}") {
            let marked = marked(&text, &[]);
            let mark = format!(" {NOT_FOUND}");
            let kept: Vec<&str> = marked.lines().filter(|line| !line.starts_with(NOT_FOUND_ABOVE)).collect();
            let kept = kept.join("\n").replace(&mark, "");
            let whole = text.lines().collect::<Vec<_>>().join("\n");
            proptest::prop_assert_eq!(kept.trim_end(), whole.trim_end());
        }
    }
}
