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
    /// The turn is over.
    TurnEnded,
}

/// How good a moment is for a reboot.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Merit {
    /// Something is in pieces: wait if there is room.
    Poor,
    /// Nothing speaks for or against it.
    #[default]
    Fair,
    /// Something was just finished.
    Good,
}

impl BreakpointKind {
    /// Returns how good a moment this makes.
    #[must_use]
    pub const fn merit(&self) -> Merit {
        match self {
            Self::Committed { .. } | Self::TestsPassed { .. } => Merit::Good,
            Self::TestsFailed { .. } => Merit::Poor,
            Self::TurnEnded => Merit::Fair,
        }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finished_work_makes_a_good_moment() {
        let commit = BreakpointKind::Committed {
            sha: "a".repeat(40),
            subject: "x".to_owned(),
        };
        let order = [
            BreakpointKind::TestsFailed { failed: Some(1) },
            BreakpointKind::TurnEnded,
            commit,
        ];
        assert!(order.map(|kind| kind.merit()).is_sorted_by(|a, b| a < b));
    }
}
