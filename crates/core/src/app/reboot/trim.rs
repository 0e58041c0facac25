//! The third way of a reboot: what a trim of the session would free, and whether it is offered.
//!
//! While a review is open the transcript is surveyed, and again when it has grown, with pauses in proportion to the cost of a
//! survey. The way that a person chose never changes by itself: if a later survey shows that a trim is not enough, the approval is
//! refused with the reason.

use crate::{guard::threshold::Threshold, lineage::Way};
use pitstop_transcript::{Tokens, trim::TrimSettings};

use super::next::Next;
pub use crate::app::{
    facts::{base_load, fresh_tokens},
    model::trim::{NotOffered, Offer, Preview, SurveyEvent},
};
use crate::app::{
    facts::{holds_compaction, on_the_fly_refusal, replace_refusal},
    model::{Model, attempt::AttemptEvent, reboot::Kind},
    refusal::Refusal,
};

/// Returns the settings by which a trim is measured now: against the compact line that the gauge shows.
pub(super) fn settings(model: &Model) -> TrimSettings {
    let lines = model.session.guard.assess(Tokens(0)).lines;
    TrimSettings {
        compact_line: lines.at(Threshold::Compact),
        max_recent_messages: model.config.context.max_recent_messages,
    }
}

/// Returns what a trim would do, or the reason that it is not offered.
pub fn offer(model: &Model) -> Result<Offer, NotOffered> {
    if model.is_generic() {
        return Err(NotOffered::Generic);
    }
    let attempt = model.reboot.attempt.as_ref().ok_or(NotOffered::Reading)?;
    attempt.preview.offer()
}

/// Returns the trim, or a fresh session if the trim is chosen. A trim may be chosen before it is known whether it is offered: its
/// approval waits.
pub(in crate::app) fn other_way(model: &Model) -> Way {
    match model.reboot.attempt.as_ref().map(|one| one.kind) {
        Some(Kind::Trim) => Way::Fresh,
        _ => Way::Trim,
    }
}

/// Returns the way that follows the one that is chosen: fresh, in place, trim, in a running turn on the fly, and fresh again.
pub fn next_way(model: &Model) -> Way {
    match model.reboot.attempt.as_ref().map(|one| one.kind) {
        _ if holds_compaction(model) => Way::InPlace,
        Some(Kind::Trim) if on_the_fly_refusal(model).is_none() => Way::OnTheFly,
        Some(Kind::Trim | Kind::OnTheFly) => Way::Fresh,
        Some(Kind::Fresh) if replace_refusal(model).is_none() => Way::InPlace,
        Some(Kind::InPlace) if !is_selectable(model) && on_the_fly_refusal(model).is_none() => {
            Way::OnTheFly
        }
        Some(Kind::InPlace) if !is_selectable(model) => Way::Fresh,
        _ => Way::Trim,
    }
}

/// Reports whether a trim may be chosen now.
fn is_selectable(model: &Model) -> bool {
    matches!(offer(model), Ok(_) | Err(NotOffered::Reading))
}

/// Returns the reason that this way cannot be taken by what is known of the agent, if so.
pub fn refusal_of(model: &Model, way: Way) -> Option<Refusal> {
    match way {
        Way::InPlace => replace_refusal(model).map(Refusal::NotInPlace),
        Way::OnTheFly => on_the_fly_refusal(model).map(Refusal::NotOnTheFly),
        Way::Fresh | Way::Trim => None,
    }
}

/// Returns the step that takes this way.
pub(super) fn choice(model: &Model, way: Way) -> Result<Next, Refusal> {
    if way != Way::InPlace && holds_compaction(model) {
        return Err(Refusal::OnlyInPlace);
    }
    if let Some(why) = refusal_of(model, way) {
        return Err(why);
    }
    if way == Way::Trim
        && let Err(why) = offer(model)
        && why != NotOffered::Reading
    {
        return Err(Refusal::TrimNotOffered(why));
    }
    let attempt = model.reboot.attempt.as_ref();
    let attempt = attempt.ok_or(Refusal::NoReview)?;
    if !attempt.is_open() {
        return Err(Refusal::WaySettled(attempt.step()));
    }
    Ok(Next::Note(AttemptEvent::WayChosen(way)))
}

/// Checks whether a reboot can be approved in the way that is chosen.
pub(super) fn check(model: &Model) -> Result<(), Refusal> {
    if !(model.reboot).has_attempt(|one| one.kind == Kind::Trim && one.is_open()) {
        return Ok(());
    }
    match offer(model) {
        Ok(_) => Ok(()),
        Err(NotOffered::Reading) => Err(Refusal::TrimUnknown),
        Err(why) => Err(Refusal::NoTrim(why)),
    }
}
