//! The integration tests: one binary, a module per feature.

#![allow(clippy::disallowed_methods, reason = "real programs take real time")]

mod agent;
mod api;
mod autopilot;
mod breakpoint;
mod checkpoint;
mod client;
mod client_limit;
mod commands;
mod compaction;
mod config;
mod conformance;
mod context;
mod copy;
mod demo;
mod doors;
mod feed;
mod fidelity;
mod fuzz;
mod git_hook;
mod handoff;
mod hooks;
mod host;
mod hostile;
mod hover;
mod keyboard;
mod kit;
mod layering;
mod lineage;
mod outward;
mod pane;
mod places;
mod prepare;
mod reboot;
mod recovery;
mod replay;
mod scratchpad;
mod secrets;
mod session;
mod submit;
mod summary;
mod test_command;
mod transcript;
mod trim;
mod ui;
