//! A reboot as it is recorded: its cause, its steps, and the way in which the context was handed over.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::words;
use pitstop_transcript::{SessionId, Tokens};

words! {
    /// The cause of a reboot.
    Cause, "the cause of a reboot", {
        /// The human pressed a key.
        Key = "key",
        /// The command `pitstop ctl` asked for it.
        Ctl = "ctl",
        /// The API was called.
        Api = "api",
        /// Usage passed a threshold.
        Threshold = "threshold",
        /// A good moment came past the warn line: a commit, or tests that passed.
        Breakpoint = "breakpoint",
        /// The autonomous loop began its next turn.
        Autopilot = "autopilot",
        /// The agent ended by itself.
        AgentExit = "agent_exit",
        /// The agent died.
        AgentCrash = "agent_crash",
        /// The client refused prompts because its context window is full.
        ContextLimit = "context_limit",
        /// The client was about to compact by itself.
        Compaction = "compaction",
        /// The human made the client compact.
        CompactCommand = "compact_command",
        /// The human undid the last reboot.
        Undo = "undo",
        /// A reboot broke off: it failed and was taken back, or the supervisor died in it and the next one finished it or took it back.
        Recovery = "recovery",
        /// The work of a checkpoint is resumed.
        Restore = "restore",
        /// An earlier session is resumed at the start of pitstop.
        Resume = "resume",
    }
}

impl Cause {
    /// Returns the cause in a few words, for a list: they follow `began`.
    pub const fn short(self) -> &'static str {
        match self {
            Self::Key => "by key",
            Self::Ctl => "from the command line",
            Self::Api => "through the API",
            Self::Threshold => "at the compact line",
            Self::Breakpoint => "at a good moment",
            Self::Autopilot => "for the next turn",
            Self::AgentExit => "after the agent ended",
            Self::AgentCrash => "after a crash",
            Self::ContextLimit => "with the context full",
            Self::Compaction => "in place of a compaction",
            Self::CompactCommand => "at /compact",
            Self::Undo => "by undo",
            Self::Recovery => "as a reboot broke off",
            Self::Restore => "from a checkpoint",
            Self::Resume => "resumed",
        }
    }

    /// Returns how the iteration before ended, in a few words for a list. Only a context that the client refused is called full.
    pub const fn as_end(self) -> &'static str {
        match self {
            Self::Key => "rebooted by key",
            Self::Ctl => "rebooted by command",
            Self::Api => "rebooted by API",
            Self::Threshold => "at the compact line",
            Self::Breakpoint => "at a good moment",
            Self::Autopilot => "turn over",
            Self::ContextLimit => "context full",
            Self::Compaction => "before a compaction",
            Self::CompactCommand => "at /compact",
            Self::Undo => "undone",
            Self::AgentExit | Self::AgentCrash | Self::Recovery | Self::Resume => "rebooted",
            Self::Restore => "checkpoint restored",
        }
    }

    /// Returns the reason why an iteration began, as the end of a sentence.
    pub const fn phrase(self) -> &'static str {
        match self {
            Self::Key => "rebooted by key",
            Self::Ctl => "rebooted by `pitstop ctl`",
            Self::Api => "rebooted by the API",
            Self::Threshold => "rebooted at the compact line",
            Self::Breakpoint => "rebooted at a good moment (a commit, or tests that passed)",
            Self::Autopilot => "a fresh session for the next turn",
            Self::AgentExit => "the agent had ended and was started again",
            Self::AgentCrash => "the agent had died and was started again",
            Self::ContextLimit => "rebooted because the client refused prompts",
            Self::Compaction => "the handoff took the place of the client's own compaction",
            Self::CompactCommand => "the handoff took the place of what `/compact` leaves",
            Self::Undo => "an earlier session is back",
            Self::Recovery => "a session is resumed after a reboot that broke off",
            Self::Restore => "a checkpoint is taken up",
            Self::Resume => "an earlier session is resumed",
        }
    }
}

words! {
    /// The way in which the next iteration gets its context.
    Way, "a way to reboot (fresh, in-place, on-the-fly or trim)", {
        /// A new session that is given the handoff.
        Fresh = "fresh",
        /// The handoff replaces the conversation inside the running client.
        InPlace = "in-place",
        /// The handoff replaces the conversation between two steps of a turn, which continues.
        OnTheFly = "on-the-fly",
        /// A trimmed copy of the old session, resumed under a new id.
        Trim = "trim",
    }
}

words! {
    /// The steps of a reboot, in order.
    Step, "a reboot step", {
        /// A reboot was asked for.
        Armed = "armed",
        /// The handoff is being written.
        Drafting = "drafting",
        /// The human reviews it.
        Review = "review",
        /// The human approved: what the new session needs is made and checked.
        Preparing = "preparing",
        /// The reboot waits for a safe moment.
        Waiting = "waiting",
        /// The old agent is being ended.
        Ending = "ending",
        /// The new agent is being started.
        Starting = "starting",
        /// The handoff is on its way.
        Delivering = "delivering",
        /// The reboot waits for the marker to appear in the transcript.
        Verifying = "verifying",
        /// The handoff is delivered; the warm-up prompt is due.
        Warming = "warming",
        /// The reboot is finished.
        Done = "done",
        /// The old session is being resumed.
        RollingBack = "rolling_back",
        /// The reboot was given up, and the human was shown why.
        Failed = "failed",
    }
}

impl Step {
    /// Reports whether nothing is left to be done after this step.
    pub const fn is_final(self) -> bool {
        matches!(self, Self::Done | Self::Failed)
    }
}

/// The record of what a trim removed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TrimRecord {
    /// The level: the share of the tool responses that was removed, in percent.
    pub level: u8,
    /// The number of tool responses that were removed.
    pub responses: usize,
    /// The number of tool responses that there were.
    pub of: usize,
    /// The number of tokens in the context window before the trim.
    pub tokens_before: Tokens,
    /// The estimated number of tokens in the context window after the trim.
    pub tokens_after: Tokens,
}

/// The record of one reboot, as the API and the history report it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RebootRecord {
    /// The session that ended, where the agent has sessions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub old_session: Option<SessionId>,
    /// The session that carries on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub new_session: Option<SessionId>,
    /// The way in which the context was handed over.
    pub way: Way,
    /// The marker of the handoff in the transcript, where the way was in place: the conversation before it is in the same file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub nonce: Option<String>,
    /// The cause of the reboot.
    pub cause: Cause,
    /// The record of what was removed, where the way was a trim.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trim: Option<TrimRecord>,
    /// The milliseconds spent in each step.
    #[serde(default)]
    pub transition_time_ms: BTreeMap<Step, u64>,
    /// The size of the handoff in bytes.
    pub handoff_bytes: u64,
    /// The estimated size of the handoff in tokens.
    pub handoff_tokens: Tokens,
    /// True if the handoff was seen to arrive.
    pub verified: bool,
    /// True if a warm-up prompt was sent.
    pub warmed_up: bool,
    /// The device by which a person approved it, if it was not at the desk.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub approved_from: Option<String>,
    /// The preserved state that the handoff was made from, as JSON.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub preserved_state: Option<serde_json::Value>,
}

impl RebootRecord {
    /// Returns the number of milliseconds that the whole transition took.
    pub fn total_ms(&self) -> u64 {
        self.transition_time_ms
            .values()
            .fold(0, |sum, step| sum.saturating_add(*step))
    }
}
