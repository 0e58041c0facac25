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
//! Every step is written to the journal before it is acted on: `settle` does nothing while the write is
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
mod next;
mod prepare;
mod steps;
mod timing;

use crate::{
    api::wire::AgentState,
    config::RebootMode,
    lineage::{
        Cause, Iteration, IterationId, RunId, Way,
        journal::{JournalEntry, Step},
    },
};
use pitstop_agent::bridge::{QuestionId, Trigger};
use pitstop_base::clock::At;
use pitstop_handoff::Handoff;
use pitstop_transcript::SessionId;

use crate::app::{
    draft::summary::SummaryEvent,
    effect::Effect,
    event::Exit,
    facts::{holds_compaction, is_handoff_lent, is_last, is_under_review, on_the_fly_refusal},
    model::{
        CarryOut, Model, Overlay,
        attempt::AttemptEvent,
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
pub use automatic::tick;
pub use banner::{Banner, banner, wish};
use in_place::ReplaceEvent;
use next::{Act, AgentAct, End, Next};
use steps::{follow, next_step, waiting};

/// The number of turns that `d` puts a reboot off by.
pub(super) const DEFER_TURNS: u32 = 3;

/// Returns an attempt that is still to begin: no phase of it is entered yet.
fn new_attempt(model: &Model, kind: Kind, cause: Cause) -> Attempt {
    let (session, new_ids) = (&model.session, &model.reboot.new_ids);
    Attempt {
        id: new_ids.reboot,
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
            Kind::Fresh | Kind::InPlace | Kind::OnTheFly | Kind::Trim => new_ids.session,
            Kind::Undo(session, _) => session,
            Kind::Restart => session.id,
        },
        replaced: None,
        used: model.used(),
        preview: Preview::default(),
        approved: None,
        approved_from: None,
        force: false,
        handoff: None,
        outdated: false,
        passed_over: false,
        trimmed: None,
        held: None,
        beside: OnDisk::Nothing,
        failure: None,
        epoch: 0,
    }
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

/// A wish about reboots that begins one or changes what it is to do.
#[derive(Clone, Debug)]
pub enum RebootAction {
    /// Begin a reboot for this cause.
    Begin(Cause),
    /// Begin a reboot in this way, for a script.
    BeginBy(Way),
    /// Take this way instead of the one that is chosen.
    Take(Way),
    /// End the present session and resume this earlier one, whose conversation may have been replaced in place. It was an iteration of
    /// this run.
    Resume(SessionId, Option<Replaced>, Option<IterationId>),
    /// Resume the same session, whose process has ended by itself.
    Restart,
    /// Go on with the message as it is now. A second approval while a turn runs interrupts it.
    Approve(Approval),
    /// Put the reboot off by some turns, or give it up.
    Cancel {
        /// True if it is put off.
        defer: bool,
    },
    /// Take back that the state was forgotten, if that came last. Otherwise resume the session that the last reboot ended; the present
    /// one stays in the history. A reboot whose new agent runs need not wait for its proof: it is closed as one that was not confirmed.
    Undo,
    /// Take back the reboot whose handoff a hook of the user's has refused, for this reason, though it had reached the client.
    BringBack(String),
    /// Take up the reboot of this entry, with this message and a session of this id, that a supervisor before us had to leave: the old
    /// agent is gone, the human had approved, the handoff has not arrived.
    TakeUp(Box<JournalEntry>, Handoff, SessionId),
}

/// Does what is wished, or refuses to.
pub fn act(model: &mut Model, action: RebootAction) -> Result<(), Refusal> {
    let next = match action {
        RebootAction::Begin(cause) => Some(request(model, cause)?),
        RebootAction::BeginBy(way) => {
            if way == Way::Trim && model.is_generic() {
                return Err(Refusal::NoTranscripts);
            }
            if let Some(why) = trim::refusal_of(model, way) {
                return Err(why);
            }
            let begun = request(model, Cause::Ctl)?;
            follow(model, [begun]);
            Some(trim::choice(model, way)?)
        }
        RebootAction::Take(way) => Some(trim::choice(model, way)?),
        RebootAction::Resume(session, replaced, iteration) => {
            resume_earlier(model, session, replaced, iteration)?
        }
        RebootAction::Restart => restart(model),
        RebootAction::Approve(approval) => {
            model.draft.finish_edit().carry_out(model);
            Some(approve(model, approval)?)
        }
        RebootAction::Cancel { defer } => Some(cancel(model, defer)?),
        RebootAction::Undo if model.draft.undo_clear() => {
            model.info("what was forgotten is preserved again");
            None
        }
        RebootAction::Undo => {
            let closed = close_unproven(model)?;
            follow(model, closed);
            Some(undo(model, "your undo")?)
        }
        RebootAction::BringBack(why) => {
            let closed = close_unproven(model)?;
            follow(model, closed);
            let next = undo(model, "a handoff that was refused")?;
            model.error(why.clone());
            let failed = Next::Note(AttemptEvent::RollsBack(why));
            Some(Next::All(vec![next, failed]))
        }
        RebootAction::TakeUp(entry, handoff, new) => Some(take_up(model, &entry, handoff, new)),
    };
    follow(model, next);
    Ok(())
}

/// Returns what follows from a request for a reboot.
fn request(model: &Model, cause: Cause) -> Result<Next, Refusal> {
    // The person at the keyboard is shown the review, and a script nothing.
    let shown = match cause {
        Cause::Key => Some(open_review(model)),
        Cause::Ctl => Some(Next::Do(Act::Survey(SurveyEvent::Wanted))),
        _ => None,
    };
    let asked = shown.is_some();
    if asked && model.reboot.has_attempt(Attempt::is_harmless) {
        return Ok(Next::All(Vec::from_iter(shown)));
    }
    if let Some(step) = model.reboot.busy_step() {
        return Err(Refusal::UnderWay(step));
    }
    if model.outside.quitting().is_some() {
        return Err(Refusal::Quitting);
    }
    // A run that begins a session for every turn does so by intention.
    if let Some(breaker) = breaker(model).filter(|_| !asked && cause != Cause::Autopilot) {
        return Err(Refusal::NoAutomatic(breaker));
    }
    let attempt = new_attempt(model, Kind::Fresh, cause);
    let (way, why) = if attempt.is_by_itself() && on_the_fly_refusal(model).is_none() {
        (Kind::OnTheFly, None)
    } else {
        in_place::configured_way(model)
    };
    let mut next = Vec::from_iter(leave_warm_up(model));
    next.push(Next::Begin(Box::new(attempt)));
    next.push(Next::Change(way, why, Some(Phase::Armed)));
    next.extend(shown);
    Ok(Next::All(next))
}

/// Returns the step that closes a reboot of which only the warm-up prompt is missing, before the next one begins.
fn leave_warm_up(model: &Model) -> Option<Next> {
    let is_warming = model.reboot.has_attempt(Attempt::is_warming);
    is_warming.then_some(Next::End(End::Finished { warmed_up: false }))
}

/// Returns the step that closes a reboot whose new agent runs, before it is taken back.
fn close_unproven(model: &Model) -> Result<Option<Next>, Refusal> {
    match &model.reboot.attempt {
        Some(attempt) if !attempt.awaits_proof() => Err(Refusal::UnderWay(attempt.step())),
        Some(_) => {
            let ended = Next::End(End::Finished { warmed_up: false });
            // What is still to be typed was for this session.
            Ok(Some(Next::All(vec![
                ended,
                Next::Agent(AgentAct::AbandonPrompt),
            ])))
        }
        None => Ok(None),
    }
}

/// Returns the last iteration, or the one that it goes on with after its agent had ended and was started again.
fn rebooted(model: &Model) -> Option<&Iteration> {
    let mut last = model.lineage.iterations().last()?;
    while last.cause == Some(Cause::AgentExit) {
        last = model.lineage.get(last.parent?)?;
    }
    Some(last)
}

/// Returns what takes back the last reboot; a run is held by this.
fn undo(model: &Model, held_by: &'static str) -> Result<Next, Refusal> {
    let begun = rebooted(model);
    let record = begun.and_then(|one| one.reboot.as_ref());
    let Some((old, nonce)) = record.and_then(|one| Some((one.old_session?, one.nonce.clone())))
    else {
        return Err(Refusal::NothingToUndo);
    };
    let replaced = nonce.map(|nonce| Replaced {
        session: old,
        nonce,
    });
    let parent = begun.and_then(|one| one.parent);
    // A card that offers the undo has been answered.
    let answered = Next::Do(Act::AnswerCard);
    let back = bring_back(model, old, replaced, parent, held_by);
    Ok(Next::All(vec![answered, back]))
}

/// Returns what follows from the wish to resume an earlier session.
fn resume_earlier(
    model: &Model,
    session: SessionId,
    replaced: Option<Replaced>,
    iteration: Option<IterationId>,
) -> Result<Option<Next>, Refusal> {
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
            return Ok(restart(model));
        }
        return Err(Refusal::PresentSession);
    }
    let held_by = "your choice of a session";
    let next = bring_back(model, session, replaced, iteration, held_by);
    Ok(Some(next))
}

fn bring_back(
    model: &Model,
    session: SessionId,
    replaced: Option<Replaced>,
    iteration: Option<IterationId>,
    held_by: &'static str,
) -> Next {
    let kind = if replaced.is_some() {
        // No session had the number of a reboot, and none begins with it: a copy that is not needed after all does no harm.
        Kind::Undo(SessionId::new(model.reboot.new_ids.reboot), iteration)
    } else {
        Kind::Undo(session, model.lineage.newest_in(session))
    };
    let hold = Next::Do(Act::HoldRun(held_by));
    Next::All(vec![hold, resume(model, kind, Cause::Undo, replaced)])
}

/// Returns what follows from the wish to resume the same session after its process has ended by itself.
fn restart(model: &Model) -> Option<Next> {
    let ended = model.session.agent.state == AgentState::Exited;
    (ended && model.reboot.attempt.is_none())
        .then(|| resume(model, Kind::Restart, Cause::AgentExit, None))
}

/// Returns the steps that resume a session, which loses nothing and sends nothing, so it needs no review and no journal.
fn resume(model: &Model, kind: Kind, cause: Cause, replaced: Option<Replaced>) -> Next {
    let attempt = Attempt {
        replaced,
        approved: Some(Approval::Person),
        force: true,
        ..new_attempt(model, kind, cause)
    };
    // An agent that has ended can lose nothing any more.
    let first = match kind {
        Kind::Restart => waiting(),
        _ => Phase::Preparing(Prepared::Nothing),
    };
    Next::All(vec![Next::Begin(Box::new(attempt)), Next::Enter(first)])
}

/// Returns the steps that take up a reboot which a supervisor before us had to leave.
fn take_up(model: &Model, entry: &JournalEntry, handoff: Handoff, new: SessionId) -> Next {
    let attempt = new_attempt(model, Kind::Fresh, entry.cause);
    let attempt = Attempt {
        id: entry.reboot_id,
        old: entry.old_session.unwrap_or(attempt.old),
        new,
        handoff: (!handoff.text.is_empty()).then_some(handoff),
        approved: Some(Approval::Person),
        ..attempt
    };
    let first = Next::Enter(Phase::starting());
    Next::All(vec![Next::Begin(Box::new(attempt)), first])
}

/// Returns the steps that open the review, unless it is open.
fn open_review(model: &Model) -> Next {
    if model.view.overlay == Some(Overlay::Review) {
        return Next::All(Vec::new());
    }
    let mut next = vec![Act::OpenReview, Act::Survey(SurveyEvent::Wanted)];
    if is_under_review(model) {
        // Turns may have passed since it was drafted: the person may have gone on working under the banner.
        let reads = [Effect::ReadScratchpad, Effect::ReadGit];
        next.extend(reads.map(Act::Emit));
        next.push(Act::Summary(SummaryEvent::Drafting));
    }
    Next::All(next.into_iter().map(Next::Do).collect())
}

/// An event that a reboot may follow from, or end with.
#[derive(Clone, Debug)]
pub(in crate::app) enum RebootEvent<'a> {
    /// All features have taken the event at hand in: a reboot may be due.
    MayBeDue,
    /// The client takes no more prompts in this session.
    ContextLimit,
    /// The session goes on under another id.
    SessionMoved,
    /// The agent is in another session: what was armed is about the one before.
    SessionChanged,
    /// The agent's process is gone, by a clean end or not.
    AgentGone { is_clean: bool },
    /// The agent's process has ended, and what it leaves is kept.
    AgentEnded(&'a Exit),
    /// The client is about to compact, and asks by this question what is to be left of the session.
    CompactionAsked(&'a QuestionId, SessionId, Trigger),
    /// The timer of a compaction in which the client waits has run out.
    CompactionTimer(u64),
    /// The survey of a trim, which is offered until the reboot is approved, has come this far.
    Survey(SurveyEvent),
    /// The client reports this while its conversation is replaced, or is to be.
    Replacing(ReplaceEvent<'a>),
}

impl<'a> From<ReplaceEvent<'a>> for RebootEvent<'a> {
    fn from(event: ReplaceEvent<'a>) -> Self {
        Self::Replacing(event)
    }
}

impl From<SurveyEvent> for RebootEvent<'_> {
    fn from(event: SurveyEvent) -> Self {
        Self::Survey(event)
    }
}

/// Takes in an event.
pub(in crate::app) fn on<'a>(model: &mut Model, event: impl Into<RebootEvent<'a>>) {
    let next = judge(model, event.into());
    follow(model, next);
}

fn judge(model: &Model, event: RebootEvent) -> Option<Next> {
    match event {
        RebootEvent::MayBeDue => Some(automatic::due(model)),
        RebootEvent::ContextLimit => {
            let is_manual = model.reboot.mode == RebootMode::Manual;
            if is_manual || model.reboot.busy_step().is_some() || is_last(model) {
                return None;
            }
            let begun = request(model, Cause::ContextLimit);
            begun.map_or_else(|why| automatic::held_up(model, &why), Some)
        }
        RebootEvent::SessionMoved => Some(follow_session(model)),
        RebootEvent::SessionChanged => {
            let why = "the agent is in another session";
            let withdrawn = automatic::withdraw_ours(model, why);
            Some(withdrawn.unwrap_or_else(|| follow_session(model)))
        }
        RebootEvent::AgentGone { is_clean } => leave::agent_gone(model, is_clean),
        RebootEvent::AgentEnded(exit) => {
            let ended = AttemptEvent::AgentEnded(exit.to_string());
            let ended = [Next::Agent(AgentAct::LetGo), Next::Note(ended)];
            let withdrawn = automatic::agent_ended(model);
            Some(Next::All(withdrawn.into_iter().chain(ended).collect()))
        }
        RebootEvent::CompactionAsked(id, session, trigger) => {
            compaction::asked(model, id, session, trigger)
        }
        RebootEvent::CompactionTimer(epoch) => compaction::timer(model, epoch),
        RebootEvent::Survey(event) => Some(Next::Do(Act::Survey(event))),
        RebootEvent::Replacing(event) => in_place::judge(model, event),
    }
}

/// Returns the steps by which a reboot follows the agent to another session before anything was done: that session is ended now.
fn follow_session(model: &Model) -> Next {
    let moved = AttemptEvent::SessionMoved(model.session.id);
    Next::All(vec![
        Next::Agent(AgentAct::LetGo),
        Next::Note(moved),
        Next::Do(Act::Survey(SurveyEvent::Moved)),
    ])
}

/// Lets reboots begin and go on by what is true now, once all features have taken the event at hand in.
pub(in crate::app) fn settle(model: &mut Model) {
    on(model, RebootEvent::MayBeDue);
    while let Some(attempt) = model.reboot.attempt.as_ref().filter(|one| one.journaled) {
        let before = (attempt.step(), attempt.kind);
        let next = next_step(model, attempt);
        follow(model, next);
        let attempt = model.reboot.attempt.as_ref();
        if attempt.map(|one| (one.step(), one.kind)) == Some(before) {
            break;
        }
    }
    for rule in [
        automatic::review,
        on_the_fly::fit_way,
        timing::cut,
        automatic::announce,
        automatic::unattended,
        unsent::put_back,
    ] {
        let next = rule(model);
        follow(model, next);
    }
}

/// Returns what follows from the approval of a person, a script or `auto` mode.
fn approve(model: &Model, approval: Approval) -> Result<Next, Refusal> {
    // No one sees the countdown of `auto` behind an editor: the review waits.
    if approval == Approval::Auto && model.view.external.is_some() {
        return Err(Refusal::EditorOpen);
    }
    if is_handoff_lent(model) {
        return Err(Refusal::HandoffOpen);
    }
    trim::check(model)?;
    let mut next = Vec::from_iter(in_place::check(model, approval)?);
    let attempt = model.reboot.attempt.as_ref();
    let attempt = attempt.ok_or(Refusal::NothingToApprove)?;
    next.push(match attempt.phase {
        Phase::Armed | Phase::Drafting { .. } | Phase::Review { .. } => {
            Next::Do(Act::FixMessage(approval))
        }
        Phase::Preparing(_) | Phase::Waiting { .. } => Next::Note(AttemptEvent::Pushed),
        _ => return Err(Refusal::Approved(attempt.step())),
    });
    next.push(Next::Do(Act::CloseReview));
    let late = "the reboot was approved before the model had answered";
    next.push(Next::Do(Act::Summary(SummaryEvent::TooLate(late))));
    Ok(Next::All(next))
}

/// Returns the steps that put the reboot off, or give it up.
fn cancel(model: &Model, defer: bool) -> Result<Next, Refusal> {
    let attempt = model.reboot.attempt.as_ref();
    match attempt {
        Some(attempt) if attempt.is_harmless() => {}
        Some(attempt) => return Err(Refusal::TooLate(attempt.step())),
        // The reboot that was refused is over: only its banner is left.
        None if defer && model.reboot.refused.is_some() => {}
        None if wish(model).is_some() => return Ok(Next::Do(Act::DismissWish)),
        None => return Err(Refusal::NothingToCancel),
    }
    // The turn that runs may end this very second: it is the next one that counts.
    let runs = model.session.agent.state == AgentState::Busy;
    let (outcome, turns, reason, notice) = if defer {
        let notice = format!("reboot deferred by {DEFER_TURNS} turns");
        let reason = QuietReason::Deferred;
        (RebootOutcome::Deferred, DEFER_TURNS, reason, notice)
    } else {
        let notice = if holds_compaction(model) {
            "the compaction is left to the client"
        } else {
            "reboot cancelled: nothing was changed"
        };
        let reason = QuietReason::Cancelled;
        let turns = 1 + u32::from(runs);
        (RebootOutcome::Cancelled, turns, reason, notice.to_owned())
    };
    // Beside a banner that says the same, a notice takes the room for when a person is asked again.
    let is_in_banner = !holds_compaction(model) && banner::shows_quiet(model, &reason);
    let mut acts = vec![Act::CloseReview, Act::BeQuiet(turns, reason)];
    acts.extend((!defer).then_some(Act::HoldRun("your cancel")));
    acts.extend((!is_in_banner).then_some(Act::Info(notice)));
    let acts = acts.into_iter().map(Next::Do);
    let taken_back = attempt.map(|attempt| on_the_fly::take_back(attempt, outcome));
    Ok(Next::All(acts.chain(taken_back).collect()))
}
