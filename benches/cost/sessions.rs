//! Real sessions as work: what each call of the main conversation adds to the window, and what was read again where the client
//! compacted. Read by a parser of the bench's own; nothing of a session is kept or written.

use std::{
    collections::{BTreeSet, HashMap, HashSet},
    error::Error,
    io,
    path::{Path, PathBuf},
};

use chrono::{DateTime, FixedOffset};
use pitstop_transcript::{Tokens, usage::Usage, usage::paid_usage};
use serde_json::Value;

use super::transcripts;

/// The fewest calls of a session that is of use.
const FEWEST: usize = 20;

/// A call of the model, as the session has recorded it.
#[derive(Clone, Debug)]
pub struct Call {
    pub usage: Usage,
    /// True if it has written to the cache for an hour.
    pub for_an_hour: bool,
    /// True if it is the first one behind a compaction.
    pub compacted: bool,
    /// The seconds since the last record of the call before.
    pub pause: i64,
}

/// What the client's compaction did in a session.
#[derive(Clone, Copy, Debug)]
pub struct Compaction {
    /// The tokens of the client's summary, at four characters each.
    pub summary: u64,
    /// The tokens with which the session went on: more than its beginning and the summary where the client restored files.
    pub after: u64,
    /// The tokens of results that the session had read before, of the same file or the same command.
    pub again: u64,
    /// The calls that brought them.
    pub again_calls: u64,
}

/// A session.
#[derive(Clone, Debug)]
pub struct Session {
    pub name: String,
    pub calls: Vec<Call>,
    pub compactions: Vec<Compaction>,
}

impl Session {
    /// Reports whether the client has the cache kept for an hour in this session.
    pub fn is_kept_for_an_hour(&self) -> bool {
        self.calls.iter().any(|call| call.for_an_hour)
    }

    /// Returns the tokens that the session began with.
    pub fn base(&self) -> u64 {
        self.calls.first().map_or(0, |call| call.usage.prompt().0)
    }
}

/// Reads the sessions below a directory that have calls enough.
pub fn read(place: &Path) -> Result<Vec<Session>, Box<dyn Error>> {
    let mut sessions = Vec::new();
    for file in files(place) {
        let session = read_file(&file)?;
        if session.calls.len() >= FEWEST {
            sessions.push(session);
        }
    }
    Ok(sessions)
}

/// Returns the transcripts of main conversations below a directory.
pub fn files(place: &Path) -> Vec<PathBuf> {
    let mut files = transcripts::below(place);
    files.retain(|file| !file.iter().any(|part| part == "subagents"));
    files
}

/// Reads one session.
pub fn read_file(file: &Path) -> io::Result<Session> {
    let name = file.file_name().unwrap_or_default().to_string_lossy();
    let name: String = name.chars().take_while(|c| *c != '.').take(20).collect();
    Ok(parse(name, &transcripts::bytes_of(file)?))
}

/// The state of the parser.
#[derive(Default)]
struct Parser {
    calls: Vec<Call>,
    /// The place of a call by its message's id.
    known: HashMap<String, usize>,
    /// The characters of a call's answer, where its usage has no count that can be.
    answers: Vec<u64>,
    /// The time of the last record of a call.
    last: Option<DateTime<FixedOffset>>,
    compactions: Vec<Compaction>,
    compacting: bool,
    /// What tools were called for, by the call's id, and whether they change a file.
    asked: HashMap<String, (String, bool)>,
    /// What was read before the last compaction, and since.
    before: HashSet<String>,
    since: HashSet<String>,
    again_calls: BTreeSet<usize>,
}

fn parse(name: String, bytes: &[u8]) -> Session {
    let mut parser = Parser::default();
    for line in bytes.split(|byte| *byte == b'\n') {
        let Ok(record) = serde_json::from_slice::<Value>(line) else {
            continue;
        };
        if record["isSidechain"] != true {
            parser.record(&record);
        }
    }
    for (call, characters) in parser.calls.iter_mut().zip(parser.answers) {
        // Older clients recorded the count of the answer's first piece.
        call.usage.output = call.usage.output.max(Tokens(characters / 4));
    }
    Session {
        name,
        calls: parser.calls,
        compactions: parser.compactions,
    }
}

impl Parser {
    fn record(&mut self, record: &Value) {
        if record["subtype"] == "compact_boundary" {
            self.compacting = true;
            self.before.extend(self.since.drain());
            self.again_calls.clear();
            self.compactions.push(Compaction {
                summary: 0,
                after: 0,
                again: 0,
                again_calls: 0,
            });
        }
        let content = &record["message"]["content"];
        if record["isCompactSummary"] == true
            && let Some(compaction) = self.compactions.last_mut()
        {
            compaction.summary = size(content) / 4;
        }
        if record["type"] == "assistant" {
            self.answer(record);
        }
        for block in content.as_array().into_iter().flatten() {
            if block["type"] == "tool_use" {
                let id = block["id"].as_str().unwrap_or_default().to_owned();
                let changes =
                    matches!(block["name"].as_str(), Some("Edit" | "Write" | "MultiEdit"));
                self.asked.insert(id, (what(block), changes));
            } else if block["type"] == "tool_result" {
                self.result(block);
            }
        }
    }

    fn answer(&mut self, record: &Value) {
        let message = &record["message"];
        let usage = paid_usage(&message["usage"]);
        let model = message["model"].as_str().unwrap_or_default();
        if usage.prompt() == Tokens(0) || !model.starts_with("claude-") {
            return;
        }
        let written = &message["usage"]["cache_creation"]["ephemeral_1h_input_tokens"];
        let for_an_hour = written.as_u64() > Some(0);
        let time = record["timestamp"].as_str().unwrap_or_default();
        let time = DateTime::parse_from_rfc3339(time).ok().or(self.last);
        let id = message["id"].as_str().unwrap_or_default().to_owned();
        if let Some(at) = self.known.get(&id) {
            self.calls[*at].usage = usage;
            self.calls[*at].for_an_hour |= for_an_hour;
            self.answers[*at] += size(&message["content"]);
        } else {
            let pause = time
                .zip(self.last)
                .map_or(0, |(now, last)| (now - last).num_seconds());
            let compacted = std::mem::take(&mut self.compacting);
            self.known.insert(id, self.calls.len());
            self.answers.push(size(&message["content"]));
            self.calls.push(Call {
                usage,
                for_an_hour,
                compacted,
                pause,
            });
            if compacted && let Some(compaction) = self.compactions.last_mut() {
                compaction.after = usage.prompt().0;
            }
        }
        self.last = time;
    }

    fn result(&mut self, block: &Value) {
        let id = block["tool_use_id"].as_str().unwrap_or_default();
        let Some((what, changes)) = self.asked.get(id) else {
            return;
        };
        if !changes
            && self.before.contains(what)
            && let Some(compaction) = self.compactions.last_mut()
        {
            compaction.again += size(&block["content"]) / 4;
            self.again_calls.insert(self.calls.len());
            compaction.again_calls = self.again_calls.len() as u64;
        }
        self.since.insert(what.clone());
    }
}

/// Returns what a tool was called for: the file, else the tool with its input.
fn what(call: &Value) -> String {
    let file = call["input"]["file_path"].as_str();
    let all = || format!("{} {}", call["name"], call["input"]);
    let reads = matches!(
        call["name"].as_str(),
        Some("Read" | "Edit" | "Write" | "MultiEdit")
    );
    file.filter(|_| reads).map_or_else(all, str::to_owned)
}

/// Returns the characters of all texts and inputs in a message's content.
fn size(content: &Value) -> u64 {
    match content {
        Value::String(text) => text.chars().count() as u64,
        Value::Array(parts) => parts.iter().map(size).sum(),
        Value::Object(part) => match part.get("type").and_then(Value::as_str) {
            Some("tool_use") => part["input"].to_string().len() as u64,
            Some("image") => 6_000,
            _ => ["text", "thinking", "content"]
                .iter()
                .filter_map(|key| part.get(*key))
                .map(size)
                .sum(),
        },
        _ => 0,
    }
}
