//! The life of a supervisor, from the project's lock to the last line on the terminal.
//!
//! ```text
//!   lock → ask the socket → files → recover → store → doors → run → close
//! ```
//!
//! [`boot`] has a function for each step, in this order. Nothing is started before the lock is held, no supervisor answers
//! on the project's socket, and what a dead one left has ended. The room refuses to know flags (`cli`), and what happens
//! while the agent runs (`runtime`).

#![allow(
    clippy::disallowed_methods,
    reason = "it touches the world, before the loop and after it"
)]

pub mod boot;
mod claim;
mod doors;
mod error;
mod farewell;
pub mod program;
mod recover;

use std::path::PathBuf;

use crate::{
    autopilot::Plan,
    config::{
        Config,
        load::{Flags, paths::Paths},
    },
    handoff::Generator,
    lineage::checkpoint::Checkpoint,
    runtime::front::Speech,
};

pub use boot::{check_system, run};
pub use error::StartError;

use program::Hosted;

/// What is to be supervised, where, and how.
#[derive(Debug)]
pub struct Start {
    /// The directory, without links.
    pub project: PathBuf,
    /// Where everything lies.
    pub paths: Paths,
    /// What the command line says about the configuration, for reloads.
    pub flags: Flags,
    /// The configuration.
    pub config: Config,
    /// Writes the handoff.
    pub generator: Generator,
    /// What the user must be shown once there is a screen.
    pub warnings: Vec<String>,
    /// The agent.
    pub agent: Hosted,
    /// The name under which checkpoints are filed.
    pub environment: String,
    /// What the agent is to do.
    pub work: Work,
    /// Whether a person is shown around.
    pub tour: bool,
}

/// What the agent is to do.
#[derive(Debug)]
pub enum Work {
    /// What a person asks of it.
    Session,
    /// One task, over many sessions.
    Run(Box<Task>),
    /// To go on from a checkpoint.
    Restore(Box<Checkpoint>),
}

/// The task of an autonomous run.
#[derive(Debug)]
pub struct Task {
    /// The rules of the run.
    pub plan: Plan,
    /// The file that holds the task, if it is one.
    pub file: Option<PathBuf>,
    /// How the run speaks without a terminal; `None` with one.
    pub speech: Option<Speech>,
}

impl Work {
    const fn task(&self) -> Option<&Task> {
        match self {
            Self::Run(task) => Some(task),
            Self::Session | Self::Restore(_) => None,
        }
    }

    fn speech(&self) -> Option<Speech> {
        self.task().and_then(|task| task.speech)
    }
}
