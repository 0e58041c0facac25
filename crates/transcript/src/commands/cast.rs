//! The reader of shell commands from a recording of a pane, by the marks of shell integration (OSC 133).
//!
//! ```text
//!   A  prompt  B  command line, as the shell echoes it  C  output  D;exit
//! ```
//!
//! The recording is an asciicast v2 file: one JSON line an event, `[seconds, "o", text]` for output and `"i"` for input.
//! Input is kept apart by its direction. Marks may be cut anywhere between two events. A shell that sends no `B` leaves
//! the command unknown; one that sends no `D` ends its command with the next prompt.

use std::time::Duration;

use super::{
    COMMAND_CAP, Chunk, CommandLog, CommandRecord, Direction, OUTPUT_CAP, trimmed_command,
};
use pitstop_base::clean;

/// The length in bytes of the longest incomplete mark that is kept; a longer OSC string is not a mark of shell integration.
const MARK_CAP: usize = 4096;

/// Reads the commands of a recording and keeps the last `limit`. Lines that are not events are skipped.
pub fn read_commands(recording: &[u8], limit: usize) -> CommandLog {
    let mut reader = CastReader::new(limit);
    for line in recording.split(|byte| *byte == b'\n') {
        reader.take_line(line);
    }
    reader.finish()
}

/// The state of the shell in the cycle of prompt and command.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum ShellState {
    /// The shell is before the first mark, between commands, or in a prompt.
    #[default]
    Prompt,
    /// The command line is being typed.
    Line,
    /// The command runs.
    Running,
}

/// A reader that reads a recording line by line.
#[derive(Debug, Default)]
pub struct CastReader {
    log: CommandLog,
    state: ShellState,
    /// The start of an escape sequence that was cut by the end of an event.
    carry: String,
    line: String,
    output: Output,
    began: Duration,
    now: Duration,
}

impl CastReader {
    /// Makes a reader that keeps the last `limit` commands.
    pub fn new(limit: usize) -> Self {
        Self {
            log: CommandLog::new(limit),
            ..Self::default()
        }
    }

    /// Takes one line of the file.
    pub fn take_line(&mut self, line: &[u8]) {
        let Ok((seconds, kind, text)) = serde_json::from_slice::<(f64, String, String)>(line)
        else {
            return;
        };
        self.now = Duration::try_from_secs_f64(seconds).unwrap_or(self.now);
        match kind.as_str() {
            "o" => self.take_output(text),
            "i" if self.state == ShellState::Running => {
                self.output.add_text(Direction::Input, &text);
            }
            _ => {}
        }
    }

    /// Returns the commands that have ended so far.
    pub const fn log(&self) -> &CommandLog {
        &self.log
    }

    /// Ends the reading. A command that still runs counts with what it has printed.
    pub fn finish(mut self) -> CommandLog {
        self.end_command(None);
        self.log
    }

    fn take_output(&mut self, text: String) {
        let text = if self.carry.is_empty() {
            text
        } else {
            std::mem::take(&mut self.carry) + &text
        };
        let mut rest = text.as_str();
        while let Some(at) = rest.find('\u{1b}') {
            self.take_text(&rest[..at]);
            rest = &rest[at..];
            match read_mark(rest) {
                Found::Mark(mark, length) => {
                    self.take_mark(mark);
                    rest = &rest[length..];
                }
                Found::Other => {
                    self.take_text("\u{1b}");
                    rest = &rest[1..];
                }
                Found::Cut if rest.len() <= MARK_CAP => {
                    rest.clone_into(&mut self.carry);
                    return;
                }
                Found::Cut => break,
            }
        }
        self.take_text(rest);
    }

    fn take_text(&mut self, text: &str) {
        match self.state {
            ShellState::Line if self.line.len() + text.len() <= COMMAND_CAP => {
                self.line.push_str(text);
            }
            ShellState::Prompt | ShellState::Line => {}
            ShellState::Running => self.output.add_text(Direction::Output, text),
        }
    }

    fn take_mark(&mut self, mark: &str) {
        let mut rest = mark.chars();
        match rest.next() {
            Some('A') => {
                self.end_command(None);
                self.line.clear();
            }
            Some('B') => {
                self.end_command(None);
                self.line.clear();
                self.state = ShellState::Line;
            }
            Some('C') => {
                self.end_command(None);
                self.state = ShellState::Running;
                self.began = self.now;
            }
            Some('D') => {
                let exit = rest
                    .as_str()
                    .strip_prefix(';')
                    .and_then(|rest| rest.split(';').next());
                self.end_command(exit.and_then(|exit| exit.parse().ok()));
            }
            _ => {}
        }
    }

    /// Ends the command under way, if there is one.
    fn end_command(&mut self, exit: Option<i32>) {
        if std::mem::replace(&mut self.state, ShellState::Prompt) != ShellState::Running {
            return;
        }
        let line = std::mem::take(&mut self.line);
        let record = CommandRecord {
            command: trimmed_command(&clean::without_escapes(&line)),
            exit,
            duration: self.now.checked_sub(self.began),
            ..CommandRecord::default()
        };
        let output = std::mem::take(&mut self.output);
        self.log.push(record, output.finish());
    }
}

enum Found<'a> {
    /// A mark, and the length of its whole sequence.
    Mark(&'a str, usize),
    /// A sequence that is not a mark.
    Other,
    /// The text ends before it is known whether it is a mark.
    Cut,
}

/// Reads the mark at the start of a text that begins with ESC.
fn read_mark(text: &str) -> Found<'_> {
    const LEAD: &str = "\u{1b}]133;";
    let Some(body) = text.strip_prefix(LEAD) else {
        return if LEAD.starts_with(text) {
            Found::Cut
        } else {
            Found::Other
        };
    };
    let Some(end) = body.find(['\u{7}', '\u{1b}', '\u{9c}', '\n']) else {
        return Found::Cut;
    };
    let tail = &body[end..];
    let closing = match tail.as_bytes() {
        [0x07, ..] => 1,
        [0xc2, ..] | [0x1b, b'\\', ..] => 2,
        [0x1b] => return Found::Cut,
        // The mark is not closed: it counts, and what follows is text.
        _ => 0,
    };
    Found::Mark(&body[..end], LEAD.len() + end + closing)
}

/// The start and the end of the output of a command.
#[derive(Debug, Default)]
struct Output {
    start: Vec<Chunk>,
    start_length: usize,
    gap: u64,
    gapped: bool,
    end: std::collections::VecDeque<(Direction, String)>,
    end_length: usize,
}

impl Output {
    fn add_text(&mut self, direction: Direction, text: &str) {
        if text.is_empty() {
            return;
        }
        let room = (OUTPUT_CAP / 2).saturating_sub(self.start_length);
        let (first, rest) = text.split_at(text.floor_char_boundary(room));
        if self.end.is_empty() && !first.is_empty() {
            self.start_length += first.len();
            push_chunk(&mut self.start, direction, first);
        }
        let rest = if self.end.is_empty() { rest } else { text };
        if rest.is_empty() {
            return;
        }
        self.end_length += rest.len();
        self.end.push_back((direction, rest.to_owned()));
        while self.end_length > OUTPUT_CAP / 2 {
            let Some((direction, mut oldest)) = self.end.pop_front() else {
                break;
            };
            let over = self.end_length - OUTPUT_CAP / 2;
            let cut = oldest.ceil_char_boundary(over.min(oldest.len()));
            if direction == Direction::Output {
                self.gapped = true;
                self.gap += oldest[..cut].matches('\n').count() as u64;
            }
            self.end_length -= cut;
            if cut < oldest.len() {
                oldest.drain(..cut);
                self.end.push_front((direction, oldest));
            }
        }
    }

    fn finish(self) -> Vec<Chunk> {
        let mut chunks = self.start;
        if self.gapped {
            chunks.push(Chunk::Gap { lines: self.gap });
        }
        for (direction, text) in self.end {
            push_chunk(&mut chunks, direction, &text);
        }
        chunks
    }
}

/// Appends to the last chunk, if it has the same direction: a recording's events are small.
fn push_chunk(chunks: &mut Vec<Chunk>, direction: Direction, text: &str) {
    match chunks.last_mut() {
        Some(Chunk::Bytes(last, bytes)) if *last == direction => {
            bytes.extend_from_slice(text.as_bytes());
        }
        _ => chunks.push(Chunk::Bytes(direction, text.as_bytes().to_vec())),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    fn cast(events: &[(&str, &str)]) -> Vec<u8> {
        let mut text = json!({"version": 2, "width": 80, "height": 24}).to_string();
        for (n, (kind, data)) in events.iter().enumerate() {
            text.push('\n');
            text.push_str(&json!([n as f64, kind, data]).to_string());
        }
        text.into_bytes()
    }

    fn read(events: &[(&str, &str)]) -> Vec<(Option<String>, Option<i32>, String)> {
        let log = read_commands(&cast(events), 10);
        log.records()
            .into_iter()
            .map(|record| {
                let mut text = String::new();
                for chunk in log.read(&record) {
                    if let Chunk::Bytes(Direction::Output, bytes) = chunk {
                        text.push_str(&String::from_utf8_lossy(bytes));
                    }
                }
                (record.command, record.exit, text)
            })
            .collect()
    }

    #[test]
    fn marks_cut_a_recording_into_commands() {
        let found = read(&[
            ("o", "welcome\r\n\u{1b}]133;A\u{7}$ \u{1b}]133;B\u{7}"),
            ("i", "ls\r"),
            (
                "o",
                "l\u{1b}[1ms\u{1b}[0m\r\n\u{1b}]133;C\u{1b}\\a\r\nb\r\n",
            ),
            ("o", "\u{1b}]133;D;2\u{7}\u{1b}]133;A\u{7}$ "),
        ]);
        assert_eq!(
            found,
            [(Some("ls".to_owned()), Some(2), "a\r\nb\r\n".to_owned())]
        );
    }

    #[test]
    fn a_mark_cut_anywhere_is_one() {
        let whole = "\u{1b}]133;B\u{7}make\r\n\u{1b}]133;C\u{1b}\\out\u{1b}]133;D;0\u{7}";
        for cut in 1..whole.len() {
            let found = read(&[("o", &whole[..cut]), ("o", &whole[cut..])]);
            assert_eq!(
                found,
                [(Some("make".to_owned()), Some(0), "out".to_owned())],
                "cut at {cut}"
            );
        }
    }

    #[test]
    fn input_while_a_command_runs_is_distinguished() {
        let log = read_commands(
            &cast(&[
                ("o", "\u{1b}]133;C\u{7}name? "),
                ("i", "secret\r"),
                ("o", "hi\u{1b}]133;D\u{7}"),
            ]),
            10,
        );
        let record = &log.records()[0];
        assert_eq!(record.command, None);
        assert_eq!(record.duration, Some(Duration::from_secs(2)));
        let bytes = |way, text: &str| Chunk::Bytes(way, text.as_bytes().to_vec());
        assert_eq!(
            log.read(record),
            [
                bytes(Direction::Output, "name? "),
                bytes(Direction::Input, "secret\r"),
                bytes(Direction::Output, "hi")
            ]
        );
    }

    #[test]
    fn a_command_without_an_end_ends_at_the_next_prompt_or_with_the_file() {
        let found = read(&[(
            "o",
            "\u{1b}]133;C\u{7}one\u{1b}]133;A\u{7}$ \u{1b}]133;C\u{7}two",
        )]);
        assert_eq!(
            found,
            [
                (None, None, "one".to_owned()),
                (None, None, "two".to_owned())
            ]
        );
    }

    #[test]
    fn a_flood_keeps_its_two_ends() {
        let flood = "0123456789\n".repeat(1_000);
        let mut events = vec![("o", "\u{1b}]133;C\u{7}first\n")];
        events.resize(100, ("o", flood.as_str()));
        events.push(("o", "last\u{1b}]133;D\u{7}"));
        let log = read_commands(&cast(&events), 10);
        let chunks = log.read(&log.records()[0]).to_vec();
        let mut lines = 0;
        let mut kept = 0;
        for chunk in &chunks {
            match chunk {
                Chunk::Gap { lines: gone } => lines += gone,
                Chunk::Bytes(_, bytes) => {
                    kept += bytes.len();
                    lines += memchr::memchr_iter(b'\n', bytes).count() as u64;
                }
            }
        }
        assert_eq!(lines, 1 + 99 * 1_000);
        assert!(kept <= OUTPUT_CAP);
        assert!(matches!(&chunks[0], Chunk::Bytes(_, bytes) if bytes.starts_with(b"first\n")));
        assert!(matches!(chunks.last(), Some(Chunk::Bytes(_, bytes)) if bytes.ends_with(b"last")));
    }

    #[test]
    fn a_mark_of_an_unknown_kind_is_no_mark() {
        let bytes = cast(&[(
            "o",
            "\x1b]133;A\x07$ \x1b]133;B\x07ls\x1b]133;é;133;C\x07\x1b]133;C\x07a\n\x1b]133;D;0\x07",
        )]);
        let log = read_commands(&bytes, 5);
        assert_eq!(log.records().len(), 1);
    }

    proptest! {
        #[test]
        fn any_recording_is_read(text in "(\x1b|\\]|133|;|A|B|C|D|\x07|\\\\|\n|é|x){0,60}", junk in proptest::collection::vec(any::<u8>(), 0..60)) {
            let mut bytes = cast(&[("o", &text), ("i", &text)]);
            bytes.push(b'\n');
            bytes.extend(junk);
            let _ = read_commands(&bytes, 5);
        }
    }
}
