//! The registry: every agent of a run, entered by its own process before it becomes the agent.
//!
//! The supervisor learns of an agent's process only once it is started. One that is killed before it has written that
//! down would leave an agent that no record names. So the process that is about to become the agent registers first
//! (see `exec-agent`): at no moment does an agent live that the next start would not find. Against the death of a
//! process a plain write is enough; with the machine the agent dies too.
//!
//! ```text
//!   {"pid":4711,"start_time":"98765@1f2e3d4c"}      one line an agent, newest last
//! ```

use std::{
    io::{self, Write},
    path::{Path, PathBuf},
};

use rustix::fs::OFlags;

use crate::{FilesError, PrivateDir, private_dir::io_error};
use pitstop_base::private_file;
use pitstop_core::lineage::ProcessStamp;

/// The registry's name in its directory.
pub const REGISTRY: &str = "agents";

/// The largest registry that is read, in bytes: thousands of agents, of which one lives.
const REGISTRY_BYTES: usize = 1024 * 1024;

/// Begins the registry of a run; returns its path, for the processes that register.
pub fn begin(dir: &PrivateDir) -> Result<PathBuf, FilesError> {
    let path = dir.path().join(REGISTRY);
    dir.open_or_create(REGISTRY)?
        .set_len(0)
        .map_err(|error| io_error("empty", &path, error))?;
    Ok(path)
}

/// Returns every process that has registered since the registry was begun. A line that is cut short or nonsense is ignored.
pub fn read(dir: &PrivateDir) -> Result<Vec<ProcessStamp>, FilesError> {
    let text = dir.read(REGISTRY, REGISTRY_BYTES)?.unwrap_or_default();
    let lines = text.split(|byte| *byte == b'\n');
    Ok(lines
        .filter_map(|line| serde_json::from_slice(line).ok())
        .collect())
}

/// Adds a line to the registry at `path`, which must be there: without one the process was not started by a supervisor.
pub fn register(path: &Path, process: &ProcessStamp) -> io::Result<()> {
    // The line before may have been cut short by a full disk.
    let mut line = vec![b'\n'];
    serde_json::to_writer(&mut line, process)?;
    line.push(b'\n');
    let mut registry = private_file::open(path, OFlags::WRONLY | OFlags::APPEND)?;
    // One write: two that register at once do not mix.
    registry.write_all(&line)
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
    fn what_registers_is_read_until_a_new_registry_is_begun() {
        let project = tempfile::tempdir().unwrap();
        let dir = PrivateDir::open_project(project.path()).unwrap();
        assert_eq!(read(&dir).unwrap(), []);
        let path = begin(&dir).unwrap();
        register(&path, &stamp(7)).unwrap();
        register(&path, &stamp(8)).unwrap();
        assert_eq!(read(&dir).unwrap(), [stamp(7), stamp(8)]);
        begin(&dir).unwrap();
        assert_eq!(read(&dir).unwrap(), []);
    }

    #[test]
    fn nonsense_and_a_torn_line_hide_no_other() {
        let project = tempfile::tempdir().unwrap();
        let dir = PrivateDir::open_project(project.path()).unwrap();
        let path = begin(&dir).unwrap();
        register(&path, &stamp(7)).unwrap();
        let torn = [&b"{\"pid\":9\n\xff\xfe\n{\"pid\":5,\"start"[..]].concat();
        std::fs::OpenOptions::new()
            .append(true)
            .open(&path)
            .unwrap()
            .write_all(&torn)
            .unwrap();
        register(&path, &stamp(8)).unwrap();
        assert_eq!(read(&dir).unwrap(), [stamp(7), stamp(8)]);
    }

    #[test]
    fn registering_makes_no_registry_and_follows_no_link() {
        let project = tempfile::tempdir().unwrap();
        let dir = PrivateDir::open_project(project.path()).unwrap();
        let path = dir.path().join(REGISTRY);
        assert!(register(&path, &stamp(7)).is_err());
        let elsewhere = project.path().join("elsewhere");
        std::fs::write(&elsewhere, "").unwrap();
        std::os::unix::fs::symlink(&elsewhere, &path).unwrap();
        assert!(register(&path, &stamp(7)).is_err());
        assert_eq!(std::fs::read(&elsewhere).unwrap(), b"");
    }
}
