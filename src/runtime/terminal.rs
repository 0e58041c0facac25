//! The host terminal: its input, and when and what is drawn on it.

use std::time::{Duration, Instant};

use crossterm::event::{KeyEvent, MouseButton, MouseEventKind};
use ratatui::layout::Rect;

use crate::ui::{Depth, Theme, pane};
use pitstop_core::app::{
    Event,
    event::HostEvent,
    layout::{Layout, layout},
};
use pitstop_terminal::{
    ColourScheme, HostPalette, Rgb,
    input::{Decoder, HostColour, HostInput, HostReply},
    screen::CursorShape,
};

use super::{
    Shell,
    canvas::{self, Canvas},
    editor::Editing,
    front::Front,
    host::HostKeys,
    host_output::HostOutput,
    hover::Pointer,
};

/// The shortest time between two frames: 60 a second.
pub(super) const FRAME_TIME: Duration = Duration::from_millis(16);

/// The time after a key during which the child's output is drawn without waiting for a frame's time: its echo is among it,
/// under a flood or in a stream of frames too.
pub(super) const ECHO_TIME: Duration = Duration::from_millis(20);

/// The shortest time between two drawings in the [`ECHO_TIME`].
pub(super) const ECHO_FRAME_TIME: Duration = Duration::from_micros(500);

/// The host terminal, as far as it is known.
pub(super) struct Terminal {
    pub front: Front,
    /// The output to it beside the cells.
    pub host_output: HostOutput,
    pub pointer: Pointer,
    pub decoder: Decoder,
    pub escape_due: Option<Instant>,
    pub keys: HostKeys,
    pub synchronizes: bool,
    pub cursor_shape: Option<u8>,
    pub palette: HostPalette,
    pub scheme: Option<ColourScheme>,
    pub depth: Depth,
    pub theme: Theme,
    pub hostname: String,
    /// True while it is its window that changes the pane's size.
    pub window_resizes: bool,
    /// The editor that has the terminal, if one does.
    pub editing: Option<Editing>,
}

impl Terminal {
    /// Creates a terminal of which nothing is known yet.
    pub fn new(front: Front, host_output: HostOutput, depth: Depth, theme: Theme) -> Self {
        Self {
            front,
            host_output,
            pointer: Pointer::default(),
            decoder: Decoder::default(),
            escape_due: None,
            keys: HostKeys::default(),
            synchronizes: false,
            cursor_shape: None,
            palette: HostPalette::default(),
            scheme: None,
            depth,
            theme,
            hostname: rustix::system::uname()
                .nodename()
                .to_string_lossy()
                .into_owned(),
            window_resizes: false,
            editing: None,
        }
    }
}

/// The state of drawing: the frame that was drawn last, and what must be drawn next.
pub(super) struct Frames {
    pub canvas: Canvas,
    /// The layout at the last whole frame.
    pub layout: Option<Layout>,
    /// True if something beside the pane has changed.
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
pub(super) struct Drawn {
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
}

/// The part of the screen that is drawn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Frame {
    /// The rows of the pane that the child has changed.
    Pane,
    /// The whole screen.
    Whole,
}

impl Shell {
    pub(super) fn resized(&mut self) {
        let (columns, rows) = self.terminal.front.size(self.core.view().view.host);
        if self.core.view().view.host == (columns, rows) {
            return;
        }
        self.frames.canvas.renew((columns, rows));
        self.terminal.window_resizes = true;
        self.post(Event::Host(HostEvent::Resized { columns, rows }));
        self.terminal.window_resizes = false;
    }

    pub(super) fn suspend(&mut self) {
        if let Err(error) = self.terminal.front.suspend() {
            tracing::warn!(%error, "cannot suspend");
        }
        self.redraw();
    }

    /// Redraws everything: another program has drawn on the host terminal.
    pub(super) fn redraw(&mut self) {
        self.frames.canvas.renew(self.core.view().view.host);
        self.terminal.host_output.raw(&self.terminal.keys.request());
        self.terminal.pointer = Pointer::default();
        self.terminal.cursor_shape = None;
        self.resized();
        self.frames.dirty = true;
    }

    /// Handles bytes from the host terminal.
    pub(super) fn typed(&mut self, bytes: &[u8]) {
        for input in self.terminal.decoder.feed(bytes) {
            // What was typed ahead was meant for the editor, not for the agent.
            if self.terminal.editing.is_none() {
                self.input(input);
            }
        }
        let wait = self.terminal.decoder.flush_after();
        self.terminal.escape_due = wait.map(|wait| Instant::now() + wait);
    }

    /// Returns the keys of the hint that was clicked, if one was.
    fn clicked(&self, input: &HostInput) -> Vec<KeyEvent> {
        let HostInput::Mouse { event, .. } = input else {
            return Vec::new();
        };
        if event.kind != MouseEventKind::Down(MouseButton::Left) || !event.modifiers.is_empty() {
            return Vec::new();
        }
        let (model, screen) = (self.core.view(), &self.pane.screen);
        let theme = &self.terminal.theme;
        crate::ui::hint::at(model, screen, theme, event.column, event.row)
    }

    pub(super) fn input(&mut self, input: HostInput) {
        if let HostInput::Reply { reply, .. } = input {
            self.host_reply(&reply);
            return;
        }
        if self.points(&input) {
            return;
        }
        // A click on a key hint is a press of that key.
        let keys = self.clicked(&input);
        if keys.is_empty() {
            self.post(Event::Host(HostEvent::Input(input)));
        }
        for event in keys {
            let raw = Vec::new();
            let key = HostInput::Key { event, raw };
            self.post(Event::Host(HostEvent::Input(key)));
        }
    }

    /// Handles the host terminal's answer to one of our queries.
    pub(super) fn host_reply(&mut self, reply: &HostReply) {
        match reply {
            HostReply::ModeReport { mode: 2026, value } => {
                self.terminal.synchronizes = matches!(value, 1 | 2);
            }
            HostReply::KittyFlags(_) | HostReply::DeviceAttributes(_) => {
                let kitty = matches!(reply, HostReply::KittyFlags(_));
                let keys = self.terminal.keys.learned(kitty);
                if keys != std::mem::replace(&mut self.terminal.keys, keys) {
                    self.terminal.host_output.raw(&keys.request());
                    self.frames.dirty = true;
                }
            }
            HostReply::Colour { which, rgb } => self.learn_colour(*which, *rgb),
            HostReply::ColourScheme(scheme) => self.set_scheme(*scheme),
            _ => {}
        }
    }

    /// Takes a colour of the host terminal: the child's queries are answered with it, and our theme follows the background.
    fn learn_colour(&mut self, which: HostColour, rgb: Rgb) {
        let palette = &mut self.terminal.palette;
        match which {
            HostColour::Foreground => palette.foreground = Some(rgb),
            HostColour::Background => palette.background = Some(rgb),
            HostColour::Cursor => palette.cursor = Some(rgb),
            HostColour::Palette(index) => {
                if let Some(slot) = palette.colours.get_mut(usize::from(index)) {
                    *slot = Some(rgb);
                }
            }
        }
        self.pane.screen.set_palette(*palette);
        if which == HostColour::Background {
            self.set_scheme(if is_dark(rgb) {
                ColourScheme::Dark
            } else {
                ColourScheme::Light
            });
        }
    }

    fn set_scheme(&mut self, scheme: ColourScheme) {
        self.terminal.scheme = Some(scheme);
        self.pane.screen.set_colour_scheme(scheme);
        self.choose_theme();
    }

    /// Reports whether the host terminal was asked to distinguish keys.
    pub(super) fn asked_for_keys(&self) -> bool {
        self.terminal.keys != HostKeys::Alike
    }

    /// Chooses the colours again: by the user's wish, and by whether the host terminal is dark.
    pub(super) fn choose_theme(&mut self) {
        let dark = self.terminal.scheme != Some(ColourScheme::Light);
        let name = self.core.view().config.ui.theme;
        let ascii = self.terminal.theme.ascii;
        self.terminal.theme = Theme::new(name, self.terminal.depth, dark).in_ascii(ascii);
        self.frames.dirty = true;
    }

    /// Returns the frame to draw, if any: none while the last frame is on its way out.
    pub(super) fn wants_frame(&self, now: Instant) -> Option<Frame> {
        if !self.terminal.front.is_ready() {
            return None;
        }
        let typed = self.frames.typed_due.is_some_and(|due| due <= now);
        let output = self.pane.screen.revision() != self.frames.revision;
        // The echo goes first where both are due, and so does the first word: the panels can wait for their frame's time. So
        // they do if the last frame was theirs alone.
        let patch = output && self.drawn_alone().is_some();
        let urgent =
            self.echoes(now) || self.frames.revision == 0 || self.frames.drawn.pane_goes_first();
        if patch && (urgent || !(self.frames.dirty || typed)) {
            return Some(Frame::Pane);
        }
        let whole = self.frames.dirty || typed || output || !self.terminal.host_output.is_empty();
        whole.then_some(Frame::Whole)
    }

    /// Reports whether the echo of a key is awaited.
    pub(super) fn echoes(&self, now: Instant) -> bool {
        self.frames.echo_until.is_some_and(|until| now < until)
    }

    /// Returns the area of the pane, if its cells can be drawn without the rest.
    pub(super) fn drawn_alone(&self) -> Option<Rect> {
        let now = layout(self.core.view());
        (self.frames.layout.as_ref() == Some(&now))
            .then(|| crate::ui::pane_alone(&now, self.core.view(), &self.pane.screen))
            .flatten()
    }

    /// Draws a frame if one is due.
    pub(super) fn draw_if_due(&mut self) {
        self.look_under_pointer();
        let now = Instant::now();
        if let Some(frame) = self.wants_frame(now)
            && self.frame_at(frame, now) <= now
        {
            self.draw(frame);
        }
    }

    /// Returns the time at which a frame may be drawn. A child's first output does not wait, so that it shows as soon as the
    /// child is there: one frame more in an iteration.
    pub(super) fn frame_at(&self, frame: Frame, now: Instant) -> Instant {
        let first = self.frames.revision == 0 && self.pane.screen.revision() > 0;
        let time = if frame == Frame::Pane && self.echoes(now) {
            ECHO_FRAME_TIME
        } else {
            FRAME_TIME
        };
        let earliest = self.frames.drawn.earliest(frame, time);
        earliest.filter(|_| !first).unwrap_or(now)
    }

    /// Panics at the second frame if `PITSTOP_PANIC_AT=draw` is set, for tests of what a panic leaves behind.
    #[cfg(debug_assertions)]
    fn panic_if_asked(&self) {
        let asked = std::env::var_os("PITSTOP_PANIC_AT").is_some_and(|place| place == "draw");
        assert!(
            !asked || self.frames.drawn.any.is_none(),
            "PITSTOP_PANIC_AT=draw"
        );
    }

    pub(super) fn draw(&mut self, frame: Frame) {
        #[cfg(debug_assertions)]
        self.panic_if_asked();
        self.core.set_time(self.at());
        let alone = self.drawn_alone().filter(|_| frame == Frame::Pane);
        let damage = if alone.is_some() {
            self.pane.screen.take_damage()
        } else {
            self.pane.screen.set_drawn();
            Vec::new()
        };
        self.note_links(&damage, alone.is_none());
        let (model, screen, theme) = (self.core.view(), &self.pane.screen, &self.terminal.theme);
        let cells = if let Some(pane) = alone {
            let cursor = crate::ui::cursor(model, screen).map(placed);
            let looks = (theme.depth, self.terminal.hostname.as_str());
            self.frames
                .canvas
                .pane(pane, screen, &damage, looks, cursor)
        } else {
            self.frames.dirty = false;
            self.frames.typed_due = None;
            let layout = layout(model);
            let pane = layout.pane_inner();
            let links = pane::links(
                pane,
                screen,
                0..u16::MAX,
                theme.depth,
                &self.terminal.hostname,
            );
            self.frames.canvas.set_links(links);
            self.frames.layout = Some(layout);
            self.frames
                .canvas
                .whole(|buf| crate::ui::paint(buf, model, screen, theme).map(placed))
        };
        let mut bytes = self.terminal.host_output.take();
        bytes.extend_from_slice(self.follow_pointer());
        let cursor = self.cursor_shape();
        if !(cells.is_empty() && cursor.is_empty() && bytes.is_empty()) {
            if self.terminal.synchronizes {
                bytes.extend_from_slice(b"\x1b[?2026h");
            }
            bytes.extend_from_slice(&cells);
            bytes.extend_from_slice(&cursor);
            if self.terminal.synchronizes {
                bytes.extend_from_slice(b"\x1b[?2026l");
            }
            self.terminal.front.write(bytes);
        }
        let revision = self.pane.screen.revision();
        let has_output = revision != self.frames.revision;
        self.frames.revision = revision;
        self.frames.drawn.note(Instant::now(), has_output);
    }

    /// Returns the sequence that gives the host's cursor the child's shape; empty if it has that already.
    pub(super) fn cursor_shape(&mut self) -> Vec<u8> {
        let Some(cursor) = crate::ui::cursor(self.core.view(), &self.pane.screen) else {
            return Vec::new();
        };
        // DECSCUSR: the blinking form of a shape is the one before its steady form.
        let steady = match cursor.shape {
            CursorShape::Block => 2,
            CursorShape::Underline => 4,
            CursorShape::Bar => 6,
        };
        let shape: u8 = steady - u8::from(cursor.blinking);
        if self.terminal.cursor_shape.replace(shape) == Some(shape) {
            return Vec::new();
        }
        format!("\x1b[{shape} q").into_bytes()
    }
}

/// Reports whether a colour is dark, by the luminance of ITU-R BT.601, as terminals judge it.
fn is_dark(Rgb(red, green, blue): Rgb) -> bool {
    299 * u32::from(red) + 587 * u32::from(green) + 114 * u32::from(blue) < 128_000
}

/// Returns the place of the cursor: the child's even while that is hidden, because input methods open there.
fn placed(cursor: crate::ui::HostCursor) -> canvas::Cursor {
    let at = ratatui::layout::Position::new(cursor.column, cursor.row);
    (at, cursor.visible)
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
