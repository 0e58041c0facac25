//! The integration tests: one binary, a module per feature.

mod config;
mod kit;
