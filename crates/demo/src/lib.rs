//! The scripted agent behind `pitstop demo` and the tests.
//!
//! It plays a story of its own making in the forms of Claude Code: it draws like it, keeps a real transcript, calls the injected
//! hooks and status line, and takes the flags that a hosted session is started with. It needs no account.
//!
//! The environment controls it:
//!
//! | variable | effect |
//! |---|---|
//! | `PITSTOP_DEMO_DIR` | config directory in place of `CLAUDE_CONFIG_DIR` or `~/.claude` |
//! | `PITSTOP_DEMO_STOP_PHRASE` | what it says when the last item is done |
//! | `PITSTOP_DEMO_AUTO` | `0`: waits for a prompt after each turn |
//! | `PITSTOP_DEMO_BRIDGE` | `1`: it is started with mods, and speaks their protocol |
//!
//! Builds with debug assertions have more of them, for tests; `switch` lists them.

#![allow(
    clippy::disallowed_methods,
    reason = "the demo is a program of its own: it has its own clock and ids"
)]

use std::{
    env, fs,
    io::{self, Read as _},
    path::{Path, PathBuf},
    thread,
    time::{Duration, Instant},
};

use serde_json::{Value, json};
use uuid::Uuid;

use pitstop_agent::claude::Arguments;
use pitstop_transcript::SessionId;

mod bridge;
mod draw;
mod hooks;
mod record;
mod session;
pub mod story;
mod terminal;
mod turn;
mod view;

/// The variable by which the demo is started with mods, and speaks their protocol.
pub const BRIDGE_VARIABLE: &str = "PITSTOP_DEMO_BRIDGE";

/// The context of a fresh session before the first word, in tokens.
const BASE_LOAD: u64 = 18_000;

/// The distance below the whole window at which prompts are refused, in tokens: the part that the client keeps back, and some.
const REFUSED_BELOW: u64 = 23_000;

/// The pause between two steps.
const PACE: Duration = Duration::from_millis(300);

/// The number of items in the plan.
const ITEMS: usize = 24;

/// The time that a summary takes, in steps of a turn.
const SUMMARY_PACES: u32 = 8;

/// The demo's story as a model would sum it up.
const SUMMARY: &str = include_str!("../../../assets/demo/summary.md");

/// The settings that the command line and the environment ask for.
#[derive(Clone, Debug, Default)]
struct Start {
    session: Option<SessionId>,
    resume: Option<String>,
    settings: Value,
    model: String,
    print: bool,
    prompt: Option<String>,
    /// True if mods were given.
    mods: bool,
    config_dir: PathBuf,
    cwd: PathBuf,
    pace: Duration,
    items: usize,
    stop_phrase: Option<String>,
    auto: bool,
    reply: Option<String>,
    script: Vec<String>,
    usage: Vec<u64>,
    growth: Option<u64>,
}

/// Runs the demo agent with `args`, which do not hold the program's name; returns its exit code.
pub fn main(args: &[String]) -> i32 {
    let outcome = start(args).and_then(|start| {
        if start.print {
            print(&start)
        } else {
            session::run(start)
        }
    });
    outcome.unwrap_or_else(|message| {
        eprintln!("{message}");
        1
    })
}

fn start(args: &[String]) -> Result<Start, String> {
    let home_config = || Some(Path::new(&variable("HOME")?).join(".claude"));
    let mut start = Start {
        model: "claude-demo-1".into(),
        config_dir: variable("PITSTOP_DEMO_DIR")
            .or_else(|| variable("CLAUDE_CONFIG_DIR"))
            .map(PathBuf::from)
            .or_else(home_config)
            .ok_or("Error: no config directory: HOME is not set")?,
        cwd: env::current_dir().map_err(|error| format!("Error: {error}"))?,
        pace: PACE,
        items: ITEMS,
        stop_phrase: variable("PITSTOP_DEMO_STOP_PHRASE"),
        auto: variable("PITSTOP_DEMO_AUTO").as_deref() != Some("0"),
        ..Start::default()
    };
    for arg in Arguments(args).iter() {
        let value = arg.value.unwrap_or_default();
        match arg.name {
            "" => start.prompt = arg.raw.first().cloned(),
            "--session-id" => {
                let wrong = |_| "Error: Invalid session ID. Must be a valid UUID.".to_owned();
                start.session = Some(value.parse().map_err(wrong)?);
            }
            "--resume" | "-r" => start.resume = Some(value.to_owned()),
            "--settings" => {
                let wrong = |error| format!("Error: Settings file {value}: {error}");
                let text = fs::read_to_string(value).unwrap_or_else(|_| value.to_owned());
                start.settings = serde_json::from_str(&text).map_err(wrong)?;
            }
            "--model" => value.clone_into(&mut start.model),
            "-p" | "--print" => start.print = true,
            "--plugin-dir" => start.mods = true,
            // The rest changes nothing that the demo shows.
            _ => {}
        }
    }
    #[cfg(debug_assertions)]
    switch(&mut start)?;
    Ok(start)
}

#[cfg(debug_assertions)]
/// Takes what the environment asks for beside what a user's demo needs:
///
/// | variable | effect |
/// |---|---|
/// | `PITSTOP_DEMO_PACE_MS` | pause between steps, milliseconds |
/// | `PITSTOP_DEMO_ITEMS` | how many items the plan has |
/// | `PITSTOP_DEMO_REPLY` | the text of every reply, in place of the story |
/// | `PITSTOP_DEMO_SCRIPT` | file with a line a turn: steps with tabs between; `$ CMD` runs CMD, `! WORD` fails the turn with that error, `\n` breaks a line |
/// | `PITSTOP_DEMO_USAGE` | context after each turn, tokens with commas between; not used after a handoff |
/// | `PITSTOP_DEMO_GROWTH` | how much each turn adds to the context, tokens (a twentieth of the window) |
/// | `PITSTOP_DEMO_SUMMARY` | shell command that answers in place of `-p` |
fn switch(start: &mut Start) -> Result<(), String> {
    let number = |name: &str| variable(name)?.parse::<u64>().ok();
    if let Some(path) = variable("PITSTOP_DEMO_SCRIPT") {
        let text = fs::read_to_string(&path).map_err(|error| format!("Error: {path}: {error}"))?;
        start.script = text.lines().map(str::to_owned).collect();
    }
    let usage = variable("PITSTOP_DEMO_USAGE").unwrap_or_default();
    start.usage = usage.split(',').flat_map(str::parse).collect();
    start.pace = number("PITSTOP_DEMO_PACE_MS").map_or(PACE, Duration::from_millis);
    start.items = number("PITSTOP_DEMO_ITEMS").map_or(ITEMS, |items| items as usize);
    start.growth = number("PITSTOP_DEMO_GROWTH");
    start.reply = variable("PITSTOP_DEMO_REPLY");
    Ok(())
}

/// Returns the value of a variable that is set to something.
fn variable(name: &str) -> Option<String> {
    env::var(name).ok().filter(|value| !value.is_empty())
}

/// Sums the story up on stdout, as `claude -p` does when it is asked for a summary.
fn print(start: &Start) -> Result<i32, String> {
    #[cfg(debug_assertions)]
    if let Some(command) = variable("PITSTOP_DEMO_SUMMARY") {
        use std::os::unix::process::CommandExt as _;
        let mut answering = std::process::Command::new("/bin/sh");
        return Err(answering.args(["-c", &command]).exec().to_string());
    }
    let began = Instant::now();
    let mut prompt = String::new();
    let read = io::stdin().read_to_string(&mut prompt);
    read.map_err(|error| format!("Error: {error}"))?;
    // A model takes its time for so much text.
    thread::sleep(start.pace * SUMMARY_PACES);
    let usage = turn::split_usage(BASE_LOAD + (prompt.len() / 4) as u64, BASE_LOAD);
    let answer = json!({
        "type": "result", "subtype": "success", "is_error": false, "num_turns": 1,
        "duration_ms": u64::try_from(began.elapsed().as_millis()).unwrap_or(u64::MAX),
        "result": format!("<analysis>Read it all.</analysis>\n\n{SUMMARY}"),
        "session_id": Uuid::new_v4().to_string(), "total_cost_usd": turn::cost(usage),
        "usage": record::wire(usage),
    });
    println!("{answer}");
    Ok(0)
}
