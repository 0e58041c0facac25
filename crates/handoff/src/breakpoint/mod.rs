//! Good moments to stop.
//!
//! A reboot costs least right after something was finished: committed work need not be explained, and tests that pass show
//! the state of the work. This module names such moments and asks git for the state of the repository; it decides nothing.

use pitstop_base::clock::At;

pub mod commit;
pub mod git;
pub mod test_run;

/// An event that just happened and may make this a good moment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BreakpointKind {
    /// A commit was made.
    Committed {
        /// The commit's full id.
        sha: String,
        /// The first line of its message, safe to show.
        subject: String,
    },
    /// A test run passed.
    TestsPassed {
        /// The number of tests that ran, if reported.
        count: Option<u64>,
    },
    /// A test run failed.
    TestsFailed {
        /// The number of tests that failed, if reported.
        failed: Option<u64>,
    },
}

impl BreakpointKind {
    /// Reports whether something was just finished, so that this is a good moment for a reboot.
    pub const fn is_good(&self) -> bool {
        !matches!(self, Self::TestsFailed { .. })
    }
}

/// An event of this kind, with its time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Breakpoint {
    /// The event itself.
    pub kind: BreakpointKind,
    /// The time at which it happened.
    pub at: At,
}
