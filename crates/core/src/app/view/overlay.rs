//! The keys of what lies over everything.

use std::mem::discriminant;

use crossterm::event::{KeyCode, KeyEvent};

use pitstop_base::keymap::{Action, Keymap};

use crate::app::{
    consequences::{Consequences, KeyOutcome, Request},
    model::{
        Overlay,
        view::{View, rows_of, scroll_by},
    },
    view::help::HelpKey,
};

impl View {
    /// Opens an overlay, or closes it if it is open.
    pub(in crate::app) fn toggle_overlay(&mut self, overlay: Overlay) {
        let is_it = |open: Overlay| discriminant(&open) == discriminant(&overlay);
        self.overlay = (!self.overlay.is_some_and(is_it)).then_some(overlay);
    }

    /// Handles a key while this overlay is open. The review has keys of its own, which decide about a reboot.
    pub(in crate::app) fn overlay_key(
        &mut self,
        overlay: Overlay,
        key: KeyEvent,
        keys: &Keymap,
    ) -> KeyOutcome {
        let (nothing, mut request) = (Consequences::default(), None);
        self.overlay = match (overlay, key.code) {
            (Overlay::Replay { .. }, _) => return (self.replay_key(key).into(), None),
            (Overlay::Help { .. }, _) => return (nothing, self.help_key(key, keys)),
            (Overlay::Quit, KeyCode::Enter | KeyCode::Char('y' | 'q'))
            | (Overlay::Exited, KeyCode::Char('q')) => {
                return (nothing, Some(Request::Quit));
            }
            (Overlay::Exited, KeyCode::Enter | KeyCode::Char('r')) => {
                return (nothing, Some(Request::Restart));
            }
            (Overlay::Quit, code) => {
                request = (code == KeyCode::Char('d')).then_some(Request::Act(Action::Detach));
                None
            }
            (Overlay::Chart, KeyCode::Char('c')) => Some(Overlay::Contents { scroll: 0 }),
            (Overlay::Contents { .. }, KeyCode::Char('c' | 'g')) => Some(Overlay::Chart),
            (_, KeyCode::Esc)
            | (Overlay::Chart, KeyCode::Char('g' | 'q'))
            | (Overlay::Messages { .. } | Overlay::Contents { .. }, KeyCode::Char('q')) => None,
            (Overlay::Messages { .. } | Overlay::Contents { .. }, _) => {
                self.scroll_overlay(rows_of(key).unwrap_or(0));
                return (nothing, None);
            }
            (Overlay::Chart | Overlay::Exited | Overlay::Review, _) => return (nothing, None),
        };
        (nothing, request)
    }

    /// Handles a key in the help page: what is typed is searched for, and none of it reaches the agent.
    fn help_key(&mut self, key: KeyEvent, keys: &Keymap) -> Option<Request> {
        let key = self.help.key(key, keys);
        match key {
            HelpKey::Stay => self.overlay = Some(Overlay::Help { scroll: 0 }),
            HelpKey::Scroll(rows) => self.scroll_overlay(rows),
            HelpKey::Close | HelpKey::Run(_) => self.overlay = None,
        }
        match key {
            HelpKey::Run(action) => Some(Request::Act(action)),
            _ => None,
        }
    }

    /// Scrolls what lies over everything by so many lines.
    pub(in crate::app) fn scroll_overlay(&mut self, lines: i32) {
        match &mut self.overlay {
            Some(
                Overlay::Help { scroll }
                | Overlay::Messages { scroll }
                | Overlay::Contents { scroll },
            ) => scroll_by(scroll, &self.bounds, lines),
            Some(Overlay::Replay { .. }) => self.scroll_replay(lines),
            _ => self.reading.scroll(lines),
        }
    }
}
