//! The errors of the store, and the results of a write.

use std::path::PathBuf;

/// An error of the store; a failure that may pass is no error but [`Written::Queued`].
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
        /// The place of the database.
        place: String,
    },
    /// The URL names no database of a kind we know. It is not repeated: it may hold a password.
    #[error("expected [store] url to be postgres://… or sqlite:///absolute/path")]
    Target,
    /// The URL names a server, and this program cannot speak to one.
    #[cfg(not(feature = "postgres"))]
    #[error(
        "[store] url names a Postgres server, and this pitstop was built without Postgres: expected \
         sqlite:///absolute/path or \"\" for the usual file; or install a pitstop that was built with \
         the cargo feature `postgres`, which is on by default"
    )]
    NoPostgres,
    /// The database refused a statement for good.
    #[error("the database refused {what}: {reason}")]
    Refused {
        /// The action that was refused.
        what: &'static str,
        /// The reason of the database.
        reason: String,
    },
    /// The database cannot be read now.
    #[error("cannot read {what} from the database: {reason}")]
    Unreadable {
        /// The records that were to be read.
        what: &'static str,
        /// The reason why they cannot be read.
        reason: String,
    },
}

/// A warning about an opened store that the human must be shown.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum StoreWarning {
    /// The database was corrupt: it was kept under another name and a new one begun.
    #[error("the database was corrupt: it is kept as {} and a new one was begun", .kept.display())]
    SetAside {
        /// The path of the corrupt file.
        kept: PathBuf,
    },
    /// The database cannot be used: what is to be written waits, and is written when it can be.
    #[error("the database cannot be used ({reason}): what is to be written waits until it can")]
    InMemory {
        /// The reason why it cannot be used.
        reason: String,
    },
}

/// The result of a write.
#[derive(Clone, Debug, PartialEq, Eq)]
#[must_use = "a queued write is not safe yet"]
pub enum Written {
    /// It is on disk.
    Durable,
    /// It waits in memory.
    Queued(StoreWarning),
}
