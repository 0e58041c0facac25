//! What a session carries of its lineage: with it every way of coming back to the session knows what was known.

use std::collections::{BTreeMap, VecDeque};

use serde::{Deserialize, Serialize};

use crate::{handoff::PreservedState, lineage::IterationId, transcript::SessionId};

use super::{requests::Requests, rewinds::Before, todo::TodoList};

/// What a session carries of its lineage, beside what its transcript and the scratchpad say.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Carried {
    /// What signals, tools and people have said.
    pub state: PreservedState,
    /// What the human asked for.
    pub requests: Requests,
    /// The agent's to-do lists.
    pub todo: TodoList,
    /// Up to where the transcript was read for it, in bytes.
    pub read: u64,
    /// What was preserved before the newest prompts, for a rewind that takes them back.
    pub before: VecDeque<(String, Before)>,
    /// The handoff in the human's own words, below its first line, if they have edited it.
    pub edited: Option<String>,
    /// The arguments that the agent was started with, but those that choose its session.
    pub args: Vec<String>,
}

impl Carried {
    /// Adds what a human has said since, and taken out: a way back takes back what the agent has said only.
    pub fn keep_human(&mut self, now: &PreservedState) {
        self.state.withdraw_all(&now.withdrawn);
        self.state.add_constraints(now.prompts().cloned());
    }
}

/// What of it is on its way to the store.
#[derive(Debug, Default)]
pub struct Keeping {
    /// What was kept last, as a number.
    pub(in crate::app) kept: Option<u64>,
    /// The session that the store was asked about and has not answered for: nothing is kept of it until then.
    pub(in crate::app) asked: Option<SessionId>,
    /// Up to where the transcript of the first session was read by the process before, in bytes.
    pub(in crate::app) read_before: Option<(SessionId, u64)>,
    /// Whether a change is kept in a moment.
    pub(in crate::app) due: bool,
    /// What the newest iterations of this run carried at their ends.
    pub(in crate::app) at_ends: BTreeMap<IterationId, Carried>,
    /// The prompt in the agent's box that is kept on disk.
    pub(in crate::app) draft: Option<String>,
}
