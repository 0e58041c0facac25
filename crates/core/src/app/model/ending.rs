//! The progress of ending the agent.

use crate::app::effect::StopSignal;

/// The progress of ending the agent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ending {
    /// The signal that is being tried.
    pub signal: StopSignal,
    /// The epoch of its timers.
    pub(in crate::app) epoch: u64,
    /// True if there is no time for a gentle end.
    pub(in crate::app) urgent: bool,
    /// True if the last signal has failed too.
    pub hopeless: bool,
}
