//! The reads: the records in the database, and those that wait to be written to it.

use chrono::{DateTime, Utc};

use super::{
    AgentRecord, Checkpoints, HistoryOf, RunHistory, RunRecord, Saved, StoreError,
    connection::Store,
    db::{Cells, Statement},
    rows,
};
use pitstop_core::lineage::{
    Iteration, IterationId, Project, RunId,
    checkpoint::Checkpoint,
    journal::JournalEntry,
    metrics::{Metric, Total},
    past::{self, PastSession},
};
use pitstop_transcript::SessionId;

impl Store {
    /// Returns the figures of a run, oldest first, at most the newest 10 000.
    pub async fn metrics(&self, run: &RunId) -> Result<Vec<Metric>, StoreError> {
        const WHAT: &str = "the metrics";
        let read = rows::read_metrics(run);
        let mut found = self.read_records(read, rows::metric_in, WHAT).await?;
        found.reverse();
        self.waiting().pending.over_metrics(run, &mut found);
        Ok(found)
    }

    /// Returns all figures of these runs, taken together by name.
    pub async fn totals(&self, of: &HistoryOf) -> Result<Vec<Total>, StoreError> {
        let read = rows::read_totals(of);
        self.read_records(read, rows::total_in, "the metrics").await
    }

    /// Returns the runs asked for with their iterations, newest run first, at most `limit` runs.
    pub async fn history(&self, of: &HistoryOf, limit: u32) -> Result<Vec<RunHistory>, StoreError> {
        self.runs_with(of, limit, rows::read_iterations).await
    }

    /// Returns the same for a list: the iterations without the record of the reboot and without the summary, which may be large.
    pub async fn outline(&self, of: &HistoryOf, limit: u32) -> Result<Vec<RunHistory>, StoreError> {
        self.runs_with(of, limit, rows::read_outline).await
    }

    async fn runs_with(
        &self,
        of: &HistoryOf,
        limit: u32,
        part: fn(&RunId) -> Statement,
    ) -> Result<Vec<RunHistory>, StoreError> {
        let read = rows::read_runs(of, limit);
        let mut histories = self.with_iterations(read, part, "the history").await?;
        let waiting = self.waiting();
        waiting.pending.over_history(of, limit, &mut histories);
        Ok(histories)
    }

    /// Returns the runs that are open on other machines than this one, with their iterations, newest run first, at most `limit` runs: for
    /// a store that several machines share. The supervisor of such a run may have died.
    pub async fn open_elsewhere(
        &self,
        host: &str,
        limit: u32,
    ) -> Result<Vec<RunHistory>, StoreError> {
        let read = rows::read_open_elsewhere(host, limit);
        self.with_iterations(read, rows::read_iterations, "the runs of other machines")
            .await
    }

    /// Reads runs, each with its iterations.
    async fn with_iterations(
        &self,
        read: Statement,
        part: fn(&RunId) -> Statement,
        what: &'static str,
    ) -> Result<Vec<RunHistory>, StoreError> {
        let mut histories = Vec::new();
        for run in self.read_records(read, rows::run_in, what).await? {
            let read = part(&run.run);
            let iterations = self.read_records(read, rows::iteration_in, what).await?;
            histories.push(RunHistory { run, iterations });
        }
        Ok(histories)
    }

    /// Returns a session of any run, with the handoffs that it got and gave; none if the store knows no such session.
    pub async fn session(&self, session: SessionId) -> Result<Option<PastSession>, StoreError> {
        let read = rows::read_session(session);
        let found = self
            .read_record(read, rows::place_in, "the session")
            .await?;
        let waiting = self.waiting().pending.place_of(session);
        match waiting.max(found) {
            Some((run, iteration)) => self.past(&run, iteration).await,
            None => Ok(None),
        }
    }

    /// Returns the session of an iteration, with the handoffs that it got and gave; none if the store knows no such
    /// iteration.
    pub async fn past(
        &self,
        run: &RunId,
        iteration: IterationId,
    ) -> Result<Option<PastSession>, StoreError> {
        const WHAT: &str = "the session";
        let of = HistoryOf::Run(run.clone());
        let read = rows::read_runs(&of, 1);
        let begun = self.read_record(read, rows::run_in, WHAT).await?;
        let read = rows::read_iteration(run, iteration);
        let iterations = self.read_records(read, rows::iteration_in, WHAT).await?;
        let begun = begun.map(|run| RunHistory { run, iterations });
        let mut found: Vec<_> = begun.into_iter().collect();
        let waiting = || self.waiting();
        waiting().pending.over_history(&of, 1, &mut found);
        let Some(RunHistory { run, iterations }) = found.pop() else {
            return Ok(None);
        };
        let is_it = |one: &&Iteration| one.iteration == iteration;
        let Some(iteration) = iterations.iter().find(is_it) else {
            return Ok(None);
        };
        let mut past = PastSession {
            run: run.run.clone(),
            task: run.task,
            iteration: iteration.clone(),
            got: None,
            gave: None,
            state: None,
            checkpoint: None,
        };
        let Some(session) = iteration.session_id else {
            return Ok(Some(past));
        };
        let read = rows::read_iterations_after(&run.run, session);
        let after = self.read_records(read, rows::iteration_in, WHAT).await?;
        // What waits is newer than what was read.
        let reboots = iterations.iter().rev().chain(&after);
        let mut of_it = reboots
            .filter_map(|one| one.reboot.as_ref())
            .filter(|record| record.old_session == Some(session));
        past.state = of_it.find_map(|record| record.preserved_state.clone());
        let read = rows::read_reboots(&run.run, session);
        let mut entries = self
            .read_records(read, rows::journal_entry_in, WHAT)
            .await?;
        let read = rows::read_checkpoint_of(&run.project, iteration, session);
        past.checkpoint = self.read_record(read, rows::checkpoint_in, WHAT).await?;
        let waiting = waiting();
        let pending = &waiting.pending;
        pending.over_reboots(&run.run, &mut entries);
        pending.over_checkpoint_of(session, &mut past.checkpoint);
        past.got = past::got(&entries, session, iteration.iteration).cloned();
        past.gave = past::gave(&entries, session, iteration.iteration).cloned();
        Ok(Some(past))
    }

    /// Returns the state that a session carries of its lineage; none if the store knows of none.
    pub async fn carried(
        &self,
        session: SessionId,
    ) -> Result<Option<serde_json::Value>, StoreError> {
        let waiting = self.waiting().pending.carried_state(session);
        if waiting.is_some() {
            return Ok(waiting);
        }
        let read = rows::read_carried(session);
        self.read_record(read, rows::carried_in, "what the session carries")
            .await
    }

    /// Returns the time of the state that a session carries; none if the store has none.
    pub async fn carried_at(
        &self,
        session: SessionId,
    ) -> Result<Option<DateTime<Utc>>, StoreError> {
        let read = rows::read_carried_at(session);
        let what = "the time of what the session carries";
        self.read_record(read, rows::carried_at_in, what).await
    }

    /// Returns the iterations of a project's runs except one, newest first, at most `limit`: the part that a list shows, without
    /// the record of the reboot and without the summary, which may be large. [`Store::past`] has them.
    pub async fn earlier_iterations(
        &self,
        project: &Project,
        but: &RunId,
        limit: u32,
    ) -> Result<Vec<(RunId, Iteration)>, StoreError> {
        let read = rows::read_earlier(project, but, limit);
        self.read_records(read, rows::iteration_of_run, "earlier runs")
            .await
    }

    /// Returns the iterations of a project in which this text occurs, whatever the case of its letters: in the run's task, the
    /// handoffs, the summary, the session's id or the record's words. The newest come first, at most `limit`.
    pub async fn search(
        &self,
        project: &Project,
        wanted: &str,
        limit: u32,
    ) -> Result<Vec<(RunId, IterationId)>, StoreError> {
        const WHAT: &str = "the history";
        let most = limit as usize;
        let small = (!wanted.is_ascii()).then(|| wanted.to_lowercase());
        let mut found = Vec::new();
        let mut behind = None;
        // A row that only the pattern finds, and not the text, is left out, and another page makes up for it.
        while found.len() < most {
            let statement = rows::search(project, wanted, behind.as_ref(), limit);
            let rows = self.read(statement, WHAT).await?;
            for row in &rows {
                let Some((run, iteration)) = log_unknown(rows::place_in(row), WHAT) else {
                    continue;
                };
                let is_it = match &small {
                    None => true,
                    Some(small) => {
                        let past = self.past(&run, iteration).await?;
                        past.is_some_and(|past| holds_text(&past, small))
                    }
                };
                behind = Some((run.clone(), iteration));
                if is_it {
                    found.push((run, iteration));
                }
                if found.len() == most {
                    break;
                }
            }
            if rows.len() < most || behind.is_none() {
                break;
            }
        }
        Ok(found)
    }

    /// Returns every run of this machine (of this project alone, if one is given) that began before `before`, oldest first.
    pub async fn runs_before(
        &self,
        host: &str,
        project: Option<&Project>,
        before: DateTime<Utc>,
    ) -> Result<Vec<RunRecord>, StoreError> {
        let read = rows::read_runs_before(host, project, before);
        self.read_records(read, rows::run_in, "the runs").await
    }

    /// Returns every checkpoint of this machine (of this project alone, if one is given), newest first.
    pub async fn saved(
        &self,
        host: &str,
        project: Option<&Project>,
    ) -> Result<Vec<Saved>, StoreError> {
        let read = rows::read_saved(host, project);
        self.read_records(read, rows::saved_in, "the checkpoints")
            .await
    }

    /// Returns the latest reboot of the project that was begun and is not over.
    pub async fn journal_open(
        &self,
        project: &Project,
    ) -> Result<Option<JournalEntry>, StoreError> {
        let read = rows::read_journal(project);
        let open = self
            .read_record(read, rows::journal_entry_in, "the journal")
            .await?;
        let waiting = self.waiting();
        Ok(waiting
            .pending
            .over_journal(|run| waiting.is_of(run, project), open))
    }

    /// Returns the checkpoints asked for, newest first.
    pub async fn checkpoints(&self, which: &Checkpoints) -> Result<Vec<Checkpoint>, StoreError> {
        let read = rows::read_checkpoints(which);
        let mut found = self
            .read_records(read, rows::checkpoint_in, "the checkpoints")
            .await?;
        // The database compares letters without their case.
        if let Some(tag) = &which.tag {
            found.retain(|one| one.tags.contains(tag));
        }
        let waiting = self.waiting();
        waiting.pending.over_checkpoints(which, &mut found);
        Ok(found)
    }

    /// Returns the agents of the project that are not known to have ended, newest first: those that a starting
    /// supervisor ends after one that crashed.
    pub async fn last_agents(&self, project: &Project) -> Result<Vec<AgentRecord>, StoreError> {
        let read = rows::read_agents(project);
        let mut found = self
            .read_records(read, rows::agent_in, "the agents")
            .await?;
        let waiting = self.waiting();
        waiting
            .pending
            .over_agents(|run| waiting.is_of(run, project), &mut found);
        Ok(found)
    }
}

impl Store {
    /// Returns the records in the rows of a statement; the log names them `what`.
    async fn read_records<T>(
        &self,
        statement: Statement,
        record: fn(&Cells) -> Option<T>,
        what: &'static str,
    ) -> Result<Vec<T>, StoreError> {
        let rows = self.read(statement, what).await?;
        let found = rows.iter().filter_map(|row| log_unknown(record(row), what));
        Ok(found.collect())
    }

    /// Returns the record in the first row.
    async fn read_record<T>(
        &self,
        statement: Statement,
        record: fn(&Cells) -> Option<T>,
        what: &'static str,
    ) -> Result<Option<T>, StoreError> {
        let rows = self.read(statement, what).await?;
        Ok(rows.first().and_then(|row| log_unknown(record(row), what)))
    }
}

/// Logs a row that could not be read: it was written by something else, and is left out.
fn log_unknown<T>(record: Option<T>, what: &'static str) -> Option<T> {
    if record.is_none() {
        tracing::warn!(
            what,
            "a row of the database could not be read and is left out"
        );
    }
    record
}

/// Reports whether one of the texts of a session holds this one, which is in lower case.
fn holds_text(past: &PastSession, wanted: &str) -> bool {
    let handoff = |entry: &Option<JournalEntry>| entry.as_ref().map(|one| one.handoff.clone());
    let texts = [
        past.task.clone(),
        past.iteration.summary.clone(),
        handoff(&past.got),
        handoff(&past.gave),
    ];
    let mut texts = texts.iter().flatten();
    texts.any(|text| text.to_lowercase().contains(wanted))
}
