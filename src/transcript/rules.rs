//! Sentences by which a human rules: what must hold for the rest of the work, and is said once.
//!
//! Found by words alone, in English. One sentence too many costs a line of a handoff; one too few is a rule that the
//! next session breaks. So a doubtful one counts.

use super::words::{ends, own_lines};

/// The longest sentence that counts, in bytes: longer ones are pasted text.
const LONGEST: usize = 600;

/// Of a longer prompt only the start and the end are searched, in bytes each: what lies between was pasted.
const SEARCHED: usize = 8 * 1024;

/// Words that rule, as they stand in a sentence of small letters, each between borders of words.
const WORDS: [&str; 66] = [
    "never",
    "always",
    "only",
    "must",
    "mustn't",
    "don't",
    "dont",
    "do not",
    "doesn't",
    "does not",
    "shouldn't",
    "should not",
    "should",
    "can't",
    "cannot",
    "can not",
    "won't",
    "may not",
    "not allowed",
    "allowed to",
    "forbidden",
    "prohibited",
    "no longer",
    "avoid",
    "without",
    "prefer",
    "preferred",
    "preferably",
    "rather",
    "rather than",
    "instead",
    "instead of",
    "because",
    "since we",
    "so that",
    "reason",
    "rejected",
    "reject",
    "decided",
    "we decide",
    "decision",
    "we chose",
    "we use",
    "we'll use",
    "let's use",
    "use",
    "stick to",
    "stick with",
    "keep",
    "make sure",
    "ensure",
    "required",
    "requires",
    "require",
    "requirement",
    "constraint",
    "limit",
    "at most",
    "at least",
    "no more than",
    "no less than",
    "not more than",
    "less than",
    "more than",
    "within",
    "unless",
];

/// More of them: what was tried, what counts, what has to stay as it is.
const MORE: [&str; 30] = [
    "except",
    "under no circumstances",
    "leave",
    "do nothing",
    "didn't work",
    "did not work",
    "does not work",
    "doesn't work",
    "tried",
    "not an option",
    "out of scope",
    "ignore",
    "important",
    "remember",
    "note that",
    "i want",
    "i'd like",
    "i like",
    "i don't want",
    "we need",
    "needs to",
    "has to",
    "have to",
    "up to",
    "maximum",
    "minimum",
    "before you",
    "ask me",
    "stay",
    "backwards compatible",
];

/// The sentences of a prompt that rule, word for word, in the order in which they stand.
#[must_use]
pub fn rules(prompt: &str) -> Vec<&str> {
    let (head, tail) = ends(prompt, 2 * SEARCHED).unwrap_or((prompt, ""));
    let mut found = Vec::new();
    for part in [head, tail] {
        for line in own_lines(part) {
            let line = without_bullet(line.trim());
            for sentence in sentences(line) {
                if sentence.len() <= LONGEST && is_rule(sentence) && !found.contains(&sentence) {
                    found.push(sentence);
                }
            }
        }
    }
    found
}

/// A line without the mark of a list in front.
fn without_bullet(line: &str) -> &str {
    let rest = line.trim_start_matches(['-', '*', '+', '•', '#', ' ']);
    let digits = rest.len() - rest.trim_start_matches(|c: char| c.is_ascii_digit()).len();
    if (1..=3).contains(&digits)
        && let Some(behind) = rest[digits..]
            .strip_prefix(". ")
            .or_else(|| rest[digits..].strip_prefix(") "))
    {
        return behind.trim_start();
    }
    rest
}

/// Cuts behind a full stop, a question or an exclamation mark that a blank follows; not within code or brackets, and not
/// behind a short abbreviation.
fn sentences(line: &str) -> Vec<&str> {
    const SHORT: [&str; 8] = [
        "e.g.", "i.e.", "etc.", "vs.", "cf.", "approx.", "no.", "incl.",
    ];
    let mut found = Vec::new();
    let (mut start, mut in_code) = (0, false);
    let mut chars = line.char_indices().peekable();
    while let Some((at, c)) = chars.next() {
        if c == '`' {
            in_code = !in_code;
        }
        let ends = matches!(c, '.' | '!' | '?' | '。' | '！' | '？');
        if !ends || in_code {
            continue;
        }
        let end = at + c.len_utf8();
        let blank = chars.peek().is_none_or(|(_, next)| next.is_whitespace()) || !c.is_ascii();
        let last = line[start..end].rsplit(char::is_whitespace).next();
        let short = last.is_some_and(|word| SHORT.contains(&word.to_ascii_lowercase().as_str()));
        if blank && !short {
            found.push(line[start..end].trim());
            start = end;
        }
    }
    found.push(line[start..].trim());
    found.retain(|sentence| !sentence.is_empty());
    found
}

/// Whether a sentence rules.
fn is_rule(sentence: &str) -> bool {
    if sentence.len() < 8 || !sentence.contains(char::is_whitespace) || looks_printed(sentence) {
        return false;
    }
    let small: String = sentence
        .to_lowercase()
        .replace('’', "'")
        .chars()
        .map(|c| {
            if c.is_alphanumeric() || c == '\'' {
                c
            } else {
                ' '
            }
        })
        .collect();
    let small = format!(
        " {} ",
        small.split_whitespace().collect::<Vec<_>>().join(" ")
    );
    let says = |word: &&str| small.contains(&format!(" {word} "));
    WORDS.iter().any(&says) || MORE.iter().any(&says) || not_but(&small) || limits(&small)
}

/// `not X but Y`.
fn not_but(small: &str) -> bool {
    small
        .find(" not ")
        .is_some_and(|at| small[at..].contains(" but "))
}

/// A number with a unit: a limit, mostly.
fn limits(small: &str) -> bool {
    const UNITS: [&str; 30] = [
        "ms",
        "s",
        "sec",
        "seconds",
        "second",
        "min",
        "minutes",
        "minute",
        "hours",
        "hour",
        "days",
        "kb",
        "mb",
        "gb",
        "kib",
        "mib",
        "gib",
        "bytes",
        "byte",
        "percent",
        "px",
        "lines",
        "columns",
        "characters",
        "chars",
        "tokens",
        "requests",
        "rows",
        "users",
        "usd",
    ];
    let mut words = small.split_whitespace().peekable();
    while let Some(word) = words.next() {
        let unit = word.trim_start_matches(|c: char| c.is_ascii_digit());
        if unit.len() == word.len() {
            continue;
        }
        let unit = if unit.is_empty() {
            words.peek().copied().unwrap_or_default()
        } else {
            unit
        };
        if UNITS.contains(&unit) {
            return true;
        }
    }
    false
}

/// Output that was pasted: a log line, a stack frame, a table.
fn looks_printed(sentence: &str) -> bool {
    // A stack frame: `at f (file:1:2)`.
    if sentence.starts_with("at ") && sentence.contains('(') && sentence.contains(':') {
        return true;
    }
    let starts = [
        "error:",
        "error[",
        "warning:",
        "thread '",
        "traceback",
        "$ ",
        "> ",
        "|",
        "+++",
        "---",
        "@@ ",
    ];
    let small = sentence.to_ascii_lowercase();
    if starts.iter().any(|start| small.starts_with(start)) {
        return true;
    }
    let letters = sentence
        .chars()
        .filter(|c| c.is_alphabetic() || c.is_whitespace());
    // Prose is letters; a line of a log is mostly not.
    letters.count() * 10 < sentence.chars().count() * 6
}

/// What makes two sentences the same rule: letters and digits alone, in small letters.
#[must_use]
pub fn key(sentence: &str) -> String {
    let plain: String = sentence
        .to_lowercase()
        .chars()
        .map(|c| if c.is_alphanumeric() { c } else { ' ' })
        .collect();
    plain.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sentences_that_rule_are_found_word_for_word() {
        let prompt = "Please build the importer. Never touch `db/schema.sql`. We use SQLite because the \
                      customers have no server. It is a nice day.\n\n- Prefer small commits\n2. At most 200 ms per row!\n\
                      I tried threads, that didn't work. Not a class but a function. Thanks";
        assert_eq!(
            rules(prompt),
            [
                "Never touch `db/schema.sql`.",
                "We use SQLite because the customers have no server.",
                "Prefer small commits",
                "At most 200 ms per row!",
                "I tried threads, that didn't work.",
                "Not a class but a function.",
            ]
        );
    }

    #[test]
    fn the_last_sentence_of_a_long_prompt_counts() {
        let prompt = format!(
            "{}Do not rename public functions.",
            "The parser reads a file. ".repeat(40)
        );
        assert_eq!(rules(&prompt), ["Do not rename public functions."]);
    }

    #[test]
    fn what_was_pasted_does_not_count() {
        let prompt = "Fix this:\n```\nerror: you must not do that\n```\n> never say never\nerror: cannot find value `x`\n\
                      at Object.must (/a/b.js:1:2)\n|  12 | must | 44 |";
        assert!(rules(prompt).is_empty(), "{:?}", rules(prompt));
    }

    #[test]
    fn the_end_of_a_pasted_file_is_searched() {
        let prompt = format!(
            "Look at this\n{}\nOnly change the last one.",
            "x = 1;\n".repeat(9_000)
        );
        assert_eq!(rules(&prompt), ["Only change the last one."]);
    }

    #[test]
    fn the_same_rule_in_other_marks_has_one_key() {
        assert_eq!(key("Never push!"), key("never  push"));
    }
}
