//! Keys as control sequences: legacy, `modifyOtherKeys` and the kitty protocol.

use crossterm::event::{KeyCode, KeyEvent, KeyEventKind, KeyEventState, KeyModifiers};

use crate::keys::{FIRST_MEDIA, FIRST_MODIFIER, MEDIA, MODIFIER_BITS, MODIFIERS};
use pitstop_base::keymap::chord_key;

pub(super) fn letter_key(letter: u8) -> Option<KeyCode> {
    Some(match letter {
        b'A' => KeyCode::Up,
        b'B' => KeyCode::Down,
        b'C' => KeyCode::Right,
        b'D' => KeyCode::Left,
        b'E' => KeyCode::KeypadBegin,
        b'F' => KeyCode::End,
        b'H' => KeyCode::Home,
        b'P'..=b'S' => KeyCode::F(letter - b'O'),
        _ => return None,
    })
}

/// Parses a key of the form `CSI … letter`, `CSI … ~` or `CSI … u`.
pub(super) fn key_sequence(body: &str, end: u8) -> Option<KeyEvent> {
    let mut fields = body.split(';');
    let first = fields.next().unwrap_or_default();
    let second = fields.next();
    let third = fields.next();
    match end {
        b'Z' if body.is_empty() => Some(KeyEvent::new(KeyCode::BackTab, KeyModifiers::SHIFT)),
        b'u' => kitty_key(first, Attached::parse(second)?),
        b'~' if first == "27" && second.is_some() && third.is_some() => {
            kitty_key(third?, Attached::parse(second)?)
        }
        b'~' => Attached::parse(second)?.event(tilde_key(first.parse().ok()?)?),
        letter if first.is_empty() || first == "1" => {
            Attached::parse(second)?.event(letter_key(letter)?)
        }
        _ => None,
    }
}

/// The content of a key's second field: modifiers, locks and the kind of event.
#[derive(Clone, Copy)]
struct Attached {
    modifiers: KeyModifiers,
    state: KeyEventState,
    kind: KeyEventKind,
}

impl Attached {
    fn parse(field: Option<&str>) -> Option<Self> {
        let mut parts = field.unwrap_or_default().split(':');
        let number = match parts.next() {
            None | Some("") => 1,
            Some(digits) => digits
                .parse::<u16>()
                .ok()
                .filter(|number| (1..=256).contains(number))?,
        };
        let kind = match parts.next() {
            None | Some("" | "1") => KeyEventKind::Press,
            Some("2") => KeyEventKind::Repeat,
            Some("3") => KeyEventKind::Release,
            Some(_) => return None,
        };
        let bits = number - 1;
        let modifiers = MODIFIER_BITS
            .iter()
            .filter(|(_, bit)| bits & u16::from(*bit) != 0)
            .fold(KeyModifiers::NONE, |all, (one, _)| all | *one);
        let mut state = KeyEventState::NONE;
        state.set(KeyEventState::CAPS_LOCK, bits & 64 != 0);
        state.set(KeyEventState::NUM_LOCK, bits & 128 != 0);
        Some(Self {
            modifiers,
            state,
            kind,
        })
    }

    /// Creates the event; it is always `Some`, so that it can end a chain of `?`.
    #[allow(clippy::unnecessary_wraps)]
    fn event(self, code: KeyCode) -> Option<KeyEvent> {
        Some(KeyEvent::new_with_kind_and_state(
            code,
            self.modifiers,
            self.kind,
            self.state,
        ))
    }
}

fn tilde_key(number: u8) -> Option<KeyCode> {
    Some(match number {
        1 | 7 => KeyCode::Home,
        2 => KeyCode::Insert,
        3 => KeyCode::Delete,
        4 | 8 => KeyCode::End,
        5 => KeyCode::PageUp,
        6 => KeyCode::PageDown,
        11..=15 => KeyCode::F(number - 10),
        17..=21 => KeyCode::F(number - 11),
        23..=26 => KeyCode::F(number - 12),
        28 | 29 => KeyCode::F(number - 13),
        31..=34 => KeyCode::F(number - 14),
        _ => return None,
    })
}

/// Parses a key by its number, from the kitty protocol or `modifyOtherKeys`. With alternates it is `key:shifted:base`: the
/// characters that the key types alone, with Shift, and in the layout of the United States.
fn kitty_key(numbers: &str, attached: Attached) -> Option<KeyEvent> {
    let mut alternates = numbers.split(':');
    let number: u32 = alternates.next()?.parse().ok()?;
    let mut alternate = || {
        let number = alternates.next()?.parse().ok()?;
        char::from_u32(number).filter(|c| !c.is_control())
    };
    let (shifted, base) = (alternate(), alternate());
    let shift = attached.modifiers.contains(KeyModifiers::SHIFT);
    let chord = !attached
        .modifiers
        .difference(KeyModifiers::SHIFT)
        .is_empty();
    let code = match number {
        9 if shift => KeyCode::BackTab,
        9 => KeyCode::Tab,
        13 => KeyCode::Enter,
        27 => KeyCode::Esc,
        127 => KeyCode::Backspace,
        57358..=57454 => return named_key(number, attached),
        _ => KeyCode::Char(match char::from_u32(number)? {
            c if c.is_control() => return None,
            // In a layout of another script the physical key is meant.
            c if chord && chord_key(c, base) != c => with_shift(chord_key(c, base), shift),
            // Keys are named by the character that they type, as legacy bytes do.
            c => shifted
                .filter(|_| shift)
                .unwrap_or_else(|| with_shift(c, shift)),
        }),
    };
    attached.event(code)
}

fn with_shift(c: char, shift: bool) -> char {
    let upper = c.to_uppercase().next().filter(|_| shift);
    upper.unwrap_or(c)
}

fn named_key(number: u32, attached: Attached) -> Option<KeyEvent> {
    let keypad = Attached {
        state: attached.state | KeyEventState::KEYPAD,
        ..attached
    };
    let code = match number {
        57358 => KeyCode::CapsLock,
        57359 => KeyCode::ScrollLock,
        57360 => KeyCode::NumLock,
        57361 => KeyCode::PrintScreen,
        57362 => KeyCode::Pause,
        57363 => KeyCode::Menu,
        57376..=57398 => KeyCode::F((number - 57376 + 13) as u8),
        57399..=57408 => {
            let digit = char::from(b'0' + (number - 57399) as u8);
            return keypad.event(KeyCode::Char(digit));
        }
        57409..=57427 => return keypad.event(KEYPAD[(number - 57409) as usize]),
        FIRST_MEDIA..=57440 => KeyCode::Media(MEDIA[(number - FIRST_MEDIA) as usize]),
        FIRST_MODIFIER..=57454 => KeyCode::Modifier(MODIFIERS[(number - FIRST_MODIFIER) as usize]),
        _ => return None,
    };
    attached.event(code)
}

const KEYPAD: [KeyCode; 19] = [
    KeyCode::Char('.'),
    KeyCode::Char('/'),
    KeyCode::Char('*'),
    KeyCode::Char('-'),
    KeyCode::Char('+'),
    KeyCode::Enter,
    KeyCode::Char('='),
    KeyCode::Char(','),
    KeyCode::Left,
    KeyCode::Right,
    KeyCode::Up,
    KeyCode::Down,
    KeyCode::PageUp,
    KeyCode::PageDown,
    KeyCode::Home,
    KeyCode::End,
    KeyCode::Insert,
    KeyCode::Delete,
    KeyCode::KeypadBegin,
];
