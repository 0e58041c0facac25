//! The unsent prompt: what a person has typed into the agent's prompt box and not submitted goes over into the next session's
//! box, unsent.
//!
//! ```text
//! old session: prompt box read ─► kept on disk ─► prompt box read again, and alike ─► the agent ends
//! new session: prompt box empty ─► typed, without an Enter ─► the box shows it ─► taken off the disk
//! ```
//!
//! It is kept on disk between the two, so that it stands in the next session's box even if pitstop itself ends meanwhile.

use crate::{agent::claude::prompt_box::PromptBox, api::wire::AgentState, clock::At};

use super::{effect::Effect, model::Model, say};

/// What the agent's prompt box holds that a person has not submitted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Unsent {
    /// Nothing.
    Nothing,
    /// This text.
    Text(String),
    /// Something that cannot be read whole: it is higher than the screen, or has an image or a long paste in it, or the box
    /// is not on the screen.
    Unreadable,
}

/// What the prompt box holds now.
#[must_use]
pub fn unsent(model: &Model) -> Unsent {
    // Of other programs no prompt box is known.
    if model.is_generic() || model.saying.is_some() || is_ours(model) {
        return Unsent::Nothing;
    }
    match &model.agent.prompt_box {
        PromptBox::Holds(draft) => draft.text().map_or(Unsent::Unreadable, Unsent::Text),
        PromptBox::Absent if model.agent.draft && model.agent.state != AgentState::Exited => {
            Unsent::Unreadable
        }
        PromptBox::Absent | PromptBox::Empty => Unsent::Nothing,
    }
}

/// Whether what stands there was typed by us: the agent died before it was submitted.
fn is_ours(model: &Model) -> bool {
    let Some((text, since)) = &model.said else {
        return false;
    };
    let by_person = |typed: At| typed.since_start >= since.since_start;
    !model.agent.typed_at.is_some_and(by_person) && model.agent.prompt_box.holds_start_of(text)
}

/// How far a draft is on its way to the disk.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum OnDisk {
    /// There is none.
    #[default]
    Nothing,
    /// This one is being written.
    Ordered(String),
    /// This one is there.
    Kept(String),
}

/// Has what the prompt box holds written to disk, before anything is done to the session that it stands in. `None` once it is
/// there.
pub fn keep(model: &Model, on_disk: &mut OnDisk) -> Option<Vec<Effect>> {
    let Unsent::Text(text) = unsent(model) else {
        return None;
    };
    match on_disk {
        OnDisk::Kept(kept) if *kept == text => None,
        OnDisk::Ordered(ordered) if *ordered == text => Some(Vec::new()),
        _ => {
            *on_disk = OnDisk::Ordered(text.clone());
            Some(vec![Effect::KeepDraft(Some(text))])
        }
    }
}

/// The old session is about to end: what its prompt box holds goes over.
pub fn take(model: &mut Model, on_disk: &OnDisk) -> Vec<Effect> {
    match unsent(model) {
        Unsent::Text(text) => {
            model.unsent = Some(text);
            Vec::new()
        }
        // One that is waiting to be put back already goes over to the session after.
        Unsent::Nothing => forget(model, on_disk),
        Unsent::Unreadable => {
            model.trouble("your unsent prompt could not be read, and goes with the session");
            forget(model, on_disk)
        }
    }
}

/// A draft that was kept for the next session stays in the old one, or was submitted there.
pub fn forget(model: &Model, on_disk: &OnDisk) -> Vec<Effect> {
    if *on_disk == OnDisk::Nothing {
        return Vec::new();
    }
    // One from before has its place on disk again.
    vec![Effect::KeepDraft(model.unsent.clone())]
}

/// One was left by a pitstop that did not come to put it back.
pub fn found(model: &mut Model, text: String) {
    model.unsent.get_or_insert(text);
}

/// Puts it into the prompt box as soon as that is empty and nothing of ours is still to be typed there.
pub fn put_back(model: &mut Model) -> Vec<Effect> {
    let Some(text) = &model.unsent else {
        return Vec::new();
    };
    let ready = matches!(model.agent.state, AgentState::Idle | AgentState::Busy);
    if model.reboot.attempt.is_some() || !ready || say::refusal(model).is_some() {
        return Vec::new();
    }
    let text = text.clone();
    say::put(model, &text).unwrap_or_default()
}

/// The prompt box shows it.
pub fn stands(model: &mut Model, text: &str) -> Vec<Effect> {
    model.agent.draft = true;
    if model
        .unsent
        .as_deref()
        .map(crate::handoff::sendable)
        .as_deref()
        != Some(text)
    {
        return Vec::new();
    }
    model.unsent = None;
    model.notice("your unsent prompt stands in the prompt box again, still unsent");
    vec![Effect::KeepDraft(None)]
}

/// It did not come to stand there; it is kept for the next start.
pub fn lost_sight(model: &mut Model) {
    if model.unsent.take().is_some() {
        model.trouble(
            "your unsent prompt could not be put back: it is kept, and the next start tries again",
        );
    }
}
