//! One supervisor per project: an advisory lock that the kernel releases when its holder dies.
//!
//! The lock is on the open file, not on its existence: the file stays for good (removing it would
//! let two starters lock two different files). It names its holder for the message. It lies in the user's
//! state directory: a `git clean` would remove a file in the project.

use std::{
    fs::File,
    io::{Seek, SeekFrom, Write},
    path::{Path, PathBuf},
};

use chrono::{DateTime, Utc};
use rustix::{fs::FlockOperation, io::Errno};
use serde::{Deserialize, Serialize};

use crate::{FilesError, PrivateDir, private_dir::is_at};
use pitstop_base::{private_file::read_at_most, process};
use pitstop_core::lineage::{ProcessStamp, RunId, moment};

/// The lock's name in its directory.
pub const LOCK: &str = "lock";

/// The number of times that the lock of a dead holder is tried again, and the pause before each: two seconds in all.
const DEAD_HOLDER_TRIES: u32 = 200;
const DEAD_HOLDER_PAUSE: std::time::Duration = std::time::Duration::from_millis(10);

/// The largest description of a holder, in bytes: more than any holder writes about itself.
const HOLDER_BYTES: u64 = 4 * 1024;

/// The holder of a lock.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Holder {
    /// The supervisor's process.
    pub process: ProcessStamp,
    /// The time since which it holds the lock.
    #[serde(with = "moment")]
    pub since: DateTime<Utc>,
    /// The run it supervises.
    pub run: RunId,
}

/// The reason why the lock was not obtained.
#[derive(Debug, thiserror::Error)]
pub enum LockError {
    /// Another supervisor has it.
    #[error("{}", held_by(.0.as_ref()))]
    Held(Option<Holder>),
    /// The lock file cannot be used.
    #[error("cannot use the lock file")]
    Files(#[from] FilesError),
    /// The system refused.
    #[error("cannot lock {path}")]
    Io {
        /// The lock file.
        path: PathBuf,
        /// The system's reason.
        source: std::io::Error,
    },
}

fn held_by(holder: Option<&Holder>) -> String {
    match holder {
        Some(holder) => format!(
            "pitstop is already running here (pid {}, run {}, since {})",
            holder.process.pid,
            holder.run,
            moment::text(holder.since)
        ),
        None => "pitstop is already running here, or just starting".to_owned(),
    }
}

/// A held lock; dropping it releases it.
#[derive(Debug)]
pub struct Lock {
    file: File,
    path: PathBuf,
    holder: Holder,
}

impl Lock {
    /// Takes the lock in `dir` for `holder`, or reports who has it. It waits for no living holder.
    pub fn acquire(dir: &PrivateDir, holder: &Holder) -> Result<Self, LockError> {
        let mut file = dir.open_or_create(LOCK)?;
        let path = dir.path().join(LOCK);
        let mut tries = 0;
        loop {
            match rustix::fs::flock(&file, FlockOperation::NonBlockingLockExclusive) {
                Ok(()) if is_at(&file, &path) => break,
                // It was removed between the two steps: the lock of a file that others cannot find keeps no one out.
                Ok(()) => file = dir.open_or_create(LOCK)?,
                Err(Errno::WOULDBLOCK) => {
                    let held = read_holder(&mut file);
                    // A holder that was killed while it forked leaves the lock to the child until that child becomes
                    // its program: a matter of milliseconds.
                    let dead = held
                        .as_ref()
                        .is_some_and(|held| !process::alive(&held.process));
                    tries += 1;
                    if !dead || tries > DEAD_HOLDER_TRIES {
                        return Err(LockError::Held(held));
                    }
                    std::thread::sleep(DEAD_HOLDER_PAUSE);
                }
                Err(error) => {
                    return Err(LockError::Io {
                        path,
                        source: error.into(),
                    });
                }
            }
        }
        let written = serde_json::to_vec(holder)
            .map_err(std::io::Error::other)
            .and_then(|text| write_holder(&mut file, &text));
        if let Err(error) = written {
            // A full disk must not keep the only supervisor out; the lock itself holds.
            tracing::warn!(%error, path = %path.display(), "could not write who holds the lock");
        }
        Ok(Self {
            file,
            path,
            holder: holder.clone(),
        })
    }

    /// Returns the path of the lock's file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Makes the lock's file again if it is gone; returns true if it was.
    pub fn keep(&mut self) -> Result<bool, LockError> {
        if is_at(&self.file, &self.path) {
            return Ok(false);
        }
        let dir = self.path.parent().unwrap_or(Path::new("/"));
        *self = Self::acquire(&PrivateDir::open_again(dir)?, &self.holder)?;
        Ok(true)
    }
}

impl Drop for Lock {
    fn drop(&mut self) {
        // Closing would do, but a child forked at this moment may hold a copy of the handle.
        if let Err(error) = rustix::fs::flock(&self.file, FlockOperation::Unlock) {
            tracing::warn!(%error, "could not let go of the project's lock");
        }
    }
}

/// Returns the process that holds the lock of the project with this hash now, if any does. It only looks: trying the lock for a
/// moment could turn away a supervisor that starts in that moment.
pub fn holder(state: &Path, project_hash: &str) -> Result<Option<Holder>, FilesError> {
    let Some(dir) = PrivateDir::find_beside(state, project_hash)? else {
        return Ok(None);
    };
    let text = dir.read(LOCK, HOLDER_BYTES as usize)?;
    let holder = text.as_deref().and_then(parse_holder);
    Ok(holder.filter(|holder| process::alive(&holder.process)))
}

/// Reads the holder from the file; `None` while the file is being written, or if it is nonsense.
fn read_holder(file: &mut File) -> Option<Holder> {
    file.seek(SeekFrom::Start(0)).ok()?;
    parse_holder(&read_at_most(HOLDER_BYTES, file).ok()?)
}

fn parse_holder(text: &[u8]) -> Option<Holder> {
    serde_json::from_slice(text).ok()
}

fn write_holder(file: &mut File, text: &[u8]) -> std::io::Result<()> {
    file.seek(SeekFrom::Start(0))?;
    file.write_all(text)?;
    // The file is cut only now: giving its block back before, and asking for another, would take the disk's time.
    file.set_len(text.len() as u64)
}

#[cfg(test)]
mod tests {
    use std::{
        sync::{
            Arc, Barrier,
            atomic::{AtomicUsize, Ordering},
        },
        thread,
    };

    use super::*;

    fn me() -> Holder {
        Holder {
            process: process::stamp(std::process::id()).unwrap(),
            since: DateTime::UNIX_EPOCH,
            run: RunId::new(DateTime::UNIX_EPOCH, [1, 2, 3]),
        }
    }

    #[test]
    fn a_held_lock_names_its_holder_and_is_free_once_dropped() {
        let state = tempfile::tempdir().unwrap();
        let dir = PrivateDir::open_beside(state.path(), "0123").unwrap();
        let holder = || holder(state.path(), "0123").unwrap();
        assert_eq!(holder(), None);
        let lock = Lock::acquire(&dir, &me()).unwrap();
        let error = Lock::acquire(&dir, &me()).unwrap_err();
        assert!(
            error
                .to_string()
                .contains(&format!("already running here (pid {}", std::process::id())),
            "{error}"
        );
        assert!(matches!(error, LockError::Held(Some(found)) if found == me()));
        assert_eq!(holder(), Some(me()));
        drop(lock);
        Lock::acquire(&dir, &me()).unwrap();
    }

    #[test]
    fn a_lock_file_that_is_removed_while_it_is_taken_is_made_again() {
        let state = tempfile::tempdir().unwrap();
        let dir = PrivateDir::open_beside(state.path(), "0123").unwrap();
        let path = dir.path().join(LOCK);
        let first = dir.open_or_create(LOCK).unwrap();
        assert!(is_at(&first, &path));
        std::fs::remove_file(&path).unwrap();
        assert!(!is_at(&first, &path), "nothing is there");
        let mut lock = Lock::acquire(&dir, &me()).unwrap();
        assert!(!is_at(&first, &path), "another file is there");
        assert!(!lock.keep().unwrap());
        std::fs::remove_dir_all(state.path().join("projects")).unwrap();
        assert!(lock.keep().unwrap(), "it is made again");
        assert_eq!(holder(state.path(), "0123").unwrap(), Some(me()));
        let dir = PrivateDir::open_beside(state.path(), "0123").unwrap();
        assert!(matches!(
            Lock::acquire(&dir, &me()),
            Err(LockError::Held(Some(_)))
        ));
    }

    #[test]
    fn a_lock_file_full_of_nonsense_still_locks() {
        let project = tempfile::tempdir().unwrap();
        let dir = PrivateDir::open_project(project.path()).unwrap();
        dir.write_private(LOCK, &vec![0xff; 100_000]).unwrap();
        let lock = Lock::acquire(&dir, &me()).unwrap();
        assert!(matches!(
            Lock::acquire(&dir, &me()),
            Err(LockError::Held(Some(_)))
        ));
        drop(lock);
    }

    #[test]
    fn of_eight_racing_threads_exactly_one_holds_the_lock_each_time() {
        const RACERS: usize = 8;
        let project = tempfile::tempdir().unwrap();
        let dir = Arc::new(PrivateDir::open_project(project.path()).unwrap());
        let barrier = Arc::new(Barrier::new(RACERS));
        let wins = Arc::new(AtomicUsize::new(0));
        let racers: Vec<_> = (0..RACERS)
            .map(|_| {
                let (dir, barrier, wins) = (dir.clone(), barrier.clone(), wins.clone());
                thread::spawn(move || {
                    for round in 1..=50 {
                        barrier.wait();
                        let lock = match Lock::acquire(&dir, &me()) {
                            Ok(lock) => {
                                wins.fetch_add(1, Ordering::SeqCst);
                                Some(lock)
                            }
                            Err(LockError::Held(_)) => None,
                            Err(error) => panic!("{error}"),
                        };
                        barrier.wait();
                        assert_eq!(wins.load(Ordering::SeqCst), round);
                        drop(lock);
                    }
                })
            })
            .collect();
        for racer in racers {
            racer.join().unwrap();
        }
    }
}
