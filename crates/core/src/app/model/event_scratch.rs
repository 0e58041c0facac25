//! The results of the event at hand: the effects for the shell, and the facts that features look at later in the same update.

use crate::app::effect::Effect;

/// The reason why a reboot that was due did not begin.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NoReboot {
    /// A breaker holds it back because it would not help.
    Breaker(String),
    /// The things that it needs could not be prepared.
    Refused(String),
}

/// The results of the event at hand; empty when the event arrives.
#[derive(Debug, Default)]
pub struct EventScratch {
    /// The effects for the shell, in order.
    pub(in crate::app) effects: Vec<Effect>,
    /// The action by which a person has taken the agent over from an autonomous run.
    pub taken_over: Option<&'static str>,
    /// The reason why a reboot did not begin, for the run to judge.
    pub no_reboot: Option<NoReboot>,
    /// True if the last call of a step of the main turn has ended: a turn can be cut between two steps.
    pub at_seam: bool,
    /// True if an order was given to read the prompt box before the agent is ended; the answer is another event.
    pub reads_prompt_box: bool,
}
