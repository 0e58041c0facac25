//! The history panel: iterations of this run and of earlier ones, and what one of them was given and gave.
//!
//! The iterations of this run are the model's own. What earlier runs left, and every message, is read from the store: the
//! list once, at the start, and the messages of an iteration when its details are opened.

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};

use crate::lineage::{
    Cause, EndReason, Iteration, IterationId, Lineage, RunId,
    past::{Excerpt, Found, MessageKind, PastSession},
};
use pitstop_handoff::scratchpad;
use pitstop_transcript::SessionId;

pub use crate::app::model::history::{Difference, EarlierRun, HistoryPanel, Past};
use crate::app::{
    consequences::{Consequences, KeyOutcome, Request},
    effect::Effect,
    model::view::scroll_by,
};

/// The number of rows that a page is scrolled by in the details.
const PAGE: u16 = 15;

/// The longest text that is searched for, in characters.
const QUERY: usize = 200;

/// Returns the whole texts of a past session with their names: the handoff that it was given, the one that it gave or otherwise its
/// last checkpoint, and its summary, which its iteration may know in a newer form.
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

impl HistoryPanel {
    /// Returns every iteration that is known, newest first, with its run.
    pub fn all<'a>(
        &'a self,
        lineage: &'a Lineage,
    ) -> impl Iterator<Item = (&'a RunId, &'a Iteration)> {
        let own = lineage.iterations().iter().rev();
        let earlier = self.earlier.iter().flat_map(|one| {
            let iterations = one.iterations.iter().rev();
            iterations.map(move |iteration| (&one.run, iteration))
        });
        own.map(|iteration| (lineage.run(), iteration))
            .chain(earlier)
    }

    /// Returns how an iteration ended, in a few words; `None` while it lives.
    pub fn ended(&self, lineage: &Lineage, run: &RunId, iteration: &Iteration) -> Option<String> {
        let of_run = if run == lineage.run() {
            lineage.iterations()
        } else {
            let found = self.earlier.iter().find(|one| one.run == *run);
            found.map_or(&[][..], |one| &one.iterations[..])
        };
        let next = iteration.iteration.next();
        let next = of_run.iter().find(|one| one.iteration == next);
        let (reason, signal) = (iteration.end_reason?, iteration.signal.as_deref());
        let cause = next.and_then(|one| one.cause);
        Some(reason.short(cause, signal, iteration.in_turn))
    }

    /// Returns the iterations that are listed: all, or those that a search has found.
    pub fn listed<'a>(
        &'a self,
        lineage: &'a Lineage,
    ) -> impl Iterator<Item = (&'a RunId, &'a Iteration)> {
        let wanted = self.query.to_lowercase();
        self.all(lineage).filter(move |(run, iteration)| {
            let ended = || self.ended(lineage, run, iteration);
            wanted.is_empty()
                || ended().is_some_and(|words| words.to_lowercase().contains(&wanted))
                || says(run, iteration, &wanted)
                || self.found_in(run, iteration).is_some()
        })
    }

    /// Returns what the store has found in an iteration.
    pub fn found_in(&self, run: &RunId, iteration: &Iteration) -> Option<&Found> {
        let mut found = self.found.iter();
        found.find(|one| one.run == *run && one.iteration == iteration.iteration)
    }

    /// Returns the words around the search text in an iteration: those that the store has found, otherwise in its summary.
    pub fn excerpt(&self, run: &RunId, iteration: &Iteration) -> Option<Excerpt> {
        if self.query.is_empty() {
            return None;
        }
        let found = self.found_in(run, iteration);
        let found = found.and_then(|found| found.excerpt.clone());
        found.or_else(|| Excerpt::around(&self.query, "summary", iteration.summary.as_deref()?))
    }

    /// Returns the iteration that is selected; the newest if there are fewer by now.
    pub fn selection<'a>(&'a self, lineage: &'a Lineage) -> Option<(&'a RunId, &'a Iteration)> {
        let mut listed = self.listed(lineage);
        let newest = listed.next()?;
        match self.selected {
            0 => Some(newest),
            at => listed.nth(at - 1).or(Some(newest)),
        }
    }

    /// Returns what the store has of the selected iteration, once it was asked.
    pub fn asked_of_selected(&self, lineage: &Lineage) -> Option<&Past> {
        let (run, iteration) = self.selection(lineage)?;
        let past = self.past.as_ref()?;
        past.is(run, iteration.iteration).then_some(past)
    }

    /// Returns the marked iteration, if it is another than the selected one.
    pub fn compared(&self, lineage: &Lineage) -> Option<&Past> {
        let (run, iteration) = self.selection(lineage)?;
        let marked = self.marked.as_ref();
        marked.filter(|marked| !marked.is(run, iteration.iteration))
    }

    /// Handles a key while the panel has the focus. The person who resumes a session while a turn runs, in the session `busy`, is
    /// asked first.
    pub(in crate::app) fn key(
        &mut self,
        key: KeyEvent,
        lineage: &Lineage,
        has_run: bool,
        busy: Option<SessionId>,
    ) -> KeyOutcome {
        let mut done = Consequences::default();
        if self.typing {
            done.effects.extend(self.query_key(key));
            return (done, None);
        }
        let last = self.listed(lineage).count().saturating_sub(1);
        let before = self.selected.min(last);
        let resuming = self.resuming.take();
        let mut reads = false;
        match key.code {
            KeyCode::Down | KeyCode::Char('j') => self.selected = (before + 1).min(last),
            KeyCode::Up | KeyCode::Char('k') => self.selected = before.saturating_sub(1),
            KeyCode::PageDown | KeyCode::Char(' ') if self.is_large() => {
                scroll_by(&mut self.scroll, &self.bounds, PAGE.into());
            }
            KeyCode::PageUp if self.is_large() => {
                scroll_by(&mut self.scroll, &self.bounds, -i32::from(PAGE));
            }
            KeyCode::Home | KeyCode::Char('g') if self.is_large() => self.scroll = 0,
            KeyCode::End | KeyCode::Char('G') if self.is_large() => self.scroll = u16::MAX,
            KeyCode::PageDown => self.selected = before.saturating_add(usize::from(PAGE)).min(last),
            KeyCode::PageUp => self.selected = before.saturating_sub(usize::from(PAGE)),
            KeyCode::Home | KeyCode::Char('g') => self.selected = 0,
            KeyCode::End | KeyCode::Char('G') => self.selected = last,
            KeyCode::Enter => {
                self.detail = !self.detail && !self.run_view;
                (self.run_view, reads) = (false, true);
            }
            KeyCode::Char('d') if self.detail => {
                self.difference = !self.difference;
                self.scroll = 0;
            }
            KeyCode::Char('d') if self.compared(lineage).is_some() => {
                (self.detail, self.difference, self.run_view) = (true, true, false);
                reads = true;
            }
            KeyCode::Char('m') => {
                done.effects.extend(self.mark(lineage));
                return (done, None);
            }
            KeyCode::Char('/') => {
                (self.typing, self.detail, self.run_view) = (true, false, false);
            }
            KeyCode::Char('p' | 'v' | 'y') => return (self.use_selected(key.code, lineage), None),
            KeyCode::Char('R') => return self.resume(lineage, resuming, busy),
            KeyCode::Char('t') if has_run => {
                self.run_view = !self.run_view;
                self.scroll = 0;
            }
            KeyCode::Esc if self.run_view => self.run_view = false,
            KeyCode::Esc if self.detail => self.detail = false,
            KeyCode::Esc if !self.query.is_empty() => {
                self.query.clear();
                self.selected = 0;
            }
            KeyCode::Esc if self.marked.is_some() => self.marked = None,
            KeyCode::Esc | KeyCode::Char('q') => return (done, Some(Request::FocusPane)),
            _ => {}
        }
        if reads || self.selected != before {
            done.effects.extend(self.read(lineage));
        }
        (done, None)
    }

    /// Scrolls what lies over the pane by so many rows, or otherwise selects the next iteration in that direction.
    pub(in crate::app) fn wheel(&mut self, rows: i32, lineage: &Lineage) {
        if self.is_large() {
            return scroll_by(&mut self.scroll, &self.bounds, rows);
        }
        let last = self.listed(lineage).count().saturating_sub(1);
        let before = self.selected.min(last);
        self.selected = if rows > 0 {
            (before + 1).min(last)
        } else {
            before.saturating_sub(1)
        };
    }

    /// Handles a key while the search is typed: facts that are known here are searched at once, those that only the store has at the
    /// Enter.
    fn query_key(&mut self, key: KeyEvent) -> Option<Effect> {
        self.selected = 0;
        self.found.clear();
        match key.code {
            KeyCode::Enter => {
                self.typing = false;
                let query = self.query.clone();
                return (!query.is_empty()).then_some(Effect::SearchHistory(query));
            }
            KeyCode::Esc => {
                self.typing = false;
                self.query.clear();
            }
            KeyCode::Char('u') if key.modifiers == KeyModifiers::CONTROL => self.query.clear(),
            KeyCode::Char(c)
                if !key.modifiers.contains(KeyModifiers::CONTROL)
                    && self.query.chars().count() < QUERY =>
            {
                self.query.push(c);
            }
            KeyCode::Backspace => {
                self.query.pop();
            }
            _ => {}
        }
        None
    }

    /// Takes in what the store has found; an answer to another question than the last one is late.
    pub(in crate::app) fn take_found(
        &mut self,
        text: &str,
        found: Result<Vec<Found>, String>,
    ) -> Consequences {
        let mut done = Consequences::default();
        match found {
            _ if self.query != text => {}
            Ok(found) => self.found = found,
            Err(why) => done.error(format!("handoffs and summaries were not searched: {why}")),
        }
        done
    }

    /// Returns the nonce of the handoff that has replaced the selected iteration's conversation in place, if one has.
    fn replaced_by(&self, lineage: &Lineage) -> Option<String> {
        let (run, iteration) = self.selection(lineage)?;
        let session = iteration.session_id?;
        let behind = |one: &(&RunId, &Iteration)| {
            one.0 == run
                && one.1.iteration > iteration.iteration
                && one.1.session_id == Some(session)
        };
        // The newest comes first: the last is the one right behind it.
        let behind = self.all(lineage).filter(behind);
        let records = behind.filter_map(|(_, one)| one.reboot.as_ref()?.nonce.clone());
        records.last()
    }

    /// Resumes the selected session. While a turn runs, which that interrupts, the key is pressed twice.
    fn resume(
        &mut self,
        lineage: &Lineage,
        asked: Option<SessionId>,
        busy: Option<SessionId>,
    ) -> KeyOutcome {
        let mut done = Consequences::default();
        let Some((_, iteration)) = self.selection(lineage) else {
            return (done, None);
        };
        let number = iteration.iteration;
        let Some(session) = iteration.session_id else {
            done.info(format!("iteration {number} has no session to resume"));
            return (done, None);
        };
        let nonce = self.replaced_by(lineage);
        let works = busy.is_some_and(|busy| session != busy || nonce.is_some());
        if works && asked != Some(session) {
            self.resuming = Some(session);
            done.info(format!(
                "a turn runs: press R again to interrupt it and resume the session of iteration {number}"
            ));
            return (done, None);
        }
        let resume = Request::Resume {
            session,
            nonce,
            parent: lineage.newest_in(session).map(|_| number),
        };
        (done, Some(resume))
    }

    /// Closes what lies over the pane.
    pub(in crate::app) const fn close(&mut self) {
        (self.detail, self.run_view) = (false, false);
    }

    /// Handles a key that plays the selected iteration, reads its transcript, or copies what is in focus: in the list the session's
    /// id, in the details the text that is shown first.
    fn use_selected(&self, key: KeyCode, lineage: &Lineage) -> Consequences {
        let mut done = Consequences::default();
        let Some((run, one)) = self.selection(lineage) else {
            return done;
        };
        match (key, one.session_id) {
            (KeyCode::Char('p'), _) => {
                done.emit(Effect::ReadRecording(run.clone(), one.iteration));
            }
            (KeyCode::Char('v'), Some(session)) => {
                done.emit(Effect::ReadTranscript(session, one.iteration));
            }
            (KeyCode::Char('v'), None) => {
                done.error("this iteration has no session, and so no transcript");
            }
            (_, session) => {
                let session = session.map(|id| ("the session's id", id.to_string()));
                if let Some((what, text)) = self.shown_text(lineage, one).or(session) {
                    done.info(format!("copied: {what}"));
                    done.emit(Effect::Copy(text));
                }
            }
        }
        done
    }

    /// Returns the text that the details of this iteration, which is selected, show first, with its name.
    fn shown_text(&self, lineage: &Lineage, one: &Iteration) -> Option<(&'static str, String)> {
        let past = self.asked_of_selected(lineage).filter(|_| self.detail)?;
        if let Some(difference) = past.difference.as_ref().filter(|_| self.difference) {
            return Some(("the difference", difference.text.clone()));
        }
        let found = past.found.as_ref()?.as_ref().ok()?;
        let (gave, got) = (found.gave.as_ref(), found.got.as_ref());
        let gave = gave.map(|entry| ("the handoff that it gave", &entry.handoff));
        let got = got.map(|entry| ("the handoff that it was given", &entry.handoff));
        let summary = one.summary.as_ref().or(found.iteration.summary.as_ref());
        let shown = gave.or(got).or(summary.map(|text| ("the summary", text)));
        shown.map(|(name, text)| (name, text.clone()))
    }

    /// Asks the store for the iteration whose details are shown.
    fn read(&mut self, lineage: &Lineage) -> Option<Effect> {
        let wanted = self.selection(lineage).filter(|_| self.detail);
        let past = Past::of(wanted?);
        let (run, iteration) = (past.run.clone(), past.iteration);
        self.scroll = 0;
        self.past = Some(past);
        Some(Effect::ReadPast(run, iteration))
    }

    /// Marks the selected iteration, to compare others with it, or takes the mark back.
    fn mark(&mut self, lineage: &Lineage) -> Option<Effect> {
        let past = Past::of(self.selection(lineage)?);
        let (run, iteration) = (past.run.clone(), past.iteration);
        let marked = self.marked.take();
        let is_marked = marked.is_some_and(|marked| marked.is(&run, iteration));
        self.marked = (!is_marked).then_some(past);
        self.differ(lineage);
        (!is_marked).then_some(Effect::ReadPast(run, iteration))
    }

    /// Takes over the earlier runs that were read. One that is still open there was left so by a supervisor that died, and ended
    /// with it.
    pub(in crate::app) fn earlier_read(&mut self, mut earlier: Vec<EarlierRun>) {
        let iterations = earlier.iter_mut().flat_map(|run| &mut run.iterations);
        for left_open in iterations.filter(|one| one.is_open()) {
            left_open.ended_at = Some(left_open.started_at);
            left_open.end_reason = Some(EndReason::Crash);
        }
        self.earlier = earlier;
    }

    /// Takes in the store's answer; an answer about another iteration than the last one asked for is late.
    pub(in crate::app) fn past_read(
        &mut self,
        run: &RunId,
        iteration: IterationId,
        found: &Result<Box<PastSession>, String>,
        lineage: &Lineage,
    ) {
        for past in [&mut self.past, &mut self.marked].into_iter().flatten() {
            if past.is(run, iteration) {
                past.found = Some(found.clone());
            }
        }
        self.differ(lineage);
    }

    /// Compares the marked iteration with the one whose details are shown, or otherwise the two handoffs of that one.
    fn differ(&mut self, lineage: &Lineage) {
        let Some(past) = &self.past else {
            return;
        };
        let place = |past: &Past| {
            let mut all = self.all(lineage);
            all.position(|(run, one)| past.is(run, one.iteration))
        };
        let marked = self.marked.as_ref();
        let difference = match marked.filter(|marked| !marked.is(&past.run, past.iteration)) {
            // The list begins with the newest.
            Some(marked) if place(marked) < place(past) => between(past, marked, lineage.run()),
            Some(marked) => between(marked, past, lineage.run()),
            None => own_difference(past),
        };
        if let Some(past) = &mut self.past {
            past.difference = difference;
        }
    }
}

/// Reports whether what is known of an iteration here holds the text, which is in lower case.
fn says(run: &RunId, iteration: &Iteration, wanted: &str) -> bool {
    let session = iteration.session_id.map(|id| id.to_string());
    let reason = iteration.end_reason;
    [
        Some(run.as_str()),
        session.as_deref(),
        iteration.cause.map(Cause::phrase),
        iteration.cause.map(Cause::short),
        iteration.cause.map(Cause::as_str),
        iteration.ending(),
        reason.map(EndReason::as_str),
        iteration.summary.as_deref(),
    ]
    .into_iter()
    .flatten()
    .any(|text| text.to_lowercase().contains(wanted))
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
