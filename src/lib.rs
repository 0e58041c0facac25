//! `pitstop`: a terminal supervisor for Claude Code.
//!
//! It hosts `claude` in a PTY pane, shows how full its context window is, keeps the notes that must
//! survive, and reboots it into a fresh session that carries on from a handoff which the user has
//! seen and which is proven to have arrived.
//!
//! # The map
//!
//! The product is this crate; what it is made of is in `crates/`. A crate uses only crates named before it, as its manifest
//! says; a module of this crate uses only modules named before it (`tests/it/layering.rs`).
//!
//! - [`pitstop_base`]: cleaned text, moments, processes, keys, private files, masked secrets
//! - [`pitstop_terminal`]: the emulator, bytes to cells and keys to bytes, and the PTY of the hosted program
//! - [`pitstop_transcript`]: Claude Code's record of a session
//! - [`pitstop_agent`]: how the hosted program is started, and the bridge into it
//! - [`pitstop_handoff`]: the message that the next session is given, and what it is made of
//! - [`pitstop_core`]: every decision, without I/O: settings, guard, unattended run, the model and its events
//! - [`pitstop_store`]: the stored data: the database, private files, the lock
//! - [`pitstop_server`]: the endpoints for hooks, scripts and people elsewhere, and the client for them
//! - [`pitstop_demo`]: the scripted agent of `pitstop demo`
//! - [`ui`]: the views, one file per panel
//! - [`logging`]: the log file
//! - [`runtime`]: carries out what the core decides
//! - [`supervisor`]: the life of a supervisor, from the project's lock to its last line
//! - [`cli`]: one file per subcommand

#![cfg_attr(
    test,
    allow(
        clippy::too_many_lines,
        reason = "a test is one sequence from beginning to end"
    )
)]

pub mod cli;
pub mod logging;
pub mod runtime;
pub mod supervisor;
pub mod ui;
