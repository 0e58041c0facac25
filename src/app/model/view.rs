//! What a person looks at: the message log, the search in the help page, the width of the panels.

use std::collections::VecDeque;

use chrono::{DateTime, Utc};

use crate::{clock::At, lineage::journal::Step, transcript::Tokens};

use super::reading::Reading;

/// How many messages are kept: a day of work.
const LOGGED: usize = 500;

/// The narrowest and the widest that the panels can be made, in cells.
const PANELS: (u16, u16) = (30, 100);

/// What was said in the footer or on a banner, to be read again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Logged {
    /// What was said.
    pub text: String,
    /// Whether something went wrong.
    pub bad: bool,
    /// When.
    pub at: DateTime<Utc>,
}

/// The search in the help page.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HelpSearch {
    /// What was typed.
    pub query: String,
    /// Which of the actions found is selected, once a key has chosen one.
    pub selected: Option<usize>,
}

/// What a reboot has brought, for the card that is shown in the pane for some seconds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Card {
    /// How it came out.
    pub outcome: Outcome,
    /// Since when it is shown.
    pub at: At,
}

/// How a reboot came out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// The new session has taken over.
    Done {
        /// How long it took from the approval, in milliseconds.
        took_ms: u64,
        /// Tokens in use before.
        before: Option<Tokens>,
        /// Tokens that the new session begins with, by estimate.
        after: Option<Tokens>,
        /// Items of the handoff; none were carried over by a trim.
        items: Option<usize>,
        /// Whether the handoff, or the trimmed session, was seen to arrive.
        proven: bool,
    },
    /// It was given up, and the old session goes on.
    Failed {
        /// In which step.
        step: Step,
        /// Why.
        why: String,
        /// Whether the old session had to be resumed.
        resumed: bool,
    },
}

/// What a person looks at.
#[derive(Clone, Debug, Default)]
pub struct View {
    /// The message log, newest last.
    pub log: VecDeque<Logged>,
    /// The search in the help page.
    pub help: HelpSearch,
    /// How the handoff is read in the review.
    pub reading: Reading,
    /// The width of the panels, where a person has changed it.
    pub panel_width: Option<u16>,
    /// Whether the border between pane and panels is being dragged.
    pub dragging: bool,
    /// What the last reboot has brought, while that is shown.
    pub card: Option<Card>,
}

impl View {
    /// Keeps a message for the log. The same words again only renew the last message.
    pub fn log(&mut self, text: &str, bad: bool, at: DateTime<Utc>) {
        if let Some(last) = self.log.back_mut().filter(|last| last.text == text) {
            last.at = at;
            return;
        }
        if self.log.len() == LOGGED {
            self.log.pop_front();
        }
        let text = text.to_owned();
        self.log.push_back(Logged { text, bad, at });
    }

    /// Makes the panels this wide, within reason.
    pub fn set_panel_width(&mut self, cells: i32) {
        let (least, most) = (i32::from(PANELS.0), i32::from(PANELS.1));
        self.panel_width = u16::try_from(cells.clamp(least, most)).ok();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_log_keeps_the_newest_messages_and_each_once_in_a_row() {
        let mut view = View::default();
        let at = DateTime::UNIX_EPOCH;
        for number in 0..LOGGED + 3 {
            view.log(&number.to_string(), false, at);
            view.log(&number.to_string(), false, at);
        }
        assert_eq!(view.log.len(), LOGGED);
        assert_eq!(view.log.front().map(|one| &*one.text), Some("3"));
    }
}
