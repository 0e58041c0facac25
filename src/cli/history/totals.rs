//! `pitstop history --totals`: the costs of the runs here, by run and by day, the outcomes of their reboots, and the time
//! that each step took.

use std::collections::BTreeMap;

use chrono::NaiveDate;
use serde_json::{Value, json};

use super::short_task;
use crate::cli::out::{columns, duration, heads};
use pitstop_base::format;
use pitstop_core::lineage::metrics::Total;
use pitstop_store::RunHistory;

/// The cost of several iterations together.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Cost {
    iterations: usize,
    usd: f64,
}

impl Cost {
    fn add(&mut self, usd: Option<f64>) {
        self.iterations += 1;
        self.usd += usd.unwrap_or(0.0);
    }
}

fn of_run(run: &RunHistory) -> Cost {
    let mut cost = Cost::default();
    for iteration in &run.iterations {
        cost.add(iteration.cost_usd);
    }
    cost
}

/// Returns the costs by the day on which an iteration began, UTC, newest first.
fn by_day(runs: &[RunHistory]) -> Vec<(NaiveDate, Cost)> {
    let mut days: BTreeMap<NaiveDate, Cost> = BTreeMap::new();
    for iteration in runs.iter().flat_map(|run| &run.iterations) {
        let day = iteration.started_at.date_naive();
        days.entry(day).or_default().add(iteration.cost_usd);
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
        let cost = of_run(run);
        json!({"run_id": run.run.run, "started_at": run.run.started_at, "task": run.run.task,
               "iterations": cost.iterations, "cost_usd": cost.usd})
    });
    let days = by_day(runs).into_iter().map(|(day, cost)| {
        json!({"day": day.to_string(), "iterations": cost.iterations, "cost_usd": cost.usd})
    });
    json!({
        "cost_usd": runs.iter().map(|run| of_run(run).usd).sum::<f64>(),
        "runs": by_run.collect::<Vec<_>>(), "days": days.collect::<Vec<_>>(),
        "reboots": reboots, "steps": steps,
    })
}

/// Returns the totals as tables.
pub(super) fn table(runs: &[RunHistory], found: &[Total]) -> String {
    let mut by_run = vec![heads("run|iterations|cost|task")];
    by_run.extend(runs.iter().map(|run| {
        let cost = of_run(run);
        vec![
            run.run.run.to_string(),
            cost.iterations.to_string(),
            format::dollars(cost.usd),
            short_task(run.run.task.as_deref()),
        ]
    }));
    let mut days = vec![heads("day (UTC)|iterations|cost")];
    let mut all = Cost::default();
    for (day, cost) in by_day(runs) {
        days.push(vec![
            day.to_string(),
            cost.iterations.to_string(),
            format::dollars(cost.usd),
        ]);
        all.iterations += cost.iterations;
        all.usd += cost.usd;
    }
    days.push(vec![
        "total".to_owned(),
        all.iterations.to_string(),
        format::dollars(all.usd),
    ]);
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
        tables.extend([columns(&by_run), columns(&days)]);
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
}
