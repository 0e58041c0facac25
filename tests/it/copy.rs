//! Copy mode: keys and mouse through the core to the screen, and the whole of it in a terminal.

use std::{
    fs,
    time::{Duration, Instant},
};

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers, MouseButton, MouseEvent, MouseEventKind};
use pitstop::ui::{self, Depth, Theme};
use pitstop_core::{
    app::{
        self, Effect, Event, Model,
        event::{HostEvent, PaneEvent},
        layout,
        model::Focus,
    },
    config::{ClipboardPolicy, ThemeName},
};
use pitstop_terminal::{
    copy::SelectionKind,
    input::HostInput,
    screen::{Screen, ScreenFact},
};
use ratatui::{Terminal, backend::TestBackend};

use crate::{
    kit::{
        messages_api::Answer,
        supervisor::{Launch, SOON, Supervisor, key},
    },
    ui::scene,
};

/// The core with a screen that obeys it, and what else it ordered.
struct Reader {
    model: Model,
    screen: Screen,
    ordered: Vec<Effect>,
    milliseconds: u64,
}

impl Reader {
    fn new(text: &str) -> Self {
        let model = scene::beginning((140, 40), "");
        let mut screen = Screen::new(layout::layout(&model).pane_size(), 1000);
        screen.feed(text.replace('\n', "\r\n").as_bytes(), Instant::now());
        Self {
            model,
            screen,
            ordered: Vec::new(),
            milliseconds: 720_000,
        }
    }

    fn update(&mut self, event: Event) {
        let mut at = scene::at(0);
        at.since_start = Duration::from_millis(self.milliseconds);
        let mut events = vec![event];
        while let Some(event) = events.pop() {
            for effect in app::update(&mut self.model, at, event) {
                match effect {
                    Effect::CopyMode(order) => {
                        let answer = self.screen.copy(&order);
                        events.push(Event::Pane(PaneEvent::CopyMode(answer)));
                    }
                    Effect::ScrollPane(scroll) => self.screen.scroll(scroll),
                    effect => self.ordered.push(effect),
                }
            }
        }
    }

    fn key(&mut self, code: KeyCode, modifiers: KeyModifiers) {
        let event = KeyEvent::new(code, modifiers);
        self.update(Event::Host(HostEvent::Input(HostInput::Key {
            event,
            raw: b"?".to_vec(),
        })));
    }

    /// Types keys: `^v` is Ctrl-V, `<` Enter, `>` Esc.
    fn keys(&mut self, keys: &str) {
        let mut chars = keys.chars();
        while let Some(c) = chars.next() {
            match c {
                '^' => {
                    let c = chars.next().expect("a key");
                    self.key(KeyCode::Char(c), KeyModifiers::CONTROL);
                }
                '<' => self.key(KeyCode::Enter, KeyModifiers::NONE),
                '>' => self.key(KeyCode::Esc, KeyModifiers::NONE),
                c => self.key(KeyCode::Char(c), KeyModifiers::NONE),
            }
        }
    }

    fn begin(&mut self) {
        self.key(KeyCode::F(9), KeyModifiers::NONE);
        assert!(self.model.view.copy.is_on());
    }

    /// A mouse event at a cell of the pane.
    fn mouse(&mut self, kind: MouseEventKind, column: u16, row: u16) {
        self.mouse_with(kind, column, row, KeyModifiers::NONE);
    }

    fn mouse_with(&mut self, kind: MouseEventKind, column: u16, row: u16, modifiers: KeyModifiers) {
        let inner = layout::layout(&self.model).pane_inner();
        let event = MouseEvent {
            kind,
            column: inner.x + column,
            row: inner.y + row,
            modifiers,
        };
        let raw = Vec::new();
        self.update(Event::Host(HostEvent::Input(HostInput::Mouse {
            event,
            raw,
        })));
    }

    fn click(&mut self, column: u16, row: u16) {
        self.mouse(MouseEventKind::Down(MouseButton::Left), column, row);
        self.mouse(MouseEventKind::Up(MouseButton::Left), column, row);
    }

    /// What was copied last.
    fn copied(&mut self) -> Option<String> {
        let mut ordered = self.ordered.drain(..).rev();
        ordered.find_map(|effect| match effect {
            Effect::Copy(text) => Some(text),
            _ => None,
        })
    }

    fn frame(&self) -> String {
        let (columns, rows) = self.model.view.host;
        let mut terminal = Terminal::new(TestBackend::new(columns, rows)).expect("a terminal");
        terminal
            .draw(|frame| ui::draw(frame, &self.model, &self.screen, &Theme::default()))
            .expect("drawing");
        terminal.backend().to_string()
    }
}

#[test]
fn what_is_selected_by_keys_is_copied_and_the_mode_left() {
    let mut reader = Reader::new("first line\nsecond line\nthird");
    reader.begin();
    reader.keys("gjv$");
    let copy = reader.model.view.copy.mode().expect("copy mode");
    assert_eq!(copy.selecting, Some(SelectionKind::Characters));
    reader.keys("y");
    assert_eq!(reader.copied().as_deref(), Some("second line"));
    assert!(!reader.model.view.copy.is_on());
    let notice = &reader.model.view.notices.back().expect("a notice").text;
    assert_eq!(notice, "copied 11 characters");

    reader.begin();
    reader.keys("gVj<");
    assert_eq!(reader.copied().as_deref(), Some("first line\nsecond line"));
    reader.begin();
    reader.keys("gw^vjhhy");
    assert_eq!(reader.copied().as_deref(), Some("t l\nnd"));
}

#[test]
fn keys_of_copy_mode_never_reach_the_agent() {
    let mut reader = Reader::new("text");
    reader.begin();
    reader.keys("jklhvwbe0$gGHMLVo^u^d^f^b/te<nNr>");
    let sent = |effect: &Effect| matches!(effect, Effect::Forward(_) | Effect::Type(_));
    assert!(!reader.ordered.iter().any(sent), "{:?}", reader.ordered);
    assert!(!reader.model.view.copy.is_on());
    reader.keys("x");
    assert!(reader.ordered.iter().any(sent), "{:?}", reader.ordered);
}

#[test]
fn escape_drops_the_search_then_the_selection_then_the_mode() {
    let mut reader = Reader::new("text\nmore");
    reader.begin();
    reader.keys("gv/mo");
    assert!(reader.frame().contains(" /mo"));
    let cursor = ui::cursor(&reader.model, &reader.screen).expect("a cursor");
    assert_eq!(
        (cursor.column, cursor.row),
        (4, 39),
        "it stands in the search"
    );
    reader.keys(">");
    let copy = reader.model.view.copy.mode().expect("copy mode");
    assert!(copy.search.is_none() && copy.selecting.is_some());
    reader.keys(">");
    let copy = reader.model.view.copy.mode().expect("copy mode");
    assert!(copy.selecting.is_none());
    reader.keys(">");
    assert!(!reader.model.view.copy.is_on());
}

#[test]
fn a_bad_pattern_is_shown_in_the_search_line_and_can_be_mended() {
    let mut reader = Reader::new("alpha\nbeta (x)");
    reader.begin();
    reader.keys("g/beta (<");
    let shown = reader.frame();
    assert!(
        shown.contains("/beta (   not a pattern: unclosed group"),
        "{shown}"
    );
    reader.key(KeyCode::Backspace, KeyModifiers::NONE);
    reader.keys("<");
    let copy = reader.model.view.copy.mode().expect("copy mode");
    assert_eq!((copy.search.as_ref(), copy.said.as_deref()), (None, None));
    reader.keys("vey");
    assert_eq!(reader.copied().as_deref(), Some("beta"));
}

#[test]
fn a_paste_into_the_search_is_a_part_of_the_pattern() {
    let mut reader = Reader::new("alpha\nbeta");
    reader.begin();
    reader.keys("g/");
    for piece in [
        HostInput::PasteStart,
        HostInput::PasteChunk(b"be\x1bta\nrm -rf".to_vec()),
        HostInput::PasteEnd,
    ] {
        reader.update(Event::Host(HostEvent::Input(piece)));
    }
    let copy = reader.model.view.copy.mode().expect("copy mode");
    assert_eq!(copy.search.as_ref().expect("a search").pattern, "beta");
    reader.keys("<vly");
    assert_eq!(reader.copied().as_deref(), Some("be"));
}

#[test]
fn a_drag_selects_and_its_release_copies() {
    let mut reader = Reader::new("see the words here");
    reader.mouse(MouseEventKind::Down(MouseButton::Left), 4, 0);
    reader.mouse(MouseEventKind::Drag(MouseButton::Left), 4, 0);
    let copy = reader.model.view.copy.mode().expect("copy mode");
    assert!(copy.selecting.is_none(), "a tremble is no drag");
    reader.mouse(MouseEventKind::Drag(MouseButton::Left), 12, 0);
    reader.screen.feed(b"\x1b[2J\x1b[Hgone", Instant::now());
    reader.mouse(MouseEventKind::Up(MouseButton::Left), 12, 0);
    assert_eq!(reader.copied().as_deref(), Some("the words"));
    assert!(!reader.model.view.copy.is_on());
    assert!(reader.screen.text().starts_with("gone"));
}

#[test]
fn two_clicks_copy_a_word_and_three_a_line() {
    let mut reader = Reader::new("see src/lib.rs now");
    reader.click(6, 0);
    assert_eq!(reader.copied(), None);
    assert!(
        !reader.model.view.copy.is_on(),
        "a click leaves everything as it is"
    );
    reader.milliseconds += 150;
    reader.click(6, 0);
    assert_eq!(reader.copied().as_deref(), Some("src/lib.rs"));
    reader.milliseconds += 150;
    reader.click(6, 0);
    assert_eq!(reader.copied().as_deref(), Some("see src/lib.rs now"));
    reader.milliseconds += 2000;
    reader.click(6, 0);
    assert_eq!(reader.copied(), None, "too late for a fourth");
}

#[test]
fn the_mouse_is_the_childs_when_it_asked_and_ours_with_shift() {
    let mut reader = Reader::new("some words");
    reader.update(Event::Pane(PaneEvent::MouseModeSet { on: true }));
    let down = MouseEventKind::Down(MouseButton::Left);
    reader.mouse(down, 0, 0);
    assert!(matches!(reader.ordered.pop(), Some(Effect::Forward(_))));
    assert!(!reader.model.view.copy.is_on());
    let shift = KeyModifiers::SHIFT;
    reader.mouse_with(down, 0, 0, shift);
    reader.mouse_with(MouseEventKind::Drag(MouseButton::Left), 3, 0, shift);
    // Some terminals lose the modifier on the way.
    reader.mouse(MouseEventKind::Up(MouseButton::Left), 3, 0);
    assert_eq!(reader.copied().as_deref(), Some("some"));
    assert!(
        !reader
            .ordered
            .iter()
            .any(|effect| matches!(effect, Effect::Forward(_)))
    );
}

#[test]
fn a_panel_gets_its_click_after_a_drag_that_was_lost() {
    let mut reader = Reader::new("some words");
    reader.mouse(MouseEventKind::Down(MouseButton::Left), 0, 0);
    let layout = layout::layout(&reader.model);
    let (_, area) = layout
        .panels
        .iter()
        .find(|(panel, _)| *panel == Focus::History)
        .expect("a panel");
    let event = MouseEvent {
        kind: MouseEventKind::Down(MouseButton::Left),
        column: area.x + 2,
        row: area.y + 1,
        modifiers: KeyModifiers::NONE,
    };
    let raw = Vec::new();
    reader.update(Event::Host(HostEvent::Input(HostInput::Mouse {
        event,
        raw,
    })));
    assert_eq!(reader.model.view.focus, Focus::History);
    assert!(!reader.model.view.copy.is_on());
}

#[test]
fn the_agent_writes_the_clipboard_only_as_far_as_it_may() {
    let stored = |policy, focus| {
        let mut reader = Reader::new("");
        reader.model.config.ui.clipboard = policy;
        reader.model.view.focus = focus;
        let fact = ScreenFact::ClipboardStore("text".to_owned());
        reader.update(Event::Pane(PaneEvent::Screen(fact)));
        reader
            .ordered
            .contains(&Effect::StoreClipboard("text".to_owned()))
    };
    for (policy, focus, passed) in [
        (ClipboardPolicy::Focused, Focus::Pane, true),
        (ClipboardPolicy::Focused, Focus::Scratchpad, false),
        (ClipboardPolicy::Allow, Focus::Scratchpad, true),
        (ClipboardPolicy::Deny, Focus::Pane, false),
    ] {
        assert_eq!(stored(policy, focus), passed, "{policy:?} {focus:?}");
    }
}

#[test]
fn the_frame_says_where_the_reader_is_and_what_is_new() {
    let lines: Vec<String> = (0..300).map(|n| format!("line {n}")).collect();
    for host in [(140, 40), (80, 24), (40, 12)] {
        let mut reader = Reader::new("");
        reader.model.view.host = host;
        reader.screen = Screen::new(layout::layout(&reader.model).pane_size(), 1000);
        reader
            .screen
            .feed(lines.join("\r\n").as_bytes(), Instant::now());
        reader.begin();
        reader.keys("^b^bV");
        reader.screen.feed(b"\r\nmore", Instant::now());
        let shown = reader.frame();
        assert!(shown.contains("copy: lines · −"), "{shown}");
        assert!(host.0 < 80 || shown.contains("new output below"), "{shown}");
        assert!(host.0 < 80 || shown.contains("y copy"), "{shown}");
    }
}

#[test]
fn what_is_selected_and_found_stands_out_in_every_theme() {
    let mut reader = Reader::new("alpha \x1b[7mbeta\x1b[0m \x1b[44mgamma\x1b[0m beta");
    reader.begin();
    reader.keys("g/beta<v$");
    let inner = layout::layout(&reader.model).pane_inner();
    for theme in [
        ThemeName::Dark,
        ThemeName::Light,
        ThemeName::ColourBlind,
        ThemeName::HighContrast,
        ThemeName::Mono,
    ] {
        for depth in [
            Depth::Mono,
            Depth::Ansi16,
            Depth::Indexed256,
            Depth::TrueColor,
        ] {
            let theme_of = Theme::new(theme, depth, true);
            let mut terminal = Terminal::new(TestBackend::new(140, 40)).expect("a terminal");
            let draw = |terminal: &mut Terminal<TestBackend>, reader: &Reader| {
                let drawn = terminal
                    .draw(|frame| ui::draw(frame, &reader.model, &reader.screen, &theme_of));
                drawn.expect("drawing").buffer.clone()
            };
            let marked = draw(&mut terminal, &reader);
            reader.keys(">");
            let found = draw(&mut terminal, &reader);
            reader
                .screen
                .copy(&pitstop_terminal::copy::CopyOrder::Leave);
            let plain = draw(&mut terminal, &reader);
            for column in 6..10 {
                let at = (inner.x + column, inner.y);
                let style = |buffer: &ratatui::buffer::Buffer| buffer[at].style();
                assert_ne!(
                    style(&marked),
                    style(&plain),
                    "{theme:?} {depth:?} {column}"
                );
                assert_ne!(style(&found), style(&plain), "{theme:?} {depth:?} {column}");
                assert_ne!(
                    style(&found),
                    style(&marked),
                    "{theme:?} {depth:?} {column}"
                );
            }
            reader.keys("q");
            reader.begin();
            reader.keys("g/beta<v$");
        }
    }
}

/// A supervisor whose hosted program is this shell script.
fn script(text: &str) -> Launch {
    let launch = Launch::generic("sh child.sh").set("reboot.mode=\"manual\"");
    fs::write(launch.project().join("child.sh"), format!("{text}\n")).expect("a script");
    launch
}

/// Whether the host terminal was given this text for its clipboard.
fn given(supervisor: &Supervisor, base64: &str) -> bool {
    let wanted = format!("\x1b]52;c;{base64}\x1b\\");
    let output = supervisor.terminal.output();
    memchr::memmem::find(&output, wanted.as_bytes()).is_some()
}

#[test]
fn a_line_is_found_in_the_scrollback_and_copied_while_output_goes_on() {
    let launch = script("seq -f 'row %g' 1 2000; while :; do echo tick; sleep 0.05; done");
    let supervisor = launch.start_showing("tick");
    supervisor.keys([key::F9, "?row 12[0-9]7$", key::ENTER]);
    supervisor.wait_for_text("row 1297", SOON);
    supervisor.wait_for_text("new output below", SOON);
    supervisor.keys(["V", "y"]);
    // `row 1297`.
    supervisor.wait_until("the text is copied", || given(&supervisor, "cm93IDEyOTc="));
    supervisor.wait_for_text("copied 8 characters", SOON);
    supervisor
        .terminal
        .wait_for(|screen| !screen.contains("row 1297"), SOON);
}

#[test]
fn the_systems_clipboard_is_given_the_text_too() {
    let launch = script("echo some text; exec sleep 1000");
    let tools = launch.the_home().path("tools");
    let tool = "#!/bin/sh\ncat > \"$PITSTOP_TEST_COPY\"\n";
    launch.the_home().program("tools/wl-copy", tool);
    let copy = launch.the_home().path("copied");
    let path = std::env::var("PATH").unwrap_or_default();
    let launch = launch
        .env("PATH", format!("{}:{path}", tools.display()))
        .env("WAYLAND_DISPLAY", "wayland-9")
        .env("PITSTOP_TEST_COPY", &copy);
    let supervisor = launch.start_showing("some text");
    // The mouse, as a terminal reports it: a double click on `text`.
    let screen = supervisor.terminal.screen_text();
    let row = screen
        .lines()
        .position(|line| line.contains("some text"))
        .expect("a row")
        + 1;
    let line = screen.lines().nth(row - 1).expect("a row");
    let before = line.split("text").next().expect("a beginning");
    let column = before.chars().count() + 2;
    for _ in 0..2 {
        let at = format!("{column};{row}");
        supervisor
            .terminal
            .send(format!("\x1b[<0;{at}M\x1b[<0;{at}m"));
    }
    let copied = || fs::read_to_string(&copy).unwrap_or_default();
    supervisor.wait_until("the tool has the text", || copied() == "text");
    let terminal = || given(&supervisor, "dGV4dA==");
    supervisor.wait_until("the terminal has the text", terminal);
}

#[test]
#[ignore = "live: needs PITSTOP_CLAUDE"]
fn the_transcript_of_the_real_client_is_read_where_it_has_the_whole_screen() {
    let launch = Launch::live().size(120, 30);
    let long: Vec<String> = (1..=60).map(|line| format!("- point {line}")).collect();
    launch
        .api()
        .answer([Answer::text(&long.join("\n")), Answer::text("**Done**.")]);
    let supervisor = launch.start_idle();
    for prompt in ["list the points", "and now?"] {
        supervisor.turn(prompt, prompt);
    }
    supervisor.wait_for_text("Done", SOON);
    // The client has scrolled it away for good.
    supervisor.keys([key::F9]);
    supervisor.wait_for_text("transcript · iteration 1", SOON);
    supervisor.keys(["g"]);
    supervisor.wait_for_text("list the points", SOON);
    supervisor.wait_for_text("• point 1", SOON);
    supervisor.keys(["/point 4[0-9]", "\r", "Y"]);
    supervisor.wait_for_text("copied", SOON);
    supervisor.wait_for_request("\x1b]52;", 1);
    supervisor.keys(["q"]);
    supervisor
        .terminal
        .wait_for(|text| !text.contains("transcript"), SOON);
}
