//! The way from keys, mouse and pastes to what they do, by what has the focus.
//!
//! ```text
//! prefix ──► action         always ours
//! action     (direct keys)  always ours
//! overlay    review, help, quit, exited: has the rest while it is open
//! focus      pane: byte-exact to the child · panels: their own keys
//! ```

use std::time::Duration;

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};

use crate::{
    api::wire::AgentState,
    lineage::{Cause, Way},
};
use pitstop_base::keymap::{Action, on_latin_keyboard};
use pitstop_terminal::{input::HostInput, screen::Scroll};

use crate::app::{
    autopilot::{self, RunInput},
    consequences::{Consequences, KeyOutcome, Request},
    draft::checkpoint::{self, SaveOrder},
    effect::Effect,
    event::{HostEvent, TimerId},
    facts,
    model::{
        CarryOut, Editor, Focus, Model, Overlay,
        draft::HandoffDraft,
        reading::Reading,
        reboot::Replaced,
        view::{HelpSearch, View},
    },
    outside::control,
    reboot::{
        self, Approval, RebootAction,
        submit::{self, Then},
        trim,
    },
    refusal::Refusal,
    session::turn,
    view::{editing, external, layout, mouse, reading::same_line},
};

/// The time after the prefix at which the keys that can follow are shown: one who knows the key is faster.
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
            HostInput::OtherButton {
                number,
                pressed,
                column,
                row,
                ..
            } => {
                let (at, none) = (layout::layout(model), KeyModifiers::NONE);
                let takes = mouse::is_for_agent(model, &at, none, (column, row));
                let begins = takes && pressed && number & 32 == 0;
                if model.view.other_button(pressed, begins) {
                    model.emit(Effect::Forward(input));
                }
            }
            HostInput::Focus(focused) => {
                model.view.host_focused = Some(focused);
                model.emit(Effect::FocusPane(focused && model.view.has_pane()));
            }
            HostInput::Raw(_) if model.view.has_pane() => model.emit(Effect::Forward(input)),
            // Answers of the host terminal are for the shell.
            HostInput::Raw(_) | HostInput::Reply { .. } => {}
        },
        HostEvent::Resized { columns, rows } => {
            model.view.host = (columns, rows);
        }
        HostEvent::Left => {
            // What a person does at the keyboard holds reboots back, and no one does it any more.
            model.draft.leave_editors(model.now).carry_out(model);
            model.view.overlay.take_if(|over| *over != Overlay::Exited);
        }
    }
}

fn key(model: &mut Model, key: KeyEvent, raw: Vec<u8>) {
    if std::mem::take(&mut model.view.prefixed) {
        model.view.shows_keys = false;
        if model.keys().is_prefix(&key) {
            return to_pane(model, key, raw);
        }
        if let Some(action) = model.keys().action(&key, true) {
            return carry_out(model, (Consequences::default(), Some(Request::Act(action))));
        }
        if key.code != KeyCode::Esc {
            let prefix = model.keys().prefix().label();
            let help = model.keys().hint(Action::Help);
            let help = help.map_or_else(String::new, |help| format!(": {help} shows all keys"));
            model.info(format!("no such key after {prefix}{help}"));
        }
        return;
    }
    if model.keys().is_prefix(&key) {
        model.view.prefixed = true;
        return model.emit(Effect::SetTimer(TimerId::Prefix, HESITATION));
    }
    if let Some(action) = model.keys().action(&key, false) {
        return carry_out(model, (Consequences::default(), Some(Request::Act(action))));
    }
    if model.view.has_pane() {
        return to_pane(model, key, raw);
    }
    // What takes a text, and copy mode, have chords of their own.
    let key = match (model.view.overlay, model.view.focus) {
        _ if takes_text(model) => key,
        (None, Focus::Pane) => on_latin_keyboard(key),
        _ => without_chord(on_latin_keyboard(key)),
    };
    let outcome = own_key(model, key);
    carry_out(model, outcome);
}

/// Handles a key of what has the focus, other than the hosted program.
fn own_key(model: &mut Model, key: KeyEvent) -> KeyOutcome {
    match (model.view.overlay, model.view.focus) {
        (Some(Overlay::Review), _) if model.draft.handoff.editor.is_none() => {
            let (text, line) = (editing::shown_text(model), editing::line_in_view(model));
            let ways = [trim::other_way(model), trim::next_way(model)];
            let reading = &mut model.view.reading;
            model.draft.review_key(key, reading, (&text, line), ways)
        }
        (Some(Overlay::Review), _) | (None, Focus::Handoff) => {
            let reads = model.draft.handoff.editor.is_none();
            let shown = reads.then(|| (editing::shown_text(model), editing::line_in_view(model)));
            let (shown, line) = shown.unwrap_or_default();
            model.draft.panel_key(key, (&shown, line))
        }
        (Some(overlay), _) => model.view.overlay_key(overlay, key, &model.config.keys),
        (None, Focus::Pane) => {
            let all = model.lineage.iterations();
            let effects = model.view.copy.key(key, all, &model.config.keys);
            (Consequences::from(effects), None)
        }
        (None, Focus::Scratchpad) => model.draft.notes.key(key, model.now),
        (None, Focus::History) => {
            let busy = model.session.agent.state == AgentState::Busy;
            let busy = busy.then_some(model.session.id);
            let (history, has_run) = (&mut model.view.history, model.autopilot.is_some());
            history.key(key, &model.lineage, has_run, busy)
        }
    }
}

/// Carries out what follows from a key, and what it asks of another feature; the person is shown why that was not done, if so.
fn carry_out(model: &mut Model, (done, request): KeyOutcome) {
    done.carry_out(model);
    let mut answer = Ok(());
    match request {
        None => {}
        Some(Request::FocusPane) => model.view.move_focus(Focus::Pane).carry_out(model),
        Some(Request::Act(action)) => answer = act(model, action),
        Some(Request::EditHandoff) => {
            let line = editing::first_line(model);
            model.draft.handoff.edit(line);
        }
        Some(Request::EndHandoffEdit) => {
            let editor = model.draft.handoff.editor.as_ref();
            let place = editor.map(|editor| (editor.text(), editor.area.cursor().0));
            model.draft.finish_edit().carry_out(model);
            let shown = editing::shown_text(model);
            let line = place.and_then(|(text, row)| same_line(&text, row, &shown));
            match (line, model.view.overlay) {
                (None, _) => {}
                (Some(line), Some(Overlay::Review)) => model.view.reading.show(&shown, line),
                (Some(line), _) => model.draft.handoff.reading.show(&shown, line),
            }
        }
        // It is there for the human to look at and submit.
        Some(Request::PasteHandoff) => {
            let text = model.draft.handoff.current().text.clone();
            match submit::give(model, &text, Then::Leave(None)) {
                Ok(()) => {
                    model.session.agent.prompt_filled();
                    model.view.move_focus(Focus::Pane).carry_out(model);
                }
                Err(why) => model.error(format!("the handoff is not pasted: {why}")),
            }
        }
        Some(Request::Quit) => control::quit(model, 0, None),
        Some(Request::Restart) => _ = reboot::act(model, RebootAction::Restart),
        Some(Request::Approve) => {
            answer = reboot::act(model, RebootAction::Approve(Approval::Person));
        }
        Some(Request::Take(way)) => answer = reboot::act(model, RebootAction::Take(way)),
        Some(Request::Cancel) => {
            answer = reboot::act(model, RebootAction::Cancel { defer: false });
        }
        Some(Request::Resume {
            session,
            nonce,
            parent,
        }) => {
            let replaced = nonce.map(|nonce| Replaced { session, nonce });
            answer = reboot::act(model, RebootAction::Resume(session, replaced, parent));
            if answer.is_ok() {
                model.view.history.close();
                model.view.move_focus(Focus::Pane).carry_out(model);
            }
        }
    }
    if let Err(why) = answer {
        model.error(why.to_string());
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
        (None, Focus::Pane) => view.copy.search().is_some(),
        (None, Focus::Scratchpad) => model.draft.notes.editor().is_some(),
        (None, Focus::Handoff) => {
            let panel = &model.draft.handoff;
            panel.editor.is_some() || panel.reading.typing.is_some()
        }
        (None, Focus::History) => view.history.typing,
    }
}

/// Returns no letter for one with Ctrl, Alt or another modifier than Shift. Ctrl-A does not approve, and neither does an `a` that is
/// typed so soon after Esc that both come as Alt-A.
fn without_chord(mut key: KeyEvent) -> KeyEvent {
    let is_chord = !key.modifiers.difference(KeyModifiers::SHIFT).is_empty();
    if is_chord && matches!(key.code, KeyCode::Char(_)) {
        key.code = KeyCode::Null;
    }
    key
}

/// Sends a key on to the child and notes that the human types.
fn to_pane(model: &mut Model, key: KeyEvent, raw: Vec<u8>) {
    if !model.view.has_pane() {
        return;
    }
    if let Some(continued) = model.session.agent.continued() {
        continued.carry_out(model);
        return model.emit(Effect::ContinueAgent);
    }
    if model.session.agent.state == AgentState::Exited {
        if key.code == KeyCode::Enter {
            let _ = reboot::act(model, RebootAction::Restart);
        }
        return;
    }
    let effects = &mut model.scratch.effects;
    let decided = match (key.code, key.modifiers.is_empty()) {
        (KeyCode::Enter, true) => model.session.send_prompt(effects),
        (KeyCode::Esc, true) => model.session.put_prompt_back(effects),
        _ => false,
    };
    if decided {
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
        model.emit_all(turn::quiet_timer(model));
    }
}

/// Returns the part of the screen that an action gives the keys: a panel, or the pane if the panel has them and is in sight.
fn wanted_focus(view: &View, action: Action) -> Focus {
    let panel = match action {
        Action::FocusNext => return view.focus.next(),
        Action::FocusDirection(direction) => return view.focus.toward(direction),
        Action::Scratchpad => Focus::Scratchpad,
        Action::Handoff => Focus::Handoff,
        Action::History => Focus::History,
        _ => Focus::Pane,
    };
    match view.overlay {
        Some(_) => panel,
        None => panel.or_back(view.focus),
    }
}

/// Does what a key of the keymap asks for, or refuses to.
pub fn act(model: &mut Model, action: Action) -> Result<(), Refusal> {
    match action {
        Action::Help => {
            model.view.toggle_overlay(Overlay::Help { scroll: 0 });
            model.view.help = HelpSearch::default();
        }
        Action::Messages => model.view.toggle_overlay(Overlay::Messages { scroll: 0 }),
        Action::Chart => model.view.toggle_overlay(Overlay::Chart),
        Action::Wider | Action::Narrower => {
            let width = layout::layout(model).width_beside();
            if width == 0 {
                model.info("the panels are not beside the pane: nothing to resize");
                return Ok(());
            }
            let by = if action == Action::Wider { 2 } else { -2 };
            let before = model.view.panel_width;
            model.view.set_panel_width(i32::from(width) + by);
            if layout::layout(model).width_beside() == width {
                model.view.panel_width = before;
                let how = action.name();
                model.info(format!(
                    "the panels get no {how} in a terminal of this width"
                ));
            }
        }
        Action::FocusNext
        | Action::FocusDirection(_)
        | Action::Scratchpad
        | Action::Handoff
        | Action::History => {
            let focus = wanted_focus(&model.view, action);
            model.view.move_focus(focus).carry_out(model);
        }
        Action::Reboot => {
            model.draft.leave_editors(model.now).carry_out(model);
            model.session.put_prompt_back(&mut model.scratch.effects);
            return reboot::act(model, RebootAction::Begin(Cause::Key));
        }
        Action::Defer => return reboot::act(model, RebootAction::Cancel { defer: true }),
        Action::Mode => {
            model.reboot.go_to_next_mode();
            model.info(control::mode_words(model.reboot.mode));
        }
        Action::Pause => {
            let order = autopilot::toggle(model);
            return autopilot::order(model, order);
        }
        Action::Zoom => model.view.zoomed = !model.view.zoomed,
        Action::Scroll => {
            model.view.move_focus(Focus::Pane).carry_out(model);
            // The end of the client takes its full screen with it.
            let has_ended = model.session.agent.state == AgentState::Exited;
            let keeps_nothing = if has_ended {
                facts::has_conversation(model)
            } else {
                model.session.agent.full_screen && !model.is_generic()
            };
            let (session, iteration) = (model.session.id, model.session.iteration());
            let read = keeps_nothing.then_some(Effect::ReadTranscript(session, iteration));
            model.view.copy.toggle(read).carry_out(model);
        }
        Action::Checkpoint => {
            let tags = vec![checkpoint::MANUAL.to_owned()];
            checkpoint::save(model, SaveOrder::Tagged(tags));
            model.info("checkpoint saved");
        }
        Action::Undo => return reboot::act(model, RebootAction::Undo),
        Action::EditExternally => {
            model.draft.leave_editors(model.now).carry_out(model);
            let (lent, order) = external::lend(model);
            model.view.external = Some(lent);
            model.emit(order);
        }
        Action::Detach => model.emit(Effect::Detach),
        Action::Quit if control::asks_before_quit(model) => model.view.open(Overlay::Quit),
        Action::Quit => control::quit(model, 0, None),
    }
    Ok(())
}

impl HandoffDraft {
    /// Handles a key in the review, which shows this text with this line in view. The ways are the ones that two keys take.
    fn review_key(
        &mut self,
        key: KeyEvent,
        reading: &mut Reading,
        (text, line): (&str, usize),
        [other, next]: [Way; 2],
    ) -> KeyOutcome {
        let mut done = Consequences::default();
        let mut request = None;
        match key.code {
            // A pattern that is being typed has every key.
            _ if reading.typing.is_some() => reading.key(key, text, line),
            KeyCode::Enter | KeyCode::Char('a') => request = Some(Request::Approve),
            KeyCode::Char('t') => request = Some(Request::Take(other)),
            KeyCode::Char('w') => request = Some(Request::Take(next)),
            KeyCode::Char('d') => request = Some(Request::Act(Action::Defer)),
            KeyCode::Esc => request = Some(Request::Cancel),
            KeyCode::Char('e') => request = Some(Request::EditHandoff),
            KeyCode::Char('y') => done.copy_document("handoff", &self.handoff.current().text),
            KeyCode::Char('x') => done = self.discard_edit(),
            KeyCode::Char('m') => {
                self.handoff.toggle_missing();
                *reading = if self.handoff.lists_missing {
                    Reading::default()
                } else {
                    Reading::at_first_section(&self.handoff.current().text)
                };
            }
            KeyCode::Char('+') => done = self.add_missing(),
            KeyCode::Char('P') => done = self.pin_prompt(line),
            KeyCode::Char('D') => done = self.drop_prompt(line),
            _ => reading.key(key, text, line),
        }
        (done, request)
    }
}

/// The most characters of a paste that are searched for.
const SEARCHED: usize = 200;

/// Returns the editor that has the keys, if one has.
fn open_editor(model: &Model) -> Option<&Editor> {
    match (model.view.overlay, model.view.focus) {
        (Some(Overlay::Review), _) | (None, Focus::Handoff) => model.draft.handoff.editor.as_ref(),
        (None, Focus::Scratchpad) => model.draft.notes.editor(),
        _ => None,
    }
}

/// Handles a paste as text, never as keys that decide: it goes to the child, into an editor, its first line into a search, or nowhere.
fn paste(model: &mut Model, piece: HostInput) {
    let editor = open_editor(model);
    let in_editor = editor.is_some();
    let searches = takes_text(model) && editor.is_none_or(|editor| editor.search.is_some());
    if model.view.has_pane() {
        if model.session.agent.suspended.is_some() {
            // Its last piece continues the agent, or the rest would be passed on without a beginning.
            if piece == HostInput::PasteEnd
                && let Some(continued) = model.session.agent.continued()
            {
                continued.carry_out(model);
                model.emit(Effect::ContinueAgent);
                model.info("the agent goes on; what was pasted was not passed on: paste it again");
            }
            return;
        }
        model.session.agent.pasted(&piece, model.now);
        autopilot::on(model, RunInput::PersonTyped);
        model.emit(Effect::Forward(piece));
        if model.reboot.attempt.is_some() {
            model.emit_all(turn::quiet_timer(model));
        }
        return;
    }
    let Some(text) = model.view.pasted(piece) else {
        return;
    };
    let place = (model.view.overlay, model.view.focus);
    if place == (None, Focus::Pane)
        && let Some(search) = model.view.copy.paste(&text)
    {
        return model.emit(search);
    }
    if searches {
        let line = text.lines().next().unwrap_or_default();
        for c in line.chars().filter(|c| !c.is_control()).take(SEARCHED) {
            let outcome = own_key(model, KeyEvent::from(KeyCode::Char(c)));
            carry_out(model, outcome);
        }
        return;
    }
    if !in_editor {
        model.info("nothing here takes a paste: focus the pane, or press e to edit");
    } else if place == (None, Focus::Scratchpad) {
        model.draft.notes.paste(&text).carry_out(model);
    } else {
        model.draft.handoff.paste(&text);
    }
}
