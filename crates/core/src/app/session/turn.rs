//! The course of a turn of the agent: it begins, runs its tools, and ends.

use std::time::Duration;

use crate::api::wire::AgentState;
use pitstop_agent::{Background, Failure, ToolCall, ToolOutput, hook::failure_kind};
use pitstop_base::clock::At;

use crate::app::{
    autopilot::{self, RunInput},
    draft::{
        breakpoint::MomentFacts,
        checkpoint::{self, SaveOrder},
        record::{keep_turn, save_iteration},
        summary::{self, SummaryEvent},
    },
    effect::Effect,
    event::{Closing, TimerId},
    facts::{is_cut_by_us, is_typing},
    model::{
        AgentView, CarryOut, Model,
        activity::{ReportedStop, TitleState},
        attempt::AttemptEvent,
        progress::hash_of,
        reboot::Reboot,
        session::Session,
        submission::SubmissionEvent,
    },
    reboot::{
        self, RebootEvent,
        in_place::ReplaceEvent,
        submit::{self, Then},
    },
    session::human,
};

/// What happens to a turn.
pub(in crate::app) enum TurnEvent {
    /// The agent was given this prompt.
    Submitted(String),
    /// A prompt begins a turn.
    Prompted,
    /// A tool has run, with this output.
    ToolFinished((ToolCall, ToolOutput)),
    /// A turn has begun.
    Begun,
    /// The turn is over, with these last words.
    Over(ReportedStop),
    /// The turn has failed, for this reason.
    Failed(Failure, String),
    /// It was no turn: the client takes no prompt because its window is full.
    Refused,
    /// The signs show the end, and no hook has reported it.
    Unreported,
    /// It has ended without a word.
    Silent,
}

impl Session {
    /// Reports whether the turn that runs, by the report of the client's own side, has its figures already: a prompt that a person
    /// gives in the middle of it begins no other one in them.
    fn is_in_counted_turn(&self) -> bool {
        let reported = self.agent.bridge.of(self.id).and_then(|one| one.turn);
        self.agent.activity.counted && reported == Some(true)
    }

    /// Begins a turn.
    pub(in crate::app) fn begin_turn(&mut self, now: At) {
        let is_new = !self.is_in_counted_turn();
        // A prompt in the middle of a turn begins none.
        if !self.agent.activity.turn {
            self.agent.activity.began = Some(now);
        }
        self.agent.begin_turn();
        self.agent.activity.closings = self.transcript.closings;
        self.client.misled = false;
        // This is not done when a turn ends: its last figure comes after that.
        if is_new {
            self.guard.begin_turn();
            self.costs.begin_turn(self.used(now));
        }
        self.agent.draft = false;
        self.agent.background = Background::default();
        // The hook of a resume names no end of it, and not every service reports a cache with its answers.
        let cache = &mut self.agent.prompt_cache;
        cache.take_if(|cache| !cache.warm && cache.expires_at.is_none());
    }

    /// Takes in the Stop hook. Returns the end of the turn, unless another source shows that it goes on.
    pub(in crate::app) fn stop_reported(
        &mut self,
        message: Option<String>,
        background: Background,
        effects: &mut Vec<Effect>,
    ) -> Option<TurnEvent> {
        if self.agent.is_closed() {
            self.agent.background = background;
            return None;
        }
        self.agent.activity.stop = Some(ReportedStop {
            message,
            background,
        });
        let end = self.settle_stop();
        if end.is_none() {
            self.look_again(effects);
        }
        end
    }

    /// Returns the end of the turn whose Stop hook has come, once no source reports that it runs.
    pub(in crate::app) fn settle_stop(&mut self) -> Option<TurnEvent> {
        if self.goes_on_after_stop() {
            return None;
        }
        self.take_stop()
    }

    /// Returns the end of the turn whose Stop hook has come.
    pub(in crate::app) fn take_stop(&mut self) -> Option<TurnEvent> {
        self.agent.activity.stop.take().map(TurnEvent::Over)
    }

    /// Returns the end of the turn with the words that were read last, for no hook has brought any.
    pub(in crate::app) fn end_with_last_words(&self) -> TurnEvent {
        TurnEvent::Over(ReportedStop {
            message: self.agent.last_message.clone(),
            background: Background::default(),
        })
    }

    /// Returns the end of the turn whose hook is lost, or late, if the transcript shows that it has ended. A failure is none where the
    /// client refuses prompts.
    fn end_by_transcript(&self, now: At) -> Option<TurnEvent> {
        let (agent, transcript) = (&self.agent, &self.transcript);
        // A turn that was opened again by a late hook has ended already, with these words.
        let words = agent.last_message.as_ref().map(hash_of);
        let is_known = agent.activity.reopened && words == agent.activity.last_words;
        let is_newer = transcript.closings > agent.activity.closings && !is_known;
        let closing = transcript.closing.clone().filter(|_| is_newer)?;
        match closing {
            Closing::Answered => Some(self.end_with_last_words()),
            Closing::Failed { .. } if self.is_at_refusal(now) => None,
            Closing::Failed { word, message } => {
                Some(TurnEvent::Failed(failure_kind(&word, &message), message))
            }
        }
    }

    /// Takes in the hook of a prompt. Returns the turn that begins with it, unless it has begun already.
    fn prompt_hooked(&mut self) -> Option<TurnEvent> {
        let elsewhere = &mut self.agent.activity.elsewhere;
        let is_begun = elsewhere.begun;
        elsewhere.prompted();
        // The bridge's last report is of the turn before: its report on this one may come later.
        let reported = &mut self.agent.bridge.reported.turn;
        reported.take_if(|runs| !*runs);
        (!is_begun).then_some(TurnEvent::Prompted)
    }

    /// Waits for the signs of a prompt's turn. Without auto-compaction the client refuses the prompt at this line, which is returned,
    /// and no other hook reports it. With it, the prompt goes out and the client compacts when the service refuses it (measured with
    /// 2.1.197).
    fn await_signs(
        &mut self,
        begins: bool,
        now: At,
        effects: &mut Vec<Effect>,
    ) -> Option<TurnEvent> {
        if begins {
            let activity = &mut self.agent.activity;
            let is_calm = activity.title == Some(TitleState::Calm);
            activity.unseen = is_calm.then_some(now);
        }
        self.look_again(effects);
        let refuses = self.agent.holds_compaction && self.is_at_refusal(now);
        refuses.then_some(TurnEvent::Refused)
    }

    /// Ends the turn, and returns its last words.
    fn turn_over(&mut self, stop: ReportedStop, effects: &mut Vec<Effect>) -> Option<String> {
        let agent = &mut self.agent;
        agent.end_turn(AgentState::Idle);
        agent.failed = None;
        agent.count_turn();
        agent.background = stop.background;
        agent.activity.last_words = stop.message.as_ref().map(hash_of);
        agent.last_message = stop.message.clone().or(agent.last_message.take());
        self.read_client_settings(effects);
        stop.message
    }

    /// Ends a turn that no hook has reported as over, and that may be cut by us. Returns what it was, and whether the transcript shows
    /// that.
    fn end_unreported(&mut self, is_cut: bool, now: At) -> (Option<TurnEvent>, bool) {
        let shown = self.end_by_transcript(now).filter(|_| !is_cut);
        if shown.is_some() {
            return (shown, true);
        }
        let is_late = self.agent.activity.reopened;
        self.agent.end_turn(AgentState::Idle);
        // A turn that ends so at this line was no turn: the client has refused the prompt.
        if !is_cut && self.is_at_refusal(now) {
            return (Some(TurnEvent::Refused), false);
        }
        if is_cut || !is_late {
            self.agent.count_turn_early();
        }
        let is_silent = !is_cut && !is_late;
        (is_silent.then_some(TurnEvent::Silent), false)
    }

    /// Reports whether a turn runs whose Stop hook has come, by the best source that knows: the client reports the end of a turn some
    /// 40 ms after its last Stop hook, and its title turns calm then (measured with 2.1.331). The title also spins while something
    /// goes on in the background.
    fn goes_on_after_stop(&self) -> bool {
        let agent = &self.agent;
        let reported = agent.bridge.of(self.id).and_then(|one| one.turn);
        reported.unwrap_or_else(|| {
            let stop = agent.activity.stop.as_ref();
            let alone = stop.is_some_and(|stop| stop.background.is_empty());
            // The title is calm under a question, too.
            let spins = agent.activity.title == Some(TitleState::Spins);
            alone && (spins || agent.activity.question.is_some())
        })
    }
}

impl Reboot {
    /// Notes that a tool has run. Returns whether it got work done.
    fn tool_ran(&mut self, call: &ToolCall, output: &ToolOutput) -> bool {
        let failed = output.failed && !output.interrupted;
        let command = call.command.as_deref();
        self.progress.tool_ran(&call.name, command, failed) && !failed
    }
}

impl AgentView {
    /// Notes that the client takes no prompt because its window is full.
    fn prompt_refused(&mut self) {
        self.end_turn(AgentState::Limit);
        self.window_full = true;
    }

    /// Ends a turn that has failed.
    fn turn_failed(&mut self, failure: Failure, message: &str) {
        self.end_turn(if failure == Failure::UsageLimit {
            AgentState::Limit
        } else {
            AgentState::Idle
        });
        self.count_turn();
        self.failed = Some((failure, message.to_owned()));
    }
}

/// Handles what has happened to a turn, if anything has.
pub(in crate::app) fn on(model: &mut Model, event: Option<TurnEvent>) {
    match event {
        None => {}
        Some(TurnEvent::Submitted(prompt)) => {
            submit::on(model, SubmissionEvent::Taken(&prompt));
            let begun = model.session.prompt_hooked();
            let begins = begun.is_some();
            on(model, begun);
            let effects = &mut model.scratch.effects;
            let refused = model.session.await_signs(begins, model.now, effects);
            model.draft.prompt_hooked();
            model.session.agent.prompt_given(&prompt);
            let warmup = model.config.reboot.warmup_prompt.as_deref();
            model.draft.prompted(&prompt, warmup, model.now);
            model.reboot.prompt_seen(&prompt).carry_out(model);
            model.reboot.on(AttemptEvent::WentOn);
            on(model, refused);
        }
        Some(TurnEvent::Prompted) => {
            let is_new = !model.session.is_in_counted_turn();
            let kept = is_new.then(|| keep_turn(&mut model.turns, &model.session, model.now));
            model.emit_all(kept.into_iter().flatten());
            model.session.begin_turn(model.now);
            model.draft.begin_turn();
        }
        Some(TurnEvent::Begun) => model.draft.begin_turn(),
        Some(TurnEvent::ToolFinished((call, output))) => {
            let worked = model.reboot.tool_ran(&call, &output);
            autopilot::on(model, RunInput::ToolFinished(&call, &output, worked));
            let facts = MomentFacts::of(model);
            let done = model.draft.tool_finished(&call, &output, &facts);
            done.carry_out(model);
            if !call.by_subagent {
                reboot::on(model, ReplaceEvent::ToolEnded);
            }
        }
        Some(TurnEvent::Over(stop)) => {
            model.reboot.on(AttemptEvent::WentOn);
            model.emit(Effect::ReadGit);
            if let Some(message) = &stop.message {
                model.draft.take_hooked(message, model.now).carry_out(model);
            }
            let message = model.session.turn_over(stop, &mut model.scratch.effects);
            summary::on(model, SummaryEvent::TurnOver);
            autopilot::on(model, RunInput::TurnEnded(message.as_deref()));
            save_iteration(model);
            checkpoint::save(model, SaveOrder::TurnOver);
            model.emit_all(quiet_timer(model));
            if let Some(goal) = human::due_goal(model) {
                let given = submit::give(model, &goal, Then::Submit);
                model.draft.goal_given(given).carry_out(model);
            }
        }
        // Its hook is late.
        Some(TurnEvent::Failed(..)) if model.session.agent.is_closed() => {}
        Some(TurnEvent::Failed(failure, message)) => {
            model.session.agent.turn_failed(failure, &message);
            let said = format!("the turn failed: {message}");
            model.draft.note_error(&said, hint(failure), model.now);
            model.error(said);
            checkpoint::save(model, SaveOrder::TurnOver);
            if failure == Failure::ContextLimit {
                return on(model, Some(TurnEvent::Refused));
            }
            autopilot::on(model, RunInput::TurnFailed(failure, &message));
        }
        Some(TurnEvent::Refused) => {
            model.session.agent.prompt_refused();
            model.error("context limit reached: the client refuses prompts until a reboot");
            reboot::on(model, RebootEvent::ContextLimit);
        }
        Some(TurnEvent::Unreported) => {
            let is_cut = is_cut_by_us(model);
            let (end, is_shown) = model.session.end_unreported(is_cut, model.now);
            on(model, end);
            model.session.agent.activity.closed |= is_shown;
        }
        // A person has stopped it, or its hook is lost, or late on a busy machine.
        Some(TurnEvent::Silent) => {
            let word = "it ended without a word";
            autopilot::on(model, RunInput::TurnFailed(Failure::Other, word));
        }
    }
}

/// Returns how to go on after a turn that has failed.
const fn hint(failure: Failure) -> &'static str {
    match failure {
        Failure::UsageLimit => "wait until the usage limit is reset, then send the prompt again",
        Failure::RateLimit => "wait until the rate limit allows it, then send the prompt again",
        Failure::Account => "log in or pay, then send the prompt again",
        Failure::ContextLimit => "reboot, or restore this in a fresh session",
        Failure::Service => "wait a moment, then send the prompt again",
        Failure::Conversation => {
            "if it fails again, reboot: a fresh session leaves out what is refused"
        }
        Failure::Other => "see what the agent's screen says, then send the prompt again",
    }
}

/// Returns the timer for when the human has been quiet for long enough, if they are typing.
#[must_use]
pub fn quiet_timer(model: &Model) -> Option<Effect> {
    let quiet = model.config.reboot.typing_quiet + Duration::from_millis(50);
    is_typing(model).then_some(Effect::SetTimer(TimerId::Quiet, quiet))
}
