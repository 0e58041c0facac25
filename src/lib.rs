//! `pitstop`: a terminal supervisor for Claude Code.
//!
//! It hosts `claude` in a PTY pane, shows how full its context window is, keeps the notes that must
//! survive, and reboots it into a fresh session that carries on from a handoff which the user has
//! seen and which is proven to have arrived.
//!
//! # The map
//!
//! A room (a module of this list) uses only rooms named before it (`tests/it/layering.rs` holds the exact lists).
//!
//! - [`clock`]: the moment handed to the pure core
//! - [`clean`]: the one display sanitizer
//! - [`private_file`]: opens files where others may have put something else
//! - [`format`]: figures for people
//! - [`process`]: processes by number and start time
//! - [`redact`]: masks secrets wherever something is stored or printed
//! - [`transcript`]: the conversation: Claude Code's record of a session
//! - [`keymap`]: chords, actions and the keys for them
//! - [`bridge`]: the client's own side of a session: its reports, and the requests to it
//! - [`scratchpad`]: the notes as text: sections, checklist, merge of two edits
//! - [`terminal`]: the emulator: bytes to cells, keys to bytes
//! - [`pane`]: the hosted program: its PTY, recording and replay
//! - [`agent`]: the hosted program, as far as Pitstop must know it
//! - [`breakpoint`]: good moments to stop
//! - [`guard`]: the fill of the context window, and the advice for it
//! - [`handoff`]: the message that the next session is given
//! - [`lineage`]: the chain of iterations
//! - [`store`]: the stored data: the database, private files, the lock
//! - [`autopilot`]: the unattended run: stop phrase, caps, breakers, the decision to go on
//! - [`config`]: the settings of the user
//! - [`api`]: the endpoints for hooks, scripts and people elsewhere
//! - [`app`]: the pure core
//! - [`ui`]: the views, one file per panel
//! - [`runtime`]: the imperative shell
//! - [`logging`]: the log file
//! - [`supervisor`]: the life of a supervisor, from the project's lock to its last line
//! - [`cli`]: one file per subcommand
//!
//! [`format`]: mod@format

#![cfg_attr(
    test,
    allow(
        clippy::too_many_lines,
        reason = "a test is one sequence from beginning to end"
    )
)]

pub mod agent;
pub mod api;
pub mod app;
pub mod autopilot;
pub mod breakpoint;
pub mod bridge;
pub mod clean;
pub mod cli;
pub mod clock;
pub mod config;
pub mod format;
pub mod guard;
pub mod handoff;
pub mod keymap;
pub mod lineage;
pub mod logging;
pub mod pane;
pub mod private_file;
pub mod process;
pub mod redact;
pub mod runtime;
pub mod scratchpad;
pub mod store;
pub mod supervisor;
pub mod terminal;
pub mod transcript;
pub mod ui;
