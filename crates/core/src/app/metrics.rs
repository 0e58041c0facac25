//! The counts since the supervisor started, for monitoring.

use std::collections::BTreeMap;

use crate::{
    api::wire::MetricsReport,
    lineage::{IterationId, journal::Step},
};

use crate::app::{facts::spent, model::Model};

/// The number of turns of an iteration.
#[derive(Clone, Copy, Debug)]
pub struct TurnCount(IterationId, u32);

/// Returns the number of turns that the present iteration has had.
pub const fn turns(model: &Model) -> TurnCount {
    TurnCount(model.session.iteration(), model.session.agent.turns)
}

/// Returns the number of turns that have ended since.
pub(super) fn turns_since(model: &Model, before: TurnCount) -> u32 {
    let (TurnCount(iteration, turns), TurnCount(present, now)) = (before, turns(model));
    let same = iteration == present;
    if same { now.saturating_sub(turns) } else { 0 }
}

/// Returns the figures for monitoring.
pub fn metrics(model: &Model) -> MetricsReport {
    let figure = model.session.guard.figure(model.now);
    let figure = figure.as_ref();
    let counters = &model.outside.counters;
    MetricsReport {
        version: model.identity.version.to_owned(),
        agent: model.identity.agent_kind.word().to_owned(),
        used: figure.map(|one| one.used.0),
        window: figure.map(|one| one.window.0),
        usable: figure.map(|one| one.usable.0),
        percent: figure.map(|one| (one.percent * 10.0).round() / 10.0),
        level: figure.map(|one| one.level),
        age_seconds: figure.map(|one| one.age.as_secs_f64()),
        iteration: model.session.iteration().get(),
        turns: counters.turns,
        cost_usd: spent(model).cost_usd,
        reboots: counters
            .reboots
            .iter()
            .map(|((cause, outcome), count)| (cause.as_str(), outcome.into(), *count))
            .collect(),
        transitions: transitions(model),
        commits: counters.commits,
        tests: (counters.tests_passed, counters.tests_failed),
        checkpoints: counters.checkpoints,
    }
}

/// Returns the seconds by step over all reboots of this run, and the number of times.
fn transitions(model: &Model) -> Vec<(&'static str, f64, u64)> {
    let mut steps: BTreeMap<Step, (u64, u64)> = BTreeMap::new();
    let iterations = model.lineage.iterations().iter();
    let records = iterations.filter_map(|one| one.reboot.as_ref());
    for (step, ms) in records.flat_map(|record| &record.transition_time_ms) {
        let (sum, count) = steps.entry(*step).or_default();
        *sum = sum.saturating_add(*ms);
        *count += 1;
    }
    steps
        .into_iter()
        .map(|(step, (ms, count))| (step.as_str(), ms as f64 / 1e3, count))
        .collect()
}
