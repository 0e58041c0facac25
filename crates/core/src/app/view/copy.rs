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

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers, MouseButton, MouseEvent, MouseEventKind};
use pitstop_base::keymap::Action;
use pitstop_terminal::{
    copy::{CopyOrder, CopyOutcome, Motion, SelectionKind, Words},
    screen::Scroll,
};

use pitstop_transcript::talk::Talk;

pub use crate::app::model::copy::{CopyMode, Press, SearchLine};
use crate::app::{
    effect::Effect,
    model::{Focus, Model},
    view::{focus::set_focus, layout},
};
use crate::lineage::{Iteration, IterationId};

/// The longest time between two clicks that belong together.
const CLICK_TIME: Duration = Duration::from_millis(400);

/// The number of rows that the wheel moves.
const WHEEL_ROWS: i32 = 3;

/// The longest search that is taken, in characters: longer ones are pastes gone astray.
const SEARCH_LIMIT: usize = 500;

/// Begins copy mode or ends it, for the key that does both. Where nothing is kept of what has scrolled away, the transcript is read
/// first; the key goes on from there to what is on the screen.
pub fn toggle(model: &mut Model) {
    if let Some(copy) = &model.view.copy {
        let goes_on = copy.transcript.is_some();
        leave(model);
        if !goes_on {
            return;
        }
    } else if model.session.agent.full_screen && !model.is_generic() {
        let iteration = model.session.iteration();
        model.emit(Effect::ReadTranscript(model.session.id, iteration));
        return;
    }
    begin(model);
}

fn begin(model: &mut Model) {
    model.view.copy = Some(CopyMode::default());
    model.emit(Effect::CopyMode(CopyOrder::Enter));
}

/// Shows the transcript of an iteration, which was read.
pub fn transcript_read(model: &mut Model, iteration: IterationId, talk: Result<Arc<Talk>, String>) {
    // Something else may lie over the pane by now.
    if model.view.overlay.is_some() {
        return;
    }
    let is_read = model
        .view
        .copy
        .as_ref()
        .is_some_and(|copy| copy.transcript.is_some());
    match talk {
        Ok(talk) => {
            drop_mode(model);
            set_focus(model, Focus::Pane);
            model.view.copy = Some(CopyMode {
                transcript: Some(iteration),
                ..CopyMode::default()
            });
            model.emit(Effect::ShowTranscript(talk));
        }
        Err(why) => {
            model.error(format!(
                "the transcript of iteration {iteration} cannot be read: {why}"
            ));
            if !is_read && model.view.focus == Focus::Pane && model.view.copy.is_none() {
                begin(model);
            }
        }
    }
}

/// Reads the transcript of the next session before that of an iteration, or behind it; the same one again with no direction.
fn other_transcript(model: &mut Model, iteration: IterationId, direction: i8) {
    let all = model.lineage.iterations();
    let session = |one: &Iteration| one.session_id;
    let Some(at) = all.iter().position(|one| one.iteration == iteration) else {
        return;
    };
    let present = session(&all[at]);
    let other = |one: &&Iteration| direction == 0 || session(one) != present;
    let found = match direction {
        0 => Some(&all[at]),
        ..0 => all[..at].iter().rev().find(other),
        _ => all[at..].iter().find(other),
    };
    let found = found.and_then(|one| Some((session(one)?, one.iteration)));
    match found {
        Some((session, iteration)) => model.emit(Effect::ReadTranscript(session, iteration)),
        None => {
            if let Some(copy) = &mut model.view.copy {
                copy.said = Some("no other session of this run in this direction".to_owned());
            }
        }
    }
}

/// Ends copy mode and shows the present.
fn leave(model: &mut Model) {
    drop_mode(model);
    model.emit(Effect::ScrollPane(Scroll::Bottom));
}

/// Ends copy mode and leaves the view where it is.
pub fn drop_mode(model: &mut Model) {
    if model.view.copy.take().is_some() {
        model.emit(Effect::CopyMode(CopyOrder::Leave));
    }
}

/// Takes in the screen's answer to an order.
pub fn answered(model: &mut Model, outcome: CopyOutcome) {
    let Some(copy) = &mut model.view.copy else {
        return;
    };
    copy.selecting = outcome.selecting;
    copy.said = outcome.said;
    copy.bad_pattern = outcome.bad_pattern;
    let Some(text) = outcome.copied else {
        return;
    };
    let by_mouse = copy.by_mouse;
    if text.is_empty() {
        copy.said = Some("nothing but blanks is selected".to_owned());
        if by_mouse {
            drop_mode(model);
        }
        return;
    }
    let (lines, characters) = (text.lines().count(), text.chars().count());
    model.info(match (lines, characters) {
        (0 | 1, 1) => "copied 1 character".to_owned(),
        (0 | 1, _) => format!("copied {characters} characters"),
        _ => format!("copied {lines} lines"),
    });
    if by_mouse {
        drop_mode(model);
    } else {
        leave(model);
    }
    model.emit(Effect::Copy(text));
}

/// Handles a key in copy mode.
pub fn key(model: &mut Model, key: KeyEvent) {
    let Some(copy) = &mut model.view.copy else {
        return;
    };
    if copy.search.is_some() {
        return search_key(model, key);
    }
    copy.said = None;
    let direction = match key.code {
        KeyCode::Char('[') => Some(-1),
        KeyCode::Char(']') => Some(1),
        KeyCode::Char('r') if key.modifiers.is_empty() => Some(0),
        _ => None,
    };
    if let (Some(iteration), Some(direction)) = (copy.transcript, direction) {
        return other_transcript(model, iteration, direction);
    }
    let selecting = copy.selecting.is_some();
    let control = key.modifiers.contains(KeyModifiers::CONTROL);
    let order = match (key.code, control) {
        (KeyCode::Esc, _) | (KeyCode::Char('c'), true) if selecting => CopyOrder::Unselect,
        (KeyCode::Esc | KeyCode::Char('q'), false) | (KeyCode::Char('c'), true) => {
            return leave(model);
        }
        (KeyCode::Enter, _) if !selecting => return leave(model),
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
            copy.search = Some(SearchLine {
                backward: sign == '?',
                ..SearchLine::default()
            });
            CopyOrder::SearchBegin
        }
        _ => {
            let Some(motion) = motion(key.code, control) else {
                return unknown_key(model);
            };
            CopyOrder::Move(motion)
        }
    };
    model.emit(Effect::CopyMode(order));
}

fn unknown_key(model: &mut Model) {
    let help = model.keys().hint(Action::Help);
    let help = help.map(|key| format!(": {key} lists the keys"));
    if let Some(copy) = &mut model.view.copy {
        let help = help.unwrap_or_default();
        copy.said = Some(format!("no such key in copy mode{help}"));
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

/// Handles a key while a search is typed: each one shows where it leads.
fn search_key(model: &mut Model, key: KeyEvent) {
    let Some(copy) = &mut model.view.copy else {
        return;
    };
    let Some(line) = &mut copy.search else {
        return;
    };
    let control = key.modifiers.contains(KeyModifiers::CONTROL);
    match (key.code, control) {
        // A pattern that is not valid stays to be corrected, with its fault.
        (KeyCode::Enter, _) if copy.bad_pattern => return,
        (KeyCode::Enter, _) => {
            let empty = line.pattern.is_empty();
            return end_search(model, !empty);
        }
        (KeyCode::Esc, _) | (KeyCode::Char('c'), true) => return end_search(model, false),
        (KeyCode::Backspace, _) | (KeyCode::Char('h'), true) => {
            if line.pattern.pop().is_none() {
                return end_search(model, false);
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
        _ => return,
    }
    search(model);
}

fn search(model: &mut Model) {
    if let Some(line) = model.view.copy_search() {
        model.emit(Effect::CopyMode(CopyOrder::SearchFor {
            pattern: line.pattern.clone(),
            backward: line.backward,
        }));
    }
}

fn end_search(model: &mut Model, keep: bool) {
    if let Some(copy) = &mut model.view.copy {
        copy.search = None;
    }
    model.emit(Effect::CopyMode(CopyOrder::SearchEnd { keep }));
}

/// Handles a paste while a search is typed: its first line is a part of the pattern. Returns false if none is typed.
pub fn paste(model: &mut Model, text: &str) -> bool {
    let copy = model.view.copy.as_mut();
    let Some(line) = copy.and_then(|copy| copy.search.as_mut()) else {
        return false;
    };
    let room = SEARCH_LIMIT.saturating_sub(line.pattern.chars().count());
    let first = text.lines().next().unwrap_or_default();
    let kept = first.chars().filter(|c| !c.is_control()).take(room);
    line.pattern.extend(kept);
    search(model);
    true
}

/// Handles the mouse over the pane's text, when it is ours; returns false if it means nothing here.
pub fn mouse(model: &mut Model, mouse: MouseEvent) -> bool {
    match mouse.kind {
        MouseEventKind::Down(MouseButton::Left) => pressed(model, mouse),
        MouseEventKind::Drag(MouseButton::Left) => dragged(model, mouse),
        MouseEventKind::Up(MouseButton::Left) => released(model),
        MouseEventKind::ScrollUp if model.view.copy.is_some() => wheel(model, WHEEL_ROWS),
        MouseEventKind::ScrollDown if model.view.copy.is_some() => wheel(model, -WHEEL_ROWS),
        _ => return false,
    }
    true
}

fn wheel(model: &mut Model, rows: i32) {
    model.emit(Effect::CopyMode(CopyOrder::Move(Motion::View(rows))));
}

fn pressed(model: &mut Model, mouse: MouseEvent) {
    let layout = layout::layout(model);
    let Some((column, row)) = layout.cell_of_pane(mouse.column, mouse.row) else {
        return;
    };
    let together = model.view.press.filter(|last| {
        (last.column, last.row) == (column, row)
            && !last.dragged
            && model.now.since(last.at) <= CLICK_TIME
    });
    let clicks = together.map_or(1, |last| last.clicks % 3 + 1);
    model.view.press = Some(Press {
        at: model.now,
        column,
        row,
        clicks,
        down: true,
        dragged: false,
    });
    if model.view.copy.is_none() {
        model.view.copy = Some(CopyMode {
            by_mouse: true,
            ..CopyMode::default()
        });
        model.emit(Effect::CopyMode(CopyOrder::Enter));
    }
    model.emit(Effect::CopyMode(CopyOrder::Press {
        column,
        row,
        clicks,
    }));
}

fn dragged(model: &mut Model, mouse: MouseEvent) {
    let layout = layout::layout(model);
    let here = layout.cell_of_pane(mouse.column, mouse.row);
    let Some(press) = model.view.press.as_mut().filter(|press| press.down) else {
        return;
    };
    // A slight movement of the hand is no drag.
    if !press.dragged && here == Some((press.column, press.row)) {
        return;
    }
    press.dragged = true;
    let (column, row) = layout.beside_pane(mouse.column, mouse.row);
    model.emit(Effect::CopyMode(CopyOrder::Drag { column, row }));
}

fn released(model: &mut Model) {
    let Some(press) = model.view.press.as_mut().filter(|press| press.down) else {
        return;
    };
    press.down = false;
    let selected = press.dragged || press.clicks > 1;
    match &model.view.copy {
        Some(_) if selected => model.emit(Effect::CopyMode(CopyOrder::Copy)),
        // A click that has selected nothing only moves the reader's cursor, if there is one.
        Some(copy) if copy.by_mouse => drop_mode(model),
        _ => {}
    }
}
