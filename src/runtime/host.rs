//! A host terminal by the descriptors that its client has handed over: its bytes in, and frames out.
//!
//! ```text
//!   input  ── reader thread ──► bounded channel ──► loop
//!   output ◄── what it takes at once ◄────── one frame at a time ◄── loop
//!     ▲─────── writer thread ◄── the rest ◄──────┘                 (a slow terminal never stops the loop)
//! ```
//!
//! No write here ever waits in the kernel: where there is no room it is waited for with a limit.

use std::{
    io,
    os::fd::{AsFd, OwnedFd},
    panic::{self, AssertUnwindSafe},
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicUsize, Ordering},
        mpsc as std_mpsc,
    },
    thread,
    time::{Duration, Instant},
};

use crossterm::{event, queue, style};
use parking_lot::Mutex;
use rustix::{
    event::{PollFd, PollFlags, poll},
    io::Errno,
};
use tokio::sync::mpsc;

use super::{
    output::{Gate, Output, WRITER_PATIENCE},
    tty,
};

/// The number of bytes read from the host terminal at once.
const READ_SIZE: usize = 64 * 1024;

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

/// The time that the reader may take to notice that it should pause.
const PAUSE_LIMIT: Duration = Duration::from_secs(1);

/// The time that the last frame may take before it is cut.
const SETTLE_LIMIT: Duration = Duration::from_millis(250);

/// The name of an attached terminal: no two have the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TerminalId(pub u64);

/// A message of the reader thread.
#[derive(Debug, PartialEq, Eq)]
pub enum HostBytes {
    /// The bytes that the user typed, or that the terminal answered.
    Read(Vec<u8>),
    /// The terminal is gone.
    Closed,
}

/// The channels on which all host terminals report.
#[derive(Clone, Debug)]
pub struct HostSenders {
    /// What was read of a terminal.
    pub bytes: mpsc::Sender<(TerminalId, HostBytes)>,
    /// A notice for each frame that was written completely, or dropped.
    pub written: mpsc::UnboundedSender<TerminalId>,
}

/// A host terminal while we have it.
#[derive(Debug)]
pub struct Host {
    output: Arc<Output>,
    gate: Arc<Gate>,
    /// The number by which frames pass the gate.
    number: u64,
    paused: Arc<Paused>,
    wake: OwnedFd,
    frames: std_mpsc::Sender<(u64, Vec<u8>)>,
    /// The number of frames that the writer has; shared with it, so that leaving need not read the loop's channel.
    in_flight: Arc<AtomicUsize>,
    /// True from the sending of a frame to the writer until the loop has noted that all are written.
    waits: bool,
    /// True while it is left alone: before its client has taken it, or while another program has it.
    is_paused: bool,
    /// True once it was asked for its abilities.
    was_asked: bool,
}

/// The pause of the reader: whether it should leave the terminal's bytes alone, and whether it has noticed.
#[derive(Debug, Default)]
struct Paused {
    wanted: AtomicBool,
    /// True once the reader has ended.
    ended: AtomicBool,
    reached: Mutex<Option<std_mpsc::Sender<()>>>,
}

impl Host {
    /// Makes a terminal ready, which is left alone until [`Host::take`].
    pub fn new(
        id: TerminalId,
        input: OwnedFd,
        output: OwnedFd,
        senders: HostSenders,
    ) -> io::Result<Self> {
        let output = Arc::new(Output::new(output));
        let gate = Arc::new(Gate::default());
        let in_flight = Arc::new(AtomicUsize::new(0));
        let (frames, to_write) = std_mpsc::channel::<(u64, Vec<u8>)>();
        let (for_writer, its_output) = (Arc::clone(&gate), Arc::clone(&output));
        let its_flight = Arc::clone(&in_flight);
        thread::Builder::new()
            .name("host writer".to_owned())
            .spawn(move || {
                while let Ok((number, frame)) = to_write.recv() {
                    write_frame(number, &for_writer, &its_output, &frame);
                    its_flight.fetch_sub(1, Ordering::SeqCst);
                    if senders.written.send(id).is_err() {
                        break;
                    }
                }
            })?;
        let paused = Arc::new(Paused {
            wanted: AtomicBool::new(true),
            ..Paused::default()
        });
        let (woken, wake) = rustix::pipe::pipe_with(rustix::pipe::PipeFlags::CLOEXEC)?;
        read_in_background(id, input, senders.bytes, Arc::clone(&paused), woken)?;
        Ok(Self {
            output,
            gate,
            number: 0,
            paused,
            wake,
            frames,
            in_flight,
            waits: false,
            is_paused: true,
            was_asked: false,
        })
    }

    /// Returns the terminal's size in cells: columns, rows.
    pub fn size(&self) -> Option<(u16, u16)> {
        self.output.size()
    }

    /// Reports whether a frame may be sent: the last one is out, and the terminal is ours.
    pub const fn is_ready(&self) -> bool {
        !self.waits && !self.is_paused
    }

    /// Sends a frame, but not to a terminal that is left alone: as much as it takes at once is written directly, because
    /// handing it to another thread would delay an echo, and the rest by the writer.
    pub fn write(&mut self, mut frame: Vec<u8>) {
        if self.is_paused {
            return;
        }
        if !self.waits
            // The writer finds out about errors.
            && let Some(Ok(count)) = self.gate.write(self.number, &self.output, &frame)
        {
            frame.drain(..count);
            if frame.is_empty() {
                return;
            }
        }
        self.waits = true;
        self.in_flight.fetch_add(1, Ordering::SeqCst);
        // The writer only ends when we drop the channel.
        let _ = self.frames.send((self.number, frame));
    }

    /// Notes that a frame was written.
    pub fn frame_written(&mut self) {
        self.waits = self.in_flight.load(Ordering::SeqCst) > 0;
    }

    /// Leaves the terminal alone until [`Host::take`]: no key is read and nothing is drawn meanwhile.
    pub fn pause(&mut self) -> io::Result<()> {
        if self.is_paused {
            return Ok(());
        }
        let (reached, wait) = std_mpsc::channel();
        *self.paused.reached.lock() = Some(reached);
        self.paused.wanted.store(true, Ordering::SeqCst);
        rustix::io::write(&self.wake, b"p")?;
        if self.paused.ended.load(Ordering::SeqCst) {
            self.paused.reached.lock().take();
        }
        let _ = wait.recv_timeout(PAUSE_LIMIT);
        self.settle();
        self.gate.close();
        self.is_paused = true;
        Ok(())
    }

    /// Begins to read and draw, or does so again, on a terminal that its client has taken. The first time it is asked for its abilities.
    pub fn take(&mut self) -> io::Result<()> {
        if !std::mem::take(&mut self.is_paused) {
            return Ok(());
        }
        self.number = self.gate.open();
        self.paused.wanted.store(false, Ordering::SeqCst);
        rustix::io::write(&self.wake, b"r")?;
        self.write(tty::enter());
        if !std::mem::replace(&mut self.was_asked, true) {
            self.write(tty::QUERIES.into());
        }
        Ok(())
    }

    /// Waits for the frame in flight, but not for a terminal that has stopped.
    fn settle(&self) {
        let limit = Instant::now() + SETTLE_LIMIT;
        while self.in_flight.load(Ordering::SeqCst) > 0 && Instant::now() < limit {
            thread::sleep(Duration::from_millis(1));
        }
    }
}

impl Drop for Host {
    fn drop(&mut self) {
        // The reader and the writer end with their channels; until then neither touches the terminal.
        if self.pause().is_err() {
            self.gate.close();
        }
    }
}

/// Writes a frame as the terminal takes it, until the terminal is given back.
fn write_frame(number: u64, gate: &Gate, output: &Output, mut frame: &[u8]) {
    while !frame.is_empty() {
        match gate.write(number, output, frame) {
            Some(Ok(count)) => frame = &frame[count..],
            Some(Err(Errno::INTR)) => {}
            Some(Err(Errno::AGAIN)) => {
                output.has_room(WRITER_PATIENCE);
            }
            // A terminal that is gone is noticed by the reader.
            Some(Err(_)) | None => return,
        }
    }
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

/// Reads the terminal on a thread of its own: it cannot be read without blocking a thread, and making its descriptor non-blocking
/// would do so for every program that shares it.
fn read_in_background(
    id: TerminalId,
    input: OwnedFd,
    sender: mpsc::Sender<(TerminalId, HostBytes)>,
    paused: Arc<Paused>,
    woken: OwnedFd,
) -> io::Result<()> {
    thread::Builder::new()
        .name("host reader".to_owned())
        .spawn(move || {
            let end = read_despite_panics(|| read(id, &input, &sender, &paused, &woken));
            paused.ended.store(true, Ordering::SeqCst);
            // This releases a caller that waits for the pause.
            paused.reached.lock().take();
            if end == ReadEnd::Closed {
                let _ = sender.blocking_send((id, HostBytes::Closed));
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

fn read(
    id: TerminalId,
    input: &OwnedFd,
    sender: &mpsc::Sender<(TerminalId, HostBytes)>,
    paused: &Paused,
    woken: &OwnedFd,
) -> ReadEnd {
    let mut buffer = vec![0; READ_SIZE];
    loop {
        let pausing = paused.wanted.load(Ordering::SeqCst);
        if pausing && let Some(reached) = paused.reached.lock().take() {
            let _ = reached.send(());
        }
        let (wake, terminal) = (woken.as_fd(), input.as_fd());
        let mut both = [
            PollFd::new(&wake, PollFlags::IN),
            PollFd::new(&terminal, PollFlags::IN),
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
        match rustix::io::read(input, &mut buffer[..]) {
            Ok(0) => return ReadEnd::Closed,
            Ok(count) => {
                let read = HostBytes::Read(buffer[..count].to_vec());
                if sender.blocking_send((id, read)).is_err() {
                    return ReadEnd::Dropped;
                }
            }
            Err(Errno::INTR | Errno::AGAIN) => {}
            Err(_) => return ReadEnd::Closed,
        }
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
