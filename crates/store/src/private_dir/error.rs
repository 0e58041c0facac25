//! The errors of reading and writing private files.

use std::{
    io,
    path::{Path, PathBuf},
};

/// The reason why a private file could not be read or written.
#[derive(Debug, thiserror::Error)]
pub enum FilesError {
    /// There is a link where a file or directory of ours was expected.
    #[error("expected no link at {0}, found one")]
    Link(PathBuf),
    /// Another user owns the file or directory that is there.
    #[error("expected {path} to belong to user {expected}, found user {found}")]
    Owner {
        /// The path of it.
        path: PathBuf,
        /// Our user id.
        expected: u32,
        /// Its owner.
        found: u32,
    },
    /// There is something else than the file or directory that was expected.
    #[error("expected {path} to be a {expected}")]
    Kind {
        /// The path of it.
        path: PathBuf,
        /// The kind that was expected.
        expected: &'static str,
    },
    /// A name with a slash, or one that leads elsewhere.
    #[error("expected a plain file name, found {0:?}")]
    Name(String),
    /// A file larger than its reader allows.
    #[error("expected {path} to hold at most {limit} bytes")]
    TooLarge {
        /// The path of the file.
        path: PathBuf,
        /// The most that is read, in bytes.
        limit: usize,
    },
    /// The system refused.
    #[error("cannot {action} {path}")]
    Io {
        /// The action that was tried.
        action: &'static str,
        /// The path of the file or directory.
        path: PathBuf,
        /// The reason of the system.
        source: io::Error,
    },
}

impl FilesError {
    /// Reports whether the disk, not the file, is at fault: full, over quota or read-only. The write is
    /// worth another try later, and the old file is whole.
    pub fn is_disk_error(&self) -> bool {
        use io::ErrorKind::{QuotaExceeded, ReadOnlyFilesystem, StorageFull};
        let kinds = [StorageFull, QuotaExceeded, ReadOnlyFilesystem];
        matches!(self, Self::Io { source, .. } if kinds.contains(&source.kind()))
    }

    /// Reports whether the place does not let us make files.
    pub fn is_unwritable(&self) -> bool {
        use io::ErrorKind::{PermissionDenied, ReadOnlyFilesystem};
        let kinds = [PermissionDenied, ReadOnlyFilesystem];
        matches!(self, Self::Io { source, .. } if kinds.contains(&source.kind()))
    }
}

pub(super) fn other_owner(path: &Path, found: u32) -> FilesError {
    FilesError::Owner {
        path: path.to_owned(),
        expected: rustix::process::geteuid().as_raw(),
        found,
    }
}

pub(crate) fn io_error(
    action: &'static str,
    path: &Path,
    error: impl Into<io::Error>,
) -> FilesError {
    FilesError::Io {
        action,
        path: path.to_owned(),
        source: error.into(),
    }
}
