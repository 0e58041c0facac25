//! What a terminal can show.

use crate::runtime::paint::Abilities;
use crate::ui::{Depth, Theme, theme::is_ascii};
use pitstop_core::config::ThemeName;
use pitstop_terminal::ColourScheme;

/// The variables of the environment by which [`Looks::of`] judges.
pub const TERMINAL_VARIABLES: [&str; 9] = [
    "NO_COLOR",
    "COLORTERM",
    "TERM",
    "TERM_PROGRAM",
    "VTE_VERSION",
    "WT_SESSION",
    "LC_ALL",
    "LC_CTYPE",
    "LANG",
];

/// What a terminal can show, by the environment in which it was attached.
#[derive(Clone, Copy, Debug, Default)]
pub struct Looks {
    /// The colours.
    pub depth: Depth,
    /// True if it shows only ASCII.
    pub ascii: bool,
    /// Its other abilities.
    pub abilities: Abilities,
}

impl Looks {
    /// Returns what a terminal can show by the variables of the environment in which it is used.
    pub fn of(variable: impl Fn(&str) -> String) -> Self {
        Self {
            depth: Depth::of(
                &variable("NO_COLOR"),
                &variable("COLORTERM"),
                &variable("TERM"),
                &variable("TERM_PROGRAM"),
            ),
            ascii: is_ascii(&variable("TERM"), &locale(&variable)),
            abilities: Abilities::of(variable),
        }
    }

    /// Returns the colours for a terminal: by the user's wish, and dark unless it is known to be light.
    pub fn theme(self, name: ThemeName, scheme: Option<ColourScheme>) -> Theme {
        let dark = scheme != Some(ColourScheme::Light);
        Theme::new(name, self.depth, dark).in_ascii(self.ascii)
    }
}

/// Returns the locale by the first variable that names one.
pub fn locale(variable: &impl Fn(&str) -> String) -> String {
    let locales = ["LC_ALL", "LC_CTYPE", "LANG"].map(variable);
    let locale = locales.into_iter().find(|value| !value.is_empty());
    locale.unwrap_or_default()
}
