//! The iterations of one run: the open one, and the parent whose work each one carries on.

use std::time::Duration;

use chrono::{DateTime, Utc};

use super::{Cause, EndReason, Iteration, IterationId, LineageError, RunId, TokenTotals};
use pitstop_base::clock::milliseconds;
use pitstop_handoff::summary::SummaryMade;
use pitstop_transcript::SessionId;

/// The number of latest iterations that keep in memory the state that their reboot handed over. Late information, such as a
/// summary, is written with the whole record again, and arrives long before this many further reboots.
pub(super) const STATES_KEPT: usize = 4;

/// The iterations of one run, in order: at most the last is open.
///
/// ```text
///        open              close(reason)             open
/// none ───────► 1 open ───────────────► 1 closed ───────────► 2 open ─ ─ ►
///                  │                        ▲
///                  └── current_mut: figures ┘
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Lineage {
    run: RunId,
    iterations: Vec<Iteration>,
}

impl Lineage {
    /// Begins the chain of a new run.
    pub const fn new(run: RunId) -> Self {
        Self {
            run,
            iterations: Vec::new(),
        }
    }

    /// Returns the chain of a run whose supervisor is gone, as it was recorded: an iteration that was left open is closed
    /// as a crash at its `last_sign` of life. The time for which nothing ran after that belongs to none.
    pub fn recorded(
        run: RunId,
        mut iterations: Vec<Iteration>,
        last_sign: impl Fn(&Iteration) -> DateTime<Utc>,
    ) -> Self {
        for left_open in iterations.iter_mut().filter(|one| one.is_open()) {
            let at = last_sign(left_open).max(left_open.started_at);
            // It went on after it was recorded last. Its moments say for how long, unless the clock was set back.
            let recorded = left_open.duration_ms.take();
            left_open.close(at, EndReason::Crash);
            left_open.duration_ms = recorded.max(Some(milliseconds(left_open.lasted())));
        }
        Self { run, iterations }
    }

    /// Returns the time that the iterations that are over have taken.
    pub fn worked(&self) -> Duration {
        let over = self.iterations.iter().filter(|one| !one.is_open());
        over.map(Iteration::lasted).sum()
    }

    /// Returns the run that this chain belongs to.
    pub const fn run(&self) -> &RunId {
        &self.run
    }

    /// Opens the next iteration as a child of the last one, in `session`, begun by `cause`.
    pub fn open(
        &mut self,
        session: Option<SessionId>,
        cause: Option<Cause>,
        at: DateTime<Utc>,
    ) -> Result<IterationId, LineageError> {
        let parent = self.iterations.last().map(|last| last.iteration);
        self.open_below(parent, session, cause, at)
    }

    /// Opens the next iteration as a child of `parent`: an undo carries on from an older one.
    pub fn open_below(
        &mut self,
        parent: Option<IterationId>,
        session: Option<SessionId>,
        cause: Option<Cause>,
        at: DateTime<Utc>,
    ) -> Result<IterationId, LineageError> {
        if let Some(open) = self.current() {
            return Err(LineageError::StillOpen(open.iteration));
        }
        let id = self
            .iterations
            .last()
            .map_or(IterationId::FIRST, |last| last.iteration.next());
        self.iterations.push(Iteration {
            session_id: session,
            parent,
            cause,
            ..Iteration::born(id, at)
        });
        self.forget_old_states();
        Ok(id)
    }

    /// Drops the states that old reboots handed over, which the store keeps: a run of hundreds of sessions must not keep them
    /// in memory too, where each may hold the names of thousands of tests.
    fn forget_old_states(&mut self) {
        let old = self.iterations.len().saturating_sub(STATES_KEPT);
        // All iterations before that one have been cleared by earlier calls.
        let one = old
            .checked_sub(1)
            .and_then(|at| self.iterations.get_mut(at));
        if let Some(record) = one.and_then(|one| one.reboot.as_mut()) {
            record.preserved_state = None;
        }
    }

    /// Closes the open iteration and returns its finished record.
    pub fn close(
        &mut self,
        at: DateTime<Utc>,
        reason: EndReason,
    ) -> Result<&Iteration, LineageError> {
        let open = self.current_mut().ok_or(LineageError::NoneOpen)?;
        open.close(at, reason);
        Ok(open)
    }

    /// Returns the open iteration.
    pub fn current(&self) -> Option<&Iteration> {
        self.iterations.last().filter(|last| last.is_open())
    }

    /// Returns the open iteration, so that figures can be recorded in it.
    pub fn current_mut(&mut self) -> Option<&mut Iteration> {
        self.iterations.last_mut().filter(|last| last.is_open())
    }

    /// Notes that the open iteration has resumed a session, unless another cause is known. Returns whether that is new.
    pub fn note_resumed(&mut self) -> bool {
        let current = self.current_mut();
        let unexplained = current.filter(|one| one.cause.is_none());
        unexplained.is_some_and(|one| one.cause.replace(Cause::Resume).is_none())
    }

    /// Returns the iteration of that number.
    pub fn get(&self, id: IterationId) -> Option<&Iteration> {
        let place = usize::try_from(id.get()).ok()?.checked_sub(1)?;
        self.iterations.get(place)
    }

    /// Adds tokens that were read when the iteration before the open one was over. Returns its record, if there is one.
    pub fn add_late_tokens(&mut self, late: TokenTotals) -> Option<&Iteration> {
        let before = self.current().and_then(|current| current.parent)?;
        let before = self.get_mut(before)?;
        before.tokens = before.tokens.with(late, u64::saturating_add);
        Some(before)
    }

    /// Notes the summary of an iteration, which may come after its end, and how it was made.
    pub fn add_summary(&mut self, id: IterationId, text: String, made: SummaryMade) {
        if let Some(record) = self.get_mut(id) {
            record.summary = Some(text);
            record.summary_made = Some(made);
        }
    }

    fn get_mut(&mut self, id: IterationId) -> Option<&mut Iteration> {
        let place = usize::try_from(id.get()).ok()?.checked_sub(1)?;
        self.iterations.get_mut(place)
    }

    /// Returns the newest iteration that ran in this session.
    pub fn newest_in(&self, session: SessionId) -> Option<IterationId> {
        let mut newest_first = self.iterations.iter().rev();
        let found = newest_first.find(|one| one.session_id == Some(session));
        found.map(|one| one.iteration)
    }

    /// Returns the iteration whose work `id` carries on.
    pub fn parent(&self, id: IterationId) -> Option<&Iteration> {
        self.get(self.get(id)?.parent?)
    }

    /// Returns every iteration, oldest first.
    pub fn iterations(&self) -> &[Iteration] {
        &self.iterations
    }
}
