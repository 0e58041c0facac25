//! The bodies of POST requests, and the answers to them.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use super::FieldError;
use crate::lineage::{Way, words};

/// The greatest length of a text for [`Control::Say`](super::Control::Say), in bytes: a prompt, not a document.
pub const SAY_LIMIT: usize = 64 * 1024;

/// The body of `POST /control/reboot`; it may be empty.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RebootBody {
    /// The way: `fresh`, `in-place`, `on-the-fly` or `trim`; `None` leaves the choice to the review.
    pub way: Option<Way>,
}

/// The body of `POST /control/say`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SayBody {
    /// The text to type as a prompt, at most [`SAY_LIMIT`] bytes.
    pub text: String,
}

/// The body of `POST /control/approve`; it may be empty.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct ApproveBody {
    /// The handoff as it is to be sent, without its first line, which is the marker's; `None` for the one that waits.
    pub handoff: Option<String>,
    /// The text that `handoff` was made of, if that is not the one of the revision: the draft may have gone on under the edit.
    pub base: Option<String>,
    /// The revision of the handoff that the caller has read: if it has changed since, nothing is approved.
    pub revision: Option<String>,
}

impl ApproveBody {
    /// Checks the body: a handoff must have some text, and not be longer than any that is made.
    pub fn check(&self) -> Result<(), FieldError> {
        match self.handoff.as_deref() {
            Some(text) if text.trim().is_empty() => {
                Err(FieldError::text("handoff", "some text", text))
            }
            Some(text) if text.len() > HANDOFF_LIMIT => {
                Err(FieldError::bytes("handoff", HANDOFF_LIMIT, text.len()))
            }
            _ => Ok(()),
        }
    }
}

/// The longest edited handoff, in bytes: ten times the longest that is made.
pub const HANDOFF_LIMIT: usize = 500_000;

/// The body of `POST /control/permission`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PermissionBody {
    /// The number of the need, as in [`NeedReport`](super::NeedReport).
    pub id: u64,
    /// The answer.
    pub answer: PermissionAnswer,
}

words! {
    /// The answer of a person to a permission that the agent asks for.
    PermissionAnswer, "an answer (allow or deny)", {
        /// The tool may run, this once.
        Allow = "allow",
        /// The tool may not run; the agent goes on with that.
        Deny = "deny",
    }
}

/// The answer to the hook of a permission, for `pitstop hook`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PermissionVerdict {
    /// The person's answer.
    pub answer: PermissionAnswer,
}

/// The answer to an order that is carried out.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct OrderReply {
    /// The status: always `accepted`.
    pub status: String,
    /// A message for people: what happens now, and what they have to do.
    pub message: String,
}

impl OrderReply {
    /// Creates the answer `accepted` with this message.
    pub fn new(message: impl Into<String>) -> Self {
        Self {
            status: "accepted".to_owned(),
            message: message.into(),
        }
    }
}

/// The body of `POST /control/save`: the human's additions to the checkpoint.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct CheckpointBody {
    /// The purpose of the work; `None` means the known objective.
    pub task: Option<String>,
    /// The next steps, placed before those known to be pending.
    pub next_steps: Vec<String>,
    /// The tags by which to find the checkpoint.
    pub tags: Vec<String>,
}

impl CheckpointBody {
    /// A body that adds nothing.
    pub const EMPTY: Self = Self {
        task: None,
        next_steps: Vec::new(),
        tags: Vec::new(),
    };

    /// Checks the body: texts must be short, and tags must be words.
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

/// Reports whether a text can be a checkpoint's tag: letters and digits of any script, and `-_.:/`.
pub fn is_tag(text: &str) -> bool {
    let plain = |c: char| c.is_alphanumeric() || "-_.:/".contains(c);
    (1..=TAG_LIMIT).contains(&text.chars().count()) && text.chars().all(plain)
}

/// The answer to `POST /control/save`, which `pitstop save --json` prints.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CheckpointReply {
    /// The checkpoint's status: `saved` (on disk), or `queued` (in memory until the store is usable; the message gives the reason).
    pub status: String,
    /// The checkpoint's id.
    pub checkpoint_id: String,
    /// The environment under which the checkpoint is filed.
    pub environment: String,
    /// The session in which it was saved; `None` without a supervisor.
    pub session_id: Option<String>,
    /// The purpose of the work.
    pub task: String,
    /// The next steps.
    pub next_steps: Vec<String>,
    /// The checkpoint's tags.
    pub tags: Vec<String>,
    /// A message for people: how to continue from it, or why it is not on disk yet.
    pub message: String,
}

/// The body of `POST /hooks/git-commit`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CommitBody {
    /// The environment that the reporter means. It is kept with the report; the checkpoint is filed under the supervisor's own.
    pub environment: Option<String>,
    /// The commit's id: 7 to 64 hexadecimal digits.
    pub commit_sha: String,
    /// The commit's message; its first line becomes the task of the checkpoint.
    pub commit_message: Option<String>,
    /// The branch on which it was made; `None` for a detached head.
    pub branch: Option<String>,
    /// The number of files that the commit changed.
    pub files_changed: Option<u64>,
    /// The top of the work tree in which it was made. With it the commit counts only if the agent has left the project to work there.
    pub work_tree: Option<PathBuf>,
}

/// The body of `POST /hooks/test-result`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct TestBody {
    /// The environment that the reporter means. It is kept with the report; the checkpoint is filed under the supervisor's own.
    pub environment: Option<String>,
    /// True if the run passed.
    pub passed: bool,
    /// The number of tests that ran, if known.
    pub test_count: Option<u64>,
    /// The number of tests that failed, if known.
    pub failed_count: Option<u64>,
    /// The duration of the run, in seconds.
    pub duration_seconds: Option<f64>,
    /// The command line that ran the tests.
    pub test_command: Option<String>,
    /// The program that ran the tests, as `pitstop` names it (`pytest`), if known: with the directory it identifies the owner of the tests.
    pub runner: Option<String>,
    /// The absolute path of the directory in which the command ran, if known.
    pub directory: Option<String>,
    /// The names of the failed tests, if known: at most [`TEST_NAMES_LIMIT`] names of at most [`TEST_NAME_LIMIT`] bytes.
    pub failing_tests: Option<Vec<String>>,
    /// The names of the passed tests, if known, within the same limits.
    pub passing_tests: Option<Vec<String>>,
}

/// The most names that a list of tests in a report may have: more than a person reads, and a bound for what is kept.
pub const TEST_NAMES_LIMIT: usize = 1_000;

/// The longest name of a test, in bytes; a test with a longer name cannot be looked up by it.
pub const TEST_NAME_LIMIT: usize = 1_000;

/// The body of `POST /context/auto-save`; it may be empty.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct SaveBody {
    /// The environment that the reporter means. It is kept with the report; the checkpoint is filed under the supervisor's own.
    pub environment: Option<String>,
    /// The number of tokens in use, as the caller counts them; `None` means the supervisor's own figure.
    pub used_tokens: Option<u64>,
    /// The purpose of the work, as the caller understands it: at most [`SAVE_TEXT_LIMIT`] bytes.
    pub inferred_task: Option<String>,
    /// The state of the work, as the caller understands it: at most [`SAVE_CONTEXT_LIMIT`] bytes.
    pub inferred_context: Option<String>,
}

/// The longest context that `POST /context/auto-save` takes, in bytes: it goes into a start prompt with the handoff.
pub const SAVE_CONTEXT_LIMIT: usize = 32 * 1024;

/// The answer to a reported commit or test run; the field of the other kind is left out.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct NotedReply {
    /// The outcome: `saved` (a checkpoint is kept), `recorded` (none, because this kind is switched off, or there are too many), or
    /// `elsewhere` (not counted: the agent works in another work tree).
    pub status: String,
    /// True if the commit or test run was seen before.
    pub known: bool,
    /// The session to which the report belongs.
    pub session_id: Option<String>,
    /// The first eight digits of the commit's id.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub commit: Option<String>,
    /// True if the tests passed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tests_passed: Option<bool>,
}

/// The answer to `POST /context/auto-save`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct SaveReply {
    /// The checkpoint's status: `saved` (on disk), or `queued` (in memory until the store is usable; the message gives the reason).
    pub status: String,
    /// The checkpoint's id.
    pub checkpoint_id: String,
    /// The session that was saved.
    pub session_id: Option<String>,
    /// The share of the usable window in use, in percent; `None` before the first figure.
    pub percent_at_save: Option<f64>,
    /// The command that continues from this checkpoint.
    pub restart_command: String,
    /// A message for people.
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
