//! The time between two turns: what has ended one, and what begins the next.

use std::time::Duration;

use crate::{
    api::wire::AgentState,
    app::model::run::{Due, Run},
    autopilot::{
        Phase, RunEvent, Trip, Verdict, Wait, breaker::excerpt, cap::duration, events::first_line,
    },
};
use pitstop_agent::Failure;
use pitstop_base::clock::look_within;

use super::{
    Act, Acts,
    publish::start_of,
    run_facts::RunFacts,
    steps::{DIALOG, SUBMIT_TIMEOUT},
};

/// The time that a run waits for the figure of the turn that has ended before it goes on without it: a figure that never comes must
/// not hang the run, and one that does come arrives within a second or two.
const FIGURE: Duration = Duration::from_secs(5);

impl Run {
    /// Handles the end of a turn.
    pub(super) fn turn_ended(&mut self, message: Option<&str>, facts: &RunFacts, acts: &mut Acts) {
        let verdict = self.pilot.turn_ended(message, &facts.spent);
        self.unreported = Some(first_line(message.unwrap_or_default()));
        self.figure_in = false;
        if self.pilot.is_held() {
            return self.report_turn(facts, acts);
        }
        self.follow(verdict, "", facts, acts);
    }

    /// Handles a turn that has failed, or has ended without a message.
    pub(super) fn turn_failed(
        &mut self,
        failure: Failure,
        message: &str,
        facts: &RunFacts,
        acts: &mut Acts,
    ) {
        acts.log(RunEvent::TurnFailed {
            iteration: facts.iteration,
            message: excerpt(message),
        });
        if self.pilot.is_held() {
            return;
        }
        let reset = facts.agent.limit_reset;
        let (verdict, why) = match failure {
            // The reboot handles it.
            Failure::ContextLimit => return,
            Failure::UsageLimit => (
                self.pilot.limited(reset, message, facts.now),
                "a usage limit holds".to_owned(),
            ),
            Failure::RateLimit => (
                self.pilot.limited(None, message, facts.now),
                "a rate limit holds".to_owned(),
            ),
            Failure::Service | Failure::Account | Failure::Other | Failure::Conversation => (
                self.pilot.turn_failed(message, failure, &facts.spent),
                format!("the turn failed: {}", excerpt(message)),
            ),
        };
        if verdict == Verdict::Fresh {
            self.enter(Phase::Settling);
            let why =
                "the conversation is refused again and again: the run goes on in a fresh session";
            acts.push(Act::Warn(why.to_owned()));
        }
        self.follow(verdict, &why, facts, acts);
    }

    /// Settles at once when the status line has come: where the next turn has a session of its own, nothing else is waited for.
    pub(super) fn status_line_seen(&mut self, facts: &RunFacts, acts: &mut Acts) {
        let matters = self.is_always_fresh() && facts.agent.turns > 0;
        if matters && self.pilot.phase == Phase::Settling && self.was_due(Due::Settle) {
            self.settle(facts, acts);
        }
    }

    /// Continues without the figure of the turn, which has not come.
    pub(super) fn go_on_without_figure(&mut self, facts: &RunFacts, acts: &mut Acts) {
        tracing::info!("no figure has come for the last turn");
        self.figure_in = true;
        self.settle(facts, acts);
    }

    /// Has the task read again now that the figures are in, then decides how to go on.
    pub(super) fn settle(&mut self, facts: &RunFacts, acts: &mut Acts) {
        if self.pilot.is_held() || facts.reboot.is_some() {
            return;
        }
        match facts.agent.state {
            AgentState::Idle | AgentState::Limit => {}
            // Something lies over the prompt box: the run goes on behind it.
            AgentState::Dialog | AgentState::Unknown => {
                return self.wait_for(Due::PromptBox, DIALOG, acts);
            }
            _ => return,
        }
        if let Some(quiet) = facts.prompt_box.typing {
            return self.wait_for(Due::Settle, quiet, acts);
        }
        // If it were judged by the figure of the turn before, a turn that has filled the window would be followed by a prompt that
        // the client refuses.
        if !self.figure_in && !self.is_always_fresh() {
            return self.wait_for(Due::Figure, FIGURE, acts);
        }
        self.judged = facts.context.known;
        self.report_turn(facts, acts);
        if self.awaits(facts.agent.background.ids()) {
            return self.wait_for_background(facts, acts);
        }
        acts.push(Act::ReadTask);
    }

    /// Takes over the task that was read again, at a reboot or before a prompt.
    pub(super) fn task_read(
        &mut self,
        task: Result<String, String>,
        facts: &RunFacts,
        acts: &mut Acts,
    ) {
        match task {
            Ok(task) => {
                if self.pilot.task_read(task) {
                    let task = first_line(&self.pilot.plan.task);
                    acts.log(RunEvent::TaskChanged { task });
                }
            }
            Err(why) => {
                let why = format!("the task is kept as it was read last: {why}");
                acts.push(Act::Warn(why));
            }
        }
        let asked = self.pilot.phase == Phase::Settling && self.due.is_none();
        if asked && facts.reboot.is_none() {
            acts.push(Act::Decide);
        }
    }

    /// Decides how to go on; `state` is a number that changes with the work that is done.
    pub(super) fn decide(&mut self, state: u64, facts: &RunFacts, acts: &mut Acts) {
        let full = facts.context.is_full;
        let verdict = self.pilot.settled(state, full, &facts.spent);
        let goes_on = matches!(verdict, Verdict::Prompt | Verdict::Fresh | Verdict::Trip(_));
        let verdict = match &facts.gone {
            // Whatever fails in a turn after that fails because of it.
            Some(project) if goes_on => Verdict::Trip(Trip::NoProject {
                project: project.clone(),
            }),
            _ => verdict,
        };
        self.follow(verdict, "", facts, acts);
    }

    /// Types the next prompt, as soon as the prompt box takes one.
    pub(super) fn type_prompt(&mut self, facts: &RunFacts, acts: &mut Acts) {
        if let Some(why) = facts.prompt_box.refusal {
            return self.wait_for_prompt_box(why, facts, acts);
        }
        let text = self.pilot.next_prompt();
        self.enter(Phase::Sent);
        let prompt = start_of(&text);
        acts.push(Act::Submit(text));
        acts.log(RunEvent::Prompted {
            iteration: facts.iteration,
            prompt,
        });
        self.wait_for(Due::SubmitTimeout, SUBMIT_TIMEOUT, acts);
    }

    /// Waits until the prompt box takes a text. A person's text in it is theirs to submit; any other obstacle may pass.
    fn wait_for_prompt_box(&mut self, why: &str, facts: &RunFacts, acts: &mut Acts) {
        tracing::info!(why, "the run does not type its prompt yet");
        if facts.prompt_box.has_draft && self.pilot.plan.attended {
            return self.hold_for_text(acts);
        }
        self.enter(Phase::Settling);
        self.wait_for(Due::PromptBox, DIALOG, acts);
    }

    /// Pauses the run because a person has written a text in the agent's prompt.
    fn hold_for_text(&mut self, acts: &mut Acts) {
        self.hold("the text in the agent's prompt", acts);
    }

    /// Handles a prompt that was not taken in time. A person's text in the box is theirs to submit or to clear.
    pub(super) fn prompt_late(&mut self, facts: &RunFacts, acts: &mut Acts) {
        if facts.prompt_box.has_text && self.pilot.plan.attended {
            return self.hold_for_text(acts);
        }
        self.trip(Trip::NoAnswer { what: "a prompt" }, facts, acts);
    }

    /// Settles if the run waits for the prompt box, and that takes a text now.
    pub(super) fn prompt_box_seen(&mut self, facts: &RunFacts, acts: &mut Acts) {
        if self.due == Some(Due::PromptBox) && facts.prompt_box.refusal.is_none() {
            self.settle(facts, acts);
        }
    }

    /// Handles a prompt box that was not ready for long.
    pub(super) fn prompt_box_late(&mut self, facts: &RunFacts, acts: &mut Acts) {
        let why = facts.prompt_box.refusal;
        let why = why.unwrap_or("the agent's prompt box is not ready");
        if !self.pilot.plan.attended {
            let about = why.to_owned();
            return self.trip(Trip::Dialog { about }, facts, acts);
        }
        self.wait_for(Due::PromptBox, DIALOG, acts);
        self.stuck = Some(why);
    }

    /// Waits for the client's background work, after which the client continues by itself: until then nothing is prompted and
    /// nothing counted.
    fn wait_for_background(&mut self, facts: &RunFacts, acts: &mut Acts) {
        let time = facts.agent.background_wait;
        let background = &facts.agent.background;
        self.pilot.excuse_turn();
        let wait = Wait {
            why: format!("{background}, for at most {}", duration(time)),
            until: facts.now.since_start + time,
            reset: None,
            background: true,
        };
        self.wait_in_phase(wait, time, acts);
    }

    /// Types the next prompt into this session if no other one begins.
    pub(super) fn go_on_without_reboot(&mut self, facts: &RunFacts, acts: &mut Acts) {
        let held = self.pilot.is_held() || self.pilot.is_over();
        if facts.reboot.is_none() && !held {
            self.type_prompt(facts, acts);
        }
    }

    /// Goes on after a wait, once it is over.
    pub(super) fn wait_over(&mut self, facts: &RunFacts, acts: &mut Acts) {
        if let Phase::Waiting(wait) = &self.pilot.phase {
            let left = wait.left(facts.now);
            if !left.is_zero() {
                return self.wait_for(Due::WaitOver, look_within(left), acts);
            }
        }
        self.give_up_background(facts.agent.background.ids());
        self.enter(Phase::Settling);
        if facts.agent.state == AgentState::Exited {
            acts.push(Act::Restart);
        } else {
            self.settle(facts, acts);
        }
    }
}
