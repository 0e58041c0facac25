//! A document that is in `$EDITOR`.

use crate::app::event::Document;
use crate::lineage::IterationId;

/// A document that is in `$EDITOR`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct External {
    /// Which.
    pub document: Document,
    /// The text that the editor was given.
    pub(in crate::app) base: String,
    /// In which iteration.
    pub(in crate::app) iteration: IterationId,
}
