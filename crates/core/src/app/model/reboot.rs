//! The state of a reboot, and the state that is kept between reboots.

use std::time::Duration;

use chrono::{DateTime, Utc};

use crate::{
    app::event::NewIds,
    config::RebootMode,
    guard::Level,
    lineage::{Cause, IterationId, TrimRecord, Way, journal::Step},
};
use pitstop_agent::bridge::{OrderId, QuestionId};
use pitstop_base::clock::At;
use pitstop_handoff::Handoff;
use pitstop_transcript::{SessionId, Tokens};

use super::{
    attempt::AttemptEvent,
    ending::Ending,
    progress::Progress,
    trim::{Offer, Preview},
    unsent::{OnDisk, Waiting},
};

/// The time in which only so many reboots begin by themselves.
const HOUR: Duration = Duration::from_hours(1);

/// The outcome of a reboot.
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
    /// It had begun by itself and was no longer due.
    Withdrawn,
}

/// The reboot under way, and the state that is kept between reboots.
#[derive(Debug, Default)]
pub struct Reboot {
    /// The mode that sets who decides when to reboot.
    pub mode: RebootMode,
    /// True if automatic reboots are paused.
    pub paused: bool,
    /// Random values for the next reboot.
    pub new_ids: NewIds,
    /// The unsent prompt of the previous session, until it is in this one's prompt box.
    pub unsent: Option<Waiting>,
    /// A finished reboot in place, and the unsent prompt that is kept on disk until the reboot's end is on disk too.
    pub(super) beside: Option<(uuid::Uuid, OnDisk)>,
    /// The progress of ending the agent, if it is being ended.
    pub ending: Option<Ending>,
    /// The reboot under way.
    pub attempt: Option<Attempt>,
    /// The agent's request for a reboot, until it is answered.
    pub wish: Option<Wish>,
    /// The time in which no reboot begins by itself, if there is one now.
    pub quiet: Option<Quiet>,
    /// The work that the sessions of this run have got done, for the breaker.
    pub(in crate::app) progress: Progress,
    /// The breaker that holds back a reboot that is due, while it does so.
    pub held_by: Option<Breaker>,
    /// The times at which the latest reboots were done, for the breaker.
    pub(in crate::app) done: Vec<At>,
    /// The reason why the last reboot failed.
    pub failure: Option<String>,
    /// The reason why the last reboot was refused before it began, until something has changed.
    pub refused: Option<String>,
    /// The level at which a person was last called to a reboot of this session.
    pub(in crate::app) called: Option<Level>,
}

/// The agent's request for a reboot.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Wish {
    /// The session of the agent that asks.
    pub session: SessionId,
    /// The agent's reason; empty if it gave none.
    pub reason: String,
}

impl Reboot {
    /// Creates the state in which no reboot is under way and none has been.
    pub(super) fn new(mode: RebootMode, new_ids: NewIds) -> Self {
        Self {
            mode,
            new_ids,
            ..Self::default()
        }
    }

    /// Reports whether a reboot is under way for which this is true.
    pub(in crate::app) fn has_attempt(&self, is: impl FnOnce(&Attempt) -> bool) -> bool {
        self.attempt.as_ref().is_some_and(is)
    }

    /// Returns the client's compaction that the reboot under way answers, or has answered.
    pub(in crate::app) fn held(&self) -> Option<&Held> {
        self.attempt.as_ref()?.held.as_ref()
    }

    /// Returns the step of the reboot under way.
    pub(in crate::app) fn step(&self) -> Option<Step> {
        self.attempt.as_ref().map(Attempt::step)
    }

    /// Returns the step of the reboot under way, unless the next one may begin because only the warm-up prompt is missing.
    pub(in crate::app) fn busy_step(&self) -> Option<Step> {
        self.step().filter(|step| *step != Step::Warming)
    }

    /// Returns the preview of a trim, while the reboot has not been approved.
    pub(in crate::app) fn open_preview(&mut self) -> Option<&mut Preview> {
        let attempt = self.attempt.as_mut()?;
        (attempt.is_open() && attempt.kind.is_reboot()).then_some(&mut attempt.preview)
    }

    /// Forgets what kept reboots from beginning and what a person was called for, since that was about the previous session.
    pub(in crate::app) fn leave_session(&mut self) {
        self.let_begin();
        self.called = None;
    }

    /// Lets no reboot begin by itself for this time. Once one that a person has put off is due again it is shown again.
    pub(in crate::app) fn be_quiet(&mut self, quiet: Quiet) {
        if quiet.reason == QuietReason::Deferred {
            self.refused = None;
            self.called = None;
        }
        self.quiet = Some(quiet);
    }

    /// Notes what holds a reboot back, or that nothing does any more. Returns the breaker if it is of another kind than before.
    pub(in crate::app) fn hold_back(&mut self, breaker: Option<Breaker>) -> Option<Breaker> {
        let kind = |breaker: Breaker| std::mem::discriminant(&breaker);
        let before = self.held_by.map(kind);
        self.held_by = breaker;
        breaker.filter(|one| before != Some(kind(*one)))
    }

    /// Notes that a reboot was done now. Those of more than an hour ago are forgotten.
    pub(super) fn note_done(&mut self, now: At) {
        self.done.retain(|done| now.whole_time_since(*done) < HOUR);
        self.done.push(now);
    }

    /// Returns the breaker that allows so many reboots in an hour, if there were as many.
    pub(in crate::app) fn too_many(&self, most: u32, now: At) -> Option<Breaker> {
        let is_recent = |done: &&At| now.whole_time_since(**done) < HOUR;
        let mut recent = self.done.iter().filter(is_recent);
        let done = u32::try_from(recent.clone().count()).unwrap_or(u32::MAX);
        // Past the force line, and by a person, more are done than are allowed.
        let beyond = done.checked_sub(most)?;
        let until = recent.nth(beyond as usize)?.wall + HOUR;
        Some(Breaker::TooMany { done, most, until })
    }

    /// Lets reboots begin by themselves again, whatever has put them off.
    fn let_begin(&mut self) {
        self.quiet = None;
        self.refused = None;
    }

    /// Takes in who decides, by the configuration or because an autonomous run has begun.
    pub(in crate::app) const fn set_mode(&mut self, mode: RebootMode) {
        self.mode = mode;
    }

    /// Notes that the agent of this session asks for a reboot.
    pub(in crate::app) fn agent_asked(&mut self, session: SessionId, reason: String) {
        self.wish = Some(Wish { session, reason });
    }

    /// Notes that the agent's process runs, with random values for the next reboot.
    pub(in crate::app) fn agent_started(&mut self, new_ids: NewIds) {
        self.new_ids = new_ids;
        self.on(AttemptEvent::Spawned);
    }

    /// Notes that the agent's process has ended. Returns whether it was being ended.
    pub(in crate::app) const fn process_ended(&mut self) -> bool {
        self.ending.take().is_some()
    }

    /// Goes over to the next mode: manual → ask → auto → manual. A change of who decides counts from now on.
    pub(in crate::app) fn go_to_next_mode(&mut self) {
        self.mode = match self.mode {
            RebootMode::Manual => RebootMode::Ask,
            RebootMode::Ask => RebootMode::Auto,
            RebootMode::Auto => RebootMode::Manual,
        };
        self.let_begin();
    }

    /// Lets no reboot begin by itself until that is taken back.
    pub(in crate::app) const fn pause(&mut self) {
        self.paused = true;
    }

    /// Takes a pause back.
    pub(in crate::app) const fn resume(&mut self) {
        self.paused = false;
    }

    /// Notes that a person is called to a reboot at this level. Returns false if they were for this session.
    pub(in crate::app) fn call_person(&mut self, level: Level) -> bool {
        let is_new = self.called < Some(level);
        if is_new {
            self.called = Some(level);
        }
        is_new
    }
}

/// The origin of the next iteration.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A new session with the handoff.
    Fresh,
    /// The same session, whose conversation is replaced by the handoff inside the running client.
    InPlace,
    /// Like `InPlace`, but between two steps of a turn, which goes on.
    OnTheFly,
    /// A trimmed copy of the session, resumed.
    Trim,
    /// The session before the last reboot, resumed, with the iteration that the next one descends from.
    Undo(SessionId, Option<IterationId>),
    /// The same session, resumed after its process died.
    Restart,
}

impl Kind {
    /// Reports whether it is a reboot proper, which is journaled and recorded.
    pub const fn is_reboot(self) -> bool {
        matches!(
            self,
            Self::Fresh | Self::InPlace | Self::OnTheFly | Self::Trim
        )
    }

    /// Reports whether the conversation is replaced inside the running client: process, session and prompt box stay.
    pub const fn replaces(self) -> bool {
        matches!(self, Self::InPlace | Self::OnTheFly)
    }

    /// Returns the way in which the context is handed over.
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
    /// The session whose transcript holds it.
    pub session: SessionId,
    /// The nonce of the handoff that has taken its place.
    pub nonce: String,
}

/// One reboot from its trigger to its end.
#[derive(Clone, Debug)]
pub struct Attempt {
    /// Its id in the journal.
    pub id: uuid::Uuid,
    /// The origin of the next iteration.
    pub kind: Kind,
    /// True if a person or a script has chosen the kind.
    pub(in crate::app) is_chosen: bool,
    /// The cause of the reboot.
    pub cause: Cause,
    /// The phase that it is in.
    pub phase: Phase,
    /// True if the phase's step is on disk: until then nothing follows from it, in any phase.
    pub(in crate::app) journaled: bool,
    /// The times at which the steps were entered.
    pub entered: Vec<(Step, At)>,
    /// The iteration that ends.
    pub(in crate::app) from: IterationId,
    /// The session that ends.
    pub old: SessionId,
    /// The session that begins.
    pub new: SessionId,
    /// The conversation that the resumed session is a copy of, if it had been replaced in place.
    pub replaced: Option<Replaced>,
    /// The number of tokens in use when it was begun.
    pub used: Option<Tokens>,
    /// The preview of a trim, while the review is open.
    pub preview: Preview,
    /// The approval to go on, and its source. It may come before the drafting, and until the old agent ends it decides what counts
    /// as an obstacle.
    pub approved: Option<Approval>,
    /// The device by which a person approved it, if it was not at the desk.
    pub approved_from: Option<String>,
    /// True if the running turn has to be interrupted. This is decided before or in the phase that waits; a reboot in place reads it
    /// in the following phase.
    pub force: bool,
    /// The message, fixed when it was approved.
    pub handoff: Option<Handoff>,
    /// True if a turn has gone on since the message was fixed.
    pub(in crate::app) outdated: bool,
    /// True if the session has gone on, with another prompt or to the end of a turn, since the message was sent.
    pub(in crate::app) passed_over: bool,
    /// The record of what the trim has removed, once the copy exists.
    pub trimmed: Option<TrimRecord>,
    /// The client's compaction that it answers.
    pub(in crate::app) held: Option<Held>,
    /// The unsent prompt that is kept on disk while the conversation is replaced around it.
    pub(in crate::app) beside: OnDisk,
    /// The reason why it did not complete.
    pub(in crate::app) failure: Option<String>,
    /// The epoch of its timers and of its preparation.
    pub epoch: u64,
}

/// The phase of a reboot, with the data that belongs to that phase alone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Phase {
    /// It was requested, and waits for a moment to be drafted.
    Armed,
    /// The message is being made.
    Drafting {
        /// True if the facts that it is made of have been read.
        gathered: bool,
    },
    /// The message waits for an approval.
    Review {
        /// The time at which `auto` goes ahead, while nothing prevents it.
        clock: Option<Clock>,
    },
    /// The things that the new agent needs are being made and checked.
    Preparing(Prepared),
    /// It waits for a safe moment.
    Waiting {
        /// The progress of the last look at the prompt box.
        look: LastLook,
        /// The progress of writing the prompt box's text to disk.
        draft: OnDisk,
    },
    /// The old agent is being ended.
    Ending,
    /// The new agent is being started.
    Starting {
        /// True if the trimmed copy that it resumes was ordered.
        copying: bool,
        /// The progress of the new agent.
        agent: NewAgent,
    },
    /// The message waits for the new agent to take it.
    Delivering(NewAgent),
    /// The message is replacing the conversation inside the running client.
    Replacing(Replacing),
    /// The message was sent, and its arrival is awaited.
    Verifying(NewAgent),
    /// The warm-up prompt is next.
    Warming {
        /// True if its delay is over.
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

/// The progress of the last look at the prompt box before its session is ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum LastLook {
    /// The look has not been ordered yet.
    #[default]
    Pending,
    /// The client's own side has this order to read the prompt box.
    Ordered(OrderId),
    /// The look is done.
    Done,
}

/// A compaction in which the client waits for the decision on what is left of its conversation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Held {
    /// The id of the compaction.
    pub(in crate::app) id: QuestionId,
    /// The time since which it is held, by the monotonic clock.
    pub(in crate::app) since: Duration,
    /// The time until which a person may answer, by the monotonic clock.
    pub(in crate::app) until: Duration,
    /// The epoch of the timer that enforces that time limit.
    pub(in crate::app) epoch: u64,
    /// True if the client was given the handoff.
    pub(in crate::app) answered: bool,
}

/// The progress of replacing the conversation.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Replacing {
    /// The order is still to be given.
    #[default]
    Pending,
    /// The client's own side has this order.
    Ordered(OrderId),
    /// The client has to ask for the text at the next step of its turn.
    AwaitsStep {
        /// The order that makes it ask.
        order: OrderId,
        /// The number of tool calls that have ended since.
        calls: u32,
    },
    /// The order is being revoked.
    Revoking {
        /// The order that is being revoked.
        order: OrderId,
        /// The consequence if the revocation is in time.
        then: Revoked,
    },
    /// The client has the text, and the sign that it is in force is awaited.
    HandedOut {
        /// The order by which the client got it; none if the client has asked for it.
        order: Option<OrderId>,
        /// True if the sign is late and the person was notified.
        overdue: bool,
    },
    /// The replacement was refused and nothing was changed, for this reason.
    Refused(String),
    /// The agent has ended in this way.
    Gone(String),
}

/// The consequence of a revoked order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Revoked {
    /// The reboot is refused: the order was not answered in time.
    Refused,
    /// The reboot was taken back and ends with this outcome.
    Ends(RebootOutcome),
    /// The reboot is armed again, since the turn has ended and the next action is decided again.
    Armed,
}

/// The progress of the new session's agent.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NewAgent {
    /// The progress of starting its process.
    pub launch: Launch,
    /// The proof that the handoff has arrived, or that the client is in the trimmed session.
    pub proof: Proof,
    /// True if its process was started with the handoff as its prompt.
    pub given: bool,
}

/// The progress of starting a process.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Launch {
    /// The start has not been ordered yet.
    #[default]
    Pending,
    /// The start was ordered.
    Ordered,
    /// The process runs.
    Running,
    /// The process could not be started or has ended at once, for this reason.
    Failed(String),
}

/// The proof that the new session continues the old one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Proof {
    /// The proof has not come yet.
    #[default]
    Awaited,
    /// The proof is late, and the person was notified.
    Overdue,
    /// The proof has come.
    Seen,
}

impl Phase {
    /// Returns the step, as the journal names it.
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

    /// Creates the phase that begins with ordering a process.
    pub(in crate::app) fn starting() -> Self {
        Self::Starting {
            copying: false,
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

    pub(super) const fn agent_mut(&mut self) -> Option<&mut NewAgent> {
        match self {
            Self::Starting { agent, .. }
            | Self::Delivering(agent)
            | Self::Verifying(agent)
            | Self::Warming { agent, .. } => Some(agent),
            _ => None,
        }
    }
}

/// The source of the approval of a reboot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Approval {
    /// A person, here or by `ctl`; their being at the keyboard is no reason to wait.
    Person,
    /// `auto` mode.
    Auto,
}

/// A breaker that holds back a reboot that would begin by itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Breaker {
    /// Too many reboots were done in the last hour.
    #[error("{done} in the last hour (max_reboots_per_hour = {most})")]
    TooMany {
        /// The number of reboots done in that hour.
        done: u32,
        /// The number of reboots allowed per hour.
        most: u32,
        /// The time at which the breaker ends.
        until: DateTime<Utc>,
    },
    /// The session was full when a reboot had begun it, with this number of tokens.
    #[error(
        "the last one has left {}k tokens, which is above the compact line",
        .0.0 / 1000
    )]
    BornFull(Tokens),
    /// This number of sessions in a row have filled without getting anything done.
    #[error(
        "{0} sessions in a row have filled without a changed file, plan or test, a commit or a new command"
    )]
    Idle(u32),
    /// The service takes no prompt now, that of a fresh session neither.
    #[error("{0}, and a fresh session could not begin")]
    NoService(&'static str),
}

impl Breaker {
    /// Returns in words what is held back and why; in `ask` mode no reboot goes ahead by itself.
    pub fn in_words(self, mode: RebootMode) -> String {
        match mode {
            RebootMode::Ask => format!("no reboot is advised: {self}"),
            RebootMode::Auto | RebootMode::Manual => format!("no automatic reboot: {self}"),
        }
    }

    /// Returns the time at which the breaker ends by itself, if it is known: others end once the session gets something done.
    pub const fn until(self) -> Option<DateTime<Utc>> {
        match self {
            Self::TooMany { until, .. } => Some(until),
            Self::BornFull(_) | Self::Idle(_) | Self::NoService(_) => None,
        }
    }
}

/// The reason why no reboot begins by itself for now.
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
    /// Returns in words why no reboot begins for this number of turns more.
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
    /// The reason for the quiet time.
    pub reason: QuietReason,
    /// The number of ended turns of the iteration at which the quiet time is over.
    pub until_turn: u32,
    /// True if the context was past the force line when the quiet time began. If it was not, that line ends the quiet time.
    pub(in crate::app) forced: bool,
}

/// The time after which `auto` goes ahead.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Clock {
    /// The time at which `auto` goes ahead, by the monotonic clock.
    pub at: Duration,
    /// The epoch of the timer that makes it go ahead.
    pub(in crate::app) epoch: u64,
}

/// The progress of the preparation.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Prepared {
    /// The preparation has not begun.
    #[default]
    Nothing,
    /// The preparation is under way.
    Ordered,
    /// Everything is there.
    Ready,
    /// Something is missing.
    Refused(String),
}

impl Attempt {
    /// Returns the step that it is in.
    pub const fn step(&self) -> Step {
        self.phase.step()
    }

    /// Reports whether the old agent still lives and nothing has been done to it.
    pub const fn is_harmless(&self) -> bool {
        self.is_open()
            || matches!(
                self.phase,
                Phase::Preparing(_)
                    | Phase::Waiting { .. }
                    | Phase::Replacing(Replacing::AwaitsStep { .. })
            )
    }

    /// Reports whether the plan of the reboot can still be changed.
    pub const fn is_open(&self) -> bool {
        matches!(
            self.phase,
            Phase::Armed | Phase::Drafting { .. } | Phase::Review { .. }
        )
    }

    /// Returns the time at which `auto` goes ahead, while nothing prevents it.
    pub(in crate::app) const fn clock(&self) -> Option<Clock> {
        match self.phase {
            Phase::Review { clock } => clock,
            _ => None,
        }
    }

    /// Returns the order by which the client is to ask at its next step, while it has not.
    pub(in crate::app) const fn awaited_order(&self) -> Option<OrderId> {
        match self.phase {
            Phase::Replacing(Replacing::AwaitsStep { order, .. }) => Some(order),
            _ => None,
        }
    }

    /// Reports whether `auto` has approved it.
    pub(in crate::app) fn is_by_auto(&self) -> bool {
        self.approved == Some(Approval::Auto)
    }

    /// Reports whether a person has approved it.
    pub(in crate::app) fn is_by_person(&self) -> bool {
        self.approved == Some(Approval::Person)
    }

    /// Reports whether its way may still be fitted to what the agent does: it began by itself, and no one has chosen a way.
    pub(in crate::app) const fn may_change_way(&self) -> bool {
        self.is_open()
            && self.is_by_itself()
            && self.approved.is_none()
            && self.held.is_none()
            && !self.is_chosen
    }

    /// Reports whether it began by itself.
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

    /// Reports whether the new iteration has begun, and the old session is not being resumed instead.
    pub(in crate::app) fn has_begun(&self) -> bool {
        self.phase
            .agent()
            .is_some_and(|agent| agent.launch != Launch::Pending)
    }

    /// Reports whether the new agent of a reboot proper runs, and only the proof or the warm-up prompt is missing.
    pub(in crate::app) fn awaits_proof(&self) -> bool {
        let starting = matches!(self.phase, Phase::Starting { .. });
        let agent = self.phase.agent().filter(|_| !starting);
        agent.is_some_and(|agent| agent.launch == Launch::Running)
    }

    /// Reports whether the new agent has ended.
    pub(in crate::app) fn has_died(&self) -> bool {
        let agent = self.phase.agent();
        agent.is_some_and(|agent| matches!(agent.launch, Launch::Failed(_)))
    }

    /// Reports whether only the warm-up prompt is missing, which the next reboot does not wait for.
    pub const fn is_warming(&self) -> bool {
        matches!(self.phase, Phase::Warming { .. })
    }

    /// Reports whether the prompt box does not show what a person wants: it is between two agents, or the conversation is replaced
    /// around it.
    pub(in crate::app) fn hides_prompt_box(&self) -> bool {
        !self.is_harmless() && (self.kind.replaces() || !self.awaits_proof())
    }

    /// Reports whether the proof of the new session has this state.
    fn has_proof(&self, proof: Proof) -> bool {
        let agent = self.phase.agent();
        agent.is_some_and(|agent| agent.proof == proof)
    }

    /// Reports whether the handoff was seen to arrive, or the client was seen in the trimmed session.
    pub fn is_proven(&self) -> bool {
        self.has_proof(Proof::Seen)
    }

    /// Reports whether the proof is late and the person was notified.
    pub fn is_overdue(&self) -> bool {
        let replacing = matches!(
            self.phase,
            Phase::Replacing(Replacing::HandedOut { overdue: true, .. })
        );
        replacing || self.has_proof(Proof::Overdue)
    }

    /// Reports whether the proof is late and the session has gone on without it.
    pub(in crate::app) fn is_passed_over(&self) -> bool {
        self.passed_over && self.is_overdue()
    }

    /// Sets the state of the proof, in a phase that has one: with a new agent, or with the text handed out to the running client.
    pub(in crate::app) const fn set_proof(&mut self, proof: Proof) {
        if let Some(agent) = self.phase.agent_mut() {
            agent.proof = proof;
        } else if let Phase::Replacing(Replacing::HandedOut { overdue, .. }) = &mut self.phase {
            *overdue = matches!(proof, Proof::Overdue);
        }
    }

    /// Returns the record of what the trim has removed, or would remove by the latest survey.
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

    /// Reports whether the trimmed copy is being written.
    pub fn is_copying(&self) -> bool {
        self.kind == Kind::Trim && self.step() == Step::Starting && self.trimmed.is_none()
    }
}
