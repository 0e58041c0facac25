//! One life of the pane: from the start of an agent process to its end.

use chrono::{DateTime, SubsecRound, Utc};
use serde::{Deserialize, Serialize};

use super::{Cause, IterationId, RebootRecord, moment, words};
use crate::{
    handoff::summary::SummaryMade,
    transcript::{SessionId, Tokens},
};

words! {
    /// Why an iteration ended; the words are those of `meta.json`.
    EndReason, "an end reason (natural, context_limit, promise_found, user_reboot, shutdown, crash, limit or breaker)", {
        /// The agent ended by itself.
        Natural = "natural",
        /// The context window was the reason: it was at a line, at a good moment past the warn line, or full.
        ContextLimit = "context_limit",
        /// The stop phrase was found in the agent's last message.
        StopPhraseFound = "promise_found",
        /// A reboot was asked for.
        UserReboot = "user_reboot",
        /// The supervisor was asked to end.
        Shutdown = "shutdown",
        /// The agent or the supervisor died.
        Crash = "crash",
        /// A cap of the run was reached.
        Limit = "limit",
        /// A breaker of the run tripped.
        Breaker = "breaker",
    }
}

impl EndReason {
    /// The same in a few words, for a list. What the next iteration was begun for says more of a reboot than this word.
    #[must_use]
    pub const fn short(self, next: Option<Cause>) -> &'static str {
        match self {
            Self::ContextLimit | Self::UserReboot => match next {
                Some(cause) => cause.as_end(),
                None => "rebooted",
            },
            Self::Natural => match next {
                Some(Cause::Autopilot) => Cause::Autopilot.as_end(),
                _ => "ended",
            },
            Self::StopPhraseFound => "task done",
            Self::Shutdown => "quit",
            Self::Crash => "died",
            Self::Limit => "cap reached",
            Self::Breaker => "breaker tripped",
        }
    }

    /// Why an iteration ended, as the end of a sentence.
    #[must_use]
    pub const fn phrase(self) -> &'static str {
        match self {
            Self::Natural => "its work was over",
            Self::ContextLimit => "it was rebooted to free its context window",
            Self::StopPhraseFound => "the agent gave the stop phrase",
            Self::UserReboot => "a reboot was asked for",
            Self::Shutdown => "pitstop was asked to end",
            Self::Crash => "it died",
            Self::Limit => "a cap of the run was reached",
            Self::Breaker => "a breaker of the run tripped",
        }
    }
}

/// Tokens that went in and came out over a whole iteration.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TokenTotals {
    /// Tokens sent to the model, caches included.
    pub input: Tokens,
    /// Tokens the model wrote.
    pub output: Tokens,
}

/// One life of the pane: from the start of an agent process to its end.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Iteration {
    /// Its number within the run.
    pub iteration: IterationId,
    /// The session it spoke in; none for an agent without sessions, or before the id is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session_id: Option<SessionId>,
    /// When it began.
    #[serde(with = "moment")]
    pub started_at: DateTime<Utc>,
    /// When it ended; none while it lives.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[serde(serialize_with = "moment::option")]
    pub ended_at: Option<DateTime<Utc>>,
    /// Why it ended; none while it lives.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub end_reason: Option<EndReason>,
    /// Tokens in and out over its whole life.
    pub tokens: TokenTotals,
    /// What was done in it, in words.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub summary: Option<String>,
    /// Who wrote the summary, what that cost, and why it is not a model's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub summary_made: Option<SummaryMade>,
    /// The iteration whose work it carries on: the one before, or after an undo the one resumed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent: Option<IterationId>,
    /// Tokens in the context window at its first answer: the base load.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tokens_at_birth: Option<Tokens>,
    /// Tokens in the context window at its end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tokens_at_end: Option<Tokens>,
    /// How many turns ended in it; none in records from before this was counted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub turns: Option<u32>,
    /// How often the client compacted the context by itself or for the human.
    #[serde(default, skip_serializing_if = "is_none_at_all")]
    pub compactions: u32,
    /// What it cost, in US dollars, as the agent reports it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost_usd: Option<f64>,
    /// What asked for the reboot that began it; none for the first.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cause: Option<Cause>,
    /// The reboot that began it, with its times; none for the first.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reboot: Option<RebootRecord>,
}

impl Iteration {
    /// Whether it still lives.
    #[must_use]
    pub const fn is_open(&self) -> bool {
        self.ended_at.is_none()
    }

    /// Whether a handoff was given to it, and not a trimmed copy or nothing.
    #[must_use]
    pub fn was_given_handoff(&self) -> bool {
        let record = self.reboot.as_ref();
        record.is_some_and(|one| one.trim.is_none() && one.handoff_bytes > 0)
    }

    pub(super) fn born(iteration: IterationId, at: DateTime<Utc>) -> Self {
        Self {
            iteration,
            session_id: None,
            started_at: at.trunc_subsecs(3),
            ended_at: None,
            end_reason: None,
            tokens: TokenTotals::default(),
            summary: None,
            summary_made: None,
            parent: None,
            tokens_at_birth: None,
            tokens_at_end: None,
            turns: None,
            compactions: 0,
            cost_usd: None,
            cause: None,
            reboot: None,
        }
    }

    pub(super) fn close(&mut self, at: DateTime<Utc>, reason: EndReason) {
        // A clock set back must not make an iteration end before it began.
        self.ended_at = Some(at.trunc_subsecs(3).max(self.started_at));
        self.end_reason = Some(reason);
    }
}

/// Whether a count is nil; by reference, as serde asks.
#[allow(clippy::trivially_copy_pass_by_ref, reason = "serde gives a reference")]
pub(super) const fn is_none_at_all(count: &u32) -> bool {
    *count == 0
}
