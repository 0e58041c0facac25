//! The measured figures for the store: the outcomes of reboots, the time each step took, and the usage at the end of each turn.
//!
//! A figure's name holds everything that identifies it, because the table has one column for it:
//!
//! ```text
//! reboot:CAUSE:OUTCOME     1 for each reboot that is over       reboot:key:done, reboot:threshold:cancelled
//! step:STEP                milliseconds spent in that step      step:ending, step:verifying
//! transition               milliseconds from the approval to the proof
//! turn:used                tokens in use at the end of a turn
//! turn:usable              tokens that could be used then
//! turn:cost                US dollars that the iteration had cost by then
//! ```

use std::collections::BTreeMap;

use chrono::{DateTime, Utc};

use serde::{Deserialize, Serialize};

use super::{Cause, IterationId, RebootRecord, journal::JournalEntry, journal::Step, words};
use pitstop_transcript::Tokens;

const TURN_USED: &str = "turn:used";
const TURN_USABLE: &str = "turn:usable";
const TURN_COST: &str = "turn:cost";

words! {
    /// The outcome of a reboot.
    Outcome, "the outcome of a reboot", {
        /// The new session has the handoff.
        Done = "done",
        /// The reboot was given up before anything was done to the old session.
        Cancelled = "cancelled",
        /// The old session was resumed.
        RolledBack = "rolled_back",
        /// The reboot failed, and none of the others applies.
        Failed = "failed",
    }
}

impl Outcome {
    /// Returns the outcome of a reboot that went from `before` to the final step `last`.
    pub const fn of(before: Option<Step>, last: Step) -> Option<Self> {
        Some(match (last, before) {
            (Step::Done, _) => Self::Done,
            (Step::Failed, Some(Step::RollingBack)) => Self::RolledBack,
            (
                Step::Failed,
                None | Some(Step::Armed | Step::Drafting | Step::Review | Step::Waiting),
            ) => Self::Cancelled,
            // The reboot was refused: something that the new session needs is missing.
            (Step::Failed, _) => Self::Failed,
            _ => return None,
        })
    }
}

/// Returns the figure of a reboot that is over; `before` is the step written before this one.
pub fn of_reboot(before: Option<Step>, entry: &JournalEntry) -> Option<Metric> {
    let outcome = Outcome::of(before, entry.step)?;
    Some(Metric {
        iteration: Some(entry.iteration),
        name: format!("reboot:{}:{outcome}", entry.cause),
        at: entry.at,
        value: 1.0,
    })
}

/// Returns the figures of the reboot that began an iteration.
pub fn of_transition(
    iteration: IterationId,
    record: &RebootRecord,
    at: DateTime<Utc>,
) -> Vec<Metric> {
    let figure = |name: String, ms: u64| Metric {
        iteration: Some(iteration),
        name,
        at,
        value: ms as f64,
    };
    let steps = record.transition_time_ms.iter();
    steps
        .map(|(step, ms)| figure(format!("step:{step}"), *ms))
        .chain([figure("transition".to_owned(), record.total_ms())])
        .collect()
}

/// One figure that was measured.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Metric {
    /// The iteration that it belongs to; none if it belongs to the run as a whole.
    pub iteration: Option<IterationId>,
    /// The name of what was measured, with its unit, such as `reboot_ms`.
    pub name: String,
    /// The time of the measurement.
    pub at: DateTime<Utc>,
    /// The measured value.
    pub value: f64,
}

/// The usage of a session at the end of a turn.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TurnFigures {
    /// The iteration.
    pub iteration: IterationId,
    /// The time of the measurement.
    pub at: DateTime<Utc>,
    /// The number of tokens in use.
    pub used: Tokens,
    /// The context window in tokens without the client's reserve.
    pub usable: Tokens,
    /// The cost of the iteration so far in US dollars, where the agent reports it.
    pub cost_usd: Option<f64>,
}

/// Returns the figures of a turn, for the store.
pub fn of_turn(turn: &TurnFigures) -> Vec<Metric> {
    let figure = |name: &str, value: f64| Metric {
        iteration: Some(turn.iteration),
        name: name.to_owned(),
        at: turn.at,
        value,
    };
    let mut figures = vec![
        figure(TURN_USED, turn.used.0 as f64),
        figure(TURN_USABLE, turn.usable.0 as f64),
    ];
    figures.extend(turn.cost_usd.map(|cost| figure(TURN_COST, cost)));
    figures
}

/// Returns the turns among the figures of a run, oldest first: figures of the same time form one turn.
pub fn turns(figures: &[Metric]) -> Vec<TurnFigures> {
    let mut found: BTreeMap<(DateTime<Utc>, IterationId), [Option<f64>; 3]> = BTreeMap::new();
    for figure in figures {
        let place = [TURN_USED, TURN_USABLE, TURN_COST]
            .iter()
            .position(|name| *name == figure.name);
        if let (Some(place), Some(iteration)) = (place, figure.iteration) {
            found.entry((figure.at, iteration)).or_default()[place] = Some(figure.value);
        }
    }
    let turn = |((at, iteration), figures): ((DateTime<Utc>, IterationId), [Option<f64>; 3])| {
        let [used, usable, cost_usd] = figures;
        let tokens = |value: Option<f64>| Some(Tokens(value?.max(0.0) as u64));
        Some(TurnFigures {
            iteration,
            at,
            used: tokens(used)?,
            usable: tokens(usable)?,
            cost_usd,
        })
    };
    found.into_iter().filter_map(turn).collect()
}

/// The figures of one name, taken together.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Total {
    /// Their name.
    pub name: String,
    /// The number of figures.
    pub count: u64,
    /// Their sum.
    pub sum: f64,
    /// The largest of them.
    pub max: f64,
}

impl Total {
    /// Returns the cause and the outcome, if it counts reboots.
    pub fn reboots(&self) -> Option<(Cause, Outcome)> {
        let (cause, outcome) = self.name.strip_prefix("reboot:")?.split_once(':')?;
        Some((cause.parse().ok()?, outcome.parse().ok()?))
    }

    /// Returns the step, if it measures one.
    pub fn step(&self) -> Option<Step> {
        self.name.strip_prefix("step:")?.parse().ok()
    }

    /// Returns the mean.
    pub fn mean(&self) -> f64 {
        self.sum / self.count.max(1) as f64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_outcome_depends_on_how_far_the_reboot_came() {
        use Step::{Delivering, Done, Ending, Failed, Review, RollingBack, Verifying};
        for (before, last, outcome) in [
            (Some(Verifying), Done, Some(Outcome::Done)),
            (Some(RollingBack), Failed, Some(Outcome::RolledBack)),
            (Some(Review), Failed, Some(Outcome::Cancelled)),
            (None, Failed, Some(Outcome::Cancelled)),
            (Some(Ending), Failed, Some(Outcome::Failed)),
            (Some(Ending), Delivering, None),
        ] {
            assert_eq!(Outcome::of(before, last), outcome, "{before:?} {last}");
        }
    }

    #[test]
    fn the_turns_of_a_run_are_read_back_from_its_figures() {
        let turn = |seconds, used, cost_usd| TurnFigures {
            iteration: IterationId::FIRST,
            at: DateTime::from_timestamp(seconds, 0).unwrap(),
            used: Tokens(used),
            usable: Tokens(180_000),
            cost_usd,
        };
        let (first, second) = (turn(5, 20_000, Some(0.5)), turn(9, 35_000, None));
        let mut figures = of_turn(&second);
        figures.extend(of_turn(&first));
        figures.push(Metric {
            iteration: Some(IterationId::FIRST),
            name: "transition".to_owned(),
            at: first.at,
            value: 900.0,
        });
        assert_eq!(turns(&figures), [first, second]);
    }

    #[test]
    fn a_name_reads_back_as_what_it_counts() {
        let total = |name: String| Total {
            name,
            count: 2,
            sum: 3.0,
            max: 2.0,
        };
        for cause in Cause::ALL {
            for outcome in Outcome::ALL {
                let counted = total(format!("reboot:{cause}:{outcome}"));
                assert_eq!(counted.reboots(), Some((*cause, *outcome)));
                assert_eq!(counted.step(), None);
            }
        }
        let step = total(format!("step:{}", Step::Ending));
        assert_eq!((step.step(), step.reboots()), (Some(Step::Ending), None));
        assert!((step.mean() - 1.5).abs() < f64::EPSILON);
    }
}
