//! The steps of an atomic write: after a crash the file is wholly the old one or wholly the new one.

use std::{
    fs::File,
    io::{self, Write},
    sync::atomic::{AtomicU64, Ordering},
};

use rustix::fs::{Mode, OFlags};

use super::{
    PrivateDir, checked_name,
    error::{FilesError, io_error},
};
use pitstop_base::{process, redact};

/// The mark of a file that is being written aside: `.NAME.aside-PID-N`.
const ASIDE: &str = ".aside-";

const PRIVATE_FILE: Mode = Mode::RUSR.union(Mode::WUSR);

/// The four steps of a private write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum WriteStep {
    /// The bytes go into a new file beside the old one.
    WriteAside,
    /// They reach the disk.
    SyncFile,
    /// The new file takes the old one's name.
    Rename,
    /// The name reaches the disk.
    SyncDirectory,
}

/// A watcher that is called after each step of a write; an error that it returns stops the write there.
type Watch<'a> = &'a mut dyn FnMut(WriteStep) -> io::Result<()>;

impl PrivateDir {
    /// Writes the state file `name`: a crash at any moment leaves the old file or the new, whole.
    pub fn write_private(&self, name: &str, bytes: &[u8]) -> Result<(), FilesError> {
        self.write_watched(name, bytes, &mut |_| Ok(()))
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

    /// Writes as [`PrivateDir::write_private`] does; `watch` is called after each step, and an error
    /// from it stops the write as a crash would, without cleaning up.
    pub(super) fn write_watched(
        &self,
        name: &str,
        bytes: &[u8],
        watch: Watch<'_>,
    ) -> Result<(), FilesError> {
        let path = self.path.join(checked_name(name)?);
        let aside = aside_name(name);
        let stopped = |error| io_error("write", &path, error);

        let file = self
            .write_aside(&aside, bytes)
            .inspect_err(|_| self.remove_aside(&aside))?;
        watch(WriteStep::WriteAside).map_err(stopped)?;

        hold_sync();
        file.sync_all()
            .map_err(|error| io_error("sync", &path, error))
            .inspect_err(|_| self.remove_aside(&aside))?;
        watch(WriteStep::SyncFile).map_err(stopped)?;

        rustix::fs::renameat(&self.handle, &aside, &self.handle, name)
            .map_err(|error| io_error("replace", &path, error))
            .inspect_err(|_| self.remove_aside(&aside))?;
        watch(WriteStep::Rename).map_err(stopped)?;

        hold_sync();
        rustix::fs::fsync(&self.handle).map_err(|error| io_error("sync", &self.path, error))?;
        watch(WriteStep::SyncDirectory).map_err(stopped)
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
        while std::path::Path::new(&file).exists() {
            std::thread::park_timeout(std::time::Duration::from_millis(2));
        }
    }
}

fn aside_name(name: &str) -> String {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    let next = NEXT.fetch_add(1, Ordering::Relaxed);
    format!(".{name}{ASIDE}{}-{next}", std::process::id())
}
