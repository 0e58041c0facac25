//! A reboot as it is recorded: what asked for it, its steps, and how the context went over.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::words;
use crate::transcript::{SessionId, Tokens};

words! {
    /// What asked for a reboot.
    Cause, "the cause of a reboot", {
        /// A key.
        Key = "key",
        /// `pitstop ctl`.
        Ctl = "ctl",
        /// The API.
        Api = "api",
        /// Usage passed a threshold.
        Threshold = "threshold",
        /// A good moment behind the warn line: a commit, or tests that passed.
        Breakpoint = "breakpoint",
        /// The autonomous loop.
        Autopilot = "autopilot",
        /// The agent ended by itself.
        AgentExit = "agent_exit",
        /// The agent died.
        AgentCrash = "agent_crash",
        /// The client refused prompts because its context window is full.
        ContextLimit = "context_limit",
        /// The client was about to compact by itself.
        Compaction = "compaction",
        /// The human had the client compact.
        CompactCommand = "compact_command",
        /// The human took the last reboot back.
        Undo = "undo",
        /// The supervisor died in mid-reboot and the next one finished it.
        Recovery = "recovery",
        /// The work of a checkpoint is taken up.
        Restore = "restore",
    }
}

impl Cause {
    /// The same in a few words, for a list: they follow `began`.
    #[must_use]
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
            Self::Recovery => "after a failed reboot",
            Self::Restore => "from a checkpoint",
        }
    }

    /// How the iteration before ended, in a few words for a list. Full is only what the client refused.
    #[must_use]
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
            Self::AgentExit | Self::AgentCrash | Self::Recovery => "rebooted",
            Self::Restore => "checkpoint restored",
        }
    }

    /// Why an iteration began, as the end of a sentence.
    #[must_use]
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
            Self::Recovery => "the session before a reboot that failed is back",
            Self::Restore => "a checkpoint is taken up",
        }
    }
}

words! {
    /// How the next iteration gets its context.
    Way, "a way to reboot (fresh, in-place, on-the-fly or trim)", {
        /// A new session that is given the handoff.
        Fresh = "fresh",
        /// The handoff takes the place of the conversation inside the running client.
        InPlace = "in-place",
        /// The same between two steps of a turn, which goes on.
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
        /// The human looks at it.
        Review = "review",
        /// Approved: what the new session needs is made and checked.
        Preparing = "preparing",
        /// Waits for a safe moment.
        Waiting = "waiting",
        /// The old agent is being ended.
        Ending = "ending",
        /// The new agent is being started.
        Starting = "starting",
        /// The handoff is on its way.
        Delivering = "delivering",
        /// Waits for the marker to come back.
        Verifying = "verifying",
        /// Delivered; the warm-up prompt is due.
        Warming = "warming",
        /// Finished.
        Done = "done",
        /// The old session is being resumed.
        RollingBack = "rolling_back",
        /// Given up, and the human was shown why.
        Failed = "failed",
    }
}

impl Step {
    /// Whether nothing is left to be done after this step.
    #[must_use]
    pub const fn is_final(self) -> bool {
        matches!(self, Self::Done | Self::Failed)
    }
}

/// What a trim has removed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TrimRecord {
    /// The level: the share of the tool responses that was removed, in percent.
    pub level: u8,
    /// How many tool responses that was.
    pub responses: usize,
    /// How many there were.
    pub of: usize,
    /// Tokens in the context window before.
    pub tokens_before: Tokens,
    /// Tokens in the context window after it, estimated.
    pub tokens_after: Tokens,
}

/// How one reboot went, as the API and the history report it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RebootRecord {
    /// The session that ended, where the agent has sessions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub old_session: Option<SessionId>,
    /// The session that carries on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub new_session: Option<SessionId>,
    /// How the context went over.
    pub way: Way,
    /// What marks the handoff in the transcript, where the way was in place: the conversation before it stands in the same file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub nonce: Option<String>,
    /// What asked for it.
    pub cause: Cause,
    /// What was removed, where the way was a trim.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trim: Option<TrimRecord>,
    /// Milliseconds spent in each step.
    #[serde(default)]
    pub transition_time_ms: BTreeMap<Step, u64>,
    /// The size of the handoff in bytes.
    pub handoff_bytes: u64,
    /// The estimated size of the handoff in tokens.
    pub handoff_tokens: Tokens,
    /// Whether the handoff was seen to arrive.
    pub verified: bool,
    /// Whether a warm-up prompt was sent.
    pub warmed_up: bool,
    /// The preserved state the handoff was made from, as JSON.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub preserved_state: Option<serde_json::Value>,
}

impl RebootRecord {
    /// Milliseconds the whole transition took.
    #[must_use]
    pub fn total_ms(&self) -> u64 {
        self.transition_time_ms
            .values()
            .fold(0, |sum, step| sum.saturating_add(*step))
    }
}
