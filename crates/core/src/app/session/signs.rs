//! The signs of title and prompt box, once they have lasted for long enough: believed over the hooks.
//!
//! Where the bridge is in force, a turn that it reports as running is not taken for stopped, one that it reports as stopped is over
//! at once, and where the signs leave something unknown it is asked whether a dialog has the keys.

use std::time::Duration;

use crate::api::wire::AgentState;
use pitstop_agent::{
    Background, Failure,
    bridge::{BridgeOrder, Outcome, Refusal},
};
use pitstop_base::clock::At;

use crate::app::{
    autopilot::{self, RunInput},
    effect::Effect,
    facts::{is_at_refusal, is_cut_by_us},
    model::{
        Model,
        activity::TitleState,
        agent::AgentView,
        orders::{EndedOrder, OrderEnd, Purpose},
        session::Session,
    },
    session::{activity::DRAWN_WITHIN, hookless::begin_turn, turn},
};

/// The time that the client's own side may take to look for a dialog: it is done in milliseconds.
const PROBED_WITHIN: Duration = Duration::from_secs(2);

/// Judges the signs, which have lasted for long enough.
pub fn judge(model: &mut Model, epoch: u64) {
    if epoch != model.session.calm_epoch || model.session.agent.state == AgentState::Exited {
        return;
    }
    if model.session.agent.activity.question.is_some() {
        if !is_answered(model) {
            // A question that is not drawn yet is judged again when it is late.
            if model.session.agent.prompt_box.is_present() {
                model
                    .session
                    .look_in(DRAWN_WITHIN, &mut model.scratch.effects);
            }
            return;
        }
        model.session.close_question(&mut model.scratch.effects);
    } else {
        by_signs(model);
        if is_dialog_unknown(model) {
            model.order(Purpose::Dialog, BridgeOrder::Probe, PROBED_WITHIN);
        }
    }
}

/// Reports whether the client's own side is to look whether a dialog has the keys, because that is unknown.
fn is_dialog_unknown(model: &Model) -> bool {
    let agent = &model.session.agent;
    let unknown = agent.state == AgentState::Unknown && !agent.listing;
    unknown
        && !agent.activity.dialog_seen
        && agent.bridge.of(model.session.id).is_some()
        && model.session.orders.open(Purpose::Dialog).next().is_none()
}

impl Session {
    /// Takes in the result of the client's own side, which has looked for a dialog.
    pub(in crate::app) fn probed(
        &mut self,
        ended: &EndedOrder,
        now: At,
        effects: &mut Vec<Effect>,
    ) {
        let agent = &mut self.agent;
        if ended.session != self.id || agent.state != AgentState::Unknown {
            return;
        }
        let runs = agent.activity.turn && agent.bridge.reported.turn != Some(false);
        match &ended.end {
            // In a turn the agent asks; outside of one a person has opened a list of the client's.
            OrderEnd::Answered(Outcome::Filled(Err(Refusal::Dialog))) if runs => {
                let about = "a dialog is open (seen by the bridge)".to_owned();
                self.asked(about, now, effects);
            }
            OrderEnd::Answered(Outcome::Filled(Err(Refusal::Dialog))) => {
                agent.activity.dialog_seen = true;
            }
            OrderEnd::Answered(Outcome::Filled(Ok(()))) => agent.set_state(if runs {
                AgentState::Busy
            } else {
                AgentState::Idle
            }),
            _ => {}
        }
    }
}

impl AgentView {
    /// Notes that a turn runs by the report of the client's own side, also one that no hook has begun or that a hook has ended too
    /// early.
    pub(in crate::app) fn turn_started(&mut self) {
        // The hook of a prompt that the client refuses gives more information.
        if matches!(self.state, AgentState::Idle | AgentState::Unknown) {
            self.activity.turn = true;
            self.set_state(AgentState::Busy);
        }
    }
}

/// Ends a turn that was stopped by the report of the client's own side: no hook reports that.
pub fn turn_aborted(model: &mut Model) {
    if !model.session.agent.activity.turn || model.session.agent.state == AgentState::Exited {
        return;
    }
    model.session.agent.activity.stop = None;
    turn_stopped(model);
}

fn is_answered(model: &Model) -> bool {
    let question = model.session.agent.activity.question.as_ref();
    let late = |asked: At| model.now.since(asked) >= DRAWN_WITHIN;
    model.session.agent.prompt_box.is_present()
        && question.is_some_and(|question| question.drawn || late(question.asked))
}

/// Sets the state by title and prompt box, where no question is known.
fn by_signs(model: &mut Model) {
    let activity = &model.session.agent.activity;
    let (title, present) = (activity.title, model.session.agent.prompt_box.is_present());
    let hidden = activity.box_seen && !present;
    let hookless = model.session.is_hookless();
    let reported = model.session.agent.bridge.of(model.session.id);
    let runs = reported.is_some_and(|reported| reported.turn == Some(true));
    let spins = title == Some(TitleState::Spins);
    let calm = title == Some(TitleState::Calm);
    match model.session.agent.state {
        AgentState::Starting if hookless && spins => begin_turn(model),
        // A run types into whatever is open in the pane, so there the prompt box must be seen.
        AgentState::Starting if hookless && calm && (present || model.autopilot.is_none()) => {
            model.session.agent.set_state(AgentState::Idle);
        }
        AgentState::Starting | AgentState::Limit | AgentState::Exited => {}
        _ if activity.turn => {
            let calls = if hookless {
                model.session.transcript.calls_open
            } else {
                activity.calls.len()
            };
            if spins {
                model.session.agent.set_state(AgentState::Busy);
            } else if hidden || (calm && calls > 0 && (hookless || !present)) {
                // A call of a transcript may be over, for it is written late.
                model.session.agent.set_state(AgentState::Unknown);
            } else if calm && !runs {
                turn_stopped(model);
            } else {
                model.session.agent.set_state(AgentState::Busy);
            }
        }
        _ if spins && hookless => begin_turn(model),
        _ if spins && model.session.agent.background.is_empty() => {
            model.session.agent.set_state(AgentState::Busy);
        }
        _ if hidden => model.session.agent.set_state(AgentState::Unknown),
        _ if activity.elsewhere.known => model.session.agent.set_state(AgentState::Elsewhere),
        _ => model.session.agent.set_state(AgentState::Idle),
    }
}

/// Ends a turn that is over, though no hook has reported it.
fn turn_stopped(model: &mut Model) {
    if model.session.is_hookless() {
        let said = model.session.agent.last_message.clone();
        return turn::turn_ended(model, said.as_deref(), Background::default());
    }
    if turn::end_stopped(model) {
        return;
    }
    model.session.agent.end_turn(AgentState::Idle);
    if is_cut_by_us(model) {
        model.session.agent.count_turn_early();
    } else if is_at_refusal(model) {
        // A turn that ends so at this line was no turn: the client has refused the prompt.
        turn::window_is_full(model);
    } else {
        // A person has stopped it, or its hook is lost, or late on a busy machine.
        model.session.agent.count_turn_early();
        let word = "it ended without a word";
        autopilot::on(model, RunInput::TurnFailed(Failure::Other, word));
    }
}
