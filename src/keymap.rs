//! Which key does what: chords, actions and the keymap with its defaults.
//!
//! Everything that is not bound here goes to the pane byte-exact, so the keymap only ever answers
//! "this key is ours" or nothing. Terminals report one and the same key in different ways (legacy
//! bytes, the kitty protocol with or without alternate keys); a [`Chord`] is the one form that all
//! of them are folded into before they are compared:
//!
//! ```text
//!   E with shift   'e'+SHIFT · 'E'+SHIFT · 'E'          -> 'E'
//!   ?              '?' · '?'+SHIFT                      -> '?'
//!   shift-tab      BackTab · BackTab+SHIFT · Tab+SHIFT  -> Tab+SHIFT
//!   ctrl-\         '4'+CONTROL (legacy 0x1c) · '\'      -> '\'+CONTROL, and so for ] ^ _
//!   ctrl-space     Null · ' '+CONTROL                   -> ' '+CONTROL
//! ```
//!
//! Known limits: a legacy terminal sends `ctrl-i` as Tab, `ctrl-m` as Enter and `ctrl-[` as Esc, so
//! chords with these names are only ever seen where the kitty protocol is spoken.

use std::{fmt, str::FromStr};

use crossterm::event::{KeyCode, KeyEvent, KeyEventKind, KeyModifiers};

/// One key with its modifiers, in the form all terminals' reports are folded into.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Chord {
    code: KeyCode,
    modifiers: KeyModifiers,
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

/// The keys that are written by name; the first name is the one we print.
const NAMED: [(&[&str], KeyCode); 22] = [
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
];

/// The highest function key the kitty protocol can report.
const LAST_FUNCTION_KEY: u8 = 35;

impl Chord {
    /// A key with modifiers, folded into the one comparable form; nothing for keys that cannot be
    /// part of a chord (a modifier by itself, media keys).
    #[must_use]
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

    /// The chord of a key press or its repetition; nothing for a release.
    #[must_use]
    pub fn of(event: &KeyEvent) -> Option<Self> {
        match event.kind {
            KeyEventKind::Press | KeyEventKind::Repeat => Self::new(event.code, event.modifiers),
            KeyEventKind::Release => None,
        }
    }

    /// The key, after folding.
    #[must_use]
    pub const fn code(self) -> KeyCode {
        self.code
    }

    /// The modifiers, after folding: an upper-case letter carries its shift in itself.
    #[must_use]
    pub const fn modifiers(self) -> KeyModifiers {
        self.modifiers
    }

    /// Whether people need this key to write text, so that taking it would make typing impossible.
    #[must_use]
    pub fn is_typing(self) -> bool {
        let plain = (self.modifiers - KeyModifiers::SHIFT).is_empty();
        let bare = self.modifiers.is_empty();
        match self.code {
            KeyCode::Char(_) => plain,
            KeyCode::Enter | KeyCode::Backspace | KeyCode::Tab | KeyCode::Esc => bare,
            _ => false,
        }
    }

    /// The chord as a footer or a help page shows it: `F5`, `Ctrl-q`, `?`.
    #[must_use]
    pub fn label(self) -> String {
        let text = self.to_string();
        if matches!(self.code, KeyCode::Char(c) if c != ' ') && self.modifiers.is_empty() {
            return text;
        }
        let (modifiers, key) = split_modifiers(&text);
        let mut label = String::new();
        for name in modifiers {
            label.push_str(&capitalised(name));
            label.push('-');
        }
        if key.chars().count() == 1 {
            label.push_str(key);
        } else {
            label.push_str(&capitalised(key));
        }
        label
    }
}

/// Folds the ways in which a character can be reported with shift and control.
fn fold_char(c: char, mut modifiers: KeyModifiers) -> (char, KeyModifiers) {
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

/// The only item of an iterator, if it has exactly one.
fn single(mut items: impl Iterator<Item = char>) -> Option<char> {
    let first = items.next()?;
    items.next().is_none().then_some(first)
}

fn capitalised(word: &str) -> String {
    let mut chars = word.chars();
    match chars.next() {
        Some(first) => first.to_uppercase().chain(chars).collect(),
        None => String::new(),
    }
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

fn modifier(name: &str) -> Option<KeyModifiers> {
    MODIFIERS
        .iter()
        .find(|(names, _)| names.iter().any(|known| known.eq_ignore_ascii_case(name)))
        .map(|(_, modifier)| *modifier)
}

fn named_key(name: &str) -> Option<KeyCode> {
    if let Some((_, code)) = NAMED
        .iter()
        .find(|(names, _)| names.iter().any(|known| known.eq_ignore_ascii_case(name)))
    {
        return Some(*code);
    }
    if name.eq_ignore_ascii_case("backtab") {
        return Some(KeyCode::BackTab);
    }
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
            let found = modifier(name).ok_or_else(|| ChordError::Modifier(name.to_owned()))?;
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
            None => named_key(key),
        };
        code.and_then(|code| Self::new(code, modifiers))
            .ok_or_else(|| ChordError::Key(key.to_owned()))
    }
}

/// Why a text is not a chord.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ChordError {
    /// No key has this name.
    #[error("expected a key such as f5, r, ?, enter or ctrl-q, found `{0}`")]
    Key(String),
    /// No modifier has this name.
    #[error("expected ctrl, alt, shift, super, hyper or meta before the key, found `{0}`")]
    Modifier(String),
    /// A modifier is written twice.
    #[error("expected each modifier once, found `{0}` again")]
    Repeated(String),
    /// The text has more than `prefix` and one chord in it.
    #[error("expected one chord, or `prefix` and one chord, found `{0}`")]
    Shape(String),
}

/// How an action is triggered: one chord by itself, or one after the prefix.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Trigger {
    /// The chord alone; written `f5`.
    Direct(Chord),
    /// The chord right after the prefix; written `prefix r`.
    AfterPrefix(Chord),
}

impl fmt::Display for Trigger {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Direct(chord) => chord.fmt(f),
            Self::AfterPrefix(chord) => write!(f, "prefix {chord}"),
        }
    }
}

impl FromStr for Trigger {
    type Err = ChordError;

    fn from_str(text: &str) -> Result<Self, ChordError> {
        let words: Vec<&str> = text.split_whitespace().collect();
        match words[..] {
            [chord] => chord.parse().map(Self::Direct),
            ["prefix", chord] => chord.parse().map(Self::AfterPrefix),
            _ => Err(ChordError::Shape(text.to_owned())),
        }
    }
}

/// One of the four ways the focus can move.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Direction {
    /// To the rectangle on the left.
    Left,
    /// To the rectangle on the right.
    Right,
    /// To the rectangle above.
    Up,
    /// To the rectangle below.
    Down,
}

/// What a key can ask of us.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Action {
    /// Show every key in force.
    Help,
    /// Focus the next rectangle.
    FocusNext,
    /// Focus the neighbour in a direction.
    FocusDirection(Direction),
    /// Go to the scratchpad panel.
    Scratchpad,
    /// Go to the handoff panel.
    Handoff,
    /// Go to the history panel.
    History,
    /// Open the reboot's review.
    Reboot,
    /// Change the mode: manual, ask, auto.
    Mode,
    /// Let nothing happen by itself, or take that back.
    Pause,
    /// Let the pane fill the screen, or give the panels their place back.
    Zoom,
    /// Enter scroll and copy mode.
    Scroll,
    /// Write a checkpoint now.
    Checkpoint,
    /// Undo the last reboot.
    Undo,
    /// Open the focused document in `$EDITOR`.
    EditExternally,
    /// End the agent cleanly and leave.
    Quit,
}

/// One row of the table below: the action, its name in `[keys]`, what help says, its triggers.
type Row = (Action, &'static str, &'static str, &'static [&'static str]);

/// Every action with its name and defaults, in the order in which help lists them.
#[rustfmt::skip]
const ACTIONS: [Row; 18] = [
    (Action::Help, "help", "show every key in force", &["f1", "prefix ?"]),
    (Action::FocusNext, "focus-next", "focus the next panel", &["f2", "prefix o"]),
    (Action::FocusDirection(Direction::Left), "focus-left", "focus to the left", &["prefix left"]),
    (Action::FocusDirection(Direction::Right), "focus-right", "focus to the right", &["prefix right"]),
    (Action::FocusDirection(Direction::Up), "focus-up", "focus above", &["prefix up"]),
    (Action::FocusDirection(Direction::Down), "focus-down", "focus below", &["prefix down"]),
    (Action::Scratchpad, "scratchpad", "go to the scratchpad", &["f3", "prefix s"]),
    (Action::Handoff, "handoff", "go to the handoff", &["f4", "prefix h"]),
    (Action::History, "history", "go to the history", &["f6", "prefix i"]),
    (Action::Reboot, "reboot", "review the handoff and reboot", &["f5", "prefix r"]),
    (Action::Mode, "mode", "change the mode: manual, ask, auto", &["f7", "prefix m"]),
    (Action::Pause, "pause", "pause or resume what happens by itself", &["prefix p"]),
    (Action::Zoom, "zoom", "zoom the pane", &["f8", "prefix z"]),
    (Action::Scroll, "scroll", "scroll and copy", &["f9", "prefix ["]),
    (Action::Checkpoint, "checkpoint", "write a checkpoint now", &["prefix c"]),
    (Action::Undo, "undo", "undo the last reboot", &["prefix u"]),
    (Action::EditExternally, "edit-externally", "open the focused document in $EDITOR", &["prefix E"]),
    (Action::Quit, "quit", "end the agent cleanly and quit", &["f10", "prefix q"]),
];

impl Action {
    /// Every action, in the order in which help lists them.
    pub fn all() -> impl Iterator<Item = Self> {
        ACTIONS.iter().map(|row| row.0)
    }

    /// The action's name in `[keys]`, such as `focus-next`.
    #[must_use]
    pub fn name(self) -> &'static str {
        self.row().1
    }

    /// What the action does, in a few words for the help page.
    #[must_use]
    pub fn description(self) -> &'static str {
        self.row().2
    }

    /// The action with this name in `[keys]`.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        ACTIONS.iter().find(|row| row.1 == name).map(|row| row.0)
    }

    /// The triggers the action has unless the user says otherwise.
    pub(crate) fn default_triggers(self) -> Vec<Trigger> {
        let texts = self.row().3.iter();
        texts
            .map(|text| text.parse().expect("the default triggers are well formed"))
            .collect()
    }

    fn row(self) -> &'static Row {
        ACTIONS
            .iter()
            .find(|row| row.0 == self)
            .expect("every action has a row")
    }
}

/// An action with all that triggers it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Binding {
    /// What happens.
    pub action: Action,
    /// What makes it happen; empty when the user has unbound it.
    pub triggers: Vec<Trigger>,
}

/// The keys in force: checked, so that no trigger means two things and typing stays possible.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Keymap {
    prefix: Chord,
    bindings: Vec<Binding>,
}

impl Keymap {
    /// Checks a prefix and the triggers of each action; actions that are not named have none.
    ///
    /// All faults are told together.
    pub fn new(
        prefix: Chord,
        triggers: impl IntoIterator<Item = (Action, Vec<Trigger>)>,
    ) -> Result<Self, Vec<KeyFault>> {
        let given: Vec<(Action, Vec<Trigger>)> = triggers.into_iter().collect();
        let bindings: Vec<Binding> = Action::all()
            .map(|action| Binding {
                action,
                triggers: given
                    .iter()
                    .filter(|(named, _)| *named == action)
                    .flat_map(|(_, triggers)| triggers.iter().copied())
                    .collect(),
            })
            .collect();
        let faults = faults(prefix, &bindings);
        if faults.is_empty() {
            Ok(Self { prefix, bindings })
        } else {
            Err(faults)
        }
    }

    /// The chord that makes the next one ours.
    #[must_use]
    pub const fn prefix(&self) -> Chord {
        self.prefix
    }

    /// Whether a key is the prefix. Pressed after itself it goes to the pane: then send the second
    /// event on as it came.
    #[must_use]
    pub fn is_prefix(&self, event: &KeyEvent) -> bool {
        Chord::of(event) == Some(self.prefix)
    }

    /// What a key asks for; `prefixed` says whether the prefix was pressed just before it.
    #[must_use]
    pub fn action(&self, event: &KeyEvent, prefixed: bool) -> Option<Action> {
        let chord = Chord::of(event)?;
        let wanted = if prefixed {
            Trigger::AfterPrefix(chord)
        } else {
            Trigger::Direct(chord)
        };
        self.bindings
            .iter()
            .find(|binding| binding.triggers.contains(&wanted))
            .map(|binding| binding.action)
    }

    /// Every action with its triggers, in the order in which help lists them.
    #[must_use]
    pub fn bindings(&self) -> &[Binding] {
        &self.bindings
    }

    /// The shortest thing to tell a person about how to reach an action: `F5`, or `Ctrl-q r`.
    #[must_use]
    pub fn hint(&self, action: Action) -> Option<String> {
        let binding = self.bindings.iter().find(|one| one.action == action)?;
        let direct = |trigger: &&Trigger| matches!(trigger, Trigger::Direct(_));
        let mut triggers = binding.triggers.iter();
        let trigger = triggers.find(direct).or_else(|| binding.triggers.first())?;
        Some(self.label(*trigger))
    }

    /// A trigger as a help page shows it: `F5`, or `Ctrl-q r`.
    #[must_use]
    pub fn label(&self, trigger: Trigger) -> String {
        match trigger {
            Trigger::Direct(chord) => chord.label(),
            Trigger::AfterPrefix(chord) => {
                format!("{} {}", self.prefix.label(), chord.label())
            }
        }
    }
}

impl Default for Keymap {
    fn default() -> Self {
        let triggers = Action::all().map(|action| (action, action.default_triggers()));
        Self::new(default_prefix(), triggers).expect("the default keymap has no conflict")
    }
}

/// `ctrl-q`: with flow control off, as in every raw terminal, hardly a program listens to it.
#[must_use]
pub fn default_prefix() -> Chord {
    Chord {
        code: KeyCode::Char('q'),
        modifiers: KeyModifiers::CONTROL,
    }
}

/// Why a prefix and triggers make no keymap. `index` counts the triggers of the action from 0.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum KeyFault {
    /// Two actions, or one action twice, have the same trigger.
    #[error("expected a free key, found `{trigger}`, which already means `{}`", other.name())]
    Taken {
        /// The later of the two.
        action: Action,
        /// Which of its triggers.
        index: usize,
        /// The trigger both have.
        trigger: Trigger,
        /// The earlier of the two.
        other: Action,
    },
    /// An action wants the prefix for itself.
    #[error("expected a key other than the prefix, found `{trigger}`")]
    IsPrefix {
        /// The action.
        action: Action,
        /// Which of its triggers.
        index: usize,
        /// The trigger.
        trigger: Trigger,
    },
    /// A direct chord would take a key that is needed to write text.
    #[error(
        "expected a function key or a chord with ctrl or alt, found `{trigger}`, which is needed for typing"
    )]
    Typing {
        /// The action.
        action: Action,
        /// Which of its triggers.
        index: usize,
        /// The trigger.
        trigger: Trigger,
    },
    /// The prefix would take a key that is needed to write text.
    #[error(
        "expected a function key or a chord with ctrl or alt, found `{0}`, which is needed for typing"
    )]
    TypingPrefix(Chord),
}

fn faults(prefix: Chord, bindings: &[Binding]) -> Vec<KeyFault> {
    let mut faults = Vec::new();
    if prefix.is_typing() {
        faults.push(KeyFault::TypingPrefix(prefix));
    }
    let mut seen: Vec<(Trigger, Action)> = Vec::new();
    for Binding { action, triggers } in bindings {
        for (index, &trigger) in triggers.iter().enumerate() {
            let action = *action;
            let (Trigger::Direct(chord) | Trigger::AfterPrefix(chord)) = trigger;
            // A letter as the prefix is fault enough.
            if chord == prefix && !prefix.is_typing() {
                faults.push(KeyFault::IsPrefix {
                    action,
                    index,
                    trigger,
                });
            } else if chord.is_typing() && matches!(trigger, Trigger::Direct(_)) {
                faults.push(KeyFault::Typing {
                    action,
                    index,
                    trigger,
                });
            }
            match seen.iter().find(|(one, _)| *one == trigger) {
                Some(&(_, other)) => faults.push(KeyFault::Taken {
                    action,
                    index,
                    trigger,
                    other,
                }),
                None => seen.push((trigger, action)),
            }
        }
    }
    faults
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn press(code: KeyCode, modifiers: KeyModifiers) -> KeyEvent {
        KeyEvent::new(code, modifiers)
    }

    fn chord(text: &str) -> Chord {
        text.parse()
            .unwrap_or_else(|error| panic!("{text}: {error}"))
    }

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

    #[test]
    fn a_release_and_a_lone_modifier_are_no_chords() {
        let mut event = press(KeyCode::F(5), KeyModifiers::NONE);
        event.kind = KeyEventKind::Release;
        assert_eq!(Chord::of(&event), None);
        assert_eq!(Keymap::default().action(&event, false), None);
        let modifier = KeyCode::Modifier(crossterm::event::ModifierKeyCode::LeftControl);
        assert_eq!(Chord::new(modifier, KeyModifiers::CONTROL), None);
    }

    #[test]
    fn the_default_keys_are_those_of_the_contract() {
        let keymap = Keymap::default();
        let table = [
            (Some("f1"), "?", Action::Help),
            (Some("f2"), "o", Action::FocusNext),
            (None, "left", Action::FocusDirection(Direction::Left)),
            (None, "right", Action::FocusDirection(Direction::Right)),
            (None, "up", Action::FocusDirection(Direction::Up)),
            (None, "down", Action::FocusDirection(Direction::Down)),
            (Some("f3"), "s", Action::Scratchpad),
            (Some("f4"), "h", Action::Handoff),
            (Some("f6"), "i", Action::History),
            (Some("f5"), "r", Action::Reboot),
            (Some("f7"), "m", Action::Mode),
            (None, "p", Action::Pause),
            (Some("f8"), "z", Action::Zoom),
            (Some("f9"), "[", Action::Scroll),
            (None, "c", Action::Checkpoint),
            (None, "u", Action::Undo),
            (None, "E", Action::EditExternally),
            (Some("f10"), "q", Action::Quit),
        ];
        assert_eq!(table.len(), ACTIONS.len());
        for (direct, prefixed, action) in table {
            if let Some(direct) = direct {
                let key = chord(direct);
                let event = press(key.code(), key.modifiers());
                assert_eq!(keymap.action(&event, false), Some(action));
                assert_eq!(keymap.action(&event, true), None);
            }
            let key = chord(prefixed);
            let event = press(key.code(), key.modifiers());
            assert_eq!(keymap.action(&event, true), Some(action));
            assert_eq!(keymap.action(&event, false), None);
        }
        let prefix = press(KeyCode::Char('q'), KeyModifiers::CONTROL);
        assert!(keymap.is_prefix(&prefix));
        assert_eq!(keymap.action(&prefix, true), None);
    }

    #[test]
    fn names_lead_back_to_their_actions() {
        for action in Action::all() {
            assert_eq!(Action::from_name(action.name()), Some(action));
        }
        assert_eq!(Action::from_name("focus_next"), None);
    }

    #[test]
    fn labels_are_what_people_write() {
        let keymap = Keymap::default();
        assert_eq!(keymap.hint(Action::Reboot).as_deref(), Some("F5"));
        assert_eq!(keymap.hint(Action::Checkpoint).as_deref(), Some("Ctrl-q c"));
        assert_eq!(chord("ctrl-pageup").label(), "Ctrl-Pageup");
        assert_eq!(chord("?").label(), "?");
        assert_eq!(chord("E").label(), "E");
        assert_eq!(chord("-").label(), "-");
    }

    #[test]
    fn all_faults_of_a_keymap_are_told_together() {
        let direct = |text: &str| Trigger::Direct(chord(text));
        let after = |text: &str| Trigger::AfterPrefix(chord(text));
        let faults = Keymap::new(
            chord("ctrl-b"),
            [
                (Action::Help, vec![direct("f5"), direct("h")]),
                (Action::Reboot, vec![direct("f5"), after("ctrl-b")]),
                (Action::Quit, vec![after("h")]),
            ],
        )
        .expect_err("three faults");
        let messages: Vec<String> = faults.iter().map(ToString::to_string).collect();
        assert_eq!(
            messages,
            [
                "expected a function key or a chord with ctrl or alt, found `h`, which is needed for typing",
                "expected a free key, found `f5`, which already means `help`",
                "expected a key other than the prefix, found `prefix ctrl-b`",
            ]
        );
        let prefix = Keymap::new(chord("q"), []).expect_err("a letter");
        assert_eq!(prefix, [KeyFault::TypingPrefix(chord("q"))]);
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
