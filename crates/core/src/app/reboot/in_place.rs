//! The second way of a reboot: the handoff takes the place of the conversation inside the running client, by an order to its own
//! side.
//!
//! ```text
//!  safe moment ─► order ─► the client asks for the text ─► a sign that it is in force: the next iteration ─► the proof
//!                   │                                  └─ the agent ends: its session is resumed as it left it
//!                   └─ not taken, refused, or revoked before the client asked: nothing was changed
//! ```
//!
//! Process, session and prompt box stay, and so does the agent's background work. The text is handed out once. From then on the
//! order cannot be taken back: the hooks of the compaction, the command that begins the turn, the transcript, or the order's
//! answer, whichever is first, show whether it came into force.

use std::time::Duration;

use crate::{api::wire::AgentState, config::RebootWay};
use pitstop_agent::{
    AgentEvent, StartSource,
    bridge::{BridgeOrder, OrderId, Outcome, ReplaceWhen},
};

use super::{
    next::{Act, AgentAct, End, Next},
    on_the_fly,
    steps::{self, behind_draft, waiting},
};
use crate::app::{
    facts::{
        NO_TURN_RUNS, end_reason, goes_in_place, goes_on_the_fly, holds_compaction,
        on_the_fly_refusal, replace_refusal, turn_runs, unsent,
    },
    model::{
        Model,
        attempt::{AttemptEvent, COMMAND, is_go, verify_timer},
        orders::{EndedOrder, OrderEnd},
        reboot::{
            Approval, Attempt, Kind, LastLook, Launch, NewAgent, Phase, Proof, Replacing, Revoked,
        },
        unsent::OnDisk,
    },
    refusal::Refusal,
};

pub use crate::app::facts::{goes_in_place as is_chosen, replace_refusal as refusal};

/// The time that the client may take from the order to its answer: it does it in a fifth of a second.
pub(super) const ANSWERED_WITHIN: Duration = Duration::from_secs(10);

/// The text with which our mod refuses an order for an idle client while a turn runs.
pub const TURN_RUNS: &str = "a turn runs";

/// Returns the way that the user has set, or a fresh session with the reason that it cannot be in place.
pub(super) fn configured_way(model: &Model) -> (Kind, Option<String>) {
    let in_place = model.config.reboot.way == RebootWay::InPlace;
    match replace_refusal(model).filter(|_| in_place) {
        None if in_place => (Kind::InPlace, None),
        why => (Kind::Fresh, why),
    }
}

/// Checks whether a reboot can be approved this way; one that `auto` approves takes a fresh session instead.
pub(super) fn check(model: &Model, approval: Approval) -> Result<Option<Next>, Refusal> {
    let refusal = if goes_on_the_fly(model) {
        on_the_fly_refusal(model)
    } else {
        replace_refusal(model)
    };
    let Some(why) = refusal.filter(|_| goes_in_place(model)) else {
        return Ok(None);
    };
    if holds_compaction(model) {
        return Err(Refusal::Unanswerable(why));
    }
    if approval != Approval::Auto {
        return Err(Refusal::NotInPlaceNow(why));
    }
    Ok(Some(Next::Change(Kind::Fresh, Some(why), None)))
}

/// Checks at the safe moment whether the reboot can still be done in place. One that `auto` has approved takes a fresh session
/// instead, and so does one whose agent has ended; a reboot that a person has approved is not done in another way, but refused.
/// The prompt box keeps what it holds, and the disk has the text too, in case the client ends meanwhile.
pub(super) fn wait(
    model: &Model,
    attempt: &Attempt,
    look: LastLook,
    draft: &OnDisk,
) -> Option<Next> {
    let Some(why) = replace_refusal(model) else {
        return behind_draft(unsent(model).text(), look, draft, begin_beside);
    };
    let ended = model.session.agent.state == AgentState::Exited;
    let fresh = (attempt.is_by_auto() || ended) && !holds_compaction(model);
    Some(if fresh {
        Next::Change(Kind::Fresh, Some(why), None)
    } else {
        Next::End(End::Refused(why))
    })
}

/// Begins to replace the conversation around the unsent prompt, which is on disk.
pub(super) fn begin_beside(on_disk: OnDisk) -> Next {
    Next::All(vec![
        Next::Note(AttemptEvent::DraftBeside(on_disk)),
        Next::Do(Act::DraftAgain),
        Next::Enter(Phase::Replacing(Replacing::Pending)),
    ])
}

/// Returns what follows in a replacement from how far it has come.
pub(super) fn replacing(model: &Model, attempt: &Attempt, now: &Replacing) -> Option<Next> {
    match now {
        Replacing::Pending => Some(begin(model, attempt)),
        Replacing::Refused(why) => Some(refused(model, attempt, why)),
        Replacing::Gone(why) => Some(steps::give_up(model, attempt, why)),
        // The turn's end may have come before the answer to the order.
        Replacing::AwaitsStep { order, .. } if !turn_runs(model) => {
            Some(on_the_fly::unasked(model, attempt, *order))
        }
        Replacing::HandedOut { .. } if attempt.is_passed_over() => {
            let why = "the client was given the handoff and has not put it in force";
            let restore = Next::Agent(AgentAct::RestoreTrigger);
            let restore = (attempt.kind == Kind::OnTheFly).then_some(restore);
            let refused = Next::End(End::Refused(why.to_owned()));
            Some(Next::All(restore.into_iter().chain([refused]).collect()))
        }
        Replacing::Ordered(_)
        | Replacing::AwaitsStep { .. }
        | Replacing::Revoking { .. }
        | Replacing::HandedOut { .. } => None,
    }
}

/// Returns what follows from a refused order, after which nothing was changed. A reboot that `auto` has approved is then done in
/// another way, unless a person has refused it by Esc.
pub(super) fn refused(model: &Model, attempt: &Attempt, why: &str) -> Next {
    let held = attempt.held.is_some();
    let on_the_fly = attempt.kind == Kind::OnTheFly;
    if attempt.is_by_auto() && !held && !why.to_ascii_lowercase().contains("cancel") {
        if !on_the_fly {
            return Next::Change(Kind::Fresh, Some(why.to_owned()), Some(waiting()));
        }
        if !turn_runs(model) {
            return on_the_fly::turn_is_over(model, attempt);
        }
        tracing::info!(why, "no reboot on the fly");
        let (way, why) = configured_way(model);
        return Next::Change(way, why, Some(waiting()));
    }
    // The turn has ended while the order was on its way.
    if on_the_fly && why == NO_TURN_RUNS && !attempt.is_by_auto() {
        return on_the_fly::turn_is_over(model, attempt);
    }
    // A turn has begun while the order was on its way: a reboot that a person has approved waits for its end.
    if why == TURN_RUNS && !attempt.is_by_auto() && !held && !on_the_fly {
        return Next::Enter(waiting());
    }
    Next::End(End::Refused(format!("nothing was changed: {why}")))
}

/// Answers the client that waits, or gives it the order.
fn begin(model: &Model, attempt: &Attempt) -> Next {
    if let Some(answer) = attempt.answer() {
        let timer = verify_timer(&model.config.reboot, attempt.epoch);
        let effects = [answer, timer].map(|effect| Next::Do(Act::Emit(effect)));
        let handed_out = Next::Note(AttemptEvent::HandedOut(None));
        return Next::All([handed_out].into_iter().chain(effects).collect());
    }
    let Some(handoff) = &attempt.handoff else {
        return fail("there is no handoff");
    };
    Next::Agent(AgentAct::Replace(BridgeOrder::ReplaceConversation {
        text: handoff.text.clone(),
        nonce: handoff.marker.nonce.clone(),
        when: match attempt.kind {
            Kind::OnTheFly => ReplaceWhen::NextStep,
            _ if attempt.force => ReplaceWhen::Interrupting,
            _ => ReplaceWhen::Idle,
        },
    }))
}

fn fail(why: &str) -> Next {
    let refused = Replacing::Refused(why.to_owned());
    Next::GoOn(Phase::Replacing(refused), None)
}

/// A report of the client while its conversation is replaced, or is to be.
#[derive(Clone, Copy, Debug)]
pub enum ReplaceEvent<'a> {
    /// It has the text of this order.
    HandedOut(OrderId),
    /// Our order has ended.
    OrderEnded(&'a EndedOrder),
    /// This order was revoked: in time, if true, before the client had the text.
    Revoked(OrderId, bool),
    /// A hook was called for this event.
    HookSeen(&'a AgentEvent),
    /// There is a sign that the conversation is replaced.
    Compacted,
    /// A tool of the main turn has run.
    ToolEnded,
    /// The client compacts without asking.
    PassedOver,
    /// The turn was stopped, and a compaction in it.
    TurnAborted,
}

/// Returns what follows from a report of the client.
pub(super) fn judge(model: &Model, event: ReplaceEvent) -> Option<Next> {
    let attempt = model.reboot.attempt.as_ref()?;
    match event {
        ReplaceEvent::OrderEnded(ended) => Some(order_ended(model, attempt, ended)),
        ReplaceEvent::HandedOut(id) => {
            is_with_client(attempt, id).then(|| await_sign(model, attempt, id))
        }
        ReplaceEvent::Revoked(id, in_time) => revoked(model, attempt, id, in_time),
        ReplaceEvent::HookSeen(event) if !is_sign(attempt, event) => None,
        ReplaceEvent::HookSeen(_) | ReplaceEvent::Compacted => replaced(model, attempt),
        ReplaceEvent::ToolEnded => on_the_fly::tool_ended(attempt),
        ReplaceEvent::PassedOver => on_the_fly::passed_over(attempt),
        ReplaceEvent::TurnAborted => turn_aborted(attempt),
    }
}

/// Returns what follows from the stop of a turn in which the client compacts, and of the compaction with it.
fn turn_aborted(attempt: &Attempt) -> Option<Next> {
    let held = attempt.held.as_ref()?;
    Some(if held.answered {
        Next::Note(AttemptEvent::StoppedInClient)
    } else {
        let notice = "the compaction was stopped in the client: nothing was changed";
        Next::End(End::LeftToClient(Some(notice)))
    })
}

/// Reports whether the client's own side has this order, and is not known to have the text.
fn is_with_client(attempt: &Attempt, id: OrderId) -> bool {
    match attempt.phase {
        Phase::Replacing(
            Replacing::Ordered(order)
            | Replacing::AwaitsStep { order, .. }
            | Replacing::Revoking { order, .. },
        ) => order == id,
        _ => false,
    }
}

/// Waits for a sign or the proof, the only things that are still to come.
fn await_sign(model: &Model, attempt: &Attempt, order: OrderId) -> Next {
    let timer = verify_timer(&model.config.reboot, attempt.epoch);
    let handed_out = Next::Note(AttemptEvent::HandedOut(Some(order)));
    Next::All(vec![handed_out, Next::Do(Act::Emit(timer))])
}

fn order_ended(model: &Model, attempt: &Attempt, ended: &EndedOrder) -> Next {
    let mut next: Vec<_> = follow_order(model, attempt, ended).into_iter().collect();
    let begins = ended.end == OrderEnd::Answered(Outcome::Replaced { begun: false });
    let goes_on = !matches!(next.first(), Some(Next::End(_)));
    if let Some(handoff) = attempt.handoff.as_ref().filter(|_| begins && goes_on) {
        let command = format!("/{COMMAND} {}", handoff.marker.nonce);
        next.push(Next::Agent(AgentAct::TypeCommand(command)));
    }
    Next::All(next)
}

fn follow_order(model: &Model, attempt: &Attempt, ended: &EndedOrder) -> Option<Next> {
    let id = ended.id;
    let handed_out = match attempt.phase {
        Phase::Replacing(Replacing::Ordered(order)) if order == id => false,
        Phase::Replacing(Replacing::HandedOut { order, .. }) if order == Some(id) => true,
        _ => return None,
    };
    match &ended.end {
        // A client that has not asked for the text has not put it in.
        OrderEnd::Answered(Outcome::Replaced { .. }) if !handed_out => {
            let why =
                "the client has summarized its conversation itself, and the handoff is not in it";
            Some(Next::End(End::Refused(why.to_owned())))
        }
        OrderEnd::Answered(Outcome::Replaced { .. }) => replaced(model, attempt),
        OrderEnd::Answered(Outcome::Lowered) => (!handed_out).then(|| on_the_fly::lowered(id)),
        // The cause is Esc in the middle of it, or a turn or a dialog in its way.
        OrderEnd::Answered(Outcome::Failed(why)) => Some(fail(why)),
        OrderEnd::Answered(other) => {
            tracing::warn!(
                ?other,
                "the order to replace the conversation has another answer"
            );
            None
        }
        OrderEnd::NotTaken => Some(fail("the client has not taken the order")),
        OrderEnd::Unanswered if !handed_out => Some(on_the_fly::revoke(id, Revoked::Refused)),
        // The client has the text, or its process is gone: other events show which.
        OrderEnd::Unanswered | OrderEnd::Gone => None,
    }
}

/// Returns what follows from an order that was revoked before the client had the text, or could not be any more.
fn revoked(model: &Model, attempt: &Attempt, id: OrderId, in_time: bool) -> Option<Next> {
    let then = match attempt.phase {
        Phase::Replacing(Replacing::Revoking { order, then }) if order == id => then,
        _ => return None,
    };
    Some(match then {
        _ if !in_time => await_sign(model, attempt, id),
        Revoked::Refused => fail("the client has not begun in time"),
        Revoked::Armed => on_the_fly::announce(model),
        Revoked::Ends(outcome) => {
            let restore = Next::Agent(AgentAct::RestoreTrigger);
            Next::All(vec![restore, Next::End(End::TakenBack(outcome))])
        }
    })
}

/// Reports whether a hook is a sign that the conversation is replaced.
fn is_sign(attempt: &Attempt, event: &AgentEvent) -> bool {
    match event {
        AgentEvent::Compacted { .. } => true,
        AgentEvent::SessionStarted { source, .. } => *source == StartSource::Compact,
        AgentEvent::PromptSubmitted { prompt, .. } => {
            let handoff = attempt.handoff.as_ref();
            handoff.is_some_and(|handoff| is_go(prompt, &handoff.marker.nonce))
        }
        _ => false,
    }
}

/// Returns what follows from a sign that the conversation is replaced: the next iteration begins.
fn replaced(model: &Model, attempt: &Attempt) -> Option<Next> {
    let text = attempt.handoff.as_ref().map(|one| one.text.clone());
    let agent = NewAgent {
        launch: Launch::Running,
        proof: Proof::Awaited,
        given: true,
    };
    matches!(attempt.phase, Phase::Replacing(Replacing::HandedOut { .. })).then(|| {
        Next::All(vec![
            Next::Do(Act::CloseIteration(end_reason(model))),
            Next::Agent(AgentAct::GoOn(attempt.cause, text)),
            Next::Enter(Phase::Verifying(agent)),
        ])
    })
}
