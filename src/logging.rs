//! Room `logging`.
