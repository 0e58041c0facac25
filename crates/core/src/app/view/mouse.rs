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
    model::{
        CarryOut, Focus, Model, Overlay,
        copy::MousePlace,
        view::{MouseGrip, View},
    },
    view::layout::{self, Layout},
};

/// The number of lines that the wheel moves.
const WHEEL_LINES: i32 = 3;

/// The action of the mouse.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum MouseAct {
    /// The hosted program gets the report.
    Forward,
    /// Copy mode gets the report.
    Copy,
    /// Copy mode gets the report, and otherwise the hosted program.
    CopyOrForward,
    /// A part of the screen gets the focus.
    Focus(Focus),
    /// The panels get this width.
    Resize(i32),
    /// What lies there is scrolled by so many lines: a panel, or the overlay.
    Scroll(Option<Focus>, i32),
}

/// Handles one of the three buttons, the wheel, or a move.
pub(super) fn mouse(model: &mut Model, mouse: MouseEvent, input: HostInput) {
    let layout = layout::layout(model);
    let (grip, act) = mouse_act(model, &layout, mouse);
    let before = std::mem::replace(&mut model.view.grip, grip);
    // The host terminal reports no release that happens outside of its window.
    if let Some(MouseGrip::Agent(button)) = before
        && [MouseEventKind::Moved, MouseEventKind::Down(button)].contains(&mouse.kind)
    {
        let kind = MouseEventKind::Up(button);
        let event = MouseEvent { kind, ..mouse };
        let raw = Vec::new();
        model.emit(Effect::Forward(HostInput::Mouse { event, raw }));
    }
    let Some(act) = act else { return };
    match act {
        MouseAct::Forward => model.emit(Effect::Forward(input)),
        MouseAct::Copy | MouseAct::CopyOrForward => {
            let place = MousePlace {
                cell: layout.cell_of_pane(mouse.column, mouse.row),
                beside: layout.beside_pane(mouse.column, mouse.row),
            };
            match model.view.copy.mouse(mouse.kind, place, model.now) {
                Some(effects) => model.emit_all(effects),
                None if act == MouseAct::Copy => {}
                None => model.emit(Effect::Forward(input)),
            }
        }
        MouseAct::Focus(focus) => model.view.move_focus(focus).carry_out(model),
        MouseAct::Resize(width) => model.view.set_panel_width(width),
        MouseAct::Scroll(None, lines)
            if model.view.overlay == Some(Overlay::Review)
                && model.draft.handoff.editor.is_some() =>
        {
            model.draft.handoff.scroll(lines);
        }
        MouseAct::Scroll(None, lines) => model.view.scroll_overlay(lines),
        MouseAct::Scroll(Some(Focus::Scratchpad), lines) => model.draft.notes.scroll(lines),
        MouseAct::Scroll(Some(Focus::Handoff), lines) => model.draft.handoff.scroll(lines),
        MouseAct::Scroll(Some(Focus::History), lines) if model.view.focus == Focus::History => {
            model.view.history.wheel(lines, &model.lineage);
        }
        MouseAct::Scroll(Some(Focus::Pane | Focus::History), _) => {}
    }
}

/// Returns who has the mouse after a report, and what the report does.
fn mouse_act(
    model: &Model,
    layout: &Layout,
    mouse: MouseEvent,
) -> (Option<MouseGrip>, Option<MouseAct>) {
    let grip = model.view.grip;
    let held = match grip {
        Some(MouseGrip::Agent(_) | MouseGrip::AgentOther) => Some(MouseAct::Forward),
        Some(MouseGrip::Copy) => Some(MouseAct::Copy),
        Some(MouseGrip::Border) => {
            let right = layout.whole.width.saturating_sub(mouse.column);
            Some(MouseAct::Resize(right.into()))
        }
        Some(MouseGrip::Done) | None => None,
    };
    match (mouse.kind, grip) {
        // This is a second button of the agent's.
        (
            MouseEventKind::Down(button) | MouseEventKind::Up(button),
            Some(MouseGrip::Agent(first)),
        ) if first != button => (grip, held),
        (MouseEventKind::Down(button), _) => {
            let (grip, act) = press(model, layout, mouse, button);
            (Some(grip), act)
        }
        (MouseEventKind::Drag(_), _) | (MouseEventKind::Up(_), Some(MouseGrip::AgentOther)) => {
            (grip, held)
        }
        (MouseEventKind::Up(_), Some(MouseGrip::Border)) => (None, None),
        (MouseEventKind::Up(_), _) => (None, held),
        (MouseEventKind::Moved, _) => {
            // Only the child makes use of it.
            let there = layout.cell_of_pane(mouse.column, mouse.row);
            let forwards = there.is_some() && model.view.has_pane();
            (None, forwards.then_some(MouseAct::Forward))
        }
        (wheel, _) => (grip, wheel_act(model, layout, mouse, wheel)),
    }
}

impl View {
    /// Takes in a button beyond the third and the wheel, which goes down if it `begins` over a program that asks for it. Returns whether
    /// it is forwarded: only the hosted program makes use of it.
    pub(super) fn other_button(&mut self, pressed: bool, begins: bool) -> bool {
        match self.grip {
            Some(MouseGrip::Agent(_) | MouseGrip::AgentOther) => {}
            None if begins => self.grip = Some(MouseGrip::AgentOther),
            _ => return false,
        }
        (self.grip).take_if(|grip| !pressed && *grip == MouseGrip::AgentOther);
        true
    }
}

/// Reports whether a press at this cell of the host terminal is one for the hosted program.
pub(super) fn is_for_agent(
    model: &Model,
    layout: &Layout,
    modifiers: KeyModifiers,
    (column, row): (u16, u16),
) -> bool {
    model.view.has_pane()
        && model.session.agent.takes_mouse
        && !modifiers.contains(KeyModifiers::SHIFT)
        && layout.cell_of_pane(column, row).is_some()
}

/// Reports whether the mouse over the pane reads its text: it does unless the child has asked for it, and then with Shift.
const fn is_for_copy_mode(model: &Model, mouse: MouseEvent) -> bool {
    model.view.copy.is_on()
        || !model.session.agent.takes_mouse
        || mouse.modifiers.contains(KeyModifiers::SHIFT)
}

fn press(
    model: &Model,
    layout: &Layout,
    mouse: MouseEvent,
    button: MouseButton,
) -> (MouseGrip, Option<MouseAct>) {
    let left = button == MouseButton::Left;
    let under = layout.at(mouse.column, mouse.row);
    if model.view.overlay.is_some() {
        (MouseGrip::Done, None)
    } else if left && is_on_border(layout, mouse) {
        (MouseGrip::Border, None)
    } else if under != Some(Focus::Pane) || model.view.focus != Focus::Pane {
        (MouseGrip::Done, under.filter(|_| left).map(MouseAct::Focus))
    } else if is_for_agent(model, layout, mouse.modifiers, (mouse.column, mouse.row)) {
        (MouseGrip::Agent(button), Some(MouseAct::Forward))
    } else if left && is_for_copy_mode(model, mouse) {
        (MouseGrip::Copy, Some(MouseAct::Copy))
    } else {
        (MouseGrip::Done, None)
    }
}

fn wheel_act(
    model: &Model,
    layout: &Layout,
    mouse: MouseEvent,
    wheel: MouseEventKind,
) -> Option<MouseAct> {
    let under = layout.at(mouse.column, mouse.row);
    let panel = if model.view.overlay.is_some() {
        None
    } else if under? == Focus::Pane && has_large_view(model) {
        Some(Focus::History)
    } else if under? == Focus::Pane {
        let reads = model.view.focus == Focus::Pane && is_for_copy_mode(model, mouse);
        let act = if reads {
            MouseAct::CopyOrForward
        } else {
            MouseAct::Forward
        };
        return Some(act);
    } else {
        under
    };
    match wheel {
        MouseEventKind::ScrollDown => Some(MouseAct::Scroll(panel, WHEEL_LINES)),
        MouseEventKind::ScrollUp => Some(MouseAct::Scroll(panel, -WHEEL_LINES)),
        _ => None,
    }
}

/// Reports whether the details of an iteration or the run view lie over the pane.
fn has_large_view(model: &Model) -> bool {
    model.view.focus == Focus::History && model.view.history.is_large()
}

/// Reports whether a press is on the border between pane and panels: on both of the lines side by side, but not their ends.
fn is_on_border(layout: &Layout, mouse: MouseEvent) -> bool {
    let beside = layout.bordered && layout.pane.width < layout.whole.width;
    let border = layout.pane.right().saturating_sub(1);
    let inside = mouse.row > 0 && mouse.row + 1 < layout.pane.bottom();
    beside && inside && (border..=border + 1).contains(&mouse.column)
}
