//! An agent that does not go on: it was stopped by a signal, or has suspended itself for a shell that is not there (Ctrl-Z). The next
//! key that a person types for it continues it.

use crate::api::wire::AgentState;

use crate::app::{consequences::Consequences, model::AgentView};

/// The notice that is shown while the agent is suspended.
const SUSPENDED: &str = "the agent is suspended: any key continues it";

impl AgentView {
    /// Notes that the agent is suspended, and returns what follows; its state is unknown until it continues.
    pub(in crate::app) fn suspended(&mut self) -> Consequences {
        let mut follows = Consequences::default();
        if self.state != AgentState::Exited && self.suspended.is_none() {
            self.suspended = Some(std::mem::replace(&mut self.state, AgentState::Unknown));
            follows.error(SUSPENDED);
        }
        follows
    }

    /// Notes that the agent continues. Returns what follows, if it was suspended.
    pub(in crate::app) fn continued(&mut self) -> Option<Consequences> {
        let before = self.suspended.take()?;
        if self.state != AgentState::Exited {
            self.state = before;
        }
        let mut follows = Consequences::default();
        follows.withdraw(SUSPENDED);
        follows.note("the agent is continued");
        Some(follows)
    }
}
