//! The autonomous run: in the footer, as a panel in the place of the history, and large over the pane.
//!
//! The footer shows its progress, its cost, and its stop phrase:
//!
//! ```text
//!  auto · busy · 3/50 iterations · 1 h 5 min of 8 h · $4.12 of $25 · until "ALL DONE"
//! ```

use ratatui::{
    buffer::Buffer,
    layout::Rect,
    text::{Line, Span},
};

use pitstop_base::{clock::At, keymap::Action};
use pitstop_core::{
    api::wire::{RunPhase, RunReport},
    app::{
        Model,
        autopilot::{
            self,
            facts::{countdown, facts},
        },
        model::Focus,
    },
    autopilot::cap::duration,
};

use super::{frame, text, theme::Theme};

/// The length of the stop phrase that is shown, in cells.
const STOP_PHRASE: usize = 24;

/// Returns the run's parts, the most important first; none where there is no run.
pub(super) fn run_parts(model: &Model, theme: &Theme) -> Vec<Span<'static>> {
    let Some(report) = autopilot::report(model) else {
        return Vec::new();
    };
    let mut parts = Vec::new();
    if report.phase != RunPhase::Working {
        let style = if report.phase == RunPhase::Tripped {
            theme.bad
        } else {
            theme.accent
        };
        let key = model.keys().hint(Action::Pause).unwrap_or_default();
        parts.push(Span::styled(phase_label(&report, &key, model.now), style));
    }
    let time = |seconds: u64| duration(std::time::Duration::from_secs(seconds));
    // The time is shown by the minute: a figure that changes each second draws the eye.
    let elapsed = match report.elapsed_s {
        seconds @ 0..60 => seconds,
        seconds => seconds / 60 * 60,
    };
    let most = [
        report.max_iterations.map(|most| format!("/{most}")),
        report.max_time_s.map(|most| format!(" of {}", time(most))),
        report.max_cost_usd.map(|most| format!(" of ${most}")),
    ];
    let [iterations, longest, dearest] = most.map(Option::unwrap_or_default);
    let figures = [
        format!("iteration {}{iterations}", report.iteration),
        format!("{}{longest}", time(elapsed)),
        format!("{}{dearest}", text::dollars(report.cost_usd)),
    ];
    parts.extend(figures.map(|said| Span::styled(said, theme.text)));
    let phrase = text::safe(&report.stop_phrase);
    let phrase = text::fit(&phrase, STOP_PHRASE);
    parts.push(Span::styled(format!("until \"{phrase}\""), theme.dim));
    parts
}

/// Returns the reason why the run is held up: shown for as long as it is, for a person who comes back to it.
pub(super) fn why_it_waits(model: &Model, theme: &Theme) -> Option<Span<'static>> {
    let report = autopilot::report(model)?;
    let why = report.why.filter(|_| report.phase != RunPhase::Ended)?;
    let style = if report.phase == RunPhase::Tripped {
        theme.bad
    } else {
        theme.text
    };
    Some(Span::styled(text::safe(&why).into_owned(), style))
}

/// Returns the effect of the key for a pause now.
pub(super) const fn pause_does(model: &Model) -> &'static str {
    if model.reboot.paused {
        "resume"
    } else {
        "pause"
    }
}

fn phase_label(report: &RunReport, key: &str, now: At) -> String {
    match (report.phase, report.waits_until, &report.paused_by) {
        (RunPhase::Waiting, Some(until), _) => {
            format!("waits until {}", now.time_of_day(until, "%H:%M"))
        }
        (RunPhase::Waiting, None, _) => match report.waits_s {
            Some(left) => format!("waits {}", countdown(left)),
            None => "waits".to_owned(),
        },
        (RunPhase::Paused, _, Some(by)) => format!("paused by {by}, {key} resumes"),
        (RunPhase::Tripped, ..) => format!("stopped, {key} goes on"),
        (phase, ..) => phase.to_string(),
    }
}

/// The number of cells that the name of a fact takes.
const NAME: usize = 11;

/// Reports whether the run is shown in the place of the history: that comes back with the focus.
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
    let hint = model.keys().hint_to(Action::History, "history");
    let corner = frame::corner_label(hint, theme);
    let inner = frame::draw_border_with_corner(buf, area, title, &corner, false, theme);
    let (cells, height) = (usize::from(inner.width), usize::from(inner.height));
    let most = height.saturating_sub(TIMELINE);
    let mut rows = panel_facts(&report, model.now, cells, most, theme);
    let lines = model.autopilot.as_ref().map(|run| &run.timeline);
    for (at, line) in lines.into_iter().flatten().rev().enumerate() {
        // A session's id is of no use at a glance.
        let said = line.text.split(": session ").next().unwrap_or_default();
        let time = format!(" {} ", model.now.time_of_day(line.at, "%H:%M"));
        let room = height.saturating_sub(rows.len());
        let whole = timeline_rows(time, said, cells, theme);
        // A line that does not fit whole is left out, but for the newest.
        if whole.len() > room && at > 0 {
            break;
        }
        rows.extend(whole.into_iter().take(room));
    }
    frame::rows(buf, inner, &rows);
}

/// The number of rows of the panel that are kept for the timeline at least.
const TIMELINE: usize = 1;

/// The facts that are shown whole first where there are not the rows for all.
const WORTH: [&str; 5] = ["state", "plan", "task", "cost", "iterations"];

/// Returns the facts for the panel, no more rows than there are: wrapped as far as there is room, else without the parts at
/// their end.
fn panel_facts(
    report: &RunReport,
    now: At,
    cells: usize,
    most: usize,
    theme: &Theme,
) -> Vec<Line<'static>> {
    let mut facts = styled_facts(report, now, theme);
    // The context panel above shows it.
    facts.retain(|(name, _)| *name != "context");
    let mut spare = most.saturating_sub(facts.len());
    let mut wrapped: Vec<Option<Vec<Line<'static>>>> = vec![None; facts.len()];
    let worth = |(name, _): &Fact| WORTH.iter().position(|one| one == name);
    let mut order: Vec<usize> = (0..facts.len()).collect();
    order.sort_by_key(|at| worth(&facts[*at]).unwrap_or(WORTH.len()));
    for at in order {
        let rows = fact_rows(&facts[at], cells, theme);
        if rows.len() - 1 <= spare {
            spare -= rows.len() - 1;
            wrapped[at] = Some(rows);
        }
    }
    let room = cells.saturating_sub(NAME + 1);
    let short = |(name, said): &Fact| {
        let mut parts: Vec<String> = said.content.split(" · ").map(str::to_owned).collect();
        // A remark in brackets gives way whole.
        if text::width(&parts[0]) > room
            && let Some(end) = parts[0].find(" (")
        {
            parts[0].truncate(end);
        }
        let name = Span::styled(format!(" {name:<NAME$}"), theme.dim);
        let said = Span::styled(text::join(&parts, room), said.style);
        vec![Line::from(vec![name, said])]
    };
    let rows = facts.iter().zip(wrapped);
    let rows = rows.flat_map(|(fact, rows)| rows.unwrap_or_else(|| short(fact)));
    rows.take(most).collect()
}

/// Draws the run over the pane: the facts, and the timeline, newest first.
pub(super) fn draw_view(buf: &mut Buffer, pane: Rect, model: &Model, theme: &Theme) {
    let Some(report) = autopilot::report(model) else {
        return;
    };
    frame::clear(buf, pane);
    let title = frame::title(&format!("Run · {}", report.phase), true, theme);
    let inner = frame::draw_border(buf, pane, title, true, theme);
    let cells = usize::from(inner.width);
    let facts = styled_facts(&report, model.now, theme);
    let facts = facts.iter().flat_map(|fact| fact_rows(fact, cells, theme));
    let mut rows: Vec<Line<'static>> = facts.collect();
    rows.push(Line::default());
    rows.push(frame::row(" Timeline, newest first", theme.title));
    let lines = model.autopilot.as_ref().map(|run| &run.timeline);
    for line in lines.into_iter().flatten().rev() {
        let at = format!(" {} ", model.now.time_of_day(line.at, "%H:%M:%S"));
        rows.extend(timeline_rows(at, &line.text, cells, theme));
    }
    let count = rows.len();
    let rows = rows.into_iter().enumerate();
    let window = text::window(rows, model.view.history.scroll, inner.height);
    window.record(&model.view.history.bounds);
    frame::rows(buf, inner, &window.rows);
    let mut hints = vec!["Esc close".to_owned()];
    if window.scrolls() {
        hints.push("PgUp/PgDn scroll".to_owned());
    }
    hints.extend(model.keys().hint_to(Action::Pause, pause_does(model)));
    frame::foot(buf, pane, &hints, &window.mark(count), theme);
}

/// A fact's name, and its text.
type Fact = (&'static str, Span<'static>);

/// Returns the facts of a run, with its commits and its test runs in one line.
fn styled_facts(report: &RunReport, now: At, theme: &Theme) -> Vec<Fact> {
    // The title has the word already, and a state that needs no more words is nothing new.
    let phase = report.phase.to_string();
    let says = |(name, said): &(&str, String)| *name != "state" || *said != phase;
    let mut styled: Vec<Fact> = Vec::new();
    for (name, said) in facts(report, now).into_iter().filter(says) {
        let style = match (name, report.phase) {
            ("state", RunPhase::Tripped) => theme.bad,
            ("state", RunPhase::Waiting | RunPhase::Paused) => theme.accent,
            _ => theme.text,
        };
        let said = text::safe(&said).into_owned();
        match styled.last_mut() {
            Some(("commits", commits)) if name == "test runs" => {
                let commits = commits.content.to_mut();
                commits.push_str(&format!(" · test runs: {said}"));
            }
            _ => styled.push((name, Span::styled(said, style))),
        }
    }
    styled
}

/// Returns the rows of a fact, wrapped.
fn fact_rows((name, said): &Fact, cells: usize, theme: &Theme) -> Vec<Line<'static>> {
    let name = format!(" {name:<NAME$}");
    frame::named_rows(name, (said.content.to_string(), said.style), cells, theme)
}

/// Returns the rows of an event with its time, wrapped.
fn timeline_rows(at: String, said: &str, cells: usize, theme: &Theme) -> Vec<Line<'static>> {
    let said = (text::safe(said).into_owned(), theme.text);
    frame::named_rows(at, said, cells, theme)
}
