//! The signs of title and prompt box, once they have lasted for long enough: believed over the hooks.
//!
//! Where the bridge is in force, a turn that it reports as running is not taken for stopped, one that it reports as stopped is over
//! at once, and where the signs leave something unknown it is asked whether a dialog has the keys.

use std::time::Duration;

use crate::api::wire::AgentState;
use pitstop_agent::bridge::{BridgeOrder, Outcome, Refusal};
use pitstop_base::clock::At;

use crate::app::{
    effect::Effect,
    model::{
        activity::TitleState,
        agent::AgentView,
        orders::{EndedOrder, OrderEnd, Purpose},
        session::Session,
    },
    session::{
        activity::{DRAWN_WITHIN, SHOWN_WITHIN},
        turn::TurnEvent,
    },
};

/// The time that the client's own side may take to look for a dialog: it is done in milliseconds.
const PROBED_WITHIN: Duration = Duration::from_secs(2);

impl Session {
    /// Judges the signs, which have lasted for long enough if this epoch is the last. Returns what they show of a turn.
    pub(in crate::app) fn judge_signs(
        &mut self,
        epoch: u64,
        (is_run, now): (bool, At),
        effects: &mut Vec<Effect>,
    ) -> Option<TurnEvent> {
        if epoch != self.calm_epoch || self.agent.state == AgentState::Exited {
            return None;
        }
        self.judge_start(now, effects);
        if self.agent.activity.question.is_some() {
            self.judge_question(now, effects);
            return None;
        }
        let seen = self.judge_turn(is_run, now, effects);
        if seen.is_none() && self.is_dialog_unknown() {
            let (purpose, order) = (Purpose::Dialog, BridgeOrder::Probe);
            let orders = &mut self.orders;
            orders.give(self.id, purpose, order, PROBED_WITHIN, effects);
        }
        seen
    }

    /// Closes the question that is open once it is answered.
    fn judge_question(&mut self, now: At, effects: &mut Vec<Effect>) {
        let question = self.agent.activity.question.as_ref();
        let late = |asked: At| now.since(asked) >= DRAWN_WITHIN;
        let is_drawn = question.is_some_and(|question| question.drawn || late(question.asked));
        match (self.agent.prompt_box.is_present(), is_drawn) {
            (true, true) => self.close_question(effects),
            // A question that is not drawn yet is judged again when it is late.
            (true, false) => self.look_in(DRAWN_WITHIN, effects),
            (false, _) => {}
        }
    }

    /// Sets the state by title and prompt box, where no question is known. Returns what they show of a turn.
    fn judge_turn(
        &mut self,
        is_run: bool,
        now: At,
        effects: &mut Vec<Effect>,
    ) -> Option<TurnEvent> {
        let (hookless, unseen) = (self.is_hookless(), self.is_unseen(now));
        let agent = &mut self.agent;
        let activity = &agent.activity;
        let (title, present) = (activity.title, agent.prompt_box.is_present());
        let hidden = activity.box_seen && !present;
        let reported = agent.bridge.of(self.id);
        let runs = reported.is_some_and(|reported| reported.turn == Some(true));
        let spins = title == Some(TitleState::Spins);
        let calm = title == Some(TitleState::Calm);
        let calls = if hookless {
            self.transcript.calls_open
        } else {
            activity.calls.len()
        };
        let state = match agent.state {
            AgentState::Starting if hookless && spins => return self.begin_seen_turn(now),
            // A run types into whatever is open in the pane, so there the prompt box must be seen.
            AgentState::Starting if hookless && calm && (present || !is_run) => AgentState::Idle,
            AgentState::Starting | AgentState::Limit | AgentState::Exited => return None,
            _ if activity.turn && spins => AgentState::Busy,
            // A call of a transcript may be over, for it is written late.
            _ if activity.turn && (hidden || calm && calls > 0 && (hookless || !present)) => {
                AgentState::Unknown
            }
            _ if activity.turn && calm && !runs && unseen => {
                self.look_in(SHOWN_WITHIN, effects);
                return None;
            }
            _ if activity.turn && calm && !runs => return Some(self.end_by_signs()),
            _ if activity.turn => AgentState::Busy,
            _ if spins && hookless => return self.begin_seen_turn(now),
            _ if spins && agent.background.is_empty() => {
                agent.set_state(AgentState::Busy);
                return self.begin_unreported(false);
            }
            _ if hidden => AgentState::Unknown,
            _ if activity.elsewhere.known => AgentState::Elsewhere,
            _ => AgentState::Idle,
        };
        agent.set_state(state);
        None
    }

    /// Reports whether the turn has begun so lately that its client may not have shown it yet.
    fn is_unseen(&self, now: At) -> bool {
        let began = self.agent.activity.unseen;
        began.is_some_and(|began| now.since(began) < SHOWN_WITHIN) && !self.is_at_refusal(now)
    }

    /// Reports whether the window is so full that a client without auto-compaction takes no prompt.
    pub(in crate::app) fn is_at_refusal(&self, now: At) -> bool {
        let figure = self.guard.figure(now);
        figure.is_some_and(|figure| figure.used >= figure.lines.refusal())
    }

    /// Returns the end of a turn that is over, though no hook may have reported it.
    fn end_by_signs(&mut self) -> TurnEvent {
        if self.is_hookless() {
            return self.end_with_last_words();
        }
        self.take_stop().unwrap_or(TurnEvent::Unreported)
    }

    /// Returns the end of a turn that was stopped by the report of the client's own side: no hook reports that.
    pub(in crate::app) fn abort_turn(&mut self) -> Option<TurnEvent> {
        if !self.agent.activity.turn || self.agent.state == AgentState::Exited {
            return None;
        }
        self.agent.activity.stop = None;
        Some(self.end_by_signs())
    }

    /// Reports whether the client's own side is to look whether a dialog has the keys, because that is unknown.
    fn is_dialog_unknown(&self) -> bool {
        let agent = &self.agent;
        let unknown = agent.state == AgentState::Unknown && !agent.listing;
        unknown
            && !agent.activity.dialog_seen
            && agent.bridge.of(self.id).is_some()
            && self.orders.open(Purpose::Dialog).next().is_none()
    }

    /// Takes in the result of the client's own side, which has looked for a dialog.
    pub(in crate::app) fn probed(
        &mut self,
        ended: &EndedOrder,
        now: At,
        effects: &mut Vec<Effect>,
    ) {
        let agent = &mut self.agent;
        if ended.session != self.id || agent.state != AgentState::Unknown {
            return;
        }
        let runs = agent.activity.turn && agent.bridge.reported.turn != Some(false);
        match &ended.end {
            // In a turn the agent asks; outside of one a person has opened a list of the client's.
            OrderEnd::Answered(Outcome::Filled(Err(Refusal::Dialog))) if runs => {
                let about = "a dialog is open (seen by the bridge)".to_owned();
                self.asked(about, now, effects);
            }
            OrderEnd::Answered(Outcome::Filled(Err(Refusal::Dialog))) => {
                agent.activity.dialog_seen = true;
            }
            OrderEnd::Answered(Outcome::Filled(Ok(()))) => agent.set_state(if runs {
                AgentState::Busy
            } else {
                AgentState::Idle
            }),
            _ => {}
        }
    }
}

impl AgentView {
    /// Reports whether the title has stopped spinning since this time, by the monotonic clock, and shows no work now.
    pub(in crate::app) fn has_rested_since(&self, since: Duration) -> bool {
        let activity = &self.activity;
        let is_calm = activity.title == Some(TitleState::Calm) && self.state == AgentState::Idle;
        is_calm && activity.rested.is_some_and(|at| at >= since)
    }

    /// Notes that a turn runs by the report of the client's own side, also one that no hook has begun or that a hook has ended too
    /// early.
    pub(in crate::app) fn turn_started(&mut self) {
        // The hook of a prompt that the client refuses gives more information.
        if matches!(self.state, AgentState::Idle | AgentState::Unknown) {
            self.activity.turn = true;
            self.set_state(AgentState::Busy);
        }
    }
}
