//! The state of the history panel.

use crate::{
    lineage::{Iteration, IterationId, RunId, past::PastSession},
    transcript::SessionId,
};

/// The history panel.
#[derive(Clone, Debug, Default)]
pub struct HistoryPanel {
    /// Which iteration is selected, from the newest.
    pub selected: usize,
    /// Whether its details are shown.
    pub detail: bool,
    /// How far the details are scrolled.
    pub scroll: u16,
    /// Earlier runs of the project, newest first.
    pub earlier: Vec<EarlierRun>,
    /// What the store has of the iteration whose details were opened last.
    pub past: Option<Past>,
    /// Whether the details show what changed between two handoffs instead of their texts.
    pub difference: bool,
    /// The iteration that others are compared with.
    pub marked: Option<Past>,
    /// Whether the autonomous run is shown large, over the pane.
    pub run_view: bool,
    /// What the list is searched for; empty: all is listed.
    pub query: String,
    /// Whether that is being typed.
    pub typing: bool,
    /// The iterations in which the store has found it.
    pub found: Vec<(RunId, IterationId)>,
    /// The session that was asked for once while a turn runs: the second time it is resumed.
    pub(in crate::app) resuming: Option<SessionId>,
}

impl HistoryPanel {
    /// Whether something that can be scrolled lies over the pane.
    #[must_use]
    pub const fn is_large(&self) -> bool {
        self.detail || self.run_view
    }
}

/// A run of before.
#[derive(Clone, Debug, PartialEq)]
pub struct EarlierRun {
    /// Its name.
    pub run: RunId,
    /// Its iterations, oldest first, without the records of their reboots and without their summaries: the details have them.
    pub iterations: Vec<Iteration>,
}

/// What the store has of an iteration.
#[derive(Clone, Debug, PartialEq)]
pub struct Past {
    /// Its run.
    pub run: RunId,
    /// Its number.
    pub iteration: IterationId,
    /// Nothing while it is being read; then what there is, or why there is nothing.
    pub found: Option<Result<Box<PastSession>, String>>,
    /// What changed from the handoff that it was given to the one that it gave, where there are both; while another iteration
    /// is marked, between that one and this one.
    pub difference: Option<Difference>,
}

impl Past {
    /// Whether it is of this iteration.
    #[must_use]
    pub fn is(&self, run: &RunId, iteration: IterationId) -> bool {
        self.run == *run && self.iteration == iteration
    }
}

/// What changed from one handoff to another.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Difference {
    /// From which to which, in words.
    pub heading: String,
    /// The lines that differ, as in a patch.
    pub text: String,
}
