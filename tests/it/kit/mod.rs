//! The kit: what tests need to drive the whole program.

pub mod client;
pub mod events;
pub mod failure;
pub mod grid;
pub mod home;
pub mod input;
pub mod messages_api;
pub mod output;
pub mod played;
pub mod player;
pub mod poll;
pub mod process;
pub mod prompt_cache;
pub mod schema;
pub mod shape;
pub mod side_by_side;
pub mod small_disk;
pub mod supervisor;
pub mod terminal;
pub mod tmux;
pub mod transcripts;
