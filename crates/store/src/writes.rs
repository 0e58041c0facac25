//! The writes: every change that the store takes.

use chrono::{DateTime, Utc};
use rustix::process::{Signal, getpid, kill_process};
use uuid::Uuid;

use super::{
    AgentRecord, CrashPoint, RunHistory, RunRecord, StoreError, Written, connection::Store,
    rows::Write, target::Edge,
};
use pitstop_core::lineage::{
    EndReason, Iteration, IterationId, ProcessStamp, Project, RunId,
    checkpoint::Checkpoint,
    journal::{JournalEntry, Step},
    metrics::Metric,
};
use pitstop_transcript::SessionId;

impl Store {
    /// Records that a run began; everything else of the run comes after it.
    pub async fn begin_run(&self, run: &RunRecord) -> Result<Written, StoreError> {
        self.waiting().begun.push(run.clone());
        self.write(Write::Run(Box::new(run.clone())), "the run")
            .await
    }

    /// Records the task that a run has by now, if it has changed: by it a run that died is found again.
    pub async fn keep_task(&self, run: &RunId, task: Option<&str>) -> Result<(), StoreError> {
        let is_changed = |one: &&mut RunRecord| one.run == *run && one.task.as_deref() != task;
        let changed = self.waiting().begun.iter_mut().find(is_changed).map(|one| {
            one.task = task.map(str::to_owned);
            one.clone()
        });
        if let Some(record) = changed {
            let _written = self.write(Write::Run(Box::new(record)), "the run").await?;
        }
        Ok(())
    }

    /// Records that a run ended.
    pub async fn end_run(
        &self,
        run: &RunId,
        at: DateTime<Utc>,
        reason: EndReason,
    ) -> Result<Written, StoreError> {
        let run = run.clone();
        self.write(Write::RunEnd { run, at, reason }, "the end of the run")
            .await
    }

    /// Records that a run ended, to be written later: the database is away, and the end does not wait for it.
    pub fn end_run_later(&self, run: &RunId, at: DateTime<Utc>, reason: EndReason) {
        let run = run.clone();
        self.write_without_try(Write::RunEnd { run, at, reason });
    }

    /// Records an iteration as it is now.
    pub async fn put_iteration(
        &self,
        run: &RunId,
        iteration: &Iteration,
    ) -> Result<Written, StoreError> {
        let write = Write::Iteration {
            run: run.clone(),
            iteration: Box::new(iteration.clone()),
        };
        self.write(write, "the iteration").await
    }

    /// Writes a reboot step ahead: when it returns [`Written::Durable`] the step may be done.
    ///
    /// The process dies here when the options name this step as their crash point.
    pub async fn journal_put(&self, entry: &JournalEntry) -> Result<Written, StoreError> {
        self.crash_at(entry.step, Edge::Before);
        let written = self
            .write(Write::Journal(Box::new(entry.clone())), "the reboot step")
            .await;
        self.crash_at(entry.step, Edge::After);
        written
    }

    /// Closes a reboot that was recovered or given up, with its outcome.
    pub async fn journal_close(
        &self,
        reboot_id: Uuid,
        at: DateTime<Utc>,
        outcome: &str,
    ) -> Result<Written, StoreError> {
        let write = Write::JournalClose {
            reboot_id,
            at,
            outcome: outcome.to_owned(),
        };
        self.write(write, "the end of the reboot").await
    }

    /// Saves a checkpoint of `project`.
    pub async fn put_checkpoint(
        &self,
        project: &Project,
        checkpoint: &Checkpoint,
    ) -> Result<Written, StoreError> {
        let write = Write::Checkpoint {
            project: project.clone(),
            checkpoint: Box::new(checkpoint.clone()),
        };
        self.write(write, "the checkpoint").await
    }

    /// Keeps the state that a session carries of its lineage, in the place of the one that it carried before.
    pub async fn put_carried(
        &self,
        run: &RunId,
        session: SessionId,
        at: DateTime<Utc>,
        state: serde_json::Value,
    ) -> Result<Written, StoreError> {
        let write = Write::Carried {
            run: run.clone(),
            session,
            at,
            state: Box::new(state),
        };
        self.write(write, "what the session carries").await
    }

    /// Records the process of an agent, before anything else is done with it.
    pub async fn record_agent(
        &self,
        run: &RunId,
        iteration: IterationId,
        process: &ProcessStamp,
    ) -> Result<Written, StoreError> {
        let agent = AgentRecord {
            run: run.clone(),
            iteration,
            process: process.clone(),
        };
        self.write(Write::Agent(agent), "the agent's process").await
    }

    /// Records that an agent and its group are gone.
    pub async fn agent_gone(
        &self,
        run: &RunId,
        process: &ProcessStamp,
    ) -> Result<Written, StoreError> {
        let (run, process) = (run.clone(), process.clone());
        self.write(Write::AgentGone { run, process }, "the agent's end")
            .await
    }

    /// Records one figure of a run, or of one of its iterations.
    pub async fn put_metric(&self, run: &RunId, metric: &Metric) -> Result<Written, StoreError> {
        let write = Write::Metric {
            run: run.clone(),
            metric: metric.clone(),
        };
        self.write(write, "the metric").await
    }

    /// Forgets a run with its iterations, journal, agents and metrics; its checkpoints stay.
    pub async fn forget_run(&self, run: &RunId) -> Result<Written, StoreError> {
        self.write(Write::ForgetRun(run.clone()), "the forgotten run")
            .await
    }

    /// Forgets a checkpoint.
    pub async fn forget_checkpoint(&self, id: Uuid) -> Result<Written, StoreError> {
        self.write(Write::ForgetCheckpoint(id), "the forgotten checkpoint")
            .await
    }

    /// Writes histories as they are known from elsewhere.
    pub async fn put_back(&self, histories: &[RunHistory]) -> Result<(), StoreError> {
        for RunHistory { run, iterations } in histories {
            let begun = |one: &RunRecord| one.run == run.run;
            if !self.waiting().begun.iter().any(begun) {
                let record = Write::Run(Box::new(run.clone()));
                let _written = self.write(record, "the run").await?;
            }
            for iteration in iterations {
                let _written = self.put_iteration(&run.run, iteration).await?;
            }
        }
        Ok(())
    }

    fn crash_at(&self, step: Step, edge: Edge) {
        if self.crash_point() == Some(CrashPoint { step, edge }) {
            // As hard as the real thing: no destructor runs, nothing is flushed.
            let _ = kill_process(getpid(), Signal::KILL);
        }
    }
}

#[cfg(test)]
pub(super) mod tests {
    use std::path::Path;

    use pitstop_core::lineage::{Lineage, ProcessStamp, Project};
    use sqlx::ConnectOptions as _;

    use super::*;
    use crate::{HistoryOf, StoreOptions, StoreTarget};

    async fn open(state: &Path) -> Store {
        let target = StoreTarget::new(None, state).expect("a target");
        let store = Store::open(StoreOptions::new(target)).await;
        store.expect("a store").store
    }

    pub fn record(task: &str) -> RunRecord {
        RunRecord {
            run: RunId::new(DateTime::UNIX_EPOCH, [1, 2, 3]),
            project: Project::new(Path::new("/home/ada/tide"), "here"),
            process: ProcessStamp {
                pid: 1,
                start_time: "1".to_owned(),
            },
            agent: "claude".to_owned(),
            version: "1".to_owned(),
            task: Some(task.to_owned()),
            started_at: DateTime::UNIX_EPOCH,
            ended_at: None,
            end_reason: None,
        }
    }

    pub fn first_iteration(run: &RunId) -> Iteration {
        let mut lineage = Lineage::new(run.clone());
        lineage
            .open(None, None, DateTime::UNIX_EPOCH)
            .expect("a chain without an open iteration");
        lineage
            .get(IterationId::FIRST)
            .expect("an iteration")
            .clone()
    }

    #[tokio::test]
    async fn a_database_that_lost_its_records_is_filled_again() {
        for harm in ["DELETE FROM runs", "DROP TABLE pitstop_schema"] {
            let state = tempfile::tempdir().expect("a directory");
            let store = open(state.path()).await;
            let record = record("build a boat");
            let _written = store.begin_run(&record).await.expect("it is written");
            let file = store.file().expect("a file");
            let options = sqlx::sqlite::SqliteConnectOptions::new().filename(file);
            let mut other = options.connect().await.expect("a connection");
            if harm.starts_with("DROP") {
                let tables = "carried metrics agents journal iterations runs checkpoints";
                for table in tables.split(' ') {
                    let drop = sqlx::AssertSqlSafe(format!("DROP TABLE {table}"));
                    sqlx::raw_sql(drop).execute(&mut other).await.expect(table);
                }
            }
            sqlx::raw_sql(harm).execute(&mut other).await.expect(harm);
            drop(other);
            let iteration = first_iteration(&record.run);
            let written = store.put_iteration(&record.run, &iteration).await;
            assert!(matches!(written, Ok(Written::Queued(_))), "{written:?}");
            assert!(store.was_removed().await, "the rest is to be put back");
            let limit = tokio::time::Instant::now() + std::time::Duration::from_secs(30);
            while store.error().is_some() {
                assert!(tokio::time::Instant::now() < limit, "{:?}", store.error());
                tokio::time::sleep(std::time::Duration::from_millis(20)).await;
            }
            let of = HistoryOf::Run(record.run.clone());
            let found = store.history(&of, 9).await.expect("the history");
            assert_eq!(found.len(), 1, "{harm}");
            assert_eq!(found[0].iterations, [iteration]);
            assert_eq!(store.health().await.lost, 0);
        }
    }

    #[tokio::test]
    async fn a_reader_needs_no_place_to_write_to() {
        let state = tempfile::tempdir().expect("a directory");
        let writer = open(state.path()).await;
        let record = record("build a boat");
        let _written = writer.begin_run(&record).await.expect("it is written");
        let file = writer.file().expect("a file").to_owned();
        // No lock can be had, and later no WAL: something is in the way.
        let gate = state.path().join("opening.lock");
        std::fs::remove_file(&gate).expect("it was there");
        std::fs::create_dir(&gate).expect("a directory");
        for is_written in [true, false] {
            if !is_written {
                writer.close().await;
                let wal = state.path().join("pitstop.db-wal");
                std::fs::create_dir(wal).expect("a directory");
            }
            let options = StoreOptions::new(StoreTarget::Sqlite(file.clone()));
            let denied = Store::open(options.clone()).await.expect("a store").store;
            assert!(denied.error().is_some());
            let only_reads = true;
            let opened = Store::open(StoreOptions {
                only_reads,
                ..options
            })
            .await;
            let reader = opened.expect("a store").store;
            assert_eq!(reader.error(), None, "{is_written}");
            let of = HistoryOf::Project(record.project.clone());
            let found = reader.history(&of, 9).await.expect("the history");
            assert_eq!(found.len(), 1, "{is_written}");
            reader.close().await;
        }
    }

    #[tokio::test]
    async fn a_run_is_known_by_the_task_that_it_has_by_now() {
        let state = tempfile::tempdir().expect("a directory");
        let store = open(state.path()).await;
        let record = record("build a boat");
        let _written = store.begin_run(&record).await.expect("it is written");
        for task in ["build a boat", "build a submarine"] {
            let kept = store.keep_task(&record.run, Some(task)).await;
            kept.expect("it is written");
            let of = HistoryOf::Project(record.project.clone());
            let found = store.history(&of, 9).await.expect("the history");
            let tasks: Vec<_> = found.iter().map(|one| one.run.task.as_deref()).collect();
            assert_eq!(tasks, [Some(task)]);
        }
    }

    #[tokio::test]
    async fn an_outline_has_what_a_list_shows_and_not_what_is_large() {
        let state = tempfile::tempdir().expect("a directory");
        let store = open(state.path()).await;
        let record = record("build a boat");
        let _written = store.begin_run(&record).await.expect("it is written");
        let mut whole = first_iteration(&record.run);
        whole.summary = Some("the keel is laid".to_owned());
        (whole.turns, whole.cost_usd, whole.in_turn) = (Some(3), Some(1.5), true);
        (whole.compactions, whole.duration_ms) = (2, Some(4_000));
        whole.signal = Some("SIGHUP".to_owned());
        whole.summary_made = Some(pitstop_handoff::summary::SummaryMade {
            source: pitstop_handoff::summary::SummarySource::Model,
            cost_usd: Some(0.25),
            duration_ms: None,
            reason: None,
        });
        let written = store.put_iteration(&record.run, &whole).await;
        assert!(matches!(written, Ok(Written::Durable)), "{written:?}");
        let of = HistoryOf::Project(record.project.clone());
        let found = store.history(&of, 9).await.expect("the history");
        assert_eq!(found[0].iterations, [whole.clone()]);
        let listed = store.outline(&of, 9).await.expect("the outline");
        assert_eq!(listed[0].run, found[0].run);
        whole.summary = None;
        assert_eq!(listed[0].iterations, [whole]);
    }
}
