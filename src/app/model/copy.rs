//! The state of copy mode.

use crate::{clock::At, pane::copy::SelectionKind};

/// Copy mode, as far as the keys are concerned.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CopyMode {
    /// The search being typed, if one is.
    pub search: Option<SearchLine>,
    /// What is being selected.
    pub selecting: Option<SelectionKind>,
    /// What the last order has led to, if it is worth a word.
    pub said: Option<String>,
    /// Whether the pattern being typed cannot be read.
    pub bad_pattern: bool,
    /// Whether the mouse began it, and ends it with its release.
    pub by_mouse: bool,
}

/// A search being typed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SearchLine {
    /// The pattern so far.
    pub pattern: String,
    /// Whether it looks towards the past.
    pub backward: bool,
}

/// The last press of the left button on the pane's text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Press {
    pub(in crate::app) at: At,
    pub(in crate::app) column: u16,
    pub(in crate::app) row: u16,
    pub(in crate::app) clicks: u8,
    /// Whether the button is down.
    pub(in crate::app) down: bool,
    /// Whether it was moved since.
    pub(in crate::app) dragged: bool,
}
