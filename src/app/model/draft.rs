//! What the handoff is made of, and the handoff.

use crate::{
    api::wire::Reply,
    app::event::{CallId, HandoffFiles},
    breakpoint::git::GitState,
    handoff::{Generator, Marker, PreservedState},
    lineage::checkpoint::LastError,
    transcript::work::WorkAtHand,
};

use super::{
    carried::Keeping,
    moments::Moments,
    panels::{HandoffPanel, NotesPanel},
    requests::Requests,
    rewinds::Rewinds,
    seen_signals::SeenSignals,
    summaries::Summaries,
    todo::TodoList,
};

/// What the handoff is made of, and the handoff.
#[derive(Debug)]
pub struct Draft {
    /// The scratchpad panel.
    pub notes: NotesPanel,
    /// The epoch of the timer that writes the scratchpad.
    pub save_epoch: u64,
    /// The handoff panel.
    pub handoff: HandoffPanel,
    /// What its message was made of last, as a number.
    pub(in crate::app) made_of: Option<u64>,
    /// Makes handoffs.
    pub generator: Generator,
    /// Git.
    pub git: GitState,
    /// The files that the handoff names and includes.
    pub handoff_files: HandoffFiles,
    /// The last shell commands, as the handoff shows them.
    pub commands: Vec<String>,
    /// The agent's own to-do list.
    pub todo: TodoList,
    /// Which signals were read where.
    pub seen_signals: SeenSignals,
    /// What was preserved before each prompt of the session.
    pub rewinds: Rewinds,
    /// The human's first and latest request.
    pub requests: Requests,
    /// The work at hand, as the transcript shows it.
    pub work: WorkAtHand,
    /// What the agent's signals said in this run.
    pub signalled: PreservedState,
    /// What a person has had forgotten in this session, to be undone.
    pub(in crate::app) cleared: Option<Box<(PreservedState, TodoList)>>,
    /// The last error.
    pub(in crate::app) last_error: Option<LastError>,
    /// The preserved facts as of the last drafting.
    pub preserved: PreservedState,
    /// The summary of the session.
    pub summary: Summaries,
    /// Commits and test runs, and whether now is a good moment.
    pub moments: Moments,
    /// What the session carries of its lineage, on its way to disk.
    pub keeping: Keeping,
    /// Checkpoints on their way to disk that a caller waits for, with what to answer.
    pub saves: Vec<(uuid::Uuid, CallId, Reply)>,
}

impl Draft {
    /// A draft that says nothing yet, beside the scratchpad on disk.
    pub(super) fn new(marker: Marker, notes: String, generator: Generator) -> Self {
        Self {
            notes: NotesPanel::of(notes),
            save_epoch: 0,
            handoff: HandoffPanel::empty(marker),
            made_of: None,
            generator,
            git: GitState::NoRepository,
            handoff_files: HandoffFiles::default(),
            commands: Vec::new(),
            todo: TodoList::default(),
            seen_signals: SeenSignals::default(),
            rewinds: Rewinds::default(),
            requests: Requests::default(),
            work: WorkAtHand::default(),
            signalled: PreservedState::default(),
            cleared: None,
            last_error: None,
            preserved: PreservedState::default(),
            summary: Summaries::default(),
            moments: Moments::default(),
            keeping: Keeping::default(),
            saves: Vec::new(),
        }
    }
}
