//! The state of an autonomous run.

use std::collections::{BTreeSet, VecDeque};

use crate::{api::wire::RunLine, autopilot::Autopilot, lineage::IterationId};
use pitstop_transcript::Tokens;

/// The purpose of the run's timer.
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

/// The known figures of a session's turns at one moment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(in crate::app) struct Judged {
    /// The number of tokens in use.
    pub(in crate::app) used: Option<Tokens>,
    /// The number of turns whose figure the bridge has given.
    pub(in crate::app) turns: u64,
}

/// The run, with the state that is kept between events.
#[derive(Debug)]
pub struct Run {
    /// The rules and their counts.
    pub pilot: Autopilot,
    /// True if the task is a file that is read again before each prompt.
    pub(in crate::app) reads_task: bool,
    pub(in crate::app) epoch: u64,
    pub(in crate::app) due: Option<Due>,
    pub(in crate::app) rebooting: bool,
    /// The reason why the run does not get on without a person though nothing has stopped it.
    pub(in crate::app) stuck: Option<&'static str>,
    /// True if a text was typed while the run is held, and no turn has begun since.
    pub(in crate::app) said: bool,
    /// The last words of a turn that has not been reported yet, because its figures have not come.
    pub(in crate::app) unreported: Option<String>,
    /// True if the figure of the last turn has come, or is no longer awaited.
    pub(in crate::app) figure_in: bool,
    /// The figures that were known when the previous turn was judged.
    pub(in crate::app) judged: Judged,
    /// The ids of background work that was waited for long enough: servers never end by themselves.
    pub(in crate::app) waited_for: BTreeSet<String>,
    /// The newest iterations that were reported to have begun and to have ended.
    pub(in crate::app) begun: Option<IterationId>,
    pub(in crate::app) ended: Option<IterationId>,
    /// The run's lines, oldest first.
    pub timeline: VecDeque<RunLine>,
}
