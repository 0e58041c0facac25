//! What the host terminal does.

use super::{REPLY, Trial, demo};
use crate::kit::{
    supervisor::{Launch, SOON, key},
    terminal::Answers,
};

#[test]
#[ignore = "a fault of `cargo run --example faults`"]
fn reads_20_kb_a_second() {
    let trial = Trial::begin(&demo());
    trial.supervisor.terminal.slow(true);
    trial.turn("slowly");
    trial.supervisor.wait_for_state("idle", SOON);
    trial.reboots();
    trial.supervisor.keys([key::F10]);
    let exit = trial.supervisor.wait_for_exit(SOON);
    assert_eq!((exit.code, exit.signal), (0, None));
    assert_eq!(
        trial.supervisor.terminal.modes_left_on(),
        Vec::<&str>::new()
    );
    assert!(trial.supervisor.terminal.has_its_settings_back());
}

#[test]
#[ignore = "a fault of `cargo run --example faults`"]
fn answers_a_second_late() {
    Trial::begin(&demo().answering(Answers::Late)).goes_on();
}

#[test]
#[ignore = "a fault of `cargo run --example faults`"]
fn answers_byte_by_byte() {
    Trial::begin(&demo().answering(Answers::Pieces)).goes_on();
}

#[test]
#[ignore = "a fault of `cargo run --example faults`"]
fn stalls_while_nothing_happens() {
    let trial = Trial::begin(&demo());
    let terminal = &trial.supervisor.terminal;
    terminal.stall(true);
    trial.supervisor.keys(["typed meanwhile"]);
    let output = || {
        let history = trial.supervisor.history();
        history["iterations"][0]["tokens"]["output"].as_u64()
    };
    let before = output();
    let turn = || {
        // In one read with the text it is a line break, and when the text was read cannot be seen here.
        trial.supervisor.keys([key::ENTER]);
        output() > before
    };
    trial.supervisor.wait_until("the turn is taken", turn);
    terminal.stall(false);
    terminal.wait_for(|screen| screen.matches(REPLY).count() >= 2, SOON);
    trial.goes_on();
}

#[test]
#[ignore = "a fault of `cargo run --example faults`"]
fn reports_a_size_of_10_000() {
    let trial = Trial::begin(&demo());
    for (columns, rows) in [(10_000, 10_000), (0, 0), (1, 1)] {
        let frames = trial.supervisor.terminal.reads().len();
        trial.supervisor.terminal.report_size(columns, rows);
        let drawn = || trial.supervisor.terminal.reads().len() > frames;
        if columns > 1 {
            trial.supervisor.wait_until("it is drawn", drawn);
        }
        trial.supervisor.wait_for_state("idle", SOON);
    }
    trial.supervisor.terminal.report_size(140, 45);
    trial.goes_on();
}

#[test]
#[ignore = "a fault of `cargo run --example faults`"]
fn has_no_language() {
    let launch: Launch = demo().without_env("LANG");
    Trial::begin(&launch.env("LANG", "")).goes_on();
}
