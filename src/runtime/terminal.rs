//! The host terminals: their input, and when and what is drawn on each.
//!
//! There may be none, one or several, each handed over by its client ([`super::attached`]). All show the same screen, whose size is
//! that of the terminal in which something was typed last; on a smaller one it is cut. Each has its own colours, keyboard protocol,
//! modes and pace. One that only watches neither types nor sets the size.

use std::{
    io,
    os::fd::OwnedFd,
    time::{Duration, Instant},
};

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers, MouseButton, MouseEventKind};
use ratatui::layout::Rect;
use tokio::{sync::mpsc, task::JoinHandle};

use crate::ui::{
    Depth, Theme, pane,
    theme::{is_ascii, scheme_of},
};
use pitstop_core::{
    app::{
        Event, Model,
        event::HostEvent,
        layout::{Layout, layout},
    },
    config::{OnHangup, ThemeName},
};
use pitstop_server::attach::{ClientMessage, ServerMessage};
use pitstop_terminal::{
    ColourScheme, HostPalette, Rgb,
    input::{Decoder, HostColour, HostInput, HostReply},
    screen::{CursorShape, Patch, Screen},
};

use super::{
    Shell,
    attached::Client,
    canvas::{self, Canvas},
    editor::Editing,
    host::{Host, HostBytes, HostKeys, HostSenders, TerminalId},
    host_output::HostOutput,
    hover::Pointer,
    paint::Abilities,
};

/// The shortest time between two frames: 60 a second.
pub(super) const FRAME_TIME: Duration = Duration::from_millis(16);

/// The time after a key during which the child's output is drawn without waiting for a frame's time: its echo is among it,
/// under a flood or in a stream of frames too.
pub(super) const ECHO_TIME: Duration = Duration::from_millis(20);

/// The shortest time between two drawings in the [`ECHO_TIME`].
pub(super) const ECHO_FRAME_TIME: Duration = Duration::from_micros(500);

/// The number of reads that may wait for the loop: a paste of any size is held back in the kernel beyond that.
const READS_IN_FLIGHT: usize = 16;

/// The variables of the environment by which [`Looks::of`] judges.
pub const TERMINAL_VARIABLES: [&str; 9] = [
    "NO_COLOR",
    "COLORTERM",
    "TERM",
    "TERM_PROGRAM",
    "VTE_VERSION",
    "WT_SESSION",
    "LC_ALL",
    "LC_CTYPE",
    "LANG",
];

/// What a terminal can show, by the environment in which it was attached.
#[derive(Clone, Copy, Debug, Default)]
pub struct Looks {
    /// The colours.
    pub depth: Depth,
    /// True if it shows only ASCII.
    pub ascii: bool,
    /// Its other abilities.
    pub abilities: Abilities,
}

impl Looks {
    /// Returns what a terminal can show by the variables of the environment in which it is used.
    pub fn of(variable: impl Fn(&str) -> String) -> Self {
        Self {
            depth: Depth::of(
                &variable("NO_COLOR"),
                &variable("COLORTERM"),
                &variable("TERM"),
                &variable("TERM_PROGRAM"),
            ),
            ascii: is_ascii(&variable("TERM"), &locale(&variable)),
            abilities: Abilities::of(variable),
        }
    }

    /// Returns the colours for a terminal: by the user's wish, and dark unless it is known to be light.
    pub fn theme(self, name: ThemeName, scheme: Option<ColourScheme>) -> Theme {
        let dark = scheme != Some(ColourScheme::Light);
        Theme::new(name, self.depth, dark).in_ascii(self.ascii)
    }
}

/// Returns the locale by the first variable that names one.
pub fn locale(variable: &impl Fn(&str) -> String) -> String {
    let locales = ["LC_ALL", "LC_CTYPE", "LANG"].map(variable);
    let locale = locales.into_iter().find(|value| !value.is_empty());
    locale.unwrap_or_default()
}

/// A host terminal, as far as it is known.
pub(super) struct HostTerminal {
    pub id: TerminalId,
    host: Host,
    /// The client that has handed it over.
    pub client: Client,
    /// True if it only watches.
    watches: bool,
    /// Its size in cells when it was last asked: columns, rows.
    size: (u16, u16),
    looks: Looks,
    /// The output to it beside the cells.
    pub output: HostOutput,
    pub pointer: Pointer,
    pub decoder: Decoder,
    pub escape_due: Option<Instant>,
    pub keys: HostKeys,
    pub synchronizes: bool,
    /// True if it has the focus; none before it has reported.
    focused: Option<bool>,
    pub cursor_shape: Option<u8>,
    pub palette: HostPalette,
    pub scheme: Option<ColourScheme>,
    pub theme: Theme,
    pub frames: Frames,
}

impl HostTerminal {
    /// Reports whether it is known to have the focus: a person who looks at it sees its content.
    pub fn has_focus(&self) -> bool {
        self.focused == Some(true)
    }

    /// Leaves the terminal alone until [`Self::take`].
    pub fn pause(&mut self) -> io::Result<()> {
        self.host.pause()
    }

    /// Draws all of it in this size of the screen, now that its client has taken it.
    fn take(&mut self, screen: (u16, u16)) {
        if let Err(error) = self.host.take() {
            tracing::warn!(%error, "a terminal cannot be read");
        }
        self.renew(screen);
    }

    /// Chooses the colours again.
    fn choose_theme(&mut self, name: ThemeName) {
        self.theme = self.looks.theme(name, self.scheme);
        self.frames.dirty = true;
    }

    /// Writes what still waits beside the cells, as the last.
    fn say_last(&mut self) {
        let mut last = self.output.take();
        last.extend(self.output.leave());
        if !last.is_empty() {
            self.host.write(last);
        }
    }

    /// Has all of it drawn again, in this size of the screen: another program has drawn on it.
    fn renew(&mut self, screen: (u16, u16)) {
        self.frames.renew(screen, self.size);
        self.output.raw(&self.keys.request());
        self.pointer = Pointer::default();
        self.cursor_shape = None;
    }
}

/// The attached host terminals.
pub(super) struct Terminals {
    /// The last is the one in which something was typed last: its size and colours count.
    list: Vec<HostTerminal>,
    senders: HostSenders,
    /// The channel for the messages of clients: none is the end of one.
    pub clients: mpsc::UnboundedSender<(TerminalId, Option<ClientMessage>)>,
    pub inbox: Inbox,
    attached: u64,
    pub hostname: String,
    /// The title, for terminals that come later.
    title: Option<String>,
    /// True while it is a window that changes the pane's size.
    pub window_resizes: bool,
    /// The editor that has the terminal, if one does.
    pub editing: Option<Editing>,
}

/// What comes in from the terminals and their clients.
pub(super) struct Inbox {
    pub bytes: mpsc::Receiver<(TerminalId, HostBytes)>,
    pub written: mpsc::UnboundedReceiver<TerminalId>,
    pub messages: mpsc::UnboundedReceiver<(TerminalId, Option<ClientMessage>)>,
}

impl Terminals {
    /// Creates an empty list.
    pub fn new() -> Self {
        let (bytes_in, bytes) = mpsc::channel(READS_IN_FLIGHT);
        let (written_in, written) = mpsc::unbounded_channel();
        let (clients, messages) = mpsc::unbounded_channel();
        Self {
            list: Vec::new(),
            senders: HostSenders {
                bytes: bytes_in,
                written: written_in,
            },
            clients,
            inbox: Inbox {
                bytes,
                written,
                messages,
            },
            attached: 0,
            hostname: rustix::system::uname()
                .nodename()
                .to_string_lossy()
                .into_owned(),
            title: None,
            window_resizes: false,
            editing: None,
        }
    }

    /// Adds a terminal of which nothing is known yet but its looks, and which is left alone until its client has taken it. `screen` is
    /// the size of what is shown.
    pub fn attach(
        &mut self,
        (input, output): (OwnedFd, OwnedFd),
        (client, watches): (Client, bool),
        looks: Looks,
        theme: ThemeName,
        screen: (u16, u16),
    ) -> io::Result<TerminalId> {
        self.attached += 1;
        let id = TerminalId(self.attached);
        let host = Host::new(id, input, output, self.senders.clone())?;
        let size = host.size().unwrap_or(screen);
        let mut canvas = Canvas::new(screen, looks.abilities);
        canvas.clip(size);
        let mut output = HostOutput::new(looks.abilities);
        if let Some(title) = &self.title {
            output.title(title);
        }
        let terminal = HostTerminal {
            id,
            host,
            client,
            watches,
            size,
            looks,
            output,
            pointer: Pointer::default(),
            decoder: Decoder::default(),
            escape_due: None,
            keys: HostKeys::default(),
            synchronizes: false,
            focused: None,
            cursor_shape: None,
            palette: HostPalette::default(),
            scheme: None,
            theme: looks.theme(theme, None),
            frames: Frames::new(canvas),
        };
        // Those that watch come first: the last is one of them only where there is no other.
        let at = if watches { 0 } else { self.list.len() };
        self.list.insert(at, terminal);
        Ok(id)
    }

    /// Names the window of each terminal, and of those that come later.
    pub fn set_title(&mut self, title: &str) {
        for terminal in &mut self.list {
            terminal.output.title(title);
        }
        self.title = Some(title.to_owned());
    }

    /// Reports whether no terminal is attached.
    pub const fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    /// Returns the terminal in which something was typed last.
    pub fn active(&self) -> Option<&HostTerminal> {
        self.list.last().filter(|last| !last.watches)
    }

    /// Returns the terminal in which something was typed last.
    pub fn active_mut(&mut self) -> Option<&mut HostTerminal> {
        self.list.last_mut().filter(|last| !last.watches)
    }

    /// Returns all terminals.
    pub fn all(&self) -> std::slice::Iter<'_, HostTerminal> {
        self.list.iter()
    }

    /// Returns all terminals.
    pub fn all_mut(&mut self) -> impl Iterator<Item = &mut HostTerminal> {
        self.list.iter_mut()
    }

    /// Returns the terminal of this name, if it is still attached.
    pub fn find(&mut self, id: TerminalId) -> Option<&mut HostTerminal> {
        self.list.iter_mut().find(|terminal| terminal.id == id)
    }

    /// Notes the focus of a terminal; returns true if that is news for the core, because no other one has it.
    fn focus(&mut self, id: TerminalId, focused: bool) -> bool {
        let Some(terminal) = self.find(id) else {
            return false;
        };
        terminal.focused = Some(focused);
        let has_it = |one: &HostTerminal| one.id != id && one.focused == Some(true);
        !self.list.iter().any(has_it)
    }

    /// Has everything beside the pane drawn with the next frame.
    pub fn set_dirty(&mut self) {
        for terminal in &mut self.list {
            terminal.frames.dirty = true;
        }
    }

    /// Reports whether a terminal only watches.
    fn watches(&self, id: TerminalId) -> bool {
        let mut all = self.list.iter();
        all.any(|terminal| terminal.id == id && terminal.watches)
    }

    /// Sends what still waits beside the cells, lets go of all terminals and returns their clients.
    pub fn leave(self) -> Vec<Client> {
        let leave = |mut terminal: HostTerminal| {
            terminal.say_last();
            let HostTerminal { host, client, .. } = terminal;
            drop(host);
            client.send(ServerMessage::Released);
            client
        };
        self.list.into_iter().map(leave).collect()
    }

    /// Notes that a frame was written.
    pub fn frame_written(&mut self, id: TerminalId) {
        if let Some(terminal) = self.find(id) {
            terminal.host.frame_written();
        }
    }

    /// Returns the inputs that may have gone on, such as a lone Esc, once nothing more has come for a while.
    pub fn escapes_due(&mut self, now: Instant) -> Vec<(TerminalId, Vec<HostInput>)> {
        let due = self.list.iter_mut().filter_map(|terminal| {
            terminal.escape_due.take_if(|due| *due <= now)?;
            Some((terminal.id, terminal.decoder.flush()))
        });
        due.collect()
    }
}

/// The state of drawing on a terminal: the frame that was drawn last, and what must be drawn next.
pub(super) struct Frames {
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

    /// Has everything drawn again, in these sizes of the screen and of the terminal in cells. Until then the pane is not drawn
    /// alone: its cells would be left on a screen that is about to be cleared.
    fn renew(&mut self, screen: (u16, u16), clip: (u16, u16)) {
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
pub(super) enum Frame {
    /// The rows of the pane that the child has changed.
    Pane,
    /// The whole screen.
    Whole,
}

impl Shell {
    /// Asks each terminal for its size; that of the active one is the size of the screen.
    pub(super) fn resized(&mut self) {
        let before = self.core.view().view.host;
        for terminal in self.terminals.all_mut() {
            terminal.size = terminal.host.size().unwrap_or(terminal.size);
        }
        let screen = self.terminals.active().map_or(before, |active| active.size);
        for terminal in self.terminals.all_mut() {
            let size = terminal.size;
            if screen != before || size != terminal.frames.canvas.clipped() {
                terminal.frames.renew(screen, size);
            }
        }
        if screen == before {
            return;
        }
        let (columns, rows) = screen;
        self.terminals.window_resizes = true;
        self.post(Event::Host(HostEvent::Resized { columns, rows }));
        self.terminals.window_resizes = false;
    }

    /// Draws everything again on a terminal whose size has changed: it may have moved what it shows, also where it has the size of
    /// before again by now.
    pub(super) fn reflowed(&mut self, id: TerminalId) {
        let screen = self.core.view().view.host;
        if let Some(terminal) = self.terminals.find(id) {
            terminal.frames.renew(screen, terminal.size);
        }
    }

    /// Handles the loss of a host terminal. Without any the session goes on, unless the user wants it to end.
    pub(super) fn terminal_lost(&mut self, id: TerminalId) {
        if self.remove(id).is_none() || !self.terminals.is_empty() {
            return;
        }
        match self.core.view().config.session.on_hangup {
            OnHangup::Detach => tracing::info!("the last terminal is gone: the session goes on"),
            OnHangup::End => self.signalled("SIGHUP"),
        }
    }

    /// Lets go of a terminal and sends its client the reason.
    pub(super) fn detach(&mut self, id: TerminalId, why: &str) {
        let Some((client, released)) = self.remove(id) else {
            return;
        };
        let why = why.to_owned();
        tokio::spawn(async move {
            let _ = released.await;
            client.end(ServerMessage::Detached { why }).await;
        });
    }

    /// Lets go of the terminal in which something was typed last.
    pub(super) fn detach_active(&mut self) {
        if let Some(id) = self.terminals.active().map(|active| active.id) {
            self.detach(id, "as you asked");
        }
    }

    /// Lets go of all terminals, but for this one.
    pub(super) fn detach_all(&mut self, but: Option<TerminalId>, why: &str) {
        let ids: Vec<TerminalId> = self.terminals.all().map(|one| one.id).collect();
        for id in ids.into_iter().filter(|id| Some(*id) != but) {
            self.detach(id, why);
        }
    }

    /// Takes a terminal from the list; returns its client, and a handle of the task that releases the terminal: a frame that a slow
    /// one still takes must not hold up the loop.
    fn remove(&mut self, id: TerminalId) -> Option<(Client, JoinHandle<()>)> {
        let list = &mut self.terminals.list;
        let at = list.iter().position(|one| one.id == id)?;
        let mut terminal = list.remove(at);
        self.services.herdr.leave(id);
        terminal.say_last();
        let HostTerminal { host, client, .. } = terminal;
        let released = tokio::task::spawn_blocking(move || drop(host));
        self.editor_left(id, true);
        self.look_for_focus();
        if self.terminals.active().is_none() {
            self.post(Event::Host(HostEvent::Left));
        }
        self.became_active();
        Some((client, released))
    }

    /// Reports to the core that the terminal that had the focus is gone.
    fn look_for_focus(&mut self) {
        let focused = |one: &HostTerminal| one.focused == Some(true);
        if self.core.view().view.host_focused == Some(true) && !self.terminals.all().any(focused) {
            self.post(Event::Host(HostEvent::Input(HostInput::Focus(false))));
        }
    }

    /// Leaves a terminal alone whose client is about to be stopped.
    pub(super) fn suspend(&mut self, id: TerminalId) {
        let Some(terminal) = self.terminals.find(id) else {
            return;
        };
        if let Err(error) = terminal.pause() {
            tracing::warn!(%error, "a terminal cannot be left alone");
        }
        terminal.client.send(ServerMessage::Suspended);
    }

    /// Draws on a terminal that its client has taken. Who attaches or comes back to one looks at it.
    pub(super) fn taken(&mut self, id: TerminalId) {
        let screen = self.core.view().view.host;
        let Some(terminal) = self.terminals.find(id) else {
            return;
        };
        terminal.take(screen);
        let watches = terminal.watches;
        self.resized();
        if !watches && self.core.view().view.host_focused == Some(false) {
            self.post(Event::Host(HostEvent::Input(HostInput::Focus(true))));
        }
    }

    /// Gives the screen the size and the colours of the active terminal.
    pub(super) fn became_active(&mut self) {
        if let Some(active) = self.terminals.active() {
            self.pane.screen.set_palette(active.palette);
            if let Some(scheme) = active.scheme {
                self.pane.screen.set_colour_scheme(scheme);
            }
        }
        self.resized();
    }

    /// Handles bytes from a host terminal.
    pub(super) fn typed(&mut self, id: TerminalId, bytes: &[u8]) {
        let Some(terminal) = self.terminals.find(id) else {
            return;
        };
        let inputs = terminal.decoder.feed(bytes);
        let wait = terminal.decoder.flush_after();
        terminal.escape_due = wait.map(|wait| Instant::now() + wait);
        for input in inputs {
            // What was typed ahead was meant for the editor, not for the agent.
            let editing = &self.terminals.editing;
            if editing.as_ref().is_none_or(|one| one.terminal != id) {
                self.input(id, input);
            }
        }
    }

    /// Returns the keys of the hint that was clicked, if one was.
    fn clicked(&self, input: &HostInput) -> Vec<KeyEvent> {
        let (HostInput::Mouse { event, .. }, Some(active)) = (input, self.terminals.active())
        else {
            return Vec::new();
        };
        if event.kind != MouseEventKind::Down(MouseButton::Left) || !event.modifiers.is_empty() {
            return Vec::new();
        }
        let (model, screen) = (self.core.view(), self.pane.seen());
        crate::ui::hint::at(model, screen, &active.theme, event.column, event.row)
    }

    pub(super) fn input(&mut self, id: TerminalId, input: HostInput) {
        match &input {
            HostInput::Reply { reply, .. } => return self.host_reply(id, reply),
            _ if self.terminals.watches(id) => return self.watched(id, &input),
            HostInput::Focus(focused) if !self.terminals.focus(id, *focused) => return,
            HostInput::Focus(_) => {}
            // The pointer may cross a terminal in which nobody works.
            HostInput::Mouse { event, .. } if event.kind == MouseEventKind::Moved => {
                if self.terminals.active().is_none_or(|active| active.id != id) {
                    return;
                }
            }
            _ => self.activate(id),
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

    /// Handles an input in a terminal that only watches: `q`, Esc and Ctrl-C detach it.
    fn watched(&mut self, id: TerminalId, input: &HostInput) {
        let HostInput::Key { event, .. } = input else {
            return;
        };
        let interrupts =
            event.code == KeyCode::Char('c') && event.modifiers == KeyModifiers::CONTROL;
        if interrupts || matches!(event.code, KeyCode::Char('q') | KeyCode::Esc) {
            self.detach(id, "it only watched");
        }
    }

    /// Makes a terminal the one whose size and colours count, because something was typed in it.
    fn activate(&mut self, id: TerminalId) {
        let list = &mut self.terminals.list;
        let Some(at) = list.iter().position(|terminal| terminal.id == id) else {
            return;
        };
        if at + 1 == list.len() {
            return;
        }
        list[at..].rotate_left(1);
        self.became_active();
    }

    /// Handles a host terminal's answer to one of our queries.
    fn host_reply(&mut self, id: TerminalId, reply: &HostReply) {
        let Some(terminal) = self.terminals.find(id) else {
            return;
        };
        match reply {
            HostReply::ModeReport { mode: 2026, value } => {
                terminal.synchronizes = matches!(value, 1 | 2);
            }
            HostReply::KittyFlags(_) | HostReply::DeviceAttributes(_) => {
                let kitty = matches!(reply, HostReply::KittyFlags(_));
                let keys = terminal.keys.learned(kitty);
                if keys != std::mem::replace(&mut terminal.keys, keys) {
                    terminal.output.raw(&keys.request());
                    terminal.frames.dirty = true;
                }
            }
            HostReply::Colour { which, rgb } => self.learn_colour(id, *which, *rgb),
            HostReply::ColourScheme(scheme) => self.set_scheme(id, *scheme),
            _ => {}
        }
    }

    /// Takes a colour of a host terminal: the child's queries are answered with it, and our theme follows the background.
    fn learn_colour(&mut self, id: TerminalId, which: HostColour, rgb: Rgb) {
        let Some(terminal) = self.terminals.find(id) else {
            return;
        };
        let palette = &mut terminal.palette;
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
        let palette = *palette;
        if self.is_active(id) {
            self.pane.screen.set_palette(palette);
        }
        if which == HostColour::Background {
            self.set_scheme(id, scheme_of(Some(rgb), ""));
        }
    }

    fn is_active(&self, id: TerminalId) -> bool {
        self.terminals
            .active()
            .is_some_and(|active| active.id == id)
    }

    fn set_scheme(&mut self, id: TerminalId, scheme: ColourScheme) {
        let name = self.core.view().config.ui.theme;
        if let Some(terminal) = self.terminals.find(id) {
            terminal.scheme = Some(scheme);
            terminal.choose_theme(name);
        }
        if self.is_active(id) {
            self.pane.screen.set_colour_scheme(scheme);
        }
    }

    /// Reports whether the host terminal was asked to distinguish keys.
    pub(super) fn asked_for_keys(&self) -> bool {
        let active = self.terminals.active();
        active.is_some_and(|active| active.keys != HostKeys::Alike)
    }

    /// Chooses the colours of each terminal again.
    pub(super) fn choose_themes(&mut self) {
        let name = self.core.view().config.ui.theme;
        for terminal in self.terminals.all_mut() {
            terminal.choose_theme(name);
        }
    }

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
        let patch = output && self.drawn_alone(frames).is_some();
        let urgent = frames.echoes(now) || frames.revision == 0 || frames.drawn.pane_goes_first();
        if patch && (urgent || !(frames.dirty || typed)) {
            return Some(Frame::Pane);
        }
        let whole = frames.dirty || typed || output || !terminal.output.is_empty();
        whole.then_some(Frame::Whole)
    }

    /// Returns the area of the pane, if its cells can be drawn without the rest.
    fn drawn_alone(&self, frames: &Frames) -> Option<Rect> {
        let now = layout(self.core.view());
        (frames.layout.as_ref() == Some(&now))
            .then(|| crate::ui::pane_alone(&now, self.core.view(), &self.pane.screen))
            .flatten()
    }

    /// Returns the time at which the next frame is due, if one is wanted.
    pub(super) fn next_frame(&self, now: Instant) -> Option<Instant> {
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
    pub(super) fn draw_if_due(&mut self) {
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
                let pane = self.drawn_alone(&terminal.frames);
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
    let links = pane::links(pane, screen, 0..u16::MAX, theme.depth, hostname);
    frames.canvas.set_links(links);
    frames.layout = Some(layout);
    frames
        .canvas
        .whole(|buf| crate::ui::paint(buf, model, screen, theme).map(placed))
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
