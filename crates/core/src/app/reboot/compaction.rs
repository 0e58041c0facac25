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

use std::time::Duration;

use crate::{
    config::{RebootMode, Unanswered},
    lineage::Cause,
};
use pitstop_agent::bridge::{Decision, QuestionId, Trigger};
use pitstop_transcript::SessionId;

use super::{
    Approval, Kind, approve,
    automatic::breaker,
    begin,
    steps::{End, end, enter},
};
use crate::app::{
    effect::Effect,
    event::TimerId,
    facts::{answer_left, answers_at_once, held as undecided, is_forced},
    model::{
        Model,
        reboot::{Held, Phase},
    },
    refusal::Refusal,
};

pub use crate::app::facts::{answer_left as left, holds_compaction as is_held};

/// The interval at which the time that is left is shown again.
const TICK: Duration = Duration::from_secs(1);

/// Decides about a compaction that the client is about to make, and of which it asks what is to be left of the session.
pub fn asked(model: &mut Model, id: QuestionId, session: SessionId, trigger: Trigger) {
    if model.reboot.held().is_some_and(|held| held.id == id) {
        return;
    }
    if let Err(why) = hold(model, &id, session, trigger) {
        tracing::info!(%why, "a compaction is not answered");
        let decision = if trigger == Trigger::Auto && awaits_trim(model) && !is_forced(model) {
            // Past the force line the client would soon refuse to go on, and the turn would be lost.
            let why = "pitstop trims this session once the turn is over".to_owned();
            Decision::Skip { why }
        } else {
            Decision::Client
        };
        model.emit(Effect::AnswerQuestion { id, decision });
    }
}

/// Reports whether a trim is approved, instead of which nothing else is to be done.
fn awaits_trim(model: &Model) -> bool {
    let attempt = model.reboot.attempt.as_ref();
    attempt.is_some_and(|one| one.kind == Kind::Trim && one.approved.is_some())
}

fn hold(
    model: &mut Model,
    id: &QuestionId,
    session: SessionId,
    trigger: Trigger,
) -> Result<(), Refusal> {
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
    let until = model.now.since_start + model.config.guard.answer_within;
    let epoch = model.next_epoch();
    let timer = Effect::SetTimer(TimerId::Compaction(epoch), TICK);
    let held = Held {
        id: id.clone(),
        until,
        epoch,
        answered: false,
    };
    if let Some(attempt) = &mut model.reboot.attempt {
        attempt.hold(cause, held).map_err(Refusal::UnderWay)?;
        model.emit(timer);
        return Ok(());
    }
    if cause == Cause::Compaction
        && answers_at_once(model)
        && let Some(breaker) = breaker(model)
    {
        return Err(Refusal::NoAutomatic(breaker));
    }
    begin(model, Kind::InPlace, cause).held = Some(held);
    model.reboot.failure = None;
    model.emit(timer);
    enter(model, Phase::Armed);
    Ok(())
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
pub fn timer(model: &mut Model, epoch: u64) {
    if undecided(model).is_none_or(|held| held.epoch != epoch) {
        return;
    }
    let Some(left) = answer_left(model) else {
        return;
    };
    if !left.is_zero() {
        model.emit(Effect::SetTimer(TimerId::Compaction(epoch), left.min(TICK)));
        return;
    }
    if model.config.guard.unanswered == Unanswered::Client {
        let notice = "no answer in time: the compaction is left to the client";
        return end(model, End::LeftToClient(Some(notice)));
    }
    if let Err(why) = approve(model, Approval::Auto) {
        model.error(format!("the compaction is left to the client: {why}"));
        end(model, End::LeftToClient(None));
    }
}
