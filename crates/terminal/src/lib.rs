//! The terminal emulator: bytes in; cells, cursor, modes and replies out. And its keyboard: the decoder of the host terminal's
//! input, and the encoder of the input for the program in the terminal.
//!
//! All but [`pane`] is pure: no file, socket, process or clock. [`pane`] runs the program on a PTY, and records and replays what it
//! shows. Nothing here depends on which program runs in the terminal or why.

pub mod copy;
pub mod input;
pub mod keys;
pub mod pane;
pub mod screen;
mod side_channel;

/// The size of a pane in cells, at least 1×1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PaneSize {
    columns: u16,
    rows: u16,
}

impl PaneSize {
    /// The widest pane: far beyond real displays, and a bound on the memory of the scrollback.
    pub const MAX_COLUMNS: u16 = 1000;
    /// The tallest pane.
    pub const MAX_ROWS: u16 = 1000;

    /// Creates a size, clamped to 1×1 up to 1000×1000 cells.
    pub fn new(columns: u16, rows: u16) -> Self {
        Self {
            columns: columns.clamp(1, Self::MAX_COLUMNS),
            rows: rows.clamp(1, Self::MAX_ROWS),
        }
    }

    /// Returns the width in cells.
    pub fn columns(self) -> u16 {
        self.columns
    }

    /// Returns the height in cells.
    pub fn rows(self) -> u16 {
        self.rows
    }
}

/// A colour as its red, green and blue parts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Rgb(pub u8, pub u8, pub u8);

/// The colour scheme of a terminal: dark text on light, or light text on dark.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ColourScheme {
    /// Light text on a dark background.
    Dark,
    /// Dark text on a light background.
    Light,
}

/// The host terminal's real colours, as far as it reported them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct HostPalette {
    /// The default text colour.
    pub foreground: Option<Rgb>,
    /// The default background.
    pub background: Option<Rgb>,
    /// The cursor's colour.
    pub cursor: Option<Rgb>,
    /// The sixteen named colours.
    pub colours: [Option<Rgb>; 16],
}

/// The mouse events that the child requested.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum MouseTracking {
    /// The child requested no events.
    #[default]
    None,
    /// Presses only, without modifiers (mode 9).
    X10,
    /// Presses and releases (mode 1000).
    Click,
    /// Presses, releases and motion while a button is down (mode 1002).
    Drag,
    /// Presses, releases and all motion, also without a button (mode 1003).
    Motion,
}

/// The modes that the child has set in its terminal, as far as the encoding of input depends on them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Modes {
    /// Cursor keys send `SS3` forms (DECCKM).
    pub app_cursor: bool,
    /// The keypad sends `SS3` forms (DECKPAM).
    pub app_keypad: bool,
    /// Pastes are wrapped in marks (2004).
    pub bracketed_paste: bool,
    /// Focus changes are reported (1004).
    pub focus_events: bool,
    /// The mouse events that are reported.
    pub mouse: MouseTracking,
    /// Mouse reports use the SGR form (1006).
    pub sgr_mouse: bool,
    /// Mouse reports use the UTF-8 form (1005).
    pub utf8_mouse: bool,
    /// The alternate screen is shown.
    pub alternate_screen: bool,
    /// The wheel sends arrows on the alternate screen (1007).
    pub alternate_scroll: bool,
    /// The kitty keyboard flags in force: 1 disambiguate, 2 event types, 4 alternates, 8 all keys,
    /// 16 text.
    pub kitty_flags: u8,
    /// The `modifyOtherKeys` level: 0, 1 or 2.
    pub modify_other_keys: u8,
}

/// Returns the length in bytes of an unfinished UTF-8 character at the end of the child's output: its rest comes with the
/// next bytes.
pub(crate) fn begun_character(bytes: &[u8]) -> usize {
    let tail = &bytes[bytes.len().saturating_sub(3)..];
    let Some(lead) = tail.iter().rposition(|byte| *byte >= 0xc0) else {
        return 0;
    };
    match std::str::from_utf8(&tail[lead..]) {
        Err(error) if error.error_len().is_none() => tail.len() - lead,
        _ => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_size_is_never_empty_nor_absurd() {
        assert_eq!(PaneSize::new(0, 0), PaneSize::new(1, 1));
        let huge = PaneSize::new(u16::MAX, u16::MAX);
        assert_eq!((huge.columns(), huge.rows()), (1000, 1000));
    }

    #[test]
    fn only_what_may_go_on_is_begun() {
        for (bytes, begun) in [
            (b"".as_slice(), 0),
            (b"text", 0),
            ("é日🎉".as_bytes(), 0),
            (b"a\xc3", 1),
            (b"\xe6\x97", 2),
            (b"\xf0\x9f\x8e", 3),
            // These can never become a character.
            (b"\xc3\xc3a", 0),
            (b"\x97\x97", 0),
            (b"\xff", 0),
        ] {
            assert_eq!(begun_character(bytes), begun, "{bytes:?}");
        }
    }
}
