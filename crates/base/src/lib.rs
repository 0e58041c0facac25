//! What every other crate of pitstop uses, without a decision of its own.

pub mod clean;
pub mod clock;
pub mod exit;
pub mod format;
pub mod keymap;
pub mod private_file;
pub mod process;
pub mod recent;
pub mod redact;
