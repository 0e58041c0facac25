//! What follows from the state of a reboot: the words in which the rules decide, and in which [`steps`](super::steps) carries it out.

use std::time::Duration;

use crate::{
    app::{
        draft::summary::SummaryEvent,
        effect::Effect,
        model::{
            attempt::AttemptEvent,
            event_scratch::NoReboot,
            reboot::{Approval, Attempt, Breaker, Kind, Phase, QuietReason, RebootOutcome},
            trim::SurveyEvent,
            unsent::{OnDisk, Waiting},
        },
        reboot::submit::Then,
    },
    lineage::{Cause, EndReason, IterationId, RebootRecord},
};
use pitstop_agent::bridge::{BridgeOrder, QuestionId};
use pitstop_transcript::SessionId;

/// The interval at which the time that is left is shown again.
pub(super) const TICK: Duration = Duration::from_secs(1);

/// What follows in the phase that a reboot is in.
pub(super) enum Next {
    /// This attempt begins; no phase of it is entered yet.
    Begin(Box<Attempt>),
    /// The next phase begins.
    Enter(Phase),
    /// The phase goes on like this, with an order to the shell.
    GoOn(Phase, Option<Effect>),
    /// The reboot takes this in.
    Note(AttemptEvent<'static>),
    /// Another way is taken, because it cannot be done in place for this reason, and this phase begins.
    Change(Kind, Option<String>, Option<Phase>),
    /// The clock starts by which `auto` announces it for this time.
    StartClock(Duration),
    /// `auto` approves it.
    GoAhead {
        /// True if the client goes on in its own way where it cannot be approved.
        or_leave_client: bool,
    },
    /// The reboot ends.
    End(End),
    /// This is done with the agent.
    Agent(AgentAct),
    /// The rest of the model does this.
    Do(Act),
    /// These follow one after the other.
    All(Vec<Next>),
}

/// What a reboot does with the agent, old or new.
pub(super) enum AgentAct {
    /// The prompt box is read once more.
    LookAtDraft,
    /// The client's own side gets this order to replace the conversation.
    Replace(BridgeOrder),
    /// The reboot answers this compaction of the client's, which has begun for this cause.
    Hold(Cause, QuestionId),
    /// A client that waits in a compaction goes on in its own way.
    LetGo,
    /// The old agent is ended.
    End,
    /// The next iteration begins, and its process is started.
    Start(Box<NewProcess>),
    /// The next iteration begins inside the running client, for this cause and with this text.
    GoOn(Cause, Option<String>),
    /// The warm-up prompt is given.
    WarmUp(String),
    /// This command is typed, which begins the turn after the handoff.
    TypeCommand(String),
    /// This text is put into the prompt box, and this is done with it there.
    Give(String, Then),
    /// The prompt that is being typed is left as it is.
    AbandonPrompt,
    /// No order for the middle of a turn is given to this process again, for this reason.
    LeaveUnanswered(&'static str),
    /// The client sets its trigger back.
    RestoreTrigger,
}

/// What a reboot demands of the rest of the model.
pub(super) enum Act {
    /// The shell carries this out.
    Emit(Effect),
    /// This is written to the message log.
    Log(String),
    /// The person at the keyboard is shown this notice.
    Info(String),
    /// The person at the keyboard is shown this error.
    Error(String),
    /// The person at the keyboard is shown the review.
    OpenReview,
    /// The review is closed.
    CloseReview,
    /// The message is the one that is shown: the text that was on the screen is the text that is sent.
    FixMessage(Approval),
    /// The summary in the handoff takes this in.
    Summary(SummaryEvent),
    /// The agent's request for a reboot is dismissed.
    DismissWish,
    /// The card of the last reboot is answered.
    AnswerCard,
    /// The preview of a trim takes this in.
    Survey(SurveyEvent),
    /// A run is held by this wish of a person's.
    HoldRun(&'static str),
    /// A run stops, because a reboot that was due did not begin.
    StopRun(NoReboot),
    /// No reboot begins by itself until so many turns have ended, for this reason.
    BeQuiet(u32, QuietReason),
    /// This breaker holds reboots back, or none does.
    HoldBack(Option<Breaker>),
    /// The good moment is taken up.
    TakeGoodMoment,
    /// The handoff is made again, where no one has read it or a turn has gone on since the approval, by up to some hundred steps: it
    /// would name steps as under way that are done. A message that a person has edited is left as it is.
    DraftAgain,
    /// The unsent prompt is this one, which is put back later, or none.
    KeepUnsent(Option<Waiting>),
    /// This was kept on disk of the prompt box when the agent ended while its conversation was replaced.
    Outlive(OnDisk),
    /// This record is for the present iteration.
    Record(Box<RebootRecord>),
    /// The present iteration is written to disk.
    SaveIteration,
    /// The present iteration ends for this reason.
    CloseIteration(EndReason),
    /// The reboot was refused for this reason.
    NoteRefusal(String),
}

/// The process of an iteration.
pub(super) struct NewProcess {
    pub(super) session: SessionId,
    pub(super) cause: Option<Cause>,
    /// The iteration that it descends from.
    pub(super) parent: Option<IterationId>,
    /// True if the session exists already.
    pub(super) resume: bool,
    /// The session that it is a copy of.
    pub(super) copy_of: Option<SessionId>,
    /// The session whose carried state comes back.
    pub(super) back_in: Option<SessionId>,
    /// Its first prompt.
    pub(super) prompt: Option<String>,
    /// The handoff that begins the iteration.
    pub(super) handoff: Option<String>,
}

/// The way in which a reboot ends.
pub(super) enum End {
    /// It has gone well.
    Finished {
        /// True if the warm-up prompt was given.
        warmed_up: bool,
    },
    /// It is refused for this reason before anything was done to the old agent.
    Refused(String),
    /// It has begun nothing that is recorded, and its process could not be started for this reason.
    NotStarted(String),
    /// The new agent could not take over, and the old session is resumed.
    RolledBack,
    /// As `RolledBack`, but resuming the old session has failed for this reason.
    NotResumed(String),
    /// It was taken back with this outcome before the client asked.
    TakenBack(RebootOutcome),
    /// The client goes on with its compaction, which a notice may tell.
    LeftToClient(Option<&'static str>),
    /// It has this outcome, with a reason where the outcome does not tell enough.
    Unfinished(RebootOutcome, Option<String>),
}
