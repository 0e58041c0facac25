//! The help page: its search, and the requests of its keys.

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};

use pitstop_base::keymap::{Action, Keymap};

use crate::app::model::view::HelpSearch;

/// The request of a key in the help page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HelpKey {
    /// The page shows everything itself, and nothing more is done.
    Stay,
    /// Scroll by so many rows.
    Scroll(i32),
    /// Leave the page.
    Close,
    /// Leave the page and do this.
    Run(Action),
}

impl HelpSearch {
    /// Returns the actions that the query finds: all its words, in the description, the name or a key.
    pub fn found(&self, keys: &Keymap) -> Vec<Action> {
        let found = keys.bindings().iter().filter(|binding| {
            let labels = binding.triggers.iter().map(|one| keys.label(*one));
            let labels: Vec<String> = labels.collect();
            let action = binding.action;
            self.finds(&[action.description(), action.name(), &labels.join(" ")])
        });
        found.map(|binding| binding.action).collect()
    }

    /// Reports whether a word of these texts begins with each word of the query: `un` finds undo, and not what is announced.
    pub fn finds(&self, texts: &[&str]) -> bool {
        let texts: Vec<String> = texts.iter().map(|text| text.to_lowercase()).collect();
        // Claude Code's own commands begin with a slash, and so does what is typed here out of habit.
        let query = self.query.trim_start();
        let query = query
            .strip_prefix('/')
            .filter(|rest| !rest.is_empty())
            .unwrap_or(query);
        let mut words = query.split_whitespace().map(str::to_lowercase);
        let begins = |text: &str, word: &str| {
            let mut found = text.match_indices(word);
            found.any(|(at, _)| !text[..at].ends_with(char::is_alphanumeric))
        };
        words.all(|word| texts.iter().any(|text| begins(text, &word)))
    }

    /// Returns the action that Enter runs: the selected one, or otherwise the first one found by what was typed.
    pub fn chosen(&self, keys: &Keymap) -> Option<Action> {
        let at = match self.selected {
            Some(at) => at,
            None if self.query.trim().is_empty() => return None,
            None => 0,
        };
        self.found(keys).get(at).copied()
    }

    /// Handles a key in the page. Every letter is searched for, so none of them can reach the agent.
    pub fn key(&mut self, key: KeyEvent, keys: &Keymap) -> HelpKey {
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

#[cfg(test)]
mod tests {
    use super::*;

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
    fn an_action_is_found_by_how_its_words_begin() {
        let search = HelpSearch {
            query: "un".to_owned(),
            selected: None,
        };
        assert_eq!(search.found(&Keymap::default()), [Action::Undo]);
    }
}
