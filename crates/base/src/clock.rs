//! The moment something happened, as the pure core receives it.
//!
//! The core has no clock. The shell reads both clocks once per event and hands an [`At`] in: the monotonic one measures
//! durations and survives clock jumps, the wall one is for people and files. Files and JSON have it in UTC, the screen in
//! local time, without the zone's name: its offset from UTC comes in with the clocks.

use std::time::Duration;

use chrono::{DateTime, FixedOffset, Utc};

/// One moment on both clocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct At {
    /// The monotonic time since the supervisor started.
    pub since_start: Duration,
    /// The wall-clock time, UTC.
    pub wall: DateTime<Utc>,
    /// The offset of the local time of the person at the screen from UTC.
    pub zone: FixedOffset,
}

/// The zero offset from UTC.
pub const UTC: FixedOffset = match FixedOffset::east_opt(0) {
    Some(zone) => zone,
    None => unreachable!(),
};

/// A function that returns the offset of local time from UTC at a moment.
pub type Zone = fn(DateTime<Utc>) -> FixedOffset;

impl At {
    /// Returns the monotonic time that has passed since `earlier`; zero if `earlier` is later.
    pub fn since(self, earlier: Self) -> Duration {
        self.since_start.saturating_sub(earlier.since_start)
    }

    /// Returns a moment in local time, for the screen. It uses the offset of now, so one before the clocks were changed is
    /// an hour off.
    pub fn local(self, moment: DateTime<Utc>) -> DateTime<FixedOffset> {
        moment.with_timezone(&self.zone)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_screen_has_the_time_of_the_person_at_it() {
        let wall = DateTime::from_timestamp(1_795_000_000, 0).expect("a moment");
        let mut now = At {
            since_start: Duration::ZERO,
            wall,
            zone: UTC,
        };
        let shown = |now: At| now.local(wall).format("%H:%M").to_string();
        assert_eq!(shown(now), "11:06");
        now.zone = FixedOffset::east_opt(5 * 3_600 + 1_800).expect("a zone");
        assert_eq!(shown(now), "16:36");
        assert_eq!(now.local(wall), wall, "the same moment");
    }
}
