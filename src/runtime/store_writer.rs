//! The one owner of everything that is kept: writes keep the order in which they were asked for.
//!
//! ```text
//!   loop ── Job ──► store writer ─► database, meta.json, handoff.md
//!                        └── Journaled ──► loop
//! ```

use std::{
    collections::HashMap,
    path::PathBuf,
    time::{Duration, Instant},
};

use tokio::{
    sync::{mpsc, oneshot},
    task::block_in_place,
};
use uuid::Uuid;

use pitstop_base::clean::chain;
use pitstop_core::{
    api::wire::Reply,
    app::{
        Event,
        event::{Kept, StoreAway, StoreEvent},
        history::EarlierRun,
        model::carried::Carried,
        report,
    },
    lineage::{
        EndReason, Iteration, IterationId, Meta, ProcessStamp, Project, RunId,
        checkpoint::Checkpoint,
        journal::{JournalEntry, Step},
        metrics::{self, Metric},
        past::{Found, PastSession},
    },
};
use pitstop_store::{
    PrivateDir, Store, StoreError, Written,
    run_dir::{HANDOFF, RunDir, SUMMARY},
};
use pitstop_transcript::SessionId;

use super::{notices::Notices, recovery, wall};

/// The number of writes that may wait; the core asks for a handful a second.
const JOBS_IN_FLIGHT: usize = 1024;

/// The number of iterations of earlier runs that the history shows.
const EARLIER_ITERATIONS: u32 = 200;

/// The number of found iterations whose texts are read for the words around what was searched for: more than a screen shows.
const EXCERPTS: usize = 50;

/// The time that a database which is away has to come back at the end of a run.
const LAST_TRY: Duration = Duration::from_secs(2);

/// The time between two writings of what waits for the database: a supervisor that is killed loses no more than this.
const KEEP_PAUSE: Duration = Duration::from_secs(1);

/// The time between two looks at an unavailable store: it tries again once a second.
const MEND_CHECK: Duration = Duration::from_millis(500);

/// A record to keep, or a query for one.
#[derive(Debug)]
pub enum Job {
    /// A step of a reboot, before it is done.
    Journal(Box<JournalEntry>),
    /// An iteration's record.
    Iteration(Box<Iteration>, Box<Meta>),
    /// The handoff that an iteration is given.
    Handoff(IterationId, String),
    /// The summary of an iteration.
    Summary(IterationId, String),
    /// A checkpoint.
    Checkpoint(Box<Checkpoint>),
    /// A process that must not outlive us.
    Agent(IterationId, ProcessStamp),
    /// The end of that process.
    AgentGone(ProcessStamp),
    /// The state that a session carries of its lineage.
    Carried(SessionId, Box<Carried>),
    /// A query for the state that a session carries.
    FindCarried {
        /// The session whose state is read.
        of: SessionId,
        /// The session that goes on from it.
        session: SessionId,
    },
    /// A query for the handoff of a session.
    FindHandoff(SessionId, oneshot::Sender<Reply>),
    /// A query for the record of an iteration.
    FindPast(RunId, IterationId),
    /// A query for the iterations that contain this text.
    Search(String),
    /// The figures of a session at the end of a turn.
    Turn(metrics::TurnFigures),
    /// The run is over: everything is written, then the sender is notified.
    Close(
        chrono::DateTime<chrono::Utc>,
        EndReason,
        oneshot::Sender<Unwritten>,
    ),
}

/// The records that the database has not taken when it is closed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Unwritten {
    /// Their number.
    pub records: usize,
    /// True if they are kept for the next start.
    pub kept: bool,
}

/// The owner of everything that is kept.
#[derive(Debug)]
pub struct StoreWriter {
    /// The database.
    pub store: Store,
    /// The project's own directory in the state directory.
    pub state: PathBuf,
    /// The run's directory in the project; `None` where the project cannot be written.
    pub files: Option<RunDir>,
    /// The run.
    pub run: RunId,
    /// The project.
    pub project: Project,
    /// The last iteration whose transition was measured.
    pub measured: Option<IterationId>,
    /// The newest state of the newest iteration.
    pub newest: Option<Box<Iteration>>,
    /// The last step written of each reboot that is not over.
    pub last_steps: HashMap<Uuid, Step>,
    /// The time of the newest checkpoint, or that at which the run began.
    pub newest_at: chrono::DateTime<chrono::Utc>,
    /// The time of the newest state of each session.
    pub carried_at: HashMap<SessionId, chrono::DateTime<chrono::Utc>>,
}

impl StoreWriter {
    /// Starts the task; its answers go to `events`.
    pub fn start(self, events: mpsc::Sender<Event>) -> mpsc::Sender<Job> {
        let (sender, jobs) = mpsc::channel(JOBS_IN_FLIGHT);
        tokio::spawn(self.keep(jobs, events));
        sender
    }

    async fn keep(mut self, mut jobs: mpsc::Receiver<Job>, events: mpsc::Sender<Event>) {
        let (store, project, run) = (&self.store, &self.project, &self.run);
        let runs = earlier_runs(store.clone(), project.clone(), run.clone());
        beside(&events, runs);
        beside(&events, earlier_turns(store.clone(), run.clone()));
        let mut warned = false;
        // While it is away: whether what waits is on disk.
        let mut known = None;
        let mut is_kept = true;
        let mut notices = Notices::new("the database");
        let mut watched = false;
        // Jobs since what waits was kept, and when that was.
        let (mut unkept, mut kept_at) = (false, Instant::now());
        loop {
            if !std::mem::replace(&mut watched, true) {
                block_in_place(|| notices.watch(self.store.file().map(PathBuf::from)));
            }
            if self.store.was_removed().await {
                // What is there by now may be removed as well.
                watched = false;
                if let Some(what) = self.put_back().await {
                    tracing::warn!(what, "the history is not whole again");
                }
            }
            let now = self.store.error();
            let changed = now.is_some() != known.is_some();
            // A file that stayed would bring back a state that is over by then.
            if changed || (unkept && now.is_some() && kept_at.elapsed() >= KEEP_PAUSE) {
                is_kept = self.keep_waiting();
                (unkept, kept_at) = (!is_kept, Instant::now());
            }
            let away = now.map(|why| StoreAway { why, is_kept });
            let shown = away.as_ref().map(|away| away.is_kept);
            if shown != std::mem::replace(&mut known, shown) {
                let event = Event::Store(StoreEvent::ErrorChanged(away));
                let _ = events.send(event).await;
                watched = false;
            }
            if !watched {
                continue;
            }
            let job = tokio::select! {
                job = jobs.recv() => job,
                // The store mends itself between two writes.
                () = tokio::time::sleep(MEND_CHECK), if known.is_some() => continue,
                () = notices.changed(false), if known.is_none() => {
                    watched = false;
                    continue;
                }
            };
            let error = match job {
                None => return,
                Some(Job::Close(at, reason, done)) => {
                    // No caller may be waiting any more.
                    let _ = done.send(self.close(at, reason).await);
                    return;
                }
                Some(job) => {
                    unkept = true;
                    self.work(job, &events).await
                }
            };
            if let Some(what) = &error {
                tracing::warn!(what, "cannot keep everything");
            }
            let was_warned = std::mem::replace(&mut warned, error.is_some());
            if let Some(what) = error.filter(|_| !was_warned) {
                let _ = events.send(Event::EffectFailed { what }).await;
            }
        }
    }

    /// Records the end of the run and closes the database. One that is away is not waited for: what waits is kept in a file first.
    async fn close(&self, at: chrono::DateTime<chrono::Utc>, reason: EndReason) -> Unwritten {
        let is_away = self.store.error().is_some();
        let end = self.store.end_run(&self.run, at, reason);
        // One that has fallen silent since the last write does not keep the end from the file.
        if is_away || tokio::time::timeout(LAST_TRY, end).await.is_err() {
            self.store.end_run_later(&self.run, at, reason);
            self.keep_waiting();
        }
        let _ = tokio::time::timeout(LAST_TRY, self.store.close()).await;
        let kept = self.keep_waiting();
        Unwritten {
            records: self.store.waiting_count(),
            kept,
        }
    }

    /// Keeps the writes that wait in a file, for the next start; returns true if that was possible.
    fn keep_waiting(&self) -> bool {
        // It waits for a disk, and must not hold up the other tasks of this thread.
        let kept = block_in_place(|| {
            let state = PrivateDir::open_again(&self.state)?;
            self.store.keep_waiting(&state)
        });
        if let Err(error) = &kept {
            tracing::warn!(error = chain(error), "what waits in memory is not kept");
        }
        kept.is_ok()
    }

    /// Returns the time of a checkpoint that is made at this one: behind that of the one before, though both may be of one event, or
    /// the system's clock may have been set back since. The newest of several with one time would be any of them.
    fn in_order(&mut self, at: chrono::DateTime<chrono::Utc>) -> chrono::DateTime<chrono::Utc> {
        // Times are kept to the millisecond.
        let next = self.newest_at + chrono::TimeDelta::milliseconds(1);
        self.newest_at = next.max(at);
        self.newest_at
    }

    /// Returns the time of a session's state: none before that of the state whose place it takes, which may be an earlier process's.
    async fn carried_in_order(&mut self, session: SessionId) -> chrono::DateTime<chrono::Utc> {
        let before = match self.carried_at.get(&session) {
            Some(at) => Some(*at),
            None => self.store.carried_at(session).await.ok().flatten(),
        };
        let at = wall().max(before.unwrap_or_default());
        self.carried_at.insert(session, at);
        at
    }

    /// Carries out a job; returns what went wrong with it, if anything.
    async fn work(&mut self, job: Job, events: &mpsc::Sender<Event>) -> Option<String> {
        match job {
            Job::FindHandoff(session, reply) => {
                // A slow database holds up no writes for a reader.
                let store = self.store.clone();
                tokio::spawn(async move { reply.send(find_handoff(&store, session).await) });
                None
            }
            Job::FindPast(run, iteration) => {
                let store = self.store.clone();
                beside(events, async move {
                    Some(StoreEvent::PastRead {
                        found: find_past(&store, &run, iteration).await,
                        run,
                        iteration,
                    })
                });
                None
            }
            Job::Search(text) => {
                let (store, project) = (self.store.clone(), self.project.clone());
                beside(events, async move {
                    let found = find_text(&store, &project, &text).await;
                    Some(StoreEvent::HistoryFound {
                        found: found.map_err(|error| chain(&error)),
                        text,
                    })
                });
                None
            }
            Job::Carried(session, carried) => {
                let state = serde_json::to_value(*carried).unwrap_or_default();
                let at = self.carried_in_order(session).await;
                error_of(self.store.put_carried(&self.run, session, at, state).await)
            }
            Job::FindCarried { of, session } => {
                let store = self.store.clone();
                beside(events, async move {
                    let found = find_carried(&store, of).await;
                    Some(StoreEvent::CarriedRead { session, found })
                });
                None
            }
            Job::Turn(turn) => self.measure(metrics::of_turn(&turn)).await,
            Job::Journal(entry) => self.journal(&entry, events).await,
            Job::Checkpoint(mut checkpoint) => {
                checkpoint.created_at = self.in_order(checkpoint.created_at);
                self.checkpoint(&checkpoint, events).await
            }
            Job::Iteration(iteration, meta) => self.iteration(iteration, &meta).await,
            Job::Handoff(iteration, text) => self.file(iteration, HANDOFF, &text),
            Job::Summary(iteration, text) => self.file(iteration, SUMMARY, &text),
            Job::Agent(iteration, process) => {
                let recorded = self.store.record_agent(&self.run, iteration, &process);
                error_of(recorded.await)
            }
            Job::AgentGone(process) => error_of(self.store.agent_gone(&self.run, &process).await),
            Job::Close(..) => None,
        }
    }

    async fn journal(
        &mut self,
        entry: &JournalEntry,
        events: &mpsc::Sender<Event>,
    ) -> Option<String> {
        let (reboot, step) = (entry.reboot_id, entry.step);
        let written = self.store.journal_put(entry).await;
        let event = Event::Store(StoreEvent::Journaled { reboot, step });
        // An unavailable store must not stop a reboot: the human is warned instead.
        let _ = events.send(event).await;
        let before = self.last_steps.insert(reboot, step);
        let figure = metrics::of_reboot(before, entry);
        if step.is_final() {
            self.last_steps.remove(&reboot);
        }
        error_of(written).or(self.measure(figure).await)
    }

    async fn checkpoint(
        &self,
        checkpoint: &Checkpoint,
        events: &mpsc::Sender<Event>,
    ) -> Option<String> {
        let written = self.store.put_checkpoint(&self.project, checkpoint).await;
        let kept = match &written {
            Ok(Written::Durable) => Kept::Durable,
            Ok(Written::Queued(warning)) => Kept::Waiting(warning.to_string()),
            Err(error) => Kept::Lost(chain(error)),
        };
        let id = checkpoint.id;
        let event = Event::Store(StoreEvent::CheckpointKept { id, kept });
        let _ = events.send(event).await;
        error_of(written)
    }

    /// Keeps figures; the loss of one is a matter for the log only.
    async fn measure(&self, figures: impl IntoIterator<Item = Metric>) -> Option<String> {
        let mut error = None;
        for figure in figures {
            error = error_of(self.store.put_metric(&self.run, &figure).await);
        }
        error
    }

    /// Fills a database that was removed with what is known of this project.
    async fn put_back(&self) -> Option<String> {
        let project = self.files.as_ref().map(RunDir::project);
        let histories = match project {
            Some(Ok(files)) => block_in_place(|| recovery::from_records(&files, &self.project)),
            Some(Err(_)) | None => Vec::new(),
        };
        let put = self.store.put_back(&histories).await;
        let newest = match &self.newest {
            Some(newest) => error_of(self.store.put_iteration(&self.run, newest).await),
            None => None,
        };
        put.err().map(|error| chain(&error)).or(newest)
    }

    /// Keeps an iteration's record in the database and beside its files.
    async fn iteration(&mut self, iteration: Box<Iteration>, meta: &Meta) -> Option<String> {
        let task = self.store.keep_task(&self.run, meta.task.as_deref()).await;
        let task = task.err().map(|error| chain(&error));
        let stored = error_of(self.store.put_iteration(&self.run, &iteration).await);
        let filed = self
            .files
            .as_ref()
            .and_then(|files| block_in_place(|| files.write_meta(meta)).err());
        let measured = match &iteration.reboot {
            Some(record) if self.measured != Some(iteration.iteration) => {
                self.measured = Some(iteration.iteration);
                let at = iteration.started_at;
                let figures = metrics::of_transition(iteration.iteration, record, at);
                self.measure(figures).await
            }
            _ => None,
        };
        self.newest = Some(iteration);
        task.or(stored)
            .or(filed.map(|error| chain(&error)))
            .or(measured)
    }

    /// Writes a file beside an iteration's others.
    fn file(&self, iteration: IterationId, name: &str, text: &str) -> Option<String> {
        let files = self.files.as_ref()?;
        let written = block_in_place(|| files.write(iteration, name, text));
        written.err().map(|error| chain(&error))
    }
}

/// Reads beside the writes: a slow database holds up none of them for a reader.
fn beside(
    events: &mpsc::Sender<Event>,
    read: impl Future<Output = Option<StoreEvent>> + Send + 'static,
) {
    let events = events.clone();
    tokio::spawn(async move {
        if let Some(event) = read.await {
            // The loop is gone, then.
            let _ = events.send(Event::Store(event)).await;
        }
    });
}

/// Returns the turns that the run has had under an earlier supervisor, if it has.
async fn earlier_turns(store: Store, run: RunId) -> Option<StoreEvent> {
    let figures = store.metrics(&run).await.inspect_err(|error| {
        tracing::warn!(error = chain(error), "earlier turns are not shown");
    });
    let turns = metrics::turns(&figures.unwrap_or_default());
    (!turns.is_empty()).then_some(StoreEvent::TurnsRead(turns))
}

/// Returns the project's runs before this one, newest first, if there are any.
async fn earlier_runs(store: Store, project: Project, own: RunId) -> Option<StoreEvent> {
    let read = store.earlier_iterations(&project, &own, EARLIER_ITERATIONS);
    let found = read.await.inspect_err(|error| {
        tracing::warn!(error = chain(error), "earlier runs are not shown");
    });
    let mut runs: Vec<EarlierRun> = Vec::new();
    for (run, iteration) in found.unwrap_or_default() {
        match runs.last_mut().filter(|last| last.run == run) {
            Some(last) => last.iterations.insert(0, iteration),
            None => runs.push(EarlierRun {
                run,
                iterations: vec![iteration],
            }),
        }
    }
    (!runs.is_empty()).then_some(StoreEvent::EarlierRuns(runs))
}

/// Returns the iterations that contain a text, newest first, with the words around it in the newest of them.
async fn find_text(store: &Store, project: &Project, text: &str) -> Result<Vec<Found>, StoreError> {
    let mut found = Vec::new();
    for (run, iteration) in store.search(project, text, EARLIER_ITERATIONS).await? {
        let past = match found.len() {
            ..EXCERPTS => store.past(&run, iteration).await?,
            _ => None,
        };
        found.push(Found {
            excerpt: past.and_then(|past| past.excerpt(text)),
            run,
            iteration,
        });
    }
    Ok(found)
}

/// Returns the record of an iteration, or the reason why none can be shown.
async fn find_past(
    store: &Store,
    run: &RunId,
    iteration: IterationId,
) -> Result<Box<PastSession>, String> {
    match store.past(run, iteration).await {
        Ok(Some(past)) => Ok(Box::new(past)),
        Ok(None) => Err("the store has nothing of it yet".to_owned()),
        Err(error) => Err(chain(&error)),
    }
}

/// Returns the state that a session carries of its lineage, if the store knows it, or the reason why that is not known.
pub async fn find_carried(
    store: &Store,
    session: SessionId,
) -> Result<Option<Box<Carried>>, String> {
    let found = store.carried(session).await;
    let found = found.map_err(|error| chain(&error))?;
    let carried = found.map(serde_json::from_value).transpose();
    carried.map_err(|error| chain(&error))
}

/// Returns the handoff of a session that the store knows.
async fn find_handoff(store: &Store, session: SessionId) -> Reply {
    match store.session(session).await {
        Ok(Some(past)) => Reply::Handoff(Box::new(report::past_handoff(&past))),
        Ok(None) => Reply::NotFound {
            why: report::no_session(&session.to_string()),
        },
        Err(error) => Reply::Refused { why: chain(&error) },
    }
}

/// Returns the error of a write that should be shown, if any.
fn error_of<E: std::error::Error>(written: Result<Written, E>) -> Option<String> {
    match written {
        // A store that cannot be written to now is shown once, as a lasting state.
        Ok(Written::Durable | Written::Queued(_)) => None,
        Err(error) => Some(chain(&error)),
    }
}

#[cfg(test)]
mod tests {
    use std::{fs, path::Path};

    use pitstop_store::{RunRecord, StoreOptions, StoreTarget};
    use sqlx::{ConnectOptions as _, Connection as _, sqlite::SqliteConnectOptions};

    use super::*;

    /// Returns the owner of a store in this file, whose run has begun.
    async fn writer(state: &Path, file: &Path) -> StoreWriter {
        let options = StoreOptions::new(StoreTarget::Sqlite(file.to_owned()));
        let store = Store::open(options).await.expect("a store").store;
        let own = PrivateDir::open_beside(state, "hash").expect("a directory");
        let run = RunId::new(chrono::DateTime::UNIX_EPOCH, [1, 2, 3]);
        let project = Project::new(Path::new("/home/ada/tide"), "here");
        let record = RunRecord {
            run: run.clone(),
            project: project.clone(),
            process: ProcessStamp {
                pid: 1,
                start_time: "1".to_owned(),
            },
            agent: "claude".to_owned(),
            version: "0.1.0".to_owned(),
            task: None,
            started_at: chrono::DateTime::UNIX_EPOCH,
            ended_at: None,
            end_reason: None,
        };
        let begun = store.begin_run(&record).await;
        assert!(begun.is_ok(), "{begun:?}");
        StoreWriter {
            store,
            state: own.path().to_owned(),
            files: None,
            run,
            project,
            measured: None,
            newest: None,
            last_steps: HashMap::new(),
            newest_at: chrono::DateTime::UNIX_EPOCH,
            carried_at: HashMap::new(),
        }
    }

    /// Returns what is kept for the next start.
    fn kept(state: &Path) -> String {
        let files = fs::read_dir(state.join("projects/hash")).expect("a directory");
        let texts = files.map(|file| fs::read_to_string(file.expect("a file").path()));
        texts.map(|text| text.expect("a text")).collect()
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn what_waits_is_on_disk_before_the_end() {
        let state = tempfile::tempdir().expect("a directory");
        fs::write(state.path().join("below"), "in the way").expect("a file");
        let file = state.path().join("below/p.db");
        let writer = writer(state.path(), &file).await;
        let (events, mut told) = mpsc::channel(64);
        let jobs = writer.start(events);
        for number in 1..4 {
            tokio::time::sleep(Duration::from_millis(400)).await;
            let session = SessionId::new(Uuid::from_u128(number));
            let job = Job::Carried(session, Box::default());
            jobs.send(job).await.expect("it is taken");
            // A killed supervisor would have lost it.
            let began = Instant::now();
            while !kept(state.path()).contains(&session.to_string()) {
                assert!(began.elapsed() < Duration::from_secs(4), "{number}");
                tokio::time::sleep(Duration::from_millis(50)).await;
            }
        }
        told.close();
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn the_end_is_kept_where_the_database_falls_silent_just_then() {
        let state = tempfile::tempdir().expect("a directory");
        let file = state.path().join("p.db");
        let writer = writer(state.path(), &file).await;
        let options = SqliteConnectOptions::new().filename(&file);
        let mut other = options.connect().await.expect("a connection");
        let lock = sqlx::raw_sql("BEGIN EXCLUSIVE");
        lock.execute(&mut other).await.expect("the lock");
        let (events, _told) = mpsc::channel(64);
        let jobs = writer.start(events);
        let reason = EndReason::StopPhraseFound;
        let said = crate::runtime::effects::close_store(&jobs, reason).await;
        assert_eq!(
            said.as_deref(),
            Some("1 record could not be written into the database and will be at the next start")
        );
        assert!(kept(state.path()).contains("RunEnd"));
        other.close().await.expect("it is closed");
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn what_is_kept_after_the_clock_was_set_back_takes_the_place_of_what_was_before() {
        let state = tempfile::tempdir().expect("a directory");
        let mut writer = writer(state.path(), &state.path().join("p.db")).await;
        let (events, _told) = mpsc::channel(64);
        let session = SessionId::new(Uuid::from_u128(1));
        let carried = |goal: &str| Carried {
            goal: Some(goal.to_owned()),
            ..Carried::default()
        };
        // It was kept while the clock was an hour ahead.
        let ahead = writer.in_order(wall() + chrono::TimeDelta::hours(1));
        let before = serde_json::to_value(carried("before")).expect("JSON");
        let kept = writer
            .store
            .put_carried(&writer.run, session, ahead, before);
        assert!(matches!(kept.await, Ok(Written::Durable)));
        let job = Job::Carried(session, Box::new(carried("after")));
        assert_eq!(writer.work(job, &events).await, None);
        let found = find_carried(&writer.store, session).await;
        let goal = found.expect("it is read").and_then(|found| found.goal);
        assert_eq!(goal.as_deref(), Some("after"));
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn the_state_of_a_resumed_session_is_kept_where_the_clock_was_set_back_in_between() {
        let state = tempfile::tempdir().expect("a directory");
        let mut writer = writer(state.path(), &state.path().join("p.db")).await;
        let (events, _told) = mpsc::channel(64);
        let session = SessionId::new(Uuid::from_u128(1));
        // An earlier process has kept it while the clock was an hour ahead.
        let ahead = wall() + chrono::TimeDelta::hours(1);
        let before = serde_json::to_value(Carried::default()).expect("JSON");
        let kept = writer
            .store
            .put_carried(&writer.run, session, ahead, before);
        assert!(matches!(kept.await, Ok(Written::Durable)));
        for goal in ["after", "later"] {
            let carried = Carried {
                goal: Some(goal.to_owned()),
                ..Carried::default()
            };
            let job = Job::Carried(session, Box::new(carried));
            assert_eq!(writer.work(job, &events).await, None);
            let found = find_carried(&writer.store, session).await;
            let found = found.expect("it is read").and_then(|found| found.goal);
            assert_eq!(found.as_deref(), Some(goal));
        }
        // What is not of a session has the clock's own time.
        assert!(writer.in_order(wall()) < ahead);
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn each_checkpoint_is_behind_the_one_before() {
        let state = tempfile::tempdir().expect("a directory");
        let mut writer = writer(state.path(), &state.path().join("p.db")).await;
        let now = wall();
        // Several of one event, and those that come once the clock was set back.
        let back = now - chrono::TimeDelta::hours(1);
        let times = [now, now, back, back].map(|at| writer.in_order(at));
        let texts = times.map(pitstop_core::lineage::moment::text);
        for pair in texts.windows(2) {
            assert!(pair[0] < pair[1], "{texts:?}");
        }
        assert_eq!(times[0], now);
    }
}
