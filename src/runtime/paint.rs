//! Turns cells into bytes for the host terminal: ratatui's backend with links, kinds of underline and short sequences.
//!
//! Ratatui's own backend writes each attribute as a sequence of its own, knows one kind of underline and no links.
//! This one writes one sequence for all that changes between two cells, and sets the cursor again after every
//! character on whose width terminals disagree, so that the rest of the row is in its place.

use std::fmt::Write as _;

use ratatui::{
    buffer::Cell,
    layout::Position,
    style::{Color, Modifier},
};

use crate::ui::{
    extra::{self, LinkRun},
    theme::named_index,
};

/// The abilities of a host terminal beyond the common ones, by the names that it goes by.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Abilities {
    /// True if it knows kinds of underline (SGR 4:3) and their colours (SGR 58). Others would take them for other attributes.
    pub underlines: bool,
    /// True if it shows progress (OSC 9;4). Others would show it as a message.
    pub progress: bool,
    /// True if it takes notifications by OSC 777 instead of OSC 9.
    pub notifies_by_777: bool,
    /// True if it is a window of tmux, which passes on what is wrapped for the terminal around it if `allow-passthrough` is on.
    pub wraps: bool,
}

impl Abilities {
    /// Returns the abilities of a host terminal by its environment: `TERM`, `TERM_PROGRAM` and the marks of terminals that
    /// have no name there.
    pub fn of(variable: impl Fn(&str) -> String) -> Self {
        let (term, program) = (variable("TERM"), variable("TERM_PROGRAM"));
        let named = |names: &str| names.split('|').any(|name| term.contains(name));
        let is = |names: &str| names.split('|').any(|name| name == program);
        // VTE 0.52 is the first with both.
        let vte = variable("VTE_VERSION")
            .parse::<u32>()
            .is_ok_and(|version| version >= 5200);
        let windows = !variable("WT_SESSION").is_empty();
        Self {
            underlines: vte
                || windows
                || named("kitty|ghostty|alacritty|foot|wezterm|contour|tmux")
                || is("iTerm.app|WezTerm|ghostty|vscode|mintty|tmux"),
            progress: windows || named("ghostty") || is("ghostty|WezTerm"),
            notifies_by_777: vte || named("foot|rxvt"),
            wraps: program == "tmux" || term.starts_with("tmux"),
        }
    }
}

/// The painter that turns cells into bytes.
#[derive(Debug)]
pub struct Painter {
    out: String,
    links: Vec<LinkRun>,
    abilities: Abilities,
    /// The look of the next character.
    held: Pen,
    /// The number of the link that is open.
    open: Option<u32>,
    /// The cell of the next character, column and row, if that is certain.
    next: Option<(u16, u16)>,
}

/// The look of the host terminal's next character.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Pen {
    foreground: Color,
    background: Color,
    underline: Color,
    modifier: Modifier,
}

const PLAIN: Pen = Pen {
    foreground: Color::Reset,
    background: Color::Reset,
    underline: Color::Reset,
    modifier: Modifier::empty(),
};

/// The sequence that ends a link.
const LINK_END: &str = "\x1b]8;;\x1b\\";

/// The attributes of ratatui with their SGR numbers; underlines are handled separately.
const ATTRIBUTES: [(Modifier, u16); 8] = [
    (Modifier::BOLD, 1),
    (Modifier::DIM, 2),
    (Modifier::ITALIC, 3),
    (Modifier::SLOW_BLINK, 5),
    (Modifier::RAPID_BLINK, 6),
    (Modifier::REVERSED, 7),
    (Modifier::HIDDEN, 8),
    (Modifier::CROSSED_OUT, 9),
];

impl Painter {
    /// Creates a painter for a host terminal with these abilities.
    pub const fn new(abilities: Abilities) -> Self {
        Self {
            out: String::new(),
            links: Vec::new(),
            abilities,
            held: PLAIN,
            open: None,
            next: None,
        }
    }

    /// Reports whether nothing was painted since the bytes were taken.
    pub const fn is_empty(&self) -> bool {
        self.out.is_empty()
    }

    /// Takes what was painted.
    pub fn take(&mut self) -> Vec<u8> {
        self.rest();
        std::mem::take(&mut self.out).into_bytes()
    }

    /// Ends the link and the attributes of the last cells.
    fn rest(&mut self) {
        if self.open.take().is_some() {
            self.out.push_str(LINK_END);
        }
        if std::mem::replace(&mut self.held, PLAIN) != PLAIN {
            self.out.push_str("\x1b[0m");
        }
        self.next = None;
    }

    /// Hides the cursor.
    pub fn hide_cursor(&mut self) {
        self.out.push_str("\x1b[?25l");
    }

    /// Shows the cursor.
    pub fn show_cursor(&mut self) {
        self.out.push_str("\x1b[?25h");
    }

    /// Puts the cursor on a cell.
    pub fn set_cursor(&mut self, Position { x, y }: Position) {
        self.rest();
        let _ = write!(self.out, "\x1b[{};{}H", y + 1, x + 1);
    }

    /// Clears the whole host terminal.
    pub fn clear(&mut self) {
        self.out.push_str("\x1b[2J");
    }

    /// Takes the links of the next frame, in the order of their places.
    pub fn set_links(&mut self, links: Vec<LinkRun>) {
        self.links = links;
    }

    fn pen_for(&self, cell: &Cell, link: Option<&LinkRun>) -> Pen {
        let underline = match link {
            Some(link) => link.underline,
            None if extra::is_link(cell) => Color::Reset,
            None => cell.underline_color,
        };
        Pen {
            foreground: cell.fg,
            background: cell.bg,
            underline: if self.abilities.underlines {
                underline
            } else {
                Color::Reset
            },
            modifier: cell.modifier,
        }
    }

    /// Writes the SGR numbers that change one pen into another.
    fn change(&self, out: &mut String, from: Pen, to: Pen) {
        if from == to {
            return;
        }
        let known = |pen: Pen| pen.modifier & Modifier::all();
        let lost = !(known(from) - known(to)).is_empty();
        let from = if lost { PLAIN } else { from };
        let mut numbers = String::new();
        if lost {
            numbers.push_str("0;");
        }
        for (attribute, number) in ATTRIBUTES {
            if to.modifier.contains(attribute) && !from.modifier.contains(attribute) {
                let _ = write!(numbers, "{number};");
            }
        }
        match (
            extra::is_overlined(from.modifier),
            extra::is_overlined(to.modifier),
        ) {
            (false, true) => numbers.push_str("53;"),
            (true, false) => numbers.push_str("55;"),
            _ => {}
        }
        let kind = extra::underline_number(to.modifier);
        if kind != extra::underline_number(from.modifier) {
            match kind {
                0 => numbers.push_str("24;"),
                2.. if self.abilities.underlines => {
                    let _ = write!(numbers, "4:{kind};");
                }
                _ => numbers.push_str("4;"),
            }
        }
        if to.foreground != from.foreground {
            colour(&mut numbers, to.foreground, 30);
        }
        if to.background != from.background {
            colour(&mut numbers, to.background, 40);
        }
        if to.underline != from.underline {
            underline_colour(&mut numbers, to.underline);
        }
        // Attributes that no terminal knows may differ without a number to write.
        if numbers.pop().is_some() {
            let _ = write!(out, "\x1b[{numbers}m");
        }
    }
}

fn colour(list: &mut String, colour: Color, base: u16) {
    // Writing to a string cannot fail.
    let _ = match colour {
        Color::Rgb(r, g, b) => write!(list, "{};2;{r};{g};{b};", base + 8),
        Color::Indexed(index) => write!(list, "{};5;{index};", base + 8),
        other => match named_index(other) {
            Some(index @ 0..8) => write!(list, "{};", base + index),
            Some(index) => write!(list, "{};", base + 60 + index - 8),
            None => write!(list, "{};", base + 9),
        },
    };
}

/// Writes the colour of an underline with colons, which a terminal that does not know them skips as a whole.
fn underline_colour(list: &mut String, colour: Color) {
    let _ = match colour {
        Color::Rgb(r, g, b) => write!(list, "58:2::{r}:{g}:{b};"),
        Color::Indexed(index) => write!(list, "58:5:{index};"),
        other => match named_index(other) {
            Some(index) => write!(list, "58:5:{index};"),
            None => write!(list, "59;"),
        },
    };
}

/// Reports whether all terminals agree on the number of cells that a character takes.
fn is_sure(symbol: &str) -> bool {
    // Latin, Greek, Cyrillic and the frames and signs of terminals; CJK proper.
    let sure = |c: char| {
        matches!(c, ' '..='\u{2ff}' | '\u{370}'..='\u{482}' | '\u{2500}'..='\u{259f}'
            | '\u{3041}'..='\u{30fe}' | '\u{4e00}'..='\u{9fff}' | '\u{ac00}'..='\u{d7a3}')
    };
    let mut chars = symbol.chars();
    chars.next().is_none_or(sure) && chars.next().is_none()
}

impl Painter {
    /// Paints cells with their places, in the order of rows and columns. Attributes stay until what follows needs others.
    pub fn draw<'a>(&mut self, content: impl Iterator<Item = (u16, u16, &'a Cell)>) {
        let mut frame = std::mem::take(&mut self.out);
        let out = &mut frame;
        for (x, y, cell) in content {
            let link = extra::is_link(cell)
                .then(|| extra::run_at(&self.links, Position { x, y }))
                .flatten();
            let target = link.filter(|link| !link.target.is_empty());
            let number = target.map(|link| link.number);
            let changed = number != self.open;
            let moved = self.next != Some((x, y));
            if changed && self.open.is_some() && (moved || target.is_none()) {
                out.push_str(LINK_END);
            }
            if moved {
                let _ = write!(out, "\x1b[{};{}H", y + 1, x + 1);
            }
            if let Some(link) = target.filter(|_| changed) {
                // The id is ours, so that no byte of the child's is outside of the target.
                let _ = write!(out, "\x1b]8;id={:x};{}\x1b\\", link.number, link.target);
            }
            self.open = number;
            let own = self.pen_for(cell, link);
            self.change(out, self.held, own);
            self.held = own;
            let symbol = cell.symbol();
            let width = extra::cell_span(cell) as u16;
            let sure = is_sure(symbol);
            if !sure && width == 2 {
                // A terminal that takes it for one cell would leave the other as it was.
                let _ = write!(out, "\x1b[2X");
            }
            out.push_str(symbol);
            self.next = sure.then_some((x + width, y));
        }
        self.out = frame;
    }
}

#[cfg(test)]
mod tests {
    use ratatui::{buffer::Buffer, layout::Rect, style::Style};

    use super::*;
    use pitstop_terminal::screen::Underline;

    const ALL: Abilities = Abilities {
        underlines: true,
        progress: true,
        notifies_by_777: false,
        wraps: false,
    };

    fn painted(
        abilities: Abilities,
        links: Vec<LinkRun>,
        paint: impl FnOnce(&mut Buffer),
    ) -> String {
        let area = Rect::new(0, 0, 20, 2);
        let mut painter = Painter::new(abilities);
        painter.set_links(links);
        let mut buffer = Buffer::empty(area);
        paint(&mut buffer);
        let empty = Buffer::empty(area);
        painter.draw(empty.diff(&buffer).into_iter());
        String::from_utf8(painter.take()).expect("text")
    }

    fn link(number: u32, target: &str) -> LinkRun {
        LinkRun {
            row: 0,
            first: 1,
            last: 2,
            number,
            target: target.to_owned(),
            underline: Color::Red,
        }
    }

    #[test]
    fn one_sequence_says_all_that_changes() {
        let style = Style::new().fg(Color::Rgb(1, 2, 3)).bg(Color::Red);
        let out = painted(ALL, Vec::new(), |buffer| {
            buffer.set_string(0, 0, "ab", style.add_modifier(Modifier::BOLD));
            buffer.set_string(2, 0, "c", style);
            buffer.set_string(3, 0, "d", Style::new());
        });
        assert_eq!(
            out,
            "\x1b[1;1H\x1b[1;38;2;1;2;3;41mab\x1b[0;38;2;1;2;3;41mc\x1b[39;49md"
        );
    }

    #[test]
    fn kinds_of_underline_are_for_those_who_know_them() {
        let paint = |buffer: &mut Buffer| {
            let cell = &mut buffer[(0, 0)];
            cell.set_char('x');
            cell.underline_color = Color::Rgb(9, 8, 7);
            cell.modifier = extra::with_underline(Modifier::empty(), Underline::Curly);
        };
        let out = painted(ALL, Vec::new(), paint);
        assert!(out.contains("\x1b[4:3;58:2::9:8:7mx\x1b[0m"), "{out:?}");
        let out = painted(Abilities::default(), Vec::new(), paint);
        assert!(out.contains("\x1b[4mx\x1b[0m"), "{out:?}");
    }

    #[test]
    fn blinking_and_the_line_above_are_said_and_taken_back() {
        let out = painted(ALL, Vec::new(), |buffer| {
            buffer.set_string(0, 0, "abc", Style::new());
            buffer[(0, 0)].modifier = extra::with_overline(Modifier::SLOW_BLINK);
            buffer[(1, 0)].modifier = extra::with_overline(Modifier::empty());
        });
        assert_eq!(out, "\x1b[1;1H\x1b[5;53ma\x1b[0;53mb\x1b[55mc");
    }

    #[test]
    fn a_link_stands_around_its_cells_and_nowhere_else() {
        let runs = vec![link(0xabc, "https://example.org/")];
        let out = painted(ALL, runs, |buffer| {
            buffer.set_string(0, 0, "abcd", Style::new());
            for column in 1..=2 {
                extra::mark_link(&mut buffer[(column, 0)], 0xabc);
            }
        });
        let wanted =
            "a\x1b]8;id=abc;https://example.org/\x1b\\\x1b[58:5:1mbc\x1b]8;;\x1b\\\x1b[59md";
        assert!(out.contains(wanted), "{out:?}");
        // A target that is not passed on leaves the colour of the underline.
        let out = painted(ALL, vec![link(0xabc, "")], |buffer| {
            buffer.set_string(1, 0, "b", Style::new());
            extra::mark_link(&mut buffer[(1, 0)], 0xabc);
        });
        assert!(!out.contains("\x1b]8") && out.contains("58:5:1"), "{out:?}");
    }

    #[test]
    fn a_new_target_is_a_difference_though_the_text_is_the_same() {
        let cell = |number| {
            let mut buffer = Buffer::empty(Rect::new(0, 0, 3, 1));
            buffer[(1, 0)].set_char('x');
            extra::mark_link(&mut buffer[(1, 0)], number);
            buffer
        };
        assert_eq!(cell(1).diff(&cell(2)).len(), 1);
        assert_eq!(cell(2).diff(&cell(2)).len(), 0);
    }

    #[test]
    fn behind_a_character_of_doubtful_width_the_cursor_is_set_again() {
        let out = painted(ALL, Vec::new(), |buffer| {
            buffer.set_string(0, 0, "a日é⚠b", Style::new());
        });
        assert!(out.contains("\x1b[1;1Ha日é⚠\x1b[1;6Hb"), "{out:?}");
    }

    #[test]
    fn abilities_go_by_the_names_of_terminals() {
        let of = |pairs: &[(&str, &str)]| {
            Abilities::of(|name| {
                let found = pairs.iter().find(|(own, _)| *own == name);
                found.map_or_else(String::new, |(_, value)| (*value).to_owned())
            })
        };
        assert!(of(&[("TERM", "xterm-kitty")]).underlines);
        assert!(of(&[("TERM", "xterm-256color"), ("VTE_VERSION", "7600")]).underlines);
        assert!(
            !of(&[
                ("TERM", "xterm-256color"),
                ("TERM_PROGRAM", "Apple_Terminal")
            ])
            .underlines
        );
        assert!(!of(&[("TERM", "xterm-256color")]).underlines);
        assert!(of(&[("TERM_PROGRAM", "ghostty")]).progress);
        assert!(!of(&[("TERM_PROGRAM", "iTerm.app")]).progress);
        assert!(of(&[("TERM", "foot")]).notifies_by_777);
    }
}
