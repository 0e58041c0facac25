//! `pitstop history [--json]`: the iterations of the run, as its supervisor knows them, or of the last run, as
//! the store does.

use clap::Args;

use super::here::Here;
use super::out::{self, columns, complain, duration, tokens};
use crate::api::wire::{HistoryReport, IterationReport};
use crate::app::report::iteration_report;
use crate::config::load::Flags;
use crate::format;
use crate::lineage::EndReason;
use crate::lineage::metrics::Total;
use crate::store::{HistoryOf, RunHistory};

/// How many of the newest runs are looked through for the last one: their names hold the second only.
const RUNS: u32 = 16;

/// The characters of a session's id that distinguish it from its neighbours in a table.
const SHORT_ID: usize = 8;

/// Lists the iterations of this run, or of the last one if no supervisor runs here.
#[derive(Args, Clone, Debug)]
pub struct HistoryArgs {
    /// Show how the reboots of all runs here came out, and how long their steps took
    #[arg(long)]
    pub totals: bool,
    /// Print one JSON object
    #[arg(long)]
    pub json: bool,
}

/// Runs the command; 0, or 3 if no supervisor runs here and none ever did, or 1.
#[must_use]
pub fn run(args: &HistoryArgs, flags: &Flags) -> i32 {
    if args.totals {
        return totals(args, flags).unwrap_or_else(|code| code);
    }
    let found = out::get_if_any::<HistoryReport>("/history").and_then(|found| match found {
        Some(found) => Ok(found),
        None => last_run(flags).and_then(|report| {
            let json = serde_json::to_string(&report).map_err(|error| fail(&error))?;
            Ok((report, json))
        }),
    });
    match found {
        Ok((_, json)) if args.json => out::print(&format!("{json}\n")),
        Ok((report, _)) => out::print(&describe(&report)),
        Err(code) => code,
    }
}

fn fail(error: &dyn std::error::Error) -> i32 {
    complain(&error.to_string(), "");
    out::FAILED
}

/// The figures of all runs in this directory, from the store.
fn totals(args: &HistoryArgs, flags: &Flags) -> Result<i32, i32> {
    let here = Here::find(flags)?;
    if !here.has_store() {
        return Err(out::none_runs());
    }
    let of = HistoryOf::Project(here.project.clone());
    let found = here.with_store(async |store| store.totals(&of).await)?;
    Ok(out::print(&if args.json {
        format!("{}\n", totals_json(&found))
    } else {
        totals_table(&found)
    }))
}

fn totals_json(found: &[Total]) -> serde_json::Value {
    let reboots: Vec<_> = found
        .iter()
        .filter_map(|one| {
            let (cause, outcome) = one.reboots()?;
            Some(serde_json::json!({"cause": cause, "outcome": outcome, "count": one.count}))
        })
        .collect();
    let steps: Vec<_> = found
        .iter()
        .filter_map(|one| {
            let step = one.step()?;
            Some(serde_json::json!({"step": step, "count": one.count, "mean_ms": one.mean(), "max_ms": one.max}))
        })
        .collect();
    serde_json::json!({"reboots": reboots, "steps": steps})
}

fn totals_table(found: &[Total]) -> String {
    let mut reboots = vec![
        ["reboots by", "came out", "times"]
            .map(str::to_owned)
            .to_vec(),
    ];
    let mut steps = vec![
        ["step", "times", "mean", "longest"]
            .map(str::to_owned)
            .to_vec(),
    ];
    for one in found {
        if let Some((cause, outcome)) = one.reboots() {
            reboots.push(vec![
                cause.as_str().replace('_', " "),
                outcome.as_str().replace('_', " "),
                one.count.to_string(),
            ]);
        } else if let Some(step) = one.step() {
            steps.push(vec![
                step.as_str().replace('_', " "),
                one.count.to_string(),
                duration(one.mean() as u64),
                duration(one.max as u64),
            ]);
        }
    }
    if reboots.len() + steps.len() == 2 {
        return "no reboots yet\n".to_owned();
    }
    format!("{}\n{}", columns(&reboots), columns(&steps))
}

/// The last run in this directory, from the store.
fn last_run(flags: &Flags) -> Result<HistoryReport, i32> {
    let here = Here::find(flags)?;
    if !here.has_store() {
        return Err(out::none_runs());
    }
    let project = HistoryOf::Project(here.project.clone());
    let runs = here.with_store(async |store| store.history(&project, RUNS).await)?;
    let last = runs.into_iter().max_by_key(|one| one.run.started_at);
    last.map(|last| report(&last)).ok_or_else(out::none_runs)
}

fn report(history: &RunHistory) -> HistoryReport {
    let iterations = history.iterations.iter().map(|iteration| {
        let mut report = iteration_report(iteration);
        // No supervisor runs here: what is open was left so by a supervisor that died.
        report
            .end_reason
            .get_or_insert_with(|| EndReason::Crash.to_string());
        report
    });
    HistoryReport {
        run_id: Some(history.run.run.to_string()),
        iterations: iterations.collect(),
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

/// Tokens at the start and at the end, and how often they were compacted between.
fn figures(iteration: &IterationReport) -> String {
    let word = |figure: Option<u64>| figure.map_or_else(|| "–".to_owned(), tokens);
    let (start, end) = (iteration.tokens.at_start, iteration.tokens.at_end);
    let figures = match (start, end) {
        (None, end) => word(end),
        (start, end) => format!("{} → {}", word(start), word(end)),
    };
    match iteration.compactions {
        0 => figures,
        1 => format!("{figures} (compacted)"),
        more => format!("{figures} (compacted {more} times)"),
    }
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
        match iteration.way.as_deref() {
            Some("trim") => format!("{}, trim", word(&iteration.cause)),
            _ => word(&iteration.cause),
        },
        match iteration.ended_at {
            None if iteration.end_reason.is_none() => "running".to_owned(),
            _ => word(&iteration.end_reason),
        },
        duration(iteration.duration_ms),
        figures(iteration),
        if iteration.transition_time_ms.is_empty() {
            none()
        } else {
            duration(transition)
        },
        iteration.handoff_bytes.map_or_else(none, format::bytes),
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
            compactions: 1,
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
            "#  session   began by  ended by     lasted      tokens                  reboot  handoff  cost\n\
             1  01234567  start     user reboot  3 min 20 s  20k → 155k (compacted)  –       –        $1.50\n\
             2  s\\u{1b}2  key       running      900 ms      –                       420 ms  3.1 KB   –\n"
        );
    }

    #[test]
    fn totals_are_told_by_cause_outcome_and_step() {
        let total = |name: &str, count, sum, max| Total {
            name: name.to_owned(),
            count,
            sum,
            max,
        };
        let found = [
            total("reboot:key:done", 2, 2.0, 1.0),
            total("reboot:threshold:rolled_back", 1, 1.0, 1.0),
            total("step:ending", 2, 500.0, 300.0),
            total("transition", 2, 900.0, 500.0),
        ];
        assert_eq!(
            totals_table(&found),
            "reboots by  came out     times\n\
             key         done         2\n\
             threshold   rolled back  1\n\
             \n\
             step    times  mean    longest\n\
             ending  2      250 ms  300 ms\n"
        );
        let json = totals_json(&found);
        assert_eq!(json["reboots"][1]["outcome"], "rolled_back");
        assert_eq!(json["steps"][0]["mean_ms"], 250.0);
        assert_eq!(totals_table(&[]), "no reboots yet\n");
    }

    #[test]
    fn a_run_without_iterations_says_so() {
        assert_eq!(describe(&HistoryReport::default()), "no iterations yet\n");
    }
}
