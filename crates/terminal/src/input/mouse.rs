//! The decoding of mouse events from their numbers.

use crossterm::event::{KeyModifiers, MouseButton, MouseEvent, MouseEventKind};

use super::{HostInput, numbers};

pub(super) fn sgr_mouse(body: &str, end: u8, whole: &[u8]) -> Option<HostInput> {
    let [number, column, row] = numbers(body)?[..] else {
        return None;
    };
    let pressed = match end {
        b'M' => true,
        b'm' => false,
        _ => return None,
    };
    let position = (column.checked_sub(1)?, row.checked_sub(1)?);
    Some(mouse_item(number, position, pressed, whole))
}

/// Decodes a mouse event from its number: two bits of button, three of modifiers, then motion, wheel, other buttons.
pub(super) fn mouse_item(
    number: u16,
    (column, row): (u16, u16),
    pressed: bool,
    whole: &[u8],
) -> HostInput {
    let button = match number & 3 {
        0 => Some(MouseButton::Left),
        1 => Some(MouseButton::Middle),
        2 => Some(MouseButton::Right),
        _ => None,
    };
    let motion = number & 32 != 0;
    let kind = match (number & 0xc0, button) {
        (64, _) => match number & 3 {
            0 => MouseEventKind::ScrollUp,
            1 => MouseEventKind::ScrollDown,
            2 => MouseEventKind::ScrollLeft,
            _ => MouseEventKind::ScrollRight,
        },
        (0, Some(button)) if motion => MouseEventKind::Drag(button),
        (0, None) if motion => MouseEventKind::Moved,
        (0, Some(button)) if pressed => MouseEventKind::Down(button),
        (0, button) => MouseEventKind::Up(button.unwrap_or(MouseButton::Left)),
        _ => {
            return HostInput::OtherButton {
                number,
                pressed,
                column,
                row,
                raw: whole.to_vec(),
            };
        }
    };
    let bits = [
        (4, KeyModifiers::SHIFT),
        (8, KeyModifiers::ALT),
        (16, KeyModifiers::CONTROL),
    ];
    let modifiers = bits
        .iter()
        .filter(|(bit, _)| number & bit != 0)
        .fold(KeyModifiers::NONE, |all, (_, one)| all | *one);
    let event = MouseEvent {
        kind,
        column,
        row,
        modifiers,
    };
    HostInput::Mouse {
        event,
        raw: whole.to_vec(),
    }
}
