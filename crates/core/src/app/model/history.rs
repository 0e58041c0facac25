//! The state of the history panel.

use crate::lineage::{
    Iteration, IterationId, Lineage, RunId,
    past::{Found, PastSession},
};
use pitstop_transcript::SessionId;

use super::reading::Bounds;

/// The history panel.
#[derive(Clone, Debug, Default)]
pub struct HistoryPanel {
    /// The index of the selected iteration, counted from the newest.
    pub selected: usize,
    /// True if its details are shown.
    pub detail: bool,
    /// The number of rows that the details are scrolled by.
    pub scroll: u16,
    /// The ends of what `scroll` can be.
    pub bounds: Bounds,
    /// Earlier runs of the project, newest first.
    pub earlier: Vec<EarlierRun>,
    /// The stored data of the iteration whose details were last opened.
    pub past: Option<Past>,
    /// True if the details show the changes between two handoffs instead of their texts.
    pub difference: bool,
    /// The iteration that others are compared with.
    pub marked: Option<Past>,
    /// True if the autonomous run is shown large, over the pane.
    pub run_view: bool,
    /// The text that the list is searched for; if it is empty, all is listed.
    pub query: String,
    /// True if the search text is being typed.
    pub typing: bool,
    /// The iterations in which the store has found the search text.
    pub found: Vec<Found>,
    /// The session that was asked for once while a turn runs; a second request resumes it.
    pub(in crate::app) resuming: Option<SessionId>,
}

impl HistoryPanel {
    /// Counts one iteration more, if it is listed. The selection is counted from the newest: a person who reads about an earlier one
    /// keeps reading about it.
    pub(in crate::app) fn iteration_added(&mut self, lineage: &Lineage) {
        let newest = lineage.iterations().last().map(|one| one.iteration);
        let first = self.listed(lineage).next();
        let is_listed =
            first.is_some_and(|(run, one)| run == lineage.run() && Some(one.iteration) == newest);
        if is_listed && (self.detail || self.selected > 0) {
            self.selected += 1;
        }
    }

    /// Reports whether something that can be scrolled lies over the pane.
    pub const fn is_large(&self) -> bool {
        self.detail || self.run_view
    }
}

/// An earlier run of the project.
#[derive(Clone, Debug, PartialEq)]
pub struct EarlierRun {
    /// Its name.
    pub run: RunId,
    /// Its iterations, oldest first, without their summaries and the records of their reboots, which the details have.
    pub iterations: Vec<Iteration>,
}

/// The stored data of an iteration.
#[derive(Clone, Debug, PartialEq)]
pub struct Past {
    /// Its run.
    pub run: RunId,
    /// Its number.
    pub iteration: IterationId,
    /// The data, or the reason why there is none; `None` while it is being read.
    pub found: Option<Result<Box<PastSession>, String>>,
    /// The changes from the handoff that it was given to the one that it gave, where there are both; while another iteration
    /// is marked, the changes between that one and this one.
    pub difference: Option<Difference>,
}

impl Past {
    /// Creates the entry of an iteration that the store is asked about.
    pub(in crate::app) fn of((run, iteration): (&RunId, &Iteration)) -> Self {
        Self {
            run: run.clone(),
            iteration: iteration.iteration,
            found: None,
            difference: None,
        }
    }

    /// Reports whether the data is of this iteration.
    pub fn is(&self, run: &RunId, iteration: IterationId) -> bool {
        self.run == *run && self.iteration == iteration
    }
}

/// The changes from one handoff to another.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Difference {
    /// The names of the two handoffs, in words.
    pub heading: String,
    /// The lines that differ, as in a patch.
    pub text: String,
}
