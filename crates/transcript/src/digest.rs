//! The parts of a transcript that a handoff shows, gathered line by line while the transcript is followed.
//!
//! | gathered | from which lines |
//! |---|---|
//! | the last shell commands | those near the end: older ones would be dropped again |
//! | the work at hand | those near the end, where everything is that is used next |
//! | the human's own words | all: a rule is said once |
//! | the agent's to-do list | all, because a task made long ago may still be open |
//! | the words of the assistant | only new ones: the older ones were read before |
//! | which calls have ended, how many are open, and how the last turn ended | only new ones |
//!
//! Memory is bounded whatever the transcript holds, and lines that are not needed are not parsed.

use std::collections::VecDeque;

use memchr::memmem;
use serde_json::Value;

use super::{
    branches::{Branches, TURN_ENDS},
    commands::{Chunk, CommandLog, CommandReader, Direction, is_shell},
    content::{Block, each_block, tool_output},
    denial::{Denial, read_denial},
    human::{HumanWords, unsaid_prompt},
    queue::Queue,
    record::{self, Assistant, Record, parsed_records},
    todo::{TodoCall, Todos, is_todo_tool},
    waiting::Waiting,
    work::{Work, WorkAtHand},
};

/// The distance in bytes from the end of the file within which commands are gathered: ten of the largest results and much else.
pub const COMMANDS_REACH: u64 = 8 * 1024 * 1024;

/// The distance in bytes from the end of the file within which the work at hand is gathered: hours of a conversation.
const WORK_REACH: u64 = 8 * 1024 * 1024;

/// The length in bytes of the longest line that is read for the work and for the human's words.
const LINE_CAP: usize = 8 * 1024 * 1024;

/// The most bytes of the assistant's words that are kept until they are taken.
const SAID_CAP: usize = 4 * 1024 * 1024;

/// The most commands of a subagent that are kept at a time: those whose results are in one record.
const SIDE_COMMANDS: usize = 16;

/// The most calls that wait for their result.
const CALLS_CAP: usize = 64;

/// The most ended calls that are kept until they are taken: they come one by one, but for those of a subagent, which are read when it
/// is done.
const RAN_CAP: usize = 512;

/// A shell command, or a call of another tool, that has ended.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Ran {
    /// The id of the call; none for a command of the human's.
    pub call: Option<String>,
    /// The name of the tool; none for a shell.
    pub tool: Option<String>,
    /// The command line of a shell; empty if it is not known.
    pub command: String,
    /// The file, for a tool that touches one.
    pub file: Option<String>,
    /// The directory in which the shell was when it began, if that is known.
    pub directory: Option<String>,
    /// The output, as far as it was kept.
    pub output: String,
    /// True if it is known to have failed.
    pub failed: bool,
    /// True if a subagent ran it.
    pub by_subagent: bool,
}

/// The end of a turn, as its last record shows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Closing {
    /// The assistant has answered, and calls no tool.
    Answered,
    /// The client shows an error in the place of an answer.
    Failed {
        /// The client's word for it; empty if it has none.
        word: String,
        /// The text that it shows.
        message: String,
    },
}

/// A call of a tool that has no result yet.
#[derive(Debug, Default)]
struct Begun {
    tool: String,
    file: Option<String>,
    /// The input, of a to-do tool.
    todo: Value,
}

/// The gathered parts of a transcript so far; see the top of this file.
#[derive(Debug, Default)]
pub struct Digest {
    limit: usize,
    /// True if it is of a subagent's own transcript: then only the calls that have ended are gathered.
    is_side: bool,
    branches: Branches,
    commands: CommandReader,
    work: Work,
    /// True if the work has changed since it was taken last.
    worked: bool,
    human: HumanWords,
    /// True if the human's words have changed since they were taken last.
    spoken: bool,
    todos: Todos,
    /// The calls of tools without their result, by their id, but for those of shells.
    calls: Waiting<Begun, CALLS_CAP>,
    /// The texts that the assistant said, each with its line number.
    said: VecDeque<(u64, String)>,
    said_bytes: usize,
    ran: VecDeque<Ran>,
    calls_open: usize,
    closing: Option<Closing>,
    closings: u64,
    queue: Queue,
}

/// The age of a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Age {
    /// The number of bytes between it and the end of the file.
    pub behind: u64,
    /// True if it was written since the following began.
    pub is_new: bool,
}

impl Digest {
    /// Makes an empty digest that keeps the last `commands` commands.
    pub fn new(commands: usize) -> Self {
        Self {
            limit: commands,
            commands: CommandReader::new(commands),
            ..Self::default()
        }
    }

    /// Makes an empty digest of a subagent's own transcript: of the calls that have ended.
    pub fn of_subagent() -> Self {
        Self {
            limit: SIDE_COMMANDS,
            is_side: true,
            commands: CommandReader::of_subagent(SIDE_COMMANDS),
            ..Self::default()
        }
    }

    /// Forgets everything: another file has begun.
    pub fn clear(&mut self) {
        *self = if self.is_side {
            Self::of_subagent()
        } else {
            Self::new(self.limit)
        };
    }

    /// Begins again because a rewind has taken something back: the file is read once more from its start, without that. Other
    /// news that was not taken yet is kept.
    pub fn begin_again(&mut self) {
        let before = std::mem::replace(self, Self::new(self.limit));
        self.branches = before.branches;
        self.branches.begin_again();
        self.said = before.said;
        self.said.retain(|(line, _)| self.branches.is_kept(*line));
        self.said_bytes = self.said.iter().map(|(_, text)| text.len()).sum();
        (self.ran, self.calls_open) = (before.ran, before.calls_open);
        (self.closing, self.closings) = (before.closing, before.closings);
        self.queue = before.queue;
        self.send_again();
    }

    /// Returns the branches of the file.
    pub const fn branches(&mut self) -> &mut Branches {
        &mut self.branches
    }

    /// Takes one stretch of the file (a line without its end).
    pub fn take_line(&mut self, line: &[u8], age: Age) {
        if self.is_side {
            return self.take_side_line(line, age);
        }
        if !self.branches.take_line(line) {
            return;
        }
        let has = |mark: &[u8]| memmem::find(line, mark).is_some();
        let commands = age.behind <= COMMANDS_REACH && CommandReader::may_hold_command(line);
        // Longer lines hold images and pasted files.
        let short = line.len() <= LINE_CAP;
        let calls = has(b"\"TodoWrite\"")
            || has(b"\"Task")
            || (age.is_new && short && has(b"\"tool_use\""))
            || (!self.calls.is_empty() && has(b"\"tool_result\""));
        let marks: [&[u8]; 4] = [
            b"\"user\"",
            b"\"assistant\"",
            b"\"queued_command\"",
            b"\"scheduled_task_fire\"",
        ];
        let work = short && age.behind <= WORK_REACH && marks.into_iter().any(has);
        let human = short && HumanWords::may_hold_words(line);
        let turns = ["\"assistant\"", "\"last-prompt\"", "\"environment\""];
        let mut turns = turns.iter().chain(&TURN_ENDS);
        let branch = self.branches.awaits_answer() && turns.any(|mark| has(mark.as_bytes()))
            || short && has(b"\"compact_boundary\"");
        let before = self.commands.log().total();
        if commands || calls || work || human || branch {
            for record in parsed_records(line) {
                if work {
                    self.work.take_record(&record);
                    self.worked = true;
                }
                if human || branch {
                    self.branches.take_record(&record);
                }
                if human {
                    // A hook may have reported it as a person's.
                    let is_unsaid = unsaid_prompt(&record).is_some();
                    self.spoken |= self.human.take_record(&record) || is_unsaid;
                }
                if commands {
                    self.commands.take_record(&record);
                }
                if calls {
                    self.take_calls(&record, age.is_new);
                }
            }
        }
        if !age.is_new {
            return;
        }
        self.note_ran(before);
        if self.queue.may_change(line) {
            for record in parsed_records(line) {
                self.queue.take_record(&record);
            }
        }
        if has(b"\"assistant\"") {
            record::each_record(line, &mut |record| self.take_words(&record));
        }
        if self.calls_open > 0 && !has(b"\"isSidechain\":true") {
            // A result may be of any size, and its mark shows that it is one; a prompt ends what was open.
            let results = memmem::find_iter(line, b"\"type\":\"tool_result\"").count();
            self.calls_open = self.calls_open.saturating_sub(results);
            if results == 0 && has(b"\"type\":\"user\"") {
                self.calls_open = 0;
            }
        }
        if has(b"\"type\":\"user\"") && !has(b"\"isSidechain\":true") {
            self.closing = None;
        }
    }

    /// Takes a line of a subagent's own transcript.
    fn take_side_line(&mut self, line: &[u8], age: Age) {
        let has = |mark: &[u8]| memmem::find(line, mark).is_some();
        if line.len() > LINE_CAP || !(has(b"\"tool_use\"") || has(b"\"tool_result\"")) {
            return;
        }
        let before = self.commands.log().total();
        for record in parsed_records(line) {
            self.commands.take_record(&record);
            self.take_calls(&record, age.is_new);
        }
        if age.is_new {
            self.note_ran(before);
        }
    }

    /// Notes the commands that have ended since their total was `before`.
    fn note_ran(&mut self, before: u64) {
        let over = self.ran.len().saturating_sub(RAN_CAP);
        self.ran.drain(..over);
        let log = self.commands.log();
        if log.total() == before {
            return;
        }
        let ended = log.records().into_iter();
        for record in ended.filter(|record| record.id >= before) {
            let output = log.read(&record);
            self.ran.push_back(Ran {
                output: printed_text(output),
                failed: record.exit.is_some_and(|code| code != 0),
                call: record.call,
                command: record.command.unwrap_or_default(),
                directory: record.directory,
                by_subagent: self.is_side,
                ..Ran::default()
            });
        }
    }

    /// Returns how the last turn ended; none if it has not, or that is not known.
    pub const fn closing(&self) -> Option<&Closing> {
        self.closing.as_ref()
    }

    /// Returns the number of such ends so far.
    pub const fn closings(&self) -> u64 {
        self.closings
    }

    /// Takes the commands and the calls of other tools that have ended since the last call of this function, oldest first.
    pub fn take_ran(&mut self) -> Vec<Ran> {
        self.ran.drain(..).collect()
    }

    /// Returns the number of calls of tools on the main chain that have no result yet.
    pub const fn calls_open(&self) -> usize {
        self.calls_open
    }

    /// Returns the prompts that wait for the agent, of those that were given since we began to follow.
    pub fn queued(&self) -> &[String] {
        self.queue.prompts()
    }

    /// Returns the last shell commands.
    pub const fn commands(&self) -> &CommandLog {
        self.commands.log()
    }

    /// Returns the agent's to-do list.
    pub const fn todos(&self) -> &Todos {
        &self.todos
    }

    /// Returns the work at hand, if it has changed since the last call of this function.
    pub fn take_work(&mut self) -> Option<WorkAtHand> {
        std::mem::take(&mut self.worked).then(|| self.work.report())
    }

    /// Returns the human's words, if there were new ones since the last call of this function.
    pub fn take_human(&mut self) -> Option<HumanWords> {
        std::mem::take(&mut self.spoken).then(|| self.human.clone())
    }

    /// Marks the work and the human's words as changed, so that they are sent again.
    pub const fn send_again(&mut self) {
        self.worked = true;
        self.spoken = true;
    }

    /// Takes the texts that the assistant said on the main chain since the last call of this function, oldest first.
    pub fn take_said(&mut self) -> Vec<String> {
        self.said_bytes = 0;
        self.said.drain(..).map(|(_, text)| text).collect()
    }

    fn take_words(&mut self, record: &Record<'_>) {
        let Record::Assistant(message) = record else {
            return;
        };
        if message.sidechain {
            return;
        }
        self.closing = closing_of(message);
        self.closings += u64::from(self.closing.is_some());
        if !message.is_genuine() {
            return;
        }
        self.calls_open += message.tool_uses;
        if message.texts.is_empty() {
            return;
        }
        let text = message.texts.join("\n\n");
        self.said_bytes += text.len();
        self.said.push_back((self.branches.line_number(), text));
        while self.said_bytes > SAID_CAP && self.said.len() > 1 {
            let (_, dropped) = self.said.pop_front().unwrap_or_default();
            self.said_bytes -= dropped.len();
        }
    }

    fn take_calls(&mut self, record: &Value, is_new: bool) {
        // A subagent's calls, and its list, are its own.
        if (record["isSidechain"] == true) != self.is_side {
            return;
        }
        for block in each_block(&record["message"]["content"]) {
            match block {
                Block::Call(block) => self.begin_call(block),
                Block::Result(block) => self.end_call(block, record, is_new),
                Block::Text(_) | Block::Image => {}
            }
        }
    }

    fn begin_call(&mut self, block: &Value) {
        let (Some(id), Some(name)) = (block["id"].as_str(), block["name"].as_str()) else {
            return;
        };
        if is_shell(name) {
            return;
        }
        let input = &block["input"];
        let file = input["file_path"].as_str();
        let begun = Begun {
            tool: name.to_owned(),
            file: file.or(input["notebook_path"].as_str()).map(str::to_owned),
            todo: if is_todo_tool(name) {
                input.clone()
            } else {
                Value::Null
            },
        };
        self.calls.insert(id, begun);
    }

    fn end_call(&mut self, block: &Value, record: &Value, is_new: bool) {
        let Some(id) = block["tool_use_id"].as_str() else {
            return;
        };
        let Some(Begun { tool, file, todo }) = self.calls.take(id) else {
            return;
        };
        let failed = block["is_error"] == true;
        if !failed
            && !self.is_side
            && let Some(call) = TodoCall::read(Some(id), &tool, &todo, &record["toolUseResult"])
        {
            self.todos.apply(&call);
        }
        // A call that was stopped has run, and has not failed.
        let denial = read_denial(record, block, tool.starts_with("mcp__"));
        if !is_new || denial.is_some_and(|why| !matches!(why, Denial::Stopped | Denial::Cut)) {
            return;
        }
        let failed = failed && denial.is_none();
        let output = failed.then(|| tool_output(block));
        self.ran.push_back(Ran {
            call: Some(id.to_owned()),
            tool: Some(tool),
            file,
            output: output.unwrap_or_default(),
            failed,
            by_subagent: self.is_side,
            ..Ran::default()
        });
    }
}

fn closing_of(message: &Assistant<'_>) -> Option<Closing> {
    if message.api_error {
        return Some(Closing::Failed {
            word: message.error.clone().unwrap_or_default(),
            message: message.texts.join("\n"),
        });
    }
    let answers = message.is_genuine() && message.tool_uses == 0 && !message.texts.is_empty();
    answers.then_some(Closing::Answered)
}

/// Returns the printed text, with a line feed in place of each gap.
fn printed_text(output: &[Chunk]) -> String {
    let mut text = String::new();
    for chunk in output {
        match chunk {
            Chunk::Bytes(Direction::Output, bytes) => {
                text.push_str(&String::from_utf8_lossy(bytes));
            }
            Chunk::Bytes(Direction::Input, _) => {}
            Chunk::Gap { .. } => text.push('\n'),
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const NEW: Age = Age {
        behind: 0,
        is_new: true,
    };

    fn called(id: &str, name: &str, input: &Value) -> String {
        let block = json!({"type": "tool_use", "id": id, "name": name, "input": input});
        json!({"type": "assistant", "message": {"model": "m", "content": [block]}}).to_string()
    }

    fn answered(id: &str, result: &Value) -> String {
        let block = json!({"type": "tool_result", "tool_use_id": id, "content": "x"});
        json!({"type": "user", "message": {"content": [block]}, "toolUseResult": result})
            .to_string()
    }

    fn said(text: &str, fields: &Value) -> String {
        let content = json!([{"type": "text", "text": text}]);
        let mut line = json!({"type": "assistant", "message": {"model": "m", "content": content}});
        for (key, value) in fields.as_object().unwrap() {
            line[key] = value.clone();
        }
        line.to_string()
    }

    fn digest(lines: &[(String, Age)]) -> Digest {
        let mut digest = Digest::new(3);
        for (line, age) in lines {
            digest.take_line(line.as_bytes(), *age);
        }
        digest
    }

    #[test]
    fn what_was_said_and_taken_back_before_it_was_taken_is_not_news() {
        let mut digest = Digest::new(1);
        for (name, parent, kind, text) in [
            ("u1", None, "user", "one"),
            ("a1", Some("u1"), "assistant", "first"),
            ("u2", Some("a1"), "user", "two"),
            ("a2", Some("u2"), "assistant", "taken back"),
            ("u3", Some("a1"), "user", "three"),
            ("a3", Some("u3"), "assistant", "last"),
        ] {
            let content = match kind {
                "user" => json!(text),
                _ => json!([{"type": "text", "text": text}]),
            };
            let line = json!({"parentUuid": parent, "type": kind, "uuid": name,
                "message": {"role": kind, "id": name, "model": "m", "content": content}});
            digest.take_line(line.to_string().as_bytes(), NEW);
        }
        assert_eq!(digest.branches().take_rewound().as_deref(), Some("u2"));
        digest.begin_again();
        assert_eq!(digest.take_said(), ["first", "last"]);
        // The client's word on a rewind counts before the first answer behind it.
        let prompt = json!({"parentUuid": "a1", "type": "user", "uuid": "u4", "message": {"content": "four"}});
        let mark = json!({"type": "last-prompt", "explicit": true, "leafUuid": "00000000-0000-0000-0000-000000000000"});
        for _ in 0..6 {
            digest.take_line(b"{}", NEW);
        }
        for line in [prompt, mark] {
            digest.take_line(line.to_string().as_bytes(), NEW);
        }
        assert_eq!(digest.branches().take_rewound().as_deref(), Some("u3"));
    }

    #[test]
    fn tasks_are_known_once_their_result_is_there() {
        let input = json!({"subject": "a", "description": "d"});
        let mut lines = vec![(called("t1", "TaskCreate", &input), NEW)];
        assert!(digest(&lines).todos().is_empty());
        let result = json!({"task": {"id": "1", "subject": "a"}});
        lines.push((answered("t1", &result), NEW));
        lines.push((answered("t1", &result), NEW));
        assert_eq!(digest(&lines).todos().pending().collect::<Vec<_>>(), ["a"]);
    }

    #[test]
    fn only_new_words_of_the_main_chain_are_read() {
        let old = Age {
            behind: 0,
            is_new: false,
        };
        let mut digest = digest(&[
            (said("old", &json!({})), old),
            (said("new", &json!({})), NEW),
            (said("side", &json!({"isSidechain": true})), NEW),
            (said("error", &json!({"isApiErrorMessage": true})), NEW),
            (
                json!({"type": "user", "message": {"content": "\"assistant\" mine"}}).to_string(),
                NEW,
            ),
        ]);
        assert_eq!(digest.take_said(), ["new"]);
        assert!(digest.take_said().is_empty());
    }

    #[test]
    fn commands_far_from_the_end_are_not_read() {
        let far = Age {
            behind: COMMANDS_REACH + 1,
            is_new: false,
        };
        let result = json!({"stdout": "x\n", "stderr": ""});
        let run = |n: u32, age| {
            let id = format!("t{n}");
            let input = json!({"command": format!("echo {n}")});
            [
                (called(&id, "Bash", &input), age),
                (answered(&id, &result), age),
            ]
        };
        let lines = [run(1, far), run(2, NEW)].concat();
        let commands = digest(&lines).commands().records();
        let lines: Vec<_> = commands
            .iter()
            .filter_map(|one| one.command.as_deref())
            .collect();
        assert_eq!(lines, ["echo 2"]);
    }

    #[test]
    fn what_is_not_taken_stays_bounded() {
        let mut digest = Digest::new(3);
        let line = said(&"x".repeat(1024 * 1024), &json!({}));
        for _ in 0..10 {
            digest.take_line(line.as_bytes(), NEW);
        }
        assert!(digest.take_said().len() <= 4);
        for n in 0..1_000 {
            let call = called(&format!("t{n}"), "TaskCreate", &json!({"subject": "a"}));
            digest.take_line(call.as_bytes(), NEW);
        }
        assert!(digest.calls.len() <= CALLS_CAP);
    }

    proptest::proptest! {
        #[test]
        fn any_line_is_read_without_a_panic(line in "(\"assistant\"|\"TaskCreate\"|\"tool_result\"|\\{|\\}|\\[|\\]|:|,|\"type\"|\"message\"|\"content\"|x|\\\\u|d800){0,60}") {
            let mut digest = Digest::new(3);
            digest.take_line(line.as_bytes(), NEW);
        }
    }

    #[test]
    fn commands_that_end_are_reported_once_and_open_calls_are_counted() {
        let old = Age {
            behind: 0,
            is_new: false,
        };
        let shell = |command: &str| json!({"command": command});
        let out = |text: &str| json!({"stdout": text, "stderr": "", "interrupted": false});
        let mut digest = digest(&[
            (called("1", "Bash", &shell("ls")), old),
            (answered("1", &out("a")), old),
            (called("2", "Bash", &shell("cargo test")), NEW),
        ]);
        assert_eq!((digest.take_ran(), digest.calls_open()), (vec![], 1));
        digest.take_line(called("3", "Read", &json!({})).as_bytes(), NEW);
        assert_eq!(digest.calls_open(), 2);
        digest.take_line(answered("2", &out("ok")).as_bytes(), NEW);
        let ran = Ran {
            call: Some("2".to_owned()),
            command: "cargo test".to_owned(),
            output: "ok".to_owned(),
            ..Ran::default()
        };
        assert_eq!((digest.take_ran(), digest.calls_open()), (vec![ran], 1));
        assert!(digest.take_ran().is_empty());
        // A prompt ends what was open: the human has interrupted it.
        let prompt = json!({"type": "user", "message": {"content": "stop"}}).to_string();
        digest.take_line(prompt.as_bytes(), NEW);
        assert_eq!(digest.calls_open(), 0);
    }

    #[test]
    fn of_a_subagents_own_transcript_the_calls_that_have_ended_are_read_and_nothing_else() {
        let side = |line: String| {
            let mut line: Value = serde_json::from_str(&line).unwrap();
            line["isSidechain"] = true.into();
            line.to_string()
        };
        let todo = json!({"todos": [{"content": "its own", "status": "pending"}]});
        let edit = json!({"file_path": "/p/a.rs"});
        let out = json!({"stdout": "1 passed", "stderr": ""});
        let lines = [
            side(called("1", "Bash", &json!({"command": "cargo test"}))),
            side(answered("1", &out)),
            side(called("2", "Edit", &edit)),
            side(answered("2", &json!({}))),
            side(called("3", "TodoWrite", &todo)),
            side(answered("3", &json!({}))),
            // What it has of the main chain was read there.
            called("4", "Bash", &json!({"command": "ls"})),
            answered("4", &out),
        ];
        let mut digest = Digest::of_subagent();
        for line in &lines {
            digest.take_line(line.as_bytes(), NEW);
        }
        let ran = digest.take_ran();
        let told: Vec<_> = ran.iter().map(|one| one.call.as_deref().unwrap()).collect();
        assert_eq!(told, ["1", "2", "3"]);
        assert!(ran.iter().all(|one| one.by_subagent));
        assert_eq!(
            (ran[0].command.as_str(), ran[0].output.as_str()),
            ("cargo test", "1 passed")
        );
        assert_eq!(ran[1].file.as_deref(), Some("/p/a.rs"));
        assert!(digest.todos().is_empty() && digest.take_human().is_none());
        assert!(digest.take_said().is_empty() && digest.calls_open() == 0);
        // The main transcript has none of them.
        let mut main = Digest::new(3);
        for line in &lines[..6] {
            main.take_line(line.as_bytes(), NEW);
        }
        assert!(main.take_ran().is_empty());
    }

    #[test]
    fn calls_of_other_tools_are_reported_too_unless_they_did_not_run() {
        let file = json!({"file_path": "/p/a.rs"});
        let result = |id: &str, fields: Value| {
            let block = json!({"type": "tool_result", "tool_use_id": id, "content": "it broke"});
            let message = json!({"content": [joined(block, fields)]});
            (json!({"type": "user", "message": message}).to_string(), NEW)
        };
        let mut digest = digest(&[
            (called("1", "Edit", &file), NEW),
            result("1", json!({})),
            (called("2", "Edit", &file), NEW),
            result("2", json!({"is_error": true})),
            (called("3", "Edit", &file), NEW),
            result(
                "3",
                json!({"is_error": true, "content": "The user doesn't want to proceed with this tool use."}),
            ),
        ]);
        let edit = |id: &str, output: &str| Ran {
            call: Some(id.to_owned()),
            tool: Some("Edit".to_owned()),
            file: Some("/p/a.rs".to_owned()),
            output: output.to_owned(),
            failed: !output.is_empty(),
            ..Ran::default()
        };
        assert_eq!(digest.take_ran(), [edit("1", ""), edit("2", "it broke")]);
    }

    #[test]
    fn the_last_record_shows_how_the_turn_has_ended() {
        let said = |content: Value, fields: Value| {
            let message = json!({"id": "m", "model": "claude-x", "content": content});
            let line = json!({"type": "assistant", "message": message});
            joined(line, fields).to_string()
        };
        let text = json!([{"type": "text", "text": "Done."}]);
        let call = json!([{"type": "tool_use", "id": "t", "name": "Bash", "input": {}}]);
        let failed = Closing::Failed {
            word: "rate_limit".to_owned(),
            message: "Done.".to_owned(),
        };
        let answered = Some(Closing::Answered);
        let mut digest = Digest::new(3);
        for (line, closing) in [
            (said(text.clone(), json!({})), answered.clone()),
            (
                said(text.clone(), json!({"isSidechain": true})),
                answered.clone(),
            ),
            (said(call, json!({})), None),
            (said(text.clone(), json!({})), answered.clone()),
            (
                json!({"type": "system", "subtype": "turn_duration"}).to_string(),
                answered,
            ),
            (
                json!({"type": "user", "message": {"content": "go on"}}).to_string(),
                None,
            ),
            (
                said(
                    text,
                    json!({"isApiErrorMessage": true, "error": "rate_limit"}),
                ),
                Some(failed),
            ),
        ] {
            digest.take_line(line.as_bytes(), NEW);
            assert_eq!(digest.closing(), closing.as_ref(), "{line}");
        }
    }

    fn joined(mut object: Value, fields: Value) -> Value {
        if let (Some(object), Value::Object(fields)) = (object.as_object_mut(), fields) {
            object.extend(fields);
        }
        object
    }

    #[test]
    fn the_human_s_words_and_the_work_are_taken_from_the_same_lines() {
        let user = |content: Value| {
            json!({"type": "user", "cwd": "/home/me/git/mono/apps/web", "message": {"role": "user", "content": content}}).to_string()
        };
        let image = json!([
            {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "AAAA"}},
            {"type": "text", "text": "Siehe Bild, der Knopf flackert.\r\nÄndere nie `api/schema.graphql`, das\r\nteilen wir.\r\n"},
        ]);
        let command = "<command-name>/review</command-name>\n<command-args>nur src/pay_form.tsx, sonst nichts</command-args>";
        let queued = json!({"type": "queued_command", "prompt": "Ne change rien d'autre."});
        let cell = json!({"notebook_path": "/home/me/git/mono/libs/nb/sales.ipynb", "new_source": "frame = load_sales()"});
        let mut digest = digest(&[
            (user(image), NEW),
            (called("t2", "NotebookEdit", &cell), NEW),
            (user(json!(command)), NEW),
            (
                json!({"type": "attachment", "attachment": queued}).to_string(),
                NEW,
            ),
        ]);
        let human = digest.take_human().unwrap();
        let prompts: Vec<_> = human.prompts.iter().map(|one| one.text.as_str()).collect();
        assert_eq!(
            prompts,
            [
                "Siehe Bild, der Knopf flackert.\nÄndere nie `api/schema.graphql`, das\nteilen wir.",
                "/review nur src/pay_form.tsx, sonst nichts",
                "Ne change rien d'autre.",
            ]
        );
        let work = digest.take_work().unwrap();
        let files: Vec<_> = work.files.iter().map(|file| file.path.as_str()).collect();
        assert!(files.contains(&"../../libs/nb/sales.ipynb"), "{files:?}");
        assert!(files.contains(&"src/pay_form.tsx"), "{files:?}");
    }
}
