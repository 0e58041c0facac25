//! The integration tests: one binary, a module per feature.

#![allow(clippy::disallowed_methods, reason = "real programs take real time")]

mod agent;
mod api;
mod breakpoint;
mod commands;
mod config;
mod context;
mod copy;
mod handoff;
mod hooks;
mod host;
mod kit;
mod layering;
mod lineage;
mod outward;
mod pane;
mod reboot;
mod recovery;
mod replay;
mod transcript;
mod trim;
mod ui;
