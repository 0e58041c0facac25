//! The state of good moments: commits, test runs, and the checkpoints that wait to be saved.

use std::collections::VecDeque;

use serde_json::Value;

use pitstop_base::clock::At;
use pitstop_handoff::breakpoint::{Breakpoint, commit::Made, test_run::Total};

/// The known state of good moments.
#[derive(Debug, Default)]
pub struct Moments {
    /// The good moment that lasts: nothing has been begun since.
    pub(in crate::app) good: Option<Breakpoint>,
    /// The good moment for which a reboot was requested.
    pub(in crate::app) taken: Option<Breakpoint>,
    /// The ids of the latest commits, whole or abbreviated.
    pub(in crate::app) commits: VecDeque<String>,
    /// The last test run, its source and the time at which it ended, until the other source has seen it too.
    pub(in crate::app) tests: Option<(Total, SeenBy, At)>,
    /// The call ids of the running shell commands, and the directories in which they began.
    pub(in crate::app) running: VecDeque<(Option<String>, String)>,
    /// The checkpoints that are saved once git has been read.
    pub(in crate::app) waiting: Vec<Waiting>,
    /// The times of the latest checkpoints that count towards the limit per minute.
    pub(in crate::app) saves: VecDeque<At>,
    /// The head and the time of the last reading outside of a rebase or the like: what was made since then is new.
    pub(in crate::app) head_at: Option<(Option<String>, At)>,
    /// The shell commands, and the paths of edited files, since git was read last: they may name other work trees.
    pub(in crate::app) named: VecDeque<String>,
    /// The new commits that no hook has reported, oldest first.
    pub(in crate::app) unreported: VecDeque<Unreported>,
}

/// A new commit that no hook has reported yet.
#[derive(Debug)]
pub struct Unreported {
    /// The commit.
    pub(in crate::app) made: Made,
    /// The epoch of the timer that waits for the report.
    pub(in crate::app) epoch: u64,
    /// True as long as nothing else has been begun since it was seen.
    pub(in crate::app) is_latest: bool,
}

/// The source that has seen a test run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SeenBy {
    /// The agent's shell, by what it printed.
    Shell,
    /// A hook, `pitstop test`, or a script, by a report.
    Report,
}

impl Moments {
    /// Drops the good moment: something else has begun, and the finished work is no longer a good place to stop.
    pub(in crate::app) fn pass(&mut self) {
        self.good = None;
        self.taken = None;
        for one in &mut self.unreported {
            one.is_latest = false;
        }
    }
}

/// A checkpoint that waits for git, so that it does not list files as changed that have just been committed.
#[derive(Debug)]
pub(in crate::app) struct Waiting {
    /// The description of the checkpoint, such as `Commit: fix it`.
    pub(in crate::app) task: String,
    pub(in crate::app) tags: Vec<String>,
    pub(in crate::app) about: Value,
    /// The commit that git must show.
    pub(in crate::app) sha: Option<String>,
    /// True if git has answered without showing it: then the next answer is accepted.
    pub(in crate::app) again: bool,
}
