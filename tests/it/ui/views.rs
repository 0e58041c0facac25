//! Every view of the program, each in a model of its own: to be looked at one by one, at every usual size.
//!
//! `cargo run --example screenshot -- --all DIRECTORY` writes them as pictures.

use std::time::Duration;

use crossterm::event::KeyCode;
use pitstop_base::keymap::Action;
use pitstop_core::{
    app::{
        Event, Model,
        event::{Exit, PaneEvent, ReadEvent, StoreEvent},
        history::EarlierRun,
        view::{Card, Outcome},
    },
    lineage::{IterationId, journal::Step},
};
use pitstop_terminal::pane::replay::Cast;
use pitstop_transcript::Tokens;

use super::{pictures, scene};

/// The usual sizes of a terminal, from the smallest that is common to one that fills a screen.
pub const SIZES: [(u16, u16); 4] = [(80, 24), (120, 35), (160, 45), (220, 60)];

/// A view's name and its scene.
type View = (&'static str, fn((u16, u16)) -> Model);

/// Every view.
pub const VIEWS: [View; 27] = [
    ("pane", scene::working),
    ("banner", pictures::past_the_line),
    ("review", pictures::review),
    ("compaction", compaction),
    ("compaction-review", |size| {
        let mut model = compaction(size);
        scene::act(&mut model, Action::Reboot);
        model
    }),
    ("stages", stages),
    ("card", pictures::moment),
    ("failed", failed),
    ("run", pictures::run),
    ("run-view", run_view),
    ("scratchpad", |size| acted(size, Action::Scratchpad)),
    ("scratchpad-editor", |size| {
        pressed(size, Action::Scratchpad, &[KeyCode::Char('e')])
    }),
    ("handoff", |size| acted(size, Action::Handoff)),
    ("handoff-editor", |size| {
        pressed(size, Action::Handoff, &[KeyCode::Char('e')])
    }),
    ("history", |size| history(size, &[])),
    ("history-detail", |size| {
        history(size, &[KeyCode::Down, KeyCode::Enter])
    }),
    ("history-difference", |size| {
        history(size, &[KeyCode::Down, KeyCode::Enter, KeyCode::Char('d')])
    }),
    ("history-compared", |size| {
        let keys = [
            KeyCode::Down,
            KeyCode::Char('m'),
            KeyCode::Down,
            KeyCode::Char('d'),
        ];
        history(size, &keys)
    }),
    ("history-search", |size| {
        history(size, &['/', 'l', 'i', 'n', 'e'].map(KeyCode::Char))
    }),
    ("help", |size| acted(size, Action::Help)),
    ("help-search", |size| {
        let keys = ['u', 'n'].map(KeyCode::Char);
        pressed(size, Action::Help, &keys)
    }),
    ("messages", |size| acted(size, Action::Messages)),
    ("chart", |size| acted(size, Action::Chart)),
    ("copy", |size| acted(size, Action::Scroll)),
    ("quit", quit),
    ("ended", ended),
    ("replay", replay),
];

fn acted(size: (u16, u16), action: Action) -> Model {
    pressed(size, action, &[])
}

fn pressed(size: (u16, u16), action: Action, keys: &[KeyCode]) -> Model {
    let mut model = scene::working(size);
    scene::act(&mut model, action);
    for key in keys {
        scene::press(&mut model, *key);
    }
    model
}

/// The question whether to quit, asked while a turn runs.
fn quit(size: (u16, u16)) -> Model {
    let mut model = scene::working(size);
    scene::begin_turn(&mut model, 715);
    scene::act(&mut model, Action::Quit);
    model
}

/// The agent has left by itself.
fn ended(size: (u16, u16)) -> Model {
    let mut model = scene::working(size);
    let exited = PaneEvent::Exited {
        iteration: model.session.iteration(),
        exit: Exit::Code(0),
    };
    scene::update(&mut model, 715, Event::Pane(exited));
    model
}

/// A reboot while the old session ends.
fn stages(size: (u16, u16)) -> Model {
    let mut model = pictures::past_the_line(size);
    scene::act(&mut model, Action::Reboot);
    model.now = scene::at(720);
    scene::press(&mut model, KeyCode::Enter);
    pictures::answer(&mut model, 720);
    model.now = scene::at(721);
    model
}

fn failed(size: (u16, u16)) -> Model {
    let mut model = scene::working(size);
    model.view.card = Some(Card {
        outcome: Outcome::Failed {
            step: Step::Starting,
            why: "the new session did not start within 30 s".to_owned(),
            resumed: true,
        },
        done_at: model.now,
        at: model.now,
        awaits_figure: false,
    });
    model
}

fn run_view(size: (u16, u16)) -> Model {
    let mut model = pictures::run(size);
    scene::act(&mut model, Action::History);
    scene::press(&mut model, KeyCode::Char('t'));
    model
}

/// The history with an earlier run, after these keys; what the store is asked for is there.
fn history(size: (u16, u16), keys: &[KeyCode]) -> Model {
    let mut model = scene::working(size);
    let (run, iterations) = scene::earlier_run();
    let earlier = EarlierRun { run, iterations };
    scene::update(
        &mut model,
        714,
        Event::Store(StoreEvent::EarlierRuns(vec![earlier.clone()])),
    );
    scene::act(&mut model, Action::History);
    for key in keys {
        scene::press(&mut model, *key);
        let own = model.run().clone();
        let wanted = [&model.view.history.past, &model.view.history.marked];
        let wanted = wanted
            .into_iter()
            .flatten()
            .filter(|past| past.found.is_none());
        let read: Vec<_> = wanted
            .filter_map(|past| {
                let of_it = if past.run == own {
                    model.lineage.iterations()
                } else {
                    &earlier.iterations
                };
                let one = of_it.iter().find(|one| one.iteration == past.iteration)?;
                Some((past.run.clone(), one.clone()))
            })
            .collect();
        for (run, one) in read {
            let mut found = scene::past(&run, &one);
            if let Some(gave) = &mut found.gave {
                let task = format!("task {}", one.iteration);
                gave.handoff = format!("# Handoff\n\n## Next step\n\n- [ ] {task}");
            }
            let event = StoreEvent::PastRead {
                run,
                iteration: one.iteration,
                found: Ok(Box::new(found)),
            };
            scene::update(&mut model, 714, Event::Store(event));
        }
    }
    model
}

fn replay(size: (u16, u16)) -> Model {
    let mut model = scene::working(size);
    let text = serde_json::to_string(&"a line of a recording\r\n".repeat(70)).expect("JSON");
    let file =
        format!("{{\"version\": 2, \"width\": 100, \"height\": 30}}\n[1.5, \"o\", {text}]\n");
    let cast = Cast::parse(file.as_bytes()).map_err(|error| error.to_string());
    let iteration = IterationId::new(2).expect("not 0");
    scene::update(
        &mut model,
        715,
        Event::Read(ReadEvent::Recording { iteration, cast }),
    );
    let replay = model.view.replay.as_mut().expect("a replay");
    replay.seek_tenth(10);
    replay.tick(Duration::ZERO);
    model
}

/// The picture that a view makes.
#[must_use]
pub fn picture(view: &View, size: (u16, u16), is_dark: bool) -> String {
    let model = (view.1)(size);
    let is_new = model
        .session
        .guard
        .figure(model.now)
        .is_none_or(|figure| figure.used < Tokens(30_000));
    pictures::drawn(&model, size, is_new, is_dark)
}

/// The client waits to be told what its compaction leaves.
fn compaction(size: (u16, u16)) -> Model {
    let mut model = scene::working(size);
    scene::compaction(&mut model, 712);
    model
}
