//! The state of sessions that went to the client's daemon.

use crate::app::event::Exit;
use crate::transcript::SessionId;

/// The most sessions that one agent is believed to have been; a moved one is one more each time.
const SESSIONS_CAP: usize = 16;

/// The end of the pane's process, held until the daemon has ended the session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Held {
    pub(in crate::app) exit: Exit,
    pub(in crate::app) was_ending: bool,
    pub(in crate::app) epoch: u64,
}

/// What is known of the agent view and of sessions that went to the daemon.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DaemonState {
    /// The sessions that this agent has been since the agent view was seen; empty before.
    pub(in crate::app) sessions: Vec<SessionId>,
    /// Whether no turn of the last of them has ended.
    pub(in crate::app) unwritten: bool,
    /// Other sessions that have spoken since, and were asked about.
    pub(in crate::app) asked: Vec<SessionId>,
    /// Whether it was left to run on there when the pane's process ended.
    pub(in crate::app) goes_on: bool,
    /// The end of the pane's process, while the session is being ended.
    pub(in crate::app) held: Option<Held>,
}

impl DaemonState {
    /// Whether the pane's process is gone and the session is being ended.
    #[must_use]
    pub const fn is_ending(&self) -> bool {
        self.held.is_some()
    }

    pub(in crate::app) fn add(&mut self, session: SessionId) {
        if !self.sessions.contains(&session) && self.sessions.len() < SESSIONS_CAP {
            self.sessions.push(session);
        }
    }
}
