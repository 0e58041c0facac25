//! The reading of single entries of the notes: a decision with its reason and date, a blocker, words that only hold a
//! place.

use std::sync::LazyLock;

use chrono::{DateTime, Utc};
use regex::Regex;

use super::{Blocker, Decision};
use pitstop_transcript::words::is_among;

/// Returns the text after "Next:", up to the end of the line; `None` if there is none.
pub fn next_in(text: &str) -> Option<String> {
    static NEXT: LazyLock<Regex> = LazyLock::new(|| {
        let next = r"(?i)(?:^|[^\p{Alphabetic}\p{N}])next(?:(?: step| up)?:|\*\*:)(.*)";
        Regex::new(next).expect("a valid pattern")
    });
    let rest = NEXT.captures(text)?.get(1)?.as_str();
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
        text.starts_with(open) && text.ends_with(close) && text.matches(open).count() == 1
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
    static DATE: LazyLock<Regex> = LazyLock::new(|| {
        let date = r"^[\[(* ]*([0-9]{4}-[0-9]{2}-[0-9]{2})(?:[ T]([0-9]{2}:[0-9]{2})(:[0-9]{2})?Z?)?[\])*:–—, -]+(.+)$";
        Regex::new(&format!("(?s){date}")).expect("a valid pattern")
    });
    let read = || {
        let found = DATE.captures(text)?;
        let part = |at| found.get(at).map(|part| part.as_str());
        let seconds = part(3).unwrap_or(":00");
        let moment = format!("{}T{}{seconds}Z", &found[1], part(2).unwrap_or("00:00"));
        Some((moment.parse().ok()?, part(4)?))
    };
    read().map_or((None, text), |(at, rest)| (Some(at), rest))
}

pub(super) fn read_blocker(text: &str, below: &[String]) -> Blocker {
    static RESOLVED: LazyLock<Regex> = LazyLock::new(|| {
        let words = "(?:resolved|fixed|solved|done)";
        let marks = format!(r"(?is)^~~(.*)~~$|^{words}:(.*)$|^(.*)\({words}\)$");
        Regex::new(&marks).expect("a valid pattern")
    });
    let (mut text, mut resolved) = (text.trim(), false);
    while let Some(found) = RESOLVED.captures(text) {
        let mut parts = (1..4).filter_map(|at| found.get(at));
        (text, resolved) = (parts.next().map_or("", |part| part.as_str()), true);
    }
    let mut text = text.trim().to_owned();
    if !below.is_empty() {
        text = format!("{text} ({})", below.join("; "));
    }
    Blocker { text, resolved }
}
