//! Plays a simulated night to pitstop with the real client: one run over many sessions, with all that a night brings.
//!
//! ```text
//! cargo run --release --example night                       60 sessions without a terminal, and 6 in one
//! cargo run --release --example night -- --sessions 12      fewer, or more
//! cargo run --release --example night -- --seed 7           another night; the seed of each is printed
//! cargo run --release --example night -- --kills 30         kills of pitstop in reboots on the fly, instead
//! ```
//!
//! It needs `PITSTOP_CLAUDE`, the path of the client. What it does and what must hold is in `tests/it/night.rs`, and for the kills
//! in `tests/it/long_turn/kills.rs`; it prints a line for each session, or kill. The exit code is 1 if something does not hold, and
//! 2 if the arguments are wrong.

#![allow(clippy::disallowed_methods, reason = "real programs take real time")]

use std::{
    env,
    process::{Command, ExitCode},
};

/// The tests that a night is, and those of the kills.
const NIGHT: &str = "night::";
const KILLS: &str = "long_turn::kills::";

/// The variables that the tests read, by the flags that set them.
const FLAGS: [(&str, &str); 3] = [
    ("--sessions", "PITSTOP_NIGHT_SESSIONS"),
    ("--seed", "PITSTOP_NIGHT_SEED"),
    ("--kills", "PITSTOP_TEST_KILLS"),
];

fn main() -> ExitCode {
    let mut tests = Command::new(env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    tests.current_dir(env!("CARGO_MANIFEST_DIR"));
    tests.args(["test", "--test", "it"]);
    if !cfg!(debug_assertions) {
        tests.arg("--release");
    }
    let mut what = NIGHT;
    let mut args = env::args().skip(1);
    while let Some(arg) = args.next() {
        let known = FLAGS.iter().find(|(flag, _)| *flag == arg);
        let value = args.next().filter(|value| value.parse::<u64>().is_ok());
        let (Some((flag, variable)), Some(value)) = (known, value) else {
            eprintln!("night: expected --sessions N, --seed N or --kills N, found {arg}");
            return ExitCode::from(2);
        };
        if *flag == "--kills" {
            what = KILLS;
        }
        tests.env(variable, value);
    }
    if env::var_os("PITSTOP_CLAUDE").is_none() {
        eprintln!("night: PITSTOP_CLAUDE is not set: the path of the client");
        return ExitCode::from(2);
    }
    tests.args([
        "--",
        what,
        "--ignored",
        "--nocapture",
        "--test-threads",
        "1",
    ]);
    match tests.status() {
        Ok(status) if status.success() => ExitCode::SUCCESS,
        Ok(_) => ExitCode::from(1),
        Err(error) => {
            eprintln!("night: cargo does not run: {error}");
            ExitCode::from(2)
        }
    }
}
