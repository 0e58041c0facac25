//! What is seen of a screen: its cells, links and text, and what has changed of them.

use std::ops::Range;

use alacritty_terminal::grid::Dimensions;
use alacritty_terminal::index::Line;
use alacritty_terminal::term::cell::{Cell, Hyperlink};
use alacritty_terminal::term::{TermDamage, TermMode};
use vte::ansi::NamedColor;

use crate::PaneSize;

use super::cells::{
    attributes, cell_text, colour, drawn_row, is_wrapped, push_row, shown_width, trim_line,
};
use super::engine::Engine;
use super::{CellView, DrawnText, Frozen, Patch, Screen};

impl Screen {
    /// Reports whether any cell may be a link.
    pub fn has_links(&self) -> bool {
        // The shown cells may be older than the engine's list of links.
        self.still.is_some() || self.frozen.is_some() || !self.engine.links.known.is_empty()
    }

    /// Returns the target of the link at a cell of the viewport, if there is one: bounded and free of controls, but of any scheme.
    pub fn link_at(&self, column: u16, row: u16) -> Option<String> {
        if !self.has_links() || row >= self.shown_size().rows() {
            return None;
        }
        let cell = self.shown_row(row).get(usize::from(column))?;
        cell.hyperlink().map(|link| link.uri().to_owned())
    }

    /// Reports whether any cell in these rows of the viewport links to a target that passes.
    pub fn shows_link(&self, rows: Range<u16>, passes: impl Fn(&str) -> bool) -> bool {
        let links = |row| self.shown_row(row).iter().filter_map(Cell::hyperlink);
        self.has_links()
            && (rows.start..rows.end.min(self.shown_size().rows()))
                .flat_map(links)
                .any(|link| passes(link.uri()))
    }

    /// Returns the parts of the viewport that look different from when they were last drawn, from top to bottom: the caller draws
    /// them.
    pub fn take_damage(&mut self) -> Vec<Patch> {
        let rows = self.written_rows();
        let mut drawn = std::mem::take(&mut self.drawn);
        let colours = self.engine.term.colors();
        let damage = drawn.take_damage(self.shown_size(), colours, rows, |row| self.shown_row(row));
        self.drawn = drawn;
        damage
    }

    /// Reports whether the view is in the scrollback, or was so when all of it was last drawn: that is shown next to the cells,
    /// and a child may end it by a reset.
    pub fn is_reported_scrolled(&self) -> bool {
        self.drawn_scrolled || self.scroll_offset() > 0
    }

    /// Marks the whole viewport as drawn, whatever has changed.
    pub fn set_drawn(&mut self) {
        self.written_rows();
        self.drawn_scrolled = self.scroll_offset() > 0;
        let mut drawn = std::mem::take(&mut self.drawn);
        let colours = self.engine.term.colors();
        drawn.set(self.shown_size(), colours, |row| self.shown_row(row));
        self.drawn = drawn;
    }

    /// Returns the rows of the viewport that were written to since the last call, as one span.
    fn written_rows(&mut self) -> Range<u16> {
        let rows = self.shown_size().rows();
        if self.frozen.is_some() {
            // The engine's damage is about cells that are not shown yet: leave it there.
            return 0..rows;
        }
        let span = match self.engine.term.damage() {
            TermDamage::Full => 0..rows,
            TermDamage::Partial(lines) => {
                let clamp = |line: usize| u16::try_from(line).unwrap_or(rows).min(rows);
                lines.fold(rows..0, |span, one| {
                    span.start.min(clamp(one.line))..span.end.max(clamp(one.line + 1))
                })
            }
        };
        self.engine.term.reset_damage();
        span
    }

    /// Visits the viewport's cells, row by row, without an allocation for each cell.
    pub fn for_each_cell(&self, visit: impl FnMut(CellView<'_>)) {
        self.for_each_cell_in(&Patch::ALL, visit);
    }

    /// Visits the cells of a part of the viewport.
    pub fn for_each_cell_in(&self, part: &Patch, mut visit: impl FnMut(CellView<'_>)) {
        let mut cluster = String::new();
        let colours = self.engine.term.colors();
        let size = self.shown_size();
        let columns = part.columns.start..part.columns.end.min(size.columns());
        for row in part.rows.start..part.rows.end.min(size.rows()) {
            let cells = self.shown_row(row);
            let mut taken = 0;
            for column in columns.clone() {
                let cell = &cells[usize::from(column)];
                if column < taken {
                    continue;
                }
                let width = shown_width(cell, cells.get(usize::from(column) + 1));
                taken = column + width;
                let link = cell.hyperlink();
                visit(CellView {
                    column,
                    row,
                    text: cell_text(cell, width, &mut cluster),
                    width,
                    foreground: colour(cell.fg, NamedColor::Foreground, colours),
                    background: colour(cell.bg, NamedColor::Background, colours),
                    underline_colour: cell
                        .underline_color()
                        .map(|own| colour(own, NamedColor::Foreground, colours)),
                    attributes: attributes(cell),
                    hyperlink: link.as_ref().map(Hyperlink::uri),
                    link_id: link.as_ref().map_or("", Hyperlink::id),
                });
            }
        }
    }

    /// Returns the engine that the view is of: the still's in copy mode, else the live screen's.
    pub(super) fn viewed(&self) -> &Engine {
        self.still
            .as_ref()
            .map_or(&self.engine, |still| &still.engine)
    }

    /// Returns the content that is shown in place of the live screen.
    fn shown_frozen(&self) -> Option<&Frozen> {
        self.frozen.as_ref().filter(|_| self.still.is_none())
    }

    fn shown_size(&self) -> PaneSize {
        self.shown_frozen()
            .map_or(self.viewed().size, |frozen| frozen.size)
    }

    fn shown_row(&self, row: u16) -> &[Cell] {
        match self.shown_frozen() {
            Some(frozen) => {
                let columns = usize::from(frozen.size.columns());
                &frozen.cells[usize::from(row) * columns..][..columns]
            }
            None => self.viewed().row(row),
        }
    }

    /// Returns the viewport as plain text: a line for each row, without trailing blanks and without
    /// empty lines at the end.
    pub fn text(&self) -> String {
        let mut text = String::new();
        for row in 0..self.shown_size().rows() {
            push_row(&mut text, self.shown_row(row));
            trim_line(&mut text);
            text.push('\n');
        }
        text.truncate(text.trim_end_matches('\n').len());
        text
    }

    /// Returns the child's current screen, whatever part of the scrollback is shown; `None` in the middle of a synchronized frame.
    pub fn drawn_text(&self) -> Option<DrawnText> {
        if self.is_in_frame() || self.waiting.is_some() {
            return None;
        }
        let grid = self.engine.term.grid();
        let rows =
            (0..i32::from(self.engine.size.rows())).map(|row| drawn_row(&grid[Line(row)][..]));
        let cursor = grid.cursor.point;
        let place = |number: usize| u16::try_from(number).unwrap_or(u16::MAX);
        Some(DrawnText {
            rows: rows.collect(),
            cursor: (
                place(cursor.column.0),
                place(usize::try_from(cursor.line.0).unwrap_or(0)),
            ),
        })
    }

    /// Returns the last lines of scrollback and screen as plain text, with wrapped lines joined.
    pub fn tail_text(&self, lines: usize) -> String {
        self.text_up_from(self.engine.term.grid().bottommost_line(), lines)
    }

    /// Returns the last lines, like [`tail_text`](Self::tail_text), above the one with the cursor: the lines that the program has
    /// finished, while it continues below. If the cursor is hidden, returns all of the last lines.
    pub fn settled_text(&self, lines: usize) -> String {
        let grid = self.engine.term.grid();
        if !self.engine.term.mode().contains(TermMode::SHOW_CURSOR) {
            return self.tail_text(lines);
        }
        let mut line = grid.cursor.point.line;
        while line > grid.topmost_line() && is_wrapped(&grid[line - 1_i32][..]) {
            line -= 1_i32;
        }
        self.text_up_from(line - 1_i32, lines)
    }

    fn text_up_from(&self, mut line: Line, lines: usize) -> String {
        let grid = self.engine.term.grid();
        let mut found: Vec<String> = Vec::new();
        while line >= grid.topmost_line() && found.len() < lines {
            let mut first = line;
            while first > grid.topmost_line() && is_wrapped(&grid[first - 1_i32][..]) {
                first -= 1_i32;
            }
            let mut text = String::new();
            for part in first.0..=line.0 {
                push_row(&mut text, &grid[Line(part)][..]);
            }
            trim_line(&mut text);
            if !(text.is_empty() && found.is_empty()) {
                found.push(text);
            }
            line = first - 1_i32;
        }
        found.reverse();
        found.join("\n")
    }
}
