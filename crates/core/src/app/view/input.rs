//! The way from keys, mouse and pastes to what they do, by what has the focus.
//!
//! ```text
//! prefix ──► action         always ours
//! action     (direct keys)  always ours
//! overlay    review, help, quit, exited: has the rest while it is open
//! focus      pane: byte-exact to the child · panels: their own keys
//! ```

use std::time::Duration;

use crossterm::event::{KeyCode, KeyEvent};

use crate::{api::wire::AgentState, lineage::Cause};
use pitstop_base::keymap::{self, Action, Direction};
use pitstop_terminal::{input::HostInput, screen::Scroll};

use crate::app::{
    autopilot::{self, RunInput},
    consequences::{Consequences, Request},
    draft::{checkpoint, handoff},
    effect::Effect,
    event::{HostEvent, TimerId},
    model::{
        Focus, Model, Overlay,
        panels::Edited,
        reading::Reading,
        view::{HelpSearch, rows_of},
    },
    outside::control,
    reboot::{self, Approval, submit, trim},
    refusal::Refusal,
    session::{suspend, turn},
    view::{
        copy, editing, external,
        focus::{leave_editors, set_focus},
        help::HelpKey,
        history, layout,
        mouse::{self, scroll_overlay},
        replay,
    },
};

/// The time after the prefix from which on the keys that can follow are shown: one who knows the key is faster.
const HESITATION: Duration = Duration::from_millis(400);

/// Handles an event of the host terminal.
pub fn host(model: &mut Model, event: HostEvent) {
    match event {
        HostEvent::Input(input) => match input {
            HostInput::Key { event, raw } => key(model, event, raw),
            HostInput::PasteStart | HostInput::PasteChunk(_) | HostInput::PasteEnd => {
                paste(model, input);
            }
            HostInput::Mouse { event, .. } => mouse::mouse(model, event, input),
            HostInput::OtherButton { .. } => mouse::other_button(model, input),
            HostInput::Focus(focused) => {
                model.view.host_focused = Some(focused);
                model.emit(Effect::FocusPane(focused && has_pane(model)));
            }
            HostInput::Raw(_) if has_pane(model) => model.emit(Effect::Forward(input)),
            // Answers of the host terminal are for the shell.
            HostInput::Raw(_) | HostInput::Reply { .. } => {}
        },
        HostEvent::Resized { columns, rows } => {
            model.view.host = (columns, rows);
            model.emit(Effect::ResizePane(layout::layout(model).pane_size()));
        }
        HostEvent::Left => left(model),
    }
}

/// Keeps what was being edited, and closes what lies over the screen: what a person does at the keyboard holds reboots back, and no
/// one does it any more.
fn left(model: &mut Model) {
    leave_editors(model);
    model.view.overlay = model
        .view
        .overlay
        .take()
        .filter(|over| *over == Overlay::Exited);
}

/// Reports whether what is typed goes to the hosted program.
#[must_use]
pub fn has_pane(model: &Model) -> bool {
    model.view.focus == Focus::Pane && model.view.overlay.is_none() && model.view.copy.is_none()
}

fn key(model: &mut Model, key: KeyEvent, raw: Vec<u8>) {
    if std::mem::take(&mut model.view.prefixed) {
        model.view.shows_keys = false;
        if model.keys().is_prefix(&key) {
            return to_pane(model, key, raw);
        }
        if let Some(action) = model.keys().action(&key, true) {
            return act(model, action);
        }
        model.info("no such key after the prefix: the prefix and then `?` shows help");
        return;
    }
    if model.keys().is_prefix(&key) {
        model.view.prefixed = true;
        return model.emit(Effect::SetTimer(TimerId::Prefix, HESITATION));
    }
    if let Some(action) = model.keys().action(&key, false) {
        return act(model, action);
    }
    if has_pane(model) {
        return to_pane(model, key, raw);
    }
    let key = if takes_text(model) {
        key
    } else {
        on_latin_keyboard(key)
    };
    if let Some(overlay) = model.view.overlay {
        return overlay_key(model, overlay, key);
    }
    match model.view.focus {
        Focus::Pane => copy::key(model, key),
        Focus::Scratchpad => {
            let answer = model.draft.notes.key(key, model.now);
            carry_out(model, answer);
        }
        Focus::Handoff => handoff_key(model, key),
        Focus::History => history::key(model, key),
    }
}

/// Reports whether what is typed now is a text: in an editor, or a search.
fn takes_text(model: &Model) -> bool {
    let view = &model.view;
    match (view.overlay, view.focus) {
        (Some(Overlay::Help { .. }), _) => true,
        (Some(Overlay::Review), _) => {
            model.draft.handoff.editor.is_some() || view.reading.typing.is_some()
        }
        (Some(_), _) => false,
        (None, Focus::Pane) => view.copy_search().is_some(),
        (None, Focus::Scratchpad) => model.draft.notes.editor().is_some(),
        (None, Focus::Handoff) => {
            let panel = &model.draft.handoff;
            panel.editor.is_some() || panel.reading.typing.is_some()
        }
        (None, Focus::History) => view.history.typing,
    }
}

/// Returns the key by its place on a Latin keyboard, where its letter is of another script: `y` copies in each layout.
fn on_latin_keyboard(mut key: KeyEvent) -> KeyEvent {
    if let KeyCode::Char(c) = key.code
        && let Some(latin) = keymap::latin_key(c)
    {
        key.code = KeyCode::Char(latin);
    }
    key
}

/// Sends a key on to the child and notes that the human types.
fn to_pane(model: &mut Model, key: KeyEvent, raw: Vec<u8>) {
    if !has_pane(model) || suspend::continue_agent(model) {
        return;
    }
    if model.session.agent.state == AgentState::Exited {
        if key.code == KeyCode::Enter {
            reboot::restart(model);
        }
        return;
    }
    if decides_prompt(model, &key) {
        return;
    }
    model.session.agent.typed(&key, model.now);
    // A person who types has seen what the last reboot has brought.
    model.view.card = None;
    autopilot::on(model, RunInput::PersonTyped);
    model.emit(Effect::SetTimer(
        TimerId::Typing,
        model.config.reboot.typing_quiet,
    ));
    model.emit(Effect::ScrollPane(Scroll::Bottom));
    model.emit(Effect::Forward(HostInput::Key { event: key, raw }));
    let enter = key.code == KeyCode::Enter && key.modifiers.is_empty();
    if model.session.agent.state == AgentState::Dialog && (enter || key.code == KeyCode::Esc) {
        model.session.answered_by_key(&mut model.scratch.effects);
    }
    if model.reboot.attempt.is_some() {
        turn::wait_for_quiet(model);
    }
}

/// Decides about a prompt that is held, if this key does.
fn decides_prompt(model: &mut Model, key: &KeyEvent) -> bool {
    match (key.code, key.modifiers.is_empty()) {
        (KeyCode::Enter, true) => model.session.send_prompt(&mut model.scratch.effects),
        (KeyCode::Esc, true) => model.session.put_prompt_back(&mut model.scratch.effects),
        _ => false,
    }
}

/// Does what a key of the keymap asks for.
pub fn act(model: &mut Model, action: Action) {
    match action {
        Action::Help => {
            let open = matches!(model.view.overlay, Some(Overlay::Help { .. }));
            model.view.overlay = (!open).then_some(Overlay::Help { scroll: 0 });
            model.view.help = HelpSearch::default();
        }
        Action::Messages => {
            let open = matches!(model.view.overlay, Some(Overlay::Messages { .. }));
            model.view.overlay = (!open).then_some(Overlay::Messages { scroll: 0 });
        }
        Action::Chart => {
            let open = model.view.overlay == Some(Overlay::Chart);
            model.view.overlay = (!open).then_some(Overlay::Chart);
        }
        Action::Wider => resize_panels(model, 2),
        Action::Narrower => resize_panels(model, -2),
        Action::FocusNext => focus_next(model),
        Action::FocusDirection(direction) => focus_direction(model, direction),
        Action::Scratchpad => toggle_focus(model, Focus::Scratchpad),
        Action::Handoff => toggle_focus(model, Focus::Handoff),
        Action::History => toggle_focus(model, Focus::History),
        Action::Reboot => {
            leave_editors(model);
            model.session.put_prompt_back(&mut model.scratch.effects);
            show_refusal(reboot::request(model, Cause::Key, true), model);
        }
        Action::Defer => show_refusal(reboot::cancel(model, true), model),
        Action::Mode => control::next_mode(model),
        Action::Pause => show_refusal(autopilot::toggle(model), model),
        Action::Zoom => {
            model.view.zoomed = !model.view.zoomed;
            model.emit(Effect::ResizePane(layout::layout(model).pane_size()));
        }
        Action::Scroll => {
            set_focus(model, Focus::Pane);
            copy::toggle(model);
        }
        Action::Checkpoint => checkpoint::by_key(model),
        Action::Undo => show_refusal(reboot::undo(model), model),
        Action::EditExternally => {
            leave_editors(model);
            external::open(model);
        }
        Action::Detach => model.emit(Effect::Detach),
        Action::Quit => control::quit_key(model),
    }
}

/// Shows the person the reason that something was not done, if so.
fn show_refusal(done: Result<(), Refusal>, model: &mut Model) {
    if let Err(why) = done {
        model.error(why.to_string());
    }
}

fn toggle_focus(model: &mut Model, focus: Focus) {
    let to = if model.view.focus == focus {
        Focus::Pane
    } else {
        focus
    };
    set_focus(model, to);
}

fn focus_next(model: &mut Model) {
    let at = Focus::ALL
        .iter()
        .position(|focus| *focus == model.view.focus)
        .unwrap_or(0);
    set_focus(model, Focus::ALL[(at + 1) % Focus::ALL.len()]);
}

fn focus_direction(model: &mut Model, direction: Direction) {
    let panels = &Focus::ALL[1..];
    let at = panels.iter().position(|focus| *focus == model.view.focus);
    let to = match (direction, at) {
        (Direction::Left, _) => Focus::Pane,
        (Direction::Right, None) => panels[0],
        (Direction::Down, Some(at)) => panels[(at + 1).min(panels.len() - 1)],
        (Direction::Up, Some(at)) => panels[at.saturating_sub(1)],
        _ => model.view.focus,
    };
    set_focus(model, to);
}

fn overlay_key(model: &mut Model, overlay: Overlay, key: KeyEvent) {
    match overlay {
        Overlay::Help { .. } => help_key(model, key),
        Overlay::Messages { .. } => {
            if matches!(key.code, KeyCode::Esc | KeyCode::Char('q')) {
                model.view.overlay = None;
            } else if let Some(rows) = rows_of(key) {
                scroll_overlay(model, rows);
            }
        }
        Overlay::Chart => match key.code {
            KeyCode::Esc | KeyCode::Char('q' | 'g') => model.view.overlay = None,
            KeyCode::Char('c') => model.view.overlay = Some(Overlay::Contents { scroll: 0 }),
            _ => {}
        },
        Overlay::Contents { .. } => match key.code {
            KeyCode::Esc | KeyCode::Char('q') => model.view.overlay = None,
            KeyCode::Char('c' | 'g') => model.view.overlay = Some(Overlay::Chart),
            _ => {
                if let Some(rows) = rows_of(key) {
                    scroll_overlay(model, rows);
                }
            }
        },
        Overlay::Review => review_key(model, key),
        Overlay::Replay { .. } => replay::key(model, key),
        Overlay::Quit => match key.code {
            KeyCode::Enter | KeyCode::Char('y' | 'q') => control::quit(model, 0, None),
            KeyCode::Char('d') => {
                model.view.overlay = None;
                model.emit(Effect::Detach);
            }
            _ => model.view.overlay = None,
        },
        Overlay::Exited => match key.code {
            KeyCode::Enter | KeyCode::Char('r') => reboot::restart(model),
            KeyCode::Char('q') => control::quit(model, 0, None),
            KeyCode::Esc => model.view.overlay = None,
            _ => {}
        },
    }
}

/// Handles a key in the help page: what is typed is searched for, and none of it reaches the agent.
fn help_key(model: &mut Model, key: KeyEvent) {
    match model.view.help.key(key, &model.config.keys) {
        HelpKey::Stay => model.view.overlay = Some(Overlay::Help { scroll: 0 }),
        HelpKey::Scroll(rows) => scroll_overlay(model, rows),
        HelpKey::Close => model.view.overlay = None,
        HelpKey::Run(action) => {
            model.view.overlay = None;
            act(model, action);
        }
    }
}

/// Makes the panels wider or narrower by so many cells.
fn resize_panels(model: &mut Model, by: i32) {
    let now = layout::layout(model);
    let width = now.whole.width.saturating_sub(now.pane.width);
    if width == 0 {
        model.info("the panels are not beside the pane: nothing to resize");
        return;
    }
    model.view.set_panel_width(i32::from(width) + by);
    model.emit(Effect::ResizePane(layout::layout(model).pane_size()));
}

/// Carries out what follows from a key, and what it asks of other features.
fn carry_out(model: &mut Model, (done, request): (Consequences, Option<Request>)) {
    done.carry_out(model);
    match request {
        None => {}
        Some(Request::FocusPane) => set_focus(model, Focus::Pane),
    }
}

fn review_key(model: &mut Model, key: KeyEvent) {
    if model.draft.handoff.editor.is_some() {
        return handoff_key(model, key);
    }
    let panel = &model.draft.handoff;
    let listed = panel.lists_missing.then(|| panel.check.to_document());
    let text = listed.unwrap_or_else(|| panel.current().text.clone());
    // A pattern that is being typed has every key.
    if model.view.reading.typing.is_some() {
        return model.view.reading.key(key, &text);
    }
    match key.code {
        KeyCode::Enter | KeyCode::Char('a') => {
            show_refusal(reboot::approve(model, Approval::Person), model);
        }
        KeyCode::Char('t') => show_refusal(trim::toggle(model), model),
        KeyCode::Char('w') => show_refusal(trim::go_round(model), model),
        KeyCode::Char('y') => {
            let mut done = Consequences::default();
            done.copy_document("handoff", &text);
            done.carry_out(model);
        }
        KeyCode::Char('d') => show_refusal(reboot::cancel(model, true), model),
        KeyCode::Esc => show_refusal(reboot::cancel(model, false), model),
        KeyCode::Char('e') => editing::begin(model),
        KeyCode::Char('x') => handoff::discard_edit(model),
        KeyCode::Char('m') => {
            handoff::toggle_missing(model);
            model.view.reading = if model.draft.handoff.lists_missing {
                Reading::default()
            } else {
                Reading::at_first_section(&model.draft.handoff.current().text)
            };
        }
        KeyCode::Char('+') => handoff::add_missing(model),
        KeyCode::Char('P') => handoff::pin_prompt(model, editing::line_in_view(model)),
        KeyCode::Char('D') => handoff::drop_prompt(model, editing::line_in_view(model)),
        _ => model.view.reading.key(key, &text),
    }
}

fn handoff_key(model: &mut Model, key: KeyEvent) {
    if let Some(edited) = model.draft.handoff.edit_key(key) {
        return match edited {
            Edited::Done => editing::end(model),
            // The next key is Esc for many, and must not close what lies below the editor.
            Edited::Save => handoff::save_edit(model),
            Edited::Changed | Edited::Moved => {}
        };
    }
    // A pattern that is being typed has every key.
    if model.draft.handoff.reading.typing.is_some() {
        return read_handoff(model, key);
    }
    match key.code {
        KeyCode::Char('e' | 'i') | KeyCode::Enter => editing::begin(model),
        KeyCode::Char('x') => handoff::discard_edit(model),
        KeyCode::Char('m') => handoff::toggle_missing(model),
        KeyCode::Char('+') => handoff::add_missing(model),
        KeyCode::Char('p') => paste_handoff(model),
        KeyCode::Char('y') => {
            let mut done = Consequences::default();
            done.copy_document("handoff", &model.draft.handoff.current().text);
            done.carry_out(model);
        }
        KeyCode::Esc | KeyCode::Char('q') => set_focus(model, Focus::Pane),
        _ => read_handoff(model, key),
    }
}

/// Handles a key that reads what the handoff panel shows.
fn read_handoff(model: &mut Model, key: KeyEvent) {
    let text = editing::shown_text(model);
    model.draft.handoff.reading.key(key, &text);
}

/// Puts the handoff into the agent's prompt for the human to look at and submit.
fn paste_handoff(model: &mut Model) {
    let text = model.draft.handoff.current().text.clone();
    match submit::fill(model, &text, None) {
        Ok(()) => {
            model.session.agent.prompt_filled();
            set_focus(model, Focus::Pane);
        }
        Err(why) => model.error(format!("the handoff is not pasted: {why}")),
    }
}

/// Handles a paste as text, never as keys: it goes to the child, into an editor, or nowhere.
fn paste(model: &mut Model, piece: HostInput) {
    let in_editor = match (model.view.overlay, model.view.focus) {
        (Some(Overlay::Review), _) | (None, Focus::Handoff) => model.draft.handoff.editor.is_some(),
        (None, Focus::Scratchpad) => model.draft.notes.editor().is_some(),
        _ => false,
    };
    if has_pane(model) {
        if model.session.agent.suspended.is_some() {
            // Its last piece continues the agent, or the rest would be passed on without a beginning.
            if piece == HostInput::PasteEnd && suspend::continue_agent(model) {
                model.info("the agent goes on; what was pasted was not passed on: paste it again");
            }
            return;
        }
        model.session.agent.pasted(model.now);
        autopilot::on(model, RunInput::PersonTyped);
        model.emit(Effect::Forward(piece));
        if model.reboot.attempt.is_some() {
            turn::wait_for_quiet(model);
        }
        return;
    }
    match piece {
        HostInput::PasteStart => model.view.pasting.clear(),
        HostInput::PasteChunk(bytes) => {
            let pasting = &mut model.view.pasting;
            let room = pitstop_handoff::scratchpad::MAX_BYTES.saturating_sub(pasting.len());
            pasting.extend_from_slice(&bytes[..bytes.len().min(room)]);
        }
        HostInput::PasteEnd => {
            let text =
                String::from_utf8_lossy(&std::mem::take(&mut model.view.pasting)).into_owned();
            let text = text.replace("\r\n", "\n").replace('\r', "\n");
            if model.view.overlay.is_none()
                && model.view.focus == Focus::Pane
                && copy::paste(model, &text)
            {
                return;
            }
            if !in_editor {
                model.info("nothing here takes a paste: focus the pane, or press e to edit");
                return;
            }
            let notes = model.view.overlay.is_none() && model.view.focus == Focus::Scratchpad;
            if notes {
                let timer = model.draft.notes.paste(&text);
                model.emit_all(timer);
            } else {
                model.draft.handoff.paste(&text);
            }
        }
        _ => {}
    }
}
