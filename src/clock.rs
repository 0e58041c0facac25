//! The moment something happened, as the pure core receives it.
//!
//! The core has no clock. The shell reads both clocks once per event and hands an
//! [`At`] in: the monotonic one measures durations and survives clock jumps, the wall one is for
//! people and files.

use std::time::Duration;

use chrono::{DateTime, Utc};

/// One moment on both clocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct At {
    /// Monotonic time since the supervisor started.
    pub since_start: Duration,
    /// Wall-clock time, UTC.
    pub wall: DateTime<Utc>,
}

impl At {
    /// The monotonic time that has passed since `earlier`; zero if `earlier` is later.
    #[must_use]
    pub fn since(self, earlier: Self) -> Duration {
        self.since_start.saturating_sub(earlier.since_start)
    }
}
