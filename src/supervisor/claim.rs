//! The claim of a project: its lock, its directories, and the check that no other supervisor answers.

use std::path::Path;

use uuid::Uuid;

use crate::runtime::wall;
use pitstop_base::{clean::chain, process};
use pitstop_core::{
    config::load::paths::{Paths, project_hash},
    lineage::RunId,
};
use pitstop_handoff::scratchpad;
use pitstop_server::client::is_answered;
use pitstop_store::{
    PrivateDir, SCRATCHPAD,
    lock::{Holder, Lock, LockError},
};

use super::StartError;

/// A project that no other supervisor has.
pub(super) struct Claim {
    pub lock: Lock,
    /// The project's own directory in the user's state directory.
    pub state: PrivateDir,
    /// The project's name in sockets and in the state directory.
    pub hash: String,
    /// Our process, the run that begins, and the time at which it begins.
    pub holder: Holder,
}

/// Takes the project's lock for a new run.
pub(super) fn take_lock(
    project: &Path,
    paths: &Paths,
    warnings: &mut Vec<String>,
) -> Result<Claim, StartError> {
    let since = wall();
    let random = *Uuid::new_v4().as_bytes();
    let holder = Holder {
        process: process::stamp(std::process::id()).ok_or(StartError::NoProcess)?,
        since,
        run: RunId::new(since, [random[0], random[1], random[2]]),
    };
    let hash = project_hash(project)?;
    let (lock, state) = lock_in(paths, &hash, &holder, warnings)?;
    Ok(Claim {
        lock,
        state,
        hash,
        holder,
    })
}

/// Takes the lock in the user's state directory; if that takes no files, in the one that is used in its place.
fn lock_in(
    paths: &Paths,
    hash: &str,
    holder: &Holder,
    warnings: &mut Vec<String>,
) -> Result<(Lock, PrivateDir), StartError> {
    let take = |files: PrivateDir| Ok((Lock::acquire(&files, holder)?, files));
    let taken = PrivateDir::open_beside(paths.state_dir(), hash)
        .map_err(LockError::from)
        .and_then(take);
    let taken = match taken {
        Err(LockError::Files(error)) if error.is_unwritable() || error.is_disk_error() => {
            warnings.push(chain(&error));
            PrivateDir::open_path(&paths.spare_dir().join(hash))
                .map_err(LockError::from)
                .and_then(take)
        }
        taken => taken,
    };
    Ok(taken?)
}

/// Checks that no supervisor answers on the project's socket: removing the lock does not end its holder, whose agent is no leftover.
pub(super) fn ask_socket(paths: &Paths, hash: &str) -> Result<(), StartError> {
    let mut sockets = paths.control_sockets(hash);
    match sockets.find(|one| is_answered(one)) {
        Some(socket) => Err(StartError::Answered(socket)),
        None => Ok(()),
    }
}

/// Opens the project's `.pitstop`; if the project cannot be written, a directory of the user's own in its place.
pub(super) fn project_files(
    project: &Path,
    paths: &Paths,
    hash: &str,
    warnings: &mut Vec<String>,
) -> Result<PrivateDir, StartError> {
    let error = match PrivateDir::open_project(project) {
        Ok(files) => return Ok(files),
        Err(error) if error.is_unwritable() => error,
        Err(error) => return Err(StartError::ProjectFiles(error)),
    };
    let files = PrivateDir::open_beside(paths.state_dir(), hash)?;
    warnings.push(format!(
        "notes and runs are kept in {}: {}",
        files.path().display(),
        chain(&error)
    ));
    Ok(files)
}

/// Removes the files that a killed write has left. Half a file beside the whole one hinders nothing, so neither does a failure.
pub(super) fn sweep_asides(directories: [&PrivateDir; 2], warnings: &mut Vec<String>) {
    let swept = directories.into_iter().map(PrivateDir::sweep_asides);
    warnings.extend(swept.filter_map(|swept| Some(chain(&swept.err()?))));
}

/// Reads the scratchpad, and makes it if there is none. One that is a link, or not ours, is refused before anything is started.
pub(super) fn read_scratchpad(files: &PrivateDir) -> Result<String, StartError> {
    if let Some(bytes) = files.read(SCRATCHPAD, scratchpad::MAX_BYTES)? {
        return Ok(String::from_utf8_lossy(&bytes).into_owned());
    }
    files.write_private(SCRATCHPAD, scratchpad::TEMPLATE.as_bytes())?;
    Ok(scratchpad::TEMPLATE.to_owned())
}
