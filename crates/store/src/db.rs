//! The only access to `sqlx`: two databases behind the same statements.
//!
//! `$1` placeholders serve both: the `SQLite` driver binds parameters of the form `$N` by their
//! number. The values in both directions are reduced to text, integers and reals, so that no
//! query needs to know which database it speaks to.

#![allow(
    clippy::disallowed_methods,
    reason = "it touches the world: deadlines of a real database"
)]

use std::{
    collections::BTreeSet,
    fs::File,
    path::{Path, PathBuf},
    time::{Duration, SystemTime},
};

use chrono::{DateTime, Utc};
use rustix::{fs::FlockOperation, io::Errno};
use sqlx::{
    Column, ConnectOptions, Decode, Row, Sqlite, SqlitePool, Type, TypeInfo, ValueRef,
    pool::{PoolConnection, PoolOptions},
    sqlite::{
        SqliteConnectOptions, SqliteJournalMode, SqliteLockingMode, SqliteRow, SqliteSynchronous,
    },
};
#[cfg(feature = "postgres")]
use sqlx::{
    Connection as _, PgPool,
    postgres::{PgConnectOptions, PgRow},
};

#[cfg(feature = "postgres")]
use super::StoreError;
use crate::{FilesError, PrivateDir};
use pitstop_base::clean::chain;
use pitstop_core::lineage::moment;

/// The schema's steps, oldest first; the version of a database is the number of steps it has taken. A step
/// that was released is never edited.
const MIGRATIONS: [(i64, &str); SCHEMA as usize] = [
    (1, include_str!("migrations/0001-first.sql")),
    (2, include_str!("migrations/0002-compactions.sql")),
    (3, include_str!("migrations/0003-summaries.sql")),
    (4, include_str!("migrations/0004-turns.sql")),
    (5, include_str!("migrations/0005-carried.sql")),
    (6, include_str!("migrations/0006-endings.sql")),
    (7, include_str!("migrations/0007-lengths.sql")),
];

/// The schema version that this program knows.
pub(super) const SCHEMA: i64 = 7;

/// The lock that keeps two supervisors from migrating one Postgres at once; any number does that is ours alone.
#[cfg(feature = "postgres")]
const MIGRATION_LOCK: i64 = 0x7069_7473_746f_7031;

/// The number of connections: one writes (the store lets one write in at a time), the others read meanwhile.
const CONNECTIONS: u32 = 3;

/// The largest file that is checked whole when opened, in bytes: about 0.1 s for that.
const CHECKED_BYTES: u64 = 64 * 1024 * 1024;

/// The lock file that keeps a second starter out while the first creates, checks and migrates the database.
const GATE: &str = "opening.lock";

/// The interval at which the gate is tried again.
const GATE_POLL: Duration = Duration::from_millis(20);

/// The time that a write waits for a lock while the store is known to be unavailable: it is tried again
/// soon, and the caller must not hang.
const BRIEF: Duration = Duration::from_millis(200);

/// A value sent to the database; the kind is known even of a null, as Postgres requires.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Bind {
    Text(Option<String>),
    Int(Option<i64>),
    Real(Option<f64>),
}

/// One statement with its values.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Statement {
    pub(super) sql: &'static str,
    pub(super) binds: Vec<Bind>,
}

/// A value that came back.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Cell {
    Null,
    Text(String),
    Int(i64),
    Real(f64),
}

/// A row that came back.
pub(super) type Cells = Vec<Cell>;

/// The time that a statement may take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Patience {
    /// The store's own patience: the database is thought to be well.
    Full,
    /// The patience of a try while it is unavailable.
    Brief,
}

/// An open database.
#[derive(Clone, Debug)]
pub(super) enum Db {
    Sqlite {
        pool: SqlitePool,
        busy: Duration,
        file: DbFile,
    },
    #[cfg(feature = "postgres")]
    Postgres {
        pool: PgPool,
        busy: Duration,
        /// The place of the server, for errors.
        place: String,
    },
}

/// The file that was opened: connections to one that is removed go on as if nothing had happened, and all they write is lost.
#[derive(Clone, Debug)]
pub(super) struct DbFile {
    path: PathBuf,
    /// Its device and inode.
    id: (u64, u64),
}

impl DbFile {
    fn find_at(path: &Path) -> Option<Self> {
        use std::os::unix::fs::MetadataExt as _;
        let found = path.symlink_metadata().ok()?;
        Some(Self {
            path: path.to_owned(),
            id: (found.dev(), found.ino()),
        })
    }
}

/// A database that was opened, and the corrupt one that was set aside for it.
pub(super) struct OpenedDb {
    pub(super) db: Db,
    pub(super) set_aside: Option<PathBuf>,
}

/// The reason why a database could not be used.
#[derive(Debug, thiserror::Error)]
pub(super) enum DbError {
    /// It refuses, and will refuse again: the statement is at fault.
    #[error("{0}")]
    Refused(String),
    /// It cannot now and may be able to later: locked, full, gone.
    #[error("{0}")]
    Unavailable(String),
    /// The file is no database any more.
    #[error("{0}")]
    Corrupt(String),
    /// A newer program has changed it.
    #[error("schema version {0}")]
    Newer(i64),
}

impl From<sqlx::Error> for DbError {
    fn from(error: sqlx::Error) -> Self {
        // The display of the whole error adds the lines of the server's own source.
        let (code, reason) = match &error {
            sqlx::Error::Database(database) => (
                database.code().unwrap_or_default(),
                database.message().to_owned(),
            ),
            sqlx::Error::PoolTimedOut => {
                return Self::Unavailable("no connection came about in time".to_owned());
            }
            sqlx::Error::Io(_)
            | sqlx::Error::Tls(_)
            | sqlx::Error::Protocol(_)
            | sqlx::Error::PoolClosed
            | sqlx::Error::WorkerCrashed
            | sqlx::Error::BeginFailed => return Self::Unavailable(error.to_string()),
            _ => return Self::Refused(error.to_string()),
        };
        kind_of_code(&code)(reason)
    }
}

impl From<FilesError> for DbError {
    fn from(error: FilesError) -> Self {
        Self::Unavailable(chain(&error))
    }
}

/// Returns the kind of error that a code means: five characters from Postgres, a number from `SQLite` whose low byte is
/// the primary code.
fn kind_of_code(code: &str) -> fn(String) -> DbError {
    if code.len() == 5 && code.is_ascii() {
        // Connection, transaction rollback, insufficient resources, limits, operator intervention,
        // system error; wrong password and no such database, which an operator can mend.
        const CLASSES: [&str; 8] = ["08", "40", "53", "54", "57", "58", "28", "3D"];
        // Read-only (a standby), a right that was taken away, lock not available, internal corruption reported by the server.
        const CODES: [&str; 5] = ["25006", "42501", "55P03", "XX001", "XX002"];
        return if CLASSES.contains(&&code[..2]) || CODES.contains(&code) {
            DbError::Unavailable
        } else {
            DbError::Refused
        };
    }
    match code.parse::<i32>().map(|code| code & 0xff) {
        // CORRUPT, NOTADB.
        Ok(11 | 26) => DbError::Corrupt,
        // PERM, BUSY, LOCKED, NOMEM, READONLY, INTERRUPT, IOERR, FULL, CANTOPEN, PROTOCOL, NOLFS, AUTH.
        Ok(3 | 5..=10 | 13 | 14 | 15 | 22 | 23) => DbError::Unavailable,
        _ => DbError::Refused,
    }
}

impl Db {
    /// Opens the file at `path`, creating and migrating it; one that is corrupt is set aside.
    pub(super) async fn open_sqlite(path: &Path, busy: Duration) -> Result<OpenedDb, DbError> {
        let (Some(above), Some(name)) = (path.parent(), path.file_name().and_then(|n| n.to_str()))
        else {
            return Err(DbError::Unavailable(format!(
                "expected the path of a file, found {}",
                path.display()
            )));
        };
        let dir = PrivateDir::open_named(above)?;
        // What is no file of ours is refused before anything is written beside it.
        crate::private_dir::absent_is_none(dir.open_to_read(name))?;
        let _gate = pass_gate(&dir, busy).await?;
        match Self::open_file(&dir, name, busy).await {
            Ok(db) => Ok(OpenedDb {
                db,
                set_aside: None,
            }),
            Err(DbError::Corrupt(reason)) => {
                let kept = set_aside(path, SystemTime::now().into())
                    .map_err(|error| DbError::Unavailable(format!("{reason}; {error}")))?;
                tracing::error!(%reason, kept = %kept.display(), "the database is corrupt and was set aside");
                Ok(OpenedDb {
                    db: Self::open_file(&dir, name, busy).await?,
                    set_aside: Some(kept),
                })
            }
            Err(error) => Err(error),
        }
    }

    /// Opens the file at `path` only to read it, where nothing can be written: as it is, without the lock of an opening. Returns
    /// `None` where it cannot be read, or is of a newer schema.
    pub(super) async fn read_sqlite(path: &Path, busy: Duration) -> Option<OpenedDb> {
        let dir = PrivateDir::find_named(path.parent()?).ok()??;
        dir.open_to_read(path.file_name()?.to_str()?).ok()?;
        let file = DbFile::find_at(path)?;
        let plain = || {
            SqliteConnectOptions::new()
                .filename(path)
                .read_only(true)
                .pragma("temp_store", "memory")
                .busy_timeout(busy)
                .disable_statement_logging()
        };
        // Where the index of its WAL cannot be made, the WAL is read with an index in memory. Where it has none, which cannot be made
        // either, the file is read alone.
        let index_in_memory = plain()
            .vfs("unix-none")
            .locking_mode(SqliteLockingMode::Exclusive);
        for options in [plain(), index_in_memory, plain().immutable(true)] {
            let pool = PoolOptions::new()
                .max_connections(1)
                .acquire_timeout(busy + BRIEF)
                .idle_timeout(None)
                .max_lifetime(None);
            let Ok(pool) = pool.connect_with(options).await else {
                continue;
            };
            let file = file.clone();
            let known = read_as_known(&pool).await;
            let db = Self::Sqlite { pool, busy, file };
            if known.is_ok() {
                return Some(OpenedDb {
                    db,
                    set_aside: None,
                });
            }
            db.close().await;
        }
        None
    }

    async fn open_file(dir: &PrivateDir, name: &str, busy: Duration) -> Result<Self, DbError> {
        let path = dir.path().join(name);
        // Created here and not by SQLite, so that it is private from its first moment; the WAL and
        // its index take the mode of the file.
        let size = make_private(dir, name)?;
        let options = SqliteConnectOptions::new()
            .filename(&path)
            .create_if_missing(false)
            .journal_mode(SqliteJournalMode::Wal)
            // In WAL mode NORMAL may lose the last commits at a power cut: the journal may not.
            .synchronous(SqliteSynchronous::Full)
            .foreign_keys(true)
            .busy_timeout(busy)
            .disable_statement_logging();
        let pool = PoolOptions::new()
            .max_connections(CONNECTIONS)
            .acquire_timeout(busy + BRIEF)
            .idle_timeout(None)
            .max_lifetime(None)
            .connect_with(options)
            .await?;
        let file = DbFile::find_at(&path)
            .ok_or_else(|| DbError::Unavailable(format!("{} was removed", path.display())))?;
        let db = Self::Sqlite { pool, busy, file };
        let ready = async {
            if size <= CHECKED_BYTES {
                db.check_file().await?;
            }
            db.migrate_schema().await
        };
        if let Err(error) = ready.await {
            db.close().await;
            return Err(error);
        }
        Ok(db)
    }

    /// Connects to the server named by `url` and migrates its schema.
    #[cfg(feature = "postgres")]
    pub(super) async fn open_postgres(url: &str, busy: Duration) -> Result<OpenedDb, DbError> {
        let place = postgres_place(url);
        let named = |error| with_place(&place, error);
        let options = postgres_options(url)
            .map_err(|error| DbError::Unavailable(error.to_string()))?
            .application_name("pitstop")
            .disable_statement_logging();
        // A pool only reports that its time was up: the first connection is made without it, for the cause.
        let first = tokio::time::timeout(busy, options.connect()).await;
        let first = first.unwrap_or_else(|_| Err(sqlx::Error::PoolTimedOut));
        drop(first.map_err(|error| named(error.into()))?.close().await);
        let pool = PoolOptions::new()
            .max_connections(CONNECTIONS)
            .acquire_timeout(busy)
            .connect_with(options)
            .await
            .map_err(|error| named(error.into()))?;
        let db = Self::Postgres { pool, busy, place };
        if let Err(error) = db.migrate_schema().await {
            db.close().await;
            return Err(error);
        }
        let set_aside = None;
        Ok(OpenedDb { db, set_aside })
    }

    async fn check_file(&self) -> Result<(), DbError> {
        match self.ask_one("PRAGMA quick_check(1)").await? {
            Some(Cell::Text(verdict)) if verdict == "ok" => Ok(()),
            verdict => Err(DbError::Corrupt(format!(
                "expected a sound database, found {verdict:?}"
            ))),
        }
    }

    /// Returns the first value of the answer to a question without values.
    async fn ask_one(&self, sql: &'static str) -> Result<Option<Cell>, DbError> {
        let binds = Vec::new();
        let rows = self.query(Statement { sql, binds }).await?;
        Ok(rows.into_iter().flatten().next())
    }

    /// Brings the schema to the version we know; one that is newer is left as it is.
    async fn migrate_schema(&self) -> Result<(), DbError> {
        // Read first: the usual case must not wait for a writer elsewhere.
        match self.version().await {
            Ok(SCHEMA) => return Ok(()),
            Ok(version) if version > SCHEMA => return Err(DbError::Newer(version)),
            // Older, or no schema at all, which reads as an error.
            Ok(_) | Err(_) => {}
        }
        // The two databases have transactions of two types.
        macro_rules! take_steps {
            ($change:ident) => {{
                sqlx::raw_sql(CREATE_VERSIONS)
                    .execute(&mut *$change)
                    .await?;
                let found: Option<i64> = sqlx::query_scalar(READ_VERSION)
                    .fetch_one(&mut *$change)
                    .await?;
                for (version, sql) in missing_steps(found)? {
                    sqlx::raw_sql(sql).execute(&mut *$change).await?;
                    sqlx::query(WRITE_VERSION)
                        .bind(version)
                        .bind(moment::text(SystemTime::now().into()))
                        .execute(&mut *$change)
                        .await?;
                }
                $change.commit().await?;
            }};
        }
        match self {
            Self::Sqlite { pool, .. } => {
                let mut change = pool.begin_with("BEGIN IMMEDIATE").await?;
                take_steps!(change);
            }
            #[cfg(feature = "postgres")]
            Self::Postgres { pool, .. } => {
                let mut change = pool.begin().await?;
                sqlx::query("SELECT pg_advisory_xact_lock($1)")
                    .bind(MIGRATION_LOCK)
                    .execute(&mut *change)
                    .await?;
                take_steps!(change);
            }
        }
        Ok(())
    }

    /// Returns the schema version of the database as it is.
    pub(super) async fn version(&self) -> Result<i64, DbError> {
        match self.ask_one(READ_VERSION).await? {
            Some(Cell::Int(version)) => Ok(version),
            _ => Ok(0),
        }
    }

    /// Runs one statement that changes something; committed when it returns.
    pub(super) async fn execute(
        &self,
        statement: Statement,
        patience: Patience,
    ) -> Result<(), DbError> {
        // The database has its own limit for a lock; this one is for a server that is silent.
        let limit = match patience {
            Patience::Full => self.busy() * 2,
            Patience::Brief => BRIEF * 4,
        };
        tokio::time::timeout(limit, self.execute_patiently(statement, patience))
            .await
            .unwrap_or_else(|_| Err(DbError::Unavailable(format!("no answer within {limit:?}"))))
            .map_err(|error| self.name_server(error))
    }

    async fn execute_patiently(
        &self,
        statement: Statement,
        patience: Patience,
    ) -> Result<(), DbError> {
        match self {
            Self::Sqlite { pool, busy, .. } => {
                let mut connection = pool.acquire().await?;
                let wait = match patience {
                    Patience::Full => *busy,
                    Patience::Brief => BRIEF.min(*busy),
                };
                // Set each time: the connection may come from a try of the other kind.
                let set = format!("PRAGMA busy_timeout = {}", wait.as_millis());
                sqlx::raw_sql(sqlx::AssertSqlSafe(set))
                    .execute(&mut *connection)
                    .await?;
                bind_all(sqlx::query(statement.sql), statement.binds)
                    .execute(&mut *connection)
                    .await?;
            }
            #[cfg(feature = "postgres")]
            Self::Postgres { pool, .. } => {
                bind_all(sqlx::query(statement.sql), statement.binds)
                    .execute(pool)
                    .await?;
            }
        }
        Ok(())
    }

    /// Runs one statement that reads; every statement of ours has a bound on its rows.
    pub(super) async fn query(&self, statement: Statement) -> Result<Vec<Cells>, DbError> {
        let limit = self.busy() * 2;
        tokio::time::timeout(limit, self.query_patiently(statement))
            .await
            .unwrap_or_else(|_| Err(DbError::Unavailable(format!("no answer within {limit:?}"))))
            .map_err(|error| self.name_server(error))
    }

    fn name_server(&self, error: DbError) -> DbError {
        match self {
            #[cfg(feature = "postgres")]
            Self::Postgres { place, .. } => with_place(place, error),
            Self::Sqlite { .. } => error,
        }
    }

    /// Returns the path of the file, if it is gone or another one is there.
    pub(super) fn removed_file(&self) -> Option<&Path> {
        match self {
            Self::Sqlite { file, .. } => {
                let there = DbFile::find_at(&file.path).is_some_and(|found| found.id == file.id);
                (!there).then_some(&file.path)
            }
            #[cfg(feature = "postgres")]
            Self::Postgres { .. } => None,
        }
    }

    async fn query_patiently(&self, statement: Statement) -> Result<Vec<Cells>, DbError> {
        match self {
            Self::Sqlite { pool, .. } => {
                let rows: Vec<SqliteRow> = bind_all(sqlx::query(statement.sql), statement.binds)
                    .fetch_all(pool)
                    .await?;
                Ok(rows.iter().map(read_cells).collect::<Result<_, _>>()?)
            }
            #[cfg(feature = "postgres")]
            Self::Postgres { pool, .. } => {
                let rows: Vec<PgRow> = bind_all(sqlx::query(statement.sql), statement.binds)
                    .fetch_all(pool)
                    .await?;
                Ok(rows.iter().map(read_cells).collect::<Result<_, _>>()?)
            }
        }
    }

    /// Makes the file as small as its content. A server does that by itself.
    pub(super) async fn compact(&self) {
        let vacuumed = match self {
            Self::Sqlite { pool, .. } => sqlx::raw_sql("VACUUM").execute(pool).await.map(drop),
            #[cfg(feature = "postgres")]
            Self::Postgres { .. } => Ok(()),
        };
        if let Err(error) = vacuumed {
            tracing::info!(%error, "the database keeps its size");
        }
    }

    fn busy(&self) -> Duration {
        match self {
            Self::Sqlite { busy, .. } => *busy,
            #[cfg(feature = "postgres")]
            Self::Postgres { busy, .. } => *busy,
        }
    }

    /// Closes every connection; `SQLite` folds its WAL into the file with the last one.
    pub(super) async fn close(&self) {
        match self {
            Self::Sqlite { pool, .. } => pool.close().await,
            #[cfg(feature = "postgres")]
            Self::Postgres { pool, .. } => pool.close().await,
        }
    }
}

const CREATE_VERSIONS: &str = "CREATE TABLE IF NOT EXISTS pitstop_schema \
    (version BIGINT NOT NULL PRIMARY KEY, applied_at TEXT NOT NULL)";
const CHANGE_TABLE: &str = "ALTER TABLE ";
const READ_VERSION: &str = "SELECT MAX(version) FROM pitstop_schema";
const WRITE_VERSION: &str = "INSERT INTO pitstop_schema (version, applied_at) VALUES ($1, $2)";

/// Returns the steps that a database of version `found` still has to take, with their numbers.
fn missing_steps(found: Option<i64>) -> Result<impl Iterator<Item = (i64, &'static str)>, DbError> {
    let found = found.unwrap_or(0);
    if found > SCHEMA {
        return Err(DbError::Newer(found));
    }
    Ok(MIGRATIONS
        .into_iter()
        .filter(move |(version, _)| *version > found))
}

/// Brings what a connection that can only read shows of an older schema to the one that we know: with copies of the tables that have
/// changed since, and with those that are new, in the connection's own memory. They hide those of the file.
async fn read_as_known(pool: &SqlitePool) -> Result<(), DbError> {
    let found: i64 = sqlx::query_scalar(READ_VERSION).fetch_one(pool).await?;
    let mut connection = pool.acquire().await?;
    let mut copied = BTreeSet::new();
    for (_, sql) in missing_steps(Some(found))? {
        for (at, changes) in sql.match_indices(CHANGE_TABLE) {
            let table = sql[at + changes.len()..].split(' ').next();
            let table = table.unwrap_or_default();
            if copied.insert(table) {
                let copy = format!("CREATE TEMP TABLE {table} AS SELECT * FROM main.{table}");
                execute_step(&mut connection, copy).await?;
            }
        }
        let sql = sql.replace("CREATE TABLE", "CREATE TEMP TABLE");
        execute_step(&mut connection, sql).await?;
    }
    Ok(())
}

async fn execute_step(
    connection: &mut PoolConnection<Sqlite>,
    sql: String,
) -> Result<(), sqlx::Error> {
    let step = sqlx::raw_sql(sqlx::AssertSqlSafe(sql));
    step.execute(&mut **connection).await.map(drop)
}

/// Reads a server's address, without repeating it (it may hold a password) when it is wrong.
#[cfg(feature = "postgres")]
pub(super) fn postgres_options(url: &str) -> Result<PgConnectOptions, StoreError> {
    url.parse().map_err(|_| StoreError::Target)
}

/// Returns the place of a server's database for people: no user, no password.
#[cfg(feature = "postgres")]
pub(super) fn postgres_place(url: &str) -> String {
    match postgres_options(url) {
        Ok(options) => format!(
            "postgres://{}:{}/{}",
            options.get_host(),
            options.get_port(),
            options.get_database().unwrap_or_default()
        ),
        Err(_) => "postgres".to_owned(),
    }
}

/// Names the server in its error.
#[cfg(feature = "postgres")]
fn with_place(place: &str, error: DbError) -> DbError {
    match error {
        DbError::Unavailable(reason) if !reason.starts_with(place) => {
            DbError::Unavailable(format!("{place}: {reason}"))
        }
        error => error,
    }
}

fn bind_all<'q, DB>(
    query: sqlx::query::Query<'q, DB, <DB as sqlx::Database>::Arguments>,
    binds: Vec<Bind>,
) -> sqlx::query::Query<'q, DB, <DB as sqlx::Database>::Arguments>
where
    DB: sqlx::Database,
    Option<String>: sqlx::Encode<'q, DB> + Type<DB>,
    Option<i64>: sqlx::Encode<'q, DB> + Type<DB>,
    Option<f64>: sqlx::Encode<'q, DB> + Type<DB>,
{
    binds.into_iter().fold(query, |query, bind| match bind {
        // Postgres takes no NUL in a text; both databases shall hold the same.
        Bind::Text(text) => query.bind(text.map(|text| text.replace('\0', "\u{fffd}"))),
        Bind::Int(number) => query.bind(number),
        Bind::Real(number) => query.bind(number),
    })
}

/// Reduces a row to text, integers and reals, by the type each value has.
fn read_cells<'r, R>(row: &'r R) -> Result<Cells, sqlx::Error>
where
    R: Row,
    usize: sqlx::ColumnIndex<R>,
    String: Decode<'r, R::Database> + Type<R::Database>,
    i64: Decode<'r, R::Database> + Type<R::Database>,
    f64: Decode<'r, R::Database> + Type<R::Database>,
{
    row.columns()
        .iter()
        .map(|column| {
            let index = column.ordinal();
            let value = row.try_get_raw(index)?;
            if value.is_null() {
                return Ok(Cell::Null);
            }
            let kind = value.type_info().name().to_owned();
            match kind.as_str() {
                "INTEGER" | "INT8" => row.try_get(index).map(Cell::Int),
                "REAL" | "FLOAT8" => row.try_get(index).map(Cell::Real),
                _ => row.try_get(index).map(Cell::Text),
            }
        })
        .collect()
}

async fn pass_gate(dir: &PrivateDir, busy: Duration) -> Result<File, DbError> {
    let gate = dir.open_or_create(GATE)?;
    let wait = async {
        loop {
            match rustix::fs::flock(&gate, FlockOperation::NonBlockingLockExclusive) {
                Ok(()) => return Ok(()),
                Err(Errno::WOULDBLOCK) => tokio::time::sleep(GATE_POLL).await,
                Err(error) => return Err(DbError::Unavailable(error.to_string())),
            }
        }
    };
    tokio::time::timeout(busy, wait).await.unwrap_or_else(|_| {
        Err(DbError::Unavailable(
            "another pitstop is busy opening the database".to_owned(),
        ))
    })?;
    Ok(gate)
}

/// Makes sure that the file is there, ours and private; returns its size in bytes.
fn make_private(dir: &PrivateDir, name: &str) -> Result<u64, DbError> {
    use std::os::unix::fs::PermissionsExt;
    let error = |error: std::io::Error| DbError::Unavailable(error.to_string());
    let file = dir.open_or_create(name)?;
    let metadata = file.metadata().map_err(error)?;
    if metadata.permissions().mode() & 0o077 != 0 {
        file.set_permissions(std::fs::Permissions::from_mode(0o600))
            .map_err(error)?;
    }
    Ok(metadata.len())
}

/// Renames a corrupt database and its WAL; returns the new path of the database.
fn set_aside(path: &Path, now: DateTime<Utc>) -> std::io::Result<PathBuf> {
    let mark = now.format("%Y%m%d-%H%M%S%.3f");
    let renamed = |suffix: &str| {
        let mut name = path.as_os_str().to_owned();
        name.push(format!("{suffix}.corrupt-{mark}"));
        PathBuf::from(name)
    };
    let kept = renamed("");
    std::fs::rename(path, &kept)?;
    for suffix in ["-wal", "-shm"] {
        let mut beside = path.as_os_str().to_owned();
        beside.push(suffix);
        match std::fs::rename(&beside, renamed(suffix)) {
            Ok(()) => {}
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
            Err(error) => return Err(error),
        }
    }
    Ok(kept)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_separate_what_may_pass_from_what_will_not() {
        // Extended codes keep the primary one in their low byte: IOERR_FSYNC, BUSY_SNAPSHOT.
        for code in [
            "5", "6", "13", "10", "8", "14", "1034", "517", "08006", "57P01", "53100", "42501",
        ] {
            let error = kind_of_code(code)(String::new());
            assert!(
                matches!(error, DbError::Unavailable(_)),
                "{code}: {error:?}"
            );
        }
        for code in ["11", "26", "267"] {
            let error = kind_of_code(code)(String::new());
            assert!(matches!(error, DbError::Corrupt(_)), "{code}: {error:?}");
        }
        for code in ["1", "787", "1555", "23505", "42P01", "", "x", "héé"] {
            let error = kind_of_code(code)(String::new());
            assert!(matches!(error, DbError::Refused(_)), "{code}: {error:?}");
        }
    }

    #[tokio::test]
    async fn a_database_of_an_older_schema_is_read_where_it_cannot_be_brought_to_ours() {
        for found in 1..SCHEMA {
            let place = tempfile::tempdir().unwrap();
            let dir = PrivateDir::open_path(&place.path().join("own")).unwrap();
            make_private(&dir, "old.db").unwrap();
            let path = dir.path().join("old.db");
            let options = SqliteConnectOptions::new().filename(&path);
            let pool = SqlitePool::connect_with(options).await.unwrap();
            let steps = MIGRATIONS.into_iter().take_while(|(one, _)| *one <= found);
            for (version, sql) in [(0, CREATE_VERSIONS)].into_iter().chain(steps) {
                sqlx::raw_sql(sql).execute(&pool).await.unwrap();
                let write = sqlx::query(WRITE_VERSION).bind(version).bind("");
                write.execute(&pool).await.unwrap();
            }
            let rows = "INSERT INTO runs VALUES ('r', 'h', '/p', 'host', 1, '', 'claude', '0', NULL, '', NULL, NULL); \
                INSERT INTO iterations (run_id, iteration, session_id, started_at, tokens_input, tokens_output) \
                VALUES ('r', 1, 's', '', 3, 4)";
            sqlx::raw_sql(rows).execute(&pool).await.unwrap();
            pool.close().await;
            let before = std::fs::read(&path).unwrap();
            let read = Db::read_sqlite(&path, Duration::from_secs(5)).await;
            let db = read.expect("it is read").db;
            for (sql, rows) in [
                (
                    "SELECT compactions, summary_made, turns, signal, in_turn, duration_ms FROM iterations \
                     WHERE run_id = (SELECT run_id FROM runs) AND tokens_output = 4",
                    1,
                ),
                ("SELECT run_id, state FROM carried", 0),
            ] {
                let binds = Vec::new();
                let found = db.query(Statement { sql, binds }).await.unwrap();
                assert_eq!(found.len(), rows, "{sql}");
            }
            db.close().await;
            assert_eq!(std::fs::read(&path).unwrap(), before, "{found}");
        }
    }

    #[tokio::test]
    async fn the_directory_that_a_setting_names_keeps_its_mode() {
        use std::os::unix::fs::PermissionsExt as _;
        let patience = Duration::from_secs(5);
        for mode in [0o755, 0o2775, 0o711, 0o700] {
            let place = tempfile::tempdir().unwrap();
            let (named, missing) = (place.path().join("p.db"), place.path().join("new/p.db"));
            std::fs::create_dir(place.path().join("no.db")).unwrap();
            let set = std::fs::Permissions::from_mode(mode);
            std::fs::set_permissions(place.path(), set).unwrap();
            let mode_of = |path: &Path| path.metadata().unwrap().permissions().mode();
            // What is no file is refused before anything is written beside it.
            assert!(
                Db::open_sqlite(&place.path().join("no.db"), patience)
                    .await
                    .is_err()
            );
            assert!(!place.path().join("opening.lock").exists());
            let opened = Db::open_sqlite(&named, patience).await;
            opened.unwrap().db.close().await;
            let read = Db::read_sqlite(&named, patience).await;
            read.unwrap().db.close().await;
            assert_eq!(mode_of(place.path()) & 0o7777, mode, "{mode:o}");
            assert_eq!(mode_of(&named) & 0o777, 0o600);
            let opened = Db::open_sqlite(&missing, patience).await;
            opened.unwrap().db.close().await;
            assert_eq!(mode_of(missing.parent().unwrap()) & 0o777, 0o700);
        }
    }

    #[tokio::test]
    async fn what_is_only_in_the_wal_is_read_where_its_index_cannot_be_made() {
        let place = tempfile::tempdir().unwrap();
        let patience = Duration::from_secs(5);
        let [written, copied] = ["written", "copied"].map(|name| place.path().join(name));
        PrivateDir::open_path(&copied).unwrap();
        let opened = Db::open_sqlite(&written.join("p.db"), patience).await;
        let db = opened.unwrap().db;
        let options = SqliteConnectOptions::new().filename(written.join("p.db"));
        let pool = SqlitePool::connect_with(options).await.unwrap();
        let row = "INSERT INTO runs (run_id, project_hash, project_path, host, pid, pid_started, agent, version, started_at) \
            VALUES ('r', 'h', '/p', 'host', 1, '', 'claude', '0', '')";
        sqlx::raw_sql(row).execute(&pool).await.unwrap();
        for name in ["p.db", "p.db-wal"] {
            std::fs::copy(written.join(name), copied.join(name)).unwrap();
        }
        // On a disk that is only read, or as here.
        std::fs::create_dir(copied.join("p.db-shm")).unwrap();
        let read = Db::read_sqlite(&copied.join("p.db"), patience).await;
        let (sql, binds) = ("SELECT run_id FROM runs", Vec::new());
        let read = read.expect("it is read").db;
        let found = read.query(Statement { sql, binds }).await.unwrap();
        assert_eq!(found.len(), 1);
        read.close().await;
        pool.close().await;
        db.close().await;
    }

    #[test]
    #[cfg(feature = "postgres")]
    fn a_place_shows_no_password() {
        let place = postgres_place("postgres://me:s3cret@db.example:5433/fleet");
        assert_eq!(place, "postgres://db.example:5433/fleet");
    }

    #[tokio::test]
    async fn what_is_read_of_a_project_is_found_by_an_index_and_in_its_order() {
        use crate::{Checkpoints, rows};
        use pitstop_core::lineage::{Project, RunId};
        let place = tempfile::tempdir().unwrap();
        let opened = Db::open_sqlite(&place.path().join("p.db"), Duration::from_secs(5)).await;
        let db = opened.unwrap().db;
        let ours = Project::new(Path::new("/home/ada/tide"), "here");
        let run = RunId::new(DateTime::UNIX_EPOCH, [1, 2, 3]);
        let which = |environment: Option<&str>, project: Option<&Project>| {
            rows::read_checkpoints(&Checkpoints {
                environment: environment.map(str::to_owned),
                project: project.cloned(),
                limit: 20,
                ..Checkpoints::default()
            })
        };
        for Statement { sql, binds } in [
            which(Some("web"), Some(&ours)),
            which(None, Some(&ours)),
            which(Some("web"), None),
            rows::read_earlier(&ours, &run, 200),
            rows::search(&ours, "word", None, 200),
        ] {
            let asked = format!("EXPLAIN QUERY PLAN {sql}").into_boxed_str();
            let asked = Box::leak(asked);
            let plan = db.query(Statement { sql: asked, binds }).await.unwrap();
            assert!(!plan.is_empty(), "{sql}");
            for step in plan {
                let Some(Cell::Text(step)) = step.into_iter().nth(3) else {
                    panic!("no words: {sql}");
                };
                let sorts_all = step == "USE TEMP B-TREE FOR ORDER BY";
                assert!(!sorts_all && !step.starts_with("SCAN"), "{step}: {sql}");
            }
        }
        // All of them are looked at only where all are asked for, and the statement is one all the same.
        let all = db.query(which(None, None)).await.unwrap();
        assert_eq!(all, Vec::<Cells>::new());
        db.close().await;
    }
}
