//! The autonomous run: in the footer, as a panel in the place of the history, and large over the pane.
//!
//! In the footer stands how far it is, what it has cost, and what ends it:
//!
//! ```text
//!  auto · busy · 3/50 iterations · 1 h 5 min of 8 h · $4.12 of $25 · until "ALL DONE"
//! ```

use ratatui::{
    buffer::Buffer,
    layout::Rect,
    text::{Line, Span},
};

use crate::{
    api::wire::{RunLine, RunReport},
    app::{
        Model,
        autopilot::{
            self,
            facts::{countdown, facts},
        },
        model::Focus,
    },
    autopilot::cap::duration,
    keymap::Action,
};

use super::{frame, text, theme::Theme};

/// How much of the promise is shown, in cells.
const PROMISE: usize = 24;

/// The run's parts, the most important first; none where there is no run.
pub(super) fn parts(model: &Model, theme: &Theme) -> Vec<Span<'static>> {
    let Some(report) = autopilot::report(model) else {
        return Vec::new();
    };
    let mut parts = Vec::new();
    if report.phase != "working" {
        let style = if report.phase == "tripped" {
            theme.bad
        } else {
            theme.accent
        };
        let key = model.keys().hint(Action::Pause).unwrap_or_default();
        parts.push(Span::styled(standing(&report, &key), style));
    }
    let of = |most: Option<String>| most.map_or_else(String::new, |most| format!(" of {most}"));
    let most = report.max_iterations.map(|most| format!("/{most}"));
    parts.push(Span::styled(
        format!("iteration {}{}", report.iteration, most.unwrap_or_default()),
        theme.text,
    ));
    let seconds = std::time::Duration::from_secs;
    // By the minute: a figure that changes each second draws the eye.
    let whole = |time: u64| if time < 60 { time } else { time / 60 * 60 };
    parts.push(Span::styled(
        format!(
            "{}{}",
            duration(seconds(whole(report.elapsed_s))),
            of(report.max_time_s.map(|most| duration(seconds(most))))
        ),
        theme.text,
    ));
    parts.push(Span::styled(
        format!(
            "${:.2}{}",
            report.cost_usd,
            of(report.max_cost_usd.map(|most| format!("${most}")))
        ),
        theme.text,
    ));
    let promise = text::safe(&report.promise);
    let promise = text::fit(&promise, PROMISE);
    parts.push(Span::styled(format!("until \"{promise}\""), theme.dim));
    parts
}

/// Why the run stands still: said for as long as it does, for a person who comes back to it.
pub(super) fn news(model: &Model, theme: &Theme) -> Option<Span<'static>> {
    let report = autopilot::report(model)?;
    let why = report.why.filter(|_| report.phase != "ended")?;
    let style = if report.phase == "tripped" {
        theme.bad
    } else {
        theme.text
    };
    Some(Span::styled(text::safe(&why).into_owned(), style))
}

fn standing(report: &RunReport, key: &str) -> String {
    match (&report.phase[..], report.waits_until, &report.paused_by) {
        ("waiting", Some(until), _) => format!("waits until {}", until.format("%H:%M UTC")),
        ("waiting", None, _) => match report.waits_s {
            Some(left) => format!("waits {}", countdown(left)),
            None => "waits".to_owned(),
        },
        ("paused", _, Some(by)) => format!("paused by {by}, {key} resumes"),
        ("tripped", ..) => format!("stopped, {key} goes on"),
        (phase, ..) => phase.to_owned(),
    }
}

/// The cells that the name of a fact takes.
const NAME: usize = 11;

/// Whether the run stands in the place of the history: that comes back with the focus.
pub(super) fn has_panel(model: &Model) -> bool {
    model.autopilot.is_some()
        && (model.view.focus != Focus::History || model.view.overlay.is_some())
}

/// Draws the run in the place of the history panel: the facts, and as much of the timeline as there is room for.
pub(super) fn draw_panel(buf: &mut Buffer, area: Rect, model: &Model, theme: &Theme) {
    let Some(report) = autopilot::report(model) else {
        return;
    };
    let title = frame::title(&format!("Run · {}", report.phase), false, theme);
    let inner = frame::border(buf, area, title, false, theme);
    if let Some(key) = model.keys().hint(Action::History) {
        frame::corner(
            buf,
            area,
            &frame::row(format!(" {key} history "), theme.dim),
        );
    }
    let cells = usize::from(inner.width);
    let mut rows = fact_rows(&report, cells, inner.height, theme);
    let room = usize::from(inner.height).saturating_sub(rows.len());
    let lines = model.autopilot.as_ref().map(|run| &run.timeline);
    let newest = lines.into_iter().flatten().rev().take(room);
    // One row each: the ones before it say more than the rest of a long one.
    rows.extend(newest.map(|line| {
        let (at, said) = timeline(line, theme);
        let said = text::fit(&said, cells.saturating_sub(at.width())).into_owned();
        Line::from(vec![at, Span::styled(said, theme.text)])
    }));
    frame::rows(buf, inner, &rows);
}

/// Draws the run over the pane: the facts, and the timeline, newest first.
pub(super) fn draw_view(buf: &mut Buffer, pane: Rect, model: &Model, theme: &Theme) {
    let Some(report) = autopilot::report(model) else {
        return;
    };
    frame::clear(buf, pane);
    let title = frame::title(&format!("Run · {}", report.phase), true, theme);
    let inner = frame::border(buf, pane, title, true, theme);
    let cells = usize::from(inner.width);
    // What is below can be scrolled to.
    let mut rows = fact_rows(&report, cells, u16::MAX, theme);
    rows.push(Line::default());
    rows.push(frame::row(" Timeline, newest first (UTC)", theme.title));
    let lines = model.autopilot.as_ref().map(|run| &run.timeline);
    let newest = lines.into_iter().flatten().rev();
    for line in newest {
        let (at, said) = timeline(line, theme);
        let lead = text::Lead {
            rest: vec![(" ".repeat(at.width()), theme.text)],
            first: vec![(at.content.into_owned(), at.style)],
        };
        rows.extend(text::wrap(&[(said, theme.text)], &lead, cells));
    }
    let count = rows.len();
    let rows = rows.into_iter().enumerate();
    let window = text::window(rows, model.view.history.scroll, inner.height);
    frame::rows(buf, inner, &window.rows);
    let mut hints = vec!["Esc close".to_owned()];
    if window.above || window.below {
        hints.push("PgUp/PgDn scroll".to_owned());
    }
    let pause = model.keys().hint(Action::Pause);
    hints.extend(pause.map(|key| format!("{key} pause or resume")));
    let mark = text::mark(window.above, window.below, window.last_line, count);
    frame::foot(buf, pane, &hints, &mark, theme);
}

/// The facts, whole where there are the rows for it, else one row each.
fn fact_rows(report: &RunReport, cells: usize, height: u16, theme: &Theme) -> Vec<Line<'static>> {
    // The title has the word already, and a state that needs no more words says nothing new.
    let says = |(name, said): &(&str, String)| *name != "state" || *said != report.phase;
    let facts: Vec<(Span<'static>, Span<'static>)> = facts(report)
        .into_iter()
        .filter(says)
        .map(|(name, said)| {
            let style = match (name, &report.phase[..]) {
                ("state", "tripped") => theme.bad,
                ("state", "waiting" | "paused") => theme.accent,
                _ => theme.text,
            };
            let name = Span::styled(format!(" {name:<NAME$}"), theme.dim);
            (name, Span::styled(text::safe(&said).into_owned(), style))
        })
        .collect();
    let whole = facts.iter().flat_map(|(name, said)| {
        let lead = text::Lead {
            first: vec![(name.content.to_string(), name.style)],
            rest: vec![(" ".repeat(name.width()), theme.text)],
        };
        text::wrap(&[(said.content.to_string(), said.style)], &lead, cells)
    });
    let whole: Vec<Line<'static>> = whole.collect();
    if whole.len() <= usize::from(height) {
        return whole;
    }
    let room = cells.saturating_sub(NAME + 2);
    let cut = |(name, said): (Span<'static>, Span<'static>)| {
        let said = Span::styled(text::fit(&said.content, room).into_owned(), said.style);
        Line::from(vec![name, said])
    };
    facts.into_iter().map(cut).collect()
}

/// When something happened, and what.
fn timeline(line: &RunLine, theme: &Theme) -> (Span<'static>, String) {
    let at = line.at.format(" %H:%M:%S ").to_string();
    (
        Span::styled(at, theme.dim),
        text::safe(&line.text).into_owned(),
    )
}
