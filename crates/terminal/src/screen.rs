//! The emulator: bytes in; cells, title, replies and deadlines out. No file, socket or clock.
//!
//! ```text
//!   bytes ─▶ string cap ─▶ side channel (one step ahead) ─▶ engine = alacritty's Term behind our Handler
//!                            │ findings              │ cells, modes
//!                            └────▶ replies, facts ◀─┘
//! ```
//!
//! **Replies** have one owner, the engine: our `Handler` answers the queries that the engine's parser knows, the
//! side channel's findings trigger the rest, and the engine's own replies are never used. Because the
//! engine is brought to the same byte before a finding is acted on, replies come in the order of the
//! queries. Each is built from a fixed template and our own state, never from the sender's bytes;
//! a title report, a clipboard read and the answerback are never given.
//!
//! **Synchronized frames** are never seen half-drawn. One that has not arrived completely waits, because its last bytes are on
//! their way. One that contains a query, or is too long to wait for, is applied at once, so that its queries are
//! answered at once too; until it ends, the screen *shows* a copy of the cells taken when it began. A frame ends with its
//! end mark or at its deadline, whichever is first.
//!
//! Known limits: `CSI > m` without parameters does not reset `modifyOtherKeys`; mode 47 clears the
//! alternate screen when it enters it.

use std::ops::Range;
use std::time::{Duration, Instant};

use alacritty_terminal::event::VoidListener;
use alacritty_terminal::grid::{Dimensions, Scroll as GridScroll};
use alacritty_terminal::index::Line;
use alacritty_terminal::term::cell::{Cell, Hyperlink};
use alacritty_terminal::term::{Config, Osc52, Term, TermDamage, TermMode};
use vte::ansi::{NamedColor, Processor, Timeout};

use super::copy::{CopyMark, CopyOrder, CopyOutcome};
use super::side_channel::{Finding, SideChannel, StringCap, plain};
use super::{ColourScheme, HostPalette, Modes, PaneSize, begun_character};

use cells::{
    attributes, cell_text, colour, drawn_row, is_wrapped, push_row, shown_width, trim_line,
};
use copy::Still;
use damage::Drawn;
use engine::{Engine, GridSize, VERSION_REPLY};

pub use super::side_channel::{Mark, Progress, ScreenFact};
pub use damage::Patch;

mod cells;
mod copy;
mod damage;
pub(super) mod engine;
pub mod widths;

/// The time for which a synchronized frame may hide the drawing: long enough for a slow frame, short
/// enough that a program that died inside one does not look frozen.
const FRAME_LIMIT: Duration = Duration::from_millis(150);

/// The mark that ends a synchronized frame, as programs send it.
const FRAME_END: &[u8] = b"\x1b[?2026l";

/// The longest frame that waits until it is complete, in bytes. Bytes beyond it are applied as they come, so that little is
/// left to do when the last of them arrives; that is worth the copy of the cells that it costs.
const WAITING_FRAME: usize = 32 * 1024;

/// The byte that cancels a half-read sequence in the parser.
const CAN: u8 = 0x18;

const ESC: u8 = 0x1b;

/// A distance to scroll the view.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scroll {
    /// Scrolls by this many lines; positive is towards the past.
    Lines(i32),
    /// Scrolls one page towards the past.
    PageUp,
    /// Scrolls one page towards the present.
    PageDown,
    /// Scrolls to the oldest line.
    Top,
    /// Scrolls to the present.
    Bottom,
}

/// A cell's colour as the child named it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Colour {
    /// The terminal's default.
    Default,
    /// One of the 256 palette colours.
    Indexed(u8),
    /// A colour by its parts.
    Rgb(u8, u8, u8),
}

/// The kinds of underline.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Underline {
    /// The absence of an underline.
    #[default]
    None,
    /// A single line.
    Single,
    /// Two lines.
    Double,
    /// A wavy line.
    Curly,
    /// A dotted line.
    Dotted,
    /// A dashed line.
    Dashed,
}

/// The style of a cell's text.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Attributes {
    /// True if the text is bold.
    pub bold: bool,
    /// True if the text is faint.
    pub dim: bool,
    /// True if the text is slanted.
    pub italic: bool,
    /// True if the text and background colours are swapped.
    pub inverse: bool,
    /// True if the text is not shown.
    pub hidden: bool,
    /// True if the text is struck through.
    pub strike: bool,
    /// True if the text blinks.
    pub blink: bool,
    /// True if there is a line above the text.
    pub overline: bool,
    /// The kind of underline.
    pub underline: Underline,
}

/// One unit of text in the viewport; the second half of a wide character is not visited.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CellView<'a> {
    /// The column in the viewport, from 0.
    pub column: u16,
    /// The row in the viewport, from 0.
    pub row: u16,
    /// The character with its zero-width companions; a space if the cell is empty.
    pub text: &'a str,
    /// The number of cells that it takes: 1 or 2.
    pub width: u16,
    /// The text colour.
    pub foreground: Colour,
    /// The background colour.
    pub background: Colour,
    /// The underline's own colour, if it has one.
    pub underline_colour: Option<Colour>,
    /// The style of the text.
    pub attributes: Attributes,
    /// The target that it links to: bounded and free of controls, but of any scheme.
    pub hyperlink: Option<&'a str>,
    /// The child's own id for the link; empty if it gave none.
    pub link_id: &'a str,
}

/// The shapes of a cursor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CursorShape {
    /// A full cell.
    Block,
    /// A line below the cell.
    Underline,
    /// A line before the cell.
    Bar,
}

/// The cursor in viewport cells.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cursor {
    /// The column, always inside the viewport.
    pub column: u16,
    /// The row, always inside the viewport.
    pub row: u16,
    /// True if the child shows it and it is not scrolled out of view. The position is valid even if not:
    /// input methods open there.
    pub visible: bool,
    /// The shape of the cursor.
    pub shape: CursorShape,
    /// True if it blinks.
    pub blinking: bool,
}

/// The emulated terminal of one pane.
pub struct Screen {
    engine: Engine,
    processor: Processor<NeverHold>,
    /// True if the parser waits for the rest of a character, which the next bytes must not overtake.
    begun: bool,
    side_channel: SideChannel,
    cap: StringCap,
    /// The first bytes of a character whose last bytes have not come yet.
    held: Vec<u8>,
    /// A frame that waits until it is complete, without its begin mark; `None` if no frame waits.
    waiting: Option<Vec<u8>>,
    frozen: Option<Frozen>,
    deadline: Option<Instant>,
    revision: u64,
    /// The time until which the child is expected to redraw its screen, because its size has changed.
    redraw_until: Option<Instant>,
    /// The still that is read in copy mode, while the live screen continues behind it.
    still: Option<Box<Still>>,
    /// A hash of the screen's content when the view left it for the scrollback.
    left: Option<u64>,
    drawn: Drawn,
    /// True if the view was in the scrollback when all of it was last drawn.
    drawn_scrolled: bool,
}

/// A screen as text.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DrawnText {
    /// The rows from top to bottom.
    pub rows: Vec<DrawnRow>,
    /// The cursor's column and row, in cells from 0; also of a cursor that is hidden.
    pub cursor: (u16, u16),
}

/// One row of a screen as text, without trailing blanks.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DrawnRow {
    /// The text of the row.
    pub text: String,
    /// The same text with a blank in place of each faint character.
    pub solid: String,
}

/// A timeout that makes the parser never hold bytes back: this file handles frames (see its top).
#[derive(Default)]
struct NeverHold;

impl Timeout for NeverHold {
    fn set_timeout(&mut self, _duration: Duration) {}

    fn clear_timeout(&mut self) {}

    fn pending_timeout(&self) -> bool {
        false
    }
}

/// The content that is shown while a frame is being drawn.
struct Frozen {
    cells: Vec<Cell>,
    size: PaneSize,
    cursor: Cursor,
}

impl Screen {
    /// Creates an empty screen that keeps this many lines of scrollback.
    pub fn new(size: PaneSize, scrollback_lines: usize) -> Self {
        let config = Config {
            scrolling_history: scrollback_lines,
            osc52: Osc52::Disabled,
            ..Config::default()
        };
        Self {
            engine: Engine::new(Term::new(config, &GridSize(size), VoidListener), size),
            processor: Processor::new(),
            begun: false,
            side_channel: SideChannel::default(),
            cap: StringCap::default(),
            held: Vec::new(),
            waiting: None,
            frozen: None,
            deadline: None,
            revision: 0,
            redraw_until: None,
            still: None,
            left: None,
            drawn: Drawn::default(),
            drawn_scrolled: false,
        }
    }

    /// Sets whether the lines above the screen stay when the child asks to clear them (`CSI 3 J`).
    pub fn set_keeps_scrollback(&mut self, keeps: bool) {
        self.engine.keeps_scrollback = keeps;
    }

    /// Records that the child has been given a new size and so will redraw the screen: if it clears the screen
    /// for that, the text comes again, so it is not kept above the screen too.
    pub fn expect_redraw(&mut self, until: Instant) {
        self.redraw_until = Some(until);
    }

    /// Takes bytes from the child; `now` only serves the deadline of synchronized frames.
    pub fn feed(&mut self, bytes: &[u8], now: Instant) {
        self.expire(now);
        self.redraw_until = self.redraw_until.filter(|until| now < *until);
        self.engine.redraws = self.redraw_until.is_some();
        self.take(bytes, Some(now));
    }

    /// Takes bytes of a recording: synchronized frames are not held back, so that there is no deadline.
    pub fn feed_at_once(&mut self, bytes: &[u8]) {
        self.take(bytes, None);
    }

    /// Reports whether a synchronized frame is being drawn.
    pub fn is_in_frame(&self) -> bool {
        self.engine.in_frame
    }

    fn take(&mut self, bytes: &[u8], now: Option<Instant>) {
        let rest = self.complete_held(bytes, now);
        let (whole, begun) = rest.split_at(rest.len() - begun_character(rest));
        self.guard(whole, now);
        self.held.extend_from_slice(begun);
        if self.frozen.is_none() && self.waiting.is_none() && !bytes.is_empty() {
            self.revision += 1;
        }
    }

    /// Joins a character cut by the end of the last bytes, and returns the bytes after it. The parser
    /// would do it itself, but (vte 0.15) it loses a character that follows within the next three
    /// bytes.
    fn complete_held<'a>(&mut self, bytes: &'a [u8], now: Option<Instant>) -> &'a [u8] {
        let mut rest = bytes;
        while !self.held.is_empty() && !rest.is_empty() {
            self.held.push(rest[0]);
            if begun_character(&self.held) == self.held.len() {
                rest = &rest[1..];
                continue;
            }
            // The character is complete, or broken by this byte: then the byte begins an item of its own.
            if std::str::from_utf8(&self.held).is_ok() {
                rest = &rest[1..];
            } else {
                self.held.pop();
            }
            let character = std::mem::take(&mut self.held);
            self.guard(&character, now);
            if std::str::from_utf8(&character).is_err() {
                // Otherwise the parser would wait for the rest of a character that does not continue.
                self.read(&[0], now);
            }
        }
        rest
    }

    /// Passes on the bytes that the string cap lets through.
    fn guard(&mut self, bytes: &[u8], now: Option<Instant>) {
        let mut rest = bytes;
        loop {
            if self.cap.is_outside() && self.waiting.is_none() {
                rest = self.plain(rest);
            }
            if rest.is_empty() {
                return;
            }
            // One sequence at a time, so that plain bytes after it come back here; a frame that waits takes all.
            let next = match self.waiting {
                None => memchr::memchr(ESC, &rest[1..]).map_or(rest.len(), |at| at + 1),
                Some(_) => rest.len(),
            };
            let passage = self.cap.next(&rest[..next]);
            self.read(&rest[..passage.passed], now);
            if passage.overflow {
                tracing::warn!("a string sequence of over 1 MiB from the pane was dropped");
                self.wait_no_more(now);
                self.processor = Processor::new();
                self.side_channel.forget_sequence();
            }
            if passage.title {
                self.read(&[CAN], now);
            }
            rest = &rest[passage.consumed..];
        }
    }

    /// Applies bytes that were let through, or adds them to the waiting frame that they belong to.
    fn read(&mut self, bytes: &[u8], now: Option<Instant>) {
        let Some(waiting) = &mut self.waiting else {
            return self.advance(bytes, now);
        };
        // The end mark may have been cut in two.
        let seen = waiting.len().saturating_sub(FRAME_END.len());
        waiting.extend_from_slice(bytes);
        let whole = memchr::memmem::find(&waiting[seen..], FRAME_END).is_some();
        if whole || waiting.len() > WAITING_FRAME || asks(&waiting[seen..]) {
            self.wait_no_more(now);
        }
    }

    /// Applies the waiting frame, if there is one.
    fn wait_no_more(&mut self, now: Option<Instant>) {
        if let Some(waiting) = self.waiting.take() {
            if memchr::memmem::find(&waiting, FRAME_END).is_none() {
                self.frozen = Some(self.freeze());
            }
            self.advance(&waiting, now);
        }
    }

    /// Applies the bytes that need neither gate nor side channel, which are most of a child's output, and returns the rest.
    fn plain<'a>(&mut self, bytes: &'a [u8]) -> &'a [u8] {
        let mut rest = bytes;
        while !rest.is_empty() && self.side_channel.is_between_sequences() {
            if !self.begun {
                rest = &rest[self.engine.write(rest)..];
                let usual = engine::apply(&mut self.engine, rest);
                if usual > 0 {
                    rest = &rest[usual..];
                    continue;
                }
            }
            let (part, after) = rest.split_at(plain(rest));
            if part.is_empty() {
                break;
            }
            self.processor.advance(&mut self.engine, part);
            self.begun = begun_character(part) > 0;
            rest = after;
        }
        rest
    }

    /// Advances side channel and engine together.
    fn advance(&mut self, bytes: &[u8], now: Option<Instant>) {
        let mut rest = bytes;
        loop {
            rest = self.plain(rest);
            if rest.is_empty() {
                return;
            }
            self.begun = false;
            let (done, finding) = self.side_channel.next(rest);
            let (step, after) = rest.split_at(done);
            match (finding, step.split_last()) {
                (Some(Finding::Repeat(count)), Some((&last, before))) => {
                    self.processor.advance(&mut self.engine, before);
                    self.repeat(count, last);
                }
                (Some(Finding::EndlessColour), Some((&last, _))) => {
                    self.processor = Processor::new();
                    if last == ESC {
                        self.processor.advance(&mut self.engine, &[ESC]);
                    }
                }
                (Some(finding), _) => {
                    self.processor.advance(&mut self.engine, step);
                    if self.handle(finding, after, now) {
                        return;
                    }
                }
                (None, _) => self.processor.advance(&mut self.engine, step),
            }
            rest = after;
        }
    }

    /// Repeats a character, at most one row's worth: REP costs the sender a few bytes but costs us one step for each character.
    fn repeat(&mut self, count: u16, last: u8) {
        let limit = self.engine.size.columns();
        if count <= limit {
            self.processor.advance(&mut self.engine, &[last]);
        } else {
            self.processor.advance(&mut self.engine, &[CAN]);
            self.processor
                .advance(&mut self.engine, format!("\x1b[{limit}b").as_bytes());
        }
    }

    /// Acts on a finding of the side channel; returns true if the bytes after it are handled, too.
    fn handle(&mut self, finding: Finding, after: &[u8], now: Option<Instant>) -> bool {
        match finding {
            Finding::FrameBegin => return self.begin_frame(after, now),
            Finding::FrameEnd => self.end_frame(),
            Finding::Fact(fact) => self.engine.report(fact),
            Finding::SoftReset => self.engine.soft_reset(),
            Finding::Overline(on) => self.engine.set_overline(on),
            Finding::VersionQuery => self.engine.reply(VERSION_REPLY),
            Finding::ExtendedCursorQuery => self.engine.report_cursor("?"),
            Finding::SchemeQuery => self.engine.report_scheme(),
            Finding::CellSizeQuery => self.engine.report_cell_size(),
            Finding::CapabilityQuery(names) => self.engine.report_capabilities(&names),
            Finding::SettingQuery(setting) => self.engine.report_setting(setting),
            // The caller handles these, because it has the final byte.
            Finding::Repeat(_) | Finding::EndlessColour => {}
        }
        false
    }

    /// Begins a frame; returns true if it waits, or waited, and has taken all bytes after it.
    fn begin_frame(&mut self, after: &[u8], now: Option<Instant>) -> bool {
        // A second begin does not extend the first, or a stream of begins would hide all output.
        if self.engine.in_frame {
            return false;
        }
        self.engine.in_frame = true;
        let Some(now) = now else { return false };
        self.deadline = Some(now + FRAME_LIMIT);
        // A frame that ends within these bytes is never seen half-drawn.
        let waits = memchr::memmem::find(after, FRAME_END).is_none();
        if waits {
            self.waiting = Some(Vec::new());
            self.read(after, Some(now));
        }
        waits
    }

    fn freeze(&self) -> Frozen {
        let (size, cursor) = (self.engine.size, self.engine.cursor());
        let mut cells = Vec::with_capacity(usize::from(size.columns()) * usize::from(size.rows()));
        for row in 0..size.rows() {
            cells.extend_from_slice(self.engine.row(row));
        }
        Frozen {
            cells,
            size,
            cursor,
        }
    }

    fn end_frame(&mut self) {
        self.engine.in_frame = false;
        self.deadline = None;
        self.thaw();
    }

    fn thaw(&mut self) {
        self.frozen = None;
        self.revision += 1;
    }

    /// Returns the latest time at which the frame being drawn must be shown: call [`Self::expire`] then.
    pub fn deadline(&self) -> Option<Instant> {
        self.deadline
    }

    /// Shows an unfinished frame whose deadline has passed.
    pub fn expire(&mut self, now: Instant) {
        if self.deadline.is_some_and(|deadline| now >= deadline) {
            self.wait_no_more(Some(now));
            self.end_frame();
        }
    }

    /// Returns and removes the replies owed to the child, in the order of its queries; each must be one write.
    pub fn take_replies(&mut self) -> Vec<Vec<u8>> {
        std::mem::take(&mut self.engine.replies)
    }

    /// Returns and removes the facts that the child reported besides the grid's content.
    pub fn take_facts(&mut self) -> Vec<ScreenFact> {
        std::mem::take(&mut self.engine.facts)
    }

    /// Changes the size; the child must be notified through its PTY.
    pub fn resize(&mut self, size: PaneSize) {
        if size != self.engine.size {
            self.wait_no_more(None);
            self.engine.resize(size);
            if let Some(still) = &mut self.still {
                still.resize(size);
            }
            self.thaw();
        }
    }

    /// Resets every mode that a dead child left on, and its half-sent sequence; its text stays.
    pub fn reset(&mut self) {
        // That includes a frame that it died in.
        self.wait_no_more(None);
        self.processor = Processor::new();
        self.side_channel = SideChannel::default();
        self.cap = StringCap::default();
        self.held.clear();
        self.end_frame();
        self.engine.reset_modes();
    }

    /// Returns the modes by which input must be encoded.
    pub fn modes(&self) -> Modes {
        self.engine.modes()
    }

    /// Returns the cursor to be shown: the reader's in copy mode.
    pub fn cursor(&self) -> Cursor {
        if let Some(still) = &self.still {
            return still.shown_cursor();
        }
        self.frozen
            .as_ref()
            .map_or_else(|| self.engine.cursor(), |frozen| frozen.cursor)
    }

    /// Returns the title that the child set, cleaned; empty if there is none.
    pub fn title(&self) -> &str {
        &self.engine.title
    }

    /// Returns the size in cells.
    pub fn size(&self) -> PaneSize {
        self.engine.size
    }

    /// Returns a number that changes whenever something visible may have changed.
    pub fn revision(&self) -> u64 {
        self.revision
    }

    /// Moves the view over the scrollback.
    pub fn scroll(&mut self, scroll: Scroll) {
        let before = self.scroll_offset();
        let scroll = match scroll {
            Scroll::Lines(lines) => GridScroll::Delta(lines.clamp(-1_000_000, 1_000_000)),
            Scroll::PageUp => GridScroll::PageUp,
            Scroll::PageDown => GridScroll::PageDown,
            Scroll::Top => GridScroll::Top,
            Scroll::Bottom => GridScroll::Bottom,
        };
        match &mut self.still {
            Some(still) => still.scroll(scroll),
            None => self.engine.term.scroll_display(scroll),
        }
        let after = self.scroll_offset();
        if self.still.is_none() {
            self.left = match (before, after) {
                (_, 0) => None,
                (0, _) => Some(self.engine.present()),
                _ => self.left,
            };
        }
        if before != after {
            self.thaw();
        }
    }

    /// Returns the number of lines that the view is above the present, or above the end of the still in copy mode.
    pub fn scroll_offset(&self) -> usize {
        self.viewed().offset()
    }

    /// Returns the number of lines above the present, or above the end of the still in copy mode.
    pub fn history_len(&self) -> usize {
        self.viewed().term.grid().history_size()
    }

    /// Carries out an order of the reader in copy mode.
    pub fn copy(&mut self, order: &CopyOrder) -> CopyOutcome {
        match (order, &mut self.still) {
            (CopyOrder::Enter, Some(_)) | (CopyOrder::Leave, None) => {
                return CopyOutcome::default();
            }
            (CopyOrder::Enter | CopyOrder::Refresh, _) => {
                let shown = self.frozen.as_ref().map(|frozen| &frozen.cells[..]);
                let still = Still::take(&self.engine, shown, self.engine.present());
                self.still = Some(Box::new(still));
            }
            (CopyOrder::Leave, Some(_)) => self.still = None,
            (_, None) => return CopyOutcome::default(),
            (order, Some(still)) => {
                let outcome = still.run(order);
                self.revision += 1;
                return outcome;
            }
        }
        self.revision += 1;
        CopyOutcome::default()
    }

    /// Reports whether the child has changed its screen since the view left it.
    pub fn has_new_output(&self) -> bool {
        let seen = self.still.as_ref().map(|still| still.taken).or(self.left);
        seen.is_some_and(|seen| seen != self.engine.present())
    }

    /// Visits the highlights in copy mode, one part of a row at a time: row, first column, last column.
    pub fn for_each_mark(&self, visit: impl FnMut(u16, u16, u16, CopyMark)) {
        if let Some(still) = &self.still {
            still.marks(visit);
        }
    }

    /// Sets the host terminal's colours, for the child's colour queries.
    pub fn set_palette(&mut self, palette: HostPalette) {
        self.engine.palette = palette;
    }

    /// Sets the host terminal's colour scheme; a child that set mode 2031 is notified of a change.
    pub fn set_colour_scheme(&mut self, scheme: ColourScheme) {
        if self.engine.scheme.replace(scheme) != Some(scheme) && self.engine.scheme_reports {
            self.engine.report_scheme();
        }
    }

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
    fn viewed(&self) -> &Engine {
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

/// Reports whether the bytes may contain a query, or another sequence whose effect the child waits for. Colours,
/// moves, erasures, private modes and titles are not such.
fn asks(bytes: &[u8]) -> bool {
    memchr::memchr_iter(ESC, bytes).any(|at| match &bytes[at + 1..] {
        [b'[', rest @ ..] => {
            let last = rest.iter().find(|byte| !matches!(byte, b' '..=b'?'));
            !matches!(
                last,
                None | Some(b'A'..=b'H' | b'J'..=b'M' | b'P' | b'X' | b'd' | b'h' | b'l' | b'm' | b'r')
            )
        }
        // A colour query has its question mark early.
        [b']', rest @ ..] => rest[..rest.len().min(32)].contains(&b'?'),
        [b'P' | b'Z', ..] => true,
        _ => false,
    })
}

#[cfg(test)]
mod tests;
