//! The versions of a project's scratchpad on disk: one line of JSON each, in the state directory, where neither a full disk of the
//! project nor the removal of its `.pitstop` reaches them.

use std::io::Write;

use pitstop_handoff::scratchpad::versions::{MAX_VERSION_BYTES, Version, Versions};

use super::private_dir::{FilesError, PrivateDir, io_error};

/// The file's name in the project's directory below the state directory.
const FILE: &str = "scratchpad.jsonl";

/// The size in bytes beyond which the file is rewritten, with the versions that are still kept.
const MAX_FILE: usize = MAX_VERSION_BYTES * 4;

/// The file in which the versions of one project are kept.
#[derive(Debug)]
pub struct VersionFile {
    directory: PrivateDir,
    bytes: usize,
}

impl VersionFile {
    /// Opens the file in a project's directory below the state directory, and reads it; lines that are no versions are
    /// ignored.
    pub fn open(directory: PrivateDir) -> Result<(Self, Versions), FilesError> {
        let mut versions = Versions::default();
        let bytes = directory.read(FILE, MAX_FILE * 2)?.unwrap_or_default();
        let lines = bytes.split(|byte| *byte == b'\n');
        versions.extend(lines.filter_map(|line| serde_json::from_slice::<Version>(line).ok()));
        let file = Self {
            directory,
            bytes: bytes.len(),
        };
        Ok((file, versions))
    }

    /// Adds a version; `all` are the versions that are kept, this one among them.
    pub fn add(&mut self, version: &Version, all: &Versions) -> Result<(), FilesError> {
        let line = version_line(version);
        if self.bytes + line.len() > MAX_FILE {
            let text: Vec<u8> = all.iter().flat_map(self::version_line).collect();
            self.directory.write_private(FILE, &text)?;
            self.bytes = text.len();
            return Ok(());
        }
        let mut file = self.directory.append(FILE)?;
        file.write_all(&line)
            .map_err(|error| io_error("write", &self.directory.path().join(FILE), error))?;
        self.bytes += line.len();
        Ok(())
    }
}

/// Returns a version as it is written. It begins with a line end: a line that was cut off, on a full disk, must not swallow it.
fn version_line(version: &Version) -> Vec<u8> {
    let mut line = vec![b'\n'];
    // A map of texts and numbers always can be written.
    let written = serde_json::to_writer(&mut line, version);
    debug_assert!(written.is_ok(), "{written:?}");
    line.push(b'\n');
    line
}

#[cfg(test)]
mod tests {
    use chrono::DateTime;

    use super::*;
    use pitstop_handoff::scratchpad::versions::Author;

    fn open(state: &std::path::Path) -> (VersionFile, Versions) {
        let directory = PrivateDir::open_beside(state, "0123").expect("a directory");
        VersionFile::open(directory).expect("a file")
    }

    fn version(number: u64, text: &str) -> Version {
        Version {
            number,
            at: DateTime::UNIX_EPOCH,
            by: Author::Agent,
            text: text.to_owned(),
            human: vec!["mine".to_owned()],
            unsaved_over: (number == 2).then(|| "before".to_owned()),
        }
    }

    #[test]
    fn what_was_added_is_read_back_also_behind_a_torn_line() {
        let state = tempfile::tempdir().expect("a directory");
        let (mut file, mut versions) = open(state.path());
        assert_eq!(versions.last(), None);
        for number in 1..=2 {
            versions.add(version(number, "a\nb\u{e9}"));
            file.add(&version(number, "a\nb\u{e9}"), &versions)
                .expect("written");
        }
        let path = state.path().join("projects/0123").join(FILE);
        let mut text = std::fs::read(&path).expect("a file");
        text.truncate(text.len() - 9);
        std::fs::write(&path, &text).expect("written");
        let (mut file, _) = open(state.path());
        file.add(&version(3, "c"), &versions).expect("written");
        let (_, read) = open(state.path());
        let read: Vec<&Version> = read.iter().collect();
        assert_eq!(read, [&version(1, "a\nb\u{e9}"), &version(3, "c")]);
    }

    #[test]
    fn a_file_that_has_grown_is_rewritten() {
        let state = tempfile::tempdir().expect("a directory");
        let (mut file, mut versions) = open(state.path());
        let text = "x".repeat(MAX_VERSION_BYTES / 2);
        for number in 1..=20 {
            versions.add(version(number, &text));
            let newest = versions.last().expect("one").clone();
            file.add(&newest, &versions).expect("written");
            assert!(file.bytes <= MAX_FILE, "{}", file.bytes);
        }
        let (_, read) = open(state.path());
        assert_eq!(read, versions);
    }
}
