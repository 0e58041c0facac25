//! Tests of the meaning of each byte string, and that no byte is ever lost or changed.

use crossterm::event::{MouseButton, MouseEventKind};
use proptest::prelude::*;

use super::*;
use crate::{Modes, keys};

const NONE: KeyModifiers = KeyModifiers::NONE;
const SHIFT: KeyModifiers = KeyModifiers::SHIFT;
const ALT: KeyModifiers = KeyModifiers::ALT;
const CTRL: KeyModifiers = KeyModifiers::CONTROL;

fn decode(bytes: impl AsRef<[u8]>) -> Vec<HostInput> {
    let mut decoder = Decoder::default();
    let mut items = decoder.feed(bytes.as_ref());
    items.extend(decoder.flush());
    items
}

fn joined(items: &[HostInput]) -> Vec<u8> {
    items.iter().flat_map(|item| item.raw().to_vec()).collect()
}

fn key(code: KeyCode, modifiers: KeyModifiers) -> KeyEvent {
    KeyEvent::new(code, modifiers)
}

fn c(c: char) -> KeyCode {
    KeyCode::Char(c)
}

/// Creates a reply that the hosted program does not get.
fn unasked(bytes: impl AsRef<[u8]>) -> HostInput {
    HostInput::Reply {
        reply: HostReply::Unasked,
        raw: bytes.as_ref().to_vec(),
    }
}

fn only_key(bytes: &str) -> KeyEvent {
    match &decode(bytes)[..] {
        [HostInput::Key { event, raw }] => {
            assert_eq!(raw, bytes.as_bytes());
            *event
        }
        other => panic!("{bytes:?} is {other:?}"),
    }
}

#[test]
fn keys_are_read_in_every_language() {
    use KeyCode as K;
    let table = [
        ("a", c('a'), NONE),
        ("A", c('A'), SHIFT),
        ("é", c('é'), NONE),
        ("日", c('日'), NONE),
        ("\r", K::Enter, NONE),
        ("\t", K::Tab, NONE),
        ("\x7f", K::Backspace, NONE),
        ("\x1b", K::Esc, NONE),
        ("\0", c(' '), CTRL),
        ("\x01", c('a'), CTRL),
        ("\x08", c('h'), CTRL),
        ("\n", c('j'), CTRL),
        ("\x11", c('q'), CTRL),
        ("\x1a", c('z'), CTRL),
        ("\x1c", c('\\'), CTRL),
        ("\x1d", c(']'), CTRL),
        ("\x1f", c('_'), CTRL),
        ("\x1ba", c('a'), ALT),
        ("\x1bé", c('é'), ALT),
        ("\x1b\r", K::Enter, ALT),
        ("\x1b\x7f", K::Backspace, ALT),
        ("\x1b\x01", c('a'), ALT | CTRL),
        ("\x1b[", c('['), ALT),
        ("\x1bO", c('O'), ALT | SHIFT),
        ("\x1b]", c(']'), ALT),
        ("\x1bP", c('P'), ALT | SHIFT),
        ("\x1b[A", K::Up, NONE),
        ("\x1bOA", K::Up, NONE),
        ("\x1b[1;5C", K::Right, CTRL),
        ("\x1b[1;4D", K::Left, SHIFT | ALT),
        ("\x1b[H", K::Home, NONE),
        ("\x1b[1~", K::Home, NONE),
        ("\x1b[4~", K::End, NONE),
        ("\x1b[2~", K::Insert, NONE),
        ("\x1b[3;5~", K::Delete, CTRL),
        ("\x1b[5~", K::PageUp, NONE),
        ("\x1b[Z", K::BackTab, SHIFT),
        ("\x1bOP", K::F(1), NONE),
        ("\x1b[P", K::F(1), NONE),
        ("\x1b[[A", K::F(1), NONE),
        ("\x1b[[E", K::F(5), NONE),
        ("\x1b[11~", K::F(1), NONE),
        ("\x1b[15~", K::F(5), NONE),
        ("\x1b[21~", K::F(10), NONE),
        ("\x1b[24;2~", K::F(12), SHIFT),
        ("\x1b[1;2R", K::F(3), SHIFT),
        ("\x1b[13~", K::F(3), NONE),
        ("\x1b[97;5u", c('a'), CTRL),
        ("\x1b[97;6u", c('A'), SHIFT | CTRL),
        ("\x1b[97:65;2u", c('A'), SHIFT),
        ("\x1b[49:33;2u", c('!'), SHIFT),
        ("\x1b[13;2u", K::Enter, SHIFT),
        ("\x1b[9;2u", K::BackTab, SHIFT),
        ("\x1b[27u", K::Esc, NONE),
        ("\x1b[127;3u", K::Backspace, ALT),
        ("\x1b[27;5;97~", c('a'), CTRL),
        ("\x1b[27;2;13~", K::Enter, SHIFT),
        ("\x1b[57363u", K::Menu, NONE),
        ("\x1b[97;;97u", c('a'), NONE),
    ];
    for (bytes, code, modifiers) in table {
        let event = only_key(bytes);
        assert_eq!(
            (event.code, event.modifiers),
            (code, modifiers),
            "{bytes:?}"
        );
    }
    assert_eq!(only_key("\x1b[97;1:3u").kind, KeyEventKind::Release);
    assert_eq!(only_key("\x1b[1;1:2A").kind, KeyEventKind::Repeat);
    assert!(
        only_key("\x1b[97;65u")
            .state
            .contains(KeyEventState::CAPS_LOCK)
    );
    assert!(only_key("\x1bOu").state.contains(KeyEventState::KEYPAD));
    assert_eq!(only_key("\x1bOu").code, c('5'));
}

#[test]
fn only_what_may_go_on_is_held_back() {
    let mut decoder = Decoder::default();
    assert_eq!(decoder.feed(b"ab").len(), 2);
    assert!(decoder.flush_after().is_none());
    assert_eq!(decoder.feed(b"\x1b"), []);
    assert!(decoder.flush_after().is_some());
    assert_eq!(decoder.feed(b"[").len(), 0);
    assert_eq!(decoder.feed(b"A").len(), 1);
    assert!(decoder.flush_after().is_none());
    decoder.feed(b"\x1b");
    assert_eq!(decoder.flush(), [key_item(KeyCode::Esc, NONE, b"\x1b")]);
    assert!(decoder.flush_after().is_none());
    assert_eq!(
        decoder.feed(b"\x1b\x1b").len(),
        1,
        "the first ESC is certain"
    );
}

#[test]
fn pastes_come_in_parts_and_keep_their_bytes() {
    let items = decode("a\x1b[200~x\x1b[A\x03é\x1b[201~b");
    let a = key_item(c('a'), NONE, b"a");
    let b = key_item(c('b'), NONE, b"b");
    let chunk = HostInput::PasteChunk("x\x1b[A\x03é".into());
    assert_eq!(
        items,
        [a, HostInput::PasteStart, chunk, HostInput::PasteEnd, b]
    );
    let empty = decode("\x1b[200~\x1b[201~");
    assert_eq!(empty, [HostInput::PasteStart, HostInput::PasteEnd]);
    assert_eq!(decode("\x1b[201~"), [HostInput::Raw(PASTE_END.to_vec())]);
}

#[test]
fn a_large_paste_is_not_held_back() {
    let mut decoder = Decoder::default();
    decoder.feed(PASTE_START);
    let block = vec![b'x'; 1 << 20];
    for _ in 0..8 {
        assert_eq!(decoder.feed(&block), [HostInput::PasteChunk(block.clone())]);
        assert!(decoder.flush_after().is_none());
    }
    decoder.feed(b"\x1b[20");
    assert!(decoder.flush_after().is_none(), "a paste has an end");
    assert_eq!(
        decoder.flush(),
        [HostInput::PasteChunk(b"\x1b[20".to_vec())]
    );
    assert_eq!(decoder.feed(PASTE_END), [HostInput::PasteEnd]);
}

/// A busy machine or a slow link cuts sequences anywhere: an end mark that is not waited for would paste the later keys.
#[test]
fn a_paste_whose_start_mark_a_slow_line_has_cut_is_a_paste() {
    let mut decoder = Decoder::default();
    assert_eq!(decoder.feed(b"\x1b"), []);
    let flushed = decoder.flush();
    assert!(
        matches!(&flushed[..], [HostInput::Key { .. }]),
        "{flushed:?}"
    );
    let items = decoder.feed(b"[200~rm x\r\x1b[201~y");
    let raw: Vec<u8> = items.iter().flat_map(HostInput::raw).copied().collect();
    assert_eq!(raw, b"[200~rm x\r\x1b[201~y", "the child gets every byte");
    assert_eq!(items[1], HostInput::PasteChunk(b"rm x\r".to_vec()));
    assert_eq!(items[2], HostInput::PasteEnd);
    // A key between them makes it text.
    decoder.feed(b"\x1b");
    decoder.flush();
    decoder.feed(b"a");
    let items = decoder.feed(b"[200~");
    assert!(
        items
            .iter()
            .all(|item| matches!(item, HostInput::Key { .. }))
    );
}

#[test]
fn what_no_person_can_have_typed_is_waited_for() {
    let mut decoder = Decoder::default();
    let mut wait = |bytes: &[u8]| {
        decoder.feed(bytes);
        decoder.flush_after()
    };
    for key in ["\x1b", "["] {
        assert_eq!(wait(key.as_bytes()), Some(KEY_TIME));
    }
    for part in ["2", "00"] {
        assert_eq!(wait(part.as_bytes()), Some(SEQUENCE_TIME));
    }
    for part in ["~text", "\x1b", "[", "201"] {
        assert_eq!(wait(part.as_bytes()), None);
    }
    assert_eq!(decoder.feed(b"~"), [HostInput::PasteEnd]);
}

#[test]
fn mouse_and_focus_are_read() {
    use MouseButton::{Left, Right};
    use MouseEventKind::{Down, Drag, Moved, ScrollDown, ScrollUp, Up};
    let table = [
        ("\x1b[<0;10;5M", Down(Left), NONE),
        ("\x1b[<0;10;5m", Up(Left), NONE),
        ("\x1b[<22;10;5M", Down(Right), SHIFT | CTRL),
        ("\x1b[<32;10;5M", Drag(Left), NONE),
        ("\x1b[<35;10;5M", Moved, NONE),
        ("\x1b[<64;10;5M", ScrollUp, NONE),
        ("\x1b[<73;10;5M", ScrollDown, ALT),
        ("\x1b[M *%", Down(Left), NONE),
        ("\x1b[M#*%", Up(Left), NONE),
    ];
    for (bytes, kind, modifiers) in table {
        let event = MouseEvent {
            kind,
            column: 9,
            row: 4,
            modifiers,
        };
        assert_eq!(
            decode(bytes),
            [HostInput::Mouse {
                event,
                raw: bytes.into()
            }]
        );
    }
    assert_eq!(
        decode("\x1b[I\x1b[O"),
        [HostInput::Focus(true), HostInput::Focus(false)]
    );
}

#[test]
fn answers_are_read() {
    let colour = |which, r, g, b| HostReply::Colour {
        which,
        rgb: Rgb(r, g, b),
    };
    let table = [
        ("\x1b[?62;22c", HostReply::DeviceAttributes(vec![62, 22])),
        (
            "\x1b[?2026;2$y",
            HostReply::ModeReport {
                mode: 2026,
                value: 2,
            },
        ),
        ("\x1b[?5u", HostReply::KittyFlags(5)),
        ("\x1b[?997;1n", HostReply::ColourScheme(ColourScheme::Dark)),
        ("\x1b[?997;2n", HostReply::ColourScheme(ColourScheme::Light)),
        (
            "\x1bP>|kitty(0.40.0)\x1b\\",
            HostReply::Version("kitty(0.40.0)".into()),
        ),
        (
            "\x1b]10;rgb:ffff/8080/0000\x07",
            colour(HostColour::Foreground, 255, 128, 0),
        ),
        (
            "\x1b]11;rgb:1e/1e/2e\x1b\\",
            colour(HostColour::Background, 0x1e, 0x1e, 0x2e),
        ),
        (
            "\x1b]12;#a0b0c0\x07",
            colour(HostColour::Cursor, 0xa0, 0xb0, 0xc0),
        ),
        (
            "\x1b]4;7;rgba:ff/ff/ff/80\x07",
            colour(HostColour::Palette(7), 255, 255, 255),
        ),
    ];
    for (bytes, reply) in table {
        assert_eq!(
            decode(bytes),
            [HostInput::Reply {
                reply,
                raw: bytes.into()
            }],
            "{bytes:?}"
        );
    }
}

#[test]
fn what_is_broken_comes_out_raw_and_hides_nothing() {
    let a = || key_item(c('a'), NONE, b"a");
    let raw = |bytes: &[u8]| HostInput::Raw(bytes.to_vec());
    assert_eq!(decode(b"\xffa"), [raw(b"\xff"), a()]);
    assert_eq!(decode(b"\xe2\x82a"), [raw(b"\xe2\x82"), a()]);
    assert_eq!(decode(b"\x1b[12;\x07a")[0], raw(b"\x1b[12;"));
    assert_eq!(decode(b"\x1b[999z"), [raw(b"\x1b[999z")]);
}

#[test]
fn an_answer_that_nobody_asked_for_is_for_nobody() {
    for bytes in [
        "\x1b]11;rgb:x\x07",
        "\x1b]52;c;aGVsbG8=\x1b\\",
        "\x1b]99;i=1:p=close;\x1b\\",
        "\x1bP1+r544e=6b69747479\x1b\\",
        "\x1bP!|00000000\x1b\\",
        "\x1b_Gi=31;OK\x1b\\",
        "\x1b[24;80R",
        "\x1b[?24;80R",
        "\x1b[8;24;80t",
        "\x1b[4;600;800t",
        "\x1b[0n",
        "\x1b[?62;4c",
        "\x1b[>1;100;0c",
        "\x1b[2;1;1;128;128;1;0x",
        "\x1b[4;2$y",
        "\x1b[?2027;0$y",
        "\x1b[?1;0;256S",
        "\x1b[<0;1M",
    ] {
        let items = decode(bytes);
        assert!(
            matches!(&items[..], [HostInput::Reply { .. }]),
            "{bytes:?}: {items:?}"
        );
        assert_eq!(forwarded(bytes, &Modes::default(), true), "", "{bytes:?}");
    }
    let broken = decode(b"\x1b]11;abc\ra");
    assert_eq!(broken[0], unasked("\x1b]11;abc"));
    assert_eq!(broken.len(), 3, "what stands behind it are keys");
    let endless = ["\x1b]52;c;", &"x".repeat(100_000), "\x1b\\a"].concat();
    for size in [1, 7, 4_096, 200_000] {
        let mut decoder = Decoder::default();
        let items: Vec<_> = endless
            .as_bytes()
            .chunks(size)
            .flat_map(|chunk| decoder.feed(chunk))
            .collect();
        assert!(decoder.held.len() <= STRING_LIMIT);
        assert_eq!(joined(&items), endless.as_bytes());
        let keys = items
            .iter()
            .filter(|item| matches!(item, HostInput::Key { .. }));
        assert_eq!(keys.count(), 1, "{size}");
    }
}

fn forwarded(bytes: &str, modes: &Modes, host_kitty: bool) -> String {
    let all = decode(bytes)
        .iter()
        .flat_map(|item| forward(item, modes, host_kitty))
        .collect();
    String::from_utf8(all).unwrap()
}

#[test]
fn bytes_go_through_unchanged_where_both_speak_the_same() {
    let plain = Modes {
        bracketed_paste: true,
        focus_events: true,
        ..Modes::default()
    };
    for bytes in [
        "hello é日\r\t\x7f\x01\x1b[A\x1b[1;5C\x1b[1~\x1b[3~\x1bOP\x1b[15~\x1ba\x1b\x1b",
        "\x08\x1b[13;2u\x1b[27;2;13~\x1b[97;5u",
        "\x1b[200~pasted\ttext\r\n\x1b[201~",
        "\x1b[200~\x1b[201~",
        "\x16",
        "\x1b[I\x1b[O",
    ] {
        assert_eq!(forwarded(bytes, &plain, false), bytes);
    }
}

#[test]
fn bytes_are_translated_where_the_languages_differ() {
    let plain = Modes::default();
    let app = Modes {
        app_cursor: true,
        ..plain
    };
    let kitty = Modes {
        kitty_flags: 1,
        ..plain
    };
    let other = Modes {
        modify_other_keys: 2,
        ..plain
    };
    let table = [
        ("\x1b[A\x1b[H\x1b[1;5A", app, false, "\x1bOA\x1bOH\x1b[1;5A"),
        ("\x1bOA\x1bOP", plain, false, "\x1b[A\x1bOP"),
        (
            "\x1b[97;5u\x1b[13;2u\x1b[27u\x1b[P",
            plain,
            true,
            "\x01\x1b[13;2u\x1b\x1bOP",
        ),
        ("\x1b[97;3u", plain, true, "\x1ba"),
        (
            "\x1b[27;5;97~\x1b[27;2;13~\x1b[27;6;65~",
            plain,
            true,
            "\x01\x1b[13;2u\x01",
        ),
        ("\x1b[27;2;13~", kitty, true, "\x1b[13;2u"),
        ("\x1b[27;2;13~", other, true, "\x1b[27;2;13~"),
        ("\x1b[97;1:3u\x1b[1;1:3A", plain, true, ""),
        ("\x1b[1;65A", plain, true, "\x1b[A"),
        (
            "\x01\x1b\x1ba\ré",
            kitty,
            false,
            "\x1b[97;5u\x1b[27u\x1b[97;3u\ré",
        ),
        ("\x1b[97;5u\x1b[27u", kitty, true, "\x1b[97;5u\x1b[27u"),
        (
            "\x1b[97;5u\x1b[13;2u",
            other,
            true,
            "\x1b[27;5;97~\x1b[27;2;13~",
        ),
        (
            "aA!é",
            Modes {
                kitty_flags: 8,
                ..plain
            },
            false,
            "\x1b[97u\x1b[97;2u\x1b[33u\x1b[233u",
        ),
        ("\x1bOu", plain, false, "5"),
        ("\x1b[200~a\nb\x1b[201~", plain, false, "a\rb"),
        ("\x1b[I", plain, false, ""),
        ("\x1b[?62c\x1b[<0;1;1M", plain, false, ""),
    ];
    for (bytes, modes, host_kitty, expected) in table {
        assert_eq!(
            forwarded(bytes, &modes, host_kitty),
            expected,
            "{bytes:?} {modes:?}"
        );
    }
}

/// Generates pieces of what people and terminals send, and noise.
fn piece() -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![
        any::<Vec<u8>>(),
        "\\PC{0,20}".prop_map(String::into_bytes),
        "\x1b\\[[0-9;:?<>=]{0,8}[ -/]?[@-~]".prop_map(String::into_bytes),
        "\x1bO[ -~]".prop_map(String::into_bytes),
        "\x1b[\\]P_][0-9>][ -~]{0,20}(\x07|\x1b\\\\|)".prop_map(String::into_bytes),
        "\x1b\\[200~[ -~\x1b\n]{0,30}(\x1b\\[201~)?".prop_map(String::into_bytes),
        "\x1b\\[M[ -~]{0,3}".prop_map(String::into_bytes),
        "\x1b{1,3}".prop_map(String::into_bytes),
    ]
}

proptest! {
    #[test]
    fn no_byte_is_lost_or_changed_wherever_the_bytes_are_cut(
        pieces in prop::collection::vec(piece(), 0..30),
        cuts in prop::collection::vec((any::<prop::sample::Index>(), any::<bool>()), 0..20),
    ) {
        let bytes = pieces.concat();
        let mut cuts: Vec<(usize, bool)> =
            cuts.iter().map(|(cut, flush)| (cut.index(bytes.len() + 1), *flush)).collect();
        cuts.push((bytes.len(), true));
        cuts.sort_unstable();
        let mut decoder = Decoder::default();
        let mut items = Vec::new();
        let mut from = 0;
        for (cut, flush) in cuts {
            items.extend(decoder.feed(&bytes[from..cut]));
            if flush {
                items.extend(decoder.flush());
                prop_assert!(decoder.flush_after().is_none());
            }
            from = cut;
        }
        prop_assert_eq!(joined(&items), bytes);
    }

    #[test]
    fn cuts_without_silence_change_no_meaning(
        pieces in prop::collection::vec(piece(), 0..10),
        cut in any::<prop::sample::Index>(),
    ) {
        let bytes = pieces.concat();
        let cut = cut.index(bytes.len() + 1);
        let mut decoder = Decoder::default();
        let mut items = decoder.feed(&bytes[..cut]);
        items.extend(decoder.feed(&bytes[cut..]));
        items.extend(decoder.flush());
        prop_assert_eq!(merged(items), merged(decode(&bytes)));
    }
}

/// Joins neighbouring parts of a paste.
fn merged(items: Vec<HostInput>) -> Vec<HostInput> {
    let mut all: Vec<HostInput> = Vec::new();
    for item in items {
        match (all.last_mut(), item) {
            (Some(HostInput::PasteChunk(before)), HostInput::PasteChunk(after)) => {
                before.extend(after);
            }
            (_, item) => all.push(item),
        }
    }
    all
}

#[test]
fn what_keys_encode_is_read_back_as_the_same_key() {
    let codes = [
        c('a'),
        c('é'),
        KeyCode::Enter,
        KeyCode::Up,
        KeyCode::Home,
        KeyCode::Delete,
        KeyCode::F(3),
        KeyCode::F(12),
        KeyCode::Esc,
    ];
    for flags in [1, 5, 8, 13] {
        let modes = Modes {
            kitty_flags: flags,
            ..Modes::default()
        };
        for code in codes {
            for modifiers in [NONE, ALT, CTRL, ALT | CTRL] {
                let event = key(code, modifiers);
                let bytes = String::from_utf8(keys::encode_key(&event, &modes)).unwrap();
                assert_eq!(only_key(&bytes), event, "{flags}");
            }
        }
    }
}

mod chords;
