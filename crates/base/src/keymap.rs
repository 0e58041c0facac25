//! The keys and their effects: chords, actions and the keymap with its defaults.
//!
//! Everything that is not bound here goes to the pane byte-exact, so the keymap only ever answers with an action of Pitstop
//! or with none.

mod chord;
mod layout;

use std::{fmt, str::FromStr};

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};

pub use chord::{Chord, ChordError};
pub use layout::{chord_key, is_latin, latin_key};

/// The trigger of an action: one chord by itself, or one after the prefix.
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
    /// Moves to the rectangle on the left.
    Left,
    /// Moves to the rectangle on the right.
    Right,
    /// Moves to the rectangle above.
    Up,
    /// Moves to the rectangle below.
    Down,
}

/// An action that a key can ask of Pitstop.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Action {
    /// Shows every key.
    Help,
    /// Focuses the next rectangle.
    FocusNext,
    /// Focuses the neighbour in a direction.
    FocusDirection(Direction),
    /// Goes to the scratchpad panel.
    Scratchpad,
    /// Goes to the handoff panel.
    Handoff,
    /// Goes to the history panel.
    History,
    /// Opens the reboot's review.
    Reboot,
    /// Puts off the reboot that is announced.
    Defer,
    /// Changes the mode: manual, ask, auto.
    Mode,
    /// Pauses everything that happens by itself, or takes that back.
    Pause,
    /// Makes the pane fill the screen, or gives the panels their place back.
    Zoom,
    /// Enters scroll and copy mode.
    Scroll,
    /// Writes a checkpoint now.
    Checkpoint,
    /// Undoes the last reboot.
    Undo,
    /// Opens the focused document in `$EDITOR`.
    EditExternally,
    /// Shows the message log.
    Messages,
    /// Shows how the context has filled, as a chart.
    Chart,
    /// Makes the panels wider.
    Wider,
    /// Makes the panels narrower.
    Narrower,
    /// Lets go of the terminal; the session goes on.
    Detach,
    /// Ends the agent cleanly and leaves.
    Quit,
}

/// One row of the table below: the action, its name in `[keys]`, its text in help, its triggers.
type Row = (Action, &'static str, &'static str, &'static [&'static str]);

/// Every action with its name and defaults, in the order in which help lists them.
#[rustfmt::skip]
const ACTIONS: [Row; 24] = [
    (Action::Help, "help", "show every key", &["f1", "prefix ?"]),
    (Action::FocusNext, "focus-next", "focus the next panel", &["f2", "prefix o"]),
    (Action::FocusDirection(Direction::Left), "focus-left", "focus to the left", &["prefix left"]),
    (Action::FocusDirection(Direction::Right), "focus-right", "focus to the right", &["prefix right"]),
    (Action::FocusDirection(Direction::Up), "focus-up", "focus above", &["prefix up"]),
    (Action::FocusDirection(Direction::Down), "focus-down", "focus below", &["prefix down"]),
    (Action::Scratchpad, "scratchpad", "go to the scratchpad", &["f3", "prefix s"]),
    (Action::Handoff, "handoff", "go to the handoff", &["f4", "prefix h"]),
    (Action::History, "history", "go to the history", &["f6", "prefix i"]),
    (Action::Reboot, "reboot", "review the handoff and reboot", &["f5", "prefix r"]),
    (Action::Defer, "defer", "defer the reboot that is advised; let Claude compact", &["prefix D"]),
    (Action::Mode, "mode", "change who decides on reboots: manual, ask, auto", &["f7", "prefix m"]),
    (Action::Pause, "pause", "pause or resume automation", &["prefix p"]),
    (Action::Zoom, "zoom", "zoom the pane", &["f8", "prefix z"]),
    (Action::Scroll, "scroll", "scroll and copy", &["f9", "prefix ["]),
    (Action::Checkpoint, "checkpoint", "save a checkpoint now", &["prefix c"]),
    (Action::Undo, "undo", "undo the last reboot", &["prefix u"]),
    (Action::EditExternally, "edit-externally", "open the focused document in $EDITOR", &["prefix E"]),
    (Action::Messages, "messages", "show the message log", &["prefix l"]),
    (Action::Chart, "chart", "chart how the context fills", &["prefix g"]),
    (Action::Wider, "wider", "make the panels wider", &["prefix >"]),
    (Action::Narrower, "narrower", "make the panels narrower", &["prefix <"]),
    (Action::Detach, "detach", "detach this terminal; the session goes on", &["prefix d"]),
    (Action::Quit, "quit", "end the agent cleanly and quit", &["f10", "prefix q"]),
];

impl Action {
    /// Returns every action, in the order in which help lists them.
    pub fn all() -> impl Iterator<Item = Self> {
        ACTIONS.iter().map(|row| row.0)
    }

    /// Returns the action's name in `[keys]`, such as `focus-next`.
    pub fn name(self) -> &'static str {
        self.row().1
    }

    /// Returns the effect of the action, in a few words for the help page.
    pub fn description(self) -> &'static str {
        self.row().2
    }

    /// Returns the triggers that the action has unless the user sets others.
    ///
    /// # Panics
    ///
    /// Never: a test parses every trigger of the table.
    pub fn default_triggers(self) -> Vec<Trigger> {
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

/// An action with all of its triggers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Binding {
    /// The action.
    pub action: Action,
    /// The triggers of the action; empty when the user has unbound it.
    pub triggers: Vec<Trigger>,
}

/// The keys in force: checked, so that no trigger means two things and typing stays possible.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Keymap {
    prefix: Chord,
    bindings: Vec<Binding>,
}

impl Keymap {
    /// Checks a prefix and the triggers of each action, in the order in which help lists them.
    ///
    /// All faults are reported together.
    pub fn new(
        prefix: Chord,
        triggers: impl IntoIterator<Item = (Action, Vec<Trigger>)>,
    ) -> Result<Self, Vec<KeyFault>> {
        let bindings = triggers.into_iter();
        let bindings: Vec<Binding> = bindings
            .map(|(action, triggers)| Binding { action, triggers })
            .collect();
        let faults = faults(prefix, &bindings);
        if faults.is_empty() {
            Ok(Self { prefix, bindings })
        } else {
            Err(faults)
        }
    }

    /// Returns the chord after which the next one belongs to Pitstop.
    pub const fn prefix(&self) -> Chord {
        self.prefix
    }

    /// Reports whether a key is the prefix. Pressed after itself it goes to the pane: then send the second event on as it
    /// came.
    pub fn is_prefix(&self, event: &KeyEvent) -> bool {
        Chord::of(event) == Some(self.prefix)
    }

    /// Returns the action that a key asks for; `prefixed` is true if the prefix was pressed just before it.
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

    /// Returns every action with its triggers, in the order in which help lists them.
    pub fn bindings(&self) -> &[Binding] {
        &self.bindings
    }

    /// Returns the shortest hint at how to reach an action: `F5`, or `Ctrl-q r`.
    pub fn hint(&self, action: Action) -> Option<String> {
        let binding = self.bindings.iter().find(|one| one.action == action)?;
        let direct = |trigger: &&Trigger| matches!(trigger, Trigger::Direct(_));
        let mut triggers = binding.triggers.iter();
        let trigger = triggers.find(direct).or_else(|| binding.triggers.first())?;
        Some(self.label(*trigger))
    }

    /// Returns the key that asks for an action after the prefix: `r`; nothing if there is none.
    pub fn after_prefix(&self, action: Action) -> Option<String> {
        let binding = self.bindings.iter().find(|one| one.action == action)?;
        binding.triggers.iter().find_map(|trigger| match trigger {
            Trigger::AfterPrefix(chord) => Some(chord.label()),
            Trigger::Direct(_) => None,
        })
    }

    /// Returns the hint with the effect of the action: `F5 review`; nothing if it has no key.
    pub fn hint_to(&self, action: Action, does: &str) -> Option<String> {
        Some(format!("{} {does}", self.hint(action)?))
    }

    /// Returns a trigger as a help page shows it: `F5`, or `Ctrl-q r`.
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

/// Returns the key by its place on a Latin keyboard, where its letter is of another script: `y` copies in each layout.
pub fn on_latin_keyboard(mut key: KeyEvent) -> KeyEvent {
    if let KeyCode::Char(c) = key.code
        && let Some(latin) = latin_key(c)
    {
        key.code = KeyCode::Char(latin);
    }
    key
}

/// Returns `ctrl-q`: with flow control off, as in every raw terminal, hardly a program listens to it.
pub fn default_prefix() -> Chord {
    Chord {
        code: KeyCode::Char('q'),
        modifiers: KeyModifiers::CONTROL,
    }
}

/// The reason why a prefix and triggers make no keymap. `index` counts the triggers of the action from 0.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum KeyFault {
    /// Two actions, or one action twice, have the same trigger.
    #[error("`{trigger}` is taken: it already means `{}`", other.name())]
    Taken {
        /// The later of the two.
        action: Action,
        /// The index of the trigger.
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
        /// The index of the trigger.
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
        /// The index of the trigger.
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
    use crossterm::event::KeyEventKind;

    use super::*;

    pub(super) fn press(code: KeyCode, modifiers: KeyModifiers) -> KeyEvent {
        KeyEvent::new(code, modifiers)
    }

    pub(super) fn chord(text: &str) -> Chord {
        text.parse()
            .unwrap_or_else(|error| panic!("{text}: {error}"))
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
            (None, "D", Action::Defer),
            (Some("f7"), "m", Action::Mode),
            (None, "p", Action::Pause),
            (Some("f8"), "z", Action::Zoom),
            (Some("f9"), "[", Action::Scroll),
            (None, "c", Action::Checkpoint),
            (None, "u", Action::Undo),
            (None, "E", Action::EditExternally),
            (None, "l", Action::Messages),
            (None, "g", Action::Chart),
            (None, ">", Action::Wider),
            (None, "<", Action::Narrower),
            (None, "d", Action::Detach),
            (Some("f10"), "q", Action::Quit),
        ];
        let missing: Vec<&str> = Action::all()
            .filter(|action| !table.iter().any(|row| row.2 == *action))
            .map(Action::name)
            .collect();
        assert!(
            missing.is_empty(),
            "add the rows of {missing:?} to this table"
        );
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
    fn all_faults_of_a_keymap_are_reported_together() {
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
                "`f5` is taken: it already means `help`",
                "expected a key other than the prefix, found `prefix ctrl-b`",
            ]
        );
        let prefix = Keymap::new(chord("q"), []).expect_err("a letter");
        assert_eq!(prefix, [KeyFault::TypingPrefix(chord("q"))]);
    }
}
