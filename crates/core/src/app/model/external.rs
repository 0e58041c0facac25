//! A document that is in `$EDITOR`.

use crate::app::event::Document;
use crate::lineage::IterationId;

/// A document that is in `$EDITOR`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct External {
    /// The document that is edited.
    pub document: Document,
    /// The text that the editor was given.
    pub(in crate::app) base: String,
    /// The iteration in which the editor was opened.
    pub(in crate::app) iteration: IterationId,
}
