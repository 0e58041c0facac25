//! The agent's activity: one state for its turn and its questions.
//!
//! **A turn is open until it is known to be over, and a question is open until it is known to be answered.** Hooks report when a
//! turn begins and ends and when a question opens. No hook reports that the human has stopped a turn, has answered a question, or
//! has opened a dialog of their own; the title and the prompt box show it:
//!
//! | turn by the hooks | title | prompt box | taken for |
//! |---|---|---|---|
//! | open | spins | | a turn that runs |
//! | open | calm | there | a turn that was stopped |
//! | open | calm | not there | unknown: a dialog that no hook has reported |
//! | open | calm | never seen in this iteration | unknown while a call of a tool has no result, else stopped |
//! | open | none | not there | unknown |
//! | over | spins | | work without a turn, such as a compaction |
//! | over | | not there | unknown: a dialog or a viewer that the human has opened |
//! | over | | there, or never seen | idle, or resumed elsewhere |
//!
//! A Stop hook alone does not end a turn: another Stop hook, the user's or a loop's, may send the agent on. The turn is over once
//! no source reports that it runs (`turn::stop_reported`).
//!
//! Signs must last for a while before they are believed. Unknown is never a safe moment. Without hooks (`hookless`) a title that
//! spins begins a turn, and the transcript shows whether a call is open. Where the bridge is in force its report on turn and dialog
//! counts before the signs (`signs`).

use std::time::Duration;

use crate::api::wire::AgentState;
use pitstop_agent::{ToolCall, claude::prompt_box::PromptBox};

use crate::app::{
    effect::Effect,
    event::TimerId,
    facts::{agent_reason, is_in_call, limit_reset},
    model::{
        Model,
        activity::{Question, TitleState},
        submission::SubmissionEvent,
    },
    reboot::submit,
    session::turn,
};

/// The time that title and prompt box must be unchanged before they are believed over the hooks.
const STANDS: Duration = Duration::from_millis(1500);

/// The time that a prompt box that is back after a question must stay.
const ANSWERED: Duration = Duration::from_millis(300);

/// The time that a question may take to be drawn. One that never takes the prompt box's place was answered by a hook of the user's,
/// or is not asked in this pane.
pub(in crate::app) const DRAWN_WITHIN: Duration = Duration::from_secs(3);

/// The number of open calls that are remembered: more than a client runs side by side.
const MAX_CALLS: usize = 256;

/// Returns what the agent does, in the words of the screen: `limit until 14:00`, in local time.
#[must_use]
pub fn phrase(model: &Model) -> String {
    let agent = &model.session.agent;
    let phrase = if agent.suspended.is_some() && agent.state == AgentState::Unknown {
        "suspended"
    } else {
        agent.state.phrase()
    };
    match limit_reset(model) {
        Some(reset) => format!("{phrase} until {}", model.now.local(reset).format("%H:%M")),
        None => phrase.to_owned(),
    }
}

/// Keeps in the message log that the agent has come to a state in which a person may be needed, and the reason.
pub(in crate::app) fn log_change(model: &mut Model, before: AgentState) {
    let state = model.session.agent.state;
    let notable = matches!(
        state,
        AgentState::Dialog
            | AgentState::Unknown
            | AgentState::Elsewhere
            | AgentState::Limit
            | AgentState::Exited
    );
    if state == before || !notable {
        return;
    }
    let said = match agent_reason(model).filter(|_| state != AgentState::Limit) {
        Some(reason) => format!("agent: {}: {reason}", phrase(model)),
        None => format!("agent: {}", phrase(model)),
    };
    let now = model.now.wall;
    model.view.log(&said, false, now);
}

/// Sets the agent's state, unless its process has ended: hooks of it may come late and do not bring it back.
pub(in crate::app) fn set_state(model: &mut Model, state: AgentState) {
    let agent = &mut model.session.agent;
    match &mut agent.suspended {
        _ if agent.state == AgentState::Exited => {}
        Some(before) => *before = state,
        None => agent.state = state,
    }
}

/// Begins a turn.
pub(in crate::app) fn turn_begins(model: &mut Model) {
    let activity = &mut model.session.agent.activity;
    activity.turn = true;
    activity.hook_due = false;
    activity.stop = None;
    activity.calls.clear();
    activity.dialog_seen = false;
    activity.question = None;
    model.session.agent.window_full = false;
    set_state(model, AgentState::Busy);
}

/// Ends the turn.
pub(in crate::app) fn turn_ends(model: &mut Model, state: AgentState) {
    let activity = &mut model.session.agent.activity;
    activity.turn = false;
    activity.stop = None;
    activity.calls.clear();
    activity.dialog_seen = false;
    activity.question = None;
    model.session.agent.window_full = false;
    set_state(model, state);
}

/// Notes that a tool of the main turn is about to run.
pub(in crate::app) fn call_begins(model: &mut Model, call: &ToolCall) {
    let activity = &mut model.session.agent.activity;
    activity.turn = true;
    activity.stop = None;
    if let Some(id) = &call.id
        && activity.calls.len() < MAX_CALLS
    {
        activity.calls.insert(id.clone());
    }
    if activity.question.is_none() {
        set_state(model, AgentState::Busy);
    }
}

/// Notes that a tool of the main turn has run: a question about it is answered.
pub(in crate::app) fn call_ends(model: &mut Model, call: &ToolCall) {
    let activity = &mut model.session.agent.activity;
    let was_over = !std::mem::replace(&mut activity.turn, true);
    activity.stop = None;
    if let Some(id) = &call.id {
        activity.calls.remove(id);
    }
    let seen = activity.box_seen;
    // Calls run side by side: the result of another one answers nothing.
    activity
        .question
        .take_if(|question| !seen || question.about == call.name);
    if activity.question.is_none() {
        set_state(model, AgentState::Busy);
    }
    model.scratch.at_seam = !is_in_call(model);
    if was_over {
        // The hook may have come late, after the end of its turn: title and prompt box show that.
        look_again(model);
    }
}

/// Notes that the transcript has new results: after the last one of a step the turn can be cut.
pub(in crate::app) fn results_read(model: &mut Model) {
    let agent = &model.session.agent;
    model.scratch.at_seam |= agent.state == AgentState::Busy && !is_in_call(model);
}

/// Notes that the agent asks the human something.
pub(in crate::app) fn asked(model: &mut Model, about: String) {
    let drawn = !model.session.agent.prompt_box.is_present();
    let asked = model.now;
    let activity = &mut model.session.agent.activity;
    // The client reports one question twice, the second time with more words.
    let before = activity.question.take();
    activity.question = Some(Question {
        about,
        asked: before.as_ref().map_or(asked, |before| before.asked),
        drawn: drawn || before.as_ref().is_some_and(|before| before.drawn),
        permission: before.and_then(|before| before.permission),
    });
    set_state(model, AgentState::Dialog);
    look_in(model, DRAWN_WITHIN);
}

/// Handles a key of the human's that may answer a question. Where the prompt box is known, the screen shows the result.
pub(in crate::app) fn answered_by_key(model: &mut Model) {
    let activity = &model.session.agent.activity;
    if activity.box_seen || activity.question.is_none() {
        return;
    }
    without_question(model);
}

/// Closes the answered question: what is left is the turn, if one is open. It may have been stopped by the answer, which is seen
/// when the signs have lasted for longer.
pub(in crate::app) fn without_question(model: &mut Model) {
    let activity = &mut model.session.agent.activity;
    activity.question = None;
    let state = if activity.turn {
        AgentState::Busy
    } else {
        AgentState::Idle
    };
    set_state(model, state);
    look_again(model);
}

/// Handles a change of the title.
pub fn title_changed(model: &mut Model) {
    let title = TitleState::of(&model.session.title);
    if title == model.session.agent.activity.title {
        return;
    }
    model.session.agent.activity.title = title;
    turn::settle_stop(model);
    look_again(model);
}

/// Handles a change of the prompt box.
pub fn box_changed(model: &mut Model, prompt_box: PromptBox) {
    let was_present = model.session.agent.prompt_box.is_present();
    let is_present = prompt_box.is_present();
    model.session.agent.prompt_box = prompt_box;
    let activity = &mut model.session.agent.activity;
    activity.box_seen |= is_present;
    activity.dialog_seen &= !is_present;
    if let Some(question) = &mut activity.question {
        question.drawn |= !is_present;
    }
    let asks = activity.question.is_some();
    submit::on(model, SubmissionEvent::BoxChanged);
    if is_present != was_present {
        if asks && is_present {
            look_in(model, ANSWERED);
        } else {
            look_again(model);
        }
        if is_present
            && model.session.agent.state == AgentState::Starting
            && model.session.agent.hooked
        {
            set_state(model, AgentState::Idle);
        }
    }
}

/// Looks at the signs again once they have lasted for a while.
pub(in crate::app) fn look_again(model: &mut Model) {
    look_in(model, STANDS);
}

pub(in crate::app) fn look_in(model: &mut Model, time: Duration) {
    if model.is_generic() {
        return;
    }
    let epoch = model.next_epoch();
    model.session.calm_epoch = epoch;
    model.emit(Effect::SetTimer(TimerId::Calm(epoch), time));
}
