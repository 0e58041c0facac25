//! Room `cli`.

pub mod check;
