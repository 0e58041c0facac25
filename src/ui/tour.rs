//! The line of the demo's tour, in the lower border of the pane: a pane without a border has no room for it.

use ratatui::{buffer::Buffer, style::Modifier};

use pitstop_core::app::{Model, layout::Layout, reboot, tour};

use super::{frame, text, theme::Theme};

/// Draws the line, if there is a tour.
pub(super) fn draw(buf: &mut Buffer, layout: &Layout, model: &Model, theme: &Theme) {
    // The banner of a reboot has the same place, and shows its own keys.
    let has_room = layout.bordered && reboot::banner(model).is_none();
    let Some(line) = tour::line(model).filter(|_| has_room) else {
        return;
    };
    let pane = layout.pane;
    if pane.height < 2 || pane.width < 8 {
        return;
    }
    let room = usize::from(pane.width - 4);
    let style = theme
        .accent
        .add_modifier(Modifier::BOLD | Modifier::REVERSED);
    let line = frame::row(format!(" {} ", text::fit(&line, room - 2)), style);
    buf.set_line(pane.x + 2, pane.bottom() - 1, &line, room as u16);
}
