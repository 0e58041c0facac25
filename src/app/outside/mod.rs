//! What people and scripts outside ask for and are answered: orders, reports, events.

pub mod control;
pub mod news;
pub mod report;
pub mod reported;
pub mod restore;
pub mod tools;
