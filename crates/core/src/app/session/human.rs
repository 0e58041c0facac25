//! The human's own words: read from the hook at once, and from the transcript, which knows the earlier words too.

use pitstop_base::clock::At;
use pitstop_transcript::{human::HumanWords, prompts, words::plain_key};

use crate::app::{
    consequences::Consequences,
    facts::text_blocked_by,
    model::{Model, draft::HandoffDraft},
};

impl HandoffDraft {
    /// Takes in a prompt that the agent was given.
    pub(in crate::app) fn prompted(&mut self, prompt: &str, warmup: Option<&str>, now: At) {
        let mut words = HumanWords::default();
        if words.take_prompt(prompt, Some(now.wall)) {
            // A prompt that was taken out counts again when it is given again.
            if !prompts::is_handoff(prompt) {
                self.signalled.readmit_prompts(&words);
                let keys = words.prompts.iter().map(|said| plain_key(&said.text));
                let new = keys.filter(|key| !self.signalled.has_prompt(key));
                self.hooked_only.extend(new);
            }
            self.human_said(&words, warmup);
        }
    }

    /// Takes in the words that the transcript has. It shows of whom a prompt is, and the hook does not.
    pub(in crate::app) fn words_read(&mut self, mut words: HumanWords, warmup: Option<&str>) {
        let latest = self.hooked_only.last().cloned();
        self.hooked_only.retain(|key| {
            let is_unsaid = words.is_unsaid(key, latest.as_ref() == Some(key));
            if is_unsaid {
                words.taken_back.insert(key.to_owned());
            }
            !is_unsaid && !words.has_prompt(key)
        });
        self.goal.clone_from(&words.goal);
        if self.goal.is_some() {
            self.goal_due = None;
        }
        self.human_said(&words, warmup);
    }

    /// Takes out of a session that is left the goal that the next one is to be given. A goal that it was given goes over by a handoff
    /// alone: the client resumes a session with it.
    pub(in crate::app) fn take_goal(&mut self, with_handoff: bool) -> Option<String> {
        let given = self.goal.take().filter(|_| with_handoff);
        given.or(self.goal_due.take())
    }

    /// Notes the goal that this session is to be given.
    pub(in crate::app) fn await_goal(&mut self, goal: Option<String>) {
        self.goal_due = goal;
    }

    /// Notes that this session was given its goal, or why not: it is tried again behind the next turn.
    pub(in crate::app) fn goal_given(&mut self, given: Result<(), &str>) -> Consequences {
        let mut done = Consequences::default();
        match given {
            Ok(()) => {
                self.goal_due = None;
                done.info("the goal of the session before is set again");
            }
            Err(why) => done.info(format!(
                "the goal of the session before is not set again yet: {why}"
            )),
        }
        done
    }
}

/// Returns the command that sets the goal of the session before in a session that has begun with its handoff, once no turn runs: the
/// client ends a goal with its process. A run goes on by itself.
pub(in crate::app) fn due_goal(model: &Model) -> Option<String> {
    let free = model.autopilot.is_none() && model.reboot.attempt.is_none();
    let goal = model.draft.goal_due.as_ref();
    let goal = goal.filter(|_| free && text_blocked_by(model).is_none());
    goal.map(|goal| format!("/goal {goal}"))
}
