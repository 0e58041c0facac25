//! A prompt that waits before it is sent, as the prompt cache is cold and a fresh session would be cheaper (`[guard] cold_cache =
//! "ask"`).
//!
//! ```text
//! Enter in the prompt box ─► the client asks ─► held ─┬─ Enter, or no key in time ─► sent as it is
//!                                                     └─ Esc, or the review ─► back into the prompt box
//! ```
//!
//! The client shows nothing of it and puts a prompt back itself. What is typed meanwhile goes into the box as ever.

use std::time::Duration;

use crate::config::ColdCache;
use pitstop_agent::bridge::{Decision, QuestionId};
use pitstop_base::clock::At;

use crate::app::{
    effect::Effect,
    event::TimerId,
    model::session::{HeldPrompt, Session},
};

/// The interval at which the time that is left is shown again.
const TICK: Duration = Duration::from_secs(1);

/// The reason that the client shows with a prompt that goes back.
const WHY: &str = "pitstop has put it back into the prompt box";

impl Session {
    /// Has the client ask about prompts, or no more, as the configuration says.
    pub(in crate::app) fn ask_of_prompts(&mut self, say: ColdCache, effects: &mut Vec<Effect>) {
        let asks = say == ColdCache::Ask;
        if std::mem::replace(&mut self.asks_of_prompts, asks) != asks {
            effects.push(Effect::AskOfPrompts(asks));
        }
        if !asks {
            self.send_prompt(effects);
        }
    }

    /// Decides about a prompt that its person has submitted: it may be held `until` then, if at all.
    pub(in crate::app) fn prompt_asked(
        &mut self,
        id: QuestionId,
        text: &str,
        until: Option<Duration>,
        epoch: u64,
        effects: &mut Vec<Effect>,
    ) {
        if self.held_prompt.as_ref().is_some_and(|held| held.id == id) {
            return;
        }
        // What we type ourselves, for a run or a device, is not held up.
        let asks = self.asks_of_prompts && !self.submission.is_open();
        let Some(until) = until.filter(|_| asks) else {
            let decision = Decision::Client;
            return effects.push(Effect::AnswerQuestion { id, decision });
        };
        self.send_prompt(effects);
        self.held_prompt = Some(HeldPrompt {
            id,
            text: text.to_owned(),
            until,
            epoch,
        });
        effects.push(Effect::SetTimer(TimerId::HeldPrompt(epoch), TICK));
    }

    /// Has the prompt that is held sent as it is; returns whether one was.
    pub(in crate::app) fn send_prompt(&mut self, effects: &mut Vec<Effect>) -> bool {
        self.decide_prompt(Decision::Client, effects)
    }

    /// Has the prompt that is held put back into the prompt box; returns whether one was.
    pub(in crate::app) fn put_prompt_back(&mut self, effects: &mut Vec<Effect>) -> bool {
        let why = WHY.to_owned();
        self.decide_prompt(Decision::Skip { why }, effects)
    }

    fn decide_prompt(&mut self, decision: Decision, effects: &mut Vec<Effect>) -> bool {
        let Some(HeldPrompt { id, .. }) = self.held_prompt.take() else {
            return false;
        };
        effects.push(Effect::AnswerQuestion { id, decision });
        true
    }

    /// Sends the prompt that is held once its time is over: the timer of this epoch has run out.
    pub(in crate::app) fn prompt_timer(&mut self, epoch: u64, now: At, effects: &mut Vec<Effect>) {
        let held = self.held_prompt.as_ref();
        let Some(held) = held.filter(|held| held.epoch == epoch) else {
            return;
        };
        let left = held.until.saturating_sub(now.since_start);
        if left.is_zero() {
            self.send_prompt(effects);
        } else {
            effects.push(Effect::SetTimer(TimerId::HeldPrompt(epoch), left.min(TICK)));
        }
    }
}
