//! Links under the pointer: where they go is shown in the footer, and the host terminal is asked for the pointer's moves
//! only while there is one to point at.

use pitstop::ui::{self, Theme};
use pitstop_base::keymap::Action;
use pitstop_core::app::{
    self, Event, Model,
    event::{HostEvent, PaneEvent},
};
use pitstop_terminal::{PaneSize, input::HostInput, screen::Screen};
use ratatui::{Terminal, backend::TestBackend};
use rustix::process::Signal;

use crate::{
    kit::supervisor::{SOON, Supervisor, key},
    pane::{read, script},
    ui::scene::{act, at, press, update, working},
};

/// What asks for moves, and what takes that back.
const ON: &str = "\x1b[?1003h";
const OFF: &str = "\x1b[?1003l\x1b[?1000h\x1b[?1002h";

fn hover(model: &mut Model, target: Option<&str>) {
    let target = target.map(str::to_owned);
    update(model, 713, Event::Pane(PaneEvent::LinkHovered { target }));
}

/// The last row of a frame.
fn footer(model: &Model) -> String {
    let (columns, rows) = model.view.host;
    let mut terminal = Terminal::new(TestBackend::new(columns, rows)).expect("a terminal");
    let screen = Screen::new(PaneSize::new(80, 24), 10);
    terminal
        .draw(|frame| ui::draw(frame, model, &screen, &Theme::default()))
        .expect("drawing");
    let cells = &terminal.backend().buffer().content;
    let last = &cells[cells.len() - usize::from(columns)..];
    last.iter().map(ratatui::buffer::Cell::symbol).collect()
}

#[test]
fn the_footer_shows_where_a_link_goes_at_every_width() {
    let target = "https://me@docs.example.org/a/page?of=a#book";
    for columns in [40, 60, 80, 100, 132, 200] {
        let mut model = working((columns, 24));
        let before = footer(&model);
        hover(&mut model, Some(target));
        let shown = footer(&model);
        assert!(shown.contains("docs.example.org"), "{columns}: {shown}");
        assert_eq!(shown.contains(target), columns >= 80, "{columns}: {shown}");
        // The gauge and the state stay where there is room for them.
        assert_eq!(
            shown.contains(" idle "),
            columns >= 60,
            "{columns}: {shown}"
        );
        hover(&mut model, None);
        assert_eq!(footer(&model), before, "{columns}");
    }
}

#[test]
fn what_is_typed_in_the_footer_and_what_lies_over_the_pane_go_first() {
    let mut model = working((132, 40));
    hover(&mut model, Some("https://example.org/"));
    assert!(footer(&model).contains("→ https://example.org/"));
    model.view.prefixed = true;
    assert!(!footer(&model).contains("example.org"));
    model.view.prefixed = false;
    act(&mut model, Action::Help);
    assert!(!footer(&model).contains("example.org"));
    act(&mut model, Action::Help);
    act(&mut model, Action::Scroll);
    assert!(footer(&model).contains(" copy → https://example.org/"));
    press(&mut model, crossterm::event::KeyCode::Char('/'));
    assert!(!footer(&model).contains("example.org"));
}

/// The pointer is moved to where the screen shows these words.
#[track_caller]
fn point(supervisor: &Supervisor, words: &str) {
    // An overlay that was closed goes with the next frame.
    let screen = supervisor.wait_for_text(words, SOON);
    let row = screen
        .lines()
        .position(|line| line.contains(words))
        .expect("the words");
    let line = screen.lines().nth(row).unwrap_or_default();
    let column = line[..line.find(words).unwrap_or(0)].chars().count();
    let place = format!("\x1b[<35;{};{}M", column + 1, row + 1);
    supervisor.keys([place.as_str()]);
}

#[track_caller]
fn is_shown(supervisor: &Supervisor, target: &str) {
    supervisor
        .terminal
        .wait_for(|screen| footer_of(screen).contains(target), SOON);
}

#[track_caller]
fn is_shown_no_more(supervisor: &Supervisor) {
    supervisor
        .terminal
        .wait_for(|screen| !footer_of(screen).contains("→"), SOON);
}

fn footer_of(screen: &str) -> &str {
    screen.lines().last().unwrap_or_default()
}

#[test]
fn a_link_is_shown_while_the_pointer_stands_on_it_and_the_child_gets_no_move() {
    let supervisor = script(
        (90, 30),
        concat!(
            r"printf '\033[?1002h\033[?1006hplain READY\r\n'; dd bs=1 count=1 2>/dev/null >one",
            "\n",
            r"printf '\033]8;;https://first.example/x\033\\bank.example\033]8;;\033\\ between '",
            "\n",
            r"printf '\033]8;;javascript:alert(1)\033\\script\033]8;;\033\\ LINKS\r\n'",
            "\n",
            r"dd bs=1 count=1 2>/dev/null >two; printf '\033[2J\033[HGONE'; exec cat >typed",
        ),
    )
    .start();
    supervisor.wait_for_text("READY", SOON);
    // There is nothing to point at.
    supervisor.wait_for_request(ON, 0);
    supervisor.keys(["a"]);
    supervisor.wait_for_text("LINKS", SOON);
    supervisor.wait_for_request(ON, 1);
    point(&supervisor, "bank.example");
    is_shown(&supervisor, "→ https://first.example/x");
    point(&supervisor, "script");
    is_shown_no_more(&supervisor);
    point(&supervisor, "example");
    is_shown(&supervisor, "→ https://first.example/x");
    // In copy mode, too, until a key is pressed, and not behind what lies over it.
    supervisor.keys([key::F9]);
    is_shown_no_more(&supervisor);
    point(&supervisor, "between");
    point(&supervisor, "bank.example");
    is_shown(&supervisor, "copy → https://first.example/x");
    supervisor.keys([key::ESC]);
    is_shown_no_more(&supervisor);
    supervisor.keys([key::F1]);
    supervisor.wait_for_request(OFF, 1);
    supervisor.keys([key::ESC]);
    supervisor.wait_for_request(ON, 2);
    point(&supervisor, "bank.example");
    is_shown(&supervisor, "→ https://first.example/x");
    // The text goes away under it: this is no key to us.
    supervisor.keys(["\x1b[<0;2;3M", "\x1b[<0;2;3m"]);
    supervisor.wait_for_text("GONE", SOON);
    is_shown_no_more(&supervisor);
    supervisor.wait_for_request(OFF, 2);
    supervisor.keys(["\x1b[<35;5;5M", "\x1b[<0;7;7M", "END"]);
    let typed = || String::from_utf8_lossy(&read(&supervisor, "typed")).into_owned();
    supervisor.wait_until("the end", || typed().ends_with("END"));
    let (typed, click) = (typed(), "\x1b[<0;7;7M");
    assert!(!typed.contains("\x1b[<35"), "{typed:?}");
    assert!(typed.ends_with(&format!("{click}END")), "{typed:?}");
}

#[test]
fn a_child_that_asks_for_moves_gets_them_byte_by_byte_and_only_in_its_pane() {
    let supervisor = script(
        (90, 30),
        r"printf '\033[?1003h\033[?1006hREADY'; exec cat >typed",
    )
    .start();
    supervisor.wait_for_text("READY", SOON);
    supervisor.wait_for_request(ON, 1);
    // The footer is ours; copy mode and help keep the mouse.
    supervisor.keys(["\x1b[<35;3;4M", "\x1b[<35;3;30M", key::F1]);
    supervisor.wait_for_request(OFF, 1);
    supervisor.keys(["\x1b[<35;5;5M", key::ESC]);
    supervisor.wait_for_request(ON, 2);
    supervisor.keys([key::F9]);
    supervisor.wait_for_request(OFF, 2);
    supervisor.keys(["\x1b[<35;6;6M", key::F9]);
    supervisor.wait_for_request(ON, 3);
    supervisor.keys(["\x1b[<39;7;7M", "\x1b[<51;8;8M", "END"]);
    let typed = || String::from_utf8_lossy(&read(&supervisor, "typed")).into_owned();
    supervisor.wait_until("the end", || typed().ends_with("END"));
    assert_eq!(typed(), "\x1b[<35;3;4M\x1b[<51;8;8MEND");
    // No one asks for them when we are gone.
    supervisor.signal(Signal::TERM);
    supervisor.wait_for_exit(SOON);
    assert_eq!(supervisor.terminal.modes_left_on(), Vec::<&str>::new());
}

#[test]
fn a_move_is_for_the_child_alone() {
    let mut model = working((132, 40));
    let moved = |model: &mut Model| {
        let input = HostInput::Mouse {
            event: crossterm::event::MouseEvent {
                kind: crossterm::event::MouseEventKind::Moved,
                column: 5,
                row: 5,
                modifiers: crossterm::event::KeyModifiers::NONE,
            },
            raw: Vec::new(),
        };
        app::update(model, at(714), Event::Host(HostEvent::Input(input))).len()
    };
    assert_eq!(moved(&mut model), 1);
    act(&mut model, Action::Scroll);
    assert_eq!(moved(&mut model), 0, "it is read");
    act(&mut model, Action::Scroll);
    act(&mut model, Action::Help);
    assert_eq!(moved(&mut model), 0, "it is covered");
    act(&mut model, Action::Help);
    act(&mut model, Action::Scratchpad);
    assert_eq!(moved(&mut model), 0, "it has no focus");
}
