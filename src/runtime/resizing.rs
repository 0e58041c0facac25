//! When the child is told of its new size, while the host terminal's window is being dragged.
//!
//! The first change is told at once. Further ones wait until the window rests, or for as long as a human would put up
//! with: each makes the child draw everything anew, and one that draws in line leaves a screenful of it in the
//! scrollback.

use std::time::{Duration, Instant};

use crate::pane::PaneSize;

/// How long a window must keep its size to be at rest.
const REST: Duration = Duration::from_millis(120);

/// The shortest time between two sizes told while it does not rest: three in a second.
const BETWEEN: Duration = Duration::from_millis(400);

/// The sizes that have not been told yet.
#[derive(Debug, Default)]
pub struct Resizing {
    told_at: Option<Instant>,
    waiting: Option<(PaneSize, Instant)>,
}

impl Resizing {
    /// The window's new size makes this one of the pane: true if it is to be told now.
    pub fn ask(&mut self, size: PaneSize, now: Instant) -> bool {
        match self.told_at.map(|at| at + BETWEEN) {
            Some(next) if now < next => {
                self.waiting = Some((size, next.min(now + REST)));
                false
            }
            _ => {
                self.told(now);
                true
            }
        }
    }

    /// A size has been told: what waited is out of date.
    pub const fn told(&mut self, now: Instant) {
        self.told_at = Some(now);
        self.waiting = None;
    }

    /// Forgets what waits: the user has changed the layout, and that is told at once.
    pub const fn forget(&mut self) {
        self.waiting = None;
    }

    /// When the size that waits is to be told.
    #[must_use]
    pub fn deadline(&self) -> Option<Instant> {
        self.waiting.map(|(_, due)| due)
    }

    /// The size that is to be told by now.
    pub fn due(&mut self, now: Instant) -> Option<PaneSize> {
        let (size, _) = self.waiting.filter(|(_, due)| *due <= now)?;
        self.told(now);
        Some(size)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The sizes told, with their time in milliseconds, of changes at these times.
    fn told(changes: impl IntoIterator<Item = u64>) -> Vec<(u64, u16)> {
        let mut resizing = Resizing::default();
        let begin = Instant::now();
        let mut changes = changes.into_iter().zip(1_u16..).peekable();
        let mut told = Vec::new();
        for time in 0..5000 {
            let now = begin + Duration::from_millis(time);
            if let Some((_, column)) = changes.next_if(|(at, _)| *at == time)
                && resizing.ask(PaneSize::new(column, 1), now)
            {
                told.push((time, column));
            }
            assert!(resizing.deadline().is_none_or(|due| due <= now + BETWEEN));
            if let Some(size) = resizing.due(now) {
                told.push((time, size.columns()));
            }
        }
        assert_eq!(resizing.deadline(), None);
        told
    }

    #[test]
    fn a_single_change_is_told_at_once() {
        assert_eq!(told([7]), [(7, 1)]);
        assert_eq!(told([7, 1000]), [(7, 1), (1000, 2)]);
    }

    #[test]
    fn of_twenty_changes_in_a_second_four_are_told_and_the_last_one_is() {
        let told = told((0..20).map(|number| number * 50));
        assert_eq!(told, [(0, 1), (400, 9), (800, 17), (1070, 20)]);
    }

    #[test]
    fn a_window_that_rests_does_not_wait_any_longer() {
        assert_eq!(told([0, 10, 20]), [(0, 1), (140, 3)]);
    }
}
