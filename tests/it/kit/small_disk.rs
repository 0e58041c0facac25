//! A small disk, which a test can fill.

// The kit is shared, and each test uses a part of it.
#![allow(dead_code)]

use std::{
    env,
    fs::{self, File, Permissions},
    io::Write as _,
    os::unix::fs::PermissionsExt as _,
    path::{Path, PathBuf},
};

use tempfile::TempDir;

/// A directory on the small disk. The disk is this test's until the end: one that another test has filled would fail it.
pub struct SmallDisk {
    directory: TempDir,
    ballast: PathBuf,
    _alone: File,
}

impl SmallDisk {
    /// Waits until no other test uses the disk.
    pub fn new() -> Self {
        let disk = env::var("PITSTOP_TEST_SMALL_DISK").expect("the small disk");
        let alone = File::open(&disk).expect("its directory");
        alone.lock().expect("a lock");
        let directory = tempfile::tempdir_in(disk).expect("a directory");
        fs::set_permissions(directory.path(), Permissions::from_mode(0o700)).expect("a mode");
        Self {
            ballast: directory.path().join("ballast"),
            directory,
            _alone: alone,
        }
    }

    pub fn path(&self) -> &Path {
        self.directory.path()
    }

    /// Fills the disk to the last byte.
    pub fn fill(&self) {
        let mut filler = File::create(&self.ballast).expect("a file");
        while filler.write_all(&[0; 1024]).is_ok() {}
    }

    /// Makes room again.
    pub fn empty(&self) {
        fs::remove_file(&self.ballast).expect("removed");
    }
}
