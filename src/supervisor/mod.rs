//! The life of a supervisor, from the project's lock to the last line on the terminal.
//!
//! ```text
//!   lock → ask the socket → files → recover → store → doors → run → close
//! ```
//!
//! [`boot`] has a function for each step, in this order. Nothing is started before the lock is held, no supervisor answers
//! on the project's socket, and the agents that a dead one left have ended. This module must not know flags (`cli`), nor what
//! happens while the agent runs (`runtime`).

#![allow(
    clippy::disallowed_methods,
    reason = "it touches the world, before the loop and after it"
)]

pub mod boot;
mod claim;
mod doors;
mod error;
mod farewell;
mod port;
pub mod program;
mod recover;

use std::path::PathBuf;

use crate::runtime::lines::LineFormat;
use pitstop_core::{
    autopilot::Plan,
    config::{
        Config,
        load::{Flags, paths::Paths},
    },
    lineage::checkpoint::Checkpoint,
};
use pitstop_handoff::Generator;

pub use boot::{check_system, run};
pub use error::{NoTerminal, StartError};

use program::Hosted;

/// The description of what should be supervised, where, and how.
#[derive(Debug)]
pub struct Start {
    /// The directory, without links.
    pub project: PathBuf,
    /// The locations of all files.
    pub paths: Paths,
    /// The command line's settings for the configuration, for reloads.
    pub flags: Flags,
    /// The configuration.
    pub config: Config,
    /// The generator that writes the handoff.
    pub generator: Generator,
    /// The warnings that the user must be shown once there is a screen.
    pub warnings: Vec<String>,
    /// The agent.
    pub agent: Hosted,
    /// The name under which checkpoints are filed.
    pub environment: String,
    /// The work that the agent should do.
    pub work: Work,
    /// True if a person is shown around.
    pub tour: bool,
}

/// The work that the agent should do.
#[derive(Debug)]
pub enum Work {
    /// The work that a person asks of it.
    Session,
    /// One task, over many sessions.
    Run(Box<Task>),
    /// The continuation from a checkpoint.
    Restore(Box<Checkpoint>),
}

/// The task of an autonomous run.
#[derive(Debug)]
pub struct Task {
    /// The rules of the run.
    pub plan: Plan,
    /// The file that holds the task, if it is one.
    pub file: Option<PathBuf>,
    /// The output format of a run without a terminal; `None` with one.
    pub line_format: Option<LineFormat>,
    /// True if a run with this task that ended without notice does not go on.
    pub begins_new: bool,
}

impl Work {
    const fn task(&self) -> Option<&Task> {
        match self {
            Self::Run(task) => Some(task),
            Self::Session | Self::Restore(_) => None,
        }
    }

    fn line_format(&self) -> Option<LineFormat> {
        self.task().and_then(|task| task.line_format)
    }
}
