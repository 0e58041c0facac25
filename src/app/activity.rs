//! What the agent does: one state for its turn and its questions.
//!
//! **A turn is open until it is known to be over, and a question is open until it is known to be answered.** Hooks say when a
//! turn begins and ends and when a question opens. No hook reports that the human has stopped a turn, has answered a question,
//! or has opened a dialog of their own; the title and the prompt box do:
//!
//! | turn by the hooks | title | prompt box | taken for |
//! |---|---|---|---|
//! | open | spins | | a turn that runs |
//! | open | calm | there | a turn that was stopped |
//! | open | calm | not there | unknown: a dialog of which no hook has spoken |
//! | open | calm | never seen in this iteration | unknown while a call of a tool has no result, else stopped |
//! | open | none | not there | unknown |
//! | over | spins | | work without a turn, such as a compaction |
//! | over | | not there | unknown: a dialog or a viewer that the human has opened |
//! | over | | there, or never seen | idle |
//!
//! Signs must stand for a while before they are believed. Unknown is never a safe moment. Without hooks (`hookless`) a title
//! that spins begins a turn, and the transcript says whether a call is open.

use std::{collections::BTreeSet, time::Duration};

use crate::{
    agent::{Failure, ToolCall, claude::prompt_box::PromptBox},
    api::wire::AgentState,
    clock::At,
};

use super::{
    agent, autopilot,
    effect::Effect,
    ending,
    event::TimerId,
    hookless::{begin_turn, is_hookless},
    model::Model,
    reboot, say,
};

/// How long title and prompt box must stand before they are believed over the hooks.
const STANDS: Duration = Duration::from_millis(1500);

/// How long a prompt box that is back must stand behind a question.
const ANSWERED: Duration = Duration::from_millis(300);

/// How long a question may take to be drawn. One that never takes the prompt box's place was answered by a hook of the user's,
/// or is not asked in this pane.
const DRAWN_WITHIN: Duration = Duration::from_secs(3);

/// How many open calls are remembered: more than a client runs side by side.
const MAX_CALLS: usize = 256;

/// What the title says of the agent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TitleState {
    /// No turn runs, or a dialog is open: `✳ …`.
    Calm,
    /// One runs, or background agents do: a spinner of braille dots or of half circles.
    Spins,
}

impl TitleState {
    fn of(title: &str) -> Option<Self> {
        match title.chars().next()? {
            '✳' => Some(Self::Calm),
            '\u{2800}'..='\u{28ff}' | '\u{25d0}'..='\u{25d3}' => Some(Self::Spins),
            _ => None,
        }
    }
}

/// A question that waits for the human.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Question {
    /// What it is about: a tool's name or the client's words.
    pub about: String,
    /// When it was asked.
    asked: At,
    /// Whether it was seen in the place of the prompt box.
    drawn: bool,
}

/// The turn and the question that are open.
#[derive(Clone, Debug, Default)]
pub struct Activity {
    /// Whether a turn is open.
    turn: bool,
    /// Main-chain calls of tools without a result.
    calls: BTreeSet<String>,
    /// The question that is open.
    pub question: Option<Question>,
    /// What the title says.
    title: Option<TitleState>,
    /// Whether the prompt box was seen in this iteration: then its absence means something.
    box_seen: bool,
}

/// What the agent does, in the words that the screen, `status` and the log share.
#[must_use]
pub fn phrase(model: &Model) -> String {
    let phrase = model.agent.state.phrase();
    match limit_reset(model) {
        Some(until) => format!("{phrase} {until}"),
        None => phrase.to_owned(),
    }
}

/// Keeps in the message log that the agent has come to a state in which a person may be needed, and why.
pub fn log_change(model: &mut Model, before: AgentState) {
    let state = model.agent.state;
    let told = matches!(
        state,
        AgentState::Dialog | AgentState::Unknown | AgentState::Limit | AgentState::Exited
    );
    if state == before || !told {
        return;
    }
    let said = match reason(model).filter(|_| state != AgentState::Limit) {
        Some(reason) => format!("agent: {}: {reason}", phrase(model)),
        None => format!("agent: {}", phrase(model)),
    };
    let now = model.now.wall;
    model.view.log(&said, false, now);
}

/// Until when a usage limit holds the agent, if that is known: `until 14:00 UTC`.
fn limit_reset(model: &Model) -> Option<String> {
    let held = model.agent.state == AgentState::Limit;
    let reset = model.agent.limit_reset.filter(|_| held)?;
    Some(format!("until {}", reset.format("%H:%M UTC")))
}

/// What the agent waits for, or why nothing is known: in words.
#[must_use]
pub fn reason(model: &Model) -> Option<String> {
    let agent = &model.agent;
    match agent.state {
        AgentState::Dialog => agent
            .activity
            .question
            .as_ref()
            .map(|one| one.about.clone()),
        AgentState::Unknown if agent.listing => {
            Some("its agent view is open, Esc returns to the session".to_owned())
        }
        AgentState::Unknown if agent.activity.box_seen => {
            Some("a dialog, a list or a viewer has the place of the prompt box".to_owned())
        }
        AgentState::Unknown => Some("a tool call has no result and the title is calm".to_owned()),
        AgentState::Idle if !agent.background.is_empty() => Some(agent.background.to_string()),
        AgentState::Limit => limit_reset(model),
        _ => None,
    }
}

/// Hooks of a process that has ended may come late: they do not bring it back.
fn set_state(model: &mut Model, state: AgentState) {
    if model.agent.state != AgentState::Exited {
        model.agent.state = state;
    }
}

/// A turn begins.
pub(super) fn turn_begins(model: &mut Model) {
    let activity = &mut model.agent.activity;
    activity.turn = true;
    activity.calls.clear();
    activity.question = None;
    set_state(model, AgentState::Busy);
}

/// The turn is over.
pub(super) fn turn_ends(model: &mut Model, state: AgentState) {
    let activity = &mut model.agent.activity;
    activity.turn = false;
    activity.calls.clear();
    activity.question = None;
    set_state(model, state);
}

/// A tool of the main turn is about to run.
pub(super) fn call_begins(model: &mut Model, call: &ToolCall) {
    let activity = &mut model.agent.activity;
    activity.turn = true;
    if let Some(id) = &call.id
        && activity.calls.len() < MAX_CALLS
    {
        activity.calls.insert(id.clone());
    }
    if activity.question.is_none() {
        set_state(model, AgentState::Busy);
    }
}

/// A tool of the main turn has run: a question about it is answered.
pub(super) fn call_ends(model: &mut Model, call: &ToolCall) {
    let activity = &mut model.agent.activity;
    activity.turn = true;
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
}

/// The agent asks the human something.
pub(super) fn asked(model: &mut Model, about: String) -> Vec<Effect> {
    let drawn = !model.agent.prompt_box.is_present();
    let asked = model.now;
    let activity = &mut model.agent.activity;
    // The client reports one question twice, the second time with more words.
    let before = activity.question.take();
    activity.question = Some(Question {
        about,
        asked: before.as_ref().map_or(asked, |before| before.asked),
        drawn: drawn || before.is_some_and(|before| before.drawn),
    });
    set_state(model, AgentState::Dialog);
    look_in(model, DRAWN_WITHIN)
}

/// The human has pressed a key that may answer a question. Where the prompt box is known, the screen says what came of it.
pub(super) fn answered_by_key(model: &mut Model) -> Vec<Effect> {
    let activity = &model.agent.activity;
    if activity.box_seen || activity.question.is_none() {
        return Vec::new();
    }
    without_question(model)
}

/// The question is answered: what is left is the turn, if one is open. It may have been stopped by the answer, which is seen
/// when the signs have stood for longer.
fn without_question(model: &mut Model) -> Vec<Effect> {
    let activity = &mut model.agent.activity;
    activity.question = None;
    let state = if activity.turn {
        AgentState::Busy
    } else {
        AgentState::Idle
    };
    set_state(model, state);
    look_again(model)
}

/// The title has changed.
pub fn title_changed(model: &mut Model) -> Vec<Effect> {
    let title = TitleState::of(&model.title);
    if title == model.agent.activity.title {
        return Vec::new();
    }
    model.agent.activity.title = title;
    look_again(model)
}

/// The prompt box is another one than before.
pub fn box_changed(model: &mut Model, prompt_box: PromptBox) -> Vec<Effect> {
    let was_present = model.agent.prompt_box.is_present();
    let is_present = prompt_box.is_present();
    model.agent.prompt_box = prompt_box;
    let activity = &mut model.agent.activity;
    activity.box_seen |= is_present;
    if let Some(question) = &mut activity.question {
        question.drawn |= !is_present;
    }
    let asks = activity.question.is_some();
    let mut effects = say::box_changed(model);
    if is_present != was_present {
        effects.extend(if asks && is_present {
            look_in(model, ANSWERED)
        } else {
            look_again(model)
        });
        if is_present && model.agent.state == AgentState::Starting && model.agent.hooked {
            set_state(model, AgentState::Idle);
            effects.extend(reboot::consider(model));
        }
    }
    effects.extend(reboot::advance(model));
    effects
}

/// Looks at the signs once they have stood for a while.
pub(super) fn look_again(model: &mut Model) -> Vec<Effect> {
    look_in(model, STANDS)
}

fn look_in(model: &mut Model, time: Duration) -> Vec<Effect> {
    if model.is_generic() {
        return Vec::new();
    }
    let epoch = model.next_epoch();
    model.calm_epoch = epoch;
    vec![Effect::SetTimer(TimerId::Calm(epoch), time)]
}

/// Whether the title says that no turn runs.
#[must_use]
pub fn is_calm(model: &Model) -> bool {
    model.agent.activity.title == Some(TitleState::Calm)
}

/// The signs have stood for long enough.
pub fn judge(model: &mut Model, epoch: u64) -> Vec<Effect> {
    if epoch != model.calm_epoch || model.agent.state == AgentState::Exited {
        return Vec::new();
    }
    let mut effects = Vec::new();
    if model.agent.activity.question.is_some() {
        if !is_answered(model) {
            // One that is not drawn yet is judged again when it is late.
            let undrawn = model.agent.prompt_box.is_present();
            return if undrawn {
                look_in(model, DRAWN_WITHIN)
            } else {
                Vec::new()
            };
        }
        effects.extend(without_question(model));
    } else {
        let before = model.agent.state;
        effects.extend(by_signs(model));
        if model.agent.state == before && effects.is_empty() {
            return effects;
        }
    }
    effects.extend(reboot::consider(model));
    effects.extend(reboot::advance(model));
    effects
}

fn is_answered(model: &Model) -> bool {
    let question = model.agent.activity.question.as_ref();
    let late = |asked: At| model.now.since(asked) >= DRAWN_WITHIN;
    model.agent.prompt_box.is_present()
        && question.is_some_and(|question| question.drawn || late(question.asked))
}

/// What title and prompt box say, where no question is known.
fn by_signs(model: &mut Model) -> Vec<Effect> {
    let activity = &model.agent.activity;
    let (title, present) = (activity.title, model.agent.prompt_box.is_present());
    let hidden = activity.box_seen && !present;
    let hookless = is_hookless(model);
    let spins = title == Some(TitleState::Spins);
    let calm = title == Some(TitleState::Calm);
    match model.agent.state {
        AgentState::Starting if hookless && spins => begin_turn(model),
        // A run types into whatever stands in the pane, so there the prompt box must be seen.
        AgentState::Starting if hookless && calm && (present || model.autopilot.is_none()) => {
            set_state(model, AgentState::Idle);
        }
        AgentState::Starting | AgentState::Limit | AgentState::Exited => {}
        _ if activity.turn => {
            let calls = if hookless {
                model.transcript.calls_open
            } else {
                activity.calls.len()
            };
            if spins {
                set_state(model, AgentState::Busy);
            } else if hidden || (calm && calls > 0 && (hookless || !present)) {
                // A call of a transcript may be over, for it is written late.
                set_state(model, AgentState::Unknown);
            } else if calm {
                return turn_stopped(model);
            } else {
                set_state(model, AgentState::Busy);
            }
        }
        _ if spins && hookless => begin_turn(model),
        _ if spins && model.agent.background.is_empty() => set_state(model, AgentState::Busy),
        _ if hidden => set_state(model, AgentState::Unknown),
        _ => set_state(model, AgentState::Idle),
    }
    Vec::new()
}

/// The turn is over, though no hook has said so.
fn turn_stopped(model: &mut Model) -> Vec<Effect> {
    if is_hookless(model) {
        let said = model.agent.last_message.clone();
        return agent::turn_ended(model, said.as_deref(), crate::agent::Background::default());
    }
    turn_ends(model, AgentState::Idle);
    let mut effects = ending::turn_over(model);
    // A turn that ends so at this line was no turn: the client has refused the prompt.
    if agent::is_at_refusal(model) {
        turn_ends(model, AgentState::Limit);
        effects.extend(agent::context_limit(model));
    } else {
        let word = "it ended without a word";
        effects.extend(autopilot::turn_failed(model, Failure::Other, word));
    }
    effects
}
