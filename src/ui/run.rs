//! The autonomous run in the footer: how far it is, what it has cost, and what ends it.
//!
//! ```text
//!  auto · busy · 3/50 iterations · 1 h 5 min of 8 h · $4.12 of $25 · until "ALL DONE"
//! ```

use ratatui::text::Span;

use crate::{
    api::wire::RunReport,
    app::{Model, autopilot},
    autopilot::cap::duration,
    keymap::Action,
};

use super::{text, theme::Theme};

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

/// Why the run stands still: said for as long as it does, for whoever comes back to it.
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
        ("waiting", None, _) => "waits".to_owned(),
        ("paused", _, Some(by)) => format!("paused by {by}, {key} resumes"),
        ("tripped", ..) => format!("stopped, {key} goes on"),
        (phase, ..) => phase.to_owned(),
    }
}
