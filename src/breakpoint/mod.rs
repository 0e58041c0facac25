//! Good moments to stop.
//!
//! A reboot costs least right after something was finished: what is committed need not be explained, and tests that pass say
//! where the work stands. This room names such moments and asks git what is there; it decides nothing.

use crate::clock::At;

pub mod commit;
pub mod git;
pub mod test_run;

/// Something that just happened and may make this a good moment.
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
        /// How many tests ran, if reported.
        count: Option<u64>,
    },
    /// A test run failed.
    TestsFailed {
        /// How many tests failed, if reported.
        failed: Option<u64>,
    },
}

impl BreakpointKind {
    /// Whether something was just finished, so that this is a good moment for a reboot.
    #[must_use]
    pub const fn is_good(&self) -> bool {
        !matches!(self, Self::TestsFailed { .. })
    }
}

/// What happened and when.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Breakpoint {
    /// What happened.
    pub kind: BreakpointKind,
    /// When it happened.
    pub at: At,
}
