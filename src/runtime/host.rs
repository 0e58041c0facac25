//! The host terminal: raw mode, its bytes, frames out, and its restoration on every way out.
//!
//! ```text
//!   stdin  ── reader thread ──► bounded channel ──► loop
//!   stdout ◄── what it takes at once ◄────── one frame at a time ◄── loop
//!     ▲─────── writer thread ◄── the rest ◄──────┘                (a slow terminal never stops the loop)
//! ```

use std::{
    io::{self, Write},
    os::fd::{AsFd, OwnedFd},
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicBool, Ordering},
        mpsc as std_mpsc,
    },
    thread,
    time::Duration,
};

use rustix::{
    event::{PollFd, PollFlags, poll},
    fs::{Mode, OFlags},
    io::Errno,
};
use tokio::sync::mpsc;

/// Bytes read from the host terminal at once.
const READ_SIZE: usize = 64 * 1024;

/// How many reads may wait for the loop: a paste of any size is held back in the kernel beyond that.
const READS_IN_FLIGHT: usize = 16;

/// What is asked of the host terminal for our time: its title kept, alternate screen, hidden cursor, bracketed paste, focus,
/// buttons and drags in the SGR form, changes of the colour scheme.
const ENTER: &str = "\x1b[22;2t\x1b[?1049h\x1b[?25l\x1b[?2004h\x1b[?1004h\x1b[?1000h\x1b[?1002h\x1b[?1006h\x1b[?2031h\x1b[2J";

/// What we want to know of it; DA1 comes last because every terminal answers it. The answers come in with
/// the keys: nothing waits for them.
const QUERIES: &str = "\x1b]10;?\x1b\\\x1b]11;?\x1b\\\x1b[?u\x1b[?2026$p\x1b[?996n\x1b[c";

/// Everything of `ENTER` taken back, and what frames may have left: keyboard flags, moves of the mouse, attributes,
/// cursor shape, a synchronized frame. Cleared first: a terminal that has grown since `ENTER` (tmux) keeps rows of ours else.
const LEAVE: &str = "\x1b]2;\x1b\\\x1b[23;2t\x1b[?2026l\x1b[<u\x1b[>4m\x1b[?2031l\x1b[?1006l\x1b[?1003l\x1b[?1002l\x1b[?1000l\x1b[?1004l\x1b[?2004l\x1b[0m\x1b[2J\x1b[0 q\x1b[?1049l\x1b[?25h";

/// How the host terminal tells keys apart that have one byte in common, such as Shift+Enter and Enter.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum HostKeys {
    /// Not that we know of.
    #[default]
    Alike,
    /// By the kitty protocol.
    Kitty,
    /// By xterm's `modifyOtherKeys`, if at all: there is no answer that tells. xterm and tmux (`extended-keys on`) do.
    Other,
}

impl HostKeys {
    /// What is known once the terminal has told its keyboard flags, or has answered DA1 without having done so.
    #[must_use]
    pub const fn learned(self, kitty: bool) -> Self {
        match (self, kitty) {
            (_, true) => Self::Kitty,
            (Self::Alike, false) => Self::Other,
            (known, false) => known,
        }
    }

    /// What asks for it; `LEAVE` takes it back. "Disambiguate" is enough, and so is the level that leaves every key as it is
    /// that has a form of its own. Terminals that take the second one for attributes are set right at once.
    #[must_use]
    pub const fn request(self) -> &'static [u8] {
        match self {
            Self::Alike => b"",
            Self::Kitty => b"\x1b[>1u",
            Self::Other => b"\x1b[>4;1m\x1b[0m",
        }
    }
}

static ENTERED: AtomicBool = AtomicBool::new(false);

/// Gives the host terminal back as it was; harmless when it was not taken.
pub fn restore() {
    if ENTERED.swap(false, Ordering::SeqCst) {
        let mut out = io::stdout().lock();
        // The terminal may be gone: there is nobody left to tell.
        let _ = out.write_all(LEAVE.as_bytes());
        let _ = out.flush();
        let _ = crossterm::terminal::disable_raw_mode();
    }
}

/// Makes a panic leave a usable terminal with its report on a clean screen.
///
/// Only the main thread draws; a panic elsewhere is logged and ends its task alone.
pub fn restore_on_panic() {
    let report = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic| {
        tracing::error!(%panic, "panic");
        if thread::current().name() == Some("main") {
            restore();
            report(panic);
        } else if !ENTERED.load(Ordering::SeqCst) {
            report(panic);
        }
    }));
}

/// What the reader thread tells.
#[derive(Debug, PartialEq, Eq)]
pub enum HostBytes {
    /// The user did something, or the terminal answers.
    Read(Vec<u8>),
    /// The terminal is gone.
    Closed,
}

/// The host terminal while we have it.
#[derive(Debug)]
pub struct Host {
    pub(super) bytes: mpsc::Receiver<HostBytes>,
    sender: mpsc::Sender<HostBytes>,
    paused: Arc<Paused>,
    wake: OwnedFd,
    /// The terminal opened anew, so that a write does not wait; `None` where it cannot be.
    direct: Option<OwnedFd>,
    frames: std_mpsc::Sender<Vec<u8>>,
    pub(super) written: mpsc::Receiver<()>,
    frame_in_flight: bool,
    /// Another program has the terminal.
    lent: bool,
    writer: Option<thread::JoinHandle<()>>,
}

/// Whether the reader leaves the terminal's bytes to another program, and whether it has noticed.
#[derive(Debug, Default)]
struct Paused {
    wanted: AtomicBool,
    reached: Mutex<Option<std_mpsc::Sender<()>>>,
}

impl Host {
    /// Takes the host terminal.
    pub fn enter() -> io::Result<Self> {
        crossterm::terminal::enable_raw_mode()?;
        ENTERED.store(true, Ordering::SeqCst);
        let (sender, bytes) = mpsc::channel(READS_IN_FLIGHT);
        let (frames, to_write) = std_mpsc::channel::<Vec<u8>>();
        let (done, written) = mpsc::channel(4);
        let writer = thread::Builder::new()
            .name("host writer".to_owned())
            .spawn(move || {
                while let Ok(frame) = to_write.recv() {
                    let mut out = io::stdout().lock();
                    // A terminal that is gone is noticed by the reader.
                    let _ = out.write_all(&frame).and_then(|()| out.flush());
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
            sender,
            paused,
            wake,
            direct: without_waits(),
            frames,
            written,
            frame_in_flight: false,
            lent: false,
            writer: Some(writer),
        };
        host.write(format!("{ENTER}{QUERIES}").into_bytes());
        Ok(host)
    }

    /// Whether a frame may be sent: the last one is out, and the terminal is ours.
    #[must_use]
    pub const fn is_ready(&self) -> bool {
        !self.frame_in_flight && !self.lent
    }

    /// Sends a frame, but not to a terminal that another program has: as much as it takes at once from here, for a thread
    /// more on its way is what an echo waits for, and the rest from the writer.
    pub fn write(&mut self, mut frame: Vec<u8>) {
        if self.lent {
            return;
        }
        if !self.frame_in_flight
            && let Some(terminal) = &self.direct
            // The writer finds out about errors.
            && let Ok(count) = rustix::io::write(terminal, &frame)
        {
            frame.drain(..count);
            if frame.is_empty() {
                return;
            }
        }
        self.frame_in_flight = true;
        // The writer only ends when we drop the channel.
        let _ = self.frames.send(frame);
    }

    /// A frame is out.
    pub const fn frame_written(&mut self) {
        self.frame_in_flight = false;
    }

    /// Leaves the terminal to another program until [`Host::take_back`]: no key is read and nothing is drawn meanwhile.
    pub fn lend(&mut self) -> io::Result<()> {
        let (reached, wait) = std_mpsc::channel();
        *self
            .paused
            .reached
            .lock()
            .unwrap_or_else(PoisonError::into_inner) = Some(reached);
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
        crossterm::terminal::enable_raw_mode()?;
        ENTERED.store(true, Ordering::SeqCst);
        self.paused.wanted.store(false, Ordering::SeqCst);
        rustix::io::write(&self.wake, b"r")?;
        self.write(ENTER.as_bytes().to_vec());
        Ok(())
    }

    /// Waits for the frame in flight, but not for a terminal that has stopped.
    fn settle(&mut self) {
        let limit = std::time::Instant::now() + Duration::from_millis(500);
        while self.frame_in_flight && std::time::Instant::now() < limit {
            match self.written.try_recv() {
                Ok(()) => self.frame_in_flight = false,
                Err(mpsc::error::TryRecvError::Empty) => thread::sleep(Duration::from_millis(1)),
                Err(mpsc::error::TryRecvError::Disconnected) => break,
            }
        }
    }

    /// Stops itself as a shell's job, as `kill -TSTP` asks; returns when it is continued.
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
        self.settle();
        let (closed, _) = std_mpsc::channel();
        self.frames = closed;
        if let Some(writer) = self.writer.take()
            && !self.frame_in_flight
        {
            let _ = writer.join();
        }
        let _ = &self.sender;
        restore();
    }
}

/// Standard output's terminal by a descriptor of its own. Standard output itself cannot be told not to wait: whoever
/// shares it would not either.
fn without_waits() -> Option<OwnedFd> {
    let name = rustix::termios::ttyname(io::stdout(), Vec::new()).ok()?;
    let flags = OFlags::WRONLY | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    rustix::fs::open(name, flags, Mode::empty()).ok()
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
                    Err(_) => break,
                }
                let (wake_ready, input_ready) = (
                    !both[0].revents().is_empty(),
                    !pausing && !both[1].revents().is_empty(),
                );
                if wake_ready {
                    let mut byte = [0; 16];
                    // The other end is closed when the host is dropped.
                    if !matches!(rustix::io::read(&woken, &mut byte), Ok(1..)) {
                        return;
                    }
                    continue;
                }
                if !input_ready {
                    continue;
                }
                match rustix::io::read(&stdin, &mut buffer[..]) {
                    Ok(0) => break,
                    Ok(count) => {
                        if sender
                            .blocking_send(HostBytes::Read(buffer[..count].to_vec()))
                            .is_err()
                        {
                            return;
                        }
                    }
                    Err(Errno::INTR | Errno::AGAIN) => {}
                    Err(_) => break,
                }
            }
            let _ = sender.blocking_send(HostBytes::Closed);
        })?;
    Ok(())
}

/// The most columns and rows that are drawn: beyond any screen. A terminal that reports more is drawn on so far, for memory
/// that is asked for by a number is to have a bound.
const MOST: (u16, u16) = (1000, 500);

/// The size of the host terminal in cells: columns, rows.
#[must_use]
pub fn size() -> (u16, u16) {
    match crossterm::terminal::size() {
        Ok((columns, rows)) if columns > 0 && rows > 0 => (columns.min(MOST.0), rows.min(MOST.1)),
        _ => (80, 24),
    }
}
