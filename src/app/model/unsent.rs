//! What the prompt box holds that a person has not submitted, and how far that is on its way to the disk.

/// What the agent's prompt box holds that a person has not submitted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Unsent {
    /// Nothing.
    Nothing,
    /// This text.
    Text(String),
    /// Something that cannot be read whole: it is higher than the screen, or has an image or a long paste in it, or the box
    /// is not on the screen.
    Unreadable,
}

/// How far a draft is on its way to the disk.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum OnDisk {
    /// There is none.
    #[default]
    Nothing,
    /// This one is being written.
    Ordered(String),
    /// This one is there.
    Kept(String),
}
