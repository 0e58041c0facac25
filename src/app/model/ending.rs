//! How far ending the agent is.

use crate::app::effect::StopSignal;

/// How far ending the agent is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ending {
    /// The signal that is being tried.
    pub signal: StopSignal,
    /// The epoch of its timers.
    pub(in crate::app) epoch: u64,
    /// Whether there is no time for manners.
    pub(in crate::app) urgent: bool,
    /// Whether the last signal has failed too.
    pub hopeless: bool,
}
