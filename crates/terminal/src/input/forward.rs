//! The conversion of an item of input to the child's bytes.

use crossterm::event::{KeyCode, KeyEvent, KeyEventKind, KeyEventState};

use super::HostInput;
use crate::{Modes, keys};

/// Returns the child's bytes for an item: unchanged if host and child use the same protocol, else
/// encoded again. `asked` is true if the host terminal was asked to distinguish keys: by the kitty protocol or by
/// `modifyOtherKeys`.
///
/// Mouse events give no bytes, because they need the pane's cell ([`keys::encode_mouse`]). Neither do
/// replies, which are meant for pitstop.
pub fn forward(item: &HostInput, modes: &Modes, asked: bool) -> Vec<u8> {
    match item {
        HostInput::Key { event, raw } => forward_key(event, raw, modes, asked),
        HostInput::Raw(raw) => raw.clone(),
        HostInput::PasteStart => keys::paste_start(modes).to_vec(),
        HostInput::PasteChunk(text) => keys::paste_text(text, modes),
        HostInput::PasteEnd => keys::paste_end(modes).to_vec(),
        HostInput::Focus(gained) => keys::encode_focus(*gained, modes)
            .unwrap_or_default()
            .to_vec(),
        HostInput::Mouse { .. } | HostInput::OtherButton { .. } | HostInput::Reply { .. } => {
            Vec::new()
        }
    }
}

fn forward_key(event: &KeyEvent, raw: &[u8], modes: &Modes, asked: bool) -> Vec<u8> {
    let rich = modes.kitty_flags != 0 || modes.modify_other_keys != 0;
    // These forms come only from a host that was asked for them; from any other they were typed.
    let locks = event
        .state
        .intersects(KeyEventState::CAPS_LOCK | KeyEventState::NUM_LOCK);
    let foreign = asked && (locks || is_rich_form(raw));
    let numbered = matches!(event.code, KeyCode::Char(_)) && event.kind != KeyEventKind::Release;
    let text = numbered && !foreign && raw.first().is_some_and(|byte| *byte >= 0x20);
    // Text is sent as it is in every protocol except when all keys are reported as sequences.
    if text && modes.kitty_flags & 8 == 0 && !event.state.contains(KeyEventState::KEYPAD) {
        return raw.to_vec();
    }
    if rich || foreign {
        return keys::encode_named_key(event, kitty_numbers(raw), modes);
    }
    let moved = modes.app_cursor && is_cursor_key(event);
    let keypad = event.state.contains(KeyEventState::KEYPAD) && raw.starts_with(b"\x1bO");
    if moved || (keypad && !modes.app_keypad) {
        return keys::encode_key(event, modes);
    }
    // The host was left in application mode, but the child is not in it: send the plain form.
    if !modes.app_cursor && raw.starts_with(b"\x1bO") && is_cursor_key(event) {
        return keys::encode_key(event, modes);
    }
    raw.to_vec()
}

/// Reports whether this is a form that only a host sends that was asked for it: `CSI … u`, F1 to F4 as `CSI letter` or
/// `CSI 13 ~`, any with an event type or lock bits, and the `CSI 27;modifiers;key ~` of `modifyOtherKeys`.
fn is_rich_form(raw: &[u8]) -> bool {
    let Some(body) = raw.strip_prefix(b"\x1b[") else {
        return false;
    };
    match body {
        [b'P' | b'Q' | b'S'] | b"13~" | [.., b'u'] => true,
        _ => body.contains(&b':') || body.starts_with(b"13;") || body.starts_with(b"27;"),
    }
}

/// Returns the part that names the key in `CSI key:shifted:base ; modifiers u`.
fn kitty_numbers(raw: &[u8]) -> Option<&str> {
    let body = raw.strip_prefix(b"\x1b[")?.strip_suffix(b"u")?;
    std::str::from_utf8(body).ok()?.split(';').next()
}

fn is_cursor_key(event: &KeyEvent) -> bool {
    use KeyCode::{Down, End, Home, Left, Right, Up};
    event.modifiers.is_empty() && matches!(event.code, Up | Down | Right | Left | Home | End)
}
