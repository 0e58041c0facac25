//! An iteration begins and ends.

use crate::lineage::{Cause, EndReason, IterationId};

use crate::transcript::SessionId;

use crate::app::{
    draft::{
        record::{keep_turn, note_figures, save_iteration},
        scratchpad, summary,
    },
    effect::{Effect, StartAgent},
    event::TranscriptFacts,
    model::{AgentView, Model, compactions::Compactions, costs::TurnCosts, summaries::Summaries},
};

/// Starts the very first agent.
pub fn begin(
    model: &mut Model,
    resume: bool,
    cause: Option<Cause>,
    prompt: Option<String>,
) -> Vec<Effect> {
    let session = model.session;
    let parent = model.lineage.iterations().last().map(|last| last.iteration);
    open_iteration(model, session, cause, parent);
    let first = model.iteration == IterationId::FIRST;
    vec![
        Effect::Start(StartAgent {
            iteration: model.iteration,
            session,
            resume,
            prompt,
            anew: None,
            first,
        }),
        Effect::ReadGit,
    ]
}

/// Begins the record of the next iteration and forgets the figures of the last.
pub fn open_iteration(
    model: &mut Model,
    session: SessionId,
    cause: Option<Cause>,
    parent: Option<IterationId>,
) {
    let at = model.now.wall;
    // A record left open here would be a mistake of ours; the next iteration must still get its own.
    let _ = model.lineage.close(at, EndReason::Crash);
    if let Ok(iteration) = model.lineage.open_below(parent, Some(session), cause, at) {
        model.iteration = iteration;
        // Counted from the newest: whoever reads of an earlier one goes on reading of it.
        if model.history.detail || model.history.selected > 0 {
            model.history.selected += 1;
        }
    }
    model.session = session;
    scratchpad::handed_over(model);
    let version = model.agent.version.take();
    model.agent = AgentView {
        version,
        holds_compaction: model.config.guard.replace_compaction,
        ..AgentView::default()
    };
    model.guard.start_iteration();
    model.compactions = Compactions::default();
    new_session(model);
    model.title.clear();
    // The new screen has no still.
    model.copy = None;
    model.press = None;
    model.ending = None;
    model.reboot.quiet = None;
    model.reboot.forget_calls();
}

/// Forgets what belongs to the session before.
pub(in crate::app) fn new_session(model: &mut Model) {
    model.costs = TurnCosts::default();
    model.agent.prompt_cache = None;
    model.transcript = TranscriptFacts::default();
    model.transcript_lost = false;
    model.todo.carry_over();
    model.heard.forget();
    model.commands.clear();
    model.summary = Summaries::default();
}

/// Ends the record of the present iteration.
pub fn close_iteration(model: &mut Model, reason: EndReason) -> Vec<Effect> {
    note_figures(model);
    let mut effects = summary::close(model);
    effects.extend(keep_turn(model));
    let closed = model.lineage.close(model.now.wall, reason).is_ok();
    // An agent that had ended before has its record; the run's end is still to be written.
    if closed || model.quitting.is_some() {
        effects.extend(save_iteration(model));
    }
    effects
}
