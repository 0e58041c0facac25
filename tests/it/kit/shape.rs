//! The shape of a session: how many model calls its turns have, what tools they call, how large the results are, how fast the
//! context grows, and how long each call takes. It is read from a transcript, of which nothing else is kept, or made up.
//!
//! `MessagesApi::play` answers the real client by the steps of a shape.

// The kit is shared, and each test uses a part of it.
#![allow(dead_code)]

use std::{
    collections::{BTreeMap, VecDeque},
    io,
    path::Path,
    time::Duration,
};

use chrono::{DateTime, Utc};
use serde_json::Value;

use super::{messages_api::Answer, transcripts};

/// What a call of a tool does. Sizes are those of its result, or of what it writes, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ToolCall {
    /// A command that succeeds after this time.
    Shell { bytes: usize, lasts: Duration },
    /// A command for which the client asks its person first, where its settings have [`ASKED`].
    Asked { bytes: usize },
    /// A command that fails.
    Failing { bytes: usize },
    /// Reads a file that no other call reads.
    Read { bytes: usize },
    /// Reads a picture.
    Image,
    /// Writes a new file.
    Write { bytes: usize },
    /// Makes a new file by an edit.
    Edit { bytes: usize },
    /// A subagent that calls so many tools of its own.
    Subagent { calls: usize },
}

/// The rule of the client's settings by which it asks before a [`ToolCall::Asked`].
pub const ASKED: &str = "Bash(true asked:*)";

impl ToolCall {
    /// A command that prints so many bytes and takes no time of its own.
    pub const fn shell(bytes: usize) -> Self {
        let lasts = Duration::ZERO;
        Self::Shell { bytes, lasts }
    }
}

/// One call of the model.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Step {
    /// The tools that it calls, all at once. Without any it is the last step of its turn, and says a text.
    pub calls: Vec<ToolCall>,
    /// By how many tokens the context of the next call is larger than that of this one.
    pub growth: u64,
    /// How long the model takes to answer.
    pub pause: Duration,
}

/// How long a made-up model takes for an answer: hooks and figures come as far apart as they do from a quick model.
const PAUSE: Duration = Duration::from_millis(30);

/// Times of a real session are divided by this, so that an hour is played in less than a minute.
const FASTER: u32 = 100;

/// No answer and no tool takes longer than this when a real session is played.
const LONGEST: Duration = Duration::from_millis(500);

/// Larger results are cut: the client keeps the output of a command above 30 000 characters in a file.
const LARGEST: usize = 24_000;

/// The tokens that a made-up session begins with, as the client's own prompt and tools do.
pub const BASE: u64 = 20_000;

/// The sessions of the shared transcripts with the most calls of tools: three with about 150, one with 110, and one with 16.
const LONG_SESSIONS: [&str; 5] = [
    "spotter/258c7280-ae70-4798-800f-63464d01a85d.jsonl.gz",
    "spotter/4d5611e5-241a-462a-8d15-5122611a9569.jsonl.gz",
    "spotter/8463c716-a2ea-4c14-9efa-87158ebd9f20.jsonl.gz",
    "spotter/subagent.jsonl.gz",
    "session-share/general-tool-calls.jsonl.gz",
];

/// The shape of a session.
#[derive(Clone, Debug, Default)]
pub struct Shape {
    /// The tokens of the first call.
    pub base: u64,
    /// Its turns; the last step of each calls no tool.
    pub turns: Vec<Vec<Step>>,
    /// Whether its turns end without a word of something that is done.
    pub is_idle: bool,
    /// What the last step says besides its own words, such as the stop phrase of a run.
    pub ending: Option<String>,
    /// What a step says besides its own words, by the number of the step.
    pub saying: BTreeMap<usize, String>,
    /// What is answered before a step, by the number of the step: failures, after which the client asks again.
    pub before: BTreeMap<usize, VecDeque<Answer>>,
}

impl Shape {
    /// One turn of so many calls of tools, of all kinds but subagents, in which the context grows from `from` to `to`.
    pub fn long_turn(calls: usize, from: u64, to: u64) -> Self {
        Self::sessions(1, calls, from, to)
    }

    /// So many turns of `calls` calls of tools each. Played to an agent that is rebooted after each, every one is a session
    /// that grows from `from` to `to`; see [`Self::in_one_turn`] for the same work without an end between.
    pub fn sessions(count: usize, calls: usize, from: u64, to: u64) -> Self {
        Self {
            base: from,
            turns: vec![made_up_turn(calls, to.saturating_sub(from)); count],
            ..Self::default()
        }
    }

    /// All its work in a single turn.
    pub fn in_one_turn(mut self) -> Self {
        let last = self.turns.pop().unwrap_or_default();
        let mut steps: Vec<Step> = self.turns.into_iter().flatten().collect();
        steps.retain(|step| !step.calls.is_empty());
        steps.extend(last);
        self.turns = vec![steps];
        self
    }

    /// With this on a line of its own at the end of all.
    pub fn ending_with(mut self, text: &str) -> Self {
        self.ending = Some(text.to_owned());
        self
    }

    /// With these words in a step, by its number from 1.
    pub fn saying(mut self, number: usize, words: &str) -> Self {
        self.saying.insert(number, words.to_owned());
        self
    }

    /// With turns that end without a word of something that is done.
    pub fn idle(mut self) -> Self {
        self.is_idle = true;
        self
    }

    /// With so much time for each answer of the model.
    pub fn pause(mut self, pause: Duration) -> Self {
        for step in self.turns.iter_mut().flatten() {
            step.pause = pause;
        }
        self
    }

    /// With one more call in a step, by its number from 1; the step must call tools already.
    #[track_caller]
    pub fn also(mut self, number: usize, call: ToolCall) -> Self {
        let step = self.turns.iter_mut().flatten().nth(number - 1);
        let calls = &mut step.expect("a step of that number").calls;
        assert!(!calls.is_empty(), "step {number} ends its turn");
        calls.push(call);
        self
    }

    /// With this answer before a step, by the step's number from 1: an error, or a stream that is cut.
    pub fn failing_before(mut self, number: usize, answer: Answer) -> Self {
        self.before.entry(number).or_default().push_back(answer);
        self
    }

    /// All steps, in order; the first one has the number 1.
    pub fn steps(&self) -> impl Iterator<Item = &Step> {
        self.turns.iter().flatten()
    }

    /// How many tools the main conversation calls.
    pub fn tool_calls(&self) -> usize {
        self.steps().map(|step| step.calls.len()).sum()
    }

    /// Reads the shape of a transcript, gzipped or not. Times are divided by a hundred.
    pub fn of_transcript(path: &Path) -> io::Result<Self> {
        Ok(Self::of_records(&transcripts::bytes_of(path)?))
    }

    /// The five long sessions of the shared transcripts, with their names; none where they are absent, and a line says so.
    pub fn long_sessions() -> Vec<(&'static str, Self)> {
        let place = transcripts::place();
        let read = |name| match Self::of_transcript(&place.join(name)) {
            Ok(shape) => Some((name, shape)),
            Err(error) => {
                eprintln!("skipped: {name} below {}: {error}", place.display());
                None
            }
        };
        LONG_SESSIONS.into_iter().filter_map(read).collect()
    }

    /// The shape of a transcript's lines. Those that are no record are passed over.
    pub fn of_records(bytes: &[u8]) -> Self {
        let mut reader = Reader::default();
        for line in bytes.split(|byte| *byte == b'\n') {
            if let Ok(record) = serde_json::from_slice::<Value>(line) {
                reader.read(&record);
            }
        }
        reader.finish()
    }
}

/// A turn of so many calls of tools. Every sixth step calls two at once, every twelfth three.
fn made_up_turn(calls: usize, growth: u64) -> Vec<Step> {
    let (mut steps, mut left) = (Vec::new(), calls);
    while left > 0 {
        let number = steps.len() + 1;
        let at_once = match number % 12 {
            0 => 3,
            6 => 2,
            _ => 1,
        };
        let first = calls - left;
        let called = at_once.min(left);
        steps.push(Step {
            calls: (first..first + called).map(made_up_call).collect(),
            growth: 0,
            pause: PAUSE,
        });
        left -= called;
    }
    // Evenly, and to the token.
    let count = steps.len() as u64;
    for (step, number) in steps.iter_mut().zip(1..) {
        step.growth = growth * number / count - growth * (number - 1) / count;
    }
    steps.push(Step {
        pause: PAUSE,
        ..Step::default()
    });
    steps
}

/// Kinds as they are mixed in real sessions: half of the calls are commands, a quarter reads, and one in twenty fails.
fn made_up_call(number: usize) -> ToolCall {
    let bytes = 200 + number * 977 % 3_000;
    match number % 20 {
        1 | 5 | 9 | 13 | 17 => ToolCall::Read { bytes },
        3 | 11 => ToolCall::Write { bytes },
        7 | 15 => ToolCall::Edit { bytes },
        19 => ToolCall::Failing { bytes },
        _ => ToolCall::shell(bytes),
    }
}

/// One call of the model as a transcript has it.
#[derive(Default)]
struct Seen {
    id: String,
    tokens: u64,
    pause: Duration,
    /// The tools that it calls: their ids, and what they are.
    calls: Vec<(String, ToolCall)>,
    ended: Option<DateTime<Utc>>,
}

/// What is read so far of a transcript.
#[derive(Default)]
struct Reader {
    turns: Vec<Vec<Seen>>,
    /// Whether a prompt has come since the last call.
    prompted: bool,
    /// When the last record of the main conversation was written.
    last: Option<DateTime<Utc>>,
}

impl Reader {
    fn read(&mut self, record: &Value) {
        if record["isSidechain"] == true || record["message"]["model"] == "<synthetic>" {
            return;
        }
        match record["type"].as_str() {
            Some("assistant") => self.called(record),
            Some("user") => self.given(record),
            _ => return,
        }
        self.last = time_of(record).or(self.last);
    }

    /// A block of an answer: the blocks of one answer are several records with one id.
    fn called(&mut self, record: &Value) {
        let message = &record["message"];
        let id = message["id"].as_str().unwrap_or_default();
        if self.prompted || self.turns.is_empty() {
            self.turns.push(Vec::new());
            self.prompted = false;
        }
        let now = time_of(record);
        let since = between(self.last, now);
        let turn = self.turns.last_mut().expect("there is one");
        if turn.last().is_none_or(|seen| seen.id != id) {
            turn.push(Seen {
                id: id.to_owned(),
                pause: since,
                ..Seen::default()
            });
        }
        let seen = turn.last_mut().expect("there is one");
        seen.tokens = context_of(&message["usage"]);
        seen.ended = now.or(seen.ended);
        for block in blocks(message) {
            if block["type"] == "tool_use" {
                let id = block["id"].as_str().unwrap_or_default().to_owned();
                seen.calls.push((id, call_of(block)));
            }
        }
    }

    /// A prompt, or the results of tools.
    fn given(&mut self, record: &Value) {
        let message = &record["message"];
        let mut results = blocks(message)
            .filter(|block| block["type"] == "tool_result")
            .peekable();
        if results.peek().is_none() {
            // A summary of the client's takes the place of the talk, and the turn goes on.
            let is_prompt = record["isMeta"] != true && record["isCompactSummary"] != true;
            self.prompted |= is_prompt && !message["content"].is_null();
            return;
        }
        let now = time_of(record);
        for result in results {
            let mut all = self.turns.iter_mut().rev().flatten().rev();
            let id = result["tool_use_id"].as_str().unwrap_or_default();
            let found = all.find_map(|seen| {
                let ended = seen.ended;
                let call = seen.calls.iter_mut().find(|call| call.0 == id)?;
                Some((&mut call.1, ended))
            });
            if let Some((call, ended)) = found {
                answer(call, result, &record["toolUseResult"], between(ended, now));
            }
        }
    }

    fn finish(self) -> Shape {
        let tokens: Vec<u64> = self
            .turns
            .iter()
            .flatten()
            .map(|seen| seen.tokens)
            .collect();
        // Where the conversation was replaced the next figure is smaller, and no growth is known.
        let mut growths = tokens
            .windows(2)
            .map(|pair| pair[1].saturating_sub(pair[0]))
            .chain([0]);
        let mut turns = Vec::new();
        for turn in self.turns {
            let mut steps: Vec<Step> = turn
                .into_iter()
                .map(|seen| Step {
                    calls: seen.calls.into_iter().map(|call| call.1).collect(),
                    growth: growths.next().unwrap_or(0),
                    pause: seen.pause.max(PAUSE),
                })
                .collect();
            // What is said between two calls ends no turn: it belongs to the next call.
            let end = steps.pop();
            let mut carried = 0;
            steps.retain_mut(|step| {
                carried += step.growth;
                let calls = !step.calls.is_empty();
                if calls {
                    step.growth = std::mem::take(&mut carried);
                }
                calls
            });
            let mut last = end.unwrap_or_default();
            last.growth += carried;
            let is_open = !last.calls.is_empty();
            steps.push(last);
            // A turn that its person stopped ends here with words, for the client waits for them.
            steps.extend(is_open.then(|| Step {
                pause: PAUSE,
                ..Step::default()
            }));
            turns.push(steps);
        }
        Shape {
            base: tokens.first().copied().unwrap_or(BASE),
            turns,
            ..Shape::default()
        }
    }
}

fn blocks(message: &Value) -> impl Iterator<Item = &Value> {
    message["content"].as_array().into_iter().flatten()
}

fn time_of(record: &Value) -> Option<DateTime<Utc>> {
    let time = DateTime::parse_from_rfc3339(record["timestamp"].as_str()?);
    time.ok().map(|time| time.to_utc())
}

/// The time between two records, as it is played.
fn between(from: Option<DateTime<Utc>>, to: Option<DateTime<Utc>>) -> Duration {
    let time = from.zip(to).map(|(from, to)| to - from);
    let time = time.and_then(|time| time.to_std().ok()).unwrap_or_default();
    (time / FASTER).min(LONGEST)
}

fn context_of(usage: &Value) -> u64 {
    let count = |name: &str| usage[name].as_u64().unwrap_or(0);
    count("input_tokens") + count("cache_creation_input_tokens") + count("cache_read_input_tokens")
}

/// What a call is, before its result is known.
fn call_of(block: &Value) -> ToolCall {
    let input = &block["input"];
    let size = |name: &str| input[name].as_str().map_or(0, str::len).min(LARGEST);
    match block["name"].as_str().unwrap_or_default() {
        "Read" => ToolCall::Read { bytes: 0 },
        "Write" => ToolCall::Write {
            bytes: size("content"),
        },
        "Edit" | "NotebookEdit" => ToolCall::Edit {
            // The client refuses an edit that changes nothing, and the file is a new one.
            bytes: size("new_string").max(1),
        },
        "Task" | "Agent" => ToolCall::Subagent { calls: 1 },
        // Searches and the like are played by commands that print as much.
        _ => ToolCall::shell(0),
    }
}

/// Adds what the result of a call shows.
fn answer(call: &mut ToolCall, result: &Value, details: &Value, took: Duration) {
    let content = &result["content"];
    let parts = content.as_array().into_iter().flatten();
    let size: usize = parts
        .filter_map(|part| part["text"].as_str())
        .map(str::len)
        .sum();
    let size = content.as_str().map_or(size, str::len).min(LARGEST);
    match call {
        ToolCall::Shell { .. } if result["is_error"] == true => {
            *call = ToolCall::Failing { bytes: size };
        }
        ToolCall::Shell { bytes, lasts } => (*bytes, *lasts) = (size, took),
        ToolCall::Read { bytes } => *bytes = size,
        ToolCall::Subagent { calls } => {
            let counted = details["totalToolUseCount"].as_u64().unwrap_or(1);
            *calls = usize::try_from(counted).unwrap_or(1);
        }
        ToolCall::Asked { .. }
        | ToolCall::Failing { .. }
        | ToolCall::Image
        | ToolCall::Write { .. }
        | ToolCall::Edit { .. } => {}
    }
}
