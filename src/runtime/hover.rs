//! The pointer over the pane's links: which one it is on, and whether the host terminal is asked for its moves.
//!
//! Moves without a button wake the loop many times a second, so they are asked for only while there is something to
//! point at: a link that is seen, or a child that has asked for them itself. Those that were not asked for end here.

use crossterm::event::MouseEventKind;

use crate::ui::{self, extra};
use pitstop_core::app::{Event, Model, event::PaneEvent, layout::layout};
use pitstop_terminal::{
    MouseTracking,
    input::HostInput,
    screen::{Patch, Screen},
};

use super::Shell;

/// The sequence that requests moves without a button.
const FOLLOW: &[u8] = b"\x1b[?1003h";

/// The sequence that ends them. In most terminals it is one mode of several of which one is on, and with it the mouse is off
/// altogether: the modes that are always requested are requested again.
const LEAVE_ALONE: &[u8] = b"\x1b[?1003l\x1b[?1000h\x1b[?1002h";

/// The known state of the pointer.
#[derive(Debug, Default)]
pub(super) struct Pointer {
    /// The cell of the host terminal, column and row, that it is on; `None` while it may be elsewhere by now, or a
    /// key was pressed since.
    at: Option<(u16, u16)>,
    /// True if the last frame shows a link that may be passed on.
    links: bool,
    /// True if the host terminal was asked for moves.
    followed: bool,
}

impl Shell {
    /// Notes the cell of the pointer after an input in the active terminal; returns true if it is a move that only we have requested.
    pub(super) fn points(&mut self, input: &HostInput) -> bool {
        let child_follows = child_follows(self.core.view(), &self.pane.screen);
        let Some(active) = self.terminals.active_mut() else {
            return false;
        };
        let pointer = &mut active.pointer;
        let HostInput::Mouse { event, .. } = input else {
            pointer.at = None;
            return false;
        };
        match event.kind {
            MouseEventKind::Moved => {
                let at = (event.column, event.row);
                pointer.at = pointer.followed.then_some(at);
                !child_follows
            }
            MouseEventKind::Drag(_) => {
                pointer.at = None;
                false
            }
            _ => false,
        }
    }

    /// Reports the link under the pointer to the core, if that has changed: by a move, or because the text has.
    pub(super) fn look_under_pointer(&mut self) {
        let at = self.terminals.active().and_then(|active| active.pointer.at);
        let target = at.and_then(|at| self.link_at(at));
        if target != self.core.view().view.hovered {
            self.post(Event::Pane(PaneEvent::LinkHovered { target }));
        }
    }

    fn link_at(&self, (column, row): (u16, u16)) -> Option<String> {
        if ui::pane_covered(self.core.view()) {
            return None;
        }
        let (column, row) = layout(self.core.view()).cell_of_pane(column, row)?;
        let target = self.pane.screen.link_at(column, row)?;
        extra::may_pass(&target, &self.terminals.hostname).then_some(target)
    }
}

/// Reports whether the child should be sent moves without a button.
fn child_follows(model: &Model, screen: &Screen) -> bool {
    screen.modes().mouse == MouseTracking::Motion && model.view.has_pane()
}

impl Pointer {
    /// Notes whether a frame shows a link that may be passed on: from all its cells, or, if the last one showed none, from what has
    /// changed.
    pub fn note_links(&mut self, screen: &Screen, hostname: &str, damage: &[Patch], whole: bool) {
        let rows = match damage {
            [] if !whole => return,
            [first, .., last] | [first @ last] if !whole && !self.links => {
                first.rows.start..last.rows.end
            }
            _ => 0..u16::MAX,
        };
        self.links = screen.shows_link(rows, |target: &str| extra::may_pass(target, hostname));
    }

    /// Returns the sequence about moves for the terminal; empty if nothing has changed.
    pub fn follow(&mut self, model: &Model, screen: &Screen) -> &'static [u8] {
        let follow = (self.links && !ui::pane_covered(model)) || child_follows(model, screen);
        if follow == self.followed {
            return b"";
        }
        self.followed = follow;
        if follow {
            return FOLLOW;
        }
        self.at = None;
        LEAVE_ALONE
    }
}
