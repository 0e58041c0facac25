//! What the core orders of the pane: its input, its size, its signals and what is shown in it.

use std::time::{Duration, Instant};

use crossterm::event::{KeyCode, KeyModifiers, MouseEventKind};

use crate::runtime::Shell;
use pitstop_agent::claude::limits::words_on_screen;
use pitstop_base::{clean::chain, process};
use pitstop_core::app::{
    Event,
    effect::StopSignal,
    event::{Exit, PaneEvent, ReadEvent},
    layout,
};
use pitstop_terminal::{
    MouseTracking, PaneSize,
    copy::CopyOrder,
    input::{self, HostInput},
    keys,
    pane::pty,
    screen::{Screen, Scroll},
};
use pitstop_transcript::talk::Talk;

/// The number of unread input bytes from which Ctrl-C overtakes them: more than a person types ahead.
const CANCELLED_FROM: usize = 4096;

/// The time after a new size during which the child's output counts as a redraw because of it.
const REDRAW_TIME: Duration = Duration::from_secs(1);

/// The number of lines that one step of the wheel scrolls.
const WHEEL_LINES: i32 = 3;

impl Shell {
    pub(super) fn paste(&mut self, pieces: &[String]) {
        let modes = self.pane.screen.modes();
        let pasted = |piece: &String| keys::encode_paste(piece.as_bytes(), &modes);
        self.write_pane(pieces.iter().flat_map(pasted).collect());
    }

    pub(super) fn copy_mode(&mut self, order: &CopyOrder) {
        if *order == CopyOrder::Leave {
            self.pane.transcript = None;
        }
        let outcome = match &mut self.pane.transcript {
            Some(transcript) => transcript.copy(order),
            None => self.pane.screen.copy(order),
        };
        self.post(Event::Pane(PaneEvent::CopyMode(outcome)));
    }

    /// Shows a transcript in the place of the pane's screen, which does not change meanwhile.
    pub(super) fn show_transcript(&mut self, talk: &Talk) {
        let size = self.pane.screen.size();
        let theme = self.terminals.active().map(|active| active.theme.clone());
        let theme = theme.unwrap_or_default();
        let (bytes, rows) =
            crate::ui::transcript::write_talk(talk, size.columns(), crate::runtime::zone, &theme);
        let mut screen = Screen::new(size, rows);
        screen.feed_at_once(&bytes);
        self.pane.screen.copy(&CopyOrder::Enter);
        self.pane.transcript = Some(Box::new(screen));
        self.copy_mode(&CopyOrder::Enter);
    }

    pub(super) fn focus_pane(&mut self, focused: bool) {
        if let Some(bytes) = keys::encode_focus(focused, &self.pane.screen.modes()) {
            self.write_pane(bytes.to_vec());
        }
    }

    pub(super) fn read_prompt_box(&mut self) {
        self.pane.prompt_box_asked = true;
        self.look_at_prompt_box();
    }

    pub(super) fn forward(&mut self, input: &HostInput) {
        let modes = self.pane.screen.modes();
        // The nearest cell of the pane: a drag that leaves the pane continues at its edge.
        let cell = |column: u16, row: u16| {
            let area = layout::layout(self.core.view()).pane_inner();
            let within =
                |at: u16, from: u16, size: u16| at.saturating_sub(from).min(size.saturating_sub(1));
            (
                within(column, area.x, area.width),
                within(row, area.y, area.height),
            )
        };
        if let HostInput::OtherButton {
            number,
            pressed,
            column,
            row,
            ..
        } = input
        {
            let cell = cell(*column, *row);
            if let Some(bytes) = keys::encode_other_button(*number, *pressed, cell, &modes) {
                self.write_pane(bytes);
            }
            return;
        }
        if let HostInput::Mouse { event, .. } = input {
            let released = matches!(event.kind, MouseEventKind::Up(_) | MouseEventKind::Drag(_));
            let shift = event.modifiers.contains(KeyModifiers::SHIFT) && !released;
            let ours = modes.mouse == MouseTracking::None || shift;
            let (column, row) = cell(event.column, event.row);
            if ours && !modes.alternate_screen {
                match event.kind {
                    MouseEventKind::ScrollUp => self.pane.screen.scroll(Scroll::Lines(WHEEL_LINES)),
                    MouseEventKind::ScrollDown => {
                        self.pane.screen.scroll(Scroll::Lines(-WHEEL_LINES));
                    }
                    _ => {}
                }
            } else if ours && modes.mouse != MouseTracking::None {
                // Shift keeps the mouse from the child, and on the alternate screen there is nothing to scroll.
            } else if let Some(bytes) = keys::encode_mouse(event, column, row, &modes) {
                self.write_pane(bytes);
            }
            return;
        }
        match input {
            HostInput::Key { event, .. }
                if event.code == KeyCode::Char('c') && event.modifiers == KeyModifiers::CONTROL =>
            {
                self.cancel_input();
            }
            HostInput::Key { event, .. }
                if event.code == KeyCode::Char('z') && event.modifiers == KeyModifiers::CONTROL =>
            {
                self.expect_suspension();
            }
            HostInput::PasteStart => self.pane.paste_cut = false,
            // A text with holes is worse than one cut off, so nothing is sent after the first refusal.
            HostInput::PasteChunk(_) if self.pane.paste_cut => return,
            _ => {}
        }
        let bytes = input::forward(input, &modes, self.asked_for_keys());
        self.record_input(&bytes);
        if !bytes.is_empty() && !self.write_pane(bytes) {
            self.pane.paste_cut = true;
        }
    }

    /// Lets Ctrl-C overtake the input that a child has not read: a person who presses it does not want to wait behind a paste of
    /// megabytes, or for ever.
    fn cancel_input(&mut self) {
        let Some(pty) = &self.pane.pty else { return };
        if pty.queued_bytes() < CANCELLED_FROM {
            return;
        }
        let bytes = pty.cancel_writes();
        // The end mark of the paste was among the input that waited.
        let end = keys::paste_end(&self.pane.screen.modes());
        if !end.is_empty() {
            self.write_pane(end.to_vec());
        }
        self.post(Event::Pane(PaneEvent::InputCancelled { bytes }));
    }

    /// Resizes the pane: the child is notified of a change of the layout at once, and of some of the sizes of a window being resized.
    pub(super) fn resize_pane(&mut self, size: PaneSize) {
        if !self.terminals.window_resizes {
            self.pane.resizing.forget();
        } else if !self.pane.resizing.ask(size, Instant::now()) {
            return;
        }
        self.set_pane_size(size);
    }

    /// Resizes grid and terminal together; the child is notified only if the size has changed.
    pub(in crate::runtime) fn set_pane_size(&mut self, size: PaneSize) {
        if self.pane.screen.size() == size {
            return;
        }
        self.pane.screen.resize(size);
        if let Some(transcript) = &mut self.pane.transcript {
            transcript.resize(size);
        }
        self.pane.screen.expect_redraw(Instant::now() + REDRAW_TIME);
        if let Some((begun, recording)) = &mut self.pane.recording {
            recording.resize(begun.elapsed(), size);
        }
        if let Some(pty) = &self.pane.pty
            && let Err(error) = pty.resize(size)
        {
            tracing::warn!(error = chain(&error), "the pane keeps its size");
        }
    }

    pub(super) fn signal(&mut self, signal: StopSignal) {
        if self.pane.starting.take().is_some() {
            // It has not started, so it need not be ended.
            let (iteration, exit) = (self.core.view().session.pane(), Exit::Code(0));
            self.post(Event::Pane(PaneEvent::Exited { iteration, exit }));
        }
        let Some(pty) = &self.pane.pty else { return };
        if self.core.view().outside.quitting().is_some() {
            self.pane.remains.look(pty.pid());
        }
        if self.core.view().session.agent.suspended.is_some() {
            self.continue_agent();
        }
        let sent = match signal {
            StopSignal::Interrupt => return,
            StopSignal::Exit => {
                // Sent to the agent alone: it ends its children itself. The process is not reaped before we
                // release it, so the number is still its own.
                process::send_signal(Some(pty.pid()), pty::Signal::INT);
                return;
            }
            StopSignal::Hangup => pty::Signal::HUP,
            StopSignal::Terminate => pty::Signal::TERM,
            StopSignal::Kill => pty::Signal::KILL,
        };
        // The client runs its commands in sessions of their own and ends them itself, which one that is killed cannot do. What
        // another program has put into a session of its own may be meant to stay.
        let kills_client = signal == StopSignal::Kill && !self.core.view().is_generic();
        let started = if kills_client {
            process::descendants(pty.pid())
        } else {
            Vec::new()
        };
        if let Err(error) = pty.signal(sent) {
            tracing::debug!(%error, ?signal, "not signalled");
        }
        for member in started {
            process::kill(&member.stamp);
        }
    }

    /// Reads the client's words at the end of the screen, however far a person has scrolled up.
    pub(super) fn read_client_words(&mut self) {
        let text = self
            .pane
            .screen
            .tail_text(usize::from(self.pane.screen.size().rows()));
        if let Some(words) = words_on_screen(&text) {
            self.post(Event::Read(ReadEvent::ClientWords(words)));
        }
    }
}
