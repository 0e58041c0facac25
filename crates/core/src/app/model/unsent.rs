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
