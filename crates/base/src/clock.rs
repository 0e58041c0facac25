//! The moment something happened, as the pure core receives it.
//!
//! The core has no clock. The shell reads the clocks once per event and hands an [`At`] in: two that cannot be set measure
//! durations, the wall clock only names moments for people and files. Files and JSON have these in UTC, the screen in local
//! time, without the zone's name: the rule of the zone comes in with the clocks.
//!
//! A wait, an age or a rate is measured by the time for which the machine was awake: while it slept, no work was done, and no
//! countdown was seen. The length of a session or a run is what passed between its beginning and its end: sleep counts. What comes at a
//! moment of the day, such as the end of a usage limit, comes by the wall clock, whatever the machine did meanwhile.

use std::time::Duration;

use chrono::{DateTime, FixedOffset, Offset as _, Utc};

/// One moment on all clocks.
#[derive(Clone, Copy, Debug)]
pub struct At {
    /// The time since the supervisor started for which the machine was awake.
    pub since_start: Duration,
    /// The time since then for which the machine slept.
    pub asleep: Duration,
    /// The wall-clock time, UTC.
    pub wall: DateTime<Utc>,
    /// The zone of the person at the screen.
    pub zone: Zone,
}

impl PartialEq for At {
    /// A moment is the same in every zone.
    fn eq(&self, other: &Self) -> bool {
        let clocks = |at: &Self| (at.since_start, at.asleep, at.wall);
        clocks(self) == clocks(other)
    }
}

impl Eq for At {}

/// The time after which a moment of the wall clock is looked at again.
const LOOK: Duration = Duration::from_secs(30);

/// Returns the time of a timer for a moment of the wall clock that is this far away: a timer is halted while the machine sleeps, and
/// the clock may be set, so the moment is looked at on the way.
#[must_use]
pub fn look_within(left: Duration) -> Duration {
    left.min(LOOK)
}

/// The zone of UTC.
pub const UTC: Zone = |_| Utc.fix();

/// A function that returns the offset of local time from UTC at a moment.
pub type Zone = fn(DateTime<Utc>) -> FixedOffset;

/// Returns a span of time in whole milliseconds, as records have it.
#[must_use]
pub fn milliseconds(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

impl At {
    /// Returns the time awake that has passed since `earlier`; zero if `earlier` is later.
    pub fn since(self, earlier: Self) -> Duration {
        self.since_start.saturating_sub(earlier.since_start)
    }

    /// Returns the whole time that has passed since `earlier`, awake or asleep; zero if `earlier` is later.
    pub fn whole_time_since(self, earlier: Self) -> Duration {
        let slept = self.asleep.saturating_sub(earlier.asleep);
        self.since(earlier) + slept
    }

    /// Returns a moment in local time, for the screen: by the offset that held then.
    pub fn local(self, moment: DateTime<Utc>) -> DateTime<FixedOffset> {
        moment.with_timezone(&(self.zone)(moment))
    }

    /// Returns the time of day of a moment for the screen, by a pattern such as `%H:%M`, behind the day of the week where that is not
    /// today: a usage limit may last for days, and a run over midnight.
    pub fn time_of_day(self, moment: DateTime<Utc>, pattern: &str) -> String {
        let local = self.local(moment);
        let is_today = local.date_naive() == self.local(self.wall).date_naive();
        let day = if is_today { "" } else { "%a " };
        local.format(&format!("{day}{pattern}")).to_string()
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
            asleep: Duration::ZERO,
            wall,
            zone: UTC,
        };
        let shown = |now: At| now.local(wall).format("%H:%M").to_string();
        assert_eq!(shown(now), "11:06");
        now.zone = |_| FixedOffset::east_opt(5 * 3_600 + 1_800).expect("a zone");
        assert_eq!(shown(now), "16:36");
        assert_eq!(now.local(wall), wall, "the same moment");
    }

    #[test]
    fn a_moment_before_or_behind_a_change_of_the_clocks_has_the_time_that_was_shown_then() {
        // Lord Howe Island puts its clocks back by half an hour.
        const CHANGE: i64 = 1_775_314_800;
        let now = |seconds| At {
            since_start: Duration::ZERO,
            asleep: Duration::ZERO,
            wall: DateTime::from_timestamp(CHANGE + seconds, 0).expect("a moment"),
            zone: |at| {
                let offset = if at.timestamp() < CHANGE {
                    11 * 3_600
                } else {
                    10 * 3_600 + 1_800
                };
                FixedOffset::east_opt(offset).expect("a zone")
            },
        };
        let (before, after) = (now(-60), now(60));
        for seen_at in [before, after] {
            let shown = |one: At| seen_at.local(one.wall).format("%H:%M").to_string();
            assert_eq!([shown(before), shown(after)], ["01:59", "01:31"]);
        }
    }

    #[test]
    fn the_time_asleep_is_part_of_the_whole_time_only() {
        let at = |awake, asleep, wall| At {
            since_start: Duration::from_secs(awake),
            asleep: Duration::from_secs(asleep),
            wall: DateTime::from_timestamp(wall, 0).expect("a moment"),
            zone: UTC,
        };
        // The wall clock was set back meanwhile.
        let (began, ended) = (at(10, 5, 9_000), at(70, 3_605, 60));
        assert_eq!(ended.since(began).as_secs(), 60);
        assert_eq!(ended.whole_time_since(began).as_secs(), 3_660);
        assert_eq!(began.whole_time_since(ended).as_secs(), 0);
    }

    #[test]
    fn a_time_has_its_day_where_that_is_not_today() {
        let at =
            |seconds: i64| DateTime::from_timestamp(1_795_000_000 + seconds, 0).expect("a moment");
        let mut now = At {
            since_start: Duration::ZERO,
            asleep: Duration::ZERO,
            wall: at(0),
            zone: UTC,
        };
        // It is 11:06:40 on a Wednesday.
        for (seconds, shown) in [
            (0, "11:06"),
            (12 * 3_600, "23:06"),
            (13 * 3_600, "Thu 00:06"),
            (5 * 86_400, "Mon 11:06"),
            (-12 * 3_600, "Tue 23:06"),
        ] {
            assert_eq!(now.time_of_day(at(seconds), "%H:%M"), shown);
        }
        // In this zone it is tomorrow already.
        now.zone = |_| FixedOffset::east_opt(13 * 3_600).expect("a zone");
        assert_eq!(now.time_of_day(at(12 * 3_600), "%H:%M:%S"), "12:06:40");
        assert_eq!(now.time_of_day(at(-3_600), "%H:%M:%S"), "Wed 23:06:40");
    }
}
