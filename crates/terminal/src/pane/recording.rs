//! The pane's output over time, as an asciicast v2 file.
//!
//! Each chunk is one JSON line, `[seconds, "o", text]`, after a header line; `"i"` for input, which is recorded only if the user
//! wants it, line by line and with secrets masked, `"r"` for a change of size. Output is what the screen has shown, secrets
//! included. The format is text, so a character cut by the end of a chunk waits for its
//! rest, and bytes that are no UTF-8 become U+FFFD.
//!
//! ```text
//!   loop ── a bounded number of batches of chunks ──▶ recording thread: JSON, write
//! ```
//!
//! A recording is a convenience: the loop never waits for its disk. Output that arrives while too much waits for a slow disk is
//! lost, which the log reports; a disk that fails (because it is full) is reported once, and the pane continues.

use std::fs::{File, Permissions};
use std::io::{self, Write};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, SyncSender, TrySendError};
use std::sync::mpsc::{channel, sync_channel};
use std::thread::{Builder, JoinHandle};
use std::time::Duration;

use rustix::fs::OFlags;
use serde::Serialize;
use serde_json::json;

use crate::PaneSize;
use crate::begun_character;
use pitstop_base::private_file::{self, OpenError};
use pitstop_base::redact::typed::Typed;

/// The number of bytes at which a batch is handed over, so that a flood of small chunks costs few calls and wakes no thread.
const BATCH: usize = 64 * 1024;

/// The number of batches that may be on their way to the disk: 16 MiB, which at the rate of a flood covers the fifth of a second
/// that a busy disk stalls.
const WAITING: usize = 256;

/// The time that the end of a recording waits for the disk to take the rest.
const PATIENCE: Duration = Duration::from_secs(1);

/// The reason why there is no recording, or why it has ended early.
#[derive(Debug, thiserror::Error)]
pub enum RecordingError {
    /// The file, or the thread that writes it, could not be created.
    #[error("could not create the recording {}", .path.display())]
    Create {
        /// The file.
        path: PathBuf,
        /// The cause; a symbolic link at its path is one.
        source: io::Error,
    },
    /// The path is that of something other than a regular file.
    #[error("expected a regular file for the recording at {}", .0.display())]
    NoFile(PathBuf),
    /// The recording could not be written.
    #[error("could not write the recording {}", .path.display())]
    Write {
        /// The file.
        path: PathBuf,
        /// The cause.
        source: io::Error,
    },
    /// The disk hangs.
    #[error("the disk of the recording {} has written nothing for {PATIENCE:?}", .0.display())]
    Hangs(PathBuf),
}

/// A recording being made. Dropping it writes the rest and waits for that unless the disk hangs: do not drop it on the loop.
#[derive(Debug)]
pub struct Recording {
    path: PathBuf,
    batch: Batch,
    writer: Option<Writer>,
    /// The number of batches lost since the last one that was not.
    lost: usize,
}

/// A group of chunks that are handed to the writing thread together.
#[derive(Debug, Default)]
struct Batch {
    /// The bytes of all outputs and inputs, concatenated.
    bytes: Vec<u8>,
    chunks: Vec<(Duration, Chunk)>,
    /// The sender for a caller that waits; it is dropped when the chunks are written, or never will be.
    wanted: Option<Sender<()>>,
}

#[derive(Clone, Copy, Debug)]
enum Chunk {
    /// A chunk of output, as a number of the batch's bytes.
    Output(usize),
    /// A chunk of input that was sent to the pane, as a number of the batch's bytes.
    Input(usize),
    Resize(PaneSize),
}

/// The thread that writes.
#[derive(Debug)]
struct Writer {
    batches: SyncSender<Batch>,
    /// The receiver that disconnects when the thread ends.
    ended: Receiver<()>,
    /// The thread itself; it returns true if everything went into the file, within its limit.
    thread: JoinHandle<io::Result<bool>>,
}

/// A handle to wait until everything recorded before [`Recording::flush`] is in the file.
#[derive(Debug)]
pub struct Flushing(Receiver<()>);

impl Flushing {
    /// Waits until it is in the file, or is known never to be. This may take as long as the disk takes.
    pub fn wait(self) {
        // Nothing is ever sent: the disconnection is the message.
        let _ = self.0.recv();
    }
}

impl Recording {
    /// Starts a recording in a file that only the user can read, never through a symbolic link; the previous
    /// content of the file is lost. `started` is in seconds since 1970; the recording ends at `limit` bytes.
    pub fn create(
        path: &Path,
        size: PaneSize,
        started: i64,
        limit: u64,
    ) -> Result<Self, RecordingError> {
        let header = json!({
            "version": 2,
            "width": size.columns(),
            "height": size.rows(),
            "timestamp": started,
            "env": {"TERM": "xterm-256color"},
        });
        Self::start(path, open_private(path)?, &header, limit)
    }

    fn start(
        path: &Path,
        file: File,
        header: &serde_json::Value,
        limit: u64,
    ) -> Result<Self, RecordingError> {
        let mut cast = CastFile {
            file,
            lines: Vec::new(),
            left: limit,
            carried: Vec::new(),
            carried_input: Vec::new(),
            typed: Typed::default(),
            typed_at: 0.0,
        };
        let ((batches, to_write), (running, ended)) = (sync_channel(WAITING), channel::<()>());
        let start = |cast: CastFile| {
            Builder::new().name("recording".to_owned()).spawn(move || {
                let _running = running;
                cast.write_all(&to_write)
            })
        };
        let thread = cast
            .line(header)
            .and_then(|_| start(cast))
            .map_err(|source| RecordingError::Create {
                path: path.to_owned(),
                source,
            })?;
        Ok(Self {
            path: path.to_owned(),
            batch: Batch::default(),
            writer: Some(Writer {
                batches,
                ended,
                thread,
            }),
            lost: 0,
        })
    }

    /// Records output of the pane; `at` is the time since the start. An error is reported once, when it is known; after it,
    /// as after the limit, nothing is recorded.
    pub fn output(&mut self, at: Duration, bytes: &[u8]) -> Result<(), RecordingError> {
        self.add(at, bytes, Chunk::Output)
    }

    /// Records what the human sent to the pane, in the same way as output.
    pub fn input(&mut self, at: Duration, bytes: &[u8]) -> Result<(), RecordingError> {
        self.add(at, bytes, Chunk::Input)
    }

    fn add(
        &mut self,
        at: Duration,
        bytes: &[u8],
        chunk: fn(usize) -> Chunk,
    ) -> Result<(), RecordingError> {
        if self.writer.is_none() {
            return Ok(());
        }
        self.batch.bytes.extend_from_slice(bytes);
        self.batch.chunks.push((at, chunk(bytes.len())));
        if self.batch.bytes.len() < BATCH {
            return Ok(());
        }
        self.hand_over()
    }

    /// Records a change of the pane's size.
    pub fn resize(&mut self, at: Duration, size: PaneSize) {
        if self.writer.is_some() {
            self.batch.chunks.push((at, Chunk::Resize(size)));
        }
    }

    /// Returns the path of the file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Sends everything recorded so far to the thread that writes the file.
    pub fn flush(&mut self) -> Result<Flushing, RecordingError> {
        let (wanted, written) = channel();
        self.batch.wanted = Some(wanted);
        self.hand_over()?;
        Ok(Flushing(written))
    }

    /// Ends the recording and waits until all is written. Returns false if it has reached its limit.
    pub fn close(mut self) -> Result<bool, RecordingError> {
        self.hand_over()?;
        self.end()
    }

    fn hand_over(&mut self) -> Result<(), RecordingError> {
        let batch = std::mem::take(&mut self.batch);
        let Some(writer) = &self.writer else {
            return Ok(());
        };
        match writer.batches.try_send(batch) {
            Ok(()) => self.tell_lost(),
            Err(TrySendError::Full(_)) => {
                if self.lost == 0 {
                    let path = self.path.display();
                    tracing::warn!(%path, "the disk is too slow for the recording: output is lost");
                }
                self.lost += 1;
            }
            Err(TrySendError::Disconnected(_)) => return self.end().map(drop),
        }
        Ok(())
    }

    /// Logs how many batches are missing, once that is known.
    fn tell_lost(&mut self) {
        let batches = std::mem::take(&mut self.lost);
        if batches > 0 {
            let path = self.path.display();
            tracing::warn!(%path, batches, "the recording misses output, 64 KiB a batch");
        }
    }

    fn end(&mut self) -> Result<bool, RecordingError> {
        self.tell_lost();
        let Some(writer) = self.writer.take() else {
            return Ok(false);
        };
        drop(writer.batches);
        // The batches that wait for a disk that hangs are written when the disk recovers, if it does.
        if writer.ended.recv_timeout(PATIENCE) == Err(RecvTimeoutError::Timeout) {
            return Err(RecordingError::Hangs(self.path.clone()));
        }
        let broken = |_| Err(io::Error::other("its thread has broken"));
        let ended = writer.thread.join().unwrap_or_else(broken);
        ended.map_err(|source| RecordingError::Write {
            path: self.path.clone(),
            source,
        })
    }
}

impl Drop for Recording {
    fn drop(&mut self) {
        if let Err(error) = self.hand_over().and_then(|()| self.end()) {
            tracing::warn!(%error, "the end of the pane's recording is lost");
        }
    }
}

/// The file, and the state of the thread that writes it.
struct CastFile {
    file: File,
    /// The bytes that are written next.
    lines: Vec<u8>,
    /// The number of bytes that the file may still grow by.
    left: u64,
    /// The first bytes of a character cut by the end of a chunk of output.
    carried: Vec<u8>,
    /// The same for input.
    carried_input: Vec<u8>,
    /// The input whose line is not complete: secrets can be recognised in whole lines only.
    typed: Typed,
    /// The time at which the last of it was typed, in seconds since the start.
    typed_at: f64,
}

impl CastFile {
    /// Writes the batches until the channel is closed, or until the limit is reached, in which case it returns false.
    fn write_all(mut self, batches: &Receiver<Batch>) -> io::Result<bool> {
        self.write()?;
        for batch in batches {
            let whole = self.batch(&batch)?;
            self.write()?;
            if !whole {
                tracing::info!("the pane's recording has reached its limit");
                return Ok(false);
            }
        }
        let whole = match self.typed.finish() {
            Some(text) => self.line(&(self.typed_at, "i", text))?,
            None => true,
        };
        self.write()?;
        Ok(whole)
    }

    fn write(&mut self) -> io::Result<()> {
        self.file.write_all(&self.lines)?;
        self.lines.clear();
        Ok(())
    }

    /// Appends the lines of a batch. Returns false when there is no room for one of them.
    fn batch(&mut self, batch: &Batch) -> io::Result<bool> {
        let mut rest = batch.bytes.as_slice();
        for (at, chunk) in &batch.chunks {
            // Players read microseconds; more digits only cost space.
            let seconds = at.as_micros() as f64 / 1e6;
            let has_room = match chunk {
                Chunk::Output(length) | Chunk::Input(length) => {
                    let (bytes, behind) = rest.split_at(*length);
                    rest = behind;
                    self.text(seconds, matches!(chunk, Chunk::Input(_)), bytes)?
                }
                Chunk::Resize(size) => {
                    let size = format!("{}x{}", size.columns(), size.rows());
                    self.line(&(seconds, "r", size))?
                }
            };
            if !has_room {
                return Ok(false);
            }
        }
        Ok(true)
    }

    fn text(&mut self, seconds: f64, input: bool, bytes: &[u8]) -> io::Result<bool> {
        let (carried, code) = if input {
            (&mut self.carried_input, "i")
        } else {
            (&mut self.carried, "o")
        };
        let joined;
        let bytes = if carried.is_empty() {
            bytes
        } else {
            carried.extend_from_slice(bytes);
            joined = std::mem::take(carried);
            &joined
        };
        let (whole, begun) = bytes.split_at(bytes.len() - begun_character(bytes));
        carried.extend_from_slice(begun);
        if whole.is_empty() {
            return Ok(true);
        }
        let text = String::from_utf8_lossy(whole);
        if !input {
            return self.line(&(seconds, code, text));
        }
        self.typed_at = seconds;
        let Some(line) = self.typed.add(&text) else {
            return Ok(true);
        };
        self.line(&(seconds, code, line))
    }

    /// Appends a line; if there is no room for it, appends nothing and returns false.
    fn line(&mut self, value: &impl Serialize) -> io::Result<bool> {
        let begin = self.lines.len();
        serde_json::to_writer(&mut self.lines, value)?;
        self.lines.push(b'\n');
        let left = self.left.checked_sub((self.lines.len() - begin) as u64);
        if left.is_none() {
            self.lines.truncate(begin);
        }
        self.left = left.unwrap_or(0);
        Ok(left.is_some())
    }
}

fn open_private(path: &Path) -> Result<File, RecordingError> {
    let failed = |source: io::Error| RecordingError::Create {
        path: path.to_owned(),
        source,
    };
    let opened = private_file::open(path, OFlags::WRONLY | OFlags::CREATE);
    let file = opened.map_err(|error| match error {
        OpenError::NotRegular => RecordingError::NoFile(path.to_owned()),
        error => failed(error.into()),
    })?;
    // It may have been there before, open to others, and be longer than the new one.
    let private = Permissions::from_mode(0o600);
    file.set_permissions(private).map_err(failed)?;
    file.set_len(0).map_err(failed)?;
    Ok(file)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

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
        // A character in two pieces, with output between them.
        let input = |recording: &mut Recording, bytes| {
            recording.input(Duration::from_millis(1750), bytes).unwrap();
        };
        input(&mut recording, b"h\xc3");
        recording.output(Duration::from_millis(1750), b"h").unwrap();
        input(&mut recording, b"\xa4");
        recording.resize(Duration::from_secs(2), PaneSize::new(100, 30));
        let enter = recording.input(Duration::from_millis(2500), b"\r");
        enter.unwrap();
        recording.flush().unwrap().wait();
        assert_eq!(
            lines(&path),
            [
                json!({"version": 2, "width": 80, "height": 24, "timestamp": 1_700_000_000,
                       "env": {"TERM": "xterm-256color"}}),
                json!([1.5, "o", "a\u{1b}[31m\"\\\r\n"]),
                json!([1.75, "o", "h"]),
                json!([2.0, "r", "100x30"]),
                json!([2.5, "i", "hä\r"]),
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
        assert!(!recording.close().unwrap());
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

    /// Returns the error that the loop gets before the recording ends.
    fn failure(path: &str, file: File) -> RecordingError {
        let path = Path::new(path);
        let mut recording = Recording::start(path, file, &json!({}), u64::MAX).unwrap();
        let mut output = || recording.output(Duration::ZERO, &vec![b'x'; BATCH]);
        let failure = (0..100_000).find_map(|_| output().err());
        assert!(output().is_ok(), "it is reported once");
        assert!(recording.flush().is_ok());
        assert!(!recording.close().unwrap());
        failure.expect("it fails")
    }

    #[test]
    fn an_error_is_reported_once() {
        let file = File::options().write(true).open("/dev/full").unwrap();
        let failure = failure("full", file);
        assert!(matches!(failure, RecordingError::Write { .. }), "{failure}");
    }

    #[test]
    fn a_disk_that_hangs_is_not_waited_for() {
        let (_reader, pipe) = std::io::pipe().unwrap();
        let file = File::from(std::os::fd::OwnedFd::from(pipe));
        let path = Path::new("a pipe without a reader");
        let mut recording = Recording::start(path, file, &json!({}), u64::MAX).unwrap();
        for size in [1, BATCH, 3 * BATCH, 87_654].repeat(200) {
            recording.output(Duration::ZERO, &vec![b'x'; size]).unwrap();
            recording.resize(Duration::ZERO, SIZE());
        }
        assert!(recording.lost > 0);
        recording.input(Duration::ZERO, b"x").unwrap();
        recording.flush().unwrap().wait();
        let end = recording.close();
        assert!(matches!(end, Err(RecordingError::Hangs(_))), "{end:?}");
    }
}
