//! The pane: the child's cells, copied one by one into their rectangle, and the border around them.
//!
//! The child's output is never passed through raw: a cell is a character with attributes, and a character that could move
//! the host's cursor or reorder its line is dropped here, whatever the emulator let into a cell.

use std::{borrow::Cow, num::NonZeroU16, ops::Range};

use ratatui::{
    buffer::{Buffer, Cell, CellDiffOption},
    layout::Rect,
    style::{Color, Modifier},
    text::{Line, Span},
};
use unicode_width::UnicodeWidthChar;

use pitstop_base::clean;
use pitstop_core::app::{Model, facts, layout::Layout, model::Focus};
use pitstop_terminal::screen::{Attributes, CellView, Patch, Screen, widths::cells_of};

use super::{
    banner, copy, extra, frame, text,
    theme::{Depth, Theme},
};

/// Draws the pane with its border, if it has one.
pub(super) fn draw(
    buf: &mut Buffer,
    layout: &Layout,
    model: &Model,
    screen: &Screen,
    theme: &Theme,
) {
    if layout.bordered {
        let focused = model.view.focus == Focus::Pane && model.view.overlay.is_none();
        let mut title = frame::title(&pane_title(model), focused, theme);
        // The child chose these words: they are set apart from Pitstop's own.
        let own = text::safe(&model.session.title);
        let room = usize::from(layout.pane.width).saturating_sub(title.width() + 8);
        if !own.trim().is_empty() && room > 8 {
            title.push_span(Span::styled(
                format!("“{}” ", text::fit(&own, room)),
                theme.dim.remove_modifier(Modifier::BOLD),
            ));
        }
        let scrolled = model.view.copy.is_on() || screen.scroll_offset() > 0;
        let mark = scrolled.then(|| Line::styled(scroll_mark(screen), theme.accent));
        let mark = mark.unwrap_or_default();
        frame::draw_border_with_corner(buf, layout.pane, title, &mark, focused, theme);
        if facts::waits_for_enter(model) && model.view.has_pane() {
            let hint = facts::after_end(model);
            frame::foot(buf, layout.pane, &[hint], "", theme);
        }
        banner::draw(buf, layout.pane, model, theme);
    }
    copy_cells(buf, layout.pane_inner(), screen, theme.depth);
    copy::draw_marks(buf, layout.pane_inner(), screen, theme);
}

/// Returns the place of the view in the scrollback: `scroll −123 of 456`.
pub(super) fn scroll_mark(screen: &Screen) -> String {
    let place = copy::view_place(screen);
    if screen.scroll_offset() == 0 {
        format!(" {place} ")
    } else {
        format!(" scroll {place} ")
    }
}

/// Returns `claude · iteration 3 · Opus 4.8 (1M)`.
fn pane_title(model: &Model) -> String {
    let copy = model.view.copy.mode();
    if let Some(iteration) = copy.and_then(|copy| copy.transcript) {
        return format!("transcript · iteration {iteration}");
    }
    let identity = &model.identity;
    let agent = if model.is_generic() {
        let command = identity.agent_command.rsplit('/').next();
        command.unwrap_or(&identity.agent_command)
    } else {
        identity.agent_kind.word()
    };
    let (agent, iteration) = (text::safe(agent), model.session.iteration());
    let mut title = format!("{agent} · iteration {iteration}");
    if let Some(name) = &model.session.agent.model {
        title.push_str(&format!(" · {}", text::safe(name)));
    }
    title
}

/// Copies the screen's cells into a rectangle; cells that do not fit are cut, and no cell outside is touched.
pub fn copy_cells(buf: &mut Buffer, area: Rect, screen: &Screen, depth: Depth) {
    copy_patch(buf, area, screen, &Patch::ALL, depth);
}

/// Copies the rows of a screen from one on, whose rectangle may be smaller.
pub(super) fn cells_from(buf: &mut Buffer, area: Rect, screen: &Screen, first: u16, depth: Depth) {
    let rows = Patch::rows(first..u16::MAX);
    copy_lifted(buf, area, screen, &rows, first, depth);
}

/// Copies a part of the screen in the same way; the buffer may be a part of the host terminal.
pub fn copy_patch(buf: &mut Buffer, area: Rect, screen: &Screen, patch: &Patch, depth: Depth) {
    copy_lifted(buf, area, screen, patch, 0, depth);
}

/// Returns the place of a part of the screen on the host terminal when its cells are copied into a rectangle.
pub fn patch_place(area: Rect, patch: &Patch) -> Rect {
    let row = patch.rows.start.min(area.height);
    let column = patch.columns.start.min(area.width);
    Rect {
        x: area.x + column,
        y: area.y + row,
        width: patch.columns.end.min(area.width).saturating_sub(column),
        height: patch.rows.end.min(area.height).saturating_sub(row),
    }
}

/// Copies a part of the screen shifted upwards by some rows.
fn copy_lifted(buf: &mut Buffer, area: Rect, screen: &Screen, part: &Patch, up: u16, depth: Depth) {
    let room = area.intersection(buf.area);
    let stride = usize::from(buf.area.width);
    screen.for_each_cell_in(part, |view| {
        let (column, row) = (
            area.x.saturating_add(view.column),
            area.y.saturating_add(view.row.saturating_sub(up)),
        );
        if !room.contains((column, row).into()) {
            return;
        }
        let at = usize::from(row - buf.area.y) * stride + usize::from(column - buf.area.x);
        let whole = column + view.width <= room.right();
        let style = CellStyle::of(&view, depth);
        let cell = &mut buf.content[at];
        if whole {
            set_symbol(cell, &view);
        } else {
            // Half of a wide character cannot be shown.
            cell.set_char(' ');
        }
        style.apply(cell);
        if let Some(link) = view.hyperlink {
            extra::mark_link(cell, extra::link_number(link, view.link_id));
        }
        if whole && view.width == 2 {
            // Ratatui skips the cell behind a wide character; it expects the blank in it there.
            let second = &mut buf.content[at + 1];
            second.set_char(' ');
            style.apply(second);
        }
    });
}

/// Returns the child's links in some rows of the screen as they lie in its rectangle of the host terminal, in the order of
/// their places, for the writer of the frame: see [`extra`]. Those that may not pass keep an empty target.
pub fn link_runs(
    area: Rect,
    screen: &Screen,
    rows: Range<u16>,
    depth: Depth,
    hostname: &str,
) -> Vec<extra::LinkRun> {
    let mut runs: Vec<extra::LinkRun> = Vec::new();
    if !screen.has_links() {
        return runs;
    }
    screen.for_each_cell_in(&Patch::rows(rows), |view| {
        let Some(target) = view.hyperlink else { return };
        if view.column >= area.width || view.row >= area.height {
            return;
        }
        let (row, first) = (area.y + view.row, area.x + view.column);
        let number = extra::link_number(target, view.link_id);
        let underline = CellStyle::of(&view, depth).underline;
        let last = first + view.width - 1;
        if let Some(run) = runs.last_mut()
            && (run.row, run.last + 1, run.number, run.underline) == (row, first, number, underline)
        {
            run.last = last;
            return;
        }
        let passes = extra::may_pass(target, hostname);
        runs.push(extra::LinkRun {
            row,
            first,
            last,
            number,
            target: if passes { target } else { "" }.to_owned(),
            underline,
        });
    });
    runs
}

fn set_symbol(cell: &mut Cell, view: &CellView<'_>) {
    cell.diff_option = CellDiffOption::None;
    if let [byte @ 0x20..=0x7e] = view.text.as_bytes() {
        cell.set_char(char::from(*byte));
        return;
    }
    let wanted = view.width;
    let mut chars = view.text.chars();
    let base = chars.next().unwrap_or(' ');
    let single = chars.next().is_none();
    // A host terminal that joins or widens a cluster that the emulator did not would hide the text behind it: a cluster
    // stays whole only where it has its two cells, which are painted with care, or where both may agree on one.
    let selects = view.text.contains(['\u{fe0e}', '\u{fe0f}', '\u{200d}']);
    // An emoji, or half of a flag, that has to be text: without its selector it would have no room.
    let as_text = cells_of(base) == 2 && view.text[base.len_utf8()..] == *"\u{fe0e}";
    let cells = || view.text.chars().map(cells_of).sum::<usize>();
    let whole = match wanted {
        2 => !view.text.contains('\u{fe0e}') || cells_of(base) == 2,
        _ => as_text || (!selects && cells() == 1),
    };
    if whole && is_shown(view.text) {
        // A character that joins the cell before it has a blank of its own to join.
        if single && base.width() == Some(0) {
            cell.set_symbol(&format!(" {base}"));
        } else {
            cell.set_symbol(view.text);
        }
    } else if cells_of(base) == usize::from(wanted) && is_shown(base.encode_utf8(&mut [0; 4])) {
        set_with_accents(cell, view.text);
    } else {
        cell.set_char(if wanted == 1 { '\u{fffd}' } else { ' ' });
    }
    if extra::cell_span(cell) != usize::from(wanted)
        && let Some(wanted) = NonZeroU16::new(wanted)
    {
        cell.diff_option = CellDiffOption::ForcedWidth(wanted);
    }
}

/// Reports whether a cluster may be handed to the host terminal as it is: it has no character that steers, reorders or
/// hides, but for one selector of a variant, or the name of a flag in tags.
fn is_shown(cluster: &str) -> bool {
    let mut rest = Cow::Borrowed(cluster);
    if let Some(tags) = cluster.strip_prefix('\u{1f3f4}')
        && let Some(tags) = tags.strip_suffix('\u{e007f}')
    {
        let letters = |c| matches!(c, '\u{e0030}'..='\u{e0039}' | '\u{e0061}'..='\u{e007a}');
        return tags.chars().count() <= FLAG_NAME && tags.chars().all(letters);
    }
    let variant = |c: char| matches!(c, '\u{180b}'..='\u{180d}' | '\u{180f}' | '\u{fe00}'..='\u{fe0d}' | '\u{e0100}'..='\u{e01ef}');
    if let Some(at) = cluster.find(variant).filter(|at| *at > 0) {
        let selector = cluster[at..].chars().next().map_or(0, char::len_utf8);
        rest = Cow::Owned([&cluster[..at], &cluster[at + selector..]].concat());
    }
    clean::one_line(&rest) == rest
}

/// The longest name of a flag, in tags: the code of a country and of one of its parts.
const FLAG_NAME: usize = 6;

/// Sets the base character with its combining accents, without the characters that join, select or hide.
fn set_with_accents(cell: &mut Cell, cluster: &str) {
    let mut kept = String::new();
    for (at, c) in cluster.chars().enumerate() {
        let mut bytes = [0; 4];
        let piece = c.encode_utf8(&mut bytes);
        let accent = cells_of(c) == 0
            && !matches!(c, '\u{fe00}'..='\u{fe0f}' | '\u{200c}' | '\u{200d}')
            && clean::one_line(piece) == *piece;
        if (at == 0 || accent) && kept.len() + piece.len() <= MOST_ACCENTS {
            kept.push_str(piece);
        }
    }
    cell.set_symbol(&kept);
}

/// The longest text that is kept of a character with its accents, in bytes.
const MOST_ACCENTS: usize = 24;

/// The colours and attributes as the host terminal is given them.
struct CellStyle {
    foreground: Color,
    background: Color,
    underline: Color,
    modifier: Modifier,
}

impl CellStyle {
    fn of(view: &CellView<'_>, depth: Depth) -> Self {
        let mut foreground = depth.nearest_shown(view.foreground);
        let background = depth.nearest_shown(view.background);
        if foreground == background
            && view.foreground != view.background
            && foreground != Color::Reset
        {
            foreground = readable_on(background);
        }
        Self {
            foreground,
            background,
            underline: view
                .underline_colour
                .map_or(Color::Reset, |own| depth.nearest_shown(own)),
            modifier: modifier_of(view.attributes),
        }
    }

    fn apply(&self, cell: &mut Cell) {
        cell.fg = self.foreground;
        cell.bg = self.background;
        cell.underline_color = self.underline;
        cell.modifier = self.modifier;
    }
}

/// Returns a colour that is readable on a background: two colours that shrank to one would hide the text.
fn readable_on(background: Color) -> Color {
    match background {
        Color::Black | Color::DarkGray | Color::Blue | Color::Red | Color::Magenta => Color::White,
        Color::Indexed(16..=59 | 232..=243) => Color::Indexed(231),
        Color::Indexed(_) => Color::Indexed(16),
        _ => Color::Black,
    }
}

fn modifier_of(attributes: Attributes) -> Modifier {
    let mut modifier = Modifier::empty();
    for (on, one) in [
        (attributes.bold, Modifier::BOLD),
        (attributes.dim, Modifier::DIM),
        (attributes.italic, Modifier::ITALIC),
        (attributes.inverse, Modifier::REVERSED),
        (attributes.hidden, Modifier::HIDDEN),
        (attributes.strike, Modifier::CROSSED_OUT),
        (attributes.blink, Modifier::SLOW_BLINK),
    ] {
        modifier.set(one, on);
    }
    let modifier = extra::with_underline(modifier, attributes.underline);
    if attributes.overline {
        extra::with_overline(modifier)
    } else {
        modifier
    }
}
