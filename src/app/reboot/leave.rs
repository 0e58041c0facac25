//! Leaving: the agent is ended, what was edited is written, the record is closed.

use crate::{api::wire::AgentState, lineage::EndReason};

use crate::app::{
    draft::{handoff, scratchpad, summary},
    effect::Effect,
    model::{Model, Quitting},
    reboot::{self, ending, iteration::close_iteration},
};

/// Leaves with this code; the agent is ended, what was edited is written, the record is closed for this reason.
pub fn leave(model: &mut Model, code: i32, reason: EndReason, urgent: bool) -> Vec<Effect> {
    let mut effects = scratchpad::finish_edit(model);
    handoff::finish_edit(model);
    effects.extend(reboot::abandon(model));
    effects.extend(summary::close(model));
    model.view.overlay = None;
    model.outside.quitting = Some(Quitting { code, reason });
    // An agent that never ran, or is gone, needs no ending.
    let ended =
        model.session.agent.process.is_none() && model.session.agent.state != AgentState::Starting;
    if ended && !model.session.agent.daemon.is_ending() {
        effects.extend(close_iteration(model, reason));
        effects.push(Effect::Quit(code));
        return effects;
    }
    effects.extend(ending::begin(model, urgent));
    effects
}
