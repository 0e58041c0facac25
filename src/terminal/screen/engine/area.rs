//! Rectangles of the screen: what is between margins at the sides, scrolled and shifted.
//!
//! What is changed here the engine does not know of, so each change is noted in `touched`, and halves of wide characters
//! that lost the other one are made blank: the engine relies on there being none.

use std::ops::Range;

use alacritty_terminal::index::{Column, Line};
use alacritty_terminal::term::cell::{Cell, Flags};

use super::Engine;

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
    fn cell(&mut self, row: usize, column: usize) -> &mut Cell {
        &mut self.term.grid_mut()[line(row)][Column(column)]
    }

    fn blank(&self) -> Cell {
        self.term.grid().cursor.template.bg.into()
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
    pub(in crate::terminal::screen) fn take_touched(&mut self) -> Option<Range<usize>> {
        self.touched.take()
    }
}
