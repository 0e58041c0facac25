//! The errors that prevent supervision or end it: each with what to do about it, and the exit code.

use std::{io, path::PathBuf};

use crate::runtime::prepare::{ADDRESS_SPACE, DESCRIPTORS_AT_START};
use pitstop_agent::AgentKind;
use pitstop_base::{
    clean::chain,
    exit::{FAILED, NO_AGENT, PANICKED, USAGE},
};
use pitstop_core::config::load::paths::PathsError;
use pitstop_server::ApiError;
use pitstop_store::{FilesError, StoreError, lock::LockError};

/// The reason why no screen can be drawn.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NoTerminal {
    /// There is no terminal.
    #[error("standard input or output is a file or a pipe")]
    NotOne,
    /// The environment does not name its kind.
    #[error("TERM is not set")]
    Unnamed,
    /// It prints lines, and can neither clear its screen nor move its cursor.
    #[error("one with TERM=dumb only prints lines")]
    Dumb,
}

impl NoTerminal {
    /// Returns what to do about it.
    const fn hint(self) -> &'static str {
        match self {
            Self::NotOne => {
                "run pitstop in a terminal; `pitstop run --headless` needs none, and `pitstop status --json` is for scripts"
            }
            Self::Unnamed | Self::Dumb => {
                "use another terminal, or set TERM to its name if it can draw, as in TERM=xterm-256color; \
                 `pitstop run --headless` and `pitstop status` need none"
            }
        }
    }
}

/// The reason why nothing could be supervised, or why it ended.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// There is no terminal to draw on.
    #[error("pitstop needs a terminal to draw on: {why}")]
    NoTerminal {
        /// The reason why there is none.
        why: NoTerminal,
        /// True if an autonomous run was asked for, which can do without.
        run: bool,
    },
    /// Times before 1970 cannot be distinguished.
    #[error("the system's clock is set before 1970")]
    Clock,
    /// The limit of the address space, in MiB, is too low.
    #[error("the address space is limited to {0} MiB, expected at least {least}", least = ADDRESS_SPACE >> 20)]
    AddressSpace(u64),
    /// The limit of open files is too low.
    #[error("no {DESCRIPTORS_AT_START} files can be opened: {0}")]
    Descriptors(io::Error),
    /// The project is not known.
    #[error("cannot find the current directory: {0}")]
    Directory(io::Error),
    /// The demo's directories cannot be made in this one.
    #[error("cannot make a directory for the demo in {dir}: {1}", dir = .0.display())]
    DemoDirectory(PathBuf, io::Error),
    /// The configuration has faults, which have been shown.
    #[error("the configuration has errors")]
    Configuration,
    /// The template of the handoff cannot be used.
    #[error("{0}")]
    Template(String),
    /// The option `--agent` has nothing after it.
    #[error("expected a command after --agent, found nothing")]
    NoCommand,
    /// The command behind the option `--agent` has a quote without its end.
    #[error("a quote in the command after --agent is not closed")]
    OpenQuote,
    /// The agent's program is not there under this name, or in the `PATH`.
    #[error("{}", no_program(.1))]
    NoAgent(AgentKind, String),
    /// The agent would end by itself.
    #[error("the agent must be interactive, but -p is among its arguments")]
    NotInteractive,
    /// The start time of our process is not known; a process is identified by its number and start time.
    #[error("cannot read the start time of pitstop's own process")]
    NoProcess,
    /// Another supervisor answers, though the lock was removed.
    #[error("pitstop is already running here: it answers on {}", .0.display())]
    Answered(PathBuf),
    /// Our directory in the project cannot be used.
    #[error("{}", chain(.0))]
    ProjectFiles(FilesError),
    /// A file cannot be used.
    #[error(transparent)]
    Files(#[from] FilesError),
    /// Another supervisor holds the project's lock, or it cannot be used.
    #[error(transparent)]
    Lock(#[from] LockError),
    /// The database cannot be used by this version, or is none.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The control socket, the tokens or the port cannot be made.
    #[error(transparent)]
    Api(#[from] ApiError),
    /// The locations of files are not known.
    #[error(transparent)]
    Paths(#[from] PathsError),
    /// The system refused.
    #[error(transparent)]
    Io(#[from] io::Error),
    /// The loop has panicked.
    #[error("pitstop has crashed: this is a bug in pitstop")]
    Broken,
}

impl StartError {
    /// Returns what to do about it; empty if the error's text is enough.
    pub const fn hint(&self) -> &'static str {
        match self {
            Self::NoTerminal { run: true, .. } => "add --headless to run without one",
            Self::NoTerminal { why, .. } => why.hint(),
            Self::Clock => {
                "set it: runs, their files and usage limits are distinguished by the time"
            }
            Self::AddressSpace(_) => "raise the limit, for example by `ulimit -v unlimited`",
            Self::Descriptors(_) => "raise the limit, for example by `ulimit -n 1024`",
            Self::DemoDirectory(..) => {
                "set TMPDIR to one that you can write, or use `pitstop demo --here`"
            }
            Self::Configuration => "`pitstop check` shows them again",
            Self::Template(_) => "correct it, or remove it to use the built-in one",
            Self::NoAgent(AgentKind::Claude, _) => {
                "install Claude Code (npm install -g @anthropic-ai/claude-code), set [agent] command, or see how \
                 pitstop works without it: pitstop demo"
            }
            Self::NoAgent(..) => "expected a command, or the path of a program, after --agent",
            Self::NotInteractive => "`claude -p` needs no pane: run it without pitstop",
            Self::NoProcess => "is /proc mounted?",
            Self::Lock(LockError::Held(_)) | Self::Answered(_) => {
                "one pitstop runs per project: `pitstop attach` shows it, `pitstop stop` ends it"
            }
            Self::ProjectFiles(FilesError::Io { .. }) => {
                "pitstop keeps notes and runs in .pitstop of the project: see that files can be written there"
            }
            Self::ProjectFiles(_) => {
                "pitstop keeps its files in .pitstop of the project and does not follow links there: move the link away"
            }
            Self::Broken => {
                "start it again: it finds what this one left and names the session; the log has the report"
            }
            _ => "",
        }
    }

    /// Returns the exit code.
    pub const fn code(&self) -> i32 {
        match self {
            Self::NoTerminal { .. }
            | Self::NoCommand
            | Self::OpenQuote
            | Self::NotInteractive
            | Self::Configuration
            | Self::Template(_) => USAGE,
            Self::NoAgent(..) => NO_AGENT,
            Self::Broken => PANICKED,
            _ => FAILED,
        }
    }
}

/// Says that there is no program of this name.
fn no_program(name: &str) -> String {
    if name.contains('/') {
        format!("there is no program at `{name}`")
    } else {
        format!("the agent `{name}` was not found in the PATH")
    }
}
