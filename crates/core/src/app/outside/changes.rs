//! The changes between two looks at the model, as `GET /events` reports them.

use serde_json::json;

use crate::{
    api::wire::{AgentState, ApiEvent, ApiEventKind, NeedKind, NeedReport},
    config::RebootMode,
    lineage::{Cause, IterationId, journal::Step},
};
use pitstop_base::clock::At;
use pitstop_transcript::{SessionId, Tokens};

use crate::app::{
    effect::Effect,
    model::{Model, needs::Need},
    outside::report,
};

/// A snapshot of the part of the model that makes events.
#[derive(Clone, Debug, PartialEq)]
pub struct ModelSnapshot {
    session: SessionId,
    iteration: IterationId,
    state: AgentState,
    mode: (RebootMode, bool),
    used: Option<(Tokens, Tokens)>,
    level: Option<&'static str>,
    reboot: Option<(Step, Cause)>,
    /// Each need by its number, kind and reason, and whether it can be answered from afar.
    needs: Vec<(u64, NeedKind, u64, bool)>,
    notice: Option<(At, usize)>,
}

impl ModelSnapshot {
    /// Returns a snapshot of the model.
    pub fn of(model: &Model) -> Self {
        let figure = model.session.guard.figure(model.now);
        let figure = figure.as_ref();
        let attempt = model.reboot.attempt.as_ref();
        let needs = model.outside.needs().iter();
        let newest = model.view.notices.back();
        Self {
            session: model.session.id,
            iteration: model.session.iteration(),
            state: model.session.agent.state,
            mode: (model.reboot.mode, model.reboot.paused),
            used: figure.map(|one| (one.used, one.usable)),
            level: figure.map(|one| one.level.word()),
            reboot: attempt.map(|one| (one.step(), one.cause)),
            needs: needs
                .map(|one| (one.id, one.kind, one.reason, one.answerable))
                .collect(),
            notice: newest.map(|one| (one.at, one.text.len())),
        }
    }

    /// Returns the events for what is new in the model since this snapshot, and in the effects that go with it.
    #[must_use]
    pub fn events(&self, model: &Model, effects: &[Effect]) -> Vec<ApiEvent> {
        let now = Self::of(model);
        let mut events = Vec::new();
        let mut add = |kind, data| events.push(ApiEvent { kind, data });
        let status = || report::status(model);
        if (self.session, self.iteration) != (now.session, now.iteration) {
            add(
                ApiEventKind::Session,
                json!({"session_id": now.session, "iteration": now.iteration.get()}),
            );
        }
        if self.state != now.state {
            add(ApiEventKind::Agent, json!({"state": now.state}));
        }
        if self.mode != now.mode {
            let (mode, paused) = (now.mode.0.name(), now.mode.1);
            add(ApiEventKind::Mode, json!({"mode": mode, "paused": paused}));
        }
        if self.used != now.used {
            add(ApiEventKind::Context, json!(status().context));
        }
        if self.level != now.level {
            add(
                ApiEventKind::Level,
                json!({"level": now.level, "before": self.level}),
            );
        }
        if self.reboot != now.reboot {
            add(ApiEventKind::Reboot, json!(status().reboot));
        }
        if self.needs != now.needs {
            let needs = model.outside.needs().iter().map(Need::report);
            let needs: Vec<NeedReport> = needs.collect();
            add(ApiEventKind::Needs, json!({ "needs": needs }));
        }
        if self.notice != now.notice
            && let Some(notice) = model.view.notices.back()
        {
            add(
                ApiEventKind::Notice,
                json!({"text": notice.text, "bad": notice.bad}),
            );
        }
        for effect in effects {
            if let Effect::SaveCheckpoint(one) = effect {
                add(
                    ApiEventKind::Checkpoint,
                    json!({"id": one.id, "environment": one.environment, "tags": one.tags}),
                );
            }
        }
        events
    }
}
