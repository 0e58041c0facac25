//! What is measured of reboots, as figures for the store: which came out how, and how long each step took.
//!
//! A figure's name says all there is to say, for the table has one column for it:
//!
//! ```text
//! reboot:CAUSE:OUTCOME     1 for each reboot that is over       reboot:key:done, reboot:threshold:cancelled
//! step:STEP                milliseconds spent in that step      step:ending, step:verifying
//! transition               milliseconds from the approval to the proof
//! ```

use chrono::{DateTime, Utc};

use serde::Serialize;

use super::{Cause, IterationId, RebootRecord, journal::JournalEntry, journal::Step, words};

words! {
    /// How a reboot came out.
    Outcome, "the outcome of a reboot", {
        /// The new session has the handoff.
        Done = "done",
        /// It was given up before anything was done to the old session.
        Cancelled = "cancelled",
        /// The old session was resumed.
        RolledBack = "rolled_back",
        /// Neither.
        Failed = "failed",
    }
}

impl Outcome {
    /// How a reboot came out that went from `before` to the final step `last`.
    #[must_use]
    pub const fn of(before: Option<Step>, last: Step) -> Option<Self> {
        Some(match (last, before) {
            (Step::Done, _) => Self::Done,
            (Step::Failed, Some(Step::RollingBack)) => Self::RolledBack,
            (
                Step::Failed,
                None | Some(Step::Armed | Step::Drafting | Step::Review | Step::Waiting),
            ) => Self::Cancelled,
            // Refused: something that the new session needs is missing.
            (Step::Failed, _) => Self::Failed,
            _ => return None,
        })
    }
}

/// The figure of a reboot that is over; `before` is the step written before this one.
#[must_use]
pub fn of_reboot(before: Option<Step>, entry: &JournalEntry) -> Option<Metric> {
    let outcome = Outcome::of(before, entry.step)?;
    Some(Metric {
        iteration: Some(entry.iteration),
        name: format!("reboot:{}:{outcome}", entry.cause),
        at: entry.at,
        value: 1.0,
    })
}

/// The figures of the reboot that began an iteration.
#[must_use]
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
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Metric {
    /// The iteration it is of; none: of the run as a whole.
    pub iteration: Option<IterationId>,
    /// What was measured, with its unit, such as `reboot_ms`.
    pub name: String,
    /// When.
    pub at: DateTime<Utc>,
    /// How much.
    pub value: f64,
}

/// The figures of one name, taken together.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Total {
    /// Their name.
    pub name: String,
    /// How many there are.
    pub count: u64,
    /// Their sum.
    pub sum: f64,
    /// The largest.
    pub max: f64,
}

impl Total {
    /// The cause and the outcome, if it counts reboots.
    #[must_use]
    pub fn reboots(&self) -> Option<(Cause, Outcome)> {
        let (cause, outcome) = self.name.strip_prefix("reboot:")?.split_once(':')?;
        Some((cause.parse().ok()?, outcome.parse().ok()?))
    }

    /// The step, if it measures one.
    #[must_use]
    pub fn step(&self) -> Option<Step> {
        self.name.strip_prefix("step:")?.parse().ok()
    }

    /// The mean.
    #[must_use]
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
