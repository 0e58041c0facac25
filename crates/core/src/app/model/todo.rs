//! The agent's own to-do list, as hooks and the transcript report it, carried over a reboot.
//!
//! The transcript is complete and in order, but late; a hook is quick, but may be missed. So the list is the transcript's,
//! with those calls applied to it that hooks have reported and the transcript does not have yet.

use std::{
    collections::VecDeque,
    hash::{Hash, Hasher},
};

use serde::{Deserialize, Serialize};

use pitstop_base::recent;
use pitstop_handoff::{
    PreservedState,
    preserved::{Origin, texts},
};
use pitstop_transcript::todo::{TodoCall, Todos};

/// The most calls that wait for the transcript.
const AHEAD_CAP: usize = 64;

/// The list and its sources.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "Lists", into = "Lists")]
pub struct TodoList {
    /// The list in the transcript.
    written: Todos,
    /// Calls that hooks have reported and the transcript has not, oldest first.
    ahead: VecDeque<TodoCall>,
    /// The list of the transcript, with the calls of `ahead` applied to it.
    now: Todos,
    /// The items that earlier sessions had done.
    done_before: Vec<String>,
    /// The items that the previous session left open; they count until this session makes a list of its own.
    open_before: Vec<String>,
}

/// The most items carried over from earlier sessions.
const CARRIED_CAP: usize = 500;

/// The stored form of the list: the done and the open items. The session's own list is in its transcript.
#[derive(Serialize, Deserialize)]
struct Lists {
    done: Vec<String>,
    open: Vec<String>,
}

impl From<TodoList> for Lists {
    fn from(list: TodoList) -> Self {
        let mut state = PreservedState::default();
        list.feed(&mut state);
        Self {
            done: texts(&state.completed_items),
            open: texts(&state.pending_items),
        }
    }
}

impl From<Lists> for TodoList {
    fn from(Lists { done, open }: Lists) -> Self {
        Self::before(done, open)
    }
}

impl Hash for TodoList {
    /// Hashes the items that the list feeds: it is no change that the transcript has caught up with the hooks.
    fn hash<H: Hasher>(&self, state: &mut H) {
        (&self.now, &self.done_before, &self.open_before).hash(state);
    }
}

impl TodoList {
    /// Creates a list from the items that an earlier session had done and left open.
    pub fn before(done: Vec<String>, open: Vec<String>) -> Self {
        Self {
            done_before: done,
            open_before: open,
            ..Self::default()
        }
    }

    /// Takes a call that a hook reports.
    pub fn hooked(&mut self, call: &TodoCall) {
        if self.written.knows(call) {
            return;
        }
        recent::push(&mut self.ahead, call.clone(), AHEAD_CAP);
        self.now.apply(call);
    }

    /// Takes the list that the transcript shows.
    pub fn read(&mut self, written: &Todos) {
        if self.written == *written {
            return;
        }
        self.written.clone_from(written);
        self.ahead.retain(|call| !written.knows(call));
        self.now.clone_from(written);
        for call in &self.ahead {
            self.now.apply(call);
        }
    }

    /// Begins another session: open items stay open until that session makes a list of its own.
    pub fn carry_over(&mut self) {
        let now = std::mem::take(&mut self.now);
        self.written = Todos::default();
        self.ahead.clear();
        if now.is_empty() {
            return;
        }
        self.done_before.extend(now.completed().map(str::to_owned));
        let over = self.done_before.len().saturating_sub(CARRIED_CAP);
        self.done_before.drain(..over);
        self.open_before = now.pending().map(str::to_owned).collect();
    }

    /// Takes over the items that an earlier session had done and left open; this session's own list stays.
    pub fn restore(&mut self, before: Self) {
        let Lists { done, open } = before.into();
        (self.done_before, self.open_before) = (done, open);
    }

    /// Reports whether the agent has written a list, in this session or in an earlier one.
    pub const fn is_kept(&self) -> bool {
        !self.now.is_empty() || !self.done_before.is_empty() || !self.open_before.is_empty()
    }

    /// Feeds the done and the open items into the preserved state.
    pub fn feed(&self, state: &mut PreservedState) {
        let before = self.done_before.iter().map(String::as_str);
        let open_before = if self.now.is_empty() {
            self.open_before.as_slice()
        } else {
            &[]
        };
        state.feed_list(
            before.chain(self.now.completed()),
            self.now
                .pending()
                .chain(open_before.iter().map(String::as_str)),
            Origin::Todo,
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::app::tests::list;
    use pitstop_transcript::todo::Status;

    fn fed(todo: &TodoList) -> (Vec<String>, Vec<String>) {
        let mut state = PreservedState::default();
        todo.feed(&mut state);
        let texts = |items: &[pitstop_handoff::preserved::Item]| {
            assert!(items.iter().all(|item| item.origin == Origin::Todo));
            items.iter().map(|item| item.text.clone()).collect()
        };
        (texts(&state.completed_items), texts(&state.pending_items))
    }

    #[test]
    fn a_transcript_that_is_behind_does_not_take_back_what_a_hook_reported() {
        use Status::{Completed, Pending};
        let (first, second, third) = (
            list("t1", &[("a", Pending)]),
            list("t2", &[("a", Completed)]),
            list("t3", &[("a", Completed), ("b", Pending)]),
        );
        let mut todo = TodoList::default();
        todo.hooked(&first);
        todo.hooked(&second);
        assert_eq!(fed(&todo), (vec!["a".to_owned()], vec![]));
        let mut written = Todos::default();
        written.apply(&first);
        todo.read(&written);
        assert_eq!(fed(&todo), (vec!["a".to_owned()], vec![]));
        written.apply(&second);
        todo.read(&written);
        assert_eq!(fed(&todo), (vec!["a".to_owned()], vec![]));
        written.apply(&third);
        todo.read(&written);
        todo.hooked(&second);
        let whole = (vec!["a".to_owned()], vec!["b".to_owned()]);
        assert_eq!(fed(&todo), whole, "the transcript was quicker");
    }

    #[test]
    fn what_was_open_counts_until_the_next_session_has_a_list() {
        use Status::{Completed, Pending};
        let mut todo = TodoList::default();
        todo.hooked(&list("t1", &[("a", Completed), ("b", Pending)]));
        todo.carry_over();
        assert_eq!(fed(&todo), (vec!["a".to_owned()], vec!["b".to_owned()]));
        todo.carry_over();
        assert_eq!(fed(&todo), (vec!["a".to_owned()], vec!["b".to_owned()]));
        todo.hooked(&list("t2", &[("b, reworded", Pending)]));
        assert_eq!(
            fed(&todo),
            (vec!["a".to_owned()], vec!["b, reworded".to_owned()])
        );
    }
}
