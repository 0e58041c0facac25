//! `pitstop history`: the iterations of this run from its supervisor, and those of this and earlier runs from the store.

mod chart;
mod detail;
mod totals;

use clap::Args;
use serde_json::{Value, json};

use super::here::Here;
use super::out::{self, Failure, Outcome, columns, duration, tokens};
use crate::runtime::zone;
use pitstop_base::clean;
use pitstop_base::clock::Zone;
use pitstop_base::format;
use pitstop_core::api::wire::{HistoryReport, IterationReport};
use pitstop_core::app::report::iteration_report;
use pitstop_core::config::load::Flags;
use pitstop_core::lineage::past::PastSession;
use pitstop_core::lineage::{Cause, EndReason, IterationId, metrics};
use pitstop_store::{HistoryOf, RunHistory, Store, StoreError};
use pitstop_transcript::SessionId;

/// The number of newest runs that are searched for the last one: their names are exact only to the second.
const RUNS: u32 = 16;

/// The number of newest runs that are listed and summed: more than there are, or a total would lack some.
const ALL_RUNS: u32 = 1_000_000;

/// The most iterations that a search finds.
const FOUND: u32 = 500;

/// The number of characters of the shortest accepted beginning of a session's id: a shorter number is an iteration's.
const SHORTEST_ID: usize = 4;

/// The number of characters of a task that are shown in a table.
const TASK: usize = 60;

/// List the iterations of this run, or of the last one if no supervisor runs here.
#[derive(Args, Clone, Debug)]
pub struct HistoryArgs {
    /// Show one iteration with the handoffs it was given and gave and its whole summary: its number in the newest run, or the
    /// beginning of its session's id
    #[arg(value_name = "ITERATION|SESSION", conflicts_with_all = ["all", "search", "totals", "chart"])]
    pub one: Option<String>,
    /// With ITERATION|SESSION: print only what changed from the handoff it was given to the one it gave
    #[arg(long, requires = "one")]
    pub diff: bool,
    /// List the iterations of earlier runs too
    #[arg(long)]
    pub all: bool,
    /// List only iterations of this and earlier runs in whose task, handoffs, summary or record this text occurs
    #[arg(long, value_name = "TEXT")]
    pub search: Option<String>,
    /// Print what all runs here have cost, by run and by day, how their reboots came out, and how long their steps took
    #[arg(long, conflicts_with_all = ["all", "search"])]
    pub totals: bool,
    /// Print a chart of the newest run as SVG: how full the context was, and the cost, turn by turn
    #[arg(long, conflicts_with_all = ["all", "search", "totals", "json"])]
    pub chart: bool,
    /// Print one JSON object
    #[arg(long)]
    pub json: bool,
}

/// Runs the command; 0, or 3 if no supervisor runs here and none ever did, or 1.
pub fn run(args: &HistoryArgs, flags: &Flags) -> Outcome {
    let text = if args.totals {
        totals_of(args, flags)
    } else if args.chart {
        chart_of(flags)
    } else if let Some(one) = &args.one {
        detail_of(one, args, flags)
    } else if args.all || args.search.is_some() {
        runs_of(args, flags)
    } else {
        newest_iterations(args, flags)
    };
    text.map(|text| out::print(&text))
}

/// Returns the iterations of the run of this directory.
fn newest_iterations(args: &HistoryArgs, flags: &Flags) -> Result<String, Failure> {
    let (report, json) = if let Some(found) = out::get_if_any::<HistoryReport>("/history")? {
        found
    } else {
        let report = report_of(&last_run(flags)?);
        let json = serde_json::to_string(&report)?;
        (report, json)
    };
    Ok(out::render(args.json, || json, || describe_run(&report)))
}

/// Reads the store's records of this directory; an iteration that is open there was left by a dead supervisor, unless it runs.
fn read_records<T>(
    flags: &Flags,
    read: impl AsyncFnOnce(&Store, &Here) -> Result<T, StoreError>,
) -> Result<(T, Here), Failure> {
    let here = Here::find_configured(flags)?;
    if !here.has_store() {
        return Err(out::none_recorded());
    }
    let found = here.read_store(async |store| {
        // Other projects have records there, too. Those of a supervisor that runs here may wait to be written.
        let is_known =
            here.find_holder().is_some() || !list_runs(store, &here, 1).await?.is_empty();
        if is_known {
            read(store, &here).await.map(Some)
        } else {
            Ok(None)
        }
    })?;
    Ok((found.ok_or_else(out::none_recorded)?, here))
}

async fn find_runs(store: &Store, here: &Here, limit: u32) -> Result<Vec<RunHistory>, StoreError> {
    let project = HistoryOf::Project(here.project.clone());
    store.history(&project, limit).await
}

/// Returns the same without the records of the reboots and without the summaries, which may be large.
async fn list_runs(store: &Store, here: &Here, limit: u32) -> Result<Vec<RunHistory>, StoreError> {
    let project = HistoryOf::Project(here.project.clone());
    store.outline(&project, limit).await
}

/// Returns the figures of all runs in this directory.
fn totals_of(args: &HistoryArgs, flags: &Flags) -> Result<String, Failure> {
    let read = async |store: &Store, here: &Here| {
        let of = HistoryOf::Project(here.project.clone());
        let totals = store.totals(&of).await?;
        Ok((list_runs(store, here, ALL_RUNS).await?, totals))
    };
    let ((runs, totals), _) = read_records(flags, read)?;
    let json = || totals::as_json(&runs, &totals);
    Ok(out::render(args.json, json, || {
        totals::table(&runs, &totals)
    }))
}

/// Returns the chart of the newest run in which a turn was measured.
fn chart_of(flags: &Flags) -> Result<String, Failure> {
    let read = async |store: &Store, here: &Here| {
        for run in list_runs(store, here, RUNS).await? {
            let turns = metrics::turns(&store.metrics(&run.run.run).await?);
            if !turns.is_empty() {
                return Ok(Some((run, turns)));
            }
        }
        Ok(None)
    };
    let (found, here) = read_records(flags, read)?;
    let drawn = found.and_then(|(run, turns)| {
        let title = format!("pitstop · {} · run {}", here.project.path, run.run.run);
        chart::draw(&title, &turns, &run.iterations, &here.config.guard)
    });
    drawn.ok_or_else(|| {
        out::failed(
            "no turn has been measured here yet",
            "a turn is recorded when the next one begins, or when the session ends",
        )
    })
}

/// Returns the details of one iteration.
fn detail_of(one: &str, args: &HistoryArgs, flags: &Flags) -> Result<String, Failure> {
    let read = async |store: &Store, here: &Here| find_iteration(store, here, one).await;
    let (found, here) = read_records(flags, read)?;
    let past = found.map_err(|why| out::failed(&why, "`pitstop history --all` lists them"))?;
    if !args.diff {
        let report = match live_report(&here, &past)? {
            Some(report) => report,
            None => iteration_report(&past.iteration),
        };
        let json = || detail::as_json(&past, &report);
        return Ok(out::render(args.json, json, || {
            detail::describe(&past, &report)
        }));
    }
    let changes = detail::handoff_difference(&past).ok_or_else(|| {
        out::failed(
            "there are not two handoffs to compare: this iteration was given none, or has made none",
            "",
        )
    })?;
    let json = || json!({ "difference": changes });
    Ok(out::render(args.json, json, || {
        clean::text(&changes).into_owned()
    }))
}

/// Returns what the supervisor says of an iteration that is not over: the store holds it as it was written last.
fn live_report(here: &Here, past: &PastSession) -> Result<Option<IterationReport>, Failure> {
    if !past.iteration.is_open() || here.find_holder().is_none() {
        return Ok(None);
    }
    let live = out::get_if_any::<HistoryReport>("/history")?.map(|(report, _)| report);
    let run = past.run.to_string();
    let live = live.filter(|report| report.run_id.as_deref() == Some(&run));
    let number = past.iteration.iteration.get();
    Ok(live.and_then(|report| {
        let mut all = report.iterations.into_iter();
        all.find(|one| u64::from(one.iteration) == number)
    }))
}

/// Finds the iteration that is meant, or returns the reason why that is not known.
async fn find_iteration(
    store: &Store,
    here: &Here,
    one: &str,
) -> Result<Result<PastSession, String>, StoreError> {
    let runs = list_runs(store, here, ALL_RUNS).await?;
    let number = one.trim_start_matches('#').parse().ok();
    let meant = match number.and_then(IterationId::new) {
        Some(number) if one.len() < format::SHORT_ID => runs
            .iter()
            .max_by_key(|run| run.run.started_at)
            .map(|newest| (newest.run.run.clone(), number)),
        _ => {
            let begins = |id: SessionId| id.to_string().starts_with(&one.to_ascii_lowercase());
            let mut of_it: Vec<_> = runs
                .iter()
                .flat_map(|run| run.iterations.iter().map(move |one| (run, one)))
                .filter(|(_, iteration)| iteration.session_id.is_some_and(begins))
                .collect();
            // The same session may have been resumed: the newest iteration is meant.
            of_it.sort_by_key(|(run, iteration)| (run.run.started_at, iteration.iteration));
            let mut ids: Vec<_> = of_it.iter().map(|(_, one)| one.session_id).collect();
            ids.sort_unstable();
            ids.dedup();
            if ids.len() > 1 && one.len() >= SHORTEST_ID {
                return Ok(Err(format!(
                    "{} sessions begin with {one:?}: give more of the id",
                    ids.len()
                )));
            }
            let newest = of_it.pop().filter(|_| one.len() >= SHORTEST_ID);
            newest.map(|(run, iteration)| (run.run.run.clone(), iteration.iteration))
        }
    };
    let found = match meant {
        Some((run, iteration)) => store.past(&run, iteration).await?,
        None => None,
    };
    Ok(found.ok_or_else(|| format!("no iteration or session {one:?} is known here")))
}

/// Returns the iterations of all runs, or those that contain a text.
fn runs_of(args: &HistoryArgs, flags: &Flags) -> Result<String, Failure> {
    let read = async |store: &Store, here: &Here| {
        let mut runs = find_runs(store, here, ALL_RUNS).await?;
        if let Some(wanted) = &args.search {
            let found = store.search(&here.project, wanted, FOUND).await?;
            for run in &mut runs {
                let of_it = |one: &pitstop_core::lineage::Iteration| {
                    found.contains(&(run.run.run.clone(), one.iteration))
                };
                let kept: Vec<_> = run.iterations.drain(..).filter(of_it).collect();
                run.iterations = kept;
            }
            runs.retain(|run| !run.iterations.is_empty());
        }
        Ok(runs)
    };
    let (runs, here) = read_records(flags, read)?;
    // The store holds an open iteration as it was written last; its supervisor knows the costs since then.
    let live = match here.find_holder() {
        Some(_) => out::get_if_any::<HistoryReport>("/history")?,
        None => None,
    };
    let live = live.map(|(report, _)| report);
    let reports: Vec<_> = runs
        .iter()
        .map(|run| {
            let name = run.run.run.to_string();
            let known = live
                .as_ref()
                .filter(|one| one.run_id.as_deref() == Some(&name));
            (
                run,
                known.map_or_else(|| report_of(run), |live| only_of(run, live)),
            )
        })
        .collect();
    let json = || all_json(&reports);
    Ok(out::render(args.json, json, || all_table(&reports, zone)))
}

/// Returns a supervisor's report of its run, without the iterations that a search has not found.
fn only_of(run: &RunHistory, live: &HistoryReport) -> HistoryReport {
    let is_listed = |one: &&IterationReport| {
        let mut listed = run.iterations.iter();
        listed.any(|listed| listed.iteration.get() == u64::from(one.iteration))
    };
    HistoryReport {
        run_id: live.run_id.clone(),
        iterations: live.iterations.iter().filter(is_listed).cloned().collect(),
    }
}

fn all_json(runs: &[(&RunHistory, HistoryReport)]) -> Value {
    let run = |(run, report): &(&RunHistory, HistoryReport)| {
        json!({
            "run_id": run.run.run, "task": run.run.task, "started_at": run.run.started_at,
            "ended_at": run.run.ended_at, "cost_usd": run_cost(report), "iterations": report.iterations,
        })
    };
    json!({ "runs": runs.iter().map(run).collect::<Vec<_>>() })
}

fn all_table(runs: &[(&RunHistory, HistoryReport)], zone: Zone) -> String {
    if runs.is_empty() {
        return "nothing found\n".to_owned();
    }
    let tables: Vec<String> = runs
        .iter()
        .map(|(run, report)| {
            let began = run.run.started_at;
            let began = began.with_timezone(&zone(began)).format("%Y-%m-%d %H:%M");
            let mut parts = vec![format!("run {}", run.run.run), began.to_string()];
            parts.extend(run_cost(report).map(format::dollars));
            let task = run.run.task.as_deref();
            parts.extend(task.map(|task| short_task(Some(task))));
            format!("{}\n{}", parts.join(" · "), describe_run(report))
        })
        .collect();
    tables.join("\n")
}

/// Returns the cost of a run with its summaries, where that is known.
fn run_cost(report: &HistoryReport) -> Option<f64> {
    let summary = |one: &IterationReport| one.summary_made.as_ref()?.cost_usd;
    let iterations = report.iterations.iter();
    let costs = iterations.flat_map(|one| [one.cost_usd, summary(one)]);
    costs.flatten().reduce(|sum, cost| sum + cost)
}

/// Returns the start of a task's first line, safe to show.
fn short_task(task: Option<&str>) -> String {
    let line = task
        .unwrap_or("–")
        .trim()
        .lines()
        .next()
        .unwrap_or_default();
    let start: String = line.chars().take(TASK).collect();
    let more = if start.len() < line.len() { "…" } else { "" };
    format!("{}{more}", clean::one_line(&start))
}

/// Returns the last run in this directory.
fn last_run(flags: &Flags) -> Result<RunHistory, Failure> {
    let (runs, _) = read_records(flags, async |store: &Store, here: &Here| {
        find_runs(store, here, RUNS).await
    })?;
    let last = runs.into_iter().max_by_key(|one| one.run.started_at);
    last.ok_or_else(out::none_recorded)
}

/// Returns the report of a run whose supervisor is gone: an iteration that is open was left by a crash.
fn report_of(history: &RunHistory) -> HistoryReport {
    let iterations = history.iterations.iter().map(|iteration| {
        let mut report = iteration_report(iteration);
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

/// Returns the report as a table for people.
pub fn describe_run(report: &HistoryReport) -> String {
    if report.iterations.is_empty() {
        return "no iterations yet\n".to_owned();
    }
    let mut rows = vec![out::heads(HEADS)];
    for (at, one) in report.iterations.iter().enumerate() {
        let next = report.iterations.get(at + 1);
        let next = next.filter(|next| next.iteration == one.iteration + 1);
        let cause = next.and_then(|next| next.cause.as_deref()?.parse().ok());
        rows.push(table_fields(one, cause));
    }
    columns(&rows)
}

/// The heads of the columns of iterations.
const HEADS: &str = "#|session|began|ended|lasted|tokens|reboot|handoff|cost";

/// Returns the reason why an iteration began, in words; a word of another version as it is.
fn began_in_words(word: &str) -> String {
    if word == "start" {
        return "started".to_owned();
    }
    let cause: Result<Cause, _> = word.parse();
    cause.map_or_else(|_| word.replace('_', " "), |cause| cause.short().to_owned())
}

fn ended_in_words(word: &str, iteration: &IterationReport, next: Option<Cause>) -> String {
    let reason: Result<EndReason, _> = word.parse();
    reason.map_or_else(
        |_| word.replace('_', " "),
        |one| one.short(next, iteration.signal.as_deref(), iteration.in_turn),
    )
}

/// Returns the tokens at the start and at the end, and the number of compactions between.
fn token_figures(iteration: &IterationReport) -> String {
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

/// Returns a row of the table; the cause of the next iteration is how this one ended.
fn table_fields(iteration: &IterationReport, next: Option<Cause>) -> Vec<String> {
    let none = || "–".to_owned();
    let cause = iteration.cause.as_deref().map_or_else(none, began_in_words);
    let reason = iteration.end_reason.as_deref();
    let reason = reason.map_or_else(none, |reason| ended_in_words(reason, iteration, next));
    let transition: u64 = iteration.transition_time_ms.values().sum();
    let session = iteration.session_id.as_deref().unwrap_or("–");
    vec![
        iteration.iteration.to_string(),
        format::short_id(session),
        match iteration.way.as_deref() {
            Some(way @ ("trim" | "in-place")) => format!("{cause}, {way}"),
            _ => cause,
        },
        match iteration.ended_at {
            None if iteration.end_reason.is_none() => "running".to_owned(),
            _ => reason,
        },
        match iteration.duration_ms {
            // Its supervisor was killed, or the clock was set back.
            0 if iteration.end_reason.is_some() => none(),
            lasted => duration(lasted),
        },
        token_figures(iteration),
        if iteration.transition_time_ms.is_empty() {
            none()
        } else {
            duration(transition)
        },
        iteration.handoff_bytes.map_or_else(none, format::bytes),
        iteration.cost_usd.map_or_else(none, format::dollars),
    ]
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use chrono::{DateTime, Utc};

    use super::*;
    use pitstop_core::api::wire::IterationTokens;
    use pitstop_core::lineage::{Lineage, ProcessStamp, Project, RunId};
    use pitstop_store::RunRecord;

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
        let died = IterationReport {
            iteration: 2,
            session_id: Some("2".into()),
            cause: Some("key".into()),
            end_reason: Some("crash".into()),
            ..IterationReport::default()
        };
        let killed = HistoryReport {
            run_id: None,
            iterations: vec![died],
        };
        let row = describe_run(&killed);
        assert!(row.contains("by key  died   –       –"), "{row}");
        let report = HistoryReport {
            run_id: None,
            iterations: vec![first, second],
        };
        assert_eq!(
            describe_run(&report),
            "#  session   began    ended            lasted      tokens                  reboot  handoff  cost\n\
             1  01234567  started  rebooted by key  3 min 20 s  20k → 155k (compacted)  –       –        $1.50\n\
             2  s\\u{1b}2  by key   running          900 ms      –                       420 ms  3.1 KB   –\n"
        );
    }

    /// Makes a run whose iterations, an hour apart, have these costs.
    pub(super) fn run(started: DateTime<Utc>, costs: &[f64]) -> RunHistory {
        let name = RunId::new(started, [1, 2, 3]);
        let mut lineage = Lineage::new(name.clone());
        for (hour, cost) in (0..).zip(costs) {
            let at = started + chrono::TimeDelta::hours(hour);
            lineage.open(None, None, at).unwrap();
            lineage.current_mut().unwrap().cost_usd = Some(*cost);
            lineage.close(at, EndReason::Shutdown).unwrap();
        }
        RunHistory {
            run: RunRecord {
                run: name,
                project: Project::new(std::path::Path::new("/p"), "host"),
                process: ProcessStamp {
                    pid: 1,
                    start_time: "x".to_owned(),
                },
                agent: "claude".to_owned(),
                version: "0".to_owned(),
                task: Some("port the importer\nand more".to_owned()),
                started_at: started,
                ended_at: None,
                end_reason: None,
            },
            iterations: lineage.iterations().to_vec(),
        }
    }

    #[test]
    fn a_run_that_goes_on_is_listed_as_its_supervisor_knows_it() {
        let started = DateTime::from_timestamp(1_795_000_000, 0).unwrap();
        let mut one = run(started, &[1.0, 0.5]);
        let mut live = report_of(&one);
        live.iterations[1].cost_usd = Some(7.5);
        // The search has found only the second iteration.
        one.iterations.remove(0);
        let shown = only_of(&one, &live);
        assert_eq!((shown.iterations.len(), run_cost(&shown)), (1, Some(7.5)));
    }

    #[test]
    fn each_run_of_a_list_has_its_cost_and_its_task() {
        let started = DateTime::from_timestamp(1_795_000_000, 0).unwrap();
        let one = run(started, &[1.0, 0.5]);
        let reports = [(&one, report_of(&one))];
        let table = all_table(&reports, pitstop_base::clock::UTC);
        assert!(
            table.starts_with(
                "run 20261118-110640-010203 · 2026-11-18 11:06 · $1.50 · port the importer\n"
            ),
            "{table}"
        );
        let json = all_json(&reports);
        assert_eq!(json["runs"][0]["cost_usd"], 1.5);
        assert_eq!(json["runs"][0]["iterations"][1]["cost_usd"], 0.5);
        assert_eq!(all_table(&[], pitstop_base::clock::UTC), "nothing found\n");
    }

    #[test]
    fn a_run_without_iterations_says_so() {
        assert_eq!(
            describe_run(&HistoryReport::default()),
            "no iterations yet\n"
        );
    }
}
