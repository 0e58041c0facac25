//! The control of a run by a person: it is paused, given a prompt, resumed, stopped, or left without its terminal.

use crate::{
    api::wire::AgentState,
    app::{
        model::{
            Model,
            event_scratch::EventScratch,
            run::{Due, Run},
        },
        refusal::Refusal,
    },
    autopilot::{Phase, RunEvent},
};

use super::{Act, Acts, RunInput, on, run_facts::RunFacts, steps::SETTLE_FRESH};

impl Run {
    /// Types what a person has queued though the run is held, at a safe moment.
    pub(super) fn type_queued(&mut self, facts: &RunFacts, acts: &mut Acts) {
        let is_next = facts.prompt_box.is_safe && !self.said;
        if let Some(text) = is_next.then(|| self.pilot.queue.pop_front()).flatten() {
            self.said = true;
            acts.push(Act::Submit(text));
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
    pub(super) fn resume(&mut self, facts: &RunFacts, acts: &mut Acts) {
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
pub fn takes_over(run: Option<&Run>, scratch: &mut EventScratch, clean: bool) -> bool {
    let Some(pilot) = run.map(|run| &run.pilot) else {
        return false;
    };
    if pilot.is_over() || pilot.is_held() {
        return pilot.is_over();
    }
    if clean && pilot.plan.attended {
        scratch.taken_over = Some("the agent's end");
        return false;
    }
    true
}

/// An order of a person's to the run, and to all that would happen by itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RunOrder<'a> {
    /// Pause all of it, by this way.
    Pause(&'a str),
    /// Take a pause back; a run that a breaker has stopped goes on, too.
    Resume,
    /// Queue this text, to be typed at the next safe moment.
    Prompt(String),
}

/// Carries out an order, or refuses to.
pub fn order(model: &mut Model, order: RunOrder) -> Result<(), Refusal> {
    match order {
        RunOrder::Pause(by) => {
            model.reboot.pause();
            if model.autopilot.is_some() {
                on(model, RunInput::TakenOver(by));
            } else {
                model.info("paused: no automatic reboots");
            }
        }
        RunOrder::Resume => {
            let resumes = resumes(model);
            if resumes == Err(Refusal::HumansText) {
                // Where the prompt box cannot be seen, a second request means that the person knows of the text.
                model.session.agent.person_warned();
            }
            if resumes? {
                on(model, RunInput::Resumed);
            }
            model.reboot.resume();
            model.info("resumed");
        }
        RunOrder::Prompt(text) => {
            let run = model.autopilot.as_mut().ok_or(Refusal::NoRun)?;
            if run.pilot.is_over() {
                return Err(Refusal::RunOver);
            }
            run.pilot.prompt(text)?;
            model.info("it is typed at the next safe moment");
        }
    }
    Ok(())
}

/// Returns the order of the key that both pauses and resumes.
pub fn toggle(model: &Model) -> RunOrder<'static> {
    if is_held(model) {
        RunOrder::Resume
    } else {
        RunOrder::Pause("a key")
    }
}

fn is_held(model: &Model) -> bool {
    match &model.autopilot {
        Some(run) => run.pilot.is_held() || matches!(run.pilot.phase, Phase::Waiting(_)),
        None => model.reboot.paused,
    }
}

/// Reports whether there is a run to be continued, or refuses to continue it.
fn resumes(model: &Model) -> Result<bool, Refusal> {
    let agent = &model.session.agent;
    match &model.autopilot {
        Some(run) if run.pilot.is_over() => Err(Refusal::RunOver),
        Some(run)
            if run.pilot.is_held() && agent.has_draft() && agent.state == AgentState::Idle =>
        {
            Err(Refusal::HumansText)
        }
        run => Ok(run.is_some() && is_held(model)),
    }
}
