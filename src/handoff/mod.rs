//! Room `handoff`.
