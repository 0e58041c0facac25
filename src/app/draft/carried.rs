//! What a session carries of its lineage is kept within a second of each change, and taken up by whatever comes back to it.
//!
//! ```text
//! a change ─► a moment ─► the store, under the session        resumed, restored or recovered ─► taken up from the store
//! the iteration ends, or we do ─► at once                     undone ─► as it was at the iteration's end
//! ```

use std::{
    hash::{DefaultHasher, Hash as _, Hasher as _},
    time::Duration,
};

use crate::{
    api::wire::AgentState,
    handoff::{PreservedState, preserved::texts},
    lineage::IterationId,
    transcript::SessionId,
};

use crate::app::{
    draft::handoff,
    effect::Effect,
    event::TimerId,
    facts::unsent,
    model::{Editor, Model, carried::Carried, draft::Draft, unsent::Unsent},
};

/// How long a change may wait for others that come with it.
const KEPT_AFTER: Duration = Duration::from_millis(400);

/// Something has happened: what has changed is kept in a moment.
pub fn watch(model: &mut Model) {
    // A reboot orders it, too.
    note_draft(model);
    let keeping = &model.draft.keeping;
    if !keeping.due && (keeping.kept != Some(fingerprint(model)) || new_draft(model).is_some()) {
        model.draft.keeping.due = true;
        model.emit(Effect::SetTimer(TimerId::KeepCarried, KEPT_AFTER));
    }
}

/// Takes note of the unsent prompt that was ordered onto the disk last.
fn note_draft(model: &mut Model) {
    for effect in &model.happened.effects {
        if let Effect::KeepDraft(text) = effect {
            model.draft.keeping.draft.clone_from(text);
        }
    }
}

/// Has the disk hold what the prompt box does, if that has changed. Between two sessions, and while we leave, the box says nothing
/// of what a person wants.
fn new_draft(model: &Model) -> Option<Effect> {
    let at_rest = model.reboot.attempt.is_none()
        && model.reboot.unsent.is_none()
        && model.outside.quitting.is_none()
        && matches!(
            model.session.agent.state,
            AgentState::Idle | AgentState::Busy
        );
    let now = match unsent(model) {
        _ if !at_rest => return None,
        Unsent::Text(text) => Some(text),
        Unsent::Nothing => None,
        Unsent::Unreadable => return None,
    };
    (now != model.draft.keeping.draft).then_some(Effect::KeepDraft(now))
}

/// Keeps what has changed.
pub fn keep(model: &mut Model) {
    model.draft.keeping.due = false;
    let draft = new_draft(model);
    model.emit_all(draft);
    note_draft(model);
    let print = fingerprint(model);
    if model.draft.keeping.kept.replace(print) != Some(print) {
        let carried = now(model);
        let session = model.session.id;
        model.emit(Effect::KeepCarried(session, Box::new(carried)));
    }
}

/// The iteration ends: what its session carries stays as it is.
pub fn leave(model: &mut Model) {
    if model.lineage.iterations().is_empty() {
        return;
    }
    keep(model);
    let carried = now(model);
    let iteration = model.session.iteration;
    model.draft.keeping.at_ends.insert(iteration, carried);
}

/// The agent goes on from a session that was here before, as that was at the end of this iteration if that is known.
pub fn come_back(model: &mut Model, of: SessionId, iteration: Option<IterationId>) {
    let known = iteration.and_then(|one| model.draft.keeping.at_ends.get(&one));
    if let Some(carried) = known.cloned() {
        return take(model, carried);
    }
    let session = model.session.id;
    model.emit(Effect::ReadCarried { of, session });
}

/// The store has this of a session that was come back to; nothing of one that never was here.
pub fn read(model: &mut Model, session: SessionId, carried: Option<Carried>) {
    if session == model.session.id {
        take(model, carried.unwrap_or_default());
    }
}

/// Goes on with what was carried. What a human has said since stays.
fn take(model: &mut Model, mut carried: Carried) {
    carried.keep_human(&model.draft.signalled);
    model.draft.signalled = carried.state;
    model.draft.requests = carried.requests;
    model.draft.todo.restore(carried.done, carried.open);
}

/// The first session of this process was here before: also what a human has edited is as it was.
pub fn take_up(model: &mut Model, mut carried: Carried) {
    let edited = carried.edited.take();
    take(model, carried);
    if let Some(body) = edited {
        handoff::keep(model, &body);
        model.info("your edit of the handoff is back as you left it");
    }
}

/// What the session carries now.
fn now(model: &Model) -> Carried {
    let draft = &model.draft;
    let mut listed = PreservedState::default();
    draft.todo.feed(&mut listed);
    Carried {
        state: draft.signalled.clone(),
        requests: draft.requests.clone(),
        done: texts(&listed.completed_items),
        open: texts(&listed.pending_items),
        edited: edited(draft),
        args: model.identity.agent_args.clone(),
    }
}

/// The body of the handoff as the human has edited it, or does now.
fn edited(draft: &Draft) -> Option<String> {
    let panel = &draft.handoff;
    let open = panel.editor.as_ref().map(Editor::text);
    open.or_else(|| Some(panel.edited.as_ref()?.body().to_owned()))
}

/// A number that changes with what a session carries.
fn fingerprint(model: &Model) -> u64 {
    let draft = &model.draft;
    let mut hasher = DefaultHasher::new();
    model.session.id.hash(&mut hasher);
    (&draft.signalled, &draft.requests, &draft.todo).hash(&mut hasher);
    edited(draft).hash(&mut hasher);
    hasher.finish()
}
