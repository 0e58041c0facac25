//! Caps: the limits of a run, and the check which of them it has reached.

use std::time::Duration;

use pitstop_base::format::dollars;

/// The limits of a run; `None` is no cap.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Caps {
    /// The number of iterations that the run may have.
    pub max_iterations: Option<u32>,
    /// The amount that the run may cost, in US dollars.
    pub max_cost_usd: Option<f64>,
    /// The time that the run may take.
    pub max_time: Option<Duration>,
}

/// The amounts that a run has used so far.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Spent {
    /// The number of iterations that the run has had, the present one among them.
    pub iterations: u64,
    /// The cost of the run, in US dollars, as far as the agent reports it.
    pub cost_usd: f64,
    /// The time that the run has taken.
    pub time: Duration,
}

/// A cap that was reached.
#[derive(Clone, Copy, Debug, PartialEq, thiserror::Error)]
pub enum Cap {
    /// The iterations.
    #[error("iteration cap of {0} reached (max_iterations)")]
    Iterations(u32),
    /// The cost, in US dollars.
    #[error("cost cap of {} reached (max_cost_usd)", dollars(*.0))]
    Cost(f64),
    /// The time.
    #[error("time cap of {} reached (max_time)", duration(*.0))]
    Time(Duration),
}

impl Caps {
    /// Returns the cap that ends the run now. The number of iterations does not end the last one: it may be used up.
    pub fn reached(&self, spent: &Spent) -> Option<Cap> {
        let cost = self.max_cost_usd.filter(|most| spent.cost_usd >= *most);
        let time = self.max_time.filter(|most| spent.time >= *most);
        cost.map(Cap::Cost).or(time.map(Cap::Time))
    }

    /// Returns the cap that forbids another iteration.
    pub fn forbids_another(&self, spent: &Spent) -> Option<Cap> {
        let full = |most: &u32| spent.iterations >= u64::from(*most);
        let iterations = self.max_iterations.filter(full).map(Cap::Iterations);
        iterations.or_else(|| self.reached(spent))
    }
}

/// Formats a duration for people, in its two largest units: `40 s`, `3 min 20 s`, `2 h 5 min`.
pub fn duration(time: Duration) -> String {
    let seconds = time.as_secs();
    match seconds {
        0..60 => format!("{seconds} s"),
        60..3600 if seconds.is_multiple_of(60) => format!("{} min", seconds / 60),
        60..3600 => format!("{} min {} s", seconds / 60, seconds % 60),
        _ if (seconds / 60).is_multiple_of(60) => format!("{} h", seconds / 3600),
        _ => format!("{} h {} min", seconds / 3600, seconds / 60 % 60),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CAPS: Caps = Caps {
        max_iterations: Some(3),
        max_cost_usd: Some(2.5),
        max_time: Some(Duration::from_secs(60)),
    };

    fn spent(iterations: u64, cost_usd: f64, seconds: u64) -> Spent {
        Spent {
            iterations,
            cost_usd,
            time: Duration::from_secs(seconds),
        }
    }

    #[test]
    fn the_last_iteration_may_be_used_up() {
        assert_eq!(CAPS.reached(&spent(3, 0.0, 0)), None);
        assert_eq!(CAPS.forbids_another(&spent(2, 0.0, 0)), None);
        assert_eq!(
            CAPS.forbids_another(&spent(3, 0.0, 0)),
            Some(Cap::Iterations(3))
        );
        // A person may reboot at will; an iteration that they have begun is not cut off.
        assert_eq!(CAPS.reached(&spent(4, 0.0, 0)), None);
    }

    #[test]
    fn cost_and_time_end_the_run_when_they_are_reached() {
        assert_eq!(CAPS.reached(&spent(1, 2.49, 59)), None);
        assert_eq!(CAPS.reached(&spent(1, 2.5, 0)), Some(Cap::Cost(2.5)));
        let minute = Duration::from_secs(60);
        assert_eq!(CAPS.reached(&spent(1, 0.0, 60)), Some(Cap::Time(minute)));
        assert_eq!(
            Caps::default().reached(&spent(9_999, 1e9, u64::MAX)),
            None,
            "no cap, no end"
        );
    }

    #[test]
    fn a_cap_names_its_key_and_its_value() {
        let words = [
            Cap::Iterations(3).to_string(),
            Cap::Cost(2.5).to_string(),
            Cap::Time(Duration::from_secs(7_500)).to_string(),
        ];
        assert_eq!(
            words,
            [
                "iteration cap of 3 reached (max_iterations)",
                "cost cap of $2.50 reached (max_cost_usd)",
                "time cap of 2 h 5 min reached (max_time)"
            ]
        );
        assert_eq!(duration(Duration::from_secs(14_400)), "4 h");
        assert_eq!(duration(Duration::from_secs(200)), "3 min 20 s");
    }
}
