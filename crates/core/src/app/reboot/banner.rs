//! The banner about a reboot, which is on the screen until it is answered, or until the reason for it has gone.
//!
//! Unlike a notice it is no message of a few seconds: it is derived from the model whenever a frame is drawn.

use std::time::Duration;

use crate::{api::wire::CacheReport, config::RebootMode, guard::Level, lineage::journal::Step};

use super::{Attempt, timing::is_free};
use crate::app::{
    cold_cache,
    facts::{Block, answer_left, blocked_by, is_editing, is_quiet},
    model::{
        Model, Overlay,
        reboot::{Breaker, QuietReason, Wish},
    },
};

/// The message about a reboot that has not begun.
#[derive(Clone, Debug, PartialEq)]
pub enum Banner {
    /// It waits for an approval.
    Asks,
    /// The client waits in a compaction for this much longer.
    Holds(Duration),
    /// `auto` goes ahead after this time.
    CountsDown(Duration),
    /// Automatic reboots are off for now: the reason, and the number of turns for which this holds.
    Quiet(QuietReason, u32),
    /// A breaker holds it back.
    Held(Breaker),
    /// `auto` prepares it, and goes ahead once these are over.
    Waits(Vec<Block>),
    /// The agent asks for one, for this reason.
    Wished(String),
    /// It was refused before anything was done, for this reason.
    Refused(String),
    /// It is approved and goes ahead once these are over.
    Approved(Vec<Block>),
    /// It is approved and goes ahead at the agent's next step.
    AwaitsStep,
    /// The prompt cache is cold, and a fresh session would be cheaper.
    ColdCache(CacheReport),
    /// So it is, and a prompt waits for this much longer.
    HoldsPrompt(CacheReport, Duration),
}

/// Returns the banner that is on the screen now. The review shows everything itself.
pub fn banner(model: &Model) -> Option<Banner> {
    if model.outside.quitting().is_some() || model.view.overlay == Some(Overlay::Review) {
        return None;
    }
    if let Some(held) = &model.session.held_prompt {
        let left = held.until.saturating_sub(model.now.since_start);
        return cold_cache::report(model).map(|cache| Banner::HoldsPrompt(cache, left));
    }
    match &model.reboot.attempt {
        Some(attempt) => under_way(model, attempt),
        None => unbegun(model),
    }
}

/// Returns the banner where no reboot is under way.
fn unbegun(model: &Model) -> Option<Banner> {
    let reboot = &model.reboot;
    quiet(model)
        .or_else(|| reboot.held_by.map(Banner::Held))
        .or_else(|| reboot.refused.clone().map(Banner::Refused))
        .or_else(|| wish(model).map(|wish| Banner::Wished(wish.reason.clone())))
        .or_else(|| cold_cache::advised(model).map(Banner::ColdCache))
}

fn under_way(model: &Model, attempt: &Attempt) -> Option<Banner> {
    if attempt.awaited_order().is_some() {
        return Some(Banner::AwaitsStep);
    }
    match attempt.step() {
        Step::Armed | Step::Drafting | Step::Review if attempt.approved.is_none() => {
            Some(unapproved(model, attempt))
        }
        Step::Waiting => Some(blocked_by(model))
            .filter(|blocks| !blocks.is_empty())
            .map(Banner::Approved),
        _ => None,
    }
}

fn unapproved(model: &Model, attempt: &Attempt) -> Banner {
    let by_itself = attempt.is_by_itself() && model.reboot.mode == RebootMode::Auto;
    if let Some(clock) = attempt.clock().filter(|_| by_itself && is_free(model)) {
        return Banner::CountsDown(clock.left(model));
    }
    if let Some(left) = answer_left(model) {
        return Banner::Holds(left);
    }
    if !by_itself {
        return Banner::Asks;
    }
    let mut blocks = blocked_by(model);
    if is_editing(model) && !blocks.contains(&Block::Editor) {
        blocks.push(Block::Editor);
    }
    Banner::Waits(blocks)
}

/// Returns the request of the present agent, until it is answered.
pub fn wish(model: &Model) -> Option<&Wish> {
    let wish = model.reboot.wish.as_ref();
    wish.filter(|wish| wish.session == model.session.id)
}

/// Returns the reason that no reboot begins by itself, though it would be time for one.
fn quiet(model: &Model) -> Option<Banner> {
    let quiet = model.reboot.quiet.as_ref()?;
    let shown = is_quiet(model) && shows_quiet(model, &quiet.reason);
    let turns = quiet.until_turn.saturating_sub(model.session.agent.turns);
    shown.then(|| Banner::Quiet(quiet.reason.clone(), turns))
}

/// Reports whether a quiet time for this reason has a banner: a reboot could begin by itself, and it would be time for one. One
/// that a person has put off is shown as deferred, be it for a good moment or a full window.
pub(super) fn shows_quiet(model: &Model, reason: &QuietReason) -> bool {
    let figure = model.session.guard.figure(model.now);
    model.reboot.mode != RebootMode::Manual
        && !model.reboot.paused
        && figure.is_some_and(|figure| {
            figure.level >= Level::Overflow || *reason == QuietReason::Deferred
        })
}
