//! The still of a screen in copy mode: cursor, selection and search over a frozen copy of the grid.
//!
//! The grid is copied, not watched: the agent repaints its last lines many times a second, and lines that scroll
//! out of a full scrollback are gone. A still keeps everything in place until the reader leaves it; it costs as much memory
//! as the scrollback for that time.
//!
//! Points count lines as the engine does: row 0 is the first row of the screen, and the scrollback above it has negative
//! numbers.

mod motion;
mod search;
#[cfg(test)]
mod tests;

use alacritty_terminal::event::VoidListener;
use alacritty_terminal::grid::{Dimensions, Grid, Scroll as GridScroll};
use alacritty_terminal::index::{Column, Line, Point};
use alacritty_terminal::term::cell::{Cell, Flags};
use alacritty_terminal::term::{Config, Term};

use super::cells::{is_wrapped, push_row, trim_line};
use super::engine::{Engine, GridSize};
use super::{Cursor, CursorShape};
use crate::PaneSize;
use crate::copy::{CopyMark, CopyOrder, CopyOutcome, Motion, SelectionKind};

use search::{Found, Search};

/// The factor by which a still may have more lines than the live scrollback: a narrower pane wraps them into more, and none
/// of them may be lost while the user reads.
const REFLOW_ROOM: usize = 4;

/// The frozen copy that is shown while the reader is in copy mode.
pub(super) struct Still {
    pub(super) engine: Engine,
    cursor: Point,
    /// The column that the cursor had before it met shorter rows.
    column: usize,
    anchor: Option<Anchor>,
    search: Option<Search>,
    origin: Option<Origin>,
    /// A hash of the live screen's content when the still was taken.
    pub(super) taken: u64,
}

/// The start of a selection.
#[derive(Clone, Copy, Debug)]
struct Anchor {
    /// The first cell of the start; it differs from the last one if a word was clicked.
    first: Point,
    last: Point,
    kind: SelectionKind,
}

/// The state to which an abandoned search returns.
#[derive(Clone, Debug)]
struct Origin {
    cursor: Point,
    offset: usize,
    search: Option<Search>,
    /// The note about the current search.
    said: Option<String>,
}

/// Returns the first row of the line that a row belongs to.
fn first_row(grid: &Grid<Cell>, row: Line) -> Line {
    let mut first = row;
    while first > grid.topmost_line() && is_wrapped_row(grid, first - 1_i32) {
        first -= 1_i32;
    }
    first
}

/// Returns the last row of the line that a row belongs to.
fn last_row(grid: &Grid<Cell>, row: Line) -> Line {
    let mut last = row;
    while last < grid.bottommost_line() && is_wrapped_row(grid, last) {
        last += 1_i32;
    }
    last
}

fn is_wrapped_row(grid: &Grid<Cell>, row: Line) -> bool {
    is_wrapped(&grid[row][..])
}

impl Still {
    /// Takes a still. `shown` has the cells of the view if they are not those of the grid, because a frame is being
    /// drawn.
    pub(super) fn take(live: &Engine, shown: Option<&[Cell]>, taken: u64) -> Self {
        let size = live.size;
        let mut grid = live.term.grid().clone();
        let room = grid.history_size().saturating_mul(REFLOW_ROOM).max(1000);
        grid.update_history(room);
        let config = Config {
            scrolling_history: room,
            ..Config::default()
        };
        let mut term = Term::new(config, &GridSize(size), VoidListener);
        *term.grid_mut() = grid;
        let offset = term.grid().display_offset();
        if let Some(cells) = shown {
            let columns = usize::from(size.columns());
            for (row, cells) in (0_i32..).zip(cells.chunks(columns)) {
                let own = &mut term.grid_mut()[Line(row) - offset];
                for (column, cell) in cells.iter().enumerate() {
                    own[Column(column)] = cell.clone();
                }
            }
        }
        let mut still = Self {
            cursor: term.grid().cursor.point,
            engine: Engine::new(term, size),
            column: 0,
            anchor: None,
            search: None,
            origin: None,
            taken,
        };
        still.stay_in_view();
        still.go(still.cursor);
        still
    }

    fn grid(&self) -> &Grid<Cell> {
        self.engine.term.grid()
    }

    fn offset(&self) -> usize {
        self.grid().display_offset()
    }

    /// Returns the reader's cursor.
    pub(super) fn shown_cursor(&self) -> Cursor {
        let row = (self.cursor.line + self.offset()).0;
        let rows = i32::from(self.engine.size.rows());
        Cursor {
            column: (self.cursor.column.0 as u16).min(self.engine.size.columns() - 1),
            row: row.clamp(0, rows - 1) as u16,
            visible: true,
            shape: CursorShape::Block,
            blinking: false,
        }
    }

    /// Carries out an order; the screen itself enters, leaves and refreshes.
    pub(super) fn run(&mut self, order: &CopyOrder) -> CopyOutcome {
        let mut outcome = CopyOutcome::default();
        match order {
            CopyOrder::Enter | CopyOrder::Leave | CopyOrder::Refresh => {}
            CopyOrder::Move(motion) => self.move_by(*motion),
            CopyOrder::Select(kind) => self.select(*kind),
            CopyOrder::SwapEnds => self.swap_ends(),
            CopyOrder::Unselect => self.anchor = None,
            CopyOrder::SearchBegin => {
                self.origin = Some(Origin {
                    cursor: self.cursor,
                    offset: self.offset(),
                    search: self.search.clone(),
                    said: None,
                });
            }
            CopyOrder::SearchFor { pattern, backward } => {
                match self.search_for(pattern, *backward) {
                    Ok(said) => outcome.said = said,
                    Err(why) => {
                        outcome.said = Some(format!("not a pattern: {why}"));
                        outcome.bad_pattern = true;
                    }
                }
                if let Some(origin) = &mut self.origin {
                    origin.said.clone_from(&outcome.said);
                }
            }
            CopyOrder::SearchEnd { keep } => outcome.said = self.end_search(*keep),
            CopyOrder::SearchAgain { reverse } => outcome.said = self.search_again(*reverse),
            CopyOrder::Copy => match self.anchor {
                Some(_) => outcome.copied = Some(self.selected_text()),
                None => outcome.said = Some("nothing is selected".to_owned()),
            },
            CopyOrder::CopyLine => {
                let kind = SelectionKind::Lines;
                outcome.copied = Some(self.text_between(self.cursor, self.cursor, kind));
            }
            CopyOrder::Press {
                column,
                row,
                clicks,
            } => self.press(*column, *row, *clicks),
            CopyOrder::Drag { column, row } => self.drag(*column, *row),
        }
        outcome.selecting = self.anchor.map(|anchor| anchor.kind);
        outcome
    }

    /// Moves the view alone.
    pub(super) fn scroll(&mut self, scroll: GridScroll) {
        self.engine.term.scroll_display(scroll);
        self.stay_in_view();
    }

    fn move_by(&mut self, motion: Motion) {
        let grid = self.grid();
        let rows = i32::from(self.engine.size.rows());
        let top = Line(0) - self.offset();
        let from = self.cursor;
        let to = match motion {
            Motion::Left => Point::new(from.line, Column(from.column.0.saturating_sub(1))),
            Motion::Right => {
                let wide = grid[from].flags.contains(Flags::WIDE_CHAR);
                let column = from.column + if wide { 2 } else { 1 };
                if column > self.last_column() {
                    return;
                }
                Point::new(from.line, column)
            }
            Motion::Up => return self.go_rows(-1),
            Motion::Down => return self.go_rows(1),
            Motion::WordForward(words) => motion::word_forward(grid, from, words),
            Motion::WordBack(words) => motion::word_back(grid, from, words),
            Motion::WordEnd(words) => motion::word_end(grid, from, words),
            Motion::LineStart => motion::line_start(grid, from.line),
            Motion::LineText => motion::line_text(grid, from.line),
            Motion::LineEnd => motion::line_end(grid, from.line),
            Motion::Oldest => Point::new(grid.topmost_line(), Column(0)),
            Motion::Newest => {
                let newest = motion::newest(grid);
                self.engine.term.scroll_display(GridScroll::Bottom);
                newest
            }
            Motion::High => Point::new(top, Column(0)),
            Motion::Middle => Point::new(top + (rows - 1) / 2, Column(0)),
            Motion::Low => Point::new(top + (rows - 1), Column(0)),
            Motion::ParagraphBack => motion::paragraph(grid, from.line, false),
            Motion::ParagraphForward => motion::paragraph(grid, from.line, true),
            Motion::Rows(count) => return self.go_pages(count),
            Motion::HalfPages(count) => return self.go_pages(count * (rows / 2).max(1)),
            Motion::View(count) => return self.scroll(GridScroll::Delta(count)),
        };
        self.go(to);
    }

    /// Returns the last column of the grid; a pane of one column hides the second column.
    fn last_column(&self) -> Column {
        self.grid().last_column()
    }

    /// Puts the cursor on a cell, never on the second half of a character, and scrolls the view to it.
    fn go(&mut self, to: Point) {
        self.cursor = self.whole(to);
        self.column = self.cursor.column.0;
        self.follow();
    }

    fn go_rows(&mut self, down: i32) {
        let line = self.clamped(self.cursor.line + down);
        self.cursor = self.whole(Point::new(line, Column(self.column)));
        self.follow();
    }

    /// Moves view and cursor by rows, positive towards the past.
    fn go_pages(&mut self, up: i32) {
        self.engine.term.scroll_display(GridScroll::Delta(up));
        self.go_rows(-up);
    }

    fn clamped(&self, line: Line) -> Line {
        let grid = self.grid();
        line.clamp(grid.topmost_line(), grid.bottommost_line())
    }

    /// Returns the first cell of the character at a point, inside the grid.
    fn whole(&self, point: Point) -> Point {
        let line = self.clamped(point.line);
        let column = point.column.min(self.last_column());
        let spacer = self.grid()[line][column]
            .flags
            .contains(Flags::WIDE_CHAR_SPACER);
        let column = if spacer && column.0 > 0 {
            column - 1
        } else {
            column
        };
        Point::new(line, column)
    }

    /// Scrolls until the cursor is in view.
    fn follow(&mut self) {
        let rows = i32::from(self.engine.size.rows());
        let row = (self.cursor.line + self.offset()).0;
        let by = if row < 0 {
            -row
        } else {
            (rows - 1 - row).min(0)
        };
        if by != 0 {
            self.engine.term.scroll_display(GridScroll::Delta(by));
        }
    }

    /// Moves the cursor until it is in view.
    fn stay_in_view(&mut self) {
        let rows = i32::from(self.engine.size.rows());
        let top = Line(0) - self.offset();
        let line = self.cursor.line.clamp(top, top + (rows - 1));
        self.cursor = self.whole(Point::new(line, self.cursor.column));
    }

    fn select(&mut self, kind: SelectionKind) {
        self.anchor = match self.anchor {
            Some(anchor) if anchor.kind == kind => None,
            Some(anchor) => Some(Anchor { kind, ..anchor }),
            None => Some(Anchor {
                first: self.cursor,
                last: self.cursor,
                kind,
            }),
        };
    }

    fn swap_ends(&mut self) {
        if let Some(anchor) = self.anchor {
            let to = if self.cursor < anchor.first {
                anchor.last
            } else {
                anchor.first
            };
            self.anchor = Some(Anchor {
                first: self.cursor,
                last: self.cursor,
                ..anchor
            });
            self.go(to);
        }
    }

    fn press(&mut self, column: u16, row: u16, clicks: u8) {
        let line = Line(i32::from(row)) - self.offset();
        self.go(Point::new(line, Column(usize::from(column))));
        let anchored = |first, last, kind| Some(Anchor { first, last, kind });
        self.anchor = match clicks {
            0 | 1 => None,
            2 => {
                let (first, last) = motion::word_around(self.grid(), self.cursor);
                self.cursor = self.whole(last);
                anchored(first, last, SelectionKind::Characters)
            }
            _ => anchored(self.cursor, self.cursor, SelectionKind::Lines),
        };
    }

    fn drag(&mut self, column: u16, row: i32) {
        if self.anchor.is_none() {
            self.select(SelectionKind::Characters);
        }
        let rows = i32::from(self.engine.size.rows());
        if row < 0 {
            self.engine.term.scroll_display(GridScroll::Delta(1));
        } else if row >= rows {
            self.engine.term.scroll_display(GridScroll::Delta(-1));
        }
        let line = Line(row.clamp(0, rows - 1)) - self.offset();
        self.go(Point::new(line, Column(usize::from(column))));
    }

    fn search_for(&mut self, pattern: &str, backward: bool) -> Result<Option<String>, String> {
        if let Some(origin) = self.origin.clone() {
            self.cursor = origin.cursor;
            self.scroll_to(origin.offset);
            self.search = origin.search;
        }
        if pattern.is_empty() {
            return Ok(None);
        }
        self.search = None;
        let search = Search::new(pattern, backward)?;
        let said = self.find(&search, backward);
        self.search = Some(search);
        Ok(said)
    }

    fn end_search(&mut self, keep: bool) -> Option<String> {
        let origin = self.origin.take()?;
        if keep {
            return origin.said;
        }
        self.search = origin.search;
        self.go(origin.cursor);
        self.scroll_to(origin.offset);
        None
    }

    fn search_again(&mut self, reverse: bool) -> Option<String> {
        let Some(search) = self.search.clone() else {
            return Some("nothing was searched yet: / begins".to_owned());
        };
        self.find(&search, search.backward != reverse)
    }

    fn find(&mut self, search: &Search, backward: bool) -> Option<String> {
        match search.next(self.grid(), self.cursor, backward) {
            None => Some("not found".to_owned()),
            Some(((start, _), round)) => {
                self.go(start);
                round.then(|| {
                    let end = if backward { "oldest" } else { "newest" };
                    format!("went round the {end} line")
                })
            }
        }
    }

    fn scroll_to(&mut self, offset: usize) {
        let by = (Line(0) + offset - self.offset()).0;
        self.engine.term.scroll_display(GridScroll::Delta(by));
    }

    /// Returns the ends of the selection, in reading order.
    fn selection(&self) -> Option<(Point, Point, SelectionKind)> {
        let anchor = self.anchor?;
        let first = self.cursor.min(anchor.first);
        let last = self.cursor.max(anchor.last);
        Some((first, last, anchor.kind))
    }

    /// Returns the first and last column of the part of a row that lies between two points.
    fn columns(
        &self,
        row: Line,
        first: Point,
        last: Point,
        kind: SelectionKind,
    ) -> Option<(usize, usize)> {
        let end = self.last_column().0;
        let (from, to) = match kind {
            SelectionKind::Characters => {
                if row < first.line || row > last.line {
                    return None;
                }
                let from = if row == first.line { first.column.0 } else { 0 };
                let to = if row == last.line { last.column.0 } else { end };
                (from, to)
            }
            SelectionKind::Lines => {
                let grid = self.grid();
                let rows = first_row(grid, first.line)..=last_row(grid, last.line);
                return rows.contains(&row).then_some((0, end));
            }
            SelectionKind::Block => {
                if row < first.line || row > last.line {
                    return None;
                }
                let (a, b) = (first.column.0, last.column.0);
                (a.min(b), a.max(b))
            }
        };
        // Both halves of a character, whichever of them was selected.
        let cells = &self.grid()[row];
        let from = from.min(end);
        let to = to.min(end);
        let spacer = |column: usize| {
            cells[Column(column)]
                .flags
                .contains(Flags::WIDE_CHAR_SPACER)
        };
        let from = if from > 0 && spacer(from) {
            from - 1
        } else {
            from
        };
        let to = if to < end && spacer(to + 1) {
            to + 1
        } else {
            to
        };
        Some((from, to))
    }

    fn selected_text(&self) -> String {
        self.selection()
            .map_or_else(String::new, |(first, last, kind)| {
                self.text_between(first, last, kind)
            })
    }

    /// Returns the text as it was written: wrapped lines joined, without trailing blanks.
    fn text_between(&self, first: Point, last: Point, kind: SelectionKind) -> String {
        let grid = self.grid();
        let (top, bottom) = match kind {
            SelectionKind::Lines => (first_row(grid, first.line), last_row(grid, last.line)),
            _ => (first.line, last.line),
        };
        let end = self.last_column().0;
        let mut text = String::new();
        let mut row_text = String::new();
        for row in top.0..=bottom.0 {
            let row = Line(row);
            let Some((from, to)) = self.columns(row, first, last, kind) else {
                continue;
            };
            row_text.clear();
            push_row(&mut row_text, &grid[row][Column(from)..Column(to + 1)]);
            let goes_on = kind != SelectionKind::Block && to == end && is_wrapped_row(grid, row);
            // Selected blanks with text after them are part of the text.
            let meant = kind == SelectionKind::Characters
                && motion::last_text(grid, row).is_some_and(|last| last > to);
            if !goes_on && !meant {
                trim_line(&mut row_text);
            }
            text.push_str(&row_text);
            if !goes_on && row < bottom {
                text.push('\n');
            }
        }
        text
    }

    /// Visits the highlights in the view: row, first and last column, and kind; a later one covers an earlier one.
    pub(super) fn marks(&self, mut visit: impl FnMut(u16, u16, u16, CopyMark)) {
        let top = Line(0) - self.offset();
        let rows = self.engine.size.rows();
        let bottom = top + (i32::from(rows) - 1);
        let found: Vec<Found> = self
            .search
            .iter()
            .flat_map(|search| search.shown(self.grid(), top, bottom))
            .collect();
        let selection = self.selection();
        let end = usize::from(self.engine.size.columns()) - 1;
        let mut visit = |row, (from, to): (usize, usize), mark| {
            if from <= end {
                visit(row, from as u16, to.min(end) as u16, mark);
            }
        };
        for row in 0..rows {
            let line = top + i32::from(row);
            let kind = SelectionKind::Characters;
            for (first, last) in &found {
                if let Some(columns) = self.columns(line, *first, *last, kind) {
                    visit(row, columns, CopyMark::Found);
                }
            }
            if let Some((first, last, kind)) = selection
                && let Some(columns) = self.columns(line, first, last, kind)
            {
                visit(row, columns, CopyMark::Selected);
            }
        }
    }

    /// Applies a new size. Lines reflow as they do on the live screen; the cursor and the selection stay with their
    /// text.
    pub(super) fn resize(&mut self, size: PaneSize) {
        let cursor = self.place(self.cursor);
        let anchor = self
            .anchor
            .map(|anchor| (self.place(anchor.first), self.place(anchor.last)));
        let origin = self.origin.take().map(|origin| {
            let row = (origin.cursor.line + origin.offset).0;
            (self.place(origin.cursor), row, origin)
        });
        self.engine.resize(size);
        self.cursor = self.point(cursor);
        self.origin = origin.map(|(place, row, origin)| {
            let cursor = self.point(place);
            // It comes back in the row that it was in.
            let row = row.clamp(0, i32::from(size.rows()) - 1);
            let offset = usize::try_from(row - cursor.line.0).unwrap_or(0);
            Origin {
                cursor,
                offset,
                ..origin
            }
        });
        if let (Some(own), Some((first, last))) = (self.anchor, anchor) {
            self.anchor = Some(Anchor {
                first: self.point(first),
                last: self.point(last),
                kind: own.kind,
            });
        }
        self.go(self.cursor);
    }

    /// Converts a point to the number of its line, counted from the oldest, and of its cell in that line.
    fn place(&self, point: Point) -> (usize, usize) {
        let grid = self.grid();
        let first = first_row(grid, point.line);
        let lines = (grid.topmost_line().0..first.0)
            .filter(|row| !is_wrapped_row(grid, Line(*row)))
            .count();
        let mut cell = point.column.0;
        for row in first.0..point.line.0 {
            cell += own_cells(grid, Line(row));
        }
        (lines, cell)
    }

    fn point(&self, (lines, mut cell): (usize, usize)) -> Point {
        let grid = self.grid();
        let mut row = grid.topmost_line();
        for _ in 0..lines {
            row = last_row(grid, row) + 1_i32;
            if row > grid.bottommost_line() {
                return self.whole(motion::newest(grid));
            }
        }
        while is_wrapped_row(grid, row) && row < grid.bottommost_line() {
            let own = own_cells(grid, row);
            if cell < own {
                break;
            }
            cell -= own;
            row += 1_i32;
        }
        self.whole(Point::new(row, Column(cell)))
    }
}

/// Returns the number of cells of a row without the gap before a wide character that did not fit.
fn own_cells(grid: &Grid<Cell>, row: Line) -> usize {
    let gap = grid[row]
        .last()
        .is_some_and(|cell| cell.flags.contains(Flags::LEADING_WIDE_CHAR_SPACER));
    grid.columns() - usize::from(gap)
}
