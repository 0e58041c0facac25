//! The beginnings and ends of words, lines and paragraphs in a grid.

use alacritty_terminal::grid::{Dimensions, Grid};
use alacritty_terminal::index::{Column, Line, Point};
use alacritty_terminal::term::cell::{Cell, Flags};

use super::{first_row, is_wrapped_row, last_row};
use crate::copy::Words;

/// The characters that end a word for the mouse. Those of paths, addresses and `file:line` are not among them.
const SEPARATORS: &str = ",│`|\"' ()[]{}<>\t";

/// The kinds of cells that words are made of.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Class {
    Blank,
    Word,
    Sign,
}

fn character(grid: &Grid<Cell>, point: Point) -> char {
    let cell = &grid[point];
    if cell.flags.contains(Flags::WIDE_CHAR_SPACER) && point.column.0 > 0 {
        return grid[point.line][point.column - 1].c;
    }
    cell.c
}

fn class(grid: &Grid<Cell>, point: Point, words: Words) -> Class {
    let c = character(grid, point);
    if c.is_whitespace() || c.is_control() {
        Class::Blank
    } else if words == Words::Big || c.is_alphanumeric() || c == '_' {
        Class::Word
    } else {
        Class::Sign
    }
}

/// Returns the next cell in reading order, and whether a line ends before it.
fn after(grid: &Grid<Cell>, point: Point) -> Option<(Point, bool)> {
    if point.column < grid.last_column() {
        return Some((Point::new(point.line, point.column + 1), false));
    }
    let broken = !is_wrapped_row(grid, point.line);
    (point.line < grid.bottommost_line())
        .then(|| (Point::new(point.line + 1_i32, Column(0)), broken))
}

fn before(grid: &Grid<Cell>, point: Point) -> Option<(Point, bool)> {
    if point.column.0 > 0 {
        return Some((Point::new(point.line, point.column - 1), false));
    }
    let above = point.line - 1_i32;
    (point.line > grid.topmost_line()).then(|| {
        let broken = !is_wrapped_row(grid, above);
        (Point::new(above, grid.last_column()), broken)
    })
}

/// Goes on within a line, to the last cell before the first that is not wanted.
fn follow(
    grid: &Grid<Cell>,
    from: Point,
    step: impl Fn(&Grid<Cell>, Point) -> Option<(Point, bool)>,
    is_wanted: impl Fn(Point) -> bool,
) -> Point {
    let mut point = from;
    while let Some((next, false)) = step(grid, point)
        && is_wanted(next)
    {
        point = next;
    }
    point
}

/// Returns the beginning of the next word.
pub(super) fn word_forward(grid: &Grid<Cell>, from: Point, words: Words) -> Point {
    let mut point = from;
    let mut own = Some(class(grid, from, words));
    while let Some((next, broken)) = after(grid, point) {
        let kind = class(grid, next, words);
        if broken || own != Some(kind) {
            own = None;
        }
        if own.is_none() && kind != Class::Blank {
            return next;
        }
        point = next;
    }
    newest(grid)
}

/// Returns the beginning of this word, or of the previous one.
pub(super) fn word_back(grid: &Grid<Cell>, from: Point, words: Words) -> Point {
    let Some((mut point, _)) = before(grid, from) else {
        return from;
    };
    while class(grid, point, words) == Class::Blank {
        let Some((next, _)) = before(grid, point) else {
            return point;
        };
        point = next;
    }
    let kind = class(grid, point, words);
    follow(grid, point, before, |next| class(grid, next, words) == kind)
}

/// Returns the end of this word, or of the next one.
pub(super) fn word_end(grid: &Grid<Cell>, from: Point, words: Words) -> Point {
    let Some((mut point, _)) = after(grid, from) else {
        return from;
    };
    // The step from the first half of a wide character to its second half does not count.
    if grid[point].flags.contains(Flags::WIDE_CHAR_SPACER)
        && let Some((next, _)) = after(grid, point)
    {
        point = next;
    }
    while class(grid, point, words) == Class::Blank {
        let Some((next, _)) = after(grid, point) else {
            return newest(grid);
        };
        point = next;
    }
    let kind = class(grid, point, words);
    follow(grid, point, after, |next| class(grid, next, words) == kind)
}

/// Returns the word around a point as a mouse selects it: its first and its last cell.
pub(super) fn word_around(grid: &Grid<Cell>, at: Point) -> (Point, Point) {
    let is_within = |point| !SEPARATORS.contains(character(grid, point));
    if !is_within(at) {
        return (at, at);
    }
    (
        follow(grid, at, before, is_within),
        follow(grid, at, after, is_within),
    )
}

/// Returns the first cell of a line.
pub(super) fn line_start(grid: &Grid<Cell>, line: Line) -> Point {
    Point::new(first_row(grid, line), Column(0))
}

/// Returns the first cell with text of a line, or its first cell if there is none.
pub(super) fn line_text(grid: &Grid<Cell>, line: Line) -> Point {
    let mut point = line_start(grid, line);
    let start = point;
    while class(grid, point, Words::Big) == Class::Blank {
        match after(grid, point) {
            Some((next, false)) => point = next,
            _ => return start,
        }
    }
    point
}

/// Returns the last cell with text of a line, or its first cell if there is none.
pub(super) fn line_end(grid: &Grid<Cell>, line: Line) -> Point {
    let mut row = last_row(grid, line);
    let first = first_row(grid, line);
    loop {
        if let Some(column) = last_text(grid, row) {
            return Point::new(row, Column(column));
        }
        if row == first {
            return Point::new(row, Column(0));
        }
        row -= 1_i32;
    }
}

/// Returns the last column with text in a row.
pub(super) fn last_text(grid: &Grid<Cell>, row: Line) -> Option<usize> {
    let cells = &grid[row][..];
    cells.iter().rposition(|cell| {
        !matches!(cell.c, ' ' | '\t') || cell.flags.contains(Flags::WIDE_CHAR_SPACER)
    })
}

/// Returns the first cell of the newest row with text.
pub(super) fn newest(grid: &Grid<Cell>) -> Point {
    let mut row = grid.bottommost_line();
    while row > grid.topmost_line() && last_text(grid, row).is_none() {
        row -= 1_i32;
    }
    Point::new(row, Column(0))
}

/// Returns the next row without text after one with text, up or down.
pub(super) fn paragraph(grid: &Grid<Cell>, from: Line, down: bool) -> Point {
    let step = if down { 1_i32 } else { -1 };
    let end = if down {
        newest(grid).line.max(from)
    } else {
        grid.topmost_line()
    };
    let mut row = from;
    let mut seen = last_text(grid, row).is_some();
    while row != end {
        row += step;
        let empty = last_text(grid, row).is_none();
        if seen && empty {
            break;
        }
        seen |= !empty;
    }
    Point::new(row, Column(0))
}
