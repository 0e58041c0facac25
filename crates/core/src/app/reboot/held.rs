//! The two answers to a client that waits in a compaction.

use pitstop_agent::bridge::Decision;

use crate::app::{
    effect::Effect,
    facts::{answers_at_once, holds_compaction, is_under_review},
    model::{
        Model, Overlay,
        reboot::{Phase, Replacing},
    },
};

/// Gives the client the handoff, if it waits for one; returns whether it does.
pub(super) fn answer(model: &mut Model) -> bool {
    let Some(attempt) = &mut model.reboot.attempt else {
        return false;
    };
    let (Some(held), Some(handoff)) = (&mut attempt.held, &attempt.handoff) else {
        return false;
    };
    if std::mem::replace(&mut held.answered, true) {
        return false;
    }
    let id = held.id.clone();
    let text = handoff.text.clone();
    let decision = Decision::Replace { text };
    model.emit(Effect::AnswerQuestion { id, decision });
    true
}

/// Lets the client continue in its own way, if it still waits. A reboot under review goes on as any other.
pub(super) fn let_go(model: &mut Model) {
    if let Some(attempt) = &mut model.reboot.attempt
        && let Some(held) = attempt.held.take_if(|held| !held.answered)
    {
        let (id, decision) = (held.id, Decision::Client);
        model.emit(Effect::AnswerQuestion { id, decision });
    }
}

/// Refuses a reboot whose handoff the client was given and has not put in force: its person has stopped the compaction.
pub(super) fn stopped_in_client(model: &mut Model) {
    if let Some(attempt) = &mut model.reboot.attempt
        && let Phase::Replacing(replacing) = &mut attempt.phase
    {
        let why = "the client has not taken the handoff: its compaction was stopped".to_owned();
        *replacing = Replacing::Refused(why);
    }
}

/// Reports whether the compaction is answered now without asking a person.
pub(super) fn is_due(model: &Model) -> bool {
    let read = model.view.overlay == Some(Overlay::Review);
    holds_compaction(model) && is_under_review(model) && answers_at_once(model) && !read
}
