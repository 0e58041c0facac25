//! An agent that does not go on: it was stopped by a signal, or has suspended itself for a shell that is not there (Ctrl-Z). The next
//! key that a person types for it continues it.

use crate::api::wire::AgentState;

use crate::app::{effect::Effect, model::Model};

/// The notice that is shown while the agent is suspended.
const SUSPENDED: &str = "the agent is suspended: any key continues it";

/// Takes in that the agent does not go on.
pub fn seen(model: &mut Model) {
    let agent = &mut model.session.agent;
    if agent.state == AgentState::Exited || agent.suspended.is_some() {
        return;
    }
    agent.suspended = Some(std::mem::replace(&mut agent.state, AgentState::Unknown));
    model.error(SUSPENDED);
}

/// Takes in that the agent goes on. Returns false if it was not suspended.
pub fn continued(model: &mut Model) -> bool {
    let Some(before) = model.session.agent.suspended.take() else {
        return false;
    };
    if model.session.agent.state != AgentState::Exited {
        model.session.agent.state = before;
    }
    model.view.withdraw_notice(SUSPENDED);
    model.note("the agent is continued");
    true
}

/// Continues a suspended agent for something that a person has typed, which is not passed on. Returns false if it is not suspended.
pub fn continue_agent(model: &mut Model) -> bool {
    let suspended = continued(model);
    if suspended {
        model.emit(Effect::ContinueAgent);
    }
    suspended
}
