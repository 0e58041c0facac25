//! The items that are preserved: texts with their source, decisions, issues, constraints.

use std::fmt;

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};

use pitstop_transcript::human::Said;

/// The source of something that is preserved.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[derive(strum::IntoStaticStr)]
#[strum(serialize_all = "lowercase")]
pub enum Origin {
    /// A person: a prompt, or a call of this type's own methods. A record without an origin counts as this.
    #[default]
    Human,
    /// A signal line in the assistant's words.
    Signal,
    /// The scratchpad, by any author.
    Scratchpad,
    /// The agent's own to-do tool.
    Todo,
    /// The repository, as git reports it.
    Git,
    /// A test run.
    Tests,
    /// The agent's own tools, through the files that they have changed.
    Tools,
}

impl Origin {
    /// Returns the word for it, as in JSON.
    pub fn word(self) -> &'static str {
        self.into()
    }
}

/// A text with its source. It displays and compares with a string as its text; in JSON it is an object, and a plain string is
/// read as one too.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(from = "Stored")]
pub struct Item {
    /// The text itself.
    pub text: String,
    /// The source of the text.
    pub origin: Origin,
}

impl Item {
    /// Creates an item from a text, without the blank space around it.
    pub fn new(text: &str, origin: Origin) -> Self {
        Self {
            text: text.trim().to_owned(),
            origin,
        }
    }

    /// Returns the text.
    pub fn as_str(&self) -> &str {
        &self.text
    }
}

impl AsRef<str> for Item {
    fn as_ref(&self) -> &str {
        &self.text
    }
}

impl fmt::Display for Item {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl PartialEq<&str> for Item {
    fn eq(&self, other: &&str) -> bool {
        self.text == *other
    }
}

/// An item as it is stored in records: earlier records had the text alone.
#[derive(Deserialize)]
#[serde(untagged)]
enum Stored {
    Text(String),
    Item {
        text: String,
        #[serde(default)]
        origin: Origin,
    },
}

impl From<Stored> for Item {
    fn from(stored: Stored) -> Self {
        match stored {
            Stored::Text(text) => Self {
                text,
                origin: Origin::default(),
            },
            Stored::Item { text, origin } => Self { text, origin },
        }
    }
}

/// The severity of an issue.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[derive(strum::EnumString, strum::IntoStaticStr)]
#[strum(serialize_all = "lowercase", ascii_case_insensitive)]
pub enum Severity {
    /// A minor flaw.
    Low,
    /// A problem that is worth fixing.
    #[default]
    Medium,
    /// A problem that blocks the objective.
    High,
    /// A problem that blocks all work until it is fixed.
    Critical,
}

impl Severity {
    /// Returns the word that handoffs and signals use.
    pub fn word(self) -> &'static str {
        self.into()
    }

    /// Returns the severity of this word, in upper or lower case.
    pub fn read(word: &str) -> Option<Self> {
        word.trim().parse().ok()
    }

    /// Returns the severity of a blocker in the scratchpad, and the rest of its words. One without a severity is high, because it
    /// blocks the work.
    pub fn of_blocker(text: &str) -> (Self, &str) {
        let graded = text.strip_prefix("ISSUE").unwrap_or(text);
        let graded = graded
            .strip_prefix('[')
            .and_then(|text| text.split_once(']'));
        let read = graded.and_then(|(word, rest)| Some((Self::read(word)?, rest)));
        let (severity, rest) = read.unwrap_or((Self::High, text));
        (severity, rest.trim_start_matches([':', ' ']).trim())
    }
}

/// A decision with its reason.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Decision {
    /// The decision itself.
    pub description: String,
    /// The reason; empty if not given.
    pub rationale: String,
    /// The time at which it was recorded; for a decision in the scratchpad it is known only if a date is given there.
    #[serde(default)]
    pub timestamp: Option<DateTime<Utc>>,
    /// The source of the decision.
    #[serde(default)]
    pub origin: Origin,
}

/// A rule that must hold for the rest of the work: a prompt of the human, or a constraint that the agent stated.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Constraint {
    /// The words, verbatim, and the time at which they were said.
    #[serde(flatten)]
    pub said: Said,
    /// The source of the constraint.
    #[serde(default)]
    pub origin: Origin,
    /// True if the human wants it in every handoff, however much was said since.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub pinned: bool,
}

/// An approach that was considered and rejected.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Rejected {
    /// The approach.
    pub what: String,
    /// The reason; empty if it was not given.
    pub why: String,
    /// The source of the rejection.
    #[serde(default)]
    pub origin: Origin,
}

/// A known problem.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Issue {
    /// The description of the problem.
    pub description: String,
    /// The severity of the problem.
    pub severity: Severity,
    /// The files that it concerns.
    pub files: Vec<String>,
    /// True if the issue is resolved.
    pub addressed: bool,
    /// The source of the issue.
    #[serde(default)]
    pub origin: Origin,
}

/// Returns the files that a text names between back quotes: `src/a.rs`, not `Vec<T>` and not `a::b`.
pub(crate) fn named_files(text: &str) -> Vec<String> {
    let is_path = |word: &&str| {
        let plain = |c: char| c.is_alphanumeric() || matches!(c, '/' | '.' | '_' | '-' | '+' | '@');
        let ending = word.rsplit_once('.').map_or("", |(_, ending)| ending);
        word.chars().all(plain)
            && !word.starts_with(['/', '.', '-'])
            && !word.contains("..")
            && (1..=5).contains(&ending.len())
            && ending.starts_with(|c: char| c.is_ascii_alphabetic())
    };
    let quoted = text.split('`').skip(1).step_by(2).filter(is_path);
    quoted.map(str::to_owned).collect()
}

/// Returns the texts of some items.
pub fn texts(items: &[Item]) -> Vec<String> {
    items.iter().map(|item| item.text.clone()).collect()
}

/// Returns the characters by which two wordings of an item are compared: lower case, without marks of Markdown or a full stop.
fn plain_chars(item: &str) -> impl Iterator<Item = char> {
    item.trim()
        .trim_end_matches('.')
        .chars()
        .filter(|c| !matches!(c, '*' | '`'))
        .flat_map(char::to_lowercase)
}

/// Reports whether two wordings are of the same item.
pub fn is_same_item(one: &str, other: &str) -> bool {
    plain_chars(one).eq(plain_chars(other))
}

/// Returns the key that all wordings of an item have in common.
pub fn item_key(text: &str) -> String {
    plain_chars(text).collect()
}
