//! The autonomous run at work: what the rules of [`crate::autopilot`] demand is typed, started, waited for and ended here.
//!
//! It is driven by the same events as everything else. After each of them the run looks only at what is true now, as the reboot's
//! own state machine does, so facts may arrive in any order and none is required first. The run changes nothing but itself: it reads
//! its facts, and demands acts that are carried out behind it.

pub mod facts;
mod hold;
mod publish;
mod run_facts;
mod steps;
mod turn;

use std::time::Duration;

use crate::{
    autopilot::{Autopilot, Cap, Plan, RunEvent, Trip, events::first_line, prompt},
    config::RebootMode,
    lineage::{Cause, EndReason},
};
use pitstop_agent::{Failure, ToolCall, ToolOutput};
use pitstop_base::keymap::Action;

use crate::app::{
    effect::{Effect, run_event},
    facts::reads_task,
    model::{Model, Overlay, attempt::AttemptEvent, run::Run},
    reboot::{
        self, Approval, RebootAction, RebootEvent, iteration,
        leave::leave,
        submit::{self, Then},
    },
};

pub use hold::{RunOrder, order, takes_over, toggle};
pub use publish::{publish, report, run_ended};

use run_facts::RunFacts;

/// An input of the run, besides the facts that it reads itself. A run that is over, or whose supervisor is being ended, takes in no
/// input behind [`RunInput::SessionAsked`].
#[derive(Debug)]
pub enum RunInput<'a> {
    /// A person has taken the agent over by this action.
    TakenOver(&'a str),
    /// A person continues the run after a pause or a trip.
    Resumed,
    /// A person may have intervened, or a reboot that was due did not begin.
    Intervened,
    /// This cap was reached before the run went on.
    CapReached(Cap),
    /// Someone ends the supervisor with this exit code.
    Stopped(i32),
    /// The time on the screen is shown again.
    ClockDue,
    /// The task is as it is now, and the work done has this number, which changes with it.
    TaskKept(u64),
    /// The next session was asked for, and has begun if it can.
    SessionAsked,
    /// A turn has ended, with these last words.
    TurnEnded(Option<&'a str>),
    /// A turn has failed for this reason, or has ended without a message.
    TurnFailed(Failure, &'a str),
    /// A tool has run with this output, and got work done or not.
    ToolFinished(&'a ToolCall, &'a ToolOutput, bool),
    /// The status line has come after a turn.
    StatusLineSeen,
    /// A source has reported how full the context is.
    FigureObserved,
    /// The task was read again, or could not be for this reason.
    TaskRead(Result<String, String>),
    /// The run's timer of this epoch has run out.
    TimerFired(u64),
    /// A person types into the pane.
    PersonTyped,
    /// Another process continues the session.
    ResumedElsewhere,
    /// All features have taken the event in: the run looks at what is true now.
    Settled,
}

/// What the run demands of the rest.
#[derive(Debug)]
enum Act {
    /// The shell carries this out.
    Do(Effect),
    /// A warning is shown to the person at the screen.
    Warn(String),
    /// The run is held by this cause until a person resumes it.
    Hold(String),
    /// A breaker has stopped the run until a person resumes it.
    Stop(Trip),
    /// This text is typed and submitted.
    Submit(String),
    /// The task is read again, if it is a file, before the run decides how to go on.
    ReadTask,
    /// The run decides how to go on, by what the turn has changed.
    Decide,
    /// The next session begins, because this one is full or because each turn has its own.
    BeginSession { is_full: bool },
    /// The agent that has ended is started again.
    Restart,
    /// The reboot under way does not wait any longer.
    PushReboot,
    /// A person may type into the pane again without holding the run.
    HandBack,
    /// The supervisor is left.
    Leave(i32, EndReason),
}

/// The acts that an input leads to, in order.
#[derive(Debug, Default)]
struct Acts(Vec<Act>);

impl Acts {
    fn push(&mut self, act: Act) {
        self.0.push(act);
    }

    /// Has an event of the run logged and reported.
    fn log(&mut self, event: RunEvent) {
        self.push(Act::Do(run_event(event)));
    }
}

/// Gives the run an input, and carries out what it demands.
pub fn on(model: &mut Model, input: RunInput) {
    let (intervenes, scratch) = (matches!(input, RunInput::Intervened), &model.scratch);
    let is_idle = intervenes && scratch.taken_over.is_none() && scratch.no_reboot.is_none();
    // Most sessions have no run, and the facts are many.
    let run = model.autopilot.as_ref().filter(|_| !is_idle);
    let facts = run.map(|_| RunFacts::of(model));
    let Some((run, facts)) = model.autopilot.as_mut().zip(facts) else {
        return;
    };
    let mut acts = Acts::default();
    run.on(input, &facts, &mut acts);
    if intervenes {
        (model.scratch.taken_over, model.scratch.no_reboot) = (None, None);
    }
    for act in acts.0 {
        match act {
            Act::Do(effect) => model.emit(effect),
            Act::Warn(why) => model.error(why),
            Act::Hold(by) => {
                model.reboot.pause();
                let key = resume_key(model);
                model.info(format!("the run is paused by {by}: {key} resumes it"));
            }
            Act::Stop(trip) => {
                model.reboot.pause();
                let key = resume_key(model);
                model.error(format!("stopped: {trip} · {key} goes on"));
            }
            Act::Submit(text) => _ = submit::give(model, &text, Then::Submit),
            Act::ReadTask => match reads_task(model) {
                Some(read) => model.emit(read),
                None => on(model, RunInput::TaskKept(model.draft.work_state())),
            },
            Act::Decide => on(model, RunInput::TaskKept(model.draft.work_state())),
            Act::BeginSession { is_full } => {
                if is_full {
                    reboot::on(model, RebootEvent::MayBeDue);
                    on(model, RunInput::Intervened);
                } else if let Err(why) = reboot::act(model, RebootAction::Begin(Cause::Autopilot)) {
                    model.error(why.to_string());
                }
                on(model, RunInput::SessionAsked);
            }
            Act::Restart => _ = reboot::act(model, RebootAction::Restart),
            Act::PushReboot => {
                model.reboot.on(AttemptEvent::Pushed);
                let attempt = model.reboot.attempt.as_ref();
                if attempt.is_none_or(|attempt| attempt.approved.is_none()) {
                    let _ = reboot::act(model, RebootAction::Approve(Approval::Auto));
                }
            }
            Act::HandBack => {
                model.session.agent.hand_back();
                model.view.close(Overlay::Exited);
            }
            Act::Leave(code, reason) => leave(model, code, reason, false),
        }
    }
}

fn resume_key(model: &Model) -> String {
    let hint = model.keys().hint(Action::Pause);
    hint.unwrap_or_else(|| "pitstop ctl resume".to_owned())
}

/// Begins the run; `first` holds the effects that start the agent if it is not started with the task itself. A run that goes on after
/// the end of its supervisor has `worked` for some time already.
pub fn begin(
    model: &mut Model,
    plan: Plan,
    reads_task: bool,
    first: Option<Vec<Effect>>,
    worked: Duration,
) {
    let start = prompt::start(&plan.task, &plan.stop_phrase);
    let caps = plan.caps;
    let event = RunEvent::RunStarted {
        task: first_line(&plan.task),
        stop_phrase: plan.stop_phrase.clone(),
        max_iterations: caps.max_iterations,
        max_cost_usd: caps.max_cost_usd,
        max_time_s: caps.max_time.map(|time| time.as_secs()),
    };
    let mut pilot = Autopilot::new(plan, model.now);
    pilot.worked = worked;
    let iterations = model.lineage.iterations().iter();
    let turns = iterations.filter_map(|one| one.turns);
    pilot.turns = turns.map(u64::from).sum();
    // A session of an earlier run knows nothing of this task.
    pilot.task_changed = first.is_some();
    model.reboot.set_mode(RebootMode::Auto);
    let mut iterations = model.lineage.iterations().iter().rev();
    let ended = iterations.find(|one| !one.is_open());
    let ended = ended.map(|last| last.iteration);
    let mut run = Run::new(pilot, reads_task, model.reboot.attempt.is_some(), ended);
    let begun = [run_event(event)];
    run.remember(&begun, model.now.wall);
    model.autopilot = Some(run);
    model.emit_all(begun);
    on(model, RunInput::ClockDue);
    match first {
        Some(first) => model.emit_all(first),
        // Those of a run that goes on may have been reached before its supervisor ended.
        None => match caps.forbids_another(&crate::app::facts::spent(model)) {
            Some(cap) => {
                model.session.agent.not_started();
                on(model, RunInput::CapReached(cap));
            }
            None => iteration::begin(model, false, None, Some(start)),
        },
    }
}
