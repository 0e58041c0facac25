//! The integration tests: one binary, a module per feature.

mod agent;
mod config;
mod api;
mod kit;
mod lineage;
mod breakpoint;
mod kit;
mod transcript;
