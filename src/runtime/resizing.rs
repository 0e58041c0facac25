//! The timing of the child's new sizes, while the host terminal's window is being dragged.
//!
//! The first change is sent at once. Further ones wait until the window rests, or for as long as a human would put up
//! with: each makes the child redraw everything, and one that draws in line leaves a screenful of it in the
//! scrollback.

use std::time::{Duration, Instant};

use pitstop_terminal::PaneSize;

/// The time that a window must keep its size to be at rest.
const REST: Duration = Duration::from_millis(120);

/// The shortest time between two sizes sent while it does not rest: three in a second.
const BETWEEN: Duration = Duration::from_millis(400);

/// The sizes that have not been sent yet.
#[derive(Debug, Default)]
pub struct Resizing {
    reported_at: Option<Instant>,
    waiting: Option<(PaneSize, Instant)>,
}

impl Resizing {
    /// Takes the pane's size that follows from the window's new size; returns true if it must be sent now.
    pub fn ask(&mut self, size: PaneSize, now: Instant) -> bool {
        match self.reported_at.map(|at| at + BETWEEN) {
            Some(next) if now < next => {
                self.waiting = Some((size, next.min(now + REST)));
                false
            }
            _ => {
                self.sent(now);
                true
            }
        }
    }

    /// Notes that a size was sent: one that waited is out of date.
    pub const fn sent(&mut self, now: Instant) {
        self.reported_at = Some(now);
        self.waiting = None;
    }

    /// Forgets what waits: the user has changed the layout, and that is sent at once.
    pub const fn forget(&mut self) {
        self.waiting = None;
    }

    /// Returns the time at which the size that waits must be sent.
    pub fn deadline(&self) -> Option<Instant> {
        self.waiting.map(|(_, due)| due)
    }

    /// Takes the size that is due by now.
    pub fn due(&mut self, now: Instant) -> Option<PaneSize> {
        let (size, _) = self.waiting.filter(|(_, due)| *due <= now)?;
        self.sent(now);
        Some(size)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the sizes sent, with their time in milliseconds, for changes at these times.
    fn sent(changes: impl IntoIterator<Item = u64>) -> Vec<(u64, u16)> {
        let mut resizing = Resizing::default();
        let begin = Instant::now();
        let mut changes = changes.into_iter().zip(1_u16..).peekable();
        let mut sent = Vec::new();
        for time in 0..5000 {
            let now = begin + Duration::from_millis(time);
            if let Some((_, column)) = changes.next_if(|(at, _)| *at == time)
                && resizing.ask(PaneSize::new(column, 1), now)
            {
                sent.push((time, column));
            }
            assert!(resizing.deadline().is_none_or(|due| due <= now + BETWEEN));
            if let Some(size) = resizing.due(now) {
                sent.push((time, size.columns()));
            }
        }
        assert_eq!(resizing.deadline(), None);
        sent
    }

    #[test]
    fn a_single_change_is_sent_at_once() {
        assert_eq!(sent([7]), [(7, 1)]);
        assert_eq!(sent([7, 1000]), [(7, 1), (1000, 2)]);
    }

    #[test]
    fn of_twenty_changes_in_a_second_four_are_sent_and_the_last_one_is() {
        let sent = sent((0..20).map(|number| number * 50));
        assert_eq!(sent, [(0, 1), (400, 9), (800, 17), (1070, 20)]);
    }

    #[test]
    fn a_window_that_rests_does_not_wait_any_longer() {
        assert_eq!(sent([0, 10, 20]), [(0, 1), (140, 3)]);
    }
}
