//! Sentences by which a human rules: what must hold for the rest of the work, and is said once.
//!
//! Found by words alone, in English, German and French; of another language no sentence is known as a rule. One sentence
//! too many costs a line of a handoff; one too few is a rule that the next session breaks. So a doubtful one counts.

use std::collections::HashSet;

use super::{facts::is_file, prose, words::ends};

/// The longest sentence that counts, in bytes: longer ones are pasted text.
const LONGEST: usize = 1_000;

/// Of a longer prompt only the start and the end are searched, in bytes each: what lies between was pasted.
const SEARCHED: usize = 32 * 1024;

/// Words and phrases that rule, in small letters, each between borders of words.
const ENGLISH: [&str; 121] = [
    "a must",
    "allowed",
    "always",
    "as long as",
    "ask before",
    "ask me",
    "at least",
    "at most",
    "avoid",
    "backwards compatible",
    "because",
    "before you",
    "but no",
    "by default",
    "can not",
    "can't",
    "cannot",
    "constraint",
    "deadline",
    "decided",
    "decision",
    "default to",
    "did not work",
    "didn't work",
    "do not",
    "do nothing",
    "does not",
    "doesn't",
    "don't",
    "dont",
    "ensure",
    "exactly",
    "except",
    "forbidden",
    "hands off",
    "has to",
    "have to",
    "i like",
    "i want",
    "i'd like",
    "ignore",
    "important",
    "instead",
    "keep",
    "leave",
    "less than",
    "let's use",
    "limit",
    "limited",
    "make sure",
    "mandatory",
    "max",
    "maximum",
    "may not",
    "min",
    "minimum",
    "more than",
    "must",
    "must-have",
    "mustn't",
    "needs to",
    "never",
    "no less than",
    "no longer",
    "no matter",
    "no more than",
    "no new",
    "no other",
    "not an option",
    "not more than",
    "not to",
    "note that",
    "off limits",
    "off-limits",
    "only",
    "or higher",
    "or later",
    "or newer",
    "out of scope",
    "prefer",
    "preferably",
    "preference",
    "preferred",
    "prefers",
    "prohibited",
    "rather",
    "reason",
    "reject",
    "rejected",
    "remember",
    "require",
    "required",
    "requirement",
    "requires",
    "should",
    "shouldn't",
    "since we",
    "so that",
    "stay",
    "stick to",
    "stick with",
    "stop",
    "strictly",
    "tried",
    "under no circumstances",
    "unless",
    "until",
    "up to",
    "use",
    "wants",
    "we chose",
    "we decide",
    "we need",
    "we use",
    "we'll use",
    "whatever you do",
    "with no",
    "within",
    "without",
    "won't",
    "zero",
];

const GERMAN: [&str; 75] = [
    "abgelehnt",
    "anstatt",
    "anstelle",
    "auf keinen fall",
    "ausschließlich",
    "außer",
    "beachte",
    "behalte",
    "benutze",
    "bevorzuge",
    "bleib",
    "bleiben",
    "bleibt",
    "damit",
    "darf",
    "darfst",
    "denk daran",
    "denn",
    "dürfen",
    "entschieden",
    "erlaubt",
    "frag",
    "hat zu",
    "höchstens",
    "ich hätte gern",
    "ich möchte",
    "ich will",
    "immer",
    "kein",
    "keine",
    "keinem",
    "keinen",
    "keiner",
    "keines",
    "keinesfalls",
    "lass",
    "lasse",
    "lieber",
    "maximal",
    "mindestens",
    "muss",
    "musst",
    "muß",
    "müssen",
    "nicht",
    "nichts",
    "nie",
    "niemals",
    "nimm",
    "nur",
    "nutze",
    "ohne",
    "pflicht",
    "soll",
    "sollen",
    "sollst",
    "sollte",
    "solange",
    "sonst",
    "sorge dafür",
    "spätestens",
    "statt",
    "stattdessen",
    "stell sicher",
    "stelle sicher",
    "verboten",
    "vermeide",
    "vermeiden",
    "verwende",
    "verwenden",
    "verworfen",
    "weil",
    "wichtig",
    "wir brauchen",
    "zwingend",
];

const FRENCH: [&str; 62] = [
    "afin",
    "assure-toi",
    "assurez-vous",
    "attention",
    "au lieu",
    "au maximum",
    "au minimum",
    "au moins",
    "au plus",
    "aucun",
    "aucune",
    "conserve",
    "conservez",
    "doit",
    "doivent",
    "dois",
    "décidé",
    "faut",
    "garde",
    "gardez",
    "il vaut mieux",
    "impératif",
    "impérativement",
    "interdit",
    "interdite",
    "jamais",
    "je préfère",
    "je veux",
    "je voudrais",
    "laisse",
    "laissez",
    "moins de",
    "n'oublie",
    "n'oubliez",
    "ne",
    "obligatoire",
    "on utilise",
    "parce que",
    "pas",
    "plus de",
    "plutôt",
    "pour que",
    "préfère",
    "préférez",
    "puisque",
    "rejeté",
    "rejetée",
    "reste",
    "restent",
    "sans",
    "sauf",
    "seul",
    "seule",
    "seulement",
    "tant que",
    "toujours",
    "uniquement",
    "utilise",
    "utilisez",
    "veille à",
    "éviter",
    "évite",
];

/// The sentences of a prompt that rule, word for word, in the order in which they stand.
#[must_use]
pub fn rules(prompt: &str) -> Vec<String> {
    let (head, tail) = ends(prompt, 2 * SEARCHED).unwrap_or((prompt, ""));
    let mut seen = HashSet::new();
    let found = [head, tail].into_iter().flat_map(prose::sentences);
    found
        .filter(|sentence| sentence.len() <= LONGEST && is_rule(sentence))
        .filter(|sentence| seen.insert(sentence.clone()))
        .collect()
}

/// Whether a sentence rules.
fn is_rule(sentence: &str) -> bool {
    if sentence.len() < 8 || prose::looks_printed(sentence) {
        return false;
    }
    let small = said(sentence);
    if !small.trim().contains(' ') || asks(sentence, &small) {
        return false;
    }
    let says = |word: &&str| small.contains(&format!(" {word} "));
    let languages = [ENGLISH.as_slice(), &GERMAN, &FRENCH];
    languages.into_iter().flatten().any(says)
        || forbids(sentence, &small)
        || labelled(sentence)
        || not_but(&small)
        || limits(sentence, &small)
}

/// The words of a sentence in small letters, a blank before and behind each. What is code (in backticks, or with marks inside
/// of the word) says nothing.
fn said(sentence: &str) -> String {
    let mut out = String::from(" ");
    for (number, part) in sentence.split('`').enumerate() {
        // A backtick without its other half opens no code.
        if number % 2 == 1 && sentence.matches('`').count() > number {
            out.push_str("· ");
            continue;
        }
        let part = part.to_lowercase().replace('’', "'");
        let cut = |c: char| {
            c.is_whitespace()
                || matches!(c, ',' | ';' | '!' | '?' | '"' | '—' | '–' | '…' | '«' | '»')
        };
        for word in part.split(cut) {
            let word = word.trim_matches(|c: char| !c.is_alphanumeric());
            // `only:all`, but not `a::b`.
            let words = if word.contains("::") {
                vec![word]
            } else {
                word.split(':').collect()
            };
            for word in words.into_iter().filter(|word| !word.is_empty()) {
                let plain = |c: char| c.is_alphanumeric() || matches!(c, '\'' | '-');
                out.push_str(if word.chars().all(plain) {
                    word
                } else {
                    number_of(word)
                });
                out.push(' ');
            }
        }
    }
    out
}

/// What stands for a word with marks inside: a number's digits before its unit (`1.5`, `10,000`), nothing of any other.
fn number_of(word: &str) -> &str {
    let start = word
        .rfind(|c: char| !c.is_alphanumeric())
        .map_or(0, |at| at + 1);
    let is_number = word.starts_with(|c: char| c.is_ascii_digit());
    if is_number { &word[start..] } else { "·" }
}

/// A question that wants to know something. One that asks for something (`could you`, `why not`) may rule.
fn asks(sentence: &str, small: &str) -> bool {
    const STARTS: [&str; 20] = [
        "what", "why", "how", "where", "when", "which", "who", "is", "are", "was", "does", "did",
        "warum", "wie", "wo", "wann", "welche", "pourquoi", "comment", "quel",
    ];
    let mut words = small.split_whitespace();
    let (first, second) = (words.next().unwrap_or_default(), words.next());
    sentence.ends_with('?')
        && STARTS.contains(&first)
        && !matches!(second, Some("don't" | "not" | "about" | "nicht" | "pas"))
}

/// A label in capitals in front, `FACT: …`, `OPEN QUESTION: …`: what a person marks so is to be kept.
fn labelled(sentence: &str) -> bool {
    let Some((label, rest)) = sentence.split_once(": ") else {
        return false;
    };
    let capitals = |c: char| c.is_uppercase() || c == ' ';
    let length = label.chars().count();
    (3..=24).contains(&length) && label.chars().all(capitals) && rest.contains(' ')
}

/// `No emojis`, `in lib, not in bin`.
fn forbids(sentence: &str, small: &str) -> bool {
    let start = sentence.to_lowercase();
    ["no ", "not ", "and no ", "zero "]
        .iter()
        .any(|no| start.starts_with(no))
        || start.contains(", not ")
        || small.contains(" and no ")
}

/// The files that a prompt or a rule says are not to be touched, in English: those that directly follow the prohibition, as in
/// ``never edit `a.rs` or b.rs``. A file that only stands in a sentence with a `not` is none of them.
#[must_use]
pub fn forbidden_files(text: &str) -> Vec<String> {
    const NO: [&str; 8] = [
        "never",
        "not",
        "no",
        "don't",
        "mustn't",
        "shouldn't",
        "can't",
        "cannot",
    ];
    const TOUCH: [&str; 21] = [
        "change",
        "changes",
        "commit",
        "delete",
        "edit",
        "edits",
        "in",
        "into",
        "modify",
        "move",
        "open",
        "overwrite",
        "read",
        "reformat",
        "remove",
        "rename",
        "rewrite",
        "to",
        "touch",
        "update",
        "use",
    ];
    const BETWEEN: [&str; 13] = [
        "a", "and", "anything", "file", "files", "in", "into", "nor", "of", "or", "the", "to",
        "under",
    ];
    let mut found = Vec::new();
    for sentence in prose::sentences(text) {
        let small = sentence.replace('’', "'");
        let words: Vec<&str> = small
            .split_whitespace()
            .map(|word| word.trim_end_matches(|c: char| !c.is_alphanumeric()))
            .map(|word| {
                word.trim_start_matches(|c: char| !c.is_alphanumeric() && !"/.".contains(c))
            })
            .collect();
        let is_of = |list: &[&str], word: &str| list.contains(&word.to_lowercase().as_str());
        for (at, pair) in words.windows(2).enumerate() {
            if !is_of(&NO, pair[0]) || !is_of(&TOUCH, pair[1]) {
                continue;
            }
            let named = words[at + 2..]
                .iter()
                .take_while(|word| is_of(&BETWEEN, word) || is_file(word));
            found.extend(
                named
                    .filter(|word| is_file(word))
                    .map(|word| (*word).to_owned()),
            );
        }
    }
    found
}

/// `not X but Y`, `nicht X, sondern Y`.
fn not_but(small: &str) -> bool {
    [
        (" not ", " but "),
        (" nicht ", " sondern "),
        (" pas ", " mais "),
    ]
    .iter()
    .any(|(not, but)| small.find(not).is_some_and(|at| small[at..].contains(but)))
}

/// A number with a unit: a limit, mostly.
fn limits(sentence: &str, small: &str) -> bool {
    const UNITS: [&str; 53] = [
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
        "retries",
        "sekunden",
        "sekunde",
        "minuten",
        "stunden",
        "tage",
        "tagen",
        "zeilen",
        "zeichen",
        "spalten",
        "prozent",
        "anfragen",
        "nutzer",
        "euro",
        "secondes",
        "heures",
        "jours",
        "octets",
        "ko",
        "mo",
        "lignes",
        "caractères",
        "requêtes",
    ];
    let share = sentence.char_indices().any(|(at, c)| {
        matches!(c, '%' | '€')
            && sentence[..at]
                .trim_end()
                .ends_with(|c: char| c.is_ascii_digit())
    });
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
    share
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
    fn german_and_french_rules_are_found_word_for_word() {
        let prompt = "Bitte bau den Importer fertig. Fass das Schema niemals an, es ist live. Nimm SQLite statt \
                      JSON, weil zwei Prozesse schreiben. Höchstens 200 ms pro Zeile! Nicht als Klasse, sondern als \
                      Funktion. Die Datei ist groß, z. B. 3 Zeilen. Warum läuft das nicht?";
        assert_eq!(
            rules(prompt),
            [
                "Fass das Schema niemals an, es ist live.",
                "Nimm SQLite statt JSON, weil zwei Prozesse schreiben.",
                "Höchstens 200 ms pro Zeile!",
                "Nicht als Klasse, sondern als Funktion.",
                "Die Datei ist groß, z. B. 3 Zeilen.",
            ]
        );
        let prompt = "Écris l’importateur. Ne touche jamais au schéma. N'utilise pas de threads. On préfère de \
                      petits commits. Il faut rester sous 4 Mo. Merci beaucoup à toi.";
        assert_eq!(
            rules(prompt),
            [
                "Ne touche jamais au schéma.",
                "N'utilise pas de threads.",
                "On préfère de petits commits.",
                "Il faut rester sous 4 Mo.",
            ]
        );
    }

    #[test]
    fn what_is_code_or_a_question_rules_nothing() {
        for text in [
            "What does `must_use` mean and where is only_once?",
            "Rename must_not_be_null to may_be_null everywhere.",
            "The module src/use/never.rs is broken.",
            "Look at a::never::only first.",
            "The field is read-only here.",
            "Why does this not work?",
            "Wie heißt das nicht mehr benutzte Modul?",
            "There is no test yet",
        ] {
            assert!(rules(text).is_empty(), "{:?}", rules(text));
        }
        for text in [
            "Why don't we use threads instead?",
            "Can you make sure that it stays green?",
            "No new dependencies, please.",
            "Put it into lib, not into bin.",
            "Coverage is at 80 % today.",
            "Pages load in 1.5s on the old phone.",
            "Rule:never push",
            "FACT: The database runs in the south.",
            "Anna prefers short answers.",
        ] {
            assert_eq!(rules(text), [text]);
        }
    }

    #[test]
    fn files_that_follow_a_prohibition_are_forbidden() {
        for (text, files) in [
            ("Never touch `db/schema.sql`.", &["db/schema.sql"][..]),
            (
                "Please do not edit the files a/b.rs, c.toml or `d/e.md`, they are generated.",
                &["a/b.rs", "c.toml", "d/e.md"],
            ),
            (
                "Put it into src/lib.rs, not into src/main.rs.",
                &["src/main.rs"],
            ),
            ("No changes to Cargo.toml!", &["Cargo.toml"]),
            ("Don’t modify ./src/old.rs.", &["./src/old.rs"]),
            ("Do not forget to update src/a.rs.", &[]),
            ("The test in src/a.rs does not pass, fix it.", &[]),
            ("Never use threads in src/a.rs.", &[]),
        ] {
            assert_eq!(forbidden_files(text), files, "{text}");
        }
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
