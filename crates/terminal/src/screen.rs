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

use std::time::{Duration, Instant};

use alacritty_terminal::event::VoidListener;
use alacritty_terminal::grid::{Dimensions, Scroll as GridScroll};
use alacritty_terminal::term::cell::Cell;
use alacritty_terminal::term::{Config, Osc52, Term};
use vte::ansi::{Processor, Timeout};

use super::copy::{CopyMark, CopyOrder, CopyOutcome};
use super::side_channel::{SideChannel, StringCap};
use super::{ColourScheme, HostPalette, Modes, PaneSize};

use copy::Still;
use damage::Drawn;
use engine::{Engine, GridSize};

pub use super::side_channel::{Mark, Progress, ScreenFact};
pub use damage::Patch;
pub use view::{
    Attributes, CellView, Colour, Cursor, CursorShape, DrawnRow, DrawnText, Scroll, Underline,
};

mod cells;
mod copy;
mod damage;
pub(super) mod engine;
mod feeding;
mod shown;
mod view;
pub mod widths;

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

    /// Reports whether a synchronized frame is being drawn.
    pub fn is_in_frame(&self) -> bool {
        self.engine.in_frame
    }

    /// Returns the latest time at which the frame being drawn must be shown: call [`Self::expire`] then.
    pub fn deadline(&self) -> Option<Instant> {
        self.deadline
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
}

#[cfg(test)]
mod tests;
