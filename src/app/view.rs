//! What a person looks at: the message log, the search in the help page, the width of the panels. It decides nothing about the
//! agent, and imports no feature.

use std::collections::VecDeque;

use chrono::{DateTime, Utc};
use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};

use crate::{clock::At, keymap::Action, lineage::journal::Step, transcript::Tokens};

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

/// What a key in the help page asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HelpKey {
    /// Nothing more than the page itself shows.
    Stay,
    /// Scroll by so many rows.
    Scroll(i32),
    /// Leave the page.
    Close,
    /// Leave the page and do this.
    Run(Action),
}

impl HelpSearch {
    /// The actions that the query finds: all its words, in the description, the name or a key.
    #[must_use]
    pub fn found(&self, keys: &crate::keymap::Keymap) -> Vec<Action> {
        let found = keys.bindings().iter().filter(|binding| {
            let labels = binding.triggers.iter().map(|one| keys.label(*one));
            let labels: Vec<String> = labels.collect();
            let action = binding.action;
            self.finds(&[action.description(), action.name(), &labels.join(" ")])
        });
        found.map(|binding| binding.action).collect()
    }

    /// Whether every word of the query is in one of these texts.
    #[must_use]
    pub fn finds(&self, texts: &[&str]) -> bool {
        let texts: Vec<String> = texts.iter().map(|text| text.to_lowercase()).collect();
        let mut words = self.query.split_whitespace().map(str::to_lowercase);
        words.all(|word| texts.iter().any(|text| text.contains(&word)))
    }

    /// The action that Enter runs: the selected one, else the first one found by what was typed.
    #[must_use]
    pub fn chosen(&self, keys: &crate::keymap::Keymap) -> Option<Action> {
        let at = match self.selected {
            Some(at) => at,
            None if self.query.trim().is_empty() => return None,
            None => 0,
        };
        self.found(keys).get(at).copied()
    }

    /// A key in the page. Every letter is searched for, so none of them can reach the agent.
    pub fn key(&mut self, key: KeyEvent, keys: &crate::keymap::Keymap) -> HelpKey {
        let count = self.found(keys).len();
        match key.code {
            KeyCode::Esc if self.query.is_empty() => return HelpKey::Close,
            KeyCode::Esc => *self = Self::default(),
            KeyCode::Enter => {
                return self.chosen(keys).map_or(HelpKey::Stay, HelpKey::Run);
            }
            KeyCode::Backspace => {
                self.query.pop();
                self.selected = None;
            }
            KeyCode::Down => {
                let next = self.selected.map_or(0, |at| at + 1);
                self.selected = (count > 0).then(|| next.min(count - 1));
            }
            KeyCode::Up => self.selected = self.selected.map(|at| at.saturating_sub(1)),
            KeyCode::PageDown => return HelpKey::Scroll(15),
            KeyCode::PageUp => return HelpKey::Scroll(-15),
            KeyCode::Char(c) if !key.modifiers.contains(KeyModifiers::CONTROL) => {
                if self.query.chars().count() < 60 {
                    self.query.push(c);
                }
                self.selected = None;
            }
            _ => {}
        }
        HelpKey::Stay
    }
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
    use crate::keymap::Keymap;

    fn typed(search: &mut HelpSearch, code: KeyCode) -> HelpKey {
        search.key(KeyEvent::from(code), &Keymap::default())
    }

    #[test]
    fn what_is_typed_into_help_is_searched_for_and_enter_runs_it() {
        let mut search = HelpSearch::default();
        assert_eq!(typed(&mut search, KeyCode::Enter), HelpKey::Stay);
        for c in "undo".chars() {
            assert_eq!(typed(&mut search, KeyCode::Char(c)), HelpKey::Stay);
        }
        assert_eq!(search.found(&Keymap::default()), [Action::Undo]);
        let run = typed(&mut search, KeyCode::Enter);
        assert_eq!(run, HelpKey::Run(Action::Undo));
        // The first Esc gives the whole page back, the second one leaves it.
        assert_eq!(typed(&mut search, KeyCode::Esc), HelpKey::Stay);
        assert_eq!(typed(&mut search, KeyCode::Esc), HelpKey::Close);
    }

    #[test]
    fn an_action_is_found_by_its_key() {
        let search = HelpSearch {
            query: "f5".to_owned(),
            selected: None,
        };
        assert_eq!(search.chosen(&Keymap::default()), Some(Action::Reboot));
    }

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
