//! Rectangles of the screen: filled, erased, copied, shifted, scrolled and summed up.
//!
//! What is changed here the engine does not know of, so each change is noted in `touched`, and halves of wide characters
//! that lost the other one are made blank: the engine relies on there being none.

use std::ops::Range;

use alacritty_terminal::index::{Column, Line};
use alacritty_terminal::term::cell::{Cell, Flags};

use super::Engine;

/// Marks a cell that selective erasing leaves (DECSCA), in the one bit that the engine has no use for.
pub(super) const PROTECTED: Flags = Flags::from_bits_retain(1 << 15);

/// Rows and columns from 0, without the ends.
#[derive(Clone, Debug)]
pub(super) struct Area {
    pub(super) rows: Range<usize>,
    pub(super) columns: Range<usize>,
}

/// A row of the screen, of which there are at most a thousand, as the engine counts it.
pub(super) fn line(row: usize) -> Line {
    Line(i32::try_from(row).unwrap_or(i32::MAX))
}

impl Area {
    fn is_empty(&self) -> bool {
        self.rows.is_empty() || self.columns.is_empty()
    }
}

impl Engine {
    /// The rectangle that a control function names, from the origin and inside the screen.
    pub(super) fn area(&self, top: u16, left: u16, bottom: u16, right: u16) -> Area {
        let limits = if self.origin {
            self.scrolling_area()
        } else {
            self.whole()
        };
        let range = |first: u16, last: u16, limit: &Range<usize>| {
            let start = limit.start + usize::from(first.max(1)) - 1;
            let end = match last {
                0 => limit.end,
                last => (limit.start + usize::from(last)).min(limit.end),
            };
            start..end
        };
        Area {
            rows: range(top, bottom, &limits.rows),
            columns: range(left, right, &limits.columns),
        }
    }

    pub(super) fn whole(&self) -> Area {
        Area {
            rows: 0..self.last_row() + 1,
            columns: 0..self.last_column() + 1,
        }
    }

    fn cell(&mut self, row: usize, column: usize) -> &mut Cell {
        &mut self.term.grid_mut()[line(row)][Column(column)]
    }

    fn blank(&self) -> Cell {
        self.term.grid().cursor.template.bg.into()
    }

    fn for_each_in(&mut self, area: &Area, mut change: impl FnMut(&mut Cell)) {
        if area.is_empty() {
            return;
        }
        for row in area.rows.clone() {
            for column in area.columns.clone() {
                change(self.cell(row, column));
            }
        }
        self.changed(&area.rows);
    }

    /// DECERA; DECSERA, DECSED and DECSEL leave what is protected.
    pub(super) fn erase(&mut self, area: &Area, selective: bool) {
        let blank = self.blank();
        self.for_each_in(area, |cell| {
            if !(selective && cell.flags.contains(PROTECTED)) {
                *cell = blank.clone();
            }
        });
    }

    /// DECFRA.
    pub(super) fn fill(&mut self, area: &Area, character: u16) {
        let Some(c) = char::from_u32(u32::from(character)).filter(|c| {
            // What DEC's terminals take: the printable characters of Latin-1.
            matches!(c, ' '..='~' | '\u{a0}'..='\u{ff}')
        }) else {
            return;
        };
        let mut filled = self.term.grid().cursor.template.clone();
        filled.c = c;
        self.for_each_in(area, |cell| *cell = filled.clone());
    }

    /// DECCRA.
    pub(super) fn copy_area(&mut self, from: &Area, row: u16, column: u16) {
        let to = self.area(row, column, 0, 0);
        let height = from.rows.len().min(to.rows.len());
        let width = from.columns.len().min(to.columns.len());
        if from.is_empty() || height == 0 || width == 0 {
            return;
        }
        let mut cells = Vec::with_capacity(height * width);
        for row in from.rows.clone().take(height) {
            for column in from.columns.clone().take(width) {
                cells.push(self.cell(row, column).clone());
            }
        }
        let mut cells = cells.into_iter();
        let to = Area {
            rows: to.rows.start..to.rows.start + height,
            columns: to.columns.start..to.columns.start + width,
        };
        self.for_each_in(&to, |cell| {
            if let Some(copy) = cells.next() {
                *cell = copy;
                // The end of a row that wraps is no part of its text.
                cell.flags.remove(Flags::WRAPLINE);
            }
        });
    }

    /// Moves rows up by so many lines, or down if negative, and blanks what comes in.
    pub(super) fn scroll_rows(&mut self, area: &Area, lines: i32) {
        self.move_cells(area, lines, 0);
    }

    /// Moves cells right by so many columns, or left if negative, and blanks what comes in.
    pub(super) fn shift_columns(&mut self, area: &Area, columns: i32) {
        self.move_cells(area, 0, -columns);
    }

    /// Each cell takes what is so many rows below and columns right of it.
    fn move_cells(&mut self, area: &Area, down: i32, right: i32) {
        if area.is_empty() {
            return;
        }
        let blank = self.blank();
        // Away from where the cells come from, so that none is overwritten before it has been taken.
        let ordered = |range: &Range<usize>, offset: i32| -> Vec<usize> {
            if offset < 0 {
                range.clone().rev().collect()
            } else {
                range.clone().collect()
            }
        };
        let source = |at: usize, offset: i32, range: &Range<usize>| {
            at.checked_add_signed(offset as isize)
                .filter(|at| range.contains(at))
        };
        let columns = ordered(&area.columns, right);
        for row in ordered(&area.rows, down) {
            let from_row = source(row, down, &area.rows);
            for &column in &columns {
                let from = from_row.zip(source(column, right, &area.columns));
                let cell = from.map_or_else(
                    || blank.clone(),
                    |(row, column)| self.cell(row, column).clone(),
                );
                *self.cell(row, column) = cell;
            }
        }
        self.changed(&area.rows);
    }

    /// Notes that rows have changed, and blanks the halves of wide characters that were torn apart.
    fn changed(&mut self, rows: &Range<usize>) {
        let last = self.last_column();
        for row in rows.clone() {
            let cells = &mut self.term.grid_mut()[line(row)];
            for column in 0..=last {
                let flags = cells[Column(column)].flags;
                let follows =
                    column > 0 && cells[Column(column - 1)].flags.contains(Flags::WIDE_CHAR);
                let leads = column < last
                    && cells[Column(column + 1)]
                        .flags
                        .contains(Flags::WIDE_CHAR_SPACER);
                let torn = (flags.contains(Flags::WIDE_CHAR) && !leads)
                    || (flags.contains(Flags::WIDE_CHAR_SPACER) && !follows);
                let cell = &mut cells[Column(column)];
                if torn {
                    cell.c = ' ';
                    cell.flags
                        .remove(Flags::WIDE_CHAR | Flags::WIDE_CHAR_SPACER);
                    cell.extra = None;
                }
                if column < last {
                    cell.flags
                        .remove(Flags::LEADING_WIDE_CHAR_SPACER | Flags::WRAPLINE);
                }
            }
        }
        self.touched = Some(match self.touched.take() {
            Some(before) => before.start.min(rows.start)..before.end.max(rows.end),
            None => rows.clone(),
        });
    }

    /// The rows changed here since this was asked last.
    pub(in crate::pane::screen) fn take_touched(&mut self) -> Option<Range<usize>> {
        self.touched.take()
    }

    /// The characters of an area, added up in 16 bits and negated, as DEC's terminals do it (which add the attributes too).
    pub(super) fn checksum(&self, area: &Area) -> u16 {
        let mut sum = 0_u16;
        for row in area.rows.clone() {
            for column in area.columns.clone() {
                let cell = &self.term.grid()[line(row)][Column(column)];
                sum = sum.wrapping_sub(u32::from(cell.c) as u16);
            }
        }
        sum
    }
}
