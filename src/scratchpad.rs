//! Room `scratchpad`.
