//! The record of the present iteration, as it is kept.

use crate::{
    autopilot::{Autopilot, End},
    lineage::{Iteration, Lineage, Meta, RunEnd, metrics::TurnFigures},
};
use pitstop_base::clock::{At, milliseconds};

use crate::app::{
    effect::Effect,
    model::{CarryOut, Model, session::Session, turns::RunTurns},
};

/// Keeps the newest iteration's record.
pub fn save_iteration(model: &mut Model) {
    note_figures(&mut model.lineage, &model.session, model.now);
    let last = model.lineage.iterations().last();
    last.map(|last| save_order(model, last)).carry_out(model);
}

/// Returns the order to keep the record of an iteration, with the run's.
pub(in crate::app) fn save_order(model: &Model, iteration: &Iteration) -> Effect {
    Effect::SaveIteration(Box::new(iteration.clone()), Box::new(meta(model)))
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
pub(in crate::app) fn note_figures(lineage: &mut Lineage, session: &Session, now: At) {
    let used = session.used(now);
    if let Some(current) = lineage.current_mut() {
        current.session_id = Some(session.id);
        current.tokens = session.spending.tokens().unwrap_or(current.tokens);
        current.cost_usd = session.spending.cost().or(current.cost_usd);
        current.turns = Some(session.agent.turns);
        current.duration_ms = session.lasted(now).map(milliseconds);
        current.compactions = session.compactions.count();
        current.tokens_at_birth = current.tokens_at_birth.or(used);
        current.tokens_at_end = used.or(current.tokens_at_end);
    }
}

/// Keeps the session's figures, here and in the store: when a turn begins, because the last figures of the one before come
/// after its end, and when the iteration ends.
pub(in crate::app) fn keep_turn(
    turns: &mut RunTurns,
    session: &Session,
    now: At,
) -> Option<Effect> {
    let figure = session.guard.figure(now)?;
    let turn = TurnFigures {
        iteration: session.iteration(),
        at: now.wall,
        used: figure.used,
        usable: figure.usable,
        cost_usd: session.spending.cost(),
    };
    turns.keep(&turn);
    Some(Effect::KeepTurn(turn))
}
