//! The notes as text: their contents, and the merge of two edits.
//!
//! The scratchpad is a plain Markdown file that the human and the agent both write. This module knows its shape and nothing
//! else: the shell knows the place of the file and who changed it.

pub mod lines;
mod merge;
pub mod notes;
mod parsed;
pub mod versions;

pub use merge::{HumanLines, difference, merge};
pub use parsed::{Blocker, Decision, Fact, Item, NO_NOTES, Parsed, next_in, split_reason};

/// The text of a new project's scratchpad: the five sections of the contract, empty.
pub const TEMPLATE: &str = "\
## Current Understanding

## Current Plan

## Key Decisions

## Blockers

## Last Action
";

/// Returns the notes without a heading that only repeats the panel's name, and without the end of the last line, which is
/// no line of its own.
pub fn without_title(notes: &str) -> &str {
    let notes = notes.trim_end_matches('\n');
    match notes.strip_prefix("# Scratchpad") {
        Some(rest) if rest.starts_with('\n') => rest.trim_start_matches('\n'),
        _ => notes,
    }
}

/// The largest scratchpad that is read, in bytes: far above what a handoff can carry.
pub const MAX_BYTES: usize = 1024 * 1024;
