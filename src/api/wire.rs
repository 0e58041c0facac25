//! Requests and replies as data, shared by the server, the client and the core.
//!
//! This file is the wire format and nothing else: no socket, no clock, no channel. A [`Request`] is
//! what somebody outside wants of the supervisor, a [`Reply`] is the loop's answer, and the
//! `…Report` types are what a script reads as JSON. Their field names are a promise: scripts depend
//! on them, so a figure that is not known yet is `null` rather than absent.
//!
//! ```text
//!   hook, status line, ctl, curl          the world
//!            │ HTTP                       api::server: who may, how much, how long
//!            ▼
//!         Request ──────────────────────► the loop
//!         Reply   ◄──────────────────────
//! ```
//!
//! Nothing that was *observed* (hooks, status line, reports of commits and tests) is ever an order;
//! orders are [`Control`], and the server lets them through for the control token only.

use std::collections::BTreeMap;

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};

pub use super::{
    endpoint::Endpoint,
    metrics::MetricsReport,
    news::{News, NewsKind},
};
use crate::handoff::summary::SummaryMade;
use crate::lineage::Way;

/// How long a text for [`Control::Say`] may be, in bytes: a prompt, not a document.
pub const SAY_LIMIT: usize = 64 * 1024;

/// How deeply a JSON body may be nested, in brackets; deeper ones are refused before they are parsed.
pub const DEPTH_LIMIT: usize = 64;

/// The fewest and the most digits of a commit's id: what git abbreviates to, and SHA-256.
pub const SHA_DIGITS: std::ops::RangeInclusive<usize> = 7..=64;

/// How long the name of a hook event may be, in characters; the longest known one has 18.
pub const EVENT_NAME_LIMIT: usize = 40;

/// What somebody outside wants of the supervisor.
#[derive(Clone, Debug, PartialEq)]
pub enum Request {
    /// A hook of the hosted agent fired; the body is what it got on its standard input, unparsed. Answered with
    /// [`Reply::Accepted`], or with [`Reply::Blocked`] where the hook can refuse.
    Hook {
        /// The event's name as in `POST /hooks/claude/{event}`: 1 to 40 ASCII letters.
        event: String,
        /// The payload as sent, at most 1 MiB; it may be cut short or no JSON at all.
        body: Vec<u8>,
    },
    /// The agent's status line was drawn anew; answered with [`Reply::StatusLine`].
    StatusLine {
        /// The payload as sent, at most 1 MiB; it may be cut short or no JSON at all.
        body: Vec<u8>,
    },
    /// An order by the user; answered with [`Reply::Ordered`] or [`Reply::Checkpoint`].
    Control(Control),
    /// How things stand; answered with [`Reply::Status`].
    Status,
    /// The iterations of this run; answered with [`Reply::History`].
    History,
    /// The handoff as it would be sent now; answered with [`Reply::Handoff`] or [`Reply::NotFound`].
    Handoff {
        /// The session it is asked for; nothing means the present one.
        session: Option<String>,
    },
    /// How full the context window is; answered with [`Reply::Usage`].
    Usage(UsageQuery),
    /// Somebody saw something worth a checkpoint; answered with what was [`Reply::Noted`] or [`Reply::Saved`].
    Reported(Report),
    /// The figures for monitoring; answered with [`Reply::Metrics`].
    Metrics,
}

/// Something seen from outside that is worth a checkpoint. It is an observation, never an order.
#[derive(Clone, Debug, PartialEq)]
pub enum Report {
    /// A commit was made.
    Commit(CommitBody),
    /// A test run has ended.
    Tests(TestBody),
    /// Somebody wants everything saved.
    AutoSave(SaveBody),
}

impl Report {
    /// The environment that the reporter believes to speak to, if it says one.
    #[must_use]
    pub fn environment(&self) -> Option<&str> {
        match self {
            Self::Commit(body) => body.environment.as_deref(),
            Self::Tests(body) => body.environment.as_deref(),
            Self::AutoSave(body) => body.environment.as_deref(),
        }
    }
}

/// The one hook event whose agent waits for our word; of all others nothing but the news is wanted.
pub const REFUSABLE_EVENT: &str = "PreCompact";

/// What a hook tells its agent, as Claude Code reads it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct HookVerdict {
    /// `block`.
    pub decision: String,
    /// Why, for the agent's user.
    pub reason: String,
}

impl HookVerdict {
    /// The word that blocks.
    pub const BLOCK: &str = "block";
}

/// The loop's answer to a [`Request`].
#[derive(Clone, Debug, PartialEq)]
pub enum Reply {
    /// It has been noted.
    Accepted,
    /// The order is carried out.
    Ordered(OrderReply),
    /// The hook is told to stop what its agent was about to do.
    Blocked {
        /// The reason, for the agent's user.
        reason: String,
    },
    /// It will not be done.
    Refused {
        /// The reason, for people, with what would have to be true.
        why: String,
    },
    /// What was asked for does not exist.
    NotFound {
        /// The reason, for people.
        why: String,
    },
    /// The line that the agent shows under its prompt.
    StatusLine(StatusLineReply),
    /// How things stand.
    Status(Box<StatusReport>),
    /// The iterations of this run.
    History(HistoryReport),
    /// The handoff as it would be sent now.
    Handoff(Box<HandoffReport>),
    /// How full the context window is.
    Usage(UsageReply),
    /// A checkpoint was saved.
    Checkpoint(Box<CheckpointReply>),
    /// The report was taken.
    Noted(NotedReply),
    /// Everything is being saved.
    Saved(SaveReply),
    /// The figures for monitoring.
    Metrics(Box<MetricsReport>),
}

/// An order that needs the control token.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Control {
    /// Begin a reboot; in `ask` mode its review opens.
    Reboot,
    /// Begin a reboot and choose its way: [`Control::Reboot`] with a [`RebootBody`] that names one.
    RebootBy(Way),
    /// Approve the review that is open.
    Approve,
    /// Put the reboot off.
    Defer,
    /// Save a checkpoint now; answered with [`Reply::Checkpoint`] once it is on disk.
    Save(CheckpointBody),
    /// Let no reboot begin by itself.
    Pause,
    /// Take back a pause.
    Resume,
    /// End the new session and resume the one before the last reboot.
    Undo,
    /// End the agent cleanly, and the supervisor.
    Stop,
    /// Type this text as a prompt.
    Say(String),
}

impl Control {
    /// The orders that need no text, by the names they have in URLs and on the command line.
    pub const PLAIN: [(&'static str, Self); 8] = [
        ("reboot", Self::Reboot),
        ("approve", Self::Approve),
        ("defer", Self::Defer),
        ("save", Self::Save(CheckpointBody::EMPTY)),
        ("pause", Self::Pause),
        ("resume", Self::Resume),
        ("undo", Self::Undo),
        ("stop", Self::Stop),
    ];

    /// The order's name in URLs and on the command line.
    #[must_use]
    pub fn name(&self) -> &'static str {
        match self {
            Self::Reboot | Self::RebootBy(_) => "reboot",
            Self::Approve => "approve",
            Self::Defer => "defer",
            Self::Save(_) => "save",
            Self::Pause => "pause",
            Self::Resume => "resume",
            Self::Undo => "undo",
            Self::Stop => "stop",
            Self::Say(_) => "say",
        }
    }

    /// The order of that name, if it is one that needs no text.
    #[must_use]
    pub fn plain(name: &str) -> Option<Self> {
        Self::PLAIN
            .iter()
            .find(|(known, _)| *known == name)
            .map(|(_, order)| order.clone())
    }
}

/// What the hosted agent is doing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum AgentState {
    /// Started, has not told yet that it is ready.
    #[default]
    Starting,
    /// Waits for a prompt.
    Idle,
    /// A turn runs.
    Busy,
    /// Asks the human something.
    Dialog,
    /// Held by a usage limit.
    Limit,
    /// Its process is gone.
    Exited,
}

impl AgentState {
    /// The word for it, in JSON and for people.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::Starting => "starting",
            Self::Idle => "idle",
            Self::Busy => "busy",
            Self::Dialog => "dialog",
            Self::Limit => "limit",
            Self::Exited => "exited",
        }
    }
}

/// How things stand: what `pitstop status --json` prints.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct StatusReport {
    /// The supervisor's version.
    pub version: String,
    /// The supervisor's process id.
    pub pid: u32,
    /// The project directory.
    pub project: String,
    /// This run's id.
    pub run_id: Option<String>,
    /// The mode's word: `manual`, `ask` or `auto`.
    pub mode: String,
    /// Whether the pane has the whole screen.
    pub zoomed: bool,
    /// The iteration's number, from 1.
    pub iteration: u32,
    /// The session the agent is in, once it is known.
    pub session_id: Option<String>,
    /// The hosted program.
    pub agent: AgentReport,
    /// How full the context window is.
    pub context: ContextReport,
    /// How far a reboot is.
    pub reboot: RebootReport,
    /// What the session has cost so far, in US dollars.
    pub cost_usd: Option<f64>,
    /// The autonomous run, if this is one.
    #[serde(default)]
    pub run: Option<RunReport>,
    /// Why history is kept in memory, while the store cannot be used.
    #[serde(default)]
    pub store_trouble: Option<String>,
}

/// An autonomous run, as part of a [`StatusReport`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RunReport {
    /// Where it stands: `working`, `waiting`, `paused`, `tripped` or `ended`.
    pub phase: String,
    /// The first line of its task.
    pub task: String,
    /// The text that ends it.
    pub promise: String,
    /// Whether it runs without a terminal.
    pub headless: bool,
    /// How many iterations it has had, the present one among them.
    pub iteration: u64,
    /// How many it may have.
    pub max_iterations: Option<u32>,
    /// How many turns have ended.
    pub turns: u64,
    /// How long it has taken, in seconds.
    pub elapsed_s: u64,
    /// How long it may take, in seconds.
    pub max_time_s: Option<u64>,
    /// What it has cost, in US dollars.
    pub cost_usd: f64,
    /// What it may cost, in US dollars.
    pub max_cost_usd: Option<f64>,
    /// Who paused it.
    pub paused_by: Option<String>,
    /// What it waits for, or the evidence of the breaker that stopped it.
    pub why: Option<String>,
    /// When what it waits for is over, if that was told.
    pub waits_until: Option<DateTime<Utc>>,
}

/// The hosted program, as part of a [`StatusReport`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AgentReport {
    /// The kind's word: `claude`, `demo` or `generic`.
    pub kind: String,
    /// The command it was started by.
    pub command: String,
    /// The version it told us.
    pub version: Option<String>,
    /// What it is doing.
    pub state: AgentState,
    /// Whether any of its hooks has arrived in this iteration.
    #[serde(default)]
    pub hooked: bool,
}

/// How full the context window is, as part of a [`StatusReport`]; all `null` before the first figure.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ContextReport {
    /// Tokens in use.
    pub used: Option<u64>,
    /// The whole window in tokens.
    pub window: Option<u64>,
    /// The window less the client's reserve, in tokens.
    pub usable: Option<u64>,
    /// `used` as a percentage of `usable`.
    pub percent: Option<f64>,
    /// The level's word: `healthy`, `warning`, `critical` or `overflow`.
    pub level: Option<String>,
    /// Where the figure is from: `status_line`, `transcript` or `estimate`.
    pub source: Option<String>,
    /// How old the figure is, in milliseconds.
    pub age_ms: Option<u64>,
}

/// How far a reboot is, as part of a [`StatusReport`].
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RebootReport {
    /// The state machine's phase: `idle`, `armed`, `drafting`, `review` and so on.
    pub phase: String,
    /// What asked for the reboot, while there is one.
    pub reason: Option<String>,
    /// What has to end before the reboot can go on.
    pub blocked_by: Vec<String>,
}

/// The iterations of a run, oldest first: what `pitstop history --json` prints.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct HistoryReport {
    /// The run's id.
    pub run_id: Option<String>,
    /// Its iterations, oldest first.
    pub iterations: Vec<IterationReport>,
}

/// One life of the pane, as part of a [`HistoryReport`].
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct IterationReport {
    /// Its number, from 1.
    pub iteration: u32,
    /// The session it ran in.
    pub session_id: Option<String>,
    /// The session it was rebooted from.
    pub previous_session_id: Option<String>,
    /// When it began, UTC.
    pub started_at: Option<DateTime<Utc>>,
    /// When it ended, UTC; nothing while it runs.
    pub ended_at: Option<DateTime<Utc>>,
    /// How long it has lasted, in milliseconds.
    pub duration_ms: u64,
    /// Why it ended: `natural`, `context_limit`, `user_reboot` and so on; nothing while it runs.
    pub end_reason: Option<String>,
    /// What began it: `start`, or the trigger of the reboot before it.
    pub cause: Option<String>,
    /// Its tokens.
    pub tokens: IterationTokens,
    /// How often the client compacted its context.
    #[serde(default)]
    pub compactions: u32,
    /// What it has cost, in US dollars.
    pub cost_usd: Option<f64>,
    /// How long each step of the reboot that began it took, in milliseconds by the step's word.
    pub transition_time_ms: BTreeMap<String, u64>,
    /// The size of the handoff it was given, in bytes; nothing for the first one and after a trim.
    pub handoff_bytes: Option<u64>,
    /// How the context went over in the reboot that began it: `fresh` or `trim`.
    #[serde(default)]
    pub way: Option<String>,
    /// What a trim removed.
    #[serde(default)]
    pub trim: Option<TrimReport>,
    /// What was done in it, in a sentence or two.
    pub summary: Option<String>,
    /// Who wrote the summary, what that cost, and why it is not a model's.
    #[serde(default)]
    pub summary_made: Option<SummaryMade>,
}

/// What a trim removed from a session, as part of an [`IterationReport`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TrimReport {
    /// The share of the tool responses that was removed, in percent.
    pub level: u8,
    /// How many tool responses that was.
    pub responses: usize,
    /// How many there were.
    pub of: usize,
    /// In the context window before.
    pub tokens_before: u64,
    /// In the context window after it, estimated.
    pub tokens_after: u64,
}

/// The tokens of one iteration.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct IterationTokens {
    /// In the context window at its first answer.
    pub at_start: Option<u64>,
    /// In the context window at its end, or now.
    pub at_end: Option<u64>,
    /// Sent to the model in all.
    pub input: Option<u64>,
    /// Written by the model in all.
    pub output: Option<u64>,
}

/// The handoff as data, and as the message that would be sent.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct HandoffReport {
    /// When it was made, UTC.
    pub generated_at: Option<DateTime<Utc>>,
    /// The objective.
    pub task_title: Option<String>,
    /// The git branch.
    pub branch: Option<String>,
    /// The commit the branch points at.
    pub head_commit: Option<String>,
    /// What is done.
    pub completed_items: Vec<String>,
    /// What is left to do.
    pub remaining_items: Vec<String>,
    /// What stands in the way.
    pub blocking_issues: Vec<String>,
    /// Files changed since the run began.
    pub modified_files: Vec<String>,
    /// Files created since the run began.
    pub created_files: Vec<String>,
    /// Decisions with their reasons.
    pub key_decisions: Vec<String>,
    /// The closing instruction.
    pub continuation_prompt: Option<String>,
    /// The session it was made in.
    pub session_id: Option<String>,
    /// The whole message, byte for byte as it would be sent.
    pub text: String,
    /// The message's size in tokens, estimated.
    pub tokens: u64,
    /// The message's size in bytes.
    pub bytes: u64,
    /// What was cut to keep within the size.
    pub left_out: Vec<String>,
    /// What a reader should know before it is sent.
    #[serde(default)]
    pub warnings: Vec<String>,
    /// Every item it was made of, with who told it.
    #[serde(default)]
    pub sources: Vec<SourcedItem>,
}

/// An item of the preserved state with who told it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SourcedItem {
    /// The list it stands in, by its name in the preserved state.
    pub field: String,
    /// What was told.
    pub text: String,
    /// `human`, `signal`, `scratchpad`, `todo`, `git` or `tests`.
    pub source: String,
}

/// Which figures `GET /context/usage` asks about; nothing means the measured ones.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct UsageQuery {
    /// Tokens in use.
    pub used_tokens: Option<u64>,
    /// The whole window in tokens.
    pub max_tokens: Option<u64>,
}

/// How full the context window is and what to do about it; figures are `null` before the first one.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct UsageReply {
    /// Tokens in use.
    pub used: Option<u64>,
    /// The whole window in tokens.
    pub max: Option<u64>,
    /// The window less the client's reserve, in tokens.
    pub usable: Option<u64>,
    /// `used` as a percentage of `usable`.
    pub percent: Option<f64>,
    /// The level's word.
    pub status: Option<String>,
    /// What to do.
    pub action: UsageAction,
}

/// What to do about a [`UsageReply`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct UsageAction {
    /// Its kind.
    #[serde(rename = "type")]
    pub kind: UsageActionKind,
    /// The advice for people.
    pub message: String,
    /// Whether the supervisor does it by itself.
    pub auto: bool,
}

/// The kinds of [`UsageAction`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum UsageActionKind {
    /// Nothing to do.
    None,
    /// Save.
    Save,
    /// Save and begin a fresh session.
    SaveAndRestart,
}

/// What `POST /statusline` answers.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct StatusLineReply {
    /// One line of plain text: level word, percent of usable, turns left, cost. May be empty.
    pub line: String,
}

/// The body of `POST /control/reboot`; it may be empty.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RebootBody {
    /// The way: `fresh` or `trim`; nothing leaves it to the review.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub way: Option<Way>,
}

/// The body of `POST /control/say`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SayBody {
    /// The text to type as a prompt, at most [`SAY_LIMIT`] bytes.
    pub text: String,
}

/// What an order is answered with that is carried out.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct OrderReply {
    /// `accepted`.
    pub status: String,
    /// For people: what happens now, and what is theirs to do.
    pub message: String,
}

impl OrderReply {
    /// The order is carried out, and this is what it comes to.
    #[must_use]
    pub fn new(message: impl Into<String>) -> Self {
        Self {
            status: "accepted".to_owned(),
            message: message.into(),
        }
    }
}

/// The body of `POST /control/save`: what the human adds to the checkpoint.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct CheckpointBody {
    /// What the work is for; without it the objective as it is known.
    pub task: Option<String>,
    /// What is to be done next, before what is known to be pending.
    pub next_steps: Vec<String>,
    /// Marks to find it by.
    pub tags: Vec<String>,
}

impl CheckpointBody {
    /// Nothing added.
    pub const EMPTY: Self = Self {
        task: None,
        next_steps: Vec::new(),
        tags: Vec::new(),
    };

    /// What is wrong with it, if anything: texts are short, tags are words.
    pub fn check(&self) -> Result<(), String> {
        let texts = self.task.iter().chain(&self.next_steps);
        for text in texts {
            if text.trim().is_empty() || text.len() > SAVE_TEXT_LIMIT {
                return Err(format!(
                    "expected task and next steps of 1 to {SAVE_TEXT_LIMIT} bytes, found one of {}",
                    text.len()
                ));
            }
        }
        if self.next_steps.len() > SAVE_LIST_LIMIT || self.tags.len() > SAVE_LIST_LIMIT {
            return Err(format!(
                "expected at most {SAVE_LIST_LIMIT} next steps and tags"
            ));
        }
        match self.tags.iter().find(|tag| !is_tag(tag)) {
            Some(tag) => Err(format!(
                "expected tags of 1 to {TAG_LIMIT} letters, digits and `-_.:/`, found {:?}",
                tag.chars().take(TAG_LIMIT).collect::<String>()
            )),
            None => Ok(()),
        }
    }
}

/// The longest task or next step of a checkpoint, in bytes: a prompt, not a document.
pub const SAVE_TEXT_LIMIT: usize = 8 * 1024;

/// The most next steps, and the most tags, that one save adds.
pub const SAVE_LIST_LIMIT: usize = 50;

/// The longest tag, in characters: a branch name fits.
pub const TAG_LIMIT: usize = 100;

/// Whether a text can be a checkpoint's tag: letters and digits of any script, and `-_.:/`.
#[must_use]
pub fn is_tag(text: &str) -> bool {
    let plain = |c: char| c.is_alphanumeric() || "-_.:/".contains(c);
    (1..=TAG_LIMIT).contains(&text.chars().count()) && text.chars().all(plain)
}

/// What became of `POST /control/save`; what `pitstop save --json` prints.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CheckpointReply {
    /// `saved`: on disk. `queued`: in memory until the store can be used again; the message says why.
    pub status: String,
    /// The checkpoint's id.
    pub checkpoint_id: String,
    /// What it is filed under.
    pub environment: String,
    /// The session it was saved in; nothing without a supervisor.
    pub session_id: Option<String>,
    /// What the work is for.
    pub task: String,
    /// What is to be done next.
    pub next_steps: Vec<String>,
    /// Its tags.
    pub tags: Vec<String>,
    /// How to go on from it, or why it is not on disk yet.
    pub message: String,
}

/// The body of `POST /hooks/git-commit`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CommitBody {
    /// The environment that is meant; nothing means the supervisor's own.
    #[serde(default)]
    pub environment: Option<String>,
    /// The commit's id: 7 to 64 hexadecimal digits.
    pub commit_sha: String,
    /// Its message; the first line is kept.
    #[serde(default)]
    pub commit_message: Option<String>,
    /// The branch it was made on; nothing for a detached head.
    #[serde(default)]
    pub branch: Option<String>,
    /// How many files it changed.
    #[serde(default)]
    pub files_changed: Option<u64>,
}

/// The body of `POST /hooks/test-result`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct TestBody {
    /// The environment that is meant; nothing means the supervisor's own.
    #[serde(default)]
    pub environment: Option<String>,
    /// Whether the run passed.
    pub passed: bool,
    /// How many tests ran, if known.
    #[serde(default)]
    pub test_count: Option<u64>,
    /// How many of them failed, if known.
    #[serde(default)]
    pub failed_count: Option<u64>,
    /// How long the run took, in seconds.
    #[serde(default)]
    pub duration_seconds: Option<f64>,
    /// The command line that ran them.
    #[serde(default)]
    pub test_command: Option<String>,
}

/// The body of `POST /context/auto-save`; an empty one will do.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SaveBody {
    /// The environment that is meant; nothing means the supervisor's own.
    #[serde(default)]
    pub environment: Option<String>,
}

/// What a reported commit or test run is answered with; the field of the other kind is left out.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct NotedReply {
    /// `recorded`, or `known` for what was seen before.
    pub status: String,
    /// The session it belongs to.
    pub session_id: Option<String>,
    /// The commit's id as it was sent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub commit: Option<String>,
    /// Whether the tests passed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tests_passed: Option<bool>,
}

/// What `POST /context/auto-save` answers.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct SaveReply {
    /// `saved`.
    pub status: String,
    /// The session that was saved.
    pub session_id: Option<String>,
    /// How full the usable window was, in percent; nothing before the first figure.
    pub percent_at_save: Option<f64>,
    /// The command that goes on from here.
    pub restart_command: String,
    /// For people.
    pub message: String,
}

/// The body of every answer that is not a success.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ErrorBody {
    /// What was expected and what was found.
    pub error: String,
    /// What to do about it; may be empty.
    pub hint: String,
}

/// Whether a text can be the name of a hook event: 1 to [`EVENT_NAME_LIMIT`] ASCII letters.
///
/// The name goes into a URL path on the client's side, so nothing else may pass.
#[must_use]
pub fn is_event_name(text: &str) -> bool {
    !text.is_empty()
        && text.len() <= EVENT_NAME_LIMIT
        && text.bytes().all(|byte| byte.is_ascii_alphabetic())
}

/// Whether a text can be a commit's id: [`SHA_DIGITS`] hexadecimal digits.
#[must_use]
pub fn is_sha(text: &str) -> bool {
    SHA_DIGITS.contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_hexdigit())
}

/// Whether some JSON is nested no deeper than [`DEPTH_LIMIT`]; brackets inside strings do not count.
///
/// The check is cheap and needs no valid JSON: it only guards the parser's stack.
#[must_use]
pub fn is_shallow(json: &[u8]) -> bool {
    let (mut depth, mut in_string, mut escaped) = (0_usize, false, false);
    for &byte in json {
        if in_string {
            match byte {
                _ if escaped => escaped = false,
                b'\\' => escaped = true,
                b'"' => in_string = false,
                _ => {}
            }
            continue;
        }
        match byte {
            b'"' => in_string = true,
            b'[' | b'{' => depth += 1,
            b']' | b'}' => depth = depth.saturating_sub(1),
            _ => {}
        }
        if depth > DEPTH_LIMIT {
            return false;
        }
    }
    true
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn status() -> StatusReport {
        StatusReport {
            version: "0.1.0".into(),
            pid: 42,
            project: "/home/me/project".into(),
            run_id: Some("r1".into()),
            mode: "ask".into(),
            zoomed: false,
            iteration: 1,
            session_id: None,
            agent: AgentReport {
                kind: "demo".into(),
                command: "pitstop demo".into(),
                version: None,
                state: AgentState::Starting,
                hooked: false,
            },
            context: ContextReport::default(),
            reboot: RebootReport {
                phase: "idle".into(),
                ..RebootReport::default()
            },
            cost_usd: None,
            run: None,
            store_trouble: None,
        }
    }

    #[test]
    fn status_has_exactly_the_promised_fields_and_null_for_the_unknown() {
        let expected = json!({
            "version": "0.1.0", "pid": 42, "project": "/home/me/project", "run_id": "r1",
            "mode": "ask", "zoomed": false, "iteration": 1, "session_id": null,
            "agent": {"kind": "demo", "command": "pitstop demo", "version": null, "state": "starting",
                      "hooked": false},
            "context": {"used": null, "window": null, "usable": null, "percent": null,
                        "level": null, "source": null, "age_ms": null},
            "reboot": {"phase": "idle", "reason": null, "blocked_by": []},
            "cost_usd": null, "run": null, "store_trouble": null,
        });
        assert_eq!(
            serde_json::to_string(&status()).unwrap(),
            expected.to_string()
        );
    }

    #[test]
    fn what_a_save_adds_is_short_and_its_tags_are_words() {
        let body =
            |json: serde_json::Value| serde_json::from_value::<CheckpointBody>(json).unwrap();
        for good in [
            json!({}),
            json!({"task": "ship it", "next_steps": ["a", "b"], "tags": ["v1.2", "feat/x", "größe"]}),
            json!({"unheard": 1}),
        ] {
            assert_eq!(body(good.clone()).check(), Ok(()), "{good}");
        }
        for bad in [
            json!({"task": " "}),
            json!({"task": "x".repeat(SAVE_TEXT_LIMIT + 1)}),
            json!({"next_steps": [""]}),
            json!({"next_steps": vec!["x"; SAVE_LIST_LIMIT + 1]}),
            json!({"tags": [""]}),
            json!({"tags": ["two words"]}),
            json!({"tags": ["\u{1b}[2J"]}),
            json!({"tags": ["x".repeat(TAG_LIMIT + 1)]}),
        ] {
            assert!(body(bad.clone()).check().is_err(), "{bad}");
        }
    }

    #[test]
    fn every_report_survives_the_wire() {
        let text = serde_json::to_string(&status()).unwrap();
        assert_eq!(
            serde_json::from_str::<StatusReport>(&text).unwrap(),
            status()
        );
        let history = HistoryReport {
            run_id: None,
            iterations: vec![IterationReport {
                iteration: 2,
                transition_time_ms: BTreeMap::from([("ending".into(), 120)]),
                ..IterationReport::default()
            }],
        };
        let text = serde_json::to_string(&history).unwrap();
        assert_eq!(
            serde_json::from_str::<HistoryReport>(&text).unwrap(),
            history
        );
    }

    #[test]
    fn agent_states_are_written_as_their_words() {
        for state in [
            AgentState::Starting,
            AgentState::Idle,
            AgentState::Busy,
            AgentState::Dialog,
            AgentState::Limit,
            AgentState::Exited,
        ] {
            assert_eq!(serde_json::to_value(state).unwrap(), json!(state.word()));
        }
    }

    #[test]
    fn usage_action_is_written_with_its_type() {
        let action = UsageAction {
            kind: UsageActionKind::SaveAndRestart,
            message: "now".into(),
            auto: true,
        };
        assert_eq!(
            serde_json::to_value(action).unwrap(),
            json!({"type": "save_and_restart", "message": "now", "auto": true})
        );
    }

    #[test]
    fn plain_orders_are_found_by_their_names() {
        for (name, order) in Control::PLAIN {
            assert_eq!(order.name(), name);
            assert_eq!(Control::plain(name), Some(order));
        }
        assert_eq!(Control::plain("say"), None);
        assert_eq!(Control::plain("REBOOT"), None);
    }

    #[test]
    fn only_letters_make_an_event_name() {
        assert!(is_event_name("UserPromptSubmit"));
        for bad in [
            "",
            "Stop ",
            "../Stop",
            "Stop?x",
            "St\u{f6}p",
            "Stop\r\n",
            &"a".repeat(41),
        ] {
            assert!(!is_event_name(bad), "{bad:?}");
        }
    }

    #[test]
    fn nesting_counts_brackets_outside_strings_only() {
        let deep = |n: usize| "[".repeat(n) + &"]".repeat(n);
        assert!(is_shallow(deep(DEPTH_LIMIT).as_bytes()));
        assert!(!is_shallow(deep(DEPTH_LIMIT + 1).as_bytes()));
        assert!(is_shallow(
            format!("[\"\\\"{}\"]", "[".repeat(200)).as_bytes()
        ));
        assert!(is_shallow(&[0xff, b']', b']', b'[']));
    }
}
