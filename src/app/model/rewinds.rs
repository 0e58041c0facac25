//! What was preserved before each prompt of a session, for a rewind that takes the prompt back.

use std::collections::VecDeque;

use serde::{Deserialize, Serialize};

use crate::handoff::PreservedState;

use super::{requests::Requests, todo::TodoList};

/// What was preserved at one moment.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Before {
    pub(in crate::app) state: PreservedState,
    pub(in crate::app) requests: Requests,
    pub(in crate::app) todo: TodoList,
}

/// The moments before the prompts of the session.
#[derive(Debug, Default)]
pub struct Rewinds {
    /// The one before a prompt that a hook has reported and the transcript does not have yet.
    pub(in crate::app) hooked: Option<Before>,
    /// Those before prompts of the transcript, by their names, oldest first.
    pub(in crate::app) prompts: VecDeque<(String, Before)>,
}

/// Of so many of the newest prompts at most it is carried what was preserved before them, and as many items of it at most.
const CARRIED: (usize, usize) = (16, 2_000);

impl Rewinds {
    /// Another session begins. Prompts have names of their own, and this one may be come back to: the newest are kept.
    pub(in crate::app) fn leave_session(&mut self) {
        self.hooked = None;
        let over = self.prompts.len().saturating_sub(CARRIED.0);
        self.prompts.drain(..over);
    }

    /// What a later process needs of it: the newest prompts, oldest first.
    pub(in crate::app) fn carried(&self) -> VecDeque<(String, Before)> {
        let (prompts, items) = CARRIED;
        let mut left = items;
        let fits = |(_, before): &&(String, Before)| {
            let size = 1 + before.state.items().len();
            let fits = size <= left;
            left = left.saturating_sub(size);
            fits
        };
        let newest = self.prompts.iter().rev().take(prompts).take_while(fits);
        let mut newest: VecDeque<_> = newest.cloned().collect();
        newest.make_contiguous().reverse();
        newest
    }
}
