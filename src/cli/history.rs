//! `pitstop history [--json]`: the iterations of the run, as its supervisor knows them.

use clap::Args;

use super::out::{self, columns, duration, tokens};
use crate::api::wire::{HistoryReport, IterationReport};

/// The characters of a session's id that tell it from its neighbours in a table.
const SHORT_ID: usize = 8;

/// Lists the iterations of this run.
#[derive(Args, Clone, Debug)]
pub struct HistoryArgs {
    /// Print one JSON object
    #[arg(long)]
    pub json: bool,
}

/// Runs the command; 0, or 3 if no supervisor runs here, or 1.
#[must_use]
pub fn run(args: &HistoryArgs) -> i32 {
    match out::get::<HistoryReport>("/history") {
        Ok((_, json)) if args.json => out::print(&format!("{json}\n")),
        Ok((report, _)) => out::print(&describe(&report)),
        Err(code) => code,
    }
}

/// The report as a table for people.
#[must_use]
pub fn describe(report: &HistoryReport) -> String {
    if report.iterations.is_empty() {
        return "no iterations yet\n".to_owned();
    }
    let head = [
        "#", "session", "began by", "ended by", "lasted", "tokens", "reboot", "handoff", "cost",
    ];
    let mut rows = vec![head.map(str::to_owned).to_vec()];
    rows.extend(report.iterations.iter().map(fields));
    columns(&rows)
}

fn fields(iteration: &IterationReport) -> Vec<String> {
    let none = || "–".to_owned();
    let word = |text: &Option<String>| {
        text.as_deref()
            .map_or_else(none, |text| text.replace('_', " "))
    };
    let transition: u64 = iteration.transition_time_ms.values().sum();
    let session = iteration.session_id.as_deref().unwrap_or("–");
    vec![
        iteration.iteration.to_string(),
        session.chars().take(SHORT_ID).collect(),
        word(&iteration.cause),
        match iteration.ended_at {
            None if iteration.end_reason.is_none() => "running".to_owned(),
            _ => word(&iteration.end_reason),
        },
        duration(iteration.duration_ms),
        match (iteration.tokens.at_start, iteration.tokens.at_end) {
            (Some(start), Some(end)) => format!("{} → {}", tokens(start), tokens(end)),
            (None, Some(end)) => tokens(end),
            _ => none(),
        },
        if iteration.transition_time_ms.is_empty() {
            none()
        } else {
            duration(transition)
        },
        iteration
            .handoff_bytes
            .map_or_else(none, |bytes| format!("{bytes} B")),
        iteration
            .cost_usd
            .map_or_else(none, |cost| format!("${cost:.2}")),
    ]
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::api::wire::IterationTokens;

    #[test]
    fn people_get_one_aligned_line_an_iteration() {
        let first = IterationReport {
            iteration: 1,
            session_id: Some("0123456789".into()),
            cause: Some("start".into()),
            end_reason: Some("user_reboot".into()),
            duration_ms: 200_000,
            tokens: IterationTokens {
                at_start: Some(20_000),
                at_end: Some(155_000),
                ..IterationTokens::default()
            },
            cost_usd: Some(1.5),
            ..IterationReport::default()
        };
        let second = IterationReport {
            iteration: 2,
            session_id: Some("s\u{1b}2".into()),
            cause: Some("key".into()),
            duration_ms: 900,
            transition_time_ms: BTreeMap::from([("ending".into(), 120), ("starting".into(), 300)]),
            handoff_bytes: Some(3_100),
            ..IterationReport::default()
        };
        let report = HistoryReport {
            run_id: None,
            iterations: vec![first, second],
        };
        assert_eq!(
            describe(&report),
            "#  session   began by  ended by     lasted      tokens          reboot  handoff  cost\n\
             1  01234567  start     user reboot  3 min 20 s  20.0k → 155.0k  –       –        $1.50\n\
             2  s\\u{1b}2  key       running      900 ms      –               420 ms  3100 B   –\n"
        );
    }

    #[test]
    fn a_run_without_iterations_says_so() {
        assert_eq!(describe(&HistoryReport::default()), "no iterations yet\n");
    }
}
