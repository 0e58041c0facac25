//! The orders of people and scripts, and what concerns the supervisor itself: modes, notices, leaving.

mod outcome;

use std::time::Duration;

use crate::{
    api::wire::{AgentState, ApproveBody, Control, NeedKind, OrderReply, Reply},
    config::{AgentConfig, AutopilotConfig, Config, RebootMode},
    lineage::{Cause, EndReason},
};
use pitstop_base::clean;

use crate::app::{
    autopilot::{self, RunInput, RunOrder},
    draft::{
        checkpoint::{self, SaveOrder},
        handoff,
    },
    effect::Effect,
    event::{CallId, TimerId},
    facts::{
        Block, YOUNG, agent_reason, is_editing, is_unattended, is_under_review, text_blocked_by,
    },
    model::{CarryOut, Model, Overlay, attempt::AttemptEvent, needs::Need, run::Run},
    outside::report,
    reboot::{
        self, Approval, RebootAction, iteration,
        leave::leave,
        submit::{self, Then},
    },
    refusal::Refusal,
    session::figures::guard_settings,
};

/// Carries out an order of someone with the control token, and answers it. One that was given from afar, by a device, is noted in the
/// message log, and in the record of the reboot that it approves.
pub fn asked(model: &mut Model, call: CallId, control: Control) {
    let (device, control) = match control {
        Control::From(device, control) => (Some(device), *control),
        control => (None, control),
    };
    let order = control.clone();
    // It is answered once the checkpoint is kept.
    let done = match control {
        Control::Save(body) => {
            checkpoint::save(model, SaveOrder::Asked(call, body));
            return model.info("checkpoint saved");
        }
        control => carry_out(model, control, device.as_deref().unwrap_or("ctl")),
    };
    if let Some(device) = &device {
        let refused = match &done {
            Ok(()) => String::new(),
            Err(why) => format!(", refused: {why}"),
        };
        let said = format!("{} from {device}{refused}", order.name());
        tracing::info!(device, order = order.name(), refused, "an order from afar");
        model.view.log(&said, done.is_err(), model.now.wall);
        let approves = matches!(order, Control::Approve | Control::ApproveAs(_));
        if approves && done.is_ok() {
            model.reboot.on(AttemptEvent::ApprovedFrom(device));
        }
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

/// Returns the text that a person sends with an approval in place of the handoff, if they send one. Refuses an approval of a handoff
/// that has changed since it was read.
fn approved_text(model: &Model, body: &ApproveBody) -> Result<Option<String>, Refusal> {
    if is_editing(model) {
        return Err(Refusal::EditedAtTheDesk);
    }
    let shown = report::revision(&model.draft.handoff.current().text);
    if body.revision.as_ref().is_some_and(|read| *read != shown) {
        return Err(Refusal::OtherRevision);
    }
    let Some(text) = &body.handoff else {
        return Ok(None);
    };
    if !is_under_review(model) {
        return Err(Refusal::NothingToApprove);
    }
    let text = clean::text(text);
    Ok(Some(text.trim_start_matches('\n').to_owned()))
}

fn carry_out(model: &mut Model, control: Control, by: &str) -> Result<(), Refusal> {
    match control {
        Control::Reboot | Control::RebootBy(_) => {
            let action = match control {
                Control::RebootBy(way) => RebootAction::BeginBy(way),
                _ => RebootAction::Begin(Cause::Ctl),
            };
            reboot::act(model, action)?;
            // Where no one can look at the review, who asks for it approves it.
            if is_unattended(model) {
                let _ = reboot::act(model, RebootAction::Approve(Approval::Person));
            }
        }
        Control::Approve => reboot::act(model, RebootAction::Approve(Approval::Person))?,
        Control::ApproveAs(body) => {
            // Who names what they have read approves that once: the same request again, from another device, does not cut the turn.
            let approved = model.reboot.attempt.as_ref();
            let approved = approved.filter(|one| body.revision.is_some() && one.is_by_person());
            if let Some(attempt) = approved {
                return Err(Refusal::Approved(attempt.step()));
            }
            if let Some(text) = approved_text(model, &body)? {
                // What the sources have made of the message since the edit began is no change of the person's.
                let base = match &body.base {
                    Some(base) => clean::text(base).to_string(),
                    None => model.draft.handoff.editable().to_owned(),
                };
                model.draft.take_text(&base, &text).carry_out(model);
            }
            reboot::act(model, RebootAction::Approve(Approval::Person))?;
        }
        Control::Permission(body) => {
            let is_it = |need: &&Need| need.kind == NeedKind::Permission && need.id == body.id;
            let mut needs = model.outside.needs().iter();
            needs.find(is_it).ok_or(Refusal::NoPermission)?;
            model.session.decide(body.answer)?.carry_out(model);
        }
        // One of these is never inside another, and both are dealt with before.
        Control::From(..) | Control::Save(_) => {}
        Control::Defer => reboot::act(model, RebootAction::Cancel { defer: true })?,
        Control::Pause => autopilot::order(model, RunOrder::Pause(by))?,
        Control::Resume => autopilot::order(model, RunOrder::Resume)?,
        Control::Undo => reboot::act(model, RebootAction::Undo)?,
        Control::ClearState => {
            let tags = [checkpoint::MANUAL, "clear-state"].map(ToOwned::to_owned);
            checkpoint::save(model, SaveOrder::Tagged(tags.into()));
            model.draft.clear_state().carry_out(model);
        }
        Control::Detach => model.emit(Effect::DetachAll),
        Control::Stop => quit(model, 0, None),
        Control::Say(text) if model.autopilot.is_some() => {
            autopilot::order(model, RunOrder::Prompt(text))?;
        }
        Control::Say(text) => {
            if let Some(block) = text_blocked_by(model) {
                let reason = agent_reason(model).filter(|_| block == Block::Unknown);
                return Err(Refusal::NotSafe(block, reason));
            }
            submit::give(model, &text, Then::Submit).map_err(Refusal::NotTyped)?;
        }
    }
    Ok(())
}

/// Begins to leave: the agent is ended, what was edited is written, the record is closed. A second call leaves at once.
pub fn quit(model: &mut Model, code: i32, signal: Option<&'static str>) {
    if let Some(signal) = signal {
        tracing::info!(signal, "asked to end");
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
    autopilot::on(model, RunInput::Stopped(code));
    let run = model.autopilot.as_ref();
    let code = run.and_then(Run::end_code).unwrap_or(code);
    leave(model, code, reason, urgent);
}

/// Reports whether a person is asked before the supervisor is left by the quit key, because there is something to lose: a turn, a run,
/// an unsent prompt, a note that is not saved.
pub(in crate::app) fn asks_before_quit(model: &Model) -> bool {
    let open = matches!(
        model.session.agent.state,
        AgentState::Busy | AgentState::Dialog | AgentState::Unknown
    );
    let busy = open || !model.session.agent.background.tasks.is_empty();
    let run = model.autopilot.as_ref();
    let runs = run.is_some_and(|run| !run.pilot.is_over());
    (busy || runs || model.session.agent.has_unsent() || model.draft.notes.unsaved().is_some())
        && model.outside.quitting().is_none()
        && model.view.overlay != Some(Overlay::Quit)
}

/// Returns what a mode means, for a person who has switched to it.
pub(in crate::app) const fn mode_words(mode: RebootMode) -> &'static str {
    match mode {
        RebootMode::Manual => "manual: reboots only by key",
        RebootMode::Ask => "ask: asks you at the compact line, nothing goes ahead without you",
        RebootMode::Auto => "auto: reboots by itself at the compact line, after a countdown",
    }
}

/// Takes over changed configuration files. The prefix, colours and thresholds take effect at once; what only counts at a start
/// counts at the next one, and is named.
pub fn reconfigure(model: &mut Model, config: Config) {
    if config.reboot.mode != model.config.reboot.mode && model.autopilot.is_none() {
        model.reboot.set_mode(config.reboot.mode);
    }
    let late = late_tables(&model.config, &config, model.autopilot.is_some());
    model.config = config;
    let settings = guard_settings(&model.config);
    model.session.guard.set_settings(settings);
    let (say, effects) = (model.config.guard.cold_cache, &mut model.scratch.effects);
    model.session.ask_of_prompts(say, effects);
    model.info(match &*late {
        "" => "the configuration was read again".to_owned(),
        late => format!("the configuration was read again ({late}: from the next start on)"),
    });
    handoff::draft(model);
    let reads = handoff::read_files(model);
    model.emit(reads);
}

/// Returns the names of the changed tables that take effect when pitstop is started again; empty if none of them has changed.
fn late_tables(old: &Config, new: &Config, has_run: bool) -> String {
    // The other keys of these two count at once, or for the next agent.
    let agent = AgentConfig {
        bridge: old.agent.bridge,
        tools: old.agent.tools,
        ..new.agent.clone()
    };
    let caps = AutopilotConfig {
        background_wait: old.autopilot.background_wait,
        ..new.autopilot.clone()
    };
    let tables = [
        ("[agent]", agent != old.agent),
        ("[loop]", has_run && caps != old.autopilot),
        ("[api]", new.api != old.api),
        ("[store]", new.store != old.store),
        ("[log]", new.log != old.log),
    ];
    let late: Vec<&str> = tables
        .into_iter()
        .filter_map(|(table, is_late)| is_late.then_some(table))
        .collect();
    late.join(", ")
}

/// Returns the timer for the ages on the screen, of the figure and of the iteration: by the second while one is young, then by the
/// minute, so that an idle supervisor hardly ever wakes up.
#[must_use]
pub fn age_timer(model: &Model) -> Option<Effect> {
    let figure = model.session.guard.figure(model.now);
    let runs = model.lineage.current().is_some();
    let iteration = model.session.lasted(model.now).filter(|_| runs);
    let ages = figure.map(|figure| figure.age).into_iter().chain(iteration);
    let until_next = |age: Duration| {
        if age < YOUNG {
            1
        } else {
            60 - age.as_secs() % 60
        }
    };
    let step = ages.map(until_next).min()?;
    Some(Effect::SetTimer(TimerId::Age, Duration::from_secs(step)))
}
