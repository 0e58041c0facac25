//! The reboot on the fly: the handoff takes the place of the conversation between two steps of a turn, which goes on.
//!
//! ```text
//!  replacing ─► the order: the client's compaction trigger is lowered ─► it asks at its next step, and has the text ─► as in place
//!                   │                        │
//!                   │                        └─ the turn ends before: in place
//!                   └─ refused: the turn's end is waited for
//! ```
//!
//! Process, session and prompt box stay, no model is asked, and the turn goes on behind the handoff with the results of its last
//! step. Once the client has the text, all goes on as in a reboot in place ([`super::in_place`]), except that no turn is begun.

use std::time::Duration;

use pitstop_agent::bridge::OrderId;

use super::{
    Attempt, Kind, in_place,
    next::{AgentAct, End, Next},
    steps::{behind_draft, waiting},
    timing,
};
use crate::app::{
    effect::Effect,
    facts::{is_under_review, on_the_fly_refusal, turn_runs, unsent},
    model::{
        Model,
        reboot::{LastLook, Phase, RebootOutcome, Replacing, Revoked},
        unsent::OnDisk,
    },
};

/// The time that the client may take to set its trigger back: it does it in milliseconds.
pub(super) const RESTORED_WITHIN: Duration = Duration::from_secs(5);

/// The number of tool calls that may end while the client is to ask at its next step: more than one step has.
const CALLS_UNASKED: u32 = 24;

/// The reason that no compaction of this client can be answered: a managed settings file has it pass over the hooks of mods that would.
pub const PASSED_OVER: &str = "managed settings keep pitstop from answering compactions";

/// Changes the way of a reboot that begins by itself to fit what the agent does now, until a person has chosen one or it is approved.
pub(super) fn fit_way(model: &Model) -> Option<Next> {
    let attempt = model.reboot.attempt.as_ref();
    let attempt = attempt.filter(|one| one.may_change_way())?;
    let possible = on_the_fly_refusal(model).is_none();
    let (way, why) = match (attempt.kind, possible) {
        (Kind::Fresh | Kind::InPlace, true) => (Kind::OnTheFly, None),
        (Kind::OnTheFly, false) => in_place::configured_way(model),
        _ => return None,
    };
    Some(Next::Change(way, why, None))
}

/// Reports whether it is approved now, without asking a person.
pub(super) fn is_due(model: &Model) -> bool {
    is_under_review(model) && timing::goes_on_the_fly(model)
}

/// Gives the order for an approved and prepared reboot, unless the turn has ended since.
pub(super) fn wait(
    model: &Model,
    attempt: &Attempt,
    look: LastLook,
    draft: &OnDisk,
) -> Option<Next> {
    if !turn_runs(model) {
        return Some(turn_is_over(model, attempt));
    }
    if let Some(why) = on_the_fly_refusal(model) {
        return Some(in_place::refused(model, attempt, &why));
    }
    behind_draft(unsent(model).text(), look, draft, in_place::begin_beside)
}

/// Returns what follows from the end of a turn in which the conversation was not replaced: it is replaced after the turn, at once
/// if a person wants it. `auto` has approved the turn's middle only, and announces what comes after it.
pub(super) fn turn_is_over(model: &Model, attempt: &Attempt) -> Next {
    if attempt.is_by_person() {
        Next::Change(Kind::InPlace, None, Some(waiting()))
    } else {
        announce(model)
    }
}

pub(super) fn announce(model: &Model) -> Next {
    let (way, why) = in_place::configured_way(model);
    Next::Change(way, why, Some(Phase::Armed))
}

/// Returns what follows once the client's trigger is lowered: the client asks at its next step.
pub(super) const fn lowered(order: OrderId) -> Next {
    let awaits = Replacing::AwaitsStep { order, calls: 0 };
    Next::GoOn(Phase::Replacing(awaits), None)
}

/// Returns what follows from the end of a turn before the client asked, at which the mod has set the trigger back.
pub(super) fn unasked(model: &Model, attempt: &Attempt, order: OrderId) -> Next {
    if attempt.is_by_person() {
        turn_is_over(model, attempt)
    } else {
        revoke(order, Revoked::Armed)
    }
}

/// Returns the order by which the client is to ask at its next step, while it has not.
pub fn awaited(model: &Model) -> Option<OrderId> {
    model.reboot.attempt.as_ref()?.awaited_order()
}

/// Reports whether the client's trigger may be where our order has put it, and not where the client has it.
pub fn has_lowered_trigger(model: &Model) -> bool {
    let attempt = model.reboot.attempt.as_ref();
    attempt.is_some_and(|attempt| {
        attempt.kind == Kind::OnTheFly
            && matches!(attempt.phase, Phase::Replacing(_) | Phase::Verifying(_))
    })
}

/// Counts a tool of the main turn that has run: a client that goes on step by step and does not ask never will.
pub(super) fn tool_ended(attempt: &Attempt) -> Option<Next> {
    let Phase::Replacing(Replacing::AwaitsStep { order, calls }) = attempt.phase else {
        return None;
    };
    let calls = calls + 1;
    if calls == CALLS_UNASKED {
        let why = "the client has not asked at its next steps";
        return Some(leave_unanswered(order, why));
    }
    let awaits = Replacing::AwaitsStep { order, calls };
    Some(Next::GoOn(Phase::Replacing(awaits), None))
}

/// Gives up this way because the client compacts without asking.
pub(super) fn passed_over(attempt: &Attempt) -> Option<Next> {
    let order = attempt.awaited_order()?;
    Some(leave_unanswered(order, PASSED_OVER))
}

/// Takes an order back because the client does not ask: this way is not taken again in its process.
fn leave_unanswered(order: OrderId, why: &'static str) -> Next {
    let refused = Phase::Replacing(Replacing::Refused(why.to_owned()));
    Next::All(vec![
        Next::Agent(AgentAct::LeaveUnanswered(why)),
        Next::Agent(AgentAct::RestoreTrigger),
        Next::GoOn(refused, Some(Effect::RevokeOrder(order))),
    ])
}

/// Takes the reboot back with this outcome; while the client is to ask at its next step, once it is known that it has not.
pub(super) fn take_back(attempt: &Attempt, outcome: RebootOutcome) -> Next {
    match attempt.awaited_order() {
        Some(order) => revoke(order, Revoked::Ends(outcome)),
        None => Next::End(End::Unfinished(outcome, None)),
    }
}

/// Takes an order back; this follows if it is taken back in time.
pub(super) const fn revoke(order: OrderId, then: Revoked) -> Next {
    let revoking = Phase::Replacing(Replacing::Revoking { order, then });
    Next::GoOn(revoking, Some(Effect::RevokeOrder(order)))
}
