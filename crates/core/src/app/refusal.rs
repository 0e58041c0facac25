//! The reasons that something that a person, a script, the agent or a rule asked for is not done, in words for the one who asked.

use super::{
    facts::Block,
    model::{notes::NotesFull, reboot::Breaker, trim::NotOffered},
};
use crate::{autopilot::QueueFull, lineage::journal::Step};

/// The reason that an order is refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// Another reboot has come this far.
    #[error("a reboot is under way: {0}")]
    UnderWay(Step),
    /// The last order is carried out.
    #[error("pitstop is quitting")]
    Quitting,
    /// Another reboot would not help.
    #[error("no automatic reboot: {0}")]
    NoAutomatic(Breaker),
    /// The conversation cannot be replaced in place, for this reason.
    #[error("no reboot in place: {0}")]
    NotInPlace(String),
    /// The conversation cannot be replaced within a turn, for this reason.
    #[error("no reboot on the fly: {0}")]
    NotOnTheFly(String),
    /// The same as [`Self::NotInPlace`], in the review, where another way can be taken.
    #[error("no reboot in place: {0}; w takes another way")]
    NotInPlaceNow(String),
    /// The same as [`Self::NotInPlace`], while the client waits in a compaction.
    #[error("the compaction cannot be answered: {0}")]
    Unanswerable(String),
    /// The client waits in a compaction, and another way was chosen.
    #[error("the client waits in a compaction, which only a reboot in place answers")]
    OnlyInPlace,
    /// A compaction is left to the client, for this reason.
    #[error("{0}")]
    LeftToClient(&'static str),
    /// A trim is asked for with a program that has no trim.
    #[error("{}", NotOffered::Generic)]
    NoTranscripts,
    /// A trim cannot be chosen.
    #[error("trim is not offered: {0}")]
    TrimNotOffered(NotOffered),
    /// A trim was chosen, and cannot be approved.
    #[error("no trim: {0}; t takes the handoff instead")]
    NoTrim(NotOffered),
    /// The same as [`Self::NoTrim`], but it soon may be.
    #[error("the transcript is still being read: once more")]
    TrimUnknown,
    /// The way is to be chosen for a reboot that is not there.
    #[error("no reboot is under review")]
    NoReview,
    /// The way is to be chosen for a reboot that has come this far.
    #[error("the way is settled: {0}")]
    WaySettled(Step),
    /// There is nothing to approve.
    #[error("no reboot waits for an approval: `pitstop ctl reboot` begins one")]
    NothingToApprove,
    /// The reboot has come this far.
    #[error("the reboot has been approved: {0}")]
    Approved(Step),
    /// The countdown of `auto` cannot be seen.
    #[error("an editor has the terminal")]
    EditorOpen,
    /// The text that is to be sent is being written.
    #[error("the handoff is open in $EDITOR: save and leave it first")]
    HandoffOpen,
    /// The reboot has come this far.
    #[error("too late to cancel: {0}")]
    TooLate(Step),
    /// There is nothing to cancel.
    #[error("no reboot to cancel")]
    NothingToCancel,
    /// There is nothing to undo.
    #[error("nothing to undo: this iteration was not begun by a reboot")]
    NothingToUndo,
    /// An earlier session is to be resumed with a program that has no sessions.
    #[error("this agent has no sessions to resume")]
    NoSessions,
    /// The session that is to be resumed runs.
    #[error("this is the present session")]
    PresentSession,
    /// The permission that is answered is not open any more.
    #[error("no permission of that number waits: it may have been answered at the desk")]
    NoPermission,
    /// The permission cannot be answered from afar.
    #[error("it can be answered at the desk only")]
    AtTheDesk,
    /// The handoff is not the one that was read.
    #[error("the handoff has changed since you have read it: read it again")]
    OtherRevision,
    /// The handoff is being edited by the person at the desk.
    #[error("the handoff is being edited at the desk")]
    EditedAtTheDesk,
    /// There is no run.
    #[error("no autonomous run")]
    NoRun,
    /// The run has ended.
    #[error("the run is over")]
    RunOver,
    /// The run would type into a text of the human's.
    #[error("the agent's prompt holds text of yours: submit it or clear it (Ctrl-C), then resume")]
    HumansText,
    /// The queue is full: no more texts may wait.
    #[error(transparent)]
    QueueFull(#[from] QueueFull),
    /// A text is to be typed, and this is in the way: what it is, in more words if they are known.
    #[error("not a safe moment: {}", .1.clone().unwrap_or_else(|| format!("wait {}", .0.awaited())))]
    NotSafe(Block, Option<String>),
    /// A text is to be typed, and the prompt takes none, for this reason.
    #[error("{0}")]
    NotTyped(&'static str),
    /// A tool was called by an agent of an earlier session.
    #[error("this session has been left for another one: nothing was kept")]
    SessionLeft,
    /// The agent's note does not fit into the scratchpad.
    #[error(transparent)]
    NotesFull(#[from] NotesFull),
}
