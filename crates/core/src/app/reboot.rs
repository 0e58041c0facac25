//! The reboot as a state machine.
//!
//! ```text
//!            key ────────────────┐
//!  threshold ─► armed ─► drafting ─► review ─► preparing ─► waiting ─► ending ─► starting ─► delivering ─► verifying ─► warming ─► done
//!                 (until safe)      (approve)     │       (until safe)            │             │            │
//!                                                 └─► failed                      └──── rolling back ────────┘─► failed
//! ```
//!
//! A reboot in place skips `ending` and `starting` ([`in_place`]).
//!
//! Before the old agent is touched, the step `preparing` makes and checks what the new one needs: if that fails, the reboot is
//! refused with the reason, and the old agent goes on.
//!
//! In the step `review` the message is drafted and waits for an approval. Nothing is opened over a person for that: a [`Banner`]
//! shows that it waits, and the review itself ([`Overlay::Review`]) is opened by their key. A script may approve it whether it is
//! open or not.
//!
//! Every step is written to the journal before it is acted on: [`advance`] does nothing while the write is
//! under way. It looks only at what is true now, so facts may arrive in any order: the proof of delivery
//! may come before the step that waits for it.

pub mod compaction;
pub mod ending;
pub mod in_place;
pub mod iteration;
pub mod leave;
pub mod moment;
pub mod on_the_fly;
pub mod submit;
pub mod trim;
pub mod unsent;

mod automatic;
mod banner;
mod prepare;
mod steps;
mod timing;

use crate::{
    api::wire::AgentState,
    lineage::{
        Cause, IterationId, RunId, Way,
        journal::{JournalEntry, Step},
    },
};
use pitstop_base::clock::At;
use pitstop_handoff::Handoff;
use pitstop_transcript::SessionId;

use crate::app::{
    draft::{
        handoff,
        summary::{self, SummaryEvent},
    },
    effect::Effect,
    event::Exit,
    facts::{holds_compaction, is_handoff_lent, is_under_review},
    model::{
        Model, Overlay,
        attempt::AttemptEvent,
        reading::Reading,
        reboot::{Phase, Prepared, RebootOutcome, Replaced},
        session::Session,
        trim::{Preview, SurveyEvent},
        unsent::OnDisk,
    },
    refusal::Refusal,
};
pub use crate::app::{
    facts::{Block, blocked_by, is_quiet},
    model::reboot::{Approval, Attempt, Kind, Quiet, QuietReason, Reboot},
};

use automatic::breaker;
pub use automatic::{after, consider, held_up, session_changed, tick};
pub use banner::{Banner, banner, wish};
pub use steps::advance;
use steps::{End, end, enter, follow, waiting};

/// The number of turns that `d` puts a reboot off by.
pub(super) const DEFER_TURNS: u32 = 3;

/// Begins an attempt in the model; no phase of it is entered yet.
fn begin(model: &mut Model, kind: Kind, cause: Cause) -> &mut Attempt {
    let epoch = model.next_epoch();
    let used = model.used();
    let (session, reboot) = (&model.session, &mut model.reboot);
    // The reboot answers the agent's request.
    reboot.wish = None;
    reboot.refused = None;
    reboot.attempt.insert(Attempt {
        id: reboot.new_ids.reboot,
        kind,
        is_chosen: false,
        cause,
        phase: Phase::Armed,
        journaled: true,
        entered: Vec::new(),
        from: session.iteration(),
        old: session.id,
        new: match kind {
            // Where the conversation is replaced in place, the session that begins is the one that ends.
            Kind::Fresh | Kind::InPlace | Kind::OnTheFly | Kind::Trim => reboot.new_ids.session,
            Kind::Undo(session, _) => session,
            Kind::Restart => session.id,
        },
        replaced: None,
        used,
        preview: Preview::default(),
        approved: None,
        approved_from: None,
        force: false,
        handoff: None,
        outdated: false,
        trimmed: None,
        held: None,
        beside: OnDisk::Nothing,
        failure: None,
        epoch,
    })
}

impl Attempt {
    /// Returns the session that begins.
    fn next(&self) -> SessionId {
        if self.kind.replaces() {
            self.old
        } else {
            self.new
        }
    }

    fn entry(&self, run: &RunId, session: &Session, now: At) -> JournalEntry {
        let handoff = self.handoff.as_ref();
        let process = session.agent.process.clone();
        let (old_agent, new_agent) = if self.has_spawned() {
            (None, process)
        } else {
            (process, None)
        };
        JournalEntry {
            reboot_id: self.id,
            run: run.clone(),
            iteration: session.iteration(),
            step: self.step(),
            way: self.kind.way(),
            old_session: Some(self.old),
            new_session: Some(self.next()),
            nonce: handoff.map_or_else(String::new, |one| one.marker.nonce.clone()),
            handoff: handoff.map_or_else(String::new, |one| one.text.clone()),
            trim: self.trim_record(),
            old_agent,
            new_agent,
            cause: self.cause,
            at: now.wall,
            outcome: self.failure.clone(),
        }
    }
}

/// Returns how far the reboot under way has come: a change of it may lead to further steps at a later look.
pub(super) fn progress_key(model: &Model) -> Option<(uuid::Uuid, Step, Option<Approval>, bool)> {
    let attempt = model.reboot.attempt.as_ref()?;
    Some((attempt.id, attempt.step(), attempt.approved, attempt.force))
}

/// Begins a reboot that a person, a script or a threshold asks for. `asked` is true if one of the first two did; the review is
/// opened only for the person at the keyboard.
pub fn request(model: &mut Model, cause: Cause, asked: bool) -> Result<(), Refusal> {
    match &model.reboot.attempt {
        Some(attempt) if asked && attempt.is_harmless() => {
            shown_to(model, cause);
            return Ok(());
        }
        Some(attempt) => return Err(Refusal::UnderWay(attempt.step())),
        None => {}
    }
    if model.outside.quitting().is_some() {
        return Err(Refusal::Quitting);
    }
    // A run that begins a session for every turn does so by intention.
    if let Some(breaker) = breaker(model).filter(|_| !asked && cause != Cause::Autopilot) {
        return Err(Refusal::NoAutomatic(breaker));
    }
    begin(model, Kind::Fresh, cause);
    model.reboot.failure = None;
    let (way, why) = in_place::configured_way(model);
    in_place::take_way(model, way, why);
    on_the_fly::fit_way(model);
    enter(model, Phase::Armed);
    if asked {
        shown_to(model, cause);
    }
    Ok(())
}

/// Shows a reboot to the one who asked for it: to the person at the keyboard its review, to a script nothing.
fn shown_to(model: &mut Model, cause: Cause) {
    if cause == Cause::Key {
        open_review(model);
    } else {
        trim::on(model, SurveyEvent::Wanted);
    }
}

/// Begins a reboot that a script asks for in this way.
pub fn request_by(model: &mut Model, way: Way) -> Result<(), Refusal> {
    if way == Way::Trim && model.is_generic() {
        return Err(Refusal::NoTranscripts);
    }
    if let Some(why) = trim::refusal_of(model, way) {
        return Err(why);
    }
    request(model, Cause::Ctl, true)?;
    trim::choose(model, way)
}

/// Takes back that the state was forgotten, if that came last. Otherwise resumes the session that the last reboot ended; the
/// present one stays in the history. A reboot whose new agent runs need not wait for its proof: it is closed as one that was not
/// confirmed.
pub fn undo(model: &mut Model) -> Result<(), Refusal> {
    if model.draft.undo_clear() {
        model.info("what was forgotten is preserved again");
        return Ok(());
    }
    match &model.reboot.attempt {
        Some(attempt) if !attempt.awaits_proof() => {
            return Err(Refusal::UnderWay(attempt.step()));
        }
        Some(_) => {
            end(model, End::Finished { warmed_up: false });
            // What is still to be typed was for this session.
            model.session.submission.abandon();
        }
        None => {}
    }
    let record = model
        .current_iteration()
        .and_then(|one| one.reboot.as_ref());
    let Some((old, nonce)) = record.and_then(|one| Some((one.old_session?, one.nonce.clone())))
    else {
        return Err(Refusal::NothingToUndo);
    };
    let replaced = nonce.map(|nonce| Replaced {
        session: old,
        nonce,
    });
    let parent = model.current_iteration().and_then(|one| one.parent);
    // A card that offers the undo has been answered.
    model.view.answer_card();
    bring_back(model, old, replaced, parent, "your undo");
    Ok(())
}

/// Ends the present session and resumes an earlier one; the present one stays in the history.
///
/// For a session whose conversation was `replaced` in place, the part before that is resumed; `iteration` is its number in this run.
pub fn resume_earlier(
    model: &mut Model,
    session: SessionId,
    replaced: Option<Replaced>,
    iteration: Option<IterationId>,
) -> Result<(), Refusal> {
    if let Some(step) = model.reboot.step() {
        return Err(Refusal::UnderWay(step));
    }
    if model.outside.quitting().is_some() {
        return Err(Refusal::Quitting);
    }
    if model.is_generic() {
        return Err(Refusal::NoSessions);
    }
    if model.session.id == session && replaced.is_none() {
        if model.session.agent.state == AgentState::Exited {
            restart(model);
            return Ok(());
        }
        return Err(Refusal::PresentSession);
    }
    let held_by = "your choice of a session";
    bring_back(model, session, replaced, iteration, held_by);
    Ok(())
}

fn bring_back(
    model: &mut Model,
    session: SessionId,
    replaced: Option<Replaced>,
    iteration: Option<IterationId>,
    held_by: &'static str,
) {
    model.scratch.taken_over = Some(held_by);
    let Some(replaced) = replaced else {
        let parent = model.lineage.newest_in(session);
        return resume(model, Kind::Undo(session, parent), Cause::Undo, None);
    };
    // No session had the number of a reboot, and none begins with it: a copy that is not needed after all does no harm.
    let copy = SessionId::new(model.reboot.new_ids.reboot);
    let kind = Kind::Undo(copy, iteration);
    resume(model, kind, Cause::Undo, Some(replaced));
}

/// Resumes the same session after its process has ended by itself.
pub fn restart(model: &mut Model) {
    if model.session.agent.state != AgentState::Exited || model.reboot.attempt.is_some() {
        return;
    }
    resume(model, Kind::Restart, Cause::AgentExit, None);
}

/// Resumes a session, which loses nothing and sends nothing, so it needs no review and no journal.
fn resume(model: &mut Model, kind: Kind, cause: Cause, replaced: Option<Replaced>) {
    let attempt = begin(model, kind, cause);
    attempt.replaced = replaced;
    attempt.approved = Some(Approval::Person);
    attempt.force = true;
    model.view.close_any();
    // An agent that has ended can lose nothing any more.
    let first = match kind {
        Kind::Restart => waiting(),
        _ => Phase::Preparing(Prepared::Nothing),
    };
    enter(model, first);
}

/// Takes up a reboot that a supervisor before us had to leave: the old agent is gone, the human had
/// approved, the handoff has not arrived.
pub fn take_up(model: &mut Model, entry: &JournalEntry, handoff: Handoff, new: SessionId) {
    let attempt = begin(model, Kind::Fresh, entry.cause);
    attempt.id = entry.reboot_id;
    attempt.old = entry.old_session.unwrap_or(attempt.old);
    attempt.new = new;
    attempt.handoff = (!handoff.text.is_empty()).then_some(handoff);
    attempt.approved = Some(Approval::Person);
    enter(model, Phase::starting());
}

/// Opens the review, or brings it to the front.
fn open_review(model: &mut Model) {
    if model.view.overlay == Some(Overlay::Review) {
        return;
    }
    model.view.open(Overlay::Review);
    handoff::draft(model);
    model.draft.handoff.show_message();
    let reading = Reading::at_first_section(&model.draft.handoff.current().text);
    model.view.open_review(reading);
    trim::on(model, SurveyEvent::Wanted);
    if is_under_review(model) {
        // Turns may have passed since it was drafted: the person may have gone on working under the banner.
        model.emit_all([Effect::ReadScratchpad, Effect::ReadGit]);
        summary::on(model, SummaryEvent::Drafting);
    }
}

/// Follows the agent to another session before anything was done: that session is ended now.
pub fn moved(model: &mut Model) {
    let goes_on = model.reboot.let_client_go();
    model.emit_all(goes_on);
    let moved = AttemptEvent::SessionMoved(model.session.id);
    model.reboot.on(moved);
    trim::on(model, SurveyEvent::Moved);
}

/// Approves a reboot for a person, a script or `auto` mode. A second approval while a turn runs interrupts it.
pub fn approve(model: &mut Model, approval: Approval) -> Result<(), Refusal> {
    model.draft.finish_edit().carry_out(model);
    // No one sees the countdown of `auto` behind an editor: the review waits.
    if approval == Approval::Auto && model.view.external.is_some() {
        return Err(Refusal::EditorOpen);
    }
    if is_handoff_lent(model) {
        return Err(Refusal::HandoffOpen);
    }
    trim::check(model)?;
    in_place::check(model, approval)?;
    handoff::draft(model);
    let message = model.draft.handoff.current().clone();
    let attempt = model.reboot.attempt.as_mut();
    let attempt = attempt.ok_or(Refusal::NothingToApprove)?;
    match attempt.phase {
        Phase::Armed | Phase::Drafting { .. } | Phase::Review { .. } => {
            attempt.approved = Some(approval);
            // The text that was on the screen is the text that is sent; where it is empty, nothing has to arrive.
            attempt.handoff = (!message.text.is_empty()).then_some(message);
        }
        Phase::Preparing(_) | Phase::Waiting { .. } => attempt.force = true,
        _ => return Err(Refusal::Approved(attempt.step())),
    }
    model.view.close(Overlay::Review);
    let late = "the reboot was approved before the model had answered";
    summary::on(model, SummaryEvent::TooLate(late));
    Ok(())
}

/// Puts the reboot off, or gives it up.
pub fn cancel(model: &mut Model, defer: bool) -> Result<(), Refusal> {
    match &model.reboot.attempt {
        Some(attempt) if attempt.is_harmless() => {}
        Some(attempt) => return Err(Refusal::TooLate(attempt.step())),
        // The reboot that was refused is over: only its banner is left.
        None if defer && model.reboot.refused.take().is_some() => {}
        None if wish(model).is_some() => {
            model.reboot.wish = None;
            model.info("the agent's request is dismissed");
            return Ok(());
        }
        None => return Err(Refusal::NothingToCancel),
    }
    model.view.close(Overlay::Review);
    let (turns, reason) = if defer {
        (DEFER_TURNS, QuietReason::Deferred)
    } else {
        (1, QuietReason::Cancelled)
    };
    let quiet = timing::quiet_for(model, turns, reason);
    model.reboot.be_quiet(quiet);
    let outcome = if defer {
        // Once it is due again it is shown again.
        model.reboot.called = None;
        model.info(format!("reboot deferred by {DEFER_TURNS} turns"));
        RebootOutcome::Deferred
    } else {
        model.scratch.taken_over = Some("your cancel");
        model.info(if holds_compaction(model) {
            "the compaction is left to the client"
        } else {
            "reboot cancelled: nothing was changed"
        });
        RebootOutcome::Cancelled
    };
    let attempt = model.reboot.attempt.as_ref();
    let next = attempt.map(|attempt| on_the_fly::take_back(attempt, outcome));
    follow(model, next);
    Ok(())
}

/// Handles the end of the agent's process. Returns whether the reboot expected it or deals with it.
pub fn exited(model: &mut Model, exit: &Exit) -> bool {
    automatic::agent_ended(model);
    let goes_on = model.reboot.let_client_go();
    model.emit_all(goes_on);
    let ended = AttemptEvent::AgentEnded(exit.to_string());
    model.reboot.on(ended);
    model.reboot.attempt.is_some()
}

/// Gives up a reboot that has harmed nothing yet because we are leaving; one that has is left in the
/// journal for the next start to finish.
pub fn abandon(model: &mut Model) {
    model.view.close(Overlay::Review);
    let attempt = model.reboot.attempt.as_ref();
    if attempt.is_some_and(Attempt::is_harmless) {
        let why = Some("quit".to_owned());
        end(model, End::Unfinished(RebootOutcome::Cancelled, why));
    } else {
        model.reboot.attempt = None;
    }
}
