//! A session condensed to the content that a summary needs: the messages and their authors, the changes to files, the failures.
//!
//! What a rewind has taken back is left out.
//!
//! It is read from the transcript's blocks and bounded in every dimension: a text keeps its start, a result is kept only if it is
//! a failure, and in a long session the oldest tool calls go first, then the oldest replies, then the oldest prompts; the first
//! prompt always stays.

use std::collections::VecDeque;

use memchr::memmem;
use serde_json::Value;

use super::make_harmless;
use pitstop_transcript::{
    branches::{Branches, TURN_ENDS},
    commands::{ShellMode, shell_mode},
    content::{Block, each_block, joined_text, tool_output},
    denial::{Denial, read_denial},
    human::{by_a_human, chosen_answers},
    prompts,
    record::{Splitter, parsed_records},
    words::{clipped, clipped_line},
};

/// The most of a history that a model is asked to read, in bytes: about 20 000 tokens, which cost a few cents.
const HISTORY_CAP: usize = 80 * 1024;

/// The most of the first prompt that is kept, in bytes: it may be a whole handoff.
const FIRST_CAP: usize = 6 * 1024;

/// The most of a prompt, of a summary that the client made itself, and of a reply, in bytes.
const PROMPT_CAP: usize = 2 * 1024;
const REPLY_CAP: usize = 1_200;

/// The most of one tool call and of one error, in bytes.
const CALL_CAP: usize = 240;
const ERROR_CAP: usize = 400;

/// The longest line that is read, in bytes: longer ones contain images or pasted files.
const LINE_CAP: usize = 4 * 1024 * 1024;

/// The most items of a to-do list that are shown.
const TODO_CAP: usize = 64;

/// The kind of an entry: entries of the first kind are dropped first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Kind {
    Call,
    Reply,
    Prompt,
}

/// The condensed record of a session, collected from its transcript's bytes, which are passed in as pieces of any size.
#[derive(Debug, Default)]
pub struct History {
    splitter: Splitter,
    log: Log,
}

#[derive(Debug, Default)]
struct Log {
    branches: Branches,
    /// The entries, each with the number of its line.
    entries: VecDeque<(Kind, u64, String)>,
    bytes: usize,
    left_out: u64,
    first: Option<(u64, String)>,
    /// The directory of the session, with which its paths begin.
    directory: Option<String>,
    /// The prompts that pitstop types by itself, as they are configured.
    own: Vec<String>,
}

impl History {
    /// Creates a history in which these prompts are pitstop's own, in addition to those that it knows by their words.
    pub fn with_own_prompts(own: impl IntoIterator<Item = String>) -> Self {
        let mut history = Self::default();
        history.log.own = own.into_iter().map(|own| own.trim().to_owned()).collect();
        history
    }

    /// Takes the next bytes of the transcript.
    pub fn push(&mut self, piece: &[u8]) {
        self.splitter.push(piece, |line| self.log.take_line(line));
    }

    /// Ends the reading: a last line without its line feed counts if it is complete.
    #[must_use]
    pub fn finish(mut self) -> Self {
        self.log.take_line(self.splitter.pending());
        self.splitter = Splitter::default();
        self.log.drop_taken_back();
        self.log.shrink_to(HISTORY_CAP);
        self
    }

    /// Reports whether the history is empty.
    pub fn is_empty(&self) -> bool {
        self.log.first.is_none() && self.log.entries.is_empty()
    }

    /// Returns the record as a model reads it, oldest first, with its secrets masked.
    pub fn to_text(&self) -> String {
        let log = &self.log;
        let mut out = String::new();
        if let Some((_, first)) = &log.first {
            out.push_str(&format!("User: {first}\n"));
        }
        if log.left_out > 0 {
            let count = log.left_out;
            out.push_str(&format!("\n({count} older entries are left out.)\n"));
        }
        for (kind, _, text) in &log.entries {
            // Messages of people and of the model are separated by a blank line; calls follow one another.
            if *kind != Kind::Call {
                out.push('\n');
            }
            out.push_str(text);
            out.push('\n');
        }
        make_harmless(&out)
    }
}

impl Log {
    fn take_line(&mut self, line: &[u8]) {
        self.branches.take_line(line);
        if line.len() > LINE_CAP {
            self.left_out += 1;
            return;
        }
        // Snapshots, modes and queues are skipped unparsed.
        let spoken = [
            b"\"user\"".as_slice(),
            b"\"assistant\"",
            b"\"queued_command\"",
            b"\"compact_boundary\"",
            // These show where a rewind has led.
            b"\"last-prompt\"",
            b"\"environment\"",
        ];
        let mut marks = spoken.into_iter().chain(TURN_ENDS.map(str::as_bytes));
        if !marks.any(|mark| memmem::find(line, mark).is_some()) {
            return;
        }
        for record in parsed_records(line) {
            self.branches.take_record(&record);
            self.take_record(&record);
        }
        if self.bytes > 3 * HISTORY_CAP {
            self.shrink_to(2 * HISTORY_CAP);
        }
    }

    fn take_record(&mut self, record: &Value) {
        if record["isSidechain"] == true {
            return;
        }
        if let Some(directory) = record["cwd"].as_str().filter(|text| !text.is_empty()) {
            self.directory = Some(directory.to_owned());
        }
        if let Some(report) = prompts::task_report(record) {
            let report = clipped(&report, REPLY_CAP);
            self.add_entry(Kind::Reply, format!("A task in the background: {report}"));
            return;
        }
        let content = &record["message"]["content"];
        match record["type"].as_str() {
            Some("user") if record["isCompactSummary"] == true => {
                let text = clipped(&joined_text(content), FIRST_CAP);
                self.add_entry(
                    Kind::Prompt,
                    format!("The client's own summary of what came before: {text}"),
                );
            }
            Some("user") => self.take_user(record),
            // A prompt that waited comes in an attachment, where the agent reads it.
            Some("attachment") => {
                for text in by_a_human(record) {
                    self.add_prompt(text, true);
                }
            }
            Some("assistant") if record["isApiErrorMessage"] == true => {
                let text = clipped_line(&joined_text(content), ERROR_CAP);
                self.add_entry(Kind::Call, format!("API error: {text}"));
            }
            Some("assistant") => self.take_assistant(content),
            Some("system") if record["subtype"] == "compact_boundary" => {
                self.add_entry(
                    Kind::Reply,
                    "(Here the client compacted its context.)".to_owned(),
                );
            }
            _ => {}
        }
    }

    fn add_entry(&mut self, kind: Kind, text: String) {
        self.bytes += text.len() + 2;
        let line = self.branches.line_number();
        self.entries.push_back((kind, line, text));
    }

    /// Drops what a rewind has taken back.
    fn drop_taken_back(&mut self) {
        let (branches, bytes) = (&self.branches, &mut self.bytes);
        self.first.take_if(|(line, _)| !branches.is_kept(*line));
        self.entries.retain(|(_, line, text)| {
            let stays = branches.is_kept(*line);
            if !stays {
                *bytes -= text.len() + 2;
            }
            stays
        });
    }

    /// Drops the oldest entries of the least important kind, until the rest fits.
    fn shrink_to(&mut self, limit: usize) {
        let first = self.first.as_ref().map_or(0, |(_, first)| first.len());
        let limit = limit.saturating_sub(first);
        for kind in [Kind::Call, Kind::Reply, Kind::Prompt] {
            let mut over = self.bytes.saturating_sub(limit);
            if over == 0 {
                return;
            }
            let (bytes, left_out) = (&mut self.bytes, &mut self.left_out);
            self.entries.retain(|(have, _, text)| {
                let goes = over > 0 && *have == kind;
                if goes {
                    let size = text.len() + 2;
                    *bytes -= size;
                    *left_out += 1;
                    over = over.saturating_sub(size);
                }
                !goes
            });
        }
    }

    fn take_user(&mut self, record: &Value) {
        // Clients before 2.1.330 do not record the author of a prompt.
        let human = record["promptSource"] != "system"
            && record["origin"]["kind"]
                .as_str()
                .is_none_or(|kind| kind == "human");
        for answer in chosen_answers(record) {
            let answer = clipped(&answer, PROMPT_CAP);
            self.add_entry(Kind::Prompt, format!("User: {answer}"));
        }
        for block in each_block(&record["message"]["content"]) {
            match block {
                Block::Text(text) if record["isMeta"] != true => self.add_prompt(text, human),
                Block::Result(block) if block["is_error"] == true => {
                    let (what, why) = match read_denial(record, block, true) {
                        None => ("failed", tool_output(block)),
                        Some(Denial::Refused(why)) => ("refused by the user", why.to_owned()),
                        Some(Denial::Blocked(why)) => ("not allowed", why.to_owned()),
                        Some(Denial::Stopped) => ("stopped by the user", String::new()),
                        Some(Denial::Skipped | Denial::Cut) => ("not run", String::new()),
                    };
                    let why = clipped_line(&why, ERROR_CAP);
                    self.add_entry(Kind::Call, format!("  {what}: {why}"));
                }
                _ => {}
            }
        }
    }

    fn add_prompt(&mut self, text: &str, human: bool) {
        let text = text.trim();
        if text.starts_with("[Request interrupted by user") {
            self.add_entry(Kind::Call, "(The user interrupted.)".to_owned());
            return;
        }
        if text.is_empty() || self.own.iter().any(|own| own == text) {
            return;
        }
        match shell_mode(text) {
            Some(ShellMode::Ran(command)) => {
                let command = clipped_line(command, CALL_CAP);
                return self.add_entry(Kind::Call, format!("The user ran: {command}"));
            }
            Some(ShellMode::Printed(output)) => {
                let output = clipped_line(&output, ERROR_CAP);
                return self.add_entry(Kind::Call, format!("  printed: {output}"));
            }
            None => {}
        }
        let own = if prompts::is_handoff(text) {
            Some(text.into())
        } else {
            prompts::of_human(text).filter(|_| human)
        };
        match own {
            Some(own) if self.first.is_none() => {
                self.first = Some((self.branches.line_number(), clipped(&own, FIRST_CAP)));
            }
            Some(own) => {
                self.add_entry(Kind::Prompt, format!("User: {}", clipped(&own, PROMPT_CAP)));
            }
            None => {}
        }
    }

    fn take_assistant(&mut self, content: &Value) {
        for block in each_block(content) {
            match block {
                Block::Text(text) if !text.trim().is_empty() => {
                    let text = clipped(text, REPLY_CAP);
                    self.add_entry(Kind::Reply, format!("Assistant: {text}"));
                }
                Block::Call(block) => {
                    let tool = clipped_line(block["name"].as_str().unwrap_or("a tool"), 60);
                    let does = self.describe_call(&tool, &block["input"]);
                    self.add_entry(Kind::Call, format!("{tool}: {does}"));
                }
                _ => {}
            }
        }
    }

    /// Returns a description of a call in one line.
    fn describe_call(&self, tool: &str, input: &Value) -> String {
        let lines = |name: &str| input[name].as_str().map_or(0, |text| text.lines().count());
        let path = self.path_in(input);
        let text = match (tool, path) {
            ("Bash" | "PowerShell", _) => first_field(input, &["command"]).unwrap_or_default(),
            ("Edit", Some(path)) => format!(
                "{path}, {} lines become {}: {}",
                lines("old_string"),
                lines("new_string"),
                first_field(input, &["new_string"]).unwrap_or_default()
            ),
            ("Write", Some(path)) => format!("{path}, {} lines", lines("content")),
            ("MultiEdit", Some(path)) => {
                let edits = input["edits"].as_array().map_or(0, Vec::len);
                format!("{path}, {edits} edits")
            }
            ("TodoWrite", _) => {
                let items = input["todos"]
                    .as_array()
                    .into_iter()
                    .flatten()
                    .take(TODO_CAP);
                let item = |item: &Value| {
                    let mark = match item["status"].as_str() {
                        Some("completed") => "x",
                        Some("in_progress") => ">",
                        _ => " ",
                    };
                    Some(format!("[{mark}] {}", first_field(item, &["content"])?))
                };
                return clipped(
                    &items.filter_map(item).collect::<Vec<_>>().join("; "),
                    PROMPT_CAP,
                );
            }
            (_, Some(path)) => path,
            _ => first_field(
                input,
                &[
                    "command",
                    "pattern",
                    "query",
                    "url",
                    "description",
                    "subject",
                    "status",
                    "prompt",
                    "skill",
                ],
            )
            .unwrap_or_default(),
        };
        clipped(&text, CALL_CAP)
    }

    /// Returns the file that a call is about, relative to the project's directory if it is in it.
    fn path_in(&self, input: &Value) -> Option<String> {
        let path = first_field(input, &["file_path", "notebook_path", "path"])?;
        let below = self.directory.as_deref().and_then(|directory| {
            let rest = path.strip_prefix(directory)?.strip_prefix('/')?;
            Some(rest.to_owned())
        });
        Some(below.unwrap_or(path))
    }
}

/// Returns the first of these fields that is a text, on one line.
fn first_field(value: &Value, names: &[&str]) -> Option<String> {
    let text = names.iter().find_map(|name| value[*name].as_str())?;
    let text = clipped_line(text, ERROR_CAP);
    (!text.is_empty()).then_some(text)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::summary::tests::token;

    /// Returns a history of these records.
    fn history(records: &[Value]) -> History {
        let mut history = History::default();
        for record in records {
            history.push(format!("{record}\n").as_bytes());
        }
        history.finish()
    }

    fn says(text: &str) -> Value {
        json!({"type": "user", "cwd": "/p", "gitBranch": "main", "message": {"role": "user", "content": text}})
    }

    fn replies(text: &str) -> Value {
        json!({"type": "assistant", "message": {"model": "claude-opus-4-8", "content": [
            {"type": "thinking", "thinking": "hidden"}, {"type": "text", "text": text}]}})
    }

    fn calls(id: &str, name: &str, input: &Value) -> Value {
        json!({"type": "assistant", "message": {"model": "claude-opus-4-8", "content": [
            {"type": "tool_use", "id": id, "name": name, "input": input}]}})
    }

    fn returns(id: &str, error: bool, text: &str) -> Value {
        json!({"type": "user", "message": {"content": [
            {"type": "tool_result", "tool_use_id": id, "is_error": error, "content": [{"type": "text", "text": text}]}]}})
    }

    #[test]
    fn a_session_is_condensed_to_what_was_said_and_done() {
        let unwanted = "The user doesn't want to proceed with this tool use. To tell you how to proceed, the user said:\nlater";
        let mut refused = returns("5", true, unwanted);
        refused["toolDenialKind"] = json!("user-rejected");
        let history = history(&[
            says("build the parser"),
            replies("I look first."),
            calls("1", "Read", &json!({"file_path": "/p/src/a.rs"})),
            returns("1", false, "fn a() {}"),
            calls(
                "2",
                "Edit",
                &json!({"file_path": "/p/src/a.rs", "old_string": "a\nb", "new_string": "c\nd\ne"}),
            ),
            returns("2", false, "ok"),
            calls("3", "Bash", &json!({"command": "cargo  test\n--lib"})),
            returns("3", true, "Exit code 101\nerror[E0308]: mismatched"),
            calls("5", "Bash", &json!({"command": "git push"})),
            refused,
            calls(
                "4",
                "TodoWrite",
                &json!({"todos": [
                {"content": "parse", "status": "completed"}, {"content": "store", "status": "in_progress"},
                {"content": "ship", "status": "pending"}]}),
            ),
            says("<bash-input>make  lint</bash-input>"),
            says("<bash-stdout>3 &lt; 4\nok</bash-stdout><bash-stderr></bash-stderr>"),
            says("now the store"),
        ]);
        assert_eq!(
            history.to_text(),
            "User: build the parser\n\nAssistant: I look first.\nRead: src/a.rs\n\
             Edit: src/a.rs, 2 lines become 3: c d e\nBash: cargo test --lib\n  \
             failed: Exit code 101 error[E0308]: mismatched\nBash: git push\n  refused by the user: later\nTodoWrite: [x] parse; [>] store; [ ] ship\n\
             The user ran: make lint\n  printed: 3 < 4 ok\n\nUser: now the store\n"
        );
    }

    #[test]
    fn what_is_not_the_conversation_is_left_out() {
        let mut sidechain = replies("of a subagent");
        sidechain["isSidechain"] = json!(true);
        let mut meta = says("Caveat: not said by the user");
        meta["isMeta"] = json!(true);
        let mut error = replies("API Error: 529");
        error["isApiErrorMessage"] = json!(true);
        let mut summary = says("what was before");
        summary["isCompactSummary"] = json!(true);
        let history = history(&[
            says("begin"),
            sidechain,
            meta,
            says("<command-name>/model</command-name>"),
            says("<system-reminder>be good</system-reminder>"),
            json!({"type": "file-history-snapshot", "x": "\"user\""}),
            json!({"type": "system", "subtype": "compact_boundary"}),
            summary,
            error,
            says("[Request interrupted by user for tool use]"),
            says("< 5 ms is the goal"),
        ]);
        assert_eq!(
            history.to_text(),
            "User: begin\n\n(Here the client compacted its context.)\n\n\
             The client's own summary of what came before: what was before\nAPI error: API Error: 529\n\
             (The user interrupted.)\n\nUser: < 5 ms is the goal\n"
        );
    }

    #[test]
    fn what_the_agent_reads_in_mid_turn_is_in_it() {
        let notice = "<task-notification>\n<summary>Agent \"look\" finished</summary>\n<result>It is in a.rs.</result>\n</task-notification>";
        let waited = |prompt: &str, by: &str| json!({"type": "attachment", "attachment": {"type": "queued_command", "prompt": prompt, "origin": {"kind": by}}});
        let mut ended = says(notice);
        ended["origin"] = json!({"kind": "task-notification"});
        let mut history = History::default();
        for record in [
            says("begin"),
            waited("and the docs", "human"),
            waited(notice, "task-notification"),
            ended,
        ] {
            history.push(format!("{record}\n").as_bytes());
        }
        let report = "\nA task in the background: Agent \"look\" finished\nIt is in a.rs.\n";
        assert_eq!(
            history.finish().to_text(),
            format!("User: begin\n\nUser: and the docs\n{report}{report}")
        );
    }

    #[test]
    fn prompts_that_no_person_wrote_are_left_out() {
        let mut event = says("a subagent has ended");
        event["origin"] = json!({"kind": "task-notification"});
        let mut system = says("the client's own words");
        system["promptSource"] = json!("system");
        let mut typed = says("prefer RSS");
        typed["origin"] = json!({"kind": "human"});
        typed["promptSource"] = json!("typed");
        let records = [
            says("parse the feeds"),
            says(include_str!("../../../../assets/run/go-on.md").trim_end()),
            says("<task-notification>\n<task-id>1</task-id>\n</task-notification>"),
            event,
            system,
            says("Read the README first."),
            typed,
        ];
        let mut history = History::with_own_prompts(["Read the README first.".to_owned()]);
        for record in &records {
            history.push(format!("{record}\n").as_bytes());
        }
        let history = history.finish();
        assert_eq!(
            history.to_text(),
            "User: parse the feeds\n\nUser: prefer RSS\n"
        );
    }

    #[test]
    fn a_long_session_gives_up_its_oldest_calls_first_and_never_the_first_prompt() {
        let mut records = vec![says("the task")];
        for n in 0..2_000 {
            records.push(replies(&format!("reply {n} {}", "x".repeat(20))));
            records.push(calls(
                "1",
                "Bash",
                &json!({"command": format!("run {n} {}", "y".repeat(80))}),
            ));
            if n % 100 == 0 {
                records.push(says(&format!("prompt {n}")));
            }
        }
        let long = history(&records).to_text();
        assert!(long.len() <= HISTORY_CAP + 100, "{}", long.len());
        assert!(long.starts_with("User: the task\n\n("), "{}", &long[..60]);
        assert!(long.contains("older entries are left out"));
        assert!(long.contains("User: prompt 0\n"), "prompts outlive calls");
        assert!(!long.contains("run 0 ") && long.contains("reply 1999 "));
    }

    #[test]
    fn one_text_is_never_all_of_it() {
        let huge = "é".repeat(200_000);
        let text = history(&[
            says(&huge),
            says(&huge),
            replies(&huge),
            calls("1", "Bash", &json!({"command": huge})),
            returns("1", true, &huge),
        ])
        .to_text();
        assert!(text.len() < 12_000, "{}", text.len());
    }

    #[test]
    fn secrets_are_masked_before_it_is_read() {
        let text = history(&[
            says(&format!("use {}", token())),
            calls(
                "1",
                "Bash",
                &json!({"command": format!("curl -d {}", token())}),
            ),
        ])
        .to_text();
        assert!(!text.contains("H8i9J0"), "{text}");
    }

    #[test]
    fn records_in_pieces_torn_and_in_a_row_are_read() {
        let one = format!("{}\n", says("begin"));
        let two = replies("done").to_string();
        let mut history = History::default();
        for byte in format!("{one}{{\"type\":\"assistant\",\"mess\n{two}").bytes() {
            history.push(&[byte]);
        }
        assert_eq!(
            history.finish().to_text(),
            "User: begin\n\nAssistant: done\n"
        );
        assert!(History::default().finish().is_empty());
    }

    proptest::proptest! {
        #[test]
        fn hostile_lines_are_survived(line in "(\\{|\\}|\"type\":\"user\",|\"message\":|\\{\"content\":|\\[|\\]|\"assistant\"|null|1|é|,){0,40}") {
            let mut history = History::default();
            history.push(line.as_bytes());
            let history = history.finish();
            let _ = history.to_text();
        }
    }

    #[test]
    fn what_a_rewind_has_taken_back_is_left_out() {
        let named = |mut record: Value, name: &str, parent: Option<&str>| {
            record["uuid"] = json!(name);
            record["parentUuid"] = json!(parent);
            record
        };
        let mark = json!({"type": "last-prompt", "explicit": true, "leafUuid": "00000000-0000-0000-0000-000000000000"});
        let runs = calls("1", "Bash", &json!({"command": "ls"}));
        let begun = "User: build it\n\nAssistant: Built.\n";
        for (parent, before) in [
            (
                Some("a3"),
                format!("{begun}\nUser: use tabs\nBash: ls\n\nAssistant: Tabs.\n"),
            ),
            (Some("a1"), begun.to_owned()),
            (None, String::new()),
        ] {
            let text = history(&[
                named(says("build it"), "u1", None),
                named(replies("Built."), "a1", Some("u1")),
                named(says("use tabs"), "u2", Some("a1")),
                named(runs.clone(), "a2", Some("u2")),
                named(replies("Tabs."), "a3", Some("a2")),
                named(says("go on"), "u3", parent),
                if parent.is_none() {
                    mark.clone()
                } else {
                    json!({})
                },
                named(replies("Done."), "a4", Some("u3")),
            ])
            .to_text();
            let expected = format!("{before}\nUser: go on\n\nAssistant: Done.\n");
            assert_eq!(text, expected, "{parent:?}");
        }
    }

    #[test]
    fn what_a_person_has_answered_is_in_it() {
        let mut answered = returns("1", false, "User has answered your questions.");
        answered["toolUseResult"] = json!({"questions": [], "answers": {"Which base?": "SQLite"}});
        let asks = calls("1", "AskUserQuestion", &json!({"questions": []}));
        let text = history(&[says("build it"), asks, answered]).to_text();
        assert!(
            text.ends_with("\n\nUser: SQLite (asked: Which base?)\n"),
            "{text}"
        );
    }
}
