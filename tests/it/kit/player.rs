//! Plays a [`Shape`] as a model does: from what a request holds it knows which steps the conversation has, how many tokens
//! to report, and what comes next.
//!
//! Every step has a number, which stands in the ids of its calls (`toolu_kit_S00012_0`) and in its words. No step is given
//! twice: a fresh session, or a conversation whose talk was replaced, goes on with the next one. The tokens that a call reports
//! are the shape's base, the growth of those steps that are still in the request, and the user's texts (a prompt, a handoff,
//! a summary) at four characters a token; so they fall where the talk is replaced, as those of a real model do.
//!
//! Commands keep a ledger in the project, so that a test can say of each call that it ran once and to its end.

// The kit is shared, and each test uses a part of it.
#![allow(dead_code)]

use std::{
    collections::{BTreeMap, BTreeSet, VecDeque},
    fs, io,
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

use serde_json::{Value, json};

use super::{
    messages_api::{Answer, user_texts},
    played::{Caller, Played, PlayedCall, ToolResult, call_id, file_of, image_of, ledger},
    shape::{Shape, Step, ToolCall},
};

/// The tools that a shape calls, for the client's `--allowed-tools`.
pub const TOOLS: &str = "Bash,Read,Write,Edit,Agent,Task";

/// What every handoff begins with.
const HANDOFF: &str = "pitstop handoff \u{b7} ";

/// What the prompt of a subagent begins with; its own id follows, and how many tools it is to call.
const SUBAGENT: &str = "Play the subagent ";

/// What the client's own request for a summary says.
const SUMMARY: &str = "CRITICAL: Respond with TEXT ONLY";

/// A grey picture of 8 by 8 pixels, a PNG.
const PICTURE: &[u8] = b"\
    \x89PNG\x0d\x0a\x1a\x0a\x00\x00\x00\x0dIHDR\x00\x00\x00\x08\x00\x00\x00\x08\x08\x00\x00\x00\x00\xe1d\xe1W\x00\
    \x00\x00\x0eIDATx\xdach\x80\x02\x06\xca\x18\x00\x80\x84 \x01\x10\xe8j\x17\x00\x00\x00\x00IEND\xaeB`\x82";

/// What a subagent's first call reports, and by how much each further one reports more.
const SUBAGENT_TOKENS: (u64, u64) = (12_000, 1_000);

/// What a call is to be answered with.
pub struct Reply {
    /// The number of the call in the log.
    pub number: usize,
    pub answer: Answer,
    pub tokens: u64,
    pub pause: Duration,
}

/// The player of one shape.
pub struct Player {
    base: u64,
    steps: Vec<Step>,
    is_idle: bool,
    ending: Option<String>,
    saying: BTreeMap<usize, String>,
    before: BTreeMap<usize, VecDeque<Answer>>,
    project: PathBuf,
    /// The step that is given next, from 1.
    next: usize,
    /// How each result began when it was last seen.
    seen: BTreeMap<String, String>,
    calls: Vec<PlayedCall>,
}

impl Player {
    /// Makes the files that the shape's calls read in `project`, where it is to be played.
    pub fn new(shape: &Shape, project: &Path) -> io::Result<Self> {
        let steps: Vec<Step> = shape.steps().cloned().collect();
        fs::create_dir_all(project.join("kit"))?;
        for (number, step) in (1..).zip(&steps) {
            for (at, call) in step.calls.iter().enumerate() {
                let id = call_id(number, at);
                match call {
                    ToolCall::Read { bytes } => {
                        fs::write(file_of(project, &id), lines_of(*bytes))?;
                    }
                    ToolCall::Image => fs::write(image_of(project, &id), PICTURE)?,
                    _ => {}
                }
            }
        }
        Ok(Self {
            base: shape.base,
            steps,
            is_idle: shape.is_idle,
            ending: shape.ending.clone(),
            saying: shape.saying.clone(),
            before: shape.before.clone(),
            project: project.to_owned(),
            next: 1,
            seen: BTreeMap::new(),
            calls: Vec::new(),
        })
    }

    /// What was played so far.
    pub fn played(&self) -> Played {
        Played {
            calls: self.calls.clone(),
            steps: self.steps.iter().map(|step| step.calls.clone()).collect(),
            project: self.project.clone(),
        }
    }

    /// Whether a step was answered whole.
    pub fn has_given(&self, step: usize) -> bool {
        let given = |call: &PlayedCall| call.step == Some(step) && call.answered.is_some();
        self.calls.iter().any(given)
    }

    /// Decides what is said to this call, and remembers it.
    pub fn answer(&mut self, body: &Value, arrived: Instant) -> Reply {
        let caller = caller_of(body);
        let present = steps_in(body);
        let words = user_texts(body);
        let characters: usize = words.iter().map(|text| text.chars().count()).sum();
        let growths = present.iter().filter_map(|step| self.steps.get(step - 1));
        let growth: u64 = growths.map(|step| step.growth).sum();
        let mut tokens = self.base + growth + characters as u64 / 4;
        let (mut step, mut pause) = (None, Duration::ZERO);
        let answer = match caller {
            Caller::Main => {
                let given = self.step(body);
                (step, pause) = (given.1, given.2);
                given.0
            }
            Caller::Subagent => {
                let (answer, number) = self.subagent(body, &words);
                tokens = SUBAGENT_TOKENS.0 + SUBAGENT_TOKENS.1 * number as u64;
                answer
            }
            Caller::Summary => Answer::text("<summary>\nThe client's own summary.\n</summary>"),
            Caller::Notification => Answer::text("Noted."),
        };
        let session = body["metadata"]["user_id"].to_string();
        let last = self.calls.iter().rfind(|call| call.caller == Caller::Main);
        // The talk is longer with each call of a conversation; it is another one where something is missing.
        let replaced =
            last.is_none_or(|last| last.session != session || !present.is_superset(&last.present));
        let results = self.new_results(body);
        self.calls.push(PlayedCall {
            caller,
            step,
            arrived,
            answered: None,
            lost: false,
            tokens,
            has_handoff: words.iter().any(|text| text.contains(HANDOFF)),
            handoffs: words.iter().map(|text| text.matches(HANDOFF).count()).sum(),
            results,
            body: (caller == Caller::Main && replaced).then(|| body.clone()),
            present,
            session,
        });
        Reply {
            number: self.calls.len() - 1,
            answer,
            tokens,
            pause,
        }
    }

    /// The answer was written whole at this time, or the client went away before: then the step is still to be given.
    pub fn ended(&mut self, number: usize, answered: Option<Instant>) {
        let call = &mut self.calls[number];
        (call.answered, call.lost) = (answered, answered.is_none());
        if let (None, Some(step)) = (answered, call.step) {
            self.next = self.next.min(step);
        }
    }

    /// The next step of the main conversation.
    fn step(&mut self, body: &Value) -> (Answer, Option<usize>, Duration) {
        let number = self.next;
        let failure = self.before.get_mut(&number).and_then(VecDeque::pop_front);
        if let Some(failure) = failure {
            return (failure, None, Duration::ZERO);
        }
        let Some(step) = self.steps.get(number - 1) else {
            return (Answer::text("Understood."), None, Duration::ZERO);
        };
        self.next += 1;
        let mut words = format!("Step {number}.");
        if let Some(more) = self.saying.get(&number) {
            words.push_str(&format!("\n\n{more}"));
        }
        if step.calls.is_empty() && !self.is_idle {
            words.push_str(&format!(
                "\n\nThis part is done.\n\nDONE: the part up to step {number}"
            ));
        }
        if number == self.steps.len()
            && let Some(ending) = &self.ending
        {
            words.push_str(&format!("\n\n{ending}"));
        }
        let calls = step.calls.iter().enumerate();
        let calls = calls.map(|(at, call)| self.tool_use(body, &call_id(number, at), *call));
        let text = json!({ "type": "text", "text": words });
        let blocks = std::iter::once(text).chain(calls).collect();
        (Answer::Blocks(blocks), Some(number), step.pause)
    }

    /// What a subagent is told: one command after the other, and then its report. Its requests say how far it is.
    fn subagent(&self, body: &Value, words: &[String]) -> (Answer, usize) {
        let mut asked = words[0][SUBAGENT.len()..].split_whitespace();
        let id = asked.next().unwrap_or_default();
        let wanted = asked
            .next()
            .and_then(|count| count.parse().ok())
            .unwrap_or(0);
        let calls = body["messages"].as_array().into_iter().flatten();
        let number = calls
            .flat_map(blocks)
            .filter(|block| block["type"] == "tool_use")
            .count();
        if number >= wanted {
            return (Answer::text("The subagent has found it."), number);
        }
        let id = format!("{}_{number}", id.replace("_S", "_A"));
        let call = self.tool_use(body, &id, ToolCall::shell(400));
        (Answer::Blocks(vec![call]), number)
    }

    fn tool_use(&self, body: &Value, id: &str, call: ToolCall) -> Value {
        let file = file_of(&self.project, id);
        let (name, input) = match call {
            ToolCall::Shell { bytes, lasts } => (
                "Bash",
                json!({ "command": self.command(id, bytes, lasts, true) }),
            ),
            ToolCall::Asked { bytes } => {
                let command = self.command(id, bytes, Duration::ZERO, true);
                (
                    "Bash",
                    json!({ "command": format!("true asked; {command}") }),
                )
            }
            ToolCall::Failing { bytes } => {
                let command = self.command(id, bytes, Duration::ZERO, false);
                ("Bash", json!({ "command": command }))
            }
            ToolCall::Read { .. } => ("Read", json!({ "file_path": file })),
            ToolCall::Image => ("Read", json!({ "file_path": image_of(&self.project, id) })),
            ToolCall::Write { bytes } => (
                "Write",
                json!({ "file_path": file, "content": lines_of(bytes) }),
            ),
            ToolCall::Edit { bytes } => (
                "Edit",
                json!({ "file_path": file, "old_string": "", "new_string": lines_of(bytes) }),
            ),
            ToolCall::Subagent { calls } => (
                agent_tool(body),
                json!({
                    "description": "look for it", "subagent_type": "general-purpose",
                    "prompt": format!("{SUBAGENT}{id} {calls} times"),
                }),
            ),
        };
        json!({ "type": "tool_use", "id": id, "name": name, "input": input })
    }

    /// A command that notes its beginning and its end, and prints so many bytes between.
    fn command(&self, id: &str, bytes: usize, lasts: Duration, succeeds: bool) -> String {
        let ledger = ledger(&self.project);
        let ledger = ledger.display();
        let mut command = format!("echo begin {id} >>'{ledger}'");
        if !lasts.is_zero() {
            command.push_str(&format!("; sleep {}", lasts.as_secs_f64()));
        }
        command.push_str(&format!(
            "; head -c {bytes} /dev/zero | tr '\\0' . | fold -w 80"
        ));
        command.push_str(&format!("; echo end {id} >>'{ledger}'"));
        if !succeeds {
            command.push_str(&format!("; echo broken {id} >&2; false"));
        }
        command
    }

    /// The results that are new to us, or that look otherwise than before.
    fn new_results(&mut self, body: &Value) -> Vec<ToolResult> {
        let messages = body["messages"].as_array().into_iter().flatten();
        let results = messages.flat_map(blocks).filter_map(result_of);
        results
            .filter(|result| {
                let before = self.seen.insert(result.id.clone(), result.begins.clone());
                before.as_ref() != Some(&result.begins)
            })
            .collect()
    }
}

fn caller_of(body: &Value) -> Caller {
    if user_texts(body)
        .first()
        .is_some_and(|first| first.starts_with(SUBAGENT))
    {
        return Caller::Subagent;
    }
    let mut messages = body["messages"].as_array().into_iter().flatten();
    let Some(last) = messages.rfind(|message| message["role"] == "user") else {
        return Caller::Main;
    };
    let says = |needle: &str| {
        let text = last["content"].as_str().unwrap_or_default();
        let mut texts = blocks(last).filter_map(|block| block["text"].as_str());
        text.contains(needle) || texts.any(|text| text.contains(needle))
    };
    if says(SUMMARY) {
        return Caller::Summary;
    }
    let has_results = blocks(last).any(|block| block["type"] == "tool_result");
    if !has_results && says("<task-notification>") && !says(HANDOFF) {
        return Caller::Notification;
    }
    Caller::Main
}

/// The steps that a request holds: by the ids of their calls and results, and where they called nothing by their words.
fn steps_in(body: &Value) -> BTreeSet<usize> {
    let mut found = BTreeSet::new();
    for message in body["messages"].as_array().into_iter().flatten() {
        for block in blocks(message) {
            let ids = [&block["id"], &block["tool_use_id"]];
            found.extend(ids.into_iter().filter_map(|id| step_of_id(id.as_str()?)));
            if message["role"] == "assistant" {
                found.extend(block["text"].as_str().and_then(step_of_words));
            }
        }
        if message["role"] == "assistant" {
            found.extend(message["content"].as_str().and_then(step_of_words));
        }
    }
    found
}

fn step_of_id(id: &str) -> Option<usize> {
    id.strip_prefix("toolu_kit_S")?
        .split('_')
        .next()?
        .parse()
        .ok()
}

fn step_of_words(words: &str) -> Option<usize> {
    words.strip_prefix("Step ")?.split('.').next()?.parse().ok()
}

fn blocks(message: &Value) -> impl Iterator<Item = &Value> {
    message["content"].as_array().into_iter().flatten()
}

fn result_of(block: &Value) -> Option<ToolResult> {
    let id = block["tool_use_id"].as_str()?.to_owned();
    let parts = block["content"].as_array().into_iter().flatten();
    let parts: String = parts.filter_map(|part| part["text"].as_str()).collect();
    let text = block["content"].as_str().unwrap_or(&parts);
    Some(ToolResult {
        id,
        is_error: block["is_error"] == true,
        bytes: text.len(),
        begins: text.chars().take(80).collect(),
    })
}

/// The subagents' tool by the name that this client has for it.
fn agent_tool(body: &Value) -> &'static str {
    let mut tools = body["tools"].as_array().into_iter().flatten();
    if tools.any(|tool| tool["name"] == "Agent") {
        "Agent"
    } else {
        "Task"
    }
}

/// So many bytes of text in lines.
fn lines_of(bytes: usize) -> String {
    let line = "a line of a file that was made for a test and says nothing at all of interest\n";
    line.chars().cycle().take(bytes).collect()
}
