//! The cost and the tokens of the present iteration, by the figures of its sessions.
//!
//! Both are reported for a session since it began, and a resumed session or a copy of one goes on from where it stood (measured
//! with 2.1.330). So an iteration counts from a base:
//!
//! ```text
//!   session   0 ────────── last figure ──────────── now
//!             │ iteration 1     │   iteration 3      │
//!                               └ its base: what the earlier one counts up to
//! ```
//!
//! Some clients begin the cost again at nothing or a little below the last figure (2.1.197, one that was killed): then the first
//! figure is the base, as it is in a session of which nothing is known.

use std::collections::BTreeMap;

use crate::lineage::TokenTotals;
use pitstop_transcript::SessionId;

/// The cost and the tokens of the present iteration.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Spending {
    cost: Meter<f64>,
    tokens: Meter<TokenTotals>,
}

impl Spending {
    /// Begins the next iteration.
    pub(in crate::app) const fn begin_iteration(&mut self) {
        self.cost.begin_iteration();
        self.tokens.begin_iteration();
    }

    /// Leaves the session, since the agent goes to another one.
    pub(in crate::app) fn leave_session(&mut self) {
        self.cost.leave_session();
        self.tokens.leave_session();
    }

    /// Begins a session that has used nothing yet.
    pub(in crate::app) fn begin_session(&mut self, session: SessionId) {
        self.cost.known.insert(session, 0.0);
        self.begin_transcript(session);
    }

    /// Begins a session with an empty transcript, in a process that may go on counting its cost.
    pub(in crate::app) fn begin_transcript(&mut self, session: SessionId) {
        self.tokens.known.insert(session, TokenTotals::default());
    }

    /// Begins a session as a copy of another.
    pub(in crate::app) fn copy_session(&mut self, from: SessionId, to: SessionId) {
        self.cost.copy_session(from, to);
        self.tokens.copy_session(from, to);
    }

    /// Takes the cost so far of the session that the agent is in, in US dollars.
    pub(in crate::app) fn observe_cost(&mut self, session: SessionId, dollars: f64) {
        self.cost.observe(session, dollars);
    }

    /// Takes the tokens that the session that the agent is in has used so far.
    pub(in crate::app) fn observe_tokens(&mut self, session: SessionId, totals: TokenTotals) {
        self.tokens.observe(session, totals);
    }

    /// Takes the tokens of a session of the previous iteration, and returns those that were not yet counted there.
    pub(in crate::app) fn settle_tokens(
        &mut self,
        session: SessionId,
        totals: TokenTotals,
    ) -> Option<TokenTotals> {
        self.tokens.settle(session, totals)
    }

    /// Returns the cost of the iteration so far, in US dollars; none before a figure was reported.
    pub fn cost(&self) -> Option<f64> {
        self.cost.total()
    }

    /// Returns the cost since its beginning of the session that the agent is in, in US dollars.
    pub fn session_cost(&self) -> Option<f64> {
        self.cost.present.map(|(_, now)| now)
    }

    /// Returns the tokens that the iteration has used so far; none before its transcript was read.
    pub fn tokens(&self) -> Option<TokenTotals> {
        self.tokens.total()
    }
}

/// A figure that only rises.
trait Figure: Copy {
    fn plus(self, other: Self) -> Self;
    fn minus(self, other: Self) -> Self;
    fn is_within(self, other: Self) -> bool;
    fn at_least(self, other: Self) -> Self;
}

impl Figure for f64 {
    fn plus(self, other: Self) -> Self {
        self + other
    }

    fn minus(self, other: Self) -> Self {
        self - other
    }

    fn is_within(self, other: Self) -> bool {
        self <= other
    }

    fn at_least(self, other: Self) -> Self {
        self.max(other)
    }
}

/// The arithmetic saturates, since the sums of a hostile transcript may be anything.
impl Figure for TokenTotals {
    fn plus(self, other: Self) -> Self {
        self.with(other, u64::saturating_add)
    }

    fn minus(self, other: Self) -> Self {
        self.with(other, u64::saturating_sub)
    }

    fn is_within(self, other: Self) -> bool {
        self.input <= other.input && self.output <= other.output
    }

    fn at_least(self, other: Self) -> Self {
        self.with(other, u64::max)
    }
}

/// The rise of a figure in the present iteration.
#[derive(Clone, Debug, Default, PartialEq)]
struct Meter<T> {
    /// The last figure of each session since the supervisor started.
    known: BTreeMap<SessionId, T>,
    /// The rise in sessions that the agent has left since.
    left: Option<T>,
    /// The figure of the agent's session before the iteration, and its figure now.
    present: Option<(T, T)>,
}

impl<T: Figure> Meter<T> {
    const fn begin_iteration(&mut self) {
        self.left = None;
        self.present = None;
    }

    fn leave_session(&mut self) {
        self.left = self.total();
        self.present = None;
    }

    fn copy_session(&mut self, from: SessionId, to: SessionId) {
        if let Some(figure) = self.known.get(&from) {
            self.known.insert(to, *figure);
        }
    }

    fn observe(&mut self, session: SessionId, figure: T) {
        let known = self.known.get(&session).copied();
        let (base, before) = self.present.unwrap_or_else(|| {
            let base = known
                .filter(|known| known.is_within(figure))
                .unwrap_or(figure);
            (base, base)
        });
        // Figures come from two sources, so an older one may come last.
        let now = figure.at_least(before);
        self.present = Some((base, now));
        self.known.insert(session, now);
    }

    fn settle(&mut self, session: SessionId, figure: T) -> Option<T> {
        let known = self.known.get_mut(&session)?;
        let late = known.is_within(figure).then(|| figure.minus(*known));
        *known = figure;
        late
    }

    fn total(&self) -> Option<T> {
        let present = self.present.map(|(base, now)| now.minus(base));
        match (self.left, present) {
            (Some(left), Some(present)) => Some(left.plus(present)),
            (left, present) => left.or(present),
        }
    }
}
