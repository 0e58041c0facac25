//! The steps of a reboot: what each waits for, what it does, and which comes next.

use std::time::Duration;

use crate::{
    api::wire::AgentState,
    config::{Delivery, RebootConfig, RebootMode},
    lineage::{Cause, EndReason, RebootRecord, RunId, TrimRecord},
};
use pitstop_agent::{bridge::BridgeOrder, claude::prompt_box::PromptBox};
use pitstop_base::{clock::At, redact::redact};
use pitstop_handoff::Handoff;

use super::{
    Approval, DEFER_TURNS, RebootAction, act,
    next::{Act, AgentAct, End, NewProcess, Next, TICK},
    prepare,
    timing::{self, is_free, is_within_call, quiet_for},
};
use crate::app::{
    draft::{
        checkpoint, handoff,
        record::save_iteration,
        summary::{self, SummaryEvent},
    },
    effect::Effect,
    event::TimerId,
    facts::{
        answers_at_once, holds_compaction, is_safe, is_unattended, not_begun, reads_task,
        typing_refusal,
    },
    model::{
        CarryOut, Model, Overlay,
        attempt::{AttemptEvent, verify_timer},
        event_scratch::NoReboot,
        orders::Purpose,
        reading::Reading,
        reboot::{
            Attempt, Clock, Held, Kind, LastLook, Launch, NewAgent, Phase, Prepared, QuietReason,
            RebootOutcome, Replacing,
        },
        session::Session,
        trim::SurveyFacts,
        unsent::OnDisk,
        view::Outcome,
    },
    reboot::{
        ending::{self, EndingEvent},
        in_place,
        iteration::{close_iteration, open_iteration, start},
        moment, on_the_fly,
        submit::{self, Then},
        trim, unsent,
    },
};

/// The time that the client's own side may take to read the prompt box: it is done in milliseconds.
const DRAFT_READ_WITHIN: Duration = Duration::from_secs(2);

/// Returns what follows from what is true now.
pub(super) fn next_step(model: &Model, attempt: &Attempt) -> Option<Next> {
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
        Phase::Warming { due, .. } => warm_up(model, attempt, *due),
        Phase::RollingBack(launch) => match launch {
            Launch::Pending => Some(new_process(model, attempt)),
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
        match next {
            Next::Begin(attempt) => {
                if !attempt.kind.is_reboot() {
                    model.view.close_any();
                }
                let epoch = model.next_epoch();
                model.reboot.begin(*attempt, epoch);
            }
            Next::Enter(phase) => {
                let kept = (model.draft).keep_edit(&model.session, &model.identity);
                model.emit_all(kept);
                if let Some(attempt) = &mut model.reboot.attempt {
                    let (run, session) = (model.lineage.run(), &model.session);
                    let journal = attempt.enter(phase, run, session, model.now);
                    let timer = attempt.phase_timer(&model.config.reboot);
                    let text = attempt.next_handoff().map(|message| message.text.clone());
                    model.emit_all(journal.into_iter().chain(timer));
                    if let Some(text) = text {
                        let number = model.next_epoch();
                        model.emit(checkpoint::at_reboot(model, number, text));
                    }
                }
            }
            Next::GoOn(phase, order) => {
                model.reboot.on(AttemptEvent::GotOn(phase));
                model.emit_all(order);
            }
            Next::Note(event) => model.reboot.on(event),
            Next::Change(way, why, phase) => {
                let attempt = model.reboot.attempt.as_ref();
                let awaited = attempt.and_then(Attempt::awaited_order);
                model.emit_all(awaited.map(Effect::RevokeOrder));
                model.reboot.on(AttemptEvent::WayTaken(way));
                if let Some(why) = why {
                    model.info(format!(
                        "no reboot in place: {why}; a fresh session instead"
                    ));
                }
                follow(model, phase.map(Next::Enter));
            }
            Next::StartClock(delay) => {
                let at = model.now.since_start.saturating_add(delay);
                let epoch = model.next_epoch();
                let clock = Some(Clock { at, epoch });
                (model.reboot).on(AttemptEvent::GotOn(Phase::Review { clock }));
                model.emit(Effect::SetTimer(TimerId::AutoDelay(epoch), delay.min(TICK)));
                // The turns for which it has waited belong in the summary.
                summary::on(model, SummaryEvent::Drafting);
            }
            Next::GoAhead { or_leave_client } => {
                model.reboot.on(AttemptEvent::ClockStopped);
                match act(model, RebootAction::Approve(Approval::Auto)) {
                    Err(why) if or_leave_client => {
                        model.error(format!("the compaction is left to the client: {why}"));
                        end(model, End::LeftToClient(None));
                    }
                    Err(why) => tracing::info!(%why, "an automatic reboot cannot go ahead"),
                    Ok(()) => {}
                }
            }
            Next::End(how) => end(model, how),
            Next::Agent(act) => act_on_agent(model, act),
            Next::Do(act) => perform(model, act),
            Next::All(next) => follow(model, next),
        }
    }
}

fn act_on_agent(model: &mut Model, act: AgentAct) {
    match act {
        AgentAct::LookAtDraft => {
            model.scratch.reads_prompt_box = true;
            model.emit(Effect::ReadPromptBox);
            // The client's own side knows every line as it is.
            let in_force = model.session.agent.bridge.of(model.session.id).is_some();
            let asks = in_force && !is_gone(model);
            let (purpose, order) = (Purpose::LastDraft, BridgeOrder::ReadDraft);
            let order = asks.then(|| model.order(purpose, order, DRAFT_READ_WITHIN));
            let look = order.map_or(LastLook::Done, LastLook::Ordered);
            model.reboot.on(AttemptEvent::Looked(look));
        }
        AgentAct::Replace(order) => {
            let id = model.order(Purpose::Replace, order, in_place::ANSWERED_WITHIN);
            let ordered = Phase::Replacing(Replacing::Ordered(id));
            model.reboot.on(AttemptEvent::GotOn(ordered));
            let is_lowered = on_the_fly::has_lowered_trigger(model);
            model.session.client.order_given(is_lowered);
        }
        AgentAct::Hold(cause, id) => {
            let held = Held {
                id,
                since: model.now.since_start,
                until: model.now.since_start + model.config.guard.answer_within,
                epoch: model.next_epoch(),
                answered: false,
            };
            model.emit(Effect::SetTimer(TimerId::Compaction(held.epoch), TICK));
            model.reboot.on(AttemptEvent::Holds(cause, held));
        }
        AgentAct::LetGo => {
            let attempt = model.reboot.attempt.as_mut();
            attempt.and_then(Attempt::let_client_go).carry_out(model);
        }
        AgentAct::End => ending::on(model, EndingEvent::Begins { urgent: false }),
        AgentAct::Start(process) => {
            let given = process.prompt.is_some();
            model.reboot.on(AttemptEvent::StartOrdered(given));
            start(model, *process);
        }
        AgentAct::GoOn(cause, text) => {
            let parent = model.lineage.iterations().last().map(|last| last.iteration);
            open_iteration(model, None, Some(cause), parent);
            let iteration = model.session.iteration();
            model.emit(Effect::ContinuePane(iteration));
            model.emit_all(text.map(|text| Effect::SaveHandoff { iteration, text }));
        }
        AgentAct::WarmUp(prompt) => {
            // A prompt box that is not empty, or not there, is waited for.
            if submit::give(model, &prompt, Then::Submit).is_ok() {
                end(model, End::Finished { warmed_up: true });
            }
        }
        AgentAct::TypeCommand(command) => {
            if let Err(why) = submit::give(model, &command, Then::Submit) {
                model.error(format!(
                    "the conversation is replaced, and waits for a prompt of yours: {why}"
                ));
            }
        }
        AgentAct::Give(text, then) => _ = submit::give(model, &text, then),
        AgentAct::AbandonPrompt => model.session.submission.abandon(),
        AgentAct::LeaveUnanswered(why) => model.session.agent.leave_unanswered(why),
        AgentAct::RestoreTrigger => {
            let (purpose, order) = (Purpose::Trigger, BridgeOrder::RestoreTrigger);
            model.order(purpose, order, on_the_fly::RESTORED_WITHIN);
        }
    }
}

fn perform(model: &mut Model, act: Act) {
    match act {
        Act::Emit(effect) => model.emit(effect),
        Act::Log(text) => model.note(&text),
        Act::Info(text) => model.info(text),
        Act::Error(text) => model.error(text),
        Act::OpenReview => {
            handoff::draft(model);
            model.draft.handoff.show_message();
            let reading = Reading::at_first_section(&model.draft.handoff.current().text);
            model.view.open_review(reading);
        }
        Act::CloseReview => model.view.close(Overlay::Review),
        Act::FixMessage(approval) => {
            handoff::draft(model);
            let message = model.draft.handoff.current().clone();
            (model.reboot).on(AttemptEvent::Approved(approval, message));
        }
        Act::Summary(event) => summary::on(model, event),
        Act::DismissWish => {
            model.reboot.wish = None;
            model.info("the agent's request is dismissed");
        }
        Act::AnswerCard => model.view.answer_card(),
        Act::Survey(event) => {
            let facts = SurveyFacts {
                session: model.session.id,
                settings: trim::settings(model),
                number: model.next_epoch(),
                now: model.now,
            };
            let is_generic = model.is_generic();
            let preview = model.reboot.open_preview().filter(|_| !is_generic);
            let order = preview.and_then(|preview| preview.on(event, &facts));
            model.emit_all(order);
        }
        Act::HoldRun(by) => model.scratch.taken_over = Some(by),
        Act::StopRun(why) => model.scratch.no_reboot = Some(why),
        Act::BeQuiet(turns, reason) => {
            let quiet = quiet_for(model, turns, reason);
            model.reboot.be_quiet(quiet);
        }
        Act::HoldBack(breaker) => {
            if let Some(breaker) = model.reboot.hold_back(breaker) {
                model.info(breaker.in_words(model.reboot.mode));
            }
        }
        Act::TakeGoodMoment => model.draft.moments.take_up(),
        Act::DraftAgain => {
            handoff::draft(model);
            let panel = &model.draft.handoff;
            let edited = panel.edited.is_some();
            model.reboot.renew_message(panel.current(), edited);
        }
        Act::KeepUnsent(unsent) => model.reboot.unsent = unsent,
        Act::Outlive(on_disk) => {
            let was_cleared = model.session.agent.prompt_box == PromptBox::Empty;
            let drop = model.reboot.unsent_outlives(on_disk, was_cleared);
            model.emit_all(drop);
        }
        Act::Record(record) => {
            if let Some(current) = model.lineage.current_mut() {
                current.reboot = Some(*record);
            }
        }
        Act::SaveIteration => save_iteration(model),
        Act::CloseIteration(reason) => close_iteration(model, reason),
        Act::NoteRefusal(why) => model.reboot.refused = Some(why),
    }
}

impl Attempt {
    /// Enters a phase. Returns the order to write its step ahead: its work is done once that is on disk.
    fn enter(&mut self, phase: Phase, run: &RunId, session: &Session, now: At) -> Option<Effect> {
        // What is armed again is announced again.
        if phase == Phase::Armed {
            self.approved = None;
        }
        self.entered.push((phase.step(), now));
        self.phase = phase;
        self.journaled = !self.kind.is_reboot();
        (!self.journaled).then(|| Effect::Journal(Box::new(self.entry(run, session, now))))
    }

    /// Returns the timer that begins with the phase.
    fn phase_timer(&self, config: &RebootConfig) -> Option<Effect> {
        match self.phase {
            Phase::Ending | Phase::Replacing(_) => Some(moment::begin()),
            Phase::Delivering(_) | Phase::Verifying(_) => Some(verify_timer(config, self.epoch)),
            Phase::Warming { .. } => {
                let timer = TimerId::WarmUp(self.epoch);
                Some(Effect::SetTimer(timer, config.warmup_delay))
            }
            _ => None,
        }
    }

    /// Returns the handoff for the next session, in the phase that ends the old one or its conversation.
    fn next_handoff(&self) -> Option<&Handoff> {
        let ends = matches!(self.phase, Phase::Ending | Phase::Replacing(_));
        self.handoff.as_ref().filter(|_| ends)
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

/// Has the message made.
fn draft(model: &Model, attempt: &Attempt) -> Next {
    let reads = [Effect::ReadScratchpad, Effect::ReadGit];
    let reads = reads_task(model).into_iter().chain(reads);
    let mut next = vec![Next::Enter(Phase::Drafting { gathered: false })];
    next.extend(reads.map(|read| Next::Do(Act::Emit(read))));
    // A session of one turn is not worth a summary, which costs as much as the turn, and a client that waits is not kept waiting
    // for one unless a person reads it.
    let is_worth = attempt.approved.is_none() && attempt.cause != Cause::Autopilot;
    if is_worth && !goes_at_once(model) {
        next.push(Next::Do(Act::Summary(SummaryEvent::Drafting)));
    }
    Next::All(next)
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
        return Some(Next::Note(event));
    }
    if attempt.kind.replaces() {
        return in_place::wait(model, attempt, look, draft);
    }
    match look {
        LastLook::Pending => Some(Next::Agent(AgentAct::LookAtDraft)),
        LastLook::Done if !model.scratch.reads_prompt_box => {
            behind_draft(not_begun(model), look, draft, |on_disk| {
                if is_within_call(model, attempt) {
                    Next::Note(AttemptEvent::CallBegun)
                } else {
                    let take_unsent = unsent::take(model, &on_disk);
                    let leave = Next::Enter(Phase::Ending);
                    Next::All(vec![Next::Do(Act::DraftAgain), take_unsent, leave])
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
        None => (!is_within_call(model, attempt)).then_some(Next::Agent(AgentAct::End)),
    }
}

fn starting(model: &Model, attempt: &Attempt, copying: bool, agent: &NewAgent) -> Option<Next> {
    match &agent.launch {
        Launch::Failed(why) => Some(give_up(model, attempt, why)),
        _ if attempt.is_copying() => (!copying).then(|| {
            let (copying, agent) = (true, agent.clone());
            let order = Effect::TrimTranscript {
                ask: attempt.epoch,
                from: attempt.old,
                to: attempt.new,
                settings: attempt.preview.settings,
            };
            Next::GoOn(Phase::Starting { copying, agent }, Some(order))
        }),
        Launch::Pending => Some(new_process(model, attempt)),
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

/// Has the process of the next iteration started, which resumes the session that was to end if the new agent could not take over.
fn new_process(model: &Model, attempt: &Attempt) -> Next {
    let rolls_back = matches!(attempt.phase, Phase::RollingBack(_));
    let (kind, old, new) = (attempt.kind, attempt.old, attempt.new);
    let replaced = attempt.replaced.as_ref().map(|one| one.session);
    let last = model.lineage.iterations().last();
    let last = last.map(|last| last.iteration);
    let (session, parent, copy_of, back_in) = match kind {
        _ if rolls_back => (old, model.lineage.newest_in(old), None, Some(old)),
        Kind::Undo(_, parent) => (new, parent, replaced, Some(replaced.unwrap_or(new))),
        Kind::Trim => (new, last, Some(old), None),
        _ => (new, last, None, None),
    };
    let handoff = attempt.handoff.as_ref();
    let handoff = handoff.filter(|_| kind != Kind::Trim && !rolls_back);
    let text = handoff.map(|handoff| handoff.text.clone());
    Next::Agent(AgentAct::Start(Box::new(NewProcess {
        session,
        cause: Some(if rolls_back {
            Cause::Recovery
        } else {
            attempt.cause
        }),
        parent,
        resume: kind != Kind::Fresh || rolls_back,
        copy_of,
        back_in,
        prompt: text
            .clone()
            .filter(|_| kind == Kind::Fresh && !is_pasted(model, attempt)),
        handoff: text,
    })))
}

/// Reports whether the handoff is pasted: a generic agent has no start prompt, one argument may not be longer than 128 KiB on Linux,
/// and all users of the machine can read it, where a person may have written a secret into the handoff.
fn is_pasted(model: &Model, attempt: &Attempt) -> bool {
    let pasted = model.config.reboot.delivery == Delivery::Paste || model.is_generic();
    attempt.handoff.as_ref().is_some_and(|handoff| {
        pasted || handoff.bytes() > 120 * 1024 || redact(&handoff.text) != handoff.text
    })
}

/// Delivers the message, once the new agent can take it.
fn deliver(model: &Model, attempt: &Attempt, agent: &NewAgent) -> Option<Next> {
    if let Launch::Failed(why) = &agent.launch {
        return Some(give_up(model, attempt, why));
    }
    // What was done counts: the configuration may have changed since.
    if agent.given || attempt.handoff.is_none() {
        return Some(Next::Enter(Phase::Verifying(agent.clone())));
    }
    // The hook that reports the start may come before the pane has shown an empty prompt box.
    let ready = model.session.agent.state != AgentState::Starting;
    let ready = ready && typing_refusal(model).is_none();
    let handoff = attempt.handoff.clone().filter(|_| ready)?;
    let mut next = vec![Next::Enter(Phase::Verifying(agent.clone()))];
    if model.is_generic() {
        // Other agents have hooks; in their prompt a marker shows before anything is submitted.
        let nonce = handoff.marker.nonce;
        next.push(Next::Do(Act::Emit(Effect::WatchPane(nonce))));
    }
    next.push(Next::Agent(AgentAct::Give(handoff.text, Then::Submit)));
    Some(Next::All(next))
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
        // The session has gone on without the handoff, or has had it unseen: it is not given again. A run that no one watches ends.
        _ if !verified => {
            let is_over = attempt.is_passed_over()
                && !model.session.submission.is_open()
                && !is_unattended(model);
            is_over.then_some(Next::End(End::Finished { warmed_up: false }))
        }
        _ if model.config.reboot.warmup_prompt.is_none() => {
            Some(Next::End(End::Finished { warmed_up: false }))
        }
        _ => {
            let (due, agent) = (false, agent.clone());
            Some(Next::Enter(Phase::Warming { due, agent }))
        }
    }
}

/// Gives the warm-up prompt, once its delay is over and the agent rests.
fn warm_up(model: &Model, attempt: &Attempt, due: bool) -> Option<Next> {
    let prompt = model.config.reboot.warmup_prompt.as_ref();
    let Some(prompt) = prompt.filter(|_| !attempt.has_died()) else {
        return Some(Next::End(End::Finished { warmed_up: false }));
    };
    let rests = model.session.agent.state == AgentState::Idle;
    (due && rests).then(|| Next::Agent(AgentAct::WarmUp(prompt.clone())))
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
    let record =
        is_replaced.then(|| Box::new(attempt.reboot_record(session, preserved, model.now)));
    let mut next = vec![
        Next::Note(AttemptEvent::RollsBack(why)),
        Next::Do(Act::Outlive(attempt.beside.clone())),
    ];
    next.extend(record.map(|record| Next::Do(Act::Record(record))));
    next.push(Next::Do(Act::CloseIteration(EndReason::Crash)));
    next.push(Next::Enter(Phase::RollingBack(Launch::Pending)));
    Next::All(next)
}

/// Ends the reboot under way, in the journal too.
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
    let is_taken_back = matches!(how, End::TakenBack(_));
    let ended = ended(model, &attempt, how);
    follow(model, ended.acts.into_iter().map(Next::Do));
    let (outcome, why) = (ended.outcome, ended.why.as_deref());
    (model.outside.counters).count_reboot(attempt.cause, outcome);
    let hook = prepare::after_reboot(model, &attempt, outcome, why);
    let done = outcome == RebootOutcome::Done;
    let why = (!done).then(|| why.unwrap_or(outcome.into()));
    let on_disk = model.reboot.close(&mut attempt, why, model.now);
    if outcome == RebootOutcome::Withdrawn || is_taken_back {
        // Nothing went wrong.
        model.reboot.failure = None;
    }
    model.emit_all(attempt.let_client_go());
    let last = if done { Phase::Done } else { Phase::Failed };
    let journal = attempt.enter(last, model.lineage.run(), &model.session, model.now);
    model.emit_all(journal.into_iter().chain(hook));
    model.emit_all(model.reboot.forget_draft(&on_disk));
    if let Some(card) = ended.card {
        let awaits_figure = done && model.used().is_none();
        let timer = model.view.show_card(card, awaits_figure, model.now);
        model.emit(timer);
    }
    if leaves_no_agent {
        close_iteration(model, EndReason::Crash);
        // A person is asked what comes next.
        if model.autopilot.is_none() {
            model.view.open(Overlay::Exited);
        }
    }
}

/// What follows from the end of a reboot.
struct Ended {
    outcome: RebootOutcome,
    /// The reason, where the outcome does not tell enough.
    why: Option<String>,
    /// The card that is shown.
    card: Option<Outcome>,
    /// What comes before the journal is closed.
    acts: Vec<Act>,
}

/// Returns what follows from this end of an attempt.
fn ended(model: &Model, attempt: &Attempt, how: End) -> Ended {
    let mut ended = Ended {
        outcome: RebootOutcome::Failed,
        why: None,
        card: None,
        acts: Vec::new(),
    };
    let failure = attempt.failure.as_deref().unwrap_or_default();
    match how {
        End::Finished { warmed_up } => return finished(model, attempt, warmed_up),
        // Nothing was done to the old agent, which goes on.
        End::Refused(why) => {
            ended.card = Some(moment::failed(attempt, &why, false));
            ended.acts = refused(model, attempt, &why);
            ended.why = Some(why);
        }
        End::NotStarted(why) => ended.why = Some(why),
        End::RolledBack => {
            ended.outcome = RebootOutcome::RolledBack;
            ended.card = Some(moment::failed(attempt, failure, true));
            ended.acts.push(Act::Error(if attempt.kind.replaces() {
                format!("the session is resumed as the client left it: {failure}")
            } else {
                format!("reboot rolled back, the old session is resumed: {failure}")
            }));
            // What the new session has failed by is there for the next one, too.
            if attempt.is_by_itself() {
                let why = QuietReason::Refused(failure.to_owned());
                ended.acts.push(Act::BeQuiet(DEFER_TURNS, why));
            }
        }
        End::NotResumed(again) => ended.acts.push(Act::Error(format!(
            "the reboot failed ({failure}), and so did resuming the old session: no agent runs: {again}"
        ))),
        End::TakenBack(outcome) => ended.outcome = outcome,
        End::LeftToClient(notice) => {
            let notice = notice.map(|notice| Act::Info(notice.to_owned()));
            ended.acts.extend(notice.into_iter().chain([Act::CloseReview]));
            ended.why = Some("left to the client".to_owned());
        }
        End::Unfinished(outcome, why) => (ended.outcome, ended.why) = (outcome, why),
    }
    ended
}

/// Returns what a reboot that is refused leads to: the old agent goes on, and a run stops.
fn refused(model: &Model, attempt: &Attempt, why: &str) -> Vec<Act> {
    let noted = Act::NoteRefusal(why.to_owned());
    let by_itself = attempt.is_by_itself();
    // A turn that is at work is not ended: its reboot is tried again after it.
    if by_itself && model.autopilot.is_some() && !model.session.agent.activity.turn {
        let refused = NoReboot::Refused(why.to_owned());
        return vec![noted, Act::StopRun(refused)];
    }
    let goes_on = if is_gone(model) {
        ""
    } else {
        ", and the agent goes on"
    };
    let message = format!("the reboot is refused{goes_on}: {why}");
    let mut acts = vec![noted, Act::Error(message)];
    if by_itself {
        acts.push(Act::BeQuiet(1, QuietReason::Refused(why.to_owned())));
    }
    acts
}

/// Returns what a reboot that went well leads to: its record goes to the history.
fn finished(model: &Model, attempt: &Attempt, warmed_up: bool) -> Ended {
    let kind = attempt.kind;
    let record = RebootRecord {
        warmed_up,
        ..attempt.reboot_record(model.session.id, &model.draft.preserved, model.now)
    };
    let took_ms = record.total_ms();
    let card = moment::done(model, attempt, took_ms, kind != Kind::Trim);
    let record = kind.is_reboot().then(|| Act::Record(Box::new(record)));
    let mut acts = Vec::from_iter(record);
    // The record is saved before the journal is closed: if we were killed between the two, a record that came later would be lost
    // with its reboot.
    acts.push(Act::SaveIteration);
    acts.push(Act::Info(success(model, attempt, took_ms)));
    if matches!(kind, Kind::Undo(..)) {
        // A person who took a reboot back does not want to be asked again at once.
        acts.push(Act::BeQuiet(DEFER_TURNS, QuietReason::Undone));
    }
    let failure = attempt.failure.as_deref();
    Ended {
        outcome: RebootOutcome::Done,
        why: None,
        card: match failure.filter(|_| !kind.is_reboot()) {
            Some(why) => Some(moment::failed(attempt, why, true)),
            None => kind.is_reboot().then_some(card),
        },
        acts,
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
