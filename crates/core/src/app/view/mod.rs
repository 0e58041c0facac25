//! The parts of the host terminal: keys, focus, layout, copy mode, and what lies over the pane.

pub(in crate::app) mod editing;
pub mod external;
pub mod focus;
pub mod help;
pub mod history;
pub mod input;
pub mod layout;
pub mod mouse;
mod overlay;
pub mod reading;
pub mod tour;

pub use super::model::view::{Card, HelpSearch, Logged, Outcome, View};
