//! The state that a session carries of its lineage: it is kept within a second of each change, and taken up by whatever comes back to
//! it. So is what the session has cost, which counts for the caps of a run that goes on after the end of its supervisor.
//!
//! ```text
//! a change ─► a moment ─► the store, under the session        resumed, restored or recovered ─► taken up from the store
//! the iteration ends, or we do ─► at once                     undone ─► as it was at the iteration's end
//! ```

use std::{borrow::Cow, time::Duration};

use crate::{api::wire::AgentState, lineage::IterationId};
use pitstop_transcript::SessionId;

use crate::app::{
    consequences::Consequences,
    draft::{handoff, record::save_iteration},
    effect::Effect,
    event::TimerId,
    facts::{expanded_text, queued, unsent},
    model::{
        CarryOut, Identity, Model,
        carried::{Carried, Keeping},
        draft::HandoffDraft,
        progress::hash_of,
        reboot::Attempt,
        session::Session,
        unsent::Unsent,
    },
};

/// The time that a change may wait for others that come with it.
const KEPT_AFTER: Duration = Duration::from_millis(400);

/// The number of iterations whose carried state at their ends is in memory; for an older one, the state that the store has of its
/// session is used.
const ENDS_KEPT: usize = 64;

impl Keeping {
    /// Takes note of the unsent prompt that was ordered onto the disk last.
    fn note_draft(&mut self, effects: &[Effect]) {
        for effect in effects {
            if let Effect::KeepDraft(text) = effect {
                self.draft.clone_from(text);
            }
        }
    }

    /// Takes note of the unsent prompt that was found on the disk.
    pub(in crate::app) fn draft_found(&mut self, text: &str) {
        self.draft = Some(text.to_owned());
    }

    /// Returns the order to read what the store has of a session that this `session` goes on from. Until it is known, nothing is kept
    /// over it.
    pub(in crate::app) const fn ask(&mut self, of: SessionId, session: SessionId) -> Effect {
        self.asked = Some(session);
        Effect::ReadCarried { of, session }
    }
}

impl HandoffDraft {
    /// Takes over what was carried. What a human has written since stays.
    fn take_carried(&mut self, mut carried: Carried) {
        let (state, now) = (&mut carried.state, &self.signalled);
        state.withdraw_all(&now.withdrawn);
        state.add_constraints(now.prompts().cloned());
        self.signalled = carried.state;
        self.requests = carried.requests;
        self.note_left(carried.left_sessions);
        if !carried.before.is_empty() {
            self.rewinds.prompts = carried.before;
        }
        self.todo.restore(carried.todo);
        (self.goal, self.goal_due) = (carried.goal, carried.goal_due);
    }

    /// Takes up a session that was here before and from which the agent continues in `session`, as it was at the end of this iteration
    /// if that is known.
    pub(in crate::app) fn come_back(
        &mut self,
        of: SessionId,
        session: SessionId,
        iteration: Option<IterationId>,
    ) -> Option<Effect> {
        let keeping = &mut self.keeping;
        keeping.read_before = None;
        let known = iteration.and_then(|one| keeping.at_ends.get(&one).cloned());
        let asks = known.is_none().then(|| keeping.ask(of, session));
        self.take_carried(known.unwrap_or_default());
        asks
    }

    /// Keeps what the session carries, if that has changed.
    fn keep_state(&mut self, session: &Session, identity: &Identity) -> Option<Effect> {
        let print = change(self, session.id, &identity.agent_args)?;
        self.keeping.kept = Some(print);
        self.keeping.session = Some(session.id);
        let carried = now(self, session, identity);
        Some(Effect::KeepCarried(session.id, Box::new(carried)))
    }

    /// Keeps the human's edit of the handoff at once, before a step of a reboot: of the two on disk, the message in the journal is never
    /// the newer one.
    pub(in crate::app) fn keep_edit(
        &mut self,
        session: &Session,
        own: &Identity,
    ) -> Option<Effect> {
        edited(self)?;
        self.keep_state(session, own)
    }

    /// Notes what the session carries at the end of its iteration, where it stays as it is.
    pub(in crate::app) fn note_end(&mut self, session: &Session, identity: &Identity) {
        let mut carried = now(self, session, identity);
        // The earlier states are in memory already.
        carried.before.clear();
        let at_ends = &mut self.keeping.at_ends;
        at_ends.insert(session.iteration(), carried);
        if at_ends.len() > ENDS_KEPT {
            at_ends.pop_first();
        }
    }

    /// Takes over the store's state of the session that the agent came back to, or nothing, if it never was here.
    pub(in crate::app) fn carried_read(
        &mut self,
        found: Result<Option<Box<Carried>>, String>,
    ) -> Consequences {
        let mut follows = Consequences::default();
        match found {
            Ok(carried) => {
                self.keeping.asked = None;
                if let Some(carried) = carried {
                    self.take_carried(*carried);
                }
            }
            Err(why) => follows.error(unknown(&why)),
        }
        follows
    }
}

/// Returns the order to keep the prompt box's text on disk, if that has changed.
fn new_draft(model: &Model) -> Option<Effect> {
    let now = last_unsent(model);
    (now != model.draft.keeping.draft).then_some(Effect::KeepDraft(now))
}

/// Returns what a person has typed and the agent has not been given. Between two sessions, and while we leave, the box does not show
/// what a person wants: then it is what was kept last. A reboot that is announced or waits has not touched the box yet.
pub fn last_unsent(model: &Model) -> Option<String> {
    let at_rest = !model.reboot.has_attempt(Attempt::hides_prompt_box)
        && model.outside.quitting().is_none()
        && matches!(
            model.session.agent.state,
            AgentState::Idle | AgentState::Busy | AgentState::Limit | AgentState::Elsewhere
        );
    let kept = || model.draft.keeping.draft.clone();
    if !at_rest {
        return kept();
    }
    let waiting = model.reboot.unsent.as_ref();
    let waiting = || waiting.map(|waiting| waiting.text.clone());
    let now = match unsent(model) {
        Unsent::Text(text) => Some(text),
        Unsent::Nothing => waiting(),
        // What was kept before is not what a person wants any more. A mark shows the person who resumes it what is lost.
        Unsent::Unreadable => match expanded_text(model) {
            None => return kept(),
            marked => waiting()
                .into_iter()
                .chain(marked)
                .reduce(|before, marked| format!("{before}\n{marked}")),
        },
    };
    let texts = queued(model).iter().cloned().chain(now);
    let texts = texts.collect::<Vec<_>>().join("\n");
    Some(texts).filter(|texts| !texts.is_empty())
}

/// The time at which what has changed is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Keep {
    /// Everything at once.
    Now,
    /// In a moment, with what comes until then. What a session begins with is kept at once: until then all of it is only under the
    /// session before, and who comes back to this one would find nothing.
    Soon,
}

/// Keeps what has changed.
pub fn keep(model: &mut Model, when: Keep) {
    // A reboot orders it, too.
    model.draft.keeping.note_draft(&model.scratch.effects);
    let is_new = model.draft.keeping.session != Some(model.session.id);
    let args = &model.identity.agent_args;
    let changed = change(&model.draft, model.session.id, args).is_some();
    // We may leave before the moment is over for which a change waits for others.
    let waits = when == Keep::Soon && model.outside.quitting().is_none();
    if waits && !(is_new && changed) {
        let changed = || changed || new_draft(model).is_some() || has_cost_more(model);
        if !model.draft.keeping.due && changed() {
            model.draft.keeping.due = true;
            model.emit(Effect::SetTimer(TimerId::KeepCarried, KEPT_AFTER));
        }
        return;
    }
    model.draft.keeping.due = false;
    new_draft(model).carry_out(model);
    model.draft.keeping.note_draft(&model.scratch.effects);
    let kept = (model.draft).keep_state(&model.session, &model.identity);
    model.emit_all(kept);
    if has_cost_more(model) {
        save_iteration(model);
    }
}

/// Reports whether the present iteration has cost more than its record says. A turn may go on for hours, and costs with each call.
fn has_cost_more(model: &Model) -> bool {
    let recorded = model
        .lineage
        .current()
        .map(|one| one.cost_usd.unwrap_or(0.0));
    let now = model.session.spending.cost();
    recorded
        .zip(now)
        .is_some_and(|(recorded, now)| now > recorded)
}

/// Returns the fingerprint of what the session carries, if that is to be kept. The state in the store is not overwritten before it
/// is known.
fn change(draft: &HandoffDraft, session: SessionId, args: &[String]) -> Option<u64> {
    let keeping = &draft.keeping;
    let asked = keeping.asked == Some(session);
    let print = (!asked).then(|| fingerprint(draft, session, args));
    print.filter(|_| print != keeping.kept)
}

/// Returns the notice for a person when the store does not answer.
pub fn unknown(why: &str) -> String {
    format!("what this session carried is not known, and nothing is kept over it: {why}")
}

/// Takes up the first session of this process, which was here before: also what a human has edited is as it was. The state was kept
/// under the session `of`, of whose transcript the rest is still to be read: a reboot that is found unfinished goes on in another.
pub fn take_up(
    model: &mut Model,
    of: Option<SessionId>,
    mut found: Result<Option<Box<Carried>>, String>,
) {
    let carried = found.as_mut().ok().and_then(Option::as_mut);
    let session = model.session.id;
    let known = carried.as_ref().map_or(0, |carried| carried.read);
    model.draft.keeping.read_before = Some((of.unwrap_or(session), known));
    let edited = carried.and_then(|carried| {
        let edits = std::mem::take(&mut carried.edits);
        carried.edited.take().zip(Some(edits))
    });
    model.draft.keeping.asked = Some(session);
    model.draft.carried_read(found).carry_out(model);
    if let Some((body, edits)) = edited {
        handoff::draft(model);
        model.draft.restore_body(&body);
        model.draft.handoff.edits = edits;
        model.info("your edit of the handoff is back as you left it");
    }
}

/// Returns the position up to which an earlier process has read the transcript of this session, in bytes; `None` if this process
/// has begun it.
pub fn read_before(draft: &HandoffDraft, session: SessionId) -> Option<u64> {
    let before = draft.keeping.read_before;
    before.and_then(|(of, read)| (of == session).then_some(read))
}

/// Returns what the session carries now.
fn now(draft: &HandoffDraft, session: &Session, identity: &Identity) -> Carried {
    Carried {
        state: draft.signalled.clone(),
        requests: draft.requests.clone(),
        left_sessions: draft.left_sessions.clone(),
        todo: draft.todo.clone(),
        // What an earlier process has read is in the state that it has kept.
        read: read_before(draft, session.id)
            .unwrap_or(0)
            .max(session.transcript.read),
        before: draft.rewinds.carried(),
        edited: edited(draft).map(Cow::into_owned),
        edits: draft.handoff.edits_so_far(),
        goal: draft.goal.clone(),
        goal_due: draft.goal_due.clone(),
        args: identity.agent_args.clone(),
    }
}

/// Returns the body of the handoff as the human has edited it, or edits it now.
fn edited(draft: &HandoffDraft) -> Option<Cow<'_, str>> {
    let panel = &draft.handoff;
    let open = panel.editor.as_ref().map(|editor| editor.text().into());
    open.or_else(|| Some(panel.edited.as_ref()?.body().into()))
}

/// Returns a number that changes with what a session carries.
fn fingerprint(draft: &HandoffDraft, session: SessionId, args: &[String]) -> u64 {
    let goals = (&draft.goal, &draft.goal_due);
    let facts = (&draft.signalled, &draft.requests, &draft.todo, goals);
    let last_prompt = draft.rewinds.prompts.back().map(|(name, _)| name);
    hash_of(&(session, facts, last_prompt, edited(draft), args))
}
