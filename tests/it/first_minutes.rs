//! The README's first five minutes: what it says to press is pressed, and what it says comes of it is waited for.
//!
//! With `PITSTOP_CAST=docs/pictures/demo.cast` the demo runs at its usual pace, with a window that fills sooner, and the recording is
//! written there.

use std::{
    env,
    fmt::Write as _,
    fs,
    path::{Path, PathBuf},
    thread,
    time::{Duration, Instant},
};

use serde_json::{Value, json};

use crate::{
    demo::command,
    kit::supervisor::{Launch, SOON, Supervisor},
};

/// How long the demo may take to its compact line, at its usual pace.
const FILLED: Duration = Duration::from_mins(4);

/// How long a recording shows a screen before the next key.
const LOOK: Duration = Duration::from_secs(3);

/// The longest pause in a recording, and the shortest between two of its lines, in seconds.
const LONGEST_PAUSE: f64 = 2.0;
const SHORTEST_PAUSE: f64 = 0.1;

/// What each turn adds to the context in a recording, in tokens: at the usual growth nothing else happens for a minute.
const QUICK_GROWTH: &str = "30000";

/// What the screen shows after a step.
enum Then {
    Shows(&'static str),
    /// This iteration runs, and no reboot is under way: before that its undo is refused.
    Runs(u64),
    Hides(&'static str),
    Anything,
}

/// A step: its words in the README, the keys, and what comes of them.
type Step = (&'static str, &'static [&'static str], Then);

const NOTE: &str = "- never rename the public API";

const STEPS: [Step; 14] = [
    (
        "Press `F3`, then `e`",
        &["\x1bOR", "e"],
        Then::Shows("editing"),
    ),
    (
        "Type `- never rename the public API`, press `Enter`",
        &[NOTE, "\r"],
        Then::Shows("rename the public"),
    ),
    ("and then `Esc`", &["\x1b"], Then::Hides("editing")),
    (
        "says that a reboot is advised",
        &[],
        Then::Shows("Reboot advised"),
    ),
    ("and press `F5`", &["\x1b[15~"], Then::Shows("approve")),
    ("Press `Enter` to approve", &["\r"], Then::Runs(2)),
    ("Press `Ctrl-q`, then `u`", &["\x11", "u"], Then::Runs(3)),
    (
        "Press `F6`, then `Enter`",
        &["\x1b[17~", "\r"],
        Then::Shows("Iteration 3"),
    ),
    (
        "`Esc` and `Esc` lead back",
        &["\x1b"],
        Then::Hides("Iteration 3"),
    ),
    (
        "`Esc` and `Esc` lead back",
        &["\x1b"],
        Then::Hides("▸History"),
    ),
    (
        "Press `Ctrl-q`, then `g`",
        &["\x11", "g"],
        Then::Shows("Context over the turns"),
    ),
    (
        "`Esc` closes it",
        &["\x1b"],
        Then::Hides("Context over the turns"),
    ),
    ("Press `F10`", &["\x1b[21~"], Then::Anything),
    ("and `Enter` if pitstop asks", &["\r"], Then::Anything),
];

#[test]
fn the_readme_s_first_five_minutes_work_as_written() {
    let cast = env::var_os("PITSTOP_CAST").map(PathBuf::from);
    let readme = Path::new(env!("CARGO_MANIFEST_DIR")).join("README.md");
    let readme = fs::read_to_string(readme).unwrap().replace("\n   ", " ");
    let mut rest = readme.split("## The first five minutes").nth(1).unwrap();

    let temporary = tempfile::tempdir().unwrap();
    let mut launch = Launch::temporary_demo(temporary.path(), &[]).size(136, 36);
    if cast.is_some() {
        launch = launch
            .without_env("PITSTOP_DEMO_PACE_MS")
            .env("PITSTOP_DEMO_GROWTH", QUICK_GROWTH);
    }
    let demo = launch.start_showing("iteration 1");
    for (words, keys, then) in &STEPS {
        let at = rest.find(words);
        let at = at.unwrap_or_else(|| panic!("the README does not say {words:?} there"));
        rest = &rest[at..];
        if words.contains("F10") {
            let notes = notes(temporary.path());
            assert!(notes.contains(NOTE), "the note is gone: {notes}");
        }
        if cast.is_some() && !keys.is_empty() {
            thread::sleep(LOOK);
        }
        demo.keys(keys.iter().copied());
        match then {
            Then::Shows(text) => drop(demo.wait_for_text(text, FILLED)),
            Then::Hides(text) => drop(
                demo.terminal
                    .wait_for(|screen| !screen.contains(text), SOON),
            ),
            Then::Runs(number) => {
                let runs = || iteration(&demo, temporary.path()) == Some(*number);
                demo.wait_until("the iteration", runs);
            }
            Then::Anything => {}
        }
    }
    demo.wait_for_exit(SOON);
    if let Some(cast) = cast {
        let root = Path::new(env!("CARGO_MANIFEST_DIR"));
        fs::write(root.join(cast), recording(&demo)).unwrap();
    }
}

/// The directory of the only demo below `temporary`.
fn place(temporary: &Path) -> PathBuf {
    let demo = fs::read_dir(temporary).unwrap().next().expect("a demo");
    demo.unwrap().path()
}

/// The demo's scratchpad.
fn notes(temporary: &Path) -> String {
    let notes = place(temporary).join("tidepool/.pitstop/scratchpad.md");
    fs::read_to_string(notes).unwrap()
}

/// The number of the demo's iteration, while no reboot is under way. On a busy machine the window is fuller at the undo, and then the
/// next reboot waits for a person at once.
fn iteration(demo: &Supervisor, temporary: &Path) -> Option<u64> {
    let mut asks = command(demo, &place(temporary), &["status", "--json"]);
    let output = asks.output().unwrap();
    let status: Value = serde_json::from_slice(&output.stdout).ok()?;
    let phase = status["reboot"]["phase"].as_str()?;
    let rests = matches!(phase, "idle" | "armed");
    status["iteration"].as_u64().filter(|_| rests)
}

/// What the terminal was sent, as an asciicast of version 2 without long pauses.
fn recording(demo: &Supervisor) -> String {
    let output = demo.terminal.output();
    let header = json!({ "version": 2, "width": 136, "height": 36, "title": "pitstop demo" });
    let mut lines = format!("{header}\n");
    let (mut begin, mut shown, mut written) = (0, 0.0, 0.0);
    let mut last: Option<Instant> = None;
    let reads = demo.terminal.reads();
    for (number, (at, end)) in reads.iter().enumerate() {
        shown += last.map_or(0.0, |last| (*at - last).as_secs_f64().min(LONGEST_PAUSE));
        last = Some(*at);
        let is_last = number + 1 == reads.len();
        let end = whole(&output, *end);
        if end == begin || (shown - written < SHORTEST_PAUSE && !is_last) {
            continue;
        }
        let text = String::from_utf8_lossy(&output[begin..end]);
        let moment = (shown * 1000.0_f64).round() / 1000.0;
        let _ = writeln!(lines, "{}", json!([moment, "o", text]));
        (begin, written) = (end, shown);
    }
    lines
}

/// The last border of a character at or before `end`.
fn whole(bytes: &[u8], end: usize) -> usize {
    let is_inside = |at: &usize| bytes.get(*at).is_some_and(|byte| byte & 0xc0 == 0x80);
    (0..=end).rev().find(|at| !is_inside(at)).unwrap_or(0)
}
