//! The control of a run by a person: it is paused, given a prompt, resumed, stopped, or left without its terminal.

use crate::{
    api::wire::AgentState,
    app::{
        model::{
            Model,
            run::{Due, Run},
        },
        refusal::Refusal,
    },
    autopilot::{Phase, RunEvent},
};

use super::{Act, Acts, drive, run_facts::RunFacts, steps::SETTLE_FRESH};

impl Run {
    /// Types what a person has queued though the run is held, at a safe moment.
    pub(super) fn type_queued(&mut self, facts: &RunFacts, acts: &mut Acts) {
        if facts.prompt_box.is_safe {
            acts.0.extend(self.take_queued().map(Act::Submit));
        }
    }

    /// Holds the run because a person types into the pane: it is theirs until they give it back. The run itself waits for the answer
    /// to a dialog, so that one does not hold it.
    pub(super) fn person_typed(&mut self, facts: &RunFacts, acts: &mut Acts) {
        if !matches!(
            facts.agent.state,
            AgentState::Dialog | AgentState::Unknown | AgentState::Exited
        ) {
            self.hold("your typing", acts);
        }
    }

    /// Holds the run until a person resumes it, unless it is held or over already.
    pub(super) fn hold(&mut self, by: &str, acts: &mut Acts) {
        if self.pause(by) {
            acts.push(Act::Hold(by.to_owned()));
            acts.log(RunEvent::Paused { by: by.to_owned() });
        }
    }

    /// Continues the run after a pause or a trip.
    fn resume(&mut self, facts: &RunFacts, acts: &mut Acts) {
        self.give_up_background(facts.agent.background.ids());
        self.pilot.resume();
        acts.push(Act::HandBack);
        acts.log(RunEvent::Resumed);
        if facts.agent.state == AgentState::Exited {
            acts.push(Act::Restart);
        } else {
            self.wait_for(Due::Settle, SETTLE_FRESH, acts);
        }
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

/// Continues the run after a pause or a trip, or refuses to.
fn resume(model: &mut Model) -> Result<(), Refusal> {
    let agent = &model.session.agent;
    let draft = agent.has_draft() && agent.state == AgentState::Idle;
    let Some(run) = &model.autopilot else {
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
    drive(model, Run::resume);
    Ok(())
}

/// Pauses everything that would happen by itself.
pub fn pause(model: &mut Model, by: &str) {
    model.reboot.pause();
    if model.autopilot.is_some() {
        drive(model, |run, _, acts| run.hold(by, acts));
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
    let run = model.autopilot.as_mut().ok_or(Refusal::NoRun)?;
    if run.pilot.is_over() {
        return Err(Refusal::RunOver);
    }
    run.pilot.prompt(text)?;
    model.info("it is typed at the next safe moment");
    Ok(())
}
