//! Room `runtime`.

pub mod input;
