//! What was played of a shape: each call of the model, where the talk was replaced, and what is wrong with the calls of tools.

// The kit is shared, and each test uses a part of it.
#![allow(dead_code)]

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

use serde_json::Value;

use super::shape::ToolCall;

/// Whose call it is, and what for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Caller {
    /// The main conversation.
    Main,
    Subagent,
    /// The client wants a summary to put in the place of the talk.
    Summary,
    /// The client says that something in the background has ended.
    Notification,
}

/// The result of a tool, as a request brings it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ToolResult {
    pub id: String,
    pub is_error: bool,
    /// How long it is, in bytes, and how it begins.
    pub bytes: usize,
    pub begins: String,
}

/// A call of the model and what it was answered with.
#[derive(Clone, Debug)]
pub struct PlayedCall {
    pub caller: Caller,
    /// The client's name for the session.
    pub session: String,
    /// The step that it was answered with; none after the last one, for a failure, and for all but the main conversation.
    pub step: Option<usize>,
    pub arrived: Instant,
    /// When the answer's last byte was written.
    pub answered: Option<Instant>,
    /// Whether the client went away before that.
    pub lost: bool,
    /// The tokens that were reported.
    pub tokens: u64,
    pub has_handoff: bool,
    /// How many handoffs the request holds.
    pub handoffs: usize,
    /// The steps that the request holds.
    pub present: BTreeSet<usize>,
    /// The results that no earlier call brought.
    pub results: Vec<ToolResult>,
    /// The request itself, where the talk before it is gone: the first one, and after each reboot.
    pub body: Option<Value>,
}

/// The last call before the talk was replaced, and the first one after it.
#[derive(Clone, Debug)]
pub struct Seam {
    pub before: PlayedCall,
    pub after: PlayedCall,
    /// From the end of the answer to the next request, without the time that the tools of the answer slept.
    pub pause: Duration,
}

/// All calls that were played, in the order of their arrival, and the shape.
#[derive(Clone, Debug)]
pub struct Played {
    pub calls: Vec<PlayedCall>,
    /// The calls of tools by step.
    pub steps: Vec<Vec<ToolCall>>,
    pub project: PathBuf,
}

impl Played {
    /// The calls of the main conversation.
    pub fn main(&self) -> impl Iterator<Item = &PlayedCall> {
        let is_main = |call: &&PlayedCall| call.caller == Caller::Main;
        self.calls.iter().filter(is_main)
    }

    /// How many calls were of this kind.
    pub fn count(&self, caller: Caller) -> usize {
        let of_kind = |call: &&PlayedCall| call.caller == caller;
        self.calls.iter().filter(of_kind).count()
    }

    /// How often the client wanted a summary.
    pub fn summaries(&self) -> usize {
        self.count(Caller::Summary)
    }

    /// The steps that were answered whole, in order.
    pub fn steps(&self) -> Vec<usize> {
        let answered = self.main().filter(|call| call.answered.is_some());
        answered.filter_map(|call| call.step).collect()
    }

    /// The sessions of the main conversation, in order.
    pub fn sessions(&self) -> Vec<&str> {
        let mut sessions: Vec<&str> = Vec::new();
        for call in self.main() {
            if !sessions.contains(&call.session.as_str()) {
                sessions.push(&call.session);
            }
        }
        sessions
    }

    /// The calls of the main conversation, each with the next one.
    fn neighbours(&self) -> impl Iterator<Item = (&PlayedCall, &PlayedCall)> {
        self.main().zip(self.main().skip(1))
    }

    /// Where the talk was replaced: by a fresh session, or in the middle of one.
    pub fn seams(&self) -> Vec<Seam> {
        self.neighbours()
            .filter(|pair| pair.1.body.is_some())
            .map(|(before, after)| Seam {
                before: before.clone(),
                after: after.clone(),
                pause: self.pause(before, after),
            })
            .collect()
    }

    /// The middle one of the pauses where the talk goes on after tools, without the time that these slept.
    pub fn usual_pause(&self) -> Duration {
        let goes_on = |pair: &(&PlayedCall, &PlayedCall)| {
            let tools = pair.0.step.map(|step| &self.steps[step - 1]);
            pair.1.body.is_none() && tools.is_some_and(|tools| !tools.is_empty())
        };
        let usual = self.neighbours().filter(goes_on);
        middle(usual.map(|(before, after)| self.pause(before, after)))
    }

    /// From the end of an answer to the next request, without the time that the commands of the answer slept.
    fn pause(&self, before: &PlayedCall, after: &PlayedCall) -> Duration {
        let from = before.answered.unwrap_or(before.arrived);
        let tools = before.step.map(|step| &self.steps[step - 1]);
        let slept = tools.into_iter().flatten().map(|call| match call {
            ToolCall::Shell { lasts, .. } => *lasts,
            _ => Duration::ZERO,
        });
        let pause = after.arrived.saturating_duration_since(from);
        pause.saturating_sub(slept.sum())
    }

    /// What is wrong with the calls of tools that were given: those that did not run, ran twice, or were cut; empty when each
    /// ran once and to its end.
    #[track_caller]
    pub fn faults(&self) -> Vec<String> {
        let ledger = fs::read_to_string(ledger(&self.project)).unwrap_or_default();
        let mut noted: BTreeMap<&str, usize> = BTreeMap::new();
        for line in ledger.lines() {
            *noted.entry(line).or_default() += 1;
        }
        let count = |word: &str, id: &str| {
            let line = format!("{word} {id}");
            noted.get(line.as_str()).copied().unwrap_or(0)
        };
        let results: BTreeMap<&str, &ToolResult> = self
            .calls
            .iter()
            .flat_map(|call| &call.results)
            .map(|result| (result.id.as_str(), result))
            .collect();
        let mut faults = Vec::new();
        let mut given = BTreeSet::new();
        for step in self.steps() {
            if !given.insert(step) {
                faults.push(format!("step {step} was given twice"));
            }
            for (at, call) in self.steps[step - 1].iter().enumerate() {
                let id = call_id(step, at);
                match call {
                    ToolCall::Shell { .. } | ToolCall::Asked { .. } | ToolCall::Failing { .. } => {
                        let (begun, ended) = (count("begin", &id), count("end", &id));
                        if (begun, ended) != (1, 1) {
                            faults
                                .push(format!("{id} began {begun} times and ended {ended} times"));
                        }
                    }
                    ToolCall::Write { .. } | ToolCall::Edit { .. } => {
                        if !file_of(&self.project, &id).is_file() {
                            faults.push(format!("{id} has written nothing"));
                        }
                    }
                    ToolCall::Read { .. } | ToolCall::Image | ToolCall::Subagent { .. } => {}
                }
                // Where the talk was replaced the result may never come; the ledger speaks for most.
                let wrong = |result: &&&ToolResult| {
                    result.is_error != matches!(call, ToolCall::Failing { .. })
                };
                if let Some(result) = results.get(id.as_str()).filter(wrong) {
                    faults.push(format!("{id} ended otherwise: {}", result.begins));
                }
            }
        }
        faults
    }
}

/// The middle one of these times; nothing where there are none.
pub fn middle(times: impl IntoIterator<Item = Duration>) -> Duration {
    let mut times: Vec<Duration> = times.into_iter().collect();
    times.sort();
    times.get(times.len() / 2).copied().unwrap_or_default()
}

/// The id of a call of a tool, by its step and its place in it.
pub fn call_id(step: usize, at: usize) -> String {
    format!("toolu_kit_S{step:05}_{at}")
}

/// Where the commands note that they ran.
pub fn ledger(project: &Path) -> PathBuf {
    project.join("kit/ledger")
}

/// The file of a call that reads or writes one.
pub fn file_of(project: &Path, id: &str) -> PathBuf {
    project.join(format!("kit/{id}.txt"))
}

/// The picture of a call that reads one.
pub fn image_of(project: &Path, id: &str) -> PathBuf {
    project.join(format!("kit/{id}.png"))
}
