//! The state of a reboot, and what is remembered between two.

use std::time::Duration;

use crate::{
    app::event::Lots,
    clock::At,
    config::RebootMode,
    guard::Level,
    handoff::Handoff,
    lineage::{Cause, IterationId, TrimRecord, Way, journal::Step},
    transcript::{SessionId, Tokens},
};

use super::{
    ending::Ending,
    trim::{Offer, Preview},
    unsent::OnDisk,
};

/// Why a reboot has ended that was not due any more, in the word of the counters.
pub(in crate::app) const WITHDRAWN: &str = "withdrawn";

/// The reboot under way and what is remembered between two.
#[derive(Debug)]
pub struct Reboot {
    /// Who decides when to reboot.
    pub mode: RebootMode,
    /// Whether reboots by themselves are paused.
    pub paused: bool,
    /// Random values for the next reboot.
    pub lots: Lots,
    /// The unsent prompt of the session before, until it stands in this one's prompt box.
    pub unsent: Option<String>,
    /// How far ending the agent is, if it is being ended.
    pub ending: Option<Ending>,
    /// The reboot under way.
    pub attempt: Option<Attempt>,
    /// Why none begins by itself for now.
    pub quiet: Option<Quiet>,
    /// When the latest reboots began, for the breaker.
    pub(in crate::app) begun: Vec<At>,
    /// Why the last one failed.
    pub failure: Option<String>,
    /// The level at which a person was last called to a reboot of this session.
    pub(in crate::app) called: Option<Level>,
}

impl Reboot {
    /// None is under way, and none has been.
    pub(super) const fn new(mode: RebootMode, lots: Lots) -> Self {
        Self {
            mode,
            paused: false,
            lots,
            unsent: None,
            ending: None,
            attempt: None,
            quiet: None,
            begun: Vec::new(),
            failure: None,
            called: None,
        }
    }

    /// Another session begins: what a person was called for was about the one before.
    pub const fn forget_calls(&mut self) {
        self.called = None;
    }
}

/// Where the next iteration comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A new session with the handoff.
    Fresh,
    /// A trimmed copy of the session, resumed.
    Trim,
    /// The session before the last reboot, resumed.
    Undo(SessionId, Option<IterationId>),
    /// The same session, resumed after its process died.
    Restart,
}

impl Kind {
    /// Whether it is a reboot proper, which is journaled and recorded.
    #[must_use]
    pub const fn is_reboot(self) -> bool {
        matches!(self, Self::Fresh | Self::Trim)
    }

    /// How the context goes over.
    #[must_use]
    pub const fn way(self) -> Way {
        match self {
            Self::Trim => Way::Trim,
            Self::Fresh | Self::Undo(..) | Self::Restart => Way::Fresh,
        }
    }
}

impl From<Way> for Kind {
    fn from(way: Way) -> Self {
        match way {
            Way::Fresh => Self::Fresh,
            Way::Trim => Self::Trim,
        }
    }
}

/// One reboot from its trigger to its end.
#[derive(Clone, Debug)]
pub struct Attempt {
    /// Its id in the journal.
    pub id: uuid::Uuid,
    /// Where the next iteration comes from.
    pub kind: Kind,
    /// What asked for it.
    pub cause: Cause,
    /// Where it stands.
    pub step: Step,
    /// The iteration that ends.
    pub(in crate::app) from: IterationId,
    /// The session that ends.
    pub old: SessionId,
    /// The session that begins.
    pub new: SessionId,
    /// The message, fixed when it was approved.
    pub handoff: Option<Handoff>,
    /// Whether it may go on, and whether a person said so.
    pub approved: Option<Approval>,
    /// Whether the running turn is to be interrupted.
    pub force: bool,
    /// When each step was entered.
    pub entered: Vec<(Step, At)>,
    /// Why it is being rolled back.
    pub rolling_back: Option<String>,
    /// Whether the handoff was seen to arrive, or the client in the trimmed session.
    pub proven: bool,
    /// Whether the proof is late and the human has been told.
    pub overdue: bool,
    /// What a trim would win, while the review is open.
    pub preview: Preview,
    /// What the trim has removed, once the copy is there.
    pub trimmed: Option<TrimRecord>,
    /// The copy that was ordered.
    pub(in crate::app) copying: Option<u64>,
    pub(in crate::app) journaled: bool,
    pub(in crate::app) drafted: bool,
    pub(in crate::app) prepared: Prepared,
    /// Whether the prompt box was looked at for the last time.
    pub(in crate::app) looked: bool,
    /// How far what it holds is on its way to the disk.
    pub(in crate::app) draft: OnDisk,
    pub(in crate::app) old_gone: bool,
    pub(in crate::app) started: bool,
    pub(in crate::app) spawned: bool,
    pub(in crate::app) failed: Option<String>,
    /// How much of the window was in use when it was begun.
    pub used: Option<Tokens>,
    /// When `auto` goes ahead, while nothing speaks against it.
    pub(in crate::app) clock: Option<Clock>,
    pub(in crate::app) warmed_up: bool,
    pub(in crate::app) epoch: u64,
}

/// Who let a reboot go ahead.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Approval {
    /// A person, here or by `ctl`: that they are at the keyboard is no reason to wait.
    Person,
    /// `auto` mode.
    Auto,
}

/// Why no reboot begins by itself for now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum QuietReason {
    /// A person has put it off.
    Deferred,
    /// A person has closed the review of one.
    Cancelled,
    /// A person has taken one back.
    Undone,
    /// A breaker says that it would not help, and why.
    Breaker(String),
}

/// A time in which no reboot begins by itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Quiet {
    /// Why.
    pub reason: QuietReason,
    /// It is over once so many turns of the iteration have ended.
    pub until_turn: u32,
    /// Whether the context was past the force line when it began. If not, that line ends it.
    pub(in crate::app) forced: bool,
}

/// The time after which `auto` goes ahead.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::app) struct Clock {
    /// When it does, by the monotonic clock.
    pub at: Duration,
    /// The timer that drives it.
    pub(in crate::app) epoch: u64,
}

/// How far the preparation is.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(in crate::app) enum Prepared {
    /// Nothing was done.
    #[default]
    Nothing,
    /// It is under way.
    Ordered,
    /// Everything is there.
    Ready,
    /// Something is missing.
    Refused(String),
}

impl Attempt {
    /// Whether the old agent still lives and nothing has been done to it.
    #[must_use]
    pub fn is_harmless(&self) -> bool {
        matches!(
            self.step,
            Step::Armed | Step::Drafting | Step::Review | Step::Preparing | Step::Waiting
        )
    }

    /// Whether nobody has asked for it.
    #[must_use]
    pub const fn is_by_itself(&self) -> bool {
        matches!(
            self.cause,
            Cause::Threshold | Cause::Breakpoint | Cause::ContextLimit | Cause::Autopilot
        )
    }

    /// Whether a new process has been ordered and the handoff is on its way to it.
    #[must_use]
    pub fn is_under_way(&self) -> bool {
        matches!(
            self.step,
            Step::Starting | Step::Delivering | Step::Verifying | Step::Warming | Step::RollingBack
        )
    }

    /// Whether the new iteration has begun, and the old session is not being resumed instead.
    pub(in crate::app) fn has_begun(&self) -> bool {
        self.started && self.is_under_way() && self.step != Step::RollingBack
    }

    /// What the trim has removed, or will have by the latest survey.
    pub(in crate::app) fn trim_record(&self) -> Option<TrimRecord> {
        if self.kind != Kind::Trim || self.trimmed.is_some() {
            return self.trimmed;
        }
        let Offer { figure, of, .. } = self.preview.offer().ok()?;
        Some(TrimRecord {
            level: figure.percent,
            responses: figure.responses,
            of,
            tokens_before: figure.tokens_before,
            tokens_after: figure.tokens_after,
        })
    }

    /// Whether the trimmed copy is being written.
    #[must_use]
    pub fn is_copying(&self) -> bool {
        self.kind == Kind::Trim && self.step == Step::Starting && self.trimmed.is_none()
    }
}
