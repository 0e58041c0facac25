//! Keys to bytes: what the host terminal sends, read and said again in the language of the child.

use crossterm::event::KeyCode;
use pitstop_terminal::{
    Modes, MouseTracking,
    input::{Decoder, HostInput, forward},
    keys::{self, PASTE_END, PASTE_START},
};

use super::Input;

/// Reads bytes as the host terminal's and sends them on in every way.
pub fn check(data: &[u8]) {
    let mut input = Input(data);
    let modes = modes(&mut input);
    let (seed, host_kitty) = (input.byte(), input.byte() & 1 == 1);
    let mut decoder = Decoder::default();
    let mut items = Vec::new();
    for piece in input.pieces(seed) {
        items.extend(decoder.feed(piece));
        // As long a silence as parts Escape from what begins with it.
        if piece.len() == usize::from(seed % 8) {
            items.extend(decoder.flush());
        }
    }
    items.extend(decoder.flush());
    assert!(decoder.flush_after().is_none());
    let raw: Vec<u8> = items.iter().flat_map(|item| item.raw().to_vec()).collect();
    assert_eq!(raw, input.0, "not all that came in came out");

    let mut in_paste = false;
    for item in &items {
        let sent = forward(item, &modes, host_kitty);
        match item {
            HostInput::PasteStart => {
                in_paste = true;
                assert_eq!(sent, mark(PASTE_START, &modes));
            }
            HostInput::PasteEnd => {
                in_paste = false;
                assert_eq!(sent, mark(PASTE_END, &modes));
            }
            HostInput::PasteChunk(_) => {
                assert!(in_paste, "text of a paste outside of one");
                is_plain(&sent, &modes);
            }
            item => {
                assert!(!in_paste, "{item:?} in a paste");
                assert!(
                    memchr::memmem::find(&sent, PASTE_START).is_none(),
                    "{item:?} began a paste"
                );
                said_again(item, &modes);
            }
        }
    }
    let whole = keys::encode_paste(input.0, &modes);
    let text = whole
        .strip_prefix(mark(PASTE_START, &modes))
        .and_then(|rest| rest.strip_suffix(mark(PASTE_END, &modes)));
    is_plain(text.expect("a paste with its marks"), &modes);
}

/// Any modes that a child can set.
fn modes(input: &mut Input) -> Modes {
    let (first, second, third) = (input.byte(), input.byte(), input.byte());
    let bit = |bits: u8, number: u8| bits >> number & 1 == 1;
    let mouse = [
        MouseTracking::None,
        MouseTracking::X10,
        MouseTracking::Click,
        MouseTracking::Drag,
        MouseTracking::Motion,
    ];
    Modes {
        app_cursor: bit(first, 0),
        app_keypad: bit(first, 1),
        bracketed_paste: bit(first, 2),
        focus_events: bit(first, 3),
        sgr_mouse: bit(first, 4),
        utf8_mouse: bit(first, 5),
        alternate_screen: bit(first, 6),
        alternate_scroll: bit(first, 7),
        kitty_flags: second % 32,
        mouse: mouse[usize::from(second >> 5) % mouse.len()],
        modify_other_keys: third % 3,
    }
}

fn mark<'a>(mark: &'a [u8], modes: &Modes) -> &'a [u8] {
    if modes.bracketed_paste { mark } else { b"" }
}

/// The text of a paste is text: nothing in it is a key, or the paste's end.
fn is_plain(text: &[u8], modes: &Modes) {
    let allowed = |byte: &u8| match byte {
        b'\n' => modes.bracketed_paste,
        b'\t' | b'\r' => true,
        byte => *byte >= 0x20 && *byte != 0x7f,
    };
    assert!(text.iter().all(allowed), "{}", text.escape_ascii());
}

/// What keys and the mouse are encoded as is one of their forms, and is read as the same kind of thing.
fn said_again(item: &HostInput, modes: &Modes) {
    match item {
        HostInput::Key { event, .. } => {
            let bytes = keys::encode_key(event, modes);
            assert!(bytes.len() <= 40, "{event:?} as {}", bytes.escape_ascii());
            let mut decoder = Decoder::default();
            let mut items = decoder.feed(&bytes);
            items.extend(decoder.flush());
            // Controls of the second kind are no keys, and are taken for none.
            let control = matches!(event.code, KeyCode::Char(c) if c.is_control());
            for item in items {
                let key = control || matches!(item, HostInput::Key { .. });
                assert!(key, "{event:?} as {}: {item:?}", bytes.escape_ascii());
            }
        }
        HostInput::Mouse { event, .. } => {
            let Some(bytes) = keys::encode_mouse(event, event.column, event.row, modes) else {
                return;
            };
            let arrows = modes.mouse == MouseTracking::None;
            let sgr = bytes.starts_with(b"\x1b[<") && modes.sgr_mouse;
            let old = bytes.starts_with(b"\x1b[M") && !modes.sgr_mouse;
            assert!(
                arrows || sgr || old,
                "{event:?} as {}",
                bytes.escape_ascii()
            );
            assert!(bytes.len() <= 24, "{event:?} as {}", bytes.escape_ascii());
            if sgr {
                let mut decoder = Decoder::default();
                let items = decoder.feed(&bytes);
                assert!(decoder.flush_after().is_none());
                let [HostInput::Mouse { event: read, .. }] = items.as_slice() else {
                    panic!("{event:?} as {}: {items:?}", bytes.escape_ascii());
                };
                assert_eq!((read.column, read.row), (event.column, event.row));
                assert_eq!(read.kind, event.kind);
            }
        }
        _ => {}
    }
}
