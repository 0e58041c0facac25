//! Failures are shown when they happen: the test harness keeps them until the last test has ended, and a log that is cut
//! short loses them.

use std::{io::Write as _, panic, sync::Once, thread};

/// How much of a failure is shown at once, from its beginning and from its end, in bytes. A screen and a log can be long.
const SHOWN: usize = 4_000;

/// Shows each failed assertion at once; the harness's own report at the end is unchanged. Calls after the first do nothing.
pub fn show_at_once() {
    static INSTALLED: Once = Once::new();
    INSTALLED.call_once(|| {
        let usual = panic::take_hook();
        panic::set_hook(Box::new(move |info| {
            let thread = thread::current();
            let text = format!("\n{}: {info}\n", thread.name().unwrap_or("a thread"));
            let (head, rest) = text.split_at(text.floor_char_boundary(SHOWN));
            let tail = &rest[rest.ceil_char_boundary(rest.len().saturating_sub(SHOWN))..];
            let cut = if tail.len() < rest.len() {
                "\n[cut]\n"
            } else {
                ""
            };
            // Past the harness, which captures only what the macros print.
            let _ = std::io::stderr()
                .lock()
                .write_all(format!("{head}{cut}{tail}").as_bytes());
            usual(info);
        }));
    });
}
