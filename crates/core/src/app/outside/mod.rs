//! The requests of people and scripts outside, and the answers to them: orders, reports, events.

pub mod changes;
pub mod control;
pub mod report;
pub mod reported;
pub mod restore;
pub mod tools;
