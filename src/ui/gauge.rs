//! The context panel: how full the context window is, the source of the figure, and the next line.
//!
//! ```text
//!  ██████████████▌····┊··┊··
//!  ▀▀█ ▄█  ▀ █   128.4k of 180k usable
//!    █  █  ▄▀    about 12 min left
//!    ▀ ▀▀▀ ▀ ▀   compact at 153k
//!  +4.1k a minute · about 12 min left
//!  $4.12 · $0.31 a turn · ~$0.04 fresh
//!  a reboot now pays for itself in about 14 calls
//!  from Claude's status line, live
//!  warn 126k · compact 153k
//!  Claude compacts at 967k · its default
//! ```
//!
//! Each line has a rank; a panel of few rows shows the lines of the first ranks, in the order of the page. The large figure
//! comes where there is room for it, else the percent is at the end of a line.

use ratatui::{
    buffer::Buffer,
    layout::Rect,
    style::{Modifier, Style},
    text::{Line, Span},
};

use pitstop_agent::AgentKind;
use pitstop_base::keymap::Action;
use pitstop_core::{
    api::wire::AgentState,
    app::{Model, cold_cache, cost, forecast, payoff, reboot::compaction, report, trim},
    guard::{Assessment, Figure, Level, Lines, Source, Threshold},
};
use pitstop_transcript::Tokens;

use super::{
    banner, frame, moment, text,
    text::{dollars, tokens},
    theme::Theme,
};

/// The blocks from one eighth to a whole cell.
pub(super) const EIGHTHS: [&str; 8] = ["▏", "▎", "▍", "▌", "▋", "▊", "▉", "█"];

/// Draws the context panel.
pub(super) fn draw(buf: &mut Buffer, area: Rect, model: &Model, theme: &Theme) {
    let figure = model.session.guard.figure(model.now);
    let mut title = frame::title("Context", false, theme);
    if let Some(figure) = &figure {
        let style = level_style(figure, model, theme).add_modifier(Modifier::BOLD);
        let level = level_label(figure, model);
        title.push_span(Span::styled(format!("· {level} "), style));
    }
    let inner = frame::draw_border(buf, area, title, false, theme);
    if inner.is_empty() {
        return;
    }
    let cells = usize::from(inner.width);
    let height = usize::from(inner.height);
    // The large figure takes two rows more than a plain one; the lines that matter must not give way to it.
    let large = height >= 8 && cells >= 34 && !theme.ascii;
    let lines = match &figure {
        Some(figure) => known_lines(figure, model, theme, cells, large),
        None => unknown_lines(model, theme, cells),
    };
    frame::rows(buf, inner, &keep_ranked(lines, height));
}

/// The words for a figure that nothing has confirmed of late.
const LAST_KNOWN: &str = "last known";

/// Returns the meaning of the figure, where the lines do not decide what comes next.
fn figure_meaning(model: &Model) -> Option<&'static str> {
    if moment::is_under_way(model) {
        Some("before the reboot")
    } else if has_ended(model) {
        Some(LAST_KNOWN)
    } else {
        None
    }
}

/// Returns the level, or the words in its place.
fn level_label(figure: &Figure, model: &Model) -> &'static str {
    figure_meaning(model).unwrap_or_else(|| figure.level.label())
}

/// Returns the level's style. A figure of a session that is over needs no person.
fn level_style(figure: &Figure, model: &Model, theme: &Theme) -> Style {
    if moment::is_under_way(model) || has_ended(model) {
        theme.dim
    } else {
        theme.level(figure.level)
    }
}

fn has_ended(model: &Model) -> bool {
    model.session.agent.state == AgentState::Exited
}

/// Keeps as many lines as there is room for, those of the lowest ranks.
fn keep_ranked(mut lines: Vec<(u8, Line<'static>)>, room: usize) -> Vec<Line<'static>> {
    while lines.len() > room
        && let Some(worst) = (0..lines.len()).max_by_key(|at| (lines[*at].0, *at))
    {
        lines.remove(worst);
    }
    lines.into_iter().map(|(_, line)| line).collect()
}

fn known_lines(
    figure: &Figure,
    model: &Model,
    theme: &Theme,
    cells: usize,
    large: bool,
) -> Vec<(u8, Line<'static>)> {
    let level = level_style(figure, model, theme);
    let mut ranked = vec![(0, bar_of(figure, level, theme, cells))];
    if large {
        let rows = large_figure(figure, model, theme, cells);
        ranked.extend(rows.into_iter().map(|row| (1, row)));
    } else {
        let of = of_usable(figure);
        let percent = format!("{} %", text::percent(figure.percent));
        let bold = level.add_modifier(Modifier::BOLD);
        ranked.push((1, line_between(&of, theme.text, percent, bold, cells)));
    }
    if compaction::is_held(model) && !large {
        let said = format!("Claude is {COMPACTS}");
        ranked.push((2, frame::row(text::fit(&said, cells), theme.accent)));
    }
    let lines_decide = figure_meaning(model).is_none();
    let asks = lines_decide && model.reboot.attempt.is_none();
    if figure.level == Level::Overflow && asks {
        let key = model.keys().hint(Action::Reboot).unwrap_or_default();
        let advice = text::join(&["time for a reboot".to_owned(), key], cells);
        ranked.push((2, frame::row(advice, level.add_modifier(Modifier::BOLD))));
    }
    if let Some(other) = &figure.disagreement {
        let points = format!("{:+.0} points", other.points).replace('-', "−");
        let said = format!("≠ {} says {} ({points})", other.source, tokens(other.used));
        ranked.push((3, frame::row(text::fit(&said, cells), theme.accent)));
    }
    if let Some(growth) = growth_text(model, large, cells).filter(|_| lines_decide) {
        ranked.push((4, frame::row(growth, theme.text)));
    }
    ranked.extend(cost_line(model, theme, cells));
    ranked.extend(payoff_line(model, theme, cells).filter(|_| lines_decide));
    if !moment::is_under_way(model) {
        ranked.push((6, source_line(figure, model, theme, cells)));
    }
    ranked.extend(without_bridge(model, theme, cells));
    if lines_decide {
        ranked.push((5, threshold_line(&figure.lines, figure.used, theme, cells)));
        ranked.extend(client_line(&figure.lines, model, theme, cells));
    }
    ranked.extend(cache_line(model, theme, cells));
    ranked.extend(limit_lines(model, theme, cells));
    ranked.push((8, base_line(figure.window, model, theme, cells)));
    if let Some(name) = &model.session.agent.model {
        let name = text::safe(name);
        ranked.push((9, frame::row(text::fit(&name, cells), theme.dim)));
    }
    ranked
}

fn of_usable(figure: &Figure) -> String {
    let (used, usable) = (tokens(figure.used), tokens(figure.usable));
    format!("{used} of {usable} usable")
}

/// Returns the source and the age of the figure: `from Claude's status line, live`.
fn source_line(figure: &Figure, model: &Model, theme: &Theme, cells: usize) -> Line<'static> {
    let from = match figure.source {
        Source::Bridge => "reported by the client",
        Source::StatusLine if model.identity.agent_kind == AgentKind::Claude => {
            "from Claude's status line"
        }
        Source::StatusLine => "from the status line",
        Source::Transcript => "from the transcript",
        Source::Estimate => "estimated from the output",
    };
    let (age, style) = match figure.age.as_secs() {
        _ if figure.stale => (format!("stale: {}", text::ago(figure.age)), theme.accent),
        0..10 if !has_ended(model) => ("live".to_owned(), theme.dim),
        _ => (text::ago(figure.age), theme.dim),
    };
    frame::row(text::fit(&format!("{from}, {age}"), cells), style)
}

/// Returns the reason why the client's bridge reports no figure, where it could be otherwise.
fn without_bridge(model: &Model, theme: &Theme, cells: usize) -> Option<(u8, Line<'static>)> {
    let why = report::without_bridge(model)?;
    let said = format!("no bridge: {}", text::safe(&why));
    Some((7, frame::row(text::fit(&said, cells), theme.dim)))
}

/// The words for the next step while a compaction is held, whatever the figure is.
const COMPACTS: &str = "about to compact";

/// The height of the large figure, in rows.
const LARGE: usize = 3;

/// Returns the percent in letters three rows high, and beside it the total that it is a share of and the next line.
fn large_figure(figure: &Figure, model: &Model, theme: &Theme, cells: usize) -> Vec<Line<'static>> {
    let level = level_style(figure, model, theme).add_modifier(Modifier::BOLD);
    let percent = format!("{}%", text::percent(figure.percent.min(999.0)));
    let mut beside = vec![of_usable(figure)];
    if compaction::is_held(model) {
        beside.push(COMPACTS.to_owned());
        beside.extend(banner::compaction_reason(model).map(str::to_owned));
    } else if figure_meaning(model).is_none() {
        let mut lines = LINES.into_iter().map(|line| (line, figure.lines.at(line)));
        let next = lines.find(|(_, at)| *at > figure.used);
        beside.extend(forecast::report(model).as_ref().and_then(forecast::left));
        beside.push(next.map_or_else(
            || "past the compact line".to_owned(),
            |(line, at)| format!("{line} at {}", tokens(at)),
        ));
    }
    let beside = beside.into_iter().chain(std::iter::repeat(String::new()));
    let drawn = large_digits(&percent);
    let rows = drawn.into_iter().zip(beside).map(|(digits, beside)| {
        let room = cells.saturating_sub(text::width(&digits) + 2);
        let beside = shorten_text(&beside, room);
        Line::from(vec![
            Span::styled(digits, level),
            Span::raw("  "),
            Span::styled(text::fit(beside, room).into_owned(), theme.text),
        ])
    });
    rows.collect()
}

/// Returns the text without the words that are not needed to understand it, where it does not fit with them.
fn shorten_text(said: &str, room: usize) -> &str {
    let mut short = said;
    for word in [" usable", " left"] {
        if text::width(short) > room {
            short = short.strip_suffix(word).unwrap_or(short);
        }
    }
    if text::width(short) > room {
        short = short.strip_prefix("about ").unwrap_or(short);
    }
    short
}

/// Returns a figure in half blocks: each character is three cells wide, with a blank between two. The first half of the
/// first row is blank, or the bar above would run into the figure.
fn large_digits(figure: &str) -> [String; LARGE] {
    std::array::from_fn(|row| {
        let glyphs = figure.chars().map(|c| {
            let dots = digit_dots(c);
            let upper = (row * 2).checked_sub(1).map_or(0, |at| dots[at]);
            let lower = dots[row * 2];
            let cell = |at: u8| match (upper >> at & 1, lower >> at & 1) {
                (1, 1) => '█',
                (1, _) => '▀',
                (_, 1) => '▄',
                _ => ' ',
            };
            [2, 1, 0].map(cell).into_iter().collect::<String>()
        });
        glyphs.collect::<Vec<_>>().join(" ")
    })
}

/// Returns five rows of three dots, the left one first.
const fn digit_dots(c: char) -> [u8; 5] {
    match c {
        '0' => [0b111, 0b101, 0b101, 0b101, 0b111],
        '1' => [0b010, 0b110, 0b010, 0b010, 0b111],
        '2' => [0b111, 0b001, 0b111, 0b100, 0b111],
        '3' => [0b111, 0b001, 0b111, 0b001, 0b111],
        '4' => [0b101, 0b101, 0b111, 0b001, 0b001],
        '5' => [0b111, 0b100, 0b111, 0b001, 0b111],
        '6' => [0b111, 0b100, 0b111, 0b101, 0b111],
        '7' => [0b111, 0b001, 0b001, 0b001, 0b001],
        '8' => [0b111, 0b101, 0b111, 0b101, 0b111],
        '9' => [0b111, 0b101, 0b111, 0b001, 0b111],
        '%' => [0b101, 0b001, 0b010, 0b100, 0b101],
        _ => [0; 5],
    }
}

fn unknown_lines(model: &Model, theme: &Theme, cells: usize) -> Vec<(u8, Line<'static>)> {
    // The figure of an empty window of the assumed size.
    let nothing = model.session.guard.assess(Tokens(0));
    let (awaited, detail) = match model.session.agent.state {
        AgentState::Starting => ("no figure yet", "waits for the agent to start"),
        AgentState::Exited => ("no figure", "the agent is not running"),
        _ if model.is_generic() => ("no figure yet", "an estimate follows its first output"),
        _ => ("no figure yet", "waits for the agent's first answer"),
    };
    let Assessment { usable, lines, .. } = nothing;
    let mut ranked = vec![
        (0, bar(Tokens(0), usable, &lines, theme.dim, theme, cells)),
        (1, frame::row(awaited, theme.text)),
        (2, frame::row(text::fit(detail, cells), theme.dim)),
        (5, threshold_line(&lines, Tokens(0), theme, cells)),
    ];
    ranked.extend(without_bridge(model, theme, cells));
    ranked.extend(limit_lines(model, theme, cells));
    ranked.extend(client_line(&lines, model, theme, cells));
    ranked.push((8, base_line(nothing.window, model, theme, cells)));
    ranked
}

/// Returns the usage limits with their resets, as the agent reports them.
fn limit_lines(model: &Model, theme: &Theme, cells: usize) -> Vec<(u8, Line<'static>)> {
    let said = model.session.agent.limit_words(model.now).into_iter();
    said.map(|limit| (7, frame::row(text::fit(&limit, cells), theme.dim)))
        .collect()
}

/// Returns the cost of the session, and of a turn now and in a fresh session, as far as that is known.
fn cost_line(model: &Model, theme: &Theme, cells: usize) -> Option<(u8, Line<'static>)> {
    let cost = model.session.spending.session_cost();
    let mut said: Vec<String> = cost.map(dollars).into_iter().collect();
    if let Some(cost) = cost::per_turn(model) {
        said.push(format!("{} a turn", dollars(cost.now)));
        let fresh = cost.fresh.map(dollars);
        said.extend(fresh.map(|fresh| format!("~{fresh} fresh")));
    }
    // A sum alone could be the cost of anything.
    if let [cost] = &mut said[..] {
        cost.insert_str(0, "cost ");
    }
    (!said.is_empty()).then(|| (5, frame::row(text::join(&said, cells), theme.text)))
}

/// Returns when a reboot now has paid for itself, where that is known.
fn payoff_line(model: &Model, theme: &Theme, cells: usize) -> Option<(u8, Line<'static>)> {
    let when = payoff::words(payoff::calls(model)?);
    let mut said = format!("a reboot now pays for itself {when}");
    if text::width(&said) > cells {
        said = format!("a reboot pays {when}");
    }
    Some((7, frame::row(text::fit(&said, cells), theme.text)))
}

/// Returns the state of the prompt cache: whether the next call still reads from it, and for how long.
fn cache_line(model: &Model, theme: &Theme, cells: usize) -> Option<(u8, Line<'static>)> {
    let cache = cold_cache::report(model)?;
    let left = cache.expires_at.map(|at| at - model.now.wall);
    let said = match left.and_then(|left| left.to_std().ok()) {
        Some(left) if cache.warm => vec![format!("cache warm for {}", text::span(left))],
        None if cache.warm => vec!["cache warm".to_owned()],
        _ => {
            let mut parts = cold_cache::words(&cache);
            if let Some(again) = parts.first_mut() {
                again.insert_str(0, "cache cold: ");
            } else {
                parts.push("cache cold".to_owned());
            }
            parts
        }
    };
    Some((8, frame::row(text::join(&said, cells), theme.dim)))
}

/// Returns the limit at which the client itself acts, and whether the lines had to make room for that.
fn client_line(
    lines: &Lines,
    model: &Model,
    theme: &Theme,
    cells: usize,
) -> Option<(u8, Line<'static>)> {
    let limit = model.session.client.limit()?;
    let (rank, lowered, style) = if lines.are_lowered() {
        (4, "lowered: ", theme.accent)
    } else {
        (8, "", theme.dim)
    };
    let (act, at) = (limit.act.word(), tokens(limit.at));
    let said = [
        format!("{lowered}Claude {act} at {at}"),
        limit.origin.to_string(),
    ];
    Some((rank, frame::row(text::join(&said, cells), style)))
}

fn threshold_line(lines: &Lines, used: Tokens, theme: &Theme, cells: usize) -> Line<'static> {
    let named = [
        (Threshold::Notice, "notice"),
        (Threshold::Warn, "warn"),
        (Threshold::Compact, "compact"),
        (Threshold::Force, "forced reboot"),
    ];
    let said = named.map(|(line, name)| format!("{name} {}", tokens(lines.at(line))));
    // The least important lines give way: the one for unattended runs and the first; then those that are passed.
    let short = if used >= lines.at(Threshold::Compact) {
        [&said[1..], &said[2..]]
    } else {
        [&said[..3], &said[1..3]]
    };
    let fits = |said: &&[String]| text::width(&said.join(" · ")) <= cells;
    let shown = [&said[..]].into_iter().chain(short).find(fits);
    let shown = shown.unwrap_or(&said[1..3]);
    frame::row(text::join(shown, cells), theme.dim)
}

/// Returns how fast the window fills, and the time left unless that is beside the large figure; then the tool calls beside
/// the minutes. Where not all fits, the time left is worth the most.
fn growth_text(model: &Model, large: bool, cells: usize) -> Option<String> {
    let report = forecast::report(model)?;
    let growth = forecast::growth(&report)?;
    // A compaction that waits comes before anything else.
    if compaction::is_held(model) {
        return Some(text::fit(&growth, cells).into_owned());
    }
    let left = forecast::left(&report).filter(|_| !large);
    let beside = forecast::calls_beside(&report);
    let Some(left) = left else {
        let parts: Vec<String> = std::iter::once(growth).chain(beside).collect();
        return Some(text::join(&parts, cells));
    };
    let room = cells.saturating_sub(text::width(&growth) + 3);
    let short = shorten_text(&left, room);
    if text::width(short) > room {
        return Some(text::fit(&left, cells).into_owned());
    }
    let parts = [growth, short.to_owned()].into_iter().chain(beside);
    Some(text::join(&parts.collect::<Vec<_>>(), cells))
}

fn base_line(window: Tokens, model: &Model, theme: &Theme, cells: usize) -> Line<'static> {
    let mut said = vec![format!("{} window", tokens(window))];
    // The figure of the review; before there was a fresh session, the tokens that this one began with.
    let fresh = trim::fresh_tokens(model).map(|fresh| format!("fresh session ~{}", tokens(fresh)));
    let base = || Some(format!("began at {}", tokens(trim::base_load(model)?)));
    said.extend(fresh.or_else(base));
    said.extend(text::compaction_count(model.session.compactions.count()));
    frame::row(text::join(&said, cells), theme.dim)
}

/// Returns a row with two texts at its two ends.
fn line_between(
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

/// The lines with a tick on the bar.
const LINES: [Threshold; 3] = [Threshold::Notice, Threshold::Warn, Threshold::Compact];

/// Returns the gauge: eighth blocks for the used part, `·` for the rest, `┊` at the lines, `|` at the limit where the
/// client itself acts.
pub(super) fn bar(
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
    // The cell of each sign, and whether the used part has passed it.
    let tick = |at: Tokens| (cell_of(at), used >= at);
    let ticks = LINES.map(|one| tick(lines.at(one)));
    let client = lines.client().map(tick);
    let spans = (0..cells).map(|at| {
        let filled = eighths.saturating_sub(at * 8).min(8);
        let here = |(cell, passed): (usize, bool)| (cell == at).then_some(passed);
        let line = ticks.into_iter().filter_map(here).max();
        let line = line.map(|passed| ("┊", passed));
        let tick = line.or_else(|| Some(("|", client.and_then(here)?)));
        match (filled, tick) {
            // A cell holds one sign, and a line that is passed must look so, however little of its cell is used.
            (_, Some((tick, true))) => Span::styled(tick, fill.add_modifier(Modifier::REVERSED)),
            (_, Some((tick, false))) => Span::styled(tick, theme.accent),
            (0, None) => Span::styled("·", theme.unused),
            (part, None) => Span::styled(EIGHTHS[part - 1], fill),
        }
    });
    spans.collect()
}

/// Returns the gauge of a figure.
fn bar_of(figure: &Figure, fill: Style, theme: &Theme, cells: usize) -> Line<'static> {
    let (used, usable) = (figure.used, figure.usable);
    bar(used, usable, &figure.lines, fill, theme, cells)
}

/// Returns the gauge on one line, for a footer without a context panel: as long as it may be, but its words whole.
pub(super) fn strip(model: &Model, theme: &Theme, cells: usize) -> Line<'static> {
    let Some(figure) = model.session.guard.figure(model.now) else {
        return frame::row(text::fit("no figure yet", cells), theme.dim);
    };
    let fill = level_style(&figure, model, theme);
    let level = fill.add_modifier(Modifier::BOLD);
    let words = percent_and_level(&figure, model);
    let room = cells.saturating_sub(text::width(&words) + 1);
    if room < 6 {
        return frame::row(words, level);
    }
    let mut line = bar_of(&figure, fill, theme, room.min(20));
    line.extend([Span::raw(" "), Span::styled(words, level)]);
    line
}

/// Returns the words of the strip alone; none without a figure.
pub(super) fn words(model: &Model, theme: &Theme) -> Option<Span<'static>> {
    let figure = model.session.guard.figure(model.now)?;
    let level = level_style(&figure, model, theme).add_modifier(Modifier::BOLD);
    Some(Span::styled(percent_and_level(&figure, model), level))
}

/// Returns `71 % warn`, or `71 % · last known` where the figure is stale.
fn percent_and_level(figure: &Figure, model: &Model) -> String {
    let mut words = format!("{} %", text::percent(figure.percent));
    // The footer shows that a session is being left.
    if !moment::is_under_way(model) {
        words.push_str(&match level_label(figure, model) {
            _ if figure.stale => format!(" · {LAST_KNOWN}"),
            label => format!(" {label}"),
        });
    }
    words
}

#[cfg(test)]
mod tests {
    use super::*;
    use pitstop_core::guard::{Guard, GuardSettings};

    #[test]
    fn a_line_looks_passed_once_it_is_and_never_before() {
        let guard = Guard::new(GuardSettings::default());
        let theme = Theme::default();
        for (used, cells) in (0..=200_u64).flat_map(|one| [8, 35, 57].map(|cells| (one, cells))) {
            let used = Tokens(used * 1_000);
            let found = guard.assess(used);
            let fill = theme.level(found.level);
            let line = bar(used, found.usable, &found.lines, fill, &theme, cells);
            let ticks = line.spans.iter().filter(|span| span.content == "┊");
            let passed = |span: &&Span<'_>| span.style.add_modifier.contains(Modifier::REVERSED);
            let lines = LINES.map(|one| found.lines.at(one));
            let expected = lines.iter().filter(|at| **at <= used).count();
            assert_eq!(
                ticks.filter(passed).count(),
                expected,
                "{used:?} in {cells} cells"
            );
        }
    }
}
