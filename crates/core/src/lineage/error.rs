//! The errors in the chain of iterations.

use super::IterationId;

/// An error in the chain of iterations or in a record of it.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum LineageError {
    /// The text is not a run's name.
    #[error("expected a run name such as 20261121-075144-3fa94c, found {0:?}")]
    RunId(String),
    /// An iteration was to be opened while another is still open.
    #[error("expected no open iteration, found iteration {0} still open")]
    StillOpen(IterationId),
    /// An iteration was to be closed and none is open.
    #[error("expected an open iteration, found none")]
    NoneOpen,
    /// A word of the record is not one that this program writes.
    #[error("expected {expected}, found {found:?}")]
    Word {
        /// The kind of word that was expected.
        expected: &'static str,
        /// The word that was found, shortened to 64 characters.
        found: String,
    },
}
