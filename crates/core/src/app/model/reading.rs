//! The position of a reader in a long document.

use std::{cell::Cell, collections::BTreeSet};

/// The rows by which a text can be scrolled until an end of it is reached. A view finds them when it draws the text, and does not change
/// the model: that is why they are in a cell.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Bounds(Cell<(i32, i32)>);

impl Default for Bounds {
    fn default() -> Self {
        Self(Cell::new((i32::MIN, i32::MAX)))
    }
}

impl Bounds {
    /// Sets the fewest rows by which the text can be scrolled, and the most if its end was seen.
    pub fn set_range(&self, least: i32, most: Option<i32>) {
        self.0.set((least, most.unwrap_or(i32::MAX).max(least)));
    }

    /// Returns the number of rows that is nearest to this one and not beyond an end.
    pub(in crate::app) fn nearest(&self, rows: i32) -> i32 {
        let (least, most) = self.0.get();
        rows.clamp(least, most)
    }
}

/// The position of a reader in a document.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Reading {
    /// The line that the view begins at.
    pub anchor: usize,
    /// The number of rows that the view is further down or, if negative, further up.
    pub offset: i32,
    /// The ends of what `offset` can be.
    pub bounds: Bounds,
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
