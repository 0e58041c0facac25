//! Requests and replies as data, shared by the server, the client and the core.
//!
//! This file is the wire format and nothing else: no socket, no clock, no channel. A [`Request`] is
//! what an outside caller asks of the supervisor, a [`Reply`] is the loop's answer, and the
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
//! An *observation* (a hook, the status line, a report of commits or tests) is never an order;
//! orders are [`Control`], and the server lets them through for the control token only.

mod body;
pub mod field;
mod report;

use serde::{Deserialize, Serialize};

pub use body::{
    ApproveBody, CheckpointBody, CheckpointReply, CommitBody, NotedReply, OrderReply,
    PermissionAnswer, PermissionBody, PermissionVerdict, RebootBody, SAVE_CONTEXT_LIMIT,
    SAVE_LIST_LIMIT, SAVE_TEXT_LIMIT, SAY_LIMIT, SaveBody, SaveReply, SayBody, TAG_LIMIT,
    TEST_NAME_LIMIT, TEST_NAMES_LIMIT, TestBody, is_tag,
};
pub use report::{
    AgentReport, BridgeReport, CacheReport, ClientLimitReport, ContextReport, HandoffCheck,
    HandoffReport, HeldReport, HistoryReport, IterationReport, IterationTokens, KeyDecision,
    LastReboot, LinesReport, MissingFact, NeedKind, NeedReport, PermissionReport, RebootReport,
    RunLine, RunPhase, RunReport, ScreenReport, SourcedItem, StatusLineReply, StatusReport,
    ToolReply, UnfoundedLine, UsageAction, UsageActionKind, UsageQuery, UsageReply,
};

pub use field::FieldError;

pub use super::{
    endpoint::Endpoint,
    events::{ApiEvent, ApiEventKind},
    metrics::MetricsReport,
};
pub use crate::guard::{ForecastReport, ForecastUnit, TurnsLeft};
use crate::lineage::Way;
use pitstop_agent::bridge;

/// The fewest and the most digits of a commit's id: the length git abbreviates to, and that of SHA-256.
pub const SHA_DIGITS: std::ops::RangeInclusive<usize> = 7..=64;

/// The greatest length of a hook event's name, in characters; the longest known one has 18.
pub const EVENT_NAME_LIMIT: usize = 40;

/// A request of an outside caller to the supervisor.
#[derive(Clone, Debug, PartialEq)]
pub enum Request {
    /// A hook of the hosted agent fired; the body is its standard input, unparsed. The loop answers with
    /// [`Reply::Accepted`], or with [`Reply::Blocked`] where the hook can refuse.
    Hook {
        /// The event's name as in `POST /hooks/claude/{event}`: 1 to 40 ASCII letters.
        event: String,
        /// The payload as sent, at most 1 MiB; it may be truncated or not JSON at all.
        body: Vec<u8>,
    },
    /// The agent's status line was redrawn; the loop answers with [`Reply::StatusLine`].
    StatusLine {
        /// The payload as sent, at most 1 MiB; it may be truncated or not JSON at all.
        body: Vec<u8>,
    },
    /// An order of the user; the loop answers with [`Reply::Ordered`] or [`Reply::Checkpoint`].
    Control(Control),
    /// A query for the status; the loop answers with [`Reply::Status`].
    Status,
    /// A query for the iterations of this run; the loop answers with [`Reply::History`].
    History,
    /// A query for a session's handoff: for the present session as it would be sent now, for any other in the store as it was. The
    /// loop answers with [`Reply::Handoff`] or [`Reply::NotFound`].
    Handoff {
        /// The session whose handoff is wanted; `None` means the present one.
        session: Option<String>,
    },
    /// A query for the use of the context window; the loop answers with [`Reply::Usage`].
    Usage(UsageQuery),
    /// An event worth a checkpoint was observed; the loop answers with [`Reply::Noted`] or [`Reply::Saved`].
    Reported(Report),
    /// The client's own side of the session sent a message.
    Bridge(Box<bridge::Report>),
    /// The hosted agent calls a tool; the loop answers with [`Reply::Tool`].
    Tool(bridge::Caller, bridge::Tool),
    /// A hook that waits for a person's answer has ended; the loop answers with [`Reply::Accepted`].
    HookGone,
    /// A query for the agent's screen; the loop answers with [`Reply::Screen`].
    Screen,
    /// A query for the permission that the agent asks for; the loop answers with [`Reply::Permission`] or [`Reply::NotFound`].
    Permission,
    /// A query for the monitoring figures; the loop answers with [`Reply::Metrics`].
    Metrics,
}

/// An outside event that is worth a checkpoint. It is an observation, never an order.
#[derive(Clone, Debug, PartialEq)]
pub enum Report {
    /// A commit was made.
    Commit(CommitBody),
    /// A test run has ended.
    Tests(TestBody),
    /// The caller wants everything to be saved.
    AutoSave(SaveBody),
}

impl Report {
    /// Returns the environment that the reporter means, if it names one.
    pub fn environment(&self) -> Option<&str> {
        match self {
            Self::Commit(body) => body.environment.as_deref(),
            Self::Tests(body) => body.environment.as_deref(),
            Self::AutoSave(body) => body.environment.as_deref(),
        }
    }
}

/// The one hook event whose agent waits for our verdict; all others only report an event.
pub const REFUSABLE_EVENT: &str = "PreCompact";

/// The one hook event whose agent may wait for a person's answer.
pub const PERMISSION_EVENT: &str = "PermissionRequest";

/// The answer of a hook to its agent, in the form that Claude Code reads.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct HookVerdict {
    /// The decision: always `block`.
    pub decision: String,
    /// The reason, for the agent's user.
    pub reason: String,
}

impl HookVerdict {
    /// The decision that blocks the agent.
    pub const BLOCK: &str = "block";
}

/// The loop's answer to a [`Request`].
#[derive(Clone, Debug, PartialEq)]
pub enum Reply {
    /// The request has been noted.
    Accepted,
    /// The order is being carried out.
    Ordered(OrderReply),
    /// The hook must stop what its agent was about to do.
    Blocked {
        /// The reason, for the agent's user.
        reason: String,
    },
    /// The request is refused.
    Refused {
        /// The reason, for people, with the condition that would have to hold.
        why: String,
    },
    /// The requested thing does not exist.
    NotFound {
        /// The reason, for people.
        why: String,
    },
    /// The line that the agent shows under its prompt.
    StatusLine(StatusLineReply),
    /// The status.
    Status(Box<StatusReport>),
    /// The iterations of this run.
    History(HistoryReport),
    /// The handoff as it would be sent now, or of another session as it was.
    Handoff(Box<HandoffReport>),
    /// The use of the context window.
    Usage(UsageReply),
    /// A checkpoint was saved.
    Checkpoint(Box<CheckpointReply>),
    /// The report has been taken.
    Noted(NotedReply),
    /// Everything is being saved.
    Saved(SaveReply),
    /// The tool's answer to the agent.
    Tool(ToolReply),
    /// The agent's screen.
    Screen(ScreenReport),
    /// The permission that the agent asks for.
    Permission(PermissionReport),
    /// The hook's permission was answered by a person.
    Decided(PermissionAnswer),
    /// The figures for monitoring.
    Metrics(Box<MetricsReport>),
}

/// An order that needs the control token.
#[derive(Clone, Debug, PartialEq, Eq, strum::IntoStaticStr)]
#[strum(serialize_all = "kebab-case")]
pub enum Control {
    /// Begins a reboot: its handoff is drafted and waits for an approval.
    Reboot,
    /// Begins a reboot in a chosen way: [`Control::Reboot`] with a [`RebootBody`] that names one.
    #[strum(serialize = "reboot")]
    RebootBy(Way),
    /// Approves the reboot that waits for an approval.
    Approve,
    /// Approves it as this body has it: [`Control::Approve`] with a text of the person's, or only if it is what they have read.
    #[strum(serialize = "approve")]
    ApproveAs(ApproveBody),
    /// Answers the permission that the agent asks for.
    Permission(PermissionBody),
    /// An order that a person gives by this device, from afar.
    From(String, Box<Self>),
    /// Defers the reboot.
    Defer,
    /// Saves a checkpoint now; the answer is [`Reply::Checkpoint`], once it is on disk.
    Save(CheckpointBody),
    /// Keeps reboots from beginning automatically.
    Pause,
    /// Ends a pause.
    Resume,
    /// Ends the new session and resumes the one before the last reboot.
    Undo,
    /// Clears the preserved state after a checkpoint of it; [`Control::Undo`] restores it.
    ClearState,
    /// Lets go of all terminals; the session goes on.
    Detach,
    /// Ends the agent, cleanly, and the supervisor.
    Stop,
    /// Types this text as a prompt.
    Say(String),
}

impl Control {
    /// The orders that need no text, with their names in URLs and on the command line.
    pub const PLAIN: [(&'static str, Self); 10] = [
        ("reboot", Self::Reboot),
        ("approve", Self::Approve),
        ("defer", Self::Defer),
        ("save", Self::Save(CheckpointBody::EMPTY)),
        ("pause", Self::Pause),
        ("resume", Self::Resume),
        ("undo", Self::Undo),
        ("clear-state", Self::ClearState),
        ("detach", Self::Detach),
        ("stop", Self::Stop),
    ];

    /// Returns the order's name in URLs and on the command line.
    pub fn name(&self) -> &'static str {
        match self {
            Self::From(_, order) => order.name(),
            order => order.into(),
        }
    }

    /// Returns the order of that name, if that order needs no text.
    pub fn plain(name: &str) -> Option<Self> {
        Self::PLAIN
            .iter()
            .find(|(known, _)| *known == name)
            .map(|(_, order)| order.clone())
    }
}

/// The activity of the hosted agent.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize, strum::IntoStaticStr,
)]
#[serde(rename_all = "lowercase")]
#[strum(serialize_all = "lowercase")]
pub enum AgentState {
    /// The agent has started but not reported yet that it is ready.
    #[default]
    Starting,
    /// The agent waits for a prompt.
    Idle,
    /// A turn is running.
    Busy,
    /// The agent asks the human a question.
    Dialog,
    /// The agent's activity cannot be known at present.
    Unknown,
    /// The agent waits for a prompt while another process continues its session.
    Elsewhere,
    /// A usage limit holds the agent.
    Limit,
    /// The agent's process has ended.
    Exited,
}

impl AgentState {
    /// Returns the state's word in JSON.
    pub fn word(self) -> &'static str {
        self.into()
    }

    /// Returns the state's name for people.
    pub const fn phrase(self) -> &'static str {
        match self {
            Self::Starting => "starting",
            Self::Idle => "idle",
            Self::Busy => "working",
            Self::Dialog => "asks you",
            Self::Unknown => "unknown",
            Self::Elsewhere => "resumed elsewhere",
            Self::Limit => "limit",
            Self::Exited => "ended",
        }
    }
}

/// The state of the agent's to-do list, which a handoff can carry over.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum TodoList {
    /// The agent has written a list in this run.
    Kept,
    /// The agent could keep a list, but none has been seen.
    Empty,
    /// The agent's to-do tools are off, and no list has been seen.
    Off,
    /// The agent has no to-do list.
    #[default]
    None,
}

/// The way in which the agent reaches pitstop's tools.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum AgentTools {
    /// The mod in the client registers them.
    Mod,
    /// `pitstop mcp` serves them.
    Mcp,
    /// The mod has not reported yet.
    Awaited,
    /// The agent cannot reach them.
    #[default]
    None,
}

/// The body of every answer that is not a success.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ErrorBody {
    /// The expected and the found value, or the reason, for people.
    pub error: String,
    /// The suggested remedy; it may be empty.
    pub hint: String,
    /// The wrong field of the body or query, if one is to blame.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub field: Option<String>,
}

/// Reports whether a text can be the name of a hook event: 1 to [`EVENT_NAME_LIMIT`] ASCII letters.
///
/// The name goes into a URL path on the client's side, so nothing else may pass.
pub fn is_event_name(text: &str) -> bool {
    !text.is_empty()
        && text.len() <= EVENT_NAME_LIMIT
        && text.bytes().all(|byte| byte.is_ascii_alphabetic())
}

/// Reports whether a text can be a commit's id: [`SHA_DIGITS`] hexadecimal digits.
pub fn is_sha(text: &str) -> bool {
    SHA_DIGITS.contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_hexdigit())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

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
}
