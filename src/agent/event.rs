//! What the agent tells us: plain data, made by [`super::hook`] and read by everyone.

use crate::transcript::{SessionId, Tokens, todo::TodoCall, usage::Usage};

/// What the agent told about itself: facts, with every text capped in length.
///
/// They come from outside and are untrusted: paths are plain strings that the caller checks, texts
/// may hold control characters.
#[derive(Clone, Debug, PartialEq)]
pub enum AgentEvent {
    /// A session began, or changed its id.
    SessionStarted {
        /// The id to follow from now on.
        session: SessionId,
        /// Why it began.
        source: StartSource,
        /// The model with its window mark, such as `claude-opus-4-8[1m]`; absent after `/clear`.
        model: Option<String>,
        /// Where the transcript will be.
        transcript_path: Option<String>,
    },
    /// A prompt reached the agent: the proof that a handoff arrived.
    PromptSubmitted {
        /// The session that took it; a fork shows its new id here first.
        session: SessionId,
        /// The whole text, typed, pasted or given as an argument.
        prompt: String,
        /// Where the transcript is.
        transcript_path: Option<String>,
    },
    /// A tool is about to run.
    ToolStarted {
        /// The session.
        session: SessionId,
        /// Which tool with what.
        call: ToolCall,
    },
    /// A tool has run.
    ToolFinished {
        /// The session.
        session: SessionId,
        /// Which tool with what.
        call: ToolCall,
        /// What came out.
        output: ToolOutput,
    },
    /// The turn is over: a safe moment if nothing runs in the background.
    TurnEnded {
        /// The session.
        session: SessionId,
        /// The last assistant message as raw Markdown.
        last_message: Option<String>,
        /// Tasks that go on in the background.
        background_tasks: usize,
        /// Where the transcript is.
        transcript_path: Option<String>,
    },
    /// The turn ended with an error instead of an answer.
    TurnFailed {
        /// The session.
        session: SessionId,
        /// What kind of failure it was.
        failure: Failure,
        /// The client's own words.
        message: String,
    },
    /// A dialog is open and waits for the human.
    DialogOpened {
        /// The session.
        session: SessionId,
        /// What it asks for: a tool's name or the notification's text.
        about: String,
    },
    /// The client said something that is no dialog, such as that it waits for input.
    Notified {
        /// The session.
        session: SessionId,
        /// The client's word for the kind, such as `idle_prompt`.
        kind: String,
        /// The text.
        message: String,
    },
    /// Compaction begins.
    Compacting {
        /// The session.
        session: SessionId,
        /// Whether the client chose it by itself.
        automatic: bool,
    },
    /// Compaction is over.
    Compacted {
        /// The session.
        session: SessionId,
    },
    /// The session is over: a clean end, or a change of id by `/clear`.
    SessionEnded {
        /// The session.
        session: SessionId,
        /// Why.
        reason: EndReason,
    },
    /// A subagent began.
    SubagentStarted {
        /// The session.
        session: SessionId,
    },
    /// A subagent is done.
    SubagentStopped {
        /// The session.
        session: SessionId,
    },
    /// The status line's figures.
    StatusLine(Box<StatusLine>),
    /// An event we do not know; it is counted and nothing else.
    Unknown {
        /// Its name.
        name: String,
    },
}

impl AgentEvent {
    /// The session the event speaks of; none for an unknown event.
    #[must_use]
    pub fn session(&self) -> Option<SessionId> {
        match self {
            Self::SessionStarted { session, .. }
            | Self::PromptSubmitted { session, .. }
            | Self::ToolStarted { session, .. }
            | Self::ToolFinished { session, .. }
            | Self::TurnEnded { session, .. }
            | Self::TurnFailed { session, .. }
            | Self::DialogOpened { session, .. }
            | Self::Notified { session, .. }
            | Self::Compacting { session, .. }
            | Self::Compacted { session }
            | Self::SessionEnded { session, .. }
            | Self::SubagentStarted { session }
            | Self::SubagentStopped { session } => Some(*session),
            Self::StatusLine(line) => Some(line.session),
            Self::Unknown { .. } => None,
        }
    }
}

/// Why a session began.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StartSource {
    /// The program was started.
    Startup,
    /// An existing session was resumed.
    Resume,
    /// `/clear` began a new one in the same process.
    Clear,
    /// Compaction rebuilt it.
    Compact,
    /// A word we do not know.
    Other(String),
}

/// Why a session ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum EndReason {
    /// `/exit` or its keys.
    PromptExit,
    /// `/clear`: the process lives on under a new session id.
    Clear,
    /// A signal, or a reason we do not know.
    Other(String),
}

/// One tool call.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ToolCall {
    /// The call's id, to pair start and end.
    pub id: Option<String>,
    /// The tool's name.
    pub name: String,
    /// The shell command, for a tool that runs one.
    pub command: Option<String>,
    /// The file, for a tool that touches one.
    pub file: Option<String>,
    /// What it did to the agent's to-do list; none while it runs, and for a subagent, which has a list of its own.
    pub todo: Option<Box<TodoCall>>,
}

/// What a tool gave back.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ToolOutput {
    /// Standard output, or the plain result of a tool without streams.
    pub stdout: String,
    /// Standard error, or the error of a failed tool.
    pub stderr: String,
    /// Whether the human or the client stopped it.
    pub interrupted: bool,
    /// Whether the client calls it failed.
    pub failed: bool,
    /// How long it ran, milliseconds.
    pub duration_ms: Option<u64>,
}

/// What kind of failure ended a turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Failure {
    /// A usage or rate limit holds.
    UsageLimit,
    /// The context window is full.
    ContextLimit,
    /// The service is overloaded or failing.
    Service,
    /// Anything else.
    Other,
}

/// The figures of one status line.
#[derive(Clone, Debug, PartialEq)]
pub struct StatusLine {
    /// The session.
    pub session: SessionId,
    /// Where the transcript is.
    pub transcript_path: Option<String>,
    /// The model's id with its window mark, if it has one.
    pub model_id: Option<String>,
    /// The model's name for people.
    pub model_name: Option<String>,
    /// The whole context window.
    pub window: Option<Tokens>,
    /// What the last main-chain call used; none before the first call and after a compaction.
    pub usage: Option<Usage>,
    /// Input and cache against the whole window, percent; none with `usage`.
    pub used_percentage: Option<f64>,
    /// Cost of the session so far, US dollars.
    pub cost_usd: Option<f64>,
    /// Age of the session, milliseconds.
    pub duration_ms: Option<u64>,
    /// The five-hour usage limit of a subscription.
    pub five_hour: Option<RateLimit>,
    /// The seven-day usage limit of a subscription.
    pub seven_day: Option<RateLimit>,
    /// The client's version.
    pub version: Option<String>,
    /// The prompt cache of the service; none before the first call, and from older versions.
    pub prompt_cache: Option<PromptCache>,
}

/// What the service still holds of the conversation, so that the next call reads it at a fraction of the price.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PromptCache {
    /// Whether it was warm when this was said.
    pub warm: bool,
    /// Until when it stays so, seconds since the Unix epoch.
    pub expires_at: Option<u64>,
    /// What a call has to write again once it is cold, in tokens.
    pub recache: Option<Tokens>,
}

/// One usage limit.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RateLimit {
    /// How much of it is used, percent.
    pub used_percentage: f64,
    /// When it begins anew, seconds since the Unix epoch.
    pub resets_at: Option<u64>,
}
