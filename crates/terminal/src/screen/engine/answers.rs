//! The replies of the engine: fixed templates filled with our own state.

use alacritty_terminal::term::TermMode;
use alacritty_terminal::term::cell::{Cell, Flags};
use vte::ansi::{self, Color};

use super::{CELL_PIXELS, Engine};
use crate::screen::cells::{BLINK, attributes};
use crate::side_channel::Setting;
use crate::{ColourScheme, MouseTracking, Rgb};

/// The reply to XTVERSION.
pub(in crate::screen) const VERSION_REPLY: &str =
    concat!("\x1bP>|pitstop(", env!("CARGO_PKG_VERSION"), ")\x1b\\");

/// The reply of a VT220 with ANSI colours: enough for programs that wait for this as the end of their queries.
pub(super) const ATTRIBUTES_REPLY: &str = "\x1b[?62;22c";

/// The capabilities that XTGETTCAP reports: name and value.
const CAPABILITIES: [(&str, &str); 5] = [
    ("TN", "xterm-256color"),
    ("name", "xterm-256color"),
    ("Co", "256"),
    ("colors", "256"),
    ("RGB", "8/8/8"),
];

impl Engine {
    pub(in crate::screen) fn report_cursor(&mut self, private: &str) {
        let point = self.term.grid().cursor.point;
        let top = if self.origin { self.margins.top } else { 0 };
        let row = self.row_of_cursor().saturating_sub(top) + 1;
        let column = point.column.0.min(usize::from(self.size.columns()) - 1);
        self.reply(&format!("\x1b[{private}{row};{}R", column + 1));
    }

    pub(in crate::screen) fn report_scheme(&mut self) {
        let number = match self.scheme() {
            ColourScheme::Dark => 1,
            ColourScheme::Light => 2,
        };
        self.reply(&format!("\x1b[?997;{number}n"));
    }

    /// Returns the scheme as reported, else as derived from the background, else dark.
    pub(super) fn scheme(&self) -> ColourScheme {
        let judged = |Rgb(red, green, blue): Rgb| {
            // The usual luma weights, in thousandths.
            let luma = 299 * u32::from(red) + 587 * u32::from(green) + 114 * u32::from(blue);
            if luma > 127_500 {
                ColourScheme::Light
            } else {
                ColourScheme::Dark
            }
        };
        self.scheme
            .or(self.palette.background.map(judged))
            .unwrap_or(ColourScheme::Dark)
    }

    pub(in crate::screen) fn report_cell_size(&mut self) {
        let (width, height) = CELL_PIXELS;
        self.reply(&format!("\x1b[6;{height};{width}t"));
    }

    pub(in crate::screen) fn report_capabilities(&mut self, names: &[Vec<u8>]) {
        for asked in names {
            let known = CAPABILITIES
                .iter()
                .find(|(name, _)| name.as_bytes() == asked);
            match known {
                Some((name, value)) => {
                    self.reply(&format!("\x1bP1+r{}={}\x1b\\", hex(name), hex(value)));
                }
                None => self.reply("\x1bP0+r\x1b\\"),
            }
        }
    }

    pub(in crate::screen) fn report_setting(&mut self, setting: Setting) {
        let text = match setting {
            Setting::Rendition => format!(
                "\x1bP1$r{}m\x1b\\",
                rendition(&self.term.grid().cursor.template)
            ),
            Setting::CursorStyle => format!("\x1bP1$r{} q\x1b\\", self.cursor_style_number()),
            Setting::Unknown => "\x1bP0$r\x1b\\".to_owned(),
        };
        self.reply(&text);
    }

    fn cursor_style_number(&self) -> u8 {
        let style = self.term.cursor_style();
        let steady = match style.shape {
            ansi::CursorShape::Underline => 4,
            ansi::CursorShape::Beam => 6,
            _ => 2,
        };
        steady - u8::from(style.blinking)
    }

    /// Returns DECRPM's number for a private mode: 0 unknown, 1 set, 2 reset, 3 always set.
    pub(super) fn private_mode_state(&self, mode: u16) -> u8 {
        let set = match mode {
            1 => self.mode(TermMode::APP_CURSOR),
            6 => self.origin,
            7 => self.mode(TermMode::LINE_WRAP),
            9 => self.mouse() == MouseTracking::X10,
            12 => self.term.cursor_style().blinking,
            25 => self.mode(TermMode::SHOW_CURSOR),
            47 | 1047 | 1049 => self.mode(TermMode::ALT_SCREEN),
            66 => self.mode(TermMode::APP_KEYPAD),
            1000 => self.mode(TermMode::MOUSE_REPORT_CLICK),
            1002 => self.mode(TermMode::MOUSE_DRAG),
            1003 => self.mode(TermMode::MOUSE_MOTION),
            1004 => self.mode(TermMode::FOCUS_IN_OUT),
            1005 => self.mode(TermMode::UTF8_MOUSE),
            1006 => self.mode(TermMode::SGR_MOUSE),
            1007 => self.mode(TermMode::ALTERNATE_SCROLL),
            2004 => self.mode(TermMode::BRACKETED_PASTE),
            2026 => self.in_frame,
            2031 => self.scheme_reports,
            // Grapheme clusters are always treated as one character.
            2027 => return 3,
            _ => return 0,
        };
        if set { 1 } else { 2 }
    }

    /// Returns the colour for the reply to a query: the child's own, else the host's, else a usual one.
    pub(super) fn known_colour(&self, index: usize) -> Option<Rgb> {
        if let Some(own) = self.term.colors()[index] {
            return Some(Rgb(own.r, own.g, own.b));
        }
        let light = self.scheme() == ColourScheme::Light;
        let (text, ground) = if light {
            (Rgb(0x1f, 0x1f, 0x1f), Rgb(0xff, 0xff, 0xff))
        } else {
            (Rgb(0xd8, 0xd8, 0xd8), Rgb(0x12, 0x12, 0x12))
        };
        let foreground = self.palette.foreground.unwrap_or(text);
        match index {
            0..16 => Some(self.palette.colours[index].unwrap_or_else(|| usual_colour(index as u8))),
            16..256 => Some(usual_colour(index as u8)),
            256 => Some(foreground),
            257 => Some(self.palette.background.unwrap_or(ground)),
            258 => Some(self.palette.cursor.unwrap_or(foreground)),
            _ => None,
        }
    }
}

/// Returns the template's attributes as SGR parameters.
fn rendition(template: &Cell) -> String {
    let mut text = "0".to_owned();
    let flags = [
        (Flags::BOLD, ";1"),
        (Flags::DIM, ";2"),
        (Flags::ITALIC, ";3"),
        (Flags::UNDERLINE, ";4"),
        (Flags::DOUBLE_UNDERLINE, ";4:2"),
        (Flags::UNDERCURL, ";4:3"),
        (Flags::DOTTED_UNDERLINE, ";4:4"),
        (Flags::DASHED_UNDERLINE, ";4:5"),
        (BLINK, ";5"),
        (Flags::INVERSE, ";7"),
        (Flags::HIDDEN, ";8"),
        (Flags::STRIKEOUT, ";9"),
    ];
    for (flag, parameter) in flags {
        if template.flags.contains(flag) {
            text.push_str(parameter);
        }
    }
    if attributes(template).overline {
        text.push_str(";53");
    }
    text.push_str(&rendition_colour(template.fg, 30));
    text.push_str(&rendition_colour(template.bg, 40));
    text
}

fn rendition_colour(colour: Color, base: u8) -> String {
    let extended = base + 8;
    match colour {
        Color::Spec(rgb) => format!(";{extended}:2::{}:{}:{}", rgb.r, rgb.g, rgb.b),
        Color::Indexed(index) => format!(";{extended}:5:{index}"),
        Color::Named(named) => match named as usize {
            index @ 0..8 => format!(";{}", usize::from(base) + index),
            index @ 8..16 => format!(";{}", usize::from(base) + 60 + index - 8),
            _ => String::new(),
        },
    }
}

fn hex(text: &str) -> String {
    let bytes: Vec<_> = text.bytes().map(|byte| format!("{byte:02X}")).collect();
    bytes.concat()
}

/// Returns a colour of xterm's palette, for those that the host did not report.
fn usual_colour(index: u8) -> Rgb {
    const NAMED: [Rgb; 16] = [
        Rgb(0, 0, 0),
        Rgb(205, 0, 0),
        Rgb(0, 205, 0),
        Rgb(205, 205, 0),
        Rgb(0, 0, 238),
        Rgb(205, 0, 205),
        Rgb(0, 205, 205),
        Rgb(229, 229, 229),
        Rgb(127, 127, 127),
        Rgb(255, 0, 0),
        Rgb(0, 255, 0),
        Rgb(255, 255, 0),
        Rgb(92, 92, 255),
        Rgb(255, 0, 255),
        Rgb(0, 255, 255),
        Rgb(255, 255, 255),
    ];
    let step = |level: u8| if level == 0 { 0 } else { 55 + 40 * level };
    match index {
        0..16 => NAMED[usize::from(index)],
        16..232 => {
            let cube = index - 16;
            Rgb(step(cube / 36), step(cube / 6 % 6), step(cube % 6))
        }
        232.. => {
            let grey = 8 + 10 * (index - 232);
            Rgb(grey, grey, grey)
        }
    }
}
