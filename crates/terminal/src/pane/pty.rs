//! The PTY of a pane: spawn, read, write, resize, signal, and the report of its end.
//!
//! ```text
//!            reader thread ── Output, OutputEnded ──▶┐
//!   child ──  wait thread  ── Stopped, Continued,    ├─ bounded channel ──▶ loop
//!                              Exited ───────────────▶┤
//!        ◀─── what the terminal takes at once ◀── try_write ─────────────── loop
//!            writer thread ◀── bounded queue ◀──────┘ the rest
//! ```
//!
//! - The reader never writes and never waits for drawing; when the channel is full it gathers one more
//!   batch and then stops reading, so a flood slows the child.
//! - The caller of [`Pty::try_write`] never waits for the terminal: a key is written at once, and the bytes that
//!   the terminal has no room for go through one queue with one writer. A child that does not read fills the
//!   queue; the caller gets an error and continues. The bytes that one call queues are never joined with the bytes
//!   of another call: Claude Code takes Enter only as a write of its own.
//! - The exit is detected from the process, not from the end of output: a grandchild may hold the
//!   PTY open for ever.
//! - The dead child is left unreaped until [`Pty::release`], so that its process group's number
//!   cannot pass to another process while we may still signal it.

use std::collections::VecDeque;
use std::fs::File;
use std::os::fd::{AsFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use filedescriptor::FileDescriptor;
use parking_lot::{Condvar, Mutex};
use portable_pty::{Child, CommandBuilder, MasterPty, PtyPair, PtySize, native_pty_system};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;
pub use rustix::process::Signal;
use rustix::process::{Pid, WaitId, WaitIdOptions};
use rustix::termios::{Action, LocalModes, QueueSelector};
use tokio::sync::mpsc;

use super::PaneSpec;
use crate::PaneSize;

/// The most bytes of one read and of one message. The loop takes a message whole: at 40 MB/s a key waits for
/// less than half a millisecond.
const READ_BUFFER: usize = 16 * 1024;

/// The number of messages that may wait for the loop: with [`READ_BUFFER`] at most 48 KiB of output are in flight, the
/// batch that the reader holds included. The echo of a key waits for all output in flight.
const CHANNEL_CAPACITY: usize = 2;

/// The time that the writer waits for room before it checks whether its work was cancelled.
const WRITER_PATIENCE: Timespec = Timespec {
    tv_sec: 0,
    tv_nsec: 250_000_000,
};

/// The most bytes that may wait for the child: a 4 MiB paste, and the keys typed meanwhile.
pub const WRITE_QUEUE_LIMIT: usize = 5 << 20;

/// The most bytes of one write: the capacity of a PTY's line discipline. A write that blocks is abandoned
/// at such a boundary.
const WRITE_CHUNK: usize = 4096;

/// The reason why a pane could not be started or resized.
#[derive(Debug, thiserror::Error)]
pub enum PtyError {
    /// The PTY could not be opened.
    #[error("could not open a pseudo-terminal")]
    Open(#[source] Source),
    /// The working directory does not exist or is not a directory.
    #[error("the working directory {} does not exist or is no directory", .0.display())]
    Directory(PathBuf),
    /// The program could not be started.
    #[error("could not start {program}")]
    Spawn {
        /// The program as it was given.
        program: String,
        /// The cause.
        source: Source,
    },
    /// A thread could not be started.
    #[error("could not start a thread for the pseudo-terminal")]
    Thread(#[source] std::io::Error),
    /// The size could not be set.
    #[error("could not resize the pseudo-terminal")]
    Resize(#[source] Source),
}

/// The cause of a [`PtyError`].
type Source = Box<dyn std::error::Error + Send + Sync>;

/// The reason why a signal was not sent.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum SignalError {
    /// The child is gone and its number may belong to another process.
    #[error("the process is gone")]
    Gone,
    /// The system refused the signal.
    #[error("could not signal the process group")]
    Refused(#[source] Errno),
}

/// The reason why bytes were not queued for the child.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum WriteRefused {
    /// The child does not read; this many bytes wait already.
    #[error("the program in the pane does not read: {queued} bytes wait for it")]
    Full {
        /// The number of bytes that wait.
        queued: usize,
    },
    /// The PTY is closed.
    #[error("the pseudo-terminal is closed")]
    Closed,
}

/// A message from a pane's threads to the loop; it names the iteration that it belongs to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PtyMessage {
    /// The iteration number that was passed to [`spawn`].
    pub iteration: u64,
    /// The event itself.
    pub event: PtyEvent,
}

/// An event in a pane.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PtyEvent {
    /// The child wrote these bytes.
    Output(Vec<u8>),
    /// The output has ended: every process that had the terminal open is gone.
    OutputEnded,
    /// The child was stopped by a signal of this number and waits for [`Signal::CONT`].
    Stopped(i32),
    /// The child, which was stopped, goes on.
    Continued,
    /// The child ended. Output may still follow.
    Exited(PaneExit),
}

/// The end of a child: an exit code or a signal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PaneExit {
    /// The exit code, if it ended by itself.
    pub code: Option<i32>,
    /// The signal's number, if one ended it.
    pub signal: Option<i32>,
}

/// Returns the channel of a pane's messages, bounded so that little output is in flight.
pub fn channel() -> (mpsc::Sender<PtyMessage>, mpsc::Receiver<PtyMessage>) {
    mpsc::channel(CHANNEL_CAPACITY)
}

/// A running (or just ended) pane. Dropping it closes the terminal: the processes that are left get SIGHUP.
pub struct Pty {
    master: Box<dyn MasterPty + Send>,
    /// The same terminal, open to read and write without blocking.
    bytes: Arc<File>,
    terminal: Option<PathBuf>,
    queue: Arc<Queue>,
    life: Arc<Mutex<Life>>,
    closing: Arc<AtomicBool>,
    pid: Pid,
}

/// The child's process entry.
struct Life {
    child: Box<dyn Child + Send + Sync>,
    exited: bool,
    released: bool,
    reaped: bool,
}

impl Life {
    fn reap_if_done(&mut self) {
        if self.exited && self.released && !self.reaped {
            // Returns at once: the process is dead.
            if let Err(error) = self.child.wait() {
                tracing::warn!(%error, "the ended program in the pane could not be reaped");
            }
            self.reaped = true;
        }
    }
}

/// Starts a program on a PTY of its own and of this size, as the leader of a new session.
///
/// Its events go to `messages`, marked with `iteration`. It gets no open files but the terminal.
/// Known limit of portable-pty: `SHELL` is added to the environment if it is not in it, and a file
/// that the system refuses to execute is seen as an exit with a code, not as an error here.
pub fn spawn(
    spec: PaneSpec,
    size: PaneSize,
    iteration: u64,
    messages: &mpsc::Sender<PtyMessage>,
) -> Result<Pty, PtyError> {
    // Without this check portable-pty would silently start in the home directory.
    if !spec.cwd.is_dir() {
        return Err(PtyError::Directory(spec.cwd));
    }
    let PtyPair { master, slave } = native_pty_system()
        .openpty(pty_size(size))
        .map_err(|error| PtyError::Open(error.into()))?;
    let bytes = Arc::new(without_waits(master.as_ref())?);
    let failed = |source| PtyError::Spawn {
        program: spec.program.to_string_lossy().into_owned(),
        source,
    };
    let mut child = slave
        .spawn_command(command(&spec))
        .map_err(|error| failed(error.into()))?;
    // Our own copy would keep the terminal open when the child has closed it.
    drop(slave);
    let pid = child
        .process_id()
        .and_then(|pid| Pid::from_raw(i32::try_from(pid).ok()?));
    let Some(pid) = pid else {
        let _ = child.kill();
        return Err(failed("it has no process id".into()));
    };
    let pty = Pty {
        terminal: master.tty_name(),
        master,
        bytes,
        queue: Arc::default(),
        life: Arc::new(Mutex::new(Life {
            child,
            exited: false,
            released: false,
            reaped: false,
        })),
        closing: Arc::default(),
        pid,
    };
    pty.start_threads(&Sender {
        iteration,
        messages: messages.clone(),
    })
    .inspect_err(|_| drop(pty.signal(Signal::KILL)))?;
    Ok(pty)
}

/// Opens our side of the terminal such that reading and writing never block.
fn without_waits(master: &dyn MasterPty) -> Result<File, PtyError> {
    let open = |error: Source| PtyError::Open(error);
    let raw = master
        .as_raw_fd()
        .ok_or_else(|| open("it has no descriptor".into()))?;
    let bytes = FileDescriptor::dup(&raw)
        .and_then(|duplicate| duplicate.as_file())
        .map_err(|error| open(error.into()))?;
    rustix::io::ioctl_fionbio(&bytes, true).map_err(|error| open(error.into()))?;
    Ok(bytes)
}

fn command(spec: &PaneSpec) -> CommandBuilder {
    let mut command = CommandBuilder::new(&spec.program);
    command.args(&spec.args);
    command.env_clear();
    for (name, value) in &spec.env {
        command.env(name, value);
    }
    command.cwd(&spec.cwd);
    command
}

fn pty_size(size: PaneSize) -> PtySize {
    PtySize {
        rows: size.rows(),
        cols: size.columns(),
        pixel_width: 0,
        pixel_height: 0,
    }
}

/// The sending end of the channel, with the iteration that marks each message.
#[derive(Clone)]
struct Sender {
    iteration: u64,
    messages: mpsc::Sender<PtyMessage>,
}

impl Sender {
    /// Reports whether the channel to the loop is full.
    fn is_full(&self) -> bool {
        self.messages.capacity() == 0
    }

    /// Sends an event to the loop; returns false if the loop is gone.
    fn send(&self, event: PtyEvent) -> bool {
        self.messages
            .blocking_send(PtyMessage {
                iteration: self.iteration,
                event,
            })
            .is_ok()
    }
}

impl Pty {
    fn start_threads(&self, sender: &Sender) -> Result<(), PtyError> {
        let (closing, to_loop) = (Arc::clone(&self.closing), sender.clone());
        let bytes = Arc::clone(&self.bytes);
        start_thread("pane-reader", move || read_all(&bytes, &closing, &to_loop))?;
        let (bytes, queue) = (Arc::clone(&self.bytes), Arc::clone(&self.queue));
        let write = move |part: &[u8]| match rustix::io::write(&*bytes, part) {
            Err(Errno::AGAIN) => {
                await_terminal(&bytes, PollFlags::OUT, Some(&WRITER_PATIENCE));
                Ok(0)
            }
            written => written,
        };
        start_thread("pane-writer", move || write_all(write, &queue))?;
        let (life, pid, to_loop) = (Arc::clone(&self.life), self.pid, sender.clone());
        start_thread("pane-wait", move || await_end(pid, &life, &to_loop))
    }

    /// Writes bytes to the child unchanged and in a write of their own; queues those that the terminal has no room for.
    pub fn try_write(&self, bytes: Vec<u8>) -> Result<(), WriteRefused> {
        self.queue
            .push(bytes, |bytes| rustix::io::write(&*self.bytes, bytes))
    }

    /// Returns the number of bytes that wait for the child.
    pub fn queued_bytes(&self) -> usize {
        self.queue.state.lock().bytes
    }

    /// Discards the bytes that wait for a child that does not read, and returns their number.
    ///
    /// The kernel's buffer is emptied too, or the writer would stay blocked. A paste may have lost
    /// its end mark: the caller must queue one after it.
    #[allow(clippy::must_use_candidate)] // called for what it does
    pub fn cancel_writes(&self) -> usize {
        let dropped = self.queue.cancel();
        if let Some(terminal) = self.open_terminal() {
            let _ = rustix::termios::tcflush(&terminal, QueueSelector::IFlush);
        }
        dropped
    }

    /// Sets the size of the terminal, of which the child is notified.
    pub fn resize(&self, size: PaneSize) -> Result<(), PtyError> {
        self.master
            .resize(pty_size(size))
            .map_err(|error| PtyError::Resize(error.into()))
    }

    /// Reports whether the terminal edits lines itself (canonical mode): no program in it reads keys as they come.
    pub fn edits_lines(&self) -> bool {
        rustix::termios::tcgetattr(&*self.bytes)
            .is_ok_and(|modes| modes.local_modes.contains(LocalModes::ICANON))
    }

    /// Returns the child's process id, which is also the id of its session and its process group.
    pub fn pid(&self) -> u32 {
        self.pid.as_raw_nonzero().get().unsigned_abs()
    }

    /// Signals the child's whole process group, also the rest of it when the child is dead.
    pub fn signal(&self, signal: Signal) -> Result<(), SignalError> {
        let life = self.life.lock();
        if life.reaped {
            return Err(SignalError::Gone);
        }
        rustix::process::kill_process_group(self.pid, signal).map_err(|error| match error {
            Errno::SRCH => SignalError::Gone,
            other => SignalError::Refused(other),
        })
    }

    /// Lets the child be reaped, which frees its process number: at once if it is dead, else when it dies. From then
    /// on a dead child's group cannot be signalled.
    pub fn release(&self) {
        let mut life = self.life.lock();
        life.released = true;
        life.reap_if_done();
    }

    /// Opens the child's side of the terminal. While we hold the other side, the name cannot pass to another terminal.
    fn open_terminal(&self) -> Option<OwnedFd> {
        open_terminal(self.terminal.as_deref()?)
            .inspect_err(|error| tracing::debug!(%error, "the pane's terminal cannot be opened"))
            .ok()
    }

    /// Wakes the reader and the writer from calls that would never return.
    fn wake_threads(&self) {
        let Some(terminal) = self.open_terminal() else {
            return;
        };
        let _ = rustix::termios::tcflush(&terminal, QueueSelector::IFlush);
        // A byte from this side ends the reader's read, even if a grandchild holds the terminal
        // open and writes nothing.
        let _ = rustix::termios::tcflow(&terminal, Action::OOn);
        let _ = rustix::io::write(&terminal, b"\0");
    }
}

fn open_terminal(path: &Path) -> rustix::io::Result<OwnedFd> {
    let flags = OFlags::RDWR | OFlags::NOCTTY | OFlags::NONBLOCK | OFlags::CLOEXEC;
    rustix::fs::open(path, flags, Mode::empty())
}

impl Drop for Pty {
    fn drop(&mut self) {
        self.closing.store(true, Ordering::Release);
        self.wake_threads();
        self.queue.close();
        self.release();
    }
}

fn start_thread(name: &str, run: impl FnOnce() + Send + 'static) -> Result<(), PtyError> {
    thread::Builder::new()
        .name(name.to_owned())
        .spawn(run)
        .map(drop)
        .map_err(PtyError::Thread)
}

fn read_all(bytes: &File, closing: &AtomicBool, sender: &Sender) {
    let mut buffer = vec![0; READ_BUFFER];
    let mut filled = 0;
    loop {
        let read = rustix::io::read(bytes, &mut buffer[filled..]);
        if closing.load(Ordering::Acquire) {
            return;
        }
        let more = match read {
            // EIO is how the end of a terminal looks from our side.
            Ok(0) | Err(Errno::IO) => break,
            Ok(count) => {
                filled += count;
                filled < READ_BUFFER
            }
            Err(Errno::INTR) => continue,
            Err(Errno::AGAIN) if filled == 0 => {
                await_terminal(bytes, PollFlags::IN, None);
                continue;
            }
            Err(Errno::AGAIN) => false,
            Err(error) => {
                tracing::warn!(%error, "reading from the pane failed");
                break;
            }
        };
        // While the loop has enough to do, this batch grows.
        if more && sender.is_full() {
            continue;
        }
        let output = PtyEvent::Output(buffer[..std::mem::take(&mut filled)].to_vec());
        if !sender.send(output) {
            return;
        }
    }
    if filled > 0 {
        sender.send(PtyEvent::Output(buffer[..filled].to_vec()));
    }
    sender.send(PtyEvent::OutputEnded);
}

/// Waits until the terminal can be read or written, or the time is up.
fn await_terminal(bytes: &File, what: PollFlags, limit: Option<&Timespec>) {
    let terminal = bytes.as_fd();
    // The result is not needed: the next read or write shows the same error.
    let _ = poll(&mut [PollFd::new(&terminal, what)], limit);
}

/// The bytes that wait to be written.
#[derive(Default)]
struct Queue {
    state: Mutex<QueueState>,
    changed: Condvar,
}

#[derive(Default)]
struct QueueState {
    parts: VecDeque<Vec<u8>>,
    /// The number of all bytes not written yet, those that the writer holds included.
    bytes: usize,
    /// The number of cancellations, so that the writer drops the part that it holds.
    cancellations: u64,
    closed: bool,
}

impl Queue {
    /// Writes a short input with `write`, which never blocks, if nothing else waits; queues the rest.
    fn push(
        &self,
        mut bytes: Vec<u8>,
        write: impl FnOnce(&[u8]) -> Result<usize, Errno>,
    ) -> Result<(), WriteRefused> {
        let mut state = self.state.lock();
        if state.closed {
            return Err(WriteRefused::Closed);
        }
        // An error is left to the writer thread, which meets the same one.
        if state.bytes == 0
            && (1..=WRITE_CHUNK).contains(&bytes.len())
            && let Ok(count) = write(&bytes)
        {
            bytes.drain(..count);
        }
        // A key or the end mark of a paste still finds room in a queue that a paste has filled.
        let reserve = if bytes.len() <= 64 { 4096 } else { 0 };
        if state.bytes + bytes.len() > WRITE_QUEUE_LIMIT + reserve {
            return Err(WriteRefused::Full {
                queued: state.bytes,
            });
        }
        if !bytes.is_empty() {
            state.bytes += bytes.len();
            state.parts.push_back(bytes);
            self.changed.notify_one();
        }
        Ok(())
    }

    fn cancel(&self) -> usize {
        let mut state = self.state.lock();
        state.parts.clear();
        state.cancellations += 1;
        std::mem::take(&mut state.bytes)
    }

    fn close(&self) {
        self.cancel();
        self.state.lock().closed = true;
        self.changed.notify_one();
    }

    /// Waits for the next part and returns it with the number of cancellations so far; `None` when the queue is closed.
    fn next(&self) -> Option<(Vec<u8>, u64)> {
        let mut state = self.state.lock();
        loop {
            if state.closed {
                return None;
            }
            if let Some(part) = state.parts.pop_front() {
                return Some((part, state.cancellations));
            }
            self.changed.wait(&mut state);
        }
    }

    /// Counts bytes as written; returns false if they were cancelled meanwhile.
    fn written(&self, count: usize, cancellations: u64) -> bool {
        let mut state = self.state.lock();
        let current = state.cancellations == cancellations;
        if current {
            state.bytes -= count;
        }
        current
    }
}

fn write_all(mut write: impl FnMut(&[u8]) -> Result<usize, Errno>, queue: &Queue) {
    while let Some((part, cancellations)) = queue.next() {
        let mut rest = part.as_slice();
        while !rest.is_empty() {
            let count = match write(&rest[..rest.len().min(WRITE_CHUNK)]) {
                Ok(count) => count,
                Err(Errno::INTR) => 0,
                Err(error) => {
                    // Usual when the child is gone; its exit is reported by another thread.
                    tracing::debug!(%error, "writing to the pane failed");
                    queue.close();
                    return;
                }
            };
            rest = &rest[count..];
            if !queue.written(count, cancellations) {
                break;
            }
        }
    }
}

fn await_end(pid: Pid, life: &Mutex<Life>, sender: &Sender) {
    let pauses = WaitIdOptions::STOPPED | WaitIdOptions::CONTINUED;
    let end = WaitIdOptions::EXITED | pauses | WaitIdOptions::NOWAIT;
    let exit = loop {
        match rustix::process::waitid(WaitId::Pid(pid), end) {
            Ok(Some(status)) if status.stopped() || status.continued() => {
                // Consume the report, or the next wait would return it again.
                let _ = rustix::process::waitid(WaitId::Pid(pid), pauses | WaitIdOptions::NOHANG);
                sender.send(match status.stopping_signal() {
                    Some(signal) => PtyEvent::Stopped(signal),
                    None => PtyEvent::Continued,
                });
            }
            Ok(Some(status)) => {
                break PaneExit {
                    code: status.exit_status(),
                    signal: status.terminating_signal(),
                };
            }
            Ok(None) | Err(Errno::INTR) => {}
            Err(error) => {
                tracing::warn!(%error, "waiting for the program in the pane failed");
                break PaneExit {
                    code: None,
                    signal: None,
                };
            }
        }
    };
    {
        let mut life = life.lock();
        life.exited = true;
        life.reap_if_done();
    }
    sender.send(PtyEvent::Exited(exit));
}

#[cfg(test)]
mod tests;
