//! The session that the agent is in: the agent itself, its context, and its reports on itself.

use std::time::Duration;

use crate::{
    api::wire::AgentState,
    app::event::{CallId, TranscriptFacts},
    guard::{Guard, Source},
    lineage::IterationId,
};
use pitstop_agent::{StartSource, bridge::QuestionId};
use pitstop_base::clock::At;
use pitstop_transcript::{SessionId, Tokens};

use super::{
    agent::AgentView,
    client_limits::ClientLimits,
    compactions::Compactions,
    costs::TurnCosts,
    orders::Orders,
    spending::Spending,
    submission::{PromptFacts, Submission},
};

/// The session that the agent is in.
#[derive(Debug, Default)]
pub struct Session {
    iteration: IterationId,
    pane: IterationId,
    /// The session that the agent is in.
    pub id: SessionId,
    /// The time at which the present iteration began.
    began: Option<At>,
    /// The agent.
    pub agent: AgentView,
    /// The orders for the client's own side.
    pub orders: Orders,
    /// The context usage.
    pub guard: Guard,
    /// The limits at which the client itself acts.
    pub client: ClientLimits,
    /// The costs of the last turns.
    pub costs: TurnCosts,
    /// The cost and the tokens of the present iteration.
    pub spending: Spending,
    /// The client's own compactions in this iteration.
    pub compactions: Compactions,
    /// The facts from the transcript.
    pub transcript: TranscriptFacts,
    transcript_lost: bool,
    /// The pane's title, as the agent set it.
    pub title: String,
    /// The time at which the agent last called for a person and the call was passed on.
    pub called_at: Option<At>,
    /// The hook of a permission that waits for a person's answer from afar.
    pub held_permission: Option<CallId>,
    /// True if the client's own side is to ask about each prompt before it is sent.
    pub asks_of_prompts: bool,
    /// The prompt that waits for a person to decide whether it is sent.
    pub held_prompt: Option<HeldPrompt>,
    /// The prompt of the supervisor's own that is on its way to the agent.
    pub submission: Submission,
    /// The epoch of the timer that waits for a calm title to stay.
    pub calm_epoch: u64,
    /// True if the agent is a program without known hooks, prompt box or transcript.
    pub is_generic: bool,
}

/// A prompt that a person has submitted, and that waits for a decision.
#[derive(Clone, Debug)]
pub struct HeldPrompt {
    /// The client's question.
    pub id: QuestionId,
    /// The text of the prompt.
    pub text: String,
    /// The time since the start at which it is sent without a decision.
    pub until: Duration,
    /// The epoch of its timer.
    pub epoch: u64,
}

impl Session {
    /// Creates a session whose agent has not been started yet.
    pub(super) fn new(id: SessionId, iteration: IterationId, is_generic: bool) -> Self {
        Self {
            iteration,
            pane: iteration,
            id,
            is_generic,
            ..Self::default()
        }
    }

    /// Returns the number of the present iteration.
    pub const fn iteration(&self) -> IterationId {
        self.iteration
    }

    /// Returns the iteration that the process in the pane was started for. It is an earlier one where the conversation was replaced
    /// inside the running client since.
    pub const fn pane(&self) -> IterationId {
        self.pane
    }

    /// Reports whether the transcript was there and can no longer be read.
    pub const fn is_transcript_lost(&self) -> bool {
        self.transcript_lost
    }

    /// Reports whether the transcript has been read to its end and can still be read: it shows all calls soon.
    pub(in crate::app) const fn is_transcript_followed(&self) -> bool {
        self.transcript.whole && !self.transcript_lost
    }

    /// Reports whether a call of the main turn has no result yet. Hooks report a call when it begins: of calls of one step that run
    /// one after the other, only the transcript knows beforehand.
    pub(in crate::app) fn is_in_call(&self) -> bool {
        let by_transcript = !self.transcript_lost && self.transcript.calls_open > 0;
        by_transcript || !self.agent.activity.calls.is_empty()
    }

    /// Reports whether a turn runs and all calls of its main part have results.
    pub(in crate::app) fn is_between_calls(&self) -> bool {
        self.agent.state == AgentState::Busy && !self.is_in_call()
    }

    /// Reports whether no hook has come in this iteration.
    pub const fn is_hookless(&self) -> bool {
        !self.agent.hooked && !self.is_generic
    }

    /// Returns the length of the iteration by now; `None` before the first one has begun.
    pub(in crate::app) fn lasted(&self, now: At) -> Option<Duration> {
        Some(now.whole_time_since(self.began?))
    }

    /// Returns the number of tokens in use, by the best source.
    pub fn used(&self, now: At) -> Option<Tokens> {
        self.guard.figure(now).map(|figure| figure.used)
    }

    /// Notes whether the agent works now: the growth per minute is that of its work, not of the time that passes.
    pub(in crate::app) fn note_work(&mut self, now: At) {
        self.guard
            .note_work(now, self.agent.state == AgentState::Busy);
    }

    /// Takes over the cost of the session so far, in US dollars, as the client reports it.
    pub(in crate::app) fn cost_reported(&mut self, total: f64) {
        self.costs.observe(total);
        self.spending.observe_cost(self.id, total);
    }

    /// Takes in what was read of the transcript; returns the facts before.
    pub(in crate::app) fn transcript_read(&mut self, facts: TranscriptFacts) -> TranscriptFacts {
        self.transcript_lost = false;
        std::mem::replace(&mut self.transcript, facts)
    }

    /// Notes that the transcript can no longer be read.
    pub(in crate::app) fn transcript_lost(&mut self, why: &str) {
        tracing::warn!(session = %self.id, why, "the transcript cannot be followed");
        self.transcript_lost = true;
        self.guard.forget(Source::Transcript);
    }

    /// Begins the next iteration with a new process in this session: of the agent, what goes for each process of the run is kept.
    pub(in crate::app) fn begin_iteration(
        &mut self,
        iteration: IterationId,
        id: SessionId,
        holds_compaction: bool,
        now: At,
    ) {
        let is_resumed = self.id == id;
        (self.iteration, self.pane, self.id) = (iteration, iteration, id);
        self.began = Some(now);
        let before = std::mem::take(&mut self.agent);
        self.agent.version = before.version;
        self.agent.chosen_model = before.chosen_model;
        self.agent.without_mods = before.without_mods;
        self.agent.holds_compaction = holds_compaction;
        if is_resumed {
            self.agent.activity.elsewhere =
                before.activity.elsewhere.resumed(self.transcript.turns);
        }
        self.guard.start_iteration();
        self.compactions = Compactions::default();
        self.spending.begin_iteration();
        self.title.clear();
        self.leave_transcript();
    }

    /// Begins the next iteration where the conversation was replaced inside the running client: process, pane and what is known of
    /// them go on, and so does the transcript.
    pub(in crate::app) fn begin_in_place(&mut self, iteration: IterationId, now: At) {
        (self.iteration, self.began) = (iteration, Some(now));
        let transcript = &mut self.transcript;
        let boundaries = transcript.whole.then_some(transcript.compactions);
        self.compactions = Compactions::behind_our_own(boundaries);
        transcript.used = None;
        self.guard.start_replaced();
        if let Some(model_id) = &self.agent.model_id {
            self.guard.set_model_hint(model_id);
        }
        self.costs = TurnCosts::default();
        self.spending.begin_iteration();
        let agent = &mut self.agent;
        agent.turns = 0;
        agent.last_message = None;
        agent.prompt_cache = None;
        agent.bridge.reported.usage = None;
        agent.activity.elsewhere.replaced();
    }

    /// Goes over to another session inside the running client.
    pub(in crate::app) fn change(&mut self, id: SessionId, source: &StartSource) {
        self.id = id;
        let daemon = &mut self.agent.daemon;
        if !daemon.sessions.is_empty() {
            daemon.add(id);
        }
        self.agent.last_message = None;
        self.agent.window_emptied();
        self.leave_transcript();
        if *source == StartSource::Clear {
            self.spending.begin_transcript(id);
            self.agent.activity.elsewhere.turns_before = 0;
        }
        self.guard.start_iteration();
        self.compactions.change_session();
    }

    /// Forgets what was read of the session before.
    fn leave_transcript(&mut self) {
        self.costs = TurnCosts::default();
        self.spending.leave_session();
        self.agent.prompt_cache = None;
        self.transcript = TranscriptFacts::default();
        self.transcript_lost = false;
    }

    /// Returns the prompt on its way, with the facts that decide about it.
    pub(in crate::app) const fn prompt(
        &mut self,
        generic: bool,
        now: At,
    ) -> (&mut Submission, PromptFacts<'_>) {
        let facts = PromptFacts {
            agent: &self.agent,
            session: self.id,
            generic,
            now,
        };
        (&mut self.submission, facts)
    }
}
