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
    content: Content,
    is_dark: bool,
}

/// The content of a picture.
#[derive(Clone, Copy)]
enum Content {
    /// One frame of an agent at work.
    Working(fn((u16, u16)) -> Model),
    /// One frame of an agent that has just been started, whose screen is empty.
    New(fn((u16, u16)) -> Model),
    /// Frames that follow one another.
    Moving(fn((u16, u16)) -> Vec<Moment>),
}

/// A frame of a picture that moves.
pub struct Moment {
    model: Model,
    /// Whether the agent has just been started.
    is_new: bool,
    /// How long it is shown.
    seconds: f64,
}

/// Every picture.
pub const PICTURES: [Picture; 8] = [
    dark("start", WIDE, Content::New(start)),
    dark("warn", WIDE, Content::Working(scene::working)),
    dark("review", WIDE, Content::Working(review)),
    dark("moment", WIDE, Content::New(moment)),
    dark("reboot", WIDE, Content::Moving(reboot)),
    dark("run", WIDE, Content::Working(run)),
    dark("narrow", NARROW, Content::Working(scene::working)),
    Picture {
        is_dark: false,
        ..dark("light", WIDE, Content::Working(scene::working))
    },
];

const fn dark(name: &'static str, size: (u16, u16), content: Content) -> Picture {
    Picture {
        name,
        size,
        content,
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
        match self.content {
            Content::Working(scene) => drawn(&scene(self.size), self.size, false, self.is_dark),
            Content::New(scene) => drawn(&scene(self.size), self.size, true, self.is_dark),
            Content::Moving(moments) => {
                let frames: Vec<_> = moments(self.size)
                    .iter()
                    .map(|moment| {
                        let frame = frame(&moment.model, self.size, moment.is_new, self.is_dark);
                        (frame, moment.seconds)
                    })
                    .collect();
                svg::animation(&frames, colours(self.is_dark))
            }
        }
    }
}

/// The picture of a model's frame.
pub fn drawn(model: &Model, size: (u16, u16), is_new: bool, is_dark: bool) -> String {
    svg::svg(&frame(model, size, is_new, is_dark), colours(is_dark))
}

const fn colours(is_dark: bool) -> &'static svg::Colours {
    if is_dark { &svg::DARK } else { &svg::LIGHT }
}

/// A model's frame.
fn frame(model: &Model, (columns, rows): (u16, u16), is_new: bool, is_dark: bool) -> svg::Frame {
    let screen = if is_new {
        empty_screen(model)
    } else {
        scene::screen(model)
    };
    let theme = Theme::new(ThemeName::Auto, Depth::TrueColor, is_dark);
    let mut terminal = Terminal::new(TestBackend::new(columns, rows)).expect("a test terminal");
    let drawn = terminal.draw(|frame| ui::draw(frame, model, &screen, &theme));
    drawn.expect("a test terminal takes every frame");
    let cursor = ui::cursor(model, &screen)
        .filter(|cursor| cursor.visible)
        .and_then(|_| terminal.backend_mut().get_cursor_position().ok());
    svg::Frame {
        buffer: terminal.backend().buffer().clone(),
        cursor,
    }
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
    let message = approve(&mut model);
    start_next(&mut model);
    deliver(&mut model, message);
    model
}

/// A reboot from the work before it to the first moment after it.
fn reboot(size: (u16, u16)) -> Vec<Moment> {
    let mut moments = Vec::new();
    let mut show = |model: Model, is_new, seconds| {
        moments.push(Moment {
            model,
            is_new,
            seconds,
        });
    };
    show(scene::working(size), false, 2.5);
    show(past_the_line(size), false, 2.5);
    show(review(size), false, 5.0);
    let mut model = review(size);
    approve(&mut model);
    show(model, false, 1.0);
    let mut model = review(size);
    approve(&mut model);
    start_next(&mut model);
    show(model, true, 1.0);
    show(moment(size), true, 5.0);
    moments
}

/// Approves the reboot whose review is open, and returns the message.
fn approve(model: &mut Model) -> String {
    model.now = scene::at(720);
    let message = model.draft.handoff.current().text.clone();
    scene::press(model, KeyCode::Enter);
    answer(model, 720);
    message
}

/// Ends the old agent and starts the new one.
fn start_next(model: &mut Model) {
    let exited = PaneEvent::Exited {
        iteration: model.session.iteration(),
        exit: Exit::Code(0),
    };
    scene::update(model, 721, Event::Pane(exited));
    answer(model, 721);
    let spawned = PaneEvent::Spawned {
        iteration: model.session.iteration(),
        process: ProcessStamp {
            pid: 4244,
            start_time: "2".to_owned(),
        },
        new_ids: NewIds {
            nonce: "9c2f41d3".to_owned(),
            ..model.reboot.new_ids.clone()
        },
    };
    scene::update(model, 721, Event::Pane(spawned));
    answer(model, 721);
}

/// Has the new agent report that the message has arrived, and its first figure.
fn deliver(model: &mut Model, message: String) {
    let session = model.session.id;
    let started = AgentEvent::SessionStarted {
        session,
        source: StartSource::Startup,
        model: None,
        transcript_path: None,
        prompt_cache: None,
    };
    scene::say(model, 722, started);
    let prompted = AgentEvent::PromptSubmitted {
        session,
        prompt: message,
        transcript_path: None,
    };
    scene::say(model, 722, prompted);
    answer(model, 722);
    if let AgentEvent::StatusLine(mut figure) = scene::figure(20_700) {
        figure.session = session;
        figure.cost_usd = Some(0.14);
        scene::say(model, 723, AgentEvent::StatusLine(figure));
    }
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
        let (reboot, step, epoch) = (attempt.id, attempt.step(), attempt.epoch);
        let stored = StoreEvent::Journaled { reboot, step };
        scene::update(model, second, Event::Store(stored));
        let prepared = ReadEvent::Prepared {
            attempt: epoch,
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
        assert!(kept.len() < 200_000, "{name}: {} bytes", kept.len());
    }
}
