//! The facts that were preserved before each prompt of a session, for a rewind that takes the prompt back.

use std::collections::VecDeque;

use serde::{Deserialize, Serialize};

use pitstop_base::recent;
use pitstop_handoff::PreservedState;

use super::{requests::Requests, todo::TodoList};

/// The facts that were preserved at one moment.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Before {
    pub(in crate::app) state: PreservedState,
    pub(in crate::app) requests: Requests,
    pub(in crate::app) todo: TodoList,
}

/// The facts that were preserved before the prompts of the session.
#[derive(Debug, Default)]
pub struct Rewinds {
    /// The facts before a prompt that a hook has reported and the transcript does not have yet.
    pub(super) hooked: Option<Before>,
    /// The facts before prompts of the transcript, with the prompts' names, oldest first.
    pub(in crate::app) prompts: VecDeque<(String, Before)>,
    /// What the last rewinds have taken back, with what was preserved at its end.
    taken_back: VecDeque<(Vec<(String, Before)>, Before)>,
}

/// The most prompts, newest first, whose preserved facts are carried, and the most items of these facts.
const CARRIED: (usize, usize) = (16, 2_000);

/// The number of rewinds of which is remembered what they have taken back: two processes may take turns in one session.
const TAKEN_BACK: usize = 4;

/// The number of prompts for which the state before them is remembered.
const KEPT: usize = 64;

impl Rewinds {
    /// Remembers what was preserved before a prompt of the transcript: what was before its hook, or else what is now.
    pub(super) fn remember(&mut self, prompt: String, now: Before) {
        let before = self.hooked.take().unwrap_or(now);
        recent::push(&mut self.prompts, (prompt, before), KEPT);
    }

    /// Takes back the prompts from this one on, with what is preserved now; returns what was preserved before it.
    pub(super) fn take_back(&mut self, first: &str, now: Before) -> Option<Before> {
        let at = self.prompts.iter().position(|(name, _)| name == first)?;
        let end = self.hooked.take().unwrap_or(now);
        let prompts: Vec<_> = self.prompts.drain(at..).collect();
        let before = prompts.first().map(|(_, before)| before.clone());
        recent::push(&mut self.taken_back, (prompts, end), TAKEN_BACK);
        before
    }

    /// Takes up again what was taken back, up to this prompt; returns what was preserved at the end of its turn, if it is known.
    pub(super) fn take_up(&mut self, last: &str) -> Option<Before> {
        let place =
            |prompts: &[(String, Before)]| prompts.iter().position(|(name, _)| name == last);
        let mut taken_back = self.taken_back.iter();
        let at = taken_back.rposition(|(prompts, _)| place(prompts).is_some())?;
        let (mut prompts, end) = self.taken_back.remove(at)?;
        let behind = prompts.split_off(place(&prompts)? + 1);
        self.prompts.extend(prompts);
        let next = behind.into_iter().next();
        Some(next.map_or(end, |(_, before)| before))
    }

    /// Keeps only the newest prompts when another session begins: prompts have names of their own, and this session may be resumed.
    pub(in crate::app) fn leave_session(&mut self) {
        self.hooked = None;
        let over = self.prompts.len().saturating_sub(CARRIED.0);
        self.prompts.drain(..over);
    }

    /// Returns the newest prompts, which a later process needs, oldest first.
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
