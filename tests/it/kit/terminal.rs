//! The outer terminal: runs any program in a PTY, keeps its screen, answers its questions.

// The kit is shared, and each test uses a part of it.
#![allow(dead_code)]

use std::{
    ffi::{OsStr, OsString},
    io::{Read, Write},
    path::Path,
    sync::{
        Arc, Condvar, Mutex, MutexGuard, PoisonError,
        mpsc::{Sender, channel},
    },
    thread,
    time::{Duration, Instant},
};

use alacritty_terminal::{
    event::{Event, EventListener, VoidListener},
    grid::Dimensions,
    index::{Column, Line},
    term::{
        Config, Term, TermMode,
        cell::{Cell, Flags},
        test::TermSize,
    },
    vte::ansi::{Color, Processor, Rgb},
};
use memchr::memmem;
use portable_pty::{CommandBuilder, MasterPty, PtyPair, PtySize, native_pty_system};
use rustix::{
    event::{PollFd, PollFlags, Timespec, poll},
    fs::{Mode, OFlags},
    process::{Pid, Signal},
};

/// Whether the terminal answers what programs ask.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Answers {
    /// As a modern terminal does: DA1, DSR, DECRQM, XTVERSION, OSC 10 and 11.
    All,
    /// As xterm does on white: all that, but it does not know the kitty keyboard protocol.
    Xterm,
    /// As a mute one does.
    None,
    /// All that, a second late.
    Late,
    /// All that, byte by byte.
    Pieces,
}

/// How late [`Answers::Late`] is.
const LATE: Duration = Duration::from_secs(1);

/// How much a slow terminal reads, and how often: 20 KB a second.
const SLOW: (usize, Duration) = (1024, Duration::from_millis(50));

/// How a program ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Exit {
    /// The exit code; for a signal 1.
    pub code: u32,
    /// The name of the signal, if one ended it.
    pub signal: Option<String>,
}

/// Takes the emulator's replies and sends them back to the program.
struct Replies {
    to_child: Sender<Vec<u8>>,
    answers: Answers,
    title: Arc<Mutex<String>>,
}

impl EventListener for Replies {
    fn send_event(&self, event: Event) {
        let reply = match event {
            Event::PtyWrite(text) => text,
            // Foreground 256+0, background 256+1: a dark terminal.
            Event::ColorRequest(number, form) => {
                let dark = (number == 257) == (self.answers != Answers::Xterm);
                let level = if dark { 16 } else { 240 };
                form(Rgb {
                    r: level,
                    g: level,
                    b: level,
                })
            }
            Event::Title(title) => {
                *lock(&self.title) = title;
                return;
            }
            _ => return,
        };
        reply_with(&self.to_child, self.answers, reply.into_bytes());
    }
}

/// Sends an answer in the way of this terminal. The program may be gone already.
fn reply_with(to_child: &Sender<Vec<u8>>, answers: Answers, reply: Vec<u8>) {
    match answers {
        Answers::None => {}
        Answers::All | Answers::Xterm => {
            let _ = to_child.send(reply);
        }
        Answers::Late => {
            let to_child = to_child.clone();
            thread::spawn(move || {
                thread::sleep(LATE);
                let _ = to_child.send(reply);
            });
        }
        Answers::Pieces => {
            for byte in reply {
                let _ = to_child.send(vec![byte]);
            }
        }
    }
}

struct Outer {
    term: Term<Replies>,
    parser: Processor,
    output: Vec<u8>,
    /// When each read was made, and how long `output` was after it.
    reads: Vec<(Instant, usize)>,
    exit: Option<Exit>,
    read_to_end: bool,
    stalled: bool,
    slow: bool,
}

struct Shared {
    outer: Mutex<Outer>,
    changed: Condvar,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A program in a terminal. Dropping it kills the program.
pub struct Terminal {
    shared: Arc<Shared>,
    to_child: Sender<Vec<u8>>,
    title: Arc<Mutex<String>>,
    master: Box<dyn MasterPty + Send>,
    pid: Pid,
    settings: String,
}

/// What to run in a terminal.
pub struct Spec<'a> {
    pub program: &'a OsStr,
    pub args: &'a [OsString],
    pub env: &'a [(OsString, OsString)],
    pub dir: &'a Path,
    pub columns: u16,
    pub rows: u16,
    pub answers: Answers,
}

/// Held while a terminal is opened, and while a program is started that may outlive it.
static OPENING: Mutex<()> = Mutex::new(());

/// Does this while no terminal is being opened. The other end of one is left to a program that another test starts at that very
/// moment, and has then no last reader before that program ends.
pub fn beside_no_opening<T>(work: impl FnOnce() -> T) -> T {
    let _alone = lock(&OPENING);
    work()
}

/// Opens a terminal.
pub fn open_pty(columns: u16, rows: u16) -> PtyPair {
    beside_no_opening(|| native_pty_system().openpty(size(columns, rows))).expect("a pty")
}

impl Terminal {
    /// Runs a program with exactly the given environment.
    pub fn spawn(spec: &Spec<'_>) -> Self {
        let pair = open_pty(spec.columns, spec.rows);
        let settings = format!("{:?}", pair.master.get_termios());
        let mut command = CommandBuilder::new(spec.program);
        command.args(spec.args);
        command.env_clear();
        for (name, value) in spec.env {
            command.env(name, value);
        }
        command.cwd(spec.dir);
        let mut child = pair
            .slave
            .spawn_command(command)
            .expect("the program starts");
        drop(pair.slave);

        let pid = child
            .process_id()
            .and_then(|id| Pid::from_raw(id.cast_signed()));
        let (to_child, writes) = channel::<Vec<u8>>();
        let title = Arc::new(Mutex::new(String::new()));
        let replies = Replies {
            to_child: to_child.clone(),
            answers: spec.answers,
            title: Arc::clone(&title),
        };
        let grid = TermSize::new(spec.columns.into(), spec.rows.into());
        let outer = Outer {
            term: Term::new(
                Config {
                    kitty_keyboard: !matches!(spec.answers, Answers::Xterm | Answers::None),
                    ..Config::default()
                },
                &grid,
                replies,
            ),
            parser: Processor::new(),
            output: Vec::new(),
            reads: Vec::new(),
            exit: None,
            read_to_end: false,
            stalled: false,
            slow: false,
        };
        let shared = Arc::new(Shared {
            outer: Mutex::new(outer),
            changed: Condvar::new(),
        });

        let mut input = pair.master.take_writer().expect("a writer");
        thread::spawn(move || {
            for bytes in writes {
                if input
                    .write_all(&bytes)
                    .and_then(|()| input.flush())
                    .is_err()
                {
                    return;
                }
            }
        });
        let mut output = pair.master.try_clone_reader().expect("a reader");
        let reader_side = Arc::clone(&shared);
        let (version, answers) = (to_child.clone(), spec.answers);
        thread::spawn(move || {
            let mut buffer = vec![0; 65536];
            loop {
                let slow = lock(&reader_side.outer).slow;
                let room = if slow { SLOW.0 } else { buffer.len() };
                // Linux reports the last close of the other side as an error, EIO.
                let Ok(count @ 1..) = output.read(&mut buffer[..room]) else {
                    break;
                };
                if slow {
                    thread::sleep(SLOW.1);
                }
                if memmem::find(&buffer[..count], b"\x1b[>0q").is_some() {
                    reply_with(&version, answers, b"\x1bP>|kit(1)\x1b\\".to_vec());
                }
                let mut outer = lock(&reader_side.outer);
                outer.take(&buffer[..count]);
                reader_side.changed.notify_all();
                while outer.stalled {
                    let waited = reader_side.changed.wait(outer);
                    outer = waited.unwrap_or_else(PoisonError::into_inner);
                }
            }
            lock(&reader_side.outer).read_to_end = true;
            reader_side.changed.notify_all();
        });
        let waiter_side = Arc::clone(&shared);
        thread::spawn(move || {
            let status = child.wait().expect("a child can be waited for");
            lock(&waiter_side.outer).exit = Some(Exit {
                code: status.exit_code(),
                signal: status.signal().map(str::to_owned),
            });
            waiter_side.changed.notify_all();
        });
        Self {
            shared,
            to_child,
            title,
            master: pair.master,
            pid: pid.expect("a process id"),
            settings,
        }
    }

    /// Sends bytes as one write.
    pub fn send(&self, bytes: impl AsRef<[u8]>) {
        // The program may be gone already; the test then fails at what it waits for.
        let _ = self.to_child.send(bytes.as_ref().to_vec());
    }

    /// Waits until `condition` holds for the screen's text; panics with the screen after `limit`.
    #[track_caller]
    pub fn wait_for(&self, condition: impl Fn(&str) -> bool, limit: Duration) -> String {
        let found = self.wait(limit, |outer| {
            let text = text(&outer.term);
            condition(&text).then_some(text)
        });
        found.unwrap_or_else(|| {
            panic!(
                "waited {limit:?} in vain; the screen:\n{}",
                self.screen_text()
            )
        })
    }

    /// Waits until the screen shows `needle`.
    #[track_caller]
    pub fn wait_for_text(&self, needle: &str, limit: Duration) -> String {
        self.wait_for(|text| text.contains(needle), limit)
    }

    /// Waits until the program has ended and all its output is read.
    #[track_caller]
    pub fn wait_for_exit(&self, limit: Duration) -> Exit {
        self.wait(limit, |outer| {
            outer.exit.clone().filter(|_| outer.read_to_end)
        })
        .unwrap_or_else(|| panic!("runs after {limit:?}; the screen:\n{}", self.screen_text()))
    }

    /// Waits until the program has ended, whether its output is read or not.
    #[track_caller]
    pub fn wait_for_end(&self, limit: Duration) -> Exit {
        self.wait(limit, |outer| outer.exit.clone())
            .unwrap_or_else(|| panic!("runs after {limit:?}; the screen:\n{}", self.screen_text()))
    }

    /// Whether the program has ended.
    pub fn has_ended(&self) -> bool {
        lock(&self.shared.outer).exit.is_some()
    }

    /// Reads nothing any more, as a terminal does that hangs, or reads on.
    pub fn stall(&self, stalled: bool) {
        lock(&self.shared.outer).stalled = stalled;
        self.shared.changed.notify_all();
    }

    /// Reads no more than 20 KB a second from now on, or as fast as it can.
    pub fn slow(&self, slow: bool) {
        lock(&self.shared.outer).slow = slow;
    }

    /// Whether there is no room for what is written to it.
    pub fn is_full(&self) -> bool {
        let name = self.master.tty_name().expect("a name");
        let flags = OFlags::WRONLY | OFlags::NOCTTY | OFlags::CLOEXEC;
        let side = rustix::fs::open(name, flags, Mode::empty()).expect("the other side");
        let mut room = [PollFd::new(&side, PollFlags::OUT)];
        matches!(poll(&mut room, Some(&Timespec::default())), Ok(0))
    }

    fn wait<T>(&self, limit: Duration, found: impl Fn(&mut Outer) -> Option<T>) -> Option<T> {
        let end = Instant::now() + limit;
        let mut outer = lock(&self.shared.outer);
        loop {
            outer.flush_frame();
            if let Some(found) = found(&mut outer) {
                return Some(found);
            }
            let left = end.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return None;
            }
            // A synchronized frame that is never closed must show all the same.
            let nap = left.min(Duration::from_millis(50));
            let waited = self.shared.changed.wait_timeout(outer, nap);
            outer = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    /// The screen's text: a line a row, without blanks at the ends.
    pub fn screen_text(&self) -> String {
        let mut outer = lock(&self.shared.outer);
        outer.flush_frame();
        text(&outer.term)
    }

    /// The screen's cells, row by row.
    pub fn cells(&self) -> Vec<Vec<Seen>> {
        let mut outer = lock(&self.shared.outer);
        outer.flush_frame();
        seen(&outer.term)
    }

    /// Waits until `condition` holds for the screen's cells and the cursor's row and column.
    pub fn wait_for_cells(
        &self,
        condition: impl Fn(&[Vec<Seen>], (usize, usize)) -> bool,
        limit: Duration,
    ) -> bool {
        let holds = |outer: &mut Outer| {
            let point = outer.term.grid().cursor.point;
            let cursor = (usize::try_from(point.line.0).unwrap_or(0), point.column.0);
            condition(&seen(&outer.term), cursor).then_some(())
        };
        self.wait(limit, holds).is_some()
    }

    /// Everything the program ever wrote.
    pub fn output(&self) -> Vec<u8> {
        lock(&self.shared.outer).output.clone()
    }

    /// The reads that brought [`Self::output`]: when each was made, and how many bytes there were after it.
    pub fn reads(&self) -> Vec<(Instant, usize)> {
        lock(&self.shared.outer).reads.clone()
    }

    /// The row, from 0, that shows `needle`.
    pub fn row_of(&self, needle: &str) -> Option<usize> {
        let text = self.screen_text();
        text.lines().position(|line| line.contains(needle))
    }

    /// Waits until a row shows `needle`, and looks at nothing else; false when the time is up.
    pub fn wait_for_row(&self, row: usize, needle: &str, limit: Duration) -> bool {
        let shows = |outer: &mut Outer| row_text(&outer.term, row).contains(needle).then_some(());
        self.wait(limit, shows).is_some()
    }

    /// The title the program set last.
    pub fn title(&self) -> String {
        lock(&self.title).clone()
    }

    /// The row and column of the cursor, from 0.
    pub fn cursor(&self) -> (usize, usize) {
        let point = lock(&self.shared.outer).term.grid().cursor.point;
        (usize::try_from(point.line.0).unwrap_or(0), point.column.0)
    }

    /// Names of the modes that are on and that a shell would not want after the program's end.
    pub fn modes_left_on(&self) -> Vec<&'static str> {
        let outer = lock(&self.shared.outer);
        let mode = *outer.term.mode();
        let mut on: Vec<_> = [
            (TermMode::MOUSE_MODE, "mouse"),
            (TermMode::SGR_MOUSE, "sgr mouse"),
            (TermMode::FOCUS_IN_OUT, "focus"),
            (TermMode::BRACKETED_PASTE, "paste"),
            (TermMode::ALT_SCREEN, "alternate screen"),
            (TermMode::APP_CURSOR, "application cursor"),
            (TermMode::APP_KEYPAD, "application keypad"),
            (TermMode::KITTY_KEYBOARD_PROTOCOL, "kitty keyboard"),
        ]
        .into_iter()
        .filter(|(flag, _)| mode.intersects(*flag))
        .map(|(_, name)| name)
        .collect();
        for (flag, name) in [
            (TermMode::SHOW_CURSOR, "hidden cursor"),
            (TermMode::LINE_WRAP, "no line wrap"),
        ] {
            on.extend((!mode.contains(flag)).then_some(name));
        }
        let last_of = |needle: &[u8]| memmem::rfind(&outer.output, needle);
        if last_of(b"\x1b[?2031h") > last_of(b"\x1b[?2031l") {
            on.push("colour scheme");
        }
        on
    }

    /// Whether the terminal's line settings (raw mode and the like) are as they were before the program.
    pub fn has_its_settings_back(&self) -> bool {
        format!("{:?}", self.master.get_termios()) == self.settings
    }

    /// Changes the size; the program gets SIGWINCH.
    pub fn resize(&self, columns: u16, rows: u16) {
        let grid = TermSize::new(columns.into(), rows.into());
        lock(&self.shared.outer).term.resize(grid);
        self.report_size(columns, rows);
    }

    /// Reports another size than it has; the program gets SIGWINCH.
    pub fn report_size(&self, columns: u16, rows: u16) {
        self.master
            .resize(size(columns, rows))
            .expect("a pty can be resized");
    }

    /// The program's process id.
    pub fn pid(&self) -> Pid {
        self.pid
    }

    /// Sends a signal to the program alone.
    pub fn signal(&self, signal: Signal) {
        if lock(&self.shared.outer).exit.is_none() {
            // It may end at this very moment, which is what was wanted.
            let _ = rustix::process::kill_process(self.pid, signal);
        }
    }

    /// Kills the program.
    pub fn kill(&self) {
        self.signal(Signal::KILL);
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        self.stall(false);
        self.kill();
    }
}

impl Outer {
    fn take(&mut self, bytes: &[u8]) {
        self.output.extend_from_slice(bytes);
        self.reads.push((Instant::now(), self.output.len()));
        self.parser.advance(&mut self.term, bytes);
    }

    /// Shows a synchronized frame whose time is up.
    fn flush_frame(&mut self) {
        let due = self.parser.sync_timeout().sync_timeout();
        if due.is_some_and(|due| due <= Instant::now()) {
            self.parser.stop_sync(&mut self.term);
        }
    }
}

fn size(columns: u16, rows: u16) -> PtySize {
    PtySize {
        rows,
        cols: columns,
        pixel_width: 0,
        pixel_height: 0,
    }
}

fn text(term: &Term<Replies>) -> String {
    let mut text = String::new();
    for row in 0..term.grid().screen_lines() {
        text.push_str(row_text(term, row).trim_end_matches(' '));
        text.push('\n');
    }
    text
}

fn row_text<T: EventListener>(term: &Term<T>, row: usize) -> String {
    let grid = term.grid();
    let row = &grid[Line(i32::try_from(row).expect("a row fits"))];
    let mut line = String::with_capacity(grid.columns());
    for column in 0..grid.columns() {
        let cell = &row[Column(column)];
        if !cell
            .flags
            .intersects(Flags::WIDE_CHAR_SPACER | Flags::LEADING_WIDE_CHAR_SPACER)
        {
            line.push(cell.c);
            line.extend(cell.zerowidth().into_iter().flatten());
        }
    }
    line
}

/// A cell as one sees it, however it came to look so.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Seen {
    /// The character with its accents; a blank in the second half of a wide one.
    pub text: String,
    pub foreground: Color,
    pub background: Color,
    pub underline: Option<Color>,
    /// Without what cannot be seen; all kinds of underline are one.
    pub attributes: Flags,
}

impl Seen {
    fn of(cell: &Cell) -> Self {
        let spacer = Flags::WIDE_CHAR_SPACER | Flags::LEADING_WIDE_CHAR_SPACER;
        let mut text = String::new();
        if cell.flags.intersects(spacer) || cell.c.is_control() {
            text.push(' ');
        } else {
            text.push(cell.c);
            text.extend(cell.zerowidth().into_iter().flatten());
        }
        let mut attributes = cell.flags - Flags::ALL_UNDERLINES - spacer - Flags::WRAPLINE;
        attributes.set(
            Flags::UNDERLINE,
            cell.flags.intersects(Flags::ALL_UNDERLINES),
        );
        Self {
            text,
            foreground: indexed(cell.fg),
            background: indexed(cell.bg),
            underline: cell.underline_color().map(indexed),
            attributes,
        }
    }
}

/// The sixteen named colours by their numbers: there are two ways to ask for them.
fn indexed(colour: Color) -> Color {
    match colour {
        Color::Named(name) if (name as usize) < 16 => Color::Indexed(name as u8),
        other => other,
    }
}

fn seen<T: EventListener>(term: &Term<T>) -> Vec<Vec<Seen>> {
    let grid = term.grid();
    let row = |row| Line(i32::try_from(row).expect("a row fits"));
    let mut lines: Vec<Vec<Seen>> = Vec::new();
    for line in 0..grid.screen_lines() {
        let cells = &grid[row(line)][..];
        let mut seen: Vec<Seen> = cells.iter().map(Seen::of).collect();
        for (column, cell) in cells.iter().enumerate() {
            let second = cells.get(column + 1);
            let whole = second.is_some_and(|cell| cell.flags.contains(Flags::WIDE_CHAR_SPACER));
            // Insertions tear wide characters; half of one cannot be seen.
            if cell.flags.contains(Flags::WIDE_CHAR) && !whole {
                " ".clone_into(&mut seen[column].text);
                seen[column].attributes -= Flags::WIDE_CHAR;
            }
        }
        lines.push(seen);
    }
    lines
}

/// What a bare emulator of this size makes of these bytes: its cells, and the cursor's row and column.
pub fn emulate(columns: u16, rows: u16, bytes: &[u8]) -> (Vec<Vec<Seen>>, (usize, usize)) {
    let size = TermSize::new(columns.into(), rows.into());
    let mut term = Term::new(Config::default(), &size, VoidListener);
    let mut parser: Processor = Processor::new();
    parser.advance(&mut term, bytes);
    let point = term.grid().cursor.point;
    let cursor = (usize::try_from(point.line.0).unwrap_or(0), point.column.0);
    (seen(&term), cursor)
}

/// What can be seen of some rows of a terminal of this size after each of the reads that brought these bytes: one call
/// of `look` a read with the rows' texts. What stands in a synchronized frame that has not ended is not seen.
pub fn replay(
    (columns, rows): (u16, u16),
    output: &[u8],
    ends: impl IntoIterator<Item = usize>,
    watched: std::ops::Range<usize>,
    mut look: impl FnMut(usize, Vec<String>),
) {
    let size = TermSize::new(columns.into(), rows.into());
    let mut term = Term::new(Config::default(), &size, VoidListener);
    let mut parser: Processor = Processor::new();
    let mut begin = 0;
    for (read, end) in ends.into_iter().enumerate() {
        parser.advance(&mut term, &output[begin..end]);
        begin = end;
        let texts = watched.clone().map(|row| row_text(&term, row)).collect();
        look(read, texts);
    }
}
