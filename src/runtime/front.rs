//! The supervisor's output for a person: the host terminal with its frames, or lines on standard output.
//!
//! The loop is the same for both. A headless run has no terminal at all, and a run whose terminal is lost may go on as a
//! headless one: then the terminal is given up here and nothing else changes.

use std::{
    io::{self, Write as _},
    sync::mpsc,
    thread,
    time::{Duration, Instant},
};

use chrono::{DateTime, Utc};

use pitstop_base::redact;
use pitstop_core::autopilot::RunEvent;

use super::{
    Woken,
    host::{self, Host},
};

/// The size in cells of the terminal that a headless run pretends to have: the pane gets all of it but the footer.
pub const HEADLESS: (u16, u16) = (120, 41);

/// The number of lines that may wait for a reader that does not read: those beyond are dropped here but are in the log.
const LINES: usize = 1024;

/// The time that the last lines may take when we leave.
const LAST_LINES: Duration = Duration::from_millis(500);

/// The output format of a headless run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Speech {
    /// A line per event, for people.
    Lines,
    /// A JSON object per event, each on a line of its own.
    Json,
}

/// The output of the supervisor: the host terminal, lines, or neither once the terminal is lost.
#[derive(Debug)]
pub struct Front {
    host: Option<Host>,
    lines: Option<Lines>,
}

#[derive(Debug)]
struct Lines {
    speech: Speech,
    sender: Option<mpsc::SyncSender<String>>,
    writer: Option<thread::JoinHandle<()>>,
}

impl Front {
    /// Takes the host terminal.
    pub fn terminal() -> io::Result<Self> {
        Ok(Self {
            host: Some(Host::enter()?),
            lines: None,
        })
    }

    /// Reports in lines on standard output. A thread of its own writes them: a reader that has stopped stops nothing else.
    pub fn headless(speech: Speech) -> io::Result<Self> {
        let (sender, lines) = mpsc::sync_channel::<String>(LINES);
        let writer = thread::Builder::new()
            .name("lines".to_owned())
            .spawn(move || {
                while let Ok(line) = lines.recv() {
                    let mut out = io::stdout().lock();
                    // Their reader has gone; the log has them too.
                    let _ = writeln!(out, "{line}").and_then(|()| out.flush());
                }
            })?;
        Ok(Self {
            host: None,
            lines: Some(Lines {
                speech,
                sender: Some(sender),
                writer: Some(writer),
            }),
        })
    }

    /// Reports whether there is a host terminal.
    #[must_use]
    pub const fn has_terminal(&self) -> bool {
        self.host.is_some()
    }

    /// Returns the size in cells: columns, rows. The size of a lost terminal stays as it was.
    #[must_use]
    pub fn size(&self, last: (u16, u16)) -> (u16, u16) {
        match (&self.host, &self.lines) {
            (Some(_), _) => host::size(),
            (None, Some(_)) => HEADLESS,
            (None, None) => last,
        }
    }

    /// Waits for the next message of the host terminal; never returns if there is none.
    pub(super) async fn next(&mut self) -> Woken {
        let Some(host) = &mut self.host else {
            return std::future::pending().await;
        };
        tokio::select! {
            biased;
            Some(bytes) = host.bytes.recv() => Woken::Host(bytes),
            Some(()) = host.written.recv() => Woken::Written,
            // Both have their senders in the host itself.
            else => std::future::pending().await,
        }
    }

    /// Reports whether a frame may be sent.
    #[must_use]
    pub fn is_ready(&self) -> bool {
        self.host.as_ref().is_some_and(Host::is_ready)
    }

    /// Sends a frame.
    pub fn write(&mut self, frame: Vec<u8>) {
        if let Some(host) = &mut self.host {
            host.write(frame);
        }
    }

    /// Notes that a frame was written.
    pub const fn frame_written(&mut self) {
        if let Some(host) = &mut self.host {
            host.frame_written();
        }
    }

    /// Leaves the terminal to another program until it is taken back: no key is read and nothing is drawn meanwhile.
    pub fn lend(&mut self) -> io::Result<()> {
        self.host.as_mut().map_or(Ok(()), Host::lend)
    }

    /// Takes the terminal back; harmless if it was not lent.
    pub fn take_back(&mut self) -> io::Result<()> {
        self.host.as_mut().map_or(Ok(()), Host::take_back)
    }

    /// Stops this process as a shell's job; returns when it is continued.
    pub fn suspend(&mut self) -> io::Result<()> {
        let Some(host) = &mut self.host else {
            host::stop();
            return Ok(());
        };
        host.suspend()
    }

    /// Gives the terminal up: it is gone.
    pub fn lose_terminal(&mut self) {
        drop(self.host.take());
    }

    /// Reports an event of the run.
    pub fn report(&self, event: &RunEvent, at: DateTime<Utc>, run: &str) {
        let Some(lines) = &self.lines else { return };
        let line = match lines.speech {
            Speech::Lines => redact::redact(&event.line(at)).into_owned(),
            Speech::Json => redact::json(&event.json_line(at, run)).into_owned(),
        };
        if let Some(sender) = &lines.sender
            && sender.try_send(line).is_err()
        {
            tracing::warn!("the lines of the run have no reader: one is dropped");
        }
    }
}

impl Drop for Lines {
    fn drop(&mut self) {
        self.sender = None;
        let Some(writer) = self.writer.take() else {
            return;
        };
        // A pipe without a reader must not keep us.
        let limit = Instant::now() + LAST_LINES;
        while !writer.is_finished() && Instant::now() < limit {
            thread::sleep(Duration::from_millis(1));
        }
    }
}
