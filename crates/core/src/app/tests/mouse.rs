//! The mouse: the receiver of a press gets everything up to its release, and no other part of the screen gets any of it.

use crossterm::event::{KeyModifiers, MouseButton, MouseEvent, MouseEventKind};

use super::*;
use crate::app::view::layout::layout;

/// A bench with four panels beside the pane, whose agent has asked for the mouse.
fn bench() -> Bench {
    let mut bench = Bench::new();
    bench.send(Event::Host(HostEvent::Resized {
        columns: 160,
        rows: 40,
    }));
    bench.send(Event::Pane(PaneEvent::MouseModeSet { on: true }));
    bench
}

/// A cell in the pane's text, one in the first panel, and one on the border between them.
fn cells(bench: &Bench) -> [(u16, u16); 3] {
    let layout = layout(&bench.model);
    let (inner, (_, panel)) = (layout.pane_inner(), layout.panels[0]);
    [
        (inner.x + 5, inner.y + 5),
        (panel.x + 5, panel.y + 2),
        (layout.pane.right() - 1, 5),
    ]
}

fn report(kind: MouseEventKind, (column, row): (u16, u16)) -> Event {
    let event = MouseEvent {
        kind,
        column,
        row,
        modifiers: KeyModifiers::NONE,
    };
    let raw = Vec::new();
    Event::Host(HostEvent::Input(HostInput::Mouse { event, raw }))
}

fn other(number: u16, pressed: bool, (column, row): (u16, u16)) -> Event {
    Event::Host(HostEvent::Input(HostInput::OtherButton {
        number,
        pressed,
        column,
        row,
        raw: Vec::new(),
    }))
}

/// What the agent gets of the mouse: letters for press, drag, release, move and wheel, `o` for another button.
fn given(bench: &mut Bench, events: impl IntoIterator<Item = Event>) -> String {
    let mut all = String::new();
    for event in events {
        for effect in bench.send(event) {
            all.push(match effect {
                Effect::Forward(HostInput::Mouse { event, .. }) => match event.kind {
                    MouseEventKind::Down(_) => 'p',
                    MouseEventKind::Drag(_) => 'd',
                    MouseEventKind::Up(_) => 'r',
                    MouseEventKind::Moved => 'm',
                    _ => 'w',
                },
                Effect::Forward(HostInput::OtherButton { .. }) => 'o',
                _ => continue,
            });
        }
    }
    all
}

const LEFT: MouseButton = MouseButton::Left;

use MouseEventKind::{Down, Drag, Moved, ScrollUp, Up};

#[test]
fn a_press_in_the_pane_has_all_that_follows_until_its_release() {
    for button in [LEFT, MouseButton::Middle, MouseButton::Right] {
        let mut bench = bench();
        let [pane, panel, border] = cells(&bench);
        let events = [
            report(Down(button), pane),
            report(Drag(button), panel),
            report(Drag(button), border),
            report(Drag(button), (159, 39)),
            report(Up(button), panel),
            report(Drag(button), pane),
            report(Up(button), pane),
        ];
        assert_eq!(given(&mut bench, events), "pdddr", "{button:?}");
        assert_eq!(bench.model.view.focus, Focus::Pane);
    }
    // Whatever opens meanwhile.
    let mut bench = bench();
    let [pane, panel, _] = cells(&bench);
    assert_eq!(given(&mut bench, [report(Down(LEFT), pane)]), "p");
    bench.press(KeyCode::F(1));
    assert_eq!(given(&mut bench, [report(Up(LEFT), panel)]), "r");
    let events = [report(Down(LEFT), pane), report(Up(LEFT), pane)];
    assert_eq!(given(&mut bench, events), "", "help lies over it");
    // Two buttons at once.
    let mut bench = self::bench();
    let events = [
        report(Down(LEFT), pane),
        report(Down(MouseButton::Right), pane),
        report(Up(MouseButton::Right), panel),
        report(Up(LEFT), panel),
        report(Up(LEFT), pane),
    ];
    assert_eq!(given(&mut bench, events), "pprr");
}

#[test]
fn a_press_elsewhere_gives_the_pane_nothing_of_what_follows() {
    for at in [1, 2] {
        let mut bench = bench();
        let cells = cells(&bench);
        let (pane, from) = (cells[0], cells[at]);
        let events = [
            report(Down(LEFT), from),
            report(Drag(LEFT), pane),
            report(Up(LEFT), pane),
        ];
        assert_eq!(given(&mut bench, events), "", "{from:?}");
        let focused = bench.model.view.focus != Focus::Pane;
        assert_eq!(focused, at == 1);
    }
    // A press that brings the focus back is not one for the agent; the next is.
    let mut bench = bench();
    let [pane, panel, _] = cells(&bench);
    let click = |at| [report(Down(LEFT), at), report(Up(LEFT), at)];
    let events = click(panel).into_iter().chain(click(pane));
    assert_eq!(given(&mut bench, events), "");
    assert_eq!(given(&mut bench, click(pane)), "pr");
    // So is one on the pane's own border and title.
    assert_eq!(given(&mut bench, click((10, 0))), "");
    // A release whose press went to what was open.
    bench.press(KeyCode::F(1));
    assert_eq!(given(&mut bench, [report(Down(LEFT), pane)]), "");
    bench.press(KeyCode::Esc);
    assert_eq!(given(&mut bench, [report(Up(LEFT), pane)]), "");
}

#[test]
fn a_lost_release_is_made_good_by_the_next_sign_that_the_button_is_up() {
    let mut bench = bench();
    let [pane, panel, border] = cells(&bench);
    let events = [report(Down(LEFT), pane), report(Moved, pane)];
    assert_eq!(given(&mut bench, events), "prm");
    let events = [report(Down(LEFT), pane), report(Down(LEFT), panel)];
    assert_eq!(given(&mut bench, events), "pr");
    // The border lets go too, also when its release came while something was open.
    for lost in [report(Up(LEFT), pane), report(Moved, pane)] {
        let mut bench = self::bench();
        given(
            &mut bench,
            [report(Down(LEFT), border), report(Drag(LEFT), (100, 5))],
        );
        let width = bench.model.view.panel_width;
        assert_eq!(width, Some(60));
        bench.press(KeyCode::F(1));
        given(&mut bench, [lost]);
        bench.press(KeyCode::Esc);
        let [pane, ..] = cells(&bench);
        let events = [
            report(Down(LEFT), pane),
            report(Drag(LEFT), (90, 9)),
            report(Up(LEFT), pane),
        ];
        assert_eq!(given(&mut bench, events), "pdr");
        assert_eq!(bench.model.view.panel_width, width);
    }
}

#[test]
fn what_is_held_is_not_for_the_next_agent() {
    let mut bench = bench();
    let [pane, ..] = cells(&bench);
    assert_eq!(given(&mut bench, [report(Down(LEFT), pane)]), "p");
    let iteration = bench.model.session.pane();
    bench.exited(1);
    bench.press(KeyCode::Enter);
    assert_ne!(bench.model.session.pane(), iteration, "another agent runs");
    bench.send(Event::Pane(PaneEvent::MouseModeSet { on: true }));
    assert_eq!(
        given(
            &mut bench,
            [report(Drag(LEFT), pane), report(Up(LEFT), pane)]
        ),
        ""
    );
    assert_eq!(
        given(
            &mut bench,
            [report(Down(LEFT), pane), report(Up(LEFT), pane)]
        ),
        "pr"
    );
}

#[test]
fn buttons_beyond_the_third_are_the_agents_alone() {
    let mut bench = bench();
    let [pane, panel, _] = cells(&bench);
    for number in [128, 129, 130, 131] {
        let events = [
            other(number, true, pane),
            other(number | 32, true, panel),
            other(number, false, panel),
            other(number, false, pane),
            other(number, true, panel),
            other(number, false, pane),
        ];
        assert_eq!(given(&mut bench, events), "ooo", "{number}");
    }
    bench.send(Event::Pane(PaneEvent::MouseModeSet { on: false }));
    let events = [other(128, true, pane), other(128, false, pane)];
    assert_eq!(given(&mut bench, events), "");
}

#[test]
fn the_wheel_is_for_what_lies_under_it() {
    let mut bench = bench();
    let [pane, panel, _] = cells(&bench);
    assert_eq!(given(&mut bench, [report(ScrollUp, pane)]), "w");
    assert_eq!(given(&mut bench, [report(ScrollUp, panel)]), "");
    // Also while a button is down.
    let events = [
        report(Down(LEFT), pane),
        report(ScrollUp, pane),
        report(Up(LEFT), pane),
    ];
    assert_eq!(given(&mut bench, events), "pwr");
}

fn panel_of(bench: &Bench, wanted: Focus) -> (u16, u16) {
    let places = layout(&bench.model);
    let mut panels = places.panels.iter();
    let (_, area) = panels
        .find(|(panel, _)| *panel == wanted)
        .expect("it is shown");
    (area.x + 5, area.y + 1)
}

#[test]
fn the_wheel_moves_what_lies_over_the_pane_and_not_the_agent_behind_it() {
    let down = MouseEventKind::ScrollDown;
    for size in [(160, 40), (120, 40), (80, 24)] {
        let mut bench = bench();
        bench.rebooted_to_new();
        let (columns, rows) = size;
        bench.send(Event::Host(HostEvent::Resized { columns, rows }));
        bench.send(Event::Pane(PaneEvent::MouseModeSet { on: true }));
        bench.press(KeyCode::F(6));
        let list = panel_of(&bench, Focus::History);
        assert_eq!(given(&mut bench, [report(down, list)]), "");
        assert_eq!(bench.model.view.history.selected, 1, "{size:?}");
        given(&mut bench, [report(down, list)]);
        assert_eq!(bench.model.view.history.selected, 1, "the last one");
        given(&mut bench, [report(ScrollUp, list)]);
        assert_eq!(bench.model.view.history.selected, 0);
        // Its details lie over the pane.
        bench.press(KeyCode::Enter);
        assert_eq!(given(&mut bench, [report(down, (5, 5))]), "", "{size:?}");
        assert_eq!(bench.model.view.history.scroll, 3);
        assert_eq!(bench.model.view.history.selected, 0);
    }
    // A history that is not in focus is not moved, and the pane beside it is the agent's again.
    let mut bench = bench();
    bench.rebooted_to_new();
    bench.send(Event::Pane(PaneEvent::MouseModeSet { on: true }));
    let list = panel_of(&bench, Focus::History);
    let [pane, ..] = cells(&bench);
    assert_eq!(
        given(&mut bench, [report(down, list), report(down, pane)]),
        "w"
    );
    assert_eq!(bench.model.view.history.selected, 0);
}

#[test]
fn the_wheel_moves_the_cursor_of_an_editor() {
    let down = MouseEventKind::ScrollDown;
    let text = "- a line\n".repeat(40);
    let mut bench = bench();
    bench.send(Event::Read(ReadEvent::Scratchpad(Some(text))));
    bench.press(KeyCode::F(3));
    bench.press(KeyCode::Char('e'));
    let there = panel_of(&bench, Focus::Scratchpad);
    let row = |bench: &Bench| bench.model.draft.notes.editor().unwrap().area.cursor().0;
    let before = bench.model.draft.notes.first_line();
    given(
        &mut bench,
        [
            report(down, there),
            report(down, there),
            report(ScrollUp, there),
        ],
    );
    assert_eq!(
        (row(&bench), bench.model.draft.notes.first_line()),
        (3, before)
    );
    bench.press(KeyCode::Esc);
    // In the handoff's panel, and in the review.
    for key in [KeyCode::F(4), KeyCode::F(5)] {
        bench.press(key);
        bench.press(KeyCode::Char('e'));
        let there = panel_of(&bench, Focus::Handoff);
        let row = |bench: &Bench| {
            let editor = bench.model.draft.handoff.editor.as_ref();
            editor.expect("it is open").area.cursor().0
        };
        let before = row(&bench);
        given(&mut bench, [report(down, there)]);
        assert_eq!(row(&bench), before + 3, "{key:?}");
        bench.press(KeyCode::Esc);
    }
}
