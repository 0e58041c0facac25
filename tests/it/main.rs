//! The integration tests: one binary, a module per feature.

mod kit;
mod lineage;
