//! The time between two turns: what has ended one, and what begins the next.

use std::time::Duration;

use crate::{
    api::wire::AgentState,
    autopilot::{Phase, RunEvent, Trip, Wait, breaker::excerpt, cap::duration, events::first_line},
    guard::{Level, Source},
    lineage::Cause,
};
use pitstop_agent::Failure;

use super::{
    DIALOG, FIGURE, SUBMIT_TIMEOUT, apply_interventions, follow, hold, is_always_fresh,
    publish::{start_of, turn_event},
    set, set_phase, stuck, trip,
};
use crate::app::{
    effect::run_event,
    facts::{is_quiet, is_typing, is_unattended, reads_task, spent, typing_refusal, unsent},
    model::{
        Model,
        progress::state_of,
        run::{Due, Judged},
        unsent::Unsent,
    },
    reboot::{self, submit},
};

/// The time that a wake-up of the client is waited for: it sets one at most an hour ahead.
const WAKE_UP: Duration = Duration::from_secs(65 * 60);

/// Handles the end of a turn.
pub fn turn_ended(model: &mut Model, message: Option<&str>) {
    let spent = spent(model);
    let Some(run) = &mut model.autopilot else {
        return;
    };
    if run.pilot.is_over() || model.outside.quitting().is_some() {
        return;
    }
    let verdict = run.pilot.turn_ended(message, &spent);
    run.unreported = Some(first_line(message.unwrap_or_default()));
    run.figure_in = false;
    if run.pilot.is_held() {
        return turn_event(model);
    }
    follow(model, verdict, "");
}

/// Handles a turn that has failed, or has ended without a message.
pub fn turn_failed(model: &mut Model, failure: Failure, message: &str) {
    let (now, reset) = (model.now, model.session.agent.limit_reset);
    let Some(run) = &mut model.autopilot else {
        return;
    };
    if run.pilot.is_over() || model.outside.quitting().is_some() {
        return;
    }
    let failed = RunEvent::TurnFailed {
        iteration: model.session.iteration(),
        message: excerpt(message),
    };
    model.scratch.effects.push(run_event(failed));
    if run.pilot.is_held() {
        return;
    }
    let (verdict, why) = match failure {
        // The reboot handles it.
        Failure::ContextLimit => return,
        Failure::UsageLimit => (
            run.pilot.limited(reset, message, now),
            "a usage limit holds".to_owned(),
        ),
        Failure::Service | Failure::Other => (
            run.pilot.turn_failed(message, failure == Failure::Service),
            format!("the turn failed: {}", excerpt(message)),
        ),
    };
    follow(model, verdict, &why);
}

/// Settles at once when the status line has come: where the next turn has a session of its own, nothing else is waited for.
pub fn figures_in(model: &mut Model) {
    let matters = is_always_fresh(model) && model.session.agent.turns > 0;
    let run = model.autopilot.as_mut();
    let mut run = run.filter(|run| matters && run.pilot.phase == Phase::Settling);
    if run.as_mut().is_some_and(|run| run.was_due(Due::Settle)) {
        settle(model);
    }
}

/// Takes note that a source has reported how full the context is. A report from within the turn was about a part of it, and a later
/// one may still be about the turn before, where the client or this machine is slow: then it is the figure of that one.
pub fn figure_observed(model: &mut Model) {
    let known = known(model);
    let run = model.autopilot.as_mut();
    if run.is_some_and(|run| run.figure_observed(known)) {
        settle(model);
    }
}

/// Returns what is known of the session's turns now.
fn known(model: &Model) -> Judged {
    Judged {
        used: model.used(),
        turns: model.session.agent.bridge.reported.turns_measured,
    }
}

/// Continues without the figure of the turn, which has not come.
pub(super) fn figure_late(model: &mut Model) {
    tracing::info!("no figure has come for the last turn");
    if let Some(run) = &mut model.autopilot {
        run.figure_in = true;
    }
    settle(model);
}

/// Has the task read again now that the figures are in, then decides how to go on.
pub(super) fn settle(model: &mut Model) {
    let Some(run) = &model.autopilot else {
        return;
    };
    if run.pilot.is_held() || model.reboot.attempt.is_some() {
        return;
    }
    let state = model.session.agent.state;
    if !matches!(state, AgentState::Idle | AgentState::Limit) {
        return;
    }
    if is_typing(model) {
        return set(model, Due::Settle, model.config.reboot.typing_quiet);
    }
    // If it were judged by the figure of the turn before, a turn that has filled the window would be followed by a prompt that the
    // client refuses.
    let blind = is_always_fresh(model);
    if model.autopilot.as_ref().is_some_and(|run| !run.figure_in) && !blind {
        return set(model, Due::Figure, FIGURE);
    }
    let known = known(model);
    if let Some(run) = &mut model.autopilot {
        run.judged = known;
    }
    turn_event(model);
    if awaits_background(model) {
        return wait_for_background(model);
    }
    match reads_task(model) {
        Some(read) => model.emit(read),
        None => decide(model),
    }
}

/// Takes over the task that was read again, at a reboot or before a prompt.
pub fn task_read(model: &mut Model, task: Result<String, String>) {
    let Some(run) = &mut model.autopilot else {
        return;
    };
    match task {
        Ok(task) => {
            if run.pilot.task_read(task) {
                let task = first_line(&run.pilot.plan.task);
                model.emit(run_event(RunEvent::TaskChanged { task }));
            }
        }
        Err(why) => model.error(format!("the task is kept as it was read last: {why}")),
    }
    let run = model.autopilot.as_ref();
    let asked = run.is_some_and(|run| run.pilot.phase == Phase::Settling && run.due.is_none());
    if asked && model.reboot.attempt.is_none() {
        decide(model);
    }
}

pub(super) fn decide(model: &mut Model) {
    let (state, full, spent) = (state_of(&model.draft), is_full(model), spent(model));
    let Some(run) = &mut model.autopilot else {
        return;
    };
    let verdict = run.pilot.settled(state, full, &spent);
    follow(model, verdict, "");
}

/// Reports whether a reboot is due that was not put off.
pub(super) fn is_full(model: &Model) -> bool {
    let figure = model.session.guard.figure(model.now);
    let full = figure
        .is_some_and(|figure| figure.level >= Level::Overflow && figure.source != Source::Estimate);
    let refused = model.session.agent.state == AgentState::Limit && full;
    refused || (full && !is_quiet(model))
}

/// Types the next prompt, as soon as the prompt box takes one.
pub(super) fn type_prompt(model: &mut Model) {
    if let Some(why) = typing_refusal(model) {
        return wait_for_prompt_box(model, why);
    }
    let Some(run) = &mut model.autopilot else {
        return;
    };
    let text = run.pilot.next_prompt();
    set_phase(model, Phase::Sent);
    let _ = submit::submit(model, &text);
    model.emit(run_event(RunEvent::Prompted {
        iteration: model.session.iteration(),
        prompt: start_of(&text),
    }));
    set(model, Due::SubmitTimeout, SUBMIT_TIMEOUT);
}

/// Waits until the prompt box takes a text. A person's text in it is theirs to submit; any other obstacle may pass.
fn wait_for_prompt_box(model: &mut Model, why: &str) {
    tracing::info!(why, "the run does not type its prompt yet");
    if model.session.agent.has_draft() && !is_unattended(model) {
        return hold_for_text(model);
    }
    set_phase(model, Phase::Settling);
    set(model, Due::PromptBox, DIALOG);
}

/// Pauses the run because a person has written a text in the agent's prompt.
fn hold_for_text(model: &mut Model) {
    hold(model, "the text in the agent's prompt");
}

/// Handles a prompt that was not taken in time. A person's text in the box is theirs to submit or to clear.
pub(super) fn prompt_late(model: &mut Model) {
    if matches!(unsent(model), Unsent::Text(_)) && !is_unattended(model) {
        return hold_for_text(model);
    }
    trip(model, &Trip::NoAnswer { what: "a prompt" });
}

/// Settles if the run waits for the prompt box, and that takes a text now.
pub(super) fn prompt_box_ready(model: &mut Model) {
    let run = model.autopilot.as_ref();
    let waits = run.is_some_and(|run| run.due == Some(Due::PromptBox));
    if waits && typing_refusal(model).is_none() {
        settle(model);
    }
}

/// Handles a prompt box that was not ready for long.
pub(super) fn prompt_box_late(model: &mut Model) {
    let why = typing_refusal(model).unwrap_or("the agent's prompt box is not ready");
    if is_unattended(model) {
        let about = why.to_owned();
        return trip(model, &Trip::Dialog { about });
    }
    set(model, Due::PromptBox, DIALOG);
    stuck(model, why);
}

/// Reports whether something goes on in the background that the run has not waited for long enough.
fn awaits_background(model: &Model) -> bool {
    let run = model.autopilot.as_ref();
    run.is_some_and(|run| run.awaits(model.session.agent.background.ids()))
}

/// Returns how long the run waits for background work.
pub(super) fn background_time(model: &Model) -> Duration {
    let most = model.config.autopilot.background_wait;
    if model.session.agent.background.has_wake_up() {
        most.max(WAKE_UP)
    } else {
        most
    }
}

/// Waits for the client's background work, after which the client continues by itself: until then nothing is prompted and nothing
/// counted.
fn wait_for_background(model: &mut Model) {
    let time = background_time(model);
    let until = model.now.since_start + time;
    let background = &model.session.agent.background;
    let why = format!("{background}, for at most {}", duration(time));
    let Some(run) = &mut model.autopilot else {
        return;
    };
    run.pilot.excuse_turn();
    let wait = Wait {
        why: why.clone(),
        until,
        reset: None,
        background: true,
    };
    set_phase(model, Phase::Waiting(wait));
    model.emit(run_event(RunEvent::Waiting {
        why,
        seconds: time.as_secs(),
        until: None,
    }));
    set(model, Due::WaitOver, time);
}

/// Stops waiting for the background work of the session.
pub(super) fn give_up_background(model: &mut Model) {
    if let Some(run) = &mut model.autopilot {
        run.give_up_background(model.session.agent.background.ids());
    }
}

/// Begins the next session, because this one is full or because each turn has its own.
pub(super) fn fresh(model: &mut Model) {
    if is_full(model) {
        reboot::consider(model);
        apply_interventions(model);
    } else if let Err(why) = reboot::request(model, Cause::Autopilot, false) {
        model.error(why.to_string());
    }
    let run = model.autopilot.as_ref();
    let held = run.is_none_or(|run| run.pilot.is_held() || run.pilot.is_over());
    if model.reboot.attempt.is_none() && !held {
        type_prompt(model);
    }
}

pub(super) fn wait_over(model: &mut Model) {
    give_up_background(model);
    set_phase(model, Phase::Settling);
    if model.session.agent.state == AgentState::Exited {
        return reboot::restart(model);
    }
    settle(model);
}
