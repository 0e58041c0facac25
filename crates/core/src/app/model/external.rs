//! A document that is open in `$EDITOR`.

use crate::app::event::Document;
use crate::lineage::IterationId;

/// A document that is open in `$EDITOR`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct External {
    /// The kind of document.
    pub document: Document,
    /// The text that the editor was given.
    pub(in crate::app) base: String,
    /// The iteration in which the editor was opened.
    pub(in crate::app) iteration: IterationId,
}
