//! The facts of a run in words, for the run view and for `pitstop status`: the same in both.

use std::time::Duration;

use crate::{
    api::wire::{RunPhase, RunReport},
    autopilot::cap::duration,
};
use pitstop_base::{
    clock::At,
    format::{count, dollars},
};

use crate::app::forecast;

/// A minute in seconds: from it on, a countdown is shown by the minute.
const MINUTE: u64 = 60;

/// Returns the facts of a run, the most important first: each a name and its text.
pub fn facts(run: &RunReport, now: At) -> Vec<(&'static str, String)> {
    let mut facts = vec![
        ("task", run.task.clone()),
        ("until", format!("the agent says \"{}\"", run.stop_phrase)),
        ("state", state(run, now)),
    ];
    if run.done + run.open > 0 {
        let next = run.next.as_ref().map(|next| format!(" · next: {next}"));
        facts.push((
            "plan",
            format!(
                "{} of {} done{}",
                run.done,
                run.done + run.open,
                next.unwrap_or_default()
            ),
        ));
    }
    facts.extend([("iterations", iterations(run)), ("time", time(run))]);
    facts.extend(context(run).map(|said| ("context", said)));
    facts.extend([
        ("cost", cost(run)),
        ("commits", run.commits.to_string()),
        (
            "test runs",
            format!("{} passed, {} failed", run.tests_passed, run.tests_failed),
        ),
    ]);
    facts
}

/// Returns the run's state, and what it waits for with the time that is left.
fn state(run: &RunReport, now: At) -> String {
    let mut said = match (run.phase, &run.paused_by) {
        (RunPhase::Paused, Some(by)) => format!("paused by {by}"),
        (RunPhase::Tripped, _) => "stopped by a breaker".to_owned(),
        (phase, _) => phase.to_string(),
    };
    if let Some(left) = run.waits_s {
        said.push_str(&format!(" {}", countdown(left)));
    }
    if let Some(until) = run.waits_until {
        said.push_str(&format!(", until {}", now.time_of_day(until, "%H:%M")));
    }
    if let Some(why) = &run.why {
        said.push_str(&format!(": {why}"));
    }
    said
}

/// Returns the time that is left: by the minute, and in the last minute by the second.
pub fn countdown(seconds: u64) -> String {
    let shown = if seconds <= MINUTE {
        seconds
    } else {
        seconds.div_ceil(MINUTE) * MINUTE
    };
    duration(Duration::from_secs(shown))
}

fn iterations(run: &RunReport) -> String {
    let cap = run.max_iterations.map(|most| {
        let left = u64::from(most).saturating_sub(run.iteration);
        [most.to_string(), left.to_string()]
    });
    let said = within_cap(run.iteration.to_string(), cap);
    let turns = count(run.turns, "turn");
    let reboots = count(run.reboots, "reboot");
    format!("{said} · {turns} · {reboots}")
}

fn time(run: &RunReport) -> String {
    let seconds = |time: u64| duration(Duration::from_secs(time));
    // The time is shown by the minute: a figure that changes each second draws the eye.
    let whole = |time: u64| {
        if time < MINUTE {
            time
        } else {
            time / MINUTE * MINUTE
        }
    };
    let spent = whole(run.elapsed_s);
    let cap = run.max_time_s;
    let cap = cap.map(|most| [most, most.saturating_sub(spent)].map(seconds));
    within_cap(seconds(spent), cap)
}

/// Returns how fast the context window fills, and what is left of it.
fn context(run: &RunReport) -> Option<String> {
    let said = forecast::words(run.forecast.as_ref()?);
    (!said.is_empty()).then(|| said.join(" · "))
}

fn cost(run: &RunReport) -> String {
    let left = |most: f64| (most - run.cost_usd).max(0.0);
    let cap = run.max_cost_usd.map(|most| [most, left(most)].map(dollars));
    within_cap(dollars(run.cost_usd), cap)
}

/// Returns what is spent, with the cap and what is left of it if there is one.
fn within_cap(spent: String, cap: Option<[String; 2]>) -> String {
    match cap {
        Some([most, left]) => format!("{spent} of {most} ({left} left)"),
        None => spent,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api::wire::{ForecastReport, ForecastUnit};

    /// A run in the middle of its work.
    fn run() -> RunReport {
        RunReport {
            phase: RunPhase::Waiting,
            task: "Port the importer".to_owned(),
            stop_phrase: "ALL DONE".to_owned(),
            headless: false,
            iteration: 3,
            max_iterations: Some(50),
            turns: 9,
            elapsed_s: 3_905,
            max_time_s: Some(8 * 3_600),
            cost_usd: 4.12,
            max_cost_usd: Some(25.0),
            paused_by: None,
            why: Some("1 background agent".to_owned()),
            waits_until: None,
            waits_s: Some(245),
            done: 3,
            open: 4,
            next: Some("back-pressure".to_owned()),
            reboots: 2,
            commits: 5,
            tests_passed: 7,
            tests_failed: 1,
            forecast: Some(ForecastReport {
                unit: Some(ForecastUnit::Minutes),
                growth_per_minute: Some(4_100),
                growth_per_call: Some(820),
                minutes_left: Some(12),
                calls_left: Some(62),
                ..ForecastReport::default()
            }),
            timeline: Vec::new(),
        }
    }

    #[test]
    fn a_run_is_described_with_what_is_left_of_its_caps() {
        let now = At {
            since_start: Duration::ZERO,
            asleep: Duration::ZERO,
            wall: chrono::DateTime::UNIX_EPOCH,
            zone: pitstop_base::clock::UTC,
        };
        let facts: Vec<String> = facts(&run(), now)
            .into_iter()
            .map(|(name, said)| format!("{name}: {said}"))
            .collect();
        assert_eq!(
            facts,
            [
                "task: Port the importer",
                "until: the agent says \"ALL DONE\"",
                "state: waiting 5 min: 1 background agent",
                "plan: 3 of 7 done · next: back-pressure",
                "iterations: 3 of 50 (47 left) · 9 turns · 2 reboots",
                "time: 1 h 5 min of 8 h (6 h 55 min left)",
                "context: +4.1k a minute · about 12 min left · 60 tool calls left",
                "cost: $4.12 of $25.00 ($20.88 left)",
                "commits: 5",
                "test runs: 7 passed, 1 failed",
            ]
        );
        assert_eq!(countdown(42), "42 s");
        assert_eq!(countdown(61), "2 min");
    }
}
