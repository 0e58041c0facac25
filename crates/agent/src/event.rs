//! The agent's reports as plain data, made by [`super::hook`] and read by everyone.

use pitstop_transcript::{SessionId, Tokens, todo::TodoCall, usage::Usage};

/// A fact that the agent reported about itself, with every text capped in length.
///
/// It comes from outside and is untrusted: paths are plain strings that the caller checks, texts
/// may hold control characters.
#[derive(Clone, Debug, PartialEq)]
pub enum AgentEvent {
    /// A session began, or changed its id.
    SessionStarted {
        /// The id to follow from now on.
        session: SessionId,
        /// The reason why it began.
        source: StartSource,
        /// The model with its window mark, such as `claude-opus-4-8[1m]`; absent after `/clear`.
        model: Option<String>,
        /// The path that the transcript will have.
        transcript_path: Option<String>,
        /// The prompt cache, of a session that was resumed.
        prompt_cache: Option<PromptCache>,
    },
    /// A hook names the permission mode that holds.
    ModeSeen {
        /// The session.
        session: SessionId,
        /// The mode.
        mode: String,
    },
    /// A prompt reached the agent: the proof that a handoff arrived.
    PromptSubmitted {
        /// The session that took it; a fork shows its new id here first.
        session: SessionId,
        /// The whole text, typed, pasted or given as an argument.
        prompt: String,
        /// The path of the transcript.
        transcript_path: Option<String>,
    },
    /// A tool is about to run.
    ToolStarted {
        /// The session.
        session: SessionId,
        /// The tool with its input.
        call: ToolCall,
    },
    /// A tool has run.
    ToolFinished {
        /// The session.
        session: SessionId,
        /// The tool with its input.
        call: ToolCall,
        /// The output of the tool.
        output: ToolOutput,
    },
    /// The turn is over: a safe moment if nothing runs in the background.
    TurnEnded {
        /// The session.
        session: SessionId,
        /// The last assistant message as raw Markdown.
        last_message: Option<String>,
        /// The work that goes on without the turn.
        background: Background,
        /// The path of the transcript.
        transcript_path: Option<String>,
    },
    /// The turn ended with an error instead of an answer.
    TurnFailed {
        /// The session.
        session: SessionId,
        /// The kind of failure.
        failure: Failure,
        /// The client's own words.
        message: String,
    },
    /// A dialog is open and waits for the human.
    DialogOpened {
        /// The session.
        session: SessionId,
        /// The subject of the dialog: a tool's name or the notification's text; empty if only another event names it.
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
        /// True if the client chose it by itself.
        automatic: bool,
        /// True if pitstop has ordered it.
        ordered: bool,
    },
    /// The client has another model.
    ModelSwitched {
        /// The session.
        session: SessionId,
        /// The model that a person has chosen, as the client's `--model` takes it; none where the client has switched by itself.
        chosen: Option<String>,
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
        /// The reason why it ended.
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
    /// A subagent compacts its own conversation, or has done so: nothing of the session's changes.
    SubagentCompacts {
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
    /// Returns the session that the event is about; none for an unknown event.
    pub fn session(&self) -> Option<SessionId> {
        match self {
            Self::SessionStarted { session, .. }
            | Self::ModeSeen { session, .. }
            | Self::PromptSubmitted { session, .. }
            | Self::ToolStarted { session, .. }
            | Self::ToolFinished { session, .. }
            | Self::TurnEnded { session, .. }
            | Self::TurnFailed { session, .. }
            | Self::DialogOpened { session, .. }
            | Self::Notified { session, .. }
            | Self::Compacting { session, .. }
            | Self::ModelSwitched { session, .. }
            | Self::Compacted { session }
            | Self::SessionEnded { session, .. }
            | Self::SubagentStarted { session }
            | Self::SubagentStopped { session }
            | Self::SubagentCompacts { session } => Some(*session),
            Self::StatusLine(line) => Some(line.session),
            Self::Unknown { .. } => None,
        }
    }
}

/// The work that the client goes on with after a turn is over, and comes back to by a prompt of its own.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Background {
    /// The subagents and shell commands that run.
    pub tasks: Vec<BackgroundTask>,
    /// The prompts that come at a set time: a wake-up comes once, others again and again.
    pub prompts: Vec<TimedPrompt>,
}

/// A subagent or a shell command that runs in the background.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct BackgroundTask {
    /// Its id within the session.
    pub id: String,
    /// The client's word for its kind: `subagent`, `shell`.
    pub kind: String,
}

/// A prompt that the client gives itself at a set time.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TimedPrompt {
    /// Its id within the session.
    pub id: String,
    /// True if it comes again and again.
    pub recurs: bool,
    /// The times at which it comes, in the form of cron.
    pub schedule: String,
    /// The prompt.
    pub prompt: String,
}

impl Background {
    /// Reports whether nothing goes on.
    pub const fn is_empty(&self) -> bool {
        self.tasks.is_empty() && self.prompts.is_empty()
    }

    /// Returns the ids of all tasks and prompts.
    pub fn ids(&self) -> impl Iterator<Item = &str> {
        let tasks = self.tasks.iter().map(|task| task.id.as_str());
        tasks.chain(self.prompts.iter().map(|prompt| prompt.id.as_str()))
    }

    /// Reports whether some of it ends by itself. A prompt that comes again and again does not.
    pub fn ends(&self) -> bool {
        !self.tasks.is_empty() || self.has_wake_up()
    }

    /// Reports whether a wake-up is among the prompts: the client sets its time, at most an hour ahead.
    pub fn has_wake_up(&self) -> bool {
        self.prompts.iter().any(|prompt| !prompt.recurs)
    }
}

impl std::fmt::Display for Background {
    /// Writes the counts by kind: `2 background agents, 1 background command, 1 wake-up`.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let of_kind = |kind: &str| self.tasks.iter().filter(|task| task.kind == kind).count();
        let (agents, commands) = (of_kind("subagent"), of_kind("shell"));
        let recurring = self.prompts.iter().filter(|prompt| prompt.recurs).count();
        let counts = [
            (agents, "background agent"),
            (commands, "background command"),
            (self.tasks.len() - agents - commands, "background task"),
            (self.prompts.len() - recurring, "wake-up"),
            (recurring, "scheduled prompt"),
        ];
        let named = counts.iter().filter(|(count, _)| *count > 0);
        for (at, (count, name)) in named.enumerate() {
            let (comma, plural) = (
                if at > 0 { ", " } else { "" },
                if *count == 1 { "" } else { "s" },
            );
            write!(f, "{comma}{count} {name}{plural}")?;
        }
        Ok(())
    }
}

/// The reason why a session began.
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
    /// It goes on under a new id, as it does in the client's daemon.
    Fork,
    /// A word we do not know.
    Other(String),
}

/// The reason why a session ended.
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
    /// The directory of the agent's shell: at the call's start the one where the call begins, at its end the one where it ended.
    pub directory: Option<String>,
    /// The file, for a tool that touches one.
    pub file: Option<String>,
    /// True if a subagent made the call, which then has no bearing on the main turn.
    pub by_subagent: bool,
    /// The change that it made to the agent's to-do list; none while it runs, and for a subagent, which has a list of its own.
    pub todo: Option<Box<TodoCall>>,
}

/// The result of a tool.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ToolOutput {
    /// The standard output, or the plain result of a tool without streams.
    pub stdout: String,
    /// The standard error, or the error of a failed tool.
    pub stderr: String,
    /// True if the human or the client stopped it.
    pub interrupted: bool,
    /// True if the client calls it failed.
    pub failed: bool,
    /// The time that it ran, in milliseconds.
    pub duration_ms: Option<u64>,
}

/// The kind of failure that ended a turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Failure {
    /// A usage limit of the subscription holds.
    UsageLimit,
    /// The service takes no more requests or tokens of the organization in this minute or day.
    RateLimit,
    /// The context window is full.
    ContextLimit,
    /// The service is overloaded or failing.
    Service,
    /// The service refuses the conversation as it is; every further request of the session contains it, too.
    Conversation,
    /// The service refuses the account: a person has to log in, or to pay.
    Account,
    /// Anything else.
    Other,
}

/// The figures of one status line.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct StatusLine {
    /// The session.
    pub session: SessionId,
    /// The path of the transcript.
    pub transcript_path: Option<String>,
    /// The model's id with its window mark, if it has one.
    pub model_id: Option<String>,
    /// The model's name for people.
    pub model_name: Option<String>,
    /// The whole context window, in tokens.
    pub window: Option<Tokens>,
    /// The tokens that the last main-chain call used; none before the first call and after a compaction.
    pub usage: Option<Usage>,
    /// The share of the whole window that input and cache take, in percent; none if `usage` is none.
    pub used_percentage: Option<f64>,
    /// The cost of the session so far, in US dollars.
    pub cost_usd: Option<f64>,
    /// The age of the session, in milliseconds.
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

/// The part of the conversation that the service still holds, so that the next call reads it at a fraction of the price.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PromptCache {
    /// True if it was warm at the time of this report.
    pub warm: bool,
    /// The time until which it stays warm, in seconds since the Unix epoch.
    pub expires_at: Option<u64>,
    /// The number of tokens that a call has to write again once it is cold.
    pub recache: Option<Tokens>,
    /// The price of that in US dollars, by the client's own estimate; reported of a resumed session only.
    pub usd: Option<f64>,
    /// The time that an entry lives without being read.
    pub lifetime: CacheLifetime,
}

/// The time that an entry of the prompt cache lives without being read; what is kept for longer costs more to write.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum CacheLifetime {
    /// Five minutes.
    #[default]
    FiveMinutes,
    /// An hour.
    Hour,
}

/// One usage limit.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RateLimit {
    /// The part of it that is used, in percent.
    pub used_percentage: f64,
    /// The time at which it begins again, in seconds since the Unix epoch.
    pub resets_at: Option<u64>,
}

/// A permission that a `PermissionRequest` hook asks for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PermissionRequest {
    /// The session.
    pub session: SessionId,
    /// The name of the tool.
    pub tool: String,
    /// The command of a shell, or the tool's input as JSON.
    pub input: String,
    /// True if that is all of it.
    pub whole: bool,
    /// True if yes and no are all that can be answered.
    pub is_plain: bool,
    /// True if a subagent asks: the client shows a dialog for it only once the hook has answered.
    pub by_subagent: bool,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn task(kind: &str) -> BackgroundTask {
        BackgroundTask {
            id: kind.to_owned(),
            kind: kind.to_owned(),
        }
    }

    #[test]
    fn what_goes_on_is_named_by_kind_and_number() {
        let once = TimedPrompt::default();
        let again = TimedPrompt {
            recurs: true,
            ..TimedPrompt::default()
        };
        let all = Background {
            tasks: vec![
                task("shell"),
                task("subagent"),
                task("subagent"),
                task("workflow"),
            ],
            prompts: vec![once, again.clone(), again],
        };
        assert_eq!(
            all.to_string(),
            "2 background agents, 1 background command, 1 background task, 1 wake-up, 2 scheduled prompts"
        );
        assert!(all.has_wake_up() && !all.is_empty());
        assert_eq!(Background::default().to_string(), "");
    }
}
