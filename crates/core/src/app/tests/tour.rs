//! The demo's tour goes on when its step was done.

use crate::app::tour;

use super::*;

fn step(bench: &Bench) -> String {
    let line = tour::line(&bench.model).expect("there is a tour");
    line.split(':').next().unwrap_or_default().to_owned()
}

#[test]
fn each_step_ends_when_what_it_asks_for_was_done() {
    let mut bench = Bench::new();
    assert_eq!(
        tour::line(&bench.model),
        None,
        "there is one in the demo alone"
    );
    bench.model.view.tour = Some(tour::Tour::default());
    bench.prompted(OLD, "work");
    bench.turn_ended(OLD);
    assert_eq!(step(&bench), "Tour 1 of 5");
    bench.used(130_000);
    assert_eq!(step(&bench), "Tour 2 of 5");
    assert!(tour::line(&bench.model).unwrap().contains("press F3"));

    bench.press(KeyCode::F(3));
    bench.press(KeyCode::Char('e'));
    bench.press(KeyCode::Char('x'));
    assert_eq!(step(&bench), "Tour 2 of 5", "it is still being written");
    bench.press(KeyCode::Esc);
    assert_eq!(step(&bench), "Tour 3 of 5");

    let start = bench.rebooted();
    assert_eq!(step(&bench), "Tour 3 of 5", "it has not arrived yet");
    bench.spawned(3);
    bench.started(NEW);
    bench.prompted(NEW, &start.prompt.unwrap());
    bench.turn_ended(NEW);
    assert_eq!(step(&bench), "Tour 4 of 5");
    bench.control(Control::Undo);
    bench.exited(0);
    bench.spawned(4);
    bench.started(OLD);
    bench.ready();
    assert_eq!(step(&bench), "Tour 5 of 5");
    bench.press(KeyCode::F(6));
    assert_eq!(step(&bench), "Tour done");
}
