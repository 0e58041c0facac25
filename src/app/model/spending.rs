//! What the present iteration has cost, by the figures of its sessions.
//!
//! The client reports what a session has cost since it began, and a resumed session or a copy of one goes on from where it
//! stood (measured with 2.1.330). So an iteration counts from a base:
//!
//! ```text
//!   session   0 ────────── last figure ──────────── now
//!             │ iteration 1     │   iteration 3      │
//!                               └ its base: what the earlier one counts up to
//! ```
//!
//! Some clients begin again at nothing or a little below the last figure (2.1.197, one that was killed): then the first figure
//! is the base, as it is in a session of which nothing is known.

use std::collections::BTreeMap;

use crate::transcript::SessionId;

/// What the present iteration has cost, in US dollars.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Spending {
    /// The last figure of each session since the supervisor started.
    known: BTreeMap<SessionId, f64>,
    /// What the iteration has cost in sessions that the agent has left since.
    left: Option<f64>,
    /// The session that it is in, with its figure before the iteration and now.
    present: Option<(f64, f64)>,
}

impl Spending {
    /// The next iteration begins.
    pub(in crate::app) const fn begin_iteration(&mut self) {
        self.left = None;
        self.present = None;
    }

    /// The agent goes to another session.
    pub(in crate::app) const fn leave_session(&mut self) {
        self.left = self.total();
        self.present = None;
    }

    /// A session begins that has cost nothing yet.
    pub(in crate::app) fn begin_session(&mut self, session: SessionId) {
        self.known.insert(session, 0.0);
    }

    /// A session begins as a copy of another.
    pub(in crate::app) fn copy_session(&mut self, from: SessionId, to: SessionId) {
        if let Some(cost) = self.known.get(&from) {
            self.known.insert(to, *cost);
        }
    }

    /// Takes what the session that the agent is in has cost so far.
    pub(in crate::app) fn observe(&mut self, session: SessionId, figure: f64) {
        let known = self.known.get(&session).copied();
        let (base, before) = self.present.unwrap_or_else(|| {
            let base = known.filter(|known| *known <= figure).unwrap_or(figure);
            (base, base)
        });
        // Figures come by two ways, so an older one may come last.
        let now = figure.max(before);
        self.present = Some((base, now));
        self.known.insert(session, now);
    }

    /// What the iteration has cost so far; none before a figure was reported.
    #[must_use]
    pub const fn total(&self) -> Option<f64> {
        match (self.left, self.present) {
            (left, None) => left,
            (None, Some((base, now))) => Some(now - base),
            (Some(left), Some((base, now))) => Some(left + (now - base)),
        }
    }
}
