//! The steps of a reboot: what each waits for, what it does, and which comes next.

use std::time::Duration;

use crate::{
    api::wire::AgentState,
    config::{Delivery, RebootConfig, RebootMode},
    lineage::{Cause, EndReason, RebootRecord, TrimRecord},
};
use pitstop_agent::bridge::BridgeOrder;

use super::{
    DEFER_TURNS, prepare,
    timing::{self, be_quiet, is_free, is_within_call},
};
use crate::app::{
    draft::{carried, checkpoint, handoff, record::save_iteration, summary},
    effect::{Effect, StartAgent},
    event::TimerId,
    facts::{
        answers_at_once, goes_on_the_fly, holds_compaction, is_safe, reads_task, restart_prompt,
        typing_refusal,
    },
    model::{
        Model, Overlay,
        orders::Purpose,
        reboot::{
            Attempt, Kind, LastLook, Launch, NewAgent, Phase, Prepared, QuietReason, RebootOutcome,
        },
        unsent::{OnDisk, Unsent},
    },
    reboot::{
        ending, in_place,
        iteration::{close_iteration, open_iteration},
        moment, on_the_fly, submit, unsent,
    },
};

/// The time that the client's own side may take to read the prompt box: it is done in milliseconds.
const DRAFT_READ_WITHIN: Duration = Duration::from_secs(2);

/// Takes the steps that follow from what is true now.
pub fn advance(model: &mut Model) {
    while let Some(attempt) = model.reboot.attempt.as_ref().filter(|one| one.journaled) {
        let before = attempt.step();
        match &attempt.phase {
            Phase::Armed if is_to_be_drafted(model, attempt) => draft_message(model),
            Phase::Drafting { gathered } if is_drafted(model, attempt, *gathered) => {
                enter(model, Phase::Review { clock: None });
            }
            Phase::Review { .. } if attempt.approved.is_some() => {
                enter(model, Phase::Preparing(Prepared::Nothing));
            }
            Phase::Preparing(Prepared::Nothing) => {
                let order = prepare::order(model, attempt);
                model.reboot.go_on(Phase::Preparing(Prepared::Ordered));
                model.emit(order);
            }
            Phase::Preparing(Prepared::Ready) => enter(model, waiting()),
            Phase::Preparing(Prepared::Refused(why)) => {
                let why = why.clone();
                end(model, End::Refused(why));
            }
            Phase::Waiting { .. } => wait(model),
            Phase::Ending => end_old_agent(model),
            Phase::Starting { agent, .. } => starting(model, agent.clone()),
            Phase::Delivering(agent) => match &agent.launch {
                Launch::Failed(why) => roll_back(model, why.clone()),
                _ => deliver(model, agent.clone()),
            },
            Phase::Replacing(now) => in_place::replacing(model, now.clone()),
            Phase::Verifying(agent) => match &agent.launch {
                // Its session is resumed, with the handoff in it.
                Launch::Failed(why) if attempt.kind.replaces() => roll_back(model, why.clone()),
                _ if is_verified(model, attempt) => verified(model, agent.clone()),
                Launch::Failed(why) => roll_back(model, why.clone()),
                _ => {}
            },
            Phase::Warming { due, agent } => match agent.launch {
                Launch::Failed(_) => {
                    let warmed_up = *due;
                    end(model, End::Finished { warmed_up });
                }
                _ if *due => warm_up(model),
                _ => {}
            },
            Phase::RollingBack(launch) => rolling_back(model, &launch.clone()),
            _ => {}
        }
        let after = model.reboot.attempt.as_ref().map(Attempt::step);
        if after == Some(before) {
            break;
        }
    }
}

/// Enters a phase, which is written ahead: its work is done once it is on disk.
pub(super) fn enter(model: &mut Model, phase: Phase) {
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

/// Has the message made.
fn draft_message(model: &mut Model) {
    let attempt = model.reboot.attempt.as_ref();
    let summed_up = !goes_at_once(model)
        && attempt.is_some_and(|one| one.approved.is_none() && one.cause != Cause::Autopilot);
    enter(model, Phase::Drafting { gathered: false });
    model.emit_all(reads_task(model));
    model.emit_all([Effect::ReadScratchpad, Effect::ReadGit]);
    // A session of one turn is not worth a summary, which costs as much as the turn, and a client that waits is not kept waiting
    // for one unless a person reads it.
    if summed_up {
        summary::refresh(model);
    }
}

/// Reports whether the message is there, as far as it is waited for.
fn is_drafted(model: &Model, attempt: &Attempt, gathered: bool) -> bool {
    let reviewed = model.view.overlay == Some(Overlay::Review);
    let unattended = attempt.is_by_itself() && model.reboot.mode == RebootMode::Auto && !reviewed;
    let whole = gathered && (goes_at_once(model) || !summary::is_awaited(model, unattended));
    whole || attempt.approved.is_some()
}

fn wait(model: &mut Model) {
    if goes_on_the_fly(model) && !holds_compaction(model) {
        return on_the_fly::wait(model);
    }
    // A client that waits in a compaction is at no safe moment, and needs none.
    let free = is_gone(model) || is_safe(model) || holds_compaction(model);
    let busy = model.session.agent.state == AgentState::Busy;
    let Some(attempt) = &mut model.reboot.attempt else {
        return;
    };
    let goes = attempt.force || free;
    let Phase::Waiting { look, .. } = &mut attempt.phase else {
        return;
    };
    // The text in the prompt box at the last moment is carried over, or keeps the session from being ended.
    if !goes {
        *look = LastLook::Pending;
        attempt.outdated |= busy;
        return;
    }
    if attempt.kind.replaces() {
        let goes_on = in_place::judge(model);
        if goes_on && in_place::is_chosen(model) {
            begin_in_place(model);
        } else if goes_on {
            wait(model);
        }
        return;
    }
    match look {
        LastLook::Pending => return look_at_draft(model),
        LastLook::Ordered(_) => return,
        LastLook::Done => {}
    }
    if model.scratch.reads_prompt_box {
        return;
    }
    let Some(on_disk) = draft_on_disk(model) else {
        return;
    };
    // Another call has begun since: the next gap between calls is waited for.
    if is_within_call(model) {
        if let Some(attempt) = &mut model.reboot.attempt {
            attempt.force = false;
        }
        return;
    }
    draft_again(model);
    unsent::take(model, &on_disk);
    enter(model, Phase::Ending);
}

/// Makes the handoff again from what is true now, where no one has read it or a turn has gone on since the approval, by up to some
/// hundred steps: it would name steps as under way that are done. A message that a person has edited is left as it is.
fn draft_again(model: &mut Model) {
    handoff::draft(model);
    let panel = &model.draft.handoff;
    let edited = panel.edited.is_some();
    model.reboot.renew_message(panel.current(), edited);
}

/// Begins a reboot in place, in which the prompt box keeps what it holds. The disk has the text too, in case the client ends meanwhile.
pub(super) fn begin_in_place(model: &mut Model) {
    if let Some(on_disk) = draft_on_disk(model)
        && let Some(attempt) = &mut model.reboot.attempt
    {
        attempt.beside = on_disk;
        draft_again(model);
        in_place::begin(model);
    }
}

/// Has the text of the prompt box written to disk, before anything is done to its session. Returns `None` until it is there.
fn draft_on_disk(model: &mut Model) -> Option<OnDisk> {
    let held = unsent::unsent(model);
    let Phase::Waiting { draft, .. } = &mut model.reboot.attempt.as_mut()?.phase else {
        return None;
    };
    match held {
        Unsent::Text(text) if *draft == OnDisk::Kept(text.clone()) => {}
        Unsent::Text(text) => {
            let ordered = OnDisk::Ordered(text.clone());
            if std::mem::replace(draft, ordered.clone()) != ordered {
                model.emit(Effect::KeepDraft(Some(text)));
            }
            return None;
        }
        Unsent::Nothing | Unsent::Unreadable => {}
    }
    Some(std::mem::take(draft))
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
    model.reboot.look(look);
}

/// Reports whether the old agent is gone, by our doing or by itself.
fn is_gone(model: &Model) -> bool {
    model.session.agent.state == AgentState::Exited
}

fn end_old_agent(model: &mut Model) {
    if is_gone(model) {
        enter(model, Phase::starting());
    } else if model.reboot.ending.is_some_and(|ending| ending.hopeless) {
        let why = Some("the old agent cannot be ended".to_owned());
        end(model, End::Unfinished(RebootOutcome::Failed, why));
    } else if model.reboot.ending.is_some() || !is_within_call(model) {
        ending::begin(model, false);
    }
}

fn starting(model: &mut Model, mut agent: NewAgent) {
    let Some(attempt) = &model.reboot.attempt else {
        return;
    };
    let kind = attempt.kind;
    match agent.launch {
        Launch::Failed(why) => return roll_back(model, why),
        _ if attempt.is_copying() => {
            let ask = model.next_epoch();
            let order = model.reboot.order_copy(ask);
            return model.emit_all(order);
        }
        Launch::Pending => {
            agent.launch = Launch::Ordered;
            let copying = None;
            model.reboot.go_on(Phase::Starting { copying, agent });
            return start(model);
        }
        Launch::Ordered => return,
        Launch::Running => {}
    }
    match kind {
        // A paste waits for an agent that is ready, which one with a dialog never is.
        Kind::Fresh | Kind::InPlace | Kind::OnTheFly => enter(model, Phase::Delivering(agent)),
        // Nothing is delivered: the copy holds the conversation.
        Kind::Trim => enter(model, Phase::Verifying(agent)),
        Kind::Undo(..) | Kind::Restart => end(model, End::Finished { warmed_up: false }),
    }
}

/// Returns the timer after which a proof that has not come is late.
pub(super) const fn verify_timer(config: &RebootConfig, epoch: u64) -> Effect {
    Effect::SetTimer(TimerId::Verify(epoch), config.verify_timeout)
}

/// Opens the next iteration and orders its process.
fn start(model: &mut Model) {
    let Some(attempt) = &model.reboot.attempt else {
        return;
    };
    let (kind, cause, old, session) = (attempt.kind, attempt.cause, attempt.old, attempt.new);
    let replaced = attempt.replaced.as_ref().map(|one| one.session);
    let handoff = attempt.handoff.as_ref().filter(|_| kind != Kind::Trim);
    let text = handoff.map(|handoff| handoff.text.clone());
    let parent = match kind {
        Kind::Undo(_, parent) => parent,
        Kind::Fresh | Kind::InPlace | Kind::OnTheFly | Kind::Trim | Kind::Restart => {
            model.lineage.iterations().last().map(|last| last.iteration)
        }
    };
    open_iteration(model, session, Some(cause), parent);
    match kind {
        Kind::Fresh => model.session.spending.begin_session(session),
        Kind::Trim => model.session.spending.copy_session(old, session),
        Kind::Undo(..) => {
            carried::come_back(model, replaced.unwrap_or(session), parent);
            if let Some(from) = replaced {
                model.session.spending.copy_session(from, session);
            }
        }
        Kind::InPlace | Kind::OnTheFly | Kind::Restart => {}
    }
    let iteration = model.session.iteration();
    let as_prompt = kind == Kind::Fresh && !is_pasted(model);
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
fn is_pasted(model: &Model) -> bool {
    let attempt = model.reboot.attempt.as_ref();
    let handoff = attempt.and_then(|attempt| attempt.handoff.as_ref());
    let pasted = model.config.reboot.delivery == Delivery::Paste || model.is_generic();
    handoff.is_some_and(|handoff| pasted || handoff.bytes() > 120 * 1024)
}

/// Delivers the message, once the new agent can take it.
fn deliver(model: &mut Model, agent: NewAgent) {
    if is_pasted(model) {
        // The hook that reports the start may come before the pane has shown an empty prompt box.
        let ready = model.session.agent.state != AgentState::Starting;
        let attempt = model.reboot.attempt.as_ref();
        let handoff = attempt.and_then(|attempt| attempt.handoff.clone());
        let Some(handoff) = handoff.filter(|_| ready && typing_refusal(model).is_none()) else {
            return;
        };
        enter(model, Phase::Verifying(agent));
        if model.is_generic() {
            // Other agents have hooks; in their prompt a marker shows before anything is submitted.
            model.emit(Effect::WatchPane(handoff.marker.nonce.clone()));
        }
        let _ = submit::submit(model, &handoff.text);
    } else {
        enter(model, Phase::Verifying(agent));
    }
}

/// Reports whether the message was seen to arrive, or none was sent.
fn is_verified(model: &Model, attempt: &Attempt) -> bool {
    let typed = !model.session.submission.is_open() || !model.is_generic();
    attempt.handoff.is_none() || (attempt.is_proven() && typed)
}

fn verified(model: &mut Model, agent: NewAgent) {
    if model.config.reboot.warmup_prompt.is_none() {
        return end(model, End::Finished { warmed_up: false });
    }
    enter(model, Phase::Warming { due: false, agent });
}

/// Types the warm-up prompt, whose delay is over, once the first turn has ended.
fn warm_up(model: &mut Model) {
    if model.session.agent.state != AgentState::Idle {
        return;
    }
    let prompt = model.config.reboot.warmup_prompt.clone();
    // A prompt box that is not empty, or not there, is waited for.
    if submit::submit(model, &prompt.unwrap_or_default()).is_ok() {
        end(model, End::Finished { warmed_up: true });
    }
}

/// Resumes the old session, because the new agent could not take over.
pub(super) fn roll_back(model: &mut Model, why: String) {
    let Some(attempt) = &mut model.reboot.attempt else {
        return;
    };
    if !attempt.kind.is_reboot() {
        return end(model, End::NotStarted(why));
    }
    attempt.failure = Some(why);
    let beside = std::mem::take(&mut attempt.beside);
    // Its conversation was replaced already, and the session is resumed with that.
    let is_replaced = attempt.kind.replaces() && attempt.has_begun();
    if let Some(current) = model.lineage.current_mut().filter(|_| is_replaced) {
        let preserved = &model.draft.preserved;
        current.reboot = Some(attempt.record(model.session.id, preserved, model.now));
    }
    unsent::outlives(model, beside);
    close_iteration(model, EndReason::Crash);
    enter(model, Phase::RollingBack(Launch::Pending));
}

fn rolling_back(model: &mut Model, launch: &Launch) {
    let Some(attempt) = &model.reboot.attempt else {
        return;
    };
    let old = attempt.old;
    match launch {
        Launch::Pending => {
            model.reboot.go_on(Phase::RollingBack(Launch::Ordered));
            let parent = model.lineage.newest_in(old);
            open_iteration(model, old, Some(Cause::Recovery), parent);
            carried::come_back(model, old, parent);
            let iteration = model.session.iteration();
            return model.emit(Effect::Start(StartAgent {
                iteration,
                session: old,
                resume: true,
                prompt: None,
                prompt_if_new: None,
                first: false,
            }));
        }
        Launch::Ordered => return,
        Launch::Failed(again) => {
            let again = again.clone();
            return end(model, End::NotResumed(again));
        }
        Launch::Running => {}
    }
    end(model, End::RolledBack);
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
    /// It has this outcome, with a reason where the outcome does not tell enough.
    Unfinished(RebootOutcome, Option<String>),
}

/// Ends the reboot under way.
pub(super) fn end(model: &mut Model, how: End) {
    let Some(mut attempt) = model.reboot.attempt.take() else {
        return;
    };
    match how {
        End::Finished { warmed_up } => finish(model, attempt, warmed_up),
        End::Refused(why) => prepare::refuse(model, attempt, why),
        End::NotStarted(why) => {
            close(model, &mut attempt, RebootOutcome::Failed, Some(&why));
            left_without_agent(model);
        }
        End::RolledBack => rolled_back(model, attempt),
        End::NotResumed(again) => {
            let why = attempt.failure.as_deref().unwrap_or_default();
            model.error(format!(
                "the reboot failed ({why}), and so did resuming the old session: no agent runs: {again}"
            ));
            close(model, &mut attempt, RebootOutcome::Failed, None);
            left_without_agent(model);
        }
        End::Unfinished(outcome, why) => close(model, &mut attempt, outcome, why.as_deref()),
    }
}

fn rolled_back(model: &mut Model, mut attempt: Attempt) {
    let why = attempt.failure.clone().unwrap_or_default();
    model.error(if attempt.kind.replaces() {
        format!("the session is resumed as the client left it: {why}")
    } else {
        format!("reboot rolled back, the old session is resumed: {why}")
    });
    close(model, &mut attempt, RebootOutcome::RolledBack, None);
    moment::show(model, moment::failed(&attempt, &why, true));
}

/// Finishes a reboot that went well: its record goes to the history.
fn finish(model: &mut Model, mut attempt: Attempt, warmed_up: bool) {
    let kind = attempt.kind;
    let died = attempt.has_died();
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
        be_quiet(model, DEFER_TURNS, QuietReason::Undone);
    }
    close(model, &mut attempt, RebootOutcome::Done, None);
    if kind.is_reboot() {
        model.reboot.done.push(model.now);
        moment::show(model, card);
    }
    // The agent has died behind its proof, which was not on disk yet: from here on it is an agent that ended like any other.
    if died {
        left_without_agent(model);
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

/// Closes the iteration after an attempt that has left no agent running: a person is asked what comes next.
fn left_without_agent(model: &mut Model) {
    close_iteration(model, EndReason::Crash);
    if model.autopilot.is_none() {
        model.view.open(Overlay::Exited);
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

/// Closes an attempt, in the journal too; `why` is given where the outcome does not tell enough.
pub(super) fn close(
    model: &mut Model,
    attempt: &mut Attempt,
    outcome: RebootOutcome,
    why: Option<&str>,
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
    unsent::forget(model, &on_disk);
    model.reboot.ending = None;
}
