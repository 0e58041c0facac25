//! A list on the whole terminal of which a person chooses one row: the sessions that run, and earlier work.
//!
//! The terminal is read byte by byte, so that what is typed behind the choice is still there for the session that is chosen.

use std::{
    io::{self, Write as _},
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
        mpsc::Receiver,
    },
    time::{Duration, Instant},
};

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers, MouseButton, MouseEventKind};
use ratatui::{Terminal, backend::CrosstermBackend};
use rustix::{
    event::{PollFd, PollFlags, Timespec, poll},
    io::Errno,
};
use signal_hook::{
    consts::{SIGHUP, SIGINT, SIGTERM, SIGWINCH},
    flag,
};

use crate::{
    runtime::{Looks, tty},
    supervisor::boot::variable,
    ui::{
        picker::{PickerRow, PickerView},
        theme::{Theme, scheme_of},
    },
};
use pitstop_base::keymap::on_latin_keyboard;
use pitstop_core::config::ThemeName;
use pitstop_terminal::input::{Decoder, HostColour, HostInput, HostReply};

/// The query for the terminal's background, and one that every terminal answers behind it.
const QUERY: &[u8] = b"\x1b]11;?\x1b\\\x1b[c";

/// The time that the terminal has to answer before it is given back: an answer that comes later would be typed for the shell.
const ANSWER_LIMIT: Duration = Duration::from_millis(200);

/// The time between two looks for new rows.
const LOOK: Duration = Duration::from_millis(100);

/// The rows of a page.
const PAGE: isize = 10;

/// The row of the list in which its first entry is.
const FIRST_ROW: u16 = 1;

/// What a person has done with the list.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Picked<T> {
    /// This row is chosen.
    Row(T),
    /// A new session is asked for.
    New,
    /// The list is closed.
    Quit,
    /// A signal has ended it.
    Ended(i32),
}

/// A list with the meaning of each of its rows.
pub(super) struct Picker<T> {
    view: PickerView,
    choices: Vec<T>,
}

impl<T: Clone + PartialEq> Picker<T> {
    pub fn new(title: String, rows: Vec<(PickerRow, T)>) -> Self {
        let view = PickerView {
            title,
            ..PickerView::default()
        };
        let mut picker = Self {
            view,
            choices: Vec::new(),
        };
        picker.set(rows);
        picker
    }

    /// Replaces the rows; the chosen one stays chosen if it is among the new ones.
    fn set(&mut self, rows: Vec<(PickerRow, T)>) {
        let chosen = self.chosen();
        (self.view.rows, self.choices) = rows.into_iter().unzip();
        let nearest = self
            .view
            .chosen
            .min(self.view.shown_rows().len().max(1) - 1);
        self.choose_again(chosen.as_ref(), nearest);
    }

    /// Chooses a row again, wherever it is shown now; one in its place if it is not.
    fn choose_again(&mut self, chosen: Option<&T>, instead: usize) {
        let mut shown = self.view.shown_rows().into_iter();
        let again = shown.position(|number| Some(&self.choices[number]) == chosen);
        self.view.chosen = again.unwrap_or(instead);
    }

    fn chosen(&self) -> Option<T> {
        let shown = self.view.shown_rows();
        let number = shown.get(self.view.chosen)?;
        self.choices.get(*number).cloned()
    }

    /// Shows the list until a person has chosen. New rows may come in meanwhile.
    pub fn run(
        mut self,
        theme: ThemeName,
        rows: Option<&Receiver<Vec<(PickerRow, T)>>>,
    ) -> io::Result<Picked<T>> {
        tty::restore_on_panic();
        tty::take()?;
        let picked = Screen::open(theme).and_then(|mut screen| screen.show(&mut self, rows));
        tty::restore();
        picked
    }

    /// Handles an input; returns what it ends the list with.
    fn handle(&mut self, input: &HostInput) -> Option<Picked<T>> {
        match input {
            HostInput::Key { event, .. } if self.view.typing => self.type_key(event),
            HostInput::Key { event, .. } => return self.key(&on_latin_keyboard(*event)),
            HostInput::Mouse { event, .. } => match event.kind {
                MouseEventKind::ScrollUp => self.choose(-1),
                MouseEventKind::ScrollDown => self.choose(1),
                MouseEventKind::Down(MouseButton::Left) => return self.click(event.row),
                _ => {}
            },
            _ => {}
        }
        None
    }

    /// A click chooses a row, and one on the chosen row takes it.
    fn click(&mut self, row: u16) -> Option<Picked<T>> {
        let above = FIRST_ROW + u16::from(self.view.filter.is_some());
        let below = usize::from(row.checked_sub(above)?);
        // Below the list are the details of the chosen row.
        if self.view.room.is_some_and(|room| below >= room) {
            return None;
        }
        let at = self.view.first + below;
        if at == self.view.chosen {
            return self.chosen().map(Picked::Row);
        }
        if at < self.view.shown_rows().len() {
            self.view.chosen = at;
        }
        None
    }

    fn key(&mut self, key: &KeyEvent) -> Option<Picked<T>> {
        let ctrl = key.modifiers == KeyModifiers::CONTROL;
        match key.code {
            KeyCode::Enter => return self.chosen().map(Picked::Row),
            KeyCode::Char('c' | 'd') if ctrl => return Some(Picked::Quit),
            KeyCode::Char('q') => return Some(Picked::Quit),
            KeyCode::Esc if self.view.filter.is_none() => return Some(Picked::Quit),
            KeyCode::Esc => self.filter(None),
            KeyCode::Char('n') if !ctrl => return Some(Picked::New),
            KeyCode::Char('/') => {
                self.filter(Some(String::new()));
                self.view.typing = true;
            }
            KeyCode::Up | KeyCode::Char('k') => self.choose(-1),
            KeyCode::Down | KeyCode::Char('j') => self.choose(1),
            KeyCode::PageUp => self.choose(-PAGE),
            KeyCode::PageDown => self.choose(PAGE),
            KeyCode::Home | KeyCode::Char('g') => self.choose(isize::MIN),
            KeyCode::End | KeyCode::Char('G') => self.choose(isize::MAX),
            _ => {}
        }
        None
    }

    fn type_key(&mut self, key: &KeyEvent) {
        // It stays in force until the new one is: by it the chosen row is known.
        let mut text = self.view.filter.clone().unwrap_or_default();
        match key.code {
            KeyCode::Esc => return self.filter(None),
            KeyCode::Char('c') if key.modifiers == KeyModifiers::CONTROL => {
                return self.filter(None);
            }
            KeyCode::Enter => {
                self.view.typing = false;
                return self.filter(Some(text).filter(|text| !text.is_empty()));
            }
            KeyCode::Backspace => drop(text.pop()),
            KeyCode::Up => self.choose(-1),
            KeyCode::Down => self.choose(1),
            KeyCode::Char(c) if key.modifiers.difference(KeyModifiers::SHIFT).is_empty() => {
                text.push(c);
            }
            _ => {}
        }
        self.filter(Some(text));
    }

    fn filter(&mut self, text: Option<String>) {
        let chosen = self.chosen();
        self.view.typing &= text.is_some();
        self.view.filter = text;
        self.choose_again(chosen.as_ref(), 0);
    }

    fn choose(&mut self, by: isize) {
        let last = self.view.shown_rows().len().max(1) - 1;
        self.view.chosen = self.view.chosen.saturating_add_signed(by).min(last);
    }
}

/// The terminal while the list is on it.
struct Screen {
    terminal: Terminal<CrosstermBackend<io::Stdout>>,
    looks: Looks,
    name: ThemeName,
    theme: Theme,
    decoder: Decoder,
    /// The time until which an answer of the terminal may come.
    answers: Option<Instant>,
    /// The number of the signal that asks us to end; 0 if none has come.
    ended_by: Arc<AtomicUsize>,
}

impl Screen {
    fn open(name: ThemeName) -> io::Result<Self> {
        let ended_by = Arc::<AtomicUsize>::default();
        for number in [SIGTERM, SIGHUP, SIGINT] {
            flag::register_usize(number, Arc::clone(&ended_by), number as usize)?;
        }
        // Only to be woken by it.
        flag::register(SIGWINCH, Arc::default())?;
        let looks = Looks::of(variable);
        let scheme = scheme_of(None, &variable("COLORFGBG"));
        write(&[&tty::enter(), QUERY].concat())?;
        Ok(Self {
            terminal: Terminal::new(CrosstermBackend::new(io::stdout()))?,
            looks,
            name,
            theme: looks.theme(name, Some(scheme)),
            decoder: Decoder::default(),
            answers: Some(Instant::now() + ANSWER_LIMIT),
            ended_by,
        })
    }

    fn show<T: Clone + PartialEq>(
        &mut self,
        picker: &mut Picker<T>,
        rows: Option<&Receiver<Vec<(PickerRow, T)>>>,
    ) -> io::Result<Picked<T>> {
        loop {
            let newest = rows.and_then(|rows| rows.try_iter().last());
            if let Some(newest) = newest {
                picker.set(newest);
            }
            self.draw(&mut picker.view)?;
            for input in self.read(LOOK)? {
                if let HostInput::Reply { reply, .. } = &input {
                    self.learn(reply);
                } else if is_suspend(&input) {
                    self.suspend()?;
                } else if let Some(picked) = picker.handle(&input) {
                    self.take_answers()?;
                    return Ok(picked);
                }
            }
            let signal = self.ended_by.load(Ordering::Relaxed);
            if signal != 0 {
                let code = i32::try_from(signal).unwrap_or_default();
                return Ok(Picked::Ended(128 + code));
            }
        }
    }

    fn draw(&mut self, view: &mut PickerView) -> io::Result<()> {
        let theme = &self.theme;
        self.terminal
            .draw(|frame| view.draw(frame.buffer_mut(), theme))?;
        Ok(())
    }

    /// Waits so long for a byte of the terminal; returns the inputs that are whole with it.
    fn read(&mut self, limit: Duration) -> io::Result<Vec<HostInput>> {
        let flush = self.decoder.flush_after();
        let wait = Timespec::try_from(flush.unwrap_or(limit)).map_err(io::Error::other)?;
        let stdin = rustix::stdio::stdin();
        match poll(&mut [PollFd::new(&stdin, PollFlags::IN)], Some(&wait)) {
            Ok(0) if flush.is_some() => return Ok(self.decoder.flush()),
            Ok(0) | Err(Errno::INTR) => return Ok(Vec::new()),
            Ok(_) => {}
            Err(error) => return Err(error.into()),
        }
        let mut byte = [0];
        match rustix::io::read(stdin, &mut byte) {
            Ok(0) => Err(io::ErrorKind::UnexpectedEof.into()),
            Ok(_) => Ok(self.decoder.feed(&byte)),
            Err(Errno::AGAIN | Errno::INTR) => Ok(Vec::new()),
            Err(error) => Err(error.into()),
        }
    }

    fn learn(&mut self, reply: &HostReply) {
        match reply {
            HostReply::Colour {
                which: HostColour::Background,
                rgb,
            } => {
                let scheme = scheme_of(Some(*rgb), "");
                self.theme = self.looks.theme(self.name, Some(scheme));
            }
            HostReply::DeviceAttributes(_) => self.answers = None,
            _ => {}
        }
    }

    /// Waits for the terminal's answers, which would else be typed for the shell.
    fn take_answers(&mut self) -> io::Result<()> {
        while let Some(limit) = self.answers.filter(|limit| *limit > Instant::now()) {
            for input in self.read(limit.saturating_duration_since(Instant::now()))? {
                if let HostInput::Reply { reply, .. } = &input {
                    self.learn(reply);
                }
            }
        }
        Ok(())
    }

    fn suspend(&mut self) -> io::Result<()> {
        tty::restore();
        tty::stop();
        tty::take()?;
        write(&tty::enter())?;
        self.terminal.clear()
    }
}

fn write(bytes: &[u8]) -> io::Result<()> {
    let mut stdout = io::stdout();
    stdout.write_all(bytes)?;
    stdout.flush()
}

fn is_suspend(input: &HostInput) -> bool {
    matches!(input, HostInput::Key { event, .. }
        if event.code == KeyCode::Char('z') && event.modifiers == KeyModifiers::CONTROL)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn picker() -> Picker<u8> {
        let row = |text: &str| PickerRow {
            fields: vec![text.to_owned()],
            ..PickerRow::default()
        };
        let rows = vec![(row("alpha"), 1), (row("beta"), 2), (row("gamma"), 3)];
        Picker::new("pitstop".to_owned(), rows)
    }

    fn pressed(picker: &mut Picker<u8>, bytes: &[u8]) -> Option<Picked<u8>> {
        let mut decoder = Decoder::default();
        let mut inputs = decoder.feed(bytes);
        inputs.extend(decoder.flush());
        inputs.iter().find_map(|input| picker.handle(input))
    }

    #[test]
    fn a_row_is_chosen_by_keys_by_the_mouse_and_by_a_filter() {
        for (bytes, picked) in [
            (&b"\r"[..], Some(Picked::Row(1))),
            (b"j\r", Some(Picked::Row(2))),
            (b"\x1b[B\x1b[B\x1b[B\r", Some(Picked::Row(3))),
            (b"Gk\r", Some(Picked::Row(2))),
            (b"/GAM\r\r", Some(Picked::Row(3))),
            (b"/beta\x1b", None),
            (b"/zzz\r\r", None),
            (b"\x1b[<0;5;3M", None),
            (b"\x1b[<0;5;3M\x1b[<0;5;3M", Some(Picked::Row(2))),
            (b"n", Some(Picked::New)),
            ("т".as_bytes(), Some(Picked::New)),
            ("й".as_bytes(), Some(Picked::Quit)),
            ("о\r".as_bytes(), Some(Picked::Row(2))),
            ("/т\r\r".as_bytes(), None),
            (b"q", Some(Picked::Quit)),
            (b"\x1b", Some(Picked::Quit)),
            (b"\x03", Some(Picked::Quit)),
        ] {
            let said = String::from_utf8_lossy(bytes).into_owned();
            assert_eq!(pressed(&mut picker(), bytes), picked, "{said:?}");
        }
    }

    #[test]
    fn the_chosen_row_stays_chosen_when_others_come_and_go() {
        let mut picker = picker();
        pressed(&mut picker, b"j");
        let row = || PickerRow {
            fields: vec!["another".to_owned()],
            ..PickerRow::default()
        };
        picker.set(vec![(row(), 9), (row(), 8), (row(), 2)]);
        assert_eq!(picker.chosen(), Some(2));
        picker.set(vec![(row(), 7)]);
        assert_eq!(picker.chosen(), Some(7));
        picker.set(Vec::new());
        assert_eq!(picker.chosen(), None);
    }

    #[test]
    fn a_row_is_chosen_among_those_that_the_filter_shows_while_it_is_typed() {
        let row = |text: &str| PickerRow {
            fields: vec![text.to_owned()],
            ..PickerRow::default()
        };
        for (bytes, picked) in [
            (&b"/beta\x1b[B\r\r"[..], 3),
            // A click on the second row that is shown, and one more letter.
            (b"/bet\x1b[<0;5;4Ma\r\r", 3),
            (b"/beta\x1b[B\x1b[A\r\r", 2),
        ] {
            let rows = vec![
                (row("alpha"), 1),
                (row("beta one"), 2),
                (row("beta two"), 3),
            ];
            let mut picker = Picker::new("pitstop".to_owned(), rows);
            let said = String::from_utf8_lossy(bytes).into_owned();
            assert_eq!(
                pressed(&mut picker, bytes),
                Some(Picked::Row(picked)),
                "{said:?}"
            );
        }
    }

    #[test]
    fn a_click_below_the_list_chooses_nothing() {
        let mut picker = picker();
        picker.view.room = Some(1);
        assert_eq!(pressed(&mut picker, b"\x1b[<0;5;3M\x1b[<0;5;3M"), None);
        assert_eq!(picker.chosen(), Some(1));
    }
}
