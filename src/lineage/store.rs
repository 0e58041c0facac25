//! The database: runs, iterations, checkpoints, the reboot journal, agents and metrics.
//!
//! One schema and one set of statements for `SQLite` (a file of the user's own) and Postgres (a
//! server shared by a fleet). What is promised:
//!
//! - A write that returns [`Written::Durable`] survives the death of the process and, on `SQLite`,
//!   of the machine.
//! - A write that the database cannot take now (locked, full, gone) waits in memory, bounded and
//!   in order, returns [`Written::Queued`], and is written within two seconds of the database
//!   being well again. Readers see it meanwhile. Nobody who writes waits more than the patience
//!   of the first failure.
//! - A corrupt file is set aside and a new one begun, and one that is removed is made again; a schema newer than ours is
//!   refused.
//!
//! ```text
//!  write ──► trouble? ──no──► database ──ok──► Durable
//!               │                 │ trouble
//!               └──yes──► queue ◄─┘ ───────► Queued
//!                          │
//!      every second: ──────┴──► database, oldest first, until it is empty
//! ```

mod db;
mod pending;
mod rows;

use std::{
    path::{Path, PathBuf},
    str::FromStr,
    sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock, Weak},
    time::Duration,
};

use chrono::{DateTime, Utc};
use rustix::process::{Signal, getpid, kill_process};
use serde::Serialize;
use tokio::sync::Notify;
use uuid::Uuid;

use self::{
    db::{Db, DbError, OpenedDb, Patience},
    pending::Pending,
    rows::Write,
};
use crate::{
    clean::chain,
    lineage::{
        EndReason, Iteration, IterationId, LineageError, ProcessStamp, Project, RunId,
        checkpoint::Checkpoint,
        files::Edge,
        journal::{JournalEntry, Step},
        metrics::Total,
        past::{self, PastSession},
    },
    transcript::SessionId,
};

/// The database's file name in the state directory.
pub const FILE: &str = "pitstop.db";

/// How long a write waits for another process's lock before it is queued.
pub const PATIENCE: Duration = Duration::from_secs(5);

/// How often a database in trouble is tried again: often enough that a database that is back is in use within five seconds.
const RETRY: Duration = Duration::from_secs(1);

/// How many tries in vain make the connections suspect: the file may have been damaged or replaced
/// beneath them, which only opening it anew finds out.
const SUSPECT: u32 = 3;

/// Where the database is.
#[derive(Clone, PartialEq, Eq)]
pub enum StoreTarget {
    /// A file; the directory above it is made private.
    Sqlite(PathBuf),
    /// A server, by its `postgres://` URL, which may hold a password.
    Postgres(String),
}

impl StoreTarget {
    /// The target that `[store] url` names, or the file in `state_dir` (the program's own, such as
    /// `$XDG_STATE_HOME/pitstop`) when it names none.
    pub fn new(url: Option<&str>, state_dir: &Path) -> Result<Self, StoreError> {
        match url {
            None => Ok(Self::Sqlite(state_dir.join(FILE))),
            Some(url) if url.starts_with("postgres://") || url.starts_with("postgresql://") => {
                db::postgres_options(url)?;
                Ok(Self::Postgres(url.to_owned()))
            }
            Some(url) => match url.strip_prefix("sqlite://") {
                Some(path) if Path::new(path).is_absolute() => Ok(Self::Sqlite(path.into())),
                _ => Err(StoreError::Target),
            },
        }
    }

    /// Where it is, for people: never with a password.
    #[must_use]
    pub fn place(&self) -> String {
        match self {
            Self::Sqlite(path) => path.display().to_string(),
            Self::Postgres(url) => db::postgres_place(url),
        }
    }
}

impl std::fmt::Debug for StoreTarget {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "StoreTarget({})", self.place())
    }
}

/// Where the process kills itself, to show that a reboot is recovered: `PITSTOP_CRASH_AT`, in builds with
/// debug assertions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CrashPoint {
    /// At the journal write of this step.
    pub step: Step,
    /// Before the write or after it is durable.
    pub edge: Edge,
}

impl FromStr for CrashPoint {
    type Err = LineageError;

    /// Reads `starting:before` or `starting:after`.
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let wrong = || LineageError::Word {
            expected: "a crash point such as starting:before or starting:after",
            found: text.chars().take(64).collect(),
        };
        let (step, edge) = text.split_once(':').ok_or_else(wrong)?;
        Ok(Self {
            step: step.parse().map_err(|_| wrong())?,
            edge: match edge {
                "before" => Edge::Before,
                "after" => Edge::After,
                _ => return Err(wrong()),
            },
        })
    }
}

/// How to open the store.
#[derive(Clone, Debug)]
pub struct StoreOptions {
    /// Where.
    pub target: StoreTarget,
    /// How long a write waits for a lock: [`PATIENCE`] but in tests.
    pub patience: Duration,
    /// Where to die, in tests of recovery.
    pub crash: Option<CrashPoint>,
}

impl StoreOptions {
    /// The usual options for `target`.
    #[must_use]
    pub const fn new(target: StoreTarget) -> Self {
        Self {
            target,
            patience: PATIENCE,
            crash: None,
        }
    }
}

/// What went wrong with the store; trouble that may pass is no error but [`Written::Queued`].
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// The database was changed by a newer program.
    #[error(
        "expected a database of schema version {known} or older, found version {found} at {place}: \
         a newer pitstop has used it; upgrade this one or name another database in [store] url"
    )]
    NewerSchema {
        /// The version found.
        found: i64,
        /// The newest version we know.
        known: i64,
        /// Where.
        place: String,
    },
    /// The URL names no database of a kind we know. It is not repeated: it may hold a password.
    #[error("expected [store] url to be postgres://… or sqlite:///absolute/path")]
    Target,
    /// The database refused a statement for good.
    #[error("the database refused {what}: {reason}")]
    Refused {
        /// What was to be done.
        what: &'static str,
        /// Why not.
        reason: String,
    },
    /// The database cannot be read now.
    #[error("cannot read {what} from the database: {reason}")]
    Unreadable {
        /// What was to be read.
        what: &'static str,
        /// Why not.
        reason: String,
    },
}

/// What the human must be told about an opened store.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum StoreWarning {
    /// The database was corrupt: it was kept under another name and a new one begun.
    #[error("the database was corrupt: it is kept as {} and a new one was begun", .kept.display())]
    SetAside {
        /// Where the corrupt file is.
        kept: PathBuf,
    },
    /// The database cannot be used: history is kept in memory and written when it can be.
    #[error("the database cannot be used ({reason}): history is kept in memory until it can")]
    InMemory {
        /// Why not.
        reason: String,
    },
}

/// What became of a write.
#[derive(Clone, Debug, PartialEq, Eq)]
#[must_use = "a queued write is not safe yet"]
pub enum Written {
    /// It is on disk.
    Durable,
    /// It waits in memory.
    Queued(StoreWarning),
}

/// One run of a supervisor.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct RunRecord {
    /// Its name.
    pub run: RunId,
    /// What it works on.
    pub project: Project,
    /// The supervisor's process.
    pub process: ProcessStamp,
    /// The agent, as the user names it.
    pub agent: String,
    /// The version of this program.
    pub version: String,
    /// The task of an autonomous run.
    pub task: Option<String>,
    /// When it began.
    pub started_at: DateTime<Utc>,
    /// When it ended; none while it lives, or when it died.
    pub ended_at: Option<DateTime<Utc>>,
    /// Why it ended.
    pub end_reason: Option<EndReason>,
}

/// A run with its iterations, oldest first.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct RunHistory {
    /// The run.
    pub run: RunRecord,
    /// Its iterations.
    pub iterations: Vec<Iteration>,
}

/// Whose history is asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum HistoryOf {
    /// Of one run.
    Run(RunId),
    /// Of every run in a project, newest first.
    Project(Project),
}

impl HistoryOf {
    fn includes(&self, record: &RunRecord) -> bool {
        match self {
            Self::Run(run) => record.run == *run,
            Self::Project(project) => is_same(project, &record.project),
        }
    }
}

/// Which checkpoints are asked for; newest first.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Checkpoints {
    /// Only of this environment.
    pub environment: Option<String>,
    /// Only of this project.
    pub project: Option<Project>,
    /// Only with this tag.
    pub tag: Option<String>,
    /// Only the one whose id begins so.
    pub id: Option<String>,
    /// At most this many.
    pub limit: u32,
}

impl Checkpoints {
    fn includes(&self, project: &Project, checkpoint: &Checkpoint) -> bool {
        self.environment
            .as_ref()
            .is_none_or(|environment| *environment == checkpoint.environment)
            && self
                .project
                .as_ref()
                .is_none_or(|one| is_same(one, project))
            && self
                .tag
                .as_ref()
                .is_none_or(|tag| checkpoint.tags.contains(tag))
            && self
                .id
                .as_ref()
                .is_none_or(|id| checkpoint.id.to_string().starts_with(id.as_str()))
    }
}

fn is_same(one: &Project, other: &Project) -> bool {
    one.hash == other.hash && one.host == other.host
}

/// An agent process that a run started.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct AgentRecord {
    /// The run that started it.
    pub run: RunId,
    /// The iteration it lived in.
    pub iteration: IterationId,
    /// The process: it leads its own group.
    pub process: ProcessStamp,
}

/// A checkpoint as far as it must be known to forget it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Saved {
    /// Its id.
    pub id: Uuid,
    /// What it is filed under.
    pub environment: String,
    /// The hash of its project.
    pub project: String,
    /// When it was saved.
    pub created_at: DateTime<Utc>,
}

/// One figure that was measured.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Metric {
    /// The iteration it is of; none: of the run as a whole.
    pub iteration: Option<IterationId>,
    /// What was measured, with its unit, such as `reboot_ms`.
    pub name: String,
    /// When.
    pub at: DateTime<Utc>,
    /// How much.
    pub value: f64,
}

/// How the store is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Health {
    /// Where it is, without secrets.
    pub place: String,
    /// Its schema version; none when it cannot be asked.
    pub schema: Option<i64>,
    /// Why it cannot be used now.
    pub trouble: Option<String>,
    /// Writes that wait in memory.
    pub queued: usize,
    /// Bytes that wait in memory.
    pub queued_bytes: usize,
    /// Writes that found no room to wait in, or that were refused late, and are lost.
    pub lost: u64,
}

/// An opened store, and what the human must be told of it.
#[derive(Debug)]
pub struct Opened {
    /// The store.
    pub store: Store,
    /// What to tell.
    pub warnings: Vec<StoreWarning>,
}

/// The database, opened. Clones share it.
#[derive(Clone, Debug)]
pub struct Store {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    options: StoreOptions,
    /// Held while a write is under way: writes keep the order they were asked in.
    turn: tokio::sync::Mutex<()>,
    /// None while it could not be opened yet.
    db: RwLock<Option<Db>>,
    waiting: Mutex<Waiting>,
    /// Wakes the task that tries again; that task holds it too, but not the rest.
    wake: Arc<Notify>,
}

#[derive(Debug, Default)]
struct Waiting {
    closed: bool,
    pending: Pending,
    trouble: Option<String>,
    /// Tries in vain since the trouble began, or since the database was last opened.
    failures: u32,
    refused: u64,
    /// The runs begun here: they tell whose project a journal entry that waits belongs to, and are
    /// written again when a corrupt database gave way to an empty one.
    begun: Vec<RunRecord>,
    /// The file was removed, and whoever looks after the store does not know it yet.
    removed: bool,
}

impl Store {
    /// Opens the database, or a store in memory that goes on trying to open it.
    ///
    /// Must be called within a tokio runtime with time and I/O enabled.
    pub async fn open(options: StoreOptions) -> Result<Opened, StoreError> {
        let mut warnings = Vec::new();
        let (db, trouble) = match open_db(&options).await {
            Ok(OpenedDb { db, set_aside }) => {
                warnings.extend(set_aside.map(|kept| StoreWarning::SetAside { kept }));
                (Some(db), None)
            }
            Err(DbError::Newer(found)) => return Err(newer(found, &options.target)),
            Err(error) => {
                let reason = chain(&error);
                tracing::warn!(place = %options.target.place(), %reason, "history is kept in memory");
                warnings.push(StoreWarning::InMemory {
                    reason: reason.clone(),
                });
                (None, Some(reason))
            }
        };
        let in_trouble = trouble.is_some();
        let shared = Arc::new(Shared {
            options,
            turn: tokio::sync::Mutex::new(()),
            db: RwLock::new(db),
            waiting: Mutex::new(Waiting {
                trouble,
                ..Waiting::default()
            }),
            wake: Arc::new(Notify::new()),
        });
        tokio::spawn(try_again(Arc::downgrade(&shared), shared.wake.clone()));
        if in_trouble {
            shared.wake.notify_one();
        }
        Ok(Opened {
            store: Self { shared },
            warnings,
        })
    }

    /// Records that a run began; everything else of the run comes after it.
    pub async fn begin_run(&self, run: &RunRecord) -> Result<Written, StoreError> {
        self.shared.waiting().begun.push(run.clone());
        self.write(Write::Run(Box::new(run.clone())), "the run")
            .await
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
    /// Dies here when the options name this step as their crash point.
    pub async fn journal_put(&self, entry: &JournalEntry) -> Result<Written, StoreError> {
        self.crash_at(entry.step, Edge::Before);
        let written = self
            .write(Write::Journal(Box::new(entry.clone())), "the reboot step")
            .await;
        self.crash_at(entry.step, Edge::After);
        written
    }

    /// Closes a reboot that was recovered or given up, with how it came out.
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

    /// The figures of a run, oldest first, at most the newest 10 000.
    pub async fn metrics(&self, run: &RunId) -> Result<Vec<Metric>, StoreError> {
        const WHAT: &str = "the metrics";
        let rows = self.read(rows::read_metrics(run), WHAT).await?;
        let mut found: Vec<_> = rows
            .iter()
            .filter_map(|row| known(rows::metric(row), WHAT))
            .collect();
        found.reverse();
        self.shared.waiting().pending.over_metrics(run, &mut found);
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
        let waiting = self.shared.waiting();
        waiting.pending.over_history(of, limit, &mut histories);
        Ok(histories)
    }

    /// A session of any run, with what it was given and what it handed over; none if the store knows no such session.
    pub async fn session(&self, session: SessionId) -> Result<Option<PastSession>, StoreError> {
        const WHAT: &str = "the session";
        let rows = self.read(rows::read_session(session), WHAT).await?;
        let found = rows.first().and_then(|row| known(rows::place(row), WHAT));
        let waiting = self.shared.waiting().pending.place_of(session);
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
        let waiting = || self.shared.waiting();
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

    /// Gives the room of what was forgotten back to the disk, if nobody else is at work on the file.
    pub async fn compact(&self) {
        if let Some(db) = self.shared.db() {
            db.compact().await;
        }
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
        let waiting = self.shared.waiting();
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
        let waiting = self.shared.waiting();
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
        let waiting = self.shared.waiting();
        waiting
            .pending
            .over_agents(|run| waiting.is_of(run, project), &mut found);
        Ok(found)
    }

    /// Whether the database was removed since this was asked last. It is made again with what was begun here; what else is
    /// known of it is to be [put back](Self::put_back).
    pub async fn was_removed(&self) -> bool {
        // A server that is silent holds the turn for long: it is not waited for without need.
        if self.shared.db().is_some_and(|db| db.removed().is_some()) {
            let _turn = self.shared.turn.lock().await;
            self.shared.notice_removed().await;
        }
        std::mem::take(&mut self.shared.waiting().removed)
    }

    /// Writes histories as they are known from elsewhere.
    pub async fn put_back(&self, histories: &[RunHistory]) -> Result<(), StoreError> {
        for RunHistory { run, iterations } in histories {
            let begun = |one: &RunRecord| one.run == run.run;
            if !self.shared.waiting().begun.iter().any(begun) {
                let record = Write::Run(Box::new(run.clone()));
                let _written = self.write(record, "the run").await?;
            }
            for iteration in iterations {
                let _written = self.put_iteration(&run.run, iteration).await?;
            }
        }
        Ok(())
    }

    /// Why writes wait in memory now, if they do.
    #[must_use]
    pub fn trouble(&self) -> Option<String> {
        self.shared.waiting().trouble.clone()
    }

    /// How the store is, by asking it.
    pub async fn health(&self) -> Health {
        let schema = match self.shared.db() {
            Some(db) => db.version().await.map_err(|error| chain(&error)),
            None => Err("not opened".to_owned()),
        };
        let waiting = self.shared.waiting();
        Health {
            place: self.shared.options.target.place(),
            trouble: waiting.trouble.clone().or_else(|| schema.clone().err()),
            schema: schema.ok(),
            queued: waiting.pending.len(),
            queued_bytes: waiting.pending.bytes(),
            lost: waiting.pending.dropped() + waiting.refused,
        }
    }

    /// Writes what waits, if it can be written, and closes the database; how many writes are lost.
    pub async fn close(&self) -> usize {
        let _turn = self.shared.turn.lock().await;
        self.shared.mend().await;
        self.shared.waiting().closed = true;
        let db = self.shared.db();
        self.shared.set_db(None);
        if let Some(db) = db {
            db.close().await;
        }
        self.shared.waiting().pending.len()
    }

    async fn write(&self, write: Write, what: &'static str) -> Result<Written, StoreError> {
        let shared = &self.shared;
        let _turn = shared.turn.lock().await;
        shared.notice_removed().await;
        // Only the journal is worth a try in trouble: a reboot waits for it.
        let urgent = matches!(write, Write::Journal(_));
        if shared.is_in_trouble() && !(urgent && shared.flush().await) {
            return Ok(shared.queue(write));
        }
        let Some(db) = shared.db() else {
            return Ok(shared.queue(write));
        };
        match db.execute(write.statement(), Patience::Full).await {
            Ok(()) => Ok(Written::Durable),
            Err(DbError::Refused(error)) => Err(StoreError::Refused {
                what,
                reason: error.to_string(),
            }),
            Err(error) => {
                tracing::warn!(%error, "the database takes no writes; they wait in memory");
                shared.waiting().failed(&error);
                Ok(shared.queue(write))
            }
        }
    }

    async fn read(
        &self,
        statement: db::Statement,
        what: &'static str,
    ) -> Result<Vec<db::Cells>, StoreError> {
        // Without a database what waits is all there is.
        let Some(db) = self.shared.db() else {
            return Ok(Vec::new());
        };
        db.query(statement)
            .await
            .map_err(|error| StoreError::Unreadable {
                what,
                reason: chain(&error),
            })
    }

    fn crash_at(&self, step: Step, edge: Edge) {
        if self.shared.options.crash == Some(CrashPoint { step, edge }) {
            // As hard as the real thing: no destructor runs, nothing is flushed.
            let _ = kill_process(getpid(), Signal::KILL);
        }
    }
}

impl Shared {
    fn db(&self) -> Option<Db> {
        self.db
            .read()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }

    /// Held for moments only, never across an await.
    fn waiting(&self) -> MutexGuard<'_, Waiting> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn is_in_trouble(&self) -> bool {
        let waiting = self.waiting();
        waiting.trouble.is_some() || !waiting.pending.is_empty()
    }

    fn queue(&self, write: Write) -> Written {
        let mut waiting = self.waiting();
        waiting.pending.push(write);
        let reason = waiting
            .trouble
            .get_or_insert_with(|| "it was closed".to_owned())
            .clone();
        drop(waiting);
        self.wake.notify_one();
        Written::Queued(StoreWarning::InMemory { reason })
    }

    /// Writes what waits, oldest first, as far as the database takes it; whether all is well now.
    /// The caller holds the turn.
    async fn flush(&self) -> bool {
        let Some(db) = self.db() else {
            return false;
        };
        if self.waiting().is_suspect() {
            // A connection that still has sound pages in memory would acknowledge a write into a
            // file that is ruined.
            return false;
        }
        loop {
            let Some(write) = self.waiting().pending.front().cloned() else {
                let mut waiting = self.waiting();
                waiting.failures = 0;
                if let Some(reason) = waiting.trouble.take() {
                    tracing::info!(%reason, "the database is well again");
                }
                return true;
            };
            match db.execute(write.statement(), Patience::Brief).await {
                Ok(()) => self.waiting().pending.pop(),
                Err(DbError::Refused(error)) => {
                    // It would bar the way of all the others for good.
                    tracing::error!(%error, ?write, "the database refused a write that had waited");
                    let mut waiting = self.waiting();
                    waiting.pending.pop();
                    waiting.refused += 1;
                }
                Err(error) => {
                    self.waiting().failed(&error);
                    return false;
                }
            }
        }
    }

    /// Gives up connections to a file that is not there any more. The caller holds the turn.
    async fn notice_removed(&self) {
        let Some(db) = self.db() else { return };
        let Some(path) = db.removed() else { return };
        let reason = format!("{} was removed", path.display());
        tracing::error!(%reason, "the database is made again");
        self.waiting().begin_again(Some(reason));
        self.set_db(None);
        db.close().await;
        self.wake.notify_one();
    }

    /// Gives up connections that fail again and again.
    async fn drop_suspect(&self) {
        if !self.waiting().is_suspect() {
            return;
        }
        self.waiting().failures = 0;
        if let Some(db) = self.db() {
            self.set_db(None);
            db.close().await;
        }
    }

    /// Opens the database if it is not open or has become suspect, and writes what waits; whether
    /// all is well now. The caller holds the turn.
    async fn mend(&self) -> bool {
        if self.waiting().closed {
            return true;
        }
        self.drop_suspect().await;
        if self.db().is_none() {
            match open_db(&self.options).await {
                Ok(OpenedDb { db, set_aside }) => {
                    self.set_db(Some(db));
                    if set_aside.is_some() {
                        self.waiting().begin_again(None);
                    }
                }
                Err(error) => {
                    self.waiting().trouble = Some(chain(&error));
                    return false;
                }
            }
        }
        self.flush().await
    }

    fn set_db(&self, db: Option<Db>) {
        *self.db.write().unwrap_or_else(PoisonError::into_inner) = db;
    }
}

impl Drop for Shared {
    fn drop(&mut self) {
        self.wake.notify_one();
    }
}

impl Waiting {
    /// An empty database takes the place of the one before, which was removed for this reason if there is one.
    fn begin_again(&mut self, removed: Option<String>) {
        let begun = self.begun.clone();
        self.pending.begin_again(begun);
        if removed.is_some() {
            (self.removed, self.trouble) = (true, removed);
        }
    }

    fn failed(&mut self, error: &DbError) {
        self.trouble = Some(chain(error));
        let weight = match error {
            DbError::Corrupt(_) => SUSPECT,
            _ => 1,
        };
        self.failures = self.failures.saturating_add(weight);
    }

    const fn is_suspect(&self) -> bool {
        self.failures >= SUSPECT
    }

    fn is_of(&self, run: &RunId, project: &Project) -> bool {
        self.begun
            .iter()
            .any(|begun| begun.run == *run && is_same(&begun.project, project))
    }
}

async fn open_db(options: &StoreOptions) -> Result<OpenedDb, DbError> {
    match &options.target {
        StoreTarget::Sqlite(path) => Db::open_sqlite(path, options.patience).await,
        StoreTarget::Postgres(url) => Db::open_postgres(url, options.patience).await,
    }
}

/// Tries the database again, once a second, for as long as it is in trouble and the store lives.
async fn try_again(shared: Weak<Shared>, wake: Arc<Notify>) {
    loop {
        wake.notified().await;
        loop {
            tokio::time::sleep(RETRY).await;
            let Some(shared) = shared.upgrade() else {
                return;
            };
            let _turn = shared.turn.lock().await;
            if shared.mend().await {
                break;
            }
        }
    }
}

fn newer(found: i64, target: &StoreTarget) -> StoreError {
    StoreError::NewerSchema {
        found,
        known: db::SCHEMA,
        place: target.place(),
    }
}

/// A row that cannot be read was written by something else: it is left out, and told in the log.
fn known<T>(record: Option<T>, what: &'static str) -> Option<T> {
    if record.is_none() {
        tracing::warn!(
            what,
            "a row of the database could not be read and is left out"
        );
    }
    record
}
