//! The actions of the mouse, by what lies under it when a button goes down.
//!
//! ```text
//! press on    the agent's text    the agent, if it has asked for the mouse; else copy mode, and so with Shift
//!             the border          resizes the panels
//!             a panel, the pane   focuses it
//! then        moves, release      go to whom the press went to, wherever the pointer is and whatever has opened meanwhile
//! the wheel   scrolls what lies under it
//! ```

use crossterm::event::{KeyModifiers, MouseButton, MouseEvent, MouseEventKind};

use pitstop_terminal::input::HostInput;

use crate::app::{
    effect::Effect,
    model::{Focus, Model, copy::MousePlace, view::MouseGrip},
    view::{focus::set_focus, layout},
};

/// The number of lines that the wheel moves.
const WHEEL_LINES: i32 = 3;

/// Handles one of the three buttons, the wheel, or a move.
pub(super) fn mouse(model: &mut Model, mouse: MouseEvent, input: HostInput) {
    match mouse.kind {
        MouseEventKind::Down(button) => press(model, mouse, button, input),
        MouseEventKind::Drag(_) => drag(model, mouse, input),
        MouseEventKind::Up(button) => release(model, mouse, button, input),
        MouseEventKind::Moved => {
            let_go(model, mouse);
            // Only the child makes use of it.
            let there = layout::layout(model).cell_of_pane(mouse.column, mouse.row);
            if there.is_some() && model.view.has_pane() {
                model.emit(Effect::Forward(input));
            }
        }
        MouseEventKind::ScrollDown => wheel(model, mouse, Some(WHEEL_LINES), input),
        MouseEventKind::ScrollUp => wheel(model, mouse, Some(-WHEEL_LINES), input),
        MouseEventKind::ScrollLeft | MouseEventKind::ScrollRight => {
            wheel(model, mouse, None, input);
        }
    }
}

/// Handles a button beyond the third and the wheel: only the hosted program makes use of it.
pub(super) fn other_button(model: &mut Model, input: HostInput) {
    let HostInput::OtherButton {
        number,
        pressed,
        column,
        row,
        ..
    } = input
    else {
        return;
    };
    let begins = pressed && number & 32 == 0;
    match model.view.grip {
        Some(MouseGrip::Agent(_) | MouseGrip::AgentOther) => {}
        None if begins && is_for_agent(model, KeyModifiers::NONE, (column, row)) => {
            model.view.grip = Some(MouseGrip::AgentOther);
        }
        _ => return,
    }
    if !pressed && model.view.grip == Some(MouseGrip::AgentOther) {
        model.view.grip = None;
    }
    model.emit(Effect::Forward(input));
}

/// Reports whether a press at this cell of the host terminal is one for the hosted program.
fn is_for_agent(model: &Model, modifiers: KeyModifiers, (column, row): (u16, u16)) -> bool {
    model.view.has_pane()
        && model.session.agent.takes_mouse
        && !modifiers.contains(KeyModifiers::SHIFT)
        && layout::layout(model).cell_of_pane(column, row).is_some()
}

/// Reports whether the mouse over the pane reads its text: it does unless the child has asked for it, and then with Shift.
fn is_for_copy_mode(model: &Model, mouse: MouseEvent) -> bool {
    model.view.copy.is_on()
        || !model.session.agent.takes_mouse
        || mouse.modifiers.contains(KeyModifiers::SHIFT)
}

fn press(model: &mut Model, mouse: MouseEvent, button: MouseButton, input: HostInput) {
    match model.view.grip {
        // This is a second button of the agent's.
        Some(MouseGrip::Agent(first)) if first != button => {
            return model.emit(Effect::Forward(input));
        }
        _ => let_go(model, mouse),
    }
    let layout = layout::layout(model);
    let left = button == MouseButton::Left;
    let under = layout.at(mouse.column, mouse.row);
    let grip = if model.view.overlay.is_some() {
        MouseGrip::Done
    } else if left && is_on_border(&layout, mouse) {
        MouseGrip::Border
    } else if under == Some(Focus::Pane) && model.view.focus == Focus::Pane {
        if is_for_agent(model, mouse.modifiers, (mouse.column, mouse.row)) {
            model.emit(Effect::Forward(input));
            MouseGrip::Agent(button)
        } else if left && is_for_copy_mode(model, mouse) {
            read_text(model, mouse);
            MouseGrip::Copy
        } else {
            MouseGrip::Done
        }
    } else {
        if let Some(focus) = under.filter(|_| left) {
            set_focus(model, focus);
        }
        MouseGrip::Done
    };
    model.view.grip = Some(grip);
}

/// Gives copy mode a report of the mouse; returns false if it means nothing there.
fn read_text(model: &mut Model, mouse: MouseEvent) -> bool {
    let layout = layout::layout(model);
    let place = MousePlace {
        cell: layout.cell_of_pane(mouse.column, mouse.row),
        beside: layout.beside_pane(mouse.column, mouse.row),
    };
    let effects = model.view.copy.mouse(mouse.kind, place, model.now);
    let reads = effects.is_some();
    model.emit_all(effects.into_iter().flatten());
    reads
}

/// Ends a press whose release was lost: the host terminal reports none that happens outside of its window.
fn let_go(model: &mut Model, mouse: MouseEvent) {
    if let Some(MouseGrip::Agent(button)) = model.view.grip.take() {
        let event = MouseEvent {
            kind: MouseEventKind::Up(button),
            ..mouse
        };
        let raw = Vec::new();
        model.emit(Effect::Forward(HostInput::Mouse { event, raw }));
    }
}

fn drag(model: &mut Model, mouse: MouseEvent, input: HostInput) {
    match model.view.grip {
        Some(MouseGrip::Agent(_) | MouseGrip::AgentOther) => model.emit(Effect::Forward(input)),
        Some(MouseGrip::Copy) => {
            read_text(model, mouse);
        }
        Some(MouseGrip::Border) => {
            let right = layout::layout(model)
                .whole
                .width
                .saturating_sub(mouse.column);
            model.view.set_panel_width(i32::from(right));
            model.emit(Effect::ResizePane(layout::layout(model).pane_size()));
        }
        Some(MouseGrip::Done) | None => {}
    }
}

fn release(model: &mut Model, mouse: MouseEvent, button: MouseButton, input: HostInput) {
    match model.view.grip {
        Some(MouseGrip::Agent(first)) => {
            if first == button {
                model.view.grip = None;
            }
            model.emit(Effect::Forward(input));
        }
        Some(MouseGrip::Copy) => {
            model.view.grip = None;
            read_text(model, mouse);
        }
        Some(MouseGrip::AgentOther) => model.emit(Effect::Forward(input)),
        Some(MouseGrip::Border | MouseGrip::Done) | None => model.view.grip = None,
    }
}

fn wheel(model: &mut Model, mouse: MouseEvent, lines: Option<i32>, input: HostInput) {
    if model.view.overlay.is_some() {
        if let Some(lines) = lines {
            model.view.scroll_overlay(lines);
        }
        return;
    }
    match (layout::layout(model).at(mouse.column, mouse.row), lines) {
        (Some(Focus::Pane), _) => {
            let reads = model.view.focus == Focus::Pane && is_for_copy_mode(model, mouse);
            if !reads || !read_text(model, mouse) {
                model.emit(Effect::Forward(input));
            }
        }
        (Some(Focus::Scratchpad), Some(lines)) => model.draft.notes.scroll(lines),
        (Some(Focus::Handoff), Some(lines)) => model.draft.handoff.reading.scroll(lines),
        _ => {}
    }
}

/// Reports whether a press is on the border between pane and panels: on both of the lines side by side, but not their ends.
fn is_on_border(layout: &layout::Layout, mouse: MouseEvent) -> bool {
    let beside = layout.bordered && layout.pane.width < layout.whole.width;
    let border = layout.pane.right().saturating_sub(1);
    let inside = mouse.row > 0 && mouse.row + 1 < layout.pane.bottom();
    beside && inside && (border..=border + 1).contains(&mouse.column)
}
