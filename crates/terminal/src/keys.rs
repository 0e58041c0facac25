//! The encoding of keys, mouse, paste and focus to the bytes that a child expects, by the modes that its screen reports.
//!
//! There are three keyboard protocols, of which the richest in force is used: the kitty protocol (any flag pushed), then
//! `modifyOtherKeys`, then the legacy forms. Sources: the kitty keyboard protocol's
//! specification and xterm's control sequences.
//!
//! One exception to legacy: Shift+Enter is `CSI 13;2u` even when nothing was negotiated, because
//! Claude Code takes it as a new line, and the legacy form could not be distinguished from Enter.

use crossterm::event::{
    KeyCode, KeyEvent, KeyEventKind, KeyEventState, KeyModifiers, MediaKeyCode, ModifierKeyCode,
    MouseButton, MouseEvent, MouseEventKind,
};

use pitstop_base::keymap::{chord_key, is_latin};

use super::{Modes, MouseTracking};

const ESC: u8 = 0x1b;

/// The mark that begins a bracketed paste.
pub const PASTE_START: &[u8] = b"\x1b[200~";

/// The mark that ends a bracketed paste.
pub const PASTE_END: &[u8] = b"\x1b[201~";

mod kitty {
    pub const DISAMBIGUATE: u8 = 1;
    pub const EVENT_TYPES: u8 = 2;
    pub const ALTERNATES: u8 = 4;
    pub const ALL_KEYS: u8 = 8;
    pub const TEXT: u8 = 16;
}

/// The form in which a key without text is encoded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Form {
    /// `CSI letter`, with modifiers `CSI 1;m letter`; `SS3 letter` in application cursor mode.
    Cursor(char),
    /// `SS3 letter`, with modifiers `CSI 1;m letter`.
    Function(char),
    /// `CSI number ~`, with modifiers `CSI number;m ~`.
    Tilde(u8),
}

/// Returns the bytes of a key for the child; empty if it has none in the protocol in force.
pub fn encode_key(event: &KeyEvent, modes: &Modes) -> Vec<u8> {
    encode_named_key(event, None, modes)
}

/// Encodes a key for which the host terminal reported `key:shifted:base`, as the kitty protocol names it: a child that asked
/// for alternates gets these, and any other gets the key in its own layout.
pub fn encode_named_key(event: &KeyEvent, numbers: Option<&str>, modes: &Modes) -> Vec<u8> {
    if modes.kitty_flags != 0 {
        return kitty_key(event, numbers, modes);
    }
    if event.kind == KeyEventKind::Release {
        return Vec::new();
    }
    if modes.modify_other_keys > 0
        && let Some(bytes) = other_key(event, modes.modify_other_keys)
    {
        return bytes;
    }
    legacy_key(event, modes)
}

/// The bit of each modifier in xterm's number for them.
pub(crate) const MODIFIER_BITS: [(KeyModifiers, u8); 6] = [
    (KeyModifiers::SHIFT, 1),
    (KeyModifiers::ALT, 2),
    (KeyModifiers::CONTROL, 4),
    (KeyModifiers::SUPER, 8),
    (KeyModifiers::HYPER, 16),
    (KeyModifiers::META, 32),
];

/// Returns xterm's number for the modifiers: 1 plus a bit for each.
fn modifier_number(modifiers: KeyModifiers) -> u8 {
    let held = MODIFIER_BITS
        .iter()
        .filter(|(one, _)| modifiers.contains(*one));
    1 + held.map(|(_, bit)| bit).sum::<u8>()
}

fn form(code: KeyCode) -> Option<Form> {
    Some(match code {
        KeyCode::Up => Form::Cursor('A'),
        KeyCode::Down => Form::Cursor('B'),
        KeyCode::Right => Form::Cursor('C'),
        KeyCode::Left => Form::Cursor('D'),
        KeyCode::KeypadBegin => Form::Cursor('E'),
        KeyCode::End => Form::Cursor('F'),
        KeyCode::Home => Form::Cursor('H'),
        KeyCode::Insert => Form::Tilde(2),
        KeyCode::Delete => Form::Tilde(3),
        KeyCode::PageUp => Form::Tilde(5),
        KeyCode::PageDown => Form::Tilde(6),
        KeyCode::F(number @ 1..=4) => Form::Function(char::from(b'O' + number)),
        KeyCode::F(number @ 5..=20) => Form::Tilde(FUNCTION_NUMBERS[usize::from(number) - 5]),
        _ => return None,
    })
}

/// The numbers of F5 to F20, with the gaps of the VT220's keyboard.
const FUNCTION_NUMBERS: [u8; 16] = [
    15, 17, 18, 19, 20, 21, 23, 24, 25, 26, 28, 29, 31, 32, 33, 34,
];

fn legacy_key(event: &KeyEvent, modes: &Modes) -> Vec<u8> {
    let modifiers = event.modifiers;
    if modes.app_keypad
        && let Some(bytes) = keypad_key(event)
    {
        return bytes;
    }
    if let Some(form) = form(event.code) {
        return legacy_form(form, modifier_number(modifiers), modes.app_cursor);
    }
    let bytes = match event.code {
        KeyCode::Enter if modifiers == KeyModifiers::SHIFT => return b"\x1b[13;2u".to_vec(),
        KeyCode::Enter => vec![b'\r'],
        KeyCode::Tab if modifiers.contains(KeyModifiers::SHIFT) => b"\x1b[Z".to_vec(),
        KeyCode::Tab => vec![b'\t'],
        KeyCode::BackTab => b"\x1b[Z".to_vec(),
        KeyCode::Backspace if modifiers.contains(KeyModifiers::CONTROL) => vec![0x08],
        KeyCode::Backspace => vec![0x7f],
        KeyCode::Esc => vec![ESC],
        KeyCode::Null => vec![0],
        KeyCode::Char(c) => legacy_text(c, modifiers),
        _ => return Vec::new(),
    };
    with_alt(modifiers, bytes)
}

fn with_alt(modifiers: KeyModifiers, mut bytes: Vec<u8>) -> Vec<u8> {
    if modifiers.intersects(KeyModifiers::ALT | KeyModifiers::META) {
        bytes.insert(0, ESC);
    }
    bytes
}

fn legacy_form(form: Form, number: u8, app_cursor: bool) -> Vec<u8> {
    match (form, number) {
        (Form::Cursor(letter), 1) if app_cursor => format!("\x1bO{letter}"),
        (Form::Cursor(letter), 1) => format!("\x1b[{letter}"),
        (Form::Function(letter), 1) => format!("\x1bO{letter}"),
        (Form::Cursor(letter) | Form::Function(letter), _) => format!("\x1b[1;{number}{letter}"),
        (Form::Tilde(key), 1) => format!("\x1b[{key}~"),
        (Form::Tilde(key), _) => format!("\x1b[{key};{number}~"),
    }
    .into_bytes()
}

fn legacy_text(c: char, modifiers: KeyModifiers) -> Vec<u8> {
    if modifiers.contains(KeyModifiers::CONTROL)
        && let Some(control) = control_byte(c)
    {
        return vec![control];
    }
    text_bytes(shifted(c, modifiers))
}

fn text_bytes(c: char) -> Vec<u8> {
    c.to_string().into_bytes()
}

/// Returns the character as typed: some hosts report the key and Shift separately.
fn shifted(c: char, modifiers: KeyModifiers) -> char {
    if modifiers.contains(KeyModifiers::SHIFT) && c.is_ascii_lowercase() {
        c.to_ascii_uppercase()
    } else {
        c
    }
}

/// Returns the control character that Ctrl makes of a key, by the table that terminals share.
fn control_byte(c: char) -> Option<u8> {
    Some(match c {
        'a'..='z' => c as u8 - b'a' + 1,
        'A'..='Z' => c as u8 - b'A' + 1,
        ' ' | '@' | '2' => 0,
        '[' | '3' => 0x1b,
        '\\' | '4' => 0x1c,
        ']' | '5' => 0x1d,
        '^' | '~' | '6' => 0x1e,
        '_' | '/' | '-' | '7' => 0x1f,
        '?' | '8' => 0x7f,
        _ => return None,
    })
}

/// Encodes a key of the keypad in application mode.
fn keypad_key(event: &KeyEvent) -> Option<Vec<u8>> {
    if !event.state.contains(KeyEventState::KEYPAD) || !event.modifiers.is_empty() {
        return None;
    }
    let letter = match event.code {
        KeyCode::Char(digit @ '0'..='9') => char::from(b'p' + (digit as u8 - b'0')),
        KeyCode::Char('*') => 'j',
        KeyCode::Char('+') => 'k',
        KeyCode::Char(',') => 'l',
        KeyCode::Char('-') => 'm',
        KeyCode::Char('.') => 'n',
        KeyCode::Char('/') => 'o',
        KeyCode::Char('=') => 'X',
        KeyCode::Enter => 'M',
        _ => return None,
    };
    Some(format!("\x1bO{letter}").into_bytes())
}

/// Returns the `CSI 27` form if `modifyOtherKeys` requires it.
fn other_key(event: &KeyEvent, level: u8) -> Option<Vec<u8>> {
    let modifiers = event.modifiers;
    let number = modifier_number(modifiers);
    let key = match event.code {
        KeyCode::Enter => 13,
        KeyCode::Tab | KeyCode::BackTab => 9,
        KeyCode::Backspace => 127,
        KeyCode::Esc => 27,
        KeyCode::Null => 32,
        KeyCode::Char(c) => u32::from(shifted(c, modifiers)),
        _ => return None,
    };
    let number = match event.code {
        KeyCode::BackTab => modifier_number(modifiers | KeyModifiers::SHIFT),
        KeyCode::Null => modifier_number(modifiers | KeyModifiers::CONTROL),
        _ => number,
    };
    let shift_only = number == 2;
    let wanted = match event.code {
        _ if number == 1 => false,
        // Shift alone is in the text already; Shift+Tab has its own key.
        KeyCode::Char(c) if shift_only => c == ' ' && level == 2,
        KeyCode::Tab | KeyCode::BackTab if shift_only => false,
        _ if level == 2 => true,
        // Level 1 does not change keys that have a form of their own.
        KeyCode::Char(c) => !has_legacy_form(c, modifiers),
        KeyCode::Null | KeyCode::Backspace | KeyCode::Esc => false,
        _ => number != 3,
    };
    wanted.then(|| format!("\x1b[27;{number};{key}~").into_bytes())
}

fn has_legacy_form(c: char, modifiers: KeyModifiers) -> bool {
    let plain = modifiers.difference(KeyModifiers::ALT | KeyModifiers::META);
    match plain {
        _ if plain.is_empty() || plain == KeyModifiers::SHIFT => true,
        // Ctrl makes no difference to Shift in the control characters, so both together have none.
        KeyModifiers::CONTROL => control_byte(c).is_some() && !c.is_ascii_digit(),
        _ => false,
    }
}

/// A key in the kitty protocol: a text, a form that has precedence over `CSI number u`, or a number.
enum KittyKey {
    Text(char),
    Legacy(Form),
    Number(u32),
}

fn kitty_key(event: &KeyEvent, numbers: Option<&str>, modes: &Modes) -> Vec<u8> {
    let flags = modes.kitty_flags;
    let all = flags & kitty::ALL_KEYS != 0;
    if event.kind == KeyEventKind::Release && flags & kitty::EVENT_TYPES == 0 {
        return Vec::new();
    }
    let mut modifiers = event.modifiers;
    if event.code == KeyCode::BackTab {
        modifiers |= KeyModifiers::SHIFT;
    }
    // Caps and Num Lock are reported only with "all keys": otherwise text programs would see unexpected modifiers.
    let locks = if all { lock_bits(event.state) } else { 0 };
    let field = ModifierField {
        number: u32::from(modifier_number(modifiers)) + locks,
        kind: if flags & kitty::EVENT_TYPES == 0 {
            KeyEventKind::Press
        } else {
            event.kind
        },
    };
    let plain = modifiers.difference(KeyModifiers::SHIFT).is_empty();
    match kitty_number(event) {
        Some(KittyKey::Text(c)) if plain && !all => {
            // If text is sent as text, its release has no form.
            if event.kind == KeyEventKind::Release {
                Vec::new()
            } else {
                text_bytes(shifted(c, modifiers))
            }
        }
        Some(KittyKey::Text(c)) => kitty_text(c, event, numbers, flags, field),
        // Enter, Tab and Backspace keep their legacy bytes, so that a shell is usable after a crash.
        Some(KittyKey::Number(13 | 9 | 127)) if modifiers.is_empty() && !all => {
            if event.kind == KeyEventKind::Release {
                Vec::new()
            } else {
                legacy_key(event, modes)
            }
        }
        Some(KittyKey::Number(number)) if flags & (kitty::DISAMBIGUATE | kitty::ALL_KEYS) != 0 => {
            field.csi(&number.to_string(), "", 'u')
        }
        Some(KittyKey::Number(_)) => legacy_key(event, modes),
        Some(KittyKey::Legacy(form)) => kitty_form(form, field, flags, modes.app_cursor),
        // Locks and modifiers by themselves are reported only when all keys are.
        None if all => {
            kitty_lone(event.code).map_or_else(Vec::new, |n| field.csi(&n.to_string(), "", 'u'))
        }
        None => Vec::new(),
    }
}

fn lock_bits(state: KeyEventState) -> u32 {
    let caps = u32::from(state.contains(KeyEventState::CAPS_LOCK));
    let num = u32::from(state.contains(KeyEventState::NUM_LOCK));
    64 * caps + 128 * num
}

/// The second field of a kitty sequence.
#[derive(Clone, Copy)]
struct ModifierField {
    number: u32,
    kind: KeyEventKind,
}

impl ModifierField {
    /// Encodes `CSI key ; modifiers:event ; text end`, with default values left out.
    fn csi(self, key: &str, text: &str, end: char) -> Vec<u8> {
        let event = match self.kind {
            KeyEventKind::Press => "",
            KeyEventKind::Repeat => ":2",
            KeyEventKind::Release => ":3",
        };
        let plain = self.number == 1 && event.is_empty();
        let field = match (plain, text.is_empty()) {
            (true, true) => String::new(),
            (true, false) => format!(";;{text}"),
            (false, true) => format!(";{}{event}", self.number),
            (false, false) => format!(";{}{event};{text}", self.number),
        };
        // A letter form's key number is 1 and is left out when nothing follows.
        let key = if field.is_empty() && key == "1" && end != 'u' {
            ""
        } else {
            key
        };
        format!("\x1b[{key}{field}{end}").into_bytes()
    }
}

fn kitty_text(
    c: char,
    event: &KeyEvent,
    numbers: Option<&str>,
    flags: u8,
    field: ModifierField,
) -> Vec<u8> {
    let modifiers = event.modifiers;
    if flags & (kitty::DISAMBIGUATE | kitty::ALL_KEYS) == 0 {
        return with_alt(modifiers, legacy_text(c, modifiers));
    }
    // The number is that of the unshifted key. If the host did not report it, only letters can be unshifted; if the base key
    // is meant, this is its own number.
    let mut said = numbers.into_iter().flat_map(|numbers| numbers.split(':'));
    let mut number = |nth| char::from_u32(said.nth(nth)?.parse().ok()?);
    let (own, base) = (number(0), number(1));
    let own = own.filter(|own| is_latin(*own) && chord_key(*own, base) == *own);
    let unshifted = own.unwrap_or_else(|| lower(c));
    let upper = shifted(c, modifiers);
    let asked = flags & kitty::ALTERNATES != 0;
    let alternate = asked && modifiers.contains(KeyModifiers::SHIFT) && upper != unshifted;
    let key = match numbers.filter(|_| asked) {
        Some(numbers) => numbers.to_owned(),
        None if alternate => format!("{}:{}", u32::from(unshifted), u32::from(upper)),
        None => u32::from(unshifted).to_string(),
    };
    let tells_text = flags & kitty::TEXT != 0
        && flags & kitty::ALL_KEYS != 0
        && event.kind != KeyEventKind::Release
        && modifiers.difference(KeyModifiers::SHIFT).is_empty();
    let text = if tells_text {
        u32::from(upper).to_string()
    } else {
        String::new()
    };
    field.csi(&key, &text, 'u')
}

/// Returns the lower-case character, if there is exactly one, else the character itself.
fn lower(c: char) -> char {
    let mut all = c.to_lowercase();
    match (all.next(), all.next()) {
        (Some(one), None) => one,
        _ => c,
    }
}

fn kitty_form(form: Form, field: ModifierField, flags: u8, app_cursor: bool) -> Vec<u8> {
    let legacy = flags & (kitty::DISAMBIGUATE | kitty::ALL_KEYS) == 0;
    match form {
        Form::Cursor(_) | Form::Function(_)
            if legacy && field.number == 1 && field.kind == KeyEventKind::Press =>
        {
            legacy_form(form, 1, app_cursor)
        }
        // `CSI R` is the cursor's position report, so F3 has the number of its VT220 key.
        Form::Function('R') => field.csi("13", "", '~'),
        Form::Cursor(letter) | Form::Function(letter) => field.csi("1", "", letter),
        Form::Tilde(key) => field.csi(&key.to_string(), "", '~'),
    }
}

fn kitty_number(event: &KeyEvent) -> Option<KittyKey> {
    Some(match event.code {
        KeyCode::Char(c) => KittyKey::Text(c),
        KeyCode::Null => KittyKey::Number(32),
        KeyCode::Esc => KittyKey::Number(27),
        KeyCode::Enter => KittyKey::Number(13),
        KeyCode::Tab | KeyCode::BackTab => KittyKey::Number(9),
        KeyCode::Backspace => KittyKey::Number(127),
        KeyCode::F(number @ 13..=35) => KittyKey::Number(57376 + u32::from(number) - 13),
        KeyCode::PrintScreen => KittyKey::Number(57361),
        KeyCode::Pause => KittyKey::Number(57362),
        KeyCode::Menu => KittyKey::Number(57363),
        KeyCode::Media(media) => KittyKey::Number(FIRST_MEDIA + place_in(&MEDIA, &media)?),
        code => KittyKey::Legacy(form(code)?),
    })
}

fn place_in<T: PartialEq>(keys: &[T], key: &T) -> Option<u32> {
    let place = keys.iter().position(|known| known == key)?;
    u32::try_from(place).ok()
}

fn kitty_lone(code: KeyCode) -> Option<u32> {
    Some(match code {
        KeyCode::CapsLock => 57358,
        KeyCode::ScrollLock => 57359,
        KeyCode::NumLock => 57360,
        KeyCode::Modifier(modifier) => FIRST_MODIFIER + place_in(&MODIFIERS, &modifier)?,
        _ => return None,
    })
}

/// The number of the first of the [`MEDIA`] keys in the kitty protocol.
pub(crate) const FIRST_MEDIA: u32 = 57428;

/// The number of the first of the [`MODIFIERS`].
pub(crate) const FIRST_MODIFIER: u32 = 57441;

/// The media keys, in the order of their numbers in the kitty protocol from [`FIRST_MEDIA`] on.
pub(crate) const MEDIA: [MediaKeyCode; 13] = [
    MediaKeyCode::Play,
    MediaKeyCode::Pause,
    MediaKeyCode::PlayPause,
    MediaKeyCode::Reverse,
    MediaKeyCode::Stop,
    MediaKeyCode::FastForward,
    MediaKeyCode::Rewind,
    MediaKeyCode::TrackNext,
    MediaKeyCode::TrackPrevious,
    MediaKeyCode::Record,
    MediaKeyCode::LowerVolume,
    MediaKeyCode::RaiseVolume,
    MediaKeyCode::MuteVolume,
];

/// The modifier keys, in the order of their numbers from [`FIRST_MODIFIER`] on.
pub(crate) const MODIFIERS: [ModifierKeyCode; 14] = [
    ModifierKeyCode::LeftShift,
    ModifierKeyCode::LeftControl,
    ModifierKeyCode::LeftAlt,
    ModifierKeyCode::LeftSuper,
    ModifierKeyCode::LeftHyper,
    ModifierKeyCode::LeftMeta,
    ModifierKeyCode::RightShift,
    ModifierKeyCode::RightControl,
    ModifierKeyCode::RightAlt,
    ModifierKeyCode::RightSuper,
    ModifierKeyCode::RightHyper,
    ModifierKeyCode::RightMeta,
    ModifierKeyCode::IsoLevel3Shift,
    ModifierKeyCode::IsoLevel5Shift,
];

/// Encodes a whole paste by the human as the child expects it; see [`paste_text`] for its parts.
pub fn encode_paste(text: &[u8], modes: &Modes) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(text.len() + 12);
    bytes.extend_from_slice(paste_start(modes));
    bytes.extend_from_slice(&paste_text(&without_marks(text), modes));
    bytes.extend_from_slice(paste_end(modes));
    bytes
}

/// Returns the bytes that precede a paste.
pub fn paste_start(modes: &Modes) -> &'static [u8] {
    if modes.bracketed_paste {
        PASTE_START
    } else {
        b""
    }
}

/// Returns the bytes that follow a paste.
pub fn paste_end(modes: &Modes) -> &'static [u8] {
    if modes.bracketed_paste {
        PASTE_END
    } else {
        b""
    }
}

/// Encodes a part of a paste, without control characters except TAB, LF and CR. For a child that does not know
/// pastes, each line's end is typed as Enter (CR), as terminals do.
pub fn paste_text(part: &[u8], modes: &Modes) -> Vec<u8> {
    let mut bytes: Vec<u8> = Vec::with_capacity(part.len());
    for &byte in part {
        match byte {
            b'\n' if !modes.bracketed_paste => {
                if bytes.last() != Some(&b'\r') {
                    bytes.push(b'\r');
                }
            }
            b'\t' | b'\n' | b'\r' => bytes.push(byte),
            0x00..=0x1f | 0x7f => {}
            _ => bytes.push(byte),
        }
    }
    bytes
}

/// Returns the text without end marks, including those that the removal of one would make.
fn without_marks(text: &[u8]) -> Vec<u8> {
    let mut kept: Vec<u8> = Vec::with_capacity(text.len());
    for &byte in text {
        kept.push(byte);
        if kept.ends_with(PASTE_END) {
            kept.truncate(kept.len() - PASTE_END.len());
        }
    }
    kept
}

/// Encodes a focus change, if the child asked for them.
pub fn encode_focus(gained: bool, modes: &Modes) -> Option<&'static [u8]> {
    modes
        .focus_events
        .then_some(if gained { b"\x1b[I" } else { b"\x1b[O" })
}

/// The number of arrow keys for one step of the wheel, as in other terminals.
const WHEEL_ARROWS: usize = 3;

/// Encodes a mouse event at a cell of the pane, counted from 0, if the child asked for it.
///
/// If the child did not ask for the mouse, the wheel sends arrows on its alternate screen if
/// mode 1007 is on. `None` means that pitstop itself handles the event.
pub fn encode_mouse(event: &MouseEvent, column: u16, row: u16, modes: &Modes) -> Option<Vec<u8>> {
    if modes.mouse == MouseTracking::None {
        return wheel_arrows(event.kind, modes);
    }
    let (button, pressed) = mouse_button(event.kind, modes)?;
    let number = button + mouse_modifiers(event.modifiers, modes);
    mouse_report(number, pressed, (column, row), modes)
}

/// Encodes a button beyond the third and the wheel, by its number with all bits; its release has a form of its own only in
/// the SGR protocol, and in the older ones xterm does not report it.
pub fn encode_other_button(
    number: u16,
    pressed: bool,
    cell: (u16, u16),
    modes: &Modes,
) -> Option<Vec<u8>> {
    let dragged = number & 32 != 0;
    let wanted = match modes.mouse {
        MouseTracking::None | MouseTracking::X10 => false,
        MouseTracking::Click => !dragged,
        MouseTracking::Drag | MouseTracking::Motion => true,
    };
    if !wanted || !(pressed || modes.sgr_mouse) {
        return None;
    }
    mouse_report(u32::from(number), pressed, cell, modes)
}

fn mouse_report(
    number: u32,
    pressed: bool,
    (column, row): (u16, u16),
    modes: &Modes,
) -> Option<Vec<u8>> {
    if modes.sgr_mouse {
        let end = if pressed { 'M' } else { 'm' };
        return Some(format!("\x1b[<{number};{};{}{end}", column + 1, row + 1).into_bytes());
    }
    // Without SGR a release does not name its button.
    let number = if pressed { number } else { (number & !3) | 3 };
    let mut bytes = b"\x1b[M".to_vec();
    for value in [number, u32::from(column) + 1, u32::from(row) + 1] {
        push_coordinate(&mut bytes, value + 32, modes.utf8_mouse)?;
    }
    Some(bytes)
}

/// Appends one byte, or one character in the UTF-8 form; returns `None` for a value that does not fit, which is not reported.
fn push_coordinate(bytes: &mut Vec<u8>, value: u32, utf8: bool) -> Option<()> {
    if utf8 {
        let c = char::from_u32(value).filter(|_| value <= 0x7ff)?;
        bytes.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes());
    } else {
        bytes.push(u8::try_from(value).ok()?);
    }
    Some(())
}

/// Returns the button's number and whether it is down; `None` if the mode in force does not report it.
fn mouse_button(kind: MouseEventKind, modes: &Modes) -> Option<(u32, bool)> {
    let button = |button: MouseButton| match button {
        MouseButton::Left => 0,
        MouseButton::Middle => 1,
        MouseButton::Right => 2,
    };
    let tracking = modes.mouse;
    match kind {
        MouseEventKind::Down(which) => Some((button(which), true)),
        MouseEventKind::ScrollUp => Some((64, true)),
        MouseEventKind::ScrollDown => Some((65, true)),
        _ if tracking == MouseTracking::X10 => None,
        MouseEventKind::ScrollLeft => Some((66, true)),
        MouseEventKind::ScrollRight => Some((67, true)),
        MouseEventKind::Up(which) => Some((button(which), false)),
        MouseEventKind::Drag(which) => {
            (tracking != MouseTracking::Click).then(|| (32 + button(which), true))
        }
        MouseEventKind::Moved => (tracking == MouseTracking::Motion).then_some((35, true)),
    }
}

fn mouse_modifiers(modifiers: KeyModifiers, modes: &Modes) -> u32 {
    if modes.mouse == MouseTracking::X10 {
        return 0;
    }
    let bits = [
        (KeyModifiers::SHIFT, 4),
        (KeyModifiers::ALT, 8),
        (KeyModifiers::CONTROL, 16),
    ];
    bits.iter()
        .filter(|(one, _)| modifiers.contains(*one))
        .map(|(_, bit)| bit)
        .sum()
}

fn wheel_arrows(kind: MouseEventKind, modes: &Modes) -> Option<Vec<u8>> {
    let code = match kind {
        MouseEventKind::ScrollUp => KeyCode::Up,
        MouseEventKind::ScrollDown => KeyCode::Down,
        _ => return None,
    };
    (modes.alternate_screen && modes.alternate_scroll).then(|| {
        let arrow = encode_key(&KeyEvent::new(code, KeyModifiers::NONE), modes);
        arrow.repeat(WHEEL_ARROWS)
    })
}

#[cfg(test)]
mod tests;
