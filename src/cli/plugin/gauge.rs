//! The gauge of the plugin: what a figure means by the user's lines, and whether it has passed one.

use serde::{Deserialize, Serialize};

use crate::{
    cli::{here::Here, out::Failure},
    runtime,
    supervisor::boot::start_of_time,
};
use pitstop_base::format::{percent, tokens};
use pitstop_core::{
    app::figures::{crossed_words, guard_settings},
    config::Config,
    config::load::Flags,
    guard::{Figure, Guard, Reading, Source, Threshold},
};
use pitstop_transcript::Tokens;

/// A figure of the client's.
#[derive(Debug, Deserialize)]
pub struct Question {
    used: u64,
    window: u64,
    /// The number of tokens at which the client compacts by itself, if it does.
    compacts_at: Option<u64>,
    /// The highest line that was warned of before, by the answer to an earlier question.
    passed: Option<String>,
}

/// What the plugin shows.
#[derive(Debug, PartialEq, Serialize)]
pub struct Answer {
    /// Absent if the figure cannot be one.
    gauge: Option<Gauge>,
    /// The highest line that is warned of by now.
    passed: Option<String>,
    /// The warning, if the figure has just passed a line.
    warning: Option<String>,
    /// True if it has just passed the line at which a reboot is offered.
    offers: bool,
}

#[derive(Debug, PartialEq, Serialize)]
struct Gauge {
    bar: String,
    words: String,
    level: &'static str,
}

/// Answers by the configuration of the project here; that of the defaults, where it has faults.
pub fn answer(asked: &Question, flags: &Flags) -> Result<Answer, Failure> {
    Ok(judge(asked, &Here::find(flags)?.config))
}

fn judge(asked: &Question, config: &Config) -> Answer {
    let at = start_of_time(runtime::wall());
    let mut guard = Guard::new(guard_settings(config));
    guard.set_client_limit(asked.compacts_at.map(Tokens));
    let passed = asked.passed.as_deref();
    guard.set_fired(passed.and_then(|line| line.parse().ok()));
    guard.observe(Reading {
        used: Tokens(asked.used),
        window: Some(Tokens(asked.window)),
        source: Source::Bridge,
        at,
    });
    let crossing = guard.crossing(at);
    Answer {
        gauge: guard.figure(at).map(|figure| gauge(&figure)),
        passed: guard.fired().map(|line| line.to_string()),
        offers: crossing.is_some_and(|one| one.threshold >= Threshold::Compact),
        warning: crossing.as_ref().map(crossed_words),
    }
}

/// The cells of the bar.
const CELLS: usize = 10;

fn gauge(figure: &Figure) -> Gauge {
    let filled = (figure.percent * CELLS as f64 / 100.0).round() as usize;
    let filled = filled.min(CELLS);
    let level = figure.level.label();
    Gauge {
        bar: "█".repeat(filled) + &"░".repeat(CELLS - filled),
        words: format!(
            "{} of {} usable · {} % · {level}",
            tokens(figure.used.0),
            tokens(figure.usable.0),
            percent(figure.percent)
        ),
        level,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ask(used: u64, passed: Option<&str>) -> Answer {
        let asked = Question {
            used,
            window: 200_000,
            compacts_at: None,
            passed: passed.map(str::to_owned),
        };
        judge(&asked, &Config::default())
    }

    #[test]
    fn each_line_is_warned_of_once_and_again_only_after_a_clear_fall() {
        let calm = ask(42_000, None);
        let shown = calm.gauge.unwrap();
        assert_eq!(shown.words, "42k of 180k usable · 23 % · ok");
        assert_eq!(shown.bar, "██░░░░░░░░");
        assert_eq!(
            (calm.passed, calm.warning, calm.offers),
            (None, None, false)
        );

        let warned = ask(130_000, None);
        assert_eq!(warned.passed.as_deref(), Some("warn"));
        assert_eq!(
            warned.warning.as_deref(),
            Some("the context is past the warn line")
        );
        assert!(!warned.offers);
        assert_eq!(ask(131_000, Some("warn")).warning, None);

        let full = ask(155_000, Some("warn"));
        assert_eq!(full.gauge.unwrap().level, "compact");
        assert!(full.offers);
        // A point or two below the line it is still the same passage.
        let again = ask(151_000, Some("compact"));
        assert_eq!(
            (again.passed.as_deref(), again.offers),
            (Some("compact"), false)
        );
        assert_eq!(
            ask(140_000, Some("compact")).passed.as_deref(),
            Some("warn")
        );
    }

    #[test]
    fn the_lines_keep_below_the_point_where_the_client_compacts_by_itself() {
        let mut asked = Question {
            used: 80_000,
            window: 200_000,
            compacts_at: None,
            passed: None,
        };
        assert!(!judge(&asked, &Config::default()).offers);
        asked.compacts_at = Some(70_000);
        assert!(judge(&asked, &Config::default()).offers);
    }

    #[test]
    fn a_figure_that_cannot_be_one_is_not_shown() {
        assert_eq!(ask(0, None).gauge, None);
    }
}
