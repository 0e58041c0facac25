//! The preparation before the old agent is touched, and the data that the user's own commands around a reboot are given.

use crate::app::{
    effect::{Effect, Preparation, RebootResult, ReplacedCopy},
    model::{Model, reboot::RebootOutcome},
};
use crate::lineage::{IterationId, journal::Step};

use super::{Attempt, Kind};

/// Returns the order to make and check everything that the new agent needs; without it the reboot is refused and the old agent goes
/// on.
pub(super) fn order(model: &Model, attempt: &Attempt) -> Effect {
    let hook = model.config.hooks.pre_reboot.is_some() && attempt.kind.is_reboot();
    Effect::Prepare(Box::new(Preparation {
        attempt: attempt.epoch,
        iteration: next(model),
        handoff: message(attempt),
        copy: attempt.replaced.clone().map(|replaced| ReplacedCopy {
            from: replaced.session,
            nonce: replaced.nonce,
            to: attempt.new,
        }),
        hook: hook.then(|| result(model, attempt, "pre_reboot")),
        is_patient: attempt.is_by_itself() && model.autopilot.is_some(),
    }))
}

/// Returns the iteration that the reboot begins.
fn next(model: &Model) -> IterationId {
    let last = model.lineage.iterations().last();
    last.map_or(IterationId::FIRST, |last| last.iteration.next())
}

/// Returns the text that is sent to the new session; a trimmed one holds it already.
fn message(attempt: &Attempt) -> Option<String> {
    let handoff = attempt.handoff.as_ref();
    handoff
        .filter(|_| attempt.kind == Kind::Fresh || attempt.kind.replaces())
        .map(|handoff| handoff.text.clone())
}

fn result(model: &Model, attempt: &Attempt, hook: &'static str) -> RebootResult {
    RebootResult {
        hook,
        reboot_id: attempt.id,
        run_id: model.run().clone(),
        project: model.identity.project.clone(),
        iteration: attempt.from,
        cause: attempt.cause,
        way: attempt.kind.way(),
        old_session: attempt.old,
        new_session: attempt.next(),
        used_tokens: attempt.used.map(|used| used.0),
        handoff: message(attempt),
        preserved_state: model.draft.preserved.clone(),
        result: None,
        reason: None,
        verified: None,
        took_ms: None,
    }
}

/// Returns the order to run the user's command after a reboot that has touched the old agent.
pub(super) fn after_reboot(
    model: &Model,
    attempt: &Attempt,
    outcome: RebootOutcome,
    why: Option<&str>,
) -> Option<Effect> {
    model.config.hooks.post_reboot.as_ref()?;
    if !attempt.kind.is_reboot() || attempt.is_harmless() {
        return None;
    }
    let approved = attempt
        .entered
        .iter()
        .find(|(step, _)| *step == Step::Preparing);
    let took = approved.map(|(_, at)| model.now.since(*at).as_millis());
    Some(Effect::RunPostReboot(Box::new(RebootResult {
        result: Some(outcome.into()),
        reason: attempt.failure.clone().or_else(|| why.map(str::to_owned)),
        verified: Some(attempt.is_proven()),
        took_ms: took.map(|ms| u64::try_from(ms).unwrap_or(u64::MAX)),
        ..result(model, attempt, "post_reboot")
    })))
}
