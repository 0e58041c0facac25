//! Waiting for a condition by asking again and again.

// Shared by tests and an example, and each uses a part of it.
#![allow(dead_code)]

use std::{
    thread,
    time::{Duration, Instant},
};

/// How long to wait between two questions.
const PAUSE: Duration = Duration::from_millis(10);

/// Asks until `found` gives something; panics with what `failure` says once `limit` is over.
#[track_caller]
pub fn until<T>(
    limit: Duration,
    mut found: impl FnMut() -> Option<T>,
    failure: impl FnOnce() -> String,
) -> T {
    let end = Instant::now() + limit;
    loop {
        if let Some(found) = found() {
            return found;
        }
        assert!(Instant::now() < end, "{}", failure());
        thread::park_timeout(PAUSE);
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
    while !holds() {
        if Instant::now() >= end {
            return false;
        }
        thread::park_timeout(PAUSE);
    }
    true
}
