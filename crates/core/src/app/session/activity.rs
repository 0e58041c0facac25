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
//! no source reports that it runs (`Session::stop_reported`).
//!
//! Signs must last for a while before they are believed, and a calm title for longer where nothing has shown yet that the turn runs:
//! a busy client calls the hook of a prompt long before it draws. Unknown is never a safe moment. Without hooks (`hookless`) a title that
//! spins begins a turn, and the transcript shows whether a call is open. Where the bridge is in force its report on turn and dialog
//! counts before the signs (`signs`).

use std::time::Duration;

use crate::api::wire::AgentState;
use pitstop_agent::{Failure, ToolCall, claude::prompt_box::PromptBox};
use pitstop_base::clock::At;

use crate::app::{
    effect::Effect,
    event::TimerId,
    facts::{agent_reason, limit_reset},
    model::{Model, activity::Question, agent::AgentView, session::Session},
};

/// The time that title and prompt box must be unchanged before they are believed over the hooks.
const STANDS: Duration = Duration::from_millis(1500);

/// The time that a prompt box that is back after a question must stay.
const ANSWERED: Duration = Duration::from_millis(300);

/// The time that a question may take to be drawn. One that never takes the prompt box's place was answered by a hook of the user's,
/// or is not asked in this pane.
pub(in crate::app) const DRAWN_WITHIN: Duration = Duration::from_secs(3);

/// The time that a client may take to show that a turn runs, after each hook that it has called in it: on a busy machine that is
/// seconds.
pub(in crate::app) const SHOWN_WITHIN: Duration = Duration::from_secs(10);

/// The number of open calls that are remembered: more than a client runs side by side.
const MAX_CALLS: usize = 256;

/// Returns what the agent does, in the words of the screen: `limit until 14:00`, in local time.
pub fn phrase(model: &Model) -> String {
    let agent = &model.session.agent;
    let phrase = match agent.state {
        AgentState::Unknown if agent.suspended.is_some() => "suspended",
        AgentState::Limit if agent.window_full => "window full",
        state => state.phrase(),
    };
    match limit_reset(model) {
        Some(reset) => format!("{phrase} until {}", model.now.time_of_day(reset, "%H:%M")),
        None => phrase.to_owned(),
    }
}

/// Returns the line of the message log for an agent that has come from this state to one in which a person may be needed.
pub(in crate::app) fn change_words(model: &Model, before: AgentState) -> Option<String> {
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
        return None;
    }
    let reason = agent_reason(model).filter(|_| state != AgentState::Limit);
    let reason = reason.map_or_else(String::new, |reason| format!(": {reason}"));
    Some(format!("agent: {}{reason}", phrase(model)))
}

impl AgentView {
    /// Sets the agent's state, unless its process has ended: hooks of it may come late and do not bring it back.
    pub(in crate::app) const fn set_state(&mut self, state: AgentState) {
        match &mut self.suspended {
            _ if matches!(self.state, AgentState::Exited) => {}
            Some(before) => *before = state,
            None => self.state = state,
        }
    }

    /// Notes that a hook has come.
    pub(in crate::app) const fn hook_seen(&mut self, now: At) {
        self.hooked = true;
        if let Some(last) = &mut self.activity.unseen {
            *last = now;
        }
    }

    /// Begins a turn.
    pub(in crate::app) fn begin_turn(&mut self) {
        self.activity.hook_due = false;
        // Only a turn that ends well shows that the account is accepted again.
        let account = |one: &(Failure, _)| one.0 == Failure::Account;
        self.failed = self.failed.take().filter(account);
        self.change_turn(true, AgentState::Busy);
    }

    /// Ends the turn.
    pub(in crate::app) fn end_turn(&mut self, state: AgentState) {
        self.change_turn(false, state);
    }

    fn change_turn(&mut self, runs: bool, state: AgentState) {
        self.activity.turn = runs;
        self.activity.counted = runs;
        self.activity.unseen = None;
        self.activity.reopened = false;
        self.activity.stop = None;
        self.activity.closed = false;
        self.activity.calls.clear();
        self.activity.dialog_seen = false;
        self.activity.question = None;
        self.window_full = false;
        self.set_state(state);
    }

    /// Reports whether the transcript has ended the last turn, and nothing has begun since: a hook of its end is late.
    pub(in crate::app) const fn is_closed(&self) -> bool {
        self.activity.closed && !self.activity.turn && !matches!(self.state, AgentState::Busy)
    }

    /// Counts a turn that has ended, unless it was counted before its hook came.
    pub(in crate::app) const fn count_turn(&mut self) {
        if !std::mem::replace(&mut self.activity.hook_due, false) {
            self.turns = self.turns.saturating_add(1);
        }
    }

    /// Counts a turn that has ended without its hook, which may still come.
    pub(in crate::app) const fn count_turn_early(&mut self) {
        self.count_turn();
        self.activity.hook_due = true;
    }

    /// Notes that a tool of the main turn is about to run.
    pub(in crate::app) fn begin_call(&mut self, call: &ToolCall) {
        let activity = &mut self.activity;
        activity.reopened |= !activity.turn;
        activity.turn = true;
        activity.stop = None;
        if let Some(id) = &call.id
            && activity.calls.len() < MAX_CALLS
        {
            activity.calls.insert(id.clone());
        }
        if activity.question.is_none() {
            self.set_state(AgentState::Busy);
        }
    }
}

impl Session {
    /// Notes that a tool of the main turn has run: a question about it is answered.
    pub(in crate::app) fn end_call(&mut self, call: &ToolCall, effects: &mut Vec<Effect>) {
        let activity = &mut self.agent.activity;
        let was_over = !std::mem::replace(&mut activity.turn, true);
        activity.reopened |= was_over;
        activity.stop = None;
        if let Some(id) = &call.id {
            activity.calls.remove(id);
        }
        let seen = activity.box_seen;
        self.guard.note_call();
        // Calls run side by side: the result of another one answers nothing.
        activity
            .question
            .take_if(|question| !seen || question.about == call.name);
        if activity.question.is_none() {
            self.agent.set_state(AgentState::Busy);
        }
        if was_over {
            // The hook may have come late, after the end of its turn: title and prompt box show that.
            self.look_again(effects);
        }
    }

    /// Notes that the agent asks the human something.
    pub(in crate::app) fn asked(&mut self, about: String, now: At, effects: &mut Vec<Effect>) {
        let drawn = !self.agent.prompt_box.is_present();
        let activity = &mut self.agent.activity;
        // The client reports one question twice, the second time with more words, or with none.
        let before = activity.question.take();
        let about = match &before {
            _ if !about.is_empty() => about,
            Some(before) => before.about.clone(),
            None => "it needs your input".to_owned(),
        };
        activity.question = Some(Question {
            about,
            asked: before.as_ref().map_or(now, |before| before.asked),
            drawn: drawn || before.as_ref().is_some_and(|before| before.drawn),
            permission: before.and_then(|before| before.permission),
        });
        self.agent.set_state(AgentState::Dialog);
        self.look_in(DRAWN_WITHIN, effects);
    }

    /// Handles a key of the human's that may answer a question. Where the prompt box or the dialog is known, the screen shows the result.
    pub(in crate::app) fn answered_by_key(&mut self, effects: &mut Vec<Effect>) {
        let AgentView {
            activity,
            prompt_box,
            ..
        } = &self.agent;
        let is_shown = activity.box_seen || matches!(prompt_box, PromptBox::Dialog(_));
        if !is_shown && activity.question.is_some() {
            self.close_question(effects);
        }
    }

    /// Judges what the pane of an agent shows that starts: a dialog that asks, or nothing. One may come behind another, and no hook
    /// reports them: the client has begun no session yet.
    pub(in crate::app) fn judge_start(&mut self, now: At, effects: &mut Vec<Effect>) {
        let AgentView {
            activity,
            prompt_box,
            state,
            ..
        } = &mut self.agent;
        let starts = matches!(state, AgentState::Starting | AgentState::Dialog);
        if !starts || activity.box_seen || activity.turn {
            return;
        }
        let asked = activity.question.as_ref().map(|one| &one.about);
        match prompt_box {
            PromptBox::Dialog(title) if asked != Some(title) => {
                activity.question = None;
                let title = title.clone();
                self.asked(title, now, effects);
            }
            PromptBox::Absent if asked.is_some() => {
                activity.question = None;
                self.agent.set_state(AgentState::Starting);
            }
            _ => {}
        }
    }

    /// Closes the answered question: what is left is the turn, if one is open. It may have been stopped by the answer, which is seen
    /// when the signs have lasted for longer.
    pub(in crate::app) fn close_question(&mut self, effects: &mut Vec<Effect>) {
        self.agent.activity.question = None;
        let state = if self.agent.activity.turn {
            AgentState::Busy
        } else {
            AgentState::Idle
        };
        self.agent.set_state(state);
        self.look_again(effects);
    }

    /// Looks at the signs again once they have lasted for a while.
    pub(in crate::app) fn look_again(&mut self, effects: &mut Vec<Effect>) {
        self.look_in(STANDS, effects);
    }

    /// Looks at the signs again after this time.
    pub(in crate::app) fn look_in(&mut self, time: Duration, effects: &mut Vec<Effect>) {
        if !self.is_generic {
            self.calm_epoch += 1;
            effects.push(Effect::SetTimer(TimerId::Calm(self.calm_epoch), time));
        }
    }

    /// Takes in the prompt box; returns the time after which the signs are looked at, if it has come or gone.
    pub(in crate::app) fn box_seen(&mut self, prompt_box: PromptBox) -> Option<Duration> {
        let agent = &mut self.agent;
        let is_present = prompt_box.is_present();
        let before = std::mem::replace(&mut agent.prompt_box, prompt_box);
        let was_present = before.is_present();
        let activity = &mut agent.activity;
        activity.box_seen |= is_present;
        activity.dialog_seen &= !is_present;
        if let Some(question) = &mut activity.question {
            question.drawn |= !is_present;
        }
        let is_answered = activity.question.is_some() && is_present;
        let after = if is_answered { ANSWERED } else { STANDS };
        let starts = !activity.box_seen && !activity.turn && before != agent.prompt_box;
        (is_present != was_present || starts).then_some(after)
    }

    /// Judges the prompt box, which has come or gone, and looks at the signs after this time.
    pub(in crate::app) fn box_moved(&mut self, after: Duration, effects: &mut Vec<Effect>) {
        self.look_in(after, effects);
        let agent = &mut self.agent;
        let starts = agent.state == AgentState::Starting && agent.hooked;
        if starts && agent.prompt_box.is_present() {
            agent.set_state(AgentState::Idle);
        }
    }
}
