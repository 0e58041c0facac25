//! Causes and ends in words for people: what the record calls them are names for scripts.

use super::{Cause, EndReason};

impl EndReason {
    /// Why an iteration ended, as the end of a sentence.
    #[must_use]
    pub const fn phrase(self) -> &'static str {
        match self {
            Self::Natural => "its work was over",
            Self::ContextLimit => "its context window was full",
            Self::PromiseFound => "the agent gave the promise",
            Self::UserReboot => "a person rebooted it",
            Self::Shutdown => "pitstop was told to end",
            Self::Crash => "it died",
            Self::Limit => "a cap of the run was reached",
            Self::Breaker => "a breaker of the run tripped",
        }
    }
}

impl Cause {
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
            Self::Undo => "the session before the last reboot is back",
            Self::Recovery => "the session before a reboot that failed is back",
            Self::Restore => "a checkpoint is taken up",
        }
    }
}
