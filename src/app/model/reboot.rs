//! The state of a reboot, and what is remembered between two.

use std::time::Duration;

use chrono::{DateTime, Utc};

use crate::{
    app::event::NewIds,
    bridge::{CompactionId, OrderId},
    clock::At,
    config::RebootMode,
    guard::Level,
    handoff::Handoff,
    lineage::{Cause, IterationId, TrimRecord, Way, journal::Step},
    transcript::{SessionId, Tokens},
};

use super::{
    ending::Ending,
    progress::Progress,
    trim::{Offer, Preview},
    unsent::OnDisk,
};

/// How a reboot has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, strum::IntoStaticStr)]
#[strum(serialize_all = "snake_case")]
pub enum RebootOutcome {
    /// It was given up before anything was done to the old session.
    Cancelled,
    /// A person has put it off.
    Deferred,
    /// The new session has taken over.
    Done,
    /// It was refused, or could not go on.
    Failed,
    /// The old session was resumed.
    RolledBack,
    /// It had begun by itself and was not due any more.
    Withdrawn,
}

/// The reboot under way and what is remembered between two.
#[derive(Debug)]
pub struct Reboot {
    /// Who decides when to reboot.
    pub mode: RebootMode,
    /// Whether reboots by themselves are paused.
    pub paused: bool,
    /// Random values for the next reboot.
    pub new_ids: NewIds,
    /// The unsent prompt of the session before, until it stands in this one's prompt box.
    pub unsent: Option<String>,
    /// Where its cursor stood, in UTF-16 units, if that is known.
    pub(in crate::app) cursor: Option<usize>,
    /// A reboot in place that is over, and the unsent prompt that is kept on disk until its end is there too.
    pub(in crate::app) beside: Option<(uuid::Uuid, OnDisk)>,
    /// How far ending the agent is, if it is being ended.
    pub ending: Option<Ending>,
    /// The reboot under way.
    pub attempt: Option<Attempt>,
    /// The agent asks for one, until it is answered.
    pub wish: Option<Wish>,
    /// Why none begins by itself for now.
    pub quiet: Option<Quiet>,
    /// What the sessions of this run have got done, for the breaker.
    pub(in crate::app) progress: Progress,
    /// What holds a reboot back that is due, for as long as it does.
    pub held_by: Option<Breaker>,
    /// When the latest reboots were done, for the breaker.
    pub(in crate::app) done: Vec<At>,
    /// Why the last one failed.
    pub failure: Option<String>,
    /// Why the last one was refused before it began, until something has changed.
    pub refused: Option<String>,
    /// The level at which a person was last called to a reboot of this session.
    pub(in crate::app) called: Option<Level>,
}

/// The agent asks for a reboot.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Wish {
    /// Which one.
    pub session: SessionId,
    /// Why; empty if it has not said.
    pub reason: String,
}

impl Reboot {
    /// None is under way, and none has been.
    pub(super) fn new(mode: RebootMode, new_ids: NewIds) -> Self {
        Self {
            mode,
            paused: false,
            new_ids,
            unsent: None,
            cursor: None,
            beside: None,
            ending: None,
            attempt: None,
            wish: None,
            quiet: None,
            progress: Progress::default(),
            held_by: None,
            done: Vec::new(),
            failure: None,
            refused: None,
            called: None,
        }
    }

    /// The compaction of the client's that the reboot under way answers, or has answered.
    pub(in crate::app) fn held(&self) -> Option<&Held> {
        self.attempt.as_ref()?.held.as_ref()
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
    /// The same session, whose conversation is replaced by the handoff inside the running client.
    InPlace,
    /// The same between two steps of a turn, which goes on.
    OnTheFly,
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
        matches!(
            self,
            Self::Fresh | Self::InPlace | Self::OnTheFly | Self::Trim
        )
    }

    /// Whether the conversation is replaced inside the running client: process, session and prompt box stay.
    #[must_use]
    pub const fn replaces(self) -> bool {
        matches!(self, Self::InPlace | Self::OnTheFly)
    }

    /// How the context goes over.
    #[must_use]
    pub const fn way(self) -> Way {
        match self {
            Self::Trim => Way::Trim,
            Self::InPlace => Way::InPlace,
            Self::OnTheFly => Way::OnTheFly,
            Self::Fresh | Self::Undo(..) | Self::Restart => Way::Fresh,
        }
    }
}

impl From<Way> for Kind {
    fn from(way: Way) -> Self {
        match way {
            Way::Fresh => Self::Fresh,
            Way::InPlace => Self::InPlace,
            Way::OnTheFly => Self::OnTheFly,
            Way::Trim => Self::Trim,
        }
    }
}

/// A conversation that was replaced in place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Replaced {
    /// The session in whose transcript it stands.
    pub session: SessionId,
    /// The nonce of the handoff that has taken its place.
    pub nonce: String,
}

/// One reboot from its trigger to its end.
#[derive(Clone, Debug)]
pub struct Attempt {
    /// Its id in the journal.
    pub id: uuid::Uuid,
    /// Where the next iteration comes from.
    pub kind: Kind,
    /// Whether a person or a script has chosen that.
    pub(in crate::app) is_chosen: bool,
    /// What asked for it.
    pub cause: Cause,
    /// Where it stands.
    pub phase: Phase,
    /// Whether that is on disk: until then nothing follows from it, whichever it is.
    pub(in crate::app) journaled: bool,
    /// When each step was entered.
    pub entered: Vec<(Step, At)>,
    /// The iteration that ends.
    pub(in crate::app) from: IterationId,
    /// The session that ends.
    pub old: SessionId,
    /// The session that begins.
    pub new: SessionId,
    /// What the session that is resumed is a copy of, where that was replaced in place.
    pub replaced: Option<Replaced>,
    /// How much of the window was in use when it was begun.
    pub used: Option<Tokens>,
    /// What a trim would win, while the review is open.
    pub preview: Preview,
    /// Whether it may go on, and whether a person said so. That may be said before it is drafted, and what is in the way is judged
    /// by it until the old agent ends.
    pub approved: Option<Approval>,
    /// Whether the running turn is to be interrupted: decided before the phase that waits or in it, and in place read by the one
    /// behind it.
    pub force: bool,
    /// The message, fixed when it was approved.
    pub handoff: Option<Handoff>,
    /// Whether a turn has gone on since.
    pub(in crate::app) outdated: bool,
    /// What the trim has removed, once the copy is there.
    pub trimmed: Option<TrimRecord>,
    /// The compaction of the client's that it answers.
    pub(in crate::app) held: Option<Held>,
    /// The unsent prompt that is kept on disk while the conversation is replaced around it.
    pub(in crate::app) beside: OnDisk,
    /// Why it did not come to its end.
    pub(in crate::app) failure: Option<String>,
    /// What its timers are known by.
    pub(in crate::app) epoch: u64,
}

/// Where a reboot stands, with what belongs to that step alone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Phase {
    /// It was asked for, and waits for a moment to be drafted.
    Armed,
    /// The message is made.
    Drafting {
        /// Whether the facts that it is made of have been read.
        gathered: bool,
    },
    /// The message waits for an approval.
    Review {
        /// When `auto` goes ahead, while nothing speaks against it.
        clock: Option<Clock>,
    },
    /// What the new agent needs is made and checked.
    Preparing(Prepared),
    /// It waits for a safe moment.
    Waiting {
        /// Whether the prompt box was looked at for the last time.
        look: LastLook,
        /// How far what it holds is on its way to the disk.
        draft: OnDisk,
    },
    /// The old agent is being ended.
    Ending,
    /// The new agent is being started.
    Starting {
        /// The trimmed copy that was ordered for it.
        copying: Option<u64>,
        /// How far it is.
        agent: NewAgent,
    },
    /// The message waits for the new agent to take it.
    Delivering(NewAgent),
    /// The message is to take the place of the conversation inside the running client.
    Replacing(Replacing),
    /// The message was sent, and its arrival is awaited.
    Verifying(NewAgent),
    /// The warm-up prompt is next.
    Warming {
        /// Whether its delay is over.
        due: bool,
        /// The new agent.
        agent: NewAgent,
    },
    /// The new agent could not take over, and the old session is being resumed.
    RollingBack(Launch),
    /// The new session has taken over.
    Done,
    /// It was given up.
    Failed,
}

/// How far the last look at the prompt box is, before the session that it stands in is ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum LastLook {
    /// It is still to be had.
    #[default]
    Pending,
    /// The client's own side has this order to read it.
    Ordered(OrderId),
    /// It was had.
    Done,
}

/// A compaction in which the client waits until it is decided what is left of its conversation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Held {
    /// Which one.
    pub(in crate::app) id: CompactionId,
    /// Until when a person may answer, by the monotonic clock.
    pub(in crate::app) until: Duration,
    /// The timer that drives that.
    pub(in crate::app) epoch: u64,
    /// Whether the client was given the handoff.
    pub(in crate::app) answered: bool,
}

/// How far the replacement of the conversation is.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Replacing {
    /// The order is still to be given.
    #[default]
    Pending,
    /// The client's own side has this order.
    Ordered(OrderId),
    /// The client asks for the text at the next step of its turn.
    AwaitsStep {
        /// Because of this order.
        order: OrderId,
        /// So many calls of tools have ended since.
        calls: u32,
    },
    /// The order is being revoked.
    Revoking {
        /// Which one.
        order: OrderId,
        /// What follows if that is in time.
        then: Revoked,
    },
    /// The client has the text, and whether it is in force is to be seen.
    HandedOut {
        /// By this order; by none where the client has asked for it.
        order: Option<OrderId>,
        /// Whether that is late, and the person was notified.
        overdue: bool,
    },
    /// Nothing was changed, and why.
    Refused(String),
    /// The agent has ended, and how.
    Gone(String),
}

/// What follows once an order is revoked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Revoked {
    /// The reboot is refused: the order was not answered in time.
    Refused,
    /// It was taken back, and ends like this.
    Ends(RebootOutcome),
    /// It is armed again: the turn has ended, and what is to be done then is decided anew.
    Armed,
}

/// How far the agent of the new session is.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NewAgent {
    /// Its process.
    pub launch: Launch,
    /// Whether the handoff was seen to arrive, or the client in the trimmed session.
    pub proof: Proof,
}

/// How far the start of a process is.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Launch {
    /// It is still to be ordered.
    #[default]
    Pending,
    /// It was ordered.
    Ordered,
    /// It runs.
    Running,
    /// It could not be started, or has ended at once, and why.
    Failed(String),
}

/// Whether it was seen that the new session goes on from the old one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Proof {
    /// Not yet.
    #[default]
    Awaited,
    /// Not in time, and the person was notified.
    Overdue,
    /// It was.
    Seen,
}

impl Phase {
    /// The step, as the journal names it.
    #[must_use]
    pub const fn step(&self) -> Step {
        match self {
            Self::Armed => Step::Armed,
            Self::Drafting { .. } => Step::Drafting,
            Self::Review { .. } => Step::Review,
            Self::Preparing(_) => Step::Preparing,
            Self::Waiting { .. } => Step::Waiting,
            Self::Ending => Step::Ending,
            Self::Starting { .. } => Step::Starting,
            Self::Delivering(_) | Self::Replacing(_) => Step::Delivering,
            Self::Verifying(_) => Step::Verifying,
            Self::Warming { .. } => Step::Warming,
            Self::RollingBack(_) => Step::RollingBack,
            Self::Done => Step::Done,
            Self::Failed => Step::Failed,
        }
    }

    /// A phase that begins with the order of a process.
    pub(in crate::app) fn starting() -> Self {
        Self::Starting {
            copying: None,
            agent: NewAgent::default(),
        }
    }

    const fn agent(&self) -> Option<&NewAgent> {
        match self {
            Self::Starting { agent, .. }
            | Self::Delivering(agent)
            | Self::Verifying(agent)
            | Self::Warming { agent, .. } => Some(agent),
            _ => None,
        }
    }

    const fn agent_mut(&mut self) -> Option<&mut NewAgent> {
        match self {
            Self::Starting { agent, .. }
            | Self::Delivering(agent)
            | Self::Verifying(agent)
            | Self::Warming { agent, .. } => Some(agent),
            _ => None,
        }
    }

    /// The start of a process that belongs to this phase.
    pub(in crate::app) const fn launch_mut(&mut self) -> Option<&mut Launch> {
        match self {
            Self::RollingBack(launch) => Some(launch),
            _ => match self.agent_mut() {
                Some(agent) => Some(&mut agent.launch),
                None => None,
            },
        }
    }
}

/// Who let a reboot go ahead.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Approval {
    /// A person, here or by `ctl`: that they are at the keyboard is no reason to wait.
    Person,
    /// `auto` mode.
    Auto,
}

/// What holds a reboot back that would begin by itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Breaker {
    /// Reboots by the hour.
    #[error("{done} in the last hour (max_reboots_per_hour = {most})")]
    TooMany {
        /// How many were done in it.
        done: u32,
        /// How many may be.
        most: u32,
        /// When it is over.
        until: DateTime<Utc>,
    },
    /// The session was full when a reboot had begun it.
    #[error(
        "the last one has left {}k tokens, which is above the compact line",
        .0.0 / 1000
    )]
    BornFull(Tokens),
    /// So many sessions in a row have filled without getting anything done.
    #[error(
        "{0} sessions in a row have filled without a changed file, plan or test, a commit or a new command"
    )]
    Idle(u32),
}

impl Breaker {
    /// When it is over by itself, if that is known: others are over once the session gets something done.
    #[must_use]
    pub const fn until(self) -> Option<DateTime<Utc>> {
        match self {
            Self::TooMany { until, .. } => Some(until),
            Self::BornFull(_) | Self::Idle(_) => None,
        }
    }
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
    /// One that began by itself was refused, for this reason.
    Refused(String),
}

impl QuietReason {
    /// Why none begins for so many more turns, in words.
    #[must_use]
    pub fn in_words(&self, turns: u32) -> String {
        let why = match self {
            Self::Deferred => "deferred",
            Self::Cancelled => "cancelled",
            Self::Undone => "undone",
            Self::Refused(why) => why,
        };
        match turns {
            1 => format!("{why}, until the next turn is over"),
            turns => format!("{why}, until {turns} turns are over"),
        }
    }
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
pub struct Clock {
    /// When it does, by the monotonic clock.
    pub at: Duration,
    /// The timer that drives it.
    pub(in crate::app) epoch: u64,
}

/// How far the preparation is.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Prepared {
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
    /// The step that it is in.
    #[must_use]
    pub const fn step(&self) -> Step {
        self.phase.step()
    }

    /// Whether the old agent still lives and nothing has been done to it.
    #[must_use]
    pub const fn is_harmless(&self) -> bool {
        self.is_open()
            || matches!(
                self.phase,
                Phase::Preparing(_)
                    | Phase::Waiting { .. }
                    | Phase::Replacing(Replacing::AwaitsStep { .. })
            )
    }

    /// Whether what it is to do can still be changed.
    #[must_use]
    pub const fn is_open(&self) -> bool {
        matches!(
            self.phase,
            Phase::Armed | Phase::Drafting { .. } | Phase::Review { .. }
        )
    }

    /// When `auto` goes ahead, while nothing speaks against it.
    pub(in crate::app) const fn clock(&self) -> Option<Clock> {
        match self.phase {
            Phase::Review { clock } => clock,
            _ => None,
        }
    }

    /// Whether it began by itself.
    #[must_use]
    pub const fn is_by_itself(&self) -> bool {
        matches!(
            self.cause,
            Cause::Threshold
                | Cause::Breakpoint
                | Cause::ContextLimit
                | Cause::Autopilot
                | Cause::Compaction
                | Cause::CompactCommand
        )
    }

    /// Whether the new iteration has begun, and the old session is not being resumed instead.
    pub(in crate::app) fn has_begun(&self) -> bool {
        self.phase
            .agent()
            .is_some_and(|agent| agent.launch != Launch::Pending)
    }

    /// Whether the new agent of a reboot proper runs, and all that is missing is the proof or the warm-up prompt.
    pub(in crate::app) fn awaits_proof(&self) -> bool {
        let starting = matches!(self.phase, Phase::Starting { .. });
        let agent = self.phase.agent().filter(|_| !starting);
        agent.is_some_and(|agent| agent.launch == Launch::Running)
    }

    /// Whether the new agent has ended.
    pub(in crate::app) fn has_died(&self) -> bool {
        let agent = self.phase.agent();
        agent.is_some_and(|agent| matches!(agent.launch, Launch::Failed(_)))
    }

    /// Whether the new agent's process runs, or did.
    pub(in crate::app) fn has_spawned(&self) -> bool {
        let launch = match &self.phase {
            Phase::RollingBack(launch) => Some(launch),
            phase => phase.agent().map(|agent| &agent.launch),
        };
        matches!(launch, Some(Launch::Running | Launch::Failed(_)))
    }

    /// Whether the proof of the new session stands so.
    fn has_proof(&self, proof: Proof) -> bool {
        let agent = self.phase.agent();
        agent.is_some_and(|agent| agent.proof == proof)
    }

    /// Whether the handoff was seen to arrive, or the client in the trimmed session.
    #[must_use]
    pub fn is_proven(&self) -> bool {
        self.has_proof(Proof::Seen)
    }

    /// Whether the proof is late and the person was notified.
    #[must_use]
    pub fn is_overdue(&self) -> bool {
        let replacing = matches!(
            self.phase,
            Phase::Replacing(Replacing::HandedOut { overdue: true, .. })
        );
        replacing || self.has_proof(Proof::Overdue)
    }

    /// Its proof has come, or has not; only a new agent can bring one.
    pub(in crate::app) const fn set_proof(&mut self, proof: Proof) {
        if let Some(agent) = self.phase.agent_mut() {
            agent.proof = proof;
        } else if let Phase::Replacing(Replacing::HandedOut { overdue, .. }) = &mut self.phase {
            *overdue = matches!(proof, Proof::Overdue);
        }
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
        self.kind == Kind::Trim && self.step() == Step::Starting && self.trimmed.is_none()
    }
}
