//! The history panel: iterations of this run and of earlier ones, and what one of them was given and gave.
//!
//! The iterations of this run are the model's own. What earlier runs left, and every message, is read from the store: the
//! list once, at the start, and the messages of an iteration when its details are opened.

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};

use crate::{
    api::wire::AgentState,
    lineage::{
        Cause, EndReason, Iteration, IterationId, RunId,
        past::{Excerpt, Found, MessageKind, PastSession},
    },
};
use pitstop_handoff::scratchpad;
use pitstop_transcript::SessionId;

pub use crate::app::model::history::{Difference, EarlierRun, HistoryPanel, Past};
use crate::app::{
    effect::Effect,
    model::{Focus, Model, reboot::Replaced},
    reboot,
    view::focus::set_focus,
};

/// The number of rows that a page is scrolled by in the details.
const PAGE: u16 = 15;

/// The longest text that is searched for, in characters.
const QUERY: usize = 200;

/// Returns every iteration that is known, newest first, with its run.
pub fn all(model: &Model) -> impl Iterator<Item = (&RunId, &Iteration)> {
    let run = model.run();
    let own = model.lineage.iterations().iter().rev();
    let earlier = model.view.history.earlier.iter();
    let earlier = earlier.flat_map(|one| {
        one.iterations
            .iter()
            .rev()
            .map(move |iteration| (&one.run, iteration))
    });
    own.map(move |iteration| (run, iteration)).chain(earlier)
}

/// Returns the whole texts of a past session with their names: the handoff that it was given, the one that it gave or otherwise its
/// last checkpoint, and its summary, which its iteration may know in a newer form.
#[must_use]
pub fn texts<'a>(past: &'a PastSession, iteration: &'a Iteration) -> Vec<(&'static str, &'a str)> {
    let (got, gave) = (past.got.as_ref(), past.gave.as_ref());
    let saved = past.checkpoint.as_ref().filter(|_| gave.is_none());
    let summary = iteration.summary.as_ref();
    let texts = [
        ("Handoff it was given", got.map(|entry| &entry.handoff)),
        ("Handoff it gave", gave.map(|entry| &entry.handoff)),
        ("Last checkpoint", saved.map(|one| &one.context)),
        ("Summary", summary.or(past.iteration.summary.as_ref())),
    ];
    let texts = texts.into_iter();
    let texts = texts.filter_map(|(name, text)| Some((name, text?.as_str())));
    texts.filter(|(_, text)| !text.trim().is_empty()).collect()
}

/// Returns how an iteration ended, in a few words; `None` while it lives.
#[must_use]
pub fn ended(model: &Model, run: &RunId, iteration: &Iteration) -> Option<String> {
    let of_run = if run == model.run() {
        model.lineage.iterations()
    } else {
        let mut earlier = model.view.history.earlier.iter();
        let found = earlier.find(|one| one.run == *run);
        found.map_or(&[][..], |one| &one.iterations[..])
    };
    let next = iteration.iteration.next();
    let next = of_run.iter().find(|one| one.iteration == next);
    let (reason, signal) = (iteration.end_reason?, iteration.signal.as_deref());
    let cause = next.and_then(|one| one.cause);
    Some(reason.short(cause, signal, iteration.in_turn))
}

/// Returns the iterations that are listed: all, or those that a search has found.
pub fn listed(model: &Model) -> impl Iterator<Item = (&RunId, &Iteration)> {
    let wanted = model.view.history.query.to_lowercase();
    all(model).filter(move |(run, iteration)| {
        wanted.is_empty()
            || ended(model, run, iteration).is_some_and(|words| words.contains(&wanted))
            || says(run, iteration, &wanted)
            || has_found(model, run, iteration)
    })
}

/// Reports whether what is known of an iteration here holds the text, which is in lower case.
fn says(run: &RunId, iteration: &Iteration, wanted: &str) -> bool {
    let session = iteration.session_id.map(|id| id.to_string());
    let reason = iteration.end_reason;
    [
        Some(run.as_str()),
        session.as_deref(),
        iteration.cause.map(Cause::phrase),
        iteration.cause.map(Cause::as_str),
        iteration.ending(),
        reason.map(EndReason::as_str),
        iteration.summary.as_deref(),
    ]
    .into_iter()
    .flatten()
    .any(|text| text.to_lowercase().contains(wanted))
}

fn has_found(model: &Model, run: &RunId, iteration: &Iteration) -> bool {
    found_in(model, run, iteration).is_some()
}

fn found_in<'a>(model: &'a Model, run: &RunId, iteration: &Iteration) -> Option<&'a Found> {
    let mut found = model.view.history.found.iter();
    found.find(|one| one.run == *run && one.iteration == iteration.iteration)
}

/// Returns the words around what the search has found in an iteration.
#[must_use]
pub fn excerpt<'a>(model: &'a Model, run: &RunId, iteration: &Iteration) -> Option<&'a Excerpt> {
    found_in(model, run, iteration)?.excerpt.as_ref()
}

/// Returns the iteration that is selected; the newest if there are fewer by now.
#[must_use]
pub fn selected(model: &Model) -> Option<(&RunId, &Iteration)> {
    let mut listed = listed(model);
    let newest = listed.next()?;
    match model.view.history.selected {
        0 => Some(newest),
        at => listed.nth(at - 1).or(Some(newest)),
    }
}

/// Returns what the store has of the selected iteration, once it was asked.
#[must_use]
pub fn asked_of_selected(model: &Model) -> Option<&Past> {
    let (run, iteration) = selected(model)?;
    let past = model.view.history.past.as_ref()?;
    past.is(run, iteration.iteration).then_some(past)
}

/// Returns the iteration that others are compared with.
#[must_use]
pub fn marked(model: &Model) -> Option<&Past> {
    model.view.history.marked.as_ref()
}

/// Returns the marked iteration, if it is another than the selected one.
#[must_use]
pub fn compared(model: &Model) -> Option<&Past> {
    let (run, iteration) = selected(model)?;
    marked(model).filter(|marked| !marked.is(run, iteration.iteration))
}

/// Returns what the store has of the selected iteration, once it was read.
#[must_use]
pub fn past_of_selected(model: &Model) -> Option<&Result<Box<PastSession>, String>> {
    asked_of_selected(model)?.found.as_ref()
}

/// Handles a key while the panel has the focus.
pub(in crate::app) fn key(model: &mut Model, key: KeyEvent) {
    if model.view.history.typing {
        return query_key(model, key);
    }
    let last = listed(model).count().saturating_sub(1);
    let before = model.view.history.selected.min(last);
    let resuming = model.view.history.resuming.take();
    let has_run = model.autopilot.is_some();
    let compares = compared(model).is_some();
    let history = &mut model.view.history;
    match key.code {
        KeyCode::Down | KeyCode::Char('j') => history.selected = (before + 1).min(last),
        KeyCode::Up | KeyCode::Char('k') => history.selected = before.saturating_sub(1),
        KeyCode::PageDown | KeyCode::Char(' ') if history.is_large() => {
            history.scroll = history.scroll.saturating_add(PAGE);
        }
        KeyCode::PageUp if history.is_large() => {
            history.scroll = history.scroll.saturating_sub(PAGE);
        }
        KeyCode::Home | KeyCode::Char('g') if history.is_large() => history.scroll = 0,
        KeyCode::End | KeyCode::Char('G') if history.is_large() => history.scroll = u16::MAX,
        KeyCode::PageDown => history.selected = before.saturating_add(usize::from(PAGE)).min(last),
        KeyCode::PageUp => history.selected = before.saturating_sub(usize::from(PAGE)),
        KeyCode::Home | KeyCode::Char('g') => history.selected = 0,
        KeyCode::End | KeyCode::Char('G') => history.selected = last,
        KeyCode::Enter => {
            history.detail = !history.detail && !history.run_view;
            history.run_view = false;
            return read(model);
        }
        KeyCode::Char('d') if history.detail => {
            history.difference = !history.difference;
            history.scroll = 0;
        }
        KeyCode::Char('d') if compares => {
            (history.detail, history.difference) = (true, true);
            history.run_view = false;
            return read(model);
        }
        KeyCode::Char('m') => return mark(model),
        KeyCode::Char('/') => {
            history.typing = true;
            (history.detail, history.run_view) = (false, false);
        }
        KeyCode::Char('p') => return play(model),
        KeyCode::Char('v') => return read_back(model),
        KeyCode::Char('y') => return copy(model),
        KeyCode::Char('R') => return resume(model, resuming),
        KeyCode::Char('t') if has_run => {
            history.run_view = !history.run_view;
            history.scroll = 0;
        }
        KeyCode::Esc if history.run_view => history.run_view = false,
        KeyCode::Esc if history.detail => history.detail = false,
        KeyCode::Esc if !history.query.is_empty() => {
            history.query.clear();
            history.selected = 0;
        }
        KeyCode::Esc if history.marked.is_some() => history.marked = None,
        KeyCode::Esc | KeyCode::Char('q') => return set_focus(model, Focus::Pane),
        _ => {}
    }
    if model.view.history.selected != before {
        read(model);
    }
}

/// Handles a key while the search is typed: facts that are known here are searched at once, those that only the store has at the Enter.
fn query_key(model: &mut Model, key: KeyEvent) {
    let history = &mut model.view.history;
    history.selected = 0;
    history.found.clear();
    match key.code {
        KeyCode::Enter => {
            history.typing = false;
            if !history.query.is_empty() {
                let query = history.query.clone();
                model.emit(Effect::SearchHistory(query));
            }
        }
        KeyCode::Esc => {
            history.typing = false;
            history.query.clear();
        }
        KeyCode::Char('u') if key.modifiers == KeyModifiers::CONTROL => history.query.clear(),
        KeyCode::Char(c)
            if !key.modifiers.contains(KeyModifiers::CONTROL)
                && history.query.chars().count() < QUERY =>
        {
            history.query.push(c);
        }
        KeyCode::Backspace => {
            history.query.pop();
        }
        _ => {}
    }
}

/// Takes in what the store has found; an answer to another question than the last one is late.
pub(in crate::app) fn found(model: &mut Model, text: &str, found: Result<Vec<Found>, String>) {
    if model.view.history.query != text {
        return;
    }
    match found {
        Ok(found) => model.view.history.found = found,
        Err(why) => model.error(format!("handoffs and summaries were not searched: {why}")),
    }
}

/// Returns the selected iteration's conversation, where it was replaced in place by that of the next one.
fn replaced(model: &Model) -> Option<Replaced> {
    let (run, iteration) = selected(model)?;
    let session = iteration.session_id?;
    let behind = |one: &(&RunId, &Iteration)| {
        one.0 == run && one.1.iteration > iteration.iteration && one.1.session_id == Some(session)
    };
    // The newest comes first: the last is the one right behind it.
    let records = all(model)
        .filter(behind)
        .filter_map(|(_, one)| one.reboot.as_ref()?.nonce.clone());
    records.last().map(|nonce| Replaced { session, nonce })
}

/// Resumes the selected session. While a turn runs, which that interrupts, the key is pressed twice.
fn resume(model: &mut Model, asked: Option<SessionId>) {
    let Some((_, iteration)) = selected(model) else {
        return;
    };
    let number = iteration.iteration;
    let Some(session) = iteration.session_id else {
        model.info(format!("iteration {number} has no session to resume"));
        return;
    };
    let replaced = replaced(model);
    let other = session != model.session.id || replaced.is_some();
    let works = model.session.agent.state == AgentState::Busy && other;
    if works && asked != Some(session) {
        model.view.history.resuming = Some(session);
        model.info(format!(
            "a turn runs: press R again to interrupt it and resume the session of iteration {number}"
        ));
        return;
    }
    let parent = model.lineage.newest_in(session).map(|_| number);
    match reboot::resume_earlier(model, session, replaced, parent) {
        Ok(()) => {
            (model.view.history.detail, model.view.history.run_view) = (false, false);
            set_focus(model, Focus::Pane);
        }
        Err(why) => model.error(why.to_string()),
    }
}

/// Copies what is in focus: in the list the session's id, in the details the text that is shown first.
fn copy(model: &mut Model) {
    let Some((_, iteration)) = selected(model) else {
        return;
    };
    let session = iteration.session_id.map(|id| id.to_string());
    let own_summary = iteration.summary.clone();
    let past = asked_of_selected(model).filter(|_| model.view.history.detail);
    let text = past.and_then(|past| {
        let difference = past.difference.clone();
        if let Some(difference) = difference.filter(|_| model.view.history.difference) {
            return Some(("the difference", difference.text));
        }
        let found = past.found.as_ref()?.as_ref().ok()?;
        let handoff = |entry: Option<&crate::lineage::journal::JournalEntry>| {
            entry.map(|entry| entry.handoff.clone())
        };
        let gave = handoff(found.gave.as_ref()).map(|text| ("the handoff that it gave", text));
        let got = handoff(found.got.as_ref()).map(|text| ("the handoff that it was given", text));
        let summary = own_summary.or_else(|| found.iteration.summary.clone());
        gave.or(got).or(summary.map(|text| ("the summary", text)))
    });
    if let Some((what, text)) = text.or(session.map(|id| ("the session's id", id))) {
        model.info(format!("copied: {what}"));
        model.emit(Effect::Copy(text));
    }
}

/// Asks for the transcript of the selected iteration.
fn read_back(model: &mut Model) {
    let Some((_, one)) = selected(model) else {
        return;
    };
    match (one.session_id, one.iteration) {
        (Some(session), iteration) => model.emit(Effect::ReadTranscript(session, iteration)),
        (None, _) => model.error("this iteration has no session, and so no transcript"),
    }
}

/// Asks for the recording of the selected iteration.
fn play(model: &mut Model) {
    if let Some((run, one)) = selected(model) {
        model.emit(Effect::ReadRecording(run.clone(), one.iteration));
    }
}

/// Asks the store for the iteration whose details are shown.
fn read(model: &mut Model) {
    let wanted = selected(model).filter(|_| model.view.history.detail);
    let Some((run, iteration)) = wanted.map(|(run, one)| (run.clone(), one.iteration)) else {
        return;
    };
    model.view.history.scroll = 0;
    model.view.history.past = Some(Past {
        run: run.clone(),
        iteration,
        found: None,
        difference: None,
    });
    model.emit(Effect::ReadPast(run, iteration));
}

/// Marks the selected iteration, to compare others with it, or takes the mark back.
fn mark(model: &mut Model) {
    let Some((run, iteration)) = selected(model).map(|(run, one)| (run.clone(), one.iteration))
    else {
        return;
    };
    let is_marked = marked(model).is_some_and(|marked| marked.is(&run, iteration));
    model.view.history.marked = (!is_marked).then(|| Past {
        run: run.clone(),
        iteration,
        found: None,
        difference: None,
    });
    differ(model);
    if !is_marked {
        model.emit(Effect::ReadPast(run, iteration));
    }
}

/// Takes over the earlier runs that were read. One that is still open there was left so by a supervisor that died, and ended with it.
pub(in crate::app) fn earlier_read(model: &mut Model, mut earlier: Vec<EarlierRun>) {
    let iterations = earlier.iter_mut().flat_map(|run| &mut run.iterations);
    for left_open in iterations.filter(|one| one.is_open()) {
        left_open.ended_at = Some(left_open.started_at);
        left_open.end_reason = Some(EndReason::Crash);
    }
    model.view.history.earlier = earlier;
}

/// Takes in the store's answer; an answer about another iteration than the last one asked for is late.
pub(in crate::app) fn was_read(
    model: &mut Model,
    run: &RunId,
    iteration: IterationId,
    found: &Result<Box<PastSession>, String>,
) {
    let history = &mut model.view.history;
    for past in [&mut history.past, &mut history.marked]
        .into_iter()
        .flatten()
    {
        if past.is(run, iteration) {
            past.found = Some(found.clone());
        }
    }
    differ(model);
}

/// Compares the marked iteration with the one whose details are shown, or otherwise the two handoffs of that one.
fn differ(model: &mut Model) {
    let place = |past: &Past| all(model).position(|(run, one)| past.is(run, one.iteration));
    let own_run = model.run().clone();
    let marked = marked(model).cloned();
    let place_of_marked = marked.as_ref().and_then(place);
    let Some(place_of_shown) = model.view.history.past.as_ref().map(place) else {
        return;
    };
    let Some(past) = &mut model.view.history.past else {
        return;
    };
    past.difference = match marked.filter(|marked| !marked.is(&past.run, past.iteration)) {
        // The list begins with the newest.
        Some(marked) if place_of_marked < place_of_shown => between(past, &marked, &own_run),
        Some(marked) => between(&marked, past, &own_run),
        None => own_difference(past),
    };
}

/// Returns the difference from what an iteration was given to what it gave.
fn own_difference(past: &Past) -> Option<Difference> {
    let found = past.found.as_ref()?.as_ref().ok()?;
    let (got, gave) = (found.got.as_ref()?, found.gave.as_ref()?);
    Some(Difference {
        heading: "What changed from the handoff it was given to the one it gave".to_owned(),
        text: scratchpad::difference(&got.handoff, &gave.handoff),
    })
}

/// Returns the difference from the best text of one iteration to that of another, once both were read.
fn between(older: &Past, newer: &Past, own_run: &RunId) -> Option<Difference> {
    let message = |past: &Past| -> Option<(String, String)> {
        let name = if past.run == *own_run {
            format!("iteration {}", past.iteration)
        } else {
            format!("iteration {} of run {}", past.iteration, past.run)
        };
        let found = past.found.as_ref()?.as_ref().ok()?;
        Some(match found.message() {
            Some(message) => {
                let what = match message.kind {
                    MessageKind::Given => "the handoff it gave",
                    MessageKind::Saved => "its last checkpoint",
                    MessageKind::Received => "the handoff it was given",
                    MessageKind::Summary => "its summary",
                };
                (format!("{name} ({what})"), message.text.to_owned())
            }
            None => (format!("{name} (nothing is kept)"), String::new()),
        })
    };
    let ((from, before), (to, after)) = (message(older)?, message(newer)?);
    Some(Difference {
        heading: format!("What changed from {from} to {to}"),
        text: scratchpad::difference(&before, &after),
    })
}
