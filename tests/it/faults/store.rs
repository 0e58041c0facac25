//! What stands where the database is expected.

use std::{fs, path::Path};

use rustix::fs::{FlockOperation, flock};

use super::{MINE, Trial, demo, make_fifo, remove};
use crate::{
    kit::supervisor::{Launch, SOON, key},
    lineage::{play, reported},
};

fn database(launch: &Launch) -> std::path::PathBuf {
    launch.the_home().path("state/pitstop/pitstop.db")
}

/// Spoils the database between two sessions: the second goes on, and says what was found.
#[track_caller]
fn spoil(words: &str, harm: impl Fn(&Path)) {
    let launch = demo();
    let first = Trial::begin(&launch);
    first.ends();
    for end in ["-wal", "-shm"] {
        // They may not be there.
        let _ = fs::remove_file(database(&launch).with_extension(format!("db{end}")));
    }
    harm(&database(&launch));
    let second = launch.start();
    second.terminal.wait_for(
        |screen| screen.contains(words) || second.log().contains(words),
        SOON,
    );
    drop(second);
    Trial::begin(&launch).goes_on();
}

macro_rules! harms {
    ($($name:ident: $words:literal $harm:expr;)*) => { $(
        #[test]
        #[ignore = "a fault of `cargo run --example faults`"]
        fn $name() {
            spoil($words, $harm);
        }
    )* };
}

harms! {
    truncated: "corrupt" |path| {
        let bytes = fs::read(path).expect("a database");
        fs::write(path, &bytes[..bytes.len() / 2 + 17]).expect("cut");
    };
    bytes_flipped: "corrupt" |path| {
        let mut bytes = fs::read(path).expect("a database");
        for at in (100..bytes.len()).step_by(97) {
            bytes[at] ^= 0x55;
        }
        fs::write(path, bytes).expect("written");
    };
    empty: "" |path| fs::write(path, "").expect("emptied");
    nothing_but_a_header: "corrupt" |path| {
        let bytes = fs::read(path).expect("a database");
        fs::write(path, &bytes[..100]).expect("cut");
    };
    a_pipe: "database away" |path| {
        remove(path);
        make_fifo(path);
    };
}

#[test]
#[ignore = "a fault of `cargo run --example faults`"]
fn locked_at_the_start() {
    let launch = demo();
    Trial::begin(&launch).ends();
    let mut other = play("lock", &database(&launch));
    // The pipe stays open: the other says more at its end.
    let mut words = reported(&mut other);
    assert_eq!(words.next().as_deref(), Some("locked"));
    let trial = Trial::begin(&launch);
    trial.supervisor.wait_for_text("database away", SOON);
    trial.answers();
    drop(other.stdin.take());
    assert!(other.wait().expect("a child").success());
    trial
        .supervisor
        .wait_for_status(|status| status["store_error"].is_null());
    trial.goes_on();
}

#[test]
#[ignore = "a fault of `cargo run --example faults`"]
fn locked_through_a_reboot() {
    let launch = demo();
    let trial = Trial::begin(&launch);
    let mut other = play("lock", &database(&launch));
    // The pipe stays open: the other says more at its end.
    let mut words = reported(&mut other);
    assert_eq!(words.next().as_deref(), Some("locked"));
    trial.reboots();
    trial.answers();
    drop(other.stdin.take());
    assert!(other.wait().expect("a child").success());
    trial
        .supervisor
        .wait_for_status(|status| status["store_error"].is_null());
    let history = trial.supervisor.history();
    assert_eq!(history["iterations"].as_array().map(Vec::len), Some(2));
    trial.goes_on();
}

#[test]
#[ignore = "a fault of `cargo run --example faults`"]
fn its_gate_is_held_by_another() {
    let launch = demo();
    Trial::begin(&launch).ends();
    let gate = fs::File::open(launch.the_home().path("state/pitstop/opening.lock"));
    let gate = gate.expect("the gate of the database");
    flock(&gate, FlockOperation::LockExclusive).expect("the gate");
    let trial = Trial::begin(&launch);
    trial.answers();
    drop(gate);
    trial.goes_on();
}

/// A server that takes connections and says nothing.
#[test]
#[ignore = "a fault of `cargo run --example faults`"]
fn a_server_that_says_nothing() {
    let silent = std::net::TcpListener::bind("127.0.0.1:0").expect("a socket");
    server(silent.local_addr().expect("an address").port());
}

#[test]
#[ignore = "a fault of `cargo run --example faults`"]
fn a_server_that_refuses() {
    let taken = std::net::TcpListener::bind("127.0.0.1:0").expect("a socket");
    let port = taken.local_addr().expect("an address").port();
    drop(taken);
    server(port);
}

#[track_caller]
fn server(port: u16) {
    let url = format!("store.url=\"postgres://user@127.0.0.1:{port}/pitstop\"");
    let trial = Trial::begin(&demo().set(&url));
    trial.supervisor.wait_for_text("database away", SOON);
    trial.answers();
    trial.reboots();
    trial.supervisor.keys([key::F3]);
    trial.supervisor.wait_for_text(MINE, SOON);
    trial.supervisor.keys([key::ESC]);
    trial.ends();
}
