//! The integration tests: one binary, a module per feature.

#![allow(clippy::disallowed_methods, reason = "real programs take real time")]

mod agent;
mod api;
mod breakpoint;
mod checkpoint;
mod commands;
mod compaction;
mod config;
mod context;
mod feed;
mod handoff;
mod hooks;
mod host;
mod hostile;
mod kit;
mod layering;
mod lineage;
mod pane;
mod reboot;
mod recovery;
mod transcript;
mod trim;
mod ui;
