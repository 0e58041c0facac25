//! Shell commands with their output: [`CommandRecord`].
//!
//! A command is an assistant's call of a shell tool paired, by the call's id, with the result that the client sent
//! back. The human's own `!command` lines count too; a subagent's do not. Only the last few commands are kept, each
//! with a bounded part of its output, so that a transcript of any size costs little memory.
//!
//! [`cast`] makes the same records from a recording of a pane.

pub mod cast;

use std::{collections::VecDeque, time::Duration};

use chrono::{DateTime, Utc};
use memchr::memmem;
use serde_json::Value;

use super::{
    SessionId,
    content::{Block, each_block, text_in_tag, tool_output, without_notes},
    denial::{Denial, read_denial},
    record::{Splitter, parsed_records},
    waiting::Waiting,
    words::split_ends,
};

/// The most output kept of one command, in bytes: half from its start and half from its end. The client itself
/// cuts shell output far below this.
pub const OUTPUT_CAP: usize = 256 * 1024;

/// The length in bytes of the longest command line kept; scripts given inline are longer than a person reads again.
const COMMAND_CAP: usize = 8 * 1024;

/// The most calls that wait for their result; a client runs a handful at once.
const CALLS_CAP: usize = 256;

/// One shell command that has run. Its output is read by [`CommandLog::read`].
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CommandRecord {
    /// Its number within its log, from 0: the key to its output.
    pub id: u64,
    /// The id of its call; none for a command of the human's, and in a recording.
    pub call: Option<String>,
    /// The session it ran in; none in a recording.
    pub session: Option<SessionId>,
    /// The command line; none where only its output is known.
    pub command: Option<String>,
    /// The directory in which the shell was when it began, if the transcript says so.
    pub directory: Option<String>,
    /// The exit status, if reported.
    pub exit: Option<i32>,
    /// The time when it ended; none in a recording.
    pub at: Option<DateTime<Utc>>,
    /// The time that it ran, if reported.
    pub duration: Option<Duration>,
}

/// The direction of bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// The bytes came from the program.
    Output,
    /// The bytes went to the program: they were typed or pasted, and are not a part of its output.
    Input,
}

/// A part of the input and output while a command ran.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Chunk {
    /// Bytes in one direction.
    Bytes(Direction, Vec<u8>),
    /// Output that was not kept, with the line feeds in it.
    Gap {
        /// The number of line feeds in it.
        lines: u64,
    },
}

/// The last commands of a session with their output.
#[derive(Clone, Debug, Default)]
pub struct CommandLog {
    limit: usize,
    next: u64,
    entries: VecDeque<(CommandRecord, Vec<Chunk>)>,
}

impl CommandLog {
    /// Makes an empty log that keeps the last `limit` commands.
    pub const fn new(limit: usize) -> Self {
        Self {
            limit,
            next: 0,
            entries: VecDeque::new(),
        }
    }

    /// Adds a command, whose `id` is set here, and drops the oldest one over the limit.
    pub fn push(&mut self, mut record: CommandRecord, output: Vec<Chunk>) {
        record.id = self.next;
        self.next += 1;
        self.entries.push_back((record, output));
        while self.entries.len() > self.limit {
            self.entries.pop_front();
        }
    }

    /// Returns the number of commands that were ever added: it changes whenever the log does.
    pub const fn total(&self) -> u64 {
        self.next
    }

    /// Returns the commands, oldest first.
    pub fn records(&self) -> Vec<CommandRecord> {
        self.entries.iter().map(|(one, _)| one.clone()).collect()
    }

    /// Returns the input and output while the command ran, in order; nothing for an unknown command.
    pub fn read(&self, record: &CommandRecord) -> &[Chunk] {
        let found = self.entries.iter().find(|(one, _)| one.id == record.id);
        found.map_or(&[], |(_, output)| output)
    }
}

/// Returns the start and the end of a text in at most [`OUTPUT_CAP`] bytes, with a gap for what was left out between them.
pub fn cap_output(text: &str) -> Vec<Chunk> {
    let bytes = |text: &str| Chunk::Bytes(Direction::Output, text.as_bytes().to_vec());
    let Some((start, end)) = split_ends(text, OUTPUT_CAP) else {
        return vec![bytes(text)];
    };
    let between = &text[start.len()..text.len() - end.len()];
    let lines = between.matches('\n').count() as u64;
    vec![bytes(start), Chunk::Gap { lines }, bytes(end)]
}

/// A call that waits for its result.
#[derive(Clone, Debug, Default)]
struct Call {
    command: Option<String>,
    directory: Option<String>,
    at: Option<DateTime<Utc>>,
}

/// Collects the shell commands of a transcript from its bytes, handed over in any pieces.
#[derive(Debug, Default)]
pub struct CommandReader {
    splitter: Splitter,
    state: State,
}

#[derive(Debug, Default)]
struct State {
    log: CommandLog,
    calls: Waiting<Call, CALLS_CAP>,
    /// A `!command` of the human, whose output comes in the next record.
    typed: Option<String>,
    /// True if the commands are those of a subagent, whose records are all of a side chain.
    is_side: bool,
}

impl CommandReader {
    /// Makes a reader that keeps the last `limit` commands.
    pub fn new(limit: usize) -> Self {
        let mut reader = Self::default();
        reader.state.log.limit = limit;
        reader
    }

    /// Makes a reader of a subagent's own transcript.
    pub(super) fn of_subagent(limit: usize) -> Self {
        let mut reader = Self::new(limit);
        reader.state.is_side = true;
        reader
    }

    /// Takes the next bytes of the transcript.
    pub fn push(&mut self, piece: &[u8]) {
        self.splitter.push(piece, |line| self.state.take_line(line));
    }

    /// Reports whether a line could hold a command: most are prompts, thoughts and other tools' calls.
    pub(super) fn may_hold_command(line: &[u8]) -> bool {
        const MARKS: [&[u8]; 4] = [
            b"\"tool_result\"",
            b"\"Bash\"",
            b"\"PowerShell\"",
            b"<bash-",
        ];
        MARKS.iter().any(|mark| memmem::find(line, mark).is_some())
    }

    /// Takes one record from a caller that has split and parsed the lines already.
    pub(super) fn take_record(&mut self, record: &Value) {
        self.state.take_record(record);
    }

    /// Returns the commands so far.
    pub(super) const fn log(&self) -> &CommandLog {
        &self.state.log
    }

    /// Ends the reading: a last line without its line feed counts if it is whole.
    pub fn finish(mut self) -> CommandLog {
        self.state.take_line(self.splitter.pending());
        self.state.log
    }
}

impl State {
    fn take_line(&mut self, line: &[u8]) {
        if !CommandReader::may_hold_command(line) {
            return;
        }
        for record in parsed_records(line) {
            self.take_record(&record);
        }
    }

    fn take_record(&mut self, record: &Value) {
        if (record["isSidechain"] == true) != self.is_side {
            return;
        }
        for block in each_block(&record["message"]["content"]) {
            match (record["type"].as_str(), block) {
                (Some("assistant"), Block::Call(block)) => self.begin_call(block, record),
                (Some("user"), Block::Result(block)) => self.end_call(block, record),
                (Some("user"), Block::Text(text)) => self.take_typed(text, record),
                _ => {}
            }
        }
    }

    fn begin_call(&mut self, block: &Value, record: &Value) {
        let shell = block["name"].as_str().is_some_and(is_shell);
        let Some(id) = block["id"].as_str().filter(|_| shell) else {
            return;
        };
        let call = Call {
            command: trimmed_command(text_of(&block["input"]["command"])),
            directory: record["cwd"].as_str().map(str::to_owned),
            at: record_time(record),
        };
        self.calls.insert(id, call);
    }

    fn end_call(&mut self, block: &Value, record: &Value) {
        let id = text_of(&block["tool_use_id"]);
        let call = self.calls.take(id);
        let copy = &record["toolUseResult"];
        // Without its call, only the shape of a shell's result shows that it is one.
        if call.is_none() && !(copy["stdout"].is_string() && copy["stderr"].is_string()) {
            return;
        }
        let said = match read_denial(record, block, false) {
            None => tool_output(block),
            Some(Denial::Stopped | Denial::Cut) => String::new(),
            // It did not run.
            Some(_) => return,
        };
        let failed = block["is_error"] == true;
        let (status, said) = exit_line(&said);
        let output = match (copy["stdout"].as_str(), copy["stderr"].as_str()) {
            (Some(out), err) => join_streams(out, err.unwrap_or_default()),
            (None, _) => said.to_owned(),
        };
        let directory = call.as_ref().and_then(|call| call.directory.clone());
        let (began, at) = (call.as_ref().and_then(|call| call.at), record_time(record));
        let done = !failed && copy["interrupted"] != true && copy["backgroundTaskId"].is_null();
        let known = CommandRecord {
            id: 0,
            call: Some(id.to_owned()),
            session: record["sessionId"].as_str().and_then(|id| id.parse().ok()),
            command: call.and_then(|call| call.command),
            directory,
            exit: status.or((done && copy["stdout"].is_string()).then_some(0)),
            at,
            duration: began
                .zip(at)
                .and_then(|(began, at)| (at - began).to_std().ok()),
        };
        self.log.push(known, cap_output(&output));
    }

    /// Takes a text of the human: it may be of the client's shell mode.
    fn take_typed(&mut self, text: &str, record: &Value) {
        let output = match shell_mode(text) {
            Some(ShellMode::Ran(command)) => {
                self.typed = trimmed_command(command);
                return;
            }
            Some(ShellMode::Printed(output)) => output,
            None => return,
        };
        let known = CommandRecord {
            session: record["sessionId"].as_str().and_then(|id| id.parse().ok()),
            command: self.typed.take(),
            at: record_time(record),
            ..CommandRecord::default()
        };
        self.log.push(known, cap_output(&output));
    }
}

/// A text by which the client records its shell mode, in which a person runs commands with `!` in front.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ShellMode<'a> {
    /// The command that was run.
    Ran(&'a str),
    /// What it printed.
    Printed(String),
}

/// Reads a text of the human as one of the client's shell mode; none if it is another. The client escapes the output and not the
/// command (measured with 2.1.332).
pub fn shell_mode(text: &str) -> Option<ShellMode<'_>> {
    let text = text.trim();
    if let Some(command) = text.strip_prefix("<bash-input>") {
        let command = command.strip_suffix("</bash-input>").unwrap_or(command);
        return Some(ShellMode::Ran(command.trim()));
    }
    let out = text_in_tag(text, "bash-stdout").filter(|_| text.starts_with("<bash-stdout>"))?;
    let err = text_in_tag(text, "bash-stderr").unwrap_or_default();
    let output = join_streams(&without_notes(out), err);
    let unescaped = output.replace("&lt;", "<").replace("&gt;", ">");
    Some(ShellMode::Printed(unescaped.replace("&amp;", "&")))
}

/// Reports whether a tool of this name runs shell commands.
pub(super) fn is_shell(tool: &str) -> bool {
    matches!(tool, "Bash" | "PowerShell")
}

fn text_of(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

fn trimmed_command(line: &str) -> Option<String> {
    let line = line.trim();
    (!line.is_empty()).then(|| line[..line.floor_char_boundary(COMMAND_CAP)].to_owned())
}

fn join_streams(out: &str, err: &str) -> String {
    match (out, err) {
        (out, "") => out.to_owned(),
        ("", err) => err.to_owned(),
        (out, err) if out.ends_with('\n') => format!("{out}{err}"),
        (out, err) => format!("{out}\n{err}"),
    }
}

/// Returns the exit status that the client puts before the output of a failed command, and the output.
fn exit_line(said: &str) -> (Option<i32>, &str) {
    let body = said.strip_prefix("Error: ").unwrap_or(said);
    let Some(rest) = body.strip_prefix("Exit code ") else {
        return (None, said);
    };
    let (code, output) = rest.split_once('\n').unwrap_or((rest, ""));
    code.trim()
        .parse()
        .map_or((None, said), |code| (Some(code), output))
}

/// Returns the time when a record was written.
pub(super) fn record_time(record: &Value) -> Option<DateTime<Utc>> {
    record["timestamp"].as_str()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    const SESSION: &str = "0a0b0c0d-0001-4002-8003-000000000004";

    fn used(id: &str, command: &str) -> String {
        json!({"type": "assistant", "sessionId": SESSION, "timestamp": "2026-01-01T00:00:00Z", "message":
            {"content": [{"type": "tool_use", "id": id, "name": "Bash", "input": {"command": command}}]}})
        .to_string()
    }

    fn came(id: &str, content: &str, copy: &Value, error: bool) -> String {
        json!({"type": "user", "sessionId": SESSION, "timestamp": "2026-01-01T00:00:02.5Z", "message":
            {"content": [{"type": "tool_result", "tool_use_id": id, "content": content, "is_error": error}]},
            "toolUseResult": copy})
        .to_string()
    }

    fn read(lines: &[String]) -> Vec<(CommandRecord, String)> {
        let mut reader = CommandReader::new(100);
        reader.push(lines.join("\n").as_bytes());
        let log = reader.finish();
        let text = |chunks: &[Chunk]| {
            chunks
                .iter()
                .map(|chunk| match chunk {
                    Chunk::Bytes(_, bytes) => String::from_utf8_lossy(bytes).into_owned(),
                    Chunk::Gap { lines } => format!("<{lines}>"),
                })
                .collect::<String>()
        };
        log.records()
            .into_iter()
            .map(|record| {
                let output = text(log.read(&record));
                (record, output)
            })
            .collect()
    }

    #[test]
    fn a_call_and_its_result_make_a_record() {
        let copy = json!({"stdout": "a\nb", "stderr": "oh", "interrupted": false});
        let found = read(&[used("t1", "ls"), came("t1", "a\nb\noh", &copy, false)]);
        let expected = CommandRecord {
            id: 0,
            call: Some("t1".to_owned()),
            session: SESSION.parse().ok(),
            command: Some("ls".to_owned()),
            directory: None,
            exit: Some(0),
            at: "2026-01-01T00:00:02.5Z".parse().ok(),
            duration: Some(Duration::from_millis(2500)),
        };
        assert_eq!(found, [(expected, "a\nb\noh".to_owned())]);
    }

    #[test]
    fn a_failed_command_shows_its_exit_status() {
        let found = read(&[
            used("t1", "false"),
            came(
                "t1",
                "Exit code 101\nboom",
                &json!("Error: Exit code 101\nboom"),
                true,
            ),
        ]);
        assert_eq!((found[0].0.exit, found[0].1.as_str()), (Some(101), "boom"));
    }

    #[test]
    fn a_command_that_did_not_run_is_none() {
        for said in [
            "The user doesn't want to proceed with this tool use. The tool use was rejected.",
            "Permission to use Bash with command make has been denied.",
            "<tool_use_error>Sibling tool call errored</tool_use_error>",
        ] {
            assert_eq!(
                read(&[used("t1", "make"), came("t1", said, &json!(said), true)]),
                []
            );
        }
        let stopped = "[Request interrupted by user for tool use]";
        let found = read(&[
            used("t1", "make"),
            came("t1", stopped, &json!(stopped), true),
        ]);
        assert_eq!((found[0].0.exit, found[0].1.as_str()), (None, ""));
    }

    #[test]
    fn parallel_calls_are_paired_by_id() {
        let copy = |out: &str| json!({"stdout": out, "stderr": ""});
        let found = read(&[
            used("t1", "one"),
            used("t2", "two"),
            came("t2", "2", &copy("2"), false),
            came("t1", "1", &copy("1"), false),
        ]);
        let shown: Vec<_> = found
            .iter()
            .map(|(record, output)| (record.command.as_deref(), output.as_str()))
            .collect();
        assert_eq!(shown, [(Some("two"), "2"), (Some("one"), "1")]);
    }

    #[test]
    fn a_result_without_its_call_counts_if_a_shell_gave_it() {
        let shell = json!({"stdout": "x", "stderr": ""});
        let file = json!({"file": {"content": "y"}});
        let found = read(&[
            came("t1", "x", &shell, false),
            came("t2", "y", &file, false),
        ]);
        assert_eq!(found.len(), 1);
        assert_eq!(
            (found[0].0.command.as_deref(), found[0].1.as_str()),
            (None, "x")
        );
    }

    #[test]
    fn other_tools_sidechains_and_odd_shapes_are_no_commands() {
        let side = used("t1", "ls").replace(
            "\"type\":\"assistant\"",
            "\"type\":\"assistant\",\"isSidechain\":true",
        );
        let lines = [
            side,
            came("t1", "x", &json!("x"), false),
            r#"{"type":"assistant","message":{"content":[{"type":"tool_use","id":"r","name":"Read","input":{"x":"Bash"}}]}}"#.to_owned(),
            r#"{"type":"user","message":{"content":[{"type":"tool_result","tool_use_id":"r","content":"Bash"}]}}"#.to_owned(),
            r#"{"type":"assistant","message":{"content":[{"type":"tool_use","id":5,"name":"Bash","input":[]}]}}"#.to_owned(),
            r#"{"type":"user","message":{"content":[{"type":"tool_result","content":{"a":1}}]},"toolUseResult":7}"#.to_owned(),
            "[\"Bash\"]".to_owned(),
            "\"tool_result\" {".to_owned(),
        ];
        assert_eq!(read(&lines), []);
    }

    #[test]
    fn the_humans_own_commands_count() {
        let user = |text: &str| json!({"type": "user", "message": {"content": text}}).to_string();
        let found = read(&[
            user("<bash-input>make</bash-input>"),
            user("<bash-stdout>ok</bash-stdout><bash-stderr>warn</bash-stderr>"),
        ]);
        assert_eq!(found[0].0.command.as_deref(), Some("make"));
        assert_eq!(found[0].1, "ok\nwarn");
    }

    #[test]
    fn the_shell_mode_is_read_as_the_client_records_it() {
        let printed = |text: &str| Some(ShellMode::Printed(text.to_owned()));
        for (text, line) in [
            (
                "<bash-input>echo \"<a> & </bash-input>\" | wc</bash-input>",
                Some(ShellMode::Ran("echo \"<a> & </bash-input>\" | wc")),
            ),
            (
                "<bash-stdout>&lt;a&gt; &amp; &amp;lt;\n</bash-stdout><bash-stderr>größe</bash-stderr>",
                printed("<a> & &lt;\ngröße"),
            ),
            (
                "<bash-stdout>(Bash completed with no output)</bash-stdout><bash-stderr></bash-stderr>",
                printed(""),
            ),
            ("see <bash-input>ls</bash-input>", None),
            ("<bash-stdout>not closed", None),
            ("<bash-stderr>x</bash-stderr>", None),
        ] {
            assert_eq!(shell_mode(text), line, "{text}");
        }
    }

    #[test]
    fn torn_joined_and_damaged_lines_lose_no_neighbour() {
        let copy = json!({"stdout": "x", "stderr": ""});
        let (call, result) = (used("t1", "ls"), came("t1", "x", &copy, false));
        assert_eq!(read(&[format!("{call}{result}")]).len(), 1);
        let torn = format!("{}{}", &call[..call.len() / 2], call);
        assert_eq!(
            read(&[torn, result.clone()])[0].0.command.as_deref(),
            Some("ls")
        );
        let lone = result.replace("\"x\"", r#""a\ud83db\\ud83d\ud83d\ude00""#);
        assert_eq!(read(&[call, lone])[0].1, "a\u{fffd}b\\ud83d😀");
    }

    #[test]
    fn huge_output_keeps_its_two_ends() {
        let line = "0123456789\n";
        let text = line.repeat(OUTPUT_CAP / line.len() * 3);
        let chunks = cap_output(&text);
        let [
            Chunk::Bytes(_, start),
            Chunk::Gap { lines },
            Chunk::Bytes(_, end),
        ] = chunks.as_slice()
        else {
            panic!("{} chunks", chunks.len());
        };
        let kept = bytecount(start) + bytecount(end);
        assert_eq!(kept + lines, text.lines().count() as u64);
        assert!(start.len() + end.len() <= OUTPUT_CAP);
    }

    fn bytecount(bytes: &[u8]) -> u64 {
        memchr::memchr_iter(b'\n', bytes).count() as u64
    }

    #[test]
    fn only_the_last_commands_are_kept() {
        let copy = json!({"stdout": "x", "stderr": ""});
        let mut reader = CommandReader::new(3);
        for n in 0..1_000 {
            // A result that never comes must not hold memory either.
            reader.push(format!("{}\n", used(&format!("never{n}"), "x")).as_bytes());
            reader.push(
                format!(
                    "{}\n{}\n",
                    used("t", &n.to_string()),
                    came("t", "x", &copy, false)
                )
                .as_bytes(),
            );
        }
        assert!(reader.state.calls.len() <= CALLS_CAP);
        let kept: Vec<_> = reader
            .finish()
            .records()
            .into_iter()
            .filter_map(|r| r.command)
            .collect();
        assert_eq!(kept, ["997", "998", "999"]);
    }

    proptest! {
        #[test]
        fn any_damage_is_survived(at in 0usize..400, byte in any::<u8>(), cut in 0usize..400) {
            let copy = json!({"stdout": "\u{1b}[31mé", "stderr": ""});
            let text = format!("{}\n{}\n", used("t", "l\\\"é"), came("t", "x", &copy, false));
            let mut bytes = text.into_bytes();
            let at = at.min(bytes.len() - 1);
            bytes[at] = byte;
            bytes.truncate(bytes.len() - cut.min(bytes.len()));
            let mut reader = CommandReader::new(3);
            reader.push(&bytes);
            prop_assert!(reader.finish().records().len() <= 1);
        }

        #[test]
        fn any_text_with_escapes_is_mended_or_refused(text in "(\\\\|u|d|8|3|c|\"|\\{|\\}|é){0,40}") {
            let _ = crate::record::mend_json(text.as_bytes());
        }
    }
}
