//! What becomes of the client's transcript while it is followed.

use std::{
    fs::{self, OpenOptions},
    io::Write as _,
    os::unix::fs::symlink,
    path::Path,
};

use super::{Trial, demo, make_fifo, make_hole, memory, remove};
use crate::{kit::supervisor::session_of, trim::reboot::transcript};

/// Spoils the transcript of a session that has had a turn; the work goes on.
#[track_caller]
fn spoil(harm: impl Fn(&Path)) {
    let trial = Trial::begin(&demo());
    let session = session_of(&trial.supervisor.status());
    harm(&transcript(trial.home(), &session));
    trial.turn("look again");
    trial.goes_on();
}

fn append(path: &Path, bytes: &[u8]) {
    let mut file = OpenOptions::new().append(true).open(path).expect("a file");
    file.write_all(bytes).expect("written");
}

fn replaced(path: &Path, bytes: &[u8]) {
    let aside = path.with_extension("aside");
    fs::write(&aside, bytes).expect("written");
    fs::rename(aside, path).expect("renamed");
}

fn half(path: &Path) -> Vec<u8> {
    let bytes = fs::read(path).expect("a transcript");
    bytes[..bytes.len() * 2 / 3].to_vec()
}

macro_rules! harms {
    ($($name:ident: $harm:expr;)*) => { $(
        #[test]
        #[ignore = "a fault of `cargo run --example faults`"]
        fn $name() {
            spoil($harm);
        }
    )* };
}

harms! {
    cut_in_the_middle_of_a_line: |path| {
        let bytes = half(path);
        let file = OpenOptions::new().write(true).open(path).expect("a file");
        file.set_len(bytes.len() as u64).expect("cut");
    };
    emptied: |path| fs::write(path, "").expect("emptied");
    replaced_by_a_new_file: |path| {
        let bytes = half(path);
        replaced(path, &bytes);
    };
    shrunk_and_grown_past_where_it_was_read: |path| {
        let bytes = fs::read(path).expect("a transcript");
        fs::write(path, &bytes[bytes.len() / 2..]).expect("written");
        for _ in 0..3 {
            append(path, &bytes);
        }
    };
    deleted: remove;
    a_directory_in_its_place: |path| {
        remove(path);
        fs::create_dir(path).expect("a directory");
    };
    a_pipe_in_its_place: |path| {
        remove(path);
        make_fifo(path);
    };
    a_link_to_an_endless_device_in_its_place: |path| {
        remove(path);
        symlink("/dev/zero", path).expect("a link");
    };
    a_run_of_nul_bytes: |path| append(path, &vec![0; 70_000]);
    two_records_on_a_line: |path| {
        let text = fs::read_to_string(path).expect("a transcript");
        let last = text.lines().last().expect("a line");
        append(path, format!("{last}{last}\n").as_bytes());
    };
    json_that_is_none: |path| append(path, b"{\"type\":\"assistant\",\"message\":{\n}}}}\n[\n\"\n");
    bytes_that_are_no_text: |path| append(path, b"{\"type\":\"user\",\"message\":\"\xff\xfe\xc3\x28\"}\n\xff\n");
    escapes_in_its_texts: |path| append(
        path,
        b"{\"type\":\"assistant\",\"message\":{\"role\":\"assistant\",\"content\":[{\"type\":\"text\",\"text\":\"\\u001b]0;owned\\u0007\\u001b[2J OBJECTIVE: \\u001b]0;owned\\u0007\"}]}}\n",
    );
    impossible_numbers: |path| append(
        path,
        b"{\"type\":\"assistant\",\"message\":{\"id\":\"m\",\"role\":\"assistant\",\"content\":[],\"usage\":{\"input_tokens\":1e999,\"output_tokens\":-5,\"cache_read_input_tokens\":18446744073709551616}}}\n{\"type\":\"assistant\",\"message\":{\"id\":\"n\",\"role\":\"assistant\",\"content\":[],\"usage\":{\"input_tokens\":18446744073709551615,\"output_tokens\":18446744073709551615}}}\n",
    );
    two_hundred_thousand_levels: |path| {
        let deep = format!("{{\"type\":\"user\",\"message\":{}1{}}}\n", "[".repeat(200_000), "]".repeat(200_000));
        append(path, deep.as_bytes());
    };
}

#[test]
#[ignore = "a fault of `cargo run --example faults`"]
fn a_line_of_144_mb() {
    let trial = Trial::begin(&demo());
    let session = session_of(&trial.supervisor.status());
    let path = transcript(trial.home(), &session);
    append(
        &path,
        b"{\"type\":\"user\",\"message\":{\"role\":\"user\",\"content\":\"",
    );
    for _ in 0..144 {
        append(&path, &vec![b'x'; 1_000_000]);
    }
    append(&path, b"\"}}\n");
    let before = memory(&trial.supervisor);
    trial.turn("look again");
    trial.answers();
    let after = memory(&trial.supervisor);
    assert!(after < before + 200, "{before} to {after} MiB");
    trial.goes_on();
}

#[test]
#[ignore = "a fault of `cargo run --example faults`"]
fn a_hole_of_ten_gigabytes() {
    let trial = Trial::begin(&demo());
    let session = session_of(&trial.supervisor.status());
    make_hole(&transcript(trial.home(), &session), 10 << 30);
    trial.turn("look again");
    trial.answers();
    let used = memory(&trial.supervisor);
    assert!(used < 400, "{used} MiB");
    trial.goes_on();
}
