//! What the run reads of the rest of the model: the values are computed once for each input, and the run changes nothing but itself.

use std::time::Duration;

use chrono::{DateTime, Utc};

use crate::{
    api::wire::AgentState,
    app::{
        facts::{
            Block, agent_reason, blocked_by, is_quiet, is_typing, is_under_review, spent,
            typing_refusal, unsent,
        },
        model::{Model, event_scratch::NoReboot, run::Judged, unsent::Unsent},
    },
    autopilot::{Spent, Thrash, Trip},
    config::RebootMode,
    guard::{Figure, Level, Source, threshold::Threshold},
    lineage::{IterationId, journal::Step},
};
use pitstop_agent::Background;
use pitstop_base::clock::At;
use pitstop_transcript::Tokens;

/// The time that a wake-up of the client is waited for: it sets one at most an hour ahead.
const WAKE_UP: Duration = Duration::from_secs(65 * 60);

/// What is true outside the run at one moment.
#[derive(Debug)]
pub(super) struct RunFacts {
    /// The moment of the event.
    pub(super) now: At,
    /// True if the supervisor is being ended.
    pub(super) quits: bool,
    /// The project's directory, if that is gone.
    pub(super) gone: Option<String>,
    /// The action by which a person has taken the agent over.
    pub(super) taken_over: Option<&'static str>,
    /// The trip of a run in which a reboot that was due did not begin.
    pub(super) not_rebooted: Option<Trip>,
    /// What the run has spent.
    pub(super) spent: Spent,
    /// The numbers of items of the plan that are done and open.
    pub(super) done: usize,
    pub(super) open: usize,
    /// The present iteration.
    pub(super) iteration: IterationId,
    /// True if the handoff that the present session began with was empty or was not seen to arrive; `None` if it began with none.
    pub(super) untold: Option<bool>,
    /// The reboot under way.
    pub(super) reboot: Option<RebootFacts>,
    pub(super) context: ContextFacts,
    pub(super) agent: AgentFacts,
    pub(super) prompt_box: PromptBoxFacts,
}

/// What is known of the reboot under way.
#[derive(Debug)]
pub(super) struct RebootFacts {
    /// True if its proof is late.
    pub(super) is_overdue: bool,
    /// True if nothing but background work keeps it waiting.
    pub(super) awaits_background: bool,
}

/// What is known of the context window.
#[derive(Debug)]
pub(super) struct ContextFacts {
    /// The figure that counts.
    pub(super) figure: Option<Figure>,
    /// The figures of the session's turns.
    pub(super) known: Judged,
    /// True if a reboot is due that was not put off.
    pub(super) is_full: bool,
}

/// What is known of the agent.
#[derive(Debug)]
pub(super) struct AgentFacts {
    pub(super) state: AgentState,
    /// What it waits for, in words.
    pub(super) reason: Option<String>,
    /// How its process has ended.
    pub(super) exit: Option<String>,
    /// The time at which the usage limit is reset.
    pub(super) limit_reset: Option<DateTime<Utc>>,
    /// The number of turns that the session has had.
    pub(super) turns: u32,
    /// The work that it goes on with after its turn.
    pub(super) background: Background,
    /// The longest time that the run waits for that.
    pub(super) background_wait: Duration,
    /// True if a person who may answer from afar was called to its dialog.
    pub(super) asks_from_afar: bool,
    /// True if a turn is at work that no next session has to follow yet.
    pub(super) is_at_work: bool,
}

/// What is known of the agent's prompt box.
#[derive(Debug)]
pub(super) struct PromptBoxFacts {
    /// What keeps a text from being typed into it.
    pub(super) refusal: Option<&'static str>,
    /// True if it holds something.
    pub(super) has_draft: bool,
    /// True if it holds a text that can be read.
    pub(super) has_text: bool,
    /// The time that a person must have been quiet for, while they type.
    pub(super) typing: Option<Duration>,
    /// True at a safe moment for a text.
    pub(super) is_safe: bool,
}

impl RunFacts {
    /// Reads the facts off the model.
    pub(super) fn of(model: &Model) -> Self {
        let blocks = blocked_by(model);
        let plan = &model.draft.preserved;
        let record = model.lineage.current();
        let record = record.and_then(|one| one.reboot.as_ref());
        let context = ContextFacts::of(model);
        Self {
            now: model.now,
            quits: model.outside.quitting().is_some(),
            gone: model
                .outside
                .project_gone
                .then(|| model.identity.project.clone()),
            taken_over: model.scratch.taken_over,
            not_rebooted: (model.scratch.no_reboot.clone()).map(|why| trip_of(model, why)),
            spent: spent(model),
            done: plan.completed_items.len(),
            open: plan.pending_items.len(),
            iteration: model.session.iteration(),
            untold: record.map(|record| record.handoff_bytes == 0 || !record.verified),
            reboot: RebootFacts::of(model, &blocks),
            agent: AgentFacts::of(model, context.is_full),
            prompt_box: PromptBoxFacts::of(model, &blocks),
            context,
        }
    }
}

/// Returns the trip of a run in which reboots do not help, as the reboot's own breaker found, with its cause.
fn trip_of(model: &Model, why: NoReboot) -> Trip {
    let why = match why {
        NoReboot::Breaker(why) => why,
        NoReboot::Refused(why) => return Trip::Refused { why },
    };
    // The next session may have begun, and have no figure yet: the line is that of its window.
    let lines = model.session.guard.assess(Tokens(0)).lines;
    let line = lines.at(Threshold::Compact);
    let forecast = model.session.guard.forecast();
    let turns: Vec<_> = forecast.turns().map(|turn| turn.used.0).collect();
    let growth = turns.iter().zip(turns.iter().skip(1));
    let growth = growth.map(|(before, after)| after.saturating_sub(*before));
    let record = model.current_iteration();
    let record = record.and_then(|one| one.reboot.as_ref());
    let handoff = record.map(|record| record.handoff_tokens);
    let cause = Thrash::of(forecast.base(), handoff, growth.max().map(Tokens), line);
    Trip::Thrash { why, cause }
}

impl RebootFacts {
    fn of(model: &Model, blocks: &[Block]) -> Option<Self> {
        let attempt = model.reboot.attempt.as_ref()?;
        // The time before `auto` has announced it counts, and the time after its approval.
        let announces = is_under_review(model) && model.reboot.mode == RebootMode::Auto;
        let waits = announces || matches!(attempt.step(), Step::Armed | Step::Waiting);
        Some(Self {
            is_overdue: attempt.is_overdue(),
            awaits_background: waits && blocks == [Block::Background],
        })
    }
}

impl ContextFacts {
    fn of(model: &Model) -> Self {
        let figure = model.session.guard.figure(model.now);
        let agent = &model.session.agent;
        Self {
            known: Judged {
                used: figure.as_ref().map(|figure| figure.used),
                turns: agent.bridge.reported.turns_measured,
            },
            is_full: is_full(model, figure.as_ref()),
            figure,
        }
    }
}

/// Reports whether a reboot is due that was not put off.
fn is_full(model: &Model, figure: Option<&Figure>) -> bool {
    let full = figure
        .is_some_and(|figure| figure.level >= Level::Overflow && figure.source != Source::Estimate);
    let refused = model.session.agent.state == AgentState::Limit;
    full && (refused || !is_quiet(model))
}

impl AgentFacts {
    fn of(model: &Model, is_full: bool) -> Self {
        let agent = &model.session.agent;
        let most = model.config.autopilot.background_wait;
        let wakes = agent.background.has_wake_up();
        Self {
            state: agent.state,
            reason: agent_reason(model),
            exit: agent.exit.clone(),
            limit_reset: agent.limit_reset,
            turns: agent.turns,
            background: agent.background.clone(),
            background_wait: if wakes { most.max(WAKE_UP) } else { most },
            asks_from_afar: model.session.held_permission.is_some(),
            is_at_work: agent.state == AgentState::Busy && !(is_full && model.scratch.at_seam),
        }
    }
}

impl PromptBoxFacts {
    fn of(model: &Model, blocks: &[Block]) -> Self {
        let quiet = model.config.reboot.typing_quiet;
        let refusal = typing_refusal(model);
        let idle = model.session.agent.state == AgentState::Idle;
        Self {
            refusal,
            has_draft: model.session.agent.has_draft(),
            has_text: matches!(unsent(model), Unsent::Text(_)),
            typing: is_typing(model).then_some(quiet),
            is_safe: idle && blocks.is_empty() && refusal.is_none(),
        }
    }
}
