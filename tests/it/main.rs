//! The integration tests: one binary, a module per feature.

mod breakpoint;
mod kit;
mod transcript;
