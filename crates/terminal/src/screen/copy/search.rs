//! The search in a still: regular expressions over whole lines, however they are wrapped.
//!
//! The emulator's own search reads cells one by one and leaves accents out; this one reads lines as they would be
//! copied, so that matches are the same as the visible text. The expressions run in linear time and bounded memory.

use alacritty_terminal::grid::Dimensions;
use alacritty_terminal::grid::Grid;
use alacritty_terminal::index::{Column, Line, Point};
use alacritty_terminal::term::cell::Cell;
use regex::{Regex, RegexBuilder};

use super::{first_row, last_row};
use crate::screen::cells::{is_spacer, push_cell, trim_line};

/// The most memory an expression may take, in bytes: a hundred times what people type.
const EXPRESSION_LIMIT: usize = 1 << 20;

/// The longest pattern, in bytes.
pub(super) const PATTERN_LIMIT: usize = 1024;

/// The number of rows above the view that a line is followed to its beginning, when its matches are only shown.
const SHOWN_REACH: i32 = 64;

/// A match: its first and its last cell.
pub(super) type Found = (Point, Point);

/// A search with a valid expression.
#[derive(Clone, Debug)]
pub(super) struct Search {
    regex: Regex,
    pub(super) backward: bool,
}

impl Search {
    /// Compiles a pattern with smart case: a capital letter in it makes the search case-sensitive.
    pub(super) fn new(pattern: &str, backward: bool) -> Result<Self, String> {
        if pattern.len() > PATTERN_LIMIT {
            return Err(format!("a pattern of over {PATTERN_LIMIT} bytes"));
        }
        let regex = RegexBuilder::new(pattern)
            .case_insensitive(!has_capital(pattern))
            .size_limit(EXPRESSION_LIMIT)
            .dfa_size_limit(EXPRESSION_LIMIT)
            .build()
            .map_err(|error| reason(&error))?;
        Ok(Self { regex, backward })
    }

    /// Returns the nearest match after a point, or before it; if there is none, the search wraps round the end of the text.
    /// The second value is true if it wrapped round.
    pub(super) fn next(
        &self,
        grid: &Grid<Cell>,
        from: Point,
        backward: bool,
    ) -> Option<(Found, bool)> {
        let start = first_row(grid, from.line);
        let mut line = start;
        let mut text = LineText::default();
        let mut round = false;
        loop {
            let last = text.read(grid, line);
            // The line that it begins in is read twice, the second time as a whole.
            let begins = !round && line == start;
            let mut matches = self.matches(&text);
            let found = if backward {
                matches.filter(|found| !begins || found.0 < from).last()
            } else {
                matches.find(|found| !begins || found.0 > from)
            };
            if let Some(found) = found {
                let went_round = if backward {
                    found.0 >= from
                } else {
                    found.0 <= from
                };
                return Some((found, went_round));
            }
            if round && line == start {
                return None;
            }
            let (oldest, newest) = (grid.topmost_line(), grid.bottommost_line());
            line = if backward && line > oldest {
                first_row(grid, line - 1_i32)
            } else if !backward && last < newest {
                last + 1_i32
            } else {
                round = true;
                if backward {
                    first_row(grid, newest)
                } else {
                    oldest
                }
            };
        }
    }

    /// Returns every match in a range of rows of the grid.
    pub(super) fn shown(&self, grid: &Grid<Cell>, top: Line, bottom: Line) -> Vec<Found> {
        let reach = (top - SHOWN_REACH).max(grid.topmost_line());
        let mut line = first_row(grid, top).max(reach);
        let mut text = LineText::default();
        let mut all = Vec::new();
        while line <= bottom {
            let last = text.read(grid, line);
            all.extend(
                self.matches(&text)
                    .filter(|(start, end)| end.line >= top && start.line <= bottom),
            );
            line = last + 1_i32;
        }
        all
    }

    fn matches<'a>(&'a self, text: &'a LineText) -> impl Iterator<Item = Found> + 'a {
        self.regex
            .find_iter(&text.text)
            .filter(|found| !found.is_empty())
            .filter_map(|found| Some((text.point(found.start())?, text.point(found.end() - 1)?)))
    }
}

/// Returns the reason of an error: the expression library explains an error over several lines, and the last one has it.
fn reason(error: &regex::Error) -> String {
    if let regex::Error::CompiledTooBig(_) = error {
        return "too large a pattern".to_owned();
    }
    let whole = error.to_string();
    let last = whole.lines().last().unwrap_or_default();
    last.trim_start_matches("error: ").to_owned()
}

/// Reports whether there is a literal capital letter: `\W` has none.
fn has_capital(pattern: &str) -> bool {
    let mut chars = pattern.chars();
    while let Some(c) = chars.next() {
        if c == '\\' {
            // `\p{Lu}` names a class in capitals.
            if matches!(chars.next(), Some('p' | 'P')) && chars.clone().next() == Some('{') {
                chars.by_ref().find(|c| *c == '}');
            }
        } else if c.is_uppercase() {
            return true;
        }
    }
    false
}

/// A line's text over all its rows, with the cell that each byte comes from.
#[derive(Debug, Default)]
pub(super) struct LineText {
    pub(super) text: String,
    /// The byte offset at which each cell's text begins.
    cells: Vec<(usize, Point)>,
}

impl LineText {
    /// Reads the line that begins in a row, and returns its last row.
    pub(super) fn read(&mut self, grid: &Grid<Cell>, first: Line) -> Line {
        self.text.clear();
        self.cells.clear();
        let last = last_row(grid, first);
        for line in (first.0..=last.0).map(Line) {
            let cells = grid[line][..].iter().enumerate();
            for (column, cell) in cells.filter(|(_, cell)| !is_spacer(cell)) {
                let point = Point::new(line, Column(column));
                self.cells.push((self.text.len(), point));
                push_cell(&mut self.text, cell);
            }
        }
        // Trailing blanks must not count for a pattern such as `$`.
        trim_line(&mut self.text);
        last
    }

    fn point(&self, byte: usize) -> Option<Point> {
        let behind = self.cells.partition_point(|(start, _)| *start <= byte);
        Some(self.cells.get(behind.checked_sub(1)?)?.1)
    }
}
