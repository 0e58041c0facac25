//! The times at which a reboot may begin by itself: what rules one out, and what cannot be waited for any longer.

use crate::{api::wire::AgentState, config::RebootMode};

use super::{Kind, next::Next};
use crate::app::{
    facts::{
        Block, answers_at_once, blocked_by, deciding_figure, holds_compaction, is_editing,
        is_forced, is_safe, is_under_review, turn_runs,
    },
    model::{
        Model, Overlay,
        attempt::AttemptEvent,
        reboot::{Attempt, Quiet, QuietReason},
    },
};

/// Returns the quiet time, from now on, of so many more turns.
pub(super) fn quiet_for(model: &Model, turns: u32, reason: QuietReason) -> Quiet {
    Quiet {
        reason,
        until_turn: model.session.agent.turns.saturating_add(turns),
        forced: is_forced(model) || was_forced(model),
    }
}

/// Reports whether the session that was brought back had passed the force line when it was left, while its present figure is not
/// known yet.
fn was_forced(model: &Model) -> bool {
    let parent = model.current_iteration().and_then(|one| one.parent);
    let left = parent.and_then(|parent| model.lineage.get(parent)?.tokens_at_end);
    deciding_figure(model).is_none()
        && left.is_some_and(|left| model.session.guard.assess(left).is_forced())
}

/// Reports whether a reboot may begin by itself at this moment: a safe one, on the fly, or in a turn that has gone on for too long.
pub(super) fn is_free(model: &Model) -> bool {
    is_safe(model) || outlasts(model) || goes_on_the_fly(model)
}

/// Reports whether the running turn is all that is in the way, and `auto` waits for its end no longer: past the force line, and
/// once the patience is over.
fn outlasts(model: &Model) -> bool {
    let attempt = model.reboot.attempt.as_ref();
    let armed = attempt.and_then(|attempt| attempt.entered.first());
    // A turn that began while something else was waited for has the whole time.
    let began = model.session.agent.activity.began;
    let waited = armed.map(|(_, at)| {
        let waited = model.now.since(*at);
        began.map_or(waited, |began| waited.min(model.now.since(began)))
    });
    let patience = model.config.reboot.turn_patience;
    model.reboot.mode == RebootMode::Auto
        && model.session.agent.state == AgentState::Busy
        && (is_forced(model) || waited.is_some_and(|waited| waited >= patience))
        && blocked_by(model) == [Block::Turn]
}

/// Has such a turn cut where that is possible: between two steps, and past the force line within one too.
pub(super) fn cut(model: &Model) -> Option<Next> {
    let cuts = outlasts(model) && (model.scratch.at_seam || is_forced(model));
    cuts.then(|| Next::Note(AttemptEvent::OutWaited))
}

/// Reports whether `auto` is about to cut a turn within a step, though the force line is not passed.
pub(super) fn is_within_call(model: &Model, attempt: &Attempt) -> bool {
    let in_call = model.session.agent.state == AgentState::Busy && model.session.is_in_call();
    attempt.is_by_auto() && in_call && !is_forced(model)
}

/// Reports whether `auto` goes ahead on the fly, without a moment that it waits for.
pub(super) fn goes_on_the_fly(model: &Model) -> bool {
    (model.reboot).has_attempt(|one| one.kind == Kind::OnTheFly && one.is_by_itself())
        && model.reboot.mode == RebootMode::Auto
        && !model.reboot.paused
        && model.view.overlay != Some(Overlay::Review)
        && !is_editing(model)
        && model.session.agent.state == AgentState::Busy
        && turn_runs(model)
}

/// Reports whether a compaction of the client's is answered now without asking a person.
pub(super) fn is_answer_due(model: &Model) -> bool {
    let read = model.view.overlay == Some(Overlay::Review);
    holds_compaction(model) && is_under_review(model) && answers_at_once(model) && !read
}
