//! The client's own side of the session: whether it reports, and what it said last.
//!
//! ```text
//!   start ──▶ offered, or why not ──▶ its first word ──▶ in force: figures by push, the draft is read
//!                    └── a while after the session began ──▶ absent, and the session goes on without it
//! ```
//!
//! What it says is an observation: it moves figures and orders nothing. Words of another session (a fork, a spare process, one
//! that was left by `/clear`) are not for us.

use std::time::Duration;

use crate::{
    agent::{AgentKind, claude},
    api::wire::{AgentState, BridgeReport},
    bridge::{
        Absence, FIRST_VERSION, Fact, Heard, Link, Order, OrderId, Outcome, Report, SILENCE, Said,
    },
    guard::Source,
};

use crate::app::{
    effect::Effect,
    event::{BridgeEvent, TimerId},
    model::Model,
    session::figures,
};

/// How long after the start a session that has begun may be silent: a busy machine takes ten seconds.
const START_LIMIT: Duration = Duration::from_secs(20);

/// Why the next agent is not started with the bridge, if so.
#[must_use]
pub fn absence(model: &Model, kind: AgentKind, user_args: &[String]) -> Option<Absence> {
    if kind != AgentKind::Claude {
        return Some(Absence::OtherAgent);
    }
    if !model.config.agent.bridge {
        return Some(Absence::SwitchedOff);
    }
    if let Some(flag) = claude::blinding_flag(user_args) {
        return Some(Absence::Flag(flag));
    }
    too_old(model)
}

/// A version that is not known may be new enough: an old client passes the flag over (measured with 2.1.197).
fn too_old(model: &Model) -> Option<Absence> {
    let version = model.session.agent.version.as_deref();
    let is_known_old = !claude::is_at_least(version, FIRST_VERSION);
    is_known_old.then(|| Absence::TooOld(version.unwrap_or_default().to_owned()))
}

/// What is known of it has changed.
pub fn heard(model: &mut Model, event: BridgeEvent) -> Vec<Effect> {
    match event {
        BridgeEvent::Offered { iteration, absence } => {
            if iteration != model.session.iteration {
                return Vec::new();
            }
            let offered = absence.is_none();
            model.session.agent.bridge.link = absence.map_or(Link::Awaited, Link::Absent);
            let timer = Effect::SetTimer(TimerId::Bridge(iteration), START_LIMIT);
            offered.then_some(timer).into_iter().collect()
        }
        BridgeEvent::Said(report) => said(model, *report),
    }
}

fn said(model: &mut Model, report: Report) -> Vec<Effect> {
    if let Said::WrongProtocol(found) = report.said {
        let bridge = &mut model.session.agent.bridge;
        if bridge.link.give_up(Absence::OtherProtocol(found)) {
            goes_on_without(model);
        }
        return Vec::new();
    }
    // The client's daemon may run a fork with the same mods.
    if report.session != model.session.id || model.session.agent.state == AgentState::Exited {
        tracing::debug!(session = %report.session, "the bridge spoke for another session");
        return Vec::new();
    }
    let mut effects = Vec::new();
    if model.session.agent.bridge.heard.session != Some(model.session.id) {
        model.session.agent.bridge.heard = Heard {
            session: Some(model.session.id),
            ..Heard::default()
        };
    }
    let came = model
        .session
        .agent
        .bridge
        .link
        .heard(&report.client, model.now);
    if came {
        tracing::info!(client = %report.client, "the bridge is in force");
        model.session.agent.version = Some(report.client);
        effects.push(Effect::SetTimer(
            TimerId::Bridge(model.session.iteration),
            SILENCE,
        ));
        effects.push(read_draft(model));
    }
    effects.extend(match report.said {
        Said::Fact(fact) => happened(model, fact),
        Said::Answered(id, outcome) => answered(model, id, outcome),
        Said::Hello | Said::Polled | Said::WrongProtocol(_) => Vec::new(),
    });
    effects
}

fn happened(model: &mut Model, fact: Fact) -> Vec<Effect> {
    let heard = &mut model.session.agent.bridge.heard;
    match fact {
        Fact::SessionStarted { source } => tracing::debug!(source, "the bridge has a session"),
        Fact::TurnStarted { .. } => heard.turn = Some(true),
        Fact::TurnEnded { .. } => heard.turn = Some(false),
        Fact::PromptSubmitted { origin, .. } => heard.origin = Some(origin),
        Fact::DraftChanged(draft) => heard.draft = Some(draft),
        Fact::Usage(usage) => {
            if !usage.categories.is_empty() {
                heard.usage = Some(usage.clone());
            }
            return figures::usage_pushed(model, &usage);
        }
    }
    Vec::new()
}

/// Has the prompt box read: its changes are reported, not what stood in it before.
fn read_draft(model: &mut Model) -> Effect {
    let bridge = &mut model.session.agent.bridge;
    bridge.orders += 1;
    // No order of another iteration has this number: an iteration gives far fewer.
    let id = OrderId((model.session.iteration.get() << 20) + bridge.orders);
    bridge.reading = Some(id);
    Effect::OrderBridge {
        id,
        session: model.session.id,
        order: Order::ReadDraft,
    }
}

fn answered(model: &mut Model, id: OrderId, outcome: Outcome) -> Vec<Effect> {
    let bridge = &mut model.session.agent.bridge;
    if bridge.reading != Some(id) {
        return Vec::new();
    }
    bridge.reading = None;
    match outcome {
        Outcome::Draft(draft) => bridge.heard.draft = Some(draft),
        other => tracing::warn!(?other, "the bridge could not read the prompt box"),
    }
    Vec::new()
}

/// It should have spoken by now.
pub fn look(model: &mut Model, of: crate::lineage::IterationId) -> Vec<Effect> {
    if of != model.session.iteration || model.session.agent.state == AgentState::Exited {
        return Vec::new();
    }
    let again = |after| vec![Effect::SetTimer(TimerId::Bridge(of), after)];
    match model.session.agent.bridge.link {
        // A dialog at the start, such as the one for trust, comes before everything else.
        Link::Awaited if model.session.agent.state == AgentState::Starting => again(START_LIMIT),
        Link::Awaited => {
            let why = too_old(model).unwrap_or(Absence::NoHello);
            if model.session.agent.bridge.link.give_up(why) {
                goes_on_without(model);
            }
            Vec::new()
        }
        Link::InForce { .. } => {
            if !model.session.agent.bridge.link.look(model.now) {
                return again(SILENCE);
            }
            model.session.guard.forget(Source::Bridge);
            goes_on_without(model);
            Vec::new()
        }
        Link::None | Link::Absent(_) => Vec::new(),
    }
}

fn goes_on_without(model: &mut Model) {
    if let Link::Absent(why) = &model.session.agent.bridge.link {
        let text = format!("without the bridge: {why}");
        model.info(text);
    }
}

/// How it stands, for scripts.
#[must_use]
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
    let (Some(heard), Link::InForce { heard: at, .. }) =
        (bridge.of(model.session.id), &bridge.link)
    else {
        return stands;
    };
    let age = model.now.since(*at).as_millis();
    let usage = heard.usage.as_ref();
    BridgeReport {
        age_ms: Some(u64::try_from(age).unwrap_or(u64::MAX)),
        turn_runs: heard.turn,
        prompt_origin: heard.origin.clone(),
        draft_characters: heard
            .draft
            .as_ref()
            .map(|draft| draft.text.chars().count() as u64),
        base_tokens: heard.base().map(|base| base.0),
        categories: usage.map_or_else(Vec::new, |usage| usage.categories.clone()),
        ..stands
    }
}
