//! What a person looks at: the message log, the search in the help page, the width of the panels.

use std::collections::VecDeque;

use chrono::{DateTime, Utc};
use crossterm::event::MouseButton;

use crate::{
    clock::At,
    lineage::{IterationId, journal::Step},
    pane::replay::Replay,
    transcript::Tokens,
};

use super::{
    copy::{CopyMode, Press, SearchLine},
    external::External,
    history::HistoryPanel,
    reading::Reading,
    tour::Tour,
};

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
    /// When it came out.
    pub done_at: At,
    /// Since when it is shown, or has its figure.
    pub at: At,
    /// Whether the new session's figure is still to come.
    pub awaits_figure: bool,
}

impl Card {
    /// Whether the reboot was given up.
    #[must_use]
    pub const fn is_failure(&self) -> bool {
        matches!(self.outcome, Outcome::Failed { .. })
    }
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

/// What has the keys.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Focus {
    /// The hosted program.
    #[default]
    Pane,
    /// The scratchpad panel.
    Scratchpad,
    /// The handoff panel.
    Handoff,
    /// The history panel.
    History,
}

impl Focus {
    /// In the order in which the focus moves.
    pub const ALL: [Self; 4] = [Self::Pane, Self::Scratchpad, Self::Handoff, Self::History];
}

/// What lies over everything and has the keys until it is closed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Overlay {
    /// Every key in force.
    Help {
        /// The first line shown.
        scroll: u16,
    },
    /// The handoff before it is sent. Only a person at the keyboard opens it: its letters decide, and must not be those of a
    /// prompt that is being typed.
    Review,
    /// The recording of an iteration.
    Replay {
        /// Which.
        iteration: IterationId,
    },
    /// What was said in the footer, with times.
    Messages {
        /// How many rows are scrolled.
        scroll: u16,
    },
    /// How the context has filled, turn by turn.
    Chart,
    /// Whether to quit while a turn runs.
    Quit,
    /// The agent's process is gone: what now?
    Exited,
}

/// A line in the footer for a while.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Notice {
    /// What it says.
    pub text: String,
    /// Whether something went wrong.
    pub bad: bool,
    /// Since when it is shown.
    pub at: At,
}

/// What a person looks at.
#[derive(Debug, Default)]
pub struct View {
    /// The history panel.
    pub history: HistoryPanel,
    /// What has the keys.
    pub focus: Focus,
    /// Whether the pane has the whole screen.
    pub zoomed: bool,
    /// What lies over everything.
    pub overlay: Option<Overlay>,
    /// Whether the prefix was just pressed.
    pub prefixed: bool,
    /// Copy mode, while the pane is read and not lived in.
    pub copy: Option<CopyMode>,
    /// The recording that is played.
    pub replay: Option<Replay>,
    /// The epoch of the timer that plays it.
    pub replay_epoch: u64,
    /// The last press of the mouse on the pane's text.
    pub press: Option<Press>,
    /// Where the link goes that the pointer stands on, if it does: a target that is passed on.
    pub hovered: Option<String>,
    /// The guided tour, in the demo.
    pub tour: Option<Tour>,
    /// The host terminal's size, in cells: columns, rows.
    pub host: (u16, u16),
    /// Whether the host terminal has the focus, once it has said so.
    pub host_focused: Option<bool>,
    /// The document that is in `$EDITOR`, while that has the host terminal.
    pub external: Option<External>,
    /// A paste that is coming in for one of our editors.
    pub pasting: Vec<u8>,
    /// Lines for the footer, newest last.
    pub notices: VecDeque<Notice>,
    /// The message log, newest last.
    pub log: VecDeque<Logged>,
    /// The search in the help page.
    pub help: HelpSearch,
    /// How the handoff is read in the review.
    pub reading: Reading,
    /// The width of the panels, where a person has changed it.
    pub panel_width: Option<u16>,
    /// Who has the mouse while a button is down.
    pub grip: Option<MouseGrip>,
    /// What the last reboot has brought, while that is shown.
    pub card: Option<Card>,
}

/// Who has the mouse from the press of a button to its release, wherever the pointer goes meanwhile and whatever opens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MouseGrip {
    /// The hosted program, which has seen this button's press.
    Agent(MouseButton),
    /// The hosted program, with a button beyond the third.
    AgentOther,
    /// Copy mode, which marks text.
    Copy,
    /// The border between pane and panels.
    Border,
    /// A press that did all that it does at once, such as to focus a panel.
    Done,
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

    /// The search that is typed in copy mode, if one is.
    #[must_use]
    pub fn copy_search(&self) -> Option<&SearchLine> {
        self.copy.as_ref()?.search.as_ref()
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
