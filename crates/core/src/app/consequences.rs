//! What follows outside of a feature from a change of its state: the feature returns it, and does not reach for the rest of the model.

use pitstop_base::{format, keymap::Action};

use crate::{
    app::effect::Effect,
    lineage::{IterationId, Way},
};
use pitstop_transcript::SessionId;

/// The effects to carry out and the messages to show, each in order.
#[derive(Debug, Default)]
#[must_use = "effects and messages are lost unless they are carried out"]
pub(in crate::app) struct Consequences {
    pub(in crate::app) effects: Vec<Effect>,
    /// The messages, each with whether something went wrong.
    pub(in crate::app) messages: Vec<(String, bool)>,
    /// The messages for the log alone, because nothing has to be done about them.
    pub(in crate::app) notes: Vec<String>,
    /// The notices that are no longer true.
    pub(in crate::app) withdrawn: Vec<&'static str>,
}

impl Consequences {
    /// Adds an effect.
    pub(in crate::app) fn emit(&mut self, effect: Effect) {
        self.effects.push(effect);
    }

    /// Adds a message.
    pub(in crate::app) fn info(&mut self, text: impl Into<String>) {
        self.messages.push((text.into(), false));
    }

    /// Adds an error.
    pub(in crate::app) fn error(&mut self, text: impl Into<String>) {
        self.messages.push((text.into(), true));
    }

    /// Adds a message for the log.
    pub(in crate::app) fn note(&mut self, text: impl Into<String>) {
        self.notes.push(text.into());
    }

    /// Takes back a notice that is no longer true.
    pub(in crate::app) fn withdraw(&mut self, text: &'static str) {
        self.withdrawn.push(text);
    }

    /// Copies a document, and adds a message with its length.
    pub(in crate::app) fn copy_document(&mut self, name: &str, text: &str) {
        if text.trim().is_empty() {
            return self.info(format!("the {name} is empty: nothing to copy"));
        }
        let lines = format::count(text.lines().count(), "line");
        self.info(format!("{name} copied: {lines}"));
        self.emit(Effect::Copy(text.to_owned()));
    }

    /// Adds what follows after it.
    pub(in crate::app) fn then(mut self, later: Self) -> Self {
        self.effects.extend(later.effects);
        self.messages.extend(later.messages);
        self.notes.extend(later.notes);
        self.withdrawn.extend(later.withdrawn);
        self
    }
}

/// What follows from a key, and what it asks of another feature.
pub(in crate::app) type KeyOutcome = (Consequences, Option<Request>);

/// What a key asks of other features than the one that has it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::app) enum Request {
    /// Give the keys to the hosted program.
    FocusPane,
    /// Do what a key of the keymap does.
    Act(Action),
    /// Open the editor on the handoff, at the line in view.
    EditHandoff,
    /// Leave that editor, and show the line that its cursor was in.
    EndHandoffEdit,
    /// Put the handoff into the agent's prompt.
    PasteHandoff,
    /// Leave.
    Quit,
    /// Start the agent again.
    Restart,
    /// Go on with the reboot under review.
    Approve,
    /// Take this way in the reboot under review.
    Take(Way),
    /// Give the reboot up.
    Cancel,
    /// Resume an earlier session.
    Resume {
        /// The session.
        session: SessionId,
        /// The nonce of the handoff that has replaced the conversation that is meant, if one has.
        nonce: Option<String>,
        /// The iteration that it goes on from, if that is known.
        parent: Option<IterationId>,
    },
}

impl<E: IntoIterator<Item = Effect>> From<E> for Consequences {
    fn from(effects: E) -> Self {
        Self {
            effects: effects.into_iter().collect(),
            ..Self::default()
        }
    }
}
