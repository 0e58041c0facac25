//! The integration tests: one binary, a module per feature.

mod agent;
mod kit;
mod ui;
