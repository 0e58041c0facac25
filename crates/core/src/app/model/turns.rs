//! The context usage after each turn of the run.

use std::collections::VecDeque;

use crate::lineage::{IterationId, metrics::TurnFigures};
use pitstop_transcript::Tokens;

/// The number of turns that are kept in memory: more than any screen has cells. The store has them all.
const KEPT: usize = 4096;

/// The context usage after each turn of the run, oldest first.
#[derive(Debug, Default)]
pub struct RunTurns(VecDeque<(IterationId, Tokens)>);

impl RunTurns {
    /// Adds the newest turn.
    pub(in crate::app) fn keep(&mut self, turn: &TurnFigures) {
        self.0.push_back((turn.iteration, turn.used));
        self.forget_old();
    }

    /// Puts the turns that were read from the store in front: those of iterations before `present`, of which none is kept here.
    pub(in crate::app) fn read_back(&mut self, turns: &[TurnFigures], present: IterationId) {
        let first = self.0.front().map_or(present, |(of, _)| *of);
        let earlier = turns.iter().filter(|turn| turn.iteration < first);
        for turn in earlier.rev() {
            self.0.push_front((turn.iteration, turn.used));
        }
        self.forget_old();
    }

    /// Returns the usage after each turn of an iteration, oldest first.
    pub fn of(&self, iteration: IterationId) -> impl Iterator<Item = Tokens> + '_ {
        let of_it = self.0.iter().filter(move |(of, _)| *of == iteration);
        of_it.map(|(_, used)| *used)
    }

    fn forget_old(&mut self) {
        let old = self.0.len().saturating_sub(KEPT);
        self.0.drain(..old);
    }
}
