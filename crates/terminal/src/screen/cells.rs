//! The conversion of the engine's cells to our text, colours and attributes.

use alacritty_terminal::term::cell::{Cell, Flags};
use alacritty_terminal::term::color::Colors;
use vte::ansi::{Color, NamedColor};

use super::{Attributes, Colour, DrawnRow, Underline};

pub(super) fn is_blank(row: &[Cell]) -> bool {
    row.iter().all(|cell| *cell == Cell::default())
}

pub(super) fn is_wrapped(row: &[Cell]) -> bool {
    row.last()
        .is_some_and(|cell| cell.flags.contains(Flags::WRAPLINE))
}

/// Reports whether a cell is the second half of a wide character, or the gap before one that did not fit.
pub(super) fn is_spacer(cell: &Cell) -> bool {
    let spacers = Flags::WIDE_CHAR_SPACER | Flags::LEADING_WIDE_CHAR_SPACER;
    cell.flags.intersects(spacers)
}

/// The flag of blinking text: the engine has none, and this bit is free.
pub(super) const BLINK: Flags = Flags::from_bits_retain(1 << 15);

/// A mark among the companions of a character with a line above it, for which the engine has no place: no text contains it,
/// because it is a noncharacter.
pub(super) const OVERLINE: char = '\u{fdd0}';

/// Returns the zero-width companions of a cell's character.
pub(super) fn companions(cell: &Cell) -> impl Iterator<Item = char> {
    let all = cell.zerowidth().into_iter().flatten().copied();
    all.filter(|c| *c != OVERLINE)
}

/// Replaces a cell's zero-width companions, including the marks among them; its link and the colour of its
/// underline stay.
pub(super) fn set_companions(cell: &mut Cell, all: impl IntoIterator<Item = char>) {
    let (link, colour) = (cell.hyperlink(), cell.underline_color());
    cell.extra = None;
    cell.set_hyperlink(link);
    cell.set_underline_color(colour);
    for c in all {
        cell.push_zerowidth(c);
    }
}

/// Appends a cell's character with its zero-width companions.
pub(super) fn push_cell(text: &mut String, cell: &Cell) {
    text.push(printable(cell.c));
    text.extend(companions(cell));
}

pub(super) fn push_row(text: &mut String, row: &[Cell]) {
    for cell in row.iter().filter(|cell| !is_spacer(cell)) {
        push_cell(text, cell);
    }
}

pub(super) fn drawn_row(row: &[Cell]) -> DrawnRow {
    let mut drawn = DrawnRow::default();
    push_row(&mut drawn.text, row);
    for cell in row.iter().filter(|cell| !is_spacer(cell)) {
        if cell.flags.contains(Flags::DIM) {
            drawn.solid.push(' ');
        } else {
            push_cell(&mut drawn.solid, cell);
        }
    }
    trim_line(&mut drawn.text);
    trim_line(&mut drawn.solid);
    drawn
}

pub(super) fn trim_line(text: &mut String) {
    text.truncate(text.trim_end_matches(' ').len());
}

/// Returns the character, or a space for a control: the engine keeps a tab in the cell that it started from; everything else
/// in a cell is printable.
fn printable(c: char) -> char {
    if c.is_control() { ' ' } else { c }
}

/// Returns the number of cells that a character is shown with. A wide one takes two only if its second half follows it: a pane
/// of one column cuts that off, and the engine's reflow may separate the two.
pub(super) fn shown_width(cell: &Cell, next: Option<&Cell>) -> u16 {
    let spacer = next.is_some_and(|next| next.flags.contains(Flags::WIDE_CHAR_SPACER));
    if cell.flags.contains(Flags::WIDE_CHAR) && spacer {
        2
    } else {
        1
    }
}

pub(super) fn cell_text<'a>(cell: &Cell, width: u16, cluster: &'a mut String) -> &'a str {
    cluster.clear();
    if is_spacer(cell) || (cell.flags.contains(Flags::WIDE_CHAR) && width == 1) {
        cluster.push(' ');
    } else {
        push_cell(cluster, cell);
    }
    cluster
}

pub(super) fn colour(own: Color, default: NamedColor, set: &Colors) -> Colour {
    let changed = |index: usize, otherwise| {
        set[index].map_or(otherwise, |rgb| Colour::Rgb(rgb.r, rgb.g, rgb.b))
    };
    match own {
        Color::Spec(rgb) => Colour::Rgb(rgb.r, rgb.g, rgb.b),
        Color::Indexed(index) => changed(usize::from(index), Colour::Indexed(index)),
        Color::Named(named) => match named as usize {
            index @ 0..16 => changed(index, Colour::Indexed(index as u8)),
            _ => changed(default as usize, Colour::Default),
        },
    }
}

pub(super) fn attributes(cell: &Cell) -> Attributes {
    let flags = cell.flags;
    Attributes {
        bold: flags.contains(Flags::BOLD),
        dim: flags.contains(Flags::DIM),
        italic: flags.contains(Flags::ITALIC),
        inverse: flags.contains(Flags::INVERSE),
        hidden: flags.contains(Flags::HIDDEN),
        strike: flags.contains(Flags::STRIKEOUT),
        blink: flags.contains(BLINK),
        overline: cell.zerowidth().is_some_and(|all| all.contains(&OVERLINE)),
        underline: underline(flags),
    }
}

fn underline(flags: Flags) -> Underline {
    let kinds = [
        (Flags::UNDERLINE, Underline::Single),
        (Flags::DOUBLE_UNDERLINE, Underline::Double),
        (Flags::UNDERCURL, Underline::Curly),
        (Flags::DOTTED_UNDERLINE, Underline::Dotted),
        (Flags::DASHED_UNDERLINE, Underline::Dashed),
    ];
    kinds
        .iter()
        .find(|(flag, _)| flags.contains(*flag))
        .map_or(Underline::None, |(_, kind)| *kind)
}
