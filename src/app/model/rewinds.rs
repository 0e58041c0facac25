//! What was preserved before each prompt of a session, for a rewind that takes the prompt back.

use std::collections::VecDeque;

use crate::handoff::PreservedState;

use super::{requests::Requests, todo::TodoList};

/// What was preserved at one moment.
#[derive(Clone, Debug)]
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
