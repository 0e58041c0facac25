//! The reading of single entries of the notes: a decision with its reason and date, a blocker, words that only hold a
//! place.

use chrono::{DateTime, NaiveDate, NaiveDateTime, NaiveTime, Utc};

use super::{Blocker, Decision};
use pitstop_transcript::words::is_among;

/// Returns the text behind "Next:", up to the end of the line.
pub(super) fn next_in(text: &str) -> Option<String> {
    // Of the same length as the text, byte for byte.
    let lower = text.to_ascii_lowercase();
    let at = ["next:", "next step:", "next up:", "next**:", "next:**"]
        .iter()
        .filter_map(|mark| {
            let at = lower.find(mark)?;
            let before = text[..at].chars().next_back();
            (!before.is_some_and(char::is_alphanumeric)).then_some(at + mark.len())
        })
        .min()?;
    let rest = text[at..].lines().next()?;
    let next = rest.trim_matches(|c: char| c == '*' || c.is_whitespace());
    (!is_placeholder(next)).then(|| next.to_owned())
}

/// Reports whether a text only holds the place of one.
pub(super) fn is_placeholder(text: &str) -> bool {
    const WORDS: &str = "|empty|n/a|na|nil|no blockers|no blockers yet|no decisions|no decisions yet|no issues|no known blockers|\
        no known issues|no open issues|none|none at the moment|none known|none so far|none yet|not yet|nothing|\
        nothing so far|nothing yet|tba|tbd";
    let text = text.trim();
    let between = |open: &str, close: &str| {
        let inner = text
            .strip_prefix(open)
            .and_then(|text| text.strip_suffix(close));
        inner.is_some_and(|inner| !inner.contains(open))
    };
    let is_form = between("<", ">") || between("{{", "}}");
    if is_form || text.len() > 40 {
        return is_form;
    }
    let bare = text.trim_matches(|c: char| !c.is_alphanumeric());
    // A text without a letter or figure that is no mark of Markdown is a word: an emoji, for one.
    if bare.is_empty() {
        return text
            .chars()
            .all(|c| c.is_ascii_punctuation() || matches!(c, '–' | '—' | '…'));
    }
    is_among(WORDS, &bare.to_lowercase())
}

pub(super) fn read_decision(text: &str, below: &[String]) -> Decision {
    let (at, text) = split_date(text);
    let (text, mut reason) = split_reason(text);
    for below in below {
        let below = without_because(below);
        if !reason.is_empty() && !below.is_empty() {
            reason.push_str("; ");
        }
        reason.push_str(below);
    }
    Decision { text, reason, at }
}

/// Splits a decision into its text and its reason.
pub fn split_reason(text: &str) -> (String, String) {
    let text = text.trim();
    let whole = || (without_bold(text).to_owned(), String::new());
    // `**What**: why`, and `**What**: what exactly | why`.
    if let Some((head, rest)) = text
        .strip_prefix("**")
        .and_then(|text| text.split_once("**"))
    {
        let (colon, behind) = match rest.strip_prefix(':') {
            Some(behind) => (true, behind.trim()),
            None => (head.ends_with(':'), rest.trim()),
        };
        let head = head.trim_end_matches(':').trim();
        if head.is_empty() {
            return whole();
        }
        if colon && !behind.is_empty() {
            return match split_at_mark(behind) {
                Some((what, why)) if !what.is_empty() => {
                    (format!("{head}: {what}"), why.to_owned())
                }
                _ => (head.to_owned(), without_because(behind).to_owned()),
            };
        }
        if behind.is_empty() {
            return (head.to_owned(), String::new());
        }
    }
    match split_at_mark(text) {
        Some((what, why)) if !what.is_empty() => (without_bold(what).to_owned(), why.to_owned()),
        _ => whole(),
    }
}

/// Returns the parts around the first mark, of the clearest kind, that a reason follows; not within code.
fn split_at_mark(text: &str) -> Option<(&str, &str)> {
    // Of the same length as the text, byte for byte.
    let lower = text.to_ascii_lowercase();
    for mark in [
        "|",
        "—",
        " – ",
        " -- ",
        " - ",
        " (because",
        " (reason:",
        " (why:",
        " because of ",
        " because",
        " reason:",
        " rationale:",
        " why:",
    ] {
        // Candidates come in their order: the text before them is looked at once.
        let (mut seen, mut ticks) = (0, 0_usize);
        let outside = |at: &usize| {
            ticks += text[seen..*at].matches('`').count();
            seen = *at;
            ticks.is_multiple_of(2)
        };
        // "because" is a word of its own.
        let whole = |at: &usize| {
            let behind = lower[at + mark.len()..].chars().next();
            !mark.ends_with('e') || behind.is_some_and(|c| !c.is_alphanumeric())
        };
        let found = lower.match_indices(mark).map(|(at, _)| at);
        let Some(at) = found.filter(outside).find(whole) else {
            continue;
        };
        let what = text[..at].trim_end_matches([' ', ',', ';', ':', '(']);
        let mut why = without_because(&text[at + mark.len()..]);
        if mark.starts_with(" (") {
            why = why.strip_suffix(')').unwrap_or(why);
        }
        if !what.is_empty() && !why.is_empty() {
            return Some((what, why));
        }
    }
    None
}

/// Returns a reason without the word that opens it.
fn without_because(text: &str) -> &str {
    let mut rest = text.trim_start_matches([' ', ':', '|', '(']);
    let lower = rest.to_ascii_lowercase();
    for word in ["because of ", "because", "rationale:", "reason:", "why:"] {
        if lower.starts_with(word) {
            rest = rest[word.len()..].trim_start_matches([' ', ':']);
            break;
        }
    }
    rest.trim()
}

/// Returns a text without the marks of bold print around the whole of it.
fn without_bold(text: &str) -> &str {
    let inner = text
        .strip_prefix("**")
        .and_then(|text| text.strip_suffix("**"));
    inner
        .filter(|inner| !inner.contains("**"))
        .unwrap_or(text)
        .trim()
}

/// Returns the date that a text begins with, and the rest: a day is its first moment, UTC.
fn split_date(text: &str) -> (Option<DateTime<Utc>>, &str) {
    let bare = text.trim_start_matches(['[', '(', '*', ' ']);
    let day = bare
        .get(..10)
        .and_then(|day| NaiveDate::parse_from_str(day, "%Y-%m-%d").ok());
    let Some(day) = day else {
        return (None, text);
    };
    let mut rest = &bare[10..];
    let mut time = NaiveTime::MIN;
    for format in ["%H:%M:%S", "%H:%M"] {
        let length = if format.len() > 5 { 9 } else { 6 };
        let clock = rest.get(1..length).filter(|_| rest.starts_with([' ', 'T']));
        if let Some(Ok(found)) = clock.map(|clock| NaiveTime::parse_from_str(clock, format)) {
            (time, rest) = (found, &rest[length..]);
            rest = rest.strip_prefix('Z').unwrap_or(rest);
            break;
        }
    }
    let behind = rest.trim_start_matches([']', ')', '*', ':', '-', '–', '—', ',', ' ']);
    if behind.is_empty() || behind.len() == rest.len() {
        return (None, text);
    }
    (Some(NaiveDateTime::new(day, time).and_utc()), behind)
}

pub(super) fn read_blocker(text: &str, below: &[String]) -> Blocker {
    let mut text = text.trim();
    let mut resolved = false;
    if let Some(struck) = text
        .strip_prefix("~~")
        .and_then(|text| text.strip_suffix("~~"))
    {
        (text, resolved) = (struck, true);
    }
    for word in ["resolved", "fixed", "solved", "done"] {
        let lower = text.to_ascii_lowercase();
        if lower.starts_with(word) && text[word.len()..].starts_with(':') {
            (text, resolved) = (&text[word.len() + 1..], true);
        } else if lower.ends_with(&format!("({word})")) {
            (text, resolved) = (&text[..text.len() - word.len() - 2], true);
        }
    }
    let mut text = text.trim().to_owned();
    if !below.is_empty() {
        text = format!("{text} ({})", below.join("; "));
    }
    Blocker { text, resolved }
}
