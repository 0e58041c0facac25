//! The reboot as a state machine.
//!
//! ```text
//!            key ────────────────┐
//!  threshold ─► armed ─► drafting ─► review ─► preparing ─► waiting ─► ending ─► starting ─► delivering ─► verifying ─► warming ─► done
//!                 (until safe)      (approve)     │       (until safe)            │             │            │
//!                                                 └─► failed                      └──── rolling back ────────┘─► failed
//! ```
//!
//! Before the old agent is touched, the step `preparing` makes and checks what the new one needs: else the reboot is refused
//! with the reason, and the old agent goes on.
//!
//! In the step `review` the message is drafted and waits for an approval. Nothing is opened over a person for that: a
//! [`Banner`] says that it waits, and the review itself ([`Overlay::Review`]) is opened by their key. A script may approve
//! it whether it is open or not.
//!
//! Every step is written to the journal before it is acted on: [`advance`] does nothing while the write is
//! under way. It looks only at what is true now, so facts may arrive in any order: the proof of delivery
//! may come before the step that waits for it.

mod automatic;
mod banner;
mod prepare;
mod steps;

use crate::{
    api::wire::AgentState,
    clean,
    clock::At,
    config::RebootMode,
    guard::Level,
    handoff::Handoff,
    lineage::{
        Cause, EndReason, IterationId, TrimRecord, Way,
        journal::{JournalEntry, Step},
    },
    transcript::{SessionId, Tokens},
};

use super::{
    activity, autopilot,
    draft::{self, OnDisk, Unsent},
    effect::Effect,
    event::{Exit, TimerId},
    external,
    model::{Model, Overlay},
    reading::Reading,
    say,
    trim::{self, Preview},
};

use automatic::{Clock, breaker};
pub use automatic::{
    Quiet, QuietReason, after, consider, is_quiet, refused, session_changed, tick,
};
pub use banner::{Banner, banner};
use prepare::Prepared;
pub use prepare::prepared;
pub use steps::{advance, draft_kept};
use steps::{end_attempt, enter};

/// The word for a document in `$EDITOR`, which blocks a reboot that the person at it has not asked for.
pub const EDITOR: &str = "editor";

/// Why a reboot has ended that was not due any more, in the word of the counters.
pub(super) const WITHDRAWN: &str = "withdrawn";

/// The word for an unsent prompt that cannot be read, and so would be lost.
pub const UNSENT: &str = "unsent prompt";

/// How many turns `d` puts a reboot off.
pub(super) const DEFER_TURNS: u32 = 3;

/// The reboot under way and what is remembered between two.
#[derive(Debug, Default)]
pub struct Reboot {
    /// The reboot under way.
    pub attempt: Option<Attempt>,
    /// Why none begins by itself for now.
    pub quiet: Option<Quiet>,
    /// When the latest reboots began, for the breaker.
    begun: Vec<At>,
    /// Why the last one failed.
    pub failure: Option<String>,
    /// The level at which a person was last called to a reboot of this session.
    called: Option<Level>,
}

impl Reboot {
    /// Another session begins: what a person was called for was about the one before.
    pub const fn forget_calls(&mut self) {
        self.called = None;
    }
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
    /// The iteration that ends.
    pub(super) from: IterationId,
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
    prepared: Prepared,
    /// Whether the prompt box was looked at for the last time.
    looked: bool,
    /// How far what it holds is on its way to the disk.
    draft: OnDisk,
    old_gone: bool,
    started: bool,
    spawned: bool,
    pub(super) failed: Option<String>,
    /// How much of the window was in use when it was begun.
    pub used: Option<Tokens>,
    /// When `auto` goes ahead, while nothing speaks against it.
    clock: Option<Clock>,
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
            from: model.iteration,
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
            prepared: Prepared::default(),
            looked: false,
            draft: OnDisk::Nothing,
            old_gone: model.agent.state == AgentState::Exited,
            started: false,
            spawned: false,
            failed: None,
            used: model.used(),
            clock: None,
            warmed_up: false,
            epoch,
        }
    }

    /// Whether the old agent still lives and nothing has been done to it.
    #[must_use]
    pub fn is_harmless(&self) -> bool {
        matches!(
            self.step,
            Step::Armed | Step::Drafting | Step::Review | Step::Preparing | Step::Waiting
        )
    }

    /// Whether nobody has asked for it.
    #[must_use]
    pub const fn is_by_itself(&self) -> bool {
        matches!(
            self.cause,
            Cause::Threshold | Cause::Breakpoint | Cause::ContextLimit | Cause::Autopilot
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
    let by_person = model
        .reboot
        .attempt
        .as_ref()
        .is_some_and(|attempt| attempt.approved == Some(Approval::Person));
    // The list hides whether a turn runs: the hooks alone say it then.
    if agent.state == AgentState::Unknown && !(agent.listing && by_person) {
        blocks.push("unknown");
    }
    // What is typed into the agent view is the task of yet another session; the session itself is ended from there too.
    if agent.state == AgentState::Dialog || (agent.listing && !by_person) {
        blocks.push("dialog");
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

/// Whether a document is open in an editor, `$EDITOR` or one of our own: what is half written is not to be sent.
fn is_editing(model: &Model) -> bool {
    model.external.is_some() || model.notes.editor.is_some() || model.handoff.editor.is_some()
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

/// A person, a script or a threshold asks for a reboot. `asked` says whether one of the first two did; the review is opened
/// only for the person at the keyboard.
pub fn request(model: &mut Model, cause: Cause, asked: bool) -> Result<Vec<Effect>, String> {
    if let Some(attempt) = &model.reboot.attempt {
        if attempt.is_harmless() && asked {
            return Ok(shown_to(model, cause));
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
        effects.extend(shown_to(model, cause));
    } else if model.mode == RebootMode::Ask {
        effects.extend(call(model, "A reboot waits for your review."));
    }
    effects.extend(advance(model));
    Ok(effects)
}

/// Calls a person to a reboot that waits for them or is announced: once for each level that the session reaches. A run has its
/// own way to call.
fn call(model: &mut Model, what: &str) -> Vec<Effect> {
    let Some(attempt) = &model.reboot.attempt else {
        return Vec::new();
    };
    let level = match attempt.cause {
        Cause::Breakpoint => Level::Critical,
        _ => Level::Overflow,
    };
    if model.autopilot.is_some() || model.reboot.called >= Some(level) {
        return Vec::new();
    }
    model.reboot.called = Some(level);
    let figure = model.guard.figure(model.now);
    let figure = figure.map_or_else(String::new, |figure| {
        format!(" The context is {:.0} % full.", figure.percent.floor())
    });
    let said = format!("{what}{figure}");
    // The banner stands until it is answered; when it began to is read here.
    let now = model.now.wall;
    model.view.log(&said, false, now);
    vec![Effect::Call(said)]
}

/// Whoever has asked for a reboot is shown it: the person at the keyboard its review, a script nothing.
fn shown_to(model: &mut Model, cause: Cause) -> Vec<Effect> {
    if cause == Cause::Key {
        open_review(model)
    } else {
        trim::survey(model)
    }
}

/// A script asks for a reboot by this way.
pub fn request_by(model: &mut Model, way: Way) -> Result<Vec<Effect>, String> {
    if way == Way::Trim && model.is_generic() {
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
    Ok(bring_back(model, old, "your undo"))
}

/// Ends the present session and resumes an earlier one; the present one stays in the history.
pub fn resume_earlier(model: &mut Model, session: SessionId) -> Result<Vec<Effect>, String> {
    if let Some(attempt) = &model.reboot.attempt {
        return Err(format!("a reboot is under way: {}", attempt.step));
    }
    if model.quitting.is_some() {
        return Err("pitstop is quitting".to_owned());
    }
    if model.is_generic() {
        return Err("this agent has no sessions to resume".to_owned());
    }
    if model.session == session {
        return Err("this is the present session".to_owned());
    }
    Ok(bring_back(model, session, "your choice of a session"))
}

fn bring_back(model: &mut Model, session: SessionId, held_by: &'static str) -> Vec<Effect> {
    let parent = model.lineage.newest_in(session);
    let mut effects = autopilot::hold(model, held_by);
    effects.extend(resume(model, Kind::Undo(session, parent), Cause::Undo));
    effects
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
    // Of an agent that has ended nothing can be lost any more.
    let first = match kind {
        Kind::Restart => Step::Waiting,
        _ => Step::Preparing,
    };
    let mut effects = enter(model, first);
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
fn open_review(model: &mut Model) -> Vec<Effect> {
    if model.overlay == Some(Overlay::Review) {
        return Vec::new();
    }
    model.overlay = Some(Overlay::Review);
    model.view.reading = Reading::default();
    model.handoff.lists_missing = false;
    let mut effects = trim::survey(model);
    let drafted = model
        .reboot
        .attempt
        .as_ref()
        .is_some_and(|attempt| attempt.step == Step::Review && attempt.approved.is_none());
    if drafted {
        // Turns may have passed since it was drafted: the person may have gone on working under the banner.
        effects.extend([Effect::ReadScratchpad, Effect::ReadGit]);
        effects.extend(super::summary::refresh(model));
    }
    effects
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

/// The old session has ended, and it is this one that an undo has to resume.
pub fn ended_as(model: &mut Model, session: SessionId) {
    if let Some(attempt) = &mut model.reboot.attempt
        && attempt.step == Step::Ending
        && attempt.kind.is_reboot()
    {
        attempt.old = session;
    }
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
        Step::Preparing | Step::Waiting => attempt.force = true,
        step => return Err(format!("the reboot has been approved: {step}")),
    }
    close_review(model);
    let mut effects = super::summary::settle(model);
    effects.extend(advance(model));
    Ok(effects)
}

/// Takes the review from the screen. What else lies there is not this reboot's.
fn close_review(model: &mut Model) {
    if model.overlay == Some(Overlay::Review) {
        model.overlay = None;
    }
}

/// Puts the reboot off, or gives it up.
pub fn cancel(model: &mut Model, defer: bool) -> Result<Vec<Effect>, String> {
    match &model.reboot.attempt {
        Some(attempt) if attempt.is_harmless() => {}
        Some(attempt) => return Err(format!("too late to cancel: {}", attempt.step)),
        None => return Err("no reboot to cancel".to_owned()),
    }
    close_review(model);
    let why = if defer {
        // Once it is due again it is news again.
        model.reboot.called = None;
        automatic::be_quiet(model, DEFER_TURNS, QuietReason::Deferred);
        model.notice(format!("reboot deferred by {DEFER_TURNS} turns"));
        "deferred"
    } else {
        automatic::be_quiet(model, 1, QuietReason::Cancelled);
        model.notice("reboot cancelled: nothing was changed");
        "cancelled"
    };
    let mut effects = end_attempt(model, Step::Failed, Some(why));
    if !defer {
        effects.extend(autopilot::hold(model, "your cancel"));
    }
    Ok(effects)
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
    let given_up = automatic::agent_ended(model);
    let Some(attempt) = &mut model.reboot.attempt else {
        return (false, given_up);
    };
    match attempt.step {
        _ if attempt.is_harmless() => attempt.old_gone = true,
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
    close_review(model);
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
