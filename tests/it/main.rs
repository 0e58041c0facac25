//! The integration tests: one binary, a module per feature.

#![allow(clippy::disallowed_methods, reason = "real programs take real time")]
#![allow(
    clippy::too_many_lines,
    reason = "a test is one sequence from beginning to end"
)]

mod agent;
mod api;
mod attach;
mod autopilot;
mod bad_inputs;
mod breakpoint;
mod bridge;
mod browser;
mod checkpoint;
mod client;
mod client_limit;
mod cold_cache;
mod commands;
mod compaction;
mod company;
mod config;
mod conformance;
mod context;
mod copy;
mod cost;
mod demo;
mod docs;
mod doors;
mod faults;
mod feed;
mod fidelity;
mod first_minutes;
mod fleet;
mod fuzz;
mod git_hook;
mod handoff;
mod hooks;
mod host;
mod host_output;
mod hostile;
mod hover;
mod keyboard;
mod kit;
mod layering;
mod lineage;
mod long_turn;
mod night;
mod notify;
mod packaging;
mod pane;
mod permission;
mod phone;
mod picker;
mod places;
mod plugin;
mod prepare;
mod reboot;
mod recovery;
mod replay;
mod scratchpad;
mod secrets;
mod session;
mod shape;
mod shared_transcripts;
mod slow_disk;
mod ssh;
mod submit;
mod summary;
mod test_command;
mod tools;
mod transcript;
mod trim;
mod ui;
mod week;
mod work_place;
