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
    on_the_fly,
    steps::{End, end, enter, roll_back, verify_timer, waiting},
    submit,
};
use crate::app::{
    effect::Effect,
    event::TranscriptFacts,
    facts::{
        end_reason, goes_in_place, goes_on_the_fly, holds_compaction, on_the_fly_refusal,
        replace_refusal, turn_runs,
    },
    model::{
        Model,
        attempt::{COMMAND, is_go},
        orders::{EndedOrder, OrderEnd, Purpose},
        reboot::{Approval, Kind, Launch, NewAgent, Phase, Proof, Replacing, Revoked},
    },
    reboot::iteration::{close_iteration, open_in_place},
    refusal::Refusal,
};

pub use crate::app::facts::{goes_in_place as is_chosen, replace_refusal as refusal};

/// The time that the client may take from the order to its answer: it does it in a fifth of a second.
const ANSWERED_WITHIN: Duration = Duration::from_secs(10);

/// The text with which our mod refuses an order for an idle client while a turn runs.
pub const TURN_RUNS: &str = "a turn runs";

/// Takes the way that the user has set.
pub(super) fn take_configured(model: &mut Model) {
    let in_place = model.config.reboot.way == RebootWay::InPlace;
    match replace_refusal(model).filter(|_| in_place) {
        Some(why) => take_fresh(model, &why),
        None if in_place => model.reboot.take_way(Kind::InPlace),
        None => model.reboot.take_way(Kind::Fresh),
    }
}

/// Checks whether a reboot can be approved this way; one that `auto` approves takes a fresh session instead.
pub(super) fn check(model: &mut Model, approval: Approval) -> Result<(), Refusal> {
    let refusal = if goes_on_the_fly(model) {
        on_the_fly_refusal(model)
    } else {
        replace_refusal(model)
    };
    let Some(why) = refusal.filter(|_| goes_in_place(model)) else {
        return Ok(());
    };
    if holds_compaction(model) {
        return Err(Refusal::Unanswerable(why));
    }
    if approval != Approval::Auto {
        return Err(Refusal::NotInPlaceNow(why));
    }
    take_fresh(model, &why);
    Ok(())
}

/// Checks at the safe moment whether the reboot can still be done in place. One that `auto` has approved takes a fresh session
/// instead, and so does one whose agent has ended; a reboot that a person has approved is not done in another way, but refused.
/// Returns whether the reboot goes on.
pub(super) fn judge(model: &mut Model) -> bool {
    let Some(why) = replace_refusal(model) else {
        return true;
    };
    let ended = model.session.agent.state == AgentState::Exited;
    if (is_by_auto(model) || ended) && !holds_compaction(model) {
        take_fresh(model, &why);
        return true;
    }
    end(model, End::Refused(why));
    false
}

fn is_by_auto(model: &Model) -> bool {
    let attempt = model.reboot.attempt.as_ref();
    attempt.is_some_and(|attempt| attempt.approved == Some(Approval::Auto))
}

fn take_fresh(model: &mut Model, why: &str) {
    model.reboot.take_way(Kind::Fresh);
    model.info(format!(
        "no reboot in place: {why}; a fresh session instead"
    ));
}

/// Goes ahead: the order is given once the phase is on disk.
pub(super) fn begin(model: &mut Model) {
    enter(model, Phase::Replacing(Replacing::Pending));
}

/// Does the next step of a replacement from how far it has come.
pub(super) fn replacing(model: &mut Model, now: Replacing) {
    match now {
        Replacing::Pending => match model.reboot.answer_client() {
            Some(answer) => {
                model.emit(answer);
                await_sign(model, None);
            }
            None => order(model),
        },
        Replacing::Refused(why) => refused(model, &why),
        Replacing::Gone(why) => roll_back(model, why),
        // The turn's end may have come before the answer to the order.
        Replacing::AwaitsStep { order, .. } if !turn_runs(model) => {
            on_the_fly::unasked(model, order);
        }
        Replacing::Ordered(_)
        | Replacing::AwaitsStep { .. }
        | Replacing::Revoking { .. }
        | Replacing::HandedOut { .. } => {}
    }
}

/// Handles a refused order, after which nothing was changed. A reboot that `auto` has approved is then done in another way, unless
/// a person has refused it by Esc.
pub(super) fn refused(model: &mut Model, why: &str) {
    let held = model.reboot.held().is_some();
    if is_by_auto(model) && !held && !why.to_ascii_lowercase().contains("cancel") {
        if !goes_on_the_fly(model) {
            take_fresh(model, why);
        } else if turn_runs(model) {
            tracing::info!(why, "no reboot on the fly");
            take_configured(model);
        } else {
            return on_the_fly::turn_is_over(model);
        }
        return enter(model, waiting());
    }
    // A turn has begun while the order was on its way: a reboot that a person has approved waits for its end.
    if why == TURN_RUNS && !is_by_auto(model) && !held && !goes_on_the_fly(model) {
        return enter(model, waiting());
    }
    end(model, End::Refused(format!("nothing was changed: {why}")));
}

fn order(model: &mut Model) {
    let Some(attempt) = &model.reboot.attempt else {
        return;
    };
    let when = match attempt.kind {
        Kind::OnTheFly => ReplaceWhen::NextStep,
        _ if attempt.force => ReplaceWhen::Interrupting,
        _ => ReplaceWhen::Idle,
    };
    let Some(handoff) = &attempt.handoff else {
        return model.reboot.go_on(Phase::Replacing(Replacing::Refused(
            "there is no handoff".to_owned(),
        )));
    };
    let order = BridgeOrder::ReplaceConversation {
        text: handoff.text.clone(),
        nonce: handoff.marker.nonce.clone(),
        when,
    };
    let id = model.order(Purpose::Replace, order, ANSWERED_WITHIN);
    model.reboot.go_on(Phase::Replacing(Replacing::Ordered(id)));
}

fn now(model: &Model) -> Option<&Replacing> {
    match &model.reboot.attempt.as_ref()?.phase {
        Phase::Replacing(now) => Some(now),
        _ => None,
    }
}

/// Takes note that the client has the text.
pub fn handed_out(model: &mut Model, id: OrderId) {
    let ours = match now(model) {
        Some(
            Replacing::Ordered(order)
            | Replacing::AwaitsStep { order, .. }
            | Replacing::Revoking { order, .. },
        ) => *order == id,
        _ => false,
    };
    if ours {
        await_sign(model, Some(id));
    }
}

/// Waits for a sign or the proof, the only things that are still to come.
fn await_sign(model: &mut Model, order: Option<OrderId>) {
    let overdue = false;
    model
        .reboot
        .go_on(Phase::Replacing(Replacing::HandedOut { order, overdue }));
    verify(model);
}

fn verify(model: &mut Model) {
    let attempt = model.reboot.attempt.as_ref();
    let timer = attempt.map(|one| verify_timer(&model.config.reboot, one.epoch));
    model.emit_all(timer);
}

/// Handles the end of the order.
pub fn order_ended(model: &mut Model, ended: &EndedOrder) {
    follow_order(model, ended);
    if ended.end == OrderEnd::Answered(Outcome::Replaced { begun: false }) {
        type_command(model);
    }
}

/// Begins the turn after the handoff by typing its command, as a person would.
fn type_command(model: &mut Model) {
    let attempt = model.reboot.attempt.as_ref();
    let Some(handoff) = attempt.and_then(|attempt| attempt.handoff.as_ref()) else {
        return;
    };
    let command = format!("/{COMMAND} {}", handoff.marker.nonce);
    if let Err(why) = submit::submit(model, &command) {
        model.error(format!(
            "the conversation is replaced, and waits for a prompt of yours: {why}"
        ));
    }
}

fn follow_order(model: &mut Model, ended: &EndedOrder) {
    let id = ended.id;
    let handed_out = match now(model) {
        Some(Replacing::Ordered(order)) if *order == id => false,
        Some(Replacing::HandedOut { order, .. }) if *order == Some(id) => true,
        _ => return,
    };
    match &ended.end {
        // A client that has not asked for the text has not put it in.
        OrderEnd::Answered(Outcome::Replaced { .. }) if !handed_out => {
            let why =
                "the client has summarized its conversation itself, and the handoff is not in it";
            end(model, End::Refused(why.to_owned()));
        }
        OrderEnd::Answered(Outcome::Replaced { .. }) => replaced(model),
        OrderEnd::Answered(Outcome::Lowered) if handed_out => {}
        OrderEnd::Answered(Outcome::Lowered) => on_the_fly::lowered(model, id),
        // The cause is Esc in the middle of it, or a turn or a dialog in its way.
        OrderEnd::Answered(Outcome::Failed(why)) => model
            .reboot
            .go_on(Phase::Replacing(Replacing::Refused(why.clone()))),
        OrderEnd::Answered(other) => {
            tracing::warn!(
                ?other,
                "the order to replace the conversation has another answer"
            );
        }
        OrderEnd::NotTaken => {
            let why = "the client has not taken the order".to_owned();
            model
                .reboot
                .go_on(Phase::Replacing(Replacing::Refused(why)));
        }
        OrderEnd::Unanswered if !handed_out => {
            let then = Revoked::Refused;
            model
                .reboot
                .go_on(Phase::Replacing(Replacing::Revoking { order: id, then }));
            model.emit(Effect::RevokeOrder(id));
        }
        // The client has the text, or its process is gone: other events show which.
        OrderEnd::Unanswered | OrderEnd::Gone => {}
    }
}

/// Handles an order that was revoked before the client had the text, or could not be any more.
pub fn revoked(model: &mut Model, id: OrderId, in_time: bool) {
    let then = match now(model) {
        Some(Replacing::Revoking { order, then }) if *order == id => *then,
        _ => return,
    };
    if in_time && then != Revoked::Refused {
        return on_the_fly::taken_back(model, then);
    }
    if in_time {
        let why = "the client has not begun in time".to_owned();
        return model
            .reboot
            .go_on(Phase::Replacing(Replacing::Refused(why)));
    }
    await_sign(model, Some(id));
}

/// Checks whether a hook is a sign that the conversation is replaced.
pub fn hook_seen(model: &mut Model, event: &AgentEvent) {
    let attempt = model.reboot.attempt.as_ref();
    let handoff = attempt.and_then(|attempt| attempt.handoff.as_ref());
    let is_sign = match event {
        AgentEvent::Compacted { .. } => true,
        AgentEvent::SessionStarted { source, .. } => *source == StartSource::Compact,
        AgentEvent::PromptSubmitted { prompt, .. } => {
            handoff.is_some_and(|handoff| is_go(prompt, &handoff.marker.nonce))
        }
        _ => false,
    };
    if is_sign {
        replaced(model);
    }
}

/// Takes one more boundary in the transcript as the sign that the conversation is replaced.
pub fn transcript_read(model: &mut Model, facts: &TranscriptFacts) {
    let before = &model.session.transcript;
    if before.whole && facts.whole && facts.compactions > before.compactions {
        replaced(model);
    }
}

/// Begins the next iteration, because the conversation is replaced.
pub fn replaced(model: &mut Model) {
    if !matches!(now(model), Some(Replacing::HandedOut { .. })) {
        return;
    }
    let Some(attempt) = &model.reboot.attempt else {
        return;
    };
    let cause = attempt.cause;
    let text = attempt.handoff.as_ref().map(|one| one.text.clone());
    close_iteration(model, end_reason(model));
    open_in_place(model, cause);
    let iteration = model.session.iteration();
    model.emit(Effect::ContinuePane(iteration));
    model.emit_all(text.map(|text| Effect::SaveHandoff { iteration, text }));
    let agent = NewAgent {
        launch: Launch::Running,
        proof: Proof::Awaited,
    };
    enter(model, Phase::Verifying(agent));
}
