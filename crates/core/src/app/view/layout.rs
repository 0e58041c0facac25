//! The layout: the rectangles that the pane and each panel get at a given size.
//!
//! ```text
//! ≥ 132 columns    pane left, four panels right
//! 118–131          pane left, two panels right
//! 100–117          pane above, two panels in a strip below it (if there are rows for it)
//! < 100, zoomed    the pane alone; a panel that has the focus lies over it
//! < 40×10          a notice
//! ```
//!
//! The pane keeps 80 columns inside its border wherever the host terminal has them.

use ratatui::layout::{Margin, Position, Rect};

use pitstop_handoff::scratchpad;
use pitstop_terminal::PaneSize;

use crate::app::model::{Focus, Model};

/// The smallest host terminal that is drawn on, in cells.
pub const SMALLEST: (u16, u16) = (40, 10);

/// The place of everything on the screen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Layout {
    /// The whole host terminal.
    pub whole: Rect,
    /// The pane with its border, if it has one.
    pub pane: Rect,
    /// True if the pane has a border.
    pub bordered: bool,
    /// The context panel.
    pub context: Option<Rect>,
    /// The other panels that are shown.
    pub panels: Vec<(Focus, Rect)>,
    /// The footer: one line.
    pub footer: Rect,
    /// True if the footer has to show the gauge too.
    pub strip: bool,
    /// True if the host terminal is too small to draw on.
    pub too_small: bool,
}

impl Layout {
    /// Returns the rectangle of the hosted program's cells.
    pub fn pane_inner(&self) -> Rect {
        if self.bordered {
            self.pane.inner(Margin::new(1, 1))
        } else {
            self.pane
        }
    }

    /// Returns the width of the panels beside the pane; 0 if there are none.
    pub fn width_beside(&self) -> u16 {
        self.whole.width.saturating_sub(self.pane.width)
    }

    /// Returns the size that the hosted program gets.
    pub fn pane_size(&self) -> PaneSize {
        let inner = self.pane_inner();
        PaneSize::new(inner.width, inner.height)
    }

    /// Returns the pane's cell at a cell of the host terminal, if it lies there and no panel over it.
    pub fn cell_of_pane(&self, column: u16, row: u16) -> Option<(u16, u16)> {
        let inner = self.pane_inner();
        let there =
            inner.contains((column, row).into()) && self.at(column, row) == Some(Focus::Pane);
        there.then(|| (column - inner.x, row - inner.y))
    }

    /// Returns the pane's cell nearest to a cell of the host terminal in its row, which may lie above the pane (negative) or below it.
    pub fn beside_pane(&self, column: u16, row: u16) -> (u16, i32) {
        let inner = self.pane_inner();
        let last = inner.width.saturating_sub(1);
        let column = column.saturating_sub(inner.x).min(last);
        (column, i32::from(row) - i32::from(inner.y))
    }

    /// Returns what lies at a cell of the host terminal.
    pub fn at(&self, column: u16, row: u16) -> Option<Focus> {
        let point = Position::new(column, row);
        let mut panels = self.panels.iter().rev();
        let panel = panels.find(|(_, area)| area.contains(point));
        let pane = self.pane.contains(point).then_some(Focus::Pane);
        panel.map(|(focus, _)| *focus).or(pane)
    }
}

/// Lays out the screen.
pub fn layout(model: &Model) -> Layout {
    let (columns, rows) = model.view.host;
    let whole = Rect::new(0, 0, columns, rows);
    let body = Rect::new(0, 0, columns, rows.saturating_sub(1));
    let footer = Rect::new(0, body.height, columns, rows.min(1));
    let mut layout = Layout {
        whole,
        pane: body,
        bordered: false,
        context: None,
        panels: Vec::new(),
        footer,
        strip: true,
        too_small: columns < SMALLEST.0 || rows < SMALLEST.1,
    };
    if layout.too_small {
        return layout;
    }
    if model.view.zoomed || columns < 100 {
        overlay_focused(&mut layout, model);
        return layout;
    }
    layout.bordered = true;
    if columns >= 132 {
        let width = panel_width(columns, model);
        column(&mut layout, body, width, &Focus::ALL[1..], model);
    } else if columns >= 118 {
        let panels = [second_panel(model)];
        column(&mut layout, body, columns - 82, &panels, model);
    } else {
        strip(&mut layout, body, second_panel(model));
    }
    let mut shown = layout.panels.iter();
    if !shown.any(|(focus, _)| *focus == model.view.focus) {
        overlay_focused(&mut layout, model);
    }
    layout
}

/// Returns the panels' width in cells: what a person has set by key or mouse, otherwise what the configuration sets; the pane keeps
/// its 80 columns.
fn panel_width(columns: u16, model: &Model) -> u16 {
    let wanted = model.view.panel_width.or(model.config.ui.panel_width);
    let wanted = wanted.unwrap_or_else(|| (columns * 3 / 10).clamp(36, 60));
    wanted.min(columns.saturating_sub(82))
}

/// Returns the cells of the review's two columns on a terminal of this width: those of the decision at the left, 0 where it is
/// above the handoff, and those of the handoff.
pub fn review_columns(columns: u16) -> (u16, u16) {
    let inner = columns.saturating_sub(4);
    if inner < REVIEW_IN_TWO {
        return (0, inner);
    }
    let left = (inner * 2 / 5).clamp(46, 66);
    (left, inner - left - 3)
}

/// Returns the panel that is shown when there is room for one beside the gauge: the focused one, otherwise the scratchpad, or
/// during a reboot the handoff.
fn second_panel(model: &Model) -> Focus {
    match model.view.focus {
        Focus::Pane if model.reboot.attempt.is_some() => Focus::Handoff,
        Focus::Pane => Focus::Scratchpad,
        focus => focus,
    }
}

/// The smallest width of the review, inside of its border, at which there are two columns.
const REVIEW_IN_TWO: u16 = 116;

/// The smallest number of rows in which the context panel makes sense, and that in which another panel does.
const LEAST: (u16, u16) = (5, 4);

/// Lays out panels in a column at the right: the gauge as high as it needs, the rest shared by need.
fn column(layout: &mut Layout, body: Rect, width: u16, panels: &[Focus], model: &Model) {
    let focus = model.view.focus;
    layout.strip = false;
    layout.pane = Rect {
        width: body.width - width,
        ..body
    };
    let x = layout.pane.right();
    let mut panels = panels.to_vec();
    let least = |count: usize| LEAST.1 * count as u16;
    // A panel of a row or two shows nothing: it gives way, the focused one last.
    while panels.len() > 1 && body.height < LEAST.0 + least(panels.len()) {
        let gone = panels.iter().rposition(|panel| *panel != focus);
        panels.remove(gone.unwrap_or(0));
    }
    // Limits and the base load are shown where the other panels can spare the rows.
    let wanted = match body.height {
        44.. => {
            let limits = model.session.agent.limits.len() as u16;
            let client = u16::from(model.session.client.limit().is_some());
            (12 + limits + client).min(14)
        }
        34..44 => 11,
        _ => 8,
    };
    let room = body.height.saturating_sub(least(panels.len()));
    let gauge = wanted.min(room.max(LEAST.0)).min(body.height);
    layout.context = Some(Rect::new(x, body.y, width, gauge));
    let mut y = body.y + gauge;
    let heights = heights(&panels, body.height - gauge, width, model);
    for (panel, height) in panels.into_iter().zip(heights) {
        if height > 0 {
            let area = Rect::new(x, y, width, height);
            layout.panels.push((panel, area));
        }
        y += height;
    }
}

/// Returns how the rows are shared: each panel gets what it needs first, then all have their part of the rest.
fn heights(panels: &[Focus], rows: u16, width: u16, model: &Model) -> Vec<u16> {
    let mut heights: Vec<u16> = panels.iter().map(|_| 0).collect();
    let needs: Vec<u16> = panels.iter().map(|one| need(*one, width, model)).collect();
    for _ in 0..rows {
        let wants = |at: &usize| heights[*at] < needs[*at];
        let some_want = (0..panels.len()).any(|at| wants(&at));
        let takes = (0..panels.len()).filter(|at| !some_want || wants(at));
        // The panel that has the smallest part of its share gets the row, in lengths that all can be divided by.
        let filled = |at: &usize| {
            let (height, share) = (
                u32::from(heights[*at]),
                u32::from(share(panels[*at], model)),
            );
            (height >= u32::from(LEAST.1), height * 12 / share)
        };
        match takes.min_by_key(filled) {
            Some(at) => heights[at] += 1,
            None => break,
        }
    }
    heights
}

/// Returns a panel's share of the rows: the scratchpad and the handoff are read; the history is glanced at, the run in its place is
/// watched; the focused panel is worked in.
fn share(panel: Focus, model: &Model) -> u16 {
    match panel {
        panel if panel == model.view.focus => 6,
        Focus::History if model.autopilot.is_some() => 4,
        Focus::History => 2,
        _ => 3,
    }
}

/// Returns the rows that a panel needs, its border among them, as far as that is known without laying it out.
fn need(panel: Focus, width: u16, model: &Model) -> u16 {
    let cells = usize::from(width.saturating_sub(2).max(1));
    let rows = match panel {
        // A panel that is worked in may become longer.
        Focus::Scratchpad if model.draft.notes.editor().is_some() => MOST,
        Focus::Handoff if model.draft.handoff.is_worked_in() => MOST,
        Focus::Scratchpad => {
            let lines = scratchpad::without_title(model.draft.notes.text()).split('\n');
            let rows = |line: &str| line.chars().take(MOST * cells).count().div_ceil(cells);
            // A panel cannot ask for more lines than that.
            lines.take(MOST).map(|line| rows(line).max(1)).sum()
        }
        // The next step is open, with a blank row below it, and the others are folded.
        Focus::Handoff => {
            let handoff = model.draft.handoff.current();
            let sections = handoff.text.matches("\n## ").count();
            sections + 3 + handoff.warnings.len() * 2
        }
        // Each iteration takes two rows, and those of the runs before this one are added.
        Focus::History if model.autopilot.is_none() => {
            let earlier = &model.view.history.earlier;
            let before: usize = earlier.iter().map(|run| run.iterations.len() * 2 + 1).sum();
            model.lineage.iterations().len() * 2 + before
        }
        Focus::History | Focus::Pane => MOST,
    };
    rows.min(MOST) as u16 + 2
}

/// The largest number of rows that a panel asks for.
const MOST: usize = 60;

/// Lays out two panels side by side below the pane.
fn strip(layout: &mut Layout, body: Rect, panel: Focus) {
    const HEIGHT: u16 = 8;
    if body.height < 20 + HEIGHT {
        return;
    }
    layout.strip = false;
    layout.pane = Rect {
        height: body.height - HEIGHT,
        ..body
    };
    let y = layout.pane.bottom();
    let half = body.width / 2;
    layout.context = Some(Rect::new(0, y, half, HEIGHT));
    let rest = Rect::new(half, y, body.width - half, HEIGHT);
    layout.panels.push((panel, rest));
}

/// Lays a panel that has the focus but no place over the whole pane: cut words of the agent's beside the panel would look like a fault.
fn overlay_focused(layout: &mut Layout, model: &Model) {
    if model.view.focus != Focus::Pane {
        let area = Rect {
            height: layout.whole.height.saturating_sub(1),
            ..layout.whole
        };
        layout.panels.push((model.view.focus, area));
    }
}
