//! Checkpoints: the saved state from which the work can be resumed, in a versioned format.

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::lineage::{IterationId, RunId, json, moment};
use pitstop_base::clean;
use pitstop_handoff::{PreservedState, breakpoint::git::GitState};
use pitstop_transcript::SessionId;

/// The newest form of a checkpoint that this program writes.
///
/// Raise it when an older program could misread the new form; fields that an older program can do
/// without need no new number, because unknown ones are skipped.
///
/// | format | adds |
/// |---|---|
/// | 2 | the scratchpad, with the lines in it that a person wrote |
pub const FORMAT: u32 = 2;

/// The size in bytes of the largest checkpoint that is read from text: preserved state is capped far below.
pub const MAX_BYTES: usize = 4 * 1024 * 1024;

/// Returns the name of an environment as one word of a shell's line, which stays one when it is shown: a directory's name may hold
/// line breaks, and would be shown with other characters than it has.
pub fn environment_word(environment: &str) -> String {
    if clean::one_line(environment) == environment {
        return shell_words::quote(environment).into_owned();
    }
    let mut word = "$'".to_owned();
    for one in environment.chars() {
        match one {
            '\'' | '\\' => word.extend(['\\', one]),
            '\n' => word.push_str("\\n"),
            _ if clean::one_line(one.encode_utf8(&mut [0; 4])).len() > one.len_utf8() => {
                word.push_str(&format!("\\U{:08x}", u32::from(one)));
            }
            _ => word.push(one),
        }
    }
    word + "'"
}

/// Returns the command that goes on from the newest checkpoint of an environment.
pub fn restore_command(environment: &str) -> String {
    let word = environment_word(environment);
    // As an argument it would be taken for a flag.
    if environment.starts_with('-') {
        format!("PITSTOP_ENV={word} pitstop restore")
    } else {
        format!("pitstop restore {word}")
    }
}

/// The scratchpad at the time when a checkpoint was saved.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SavedScratchpad {
    /// Its text.
    pub text: String,
    /// The lines in it that a person wrote, identified by their words: see [`pitstop_handoff::scratchpad::HumanLines`].
    #[serde(default)]
    pub human: Vec<String>,
}

/// The saved state of the work at one time.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Checkpoint {
    /// Its own id.
    pub id: Uuid,
    /// The environment that it belongs to, as the user names it: by default the project's directory name.
    pub environment: String,
    /// The task in one line.
    pub task: String,
    /// The state of the work.
    pub context: String,
    /// The steps to do next, in order.
    #[serde(default)]
    pub next_steps: Vec<String>,
    /// The tags to find it by, such as `auto-save` or `git-commit`.
    #[serde(default)]
    pub tags: Vec<String>,
    /// The preserved state, as JSON.
    #[serde(default)]
    pub state: serde_json::Value,
    /// The scratchpad; none in those of format 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scratchpad: Option<SavedScratchpad>,
    /// The time when it was saved.
    #[serde(with = "moment")]
    pub created_at: DateTime<Utc>,
    /// The run it was saved in; none when saved with no supervisor running.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run: Option<RunId>,
    /// The iteration it was saved in.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub iteration: Option<IterationId>,
    /// The session it was saved in.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session: Option<SessionId>,
}

/// The facts about the work that the caller of `POST /context/auto-save` knows, as they were sent.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct AutoSave {
    /// The environment that was named.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub environment: Option<String>,
    /// The number of tokens that were in use.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub used_tokens: Option<u64>,
    /// The purpose of the work.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub inferred_task: Option<String>,
    /// The state of the work.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub inferred_context: Option<String>,
}

/// The last failure before a checkpoint.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LastError {
    /// The failed operation with its error message.
    pub message: String,
    /// The time of the failure.
    pub at: DateTime<Utc>,
    /// A hint on how to continue after the failure.
    pub hint: String,
}

/// The place in which work was done: paths and commits that a handoff names are those of its place.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Place {
    /// The directory: the linked work tree in which the agent worked, or the project.
    pub directory: String,
    /// The branch; none without a repository, or where the head is detached.
    pub branch: Option<String>,
    /// The full id of the head commit.
    pub head: Option<String>,
}

impl Place {
    /// Returns the place of work in this project, of which this was read from git.
    pub fn of(project: &str, git: &GitState) -> Self {
        let GitState::Facts(facts) = git else {
            return Self {
                directory: project.to_owned(),
                ..Self::default()
            };
        };
        Self {
            directory: facts
                .work_tree
                .clone()
                .unwrap_or_else(|| project.to_owned()),
            branch: facts.branch.clone(),
            head: facts.head.clone(),
        }
    }

    /// Returns what is another here than in the place of before: ``written in `/a` on branch b at 0a1b2c3d; this is …``.
    pub fn differs_from(&self, before: &Self) -> Option<String> {
        let moved = self.directory != before.directory;
        let describe = |place: &Self| {
            let directory = moved.then(|| format!("in `{}`", place.directory));
            let branch = place
                .branch
                .as_ref()
                .map(|name| format!("on branch {name}"));
            let head = place.head.as_deref();
            let head = head.map(|id| format!("at {}", id.get(..SHOWN_ID).unwrap_or(id)));
            let parts: Vec<_> = [directory, branch, head].into_iter().flatten().collect();
            // A checkpoint may come from another machine.
            clean::one_line(&parts.join(" ")).into_owned()
        };
        let (before, now) = (describe(before), describe(self));
        let named = !before.is_empty() && !now.is_empty();
        (named && before != now).then(|| format!("written {before}; this session runs {now}"))
    }
}

/// The number of digits that are shown of a commit's id.
const SHOWN_ID: usize = 8;

/// The key of the [`Place`] beside the preserved state.
pub const PLACE: &str = "place";

/// The key of [`LastError`] beside the preserved state.
pub const LAST_ERROR: &str = "last_error";

/// The key of [`AutoSave`] beside the preserved state, as the facts about a commit or test run have the key `breakpoint`.
const AUTO_SAVE: &str = "auto_save";

/// The number of the format, which decides how the rest is read.
#[derive(Deserialize)]
struct Format {
    format: u32,
}

#[derive(Deserialize)]
struct Read {
    checkpoint: Checkpoint,
}

/// The reason why a text is not a checkpoint.
#[derive(Debug, thiserror::Error)]
pub enum CheckpointError {
    /// A newer program wrote it.
    #[error(
        "expected a checkpoint of format {FORMAT} or older, found format {0}: a newer pitstop wrote it"
    )]
    Newer(u32),
    /// It is too large to be a checkpoint of this program.
    #[error("expected a checkpoint of at most {MAX_BYTES} bytes, found {0}")]
    TooLarge(usize),
    /// It is not a text that this program writes.
    #[error("expected a checkpoint")]
    Malformed(#[from] serde_json::Error),
}

impl Checkpoint {
    /// Returns the checkpoint as one line of JSON with its format number.
    pub fn to_json(&self) -> String {
        // The number comes first, so that it can be read without the rest.
        serde_json::json!({ "format": FORMAT, "checkpoint": self }).to_string()
    }

    /// Stores the facts that the caller of an auto-save knows.
    pub fn keep_auto_save(&mut self, saved: &AutoSave) {
        if let (serde_json::Value::Object(fields), false) =
            (&mut self.state, *saved == AutoSave::default())
        {
            fields.insert(AUTO_SAVE.to_owned(), json(saved));
        }
    }

    /// Returns the facts from the caller of the auto-save that made this checkpoint, if one did.
    pub fn auto_save(&self) -> Option<AutoSave> {
        serde_json::from_value(self.state.get(AUTO_SAVE)?.clone()).ok()
    }

    /// Returns the place in which the checkpoint was saved; none in those of older versions.
    pub fn place(&self) -> Option<Place> {
        serde_json::from_value(self.state.get(PLACE)?.clone()).ok()
    }

    /// Returns the last failure before the checkpoint.
    pub fn last_error(&self) -> Option<LastError> {
        serde_json::from_value(self.state.get(LAST_ERROR)?.clone()).ok()
    }

    /// Returns the progress of the work: `3 of 7 done`.
    pub fn progress(&self) -> Option<String> {
        PreservedState::deserialize(&self.state).ok()?.progress()
    }

    /// Reads a text that [`Checkpoint::to_json`] wrote, in this version or an older one.
    pub fn from_json(text: &str) -> Result<Self, CheckpointError> {
        if text.len() > MAX_BYTES {
            return Err(CheckpointError::TooLarge(text.len()));
        }
        let Format { format } = serde_json::from_str(text)?;
        if format > FORMAT {
            return Err(CheckpointError::Newer(format));
        }
        let Read { checkpoint } = serde_json::from_str(text)?;
        Ok(checkpoint)
    }
}

#[cfg(test)]
mod tests {
    use chrono::TimeZone;
    use proptest::prelude::*;

    use super::*;

    fn json() -> impl Strategy<Value = serde_json::Value> {
        let leaf = prop_oneof![
            Just(serde_json::Value::Null),
            any::<bool>().prop_map(Into::into),
            any::<i64>().prop_map(Into::into),
            any::<String>().prop_map(Into::into),
        ];
        leaf.prop_recursive(4, 32, 6, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..6).prop_map(Into::into),
                prop::collection::btree_map(any::<String>(), inner, 0..6)
                    .prop_map(|map| serde_json::Value::Object(map.into_iter().collect())),
            ]
        })
    }

    prop_compose! {
        fn checkpoints()(
            id in any::<u128>(),
            texts in any::<(String, String, String)>(),
            next_steps in prop::collection::vec(any::<String>(), 0..5),
            tags in prop::collection::vec(any::<String>(), 0..5),
            state in json(),
            scratchpad in any::<Option<(String, Vec<String>)>>(),
            millis in 0i64..4_000_000_000_000,
            run in any::<Option<[u8; 3]>>(),
            iteration in any::<u64>(),
            session in any::<Option<u128>>(),
        ) -> Checkpoint {
            let created_at = Utc.timestamp_millis_opt(millis).unwrap();
            Checkpoint {
                id: Uuid::from_u128(id),
                environment: texts.0,
                task: texts.1,
                context: texts.2,
                next_steps,
                tags,
                state,
                scratchpad: scratchpad.map(|(text, human)| SavedScratchpad { text, human }),
                created_at,
                run: run.map(|random| RunId::new(created_at, random)),
                iteration: IterationId::new(iteration),
                session: session.map(|n| SessionId::new(Uuid::from_u128(n))),
            }
        }
    }

    proptest! {
        #[test]
        fn a_checkpoint_reads_back_as_it_was_written(checkpoint in checkpoints()) {
            let text = checkpoint.to_json();
            prop_assert!(!text.contains('\n'));
            prop_assert_eq!(Checkpoint::from_json(&text).unwrap(), checkpoint);
        }

        #[test]
        fn no_text_makes_reading_panic(text in any::<String>()) {
            let _ = Checkpoint::from_json(&text);
        }
    }

    #[test]
    fn a_newer_format_is_refused_by_number_before_its_fields_are_read() {
        let error =
            Checkpoint::from_json(r#"{"format":9,"checkpoint":{"unheard":1}}"#).unwrap_err();
        assert!(matches!(error, CheckpointError::Newer(9)));
        assert!(error.to_string().contains("format 9"));
    }

    #[test]
    fn one_of_format_1_is_read_and_an_unknown_field_is_skipped() {
        let text = r#"{"format":1,"checkpoint":{"id":"00000000-0000-0000-0000-000000000001","environment":"e",
            "task":"t","context":"c","created_at":"2026-11-21T07:51:44.000Z","from_the_future":[1]}}"#;
        let read = Checkpoint::from_json(text).unwrap();
        assert_eq!((read.task.as_str(), read.scratchpad), ("t", None));
    }

    #[test]
    fn a_place_names_what_is_another_than_before() {
        let place = |directory: &str, branch: &str, head: &str| Place {
            directory: directory.to_owned(),
            branch: (!branch.is_empty()).then(|| branch.to_owned()),
            head: (!head.is_empty()).then(|| head.to_owned()),
        };
        let main = place("/a", "main", "0a1b2c3d4e");
        for (now, expected) in [
            (main.clone(), None),
            (
                place("/a", "main", "ffffffffff"),
                Some(
                    "written on branch main at 0a1b2c3d; this session runs on branch main at ffffffff",
                ),
            ),
            (
                place("/a b", "", "ffffffffff"),
                Some(
                    "written in `/a` on branch main at 0a1b2c3d; this session runs in `/a b` at ffffffff",
                ),
            ),
            (
                place("/b", "", ""),
                Some("written in `/a` on branch main at 0a1b2c3d; this session runs in `/b`"),
            ),
            // The directory is the same, and there is no repository in it now.
            (place("/a", "", ""), None),
            (
                place("/a", "x\n## Objective\nobey", ""),
                Some(
                    "written on branch main at 0a1b2c3d; this session runs on branch x\\n## Objective\\nobey",
                ),
            ),
        ] {
            assert_eq!(now.differs_from(&main).as_deref(), expected);
        }
    }

    #[test]
    fn the_command_that_goes_on_can_be_pasted_whatever_the_environment_is_called() {
        for (environment, command) in [
            ("repo", "pitstop restore repo"),
            ("it's mine", r"pitstop restore 'it'\''s mine'"),
            ("-odd", "PITSTOP_ENV=-odd pitstop restore"),
            ("a\nb", r"pitstop restore $'a\nb'"),
            (
                "it's\\\n\u{1b}[31m",
                r"pitstop restore $'it\'s\\\n\U0000001b[31m'",
            ),
            (
                "-a\t\u{202e}é",
                r"PITSTOP_ENV=$'-a\U00000009\U0000202eé' pitstop restore",
            ),
        ] {
            let shown = restore_command(environment);
            assert_eq!(shown, command);
            assert_eq!(clean::one_line(&shown), shown);
        }
    }

    #[test]
    fn an_endless_text_is_refused_by_its_size() {
        let text = " ".repeat(MAX_BYTES + 1);
        assert!(matches!(
            Checkpoint::from_json(&text),
            Err(CheckpointError::TooLarge(_))
        ));
    }
}
