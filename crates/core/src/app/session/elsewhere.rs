//! A session that another process continues, such as a second `claude --resume` of it in another terminal.
//!
//! That process has none of our hooks; it shows in the transcript alone, to which both append: a prompt that no hook has reported,
//! and an answer to it, while the agent in the pane rests. The agent in the pane does not read what was added, so from then on the
//! two differ. The state lasts until a turn begins here.

use crate::api::wire::AgentState;

use crate::app::{
    event::TranscriptFacts,
    model::{
        activity::{Elsewhere, TitleState},
        session::Session,
    },
};

/// The largest number of prompts that are awaited: one that the client refuses never comes, and must not hide others for ever.
const AWAITED_CAP: u64 = 2;

impl Elsewhere {
    /// Notes a prompt that a hook has reported: a turn begins here.
    pub(in crate::app) fn prompted(&mut self) {
        let shown = u64::from(self.hook_late);
        *self = Self {
            awaited: (self.awaited + 1 - shown).min(AWAITED_CAP),
            turns_before: self.turns_before,
            ..Self::default()
        };
    }

    /// Returns what is known where another process of ours resumes the session, of which so many turns were read: a prompt of the
    /// process before may be read yet.
    pub(in crate::app) fn resumed(self, turns: u64) -> Self {
        Self {
            awaited: (self.awaited + u64::from(self.submitted)).min(AWAITED_CAP),
            turns_before: turns,
            ..Self::default()
        }
    }

    /// Has the prompt that the transcript shows before its hook begin a turn; returns false if there is none, or it has.
    pub(in crate::app) const fn begin_turn(&mut self) -> bool {
        let begins = self.hook_late && !self.begun;
        self.begun |= begins;
        begins
    }

    /// Notes that hooks were lost: one of a prompt here may be among them, whether the transcript has it by now or not.
    pub(in crate::app) fn hooks_lost(&mut self) {
        let shown = u64::from(std::mem::take(&mut self.hook_late));
        self.unreported = None;
        self.awaited = (self.awaited + 1 - shown).min(AWAITED_CAP);
    }
}

impl Session {
    /// Compares the transcript, which has grown, with the facts before. Returns whether another process has gone on with the session,
    /// which was not known before.
    pub(in crate::app) fn seen_elsewhere(&mut self, before: &TranscriptFacts) -> bool {
        let hookless = self.is_hookless();
        let agent = &mut self.agent;
        let now = &self.transcript;
        let seen = &mut agent.activity.elsewhere;
        let old = now.old_turns.unwrap_or(0).max(seen.turns_before);
        let new = now.turns.saturating_sub(before.turns.max(old));
        let mut unreported = new.saturating_sub(seen.awaited);
        seen.awaited = seen.awaited.saturating_sub(new);
        // A file that is read for the first time may hold earlier turns. One that held none is this session's own: its first prompt was
        // given here, if only at the start.
        let is_own = before.turns == 0 && now.old_turns == Some(0);
        let is_known = before.whole || now.old_turns.is_some();
        if unreported > 0 && is_known && (std::mem::take(&mut seen.submitted) || is_own) {
            unreported -= 1;
            seen.hook_late = true;
        }
        // A fork has a file of its own.
        let known = before.whole && now.whole && agent.daemon.sessions.is_empty();
        let spins = agent.activity.title == Some(TitleState::Spins);
        if !known || agent.state != AgentState::Idle || spins {
            return false;
        }
        if unreported > 0 {
            seen.unreported.get_or_insert(before.totals.output);
        }
        let answered = seen.unreported.is_some_and(|said| now.totals.output > said);
        if !answered || hookless {
            return false;
        }
        seen.known = true;
        agent.set_state(AgentState::Elsewhere);
        true
    }
}
