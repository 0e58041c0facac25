//! `pitstop history --totals`: the costs of the runs here, by run and by day, the outcomes of their reboots, and the time
//! that each step took.

use std::collections::BTreeMap;

use chrono::NaiveDate;
use serde_json::{Value, json};

use super::short_task;
use crate::cli::out::{columns, duration, heads};
use pitstop_base::format;
use pitstop_core::lineage::{EndReason, Iteration, metrics::Total};
use pitstop_store::RunHistory;

/// The line that explains "at least" in the text of [`Cost::in_words`].
const AT_LEAST: &str =
    "at least: an agent was killed or still works there, and its last call is not in it\n";

/// The cost of several iterations together.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Cost {
    iterations: usize,
    usd: f64,
    /// True if one of them died, or has no end on record: the client reports the cost of a call behind it.
    at_least: bool,
}

impl Cost {
    fn of<'a>(iterations: impl IntoIterator<Item = &'a Iteration>) -> Self {
        let mut cost = Self::default();
        for one in iterations {
            cost.add(one);
        }
        cost
    }

    fn add(&mut self, iteration: &Iteration) {
        self.iterations += 1;
        self.usd += iteration.total_cost().unwrap_or_default();
        self.at_least |= matches!(iteration.end_reason, None | Some(EndReason::Crash));
    }

    fn in_words(self) -> String {
        let least = if self.at_least { "at least " } else { "" };
        format!("{least}{}", format::dollars(self.usd))
    }
}

fn total(runs: &[RunHistory]) -> Cost {
    Cost::of(runs.iter().flat_map(|run| &run.iterations))
}

/// Returns the costs by the day on which an iteration began, UTC, newest first.
fn by_day(runs: &[RunHistory]) -> Vec<(NaiveDate, Cost)> {
    let mut days: BTreeMap<NaiveDate, Cost> = BTreeMap::new();
    for iteration in runs.iter().flat_map(|run| &run.iterations) {
        let day = iteration.started_at.date_naive();
        days.entry(day).or_default().add(iteration);
    }
    days.into_iter().rev().collect()
}

/// Returns the totals as one JSON object.
pub(super) fn as_json(runs: &[RunHistory], found: &[Total]) -> Value {
    let reboots: Vec<_> = found
        .iter()
        .filter_map(|one| {
            let (cause, outcome) = one.reboots()?;
            Some(json!({"cause": cause, "outcome": outcome, "count": one.count}))
        })
        .collect();
    let steps: Vec<_> = found
        .iter()
        .filter_map(|one| {
            let step = one.step()?;
            Some(
                json!({"step": step, "count": one.count, "mean_ms": one.mean(), "max_ms": one.max}),
            )
        })
        .collect();
    let by_run = runs.iter().map(|run| {
        let cost = Cost::of(&run.iterations);
        json!({"run_id": run.run.run, "started_at": run.run.started_at, "task": run.run.task,
               "iterations": cost.iterations, "cost_usd": cost.usd, "at_least": cost.at_least})
    });
    let days = by_day(runs).into_iter().map(|(day, cost)| {
        json!({"day": day.to_string(), "iterations": cost.iterations, "cost_usd": cost.usd, "at_least": cost.at_least})
    });
    let all = total(runs);
    json!({
        "cost_usd": all.usd, "at_least": all.at_least,
        "runs": by_run.collect::<Vec<_>>(), "days": days.collect::<Vec<_>>(),
        "reboots": reboots, "steps": steps,
    })
}

/// Returns the totals as tables.
pub(super) fn table(runs: &[RunHistory], found: &[Total]) -> String {
    let mut by_run = vec![heads("run|iterations|cost|task")];
    by_run.extend(runs.iter().map(|run| {
        let cost = Cost::of(&run.iterations);
        vec![
            run.run.run.to_string(),
            cost.iterations.to_string(),
            cost.in_words(),
            short_task(run.run.task.as_deref()),
        ]
    }));
    let mut days = vec![heads("day (UTC)|iterations|cost")];
    let all = total(runs);
    let named = by_day(runs).into_iter();
    let named = named.map(|(day, cost)| (day.to_string(), cost));
    for (name, cost) in named.chain([("total".to_owned(), all)]) {
        days.push(vec![name, cost.iterations.to_string(), cost.in_words()]);
    }
    let mut reboots = vec![heads("cause|outcome|count")];
    let mut steps = vec![heads("step|count|mean|longest")];
    for one in found {
        if let Some((cause, outcome)) = one.reboots() {
            reboots.push(vec![
                cause.short().to_owned(),
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
    let mut tables = Vec::new();
    if !runs.is_empty() {
        let explained = if all.at_least { AT_LEAST } else { "" };
        tables.extend([columns(&by_run), columns(&days) + explained]);
    }
    if reboots.len() + steps.len() == 2 {
        tables.push("no reboots yet\n".to_owned());
    } else {
        tables.extend([columns(&reboots), columns(&steps)]);
    }
    tables.join("\n")
}

#[cfg(test)]
mod tests {
    use chrono::{TimeDelta, TimeZone, Utc};

    use super::*;
    use crate::cli::history::tests::run;

    #[test]
    fn costs_are_summed_by_run_and_by_the_day_an_iteration_began() {
        let evening = Utc.with_ymd_and_hms(2026, 11, 20, 23, 30, 0).unwrap();
        let runs = [
            run(evening + TimeDelta::hours(9), &[2.0]),
            run(evening, &[1.5, 0.25]),
        ];
        assert_eq!(
            table(&runs, &[]),
            "run                     iterations  cost   task\n\
             20261121-083000-010203  1           $2.00  port the importer\n\
             20261120-233000-010203  2           $1.75  port the importer\n\
             \n\
             day (UTC)   iterations  cost\n\
             2026-11-21  2           $2.25\n\
             2026-11-20  1           $1.50\n\
             total       3           $3.75\n\
             \n\
             no reboots yet\n"
        );
        let json = as_json(&runs, &[]);
        assert_eq!(json["cost_usd"], 3.75);
        assert_eq!(json["days"][0]["cost_usd"], 2.25);
        assert_eq!(json["runs"][1]["iterations"], 2);
    }

    #[test]
    fn a_total_with_an_agent_that_was_killed_is_the_least_that_was_spent() {
        let evening = Utc.with_ymd_and_hms(2026, 11, 20, 23, 30, 0).unwrap();
        let mut killed = run(evening, &[1.5, 0.25]);
        killed.iterations[0].end_reason = Some(EndReason::Crash);
        let runs = [run(evening + TimeDelta::hours(9), &[2.0]), killed];
        let text = table(&runs, &[]);
        let (spent, least): (Vec<&str>, Vec<&str>) = text
            .lines()
            .filter(|line| line.contains('$'))
            .partition(|line| !line.contains("at least $"));
        assert_eq!((spent.len(), least.len()), (2, 3), "{text}");
        assert!(text.contains(AT_LEAST), "{text}");
        let json = as_json(&runs, &[]);
        assert_eq!(json["at_least"], true);
        assert_eq!(json["runs"][0]["at_least"], false);
    }

    #[test]
    fn reboots_are_counted_by_cause_and_outcome_and_their_steps_timed() {
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
            table(&[], &found),
            "cause                outcome      count\n\
             by key               done         2\n\
             at the compact line  rolled back  1\n\
             \n\
             step    count  mean    longest\n\
             ending  2      250 ms  300 ms\n"
        );
        let json = as_json(&[], &found);
        assert_eq!(json["reboots"][1]["outcome"], "rolled_back");
        assert_eq!(json["steps"][0]["mean_ms"], 250.0);
        assert_eq!(table(&[], &[]), "no reboots yet\n");
    }

    #[test]
    fn a_total_with_an_agent_whose_end_is_not_on_record_is_the_least_that_was_spent() {
        let evening = Utc.with_ymd_and_hms(2026, 11, 20, 23, 30, 0).unwrap();
        let mut cut = run(evening, &[1.5]);
        cut.iterations[0].ended_at = None;
        cut.iterations[0].end_reason = None;
        let runs = [cut];
        let text = table(&runs, &[]);
        assert!(text.contains("at least $1.50"), "{text}");
        assert!(text.contains(AT_LEAST), "{text}");
        assert_eq!(as_json(&runs, &[])["at_least"], true);
    }

    #[test]
    fn the_summaries_are_in_what_a_run_has_cost() {
        use pitstop_handoff::summary::{SummaryMade, SummarySource};
        let at = Utc.with_ymd_and_hms(2026, 11, 20, 23, 30, 0).unwrap();
        let mut summed = run(at, &[1.5]);
        summed.iterations[0].summary_made = Some(SummaryMade {
            source: SummarySource::Model,
            cost_usd: Some(0.25),
            duration_ms: None,
            reason: None,
        });
        let json = as_json(&[summed], &[]);
        assert_eq!(json["cost_usd"], 1.75);
        assert_eq!(json["days"][0]["cost_usd"], 1.75);
        assert_eq!(json["runs"][0]["cost_usd"], 1.75);
    }
}
