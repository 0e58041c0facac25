//! The part of a session's past that is given word for word: the last steps of its transcript, or its last shell commands with
//! their output. A setting chooses between the two. The commands are for a prompt or for a person:
//!
//! ```text
//! $ cargo test
//! running 40 tests
//! ... (32 lines omitted) ...
//! test result: ok
//! ```

use std::fmt::Write as _;

use pitstop_base::{clean, redact::redact};
use pitstop_transcript::{
    commands::{Chunk, CommandLog, CommandRecord, Direction},
    work::WorkAtHand,
};

use super::{TurnStanding, sections::in_fence, work};

/// A way to show what was done last.
pub trait ContextStrategy {
    /// Returns the name of its section of the message.
    fn section_name(&self) -> &'static str;

    /// Returns its text in at most about `room` bytes; empty if there is nothing to show.
    fn show_context(&self, room: usize) -> String;
}

/// The last steps of the transcript: the messages, and each call of a tool with its outcome.
#[derive(Clone, Copy, Debug)]
pub struct LastSteps<'a>(pub &'a WorkAtHand, pub TurnStanding);

impl ContextStrategy for LastSteps<'_> {
    fn section_name(&self) -> &'static str {
        "steps"
    }

    fn show_context(&self, room: usize) -> String {
        work::step_lines(self.0, self.1, room)
    }
}

/// The last shell commands, as [`shown_commands`] returns them.
#[derive(Clone, Copy, Debug)]
pub struct RecentCommands<'a>(pub &'a [String]);

impl ContextStrategy for RecentCommands<'_> {
    fn section_name(&self) -> &'static str {
        "recent_commands"
    }

    /// Returns as many of the last commands as fit, each whole.
    fn show_context(&self, room: usize) -> String {
        let mut left = room;
        let fits = self.0.iter().rev().take_while(|one| {
            let fits = one.len() < left;
            left = left.saturating_sub(one.len() + 1);
            fits
        });
        match &self.0[self.0.len() - fits.count()..] {
            [] => String::new(),
            shown => in_fence(&shown.join("\n")),
        }
    }
}

/// The number of commands that are shown.
pub const MAX_COMMANDS: usize = 10;

/// The number of lines of an output that are shown from its start, and again from its end; an output that has no more than
/// both together is shown whole.
const LINES_EACH: usize = 10;

/// The longest line, in bytes: minified files and binary data have lines without end.
const MAX_LINE: usize = 4_096;

/// Returns the last commands of a session, oldest first, as they are shown.
pub fn shown_commands(log: &CommandLog) -> Vec<String> {
    let records = log.records();
    let last = records
        .iter()
        .skip(records.len().saturating_sub(MAX_COMMANDS));
    last.map(|record| shown_command(record, log.read(record)))
        .collect()
}

/// Returns one command: its line, then its output; every line ends with a line feed.
fn shown_command(record: &CommandRecord, output: &[Chunk]) -> String {
    let line = match &record.command {
        Some(command) => clean::text(&clean::without_escapes(command)).into_owned(),
        None => "(unknown)".to_owned(),
    };
    format!("$ {line}\n{}", shorten_output(output))
}

/// Returns the output of a command, with its middle left out if it is long; every line ends with a line feed.
pub fn shorten_output(output: &[Chunk]) -> String {
    let mut text = String::new();
    let (start, gap, end) = split_at_gap(output);
    let total = start.len() as u64 + gap + end.len() as u64;
    if total <= 2 * LINES_EACH as u64 && gap == 0 {
        push_lines(&mut text, start.iter().chain(&end));
        return text;
    }
    let head = &start[..start.len().min(LINES_EACH)];
    // If the end alone has too few lines, those before it are in the start.
    let tail: Vec<_> = start[head.len()..].iter().chain(&end).collect();
    let tail = &tail[tail.len().saturating_sub(LINES_EACH)..];
    let omitted = total - head.len() as u64 - tail.len() as u64;
    push_lines(&mut text, head);
    // Writing to a string cannot fail.
    let _ = writeln!(text, "... ({omitted} lines omitted) ...");
    push_lines(&mut text, tail.iter().copied());
    text
}

fn push_lines<'a>(text: &mut String, lines: impl IntoIterator<Item = &'a String>) {
    for line in lines {
        let end = line.floor_char_boundary(MAX_LINE);
        text.push_str(&line[..end]);
        if end < line.len() {
            text.push('…');
        }
        text.push('\n');
    }
}

/// Returns the printed lines before and after the lines that were not kept, and the number of the latter between them.
fn split_at_gap(output: &[Chunk]) -> (Vec<String>, u64, Vec<String>) {
    let gap_at = output
        .iter()
        .position(|chunk| matches!(chunk, Chunk::Gap { .. }));
    let (start, rest) = output.split_at(gap_at.unwrap_or(output.len()));
    let gap = rest.iter().map(|chunk| match chunk {
        Chunk::Gap { lines } => *lines,
        Chunk::Bytes(..) => 0,
    });
    (printed_lines(start), gap.sum(), printed_lines(rest))
}

/// Returns the lines of the output as a person reads them, with its secrets masked: in a part of them a secret of several lines could
/// not be recognised. Blank ones at the end are left out.
fn printed_lines(chunks: &[Chunk]) -> Vec<String> {
    let mut bytes = Vec::new();
    for chunk in chunks {
        if let Chunk::Bytes(Direction::Output, printed) = chunk {
            bytes.extend_from_slice(printed);
        }
    }
    let text = String::from_utf8_lossy(&bytes);
    let text = clean::without_escapes(&text);
    clean::text(redact(&text).trim_end())
        .lines()
        .map(str::to_owned)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use pitstop_transcript::commands::cast;

    fn context(log: &CommandLog) -> String {
        shown_commands(log).join("\n")
    }

    fn record(command: &str) -> CommandRecord {
        CommandRecord {
            command: Some(command.to_owned()),
            ..CommandRecord::default()
        }
    }

    fn out(text: &str) -> Chunk {
        Chunk::Bytes(Direction::Output, text.as_bytes().to_vec())
    }

    fn numbered(lines: std::ops::RangeInclusive<u32>) -> String {
        lines.fold(String::new(), |text, n| text + &format!("line {n}\n"))
    }

    #[test]
    fn empty_commands() {
        let log = CommandLog::new(10);
        assert_eq!(context(&log), "");
    }

    #[test]
    fn single_command() {
        let mut log = CommandLog::new(10);
        log.push(
            record("ls -l"),
            vec![out("\u{1b}[32mone\u{1b}[0m\r\n"), out("two\n\n")],
        );
        assert_eq!(context(&log), "$ ls -l\none\ntwo\n");
    }

    #[test]
    fn truncates_long_output() {
        for (lines, expected) in [
            (20, numbered(1..=20)),
            (
                21,
                format!(
                    "{}... (1 lines omitted) ...\n{}",
                    numbered(1..=10),
                    numbered(12..=21)
                ),
            ),
            (
                100,
                format!(
                    "{}... (80 lines omitted) ...\n{}",
                    numbered(1..=10),
                    numbered(91..=100)
                ),
            ),
        ] {
            let mut log = CommandLog::new(10);
            log.push(record("seq"), vec![out(&numbered(1..=lines))]);
            assert_eq!(context(&log), format!("$ seq\n{expected}"));
        }
    }

    #[test]
    fn max_recent_commands() {
        let mut log = CommandLog::new(100);
        for n in 0..15 {
            log.push(record(&format!("echo {n}")), vec![out(&format!("{n}\n"))]);
        }
        let expected = (5..15)
            .map(|n| format!("$ echo {n}\n{n}\n"))
            .collect::<Vec<_>>()
            .join("\n");
        assert_eq!(context(&log), expected);
    }

    #[test]
    fn filters_output_direction_only() {
        let mut log = CommandLog::new(10);
        let typed = Chunk::Bytes(Direction::Input, b"hunter2\r".to_vec());
        log.push(record("login"), vec![out("name: "), typed, out("ada\r\n")]);
        assert_eq!(context(&log), "$ login\nname: ada\n");
    }

    #[test]
    fn command_without_command_line() {
        let mut log = CommandLog::new(10);
        log.push(CommandRecord::default(), vec![out("x\n")]);
        assert_eq!(context(&log), "$ (unknown)\nx\n");
    }

    #[test]
    fn within_a_budget_the_last_commands_are_shown_whole() {
        let one = |n: u32| format!("$ echo {n}\n{n}\n");
        let all = [one(0), one(1), one(2)];
        let within = |budget| RecentCommands(&all).show_context(budget);
        let fenced = |text: &str| format!("```\n{}\n```", text.trim_end());
        assert_eq!(within(10_000), fenced(&all.join("\n")));
        assert_eq!(within(24), fenced(&all[1..].join("\n")));
        assert_eq!(within(23), fenced(&one(2)));
        assert_eq!(within(5), "");
        assert_eq!(RecentCommands(&[]).show_context(5), "");
    }

    #[test]
    fn output_that_was_not_kept_counts_as_omitted() {
        let mut log = CommandLog::new(10);
        let chunks = vec![
            out(&numbered(1..=12)),
            Chunk::Gap { lines: 1_000 },
            out(&numbered(13..=30)),
        ];
        log.push(record("flood"), chunks);
        let expected = format!(
            "$ flood\n{}... (1010 lines omitted) ...\n{}",
            numbered(1..=10),
            numbered(21..=30)
        );
        assert_eq!(context(&log), expected);
    }

    #[test]
    fn a_line_without_end_is_cut_on_a_character() {
        let mut log = CommandLog::new(10);
        log.push(record("x"), vec![out(&"é".repeat(10_000))]);
        let text = context(&log);
        assert_eq!(
            text.lines().nth(1).map(|line| line.chars().count()),
            Some(2_049)
        );
    }

    #[test]
    fn a_recording_gives_the_same_text() {
        let event = |text: &str| serde_json::json!([0.5, "o", text]).to_string();
        let text = format!(
            "{}\n{}\n",
            serde_json::json!({"version": 2}),
            event("\u{1b}]133;B\u{7}ls\r\n\u{1b}]133;C\u{7}a\r\nb\r\n\u{1b}]133;D;0\u{7}")
        );
        assert_eq!(
            context(&cast::read_commands(text.as_bytes(), 10)),
            "$ ls\na\nb\n"
        );
    }

    #[test]
    fn a_secret_of_many_lines_is_masked_before_its_middle_is_left_out() {
        let kind = concat!("PRIVATE ", "KEY");
        let lines: Vec<String> = (0..40)
            .map(|n| format!("MIIEvQ{n:02}Bx9ZkQ4tLw7RyUaPdE2sGhJ"))
            .collect();
        let text = format!(
            "-----BEGIN {kind}-----\n{}\n-----END {kind}-----\n",
            lines.join("\n")
        );
        let shown = shorten_output(&[out(&text)]);
        assert!(
            lines.iter().all(|line| !shown.contains(&line[8..])),
            "{shown}"
        );
        let (start, end) = text.split_at(text.len() / 2);
        let shown = shorten_output(&[out(start), Chunk::Gap { lines: 3 }, out(end)]);
        assert!(
            lines.iter().all(|line| !shown.contains(line.as_str())),
            "{shown}"
        );
    }
}
