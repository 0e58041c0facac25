//! The facts that the handoff is made of, and the handoff.

use crate::{
    api::wire::Reply,
    app::event::{CallId, HandoffFiles},
    lineage::checkpoint::LastError,
};
use pitstop_handoff::{Generator, Marker, PreservedState, breakpoint::git::GitState};
use pitstop_transcript::work::WorkAtHand;

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

/// The facts that the handoff is made of, and the handoff.
#[derive(Debug)]
pub struct HandoffDraft {
    /// The scratchpad panel.
    pub notes: NotesPanel,
    /// The epoch of the timer that writes the scratchpad.
    pub save_epoch: u64,
    /// The handoff panel.
    pub handoff: HandoffPanel,
    /// A hash of the facts that its message was last made of.
    pub(in crate::app) made_of: Option<u64>,
    /// The generator of handoffs.
    pub generator: Generator,
    /// The state of the git repository.
    pub git: GitState,
    /// The files that the handoff names and includes.
    pub handoff_files: HandoffFiles,
    /// The last shell commands, as the handoff shows them.
    pub commands: Vec<String>,
    /// The agent's own to-do list.
    pub todo: TodoList,
    /// The signals that were read from each source.
    pub seen_signals: SeenSignals,
    /// The facts that were preserved before each prompt of the session.
    pub rewinds: Rewinds,
    /// The human's first and latest request.
    pub requests: Requests,
    /// The work at hand, as the transcript shows it.
    pub work: WorkAtHand,
    /// The facts from the agent's signals in this run.
    pub signalled: PreservedState,
    /// The facts that a person has cleared in this session, kept for an undo.
    pub(in crate::app) cleared: Option<Box<(PreservedState, TodoList)>>,
    /// The last error.
    pub(in crate::app) last_error: Option<LastError>,
    /// The preserved facts as of the last drafting.
    pub preserved: PreservedState,
    /// The summary of the session.
    pub summary: Summaries,
    /// The commits and test runs, and the good moment if there is one now.
    pub moments: Moments,
    /// The state of writing the session's carried facts to disk.
    pub keeping: Keeping,
    /// The checkpoints on their way to disk that a caller waits for, with the replies to give.
    pub saves: Vec<(uuid::Uuid, CallId, Reply)>,
}

impl HandoffDraft {
    /// Creates a draft that contains only the scratchpad on disk.
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

    /// Notes that the notes were handed over: the next agent knows them.
    pub(in crate::app) fn hand_over_notes(&mut self) {
        let notes = &mut self.notes;
        notes.text.clone_into(&mut notes.agent_base);
    }

    /// Forgets what belongs to the session before.
    pub(in crate::app) fn leave_session(&mut self) {
        self.todo.carry_over();
        self.seen_signals.forget();
        self.rewinds.leave_session();
        self.commands.clear();
        self.cleared = None;
        self.summary = Summaries::default();
    }
}
