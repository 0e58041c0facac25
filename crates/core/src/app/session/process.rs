//! The agent's process: it runs, could not be started, or is gone.

use crate::{
    api::wire::AgentState,
    config::Notifications,
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
    model::{
        AgentView, CarryOut, Model, Overlay, attempt::AttemptEvent, reboot::Attempt, unsent::OnDisk,
    },
    reboot::{
        self, RebootEvent,
        iteration::{close_iteration, note_end},
    },
};

/// Takes note that the agent's process runs, or of the reason why it could not be started.
pub fn launched(
    model: &mut Model,
    iteration: IterationId,
    launch: Result<(ProcessStamp, NewIds), String>,
) {
    if iteration != model.session.iteration() {
        return;
    }
    match launch {
        Ok((process, new_ids)) => {
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
            let effects = &mut model.scratch.effects;
            model.session.read_client_settings(effects);
            save_iteration(model);
        }
        Err(why) => {
            model.session.agent.state = AgentState::Exited;
            model.session.agent.exit = Some(why.clone());
            model.error(why.clone());
            if model.reboot.attempt.is_some() {
                return model.reboot.on(AttemptEvent::NotSpawned(&why));
            }
            close_iteration(model, EndReason::Crash);
            if !autopilot::takes_over(model.autopilot.as_ref(), &mut model.scratch, false) {
                model.view.open(Overlay::Exited);
            }
        }
    }
}

/// The end of the agent's process.
pub enum ProcessEnd {
    /// The process in the pane of this iteration has ended like this.
    Exited(IterationId, Exit),
    /// The daemon has ended the session that had gone to it, which holds the conversation under this id if that is known, or may go on
    /// with it for this reason.
    Moved(Option<SessionId>, Option<String>),
}

/// Handles the end of the agent's process, and closes what belonged to an agent that is gone.
pub fn ended(model: &mut Model, end: ProcessEnd) {
    let ended = match end {
        ProcessEnd::Exited(iteration, exit) => {
            let agent = &model.session.agent;
            let is_over = agent.state == AgentState::Exited || agent.daemon.is_ending();
            if is_over || iteration != model.session.pane() {
                return;
            }
            model.session.agent.process = None;
            let was_ending = model.reboot.process_ended();
            // An order that the process took and did not answer gets no answer any more.
            let taken_back = model.session.orders.agent_gone();
            model.scratch.effects.extend(taken_back);
            let quitting = model.outside.quitting().map(|quitting| quitting.code);
            let epoch = model.next_epoch();
            let daemon = &mut model.session.agent.daemon;
            let (follows, end) = daemon.hold((exit, was_ending), quitting, epoch);
            follows.carry_out(model);
            end
        }
        ProcessEnd::Moved(holds, left) => {
            let held = model.session.agent.daemon.held.take();
            if let Some(session) = holds.filter(|_| held.is_some()) {
                model.session.id = session;
                model.reboot.on(AttemptEvent::EndedAs(session));
            }
            if let Some(left) = left.filter(|_| held.is_some()) {
                let left = format!(
                    "the session may go on in Claude Code's background: {left}; `claude stop` ends it"
                );
                model.error(left.clone());
                let quits = model.outside.quitting().is_some();
                model.outside.leave_running(quits.then_some(left));
            }
            held.map(|held| (held.exit, held.was_ending))
        }
    };
    let Some((exit, was_ending)) = ended else {
        return;
    };
    let is_clean = exit == Exit::Code(0);
    reboot::on(model, RebootEvent::AgentGone { is_clean });
    // What a person has typed goes into the prompt box of the agent that resumes its session. What was typed to end the agent is no
    // prompt. A reboot that has the prompt box keeps it by itself.
    let attempt = model.reboot.attempt.as_ref();
    let rebooting = attempt.is_some_and(|attempt| !attempt.is_harmless());
    let keeps_it = attempt.is_some_and(Attempt::hides_prompt_box);
    match carried::last_unsent(model).filter(|_| !was_ending && !keeps_it) {
        Some(text) if is_clean && may_have_ended_it(&text) => {
            model.emit_all(model.reboot.forget_draft(&OnDisk::Kept(text)));
        }
        Some(text) => model.reboot.kept_found(&text).carry_out(model),
        None => {}
    }
    // Its words are among the unsent ones, and the client that asked about it is gone.
    model.session.held_prompt = None;
    let gone = model
        .session
        .agent
        .gone(&exit, model.config.ui.notifications);
    model.emit_all(gone);
    let reason = reason_of(model, &exit, was_ending && rebooting);
    if reason == EndReason::Crash && model.outside.quitting().is_none() {
        let hint = "start pitstop: it resumes the session, or restores this in a fresh one";
        let message = format!("the agent has ended: {exit}");
        model.draft.note_error(&message, hint, model.now);
        note_end(&mut model.lineage, &model.session, None);
    }
    // A new agent that died before its proof is closed by the roll-back.
    if was_ending || !rebooting {
        close_iteration(model, reason);
    }
    if let Some(quitting) = model.outside.quitting() {
        return model.emit(Effect::Quit(quitting.code));
    }
    reboot::on(model, RebootEvent::AgentEnded(&exit));
    if model.reboot.attempt.is_none() {
        model.info(format!("the agent has ended: {exit}"));
        let (run, is_clean) = (model.autopilot.as_ref(), exit == Exit::Code(0));
        if !autopilot::takes_over(run, &mut model.scratch, is_clean) {
            model.view.open(Overlay::Exited);
        }
    }
}

/// Returns the reason for which the iteration of an agent that has ended like this ends; `rebooting` if that was done for a reboot.
fn reason_of(model: &Model, exit: &Exit, rebooting: bool) -> EndReason {
    match model.outside.quitting() {
        Some(quitting) => quitting.reason,
        None if rebooting => end_reason(model),
        None if *exit == Exit::Code(0) => EndReason::Natural,
        None => EndReason::Crash,
    }
}

impl AgentView {
    /// Notes how the agent has ended. What it left on the host terminal is taken down.
    fn gone(&mut self, exit: &Exit, wanted: Notifications) -> Option<Effect> {
        self.state = AgentState::Exited;
        self.exit = Some(exit.to_string());
        self.progressed(Progress::None, wanted)
    }
}
