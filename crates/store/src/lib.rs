//! The store: the records of runs and sessions, in the database and in private files.
//!
//! This crate owns the database ([`Store`]), the private directories and the files in them ([`PrivateDir`], [`run_dir`]),
//! the lock that keeps a second supervisor out ([`lock`]), the registry of agents and the versions of the scratchpad. It
//! decides nothing: `lineage` defines what a run or an iteration is.
//!
//! One schema and one set of statements serve `SQLite` (a file of the user's own) and Postgres (a server shared by a
//! fleet). The store promises:
//!
//! - A write that returns [`Written::Durable`] survives the death of the process and, on `SQLite`, of the machine.
//! - A write that the database cannot take now (locked, full, gone) waits in memory, bounded and in order, returns
//!   [`Written::Queued`], and is written within two seconds of the database being well again. Readers see it meanwhile. No
//!   writer waits longer than the patience of the first failure.
//! - What still waits when a run ends is kept in a file, and the next run of the project takes it up.
//! - A corrupt file is set aside and a new one begun, and one that is removed is made again; a schema newer than ours is
//!   refused.

pub mod agent_registry;
mod connection;
mod db;
mod error;
pub mod lock;
mod pending;
mod private_dir;
mod reads;
mod records;
mod rows;
pub mod run_dir;
mod scratchpad_versions;
mod target;
mod unwritten;
mod writes;

pub use self::{
    connection::{Opened, Store},
    error::{StoreError, StoreWarning, Written},
    private_dir::{FilesError, PROJECT_DIR, PrivateDir, SCRATCHPAD, is_at},
    records::{AgentRecord, Checkpoints, Health, HistoryOf, RunHistory, RunRecord, Saved},
    scratchpad_versions::VersionFile,
    target::{CrashPoint, FILE, PATIENCE, StoreOptions, StoreTarget},
};
