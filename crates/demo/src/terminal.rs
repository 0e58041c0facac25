//! The demo's terminal: raw mode, its modes on and off, and the input from it and by signal.

use std::{
    io::{self, IsTerminal as _, Read as _},
    sync::mpsc::Sender,
    thread,
};

use crossterm::terminal::{disable_raw_mode, enable_raw_mode};
use serde_json::Value;
use tokio::signal::unix::{SignalKind, signal};

use super::draw::write_all;

/// An event that reaches the session from outside.
#[derive(Debug)]
pub enum Incoming {
    /// One read from the terminal.
    Bytes(Vec<u8>),
    /// A signal or a terminal that is gone ends the session with this exit code.
    Ended(i32),
    /// The terminal has another size.
    Resized,
    /// The status line command's output.
    StatusLine(String),
    /// The bridge has an order, and its outcome goes to this sender.
    Order(Value, Sender<Value>),
}

/// Switches to raw mode and opens the session's modes.
pub fn open() -> io::Result<()> {
    // If standard input is no terminal, crossterm would take another one.
    if io::stdin().is_terminal() {
        enable_raw_mode()?;
    }
    write_all("\x1b[?25l\x1b[?2004h\x1b[?1004h")
}

/// Gives the terminal back with these last words; one that is gone needs none.
pub fn close(farewell: &str) {
    let _ = write_all(&format!(
        "{farewell}\x1b[?1004l\x1b[?2004l\x1b[?25h\x1b]0;\x07"
    ));
    let _ = disable_raw_mode();
}

/// Reads the terminal until it closes.
pub fn read_input(to: Sender<Incoming>) {
    thread::spawn(move || {
        let mut buffer = vec![0; 65536];
        loop {
            let incoming = match io::stdin().lock().read(&mut buffer) {
                Ok(count @ 1..) => Incoming::Bytes(buffer[..count].to_vec()),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Ok(0) | Err(_) => Incoming::Ended(129),
            };
            let closed = matches!(incoming, Incoming::Ended(_));
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
        (SignalKind::interrupt(), || Incoming::Ended(0)),
        (SignalKind::hangup(), || Incoming::Ended(129)),
        (SignalKind::terminate(), || Incoming::Ended(143)),
        (SignalKind::window_change(), || Incoming::Resized),
    ];
    let _inside = runtime.enter();
    for (kind, incoming) in kinds {
        let (mut stream, to) = (signal(kind)?, to.clone());
        runtime.spawn(async move {
            while stream.recv().await.is_some() && to.send(incoming()).is_ok() {}
        });
    }
    thread::spawn(move || runtime.block_on(std::future::pending::<()>()));
    Ok(())
}
