//! The history panel: iterations of this run and of earlier ones, and what one of them was given and gave.
//!
//! The iterations of this run are the model's own. What earlier runs left, and every message, is read from the store: the
//! list once, at the start, and the messages of an iteration when its details are opened.

use crossterm::event::{KeyCode, KeyEvent};

use crate::lineage::{EndReason, Iteration, IterationId, RunId, past::PastSession};

use super::{
    effect::Effect,
    input,
    model::{Focus, Model},
    replay,
};

/// How far a page is scrolled in the details, in rows.
const PAGE: u16 = 15;

/// The history panel.
#[derive(Clone, Debug, Default)]
pub struct HistoryPanel {
    /// Which iteration is selected, from the newest.
    pub selected: usize,
    /// Whether its details are shown.
    pub detail: bool,
    /// How far the details are scrolled.
    pub scroll: u16,
    /// Earlier runs of the project, newest first.
    pub earlier: Vec<EarlierRun>,
    /// What the store has of the iteration whose details were opened last.
    pub past: Option<Past>,
}

/// A run of before.
#[derive(Clone, Debug, PartialEq)]
pub struct EarlierRun {
    /// Its name.
    pub run: RunId,
    /// Its iterations, oldest first, without the records of their reboots and without their summaries: the details have them.
    pub iterations: Vec<Iteration>,
}

/// What the store has of an iteration.
#[derive(Clone, Debug, PartialEq)]
pub struct Past {
    /// Its run.
    pub run: RunId,
    /// Its number.
    pub iteration: IterationId,
    /// Nothing while it is being read; then what there is, or why there is nothing.
    pub found: Option<Result<Box<PastSession>, String>>,
}

/// Every iteration that is listed, newest first, with its run.
pub fn listed(model: &Model) -> impl Iterator<Item = (&RunId, &Iteration)> {
    let run = model.run();
    let own = model.lineage.iterations().iter().rev();
    let earlier = model.history.earlier.iter();
    let earlier = earlier.flat_map(|one| {
        one.iterations
            .iter()
            .rev()
            .map(move |iteration| (&one.run, iteration))
    });
    own.map(move |iteration| (run, iteration)).chain(earlier)
}

/// The iteration that is selected; the newest if there are fewer by now.
#[must_use]
pub fn selected(model: &Model) -> Option<(&RunId, &Iteration)> {
    let mut listed = listed(model);
    let newest = listed.next()?;
    match model.history.selected {
        0 => Some(newest),
        at => listed.nth(at - 1).or(Some(newest)),
    }
}

/// What the store has of the selected iteration, once it was read.
#[must_use]
pub fn past_of_selected(model: &Model) -> Option<&Result<Box<PastSession>, String>> {
    let (run, iteration) = selected(model)?;
    let past = model.history.past.as_ref()?;
    let is_it = past.run == *run && past.iteration == iteration.iteration;
    past.found.as_ref().filter(|_| is_it)
}

/// A key while the panel has the focus.
pub(super) fn key(model: &mut Model, key: KeyEvent) -> Vec<Effect> {
    let last = listed(model).count().saturating_sub(1);
    let before = model.history.selected;
    let history = &mut model.history;
    match key.code {
        KeyCode::Down | KeyCode::Char('j') => history.selected = (before + 1).min(last),
        KeyCode::Up | KeyCode::Char('k') => history.selected = before.saturating_sub(1),
        KeyCode::PageDown if history.detail => {
            history.scroll = history.scroll.saturating_add(PAGE);
        }
        KeyCode::PageUp if history.detail => history.scroll = history.scroll.saturating_sub(PAGE),
        KeyCode::Home if history.detail => history.scroll = 0,
        KeyCode::Enter => {
            history.detail = !history.detail;
            return read(model);
        }
        KeyCode::Char('p') => return replay::open(model),
        KeyCode::Esc if history.detail => history.detail = false,
        KeyCode::Esc | KeyCode::Char('q') => return input::set_focus(model, Focus::Pane),
        _ => {}
    }
    if model.history.selected == before {
        return Vec::new();
    }
    read(model)
}

/// Asks the store for the iteration whose details are shown.
fn read(model: &mut Model) -> Vec<Effect> {
    let wanted = selected(model).filter(|_| model.history.detail);
    let Some((run, iteration)) = wanted.map(|(run, one)| (run.clone(), one.iteration)) else {
        return Vec::new();
    };
    model.history.scroll = 0;
    model.history.past = Some(Past {
        run: run.clone(),
        iteration,
        found: None,
    });
    vec![Effect::ReadPast(run, iteration)]
}

/// The earlier runs were read. One that is still open there was left so by a supervisor that died, and ended with it.
pub(super) fn earlier_read(model: &mut Model, mut earlier: Vec<EarlierRun>) {
    let iterations = earlier.iter_mut().flat_map(|run| &mut run.iterations);
    for left_open in iterations.filter(|one| one.is_open()) {
        left_open.ended_at = Some(left_open.started_at);
        left_open.end_reason = Some(EndReason::Crash);
    }
    model.history.earlier = earlier;
}

/// The store has answered; an answer about another iteration than the last one asked for is late.
pub(super) fn was_read(
    model: &mut Model,
    run: &RunId,
    iteration: IterationId,
    found: Result<Box<PastSession>, String>,
) {
    if let Some(past) = &mut model.history.past
        && past.run == *run
        && past.iteration == iteration
    {
        past.found = Some(found);
    }
}
