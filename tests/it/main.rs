//! The integration tests: one binary, a module per feature.

mod agent;
mod api;
mod breakpoint;
mod config;
mod context;
mod host;
mod hooks;
mod kit;
mod layering;
mod lineage;
mod reboot;
mod recovery;
mod pane;
mod transcript;
mod ui;
