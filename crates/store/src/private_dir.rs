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

mod error;
mod list;
mod write;

use std::{
    fs::File,
    io,
    path::{Path, PathBuf},
};

use rustix::{
    fd::{AsFd, OwnedFd},
    fs::{AtFlags, CWD, FileType, Mode, OFlags, Stat},
    io::Errno,
};

pub use error::FilesError;
pub(super) use error::io_error;
use error::other_owner;
use pitstop_base::private_file::{self, OpenError, read_at_most};

/// The name of our directory within a project.
pub const PROJECT_DIR: &str = ".pitstop";
/// The scratchpad's name in it.
pub const SCRATCHPAD: &str = "scratchpad.md";
const PRIVATE_DIR: Mode = Mode::RWXU;

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
        Self::open_named(path)?.closed()
    }

    /// Does the same, but leaves the mode of a directory that is there as it is: a setting names it, and it may hold other files, which
    /// others may read.
    pub fn open_named(path: &Path) -> Result<Self, FilesError> {
        let (above, name) = split(path)?;
        create_above(above)?;
        Self::open_as_is(&open_above(above)?, above, name, true)
    }

    /// Opens a directory of the user's own only if it is there.
    pub fn find_path(path: &Path) -> Result<Option<Self>, FilesError> {
        let found = Self::find_named(path)?;
        found.map(Self::closed).transpose()
    }

    /// Does the same, but leaves the directory's mode as it is.
    pub fn find_named(path: &Path) -> Result<Option<Self>, FilesError> {
        let (above, name) = split(path)?;
        let found =
            open_above(above).and_then(|opened| Self::open_as_is(&opened, above, name, false));
        absent_is_none(found)
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
        Self::open_below(&open_above(above)?, above, name, create)
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
        Self::open_as_is(above, above_path, name, create)?.closed()
    }

    fn open_as_is(
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
        Ok(Self { handle, path })
    }

    /// Closes it to others: a directory made by a checkout is open to all, and ours hold prompts and transcripts.
    fn closed(self) -> Result<Self, FilesError> {
        let stat = rustix::fs::fstat(&self.handle);
        let stat = stat.map_err(|error| io_error("look at", &self.path, error))?;
        if Mode::from_raw_mode(stat.st_mode).intersects(Mode::RWXG | Mode::RWXO) {
            match rustix::fs::fchmod(&self.handle, PRIVATE_DIR) {
                // Where nothing can be written it is left as it is.
                Ok(()) | Err(Errno::ROFS) => {}
                Err(error) => return Err(io_error("close to others", &self.path, error)),
            }
        }
        Ok(self)
    }

    /// Returns its path, for messages and for programs that must be given a path.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Reports whether this very directory lies at its path, and no other in its place.
    pub fn is_in_place(&self) -> bool {
        is_at(&self.handle, &self.path)
    }

    /// Reads the file `name` of at most `limit` bytes; `None` when there is none.
    pub fn read(&self, name: &str, limit: usize) -> Result<Option<Vec<u8>>, FilesError> {
        let path = self.path.join(checked_name(name)?);
        let Some(file) = absent_is_none(self.open_to_read(name))? else {
            return Ok(None);
        };
        let bytes =
            read_at_most(limit as u64 + 1, file).map_err(|error| io_error("read", &path, error))?;
        if bytes.len() > limit {
            return Err(FilesError::TooLarge { path, limit });
        }
        Ok(Some(bytes))
    }

    /// Reads the file `name`, of which so many bytes at its start count at most; `None` when there is none.
    pub fn read_start(&self, name: &str, most: usize) -> Result<Option<Vec<u8>>, FilesError> {
        let path = self.path.join(checked_name(name)?);
        let Some(file) = absent_is_none(self.open_to_read(name))? else {
            return Ok(None);
        };
        let read = read_at_most(most as u64, file);
        read.map(Some)
            .map_err(|error| io_error("read", &path, error))
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

    /// Opens the file `name` for reading, if it is there and ours.
    pub(super) fn open_to_read(&self, name: &str) -> Result<File, FilesError> {
        let path = self.path.join(checked_name(name)?);
        self.open_file(name, &path, OFlags::RDONLY)
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
}

/// Reports whether this very file or directory lies at the path, and no other in its place.
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

fn create_above(path: &Path) -> Result<(), FilesError> {
    use std::os::unix::fs::DirBuilderExt;
    std::fs::DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(path)
        .map_err(|error| io_error("create", path, error))
}

/// Returns the directory above a path, and the name in it.
fn split(path: &Path) -> Result<(&Path, &str), FilesError> {
    let name = path.file_name().and_then(|name| name.to_str());
    let (Some(above), Some(name)) = (path.parent(), name) else {
        return Err(FilesError::Name(path.display().to_string()));
    };
    let here = above.as_os_str().is_empty();
    Ok((if here { Path::new(".") } else { above }, name))
}

fn open_above(above: &Path) -> Result<OwnedFd, FilesError> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    rustix::fs::openat(CWD, above, flags, Mode::empty())
        .map_err(|error| io_error("open", above, error))
}

pub(super) fn absent_is_none<T>(opened: Result<T, FilesError>) -> Result<Option<T>, FilesError> {
    match opened {
        Ok(opened) => Ok(Some(opened)),
        Err(FilesError::Io { source, .. }) if source.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

#[cfg(test)]
mod tests;
