//! Limits on how often something may be done.

use std::collections::VecDeque;

use tokio::time::{Duration, Instant};

/// The time over which is counted.
const PERIOD: Duration = Duration::from_secs(60);

/// A limit on how often something may be done in a minute.
#[derive(Debug)]
pub(super) struct Limit {
    most: usize,
    times: VecDeque<Instant>,
}

impl Limit {
    pub(super) const fn new(most: usize) -> Self {
        Self {
            most,
            times: VecDeque::new(),
        }
    }

    /// Counts one more time, or returns false if it was done as often as it may be.
    pub(super) fn admits(&mut self, now: Instant) -> bool {
        while let Some(first) = self.times.front()
            && now.duration_since(*first) >= PERIOD
        {
            self.times.pop_front();
        }
        let admitted = self.times.len() < self.most;
        if admitted {
            self.times.push_back(now);
        }
        admitted
    }

    /// Takes back what was counted last.
    pub(super) fn take_back(&mut self) {
        self.times.pop_back();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[allow(clippy::disallowed_methods, reason = "any time will do")]
    fn a_limit_counts_the_last_minute() {
        let (mut limit, start) = (Limit::new(2), Instant::now());
        let mut at = |seconds| limit.admits(start + Duration::from_secs(seconds));
        assert_eq!(
            [0, 30, 59, 60, 61, 90].map(&mut at),
            [true, true, false, true, false, true]
        );
        limit.take_back();
        assert!(limit.admits(start + Duration::from_secs(91)));
    }
}
