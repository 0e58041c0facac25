//! What a person is needed for, and the calls to them: once for each occasion, taken back once it is settled.
//!
//! It is read from the model after each event, so that no feature has to remember whether it has called. An occasion has a number
//! of its own kind's making: a second question directly behind the first is another occasion, a reboot that stays due is the same.

use chrono::{DateTime, Utc};

use crate::{
    api::wire::{AgentState, NeedKind},
    autopilot::{Phase, RunEvent, breaker::excerpt},
    config::RebootMode,
    guard::Level,
    lineage::Cause,
};
use pitstop_agent::Failure;
use pitstop_base::format::percent;

use crate::app::{
    consequences::Consequences,
    effect::{Effect, run_event},
    facts::{
        after_end, agent_reason, answer_left, answers_at_once, held, is_unattended, limit_reset,
        waits_for_enter,
    },
    model::{
        Model,
        activity::Permission,
        needs::Need,
        outside::Outside,
        reboot::{Attempt, Reboot},
    },
    reboot,
};

impl Outside {
    /// Takes in what a person is needed for now, in a run or not, and at this time. They are called for what is new, if they may be, and
    /// what is settled is taken back.
    pub(super) fn take_needs(
        &mut self,
        mut found: Vec<Need>,
        mut may_call: impl FnMut(NeedKind) -> bool,
        (in_run, now): (bool, DateTime<Utc>),
    ) -> Consequences {
        let mut follows = Consequences::default();
        found.sort_by_key(|one| one.kind);
        for need in &mut found {
            let was_called = self.number_need(need, now);
            let calls = need.called && !was_called && may_call(need.kind);
            need.called = was_called || calls;
            if calls {
                follows = follows.then(call(need, in_run));
            }
            if let Some(reset) = need.until.filter(|_| need.kind == NeedKind::Limit) {
                follows.effects.extend(self.await_limit(reset, now));
            }
        }
        let settled = self.needs_found(found).into_iter();
        let settled = settled.map(|need| Effect::Settled(Box::new(need)));
        follows.effects.extend(settled);
        follows
    }
}

impl Reboot {
    /// Reports whether a person may be called: for a reboot once for each level that the session reaches.
    pub(super) fn may_call(&mut self, kind: NeedKind) -> bool {
        if kind != NeedKind::Review {
            return true;
        }
        let attempt = self.attempt.as_ref();
        if attempt.is_some_and(|one| one.held.is_some()) {
            return true;
        }
        let level = match attempt.map(|one| one.cause) {
            Some(Cause::Breakpoint) => Level::Critical,
            _ => Level::Overflow,
        };
        self.call_person(level)
    }
}

fn call(need: &Need, in_run: bool) -> Consequences {
    let mut follows = Consequences::default();
    let said = need.in_words();
    // The agent's states are in the message log already, and the run's stops are notices.
    if matches!(
        need.kind,
        NeedKind::Review | NeedKind::RebootAsked | NeedKind::Unconfirmed
    ) {
        follows.note(&said);
    }
    follows.emit(Effect::Call(Box::new(need.clone())));
    let ours = !matches!(
        need.kind,
        NeedKind::Limit | NeedKind::LimitOver | NeedKind::RunOver
    );
    if in_run && ours {
        let why = excerpt(&said);
        follows.emit(run_event(RunEvent::PersonNeeded { why }));
    }
    follows
}

/// Returns what a person is needed for now.
pub(super) fn found(model: &Model) -> Vec<Need> {
    let over = run_over(model);
    if over.is_some() || model.outside.quitting().is_some() {
        return over.into_iter().collect();
    }
    let all = [
        unconfirmed(model),
        review(model),
        wish(model),
        question(model),
        stopped(model),
        stuck(model),
        paused(model),
        limit(model),
        ended(model),
        context_refused(model),
        failed(model),
        suspended(model),
    ];
    all.into_iter().flatten().collect()
}

fn run_over(model: &Model) -> Option<Need> {
    let run = model.autopilot.as_ref()?;
    let Phase::Ended(end) = &run.pilot.phase else {
        return None;
    };
    Some(Need::new(
        NeedKind::RunOver,
        "The run is over",
        end.to_string(),
    ))
}

fn unconfirmed(model: &Model) -> Option<Need> {
    let attempt = model.reboot.attempt.as_ref()?;
    let what = "The handoff is not confirmed";
    attempt
        .is_overdue()
        .then(|| Need::new(NeedKind::Unconfirmed, what, ""))
}

/// A reboot that waits for a person, or goes ahead unless they refuse.
fn review(model: &Model) -> Option<Need> {
    let attempt = model.reboot.attempt.as_ref()?;
    if !attempt.is_harmless() || attempt.approved.is_some() || !attempt.kind.is_reboot() {
        return None;
    }
    let asked = |one: &Attempt| matches!(one.cause, Cause::Key | Cause::Ctl);
    let figure = model.session.guard.figure(model.now);
    let why = figure.map(|one| format!("the context is {} % full", percent(one.percent)));
    let one = Need::new(NeedKind::Review, "", why.unwrap_or_default());
    if let Some(held) = held(model) {
        if answers_at_once(model) {
            return None;
        }
        let left = answer_left(model)?;
        return Some(Need {
            what: "The client is about to compact: the handoff waits for your review".to_owned(),
            occasion: u64::try_from(held.until.as_millis()).unwrap_or(u64::MAX),
            until: Some(model.now.wall + left),
            ..one
        });
    }
    if model.reboot.mode == RebootMode::Auto && !asked(attempt) {
        let left = attempt.clock()?.at.saturating_sub(model.now.since_start);
        return Some(Need {
            what: format!(
                "The agent is rebooted in {} s",
                left.as_millis().div_ceil(1000)
            ),
            until: Some(model.now.wall + left),
            called: model.autopilot.is_none(),
            ..one
        });
    }
    Some(Need {
        what: "A reboot waits for your review".to_owned(),
        called: !asked(attempt),
        ..one
    })
}

fn wish(model: &Model) -> Option<Need> {
    let wish = reboot::wish(model)?;
    let what = "The agent asks for a reboot";
    Some(Need::new(NeedKind::RebootAsked, what, wish.reason.clone()))
}

/// A dialog of the agent's. What a person has opened, such as a list of models, is no reason to call them; in an unattended run
/// no person has opened it.
fn question(model: &Model) -> Option<Need> {
    let agent = &model.session.agent;
    let asks = agent.state == AgentState::Dialog;
    let unknown = agent.state == AgentState::Unknown && is_unattended(model);
    if !asks && !unknown {
        return None;
    }
    let question = agent.activity.question.as_ref();
    let since = question.map_or(0, |one| one.asked.since_start.as_millis());
    let permission = question.and_then(|one| one.permission.as_ref());
    let one = if let Some(permission) = permission {
        let (what, why) = asked_for(permission);
        Need {
            tool: Some(permission.tool.clone()),
            answerable: permission.call.is_some(),
            ..Need::new(NeedKind::Permission, what, why)
        }
    } else {
        let about = agent_reason(model).unwrap_or_default();
        Need::new(NeedKind::Question, "The agent asks you", about)
    };
    Some(Need {
        occasion: u64::try_from(since).unwrap_or(u64::MAX),
        ..one
    })
}

/// Returns what a person is asked for: the client also asks its questions, and about its plans, as permissions of tools.
fn asked_for(permission: &Permission) -> (&'static str, String) {
    let tool = permission.tool.clone();
    match tool.as_str() {
        "AskUserQuestion" => ("The agent asks you a question", permission.subject()),
        "ExitPlanMode" => ("The agent asks you to approve its plan", tool),
        _ => ("The agent asks for a permission", tool),
    }
}

fn stopped(model: &Model) -> Option<Need> {
    let Phase::Tripped(trip) = &model.autopilot.as_ref()?.pilot.phase else {
        return None;
    };
    let what = "The run has stopped";
    Some(Need::new(NeedKind::RunStopped, what, trip.to_string()))
}

fn stuck(model: &Model) -> Option<Need> {
    let why = model.autopilot.as_ref()?.stuck?;
    Some(Need::new(
        NeedKind::RunStuck,
        "The run does not get on",
        why,
    ))
}

/// A run that is paused. Who pauses it at the keyboard knows that.
fn paused(model: &Model) -> Option<Need> {
    let by = model.autopilot.as_ref()?.pilot.paused_by.as_ref()?;
    Some(Need {
        called: !by.starts_with("your ") && by != "a key",
        ..Need::new(NeedKind::RunPaused, "The run is paused", format!("by {by}"))
    })
}

fn limit(model: &Model) -> Option<Need> {
    if model.session.agent.state != AgentState::Limit || is_window_full(model) {
        return None;
    }
    let reset = limit_reset(model);
    if reset.is_some_and(|reset| reset <= model.now.wall) {
        // A run goes on by itself.
        let what = "The usage limit is over";
        let waits = model.autopilot.is_none();
        return waits.then(|| Need::new(NeedKind::LimitOver, what, ""));
    }
    // The client's message may name the limit, and its end.
    let failed = model.session.agent.failed.as_ref();
    let why = failed.map_or("", |(_, message)| message);
    Some(Need {
        until: reset,
        ..Need::new(NeedKind::Limit, "The usage limit is reached", why)
    })
}

/// A turn that has failed, until the next one: the agent does not go on by itself. A run does, unless a person has to log in first.
fn failed(model: &Model) -> Option<Need> {
    let agent = &model.session.agent;
    let (failure, message) = agent.failed.as_ref()?;
    let what = match failure {
        Failure::Account => "The service refuses the account",
        // They are called as what they are.
        Failure::UsageLimit | Failure::ContextLimit => return None,
        _ if model.autopilot.is_some() || agent.state != AgentState::Idle => return None,
        Failure::RateLimit => "The rate limit is reached",
        _ => "The turn has failed",
    };
    Some(Need::new(NeedKind::TurnFailed, what, message))
}

fn ended(model: &Model) -> Option<Need> {
    let exit = model.session.agent.exit.as_deref().unwrap_or_default();
    let why = match exit {
        "" => after_end(model).to_owned(),
        exit => format!("{exit}; {}", after_end(model)),
    };
    waits_for_enter(model).then(|| Need::new(NeedKind::AgentEnded, "The agent has ended", why))
}

/// Returns the need of a client that takes no more prompts because its window is full, unless a reboot goes ahead by itself.
fn context_refused(model: &Model) -> Option<Need> {
    let attempt = model.reboot.attempt.as_ref();
    let decided = |one: &Attempt| one.approved.is_some() || model.reboot.mode == RebootMode::Auto;
    let waits = is_window_full(model) && !attempt.is_some_and(decided);
    let what = "The window is full: the client takes no more prompts";
    waits.then(|| Need::new(NeedKind::ContextRefused, what, ""))
}

fn is_window_full(model: &Model) -> bool {
    model.session.agent.state == AgentState::Limit && model.session.agent.window_full
}

fn suspended(model: &Model) -> Option<Need> {
    let waits = model.session.agent.suspended.is_some();
    let why = "any key in its pane continues it";
    waits.then(|| Need::new(NeedKind::Suspended, "The agent is suspended", why))
}
