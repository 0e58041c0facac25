//! The bodies of what is posted, and what is answered to them.

use serde::{Deserialize, Serialize};

use super::FieldError;
use crate::lineage::Way;

/// How long a text for [`Control::Say`](super::Control::Say) may be, in bytes: a prompt, not a document.
pub const SAY_LIMIT: usize = 64 * 1024;

/// The body of `POST /control/reboot`; it may be empty.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RebootBody {
    /// The way: `fresh`, `in-place` or `trim`; nothing leaves it to the review.
    pub way: Option<Way>,
}

/// The body of `POST /control/say`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SayBody {
    /// The text to type as a prompt, at most [`SAY_LIMIT`] bytes.
    pub text: String,
}

/// What an order is answered with that is carried out.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct OrderReply {
    /// `accepted`.
    pub status: String,
    /// For people: what happens now, and what is theirs to do.
    pub message: String,
}

impl OrderReply {
    /// The order is carried out, and this is what it comes to.
    #[must_use]
    pub fn new(message: impl Into<String>) -> Self {
        Self {
            status: "accepted".to_owned(),
            message: message.into(),
        }
    }
}

/// The body of `POST /control/save`: what the human adds to the checkpoint.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct CheckpointBody {
    /// What the work is for; without it the objective as it is known.
    pub task: Option<String>,
    /// What is to be done next, before what is known to be pending.
    pub next_steps: Vec<String>,
    /// Marks to find it by.
    pub tags: Vec<String>,
}

impl CheckpointBody {
    /// Nothing added.
    pub const EMPTY: Self = Self {
        task: None,
        next_steps: Vec::new(),
        tags: Vec::new(),
    };

    /// What is wrong with it, if anything: texts are short, tags are words.
    pub fn check(&self) -> Result<(), FieldError> {
        let steps = self.next_steps.iter().enumerate();
        let steps = steps.map(|(at, step)| (format!("next_steps[{at}]"), step));
        let task = self.task.iter().map(|task| ("task".to_owned(), task));
        for (name, text) in task.chain(steps) {
            if text.trim().is_empty() {
                return Err(FieldError::text(name, "some text", text));
            }
            if text.len() > SAVE_TEXT_LIMIT {
                return Err(FieldError::bytes(name, SAVE_TEXT_LIMIT, text.len()));
            }
        }
        for (name, list) in [("next_steps", &self.next_steps), ("tags", &self.tags)] {
            if list.len() > SAVE_LIST_LIMIT {
                let expected = format!("a list of at most {SAVE_LIST_LIMIT}");
                return Err(FieldError::new(name, expected, list.len()));
            }
        }
        match self.tags.iter().enumerate().find(|(_, tag)| !is_tag(tag)) {
            Some((at, tag)) => Err(FieldError::text(
                format!("tags[{at}]"),
                format!("1 to {TAG_LIMIT} letters, digits and `-_.:/`"),
                tag,
            )),
            None => Ok(()),
        }
    }
}

/// The longest task or next step of a checkpoint, in bytes: a prompt, not a document.
pub const SAVE_TEXT_LIMIT: usize = 8 * 1024;

/// The most next steps, and the most tags, that one save adds.
pub const SAVE_LIST_LIMIT: usize = 50;

/// The longest tag, in characters: a branch name fits.
pub const TAG_LIMIT: usize = 100;

/// Whether a text can be a checkpoint's tag: letters and digits of any script, and `-_.:/`.
#[must_use]
pub fn is_tag(text: &str) -> bool {
    let plain = |c: char| c.is_alphanumeric() || "-_.:/".contains(c);
    (1..=TAG_LIMIT).contains(&text.chars().count()) && text.chars().all(plain)
}

/// What became of `POST /control/save`; what `pitstop save --json` prints.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CheckpointReply {
    /// `saved`: on disk. `queued`: in memory until the store can be used again; the message says why.
    pub status: String,
    /// The checkpoint's id.
    pub checkpoint_id: String,
    /// What it is filed under.
    pub environment: String,
    /// The session it was saved in; nothing without a supervisor.
    pub session_id: Option<String>,
    /// What the work is for.
    pub task: String,
    /// What is to be done next.
    pub next_steps: Vec<String>,
    /// Its tags.
    pub tags: Vec<String>,
    /// How to go on from it, or why it is not on disk yet.
    pub message: String,
}

/// The body of `POST /hooks/git-commit`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CommitBody {
    /// The environment that the reporter means. It is kept with what it says; the checkpoint is filed under the supervisor's own.
    pub environment: Option<String>,
    /// The commit's id: 7 to 64 hexadecimal digits.
    pub commit_sha: String,
    /// Its message; the first line is the task of the checkpoint that is saved.
    pub commit_message: Option<String>,
    /// The branch it was made on; nothing for a detached head.
    pub branch: Option<String>,
    /// How many files it changed.
    pub files_changed: Option<u64>,
}

/// The body of `POST /hooks/test-result`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct TestBody {
    /// The environment that the reporter means. It is kept with what it says; the checkpoint is filed under the supervisor's own.
    pub environment: Option<String>,
    /// Whether the run passed.
    pub passed: bool,
    /// How many tests ran, if known.
    pub test_count: Option<u64>,
    /// How many of them failed, if known.
    pub failed_count: Option<u64>,
    /// How long the run took, in seconds.
    pub duration_seconds: Option<f64>,
    /// The command line that ran them.
    pub test_command: Option<String>,
    /// The program that ran them, as `pitstop` names it (`pytest`), if known: together with the directory it identifies the owner of the tests.
    pub runner: Option<String>,
    /// The absolute path of the directory in which the command ran, if known.
    pub directory: Option<String>,
    /// The names of those that failed, if known: at most [`TEST_NAMES_LIMIT`] of at most [`TEST_NAME_LIMIT`] bytes.
    pub failing_tests: Option<Vec<String>>,
    /// The names of those that passed, if known, within the same limits.
    pub passing_tests: Option<Vec<String>>,
}

/// The most names of failing tests that a report may have: more than a person reads, and a bound for what is kept.
pub const TEST_NAMES_LIMIT: usize = 1_000;

/// The longest name of a test, in bytes; a longer one cannot be looked for by it.
pub const TEST_NAME_LIMIT: usize = 1_000;

/// The body of `POST /context/auto-save`; an empty one will do.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct SaveBody {
    /// The environment that the reporter means. It is kept with what it says; the checkpoint is filed under the supervisor's own.
    pub environment: Option<String>,
    /// How many tokens are in use, as the caller counts them; nothing means the supervisor's own figure.
    pub used_tokens: Option<u64>,
    /// What the work is for, as the caller understands it: at most [`SAVE_TEXT_LIMIT`] bytes.
    pub inferred_task: Option<String>,
    /// Where the work stands, as the caller understands it: at most [`SAVE_CONTEXT_LIMIT`] bytes.
    pub inferred_context: Option<String>,
}

/// The longest context that `POST /context/auto-save` takes, in bytes: it goes into a start prompt with the handoff.
pub const SAVE_CONTEXT_LIMIT: usize = 32 * 1024;

/// What a reported commit or test run is answered with; the field of the other kind is left out.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct NotedReply {
    /// `saved`: a checkpoint of it is kept. `recorded`: none, for those of its kind are switched off, or too many.
    pub status: String,
    /// Whether it was seen before.
    pub known: bool,
    /// The session it belongs to.
    pub session_id: Option<String>,
    /// The first eight digits of the commit's id.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub commit: Option<String>,
    /// Whether the tests passed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tests_passed: Option<bool>,
}

/// What `POST /context/auto-save` answers.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct SaveReply {
    /// `saved`: on disk. `queued`: in memory until the store can be used again; the message says why.
    pub status: String,
    /// The checkpoint's id.
    pub checkpoint_id: String,
    /// The session that was saved.
    pub session_id: Option<String>,
    /// How full the usable window was, in percent; nothing before the first figure.
    pub percent_at_save: Option<f64>,
    /// The command that goes on from here.
    pub restart_command: String,
    /// For people.
    pub message: String,
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_a_save_adds_is_short_and_its_tags_are_words() {
        let body =
            |json: serde_json::Value| serde_json::from_value::<CheckpointBody>(json).unwrap();
        for good in [
            json!({}),
            json!({"task": "ship it", "next_steps": ["a", "b"], "tags": ["v1.2", "feat/x", "größe"]}),
            json!({"unheard": 1}),
        ] {
            assert_eq!(body(good.clone()).check(), Ok(()), "{good}");
        }
        for bad in [
            json!({"task": " "}),
            json!({"task": "x".repeat(SAVE_TEXT_LIMIT + 1)}),
            json!({"next_steps": [""]}),
            json!({"next_steps": vec!["x"; SAVE_LIST_LIMIT + 1]}),
            json!({"tags": [""]}),
            json!({"tags": ["two words"]}),
            json!({"tags": ["\u{1b}[2J"]}),
            json!({"tags": ["x".repeat(TAG_LIMIT + 1)]}),
        ] {
            assert!(body(bad.clone()).check().is_err(), "{bad}");
        }
    }
}
