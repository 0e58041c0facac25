//! The position of a reader in a long document.

use std::collections::BTreeSet;

/// The position of a reader in a document.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Reading {
    /// The line that the view begins at.
    pub anchor: usize,
    /// The number of rows that the view is further down or, if negative, further up.
    pub offset: i32,
    /// The section that a key folds.
    pub section: Option<usize>,
    /// True if only the first section is open at first, however short the others are.
    pub(in crate::app) folded: bool,
    /// The sections that were opened or folded since the beginning.
    pub(in crate::app) toggled: BTreeSet<usize>,
    /// The pattern being typed, if one is.
    pub typing: Option<String>,
    /// The pattern that is searched for.
    pub pattern: String,
    /// True if the last search has found nothing.
    pub missed: bool,
}
