//! Between two turns: what has ended one, and what begins the next.

use std::hash::{DefaultHasher, Hash as _, Hasher as _};

use crate::{
    agent::Failure,
    api::wire::AgentState,
    autopilot::{Phase, RunNews, breaker::excerpt, news::first_line},
    guard::{Level, Source},
    lineage::Cause,
};

use super::{
    DEAF, Due, follow, is_always_fresh, set, set_phase, spent,
    told::{start_of, tell, turn_news},
};
use crate::app::{effect::Effect, handoff, model::Model, reboot, say};

/// A turn is over.
pub fn turn_ended(model: &mut Model, message: Option<&str>) -> Vec<Effect> {
    let spent = spent(model);
    let Some(run) = &mut model.autopilot else {
        return Vec::new();
    };
    if run.pilot.is_over() || model.quitting.is_some() {
        return Vec::new();
    }
    let verdict = run.pilot.turn_ended(message, &spent);
    run.untold = Some(first_line(message.unwrap_or_default()));
    if run.pilot.is_held() {
        return turn_news(model);
    }
    follow(model, verdict, "")
}

/// A turn has failed, or has ended without a word.
pub fn turn_failed(model: &mut Model, failure: Failure, message: &str) -> Vec<Effect> {
    let (now, reset) = (model.now, model.agent.limit_reset);
    let Some(run) = &mut model.autopilot else {
        return Vec::new();
    };
    if run.pilot.is_over() || model.quitting.is_some() {
        return Vec::new();
    }
    let mut effects = vec![tell(RunNews::TurnFailed {
        iteration: model.iteration,
        message: excerpt(message),
    })];
    if run.pilot.is_held() {
        return effects;
    }
    let (verdict, why) = match failure {
        // The reboot sees to it.
        Failure::ContextLimit => return effects,
        Failure::UsageLimit => (
            run.pilot.limited(reset, message, now),
            "a usage limit holds".to_owned(),
        ),
        Failure::Service | Failure::Other => (
            run.pilot.turn_failed(message, failure == Failure::Service),
            format!("the turn failed: {}", excerpt(message)),
        ),
    };
    effects.extend(follow(model, verdict, &why));
    effects
}

/// The status line has come: where the next turn has a session of its own, nothing else is waited for.
pub fn figures_in(model: &mut Model) -> Vec<Effect> {
    let waits = model
        .autopilot
        .as_ref()
        .is_some_and(|run| run.due == Some(Due::Settle) && run.pilot.phase == Phase::Settling);
    if !waits || !is_always_fresh(model) || model.agent.turns == 0 {
        return Vec::new();
    }
    if let Some(run) = &mut model.autopilot {
        run.due = None;
    }
    settle(model)
}

/// The figures are in: the task is read again, then it is decided how to go on.
pub(super) fn settle(model: &mut Model) -> Vec<Effect> {
    let Some(run) = &model.autopilot else {
        return Vec::new();
    };
    if run.pilot.is_held() || model.reboot.attempt.is_some() {
        return Vec::new();
    }
    if !matches!(model.agent.state, AgentState::Idle | AgentState::Limit) {
        return Vec::new();
    }
    if reboot::is_typing(model) {
        return set(model, Due::Settle, model.config.reboot.typing_quiet);
    }
    let mut effects = turn_news(model);
    match reads_task(model) {
        Some(read) => effects.push(read),
        None => effects.extend(decide(model)),
    }
    effects
}

/// The order to read the task again, if it is a file.
#[must_use]
pub fn reads_task(model: &Model) -> Option<Effect> {
    let reads = model.autopilot.as_ref().is_some_and(|run| run.reads_task);
    reads.then_some(Effect::ReadTask)
}

/// The task was read again, at a reboot or before a prompt.
pub fn task_read(model: &mut Model, task: Result<String, String>) -> Vec<Effect> {
    let Some(run) = &mut model.autopilot else {
        return Vec::new();
    };
    let mut effects = Vec::new();
    match task {
        Ok(task) => {
            if run.pilot.task_read(task) {
                let task = first_line(&run.pilot.plan.task);
                effects.push(tell(RunNews::TaskChanged { task }));
                handoff::draft(model);
            }
        }
        Err(why) => model.trouble(format!("the task is kept as it was read last: {why}")),
    }
    let asked = model
        .autopilot
        .as_ref()
        .is_some_and(|run| run.pilot.phase == Phase::Settling && run.due.is_none());
    if asked && model.reboot.attempt.is_none() {
        effects.extend(decide(model));
    }
    effects
}

pub(super) fn decide(model: &mut Model) -> Vec<Effect> {
    let (state, full, spent) = (fingerprint(model), is_full(model), spent(model));
    let Some(run) = &mut model.autopilot else {
        return Vec::new();
    };
    let verdict = run.pilot.settled(state, full, &spent);
    follow(model, verdict, "")
}

/// Whether a reboot is due that nobody has put off.
pub(super) fn is_full(model: &Model) -> bool {
    let figure = model.guard.figure(model.now);
    let full = figure
        .is_some_and(|figure| figure.level >= Level::Overflow && figure.source != Source::Estimate);
    let refused = model.agent.state == AgentState::Limit && full;
    refused || (full && model.agent.turns >= model.reboot.quiet_until_turn)
}

/// A number that changes with git, the notes and what the signals said.
pub(super) fn fingerprint(model: &Model) -> u64 {
    let mut hasher = DefaultHasher::new();
    format!("{:?}", model.git).hash(&mut hasher);
    format!("{:?}", model.told).hash(&mut hasher);
    model.notes.text.hash(&mut hasher);
    hasher.finish()
}

/// Types the next prompt.
pub(super) fn type_prompt(model: &mut Model) -> Vec<Effect> {
    let Some(run) = &mut model.autopilot else {
        return Vec::new();
    };
    let text = run.pilot.next_prompt();
    set_phase(model, Phase::Sent);
    let mut effects = say::say(model, &text);
    effects.push(tell(RunNews::Prompted {
        iteration: model.iteration,
        prompt: start_of(&text),
    }));
    effects.extend(set(model, Due::Deaf, DEAF));
    effects
}

/// Begins the next session, because this one is full or because each turn has its own.
pub(super) fn fresh(model: &mut Model) -> Vec<Effect> {
    let full = is_full(model);
    let mut effects = if full {
        reboot::consider(model)
    } else {
        reboot::request(model, Cause::Autopilot, false).unwrap_or_else(|why| {
            model.trouble(why);
            Vec::new()
        })
    };
    let held = model
        .autopilot
        .as_ref()
        .is_none_or(|run| run.pilot.is_held() || run.pilot.is_over());
    if model.reboot.attempt.is_none() && !held {
        effects.extend(type_prompt(model));
    }
    effects
}

pub(super) fn wait_over(model: &mut Model) -> Vec<Effect> {
    set_phase(model, Phase::Settling);
    if model.agent.state == AgentState::Exited {
        return reboot::restart(model);
    }
    settle(model)
}
