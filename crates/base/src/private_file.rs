//! Opens files in places where others may have put something else: a link, a pipe, a device.
//!
//! A link under the name is refused, a pipe without another end is not waited for, and anything but a regular file is
//! refused once it is open, so that it cannot be exchanged in between. A created file belongs to its user alone. Links
//! above the last part of a path are followed: [`open_at`] takes the directory as a handle for callers that must not follow
//! them.

use std::{
    ffi::OsStr,
    fs::File,
    io::{self, Read},
    os::unix::fs::MetadataExt as _,
    path::Path,
};

use rustix::{
    fd::AsFd,
    fs::{CWD, Mode, OFlags},
    io::Errno,
};

/// The reason why a file was not opened.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// The name is that of a link.
    #[error("expected no link, found one")]
    Link,
    /// The name is that of a directory, a pipe, a device or a socket.
    #[error("expected a regular file")]
    NotRegular,
    /// The system refused.
    #[error(transparent)]
    Io(#[from] io::Error),
}

impl OpenError {
    /// Reports whether no file of this name exists.
    pub fn is_absent(&self) -> bool {
        matches!(self, Self::Io(error) if error.kind() == io::ErrorKind::NotFound)
    }
}

impl From<OpenError> for io::Error {
    fn from(error: OpenError) -> Self {
        match error {
            OpenError::Io(error) => error,
            error => Self::other(error),
        }
    }
}

/// Reads to the end, but at most so many bytes: what one byte above a limit is read to is too large for it.
pub fn read_at_most(limit: u64, from: impl Read) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    from.take(limit).read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// Opens the regular file at `path`. The flags give the access, and whether it is created.
pub fn open(path: &Path, flags: OFlags) -> Result<File, OpenError> {
    open_at(CWD, path.as_os_str(), flags)
}

/// Opens the regular file at `path` to read it.
pub fn open_to_read(path: &Path) -> Result<File, OpenError> {
    open(path, OFlags::RDONLY)
}

/// Opens a file as [`open`] does, for a name in a directory that is open.
pub fn open_at(directory: impl AsFd, name: &OsStr, flags: OFlags) -> Result<File, OpenError> {
    let careful = OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    let mode = Mode::RUSR | Mode::WUSR;
    let opened = rustix::fs::openat(directory, name, flags | careful, mode);
    let file = File::from(opened.map_err(|error| match error {
        Errno::LOOP | Errno::MLINK => OpenError::Link,
        error => OpenError::Io(error.into()),
    })?);
    if file.metadata()?.is_file() {
        Ok(file)
    } else {
        Err(OpenError::NotRegular)
    }
}

/// Returns the user that an open file belongs to, if that is another than the user of this process.
pub fn other_owner(file: &File) -> io::Result<Option<u32>> {
    let owner = file.metadata()?.uid();
    Ok((owner != rustix::process::geteuid().as_raw()).then_some(owner))
}

#[cfg(test)]
mod tests {
    use std::{
        fs,
        io::Write as _,
        os::unix::fs::{PermissionsExt as _, symlink},
    };

    use super::*;

    #[test]
    fn only_a_regular_file_is_opened_and_nothing_is_waited_for() {
        let dir = tempfile::tempdir().unwrap();
        let path = |name: &str| dir.path().join(name);
        fs::write(path("file"), "text").unwrap();
        symlink(path("file"), path("link")).unwrap();
        let everyone = Mode::RUSR | Mode::WUSR;
        let pipe = rustix::fs::FileType::Fifo;
        rustix::fs::mknodat(CWD, path("pipe"), pipe, everyone, 0).unwrap();
        let open = |name: &str| open(&path(name), OFlags::RDONLY);
        assert_eq!(other_owner(&open("file").unwrap()).unwrap(), None);
        assert!(matches!(open("link"), Err(OpenError::Link)));
        assert!(matches!(open("pipe"), Err(OpenError::NotRegular)));
        assert!(matches!(open("."), Err(OpenError::NotRegular)));
        assert!(open("none").unwrap_err().is_absent());
    }

    #[test]
    fn what_is_created_is_for_its_user_alone_and_a_dangling_link_creates_nothing() {
        let dir = tempfile::tempdir().unwrap();
        let (new, target, link) = (
            dir.path().join("new"),
            dir.path().join("target"),
            dir.path().join("link"),
        );
        let flags = OFlags::WRONLY | OFlags::CREATE;
        open(&new, flags).unwrap().write_all(b"x").unwrap();
        assert_eq!(new.metadata().unwrap().permissions().mode() & 0o777, 0o600);
        symlink(&target, &link).unwrap();
        assert!(matches!(open(&link, flags), Err(OpenError::Link)));
        assert!(!target.exists());
    }
}
