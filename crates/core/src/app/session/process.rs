//! The agent's process: it runs, could not be started, or is gone.

use crate::{
    api::wire::AgentState,
    lineage::{EndReason, IterationId, ProcessStamp},
};
use pitstop_agent::claude::prompt_box::may_have_ended_it;
use pitstop_terminal::screen::Progress;
use pitstop_transcript::SessionId;

use crate::app::{
    autopilot,
    draft::{carried, handoff, record::save_iteration},
    effect::Effect,
    event::{Exit, NewIds},
    facts::{end_reason, undelivered},
    model::{Model, Overlay, attempt::AttemptEvent, reboot::Attempt, unsent::OnDisk},
    reboot::{
        self, RebootEvent,
        iteration::{close_iteration, note_end},
    },
};

/// Takes note that the agent's process runs.
pub fn spawned(model: &mut Model, iteration: IterationId, process: ProcessStamp, new_ids: NewIds) {
    if iteration != model.session.iteration() {
        return;
    }
    model.session.agent.process = Some(process);
    if model.is_generic() {
        model.session.agent.state = AgentState::Idle;
    }
    // This is read before the reboot is notified of the process, which may end the attempt.
    let kept = undelivered(model);
    model.reboot.agent_started(new_ids);
    // The next handoff has a nonce of its own; the one on its way keeps its own.
    model.draft.leave_edit(model.now);
    if let Some(body) = kept {
        handoff::draft(model);
        model.draft.restore_body(&body);
    }
    model
        .session
        .read_client_settings(&mut model.scratch.effects);
    save_iteration(model);
}

/// Handles an agent's process that could not be started.
pub fn spawn_failed(model: &mut Model, iteration: IterationId, why: &str) {
    if iteration != model.session.iteration() {
        return;
    }
    model.session.agent.state = AgentState::Exited;
    model.session.agent.exit = Some(why.to_owned());
    model.error(why.to_owned());
    if model.reboot.attempt.is_some() {
        return model.reboot.on(AttemptEvent::NotSpawned(why));
    }
    close_iteration(model, EndReason::Crash);
    if !autopilot::takes_over(model.autopilot.as_ref(), &mut model.scratch, false) {
        model.view.open(Overlay::Exited);
    }
}

/// Handles the end of the agent's process.
pub fn exited(model: &mut Model, iteration: IterationId, exit: &Exit) {
    if iteration != model.session.pane() || model.session.agent.state == AgentState::Exited {
        return;
    }
    if model.session.agent.daemon.is_ending() {
        return;
    }
    model.session.agent.process = None;
    let was_ending = model.reboot.process_ended();
    // An order that the process took and did not answer gets no answer any more.
    model
        .scratch
        .effects
        .extend(model.session.orders.agent_gone());
    let quitting = model.outside.quitting().map(|quitting| quitting.code);
    let epoch = model.next_epoch();
    let daemon = &mut model.session.agent.daemon;
    let held = daemon.hold(exit, was_ending, quitting, epoch);
    held.carry_out(model);
    if !model.session.agent.daemon.is_ending() {
        gone(model, exit, was_ending);
    }
}

/// Closes what belonged to an agent that is gone.
fn gone(model: &mut Model, exit: &Exit, was_ending: bool) {
    // What a person has typed goes into the prompt box of the agent that resumes its session. What was typed to end the agent is no
    // prompt. A reboot keeps it by itself.
    let attempt = model.reboot.attempt.as_ref();
    let keeps = !was_ending && attempt.is_none_or(Attempt::is_harmless);
    match carried::last_unsent(model).filter(|_| keeps) {
        Some(text) if *exit == Exit::Code(0) && may_have_ended_it(&text) => {
            model.emit_all(model.reboot.forget_draft(&OnDisk::Kept(text)));
        }
        Some(text) => model.reboot.kept_found(&text).carry_out(model),
        None => {}
    }
    model.session.agent.state = AgentState::Exited;
    model.session.agent.exit = Some(exit.to_string());
    // What a dead agent left on the host terminal is taken down.
    let wanted = model.config.ui.notifications;
    let ended = model.session.agent.progressed(Progress::None, wanted);
    model.emit_all(ended);
    let attempt = model.reboot.attempt.as_ref();
    let rebooting = attempt.is_some_and(|attempt| !attempt.is_harmless());
    let reason = if let Some(quitting) = model.outside.quitting() {
        quitting.reason
    } else if was_ending && rebooting {
        end_reason(model)
    } else if *exit == Exit::Code(0) {
        EndReason::Natural
    } else {
        let hint = "start pitstop: it resumes the session, or restores this in a fresh one";
        model
            .draft
            .note_error(&format!("the agent has ended: {exit}"), hint, model.now);
        note_end(&mut model.lineage, &model.session, None);
        EndReason::Crash
    };
    // A new agent that died before its proof is closed by the roll-back.
    let rolled = rebooting && !was_ending;
    if !rolled {
        close_iteration(model, reason);
    }
    if let Some(quitting) = model.outside.quitting() {
        model.emit(Effect::Quit(quitting.code));
        return;
    }
    reboot::on(model, RebootEvent::AgentEnded(exit));
    if model.reboot.attempt.is_none() {
        model.info(format!("the agent has ended: {exit}"));
        if !autopilot::takes_over(
            model.autopilot.as_ref(),
            &mut model.scratch,
            *exit == Exit::Code(0),
        ) {
            model.view.open(Overlay::Exited);
        }
    }
}

/// Takes in that the daemon has ended the session that had gone to it, or the reason that it may go on. The record names the one
/// that `holds` the conversation.
pub fn moved_ended(model: &mut Model, holds: Option<SessionId>, left: Option<String>) {
    let Some(held) = model.session.agent.daemon.held.take() else {
        return;
    };
    if let Some(session) = holds {
        model.session.id = session;
        model.reboot.on(AttemptEvent::EndedAs(session));
    }
    if let Some(left) = left {
        let left = format!(
            "the session may go on in Claude Code's background: {left}; `claude stop` ends it"
        );
        model.error(left.clone());
        if model.outside.quitting().is_some() {
            model.outside.leave_running([left]);
        }
    }
    gone(model, &held.exit, held.was_ending);
}
