//! Counters for monitoring.

use std::collections::BTreeMap;

use super::reboot::RebootOutcome;
use crate::lineage::Cause;

/// Counters, which only grow.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Turns that have ended.
    pub turns: u64,
    /// Commits seen.
    pub commits: u64,
    /// Test runs seen that passed.
    pub tests_passed: u64,
    /// Test runs seen that failed.
    pub tests_failed: u64,
    /// Checkpoints ordered.
    pub checkpoints: u64,
    /// Reboots that have ended, by cause and outcome.
    pub reboots: BTreeMap<(Cause, RebootOutcome), u64>,
}
