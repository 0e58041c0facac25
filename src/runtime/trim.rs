//! Trimming on the disk: the survey of a session's transcript, and the copy under a new id.
//!
//! A transcript is the client's own file, so it is only ever read; the copy is written aside in the same
//! directory, synced, read again, and only then renamed to a name that nothing had before. A session has a copy
//! whole or not at all.
//!
//! ```text
//!   loop ── Ask ──► thread ──► TrimPlanned or Trimmed ──► loop
//! ```

use std::{
    fs::{self, File},
    io::{self, BufReader, BufWriter, Read as _, Seek as _, Write as _},
    path::{Path, PathBuf},
    sync::mpsc as std_mpsc,
};

use tokio::sync::mpsc;

use pitstop_base::clean::chain;
use pitstop_core::{
    app::{Event, event::ReadEvent},
    lineage::TrimRecord,
};
use pitstop_transcript::{
    SessionId, Tokens, tail,
    trim::{Survey, TrimError, TrimSettings, Written, replaced_at},
};

/// The number of bytes that are read and written at once.
const BLOCK: usize = 1024 * 1024;

/// The reason why a session could not be trimmed.
#[derive(Debug, thiserror::Error)]
pub enum CopyError {
    /// The transcript is not what it should be.
    #[error(transparent)]
    Refused(#[from] tail::TailError),
    /// There is no transcript.
    #[error("no transcript at {}", pitstop_base::clean::one_line(&.0.to_string_lossy()))]
    Missing(PathBuf),
    /// It could not be read, or the copy would not be right.
    #[error(transparent)]
    Trim(#[from] TrimError),
    /// A file could not be handled.
    #[error("cannot {act} {}", pitstop_base::clean::one_line(&.path.to_string_lossy()))]
    Io {
        /// The operation that failed.
        act: &'static str,
        /// The file of the operation.
        path: PathBuf,
        /// The reason for the failure.
        source: io::Error,
    },
    /// The conversation was not replaced in this transcript.
    #[error(
        "expected the handoff that has replaced the conversation, found none behind a compaction"
    )]
    NotReplaced,
    /// It would be too large even without any tool response.
    #[error("expected a trim to leave less than {target} tokens, found {least} at its strongest level", target = target.0, least = least.0)]
    NoLevel {
        /// The number of tokens that a level must get below.
        target: Tokens,
        /// The number of tokens that the strongest level leaves.
        least: Tokens,
    },
}

/// An open transcript, with a survey of its content.
#[derive(Debug)]
pub struct Surveyed {
    file: File,
    path: PathBuf,
    /// The survey of its content.
    pub survey: Survey,
}

/// A copy that was made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Copied {
    /// The path of the copy.
    pub path: PathBuf,
    /// The figures of what was written.
    pub written: Written,
}

impl Surveyed {
    /// Opens the transcript at `path`, which must be a plain file of our own, and reads it once.
    pub fn read(path: &Path) -> Result<Self, CopyError> {
        Self::of(open(path)?, path, u64::MAX)
    }

    /// Reads the transcript like [`Surveyed::read`], but only up to the handoff with this nonce that has replaced the conversation.
    fn before_handoff(path: &Path, nonce: &str) -> Result<Self, CopyError> {
        let mut file = open(path)?;
        let end = replaced_at(BufReader::with_capacity(BLOCK, &file), nonce)?;
        let end = end.ok_or(CopyError::NotReplaced)?;
        file.rewind().map_err(|source| CopyError::Io {
            act: "read",
            path: path.to_owned(),
            source,
        })?;
        Self::of(file, path, end)
    }

    fn of(file: File, path: &Path, end: u64) -> Result<Self, CopyError> {
        let survey = Survey::read(BufReader::with_capacity(BLOCK, (&file).take(end)))?;
        let path = path.to_owned();
        Ok(Self { file, path, survey })
    }

    /// Writes a copy, trimmed to a level in percent, beside the original under the name of `session`, which
    /// must be free.
    pub fn copy(
        mut self,
        level: u8,
        session: SessionId,
        settings: &TrimSettings,
    ) -> Result<Copied, CopyError> {
        let above = match self.path.parent() {
            Some(above) if !above.as_os_str().is_empty() => above,
            _ => Path::new("."),
        };
        let target = above.join(format!("{session}.jsonl"));
        let failed = |act: &'static str| {
            let path = target.clone();
            move |source: io::Error| CopyError::Io { act, path, source }
        };
        // It is created with mode 0600, and removed again unless it gets its name.
        let mut aside = tempfile::Builder::new()
            .prefix(&aside_prefix(session))
            .tempfile_in(above)
            .map_err(failed("create"))?;
        self.file.rewind().map_err(failed("read the original of"))?;
        let mut out = BufWriter::with_capacity(BLOCK, aside.as_file());
        let reader = BufReader::with_capacity(BLOCK, &self.file);
        let written = self
            .survey
            .write(reader, level, session, settings, &mut out)?;
        out.flush().map_err(failed("write"))?;
        drop(out);
        aside.as_file_mut().rewind().map_err(failed("read back"))?;
        self.survey
            .check_copy(BufReader::with_capacity(BLOCK, aside.as_file()))?;
        aside.as_file().sync_all().map_err(failed("sync"))?;
        aside
            .persist_noclobber(&target)
            .map_err(|error| failed("name")(error.error))?;
        File::open(above)
            .and_then(|above| above.sync_all())
            .map_err(failed("sync the directory of"))?;
        Ok(Copied {
            path: target,
            written,
        })
    }
}

/// Writes a whole copy of the conversation that the handoff with this nonce has replaced, beside the original and under
/// the name of `session`.
pub fn copy_replaced(path: &Path, nonce: &str, session: SessionId) -> Result<Copied, CopyError> {
    const WHOLE: TrimSettings = TrimSettings {
        compact_line: Tokens(0),
        max_recent_messages: 0,
    };
    Surveyed::before_handoff(path, nonce)?.copy(0, session, &WHOLE)
}

fn open(path: &Path) -> Result<File, CopyError> {
    tail::open_ours(path)?.ok_or_else(|| CopyError::Missing(path.to_owned()))
}

/// Returns the prefix of the name of an unfinished copy.
fn aside_prefix(session: SessionId) -> String {
    format!(".{session}.aside-")
}

/// Removes what a supervisor that died while it wrote the copy of `session` has left beside `original`.
pub fn sweep(original: &Path, session: SessionId) {
    let prefix = aside_prefix(session);
    let entries = original.parent().map(fs::read_dir);
    for entry in entries.into_iter().flatten().flatten().flatten() {
        if entry.file_name().to_string_lossy().starts_with(&prefix)
            && let Err(error) = fs::remove_file(entry.path())
        {
            tracing::warn!(%error, "half a trimmed copy cannot be removed");
        }
    }
}

/// A request to the thread, under a number that its answer repeats.
#[derive(Debug)]
pub struct Ask {
    /// The number.
    pub ask: u64,
    /// The transcript.
    pub path: PathBuf,
    /// The settings by which it is measured.
    pub settings: TrimSettings,
    /// The id for a copy at the first level that is enough; `None` asks only what each level would free.
    pub copy: Option<SessionId>,
}

/// Answers until no order can come any more.
pub fn work(asked: &std_mpsc::Receiver<Ask>, events: &mpsc::Sender<Event>) {
    for ask in asked {
        // The loop is gone, then.
        let _ = events.blocking_send(Event::Read(answer(&ask)));
    }
}

fn answer(asked: &Ask) -> ReadEvent {
    let (ask, path, settings) = (asked.ask, &asked.path, &asked.settings);
    let Some(session) = asked.copy else {
        let plan = Surveyed::read(path).map(|read| read.survey.plan(settings));
        let plan = plan.map_err(|error| chain(&error));
        return ReadEvent::TrimPlanned { ask, plan };
    };
    let made = trim(path, settings, session)
        .map_err(|error| chain(&error))
        .inspect_err(|error| tracing::warn!(error, "the session was not trimmed"));
    ReadEvent::Trimmed { ask, made }
}

/// Trims a session that has ended to the first level that is enough.
fn trim(path: &Path, settings: &TrimSettings, session: SessionId) -> Result<TrimRecord, CopyError> {
    let read = Surveyed::read(path)?;
    let plan = read.survey.plan(settings);
    let Some(level) = plan.chosen else {
        let strongest = plan.levels.last();
        return Err(CopyError::NoLevel {
            target: settings.target(),
            least: strongest.map_or(Tokens(0), |level| level.tokens_after),
        });
    };
    let Copied { path, written } = read.copy(level, session, settings)?;
    let figure = written.figure;
    tracing::info!(path = %path.display(), ?figure, dropped = written.dropped_tail, "trimmed");
    Ok(TrimRecord {
        level: figure.percent,
        responses: figure.responses,
        of: plan.responses(),
        tokens_before: figure.tokens_before,
        tokens_after: figure.tokens_after,
    })
}

#[cfg(test)]
mod tests {
    use uuid::Uuid;

    use super::*;

    fn session(number: u128) -> SessionId {
        SessionId::new(Uuid::from_u128(number))
    }

    /// Writes a transcript of a call with a response of 400 000 characters, in a context of 150 000 tokens.
    fn transcript(directory: &Path) -> PathBuf {
        let path = directory.join(format!("{}.jsonl", session(1)));
        let long = "x".repeat(400_000);
        let lines = [
            r#"{"type":"user","uuid":"a","parentUuid":null,"sessionId":"s","message":{"role":"user","content":"go"}}"#.to_owned(),
            r#"{"type":"assistant","uuid":"b","parentUuid":"a","sessionId":"s","message":{"id":"m1","role":"assistant","model":"m","content":[{"type":"tool_use","id":"t1","name":"Read","input":{}}],"usage":{"input_tokens":1,"output_tokens":1}}}"#.to_owned(),
            format!(r#"{{"type":"user","uuid":"c","parentUuid":"b","sessionId":"s","message":{{"role":"user","content":[{{"type":"tool_result","tool_use_id":"t1","content":"{long}"}}]}}}}"#),
            r#"{"type":"assistant","uuid":"d","parentUuid":"c","sessionId":"s","message":{"id":"m2","role":"assistant","model":"m","content":[{"type":"text","text":"done"}],"usage":{"input_tokens":150000,"output_tokens":0}}}"#.to_owned(),
        ];
        fs::write(&path, lines.join("\n") + "\n").unwrap();
        path
    }

    const SETTINGS: TrimSettings = TrimSettings {
        compact_line: Tokens(153_000),
        max_recent_messages: 10,
    };

    #[test]
    fn what_was_replaced_in_place_is_copied_whole_and_nothing_behind_it() {
        let directory = tempfile::tempdir().unwrap();
        let path = transcript(directory.path());
        let before = fs::read_to_string(&path).unwrap();
        // The agent has read the file of the handoff before it was given.
        let read = r#"{"type":"user","uuid":"e","parentUuid":"d","sessionId":"s","message":{"role":"user","content":[{"type":"tool_result","tool_use_id":"t1","content":"n0nce"}]}}"#;
        let boundary = r#"{"type":"system","subtype":"compact_boundary","uuid":"f","parentUuid":null,"sessionId":"s"}"#;
        let user = |text: &str| {
            format!(
                r#"{{"type":"user","uuid":"g","parentUuid":"f","sessionId":"s","message":{{"role":"user","content":"{text}"}}}}"#
            )
        };
        let lines = [
            before.trim_end(),
            boundary,
            &user("an earlier summary"),
            read,
            boundary,
            &user("handoff n0nce"),
            boundary,
            &user("summary"),
        ];
        fs::write(&path, lines.join("\n") + "\n").unwrap();
        let copied = copy_replaced(&path, "n0nce", session(2)).unwrap();
        let text = fs::read_to_string(copied.path).unwrap();
        let kept = lines[..4].join("\n") + "\n";
        let new = format!(r#""sessionId":"{}""#, session(2));
        assert!(text == kept.replace(r#""sessionId":"s""#, &new));
        let error = copy_replaced(&path, "deadbeef", session(3)).unwrap_err();
        assert!(matches!(error, CopyError::NotReplaced), "{error}");
    }

    #[test]
    fn a_copy_takes_no_name_that_is_taken_and_leaves_nothing_aside() {
        let directory = tempfile::tempdir().unwrap();
        let path = transcript(directory.path());
        let taken = directory.path().join(format!("{}.jsonl", session(2)));
        fs::write(&taken, "mine").unwrap();
        let error = trim(&path, &SETTINGS, session(2)).unwrap_err();
        assert!(error.to_string().starts_with("cannot name "), "{error}");
        assert_eq!(fs::read_to_string(taken).unwrap(), "mine");
        assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 2);
    }

    #[test]
    fn without_a_level_that_is_enough_nothing_is_written() {
        let directory = tempfile::tempdir().unwrap();
        let path = transcript(directory.path());
        let settings = TrimSettings {
            compact_line: Tokens(40_000),
            ..SETTINGS
        };
        let error = trim(&path, &settings, session(2)).unwrap_err();
        assert!(
            error.to_string().contains("less than 32000 tokens"),
            "{error}"
        );
        assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 1);
    }

    #[test]
    fn half_a_copy_of_a_dead_supervisor_is_swept_and_nothing_else() {
        let directory = tempfile::tempdir().unwrap();
        let path = transcript(directory.path());
        for number in [2, 3] {
            let name = format!("{}abc123", aside_prefix(session(number)));
            fs::write(directory.path().join(name), "half").unwrap();
        }
        sweep(&path, session(2));
        assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 2);
    }
}
