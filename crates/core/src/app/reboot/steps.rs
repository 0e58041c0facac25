//! The steps of a reboot: what each waits for, what it does, and which comes next.

use std::time::Duration;

use crate::{
    api::wire::AgentState,
    config::{Delivery, RebootMode},
    lineage::{Cause, EndReason, RebootRecord, TrimRecord},
};
use pitstop_agent::{
    bridge::{BridgeOrder, OrderId},
    claude::prompt_box::PromptBox,
};
use pitstop_handoff::Handoff;
use pitstop_transcript::SessionId;

use super::{
    DEFER_TURNS, prepare,
    timing::{self, is_free, is_within_call, quiet_for},
};
use crate::app::{
    draft::{
        carried, checkpoint, handoff,
        record::save_iteration,
        summary::{self, SummaryEvent},
    },
    effect::{Effect, StartAgent},
    event::TimerId,
    facts::{
        answers_at_once, holds_compaction, is_safe, not_begun, reads_task, restart_prompt,
        typing_refusal,
    },
    model::{
        Model, Overlay,
        attempt::{AttemptEvent, verify_timer},
        event_scratch::NoReboot,
        orders::Purpose,
        reboot::{
            Attempt, Kind, LastLook, Launch, NewAgent, Phase, Prepared, QuietReason, RebootOutcome,
            Replacing,
        },
        unsent::OnDisk,
        view::Outcome,
    },
    reboot::{
        ending::{self, EndingEvent},
        in_place,
        iteration::{close_iteration, open_iteration},
        moment, on_the_fly,
        submit::{self, Then},
        unsent,
    },
};

/// The time that the client's own side may take to read the prompt box: it is done in milliseconds.
const DRAFT_READ_WITHIN: Duration = Duration::from_secs(2);

/// What follows in the phase that a reboot is in.
pub(super) enum Next {
    /// The next phase begins.
    Enter(Phase),
    /// The phase goes on like this, with an order to the shell.
    GoOn(Phase, Option<Effect>),
    /// The reboot takes this in, and these effects follow from it.
    Note(AttemptEvent<'static>, Vec<Effect>),
    /// Another way is taken, because it cannot be done in place for this reason, and this phase begins.
    Change(Kind, Option<String>, Option<Phase>),
    /// The message is made.
    Draft {
        /// True if a model sums up the session for it.
        summed_up: bool,
    },
    /// The prompt box is read once more.
    LookAtDraft,
    /// The old agent is left, whose unsent prompt is on disk.
    LeaveAgent(OnDisk),
    /// The conversation is replaced around the unsent prompt, which is on disk.
    BeginInPlace(OnDisk),
    /// The client's own side gets this order to replace the conversation.
    Replace(BridgeOrder),
    /// The conversation is replaced by this text: the next iteration begins, for this cause.
    Replaced(Cause, Option<String>),
    /// This command is typed, which begins the turn after the handoff.
    TypeCommand(String),
    /// This order is taken back, and none is given to this process again for the middle of a turn, for this reason.
    LeaveUnanswered(OrderId, &'static str),
    /// The old agent is ended.
    EndAgent,
    /// The next iteration of this reboot begins, and its process is started.
    Start(Box<Attempt>),
    /// The message is typed into the new agent.
    Paste(NewAgent, Handoff),
    /// The warm-up prompt is given.
    WarmUp,
    /// The new agent cannot take over for this reason. The record is for the iteration that it has begun, if there is one; the last is
    /// what was kept on disk of the prompt box.
    RollBack(String, Option<Box<RebootRecord>>, OnDisk),
    /// The session that was to end is resumed.
    Resume(SessionId),
    /// The reboot ends.
    End(End),
}

/// Takes the steps that follow from what is true now.
pub fn advance(model: &mut Model) {
    while let Some(attempt) = model.reboot.attempt.as_ref().filter(|one| one.journaled) {
        let before = (attempt.step(), attempt.kind);
        let next = next(model, attempt);
        follow(model, next);
        let attempt = model.reboot.attempt.as_ref();
        if attempt.map(|one| (one.step(), one.kind)) == Some(before) {
            break;
        }
    }
}

/// Returns what follows from what is true now.
fn next(model: &Model, attempt: &Attempt) -> Option<Next> {
    match &attempt.phase {
        Phase::Armed => is_to_be_drafted(model, attempt).then(|| draft(model, attempt)),
        Phase::Drafting { gathered } => is_drafted(model, attempt, *gathered)
            .then_some(Next::Enter(Phase::Review { clock: None })),
        Phase::Review { .. } => {
            let first = Phase::Preparing(Prepared::Nothing);
            attempt.approved.map(|_| Next::Enter(first))
        }
        Phase::Preparing(prepared) => match prepared {
            Prepared::Nothing => {
                let order = prepare::order(model, attempt);
                Some(Next::GoOn(Phase::Preparing(Prepared::Ordered), Some(order)))
            }
            Prepared::Ordered => None,
            Prepared::Ready => Some(Next::Enter(waiting())),
            Prepared::Refused(why) => Some(Next::End(End::Refused(why.clone()))),
        },
        Phase::Waiting { look, draft } => wait(model, attempt, *look, draft),
        Phase::Ending => end_old_agent(model, attempt),
        Phase::Starting { copying, agent } => starting(model, attempt, *copying, agent),
        Phase::Delivering(agent) => deliver(model, attempt, agent),
        Phase::Replacing(now) => in_place::replacing(model, attempt, now),
        Phase::Verifying(agent) => verify(model, attempt, agent),
        Phase::Warming { due, agent } => match agent.launch {
            Launch::Failed(_) => Some(Next::End(End::Finished { warmed_up: *due })),
            _ => (*due && model.session.agent.state == AgentState::Idle).then_some(Next::WarmUp),
        },
        Phase::RollingBack(launch) => match launch {
            Launch::Pending => Some(Next::Resume(attempt.old)),
            Launch::Ordered => None,
            Launch::Running => Some(Next::End(End::RolledBack)),
            Launch::Failed(again) => Some(Next::End(End::NotResumed(again.clone()))),
        },
        Phase::Done | Phase::Failed => None,
    }
}

/// Does what follows: the one place where a reboot gets on.
pub(super) fn follow(model: &mut Model, next: impl IntoIterator<Item = Next>) {
    for next in next {
        take_step(model, next);
    }
}

fn take_step(model: &mut Model, next: Next) {
    match next {
        Next::Enter(phase) => enter(model, phase),
        Next::GoOn(phase, order) => {
            model.reboot.on(AttemptEvent::GotOn(phase));
            model.emit_all(order);
        }
        Next::Note(event, effects) => {
            model.reboot.on(event);
            model.emit_all(effects);
        }
        Next::Change(way, why, phase) => {
            let attempt = model.reboot.attempt.as_ref();
            let awaited = attempt.and_then(Attempt::awaited_order);
            model.emit_all(awaited.map(Effect::RevokeOrder));
            in_place::take_way(model, way, why);
            if let Some(phase) = phase {
                enter(model, phase);
            }
        }
        Next::Draft { summed_up } => draft_message(model, summed_up),
        Next::LookAtDraft => look_at_draft(model),
        Next::LeaveAgent(on_disk) => {
            draft_again(model);
            unsent::take(model, &on_disk);
            enter(model, Phase::Ending);
        }
        Next::BeginInPlace(on_disk) => {
            model.reboot.on(AttemptEvent::DraftBeside(on_disk));
            draft_again(model);
            enter(model, Phase::Replacing(Replacing::Pending));
        }
        Next::Replace(order) => in_place::give_order(model, order),
        Next::Replaced(cause, text) => in_place::begin_iteration(model, cause, text),
        Next::TypeCommand(command) => in_place::type_command(model, &command),
        Next::LeaveUnanswered(order, why) => on_the_fly::leave_unanswered(model, order, why),
        Next::EndAgent => ending::on(model, EndingEvent::Begins { urgent: false }),
        Next::Start(attempt) => start(model, &attempt),
        Next::Paste(agent, handoff) => paste(model, agent, handoff),
        Next::WarmUp => warm_up(model),
        Next::RollBack(why, record, beside) => roll_back(model, why, record, beside),
        Next::Resume(old) => resume(model, old),
        Next::End(how) => end(model, how),
    }
}

/// Enters a phase, which is written ahead: its work is done once it is on disk.
pub(super) fn enter(model: &mut Model, phase: Phase) {
    carried::keep_edit(model);
    let Some(attempt) = &mut model.reboot.attempt else {
        return;
    };
    let is_written = attempt.enter(phase, model.now);
    let entry = is_written.then(|| attempt.entry(model.lineage.run(), &model.session, model.now));
    let config = &model.config.reboot;
    let timer = match attempt.phase {
        Phase::Ending | Phase::Replacing(_) => Some(moment::begin()),
        Phase::Delivering(_) | Phase::Verifying(_) => Some(verify_timer(config, attempt.epoch)),
        Phase::Warming { .. } => {
            let timer = TimerId::WarmUp(attempt.epoch);
            Some(Effect::SetTimer(timer, config.warmup_delay))
        }
        _ => None,
    };
    let ends_session = matches!(attempt.phase, Phase::Ending | Phase::Replacing(_));
    let handoff = attempt.handoff.as_ref().filter(|_| ends_session);
    let text = handoff.map(|handoff| handoff.text.clone());
    let journal = entry.map(|entry| Effect::Journal(Box::new(entry)));
    model.emit_all(journal.into_iter().chain(timer));
    if let Some(text) = text {
        checkpoint::at_reboot(model, text);
    }
}

/// Returns the phase that waits for a safe moment, at its beginning.
pub(super) const fn waiting() -> Phase {
    Phase::Waiting {
        look: LastLook::Pending,
        draft: OnDisk::Nothing,
    }
}

/// Reports whether no one is asked before the message is made, because the client waits for it or its turn goes on behind it.
fn goes_at_once(model: &Model) -> bool {
    (holds_compaction(model) && answers_at_once(model)) || timing::goes_on_the_fly(model)
}

/// Reports whether the message is made now: for the one who asks at any time, and otherwise at a moment that suits.
fn is_to_be_drafted(model: &Model, attempt: &Attempt) -> bool {
    attempt.approved.is_some()
        || holds_compaction(model)
        || goes_at_once(model)
        || !attempt.is_by_itself()
        || model.view.overlay == Some(Overlay::Review)
        || is_free(model)
}

fn draft(model: &Model, attempt: &Attempt) -> Next {
    // A session of one turn is not worth a summary, which costs as much as the turn, and a client that waits is not kept waiting
    // for one unless a person reads it.
    let is_worth = attempt.approved.is_none() && attempt.cause != Cause::Autopilot;
    let summed_up = is_worth && !goes_at_once(model);
    Next::Draft { summed_up }
}

/// Has the message made.
fn draft_message(model: &mut Model, summed_up: bool) {
    enter(model, Phase::Drafting { gathered: false });
    model.emit_all(reads_task(model));
    model.emit_all([Effect::ReadScratchpad, Effect::ReadGit]);
    if summed_up {
        summary::on(model, SummaryEvent::Drafting);
    }
}

/// Reports whether the message is there, as far as it is waited for.
fn is_drafted(model: &Model, attempt: &Attempt, gathered: bool) -> bool {
    let reviewed = model.view.overlay == Some(Overlay::Review);
    let unattended = attempt.is_by_itself() && model.reboot.mode == RebootMode::Auto && !reviewed;
    let whole = gathered && (goes_at_once(model) || !summary::is_awaited(model, unattended));
    whole || attempt.approved.is_some()
}

/// Waits for the safe moment. The text in the prompt box at that moment is carried over, or keeps the session from being ended.
fn wait(model: &Model, attempt: &Attempt, look: LastLook, draft: &OnDisk) -> Option<Next> {
    let holds_compaction = holds_compaction(model);
    if attempt.kind == Kind::OnTheFly && !holds_compaction {
        return on_the_fly::wait(model, attempt, look, draft);
    }
    // A client that waits in a compaction is at no safe moment, and needs none.
    if !(attempt.force || is_gone(model) || holds_compaction || is_safe(model)) {
        let event = AttemptEvent::NotSafe(model.session.agent.state);
        return Some(Next::Note(event, Vec::new()));
    }
    if attempt.kind.replaces() {
        return in_place::wait(model, attempt, look, draft);
    }
    match look {
        LastLook::Pending => Some(Next::LookAtDraft),
        LastLook::Done if !model.scratch.reads_prompt_box => {
            behind_draft(not_begun(model), look, draft, |on_disk| {
                if is_within_call(model, attempt) {
                    Next::Note(AttemptEvent::CallBegun, Vec::new())
                } else {
                    Next::LeaveAgent(on_disk)
                }
            })
        }
        LastLook::Ordered(_) | LastLook::Done => None,
    }
}

/// Returns what follows once this unsent text is on disk; until then, the order to write it.
pub(super) fn behind_draft(
    text: Option<String>,
    look: LastLook,
    draft: &OnDisk,
    then: impl FnOnce(OnDisk) -> Next,
) -> Option<Next> {
    match text {
        Some(text) if *draft == OnDisk::Ordered(text.clone()) => None,
        Some(text) if *draft != OnDisk::Kept(text.clone()) => {
            let draft = OnDisk::Ordered(text.clone());
            let order = Effect::KeepDraft(Some(text));
            Some(Next::GoOn(Phase::Waiting { look, draft }, Some(order)))
        }
        _ => Some(then(draft.clone())),
    }
}

/// Makes the handoff again from what is true now, where no one has read it or a turn has gone on since the approval, by up to some
/// hundred steps: it would name steps as under way that are done. A message that a person has edited is left as it is.
fn draft_again(model: &mut Model) {
    handoff::draft(model);
    let panel = &model.draft.handoff;
    let edited = panel.edited.is_some();
    model.reboot.renew_message(panel.current(), edited);
}

/// Has the prompt box read off the screen and, where possible, by the client's own side, which knows every line as it is.
fn look_at_draft(model: &mut Model) {
    model.scratch.reads_prompt_box = true;
    model.emit(Effect::ReadPromptBox);
    let mut look = LastLook::Done;
    let in_force = model.session.agent.bridge.of(model.session.id).is_some();
    if in_force && !is_gone(model) {
        let (purpose, order) = (Purpose::LastDraft, BridgeOrder::ReadDraft);
        look = LastLook::Ordered(model.order(purpose, order, DRAFT_READ_WITHIN));
    }
    model.reboot.on(AttemptEvent::Looked(look));
}

/// Reports whether the old agent is gone, by our doing or by itself.
fn is_gone(model: &Model) -> bool {
    model.session.agent.state == AgentState::Exited
}

fn end_old_agent(model: &Model, attempt: &Attempt) -> Option<Next> {
    match model.reboot.ending {
        _ if is_gone(model) => Some(Next::Enter(Phase::starting())),
        Some(ending) if ending.hopeless => {
            let why = Some("the old agent cannot be ended".to_owned());
            Some(Next::End(End::Unfinished(RebootOutcome::Failed, why)))
        }
        Some(_) => None,
        None => (!is_within_call(model, attempt)).then_some(Next::EndAgent),
    }
}

fn starting(model: &Model, attempt: &Attempt, copying: bool, agent: &NewAgent) -> Option<Next> {
    match &agent.launch {
        Launch::Failed(why) => Some(give_up(model, attempt, why)),
        _ if attempt.is_copying() => (!copying).then(|| {
            let (copying, agent) = (true, agent.clone());
            let order = attempt.copy_order();
            Next::GoOn(Phase::Starting { copying, agent }, Some(order))
        }),
        Launch::Pending => Some(Next::Start(Box::new(attempt.clone()))),
        Launch::Ordered => None,
        Launch::Running => Some(match attempt.kind {
            // A paste waits for an agent that is ready, which one with a dialog never is.
            Kind::Fresh | Kind::InPlace | Kind::OnTheFly => {
                Next::Enter(Phase::Delivering(agent.clone()))
            }
            // Nothing is delivered: the copy holds the conversation.
            Kind::Trim => Next::Enter(Phase::Verifying(agent.clone())),
            Kind::Undo(..) | Kind::Restart => Next::End(End::Finished { warmed_up: false }),
        }),
    }
}

/// Opens the next iteration and orders its process.
fn start(model: &mut Model, attempt: &Attempt) {
    model.reboot.on(AttemptEvent::StartOrdered);
    let (kind, session) = (attempt.kind, attempt.new);
    let handoff = attempt.handoff.as_ref().filter(|_| kind != Kind::Trim);
    let text = handoff.map(|handoff| handoff.text.clone());
    let parent = match kind {
        Kind::Undo(_, parent) => parent,
        Kind::Fresh | Kind::InPlace | Kind::OnTheFly | Kind::Trim | Kind::Restart => {
            model.lineage.iterations().last().map(|last| last.iteration)
        }
    };
    open_iteration(model, Some(session), Some(attempt.cause), parent);
    match kind {
        Kind::Fresh => model.session.spending.begin_session(session),
        Kind::Trim => model.session.spending.copy_session(attempt.old, session),
        Kind::Undo(..) => {
            let replaced = attempt.replaced.as_ref().map(|one| one.session);
            let of = replaced.unwrap_or(session);
            let asks = model.draft.come_back(of, model.session.id, parent);
            model.emit_all(asks);
            if let Some(from) = replaced {
                model.session.spending.copy_session(from, session);
            }
        }
        Kind::InPlace | Kind::OnTheFly | Kind::Restart => {}
    }
    let iteration = model.session.iteration();
    let as_prompt = kind == Kind::Fresh && !is_pasted(model, attempt);
    let again = restart_prompt(model).filter(|_| kind == Kind::Restart);
    model.emit(Effect::Start(StartAgent {
        iteration,
        session,
        resume: kind != Kind::Fresh,
        prompt_if_new: again
            .as_ref()
            .map(|_| model.draft.handoff.current().text.clone()),
        prompt: again.or_else(|| text.clone().filter(|_| as_prompt)),
        first: false,
    }));
    if let Some(text) = text {
        model.emit(Effect::SaveHandoff { iteration, text });
    }
}

/// Reports whether the handoff is pasted: a generic agent has no start prompt, and one argument may not be longer than 128 KiB on Linux.
fn is_pasted(model: &Model, attempt: &Attempt) -> bool {
    let pasted = model.config.reboot.delivery == Delivery::Paste || model.is_generic();
    let handoff = attempt.handoff.as_ref();
    handoff.is_some_and(|handoff| pasted || handoff.bytes() > 120 * 1024)
}

/// Delivers the message, once the new agent can take it.
fn deliver(model: &Model, attempt: &Attempt, agent: &NewAgent) -> Option<Next> {
    if let Launch::Failed(why) = &agent.launch {
        return Some(give_up(model, attempt, why));
    }
    if !is_pasted(model, attempt) {
        return Some(Next::Enter(Phase::Verifying(agent.clone())));
    }
    // The hook that reports the start may come before the pane has shown an empty prompt box.
    let ready = model.session.agent.state != AgentState::Starting;
    let ready = ready && typing_refusal(model).is_none();
    let handoff = attempt.handoff.clone().filter(|_| ready)?;
    Some(Next::Paste(agent.clone(), handoff))
}

fn paste(model: &mut Model, agent: NewAgent, handoff: Handoff) {
    enter(model, Phase::Verifying(agent));
    if model.is_generic() {
        // Other agents have hooks; in their prompt a marker shows before anything is submitted.
        model.emit(Effect::WatchPane(handoff.marker.nonce));
    }
    let _ = submit::give(model, &handoff.text, Then::Submit);
}

/// Waits until the message was seen to arrive, if one was sent.
fn verify(model: &Model, attempt: &Attempt, agent: &NewAgent) -> Option<Next> {
    let typed = !model.session.submission.is_open() || !model.is_generic();
    let verified = attempt.handoff.is_none() || (attempt.is_proven() && typed);
    match &agent.launch {
        // An agent that ends behind its proof has taken over, except where its session is resumed with the handoff in it.
        Launch::Failed(why) if attempt.kind.replaces() || !verified => {
            Some(give_up(model, attempt, why))
        }
        _ if !verified => None,
        _ if model.config.reboot.warmup_prompt.is_none() => {
            Some(Next::End(End::Finished { warmed_up: false }))
        }
        _ => {
            let (due, agent) = (false, agent.clone());
            Some(Next::Enter(Phase::Warming { due, agent }))
        }
    }
}

/// Types the warm-up prompt, whose delay is over, once the first turn has ended.
fn warm_up(model: &mut Model) {
    let prompt = model.config.reboot.warmup_prompt.clone();
    // A prompt box that is not empty, or not there, is waited for.
    if submit::give(model, &prompt.unwrap_or_default(), Then::Submit).is_ok() {
        end(model, End::Finished { warmed_up: true });
    }
}

/// Returns what follows if the new agent cannot take over, for this reason.
pub(super) fn give_up(model: &Model, attempt: &Attempt, why: &str) -> Next {
    let why = why.to_owned();
    if !attempt.kind.is_reboot() {
        return Next::End(End::NotStarted(why));
    }
    // Its conversation was replaced already, and the session is resumed with that.
    let is_replaced = attempt.kind.replaces() && attempt.has_begun();
    let (session, preserved) = (model.session.id, &model.draft.preserved);
    let record = is_replaced.then(|| Box::new(attempt.record(session, preserved, model.now)));
    let beside = attempt.beside.clone();
    Next::RollBack(why, record, beside)
}

/// Resumes the old session, because the new agent could not take over.
fn roll_back(model: &mut Model, why: String, record: Option<Box<RebootRecord>>, beside: OnDisk) {
    model.reboot.on(AttemptEvent::RollsBack(why));
    let was_cleared = model.session.agent.prompt_box == PromptBox::Empty;
    let drop = model.reboot.unsent_outlives(beside, was_cleared);
    model.emit_all(drop);
    if let (Some(record), Some(current)) = (record, model.lineage.current_mut()) {
        current.reboot = Some(*record);
    }
    close_iteration(model, EndReason::Crash);
    enter(model, Phase::RollingBack(Launch::Pending));
}

/// Resumes the session that was to end.
fn resume(model: &mut Model, old: SessionId) {
    model.reboot.on(AttemptEvent::StartOrdered);
    let parent = model.lineage.newest_in(old);
    open_iteration(model, Some(old), Some(Cause::Recovery), parent);
    let asks = model.draft.come_back(old, model.session.id, parent);
    model.emit_all(asks);
    let iteration = model.session.iteration();
    model.emit(Effect::Start(StartAgent {
        iteration,
        session: old,
        resume: true,
        prompt: None,
        prompt_if_new: None,
        first: false,
    }));
}

/// The way in which a reboot ends.
pub(super) enum End {
    /// It has gone well.
    Finished {
        /// True if the warm-up prompt was given.
        warmed_up: bool,
    },
    /// It is refused for this reason before anything was done to the old agent.
    Refused(String),
    /// It has begun nothing that is recorded, and its process could not be started for this reason.
    NotStarted(String),
    /// The new agent could not take over, and the old session is resumed.
    RolledBack,
    /// As `RolledBack`, but resuming the old session has failed for this reason.
    NotResumed(String),
    /// It was taken back with this outcome before the client asked.
    TakenBack(RebootOutcome),
    /// The client goes on with its compaction, which a notice may tell.
    LeftToClient(Option<&'static str>),
    /// It has this outcome, with a reason where the outcome does not tell enough.
    Unfinished(RebootOutcome, Option<String>),
}

/// Ends the reboot under way.
pub(super) fn end(model: &mut Model, how: End) {
    let Some(mut attempt) = model.reboot.attempt.take() else {
        return;
    };
    let leaves_no_agent = match how {
        // The agent has died behind its proof, which was not on disk yet: from here on it is an agent that ended like any other.
        End::Finished { .. } => attempt.has_died(),
        End::NotStarted(_) | End::NotResumed(_) => true,
        _ => false,
    };
    match how {
        End::Finished { warmed_up } => finish(model, attempt, warmed_up),
        End::Refused(why) => refuse(model, attempt, why),
        End::NotStarted(why) => {
            let failed = RebootOutcome::Failed;
            close(model, &mut attempt, failed, Some(&why), None);
        }
        End::RolledBack => {
            let why = attempt.failure.clone().unwrap_or_default();
            model.error(if attempt.kind.replaces() {
                format!("the session is resumed as the client left it: {why}")
            } else {
                format!("reboot rolled back, the old session is resumed: {why}")
            });
            let card = moment::failed(&attempt, &why, true);
            let outcome = RebootOutcome::RolledBack;
            close(model, &mut attempt, outcome, None, Some(card));
        }
        End::NotResumed(again) => {
            let why = attempt.failure.as_deref().unwrap_or_default();
            model.error(format!(
                "the reboot failed ({why}), and so did resuming the old session: no agent runs: {again}"
            ));
            close(model, &mut attempt, RebootOutcome::Failed, None, None);
        }
        End::TakenBack(outcome) => {
            on_the_fly::restore_trigger(model);
            close(model, &mut attempt, outcome, None, None);
            // Nothing went wrong.
            model.reboot.failure = None;
        }
        End::LeftToClient(notice) => {
            if let Some(notice) = notice {
                model.info(notice);
            }
            model.view.close(Overlay::Review);
            let why = Some("left to the client");
            close(model, &mut attempt, RebootOutcome::Failed, why, None);
        }
        End::Unfinished(outcome, why) => {
            close(model, &mut attempt, outcome, why.as_deref(), None);
        }
    }
    if leaves_no_agent {
        close_iteration(model, EndReason::Crash);
        // A person is asked what comes next.
        if model.autopilot.is_none() {
            model.view.open(Overlay::Exited);
        }
    }
}

/// Refuses the reboot before anything was done to the old agent, which goes on.
fn refuse(model: &mut Model, mut attempt: Attempt, why: String) {
    let by_itself = attempt.is_by_itself();
    let card = moment::failed(&attempt, &why, false);
    let failed = RebootOutcome::Failed;
    close(model, &mut attempt, failed, Some(&why), Some(card));
    model.reboot.refused = Some(why.clone());
    if by_itself && model.autopilot.is_some() {
        model.scratch.no_reboot = Some(NoReboot::Refused(why));
        return;
    }
    let goes_on = if is_gone(model) {
        ""
    } else {
        ", and the agent goes on"
    };
    model.error(format!("the reboot is refused{goes_on}: {why}"));
    if by_itself {
        let quiet = quiet_for(model, 1, QuietReason::Refused(why));
        model.reboot.be_quiet(quiet);
    }
}

/// Finishes a reboot that went well: its record goes to the history.
fn finish(model: &mut Model, mut attempt: Attempt, warmed_up: bool) {
    let kind = attempt.kind;
    let record = RebootRecord {
        warmed_up,
        ..attempt.record(model.session.id, &model.draft.preserved, model.now)
    };
    let took_ms = record.total_ms();
    if kind.is_reboot()
        && let Some(current) = model.lineage.current_mut()
    {
        current.reboot = Some(record);
    }
    // The record is saved before the journal is closed: if we were killed between the two, a record that came later would be lost
    // with its reboot.
    save_iteration(model);
    model.info(success(model, &attempt, took_ms));
    let card = moment::done(model, &attempt, took_ms, kind != Kind::Trim);
    if matches!(kind, Kind::Undo(..)) {
        // A person who took a reboot back does not want to be asked again at once.
        let quiet = quiet_for(model, DEFER_TURNS, QuietReason::Undone);
        model.reboot.be_quiet(quiet);
    }
    let card = kind.is_reboot().then_some(card);
    close(model, &mut attempt, RebootOutcome::Done, None, card);
    if kind.is_reboot() {
        model.reboot.note_done(model.now);
    }
}

/// Returns the notice about a reboot that has gone well.
fn success(model: &Model, attempt: &Attempt, took_ms: u64) -> String {
    let iteration = model.session.iteration();
    let took = pitstop_base::format::short(took_ms);
    let verified = attempt.is_proven();
    let proof = if verified { ", handoff confirmed" } else { "" };
    match attempt.kind {
        Kind::Fresh if verified => format!("rebooted in {took}: iteration {iteration}{proof}"),
        Kind::Fresh => format!("iteration {iteration} has started"),
        Kind::InPlace => format!("rebooted in place in {took}: iteration {iteration}{proof}"),
        Kind::OnTheFly => format!("rebooted on the fly in {took}: iteration {iteration}{proof}"),
        Kind::Trim => format!(
            "iteration {iteration}: the trimmed session goes on{}",
            attempt.trimmed.map(won).unwrap_or_default()
        ),
        Kind::Undo(..) => format!("iteration {iteration}: the earlier session is back"),
        Kind::Restart if model.is_generic() => format!("iteration {iteration} has started"),
        Kind::Restart => format!("iteration {iteration}: the session is resumed"),
    }
}

/// Returns what a trim has saved, for a notice.
fn won(record: TrimRecord) -> String {
    format!(
        ", {} → {}: {} of {} tool responses removed",
        pitstop_base::format::thousands(record.tokens_before.0),
        pitstop_base::format::thousands(record.tokens_after.0),
        record.responses,
        record.of
    )
}

/// Closes an attempt, in the journal too, and shows this card; `why` is given where the outcome does not tell enough.
fn close(
    model: &mut Model,
    attempt: &mut Attempt,
    outcome: RebootOutcome,
    why: Option<&str>,
    card: Option<Outcome>,
) {
    (model.outside.counters).count_reboot(attempt.cause, outcome);
    let hook = prepare::after_reboot(model, attempt, outcome, why);
    let done = outcome == RebootOutcome::Done;
    let why = (!done).then(|| why.unwrap_or(outcome.into()));
    let on_disk = model.reboot.close(attempt, why);
    model.emit_all(attempt.let_client_go());
    if attempt.enter(if done { Phase::Done } else { Phase::Failed }, model.now) {
        let entry = attempt.entry(model.lineage.run(), &model.session, model.now);
        model.emit(Effect::Journal(Box::new(entry)));
    }
    model.emit_all(hook);
    model.emit_all(model.reboot.forget_draft(&on_disk));
    model.reboot.ending = None;
    if let Some(card) = card {
        let awaits_figure = done && model.used().is_none();
        let timer = model.view.show_card(card, awaits_figure, model.now);
        model.emit(timer);
    }
}
