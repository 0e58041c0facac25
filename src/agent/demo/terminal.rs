//! The demo's terminal: raw mode, its modes on and off, and what comes in from it and by signal.

use std::{
    io::{self, IsTerminal as _, Read as _},
    sync::mpsc::Sender,
    thread,
};

use crossterm::terminal::{disable_raw_mode, enable_raw_mode};
use rustix::termios::tcgetwinsize;
use serde_json::Value;
use tokio::signal::unix::{SignalKind, signal};

use super::draw::write_all;

/// Paste marks; the cursor is drawn, not shown.
const OPEN: &str = "\x1b[?25l\x1b[?2004h";

const CLOSE: &str = "\x1b[?2004l\x1b[?25h\x1b]0;\x07";

/// What reaches the session from outside.
#[derive(Debug)]
pub enum Incoming {
    /// One read from the terminal.
    Bytes(Vec<u8>),
    /// The terminal is gone.
    Closed,
    /// SIGINT.
    Interrupt,
    /// SIGHUP.
    Hangup,
    /// SIGTERM.
    Terminate,
    /// SIGWINCH.
    Resized,
    /// The status line command's output.
    StatusLine(String),
    /// The bridge has an order, and its outcome goes there.
    Order(Value, Sender<Value>),
}

/// The terminal in raw mode; restored when dropped.
pub struct Terminal;

impl Terminal {
    /// Switches to raw mode and opens the session's modes.
    pub fn open() -> io::Result<Self> {
        // crossterm would take any other terminal where standard input is none.
        if io::stdin().is_terminal() {
            enable_raw_mode()?;
        }
        let terminal = Self;
        write_all(OPEN)?;
        Ok(terminal)
    }

    /// The size in columns and rows; zeros if the terminal does not say.
    pub fn size() -> (u16, u16) {
        tcgetwinsize(io::stdout()).map_or((0, 0), |size| (size.ws_col, size.ws_row))
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        // A terminal that is gone needs no restoring.
        let _ = write_all(CLOSE);
        let _ = disable_raw_mode();
    }
}

/// Reads the terminal until it closes.
pub fn read_input(to: Sender<Incoming>) {
    thread::spawn(move || {
        let mut buffer = vec![0; 65536];
        loop {
            let incoming = match io::stdin().lock().read(&mut buffer) {
                Ok(count @ 1..) => Incoming::Bytes(buffer[..count].to_vec()),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Ok(0) | Err(_) => Incoming::Closed,
            };
            let closed = matches!(incoming, Incoming::Closed);
            if to.send(incoming).is_err() || closed {
                return;
            }
        }
    });
}

/// Turns signals into [`Incoming`]; they are caught from the moment this returns.
pub fn catch_signals(to: &Sender<Incoming>) -> io::Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_io()
        .build()?;
    let kinds: [(SignalKind, fn() -> Incoming); 4] = [
        (SignalKind::interrupt(), || Incoming::Interrupt),
        (SignalKind::hangup(), || Incoming::Hangup),
        (SignalKind::terminate(), || Incoming::Terminate),
        (SignalKind::window_change(), || Incoming::Resized),
    ];
    let _inside = runtime.enter();
    for (kind, incoming) in kinds {
        let mut stream = signal(kind)?;
        let to = to.clone();
        runtime.spawn(async move {
            while stream.recv().await.is_some() {
                if to.send(incoming()).is_err() {
                    return;
                }
            }
        });
    }
    thread::spawn(move || runtime.block_on(std::future::pending::<()>()));
    Ok(())
}
