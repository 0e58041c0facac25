//! The autonomous run at work: what the rules of [`crate::autopilot`] demand is typed, started, waited for and ended here.
//!
//! It is driven by the same events as everything else. After each of them, `watch` looks only at what is true now, as the reboot's
//! own state machine does, so facts may arrive in any order and none is required first.

pub mod facts;
mod hold;
mod publish;
mod turn;

use std::time::Duration;

use crate::{
    api::wire::AgentState,
    autopilot::{
        Autopilot, End, Fresh, Pause, Phase, Plan, RunEvent, Thrash, Trip, Verdict, Wait,
        cap::duration, events::first_line, prompt,
    },
    config::RebootMode,
    guard::threshold::Threshold,
    lineage::journal::Step,
};
use pitstop_base::keymap::Action;
use pitstop_transcript::Tokens;

use crate::app::{
    effect::{Effect, run_event},
    event::TimerId,
    facts::{Block, agent_reason, blocked_by, is_unattended, is_under_review, spent},
    model::{
        Model,
        event_scratch::NoReboot,
        run::{Due, Run},
    },
    reboot::{self, Approval, iteration, leave::leave},
};

pub use hold::{
    go_on, pause, person_typed, prompt, resumed_elsewhere, stopped, takes_over, toggle,
};
pub use publish::{publish, report, run_ended};
pub use turn::{figure_observed, figures_in, task_read, turn_ended, turn_failed};

use hold::{hold, prompt_held};
use publish::turn_event;
use turn::{background_time, fresh, settle, type_prompt, wait_over};

/// The time that the figures may take after a turn: the client waits 300 ms before it updates its status line.
const SETTLE: Duration = Duration::from_millis(600);

/// The time that a run waits for the figure of the turn that has ended before it goes on without it: a figure that never comes must
/// not hang the run, and one that does come arrives within a second or two.
const FIGURE: Duration = Duration::from_secs(5);

/// The time for the figures where nothing depends on them: each turn has its own session, and the cost has no cap.
const SETTLE_FRESH: Duration = Duration::from_millis(20);

/// The time that an idle agent that should be at work is left alone for: its start prompt may be on its way.
const IDLE: Duration = Duration::from_secs(20);

/// The time after which a typed prompt that was not seen to arrive is given up: its further Enters are over by then.
const SUBMIT_TIMEOUT: Duration = Duration::from_secs(45);

/// The time that an agent may take from the start of its process to its first report; a dialog at its start keeps it silent for ever.
const SILENT: Duration = Duration::from_secs(90);

/// The time that a dialog may be open in a headless run: another hook of the user's may answer it.
const DIALOG: Duration = Duration::from_secs(30);

/// The time that a handoff may stay unconfirmed in a headless run, beyond the time after which a person would be notified.
const UNDELIVERED: Duration = Duration::from_secs(60);

/// The interval at which the elapsed time on the screen is updated.
const CLOCK: Duration = Duration::from_secs(10);

/// The remaining time from which on the countdown of a wait is shown by the second.
const LAST_MINUTE: Duration = Duration::from_secs(60);
const SECOND: Duration = Duration::from_secs(1);

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
    let turns = model
        .lineage
        .iterations()
        .iter()
        .filter_map(|one| one.turns);
    pilot.turns = turns.map(u64::from).sum();
    // A session of an earlier run knows nothing of this task.
    pilot.task_changed = first.is_some();
    model.reboot.run_began();
    let mut iterations = model.lineage.iterations().iter().rev();
    let ended = iterations.find(|one| !one.is_open());
    let ended = ended.map(|last| last.iteration);
    let mut run = Run::new(pilot, reads_task, model.reboot.attempt.is_some(), ended);
    let begun = [run_event(event)];
    run.remember(&begun, model.now.wall);
    model.autopilot = Some(run);
    model.emit_all(begun);
    clock(model);
    match first {
        Some(first) => model.emit_all(first),
        // Those of a run that goes on may have been reached before its supervisor ended.
        None => match caps.forbids_another(&spent(model)) {
            Some(cap) => {
                model.session.agent.not_started();
                finish(model, End::Cap(cap));
            }
            None => iteration::begin(model, false, None, Some(start)),
        },
    }
}

/// Sets the run's timer; what it was set for before is void.
fn set(model: &mut Model, due: Due, time: Duration) {
    let epoch = model.next_epoch();
    let Some(run) = &mut model.autopilot else {
        return;
    };
    run.wait_for(due, epoch);
    model.emit(Effect::SetTimer(TimerId::Run(epoch), time));
}

/// Sets the run's timer as [`set`] does, unless it is set for that already.
fn set_once(model: &mut Model, due: Due, time: Duration) {
    let run = model.autopilot.as_ref();
    if run.is_some_and(|run| run.due != Some(due)) {
        set(model, due, time);
    }
}

fn set_phase(model: &mut Model, phase: Phase) {
    if let Some(run) = &mut model.autopilot {
        run.enter(phase);
    }
}

/// Applies to the run what a person has done, or a reboot that did not begin.
pub(super) fn apply_interventions(model: &mut Model) {
    if let Some(by) = model.scratch.taken_over.take() {
        hold(model, by);
    }
    match model.scratch.no_reboot.take() {
        Some(NoReboot::Breaker(why)) => thrash(model, why),
        Some(NoReboot::Refused(why)) => trip(model, &Trip::Refused { why }),
        None => {}
    }
}

/// Brings the run in line with what is true now.
pub(super) fn watch(model: &mut Model) {
    let Some(run) = &mut model.autopilot else {
        return;
    };
    if run.pilot.is_over() || model.outside.quitting().is_some() {
        return;
    }
    let rebooting = model.reboot.attempt.is_some();
    let ended = std::mem::replace(&mut run.rebooting, rebooting) && !rebooting;
    if ended && !run.pilot.is_held() {
        // A fresh session works by its handoff, a restarted one by its prompt; one that was trimmed, or resumed because
        // the reboot failed, has been told nothing.
        run.enter(Phase::Working);
        // The handoff names the task; without one (`generate_handoff = false`) the first prompt has to.
        if let Some(record) = model.lineage.current().and_then(|one| one.reboot.as_ref()) {
            run.pilot.task_changed = record.handoff_bytes == 0;
        }
        if model.session.agent.state == AgentState::Idle {
            return follow(model, Verdict::Settle, "");
        }
    }
    let state = model.session.agent.state;
    if matches!(state, AgentState::Dialog | AgentState::Unknown) {
        return dialog(model);
    }
    if run.due == Some(Due::Dialog) {
        // What was waited for before the dialog is waited for again.
        return after_dialog(model);
    }
    // An agent that reports again, and a prompt box that is there, are no longer waited for.
    let awaited = state == AgentState::Starting || run.due == Some(Due::PromptBox);
    run.stuck = run.stuck.filter(|_| awaited);
    run.said &= state != AgentState::Busy;
    if rebooting {
        watch_reboot(model);
        // The reboot was begun because the figures are in.
        if model.session.agent.state != AgentState::Busy {
            turn_event(model);
        }
        return;
    }
    if let Some(end) = over(model) {
        return finish(model, end);
    }
    let Some(run) = &mut model.autopilot else {
        return;
    };
    if run.pilot.is_held() {
        return prompt_held(model);
    }
    match (state, &run.pilot.phase) {
        (AgentState::Starting, _) => set_once(model, Due::StartupTimeout, SILENT),
        (AgentState::Busy, Phase::Settling | Phase::Sent) => set_phase(model, Phase::Working),
        (AgentState::Busy, Phase::Waiting(wait)) if wait.background => {
            set_phase(model, Phase::Working);
        }
        (AgentState::Busy, _) => {
            run.due = run.due.filter(|due| *due == Due::WaitOver);
        }
        (AgentState::Exited, Phase::Waiting(wait)) if !wait.background => {}
        (AgentState::Exited, _) => agent_gone(model),
        (AgentState::Idle | AgentState::Limit, Phase::Working) => {
            // A session that goes on and was not given the task has no prompt on its way.
            let time = if run.pilot.task_changed { SETTLE } else { IDLE };
            set_phase(model, Phase::Settling);
            set(model, Due::Settle, time);
        }
        (AgentState::Idle | AgentState::Limit, _) => turn::prompt_box_ready(model),
        _ => {}
    }
}

/// Returns the end that applies whatever the agent does. A cap does not interrupt a person who holds the run, and does not end a
/// turn that is at work: the turn goes on to its end, or until the next session would begin.
fn over(model: &Model) -> Option<End> {
    let pilot = &model.autopilot.as_ref()?.pilot;
    let cap = pilot.plan.caps.reached(&spent(model)).map(End::Cap)?;
    match &pilot.phase {
        Phase::Tripped(trip) => Some(End::Tripped(trip.clone())),
        _ if pilot.is_held() && pilot.plan.attended => None,
        _ if is_at_work(model) => None,
        _ => Some(cap),
    }
}

/// Reports whether a turn is at work that no next session has to follow yet.
fn is_at_work(model: &Model) -> bool {
    let next_is_due = turn::is_full(model) && model.scratch.at_seam;
    model.session.agent.state == AgentState::Busy && !next_is_due
}

/// Handles a dialog that is open, or may be: in an unattended run it stays unanswered.
fn dialog(model: &mut Model) {
    // A person who can answer from afar was called.
    if is_unattended(model) && model.session.held_permission.is_none() {
        set_once(model, Due::Dialog, DIALOG);
    }
}

/// Sets the run's timer again for what it was set for before the dialog.
fn after_dialog(model: &mut Model) {
    let now = model.now.since_start;
    let Some(run) = &mut model.autopilot else {
        return;
    };
    run.due = None;
    let (due, time) = match &run.pilot.phase {
        Phase::Settling => (Due::Settle, SETTLE),
        Phase::Sent => (Due::SubmitTimeout, SUBMIT_TIMEOUT),
        Phase::Waiting(wait) => (Due::WaitOver, wait.until.saturating_sub(now)),
        Phase::Working | Phase::Tripped(_) | Phase::Ended(_) => return watch(model),
    };
    set(model, due, time);
}

/// Watches a reboot that is under way: the reboot has the agent, and only what it cannot do by itself is done here.
fn watch_reboot(model: &mut Model) {
    let Some(attempt) = &model.reboot.attempt else {
        return;
    };
    let step = attempt.step();
    if attempt.is_overdue() {
        if is_unattended(model) {
            set_once(model, Due::Undelivered, UNDELIVERED);
        }
        return;
    }
    // The time before `auto` has announced it counts, and the time after its approval.
    let announces = is_under_review(model) && model.reboot.mode == RebootMode::Auto;
    let waits = announces || matches!(step, Step::Armed | Step::Waiting);
    if waits && blocked_by(model) == [Block::Background] {
        let time = background_time(model);
        set_once(model, Due::Background, time);
    }
}

/// Handles an agent's process that has ended by itself.
fn agent_gone(model: &mut Model) {
    let exit = model.session.agent.exit.clone().unwrap_or_default();
    let spent = spent(model);
    let Some(run) = &mut model.autopilot else {
        return;
    };
    let verdict = run.pilot.agent_died(&exit, &spent);
    follow(model, verdict, &format!("the agent has ended ({exit})"));
}

/// Does what the verdict of the rules demands.
fn follow(model: &mut Model, verdict: Verdict, why: &str) {
    match verdict {
        Verdict::Settle => {
            set_phase(model, Phase::Settling);
            let capped = plan(model).is_some_and(|plan| plan.caps.max_cost_usd.is_some());
            let blind = is_always_fresh(model) && !capped;
            let time = if blind { SETTLE_FRESH } else { SETTLE };
            set(model, Due::Settle, time);
        }
        Verdict::Prompt => type_prompt(model),
        Verdict::Fresh => fresh(model),
        Verdict::Wait(pause) => wait(model, pause, why),
        Verdict::Trip(trip) => self::trip(model, &trip),
        Verdict::End(end) => finish(model, end),
    }
}

fn plan(model: &Model) -> Option<&Plan> {
    model.autopilot.as_ref().map(|run| &run.pilot.plan)
}

fn is_always_fresh(model: &Model) -> bool {
    plan(model).is_some_and(|plan| plan.fresh == Fresh::Always)
}

fn wait(model: &mut Model, pause: Pause, why: &str) {
    let until = model.now.since_start + pause.time;
    let wait = Wait {
        why: why.to_owned(),
        until,
        reset: pause.reset,
        background: false,
    };
    set_phase(model, Phase::Waiting(wait));
    let event = RunEvent::Waiting {
        why: why.to_owned(),
        seconds: pause.time.as_secs(),
        until: pause.reset,
    };
    if !is_unattended(model) {
        model.error(format!(
            "{why}: the run goes on in {}",
            duration(pause.time)
        ));
    }
    model.emit(run_event(event));
    set(model, Due::WaitOver, pause.time);
}

/// Trips the run because reboots do not help, as the reboot's own breaker found.
fn thrash(model: &mut Model, why: String) {
    let figure = model.session.guard.figure(model.now);
    let line = figure.map_or(Tokens(0), |figure| figure.lines.at(Threshold::Compact));
    let forecast = model.session.guard.forecast();
    let turns: Vec<_> = forecast.turns().map(|turn| turn.used.0).collect();
    let growth = turns.iter().zip(turns.iter().skip(1));
    let growth = growth
        .map(|(before, after)| after.saturating_sub(*before))
        .max();
    let record = model
        .current_iteration()
        .and_then(|one| one.reboot.as_ref());
    let handoff = record.map(|record| record.handoff_tokens);
    let cause = Thrash::of(forecast.base(), handoff, growth.map(Tokens), line);
    trip(model, &Trip::Thrash { why, cause });
}

/// Stops or ends the run because a breaker has tripped.
fn trip(model: &mut Model, trip: &Trip) {
    let Some(run) = model.autopilot.as_mut().filter(|run| !run.pilot.is_over()) else {
        return;
    };
    let phase = run.pilot.trip(trip.clone());
    run.due = None;
    model.emit(run_event(RunEvent::Tripped {
        breaker: trip.name().to_owned(),
        evidence: trip.to_string(),
    }));
    if let Phase::Ended(end) = phase {
        return finish(model, end);
    }
    model.reboot.pause();
    let key = resume_key(model);
    model.error(format!("stopped: {trip} · {key} goes on"));
}

fn resume_key(model: &Model) -> String {
    let hint = model.keys().hint(Action::Pause);
    hint.unwrap_or_else(|| "pitstop ctl resume".to_owned())
}

/// Ends the run: the agent is ended cleanly and the record closed.
fn finish(model: &mut Model, end: End) {
    let Some(run) = &mut model.autopilot else {
        return;
    };
    let (code, reason) = (end.code(), end.reason());
    run.enter(Phase::Ended(end));
    turn_event(model);
    leave(model, code, reason, false);
}

/// Handles the run's timer when it has run out.
pub fn timer(model: &mut Model, epoch: u64) {
    let run = model.autopilot.as_mut();
    let run = run.filter(|_| model.outside.quitting().is_none());
    let Some(due) = run.and_then(|run| run.take_due(epoch)) else {
        return;
    };
    match due {
        Due::Settle => settle(model),
        Due::Figure => turn::figure_late(model),
        Due::SubmitTimeout => turn::prompt_late(model),
        Due::WaitOver => wait_over(model),
        Due::StartupTimeout => silent(model),
        Due::Dialog => {
            let about = agent_reason(model).unwrap_or_default();
            trip(model, &Trip::Dialog { about });
        }
        Due::Undelivered => {
            let what = "the handoff";
            trip(model, &Trip::NoAnswer { what });
        }
        Due::Background => push(model),
        Due::PromptBox => turn::prompt_box_late(model),
    }
}

/// Handles an agent whose process runs but reports nothing.
fn silent(model: &mut Model) {
    let what = "the agent does not respond: a dialog at its start may wait (trust, login); start it once by hand";
    if is_unattended(model) {
        return finish(model, End::NoAgent(what.to_owned()));
    }
    model.error(what);
    stuck(model, what);
}

/// Notes that the run does not get on, for this reason, without a person.
fn stuck(model: &mut Model, why: &'static str) {
    if let Some(run) = &mut model.autopilot {
        run.stuck = Some(why);
    }
}

/// Pushes the reboot on once background tasks have held it up for long enough.
fn push(model: &mut Model) {
    model.reboot.interrupt_turn();
    let attempt = model.reboot.attempt.as_ref();
    if attempt.is_none_or(|attempt| attempt.approved.is_none()) {
        let _ = reboot::approve(model, Approval::Auto);
    }
}

/// Sets the timer for the time on the screen and for the cap on the time.
pub fn clock(model: &mut Model) {
    let Some(run) = &model.autopilot else {
        return;
    };
    let left = run.pilot.time_left(model.now);
    let at_work = is_at_work(model);
    let left = left.map(|left| match left {
        // The run waits for the end of the turn.
        Duration::ZERO if at_work => CLOCK,
        left => left.max(Duration::from_millis(100)),
    });
    let waits = match &run.pilot.phase {
        Phase::Waiting(wait) => Some(wait.until.saturating_sub(model.now.since_start)),
        _ => None,
    };
    // The countdown of a wait is shown by the minute, and in the last one by the second.
    let beat = match waits {
        Some(left) if left <= LAST_MINUTE => SECOND,
        Some(left) => CLOCK.min(left.saturating_sub(LAST_MINUTE)).max(SECOND),
        None => CLOCK,
    };
    let tick = run.pilot.plan.attended.then_some(beat);
    let next = match (left, tick) {
        (Some(left), Some(tick)) => Some(left.min(tick)),
        (left, tick) => left.or(tick),
    };
    model.emit_all(next.map(|next| Effect::SetTimer(TimerId::RunClock, next)));
}
