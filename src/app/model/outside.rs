//! What is reported outside: counters, what cannot be used, and that we leave.

use crate::lineage::EndReason;

use super::counters::Counters;

/// How far quitting is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Quitting {
    /// The exit code to leave with.
    pub code: i32,
    /// Why the last iteration ends, in the words of its record.
    pub reason: EndReason,
}

/// What is reported outside.
#[derive(Debug, Default)]
pub struct Outside {
    /// What is counted for monitoring.
    pub counters: Counters,
    /// Why the store cannot be used and history is kept in memory, while that is so.
    pub store_error: Option<String>,
    /// Which of the supervisor's own places are gone and cannot be made again, and why.
    pub places_missing: Option<String>,
    /// What lives on after quitting, a line each, for the shell.
    pub left_running: Vec<String>,
    /// Whether we are leaving.
    pub quitting: Option<Quitting>,
}
