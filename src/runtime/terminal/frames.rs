//! When a frame is drawn on a terminal, and of which part of the screen.

use std::time::{Duration, Instant};

use ratatui::layout::Rect;

use crate::runtime::{
    Shell,
    canvas::{self, Canvas},
};
use crate::ui::pane;
use pitstop_core::app::{
    Model,
    layout::{Layout, layout},
};
use pitstop_terminal::screen::{CursorShape, Patch, Screen};

use super::HostTerminal;

/// The shortest time between two frames: 60 a second.
pub(in crate::runtime) const FRAME_TIME: Duration = Duration::from_millis(16);

/// The time after a key during which the child's output is drawn without waiting for a frame's time: its echo is among it,
/// under a flood or in a stream of frames too.
pub(in crate::runtime) const ECHO_TIME: Duration = Duration::from_millis(20);

/// The shortest time between two drawings in the [`ECHO_TIME`].
pub(in crate::runtime) const ECHO_FRAME_TIME: Duration = Duration::from_micros(500);

/// The state of drawing on a terminal: the frame that was drawn last, and what must be drawn next.
pub(in crate::runtime) struct Frames {
    pub canvas: Canvas,
    /// The layout at the last whole frame.
    pub layout: Option<Layout>,
    /// True if something beside the pane has changed, or what the child has changed was drawn elsewhere only.
    pub dirty: bool,
    /// The latest time at which a change that an input to the pane has made in the model (a draft, a check in the footer) is
    /// drawn. Its echo is about to come, and a frame before it would keep the echo waiting for [`FRAME_TIME`].
    pub typed_due: Option<Instant>,
    /// The time until which the echo of what was typed last is awaited.
    pub echo_until: Option<Instant>,
    /// The screen's revision at the last frame.
    pub revision: u64,
    /// The times at which the last frames were drawn.
    pub drawn: Drawn,
}

/// The times at which the last frames were drawn: the child's output does not wait for a frame that had none of it.
#[derive(Clone, Copy, Debug, Default)]
pub(in crate::runtime) struct Drawn {
    /// The time of the last frame of all.
    any: Option<Instant>,
    /// The time of the last one with new output of the child.
    pane: Option<Instant>,
}

impl Drawn {
    /// Notes that a frame was drawn.
    fn note(&mut self, now: Instant, has_output: bool) {
        self.any = Some(now);
        if has_output {
            self.pane = Some(now);
        }
    }

    /// Reports whether the pane goes before the rest where both are due. After that it is the turn of the rest.
    fn pane_goes_first(&self) -> bool {
        self.pane < self.any
    }

    /// Returns the time from which a frame keeps this distance to those before it; `None`, which is at once, if there was none.
    fn earliest(&self, frame: Frame, distance: Duration) -> Option<Instant> {
        let last = match frame {
            Frame::Pane => self.pane,
            Frame::Whole => self.any,
        };
        last.map(|at| at + distance)
    }
}

impl Frames {
    /// Creates the state in which nothing was drawn yet.
    pub fn new(canvas: Canvas) -> Self {
        Self {
            canvas,
            layout: None,
            dirty: true,
            typed_due: None,
            echo_until: None,
            revision: 0,
            drawn: Drawn::default(),
        }
    }

    /// Has everything drawn again, in these sizes of the screen and of the terminal in cells. Until then the pane is not drawn
    /// alone: its cells would be left on a screen that is about to be cleared.
    pub(super) fn renew(&mut self, screen: (u16, u16), clip: (u16, u16)) {
        self.canvas.renew(screen, clip);
        self.layout = None;
        self.dirty = true;
    }

    /// Reports whether the echo of a key is awaited.
    fn echoes(&self, now: Instant) -> bool {
        self.echo_until.is_some_and(|until| now < until)
    }
}

/// The part of the screen that is drawn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::runtime) enum Frame {
    /// The rows of the pane that the child has changed.
    Pane,
    /// The whole screen.
    Whole,
}

/// Draws what the child has changed of the pane, whose area is given; returns the bytes.
fn draw_pane(
    terminal: &mut HostTerminal,
    model: &Model,
    screen: &Screen,
    hostname: &str,
    (pane, damage): (Rect, &[Patch]),
) -> Vec<u8> {
    let cursor = crate::ui::cursor(model, screen).map(placed);
    let looks = (terminal.theme.depth, hostname);
    let canvas = &mut terminal.frames.canvas;
    canvas.pane(pane, screen, damage, looks, cursor)
}

/// Draws everything; returns the bytes.
fn draw_whole(
    terminal: &mut HostTerminal,
    model: &Model,
    screen: &Screen,
    hostname: &str,
) -> Vec<u8> {
    let (frames, theme) = (&mut terminal.frames, &terminal.theme);
    frames.dirty = false;
    frames.typed_due = None;
    let layout = layout(model);
    let pane = layout.pane_inner();
    let links = pane::link_runs(pane, screen, 0..u16::MAX, theme.depth, hostname);
    frames.canvas.set_links(links);
    frames.layout = Some(layout);
    let size = frames.canvas.clipped();
    frames.canvas.whole(|buf| {
        let cursor = crate::ui::paint(buf, model, screen, theme).map(placed);
        crate::ui::draw_terminal_hint(buf, size, terminal.watches, theme);
        cursor
    })
}

impl HostTerminal {
    /// Sends a frame: what waits beside the cells, the cells, and the cursor's shape.
    fn send(&mut self, model: &Model, screen: &Screen, cells: &[u8], follows: &[u8]) {
        let mut bytes = self.output.take();
        bytes.extend_from_slice(follows);
        let cursor = self.cursor_shape(model, screen);
        if !(cells.is_empty() && cursor.is_empty() && bytes.is_empty()) {
            if self.synchronizes {
                bytes.extend_from_slice(b"\x1b[?2026h");
            }
            bytes.extend_from_slice(cells);
            bytes.extend_from_slice(&cursor);
            if self.synchronizes {
                bytes.extend_from_slice(b"\x1b[?2026l");
            }
            self.host.write(bytes);
        }
    }

    /// Returns the sequence that gives the terminal's cursor the child's shape; empty if it has that already.
    fn cursor_shape(&mut self, model: &Model, screen: &Screen) -> Vec<u8> {
        let Some(cursor) = crate::ui::cursor(model, screen) else {
            return Vec::new();
        };
        // DECSCUSR: the blinking form of a shape is the one before its steady form.
        let steady = match cursor.shape {
            CursorShape::Block => 2,
            CursorShape::Underline => 4,
            CursorShape::Bar => 6,
        };
        let shape: u8 = steady - u8::from(cursor.blinking);
        if self.cursor_shape.replace(shape) == Some(shape) {
            return Vec::new();
        }
        format!("\x1b[{shape} q").into_bytes()
    }
}

/// Returns the place of the cursor: the child's even while that is hidden, because input methods open there.
fn placed(cursor: crate::ui::HostCursor) -> canvas::Cursor {
    let at = ratatui::layout::Position::new(cursor.column, cursor.row);
    (at, cursor.visible)
}

impl Shell {
    /// Returns the frame to draw on a terminal, if any: none while the last frame is on its way out.
    fn wants_frame(&self, terminal: &HostTerminal, now: Instant) -> Option<Frame> {
        if !terminal.host.is_ready() {
            return None;
        }
        let frames = &terminal.frames;
        let typed = frames.typed_due.is_some_and(|due| due <= now);
        let output = self.pane.screen.revision() != frames.revision;
        // The echo goes first where both are due, and so does the first word: the panels can wait for their frame's time. So
        // they do if the last frame was theirs alone.
        let patch = output && self.drawn_alone(terminal).is_some();
        let urgent = frames.echoes(now) || frames.revision == 0 || frames.drawn.pane_goes_first();
        if patch && (urgent || !(frames.dirty || typed)) {
            return Some(Frame::Pane);
        }
        let whole = frames.dirty || typed || output || !terminal.output.is_empty();
        whole.then_some(Frame::Whole)
    }

    /// Returns the area of the pane, if its cells can be drawn without the rest.
    fn drawn_alone(&self, terminal: &HostTerminal) -> Option<Rect> {
        let frames = &terminal.frames;
        let now = layout(self.core.view());
        let pane = (frames.layout.as_ref() == Some(&now))
            .then(|| crate::ui::pane_alone(&now, self.core.view(), &self.pane.screen))
            .flatten();
        // The hint of a terminal lies over the pane where it is smaller than the screen.
        pane.filter(|pane| frames.canvas.clipped().1 > pane.bottom())
    }

    /// Returns the time at which the next frame is due, if one is wanted.
    pub(in crate::runtime) fn next_frame(&self, now: Instant) -> Option<Instant> {
        let due = self.terminals.all().flat_map(|terminal| {
            let frame = self.wants_frame(terminal, now);
            let frame = frame.map(|frame| self.frame_at(terminal, frame, now));
            // A time in the past is among the reasons for a frame.
            let typed = terminal.frames.typed_due.filter(|due| *due > now);
            [frame, typed, terminal.escape_due]
        });
        due.flatten().min()
    }

    /// Draws the frames that are due.
    pub(in crate::runtime) fn draw_if_due(&mut self) {
        self.look_under_pointer();
        let now = Instant::now();
        let due = self.terminals.all().map(|terminal| {
            let frame = self.wants_frame(terminal, now)?;
            (self.frame_at(terminal, frame, now) <= now).then_some(frame)
        });
        // Usually there is one, and nothing to draw.
        if due.clone().any(|frame| frame.is_some()) {
            let due: Vec<_> = due.collect();
            self.draw(&due);
        }
    }

    /// Returns the time at which a frame may be drawn. A child's first output does not wait, so that it shows as soon as the
    /// child is there: one frame more in an iteration.
    fn frame_at(&self, terminal: &HostTerminal, frame: Frame, now: Instant) -> Instant {
        let frames = &terminal.frames;
        let first = frames.revision == 0 && self.pane.screen.revision() > 0;
        let time = if frame == Frame::Pane && frames.echoes(now) {
            ECHO_FRAME_TIME
        } else {
            FRAME_TIME
        };
        let earliest = frames.drawn.earliest(frame, time);
        earliest.filter(|_| !first).unwrap_or(now)
    }

    /// Panics at the second frame if `PITSTOP_PANIC_AT=draw` is set, for tests of what a panic leaves behind.
    #[cfg(debug_assertions)]
    fn panic_if_asked(&self) {
        let asked = std::env::var_os("PITSTOP_PANIC_AT").is_some_and(|place| place == "draw");
        let is_drawn = |terminal: &HostTerminal| terminal.frames.drawn.any.is_some();
        assert!(
            !asked || !self.terminals.all().any(is_drawn),
            "PITSTOP_PANIC_AT=draw"
        );
    }

    /// Draws these frames, one for each terminal or none.
    fn draw(&mut self, due: &[Option<Frame>]) {
        #[cfg(debug_assertions)]
        self.panic_if_asked();
        self.core.set_time(self.at());
        let alone: Vec<Option<Rect>> = std::iter::zip(due, self.terminals.all())
            .map(|(frame, terminal)| {
                let pane = self.drawn_alone(terminal);
                pane.filter(|_| *frame == Some(Frame::Pane))
            })
            .collect();
        let damage = if alone.iter().any(Option::is_some) {
            self.pane.screen.take_damage()
        } else {
            self.pane.screen.set_drawn();
            Vec::new()
        };
        let revision = self.pane.screen.revision();
        let (model, screen) = (self.core.view(), self.pane.seen());
        let hostname = self.terminals.hostname.as_str();
        let each = std::iter::zip(due, alone).zip(&mut self.terminals.list);
        for ((frame, alone), terminal) in each {
            if frame.is_none() {
                // The parts that have changed since its last frame are known no more.
                terminal.frames.dirty |= terminal.frames.revision != revision;
                continue;
            }
            let pointer = &mut terminal.pointer;
            pointer.note_links(screen, hostname, &damage, alone.is_none());
            let follows = pointer.follow(model, screen);
            let cells = match alone {
                Some(pane) => draw_pane(terminal, model, screen, hostname, (pane, &damage)),
                None => draw_whole(terminal, model, screen, hostname),
            };
            terminal.send(model, screen, &cells, follows);
            // That of the pane, also where a transcript is seen in its place.
            let has_output = revision != terminal.frames.revision;
            terminal.frames.revision = revision;
            terminal.frames.drawn.note(Instant::now(), has_output);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_child_writes_does_not_wait_for_a_frame_of_the_panels() {
        let start = Instant::now();
        let after = |ms| start + Duration::from_millis(ms);
        let mut drawn = Drawn::default();
        assert_eq!(drawn.earliest(Frame::Pane, FRAME_TIME), None);
        drawn.note(start, true);
        assert!(!drawn.pane_goes_first());
        // The panels alone: the pane keeps its distance to its own last frame, and goes before what comes next.
        drawn.note(after(30), false);
        assert_eq!(drawn.earliest(Frame::Pane, FRAME_TIME), Some(after(16)));
        assert_eq!(drawn.earliest(Frame::Whole, FRAME_TIME), Some(after(46)));
        assert!(drawn.pane_goes_first());
        // Then it is the panels' turn, however much the child writes.
        drawn.note(after(33), true);
        assert!(!drawn.pane_goes_first());
        assert_eq!(drawn.earliest(Frame::Pane, FRAME_TIME), Some(after(49)));
        assert_eq!(drawn.earliest(Frame::Whole, FRAME_TIME), Some(after(49)));
    }
}
