//! An agent that does not go on: it was stopped by a signal, or has suspended itself for a shell that is not there (Ctrl-Z). The next
//! key that a person types for it continues it.

use crate::api::wire::AgentState;

use crate::app::{
    consequences::Consequences,
    model::{AgentView, Model},
};

/// The notice that is shown while the agent is suspended.
const SUSPENDED: &str = "the agent is suspended: any key continues it";

impl AgentView {
    /// Takes in that the agent does not go on.
    pub(in crate::app) fn suspended(&mut self) -> Consequences {
        let mut follows = Consequences::default();
        if self.state != AgentState::Exited && self.suspended.is_none() {
            self.suspended = Some(std::mem::replace(&mut self.state, AgentState::Unknown));
            follows.error(SUSPENDED);
        }
        follows
    }
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
