//! The state of copy mode.

use crate::lineage::IterationId;
use pitstop_base::clock::At;
use pitstop_terminal::copy::SelectionKind;

/// The state of copy mode that its keys need.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CopyMode {
    /// The search being typed, if one is.
    pub search: Option<SearchLine>,
    /// The kind of selection that is being made.
    pub selecting: Option<SelectionKind>,
    /// The result of the last command, if it is worth showing.
    pub said: Option<String>,
    /// True if the pattern being typed is invalid.
    pub bad_pattern: bool,
    /// True if a mouse press began copy mode, and its release ends it.
    pub by_mouse: bool,
    /// The iteration whose transcript is read; `None` if it is the pane's screen.
    pub transcript: Option<IterationId>,
}

/// A search being typed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SearchLine {
    /// The pattern so far.
    pub pattern: String,
    /// True if it searches towards older lines.
    pub backward: bool,
}

/// The last press of the left button on the pane's text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Press {
    pub(in crate::app) at: At,
    pub(in crate::app) column: u16,
    pub(in crate::app) row: u16,
    pub(in crate::app) clicks: u8,
    /// True if the button is down.
    pub(in crate::app) down: bool,
    /// True if the mouse was moved since the press.
    pub(in crate::app) dragged: bool,
}
