//! The output of a terminal, to which no write ever waits in the kernel: where there is no room it is waited for with a limit.

use std::{
    io,
    os::fd::{AsFd, OwnedFd},
    sync::atomic::{AtomicU64, Ordering},
    time::{Duration, Instant},
};

use parking_lot::Mutex;
use rustix::{
    event::{PollFd, PollFlags, Timespec, poll},
    fs::{Mode, OFlags},
    io::Errno,
};

/// The time within which a writer notices that its frame is not wanted any more.
pub(super) const WRITER_PATIENCE: Duration = Duration::from_millis(50);

/// The most bytes of a write to a terminal that could only be opened so that writes block: a terminal with any room has
/// room for this many.
const WAITING_CHUNK: usize = 256;

/// The output of a terminal.
#[derive(Debug)]
pub(super) struct Output {
    /// The terminal, opened once more so that a write does not block; `None` if it could not be. The descriptor that was given
    /// cannot be made non-blocking: it would be so for every program that shares it.
    direct: Option<OwnedFd>,
    given: OwnedFd,
}

impl Output {
    /// Takes the terminal of standard output.
    pub fn of_stdout() -> io::Result<Self> {
        Ok(Self::new(io::stdout().as_fd().try_clone_to_owned()?))
    }

    /// Takes the terminal of a descriptor.
    pub fn new(given: OwnedFd) -> Self {
        let name = rustix::termios::ttyname(&given, Vec::new()).ok();
        let flags = OFlags::WRONLY | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
        let direct = name.and_then(|name| rustix::fs::open(name, flags, Mode::empty()).ok());
        Self { direct, given }
    }

    /// Returns the terminal's size in cells: columns, rows.
    pub fn size(&self) -> Option<(u16, u16)> {
        size(&self.given)
    }

    /// Writes as many bytes as there is room for now.
    fn write(&self, bytes: &[u8]) -> rustix::io::Result<usize> {
        let Some(direct) = &self.direct else {
            if !self.has_room(Duration::ZERO) {
                return Err(Errno::AGAIN);
            }
            return rustix::io::write(&self.given, &bytes[..bytes.len().min(WAITING_CHUNK)]);
        };
        rustix::io::write(direct, bytes)
    }

    /// Waits for room; returns true if there is some.
    pub fn has_room(&self, limit: Duration) -> bool {
        let limit = Timespec::try_from(limit).ok();
        let mut out = [PollFd::new(
            self.direct.as_ref().unwrap_or(&self.given),
            PollFlags::OUT,
        )];
        matches!(poll(&mut out, limit.as_ref()), Ok(1..))
    }

    /// Writes as much as finds room within `limit`; returns true if that is all.
    pub fn write_within(&self, mut bytes: &[u8], limit: Duration) -> bool {
        let end = Instant::now() + limit;
        while !bytes.is_empty() {
            match self.write(bytes) {
                Ok(count) => bytes = &bytes[count..],
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => {
                    let left = end.saturating_duration_since(Instant::now());
                    if left.is_zero() {
                        return false;
                    }
                    self.has_room(left);
                }
                // The terminal is gone: there is nothing to restore.
                Err(_) => return false,
            }
        }
        true
    }
}

/// Returns the size of a terminal in cells: columns, rows.
pub(super) fn size(terminal: impl AsFd) -> Option<(u16, u16)> {
    let size = rustix::termios::tcgetwinsize(terminal).ok()?;
    let is_known = size.ws_col > 0 && size.ws_row > 0;
    is_known.then(|| (size.ws_col.min(MOST.0), size.ws_row.min(MOST.1)))
}

/// The most columns and rows that are drawn: beyond any screen. A terminal that reports more is drawn on only up to these, so that
/// memory that is requested by a number has a bound.
const MOST: (u16, u16) = (1000, 500);

/// The permission to write frames to a terminal, which their writers look at before each write.
#[derive(Debug, Default)]
pub(super) struct Gate {
    /// The number of times that it was opened or closed: it is open while this is odd.
    turns: AtomicU64,
    /// The lock that is held during each write.
    writing: Mutex<()>,
}

impl Gate {
    /// Opens it; returns the number by which frames pass from now on.
    pub fn open(&self) -> u64 {
        let next = |turns: u64| turns + 1 + turns % 2;
        let order = Ordering::SeqCst;
        let before = self
            .turns
            .fetch_update(order, order, |turns| Some(next(turns)));
        before.map_or_else(next, next)
    }

    /// Closes it, if it is open: what is still to be written of a frame is dropped. A write that is under way is waited for, but not
    /// one that hangs in the kernel.
    pub fn close(&self) {
        self.turns
            .fetch_update(Ordering::SeqCst, Ordering::SeqCst, |turns| {
                (turns % 2 == 1).then_some(turns + 1)
            })
            .ok();
        drop(self.writing.try_lock_for(WRITER_PATIENCE));
    }

    /// Writes while the frame's number counts; `None` if it does not any more.
    pub fn write(
        &self,
        number: u64,
        output: &Output,
        bytes: &[u8],
    ) -> Option<rustix::io::Result<usize>> {
        let _writing = self.writing.lock();
        (self.turns.load(Ordering::SeqCst) == number).then(|| output.write(bytes))
    }
}
