//! The text in the prompt box that a person has not submitted, and the progress of writing it to disk.

use pitstop_handoff::sendable;

use crate::app::effect::Effect;

use super::reboot::Reboot;

/// The content of the agent's prompt box that a person has not submitted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Unsent {
    /// The box is empty.
    Nothing,
    /// The box holds this text.
    Text(String),
    /// The content cannot be read whole: it is higher than the screen, or has an image or a long paste in it, or the box
    /// is not on the screen.
    Unreadable,
}

impl Unsent {
    /// Returns the text, where it is known.
    pub(in crate::app) fn text(self) -> Option<String> {
        match self {
            Self::Text(text) => Some(text),
            Self::Nothing | Self::Unreadable => None,
        }
    }
}

/// An unsent prompt of an earlier session that is not in this one's prompt box yet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Waiting {
    pub(in crate::app) text: String,
    /// The cursor's position in the text, in UTF-16 units, if it is known.
    pub(in crate::app) cursor: Option<usize>,
    /// True if it could not be put back: the next session tries again.
    pub(in crate::app) failed: bool,
}

impl Waiting {
    /// Creates one for a text whose cursor is not known.
    pub(in crate::app) const fn new(text: String) -> Self {
        Self {
            text,
            cursor: None,
            failed: false,
        }
    }
}

/// The progress of writing a draft to disk.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum OnDisk {
    /// There is no draft.
    #[default]
    Nothing,
    /// This draft is being written.
    Ordered(String),
    /// This draft is on disk.
    Kept(String),
}

impl Reboot {
    /// Takes over an unsent prompt that was left by a pitstop that did not come to put it back.
    pub(in crate::app) fn unsent_found(&mut self, text: String) {
        let waiting = self.unsent.as_ref();
        if waiting.is_none_or(|waiting| text.contains(&waiting.text)) {
            self.unsent = Some(Waiting::new(text));
        }
    }

    /// Takes over what was kept when the agent has ended while its conversation was replaced: it goes into the box of the one that
    /// resumes its session, unless that box `was_cleared`, or submitted, meanwhile. Returns the order to drop it then.
    pub(in crate::app) fn unsent_outlives(
        &mut self,
        on_disk: OnDisk,
        was_cleared: bool,
    ) -> Option<Effect> {
        if was_cleared {
            return self.forget_draft(&on_disk);
        }
        if let OnDisk::Kept(text) = on_disk {
            self.unsent_found(text);
        }
        None
    }

    /// Returns the order to drop a draft that was kept for the next session: it stays in the old one, or was submitted there.
    pub(in crate::app) fn forget_draft(&self, on_disk: &OnDisk) -> Option<Effect> {
        // An earlier prompt has its place on disk again.
        let waiting = self.unsent.as_ref().map(|one| one.text.clone());
        (*on_disk != OnDisk::Nothing).then_some(Effect::KeepDraft(waiting))
    }

    /// Takes in that the prompt box holds this text. Returns whether it is the unsent prompt, which is put back with that.
    pub(in crate::app) fn box_filled(&mut self, text: &str) -> bool {
        let ours = |waiting: &mut Waiting| sendable(&waiting.text) == text;
        self.unsent.take_if(ours).is_some()
    }

    /// Takes in that no text got into the prompt box. Returns whether it was the unsent prompt; it is kept for the next session.
    pub(in crate::app) const fn box_not_filled(&mut self) -> bool {
        match &mut self.unsent {
            Some(waiting) => {
                waiting.failed = true;
                true
            }
            None => false,
        }
    }

    /// Takes in that a new process has another prompt box, into which the unsent prompt may go.
    pub(in crate::app) const fn box_renewed(&mut self) {
        if let Some(waiting) = &mut self.unsent {
            waiting.failed = false;
        }
    }
}
