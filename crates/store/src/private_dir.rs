//! Private files below a project: `.pitstop/`, its runs, and how every state file is written.
//!
//! A cloned repository may hold a `.pitstop/` of its own making, so nothing below the project is
//! opened by path: each component is opened from the handle of the one above it, without following
//! links, and must belong to us. Writing a state file takes four steps, and a crash between any
//! two of them leaves the old file or the new one, whole:
//!
//! ```text
//! write aside ─► sync the file ─► rename over the old one ─► sync the directory
//! ```
//!
//! Files are created with mode 0600 and directories with 0700, not changed to it afterwards.

use std::{
    fs::File,
    io::{self, Read, Write},
    path::{Path, PathBuf},
    sync::atomic::{AtomicU64, Ordering},
};

use rustix::{
    fd::{AsFd, OwnedFd},
    fs::{AtFlags, CWD, Dir, FileType, Mode, OFlags, Stat},
    io::Errno,
};

use pitstop_base::{
    private_file::{self, OpenError},
    process, redact,
};

/// The name of our directory within a project.
pub const PROJECT_DIR: &str = ".pitstop";
/// The scratchpad's name in it.
pub const SCRATCHPAD: &str = "scratchpad.md";
/// The mark of a file that is being written aside: `.NAME.aside-PID-N`.
const ASIDE: &str = ".aside-";

/// The depth to which a directory of ours is removed: a run holds iterations, which hold files.
const MAX_DEPTH: usize = 8;

const PRIVATE_FILE: Mode = Mode::RUSR.union(Mode::WUSR);
const PRIVATE_DIR: Mode = Mode::RWXU;

/// An error with a private file.
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
    #[must_use]
    pub fn is_disk_error(&self) -> bool {
        let Self::Io { source, .. } = self else {
            return false;
        };
        matches!(
            source.kind(),
            io::ErrorKind::StorageFull
                | io::ErrorKind::QuotaExceeded
                | io::ErrorKind::ReadOnlyFilesystem
        )
    }

    /// Reports whether the place does not let us make files.
    #[must_use]
    pub fn is_unwritable(&self) -> bool {
        let Self::Io { source, .. } = self else {
            return false;
        };
        matches!(
            source.kind(),
            io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem
        )
    }
}

/// The four steps of a private write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WriteStep {
    /// The bytes go into a new file beside the old one.
    WriteAside,
    /// They reach the disk.
    SyncFile,
    /// The new file takes the old one's name.
    Rename,
    /// The name reaches the disk.
    SyncDirectory,
}

/// A side of a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Edge {
    /// It is about to be done.
    Before,
    /// It was done.
    After,
}

/// A watcher that is called at the edges of a write; an error that it returns stops the write there.
type Watch<'a> = &'a mut dyn FnMut(WriteStep, Edge) -> io::Result<()>;

/// A directory of ours, held open.
#[derive(Debug)]
pub struct PrivateDir {
    handle: OwnedFd,
    path: PathBuf,
}

impl PrivateDir {
    /// Opens `.pitstop` in `project`, creating it with its `.gitignore` where they are missing.
    pub fn open_project(project: &Path) -> Result<Self, FilesError> {
        let dir = Self::open_in(project, PROJECT_DIR, true)?;
        let ignored = dir.read(".gitignore", 64 * 1024)?;
        if ignored.is_none() {
            dir.write_private(".gitignore", b"*\n")?;
        }
        Ok(dir)
    }

    /// Opens `.pitstop` in `project` only if it is there: for readers, which leave no trace.
    pub fn find_project(project: &Path) -> Result<Option<Self>, FilesError> {
        absent_is_none(Self::open_in(project, PROJECT_DIR, false))
    }

    /// Opens (creating it) the directory below the state directory that belongs to the project with this hash: for the files that
    /// must outlive its `.pitstop`, and for all of its files if the project cannot be written.
    pub fn open_beside(state: &Path, project_hash: &str) -> Result<Self, FilesError> {
        Self::open_path(state)?.dir("projects")?.dir(project_hash)
    }

    /// Opens the same directory as [`PrivateDir::open_beside`] only if it is there: for readers, which leave no trace.
    pub fn find_beside(state: &Path, project_hash: &str) -> Result<Option<Self>, FilesError> {
        absent_is_none(Self::open_in(&state.join("projects"), project_hash, false))
    }

    /// Opens (creating it, and what is missing above it) a directory of the user's own, such as
    /// the state directory. Links above its last component are the user's business.
    pub fn open_path(path: &Path) -> Result<Self, FilesError> {
        let (Some(above), Some(name)) = (path.parent(), path.file_name().and_then(|n| n.to_str()))
        else {
            return Err(FilesError::Name(path.display().to_string()));
        };
        let above = if above.as_os_str().is_empty() {
            Path::new(".")
        } else {
            above
        };
        create_above(above)?;
        Self::open_in(above, name, true)
    }

    /// Opens a directory of the user's own only if it is there.
    pub fn find_path(path: &Path) -> Result<Option<Self>, FilesError> {
        let (Some(above), Some(name)) = (path.parent(), path.file_name().and_then(|n| n.to_str()))
        else {
            return Err(FilesError::Name(path.display().to_string()));
        };
        absent_is_none(Self::open_in(above, name, false))
    }

    /// Opens the directory at the path of one that was open before, and makes it again if it is gone: a `.pitstop`, or one
    /// of the user's own. A project that is gone is not made again.
    pub fn open_again(path: &Path) -> Result<Self, FilesError> {
        match path.parent() {
            Some(project) if path.ends_with(PROJECT_DIR) => Self::open_project(project),
            _ => Self::open_path(path),
        }
    }

    fn open_in(above: &Path, name: &str, create: bool) -> Result<Self, FilesError> {
        let handle = rustix::fs::openat(
            CWD,
            above,
            OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC,
            Mode::empty(),
        )
        .map_err(|error| io_error("open", above, error))?;
        Self::open_below(&handle, above, name, create)
    }

    /// Opens the directory `name` in this one, creating it where it is missing.
    pub fn dir(&self, name: &str) -> Result<Self, FilesError> {
        Self::open_below(&self.handle, &self.path, name, true)
    }

    /// Opens the directory `name` in this one, if it is there.
    pub fn find_dir(&self, name: &str) -> Result<Option<Self>, FilesError> {
        absent_is_none(Self::open_below(&self.handle, &self.path, name, false))
    }

    fn open_below(
        above: &OwnedFd,
        above_path: &Path,
        name: &str,
        create: bool,
    ) -> Result<Self, FilesError> {
        let path = above_path.join(checked_name(name)?);
        if create {
            match rustix::fs::mkdirat(above, name, PRIVATE_DIR) {
                Ok(()) | Err(Errno::EXIST) => {}
                Err(error) => return Err(io_error("create", &path, error)),
            }
        }
        let handle = rustix::fs::openat(
            above,
            name,
            OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC,
            Mode::empty(),
        )
        .map_err(|error| match error {
            // With DIRECTORY and NOFOLLOW together Linux reports a link as "not a directory".
            Errno::LOOP | Errno::NOTDIR if is_link(above, name) => FilesError::Link(path.clone()),
            Errno::NOTDIR => FilesError::Kind {
                path: path.clone(),
                expected: "directory",
            },
            error => io_error("open", &path, error),
        })?;
        let stat = rustix::fs::fstat(&handle).map_err(|error| io_error("look at", &path, error))?;
        check_owner(&stat, &path)?;
        if Mode::from_raw_mode(stat.st_mode).intersects(Mode::RWXG | Mode::RWXO) {
            // A directory made by a checkout is open to all; ours hold prompts and transcripts.
            rustix::fs::fchmod(&handle, PRIVATE_DIR)
                .map_err(|error| io_error("close to others", &path, error))?;
        }
        Ok(Self { handle, path })
    }

    /// Returns its path, for messages and for programs that must be given a path.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Reports whether this very directory lies at its path, and no other in its place.
    #[must_use]
    pub fn is_in_place(&self) -> bool {
        is_at(&self.handle, &self.path)
    }

    /// Writes the state file `name`: a crash at any moment leaves the old file or the new, whole.
    pub fn write_private(&self, name: &str, bytes: &[u8]) -> Result<(), FilesError> {
        self.write_watched(name, bytes, &mut |_, _| Ok(()))
    }

    /// Writes the file `name` for as long as a present process needs it: whole for every reader, but not synced. A file that
    /// has these bytes already is left alone.
    pub fn write_for_now(&self, name: &str, bytes: &[u8]) -> Result<(), FilesError> {
        if self.read(name, bytes.len() + 1)?.as_deref() == Some(bytes) {
            return Ok(());
        }
        let (path, aside) = (self.path.join(checked_name(name)?), aside_name(name));
        let written = self.write_aside(&aside, bytes).and_then(|_| {
            rustix::fs::renameat(&self.handle, &aside, &self.handle, name)
                .map_err(|error| io_error("replace", &path, error))
        });
        written.inspect_err(|_| self.remove_aside(&aside))
    }

    /// Writes as [`PrivateDir::write_private`] does, for a text that repeats other texts: its secrets are masked.
    pub fn write_masked(&self, name: &str, text: &str) -> Result<(), FilesError> {
        self.write_private(name, redact::redact(text).as_bytes())
    }

    /// Writes as [`PrivateDir::write_private`] does; `watch` is called at both edges of each step, and an error
    /// from it stops the write as a crash would, without cleaning up.
    fn write_watched(&self, name: &str, bytes: &[u8], watch: Watch<'_>) -> Result<(), FilesError> {
        let path = self.path.join(checked_name(name)?);
        let aside = aside_name(name);
        let stopped = |error| io_error("write", &path, error);

        watch(WriteStep::WriteAside, Edge::Before).map_err(stopped)?;
        let file = self
            .write_aside(&aside, bytes)
            .inspect_err(|_| self.remove_aside(&aside))?;
        watch(WriteStep::WriteAside, Edge::After).map_err(stopped)?;

        watch(WriteStep::SyncFile, Edge::Before).map_err(stopped)?;
        hold_sync();
        file.sync_all()
            .map_err(|error| io_error("sync", &path, error))
            .inspect_err(|_| self.remove_aside(&aside))?;
        watch(WriteStep::SyncFile, Edge::After).map_err(stopped)?;

        watch(WriteStep::Rename, Edge::Before).map_err(stopped)?;
        rustix::fs::renameat(&self.handle, &aside, &self.handle, name)
            .map_err(|error| io_error("replace", &path, error))
            .inspect_err(|_| self.remove_aside(&aside))?;
        watch(WriteStep::Rename, Edge::After).map_err(stopped)?;

        watch(WriteStep::SyncDirectory, Edge::Before).map_err(stopped)?;
        hold_sync();
        rustix::fs::fsync(&self.handle).map_err(|error| io_error("sync", &self.path, error))?;
        watch(WriteStep::SyncDirectory, Edge::After).map_err(stopped)
    }

    fn write_aside(&self, aside: &str, bytes: &[u8]) -> Result<File, FilesError> {
        let path = self.path.join(aside);
        let mut file = File::from(
            rustix::fs::openat(
                &self.handle,
                aside,
                OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC,
                PRIVATE_FILE,
            )
            .map_err(|error| io_error("create", &path, error))?,
        );
        file.write_all(bytes)
            .map_err(|error| io_error("write", &path, error))?;
        Ok(file)
    }

    /// Reads the file `name` of at most `limit` bytes; `None` when there is none.
    pub fn read(&self, name: &str, limit: usize) -> Result<Option<Vec<u8>>, FilesError> {
        let path = self.path.join(checked_name(name)?);
        let Some(file) = absent_is_none(self.open_file(name, &path, OFlags::RDONLY))? else {
            return Ok(None);
        };
        let mut bytes = Vec::new();
        file.take(limit as u64 + 1)
            .read_to_end(&mut bytes)
            .map_err(|error| io_error("read", &path, error))?;
        if bytes.len() > limit {
            return Err(FilesError::TooLarge { path, limit });
        }
        Ok(Some(bytes))
    }

    /// Opens the file `name` for appending, creating it: for recordings, which grow.
    pub fn append(&self, name: &str) -> Result<File, FilesError> {
        let path = self.path.join(checked_name(name)?);
        self.open_file(
            name,
            &path,
            OFlags::WRONLY | OFlags::APPEND | OFlags::CREATE,
        )
    }

    /// Opens the file `name` for reading and writing without cutting it, creating it: for locks.
    pub(super) fn open_or_create(&self, name: &str) -> Result<File, FilesError> {
        let path = self.path.join(checked_name(name)?);
        self.open_file(name, &path, OFlags::RDWR | OFlags::CREATE)
    }

    fn open_file(&self, name: &str, path: &Path, flags: OFlags) -> Result<File, FilesError> {
        let opened = private_file::open_at(&self.handle, name.as_ref(), flags);
        let file = opened.map_err(|error| match error {
            OpenError::Link => FilesError::Link(path.to_owned()),
            OpenError::NotRegular => FilesError::Kind {
                path: path.to_owned(),
                expected: "file",
            },
            OpenError::Io(error) => io_error("open", path, error),
        })?;
        let owner = private_file::other_owner(&file);
        match owner.map_err(|error| io_error("look at", path, error))? {
            None => Ok(file),
            Some(found) => Err(other_owner(path, found)),
        }
    }

    /// Removes the file `name`; it is no error when there is none.
    pub fn remove(&self, name: &str) -> Result<(), FilesError> {
        match rustix::fs::unlinkat(&self.handle, checked_name(name)?, AtFlags::empty()) {
            Ok(()) | Err(Errno::NOENT) => Ok(()),
            Err(error) => Err(io_error("remove", &self.path.join(name), error)),
        }
    }

    /// Removes the directory `name` with all that is in it, without following links; returns the bytes of the files
    /// that were in it. It is no error when there is none.
    pub fn remove_dir(&self, name: &str) -> Result<u64, FilesError> {
        let Some(dir) = self.find_dir(name)? else {
            return Ok(0);
        };
        let bytes = dir.remove_entries(0)?;
        rustix::fs::unlinkat(&self.handle, name, AtFlags::REMOVEDIR)
            .map_err(|error| io_error("remove", &dir.path, error))?;
        Ok(bytes)
    }

    fn remove_entries(&self, depth: usize) -> Result<u64, FilesError> {
        let mut bytes = 0;
        let list = Dir::read_from(&self.handle);
        for entry in list.map_err(|error| io_error("list", &self.path, error))? {
            let entry = entry.map_err(|error| io_error("list", &self.path, error))?;
            let name = entry.file_name();
            if matches!(name.to_bytes(), b"." | b"..") {
                continue;
            }
            let path = self.path.join(name.to_string_lossy().as_ref());
            let stat = rustix::fs::statat(&self.handle, name, AtFlags::SYMLINK_NOFOLLOW)
                .map_err(|error| io_error("look at", &path, error))?;
            let is_dir = FileType::from_raw_mode(stat.st_mode).is_dir();
            // Our directories are two deep, and their names are text: anything else was put there by another program.
            let removed = match name.to_str() {
                Ok(text) if is_dir && depth < MAX_DEPTH => {
                    let below = Self::open_below(&self.handle, &self.path, text, false)?;
                    bytes += below.remove_entries(depth + 1)?;
                    rustix::fs::unlinkat(&self.handle, name, AtFlags::REMOVEDIR)
                }
                _ => {
                    bytes += u64::try_from(stat.st_size).unwrap_or(0);
                    rustix::fs::unlinkat(&self.handle, name, AtFlags::empty())
                }
            };
            removed.map_err(|error| io_error("remove", &path, error))?;
        }
        Ok(bytes)
    }

    /// Returns the bytes of the files in the directory `name` and below it; 0 when there is none.
    #[must_use]
    pub fn size_of(&self, name: &str) -> u64 {
        fn below(dir: &PrivateDir, depth: usize) -> u64 {
            let entries = Dir::read_from(&dir.handle).into_iter().flatten().flatten();
            entries
                .filter(|entry| !matches!(entry.file_name().to_bytes(), b"." | b".."))
                .map(|entry| {
                    let name = entry.file_name();
                    let stat =
                        rustix::fs::statat(&dir.handle, name, AtFlags::SYMLINK_NOFOLLOW).ok();
                    let Some(stat) = stat else { return 0 };
                    if !FileType::from_raw_mode(stat.st_mode).is_dir() {
                        return u64::try_from(stat.st_size).unwrap_or(0);
                    }
                    let inner = name.to_str().ok().filter(|_| depth < MAX_DEPTH);
                    let inner = inner.and_then(|name| dir.find_dir(name).ok().flatten());
                    inner.map_or(0, |inner| below(&inner, depth + 1))
                })
                .sum()
        }
        let dir = self.find_dir(name).ok().flatten();
        dir.map_or(0, |dir| below(&dir, 0))
    }

    /// Returns the names in it that are text, sorted, without `.` and `..`.
    pub fn names(&self) -> Result<Vec<String>, FilesError> {
        let mut names = Vec::new();
        for entry in
            Dir::read_from(&self.handle).map_err(|error| io_error("list", &self.path, error))?
        {
            let entry = entry.map_err(|error| io_error("list", &self.path, error))?;
            match entry.file_name().to_str() {
                Ok("." | "..") | Err(_) => {}
                Ok(name) => names.push(name.to_owned()),
            }
        }
        names.sort();
        Ok(names)
    }

    /// Removes the files that interrupted writes have left aside, but not those that another living process is writing.
    pub fn sweep_asides(&self) -> Result<(), FilesError> {
        for name in self.names()? {
            let writer = name
                .strip_prefix('.')
                .and_then(|name| name.rsplit_once(ASIDE))
                .and_then(|(_, writer)| writer.split_once('-')?.0.parse::<u32>().ok());
            let another = |pid| pid != std::process::id() && process::stamp(pid).is_some();
            if writer.is_some_and(|pid| !another(pid)) {
                self.remove(&name)?;
            }
        }
        Ok(())
    }

    fn remove_aside(&self, aside: &str) {
        if let Err(error) = self.remove(aside) {
            tracing::warn!(%error, "a half-written file is left aside");
        }
    }
}

/// Holds a sync up while the file that `PITSTOP_HOLD_SYNC` names is there, for tests of a slow disk; not in release builds.
fn hold_sync() {
    #[cfg(debug_assertions)]
    if let Some(file) = std::env::var_os("PITSTOP_HOLD_SYNC") {
        while Path::new(&file).exists() {
            std::thread::park_timeout(std::time::Duration::from_millis(2));
        }
    }
}

/// Reports whether this very file or directory lies at the path, and no other in its place.
#[must_use]
pub fn is_at(open: impl AsFd, path: &Path) -> bool {
    let (ours, lies) = (rustix::fs::fstat(open), rustix::fs::lstat(path));
    ours.is_ok_and(|ours| {
        lies.is_ok_and(|lies| (lies.st_dev, lies.st_ino) == (ours.st_dev, ours.st_ino))
    })
}

fn checked_name(name: &str) -> Result<&str, FilesError> {
    if name.is_empty() || name == "." || name == ".." || name.contains(['/', '\0']) {
        return Err(FilesError::Name(name.chars().take(64).collect()));
    }
    Ok(name)
}

fn aside_name(name: &str) -> String {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    let next = NEXT.fetch_add(1, Ordering::Relaxed);
    format!(".{name}{ASIDE}{}-{next}", std::process::id())
}

fn is_link(above: &OwnedFd, name: &str) -> bool {
    rustix::fs::statat(above, name, AtFlags::SYMLINK_NOFOLLOW)
        .is_ok_and(|stat| FileType::from_raw_mode(stat.st_mode).is_symlink())
}

fn check_owner(stat: &Stat, path: &Path) -> Result<(), FilesError> {
    if stat.st_uid == rustix::process::geteuid().as_raw() {
        return Ok(());
    }
    Err(other_owner(path, stat.st_uid))
}

fn other_owner(path: &Path, found: u32) -> FilesError {
    FilesError::Owner {
        path: path.to_owned(),
        expected: rustix::process::geteuid().as_raw(),
        found,
    }
}

fn create_above(path: &Path) -> Result<(), FilesError> {
    use std::os::unix::fs::DirBuilderExt;
    std::fs::DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(path)
        .map_err(|error| io_error("create", path, error))
}

fn absent_is_none<T>(opened: Result<T, FilesError>) -> Result<Option<T>, FilesError> {
    match opened {
        Ok(opened) => Ok(Some(opened)),
        Err(FilesError::Io { source, .. }) if source.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

pub(super) fn io_error(
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

#[cfg(test)]
mod tests {
    use std::{
        fs,
        os::unix::fs::{MetadataExt, PermissionsExt, symlink},
    };

    use super::*;
    use crate::run_dir::{HANDOFF, META, RunDir, list_runs};
    use pitstop_core::lineage::{IterationId, RunId};

    fn mode(path: &Path) -> u32 {
        fs::symlink_metadata(path).unwrap().permissions().mode() & 0o7777
    }

    #[test]
    fn what_is_written_is_private_and_ignored_by_git() {
        let project = tempfile::tempdir().unwrap();
        let dir = PrivateDir::open_project(project.path()).unwrap();
        let run = RunId::new(chrono::DateTime::UNIX_EPOCH, [1, 2, 3]);
        let run_dir = RunDir::open(&dir, &run).unwrap();
        run_dir
            .write(IterationId::FIRST, HANDOFF, "# Handoff")
            .unwrap();

        let pitstop = project.path().join(".pitstop");
        let iteration = pitstop.join("runs").join(run.as_str()).join("iteration-1");
        assert_eq!(fs::read(pitstop.join(".gitignore")).unwrap(), b"*\n");
        assert_eq!(
            fs::read(iteration.join("handoff.md")).unwrap(),
            b"# Handoff"
        );
        assert_eq!(mode(&iteration.join("handoff.md")), 0o600);
        for dir in [&pitstop, &pitstop.join("runs"), &iteration] {
            assert_eq!(mode(dir), 0o700);
        }
        assert_eq!(list_runs(&dir).unwrap(), [run]);
    }

    #[test]
    fn a_write_stopped_at_any_edge_leaves_the_old_file_or_the_new_one_whole() {
        use WriteStep::{Rename, SyncDirectory, SyncFile, WriteAside};
        let old = vec![b'o'; 100_000];
        let new = vec![b'n'; 90_000];
        for (name, exists) in [(META, true), ("scratchpad.md", true), (META, false)] {
            for step in [WriteAside, SyncFile, Rename, SyncDirectory] {
                for edge in [Edge::Before, Edge::After] {
                    let project = tempfile::tempdir().unwrap();
                    let dir = PrivateDir::open_project(project.path()).unwrap();
                    if exists {
                        dir.write_private(name, &old).unwrap();
                    }
                    let mut met = false;
                    let stopped = dir.write_watched(name, &new, &mut |at, side| {
                        if (at, side) == (step, edge) {
                            met = true;
                            return Err(io::Error::other("stopped here"));
                        }
                        Ok(())
                    });
                    assert!(met && stopped.is_err());

                    let renamed = (step == Rename && edge == Edge::After) || step == SyncDirectory;
                    let expected = match (renamed, exists) {
                        (true, _) => Some(&new),
                        (false, true) => Some(&old),
                        (false, false) => None,
                    };
                    let found = dir.read(name, 1 << 20).unwrap();
                    assert_eq!(found.as_ref(), expected, "{name} {edge:?} {step:?}");

                    dir.sweep_asides().unwrap();
                    dir.write_private(name, &new).unwrap();
                    assert_eq!(dir.read(name, 1 << 20).unwrap().as_ref(), Some(&new));
                    assert_eq!(dir.names().unwrap(), [".gitignore", name]);
                }
            }
        }
    }

    #[test]
    fn what_a_living_process_writes_is_not_swept() {
        let project = tempfile::tempdir().unwrap();
        let dir = PrivateDir::open_project(project.path()).unwrap();
        // The first process of the system lives, and no number is as high as the second.
        for name in [
            ".a.aside-1-0",
            ".b.aside-4000000000-7",
            ".aside",
            ".c.aside-x",
        ] {
            dir.write_private(name, b"half").unwrap();
        }
        dir.sweep_asides().unwrap();
        let left = dir.names().unwrap();
        assert_eq!(left, [".a.aside-1-0", ".aside", ".c.aside-x", ".gitignore"]);
    }

    #[test]
    fn a_failed_write_leaves_nothing_aside() {
        let project = tempfile::tempdir().unwrap();
        let dir = PrivateDir::open_project(project.path()).unwrap();
        // A directory under the name: the rename must fail.
        dir.dir("meta.json").unwrap();
        assert!(dir.write_private("meta.json", b"{}").is_err());
        assert_eq!(dir.names().unwrap(), [".gitignore", "meta.json"]);
    }

    #[test]
    fn links_are_never_followed() {
        let project = tempfile::tempdir().unwrap();
        let elsewhere = tempfile::tempdir().unwrap();
        let secret = elsewhere.path().join("secret");
        fs::write(&secret, b"secret").unwrap();

        symlink(elsewhere.path(), project.path().join(".pitstop")).unwrap();
        let error = PrivateDir::open_project(project.path()).unwrap_err();
        assert!(matches!(error, FilesError::Link(_)), "{error:?}");
        fs::remove_file(project.path().join(".pitstop")).unwrap();

        let dir = PrivateDir::open_project(project.path()).unwrap();
        symlink(&secret, project.path().join(".pitstop/scratchpad.md")).unwrap();
        assert!(matches!(
            dir.read("scratchpad.md", 100),
            Err(FilesError::Link(_))
        ));
        assert!(matches!(
            dir.append("scratchpad.md"),
            Err(FilesError::Link(_))
        ));
        dir.write_private("scratchpad.md", b"mine").unwrap();
        assert_eq!(fs::read(&secret).unwrap(), b"secret");

        symlink(elsewhere.path(), project.path().join(".pitstop/runs")).unwrap();
        let run = RunId::new(chrono::DateTime::UNIX_EPOCH, [1, 2, 3]);
        assert!(matches!(RunDir::open(&dir, &run), Err(FilesError::Link(_))));
        assert_eq!(fs::read_dir(elsewhere.path()).unwrap().count(), 1);
    }

    #[test]
    fn a_hard_link_is_replaced_and_not_written_through() {
        let project = tempfile::tempdir().unwrap();
        let dir = PrivateDir::open_project(project.path()).unwrap();
        let other = project.path().join("other");
        fs::write(&other, b"theirs").unwrap();
        fs::hard_link(&other, dir.path().join(META)).unwrap();
        dir.write_private(META, b"ours").unwrap();
        assert_eq!(fs::read(&other).unwrap(), b"theirs");
    }

    #[test]
    fn a_directory_open_to_others_is_closed_to_them() {
        let project = tempfile::tempdir().unwrap();
        let pitstop = project.path().join(".pitstop");
        fs::create_dir(&pitstop).unwrap();
        fs::set_permissions(&pitstop, fs::Permissions::from_mode(0o777)).unwrap();
        PrivateDir::open_project(project.path()).unwrap();
        assert_eq!(mode(&pitstop), 0o700);
    }

    #[test]
    #[ignore = "needs root, to give a directory to another user"]
    fn a_directory_of_another_user_is_refused() {
        let project = tempfile::tempdir().unwrap();
        let pitstop = project.path().join(".pitstop");
        fs::create_dir(&pitstop).unwrap();
        std::os::unix::fs::chown(&pitstop, Some(12_345), None).unwrap();
        assert_eq!(fs::metadata(&pitstop).unwrap().uid(), 12_345);
        let error = PrivateDir::open_project(project.path()).unwrap_err();
        assert!(
            matches!(error, FilesError::Owner { found: 12_345, .. }),
            "{error:?}"
        );
    }

    #[test]
    fn a_directory_is_removed_with_all_that_is_in_it_and_nothing_behind_its_links() {
        let project = tempfile::tempdir().unwrap();
        let elsewhere = tempfile::tempdir().unwrap();
        fs::write(elsewhere.path().join("theirs"), b"theirs").unwrap();
        let dir = PrivateDir::open_project(project.path()).unwrap();
        let runs = dir.dir("runs").unwrap();
        let inner = runs.dir("one").unwrap().dir("iteration-1").unwrap();
        inner.write_private("pane.cast", &[0; 1_000]).unwrap();
        symlink(elsewhere.path(), inner.path().join("link")).unwrap();
        let size = runs.size_of("one");
        assert!((1_000..2_000).contains(&size), "{size}");
        assert_eq!(runs.remove_dir("one").unwrap(), size);
        assert_eq!(runs.names().unwrap(), Vec::<String>::new());
        assert_eq!(fs::read_dir(elsewhere.path()).unwrap().count(), 1);
        assert_eq!(runs.remove_dir("one").unwrap(), 0);

        symlink(elsewhere.path(), runs.path().join("link")).unwrap();
        assert!(matches!(runs.remove_dir("link"), Err(FilesError::Link(_))));
        assert_eq!(fs::read_dir(elsewhere.path()).unwrap().count(), 1);
    }

    #[test]
    fn what_is_no_file_is_no_state_file() {
        let project = tempfile::tempdir().unwrap();
        let dir = PrivateDir::open_project(project.path()).unwrap();
        let made = std::process::Command::new("mkfifo")
            .arg(dir.path().join("fifo"))
            .status();
        assert!(made.unwrap().success());
        assert!(matches!(dir.read("fifo", 10), Err(FilesError::Kind { .. })));
        fs::write(project.path().join(".pitstop/runs"), b"").unwrap();
        assert!(matches!(dir.dir("runs"), Err(FilesError::Kind { .. })));
    }

    #[test]
    fn names_that_lead_elsewhere_are_refused() {
        let project = tempfile::tempdir().unwrap();
        let dir = PrivateDir::open_project(project.path()).unwrap();
        for name in ["", ".", "..", "a/b", "/etc/passwd", "../x", "a\0"] {
            assert!(
                matches!(dir.write_private(name, b""), Err(FilesError::Name(_))),
                "{name:?}"
            );
            assert!(
                matches!(dir.read(name, 1), Err(FilesError::Name(_))),
                "{name:?}"
            );
            assert!(
                matches!(dir.dir(name), Err(FilesError::Name(_))),
                "{name:?}"
            );
        }
    }

    #[test]
    fn a_file_is_read_up_to_its_limit_and_refused_beyond() {
        let project = tempfile::tempdir().unwrap();
        let dir = PrivateDir::open_project(project.path()).unwrap();
        dir.write_private("a", b"12345").unwrap();
        assert_eq!(dir.read("a", 5).unwrap().unwrap(), b"12345");
        assert!(matches!(
            dir.read("a", 4),
            Err(FilesError::TooLarge { limit: 4, .. })
        ));
        assert_eq!(dir.read("none", 4).unwrap(), None);
        assert!(
            PrivateDir::find_project(&project.path().join("x"))
                .unwrap()
                .is_none()
        );
    }
}
