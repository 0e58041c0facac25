//! One life of the pane: from the start of an agent process to its end.

use std::time::Duration;

use chrono::{DateTime, SubsecRound, Utc};
use serde::{Deserialize, Serialize};

use super::{Cause, IterationId, RebootRecord, moment, words};
use pitstop_handoff::summary::SummaryMade;
use pitstop_transcript::{SessionId, Tokens};

/// The signal that the supervisor gets when its terminal is closed.
const HANG_UP: &str = "SIGHUP";

words! {
    /// The reason why an iteration ended; the words are those of `meta.json`.
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
    /// Returns the reason in a few words, for a list, with the signal that ended pitstop and whether that cut a turn. The cause of the
    /// next iteration says more about a reboot than this word.
    pub fn short(self, next: Option<Cause>, signal: Option<&str>, in_turn: bool) -> String {
        let why = match self {
            Self::Shutdown if signal == Some(HANG_UP) => "terminal closed",
            Self::Shutdown if signal.is_some() => "ended by a signal",
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
        };
        let when = if in_turn { " in mid-turn" } else { "" };
        format!("{why}{when}")
    }

    /// Returns the reason why an iteration ended, as the end of a sentence.
    pub const fn phrase(self) -> &'static str {
        match self {
            Self::Natural => "it ended by itself",
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

/// The numbers of input and output tokens over a whole iteration.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TokenTotals {
    /// The number of tokens sent to the model, caches included.
    pub input: Tokens,
    /// The number of tokens that the model wrote.
    pub output: Tokens,
}

impl TokenTotals {
    /// Returns both totals taken together by this function.
    pub(crate) fn with(self, other: Self, of: impl Fn(u64, u64) -> u64) -> Self {
        Self {
            input: Tokens(of(self.input.0, other.input.0)),
            output: Tokens(of(self.output.0, other.output.0)),
        }
    }
}

/// One life of the pane: from the start of an agent process to its end.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Iteration {
    /// Its number within the run.
    pub iteration: IterationId,
    /// The session it ran in; none for an agent without sessions, or before the id is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session_id: Option<SessionId>,
    /// The time when it began.
    #[serde(with = "moment")]
    pub started_at: DateTime<Utc>,
    /// The time when it ended; none while it is open.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[serde(serialize_with = "moment::option")]
    pub ended_at: Option<DateTime<Utc>>,
    /// Its length by a clock that is never set, the time for which the machine slept included, in milliseconds; none in records from
    /// before this was measured. The two moments are what the system's clock showed, which may have been set in between.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub duration_ms: Option<u64>,
    /// The reason why it ended; none while it is open.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub end_reason: Option<EndReason>,
    /// The name of the signal that asked pitstop to end, if one did: `SIGHUP` where the terminal was closed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub signal: Option<String>,
    /// True if its end is known to have cut a turn.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub in_turn: bool,
    /// The input and output tokens over its whole life.
    pub tokens: TokenTotals,
    /// A description of the work that was done in it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub summary: Option<String>,
    /// The writer of the summary, its cost, and the reason why no model wrote it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub summary_made: Option<SummaryMade>,
    /// The iteration whose work it carries on: the one before, or after an undo the one resumed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent: Option<IterationId>,
    /// The number of tokens in the context window at its first answer: the base load.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tokens_at_birth: Option<Tokens>,
    /// The number of tokens in the context window at its end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tokens_at_end: Option<Tokens>,
    /// The number of turns that ended in it; none in records from before this was counted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub turns: Option<u32>,
    /// The number of times that the client compacted the context by itself or for the human.
    #[serde(default, skip_serializing_if = "is_none_at_all")]
    pub compactions: u32,
    /// Its cost in US dollars, as the agent reports it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost_usd: Option<f64>,
    /// The cause of the reboot that began it; none for the first.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cause: Option<Cause>,
    /// The reboot that began it, with its times; none for the first.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reboot: Option<RebootRecord>,
}

impl Iteration {
    /// Returns the cost of its summary, which a process of its own is asked for: it is in no session's.
    pub fn summary_cost(&self) -> Option<f64> {
        self.summary_made.as_ref()?.cost_usd
    }

    /// Returns its cost with that of its summary, in US dollars; none where neither is known.
    pub fn total_cost(&self) -> Option<f64> {
        let costs = [self.cost_usd, self.summary_cost()];
        costs.into_iter().flatten().reduce(|sum, one| sum + one)
    }

    /// Reports whether it is still open.
    pub const fn is_open(&self) -> bool {
        self.ended_at.is_none()
    }

    /// Returns its length; as long as it is open, that when it was recorded last.
    pub fn lasted(&self) -> Duration {
        let by_moments = || {
            let time = self.ended_at?.signed_duration_since(self.started_at);
            time.to_std().ok()
        };
        let measured = self.duration_ms.map(Duration::from_millis);
        measured.or_else(by_moments).unwrap_or_default()
    }

    /// Returns the reason why it ended, as the end of a sentence; `None` while it is open.
    pub fn ending(&self) -> Option<&'static str> {
        Some(match (self.end_reason?, self.signal.as_deref()) {
            (EndReason::Shutdown, Some(HANG_UP)) => "its terminal was closed",
            (EndReason::Shutdown, Some(_)) => "a signal ended pitstop",
            (reason, _) => reason.phrase(),
        })
    }

    /// Reports whether a handoff was given to it, and not a trimmed copy or nothing.
    pub fn was_given_handoff(&self) -> bool {
        let record = self.reboot.as_ref();
        record.is_some_and(|one| one.trim.is_none() && one.handoff_bytes > 0)
    }

    pub(super) fn born(iteration: IterationId, at: DateTime<Utc>) -> Self {
        Self {
            iteration,
            started_at: at.trunc_subsecs(3),
            ..Self::default()
        }
    }

    pub(super) fn close(&mut self, at: DateTime<Utc>, reason: EndReason) {
        // A clock set back must not make an iteration end before it began.
        self.ended_at = Some(at.trunc_subsecs(3).max(self.started_at));
        self.end_reason = Some(reason);
    }
}

/// Reports whether a count is zero; takes a reference because serde requires one.
#[allow(clippy::trivially_copy_pass_by_ref, reason = "serde gives a reference")]
pub(super) const fn is_none_at_all(count: &u32) -> bool {
    *count == 0
}
