//! What the last turns of a session have cost.

use std::collections::VecDeque;

use crate::transcript::Tokens;

/// Turns that the cost is taken from: a median of these is not moved by one that wrote the cache again.
const RECENT: usize = 5;

/// Turns that must be known before anything is said.
const ENOUGH: usize = 2;

/// The costs of the last turns of a session.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct TurnCosts {
    /// What the session had cost when the present turn began, in US dollars.
    before: Option<f64>,
    /// What it has cost by the last status line, in US dollars.
    now: Option<f64>,
    /// The turns before the present one: cost in US dollars, and tokens in use at its end.
    turns: VecDeque<(f64, Tokens)>,
}

impl TurnCosts {
    /// Takes what the session has cost so far, in US dollars.
    pub const fn observe(&mut self, total: f64) {
        self.now = Some(total);
        if self.before.is_none() {
            self.before = self.now;
        }
    }

    /// A turn begins: the one before it is complete, with so many tokens in use at its end.
    pub fn begin_turn(&mut self, used: Option<Tokens>) {
        if let (Some(cost), Some(used)) = (self.last(), used) {
            self.turns.push_back((cost, used));
            if self.turns.len() > RECENT {
                self.turns.pop_front();
            }
        }
        self.before = self.now;
    }

    /// What the turn after the last mark has cost by now, if anything.
    fn last(&self) -> Option<f64> {
        let cost = self.now? - self.before?;
        (cost > 0.0).then_some(cost)
    }

    /// The median cost of the last complete turns, in US dollars, with the median of the tokens then in use.
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
