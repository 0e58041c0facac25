//! The top and bottom margins: the rows that scroll, and the cursor's moves inside them.
//!
//! The engine scrolls the rows between the margins. The origin (DECOM) is kept here, and the engine gets absolute positions only:
//! its own origin mode moves the cursor by the top margin once more with each relative move.
//!
//! Known limits: there are no margins at the sides (DECSLRM); VPR stops at the margins as CUD does; with the new-line mode set, IND
//! moves to the first column like LF.

use alacritty_terminal::grid::Dimensions;
use alacritty_terminal::index::Line;
use alacritty_terminal::term::TermMode;
use vte::ansi::Handler;

use super::Engine;
use super::cluster::FIRST_JOINING;

/// The first and last row that scroll, from 0.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Margins {
    pub(super) top: usize,
    pub(super) bottom: usize,
}

/// Converts a row of the screen, of which there are at most a thousand, to the engine's type.
pub(super) fn line(row: usize) -> Line {
    Line(i32::try_from(row).unwrap_or(i32::MAX))
}

impl Engine {
    pub(super) fn row_of_cursor(&self) -> usize {
        usize::try_from(self.term.grid().cursor.point.line.0).unwrap_or(0)
    }

    pub(super) fn last_row(&self) -> usize {
        self.term.screen_lines() - 1
    }

    /// Removes the margins and the origin mode; the caller adjusts the engine.
    pub(super) fn forget_margins(&mut self) {
        self.reset_margins();
        (self.origin, self.saved_origin) = (false, false);
        self.judge();
    }

    /// Removes the margins; the caller adjusts the engine.
    pub(super) fn reset_margins(&mut self) {
        self.margins = Margins {
            top: 0,
            bottom: self.last_row(),
        };
        self.judge();
    }

    /// Determines whether the engine may move the cursor by itself, and which text it may write by itself.
    pub(super) fn judge(&mut self) {
        let margins = self.margins;
        let whole = margins.top == 0 && margins.bottom == self.last_row();
        // Below a top margin a wrap may scroll lines that do not go to the scrollback.
        self.rare_from = if margins.top > 0 { '\0' } else { FIRST_JOINING };
        self.plain = whole && !self.origin && !self.mode(TermMode::LINE_FEED_NEW_LINE);
    }

    /// Applies DECSTBM: rows from 1; the bottom defaults to the last row.
    pub(super) fn set_rows(&mut self, top: usize, bottom: Option<usize>) {
        let rows = self.last_row() + 1;
        let (top, bottom) = (top.max(1), bottom.unwrap_or(rows).min(rows));
        if top >= bottom && rows > 1 {
            return;
        }
        self.margins.top = top.min(rows) - 1;
        self.margins.bottom = bottom - 1;
        self.judge();
        self.term.set_scrolling_region(top, Some(bottom));
        self.place(0, 0);
    }

    /// Sets the origin mode (DECOM).
    pub(super) fn set_origin(&mut self, origin: bool) {
        self.origin = origin;
        self.judge();
        self.place(0, 0);
    }

    /// Converts a row counted from the origin to an absolute row.
    fn row_from_origin(&self, row: usize) -> usize {
        if self.origin {
            (row + self.margins.top).min(self.margins.bottom)
        } else {
            row
        }
    }

    /// Moves the cursor to a row counted from the origin, and a column.
    fn place(&mut self, row: usize, column: usize) {
        let row = line(self.row_from_origin(row)).0;
        self.term.goto(row, column);
    }

    pub(super) fn place_at(&mut self, line: i32, column: usize) {
        self.place(usize::try_from(line).unwrap_or(0), column);
    }

    pub(super) fn place_in_row(&mut self, row: i32) {
        let row = self.row_from_origin(usize::try_from(row).unwrap_or(0));
        let column = self.term.grid().cursor.point.column.0;
        self.term.goto(line(row).0, column);
    }

    pub(super) fn up(&mut self, count: usize) {
        let row = self.row_of_cursor();
        let room = row.checked_sub(self.margins.top).unwrap_or(row);
        self.term.move_up(count.min(room));
    }

    pub(super) fn down(&mut self, count: usize) {
        let row = self.row_of_cursor();
        let bottom = self.margins.bottom;
        let room = bottom.checked_sub(row).unwrap_or(self.last_row() - row);
        self.term.move_down(count.min(room));
    }

    pub(super) fn down_to_start(&mut self, count: usize) {
        self.down(count);
        self.term.carriage_return();
    }

    pub(super) fn up_to_start(&mut self, count: usize) {
        self.up(count);
        self.term.carriage_return();
    }

    pub(super) fn next_line(&mut self) {
        self.hold_view(self.margins.top, Handler::linefeed);
        if self.mode(TermMode::LINE_FEED_NEW_LINE) {
            self.term.carriage_return();
        }
    }

    pub(super) fn scroll_text_up(&mut self, count: usize) {
        self.hold_view(self.margins.top, |term| term.scroll_up(count));
    }

    /// Writes a character that does not join another one.
    #[inline]
    pub(super) fn write_character(&mut self, c: char) {
        self.hold_view(self.margins.top, |term| term.input(c));
    }
}
