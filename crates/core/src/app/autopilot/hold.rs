//! The control of a run by a person: it is paused, given a prompt, resumed, stopped, or left without its terminal.

use crate::{
    api::wire::AgentState,
    autopilot::{Phase, RunEvent},
};

use super::{SETTLE_FRESH, resume_key, set, turn::give_up_background};
use crate::app::{
    effect::run_event,
    facts::{is_safe, typing_refusal},
    model::{
        Model, Overlay,
        run::{Due, Run},
    },
    reboot::{self, submit},
    refusal::Refusal,
};

/// Types what a person has queued though the run is held, at a safe moment.
pub(super) fn prompt_held(model: &mut Model) {
    let safe = model.session.agent.state == AgentState::Idle && is_safe(model);
    if !safe || typing_refusal(model).is_some() {
        return;
    }
    let run = model.autopilot.as_mut();
    if let Some(text) = run.and_then(Run::take_queued) {
        let _ = submit::submit(model, &text);
    }
}

/// Reports whether the run deals with an agent that has ended by itself. One that a person has ended is left to that person.
pub fn takes_over(model: &mut Model, clean: bool) -> bool {
    let Some(run) = &model.autopilot else {
        return false;
    };
    if run.pilot.is_over() || run.pilot.is_held() {
        return run.pilot.is_over();
    }
    if clean && run.pilot.plan.attended {
        model.scratch.taken_over = Some("the agent's end");
        return false;
    }
    true
}

/// Ends the run because someone ends the supervisor, and returns the exit code.
pub fn stopped(model: &mut Model, code: i32) -> i32 {
    let run = model.autopilot.as_mut();
    run.map_or(code, |run| run.stop(code))
}

/// Holds the run because a person types into the pane: it is theirs until they give it back. The run itself waits for the answer to
/// a dialog, so that one does not hold it.
pub fn person_typed(model: &mut Model) {
    if matches!(
        model.session.agent.state,
        AgentState::Dialog | AgentState::Unknown | AgentState::Exited
    ) {
        return;
    }
    hold(model, "your typing");
}

/// Holds the run because another process continues its session: a person has to decide which of the two is to be continued.
pub fn resumed_elsewhere(model: &mut Model) {
    hold(model, "another process in its session");
}

/// Holds the run until it is resumed; returns false if it was held already, or there is none.
pub(super) fn hold(model: &mut Model, by: &str) -> bool {
    if !model.autopilot.as_mut().is_some_and(|run| run.hold(by)) {
        return false;
    }
    model.reboot.pause();
    let key = resume_key(model);
    model.info(format!("the run is paused by {by}: {key} resumes it"));
    model.emit(run_event(RunEvent::Paused { by: by.to_owned() }));
    true
}

/// Continues the run after a pause or a trip.
fn resume(model: &mut Model) -> Result<(), Refusal> {
    let draft = model.session.agent.has_draft() && model.session.agent.state == AgentState::Idle;
    let Some(run) = &mut model.autopilot else {
        return Ok(());
    };
    if run.pilot.is_over() {
        return Err(Refusal::RunOver);
    }
    let held = run.pilot.is_held();
    if !held && !matches!(run.pilot.phase, Phase::Waiting(_)) {
        return Ok(());
    }
    if draft && held {
        // Where the prompt box cannot be seen, a second request means that the person knows of the text.
        model.session.agent.person_warned();
        return Err(Refusal::HumansText);
    }
    give_up_background(model);
    let Some(run) = &mut model.autopilot else {
        return Ok(());
    };
    run.pilot.resume();
    model.session.agent.hand_back();
    model.view.close(Overlay::Exited);
    model.emit(run_event(RunEvent::Resumed));
    if model.session.agent.state == AgentState::Exited {
        reboot::restart(model);
    } else {
        set(model, Due::Settle, SETTLE_FRESH);
    }
    Ok(())
}

/// Pauses everything that would happen by itself.
pub fn pause(model: &mut Model, by: &str) {
    model.reboot.pause();
    if model.autopilot.is_some() {
        hold(model, by);
    } else {
        model.info("paused: no automatic reboots");
    }
}

/// Takes back a pause; an autonomous run that a breaker has stopped goes on, too.
pub fn go_on(model: &mut Model) -> Result<(), Refusal> {
    resume(model)?;
    model.reboot.resume();
    model.info("resumed");
    Ok(())
}

/// Pauses or resumes, for the key that does both.
pub fn toggle(model: &mut Model) -> Result<(), Refusal> {
    let held = match &model.autopilot {
        Some(run) => run.pilot.is_held() || matches!(run.pilot.phase, Phase::Waiting(_)),
        None => model.reboot.paused,
    };
    if held {
        go_on(model)
    } else {
        pause(model, "a key");
        Ok(())
    }
}

/// Queues a person's text, to be typed at the next safe moment.
pub fn prompt(model: &mut Model, text: String) -> Result<(), Refusal> {
    let Some(run) = &mut model.autopilot else {
        return Err(Refusal::NoRun);
    };
    if run.pilot.is_over() {
        return Err(Refusal::RunOver);
    }
    run.pilot.prompt(text)?;
    model.info("it is typed at the next safe moment");
    Ok(())
}
