//! The views, one file per panel: they read the model and the screen, and never change anything.
//!
//! ```text
//!   Model, Screen ──▶ app::layout ──▶ pane · context · scratchpad · handoff · history · footer
//!                                     and the overlays: review, help, questions
//! ```
//!
//! Every text that was chosen outside passes through [`pitstop_base::clean`]; the child's cells are copied one by one. Views write
//! into ratatui's buffer, which is compared with the last one: cells that have not changed cost the host terminal nothing.

mod ascii;
mod banner;
mod chart;
mod contents;
mod copy;
pub mod extra;
mod footer;
mod frame;
mod gauge;
mod handoff;
mod help;
pub mod hint;
mod history;
mod hover;
mod markdown;
mod messages;
mod moment;
pub mod pane;
pub mod picker;
mod prefix;
mod reading;
mod replay;
mod review;
mod run;
mod scratchpad;
mod text;
pub mod theme;
mod tour;
pub mod transcript;

use ratatui::{Frame, buffer::Buffer, layout::Rect};

use pitstop_core::app::{
    Model,
    layout::{self, Layout},
    model::{Focus, Overlay},
};
use pitstop_terminal::screen::{CursorShape, Screen};

pub use footer::draw_terminal_hint;
pub use theme::{Depth, Theme};

/// The host terminal's cursor as it has to be after a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HostCursor {
    /// The column in cells, from 0.
    pub column: u16,
    /// The row in cells, from 0.
    pub row: u16,
    /// True if the cursor is shown. The position counts even when not: input methods open there.
    pub visible: bool,
    /// The shape of the cursor.
    pub shape: CursorShape,
    /// True if the cursor blinks.
    pub blinking: bool,
}

/// Draws everything: the layout, then each rectangle, then the parts that lie over them.
pub fn draw(frame: &mut Frame, model: &Model, screen: &Screen, theme: &Theme) {
    let cursor = paint(frame.buffer_mut(), model, screen, theme);
    if let Some(cursor) = cursor.filter(|cursor| cursor.visible) {
        frame.set_cursor_position((cursor.column, cursor.row));
    }
}

/// Paints a whole frame and returns the place of the cursor, if there is one.
pub fn paint(
    buf: &mut Buffer,
    model: &Model,
    screen: &Screen,
    theme: &Theme,
) -> Option<HostCursor> {
    let area = buf.area;
    let layout = clip_layout(layout::layout(model), area);
    if layout.too_small {
        footer::too_small(buf, area, theme);
        return None;
    }
    draw_rectangles(buf, &layout, model, screen, theme);
    draw_overlay(buf, &layout, model, theme);
    prefix::draw(buf, &layout, model, theme);
    footer::draw(buf, &layout, model, screen, theme);
    if theme.ascii {
        let covered = pane_covered(model);
        ascii::replace_signs(buf, (!covered).then(|| layout.pane_inner()));
    }
    cursor(model, screen).filter(|at| at.column < area.width && at.row < area.height)
}

/// Returns the rectangle of the child's cells, if they are all of the screen that a child's output can change: no overlay
/// covers them, and the scrollback is not shown.
pub fn pane_alone(layout: &Layout, model: &Model, screen: &Screen) -> Option<Rect> {
    let pane = layout.pane_inner();
    let covered = pane_covered(model)
        || layout
            .panels
            .iter()
            .any(|(_, panel)| panel.intersects(pane));
    let scrolled = model.view.copy.is_on() || screen.is_reported_scrolled();
    (!layout.too_small && !covered && !scrolled).then_some(pane)
}

/// Reports whether something lies over the whole pane.
pub fn pane_covered(model: &Model) -> bool {
    let large = model.view.history.detail || model.view.history.run_view;
    model.view.overlay.is_some()
        || prefix::is_shown(model)
        || moment::is_shown(model)
        || (large && model.view.focus == Focus::History)
}

/// Returns the layout as far as it lies on the host terminal: between a resize and its report they may differ.
fn clip_layout(mut layout: Layout, area: Rect) -> Layout {
    if layout.whole == area {
        return layout;
    }
    let clip = |rect: Rect| rect.intersection(area);
    layout.too_small |= area.width < layout::SMALLEST.0 || area.height < layout::SMALLEST.1;
    layout.whole = area;
    layout.pane = clip(layout.pane);
    layout.context = layout.context.map(clip).filter(|rect| !rect.is_empty());
    for (_, rect) in &mut layout.panels {
        *rect = clip(*rect);
    }
    layout.panels.retain(|(_, rect)| !rect.is_empty());
    layout.footer = clip(layout.footer);
    layout
}

fn draw_rectangles(
    buf: &mut Buffer,
    layout: &Layout,
    model: &Model,
    screen: &Screen,
    theme: &Theme,
) {
    pane::draw(buf, layout, model, screen, theme);
    tour::draw(buf, layout, model, theme);
    moment::draw(buf, layout.pane_inner(), model, theme);
    if let Some(area) = layout.context {
        gauge::draw(buf, area, model, theme);
    }
    for (panel, area) in &layout.panels {
        // A panel may lie over the pane.
        frame::clear(buf, *area);
        match panel {
            Focus::Pane => {}
            Focus::Scratchpad => scratchpad::draw(buf, *area, model, theme),
            Focus::Handoff => handoff::draw(buf, *area, model, theme),
            Focus::History if run::has_panel(model) => run::draw_panel(buf, *area, model, theme),
            Focus::History => history::draw(buf, *area, model, theme),
        }
    }
    if model.view.focus == Focus::History && model.view.history.run_view {
        run::draw_view(buf, layout.pane, model, theme);
    } else if model.view.focus == Focus::History && model.view.history.detail {
        history::detail::draw(buf, layout.pane, model, theme);
    }
}

fn draw_overlay(buf: &mut Buffer, layout: &Layout, model: &Model, theme: &Theme) {
    match model.view.overlay {
        None => {}
        Some(Overlay::Help { scroll }) => help::draw(buf, layout.whole, model, scroll, theme),
        Some(Overlay::Review) => review::draw(buf, layout.whole, model, theme),
        Some(Overlay::Replay { iteration }) => {
            replay::draw(buf, layout.whole, model, iteration, theme);
        }
        Some(Overlay::Messages { scroll }) => {
            messages::draw(buf, layout.whole, model, scroll, theme);
        }
        Some(Overlay::Chart) => chart::draw(buf, layout.whole, model, theme),
        Some(Overlay::Contents { scroll }) => {
            contents::draw(buf, layout.whole, model, scroll, theme);
        }
        Some(Overlay::Quit) => {
            help::draw_quit(buf, layout.pane_inner(), model, theme);
        }
        Some(Overlay::Exited) => {
            help::draw_exited(buf, layout.pane_inner(), model, theme);
        }
    }
}

/// Returns the place of the host terminal's cursor: at the child's, or at the editor's while one has the keys. Call it
/// after [`draw`]: an editor knows how far it is scrolled only once it was drawn.
pub fn cursor(model: &Model, screen: &Screen) -> Option<HostCursor> {
    let layout = layout::layout(model);
    if layout.too_small {
        return None;
    }
    let typing = |(column, row)| HostCursor {
        column,
        row,
        visible: true,
        shape: CursorShape::Bar,
        blinking: false,
    };
    match (model.view.overlay, model.view.focus) {
        (Some(Overlay::Review), _) => {
            review::editor_cursor(layout.whole, model, &Theme::default()).map(typing)
        }
        (Some(_), _) => None,
        (None, Focus::Pane) => match copy::search_cursor(model, layout.footer.width) {
            Some(column) => Some(typing((layout.footer.x + column, layout.footer.y))),
            None => pane_cursor(&layout, screen),
        },
        (None, focus) => {
            let (_, area) = layout.panels.iter().find(|(panel, _)| *panel == focus)?;
            let inner = ratatui::widgets::Block::bordered().inner(*area);
            let editor = match focus {
                Focus::Scratchpad => model.draft.notes.editor()?,
                Focus::Handoff => model.draft.handoff.editor.as_ref()?,
                Focus::Pane | Focus::History => return None,
            };
            scratchpad::editor_cursor(inner, editor).map(typing)
        }
    }
}

fn pane_cursor(layout: &Layout, screen: &Screen) -> Option<HostCursor> {
    let inner = layout.pane_inner();
    let cursor = screen.cursor();
    let inside = cursor.column < inner.width && cursor.row < inner.height;
    inside.then(|| HostCursor {
        column: inner.x + cursor.column,
        row: inner.y + cursor.row,
        visible: cursor.visible,
        shape: cursor.shape,
        blinking: cursor.blinking,
    })
}
