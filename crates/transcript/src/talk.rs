//! A session as it is read back by a person: what was said, which tools were called, and what they printed, in order.

use std::path::PathBuf;

use chrono::{DateTime, Utc};
use serde_json::Value;

use super::{
    commands::{ShellMode, shell_mode},
    content::{Block, each_block, tool_output},
    human::by_a_human,
    prompts::{of_human, task_report},
    record::Splitter,
    tail::{TailError, read_pieces},
    words::without_signals,
};

/// The most bytes that are read of a transcript, at its end.
const READ: u64 = 64 << 20;

/// The most lines that are kept of one call, and of what a tool printed.
const CALL_LINES: usize = 12;
const OUTPUT_LINES: usize = 12;

/// The longest line that is kept of either, in characters.
const LINE: usize = 400;

/// The most parts that are kept, the newest: a client writes a few thousand into a window.
const PARTS: usize = 50_000;

/// A part of the talk.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Said {
    /// The person's prompt.
    Prompt {
        /// Its text, in Markdown.
        text: String,
        /// The time at which it was submitted.
        at: Option<DateTime<Utc>>,
    },
    /// A handoff, or a text of the client's in the place of a prompt.
    Given(String),
    /// The agent's words, in Markdown.
    Words(String),
    /// The call of a tool.
    Call {
        /// The tool's name.
        tool: String,
        /// What it was called with: the command, the file, the pattern.
        with: String,
    },
    /// What a tool printed, the start of it.
    Output {
        /// The text, with a line that says how many lines are left out.
        text: String,
        /// True if the call has failed.
        failed: bool,
    },
    /// The client compacted the conversation.
    Compacted,
}

/// A session as it is read back.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Talk {
    /// Its parts, oldest first.
    pub parts: Vec<Said>,
    /// True if its beginning is left out, because it is too long.
    pub is_cut: bool,
}

impl Talk {
    /// Reads the transcript at `path`; only the end of a very long one. A missing file has no parts. The talk of subagents and what
    /// the client says to itself are left out.
    pub fn read(path: impl Into<PathBuf>) -> Result<Self, TailError> {
        let path = path.into();
        let mut talk = Self {
            is_cut: path.metadata().is_ok_and(|file| file.len() > READ),
            ..Self::default()
        };
        let mut lines = Splitter::default();
        read_pieces(path, 0, READ, |piece| {
            lines.push(piece, |line| talk.take_line(line));
            true
        })?;
        talk.take_line(lines.pending());
        let over = talk.parts.len().saturating_sub(PARTS);
        talk.parts.drain(..over);
        talk.is_cut |= over > 0;
        Ok(talk)
    }

    /// Takes a line; one that is torn or no record says nothing.
    fn take_line(&mut self, line: &[u8]) {
        let Ok(record) = serde_json::from_slice::<Value>(line) else {
            return;
        };
        if record["isSidechain"] == true || record["isMeta"] == true {
            return;
        }
        let at = record["timestamp"].as_str();
        let at = at.and_then(|at| DateTime::parse_from_rfc3339(at).ok());
        let (at, content) = (at.map(|at| at.to_utc()), &record["message"]["content"]);
        if let Some(report) = task_report(&record) {
            self.parts.push(Said::Given(report));
            return;
        }
        match (record["type"].as_str(), record["subtype"].as_str()) {
            (Some("user"), _) => self.take_user(content, at),
            // A prompt that waited comes in an attachment, where the agent reads it.
            (Some("attachment"), _) => {
                for text in by_a_human(&record) {
                    self.add_prompt(text, at);
                }
            }
            (Some("assistant"), _) => self.take_assistant(content),
            (Some("system"), Some("compact_boundary")) => self.parts.push(Said::Compacted),
            _ => {}
        }
    }

    fn take_user(&mut self, content: &Value, at: Option<DateTime<Utc>>) {
        for block in each_block(content) {
            match block {
                Block::Text(text) => self.add_prompt(text, at),
                Block::Result(block) => {
                    let text = first_lines(&tool_output(block), OUTPUT_LINES);
                    let failed = block["is_error"] == true;
                    if !text.is_empty() {
                        self.parts.push(Said::Output { text, failed });
                    }
                }
                Block::Image => self.parts.push(Said::Given("(a picture)".to_owned())),
                Block::Call(_) => {}
            }
        }
    }

    fn add_prompt(&mut self, text: &str, at: Option<DateTime<Utc>>) {
        if text.trim().is_empty() {
            return;
        }
        let prompt = |text: &str| Said::Prompt {
            text: text.trim().to_owned(),
            at,
        };
        self.parts.push(match (shell_mode(text), of_human(text)) {
            (Some(ShellMode::Ran(command)), _) => prompt(&format!("! {command}")),
            (Some(ShellMode::Printed(output)), _) => Said::Output {
                text: first_lines(&output, OUTPUT_LINES),
                failed: false,
            },
            (None, Some(own)) => prompt(&own),
            (None, None) => Said::Given(text.trim().to_owned()),
        });
    }

    fn take_assistant(&mut self, content: &Value) {
        for block in each_block(content) {
            match block {
                Block::Text(text) => self.add_words(text),
                Block::Call(block) => self.parts.push(Said::Call {
                    tool: block["name"].as_str().unwrap_or("a tool").to_owned(),
                    with: first_lines(&called_with(&block["input"]), CALL_LINES),
                }),
                Block::Result(_) | Block::Image => {}
            }
        }
    }

    fn add_words(&mut self, text: &str) {
        let text = without_signals(text);
        if !text.trim().is_empty() {
            self.parts.push(Said::Words(text.trim().to_owned()));
        }
    }
}

/// Returns what a tool was called with: the field that says it best, else the first text of the input.
fn called_with(input: &Value) -> String {
    let mut known = "command|file_path|pattern|query|url|description".split('|');
    let said = known.find_map(|name| input[name].as_str());
    let first = || input.as_object()?.values().find_map(Value::as_str);
    said.or_else(first).unwrap_or_default().to_owned()
}

/// Returns the first lines of a text, each cut to a length that can be read.
fn first_lines(text: &str, most: usize) -> String {
    let text = text.trim_end();
    let cut = |line: &str| line.chars().take(LINE).collect::<String>();
    let mut lines: Vec<String> = text.lines().take(most).map(cut).collect();
    let left = text.lines().count().saturating_sub(most);
    if left > 0 {
        lines.push(format!("… {left} more lines"));
    }
    lines.join("\n")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_session_is_read_back_in_order_without_what_was_not_said_to_the_person() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("s.jsonl");
        let long: Vec<String> = (1..=40).map(|line| format!("line {line}")).collect();
        let said = |content: Value| json!({"type": "assistant", "message": {"content": content}});
        let user = |content: Value| json!({"type": "user", "timestamp": "2026-11-26T14:05:00Z", "message": {"content": content}});
        let waited = |prompt: &str, by: &str| json!({"type": "attachment", "attachment": {"type": "queued_command", "prompt": prompt, "origin": {"kind": by}}});
        let records = [
            user(json!("Port the parser")),
            said(
                json!([{"type": "thinking", "thinking": "hm"}, {"type": "text", "text": "I run **its** tests."}]),
            ),
            said(
                json!([{"type": "tool_use", "id": "t", "name": "Bash", "input": {"command": "cargo test"}}]),
            ),
            user(
                json!([{"type": "tool_result", "tool_use_id": "t", "content": long.join("\n"), "is_error": true}]),
            ),
            json!({"type": "system", "subtype": "compact_boundary"}),
            json!({"type": "user", "isMeta": true, "message": {"content": "a caveat"}}),
            json!({"type": "assistant", "isSidechain": true, "message": {"content": "a subagent"}}),
            waited("and the docs", "human"),
            user(json!("<bash-input>ls</bash-input>")),
            user(json!(
                "<bash-stdout>a &amp; b</bash-stdout><bash-stderr></bash-stderr>"
            )),
            waited(
                "<task-notification>\n<summary>Agent \"look\" finished</summary>\n<result>In a.rs.</result>",
                "task-notification",
            ),
            user(json!("pitstop handoff · run-1\n\nYou are taking over")),
        ];
        let lines: Vec<String> = records.iter().map(Value::to_string).collect();
        std::fs::write(&path, format!("{}\n{{\"torn", lines.join("\n"))).unwrap();
        let talk = Talk::read(&path).unwrap();
        assert!(!talk.is_cut);
        let [
            Said::Prompt { text, at },
            Said::Words(words),
            Said::Call { tool, with },
            rest @ ..,
        ] = &talk.parts[..]
        else {
            panic!("{talk:#?}");
        };
        assert_eq!(
            (text.as_str(), words.as_str()),
            ("Port the parser", "I run **its** tests.")
        );
        assert!(at.is_some());
        assert_eq!((tool.as_str(), with.as_str()), ("Bash", "cargo test"));
        let [
            Said::Output { text, failed: true },
            Said::Compacted,
            Said::Prompt { text: waited, .. },
            Said::Prompt { text: ran, .. },
            Said::Output {
                text: printed,
                failed: false,
            },
            Said::Given(report),
            Said::Given(handoff),
        ] = rest
        else {
            panic!("{rest:#?}");
        };
        assert!(text.ends_with("line 12\n… 28 more lines"), "{text}");
        assert_eq!(
            (waited.as_str(), report.as_str()),
            ("and the docs", "Agent \"look\" finished\nIn a.rs.")
        );
        assert_eq!((ran.as_str(), printed.as_str()), ("! ls", "a & b"));
        assert!(handoff.starts_with("pitstop handoff"));
        assert_eq!(
            Talk::read(dir.path().join("none")).unwrap(),
            Talk::default()
        );
    }
}
