//! What the event at hand has brought: what the shell is to do, and what features look at later in the same update.

use crate::app::effect::Effect;

/// Why a reboot that was due did not begin.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NoReboot {
    /// A breaker says that it would not help.
    Breaker(String),
    /// What it needs could not be prepared.
    Refused(String),
}

/// What the event at hand has brought: empty when it arrives.
#[derive(Debug, Default)]
pub struct Happened {
    /// What the shell is to do, in order.
    pub(in crate::app) effects: Vec<Effect>,
    /// By what a person has taken the agent out of the hands of a run.
    pub taken_over: Option<&'static str>,
    /// Why a reboot did not begin, for the run to judge.
    pub no_reboot: Option<NoReboot>,
    /// Whether the last call of a step of the main turn has ended: between two steps a turn can be cut.
    pub at_seam: bool,
    /// Whether the prompt box was ordered to be read before the agent is ended: the answer is another event.
    pub reads_prompt_box: bool,
}
