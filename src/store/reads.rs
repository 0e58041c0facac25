//! What is read: what the database has, and what waits to be written to it.

use chrono::{DateTime, Utc};

use super::{
    AgentRecord, Checkpoints, HistoryOf, RunHistory, RunRecord, Saved, StoreError,
    connection::Store, rows,
};
use crate::{
    lineage::{
        Iteration, IterationId, Project, RunId,
        checkpoint::Checkpoint,
        journal::JournalEntry,
        metrics::{Metric, Total},
        past::{self, PastSession},
    },
    transcript::SessionId,
};

impl Store {
    /// The figures of a run, oldest first, at most the newest 10 000.
    pub async fn metrics(&self, run: &RunId) -> Result<Vec<Metric>, StoreError> {
        const WHAT: &str = "the metrics";
        let rows = self.read(rows::read_metrics(run), WHAT).await?;
        let mut found: Vec<_> = rows
            .iter()
            .filter_map(|row| known(rows::metric(row), WHAT))
            .collect();
        found.reverse();
        self.waiting().pending.over_metrics(run, &mut found);
        Ok(found)
    }

    /// All figures of these runs, taken together by name.
    pub async fn totals(&self, of: &HistoryOf) -> Result<Vec<Total>, StoreError> {
        const WHAT: &str = "the metrics";
        let rows = self.read(rows::read_totals(of), WHAT).await?;
        let found = rows.iter();
        Ok(found
            .filter_map(|row| known(rows::total(row), WHAT))
            .collect())
    }

    /// The runs asked for with their iterations, newest run first, at most `limit` runs.
    pub async fn history(&self, of: &HistoryOf, limit: u32) -> Result<Vec<RunHistory>, StoreError> {
        const WHAT: &str = "the history";
        let mut histories = Vec::new();
        for row in self.read(rows::read_runs(of, limit), WHAT).await? {
            let Some(run) = known(rows::run(&row), WHAT) else {
                continue;
            };
            let rows = self.read(rows::read_iterations(&run.run), WHAT).await?;
            let iterations = rows
                .iter()
                .filter_map(|row| known(rows::iteration(row), WHAT))
                .collect();
            histories.push(RunHistory { run, iterations });
        }
        let waiting = self.waiting();
        waiting.pending.over_history(of, limit, &mut histories);
        Ok(histories)
    }

    /// A session of any run, with what it was given and what it handed over; none if the store knows no such session.
    pub async fn session(&self, session: SessionId) -> Result<Option<PastSession>, StoreError> {
        const WHAT: &str = "the session";
        let rows = self.read(rows::read_session(session), WHAT).await?;
        let found = rows.first().and_then(|row| known(rows::place(row), WHAT));
        let waiting = self.waiting().pending.place_of(session);
        match waiting.max(found) {
            Some((run, iteration)) => self.past(&run, iteration).await,
            None => Ok(None),
        }
    }

    /// The session of an iteration, with what it was given and what it handed over; none if the store knows no such
    /// iteration.
    pub async fn past(
        &self,
        run: &RunId,
        iteration: IterationId,
    ) -> Result<Option<PastSession>, StoreError> {
        const WHAT: &str = "the session";
        let of = HistoryOf::Run(run.clone());
        let rows = self.read(rows::read_runs(&of, 1), WHAT).await?;
        let begun = rows.first().and_then(|row| known(rows::run(row), WHAT));
        let rows = self
            .read(rows::read_iteration(run, iteration), WHAT)
            .await?;
        let iterations = rows.iter();
        let iterations = iterations.filter_map(|row| known(rows::iteration(row), WHAT));
        let mut found: Vec<_> = begun
            .map(|run| RunHistory {
                run,
                iterations: iterations.collect(),
            })
            .into_iter()
            .collect();
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
        let rows = self
            .read(rows::read_iterations_after(&run.run, session), WHAT)
            .await?;
        let after: Vec<_> = rows
            .iter()
            .filter_map(|row| known(rows::iteration(row), WHAT))
            .collect();
        // What waits is newer than what was read.
        let reboots = iterations.iter().rev().chain(&after);
        let mut of_it = reboots
            .filter_map(|one| one.reboot.as_ref())
            .filter(|record| record.old_session == Some(session));
        past.state = of_it.find_map(|record| record.preserved_state.clone());
        let rows = self
            .read(rows::read_reboots(&run.run, session), WHAT)
            .await?;
        let mut entries: Vec<_> = rows
            .iter()
            .filter_map(|row| known(rows::journal_entry(row), WHAT))
            .collect();
        let checkpoints = rows::read_checkpoint_of(&run.project, iteration, session);
        let rows = self.read(checkpoints, WHAT).await?;
        past.checkpoint = rows
            .first()
            .and_then(|row| known(rows::checkpoint(row), WHAT));
        let waiting = waiting();
        let pending = &waiting.pending;
        pending.over_reboots(&run.run, &mut entries);
        pending.over_checkpoint_of(session, &mut past.checkpoint);
        past.got = past::got(&entries, session).cloned();
        past.gave = past::gave(&entries, session).cloned();
        Ok(Some(past))
    }

    /// The iterations of a project's runs but for one, newest first, at most `limit`: what a list shows, without the record
    /// of the reboot and without the summary, which may be large. [`Store::past`] has them.
    pub async fn earlier_iterations(
        &self,
        project: &Project,
        but: &RunId,
        limit: u32,
    ) -> Result<Vec<(RunId, Iteration)>, StoreError> {
        const WHAT: &str = "earlier runs";
        let statement = rows::read_earlier(project, but, limit);
        let rows = self.read(statement, WHAT).await?;
        let found = rows.iter();
        Ok(found
            .filter_map(|row| known(rows::iteration_of_run(row), WHAT))
            .collect())
    }

    /// The iterations of a project in which this text stands, whatever the case of its letters: in the run's task, the
    /// handoffs, the summary, the session's id or the record's words. Newest first, at most `limit`.
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
        // What the pattern lets through too much is left out, and another page makes up for it.
        while found.len() < most {
            let statement = rows::search(project, wanted, behind.as_ref(), limit);
            let rows = self.read(statement, WHAT).await?;
            for row in &rows {
                let Some((run, iteration)) = known(rows::place(row), WHAT) else {
                    continue;
                };
                let is_it = match &small {
                    None => true,
                    Some(small) => {
                        let past = self.past(&run, iteration).await?;
                        past.is_some_and(|past| says(&past, small))
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

    /// Every run of this machine (of this project alone, if one is given) that began before `before`, oldest first.
    pub async fn runs_before(
        &self,
        host: &str,
        project: Option<&Project>,
        before: DateTime<Utc>,
    ) -> Result<Vec<RunRecord>, StoreError> {
        const WHAT: &str = "the runs";
        let statement = rows::read_runs_before(host, project, before);
        let rows = self.read(statement, WHAT).await?;
        let found = rows.iter();
        Ok(found
            .filter_map(|row| known(rows::run(row), WHAT))
            .collect())
    }

    /// Every checkpoint of this machine (of this project alone, if one is given), newest first.
    pub async fn saved(
        &self,
        host: &str,
        project: Option<&Project>,
    ) -> Result<Vec<Saved>, StoreError> {
        const WHAT: &str = "the checkpoints";
        let rows = self.read(rows::read_saved(host, project), WHAT).await?;
        let found = rows.iter();
        Ok(found
            .filter_map(|row| known(rows::saved(row), WHAT))
            .collect())
    }

    /// The latest reboot of the project that was begun and is not over.
    pub async fn journal_open(
        &self,
        project: &Project,
    ) -> Result<Option<JournalEntry>, StoreError> {
        const WHAT: &str = "the journal";
        let rows = self.read(rows::read_journal(project), WHAT).await?;
        let open = rows
            .first()
            .and_then(|row| known(rows::journal_entry(row), WHAT));
        let waiting = self.waiting();
        Ok(waiting
            .pending
            .over_journal(|run| waiting.is_of(run, project), open))
    }

    /// The checkpoints asked for, newest first.
    pub async fn checkpoints(&self, which: &Checkpoints) -> Result<Vec<Checkpoint>, StoreError> {
        const WHAT: &str = "the checkpoints";
        let rows = self.read(rows::read_checkpoints(which), WHAT).await?;
        let mut found: Vec<_> = rows
            .iter()
            .filter_map(|row| known(rows::checkpoint(row), WHAT))
            .collect();
        // The database compares letters without their case.
        if let Some(tag) = &which.tag {
            found.retain(|one| one.tags.contains(tag));
        }
        let waiting = self.waiting();
        waiting.pending.over_checkpoints(which, &mut found);
        Ok(found)
    }

    /// The agents of the project that are not known to have ended, newest first: what a starting
    /// supervisor sweeps up after one that crashed.
    pub async fn last_agents(&self, project: &Project) -> Result<Vec<AgentRecord>, StoreError> {
        const WHAT: &str = "the agents";
        let rows = self.read(rows::read_agents(project), WHAT).await?;
        let mut found = rows
            .iter()
            .filter_map(|row| known(rows::agent(row), WHAT))
            .collect();
        let waiting = self.waiting();
        waiting
            .pending
            .over_agents(|run| waiting.is_of(run, project), &mut found);
        Ok(found)
    }
}

/// A row that cannot be read was written by something else: it is left out, and the log says so.
fn known<T>(record: Option<T>, what: &'static str) -> Option<T> {
    if record.is_none() {
        tracing::warn!(
            what,
            "a row of the database could not be read and is left out"
        );
    }
    record
}

/// Whether one of the texts of a session holds this one, which is in lower case.
fn says(past: &PastSession, wanted: &str) -> bool {
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
