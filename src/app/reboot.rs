//! The reboot as a state machine (DESIGN 6).
//!
//! ```text
//!            key ────────────────┐
//!  threshold ─► armed ─► drafting ─► review ─► waiting ─► ending ─► starting ─► delivering ─► verifying ─► warming ─► done
//!                 (until safe)      (approve)  (until safe)            │             │            │
//!                                                                      └──── rolling back ────────┘─► failed
//! ```
//!
//! Every step is written to the journal before it is acted on: [`advance`] does nothing while the write is
//! under way. It looks only at what is true now, so facts may arrive in any order: the proof of delivery
//! may come before the step that waits for it.

mod steps;

use std::time::Duration;

use crate::{
    api::wire::AgentState,
    clean,
    clock::At,
    config::RebootMode,
    guard::{Level, Source},
    handoff::Handoff,
    lineage::{
        Cause, EndReason, IterationId, TrimRecord, Way,
        journal::{JournalEntry, Step},
    },
    transcript::SessionId,
};

use super::{
    activity, autopilot, breakpoint,
    draft::{self, Unsent},
    effect::Effect,
    event::{Exit, TimerId},
    external,
    model::{Model, Overlay},
    say,
    trim::{self, Preview},
};

pub use steps::advance;
use steps::{end_attempt, enter};

/// How long a review that opened by itself takes no Enter: whoever was typing must see it first.
const OPENING_GUARD: Duration = Duration::from_millis(800);

/// The word for a document in `$EDITOR`, which blocks a reboot that the person at it has not asked for.
pub const EDITOR: &str = "editor";

/// The word for an unsent prompt that cannot be read, and so would be lost.
pub const UNSENT: &str = "unsent prompt";

/// How many turns `d` puts a reboot off.
pub(super) const DEFER_TURNS: u32 = 3;

/// The reboot under way and what is remembered between two.
#[derive(Debug, Default)]
pub struct Reboot {
    /// The reboot under way.
    pub attempt: Option<Attempt>,
    /// No review opens by itself before this many turns of the iteration; `u32::MAX` for never.
    pub quiet_until_turn: u32,
    /// When the latest reboots began, for the breaker.
    begun: Vec<At>,
    /// Why the last one failed.
    pub failure: Option<String>,
}

/// Where the next iteration comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A new session with the handoff.
    Fresh,
    /// A trimmed copy of the session, resumed.
    Trim,
    /// The session before the last reboot, resumed.
    Undo(SessionId, Option<IterationId>),
    /// The same session, resumed after its process died.
    Restart,
}

impl Kind {
    /// Whether it is a reboot proper, which is journaled and recorded.
    #[must_use]
    pub const fn is_reboot(self) -> bool {
        matches!(self, Self::Fresh | Self::Trim)
    }

    /// How the context goes over.
    #[must_use]
    pub const fn way(self) -> Way {
        match self {
            Self::Trim => Way::Trim,
            Self::Fresh | Self::Undo(..) | Self::Restart => Way::Fresh,
        }
    }
}

/// One reboot from its trigger to its end.
#[derive(Clone, Debug)]
pub struct Attempt {
    /// Its id in the journal.
    pub id: uuid::Uuid,
    /// Where the next iteration comes from.
    pub kind: Kind,
    /// What asked for it.
    pub cause: Cause,
    /// Where it stands.
    pub step: Step,
    /// The session that ends.
    pub old: SessionId,
    /// The session that begins.
    pub new: SessionId,
    /// The message, fixed when it was approved.
    pub handoff: Option<Handoff>,
    /// Whether it may go on, and whether a person said so.
    pub approved: Option<Approval>,
    /// Whether the running turn is to be interrupted.
    pub force: bool,
    /// When each step was entered.
    pub entered: Vec<(Step, At)>,
    /// Why it is being rolled back.
    pub rolling_back: Option<String>,
    /// Whether the handoff was seen to arrive, or the client in the trimmed session.
    pub proven: bool,
    /// Whether the proof is late and the human has been told.
    pub overdue: bool,
    /// What a trim would win, while the review is open.
    pub preview: Preview,
    /// What the trim has removed, once the copy is there.
    pub trimmed: Option<TrimRecord>,
    /// The copy that was ordered.
    pub(super) copying: Option<u64>,
    journaled: bool,
    drafted: bool,
    /// Whether the prompt box was looked at for the last time.
    looked: bool,
    old_gone: bool,
    started: bool,
    spawned: bool,
    pub(super) failed: Option<String>,
    warmed_up: bool,
    epoch: u64,
}

/// Who let a reboot go ahead.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Approval {
    /// A person, here or by `ctl`: that they are at the keyboard is no reason to wait.
    Person,
    /// `auto` mode.
    Auto,
}

impl Attempt {
    fn new(model: &mut Model, kind: Kind, cause: Cause) -> Self {
        let epoch = model.next_epoch();
        Self {
            id: model.lots.reboot,
            kind,
            cause,
            step: Step::Armed,
            old: model.session,
            new: match kind {
                Kind::Fresh | Kind::Trim => model.lots.session,
                Kind::Undo(session, _) => session,
                Kind::Restart => model.session,
            },
            handoff: None,
            approved: None,
            force: false,
            entered: Vec::new(),
            rolling_back: None,
            proven: false,
            overdue: false,
            preview: Preview::default(),
            trimmed: None,
            copying: None,
            journaled: true,
            drafted: false,
            looked: false,
            old_gone: model.agent.state == AgentState::Exited,
            started: false,
            spawned: false,
            failed: None,
            warmed_up: false,
            epoch,
        }
    }

    /// Whether the old agent still lives and nothing has been done to it.
    #[must_use]
    pub fn is_harmless(&self) -> bool {
        matches!(
            self.step,
            Step::Armed | Step::Drafting | Step::Review | Step::Waiting
        )
    }

    /// Whether a new process has been ordered and the handoff is on its way to it.
    #[must_use]
    pub fn is_under_way(&self) -> bool {
        matches!(
            self.step,
            Step::Starting | Step::Delivering | Step::Verifying | Step::Warming | Step::RollingBack
        )
    }

    /// Whether the new iteration has begun, and the old session is not being resumed instead.
    pub(super) fn has_begun(&self) -> bool {
        self.started && self.is_under_way() && self.step != Step::RollingBack
    }

    fn entry(&self, model: &Model, step: Step) -> JournalEntry {
        let process = model.agent.process.clone();
        let (old_agent, new_agent) = if self.spawned {
            (None, process)
        } else {
            (process, None)
        };
        JournalEntry {
            reboot_id: self.id,
            run: model.run().clone(),
            iteration: model.iteration,
            step,
            way: self.kind.way(),
            old_session: Some(self.old),
            new_session: Some(self.new),
            nonce: self
                .handoff
                .as_ref()
                .map_or_else(String::new, |one| one.marker.nonce.clone()),
            handoff: self
                .handoff
                .as_ref()
                .map_or_else(String::new, |one| one.text.clone()),
            trim: self.trim_record(),
            old_agent,
            new_agent,
            cause: self.cause,
            at: model.now.wall,
            outcome: self.rolling_back.clone(),
        }
    }
}

/// What blocks a reboot now, by word; empty at a safe moment. A person who has approved does not block it
/// by typing.
#[must_use]
pub fn blocked_by(model: &Model) -> Vec<&'static str> {
    let agent = &model.agent;
    let mut blocks = Vec::new();
    if matches!(agent.state, AgentState::Busy | AgentState::Starting) {
        blocks.push("turn");
    }
    if !agent.background.is_empty() {
        blocks.push("background task");
    }
    // What is typed into the agent view is the task of yet another session.
    if agent.state == AgentState::Dialog || agent.listing {
        blocks.push("dialog");
    }
    let by_person = model
        .reboot
        .attempt
        .as_ref()
        .is_some_and(|attempt| attempt.approved == Some(Approval::Person));
    if agent.state == AgentState::Unknown {
        blocks.push("unknown");
    }
    if is_typing(model) && !by_person {
        blocks.push("typing");
    }
    if model.external.is_some() && !by_person {
        blocks.push(EDITOR);
    }
    if draft::unsent(model) == Unsent::Unreadable {
        blocks.push(UNSENT);
    }
    if agent.state == AgentState::Exited {
        blocks.clear();
    }
    blocks
}

/// Whether the human has typed into the pane within the quiet time.
#[must_use]
pub fn is_typing(model: &Model) -> bool {
    let quiet = model.config.reboot.typing_quiet;
    model
        .agent
        .typed_at
        .is_some_and(|typed| model.now.since(typed) < quiet)
}

/// Whether nothing blocks a reboot now.
#[must_use]
pub fn is_safe(model: &Model) -> bool {
    blocked_by(model).is_empty()
}

/// A person, a script or a threshold asks for a reboot. `asked` says whether a person did.
pub fn request(model: &mut Model, cause: Cause, asked: bool) -> Result<Vec<Effect>, String> {
    if let Some(attempt) = &model.reboot.attempt {
        if attempt.step == Step::Review || (asked && attempt.is_harmless()) {
            return Ok(open_review(model, asked));
        }
        return Err(format!("a reboot is under way: {}", attempt.step));
    }
    if model.quitting.is_some() {
        return Err("pitstop is quitting".to_owned());
    }
    // A run that begins a session for every turn means to.
    if !asked
        && cause != Cause::Autopilot
        && let Some(why) = breaker(model)
    {
        return Err(why);
    }
    let attempt = Attempt::new(model, Kind::Fresh, cause);
    model.reboot.attempt = Some(attempt);
    model.reboot.failure = None;
    let mut effects = enter(model, Step::Armed);
    if asked {
        effects.extend(open_review(model, true));
    }
    effects.extend(advance(model));
    Ok(effects)
}

/// A script asks for a reboot by this way: its review opens with it chosen.
pub fn request_by(model: &mut Model, way: Way) -> Result<Vec<Effect>, String> {
    if way == Way::Trim && model.identity.agent_kind == "generic" {
        return Err(trim::NotOffered::Generic.to_string());
    }
    let mut effects = request(model, Cause::Ctl, true)?;
    effects.extend(trim::choose(model, way)?);
    Ok(effects)
}

/// Resumes the session that the last reboot ended; the present one stays in the history.
pub fn undo(model: &mut Model) -> Result<Vec<Effect>, String> {
    if let Some(attempt) = &model.reboot.attempt {
        return Err(format!("a reboot is under way: {}", attempt.step));
    }
    let record = model
        .current_iteration()
        .and_then(|one| one.reboot.as_ref());
    let Some(old) = record.and_then(|record| record.old_session) else {
        return Err("nothing to undo: this iteration was not begun by a reboot".to_owned());
    };
    let parent = model.lineage.newest_in(old);
    let mut effects = autopilot::hold(model, "your undo");
    effects.extend(resume(model, Kind::Undo(old, parent), Cause::Undo));
    Ok(effects)
}

/// Resumes the same session after its process has ended by itself.
pub fn restart(model: &mut Model) -> Vec<Effect> {
    if model.agent.state != AgentState::Exited || model.reboot.attempt.is_some() {
        return Vec::new();
    }
    resume(model, Kind::Restart, Cause::AgentExit)
}

/// Resuming a session loses nothing and sends nothing, so it needs no review and no journal.
fn resume(model: &mut Model, kind: Kind, cause: Cause) -> Vec<Effect> {
    let mut attempt = Attempt::new(model, kind, cause);
    attempt.approved = Some(Approval::Person);
    attempt.force = true;
    model.reboot.attempt = Some(attempt);
    model.overlay = None;
    let mut effects = enter(model, Step::Waiting);
    effects.extend(advance(model));
    effects
}

/// Takes up a reboot that a supervisor before us had to leave: the old agent is gone, the human had
/// approved, the handoff has not arrived.
pub fn take_up(
    model: &mut Model,
    entry: &JournalEntry,
    handoff: Handoff,
    new: SessionId,
) -> Vec<Effect> {
    let mut attempt = Attempt::new(model, Kind::Fresh, entry.cause);
    attempt.id = entry.reboot_id;
    attempt.old = entry.old_session.unwrap_or(model.session);
    attempt.new = new;
    attempt.handoff = (!handoff.text.is_empty()).then_some(handoff);
    attempt.approved = Some(Approval::Person);
    attempt.old_gone = true;
    model.reboot.attempt = Some(attempt);
    let mut effects = enter(model, Step::Starting);
    effects.extend(advance(model));
    effects
}

/// Opens the review, or brings it to the front.
fn open_review(model: &mut Model, asked: bool) -> Vec<Effect> {
    if matches!(model.overlay, Some(Overlay::Review { .. })) {
        return Vec::new();
    }
    model.overlay = Some(Overlay::Review {
        since: model.now,
        asked,
    });
    model.handoff.scroll = 0;
    trim::survey(model)
}

/// The agent went to another session before anything was done: that one ends now.
pub fn moved(model: &mut Model) -> Vec<Effect> {
    let session = model.session;
    match &mut model.reboot.attempt {
        Some(attempt) if attempt.kind.is_reboot() && attempt.is_harmless() => {
            attempt.old = session;
        }
        _ => return Vec::new(),
    }
    trim::moved(model)
}

/// The person at the review says go by a key: not by one that was on its way elsewhere when the review opened.
pub fn approve_by_key(model: &mut Model) -> Result<Vec<Effect>, String> {
    if let Some(Overlay::Review {
        since,
        asked: false,
    }) = model.overlay
        && model.now.since(since) < OPENING_GUARD
    {
        return Err("the review has only just opened: once more".to_owned());
    }
    approve(model, Approval::Person)
}

/// A person, a script or `auto` mode says go. A second approval while a turn runs interrupts it.
pub fn approve(model: &mut Model, approval: Approval) -> Result<Vec<Effect>, String> {
    super::handoff::finish_edit(model);
    // Nobody sees the countdown of `auto` behind an editor: the review waits.
    if approval == Approval::Auto && model.external.is_some() {
        return Err("an editor has the terminal".to_owned());
    }
    if let Some(why) = external::refusal(model).or_else(|| trim::refusal(model)) {
        return Err(why);
    }
    let message = model.handoff.current().clone();
    let Some(attempt) = &mut model.reboot.attempt else {
        return Err("no reboot waits for an approval: `pitstop ctl reboot` begins one".to_owned());
    };
    match attempt.step {
        Step::Armed | Step::Drafting | Step::Review => {
            attempt.approved = Some(approval);
            // What was on the screen is what is sent; where that is nothing, nothing has to arrive.
            attempt.handoff = (!message.text.is_empty()).then_some(message);
        }
        Step::Waiting => attempt.force = true,
        step => return Err(format!("the reboot has been approved: {step}")),
    }
    model.overlay = None;
    let mut effects = super::summary::settle(model);
    effects.extend(advance(model));
    Ok(effects)
}

/// Stops `auto` mode's countdown: whoever presses a key in the review decides. What is being edited must not
/// be sent half-way.
pub fn hold(model: &mut Model) {
    let epoch = model.next_epoch();
    if let Some(attempt) = &mut model.reboot.attempt
        && attempt.step == Step::Review
        && attempt.approved.is_none()
    {
        attempt.epoch = epoch;
    }
}

/// Puts the reboot off, or gives it up.
pub fn cancel(model: &mut Model, defer: bool) -> Result<Vec<Effect>, String> {
    match &model.reboot.attempt {
        Some(attempt) if attempt.is_harmless() => {}
        Some(attempt) => return Err(format!("too late to cancel: {}", attempt.step)),
        None => return Err("no reboot to cancel".to_owned()),
    }
    if matches!(model.overlay, Some(Overlay::Review { .. })) {
        model.overlay = None;
    }
    let turns = model.agent.turns;
    model.reboot.quiet_until_turn = if defer {
        turns.saturating_add(DEFER_TURNS)
    } else {
        u32::MAX
    };
    let why = if defer { "deferred" } else { "cancelled" };
    model.notice(if defer {
        format!("reboot deferred by {DEFER_TURNS} turns")
    } else {
        "reboot cancelled: nothing was changed".to_owned()
    });
    let mut effects = end_attempt(model, Step::Failed, Some(why));
    if !defer {
        effects.extend(autopilot::hold(model, "your cancelling"));
    }
    Ok(effects)
}

/// Asks for a reboot by itself if usage says so and nothing speaks against it. An estimate says too little: a
/// program that only redraws its screen would fill any window by it.
pub fn consider(model: &mut Model) -> Vec<Effect> {
    let figure = model.guard.figure(model.now);
    let told = figure
        .as_ref()
        .filter(|figure| figure.source != Source::Estimate);
    let full = told.is_some_and(|figure| figure.level >= Level::Overflow);
    let good = told.is_some_and(|figure| breakpoint::is_good(model, figure));
    let eligible = (full || good)
        && model.mode != RebootMode::Manual
        && !model.paused
        && model.reboot.attempt.is_none()
        && model.quitting.is_none()
        && model.agent.state != AgentState::Exited
        && model.agent.turns >= model.reboot.quiet_until_turn
        && !autopilot::is_last(model);
    if !eligible {
        return Vec::new();
    }
    if good {
        breakpoint::take(model);
    }
    let cause = if full {
        Cause::Threshold
    } else {
        Cause::Breakpoint
    };
    match request(model, cause, false) {
        Ok(effects) => effects,
        // There will be another good moment, or the compact line.
        Err(why) if !full => {
            tracing::info!(why, "a good moment was not taken");
            Vec::new()
        }
        Err(why) => {
            if let Some(effects) = autopilot::thrash(model, &why) {
                return effects;
            }
            model.trouble(why);
            model.reboot.quiet_until_turn = u32::MAX;
            Vec::new()
        }
    }
}

/// Why no reboot may begin by itself now.
fn breaker(model: &mut Model) -> Option<String> {
    let settings = &model.config.reboot;
    let now = model.now;
    model
        .reboot
        .begun
        .retain(|begun| now.since(*begun) < Duration::from_hours(1));
    let begun = u32::try_from(model.reboot.begun.len()).unwrap_or(u32::MAX);
    if begun >= settings.max_reboots_per_hour {
        return Some(format!(
            "no reboot by itself: {begun} in the last hour (max_reboots_per_hour = {})",
            settings.max_reboots_per_hour
        ));
    }
    // A session that was resumed has its turns behind it.
    let fresh = model
        .current_iteration()
        .is_some_and(|one| one.reboot.is_some());
    if fresh && model.agent.turns < settings.min_turns_between {
        return Some(format!(
            "no reboot by itself: only {} turns since the last one, and the window is full again",
            model.agent.turns
        ));
    }
    None
}

/// A step is on disk.
pub fn journaled(model: &mut Model, id: uuid::Uuid, step: Step) -> Vec<Effect> {
    match &mut model.reboot.attempt {
        Some(attempt) if attempt.id == id && attempt.step == step => attempt.journaled = true,
        _ => return Vec::new(),
    }
    advance(model)
}

/// The facts for the draft have arrived.
pub fn drafted(model: &mut Model) -> Vec<Effect> {
    if let Some(attempt) = &mut model.reboot.attempt {
        attempt.drafted = true;
    }
    advance(model)
}

/// The body of a message that was not delivered, while the old session is being resumed: it stays at hand for
/// another review.
#[must_use]
pub fn undelivered(model: &Model) -> Option<String> {
    let message = match &model.reboot.attempt {
        // A trim sends no message, so the human's own is still to be sent.
        Some(attempt) if attempt.kind == Kind::Trim => model.handoff.edited.as_ref(),
        Some(attempt) if attempt.rolling_back.is_some() => attempt.handoff.as_ref(),
        Some(_) => None,
        None => model.handoff.edited.as_ref(),
    };
    message.map(|one| one.body().to_owned())
}

/// The new agent's process runs.
pub fn spawned(model: &mut Model) -> Vec<Effect> {
    if let Some(attempt) = &mut model.reboot.attempt {
        attempt.spawned = true;
    }
    advance(model)
}

/// The new agent's process could not be started.
pub fn spawn_failed(model: &mut Model, why: &str) -> Vec<Effect> {
    if let Some(attempt) = &mut model.reboot.attempt {
        attempt.failed = Some(why.to_owned());
    }
    advance(model)
}

/// A prompt reached the agent: is it the handoff?
pub fn prompt_seen(model: &mut Model, prompt: &str) -> Vec<Effect> {
    let Some(attempt) = &mut model.reboot.attempt else {
        return Vec::new();
    };
    let Some(handoff) = &attempt.handoff else {
        return Vec::new();
    };
    if attempt.kind == Kind::Trim || !attempt.is_under_way() || !handoff.marker.is_in(prompt) {
        return Vec::new();
    }
    attempt.proven = true;
    if clean::composed(prompt.trim_end()) != clean::composed(&handoff.text) {
        let (sent, arrived) = (handoff.text.len(), prompt.len());
        model.trouble(format!(
            "the handoff arrived changed: {sent} bytes sent, {arrived} arrived"
        ));
    }
    advance(model)
}

/// The marker was seen by other means than a hook.
pub fn marker_seen(model: &mut Model) -> Vec<Effect> {
    match &mut model.reboot.attempt {
        Some(attempt) if attempt.is_under_way() => attempt.proven = true,
        _ => return Vec::new(),
    }
    advance(model)
}

/// The agent's process is gone. Returns whether the reboot expected it or deals with it.
pub fn exited(model: &mut Model, exit: &Exit) -> (bool, Vec<Effect>) {
    let Some(attempt) = &mut model.reboot.attempt else {
        return (false, Vec::new());
    };
    match attempt.step {
        Step::Armed | Step::Drafting | Step::Review | Step::Waiting => {
            attempt.old_gone = true;
        }
        Step::Ending => attempt.old_gone = true,
        _ => attempt.failed = Some(format!("the new agent ended at once: {exit}")),
    }
    (true, advance(model))
}

/// A timer of the reboot has run out.
pub fn timer(model: &mut Model, id: TimerId) -> Vec<Effect> {
    let Some(attempt) = &mut model.reboot.attempt else {
        return Vec::new();
    };
    match id {
        TimerId::AutoDelay(epoch) if epoch == attempt.epoch && attempt.approved.is_none() => {
            return approve(model, Approval::Auto).unwrap_or_default();
        }
        TimerId::Verify(epoch) if epoch == attempt.epoch && !attempt.proven => {
            return verify_due(model);
        }
        TimerId::WarmUp(epoch) if epoch == attempt.epoch && attempt.step == Step::Warming => {
            attempt.warmed_up = true;
        }
        _ => {}
    }
    advance(model)
}

fn verify_due(model: &mut Model) -> Vec<Effect> {
    let waits = activity::is_calm(model) && model.agent.prompt_box.is_present();
    let is_typing = say::is_typing(model);
    let timeout = model.config.reboot.verify_timeout;
    let Some(attempt) = &mut model.reboot.attempt else {
        return Vec::new();
    };
    if attempt.kind == Kind::Trim && waits {
        // Without hooks its screen is the witness: a client that waits for a prompt has taken the session.
        attempt.proven = true;
        return advance(model);
    }
    if is_typing {
        // The time begins with the Enter.
        return vec![Effect::SetTimer(TimerId::Verify(attempt.epoch), timeout)];
    }
    if !attempt.overdue {
        attempt.overdue = true;
        let what = match attempt.kind {
            Kind::Trim => {
                "the trimmed session is not confirmed: look at the pane (a dialog may wait for you)"
            }
            _ => {
                "the handoff is not confirmed: look at the pane (a dialog may wait for you); the handoff stays in its panel"
            }
        };
        model.trouble(what);
    }
    Vec::new()
}

/// Gives up a reboot that has harmed nothing yet because we are leaving; one that has is left in the
/// journal for the next start to finish.
pub fn abandon(model: &mut Model) -> Vec<Effect> {
    if matches!(model.overlay, Some(Overlay::Review { .. })) {
        model.overlay = None;
    }
    match &model.reboot.attempt {
        Some(attempt) if attempt.is_harmless() => end_attempt(model, Step::Failed, Some("quit")),
        Some(_) => {
            model.reboot.attempt = None;
            Vec::new()
        }
        None => Vec::new(),
    }
}

/// Why the old iteration of this reboot ends, in the words of its record.
#[must_use]
pub fn end_reason(model: &Model) -> EndReason {
    match &model.reboot.attempt {
        Some(attempt)
            if matches!(
                attempt.cause,
                Cause::Threshold | Cause::Breakpoint | Cause::ContextLimit
            ) =>
        {
            EndReason::ContextLimit
        }
        Some(attempt) if attempt.cause == Cause::Autopilot => EndReason::Natural,
        _ => EndReason::UserReboot,
    }
}
