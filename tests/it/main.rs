//! The integration tests: one binary, a module per feature.

mod api;
mod kit;
