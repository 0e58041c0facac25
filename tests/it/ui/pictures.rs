//! The pictures in `docs/pictures/`: frames of the program's own views, drawn from scenes.
//!
//! `cargo run --example screenshot` writes them, a test fails when one of them is no longer what the program draws.

use std::{
    path::PathBuf,
    time::{Duration, Instant},
};

use crossterm::event::KeyCode;
use pitstop::ui::{self, Depth, Theme};
use pitstop_agent::{AgentEvent, StartSource};
use pitstop_base::keymap::Action;
use pitstop_core::{
    app::{
        Event, Model, autopilot,
        event::{Exit, NewIds, PaneEvent, ReadEvent, StoreEvent},
        layout,
    },
    autopilot::{Caps, Fresh, Limits, Plan},
    config::ThemeName,
    lineage::ProcessStamp,
};
use pitstop_terminal::screen::Screen;
use ratatui::{
    Terminal,
    backend::{Backend, TestBackend},
};

use super::{scene, svg};

/// A terminal with panels beside the pane, and one without room for them.
const WIDE: (u16, u16) = (136, 36);
const NARROW: (u16, u16) = (80, 24);

/// One picture.
pub struct Picture {
    /// The name of its file in `docs/pictures/`, without `.svg`.
    pub name: &'static str,
    size: (u16, u16),
    scene: fn((u16, u16)) -> Model,
    /// Whether the agent has just been started, and its screen is empty.
    is_new: bool,
    is_dark: bool,
}

/// Every picture.
pub const PICTURES: [Picture; 7] = [
    Picture {
        is_new: true,
        ..dark("start", WIDE, start)
    },
    dark("warn", WIDE, scene::working),
    dark("review", WIDE, review),
    Picture {
        is_new: true,
        ..dark("moment", WIDE, moment)
    },
    dark("run", WIDE, run),
    dark("narrow", NARROW, scene::working),
    Picture {
        is_dark: false,
        ..dark("light", WIDE, scene::working)
    },
];

const fn dark(name: &'static str, size: (u16, u16), scene: fn((u16, u16)) -> Model) -> Picture {
    Picture {
        name,
        size,
        scene,
        is_new: false,
        is_dark: true,
    }
}

impl Picture {
    /// Where it is kept.
    pub fn path(&self) -> PathBuf {
        let directory = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("docs/pictures");
        directory.join(self.name).with_extension("svg")
    }

    /// What the program draws now.
    pub fn draw(&self) -> String {
        let model = (self.scene)(self.size);
        drawn(&model, self.size, self.is_new, self.is_dark)
    }
}

/// The picture of a model's frame.
pub fn drawn(model: &Model, (columns, rows): (u16, u16), is_new: bool, is_dark: bool) -> String {
    let screen = if is_new {
        empty_screen(model)
    } else {
        scene::screen(model)
    };
    let theme = Theme::new(ThemeName::Auto, Depth::TrueColor, is_dark);
    let colours = if is_dark { &svg::DARK } else { &svg::LIGHT };
    let mut terminal = Terminal::new(TestBackend::new(columns, rows)).expect("a test terminal");
    let drawn = terminal.draw(|frame| ui::draw(frame, model, &screen, &theme));
    drawn.expect("a test terminal takes every frame");
    let cursor = ui::cursor(model, &screen)
        .filter(|cursor| cursor.visible)
        .and_then(|_| terminal.backend_mut().get_cursor_position().ok());
    svg::svg(terminal.backend().buffer(), cursor, colours)
}

/// The screen of an agent that has drawn its prompt box and nothing else.
fn empty_screen(model: &Model) -> Screen {
    let size = layout::layout(model).pane_size();
    let mut screen = Screen::new(size, 1_000);
    // Four rows have room for no more.
    screen.feed(&scene::session_bytes(size.columns(), 4), Instant::now());
    screen
}

/// Before the first figure.
fn start(size: (u16, u16)) -> Model {
    scene::beginning(size, scene::NOTES)
}

/// The review, with both ways.
pub fn review(size: (u16, u16)) -> Model {
    let mut model = past_the_line(size);
    scene::act(&mut model, Action::Reboot);
    scene::plan_trim(
        &mut model,
        714,
        [155_000, 149_300, 143_800, 121_900, 96_400],
    );
    model.view.notices.clear();
    model
}

/// Right after a reboot.
pub fn moment(size: (u16, u16)) -> Model {
    let mut model = past_the_line(size);
    scene::act(&mut model, Action::Reboot);
    model.now = scene::at(720);
    let message = model.draft.handoff.current().text.clone();
    scene::press(&mut model, KeyCode::Enter);
    answer(&mut model, 720);
    let exited = PaneEvent::Exited {
        iteration: model.session.iteration,
        exit: Exit::Code(0),
    };
    scene::update(&mut model, 721, Event::Pane(exited));
    answer(&mut model, 721);
    let spawned = PaneEvent::Spawned {
        iteration: model.session.iteration,
        process: ProcessStamp {
            pid: 4244,
            start_time: "2".to_owned(),
        },
        new_ids: NewIds {
            nonce: "9c2f41d3".to_owned(),
            ..model.reboot.new_ids.clone()
        },
    };
    scene::update(&mut model, 721, Event::Pane(spawned));
    answer(&mut model, 721);
    let session = model.session.id;
    let started = AgentEvent::SessionStarted {
        session,
        source: StartSource::Startup,
        model: None,
        transcript_path: None,
        prompt_cache: None,
    };
    scene::say(&mut model, 722, started);
    let prompted = AgentEvent::PromptSubmitted {
        session,
        prompt: message,
        transcript_path: None,
    };
    scene::say(&mut model, 722, prompted);
    answer(&mut model, 722);
    if let AgentEvent::StatusLine(mut figure) = scene::figure(20_700) {
        figure.session = session;
        figure.cost_usd = Some(0.14);
        scene::say(&mut model, 723, AgentEvent::StatusLine(figure));
    }
    model
}

/// An autonomous run in its third session.
pub fn run(size: (u16, u16)) -> Model {
    let mut model = scene::working(size);
    let plan = Plan {
        task: "Make the importer stream: constant memory for any CSV size.".to_owned(),
        stop_phrase: "ALL DONE".to_owned(),
        caps: Caps {
            max_iterations: Some(50),
            max_cost_usd: Some(25.0),
            max_time: Some(Duration::from_hours(8)),
        },
        limits: Limits::default(),
        fresh: Fresh::Threshold,
        attended: true,
    };
    let now = std::mem::replace(&mut model.now, scene::run_start());
    autopilot::begin(
        &mut model,
        plan,
        false,
        Some(Vec::new()),
        std::time::Duration::ZERO,
    );
    model.now = now;
    scene::begin_turn(&mut model, 714);
    model.view.notices.clear();
    model
}

/// Past the compact line.
pub fn past_the_line(size: (u16, u16)) -> Model {
    let mut model = scene::working(size);
    scene::say(&mut model, 713, scene::figure(155_000));
    scene::drafted(&mut model, 713);
    model.view.notices.clear();
    model
}

/// Answers what a reboot waits for from outside, but for the agent itself.
pub fn answer(model: &mut Model, second: u64) {
    for _ in 0..4 {
        let Some(attempt) = &model.reboot.attempt else {
            return;
        };
        let (reboot, step) = (attempt.id, attempt.step());
        let stored = StoreEvent::Journaled { reboot, step };
        scene::update(model, second, Event::Store(stored));
        let prepared = ReadEvent::Prepared {
            reboot,
            refused: None,
        };
        scene::update(model, second, Event::Read(prepared));
    }
}

#[test]
fn the_pictures_are_what_the_program_draws() {
    for picture in &PICTURES {
        let kept = std::fs::read_to_string(picture.path()).unwrap_or_default();
        let name = picture.name;
        assert!(
            kept == picture.draw(),
            "docs/pictures/{name}.svg is stale: run `cargo run --example screenshot`"
        );
        // A page with several of them is still loaded at once.
        assert!(kept.len() < 60_000, "{name}: {} bytes", kept.len());
    }
}
