//! The summary of the session, and the order for a new one.

use std::borrow::Cow;

use crate::app::event::SummaryId;
use pitstop_base::format;
use pitstop_handoff::summary::{SummaryMade, SummarySource};

/// The summary of the session, and the order for a new one.
#[derive(Clone, Debug, Default)]
pub struct Summaries {
    /// The newest summary; the handoff carries it if a model has written it.
    pub current: Option<Summary>,
    pub(in crate::app) order: Option<SummaryRequest>,
    /// True if the warn line has been crossed in this iteration.
    pub(in crate::app) warned: bool,
    /// The number of the newest order or timer: it goes on where the summary is forgotten.
    pub(in crate::app) epoch: u64,
    /// The epoch of the timer that orders a summary while a turn runs.
    pub(in crate::app) due: Option<u64>,
    /// The number of turns after which a model gave its last answer, or an error in its place.
    pub(in crate::app) answered: Option<u32>,
}

/// A summary of the conversation.
#[derive(Clone, Debug, PartialEq)]
pub struct Summary {
    /// The text, in seven sections.
    pub text: String,
    /// The way in which it was made.
    pub made: SummaryMade,
    /// The number of turns of the iteration after which it was made.
    pub(in crate::app) turns: u32,
}

/// A summary that is being made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::app) struct SummaryRequest {
    pub(in crate::app) id: SummaryId,
    pub(in crate::app) turns: u32,
    pub(in crate::app) reading: bool,
    pub(in crate::app) asking: bool,
}

impl Summaries {
    /// Forgets the summary, because another conversation begins.
    pub(super) fn forget(&mut self) {
        *self = Self {
            epoch: self.epoch,
            ..Self::default()
        };
    }

    /// Returns the model's summary for the handoff of a session that has had this number of turns.
    pub fn by_model(&self, turns: u32) -> Option<Cow<'_, str>> {
        let current = self.current.as_ref()?;
        if current.made.source != SummarySource::Model {
            return None;
        }
        let passed = turns.saturating_sub(current.turns);
        Some(if passed == 0 {
            Cow::Borrowed(current.text.as_str())
        } else {
            let note = format!(
                "(Written {} before the end of the session.)",
                format::count(passed, "turn")
            );
            Cow::Owned(format!("{note}\n\n{}", current.text))
        })
    }
}
