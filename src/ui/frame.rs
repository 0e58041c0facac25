//! Borders, titles and boxes: the parts that all rectangles have in common.

use ratatui::{
    buffer::Buffer,
    layout::Rect,
    style::{Modifier, Style},
    text::{Line, Span},
    widgets::{Block, BorderType, Clear, Widget},
};
use unicode_width::UnicodeWidthStr;

use super::{
    text::{self, Window},
    theme::Theme,
};

/// Returns a rectangle's name; the sign marks the one that has the keys.
pub(super) fn title(name: &str, focused: bool, theme: &Theme) -> Line<'static> {
    let sign = if focused { "▸" } else { " " };
    let style = if focused { theme.focus } else { theme.title };
    Line::from(Span::styled(format!("{sign}{name} "), style))
}

/// Draws a border and returns the area inside; the border of the focused rectangle is heavier, not only in another colour.
pub(super) fn draw_border(
    buf: &mut Buffer,
    area: Rect,
    title: Line<'static>,
    focused: bool,
    theme: &Theme,
) -> Rect {
    let (kind, style) = if focused {
        (BorderType::Thick, theme.focus)
    } else {
        (BorderType::Rounded, theme.border)
    };
    let room = usize::from(area.width.saturating_sub(2));
    let block = Block::bordered()
        .border_type(kind)
        .border_style(style)
        .title_top(cut(title, room));
    let inner = block.inner(area);
    block.render(area, buf);
    inner
}

/// Draws a border like [`draw_border`], with something at the right end of its top; the title is cut so that the cut is seen.
pub(super) fn draw_border_with_corner(
    buf: &mut Buffer,
    area: Rect,
    title: Line<'static>,
    corner: &Line<'static>,
    focused: bool,
    theme: &Theme,
) -> Rect {
    let room = usize::from(area.width.saturating_sub(2));
    let wide = Some(corner.width()).filter(|wide| area.height > 0 && *wide <= room);
    let wide = wide.unwrap_or_default();
    let inner = draw_border(buf, area, cut(title, room - wide), focused, theme);
    if wide > 0 {
        let x = area.right() - 1 - wide as u16;
        buf.set_line(x, area.y, corner, wide as u16);
    }
    inner
}

/// Empties everything above the footer and draws a border around it, which has the keys; returns the whole, and the area
/// inside.
pub(super) fn page(buf: &mut Buffer, whole: Rect, name: &str, theme: &Theme) -> (Rect, Rect) {
    page_with_corner(buf, whole, name, &Line::default(), theme)
}

/// Draws a page like [`page`], with something at the right end of its top.
pub(super) fn page_with_corner(
    buf: &mut Buffer,
    whole: Rect,
    name: &str,
    corner: &Line<'static>,
    theme: &Theme,
) -> (Rect, Rect) {
    let area = body(whole);
    clear(buf, area);
    let title = title(name, true, theme);
    let inner = draw_border_with_corner(buf, area, title, corner, true, theme);
    (area, inner)
}

/// Cuts a line so that the cut is seen.
pub(super) fn cut(line: Line<'static>, cells: usize) -> Line<'static> {
    if line.width() <= cells {
        return line;
    }
    let mut left = cells;
    let mut spans = Vec::new();
    for span in line.spans {
        let kept = text::fit(&span.content, left).into_owned();
        let whole = kept == span.content;
        left -= text::width(&kept).min(left);
        spans.push(Span::styled(kept, span.style));
        if !whole || left == 0 {
            break;
        }
    }
    Line::from(spans)
}

/// Returns a text for the corner of a panel, such as its key; empty without one.
pub(super) fn corner_label(label: Option<String>, theme: &Theme) -> Line<'static> {
    label.map_or_else(Line::default, |label| row(format!(" {label} "), theme.dim))
}

/// Writes into the bottom border: hints at the left, a mark at the right, as far as they fit.
pub(super) fn foot<H: AsRef<str>>(
    buf: &mut Buffer,
    area: Rect,
    hints: &[H],
    mark: &str,
    theme: &Theme,
) {
    if area.height < 2 || area.width < 6 {
        return;
    }
    let y = area.bottom() - 1;
    let room = usize::from(area.width - 2);
    let mut left = room;
    // The reader's place matters less than the first key and the way out.
    let needed = least_width(hints) + 2;
    let fits = text::width(mark) + 2 + needed.min(room) <= room || hints.is_empty();
    if !mark.is_empty() && text::width(mark) + 2 <= room && fits {
        let mark = pad_line(row(mark, theme.dim));
        let wide = mark.width() as u16;
        buf.set_line(area.right() - 1 - wide, y, &mark, wide);
        left -= usize::from(wide);
    }
    let line = hint_line(hints, left.saturating_sub(2), theme);
    if line.width() > 0 && left > 4 {
        let line = pad_line(line);
        buf.set_line(area.x + 1, y, &line, left as u16);
    }
}

/// The key of a hint that is no key of its own.
const ANY_KEY: &str = "any other key";

/// The hint that names no key at all.
const TYPING: &str = "typing ";

/// The text between two hints.
const GAP: &str = " · ";

/// Reports whether a hint is the way out: it is the last one that is left out.
fn is_way_out(hint: &str) -> bool {
    &hint[..key_length(hint)] == "Esc" || hint.ends_with(" close")
}

/// Returns the number of cells of the first hint and the way out.
fn least_width<H: AsRef<str>>(hints: &[H]) -> usize {
    let mut hints = hints.iter().map(AsRef::as_ref);
    let first = hints.next().map_or(0, text::width);
    let rest = hints.find(|hint| is_way_out(hint));
    first + rest.map_or(0, |hint| text::width(GAP) + text::width(hint))
}

/// Returns `e edit · Ctrl-q p pause`, as much of it as fits and the way out in any case; the key of each comes first.
pub(super) fn hint_line<H: AsRef<str>>(hints: &[H], cells: usize, theme: &Theme) -> Line<'static> {
    let hints: Vec<&str> = hints.iter().map(AsRef::as_ref).collect();
    let mut kept = vec![false; hints.len()];
    let mut used = 0;
    let out = hints.iter().position(|hint| is_way_out(hint));
    for at in out.into_iter().chain(0..hints.len()) {
        let gap = if used == 0 { 0 } else { text::width(GAP) };
        let wide = gap + text::width(hints[at]);
        if !kept[at] && used + wide <= cells {
            used += wide;
            kept[at] = true;
        }
    }
    let kept = hints.into_iter().zip(kept).filter(|(_, kept)| *kept);
    let runs = hint_runs(kept.map(|(hint, _)| hint), theme);
    runs.map(|(said, style)| Span::styled(said, style))
        .collect()
}

/// Returns hints with the gaps between them; the key of each stands out.
fn hint_runs<'a>(
    hints: impl Iterator<Item = &'a str>,
    theme: &Theme,
) -> impl Iterator<Item = (String, Style)> {
    hints.enumerate().flat_map(|(at, hint)| {
        let gap = if at == 0 { "" } else { GAP };
        let (key, does) = hint.split_at(key_length(hint));
        [(gap, theme.dim), (key, theme.accent), (does, theme.dim)]
            .map(|(said, style)| (said.to_owned(), style))
    })
}

/// Returns hints in the text of a box, wrapped: between two of them, if each fits on a row.
pub(super) fn hint_rows<H: AsRef<str>>(
    hints: &[H],
    cells: usize,
    theme: &Theme,
) -> Vec<Line<'static>> {
    let hints = hints.iter().map(AsRef::as_ref);
    let all_fit = hints.clone().all(|hint: &str| text::width(hint) <= cells);
    let runs = hint_runs(hints, theme).map(|(said, style)| {
        let breaks = said == GAP || !all_fit;
        let said = if breaks {
            said
        } else {
            said.replace(' ', text::NO_BREAK)
        };
        (said, style)
    });
    text::wrap(&runs.collect::<Vec<_>>(), &text::Lead::default(), cells)
}

/// Returns the length of the key in a hint, in bytes: the first word, and behind a prefix the key that follows it.
pub(super) fn key_length(hint: &str) -> usize {
    if hint.starts_with(ANY_KEY) {
        return ANY_KEY.len();
    }
    if hint.starts_with(TYPING) {
        return 0;
    }
    let first = hint.find(' ').unwrap_or(hint.len());
    let second = hint[first..].trim_start().split_once(' ');
    match second {
        Some((key, _)) if hint[..first].contains('-') && key.chars().count() == 1 => {
            first + 1 + key.len()
        }
        _ => first,
    }
}

/// Returns a line with a blank on each side, in its own weight and not that of the border around it.
fn pad_line(mut line: Line<'static>) -> Line<'static> {
    for span in &mut line.spans {
        if !span.style.add_modifier.contains(Modifier::BOLD) {
            span.style = span.style.remove_modifier(Modifier::BOLD);
        }
    }
    line.spans.insert(0, Span::raw(" "));
    line.push_span(Span::raw(" "));
    line
}

/// Returns the place of a window in its document: `↑↓ 40/340`, or an empty text if all of it is seen.
pub(super) fn window_mark(window: &Window, document: &str) -> String {
    window.mark(memchr::memchr_iter(b'\n', document.as_bytes()).count() + 1)
}

/// Writes rows into a rectangle from its top.
pub(super) fn rows(buf: &mut Buffer, area: Rect, rows: &[Line<'static>]) {
    for (y, row) in (area.y..area.bottom()).zip(rows) {
        buf.set_line(area.x, y, row, area.width);
    }
}

/// Returns a name in grey, such as a time, and the text for it: wrapped in a column of its own.
pub(super) fn named_rows(
    name: String,
    said: (String, Style),
    cells: usize,
    theme: &Theme,
) -> Vec<Line<'static>> {
    let lead = text::Lead {
        rest: vec![(" ".repeat(text::width(&name)), theme.text)],
        first: vec![(name, theme.dim)],
    };
    text::wrap(&[said], &lead, cells)
}

/// Returns one styled row.
pub(super) fn row(text: impl Into<String>, style: Style) -> Line<'static> {
    Line::from(Span::styled(text.into(), style))
}

/// Returns a rectangle of this size in the middle of another, no larger than that.
pub(super) fn centred(whole: Rect, width: u16, height: u16) -> Rect {
    let (width, height) = (width.min(whole.width), height.min(whole.height));
    Rect {
        x: whole.x + (whole.width - width) / 2,
        y: whole.y + (whole.height - height) / 2,
        width,
        height,
    }
}

/// Returns everything above the footer.
pub(super) fn body(whole: Rect) -> Rect {
    Rect {
        height: whole.height.saturating_sub(1),
        ..whole
    }
}

/// Returns the rest of a rectangle below its first rows.
pub(super) fn below(area: Rect, rows: u16) -> Rect {
    let rows = rows.min(area.height);
    Rect {
        y: area.y + rows,
        height: area.height - rows,
        ..area
    }
}

/// Empties a rectangle that lies over others.
pub(super) fn clear(buf: &mut Buffer, area: Rect) {
    let area = area.intersection(buf.area);
    for y in area.top()..area.bottom() {
        // A wide character cut by the rectangle's left edge would still be drawn over it.
        if area.x > buf.area.x
            && let Some(before) = buf.cell_mut((area.x - 1, y))
            && before.symbol().width() > 1
        {
            before.set_char(' ');
        }
    }
    Clear.render(area, buf);
}

/// Empties the rows of a box that lies over a wider rectangle: words cut at its sides would look like a fault.
pub(super) fn clear_beside(buf: &mut Buffer, whole: Rect, area: Rect) {
    let rows = Rect {
        x: whole.x,
        width: whole.width,
        ..area
    };
    clear(buf, rows);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_key_of_a_hint_is_whole() {
        for (hint, key) in [
            ("e edit", "e"),
            ("PgUp/PgDn scroll", "PgUp/PgDn"),
            ("Ctrl-q p pause", "Ctrl-q p"),
            ("Ctrl-S save", "Ctrl-S"),
            ("←→ 5 s", "←→"),
            ("-/+ speed", "-/+"),
            ("Esc", "Esc"),
        ] {
            assert_eq!(&hint[..key_length(hint)], key);
        }
    }

    #[test]
    fn the_way_out_is_the_last_hint_that_gives_way() {
        let hints = ["e edit", "z fold all", "/ find", "Esc back"].map(str::to_owned);
        let line = |cells| hint_line(&hints, cells, &Theme::default()).to_string();
        assert_eq!(line(80), "e edit · z fold all · / find · Esc back");
        assert_eq!(line(30), "e edit · z fold all · Esc back");
        assert_eq!(line(19), "e edit · Esc back");
        assert_eq!(line(16), "Esc back");
        assert_eq!(line(7), "e edit");
    }
}
