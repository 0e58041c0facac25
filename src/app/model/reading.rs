//! Where a reader stands in a long document.

use std::collections::BTreeSet;

/// Where a reader stands in a document.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Reading {
    /// The line that the view begins at.
    pub anchor: usize,
    /// So many rows further down, or up.
    pub offset: i32,
    /// The section that folds by key.
    pub section: Option<usize>,
    /// Whether only the first section is open at first, however short the others are.
    pub(in crate::app) folded: bool,
    /// Sections that are not as they were at first: open, or folded.
    pub(in crate::app) toggled: BTreeSet<usize>,
    /// The pattern being typed, if one is.
    pub typing: Option<String>,
    /// The pattern that is searched for.
    pub pattern: String,
    /// Whether the last search has found nothing.
    pub missed: bool,
}
