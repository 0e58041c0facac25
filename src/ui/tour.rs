//! The line of the demo's tour: in the lower border of the pane, or in the footer where the pane has none.

use ratatui::{buffer::Buffer, style::Modifier, text::Line};

use pitstop_core::app::{Model, layout::Layout, reboot, tour};

use super::{frame, text, theme::Theme};

/// Draws the line, if there is a tour.
pub(super) fn draw(buf: &mut Buffer, layout: &Layout, model: &Model, theme: &Theme) {
    // The banner of a reboot has the same place, and shows its own keys.
    let has_room = layout.bordered && reboot::banner(model).is_none();
    let pane = layout.pane;
    if !has_room || pane.height < 2 || pane.width < 8 {
        return;
    }
    let room = pane.width - 4;
    if let Some(line) = tour_line(model, usize::from(room), theme) {
        buf.set_line(pane.x + 2, pane.bottom() - 1, &line, room);
    }
}

/// Returns the line in at most so many cells, if there is a tour.
pub(super) fn tour_line(model: &Model, cells: usize, theme: &Theme) -> Option<Line<'static>> {
    let line = tour::line(model)?;
    let style = theme
        .accent
        .add_modifier(Modifier::BOLD | Modifier::REVERSED);
    let said = format!(" {} ", text::fit(&line, cells.saturating_sub(2)));
    Some(frame::row(said, style))
}
