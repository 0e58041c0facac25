//! The hosted terminal: a program on a PTY, the recording of what it shows, and its replay.
//!
//! ```text
//!   child ──bytes──▶ pty (reader thread) ──▶ loop ──▶ Screen ──▶ cells, cursor, modes   read by ui
//!     ▲                                                 ├──────▶ facts                  for the loop
//!     └──── pty (writer thread, bounded queue) ◀────────┴ replies + keys::encode_*
//! ```
//!
//! This module does not depend on what the child program is. Only `pty` and `recording` use the operating system.

pub mod pty;
pub mod recording;
pub mod replay;

use std::ffi::OsString;
use std::path::PathBuf;

/// The program to run in a pane, with its arguments, environment and directory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PaneSpec {
    /// The program: a path, or a name looked up in the `PATH` of `env`.
    pub program: OsString,
    /// The arguments of the program, without its own name.
    pub args: Vec<OsString>,
    /// The complete environment: nothing is inherited.
    pub env: Vec<(OsString, OsString)>,
    /// The directory that it starts in.
    pub cwd: PathBuf,
}
