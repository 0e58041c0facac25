//! The state of sessions that went to the client's daemon.

use crate::app::event::Exit;
use pitstop_transcript::SessionId;

/// The most sessions that are recorded for one agent, which gets one more each time that its session is moved.
const SESSIONS_CAP: usize = 16;

/// The end of the pane's process, held until the daemon has ended the session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Held {
    pub(in crate::app) exit: Exit,
    pub(in crate::app) was_ending: bool,
    pub(in crate::app) epoch: u64,
}

/// The known state of the agent view and of the sessions that went to the daemon.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DaemonState {
    /// The sessions that this agent has had since the agent view was seen; empty before.
    pub(in crate::app) sessions: Vec<SessionId>,
    /// True if no turn of the last of them has ended.
    pub(in crate::app) unwritten: bool,
    /// The fork that a hook has reported before the agent view was seen.
    pub(in crate::app) branch: Option<SessionId>,
    /// The other sessions whose hooks have reported since, and that were asked about.
    pub(in crate::app) asked: Vec<SessionId>,
    /// True if the session was left running in the daemon when the pane's process ended.
    pub(in crate::app) goes_on: bool,
    /// The end of the pane's process, while the session is being ended.
    pub(in crate::app) held: Option<Held>,
}

impl DaemonState {
    /// Reports whether the pane's process is gone and the session is being ended.
    pub const fn is_ending(&self) -> bool {
        self.held.is_some()
    }

    /// Reports whether a hook has reported this session as a fork before the agent view was seen.
    pub fn is_branch(&self, session: SessionId) -> bool {
        self.branch == Some(session)
    }

    /// Adds the session that the agent is in now: the last one.
    pub(in crate::app) fn add(&mut self, session: SessionId) {
        self.sessions.retain(|one| *one != session);
        if self.sessions.len() < SESSIONS_CAP {
            self.sessions.push(session);
        }
    }
}
