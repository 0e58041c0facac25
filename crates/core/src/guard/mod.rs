//! The guard: it measures the use of the context window, and advises.
//!
//! The guard takes [`Reading`]s from every source, decides which one counts, and measures it against the usable
//! window. It advises and never acts: the core decides what follows from a crossing.
//!
//! ```text
//!   Reading ──▶ Readings ──▶ used ─┐
//!   override, status line, model ──▶ window ─▶ usable ─▶ Lines ─▶ Level, Crossing
//!   where the client itself acts ───────────────────────┘
//! ```

use std::time::Duration;

use serde::{Deserialize, Serialize};

use pitstop_base::clock::At;
use pitstop_transcript::Tokens;

pub mod forecast;
pub mod pace;
pub mod pane_text;
pub mod payoff;
pub mod prices;
pub mod reading;
pub mod threshold;

pub use forecast::{Forecast, Growth};
pub use pace::Pace;
pub use reading::{Reading, Source};
pub use threshold::{Level, Lines, Room, Threshold, Thresholds};

use reading::{Readings, WindowEvidence};

/// The part of the window that the client reserves for its own answers and summaries, in tokens (measured).
pub const DEFAULT_RESERVE: Tokens = Tokens(20_000);

/// The settings of the guard that the user may change.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct GuardSettings {
    /// The points at which the levels begin.
    pub thresholds: Thresholds,
    /// The part of the window that the client reserves, in tokens.
    pub reserve: Tokens,
    /// The whole window in tokens, if the user knows better than the evidence.
    pub window_override: Option<Tokens>,
}

/// The least use of a window by a session at work, in tokens: the instructions and tools alone are several times as much.
const LEAST: Tokens = Tokens(2_000);

/// The distance that the figure must fall below a line before its threshold may fire again, in percent of usable: sources
/// differ by a point or two, and a trimmed answer can lower the figure a little more.
const HYSTERESIS: f64 = 5.0;

impl Default for GuardSettings {
    fn default() -> Self {
        Self {
            thresholds: Thresholds::default(),
            reserve: DEFAULT_RESERVE,
            window_override: None,
        }
    }
}

/// The meaning of a figure in a window of known size.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Assessment {
    /// The number of tokens in use.
    pub used: Tokens,
    /// The whole window, in tokens.
    pub window: Tokens,
    /// The window less the reserve, in tokens.
    pub usable: Tokens,
    /// The share of the usable window in use, in percent; over 100 when the reserve is used too.
    pub percent: f64,
    /// The last threshold passed.
    pub level: Level,
    /// The positions of the thresholds and of the refusal, in tokens.
    pub lines: Lines,
}

impl Assessment {
    /// Reports whether an unattended run interrupts the turn.
    pub fn is_forced(&self) -> bool {
        self.used >= self.lines.at(Threshold::Force)
    }
}

/// Measures `used` against a window of this size, in tokens; the client itself acts at `client`, if that is known.
pub fn assess(
    used: Tokens,
    window: Tokens,
    settings: &GuardSettings,
    client: Option<Tokens>,
) -> Assessment {
    let usable = usable_window(window, settings.reserve);
    let lines = settings.thresholds.lines(Room::new(window, usable, client));
    let level = lines.level(used);
    Assessment {
        used,
        window,
        usable,
        percent: share(used, usable),
        level,
        lines,
    }
}

/// Returns the window less the reserve. A reserve of half of the window or more is ignored, because no client keeps so much.
fn usable_window(window: Tokens, reserve: Tokens) -> Tokens {
    let kept = Some(reserve.0).filter(|&kept| kept < window.0 / 2);
    Tokens(window.0 - kept.unwrap_or(0))
}

fn share(used: Tokens, usable: Tokens) -> f64 {
    used.0 as f64 * 100.0 / usable.0.max(1) as f64
}

/// The figure that counts now, with its source.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Figure {
    /// The meaning of the figure.
    pub assessment: Assessment,
    /// The source of the figure.
    pub source: Source,
    /// The age of the figure.
    pub age: Duration,
    /// True if the source has been silent for longer than usual.
    pub stale: bool,
    /// A disagreement of another source, if there is one.
    pub disagreement: Option<Disagreement>,
}

impl std::ops::Deref for Figure {
    type Target = Assessment;

    fn deref(&self) -> &Assessment {
        &self.assessment
    }
}

/// A source that differs from the one that counts by more than [`DISAGREEMENT`] points.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Disagreement {
    /// The source that differs.
    pub source: Source,
    /// The figure of that source.
    pub used: Tokens,
    /// The distance above (or, negative, below) the figure that counts, in percent points of the usable window.
    pub points: f64,
}

/// The difference between two sources above which it is shown, in percent points of the usable window.
pub const DISAGREEMENT: f64 = 5.0;

/// An upward passage of a threshold.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Crossing {
    /// The highest threshold that was passed.
    pub threshold: Threshold,
    /// The figure that passed it.
    pub figure: Figure,
}

/// The growth of the context window, and the work that is left before the compact line at that growth, as part of a
/// [`ContextReport`](crate::api::wire::ContextReport). An unknown figure is `null`, and so is the work left past the line.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ForecastReport {
    /// The fitting unit, in which the screen shows the work that is left.
    pub unit: Option<ForecastUnit>,
    /// The number of tokens that a minute of the agent's work adds.
    pub growth_per_minute: Option<u64>,
    /// The number of tokens that a tool call adds.
    pub growth_per_call: Option<u64>,
    /// The number of tokens that a turn adds: the median of the last turns.
    pub growth_per_turn: Option<u64>,
    /// The number of minutes of work that are left.
    pub minutes_left: Option<u32>,
    /// The number of tool calls that are left.
    pub calls_left: Option<u32>,
    /// The number of turns that are left, where several fit.
    pub turns_left: Option<TurnsLeft>,
}

/// The number of turns that are left, as part of a [`ForecastReport`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TurnsLeft {
    /// The number of turns if they grow as the larger ones of the last turns did.
    pub least: u32,
    /// The number of turns if they grow as the smaller ones did.
    pub most: u32,
}

/// The unit in which the rest of the window is counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ForecastUnit {
    /// The rest is counted in turns, because several fit.
    Turns,
    /// The rest is counted in minutes of work.
    Minutes,
    /// The rest is counted in tool calls, because too little work time is known yet.
    Calls,
}

/// The observer of the context window over successive iterations.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Guard {
    settings: GuardSettings,
    readings: Readings,
    /// The figures of the previous conversation, which sources that lag behind may repeat.
    void: Vec<Tokens>,
    evidence: WindowEvidence,
    forecast: Forecast,
    pace: Pace,
    /// The source of the last figure of the history.
    heard: Option<Source>,
    turn: u64,
    /// The highest threshold that has fired and is not armed again yet.
    fired: Option<Threshold>,
    /// The number of tokens at which the client itself acts, if that is known.
    client: Option<Tokens>,
}

impl Guard {
    /// Makes a guard that has seen nothing yet.
    pub fn new(settings: GuardSettings) -> Self {
        Self {
            evidence: WindowEvidence {
                user: settings.window_override,
                ..WindowEvidence::default()
            },
            settings,
            ..Self::default()
        }
    }

    /// Takes over new settings and keeps the observations; a threshold that they put below the figure may fire.
    pub fn set_settings(&mut self, settings: GuardSettings) {
        self.evidence.user = settings.window_override;
        self.settings = settings;
    }

    /// Returns the settings in force.
    pub const fn settings(&self) -> &GuardSettings {
        &self.settings
    }

    /// Takes the reading of a source; returns whether the figure fell so far that the client may have compacted.
    pub fn observe(&mut self, reading: Reading) -> bool {
        if matches!(reading.source, Source::Bridge | Source::StatusLine) {
            self.evidence.report_window(reading.window);
        }
        if !self.can_be(&reading) {
            return false;
        }
        if reading.source != Source::Estimate {
            self.evidence.most_used = self.evidence.most_used.max(reading.used);
        }
        // By the end of the first turn each source has a figure of this conversation.
        if self.turn <= 1 && self.void.contains(&reading.used) {
            return false;
        }
        self.readings.observe(reading);
        // Only the source that counts enters the history: the difference of two sources would look like growth.
        match self.readings.best() {
            Some(best) if best.source == reading.source => self.follow(best),
            _ => false,
        }
    }

    /// Reports whether a figure can be that of the session: a damaged or odd report must not empty the gauge in the middle of a
    /// session, nor prove a larger window. An estimate may have any value.
    pub fn can_be(&self, reading: &Reading) -> bool {
        let (used, known) = (reading.used, self.readings.best());
        let known = known.filter(|known| known.source != Source::Estimate);
        let is_lost = used < LEAST && known.is_some_and(|known| known.used.0 / 10 > used.0);
        let possible = Tokens(1)..=self.evidence.most();
        reading.source == Source::Estimate || (possible.contains(&used) && !is_lost)
    }

    /// Takes a figure into the history; returns whether it fell far.
    fn follow(&mut self, best: Reading) -> bool {
        let now = best.at.since_start;
        if self.heard.replace(best.source) == Some(best.source) {
            self.pace.observe(now, best.used);
        } else {
            self.pace.change_source(now, best.used);
        }
        self.forecast.observe(self.turn, best.used)
    }

    /// Notes whether the agent works from this moment on: only working time counts for the growth per minute.
    pub fn note_work(&mut self, at: At, works: bool) {
        self.pace.note_work(at.since_start, works);
    }

    /// Notes that a tool call of the main conversation has ended.
    pub const fn note_call(&mut self) {
        self.pace.note_call();
    }

    /// Takes the window that the status line reports while it has no figure yet.
    pub fn set_status_line_window(&mut self, window: Option<Tokens>) {
        self.evidence.report_window(window);
    }

    /// Takes the model's name from `SessionStart` or the transcript.
    pub fn set_model_hint(&mut self, id: &str) {
        self.evidence.name_model(id);
    }

    /// Notes that the client has compacted: the step to the next figure is not growth, whatever it is.
    pub fn note_compaction(&mut self) {
        self.forecast.note_compaction();
        self.pace.begin_anew();
    }

    /// Notes that the session is resumed: its first figure is not that of a fresh session.
    pub const fn note_resume(&mut self) {
        self.forecast.note_resume();
    }

    /// Drops a source that has gone or whose figure is invalid.
    pub fn forget(&mut self, source: Source) {
        self.readings.forget(source);
    }

    /// Notes that a turn begins: figures from now on belong to it.
    pub fn begin_turn(&mut self) {
        self.turn += 1;
    }

    /// Begins a new iteration: a fresh session, of which only the user's settings are known.
    pub fn start_iteration(&mut self) {
        *self = Self {
            // The next session is started with the same arguments and settings.
            client: self.client,
            ..Self::new(self.settings)
        };
    }

    /// Begins a new iteration in a session whose conversation was replaced: the last figures of its sources are invalid.
    pub fn start_replaced(&mut self) {
        let sources = [Source::Bridge, Source::StatusLine, Source::Transcript];
        let said = sources.into_iter().filter_map(|one| self.readings.of(one));
        let void = said.map(|reading| reading.used).collect();
        self.start_iteration();
        self.void = void;
    }

    /// Sets the number of tokens at which the client itself acts; a threshold that this puts below the figure may fire.
    pub const fn set_client_limit(&mut self, at: Option<Tokens>) {
        self.client = at;
    }

    /// Returns the number of tokens at which the client itself acts, if that is known.
    pub const fn client_limit(&self) -> Option<Tokens> {
        self.client
    }

    /// Measures a figure of ours, in tokens, against the present window and lines.
    pub fn assess(&self, used: Tokens) -> Assessment {
        assess(used, self.window(), &self.settings, self.client)
    }

    /// Returns the model's id, if any source has named it.
    pub fn model_id(&self) -> Option<&str> {
        self.evidence.model.as_deref()
    }

    /// Returns the whole window according to the evidence, in tokens.
    pub fn window(&self) -> Tokens {
        self.evidence.window()
    }

    /// Returns the figure that counts; `None` while there is no reading.
    pub fn figure(&self, at: At) -> Option<Figure> {
        let best = self.readings.best()?;
        let assessment = self.assess(best.used);
        let disagreement = self.readings.dissent(best, at).and_then(|other| {
            let points = share(other.used, assessment.usable) - assessment.percent;
            (points.abs() > DISAGREEMENT).then_some(Disagreement {
                source: other.source,
                used: other.used,
                points,
            })
        });
        Some(Figure {
            assessment,
            source: best.source,
            age: at.since(best.at),
            stale: self.readings.is_stale(best.source, at),
            disagreement,
        })
    }

    /// Returns the tokens of the client's last call, once the client reports no more.
    pub fn last_used(&self) -> Option<Tokens> {
        Some(self.readings.last()?.used)
    }

    /// Returns the highest threshold that has fired and is not armed again yet.
    pub const fn fired(&self) -> Option<Threshold> {
        self.fired
    }

    /// Takes over the threshold that a guard of the same session had fired.
    pub const fn set_fired(&mut self, fired: Option<Threshold>) {
        self.fired = fired;
    }

    /// Returns the threshold that was passed upwards since the last call: each fires once, and again only after the figure
    /// has fallen clearly below its line.
    pub fn crossing(&mut self, at: At) -> Option<Crossing> {
        let figure = self.figure(at)?;
        let slack = Tokens((figure.usable.0 as f64 * HYSTERESIS / 100.0) as u64);
        // A line is armed again if the figure, raised by the slack, would still not reach it.
        let held = figure
            .lines
            .reached(Tokens(figure.used.0.saturating_add(slack.0)));
        self.fired = self.fired.min(held);
        let reached = figure.lines.reached(figure.used);
        if reached <= self.fired {
            return None;
        }
        self.fired = reached;
        let threshold = reached?;
        Some(Crossing { threshold, figure })
    }

    /// Returns the history of this iteration by turns.
    pub const fn forecast(&self) -> &Forecast {
        &self.forecast
    }

    /// Returns the growth of the window and the work left before the compact line; `None` without a figure.
    pub fn forecast_report(&self, at: At) -> Option<ForecastReport> {
        let figure = self.figure(at)?;
        let (used, line) = (figure.used, figure.lines.at(Threshold::Compact));
        let left = Tokens(line.0.saturating_sub(used.0));
        let rate = self.pace.rate();
        let before_line = rate.filter(|_| left.0 > 0);
        let turns_left = self.forecast.several_turns_left(used, line);
        let minutes_left = before_line.and_then(|rate| rate.minutes_for(left));
        let calls_left = before_line.and_then(|rate| rate.calls_for(left));
        let minutes = minutes_left.map(|_| ForecastUnit::Minutes);
        let calls = calls_left.map(|_| ForecastUnit::Calls);
        let turns = turns_left.as_ref().map(|_| ForecastUnit::Turns);
        Some(ForecastReport {
            unit: turns.or(minutes).or(calls),
            growth_per_minute: rate.and_then(|rate| rate.per_minute()).map(|one| one.0),
            growth_per_call: rate.and_then(|rate| rate.per_call()).map(|one| one.0),
            growth_per_turn: self.forecast.growth().map(|growth| growth.median.0),
            minutes_left,
            calls_left,
            turns_left: turns_left.map(|turns| TurnsLeft {
                least: *turns.start(),
                most: *turns.end(),
            }),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    pub(super) fn at(seconds: u64) -> At {
        At {
            since_start: Duration::from_secs(seconds),
            asleep: Duration::ZERO,
            wall: chrono::DateTime::from_timestamp(1_800_000_000 + seconds.cast_signed(), 0)
                .expect("a valid moment"),
            zone: pitstop_base::clock::UTC,
        }
    }

    pub(super) fn said(source: Source, used: u64, seconds: u64) -> Reading {
        Reading {
            used: Tokens(used),
            window: None,
            source,
            at: at(seconds),
        }
    }

    fn rounded(percent: f64) -> f64 {
        (percent * 10.0).round() / 10.0
    }

    /// Measures a figure by the default settings, without a limit of the client.
    fn assessed(used: u64, window: u64) -> Assessment {
        assess(
            Tokens(used),
            Tokens(window),
            &GuardSettings::default(),
            None,
        )
    }

    fn guard() -> Guard {
        Guard::new(GuardSettings::default())
    }

    fn with_window(mut reading: Reading, window: u64) -> Reading {
        reading.window = Some(Tokens(window));
        reading
    }

    use Source::{Bridge, Estimate, StatusLine, Transcript};

    #[test]
    fn the_figures_of_the_contract() {
        let cases = [
            (100_000, 200_000, 55.6, Level::Warning),
            (130_000, 200_000, 72.2, Level::Critical),
            (155_000, 200_000, 86.1, Level::Overflow),
            (100_000, 1_000_000, 10.2, Level::Healthy),
            (155_000, 1_000_000, 15.8, Level::Healthy),
        ];
        for (used, window, percent, level) in cases {
            let found = assessed(used, window);
            assert_eq!(
                (rounded(found.percent), found.level),
                (percent, level),
                "{used}"
            );
            assert_eq!(found.usable, Tokens(window - 20_000));
        }
    }

    #[test]
    fn refusal_and_force_have_their_lines() {
        let assess = |used| assessed(used, 200_000);
        assert_eq!(assess(0).lines.refusal(), Tokens(177_000));
        assert!(!assess(174_599).is_forced() && assess(174_600).is_forced());
    }

    #[test]
    fn a_limit_of_the_client_that_is_learnt_moves_the_lines_and_fires_what_it_puts_behind() {
        let mut guard = guard();
        guard.observe(with_window(said(StatusLine, 150_000, 0), 1_000_000));
        assert_eq!(guard.crossing(at(0)), None);
        guard.set_client_limit(Some(Tokens(167_000)));
        let crossing = guard
            .crossing(at(1))
            .expect("it is past the compact line now");
        assert_eq!(crossing.threshold, Threshold::Compact);
        assert!(crossing.figure.lines.are_lowered());
        guard.start_iteration();
        assert_eq!(
            guard.assess(Tokens(0)).lines.client(),
            Some(Tokens(167_000))
        );
    }

    #[test]
    fn a_tiny_or_empty_window_is_no_danger() {
        let tiny = assessed(5_000, 20_000);
        assert_eq!((tiny.usable, rounded(tiny.percent)), (Tokens(20_000), 25.0));
        let none = assessed(5, 0);
        assert_eq!((none.usable, none.level), (Tokens(0), Level::Overflow));
        assert!(assessed(u64::MAX, u64::MAX).percent.is_finite());
    }

    #[test]
    fn the_figure_carries_source_and_age() {
        let mut guard = guard();
        assert_eq!(guard.figure(at(0)), None);
        guard.observe(with_window(said(StatusLine, 100_000, 10), 200_000));
        let figure = guard.figure(at(12)).expect("a figure");
        assert_eq!(
            (figure.source, figure.age, figure.stale),
            (StatusLine, Duration::from_secs(2), false)
        );
        assert!(
            guard
                .figure(at(200))
                .is_some_and(|figure| figure.stale && figure.used == Tokens(100_000))
        );
    }

    #[test]
    fn the_transcript_is_measured_against_the_window_that_the_status_line_reported() {
        let mut guard = guard();
        guard.observe(with_window(said(StatusLine, 90_000, 0), 1_000_000));
        guard.forget(StatusLine);
        assert_eq!(guard.figure(at(0)), None);
        guard.observe(said(Transcript, 155_000, 1));
        let figure = guard.figure(at(1)).expect("a figure");
        assert_eq!(
            (figure.source, figure.window, figure.level),
            (Transcript, Tokens(1_000_000), Level::Healthy)
        );
    }

    #[test]
    fn a_disagreement_of_more_than_five_points_is_shown() {
        let mut guard = guard();
        guard.observe(said(StatusLine, 100_000, 0));
        guard.observe(said(Transcript, 109_000, 0));
        assert_eq!(
            guard.figure(at(9)).and_then(|figure| figure.disagreement),
            None
        );
        guard.observe(said(Transcript, 81_999, 0));
        let shown = guard
            .figure(at(9))
            .and_then(|figure| figure.disagreement)
            .expect("a disagreement");
        assert_eq!(
            (shown.source, shown.used, rounded(shown.points)),
            (Transcript, Tokens(81_999), -10.0)
        );
    }

    fn fires(guard: &mut Guard, used: u64, second: u64) -> Option<Threshold> {
        guard.observe(said(StatusLine, used, second));
        guard
            .crossing(at(second))
            .map(|crossing| crossing.threshold)
    }

    #[test]
    fn each_threshold_fires_once_and_again_only_after_a_clear_fall() {
        use Threshold::{Compact, Force, Notice, Warn};
        let mut guard = guard();
        let steps = [
            (10_000, None),
            (90_000, Some(Notice)),
            (91_000, None),
            (126_000, Some(Warn)),
            // Below its line by less than 5 points (9 000): still fired.
            (120_000, None),
            (127_000, None),
            // Below by more: armed again.
            (116_000, None),
            (126_000, Some(Warn)),
            // Two lines at once: the higher one speaks.
            (20_000, None),
            (154_000, Some(Compact)),
            (174_600, Some(Force)),
            (200_000, None),
        ];
        for (second, (used, expected)) in steps.into_iter().enumerate() {
            assert_eq!(
                fires(&mut guard, used, second as u64),
                expected,
                "step {second}: {used}"
            );
        }
    }

    #[test]
    fn a_new_iteration_knows_nothing_but_the_settings() {
        let mut guard = Guard::new(GuardSettings {
            window_override: Some(Tokens(500_000)),
            ..GuardSettings::default()
        });
        guard.set_model_hint("claude-opus-4-8[1m]");
        guard.observe(with_window(said(StatusLine, 480_000, 0), 600_000));
        assert!(guard.crossing(at(0)).is_some());
        guard.start_iteration();
        assert_eq!(guard.figure(at(1)), None);
        assert_eq!(guard.window(), Tokens(500_000));
        assert_eq!(fires(&mut guard, 480_000, 2), Some(Threshold::Force));
    }

    #[test]
    fn more_in_use_than_the_window_holds_means_a_larger_window() {
        let mut guard = guard();
        guard.observe(said(Transcript, 199_000, 0));
        assert_eq!(guard.window(), Tokens(200_000));
        guard.observe(said(Transcript, 240_000, 1));
        assert_eq!(
            guard
                .figure(at(1))
                .map(|figure| (figure.window, figure.level)),
            Some((Tokens(1_000_000), Level::Healthy))
        );
        // An estimate proves nothing.
        guard.observe(said(Estimate, 5_000_000, 2));
        assert_eq!(guard.window(), Tokens(1_000_000));
    }

    #[test]
    fn the_outlook_counts_turns_to_the_compact_line() {
        let mut guard = guard();
        for turn in 0..6 {
            guard.observe(said(StatusLine, 108_400 + turn * 4_000, turn));
            guard.begin_turn();
        }
        let outlook = guard.forecast_report(at(6)).expect("growth is known");
        assert_eq!(outlook.growth_per_turn, Some(4_000));
        let turns = TurnsLeft { least: 7, most: 7 };
        assert_eq!(outlook.turns_left, Some(turns));
        assert_eq!(outlook.unit, Some(ForecastUnit::Turns));
        assert_eq!(guard.forecast().base(), Some(Tokens(108_400)));
    }

    /// Simulates a turn of this many calls, one every ten seconds, that add `each` tokens each.
    fn long_turn(guard: &mut Guard, from: (u64, u64), calls: u64, each: u64) {
        let (second, used) = from;
        guard.begin_turn();
        guard.note_work(at(second), true);
        for call in 0..calls {
            guard.note_call();
            guard.observe(said(StatusLine, used + call * each, second + call * 10));
        }
        guard.note_work(at(second + calls * 10), false);
    }

    #[test]
    fn one_long_turn_is_counted_in_minutes_and_calls() {
        let mut guard = guard();
        long_turn(&mut guard, (0, 20_000), 100, 1_000);
        let outlook = guard.forecast_report(at(1_000)).expect("a figure");
        assert_eq!(
            (outlook.growth_per_minute, outlook.growth_per_call),
            (Some(6_000), Some(1_000))
        );
        // 119 000 in use, the compact line at 153 000.
        assert_eq!(
            (outlook.minutes_left, outlook.calls_left),
            (Some(5), Some(34))
        );
        assert_eq!((outlook.turns_left, outlook.growth_per_turn), (None, None));
        assert_eq!(outlook.unit, Some(ForecastUnit::Minutes));
    }

    #[test]
    fn a_long_turn_after_short_ones_is_counted_in_minutes_too() {
        let mut guard = guard();
        for turn in 0..4 {
            long_turn(&mut guard, (turn * 100, 20_000 + turn * 2_000), 2, 1_000);
        }
        let unit =
            |guard: &Guard, second| guard.forecast_report(at(second)).and_then(|one| one.unit);
        assert_eq!(unit(&guard, 400), Some(ForecastUnit::Turns));
        long_turn(&mut guard, (4_000, 28_000), 60, 1_000);
        assert_eq!(unit(&guard, 4_600), Some(ForecastUnit::Minutes));
        // Idle for a night: what is left is work, not time.
        let left = |second| {
            guard
                .forecast_report(at(second))
                .and_then(|one| one.minutes_left)
        };
        assert_eq!((left(4_600), left(40_000)), (Some(11), Some(11)));
    }

    #[test]
    fn a_fresh_session_and_a_replaced_conversation_begin_anew() {
        let mut guard = guard();
        long_turn(&mut guard, (0, 20_000), 100, 1_000);
        let none = |guard: &Guard, second| {
            let outlook = guard.forecast_report(at(second)).expect("a figure");
            outlook.growth_per_minute.is_none()
                && outlook.growth_per_call.is_none()
                && outlook.unit.is_none()
        };
        let mut fresh = guard.clone();
        fresh.start_iteration();
        assert_eq!(fresh.forecast_report(at(1_000)), None);
        long_turn(&mut fresh, (1_000, 20_000), 5, 9_000);
        assert!(none(&fresh, 1_050));
        guard.start_replaced();
        long_turn(&mut guard, (1_000, 21_000), 5, 9_000);
        assert!(none(&guard, 1_050));
        long_turn(&mut guard, (1_050, 66_000), 6, 500);
        let outlook = guard.forecast_report(at(1_110)).expect("a figure");
        assert!(outlook.growth_per_minute.is_some());
    }

    #[test]
    fn past_the_compact_line_nothing_is_left() {
        let mut guard = guard();
        long_turn(&mut guard, (0, 100_000), 60, 1_000);
        let outlook = guard.forecast_report(at(600)).expect("a figure");
        assert_eq!((outlook.minutes_left, outlook.calls_left), (None, None));
        assert_eq!((outlook.unit, outlook.turns_left), (None, None));
        assert_eq!(outlook.growth_per_minute, Some(6_000));
    }

    #[test]
    fn a_figure_that_cannot_be_is_not_taken_from_any_source() {
        for source in [Bridge, StatusLine, Transcript] {
            let mut guard = guard();
            guard.observe(with_window(said(StatusLine, 150_000, 0), 200_000));
            for (used, window) in [
                (0, 200_000),
                (203, 200_000),
                (1_999, 200_000),
                (200_001, 200_000),
                (400_000, 0),
                (1 << 40, 1 << 40),
                (150_000, 999),
            ] {
                guard.observe(with_window(said(source, used, 60), window));
                let figure = guard.figure(at(70)).expect("the figure that was known");
                let seen = (figure.used, figure.window);
                assert_eq!(seen, (Tokens(150_000), Tokens(200_000)), "{source} {used}");
            }
        }
        // A rewind, a compaction and a larger window are no damage.
        let mut guard = guard();
        for (used, window) in [(190_000, 200_000), (2_500, 200_000), (320_000, 1_000_000)] {
            guard.observe(with_window(said(StatusLine, used, used), window));
            let figure = guard.figure(at(used)).expect("a figure");
            assert_eq!((figure.used.0, figure.window.0), (used, window));
        }
    }

    #[test]
    fn a_source_that_does_not_count_makes_no_history() {
        let mut guard = guard();
        guard.observe(said(StatusLine, 100_000, 0));
        assert!(!guard.observe(said(Transcript, 30_000, 1)));
        assert!(guard.observe(said(StatusLine, 30_000, 2)));
    }

    #[test]
    fn a_model_with_a_smaller_window_has_it_whatever_was_in_use_before() {
        let mut guard = guard();
        guard.observe(with_window(said(StatusLine, 250_000, 0), 1_000_000));
        guard.set_status_line_window(Some(Tokens(200_000)));
        let figure = guard.figure(at(1)).expect("the figure before");
        assert_eq!(
            (figure.window, figure.level),
            (Tokens(200_000), Level::Overflow)
        );
        guard.observe(with_window(said(StatusLine, 30_000, 2), 200_000));
        let figure = guard.figure(at(2)).expect("a figure");
        assert_eq!(
            (figure.used, figure.window),
            (Tokens(30_000), Tokens(200_000))
        );
        // The same window, reported again, proves nothing new.
        guard.set_status_line_window(Some(Tokens(200_000)));
        assert_eq!(guard.window(), Tokens(200_000));
    }
}
