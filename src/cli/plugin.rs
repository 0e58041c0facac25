//! `pitstop plugin install|remove DIR`: the gauge, the warnings, the handoff and the reboot in place as a plugin of the client itself.
//!
//! ```text
//!   claude ─ plugin (JavaScript) ─┬─ at each figure ──────► pitstop plugin gauge      the guard's rules
//!                                 └─ at the end of a turn ► pitstop plugin handoff    the core's handoff, into DIR/handoffs
//! ```
//!
//! No supervisor is there: each call is a process of its own, which reads a question as JSON on standard input, prints the answer as
//! JSON, and knows nothing of the calls before.

mod files;
mod gauge;
mod handoff;

use std::path::PathBuf;

use clap::{Args, Subcommand};
use serde::{Serialize, de::DeserializeOwned};

use super::out::{self, Failure, Outcome};
use pitstop_core::config::load::Flags;

/// The most bytes of a question that are read: a path is the longest part of one.
const QUESTION_LIMIT: u64 = 64 * 1024;

/// Install pitstop as a plugin of your own Claude Code, which then needs no pitstop around it.
///
/// It writes into the directory that you name, which must be empty or hold an earlier one, and nowhere else.
#[derive(Args, Clone, Debug)]
pub struct PluginArgs {
    /// What to do
    #[command(subcommand)]
    pub action: Action,
    /// Print one JSON object
    #[arg(long, global = true)]
    pub json: bool,
}

/// What to do.
#[derive(Clone, Debug, Subcommand)]
pub enum Action {
    /// Write the plugin into a directory, or bring the one that is there up to date
    Install {
        /// The directory: ~/.claude/skills/pitstop is loaded by each session of yours, any other by --plugin-dir
        #[arg(value_name = "DIR")]
        directory: PathBuf,
    },
    /// Remove the plugin with its handoffs
    Remove {
        /// The directory that it was written into
        #[arg(value_name = "DIR")]
        directory: PathBuf,
    },
}

/// Runs the command; 0, or 1 if nothing could be done.
pub fn run(args: &PluginArgs) -> Outcome {
    let text = match &args.action {
        Action::Install { directory } => files::install(directory, args.json),
        Action::Remove { directory } => files::remove(directory, args.json),
    };
    text.map(|text| out::print(&text))
}

/// Answers what the plugin asks at each figure; 0, or 1 if nothing is known.
pub fn answer_gauge() -> Outcome {
    print_answer(&gauge::answer(&question()?, &Flags::default())?)
}

/// Writes the handoff that the plugin asks for at the end of a turn and before a reboot; 0, or 1 if there is none.
pub fn answer_handoff() -> Outcome {
    print_answer(&handoff::answer(&question()?, &Flags::default())?)
}

/// Reads what the plugin asks.
fn question<T: DeserializeOwned>() -> Result<T, Failure> {
    let bytes = out::piped(QUESTION_LIMIT)?;
    serde_json::from_slice(&bytes).map_err(|error| {
        out::misused(
            format!("expected the plugin's question as JSON on standard input: {error}"),
            "this is called by the plugin; `pitstop plugin install DIR` brings one up to date",
        )
    })
}

fn print_answer(answer: &impl Serialize) -> Outcome {
    let json = serde_json::to_string(answer)?;
    Ok(out::print(&format!("{json}\n")))
}
