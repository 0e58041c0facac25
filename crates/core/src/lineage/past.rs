//! A session of the past: its iteration, and the message that represents best what it knew.

use chrono::{DateTime, Utc};

use crate::lineage::{
    Iteration, IterationId, RunId, Way,
    checkpoint::Checkpoint,
    journal::{JournalEntry, Step},
};
use pitstop_base::clean;
use pitstop_handoff::Marker;
use pitstop_transcript::SessionId;

/// A past session as the store records it.
#[derive(Clone, Debug, PartialEq)]
pub struct PastSession {
    /// The run that it belonged to; the newest of several, where a later run resumed it.
    pub run: RunId,
    /// The task of that run, if it was an autonomous one.
    pub task: Option<String>,
    /// Its iteration there.
    pub iteration: Iteration,
    /// The reboot that gave it a handoff.
    pub got: Option<JournalEntry>,
    /// The reboot in which it handed over.
    pub gave: Option<JournalEntry>,
    /// The preserved state that it handed over.
    pub state: Option<serde_json::Value>,
    /// The last checkpoint that was saved in it.
    pub checkpoint: Option<Checkpoint>,
}

/// The kind of a session's message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, strum::IntoStaticStr)]
#[strum(serialize_all = "lowercase")]
pub enum MessageKind {
    /// The handoff that it gave to its successor.
    Given,
    /// The text of its last checkpoint: it has not handed over.
    #[strum(serialize = "checkpoint")]
    Saved,
    /// The handoff that it was given itself: nothing else of it is kept.
    Received,
    /// The summary of its iteration.
    Summary,
}

impl MessageKind {
    /// Returns the word for scripts.
    pub fn word(self) -> &'static str {
        self.into()
    }
}

/// The message that represents best what a session knew.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Message<'a> {
    /// Its kind.
    pub kind: MessageKind,
    /// Its text.
    pub text: &'a str,
    /// The time when it was made; none for a summary.
    pub at: Option<DateTime<Utc>>,
    /// The preserved state that it was made from, where that is known.
    pub state: Option<&'a serde_json::Value>,
}

/// An iteration in which a search has found its text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Found {
    /// Its run.
    pub run: RunId,
    /// Its number.
    pub iteration: IterationId,
    /// The place of the text, where it is in what was said and not in the record's own words.
    pub excerpt: Option<Excerpt>,
}

/// The place of a text that was searched for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Excerpt {
    /// The name of what it is in, in words.
    pub of: &'static str,
    /// The words around it.
    pub words: String,
}

/// The number of characters of an excerpt on either side of the text.
const AROUND: usize = 120;

impl Excerpt {
    /// Returns the words around the first place of a text in another one, whatever the case of its letters.
    pub fn around(wanted: &str, of: &'static str, text: &str) -> Option<Self> {
        let wanted = wanted.to_lowercase();
        let (line, at) = text.lines().find_map(|line| {
            let line = clean::one_line(line);
            let lower = line.to_lowercase();
            let at = lower[..lower.find(&wanted)?].chars().count();
            Some((line, at))
        })?;
        let words = line.chars().skip(at.saturating_sub(AROUND));
        let words = words.take(2 * AROUND + wanted.chars().count()).collect();
        Some(Self { of, words })
    }
}

impl PastSession {
    /// Returns the words around the first place of a text, whatever the case of its letters: in the handoff that it gave, the one
    /// that it was given, the summary or the task.
    pub fn excerpt(&self, wanted: &str) -> Option<Excerpt> {
        fn handoff(entry: Option<&JournalEntry>) -> Option<&str> {
            entry.map(|one| one.handoff.as_str())
        }
        let texts = [
            ("handoff it gave", handoff(self.gave.as_ref())),
            ("handoff it was given", handoff(self.got.as_ref())),
            ("summary", self.iteration.summary.as_deref()),
            ("task", self.task.as_deref()),
        ];
        let mut texts = texts.into_iter();
        texts.find_map(|(of, text)| Excerpt::around(wanted, of, text?))
    }

    /// Returns the handoff that it gave; else its last checkpoint, else the handoff it was given; else its summary.
    pub fn message(&self) -> Option<Message<'_>> {
        let is_said = |message: &Message<'_>| !message.text.trim().is_empty();
        let given = self.gave.as_ref().map(|entry| Message {
            kind: MessageKind::Given,
            text: &entry.handoff,
            at: Some(entry.at),
            state: self.state.as_ref(),
        });
        let saved = self.checkpoint.as_ref().map(|one| Message {
            kind: MessageKind::Saved,
            text: &one.context,
            at: Some(one.created_at),
            state: Some(&one.state),
        });
        let record = self.iteration.reboot.as_ref();
        let received = self.got.as_ref().map(|entry| Message {
            kind: MessageKind::Received,
            text: &entry.handoff,
            at: Some(entry.at),
            state: record.and_then(|record| record.preserved_state.as_ref()),
        });
        let summary = self.iteration.summary.as_ref().map(|text| Message {
            kind: MessageKind::Summary,
            text,
            at: None,
            state: None,
        });
        [given, saved, received, summary]
            .into_iter()
            .flatten()
            .find(is_said)
    }
}

/// Returns the entry of the reboot that gave an iteration in this session its handoff; `entries` may be of any reboots of a run, newest
/// first. A reboot in place keeps the session, and an undo comes back to it: several iterations may be in one.
pub fn got(
    entries: &[JournalEntry],
    session: SessionId,
    iteration: IterationId,
) -> Option<&JournalEntry> {
    let mut entries = entries.iter().filter(|entry| is_delivered(entry));
    entries.find(|entry| entry.new_session == Some(session) && written_in(entry) < iteration.get())
}

/// Returns the entry of the reboot in which an iteration handed over; `entries` as in [`got`].
pub fn gave(
    entries: &[JournalEntry],
    session: SessionId,
    iteration: IterationId,
) -> Option<&JournalEntry> {
    let mut entries = entries.iter().filter(|entry| is_delivered(entry));
    entries.find(|entry| entry.old_session == Some(session) && written_in(entry) == iteration.get())
}

/// Returns the number of the iteration that wrote the handoff of a reboot; 0 for one of another run, which a checkpoint has kept.
fn written_in(entry: &JournalEntry) -> u64 {
    match Marker::read(&entry.handoff) {
        Some(marker) if marker.run == entry.run.to_string() => marker.iteration,
        Some(_) => 0,
        None => entry.iteration.get(),
    }
}

/// Reports whether the handoff of this reboot is on its way or has arrived: one that was only drafted, or rolled back, was
/// given to no session.
fn is_delivered(entry: &JournalEntry) -> bool {
    let step = matches!(
        entry.step,
        Step::Delivering | Step::Verifying | Step::Warming | Step::Done
    );
    step && entry.way != Way::Trim && !entry.handoff.is_empty()
}
