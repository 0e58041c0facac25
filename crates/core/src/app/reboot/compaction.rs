//! The answer to a compaction of the client's: the handoff takes the place of the client's own summary.
//!
//! ```text
//!  the client asks, and waits ─► review ─► approved ─► the text is given ─► a sign that it is in force ─► the proof
//!                                   │                                  └─ no sign: it was stopped in the client
//!                                   └─ a person says no, or no answer comes in time: the client's own way, or the handoff
//! ```
//!
//! With `guard.replace_compaction` an automatic compaction is held back as it is without the bridge.
//!
//! The answer is a reboot in place that the client has begun: the client waits in the middle of it, so there is no safe moment to
//! wait for, no order to give, and no command that begins a turn behind it. With the end of the attempt the client goes on.

use crate::{
    config::{RebootMode, Unanswered},
    lineage::Cause,
};
use pitstop_agent::bridge::{Decision, QuestionId, Trigger};
use pitstop_transcript::SessionId;

use super::{
    Attempt, Kind,
    automatic::breaker,
    leave_warm_up, new_attempt,
    next::{Act, AgentAct, End, Next, TICK},
};
use crate::app::{
    effect::Effect,
    event::TimerId,
    facts::{answer_left, answers_at_once, held as undecided, is_forced},
    model::{Model, reboot::Phase},
    refusal::Refusal,
};

pub use crate::app::facts::{answer_left as left, holds_compaction as is_held};

/// Decides about a compaction that the client is about to make, and of which it asks what is to be left of the session.
pub(super) fn asked(
    model: &Model,
    id: &QuestionId,
    session: SessionId,
    trigger: Trigger,
) -> Option<Next> {
    if model.reboot.held().is_some_and(|held| held.id == *id) {
        return None;
    }
    let next = hold(model, id, session, trigger).unwrap_or_else(|why| {
        tracing::info!(%why, "a compaction is not answered");
        let decision = if trigger == Trigger::Auto && awaits_trim(model) && !is_forced(model) {
            // Past the force line the client would soon refuse to go on, and the turn would be lost.
            let why = "pitstop trims this session once the turn is over".to_owned();
            Decision::Skip { why }
        } else {
            Decision::Client
        };
        decide(id, decision)
    });
    Some(next)
}

fn decide(id: &QuestionId, decision: Decision) -> Next {
    let id = id.clone();
    Next::Do(Act::Emit(Effect::AnswerQuestion { id, decision }))
}

/// Reports whether a trim is approved, instead of which nothing else is to be done.
fn awaits_trim(model: &Model) -> bool {
    let attempt = model.reboot.attempt.as_ref();
    attempt.is_some_and(|one| one.kind == Kind::Trim && one.approved.is_some())
}

fn hold(
    model: &Model,
    id: &QuestionId,
    session: SessionId,
    trigger: Trigger,
) -> Result<Next, Refusal> {
    let cause = match trigger {
        Trigger::Auto => Cause::Compaction,
        Trigger::Manual => Cause::CompactCommand,
        Trigger::Plugin | Trigger::Other => {
            return Err(Refusal::LeftToClient("it is not the client's own"));
        }
    };
    if let Some(why) = refusal(model, session, cause) {
        return Err(Refusal::LeftToClient(why));
    }
    if awaits_trim(model) {
        return Err(Refusal::LeftToClient("a trim is approved"));
    }
    let held = Next::Agent(AgentAct::Hold(cause, id.clone()));
    if model.reboot.has_attempt(Attempt::may_hold) {
        let before = undecided(model).map(|before| decide(&before.id, Decision::Client));
        return Ok(Next::All(before.into_iter().chain([held]).collect()));
    }
    if let Some(step) = model.reboot.busy_step() {
        return Err(Refusal::UnderWay(step));
    }
    if cause == Cause::Compaction
        && answers_at_once(model)
        && let Some(breaker) = breaker(model)
    {
        return Err(Refusal::NoAutomatic(breaker));
    }
    let attempt = new_attempt(model, Kind::InPlace, cause);
    let begun = Next::Begin(Box::new(attempt));
    let armed = Next::Enter(Phase::Armed);
    let before = leave_warm_up(model).into_iter();
    Ok(Next::All(before.chain([begun, held, armed]).collect()))
}

/// Returns the reason that a compaction is not ours to answer, if so.
fn refusal(model: &Model, session: SessionId, cause: Cause) -> Option<&'static str> {
    let manual = model.reboot.mode == RebootMode::Manual && model.autopilot.is_none();
    if session != model.session.id {
        Some("it is another session's")
    } else if cause == Cause::Compaction && model.config.guard.replace_compaction {
        Some("it is held back by another way")
    } else if manual || model.reboot.paused {
        Some("reboots by themselves are off")
    } else if model.outside.quitting().is_some() {
        Some("pitstop is quitting")
    } else {
        None
    }
}

/// Updates the time in which the compaction may be answered, and decides once it is over.
pub(super) fn timer(model: &Model, epoch: u64) -> Option<Next> {
    undecided(model).filter(|held| held.epoch == epoch)?;
    let left = answer_left(model)?;
    Some(if !left.is_zero() {
        let timer = TimerId::Compaction(epoch);
        Next::Do(Act::Emit(Effect::SetTimer(timer, left.min(TICK))))
    } else if model.config.guard.unanswered == Unanswered::Client {
        let notice = "no answer in time: the compaction is left to the client";
        Next::End(End::LeftToClient(Some(notice)))
    } else {
        Next::GoAhead {
            or_leave_client: true,
        }
    })
}
