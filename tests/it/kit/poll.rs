//! Waiting for a condition by asking again and again.

// Shared by tests and an example, and each uses a part of it.
#![allow(dead_code)]

use std::{
    thread,
    time::{Duration, Instant},
};

/// The shortest pause between two questions.
const PAUSE: Duration = Duration::from_millis(10);

/// The longest one.
const LONGEST_PAUSE: Duration = Duration::from_millis(500);

/// Pauses between two questions: three times as long as the question took, so that asking takes at most a quarter of a
/// processor, and less on a busy machine, where questions that start a program would keep each other from an answer.
pub fn pause_after(question: Duration) {
    thread::park_timeout((question * 3).clamp(PAUSE, LONGEST_PAUSE));
}

/// Asks until `found` gives something; panics with what `failure` says once `limit` is over.
#[track_caller]
pub fn until<T>(
    limit: Duration,
    mut found: impl FnMut() -> Option<T>,
    failure: impl FnOnce() -> String,
) -> T {
    let end = Instant::now() + limit;
    loop {
        let asked = Instant::now();
        if let Some(found) = found() {
            return found;
        }
        assert!(Instant::now() < end, "{}", failure());
        pause_after(asked.elapsed());
    }
}

/// Asks until `holds` is true; panics with what `failure` says once `limit` is over.
#[track_caller]
pub fn until_true(limit: Duration, holds: impl FnMut() -> bool, failure: impl FnOnce() -> String) {
    assert!(within(limit, holds), "{}", failure());
}

/// Asks until `holds` is true; false once `limit` is over. It is asked at least once.
pub fn within(limit: Duration, mut holds: impl FnMut() -> bool) -> bool {
    let end = Instant::now() + limit;
    loop {
        let asked = Instant::now();
        if holds() {
            return true;
        }
        if Instant::now() >= end {
            return false;
        }
        pause_after(asked.elapsed());
    }
}
