//! Meaning to style: the looks of calm, warning or focused, and how colours shrink to those that the host terminal can
//! show.
//!
//! A colour is never the only sign of a meaning: every level is also a word, every check also a sign, and the focused
//! rectangle has a heavier border. So a theme may have no colours at all.

use ratatui::style::{Color, Modifier, Style};

use pitstop_core::{config::ThemeName, guard::Level};
use pitstop_terminal::{ColourScheme, Rgb, screen::Colour};

/// The number of colours that the host terminal can show.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Depth {
    /// Shows no colours (`NO_COLOR`, `TERM=vt100`): attributes only.
    Mono,
    /// Shows the sixteen named colours.
    Ansi16,
    /// Shows the palette of 256.
    Indexed256,
    /// Shows all colours.
    #[default]
    TrueColor,
}

/// The red, green and blue parts of a colour.
type Parts = (u8, u8, u8);

/// The sixteen named colours in the order of their numbers, and their values on most terminals (those of xterm); users
/// change them, but hardly their hue.
const NAMED: [(Color, Parts); 16] = [
    (Color::Black, (0, 0, 0)),
    (Color::Red, (205, 0, 0)),
    (Color::Green, (0, 205, 0)),
    (Color::Yellow, (205, 205, 0)),
    (Color::Blue, (0, 0, 238)),
    (Color::Magenta, (205, 0, 205)),
    (Color::Cyan, (0, 205, 205)),
    (Color::Gray, (229, 229, 229)),
    (Color::DarkGray, (127, 127, 127)),
    (Color::LightRed, (255, 0, 0)),
    (Color::LightGreen, (0, 255, 0)),
    (Color::LightYellow, (255, 255, 0)),
    (Color::LightBlue, (92, 92, 255)),
    (Color::LightMagenta, (255, 0, 255)),
    (Color::LightCyan, (0, 255, 255)),
    (Color::White, (255, 255, 255)),
];

/// The steps of the 6×6×6 cube in the palette of 256.
const CUBE: [u8; 6] = [0, 95, 135, 175, 215, 255];

impl Depth {
    /// Returns the depth of a host terminal by its environment: `NO_COLOR` (no-color.org: any text but an empty one),
    /// `COLORTERM`, `TERM` and `TERM_PROGRAM`. Texts that are not set are empty.
    pub fn of(no_color: &str, colorterm: &str, term: &str, program: &str) -> Self {
        let names = |known: &str| known.split('|').any(|name| term.contains(name));
        if !no_color.is_empty()
            || matches!(term, "" | "dumb" | "vt52" | "vt100" | "vt102" | "vt220")
        {
            Self::Mono
        } else if matches!(colorterm, "truecolor" | "24bit")
            || names("direct|truecolor|kitty|ghostty|alacritty|foot|wezterm")
            || matches!(program, "iTerm.app" | "WezTerm" | "ghostty" | "vscode")
        {
            Self::TrueColor
        } else if names("256") {
            Self::Indexed256
        } else {
            Self::Ansi16
        }
    }

    /// Returns the nearest colour to the child's that the host terminal can show.
    pub fn nearest_shown(self, colour: Colour) -> Color {
        match (self, colour) {
            (Self::Mono, _) | (_, Colour::Default) => Color::Reset,
            (Self::TrueColor, Colour::Rgb(r, g, b)) => Color::Rgb(r, g, b),
            (Self::TrueColor | Self::Indexed256, Colour::Indexed(index)) => Color::Indexed(index),
            (Self::Indexed256, Colour::Rgb(r, g, b)) => Color::Indexed(nearest_256(r, g, b)),
            (Self::Ansi16, Colour::Indexed(index)) => {
                let named = NAMED.get(usize::from(index));
                named.map_or_else(|| nearest_16(parts_of_256(index)), |(named, _)| *named)
            }
            (Self::Ansi16, Colour::Rgb(r, g, b)) => nearest_16((r, g, b)),
        }
    }

    /// Returns one of Pitstop's own colours, chosen by hand for sixteen colours because the nearest is often not the best.
    fn own_colour(self, (r, g, b): Parts, named: Color) -> Option<Color> {
        match self {
            Self::Mono => None,
            Self::Ansi16 => Some(named),
            Self::Indexed256 | Self::TrueColor => Some(self.nearest_shown(Colour::Rgb(r, g, b))),
        }
    }
}

/// Returns the number of a colour, if it is one of the sixteen.
pub fn named_index(colour: Color) -> Option<u16> {
    (0..)
        .zip(NAMED)
        .find_map(|(index, (named, _))| (named == colour).then_some(index))
}

/// Returns the distance of two colours as the eye sees it, roughly: green counts most, red more the redder both are.
fn colour_distance(a: Parts, b: Parts) -> u32 {
    let part = |a: u8, b: u8| u32::from(a.abs_diff(b)).pow(2);
    let red = u32::midpoint(u32::from(a.0), u32::from(b.0));
    ((512 + red) * part(a.0, b.0)) / 256 + 4 * part(a.1, b.1) + ((767 - red) * part(a.2, b.2)) / 256
}

fn nearest_16(parts: Parts) -> Color {
    let nearest = NAMED
        .into_iter()
        .min_by_key(|(_, one)| colour_distance(parts, *one));
    nearest.map_or(Color::Gray, |(named, _)| named)
}

fn nearest_256(r: u8, g: u8, b: u8) -> u8 {
    let step = |value: u8| {
        (0..6)
            .min_by_key(|step| CUBE[*step].abs_diff(value))
            .unwrap_or(0)
    };
    let cube = [step(r), step(g), step(b)];
    let cube_parts = (CUBE[cube[0]], CUBE[cube[1]], CUBE[cube[2]]);
    let mean = (u16::from(r) + u16::from(g) + u16::from(b)) / 3;
    let grey = (mean.saturating_sub(3) / 10).min(23) as u8;
    let level = 8 + 10 * grey;
    if colour_distance((r, g, b), (level, level, level)) < colour_distance((r, g, b), cube_parts) {
        232 + grey
    } else {
        (16 + 36 * cube[0] + 6 * cube[1] + cube[2]) as u8
    }
}

fn parts_of_256(index: u8) -> Parts {
    match index {
        0..16 => NAMED[usize::from(index)].1,
        16..232 => {
            let rest = usize::from(index - 16);
            (CUBE[rest / 36], CUBE[rest / 6 % 6], CUBE[rest % 6])
        }
        232.. => {
            let level = 8 + 10 * (index - 232);
            (level, level, level)
        }
    }
}

/// Returns the colour scheme of the host terminal: by its background if it reported one, else by `COLORFGBG` (`15;0`, text then
/// ground), else it is taken for dark, as most are.
pub fn scheme_of(background: Option<Rgb>, colorfgbg: &str) -> ColourScheme {
    let ground = colorfgbg.rsplit(';').next();
    let is_light = match background {
        // The luminance of ITU-R BT.601, as terminals judge it.
        Some(Rgb(r, g, b)) => {
            299 * u32::from(r) + 587 * u32::from(g) + 114 * u32::from(b) >= 500 * 255
        }
        None => matches!(
            ground.and_then(|ground| ground.parse().ok()),
            Some(7 | 9..=15)
        ),
    };
    if is_light {
        ColourScheme::Light
    } else {
        ColourScheme::Dark
    }
}

/// Reports whether a host terminal shows only ASCII: by its kind, and by the first of `LC_ALL`, `LC_CTYPE` and `LANG` that
/// is set. Where none is, UTF-8 is taken for granted, as every common terminal has it.
pub fn is_ascii(term: &str, locale: &str) -> bool {
    let codeset = locale.to_ascii_lowercase();
    let utf8 = codeset.contains("utf-8") || codeset.contains("utf8");
    let plain =
        matches!(term, "linux" | "dumb") || term.starts_with("vt1") || term.starts_with("vt2");
    plain || (!locale.is_empty() && !utf8)
}

/// The style of each meaning.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Theme {
    /// The number of colours there are.
    pub depth: Depth,
    /// The border of a rectangle.
    pub border: Style,
    /// The border of the rectangle that has the keys.
    pub focus: Style,
    /// The name of a rectangle.
    pub title: Style,
    /// The text.
    pub text: Style,
    /// The text that is there if one looks for it.
    pub dim: Style,
    /// The style of keys to press, and of text that stands out.
    pub accent: Style,
    /// The style of things that are well.
    pub good: Style,
    /// The style of things that are not well.
    pub bad: Style,
    /// The headings in documents.
    pub heading: Style,
    /// The code in documents.
    pub code: Style,
    /// The style of a selection.
    pub selection: Style,
    /// The style of the matches of a search.
    pub found: Style,
    /// The part of the gauge that is not used.
    pub unused: Style,
    levels: [Style; 4],
    /// True if only ASCII is drawn: the host terminal has no UTF-8.
    pub ascii: bool,
}

/// The colours of one theme, each with its name among the sixteen.
struct Palette {
    border: (Parts, Color),
    dim: (Parts, Color),
    accent: (Parts, Color),
    heading: (Parts, Color),
    code: (Parts, Color),
    bad: (Parts, Color),
    selection: (Parts, Color),
    levels: [(Parts, Color); 4],
}

const DARK: Palette = Palette {
    border: ((84, 92, 112), Color::DarkGray),
    dim: ((139, 147, 167), Color::DarkGray),
    accent: ((130, 170, 255), Color::LightBlue),
    heading: ((199, 170, 255), Color::LightMagenta),
    code: ((137, 212, 220), Color::Cyan),
    bad: ((255, 117, 110), Color::LightRed),
    selection: ((54, 68, 102), Color::Blue),
    levels: [
        ((134, 201, 120), Color::Green),
        ((232, 198, 92), Color::Yellow),
        ((250, 158, 88), Color::LightYellow),
        ((255, 104, 104), Color::LightRed),
    ],
};

const LIGHT: Palette = Palette {
    border: ((176, 182, 194), Color::Gray),
    dim: ((98, 106, 124), Color::DarkGray),
    accent: ((36, 92, 200), Color::Blue),
    heading: ((120, 62, 180), Color::Magenta),
    code: ((10, 110, 122), Color::Cyan),
    bad: ((190, 32, 40), Color::Red),
    selection: ((200, 216, 250), Color::Cyan),
    levels: [
        ((38, 122, 52), Color::Green),
        ((140, 104, 0), Color::Yellow),
        ((188, 82, 0), Color::Magenta),
        ((190, 32, 40), Color::Red),
    ],
};

/// The palette of blue against orange, and lighter against darker: distinguishable with any common colour blindness (after the
/// palette of Okabe and Ito).
const COLOUR_BLIND_DARK: Palette = Palette {
    accent: ((120, 190, 240), Color::LightCyan),
    heading: ((240, 228, 66), Color::LightYellow),
    code: ((120, 190, 240), Color::LightCyan),
    bad: ((230, 120, 30), Color::LightYellow),
    levels: [
        ((86, 180, 233), Color::LightBlue),
        ((240, 228, 66), Color::LightYellow),
        ((230, 159, 0), Color::Yellow),
        ((235, 110, 40), Color::LightRed),
    ],
    ..DARK
};

const COLOUR_BLIND_LIGHT: Palette = Palette {
    accent: ((0, 94, 150), Color::Blue),
    heading: ((0, 64, 110), Color::Blue),
    code: ((0, 94, 150), Color::Blue),
    bad: ((176, 70, 0), Color::Red),
    levels: [
        ((0, 114, 178), Color::Blue),
        ((120, 100, 0), Color::Yellow),
        ((176, 90, 0), Color::Magenta),
        ((140, 50, 0), Color::Red),
    ],
    ..LIGHT
};

const CONTRAST_DARK: Palette = Palette {
    border: ((255, 255, 255), Color::White),
    dim: ((220, 220, 220), Color::Gray),
    accent: ((255, 255, 0), Color::LightYellow),
    heading: ((255, 255, 255), Color::White),
    code: ((0, 255, 255), Color::LightCyan),
    bad: ((255, 110, 110), Color::LightRed),
    selection: ((0, 0, 190), Color::Blue),
    levels: [
        ((0, 255, 0), Color::LightGreen),
        ((255, 255, 0), Color::LightYellow),
        ((255, 180, 0), Color::LightMagenta),
        ((255, 110, 110), Color::LightRed),
    ],
};

const CONTRAST_LIGHT: Palette = Palette {
    border: ((0, 0, 0), Color::Black),
    dim: ((40, 40, 40), Color::Black),
    accent: ((0, 0, 200), Color::Blue),
    heading: ((0, 0, 0), Color::Black),
    code: ((0, 80, 90), Color::Blue),
    bad: ((160, 0, 0), Color::Red),
    selection: ((170, 200, 255), Color::Cyan),
    levels: [
        ((0, 90, 0), Color::Green),
        ((100, 75, 0), Color::Blue),
        ((140, 55, 0), Color::Magenta),
        ((160, 0, 0), Color::Red),
    ],
};

impl Theme {
    /// Returns the theme of that name for a host terminal of this depth; `dark` is true if its background is.
    pub fn new(name: ThemeName, depth: Depth, dark: bool) -> Self {
        let palette = match (name, dark) {
            (ThemeName::Dark, _) | (ThemeName::Auto | ThemeName::Mono, true) => &DARK,
            (ThemeName::Light, _) | (ThemeName::Auto | ThemeName::Mono, false) => &LIGHT,
            (ThemeName::ColourBlind, true) => &COLOUR_BLIND_DARK,
            (ThemeName::ColourBlind, false) => &COLOUR_BLIND_LIGHT,
            (ThemeName::HighContrast, true) => &CONTRAST_DARK,
            (ThemeName::HighContrast, false) => &CONTRAST_LIGHT,
        };
        // The mono theme is about Pitstop's colours; the child keeps its own unless the host has none.
        let ours = if name == ThemeName::Mono {
            Depth::Mono
        } else {
            depth
        };
        Self::from_palette(palette, ours, depth, name == ThemeName::HighContrast)
    }

    fn from_palette(palette: &Palette, ours: Depth, depth: Depth, strong: bool) -> Self {
        let mono = ours == Depth::Mono;
        let foreground = |(parts, named): (Parts, Color)| {
            let plain = Style::new();
            ours.own_colour(parts, named)
                .map_or(plain, |colour| plain.fg(colour))
        };
        let only_mono = |style: Style, attribute: Modifier| {
            if mono {
                style.add_modifier(attribute)
            } else {
                style
            }
        };
        let bold = Modifier::BOLD;
        let dim = foreground(palette.dim);
        let selection = match ours.own_colour(palette.selection.0, palette.selection.1) {
            // Among sixteen colours none is sure to be readable on another.
            Some(ground) if ours > Depth::Ansi16 => Style::new().bg(ground),
            _ => Style::new().add_modifier(Modifier::REVERSED),
        };
        Self {
            depth,
            border: if strong {
                foreground(palette.border)
            } else {
                only_mono(foreground(palette.border), Modifier::DIM)
            },
            focus: foreground(palette.accent).add_modifier(bold),
            // Named colours, or they would take the colour of the border around them.
            title: Style::new().fg(Color::Reset).add_modifier(bold),
            text: Style::new().fg(Color::Reset),
            dim: if strong {
                dim
            } else {
                only_mono(dim, Modifier::DIM)
            },
            accent: only_mono(foreground(palette.accent), bold),
            good: foreground(palette.levels[0]),
            bad: foreground(palette.bad).add_modifier(bold),
            heading: foreground(palette.heading).add_modifier(bold),
            code: foreground(palette.code),
            selection,
            // It differs from the selection where that is reversed, too.
            found: if selection.bg.is_none() {
                Style::new().add_modifier(Modifier::UNDERLINED | bold)
            } else {
                Style::new().add_modifier(Modifier::REVERSED)
            },
            unused: only_mono(foreground(palette.border), Modifier::DIM),
            levels: palette.levels.map(foreground),
            ascii: false,
        }
    }

    /// Returns the same theme for a host terminal that shows only ASCII, if it is one.
    #[must_use]
    pub const fn in_ascii(mut self, ascii: bool) -> Self {
        self.ascii = ascii;
        self
    }

    /// Returns the style of a level; its word is beside it wherever it is used.
    pub const fn level(&self, level: Level) -> Style {
        self.levels[level as usize]
    }
}

impl Default for Theme {
    /// Returns the dark theme, with all colours.
    fn default() -> Self {
        Self::new(ThemeName::Dark, Depth::TrueColor, true)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn named_colours_stay_what_they_are_at_every_depth_that_has_them() {
        for (index, (named, _)) in (0..16).zip(NAMED) {
            assert_eq!(Depth::Ansi16.nearest_shown(Colour::Indexed(index)), named);
            assert_eq!(
                Depth::Indexed256.nearest_shown(Colour::Indexed(index)),
                Color::Indexed(index)
            );
            assert_eq!(
                Depth::Mono.nearest_shown(Colour::Indexed(index)),
                Color::Reset
            );
        }
    }

    #[test]
    fn colours_shrink_to_the_nearest() {
        let cases = [
            ((255, 0, 0), Color::LightRed, 196),
            ((0, 0, 0), Color::Black, 16),
            ((255, 255, 255), Color::White, 231),
            ((128, 128, 128), Color::DarkGray, 244),
            ((10, 200, 30), Color::Green, 40),
        ];
        for ((r, g, b), named, index) in cases {
            assert_eq!(
                Depth::Ansi16.nearest_shown(Colour::Rgb(r, g, b)),
                named,
                "{r} {g} {b}"
            );
            assert_eq!(
                Depth::Indexed256.nearest_shown(Colour::Rgb(r, g, b)),
                Color::Indexed(index)
            );
        }
    }

    #[test]
    fn every_colour_of_the_256_is_nearest_to_itself() {
        for index in 16..=255_u8 {
            let (r, g, b) = parts_of_256(index);
            let found = nearest_256(r, g, b);
            assert_eq!(parts_of_256(found), (r, g, b), "{index} became {found}");
        }
    }

    #[test]
    fn levels_differ_from_each_other_in_every_theme_with_colours() {
        for name in [
            ThemeName::Dark,
            ThemeName::Light,
            ThemeName::ColourBlind,
            ThemeName::HighContrast,
        ] {
            for (depth, dark) in [
                (Depth::Ansi16, true),
                (Depth::TrueColor, false),
                (Depth::Indexed256, true),
            ] {
                let levels = Theme::new(name, depth, dark).levels;
                for (at, level) in levels.iter().enumerate() {
                    assert!(!levels[..at].contains(level), "{name:?} {depth:?} {dark}");
                }
            }
        }
    }

    #[test]
    fn the_environment_gives_the_depth() {
        let cases = [
            (["1", "truecolor", "xterm-256color", ""], Depth::Mono),
            (["", "truecolor", "xterm-256color", ""], Depth::TrueColor),
            (["", "", "xterm-kitty", ""], Depth::TrueColor),
            (["", "", "xterm-256color", "iTerm.app"], Depth::TrueColor),
            (
                ["", "", "xterm-256color", "Apple_Terminal"],
                Depth::Indexed256,
            ),
            (["", "", "screen-256color", ""], Depth::Indexed256),
            (["", "", "linux", ""], Depth::Ansi16),
            (["", "", "xterm", ""], Depth::Ansi16),
            (["", "", "dumb", ""], Depth::Mono),
            (["", "", "", ""], Depth::Mono),
        ];
        for ([no_color, colorterm, term, program], depth) in cases {
            let found = Depth::of(no_color, colorterm, term, program);
            assert_eq!(
                found, depth,
                "{no_color:?} {colorterm:?} {term:?} {program:?}"
            );
        }
    }

    #[test]
    fn the_background_gives_dark_or_light() {
        for (background, colorfgbg, scheme) in [
            (Some(Rgb(30, 30, 46)), "0;15", ColourScheme::Dark),
            (Some(Rgb(253, 246, 227)), "15;0", ColourScheme::Light),
            (None, "0;15", ColourScheme::Light),
            (None, "15;0", ColourScheme::Dark),
            (None, "15;default;0", ColourScheme::Dark),
            (None, "", ColourScheme::Dark),
            (None, "nonsense", ColourScheme::Dark),
        ] {
            assert_eq!(scheme_of(background, colorfgbg), scheme, "{colorfgbg:?}");
        }
    }

    proptest! {
        #[test]
        fn no_depth_shows_what_it_cannot(r: u8, g: u8, b: u8, index: u8) {
            for colour in [Colour::Rgb(r, g, b), Colour::Indexed(index), Colour::Default] {
                prop_assert_eq!(Depth::Mono.nearest_shown(colour), Color::Reset);
                let few = Depth::Ansi16.nearest_shown(colour);
                prop_assert!(few == Color::Reset || NAMED.iter().any(|(named, _)| *named == few));
                prop_assert!(!matches!(Depth::Indexed256.nearest_shown(colour), Color::Rgb(..)));
            }
        }
    }
}
