//! A session that the client has moved to its daemon: the model goes along with it, and a reboot or quitting ends it there.
//!
//! ```text
//!   the pane's process has ended ──► held ── EndMoved ──► MovedEnded, or too late ──► the agent has ended
//! ```
//!
//! The fork is the same conversation under another id: figures, to-do list and summary stay. The client writes the fork's
//! transcript with its first prompt; until a turn of it has ended the old one is all there is to read.
//!
//! The process in the pane is ended first: it would show that the session has been stopped, and start another one.
//!
//! Before the agent view was seen, a fork is none of the daemon's that we follow: it is a branch (`/branch`), to which the process in the
//! pane goes over, or a copy in the background (`/fork`). The client's own record of that process shows which.

use std::time::Duration;

use pitstop_agent::{AgentEvent, StartSource};
use pitstop_transcript::SessionId;

use crate::app::{
    consequences::Consequences,
    effect::Effect,
    event::{Exit, TimerId},
    model::{
        daemon::{DaemonState, Held},
        session::Session,
    },
};

/// The time that ending the session there may take. The client needs 0.2 to 0.5 s for it, a loaded machine ten times that.
const LIMIT: Duration = Duration::from_secs(8);

/// The time for the same while the machine or the terminal is going away.
const URGENT: Duration = Duration::from_secs(1);

/// The time that the shell may need above its limit, to end by signals what the client did not.
const ABOVE: Duration = Duration::from_secs(5);

/// The largest number of sessions that are asked about; each of them costs a look at a file.
const ASKED_CAP: usize = 8;

impl Session {
    /// Notes a fork that a hook has reported before the agent view was seen; returns whether this is one. What the process in the pane
    /// was started as is none.
    pub(in crate::app) fn note_branch(&mut self, event: &AgentEvent) -> bool {
        let agent = &mut self.agent;
        let AgentEvent::SessionStarted {
            session, source, ..
        } = event
        else {
            return false;
        };
        let is_branch =
            *source == StartSource::Fork && agent.hooked && agent.daemon.sessions.is_empty();
        if is_branch {
            agent.daemon.branch = Some(*session);
        }
        is_branch
    }

    /// Follows the session that has been forked under a new id: once the agent view was seen it runs in the daemon from now on.
    pub(in crate::app) fn forked(&mut self, to: SessionId) {
        tracing::info!(from = %self.id, %to, "the session was forked");
        let from = std::mem::replace(&mut self.id, to);
        let daemon = &mut self.agent.daemon;
        daemon.branch = None;
        if !daemon.sessions.is_empty() {
            daemon.add(from);
            daemon.add(to);
            daemon.unwritten = true;
        }
    }
}

impl DaemonState {
    /// Returns the question which session the daemon runs, now that the agent view was opened: the fork may have been reported before,
    /// or not at all.
    pub(in crate::app) fn opened(&mut self, session: SessionId) -> Effect {
        self.add(session);
        let from = self.sessions.clone();
        Effect::FindMoved { from }
    }

    /// Reports whether this is the timer of the end that is held.
    pub(in crate::app) fn is_late(&self, epoch: u64) -> bool {
        self.held.as_ref().is_some_and(|held| held.epoch == epoch)
    }

    /// Returns the transcript that an event names, if it is to be followed.
    pub(in crate::app) fn written(&mut self, event: &AgentEvent, path: String) -> Option<String> {
        self.unwritten &= !matches!(event, AgentEvent::TurnEnded { .. });
        (!self.unwritten).then_some(path)
    }

    /// Handles a report of another session by our hooks. After the agent view was seen it may be ours under its new id.
    pub(in crate::app) fn another_spoke(&mut self, event: &AgentEvent) -> Option<Effect> {
        let session = event.session()?;
        let settled = self.sessions.is_empty() || self.sessions.contains(&session);
        if settled || self.asked.contains(&session) || self.asked.len() >= ASKED_CAP {
            return None;
        }
        self.asked.push(session);
        let from = self.sessions.clone();
        Some(Effect::FindMoved { from })
    }
}

impl DaemonState {
    /// Handles the end of the process in the pane. If the session has gone to the daemon it is ended there before anything else, unless
    /// the person has left it to run on: then the client ends by itself and well. The process `was_ending` by our doing, and we may be
    /// quitting with a code. Returns the end unless it is held.
    pub(in crate::app) fn hold(
        &mut self,
        (exit, was_ending): (Exit, bool),
        quitting: Option<i32>,
        epoch: u64,
    ) -> (Consequences, Option<(Exit, bool)>) {
        let mut follows = Consequences::default();
        if self.sessions.is_empty() {
            return (follows, Some((exit, was_ending)));
        }
        if !was_ending && quitting.is_none() && exit == Exit::Code(0) {
            self.goes_on = true;
            follows
                .info("the session goes on in Claude Code's background: `claude agents` shows it");
            return (follows, Some((exit, was_ending)));
        }
        let is_urgent = quitting.is_some_and(|code| code != 0);
        let limit = if is_urgent { URGENT } else { LIMIT };
        self.held = Some(Held {
            exit,
            was_ending,
            epoch,
        });
        let sessions = self.sessions.clone();
        follows.emit(Effect::EndMoved { sessions, limit });
        follows.emit(Effect::SetTimer(TimerId::MovedEnd(epoch), limit + ABOVE));
        (follows, None)
    }
}
