//! The readings: figures with their sources and ages, and the choice of the source that wins.
//!
//! ```text
//!   bridge      ──▶ what the client's `/context` says, pushed     best
//!   status line ──▶ the client's own figure, with the window
//!   transcript  ──▶ the last call's usage, window unknown
//!   estimate    ──▶ counted from text; only while there is no other source
//! ```
//!
//! A source that has stopped reporting does not win for ever: when a lower one is clearly newer and reports another figure, the
//! session has moved on and the better source has not noticed.

use std::time::Duration;

use pitstop_base::clock::At;
use pitstop_transcript::Tokens;

/// The source of a figure; the better source first. Its name is shown beside the figure.
#[derive(Clone, Copy, Debug, PartialEq, Eq, strum::Display, strum::VariantArray)]
#[strum(serialize_all = "lowercase")]
pub enum Source {
    /// The client's own side of the session.
    Bridge,
    /// Claude Code's status line command.
    #[strum(serialize = "status line")]
    StatusLine,
    /// The usage recorded in the transcript.
    Transcript,
    /// A figure that is estimated from the amount of text.
    Estimate,
}

impl Source {
    /// All sources, best first.
    pub const ALL: &[Self] = <Self as strum::VariantArray>::VARIANTS;
}

/// One report of a source.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reading {
    /// The number of tokens in the context window.
    pub used: Tokens,
    /// The whole window in tokens, if the source reports it.
    pub window: Option<Tokens>,
    /// The source of the reading.
    pub source: Source,
    /// The time of the report; a source that is asked again and has nothing new has reported nothing.
    pub at: At,
}

/// Estimates the tokens of a text from its length: four characters per token.
pub const fn estimate(characters: u64) -> Tokens {
    Tokens(characters.div_ceil(4))
}

/// The time by which a lower source must be newer before it overrules a better one.
///
/// The status line is debounced by 300 ms and the transcript is written late; within a few seconds the two are one event.
const MOVED_ON: Duration = Duration::from_secs(5);

/// The time for which two sources may differ before it counts as a disagreement: the slower one gets this long to follow.
const SETTLED: Duration = Duration::from_secs(2);

/// The shortest and the longest usual interval that is assumed of a source.
///
/// The status line reports after messages and tools, several times a minute at work; a source that really reports every second
/// is not called stale for its silence during one long thought.
const USUAL: (Duration, Duration) = (Duration::from_secs(30), Duration::from_secs(600));

/// The last reading of one source and its usual interval.
#[derive(Clone, Copy, Debug, PartialEq)]
struct SourceState {
    reading: Reading,
    usual: Duration,
}

/// The last reading of every source.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Readings {
    states: [Option<SourceState>; Source::ALL.len()],
}

impl Readings {
    /// Takes the reading of a source.
    pub fn observe(&mut self, reading: Reading) {
        let slot = &mut self.states[reading.source as usize];
        let usual = slot.map_or(USUAL.0, |state| {
            // The interval is smoothed, so that one pause does not count as the rhythm.
            let gap = reading.at.since(state.reading.at).min(USUAL.1);
            (state.usual * 3 + gap) / 4
        });
        *slot = Some(SourceState {
            reading,
            usual: usual.max(USUAL.0),
        });
    }

    /// Drops a source that has gone.
    pub fn forget(&mut self, source: Source) {
        self.states[source as usize] = None;
    }

    /// Returns the last reading of a source.
    pub fn of(&self, source: Source) -> Option<Reading> {
        self.states[source as usize].map(|state| state.reading)
    }

    /// Returns the reading that counts.
    pub fn best(&self) -> Option<Reading> {
        // The estimate is made from text and is always the newest: it never overrules a real figure.
        let real = [Source::Bridge, Source::StatusLine, Source::Transcript];
        let best = real.into_iter().filter_map(|source| self.of(source));
        best.reduce(|better, lower| {
            let moved_on = lower.at.since(better.at) > MOVED_ON && differ(better, lower);
            if moved_on { lower } else { better }
        })
        .or(self.of(Source::Estimate))
    }

    /// Returns the last figure of a client that reports no more. The better source may have missed the last call: its report
    /// comes a little later, and a client that has ended does not send it any more.
    pub fn last(&self) -> Option<Reading> {
        let best = self.best()?;
        let transcript = self.of(Source::Transcript);
        let missed = transcript
            .filter(|one| one.at.since_start > best.at.since_start && one.used > best.used);
        missed.or(Some(best))
    }

    /// Reports whether a source has been silent for more than twice its usual interval.
    pub fn is_stale(&self, source: Source, at: At) -> bool {
        self.states[source as usize]
            .is_some_and(|state| at.since(state.reading.at) > state.usual * 2)
    }

    /// Returns the reading to compare with `best`, once both have had time to settle.
    ///
    /// Estimates are not compared: they are wrong by nature.
    pub fn dissent(&self, best: Reading, at: At) -> Option<Reading> {
        let other = match best.source {
            Source::Bridge | Source::StatusLine => Source::Transcript,
            Source::Transcript => Source::StatusLine,
            Source::Estimate => return None,
        };
        self.of(other)
            .filter(|other| at.since(best.at) >= SETTLED && at.since(other.at) >= SETTLED)
    }
}

/// Reports whether two figures differ by more than the sources omit or round.
fn differ(a: Reading, b: Reading) -> bool {
    a.used.0.abs_diff(b.used.0) > 1_000.max(a.used.0.max(b.used.0) / 100)
}

/// The window that is assumed when nothing is known, in tokens.
pub const DEFAULT_WINDOW: Tokens = Tokens(200_000);

/// The large window, in tokens.
const LARGE_WINDOW: Tokens = Tokens(1_000_000);

/// The evidence for the size of the window.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct WindowEvidence {
    /// The window that the user set.
    pub user: Option<Tokens>,
    /// The window that the status line or the bridge last reported.
    pub status_line: Option<Tokens>,
    /// The model as `SessionStart` or the transcript names it.
    pub model: Option<String>,
    /// The most tokens that were ever seen in use.
    pub most_used: Tokens,
}

impl WindowEvidence {
    /// Takes the window that the client reports, if a model can have it.
    pub fn report_window(&mut self, window: Option<Tokens>) {
        let possible = window.filter(|window| (1_000..=100_000_000).contains(&window.0));
        // Another model has a window of its own: what the one before had in use proves nothing about it.
        if self.status_line.is_some() && possible.is_some() && possible != self.status_line {
            self.most_used = Tokens(0);
        }
        self.status_line = possible.or(self.status_line);
    }

    /// Returns the most tokens that can be in use: the window that the client reports is the limit.
    pub fn most(&self) -> Tokens {
        let guessed = LARGE_WINDOW.max(self.user.unwrap_or_default());
        self.status_line.unwrap_or(guessed)
    }

    /// Returns the window by the user, else the status line, else the model, else the default; never less than was seen in use.
    pub fn window(&self) -> Tokens {
        let assumed = self
            .user
            .or(self.status_line)
            .or_else(|| self.model.as_deref().and_then(window_of_model))
            .filter(|window| window.0 > 0)
            .unwrap_or(DEFAULT_WINDOW);
        if self.most_used <= assumed {
            return assumed;
        }
        [DEFAULT_WINDOW, LARGE_WINDOW]
            .into_iter()
            .find(|&known| self.most_used <= known)
            .unwrap_or(self.most_used)
    }

    /// Takes the name of the model; a bare name does not undo the mark of the same model.
    pub fn name_model(&mut self, id: &str) {
        let marked = self
            .model
            .as_deref()
            .and_then(|model| model.strip_suffix(LARGE_MARK));
        if marked != Some(id) {
            self.model = Some(id.chars().take(200).collect());
        }
    }
}

/// The suffix by which the client marks a model whose large window is switched on.
const LARGE_MARK: &str = "[1m]";

/// The first generation of each family that has the large window by default, as major and minor number. A family that
/// is not listed, and every name that the client does not know, has the large one (measured with 2.1.330).
const LARGE_FROM: [(&str, (u8, u8)); 3] = [("opus", (4, 7)), ("sonnet", (5, 0)), ("haiku", (5, 5))];

/// Returns the window of a model by its id, in tokens; `None` if the id is empty.
///
/// The mark wins. Without it the family and its generation decide; dates and cloud prefixes around the name do not matter.
pub fn window_of_model(id: &str) -> Option<Tokens> {
    if id.is_empty() {
        return None;
    }
    let large = id.ends_with(LARGE_MARK) || is_large(id);
    Some(if large { LARGE_WINDOW } else { DEFAULT_WINDOW })
}

fn is_large(id: &str) -> bool {
    let name = id.rsplit_once("claude-").map_or(id, |(_, name)| name);
    let parts = || name.split(['-', '@', ':', '.']);
    // The built-in demo is a model of the small kind.
    if parts().any(|part| part == "demo") {
        return false;
    }
    let known = LARGE_FROM
        .iter()
        .find(|(family, _)| parts().any(|part| part == *family));
    let Some((_, from)) = known else {
        // `claude-2.1` and its like have a number where newer ones have a family.
        return parts()
            .next()
            .is_none_or(|part| part.parse::<u8>().is_err());
    };
    // `opus-4-8`, `haiku-4-5-20251001`, `3-5-sonnet-latest`, `sonnet-5`: the short numbers are the generation.
    let mut numbers = parts().filter_map(|part| part.parse::<u8>().ok());
    let generation = (numbers.next(), numbers.next().unwrap_or(0));
    // A name without a number, such as `opus`, is the newest of its family.
    generation
        .0
        .is_none_or(|major| (major, generation.1) >= *from)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::guard::tests::{at, said};

    fn received(readings: &[Reading]) -> Readings {
        let mut all = Readings::default();
        for reading in readings {
            all.observe(*reading);
        }
        all
    }

    use Source::{Bridge, Estimate, StatusLine, Transcript};

    #[test]
    fn the_better_source_wins() {
        let cases: [(&[Reading], Option<Source>); 10] = [
            (
                &[said(StatusLine, 40_000, 1), said(Bridge, 39_000, 0)],
                Some(Bridge),
            ),
            // The bridge speaks at a turn's end and after tools; the status line has moved on.
            (
                &[said(Bridge, 40_000, 0), said(StatusLine, 90_000, 6)],
                Some(StatusLine),
            ),
            (
                &[
                    said(Bridge, 40_000, 9),
                    said(StatusLine, 40_100, 0),
                    said(Transcript, 40_200, 9),
                ],
                Some(Bridge),
            ),
            (&[], None),
            (&[said(Estimate, 1, 0)], Some(Estimate)),
            (
                &[said(Estimate, 1, 0), said(Transcript, 1, 0)],
                Some(Transcript),
            ),
            (
                &[said(Transcript, 50_000, 0), said(StatusLine, 40_000, 0)],
                Some(StatusLine),
            ),
            // Newer by a little, or newer and the same: one event.
            (
                &[said(StatusLine, 40_000, 0), said(Transcript, 90_000, 5)],
                Some(StatusLine),
            ),
            (
                &[said(StatusLine, 40_000, 0), said(Transcript, 40_900, 60)],
                Some(StatusLine),
            ),
            // The transcript moved on and the status line has stopped.
            (
                &[said(StatusLine, 40_000, 0), said(Transcript, 90_000, 6)],
                Some(Transcript),
            ),
        ];
        for (readings, source) in cases {
            assert_eq!(
                received(readings).best().map(|best| best.source),
                source,
                "{readings:?}"
            );
        }
    }

    #[test]
    fn the_last_call_counts_at_the_end_though_the_better_source_missed_it() {
        let missed = [said(StatusLine, 40_000, 0), said(Transcript, 44_000, 1)];
        let late = [said(StatusLine, 44_000, 0), said(Transcript, 40_000, 1)];
        let older = [said(StatusLine, 20_000, 1), said(Transcript, 44_000, 0)];
        for (readings, used) in [(missed, 44_000), (late, 44_000), (older, 20_000)] {
            let last = received(&readings).last();
            assert_eq!(last.map(|one| one.used), Some(Tokens(used)), "{readings:?}");
        }
    }

    #[test]
    fn an_estimate_never_overrules_a_real_figure() {
        let all = received(&[said(StatusLine, 40_000, 0), said(Estimate, 150_000, 900)]);
        assert_eq!(all.best().map(|best| best.source), Some(StatusLine));
    }

    #[test]
    fn an_estimate_counts_characters() {
        assert_eq!(estimate(0), Tokens(0));
        assert_eq!(estimate(9), Tokens(3));
    }

    #[test]
    fn when_a_source_goes_the_next_one_counts() {
        let mut all = received(&[
            said(StatusLine, 3, 0),
            said(Transcript, 2, 0),
            said(Estimate, 1, 0),
        ]);
        for next in [Some(Transcript), Some(Estimate), None] {
            let best = all.best().map(|best| best.source);
            all.forget(best.expect("still a source"));
            assert_eq!(all.best().map(|best| best.source), next);
        }
    }

    #[test]
    fn a_source_is_stale_after_twice_its_usual_interval() {
        let mut all = received(&[said(StatusLine, 1, 0)]);
        assert!(!all.is_stale(StatusLine, at(60)));
        assert!(all.is_stale(StatusLine, at(61)));
        // A slow speaker is given more time.
        for minute in 1..20 {
            all.observe(said(StatusLine, 1, minute * 120));
        }
        assert!(!all.is_stale(StatusLine, at(19 * 120 + 200)));
        assert!(all.is_stale(StatusLine, at(19 * 120 + 241)));
        assert!(!all.is_stale(Transcript, at(9999)));
    }

    #[test]
    fn dissent_is_shown_once_both_have_settled() {
        let all = received(&[said(Transcript, 50_000, 10), said(StatusLine, 90_000, 11)]);
        let best = all.best().expect("a reading");
        assert_eq!(all.dissent(best, at(12)), None);
        assert_eq!(
            all.dissent(best, at(13)).map(|other| other.source),
            Some(Transcript)
        );
    }

    #[test]
    fn window_evidence_has_an_order() {
        let mut evidence = WindowEvidence::default();
        assert_eq!(evidence.window(), Tokens(200_000));
        evidence.name_model("claude-opus-4-8[1m]");
        assert_eq!(evidence.window(), Tokens(1_000_000));
        evidence.status_line = Some(Tokens(400_000));
        assert_eq!(evidence.window(), Tokens(400_000));
        evidence.user = Some(Tokens(300_000));
        assert_eq!(evidence.window(), Tokens(300_000));
    }

    #[test]
    fn a_bare_name_does_not_undo_the_mark_of_its_model() {
        let mut evidence = WindowEvidence::default();
        evidence.name_model("claude-opus-4-5[1m]");
        evidence.name_model("claude-opus-4-5");
        assert_eq!(evidence.window(), Tokens(1_000_000));
        evidence.name_model("claude-haiku-4-5");
        assert_eq!(evidence.window(), Tokens(200_000));
    }

    #[test]
    fn usage_above_the_window_corrects_it_upward() {
        for (used, window) in [
            (200_000, 200_000),
            (200_001, 1_000_000),
            (1_000_000, 1_000_000),
            (1_200_000, 1_200_000),
        ] {
            let evidence = WindowEvidence {
                most_used: Tokens(used),
                ..WindowEvidence::default()
            };
            assert_eq!(evidence.window(), Tokens(window));
        }
    }

    #[test]
    fn the_name_of_a_model_gives_its_window() {
        let cases = [
            ("claude-opus-4-5[1m]", Some(1_000_000)),
            ("claude-opus-4-6", Some(200_000)),
            ("claude-opus-4-7", Some(1_000_000)),
            ("claude-opus-4-8", Some(1_000_000)),
            ("claude-opus-4-20250514", Some(200_000)),
            ("claude-haiku-4-5-20251001", Some(200_000)),
            ("claude-haiku-5-5", Some(1_000_000)),
            ("claude-3-5-sonnet-latest", Some(200_000)),
            ("claude-2.1", Some(200_000)),
            (
                "us.anthropic.claude-sonnet-4-5-20250929-v1:0",
                Some(200_000),
            ),
            ("claude-opus-4-1@20250805", Some(200_000)),
            ("claude-sonnet-5", Some(1_000_000)),
            ("claude-opus-5-1-20261001", Some(1_000_000)),
            ("claude-fable-1", Some(1_000_000)),
            ("opus", Some(1_000_000)),
            ("claude-next", Some(1_000_000)),
            ("gpt-9", Some(1_000_000)),
            ("claude-demo-1", Some(200_000)),
            ("claude-demo-1[1m]", Some(1_000_000)),
            ("", None),
        ];
        for (id, window) in cases {
            assert_eq!(window_of_model(id), window.map(Tokens), "{id}");
        }
    }
}
