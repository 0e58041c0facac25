//! The facts of its lineage that a session carries: every way of coming back to the session restores them.

use std::collections::{BTreeMap, VecDeque};

use serde::{Deserialize, Serialize};

use crate::lineage::IterationId;
use pitstop_handoff::{PreservedState, edits::Edits};
use pitstop_transcript::SessionId;

use super::{requests::Requests, rewinds::Before, todo::TodoList};

/// The facts of its lineage that a session carries, beside those in its transcript and the scratchpad.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Carried {
    /// The facts from signals, tools and people.
    pub state: PreservedState,
    /// The human's requests.
    pub requests: Requests,
    /// The sessions that were left without a handoff and from which this one carries on, oldest first.
    pub left_sessions: Vec<SessionId>,
    /// The agent's to-do lists.
    pub todo: TodoList,
    /// The offset up to which the transcript was read for these facts, in bytes.
    pub read: u64,
    /// The facts that were preserved before the newest prompts, for a rewind that takes them back.
    pub before: VecDeque<(String, Before)>,
    /// The handoff in the human's own words, below its first line, if they have edited it.
    pub edited: Option<String>,
    /// The changes by which they did.
    pub edits: Edits,
    /// The goal that a person has set in the client.
    pub goal: Option<String>,
    /// The goal of the session before, which this one has not been given yet.
    pub goal_due: Option<String>,
    /// The arguments that the agent was started with, except those that choose its session.
    pub args: Vec<String>,
}

impl Carried {
    /// Returns the objective of the work: the one that was stated, or else the human's first request, which a session that began with
    /// a handoff has not in its transcript.
    pub fn objective(&self) -> Option<&str> {
        let stated = self.state.current_objective.as_ref();
        let first = self.requests.first.as_ref();
        let stated = stated.map(|objective| objective.text.as_str());
        stated.or_else(|| Some(first?.text.as_str()))
    }
}

/// The state of writing the carried facts to the store.
#[derive(Debug, Default)]
pub struct Keeping {
    /// A hash of the facts that were last kept.
    pub(in crate::app) kept: Option<u64>,
    /// The session of which they were kept.
    pub(in crate::app) session: Option<SessionId>,
    /// The session that the store was asked about and has not answered for. Nothing of it is kept until the answer comes.
    pub(in crate::app) asked: Option<SessionId>,
    /// The first session, and the offset up to which the previous process read its transcript, in bytes.
    pub(in crate::app) read_before: Option<(SessionId, u64)>,
    /// True if a change is about to be kept.
    pub(in crate::app) due: bool,
    /// The facts that the newest iterations of this run carried at their ends.
    pub(in crate::app) at_ends: BTreeMap<IterationId, Carried>,
    /// The prompt in the agent's box that is kept on disk.
    pub(in crate::app) draft: Option<String>,
}

#[cfg(test)]
mod tests {
    use pitstop_handoff::preserved::Origin;
    use pitstop_transcript::human::Said;

    use super::*;

    #[test]
    fn the_first_request_is_the_objective_until_one_is_stated() {
        let mut carried = Carried::default();
        assert_eq!(carried.objective(), None);
        carried.requests.first = Some(Said {
            text: "fix the parser".to_owned(),
            at: None,
        });
        assert_eq!(carried.objective(), Some("fix the parser"));
        carried.state.set_objective("parse dates", Origin::Signal);
        assert_eq!(carried.objective(), Some("parse dates"));
    }
}
