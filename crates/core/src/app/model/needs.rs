//! What a person is needed for.

use chrono::{DateTime, Utc};

use super::progress::hash_of;
use crate::api::wire::{NeedKind, NeedReport};

/// Something that a person is needed for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Need {
    /// The number under which it is called and taken back: different for all needs of a supervisor.
    pub id: u64,
    /// The kind.
    pub kind: NeedKind,
    /// The occasion among those of its kind.
    pub(in crate::app) occasion: u64,
    /// A sentence on what waits.
    pub what: String,
    /// The reason, which may be empty. A call by a message says it too, so it holds no text of a command.
    pub why: String,
    /// The hash of the reason as it was found: it is read after each event, and masked once.
    pub(in crate::app) reason: u64,
    /// The time at which it was first seen, UTC.
    pub since: DateTime<Utc>,
    /// The time until which a person can decide, or at which it ends by itself, UTC.
    pub until: Option<DateTime<Utc>>,
    /// The name of the tool that asks, where it is a permission.
    pub tool: Option<String>,
    /// True if it is a permission that can be answered from afar.
    pub answerable: bool,
    /// True if a person was called, and until it has its number, if they are to be: what they do themselves they know.
    pub called: bool,
}

impl Need {
    /// Creates a need that calls for a person, and has no number and no beginning yet.
    pub(in crate::app) fn new(
        kind: NeedKind,
        what: impl Into<String>,
        why: impl Into<String>,
    ) -> Self {
        let why = why.into();
        Self {
            id: 0,
            kind,
            occasion: 0,
            what: what.into(),
            reason: hash_of(&why),
            why,
            since: DateTime::UNIX_EPOCH,
            until: None,
            tool: None,
            answerable: false,
            called: true,
        }
    }

    /// Reports whether it is the need of this kind and occasion: a question may turn out to be about a permission.
    pub(super) fn is_of(&self, kind: NeedKind, occasion: u64) -> bool {
        let subject = |kind| match kind {
            NeedKind::Permission => NeedKind::Question,
            kind => kind,
        };
        subject(self.kind) == subject(kind) && self.occasion == occasion
    }

    /// Returns what waits and why, on one line.
    pub fn in_words(&self) -> String {
        match self.why.as_str() {
            "" => self.what.clone(),
            why => format!("{}: {why}", self.what),
        }
    }

    /// Returns the need as scripts read it.
    pub fn report(&self) -> NeedReport {
        NeedReport {
            id: self.id,
            kind: self.kind,
            what: self.what.clone(),
            why: self.why.clone(),
            since: self.since,
            until: self.until,
            tool: self.tool.clone(),
            answerable: self.answerable,
        }
    }
}
