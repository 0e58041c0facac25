//! Room `guard`.
