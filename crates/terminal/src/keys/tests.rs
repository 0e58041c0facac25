//! Tables of keys, pastes and mouse events with their bytes.

use super::*;

const NONE: KeyModifiers = KeyModifiers::NONE;
const SHIFT: KeyModifiers = KeyModifiers::SHIFT;
const ALT: KeyModifiers = KeyModifiers::ALT;
const CTRL: KeyModifiers = KeyModifiers::CONTROL;

fn legacy() -> Modes {
    Modes::default()
}

fn app() -> Modes {
    Modes {
        app_cursor: true,
        ..legacy()
    }
}

fn kitty(flags: u8) -> Modes {
    Modes {
        kitty_flags: flags,
        ..legacy()
    }
}

fn other(level: u8) -> Modes {
    Modes {
        modify_other_keys: level,
        ..legacy()
    }
}

fn encoded(code: KeyCode, modifiers: KeyModifiers, modes: &Modes) -> String {
    String::from_utf8(encode_key(&KeyEvent::new(code, modifiers), modes)).unwrap()
}

fn c(c: char) -> KeyCode {
    KeyCode::Char(c)
}

/// A key and its bytes in legacy, application cursor, kitty 1 and modifyOtherKeys 2.
type Row = (KeyCode, KeyModifiers, [&'static str; 4]);

fn same(code: KeyCode, modifiers: KeyModifiers, bytes: &'static str) -> Row {
    (code, modifiers, [bytes; 4])
}

/// Returns the row of a key whose bytes are the same with and without application cursor keys.
const fn row(
    code: KeyCode,
    modifiers: KeyModifiers,
    legacy: &'static str,
    kitty: &'static str,
    other: &'static str,
) -> Row {
    (code, modifiers, [legacy, legacy, kitty, other])
}

#[allow(
    clippy::too_many_lines,
    reason = "a test is one sequence from beginning to end"
)]
fn table() -> Vec<Row> {
    use KeyCode as K;
    let ctrl_shift = CTRL | SHIFT;
    let ctrl_alt = CTRL | ALT;
    vec![
        same(c('a'), NONE, "a"),
        same(c('A'), SHIFT, "A"),
        same(c('a'), SHIFT, "A"),
        same(c('é'), NONE, "é"),
        same(c('日'), NONE, "日"),
        same(c('1'), NONE, "1"),
        same(c('!'), SHIFT, "!"),
        same(c(' '), NONE, " "),
        row(c(' '), SHIFT, " ", " ", "\x1b[27;2;32~"),
        row(c('a'), CTRL, "\x01", "\x1b[97;5u", "\x1b[27;5;97~"),
        row(c('z'), CTRL, "\x1a", "\x1b[122;5u", "\x1b[27;5;122~"),
        row(c('c'), CTRL, "\x03", "\x1b[99;5u", "\x1b[27;5;99~"),
        row(c('i'), CTRL, "\t", "\x1b[105;5u", "\x1b[27;5;105~"),
        row(c('m'), CTRL, "\r", "\x1b[109;5u", "\x1b[27;5;109~"),
        row(c('['), CTRL, "\x1b", "\x1b[91;5u", "\x1b[27;5;91~"),
        row(c(' '), CTRL, "\0", "\x1b[32;5u", "\x1b[27;5;32~"),
        row(c('\\'), CTRL, "\x1c", "\x1b[92;5u", "\x1b[27;5;92~"),
        row(c(']'), CTRL, "\x1d", "\x1b[93;5u", "\x1b[27;5;93~"),
        row(c('^'), CTRL, "\x1e", "\x1b[94;5u", "\x1b[27;5;94~"),
        row(c('_'), CTRL, "\x1f", "\x1b[95;5u", "\x1b[27;5;95~"),
        row(c('/'), CTRL, "\x1f", "\x1b[47;5u", "\x1b[27;5;47~"),
        row(c('A'), ctrl_shift, "\x01", "\x1b[97;6u", "\x1b[27;6;65~"),
        row(c(','), CTRL, ",", "\x1b[44;5u", "\x1b[27;5;44~"),
        row(c('a'), ALT, "\x1ba", "\x1b[97;3u", "\x1b[27;3;97~"),
        row(c('A'), ALT | SHIFT, "\x1bA", "\x1b[97;4u", "\x1b[27;4;65~"),
        row(c('é'), ALT, "\x1bé", "\x1b[233;3u", "\x1b[27;3;233~"),
        row(c('a'), ctrl_alt, "\x1b\x01", "\x1b[97;7u", "\x1b[27;7;97~"),
        row(
            c('b'),
            KeyModifiers::SUPER,
            "b",
            "\x1b[98;9u",
            "\x1b[27;9;98~",
        ),
        same(K::Enter, NONE, "\r"),
        row(K::Enter, SHIFT, "\x1b[13;2u", "\x1b[13;2u", "\x1b[27;2;13~"),
        row(K::Enter, ALT, "\x1b\r", "\x1b[13;3u", "\x1b[27;3;13~"),
        row(K::Enter, CTRL, "\r", "\x1b[13;5u", "\x1b[27;5;13~"),
        same(K::Tab, NONE, "\t"),
        row(K::BackTab, SHIFT, "\x1b[Z", "\x1b[9;2u", "\x1b[Z"),
        row(K::Tab, SHIFT, "\x1b[Z", "\x1b[9;2u", "\x1b[Z"),
        row(K::Tab, CTRL, "\t", "\x1b[9;5u", "\x1b[27;5;9~"),
        same(K::Backspace, NONE, "\x7f"),
        row(K::Backspace, CTRL, "\x08", "\x1b[127;5u", "\x1b[27;5;127~"),
        row(
            K::Backspace,
            ALT,
            "\x1b\x7f",
            "\x1b[127;3u",
            "\x1b[27;3;127~",
        ),
        row(K::Esc, NONE, "\x1b", "\x1b[27u", "\x1b"),
        row(K::Esc, ALT, "\x1b\x1b", "\x1b[27;3u", "\x1b[27;3;27~"),
        (K::Up, NONE, ["\x1b[A", "\x1bOA", "\x1b[A", "\x1b[A"]),
        (K::Down, NONE, ["\x1b[B", "\x1bOB", "\x1b[B", "\x1b[B"]),
        (K::Right, NONE, ["\x1b[C", "\x1bOC", "\x1b[C", "\x1b[C"]),
        (K::Left, NONE, ["\x1b[D", "\x1bOD", "\x1b[D", "\x1b[D"]),
        (K::Home, NONE, ["\x1b[H", "\x1bOH", "\x1b[H", "\x1b[H"]),
        (K::End, NONE, ["\x1b[F", "\x1bOF", "\x1b[F", "\x1b[F"]),
        same(K::Up, SHIFT, "\x1b[1;2A"),
        same(K::Down, ALT, "\x1b[1;3B"),
        same(K::Right, CTRL, "\x1b[1;5C"),
        same(K::Left, ctrl_shift, "\x1b[1;6D"),
        same(K::Home, CTRL, "\x1b[1;5H"),
        same(K::End, SHIFT, "\x1b[1;2F"),
        same(K::Insert, NONE, "\x1b[2~"),
        same(K::Delete, NONE, "\x1b[3~"),
        same(K::Delete, CTRL, "\x1b[3;5~"),
        same(K::PageUp, NONE, "\x1b[5~"),
        same(K::PageDown, NONE, "\x1b[6~"),
        same(K::PageUp, SHIFT, "\x1b[5;2~"),
        row(K::F(1), NONE, "\x1bOP", "\x1b[P", "\x1bOP"),
        row(K::F(2), NONE, "\x1bOQ", "\x1b[Q", "\x1bOQ"),
        row(K::F(3), NONE, "\x1bOR", "\x1b[13~", "\x1bOR"),
        row(K::F(4), NONE, "\x1bOS", "\x1b[S", "\x1bOS"),
        same(K::F(1), CTRL, "\x1b[1;5P"),
        row(K::F(3), SHIFT, "\x1b[1;2R", "\x1b[13;2~", "\x1b[1;2R"),
        same(K::F(5), NONE, "\x1b[15~"),
        same(K::F(6), NONE, "\x1b[17~"),
        same(K::F(7), NONE, "\x1b[18~"),
        same(K::F(8), NONE, "\x1b[19~"),
        same(K::F(9), NONE, "\x1b[20~"),
        same(K::F(10), NONE, "\x1b[21~"),
        same(K::F(11), NONE, "\x1b[23~"),
        same(K::F(12), NONE, "\x1b[24~"),
        same(K::F(12), ctrl_alt, "\x1b[24;7~"),
        row(K::F(13), NONE, "\x1b[25~", "\x1b[57376u", "\x1b[25~"),
        row(K::Menu, NONE, "", "\x1b[57363u", ""),
        same(K::CapsLock, NONE, ""),
    ]
}

#[test]
fn every_key_has_its_bytes_in_every_language() {
    let table = table();
    assert!(table.len() >= 60);
    for (code, modifiers, expected) in table {
        for (modes, bytes) in [legacy(), app(), kitty(1), other(2)].iter().zip(expected) {
            assert_eq!(
                encoded(code, modifiers, modes),
                bytes,
                "{code:?} {modifiers:?} {modes:?}"
            );
        }
    }
}

/// Adds the shifted character to a key that is reported alone: `CSI 97;6u` becomes `CSI 97:65;6u`.
fn with_alternate(bytes: &str) -> String {
    let fields = bytes
        .strip_prefix("\x1b[")
        .and_then(|rest| rest.strip_suffix('u'));
    let Some((key, number)) = fields.and_then(|fields| fields.split_once(';')) else {
        return bytes.to_owned();
    };
    let letter = key.parse().ok().and_then(char::from_u32);
    let shifted = number
        .parse::<u8>()
        .is_ok_and(|number| (number - 1) & 1 == 1);
    match letter {
        Some(letter @ 'a'..='z') if shifted => {
            format!(
                "\x1b[{key}:{};{number}u",
                u32::from(letter.to_ascii_uppercase())
            )
        }
        _ => bytes.to_owned(),
    }
}

#[test]
fn the_clients_flags_report_the_shifted_character_too() {
    let mut both_known = 0;
    for (code, modifiers, [_, _, alone, _]) in table() {
        let both = encoded(code, modifiers, &kitty(5));
        assert_eq!(both, with_alternate(alone), "{code:?} {modifiers:?}");
        both_known += usize::from(both != alone);
    }
    assert!(both_known > 0);
}

#[test]
fn modify_other_keys_1_leaves_what_has_a_form() {
    let table = [
        (c('a'), CTRL, "\x01"),
        (c('a'), ALT, "\x1ba"),
        (c('a'), CTRL | ALT, "\x1b\x01"),
        (c('A'), CTRL | SHIFT, "\x1b[27;6;65~"),
        (c(','), CTRL, "\x1b[27;5;44~"),
        (c('1'), CTRL, "\x1b[27;5;49~"),
        (c(' '), SHIFT, " "),
        (KeyCode::Enter, SHIFT, "\x1b[27;2;13~"),
        (KeyCode::Enter, CTRL, "\x1b[27;5;13~"),
        (KeyCode::Enter, ALT, "\x1b\r"),
        (KeyCode::Tab, CTRL, "\x1b[27;5;9~"),
        (KeyCode::Backspace, CTRL, "\x08"),
        (KeyCode::Up, CTRL, "\x1b[1;5A"),
    ];
    for (code, modifiers, expected) in table {
        assert_eq!(
            encoded(code, modifiers, &other(1)),
            expected,
            "{code:?} {modifiers:?}"
        );
    }
}

#[test]
fn all_keys_and_alternates_and_text_follow_the_protocol() {
    let table = [
        (8, c('a'), NONE, "\x1b[97u"),
        (8, c('A'), SHIFT, "\x1b[97;2u"),
        (12, c('A'), SHIFT, "\x1b[97:65;2u"),
        (12, c('a'), SHIFT, "\x1b[97:65;2u"),
        (5, c('A'), SHIFT, "A"),
        (5, c('A'), SHIFT | CTRL, "\x1b[97:65;6u"),
        (5, c('a'), CTRL, "\x1b[97;5u"),
        (24, c('a'), NONE, "\x1b[97;;97u"),
        (24, c('A'), SHIFT, "\x1b[97;2;65u"),
        (24, c('a'), CTRL, "\x1b[97;5u"),
        (8, KeyCode::Enter, NONE, "\x1b[13u"),
        (8, KeyCode::Tab, NONE, "\x1b[9u"),
        (8, KeyCode::Backspace, NONE, "\x1b[127u"),
        (8, KeyCode::Esc, NONE, "\x1b[27u"),
        (8, KeyCode::Up, NONE, "\x1b[A"),
        (8, KeyCode::CapsLock, NONE, "\x1b[57358u"),
        (4, KeyCode::Esc, NONE, "\x1b"),
        (4, c('a'), CTRL, "\x01"),
        (2, KeyCode::Up, NONE, "\x1b[A"),
    ];
    for (flags, code, modifiers, expected) in table {
        assert_eq!(
            encoded(code, modifiers, &kitty(flags)),
            expected,
            "{flags} {code:?}"
        );
    }
}

#[test]
fn releases_and_repeats_are_reported_only_to_those_who_asked() {
    let event = |code, kind| KeyEvent::new_with_kind(code, NONE, kind);
    let (repeat, release) = (KeyEventKind::Repeat, KeyEventKind::Release);
    assert_eq!(encode_key(&event(KeyCode::Up, release), &legacy()), b"");
    assert_eq!(
        encode_key(&event(KeyCode::Up, repeat), &legacy()),
        b"\x1b[A"
    );
    assert_eq!(encode_key(&event(KeyCode::Up, release), &kitty(1)), b"");
    assert_eq!(
        encode_key(&event(KeyCode::Up, repeat), &kitty(1)),
        b"\x1b[A"
    );
    assert_eq!(
        encode_key(&event(KeyCode::Up, release), &kitty(3)),
        b"\x1b[1;1:3A"
    );
    assert_eq!(
        encode_key(&event(KeyCode::Esc, repeat), &kitty(3)),
        b"\x1b[27;1:2u"
    );
    assert_eq!(encode_key(&event(c('a'), release), &kitty(3)), b"");
    assert_eq!(encode_key(&event(KeyCode::Enter, release), &kitty(3)), b"");
    assert_eq!(
        encode_key(&event(c('a'), release), &kitty(11)),
        b"\x1b[97;1:3u"
    );
    assert_eq!(
        encode_key(&event(KeyCode::Enter, release), &kitty(11)),
        b"\x1b[13;1:3u"
    );
}

#[test]
fn the_keypad_has_its_application_forms() {
    let modes = Modes {
        app_keypad: true,
        ..legacy()
    };
    let key = |code| {
        KeyEvent::new_with_kind_and_state(code, NONE, KeyEventKind::Press, KeyEventState::KEYPAD)
    };
    assert_eq!(encode_key(&key(c('5')), &modes), b"\x1bOu");
    assert_eq!(encode_key(&key(KeyCode::Enter), &modes), b"\x1bOM");
    assert_eq!(encode_key(&key(c('5')), &legacy()), b"5");
    assert_eq!(encoded(c('5'), NONE, &modes), "5");
}

#[test]
fn a_paste_keeps_its_bytes_but_cannot_end_itself() {
    let bracketed = Modes {
        bracketed_paste: true,
        ..legacy()
    };
    assert_eq!(
        encode_paste(b"a\tb\r\nc", &bracketed),
        b"\x1b[200~a\tb\r\nc\x1b[201~"
    );
    assert_eq!(encode_paste(b"a\nb\r\nc\r", &legacy()), b"a\rb\rc\r");
    assert_eq!(encode_paste(b"", &bracketed), b"\x1b[200~\x1b[201~");
    assert_eq!(
        encode_paste(b"x\x1b[201~y", &bracketed),
        b"\x1b[200~xy\x1b[201~"
    );
    assert_eq!(
        encode_paste(b"x\x1b[20\x1b[201~1~y", &bracketed),
        b"\x1b[200~xy\x1b[201~"
    );
    assert_eq!(
        encode_paste(b"a\x00\x03\x1b\x7fb\xff\xc3\xa9", &bracketed),
        b"\x1b[200~ab\xff\xc3\xa9\x1b[201~"
    );
}

#[test]
fn focus_is_reported_only_to_those_who_asked() {
    assert_eq!(encode_focus(true, &legacy()), None);
    let modes = Modes {
        focus_events: true,
        ..legacy()
    };
    assert_eq!(encode_focus(true, &modes), Some(b"\x1b[I".as_slice()));
    assert_eq!(encode_focus(false, &modes), Some(b"\x1b[O".as_slice()));
}

fn mouse(kind: MouseEventKind, modifiers: KeyModifiers, modes: &Modes) -> Option<String> {
    let event = MouseEvent {
        kind,
        column: 500,
        row: 500,
        modifiers,
    };
    encode_mouse(&event, 9, 4, modes).map(|bytes| String::from_utf8(bytes).unwrap())
}

#[test]
fn mouse_reports_follow_mode_and_form() {
    use MouseButton::{Left, Right};
    use MouseEventKind::{Down, Drag, Moved, ScrollDown, ScrollUp, Up};
    let modes = |mouse, sgr_mouse| Modes {
        mouse,
        sgr_mouse,
        ..legacy()
    };
    let (click, drag, motion) = (
        modes(MouseTracking::Click, true),
        modes(MouseTracking::Drag, true),
        modes(MouseTracking::Motion, true),
    );
    let table = [
        (Down(Left), NONE, click, Some("\x1b[<0;10;5M")),
        (Up(Left), NONE, click, Some("\x1b[<0;10;5m")),
        (Down(Right), CTRL | SHIFT, click, Some("\x1b[<22;10;5M")),
        (Drag(Left), NONE, click, None),
        (Drag(Left), NONE, drag, Some("\x1b[<32;10;5M")),
        (Moved, NONE, drag, None),
        (Moved, NONE, motion, Some("\x1b[<35;10;5M")),
        (ScrollUp, NONE, click, Some("\x1b[<64;10;5M")),
        (ScrollDown, ALT, click, Some("\x1b[<73;10;5M")),
        (
            Down(Left),
            NONE,
            modes(MouseTracking::Click, false),
            Some("\x1b[M *%"),
        ),
        (
            Up(Right),
            NONE,
            modes(MouseTracking::Click, false),
            Some("\x1b[M#*%"),
        ),
        (
            Down(Left),
            CTRL,
            modes(MouseTracking::X10, false),
            Some("\x1b[M *%"),
        ),
        (Up(Left), NONE, modes(MouseTracking::X10, false), None),
        (Down(Left), NONE, legacy(), None),
    ];
    for (kind, modifiers, modes, expected) in table {
        assert_eq!(
            mouse(kind, modifiers, &modes).as_deref(),
            expected,
            "{kind:?} {modes:?}"
        );
    }
}

#[test]
fn far_cells_are_reported_only_where_the_form_can() {
    let event = MouseEvent {
        kind: MouseEventKind::Moved,
        column: 0,
        row: 0,
        modifiers: NONE,
    };
    let modes = Modes {
        mouse: MouseTracking::Motion,
        ..legacy()
    };
    assert_eq!(
        encode_mouse(&event, 222, 0, &modes).unwrap(),
        b"\x1b[MC\xff!"
    );
    assert_eq!(encode_mouse(&event, 223, 0, &modes), None);
    let utf8 = Modes {
        utf8_mouse: true,
        ..modes
    };
    assert_eq!(
        encode_mouse(&event, 223, 0, &utf8).unwrap(),
        "\x1b[MC\u{100}!".as_bytes()
    );
    assert_eq!(encode_mouse(&event, 2020, 0, &utf8), None);
    let sgr = Modes {
        sgr_mouse: true,
        ..modes
    };
    assert_eq!(
        encode_mouse(&event, 2020, 999, &sgr).unwrap(),
        b"\x1b[<35;2021;1000M"
    );
}

#[test]
fn the_wheel_goes_where_it_was_asked_for() {
    use MouseEventKind::{ScrollDown, ScrollUp};
    let asked = Modes {
        mouse: MouseTracking::Click,
        sgr_mouse: true,
        ..legacy()
    };
    let alternate = Modes {
        alternate_screen: true,
        alternate_scroll: true,
        ..legacy()
    };
    let unwanted = Modes {
        alternate_scroll: false,
        ..alternate
    };
    let app = Modes {
        app_cursor: true,
        ..alternate
    };
    let table = [
        (ScrollUp, asked, Some("\x1b[<64;10;5M")),
        (ScrollDown, asked, Some("\x1b[<65;10;5M")),
        (ScrollUp, alternate, Some("\x1b[A\x1b[A\x1b[A")),
        (ScrollDown, alternate, Some("\x1b[B\x1b[B\x1b[B")),
        (ScrollUp, app, Some("\x1bOA\x1bOA\x1bOA")),
        (ScrollUp, unwanted, None),
        (ScrollDown, unwanted, None),
        (
            ScrollUp,
            Modes {
                alternate_scroll: true,
                ..legacy()
            },
            None,
        ),
        (ScrollDown, legacy(), None),
    ];
    for (kind, modes, expected) in table {
        assert_eq!(
            mouse(kind, NONE, &modes).as_deref(),
            expected,
            "{kind:?} {modes:?}"
        );
    }
}
