//! The growth of the context window while the agent works: per minute of work and per tool call.
//!
//! A real session is two to four turns, one of which makes a hundred tool calls, so growth per turn shows nothing within it. The
//! figures cut the work into steps instead, and the last steps show how fast it grows:
//!
//! ```text
//!   figure ──── worked, tool calls ────▶ figure ── … ──▶ figure        a fall starts over
//!         └──────────── one step ───────────┘
//!   growth of the last steps, without the excess of the largest  ÷  their minutes, their tool calls
//! ```
//!
//! Only time in which the agent works counts: a lunch break between two turns is not slow growth. The few large steps are the
//! files that were read: without their excess, the time left in the long sessions of five real transcripts is predicted within a
//! factor of 1.6 at half of all figures; by a plain sum within 1.8, by the median step, which nearly ignores them, within 2.2.

use std::{collections::VecDeque, time::Duration};

use pitstop_base::recent;
use pitstop_transcript::Tokens;

/// The number of steps from which the pace is taken. Fewer follow a change of work faster and mislead more often: with 48 the
/// mean error over the real sessions is the least.
const WINDOW: usize = 48;

/// The fewest steps from which a rate is given, because two or three fit any line.
const FEWEST: usize = 5;

/// The least work from which minutes are given: a few seconds show only the speed of one answer.
const SHORTEST: Duration = Duration::from_secs(60);

/// The least work that makes a step where no tool has run: figures that follow each other within seconds are one event.
const ONE_EVENT: Duration = Duration::from_secs(10);

/// The most work that counts for one step: beyond that the agent waits for a build or for the service, or the machine slept.
const LONGEST: Duration = Duration::from_secs(600);

/// The share, in percent, above which a fall between two figures is not a rounding: part of the conversation was taken out.
const TAKEN_OUT: u128 = 5;

/// The pace at which the context window fills while the agent works.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Pace {
    steps: VecDeque<Step>,
    /// The figure at which the open step began.
    base: Option<Tokens>,
    /// The last figure.
    last: Option<Tokens>,
    /// The work since the open step began; `calls` are the tool calls since then.
    worked: Duration,
    calls: u32,
    /// The monotonic time up to which work is counted; `None` while the agent does not work.
    counted_to: Option<Duration>,
}

/// The work between two figures.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Step {
    worked: Duration,
    calls: u32,
    /// The rise of the figure, in tokens; negative where the client has counted a little less.
    growth: i128,
}

/// The growth over a number of steps, with their work and tool calls.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rate {
    /// The number of tokens added, without the excess of the largest steps; more than 0.
    grown: u128,
    /// The work, in milliseconds.
    worked: u128,
    /// The number of tool calls.
    calls: u128,
}

impl Pace {
    /// Counts the work up to `now`, in monotonic time, and notes whether the agent works from here on.
    pub fn note_work(&mut self, now: Duration, works: bool) {
        self.count_to(now);
        self.counted_to = works.then_some(now);
    }

    /// Counts a tool call of the main conversation that has ended.
    pub const fn note_call(&mut self) {
        self.calls = self.calls.saturating_add(1);
    }

    /// Takes the figure at `now`.
    pub fn observe(&mut self, now: Duration, used: Tokens) {
        self.count_to(now);
        let Some((base, last)) = self.base.zip(self.last) else {
            return self.begin_at(used);
        };
        // The arithmetic is wide because a figure from outside may have any value.
        if u128::from(used.0) * 100 < u128::from(last.0) * (100 - TAKEN_OUT) {
            self.steps.clear();
            return self.begin_at(used);
        }
        self.last = Some(used);
        if used == last || (self.calls == 0 && self.worked < ONE_EVENT) {
            return;
        }
        let step = Step {
            worked: self.worked,
            calls: self.calls,
            growth: i128::from(used.0) - i128::from(base.0),
        };
        recent::push(&mut self.steps, step, WINDOW);
        self.begin_at(used);
    }

    /// Takes a figure of another source than before: the step to it would be a difference between the two, not growth.
    pub fn change_source(&mut self, now: Duration, used: Tokens) {
        self.count_to(now);
        self.begin_at(used);
    }

    /// Forgets all growth, because the client has compacted.
    pub fn begin_anew(&mut self) {
        *self = Self {
            counted_to: self.counted_to,
            ..Self::default()
        };
    }

    /// Returns the rate at which the window fills; `None` while too little is known or nothing grows.
    pub fn rate(&self) -> Option<Rate> {
        if self.steps.len() < FEWEST {
            return None;
        }
        let mut growth: Vec<i128> = self.steps.iter().map(|step| step.growth).collect();
        growth.sort_unstable();
        // The largest tenth, and the largest step at least, count as much as the next one below.
        let largest = growth.len() - (growth.len() / 10).max(1);
        let most = growth[largest - 1];
        let grown: i128 = growth.iter().map(|one| (*one).min(most)).sum();
        let grown = u128::try_from(grown).ok().filter(|grown| *grown > 0)?;
        let steps = self.steps.iter();
        Some(Rate {
            grown,
            worked: steps.clone().map(|step| step.worked.as_millis()).sum(),
            calls: steps.map(|step| u128::from(step.calls)).sum(),
        })
    }

    fn begin_at(&mut self, used: Tokens) {
        self.base = Some(used);
        self.last = Some(used);
        self.worked = Duration::ZERO;
        self.calls = 0;
    }

    fn count_to(&mut self, now: Duration) {
        if let Some(counted_to) = &mut self.counted_to {
            let passed = now.saturating_sub(*counted_to);
            *counted_to = now.max(*counted_to);
            self.worked = self.worked.saturating_add(passed).min(LONGEST);
        }
    }
}

impl Rate {
    /// Returns the growth per minute of work; `None` where too little work was seen.
    pub fn per_minute(&self) -> Option<Tokens> {
        let worked = self.known_work()?;
        Some(rounded(self.grown * 60_000 / worked))
    }

    /// Returns the growth per tool call; `None` where too few calls were seen.
    pub fn per_call(&self) -> Option<Tokens> {
        Some(rounded(self.grown / self.known_calls()?))
    }

    /// Returns the number of minutes of work that add `left` tokens.
    pub fn minutes_for(&self, left: Tokens) -> Option<u32> {
        let minutes = u128::from(left.0) * self.known_work()? / self.grown / 60_000;
        Some(u32::try_from(minutes).unwrap_or(u32::MAX))
    }

    /// Returns the number of tool calls that add `left` tokens.
    pub fn calls_for(&self, left: Tokens) -> Option<u32> {
        let calls = u128::from(left.0) * self.known_calls()? / self.grown;
        Some(u32::try_from(calls).unwrap_or(u32::MAX))
    }

    fn known_work(&self) -> Option<u128> {
        (self.worked >= SHORTEST.as_millis()).then_some(self.worked)
    }

    fn known_calls(&self) -> Option<u128> {
        (self.calls >= FEWEST as u128).then_some(self.calls)
    }
}

fn rounded(tokens: u128) -> Tokens {
    Tokens(u64::try_from(tokens).unwrap_or(u64::MAX))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn seconds(count: u64) -> Duration {
        Duration::from_secs(count)
    }

    /// Simulates an agent that makes a call of each growth every ten seconds, from the start and 20 000 tokens on.
    fn working(growths: &[u64]) -> (Pace, Duration, u64) {
        let mut pace = Pace::default();
        let (mut now, mut used) = (Duration::ZERO, 20_000);
        pace.note_work(now, true);
        pace.observe(now, Tokens(used));
        for growth in growths {
            (now, used) = (now + seconds(10), used + growth);
            pace.note_call();
            pace.observe(now, Tokens(used));
        }
        (pace, now, used)
    }

    /// Returns the growth per minute and per call.
    fn grows(pace: &Pace) -> (Option<u64>, Option<u64>) {
        let rate = pace.rate();
        let tokens = |found: Option<Tokens>| found.map(|tokens| tokens.0);
        (
            tokens(rate.and_then(|rate| rate.per_minute())),
            tokens(rate.and_then(|rate| rate.per_call())),
        )
    }

    #[test]
    fn steady_calls_within_one_turn_say_minutes_and_calls() {
        let (pace, ..) = working(&[1_000; 100]);
        let rate = pace.rate().expect("it grows");
        assert_eq!(grows(&pace), (Some(6_000), Some(1_000)));
        assert_eq!(rate.minutes_for(Tokens(72_000)), Some(12));
        assert_eq!(rate.calls_for(Tokens(72_000)), Some(72));
        assert_eq!(
            (rate.minutes_for(Tokens(0)), rate.calls_for(Tokens(0))),
            (Some(0), Some(0))
        );
    }

    #[test]
    fn a_few_steps_or_seconds_say_nothing() {
        assert_eq!(working(&[1_000; 4]).0.rate(), None);
        // Fifty seconds of work: the calls are known, the minutes are not.
        assert_eq!(grows(&working(&[1_000; 5]).0), (None, Some(1_000)));
        assert_eq!(grows(&working(&[1_000; 6]).0), (Some(6_000), Some(1_000)));
        let mut fast = Pace::default();
        fast.note_work(Duration::ZERO, true);
        for used in 0..200 {
            fast.observe(Duration::from_millis(used * 10), Tokens(used * 500));
        }
        assert_eq!(fast.rate(), None, "two seconds of figures are no step");
    }

    #[test]
    fn time_in_which_nobody_works_counts_for_nothing() {
        let (mut pace, mut now, mut used) = working(&[1_000; 10]);
        let before = grows(&pace);
        for _ in 0..10 {
            pace.note_work(now, false);
            now += seconds(4 * 3_600);
            // Figures that are said again while idle change nothing either.
            pace.observe(now, Tokens(used));
            pace.note_work(now, true);
            (now, used) = (now + seconds(10), used + 1_000);
            pace.note_call();
            pace.observe(now, Tokens(used));
        }
        assert_eq!(grows(&pace), before);
    }

    #[test]
    fn an_hour_within_one_step_is_a_wait_and_counts_for_ten_minutes() {
        let (mut pace, now, used) = working(&[1_000; 40]);
        pace.note_call();
        pace.observe(now + seconds(3_600), Tokens(used + 1_000));
        // 41 calls in 400 s of steady work and 600 s of waiting.
        assert_eq!(grows(&pace), (Some(2_460), Some(1_000)));
    }

    #[test]
    fn a_fall_and_a_compaction_begin_anew() {
        let (mut pace, now, used) = working(&[1_000; 20]);
        pace.observe(now + seconds(5), Tokens(used - used / 100));
        assert!(pace.rate().is_some(), "a little less is a rounding");
        let mut fallen = pace.clone();
        fallen.observe(now + seconds(10), Tokens(used / 2));
        assert_eq!(fallen.rate(), None);
        pace.begin_anew();
        assert_eq!(pace.rate(), None);
        // It goes on to work and grows twice as fast: nothing of before is in it.
        for call in 1..=6 {
            let at = now + seconds(10 * call);
            pace.note_call();
            pace.observe(at, Tokens(20_000 + 2_000 * call));
        }
        assert_eq!(grows(&pace).1, Some(2_000));
    }

    #[test]
    fn another_source_is_no_growth() {
        let (mut pace, now, used) = working(&[1_000; 10]);
        let before = grows(&pace);
        pace.change_source(now, Tokens(used + 9_000));
        assert_eq!(grows(&pace), before);
        pace.note_call();
        pace.observe(now + seconds(10), Tokens(used + 10_000));
        assert_eq!(grows(&pace), before);
    }

    #[test]
    fn calls_without_work_that_is_known_say_calls_alone() {
        let mut pace = Pace::default();
        for call in 0..10 {
            pace.note_call();
            pace.observe(seconds(10 * call), Tokens(20_000 + 1_000 * call));
        }
        assert_eq!(grows(&pace), (None, Some(1_000)));
    }

    #[derive(Clone, Debug)]
    enum Said {
        Work(bool),
        Call,
        Figure(u64),
        OtherSource(u64),
        Anew,
    }

    fn said() -> impl Strategy<Value = Said> {
        let figure = || prop_oneof![any::<u64>(), 0..300_000_u64];
        prop_oneof![
            any::<bool>().prop_map(Said::Work),
            Just(Said::Call),
            figure().prop_map(Said::Figure),
            figure().prop_map(Said::Figure),
            figure().prop_map(Said::OtherSource),
            Just(Said::Anew),
        ]
    }

    proptest! {
        #[test]
        fn hostile_figures_and_times_are_bounded_and_never_a_panic(
            events in proptest::collection::vec((prop_oneof![any::<u64>(), 0..10_000_u64], said()), 0..300),
            left in any::<u64>(),
        ) {
            let mut pace = Pace::default();
            for (at, event) in events {
                // Time goes back and forth, to the end of what can be told.
                let at = Duration::from_millis(at);
                match event {
                    Said::Work(works) => pace.note_work(at, works),
                    Said::Call => pace.note_call(),
                    Said::Figure(used) => pace.observe(at, Tokens(used)),
                    Said::OtherSource(used) => pace.change_source(at, Tokens(used)),
                    Said::Anew => pace.begin_anew(),
                }
                prop_assert!(pace.steps.len() <= WINDOW && pace.worked <= LONGEST);
                if let Some(rate) = pace.rate() {
                    prop_assert_eq!(rate.per_minute().is_some(), rate.minutes_for(Tokens(left)).is_some());
                    prop_assert_eq!(rate.per_call().is_some(), rate.calls_for(Tokens(left)).is_some());
                }
            }
        }

        #[test]
        fn breaks_of_any_length_change_nothing(breaks in proptest::collection::vec(0..1_000_000_u64, 30)) {
            let mut pace = Pace::default();
            let mut now = Duration::ZERO;
            for (call, pause) in (0..).zip(breaks) {
                pace.note_work(now, true);
                now += seconds(10);
                pace.note_call();
                pace.observe(now, Tokens(20_000 + 1_000 * call));
                pace.note_work(now, false);
                now += seconds(pause);
            }
            prop_assert_eq!(grows(&pace), (Some(6_000), Some(1_000)));
        }

        #[test]
        fn one_wild_step_among_steady_ones_moves_nothing(step in 1_u64..20_000, wild in any::<u32>(), place in 0_usize..20) {
            let mut growths = [step; 20];
            growths[place] = step + u64::from(wild);
            prop_assert_eq!(grows(&working(&growths).0), (Some(step * 6), Some(step)));
        }
    }
}
