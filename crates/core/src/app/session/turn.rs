//! The course of a turn of the agent: it begins, runs its tools, and ends.

use std::time::Duration;

use crate::api::wire::AgentState;
use pitstop_agent::{Background, Failure, ToolCall, ToolOutput};

use crate::app::{
    autopilot::{self, RunInput},
    draft::{
        breakpoint, checkpoint,
        record::{keep_turn, save_iteration},
        summary::{self, SummaryEvent},
    },
    effect::Effect,
    event::TimerId,
    facts::{is_at_refusal, is_last, is_typing},
    model::{
        Model,
        activity::{ReportedStop, TitleState},
        submission::SubmissionEvent,
    },
    reboot::{self, RebootEvent, in_place::ReplaceEvent, submit},
};

pub(in crate::app) fn prompted(model: &mut Model, prompt: &str) {
    submit::on(model, SubmissionEvent::Taken(prompt));
    model.session.agent.activity.elsewhere.prompted();
    // The bridge's last report is of the turn before: its report on this one may come later.
    let reported = &mut model.session.agent.bridge.reported.turn;
    reported.take_if(|runs| !*runs);
    let kept = keep_turn(&mut model.turns, &model.session, model.now);
    model.emit_all(kept);
    turn_begins(model);
    model.draft.prompt_hooked();
    let warmup = model.config.reboot.warmup_prompt.as_deref();
    model.draft.prompted(prompt, warmup, model.now);
    model.reboot.prompt_seen(prompt).carry_out(model);
    model.session.look_again(&mut model.scratch.effects);
    // Without auto-compaction the client refuses the prompt at this line, and no other hook reports it. With it,
    // the prompt goes out and the client compacts when the service refuses it (measured with 2.1.197).
    if model.session.agent.holds_compaction && is_at_refusal(model) {
        window_is_full(model);
    }
}

/// Begins a turn.
pub(in crate::app) fn turn_begins(model: &mut Model) {
    // A prompt begins new work.
    model.draft.moments.pass();
    model.session.agent.begin_turn();
    // This is not done when a turn ends: its last figure comes after that.
    model.session.guard.begin_turn();
    model.session.costs.begin_turn(model.used());
    model.session.agent.draft = false;
    model.session.agent.background = Background::default();
    model.draft.seen_signals.turn_begins();
}

/// Takes in the Stop hook: the turn is over unless another source shows that it goes on.
pub(in crate::app) fn stop_reported(
    model: &mut Model,
    message: Option<String>,
    background: Background,
) {
    model.session.agent.activity.stop = Some(ReportedStop {
        message,
        background,
    });
    settle_stop(model);
    if model.session.agent.activity.stop.is_some() {
        model.session.look_again(&mut model.scratch.effects);
    }
}

/// Ends the turn whose Stop hook has come, once no source reports that it runs.
pub(in crate::app) fn settle_stop(model: &mut Model) {
    if !goes_on_after_stop(model) {
        end_stopped(model);
    }
}

/// Ends the turn whose Stop hook has come; returns false if none has.
pub(in crate::app) fn end_stopped(model: &mut Model) -> bool {
    let Some(stop) = model.session.agent.activity.stop.take() else {
        return false;
    };
    turn_ended(model, stop.message.as_deref(), stop.background);
    true
}

/// Reports whether a turn runs whose Stop hook has come, by the best source that knows: the client reports the end of a turn some
/// 40 ms after its last Stop hook, and its title turns calm then (measured with 2.1.331). The title also spins while something goes
/// on in the background.
fn goes_on_after_stop(model: &Model) -> bool {
    let agent = &model.session.agent;
    let reported = agent.bridge.of(model.session.id).and_then(|one| one.turn);
    reported.unwrap_or_else(|| {
        let stop = agent.activity.stop.as_ref();
        let alone = stop.is_some_and(|stop| stop.background.is_empty());
        // The title is calm under a question, too.
        let spins = agent.activity.title == Some(TitleState::Spins);
        alone && (spins || agent.activity.question.is_some())
    })
}

/// Handles the end of a turn, with these last words.
pub(in crate::app) fn turn_ended(model: &mut Model, message: Option<&str>, background: Background) {
    model.session.agent.end_turn(AgentState::Idle);
    model.session.agent.count_turn();
    model.session.agent.background = background;
    model.emit(Effect::ReadGit);
    model
        .session
        .read_client_settings(&mut model.scratch.effects);
    if let Some(message) = message {
        model.draft.take_hooked(message, model.now).carry_out(model);
        model.session.agent.last_message = Some(message.to_owned());
    }
    summary::on(model, SummaryEvent::TurnOver);
    autopilot::on(model, RunInput::TurnEnded(message));
    save_iteration(model);
    checkpoint::after_turn(model);
    model.emit_all(quiet_timer(model));
}

/// Takes in what a tool did to the to-do list, the outcome of the tests that a shell command has run, and the commits it has
/// made.
pub(in crate::app) fn tool_finished(model: &mut Model, call: &ToolCall, output: &ToolOutput) {
    let failed = output.failed && !output.interrupted;
    let command = call.command.as_deref();
    let worked = model.reboot.progress.tool_ran(&call.name, command, failed);
    let worked = worked && !failed;
    autopilot::on(
        model,
        RunInput::ToolFinished {
            call,
            output,
            worked,
        },
    );
    if failed {
        let file = call.file.as_deref().unwrap_or_default();
        let named = format!("{} {file}", call.name);
        let named = call.command.as_deref().unwrap_or(named.trim_end());
        let said = format!("{}\n{}", output.stderr, output.stdout);
        let hint = "mend its cause, then try it again";
        let message = format!("{named}: {}", said.trim());
        model.draft.note_error(&message, hint, model.now);
    }
    if !call.by_subagent {
        reboot::on(model, ReplaceEvent::ToolEnded);
    }
    if let Some(todo) = &call.todo {
        model.draft.todo.hooked(todo);
    }
    if breakpoint::writes_notes(call) {
        let read = model.draft.notes.agent_wrote();
        model.emit(read);
    }
    for observed in model.draft.tool_finished(call, output, model.now) {
        breakpoint::take_in(model, observed);
    }
}

pub(in crate::app) fn turn_failed(model: &mut Model, failure: Failure, message: &str) {
    let state = match failure {
        Failure::UsageLimit => AgentState::Limit,
        _ => AgentState::Idle,
    };
    model.session.agent.end_turn(state);
    model.session.agent.count_turn();
    model.error(format!("the turn failed: {message}"));
    let hint = match failure {
        Failure::UsageLimit => "wait until the usage limit is reset, then send the prompt again",
        Failure::ContextLimit => "reboot, or restore this in a fresh session",
        Failure::Service => "wait a moment, then send the prompt again",
        Failure::Conversation => {
            "if it fails again, reboot: a fresh session leaves out what is refused"
        }
        Failure::Other => "see what the agent's screen says, then send the prompt again",
    };
    model
        .draft
        .note_error(&format!("the turn failed: {message}"), hint, model.now);
    checkpoint::after_turn(model);
    if failure == Failure::ContextLimit {
        return window_is_full(model);
    }
    autopilot::on(model, RunInput::TurnFailed(failure, message));
}

/// Notes that the client takes no prompt because its window is full.
pub(super) fn window_is_full(model: &mut Model) {
    model.session.agent.end_turn(AgentState::Limit);
    model.session.agent.window_full = true;
    model.error("context limit reached: the client refuses prompts until a reboot");
    let manual = model.reboot.mode == crate::config::RebootMode::Manual;
    if manual || model.reboot.attempt.is_some() || is_last(model) {
        return;
    }
    reboot::on(model, RebootEvent::ContextLimit);
}

/// Returns the timer for when the human has been quiet for long enough, if they are typing.
#[must_use]
pub fn quiet_timer(model: &Model) -> Option<Effect> {
    let quiet = model.config.reboot.typing_quiet + Duration::from_millis(50);
    is_typing(model).then_some(Effect::SetTimer(TimerId::Quiet, quiet))
}
