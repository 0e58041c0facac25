//! The client's own side of the session, as it is known.

use crate::{
    bridge::{Draft, Link, Reported},
    transcript::SessionId,
};

/// The bridge of one iteration.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Bridge {
    /// Whether it reports.
    pub link: Link,
    /// What it said last.
    pub reported: Reported,
}

impl Bridge {
    /// What it said of a session, while it reports.
    #[must_use]
    pub fn of(&self, session: SessionId) -> Option<&Reported> {
        (self.link.is_in_force() && self.reported.session == Some(session))
            .then_some(&self.reported)
    }

    /// What it said last of the prompt box of a session, while it reports: nothing of an empty one, since one behind a dialog
    /// is said to be empty too.
    #[must_use]
    pub fn draft(&self, session: SessionId) -> Option<&Draft> {
        let draft = self.of(session)?.draft.as_ref();
        draft.filter(|draft| !draft.text.is_empty())
    }
}
