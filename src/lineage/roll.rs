//! The roll: every agent of a run, signed by itself before it becomes one.
//!
//! The database learns of an agent some milliseconds after its start, by the supervisor's hand. One that is killed
//! in between would leave an agent that nobody has written down. So the process that is about to become the agent
//! signs here first (see `exec-agent`): there is no moment at which an agent lives that is not found by the
//! next start. Against the death of a process a plain write is enough; with the machine the agent dies too.
//!
//! ```text
//!   {"pid":4711,"start_time":"98765@1f2e3d4c"}      one line an agent, newest last
//! ```

use std::{
    io::{self, Write},
    path::{Path, PathBuf},
};

use rustix::fs::{Mode, OFlags};

use crate::lineage::{
    ProcessStamp,
    files::{FilesError, PrivateDir},
};

/// The roll's name in its directory.
pub const ROLL: &str = "agents";

/// The most of a roll that is read, in bytes: thousands of agents, of which one lives.
const ROLL_BYTES: usize = 1024 * 1024;

/// Begins the roll of a run; gives its path, for those who sign.
pub fn begin(dir: &PrivateDir) -> Result<PathBuf, FilesError> {
    let path = dir.path().join(ROLL);
    dir.open_or_create(ROLL)?
        .set_len(0)
        .map_err(|source| FilesError::Io {
            action: "empty",
            path: path.clone(),
            source,
        })?;
    Ok(path)
}

/// Everyone who has signed since the roll was begun. A line that is cut short or nonsense is nobody's.
pub fn read(dir: &PrivateDir) -> Result<Vec<ProcessStamp>, FilesError> {
    let text = dir.read(ROLL, ROLL_BYTES)?.unwrap_or_default();
    let lines = text.split(|byte| *byte == b'\n');
    Ok(lines
        .filter_map(|line| serde_json::from_slice(line).ok())
        .collect())
}

/// Adds a line to the roll at `path`, which must be there: who has none was not started by a supervisor.
pub fn sign(path: &Path, process: &ProcessStamp) -> io::Result<()> {
    // The line before may have been cut short by a full disk.
    let mut line = vec![b'\n'];
    serde_json::to_writer(&mut line, process)?;
    line.push(b'\n');
    let flags = OFlags::WRONLY | OFlags::APPEND | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let roll = rustix::fs::open(path, flags | OFlags::NONBLOCK, Mode::empty())?;
    // One write: two that sign at once do not mix.
    std::fs::File::from(roll).write_all(&line)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stamp(pid: u32) -> ProcessStamp {
        ProcessStamp {
            pid,
            start_time: format!("{pid}@boot"),
        }
    }

    #[test]
    fn who_signs_is_read_until_a_new_roll_is_begun() {
        let project = tempfile::tempdir().unwrap();
        let dir = PrivateDir::open_project(project.path()).unwrap();
        assert_eq!(read(&dir).unwrap(), []);
        let path = begin(&dir).unwrap();
        sign(&path, &stamp(7)).unwrap();
        sign(&path, &stamp(8)).unwrap();
        assert_eq!(read(&dir).unwrap(), [stamp(7), stamp(8)]);
        begin(&dir).unwrap();
        assert_eq!(read(&dir).unwrap(), []);
    }

    #[test]
    fn nonsense_and_a_torn_line_hide_nobody() {
        let project = tempfile::tempdir().unwrap();
        let dir = PrivateDir::open_project(project.path()).unwrap();
        let path = begin(&dir).unwrap();
        sign(&path, &stamp(7)).unwrap();
        let torn = [&b"{\"pid\":9\n\xff\xfe\n{\"pid\":5,\"start"[..]].concat();
        std::fs::OpenOptions::new()
            .append(true)
            .open(&path)
            .unwrap()
            .write_all(&torn)
            .unwrap();
        sign(&path, &stamp(8)).unwrap();
        assert_eq!(read(&dir).unwrap(), [stamp(7), stamp(8)]);
    }

    #[test]
    fn no_roll_is_made_and_no_link_followed_by_those_who_sign() {
        let project = tempfile::tempdir().unwrap();
        let dir = PrivateDir::open_project(project.path()).unwrap();
        let path = dir.path().join(ROLL);
        assert!(sign(&path, &stamp(7)).is_err());
        let elsewhere = project.path().join("elsewhere");
        std::fs::write(&elsewhere, "").unwrap();
        std::os::unix::fs::symlink(&elsewhere, &path).unwrap();
        assert!(sign(&path, &stamp(7)).is_err());
        assert_eq!(std::fs::read(&elsewhere).unwrap(), b"");
    }
}
