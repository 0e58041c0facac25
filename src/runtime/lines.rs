//! The events of a headless run as lines on standard output.

use std::{
    io::{self, Write as _},
    sync::mpsc,
    thread,
    time::{Duration, Instant},
};

use chrono::{DateTime, Utc};

use pitstop_base::redact;
use pitstop_core::autopilot::RunEvent;

/// The size in cells of the terminal that a headless run pretends to have: the pane gets all of it but the footer.
pub const HEADLESS: (u16, u16) = (120, 41);

/// The number of lines that may wait for a reader that does not read: those beyond are dropped here but are in the log.
const LINES: usize = 1024;

/// The time that the last lines may take when we leave.
const LAST_LINES: Duration = Duration::from_millis(500);

/// The output format of a headless run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LineFormat {
    /// A line per event, for people.
    Lines,
    /// A JSON object per event, each on a line of its own.
    Json,
}

/// The writer of the lines.
#[derive(Debug)]
pub struct Lines {
    line_format: LineFormat,
    sender: Option<mpsc::SyncSender<String>>,
    writer: Option<thread::JoinHandle<()>>,
}

impl Lines {
    /// Writes to standard output. A thread of its own does so: a reader that has stopped stops nothing else.
    pub fn new(line_format: LineFormat) -> io::Result<Self> {
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
            line_format,
            sender: Some(sender),
            writer: Some(writer),
        })
    }

    /// Reports an event of the run.
    pub fn report(&self, event: &RunEvent, at: DateTime<Utc>, run: &str) {
        let line = match self.line_format {
            LineFormat::Lines => redact::redact(&event.line(at)).into_owned(),
            LineFormat::Json => redact::json(&event.json_line(at, run)).into_owned(),
        };
        if let Some(sender) = &self.sender
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
