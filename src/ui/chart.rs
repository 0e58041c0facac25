//! The chart: how the context window has filled, turn by turn, with a tooth for each reboot, and the cost of each
//! iteration.
//!
//! ```text
//!  180k ┤
//!  153k ┤┄┄┄┄┄┄┄▆┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄ compact
//!  126k ┤┄┄┄┄┄▂▆█┄┄┄┄┄┄┄▂▆┄┄┄┄┄┄┄┄┄ warn
//!   90k ┤┄┄┄▆████┄┄┄┄▂▆███┄┄┄┄┄┄┄┄┄ notice
//!       │▂▄▆█████ ▃▅▆█████ ▁▂▃▄
//!     0 ┴#1       #2       #3
//!        $9.80    $6.35    $4.12
//! ```
//!
//! Every iteration of the run is there, and a turn is as wide in one as in another: several cells where there is room, and one cell
//! for several turns, with the highest figure of them, where there is too little. Of an iteration whose turns were not kept,
//! the first and the last figure are known, and drawn as two turns. A line is drawn in the middle of its cells, so a bar that has
//! passed it fills more than half of its cell there, and another less.

use ratatui::{
    buffer::Buffer,
    layout::Rect,
    text::{Line, Span},
};

use pitstop_core::{
    api::wire::AgentState,
    app::{Model, cost, facts::cost_of, forecast},
    guard::{Assessment, Threshold},
    lineage::Iteration,
};
use pitstop_transcript::Tokens;

use super::{frame, text, theme::Theme};

/// The bars of rising height.
const BARS: [&str; 8] = ["▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"];

/// The cells of the scale at the left.
const SCALE: usize = 8;

/// The widest that a turn is drawn.
const WIDEST_TURN: usize = 6;

/// The cells of a line's name at the right, where there is room for it beside the figures.
const NAME: usize = 9;

/// The smallest number of cells at which there is room for it.
const NAMED: usize = 60;

/// The fewest cells of an iteration, with the blank behind it.
const NARROWEST: usize = 2;

/// An iteration in the chart.
struct Tooth {
    number: String,
    /// True if the iteration is over: its figures need no person any more.
    has_ended: bool,
    cost: Option<f64>,
    /// The figures of its columns: at first one for each turn, then one for each cell.
    columns: Vec<Tokens>,
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
    let fitted = fit_teeth(list_teeth(model), room - named);
    let legend = legend_rows(model, &fitted, usize::from(inner.width), theme);
    let teeth = fitted.teeth;
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
    let mut lines = bar_rows(&teeth, &assessed, rows, room, theme);
    lines.extend(name_rows(&teeth, theme));
    lines.extend(legend);
    frame::rows(buf, inner, &lines);
}

/// The iterations as they fit into the chart.
struct Fitted {
    teeth: Vec<Tooth>,
    /// The number of turns in a column.
    turns: usize,
    /// The number of iterations that are left out, because a cell for each of them is too much.
    left_out: usize,
}

/// Returns the iterations of this run, oldest first, with a column for each turn.
fn list_teeth(model: &Model) -> Vec<Tooth> {
    let teeth = model.lineage.iterations().iter().map(|iteration| Tooth {
        number: format!("#{}", iteration.iteration),
        has_ended: !iteration.is_open(),
        cost: cost_of(iteration, model),
        columns: turn_columns(model, iteration),
    });
    teeth.filter(|tooth| !tooth.columns.is_empty()).collect()
}

/// Returns a column for each turn of an iteration; of one whose turns were not kept, its first and its last figure.
fn turn_columns(model: &Model, iteration: &Iteration) -> Vec<Tokens> {
    let kept: Vec<Tokens> = model.turns.of(iteration.iteration).collect();
    if !iteration.is_open() {
        let birth = iteration.tokens_at_birth.unwrap_or(Tokens(0));
        return match iteration.tokens_at_end {
            Some(end) if kept.is_empty() => vec![birth, end],
            _ => kept,
        };
    }
    let seen = model.session.guard.forecast().turns();
    // The guard has the turn that runs, but forgets the oldest ones of many.
    if seen.len() > kept.len() {
        return seen.map(|turn| turn.used).collect();
    }
    // A prompt that was refused has made its figure the last turn's, and begun none.
    let agent = &model.session.agent;
    let rests = matches!(agent.state, AgentState::Idle | AgentState::Limit);
    let is_kept = rests && kept.len() >= agent.turns as usize;
    let now = model.used().filter(|_| !is_kept);
    kept.into_iter().chain(now).collect()
}

/// Fits the iterations into so many cells, all of them if there is a cell for each.
fn fit_teeth(mut teeth: Vec<Tooth>, room: usize) -> Fitted {
    let most = room / NARROWEST;
    let left_out = teeth.len().saturating_sub(most);
    teeth.drain(..left_out);
    let cells = |turns: usize| -> usize {
        let columns = teeth
            .iter()
            .map(|tooth| tooth.columns.len().div_ceil(turns) + 1);
        columns.sum()
    };
    let longest = teeth
        .iter()
        .map(|tooth| tooth.columns.len())
        .max()
        .unwrap_or(0);
    let turns = (1..longest)
        .find(|turns| cells(*turns) <= room)
        .unwrap_or(longest.max(1));
    let columns = cells(turns) - teeth.len();
    let wide = room.saturating_sub(teeth.len()) / columns.max(1);
    let wide = wide.clamp(1, WIDEST_TURN);
    for tooth in &mut teeth {
        let groups = tooth.columns.chunks(turns);
        let highest = groups.filter_map(|of| of.iter().max());
        tooth.columns = highest
            .flat_map(|one| std::iter::repeat_n(*one, wide))
            .collect();
    }
    Fitted {
        teeth,
        turns,
        left_out,
    }
}

fn bar_rows(
    teeth: &[Tooth],
    assessed: &Assessment,
    rows: usize,
    room: usize,
    theme: &Theme,
) -> Vec<Line<'static>> {
    let highest = teeth.iter().flat_map(|tooth| &tooth.columns);
    let highest = highest.map(|used| used.0).max().unwrap_or(0);
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
                for used in &tooth.columns {
                    let sign = cell_sign(*used, top, row, rows, line.map(|(_, _, at)| *at));
                    let style = if tooth.has_ended || sign == "┄" {
                        theme.dim
                    } else {
                        theme.level(assessed.lines.level(*used))
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

/// Returns the sign of a column in a row, in which a line may lie.
fn cell_sign(
    used: Tokens,
    top: u64,
    row: usize,
    rows: usize,
    line: Option<Tokens>,
) -> &'static str {
    let eighths = (used.0 as f64 / top as f64 * (rows * 8) as f64) as usize;
    let below = (rows - 1 - row) * 8;
    let blank = if line.is_some() { "┄" } else { " " };
    let part = eighths.saturating_sub(below).min(8);
    // The line lies in the middle of the cell.
    let part = match line {
        Some(at) if used >= at => part.max(6),
        Some(_) => part.min(2),
        None => part,
    };
    if part == 0 { blank } else { BARS[part - 1] }
}

/// Returns the number and the cost below each tooth.
fn name_rows(teeth: &[Tooth], theme: &Theme) -> [Line<'static>; 2] {
    let blank = " ".repeat(SCALE - 1);
    let mut numbers = vec![Span::styled(
        format!("{:>width$} ┴", "0", width = SCALE - 1),
        theme.dim,
    )];
    let mut costs = vec![Span::raw(format!("{blank}  "))];
    for tooth in teeth {
        let wide = tooth.columns.len() + 1;
        let cost = tooth.cost.map(text::dollars).unwrap_or_default();
        // A word that is cut would be taken for another number.
        let below = |said: &str| {
            let fits = text::width(said) <= wide;
            format!("{:<wide$}", if fits { said } else { "" })
        };
        numbers.push(Span::styled(below(&tooth.number), theme.heading));
        costs.push(Span::styled(below(&cost), theme.text));
    }
    [Line::from(numbers), Line::from(costs)]
}

fn legend_rows(model: &Model, fitted: &Fitted, cells: usize, theme: &Theme) -> Vec<Line<'static>> {
    let now = model.current_iteration();
    let turns = now.map_or(0, |iteration| turn_columns(model, iteration).len());
    let mut said = vec![format!("{} in this iteration", text::count(turns, "turn"))];
    if let Some(cost) = cost::per_turn(model) {
        said.push(format!("{} a turn now", text::dollars(cost.now)));
        let fresh = cost.fresh.map(text::dollars);
        said.extend(fresh.map(|fresh| format!("about {fresh} in a fresh session")));
    }
    if fitted.turns > 1 {
        said.push(format!("a column is {} turns", fitted.turns));
    }
    if fitted.left_out > 0 {
        let iterations = text::count(fitted.left_out, "earlier iteration");
        said.push(format!("{iterations} not shown: no room"));
    }
    let has_turns = |one: &Iteration| one.is_open() || one.turns.is_none_or(|turns| turns <= 2);
    let is_whole =
        |one: &Iteration| has_turns(one) || model.turns.of(one.iteration).next().is_some();
    if !model.lineage.iterations().iter().all(is_whole) {
        said.push("of some iterations only the first and the last figure is kept".to_owned());
    }
    text::wrapped(said.join(" · "), theme.dim, cells)
}
