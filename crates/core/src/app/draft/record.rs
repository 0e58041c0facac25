//! The record of the present iteration, as it is kept.

use crate::{
    autopilot::{Autopilot, End},
    lineage::{Meta, RunEnd, TokenTotals, metrics::TurnFigures},
};

use crate::app::{effect::Effect, model::Model};

/// Keeps the newest iteration's record.
pub fn save_iteration(model: &mut Model) {
    note_figures(model);
    let meta = meta(model);
    if let Some(last) = model.lineage.iterations().last().cloned() {
        model.emit(Effect::SaveIteration(Box::new(last), Box::new(meta)));
    }
}

/// Adds to the iteration before tokens that were read when it was over.
pub fn add_late_tokens(model: &mut Model, late: TokenTotals) {
    if let Some(before) = model.lineage.add_late_tokens(late) {
        let before = Box::new(before.clone());
        let meta = Box::new(meta(model));
        model.emit(Effect::SaveIteration(before, meta));
    }
}

/// Returns the run's record. It has an end once its last iteration has: the version that is written last is complete.
fn meta(model: &Model) -> Meta {
    let run = model.autopilot.as_ref().map(|run| &run.pilot);
    let is_closed = model.lineage.current().is_none();
    let end = model.outside.quitting().filter(|_| is_closed);
    let end = end.map(|quitting| {
        let end = run.and_then(Autopilot::end).unwrap_or_else(|| RunEnd {
            reason: quitting.reason,
            exit_code: Some(quitting.code),
            evidence: End::Stopped {
                code: quitting.code,
            }
            .to_string(),
        });
        (model.now.wall, end)
    });
    let task = run.map(|run| run.plan.task.as_str());
    model.lineage.meta(task, end)
}

/// Copies the figures of the moment into the open record.
pub(in crate::app) fn note_figures(model: &mut Model) {
    let used = model.used();
    let (session, spending) = (model.session.id, &model.session.spending);
    let compactions = model.session.compactions.count();
    let turns = model.session.agent.turns;
    if let Some(current) = model.lineage.current_mut() {
        current.session_id = Some(session);
        current.tokens = spending.tokens().unwrap_or(current.tokens);
        current.cost_usd = spending.cost().or(current.cost_usd);
        current.turns = Some(turns);
        current.compactions = compactions;
        current.tokens_at_birth = current.tokens_at_birth.or(used);
        current.tokens_at_end = used.or(current.tokens_at_end);
    }
}

/// Keeps the session's figures, here and in the store: when a turn begins, because the last figures of the one before come
/// after its end, and when the iteration ends.
pub(in crate::app) fn keep_turn(model: &mut Model) {
    let Some(figure) = model.session.guard.figure(model.now) else {
        return;
    };
    let turn = TurnFigures {
        iteration: model.session.iteration(),
        at: model.now.wall,
        used: figure.used,
        usable: figure.usable,
        cost_usd: model.session.spending.cost(),
    };
    model.turns.keep(&turn);
    model.emit(Effect::KeepTurn(turn));
}
