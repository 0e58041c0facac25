//! Room `config`.
