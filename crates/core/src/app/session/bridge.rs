//! The client's own side of the session: whether it reports, and its last report.
//!
//! ```text
//!   start ──▶ offered, or not ──▶ its first report ──▶ in force: figures by push, the draft is read
//!                    └── a while after the session began ──▶ absent, and the session goes on without it
//! ```
//!
//! Its reports are observations: they move figures and order nothing. Reports of another session (a fork, a spare process, one that
//! was left by `/clear`) are not for us.

use std::time::Duration;

use crate::{
    api::wire::{AgentState, AgentTools, BridgeReport},
    guard::Source,
    lineage::IterationId,
};
use pitstop_agent::{
    AgentKind,
    bridge::{
        self, Absence, BridgeOrder, Fact, Link, Outcome, Report, Reported, SILENCE, Said, ToolsBy,
        TurnEnd, Usage,
    },
    claude,
};
use pitstop_base::clock::At;

use crate::app::{
    cold_cache,
    consequences::Consequences,
    effect::Effect,
    event::{BridgeEvent, TimerId},
    model::{
        AgentView, CarryOut, Model,
        orders::{EndedOrder, OrderEnd, Purpose},
        session::Session,
        submission::SubmissionEvent,
    },
    reboot::{
        self, RebootEvent,
        in_place::{self, ReplaceEvent},
        submit,
    },
    session::{
        figures::{self, FigureEvent},
        turn::{self, TurnEvent},
    },
};

/// The time after its start for which a session that has begun may be silent: a busy machine takes ten seconds.
const START_LIMIT: Duration = Duration::from_secs(20);

/// The client's name for the source of a session that begins by a compaction.
const COMPACTED: &str = "compact";

/// The time that the client's side may take to read the prompt box: it is done in milliseconds.
const DRAFT_READ_WITHIN: Duration = Duration::from_secs(5);

/// Returns the reason that the next agent is not started with the bridge, if so.
pub fn absence(model: &Model, runs_mods: bool, user_args: &[String]) -> Option<Absence> {
    if !runs_mods {
        return Some(Absence::OtherAgent);
    }
    if !model.config.agent.bridge {
        return Some(Absence::SwitchedOff);
    }
    if let Some(flag) = claude::blinding_flag(user_args) {
        return Some(Absence::Flag(flag));
    }
    bridge::too_old(model.session.agent.version.as_deref())
}

/// Returns how the next agent is to be given its tools: by the mod, and by a server where there is none to be. A client that was
/// given mods in this run and has not run them will not now.
pub fn tools_by(model: &Model, kind: AgentKind, user_args: &[String]) -> ToolsBy {
    match absence(model, true, user_args) {
        _ if kind != AgentKind::Claude || !model.config.agent.tools => ToolsBy::None,
        None if !model.session.agent.without_mods => ToolsBy::Mod,
        Some(Absence::Flag(claude::SAFE_MODE)) => ToolsBy::None,
        _ => ToolsBy::Server,
    }
}

/// Takes in an event about the bridge.
pub fn received(model: &mut Model, event: BridgeEvent) {
    let (session, effects) = (&mut model.session, &mut model.scratch.effects);
    if let Some(ended) = session.order_ended(&event, effects) {
        match ended.purpose {
            Purpose::FirstDraft => session.agent.bridge.draft_read(ended),
            // If it could not be read, the screen serves.
            Purpose::LastDraft if model.reboot.look_done(ended.id) => {
                session.agent.bridge.draft_read(ended);
            }
            Purpose::Dialog => session.probed(&ended, model.now, effects),
            Purpose::Prompt => submit::on(model, SubmissionEvent::OrderEnded(&ended)),
            Purpose::Replace => {
                let failed = Outcome::Failed(in_place::TURN_RUNS.to_owned());
                if ended.end == OrderEnd::Answered(failed) {
                    session.agent.turn_started();
                }
                reboot::on(model, ReplaceEvent::OrderEnded(&ended));
            }
            Purpose::LastDraft | Purpose::Trigger => {}
        }
    }
    match event {
        BridgeEvent::Offered { iteration, absence } => {
            if iteration != model.session.pane() {
                return;
            }
            let (say, effects) = (model.config.guard.cold_cache, &mut model.scratch.effects);
            model.session.ask_of_prompts(say, effects);
            if absence.is_none() {
                model.emit(Effect::SetTimer(TimerId::Bridge(iteration), START_LIMIT));
            }
            model.session.agent.bridge.link = absence.map_or(Link::Awaited, Link::Absent);
        }
        BridgeEvent::ToolsGiven { iteration, by } => {
            if iteration == model.session.pane() {
                model.session.agent.tools = by;
            }
        }
        BridgeEvent::Said(report) => said(model, *report),
        BridgeEvent::Revoked { id, in_time } => {
            reboot::on(model, ReplaceEvent::Revoked(id, in_time));
        }
        BridgeEvent::Cancelled { .. } => {}
    }
}

fn said(model: &mut Model, report: Report) {
    if let Said::WrongProtocol(found) = report.said {
        let bridge = &mut model.session.agent.bridge;
        if bridge.link.give_up(Absence::OtherProtocol(found)) {
            model.session.agent.go_on_without().carry_out(model);
        }
        return;
    }
    if let Said::Compacting(id, trigger) = &report.said {
        let asked = RebootEvent::CompactionAsked(id, report.session, *trigger);
        reboot::on(model, asked);
    }
    if let Said::Prompting(id, text) = &report.said {
        let is_held = report.session == model.session.id
            && model.outside.quitting().is_none()
            && cold_cache::costly(model).is_some();
        let until = model.now.since_start + model.config.guard.answer_within;
        let until = is_held.then_some(until);
        let epoch = model.next_epoch();
        let (session, effects) = (&mut model.session, &mut model.scratch.effects);
        session.prompt_asked(id.clone(), text, until, epoch, effects);
    }
    // The client's daemon may run a fork with the same mods.
    if report.session != model.session.id || model.session.agent.state == AgentState::Exited {
        tracing::debug!(session = %report.session, "the bridge spoke for another session");
        return;
    }
    if model.session.agent.bridge.reported.session != Some(model.session.id) {
        model.session.agent.bridge.reported = Reported {
            session: Some(model.session.id),
            ..Reported::default()
        };
    }
    let link = &mut model.session.agent.bridge.link;
    if link.note_report(&report.client, model.now) {
        tracing::info!(client = %report.client, "the bridge is in force");
        model.session.agent.without_mods = false;
        model.session.agent.version = Some(report.client);
        let timer = TimerId::Bridge(model.session.pane());
        model.emit(Effect::SetTimer(timer, SILENCE));
        // Changes of the prompt box are reported, not what was in it before.
        let (purpose, order) = (Purpose::FirstDraft, BridgeOrder::ReadDraft);
        model.order(purpose, order, DRAFT_READ_WITHIN);
    }
    match report.said {
        Said::Fact(fact) => {
            let effects = &mut model.scratch.effects;
            match model.session.fact_reported(fact, effects) {
                None => {}
                Some(FactSeen::TurnOver(end, is_aborted)) => {
                    turn::on(model, end);
                    if is_aborted {
                        reboot::on(model, ReplaceEvent::TurnAborted);
                    }
                }
                Some(FactSeen::BoxChanged) => submit::on(model, SubmissionEvent::BoxChanged),
                Some(FactSeen::Used(usage)) => figures::on(model, FigureEvent::Pushed(&usage)),
                Some(FactSeen::Compacted) => reboot::on(model, ReplaceEvent::Compacted),
            }
        }
        // The hello comes again after a failure, in which the end of a turn may have been lost.
        Said::Hello => model.session.agent.bridge.reported.turn = None,
        Said::HandedOut(id) => {
            reboot::on(model, ReplaceEvent::HandedOut(id));
        }
        _ => {}
    }
}

/// What a fact that the client's own side reports shows.
enum FactSeen {
    /// A turn has ended, if any, and was stopped by a person if this is true.
    TurnOver(Option<TurnEvent>, bool),
    /// The prompt box holds something else.
    BoxChanged,
    /// The window is as full as this.
    Used(Usage),
    /// A compaction has begun the session again.
    Compacted,
}

impl Session {
    /// Takes in a fact that the client's own side reports.
    fn fact_reported(&mut self, fact: Fact, effects: &mut Vec<Effect>) -> Option<FactSeen> {
        let reported = &mut self.agent.bridge.reported;
        match fact {
            Fact::SessionStarted { source } => {
                tracing::debug!(source, "the bridge has a session");
                return (source == COMPACTED).then_some(FactSeen::Compacted);
            }
            Fact::TurnStarted { .. } => {
                reported.turn = Some(true);
                self.agent.activity.unseen = None;
                self.agent.turn_started();
            }
            Fact::TurnEnded { reason, .. } => {
                reported.turn = Some(false);
                reported.turns_ended += 1;
                // For other ends a hook reports what they have left going on.
                let is_aborted = reason == TurnEnd::Aborted;
                let end = if is_aborted {
                    self.abort_turn()
                } else {
                    self.take_stop()
                };
                if !is_aborted && end.is_none() {
                    self.look_again(effects);
                }
                return Some(FactSeen::TurnOver(end, is_aborted));
            }
            Fact::PromptSubmitted { origin, .. } => reported.origin = Some(origin),
            Fact::DraftChanged(draft) => {
                self.agent.box_reported(draft);
                return Some(FactSeen::BoxChanged);
            }
            Fact::PromptPutBack(prompt) => effects.push(Effect::TakeBack(self.id, prompt)),
            Fact::Usage(usage) => {
                if usage.used.is_some() {
                    reported.turns_measured = reported.turns_ended;
                }
                if !usage.categories.is_empty() {
                    reported.usage = Some(usage.clone());
                }
                return Some(FactSeen::Used(usage));
            }
        }
        None
    }

    /// Returns the order that ends by this event: answered by the process that took it, in a later session too, or taken back.
    fn order_ended(
        &mut self,
        event: &BridgeEvent,
        effects: &mut Vec<Effect>,
    ) -> Option<EndedOrder> {
        match event {
            BridgeEvent::Said(report) => match &report.said {
                Said::Answered(id, outcome) => self.orders.answered(*id, outcome.clone()),
                _ => None,
            },
            BridgeEvent::Cancelled { id, was_taken } => {
                self.orders.cancelled(*id, *was_taken, effects)
            }
            _ => None,
        }
    }

    /// Checks a bridge that should have reported by now. Returns what follows, and whether it is lost.
    pub(in crate::app) fn look_at_bridge(
        &mut self,
        of: IterationId,
        now: At,
    ) -> (Consequences, bool) {
        let again = |after| Some(Effect::SetTimer(TimerId::Bridge(of), after));
        let is_over = of != self.pane() || self.agent.state == AgentState::Exited;
        let agent = &mut self.agent;
        match &mut agent.bridge.link {
            _ if is_over => {}
            // A dialog at the start, such as the one for trust, comes before everything else.
            Link::Awaited if matches!(agent.state, AgentState::Starting | AgentState::Dialog) => {
                return (again(START_LIMIT).into(), false);
            }
            link @ Link::Awaited => {
                let too_old = bridge::too_old(agent.version.as_deref());
                if link.give_up(too_old.unwrap_or(Absence::NoHello)) {
                    return (agent.go_on_without(), false);
                }
            }
            link @ Link::InForce { .. } => {
                if !link.check_silence(now) {
                    return (again(SILENCE).into(), false);
                }
                self.guard.forget(Source::Bridge);
                return (agent.go_on_without(), true);
            }
            Link::None | Link::Absent(_) => {}
        }
        (Consequences::default(), false)
    }
}

impl AgentView {
    /// Goes on without the bridge.
    fn go_on_without(&mut self) -> Consequences {
        let mut follows = Consequences::default();
        if let Link::Absent(why) = &self.bridge.link {
            self.without_mods = matches!(why, Absence::NoHello | Absence::OtherProtocol(_));
            follows.info(format!("without the bridge: {why}"));
        }
        follows
    }
}

/// Returns how the agent reaches the tools.
pub fn tools(model: &Model) -> AgentTools {
    match (model.session.agent.tools, &model.session.agent.bridge.link) {
        (ToolsBy::Mod, Link::InForce { .. }) => AgentTools::Mod,
        (ToolsBy::Mod, Link::None | Link::Awaited) => AgentTools::Awaited,
        (ToolsBy::Server, _) => AgentTools::Mcp,
        (ToolsBy::Mod, Link::Absent(_)) | (ToolsBy::None, _) => AgentTools::None,
    }
}

/// Returns the bridge's state, for scripts.
pub fn report(model: &Model) -> BridgeReport {
    let bridge = &model.session.agent.bridge;
    let why = match &bridge.link {
        Link::Absent(why) => Some(why),
        _ => None,
    };
    let stands = BridgeReport {
        state: bridge.link.word().to_owned(),
        why: why.map(|why| why.word().to_owned()),
        reason: why.map(ToString::to_string),
        ..BridgeReport::default()
    };
    let (Some(reported), Link::InForce { reported: at, .. }) =
        (bridge.of(model.session.id), &bridge.link)
    else {
        return stands;
    };
    let age = model.now.since(*at).as_millis();
    let usage = reported.usage.as_ref();
    BridgeReport {
        reason: model.session.agent.unanswered.clone(),
        age_ms: Some(u64::try_from(age).unwrap_or(u64::MAX)),
        turn_runs: reported.turn,
        prompt_origin: reported.origin.clone(),
        draft_characters: reported
            .draft
            .as_ref()
            .map(|draft| draft.text.chars().count() as u64),
        base_tokens: reported.base_tokens().map(|base| base.0),
        categories: usage.map_or_else(Vec::new, |usage| usage.categories.clone()),
        ..stands
    }
}
