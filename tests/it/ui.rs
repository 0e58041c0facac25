//! Whole frames: how they look, that they fit at any size, and what never happens to them.

mod pictures;
pub mod scene;
mod svg;
mod views;

use std::{collections::BTreeSet, time::Instant};

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers, MouseButton, MouseEvent, MouseEventKind};
use pitstop::ui::{self, Depth, Theme};
use pitstop_base::keymap::{Action, Keymap};
use pitstop_core::{
    api::wire::AgentState,
    app::{
        Event, Model,
        event::{HostEvent, PaneEvent, ReadEvent, StoreEvent, TimerId},
        history::{Difference, EarlierRun},
        layout,
        model::{Focus, NotesPanel, Overlay, turns::RunTurns},
        tour::Tour,
        view::{Card, Outcome},
    },
    config::ThemeName,
    lineage::{
        IterationId,
        journal::Step,
        metrics::TurnFigures,
        past::{Excerpt, Found},
    },
};
use pitstop_handoff::check::{Check, WorkFact};
use pitstop_terminal::{PaneSize, input::HostInput, screen::Screen};
use pitstop_transcript::{Tokens, human::Said};
use proptest::prelude::*;
use ratatui::{
    Terminal,
    backend::TestBackend,
    buffer::{Buffer, Cell},
    layout::Rect,
    style::{Color, Modifier},
};
use scene::{act, at, beginning, press, press_key, screen, update, working};
use unicode_width::UnicodeWidthStr;

const NORMAL: (u16, u16) = (132, 40);

fn drawn(model: &Model, screen: &Screen, theme: &Theme) -> Terminal<TestBackend> {
    let (columns, rows) = model.view.host;
    let mut terminal = Terminal::new(TestBackend::new(columns, rows)).expect("a test terminal");
    terminal
        .draw(|frame| ui::draw(frame, model, screen, theme))
        .expect("drawing");
    terminal
}

/// The frame as the views wrote it: on the terminal, what a wide character hides is gone without a trace.
fn written(model: &Model, screen: &Screen, theme: &Theme) -> Buffer {
    let (columns, rows) = model.view.host;
    let mut terminal = Terminal::new(TestBackend::new(columns, rows)).expect("a test terminal");
    let frame = terminal.draw(|frame| ui::draw(frame, model, screen, theme));
    frame.expect("drawing").buffer.clone()
}

fn frame(model: &Model) -> Terminal<TestBackend> {
    drawn(model, &screen(model), &Theme::default())
}

/// The frame as text: one line a row, without blanks at the ends, the second cells of wide characters left out.
fn text(terminal: &Terminal<TestBackend>) -> String {
    let buffer = terminal.backend().buffer();
    let rows = buffer.content.chunks(usize::from(buffer.area.width.max(1)));
    let lines = rows.map(|row| {
        let mut line = String::new();
        let mut skip = 0;
        for cell in row {
            if skip == 0 {
                line.push_str(cell.symbol());
                skip = cell.symbol().width().max(1);
            }
            skip -= 1;
        }
        line.trim_end().to_owned()
    });
    lines.collect::<Vec<_>>().join("\n")
}

fn shot(model: &Model) -> String {
    text(&frame(model))
}

/// Types a text.
fn type_text(model: &mut Model, text: &str) {
    for c in text.chars() {
        press(model, KeyCode::Char(c));
    }
}

macro_rules! snapshot {
    ($name:literal, $model:expr) => {
        insta::with_settings!({ snapshot_path => "snapshots", prepend_module_to_snapshot => false, omit_expression => true }, {
            insta::assert_snapshot!($name, shot($model));
        });
    };
}

/// The scene of a view, by its name.
#[track_caller]
fn view(name: &str) -> fn((u16, u16)) -> Model {
    let view = views::VIEWS.iter().find(|view| view.0 == name);
    view.expect("the view").1
}

#[test]
fn the_screen_at_every_layout() {
    snapshot!("frame_40x12", &working((40, 12)));
    snapshot!("frame_80x24", &working((80, 24)));
    snapshot!("frame_100x30", &working((100, 30)));
    snapshot!("frame_120x40", &working((120, 40)));
    snapshot!("frame_132x24", &working((132, 24)));
    snapshot!("frame_132x40", &working((132, 40)));
    snapshot!("frame_200x50", &working((200, 50)));
}

#[test]
fn before_the_first_figure_the_gauge_says_what_is_awaited() {
    let model = beginning(NORMAL, "");
    snapshot!("no_figure_yet", &model);
}

#[test]
fn the_review_shows_the_whole_handoff_and_what_blocks() {
    let mut model = working(NORMAL);
    scene::begin_turn(&mut model, 713);
    act(&mut model, Action::Reboot);
    snapshot!("review", &model);
    model.view.host = (60, 20);
    snapshot!("review_small", &model);
    type_text(&mut model, "eX");
    snapshot!("review_editing", &model);
    press(&mut model, KeyCode::Esc);
    model.now = at(720);
    press(&mut model, KeyCode::Enter);
    let shown = shot(&model);
    assert!(!shown.contains("review the handoff"), "{shown}");
}

#[test]
fn the_review_says_what_the_handoff_misses_and_lists_it() {
    let mut model = working((100, 30));
    act(&mut model, Action::Reboot);
    let said = |text: &str| Said {
        text: text.to_owned(),
        at: Some(at(0).wall),
    };
    model.draft.handoff.check = Check {
        prompts: 5,
        missing_prompts: vec![said("Never touch the feeds that are live.")],
        facts: 41,
        missing_facts: vec![
            WorkFact::Name("read_all".to_owned(), Some("src/parse.rs".to_owned())),
            WorkFact::Command("cargo test".to_owned()),
        ],
    };
    snapshot!("review_missing", &model);
    press(&mut model, KeyCode::Char('m'));
    snapshot!("review_missing_listed", &model);
}

/// A review whose trim is known: 20 % of 67 responses, or what no level brings below the line.
fn reviewed(host: (u16, u16), offered: bool) -> Model {
    let mut model = working(host);
    act(&mut model, Action::Reboot);
    let after = if offered {
        [128_400, 119_700, 98_200, 61_000, 33_500]
    } else {
        [128_400, 128_100, 127_900, 127_000, 126_300]
    };
    scene::plan_trim(&mut model, 713, after);
    model
}

#[test]
fn a_client_that_waits_in_a_compaction_is_named_and_its_review_has_one_way() {
    let mut model = working(NORMAL);
    scene::compaction(&mut model, 712);
    model.now = at(720);
    snapshot!("compaction", &model);
    act(&mut model, Action::Reboot);
    snapshot!("compaction_review", &model);
}

#[test]
fn the_review_shows_both_ways_and_which_one_enter_takes() {
    let mut model = reviewed(NORMAL, true);
    snapshot!("review_ways", &model);
    press(&mut model, KeyCode::Char('t'));
    snapshot!("review_trim", &model);
    model.view.host = (60, 20);
    snapshot!("review_trim_small", &model);
    let model = reviewed((80, 24), false);
    snapshot!("review_no_trim", &model);
}

#[test]
fn a_trim_that_was_chosen_and_is_not_possible_is_said_to_hold_the_reboot() {
    let mut model = working(NORMAL);
    act(&mut model, Action::Reboot);
    press(&mut model, KeyCode::Char('t'));
    scene::plan_trim(
        &mut model,
        713,
        [128_400, 128_100, 127_900, 127_000, 126_300],
    );
    let drawn = text(&frame(&model));
    assert!(drawn.contains("Nothing goes ahead: the trim"), "{drawn}");
    assert!(
        !drawn.contains("Enter/a") && drawn.contains("w fresh"),
        "{drawn}"
    );
}

#[test]
fn help_lists_the_keys_in_force() {
    let mut model = working(NORMAL);
    act(&mut model, Action::Help);
    snapshot!("help", &model);
    model.view.host = (60, 16);
    model.view.overlay = Some(Overlay::Help { scroll: u16::MAX });
    snapshot!("help_end", &model);
}

#[test]
fn a_large_screen_has_the_whole_help_page() {
    let mut model = working((220, 60));
    act(&mut model, Action::Help);
    let drawn = text(&frame(&model));
    for said in ["Ctrl-q  ", "In the review", "In a recording", "copy a word"] {
        assert!(drawn.contains(said), "no {said:?}");
    }
}

#[test]
fn help_names_each_key_of_the_views_and_breaks_no_group() {
    for size in views::SIZES {
        let mut model = working(size);
        act(&mut model, Action::Help);
        let mut all = String::new();
        for _ in 0..9 {
            let shown = shot(&model);
            // A key stands two cells from the edge of its column, the name of its group one.
            let first = shown.lines().nth(3).unwrap_or_default();
            let column = usize::from((size.0 - 2) / ((size.0 - 2) / 70).clamp(1, 3));
            let inner: Vec<char> = first.chars().skip(1).collect();
            for top in inner
                .chunks(column)
                .filter(|top| top.iter().any(|c| c.is_alphabetic()))
            {
                assert!(top[0] == ' ' && top[1] != ' ', "{first}");
            }
            all.push_str(&shown);
            press(&mut model, KeyCode::PageDown);
        }
        for said in [
            "scratchpad: earlier versions",
            "In the history",
            "details of an iteration",
            "run view, while there is a run",
            "copy the id of its session",
            "In the message log and the chart",
            "a page; PgUp and PgDn, too",
            "copy a word, a line",
            "pin your prompt",
            "drop that prompt",
            "chart: what fills the window",
        ] {
            assert!(all.contains(said), "{size:?}: no {said:?}");
        }
    }
}

#[test]
fn a_watched_run_shows_its_limits_and_the_way_to_help() {
    let narrow = text(&frame(&pictures::run((80, 24))));
    assert!(narrow.contains("F1 help"), "no way to help");
    let mut model = pictures::run((160, 45));
    let panel = text(&frame(&model));
    assert!(panel.contains("$20.27 of $25.00 ($4.73 left)"), "no cost");
    // What does not fit is wrapped, or left out in whole parts.
    for said in [
        "any CSV size.",
        "3 of 50 (47 left) · 16 turns ",
        "rebooted by key ",
    ] {
        assert!(panel.contains(said), "no {said:?}: {panel}");
    }
    let large = text(&frame(&pictures::run((220, 60))));
    assert!(large.contains("any CSV size."), "the task is cut");
    act(&mut model, Action::History);
    press(&mut model, KeyCode::Char('t'));
    let view = text(&frame(&model));
    // The line of the start is wider than the pane.
    assert!(view.contains("most 50 iterations · $25.00 · 8 h"), "cut");
}

#[test]
fn quitting_in_a_turn_asks() {
    let mut model = working((90, 24));
    scene::begin_turn(&mut model, 713);
    act(&mut model, Action::Quit);
    snapshot!("quit", &model);
}

#[test]
fn an_agent_that_ended_is_shown_with_what_can_be_done() {
    let mut model = working((90, 24));
    let exit = pitstop_core::app::event::Exit::Code(1);
    let iteration = IterationId::new(3).expect("not 0");
    update(
        &mut model,
        713,
        Event::Pane(PaneEvent::Exited { iteration, exit }),
    );
    model.session.transcript.turns = 1;
    snapshot!("exited", &model);
    // Another program has no conversation to resume, and neither has an agent to which nothing was said.
    model.session.transcript.turns = 0;
    let shown = shot(&model);
    assert!(shown.contains("Enter start again"), "{shown}");
    assert!(
        !shown.contains("conversation") && !shown.contains("Session"),
        "{shown}"
    );
}

#[test]
fn a_panel_without_a_place_lies_over_the_pane() {
    let mut model = working((80, 24));
    act(&mut model, Action::Scratchpad);
    snapshot!("scratchpad_overlay", &model);
    press(&mut model, KeyCode::Char('e'));
    snapshot!("scratchpad_editing_overlay", &model);
}

#[test]
fn an_edit_that_meets_another_keeps_both_and_says_so() {
    let mut model = working(NORMAL);
    act(&mut model, Action::Scratchpad);
    type_text(&mut model, "eM");
    let theirs = scene::NOTES.replacen("# Scratchpad", "# Theirs", 1);
    update(
        &mut model,
        714,
        Event::Read(ReadEvent::Scratchpad(Some(theirs))),
    );
    snapshot!("both_edits", &model);
}

#[test]
fn a_note_that_cannot_be_saved_stays_marked() {
    let mut model = working(NORMAL);
    act(&mut model, Action::Scratchpad);
    type_text(&mut model, "eM");
    press(&mut model, KeyCode::Esc);
    let why = "no space left on device".to_owned();
    update(
        &mut model,
        714,
        Event::Read(ReadEvent::ScratchpadNotSaved(why)),
    );
    snapshot!("not_saved", &model);
}

#[test]
fn an_earlier_version_of_the_scratchpad_can_be_looked_at() {
    let mut model = working(NORMAL);
    act(&mut model, Action::Scratchpad);
    type_text(&mut model, "eM");
    press(&mut model, KeyCode::Esc);
    type_text(&mut model, "eN");
    press(&mut model, KeyCode::Esc);
    press(&mut model, KeyCode::Char('v'));
    snapshot!("version", &model);
    press(&mut model, KeyCode::Enter);
    assert!(
        model.draft.notes.text().starts_with('M'),
        "{}",
        model.draft.notes.text()
    );
}

#[test]
fn an_empty_scratchpad_names_its_keys() {
    let mut model = beginning((80, 24), "");
    act(&mut model, Action::Scratchpad);
    let shown = shot(&model);
    assert!(
        shown.contains("┗ e edit · v versions · Esc back ━"),
        "{shown}"
    );
}

#[test]
fn history_shows_an_iteration_in_detail() {
    let mut model = working(NORMAL);
    act(&mut model, Action::History);
    press(&mut model, KeyCode::Down);
    press(&mut model, KeyCode::Enter);
    snapshot!("history_detail", &model);
}

#[test]
fn times_on_the_screen_are_those_of_the_person_at_it() {
    for (name, scene) in views::VIEWS {
        let shown = shot(&scene((220, 60)));
        assert!(!shown.contains("UTC"), "{name}: {shown}");
    }
    let east: pitstop_base::clock::Zone =
        |_| chrono::FixedOffset::east_opt(5 * 3_600).expect("a zone");
    for (name, utc, local) in [
        (
            "history",
            "run of 2026-11-20 09:00",
            "run of 2026-11-20 14:00",
        ),
        ("history-detail", "2026-11-21 08:15", "2026-11-21 13:15"),
        ("run-view", "09:11:54 iteration 3", "14:11:54 iteration 3"),
        ("run", "09:11 iteration 3", "14:11 iteration 3"),
        ("messages", "09:11:", "14:11:"),
    ] {
        let mut model = view(name)((220, 60));
        assert!(shot(&model).contains(utc), "{name}: {}", shot(&model));
        model.now.zone = east;
        assert!(shot(&model).contains(local), "{name}: {}", shot(&model));
    }
}

#[test]
fn history_shows_the_cost_of_each_iteration_at_every_size() {
    let scene = view("history");
    for size in [(80, 24), (120, 35), (220, 60)] {
        let shown = shot(&scene(size));
        for cost in ["$4.12", "$6.35", "$9.80"] {
            assert!(
                shown.matches(cost).count() > 1 || cost == "$4.12",
                "{cost}: {shown}"
            );
        }
        // With few rows the selected one alone has its second.
        let second = if size.0 < 200 {
            "began at the compact line"
        } else {
            "began by key"
        };
        assert!(shown.contains(second), "{shown}");
    }
}

#[test]
fn what_is_open_over_the_pane_has_the_only_hints_and_the_way_out() {
    for name in ["history-detail", "history-difference", "run-view"] {
        let scene = view(name);
        for size in views::SIZES {
            let shown = shot(&scene(size));
            assert_eq!(shown.matches("Esc close").count(), 1, "{name}: {shown}");
            assert!(!shown.contains("Enter details"), "{name}: {shown}");
        }
    }
}

#[test]
fn the_details_begin_with_what_a_person_asks_for() {
    let scene = view("history-detail");
    let mut model = scene((80, 24));
    let shown = shot(&model);
    for said in [
        "ended ",
        "$6.35",
        "next step    task 2",
        "Handoff it was given",
    ] {
        assert!(shown.contains(said), "no {said:?}: {shown}");
    }
    assert!(!shown.contains("## "), "its messages are rendered: {shown}");
    assert!(!shown.contains("session"), "{shown}");
    for _ in 0..9 {
        press(&mut model, KeyCode::PageDown);
    }
    let shown = shot(&model);
    assert!(shown.contains("session      5e551011"), "{shown}");
    assert!(
        shown.contains("reboot took  1.6 s: waiting 3 ms"),
        "{shown}"
    );
}

#[test]
fn history_shows_earlier_runs_and_the_whole_of_what_one_was_given_and_gave() {
    let mut model = working(NORMAL);
    let (run, iterations) = scene::earlier_run();
    let earlier = EarlierRun {
        run: run.clone(),
        iterations: iterations.clone(),
    };
    update(
        &mut model,
        0,
        Event::Store(StoreEvent::EarlierRuns(vec![earlier])),
    );
    act(&mut model, Action::History);
    for _ in 0..3 {
        press(&mut model, KeyCode::Down);
    }
    press(&mut model, KeyCode::Enter);
    let found = Ok(Box::new(scene::past(&run, &iterations[1])));
    let iteration = iterations[1].iteration;
    let read = StoreEvent::PastRead {
        run,
        iteration,
        found,
    };
    update(&mut model, 0, Event::Store(read));
    snapshot!("history_past", &model);
    for _ in 0..9 {
        press(&mut model, KeyCode::PageDown);
    }
    let shown = text(&frame(&model));
    assert!(shown.contains("the last line of the summary"), "{shown}");
}

#[test]
fn the_handoff_panel_shows_the_message() {
    let mut model = working(NORMAL);
    act(&mut model, Action::Handoff);
    snapshot!("handoff", &model);
}

#[test]
fn the_footer_follows_a_reboot() {
    let mut model = working(NORMAL);
    scene::begin_turn(&mut model, 713);
    act(&mut model, Action::Reboot);
    let begun = model.reboot.attempt.as_ref().expect("a reboot");
    let (id, attempt) = (begun.id, begun.epoch);
    for round in 0..5 {
        if round == 1 {
            press(&mut model, KeyCode::Enter);
        }
        let step = model.reboot.attempt.as_ref().expect("a reboot").step();
        let stored = pitstop_core::app::event::StoreEvent::Journaled { reboot: id, step };
        update(&mut model, 714, Event::Store(stored));
        let prepared = pitstop_core::app::event::ReadEvent::Prepared {
            attempt,
            refused: None,
        };
        update(&mut model, 714, Event::Read(prepared));
    }
    let shown = shot(&model);
    assert!(
        shown.contains(
            "Approved, waits for the turn to end · F5 Enter now · Ctrl-q D takes it back"
        ),
        "{shown}"
    );
}

#[test]
fn an_error_is_shown_while_a_reboot_is_under_way() {
    let mut model = rebooting(NORMAL);
    let footer = |model: &Model| shot(model).lines().last().unwrap_or_default().to_owned();
    let shown = footer(&model);
    assert!(
        shown.starts_with(" rebooting ") && shown.contains("  ending the old session"),
        "{shown}"
    );
    assert!(!shown.contains("idle"), "{shown}");
    update(&mut model, 715, Event::TimerFired(TimerId::Age));
    act(&mut model, Action::Undo);
    let shown = footer(&model);
    assert!(shown.contains("! a reboot is under way"), "{shown}");
}

/// A session past its compact line that waits for a person.
fn asking(host: (u16, u16)) -> Model {
    let mut model = working(host);
    scene::say(&mut model, 713, scene::figure(155_000));
    scene::drafted(&mut model, 713);
    model.view.notices.clear();
    model
}

#[test]
fn a_reboot_that_waits_for_a_person_stands_on_the_screen_at_every_width() {
    snapshot!("banner_132x24", &asking((132, 24)));
    snapshot!("banner_100x30", &asking((100, 30)));
    snapshot!("banner_80x24", &asking((80, 24)));
    snapshot!("banner_40x12", &asking((40, 12)));
    let mut model = asking((40, 24));
    for columns in 40..=220 {
        let resized = HostEvent::Resized { columns, rows: 24 };
        scene::update(&mut model, 713, Event::Host(resized));
        model.view.notices.clear();
        let shown = shot(&model);
        assert!(shown.contains("Reboot"), "{columns}: {shown}");
        assert!(shown.contains("F5"), "{columns}: {shown}");
        // The cost of the run is whole where it is shown beside the key in the corner.
        if let Some((_, title)) = shown.split_once("History · this run") {
            let cost = title.split_once('$').map_or("", |(_, cost)| cost);
            assert!(cost.starts_with("5.70 "), "{columns}: {title}");
        }
        // A notice has its time beside it, and it stands all the same.
        model.error("the transcript cannot be followed any more, the gauge falls back");
        let shown = shot(&model);
        assert!(shown.contains("! the tr"), "{columns}: {shown}");
        assert!(shown.contains("Reboot"), "{columns}: {shown}");
    }
    let mut stale = asking((80, 24));
    stale.now = at(2_000);
    let shown = shot(&stale);
    assert!(shown.contains(" 86 % · last known · "), "{shown}");
    let whole = shot(&asking((80, 24)));
    let footer = whole.lines().last().expect("a footer");
    assert_eq!(
        footer.trim_end(),
        " 86 % compact · idle  Reboot advised · F5 review · Ctrl-q D defer       F1 help"
    );
}

#[test]
fn one_figure_is_one_percent_wherever_it_stands() {
    for (used, percent) in [(154_620, 85), (155_700, 86), (159_480, 88), (161_990, 89)] {
        for host in [(80, 24), (132, 40), (200, 50)] {
            let mut model = working(host);
            scene::say(&mut model, 713, scene::figure(used));
            scene::drafted(&mut model, 713);
            let shown = shot(&model);
            assert!(shown.contains(&format!("{percent} %")), "{shown}");
            assert!(!shown.contains(&format!("{} %", percent + 1)), "{shown}");
        }
    }
}

#[test]
fn red_is_not_spent_on_hints() {
    let theme = Theme::default();
    let reviewed = |mut model: Model| {
        act(&mut model, Action::Reboot);
        model
    };
    let mut good = asking(NORMAL);
    let attempt = good.reboot.attempt.as_mut().expect("a reboot");
    attempt.cause = pitstop_core::lineage::Cause::Breakpoint;
    let shows_no_red = |model: &Model| {
        let buffer = written(model, &screen(model), &theme);
        let mut cells = buffer.content.iter();
        let red = cells.find(|cell| Some(cell.fg) == theme.bad.fg);
        assert_eq!(red, None, "{}", shot(model));
    };
    shows_no_red(&working(NORMAL));
    shows_no_red(&beginning(NORMAL, ""));
    shows_no_red(&reviewed(working(NORMAL)));
    shows_no_red(&good);
}

#[test]
fn a_panel_has_what_it_needs_before_another_has_blank_rows() {
    let rows = |model: &Model, focus| {
        let layout = layout::layout(model);
        let panel = layout.panels.iter().find(|(panel, _)| *panel == focus);
        panel.map_or(0, |(_, area)| area.height)
    };
    let mut model = working((220, 60));
    let shown = shot(&model);
    assert!(shown.contains("• CI has no heaptrack"), "{shown}");
    assert!(!shown.contains("↓"), "{shown}");
    // What has the keys grows, the history too.
    let mut focused = working((160, 45));
    let before = rows(&focused, Focus::History);
    act(&mut focused, Action::History);
    assert!(rows(&focused, Focus::History) >= before);
    for panel in [Focus::Scratchpad, Focus::Handoff, Focus::History] {
        assert!(rows(&focused, panel) >= 4, "{panel:?}");
    }
    for height in 24..80 {
        model.view.host = (160, height);
        let layout = layout::layout(&model);
        let all: u16 = layout.panels.iter().map(|(_, area)| area.height).sum();
        let gauge = layout.context.expect("a context panel").height;
        assert_eq!(all + gauge, height - 1);
    }
}

#[test]
fn every_view_names_the_way_out_of_it_at_every_width() {
    for (name, scene) in views::VIEWS {
        // A wide list of keys gives way last of all to the one that leaves.
        let out = match name {
            "pane" | "banner" | "stages" | "card" | "failed" | "run" => continue,
            "compaction" => ["Ctrl-q D"; 2],
            "quit" => ["any other key stays"; 2],
            _ => ["Esc", " close"],
        };
        let mut model = scene(NORMAL);
        for columns in [40, 60, 80, 100, 118, 120, 132, 160, 220] {
            model.view.host = (columns, 35);
            let shown = shot(&model);
            let named = out.iter().any(|out| shown.contains(out));
            assert!(named, "{name}, {columns}: {shown}");
        }
    }
}

#[test]
fn the_banner_covers_nothing_of_the_agents() {
    for host in [NORMAL, (120, 35), (100, 30), (80, 24), (40, 12)] {
        let model = asking(host);
        let calm = working(host);
        let inner = layout::layout(&model).pane_inner();
        assert_eq!(inner, layout::layout(&calm).pane_inner());
        let (with, without) = (
            written(&model, &screen(&model), &Theme::default()),
            written(&calm, &screen(&calm), &Theme::default()),
        );
        for position in inner.positions() {
            assert_eq!(with[position], without[position], "{host:?} {position}");
        }
    }
}

#[test]
fn the_footer_has_what_counts_at_every_width() {
    let mut model = working(NORMAL);
    model.error("the transcript cannot be followed any more, the gauge falls back");
    for columns in 40..=220 {
        model.view.host = (columns, 24);
        let shown = shot(&model);
        let footer = shown.lines().last().expect("a footer");
        assert!(footer.contains("idle"), "{columns}: {footer}");
        assert!(footer.contains("! the tr"), "{columns}: {footer}");
        assert!(footer.width() <= usize::from(columns));
    }
}

#[test]
fn the_prefix_shows_that_it_waits() {
    for host in [(40, 12), (80, 24), NORMAL] {
        let mut model = working(host);
        model.view.prefixed = true;
        let shown = shot(&model);
        assert!(
            shown
                .lines()
                .last()
                .is_some_and(|footer| footer.contains("Ctrl-q …")),
            "{shown}"
        );
    }
}

#[test]
fn a_host_terminal_that_is_too_small_says_what_is_needed() {
    let shown = shot(&working((38, 9)));
    let words = shown.split_whitespace().collect::<Vec<_>>().join(" ");
    assert_eq!(words, "pitstop needs 40×10 cells, this terminal has 38×9");
}

#[test]
fn scroll_mode_is_shown_with_and_without_a_border() {
    for host in [NORMAL, (80, 24)] {
        let mut model = working(host);
        let mut screen = screen(&model);
        screen.feed("\r\nline".repeat(200).as_bytes(), Instant::now());
        act(&mut model, Action::Scroll);
        screen.scroll(pitstop_terminal::screen::Scroll::Lines(123));
        let shown = text(&drawn(&model, &screen, &Theme::default()));
        assert!(shown.contains("−123 of"), "{shown}");
    }
}

#[test]
fn scroll_mode_keeps_its_keys_beside_a_banner() {
    for wide in [60, 61, 72, 80, 90] {
        let mut model = pictures::past_the_line((wide, 24));
        act(&mut model, Action::Reboot);
        press(&mut model, KeyCode::Esc);
        act(&mut model, Action::Scroll);
        let shown = shot(&model);
        let footer = shown.lines().last().unwrap_or_default().trim_end();
        assert!(footer.contains("Not now"), "{wide}: {footer}");
        // No key is cut in its middle; the last one goes first.
        let whole = footer.ends_with("F1 help") || wide < 72 && footer.ends_with("Esc leave");
        assert!(whole, "{wide}: {footer}");
    }
}

#[test]
fn the_cursor_is_the_childs_while_the_pane_has_the_focus() {
    let mut model = working(NORMAL);
    let mut screen = screen(&model);
    let inner = layout::layout(&model).pane_inner();
    screen.feed(b"\x1b[5;7H\x1b[6 q", Instant::now());
    let cursor = ui::cursor(&model, &screen).expect("a cursor");
    assert_eq!((cursor.column, cursor.row), (inner.x + 6, inner.y + 4));
    assert!(cursor.visible && cursor.shape == pitstop_terminal::screen::CursorShape::Bar);
    let mut terminal = drawn(&model, &screen, &Theme::default());
    terminal
        .backend_mut()
        .assert_cursor_position((inner.x + 6, inner.y + 4));

    screen.feed(b"\x1b[?25l", Instant::now());
    let hidden = ui::cursor(&model, &screen).expect("a place for input methods");
    assert_eq!(
        (hidden.column, hidden.row, hidden.visible),
        (inner.x + 6, inner.y + 4, false)
    );

    act(&mut model, Action::Help);
    assert_eq!(ui::cursor(&model, &screen), None);
}

#[test]
fn the_cursor_is_the_editors_while_one_has_the_keys() {
    let mut model = working(NORMAL);
    act(&mut model, Action::Scratchpad);
    let screen = screen(&model);
    assert_eq!(
        ui::cursor(&model, &screen),
        None,
        "a panel that is only read has none"
    );
    press(&mut model, KeyCode::Char('e'));
    for _ in 0..4 {
        press(&mut model, KeyCode::Right);
    }
    let area = layout::layout(&model)
        .panels
        .iter()
        .find(|(panel, _)| *panel == Focus::Scratchpad)
        .expect("a panel")
        .1;
    let mut terminal = drawn(&model, &screen, &Theme::default());
    let cursor = ui::cursor(&model, &screen).expect("a cursor");
    assert_eq!((cursor.column, cursor.row), (area.x + 1 + 4, area.y + 1));
    terminal
        .backend_mut()
        .assert_cursor_position((cursor.column, cursor.row));
    for _ in 0..30 {
        press(&mut model, KeyCode::Down);
    }
    drawn(&model, &screen, &Theme::default());
    let cursor = ui::cursor(&model, &screen).expect("a cursor");
    assert!(
        area.contains((cursor.column, cursor.row).into()),
        "{cursor:?} in {area}"
    );
}

#[test]
fn the_focused_rectangle_differs_by_more_than_colour() {
    let theme = Theme::new(ThemeName::Dark, Depth::Mono, true);
    let mut model = working(NORMAL);
    let of = |model: &Model| text(&drawn(model, &screen(model), &theme));
    assert!(of(&model).contains("▸claude"));
    act(&mut model, Action::Handoff);
    let shown = of(&model);
    assert!(
        shown.contains("▸Handoff") && !shown.contains("▸claude") && shown.contains('┏'),
        "{shown}"
    );
}

fn colours(buffer: &Buffer) -> impl Iterator<Item = Color> + '_ {
    buffer
        .content
        .iter()
        .flat_map(|cell| [cell.fg, cell.bg, cell.underline_color])
}

/// Scenes that together show every style.
fn scenes() -> Vec<Model> {
    let mut scenes: Vec<Model> = vec![working(NORMAL), working((80, 24)), beginning(NORMAL, "")];
    for action in [
        Action::Help,
        Action::Reboot,
        Action::Scratchpad,
        Action::Handoff,
        Action::History,
    ] {
        let mut model = working(NORMAL);
        model.error("something is wrong");
        act(&mut model, action);
        scenes.push(model);
    }
    let mut editing = working(NORMAL);
    act(&mut editing, Action::Scratchpad);
    press(&mut editing, KeyCode::Char('e'));
    let control = |letter| KeyEvent::new(KeyCode::Char(letter), KeyModifiers::CONTROL);
    press_key(&mut editing, control('f'));
    type_text(&mut editing, "batch");
    press(&mut editing, KeyCode::Enter);
    press_key(&mut editing, control('a'));
    scenes.push(editing);
    scenes
}

#[test]
fn no_colour_leaves_us_that_the_host_terminal_cannot_show() {
    let themes = [
        ThemeName::Dark,
        ThemeName::Light,
        ThemeName::ColourBlind,
        ThemeName::HighContrast,
        ThemeName::Mono,
    ];
    for model in scenes() {
        for name in themes {
            for dark in [true, false] {
                let buffer = |depth| {
                    let theme = Theme::new(name, depth, dark);
                    drawn(&model, &screen(&model), &theme)
                        .backend()
                        .buffer()
                        .clone()
                };
                assert!(colours(&buffer(Depth::Mono)).all(|colour| colour == Color::Reset));
                let few = buffer(Depth::Ansi16);
                assert!(
                    colours(&few).all(|one| !matches!(one, Color::Rgb(..) | Color::Indexed(_)))
                );
                let some = buffer(Depth::Indexed256);
                assert!(colours(&some).all(|one| !matches!(one, Color::Rgb(..))));
            }
        }
    }
}

#[test]
fn our_mono_theme_leaves_the_child_its_colours() {
    let model = working(NORMAL);
    let theme = Theme::new(ThemeName::Mono, Depth::TrueColor, true);
    let inner = layout::layout(&model).pane_inner();
    let terminal = drawn(&model, &screen(&model), &theme);
    let buffer = terminal.backend().buffer();
    let coloured = |cell: &Cell| cell.fg != Color::Reset || cell.bg != Color::Reset;
    for position in buffer.area.positions() {
        assert!(
            inner.contains(position) || !coloured(&buffer[position]),
            "{position}"
        );
    }
    assert!(
        inner
            .positions()
            .any(|position| coloured(&buffer[position]))
    );
}

#[test]
fn hostile_text_reaches_no_cell_raw() {
    let hostile = "a\u{1b}[2Jb\u{202e}c\u{200b}d\u{9b}e\tf\u{2066}g";
    let mut model = working(NORMAL);
    model.session.title = hostile.to_owned();
    model.session.agent.model = Some(hostile.to_owned());
    model.session.agent.exit = Some(hostile.to_owned());
    model.view.notices.clear();
    model.error(hostile);
    model.draft.notes =
        NotesPanel::new(format!("# {hostile}\n- [ ] {hostile}\n```\n{hostile}\n```"));
    model.draft.handoff.generated.warnings = vec![hostile.to_owned()];
    model.draft.handoff.generated.left_out = vec![hostile.to_owned()];
    model.draft.handoff.generated.text = hostile.to_owned();
    let check = |model: &Model| {
        let mut screen = screen(model);
        screen.feed(
            "e\u{301}\u{202e}x\u{200d}y\u{ad}⚠\u{fe0f}|👩\u{200d}👩".as_bytes(),
            Instant::now(),
        );
        let terminal = drawn(model, &screen, &Theme::default());
        for cell in &terminal.backend().buffer().content {
            // Emoji of two cells are joined by a mark that has no other use there.
            let emoji = cell.symbol().width() == 2 && !cell.symbol().is_ascii();
            let bad = |c: char| {
                c.is_control()
                    || (c == '\u{200d}' && !emoji)
                    || c != '\u{200d}'
                        && matches!(c, '\u{ad}' | '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
            };
            assert!(!cell.symbol().contains(bad), "{:?}", cell.symbol());
        }
    };
    check(&model);
    for action in [
        Action::Scratchpad,
        Action::Handoff,
        Action::History,
        Action::Reboot,
    ] {
        act(&mut model, action);
        check(&model);
        press(&mut model, KeyCode::Char('e'));
        check(&model);
    }
    model.view.overlay = Some(Overlay::Exited);
    check(&model);
}

#[test]
fn attributes_and_colours_of_the_child_arrive() {
    let mut screen = Screen::new(PaneSize::new(20, 2), 0);
    let bytes =
        "\x1b[1;2;3;4;7;8;9;38;2;1;2;3;48;5;200;58;2;9;8;7mX\x1b[0m\x1b[31mr\x1b[0m日e\u{301}";
    screen.feed(bytes.as_bytes(), Instant::now());
    let area = Rect::new(0, 0, 20, 2);
    let mut buffer = Buffer::empty(area);
    ui::pane::copy_cells(&mut buffer, area, &screen, Depth::TrueColor);
    let cell = &buffer[(0, 0)];
    assert_eq!(
        (cell.symbol(), cell.fg, cell.bg),
        ("X", Color::Rgb(1, 2, 3), Color::Indexed(200))
    );
    assert_eq!(cell.underline_color, Color::Rgb(9, 8, 7));
    let all = Modifier::BOLD
        | Modifier::DIM
        | Modifier::ITALIC
        | Modifier::UNDERLINED
        | Modifier::REVERSED
        | Modifier::HIDDEN
        | Modifier::CROSSED_OUT;
    assert_eq!(cell.modifier, all);
    assert_eq!(
        (buffer[(1, 0)].symbol(), buffer[(1, 0)].fg),
        ("r", Color::Indexed(1))
    );
    assert_eq!(
        (
            buffer[(2, 0)].symbol(),
            buffer[(3, 0)].symbol(),
            buffer[(4, 0)].symbol()
        ),
        ("日", " ", "e\u{301}")
    );
}

#[test]
fn a_wide_character_is_cut_at_the_edge_and_at_an_overlay() {
    let mut screen = Screen::new(PaneSize::new(20, 1), 0);
    screen.feed("日本語日本語日本語".as_bytes(), Instant::now());
    let mut buffer = Buffer::empty(Rect::new(0, 0, 20, 1));
    ui::pane::copy_cells(
        &mut buffer,
        Rect::new(0, 0, 5, 1),
        &screen,
        Depth::TrueColor,
    );
    let symbols: Vec<&str> = buffer.content.iter().take(6).map(Cell::symbol).collect();
    assert_eq!(symbols, ["日", " ", "本", " ", " ", " "]);

    let mut model = working((80, 24));
    let mut screen = Screen::new(layout::layout(&model).pane_size(), 0);
    // An odd column before them, so that an even edge cuts one in every row.
    let row = format!("\r\nx{}", "日本語".repeat(13));
    screen.feed(row.repeat(23).as_bytes(), Instant::now());
    act(&mut model, Action::Help);
    assert_rows_are_exact(&written(&model, &screen, &Theme::default()));
    act(&mut model, Action::Help);
    act(&mut model, Action::Handoff);
    assert_rows_are_exact(&written(&model, &screen, &Theme::default()));
}

/// No wide character hides a cell that has something to say.
fn assert_rows_are_exact(buffer: &Buffer) {
    for row in buffer.content.chunks(usize::from(buffer.area.width.max(1))) {
        for pair in row.windows(2) {
            if pair[0].symbol().width() > 1 {
                assert_eq!(pair[1].symbol(), " ", "behind {}", pair[0].symbol());
            }
        }
        let last = row.last().expect("a row has cells");
        assert!(
            last.symbol().width() <= 1,
            "half of {} is outside",
            last.symbol()
        );
    }
}

fn variants(host: (u16, u16)) -> Vec<Model> {
    let mut all = Vec::new();
    for overlay in 0..9 {
        let mut model = working(host);
        model.error("a notice that is too long for most of the terminals that it is shown on");
        match overlay {
            0 => {}
            1 => act(&mut model, Action::Help),
            2 => act(&mut model, Action::Reboot),
            3 => model.view.overlay = Some(Overlay::Quit),
            4 => model.view.overlay = Some(Overlay::Exited),
            5 => {
                act(&mut model, Action::Scratchpad);
                press(&mut model, KeyCode::Char('e'));
            }
            6 => {
                act(&mut model, Action::History);
                press(&mut model, KeyCode::Enter);
            }
            7 => {
                act(&mut model, Action::Scroll);
                press(&mut model, KeyCode::Char('/'));
                press(&mut model, KeyCode::Char('日'));
            }
            _ => replaying(&mut model),
        }
        all.push(model);
    }
    all
}

/// Plays a recording that is larger than most terminals.
fn replaying(model: &mut Model) {
    let text = serde_json::to_string(&"日本語 line of a recording\r\n".repeat(70)).expect("JSON");
    let file =
        format!("{{\"version\": 2, \"width\": 160, \"height\": 60}}\n[1.5, \"o\", {text}]\n");
    let cast = pitstop_terminal::pane::replay::Cast::parse(file.as_bytes())
        .map_err(|error| error.to_string());
    let iteration = IterationId::new(2).expect("not 0");
    update(
        model,
        715,
        Event::Read(ReadEvent::Recording { iteration, cast }),
    );
    let replay = model.view.replay.as_mut().expect("a replay");
    replay.seek_tenth(10);
    replay.tick(std::time::Duration::ZERO);
}

/// The panels and what lies over them, each in a model of its own.
fn panels(host: (u16, u16)) -> Vec<(&'static str, Model)> {
    let with = |change: &dyn Fn(&mut Model)| {
        let mut model = working(host);
        change(&mut model);
        model
    };
    vec![
        ("pane", with(&|_| {})),
        ("scratchpad", with(&|model| act(model, Action::Scratchpad))),
        ("handoff", with(&|model| act(model, Action::Handoff))),
        ("history", with(&|model| act(model, Action::History))),
        (
            "detail",
            with(&|model| {
                act(model, Action::History);
                press(model, KeyCode::Enter);
            }),
        ),
        ("review", with(&|model| act(model, Action::Reboot))),
        ("help", with(&|model| act(model, Action::Help))),
        (
            "quit",
            with(&|model| model.view.overlay = Some(Overlay::Quit)),
        ),
        ("copy", with(&|model| act(model, Action::Scroll))),
        ("replay", with(&replaying)),
    ]
}

#[test]
fn every_panel_is_among_the_views() {
    let in_views = views::VIEWS.map(|(_, scene)| scene(NORMAL).view.focus);
    let panels = panels(NORMAL).into_iter();
    let in_panels: Vec<Focus> = panels.map(|(_, model)| model.view.focus).collect();
    for focus in Focus::ALL {
        let is_there = in_views.contains(&focus);
        assert!(is_there, "add a view of {focus:?} to `VIEWS` in views.rs");
        assert!(in_panels.contains(&focus), "add {focus:?} to `panels`");
    }
}

#[test]
fn every_view_is_drawn_at_every_usual_size() {
    for (name, scene) in views::VIEWS {
        for size in views::SIZES {
            let model = scene(size);
            assert_rows_are_exact(&written(&model, &screen(&model), &Theme::default()));
        }
        let picture = views::picture(&(name, scene), NORMAL, true);
        assert!(picture.starts_with("<svg "), "{name}");
    }
}

/// Every theme that can be set, on dark and light where it follows the terminal.
const THEMES: [(&str, ThemeName, Depth, bool); 8] = [
    ("dark", ThemeName::Dark, Depth::TrueColor, true),
    ("light", ThemeName::Light, Depth::TrueColor, false),
    ("blind", ThemeName::ColourBlind, Depth::TrueColor, true),
    ("blind-lt", ThemeName::ColourBlind, Depth::TrueColor, false),
    ("contrast", ThemeName::HighContrast, Depth::TrueColor, true),
    ("contr-lt", ThemeName::HighContrast, Depth::TrueColor, false),
    ("sixteen", ThemeName::Dark, Depth::Ansi16, true),
    ("mono", ThemeName::Mono, Depth::Mono, true),
];

const WIDTHS: [(u16, u16); 5] = [(40, 12), (80, 24), (100, 30), (132, 40), (200, 50)];

/// A number for how a frame is coloured, its text left out (FNV-1a).
fn digest(buffer: &Buffer) -> String {
    let mut hash = 0x811c_9dc5_u32;
    for cell in &buffer.content {
        let style = format!("{:?}{:?}{:?}", cell.fg, cell.bg, cell.modifier);
        for byte in style.bytes() {
            hash = (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193);
        }
    }
    format!("{hash:08x}")
}

#[test]
fn every_panel_at_every_width_in_every_theme() {
    let mut table = format!("{:18}", "");
    for (name, ..) in THEMES {
        table.push_str(&format!(" {name:>8}"));
    }
    for host in WIDTHS {
        let mut texts = String::new();
        let mut plain = String::new();
        for (panel, mut model) in panels(host) {
            let mut screen = screen(&model);
            if model.view.copy.is_on() {
                use pitstop_terminal::copy::{CopyOrder, Motion, SelectionKind};
                screen.copy(&CopyOrder::Enter);
                let answer = screen.copy(&CopyOrder::Select(SelectionKind::Lines));
                update(&mut model, 716, Event::Pane(PaneEvent::CopyMode(answer)));
                screen.copy(&CopyOrder::Move(Motion::High));
            }
            table.push_str(&format!(
                "\n{:10} {:>7}",
                panel,
                format!("{}×{}", host.0, host.1)
            ));
            let dark = text(&drawn(&model, &screen, &Theme::default()));
            for (name, theme, depth, on_dark) in THEMES {
                let theme = Theme::new(theme, depth, on_dark);
                let frame = written(&model, &screen, &theme);
                assert_rows_are_exact(&frame);
                if depth == Depth::Mono {
                    let coloured = |cell: &Cell| cell.fg != Color::Reset || cell.bg != Color::Reset;
                    assert!(
                        !frame.content.iter().any(coloured),
                        "{panel} has colours in {name}"
                    );
                }
                table.push_str(&format!(" {}", digest(&frame)));
                let shown = text(&drawn(&model, &screen, &theme));
                if name == "dark" {
                    // Of what lies over the plain frame only the rows that it changes.
                    texts.push_str(&format!("── {panel} ──\n"));
                    for (row, line) in shown.lines().enumerate() {
                        if plain.lines().nth(row) != Some(line) {
                            texts.push_str(&format!("{row:2} {line}\n"));
                        }
                    }
                    if panel == "pane" {
                        plain = shown;
                    }
                } else {
                    assert_eq!(shown, dark, "a theme changes no text");
                }
            }
        }
        insta::with_settings!({ snapshot_path => "snapshots", prepend_module_to_snapshot => false, omit_expression => true }, {
            insta::assert_snapshot!(format!("panels_{}x{}", host.0, host.1), texts);
        });
    }
    insta::with_settings!({ snapshot_path => "snapshots", prepend_module_to_snapshot => false, omit_expression => true }, {
        insta::assert_snapshot!("themes", table);
    });
}

#[test]
fn the_level_is_a_word_at_every_width() {
    for host in WIDTHS {
        for (used, word) in [
            (20_000, "ok"),
            (100_000, "notice"),
            (130_000, "warn"),
            (170_000, "compact"),
        ] {
            let mut model = working(host);
            scene::say(&mut model, 730, scene::figure(used));
            let shown = shot(&model);
            let named = [format!("Context · {word} "), format!("% {word}")];
            let named = named.iter().any(|one| shown.contains(one));
            assert!(named, "{host:?} {word}\n{shown}");
        }
    }
}

#[test]
fn every_size_is_drawn_without_a_panic() {
    let screen = screen(&working((80, 24)));
    let theme = Theme::default();
    let mut models = variants((80, 24));
    let small = (1..=60).flat_map(|columns| (1..=30).map(move |rows| (columns, rows)));
    let large = [
        (61, 31),
        (99, 10),
        (100, 10),
        (100, 28),
        (117, 29),
        (118, 10),
        (131, 11),
        (132, 10),
        (133, 17),
        (250, 80),
        (500, 200),
        (1000, 12),
    ];
    for (columns, rows) in small.chain(large) {
        // Below the smallest size all are the same notice.
        let (least_columns, least_rows) = layout::SMALLEST;
        let notice = columns < least_columns || rows < least_rows;
        let count = if notice { 1 } else { models.len() };
        for model in &mut models[..count] {
            model.view.host = (columns, rows);
            assert_rows_are_exact(&written(model, &screen, &theme));
        }
    }
}

#[test]
fn a_frame_of_another_size_than_the_model_believes_is_drawn() {
    let model = working((200, 50));
    let screen = screen(&model);
    for (columns, rows) in [(1, 1), (40, 10), (90, 60), (250, 20)] {
        let mut terminal = Terminal::new(TestBackend::new(columns, rows)).expect("a test terminal");
        terminal
            .draw(|frame| ui::draw(frame, &model, &screen, &Theme::default()))
            .expect("drawing");
    }
}

/// What stands in the context panel, and how high it is inside.
fn context(model: &Model) -> (Vec<String>, usize) {
    let area = layout::layout(model).context.expect("a context panel");
    let shown = shot(model);
    let rows = shown
        .lines()
        .skip(usize::from(area.y))
        .take(usize::from(area.height));
    let lines: Vec<String> = rows
        .filter_map(|row| row.strip_suffix('│')?.rsplit_once(['┃', '│']))
        .map(|(_, line)| line.trim().to_owned())
        .collect();
    (lines, usize::from(area.height) - 2)
}

fn said(model: &Model, words: &str) -> bool {
    context(model).0.iter().any(|line| line.contains(words))
}

#[test]
fn the_gauge_shows_the_figure_of_the_contract() {
    let (lines, _) = context(&working((132, 50)));
    assert_eq!(lines[0], "██████████████████┊██████┊▍····┊·····");
    assert_eq!(lines[1], "▄▄▄  ▄  ▄ ▄  128.4k of 180k usable");
    assert_eq!(lines[2], "█ ▀█   ▄▀  4–6 turns left");
    assert_eq!(lines[3], "█ ▄█▄ █ ▄  compact at 153k");
    for line in [
        "notice 90k · warn 126k · compact 153k",
        "+4.7k a turn",
        "cost $4.12",
        "a reboot pays in about 15 calls",
        "from Claude's status line, live",
        "200k window · fresh session ~16.8k",
    ] {
        assert!(lines.contains(&line.to_owned()), "{line} in {lines:?}");
    }
}

#[test]
fn the_gauge_says_why_there_is_no_bridge() {
    use pitstop_agent::bridge::{Absence, Link};
    let mut model = working((132, 50));
    for (link, words) in [
        (
            Link::Absent(Absence::Flag("--safe-mode")),
            "no bridge: --safe-mode keeps mods out",
        ),
        (
            Link::Absent(Absence::Silent),
            "no bridge: it has ceased to report",
        ),
        (Link::Absent(Absence::SwitchedOff), ""),
        (Link::Awaited, ""),
    ] {
        model.session.agent.bridge.link = link;
        assert_eq!(said(&model, "bridge"), !words.is_empty());
        assert!(said(&model, words), "{:?}", context(&model));
    }
    // Before the first figure, too.
    let mut model = beginning((132, 50), "");
    model.session.agent.bridge.link = Link::Absent(Absence::NoHello);
    assert!(
        said(&model, "no bridge: it has not reported"),
        "{:?}",
        context(&model)
    );
}

#[test]
fn three_lines_of_the_gauge_make_sense() {
    let mut model = working((132, 18));
    let (lines, height) = context(&model);
    assert_eq!((height, lines.len()), (3, 3));
    assert!(
        lines[1].starts_with("128.4k of 180k") && lines[2].contains("turns left"),
        "{lines:?}"
    );
    model.reboot.mode = pitstop_core::config::RebootMode::Manual;
    scene::say(&mut model, 720, scene::figure(160_000));
    let (lines, _) = context(&model);
    assert_eq!(lines[2], "time for a reboot · F5");
}

/// A fresh session at work in one long turn: a tool call of 1 000 tokens every ten seconds, from 20 000 tokens on.
fn long_turn(host: (u16, u16), calls: u64) -> Model {
    let mut model = working(host);
    model.session.guard.start_iteration();
    scene::begin_turn(&mut model, 720);
    for call in 0..calls {
        let second = 730 + call * 10;
        let session = model.session.id;
        let finished = pitstop_agent::AgentEvent::ToolFinished {
            session,
            call: pitstop_agent::ToolCall::default(),
            output: pitstop_agent::ToolOutput::default(),
        };
        scene::say(&mut model, second, finished);
        scene::say(&mut model, second, scene::figure(20_000 + call * 1_000));
    }
    model.view.notices.clear();
    model
}

#[test]
fn within_a_long_turn_the_gauge_counts_minutes_and_tool_calls() {
    // 82 000 tokens are left to the compact line.
    let model = long_turn((132, 50), 52);
    let (lines, _) = context(&model);
    assert!(
        lines[2].ends_with("about 13 min left"),
        "beside the percent: {lines:?}"
    );
    let growth = "+6k a minute · 80 tool calls left".to_owned();
    assert!(lines.contains(&growth), "{lines:?}");
    assert!(!said(&model, "turns left") && !said(&model, "a turn"));
    // Without the room for the large figure.
    let (lines, _) = context(&long_turn((132, 18), 52));
    assert_eq!(lines[2], "+6k a minute · about 13 min left");
    // Before a minute of work is seen, the calls count.
    let (lines, _) = context(&long_turn((132, 18), 6));
    assert_eq!(lines[2], "+1k a tool call · 130 tool calls");
    // A few steps say nothing.
    assert!(!said(&long_turn((132, 50), 3), "left"));
}

#[test]
fn the_line_under_the_prompt_and_the_chart_say_it_too() {
    let mut model = long_turn((132, 50), 52);
    let line = pitstop_core::app::report::status_line(&model).line;
    assert_eq!(line, "ok 39% · about 13 min left · $4.12");
    act(&mut model, Action::Chart);
    assert!(shot(&model).contains("39 % ok · about 13 min left"));
}

#[test]
fn the_run_view_has_the_forecast_and_the_panel_below_the_gauge_does_not_repeat_it() {
    let shown = shot(&view("run-view")((132, 40)));
    assert!(
        shown.contains("context    +4.7k a turn · 4–6 turns left"),
        "{shown}"
    );
    let shown = shot(&view("run")((132, 40)));
    assert_eq!(shown.matches("turns left").count(), 1, "{shown}");
}

#[test]
fn a_stale_figure_and_a_disagreement_are_marked() {
    let mut model = working((132, 50));
    assert!(!said(&model, "stale") && !said(&model, "≠"));
    model.now = at(5_000);
    assert!(said(&model, "stale"));
    let mut narrow = working((80, 24));
    narrow.now = at(5_000);
    assert!(
        shot(&narrow).contains("% · last known"),
        "{}",
        shot(&narrow)
    );
    model.now = at(712);
    let reading = pitstop_core::guard::Reading {
        used: Tokens(110_000),
        window: None,
        source: pitstop_core::guard::Source::Transcript,
        at: at(711),
    };
    model.session.guard.observe(reading);
    model.now = at(716);
    assert!(
        said(&model, "≠ transcript says 110k (−10 points)"),
        "{:?}",
        context(&model)
    );
}

#[test]
fn where_the_client_acts_is_a_tick_and_a_line_and_moved_lines_are_said() {
    use pitstop_agent::claude::limits::CompactionSettings;
    let settings = |variable: &'static str, value: &'static str| {
        let read = |name: &str| (name == variable).then(|| value.to_owned());
        let read = CompactionSettings::read(&[], &read, &[], None);
        pitstop_core::app::Event::Read(pitstop_core::app::event::ReadEvent::ClientSettings(
            Box::new(read),
        ))
    };
    let mut model = working((132, 50));
    assert!(!said(&model, "Claude compacts"), "{:?}", context(&model));
    scene::update(&mut model, 713, settings("DISABLE_AUTO_COMPACT", "1"));
    let (lines, _) = context(&model);
    assert_eq!(lines[0], "██████████████████┊██████┊▍····┊····|");
    assert!(said(&model, "Claude refuses prompts at 177k"), "{lines:?}");
    assert!(said(&model, "warn 126k · compact 153k"));
    scene::update(
        &mut model,
        714,
        settings("CLAUDE_CODE_AUTO_COMPACT_WINDOW", "150k"),
    );
    let (lines, _) = context(&model);
    assert_eq!(lines[0], "████████████┊███┊███┊███|█▍··········");
    assert!(
        said(&model, "lowered: Claude compacts at 117k"),
        "{lines:?}"
    );
    assert!(
        said(&model, "compact 99.5k · forced reboot 113.5k"),
        "{lines:?}"
    );
}

#[test]
fn the_prompt_cache_and_the_cost_of_a_turn_are_shown_where_they_are_known() {
    let mut model = working((132, 50));
    assert!(!said(&model, "cache") && !said(&model, "fresh ·") && !said(&model, "~$"));
    for (turn, total) in [4.2_f64, 4.5, 4.8, 5.1].into_iter().enumerate() {
        let second = 720 + turn as u64 * 10;
        scene::begin_turn(&mut model, second);
        let pitstop_agent::AgentEvent::StatusLine(mut line) = scene::figure(130_000) else {
            unreachable!("it is a status line");
        };
        line.cost_usd = Some(total);
        line.prompt_cache = Some(pitstop_agent::PromptCache {
            warm: true,
            expires_at: u64::try_from(at(second).wall.timestamp() + 240).ok(),
            recache: Some(Tokens(131_000)),
            usd: None,
            lifetime: pitstop_agent::CacheLifetime::FiveMinutes,
        });
        scene::say(
            &mut model,
            second + 1,
            pitstop_agent::AgentEvent::StatusLine(line),
        );
    }
    let lines = context(&model).0;
    assert!(said(&model, "$0.30 a turn · ~$0.04 fresh"), "{lines:?}");
    assert!(said(&model, "cache warm for 3m"), "{lines:?}");
    model.now = at(2_000);
    assert!(said(&model, "cache cold: 131k"), "{:?}", context(&model));
}

#[test]
fn usage_limits_are_shown_where_there_is_room() {
    let mut model = working((132, 50));
    // The scene is at 9 o'clock of a Saturday.
    for (hours, words) in [(5, "14:00"), (15, "Sun 00:00"), (72, "Tue 09:00")] {
        let limit = pitstop_agent::RateLimit {
            used_percentage: 40.0,
            resets_at: u64::try_from(at(hours * 3_600).wall.timestamp()).ok(),
        };
        model.session.agent.limits = vec![("5 h", limit)];
        model.now = at(715);
        assert!(said(&model, &format!("5 h limit 40 %, resets {words}")));
        model.now = at(hours * 3_600);
        assert!(!said(&model, "5 h limit"), "it has begun again");
    }
}

#[test]
fn a_figure_of_any_size_fits_its_panel() {
    for used in [0, 1, 89_999, 180_000, 1_000_000, u64::MAX / 4] {
        let mut model = working(NORMAL);
        scene::say(&mut model, 800, scene::figure(used));
        let reading = pitstop_core::guard::Reading {
            used: Tokens(used / 2),
            window: None,
            source: pitstop_core::guard::Source::Transcript,
            at: at(801),
        };
        model.session.guard.observe(reading);
        model.now = at(900);
        assert_rows_are_exact(&written(&model, &screen(&model), &Theme::default()));
    }
}

#[test]
fn a_resize_before_the_screen_follows_is_harmless() {
    let mut model = working(NORMAL);
    let screen = screen(&model);
    update(
        &mut model,
        713,
        Event::Host(HostEvent::Resized {
            columns: 90,
            rows: 20,
        }),
    );
    assert_rows_are_exact(&written(&model, &screen, &Theme::default()));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn no_cell_outside_the_pane_is_ever_touched(
        bytes in prop::collection::vec(prop_oneof![
            any::<u8>().prop_map(|byte| vec![byte]),
            any::<char>().prop_map(|c| c.to_string().into_bytes()),
            Just("日本👩‍👩‍👧⚠️é".as_bytes().to_vec()),
            (0_u8..110).prop_map(|n| format!("\x1b[{n}m").into_bytes()),
            (1_u16..40, 1_u16..90).prop_map(|(y, x)| format!("\x1b[{y};{x}H").into_bytes()),
        ], 0..200),
        size in (1_u16..60, 1_u16..20),
        rect in (0_u16..50, 0_u16..20, 0_u16..60, 0_u16..25),
        depth in prop::sample::select(vec![Depth::Mono, Depth::Ansi16, Depth::Indexed256, Depth::TrueColor]),
    ) {
        let mut screen = Screen::new(PaneSize::new(size.0, size.1), 10);
        screen.feed(&bytes.concat(), Instant::now());
        let whole = Rect::new(0, 0, 50, 20);
        let area = Rect::new(rect.0, rect.1, rect.2, rect.3);
        let mut buffer = Buffer::filled(whole, Cell::new("#"));
        ui::pane::copy_cells(&mut buffer, area, &screen, depth);
        for position in whole.positions() {
            let cell = &buffer[position];
            if area.contains(position) {
                prop_assert!(!cell.symbol().contains(char::is_control), "{:?}", cell.symbol());
            } else {
                prop_assert_eq!(cell, &Cell::new("#"));
            }
        }
        // Nor does a wide character reach over the edge.
        let inside = area.intersection(whole);
        for y in (inside.top()..inside.bottom()).filter(|_| inside.width > 0) {
            let last = &buffer[(inside.right() - 1, y)];
            prop_assert!(last.symbol().width() <= 1, "{:?}", last.symbol());
        }
    }

    #[test]
    fn any_notes_and_title_fit(notes in any::<String>(), title in any::<String>(), columns in 40_u16..220, rows in 10_u16..50) {
        let mut model = working((columns, rows));
        model.session.title = title;
        model.draft.notes = NotesPanel::new(notes);
        assert_rows_are_exact(&written(&model, &screen(&model), &Theme::default()));
    }
}

#[test]
fn a_letter_that_joins_nothing_moves_no_cell() {
    for notes in [
        "Uো\u{d7d4}",
        "\u{d7d4}",
        "a\u{d7d4}b",
        "\u{9cb}",
        "x\u{1160}y",
    ] {
        let mut model = working((120, 40));
        model.session.title = notes.to_owned();
        model.draft.notes = NotesPanel::new(notes.to_owned());
        assert_rows_are_exact(&written(&model, &screen(&model), &Theme::default()));
    }
}

/// A reboot that a person has approved, and whose steps are on disk up to the one that ends the old session.
fn rebooting(host: (u16, u16)) -> Model {
    let mut model = working(host);
    act(&mut model, Action::Reboot);
    scene::drafted(&mut model, 713);
    press(&mut model, KeyCode::Enter);
    let begun = model.reboot.attempt.as_ref().expect("a reboot");
    let (id, attempt) = (begun.id, begun.epoch);
    for _ in 0..6 {
        let step = model.reboot.attempt.as_ref().expect("a reboot").step();
        if step == Step::Ending {
            break;
        }
        let stored = StoreEvent::Journaled { reboot: id, step };
        update(&mut model, 714, Event::Store(stored));
        let prepared = ReadEvent::Prepared {
            attempt,
            refused: None,
        };
        update(&mut model, 714, Event::Read(prepared));
        let looked = pitstop_agent::claude::prompt_box::PromptBox::Empty;
        update(
            &mut model,
            714,
            Event::Pane(PaneEvent::PromptBoxSeen(looked)),
        );
    }
    model
}

#[test]
fn what_comes_while_the_card_of_a_reboot_waits_for_its_figure_is_in_the_footer() {
    let mut model = rebooting(NORMAL);
    model.reboot.attempt = None;
    model.now = at(715);
    model.info("the handoff was confirmed");
    model.view.card = Some(Card {
        outcome: Outcome::Done {
            took_ms: 1_400,
            before: None,
            after: Some(Tokens(12_000)),
            items: None,
            proven: true,
        },
        done_at: at(715),
        at: at(717),
        awaits_figure: false,
    });
    let shown = shot(&model);
    assert!(!shown.contains("handoff was confirmed"), "{shown}");
    model.now = at(716);
    model.info("your unsent prompt stands");
    let shown = shot(&model);
    assert!(shown.contains("your unsent prompt stands"), "{shown}");
}

#[test]
fn a_reboot_shows_its_stages_and_then_what_it_has_brought() {
    let mut model = rebooting(NORMAL);
    let attempt = model.reboot.attempt.as_ref().expect("a reboot");
    assert_eq!(attempt.step(), Step::Ending);
    model.now = at(715);
    let shown = shot(&model);
    assert!(shown.contains("╭ Rebooting ─"), "{shown}");
    assert!(shown.contains("… ending the old session"), "{shown}");
    assert!(shown.contains("1.0 s"), "{shown}");
    assert!(shown.contains("confirming the handoff"), "{shown}");
    // A dialog of the agent is never covered.
    model.session.agent.state = AgentState::Dialog;
    assert!(!shot(&model).contains("╭ Rebooting ─"));
    model.session.agent.state = AgentState::Idle;
    model.reboot.attempt = None;
    let card = |outcome| {
        Some(Card {
            outcome,
            done_at: at(715),
            at: at(715),
            awaits_figure: false,
        })
    };
    model.view.card = card(Outcome::Done {
        took_ms: 1_400,
        before: Some(Tokens(160_000)),
        after: Some(Tokens(12_000)),
        items: Some(23),
        proven: true,
    });
    let shown = shot(&model);
    for said in [
        "╭ Rebooted in 1.4 s ─",
        "160k → 128k tokens",
        "23 items carried over · handoff confirmed",
        "Ctrl-q u undoes it",
    ] {
        assert!(shown.contains(said), "{said}: {shown}");
    }
    // Without figures that is said, too.
    let mut fresh = beginning(NORMAL, "");
    fresh.view.card = card(Outcome::Done {
        took_ms: 1_400,
        before: None,
        after: None,
        items: None,
        proven: true,
    });
    let shown = shot(&fresh);
    assert!(shown.contains("│ no figure yet "), "{shown}");
    model.view.card = card(Outcome::Failed {
        step: Step::Starting,
        why: "claude not found in PATH".to_owned(),
        resumed: true,
    });
    let shown = shot(&model);
    for said in [
        "╭ ! Reboot failed ─",
        "It failed while starting the new session.",
        "claude not found in PATH",
        "The old session is resumed; nothing is lost.",
        "F5 retries · Ctrl-q l messages · typing closes it",
    ] {
        assert!(shown.contains(said), "{said}: {shown}");
    }
    // It is taken down after its time, and by typing.
    update(&mut model, 800, Event::TimerFired(TimerId::Moment));
    assert_eq!(model.view.card, None);
}

#[test]
fn the_message_log_has_what_was_said_with_times() {
    let mut model = working((100, 30));
    model.error("the transcript cannot be followed any more, the gauge falls back");
    model.now = at(790);
    model.info("reboot deferred by 3 turns");
    act(&mut model, Action::Messages);
    snapshot!("messages", &model);
    press(&mut model, KeyCode::Esc);
    assert_eq!(model.view.overlay, None);
}

#[test]
fn a_recording_that_is_larger_than_the_terminal_says_so_and_is_moved() {
    let scene = view("replay");
    let mut model = scene((80, 24));
    let shown = shot(&model);
    assert!(shown.contains("100×30, 78×21 of it shown"), "{shown}");
    assert!(shown.contains("↑↓ scroll"), "{shown}");
    press(&mut model, KeyCode::PageUp);
    assert!(shot(&model).contains("−21"), "{}", shot(&model));
    let large = shot(&scene((120, 35)));
    assert!(!large.contains("shown"), "{large}");
}

#[test]
fn the_keys_after_the_prefix_are_listed_as_they_are_set() {
    let mut model = working(NORMAL);
    let event = KeyEvent::new(KeyCode::Char('q'), KeyModifiers::CONTROL);
    let prefix = HostInput::Key {
        event,
        raw: vec![17],
    };
    update(
        &mut model,
        720,
        Event::Host(HostEvent::Input(prefix.clone())),
    );
    assert!(!shot(&model).contains("zoom  "), "not at once");
    update(&mut model, 721, Event::TimerFired(TimerId::Prefix));
    snapshot!("prefix", &model);
    let pane = layout::layout(&model);
    assert!(
        ui::pane_alone(&pane, &model, &screen(&model)).is_none(),
        "it covers the pane"
    );
    for size in views::SIZES.into_iter().chain([(40, 12)]) {
        model.view.host = size;
        let shown = shot(&model);
        assert!(
            shown.contains("? help") && shown.contains("Ctrl-q …"),
            "{size:?}: {shown}"
        );
    }
    press(&mut model, KeyCode::Char('z'));
    assert!(!shot(&model).contains("Ctrl-q …"));
    let keys = Action::all().map(|action| match action {
        Action::Zoom => (action, vec!["prefix k".parse().expect("a trigger")]),
        _ => (action, action.default_triggers()),
    });
    let other = "ctrl-b".parse().expect("a chord");
    model.config.keys = Keymap::new(other, keys).expect("no conflict");
    let event = KeyEvent::new(KeyCode::Char('b'), KeyModifiers::CONTROL);
    let prefix = HostInput::Key {
        event,
        raw: vec![2],
    };
    model.view.host = NORMAL;
    update(&mut model, 722, Event::Host(HostEvent::Input(prefix)));
    update(&mut model, 723, Event::TimerFired(TimerId::Prefix));
    let shown = shot(&model);
    assert!(
        shown.contains("Ctrl-b …") && shown.contains(" k zoom"),
        "{shown}"
    );
}

#[test]
fn the_tour_is_in_the_footer_where_the_pane_has_no_border() {
    let mut model = working((80, 24));
    model.view.tour = Some(Tour::default());
    update(&mut model, 720, Event::TimerFired(TimerId::Age));
    let shown = shot(&model);
    let footer = shown.lines().last().expect("a footer");
    assert!(footer.starts_with(" Tour 2 of 5: "), "{shown}");
    act(&mut model, Action::Checkpoint);
    let notice = model.view.notices.back().map(|notice| notice.text.clone());
    assert_eq!(
        shot(&model).contains(" Tour "),
        notice.is_none(),
        "{notice:?}"
    );
}

#[test]
fn the_chart_gives_each_turn_of_the_run_its_cells() {
    let mut model = working((160, 45));
    act(&mut model, Action::Chart);
    let bottom = |model: &Model| -> String {
        let shown = shot(model);
        let rows: Vec<&str> = shown.lines().collect();
        let axis = rows.iter().position(|row| row.contains("0 ┴"));
        let row = rows[axis.expect("the axis") - 1];
        row.split_once('│').expect("the scale").1.to_owned()
    };
    // The first iteration has eighteen turns, as high as they were kept.
    let row = bottom(&model);
    let first = row.split(' ').next().expect("a tooth");
    assert!(first.chars().count().is_multiple_of(18), "{row}");
    // Many turns share a column, and no iteration is left out.
    let at = model.now.wall;
    let turns = (1..=2_u64).flat_map(|iteration| {
        (1..=400_u64).map(move |turn| TurnFigures {
            iteration: IterationId::new(iteration).expect("not 0"),
            at,
            used: Tokens(20_000 + turn * 300),
            usable: Tokens(180_000),
            cost_usd: None,
        })
    });
    model.turns = RunTurns::default();
    update(
        &mut model,
        720,
        Event::Store(StoreEvent::TurnsRead(turns.collect())),
    );
    let shown = shot(&model);
    for said in ["#1", "#2", "#3", "a column is 6 turns"] {
        assert!(shown.contains(said), "{said}: {shown}");
    }
    assert!(
        !shown.contains("not shown") && !shown.contains("only the first"),
        "{shown}"
    );
    model.view.host = (80, 24);
    assert!(shot(&model).contains("#3"), "{}", shot(&model));
}

#[test]
fn a_prompt_that_was_refused_is_no_turn_of_the_chart() {
    let mut model = working(NORMAL);
    act(&mut model, Action::Chart);
    let said = "16 turns in this iteration";
    assert!(shot(&model).contains(said), "{}", shot(&model));
    scene::begin_turn(&mut model, 721);
    model.session.agent.state = AgentState::Limit;
    assert!(shot(&model).contains(said), "{}", shot(&model));
}

#[test]
fn a_search_of_the_history_shows_its_hit_in_context() {
    let mut model = view("history")((160, 45));
    model.lineage.current_mut().expect("it runs").summary = Some("to write it".to_owned());
    type_text(&mut model, "/write");
    let typed = shot(&model);
    assert!(typed.contains("summary: to write it"), "{typed}");
    model.lineage.current_mut().expect("it runs").summary = None;
    press(&mut model, KeyCode::Enter);
    let excerpt = Excerpt {
        of: "handoff it gave",
        words: format!(
            "{}the importer should write dates as they come",
            "so many words before it ".repeat(4)
        ),
    };
    let found = Found {
        run: model.run().clone(),
        iteration: IterationId::FIRST,
        excerpt: Some(excerpt),
    };
    let found = StoreEvent::HistoryFound {
        text: "write".to_owned(),
        found: Ok(vec![found]),
    };
    update(&mut model, 721, Event::Store(found));
    let (_, row) = place_of(&model, "handoff it gave: …");
    let buf = written(&model, &screen(&model), &Theme::default());
    let found: String = (0..160)
        .filter(|x| buf[(*x, row)].style().patch(Theme::default().found) == buf[(*x, row)].style())
        .map(|x| buf[(x, row)].symbol())
        .collect();
    assert_eq!(found, "write");
}

#[test]
fn a_difference_is_rendered_with_its_unchanged_lines_folded() {
    let mut model = view("history-compared")((160, 45));
    let long = "- a line\n".repeat(30);
    let (before, after) = (
        format!("## Plan\n{long}- [ ] **old** step\n"),
        format!("## Plan\n{long}- [x] new `step`\n"),
    );
    let past = model.view.history.past.as_mut().expect("it is open");
    past.difference = Some(Difference {
        heading: "What changed".to_owned(),
        text: pitstop_handoff::scratchpad::difference(&before, &after),
    });
    let shown = shot(&model);
    assert!(!shown.contains("@@") && !shown.contains("**"), "{shown}");
    for said in ["⋯ 28 lines unchanged", "- ☐ old step", "+ ☑ new step"] {
        assert!(shown.contains(said), "{said}: {shown}");
    }
}

#[test]
fn the_chart_shows_turns_lines_and_a_tooth_for_each_reboot() {
    let mut model = working(NORMAL);
    act(&mut model, Action::Chart);
    snapshot!("chart", &model);
    model.view.host = (80, 24);
    snapshot!("chart_80x24", &model);
    for columns in [80, 120, 160, 220] {
        model.view.host = (columns, 35);
        let shown = shot(&model);
        for name in [
            " notice ",
            " warn ",
            " compact ",
            "128.4k of 180k now, 71 %",
        ] {
            assert!(shown.contains(name), "{columns} columns, {name}: {shown}");
        }
    }
    // 154k has passed the compact line, 132k and 128k the one of warn: their bars fill more than half of its cell.
    for size in views::SIZES {
        model.view.host = size;
        let shown = shot(&model);
        let bars = |line: &str| {
            let row = shown
                .lines()
                .find(|row| row.contains('┤') && row.contains(line))
                .expect("the line");
            let bars = row.chars().filter(|c| ('▁'..='█').contains(c));
            bars.collect::<Vec<char>>()
        };
        let compact = bars(" compact ");
        assert!(
            !compact.is_empty() && compact.iter().all(|bar| *bar >= '▆'),
            "{size:?} {compact:?}"
        );
        let passed = bars(" warn ").into_iter().filter(|c| *c >= '▆');
        assert!(passed.count() >= 3, "{size:?}: {shown}");
        let below = bars(" warn ")
            .into_iter()
            .filter(|c| ('▃'..'▆').contains(c));
        assert_eq!(below.count(), 0, "{size:?}: {shown}");
    }
    let mut model = beginning((80, 24), "");
    act(&mut model, Action::Chart);
    assert!(shot(&model).contains("No figure yet"));
}

#[test]
fn what_is_typed_into_help_narrows_it_and_enter_runs_what_is_found() {
    let mut model = working((80, 24));
    act(&mut model, Action::Help);
    type_text(&mut model, "zoom");
    snapshot!("help_search", &model);
    press(&mut model, KeyCode::Enter);
    assert!(model.view.zoomed && model.view.overlay.is_none());
    // Nothing of the page is cut at the width that it has.
    act(&mut model, Action::Help);
    model.view.host = (80, 200);
    let shown = shot(&model);
    assert!(
        shown.contains("change the way: fresh, in place, or trim this session"),
        "{shown}"
    );
}

#[test]
fn a_line_of_the_handoff_that_is_seen_in_part_is_not_counted_as_read() {
    let mut model = working((120, 35));
    act(&mut model, Action::Reboot);
    press(&mut model, KeyCode::Char('g'));
    for rows in 20..60 {
        model.view.host = (120, rows);
        let shown = shot(&model);
        let whole = shown.contains("as good as this one.");
        assert_eq!(!whole, shown.contains(" ↓ "), "{shown}");
        assert!(!shown.contains("↓ 34/34"), "{shown}");
    }
}

#[test]
fn the_sections_of_the_review_fold_and_are_searched() {
    let mut model = working((160, 45));
    act(&mut model, Action::Reboot);
    press(&mut model, KeyCode::Char('z'));
    let folded = shot(&model);
    assert!(folded.contains("▸ Key decisions · 2 lines"), "{folded}");
    assert!(!folded.contains("batches of 4096"), "{folded}");
    type_text(&mut model, "/4096");
    assert!(shot(&model).contains("/4096"));
    press(&mut model, KeyCode::Enter);
    let found = shot(&model);
    assert!(found.contains("batches of 4096"), "{found}");
    assert!(model.view.overlay == Some(Overlay::Review), "still open");
    snapshot!("review_search", &model);
}

/// Where a text stands on the screen: column and row of its first cell.
fn place_of(model: &Model, said: &str) -> (u16, u16) {
    let shown = shot(model);
    let mut rows = shown.lines().enumerate();
    let (row, line) = rows.find(|(_, line)| line.contains(said)).expect("a row");
    let before = &line[..line.find(said).expect("it is in there")];
    (before.width() as u16, row as u16)
}

/// Returns the lower border of what fills the screen.
fn footing(model: &Model) -> String {
    let shown = shot(model);
    let row = shown.lines().rev().nth(1).expect("it is above the footer");
    row.to_owned()
}

#[test]
fn a_click_on_a_hint_is_the_key_that_it_names() {
    let keys = |model: &Model, said: &str| -> Vec<KeyCode> {
        let (column, row) = place_of(model, said);
        let theme = Theme::default();
        let column = column + said.len() as u16 / 2;
        let events = ui::hint::keys_at(model, &screen(model), &theme, column, row);
        events.iter().map(|event| event.code).collect()
    };
    let mut model = working(NORMAL);
    assert_eq!(keys(&model, "F5 reboot"), [KeyCode::F(5)]);
    assert_eq!(keys(&model, "idle"), []);
    let asks = asking(NORMAL);
    let defer = [KeyCode::Char('q'), KeyCode::Char('D')];
    assert_eq!(keys(&asks, "Ctrl-q D defer"), defer);
    act(&mut model, Action::Reboot);
    assert_eq!(keys(&model, "Enter/a approve"), [KeyCode::Enter]);
    assert_eq!(keys(&model, "e edit"), [KeyCode::Char('e')]);
    // The keys for reading fill what is left of the column, and the border has those that decide.
    assert!(!footing(&model).contains("/ find"), "{}", shot(&model));
    assert_eq!(keys(&model, "┃ / find"), [KeyCode::Char('/')]);
    // Words of the message are no hints.
    assert_eq!(keys(&model, "batches of 4096"), []);
    // A click on a section of the list goes to it, and one on a way takes it.
    assert_eq!(
        keys(&model, "┃ Key decisions"),
        [KeyCode::Home, KeyCode::Tab, KeyCode::Tab, KeyCode::Tab]
    );
    for _ in 0..5 {
        press(&mut model, KeyCode::Tab);
    }
    assert_eq!(
        keys(&model, "┃ Key decisions"),
        [
            KeyCode::BackTab,
            KeyCode::BackTab,
            KeyCode::BackTab,
            KeyCode::Tab
        ]
    );
    let mut model = reviewed(NORMAL, true);
    assert_eq!(keys(&model, "Fresh"), []);
    let trim = keys(&model, "Trim  ");
    assert_eq!(trim, [KeyCode::Char('w')]);
    for key in trim {
        press(&mut model, key);
    }
    assert!(shot(&model).contains("▸ Trim"), "{}", shot(&model));
    assert_eq!(keys(&model, "Fresh"), [KeyCode::Char('w')]);
    // The row that says that no trim is possible is no way.
    let mut model = working(NORMAL);
    scene::bridge_says(&mut model, 712, [pitstop_agent::bridge::Said::Hello]);
    act(&mut model, Action::Reboot);
    scene::plan_trim(
        &mut model,
        713,
        [128_400, 128_100, 127_900, 127_000, 126_300],
    );
    for _ in 0..2 {
        if !shot(&model).contains("▸ In place") {
            press(&mut model, KeyCode::Char('w'));
        }
    }
    assert_eq!(keys(&model, "In place"), []);
    assert_eq!(keys(&model, "Fresh"), [KeyCode::Char('w')]);
    assert_eq!(keys(&model, "Trim is not"), []);
    press(&mut model, KeyCode::Char('w'));
    assert!(shot(&model).contains("▸ Fresh"), "{}", shot(&model));
    assert_eq!(keys(&model, "In place"), [KeyCode::Char('w')]);
}

#[test]
fn the_panels_are_resized_by_key_and_by_dragging_their_border() {
    let mut model = working((160, 45));
    let width = |model: &Model| 160 - layout::layout(model).pane.width;
    let first = width(&model);
    act(&mut model, Action::Wider);
    assert_eq!(width(&model), first + 2);
    act(&mut model, Action::Narrower);
    act(&mut model, Action::Narrower);
    assert_eq!(width(&model), first - 2);
    let border = layout::layout(&model).pane.right();
    let mut mouse = |kind, column| {
        let event = MouseEvent {
            kind,
            column,
            row: 10,
            modifiers: KeyModifiers::NONE,
        };
        let raw = Vec::new();
        let input = HostInput::Mouse { event, raw };
        update(&mut model, 720, Event::Host(HostEvent::Input(input)));
    };
    mouse(MouseEventKind::Down(MouseButton::Left), border);
    mouse(MouseEventKind::Drag(MouseButton::Left), 100);
    mouse(MouseEventKind::Up(MouseButton::Left), 100);
    mouse(MouseEventKind::Drag(MouseButton::Left), 120);
    assert_eq!(width(&model), 60);
    // The pane keeps its 80 columns.
    model.view.set_panel_width(100);
    assert_eq!(layout::layout(&model).pane_inner().width, 80);
}

#[test]
fn without_utf_8_nothing_of_ours_is_more_than_ascii() {
    let theme = Theme::default().in_ascii(true);
    let mut models = variants((132, 40));
    models.push(asking(NORMAL));
    for model in &mut models {
        model.session.title.clear();
        model.draft.notes = NotesPanel::new("plain".to_owned());
        model.session.agent.limits.clear();
        let mut plain = Screen::new(PaneSize::new(10, 4), 10);
        plain.feed(b"agent", Instant::now());
        let buffer = written(model, &plain, &theme);
        let ours = buffer.content.iter().map(Cell::symbol);
        // What the documents themselves hold stays as it is.
        let known = |one: &&str| one.chars().all(|c| "日本語見出し⁶⏺ ".contains(c));
        let strange: BTreeSet<&str> = ours.filter(|one| !one.is_ascii() && !known(one)).collect();
        assert!(strange.is_empty(), "{strange:?} {:?}", model.view.overlay);
    }
}

/// What footer, panel, `status --json` and log say of the agent, for each of its states.
#[test]
fn footer_panel_status_and_log_agree_on_what_the_agent_does() {
    use pitstop_agent::{AgentEvent, Failure};
    let session = working(NORMAL).session.id;
    let dialog = AgentEvent::DialogOpened {
        session,
        about: "Bash".to_owned(),
    };
    let limit = AgentEvent::TurnFailed {
        session,
        failure: Failure::UsageLimit,
        message: "limit".to_owned(),
    };
    let exited = PaneEvent::Exited {
        iteration: IterationId::new(3).expect("not 0"),
        exit: pitstop_core::app::event::Exit::Code(1),
    };
    let made = |event: Option<Event>| {
        let mut model = working(NORMAL);
        if let Some(event) = event {
            update(&mut model, 713, event);
        }
        model.view.notices.clear();
        model
    };
    let mut working_now = made(None);
    scene::begin_turn(&mut working_now, 713);
    let mut background = made(None);
    background.session.agent.background.tasks = vec![pitstop_agent::BackgroundTask {
        id: "1".to_owned(),
        kind: "shell".to_owned(),
    }];
    let mut unknown = made(None);
    unknown.session.agent.listing = true;
    unknown.session.agent.state = AgentState::Unknown;
    let mut elsewhere = made(None);
    for (turns, output) in [(4, 900), (5, 950)] {
        let session = elsewhere.session.id;
        let facts = Box::new(pitstop_core::app::event::TranscriptFacts {
            turns,
            whole: true,
            totals: pitstop_core::lineage::TokenTotals {
                output: Tokens(output),
                ..elsewhere.session.transcript.totals
            },
            ..elsewhere.session.transcript.clone()
        });
        let read = pitstop_core::app::event::ReadEvent::Transcript { session, facts };
        update(&mut elsewhere, 713, Event::Read(read));
    }
    elsewhere.view.notices.clear();
    let mut limited = made(Some(Event::Agent(limit)));
    limited.session.agent.limit_reset = Some(at(3_600).wall);
    let cases = vec![
        (
            beginning(NORMAL, ""),
            AgentState::Starting,
            "starting",
            false,
        ),
        (made(None), AgentState::Idle, "idle", false),
        (working_now, AgentState::Busy, "working", false),
        (
            made(Some(Event::Agent(dialog))),
            AgentState::Dialog,
            "asks you",
            true,
        ),
        (background, AgentState::Idle, "idle · ", false),
        (limited, AgentState::Limit, "limit until 10:00", false),
        (
            made(Some(Event::Pane(exited))),
            AgentState::Exited,
            "ended",
            true,
        ),
        (unknown, AgentState::Unknown, "unknown", false),
        (elsewhere, AgentState::Elsewhere, "resumed elsewhere", true),
    ];
    for (model, state, said, logged) in cases {
        let shown = shot(&model);
        let footer = shown.lines().last().expect("a footer");
        assert!(footer.starts_with(&format!(" {said}")), "{said}: {footer}");
        let report = pitstop_core::app::report::status(&model);
        assert_eq!(report.agent.state, state, "{said}");
        assert!(said.starts_with(report.agent.state.phrase()), "{said}");
        if state == AgentState::Limit {
            assert_eq!(report.agent.reason.as_deref(), Some("until 10:00 UTC"));
        }
        // Where there is no figure the panel says why.
        if state == AgentState::Starting {
            assert!(shown.contains("waits for the agent to start"), "{shown}");
        }
        let log = model.view.log.iter();
        let log: Vec<&str> = log.map(|one| &*one.text).collect();
        let in_log = log
            .iter()
            .any(|one| one.starts_with(&format!("agent: {said}")));
        assert!(
            in_log == logged || state == AgentState::Limit,
            "{said}: {log:?}"
        );
    }
}

#[test]
fn what_fills_the_window_is_shown_with_its_parts_and_with_what_takes_it_out() {
    use pitstop_agent::bridge::{Category, CategoryKind, Fact, Part, Said, Usage};
    let mut model = working((132, 30));
    press(&mut model, KeyCode::Esc);
    act(&mut model, Action::Chart);
    press(&mut model, KeyCode::Char('c'));
    assert!(shot(&model).contains("Not known"), "{}", shot(&model));
    let row = |name: &str, tokens, kind, parts: &[(&str, u64)]| Category {
        name: name.to_owned(),
        tokens: Tokens(tokens),
        kind,
        parts: parts
            .iter()
            .map(|(name, tokens)| Part {
                name: (*name).to_owned(),
                tokens: Tokens(*tokens),
            })
            .collect(),
    };
    let used = CategoryKind::Used;
    let usage = Usage {
        window: Tokens(1_000_000),
        categories: vec![
            row(
                "MCP tools",
                8_000,
                used,
                &[("linear", 6_000), ("github", 2_000)],
            ),
            row("Messages", 112_000, used, &[("results of tools", 90_000)]),
            row("Free space", 880_000, CategoryKind::Free, &[]),
            row(
                "System tools (deferred)",
                12_464,
                CategoryKind::Deferred,
                &[],
            ),
        ],
        ..Usage::default()
    };
    scene::bridge_says(
        &mut model,
        720,
        [Said::Hello, Said::Fact(Fact::Usage(usage))],
    );
    let shown = shot(&model);
    let rows: Vec<&str> = shown.lines().collect();
    let at = |words: &str| {
        rows.iter()
            .position(|row| row.contains(words))
            .unwrap_or_else(|| panic!("{words}:\n{shown}"))
    };
    assert!(at("Messages") < at("results of tools") && at("results of tools") < at("MCP tools"));
    assert!(
        rows[at("MCP tools")].contains("8k   6 %")
            && rows[at("MCP tools")].contains("/mcp switches"),
        "{shown}"
    );
    assert!(at("MCP tools") < at("linear") && at("linear") < at("github"));
    assert!(
        rows[at("System tools (deferred)")].contains("not in the window"),
        "{shown}"
    );
    assert!(!shown.contains("Free space"), "{shown}");
    press(&mut model, KeyCode::Char('c'));
    assert!(shot(&model).contains("Context over the turns"));
}

#[test]
fn a_list_that_was_scrolled_to_its_end_goes_back_by_the_first_key() {
    let mut model = working((100, 12));
    for number in 0..40 {
        model.error(format!("message {number}"));
    }
    act(&mut model, Action::Messages);
    press(&mut model, KeyCode::Char('G'));
    let end = shot(&model);
    press(&mut model, KeyCode::Char('k'));
    assert_ne!(shot(&model), end);
}

#[test]
fn a_limit_that_lasts_for_days_names_its_day_in_footer_and_status() {
    use pitstop_agent::{AgentEvent, Failure};
    for (hours, words) in [(1, "10:00"), (20, "Sun 05:00"), (100, "Wed 13:00")] {
        let mut model = working(NORMAL);
        let limit = AgentEvent::TurnFailed {
            session: model.session.id,
            failure: Failure::UsageLimit,
            message: "limit reached".to_owned(),
        };
        update(&mut model, 712, Event::Agent(limit));
        model.view.notices.clear();
        model.session.agent.limit_reset = Some(at(hours * 3_600).wall);
        let footer = shot(&model).lines().last().expect("a footer").to_owned();
        assert!(
            footer.starts_with(&format!(" limit until {words}")),
            "{footer}"
        );
        let report = pitstop_core::app::report::status(&model);
        let reason = format!("until {words} UTC");
        assert_eq!(report.agent.reason, Some(reason));
    }
}

#[test]
fn a_message_of_yesterday_has_its_day() {
    let mut model = working(NORMAL);
    model
        .view
        .log("the night begins", false, at(14 * 3_600).wall);
    model
        .view
        .log("the night is over", false, at(20 * 3_600).wall);
    model.now = at(21 * 3_600);
    act(&mut model, Action::Messages);
    let shown = shot(&model);
    assert!(
        shown.contains(" Sat 23:00:00   the night begins"),
        "{shown}"
    );
    assert!(shown.contains(" 05:00:00   the night is over"), "{shown}");
}

#[test]
fn all_that_a_search_in_help_finds_can_be_read() {
    for (size, query) in [((60, 16), "co"), ((80, 24), "c"), ((40, 12), "copy")] {
        let mut model = working(size);
        act(&mut model, Action::Help);
        type_text(&mut model, query);
        let mut all = shot(&model);
        assert!(all.contains('▸'), "{all}");
        for _ in 0..9 {
            press(&mut model, KeyCode::PageDown);
            all = shot(&model);
        }
        assert!(all.contains("2 or 3 clicks"), "{size:?}:\n{all}");
        // The first key back is seen at once, and another selection is in sight.
        press(&mut model, KeyCode::PageUp);
        assert_ne!(shot(&model), all);
        press(&mut model, KeyCode::Down);
        assert!(shot(&model).contains('▸'), "{size:?}");
    }
}

#[test]
fn a_question_keeps_its_keys_in_a_low_terminal() {
    for size in [(40, 10), (44, 11), (60, 12)] {
        let mut model = working(size);
        scene::begin_turn(&mut model, 715);
        let why = "no room is left on the device".to_owned();
        update(
            &mut model,
            716,
            Event::Read(ReadEvent::ScratchpadNotSaved(why)),
        );
        act(&mut model, Action::Quit);
        let shown = shot(&model);
        for key in ["d detach", "Enter/y end the agent", "stays"] {
            assert!(shown.contains(key), "{size:?}:\n{shown}");
        }
        model.view.overlay = Some(Overlay::Exited);
        let shown = shot(&model);
        for key in ["q quit", "Esc hide"] {
            assert!(shown.contains(key), "{size:?}:\n{shown}");
        }
    }
}

#[test]
fn a_click_beside_the_keys_of_a_question_is_no_key() {
    let theme = Theme::default();
    for (overlay, hint, key) in [
        (Overlay::Quit, "d detach", KeyCode::Char('d')),
        (Overlay::Exited, "q quit", KeyCode::Char('q')),
    ] {
        let mut model = working(NORMAL);
        model.view.overlay = Some(overlay);
        let pane = layout::layout(&model).pane_inner();
        let mut said = Screen::new(PaneSize::new(pane.width, pane.height), 0);
        let lines = b"q leave the loop\r\nEnter the name\r\na good thing\r\nd detach";
        said.feed(lines, Instant::now());
        for row in pane.y..pane.y + 4 {
            let keys = ui::hint::keys_at(&model, &said, &theme, pane.x + 1, row);
            assert!(keys.is_empty(), "{row}: {keys:?}");
        }
        let (column, row) = place_of(&model, hint);
        let keys = ui::hint::keys_at(&model, &screen(&model), &theme, column + 2, row);
        let keys: Vec<KeyCode> = keys.iter().map(|event| event.code).collect();
        assert_eq!(keys, [key]);
    }
}

#[test]
fn no_row_of_a_question_ends_within_a_hint() {
    for columns in 40..100 {
        let mut model = working((columns, 20));
        model.view.overlay = Some(Overlay::Exited);
        let shown = shot(&model);
        for hint in ["F5 reboot with handoff", "q quit", "Esc hide"] {
            assert!(shown.contains(hint), "{columns}: {hint}:\n{shown}");
        }
    }
}

#[test]
fn a_list_of_keys_that_is_longer_than_the_screen_is_marked() {
    let small = [(40, 16), (52, 12), (40, 12)].map(|size| (size, true));
    for (size, marked) in small.into_iter().chain([(NORMAL, false)]) {
        let mut model = working(size);
        model.view.shows_keys = true;
        let shown = shot(&model);
        // The row above the footer is the lower border of the box.
        let border = shown.lines().rev().nth(1).expect("a border");
        assert!(border.starts_with('┗'), "{shown}");
        assert_eq!(border.contains('↓'), marked, "{size:?}:\n{shown}");
    }
}

#[test]
fn a_session_that_has_shrunk_begins_in_the_chart_where_it_began() {
    use pitstop_core::lineage::{EndReason, Lineage, RunId};
    let mut model = working((160, 45));
    let wall = model.now.wall;
    let mut lineage = Lineage::new(RunId::new(wall, [1, 2, 3]));
    lineage.open(None, None, wall).expect("the first");
    let first = lineage.current_mut().expect("it runs");
    first.tokens_at_birth = Some(Tokens(160_000));
    first.tokens_at_end = Some(Tokens(40_000));
    lineage.close(wall, EndReason::Shutdown).expect("it ran");
    lineage.open(None, None, wall).expect("the second");
    model.lineage = lineage;
    model.turns = RunTurns::default();
    act(&mut model, Action::Chart);
    let shown = shot(&model);
    let row = shown
        .lines()
        .find(|row| row.contains('┤') && row.contains(" compact "));
    let row = row.expect("the line");
    // Only the first figure has passed it.
    assert!(row.contains(|c| ('▆'..='█').contains(&c)), "{shown}");
}
