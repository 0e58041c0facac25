//! The kit: what tests need to drive the whole program.

pub mod events;
pub mod grid;
pub mod home;
pub mod messages_api;
pub mod schema;
pub mod supervisor;
pub mod terminal;
pub mod tmux;
