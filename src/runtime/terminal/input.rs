//! What comes in from a terminal: keys, the mouse and its answers.

use std::time::Instant;

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers, MouseButton, MouseEventKind};

use crate::runtime::{
    Shell,
    host::{HostKeys, TerminalId},
};
use crate::ui::theme::scheme_of;
use pitstop_base::keymap::on_latin_keyboard;
use pitstop_core::app::{Event, event::HostEvent};
use pitstop_terminal::{
    ColourScheme, Rgb,
    input::{HostColour, HostInput, HostReply},
};

impl Shell {
    /// Handles bytes from a host terminal.
    pub(in crate::runtime) fn typed(&mut self, id: TerminalId, bytes: &[u8]) {
        let Some(terminal) = self.terminals.find(id) else {
            return;
        };
        let inputs = terminal.decoder.feed(bytes);
        let wait = terminal.decoder.flush_after();
        terminal.escape_due = wait.map(|wait| Instant::now() + wait);
        for input in inputs {
            // What was typed ahead was meant for the editor, not for the agent.
            let editing = &self.terminals.editing;
            if editing.as_ref().is_none_or(|one| one.terminal != id) {
                self.input(id, input);
            }
        }
    }

    /// Returns the keys of the hint that was clicked, if one was.
    fn clicked(&self, input: &HostInput) -> Vec<KeyEvent> {
        let (HostInput::Mouse { event, .. }, Some(active)) = (input, self.terminals.active())
        else {
            return Vec::new();
        };
        if event.kind != MouseEventKind::Down(MouseButton::Left) || !event.modifiers.is_empty() {
            return Vec::new();
        }
        let (model, screen) = (self.core.view(), self.pane.seen());
        crate::ui::hint::keys_at(model, screen, &active.theme, event.column, event.row)
    }

    pub(in crate::runtime) fn input(&mut self, id: TerminalId, input: HostInput) {
        match &input {
            HostInput::Reply { reply, .. } => return self.host_reply(id, reply),
            _ if self.terminals.watches(id) => return self.watched(id, &input),
            HostInput::Focus(focused) if !self.terminals.focus(id, *focused) => return,
            HostInput::Focus(_) => {}
            // The pointer may cross a terminal that is not in use.
            HostInput::Mouse { event, .. } if event.kind == MouseEventKind::Moved => {
                if self.terminals.active().is_none_or(|active| active.id != id) {
                    return;
                }
            }
            // What lies under the pointer once the screen fits is not what was clicked on.
            HostInput::Mouse { .. } | HostInput::OtherButton { .. } => {
                let before = self.core.view().view.host;
                self.activate(id);
                if self.core.view().view.host != before {
                    return;
                }
            }
            _ => self.activate(id),
        }
        if self.points(&input) {
            return;
        }
        // A click on a key hint is a press of that key.
        let keys = self.clicked(&input);
        if keys.is_empty() {
            self.post(Event::Host(HostEvent::Input(input)));
        }
        for event in keys {
            let raw = Vec::new();
            let key = HostInput::Key { event, raw };
            self.post(Event::Host(HostEvent::Input(key)));
        }
    }

    /// Handles an input in a terminal that only watches: `q`, Esc and Ctrl-C detach it.
    fn watched(&mut self, id: TerminalId, input: &HostInput) {
        let HostInput::Key { event, .. } = input else {
            return;
        };
        let event = on_latin_keyboard(*event);
        let interrupts =
            event.code == KeyCode::Char('c') && event.modifiers == KeyModifiers::CONTROL;
        if interrupts || matches!(event.code, KeyCode::Char('q') | KeyCode::Esc) {
            self.detach(id, "it only watched");
        }
    }

    /// Makes a terminal the one whose size and colours count, because something was typed in it.
    fn activate(&mut self, id: TerminalId) {
        let list = &mut self.terminals.list;
        let Some(at) = list.iter().position(|terminal| terminal.id == id) else {
            return;
        };
        if at + 1 == list.len() {
            return;
        }
        list[at..].rotate_left(1);
        self.became_active();
    }

    /// Handles a host terminal's answer to one of our queries.
    fn host_reply(&mut self, id: TerminalId, reply: &HostReply) {
        let Some(terminal) = self.terminals.find(id) else {
            return;
        };
        match reply {
            HostReply::ModeReport { mode: 2026, value } => {
                terminal.synchronizes = matches!(value, 1 | 2);
            }
            HostReply::KittyFlags(_) | HostReply::DeviceAttributes(_) => {
                let kitty = matches!(reply, HostReply::KittyFlags(_));
                let keys = terminal.keys.learned(kitty);
                if keys != std::mem::replace(&mut terminal.keys, keys) {
                    terminal.output.raw(&keys.request());
                    terminal.frames.dirty = true;
                }
            }
            HostReply::Colour { which, rgb } => self.learn_colour(id, *which, *rgb),
            HostReply::ColourScheme(scheme) => self.set_scheme(id, *scheme),
            _ => {}
        }
    }

    /// Takes a colour of a host terminal: the child's queries are answered with it, and our theme follows the background.
    fn learn_colour(&mut self, id: TerminalId, which: HostColour, rgb: Rgb) {
        let Some(terminal) = self.terminals.find(id) else {
            return;
        };
        let palette = &mut terminal.palette;
        match which {
            HostColour::Foreground => palette.foreground = Some(rgb),
            HostColour::Background => palette.background = Some(rgb),
            HostColour::Cursor => palette.cursor = Some(rgb),
            HostColour::Palette(index) => {
                if let Some(slot) = palette.colours.get_mut(usize::from(index)) {
                    *slot = Some(rgb);
                }
            }
        }
        let palette = *palette;
        if self.is_active(id) {
            self.pane.screen.set_palette(palette);
        }
        if which == HostColour::Background {
            self.set_scheme(id, scheme_of(Some(rgb), ""));
        }
    }

    fn is_active(&self, id: TerminalId) -> bool {
        self.terminals
            .active()
            .is_some_and(|active| active.id == id)
    }

    fn set_scheme(&mut self, id: TerminalId, scheme: ColourScheme) {
        let name = self.core.view().config.ui.theme;
        if let Some(terminal) = self.terminals.find(id) {
            terminal.scheme = Some(scheme);
            terminal.choose_theme(name);
        }
        if self.is_active(id) {
            self.pane.screen.set_colour_scheme(scheme);
        }
    }

    /// Reports whether the host terminal was asked to distinguish keys.
    pub(in crate::runtime) fn asked_for_keys(&self) -> bool {
        let active = self.terminals.active();
        active.is_some_and(|active| active.keys != HostKeys::Alike)
    }

    /// Chooses the colours of each terminal again.
    pub(in crate::runtime) fn choose_themes(&mut self) {
        let name = self.core.view().config.ui.theme;
        for terminal in self.terminals.all_mut() {
            terminal.choose_theme(name);
        }
    }
}
