//! Counters for monitoring.

use std::collections::BTreeMap;

use super::reboot::RebootOutcome;
use crate::lineage::Cause;

/// Counters, which only grow.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// The number of turns that have ended.
    pub turns: u64,
    /// The number of commits seen.
    pub commits: u64,
    /// The number of test runs seen that passed.
    pub tests_passed: u64,
    /// The number of test runs seen that failed.
    pub tests_failed: u64,
    /// The number of checkpoints ordered.
    pub checkpoints: u64,
    /// The number of reboots that have ended, by cause and outcome.
    pub reboots: BTreeMap<(Cause, RebootOutcome), u64>,
}

impl Counters {
    /// Counts a reboot that has ended.
    pub(in crate::app) fn count_reboot(&mut self, cause: Cause, outcome: RebootOutcome) {
        *self.reboots.entry((cause, outcome)).or_default() += 1;
    }

    /// Counts turns that have ended and checkpoints that were ordered.
    pub(in crate::app) const fn count_work(&mut self, turns: u32, checkpoints: usize) {
        self.turns += turns as u64;
        self.checkpoints += checkpoints as u64;
    }

    /// Counts a commit.
    pub(in crate::app) const fn count_commit(&mut self) {
        self.commits += 1;
    }

    /// Counts a test run.
    pub(in crate::app) const fn count_tests(&mut self, passed: bool) {
        if passed {
            self.tests_passed += 1;
        } else {
            self.tests_failed += 1;
        }
    }
}
