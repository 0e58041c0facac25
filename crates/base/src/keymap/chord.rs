//! One key as it is written, and as terminals report it.
//!
//! Terminals report one and the same key in different ways (legacy bytes, the kitty protocol with or without alternate
//! keys); a [`Chord`] is the one form that all of them are folded into before they are compared:
//!
//! ```text
//!   E with shift   'e'+SHIFT · 'E'+SHIFT · 'E'          -> 'E'
//!   ?              '?' · '?'+SHIFT                      -> '?'
//!   shift-tab      BackTab · BackTab+SHIFT · Tab+SHIFT  -> Tab+SHIFT
//!   ctrl-\         '4'+CONTROL (legacy 0x1c) · '\'      -> '\'+CONTROL, and so for ] ^ _
//!   ctrl-space     Null · ' '+CONTROL                   -> ' '+CONTROL
//!   ctrl-c         'с'+CONTROL, the Cyrillic letter     -> 'c'+CONTROL, and so for each letter of `latin_key`
//! ```
//!
//! Known limits: a legacy terminal sends `ctrl-i` as Tab, `ctrl-m` as Enter and `ctrl-[` as Esc, so
//! chords with these names are only ever seen where the kitty protocol is spoken.

use std::{fmt, str::FromStr};

use crossterm::event::{KeyCode, KeyEvent, KeyEventKind, KeyModifiers};

use super::latin_key;

/// One key with its modifiers, in the form all terminals' reports are folded into.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Chord {
    pub(super) code: KeyCode,
    pub(super) modifiers: KeyModifiers,
}

/// The modifiers in the order they are written, with every name they are read by.
const MODIFIERS: [(&[&str], KeyModifiers); 6] = [
    (&["ctrl", "control"], KeyModifiers::CONTROL),
    (&["alt", "option", "opt"], KeyModifiers::ALT),
    (&["shift"], KeyModifiers::SHIFT),
    (&["super", "cmd", "win"], KeyModifiers::SUPER),
    (&["hyper"], KeyModifiers::HYPER),
    (&["meta"], KeyModifiers::META),
];

/// The keys that are written by name; the first name is the one that is printed.
const NAMED: [(&[&str], KeyCode); 23] = [
    (&["enter", "return"], KeyCode::Enter),
    (&["esc", "escape"], KeyCode::Esc),
    (&["space"], KeyCode::Char(' ')),
    (&["tab"], KeyCode::Tab),
    (&["backspace"], KeyCode::Backspace),
    (&["delete", "del"], KeyCode::Delete),
    (&["insert", "ins"], KeyCode::Insert),
    (&["left"], KeyCode::Left),
    (&["right"], KeyCode::Right),
    (&["up"], KeyCode::Up),
    (&["down"], KeyCode::Down),
    (&["home"], KeyCode::Home),
    (&["end"], KeyCode::End),
    (&["pageup", "pgup"], KeyCode::PageUp),
    (&["pagedown", "pgdn"], KeyCode::PageDown),
    (&["capslock"], KeyCode::CapsLock),
    (&["scrolllock"], KeyCode::ScrollLock),
    (&["numlock"], KeyCode::NumLock),
    (&["printscreen"], KeyCode::PrintScreen),
    (&["pause"], KeyCode::Pause),
    (&["menu"], KeyCode::Menu),
    (&["keypadbegin"], KeyCode::KeypadBegin),
    // It becomes `shift-tab`, and is printed so.
    (&["backtab"], KeyCode::BackTab),
];

/// The highest function key the kitty protocol can report.
const LAST_FUNCTION_KEY: u8 = 35;

impl Chord {
    /// Creates a chord from a key with modifiers, folded into the one comparable form; nothing for keys that cannot be part
    /// of a chord (a modifier by itself, media keys).
    pub fn new(code: KeyCode, modifiers: KeyModifiers) -> Option<Self> {
        let (code, modifiers) = match code {
            KeyCode::BackTab => (KeyCode::Tab, modifiers | KeyModifiers::SHIFT),
            KeyCode::Null => (KeyCode::Char(' '), modifiers | KeyModifiers::CONTROL),
            KeyCode::Char(c) => {
                let (c, modifiers) = fold_char(c, modifiers);
                (KeyCode::Char(c), modifiers)
            }
            KeyCode::Media(_) | KeyCode::Modifier(_) => return None,
            other => (other, modifiers),
        };
        Some(Self { code, modifiers })
    }

    /// Returns the chord of a key press or its repetition; nothing for a release.
    pub fn of(event: &KeyEvent) -> Option<Self> {
        match event.kind {
            KeyEventKind::Press | KeyEventKind::Repeat => Self::new(event.code, event.modifiers),
            KeyEventKind::Release => None,
        }
    }

    /// Returns the key, after folding.
    pub const fn code(self) -> KeyCode {
        self.code
    }

    /// Returns the modifiers, after folding: an upper-case letter carries its shift in itself.
    pub const fn modifiers(self) -> KeyModifiers {
        self.modifiers
    }

    /// Reports whether people need this key to write text, so that taking it would make typing impossible.
    pub fn is_typing(self) -> bool {
        let plain = (self.modifiers - KeyModifiers::SHIFT).is_empty();
        let bare = self.modifiers.is_empty();
        match self.code {
            KeyCode::Char(_) => plain,
            KeyCode::Enter | KeyCode::Backspace | KeyCode::Tab | KeyCode::Esc => bare,
            _ => false,
        }
    }

    /// Returns the chord as a footer or a help page shows it: `F5`, `Ctrl-q`, `?`.
    pub fn label(self) -> String {
        let text = self.to_string();
        if matches!(self.code, KeyCode::Char(c) if c != ' ') && self.modifiers.is_empty() {
            return text;
        }
        let (modifiers, key) = split_modifiers(&text);
        let mut label = String::new();
        for name in modifiers {
            label.push_str(&crate::format::capitalize(name));
            label.push('-');
        }
        if key.chars().count() == 1 {
            label.push_str(key);
        } else {
            label.push_str(&crate::format::capitalize(key));
        }
        label
    }
}

/// Folds the ways in which a character can be reported with shift and control.
fn fold_char(c: char, mut modifiers: KeyModifiers) -> (char, KeyModifiers) {
    let c = latin_key(c).unwrap_or(c);
    let upper = single(c.to_uppercase());
    if c.is_uppercase() {
        modifiers.remove(KeyModifiers::SHIFT);
        return (c, modifiers);
    }
    if modifiers.contains(KeyModifiers::SHIFT) {
        if let Some(upper) = upper.filter(|upper| *upper != c) {
            modifiers.remove(KeyModifiers::SHIFT);
            return (upper, modifiers);
        }
        // `?` with its shift reported beside it. With control or alt the shift is kept: there the
        // report may name the unshifted key, and ctrl-shift-/ is not ctrl-/.
        if modifiers == KeyModifiers::SHIFT && !c.is_alphanumeric() && c != ' ' {
            return (c, KeyModifiers::NONE);
        }
    }
    // The bytes 0x1c to 0x1f, which crossterm names by the digits of a VT220.
    let c = match c {
        '4'..='7' if modifiers == KeyModifiers::CONTROL => match c {
            '4' => '\\',
            '5' => ']',
            '6' => '^',
            _ => '_',
        },
        c => c,
    };
    (c, modifiers)
}

/// Returns the only item of an iterator, if it has exactly one.
fn single(mut items: impl Iterator<Item = char>) -> Option<char> {
    let first = items.next()?;
    items.next().is_none().then_some(first)
}

/// Splits `ctrl-alt-x` into its modifier names and the key; a lone `-` or a final one is a key.
fn split_modifiers(text: &str) -> (Vec<&str>, &str) {
    let mut names = Vec::new();
    let mut rest = text;
    while let Some((name, key)) = rest.split_once(['-', '+']) {
        if name.is_empty() || key.is_empty() {
            break;
        }
        names.push(name);
        rest = key;
    }
    (names, rest)
}

/// Returns the value under a name in one of the tables.
fn by_name<T: Copy>(table: &[(&[&str], T)], name: &str) -> Option<T> {
    let is_name = |known: &&str| known.eq_ignore_ascii_case(name);
    let found = table.iter().find(|(names, _)| names.iter().any(is_name));
    found.map(|(_, value)| *value)
}

fn function_key(name: &str) -> Option<KeyCode> {
    let number = name.strip_prefix(['f', 'F'])?;
    let plain = !number.starts_with('0') && number.bytes().all(|byte| byte.is_ascii_digit());
    let number: u8 = number.parse().ok().filter(|_| plain)?;
    (1..=LAST_FUNCTION_KEY)
        .contains(&number)
        .then_some(KeyCode::F(number))
}

impl fmt::Display for Chord {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut modifiers = self.modifiers;
        let mut code = self.code;
        // `ctrl-q` and `ctrl-Q` are read as the same chord, so here the shift has to be a word.
        if let KeyCode::Char(c) = code
            && modifiers.contains(KeyModifiers::CONTROL)
            && let Some(lower) = single(c.to_lowercase()).filter(|lower| {
                *lower != c && single(lower.to_uppercase()) == Some(c) && c.is_uppercase()
            })
        {
            modifiers |= KeyModifiers::SHIFT;
            code = KeyCode::Char(lower);
        }
        for (names, modifier) in MODIFIERS {
            if modifiers.contains(modifier) {
                write!(f, "{}-", names[0])?;
            }
        }
        if let Some((names, _)) = NAMED.iter().find(|(_, named)| *named == code) {
            return f.write_str(names[0]);
        }
        match code {
            KeyCode::Char(c) => write!(f, "{c}"),
            KeyCode::F(number) => write!(f, "f{number}"),
            // `Chord::new` lets no other key in.
            other => write!(f, "{other:?}"),
        }
    }
}

impl FromStr for Chord {
    type Err = ChordError;

    fn from_str(text: &str) -> Result<Self, ChordError> {
        let (names, key) = split_modifiers(text);
        let mut modifiers = KeyModifiers::NONE;
        for name in names {
            let found =
                by_name(&MODIFIERS, name).ok_or_else(|| ChordError::Modifier(name.to_owned()))?;
            if modifiers.contains(found) {
                return Err(ChordError::Repeated(name.to_owned()));
            }
            modifiers |= found;
        }
        let code = match single(key.chars()) {
            Some(c) if c.is_control() || c.is_whitespace() => None,
            Some(c) if modifiers.contains(KeyModifiers::CONTROL) => {
                Some(KeyCode::Char(single(c.to_lowercase()).unwrap_or(c)))
            }
            Some(c) => Some(KeyCode::Char(c)),
            None => by_name(&NAMED, key).or_else(|| function_key(key)),
        };
        code.and_then(|code| Self::new(code, modifiers))
            .ok_or_else(|| ChordError::Key(key.to_owned()))
    }
}

/// The reason why a text is not a chord.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ChordError {
    /// The name is not that of a key.
    #[error("expected a key such as f5, r, ?, enter or ctrl-q, found `{0}`")]
    Key(String),
    /// The name is not that of a modifier.
    #[error("expected ctrl, alt, shift, super, hyper or meta before the key, found `{0}`")]
    Modifier(String),
    /// A modifier is written twice.
    #[error("expected each modifier once, found `{0}` again")]
    Repeated(String),
    /// The text has more than `prefix` and one chord in it.
    #[error("expected one chord, or `prefix` and one chord, found `{0}`")]
    Shape(String),
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::keymap::{
        Trigger,
        tests::{chord, press},
    };
    use proptest::prelude::*;

    #[test]
    fn chords_print_as_they_are_written() {
        for text in [
            "ctrl-q",
            "f5",
            "f35",
            "alt-left",
            "shift-enter",
            "?",
            "E",
            "[",
            "-",
            "+",
            "ctrl--",
            "ctrl-shift-q",
            "alt-E",
            "ctrl-alt-shift-f12",
            "shift-tab",
            "space",
            "ctrl-space",
            "super-k",
            "ctrl-\\",
            "ä",
            "alt-Ä",
            "pageup",
            "ctrl-alt--",
            "shift-1",
            "ctrl-shift-/",
        ] {
            assert_eq!(chord(text).to_string(), text);
        }
    }

    #[test]
    fn chords_are_read_by_other_names() {
        for (written, printed) in [
            ("Ctrl-Q", "ctrl-q"),
            ("CTRL+q", "ctrl-q"),
            ("control-q", "ctrl-q"),
            ("F5", "f5"),
            ("Escape", "esc"),
            ("Return", "enter"),
            ("backtab", "shift-tab"),
            ("shift-e", "E"),
            ("alt-shift-e", "alt-E"),
            ("option-x", "alt-x"),
            ("cmd-k", "super-k"),
            ("pgdn", "pagedown"),
            ("shift-?", "?"),
            ("shift-ctrl-q", "ctrl-shift-q"),
            ("ctrl-4", "ctrl-\\"),
        ] {
            assert_eq!(chord(written).to_string(), printed, "{written}");
        }
    }

    #[test]
    fn texts_that_are_no_chords_are_refused_with_what_was_found() {
        for (text, message) in [
            (
                "",
                "expected a key such as f5, r, ?, enter or ctrl-q, found ``",
            ),
            (
                "f36",
                "expected a key such as f5, r, ?, enter or ctrl-q, found `f36`",
            ),
            (
                "f05",
                "expected a key such as f5, r, ?, enter or ctrl-q, found `f05`",
            ),
            (
                "f+1",
                "expected ctrl, alt, shift, super, hyper or meta before the key, found `f`",
            ),
            (
                "ctrl-",
                "expected a key such as f5, r, ?, enter or ctrl-q, found `ctrl-`",
            ),
            (
                "ctrl-ctrl-q",
                "expected each modifier once, found `ctrl` again",
            ),
            (
                "strg-q",
                "expected ctrl, alt, shift, super, hyper or meta before the key, found `strg`",
            ),
            (
                "\u{1b}",
                "expected a key such as f5, r, ?, enter or ctrl-q, found `\u{1b}`",
            ),
        ] {
            let error = text.parse::<Chord>().expect_err(text);
            assert_eq!(error.to_string(), message);
        }
        let error = "prefix r r".parse::<Trigger>().expect_err("two chords");
        assert_eq!(
            error.to_string(),
            "expected one chord, or `prefix` and one chord, found `prefix r r`"
        );
    }

    #[test]
    fn every_report_of_one_key_is_the_same_chord() {
        let none = KeyModifiers::NONE;
        let shift = KeyModifiers::SHIFT;
        let ctrl = KeyModifiers::CONTROL;
        let same = [
            (
                "E",
                vec![
                    press(KeyCode::Char('E'), none),
                    press(KeyCode::Char('E'), shift),
                    press(KeyCode::Char('e'), shift),
                ],
            ),
            (
                "?",
                vec![
                    press(KeyCode::Char('?'), none),
                    press(KeyCode::Char('?'), shift),
                ],
            ),
            (
                "shift-tab",
                vec![
                    press(KeyCode::BackTab, none),
                    press(KeyCode::BackTab, shift),
                    press(KeyCode::Tab, shift),
                ],
            ),
            (
                "ctrl-]",
                vec![
                    press(KeyCode::Char('5'), ctrl),
                    press(KeyCode::Char(']'), ctrl),
                ],
            ),
            (
                "ctrl-shift-q",
                vec![
                    press(KeyCode::Char('Q'), ctrl),
                    press(KeyCode::Char('q'), ctrl | shift),
                    press(KeyCode::Char('Q'), ctrl | shift),
                ],
            ),
            (
                "ctrl-space",
                vec![press(KeyCode::Null, none), press(KeyCode::Char(' '), ctrl)],
            ),
        ];
        for (text, events) in same {
            for event in events {
                assert_eq!(Chord::of(&event), Some(chord(text)), "{event:?}");
            }
        }
    }

    fn any_code() -> impl Strategy<Value = KeyCode> {
        prop_oneof![
            any::<char>().prop_map(KeyCode::Char),
            (1_u8..=LAST_FUNCTION_KEY).prop_map(KeyCode::F),
            prop::sample::select(NAMED.iter().map(|(_, code)| *code).collect::<Vec<_>>()),
            Just(KeyCode::BackTab),
            Just(KeyCode::Null),
        ]
    }

    proptest! {
        #[test]
        fn every_chord_is_read_back_as_it_was_printed(code in any_code(), bits in 0_u8..64) {
            let modifiers = KeyModifiers::from_bits_truncate(bits);
            let chord = Chord::new(code, modifiers).expect("no modifier, no media key");
            let readable = !matches!(
                chord.code(),
                KeyCode::Char(c) if c != ' ' && (c.is_control() || c.is_whitespace())
            );
            if readable {
                prop_assert_eq!(chord.to_string().parse::<Chord>(), Ok(chord));
            }
        }

        #[test]
        fn folding_twice_changes_nothing(code in any_code(), bits in 0_u8..64) {
            let once = Chord::new(code, KeyModifiers::from_bits_truncate(bits)).expect("a chord");
            prop_assert_eq!(Chord::new(once.code(), once.modifiers()), Some(once));
        }

        #[test]
        fn no_text_makes_the_parser_panic(text in ".{0,24}") {
            let _ = text.parse::<Trigger>();
        }
    }
}
