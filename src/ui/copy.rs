//! Copy mode on the screen: the found and the selected cells, and the line with the reader's place.

use ratatui::{
    buffer::Buffer,
    layout::Rect,
    style::{Color, Modifier, Style},
    text::{Line, Span},
};

use pitstop_base::keymap::Action;
use pitstop_core::app::{
    Model,
    copy::{CopyMode, SearchLine},
};
use pitstop_terminal::{copy::CopyMark, screen::Screen};

use super::{frame, hover, text, theme::Theme};

/// Marks the found and the selected cells of the pane.
pub(super) fn draw_marks(buf: &mut Buffer, area: Rect, screen: &Screen, theme: &Theme) {
    let area = area.intersection(buf.area);
    screen.for_each_mark(|row, first, last, mark| {
        let style = match mark {
            CopyMark::Found => theme.found,
            CopyMark::Selected => theme.selection,
        };
        if row >= area.height || first >= area.width {
            return;
        }
        for column in first..=last.min(area.width - 1) {
            if let Some(cell) = buf.cell_mut((area.x + column, area.y + row)) {
                lay_mark(cell, style);
            }
        }
    });
}

/// Lays a mark over the child's own ground, which would else show through where it is inverse.
fn lay_mark(cell: &mut ratatui::buffer::Cell, style: Style) {
    if style.add_modifier.contains(Modifier::REVERSED) {
        cell.modifier.toggle(Modifier::REVERSED);
        return;
    }
    if cell.modifier.contains(Modifier::REVERSED) {
        cell.modifier.remove(Modifier::REVERSED);
        cell.fg = Color::Reset;
    }
    // A style with a foreground is readable over any text; under one without, the text keeps its colour.
    cell.set_style(style);
}

/// Returns the place of the view, and whether there is new output: `−123 of 456 · new output below`.
pub(super) fn view_place(screen: &Screen) -> String {
    let (offset, history) = (screen.scroll_offset(), screen.history_len());
    let mut place = if offset == 0 {
        "at the end".to_owned()
    } else {
        format!("−{offset} of {history}")
    };
    if screen.has_new_output() {
        place.push_str(" · new output below");
    }
    place
}

/// Returns the footer while the pane is read, with more beside it where there is room.
pub(super) fn footer_line(
    model: &Model,
    screen: &Screen,
    cells: usize,
    beside: impl FnOnce() -> Vec<Span<'static>>,
    theme: &Theme,
) -> Option<Line<'static>> {
    let copy = model.view.copy.mode()?;
    Some(match &copy.search {
        Some(search) => search_line(search, copy, cells, theme),
        None => status_line(model, copy, screen, cells, beside(), theme),
    })
}

/// Returns the column of the cursor in the footer while a search is typed.
pub(super) fn search_cursor(model: &Model, cells: u16) -> Option<u16> {
    let search = model.view.copy.search()?;
    let shown = text::safe(&search.pattern);
    let column = text::width(text::tail(&shown, search_room(cells.into()))) as u16 + 2;
    Some(column.min(cells.saturating_sub(1)))
}

fn search_room(cells: usize) -> usize {
    cells.saturating_sub(4).max(1)
}

fn search_line(search: &SearchLine, copy: &CopyMode, cells: usize, theme: &Theme) -> Line<'static> {
    let sign = if search.backward { "?" } else { "/" };
    let shown = text::safe(&search.pattern);
    let shown = text::tail(&shown, search_room(cells)).to_owned();
    let mut line = Line::from(vec![
        Span::styled(format!(" {sign}"), theme.accent),
        Span::styled(shown, theme.text),
    ]);
    let left = cells.saturating_sub(line.width() + 4);
    if let Some(said) = copy.said.as_deref().filter(|_| left > 8) {
        let style = if copy.bad_pattern {
            theme.bad
        } else {
            theme.dim
        };
        let said = text::safe(said);
        let said = format!("   {}", text::fit(&said, left));
        line.push_span(Span::styled(said, style));
    }
    line
}

fn status_line(
    model: &Model,
    copy: &CopyMode,
    screen: &Screen,
    cells: usize,
    beside: Vec<Span<'static>>,
    theme: &Theme,
) -> Line<'static> {
    let kind = copy.selecting.map(|kind| format!(": {}", kind.word()));
    let bold = theme.accent.add_modifier(Modifier::BOLD);
    let what = if copy.transcript.is_some() {
        "transcript"
    } else {
        "copy"
    };
    let mut line = frame::row(format!(" {what}{}", kind.unwrap_or_default()), bold);
    if let Some(target) = hover::hovered_target(model) {
        if line.width() + hover::least_width(target) > cells {
            line.spans.clear();
        }
        let room = cells.saturating_sub(line.width());
        line.spans.extend(hover::target_spans(target, room, theme));
        return line;
    }
    let said = copy.said.as_deref().map(text::safe);
    let parts = [
        (said, theme.accent),
        (Some(view_place(screen).into()), theme.text),
    ];
    for (part, style) in parts {
        let left = cells.saturating_sub(line.width() + 3);
        if let Some(part) = part.filter(|_| left > 4) {
            line.push_span(Span::styled(" · ", theme.dim));
            line.push_span(Span::styled(text::fit(&part, left).into_owned(), style));
        }
    }
    let keys = key_hints(model, copy, cells, theme).width() + 4;
    for part in beside {
        if line.width() + 3 + part.width() + keys <= cells {
            line.push_span(Span::styled(" · ", theme.dim));
            line.push_span(part);
        }
    }
    let hints = key_hints(model, copy, cells.saturating_sub(line.width() + 2), theme);
    // The hints of the footer end a cell before its end, here too.
    let gap = cells.saturating_sub(line.width() + hints.width() + 1);
    line.push_span(Span::raw(" ".repeat(gap)));
    line.spans.extend(hints.spans);
    line
}

fn key_hints(model: &Model, copy: &CopyMode, cells: usize, theme: &Theme) -> Line<'static> {
    let help = model.keys().hint_to(Action::Help, "help");
    let mut wanted = match copy.selecting {
        Some(_) => vec!["y copy", "/ search", "Esc unselect"],
        None => vec!["v select", "/ search", "Esc leave"],
    };
    let screen = model.keys().hint_to(Action::Scroll, "screen");
    if copy.transcript.is_some() && copy.selecting.is_none() {
        wanted.push("[/] session");
        wanted.extend(screen.as_deref());
    }
    wanted.extend(help.as_deref());
    frame::hint_line(&wanted, cells, theme)
}
