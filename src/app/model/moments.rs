//! The state of good moments: commits, test runs, and what waits to be saved.

use std::collections::VecDeque;

use serde_json::Value;

use crate::{
    breakpoint::{Breakpoint, commit::Made, test_run::Total},
    clock::At,
};

/// What is known of good moments.
#[derive(Debug, Default)]
pub struct Moments {
    /// The good moment that stands: nothing has been begun since.
    pub(in crate::app) good: Option<Breakpoint>,
    /// The one for which a reboot was asked.
    pub(in crate::app) taken: Option<Breakpoint>,
    /// Ids of the latest commits, whole or abbreviated.
    pub(in crate::app) commits: VecDeque<String>,
    /// The last test run, where it was seen and when it ended, until it was seen in the other place, too.
    pub(in crate::app) tests: Option<(Total, SeenBy, At)>,
    /// The shell commands that run, by their calls, and the directories in which they began.
    pub(in crate::app) running: VecDeque<(Option<String>, String)>,
    /// What is saved once git has been read.
    pub(in crate::app) waiting: Vec<Waiting>,
    /// When the latest checkpoints of this kind were made.
    pub(in crate::app) saves: VecDeque<At>,
    /// When git was last read.
    pub(in crate::app) git_at: Option<At>,
    /// New commits that no hook has reported, oldest first, and the epoch of the timer that waits for that.
    pub(in crate::app) heads: (Vec<Made>, u64),
}

/// Who has seen a test run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SeenBy {
    /// The agent's shell, by what it printed.
    Shell,
    /// A hook, `pitstop test`, or a script, by a report.
    Report,
}

impl Moments {
    /// Something else has begun: what was finished is no good place to stop any more.
    pub(in crate::app) fn pass(&mut self) {
        self.good = None;
        self.taken = None;
    }
}

/// A checkpoint that waits for git, so that it does not name files as changed which have just been committed.
#[derive(Debug)]
pub(in crate::app) struct Waiting {
    /// What the checkpoint is of: `Commit: fix it`.
    pub(in crate::app) task: String,
    pub(in crate::app) tags: Vec<String>,
    pub(in crate::app) about: Value,
    /// The commit that git must show.
    pub(in crate::app) sha: Option<String>,
    /// Whether git has answered without showing it: then the next answer will do.
    pub(in crate::app) again: bool,
}
