//! The decoding of the host terminal's bytes to keys, pastes, mouse events and replies. It is pure: no clock, no file.
//!
//! **Byte-exactness** is the aim: typed input goes to the pane unchanged, so every item keeps
//! its raw bytes, and those of all items joined are exactly the bytes fed in. A sequence that is not understood
//! comes out raw, never lost, as soon as it is certain that it will not be understood.
//!
//! ```text
//!   bytes ─▶ Decoder ─▶ HostInput ─▶ our own keys and panels
//!                           └──────▶ forward: the child's bytes, by its modes
//! ```
//!
//! An ESC may be the key or the start of a sequence: [`Decoder::flush_after`] returns when the loop should
//! call [`Decoder::flush`] if nothing follows.

mod forward;
mod key;
mod mouse;
mod reply;

use std::time::Duration;

use crossterm::event::{KeyCode, KeyEvent, KeyEventKind, KeyEventState, KeyModifiers, MouseEvent};
use memchr::memchr;

use crate::keys::{PASTE_END, PASTE_START};
use crate::{ColourScheme, Rgb};
pub use forward::forward;
use key::{key_sequence, letter_key};
use mouse::{mouse_item, sgr_mouse};
use reply::{colour_reply, sequence_reply};

const ESC: u8 = 0x1b;
const BEL: u8 = 0x07;

/// The time for which an ESC, alone or with one key, may be the start of a sequence. Terminals send a sequence in one piece.
const KEY_TIME: Duration = Duration::from_millis(25);

/// The time that the rest of a sequence may take if no person can have typed it: a busy machine or a slow link cuts it
/// anywhere, and a lost packet is sent again within a second.
const SEQUENCE_TIME: Duration = Duration::from_secs(1);

/// The longest control sequence waited for, in bytes. Keys with text are the longest real ones.
const SEQUENCE_LIMIT: usize = 256;

/// The longest string reply waited for, in bytes: a colour or a version has a few dozen.
const STRING_LIMIT: usize = 4096;

/// An item of the host terminal's input.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum HostInput {
    /// A key.
    Key {
        /// The key, as far as its bytes show.
        event: KeyEvent,
        /// The raw bytes of the key.
        raw: Vec<u8>,
    },
    /// A bracketed paste begins.
    PasteStart,
    /// A part of the paste's text; large pastes come in many.
    PasteChunk(Vec<u8>),
    /// The paste ends.
    PasteEnd,
    /// The mouse; column and row are the host terminal's, from 0.
    Mouse {
        /// The event.
        event: MouseEvent,
        /// The raw bytes of the event.
        raw: Vec<u8>,
    },
    /// A button beyond the third and the wheel; column and row are the host terminal's, from 0.
    OtherButton {
        /// The button's number in the mouse protocols, with the bits of modifiers (4, 8, 16) and of motion (32).
        number: u16,
        /// True if it went down or is down; false if it was released.
        pressed: bool,
        /// The column.
        column: u16,
        /// The row.
        row: u16,
        /// The raw bytes of the event.
        raw: Vec<u8>,
    },
    /// The host terminal gained or lost the focus.
    Focus(bool),
    /// A reply of the host terminal, or bytes that can be nothing else.
    Reply {
        /// The reply.
        reply: HostReply,
        /// The raw bytes of the reply.
        raw: Vec<u8>,
    },
    /// Bytes with no meaning to us.
    Raw(Vec<u8>),
}

/// A colour that a terminal can be queried for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HostColour {
    /// OSC 10.
    Foreground,
    /// OSC 11.
    Background,
    /// OSC 12.
    Cursor,
    /// OSC 4, with the palette's index.
    Palette(u8),
}

/// A reply of the host terminal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum HostReply {
    /// A colour.
    Colour {
        /// The colour that the query named.
        which: HostColour,
        /// The value of the colour.
        rgb: Rgb,
    },
    /// DA1, with its numbers.
    DeviceAttributes(Vec<u16>),
    /// XTVERSION: untrusted text, printable ASCII only.
    Version(String),
    /// DECRPM.
    ModeReport {
        /// The private mode.
        mode: u16,
        /// The state: 0 unknown, 1 set, 2 reset, 3 always set, 4 always reset.
        value: u8,
    },
    /// The kitty keyboard flags in force.
    KittyFlags(u8),
    /// The colour scheme, as queried or changed.
    ColourScheme(ColourScheme),
    /// A reply to a query that is not ours, or a fragment of one: no key is encoded this way.
    Unasked,
}

impl HostInput {
    /// Returns the raw bytes of the item.
    pub fn raw(&self) -> &[u8] {
        match self {
            Self::Key { raw, .. }
            | Self::Mouse { raw, .. }
            | Self::OtherButton { raw, .. }
            | Self::Reply { raw, .. }
            | Self::PasteChunk(raw)
            | Self::Raw(raw) => raw,
            Self::PasteStart => PASTE_START,
            Self::PasteEnd => PASTE_END,
            Self::Focus(true) => b"\x1b[I",
            Self::Focus(false) => b"\x1b[O",
        }
    }
}

/// A decoder that cuts the host terminal's bytes into items. It holds back at most 4 KiB.
#[derive(Debug, Default)]
pub struct Decoder {
    held: Vec<u8>,
    in_paste: bool,
    /// True if a string reply is longer than the limit and continues.
    in_string: bool,
    /// True if the last item was a lone ESC that nothing had followed in time.
    gave_up_escape: bool,
}

/// The result of decoding the next bytes.
enum Step {
    /// An item of this many bytes.
    Item(usize, HostInput),
    /// More bytes are needed to decide.
    Wait,
}

impl Decoder {
    /// Takes bytes and returns the items that are certain.
    pub fn feed(&mut self, bytes: &[u8]) -> Vec<HostInput> {
        let mut items = Vec::new();
        let mut bytes = bytes;
        // A slow line has cut the start mark of a paste behind its ESC: what follows is pasted all the same, and no keys.
        if std::mem::take(&mut self.gave_up_escape)
            && let Some(pasted) = bytes.strip_prefix(&PASTE_START[1..])
        {
            items.push(HostInput::Raw(PASTE_START[1..].to_vec()));
            self.in_paste = true;
            bytes = pasted;
        }
        if self.held.is_empty() {
            let used = self.decode(bytes, &mut items);
            self.held.extend_from_slice(&bytes[used..]);
        } else {
            let mut joined = std::mem::take(&mut self.held);
            joined.extend_from_slice(bytes);
            let used = self.decode(&joined, &mut items);
            joined.drain(..used);
            self.held = joined;
        }
        items
    }

    fn decode(&mut self, bytes: &[u8], items: &mut Vec<HostInput>) -> usize {
        let mut used = 0;
        while used < bytes.len() {
            let rest = &bytes[used..];
            let step = if self.in_paste {
                paste_step(rest)
            } else if self.in_string {
                string_rest(rest)
            } else {
                step(rest)
            };
            let Step::Item(length, item) = step else {
                break;
            };
            // A string ends with a control character, and no more of the string follows that.
            let goes_on = self.in_string && is_printable(rest[0]);
            let begins = matches!(&item, HostInput::Reply { .. }) && length == STRING_LIMIT;
            self.in_string = (goes_on || begins)
                && is_printable(rest[length - 1])
                && !rest[..length].ends_with(b"\x1b\\");
            self.in_paste = match item {
                HostInput::PasteStart => true,
                HostInput::PasteEnd => false,
                _ => self.in_paste,
            };
            used += length;
            items.push(item);
        }
        used
    }

    /// Returns how long the held bytes wait for more; `None` if no bytes are held, or if the end is certain to come, as in a
    /// paste. If a paste were given up in the middle, the end mark would be text, and all later keys would be pasted.
    pub fn flush_after(&self) -> Option<Duration> {
        match &self.held[..] {
            _ if self.in_paste => None,
            [] => None,
            [ESC] | [ESC, 0x20..=0x7e] => Some(KEY_TIME),
            _ => Some(SEQUENCE_TIME),
        }
    }

    /// Returns the bytes that were held back, because nothing followed them.
    pub fn flush(&mut self) -> Vec<HostInput> {
        let mut items = Vec::new();
        self.in_string = false;
        while !self.held.is_empty() {
            let held = std::mem::take(&mut self.held);
            if self.in_paste {
                items.push(HostInput::PasteChunk(held));
                break;
            }
            let (item, length) = cut_short(&held);
            items.push(item);
            self.gave_up_escape = held == [ESC];
            let used = length + self.decode(&held[length..], &mut items);
            self.held.extend_from_slice(&held[used..]);
        }
        items
    }
}

/// Decodes a sequence that did not continue: a lone ESC, Alt with the introducer's key, or an unknown one.
fn cut_short(held: &[u8]) -> (HostInput, usize) {
    match held {
        [ESC] => (key_item(KeyCode::Esc, KeyModifiers::NONE, held), 1),
        [ESC, key @ 0x20..=0x7e] => (
            key_item(KeyCode::Char(char::from(*key)), alt_of(*key), held),
            2,
        ),
        _ => (HostInput::Raw(held.to_vec()), held.len()),
    }
}

fn alt_of(key: u8) -> KeyModifiers {
    let shift = if key.is_ascii_uppercase() {
        KeyModifiers::SHIFT
    } else {
        KeyModifiers::NONE
    };
    KeyModifiers::ALT | shift
}

fn key_item(code: KeyCode, modifiers: KeyModifiers, raw: &[u8]) -> HostInput {
    HostInput::Key {
        event: KeyEvent::new(code, modifiers),
        raw: raw.to_vec(),
    }
}

/// Decodes bytes inside a paste, where everything is text up to the end mark.
fn paste_step(bytes: &[u8]) -> Step {
    let mut from = 0;
    loop {
        match memchr(ESC, &bytes[from..]).map(|at| from + at) {
            None => return paste_text(bytes),
            Some(at) if bytes[at..].starts_with(PASTE_END) => {
                return if at == 0 {
                    Step::Item(PASTE_END.len(), HostInput::PasteEnd)
                } else {
                    paste_text(&bytes[..at])
                };
            }
            Some(at) if PASTE_END.starts_with(&bytes[at..]) => {
                return if at == 0 {
                    Step::Wait
                } else {
                    paste_text(&bytes[..at])
                };
            }
            Some(at) => from = at + 1,
        }
    }
}

fn paste_text(bytes: &[u8]) -> Step {
    Step::Item(bytes.len(), HostInput::PasteChunk(bytes.to_vec()))
}

fn step(bytes: &[u8]) -> Step {
    match bytes {
        [ESC] => Step::Wait,
        [ESC, b'[', ..] => control_sequence(bytes),
        [ESC, b'O', ..] => single_shift(bytes),
        [ESC, b']' | b'P' | b'_', ..] => string(bytes),
        // ESC twice: the first is the key, or Alt with the key after it; the bytes are the same.
        [ESC, ESC, ..] => Step::Item(1, key_item(KeyCode::Esc, KeyModifiers::NONE, &bytes[..1])),
        [ESC, rest @ ..] => alt_key(rest),
        _ => plain_key(bytes),
    }
}

fn raw(bytes: &[u8]) -> Step {
    Step::Item(bytes.len(), HostInput::Raw(bytes.to_vec()))
}

/// Decodes a character or a control character.
fn plain_key(bytes: &[u8]) -> Step {
    match character(bytes) {
        Character::Whole(c, length) => {
            let (code, modifiers) = key_of(c);
            Step::Item(length, key_item(code, modifiers, &bytes[..length]))
        }
        Character::Broken(length) => raw(&bytes[..length]),
        Character::Begun => Step::Wait,
    }
}

fn alt_key(rest: &[u8]) -> Step {
    match character(rest) {
        Character::Whole(c, length) => {
            let (code, modifiers) = key_of(c);
            let whole = [&[ESC], &rest[..length]].concat();
            Step::Item(
                whole.len(),
                key_item(code, modifiers | KeyModifiers::ALT, &whole),
            )
        }
        Character::Broken(_) => Step::Item(1, key_item(KeyCode::Esc, KeyModifiers::NONE, &[ESC])),
        Character::Begun => Step::Wait,
    }
}

enum Character {
    Whole(char, usize),
    Broken(usize),
    Begun,
}

fn character(bytes: &[u8]) -> Character {
    let head = &bytes[..bytes.len().min(4)];
    let valid = match std::str::from_utf8(head) {
        Ok(text) => text,
        Err(error) if error.valid_up_to() > 0 => {
            std::str::from_utf8(&head[..error.valid_up_to()]).unwrap_or_default()
        }
        Err(error) => {
            return error
                .error_len()
                .map_or(Character::Begun, Character::Broken);
        }
    };
    valid
        .chars()
        .next()
        .map_or(Character::Begun, |c| Character::Whole(c, c.len_utf8()))
}

/// Returns the key that types this character.
fn key_of(c: char) -> (KeyCode, KeyModifiers) {
    let control = |key: char| (KeyCode::Char(key), KeyModifiers::CONTROL);
    match c {
        '\r' => (KeyCode::Enter, KeyModifiers::NONE),
        '\t' => (KeyCode::Tab, KeyModifiers::NONE),
        '\u{7f}' => (KeyCode::Backspace, KeyModifiers::NONE),
        '\u{1b}' => (KeyCode::Esc, KeyModifiers::NONE),
        '\0' => control(' '),
        '\u{1}'..='\u{1a}' => control(char::from(c as u8 - 1 + b'a')),
        '\u{1c}'..='\u{1f}' => control(char::from(c as u8 - 0x1c + b'\\')),
        _ if c.is_uppercase() => (KeyCode::Char(c), KeyModifiers::SHIFT),
        _ => (KeyCode::Char(c), KeyModifiers::NONE),
    }
}

/// Decodes an `SS3` sequence: function, cursor and keypad keys.
fn single_shift(bytes: &[u8]) -> Step {
    let Some(&letter) = bytes.get(2) else {
        return Step::Wait;
    };
    let (code, state) = match letter {
        b'M' => (KeyCode::Enter, KeyEventState::KEYPAD),
        b'X' => (KeyCode::Char('='), KeyEventState::KEYPAD),
        b'j'..=b'o' => (
            KeyCode::Char(char::from(letter - b'j' + b'*')),
            KeyEventState::KEYPAD,
        ),
        b'p'..=b'y' => (
            KeyCode::Char(char::from(letter - b'p' + b'0')),
            KeyEventState::KEYPAD,
        ),
        _ => match letter_key(letter) {
            Some(code) => (code, KeyEventState::NONE),
            None => return alt_key(&bytes[1..]),
        },
    };
    let event =
        KeyEvent::new_with_kind_and_state(code, KeyModifiers::NONE, KeyEventKind::Press, state);
    Step::Item(
        3,
        HostInput::Key {
            event,
            raw: bytes[..3].to_vec(),
        },
    )
}

/// Decodes a string reply: `ESC ]`, `ESC P` or `ESC _` up to its end.
fn string(bytes: &[u8]) -> Step {
    // No reply begins with anything else, so this is Alt with the introducer's key.
    match bytes.get(2) {
        None => return Step::Wait,
        Some(b'0'..=b'9' | b'>' | b'!' | b'$' | b'+' | b'|' | b'G') => {}
        Some(_) => return alt_key(&bytes[1..]),
    }
    let body = bytes.iter().skip(2).position(|byte| !is_printable(*byte));
    let Some(end) = body.map(|length| length + 2) else {
        return if bytes.len() > STRING_LIMIT {
            Step::Item(STRING_LIMIT, reply_item(None, &bytes[..STRING_LIMIT]))
        } else {
            Step::Wait
        };
    };
    match &bytes[end..] {
        _ if end > STRING_LIMIT => {
            Step::Item(STRING_LIMIT, reply_item(None, &bytes[..STRING_LIMIT]))
        }
        [BEL, ..] => string_item(bytes, end, 1),
        [ESC, b'\\', ..] => string_item(bytes, end, 2),
        [ESC] => Step::Wait,
        _ => Step::Item(end, reply_item(None, &bytes[..end])),
    }
}

/// Reports whether a byte may be part of a string reply.
const fn is_printable(byte: u8) -> bool {
    matches!(byte, 0x20..=0x7e)
}

/// Decodes the rest of a string reply that is longer than the limit, up to its end: it is never typed text.
fn string_rest(bytes: &[u8]) -> Step {
    let text = bytes.iter().take_while(|byte| is_printable(**byte)).count();
    let end = match &bytes[text..] {
        [BEL, ..] => 1,
        [ESC, b'\\', ..] => 2,
        [ESC] if text == 0 => return Step::Wait,
        _ if text == 0 => return step(bytes),
        _ => 0,
    };
    Step::Item(text + end, reply_item(None, &bytes[..text + end]))
}

fn string_item(bytes: &[u8], end: usize, terminator: usize) -> Step {
    let whole = &bytes[..end + terminator];
    let body = std::str::from_utf8(&bytes[2..end]).unwrap_or_default();
    let reply = match bytes[1] {
        b']' => colour_reply(body),
        b'P' => body
            .strip_prefix(">|")
            .map(|version| HostReply::Version(version.to_owned())),
        _ => None,
    };
    Step::Item(whole.len(), reply_item(reply, whole))
}

fn reply_item(reply: Option<HostReply>, whole: &[u8]) -> HostInput {
    HostInput::Reply {
        reply: reply.unwrap_or(HostReply::Unasked),
        raw: whole.to_vec(),
    }
}

/// Decodes a `CSI` sequence: keys, mouse, focus, paste marks and replies.
fn control_sequence(bytes: &[u8]) -> Step {
    // The Linux console's F1 to F5 are `CSI [ letter`.
    match bytes.get(2..) {
        Some([b'[', letter @ b'A'..=b'E', ..]) => {
            let code = KeyCode::F(letter - b'@');
            return Step::Item(4, key_item(code, KeyModifiers::NONE, &bytes[..4]));
        }
        Some([b'[']) => return Step::Wait,
        Some([b'M', rest @ ..]) => return old_mouse(bytes, rest),
        _ => {}
    }
    let Some(end) = bytes
        .iter()
        .skip(2)
        .position(|byte| !matches!(byte, 0x20..=0x3f))
    else {
        return if bytes.len() > SEQUENCE_LIMIT {
            raw(bytes)
        } else {
            Step::Wait
        };
    };
    let end = end + 2;
    if !matches!(bytes[end], 0x40..=0x7e) {
        // The sequence is broken: the next byte begins a new item. `ESC [` alone is Alt and the key.
        return if end == 2 {
            Step::Item(2, cut_short(&bytes[..2]).0)
        } else {
            raw(&bytes[..end])
        };
    }
    let whole = &bytes[..=end];
    let body = std::str::from_utf8(&bytes[2..end]).unwrap_or_default();
    Step::Item(whole.len(), sequence_item(body, bytes[end], whole))
}

/// Decodes `CSI M` with three bytes, from a terminal that does not know the SGR form.
fn old_mouse(bytes: &[u8], rest: &[u8]) -> Step {
    let [button, column, row] = match rest {
        &[button, column, row, ..] if button >= 0x20 && column > 0x20 && row > 0x20 => {
            [button, column, row].map(u16::from)
        }
        short if short.len() < 3 && short.iter().all(|byte| *byte >= 0x20) => return Step::Wait,
        _ => return raw(&bytes[..3]),
    };
    let number = button - 0x20;
    let released = number & 3 == 3 && number & 0x60 == 0;
    Step::Item(
        6,
        mouse_item(number, (column - 0x21, row - 0x21), !released, &bytes[..6]),
    )
}

fn sequence_item(body: &str, end: u8, whole: &[u8]) -> HostInput {
    let unknown = || HostInput::Raw(whole.to_vec());
    match (body, end) {
        ("", b'I') => HostInput::Focus(true),
        ("", b'O') => HostInput::Focus(false),
        ("200", b'~') => HostInput::PasteStart,
        // The child may have seen the start of a paste that we have not: without its end all keys would be pasted.
        ("201", b'~') => unknown(),
        _ => {
            if let Some(rest) = body.strip_prefix('<') {
                return sgr_mouse(rest, end, whole).unwrap_or_else(|| reply_item(None, whole));
            }
            if body.starts_with(['?', '>', '=']) {
                return reply_item(sequence_reply(body, end), whole);
            }
            match key_sequence(body, end) {
                Some(event) => HostInput::Key {
                    event,
                    raw: whole.to_vec(),
                },
                // These report the cursor's position, the window's size, a state, attributes or a mode.
                None if matches!(end, b'R' | b't' | b'n' | b'c' | b'x' | b'y') => {
                    reply_item(sequence_reply(body, end), whole)
                }
                None => unknown(),
            }
        }
    }
}

fn numbers(text: &str) -> Option<Vec<u16>> {
    text.split(';').map(|part| part.parse().ok()).collect()
}

#[cfg(test)]
mod tests;
