//! The writes that wait for the database: bounded, in order, and seen by readers meanwhile. The code is pure.

use std::{cmp::Reverse, collections::VecDeque};

use super::{AgentRecord, Checkpoints, HistoryOf, RunHistory, RunRecord, rows::Write};
use pitstop_core::lineage::{
    Iteration, IterationId, RunId, checkpoint::Checkpoint, journal::JournalEntry, metrics::Metric,
};
use pitstop_transcript::SessionId;

/// The largest number of bytes that wait: half of what a full disk may cost in memory.
const MAX_BYTES: usize = 16 * 1024 * 1024;

/// The largest number of writes that wait: days of a busy run.
const MAX_WRITES: usize = 10_000;

/// The writes that wait, oldest first.
#[derive(Debug)]
pub(super) struct Pending {
    writes: VecDeque<(Write, usize)>,
    bytes: usize,
    dropped: u64,
    max_bytes: usize,
    max_writes: usize,
}

impl Default for Pending {
    fn default() -> Self {
        Self::with_limits(MAX_BYTES, MAX_WRITES)
    }
}

impl Pending {
    fn with_limits(max_bytes: usize, max_writes: usize) -> Self {
        Self {
            writes: VecDeque::new(),
            bytes: 0,
            dropped: 0,
            max_bytes,
            max_writes,
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.writes.is_empty()
    }

    pub(super) fn len(&self) -> usize {
        self.writes.len()
    }

    /// Returns the number of writes that found no room.
    pub(super) const fn dropped(&self) -> u64 {
        self.dropped
    }

    pub(super) fn front(&self) -> Option<&Write> {
        self.writes.front().map(|(write, _)| write)
    }

    /// Removes the oldest write, now that it is written, unless a newer state has taken its place meanwhile, or it was dropped.
    pub(super) fn written(&mut self, write: &Write) {
        if self.front() == Some(write) {
            self.pop();
        }
    }

    fn pop(&mut self) {
        if let Some((_, size)) = self.writes.pop_front() {
            self.bytes -= size;
        }
    }

    /// Lets `write` wait. A newer state of the same record takes the place of the older one, which
    /// keeps the order in which records first appeared: a run before its iterations.
    pub(super) fn push(&mut self, write: Write) {
        let size = size_of(&write);
        if let Some(place) = self
            .writes
            .iter()
            .position(|(old, _)| is_newer_state(&write, old))
        {
            self.bytes = self.bytes - self.writes[place].1 + size;
            self.writes[place] = (write, size);
        } else {
            self.bytes += size;
            self.writes.push_back((write, size));
        }
        self.make_room();
    }

    /// Drops the writes that can best be spared until the rest fits.
    fn make_room(&mut self) {
        while self.bytes > self.max_bytes || self.writes.len() > self.max_writes {
            let spared = (0..self.writes.len())
                .min_by_key(|place| (worth_of(&self.writes[*place].0), *place))
                .and_then(|place| self.writes.remove(place));
            let Some((_, size)) = spared else {
                return;
            };
            self.bytes -= size;
            self.dropped += 1;
        }
    }

    pub(super) fn writes(&self) -> impl Iterator<Item = &Write> {
        self.writes.iter().map(|(write, _)| write)
    }

    /// Lays the waiting writes over the history that was read.
    pub(super) fn over_history(&self, of: &HistoryOf, limit: u32, histories: &mut Vec<RunHistory>) {
        for write in self.writes() {
            match write {
                Write::Run(record) if of.includes(record) => {
                    match histories.iter_mut().find(|one| one.run.run == record.run) {
                        Some(known) => known.run = (**record).clone(),
                        None => histories.push(RunHistory {
                            run: (**record).clone(),
                            iterations: Vec::new(),
                        }),
                    }
                }
                Write::RunEnd { run, at, reason } => {
                    if let Some(known) = histories.iter_mut().find(|one| one.run.run == *run) {
                        known.run.ended_at = Some(*at);
                        known.run.end_reason = Some(*reason);
                    }
                }
                Write::Iteration { run, iteration } => {
                    if let Some(known) = histories.iter_mut().find(|one| one.run.run == *run) {
                        put_iteration(&mut known.iterations, iteration);
                    }
                }
                _ => {}
            }
        }
        histories.sort_by(|a, b| b.run.run.cmp(&a.run.run));
        histories.truncate(limit as usize);
    }

    /// Lays the waiting writes over the open journal entry that was read; `ours` recognizes the project's runs.
    pub(super) fn over_journal(
        &self,
        ours: impl Fn(&RunId) -> bool,
        mut open: Option<JournalEntry>,
    ) -> Option<JournalEntry> {
        for write in self.writes() {
            match write {
                Write::Journal(entry) => {
                    let known = open
                        .as_ref()
                        .is_some_and(|open| open.reboot_id == entry.reboot_id);
                    if known || ours(&entry.run) {
                        open = (!entry.step.is_final()).then(|| (**entry).clone());
                    }
                }
                Write::JournalClose { reboot_id, .. } => {
                    open = open.filter(|open| open.reboot_id != *reboot_id);
                }
                _ => {}
            }
        }
        open
    }

    /// Returns the newest iteration of this session among the waiting writes.
    pub(super) fn place_of(&self, session: SessionId) -> Option<(RunId, IterationId)> {
        let places = self.writes().filter_map(|write| match write {
            Write::Iteration { run, iteration } if iteration.session_id == Some(session) => {
                Some((run.clone(), iteration.iteration))
            }
            _ => None,
        });
        places.max()
    }

    /// Returns the state that a session carries, if that waits.
    pub(super) fn carried_state(&self, of: SessionId) -> Option<serde_json::Value> {
        // A newer write has replaced the older one.
        self.writes().find_map(|write| match write {
            Write::Carried { session, state, .. } if *session == of => Some((**state).clone()),
            _ => None,
        })
    }

    /// Lays the waiting writes over the reboots of a run that were read, newest first.
    pub(super) fn over_reboots(&self, of: &RunId, entries: &mut Vec<JournalEntry>) {
        for write in self.writes() {
            if let Write::Journal(entry) = write
                && entry.run == *of
            {
                entries.retain(|known| known.reboot_id != entry.reboot_id);
                entries.insert(0, (**entry).clone());
            }
        }
    }

    /// Lays the waiting writes over the last checkpoint of a session that was read.
    pub(super) fn over_checkpoint_of(&self, session: SessionId, found: &mut Option<Checkpoint>) {
        for write in self.writes() {
            if let Write::Checkpoint { checkpoint, .. } = write
                && checkpoint.session == Some(session)
                && found
                    .as_ref()
                    .is_none_or(|known| known.created_at <= checkpoint.created_at)
            {
                *found = Some((**checkpoint).clone());
            }
        }
    }

    /// Lays the waiting writes over the checkpoints that were read.
    pub(super) fn over_checkpoints(&self, which: &Checkpoints, found: &mut Vec<Checkpoint>) {
        for write in self.writes() {
            if let Write::Checkpoint {
                project,
                checkpoint,
            } = write
                && which.includes(project, checkpoint)
            {
                match found.iter_mut().find(|known| known.id == checkpoint.id) {
                    Some(known) if known.created_at <= checkpoint.created_at => {
                        known.clone_from(checkpoint);
                    }
                    Some(_) => {}
                    None => found.push((**checkpoint).clone()),
                }
            }
        }
        found.sort_by_key(|one| Reverse((one.created_at, one.id)));
        found.truncate(which.limit as usize);
    }

    /// Lays the waiting writes over the agents that were read.
    pub(super) fn over_agents(&self, ours: impl Fn(&RunId) -> bool, found: &mut Vec<AgentRecord>) {
        for write in self.writes() {
            match write {
                Write::Agent(agent) if ours(&agent.run) && !found.contains(agent) => {
                    found.push(agent.clone());
                }
                Write::AgentGone { run, process } => {
                    found.retain(|agent| agent.run != *run || agent.process != *process);
                }
                _ => {}
            }
        }
    }

    /// Adds the waiting writes to the figures that were read.
    pub(super) fn over_metrics(&self, of: &RunId, found: &mut Vec<Metric>) {
        for write in self.writes() {
            if let Write::Metric { run, metric } = write
                && run == of
            {
                found.push(metric.clone());
            }
        }
    }

    /// Puts the beginnings of `runs` before all that waits: the new database knows none of them.
    pub(super) fn begin_again(&mut self, runs: Vec<RunRecord>) {
        for run in runs.into_iter().rev() {
            let write = Write::Run(Box::new(run));
            let older = self
                .writes
                .iter()
                .position(|(old, _)| is_newer_state(&write, old));
            if let Some((_, size)) = older.and_then(|place| self.writes.remove(place)) {
                self.bytes -= size;
            }
            let size = size_of(&write);
            self.writes.push_front((write, size));
            self.bytes += size;
        }
    }
}

fn put_iteration(iterations: &mut Vec<Iteration>, new: &Iteration) {
    match iterations.binary_search_by_key(&new.iteration, |one| one.iteration) {
        Ok(place) => iterations[place] = new.clone(),
        Err(place) => iterations.insert(place, new.clone()),
    }
}

/// Reports whether `new` is a later state of the record `old`.
fn is_newer_state(new: &Write, old: &Write) -> bool {
    match (new, old) {
        (Write::Run(new), Write::Run(old)) => new.run == old.run,
        (Write::RunEnd { run: new, .. }, Write::RunEnd { run: old, .. }) => new == old,
        (
            Write::Iteration {
                run: new_run,
                iteration: new,
            },
            Write::Iteration { run, iteration },
        ) => new_run == run && new.iteration == iteration.iteration,
        (Write::Journal(new), Write::Journal(old)) => new.reboot_id == old.reboot_id,
        (Write::Carried { session: new, .. }, Write::Carried { session: old, .. }) => new == old,
        _ => false,
    }
}

/// Returns the worth of a write; the highest is dropped last: the runs that all else refers to, before them what recovery needs.
const fn worth_of(write: &Write) -> u8 {
    match write {
        Write::Metric { .. } | Write::ForgetRun(_) | Write::ForgetCheckpoint(_) => 0,
        Write::Checkpoint { .. } => 1,
        Write::AgentGone { .. } => 2,
        Write::Iteration { .. } | Write::Carried { .. } => 3,
        Write::Agent(_) => 4,
        Write::Journal(_) | Write::JournalClose { .. } => 5,
        Write::Run(_) | Write::RunEnd { .. } => 6,
    }
}

/// Returns the number of bytes of memory that a write takes, roughly: its texts, and a share for all else.
fn size_of(write: &Write) -> usize {
    512 + write
        .statement()
        .binds
        .iter()
        .map(|bind| match bind {
            super::db::Bind::Text(Some(text)) => text.len(),
            _ => 0,
        })
        .sum::<usize>()
}

#[cfg(test)]
mod tests {
    use chrono::{DateTime, Utc};

    use super::*;
    use pitstop_core::lineage::Lineage;

    fn at() -> DateTime<Utc> {
        DateTime::UNIX_EPOCH
    }

    fn run() -> RunId {
        RunId::new(at(), [1, 2, 3])
    }

    fn metric(n: u32) -> Write {
        Write::Metric {
            run: run(),
            metric: Metric {
                iteration: None,
                name: n.to_string(),
                at: at(),
                value: 0.0,
            },
        }
    }

    fn end() -> Write {
        Write::RunEnd {
            run: run(),
            at: at(),
            reason: pitstop_core::lineage::EndReason::Shutdown,
        }
    }

    fn iteration(summary: &str) -> Write {
        let mut lineage = Lineage::new(run());
        lineage.open(None, None, at()).unwrap();
        let mut iteration = lineage.get(IterationId::FIRST).unwrap().clone();
        iteration.summary = Some(summary.to_owned());
        Write::Iteration {
            run: run(),
            iteration: Box::new(iteration),
        }
    }

    #[test]
    fn a_newer_state_takes_the_place_of_the_older_one() {
        let mut pending = Pending::default();
        pending.push(iteration("old"));
        pending.push(metric(1));
        pending.push(iteration("newer and longer"));
        assert_eq!(pending.len(), 2);
        assert_eq!(pending.front(), Some(&iteration("newer and longer")));
        let expected = size_of(&iteration("newer and longer")) + size_of(&metric(1));
        assert_eq!(pending.bytes, expected);
        pending.pop();
        pending.pop();
        assert!(pending.is_empty());
        assert_eq!(pending.bytes, 0);
    }

    #[test]
    fn a_full_queue_drops_metrics_first_and_ends_of_runs_last() {
        let mut pending = Pending::with_limits(usize::MAX, 3);
        pending.push(end());
        pending.push(iteration("kept"));
        for n in 0..50 {
            pending.push(metric(n));
        }
        assert_eq!(pending.len(), 3);
        assert_eq!(pending.dropped(), 49);
        assert_eq!(pending.front(), Some(&end()));
        assert!(pending.writes().any(|write| *write == iteration("kept")));
    }

    #[test]
    fn the_queue_never_holds_more_bytes_than_it_may() {
        let mut pending = Pending::with_limits(100_000, usize::MAX);
        for n in 0..1_000 {
            pending.push(metric(n));
            assert!(pending.bytes <= 100_000);
        }
        pending.push(iteration(&"x".repeat(200_000)));
        assert!(pending.bytes <= 100_000);
        assert!(pending.dropped() > 0);
    }

    #[test]
    fn a_state_that_came_while_the_older_one_was_written_still_waits() {
        let mut pending = Pending::default();
        pending.push(iteration("old"));
        let written = pending.front().cloned().unwrap();
        pending.push(iteration("newer"));
        pending.written(&written);
        assert_eq!(pending.front(), Some(&iteration("newer")));
        pending.written(&iteration("newer"));
        assert!(pending.is_empty());
        assert_eq!(pending.bytes, 0);
    }
}
