//! Which part of a session's past is given word for word: [`ContextStrategy`], and the one there is, [`RecentCommands`].
//!
//! A strategy chooses among [`CommandRecord`]s and asks an [`OutputReader`] for the output of the ones it chose, so that
//! nothing else is read. The text is for a prompt or for a person:
//!
//! ```text
//! $ cargo test
//! running 40 tests
//! ... (32 lines omitted) ...
//! test result: ok
//! ```

use std::fmt::Write as _;

use crate::{
    clean,
    transcript::commands::{Chunk, CommandRecord, Direction, OutputReader},
};

/// Makes a text of what happened in a session.
pub trait ContextStrategy {
    /// The text for one session's commands, oldest first; empty when there is nothing to show.
    fn context(&self, records: &[CommandRecord], output: &dyn OutputReader) -> String;

    /// The text for several sessions, each under a head `=== Session ID ===`; sessions with nothing to show are left out.
    fn context_of_all(
        &self,
        sessions: &[(String, Vec<CommandRecord>, &dyn OutputReader)],
    ) -> String {
        sessions
            .iter()
            .map(|(id, records, output)| (id, self.context(records, *output)))
            .filter(|(_, text)| !text.is_empty())
            .map(|(id, text)| format!("=== Session {} ===\n{text}", clean::one_line(id)))
            .collect::<Vec<_>>()
            .join("\n")
    }
}

/// The last shell commands with their output.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RecentCommands {
    /// How many commands are shown.
    pub max_commands: usize,
    /// How many lines of an output are shown from its start, and again from its end; an output that has no more than
    /// both together is shown whole.
    pub lines_each: usize,
    /// The longest line, in bytes: minified files and binary data have lines without end.
    pub max_line: usize,
}

impl Default for RecentCommands {
    fn default() -> Self {
        Self {
            max_commands: 10,
            lines_each: 10,
            max_line: 4_096,
        }
    }
}

impl ContextStrategy for RecentCommands {
    fn context(&self, records: &[CommandRecord], output: &dyn OutputReader) -> String {
        let first = records.len().saturating_sub(self.max_commands);
        records[first..]
            .iter()
            .map(|record| self.one(record, &output.read(record)))
            .collect::<Vec<_>>()
            .join("\n")
    }
}

impl RecentCommands {
    /// The text in at most `budget` bytes: as many of the last commands as fit, each whole.
    #[must_use]
    pub fn context_within(
        &self,
        records: &[CommandRecord],
        output: &dyn OutputReader,
        budget: usize,
    ) -> String {
        let first = records.len().saturating_sub(self.max_commands);
        let mut shown = Vec::new();
        let mut size = 0;
        for record in records[first..].iter().rev() {
            let one = self.one(record, &output.read(record));
            size += one.len() + 1;
            if size > budget {
                break;
            }
            shown.push(one);
        }
        shown.reverse();
        shown.join("\n")
    }

    /// One command: its line, then its output; every line ended.
    fn one(&self, record: &CommandRecord, output: &[Chunk]) -> String {
        let line = match &record.command {
            Some(command) => clean::text(&clean::without_escapes(command)).into_owned(),
            None => "(unknown)".to_owned(),
        };
        format!("$ {line}\n{}", self.shortened(output))
    }

    /// What a command printed, its middle left out if it is long; every line ended.
    #[must_use]
    pub fn shortened(&self, output: &[Chunk]) -> String {
        let mut text = String::new();
        let (start, gap, end) = lines(output);
        let total = start.len() as u64 + gap + end.len() as u64;
        let kept = self.lines_each;
        if total <= 2 * kept as u64 && gap == 0 {
            self.put(&mut text, start.iter().chain(&end));
            return text;
        }
        let head = &start[..start.len().min(kept)];
        // Where the end alone has too few lines, those before it are in the start.
        let tail: Vec<_> = start[head.len()..].iter().chain(&end).collect();
        let tail = &tail[tail.len().saturating_sub(kept)..];
        let omitted = total - head.len() as u64 - tail.len() as u64;
        self.put(&mut text, head);
        // Writing to a string cannot fail.
        let _ = writeln!(text, "... ({omitted} lines omitted) ...");
        self.put(&mut text, tail.iter().copied());
        text
    }

    fn put<'a>(&self, text: &mut String, lines: impl IntoIterator<Item = &'a String>) {
        for line in lines {
            let end = line.floor_char_boundary(self.max_line);
            text.push_str(&line[..end]);
            if end < line.len() {
                text.push('…');
            }
            text.push('\n');
        }
    }
}

/// The printed lines before and behind what was not kept, and how many were not.
fn lines(output: &[Chunk]) -> (Vec<String>, u64, Vec<String>) {
    let gap_at = output
        .iter()
        .position(|chunk| matches!(chunk, Chunk::Gap { .. }));
    let (start, rest) = output.split_at(gap_at.unwrap_or(output.len()));
    let gap = rest.iter().map(|chunk| match chunk {
        Chunk::Gap { lines } => *lines,
        Chunk::Bytes(..) => 0,
    });
    (printed(start), gap.sum(), printed(rest))
}

/// The lines of what was printed, as a person reads them; blank ones at the end left out.
fn printed(chunks: &[Chunk]) -> Vec<String> {
    let mut bytes = Vec::new();
    for chunk in chunks {
        if let Chunk::Bytes(Direction::Output, printed) = chunk {
            bytes.extend_from_slice(printed);
        }
    }
    let text = String::from_utf8_lossy(&bytes);
    let text = clean::without_escapes(&text);
    clean::text(text.trim_end())
        .lines()
        .map(str::to_owned)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::transcript::commands::{CommandLog, cast};

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

    fn context(log: &CommandLog) -> String {
        RecentCommands::default().context(&log.records(), log)
    }

    #[test]
    fn empty_commands() {
        let log = CommandLog::new(10);
        assert_eq!(context(&log), "");
        let sessions: [(String, Vec<CommandRecord>, &dyn OutputReader); 1] =
            [("a".to_owned(), log.records(), &log)];
        assert_eq!(RecentCommands::default().context_of_all(&sessions), "");
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
        let mut log = CommandLog::new(10);
        for n in 0..3 {
            log.push(record(&format!("echo {n}")), vec![out(&format!("{n}\n"))]);
        }
        let within =
            |budget| RecentCommands::default().context_within(&log.records(), &log, budget);
        assert_eq!(within(10_000), context(&log));
        assert_eq!(within(24), "$ echo 1\n1\n\n$ echo 2\n2\n");
        assert_eq!(within(23), "$ echo 2\n2\n");
        assert_eq!(within(5), "");
    }

    #[test]
    fn sessions_stand_under_their_heads() {
        let (mut one, mut two) = (CommandLog::new(10), CommandLog::new(10));
        one.push(record("a"), vec![out("1\n")]);
        two.push(record("b"), vec![]);
        let none = CommandLog::new(10);
        let sessions: [(String, Vec<CommandRecord>, &dyn OutputReader); 3] = [
            ("s1".to_owned(), one.records(), &one),
            ("s2".to_owned(), none.records(), &none),
            ("s3".to_owned(), two.records(), &two),
        ];
        assert_eq!(
            RecentCommands::default().context_of_all(&sessions),
            "=== Session s1 ===\n$ a\n1\n\n=== Session s3 ===\n$ b\n"
        );
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
            context(&cast::commands(text.as_bytes(), 10)),
            "$ ls\na\nb\n"
        );
    }
}
