//! The exit codes of every command, and their meanings for the manual.

/// The exit code of success.
pub const OK: i32 = 0;
/// The exit code if the request was refused, or something failed.
pub const FAILED: i32 = 1;
/// The exit code if the command line asks for something impossible, or the configuration has faults.
pub const USAGE: i32 = 2;
/// The exit code if no supervisor runs here.
pub const NONE_RUNS: i32 = 3;
/// The exit code of an autonomous run that has reached a cap.
pub const CAP: i32 = 3;
/// The exit code of an autonomous run that a breaker has stopped.
pub const BREAKER: i32 = 4;
/// The exit code if the agent cannot be run.
pub const NO_AGENT: i32 = 5;
/// The exit code if we panicked: that of every Rust program that does.
pub const PANICKED: i32 = 101;
/// The exit code if a signal has ended it.
pub const INTERRUPTED: i32 = 130;

/// Each code with its meaning, in the order of the codes.
pub const MEANINGS: [(i32, &str); 8] = [
    (OK, "done; of `run`: the stop phrase was given, or you quit"),
    (FAILED, "refused, or something failed"),
    (USAGE, "the command line or the configuration is wrong"),
    (
        NONE_RUNS,
        "no supervisor runs for this directory, and of `history` none ever did; of `run`: a cap was reached",
    ),
    (BREAKER, "of `run`: a breaker has tripped"),
    (NO_AGENT, "the agent cannot be run"),
    (PANICKED, "a bug in pitstop: the log has the report"),
    (INTERRUPTED, "a signal has ended it"),
];
