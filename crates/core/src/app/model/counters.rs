//! Counters for monitoring.

use std::collections::BTreeMap;

use super::reboot::RebootOutcome;
use crate::{api::wire::ApiEventKind, app::effect::Effect, lineage::Cause};

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

    /// Counts turns that have ended, and what is ordered and reported at the end of an event.
    pub(in crate::app) fn count_work(&mut self, turns: u32, effects: &[Effect]) {
        self.turns += u64::from(turns);
        for effect in effects {
            match effect {
                Effect::SaveCheckpoint(_) => self.checkpoints += 1,
                Effect::Publish(one) if one.kind == ApiEventKind::Commit => self.commits += 1,
                Effect::Publish(one) if one.kind == ApiEventKind::Tests => {
                    let passed = one.data["passed"] == true;
                    self.tests_passed += u64::from(passed);
                    self.tests_failed += u64::from(!passed);
                }
                _ => {}
            }
        }
    }
}
