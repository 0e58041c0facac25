//! The state that is reported outside: counters, missing resources, and the supervisor's exit.

use chrono::{DateTime, Utc};

use crate::lineage::EndReason;

use super::{counters::Counters, needs::Need};

/// The state of quitting.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Quitting {
    /// The exit code to leave with.
    pub code: i32,
    /// The reason why the last iteration ends, in the terms of its record.
    pub reason: EndReason,
}

/// The state that is reported outside.
#[derive(Debug, Default)]
pub struct Outside {
    /// The counters for monitoring.
    pub counters: Counters,
    /// The reason why the store cannot be used, while history is kept in memory instead.
    pub store_error: Option<String>,
    /// A description of the supervisor's own files that are gone and cannot be made again, with the reason.
    pub places_missing: Option<String>,
    /// One line for each session or process that keeps running after quitting, for the shell.
    pub left_running: Vec<String>,
    /// What a person is needed for, the most urgent first.
    pub needs: Vec<Need>,
    /// The number of the newest need.
    last_need: u64,
    /// The end of the usage limit at which the model is looked at again.
    pub(in crate::app) limit_awaited: Option<DateTime<Utc>>,
    /// The exit, if the supervisor is quitting.
    pub quitting: Option<Quitting>,
}

impl Outside {
    /// Returns a number that no need has had.
    pub(in crate::app) const fn next_need(&mut self) -> u64 {
        self.last_need += 1;
        self.last_need
    }
}
