//! The state of the user interface: the message log, the search in the help page, the width of the panels.

use std::{collections::VecDeque, time::Duration};

use chrono::{DateTime, Utc};
use crossterm::event::{KeyCode, KeyEvent, MouseButton};

use crate::{
    app::{effect::Effect, event::TimerId},
    lineage::{IterationId, journal::Step},
};
use pitstop_base::{clock::At, keymap::Direction, recent};
use pitstop_handoff::scratchpad::MAX_BYTES;
use pitstop_terminal::{PaneSize, input::HostInput, pane::replay::Replay};
use pitstop_transcript::Tokens;

mod replay;

use super::{
    copy::CopyReader,
    external::External,
    history::HistoryPanel,
    reading::{Bounds, Reading},
    tour::Tour,
};

/// The number of messages that are kept: a day of work.
const LOGGED: usize = 500;

/// The time that a line stays in the footer.
pub(in crate::app) const NOTICE_TIME: Duration = Duration::from_secs(8);

/// The number of lines that the footer keeps.
const NOTICED: usize = 50;

/// The least and the greatest width of the panels, in cells.
const PANELS: (u16, u16) = (36, 100);

/// A message of the footer or of a banner, kept to be read again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Logged {
    /// The text of the message.
    pub text: String,
    /// True if something went wrong.
    pub bad: bool,
    /// The time of the message.
    pub at: DateTime<Utc>,
}

/// The search in the help page.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HelpSearch {
    /// The text that was typed.
    pub query: String,
    /// The index of the selected action among those found, once a key has chosen one.
    pub selected: Option<usize>,
}

/// The result of a reboot, for the card that is shown in the pane for some seconds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Card {
    /// The outcome of the reboot.
    pub outcome: Outcome,
    /// The time at which the reboot ended.
    pub done_at: At,
    /// The time since which the card is shown, or has its figure.
    pub at: At,
    /// True if the new session's figure has yet to come.
    pub awaits_figure: bool,
}

/// The time that the card is shown.
const CARD: Duration = Duration::from_secs(10);

/// The time that the card waits for the new session's figure, which comes with the first answer of the model.
const AWAITED: Duration = Duration::from_secs(30);

impl Card {
    const fn shown_for(&self) -> Duration {
        if self.awaits_figure { AWAITED } else { CARD }
    }

    /// Reports whether the reboot was given up.
    pub const fn is_failure(&self) -> bool {
        matches!(self.outcome, Outcome::Failed { .. })
    }
}

/// The outcome of a reboot, for its card.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// The new session has taken over.
    Done {
        /// The duration of the reboot since its approval, in milliseconds.
        took_ms: u64,
        /// The number of tokens in use before.
        before: Option<Tokens>,
        /// The estimated number of tokens that the new session begins with.
        after: Option<Tokens>,
        /// The number of items in the handoff; none after a trim, which carries over none.
        items: Option<usize>,
        /// True if the handoff, or the trimmed session, was seen to arrive.
        proven: bool,
    },
    /// It was given up, and the old session goes on.
    Failed {
        /// The step in which it failed.
        step: Step,
        /// The reason for the failure.
        why: String,
        /// True if the old session had to be resumed.
        resumed: bool,
    },
}

/// The part of the screen that has the keys.
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
    /// All parts, in the order in which the focus moves.
    pub const ALL: [Self; 4] = [Self::Pane, Self::Scratchpad, Self::Handoff, Self::History];

    /// Returns the part after this one, and the first one after the last.
    pub(in crate::app) const fn next(self) -> Self {
        Self::ALL[(self as usize + 1) % Self::ALL.len()]
    }

    /// Returns this part, or the hosted program if it has the keys already.
    pub(in crate::app) fn or_back(self, has_keys: Self) -> Self {
        if self == has_keys { Self::Pane } else { self }
    }

    /// Returns the part that lies in this direction: the panels are one below the other, at the right of the pane.
    pub(in crate::app) fn toward(self, direction: Direction) -> Self {
        let (at, last) = (self as usize, Self::ALL.len() - 1);
        match direction {
            Direction::Left => Self::Pane,
            Direction::Right if self == Self::Pane => Self::ALL[1],
            Direction::Down if self != Self::Pane => Self::ALL[(at + 1).min(last)],
            Direction::Up if self != Self::Pane => Self::ALL[(at - 1).max(1)],
            _ => self,
        }
    }
}

/// An overlay, which lies over everything and has the keys until it is closed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Overlay {
    /// The page of all keys in force.
    Help {
        /// The first line shown.
        scroll: u16,
    },
    /// The handoff before it is sent. Only a person at the keyboard opens it: its letters decide, and must not be those of a
    /// prompt that is being typed.
    Review,
    /// The recording of an iteration.
    Replay {
        /// The iteration that was recorded.
        iteration: IterationId,
    },
    /// The messages of the footer, with times.
    Messages {
        /// The number of rows that are scrolled.
        scroll: u16,
    },
    /// The chart of how the context has filled, turn by turn.
    Chart,
    /// What the context window holds, by the client's own categories.
    Contents {
        /// The number of rows that are scrolled.
        scroll: u16,
    },
    /// The question whether to quit while a turn runs.
    Quit,
    /// The question what to do after the agent's process has ended.
    Exited,
}

/// A line that the footer shows for a while.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Notice {
    /// The text of the line.
    pub text: String,
    /// True if something went wrong.
    pub bad: bool,
    /// The time since which it is shown.
    pub at: At,
}

/// The state of the user interface.
#[derive(Debug, Default)]
pub struct View {
    /// The history panel.
    pub history: HistoryPanel,
    /// The part of the screen that has the keys.
    pub focus: Focus,
    /// The title that the host terminals' windows were given last.
    pub(in crate::app) host_title: String,
    /// The size that the hosted program was given last.
    pub(in crate::app) pane_size: Option<PaneSize>,
    /// True if the pane has the whole screen.
    pub zoomed: bool,
    /// The overlay that lies over everything, if one is open.
    pub overlay: Option<Overlay>,
    /// The ends of what the overlay can be scrolled by.
    pub bounds: Bounds,
    /// True if the prefix was just pressed.
    pub prefixed: bool,
    /// True if the keys that can follow the prefix are shown: none has come for a moment.
    pub shows_keys: bool,
    /// The reader of the pane's text.
    pub copy: CopyReader,
    /// The recording that is being played.
    pub replay: Option<Replay>,
    /// The epoch of the timer that plays it.
    replay_epoch: u64,
    /// The target of the link under the pointer, if there is one that is passed on.
    pub hovered: Option<String>,
    /// The guided tour, in the demo.
    pub tour: Option<Tour>,
    /// The host terminal's size, in cells: columns, rows.
    pub host: (u16, u16),
    /// The host terminal's focus: true if it has the focus, none before it has reported.
    pub host_focused: Option<bool>,
    /// The document that is in `$EDITOR`, while that has the host terminal.
    pub external: Option<External>,
    /// The bytes of a paste that is coming in for one of the supervisor's editors.
    pasting: Vec<u8>,
    /// The lines for the footer, newest last.
    pub notices: VecDeque<Notice>,
    /// The message log, newest last.
    pub log: VecDeque<Logged>,
    /// The search in the help page.
    pub help: HelpSearch,
    /// The reader's position in the handoff in the review.
    pub reading: Reading,
    /// The width of the panels in cells, if a person has changed it.
    pub panel_width: Option<u16>,
    /// The holder of the mouse while a button is down.
    pub grip: Option<MouseGrip>,
    /// The result of the last reboot, while it is shown.
    pub card: Option<Card>,
}

/// The holder of the mouse from the press of a button to its release, wherever the pointer goes meanwhile and whatever opens.
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

/// Moves a text by so many rows, from what is shown of it: the views clamp it to their text.
pub(in crate::app) fn scroll_by(scroll: &mut u16, bounds: &Bounds, rows: i32) {
    let to = bounds.nearest((*scroll).into()).saturating_add(rows);
    *scroll = u16::try_from(to.clamp(0, u16::MAX.into())).unwrap_or(0);
}

/// Returns the rows by which a reading key moves a text, or `None` if it is no reading key.
pub(in crate::app) const fn rows_of(key: KeyEvent) -> Option<i32> {
    Some(match key.code {
        KeyCode::Down | KeyCode::Char('j') => 1,
        KeyCode::Up | KeyCode::Char('k') => -1,
        KeyCode::PageDown | KeyCode::Char(' ') => 15,
        KeyCode::PageUp => -15,
        KeyCode::Home | KeyCode::Char('g') => i32::MIN,
        KeyCode::End | KeyCode::Char('G') => i32::MAX,
        _ => return None,
    })
}

impl View {
    /// Goes to this step of the tour; `None` where there is no tour.
    pub(in crate::app) const fn go_to_step(&mut self, next: Option<Tour>) {
        self.tour = next;
    }

    /// Creates the user interface on a host terminal of this size, in cells: columns, rows.
    pub(super) fn new(host: (u16, u16)) -> Self {
        Self {
            host,
            ..Self::default()
        }
    }

    /// Reports whether what is typed goes to the hosted program.
    pub fn has_pane(&self) -> bool {
        self.focus == Focus::Pane && self.overlay.is_none() && !self.copy.is_on()
    }

    /// Takes in a piece of a paste for one of the supervisor's editors. Returns the whole text with the last piece.
    pub(in crate::app) fn pasted(&mut self, piece: HostInput) -> Option<String> {
        match piece {
            HostInput::PasteStart => self.pasting.clear(),
            HostInput::PasteChunk(bytes) => {
                let room = MAX_BYTES.saturating_sub(self.pasting.len());
                let taken = bytes.len().min(room);
                self.pasting.extend_from_slice(&bytes[..taken]);
            }
            HostInput::PasteEnd => {
                let bytes = std::mem::take(&mut self.pasting);
                let text = String::from_utf8_lossy(&bytes);
                return Some(text.replace("\r\n", "\n").replace('\r', "\n"));
            }
            _ => {}
        }
        None
    }

    /// Gives the pane the whole screen: where there is no terminal, no panel is seen.
    pub(in crate::app) const fn hide_panels(&mut self) {
        self.zoomed = true;
    }

    /// Takes in the target of the link that the pointer is on now, if it is on one.
    pub(in crate::app) fn link_hovered(&mut self, target: Option<String>) {
        self.hovered = target;
    }

    /// Shows the keys that can follow the prefix, if none has come for a moment.
    pub(in crate::app) const fn hesitated(&mut self) {
        self.shows_keys = self.prefixed;
    }

    /// Opens the review of this message, at its first section.
    pub(in crate::app) fn open_review(&mut self, reading: Reading) {
        self.overlay = Some(Overlay::Review);
        self.reading = reading;
    }

    /// Takes the card down, because what it offers was chosen.
    pub(in crate::app) fn answer_card(&mut self) {
        self.card = None;
    }

    /// Lays this over everything, in place of what lies there.
    pub(in crate::app) const fn open(&mut self, overlay: Overlay) {
        self.overlay = Some(overlay);
    }

    /// Closes this overlay. Any other that lies there stays.
    pub(in crate::app) fn close(&mut self, overlay: Overlay) {
        self.overlay.take_if(|one| *one == overlay);
    }

    /// Closes the overlay, whichever it is.
    pub(in crate::app) const fn close_any(&mut self) {
        self.overlay = None;
    }

    /// Shows a line in the footer, and adds it to the log. A repeat of the same text only renews it.
    pub(in crate::app) fn notify(&mut self, text: String, bad: bool, at: At) {
        self.log(&text, bad, at.wall);
        self.withdraw_notice(&text);
        recent::push(&mut self.notices, Notice { text, bad, at }, NOTICED);
    }

    /// Takes a line of the footer down that is no longer true.
    pub(in crate::app) fn withdraw_notice(&mut self, text: &str) {
        self.notices.retain(|notice| notice.text != text);
    }

    /// Takes the lines of the footer down whose time is over; returns the timer for the next one. No one has seen them behind an
    /// editor: once it is left they stay for their time.
    pub(in crate::app) fn expire_notices(&mut self, now: At) -> Option<Effect> {
        if self.external.is_some() {
            return None;
        }
        self.notices
            .retain(|notice| now.since(notice.at) < NOTICE_TIME);
        self.notice_timer(now)
    }

    /// Returns the timer for the line of the footer that goes next.
    pub(in crate::app) fn notice_timer(&self, now: At) -> Option<Effect> {
        let notice = self.notices.front()?;
        let left = NOTICE_TIME.saturating_sub(now.since(notice.at));
        let left = left + Duration::from_millis(10);
        Some(Effect::SetTimer(TimerId::Notice, left))
    }

    /// Returns the order to give the hosted program this size, if it has another.
    pub(in crate::app) fn fit_pane(&mut self, size: PaneSize) -> Option<Effect> {
        (self.pane_size.replace(size) != Some(size)).then_some(Effect::ResizePane(size))
    }

    /// Returns the order to name the host terminal's window so, if its title has changed.
    pub(in crate::app) fn retitle(&mut self, title: String) -> Option<Effect> {
        if self.host_title == title {
            return None;
        }
        self.host_title.clone_from(&title);
        Some(Effect::HostTitle(title))
    }

    /// Shows what a reboot has brought. Returns the timer that takes it down.
    pub(in crate::app) fn show_card(
        &mut self,
        outcome: Outcome,
        awaits_figure: bool,
        now: At,
    ) -> Effect {
        let card = self.card.insert(Card {
            outcome,
            done_at: now,
            at: now,
            awaits_figure,
        });
        Effect::SetTimer(TimerId::Moment, card.shown_for())
    }

    /// Notes that the new session's figure has come: a card that waits for it shows it for as long as any other. Returns the timer
    /// that takes it down.
    pub(in crate::app) fn figure_came(&mut self, now: At) -> Option<Effect> {
        let card = self.card.as_mut().filter(|card| card.awaits_figure)?;
        (card.awaits_figure, card.at) = (false, now);
        Some(Effect::SetTimer(TimerId::Moment, card.shown_for()))
    }

    /// Takes the card down if its time is over. Returns the time that is left to it otherwise.
    pub(in crate::app) fn expire_card(&mut self, now: At) -> Option<Duration> {
        let left = |card: &Card| card.shown_for().saturating_sub(now.since(card.at));
        self.card.take_if(|card| left(card).is_zero());
        self.card.as_ref().map(left)
    }

    /// Adds a message to the log. A repeat of the last message only renews its time.
    pub fn log(&mut self, text: &str, bad: bool, at: DateTime<Utc>) {
        if let Some(last) = self.log.back_mut().filter(|last| last.text == text) {
            last.at = at;
            return;
        }
        let text = text.to_owned();
        recent::push(&mut self.log, Logged { text, bad, at }, LOGGED);
    }

    /// Leaves the screen of the agent before: copy mode has no still image of the new one, and the rest of a mouse press is not for
    /// the next agent.
    pub(in crate::app) fn leave_screen(&mut self) {
        self.copy = CopyReader::default();
        self.grip = self.grip.map(|_| MouseGrip::Done);
    }

    /// Sets the width of the panels, within their limits.
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
