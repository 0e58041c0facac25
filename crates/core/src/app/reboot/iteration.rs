//! The beginning and the end of an iteration.

use std::time::Duration;

use crate::lineage::{Cause, EndReason, IterationId, Lineage};
use pitstop_agent::claude::limits::Act;
use pitstop_transcript::SessionId;

use crate::app::{
    draft::{
        carried::{self, Keep},
        record::{keep_turn, note_figures, save_iteration},
        summary::{self, SummaryEvent},
    },
    effect::{Effect, StartAgent},
    event::TimerId,
    facts::restart_prompt,
    model::{Model, session::Session},
    reboot::next::NewProcess,
};

/// Starts the very first agent.
pub fn begin(model: &mut Model, resume: bool, cause: Option<Cause>, prompt: Option<String>) {
    let first = NewProcess {
        session: model.session.id,
        cause,
        parent: model.lineage.iterations().last().map(|last| last.iteration),
        resume,
        copy_of: None,
        back_in: None,
        prompt,
        handoff: None,
    };
    start(model, first);
    model.emit(Effect::ReadGit);
}

/// Opens the next iteration and orders its process.
pub(super) fn start(model: &mut Model, new: NewProcess) {
    let (left, session) = (model.session.id, new.session);
    let goal = model.draft.take_goal(new.handoff.is_some());
    open_iteration(model, Some(session), new.cause, new.parent);
    if !new.resume {
        // A session that the user's own arguments resume has cost something before this run.
        if new.cause != Some(Cause::Resume) {
            model.session.spending.begin_session(session);
        }
    }
    model.draft.await_goal(goal);
    if let Some(of) = new.back_in {
        model.draft.note_left((left != session).then_some(left));
        let asks = model.draft.come_back(of, model.session.id, new.parent);
        model.emit_all(asks);
    }
    if let Some(from) = new.copy_of {
        model.session.spending.copy_session(from, session);
    }
    let iteration = model.session.iteration();
    let before = new.parent.and_then(|parent| model.lineage.get(parent));
    let before = before.and_then(|before| before.session_id);
    let again = restart_prompt(model).filter(|_| new.cause == Some(Cause::AgentExit));
    let prompt_if_new = again.is_some().then(|| model.draft.handoff.current());
    let prompt_if_new = prompt_if_new.map(|handoff| handoff.text.clone());
    let prompt = again.or(new.prompt);
    model.session.agent.given_at_start(prompt.as_deref());
    model.emit(Effect::Start(StartAgent {
        iteration,
        session,
        resume: new.resume,
        model: model.session.agent.chosen_model.clone(),
        after: if new.resume { new.copy_of } else { before },
        prompt_if_new,
        prompt,
        first: iteration == IterationId::FIRST,
    }));
    let text = new.handoff;
    model.emit_all(text.map(|text| Effect::SaveHandoff { iteration, text }));
}

/// Begins the record of the next iteration and forgets the figures of the last: in a process of its own that has this `session`, or
/// without one where the conversation was replaced inside the running client.
pub(super) fn open_iteration(
    model: &mut Model,
    session: Option<SessionId>,
    cause: Option<Cause>,
    parent: Option<IterationId>,
) {
    let at = model.now.wall;
    let full = matches!(
        cause,
        Some(Cause::Threshold | Cause::ContextLimit | Cause::Compaction)
    );
    let state = model.draft.work_state();
    model.reboot.progress.next_session(full, state);
    model.reboot.leave_session();
    model.draft.notes.hand_over();
    // A record left open here would be a mistake of ours; the next iteration must still get its own.
    let _ = model.lineage.close(at, EndReason::Crash);
    let recorded = session.unwrap_or(model.session.id);
    let opened = (model.lineage).open_below(parent, Some(recorded), cause, at);
    if opened.is_ok() {
        model.view.history.iteration_added(&model.lineage);
    }
    let iteration = opened.unwrap_or(model.session.iteration());
    model.emit(Effect::SetTimer(TimerId::Age, Duration::from_secs(1)));
    let Some(session) = session else {
        model.session.begin_in_place(iteration, model.now);
        return model.draft.conversation_replaced();
    };
    let undone = parent.filter(|_| cause == Some(Cause::Undo));
    let holds_compaction = model.config.guard.replace_compaction
        || undone.is_some_and(|parent| is_above_trigger(model, parent));
    model
        .session
        .begin_iteration(iteration, session, holds_compaction, model.now);
    model.draft.leave_session();
    model.view.leave_screen();
    model.reboot.ending = None;
    model.reboot.box_renewed();
}

/// Reports whether an iteration ended where the client compacts by itself: resumed as it was, its next prompt would be compacted.
fn is_above_trigger(model: &Model, iteration: IterationId) -> bool {
    let limit = model.session.client.limit();
    let trigger = limit.filter(|limit| limit.act == Act::Compacts);
    let mut iterations = model.lineage.iterations().iter();
    let end = iterations.find(|one| one.iteration == iteration);
    let end = end.and_then(|one| one.tokens_at_end);
    trigger.is_some_and(|trigger| end >= Some(trigger.at))
}

/// Records that the present iteration is about to end, by this signal if there is one, and whether that cuts a turn.
pub fn note_end(lineage: &mut Lineage, session: &Session, signal: Option<&str>) {
    if let Some(current) = lineage.current_mut() {
        current.in_turn = session.agent.activity.turn;
        current.signal = signal.map(ToOwned::to_owned);
    }
}

/// Ends the record of the present iteration.
pub fn close_iteration(model: &mut Model, reason: EndReason) {
    note_figures(&mut model.lineage, &model.session, model.now);
    let last = model.session.guard.last_used();
    if let Some(current) = model.lineage.current_mut() {
        current.tokens_at_end = last.or(current.tokens_at_end);
    }
    summary::on(model, SummaryEvent::Closed);
    if !model.lineage.iterations().is_empty() {
        carried::keep(model, Keep::Now);
        model.draft.note_end(&model.session, &model.identity);
    }
    let kept = keep_turn(&mut model.turns, &model.session, model.now);
    model.emit_all(kept);
    let closed = model.lineage.close(model.now.wall, reason).is_ok();
    // An agent that had ended before has its record; the run's end is still to be written.
    if closed || model.outside.quitting().is_some() {
        save_iteration(model);
    }
}
