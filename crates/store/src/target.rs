//! The place of the database, and the options of its opening.

use std::{
    path::{Path, PathBuf},
    str::FromStr,
    time::Duration,
};

use super::StoreError;
#[cfg(feature = "postgres")]
use super::db;
use pitstop_core::lineage::{LineageError, journal::Step};

/// The database's file name in the state directory.
pub const FILE: &str = "pitstop.db";

/// The time that a write waits for another process's lock before it is queued.
pub const PATIENCE: Duration = Duration::from_secs(5);

/// The place of the database.
#[derive(Clone, PartialEq, Eq)]
pub enum StoreTarget {
    /// A file; the directory above it is made private.
    Sqlite(PathBuf),
    /// A server, by its `postgres://` URL, which may hold a password.
    #[cfg(feature = "postgres")]
    Postgres(String),
}

impl StoreTarget {
    /// Returns the target that `[store] url` names, or the file in `state_dir` (the program's own, such as
    /// `$XDG_STATE_HOME/pitstop`) when it names none.
    pub fn new(url: Option<&str>, state_dir: &Path) -> Result<Self, StoreError> {
        match url {
            None => Ok(Self::Sqlite(state_dir.join(FILE))),
            Some(url) if url.starts_with("postgres://") || url.starts_with("postgresql://") => {
                Self::server(url)
            }
            Some(url) => match url.strip_prefix("sqlite://") {
                Some(path) if Path::new(path).is_absolute() => Ok(Self::Sqlite(path.into())),
                _ => Err(StoreError::Target),
            },
        }
    }

    #[cfg(feature = "postgres")]
    fn server(url: &str) -> Result<Self, StoreError> {
        db::postgres_options(url)?;
        Ok(Self::Postgres(url.to_owned()))
    }

    #[cfg(not(feature = "postgres"))]
    fn server(_: &str) -> Result<Self, StoreError> {
        Err(StoreError::NoPostgres)
    }

    /// Returns the place for people: never with a password.
    pub fn place(&self) -> String {
        match self {
            Self::Sqlite(path) => path.display().to_string(),
            #[cfg(feature = "postgres")]
            Self::Postgres(url) => db::postgres_place(url),
        }
    }
}

impl std::fmt::Debug for StoreTarget {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "StoreTarget({})", self.place())
    }
}

/// The point at which the process kills itself, to show that a reboot is recovered: `PITSTOP_CRASH_AT`, in
/// builds with debug assertions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CrashPoint {
    /// The step at whose journal write it dies.
    pub step: Step,
    /// The side of that write: before it, or after it is durable.
    pub edge: Edge,
}

/// A side of the write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Edge {
    /// It is about to be done.
    Before,
    /// It was done.
    After,
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

/// The options with which the store is opened.
#[derive(Clone, Debug)]
pub struct StoreOptions {
    /// The place of the database.
    pub target: StoreTarget,
    /// The time that a write waits for a lock: [`PATIENCE`] except in tests.
    pub patience: Duration,
    /// The point at which to die, in tests of recovery.
    pub crash: Option<CrashPoint>,
    /// The longest time that the first opening may take: the work goes on without it then, and it is opened later.
    pub first_opening: Duration,
    /// True where the store is only read: a file is then opened also where nothing can be written.
    pub only_reads: bool,
}

impl StoreOptions {
    /// Returns the usual options for `target`.
    pub const fn new(target: StoreTarget) -> Self {
        Self {
            target,
            patience: PATIENCE,
            crash: None,
            first_opening: Duration::MAX,
            only_reads: false,
        }
    }
}
