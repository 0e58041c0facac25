//! The emulator: bytes in; cells, title, replies and deadlines out. No file, socket or clock.
//!
//! ```text
//!   bytes ─▶ string cap ─▶ tap (one step ahead) ─▶ engine = alacritty's Term behind our Handler
//!                            │ signals               │ cells, modes
//!                            └────▶ replies, facts ◀─┘
//! ```
//!
//! **Replies** have one owner, this file: our [`Handler`] answers what the engine's parser knows, the
//! tap's signals trigger the rest, and the engine's own answers are never called for. Because the
//! engine is brought to the same byte before a signal is acted on, replies come in the order of the
//! questions. Each is built from a fixed template and our own state, never from the sender's bytes;
//! a title report, a clipboard read and the answerback are never given.
//!
//! **Synchronized frames** are applied at once, so that questions inside a frame are answered at
//! once too; what is *shown* meanwhile is a copy of the cells taken when the frame began. The frame
//! ends with its end mark or at its deadline, whichever is first.
//!
//! Known limits: a variation selector does not widen its character and joined emoji are not one
//! unit (mode 2027 is reported as permanently reset); `CSI > m` without parameters does not reset
//! `modifyOtherKeys`; mode 47 clears the alternate screen when it enters it.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use alacritty_terminal::event::VoidListener;
use alacritty_terminal::grid::{Dimensions, Scroll as GridScroll};
use alacritty_terminal::index::{Column, Line};
use alacritty_terminal::term::cell::{Cell, Flags, Hyperlink};
use alacritty_terminal::term::{Config, Osc52, Term, TermMode};
use unicode_width::UnicodeWidthChar;
use vte::ansi::{
    self, Attr, CharsetIndex, ClearMode, Color, Handler, KeyboardModes, KeyboardModesApplyBehavior,
    LineClearMode, Mode, ModifyOtherKeys, NamedColor, NamedMode, NamedPrivateMode, PrivateMode,
    Processor, ScpCharPath, ScpUpdateMode, StandardCharset, TabulationClearMode, Timeout,
};

use vte::ansi::cursor_icon::CursorIcon;

use super::tap::{Setting, Signal, StringCap, Tap, decode_base64};
use super::{ColourScheme, HostPalette, Modes, MouseTracking, PaneSize, Rgb};
use crate::clean::stripped;

pub use super::tap::{Mark, Progress, ScreenFact};

/// How long a synchronized frame may hide what was drawn: long enough for a slow frame, short
/// enough that a program which died inside one does not look frozen.
const FRAME_LIMIT: Duration = Duration::from_millis(150);

/// The mark that ends a synchronized frame, as programs send it.
const FRAME_END: &[u8] = b"\x1b[?2026l";

/// The longest title in characters.
const TITLE_LIMIT: usize = 256;

/// The most titles a child may push.
const TITLE_DEPTH: usize = 16;

/// The most keyboard modes a child may push; the oldest is forgotten beyond it.
const KEYBOARD_DEPTH: usize = 32;

/// The most zero-width characters one cell takes. Real clusters have under ten; without a bound one
/// cell could eat all memory.
const ZERO_WIDTH_LIMIT: usize = 16;

/// The longest link target in bytes (what browsers and other terminals accept).
const LINK_LIMIT: usize = 2083;

/// The most distinct links kept.
const LINK_COUNT: usize = 4096;

/// The most facts kept until the loop takes them; a flood of bells needs no more.
const FACT_LIMIT: usize = 256;

/// Cancels a half-read sequence in the parser.
const CAN: u8 = 0x18;

/// How far to scroll the view.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scroll {
    /// This many lines, positive is towards the past.
    Lines(i32),
    /// One page towards the past.
    PageUp,
    /// One page towards the present.
    PageDown,
    /// To the oldest line.
    Top,
    /// To the present.
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
    /// None.
    #[default]
    None,
    /// One line.
    Single,
    /// Two lines.
    Double,
    /// A wave.
    Curly,
    /// Dots.
    Dotted,
    /// Dashes.
    Dashed,
}

/// How a cell's text is drawn.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Attributes {
    /// Heavy.
    pub bold: bool,
    /// Faint.
    pub dim: bool,
    /// Slanted.
    pub italic: bool,
    /// Text and background colour change places.
    pub inverse: bool,
    /// Not shown.
    pub hidden: bool,
    /// Struck through.
    pub strike: bool,
    /// Underlined, and how.
    pub underline: Underline,
}

/// One unit of text in the viewport; the second half of a wide character is not visited.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CellView<'a> {
    /// Column in the viewport, from 0.
    pub column: u16,
    /// Row in the viewport, from 0.
    pub row: u16,
    /// The character with its zero-width companions; a space if the cell is empty.
    pub text: &'a str,
    /// The number of cells it takes: 1 or 2.
    pub width: u16,
    /// Text colour.
    pub foreground: Colour,
    /// Background colour.
    pub background: Colour,
    /// The underline's own colour, if it has one.
    pub underline_colour: Option<Colour>,
    /// How it is drawn.
    pub attributes: Attributes,
    /// The target it links to: bounded and free of controls, but of any scheme.
    pub hyperlink: Option<&'a str>,
}

/// The shapes of a cursor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CursorShape {
    /// A full cell.
    Block,
    /// A line below.
    Underline,
    /// A line before.
    Bar,
}

/// The cursor in viewport cells.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cursor {
    /// Column, always inside the viewport.
    pub column: u16,
    /// Row, always inside the viewport.
    pub row: u16,
    /// The child shows it, and it is not scrolled out of view. The position counts even when not:
    /// input methods open there.
    pub visible: bool,
    /// Its shape.
    pub shape: CursorShape,
    /// It blinks.
    pub blinking: bool,
}

/// The emulated terminal of one pane.
pub struct Screen {
    engine: Engine,
    processor: Processor<NeverHold>,
    tap: Tap,
    cap: StringCap,
    /// The first bytes of a character whose last ones have not come yet.
    held: Vec<u8>,
    frozen: Option<Frozen>,
    deadline: Option<Instant>,
    revision: u64,
}

/// Tells the parser never to hold bytes back: frames are this file's affair (see the top).
#[derive(Default)]
struct NeverHold;

impl Timeout for NeverHold {
    fn set_timeout(&mut self, _duration: Duration) {}

    fn clear_timeout(&mut self) {}

    fn pending_timeout(&self) -> bool {
        false
    }
}

/// What is shown while a frame is being drawn.
struct Frozen {
    cells: Vec<Cell>,
    size: PaneSize,
    cursor: Cursor,
}

/// The grid's dimensions.
struct GridSize(PaneSize);

impl Dimensions for GridSize {
    fn total_lines(&self) -> usize {
        self.screen_lines()
    }

    fn screen_lines(&self) -> usize {
        usize::from(self.0.rows())
    }

    /// The engine writes past the row's end when a wide character meets a grid of one column, so
    /// such a pane shows the first of two.
    fn columns(&self) -> usize {
        usize::from(self.0.columns()).max(2)
    }
}

impl Screen {
    /// An empty screen that keeps this many lines above itself.
    #[must_use]
    pub fn new(size: PaneSize, scrollback_lines: usize) -> Self {
        let config = Config {
            scrolling_history: scrollback_lines,
            osc52: Osc52::Disabled,
            ..Config::default()
        };
        Self {
            engine: Engine::new(Term::new(config, &GridSize(size), VoidListener), size),
            processor: Processor::new(),
            tap: Tap::default(),
            cap: StringCap::default(),
            held: Vec::new(),
            frozen: None,
            deadline: None,
            revision: 0,
        }
    }

    /// Takes bytes from the child; `now` only serves the deadline of synchronized frames.
    pub fn feed(&mut self, bytes: &[u8], now: Instant) {
        self.expire(now);
        let rest = self.complete_held(bytes, now);
        let (whole, begun) = rest.split_at(rest.len() - begun_character(rest));
        self.guard(whole, now);
        self.held.extend_from_slice(begun);
        if self.frozen.is_none() && !bytes.is_empty() {
            self.revision += 1;
        }
    }

    /// Joins a character cut by the end of the last bytes, and gives what follows it. The parser
    /// would do it itself, but (vte 0.15) it loses a character that follows within the next three
    /// bytes.
    fn complete_held<'a>(&mut self, bytes: &'a [u8], now: Instant) -> &'a [u8] {
        let mut rest = bytes;
        while !self.held.is_empty() && !rest.is_empty() {
            self.held.push(rest[0]);
            if begun_character(&self.held) == self.held.len() {
                rest = &rest[1..];
                continue;
            }
            // Whole, or broken by this byte: then the byte begins something of its own.
            if std::str::from_utf8(&self.held).is_ok() {
                rest = &rest[1..];
            } else {
                self.held.pop();
            }
            let character = std::mem::take(&mut self.held);
            self.guard(&character, now);
            if std::str::from_utf8(&character).is_err() {
                // The parser would wait for more of a character that does not go on.
                self.processor.advance(&mut self.engine, &[0]);
            }
        }
        rest
    }

    /// Lets through what the string cap passes.
    fn guard(&mut self, bytes: &[u8], now: Instant) {
        let mut rest = bytes;
        while !rest.is_empty() {
            let passage = self.cap.next(rest);
            self.read(&rest[..passage.passed], now);
            if passage.overflow {
                tracing::warn!("a string sequence of over 1 MiB from the pane was dropped");
                self.processor = Processor::new();
                self.tap.forget_sequence();
            }
            rest = &rest[passage.consumed..];
        }
    }

    /// Brings tap and engine forward together.
    fn read(&mut self, bytes: &[u8], now: Instant) {
        let mut rest = bytes;
        while !rest.is_empty() {
            let (done, signal) = self.tap.next(rest);
            let (step, after) = rest.split_at(done);
            match (signal, step.split_last()) {
                (Some(Signal::Repeat(count)), Some((&last, before))) => {
                    self.processor.advance(&mut self.engine, before);
                    self.repeat(count, last);
                }
                (Some(signal), _) => {
                    self.processor.advance(&mut self.engine, step);
                    self.obey(signal, after, now);
                }
                (None, _) => self.processor.advance(&mut self.engine, step),
            }
            rest = after;
        }
    }

    /// REP costs the sender a few bytes and us one step a character: a row's worth is enough.
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

    fn obey(&mut self, signal: Signal, after: &[u8], now: Instant) {
        match signal {
            Signal::FrameBegin => self.begin_frame(after, now),
            Signal::FrameEnd => self.end_frame(),
            Signal::Fact(fact) => self.engine.tell(fact),
            Signal::SoftReset => self.engine.soft_reset(),
            Signal::VersionQuery => self.engine.reply(VERSION_REPLY),
            Signal::ExtendedCursorQuery => self.engine.report_cursor("?"),
            Signal::SchemeQuery => self.engine.report_scheme(),
            Signal::CellSizeQuery => self.engine.report_cell_size(),
            Signal::CapabilityQuery(names) => self.engine.report_capabilities(&names),
            Signal::SettingQuery(setting) => self.engine.report_setting(setting),
            // Handled where the final byte is still in hand.
            Signal::Repeat(_) => {}
        }
    }

    fn begin_frame(&mut self, after: &[u8], now: Instant) {
        // A second begin does not extend the first, or a stream of begins would hide all output.
        if self.engine.in_frame {
            return;
        }
        self.engine.in_frame = true;
        self.deadline = Some(now + FRAME_LIMIT);
        // A frame that ends within these bytes is never seen half-drawn: no copy is needed.
        if memchr::memmem::find(after, FRAME_END).is_none() {
            self.frozen = Some(self.freeze());
        }
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

    /// When the frame being drawn must be shown at the latest: call [`Self::expire`] then.
    #[must_use]
    pub fn deadline(&self) -> Option<Instant> {
        self.deadline
    }

    /// Shows an unfinished frame whose time is up.
    pub fn expire(&mut self, now: Instant) {
        if self.deadline.is_some_and(|deadline| now >= deadline) {
            self.end_frame();
        }
    }

    /// The bytes owed to the child, in the order of its questions; each must be one write.
    pub fn take_replies(&mut self) -> Vec<Vec<u8>> {
        std::mem::take(&mut self.engine.replies)
    }

    /// What the child said to others than the grid.
    pub fn take_facts(&mut self) -> Vec<ScreenFact> {
        std::mem::take(&mut self.engine.facts)
    }

    /// Changes the size; the child must be told by its PTY.
    pub fn resize(&mut self, size: PaneSize) {
        if size != self.engine.size {
            self.engine.resize(size);
            self.thaw();
        }
    }

    /// Forgets every mode a dead child left on, and its half-sent sequence; what it wrote stays.
    pub fn reset(&mut self) {
        self.processor = Processor::new();
        self.tap = Tap::default();
        self.cap = StringCap::default();
        self.held.clear();
        self.end_frame();
        self.engine.reset_modes();
    }

    /// The modes input must be encoded by.
    #[must_use]
    pub fn modes(&self) -> Modes {
        self.engine.modes()
    }

    /// The cursor as it is to be shown.
    #[must_use]
    pub fn cursor(&self) -> Cursor {
        self.frozen
            .as_ref()
            .map_or_else(|| self.engine.cursor(), |frozen| frozen.cursor)
    }

    /// The title the child set, cleaned; empty if none.
    #[must_use]
    pub fn title(&self) -> &str {
        &self.engine.title
    }

    /// The size in cells.
    #[must_use]
    pub fn size(&self) -> PaneSize {
        self.engine.size
    }

    /// A number that changes whenever something visible may have changed.
    #[must_use]
    pub fn revision(&self) -> u64 {
        self.revision
    }

    /// Moves the view over the scrollback.
    pub fn scroll(&mut self, scroll: Scroll) {
        let before = self.scroll_offset();
        self.engine.term.scroll_display(match scroll {
            Scroll::Lines(lines) => GridScroll::Delta(lines.clamp(-1_000_000, 1_000_000)),
            Scroll::PageUp => GridScroll::PageUp,
            Scroll::PageDown => GridScroll::PageDown,
            Scroll::Top => GridScroll::Top,
            Scroll::Bottom => GridScroll::Bottom,
        });
        if before != self.scroll_offset() {
            self.thaw();
        }
    }

    /// How many lines the view is above the present.
    #[must_use]
    pub fn scroll_offset(&self) -> usize {
        self.engine.term.grid().display_offset()
    }

    /// How many lines there are above the present.
    #[must_use]
    pub fn history_len(&self) -> usize {
        self.engine.term.grid().history_size()
    }

    /// Takes the host terminal's colours, for the child's colour queries.
    pub fn set_palette(&mut self, palette: HostPalette) {
        self.engine.palette = palette;
    }

    /// Takes the host terminal's colour scheme; a child that set mode 2031 is told of a change.
    pub fn set_colour_scheme(&mut self, scheme: ColourScheme) {
        if self.engine.scheme.replace(scheme) != Some(scheme) && self.engine.scheme_reports {
            self.engine.report_scheme();
        }
    }

    /// Takes the size of a cell in pixels, for the child's size queries.
    pub fn set_cell_pixels(&mut self, width: u16, height: u16) {
        self.engine.cell_pixels = (width.max(1), height.max(1));
    }

    /// Visits the viewport's cells, row by row; nothing is allocated for a cell.
    pub fn for_each_cell(&self, mut visit: impl FnMut(CellView<'_>)) {
        let mut cluster = String::new();
        let colours = self.engine.term.colors();
        for row in 0..self.shown_size().rows() {
            let cells = self.shown_row(row);
            let mut taken = 0;
            for (column, cell) in (0_u16..).zip(cells) {
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
                    attributes: attributes(cell.flags),
                    hyperlink: link.as_ref().map(Hyperlink::uri),
                });
            }
        }
    }

    fn shown_size(&self) -> PaneSize {
        self.frozen
            .as_ref()
            .map_or(self.engine.size, |frozen| frozen.size)
    }

    fn shown_row(&self, row: u16) -> &[Cell] {
        match &self.frozen {
            Some(frozen) => {
                let columns = usize::from(frozen.size.columns());
                &frozen.cells[usize::from(row) * columns..][..columns]
            }
            None => self.engine.row(row),
        }
    }

    /// The viewport as plain text: a line for each row, without blanks at ends of lines and without
    /// empty lines at the end.
    #[must_use]
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

    /// The last lines of scrollback and screen as plain text, wrapped lines joined.
    #[must_use]
    pub fn tail_text(&self, lines: usize) -> String {
        let grid = self.engine.term.grid();
        let mut line = grid.bottommost_line();
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

/// The length of an unfinished character at the end of the bytes.
fn begun_character(bytes: &[u8]) -> usize {
    let tail = &bytes[bytes.len().saturating_sub(3)..];
    let Some(lead) = tail.iter().rposition(|byte| *byte >= 0xc0) else {
        return 0;
    };
    match std::str::from_utf8(&tail[lead..]) {
        Err(error) if error.error_len().is_none() => tail.len() - lead,
        _ => 0,
    }
}

fn is_blank(row: &[Cell]) -> bool {
    row.iter().all(|cell| *cell == Cell::default())
}

fn is_wrapped(row: &[Cell]) -> bool {
    row.last()
        .is_some_and(|cell| cell.flags.contains(Flags::WRAPLINE))
}

fn push_row(text: &mut String, row: &[Cell]) {
    let spacers = Flags::WIDE_CHAR_SPACER | Flags::LEADING_WIDE_CHAR_SPACER;
    for cell in row.iter().filter(|cell| !cell.flags.intersects(spacers)) {
        text.push(printable(cell.c));
        text.extend(cell.zerowidth().into_iter().flatten());
    }
}

fn trim_line(text: &mut String) {
    text.truncate(text.trim_end_matches(' ').len());
}

/// The engine keeps a tab in the cell it started from; everything else in a cell is printable.
fn printable(c: char) -> char {
    if c.is_control() { ' ' } else { c }
}

/// A wide character is shown only with its second half behind it: a pane of one column cuts it off,
/// and the engine's reflow may tear the two apart.
fn shown_width(cell: &Cell, next: Option<&Cell>) -> u16 {
    let spacer = next.is_some_and(|next| next.flags.contains(Flags::WIDE_CHAR_SPACER));
    if cell.flags.contains(Flags::WIDE_CHAR) && spacer {
        2
    } else {
        1
    }
}

fn cell_text<'a>(cell: &Cell, width: u16, cluster: &'a mut String) -> &'a str {
    cluster.clear();
    let spacers = Flags::WIDE_CHAR_SPACER | Flags::LEADING_WIDE_CHAR_SPACER;
    if cell.flags.intersects(spacers) || (cell.flags.contains(Flags::WIDE_CHAR) && width == 1) {
        cluster.push(' ');
    } else {
        cluster.push(printable(cell.c));
        cluster.extend(cell.zerowidth().into_iter().flatten());
    }
    cluster
}

fn colour(
    own: Color,
    default: NamedColor,
    set: &alacritty_terminal::term::color::Colors,
) -> Colour {
    let changed = |index: usize, otherwise| {
        set[index].map_or(otherwise, |rgb| Colour::Rgb(rgb.r, rgb.g, rgb.b))
    };
    match own {
        Color::Spec(rgb) => Colour::Rgb(rgb.r, rgb.g, rgb.b),
        Color::Indexed(index) => changed(usize::from(index), Colour::Indexed(index)),
        Color::Named(named) => match named as usize {
            index @ 0..16 => changed(index, Colour::Indexed(index as u8)),
            _ => changed(default as usize, Colour::Default),
        },
    }
}

fn attributes(flags: Flags) -> Attributes {
    Attributes {
        bold: flags.contains(Flags::BOLD),
        dim: flags.contains(Flags::DIM),
        italic: flags.contains(Flags::ITALIC),
        inverse: flags.contains(Flags::INVERSE),
        hidden: flags.contains(Flags::HIDDEN),
        strike: flags.contains(Flags::STRIKEOUT),
        underline: underline(flags),
    }
}

fn underline(flags: Flags) -> Underline {
    let kinds = [
        (Flags::UNDERLINE, Underline::Single),
        (Flags::DOUBLE_UNDERLINE, Underline::Double),
        (Flags::UNDERCURL, Underline::Curly),
        (Flags::DOTTED_UNDERLINE, Underline::Dotted),
        (Flags::DASHED_UNDERLINE, Underline::Dashed),
    ];
    kinds
        .iter()
        .find(|(flag, _)| flags.contains(*flag))
        .map_or(Underline::None, |(_, kind)| *kind)
}

const VERSION_REPLY: &str = concat!("\x1bP>|pitstop(", env!("CARGO_PKG_VERSION"), ")\x1b\\");

/// A VT220 with ANSI colours: enough for programs that wait for this as the end of their questions.
const ATTRIBUTES_REPLY: &str = "\x1b[?62;22c";

/// The capabilities XTGETTCAP tells: name and value.
const CAPABILITIES: [(&str, &str); 5] = [
    ("TN", "xterm-256color"),
    ("name", "xterm-256color"),
    ("Co", "256"),
    ("colors", "256"),
    ("RGB", "8/8/8"),
];

/// The engine with what it does not know: our answers, modes and bounds.
struct Engine {
    term: Term<VoidListener>,
    size: PaneSize,
    replies: Vec<Vec<u8>>,
    facts: Vec<ScreenFact>,
    title: String,
    titles: Vec<String>,
    keyboard: Keyboard,
    other_keyboard: Keyboard,
    modify_other_keys: u8,
    x10_mouse: bool,
    scheme_reports: bool,
    in_frame: bool,
    region_top: usize,
    palette: HostPalette,
    scheme: Option<ColourScheme>,
    cell_pixels: (u16, u16),
    links: Links,
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

/// The links in use, each kept once however often it is repainted.
#[derive(Default)]
struct Links {
    known: HashMap<(String, String), Hyperlink>,
    refused: usize,
}

impl Engine {
    fn new(term: Term<VoidListener>, size: PaneSize) -> Self {
        Self {
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
            region_top: 0,
            palette: HostPalette::default(),
            scheme: None,
            cell_pixels: (8, 16),
            links: Links::default(),
        }
    }

    fn resize(&mut self, size: PaneSize) {
        let narrower = size.columns() < self.size.columns();
        let history = self.term.grid().history_size();
        self.size = size;
        self.region_top = 0;
        self.term.resize(GridSize(size));
        if narrower && !self.mode(TermMode::ALT_SCREEN) {
            self.pull_back(self.term.grid().history_size().saturating_sub(history));
        }
    }

    /// Brings lines back from the scrollback into the empty rows at the bottom.
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

    /// A row of the viewport, as wide as the pane.
    fn row(&self, row: u16) -> &[Cell] {
        let grid = self.term.grid();
        let line = Line(i32::from(row)) - grid.display_offset();
        &grid[line][..Column(usize::from(self.size.columns()))]
    }

    fn cursor(&self) -> Cursor {
        let grid = self.term.grid();
        let row = usize::try_from(grid.cursor.point.line.0).unwrap_or(0) + grid.display_offset();
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

    fn modes(&self) -> Modes {
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
            colour_scheme_reports: self.scheme_reports,
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

    fn tell(&mut self, fact: ScreenFact) {
        if self.facts.len() < FACT_LIMIT {
            self.facts.push(fact);
        }
    }

    fn reply(&mut self, bytes: &str) {
        self.replies.push(bytes.as_bytes().to_vec());
    }

    fn report_cursor(&mut self, private: &str) {
        let point = self.term.grid().cursor.point;
        let top = if self.mode(TermMode::ORIGIN) {
            self.region_top
        } else {
            0
        };
        let row = usize::try_from(point.line.0)
            .unwrap_or(0)
            .saturating_sub(top)
            + 1;
        let column = (point.column.0 + 1).min(usize::from(self.size.columns()));
        self.reply(&format!("\x1b[{private}{row};{column}R"));
    }

    fn report_scheme(&mut self) {
        let number = match self.scheme() {
            ColourScheme::Dark => 1,
            ColourScheme::Light => 2,
        };
        self.reply(&format!("\x1b[?997;{number}n"));
    }

    /// The scheme as told, else judged by the background, else dark.
    fn scheme(&self) -> ColourScheme {
        let judged = |Rgb(red, green, blue): Rgb| {
            // The usual luma weights, in thousandths.
            let luma = 299 * u32::from(red) + 587 * u32::from(green) + 114 * u32::from(blue);
            if luma > 127_500 {
                ColourScheme::Light
            } else {
                ColourScheme::Dark
            }
        };
        self.scheme
            .or(self.palette.background.map(judged))
            .unwrap_or(ColourScheme::Dark)
    }

    fn report_cell_size(&mut self) {
        let (width, height) = self.cell_pixels;
        self.reply(&format!("\x1b[6;{height};{width}t"));
    }

    fn report_capabilities(&mut self, names: &[Vec<u8>]) {
        for asked in names {
            let known = CAPABILITIES
                .iter()
                .find(|(name, _)| name.as_bytes() == asked);
            match known {
                Some((name, value)) => {
                    self.reply(&format!("\x1bP1+r{}={}\x1b\\", hex(name), hex(value)));
                }
                None => self.reply("\x1bP0+r\x1b\\"),
            }
        }
    }

    fn report_setting(&mut self, setting: Setting) {
        let text = match setting {
            Setting::Rendition => format!(
                "\x1bP1$r{}m\x1b\\",
                rendition(&self.term.grid().cursor.template)
            ),
            Setting::CursorStyle => format!("\x1bP1$r{} q\x1b\\", self.cursor_style_number()),
            Setting::Unknown => "\x1bP0$r\x1b\\".to_owned(),
        };
        self.reply(&text);
    }

    fn cursor_style_number(&self) -> u8 {
        let style = self.term.cursor_style();
        let steady = match style.shape {
            ansi::CursorShape::Underline => 4,
            ansi::CursorShape::Beam => 6,
            _ => 2,
        };
        steady - u8::from(style.blinking)
    }

    /// DECRPM's number for a private mode: 0 unknown, 1 set, 2 reset, 4 always reset.
    fn private_mode_state(&self, mode: u16) -> u8 {
        let set = match mode {
            1 => self.mode(TermMode::APP_CURSOR),
            6 => self.mode(TermMode::ORIGIN),
            7 => self.mode(TermMode::LINE_WRAP),
            9 => self.mouse() == MouseTracking::X10,
            12 => self.term.cursor_style().blinking,
            25 => self.mode(TermMode::SHOW_CURSOR),
            47 | 1047 | 1049 => self.mode(TermMode::ALT_SCREEN),
            66 => self.mode(TermMode::APP_KEYPAD),
            1000 => self.mode(TermMode::MOUSE_REPORT_CLICK),
            1002 => self.mode(TermMode::MOUSE_DRAG),
            1003 => self.mode(TermMode::MOUSE_MOTION),
            1004 => self.mode(TermMode::FOCUS_IN_OUT),
            1005 => self.mode(TermMode::UTF8_MOUSE),
            1006 => self.mode(TermMode::SGR_MOUSE),
            1007 => self.mode(TermMode::ALTERNATE_SCROLL),
            2004 => self.mode(TermMode::BRACKETED_PASTE),
            2026 => self.in_frame,
            2031 => self.scheme_reports,
            2027 => return 4,
            _ => return 0,
        };
        if set { 1 } else { 2 }
    }

    /// The colour a query is answered with: the child's own, else the host's, else a usual one.
    fn known_colour(&self, index: usize) -> Option<Rgb> {
        if let Some(own) = self.term.colors()[index] {
            return Some(Rgb(own.r, own.g, own.b));
        }
        let light = self.scheme() == ColourScheme::Light;
        let (text, ground) = if light {
            (Rgb(0x1f, 0x1f, 0x1f), Rgb(0xff, 0xff, 0xff))
        } else {
            (Rgb(0xd8, 0xd8, 0xd8), Rgb(0x12, 0x12, 0x12))
        };
        let foreground = self.palette.foreground.unwrap_or(text);
        match index {
            0..16 => Some(self.palette.colours[index].unwrap_or_else(|| usual_colour(index as u8))),
            16..256 => Some(usual_colour(index as u8)),
            256 => Some(foreground),
            257 => Some(self.palette.background.unwrap_or(ground)),
            258 => Some(self.palette.cursor.unwrap_or(foreground)),
            _ => None,
        }
    }

    fn set_title_text(&mut self, title: String) {
        if title != self.title {
            self.title.clone_from(&title);
            self.tell(ScreenFact::Title(title));
        }
    }

    fn enter_alternate(&mut self, enter: bool) {
        if self.mode(TermMode::ALT_SCREEN) != enter {
            self.term.swap_alt();
            std::mem::swap(&mut self.keyboard, &mut self.other_keyboard);
        }
    }

    /// What DECSTR resets: how text is written, not what is on the screen.
    fn soft_reset(&mut self) {
        let private = [
            (NamedPrivateMode::CursorKeys, false),
            (NamedPrivateMode::Origin, false),
            (NamedPrivateMode::LineWrap, true),
            (NamedPrivateMode::ShowCursor, true),
        ];
        for (mode, on) in private {
            if on {
                self.term.set_private_mode(mode.into());
            } else {
                self.term.unset_private_mode(mode.into());
            }
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
        self.full_region();
    }

    /// Makes the whole screen scroll, and leaves the cursor where it is.
    fn full_region(&mut self) {
        let point = self.term.grid().cursor.point;
        self.region_top = 0;
        self.term.set_scrolling_region(1, None);
        self.term.goto(point.line.0, point.column.0);
    }

    fn reset_modes(&mut self) {
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

    /// The cell a zero-width character would join is full.
    fn cluster_is_full(&self) -> bool {
        let grid = self.term.grid();
        let cursor = &grid.cursor;
        let mut column = cursor.point.column.0;
        if !cursor.input_needs_wrap {
            column = column.saturating_sub(1);
        }
        let row = &grid[cursor.point.line];
        if row[Column(column)].flags.contains(Flags::WIDE_CHAR_SPACER) {
            column = column.saturating_sub(1);
        }
        row[Column(column)]
            .zerowidth()
            .is_some_and(|joined| joined.len() >= ZERO_WIDTH_LIMIT)
    }

    /// The one copy of a link, if it is fit to be kept.
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

    /// Forgets the links no cell has any more; false if that made no room. A sweep reads the whole
    /// grid, so after a vain one the next waits for as many links as the table holds.
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

/// The template's attributes as SGR parameters.
fn rendition(template: &Cell) -> String {
    let mut text = "0".to_owned();
    let flags = [
        (Flags::BOLD, ";1"),
        (Flags::DIM, ";2"),
        (Flags::ITALIC, ";3"),
        (Flags::UNDERLINE, ";4"),
        (Flags::DOUBLE_UNDERLINE, ";4:2"),
        (Flags::UNDERCURL, ";4:3"),
        (Flags::DOTTED_UNDERLINE, ";4:4"),
        (Flags::DASHED_UNDERLINE, ";4:5"),
        (Flags::INVERSE, ";7"),
        (Flags::HIDDEN, ";8"),
        (Flags::STRIKEOUT, ";9"),
    ];
    for (flag, parameter) in flags {
        if template.flags.contains(flag) {
            text.push_str(parameter);
        }
    }
    text.push_str(&rendition_colour(template.fg, 30));
    text.push_str(&rendition_colour(template.bg, 40));
    text
}

fn rendition_colour(colour: Color, base: u8) -> String {
    let extended = base + 8;
    match colour {
        Color::Spec(rgb) => format!(";{extended}:2::{}:{}:{}", rgb.r, rgb.g, rgb.b),
        Color::Indexed(index) => format!(";{extended}:5:{index}"),
        Color::Named(named) => match named as usize {
            index @ 0..8 => format!(";{}", usize::from(base) + index),
            index @ 8..16 => format!(";{}", usize::from(base) + 60 + index - 8),
            _ => String::new(),
        },
    }
}

fn hex(text: &str) -> String {
    const DIGITS: &[u8; 16] = b"0123456789ABCDEF";
    let digit = |value: u8| char::from(DIGITS[usize::from(value)]);
    text.bytes()
        .flat_map(|byte| [digit(byte >> 4), digit(byte & 15)])
        .collect()
}

/// xterm's palette, for what the host did not tell.
fn usual_colour(index: u8) -> Rgb {
    const NAMED: [Rgb; 16] = [
        Rgb(0, 0, 0),
        Rgb(205, 0, 0),
        Rgb(0, 205, 0),
        Rgb(205, 205, 0),
        Rgb(0, 0, 238),
        Rgb(205, 0, 205),
        Rgb(0, 205, 205),
        Rgb(229, 229, 229),
        Rgb(127, 127, 127),
        Rgb(255, 0, 0),
        Rgb(0, 255, 0),
        Rgb(255, 255, 0),
        Rgb(92, 92, 255),
        Rgb(255, 0, 255),
        Rgb(0, 255, 255),
        Rgb(255, 255, 255),
    ];
    let step = |level: u8| if level == 0 { 0 } else { 55 + 40 * level };
    match index {
        0..16 => NAMED[usize::from(index)],
        16..232 => {
            let cube = index - 16;
            Rgb(step(cube / 36), step(cube / 6 % 6), step(cube % 6))
        }
        232.. => {
            let grey = 8 + 10 * (index - 232);
            Rgb(grey, grey, grey)
        }
    }
}

/// Passes calls on to the engine unchanged.
macro_rules! pass_on {
    ($($name:ident($($argument:ident: $type:ty),*);)*) => {
        $(#[inline]
        fn $name(&mut self, $($argument: $type),*) {
            self.term.$name($($argument),*);
        })*
    };
}

impl Handler for Engine {
    pass_on! {
        set_cursor_style(style: Option<ansi::CursorStyle>);
        set_cursor_shape(shape: ansi::CursorShape);
        goto(line: i32, column: usize);
        goto_line(line: i32);
        goto_col(column: usize);
        insert_blank(count: usize);
        move_up(count: usize);
        move_down(count: usize);
        move_forward(count: usize);
        move_backward(count: usize);
        move_down_and_cr(count: usize);
        move_up_and_cr(count: usize);
        put_tab(count: u16);
        backspace();
        carriage_return();
        linefeed();
        substitute();
        newline();
        set_horizontal_tabstop();
        scroll_up(count: usize);
        scroll_down(count: usize);
        insert_blank_lines(count: usize);
        delete_lines(count: usize);
        erase_chars(count: usize);
        delete_chars(count: usize);
        move_backward_tabs(count: u16);
        move_forward_tabs(count: u16);
        save_cursor_position();
        restore_cursor_position();
        clear_line(mode: LineClearMode);
        clear_screen(mode: ClearMode);
        clear_tabs(mode: TabulationClearMode);
        set_tabs(interval: u16);
        reverse_index();
        terminal_attribute(attribute: Attr);
        set_mode(mode: Mode);
        unset_mode(mode: Mode);
        set_keypad_application_mode();
        unset_keypad_application_mode();
        set_active_charset(index: CharsetIndex);
        configure_charset(index: CharsetIndex, charset: StandardCharset);
        set_color(index: usize, colour: ansi::Rgb);
        reset_color(index: usize);
        decaln();
        set_mouse_cursor_icon(icon: CursorIcon);
        set_scp(path: ScpCharPath, update: ScpUpdateMode);
    }

    #[inline]
    fn input(&mut self, c: char) {
        // Below the first combining mark nothing is of width zero.
        if c >= '\u{300}' && c.width() == Some(0) && self.cluster_is_full() {
            return;
        }
        self.term.input(c);
    }

    fn bell(&mut self) {
        if self.facts.last() != Some(&ScreenFact::Bell) {
            self.tell(ScreenFact::Bell);
        }
    }

    fn set_title(&mut self, title: Option<String>) {
        self.set_title_text(stripped(&title.unwrap_or_default(), TITLE_LIMIT));
    }

    fn push_title(&mut self) {
        if self.titles.len() < TITLE_DEPTH {
            self.titles.push(self.title.clone());
        }
    }

    fn pop_title(&mut self) {
        if let Some(title) = self.titles.pop() {
            self.set_title_text(title);
        }
    }

    fn identify_terminal(&mut self, intermediate: Option<char>) {
        match intermediate {
            None => self.reply(ATTRIBUTES_REPLY),
            // Type VT220, our version as one number, no cartridge.
            Some('>') => self.reply("\x1b[>1;100;0c"),
            Some('=') => self.reply("\x1bP!|00000000\x1b\\"),
            Some(_) => {}
        }
    }

    fn device_status(&mut self, question: usize) {
        match question {
            5 => self.reply("\x1b[0n"),
            6 => self.report_cursor(""),
            _ => {}
        }
    }

    fn report_mode(&mut self, mode: Mode) {
        let state = match mode {
            Mode::Named(NamedMode::Insert) => 2 - u8::from(self.mode(TermMode::INSERT)),
            Mode::Named(NamedMode::LineFeedNewLine) => {
                2 - u8::from(self.mode(TermMode::LINE_FEED_NEW_LINE))
            }
            Mode::Unknown(_) => 0,
        };
        // The mode's number is the one thing a reply repeats: at most five digits, read as a number.
        self.reply(&format!("\x1b[{};{state}$y", mode.raw()));
    }

    fn report_private_mode(&mut self, mode: PrivateMode) {
        let state = self.private_mode_state(mode.raw());
        self.reply(&format!("\x1b[?{};{state}$y", mode.raw()));
    }

    fn set_private_mode(&mut self, mode: PrivateMode) {
        match mode {
            PrivateMode::Named(NamedPrivateMode::SwapScreenAndSetRestoreCursor)
            | PrivateMode::Unknown(47 | 1047) => self.enter_alternate(true),
            PrivateMode::Unknown(9) => {
                for other in MOUSE_MODES {
                    self.term.unset_private_mode(other.into());
                }
                self.x10_mouse = true;
            }
            PrivateMode::Unknown(66) => self.term.set_keypad_application_mode(),
            PrivateMode::Unknown(1048) => self.term.save_cursor_position(),
            PrivateMode::Unknown(2031) => self.scheme_reports = true,
            PrivateMode::Named(named) => {
                self.x10_mouse &= !MOUSE_MODES.contains(&named);
                if named == NamedPrivateMode::ColumnMode {
                    self.region_top = 0;
                }
                self.term.set_private_mode(mode);
            }
            PrivateMode::Unknown(_) => {}
        }
    }

    fn unset_private_mode(&mut self, mode: PrivateMode) {
        match mode {
            PrivateMode::Named(NamedPrivateMode::SwapScreenAndSetRestoreCursor)
            | PrivateMode::Unknown(47 | 1047) => self.enter_alternate(false),
            PrivateMode::Unknown(9) => self.x10_mouse = false,
            PrivateMode::Unknown(66) => self.term.unset_keypad_application_mode(),
            PrivateMode::Unknown(1048) => self.term.restore_cursor_position(),
            PrivateMode::Unknown(2031) => self.scheme_reports = false,
            PrivateMode::Named(named) => {
                if named == NamedPrivateMode::ColumnMode {
                    self.region_top = 0;
                }
                self.term.unset_private_mode(mode);
            }
            PrivateMode::Unknown(_) => {}
        }
    }

    fn set_scrolling_region(&mut self, top: usize, bottom: Option<usize>) {
        let rows = usize::from(self.size.rows());
        if top < bottom.unwrap_or(rows) {
            self.region_top = (top.max(1) - 1).min(rows);
        }
        self.term.set_scrolling_region(top, bottom);
    }

    fn reset_state(&mut self) {
        self.term.reset_state();
        self.forget_keys();
        self.region_top = 0;
        self.scheme_reports = false;
        self.titles.clear();
        self.links = Links::default();
        self.set_title_text(String::new());
    }

    fn dynamic_color_sequence(&mut self, prefix: String, index: usize, terminator: &str) {
        // `prefix` is the parser's own text: the number of the question.
        if let Some(Rgb(red, green, blue)) = self.known_colour(index) {
            self.reply(&format!(
                "\x1b]{prefix};rgb:{red:02x}{red:02x}/{green:02x}{green:02x}/{blue:02x}{blue:02x}{terminator}"
            ));
        }
    }

    fn clipboard_store(&mut self, clipboard: u8, base64: &[u8]) {
        if matches!(clipboard, b'c' | b's' | b'p')
            && let Some(text) =
                decode_base64(base64).and_then(|bytes| String::from_utf8(bytes).ok())
        {
            self.tell(ScreenFact::ClipboardStore(text));
        }
    }

    fn text_area_size_pixels(&mut self) {
        let (width, height) = self.cell_pixels;
        let height = u32::from(height) * u32::from(self.size.rows());
        let width = u32::from(width) * u32::from(self.size.columns());
        self.reply(&format!("\x1b[4;{height};{width}t"));
    }

    fn text_area_size_chars(&mut self) {
        self.reply(&format!(
            "\x1b[8;{};{}t",
            self.size.rows(),
            self.size.columns()
        ));
    }

    fn set_hyperlink(&mut self, link: Option<ansi::Hyperlink>) {
        let link = link.and_then(|link| self.link(link));
        self.term.grid_mut().cursor.template.set_hyperlink(link);
    }

    fn report_keyboard_mode(&mut self) {
        self.reply(&format!("\x1b[?{}u", self.keyboard.flags));
    }

    fn push_keyboard_mode(&mut self, mode: KeyboardModes) {
        self.keyboard.push(mode.bits());
    }

    fn pop_keyboard_modes(&mut self, count: u16) {
        self.keyboard.pop(count);
    }

    fn set_keyboard_mode(&mut self, mode: KeyboardModes, behaviour: KeyboardModesApplyBehavior) {
        let flags = &mut self.keyboard.flags;
        match behaviour {
            KeyboardModesApplyBehavior::Replace => *flags = mode.bits(),
            KeyboardModesApplyBehavior::Union => *flags |= mode.bits(),
            KeyboardModesApplyBehavior::Difference => *flags &= !mode.bits(),
        }
    }

    fn set_modify_other_keys(&mut self, mode: ModifyOtherKeys) {
        self.modify_other_keys = match mode {
            ModifyOtherKeys::Reset => 0,
            ModifyOtherKeys::EnableExceptWellDefined => 1,
            ModifyOtherKeys::EnableAll => 2,
        };
    }

    fn report_modify_other_keys(&mut self) {
        self.reply(&format!("\x1b[>4;{}m", self.modify_other_keys));
    }
}

/// The mouse modes of which at most one is on.
const MOUSE_MODES: [NamedPrivateMode; 3] = [
    NamedPrivateMode::ReportMouseClicks,
    NamedPrivateMode::ReportCellMouseMotion,
    NamedPrivateMode::ReportAllMouseMotion,
];

#[cfg(test)]
mod tests;
