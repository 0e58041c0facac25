//! Clusters of code points that are one character on the screen: emoji with a variation selector, a skin tone or a joiner,
//! flags, and letters with a spacing vowel sign.
//!
//! The engine gives each code point its own number of cells. Here the later ones join the cell of the first, a character
//! that they turn into an emoji takes two cells, as in current terminals (mode 2027), and a code point that the hosted client
//! counts differently takes the client's number of cells (see [`super::super::widths`]).
//!
//! A character that grows in the last column goes to the next row as if it had been wide from the start, and the text
//! selector U+FE0E reduces an emoji of two cells to one.
//!
//! Known limit: Indic conjuncts stay as many cells as they have letters.

use std::ops::RangeInclusive;

use alacritty_terminal::grid::Dimensions as _;
use alacritty_terminal::index::{Column, Point};
use alacritty_terminal::term::TermMode;
use alacritty_terminal::term::cell::{Cell, Flags};
use unicode_segmentation::UnicodeSegmentation;
use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

use super::Engine;
use crate::screen::{
    cells::{companions, set_companions},
    widths::cells_of,
};

/// The first combining mark: no character below it has width zero or joins another.
pub(super) const FIRST_JOINING: char = '\u{300}';

const JOINER: char = '\u{200d}';
const TEXT_SELECTOR: char = '\u{fe0e}';
const EMOJI_SELECTOR: char = '\u{fe0f}';

/// The regional indicators, of which two make a flag.
const FLAG_LETTERS: RangeInclusive<char> = '\u{1f1e6}'..='\u{1f1ff}';

impl Engine {
    /// Writes a character of text that may have more than one code point in a cell.
    #[inline]
    pub(super) fn input_rare(&mut self, c: char) {
        if c < FIRST_JOINING {
            return self.write_character(c);
        }
        if self.join(c) {
            return;
        }
        let counted = c.width().unwrap_or(0);
        match cells_of(c) {
            0 if self.cluster_is_full() => {}
            0 if counted > 0 => {
                if let Some(at) = self.before_cursor() {
                    self.term.grid_mut()[at].push_zerowidth(c);
                }
            }
            cells if cells == counted || counted > 2 => self.write_character(c),
            1 => self.write_sign(c),
            _ => self.write_in_place_of('\u{3000}', c),
        }
    }

    /// Writes a sign that the engine would put over the character before it, with a cell of its own: after a letter of one cell
    /// the two become one character of two cells, so that they are drawn together.
    fn write_sign(&mut self, c: char) {
        let letter = self.before_cursor().filter(|at| {
            let cell = &self.term.grid()[*at];
            cell.c != ' ' && !cell.flags.contains(Flags::WIDE_CHAR)
        });
        match letter {
            Some(at) if !self.cluster_is_full() => {
                self.term.grid_mut()[at].push_zerowidth(c);
                self.widen(at);
            }
            _ => self.write_in_place_of('x', c),
        }
    }

    /// Writes a character with the number of cells of another.
    fn write_in_place_of(&mut self, other: char, c: char) {
        self.write_character(other);
        let at = self.before_cursor();
        // If it is not there, there was no room for it.
        if let Some(at) = at.filter(|at| self.term.grid()[*at].c == other) {
            self.term.grid_mut()[at].c = c;
        }
    }

    /// Joins a character with the one before it, if they form one; returns false if it is separate.
    fn join(&mut self, c: char) -> bool {
        let may_join = matches!(c, TEXT_SELECTOR | EMOJI_SELECTOR
            | '\u{203c}'..='\u{3299}' | '\u{1f000}'..='\u{1faff}');
        if !may_join {
            return false;
        }
        let Some(at) = self.before_cursor() else {
            return false;
        };
        let cell = &self.term.grid()[at];
        // The text selector reduces an emoji that has two cells by Unicode to one, but not a character that has two only for the client.
        let by_client = cells_of(cell.c) == 2 && cell.c.width() == Some(1);
        let least = if by_client { 2 } else { 1 };
        let width = match c {
            // After other companions a selector has no effect.
            TEXT_SELECTOR | EMOJI_SELECTOR if companions(cell).next().is_none() => {
                Some(format!("{}{c}", cell.c).width().max(least))
            }
            TEXT_SELECTOR | EMOJI_SELECTOR => None,
            _ if is_one(cell, c) => Some(2),
            _ => return false,
        };
        if self.cluster_is_full() {
            return true;
        }
        self.term.grid_mut()[at].push_zerowidth(c);
        match width {
            Some(2) => self.widen(at),
            Some(1) if c == TEXT_SELECTOR => self.narrow(at),
            _ => {}
        }
        true
    }

    /// Returns the cell of the character that was written last, if the cursor is still directly after it.
    pub(super) fn before_cursor(&self) -> Option<Point> {
        let grid = self.term.grid();
        let cursor = &grid.cursor;
        let mut column = cursor.point.column.0;
        if !cursor.input_needs_wrap {
            column = column.checked_sub(1)?;
        }
        let row = &grid[cursor.point.line];
        if row[Column(column)].flags.contains(Flags::WIDE_CHAR_SPACER) {
            column = column.checked_sub(1)?;
        }
        Some(Point::new(cursor.point.line, Column(column)))
    }

    /// Extends a character of one cell to the cell after it.
    fn widen(&mut self, at: Point) {
        let last = self.term.grid().last_column();
        if self.term.grid()[at].flags.contains(Flags::WIDE_CHAR) {
            return;
        }
        let at = if at.column < last {
            at
        } else if self.term.mode().contains(TermMode::LINE_WRAP) {
            self.wrap_from(at)
        } else {
            return;
        };
        let grid = self.term.grid_mut();
        let second = Point::new(at.line, at.column + 1);
        // Half of a wide character that was there cannot stay.
        if grid[second].flags.contains(Flags::WIDE_CHAR) && second.column < last {
            let orphan = &mut grid[Point::new(at.line, second.column + 1)];
            orphan.c = ' ';
            orphan.flags.remove(Flags::WIDE_CHAR_SPACER);
        }
        let mut spacer = Cell {
            c: ' ',
            fg: grid[at].fg,
            bg: grid[at].bg,
            flags: grid[at].flags,
            extra: None,
        };
        spacer.flags.remove(Flags::WRAPLINE);
        spacer.flags.insert(Flags::WIDE_CHAR_SPACER);
        spacer.set_hyperlink(grid[at].hyperlink());
        spacer.flags.set(
            Flags::WRAPLINE,
            grid[second].flags.contains(Flags::WRAPLINE),
        );
        grid[second] = spacer;
        grid[at].flags.insert(Flags::WIDE_CHAR);
        if second.column < last {
            grid.cursor.point.column = second.column + 1;
        } else {
            grid.cursor.point.column = second.column;
            grid.cursor.input_needs_wrap = true;
        }
    }

    /// Moves the character in the last column to the next row, where there is room for it to grow.
    fn wrap_from(&mut self, at: Point) -> Point {
        let grid = self.term.grid_mut();
        let mut moved = grid[at].clone();
        moved.flags.remove(Flags::WRAPLINE);
        grid[at] = Cell {
            c: ' ',
            flags: Flags::LEADING_WIDE_CHAR_SPACER,
            extra: None,
            ..moved.clone()
        };
        // The cursor is after the last column: the engine wraps, and scrolls if it must.
        self.write_character(moved.c);
        let grid = self.term.grid_mut();
        let row = grid.cursor.point.line;
        let there = Point::new(row, Column(0));
        grid[there] = moved;
        there
    }

    pub(super) fn column_of_cursor(&self) -> usize {
        self.term.grid().cursor.point.column.0
    }

    /// Blanks a wide character of the cursor's row whose second half is in this column: its halves are about to be parted.
    pub(super) fn part(&mut self, column: usize) {
        let grid = self.term.grid_mut();
        let line = grid.cursor.point.line;
        if column == 0 || column >= grid.columns() {
            return;
        }
        let row = &mut grid[line];
        let second = row[Column(column)].flags;
        if !second.contains(Flags::WIDE_CHAR_SPACER) {
            return;
        }
        for cell in &mut row[Column(column - 1)..Column(column + 1)] {
            cell.c = ' ';
            cell.flags
                .remove(Flags::WIDE_CHAR | Flags::WIDE_CHAR_SPACER);
            set_companions(cell, None);
        }
    }

    /// Removes the second cell of a character that is shown as text.
    fn narrow(&mut self, at: Point) {
        let last = self.term.grid().last_column();
        let grid = self.term.grid_mut();
        if !grid[at].flags.contains(Flags::WIDE_CHAR) || at.column >= last {
            return;
        }
        grid[at].flags.remove(Flags::WIDE_CHAR);
        let second = Point::new(at.line, at.column + 1);
        grid[second].flags.remove(Flags::WIDE_CHAR_SPACER);
        grid.cursor.point.column = second.column;
        grid.cursor.input_needs_wrap = false;
    }
}

/// Reports whether a character that has cells of its own forms one with a cell's content: after a joiner, as a skin tone,
/// or as the second letter of a flag.
fn is_one(cell: &Cell, c: char) -> bool {
    let last = companions(cell).last();
    let joins = match c {
        '\u{1f1e6}'..='\u{1f1ff}' => last.is_none() && FLAG_LETTERS.contains(&cell.c),
        '\u{1f3fb}'..='\u{1f3ff}' => takes_tone(cell.c),
        _ => last == Some(JOINER),
    };
    if !joins || c.width().unwrap_or(0) == 0 {
        return false;
    }
    let mut cluster = String::from(cell.c);
    cluster.extend(companions(cell));
    cluster.push(c);
    cluster.graphemes(true).count() == 1
}

/// Reports whether a skin tone may change this character: the emoji of these ranges include people, hands and faces.
fn takes_tone(c: char) -> bool {
    matches!(c, '\u{261d}' | '\u{26f9}' | '\u{270a}'..='\u{270d}' | '\u{1f385}'..='\u{1faff}')
}
