//! The end of the supervisor: the agent is ended, what was edited is written, the record is closed.

use crate::{api::wire::AgentState, lineage::EndReason};

use crate::app::{
    draft::{
        carried::{self, Keep},
        summary::{self, SummaryEvent},
    },
    effect::Effect,
    facts::is_unattended,
    model::{
        CarryOut, Model, Overlay,
        reboot::{Attempt, RebootOutcome},
    },
    reboot::{
        ending::{self, EndingEvent},
        iteration::close_iteration,
        next::{End, Next},
        steps::end,
    },
};

/// Leaves with this code; the agent is ended, what was edited is written, the record is closed for this reason.
pub fn leave(model: &mut Model, code: i32, reason: EndReason, urgent: bool) {
    model.draft.leave_editors(model.now).carry_out(model);
    carried::keep(model, Keep::Now);
    model.view.close(Overlay::Review);
    if is_passed(model) {
        end(model, End::Finished { warmed_up: false });
    }
    // A reboot that has harmed something is left in the journal for the next start to finish.
    (model.reboot.attempt).take_if(|attempt| !attempt.is_harmless());
    let why = Some("quit".to_owned());
    end(model, End::Unfinished(RebootOutcome::Cancelled, why));
    let late = "pitstop was left before the model had answered";
    summary::on(model, SummaryEvent::TooLate(late));
    model.view.close_any();
    model.outside.quit(code, reason);
    // An agent that never ran, or is gone, needs no ending.
    let ended =
        model.session.agent.process.is_none() && model.session.agent.state != AgentState::Starting;
    if ended && !model.session.agent.daemon.is_ending() {
        close_iteration(model, reason);
        model.emit(Effect::Quit(code));
        return;
    }
    ending::on(model, EndingEvent::Begins { urgent });
}

/// Returns the end of a reboot whose new agent has ended, cleanly or not, where no more than its warm-up prompt is missing, or where the
/// session has gone on without the handoff: from here on it is an agent that ended like any other.
pub(super) fn agent_gone(model: &Model, is_clean: bool) -> Option<Next> {
    let is_over = model.reboot.has_attempt(Attempt::is_warming) || is_clean && is_passed(model);
    is_over.then_some(Next::End(End::Finished { warmed_up: false }))
}

/// Reports whether the session has gone on without the handoff: it stays the one to be resumed.
fn is_passed(model: &Model) -> bool {
    let is_passed = |one: &Attempt| one.passed_over && one.awaits_proof() && !one.is_proven();
    model.reboot.has_attempt(is_passed)
        && !model.session.submission.is_open()
        && !is_unattended(model)
}
