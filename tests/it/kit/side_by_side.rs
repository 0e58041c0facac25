//! Scenarios of one test that mostly wait, each in a thread of its own.

// The kit is shared, and each test uses a part of it.
#![allow(dead_code)]

use std::thread;

/// Runs all of them at once. Their threads have the test's name, so that a failure names it.
pub fn side_by_side<T: Send>(scenarios: impl IntoIterator<Item = T>, run: impl Fn(T) + Sync) {
    let run = &run;
    let test = thread::current().name().unwrap_or("a test").to_owned();
    thread::scope(|scope| {
        for scenario in scenarios {
            let thread = thread::Builder::new().name(test.clone());
            let begun = thread.spawn_scoped(scope, move || run(scenario));
            begun.expect("a thread starts");
        }
    });
}
