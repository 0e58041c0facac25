//! The beginning and the end of an iteration.

use crate::lineage::{Cause, EndReason, IterationId};

use pitstop_transcript::SessionId;

use crate::app::{
    draft::{
        carried,
        record::{keep_turn, note_figures, save_iteration},
        scratchpad, summary,
    },
    effect::{Effect, StartAgent},
    event::TranscriptFacts,
    model::{
        AgentView, Model, activity::Elsewhere, compactions::Compactions, costs::TurnCosts,
        progress::state_of, summaries::Summaries, view::MouseGrip,
    },
};

/// Starts the very first agent.
pub fn begin(model: &mut Model, resume: bool, cause: Option<Cause>, prompt: Option<String>) {
    let session = model.session.id;
    let parent = model.lineage.iterations().last().map(|last| last.iteration);
    open_iteration(model, session, cause, parent);
    if !resume {
        model.session.spending.begin_session(session);
    }
    let first = model.session.iteration == IterationId::FIRST;
    model.emit(Effect::Start(StartAgent {
        iteration: model.session.iteration,
        session,
        resume,
        prompt,
        prompt_if_new: None,
        first,
    }));
    model.emit(Effect::ReadGit);
}

/// Begins the record of the next iteration and forgets the figures of the last.
pub fn open_iteration(
    model: &mut Model,
    session: SessionId,
    cause: Option<Cause>,
    parent: Option<IterationId>,
) {
    open_record(model, session, cause, parent);
    model.session.pane = model.session.iteration;
    model.session.id = session;
    scratchpad::handed_over(model);
    let version = model.session.agent.version.take();
    let without_mods = model.session.agent.without_mods;
    model.session.agent = AgentView {
        version,
        without_mods,
        holds_compaction: model.config.guard.replace_compaction,
        ..AgentView::default()
    };
    model.session.guard.start_iteration();
    model.session.compactions = Compactions::default();
    model.session.spending.begin_iteration();
    new_session(model);
    model.session.title.clear();
    // The new screen has no still image for copy mode.
    model.view.copy = None;
    model.view.press = None;
    // The rest of a mouse press is not for the next agent.
    model.view.grip = model.view.grip.map(|_| MouseGrip::Done);
    model.reboot.ending = None;
    if let Some(waiting) = &mut model.reboot.unsent {
        waiting.failed = false;
    }
    model.reboot.quiet = None;
    model.reboot.refused = None;
    model.reboot.forget_calls();
}

/// Begins the next iteration as [`open_iteration`] does, where the conversation was replaced inside the running client: process,
/// pane and what is known of them go on, and so does the transcript.
pub fn open_in_place(model: &mut Model, cause: Cause) {
    let parent = model.lineage.iterations().last().map(|last| last.iteration);
    open_record(model, model.session.id, Some(cause), parent);
    scratchpad::handed_over(model);
    let session = &mut model.session;
    let transcript = &mut session.transcript;
    let boundaries = transcript.whole.then_some(transcript.compactions);
    session.compactions = Compactions::behind_our_own(boundaries);
    transcript.used = None;
    session.guard.start_replaced();
    if let Some(model_id) = &session.agent.model_id {
        session.guard.set_model_hint(model_id);
    }
    session.costs = TurnCosts::default();
    session.spending.begin_iteration();
    let agent = &mut session.agent;
    agent.turns = 0;
    agent.last_message = None;
    agent.prompt_cache = None;
    agent.bridge.reported.usage = None;
    // The transcript has the handoff as a prompt that no hook reports, and what waited for an answer is written once more.
    agent.activity.elsewhere = Elsewhere {
        awaited: agent.activity.elsewhere.awaited + 2,
        ..Elsewhere::default()
    };
    model.draft.summary = Summaries::default();
    model.reboot.quiet = None;
    model.reboot.forget_calls();
}

fn open_record(
    model: &mut Model,
    session: SessionId,
    cause: Option<Cause>,
    parent: Option<IterationId>,
) {
    let at = model.now.wall;
    let full = matches!(
        cause,
        Some(Cause::Threshold | Cause::ContextLimit | Cause::Compaction)
    );
    let state = state_of(&model.draft);
    model.reboot.progress.next_session(full, state);
    // A record left open here would be a mistake of ours; the next iteration must still get its own.
    let _ = model.lineage.close(at, EndReason::Crash);
    if let Ok(iteration) = model.lineage.open_below(parent, Some(session), cause, at) {
        model.session.iteration = iteration;
        // The selection is counted from the newest: a person who reads about an earlier one keeps reading about it.
        if model.view.history.detail || model.view.history.selected > 0 {
            model.view.history.selected += 1;
        }
    }
}

/// Forgets what belongs to the session before.
pub(in crate::app) fn new_session(model: &mut Model) {
    model.session.costs = TurnCosts::default();
    model.session.spending.leave_session();
    model.session.agent.prompt_cache = None;
    model.session.transcript = TranscriptFacts::default();
    model.session.transcript_lost = false;
    model.draft.todo.carry_over();
    model.draft.seen_signals.forget();
    model.draft.rewinds.leave_session();
    model.draft.commands.clear();
    model.draft.cleared = None;
    model.draft.summary = Summaries::default();
}

/// Records that the present iteration is about to end, by this signal if there is one, and whether that cuts a turn.
pub fn note_end(model: &mut Model, signal: Option<&str>) {
    let in_turn = model.session.agent.activity.turn;
    if let Some(current) = model.lineage.current_mut() {
        current.in_turn = in_turn;
        current.signal = signal.map(ToOwned::to_owned);
    }
}

/// Ends the record of the present iteration.
pub fn close_iteration(model: &mut Model, reason: EndReason) {
    note_figures(model);
    let last = model.session.guard.last_used();
    if let Some(current) = model.lineage.current_mut() {
        current.tokens_at_end = last.or(current.tokens_at_end);
    }
    summary::close(model);
    carried::leave(model);
    keep_turn(model);
    let closed = model.lineage.close(model.now.wall, reason).is_ok();
    // An agent that had ended before has its record; the run's end is still to be written.
    if closed || model.outside.quitting.is_some() {
        save_iteration(model);
    }
}
