//! The keys that can follow the prefix, in a box above the footer: shown where the next key does not come at once, and gone
//! with it.
//!
//! ```text
//! ┏▸Ctrl-q … ━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━┓
//! ┃ ? help               s scratchpad         D defer           c checkpoint  ┃
//! ┃ o focus next         h handoff            m mode            u undo        ┃
//! ┗━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━┛
//! ```

use ratatui::{
    buffer::Buffer,
    layout::Rect,
    text::{Line, Span},
};

use pitstop_base::keymap::Trigger;
use pitstop_core::app::{Model, layout::Layout};

use super::{frame, text, theme::Theme};

/// The gap between two columns, in cells.
const GAP: usize = 3;

/// Reports whether the box lies over the lower part of the screen.
pub(super) const fn is_shown(model: &Model) -> bool {
    model.view.shows_keys
}

/// Draws the box, if it is due.
pub(super) fn draw(buf: &mut Buffer, layout: &Layout, model: &Model, theme: &Theme) {
    if !is_shown(model) {
        return;
    }
    let whole = frame::body(layout.whole);
    let keys = keys_after_prefix(model);
    let widest = |width: fn(&(String, String)) -> usize| keys.iter().map(width).max().unwrap_or(0);
    let key_cells = widest(|(key, _)| text::width(key));
    let word_cells = widest(|(_, word)| text::width(word));
    // The border and a blank on either side.
    let cells = usize::from(whole.width).saturating_sub(4);
    let columns = ((cells + GAP) / (key_cells + 1 + word_cells + GAP)).max(1);
    let height = keys.len().div_ceil(columns);
    let rows = (0..height).map(|row| {
        let of_row = keys.iter().skip(row).step_by(height);
        let spans = of_row.flat_map(|(key, word)| {
            [
                Span::styled(format!(" {key:>key_cells$}"), theme.accent),
                Span::styled(format!(" {word:<word_cells$}"), theme.text),
                Span::raw(" ".repeat(GAP - 1)),
            ]
        });
        spans.collect::<Line<'static>>()
    });
    let rows: Vec<Line<'static>> = rows.collect();
    let wanted = u16::try_from(height + 2).unwrap_or(u16::MAX);
    let area = Rect {
        y: whole.bottom() - wanted.min(whole.height),
        height: wanted.min(whole.height),
        ..whole
    };
    frame::clear(buf, area);
    let name = format!("{} …", model.keys().prefix().label());
    let inner = frame::draw_border(buf, area, frame::title(&name, true, theme), true, theme);
    frame::rows(buf, inner, &rows);
    let seen = usize::from(inner.height).min(height);
    let mark = text::mark(false, seen < height, seen, height);
    frame::foot::<&str>(buf, area, &[], &mark, theme);
}

/// Returns each key that can follow the prefix with its effect in a word or two, in the order of help.
fn keys_after_prefix(model: &Model) -> Vec<(String, String)> {
    let prefix = model.keys().prefix();
    let bindings = model.keys().bindings().iter();
    let bound = bindings.flat_map(|binding| {
        let triggers = binding.triggers.iter();
        let chords = triggers.filter_map(|trigger| match trigger {
            Trigger::AfterPrefix(chord) => Some(chord.label()),
            Trigger::Direct(_) => None,
        });
        chords.map(|key| (key, binding.action.name().replace('-', " ")))
    });
    bound
        .chain([(prefix.label(), "to the agent".to_owned())])
        .collect()
}
