//! Thresholds: where the levels begin in a window of known size.
//!
//! ```text
//!   0 %        notice 50       warn 70       compact 85       force 97   refusal        100 % of usable
//!   ├─ healthy ───┼── warning ────┼── critical ───┼──── overflow ───┼────────┼──────────────┤
//!                                 save            save and reboot   interrupt
//! ```
//!
//! They are shares of the *usable* window: of the whole one less the client's reserve. In the whole window a threshold
//! of 90 % would lie behind the point at which the client refuses prompts. Each may also have a cap in tokens, for users
//! who find that a model gets worse long before a large window is full; the lower of the two counts.

use pitstop_transcript::Tokens;

/// The level of the context window: the last threshold that was passed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, strum::IntoStaticStr)]
#[strum(serialize_all = "lowercase")]
pub enum Level {
    /// The figure is below the notice line.
    Healthy,
    /// The figure has reached the notice line.
    Warning,
    /// The figure has reached the warn line: it is worth saving.
    Critical,
    /// The figure has reached the compact line: it is time for a reboot.
    Overflow,
}

impl Level {
    /// Returns the word shown beside the colour.
    pub fn word(self) -> &'static str {
        self.into()
    }

    /// Returns the level's name for people: the last line passed.
    pub const fn label(self) -> &'static str {
        match self {
            Self::Healthy => "ok",
            Self::Warning => "notice",
            Self::Critical => "warn",
            Self::Overflow => "compact",
        }
    }
}

/// One of the four thresholds.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, strum::Display, strum::EnumString,
)]
#[strum(serialize_all = "lowercase")]
pub enum Threshold {
    /// The gauge changes its colour.
    Notice,
    /// A checkpoint is written and the handoff drafted.
    Warn,
    /// A reboot is advised.
    Compact,
    /// An unattended run interrupts the turn.
    Force,
}

impl Threshold {
    /// All four thresholds, in order.
    pub const ALL: [Self; 4] = [Self::Notice, Self::Warn, Self::Compact, Self::Force];
}

/// The four thresholds: rising shares of the usable window (force may lie at compact), each with an optional cap in tokens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Thresholds {
    shares: [u8; 4],
    caps: [Option<Tokens>; 4],
}

impl Default for Thresholds {
    fn default() -> Self {
        Self {
            shares: [50, 70, 85, 97],
            caps: [None; 4],
        }
    }
}

impl Thresholds {
    /// Creates thresholds from percents of the usable window and caps in tokens, both in the order of [`Threshold::ALL`]; the
    /// config module has checked that they rise.
    pub const fn new(shares: [u8; 4], caps: [Option<Tokens>; 4]) -> Self {
        Self { shares, caps }
    }

    /// Returns the positions of the thresholds in a given room.
    ///
    /// If the client itself acts before the compact line, or so soon behind it that one turn reaches both, the lines are
    /// lowered: each becomes the same share of the tokens up to that point.
    pub fn lines(&self, room: Room) -> Lines {
        let mut at = self.shares_of(room.usable, room.refusal);
        let client = room.client.filter(|client| client.0 > 0);
        let nearest = client.map(|client| Tokens(client.0 - margin(client)));
        let lowered = nearest.is_some_and(|nearest| at[Threshold::Compact as usize] > nearest);
        if let (true, Some(client), Some(nearest)) = (lowered, client, nearest) {
            let mut below = self.shares_of(client, client);
            let compact = below[Threshold::Compact as usize];
            if compact > nearest {
                // They keep their order and the proportion of their distances.
                for line in &mut below[..=Threshold::Compact as usize] {
                    line.0 = (u128::from(line.0) * u128::from(nearest.0)
                        / u128::from(compact.0.max(1))) as u64;
                }
            }
            for (line, below) in at.iter_mut().zip(below) {
                *line = below.min(*line);
            }
        }
        // A cap can put the compact line below that point by itself: the force line must lie below it, too.
        if let Some(client) = client.filter(|client| *client < at[Threshold::Force as usize]) {
            let force = self.shares_of(client, client)[Threshold::Force as usize];
            at[Threshold::Force as usize] = force.max(at[Threshold::Compact as usize]);
        }
        Lines {
            at,
            refusal: room.refusal,
            client,
            lowered,
        }
    }

    /// Returns the positions for the shares and caps of `whole` tokens, none of them above `end`.
    fn shares_of(&self, whole: Tokens, end: Tokens) -> [Tokens; 4] {
        // In a small window the force line would lie behind the refusal line, where it would be useless.
        let mut ceiling = end.max(Tokens(1));
        let mut at = [Tokens::default(); 4];
        // The order is from the top down, so that a cap on one line never leaves a lower one above it.
        for (slot, (share, cap)) in at.iter_mut().zip(self.shares.iter().zip(self.caps)).rev() {
            // Rounded up: the line is the first figure that is at least the share.
            let line = Tokens((whole.0.saturating_mul(u64::from(*share))).div_ceil(100));
            ceiling = line.min(cap.unwrap_or(line)).min(ceiling);
            *slot = ceiling;
        }
        at
    }
}

/// The distance from the end of the whole window at which the client begins to refuse prompts, in tokens (measured: from
/// 177 000 of 200 000 on, and from 977 000 of a million).
const REFUSAL_MARGIN: u64 = 23_000;

/// The least such distance from the end of the usable window, in tokens.
const LEAST_REFUSAL_MARGIN: u64 = 3_000;

/// The least distance of the compact line from the point at which the client itself acts, in tokens: a large turn.
const LEAST_MARGIN: u64 = 10_000;

/// Returns the least distance of the compact line below the point at which the client acts, in tokens. For a low point it is
/// a twentieth of that, so that the lines are not crowded.
const fn margin(client: Tokens) -> u64 {
    let share = client.0 / 20;
    if share < LEAST_MARGIN {
        share
    } else {
        LEAST_MARGIN
    }
}

/// The room in which the lines are placed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Room {
    /// The window less the reserve, in tokens.
    pub usable: Tokens,
    /// The number of tokens at which a client without auto-compaction refuses prompts.
    pub refusal: Tokens,
    /// The number of tokens at which the client itself acts, if that is known.
    pub client: Option<Tokens>,
}

impl Room {
    /// Creates the room of a window of this size with this usable part, in tokens.
    pub fn new(window: Tokens, usable: Tokens, client: Option<Tokens>) -> Self {
        Self {
            usable,
            // In a window so small that the reserve would be half of it, no line would be left below the measured point.
            refusal: Tokens(window.0.saturating_sub(REFUSAL_MARGIN))
                .max(Tokens(usable.0.saturating_sub(LEAST_REFUSAL_MARGIN))),
            client,
        }
    }
}

/// The positions of the thresholds in a window of known size; they never fall from one to the next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lines {
    at: [Tokens; 4],
    refusal: Tokens,
    client: Option<Tokens>,
    lowered: bool,
}

impl Lines {
    /// Returns the position of a threshold.
    pub const fn at(&self, threshold: Threshold) -> Tokens {
        self.at[threshold as usize]
    }

    /// Returns the number of tokens at which a client without auto-compaction refuses prompts.
    pub const fn refusal(&self) -> Tokens {
        self.refusal
    }

    /// Returns the number of tokens at which the client itself acts, if that is known.
    pub const fn client(&self) -> Option<Tokens> {
        self.client
    }

    /// Reports whether the lines were lowered because the client acts before them.
    pub const fn are_lowered(&self) -> bool {
        self.lowered
    }

    /// Reports whether `used` is near the point at which the client itself acts: as near as the compact line may lie.
    pub fn is_near_client(&self, used: Tokens) -> bool {
        self.client
            .is_some_and(|client| used.0 >= client.0 - margin(client))
    }

    /// Returns the highest threshold that `used` has reached.
    pub fn reached(&self, used: Tokens) -> Option<Threshold> {
        Threshold::ALL
            .into_iter()
            .rev()
            .find(|&threshold| used >= self.at(threshold))
    }

    /// Returns the level of `used`.
    pub fn level(&self, used: Tokens) -> Level {
        match self.reached(used) {
            None => Level::Healthy,
            Some(Threshold::Notice) => Level::Warning,
            Some(Threshold::Warn) => Level::Critical,
            Some(Threshold::Compact | Threshold::Force) => Level::Overflow,
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn room(usable: u64, client: Option<u64>) -> Room {
        Room::new(Tokens(usable + 20_000), Tokens(usable), client.map(Tokens))
    }

    fn capped(caps: [Option<u64>; 4]) -> Thresholds {
        let shares = Thresholds::default().shares;
        Thresholds::new(shares, caps.map(|cap| cap.map(Tokens)))
    }

    fn lines(thresholds: Thresholds, usable: u64) -> [u64; 4] {
        below(thresholds, usable, None)
    }

    fn below(thresholds: Thresholds, usable: u64, client: Option<u64>) -> [u64; 4] {
        let lines = thresholds.lines(room(usable, client));
        Threshold::ALL.map(|threshold| lines.at(threshold).0)
    }

    #[test]
    fn where_a_cap_is_below_the_client_s_point_the_force_line_is_below_it_too() {
        let capped = capped([Some(90_000), Some(126_000), Some(153_000), None]);
        let lines = capped.lines(room(980_000, Some(167_000)));
        assert_eq!(lines.at(Threshold::Compact), Tokens(153_000));
        assert_eq!(lines.at(Threshold::Force), Tokens(161_990));
        assert!(!lines.are_lowered());
        let lines = capped.lines(room(980_000, Some(967_000)));
        assert_eq!(lines.at(Threshold::Force), Tokens(950_600));
    }

    #[test]
    fn the_normal_lines_of_a_200k_window() {
        assert_eq!(
            lines(Thresholds::default(), 180_000),
            [90_000, 126_000, 153_000, 174_600]
        );
        assert_eq!(
            Thresholds::default().lines(room(180_000, None)).refusal(),
            Tokens(177_000)
        );
    }

    #[test]
    fn a_level_begins_exactly_at_its_line() {
        let lines = Thresholds::default().lines(room(180_000, None));
        let cases = [
            (0, Level::Healthy),
            (89_999, Level::Healthy),
            (90_000, Level::Warning),
            (125_999, Level::Warning),
            (126_000, Level::Critical),
            (152_999, Level::Critical),
            (153_000, Level::Overflow),
            (u64::MAX, Level::Overflow),
        ];
        for (used, level) in cases {
            assert_eq!(lines.level(Tokens(used)), level, "{used}");
        }
    }

    #[test]
    fn the_lower_of_share_and_cap_counts_and_drags_lower_lines_along() {
        let capped = capped([None, Some(100_000), Some(900_000), None]);
        assert_eq!(lines(capped, 980_000), [100_000, 100_000, 833_000, 950_600]);
        assert_eq!(lines(capped, 100_000), [50_000, 70_000, 85_000, 97_000]);
    }

    #[test]
    fn the_force_line_never_lies_behind_the_refusal_line() {
        assert_eq!(
            lines(Thresholds::default(), 50_000),
            [25_000, 35_000, 42_500, 47_000]
        );
        assert_eq!(lines(Thresholds::default(), 0), [0, 0, 0, 0]);
    }

    #[test]
    fn a_client_that_acts_behind_the_lines_leaves_them_alone() {
        let shares = [90_000, 126_000, 153_000, 174_600];
        assert_eq!(below(Thresholds::default(), 180_000, Some(177_000)), shares);
        let lines = Thresholds::default().lines(room(180_000, Some(177_000)));
        assert!(!lines.are_lowered());
        assert_eq!(lines.client(), Some(Tokens(177_000)));
        // Far enough behind the compact line for a turn, but before the force line.
        let default = below(Thresholds::default(), 980_000, Some(967_000));
        assert_eq!(default, lines_of_a_million());
    }

    fn lines_of_a_million() -> [u64; 4] {
        [490_000, 686_000, 833_000, 950_600]
    }

    #[test]
    fn a_client_that_acts_before_the_lines_lowers_them() {
        let lowered = Thresholds::default().lines(room(980_000, Some(167_000)));
        assert!(lowered.are_lowered());
        assert_eq!(
            below(Thresholds::default(), 980_000, Some(167_000)),
            [83_500, 116_900, 141_950, 161_990]
        );
        // A compact line high above the others still keeps its distance from the client.
        let high = Thresholds::new([50, 90, 96, 97], [None; 4]);
        let [notice, warn, compact, force] = below(high, 180_000, Some(167_000));
        assert_eq!(compact, 167_000 - 8_350);
        assert!(notice < warn && warn < compact && compact < force && force < 167_000);
        // Caps below it stay what they are.
        let capped = capped([None, None, Some(100_000), None]);
        assert_eq!(below(capped, 980_000, Some(167_000))[2], 100_000);
    }

    #[test]
    fn near_is_where_the_compact_line_may_lie_at_most() {
        let lines = Thresholds::default().lines(room(980_000, Some(967_000)));
        assert!(!lines.is_near_client(Tokens(956_999)) && lines.is_near_client(Tokens(957_000)));
        let unknown = Thresholds::default().lines(room(980_000, None));
        assert!(!unknown.is_near_client(Tokens(u64::MAX)));
    }

    proptest! {
        #[test]
        fn lines_never_fall_and_never_pass_their_cap(
            mut shares in proptest::array::uniform4(1u8..=100),
            caps in proptest::array::uniform4(proptest::option::of(1u64..2_000_000)),
            usable in 0u64..2_000_000,
            client in proptest::option::of(0u64..2_000_000),
        ) {
            shares.sort_unstable();
            let made = Thresholds::new(shares, caps.map(|cap| cap.map(Tokens)));
            let at = below(made, usable, client);
            prop_assert!(at.is_sorted());
            if let Some(client) = client.filter(|client| *client > 0) {
                prop_assert!(at[2] <= client, "the compact line lies before the client's point");
            }
            for (line, cap) in at.iter().zip(caps) {
                prop_assert!(cap.is_none_or(|cap| *line <= cap));
            }
        }
    }
}
