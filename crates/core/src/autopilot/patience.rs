//! Patience: how long to wait when the service fails or a usage limit holds, and when a limit ends.
//!
//! ```text
//! service fails   5 s · 10 s · 20 s … 5 min, then the breaker
//! usage limit     until its reset time and a little more; unknown: 1 · 2 · 4 … 30 min
//! agent dies      1 s · 5 s · 30 s, then the breaker
//! ```

use std::time::Duration;

use chrono::{DateTime, TimeDelta, Utc};
use jiff::{
    Timestamp,
    civil::{self, Date, Time},
    tz::TimeZone,
};

/// The first and the longest wait after a failure of the service. The client has tried again by itself before it gives a
/// turn up, so it is no hurry.
const SERVICE: (Duration, Duration) = (Duration::from_secs(5), Duration::from_mins(5));

/// The first and the longest wait at a usage limit whose end is not known.
const LIMIT: (Duration, Duration) = (Duration::from_mins(1), Duration::from_mins(30));

/// Clocks differ: a limit is given this long beyond its reset.
pub(super) const AFTER_RESET: Duration = Duration::from_secs(15);

/// A reset further away than this is not believed: the longest limit there is lasts a week.
const LONGEST: TimeDelta = TimeDelta::days(8);

/// The number of failed turns in a row that are no passing fault: with the waits between them that is some 25 minutes.
pub const MAX_FAILURES: u32 = 10;

/// The waits before an agent that died is started again; one death more and the breaker trips.
const DEATHS: [Duration; 3] = [
    Duration::from_secs(1),
    Duration::from_secs(5),
    Duration::from_secs(30),
];

/// The time for which a reset that has passed is still the one that is meant.
const PASSED: TimeDelta = TimeDelta::minutes(10);

/// The numbers of failures in a row, by kind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Patience {
    failures: u32,
    refusals: u32,
    limits: u32,
    deaths: u32,
}

/// A wait, and its end if that is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pause {
    /// The length of the wait.
    pub time: Duration,
    /// The reset it waits for.
    pub reset: Option<DateTime<Utc>>,
}

impl Patience {
    /// Forgives everything that failed: a turn has ended as it should.
    pub fn succeed(&mut self) {
        *self = Self::default();
    }

    /// Returns the number of turns that have failed in a row.
    pub const fn failures(&self) -> u32 {
        self.failures
    }

    /// Returns the number of deaths of the agent without a turn between them.
    pub const fn deaths(&self) -> u32 {
        self.deaths
    }

    /// Counts a turn that the service has failed, and returns the wait, or nothing when it has failed too often.
    pub fn service_failed(&mut self) -> Option<Pause> {
        self.failures += 1;
        let time = doubled(SERVICE, self.failures);
        (self.failures < MAX_FAILURES).then_some(Pause { time, reset: None })
    }

    /// Returns the wait for a usage limit that holds. It is no fault, so nothing is counted towards a breaker.
    pub fn limited(&mut self, reset: Option<DateTime<Utc>>, now: DateTime<Utc>) -> Pause {
        self.limits += 1;
        let left = reset.and_then(|reset| {
            let left = reset.signed_duration_since(now);
            (left < LONGEST).then_some(left.to_std().unwrap_or(Duration::ZERO))
        });
        match left {
            // A limit that still holds after its reset is waited for with growing patience.
            Some(left) if self.limits == 1 || left > AFTER_RESET => Pause {
                time: left + AFTER_RESET,
                reset,
            },
            _ => Pause {
                time: doubled(LIMIT, self.limits),
                reset: None,
            },
        }
    }

    /// Counts a turn whose conversation the service has refused, and returns the number of them.
    pub const fn refused(&mut self) -> u32 {
        self.refusals += 1;
        self.refusals
    }

    /// Counts a death of the agent, and returns the wait, or nothing when it has died too often.
    pub fn agent_died(&mut self) -> Option<Pause> {
        let time = DEATHS.get(self.deaths as usize).copied();
        self.deaths += 1;
        time.map(|time| Pause { time, reset: None })
    }
}

fn doubled((first, longest): (Duration, Duration), times: u32) -> Duration {
    let factor = 1_u32
        .checked_shl(times.saturating_sub(1))
        .unwrap_or(u32::MAX);
    first.saturating_mul(factor).min(longest)
}

/// Returns the end of a usage limit from the message about it: `…|1795000000`, an RFC 3339 time, `in 2 h 5 min`,
/// `resets 3pm (Europe/Berlin)`. A time of day without its zone is not used: the client may run in another zone than
/// Pitstop.
pub fn reset_in(message: &str, now: DateTime<Utc>) -> Option<DateTime<Utc>> {
    let found = epoch(message)
        .or_else(|| rfc3339(message))
        .or_else(|| after_a_while(message, now))
        .or_else(|| time_of_day(message, now))?;
    let left = found.signed_duration_since(now);
    (left > -PASSED && left < LONGEST).then_some(found)
}

fn epoch(message: &str) -> Option<DateTime<Utc>> {
    message
        .split('|')
        .skip(1)
        .find_map(|part| {
            let digits = part
                .trim_start()
                .split(|c: char| !c.is_ascii_digit())
                .next()?;
            (digits.len() == 10).then(|| digits.parse().ok())?
        })
        .and_then(|seconds| DateTime::from_timestamp(seconds, 0))
}

fn rfc3339(message: &str) -> Option<DateTime<Utc>> {
    message.split_whitespace().find_map(|word| {
        let word = word.trim_matches(|c: char| !c.is_ascii_alphanumeric());
        let time = DateTime::parse_from_rfc3339(word).ok()?;
        Some(time.with_timezone(&Utc))
    })
}

/// Reads `in 2 h 5 min` or `in 20 seconds`: pairs of a number and a unit behind the word.
fn after_a_while(message: &str, now: DateTime<Utc>) -> Option<DateTime<Utc>> {
    let lower = message.to_ascii_lowercase();
    let rest = lower.split_once(" in ")?.1;
    let mut words = rest
        .split_whitespace()
        .map(|word| word.trim_matches([',', '.', ')']));
    let mut total: Option<TimeDelta> = None;
    while let Some(word) = words.next() {
        let end = word
            .find(|c: char| !c.is_ascii_digit())
            .unwrap_or(word.len());
        let (digits, glued) = word.split_at(end);
        let Ok(count) = digits.parse::<i32>() else {
            break;
        };
        let unit = if glued.is_empty() {
            words.next()?
        } else {
            glued
        };
        let step = match unit.chars().next()? {
            's' => TimeDelta::seconds(count.into()),
            'm' => TimeDelta::minutes(count.into()),
            'h' => TimeDelta::hours(count.into()),
            'd' => TimeDelta::days(count.into()),
            _ => break,
        };
        total = Some(total.unwrap_or_default() + step);
    }
    now.checked_add_signed(total?)
}

/// Returns the next `3pm (Europe/Berlin)`, or `Nov 25, 3:30pm (UTC)`, `Jan 2, 2027, 9 AM (Asia/Tokyo)`, `15:00 UTC`: the
/// client gives the time of its own zone, and the date when that is more than a day away.
fn time_of_day(message: &str, now: DateTime<Utc>) -> Option<DateTime<Utc>> {
    let lower = message.to_ascii_lowercase();
    let behind = lower.find("reset")?;
    let zone = zone_in(&message[behind..])?;
    let words: Vec<&str> = lower[behind..]
        .split_whitespace()
        .map(|word| word.trim_matches(|c: char| !c.is_ascii_alphanumeric()))
        .collect();
    let now_there = Timestamp::from_second(now.timestamp()).ok()?;
    let today = now_there.to_zoned(zone.clone()).date();
    let time = words.iter().enumerate().find_map(|(at, word)| {
        // The half of the day may be a word by itself.
        let half = words
            .get(at + 1)
            .filter(|next| matches!(**next, "am" | "pm"));
        clock(&format!("{word}{}", half.unwrap_or(&"")))
    })?;
    if let Some(named) = month_in(&words) {
        return at_zone(&zone, date(named, today)?.to_datetime(time));
    }
    // The limit may hold on for a moment after its reset, over midnight too.
    let days = [today.yesterday().ok(), Some(today), today.tomorrow().ok()];
    let days = days.into_iter().flatten();
    let mut moments = days.filter_map(|day| at_zone(&zone, day.to_datetime(time)));
    moments.find(|at| *at > now - PASSED)
}

/// Returns the zone in brackets, or UTC by its name. Names are looked up in the table that is built in, not in files.
fn zone_in(text: &str) -> Option<TimeZone> {
    let bracketed = text
        .split('(')
        .skip(1)
        .find_map(|part| TimeZone::get(part.split(')').next()?.trim()).ok());
    let names_utc = || {
        let mut words = text.split(|c: char| !c.is_ascii_alphanumeric());
        words.any(|word| word.eq_ignore_ascii_case("utc"))
    };
    bracketed.or_else(|| names_utc().then_some(TimeZone::UTC))
}

/// Reads `nov 25`, or `jan 2 2027`: month, day and perhaps the year.
fn month_in(words: &[&str]) -> Option<(i8, u32, Option<i16>)> {
    const MONTHS: [&str; 12] = [
        "jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec",
    ];
    words.iter().enumerate().find_map(|(at, word)| {
        let month = (1..)
            .zip(MONTHS)
            .find(|(_, month)| word.get(..3) == Some(month))?;
        let day = words.get(at + 1)?.parse().ok()?;
        let year = words.get(at + 2).filter(|word| word.len() == 4);
        Some((month.0, day, year.and_then(|year| year.parse().ok())))
    })
}

/// Returns the date; without its year the next one, from yesterday on.
fn date((month, day, year): (i8, u32, Option<i16>), today: Date) -> Option<Date> {
    let day = day.try_into().ok()?;
    let in_year = |year| Date::new(year, month, day).ok();
    if let Some(year) = year {
        return in_year(year);
    }
    let yesterday = today.yesterday().ok()?;
    in_year(today.year())
        .filter(|date| *date >= yesterday)
        .or_else(|| in_year(today.year() + 1))
}

/// Returns the moment at which clocks in a zone show this: the first, where they are put back over it; where they are put
/// forward, the moment at which they would.
fn at_zone(zone: &TimeZone, shown: civil::DateTime) -> Option<DateTime<Utc>> {
    let found = zone.to_timestamp(shown).ok()?;
    DateTime::from_timestamp(found.as_second(), 0)
}

fn clock(word: &str) -> Option<Time> {
    let half = ["am", "pm"]
        .iter()
        .find_map(|half| Some((word.strip_suffix(half)?, *half)));
    let (digits, half) = half.unwrap_or((word, ""));
    let (hour, minute) = match digits.split_once(':') {
        Some((hour, minute)) => (hour, minute),
        None if !half.is_empty() => (digits, "0"),
        None => return None,
    };
    let (hour, minute): (i8, i8) = (hour.parse().ok()?, minute.parse().ok()?);
    let hour = match (half, hour) {
        ("am", 12) => 0,
        ("pm", 1..=11) => hour + 12,
        _ => hour,
    };
    Time::new(hour, minute, 0, 0).ok()
}

#[cfg(test)]
mod tests {
    use chrono::TimeZone as _;

    use super::*;

    fn now() -> DateTime<Utc> {
        Utc.with_ymd_and_hms(2026, 11, 21, 12, 0, 0).unwrap()
    }

    #[test]
    fn the_service_is_given_more_time_each_time_and_not_for_ever() {
        let mut patience = Patience::default();
        let waits: Vec<_> = std::iter::from_fn(|| patience.service_failed())
            .map(|pause| pause.time.as_secs())
            .collect();
        assert_eq!(waits, [5, 10, 20, 40, 80, 160, 300, 300, 300]);
        assert_eq!(patience.failures(), MAX_FAILURES);
        patience.succeed();
        assert_eq!(patience.service_failed().unwrap().time.as_secs(), 5);
    }

    #[test]
    fn a_usage_limit_is_waited_for_until_its_reset() {
        let mut patience = Patience::default();
        let reset = now() + TimeDelta::hours(2);
        let pause = patience.limited(Some(reset), now());
        assert_eq!(pause.time, Duration::from_secs(7_200) + AFTER_RESET);
        assert_eq!(pause.reset, Some(reset));
        // The same reset is reported again after it: the limit holds on.
        let pause = patience.limited(Some(reset), reset + TimeDelta::seconds(20));
        assert_eq!((pause.time, pause.reset), (Duration::from_mins(2), None));
    }

    #[test]
    fn a_limit_without_a_reset_is_asked_again_ever_less_often() {
        let mut patience = Patience::default();
        let waits: Vec<_> = (0..7)
            .map(|_| patience.limited(None, now()).time.as_secs() / 60)
            .collect();
        assert_eq!(waits, [1, 2, 4, 8, 16, 30, 30]);
        let far = now() + TimeDelta::days(400);
        assert_eq!(
            Patience::default().limited(Some(far), now()).reset,
            None,
            "no limit lasts that long"
        );
    }

    #[test]
    fn an_agent_that_keeps_dying_is_not_started_for_ever() {
        let mut patience = Patience::default();
        let waits: Vec<_> = std::iter::from_fn(|| patience.agent_died())
            .map(|pause| pause.time.as_secs())
            .collect();
        assert_eq!(waits, [1, 5, 30]);
        assert_eq!(patience.deaths(), 4);
    }

    #[test]
    fn the_message_about_a_limit_shows_its_end() {
        let at = |hour, minute| {
            now()
                .date_naive()
                .and_hms_opt(hour, minute, 0)
                .unwrap()
                .and_utc()
        };
        for (message, reset) in [
            ("Claude AI usage limit reached|1795264200", at(12, 30)),
            ("limit reached, resets at 2026-11-21T14:00:00Z.", at(14, 0)),
            ("5-hour limit reached ∙ resets 3pm (UTC)", at(15, 0)),
            ("limit reached, resets 3:30 pm UTC", at(15, 30)),
            ("resets at 15:45 UTC", at(15, 45)),
            ("resets 9am (UTC)", at(9, 0) + TimeDelta::days(1)),
            // As the client has it (2.1.197): of the day, with the date if it is further away, and with the year.
            (
                "You've hit your session limit · resets 3pm (Europe/Berlin)",
                at(14, 0),
            ),
            (
                "You've hit your limit · resets 5:30am (America/New_York)",
                at(10, 30) + TimeDelta::days(1),
            ),
            (
                "limit · resets Nov 25, 1\u{202f}PM (Asia/Kolkata)",
                at(7, 30) + TimeDelta::days(4),
            ),
            (
                "limit · resets Nov 25 at 12am (UTC)",
                at(0, 0) + TimeDelta::days(4),
            ),
            (
                "limit · resets Nov 22, 2026, 9am (Asia/Tokyo)",
                at(0, 0) + TimeDelta::days(1),
            ),
            ("try again in 2 h 5 min", at(14, 5)),
            ("Retry in 90 seconds.", at(12, 0) + TimeDelta::seconds(90)),
            ("resets in 45m", at(12, 45)),
        ] {
            assert_eq!(reset_in(message, now()), Some(reset), "{message}");
        }
    }

    #[test]
    fn a_message_that_shows_no_end_is_not_guessed_at() {
        for message in [
            "",
            "rate limited",
            "resets 3pm",
            "resets 3pm (Middle/Earth)",
            "resets Feb 30, 3pm (UTC)",
            "resets Nov 1, 2030, 1pm (UTC)",
            "resets (UTC)",
            "usage limit reached|17",
            "usage limit reached|1195264200",
            "resets at 2031-01-01T00:00:00Z",
            "in a while",
            "in 99999999999 h",
            "resets 25:00 UTC",
        ] {
            assert_eq!(reset_in(message, now()), None, "{message}");
        }
    }

    #[test]
    fn a_date_without_its_year_is_the_next_one_and_clocks_that_jump_do_no_harm() {
        let at = |text: &str| text.parse::<DateTime<Utc>>().unwrap();
        let new_year = at("2026-12-30T12:00:00Z");
        assert_eq!(
            reset_in("resets Jan 2, 9am (Europe/Berlin)", new_year),
            Some(at("2027-01-02T08:00:00Z"))
        );
        // On 29 March 2026 clocks in Berlin show no half past two.
        assert_eq!(
            reset_in("resets 2:30am (Europe/Berlin)", at("2026-03-28T22:00:00Z")),
            Some(at("2026-03-29T01:30:00Z"))
        );
    }

    proptest::proptest! {
        #[test]
        fn any_message_is_read_without_a_panic(message in "(resets|in|UTC|Nov|\\(|\\)|Europe/Berlin| |\\||:|pm|am|h|m|[0-9]|é){0,30}") {
            let _ = reset_in(&message, now());
        }
    }

    #[test]
    fn a_reset_that_has_just_passed_is_not_that_of_the_next_day() {
        let message = "You've hit your session limit · resets 12pm (UTC)";
        let (before, after) = (now() - TimeDelta::hours(1), now() + TimeDelta::seconds(20));
        let mut patience = Patience::default();
        patience.limited(reset_in(message, before), before);
        assert_eq!(reset_in(message, after), Some(now()));
        let pause = patience.limited(reset_in(message, after), after);
        assert_eq!((pause.time, pause.reset), (Duration::from_mins(2), None));
        let night = now() + TimeDelta::minutes(12 * 60 + 2);
        let evening = now() + TimeDelta::minutes(11 * 60 + 55);
        assert_eq!(reset_in("resets 11:55pm (UTC)", night), Some(evening));
    }
}
