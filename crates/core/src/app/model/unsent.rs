//! The text in the prompt box that a person has not submitted, and the progress of writing it to disk.

/// The content of the agent's prompt box that a person has not submitted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Unsent {
    /// The box is empty.
    Nothing,
    /// The box holds this text.
    Text(String),
    /// The content cannot be read whole: it is higher than the screen, or has an image or a long paste in it, or the box
    /// is not on the screen.
    Unreadable,
}

/// An unsent prompt of an earlier session that is not in this one's prompt box yet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Waiting {
    pub(in crate::app) text: String,
    /// The cursor's position in the text, in UTF-16 units, if it is known.
    pub(in crate::app) cursor: Option<usize>,
    /// True if it could not be put back: the next session tries again.
    pub(in crate::app) failed: bool,
}

impl Waiting {
    /// Creates one for a text whose cursor is not known.
    pub(in crate::app) const fn new(text: String) -> Self {
        Self {
            text,
            cursor: None,
            failed: false,
        }
    }
}

/// The progress of writing a draft to disk.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum OnDisk {
    /// There is no draft.
    #[default]
    Nothing,
    /// This draft is being written.
    Ordered(String),
    /// This draft is on disk.
    Kept(String),
}
