//! `pitstop demo`: the built-in scripted agent, in a temporary project with a state directory of its own.
//!
//! ```text
//!   TMPDIR/pitstop-demo-UID-RANDOM/        locked as long as its demo runs
//!       tidepool/                          the project
//!       state/                             $XDG_STATE_HOME
//! ```
//!
//! It is removed at the end. The directory of a demo that was killed is not locked any more, and the next demo removes it.
//! Of the user's files only the configuration is read.

use std::{
    env,
    ffi::OsString,
    fs::{self, DirBuilder, File},
    io,
    os::unix::fs::{DirBuilderExt as _, MetadataExt as _},
    path::{Path, PathBuf},
};

use clap::Args;
use rustix::fs::FlockOperation;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use pitstop_demo::story::edited_files;
use pitstop_store::is_at;

use super::{
    host::{self, Asked, HostArgs, Request},
    out::Outcome,
};
use crate::supervisor::StartError;

/// The start of the name of a demo's directory; the user's number follows.
const PREFIX: &str = "pitstop-demo-";

/// The start of the name of a kept directory: no later demo removes it.
const KEPT_PREFIX: &str = "pitstop-demo-kept-";

/// The name of the project that the scripted agent builds.
const PROJECT: &str = "tidepool";

/// The number of attempts to remove a directory: a process that is about to end may write a last file meanwhile.
const TRIES: u32 = 5;

/// Try all of pitstop with a built-in scripted agent, without an account.
///
/// It works in a temporary project with a database of its own, which are removed at the end.
#[derive(Args, Clone, Debug)]
pub struct DemoArgs {
    /// Keep the temporary project and its database, and print where they are
    #[arg(long)]
    pub keep: bool,
    /// Work in this directory, as a real session would, and keep everything
    #[arg(long, conflicts_with = "keep")]
    pub here: bool,
    /// Arguments for the scripted agent; with any it begins without its task
    #[arg(last = true, value_name = "ARGS")]
    pub args: Vec<String>,
}

/// The place of the demo's project.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(super) enum DemoPlace {
    /// The current directory.
    Here,
    /// A temporary directory.
    Temporary {
        /// True if it is kept.
        keep: bool,
    },
}

/// Runs the command; returns the exit code.
pub fn run(args: &DemoArgs, host: &HostArgs) -> Outcome {
    let mut host = host.clone();
    host.args.extend(args.args.iter().cloned());
    let demo = if args.here {
        DemoPlace::Here
    } else {
        DemoPlace::Temporary { keep: args.keep }
    };
    host::start_session(Request {
        args: host,
        demo: Some(demo),
        asked: Asked::Session,
    })
}

/// The directories of one demo.
#[derive(Debug)]
pub(super) struct DemoDirs {
    root: PathBuf,
    keep: bool,
    /// The open directory, locked until the end.
    lock: File,
}

impl DemoDirs {
    /// Makes the directories, removes those that killed demos have left, and goes to the project's.
    pub(super) fn enter_project(keep: bool) -> Result<Self, StartError> {
        let temporary = env::temp_dir();
        sweep_old(&temporary);
        let made = Self::create_directories(&temporary, keep);
        let dirs = made.map_err(|error| StartError::DemoDirectory(temporary, error))?;
        env::set_current_dir(dirs.project()).map_err(StartError::Directory)?;
        Ok(dirs)
    }

    /// Makes the directories, for this user alone.
    fn create_directories(temporary: &Path, keep: bool) -> io::Result<Self> {
        let temporary = temporary.canonicalize()?;
        loop {
            let random = Uuid::new_v4().simple().to_string();
            let name = if keep {
                format!("{KEPT_PREFIX}{}", &random[..12])
            } else {
                format!("{}{}", name_prefix(), &random[..12])
            };
            let root = temporary.join(name);
            let mut builder = DirBuilder::new();
            builder.mode(0o700);
            builder.create(&root)?;
            // Between these two lines another demo may have taken it for a leftover.
            let Some(lock) = lock_directory(&root)? else {
                continue;
            };
            for name in [PROJECT, "state"] {
                builder.create(root.join(name))?;
            }
            // The scripted agent edits nothing on disk, and a handoff that names a file which is not there has a warning about it.
            builder.recursive(true);
            for (file, title) in edited_files() {
                let file = root.join(PROJECT).join(file);
                if let Some(directory) = file.parent() {
                    builder.create(directory)?;
                }
                fs::write(file, format!("{title}\n"))?;
            }
            return Ok(Self { root, keep, lock });
        }
    }

    /// Returns the project's directory.
    pub(super) fn project(&self) -> PathBuf {
        self.root.join(PROJECT)
    }

    /// Returns the variables that lead every program in the demo to its own.
    pub(super) fn env(&self) -> [(OsString, OsString); 1] {
        [("XDG_STATE_HOME".into(), self.root.join("state").into())]
    }

    /// Removes the directories, or leaves them for the user; returns a text that says which.
    pub(super) fn close(self) -> String {
        let root = self.root.display();
        if self.keep {
            let project = self.project();
            return format!(
                "pitstop: the demo is kept in {root}\nto look at it: cd {} && XDG_STATE_HOME={root}/state pitstop history\n",
                project.display()
            );
        }
        match remove_directory(&self.root) {
            Ok(()) => "pitstop: the demo's project and database are removed (`pitstop demo --keep` keeps them)\n"
                .to_owned(),
            Err(error) => format!(
                "error: cannot remove the demo's directory {root}: {error}\nhint: the next demo tries again\n"
            ),
        }
    }
}

impl Drop for DemoDirs {
    fn drop(&mut self) {
        if !self.keep {
            // Gone already, or the next demo tries again.
            let _ = remove_directory(&self.root);
        }
        // Another demo may take it for a leftover from here on.
        let _ = rustix::fs::flock(&self.lock, FlockOperation::Unlock);
    }
}

/// Returns the start of the names of this user's demo directories.
fn name_prefix() -> String {
    format!("{PREFIX}{}-", rustix::process::geteuid().as_raw())
}

/// Opens and locks a directory, if it is still there and no other process has it.
fn lock_directory(root: &Path) -> io::Result<Option<File>> {
    let open = match File::open(root) {
        Ok(open) => open,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error),
    };
    match rustix::fs::flock(&open, FlockOperation::NonBlockingLockExclusive) {
        Ok(()) => {}
        Err(rustix::io::Errno::WOULDBLOCK) => return Ok(None),
        Err(error) => return Err(error.into()),
    }
    // The process that had it before may have removed it.
    Ok(is_at(&open, root).then_some(open))
}

/// Removes the directories that killed demos of this user have left.
fn sweep_old(temporary: &Path) {
    let (prefix, user) = (name_prefix(), rustix::process::geteuid().as_raw());
    for entry in fs::read_dir(temporary).into_iter().flatten().flatten() {
        let root = entry.path();
        let is_ours = entry.file_name().to_string_lossy().starts_with(&prefix)
            && fs::symlink_metadata(&root).is_ok_and(|found| found.is_dir() && found.uid() == user);
        if is_ours
            && let Ok(Some(_lock)) = lock_directory(&root)
            && let Err(error) = remove_directory(&root)
        {
            tracing::warn!(root = %root.display(), %error, "what an earlier demo left cannot be removed");
        }
    }
}

fn remove_directory(root: &Path) -> io::Result<()> {
    let mut last = fs::remove_dir_all(root);
    for _ in 1..TRIES {
        match &last {
            Err(error) if error.kind() == io::ErrorKind::DirectoryNotEmpty => {
                std::thread::sleep(std::time::Duration::from_millis(50));
                last = fs::remove_dir_all(root);
            }
            _ => break,
        }
    }
    last
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_a_killed_demo_left_is_swept() {
        let temporary = tempfile::tempdir().unwrap();
        let dirs = |keep| DemoDirs::create_directories(temporary.path(), keep).unwrap();
        let (running, kept, dead) = (dirs(false), dirs(true), dirs(false));
        assert!(dead.project().is_dir());
        for (file, _) in edited_files() {
            assert!(dead.project().join(file).is_file(), "{file}");
        }
        // Closing alone is not enough: a process that another test is starting may have inherited the handle.
        rustix::fs::flock(&dead.lock, FlockOperation::Unlock).unwrap();
        let dead = dead.root.clone();
        let file = temporary.path().join(format!("{}file", name_prefix()));
        fs::write(&file, "").unwrap();
        let link = temporary.path().join(format!("{}link", name_prefix()));
        std::os::unix::fs::symlink(&kept.root, &link).unwrap();
        sweep_old(temporary.path());
        assert!(!dead.exists());
        for stays in [&running.root, &kept.root, &file, &link] {
            assert!(stays.exists(), "{}", stays.display());
        }
        let root = running.root.clone();
        running.close();
        assert!(!root.exists() && kept.root.exists());
    }
}
