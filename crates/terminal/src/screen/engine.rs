//! The engine behind the screen: alacritty's terminal, extended by our replies, modes and bounds.

mod answers;
mod cluster;
mod handler;
mod margins;
mod text;

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hasher};

use alacritty_terminal::event::VoidListener;
use alacritty_terminal::grid::{Cursor as SavedCursor, Dimensions, Scroll};
use alacritty_terminal::index::{Column, Line, Point};
use alacritty_terminal::term::cell::{Cell, Flags, Hyperlink};
use alacritty_terminal::term::{Term, TermMode};
use vte::ansi::{
    self, Attr, CharsetIndex, Handler, Mode, NamedColor, NamedMode, NamedPrivateMode,
    StandardCharset,
};

use super::cells::{OVERLINE, is_blank, set_companions};
use super::{Cursor, CursorShape, ScreenFact};
use crate::{ColourScheme, HostPalette, Modes, MouseTracking, PaneSize};
use pitstop_base::clean::stripped;

pub(super) use answers::VERSION_REPLY;
use margins::Margins;
pub(crate) use text::{RUN, is_text};

/// The longest title, in characters.
const TITLE_LIMIT: usize = 256;

/// The most titles a child may push.
const TITLE_DEPTH: usize = 16;

/// The most keyboard modes that a child may push; beyond it the oldest is forgotten.
const KEYBOARD_DEPTH: usize = 32;

/// The most zero-width characters that one cell takes. Real clusters have under ten; without a bound one
/// cell could use all memory.
pub(super) const ZERO_WIDTH_LIMIT: usize = 16;

/// The longest link target, in bytes (the limit of browsers and other terminals).
const LINK_LIMIT: usize = 2083;

/// The most distinct links kept.
pub(super) const LINK_COUNT: usize = 4096;

/// The most facts kept until the loop takes them; a flood of bells needs no more.
pub(super) const FACT_LIMIT: usize = 256;

/// The width and height of a cell that are reported to a child, in pixels: the host terminal is not queried for its own.
const CELL_PIXELS: (u16, u16) = (8, 16);

/// The grid's dimensions.
pub(super) struct GridSize(pub(super) PaneSize);

impl Dimensions for GridSize {
    fn total_lines(&self) -> usize {
        self.screen_lines()
    }

    fn screen_lines(&self) -> usize {
        usize::from(self.0.rows())
    }

    /// Returns at least two columns: the engine writes past the row's end when a wide character meets a grid of one column, so
    /// such a pane shows the first of two.
    fn columns(&self) -> usize {
        usize::from(self.0.columns()).max(2)
    }
}

/// The engine with our additions to it: replies, modes and bounds.
pub(super) struct Engine {
    pub(super) term: Term<VoidListener>,
    pub(super) size: PaneSize,
    pub(super) replies: Vec<Vec<u8>>,
    pub(super) facts: Vec<ScreenFact>,
    pub(super) title: String,
    titles: Vec<String>,
    keyboard: Keyboard,
    other_keyboard: Keyboard,
    modify_other_keys: u8,
    x10_mouse: bool,
    pub(super) scheme_reports: bool,
    pub(super) in_frame: bool,
    margins: Margins,
    /// True if there are no margins, no origin mode and no new-line mode: see `judge`.
    plain: bool,
    /// The first character that the engine may not write by itself: see `judge`.
    rare_from: char,
    /// True if positions are counted from the margins (DECOM).
    origin: bool,
    /// The origin mode that DECSC saved besides the cursor; the next field is that of the other screen.
    saved_origin: bool,
    other_saved_origin: bool,
    /// The main screen's saved cursor while mode 47 or 1047 shows the other one.
    main_saved: Option<SavedCursor<Cell>>,
    /// True if the child redraws: text that it clears from the screen is not kept above it.
    pub(super) redraws: bool,
    /// True if `CSI 3 J` is ignored.
    pub(super) keeps_scrollback: bool,
    pub(super) palette: HostPalette,
    pub(super) scheme: Option<ColourScheme>,
    pub(super) links: Links,
}

/// The kitty keyboard flags of one screen with those pushed below them.
#[derive(Default)]
struct Keyboard {
    flags: u8,
    below: Vec<u8>,
}

impl Keyboard {
    fn push(&mut self, flags: u8) {
        if self.below.len() == KEYBOARD_DEPTH {
            self.below.remove(0);
        }
        self.below.push(self.flags);
        self.flags = flags;
    }

    fn pop(&mut self, count: u16) {
        for _ in 0..count.min(KEYBOARD_DEPTH as u16 + 1) {
            self.flags = self.below.pop().unwrap_or(0);
        }
    }
}

/// The links in use; each is kept once, however often it is repainted.
#[derive(Default)]
pub(super) struct Links {
    pub(super) known: HashMap<(String, String), Hyperlink>,
    refused: usize,
}

/// A mark among the companions of the character to which the cursor will return; no text contains it.
const ANCHOR: char = '\u{fdd1}';

/// The place of the cursor relative to the marked character.
#[derive(Clone, Copy)]
struct Anchor {
    /// The number of columns that the cursor is after it.
    behind: usize,
    /// True if the cursor is directly after it, so that the next character goes to the next row if there is no room in this one.
    ends_text: bool,
}

impl Engine {
    pub(super) fn new(term: Term<VoidListener>, size: PaneSize) -> Self {
        let mut engine = Self {
            term,
            size,
            replies: Vec::new(),
            facts: Vec::new(),
            title: String::new(),
            titles: Vec::new(),
            keyboard: Keyboard::default(),
            other_keyboard: Keyboard::default(),
            modify_other_keys: 0,
            x10_mouse: false,
            scheme_reports: false,
            in_frame: false,
            margins: Margins::default(),
            plain: true,
            rare_from: '\0',
            origin: false,
            saved_origin: false,
            other_saved_origin: false,
            main_saved: None,
            redraws: false,
            keeps_scrollback: false,
            palette: HostPalette::default(),
            scheme: None,
            links: Links::default(),
        };
        engine.forget_margins();
        engine
    }

    pub(super) fn resize(&mut self, size: PaneSize) {
        let narrower = size.columns() < self.size.columns();
        let history = self.term.grid().history_size();
        let reflows = !self.mode(TermMode::ALT_SCREEN);
        let anchor = reflows.then(|| self.mark_cursor());
        self.size = size;
        self.term.resize(GridSize(size));
        self.reset_margins();
        if narrower && reflows {
            self.pull_back(self.term.grid().history_size().saturating_sub(history));
        }
        if let Some(anchor) = anchor {
            self.find_cursor(anchor);
        }
    }

    /// Marks the character at the cursor, or the last one of its row before it. The engine moves the cursor by rows
    /// when the wrapping of lines changes, and leaves it on another character.
    fn mark_cursor(&mut self) -> Anchor {
        let grid = self.term.grid_mut();
        let Point { line, column } = grid.cursor.point;
        let row = &grid[line];
        let text = row[..column + 1]
            .iter()
            .rposition(|cell| {
                *cell != Cell::default() && !cell.flags.contains(Flags::LEADING_WIDE_CHAR_SPACER)
            })
            .unwrap_or(0);
        let is_half = text > 0 && row[Column(text)].flags.contains(Flags::WIDE_CHAR_SPACER);
        let at = Column(text - usize::from(is_half));
        let cells = if row[at].flags.contains(Flags::WIDE_CHAR) {
            2
        } else {
            1
        };
        let wraps = std::mem::take(&mut grid.cursor.input_needs_wrap);
        let anchor = Anchor {
            behind: if wraps { cells } else { column.0 - at.0 },
            ends_text: wraps || column.0 - at.0 == cells,
        };
        grid[line][at].push_zerowidth(ANCHOR);
        anchor
    }

    /// Puts the cursor on the character that was marked, and brings its line back if the engine has moved it out of sight.
    fn find_cursor(&mut self, anchor: Anchor) {
        let is_marked = |cell: &Cell| cell.zerowidth().is_some_and(|all| all.contains(&ANCHOR));
        let grid = self.term.grid();
        let lines = (grid.topmost_line().0..=grid.bottommost_line().0).rev();
        let found = lines.map(Line).find_map(|line| {
            let column = grid[line][..].iter().position(is_marked)?;
            Some(Point::new(line, Column(column)))
        });
        let Some(mut at) = found else { return };
        let cell = &mut self.term.grid_mut()[at];
        let marked = cell.zerowidth().unwrap_or_default().to_vec();
        set_companions(cell, marked.into_iter().filter(|c| *c != ANCHOR));
        while at.line < 0 {
            // The rows at the bottom make room: some are removed there, and as many are fetched from the scrollback.
            let rows = self.size.rows();
            let hidden = at.line.0.unsigned_abs().min(u32::from(rows) - 1) as u16;
            self.term.grid_mut().cursor.point.line = Line(0);
            let fewer = PaneSize::new(self.size.columns(), rows - hidden);
            self.term.resize(GridSize(fewer));
            self.term.resize(GridSize(self.size));
            at.line += i32::from(hidden);
            if hidden == 0 {
                return;
            }
        }
        let grid = self.term.grid_mut();
        let last = grid.last_column();
        let column = at.column + anchor.behind;
        grid.cursor.point = Point::new(at.line, column.min(last));
        grid.cursor.input_needs_wrap = anchor.ends_text && column > last;
    }

    /// Brings lines back from the scrollback to fill the empty rows at the bottom.
    ///
    /// When lines wrap in a narrower grid, the engine pushes as many out at the top even if there
    /// is room below; widening it again would then leave them out of sight. Taking rows away from
    /// the bottom and adding them again makes it fetch lines from the scrollback.
    fn pull_back(&mut self, lines: usize) {
        let grid = self.term.grid();
        let rows = self.size.rows();
        let spare = (0..rows)
            .rev()
            .map(|row| Line(i32::from(row)))
            .take_while(|&line| line > grid.cursor.point.line && is_blank(&grid[line][..]))
            .count();
        let pulled = spare.min(lines) as u16;
        if pulled > 0 {
            self.term
                .resize(GridSize(PaneSize::new(self.size.columns(), rows - pulled)));
            self.term.resize(GridSize(self.size));
        }
    }

    /// Returns the number of lines that the view is above the present. It is bounded so that callers can safely read a row.
    pub(super) fn offset(&self) -> usize {
        let grid = self.term.grid();
        grid.display_offset().min(grid.history_size())
    }

    /// Runs an action that scrolls the rows from `first` on, and keeps a view of the scrollback where it is.
    ///
    /// The engine moves the view with each line that scrolls, to keep it on its lines while lines go up
    /// into the scrollback. They do so only from the first row: if a lower row scrolls, the view would drift.
    #[inline]
    fn hold_view(&mut self, first: usize, scroll: impl FnOnce(&mut Term<VoidListener>)) {
        if first == 0 {
            return scroll(&mut self.term);
        }
        let before = self.term.grid().display_offset();
        scroll(&mut self.term);
        let after = self.term.grid().display_offset();
        if before != after {
            let offset = |lines| i32::try_from(lines).unwrap_or(i32::MAX);
            let back = Scroll::Delta(offset(before) - offset(after));
            self.term.scroll_display(back);
        }
    }

    /// Returns a row of the viewport, as wide as the pane.
    pub(super) fn row(&self, row: u16) -> &[Cell] {
        let grid = self.term.grid();
        let line = Line(i32::from(row)) - self.offset();
        &grid[line][..Column(usize::from(self.size.columns()))]
    }

    /// Returns a hash of the text of the screen below the scrollback. Repaints that change nothing
    /// do not change it, and neither do colours: it serves a mark that means "something new".
    pub(super) fn present(&self) -> u64 {
        let grid = self.term.grid();
        let mut hasher = DefaultHasher::new();
        for row in 0..self.size.rows() {
            for cell in &grid[Line(i32::from(row))][..] {
                hasher.write_u32(u32::from(cell.c));
            }
        }
        hasher.finish()
    }

    pub(super) fn cursor(&self) -> Cursor {
        let grid = self.term.grid();
        let row = usize::try_from(grid.cursor.point.line.0).unwrap_or(0) + self.offset();
        let in_view = row < usize::from(self.size.rows());
        let style = self.term.cursor_style();
        Cursor {
            column: (grid.cursor.point.column.0 as u16).min(self.size.columns() - 1),
            row: (row as u16).min(self.size.rows() - 1),
            visible: in_view && self.mode(TermMode::SHOW_CURSOR),
            shape: match style.shape {
                ansi::CursorShape::Underline => CursorShape::Underline,
                ansi::CursorShape::Beam => CursorShape::Bar,
                _ => CursorShape::Block,
            },
            blinking: style.blinking,
        }
    }

    fn mode(&self, mode: TermMode) -> bool {
        self.term.mode().contains(mode)
    }

    pub(super) fn modes(&self) -> Modes {
        Modes {
            app_cursor: self.mode(TermMode::APP_CURSOR),
            app_keypad: self.mode(TermMode::APP_KEYPAD),
            bracketed_paste: self.mode(TermMode::BRACKETED_PASTE),
            focus_events: self.mode(TermMode::FOCUS_IN_OUT),
            mouse: self.mouse(),
            sgr_mouse: self.mode(TermMode::SGR_MOUSE),
            utf8_mouse: self.mode(TermMode::UTF8_MOUSE),
            alternate_screen: self.mode(TermMode::ALT_SCREEN),
            alternate_scroll: self.mode(TermMode::ALTERNATE_SCROLL),
            kitty_flags: self.keyboard.flags,
            modify_other_keys: self.modify_other_keys,
        }
    }

    fn mouse(&self) -> MouseTracking {
        if self.mode(TermMode::MOUSE_MOTION) {
            MouseTracking::Motion
        } else if self.mode(TermMode::MOUSE_DRAG) {
            MouseTracking::Drag
        } else if self.mode(TermMode::MOUSE_REPORT_CLICK) {
            MouseTracking::Click
        } else if self.x10_mouse {
            MouseTracking::X10
        } else {
            MouseTracking::None
        }
    }

    pub(super) fn report(&mut self, fact: ScreenFact) {
        if self.facts.len() < FACT_LIMIT {
            self.facts.push(fact);
        }
    }

    pub(super) fn reply(&mut self, bytes: &str) {
        self.replies.push(bytes.as_bytes().to_vec());
    }

    fn set_title_text(&mut self, title: String) {
        if title != self.title {
            self.title.clone_from(&title);
            self.report(ScreenFact::Title(title));
        }
    }

    fn enter_alternate(&mut self, enter: bool) {
        if self.mode(TermMode::ALT_SCREEN) != enter {
            self.term.swap_alt();
            std::mem::swap(&mut self.keyboard, &mut self.other_keyboard);
            std::mem::swap(&mut self.saved_origin, &mut self.other_saved_origin);
            self.main_saved = None;
        }
    }

    /// Applies modes 47 and 1047: the screens are swapped and the cursor stays, and each screen has a saved cursor of its own.
    fn enter_alternate_in_place(&mut self, enter: bool) {
        if self.mode(TermMode::ALT_SCREEN) == enter {
            return;
        }
        if enter {
            let saved = self.term.grid().saved_cursor.clone();
            self.enter_alternate(true);
            self.main_saved = Some(saved);
        } else {
            let (cursor, saved) = (self.term.grid().cursor.clone(), self.main_saved.take());
            self.enter_alternate(false);
            let grid = self.term.grid_mut();
            grid.cursor = cursor;
            if let Some(mut saved) = saved {
                // The screen may have shrunk since.
                let (last_line, last_column) = (grid.bottommost_line(), grid.last_column());
                saved.point.line = saved.point.line.min(last_line);
                saved.point.column = saved.point.column.min(last_column);
                grid.saved_cursor = saved;
            }
        }
    }

    /// Reports whether the screen is empty.
    fn is_blank(&self) -> bool {
        let grid = self.term.grid();
        (0..self.size.rows()).all(|row| is_blank(&grid[Line(i32::from(row))][..]))
    }

    /// Ends the line above the cursor's, because its continuation is erased. Otherwise it would be joined
    /// with the text that is written there next, in copies and in a wider grid.
    fn break_wrap(&mut self) {
        let grid = self.term.grid_mut();
        let above = grid.cursor.point.line - 1_i32;
        if above >= grid.topmost_line() {
            let last = grid.last_column();
            grid[above][last].flags.remove(Flags::WRAPLINE);
        }
    }

    /// Performs DECSTR, which resets the way that text is written, not the content of the screen.
    pub(super) fn soft_reset(&mut self) {
        self.term
            .unset_private_mode(NamedPrivateMode::CursorKeys.into());
        for mode in [NamedPrivateMode::LineWrap, NamedPrivateMode::ShowCursor] {
            self.term.set_private_mode(mode.into());
        }
        self.term.unset_mode(Mode::Named(NamedMode::Insert));
        self.term.unset_keypad_application_mode();
        self.term.terminal_attribute(Attr::Reset);
        self.term.set_hyperlink(None);
        for index in [
            CharsetIndex::G0,
            CharsetIndex::G1,
            CharsetIndex::G2,
            CharsetIndex::G3,
        ] {
            self.term.configure_charset(index, StandardCharset::Ascii);
        }
        self.term.set_active_charset(CharsetIndex::G0);
        self.term.grid_mut().saved_cursor = SavedCursor::default();
        self.forget_margins();
        self.full_region();
    }

    /// Makes the whole screen scroll, and leaves the cursor where it is.
    fn full_region(&mut self) {
        let point = self.term.grid().cursor.point;
        self.reset_margins();
        self.term.set_scrolling_region(1, None);
        self.term.goto(point.line.0, point.column.0);
    }

    pub(super) fn reset_modes(&mut self) {
        self.enter_alternate(false);
        self.soft_reset();
        let off = [
            NamedPrivateMode::ReportMouseClicks,
            NamedPrivateMode::ReportCellMouseMotion,
            NamedPrivateMode::ReportAllMouseMotion,
            NamedPrivateMode::SgrMouse,
            NamedPrivateMode::Utf8Mouse,
            NamedPrivateMode::ReportFocusInOut,
            NamedPrivateMode::BracketedPaste,
        ];
        for mode in off {
            self.term.unset_private_mode(mode.into());
        }
        self.term
            .set_private_mode(NamedPrivateMode::AlternateScroll.into());
        self.term
            .unset_mode(Mode::Named(NamedMode::LineFeedNewLine));
        self.judge();
        self.term.set_cursor_style(None);
        self.forget_keys();
        self.scheme_reports = false;
        for index in 0..=NamedColor::Cursor as usize {
            self.term.reset_color(index);
        }
        self.titles.clear();
        self.replies.clear();
    }

    fn forget_keys(&mut self) {
        self.keyboard = Keyboard::default();
        self.other_keyboard = Keyboard::default();
        self.modify_other_keys = 0;
        self.x10_mouse = false;
    }

    /// Returns the template of the cells that are written next.
    fn template(&mut self) -> &mut Cell {
        &mut self.term.grid_mut().cursor.template
    }

    /// Sets whether the text written from now on has a line above it.
    #[inline]
    pub(super) fn set_overline(&mut self, on: bool) {
        let template = self.template();
        let has = template.zerowidth().is_some_and(|all| !all.is_empty());
        if has != on {
            set_companions(template, on.then_some(OVERLINE));
        }
    }

    /// Reports whether the cell that a zero-width character would join is full.
    fn cluster_is_full(&self) -> bool {
        let grid = self.term.grid();
        // At the start of a row there is no character before it, and it joins the first cell.
        let first = Point::new(grid.cursor.point.line, Column(0));
        grid[self.before_cursor().unwrap_or(first)]
            .zerowidth()
            .is_some_and(|joined| joined.len() >= ZERO_WIDTH_LIMIT)
    }

    /// Returns the shared copy of a link, if the link is valid.
    fn link(&mut self, link: ansi::Hyperlink) -> Option<Hyperlink> {
        let id = link.id.unwrap_or_default();
        if link.uri.len() > LINK_LIMIT
            || id.len() > LINK_LIMIT
            || stripped(&link.uri, LINK_LIMIT) != link.uri
        {
            return None;
        }
        let key = (id, link.uri);
        if let Some(known) = self.links.known.get(&key) {
            return Some(known.clone());
        }
        if self.links.known.len() >= LINK_COUNT && !self.sweep_links() {
            return None;
        }
        let fresh = Hyperlink::new(Some(&key.0), key.1.clone());
        self.links.known.insert(key, fresh.clone());
        Some(fresh)
    }

    /// Forgets the links that no cell has any more; returns false if that made no room. A sweep reads the whole
    /// grid, so after one that freed nothing the next waits for as many links as the table holds.
    fn sweep_links(&mut self) -> bool {
        if self.links.refused.is_multiple_of(LINK_COUNT) {
            let grid = self.term.grid();
            let mut live = HashMap::new();
            for line in grid.topmost_line().0..=grid.bottommost_line().0 {
                for link in grid[Line(line)][..].iter().filter_map(Cell::hyperlink) {
                    live.insert((link.id().to_owned(), link.uri().to_owned()), link);
                }
            }
            self.links.known = live;
        }
        let room = self.links.known.len() < LINK_COUNT;
        self.links.refused = if room { 0 } else { self.links.refused + 1 };
        room
    }
}

/// The mouse modes of which at most one is on.
const MOUSE_MODES: [NamedPrivateMode; 3] = [
    NamedPrivateMode::ReportMouseClicks,
    NamedPrivateMode::ReportCellMouseMotion,
    NamedPrivateMode::ReportAllMouseMotion,
];
