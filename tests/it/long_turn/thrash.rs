//! Runs that get nowhere still stop, and no turn is stopped for that.

use super::{Run, impatient, play, print_seams};
use crate::{
    autopilot,
    bridge::MODS_FROM,
    kit::{
        client::is_at_least,
        shape::{Shape, Step, ToolCall},
    },
};

/// A run of this shape that goes on the fly where the client can, and else by cutting its turns.
#[track_caller]
fn run(shape: Shape) -> Run {
    let launch = autopilot::live(&["--headless", "--json"]);
    if is_at_least(MODS_FROM) {
        return play(&launch, shape);
    }
    play(&impatient(launch), shape)
}

/// It has ended by the breaker against thrash, when the turn with so many steps was over.
#[track_caller]
fn check(run: &Run, steps: usize, why: &str) {
    print_seams(&run.played);
    let end = run.events.last().expect("it has said something");
    assert_eq!(run.code, Some(4), "{:#?}", run.events);
    let told = end["why"].as_str().expect("a reason");
    assert!(
        told.contains("breaker reboot_thrash tripped") && told.contains(why),
        "{told}"
    );
    assert_eq!(run.meta["end"]["reason"], "breaker");
    assert_eq!(run.played.faults(), [""; 0]);
    assert_eq!(run.played.steps(), (1..=steps).collect::<Vec<_>>());
    assert_eq!((run.played.summaries(), run.count("turn_failed")), (0, 0));
}

/// What a session begins with is above the line already.
#[test]
#[ignore = "live: needs PITSTOP_CLAUDE"]
fn a_session_that_begins_above_the_line_stops_the_run_behind_its_turn() {
    let shape = Shape::sessions(2, 40, 155_000, 165_000);
    let steps = shape.turns[0].len();
    let run = run(shape);
    check(&run, steps, "which is above the compact line");
    // One reboot; where it came behind the first step, nothing of the talk was lost by it.
    assert_eq!(run.meta["iterations"].as_array().map(Vec::len), Some(2));
}

/// Three sessions are filled, and nothing comes of any.
#[test]
#[ignore = "live: needs PITSTOP_CLAUDE"]
fn three_sessions_that_only_read_stop_the_run_behind_the_turn() {
    let reads = Step {
        calls: vec![ToolCall::Read { bytes: 2_000 }],
        growth: 5_000,
        pause: std::time::Duration::from_millis(30),
    };
    let mut shape = Shape::long_turn(1, 20_000, 25_000).idle();
    shape.turns[0].splice(..1, vec![reads; 86]);
    shape.turns.push(shape.turns[0].clone());
    let steps = shape.turns[0].len();
    let run = run(shape);
    check(&run, steps, "3 sessions in a row");
    assert_eq!(run.played.seams().len(), 2);
}
