//! What title and prompt box say of the agent once they have stood for long enough: believed over the hooks.

use crate::{
    agent::{Background, Failure},
    api::wire::AgentState,
    clock::At,
};

use crate::app::{
    autopilot,
    effect::Effect,
    facts::{is_at_refusal, is_hookless},
    model::{Model, activity::TitleState},
    reboot::ending,
    session::{
        activity::{DRAWN_WITHIN, look_in, set_state, turn_ends, without_question},
        hookless::begin_turn,
        turn,
    },
};

/// The signs have stood for long enough.
pub fn judge(model: &mut Model, epoch: u64) -> Vec<Effect> {
    if epoch != model.session.calm_epoch || model.session.agent.state == AgentState::Exited {
        return Vec::new();
    }
    let mut effects = Vec::new();
    if model.session.agent.activity.question.is_some() {
        if !is_answered(model) {
            // One that is not drawn yet is judged again when it is late.
            let undrawn = model.session.agent.prompt_box.is_present();
            return if undrawn {
                look_in(model, DRAWN_WITHIN)
            } else {
                Vec::new()
            };
        }
        effects.extend(without_question(model));
    } else {
        let before = model.session.agent.state;
        effects.extend(by_signs(model));
        if model.session.agent.state == before && effects.is_empty() {
            return effects;
        }
    }
    effects
}

fn is_answered(model: &Model) -> bool {
    let question = model.session.agent.activity.question.as_ref();
    let late = |asked: At| model.now.since(asked) >= DRAWN_WITHIN;
    model.session.agent.prompt_box.is_present()
        && question.is_some_and(|question| question.drawn || late(question.asked))
}

/// What title and prompt box say, where no question is known.
fn by_signs(model: &mut Model) -> Vec<Effect> {
    let activity = &model.session.agent.activity;
    let (title, present) = (activity.title, model.session.agent.prompt_box.is_present());
    let hidden = activity.box_seen && !present;
    let hookless = is_hookless(model);
    let spins = title == Some(TitleState::Spins);
    let calm = title == Some(TitleState::Calm);
    match model.session.agent.state {
        AgentState::Starting if hookless && spins => begin_turn(model),
        // A run types into whatever stands in the pane, so there the prompt box must be seen.
        AgentState::Starting if hookless && calm && (present || model.autopilot.is_none()) => {
            set_state(model, AgentState::Idle);
        }
        AgentState::Starting | AgentState::Limit | AgentState::Exited => {}
        _ if activity.turn => {
            let calls = if hookless {
                model.session.transcript.calls_open
            } else {
                activity.calls.len()
            };
            if spins {
                set_state(model, AgentState::Busy);
            } else if hidden || (calm && calls > 0 && (hookless || !present)) {
                // A call of a transcript may be over, for it is written late.
                set_state(model, AgentState::Unknown);
            } else if calm {
                return turn_stopped(model);
            } else {
                set_state(model, AgentState::Busy);
            }
        }
        _ if spins && hookless => begin_turn(model),
        _ if spins && model.session.agent.background.is_empty() => {
            set_state(model, AgentState::Busy);
        }
        _ if hidden => set_state(model, AgentState::Unknown),
        _ if activity.elsewhere.known => set_state(model, AgentState::Elsewhere),
        _ => set_state(model, AgentState::Idle),
    }
    Vec::new()
}

/// The turn is over, though no hook has said so.
fn turn_stopped(model: &mut Model) -> Vec<Effect> {
    if is_hookless(model) {
        let said = model.session.agent.last_message.clone();
        return turn::turn_ended(model, said.as_deref(), Background::default());
    }
    turn_ends(model, AgentState::Idle);
    let mut effects = ending::turn_over(model);
    // A turn that ends so at this line was no turn: the client has refused the prompt.
    if is_at_refusal(model) {
        turn_ends(model, AgentState::Limit);
        effects.extend(turn::context_limit(model));
    } else {
        let word = "it ended without a word";
        effects.extend(autopilot::turn_failed(model, Failure::Other, word));
    }
    effects
}
