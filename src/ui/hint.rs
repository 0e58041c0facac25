//! Key hints that are clicked: the keys that the hint under the pointer names.
//!
//! The frame itself is read, so a hint has its effect wherever it is shown: in the footer, in the lower border of the pane,
//! a panel or an overlay, and in the questions that lie over everything.

use crossterm::event::KeyEvent;
use ratatui::{
    buffer::Buffer,
    layout::{Position, Rect},
};

use pitstop_base::keymap::Chord;
use pitstop_core::app::{
    Model,
    layout::{self, Layout},
    model::Overlay,
};
use pitstop_terminal::screen::Screen;

use super::{Theme, help, paint, review};

/// Returns the keys of the hint at a cell of the host terminal; none where there is no hint.
pub fn keys_at(
    model: &Model,
    screen: &Screen,
    theme: &Theme,
    column: u16,
    row: u16,
) -> Vec<KeyEvent> {
    let layout = layout::layout(model);
    let is_review = model.view.overlay == Some(Overlay::Review);
    if layout.too_small || !(is_review || has_hints(model, &layout, row)) {
        return Vec::new();
    }
    let mut buf = Buffer::empty(layout.whole);
    // Borders and dots separate the hints, so they are read as they are.
    let plain = theme.clone().in_ascii(false);
    paint(&mut buf, model, screen, &plain);
    if is_review && !has_hints(model, &layout, row) {
        return review::keys_at(&buf, model, theme, column, row);
    }
    let pane = layout.pane_inner();
    let keys = match model.view.overlay {
        Some(Overlay::Quit) => help::draw_quit(&mut buf, pane, model, &plain),
        Some(Overlay::Exited) => help::draw_exited(&mut buf, pane, model, &plain),
        _ => layout.whole,
    };
    let at = Position::new(column, row);
    // What lies around a question is the agent's text.
    if !keys.contains(at) && !layout.footer.contains(at) {
        return Vec::new();
    }
    read_keys(model, &said_at(&buf, column, row)).unwrap_or_default()
}

/// Reports whether a row may hold hints.
fn has_hints(model: &Model, layout: &Layout, row: u16) -> bool {
    let bottom = |area: &Rect| row + 1 == area.bottom();
    if bottom(&layout.footer) {
        return true;
    }
    match model.view.overlay {
        Some(Overlay::Quit | Overlay::Exited) => true,
        Some(_) => row + 2 == layout.whole.bottom(),
        None => {
            let panels = layout.panels.iter().any(|(_, area)| bottom(area));
            panels || (layout.bordered && bottom(&layout.pane))
        }
    }
}

/// Returns the words around a cell, up to the separators of hints: a dot, a border, or two blanks.
fn said_at(buf: &Buffer, column: u16, row: u16) -> String {
    let Some(y) = (row < buf.area.height).then_some(row) else {
        return String::new();
    };
    let sign = |x: u16| buf[(x, y)].symbol();
    let blank = |x: u16| sign(x) == " ";
    let last = buf.area.width.saturating_sub(1);
    let ends = |x: u16| {
        matches!(sign(x), "·" | "━" | "─" | "┃" | "│" | "┗" | "┛" | "╰" | "╯")
            || (blank(x) && ((x > 0 && blank(x - 1)) || (x < last && blank(x + 1))))
    };
    if column > last || ends(column) {
        return String::new();
    }
    let first = (0..column).rev().find(|x| ends(*x)).map_or(0, |x| x + 1);
    let behind = (column..=last).find(|x| ends(*x)).unwrap_or(last + 1);
    let said: String = (first..behind).map(sign).collect();
    said.trim().to_owned()
}

/// Reads `F5 review`, `Ctrl-q D defer` or `Enter/a approve`: returns the keys that come first, if the text is a hint.
pub(super) fn read_keys(model: &Model, said: &str) -> Option<Vec<KeyEvent>> {
    let mut words = said.split_whitespace();
    let first = words.next()?;
    let prefix = model.keys().prefix();
    let mut chords = vec![read_chord(first)?];
    if first == prefix.label() {
        chords.push(read_chord(words.next()?)?);
    }
    // A key without an effect is no hint.
    words.next()?;
    let event = |chord: Chord| KeyEvent::new(chord.code(), chord.modifiers());
    Some(chords.into_iter().map(event).collect())
}

/// Reads a key as it is shown: of several, the first.
fn read_chord(label: &str) -> Option<Chord> {
    let one = match label.split_once('/') {
        Some((first, rest)) if !first.is_empty() && !rest.is_empty() => first,
        _ => label,
    };
    one.parse().ok()
}
