//! The database, opened: one write at a time, and the task that tries again while it is unavailable.
//!
//! ```text
//!  write ──► available? ─yes─► database ──ok──► Durable
//!               │                 │ unavailable
//!               └──no───► queue ◄─┘ ───────► Queued
//!                          │
//!      every second: ──────┴──► database, oldest first, until it is empty
//! ```

use std::{
    path::Path,
    sync::{Arc, Weak},
    time::Duration,
};

use parking_lot::{Mutex, MutexGuard, RwLock};
use tokio::sync::Notify;

use super::{
    CrashPoint, Health, RunRecord, StoreError, StoreOptions, StoreTarget, StoreWarning, Written,
    db::{self, Db, DbError, OpenedDb, Patience},
    pending::Pending,
    records::is_same,
    rows::Write,
};
use pitstop_base::clean::chain;
use pitstop_core::lineage::{Project, RunId};

/// The pause between tries of an unavailable database: short enough that a database that is back is in use within five seconds.
const RETRY: Duration = Duration::from_secs(1);

/// The number of tries in vain that make the connections suspect: the file may have been damaged or replaced
/// beneath them, which shows only when it is opened again.
const SUSPECT: u32 = 3;

/// An opened store, and the warnings about it for the human.
#[derive(Debug)]
pub struct Opened {
    /// The store.
    pub store: Store,
    /// The warnings to show.
    pub warnings: Vec<StoreWarning>,
}

/// The opened database. Clones share it.
#[derive(Clone, Debug)]
pub struct Store {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    options: StoreOptions,
    /// A lock that is held while a write is under way: writes keep the order they were asked in.
    turn: tokio::sync::Mutex<()>,
    /// The database; none while it could not be opened yet.
    db: RwLock<Option<Db>>,
    waiting: Mutex<Waiting>,
    /// The signal that wakes the task that tries again; that task holds it too, but not the rest.
    wake: Arc<Notify>,
}

#[derive(Debug, Default)]
pub(super) struct Waiting {
    closed: bool,
    pub(super) pending: Pending,
    error: Option<String>,
    /// The number of tries in vain since it is unavailable, or since the database was last opened.
    failures: u32,
    refused: u64,
    /// The runs begun here: they show whose project a journal entry that waits belongs to, and are
    /// written again when a corrupt database gave way to an empty one.
    pub(super) begun: Vec<RunRecord>,
    /// True if the file was removed, and the task that looks after the store does not know it yet.
    removed: bool,
}

impl Store {
    /// Opens the database, or a store in memory that goes on trying to open it.
    ///
    /// Must be called within a tokio runtime with time and I/O enabled.
    pub async fn open(options: StoreOptions) -> Result<Opened, StoreError> {
        let mut warnings = Vec::new();
        let opening = tokio::time::timeout(options.first_opening, open_db(&options));
        let opened = opening.await.unwrap_or_else(|_| {
            let (place, limit) = (options.target.place(), options.first_opening);
            Err(DbError::Unavailable(format!(
                "{place}: no answer within {limit:?}"
            )))
        });
        let (db, error) = match opened {
            Ok(OpenedDb { db, set_aside }) => {
                warnings.extend(set_aside.map(|kept| StoreWarning::SetAside { kept }));
                (Some(db), None)
            }
            Err(DbError::Newer(found)) => return Err(newer_schema(found, &options.target)),
            Err(error) => {
                let reason = chain(&error);
                tracing::warn!(place = %options.target.place(), %reason, "what is to be written waits");
                warnings.push(StoreWarning::InMemory {
                    reason: reason.clone(),
                });
                (None, Some(reason))
            }
        };
        let is_unavailable = error.is_some();
        let shared = Arc::new(Shared {
            options,
            turn: tokio::sync::Mutex::new(()),
            db: RwLock::new(db),
            waiting: Mutex::new(Waiting {
                error,
                ..Waiting::default()
            }),
            wake: Arc::new(Notify::new()),
        });
        tokio::spawn(try_again(Arc::downgrade(&shared), shared.wake.clone()));
        if is_unavailable {
            shared.wake.notify_one();
        }
        Ok(Opened {
            store: Self { shared },
            warnings,
        })
    }

    /// Gives the room of forgotten records back to the disk, if no other process is at work on the file.
    pub async fn compact(&self) {
        if let Some(db) = self.shared.db() {
            db.compact().await;
        }
    }

    /// Reports whether the database was removed since the last call. It is made again with the runs begun here; all else that is
    /// known of it is to be [put back](Self::put_back).
    pub async fn was_removed(&self) -> bool {
        // A server that is silent holds the turn for long: it is not waited for without need.
        if self
            .shared
            .db()
            .is_some_and(|db| db.removed_file().is_some())
        {
            let _turn = self.shared.turn.lock().await;
            self.shared.notice_removed().await;
        }
        std::mem::take(&mut self.shared.waiting().removed)
    }

    /// Returns the database's file, if it is one.
    pub fn file(&self) -> Option<&Path> {
        match &self.shared.options.target {
            StoreTarget::Sqlite(file) => Some(file),
            #[cfg(feature = "postgres")]
            StoreTarget::Postgres(_) => None,
        }
    }

    /// Returns the reason why writes wait in memory now, if they do.
    pub fn error(&self) -> Option<String> {
        self.shared.waiting().error.clone()
    }

    /// Returns the number of writes that wait in memory.
    pub fn waiting_count(&self) -> usize {
        self.shared.waiting().pending.len()
    }

    /// Returns the state of the store, by asking it.
    pub async fn health(&self) -> Health {
        let schema = match self.shared.db() {
            Some(db) => db.version().await.map_err(|error| chain(&error)),
            None => Err("not opened".to_owned()),
        };
        let waiting = self.shared.waiting();
        Health {
            place: self.shared.options.target.place(),
            error: waiting.error.clone().or_else(|| schema.clone().err()),
            schema: schema.ok(),
            queued: waiting.pending.len(),
            lost: waiting.pending.dropped() + waiting.refused,
        }
    }

    /// Lets writes of an earlier run wait before all others, and tries to write them at once; returns true if all is written.
    pub(super) async fn write_late(&self, writes: Vec<Write>) -> bool {
        let shared = &self.shared;
        let _turn = shared.turn.lock().await;
        for write in writes {
            if let Write::Run(run) = &write {
                shared.waiting().begun.push((**run).clone());
            }
            let _queued = shared.queue_write(write);
        }
        shared.flush().await
    }

    /// Lets a write wait without a try, where the database is away.
    pub(super) fn write_without_try(&self, write: Write) {
        let _queued = self.shared.queue_write(write);
    }

    /// Returns the place of the database, without secrets.
    pub(super) fn place(&self) -> String {
        self.shared.options.target.place()
    }

    /// Writes the waiting writes, if that is possible, and closes the database; returns the number of writes that are lost.
    pub async fn close(&self) -> usize {
        let _turn = self.shared.turn.lock().await;
        // A server that is silent is not called again for nothing.
        if self.waiting_count() > 0 {
            self.shared.mend().await;
        }
        self.shared.waiting().closed = true;
        let db = self.shared.db();
        self.shared.set_db(None);
        if let Some(db) = db {
            db.close().await;
        }
        self.shared.waiting().pending.len()
    }

    pub(super) async fn write(
        &self,
        write: Write,
        what: &'static str,
    ) -> Result<Written, StoreError> {
        let shared = &self.shared;
        // Only the journal is worth a try while it is unavailable: a reboot waits for it.
        let urgent = matches!(write, Write::Journal(_));
        // Who opens a database that is silent has the turn for long.
        if shared.is_unavailable() && (!urgent || shared.db().is_none()) {
            return Ok(shared.queue_write(write));
        }
        let _turn = shared.turn.lock().await;
        shared.notice_removed().await;
        if shared.is_unavailable() && !(urgent && shared.flush().await) {
            return Ok(shared.queue_write(write));
        }
        let Some(db) = shared.db() else {
            return Ok(shared.queue_write(write));
        };
        match db.execute(write.statement(), Patience::Full).await {
            Ok(()) => Ok(Written::Durable),
            Err(DbError::Refused(_)) if shared.notice_emptied(&write).await => {
                Ok(shared.queue_write(write))
            }
            Err(DbError::Refused(reason)) => Err(StoreError::Refused { what, reason }),
            Err(error) => {
                tracing::warn!(%error, "the database takes no writes; they wait in memory");
                shared.waiting().note_failure(&error);
                Ok(shared.queue_write(write))
            }
        }
    }

    pub(super) async fn read(
        &self,
        statement: db::Statement,
        what: &'static str,
    ) -> Result<Vec<db::Cells>, StoreError> {
        // Without a database the waiting writes are all there is.
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

    /// Locks the waiting writes; the lock is held for moments only, never across an await.
    pub(super) fn waiting(&self) -> MutexGuard<'_, Waiting> {
        self.shared.waiting()
    }

    /// Returns the point at which the process is to die, in tests of recovery.
    pub(super) fn crash_point(&self) -> Option<CrashPoint> {
        self.shared.options.crash
    }
}

impl Shared {
    fn db(&self) -> Option<Db> {
        self.db.read().clone()
    }

    /// Locks the waiting writes, for moments only and never across an await.
    fn waiting(&self) -> MutexGuard<'_, Waiting> {
        self.waiting.lock()
    }

    fn is_unavailable(&self) -> bool {
        let waiting = self.waiting();
        waiting.error.is_some() || !waiting.pending.is_empty()
    }

    fn queue_write(&self, write: Write) -> Written {
        let mut waiting = self.waiting();
        waiting.pending.push(write);
        let reason = waiting
            .error
            .get_or_insert_with(|| "it was closed".to_owned())
            .clone();
        drop(waiting);
        self.wake.notify_one();
        Written::Queued(StoreWarning::InMemory { reason })
    }

    /// Writes the waiting writes, oldest first, as far as the database takes them; returns true if all is well now.
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
                if let Some(reason) = waiting.error.take() {
                    tracing::info!(%reason, "the database is well again");
                }
                return true;
            };
            match db.execute(write.statement(), Patience::Brief).await {
                Ok(()) => self.waiting().pending.written(&write),
                Err(DbError::Refused(_)) if self.notice_emptied(&write).await => return false,
                Err(DbError::Refused(error)) => {
                    // It would block all the others for good.
                    tracing::error!(%error, ?write, "the database refused a write that had waited");
                    let mut waiting = self.waiting();
                    waiting.pending.written(&write);
                    waiting.refused += 1;
                }
                Err(error) => {
                    self.waiting().note_failure(&error);
                    return false;
                }
            }
        }
    }

    /// Gives up connections to a file that is not there any more. The caller holds the turn.
    async fn notice_removed(&self) {
        let Some(db) = self.db() else { return };
        let Some(path) = db.removed_file() else {
            return;
        };
        self.reopen_emptied(&db, format!("{} was removed", path.display()))
            .await;
    }

    /// Gives up connections to a database that refuses `write` because it has lost the runs begun here: it was dropped and created
    /// again, or restored from an older copy. Returns true if so. The caller holds the turn.
    async fn notice_emptied(&self, write: &Write) -> bool {
        let run = self.waiting().begun.last().map(|begun| begun.run.clone());
        let (Some(db), Some(run)) = (self.db(), run) else {
            return false;
        };
        let emptied = match db.query(read_one_run(&run)).await {
            // A run can be written again into the database as it is.
            Ok(found) => found.is_empty() && !matches!(write, Write::Run(_)),
            // The tables are gone: opening it makes them again.
            Err(error) => matches!(error, DbError::Refused(_)),
        };
        if emptied {
            let place = self.options.target.place();
            self.reopen_emptied(&db, format!("{place} was emptied"))
                .await;
        }
        emptied
    }

    /// Gives up connections to a database that has lost its records, so that it is opened and filled again.
    async fn reopen_emptied(&self, db: &Db, reason: String) {
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

    /// Opens the database if it is not open or has become suspect, and writes the waiting writes; returns
    /// true if all is well now. The caller holds the turn.
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
                    self.waiting().error = Some(chain(&error));
                    return false;
                }
            }
        }
        self.flush().await
    }

    fn set_db(&self, db: Option<Db>) {
        *self.db.write() = db;
    }
}

impl Drop for Shared {
    fn drop(&mut self) {
        self.wake.notify_one();
    }
}

impl Waiting {
    /// Prepares for an empty database in the place of the one before, which was removed for this reason if there is one.
    fn begin_again(&mut self, removed: Option<String>) {
        let begun = self.begun.clone();
        self.pending.begin_again(begun);
        if removed.is_some() {
            (self.removed, self.error) = (true, removed);
        }
    }

    /// Lays these writes over what is read, and keeps all of them from being written.
    pub(super) fn only_show(&mut self, writes: Vec<Write>) {
        self.closed = true;
        for write in writes {
            if let Write::Run(run) = &write {
                self.begun.push((**run).clone());
            }
            self.pending.push(write);
        }
    }

    /// Returns the record of the run begun here last, unless it waits itself.
    pub(super) fn own_run(&self) -> Option<Write> {
        let own = self.begun.last()?;
        let mut writes = self.pending.writes();
        let waits = writes.any(|write| matches!(write, Write::Run(one) if one.run == own.run));
        (!waits).then(|| Write::Run(Box::new(own.clone())))
    }

    fn note_failure(&mut self, error: &DbError) {
        self.error = Some(chain(error));
        let weight = match error {
            DbError::Corrupt(_) => SUSPECT,
            _ => 1,
        };
        self.failures = self.failures.saturating_add(weight);
    }

    const fn is_suspect(&self) -> bool {
        self.failures >= SUSPECT
    }

    pub(super) fn is_of(&self, run: &RunId, project: &Project) -> bool {
        self.begun
            .iter()
            .any(|begun| begun.run == *run && is_same(&begun.project, project))
    }
}

async fn open_db(options: &StoreOptions) -> Result<OpenedDb, DbError> {
    match &options.target {
        StoreTarget::Sqlite(path) => match Db::open_sqlite(path, options.patience).await {
            Err(error @ DbError::Unavailable(_)) if options.only_reads => {
                // What is in the way of an opening for writing is what a person can mend.
                let read = Db::read_sqlite(path, options.patience).await;
                read.ok_or(error)
            }
            opened => opened,
        },
        #[cfg(feature = "postgres")]
        StoreTarget::Postgres(url) => Db::open_postgres(url, options.patience).await,
    }
}

fn read_one_run(run: &RunId) -> db::Statement {
    db::Statement {
        sql: "SELECT run_id FROM runs WHERE run_id = $1",
        binds: vec![db::Bind::Text(Some(run.to_string()))],
    }
}

/// Tries the database again, once a second, for as long as it is unavailable and the store lives.
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

fn newer_schema(found: i64, target: &StoreTarget) -> StoreError {
    StoreError::NewerSchema {
        found,
        known: db::SCHEMA,
        place: target.place(),
    }
}
