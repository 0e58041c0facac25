//! The pane's output over time, as an asciicast v2 file.
//!
//! One JSON line a chunk: `[seconds, "o", text]`, after a header line; `"r"` for a change of size
//! and `"m"` for a mark. The format is text, so a character cut by the end of a chunk waits for its
//! rest, and bytes that are no UTF-8 become U+FFFD. Input is never recorded here.
//!
//! A recording is a convenience: when it fails (disk full), that is told once, and the pane goes on.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::fs::{FileType, Mode, OFlags};
use serde::Serialize;
use serde_json::json;

use super::{PaneSize, begun_character};

/// Written to disk in blocks of this many bytes, so that a flood of small chunks costs few calls.
const BLOCK: usize = 64 * 1024;

/// Why there is no recording, or no more of it.
#[derive(Debug, thiserror::Error)]
pub enum RecordingError {
    /// The file could not be made.
    #[error("could not create the recording {}", .path.display())]
    Create {
        /// The file.
        path: PathBuf,
        /// The cause; a symbolic link in its place is one.
        source: io::Error,
    },
    /// What is at its place is not a file.
    #[error("expected a regular file for the recording at {}", .0.display())]
    NoFile(PathBuf),
    /// It could not be written.
    #[error("could not write the recording {}", .path.display())]
    Write {
        /// The file.
        path: PathBuf,
        /// The cause.
        source: io::Error,
    },
}

/// A recording being made. Dropping it writes what is left, as far as it goes.
#[derive(Debug)]
pub struct Recording {
    path: PathBuf,
    file: Option<BufWriter<File>>,
    written: u64,
    limit: u64,
    /// The first bytes of a character cut by the end of a chunk.
    carried: Vec<u8>,
}

impl Recording {
    /// Starts a recording in a file only the user can read, never through a symbolic link; what was
    /// in the file is lost. `started` is in seconds since 1970; at `limit` bytes it ends.
    pub fn create(
        path: &Path,
        size: PaneSize,
        started: i64,
        limit: u64,
    ) -> Result<Self, RecordingError> {
        let file = open_private(path)?;
        let mut recording = Self {
            path: path.to_owned(),
            file: Some(BufWriter::with_capacity(BLOCK, file)),
            written: 0,
            limit,
            carried: Vec::new(),
        };
        let header = json!({
            "version": 2,
            "width": size.columns(),
            "height": size.rows(),
            "timestamp": started,
            "env": {"TERM": "xterm-256color"},
        });
        recording.line(&header)?;
        Ok(recording)
    }

    /// Records output of the pane, `at` this time since the start. An error is told once; after it,
    /// as after the limit, nothing is recorded.
    pub fn output(&mut self, at: Duration, bytes: &[u8]) -> Result<(), RecordingError> {
        if self.file.is_none() {
            return Ok(());
        }
        let joined;
        let bytes = if self.carried.is_empty() {
            bytes
        } else {
            self.carried.extend_from_slice(bytes);
            joined = std::mem::take(&mut self.carried);
            &joined
        };
        let (whole, begun) = bytes.split_at(bytes.len() - begun_character(bytes));
        self.carried.extend_from_slice(begun);
        self.event(at, "o", &String::from_utf8_lossy(whole))
    }

    /// Records a change of the pane's size.
    pub fn resize(&mut self, at: Duration, size: PaneSize) -> Result<(), RecordingError> {
        self.event(at, "r", &format!("{}x{}", size.columns(), size.rows()))
    }

    /// Records a mark that players can jump to.
    pub fn mark(&mut self, at: Duration, label: &str) -> Result<(), RecordingError> {
        self.event(at, "m", label)
    }

    /// Where it is written.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Whether anything more is recorded.
    #[must_use]
    pub fn is_open(&self) -> bool {
        self.file.is_some()
    }

    /// Hands everything recorded so far to the system.
    pub fn flush(&mut self) -> Result<(), RecordingError> {
        let Some(file) = &mut self.file else {
            return Ok(());
        };
        let flushed = file.flush();
        self.checked(flushed)
    }

    fn event(&mut self, at: Duration, kind: &str, text: &str) -> Result<(), RecordingError> {
        if text.is_empty() {
            return Ok(());
        }
        // Microseconds are what players read; more digits only cost room.
        let seconds = at.as_micros() as f64 / 1e6;
        self.line(&(seconds, kind, text))
    }

    fn line(&mut self, value: &impl Serialize) -> Result<(), RecordingError> {
        let Some(file) = &mut self.file else {
            return Ok(());
        };
        let line = serde_json::to_vec(value).map_err(io::Error::from);
        let mut line = match line {
            Ok(line) => line,
            Err(error) => return self.checked(Err(error)),
        };
        line.push(b'\n');
        if self.written + line.len() as u64 > self.limit {
            let ended = file.flush();
            self.checked(ended)?;
            self.file = None;
            tracing::info!(path = %self.path.display(), "the recording reached its limit");
            return Ok(());
        }
        self.written += line.len() as u64;
        let written = file.write_all(&line);
        self.checked(written)
    }

    /// Ends the recording at its first error.
    fn checked(&mut self, result: io::Result<()>) -> Result<(), RecordingError> {
        result.map_err(|source| {
            if let Some(file) = self.file.take() {
                // Its buffer could not be written; dropping it would try again.
                let _ = file.into_parts();
            }
            RecordingError::Write {
                path: self.path.clone(),
                source,
            }
        })
    }
}

fn open_private(path: &Path) -> Result<File, RecordingError> {
    let failed = |error: rustix::io::Errno| RecordingError::Create {
        path: path.to_owned(),
        source: error.into(),
    };
    let mode = Mode::RUSR | Mode::WUSR;
    // Without NONBLOCK a named pipe in its place would hold us until somebody reads it.
    let flags =
        OFlags::WRONLY | OFlags::CREATE | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let file = rustix::fs::open(path, flags, mode).map_err(failed)?;
    let status = rustix::fs::fstat(&file).map_err(failed)?;
    if FileType::from_raw_mode(status.st_mode) != FileType::RegularFile {
        return Err(RecordingError::NoFile(path.to_owned()));
    }
    // It may have been there before, open to others, and be longer than the new one.
    rustix::fs::fchmod(&file, mode).map_err(failed)?;
    rustix::fs::ftruncate(&file, 0).map_err(failed)?;
    Ok(file.into())
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{PermissionsExt, symlink};

    use super::*;

    const SIZE: fn() -> PaneSize = || PaneSize::new(80, 24);

    fn lines(path: &Path) -> Vec<serde_json::Value> {
        let text = std::fs::read_to_string(path).unwrap();
        text.lines()
            .map(|line| serde_json::from_str(line).unwrap())
            .collect()
    }

    #[test]
    fn a_recording_is_an_asciicast() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("pane.cast");
        let mut recording = Recording::create(&path, SIZE(), 1_700_000_000, 1 << 20).unwrap();
        recording
            .output(Duration::from_millis(1500), b"a\x1b[31m\"\\\r\n")
            .unwrap();
        recording
            .resize(Duration::from_secs(2), PaneSize::new(100, 30))
            .unwrap();
        recording.mark(Duration::from_secs(3), "here").unwrap();
        recording.flush().unwrap();
        assert_eq!(
            lines(&path),
            [
                json!({"version": 2, "width": 80, "height": 24, "timestamp": 1_700_000_000,
                       "env": {"TERM": "xterm-256color"}}),
                json!([1.5, "o", "a\u{1b}[31m\"\\\r\n"]),
                json!([2.0, "r", "100x30"]),
                json!([3.0, "m", "here"]),
            ]
        );
        assert_eq!(
            std::fs::metadata(&path).unwrap().permissions().mode() & 0o777,
            0o600
        );
    }

    #[test]
    fn characters_are_whole_wherever_the_bytes_are_cut() {
        let bytes = "é日🎉x".as_bytes();
        for cut in 0..=bytes.len() {
            let directory = tempfile::tempdir().unwrap();
            let path = directory.path().join("pane.cast");
            let mut recording = Recording::create(&path, SIZE(), 0, 1 << 20).unwrap();
            recording.output(Duration::ZERO, &bytes[..cut]).unwrap();
            recording.output(Duration::ZERO, &bytes[cut..]).unwrap();
            drop(recording);
            let text: String = lines(&path)[1..]
                .iter()
                .map(|event| event[2].as_str().unwrap().to_owned())
                .collect();
            assert_eq!(text, "é日🎉x", "cut at {cut}");
        }
    }

    #[test]
    fn it_ends_at_its_limit() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("pane.cast");
        let mut recording = Recording::create(&path, SIZE(), 0, 1000).unwrap();
        for _ in 0..100 {
            recording.output(Duration::ZERO, &[b'x'; 50]).unwrap();
        }
        assert!(!recording.is_open());
        assert!(std::fs::metadata(&path).unwrap().len() <= 1000);
        assert!(lines(&path).len() > 5);
    }

    #[test]
    fn it_follows_no_link_and_closes_an_open_file() {
        let directory = tempfile::tempdir().unwrap();
        let target = directory.path().join("target");
        std::fs::write(&target, "precious").unwrap();
        let link = directory.path().join("link");
        symlink(&target, &link).unwrap();
        let error = Recording::create(&link, SIZE(), 0, 1000).unwrap_err();
        assert!(matches!(error, RecordingError::Create { .. }));
        assert_eq!(std::fs::read_to_string(&target).unwrap(), "precious");
        assert!(Recording::create(directory.path(), SIZE(), 0, 1000).is_err());

        std::fs::set_permissions(&target, std::fs::Permissions::from_mode(0o666)).unwrap();
        drop(Recording::create(&target, SIZE(), 0, 1000).unwrap());
        assert_eq!(
            std::fs::metadata(&target).unwrap().permissions().mode() & 0o777,
            0o600
        );
        assert_eq!(lines(&target).len(), 1);
    }

    #[test]
    fn an_error_is_told_once() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("pane.cast");
        let mut recording = Recording::create(&path, SIZE(), 0, u64::MAX).unwrap();
        // A file open for reading only refuses every write, as a full disk would.
        let unwritable = File::open(&path).unwrap();
        recording.file = Some(BufWriter::with_capacity(1, unwritable));
        assert!(recording.output(Duration::ZERO, b"lost").is_err());
        assert!(recording.output(Duration::ZERO, b"also lost").is_ok());
        assert!(!recording.is_open());
    }
}
