//! Bad inputs, made by code: whatever comes in by any door, pitstop goes on, and what follows is what is stated.
//!
//! Each file of this directory makes the inputs of one area from tables of named kinds, the same ones each time. No input may
//! panic or take longer than [`LIMIT`]; what becomes of it is compared with a snapshot, or with what the input itself was made
//! from. Inputs that come in pieces are also fed in pieces, with the same outcome.

#![allow(
    clippy::format_collect,
    reason = "how inputs are put together is to be read, not to be fast"
)]

mod config;
mod hooks;
mod names;
mod notes;
mod terminal;
mod transcripts;

use std::{
    collections::{BTreeMap, HashSet},
    fmt::Write as _,
    time::Duration,
};

use rustix::time::{ClockId, clock_gettime};

use crate::hostile;

/// What one input may cost, in seconds of this thread's own work: a machine that is busy with other tests does not count.
const LIMIT: Duration = Duration::from_secs(1);

/// How much of an outcome is written down, in characters.
const SHOWN: usize = 90;

/// One input.
pub struct Item {
    /// What is wrong with it.
    name: String,
    input: Vec<u8>,
}

pub fn item(name: impl Into<String>, input: impl Into<Vec<u8>>) -> Item {
    Item {
        name: name.into(),
        input: input.into(),
    }
}

/// Puts inputs in; the outcome of each is a line. Names with the same outcome in a row are told together.
#[track_caller]
pub fn outcomes(items: &[Item], outcome: impl Fn(&[u8]) -> String) -> String {
    let mut reported: Vec<(Vec<&str>, String)> = Vec::new();
    for one in items {
        let began = worked();
        let found = outcome(&one.input);
        let took = worked().saturating_sub(began);
        assert!(took < LIMIT, "{}: {took:?}", one.name);
        match reported.last_mut() {
            Some((names, last)) if *last == found => names.push(&one.name),
            _ => reported.push((vec![&one.name], found)),
        }
    }
    let mut text = String::new();
    for (names, found) in reported {
        writeln!(text, "{}\n    {found}", names.join(" · ")).unwrap();
    }
    text
}

/// What this thread has worked so far.
fn worked() -> Duration {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    Duration::new(time.tv_sec.unsigned_abs(), time.tv_nsec as u32)
}

/// A text as an outcome shows it.
fn shown(text: &str) -> String {
    let escaped: String = text.escape_debug().collect();
    match escaped.char_indices().nth(SHOWN) {
        Some((end, _)) => format!("{}… ({} bytes)", &escaped[..end], text.len()),
        None => escaped,
    }
}

/// The input in pieces: byte by byte if it is short, and cut at random places, the same ones each time.
fn cuttings(input: &[u8]) -> Vec<Vec<&[u8]>> {
    const BYTE_BY_BYTE: usize = 4 * 1024;
    let mut all = Vec::new();
    if input.len() <= BYTE_BY_BYTE {
        all.push(input.chunks(1).collect());
    }
    let mut seed = input.len() as u64 + 1;
    let mut cuts: Vec<usize> = (0..20)
        .map(|_| {
            // A xorshift.
            seed ^= seed << 13;
            seed ^= seed >> 7;
            seed ^= seed << 17;
            (seed % (input.len() as u64 + 1)) as usize
        })
        .collect();
    cuts.extend([0, input.len()]);
    cuts.sort_unstable();
    all.push(cuts.windows(2).map(|cut| &input[cut[0]..cut[1]]).collect());
    all
}

/// Set for a child that plays [`a_part`].
const ROLE: &str = "PITSTOP_TEST_BAD_INPUTS_ROLE";

/// How much more memory one input may need at any moment, beside itself.
const MEMORY: u64 = 32 << 20;

#[test]
#[cfg(target_os = "linux")]
fn the_largest_of_them_need_little_memory() {
    // In a process of its own: the other tests of this one need memory, too.
    let child = std::process::Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "bad_inputs::a_part", "--ignored", "--nocapture"])
        .env(ROLE, "memory")
        .output()
        .unwrap();
    let reported = String::from_utf8_lossy(&child.stdout);
    assert!(
        child.status.success() && reported.contains("@all"),
        "{reported}"
    );
}

#[test]
#[ignore = "a part played by the child process of another test"]
fn a_part() {
    if std::env::var_os(ROLE).is_none() {
        return;
    }
    let large = |items: Vec<Item>| items.into_iter().filter(|one| one.input.len() > 90_000);
    for one in large(terminal::items()) {
        in_little_memory(&one, terminal::at_once);
    }
    for one in large(transcripts::items()) {
        in_little_memory(&one, transcripts::followed);
    }
    println!("@all");
}

fn in_little_memory(one: &Item, read: fn(&[u8])) {
    // So that the peak is that of this input.
    std::fs::write("/proc/self/clear_refs", "5").unwrap();
    let before = of_memory("VmRSS");
    read(&one.input);
    let needed = of_memory("VmHWM").saturating_sub(before);
    println!("{}: {} KiB", one.name, needed >> 10);
    assert!(needed < MEMORY, "{}: {needed} bytes", one.name);
}

/// A figure of this process, in bytes.
fn of_memory(name: &str) -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix(name))
        .unwrap();
    let digits: String = line.chars().filter(char::is_ascii_digit).collect();
    digits.parse::<u64>().unwrap() << 10
}

#[test]
fn there_are_nine_hundred_of_them_and_no_two_are_the_same() {
    let areas: [(&str, Vec<Item>); 10] = [
        ("terminal", terminal::items()),
        ("controls", terminal::controls()),
        ("resizes", terminal::resizes()),
        ("transcripts", transcripts::items()),
        ("fields", transcripts::fields()),
        ("hooks", hooks::items()),
        ("config", config::items()),
        ("names", names::items()),
        ("notes", notes::items()),
        ("requests", crate::api::bad::items()),
    ];
    let mut counts = BTreeMap::new();
    let mut seen = HashSet::new();
    for (area, items) in &areas {
        let mut names = HashSet::new();
        for one in items {
            assert!(names.insert(&one.name), "{area}: {} twice", one.name);
            let door = if ["controls", "terminal"].contains(area) {
                "screen"
            } else {
                area
            };
            assert!(
                seen.insert((door, &one.input)),
                "{area}: {} is another's",
                one.name
            );
        }
        counts.insert(*area, items.len());
    }
    counts.insert(
        "written transcripts",
        hostile::cases("transcripts.jsonl").len(),
    );
    counts.insert("written signals", hostile::cases("signals.jsonl").len());
    let total: usize = counts.values().sum();
    println!("{total} bad inputs: {counts:?}");
    assert!(total >= 900, "{total}: {counts:?}");
    // The table of every control at every place is large by itself.
    assert!(total - counts["controls"] >= 900, "{counts:?}");
}
