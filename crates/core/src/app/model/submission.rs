//! A prompt of the supervisor's own on its way to the agent.

use std::collections::VecDeque;

use pitstop_agent::bridge::OrderId;
use pitstop_base::clock::At;

/// A prompt on its way to the agent.
#[derive(Clone, Debug)]
pub struct Submission {
    pub(in crate::app) epoch: u64,
    pub(in crate::app) since: At,
    pub(in crate::app) text: String,
    /// The part of the text that was typed.
    pub(in crate::app) typed: String,
    /// The pieces that are still to be typed.
    pub(in crate::app) left: VecDeque<String>,
    /// True if it is submitted; otherwise it is left for the human to look at.
    pub(in crate::app) submits: bool,
    /// The number of Enters sent so far.
    pub(in crate::app) enters: usize,
    /// The order by which the client's own side gives the prompt; with an order, nothing of it is typed.
    pub(in crate::app) order: Option<OrderId>,
    /// True if a hook will report it.
    pub(in crate::app) proves: bool,
}
