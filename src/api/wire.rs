//! Requests and replies as data, shared by the server, the client and the core.
//!
//! This file is the wire format and nothing else: no socket, no clock, no channel. A [`Request`] is
//! what a caller outside wants of the supervisor, a [`Reply`] is the loop's answer, and the
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

mod body;
pub mod field;
mod report;

use serde::{Deserialize, Serialize};

pub use body::{
    CheckpointBody, CheckpointReply, CommitBody, NotedReply, OrderReply, RebootBody,
    SAVE_CONTEXT_LIMIT, SAVE_LIST_LIMIT, SAVE_TEXT_LIMIT, SAY_LIMIT, SaveBody, SaveReply, SayBody,
    TAG_LIMIT, TEST_NAME_LIMIT, TEST_NAMES_LIMIT, TestBody, is_tag,
};
pub use report::{
    AgentReport, BridgeReport, CacheReport, ClientLimitReport, ContextReport, ForecastReport,
    ForecastUnit, HandoffCheck, HandoffReport, HeldReport, HistoryReport, IterationReport,
    IterationTokens, KeyDecision, LinesReport, MissingFact, RebootReport, RunLine, RunPhase,
    RunReport, SourcedItem, StatusLineReply, StatusReport, ToolReply, TurnsLeft, UnfoundedLine,
    UsageAction, UsageActionKind, UsageQuery, UsageReply,
};

pub use field::FieldError;

pub use super::{
    endpoint::Endpoint,
    events::{ApiEvent, ApiEventKind},
    metrics::MetricsReport,
};
use crate::{bridge, lineage::Way};

/// How deeply a JSON body may be nested, in brackets; deeper ones are refused before they are parsed.
pub const DEPTH_LIMIT: usize = 64;

/// The fewest and the most digits of a commit's id: what git abbreviates to, and SHA-256.
pub const SHA_DIGITS: std::ops::RangeInclusive<usize> = 7..=64;

/// How long the name of a hook event may be, in characters; the longest known one has 18.
pub const EVENT_NAME_LIMIT: usize = 40;

/// What a caller outside wants of the supervisor.
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
    /// The agent's status line was redrawn; answered with [`Reply::StatusLine`].
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
    /// A session's handoff: of the present one as it would be sent now, of any other that the store knows as it was; answered
    /// with [`Reply::Handoff`] or [`Reply::NotFound`].
    Handoff {
        /// The session it is asked for; nothing means the present one.
        session: Option<String>,
    },
    /// How full the context window is; answered with [`Reply::Usage`].
    Usage(UsageQuery),
    /// Something worth a checkpoint was seen; answered with what was [`Reply::Noted`] or [`Reply::Saved`].
    Reported(Report),
    /// The client's own side of the session said something.
    Bridge(Box<bridge::Report>),
    /// The hosted agent calls a tool; answered with [`Reply::Tool`].
    Tool(bridge::Caller, bridge::Tool),
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
    /// Everything is to be saved.
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

/// The one hook event whose agent waits for our word; of all others only the event is wanted.
pub const REFUSABLE_EVENT: &str = "PreCompact";

/// What a hook answers its agent, as Claude Code reads it.
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
    /// The hook is to stop what its agent was about to do.
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
    /// What the tool says to the agent.
    Tool(ToolReply),
    /// The figures for monitoring.
    Metrics(Box<MetricsReport>),
}

/// An order that needs the control token.
#[derive(Clone, Debug, PartialEq, Eq, strum::IntoStaticStr)]
#[strum(serialize_all = "kebab-case")]
pub enum Control {
    /// Begin a reboot: its handoff is drafted and waits for an approval.
    Reboot,
    /// Begin a reboot and choose its way: [`Control::Reboot`] with a [`RebootBody`] that names one.
    #[strum(serialize = "reboot")]
    RebootBy(Way),
    /// Approve the reboot that waits for it.
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
    /// Forget the preserved state, after a checkpoint of it; [`Control::Undo`] brings it back.
    ClearState,
    /// End the agent cleanly, and the supervisor.
    Stop,
    /// Type this text as a prompt.
    Say(String),
}

impl Control {
    /// The orders that need no text, by the names they have in URLs and on the command line.
    pub const PLAIN: [(&'static str, Self); 9] = [
        ("reboot", Self::Reboot),
        ("approve", Self::Approve),
        ("defer", Self::Defer),
        ("save", Self::Save(CheckpointBody::EMPTY)),
        ("pause", Self::Pause),
        ("resume", Self::Resume),
        ("undo", Self::Undo),
        ("clear-state", Self::ClearState),
        ("stop", Self::Stop),
    ];

    /// The order's name in URLs and on the command line.
    #[must_use]
    pub fn name(&self) -> &'static str {
        self.into()
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
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize, strum::IntoStaticStr,
)]
#[serde(rename_all = "lowercase")]
#[strum(serialize_all = "lowercase")]
pub enum AgentState {
    /// Started, has not reported yet that it is ready.
    #[default]
    Starting,
    /// Waits for a prompt.
    Idle,
    /// A turn runs.
    Busy,
    /// Asks the human something.
    Dialog,
    /// What it does cannot be known just now.
    Unknown,
    /// Waits for a prompt, while another process goes on with its session.
    Elsewhere,
    /// Held by a usage limit.
    Limit,
    /// Its process is gone.
    Exited,
}

impl AgentState {
    /// The word for it in JSON.
    #[must_use]
    pub fn word(self) -> &'static str {
        self.into()
    }

    /// The word for it for people.
    #[must_use]
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

/// Whether the agent keeps a to-do list that a handoff can carry over.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum TodoList {
    /// It has written one in this run.
    Kept,
    /// It could; nothing has been seen.
    Empty,
    /// Its tools are not switched on, and nothing has been seen.
    Off,
    /// The agent has none.
    #[default]
    None,
}

/// How the agent reaches pitstop's tools.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum AgentTools {
    /// The mod in the client registers them.
    Mod,
    /// `pitstop mcp` serves them.
    Mcp,
    /// The mod has not reported yet.
    Awaited,
    /// Not at all.
    #[default]
    None,
}

/// The body of every answer that is not a success.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ErrorBody {
    /// What was expected and what was found.
    pub error: String,
    /// What to do about it; may be empty.
    pub hint: String,
    /// The field of the body or query that is wrong, where one is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub field: Option<String>,
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
