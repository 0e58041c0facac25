//! The context panel: how full the context window is, who says so, and what comes next.
//!
//! ```text
//!  ██████████████▌····┊··┊··
//!  128.4k of 180k usable          71%
//!  warn 126k · compact 153k
//!  +4.1k/turn · 5–8 turns left
//!  status line · 2 s ago · $4.12
//!  $0.31 a turn · ~$0.04 fresh
//!  cache warm for 4 min
//!  client compacts at 967k · its default
//! ```
//!
//! Each line has a rank; a panel of few rows shows the lines of the first ranks, in the order of the page.

use ratatui::{
    buffer::Buffer,
    layout::Rect,
    style::{Modifier, Style},
    text::{Line, Span},
};

use crate::{
    api::wire::AgentState,
    app::{Model, cost, report, trim},
    guard::{Advice, Assessment, Figure, Lines, Threshold},
    keymap::Action,
    transcript::Tokens,
};

use super::{
    frame, text,
    text::{dollars, tokens},
    theme::Theme,
};

/// Blocks from one eighth to a whole cell.
const EIGHTHS: [&str; 8] = ["▏", "▎", "▍", "▌", "▋", "▊", "▉", "█"];

/// Bars of rising height.
const BARS: [&str; 8] = ["▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"];

/// Draws the context panel.
pub(super) fn draw(buf: &mut Buffer, area: Rect, model: &Model, theme: &Theme) {
    let figure = model.guard.figure(model.now);
    let mut title = frame::title("Context", false, theme);
    if let Some(figure) = &figure {
        let style = theme.level(figure.level).add_modifier(Modifier::BOLD);
        title.push_span(Span::styled(format!("· {} ", figure.level.word()), style));
    }
    let inner = frame::border(buf, area, title, false, theme);
    if inner.is_empty() {
        return;
    }
    let cells = usize::from(inner.width);
    let lines = match &figure {
        Some(figure) => known(figure, model, theme, cells),
        None => unknown(model, theme, cells),
    };
    frame::rows(buf, inner, &ranked(lines, usize::from(inner.height)));
}

/// Keeps as many lines as there is room for, those of the lowest ranks.
fn ranked(mut lines: Vec<(u8, Line<'static>)>, room: usize) -> Vec<Line<'static>> {
    while lines.len() > room {
        let worst = (0..lines.len()).max_by_key(|at| (lines[*at].0, *at));
        match worst {
            Some(worst) => lines.remove(worst),
            None => break,
        };
    }
    lines.into_iter().map(|(_, line)| line).collect()
}

fn known(figure: &Figure, model: &Model, theme: &Theme, cells: usize) -> Vec<(u8, Line<'static>)> {
    let level = theme.level(figure.level);
    let percent = format!("{:.0}%", figure.percent);
    let mut ranked = vec![
        (
            0,
            bar(
                figure.used,
                figure.usable,
                &figure.lines,
                level,
                theme,
                cells,
            ),
        ),
        (
            1,
            between(
                &format!(
                    "{} of {} usable",
                    tokens(figure.used),
                    tokens(figure.usable)
                ),
                theme.text,
                percent,
                level.add_modifier(Modifier::BOLD),
                cells,
            ),
        ),
    ];
    if figure.advice == Advice::SaveAndReboot && model.reboot.attempt.is_none() {
        let key = model.keys().hint(Action::Reboot).unwrap_or_default();
        let advice = text::join(&["time for a reboot".to_owned(), key], cells);
        ranked.push((2, frame::row(advice, level.add_modifier(Modifier::BOLD))));
    }
    if let Some(other) = &figure.disagreement {
        let points = format!("{:+.0} points", other.points).replace('-', "−");
        let said = format!("{} says {} ({points})", other.source, tokens(other.used));
        ranked.push((
            3,
            frame::row(text::fit(&format!("≠ {said}"), cells), theme.bad),
        ));
    }
    ranked.push((5, thresholds(&figure.lines, theme, cells)));
    if let Some(growth) = growth(model) {
        ranked.push((4, frame::row(text::join(&growth, cells), theme.text)));
    }
    let mut source = vec![figure.source.word().to_owned(), text::ago(figure.age)];
    if figure.stale {
        source.push("stale".to_owned());
    }
    source.extend(model.agent.cost_usd.map(dollars));
    let style = if figure.stale { theme.bad } else { theme.dim };
    ranked.push((6, frame::row(text::join(&source, cells), style)));
    ranked.extend(turn_cost(model, theme, cells));
    ranked.extend(cache(model, theme, cells));
    ranked.extend(limits(model, theme, cells));
    ranked.extend(client(&figure.lines, model, theme, cells));
    ranked.push((8, base(figure.window, model, theme, cells)));
    if let Some(curve) = curve(figure, model, theme, cells) {
        ranked.push((9, curve));
    }
    if let Some(name) = &model.agent.model {
        let name = text::fit(&text::safe(name), cells).into_owned();
        ranked.push((10, frame::row(name, theme.dim)));
    }
    ranked
}

fn unknown(model: &Model, theme: &Theme, cells: usize) -> Vec<(u8, Line<'static>)> {
    let nothing = assumed(model);
    let (awaited, detail) = match model.agent.state {
        AgentState::Starting => ("no figure yet", "waits for the agent to start"),
        AgentState::Exited => ("no figure", "the agent is not running"),
        _ if model.is_generic() => ("no figure yet", "an estimate follows its first output"),
        _ => ("no figure yet", "waits for the agent's first answer"),
    };
    let mut ranked = vec![
        (
            0,
            bar(
                Tokens(0),
                nothing.usable,
                &nothing.lines,
                theme.dim,
                theme,
                cells,
            ),
        ),
        (1, frame::row(awaited, theme.text)),
        (2, frame::row(text::fit(detail, cells), theme.dim)),
        (5, thresholds(&nothing.lines, theme, cells)),
    ];
    ranked.extend(limits(model, theme, cells));
    ranked.extend(client(&nothing.lines, model, theme, cells));
    ranked.push((8, base(nothing.window, model, theme, cells)));
    ranked
}

/// An empty window of the size we believe in.
fn assumed(model: &Model) -> Assessment {
    model.guard.assess(Tokens(0))
}

/// Usage limits with their resets, as the agent tells them.
fn limits(model: &Model, theme: &Theme, cells: usize) -> Vec<(u8, Line<'static>)> {
    let said = model.agent.limits.iter();
    said.map(|limit| {
        (
            7,
            frame::row(text::fit(&text::safe(limit), cells), theme.dim),
        )
    })
    .collect()
}

/// What a turn costs now and in a fresh session, once that is known.
fn turn_cost(model: &Model, theme: &Theme, cells: usize) -> Option<(u8, Line<'static>)> {
    let cost = cost::per_turn(model)?;
    let mut said = vec![format!("{} a turn", dollars(cost.now))];
    said.extend(cost.fresh.map(|fresh| format!("~{} fresh", dollars(fresh))));
    Some((7, frame::row(text::join(&said, cells), theme.text)))
}

/// Whether the next call still reads from the prompt cache, and for how long.
fn cache(model: &Model, theme: &Theme, cells: usize) -> Option<(u8, Line<'static>)> {
    let cache = report::cache(model)?;
    let mut said = Vec::new();
    if cache.warm {
        let left = cache
            .expires_at
            .and_then(|at| at.signed_duration_since(model.now.wall).to_std().ok());
        said.push(left.map_or_else(
            || "cache warm".to_owned(),
            |left| format!("cache warm for {}", text::span(left)),
        ));
    } else {
        said.push("cache cold".to_owned());
        let again = cache.recache_tokens.map(Tokens);
        said.extend(again.map(|count| format!("{} to write again", tokens(count))));
    }
    Some((8, frame::row(text::join(&said, cells), theme.dim)))
}

/// Where the client itself acts, and whether the lines had to make room for that.
fn client(
    lines: &Lines,
    model: &Model,
    theme: &Theme,
    cells: usize,
) -> Option<(u8, Line<'static>)> {
    let limit = model.client.limit()?;
    let acts = format!("client {} at {}", limit.act.word(), tokens(limit.at));
    if lines.are_lowered() {
        let said = [format!("lowered: {acts}"), limit.origin.to_string()];
        return Some((4, frame::row(text::join(&said, cells), theme.accent)));
    }
    let said = [acts, limit.origin.to_string()];
    Some((8, frame::row(text::join(&said, cells), theme.dim)))
}

fn thresholds(lines: &Lines, theme: &Theme, cells: usize) -> Line<'static> {
    let said = [Threshold::Warn, Threshold::Compact, Threshold::Force]
        .map(|one| format!("{one} {}", tokens(lines.at(one))));
    // The force line is for unattended runs: it comes only where there is ample room.
    let shown = if cells >= 44 { &said[..] } else { &said[..2] };
    frame::row(text::join(shown, cells), theme.dim)
}

fn growth(model: &Model) -> Option<Vec<String>> {
    let outlook = model.guard.outlook(model.now)?;
    let mut said = vec![format!("+{}/turn", tokens(outlook.growth.median))];
    said.extend(report::turns_left(model));
    Some(said)
}

fn base(window: Tokens, model: &Model, theme: &Theme, cells: usize) -> Line<'static> {
    let mut said = vec![format!("window {}", tokens(window))];
    said.extend(trim::base_load(model).map(|base| format!("base {}", tokens(base))));
    said.extend(text::compactions(model.compactions.count()));
    frame::row(text::join(&said, cells), theme.dim)
}

/// Two texts at the two ends of a row.
fn between(
    left: &str,
    left_style: Style,
    right: String,
    right_style: Style,
    cells: usize,
) -> Line<'static> {
    let room = cells.saturating_sub(text::width(&right) + 1);
    let left = text::fit(left, room).into_owned();
    let gap = cells.saturating_sub(text::width(&left) + text::width(&right));
    Line::from(vec![
        Span::styled(left, left_style),
        Span::raw(" ".repeat(gap)),
        Span::styled(right, right_style),
    ])
}

/// The gauge: eighth blocks for what is used, `·` for what is not, `┊` where warn and compact lie, `|` where the client itself
/// acts.
fn bar(
    used: Tokens,
    usable: Tokens,
    lines: &Lines,
    fill: Style,
    theme: &Theme,
    cells: usize,
) -> Line<'static> {
    let share = |tokens: Tokens| (tokens.0 as f64 / usable.0.max(1) as f64).clamp(0.0, 1.0);
    let eighths = (share(used) * (cells * 8) as f64).round() as usize;
    let cell_of = |at| ((share(at) * cells as f64) as usize).min(cells.saturating_sub(1));
    let ticks = [Threshold::Warn, Threshold::Compact].map(|one| cell_of(lines.at(one)));
    let client = lines.client().map(cell_of);
    let spans = (0..cells).map(|at| {
        let filled = eighths.saturating_sub(at * 8).min(8);
        let tick = if ticks.contains(&at) {
            Some("┊")
        } else {
            (client == Some(at)).then_some("|")
        };
        match (filled, tick) {
            // A cell holds one sign: a tick in a cell that is partly used counts by its larger part.
            (5..=8, Some(tick)) => Span::styled(tick, fill.add_modifier(Modifier::REVERSED)),
            (_, Some(tick)) => Span::styled(tick, theme.accent),
            (0, None) => Span::styled("·", theme.unused),
            (part, None) => Span::styled(EIGHTHS[part - 1], fill),
        }
    });
    spans.collect()
}

/// How usage went, turn by turn, against the usable window.
fn curve(figure: &Figure, model: &Model, theme: &Theme, cells: usize) -> Option<Line<'static>> {
    let turns = model.guard.forecast().turns();
    let count = turns.len();
    let label = format!("{} {} ", count, if count == 1 { "turn" } else { "turns" });
    let room = cells
        .checked_sub(text::width(&label))
        .filter(|room| *room >= 4)?;
    if count < 2 {
        return None;
    }
    let mut spans = vec![Span::styled(label, theme.dim)];
    spans.extend(turns.skip(count.saturating_sub(room)).map(|turn| {
        let share = turn.used.0 as f64 / figure.usable.0.max(1) as f64;
        let height = ((share * 8.0) as usize).min(7);
        let style = if turn.compacted {
            theme.bad
        } else {
            theme.level(figure.lines.level(turn.used))
        };
        Span::styled(BARS[height], style)
    }));
    Some(Line::from(spans))
}

/// The gauge on one line, for a footer without a context panel: as long as it may be.
pub(super) fn strip(model: &Model, theme: &Theme, cells: usize) -> Line<'static> {
    let Some(figure) = model.guard.figure(model.now) else {
        return frame::row(text::fit("no figure yet", cells), theme.dim);
    };
    let level = theme.level(figure.level).add_modifier(Modifier::BOLD);
    let words = format!("{:.0}% {}", figure.percent, figure.level.word());
    let stale = if figure.stale { "?" } else { "" };
    let words = format!("{words}{stale}");
    let room = cells.saturating_sub(text::width(&words) + 1);
    if room < 6 {
        return frame::row(text::fit(&words, cells), level);
    }
    let fill = theme.level(figure.level);
    let mut line = bar(
        figure.used,
        figure.usable,
        &figure.lines,
        fill,
        theme,
        room.min(20),
    );
    line.push_span(Span::raw(" "));
    line.push_span(Span::styled(words, level));
    line
}
