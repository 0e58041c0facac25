//! The session of the hosted agent: the reports of its hooks, its status line, its title, its screen and its transcript, and their
//! consequences.
//!
//! It calls the run, the reboot and the handoff, and is called by none of them.

pub mod activity;
pub mod agent;
pub mod bridge;
pub mod client_limit;
pub mod compaction;
pub mod cost;
pub mod daemon;
pub mod elsewhere;
pub mod figures;
pub mod hookless;
pub mod host_output;
pub mod human;
pub mod payoff;
pub mod permission;
pub mod places;
pub mod process;
pub mod prompt;
pub mod rewind;
pub mod signs;
pub mod suspend;
pub mod turn;
