//! The orders of people and scripts, and what concerns the supervisor itself: modes, notices, leaving.

mod outcome;

use std::time::Duration;

use crate::{
    api::wire::{AgentState, ApproveBody, Control, OrderReply, Reply},
    config::{ClipboardPolicy, Config, RebootMode},
    lineage::{Cause, EndReason},
};
use pitstop_base::clean;
use pitstop_terminal::screen::ScreenFact;

use crate::app::{
    autopilot,
    draft::{checkpoint, handoff},
    effect::Effect,
    event::{CallId, TimerId},
    facts::{Block, agent_reason, blocked_by, is_editing, is_unattended, is_under_review},
    model::{Focus, Model, Overlay, attempt::AttemptEvent},
    outside::report,
    reboot::{
        self, Approval, iteration,
        leave::leave,
        submit::{self, Then},
    },
    refusal::Refusal,
    session::{agent, figures::guard_settings, host_output, permission, prompt},
};

/// The time that a notice stays in the footer.
pub const NOTICE_TIME: Duration = Duration::from_secs(8);

/// Carries out an order of someone with the control token, and answers it.
pub fn asked(model: &mut Model, call: CallId, control: Control) {
    let (device, control) = match control {
        Control::From(device, control) => (Some(device), *control),
        control => (None, control),
    };
    let order = control.clone();
    // It is answered once the checkpoint is kept.
    let done = match control {
        Control::Save(body) => return checkpoint::asked(model, call, body),
        control => carry_out(model, control, device.as_deref().unwrap_or("ctl")),
    };
    if let Some(device) = &device {
        given_from(model, device, &order, &done);
    }
    let outcome = if device.is_some() {
        outcome::from_afar
    } else {
        outcome::of
    };
    let reply = match done {
        Ok(()) => Reply::Ordered(OrderReply::new(outcome(model, &order))),
        Err(why) => Reply::Refused {
            why: why.to_string(),
        },
    };
    model.answer(call, reply);
}

/// Notes an order that was given from afar, by this device: in the message log, and in the record of the reboot that it approves.
fn given_from(model: &mut Model, device: &str, order: &Control, done: &Result<(), Refusal>) {
    let refused = match done {
        Ok(()) => String::new(),
        Err(why) => format!(", refused: {why}"),
    };
    let said = format!("{} from {device}{refused}", order.name());
    tracing::info!(device, order = order.name(), refused, "an order from afar");
    let now = model.now.wall;
    model.view.log(&said, done.is_err(), now);
    let approves = matches!(order, Control::Approve | Control::ApproveAs(_));
    if approves && done.is_ok() {
        model.reboot.on(AttemptEvent::ApprovedFrom(device));
    }
}

/// Approves the reboot as the person has read it, or with their own text.
fn approve_as(model: &mut Model, body: &ApproveBody) -> Result<(), Refusal> {
    if is_editing(model) {
        return Err(Refusal::EditedAtTheDesk);
    }
    let shown = report::revision(&model.draft.handoff.current().text);
    if body.revision.as_ref().is_some_and(|read| *read != shown) {
        return Err(Refusal::OtherRevision);
    }
    if let Some(text) = &body.handoff {
        if !is_under_review(model) {
            return Err(Refusal::NothingToApprove);
        }
        let text = clean::text(text);
        let base = model.draft.handoff.editable().to_owned();
        let text = text.trim_start_matches('\n');
        model.draft.take_text(&base, text).carry_out(model);
    }
    reboot::approve(model, Approval::Person)
}

fn carry_out(model: &mut Model, control: Control, by: &str) -> Result<(), Refusal> {
    match control {
        Control::Reboot => {
            let done = reboot::request(model, Cause::Ctl, true);
            approved_if_unattended(model, done)
        }
        Control::RebootBy(way) => {
            let done = reboot::request_by(model, way);
            approved_if_unattended(model, done)
        }
        Control::Approve => reboot::approve(model, Approval::Person),
        Control::ApproveAs(body) => approve_as(model, &body),
        Control::Permission(body) => permission::decide(model, &body),
        // One of these is never inside another, and both are dealt with before.
        Control::From(..) | Control::Save(_) => Ok(()),
        Control::Defer => reboot::cancel(model, true),
        Control::Pause => {
            autopilot::pause(model, by);
            Ok(())
        }
        Control::Resume => autopilot::go_on(model),
        Control::Undo => reboot::undo(model),
        Control::ClearState => {
            let tags = [checkpoint::MANUAL, "clear-state"].map(ToOwned::to_owned);
            checkpoint::save(model, tags.into());
            model.draft.clear_state().carry_out(model);
            Ok(())
        }
        Control::Detach => {
            model.emit(Effect::DetachAll);
            Ok(())
        }
        Control::Stop => {
            quit(model, 0, None);
            Ok(())
        }
        Control::Say(text) if model.autopilot.is_some() => autopilot::prompt(model, text),
        Control::Say(text) => match says_not_now(model) {
            Some(block) => {
                let stands = matches!(block, Block::Unknown | Block::Background);
                let reason = stands.then(|| agent_reason(model)).flatten();
                Err(Refusal::NotSafe(block, reason))
            }
            None => submit::give(model, &text, Then::Submit).map_err(Refusal::NotTyped),
        },
    }
}

/// Returns what keeps a text from being typed now. An editor occupies the host terminal and not the agent's prompt.
fn says_not_now(model: &Model) -> Option<Block> {
    let blocks = blocked_by(model);
    blocks.into_iter().find(|block| *block != Block::Editor)
}

/// Approves a reboot that a script has asked for, where no one can look at the review.
fn approved_if_unattended(model: &mut Model, asked: Result<(), Refusal>) -> Result<(), Refusal> {
    asked?;
    if is_unattended(model) {
        let _ = reboot::approve(model, Approval::Person);
    }
    Ok(())
}

/// Begins to leave: the agent is ended, what was edited is written, the record is closed. A second call leaves at once.
pub fn quit(model: &mut Model, code: i32, signal: Option<&'static str>) {
    if let Some(signal) = signal {
        tracing::info!(signal, "told to end");
    }
    // A signal asks an unattended run to end; elsewhere it means that the machine or the terminal goes.
    let urgent = model.outside.quitting().is_some() || (signal.is_some() && !is_unattended(model));
    if model.outside.quitting().is_none() {
        iteration::note_end(&mut model.lineage, &model.session, signal);
    }
    let reason = model
        .outside
        .quitting()
        .map_or(EndReason::Shutdown, |quitting| quitting.reason);
    if let Some(signal) = signal.filter(|_| !urgent) {
        model.info(format!(
            "{signal}: the agent is ended cleanly; once more ends it at once"
        ));
    }
    let code = autopilot::stopped(model, code);
    leave(model, code, reason, urgent);
}

/// Handles the quit key: asks where there is something to lose: a turn, a run, an unsent prompt, a note that is not saved.
pub fn quit_key(model: &mut Model) {
    let open = matches!(
        model.session.agent.state,
        AgentState::Busy | AgentState::Dialog | AgentState::Unknown
    );
    let busy = open || !model.session.agent.background.tasks.is_empty();
    let runs = model
        .autopilot
        .as_ref()
        .is_some_and(|run| !run.pilot.is_over());
    if (busy || runs || model.session.agent.has_draft() || model.draft.notes.unsaved().is_some())
        && model.outside.quitting().is_none()
        && model.view.overlay != Some(Overlay::Quit)
    {
        return model.view.open(Overlay::Quit);
    }
    quit(model, 0, None);
}

/// Switches to the next mode: manual → ask → auto → manual.
pub fn next_mode(model: &mut Model) {
    model.reboot.go_to_next_mode();
    model.info(match model.reboot.mode {
        RebootMode::Manual => "manual: a reboot only by key",
        RebootMode::Ask => "ask: at the compact line you are asked, nothing goes ahead without you",
        RebootMode::Auto => "auto: at the compact line a reboot is announced, then goes ahead",
    });
}

/// Takes note that the store cannot be used any more, or can again.
pub fn store_error(model: &mut Model, error: Option<String>) {
    match &error {
        Some(why) => model.error(format!("history is kept in memory: {why}")),
        None if model.outside.store_error.is_some() => {
            model.info("the database works again: what waited in memory is written");
        }
        None => {}
    }
    model.outside.store_error = error;
}

/// Handles something that the emulator saw and that is no cell.
pub fn screen_fact(model: &mut Model, fact: ScreenFact) {
    match fact {
        ScreenFact::Title(title) => agent::title_changed(model, title),
        ScreenFact::Bell | ScreenFact::Notification { .. } => host_output::called(model, fact),
        ScreenFact::Progress(progress) => host_output::progressed(model, progress),
        ScreenFact::ClipboardStore(text) => {
            let allowed = match model.config.ui.clipboard {
                ClipboardPolicy::Allow => true,
                ClipboardPolicy::Focused => {
                    model.view.focus == Focus::Pane && model.view.overlay.is_none()
                }
                ClipboardPolicy::Deny => false,
            };
            if !allowed {
                tracing::info!(
                    bytes = text.len(),
                    "the agent may not write the clipboard now"
                );
                return;
            }
            model.emit(Effect::StoreClipboard(text));
        }
        ScreenFact::Mark(_) => {}
    }
}

/// Takes over changed configuration files. The prefix, colours and thresholds take effect at once; what only counts at a start
/// counts at the next one.
pub fn reconfigure(model: &mut Model, config: Config) {
    if config.reboot.mode != model.config.reboot.mode && model.autopilot.is_none() {
        model.reboot.mode_configured(config.reboot.mode);
    }
    model.config = config;
    let settings = guard_settings(&model.config);
    model.session.guard.set_settings(settings);
    prompt::configure(model);
    model.info("the configuration was read again");
    handoff::draft(model);
    let files = &model.config.handoff.include_files;
    let reads = handoff::read_files(&model.draft, files);
    model.emit(reads);
}

/// Takes notices down whose time is over.
pub fn expire_notices(model: &mut Model) {
    if model.view.external.is_some() {
        // No one has seen them behind the editor; once it is left they stay for their time.
        return;
    }
    model.view.expire_notices(model.now, NOTICE_TIME);
    model.emit_all(notice_timer(model));
}

/// Returns the timer for the notice that goes next.
#[must_use]
pub fn notice_timer(model: &Model) -> Option<Effect> {
    let notice = model.view.notices.front()?;
    let left = NOTICE_TIME.saturating_sub(model.now.since(notice.at));
    let left = left + Duration::from_millis(10);
    Some(Effect::SetTimer(TimerId::Notice, left))
}

/// Returns the timer for the age of the figure on the screen: by the second while it is young, then by the minute, so that an idle
/// supervisor hardly ever wakes up.
#[must_use]
pub fn age_timer(model: &Model) -> Option<Effect> {
    let figure = model.session.guard.figure(model.now)?;
    let step = match figure.age.as_secs() {
        0..10 => 1,
        seconds => 60 - seconds % 60,
    };
    Some(Effect::SetTimer(TimerId::Age, Duration::from_secs(step)))
}
