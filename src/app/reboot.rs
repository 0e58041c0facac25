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

use std::time::Duration;

use crate::{
    api::wire::AgentState,
    clock::At,
    config::{Delivery, RebootMode},
    guard::{Level, Source},
    handoff::Handoff,
    lineage::{
        Cause, EndReason, IterationId, RebootRecord, Way,
        journal::{JournalEntry, Step},
    },
    transcript::SessionId,
};

use super::{
    effect::{Effect, StartAgent},
    ending,
    event::{Exit, TimerId},
    model::{Model, Overlay},
};

/// How long a review that opened by itself takes no Enter: whoever was typing must see it first.
const OPENING_GUARD: Duration = Duration::from_millis(800);

/// How long a pasted handoff may stay unsubmitted before one more lone Enter: a busy client loses the first.
const SECOND_ENTER: Duration = Duration::from_millis(1500);

/// How many turns `d` puts a reboot off.
const DEFER_TURNS: u32 = 3;

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
    /// The session before the last reboot, resumed.
    Undo(SessionId, Option<IterationId>),
    /// The same session, resumed after its process died.
    Restart,
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
    /// Whether the handoff was seen to arrive.
    pub proven: bool,
    /// Whether the proof is late and the human has been told.
    pub overdue: bool,
    journaled: bool,
    drafted: bool,
    old_gone: bool,
    started: bool,
    spawned: bool,
    failed: Option<String>,
    pasted: bool,
    submitted: bool,
    second_enter: bool,
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
                Kind::Fresh => model.lots.session,
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
            journaled: true,
            drafted: false,
            old_gone: model.agent.state == AgentState::Exited,
            started: false,
            spawned: false,
            failed: None,
            pasted: false,
            submitted: false,
            second_enter: false,
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
            way: Way::Fresh,
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
    if agent.background_tasks > 0 {
        blocks.push("background task");
    }
    if agent.state == AgentState::Dialog {
        blocks.push("dialog");
    }
    let by_person = model
        .reboot
        .attempt
        .as_ref()
        .is_some_and(|attempt| attempt.approved == Some(Approval::Person));
    if is_typing(model) && !by_person {
        blocks.push("typing");
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

fn is_safe(model: &Model) -> bool {
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
    if !asked && let Some(why) = breaker(model) {
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
    let parent = model
        .lineage
        .iterations()
        .iter()
        .rev()
        .find(|one| one.session_id == Some(old))
        .map(|one| one.iteration);
    Ok(resume(model, Kind::Undo(old, parent), Cause::Undo))
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
    let mut effects = enter(model, Step::Ending);
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
    attempt.handoff = Some(handoff);
    attempt.approved = Some(Approval::Person);
    attempt.old_gone = true;
    model.reboot.attempt = Some(attempt);
    let mut effects = enter(model, Step::Starting);
    effects.extend(advance(model));
    effects
}

/// Opens the review, or brings it to the front.
fn open_review(model: &mut Model, asked: bool) -> Vec<Effect> {
    if !matches!(model.overlay, Some(Overlay::Review { .. })) {
        model.overlay = Some(Overlay::Review {
            since: model.now,
            asked,
        });
        model.handoff.scroll = 0;
    }
    Vec::new()
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
    let message = model.handoff.current().clone();
    let Some(attempt) = &mut model.reboot.attempt else {
        return Err("no reboot waits for an approval".to_owned());
    };
    match attempt.step {
        Step::Armed | Step::Drafting | Step::Review => {
            attempt.approved = Some(approval);
            // What was on the screen is what is sent.
            attempt.handoff = Some(message);
        }
        Step::Waiting => attempt.force = true,
        step => return Err(format!("the reboot has been approved: {step}")),
    }
    model.overlay = None;
    Ok(advance(model))
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
    Ok(end_attempt(model, Step::Failed, Some(why)))
}

/// Asks for a reboot by itself if usage says so and nothing speaks against it. An estimate says too little: a
/// program that only redraws its screen would fill any window by it.
pub fn consider(model: &mut Model) -> Vec<Effect> {
    let figure = model.guard.figure(model.now);
    let full = figure
        .as_ref()
        .is_some_and(|figure| figure.level >= Level::Overflow && figure.source != Source::Estimate);
    let eligible = full
        && model.mode != RebootMode::Manual
        && !model.paused
        && model.reboot.attempt.is_none()
        && model.quitting.is_none()
        && model.agent.state != AgentState::Exited
        && model.agent.turns >= model.reboot.quiet_until_turn;
    if !eligible {
        return Vec::new();
    }
    match request(model, Cause::Threshold, false) {
        Ok(effects) => effects,
        Err(why) => {
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
    let first = model.lineage.iterations().len() <= 1;
    if !first && model.agent.turns < settings.min_turns_between {
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
    if !attempt.is_under_way() || !handoff.marker.is_in(prompt) {
        return Vec::new();
    }
    attempt.proven = true;
    if prompt.trim_end() != handoff.text {
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
    let generic = model.identity.agent_kind == "generic";
    let Some(attempt) = &mut model.reboot.attempt else {
        return Vec::new();
    };
    match id {
        TimerId::AutoDelay(epoch) if epoch == attempt.epoch && attempt.approved.is_none() => {
            return approve(model, Approval::Auto).unwrap_or_default();
        }
        TimerId::Enter(epoch) if epoch == attempt.epoch && attempt.pasted => {
            attempt.submitted = true;
            // A hook that told of the prompt means that it is submitted; a marker in the pane does not, for
            // what is pasted is echoed.
            let submit = generic || !attempt.proven;
            let mut effects: Vec<_> = submit
                .then(|| Effect::Type(b"\r".to_vec()))
                .into_iter()
                .collect();
            effects.extend(advance(model));
            return effects;
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
    let timeout = model.config.reboot.verify_timeout;
    let Some(attempt) = &mut model.reboot.attempt else {
        return Vec::new();
    };
    let epoch = attempt.epoch;
    if attempt.pasted && !attempt.second_enter {
        attempt.second_enter = true;
        return vec![
            Effect::Type(b"\r".to_vec()),
            Effect::SetTimer(TimerId::Verify(epoch), timeout.saturating_sub(SECOND_ENTER)),
        ];
    }
    if !attempt.overdue {
        attempt.overdue = true;
        model.trouble(
            "the handoff is not confirmed: look at the pane (a dialog may wait for you); the handoff stays in its panel",
        );
    }
    Vec::new()
}

/// What follows from what is true now.
pub fn advance(model: &mut Model) -> Vec<Effect> {
    let mut effects = Vec::new();
    while let Some(attempt) = &model.reboot.attempt {
        if !attempt.journaled {
            break;
        }
        let before = (attempt.step, effects.len());
        effects.extend(match attempt.step {
            Step::Armed => armed(model),
            Step::Drafting => drafting(model),
            Step::Review => review(model),
            Step::Waiting => waiting(model),
            Step::Ending => ending_step(model),
            Step::Starting => starting(model),
            Step::Delivering => delivering(model),
            Step::Verifying => verifying(model),
            Step::Warming => warming(model),
            Step::RollingBack => rolling_back(model),
            Step::Done | Step::Failed => Vec::new(),
        });
        let after = model.reboot.attempt.as_ref().map(|attempt| attempt.step);
        if after == Some(before.0) {
            break;
        }
    }
    effects
}

/// Writes a step ahead; what belongs to it is done once it is on disk.
fn enter(model: &mut Model, step: Step) -> Vec<Effect> {
    let now = model.now;
    let Some(mut attempt) = model.reboot.attempt.take() else {
        return Vec::new();
    };
    attempt.step = step;
    attempt.entered.push((step, now));
    let journal = attempt.kind == Kind::Fresh;
    attempt.journaled = !journal;
    let entry = journal.then(|| Effect::Journal(Box::new(attempt.entry(model, step))));
    model.reboot.attempt = Some(attempt);
    entry.into_iter().collect()
}

fn armed(model: &mut Model) -> Vec<Effect> {
    let approved = model
        .reboot
        .attempt
        .as_ref()
        .is_some_and(|one| one.approved.is_some());
    let asked = approved || matches!(model.overlay, Some(Overlay::Review { .. }));
    if !asked && !is_safe(model) {
        return Vec::new();
    }
    let mut effects = enter(model, Step::Drafting);
    effects.extend([Effect::ReadScratchpad, Effect::ReadGit]);
    effects
}

fn drafting(model: &mut Model) -> Vec<Effect> {
    let Some(attempt) = &model.reboot.attempt else {
        return Vec::new();
    };
    if !attempt.drafted && attempt.approved.is_none() {
        return Vec::new();
    }
    let epoch = attempt.epoch;
    let by_itself = attempt.cause == Cause::Threshold || attempt.cause == Cause::ContextLimit;
    let mut effects = enter(model, Step::Review);
    if by_itself && model.mode == RebootMode::Auto {
        let delay = model.config.reboot.auto_delay;
        model.notice(format!(
            "rebooting in {} s: any review key stops it",
            delay.as_secs()
        ));
        effects.push(Effect::SetTimer(TimerId::AutoDelay(epoch), delay));
    }
    if model
        .reboot
        .attempt
        .as_ref()
        .is_some_and(|attempt| attempt.approved.is_none())
    {
        effects.extend(open_review(model, false));
    }
    effects
}

fn review(model: &mut Model) -> Vec<Effect> {
    match &model.reboot.attempt {
        Some(attempt) if attempt.approved.is_some() => enter(model, Step::Waiting),
        _ => Vec::new(),
    }
}

fn waiting(model: &mut Model) -> Vec<Effect> {
    let Some(attempt) = &model.reboot.attempt else {
        return Vec::new();
    };
    if attempt.old_gone || attempt.force || is_safe(model) {
        model.reboot.begun.push(model.now);
        return enter(model, Step::Ending);
    }
    Vec::new()
}

fn ending_step(model: &mut Model) -> Vec<Effect> {
    let Some(attempt) = &model.reboot.attempt else {
        return Vec::new();
    };
    if attempt.old_gone {
        return enter(model, Step::Starting);
    }
    if model.ending.is_some_and(|ending| ending.hopeless) {
        return end_attempt(model, Step::Failed, Some("the old agent cannot be ended"));
    }
    ending::begin(model, false)
}

fn starting(model: &mut Model) -> Vec<Effect> {
    let Some(attempt) = &mut model.reboot.attempt else {
        return Vec::new();
    };
    if !attempt.started {
        attempt.started = true;
        return start(model);
    }
    if attempt.failed.is_some() {
        return roll_back(model);
    }
    if !attempt.spawned {
        return Vec::new();
    }
    match attempt.kind {
        Kind::Fresh => {
            let epoch = attempt.epoch;
            let timeout = model.config.reboot.verify_timeout;
            let mut effects = enter(model, Step::Delivering);
            // A paste waits for an agent that is ready, which one with a dialog never is.
            effects.push(Effect::SetTimer(TimerId::Verify(epoch), timeout));
            effects
        }
        Kind::Undo(..) | Kind::Restart => finish(model),
    }
}

/// Opens the next iteration and orders its process.
fn start(model: &mut Model) -> Vec<Effect> {
    let Some(attempt) = &model.reboot.attempt else {
        return Vec::new();
    };
    let (kind, cause, session) = (attempt.kind, attempt.cause, attempt.new);
    let text = attempt.handoff.as_ref().map(|handoff| handoff.text.clone());
    let parent = match kind {
        Kind::Undo(_, parent) => parent,
        Kind::Fresh | Kind::Restart => model.lineage.iterations().last().map(|last| last.iteration),
    };
    super::agent::open_iteration(model, session, Some(cause), parent);
    let iteration = model.iteration;
    let as_prompt = kind == Kind::Fresh && !is_pasted(model);
    let mut effects = vec![Effect::Start(StartAgent {
        iteration,
        session,
        resume: kind != Kind::Fresh,
        prompt: text.clone().filter(|_| as_prompt),
        first: false,
    })];
    if let Some(text) = text {
        effects.push(Effect::SaveHandoff { iteration, text });
    }
    effects
}

/// A generic agent has no start prompt, and one argument may not be longer than 128 KiB on Linux.
fn is_pasted(model: &Model) -> bool {
    let too_long = model
        .reboot
        .attempt
        .as_ref()
        .and_then(|attempt| attempt.handoff.as_ref())
        .is_some_and(|handoff| handoff.bytes() > 120 * 1024);
    too_long
        || model.config.reboot.delivery == Delivery::Paste
        || model.identity.agent_kind == "generic"
}

fn delivering(model: &mut Model) -> Vec<Effect> {
    let pasted = is_pasted(model);
    let timeout = model.config.reboot.verify_timeout;
    let generic = model.identity.agent_kind == "generic";
    // The hook that tells of the start may come before the pane has told that it takes pastes.
    let ready = model.agent.state != AgentState::Starting && (generic || model.agent.takes_pastes);
    let Some(attempt) = &mut model.reboot.attempt else {
        return Vec::new();
    };
    if attempt.failed.is_some() {
        return roll_back(model);
    }
    let epoch = attempt.epoch;
    if !pasted {
        let mut effects = enter(model, Step::Verifying);
        effects.push(Effect::SetTimer(TimerId::Verify(epoch), timeout));
        return effects;
    }
    let Some(handoff) = attempt.handoff.clone().filter(|_| ready) else {
        return Vec::new();
    };
    attempt.pasted = true;
    let mut effects = enter(model, Step::Verifying);
    if generic {
        // Others have hooks; in their prompt a marker shows before anything is submitted.
        effects.push(Effect::WatchPane(handoff.marker.nonce.clone()));
    }
    effects.extend([
        Effect::Paste(handoff.text),
        Effect::SetTimer(TimerId::Enter(epoch), Duration::from_millis(120)),
        Effect::SetTimer(TimerId::Verify(epoch), SECOND_ENTER),
    ]);
    effects
}

fn verifying(model: &mut Model) -> Vec<Effect> {
    let Some(attempt) = &model.reboot.attempt else {
        return Vec::new();
    };
    let generic = model.identity.agent_kind == "generic";
    if attempt.proven && (attempt.submitted || !generic) {
        let (epoch, delay) = (attempt.epoch, model.config.reboot.warmup_delay);
        if model.config.reboot.warmup_prompt.is_none() {
            return finish(model);
        }
        let mut effects = enter(model, Step::Warming);
        effects.push(Effect::SetTimer(TimerId::WarmUp(epoch), delay));
        return effects;
    }
    if attempt.failed.is_some() {
        return roll_back(model);
    }
    Vec::new()
}

/// The warm-up prompt is typed once its delay is over and the first turn has ended.
fn warming(model: &mut Model) -> Vec<Effect> {
    let Some(attempt) = &model.reboot.attempt else {
        return Vec::new();
    };
    if attempt.failed.is_some() {
        return finish(model);
    }
    if !attempt.warmed_up || model.agent.state != AgentState::Idle {
        return Vec::new();
    }
    let mut effects = super::agent::say(
        model,
        &model
            .config
            .reboot
            .warmup_prompt
            .clone()
            .unwrap_or_default(),
    );
    effects.extend(finish(model));
    effects
}

/// The new agent could not take over: resume the old session.
fn roll_back(model: &mut Model) -> Vec<Effect> {
    let Some(attempt) = &mut model.reboot.attempt else {
        return Vec::new();
    };
    let why = attempt.failed.take().unwrap_or_default();
    if attempt.kind != Kind::Fresh {
        return end_attempt(model, Step::Failed, Some(&why));
    }
    attempt.rolling_back = Some(why);
    attempt.started = false;
    attempt.spawned = false;
    let mut effects = super::agent::close_iteration(model, EndReason::Crash);
    effects.extend(enter(model, Step::RollingBack));
    effects
}

fn rolling_back(model: &mut Model) -> Vec<Effect> {
    let Some(attempt) = &mut model.reboot.attempt else {
        return Vec::new();
    };
    let old = attempt.old;
    if !attempt.started {
        attempt.started = true;
        let parent = model
            .lineage
            .iterations()
            .iter()
            .rev()
            .find(|one| one.session_id == Some(old))
            .map(|one| one.iteration);
        super::agent::open_iteration(model, old, Some(Cause::Recovery), parent);
        let iteration = model.iteration;
        return vec![Effect::Start(StartAgent {
            iteration,
            session: old,
            resume: true,
            prompt: None,
            first: false,
        })];
    }
    if attempt.failed.is_none() && !attempt.spawned {
        return Vec::new();
    }
    let why = attempt.rolling_back.clone().unwrap_or_default();
    model.trouble(format!(
        "reboot rolled back, the old session is resumed: {why}"
    ));
    end_attempt(model, Step::Failed, None)
}

/// Everything went well: the record goes to the history.
fn finish(model: &mut Model) -> Vec<Effect> {
    let record = record(model);
    let Some(attempt) = &model.reboot.attempt else {
        return Vec::new();
    };
    let verified = attempt.proven;
    let kind = attempt.kind;
    let total = record.total_ms();
    let iteration = model.iteration;
    if kind == Kind::Fresh
        && let Some(current) = model.lineage.current_mut()
    {
        current.reboot = Some(record);
    }
    model.notice(match kind {
        Kind::Fresh if verified => {
            format!("iteration {iteration}: the handoff has arrived, {total} ms after the approval")
        }
        Kind::Fresh => format!("iteration {iteration} has started"),
        Kind::Undo(..) => format!("iteration {iteration}: the session before the reboot is back"),
        Kind::Restart => format!("iteration {iteration}: the session is resumed"),
    });
    if matches!(kind, Kind::Undo(..)) {
        // Whoever took a reboot back does not want to be asked again at once.
        model.reboot.quiet_until_turn = DEFER_TURNS;
    }
    let mut effects = end_attempt(model, Step::Done, None);
    effects.extend(super::agent::save_iteration(model));
    effects
}

/// How long each step from the approval on took, and what was sent.
fn record(model: &Model) -> RebootRecord {
    let mut record = RebootRecord {
        old_session: None,
        new_session: None,
        way: Way::Fresh,
        cause: Cause::Key,
        transition_time_ms: std::collections::BTreeMap::default(),
        handoff_bytes: 0,
        handoff_tokens: crate::transcript::Tokens(0),
        verified: false,
        warmed_up: false,
        preserved_state: serde_json::to_value(&model.preserved).ok(),
    };
    let Some(attempt) = &model.reboot.attempt else {
        return record;
    };
    record.old_session = Some(attempt.old);
    record.new_session = Some(model.session);
    record.cause = attempt.cause;
    record.verified = attempt.proven;
    record.warmed_up = attempt.warmed_up;
    if let Some(handoff) = &attempt.handoff {
        record.handoff_bytes = handoff.bytes() as u64;
        record.handoff_tokens = handoff.tokens();
    }
    let ends = attempt
        .entered
        .iter()
        .skip(1)
        .map(|(_, at)| *at)
        .chain([model.now]);
    for ((step, at), end) in attempt.entered.iter().zip(ends) {
        if matches!(step, Step::Armed | Step::Drafting | Step::Review) {
            continue;
        }
        let ms = u64::try_from(end.since(*at).as_millis()).unwrap_or(u64::MAX);
        *record.transition_time_ms.entry(*step).or_default() += ms;
    }
    record
}

/// Closes the attempt, in the journal too.
fn end_attempt(model: &mut Model, step: Step, why: Option<&str>) -> Vec<Effect> {
    if let (Some(why), Some(attempt)) = (why, &mut model.reboot.attempt) {
        attempt.rolling_back.get_or_insert_with(|| why.to_owned());
    }
    if step == Step::Failed {
        model.reboot.failure = model
            .reboot
            .attempt
            .as_ref()
            .and_then(|attempt| attempt.rolling_back.clone());
    }
    let effects = enter(model, step);
    model.reboot.attempt = None;
    model.ending = None;
    effects
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
        Some(attempt) if matches!(attempt.cause, Cause::Threshold | Cause::ContextLimit) => {
            EndReason::ContextLimit
        }
        _ => EndReason::UserReboot,
    }
}
