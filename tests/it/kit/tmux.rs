//! tmux as the other emulator: what it makes of the same bytes.
//!
//! A pane of tmux is asked for its cells by `capture-pane -e`. That leaves out what lies behind the last character of
//! a row, even if it has a background. So a mark is written into the last column of such rows, which makes tmux show
//! the cells before it; and once more with the row's last cell moved to the left, for that cell itself.

// Shared by tests and an example, and each uses a part of it.
#![allow(dead_code)]

use std::{
    ffi::OsStr,
    fmt::Write as _,
    fs::{self, File, OpenOptions},
    io::Write as _,
    process::{Command, Stdio},
    time::{Duration, Instant},
};

use pitstop_base::process;
use rustix::process::{Pid, Signal, kill_process};
use tempfile::TempDir;
use unicode_width::UnicodeWidthChar;

use super::{
    grid::{self, Grid, Look, Unit},
    poll,
};

/// How long tmux may take for anything.
const LIMIT: Duration = Duration::from_secs(120);

/// Options that make its pane a plain terminal of the size that was asked for.
const OPTIONS: &str = "set -g status off\nset -g default-terminal tmux-256color\nset -g escape-time 0\n\
    set -g history-limit 5000\nset -g focus-events on\n";

/// Takes back what could change where a mark lands.
const PLAIN: &str = "\x1b[r\x1b[?6l\x1b[4l\x1b[?7h\x1b(B\x0f\x1b[m";

/// A tmux server of its own with one pane; dropping it ends the server.
pub struct Tmux {
    dir: TempDir,
    marks: u32,
    /// What a mute pane got, beginning with its size.
    fed: Vec<Fed>,
}

enum Fed {
    Bytes(Vec<u8>),
    Size(usize, usize),
}

impl Tmux {
    /// A pane of this size in which this shell command runs.
    pub fn start(columns: usize, rows: usize, command: &str) -> Self {
        let dir = tempfile::Builder::new()
            .prefix("pst")
            .tempdir_in("/tmp")
            .expect("a directory");
        fs::write(dir.path().join("tmux.conf"), OPTIONS).expect("a file");
        let tmux = Self {
            dir,
            marks: 0,
            fed: Vec::new(),
        };
        let (columns, rows) = (columns.to_string(), rows.to_string());
        tmux.run(["new-session", "-d", "-x", &columns, "-y", &rows, command]);
        // Set before there is a window, it ends the server (3.3a).
        tmux.run(["set", "-g", "window-size", "manual"]);
        tmux
    }

    /// A pane that shows what it is fed.
    pub fn mute(columns: usize, rows: usize) -> Self {
        let ready = "stty raw -echo; printf '\\033]2;mark 0\\033\\\\'; exec sleep 1000";
        let mut tmux = Self::start(columns, rows, ready);
        tmux.wait_for_title("mark 0");
        tmux.fed.push(Fed::Size(columns, rows));
        tmux
    }

    fn run<'a>(&self, args: impl IntoIterator<Item = &'a str>) -> String {
        let path = |name: &str| self.dir.path().join(name);
        let output = Command::new("tmux")
            .arg("-S")
            .arg(path("socket"))
            .arg("-f")
            .arg(path("tmux.conf"))
            .args(args.into_iter().map(OsStr::new))
            .env("LC_ALL", "C.UTF-8")
            .env_remove("TMUX")
            .stdin(Stdio::null())
            .output()
            .expect("tmux runs");
        String::from_utf8_lossy(&output.stdout).into_owned()
    }

    fn query(&self, format: &str) -> String {
        self.run(["display-message", "-p", format])
            .trim_end()
            .to_owned()
    }

    fn wait_for_title(&self, title: &str) {
        let there = || self.query("#{pane_title}") == title;
        poll::until_true(LIMIT, there, || format!("tmux does not get to {title}"));
    }

    /// Gives bytes to the emulator, and waits until it has taken them.
    pub fn feed(&mut self, bytes: &[u8]) {
        self.marks += 1;
        self.fed.push(Fed::Bytes(bytes.to_vec()));
        let mark = format!("mark {}", self.marks);
        let mut tty: File = OpenOptions::new()
            .write(true)
            .open(self.query("#{pane_tty}"))
            .expect("a terminal");
        tty.write_all(bytes).expect("it takes bytes");
        // CAN ends what the bytes may have begun, and the title comes back.
        write!(tty, "\x18\x1b]2;{mark}\x1b\\").expect("it takes bytes");
        self.wait_for_title(&mark);
    }

    /// Changes the size.
    pub fn resize(&mut self, columns: usize, rows: usize) {
        self.fed.push(Fed::Size(columns, rows));
        self.run([
            "resize-window",
            "-x",
            &columns.to_string(),
            "-y",
            &rows.to_string(),
        ]);
    }

    /// Types into the pane.
    pub fn send(&self, text: &str) {
        self.run(["send-keys", "-l", text]);
    }

    /// Waits until the pane has been the same for half a second, and stops what its shell has started. The shell itself is not
    /// stopped: tmux has a child of its own go on at once, and a client that goes on draws everything again.
    pub fn settle(&self) {
        let mut last = String::new();
        let mut since = Instant::now();
        let rests = || {
            let now = self.run(["capture-pane", "-e", "-p"]);
            if now != last {
                last = now;
                since = Instant::now();
            }
            since.elapsed() >= Duration::from_millis(500)
        };
        poll::until_true(LIMIT, rests, || "the pane never rests".to_owned());
        let shell = self.query("#{pane_pid}").parse().expect("a process");
        assert!(
            below(shell, Signal::STOP) > 0,
            "the shell has started nothing"
        );
    }

    /// The pane's text.
    pub fn text(&self) -> String {
        self.run(["capture-pane", "-p"])
    }

    /// What the pane shows. It is written over for that, and of no use afterwards.
    pub fn grid(mut self) -> Result<Grid, String> {
        let state =
            self.query("#{pane_width},#{pane_height},#{cursor_x},#{cursor_y},#{cursor_flag}");
        let state: Vec<usize> = state
            .split(',')
            .filter_map(|number| number.parse().ok())
            .collect();
        let [columns, rows, column, row, shown] = state[..] else {
            return Err(format!("tmux tells {state:?}"));
        };
        let above = self.above();
        let mut lines = self.capture();
        let short: Vec<bool> = lines.iter().map(|line| width(line) < columns).collect();
        let cut = |row: usize| short[row].then_some(columns - 1);
        let twin = self.twin();
        self.mark((columns, rows), |row| cut(row).map(|_| columns));
        for (row, marked) in self
            .capture()
            .into_iter()
            .enumerate()
            .filter(|(row, _)| short[*row])
        {
            lines[row] = marked;
            lines[row].pop();
        }
        // The last cell goes where the character before it begins, so that no half of a wide one is left.
        let place = |row: usize| lines[row].last().map(|unit| unit.column + 1);
        let moved = twin.map(|mut twin| {
            twin.mark((columns, rows), |row| cut(row).and_then(|_| place(row)));
            twin.capture()
        });
        for row in (0..lines.len()).filter(|row| short[*row]) {
            let line = &mut lines[row];
            let column = line.last().map_or(0, |unit| unit.column);
            let there = moved.as_ref().map_or(&*line, |moved| &moved[row]).iter();
            // Without a twin: what was erased was most likely erased to the end.
            let style = there
                .rev()
                .find(|unit| unit.column == column)
                .map(|unit| unit.style.clone());
            line.push(Unit {
                column: columns - 1,
                width: 1,
                text: " ".to_owned(),
                style: style.unwrap_or_default(),
            });
        }
        Ok(Grid {
            columns,
            rows,
            cursor: (column.min(columns - 1), row),
            cursor_shown: shown == 1,
            above,
            lines,
            notes: Vec::new(),
        })
    }

    /// The text of the lines above the first screen, while that is shown.
    fn above(&self) -> Vec<String> {
        if self.query("#{alternate_on}") == "1" || self.query("#{history_size}") == "0" {
            return Vec::new();
        }
        let text = self.run(["capture-pane", "-e", "-p", "-N", "-S", "-", "-E", "-1"]);
        let mut pen = Pen::default();
        text.lines()
            .map(|line| grid::text(&pen.line(line)))
            .collect()
    }

    /// Another pane that was fed the same.
    fn twin(&self) -> Option<Self> {
        let mut steps = self.fed.iter();
        let Some(Fed::Size(columns, rows)) = steps.next() else {
            return None;
        };
        let mut twin = Self::mute(*columns, *rows);
        for step in steps {
            match step {
                Fed::Size(columns, rows) => twin.resize(*columns, *rows),
                Fed::Bytes(bytes) => twin.feed(bytes),
            }
        }
        Some(twin)
    }

    /// Writes a mark into the last column of rows, before which all cells from a column on are taken out.
    fn mark(&mut self, (columns, rows): (usize, usize), from: impl Fn(usize) -> Option<usize>) {
        let mut marks = PLAIN.to_owned();
        for row in 0..rows {
            if let Some(from) = from(row) {
                let row = row + 1;
                let _ = write!(marks, "\x1b[{row};{from}H");
                if from < columns {
                    let _ = write!(marks, "\x1b[{}P", columns - from);
                }
                let _ = write!(marks, "\x1b[{row};{columns}HX");
            }
        }
        self.feed(marks.as_bytes());
    }

    fn capture(&self) -> Vec<Vec<Unit>> {
        let text = self.run(["capture-pane", "-e", "-p", "-N"]);
        let mut pen = Pen::default();
        text.lines().map(|line| pen.line(line)).collect()
    }
}

/// Sends a signal to all that a process has started; returns how many got it.
fn below(pid: u32, signal: Signal) -> usize {
    let started = process::descendants(pid).into_iter();
    let pids = started.filter_map(|one| Pid::from_raw(i32::try_from(one.stamp.pid).ok()?));
    pids.filter(|pid| kill_process(*pid, signal).is_ok())
        .count()
}

impl Drop for Tmux {
    fn drop(&mut self) {
        // A stopped program would outlive the server.
        if let Ok(shell) = self.query("#{pane_pid}").parse() {
            below(shell, Signal::KILL);
        }
        self.run(["kill-server"]);
    }
}

fn width(line: &[Unit]) -> usize {
    line.last().map_or(0, |unit| unit.column + unit.width)
}

/// How the text that follows looks, by the sequences in a capture.
#[derive(Default)]
struct Pen {
    on: [bool; 6],
    underline: Option<&'static str>,
    look: Look,
    drawing: bool,
}

const WORDS: [&str; 6] = ["bold", "dim", "italic", "inverse", "hidden", "strike"];

impl Pen {
    fn line(&mut self, line: &str) -> Vec<Unit> {
        let mut units: Vec<Unit> = Vec::new();
        let mut rest = line.chars();
        while let Some(c) = rest.next() {
            match c {
                '\u{e}' => self.drawing = true,
                '\u{f}' => self.drawing = false,
                '\u{1b}' => {
                    let sequence: String = rest.by_ref().take_while(|c| *c != 'm').collect();
                    self.rendition(sequence.trim_start_matches('['));
                }
                c => self.put(if self.drawing { drawn(c) } else { c }, &mut units),
            }
        }
        units
    }

    fn put(&self, c: char, units: &mut Vec<Unit>) {
        let column = width(units);
        if let Some(last) = units.last_mut()
            && (c.width() == Some(0) || last.text.ends_with('\u{200d}'))
        {
            last.text.push(c);
            return;
        }
        let mut look = self.look.clone();
        let words = WORDS.iter().zip(self.on).filter(|(_, on)| *on);
        look.words = words.map(|(word, _)| *word).collect();
        look.words.extend(self.underline);
        units.push(Unit {
            column,
            width: c.width().unwrap_or(1),
            text: c.to_string(),
            style: look.to_string(),
        });
    }

    fn rendition(&mut self, sequence: &str) {
        let mut words = sequence.split(';');
        while let Some(word) = words.next() {
            match word {
                "" | "0" => {
                    *self = Self {
                        drawing: self.drawing,
                        ..Self::default()
                    };
                }
                "1" | "2" | "3" => self.on[usize::from(word.as_bytes()[0] - b'1')] = true,
                "7" | "8" | "9" => self.on[usize::from(word.as_bytes()[0] - b'7') + 3] = true,
                "4" | "4:1" => self.underline = Some("underline"),
                "4:2" => self.underline = Some("double"),
                "4:3" => self.underline = Some("curly"),
                "4:4" => self.underline = Some("dotted"),
                "4:5" => self.underline = Some("dashed"),
                "38" => self.look.foreground = colour(&mut words),
                "48" => self.look.background = colour(&mut words),
                "58" => self.look.underline = colour(&mut words),
                "39" => self.look.foreground = None,
                "49" => self.look.background = None,
                "59" => self.look.underline = None,
                // Blinking and the line above: no cell of ours has them.
                "5" | "53" => {}
                other => self.named(other.parse().expect("a number")),
            }
        }
    }

    fn named(&mut self, number: u8) {
        match number {
            30..=37 => self.look.foreground = Some((number - 30).to_string()),
            40..=47 => self.look.background = Some((number - 40).to_string()),
            90..=97 => self.look.foreground = Some((number - 82).to_string()),
            100..=107 => self.look.background = Some((number - 92).to_string()),
            _ => panic!("tmux tells {number}"),
        }
    }
}

fn colour<'a>(words: &mut impl Iterator<Item = &'a str>) -> Option<String> {
    if words.next()? == "5" {
        return words.next().map(str::to_owned);
    }
    let mut part = || words.next()?.parse::<u8>().ok();
    let (red, green, blue) = (part()?, part()?, part()?);
    Some(format!("#{red:02x}{green:02x}{blue:02x}"))
}

/// The line drawing set of the VT100, which a capture has as letters.
fn drawn(c: char) -> char {
    const SET: &str = " ◆▒␉␌␍␊°±␤␋┘┐┌└┼⎺⎻─⎼⎽├┤┴┬│≤≥π≠£·";
    let place = (c as usize).checked_sub('_' as usize);
    place.and_then(|place| SET.chars().nth(place)).unwrap_or(c)
}
