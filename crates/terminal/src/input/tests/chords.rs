//! Every chord in four keyboard layouts: what a terminal sends for it, the chord of pitstop's own that it is, and the bytes that the
//! program in the pane gets.

use pitstop_base::keymap::Chord;

use super::*;

/// What the program has asked for, in the order of the expectations below.
const CHILDREN: [(u8, u8); 5] = [(0, 0), (1, 0), (5, 0), (0, 1), (0, 2)];

/// Fails unless these bytes of the terminal are this chord, and reach each kind of program as these bytes.
#[track_caller]
fn check<T: AsRef<str>>(sent: &str, chord: &str, wanted: [T; 5]) {
    let items = decode(sent);
    let [HostInput::Key { event, .. }] = &items[..] else {
        panic!("{sent:?} is {items:?}");
    };
    let named: Chord = chord.parse().expect("a chord");
    assert_eq!(Chord::of(event), Some(named), "{sent:?}");
    for ((kitty_flags, modify_other_keys), wanted) in CHILDREN.into_iter().zip(wanted) {
        let modes = Modes {
            kitty_flags,
            modify_other_keys,
            ..Modes::default()
        };
        let got = String::from_utf8(forward(&items[0], &modes, true)).expect("text");
        assert_eq!(got, wanted.as_ref(), "{sent:?} with {modes:?}");
    }
}

/// The keys that are looked at, by their letters in the layout of the United States.
const KEYS: &str = "qweaszcpym";

/// The letters of these keys in each layout. The Greek and the Hebrew one have signs on some, the German one has two exchanged.
const LAYOUTS: [&str; 5] = [
    "qweaszcpym",
    "йцуафзсзнь",
    ";ςεασζψπυμ",
    "/'קשדזבפטצ",
    "qweasycpzm",
];

/// The key that is meant: its letter, and where that is not Latin, the letter of the layout of the United States.
fn meant(own: char, base: char) -> char {
    if own.is_ascii_lowercase() { own } else { base }
}

fn code(c: char) -> u32 {
    c.into()
}

#[test]
fn eighty_chords_of_the_kitty_protocol_in_each_layout() {
    for layout in LAYOUTS {
        for (own, base) in layout.chars().zip(KEYS.chars()) {
            let key = meant(own, base);
            let (n, upper) = (code(key), key.to_ascii_uppercase());
            let control = char::from(key as u8 & 0x1f);
            let base = if own == base {
                String::new()
            } else {
                format!("::{}", code(base))
            };
            let plain = format!("{}{base}", code(own));
            let above = match (own, key) {
                ('/' | '\'', _) => upper,
                (';', _) => ':',
                _ => own.to_uppercase().next().unwrap_or(own),
            };
            let shifted = plain.replacen("::", ":", 1).replacen(
                &code(own).to_string(),
                &format!("{}:{}", code(own), code(above)),
                1,
            );
            for (name, numbers, bits, legacy) in [
                (format!("ctrl-{key}"), &plain, 5, control.to_string()),
                (format!("alt-{key}"), &plain, 3, format!("\x1b{key}")),
                (
                    format!("ctrl-alt-{key}"),
                    &plain,
                    7,
                    format!("\x1b{control}"),
                ),
                (format!("super-{key}"), &plain, 9, key.to_string()),
                (
                    format!("ctrl-shift-{key}"),
                    &shifted,
                    6,
                    control.to_string(),
                ),
                (format!("alt-{upper}"), &shifted, 4, format!("\x1b{upper}")),
                (
                    format!("ctrl-alt-shift-{key}"),
                    &shifted,
                    8,
                    format!("\x1b{control}"),
                ),
                (format!("ctrl-super-{key}"), &plain, 13, control.to_string()),
            ] {
                let sent = format!("\x1b[{numbers};{bits}u");
                let typed = if bits % 2 == 0 { code(upper) } else { n };
                let other = format!("\x1b[27;{bits};{typed}~");
                let first = if matches!(bits, 6 | 8 | 9 | 13) {
                    other.clone()
                } else {
                    legacy.clone()
                };
                check(
                    &sent,
                    &name,
                    [
                        legacy,
                        format!("\x1b[{n};{bits}u"),
                        sent.clone(),
                        first,
                        other,
                    ],
                );
            }
        }
    }
}

/// What the terminal sends behind `CSI`, the chord, and what each program gets; an empty text is what was sent.
type Row = (&'static str, &'static str, [&'static str; 5]);

#[rustfmt::skip]
const SIGNS: [Row; 17] = [
    // The German layout: ü, ö with Shift, ß and its question mark, the slash above 7, the plus sign.
    ("252::91;5u", "ctrl-ü", ["ü", "\x1b[252;5u", "", "\x1b[27;5;252~", "\x1b[27;5;252~"]),
    ("246::59;5u", "ctrl-ö", ["ö", "\x1b[246;5u", "", "\x1b[27;5;246~", "\x1b[27;5;246~"]),
    ("246:214:59;4u", "alt-Ö", ["\x1bÖ", "\x1b[246;4u", "", "\x1bÖ", "\x1b[27;4;214~"]),
    ("223:63:45;6u", "ctrl-shift-?", ["\x7f", "\x1b[223;6u", "", "\x1b[27;6;63~", "\x1b[27;6;63~"]),
    ("55:47;6u", "ctrl-shift-/", ["\x1f", "\x1b[55;6u", "", "\x1b[27;6;47~", "\x1b[27;6;47~"]),
    ("43::93;5u", "ctrl-+", ["+", "\x1b[43;5u", "", "\x1b[27;5;43~", "\x1b[27;5;43~"]),
    // The Russian layout: a letter on the key of a sign, and digits.
    ("1093::91;5u", "ctrl-[", ["\x1b", "\x1b[91;5u", "", "\x1b", "\x1b[27;5;91~"]),
    ("1078::59;5u", "ctrl-;", [";", "\x1b[59;5u", "", "\x1b[27;5;59~", "\x1b[27;5;59~"]),
    ("50:64;6u", "ctrl-shift-@", ["\0", "\x1b[50;6u", "", "\x1b[27;6;64~", "\x1b[27;6;64~"]),
    ("50;5u", "ctrl-2", ["\0", "\x1b[50;5u", "", "\x1b[27;5;50~", "\x1b[27;5;50~"]),
    // Layouts of other Latin keyboards have signs on keys of letters, too: Dvorak's quotation mark, the French comma.
    ("39::113;5u", "ctrl-'", ["'", "\x1b[39;5u", "", "\x1b[27;5;39~", "\x1b[27;5;39~"]),
    ("44::109;5u", "ctrl-,", [",", "\x1b[44;5u", "", "\x1b[27;5;44~", "\x1b[27;5;44~"]),
    ("233;5u", "ctrl-é", ["é", "\x1b[233;5u", "", "\x1b[27;5;233~", "\x1b[27;5;233~"]),
    // Letters of scripts without a table, by their base key; with Caps Lock and Num Lock.
    ("3654::113;5u", "ctrl-q", ["\x11", "\x1b[113;5u", "", "\x11", "\x1b[27;5;113~"]),
    ("1590::113;3u", "alt-q", ["\x1bq", "\x1b[113;3u", "", "\x1bq", "\x1b[27;3;113~"]),
    ("4325::99;69u", "ctrl-c", ["\x03", "\x1b[99;5u", "\x1b[4325::99;5u", "\x03", "\x1b[27;5;99~"]),
    ("113;133u", "ctrl-q", ["\x11", "\x1b[113;5u", "\x1b[113;5u", "\x11", "\x1b[27;5;113~"]),
];

#[rustfmt::skip]
const OTHER_KEYS: [Row; 8] = [
    ("27;2;13~", "shift-enter", ["\x1b[13;2u", "\x1b[13;2u", "\x1b[13;2u", "", ""]),
    ("27;5;13~", "ctrl-enter", ["\r", "\x1b[13;5u", "\x1b[13;5u", "", ""]),
    ("27;5;9~", "ctrl-tab", ["\t", "\x1b[9;5u", "\x1b[9;5u", "", ""]),
    ("27;6;9~", "ctrl-shift-tab", ["\x1b[Z", "\x1b[9;6u", "\x1b[9;6u", "", ""]),
    ("27;5;44~", "ctrl-,", [",", "\x1b[44;5u", "\x1b[44;5u", "", ""]),
    ("27;5;49~", "ctrl-1", ["1", "\x1b[49;5u", "\x1b[49;5u", "", ""]),
    ("27;5;252~", "ctrl-ü", ["ü", "\x1b[252;5u", "\x1b[252;5u", "", ""]),
    ("27;7;113~", "ctrl-alt-q", ["\x1b\x11", "\x1b[113;7u", "\x1b[113;7u", "\x1b\x11", ""]),
];

#[rustfmt::skip]
const CONTROLS: [Row; 6] = [
    ("\0", "ctrl-space", ["", "\x1b[32;5u", "\x1b[32;5u", "", "\x1b[27;5;32~"]),
    ("\x1c", "ctrl-\\", ["", "\x1b[92;5u", "\x1b[92;5u", "", "\x1b[27;5;92~"]),
    ("\x1d", "ctrl-]", ["", "\x1b[93;5u", "\x1b[93;5u", "", "\x1b[27;5;93~"]),
    ("\x1e", "ctrl-^", ["", "\x1b[94;5u", "\x1b[94;5u", "", "\x1b[27;5;94~"]),
    ("\x1f", "ctrl-_", ["", "\x1b[95;5u", "\x1b[95;5u", "", "\x1b[27;5;95~"]),
    ("\x1b", "esc", ["", "\x1b[27u", "\x1b[27u", "", ""]),
];

#[track_caller]
fn check_rows(before: &str, rows: &[Row]) {
    for (sent, chord, wanted) in rows {
        let sent = format!("{before}{sent}");
        check(
            &sent,
            chord,
            wanted.map(|one| if one.is_empty() { &sent } else { one }),
        );
    }
}

#[test]
fn chords_of_signs_are_those_of_the_layout() {
    check_rows("\x1b[", &SIGNS);
}

/// The letters of a Russian, a Greek and a Hebrew keyboard, over the keys of a Latin one.
const LETTERS: [&str; 4] = [
    "qwertyuiopasdfghjklzxcvbnm",
    "йцукенгшщзфывапролдячсмить",
    "qςερτυθιοπασδφγηξκλζχψωβνμ",
    "qwקראטוןםפשדגכעיחלךזסבהנמצ",
];

#[test]
fn chords_of_modify_other_keys_in_each_layout() {
    for (own, key) in LETTERS
        .iter()
        .flat_map(|own| own.chars().zip(LETTERS[0].chars()))
    {
        for bits in [3, 4, 5, 6, 7, 8, 13] {
            let held = |bit: u8| (bits - 1) & bit != 0;
            let upper = key.to_ascii_uppercase();
            let typed = if held(1) { upper } else { key };
            // A Hebrew keyboard types Latin letters with Shift.
            let above = own.to_uppercase().next().filter(|above| *above != own);
            let sent = if held(1) { above.unwrap_or(upper) } else { own };
            // The Greek final sigma has the upper-case letter of another key.
            if sent == 'Σ' && key == 'w' {
                continue;
            }
            let named = |c: char| format!("\x1b[27;{bits};{}~", code(c));
            let control = char::from(key as u8 & 0x1f);
            let escape = if held(2) { "\x1b" } else { "" };
            let legacy = format!("{escape}{}", if held(4) { control } else { typed });
            let (n, other) = (code(key), named(typed));
            let plain = format!("\x1b[{n};{bits}u");
            let both = if held(1) {
                format!("\x1b[{n}:{};{bits}u", code(upper))
            } else {
                plain.clone()
            };
            let first = if matches!(bits, 6 | 8 | 13) {
                other.clone()
            } else {
                legacy.clone()
            };
            let modifiers = [(4, "ctrl-"), (2, "alt-"), (8, "super-"), (1, "shift-")];
            let modifiers = modifiers.into_iter().filter(|(bit, _)| held(*bit));
            let chord: String = modifiers.map(|(_, name)| name).collect();
            let wanted = [legacy, plain, both, first, other];
            check(&named(sent), &format!("{chord}{key}"), wanted);
        }
    }
    check_rows("\x1b[", &OTHER_KEYS);
}

#[test]
fn eighty_three_legacy_chords_in_each_layout() {
    for (at, key) in LETTERS[0].chars().enumerate() {
        let (n, control) = (code(key), char::from(key as u8 & 0x1f).to_string());
        if !matches!(key, 'i' | 'm') {
            let (kitty, other) = (format!("\x1b[{n};5u"), format!("\x1b[27;5;{n}~"));
            let wanted = [
                control.clone(),
                kitty.clone(),
                kitty,
                control.clone(),
                other,
            ];
            check(&control, &format!("ctrl-{key}"), wanted);
        }
        // What Alt types is the layout's letter, and a program gets it as it would from the terminal.
        for own in LETTERS.iter().filter_map(|letters| letters.chars().nth(at)) {
            let (sent, n) = (format!("\x1b{own}"), code(own));
            let (kitty, other) = (format!("\x1b[{n};3u"), format!("\x1b[27;3;{n}~"));
            let wanted = [sent.clone(), kitty.clone(), kitty, sent.clone(), other];
            check(&sent, &format!("alt-{key}"), wanted);
        }
    }
    let same = |sent: &str, chord: &str| check(sent, chord, [sent; 5]);
    for (number, sent) in (5..).zip([15, 17, 18, 19, 20, 21, 23, 24]) {
        same(&format!("\x1b[{sent}~"), &format!("f{number}"));
    }
    for (number, chord) in [(2, "insert"), (3, "delete"), (5, "pageup"), (6, "pagedown")] {
        same(&format!("\x1b[{number}~"), chord);
    }
    for (sent, chord) in [("\r", "enter"), ("\t", "tab"), ("\x7f", "backspace")] {
        same(sent, chord);
    }
    let cursor = ["up", "down", "right", "left", "end", "home"];
    for (letter, chord) in "ABCDFH".chars().zip(cursor) {
        same(&format!("\x1b[{letter}"), chord);
        same(&format!("\x1b[1;5{letter}"), &format!("ctrl-{chord}"));
    }
    check_rows("", &CONTROLS);
}
