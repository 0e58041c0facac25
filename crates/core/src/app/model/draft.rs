//! The facts that the handoff is made of, and the handoff.

use crate::{
    api::wire::Reply,
    app::{
        consequences::Consequences,
        event::{CallId, HandoffFiles},
    },
    lineage::checkpoint::LastError,
};
use pitstop_base::clock::At;
use pitstop_handoff::{
    Generator, Marker, PreservedState,
    breakpoint::git::GitState,
    preserved::{Item, Origin, ReportedRun},
    scratchpad::versions::Versions,
};
use pitstop_transcript::{
    SessionId,
    human::{HumanWords, Said},
    work::WorkAtHand,
};

use super::{
    carried::Keeping,
    moments::Moments,
    notes::NotesPanel,
    panels::HandoffPanel,
    progress::hash_of,
    requests::Requests,
    rewinds::{Before, Rewinds},
    seen_calls::SeenCalls,
    seen_signals::SeenSignals,
    summaries::Summaries,
    todo::TodoList,
};

/// The most sessions that were left without a handoff and are remembered.
const LEFT_KEPT: usize = 16;

/// The facts that the handoff is made of, and the handoff.
#[derive(Debug, Default)]
pub struct HandoffDraft {
    /// The scratchpad panel.
    pub notes: NotesPanel,
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
    /// The ended calls that were seen from each source.
    pub(in crate::app) seen_calls: SeenCalls,
    /// The facts that were preserved before each prompt of the session.
    pub rewinds: Rewinds,
    /// The human's first and latest request.
    pub requests: Requests,
    /// The goal that a person has set in the client, until it is met, given up or cleared.
    pub goal: Option<String>,
    /// The goal of the session before, which this one is given behind its first turn.
    pub(in crate::app) goal_due: Option<String>,
    /// The keys of prompts that only a hook has reported: the transcript shows whether a person gave them.
    pub(in crate::app) hooked_only: Vec<String>,
    /// The sessions that were left without a handoff, oldest first: what a person has said in them is carried on.
    pub(in crate::app) left_sessions: Vec<SessionId>,
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
    /// Returns a number that changes with git, the notes, the to-dos, what the signals said and the tests.
    pub(in crate::app) fn work_state(&self) -> u64 {
        let mut signalled = self.signalled.clone();
        // A human's prompt is no work done.
        signalled
            .constraints
            .retain(|one| one.origin != Origin::Human);
        hash_of(&(
            &self.git,
            &signalled,
            self.notes.text(),
            &self.preserved.test_state,
            &self.preserved.completed_items,
            &self.preserved.pending_items,
        ))
    }

    /// Creates a draft that contains only the scratchpad on disk.
    pub(super) fn new(marker: Marker, notes: String, generator: Generator) -> Self {
        Self {
            notes: NotesPanel::new(notes),
            handoff: HandoffPanel::empty(marker),
            generator,
            ..Self::default()
        }
    }

    /// Returns what is preserved now, for a rewind to before the next prompt.
    fn before(&self) -> Before {
        Before {
            state: PreservedState {
                // The start of the run is the same before each prompt.
                run_start: None,
                ..self.signalled.clone()
            },
            requests: self.requests.clone(),
            todo: self.todo.clone(),
        }
    }

    /// Takes over the commands that the pane's recording shows.
    pub(in crate::app) fn commands_recorded(&mut self, commands: Vec<String>) {
        self.commands = commands;
    }

    /// Takes in the files that the handoff names and includes.
    pub(in crate::app) fn files_read(&mut self, files: HandoffFiles) {
        self.handoff_files = files;
    }

    /// Takes in a test run that a program outside reports; `again` is true if it was seen before in another way.
    pub(in crate::app) fn tests_reported(&mut self, run: &ReportedRun<'_>, again: bool) {
        let tests = &mut self.signalled.test_state;
        let before = again.then(|| tests.clone());
        tests.apply_report(run);
        if let Some(before) = before {
            tests.keep_changes(before);
        }
    }

    /// Has a caller wait for a checkpoint on its way to disk, with the reply to give then.
    pub(in crate::app) fn await_checkpoint(&mut self, id: uuid::Uuid, call: CallId, reply: Reply) {
        self.saves.push((id, call, reply));
    }

    /// Takes over what a checkpoint that is restored has preserved, and the human's requests of its session.
    pub(in crate::app) fn restore_state(
        &mut self,
        mut state: PreservedState,
        requests: Option<Requests>,
    ) {
        // The files of the directory that we are in count.
        state.forget_files();
        if let Some(requests) = requests {
            let first = requests.first.as_ref().map(|said| said.text.trim());
            // That text is the objective of last resort, and follows from the requests.
            state
                .current_objective
                .take_if(|objective| Some(objective.text.as_str()) == first);
            self.requests = requests;
        }
        self.signalled = state;
    }

    /// Takes in that the conversation was replaced: the summary was one of that, and an undo is one of the reboot.
    pub(in crate::app) fn conversation_replaced(&mut self) {
        self.cleared = None;
        self.summary.forget();
    }

    /// Notes a prompt that a hook reports, whose words are not taken in yet.
    pub(in crate::app) fn prompt_hooked(&mut self) {
        self.rewinds.hooked = Some(self.before());
    }

    /// Takes in the newest prompt of the transcript, by its name.
    pub(in crate::app) fn prompt_read(&mut self, prompt: String) {
        let last = self.rewinds.prompts.back();
        if last.is_none_or(|(name, _)| *name != prompt) {
            let before = self.before();
            self.rewinds.remember(prompt, before);
        }
    }

    /// Takes back everything from this prompt on. Returns false if the prompt is not known.
    pub(in crate::app) fn take_back(&mut self, first: &str) -> bool {
        let now = self.before();
        let before = self.rewinds.take_back(first, now);
        self.go_back(before)
    }

    /// Takes up again what was taken back, up to this prompt and its turn, if it is known.
    pub(in crate::app) fn take_up(&mut self, prompt: &str) {
        let end = self.rewinds.take_up(prompt);
        self.go_back(end);
    }

    /// Returns to what was preserved at an earlier moment, if that is known, and reports whether it is. What a person has had removed
    /// stays removed.
    fn go_back(&mut self, before: Option<Before>) -> bool {
        let Some(mut before) = before else {
            return false;
        };
        before.state.withdraw_all(&self.signalled.withdrawn);
        before.state.run_start = self.signalled.run_start.take();
        self.signalled = before.state;
        self.requests = before.requests;
        self.todo = before.todo;
        // The signals that the new prompt's turn has given by a hook so far are in the transcript, too.
        self.seen_signals.forget();
        self.summary.forget();
        true
    }

    /// Takes over the human's words, except for the warm-up prompt, which is no request to a session in particular.
    pub(in crate::app) fn human_said(&mut self, words: &HumanWords, warmup: Option<&str>) {
        self.signalled.feed_human(words);
        self.requests.take(words, warmup);
    }

    /// Takes back that the state was forgotten. Returns false if it was not.
    pub(in crate::app) fn undo_clear(&mut self) -> bool {
        let Some(cleared) = self.cleared.take() else {
            return false;
        };
        let (state, todo) = *cleared;
        self.signalled.take_up(state);
        if self.todo == TodoList::default() {
            self.todo = todo;
        }
        true
    }

    /// Takes over the versions of the scratchpad, if they can be read. A restored one is there then, and takes back its part of the state.
    pub(in crate::app) fn versions_read(
        &mut self,
        versions: Option<Versions>,
        now: At,
    ) -> Consequences {
        let (done, restored) = self.notes.versions_read(versions, now);
        if restored {
            self.return_to_sources();
        }
        done
    }

    /// Returns to the scratchpad and the to-do list their parts of a restored state, now that both are there: what is changed or
    /// removed there must not stay here. The rest counts as reported by signals.
    pub(in crate::app) fn return_to_sources(&mut self) {
        let mut notes = PreservedState::default();
        self.notes.parse();
        notes.feed_scratchpad(self.notes.parsed());
        let state = &mut self.signalled;
        let in_notes = |origin, listed: bool| origin == Origin::Scratchpad && listed;
        state.decisions.retain(|one| {
            let mut listed = notes.decisions.iter();
            let listed = listed.any(|other| other.description == one.description);
            !in_notes(one.origin, listed)
        });
        state.known_issues.retain(|one| {
            let mut listed = notes.known_issues.iter();
            let listed = listed.any(|other| other.description == one.description);
            !in_notes(one.origin, listed)
        });
        let of_list = |items: &mut Vec<Item>, listed: &[Item]| -> Vec<String> {
            items.retain(|item| !in_notes(item.origin, listed.contains(item)));
            let todo = items.extract_if(.., |item| item.origin == Origin::Todo);
            todo.map(|item| item.text).collect()
        };
        let completed = of_list(&mut state.completed_items, &notes.completed_items);
        let pending = of_list(&mut state.pending_items, &notes.pending_items);
        let before = TodoList::before(completed, pending);
        self.todo.restore(before);
        let objective = &mut state.current_objective;
        match objective.as_ref().map(|objective| objective.origin) {
            Some(Origin::Scratchpad) if *objective == notes.current_objective => *objective = None,
            // In a state from before requests were kept, it is a first prompt: an objective that is written into the scratchpad later
            // wins over it.
            Some(Origin::Human)
                if notes.current_objective.is_none() && self.requests.first.is_none() =>
            {
                self.requests.first = objective.take().map(|objective| Said {
                    text: objective.text,
                    at: None,
                });
            }
            _ => {}
        }
    }

    /// Takes in that a person has cleared the conversation: another task begins with their next prompt.
    pub(in crate::app) const fn conversation_cleared(&mut self) {
        self.requests.is_cleared = true;
    }

    /// Notes sessions that were left without a handoff.
    pub(in crate::app) fn note_left(&mut self, sessions: impl IntoIterator<Item = SessionId>) {
        let kept = &mut self.left_sessions;
        for session in sessions {
            kept.retain(|one| *one != session);
            kept.push(session);
        }
        kept.drain(..kept.len().saturating_sub(LEFT_KEPT));
    }

    /// Forgets what belongs to the session before.
    pub(in crate::app) fn leave_session(&mut self) {
        self.todo.carry_over();
        self.seen_signals.forget();
        self.seen_calls = SeenCalls::default();
        self.rewinds.leave_session();
        self.commands.clear();
        self.hooked_only.clear();
        (self.goal, self.goal_due) = (None, None);
        self.cleared = None;
        self.summary.forget();
    }
}
