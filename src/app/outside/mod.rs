//! What people and scripts outside ask for and are answered: orders, reports, events.

pub mod changes;
pub mod control;
pub mod report;
pub mod reported;
pub mod restore;
pub mod tools;
