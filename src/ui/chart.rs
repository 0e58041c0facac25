//! The chart: how the context window has filled, turn by turn, with a tooth for each reboot, and the cost of each
//! iteration.
//!
//! ```text
//!  180k ┤
//!  153k ┤┄┄┄┄┄┄┄▆┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄ compact
//!  126k ┤┄┄┄┄┄·┄█┄┄┄┄┄┄┄┄▆┄┄┄┄┄┄┄┄┄ warn
//!   90k ┤┄┄┄·┄┄┄█┄┄┄┄·┄┄┄█┄┄┄┄┄┄┄┄┄ notice
//!       │▂··    █ ▃··    █ ▁▂▃▄
//!     0 ┴#1       #2       #3
//!        $9.80    $6.35    $4.12
//! ```
//!
//! Of earlier iterations the first and the last figure are known; the figures between them are hinted at by a straight line
//! of dots. A line is drawn in the middle of its cells, so a bar that has passed it fills more than half of its cell there,
//! and another less.

use ratatui::{
    buffer::Buffer,
    layout::Rect,
    text::{Line, Span},
};

use pitstop_core::{
    app::{Model, cost, facts::cost_of, forecast},
    guard::{Assessment, Threshold},
};
use pitstop_transcript::Tokens;

use super::{frame, gauge::BARS, text, theme::Theme};

/// The cells of the scale at the left.
const SCALE: usize = 8;

/// The widest that a turn is drawn.
const WIDEST_TURN: usize = 12;

/// The cells of a line's name at the right, where there is room for it beside the figures.
const NAME: usize = 9;

/// The number of cells from which on there is room for it.
const NAMED: usize = 60;

/// The columns of an earlier iteration.
const EARLIER: usize = 8;

/// A column of the chart.
#[derive(Clone, Copy)]
struct Column {
    used: Tokens,
    /// True if the figure is measured; else it lies on the line between two figures.
    known: bool,
}

/// An iteration in the chart.
struct Tooth {
    number: String,
    /// True if the iteration is over: its figures need no person any more.
    has_ended: bool,
    cost: Option<f64>,
    columns: Vec<Column>,
}

/// Draws the chart over everything but the footer.
pub(super) fn draw(buf: &mut Buffer, whole: Rect, model: &Model, theme: &Theme) {
    let mut name = "Context over the turns".to_owned();
    if let Some(now) = model.session.guard.figure(model.now) {
        let (used, usable) = (text::tokens(now.used), text::tokens(now.usable));
        let (percent, level) = (text::percent(now.percent), now.level.label());
        name.push_str(&format!(" · {used} of {usable} now, {percent} % {level}"));
        let left = forecast::report(model).as_ref().and_then(forecast::left);
        let named = left.map(|left| format!("{name} · {left}"));
        // The frame and a blank on either side of the title.
        let room = usize::from(whole.width).saturating_sub(4);
        name = named.filter(|one| text::width(one) <= room).unwrap_or(name);
    }
    let (area, inner) = frame::page(buf, whole, &name, theme);
    frame::foot(buf, area, &["c what fills it", "Esc close"], "", theme);
    let room = usize::from(inner.width).saturating_sub(SCALE + 1);
    let named = if room < NAMED { 0 } else { NAME };
    let teeth = teeth(model, room - named);
    let legend = legend(model, usize::from(inner.width), theme);
    let rows = usize::from(inner.height).saturating_sub(2 + legend.len());
    if teeth.is_empty() || room < 8 || rows < 3 {
        let said = "No figure yet: the chart begins with the agent's first answer.";
        let said = text::fit(said, usize::from(inner.width));
        frame::rows(buf, inner, &[frame::row(said, theme.dim)]);
        return;
    }
    let assessed = model
        .session
        .guard
        .assess(model.used().unwrap_or(Tokens(0)));
    let mut lines = bars(&teeth, &assessed, rows, room, theme);
    lines.extend(names(&teeth, theme));
    lines.extend(legend);
    frame::rows(buf, inner, &lines);
}

/// Returns the iterations of this run that fit, oldest first.
fn teeth(model: &Model, room: usize) -> Vec<Tooth> {
    let mut teeth = Vec::new();
    let mut left = room;
    let turns: Vec<Tokens> = model
        .session
        .guard
        .forecast()
        .turns()
        .map(|turn| turn.used)
        .collect();
    let now = model.used();
    let earlier = model.lineage.iterations().len().saturating_sub(1) * (EARLIER + 1);
    for iteration in model.lineage.iterations().iter().rev() {
        let open = iteration.is_open();
        let columns = if open {
            // At least half of the room, however many went before.
            let wide = left.saturating_sub(earlier).max(left / 2);
            present(&turns, now, left, wide)
        } else {
            past(iteration.tokens_at_birth, iteration.tokens_at_end)
        };
        if columns.is_empty() {
            continue;
        }
        if columns.len() + 1 > left {
            break;
        }
        left -= columns.len() + 1;
        teeth.push(Tooth {
            number: format!("#{}", iteration.iteration),
            has_ended: !open,
            cost: cost_of(iteration, model),
            columns,
        });
    }
    teeth.reverse();
    teeth
}

/// Returns the turns of the iteration that runs, together no wider than `wanted` if that shows them all; the newest if not
/// all fit.
fn present(turns: &[Tokens], now: Option<Tokens>, room: usize, wanted: usize) -> Vec<Column> {
    let known = |used: &Tokens| Column {
        used: *used,
        known: true,
    };
    if turns.is_empty() {
        return now.iter().map(known).collect();
    }
    let wide = (wanted.saturating_sub(1) / turns.len()).clamp(1, WIDEST_TURN);
    let most = room.saturating_sub(1) / wide;
    let shown = &turns[turns.len().saturating_sub(most)..];
    let columns = shown
        .iter()
        .flat_map(|used| std::iter::repeat_n(known(used), wide));
    columns.collect()
}

/// Returns the columns of an iteration of which the first and the last figure are known.
fn past(birth: Option<Tokens>, end: Option<Tokens>) -> Vec<Column> {
    let Some(end) = end else { return Vec::new() };
    let birth = birth.unwrap_or(Tokens(0));
    let last = EARLIER as u64 - 1;
    let low = birth.0.min(end.0);
    let columns = (0..=last).map(|at| Column {
        used: Tokens(low + (end.0 - low) / last * at),
        known: at == 0 || at == last,
    });
    columns.collect()
}

fn bars(
    teeth: &[Tooth],
    assessed: &Assessment,
    rows: usize,
    room: usize,
    theme: &Theme,
) -> Vec<Line<'static>> {
    let highest = teeth.iter().flat_map(|tooth| &tooth.columns);
    let highest = highest.map(|column| column.used.0).max().unwrap_or(0);
    let top = assessed.usable.0.max(highest).max(1);
    // The row, from the top, that a figure lies in.
    let row_of = |at: Tokens| {
        let share = at.0.min(top) as f64 / top as f64;
        rows - 1 - ((share * rows as f64) as usize).min(rows - 1)
    };
    let named = [Threshold::Notice, Threshold::Warn, Threshold::Compact].map(|line| {
        let at = assessed.lines.at(line);
        (row_of(at), line, at)
    });
    (0..rows)
        .map(|row| {
            let line = named.iter().rev().find(|(at, ..)| *at == row);
            let label = match line {
                Some((_, _, at)) => text::rough(*at),
                None if row == 0 => text::rough(Tokens(top)),
                None => String::new(),
            };
            let axis = if label.is_empty() { "│" } else { "┤" };
            let mut spans = vec![
                Span::styled(format!("{label:>width$} ", width = SCALE - 1), theme.dim),
                Span::styled(axis, theme.border),
            ];
            let mut drawn = 0;
            for tooth in teeth {
                for column in &tooth.columns {
                    let sign = cell(*column, top, row, rows, line.map(|(_, _, at)| *at));
                    let style = if tooth.has_ended || matches!(sign, "┄" | DOT) {
                        theme.dim
                    } else {
                        theme.level(assessed.lines.level(column.used))
                    };
                    spans.push(Span::styled(sign, style));
                }
                spans.push(Span::styled(
                    if line.is_some() { "┄" } else { " " },
                    theme.dim,
                ));
                drawn += tooth.columns.len() + 1;
            }
            if let Some((_, name, _)) = line {
                let name = format!(" {name}");
                let rest = room.saturating_sub(drawn);
                let dashes = rest.saturating_sub(NAME);
                spans.push(Span::styled("┄".repeat(dashes), theme.dim));
                if name.len() <= rest {
                    spans.push(Span::styled(name, theme.dim));
                }
            }
            Line::from(spans)
        })
        .collect()
}

/// The mark at the place of a figure that is not known.
const DOT: &str = "·";

/// Returns the sign of a column in a row, in which a line may lie.
fn cell(column: Column, top: u64, row: usize, rows: usize, line: Option<Tokens>) -> &'static str {
    let eighths = (column.used.0 as f64 / top as f64 * (rows * 8) as f64) as usize;
    let below = (rows - 1 - row) * 8;
    let blank = if line.is_some() { "┄" } else { " " };
    if !column.known {
        let is_top = (below..below + 8).contains(&eighths);
        return if is_top { DOT } else { blank };
    }
    let part = eighths.saturating_sub(below).min(8);
    // The line lies in the middle of the cell.
    let part = match line {
        Some(at) if column.used >= at => part.max(6),
        Some(_) => part.min(2),
        None => part,
    };
    if part == 0 { blank } else { BARS[part - 1] }
}

/// Returns the number and the cost below each tooth.
fn names(teeth: &[Tooth], theme: &Theme) -> [Line<'static>; 2] {
    let blank = " ".repeat(SCALE - 1);
    let mut numbers = vec![Span::styled(
        format!("{:>width$} ┴", "0", width = SCALE - 1),
        theme.dim,
    )];
    let mut costs = vec![Span::raw(format!("{blank}  "))];
    for tooth in teeth {
        let wide = tooth.columns.len() + 1;
        let cost = tooth.cost.map(text::dollars).unwrap_or_default();
        let below = |said: &str| format!("{:<wide$}", text::fit(said, wide));
        numbers.push(Span::styled(below(&tooth.number), theme.heading));
        costs.push(Span::styled(below(&cost), theme.text));
    }
    [Line::from(numbers), Line::from(costs)]
}

fn legend(model: &Model, cells: usize, theme: &Theme) -> Vec<Line<'static>> {
    let turns = text::count(model.session.guard.forecast().turns().len(), "turn");
    let mut said = vec![format!("{turns} in this iteration")];
    if let Some(cost) = cost::per_turn(model) {
        said.push(format!("{} a turn now", text::dollars(cost.now)));
        let fresh = cost.fresh.map(text::dollars);
        said.extend(fresh.map(|fresh| format!("about {fresh} in a fresh session")));
    }
    if model.lineage.iterations().len() > 1 {
        said.push("earlier ones: only first and last figure known".to_owned());
    }
    text::wrapped(said.join(" · "), theme.dim, cells)
}
