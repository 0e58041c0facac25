//! The growth per turn, the turns left, and the condition for turns to be a unit.
//!
//! A turn may read one file or fifty, so a mean is worthless: growth is the median over the last turns and its spread the quartiles.
//! Turns in which the client compacted, or the figure fell by much, tell nothing about growth and are left out.
//! If the newest turn has grown so much that several more of its kind do not fit, turns are not the unit: see [`super::pace`].

use std::{collections::VecDeque, ops::RangeInclusive};

use pitstop_base::recent;
use pitstop_transcript::Tokens;

/// The number of turns kept for the chart.
const HISTORY: usize = 128;

/// The number of turns from which the growth is taken: enough for a median, few enough to follow a change of work.
const RECENT: usize = 12;

/// The share, in percent, above which a fall between two figures may be a compaction.
const FALL: u64 = 30;

/// The number of turns that must fit before the line for turns to be the unit: with fewer the next one may well reach it.
const SEVERAL: u32 = 3;

/// The most turns that are worth counting.
const MANY_TURNS: u32 = 999;

/// The history of the context window, turn by turn.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Forecast {
    turns: VecDeque<Turn>,
    base: Option<Tokens>,
    /// The figure with which the newest turn began, or the remaining figure when it fell.
    newest_from: Tokens,
    resumed: bool,
    /// True if a compaction was reported and no figure has come since.
    compacting: bool,
}

/// The last figure of one turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Turn {
    /// The turn's number in its iteration.
    pub number: u64,
    /// The number of tokens in the context window at its end, or now if it still runs.
    pub used: Tokens,
    /// True if the client compacted within it, or the figure fell by much: such a turn shows nothing about growth.
    pub fell: bool,
}

/// The number of tokens that a turn adds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Growth {
    /// The median: half of the last turns added less.
    pub median: Tokens,
    /// The lower quartile: a quarter of the last turns added less.
    pub low: Tokens,
    /// The upper quartile: a quarter of the last turns added more.
    pub high: Tokens,
}

impl Forecast {
    /// Takes a figure of turn `number`; returns whether it fell so far that the client may have compacted.
    pub fn observe(&mut self, number: u64, used: Tokens) -> bool {
        self.base.get_or_insert(used);
        let compacted = std::mem::take(&mut self.compacting);
        let last = self.turns.back_mut();
        let (before, is_new) = match &last {
            Some(last) => (last.used, number > last.number),
            None => (used, true),
        };
        // The arithmetic is wide because a figure from outside may have any value.
        let fell = u128::from(used.0) * 100 < u128::from(before.0) * u128::from(100 - FALL);
        let is_break = fell || compacted;
        if is_break {
            self.newest_from = used;
        } else if is_new {
            self.newest_from = before;
        }
        if let Some(last) = last.filter(|_| !is_new) {
            last.used = used;
            last.fell |= is_break;
        } else {
            let turn = Turn {
                number,
                used,
                fell: is_break,
            };
            recent::push(&mut self.turns, turn, HISTORY);
        }
        fell
    }

    /// Notes that the client has compacted: the next figure may have fallen by less than is detected without this note.
    pub const fn note_compaction(&mut self) {
        self.compacting = true;
    }

    /// Notes that the session is resumed: its first figure is not the base load.
    pub const fn note_resume(&mut self) {
        self.resumed = true;
    }

    /// Returns the turns, oldest first, for the chart.
    pub fn turns(&self) -> impl ExactSizeIterator<Item = Turn> + '_ {
        self.turns.iter().copied()
    }

    /// Returns the first figure of the iteration: the load of a fresh session before any work. A resumed session reports
    /// nothing about that.
    pub const fn base(&self) -> Option<Tokens> {
        if self.resumed { None } else { self.base }
    }

    /// Returns the growth per turn; `None` before three turns, because two points fit any line.
    pub fn growth(&self) -> Option<Growth> {
        let pairs = self.turns.iter().zip(self.turns.iter().skip(1));
        let grown = pairs
            .filter(|(_, later)| !later.fell)
            .map(|(earlier, later)| {
                // The growth includes turns in between that failed or whose figure was missed.
                let turns = later.number.saturating_sub(earlier.number).max(1);
                later.used.0.saturating_sub(earlier.used.0) / turns
            });
        let mut last: Vec<u64> = grown.rev().take(RECENT).collect();
        if last.len() < 2 {
            return None;
        }
        last.sort_unstable();
        let quantile = |share: usize| {
            // A quantile between two turns is interpolated.
            let scaled = (last.len() - 1) * share;
            let (index, quarters) = (scaled / 4, (scaled % 4) as u64);
            let step = last[(index + 1).min(last.len() - 1)] - last[index];
            Tokens(last[index] + step / 4 * quarters + step % 4 * quarters / 4)
        };
        Some(Growth {
            median: quantile(2),
            low: quantile(1),
            high: quantile(3),
        })
    }

    /// Returns the range of turns left before `used` reaches `line`; `None` if growth is unknown or nil.
    pub fn turns_left(&self, used: Tokens, line: Tokens) -> Option<RangeInclusive<u32>> {
        let growth = self.growth().filter(|growth| growth.high.0 > 0)?;
        let left = line.0.saturating_sub(used.0);
        let turns = |step: u64| left.div_ceil(step.max(1)).min(u64::from(MANY_TURNS)) as u32;
        // A quarter of turns without growth would make the range endless, so it is at most four times that of the median.
        let slow = growth
            .low
            .0
            .max(growth.median.0 / 4)
            .max(growth.high.0 / 16);
        Some(turns(growth.high.0)..=turns(slow))
    }

    /// Returns the same range if several turns fit, also of the newest's size, whether that runs or has ended; else turns
    /// are not the unit in which to count.
    pub fn several_turns_left(&self, used: Tokens, line: Tokens) -> Option<RangeInclusive<u32>> {
        let newest = self.turns.back()?.used.0.saturating_sub(self.newest_from.0);
        let left = u128::from(line.0.saturating_sub(used.0));
        let fit = u128::from(newest) * u128::from(SEVERAL) <= left;
        self.turns_left(used, line)
            .filter(|turns| fit && *turns.start() >= SEVERAL)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn after(figures: &[u64]) -> Forecast {
        let mut forecast = Forecast::default();
        for (number, used) in figures.iter().enumerate() {
            forecast.observe(number as u64, Tokens(*used));
        }
        forecast
    }

    #[test]
    fn growth_is_the_median_and_one_huge_turn_does_not_move_it() {
        let steady = after(&[20_000, 24_000, 28_000, 32_000, 92_000, 96_000]).growth();
        assert_eq!(
            steady,
            Some(Growth {
                median: Tokens(4_000),
                low: Tokens(4_000),
                high: Tokens(4_000)
            })
        );
        let spread = after(&[0, 1_000, 3_000, 6_000, 10_000, 15_000]).growth();
        assert_eq!(
            spread,
            Some(Growth {
                median: Tokens(3_000),
                low: Tokens(2_000),
                high: Tokens(4_000)
            })
        );
    }

    #[test]
    fn fewer_than_three_turns_show_no_growth() {
        for figures in [&[][..], &[1_000], &[1_000, 2_000]] {
            assert_eq!(after(figures).growth(), None);
        }
    }

    #[test]
    fn a_turn_counts_by_its_last_figure() {
        let mut forecast = after(&[10_000, 12_000]);
        for used in [13_000, 16_000, 14_000] {
            assert!(!forecast.observe(2, Tokens(used)));
        }
        assert_eq!(
            forecast.turns().map(|turn| turn.used.0).collect::<Vec<_>>(),
            [10_000, 12_000, 14_000]
        );
        assert_eq!(
            forecast.growth().map(|growth| growth.median),
            Some(Tokens(2_000))
        );
        assert_eq!(forecast.base(), Some(Tokens(10_000)));
    }

    #[test]
    fn a_fall_over_30_percent_is_noticed_and_no_growth() {
        let forecast = after(&[100_000, 104_000, 72_801, 30_000, 34_000, 38_000]);
        assert_eq!(
            forecast.turns().map(|turn| turn.fell).collect::<Vec<_>>(),
            [false, false, false, true, false, false]
        );
        let mut within = after(&[100_000]);
        assert!(within.observe(0, Tokens(20_000)));
        assert!(!within.observe(0, Tokens(21_000)));
    }

    #[test]
    fn turns_left_are_a_range() {
        let forecast = after(&[0, 3_000, 6_000, 10_000, 14_000, 19_000]);
        assert_eq!(
            forecast.turns_left(Tokens(128_400), Tokens(153_000)),
            Some(7..=9)
        );
        assert_eq!(
            forecast.turns_left(Tokens(160_000), Tokens(153_000)),
            Some(0..=0)
        );
        assert_eq!(
            after(&[5, 5, 5, 5]).turns_left(Tokens(5), Tokens(100)),
            None
        );
        assert_eq!(
            after(&[0, 1, 2, 3]).turns_left(Tokens(3), Tokens(1_000_000)),
            Some(999..=999)
        );
    }

    #[test]
    fn turns_are_no_unit_where_the_newest_is_of_another_kind() {
        let mut forecast = after(&[20_000, 24_000, 28_000, 32_000, 36_000]);
        let line = Tokens(153_000);
        let several = |forecast: &Forecast| {
            let used = forecast.turns().last().map_or(Tokens(0), |turn| turn.used);
            forecast.several_turns_left(used, line)
        };
        assert_eq!(several(&forecast), Some(30..=30));
        // One long turn: as many tokens again fit thrice, then not any more.
        forecast.observe(5, Tokens(60_000));
        assert!(several(&forecast).is_some());
        forecast.observe(5, Tokens(70_000));
        assert_eq!(several(&forecast), None);
        assert!(forecast.turns_left(Tokens(70_000), line).is_some());
        // After it short ones again.
        forecast.observe(6, Tokens(74_000));
        assert!(several(&forecast).is_some());
        // Two short ones left are not several.
        forecast.observe(7, Tokens(146_000));
        forecast.observe(8, Tokens(147_000));
        assert_eq!(several(&forecast), None);
    }

    #[test]
    fn a_turn_that_fell_has_grown_from_there() {
        let mut forecast = after(&[20_000, 24_000, 28_000, 32_000, 140_000]);
        let left =
            |forecast: &Forecast, used| forecast.several_turns_left(Tokens(used), Tokens(153_000));
        assert_eq!(left(&forecast, 140_000), None);
        forecast.observe(4, Tokens(20_000));
        forecast.observe(4, Tokens(24_000));
        assert!(left(&forecast, 24_000).is_some());
    }

    #[test]
    fn the_history_is_bounded() {
        let figures: Vec<u64> = (0..1000).collect();
        assert_eq!(after(&figures).turns().len(), HISTORY);
    }

    #[test]
    fn a_compaction_that_fell_by_little_is_no_growth_either() {
        let mut forecast = after(&[100_000, 104_000, 108_000]);
        forecast.note_compaction();
        assert!(
            !forecast.observe(3, Tokens(90_000)),
            "a fall of less than 30 %"
        );
        forecast.observe(4, Tokens(94_000));
        let fell: Vec<bool> = forecast.turns().map(|turn| turn.fell).collect();
        assert_eq!(fell, [false, false, false, true, false]);
        let growth = forecast.growth().unwrap();
        assert_eq!((growth.low, growth.high), (Tokens(4_000), Tokens(4_000)));
    }

    #[test]
    fn a_turn_that_ends_lower_without_a_compaction_has_not_grown() {
        let growth = after(&[50_000, 45_000, 49_000, 44_000, 48_000]).growth();
        assert_eq!(growth.map(|growth| growth.low), Some(Tokens(0)));
    }

    #[test]
    fn turns_without_a_figure_share_the_growth() {
        let mut forecast = Forecast::default();
        for (number, used) in [(0, 10_000), (1, 14_000), (5, 30_000), (6, 34_000)] {
            forecast.observe(number, Tokens(used));
        }
        let growth = forecast.growth().unwrap();
        assert_eq!(
            (growth.low, growth.median, growth.high),
            (Tokens(4_000), Tokens(4_000), Tokens(4_000))
        );
    }

    #[test]
    fn a_resumed_session_shows_no_base_load() {
        let mut forecast = after(&[150_000]);
        assert_eq!(forecast.base(), Some(Tokens(150_000)));
        forecast.note_resume();
        assert_eq!(forecast.base(), None);
    }

    proptest! {
        #[test]
        fn hostile_figures_give_an_ordered_range_within_what_was_seen(
            seen in proptest::collection::vec((any::<u64>(), prop_oneof![any::<u64>(), 0..200_000_u64], any::<bool>()), 0..200),
            line in any::<u64>(),
        ) {
            let mut forecast = Forecast::default();
            for (number, used, compacted) in &seen {
                if *compacted {
                    forecast.note_compaction();
                }
                forecast.observe(*number, Tokens(*used));
            }
            prop_assert!(forecast.turns().len() <= HISTORY);
            let numbers: Vec<u64> = forecast.turns().map(|turn| turn.number).collect();
            prop_assert!(numbers.is_sorted());
            let most = seen.iter().map(|(_, used, _)| *used).max().unwrap_or(0);
            if let Some(growth) = forecast.growth() {
                prop_assert!(growth.low <= growth.median && growth.median <= growth.high);
                prop_assert!(growth.high.0 <= most);
            }
            let used = Tokens(seen.last().map_or(0, |(_, used, _)| *used));
            if let Some(left) = forecast.turns_left(used, Tokens(line)) {
                prop_assert!(left.start() <= left.end() && *left.end() <= MANY_TURNS);
                prop_assert_eq!(used.0 >= line, *left.end() == 0);
            }
            if let Some(left) = forecast.several_turns_left(used, Tokens(line)) {
                prop_assert!(*left.start() >= SEVERAL);
            }
        }

        #[test]
        fn one_wild_turn_among_ten_steady_ones_moves_nothing(
            step in 1_u64..20_000, wild in any::<u32>(), place in 1_usize..9,
        ) {
            let mut used = 20_000;
            let mut forecast = Forecast::default();
            for number in 0..11 {
                forecast.observe(number as u64, Tokens(used));
                used += if number == place { u64::from(wild) } else { step };
            }
            let growth = forecast.growth().expect("ten steps");
            prop_assert_eq!((growth.low, growth.median, growth.high), (Tokens(step), Tokens(step), Tokens(step)));
        }

        #[test]
        fn a_compaction_anywhere_changes_nothing_of_the_growth(step in 1_000_u64..10_000, place in 3_u64..10) {
            let mut used = 100_000;
            let mut forecast = Forecast::default();
            for number in 0..12 {
                used = if number == place { 30_000 } else { used + step };
                let fell = forecast.observe(number, Tokens(used));
                prop_assert_eq!(fell, number == place);
            }
            let growth = forecast.growth().expect("many steps");
            prop_assert_eq!((growth.low, growth.high), (Tokens(step), Tokens(step)));
        }

        #[test]
        fn the_range_holds_the_turns_that_a_steady_session_takes(step in 500_u64..9_000, left in 1_u64..150_000) {
            let forecast = after(&[10_000, 10_000 + step, 10_000 + 2 * step, 10_000 + 3 * step]);
            let used = 10_000 + 3 * step;
            let range = forecast.turns_left(Tokens(used), Tokens(used + left)).expect("it grows");
            let truth = u32::try_from(left.div_ceil(step)).unwrap().min(MANY_TURNS);
            prop_assert_eq!(range, truth..=truth);
        }
        #[test]
        fn any_figures_give_an_ordered_range(figures in proptest::collection::vec(any::<u64>(), 0..40), line in any::<u64>()) {
            let forecast = after(&figures);
            let used = figures.last().copied().unwrap_or(0);
            if let Some(growth) = forecast.growth() {
                prop_assert!(growth.low <= growth.median && growth.median <= growth.high);
            }
            if let Some(left) = forecast.turns_left(Tokens(used), Tokens(line)) {
                prop_assert!(left.start() <= left.end());
            }
        }
    }
}
