//! The client's own side of the session, as it is known.

use crate::{
    bridge::{Heard, Link, OrderId},
    transcript::SessionId,
};

/// The bridge of one iteration.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Bridge {
    /// Whether it reports.
    pub link: Link,
    /// What it said last.
    pub heard: Heard,
    /// The number of the last order, counted from the first of this iteration.
    pub(in crate::app) orders: u64,
    /// The order to read the prompt box, while it is under way.
    pub(in crate::app) reading: Option<OrderId>,
}

impl Bridge {
    /// What it said of a session, while it reports.
    #[must_use]
    pub fn of(&self, session: SessionId) -> Option<&Heard> {
        (self.link.is_in_force() && self.heard.session == Some(session)).then_some(&self.heard)
    }
}
