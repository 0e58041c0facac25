//! Room `cli`.

pub mod check;
pub mod trust;
