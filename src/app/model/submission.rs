//! A prompt of ours on its way.

use std::collections::VecDeque;

use crate::{bridge::OrderId, clock::At};

/// A prompt on its way.
#[derive(Clone, Debug)]
pub struct Submission {
    pub(in crate::app) epoch: u64,
    pub(in crate::app) since: At,
    pub(in crate::app) text: String,
    /// What of it was typed.
    pub(in crate::app) typed: String,
    /// The pieces that are still to be typed.
    pub(in crate::app) left: VecDeque<String>,
    /// Whether it is submitted; else it is for the human to look at.
    pub(in crate::app) submits: bool,
    /// Enters sent so far.
    pub(in crate::app) enters: usize,
    /// The order by which the client's own side gives it: then nothing of it is typed.
    pub(in crate::app) order: Option<OrderId>,
    /// Whether a hook will report it.
    pub(in crate::app) proves: bool,
}
