//! The costs of the last turns of a session.

use std::collections::VecDeque;

use pitstop_base::recent;
use pitstop_transcript::Tokens;

/// The number of turns that the cost is taken from: one that wrote the cache again does not move the median of these.
const RECENT: usize = 5;

/// The number of turns that must be known before a cost is given.
const ENOUGH: usize = 2;

/// The costs of the last turns of a session.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct TurnCosts {
    /// The session's cost when the present turn began, in US dollars.
    before: Option<f64>,
    /// The session's cost by the last status line, in US dollars.
    now: Option<f64>,
    /// The turns before the present one: cost in US dollars, and tokens in use at its end.
    turns: VecDeque<(f64, Tokens)>,
}

impl TurnCosts {
    /// Takes the session's cost so far, in US dollars.
    pub const fn observe(&mut self, total: f64) {
        self.now = Some(total);
        if self.before.is_none() {
            self.before = self.now;
        }
    }

    /// Begins a turn: the previous one is complete, with `used` tokens in use at its end.
    pub fn begin_turn(&mut self, used: Option<Tokens>) {
        if let (Some(cost), Some(used)) = (self.last(), used) {
            recent::push(&mut self.turns, (cost, used), RECENT);
        }
        self.before = self.now;
    }

    /// Returns the cost so far of the turn since the last mark, in US dollars, if there is any.
    fn last(&self) -> Option<f64> {
        let cost = self.now? - self.before?;
        (cost > 0.0).then_some(cost)
    }

    /// Returns the median cost of the last complete turns, in US dollars, with the median of the tokens then in use.
    pub(in crate::app) fn median(&self) -> Option<(f64, Tokens)> {
        if self.turns.len() < ENOUGH {
            return None;
        }
        let mut costs: Vec<f64> = self.turns.iter().map(|turn| turn.0).collect();
        let mut used: Vec<Tokens> = self.turns.iter().map(|turn| turn.1).collect();
        costs.sort_by(f64::total_cmp);
        used.sort_unstable();
        let middle = (costs.len() - 1) / 2;
        Some((costs[middle], used[middle]))
    }
}
