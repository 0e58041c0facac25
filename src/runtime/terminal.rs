//! The host terminals: their input, and when and what is drawn on each.
//!
//! There may be none, one or several, each handed over by its client ([`super::attached`]). All show the same screen, whose size is
//! that of the terminal in which something was typed last; on a smaller one it is cut. Each has its own colours, keyboard protocol,
//! modes and pace. One that only watches neither types nor sets the size.

mod frames;
mod input;
mod looks;

use frames::Frames;
pub(super) use frames::{ECHO_FRAME_TIME, ECHO_TIME, FRAME_TIME};
pub use looks::{Looks, TERMINAL_VARIABLES, locale};

use std::{io, os::fd::OwnedFd, path::Path, time::Instant};

use tokio::{sync::mpsc, task::JoinHandle};

use crate::ui::Theme;
use pitstop_base::process;
use pitstop_core::{
    app::{Event, event::HostEvent},
    config::{OnHangup, ThemeName, load::paths::Paths},
};
use pitstop_server::attach::{ClientMessage, ServerMessage};
use pitstop_terminal::{
    ColourScheme, HostPalette,
    input::{Decoder, HostInput},
};

use super::{
    Shell,
    attached::Client,
    canvas::Canvas,
    editor::Editing,
    host::{Host, HostBytes, HostKeys, HostSenders, TerminalId},
    host_output::HostOutput,
    hover::Pointer,
};

/// The number of reads that may wait for the loop: a paste of any size is held back in the kernel beyond that.
const READS_IN_FLIGHT: usize = 16;

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
            hostname: process::host_name(),
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
        let attach = self.attach_elsewhere();
        tokio::spawn(async move {
            let _ = released.await;
            client.end(ServerMessage::Detached { why, attach }).await;
        });
    }

    /// Returns the command that attaches to this session, if it has a state directory of its own, as the demo has.
    fn attach_elsewhere(&self) -> Option<String> {
        let (project, state) = (&self.agent.project, self.paths.state_dir());
        let usual = Paths::of_process(project).ok()?;
        if usual.state_dir() == state {
            return None;
        }
        let [project, state] = [project, state.parent()?].map(Path::to_string_lossy);
        let [project, state] = [&project, &state].map(|path| shell_words::quote(path));
        Some(format!(
            "cd {project} && XDG_STATE_HOME={state} pitstop attach"
        ))
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
        self.colour_screen();
        self.resized();
    }

    /// Gives the screen the colours of the active terminal.
    pub(super) fn colour_screen(&mut self) {
        if let Some(active) = self.terminals.active() {
            self.pane.screen.set_palette(active.palette);
            if let Some(scheme) = active.scheme {
                self.pane.screen.set_colour_scheme(scheme);
            }
        }
    }
}
