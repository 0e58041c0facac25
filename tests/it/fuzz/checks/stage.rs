//! A screen, the frames that are drawn of it as the loop draws them, and the host terminal that they are for.

use std::time::{Duration, Instant};

use crossterm::event::{KeyEvent, KeyModifiers, MouseEvent, MouseEventKind};
use pitstop::{
    runtime::{canvas::Canvas, paint::Abilities},
    ui::{self, Depth, HostCursor, Theme},
};
use pitstop_base::clock::At;
use pitstop_core::{
    app::{
        self, Effect, Event, Model,
        event::{HostEvent, PaneEvent},
        layout::{Layout, layout},
        model::Focus,
    },
    config::ThemeName,
};
use pitstop_terminal::{
    PaneSize,
    input::{self, HostInput},
    screen::{Attributes, CellView, Colour, Cursor, Screen, ScreenFact, Scroll},
};
use ratatui::{
    buffer::Buffer,
    layout::{Position, Rect},
};

use super::replies;

/// How many lines the pane keeps above itself.
const HISTORY: usize = 60;

/// The machine in links to files.
const HOST_NAME: &str = "here";

/// Makes the model of a supervisor in a host terminal of this size, in cells.
pub type NewModel = fn((u16, u16)) -> Model;

/// A supervisor without its loop.
pub struct Stage {
    model: Model,
    screen: Screen,
    theme: Theme,
    abilities: Abilities,
    canvas: Canvas,
    drawn: Option<Layout>,
    /// What the host terminal shows of all that was written to it.
    outer: Screen,
    now: Instant,
    at: At,
    sent: Vec<u8>,
    dirty: bool,
    frames: usize,
}

/// A cell as it is seen, with its link.
#[derive(Debug, PartialEq, Eq)]
struct Seen {
    place: (u16, u16),
    text: String,
    width: u16,
    colours: (Colour, Colour, Option<Colour>),
    attributes: Attributes,
    link: Option<String>,
}

impl Seen {
    fn of(view: &CellView) -> Self {
        Self {
            place: (view.row, view.column),
            text: view.text.to_owned(),
            width: view.width,
            colours: (view.foreground, view.background, view.underline_colour),
            attributes: view.attributes,
            link: view.hyperlink.map(str::to_owned),
        }
    }
}

impl Stage {
    /// A stage on which nothing has happened yet; some bits choose the host terminal's look.
    pub fn new(model: Model, look: u8) -> Self {
        let depths = [
            Depth::TrueColor,
            Depth::Indexed256,
            Depth::Ansi16,
            Depth::Mono,
        ];
        let depth = depths[usize::from(look & 3)];
        let abilities = Abilities {
            underlines: look & 4 == 0,
            ..Abilities::default()
        };
        Self {
            screen: Screen::new(layout(&model).pane_size(), HISTORY),
            theme: Theme::new(ThemeName::Auto, depth, look & 8 == 0),
            abilities,
            canvas: Canvas::new(model.view.host, abilities),
            drawn: None,
            outer: host_terminal(model.view.host),
            now: Instant::now(),
            at: model.now,
            sent: Vec::new(),
            dirty: false,
            frames: 0,
            model,
        }
    }

    /// The child writes.
    pub fn feed(&mut self, bytes: &[u8]) {
        self.sent.extend_from_slice(bytes);
        self.screen.feed(bytes, self.now);
        self.reported();
    }

    /// What the child is answered, and what it has said beside its cells.
    fn reported(&mut self) {
        replies::these(&self.screen.take_replies(), &self.sent);
        for fact in facts(&mut self.screen) {
            self.update(Event::Pane(PaneEvent::Screen(fact)));
        }
        let mouse = self.screen.modes().mouse != pitstop_terminal::MouseTracking::None;
        if mouse != self.model.session.agent.takes_mouse {
            self.update(Event::Pane(PaneEvent::MouseModeSet { on: mouse }));
        }
    }

    /// Time goes by.
    pub fn wait(&mut self, time: Duration) {
        self.now += time;
        self.at.since_start += time;
        self.screen.expire(self.now);
        self.reported();
    }

    /// The user moves the view.
    pub fn scroll(&mut self, lines: i32) {
        self.screen.scroll(Scroll::Lines(lines));
        self.dirty = true;
    }

    /// The host terminal changes its size.
    pub fn resize(&mut self, (columns, rows): (u16, u16)) {
        if self.model.view.host == (columns, rows) {
            return;
        }
        self.canvas.renew((columns, rows), (columns, rows));
        self.outer.resize(PaneSize::new(columns, rows));
        self.update(Event::Host(HostEvent::Resized { columns, rows }));
    }

    /// The user presses a key.
    pub fn key(&mut self, event: KeyEvent) {
        let raw = b"?".to_vec();
        self.type_in(HostInput::Key { event, raw });
    }

    /// The user does something with the mouse.
    pub fn mouse(&mut self, kind: MouseEventKind, column: u16, row: u16, shift: bool) {
        let modifiers = if shift {
            KeyModifiers::SHIFT
        } else {
            KeyModifiers::NONE
        };
        let event = MouseEvent {
            kind,
            column,
            row,
            modifiers,
        };
        let raw = Vec::new();
        self.type_in(HostInput::Mouse { event, raw });
    }

    /// The user pastes.
    pub fn paste(&mut self, text: &[u8]) {
        self.type_in(HostInput::PasteStart);
        self.type_in(HostInput::PasteChunk(text.to_vec()));
        self.type_in(HostInput::PasteEnd);
    }

    fn type_in(&mut self, input: HostInput) {
        self.update(Event::Host(HostEvent::Input(input)));
    }

    /// The child dies with whatever it has left on.
    pub fn child_dies(&mut self) {
        self.screen.reset();
        assert_eq!(self.screen.deadline(), None);
        let modes = pitstop_terminal::Modes {
            alternate_scroll: true,
            ..pitstop_terminal::Modes::default()
        };
        assert_eq!(self.screen.modes(), modes);
        self.dirty = true;
    }

    /// The core gets the event, and what it orders of the screen is done.
    fn update(&mut self, event: Event) {
        let mut events = vec![event];
        while let Some(event) = events.pop() {
            for effect in app::update(&mut self.model, self.at, event) {
                match effect {
                    Effect::CopyMode(order) => {
                        let answer = self.screen.copy(&order);
                        events.push(Event::Pane(PaneEvent::CopyMode(answer)));
                    }
                    Effect::ScrollPane(scroll) => self.screen.scroll(scroll),
                    Effect::ResizePane(size) => self.screen.resize(size),
                    Effect::Forward(input) => {
                        let _ = input::forward(&input, &self.screen.modes(), true);
                    }
                    _ => {}
                }
            }
        }
        self.dirty = true;
    }

    /// Draws what is due as the loop does, and looks at everything.
    pub fn draw(&mut self, whole: bool) {
        let whole = std::mem::take(&mut self.dirty) | whole;
        let layout = layout(&self.model);
        let same = self.drawn.as_ref() == Some(&layout);
        let alone = (same && !whole)
            .then(|| ui::pane_alone(&layout, &self.model, &self.screen))
            .flatten();
        let bytes = match alone {
            Some(pane) => self.part(pane),
            None => self.whole(),
        };
        self.drawn = Some(layout);
        self.frames += 1;
        may_be_written(&bytes);
        self.outer.feed_at_once(&bytes);
        self.look();
    }

    fn part(&mut self, pane: Rect) -> Vec<u8> {
        let damage = self.screen.take_damage();
        assert!(damage.is_sorted_by_key(|patch| patch.rows.start));
        let cursor = ui::cursor(&self.model, &self.screen).map(placed);
        let looks = (self.theme.depth, HOST_NAME);
        self.canvas.pane(pane, &self.screen, &damage, looks, cursor)
    }

    fn whole(&mut self) -> Vec<u8> {
        self.screen.set_drawn();
        let (model, screen, theme) = (&self.model, &self.screen, &self.theme);
        whole(&mut self.canvas, model, screen, theme)
    }

    /// Everything that must hold after a frame.
    fn look(&self) {
        if self.frames % 2 == 1 {
            self.the_screen_is_sound();
        }
        self.the_host_shows_a_whole_frame();
        if self.frames % 4 == 1 {
            self.nothing_outside_the_pane_has_changed();
        }
    }

    fn the_screen_is_sound(&self) {
        let screen = &self.screen;
        let size = screen.size();
        inside(screen.cursor(), size);
        let mut next = (0, 0);
        screen.for_each_cell(|cell| {
            if cell.row != next.0 {
                next = (next.0 + 1, 0);
            }
            assert_eq!((cell.row, cell.column), next, "cells follow each other");
            next.1 += cell.width;
            assert!(matches!(cell.width, 1 | 2) && next.1 <= size.columns());
            assert!(!cell.text.is_empty() && !cell.text.chars().any(char::is_control));
        });
        assert_eq!(next, (size.rows() - 1, size.columns()));
        assert!(screen.text().lines().count() <= usize::from(size.rows()));
        assert!(screen.tail_text(5).lines().count() <= 5);
        assert!(screen.settled_text(5).lines().count() <= 5);
        // What is read in copy mode has room to wrap in a narrower pane.
        let room = self.model.view.copy.mode().map_or(HISTORY, |_| 1000);
        assert!(screen.history_len() <= room);
        assert!(screen.scroll_offset() <= screen.history_len());
    }

    /// What was sent in parts makes the same picture as one frame on an empty terminal.
    fn the_host_shows_a_whole_frame(&self) {
        let mut canvas = Canvas::new(self.model.view.host, self.abilities);
        let bytes = whole(&mut canvas, &self.model, &self.screen, &self.theme);
        let (columns, rows) = self.model.view.host;
        let mut fresh = host_terminal(self.model.view.host);
        fresh.feed_at_once(&bytes);
        let mut wanted = Vec::new();
        fresh.for_each_cell(|view| wanted.push(Seen::of(&view)));
        let mut wanted = wanted.into_iter();
        self.outer.for_each_cell(|view| {
            let found = Seen::of(&view);
            let wanted = wanted.next();
            assert!(
                wanted.as_ref() == Some(&found),
                "the host shows\n{found:?}\nand not\n{wanted:?}"
            );
            let (text, background, underline) = found.colours;
            let exact = [Some(text), Some(background), underline];
            let rgb = exact
                .into_iter()
                .any(|c| matches!(c, Some(Colour::Rgb(..))));
            assert!(!rgb || self.theme.depth == Depth::TrueColor, "{found:?}");
        });
        if let Some(cursor) = ui::cursor(&self.model, &self.screen)
            && cursor.column < columns
            && cursor.row < rows
        {
            let at = self.outer.cursor();
            assert_eq!((at.column, at.row), (cursor.column, cursor.row));
            assert_eq!(at.visible, cursor.visible);
        }
    }

    /// What the child writes changes no cell but its own.
    fn nothing_outside_the_pane_has_changed(&self) {
        let scrolled = self.model.view.copy.is_on() || self.screen.scroll_offset() > 0;
        let layout = layout(&self.model);
        if scrolled || layout.too_small {
            return;
        }
        let (columns, rows) = self.model.view.host;
        let area = Rect::new(0, 0, columns, rows);
        let pane = layout.pane_inner();
        let blank = Screen::new(self.screen.size(), 0);
        let [with, without] = [&self.screen, &blank].map(|screen| {
            let mut buffer = Buffer::empty(area);
            ui::paint(&mut buffer, &self.model, screen, &self.theme);
            buffer
        });
        let covered = |place: Position| {
            layout
                .panels
                .iter()
                .any(|(panel, area)| *panel != Focus::Pane && area.contains(place))
        };
        for place in area.positions() {
            if !pane.contains(place) || covered(place) {
                assert_eq!(with[place], without[place], "at {place:?}");
            }
        }
    }

    /// However the bytes are cut, they make the same screen.
    pub fn in_one_piece_it_is_the_same(&mut self, bytes: &[u8]) {
        let mut screen = Screen::new(self.screen.size(), HISTORY);
        screen.feed(bytes, self.now);
        screen.expire(self.now + Duration::from_secs(1));
        // Half a character at the end shows as broken only once the next byte is there.
        screen.feed(b"x", self.now);
        self.screen.feed(b"x", self.now);
        screen.expire(self.now + Duration::from_secs(1));
        self.screen.expire(self.now + Duration::from_secs(1));
        assert_eq!(screen.text(), self.screen.text());
        assert_eq!(screen.modes(), self.screen.modes());
        assert_eq!(screen.title(), self.screen.title());
        assert_eq!(screen.cursor(), self.screen.cursor());
    }
}

fn whole(canvas: &mut Canvas, model: &Model, screen: &Screen, theme: &Theme) -> Vec<u8> {
    let pane = layout(model).pane_inner();
    let links = ui::pane::link_runs(pane, screen, 0..u16::MAX, theme.depth, HOST_NAME);
    canvas.set_links(links);
    canvas.whole(|buf| ui::paint(buf, model, screen, theme).map(placed))
}

/// A host terminal as it is when we begin.
fn host_terminal((columns, rows): (u16, u16)) -> Screen {
    let mut terminal = Screen::new(PaneSize::new(columns, rows), 0);
    terminal.feed_at_once(b"\x1b[?25l");
    terminal
}

fn placed(cursor: HostCursor) -> (Position, bool) {
    (Position::new(cursor.column, cursor.row), cursor.visible)
}

fn inside(cursor: Cursor, size: PaneSize) {
    assert!(cursor.column < size.columns(), "{cursor:?} in {size:?}");
    assert!(cursor.row < size.rows(), "{cursor:?} in {size:?}");
}

/// Takes what a screen shows: texts in it are clean and of bounded length.
pub fn facts(screen: &mut Screen) -> Vec<ScreenFact> {
    let facts = screen.take_facts();
    for fact in &facts {
        match fact {
            ScreenFact::Title(title) => is_clean(title, 256),
            ScreenFact::Notification { title, body } => {
                is_clean(title, 1024);
                is_clean(body, 1024);
            }
            _ => {}
        }
    }
    is_clean(screen.title(), 256);
    facts
}

fn is_clean(text: &str, longest: usize) {
    assert!(text.chars().count() <= longest);
    let hostile = |c: char| {
        c.is_control()
            || matches!(c, '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
    };
    assert!(!text.contains(hostile), "{text:?}");
}

/// The sequences that a frame is made of: colours, cursor, erasing, links; everything else is text.
fn may_be_written(bytes: &[u8]) {
    let text = std::str::from_utf8(bytes).expect("a frame is text");
    let mut rest = text;
    while let Some(at) = rest.find(|c: char| c.is_control()) {
        let sequence = &rest[at..];
        let length = match sequence.as_bytes() {
            [0x1b, b'[', body @ ..] => {
                let end = body
                    .iter()
                    .position(|byte| !matches!(byte, b'0'..=b';' | b'?'));
                let end = end.expect("an end");
                let (numbers, last) = (&sequence[2..2 + end], body[end]);
                let fine = match last {
                    b'm' => numbers.bytes().all(|byte| matches!(byte, b'0'..=b';')),
                    b'H' => numbers
                        .bytes()
                        .all(|byte| matches!(byte, b'0'..=b'9' | b';')),
                    // X: a character of two cells on which terminals disagree.
                    b'J' | b'X' => numbers == "2",
                    b'h' | b'l' => numbers == "?25",
                    _ => false,
                };
                assert!(fine, "{:?} in a frame", &sequence[..end + 3]);
                end + 3
            }
            [0x1b, b']', b'8', b';', ..] => {
                let end = sequence[4..].find(|c: char| !matches!(c, '!'..='~'));
                let end = end.expect("an end") + 4;
                assert!(sequence[end..].starts_with("\x1b\\"), "{sequence:?}");
                end + 2
            }
            _ => panic!(
                "{:?} in a frame",
                sequence.chars().take(9).collect::<String>()
            ),
        };
        rest = &sequence[length..];
    }
}
