//! The host terminal: raw mode, its bytes, frames out, and its restoration on every exit.
//!
//! ```text
//!   stdin  ── reader thread ──► bounded channel ──► loop
//!   stdout ◄── what it takes at once ◄────── one frame at a time ◄── loop
//!     ▲─────── writer thread ◄── the rest ◄──────┘                (a slow terminal never stops the loop)
//! ```
//!
//! No write here ever waits in the kernel: where there is no room it is waited for with a limit. So [`restore`] always
//! returns, whatever lock is held and however long the terminal has stalled.

use std::{
    io,
    os::fd::{AsFd, BorrowedFd, OwnedFd},
    panic::{self, AssertUnwindSafe},
    sync::{
        Arc, Mutex, OnceLock, PoisonError,
        atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering},
        mpsc as std_mpsc,
    },
    thread,
    time::{Duration, Instant},
};

use crossterm::{cursor, event, queue, style, terminal};
use rustix::{
    event::{PollFd, PollFlags, Timespec, poll},
    fs::{Mode, OFlags},
    io::Errno,
    termios::{OptionalActions, Termios, tcgetattr, tcsetattr},
};
use tokio::sync::mpsc;

/// The number of bytes read from the host terminal at once.
const READ_SIZE: usize = 64 * 1024;

/// The number of reads that may wait for the loop: a paste of any size is held back in the kernel beyond that.
const READS_IN_FLIGHT: usize = 16;

/// The sequences at entry that crossterm has no command for: the title is saved and changes of the colour scheme are reported;
/// buttons and drags come in the SGR form without every move, because its mouse mode requests those too.
const ENTER_OURS: &str = "\x1b[22;2t\x1b[?1000h\x1b[?1002h\x1b[?1006h\x1b[?2031h";

/// The sequences at exit, likewise: the title is restored, `modifyOtherKeys` of [`HostKeys::Other`] and scheme changes end.
const LEAVE_OURS: &str = "\x1b]2;\x1b\\\x1b[23;2t\x1b[>4m\x1b[?2031l";

/// The queries to the host terminal; DA1 comes last because every terminal answers it. The answers come in with
/// the keys: nothing waits for them.
const QUERIES: &str = "\x1b]10;?\x1b\\\x1b]11;?\x1b\\\x1b[?u\x1b[?2026$p\x1b[?996n\x1b[c";

/// Returns the sequences that set the host terminal up for our use.
fn enter() -> Vec<u8> {
    let mut bytes = Vec::new();
    // A vector takes everything.
    let _ = queue!(
        bytes,
        style::Print(ENTER_OURS),
        terminal::EnterAlternateScreen,
        cursor::Hide,
        event::EnableBracketedPaste,
        event::EnableFocusChange,
        terminal::Clear(terminal::ClearType::All),
    );
    bytes
}

/// Returns the sequences that undo [`enter`] and what frames may have left: keyboard flags, moves of the mouse, attributes, cursor
/// shape, a synchronized frame. The screen is cleared first: a terminal that has grown since (tmux) would keep rows of ours.
fn leave() -> Vec<u8> {
    let mut bytes = Vec::new();
    let _ = queue!(
        bytes,
        style::Print(LEAVE_OURS),
        terminal::EndSynchronizedUpdate,
        event::PopKeyboardEnhancementFlags,
        event::DisableMouseCapture,
        event::DisableFocusChange,
        event::DisableBracketedPaste,
        style::ResetColor,
        terminal::Clear(terminal::ClearType::All),
        cursor::SetCursorStyle::DefaultUserShape,
        terminal::LeaveAlternateScreen,
        cursor::Show,
    );
    bytes
}

/// The protocol by which the host terminal distinguishes keys that share one byte, such as Shift+Enter and Enter.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum HostKeys {
    /// The keys are alike, as far as we know.
    #[default]
    Alike,
    /// The kitty protocol.
    Kitty,
    /// The `modifyOtherKeys` of xterm, if any: there is no answer that shows it. xterm and tmux (`extended-keys on`) have it.
    Other,
}

impl HostKeys {
    /// Returns the protocol known once the terminal has reported its keyboard flags, or has answered DA1 without having done so.
    #[must_use]
    pub const fn learned(self, kitty: bool) -> Self {
        match (self, kitty) {
            (_, true) => Self::Kitty,
            (Self::Alike, false) => Self::Other,
            (known, false) => known,
        }
    }

    /// Returns the sequences that request the protocol; `leave` undoes them. "Disambiguate" distinguishes the keys, and "alternates"
    /// report the key that a letter of another script is on, so that Ctrl-C is one in each layout. Of `modifyOtherKeys` the level is
    /// enough that leaves keys with a form of their own unchanged. Terminals that take it for attributes are corrected at once.
    #[must_use]
    pub fn request(self) -> Vec<u8> {
        let mut bytes = Vec::new();
        let flags = event::KeyboardEnhancementFlags::DISAMBIGUATE_ESCAPE_CODES
            | event::KeyboardEnhancementFlags::REPORT_ALTERNATE_KEYS;
        let _ = match self {
            Self::Alike => Ok(()),
            Self::Kitty => queue!(bytes, event::PushKeyboardEnhancementFlags(flags)),
            // crossterm knows the kitty protocol only.
            Self::Other => queue!(bytes, style::Print("\x1b[>4;1m\x1b[0m")),
        };
        bytes
    }
}

/// The bytes that end a sequence in which a frame was cut, and a link that it had begun.
const CUT: &str = "\x18\x1b]8;;\x1b\\";

/// The time that the terminal has to take the bytes of [`leave`], and the last words likewise.
const LEAVE_LIMIT: Duration = Duration::from_millis(500);

/// The time that the last frame may take before it is cut.
const SETTLE_LIMIT: Duration = Duration::from_millis(250);

/// The time within which the writer notices that its frame is not wanted any more.
const WRITER_PATIENCE: Duration = Duration::from_millis(50);

/// The most bytes of a write to a terminal that could only be opened so that writes block: a terminal with any room has
/// room for this many.
const WAITING_CHUNK: usize = 256;

/// The number of times that the terminal was taken or given back: it is ours while this is odd.
static TAKEN: AtomicU64 = AtomicU64::new(0);

/// The terminal as it was found.
static FOUND: OnceLock<Found> = OnceLock::new();

/// The lock held during one write of a frame, which never blocks: the rest of a frame must not follow [`leave`].
static WRITING: Mutex<()> = Mutex::new(());

/// The number of frames that are not completely on the terminal yet.
static IN_FLIGHT: AtomicUsize = AtomicUsize::new(0);

/// True if the terminal did not take all of [`leave`].
static STALLED: AtomicBool = AtomicBool::new(false);

struct Found {
    /// The terminal, opened once more so that a write does not block; `None` if it could not be.
    direct: Option<OwnedFd>,
    line: Termios,
}

impl Found {
    /// Writes as many bytes as there is room for now.
    fn write(&self, bytes: &[u8]) -> rustix::io::Result<usize> {
        let Some(direct) = &self.direct else {
            if !has_room(self.out(), Duration::ZERO) {
                return Err(Errno::AGAIN);
            }
            return rustix::io::write(self.out(), &bytes[..bytes.len().min(WAITING_CHUNK)]);
        };
        rustix::io::write(direct, bytes)
    }

    fn out(&self) -> BorrowedFd<'_> {
        match &self.direct {
            Some(direct) => direct.as_fd(),
            None => rustix::stdio::stdout(),
        }
    }

    /// Writes as much as finds room within `limit`; returns true if that is all.
    fn write_within(&self, mut bytes: &[u8], limit: Duration) -> bool {
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
                    has_room(self.out(), left);
                }
                // The terminal is gone: there is nothing to restore.
                Err(_) => return false,
            }
        }
        true
    }
}

/// Waits until the terminal has room; returns true if it has.
fn has_room(terminal: BorrowedFd<'_>, limit: Duration) -> bool {
    let limit = Timespec::try_from(limit).ok();
    let mut out = [PollFd::new(&terminal, PollFlags::OUT)];
    matches!(poll(&mut out, limit.as_ref()), Ok(1..))
}

/// Takes the terminal and makes it raw; returns the number of this taking.
fn take() -> io::Result<u64> {
    let stdin = rustix::stdio::stdin();
    let found = if let Some(found) = FOUND.get() {
        found
    } else {
        // Not by crossterm: it would use any other terminal if standard input is none.
        let line = tcgetattr(stdin)?;
        let direct = without_waits();
        FOUND.get_or_init(|| Found { direct, line })
    };
    // Crossterm restores later what it finds now: not the settings of an editor that has died.
    tcsetattr(stdin, OptionalActions::Now, &found.line)?;
    terminal::enable_raw_mode()?;
    Ok(TAKEN.fetch_add(1, Ordering::SeqCst) + 1)
}

/// Reports whether the terminal is ours, in any taking.
fn is_taken() -> bool {
    TAKEN.load(Ordering::SeqCst) % 2 == 1
}

/// Gives the host terminal back as it was; harmless when it was not taken. Returns false if it did not take all of the bytes for
/// that within half a second: then nothing else should be written to it.
pub fn restore() -> bool {
    let taken = TAKEN.load(Ordering::SeqCst);
    let ours = taken % 2 == 1
        && TAKEN
            .compare_exchange(taken, taken + 1, Ordering::SeqCst, Ordering::SeqCst)
            .is_ok();
    let Some(found) = FOUND.get().filter(|_| ours) else {
        return !STALLED.load(Ordering::SeqCst);
    };
    // This needs no room, so it comes first.
    let _ = terminal::disable_raw_mode();
    let end = Instant::now() + WRITER_PATIENCE;
    let mut writing = WRITING.try_lock();
    while writing.is_err() && Instant::now() < end {
        thread::yield_now();
        writing = WRITING.try_lock();
    }
    let mut bytes = leave();
    if IN_FLIGHT.load(Ordering::SeqCst) > 0 {
        bytes.splice(..0, CUT.bytes());
    }
    let whole = found.write_within(&bytes, LEAVE_LIMIT);
    STALLED.store(!whole, Ordering::SeqCst);
    whole
}

/// Reports whether the terminal had stalled when it was given back: writing a message to it would not return.
#[must_use]
pub fn is_stalled() -> bool {
    STALLED.load(Ordering::SeqCst)
}

/// Writes a text to the terminal that was given back, if it takes it within half a second.
pub fn last_words(text: &str) {
    if let Some(found) = FOUND.get().filter(|_| !is_stalled() && !is_taken()) {
        found.write_within(text.as_bytes(), LEAVE_LIMIT);
    }
}

/// Makes a panic leave a usable terminal with its report on a clean screen.
///
/// Only the main thread draws; a panic elsewhere is logged and ends its task alone. The reader of the terminal is started again.
pub fn restore_on_panic() {
    let report = panic::take_hook();
    panic::set_hook(Box::new(move |panic| {
        tracing::error!(%panic, "panic");
        if thread::current().name() == Some("main") {
            // The report goes to a terminal that would not take it: the log has it.
            if restore() {
                report(panic);
            }
        } else if !is_taken() && !is_stalled() {
            report(panic);
        }
    }));
}

/// A message of the reader thread.
#[derive(Debug, PartialEq, Eq)]
pub enum HostBytes {
    /// The bytes that the user typed, or that the terminal answered.
    Read(Vec<u8>),
    /// The terminal is gone.
    Closed,
}

/// The host terminal while we have it.
#[derive(Debug)]
pub struct Host {
    pub(super) bytes: mpsc::Receiver<HostBytes>,
    /// The sender that keeps the channel open after the reader has ended.
    _open: mpsc::Sender<HostBytes>,
    paused: Arc<Paused>,
    wake: OwnedFd,
    /// The number of the taking by which it is held.
    taken: u64,
    frames: std_mpsc::Sender<(u64, Vec<u8>)>,
    pub(super) written: mpsc::Receiver<()>,
    frame_in_flight: bool,
    /// True while another program has the terminal.
    lent: bool,
}

/// The pause of the reader: whether it should leave the terminal's bytes to another program, and whether it has noticed.
#[derive(Debug, Default)]
struct Paused {
    wanted: AtomicBool,
    reached: Mutex<Option<std_mpsc::Sender<()>>>,
}

impl Host {
    /// Takes the host terminal.
    pub fn enter() -> io::Result<Self> {
        let taken = take()?;
        let (sender, bytes) = mpsc::channel(READS_IN_FLIGHT);
        let (frames, to_write) = std_mpsc::channel::<(u64, Vec<u8>)>();
        let (done, written) = mpsc::channel(4);
        thread::Builder::new()
            .name("host writer".to_owned())
            .spawn(move || {
                while let Ok((taken, frame)) = to_write.recv() {
                    write_frame(taken, &frame);
                    IN_FLIGHT.fetch_sub(1, Ordering::SeqCst);
                    if done.blocking_send(()).is_err() {
                        break;
                    }
                }
            })?;
        let paused = Arc::new(Paused::default());
        let (woken, wake) = rustix::pipe::pipe_with(rustix::pipe::PipeFlags::CLOEXEC)?;
        read_in_background(sender.clone(), Arc::clone(&paused), woken)?;
        let mut host = Self {
            bytes,
            _open: sender,
            paused,
            wake,
            taken,
            frames,
            written,
            frame_in_flight: false,
            lent: false,
        };
        host.write([&enter(), QUERIES.as_bytes()].concat());
        Ok(host)
    }

    /// Reports whether a frame may be sent: the last one is out, and the terminal is ours.
    #[must_use]
    pub const fn is_ready(&self) -> bool {
        !self.frame_in_flight && !self.lent
    }

    /// Sends a frame, but not to a terminal that another program has: as much as it takes at once is written directly, because
    /// handing it to another thread would delay an echo, and the rest by the writer.
    pub fn write(&mut self, mut frame: Vec<u8>) {
        if self.lent {
            return;
        }
        if !self.frame_in_flight
            && let Some(found) = FOUND.get()
            // The writer finds out about errors.
            && let Ok(count) = found.write(&frame)
        {
            frame.drain(..count);
            if frame.is_empty() {
                return;
            }
        }
        self.frame_in_flight = true;
        IN_FLIGHT.fetch_add(1, Ordering::SeqCst);
        // The writer only ends when we drop the channel.
        let _ = self.frames.send((self.taken, frame));
    }

    /// Notes that a frame was written.
    pub const fn frame_written(&mut self) {
        self.frame_in_flight = false;
    }

    /// Leaves the terminal to another program until [`Host::take_back`]: no key is read and nothing is drawn meanwhile.
    pub fn lend(&mut self) -> io::Result<()> {
        let (reached, wait) = std_mpsc::channel();
        let slot = &self.paused.reached;
        *slot.lock().unwrap_or_else(PoisonError::into_inner) = Some(reached);
        self.paused.wanted.store(true, Ordering::SeqCst);
        rustix::io::write(&self.wake, b"p")?;
        // A reader that has ended (terminal gone) never answers.
        let _ = wait.recv_timeout(Duration::from_secs(1));
        self.settle();
        restore();
        self.lent = true;
        Ok(())
    }

    /// Takes the terminal back; harmless if it was not lent.
    pub fn take_back(&mut self) -> io::Result<()> {
        if !std::mem::take(&mut self.lent) {
            return Ok(());
        }
        self.taken = take()?;
        self.paused.wanted.store(false, Ordering::SeqCst);
        rustix::io::write(&self.wake, b"r")?;
        self.write(enter());
        Ok(())
    }

    /// Waits for the frame in flight, but not for a terminal that has stopped.
    fn settle(&mut self) {
        let limit = Instant::now() + SETTLE_LIMIT;
        while self.frame_in_flight && Instant::now() < limit {
            match self.written.try_recv() {
                Ok(()) => self.frame_in_flight = false,
                Err(mpsc::error::TryRecvError::Empty) => thread::sleep(Duration::from_millis(1)),
                Err(mpsc::error::TryRecvError::Disconnected) => break,
            }
        }
    }

    /// Stops this process as a shell's job, as `kill -TSTP` asks; returns when it is continued.
    pub fn suspend(&mut self) -> io::Result<()> {
        if self.lent {
            // The program that has the terminal is stopped by the same key, and keeps it.
            stop();
            return Ok(());
        }
        self.lend()?;
        stop();
        self.take_back()
    }
}

/// Stops this process until it is continued.
pub(super) fn stop() {
    let us = rustix::process::getpid();
    let _ = rustix::process::kill_process(us, rustix::process::Signal::STOP);
}

impl Drop for Host {
    fn drop(&mut self) {
        // The writer ends with its channel, after the frame that it may still hold.
        self.settle();
        restore();
    }
}

/// Writes a frame as the terminal takes it, until the terminal is given back.
fn write_frame(taken: u64, mut frame: &[u8]) {
    let Some(found) = FOUND.get() else { return };
    while !frame.is_empty() {
        let written = {
            let _writing = WRITING.lock().unwrap_or_else(PoisonError::into_inner);
            if TAKEN.load(Ordering::SeqCst) != taken {
                return;
            }
            found.write(frame)
        };
        match written {
            Ok(count) => frame = &frame[count..],
            Err(Errno::INTR) => {}
            Err(Errno::AGAIN) => {
                has_room(found.out(), WRITER_PATIENCE);
            }
            // A terminal that is gone is noticed by the reader.
            Err(_) => return,
        }
    }
}

/// Opens standard output's terminal with a descriptor of its own. Standard output itself cannot be made non-blocking: it
/// would be so for every program that shares it.
fn without_waits() -> Option<OwnedFd> {
    let name = rustix::termios::ttyname(io::stdout(), Vec::new()).ok()?;
    let flags = OFlags::WRONLY | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    rustix::fs::open(name, flags, Mode::empty()).ok()
}

/// The number of times that a reader that has panicked is started again, before the terminal counts as gone.
const READER_RESTARTS: usize = 3;

/// The reason why the reader has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ReadEnd {
    /// The terminal is gone.
    Closed,
    /// Its bytes are not wanted any more.
    Dropped,
}

/// Reads the terminal on a thread of its own: standard input cannot be read without blocking a thread, and
/// making it non-blocking would do so for every program that shares it.
fn read_in_background(
    sender: mpsc::Sender<HostBytes>,
    paused: Arc<Paused>,
    woken: OwnedFd,
) -> io::Result<()> {
    thread::Builder::new()
        .name("host reader".to_owned())
        .spawn(move || {
            if read_despite_panics(|| read(&sender, &paused, &woken)) == ReadEnd::Closed {
                let _ = sender.blocking_send(HostBytes::Closed);
            }
        })?;
    Ok(())
}

/// Reads again after a panic, which the panic hook has logged: without a reader no key would arrive any more, and nothing would
/// show why.
fn read_despite_panics(read: impl Fn() -> ReadEnd) -> ReadEnd {
    for _ in 0..=READER_RESTARTS {
        if let Ok(end) = panic::catch_unwind(AssertUnwindSafe(&read)) {
            return end;
        }
        tracing::error!("the reader of the host terminal has panicked");
    }
    ReadEnd::Closed
}

fn read(sender: &mpsc::Sender<HostBytes>, paused: &Paused, woken: &OwnedFd) -> ReadEnd {
    let stdin = io::stdin();
    let mut buffer = vec![0; READ_SIZE];
    loop {
        let pausing = paused.wanted.load(Ordering::SeqCst);
        if pausing
            && let Some(reached) = paused
                .reached
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
                .take()
        {
            let _ = reached.send(());
        }
        let (wake, input) = (woken.as_fd(), stdin.as_fd());
        let mut both = [
            PollFd::new(&wake, PollFlags::IN),
            PollFd::new(&input, PollFlags::IN),
        ];
        let watched = if pausing {
            &mut both[..1]
        } else {
            &mut both[..]
        };
        match poll(watched, None) {
            Ok(_) => {}
            Err(Errno::INTR) => continue,
            Err(_) => return ReadEnd::Closed,
        }
        let wake_ready = !both[0].revents().is_empty();
        let input_ready = !pausing && !both[1].revents().is_empty();
        if wake_ready {
            let mut byte = [0; 16];
            // The other end is closed when the host is dropped.
            if !matches!(rustix::io::read(woken, &mut byte), Ok(1..)) {
                return ReadEnd::Dropped;
            }
            continue;
        }
        if !input_ready {
            continue;
        }
        match rustix::io::read(&stdin, &mut buffer[..]) {
            Ok(0) => return ReadEnd::Closed,
            Ok(count) => {
                let read = HostBytes::Read(buffer[..count].to_vec());
                if sender.blocking_send(read).is_err() {
                    return ReadEnd::Dropped;
                }
            }
            Err(Errno::INTR | Errno::AGAIN) => {}
            Err(_) => return ReadEnd::Closed,
        }
    }
}

/// The most columns and rows that are drawn: beyond any screen. A terminal that reports more is drawn on only up to these, so that
/// memory that is requested by a number has a bound.
const MOST: (u16, u16) = (1000, 500);

/// Returns the size of the host terminal in cells: columns, rows.
#[must_use]
pub fn size() -> (u16, u16) {
    match crossterm::terminal::size() {
        Ok((columns, rows)) if columns > 0 && rows > 0 => (columns.min(MOST.0), rows.min(MOST.1)),
        _ => (80, 24),
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;

    #[test]
    fn a_reader_that_panics_is_started_again_and_then_given_up() {
        let times = Cell::new(0);
        let panicking = |faults: usize| {
            times.set(0);
            read_despite_panics(|| {
                times.set(times.get() + 1);
                assert!(times.get() > faults, "a fault of the reader");
                ReadEnd::Dropped
            })
        };
        assert_eq!((panicking(0), times.get()), (ReadEnd::Dropped, 1));
        assert_eq!((panicking(2), times.get()), (ReadEnd::Dropped, 3));
        assert_eq!((panicking(9), times.get()), (ReadEnd::Closed, 4));
    }
}
