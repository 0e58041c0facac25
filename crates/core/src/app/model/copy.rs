//! Copy mode: the pane's image is frozen, and keys and mouse read, search and copy it.
//!
//! ```text
//!   F9, drag ──► Enter ──► moving ◄──► selecting ──► y, Enter, release ──► copied, and back to the pane
//!                            ▲ │ / ?
//!                            │ ▼
//!                          typing a search
//! ```
//!
//! The core knows what the keys mean; the cursor's position and the selection are known where the cells are, in the pane's screen,
//! which answers each order.

use std::{sync::Arc, time::Duration};

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers, MouseButton, MouseEventKind};
use pitstop_base::{
    clock::At,
    format,
    keymap::{Action, Keymap},
};
use pitstop_terminal::{
    copy::{CopyOrder, CopyOutcome, Motion, SelectionKind, Words},
    screen::Scroll,
};
use pitstop_transcript::talk::Talk;

use crate::app::{consequences::Consequences, effect::Effect};
use crate::lineage::{Iteration, IterationId};

/// The longest time between two clicks that belong together.
const CLICK_TIME: Duration = Duration::from_millis(400);

/// The number of rows that the wheel moves.
const WHEEL_ROWS: i32 = 3;

/// The longest search that is taken, in characters: longer ones are pastes gone astray.
const SEARCH_LIMIT: usize = 500;

/// The reader of the pane's text, by keys and mouse.
#[derive(Clone, Debug, Default)]
pub struct CopyReader {
    mode: Option<CopyMode>,
    press: Option<Press>,
}

/// The state of copy mode that its keys need.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CopyMode {
    /// The search being typed, if one is.
    pub search: Option<SearchLine>,
    /// The kind of selection that is being made.
    pub selecting: Option<SelectionKind>,
    /// The result of the last command, if it is worth showing.
    pub said: Option<String>,
    /// True if the pattern being typed is invalid.
    pub bad_pattern: bool,
    /// True if a mouse press began copy mode, and its release ends it.
    by_mouse: bool,
    /// The iteration whose transcript is read; `None` if it is the pane's screen.
    pub transcript: Option<IterationId>,
}

/// A search being typed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SearchLine {
    /// The pattern so far.
    pub pattern: String,
    /// True if it searches towards older lines.
    pub backward: bool,
}

/// The last press of the left button on the pane's text.
#[derive(Clone, Copy, Debug)]
struct Press {
    at: At,
    column: u16,
    row: u16,
    clicks: u8,
    /// True if the button is down.
    down: bool,
    /// True if the mouse was moved since the press.
    dragged: bool,
}

/// A place of the mouse, as cells of the pane.
#[derive(Clone, Copy, Debug)]
pub(in crate::app) struct MousePlace {
    /// The cell, if it lies in the pane.
    pub(in crate::app) cell: Option<(u16, u16)>,
    /// The nearest cell in its row, which may lie above the pane (negative) or below it.
    pub(in crate::app) beside: (u16, i32),
}

impl CopyReader {
    /// Returns copy mode, while it is on.
    pub const fn mode(&self) -> Option<&CopyMode> {
        self.mode.as_ref()
    }

    /// Reports whether the pane is read and not typed into.
    pub const fn is_on(&self) -> bool {
        self.mode.is_some()
    }

    /// Returns the search that is being typed, if there is one.
    pub fn search(&self) -> Option<&SearchLine> {
        self.mode.as_ref()?.search.as_ref()
    }

    /// Begins copy mode or ends it, for the key that does both. Where nothing is kept of what has scrolled away, the transcript is
    /// read first, by this order; the key goes on from there to what is on the screen.
    pub(in crate::app) fn toggle(&mut self, transcript: Option<Effect>) -> Vec<Effect> {
        let Some(mode) = &self.mode else {
            return vec![transcript.unwrap_or_else(|| self.begin(false))];
        };
        let goes_on = mode.transcript.is_some();
        let mut effects = self.leave();
        effects.extend(goes_on.then(|| self.begin(false)));
        effects
    }

    /// Begins copy mode, which ends with the release of the mouse if that has begun it.
    pub(in crate::app) fn begin(&mut self, by_mouse: bool) -> Effect {
        self.mode = Some(CopyMode {
            by_mouse,
            ..CopyMode::default()
        });
        Effect::CopyMode(CopyOrder::Enter)
    }

    /// Shows the transcript of an iteration.
    pub(in crate::app) fn show(&mut self, iteration: IterationId, talk: Arc<Talk>) -> Vec<Effect> {
        let left = self.drop_mode().into_iter();
        self.mode = Some(CopyMode {
            transcript: Some(iteration),
            ..CopyMode::default()
        });
        left.chain([Effect::ShowTranscript(talk)]).collect()
    }

    /// Ends copy mode and shows the present.
    fn leave(&mut self) -> Vec<Effect> {
        let left = self.drop_mode().into_iter();
        left.chain([Effect::ScrollPane(Scroll::Bottom)]).collect()
    }

    /// Ends copy mode and leaves the view where it is.
    pub(in crate::app) fn drop_mode(&mut self) -> Option<Effect> {
        let left = self.mode.take();
        left.map(|_| Effect::CopyMode(CopyOrder::Leave))
    }

    /// Takes in the screen's answer to an order.
    pub(in crate::app) fn answered(&mut self, outcome: CopyOutcome) -> Consequences {
        let mut done = Consequences::default();
        let Some(mode) = &mut self.mode else {
            return done;
        };
        mode.selecting = outcome.selecting;
        mode.said = outcome.said;
        mode.bad_pattern = outcome.bad_pattern;
        let Some(text) = outcome.copied else {
            return done;
        };
        let by_mouse = mode.by_mouse;
        let (lines, characters) = (text.lines().count(), text.chars().count());
        if text.is_empty() {
            mode.said = Some("nothing but blanks is selected".to_owned());
        } else {
            done.info(match lines {
                0 | 1 => format!("copied {}", format::count(characters, "character")),
                _ => format!("copied {lines} lines"),
            });
        }
        if by_mouse {
            done.effects.extend(self.drop_mode());
        } else if !text.is_empty() {
            done.effects.extend(self.leave());
        }
        if !text.is_empty() {
            done.emit(Effect::Copy(text));
        }
        done
    }

    /// Handles a key in copy mode; the iterations of this run are those whose transcripts can be read.
    pub(in crate::app) fn key(
        &mut self,
        key: KeyEvent,
        iterations: &[Iteration],
        keys: &Keymap,
    ) -> Vec<Effect> {
        let Some(mode) = &mut self.mode else {
            return Vec::new();
        };
        if mode.search.is_some() {
            return mode.search_key(key).into_iter().collect();
        }
        mode.said = None;
        let direction = match key.code {
            KeyCode::Char('[') => Some(-1),
            KeyCode::Char(']') => Some(1),
            KeyCode::Char('r') if key.modifiers.is_empty() => Some(0),
            _ => None,
        };
        if let (Some(iteration), Some(direction)) = (mode.transcript, direction) {
            let read = mode.other_transcript(iteration, direction, iterations);
            return read.into_iter().collect();
        }
        let selecting = mode.selecting.is_some();
        let control = key.modifiers.contains(KeyModifiers::CONTROL);
        let order = match (key.code, control) {
            (KeyCode::Esc, _) | (KeyCode::Char('c'), true) if selecting => CopyOrder::Unselect,
            (KeyCode::Esc | KeyCode::Char('q'), false) | (KeyCode::Char('c'), true) => {
                return self.leave();
            }
            (KeyCode::Enter, _) if !selecting => return self.leave(),
            (KeyCode::Enter, _) | (KeyCode::Char('y'), false) => CopyOrder::Copy,
            (KeyCode::Char('Y'), false) => CopyOrder::CopyLine,
            (KeyCode::Char('v'), true) => CopyOrder::Select(SelectionKind::Block),
            (KeyCode::Char('v'), false) => CopyOrder::Select(SelectionKind::Characters),
            (KeyCode::Char('V'), false) => CopyOrder::Select(SelectionKind::Lines),
            (KeyCode::Char('o'), false) => CopyOrder::SwapEnds,
            (KeyCode::Char('r'), false) => CopyOrder::Refresh,
            (KeyCode::Char('n'), false) => CopyOrder::SearchAgain { reverse: false },
            (KeyCode::Char('N'), false) => CopyOrder::SearchAgain { reverse: true },
            (KeyCode::Char(sign @ ('/' | '?')), false) => {
                mode.search = Some(SearchLine {
                    backward: sign == '?',
                    ..SearchLine::default()
                });
                CopyOrder::SearchBegin
            }
            _ => {
                let Some(motion) = motion(key.code, control) else {
                    let help = keys.hint(Action::Help);
                    let help = help.map(|key| format!(": {key} lists the keys"));
                    let help = help.unwrap_or_default();
                    mode.said = Some(format!("no such key in copy mode{help}"));
                    return Vec::new();
                };
                CopyOrder::Move(motion)
            }
        };
        vec![Effect::CopyMode(order)]
    }

    /// Handles a paste while a search is typed: its first line is a part of the pattern. Returns `None` if none is typed.
    pub(in crate::app) fn paste(&mut self, text: &str) -> Option<Effect> {
        let line = self.mode.as_mut()?.search.as_mut()?;
        let room = SEARCH_LIMIT.saturating_sub(line.pattern.chars().count());
        let first = text.lines().next().unwrap_or_default();
        let kept = first.chars().filter(|c| !c.is_control()).take(room);
        line.pattern.extend(kept);
        Some(line.search())
    }

    /// Handles the mouse over the pane's text, when it is ours; returns `None` if it means nothing here.
    pub(in crate::app) fn mouse(
        &mut self,
        kind: MouseEventKind,
        place: MousePlace,
        now: At,
    ) -> Option<Vec<Effect>> {
        let wheel = |rows| vec![Effect::CopyMode(CopyOrder::Move(Motion::View(rows)))];
        Some(match kind {
            MouseEventKind::Down(MouseButton::Left) => self.pressed(place, now),
            MouseEventKind::Drag(MouseButton::Left) => self.dragged(place).into_iter().collect(),
            MouseEventKind::Up(MouseButton::Left) => self.released().into_iter().collect(),
            MouseEventKind::ScrollUp if self.is_on() => wheel(WHEEL_ROWS),
            MouseEventKind::ScrollDown if self.is_on() => wheel(-WHEEL_ROWS),
            _ => return None,
        })
    }

    fn pressed(&mut self, place: MousePlace, now: At) -> Vec<Effect> {
        let Some((column, row)) = place.cell else {
            return Vec::new();
        };
        let together = self.press.filter(|last| {
            (last.column, last.row) == (column, row)
                && !last.dragged
                && now.since(last.at) <= CLICK_TIME
        });
        let clicks = together.map_or(1, |last| last.clicks % 3 + 1);
        self.press = Some(Press {
            at: now,
            column,
            row,
            clicks,
            down: true,
            dragged: false,
        });
        let mut effects = Vec::new();
        if self.mode.is_none() {
            effects.push(self.begin(true));
        }
        effects.push(Effect::CopyMode(CopyOrder::Press {
            column,
            row,
            clicks,
        }));
        effects
    }

    fn dragged(&mut self, place: MousePlace) -> Option<Effect> {
        let press = self.press.as_mut().filter(|press| press.down)?;
        // A slight movement of the hand is no drag.
        if !press.dragged && place.cell == Some((press.column, press.row)) {
            return None;
        }
        press.dragged = true;
        let (column, row) = place.beside;
        Some(Effect::CopyMode(CopyOrder::Drag { column, row }))
    }

    fn released(&mut self) -> Option<Effect> {
        let press = self.press.as_mut().filter(|press| press.down)?;
        press.down = false;
        let selected = press.dragged || press.clicks > 1;
        let mode = self.mode.as_ref()?;
        if selected {
            return Some(Effect::CopyMode(CopyOrder::Copy));
        }
        // A click that has selected nothing only moves the reader's cursor, if there is one.
        mode.by_mouse.then(|| self.drop_mode()).flatten()
    }
}

impl CopyMode {
    /// Reads the transcript of the next session before that of an iteration, or behind it; the same one again with no direction.
    fn other_transcript(
        &mut self,
        iteration: IterationId,
        direction: i8,
        all: &[Iteration],
    ) -> Option<Effect> {
        let at = all.iter().position(|one| one.iteration == iteration)?;
        let other = |one: &&Iteration| one.session_id != all[at].session_id;
        let found = match direction {
            0 => Some(&all[at]),
            ..0 => all[..at].iter().rev().find(other),
            _ => all[at..].iter().find(other),
        };
        let read = found.and_then(|one| Some((one.session_id?, one.iteration)));
        if read.is_none() {
            self.said = Some("no other session of this run in this direction".to_owned());
        }
        read.map(|(session, iteration)| Effect::ReadTranscript(session, iteration))
    }

    /// Handles a key while a search is typed: each one shows where it leads.
    fn search_key(&mut self, key: KeyEvent) -> Option<Effect> {
        let bad = self.bad_pattern;
        let line = self.search.as_mut()?;
        let control = key.modifiers.contains(KeyModifiers::CONTROL);
        match (key.code, control) {
            // A pattern that is not valid stays to be corrected, with its fault.
            (KeyCode::Enter, _) if bad => return None,
            (KeyCode::Enter, _) => {
                let keep = !line.pattern.is_empty();
                return Some(self.end_search(keep));
            }
            (KeyCode::Esc, _) | (KeyCode::Char('c'), true) => return Some(self.end_search(false)),
            (KeyCode::Backspace, _) | (KeyCode::Char('h'), true) => {
                if line.pattern.pop().is_none() {
                    return Some(self.end_search(false));
                }
            }
            (KeyCode::Char('u'), true) => line.pattern.clear(),
            (KeyCode::Char('w'), true) => {
                let kept = line.pattern.trim_end();
                let kept = kept.rfind(' ').map_or(0, |blank| blank + 1);
                line.pattern.truncate(kept);
            }
            (KeyCode::Char(c), false) if !key.modifiers.contains(KeyModifiers::ALT) => {
                if line.pattern.chars().count() < SEARCH_LIMIT {
                    line.pattern.push(c);
                }
            }
            _ => return None,
        }
        Some(line.search())
    }

    fn end_search(&mut self, keep: bool) -> Effect {
        self.search = None;
        Effect::CopyMode(CopyOrder::SearchEnd { keep })
    }
}

impl SearchLine {
    fn search(&self) -> Effect {
        Effect::CopyMode(CopyOrder::SearchFor {
            pattern: self.pattern.clone(),
            backward: self.backward,
        })
    }
}

/// Returns the motion of a key, one of vi's or an arrow.
fn motion(code: KeyCode, control: bool) -> Option<Motion> {
    Some(match (code, control) {
        (KeyCode::Char('u'), true) => Motion::HalfPages(1),
        (KeyCode::Char('d'), true) => Motion::HalfPages(-1),
        (KeyCode::Char('b'), true) | (KeyCode::PageUp, _) => Motion::HalfPages(2),
        (KeyCode::Char('f'), true) | (KeyCode::PageDown | KeyCode::Char(' '), _) => {
            Motion::HalfPages(-2)
        }
        (KeyCode::Char('y') | KeyCode::Up, true) => Motion::View(1),
        (KeyCode::Char('e') | KeyCode::Down, true) => Motion::View(-1),
        (KeyCode::Char('p'), true) | (KeyCode::Up | KeyCode::Char('k'), false) => Motion::Up,
        (KeyCode::Char('n'), true) | (KeyCode::Down | KeyCode::Char('j'), false) => Motion::Down,
        (KeyCode::Right, true) | (KeyCode::Char('w'), false) => Motion::WordForward(Words::Small),
        (KeyCode::Left, true) | (KeyCode::Char('b'), false) => Motion::WordBack(Words::Small),
        (KeyCode::Home, true) | (KeyCode::Char('g'), false) => Motion::Oldest,
        (KeyCode::End, true) | (KeyCode::Char('G'), false) => Motion::Newest,
        (KeyCode::Left | KeyCode::Backspace, _) | (KeyCode::Char('h'), false) => Motion::Left,
        (KeyCode::Right, _) | (KeyCode::Char('l'), false) => Motion::Right,
        (KeyCode::Home, _) | (KeyCode::Char('0'), false) => Motion::LineStart,
        (KeyCode::End, _) | (KeyCode::Char('$'), false) => Motion::LineEnd,
        (KeyCode::Char('W'), false) => Motion::WordForward(Words::Big),
        (KeyCode::Char('B'), false) => Motion::WordBack(Words::Big),
        (KeyCode::Char('e'), false) => Motion::WordEnd(Words::Small),
        (KeyCode::Char('E'), false) => Motion::WordEnd(Words::Big),
        (KeyCode::Char('^'), false) => Motion::LineText,
        (KeyCode::Char('H'), false) => Motion::High,
        (KeyCode::Char('M'), false) => Motion::Middle,
        (KeyCode::Char('L'), false) => Motion::Low,
        (KeyCode::Char('{'), false) => Motion::ParagraphBack,
        (KeyCode::Char('}'), false) => Motion::ParagraphForward,
        _ => return None,
    })
}
