//! The session that the agent is in: the agent itself, its context, and what it says of itself.

use crate::{
    app::event::TranscriptFacts,
    clock::At,
    guard::{Guard, GuardSettings},
    lineage::IterationId,
    transcript::SessionId,
};

use super::{
    agent::AgentView, client_limits::ClientLimits, compactions::Compactions, costs::TurnCosts,
    orders::Orders, spending::Spending, submission::Submission,
};

/// The session that the agent is in.
#[derive(Debug)]
pub struct Session {
    /// The number of the present iteration.
    pub iteration: IterationId,
    /// The iteration that the process in the pane was started for. It is an earlier one where the conversation was replaced
    /// inside the running client since.
    pub pane: IterationId,
    /// The session that the agent is in.
    pub id: SessionId,
    /// The agent.
    pub agent: AgentView,
    /// The orders for the client's own side.
    pub orders: Orders,
    /// Context usage.
    pub guard: Guard,
    /// Where the client itself acts.
    pub client: ClientLimits,
    /// What the last turns have cost.
    pub costs: TurnCosts,
    /// What the present iteration has cost and used.
    pub spending: Spending,
    /// Compactions of the client's own in this iteration.
    pub compactions: Compactions,
    /// What the transcript says.
    pub transcript: TranscriptFacts,
    /// Whether the transcript was there and cannot be read any more.
    pub transcript_lost: bool,
    /// The pane's title, as the agent set it.
    pub title: String,
    /// When the agent last called for a person, as far as that was passed on.
    pub called_at: Option<At>,
    /// What we typed last to be submitted, and when that began.
    pub submitted: Option<(String, At)>,
    /// The prompt that is being typed on request, until it is taken.
    pub submission: Option<Submission>,
    /// The epoch of the timer that waits for a calm title to stay.
    pub calm_epoch: u64,
}

impl Session {
    /// A session whose agent has not been started yet.
    pub(super) fn new(id: SessionId, iteration: IterationId) -> Self {
        Self {
            iteration,
            pane: iteration,
            id,
            agent: AgentView::default(),
            orders: Orders::default(),
            guard: Guard::new(GuardSettings::default()),
            client: ClientLimits::default(),
            costs: TurnCosts::default(),
            spending: Spending::default(),
            compactions: Compactions::default(),
            transcript: TranscriptFacts::default(),
            transcript_lost: false,
            title: String::new(),
            called_at: None,
            submitted: None,
            submission: None,
            calm_epoch: 0,
        }
    }
}
