//! The terminal of a process that attaches: taken for our use, and given back as it was found on every way out. The supervisor,
//! which draws on it, is another process, and has let go of it before.
//!
//! No write here ever waits in the kernel: where there is no room it is waited for with a limit. So [`restore`] always returns,
//! whatever lock is held and however long the terminal has stalled.

use std::{
    io, panic,
    sync::{
        OnceLock,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use crossterm::{cursor, event, queue, style, terminal};
use rustix::termios::{OptionalActions, Termios, tcgetattr, tcsetattr};

use super::output::Output;

/// The sequences at entry that crossterm has no command for: the title is saved and changes of the colour scheme are reported;
/// buttons and drags come in the SGR form without every move, because its mouse mode requests those too.
const ENTER_OURS: &str = "\x1b[22;2t\x1b[?1000h\x1b[?1002h\x1b[?1006h\x1b[?2031h";

/// The sequences at exit, likewise: the title is restored, `modifyOtherKeys` (`host::HostKeys::Other`) and scheme changes end.
const LEAVE_OURS: &str = "\x1b]2;\x1b\\\x1b[23;2t\x1b[>4m\x1b[?2031l";

/// The queries to the host terminal; DA1 comes last because every terminal answers it. The answers come in with
/// the keys: nothing waits for them.
pub(super) const QUERIES: &str =
    "\x1b]10;?\x1b\\\x1b]11;?\x1b\\\x1b[?u\x1b[?2026$p\x1b[?996n\x1b[c";

/// Returns the sequences that set the host terminal up for our use.
pub fn enter() -> Vec<u8> {
    let mut bytes = Vec::new();
    // A vector takes everything.
    let _ = queue!(
        bytes,
        style::Print(ENTER_OURS),
        terminal::EnterAlternateScreen,
        // What a terminal that joins less than we do has no room for in a row is not written over the next one.
        terminal::DisableLineWrap,
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
        terminal::EnableLineWrap,
        terminal::LeaveAlternateScreen,
        cursor::Show,
    );
    bytes
}

/// The bytes that end a sequence in which a frame was cut, and a link that it had begun.
const CUT: &str = "\x18\x1b]8;;\x1b\\";

/// The time that the terminal has to take the bytes of [`leave`], and the last words likewise.
const LEAVE_LIMIT: Duration = Duration::from_millis(500);

/// The terminal as it was found.
static FOUND: OnceLock<Found> = OnceLock::new();

/// True while the terminal is ours.
static TAKEN: AtomicBool = AtomicBool::new(false);

/// True if the terminal did not take all of [`leave`].
static STALLED: AtomicBool = AtomicBool::new(false);

struct Found {
    output: Output,
    line: Termios,
}

/// Takes the terminal and makes it raw.
pub fn take() -> io::Result<()> {
    let stdin = rustix::stdio::stdin();
    let found = if let Some(found) = FOUND.get() {
        found
    } else {
        // Not by crossterm: it would use any other terminal if standard input is none.
        let line = tcgetattr(stdin)?;
        let output = Output::of_stdout()?;
        FOUND.get_or_init(|| Found { output, line })
    };
    // Crossterm restores later what it finds now: not the settings of an editor that has died.
    tcsetattr(stdin, OptionalActions::Now, &found.line)?;
    terminal::enable_raw_mode()?;
    TAKEN.store(true, Ordering::SeqCst);
    Ok(())
}

/// Gives the terminal back as it was; harmless when it was not taken. Returns false if it did not take all of the bytes for
/// that within half a second: then nothing else should be written to it.
pub fn restore() -> bool {
    let ours = TAKEN.swap(false, Ordering::SeqCst);
    let Some(found) = FOUND.get().filter(|_| ours) else {
        return !STALLED.load(Ordering::SeqCst);
    };
    // This needs no room, so it comes first.
    let _ = terminal::disable_raw_mode();
    let bytes = [CUT.as_bytes(), &leave()].concat();
    let whole = found.output.write_within(&bytes, LEAVE_LIMIT);
    STALLED.store(!whole, Ordering::SeqCst);
    whole
}

/// Reports whether the terminal had stalled when it was given back: writing a message to it would not return.
pub fn is_stalled() -> bool {
    STALLED.load(Ordering::SeqCst)
}

/// Writes a text to the terminal that was given back, if it takes it within half a second.
pub fn last_words(text: &str) {
    let is_free = !is_stalled() && !TAKEN.load(Ordering::SeqCst);
    if let Some(found) = FOUND.get().filter(|_| is_free) {
        found.output.write_within(text.as_bytes(), LEAVE_LIMIT);
    }
}

/// Makes a panic leave a usable terminal with its report on a clean screen.
pub fn restore_on_panic() {
    let report = panic::take_hook();
    panic::set_hook(Box::new(move |panic| {
        // There is no report on a terminal that would not take it.
        if restore() {
            report(panic);
        }
    }));
}

/// Stops this process until it is continued.
pub fn stop() {
    let us = rustix::process::getpid();
    let _ = rustix::process::kill_process(us, rustix::process::Signal::STOP);
}
