//! Room `lineage`.
