//! The moment of a reboot as a person sees it: the stages while it goes on, then for some seconds what it has brought.

use std::time::Duration;

use crate::lineage::journal::Step;
use pitstop_handoff::PreservedState;

use crate::app::{
    effect::Effect,
    event::TimerId,
    facts::fresh_tokens,
    model::{
        Model,
        reboot::{Attempt, Reboot},
        view::Outcome,
    },
};

/// The interval at which the stages are drawn while a reboot is under way.
const TICK: Duration = Duration::from_millis(100);

/// Returns the order that begins the display of the reboot's progress, when the old agent is about to be ended.
#[must_use]
pub const fn begin() -> Effect {
    Effect::SetTimer(TimerId::Moment, TICK)
}

/// Returns the next timer for the card that stays for this time, and for the time that a reboot under way has taken.
pub(in crate::app) fn next_timer(left: Option<Duration>, reboot: &Reboot) -> Option<Effect> {
    let under_way = reboot.attempt.as_ref();
    if under_way.is_some_and(|attempt| !attempt.is_harmless()) {
        return Some(begin());
    }
    left.map(|left| Effect::SetTimer(TimerId::Moment, left))
}

/// Returns the card of a reboot that is done, after `took_ms` milliseconds; `items` is true if a handoff has carried items over.
pub(super) fn done(model: &Model, attempt: &Attempt, took_ms: u64, items: bool) -> Outcome {
    let mut iterations = model.lineage.iterations().iter();
    let ended = iterations.find(|one| one.iteration == attempt.from);
    Outcome::Done {
        took_ms,
        before: ended.and_then(|ended| ended.tokens_at_end.or(attempt.used)),
        after: match attempt.trimmed {
            Some(trimmed) => Some(trimmed.tokens_after),
            None => fresh_tokens(model),
        },
        items: items.then(|| carried(&model.draft.preserved)),
        proven: attempt.is_proven(),
    }
}

/// Returns the card of a reboot that was given up, and the old session goes on.
pub(super) fn failed(attempt: &Attempt, why: &str, resumed: bool) -> Outcome {
    let mut steps = attempt.entered.iter().map(|(step, _)| *step);
    let last = steps.rfind(|step| !matches!(step, Step::RollingBack | Step::Failed));
    Outcome::Failed {
        step: last.unwrap_or(Step::Preparing),
        why: why.to_owned(),
        resumed,
    }
}

/// Returns the number of items that the handoff has carried over.
fn carried(state: &PreservedState) -> usize {
    [
        state.constraints.len(),
        state.decisions.len(),
        state.rejected.len(),
        state.known_issues.len(),
        state.completed_items.len(),
        state.pending_items.len(),
    ]
    .into_iter()
    .sum()
}
