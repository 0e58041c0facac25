//! How long a handoff takes to be made: `cargo run --release --example handoff_speed`.
//!
//! Prints the median of many rounds for a message that fills `max_state_size`, and for one whose sources are far larger.

#![allow(clippy::disallowed_methods, reason = "it measures real time")]

use std::time::{Duration, Instant};

use pitstop_handoff::{
    Generator, Marker, PreservedState, Sources,
    preserved::{Item, Origin},
    scratchpad::Parsed,
};

fn main() {
    let marker = Marker {
        run: "run".to_owned(),
        iteration: 1,
        nonce: "0a1b2c3d".to_owned(),
    };
    let generator = Generator::default();
    for (name, items, lines) in [
        ("an ordinary one", 10, 60),
        ("one of 50 KB", 120, 450),
        ("cut from 1 000 of each", 1_000, 3_000),
    ] {
        let mut state = PreservedState::default();
        state.set_objective("Build the parser", Origin::Human);
        for n in 0..items {
            state.mark_completed(
                &format!("a completed item with some words in it, number {n}"),
                Origin::Human,
            );
            state.add_pending(
                &format!("a pending item with some words in it, number {n}"),
                Origin::Human,
            );
            state.modified_files.push(Item::new(
                &format!("src/some/where/modified_{n}.rs"),
                Origin::Git,
            ));
            state
                .test_state
                .failing
                .push(format!("tests::some::name_{n}"));
        }
        let notes = "- a line of notes with `code`, a = b and https://example.org/\n".repeat(lines);
        let notes = Parsed::read(&notes);
        let sources = Sources {
            scratchpad: &notes,
            ..Sources::new(&marker, &state)
        };
        let mut took: Vec<Duration> = Vec::new();
        let mut bytes = 0;
        for _ in 0..200 {
            let began = Instant::now();
            let handoff = generator.generate(&sources, 50_000);
            took.push(began.elapsed());
            bytes = handoff.map_or(0, |handoff| handoff.bytes());
        }
        took.sort_unstable();
        let (median, worst) = (took[took.len() / 2], took[took.len() - 1]);
        println!("{name}: {bytes} bytes, median {median:?}, worst {worst:?}");
    }
}
