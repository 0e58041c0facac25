//! The state of an autonomous run.

use std::collections::{BTreeSet, VecDeque};

use crate::{api::wire::RunLine, autopilot::Autopilot, lineage::IterationId, transcript::Tokens};

/// What the run's timer is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::app) enum Due {
    Settle,
    Figure,
    SubmitTimeout,
    WaitOver,
    StartupTimeout,
    Dialog,
    Undelivered,
    Background,
    PromptBox,
}

/// What is known of a session's turns at a moment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(in crate::app) struct Judged {
    /// How full the context is.
    pub(in crate::app) used: Option<Tokens>,
    /// How many turns the bridge has given the figure of.
    pub(in crate::app) turns: u64,
}

/// The run with what is remembered between two events.
#[derive(Debug)]
pub struct Run {
    /// The rules and what they have counted.
    pub pilot: Autopilot,
    /// Whether the task is a file, to be read again before each prompt.
    pub(in crate::app) reads_task: bool,
    pub(in crate::app) epoch: u64,
    pub(in crate::app) due: Option<Due>,
    pub(in crate::app) rebooting: bool,
    /// Whether a person has been called for what is open now.
    pub(in crate::app) called: bool,
    /// Whether a text was typed while the run is held, and no turn has begun since.
    pub(in crate::app) said: bool,
    /// The words of a turn that was not reported yet, because its figures are not in.
    pub(in crate::app) unreported: Option<String>,
    /// Whether the figure that belongs to the last turn is in, or is not waited for any more.
    pub(in crate::app) figure_in: bool,
    /// What was known when the turn before was judged.
    pub(in crate::app) judged: Judged,
    /// Ids of what goes on in the background and was waited for long enough: servers never end by themselves.
    pub(in crate::app) waited_for: BTreeSet<String>,
    /// The newest iteration that was reported to have begun, and to have ended.
    pub(in crate::app) begun: Option<IterationId>,
    pub(in crate::app) ended: Option<IterationId>,
    /// The run's lines, oldest first.
    pub timeline: VecDeque<RunLine>,
}
