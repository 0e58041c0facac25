//! Margins: the rows and columns that scroll, and how the cursor moves and text wraps inside them.
//!
//! ```text
//!            left        right
//!      ┌───────┬───────────┬──────┐
//!      │       ┊           ┊      │   The engine knows top and bottom, and scrolls whole rows between them.
//!  top ├┈┈┈┈┈┈┈┏━━━━━━━━━━━┓┈┈┈┈┈┈┤   With margins at the sides (DECSLRM) the cells between them scroll and
//!      │       ┃  scrolls  ┃      │   wrap alone: that is done here, cell by cell, and only while there are
//!  end ├┈┈┈┈┈┈┈┗━━━━━━━━━━━┛┈┈┈┈┈┈┤   any, so that the usual screen pays one branch for it.
//!      └───────┴───────────┴──────┘
//! ```
//!
//! The origin (DECOM) is kept here too, and the engine only ever gets absolute places: its own origin mode moves the
//! cursor by the top margin once more with each relative order.
//!
//! Known limits: HPR and VPR stop at the margins as CUF and CUD do; with the new-line mode set, IND moves to the first
//! column like LF; a line that wraps at a side margin is no wrapped line to the scrollback.

use alacritty_terminal::grid::Dimensions;
use alacritty_terminal::index::Column;
use alacritty_terminal::term::TermMode;
use unicode_width::UnicodeWidthChar;
use vte::ansi::{Handler, Mode, NamedMode};

use super::Engine;
use super::area::{Area, line};
use super::cluster::FIRST_JOINING;

/// The first and last row and column that scroll, from 0.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Margins {
    pub(super) top: usize,
    pub(super) bottom: usize,
    pub(super) left: usize,
    pub(super) right: usize,
    /// DECLRMM: side margins may be set.
    pub(super) sides_allowed: bool,
    /// There is a margin at a side.
    pub(super) narrow: bool,
}

/// A count for what moves both ways.
fn signed(count: usize) -> i32 {
    i32::try_from(count).unwrap_or(i32::MAX)
}

impl Margins {
    fn has_column(&self, column: usize) -> bool {
        (self.left..=self.right).contains(&column)
    }

    fn has_row(&self, row: usize) -> bool {
        (self.top..=self.bottom).contains(&row)
    }
}

impl Engine {
    pub(super) fn row_of_cursor(&self) -> usize {
        usize::try_from(self.term.grid().cursor.point.line.0).unwrap_or(0)
    }

    pub(super) fn column_of_cursor(&self) -> usize {
        self.term.grid().cursor.point.column.0
    }

    pub(super) fn last_row(&self) -> usize {
        self.term.screen_lines() - 1
    }

    pub(super) fn last_column(&self) -> usize {
        self.term.columns() - 1
    }

    /// Takes all margins away, and the modes that go with them; the caller adjusts the engine.
    pub(super) fn forget_margins(&mut self) {
        self.reset_margins();
        (self.origin, self.saved_origin) = (false, false);
        self.judge();
    }

    /// Takes all margins away; the caller adjusts the engine.
    pub(super) fn reset_margins(&mut self) {
        self.margins = Margins {
            bottom: self.last_row(),
            right: self.last_column(),
            ..Margins::default()
        };
        self.judge();
    }

    /// Finds out whether the engine may do by itself what the cursor does, and which text.
    pub(super) fn judge(&mut self) {
        let margins = self.margins;
        // Below a top margin a wrap may scroll what is no line of the scrollback.
        let watched = margins.narrow || margins.top > 0;
        let whole = !watched && margins.bottom == self.last_row();
        let new_line = self.mode(TermMode::LINE_FEED_NEW_LINE);
        self.rare_from = if watched { '\0' } else { FIRST_JOINING };
        self.plain = whole && !self.origin && !new_line;
    }

    /// DECSTBM: rows from 1, the last one by default.
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

    /// Whether side margins may be set (DECLRMM).
    pub(in crate::terminal::screen) fn allows_sides(&self) -> bool {
        self.margins.sides_allowed
    }

    /// DECSLRM: columns from 1, the last one by default.
    pub(in crate::terminal::screen) fn set_sides(&mut self, left: u16, right: u16) {
        let columns = self.last_column() + 1;
        let right = match usize::from(right) {
            0 => columns,
            right => right.min(columns),
        };
        let left = usize::from(left.max(1));
        if self.margins.sides_allowed && left < right {
            self.margins.left = left - 1;
            self.margins.right = right - 1;
            self.margins.narrow = left > 1 || right < columns;
            self.judge();
            self.place(0, 0);
        }
    }

    /// DECLRMM.
    pub(super) fn allow_sides(&mut self, allow: bool) {
        self.margins.sides_allowed = allow;
        if !allow {
            self.margins.left = 0;
            self.margins.right = self.last_column();
            self.margins.narrow = false;
            self.judge();
            let last = self.last_column();
            let cursor = &mut self.term.grid_mut().cursor;
            cursor.input_needs_wrap &= cursor.point.column.0 == last;
        }
    }

    /// DECOM.
    pub(super) fn set_origin(&mut self, origin: bool) {
        self.origin = origin;
        self.judge();
        self.place(0, 0);
    }

    /// Whether the cursor is between the side margins.
    pub(super) fn is_between_sides(&self) -> bool {
        self.margins.has_column(self.column_of_cursor())
    }

    /// Whether the cursor is inside all margins.
    pub(super) fn is_inside(&self) -> bool {
        self.is_between_sides() && self.margins.has_row(self.row_of_cursor())
    }

    /// The last column that text reaches from this one.
    pub(super) fn row_end(&self, column: usize) -> usize {
        if self.margins.narrow && column <= self.margins.right {
            self.margins.right
        } else {
            self.last_column()
        }
    }

    /// The first column that the cursor goes back to from this one.
    fn row_start(&self, column: usize) -> usize {
        if column >= self.margins.left {
            self.margins.left
        } else {
            0
        }
    }

    /// What scrolls.
    pub(super) fn scrolling_area(&self) -> Area {
        let margins = self.margins;
        Area {
            rows: margins.top..margins.bottom + 1,
            columns: margins.left..margins.right + 1,
        }
    }

    /// A row counted from the origin.
    fn row_from_origin(&self, row: usize) -> usize {
        if self.origin {
            (row + self.margins.top).min(self.margins.bottom)
        } else {
            row
        }
    }

    /// A column counted from the origin.
    fn column_from_origin(&self, column: usize) -> usize {
        if self.origin {
            (column + self.margins.left).min(self.margins.right)
        } else {
            column
        }
    }

    /// Puts the cursor to a row and column counted from the origin.
    pub(super) fn place(&mut self, row: usize, column: usize) {
        let row = line(self.row_from_origin(row)).0;
        self.term.goto(row, self.column_from_origin(column));
    }

    pub(super) fn place_at(&mut self, line: i32, column: usize) {
        self.place(usize::try_from(line).unwrap_or(0), column);
    }

    pub(super) fn place_in_column(&mut self, column: usize) {
        let row = line(self.row_of_cursor()).0;
        self.term.goto(row, self.column_from_origin(column));
    }

    pub(super) fn place_in_row(&mut self, row: i32) {
        let row = self.row_from_origin(usize::try_from(row).unwrap_or(0));
        self.term.goto(line(row).0, self.column_of_cursor());
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

    pub(super) fn forward(&mut self, count: usize) {
        let column = self.column_of_cursor();
        let room = self.row_end(column).saturating_sub(column);
        self.term.move_forward(count.min(room));
    }

    pub(super) fn back(&mut self, count: usize) {
        let column = self.column_of_cursor();
        self.term
            .move_backward(count.min(column - self.row_start(column)));
    }

    pub(super) fn back_by_one(&mut self) {
        self.back(1);
    }

    pub(super) fn down_to_start(&mut self, count: usize) {
        self.down(count);
        self.return_to_row_start();
    }

    pub(super) fn up_to_start(&mut self, count: usize) {
        self.up(count);
        self.return_to_row_start();
    }

    pub(super) fn tab(&mut self, count: u16) {
        if !self.margins.narrow {
            self.term.put_tab(count);
            return;
        }
        self.tab_to_the_margin(count);
    }

    pub(super) fn tab_to_the_margin(&mut self, count: u16) {
        let column = self.column_of_cursor();
        let end = self.row_end(column);
        self.term.move_forward_tabs(count);
        if self.column_of_cursor() > end {
            self.term.grid_mut().cursor.point.column = Column(end);
        }
    }

    pub(super) fn return_to_row_start(&mut self) {
        if !self.margins.narrow {
            self.term.carriage_return();
            return;
        }
        let column = self.column_of_cursor();
        let start = if self.origin {
            self.margins.left
        } else {
            self.row_start(column)
        };
        self.term.goto(line(self.row_of_cursor()).0, start);
    }

    pub(super) fn next_line(&mut self) {
        self.next_row();
        if self.mode(TermMode::LINE_FEED_NEW_LINE) {
            self.return_to_row_start();
        }
    }

    fn next_row(&mut self) {
        if self.margins.narrow && self.row_of_cursor() == self.margins.bottom {
            if self.is_between_sides() {
                self.scroll_rows(&self.scrolling_area(), 1);
            }
        } else {
            self.hold_view(self.margins.top, Handler::linefeed);
        }
    }

    pub(super) fn previous_row(&mut self) {
        if self.margins.narrow && self.row_of_cursor() == self.margins.top {
            if self.is_between_sides() {
                self.scroll_rows(&self.scrolling_area(), -1);
            }
        } else {
            self.term.reverse_index();
        }
    }

    pub(super) fn scroll_text_up(&mut self, count: usize) {
        if self.margins.narrow {
            self.scroll_rows(&self.scrolling_area(), signed(count));
        } else {
            self.hold_view(self.margins.top, |term| term.scroll_up(count));
        }
    }

    pub(super) fn scroll_text_down(&mut self, count: usize) {
        if self.margins.narrow {
            self.scroll_rows(&self.scrolling_area(), -signed(count));
        } else {
            self.term.scroll_down(count);
        }
    }

    pub(super) fn insert_rows(&mut self, count: usize) {
        if self.margins.narrow {
            self.scroll_from_cursor(-signed(count));
        } else {
            self.term.insert_blank_lines(count);
        }
    }

    pub(super) fn delete_rows(&mut self, count: usize) {
        if self.margins.narrow {
            self.scroll_from_cursor(signed(count));
        } else {
            self.hold_view(self.row_of_cursor(), |term| term.delete_lines(count));
        }
    }

    pub(super) fn insert_cells(&mut self, count: usize) {
        if self.margins.narrow {
            self.shift_from_cursor(signed(count));
        } else {
            self.term.insert_blank(count);
        }
    }

    pub(super) fn delete_cells(&mut self, count: usize) {
        if self.margins.narrow {
            self.shift_from_cursor(-signed(count));
        } else {
            self.term.delete_chars(count);
        }
    }

    /// The rows between the margins, from the cursor's on.
    fn scroll_from_cursor(&mut self, lines: i32) {
        if self.is_inside() {
            let mut area = self.scrolling_area();
            area.rows.start = self.row_of_cursor();
            self.scroll_rows(&area, lines);
        }
    }

    /// The cells between the margins in the cursor's row, from the cursor's on.
    fn shift_from_cursor(&mut self, columns: i32) {
        if self.is_between_sides() {
            let (row, column) = (self.row_of_cursor(), self.column_of_cursor());
            let area = Area {
                rows: row..row + 1,
                columns: column..self.margins.right + 1,
            };
            self.shift_columns(&area, columns);
        }
    }

    /// Writes a character that stands for itself.
    #[inline]
    pub(super) fn write_character(&mut self, c: char) {
        if self.margins.narrow {
            self.input_between_sides(c);
        } else {
            self.hold_view(self.margins.top, |term| term.input(c));
        }
    }

    /// Text with side margins: wraps at the right one.
    #[cold]
    fn input_between_sides(&mut self, c: char) {
        let width = c.width().unwrap_or(0);
        if width == 0 {
            self.term.input(c);
            return;
        }
        if std::mem::take(&mut self.term.grid_mut().cursor.input_needs_wrap) {
            self.wrap_between_sides();
        }
        if self.column_of_cursor() + width - 1 > self.row_end(self.column_of_cursor()) {
            self.wrap_between_sides();
        }
        let column = self.column_of_cursor();
        let end = self.row_end(column);
        if column + width - 1 > end {
            // No room for two cells here, nor at the start of a row.
            self.term.grid_mut().cursor.input_needs_wrap = true;
            return;
        }
        let insert = self.mode(TermMode::INSERT);
        if insert {
            let row = self.row_of_cursor();
            let area = Area {
                rows: row..row + 1,
                columns: column..end + 1,
            };
            self.shift_columns(&area, if width == 2 { 2 } else { 1 });
            // The engine would shift the row to its end.
            self.term.unset_mode(Mode::Named(NamedMode::Insert));
        }
        self.term.input(c);
        if insert {
            self.term.set_mode(Mode::Named(NamedMode::Insert));
        }
        let cursor = &mut self.term.grid_mut().cursor;
        if cursor.point.column.0 > end {
            cursor.point.column = Column(end);
            cursor.input_needs_wrap = true;
        }
    }

    fn wrap_between_sides(&mut self) {
        if self.mode(TermMode::LINE_WRAP) {
            self.next_row();
            let row = line(self.row_of_cursor());
            self.term.goto(row.0, self.margins.left);
        }
    }
}
