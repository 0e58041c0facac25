//! The reboots that begin by themselves: what begins one, what holds it back, and the clock that `auto` announces it by.
//!
//! ```text
//!   full, or a good moment ──► armed … review ──► the clock runs ──► due ──► approved at the next safe moment
//!        │                                           │  ▲
//!        │ a breaker, or a person said no            │  │ typing, a review or something else that lies over the banner
//!        ▼                                           ▼  │
//!   quiet, until turns have ended               the clock stops, and starts again
//! ```
//!
//! A turn does not stop the clock: an agent that is never idle for as long as the clock runs would never be rebooted.
//!
//! Whatever holds one back is a state with an end, which the [`Banner`](super::Banner) shows for as long as it lasts: a mode that
//! is called automatic must not be off without notice.

use std::time::Duration;

use crate::{
    api::wire::AgentState,
    config::RebootMode,
    guard::{Level, Threshold},
    lineage::Cause,
};
use pitstop_agent::Failure;
use pitstop_transcript::Tokens;

use super::{
    approve,
    next::{Act, End, Next, TICK},
    on_the_fly, request,
    timing::{is_answer_due, is_free},
};
use crate::app::{
    draft::breakpoint,
    effect::Effect,
    event::TimerId,
    facts::{
        Block, auto_delay, blocked_by, deciding_figure, is_editing, is_forced, is_last, is_quiet,
        is_unattended, is_under_review,
    },
    model::{
        Model, Overlay,
        attempt::AttemptEvent,
        event_scratch::NoReboot,
        reboot::{Approval, Attempt, Breaker, Clock, QuietReason, RebootOutcome},
    },
    refusal::Refusal,
};

impl Clock {
    /// Returns the time that is left until the clock is due.
    pub fn left(self, model: &Model) -> Duration {
        self.at.saturating_sub(model.now.since_start)
    }
}

/// Returns what follows where a due reboot did not begin, for this reason. A run stops for that once no turn is at work; anyone else
/// is shown what holds it back for as long as it does.
pub(super) fn held_up(model: &Model, why: &Refusal) -> Option<Next> {
    if model.autopilot.is_some() {
        let rests = model.session.agent.state != AgentState::Busy;
        rests.then(|| Next::Do(Act::StopRun(NoReboot::Breaker(why.to_string()))))
    } else {
        let is_breaker = matches!(why, Refusal::NoAutomatic(_));
        (!is_breaker).then(|| {
            let error = Next::Do(Act::Error(why.to_string()));
            let quiet = Act::BeQuiet(1, QuietReason::Refused(why.to_string()));
            Next::All(vec![error, Next::Do(quiet)])
        })
    }
}

/// Begins a reboot by itself if usage calls for one and nothing prevents it.
pub(super) fn due(model: &Model) -> Next {
    let figure = deciding_figure(model);
    let figure = figure.as_ref();
    let full = figure.is_some_and(|figure| figure.level >= Level::Overflow);
    let good = figure.is_some_and(|figure| breakpoint::is_good(model, figure));
    let eligible = (full || good)
        && model.reboot.mode != RebootMode::Manual
        && !model.reboot.paused
        && model.reboot.busy_step().is_none()
        && model.outside.quitting().is_none()
        && model.session.agent.state != AgentState::Exited
        && !is_quiet(model)
        && !is_last(model);
    let breaker = (eligible && full).then(|| breaker(model)).flatten();
    let mut next = vec![Next::Do(Act::HoldBack(breaker))];
    if !eligible {
        return Next::All(next);
    }
    if good {
        next.push(Next::Do(Act::TakeGoodMoment));
    }
    let cause = if full {
        Cause::Threshold
    } else {
        Cause::Breakpoint
    };
    match request(model, cause) {
        Ok(begun) => next.push(begun),
        // There will be another good moment, or the compact line.
        Err(why) if !full => {
            tracing::info!(%why, "a good moment was not taken");
        }
        Err(why) => next.extend(held_up(model, &why)),
    }
    Next::All(next)
}

/// Returns the breaker that keeps a reboot from beginning by itself now. Past the force line none does, or the client would soon
/// act by itself; but a session that was begun so full has not been helped by a reboot, and another one would not help it either,
/// and a run whose sessions get nothing done does not improve by going on.
pub(super) fn breaker(model: &Model) -> Option<Breaker> {
    if let Some(why) = no_service(model) {
        return Some(Breaker::NoService(why));
    }
    if let Some(born) = born_full(model) {
        return Some(Breaker::BornFull(born));
    }
    let idle = model.reboot.progress.idle(model.draft.work_state());
    let forced = is_forced(model);
    if idle >= model.config.reboot.max_idle_sessions && !(forced && model.autopilot.is_none()) {
        return Some(Breaker::Idle(idle));
    }
    if forced {
        return None;
    }
    let most = model.config.reboot.max_reboots_per_hour;
    model.reboot.too_many(most, model.now)
}

/// Returns the reason that the service takes no prompt, if that is known. A run waits by itself, and begins a session afterwards.
fn no_service(model: &Model) -> Option<&'static str> {
    let agent = &model.session.agent;
    let (failure, _) = agent.failed.as_ref()?;
    let rests = matches!(agent.state, AgentState::Idle | AgentState::Limit);
    match failure {
        _ if !rests || model.autopilot.is_some() => None,
        Failure::UsageLimit => Some("a usage limit holds"),
        Failure::RateLimit => Some("a rate limit holds"),
        Failure::Account => Some("the service refuses the account"),
        _ => None,
    }
}

/// Returns the tokens of the session at its first figure, where a reboot has begun it above the compact line.
fn born_full(model: &Model) -> Option<Tokens> {
    let one = model.current_iteration()?;
    let born = one.tokens_at_birth.filter(|_| one.reboot.is_some())?;
    let line = model
        .session
        .guard
        .assess(born)
        .lines
        .at(Threshold::Compact);
    (born >= line).then_some(born)
}

/// Judges a reboot that has begun by itself by what is true now, until a person has it in hand.
pub(super) fn review(model: &Model) -> Option<Next> {
    let attempt = model.reboot.attempt.as_ref();
    let ours = attempt.filter(|attempt| is_ours(model, attempt))?;
    match judge(model, ours) {
        Err(why) => Some(withdraw(ours, why)),
        Ok(full) => full.then(|| Next::Note(AttemptEvent::WindowFull)),
    }
}

/// Starts or stops the clock of a reboot that `auto` announces, or goes ahead because the announcement is over or not needed.
pub(super) fn announce(model: &Model) -> Option<Next> {
    let attempt = model.reboot.attempt.as_ref()?;
    let goes_ahead = Next::GoAhead {
        or_leave_client: false,
    };
    if is_answer_due(model) || on_the_fly::is_due(model) {
        return Some(goes_ahead);
    }
    let clock = attempt.clock();
    if !may_announce(model, attempt) {
        // No one sees it, or a person is at the keyboard.
        return clock.map(|_| Next::Note(AttemptEvent::ClockStopped));
    }
    let left = match clock {
        None => auto_delay(model, attempt.cause),
        Some(clock) => clock.left(model),
    };
    if left.is_zero() {
        return is_free(model).then_some(goes_ahead);
    }
    clock.is_none().then_some(Next::StartClock(left))
}

/// Approves a reboot that a script has asked for where no one can look at the review: whether a trim helps is known only after the
/// transcript was read.
pub(super) fn unattended(model: &Model) -> Option<Next> {
    let is_asked = model.reboot.has_attempt(|one| one.cause == Cause::Ctl);
    if !(is_asked && is_unattended(model) && is_under_review(model)) {
        return None;
    }
    match approve(model, Approval::Auto) {
        Ok(next) => Some(next),
        Err(Refusal::TrimUnknown | Refusal::HandoffOpen) => None,
        Err(why) => Some(Next::End(End::Refused(why.to_string()))),
    }
}

/// Reports whether the reboot began by itself and nothing was done yet. A reboot that a person has asked for, has approved or is
/// looking at is left to that person.
fn is_ours(model: &Model, attempt: &Attempt) -> bool {
    model.view.overlay != Some(Overlay::Review)
        && attempt.is_by_itself()
        && attempt.is_harmless()
        && !attempt.is_by_person()
}

/// Judges a reboot that has begun by itself: the error is the reason that it is to be given up, because its own reason has gone.
/// Otherwise returns whether the context is full.
fn judge(model: &Model, attempt: &Attempt) -> Result<bool, &'static str> {
    let (manual, paused) = (model.reboot.mode == RebootMode::Manual, model.reboot.paused);
    // A run that begins a session for every turn does so in any mode.
    if paused || (manual && attempt.cause != Cause::Autopilot) {
        return Err("automatic reboots are off");
    }
    if let Some(why) = no_service(model) {
        return Err(why);
    }
    let figure = deciding_figure(model);
    let level = figure.as_ref().map(|figure| figure.level);
    let full = level >= Some(Level::Overflow);
    let used = figure.as_ref().map(|figure| figure.used);
    match attempt.cause {
        _ if full => Ok(true),
        Cause::Threshold => Err("the context is not full any more"),
        // A finished piece of work is no good place to stop once something else has begun.
        Cause::Breakpoint if level < Some(Level::Critical) || breakpoint::what(model).is_none() => {
            Err("the good moment has passed")
        }
        // The client knows its limit better than we do: a lower figure than before means that there is room again.
        Cause::ContextLimit if used < attempt.used => Err("the context is not full any more"),
        _ => Ok(false),
    }
}

/// Returns the steps that give up a reboot that began by itself.
fn withdraw(attempt: &Attempt, why: &str) -> Next {
    let note = format!("the reboot is no longer due: {why}");
    let taken_back = on_the_fly::take_back(attempt, RebootOutcome::Withdrawn);
    Next::All(vec![Next::Do(Act::Log(note)), taken_back])
}

/// Returns the steps that give up the reboot under way for this reason, if it began by itself and nothing was done yet.
pub(super) fn withdraw_ours(model: &Model, why: &str) -> Option<Next> {
    let attempt = model.reboot.attempt.as_ref();
    let ours = attempt.filter(|attempt| is_ours(model, attempt));
    ours.map(|attempt| withdraw(attempt, why))
}

/// Returns the steps that withdraw an armed reboot that began by itself when the agent's process has ended: what is to be done is
/// decided again.
pub(super) fn agent_ended(model: &Model) -> Option<Next> {
    let unapproved = model.reboot.has_attempt(|one| one.approved.is_none());
    // A run goes on in the next session.
    (unapproved && model.autopilot.is_none())
        .then(|| withdraw_ours(model, "the agent has ended"))
        .flatten()
}

/// Reports whether a reboot goes ahead by itself once a person has had the time to refuse, and they can see that.
fn may_announce(model: &Model, attempt: &Attempt) -> bool {
    let announced = attempt.is_by_itself()
        && is_under_review(model)
        && attempt.held.is_none()
        && model.reboot.mode == RebootMode::Auto
        && !model.reboot.paused;
    // Whatever lies over the screen hides the banner, and an editor everything.
    let seen = model.view.overlay.is_none() && model.view.external.is_none();
    // The person at the keyboard is given the whole time again.
    let at_keyboard = blocked_by(model).contains(&Block::Typing) || is_editing(model);
    announced && seen && !at_keyboard
}

/// Returns the timer to set again when the clock has moved on.
pub fn tick(model: &Model, epoch: u64) -> Option<Effect> {
    let clock = model.reboot.attempt.as_ref()?.clock()?;
    let left = clock.left(model);
    // Once it is due, every event asks whether this is the moment.
    (clock.epoch == epoch && !left.is_zero())
        .then(|| Effect::SetTimer(TimerId::AutoDelay(epoch), left.min(TICK)))
}
