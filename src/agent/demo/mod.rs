//! The scripted stand-in behind `pitstop demo` and the tests.
//!
//! It draws like Claude Code, keeps a real transcript, calls the injected hooks and status line,
//! takes the flags `--session-id --resume --settings --append-system-prompt --model -p` and ends by the
//! same keys and signals. What it says is a story of its own making; it needs no account.
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
//! Builds with debug assertions have more of them, for tests: `switches.rs`.

#![allow(
    clippy::disallowed_methods,
    reason = "the demo is a program of its own: it has its own clock and ids"
)]

use std::{
    env, fs,
    io::{self, IsTerminal as _, Read as _},
    path::{Path, PathBuf},
    thread,
    time::{Duration, Instant},
};

use serde_json::{Value, json};
use uuid::Uuid;

use record::Conversation;

use super::claude::Arguments;
use crate::transcript::SessionId;

mod bridge;
mod draw;
mod hooks;
mod record;
mod session;
mod story;
#[cfg(debug_assertions)]
mod switches;
mod terminal;
mod turn;
mod view;

/// The variable by which the demo is started with mods, and speaks their protocol.
pub const BRIDGE_VARIABLE: &str = "PITSTOP_DEMO_BRIDGE";

/// What a fresh session holds before the first word, tokens.
const BASE_LOAD: u64 = 18_000;

/// What the client keeps back of the window, tokens.
const RESERVE: u64 = 20_000;

/// How far below the usable window prompts are refused, tokens.
const REFUSED_BELOW: u64 = 3_000;

/// The pause between two steps.
const PACE: Duration = Duration::from_millis(300);

/// How many items the plan has.
const ITEMS: u64 = 24;

/// How many steps of a turn a summary takes.
const SUMMARY_PACES: u32 = 8;

/// What the real one says when its service is overloaded; in an envelope with `is_error`, and with exit code 1.
const OVERLOADED: &str = "API Error: 529 Overloaded. This is a server-side issue, usually temporary — try again in a moment.";

/// What the command line asks for.
#[derive(Clone, Debug, Default)]
struct Options {
    session: Option<SessionId>,
    resume: Option<String>,
    settings: Value,
    model: String,
    print: bool,
    json: bool,
    keep_no_session: bool,
    prompt: Option<String>,
    /// Whether mods were given.
    mods: bool,
}

/// What the environment asks for.
#[derive(Clone, Debug, Default)]
struct Control {
    config_dir: PathBuf,
    cwd: PathBuf,
    usage: Vec<u64>,
    pace: Duration,
    reply: Option<String>,
    summary: Option<String>,
    script: Vec<String>,
    growth: Option<u64>,
    items: u64,
    stop_phrase: Option<String>,
    auto: bool,
}

/// Runs the demo agent with `args`, which do not hold the program's name; gives its exit code.
#[must_use]
pub fn main(args: &[String]) -> i32 {
    let outcome = options(args)
        .and_then(|options| Ok((options, control()?)))
        .and_then(|(options, control)| {
            if options.print {
                print(&options, &control)
            } else {
                session::run(options, control).map_err(|error| error.to_string())
            }
        });
    outcome.unwrap_or_else(|message| {
        eprintln!("{message}");
        1
    })
}

fn options(args: &[String]) -> Result<Options, String> {
    let mut options = Options {
        model: "claude-demo-1".into(),
        ..Options::default()
    };
    for arg in Arguments(args).iter() {
        let value = || {
            let missing = || format!("error: option '{}' wants a value", arg.name);
            arg.value.map(str::to_owned).ok_or_else(missing)
        };
        match arg.name {
            "" => options.prompt = arg.raw.first().cloned(),
            "--session-id" => {
                let wrong = |_| "Error: Invalid session ID. Must be a valid UUID.".to_owned();
                options.session = Some(value()?.parse().map_err(wrong)?);
            }
            "--resume" | "-r" => options.resume = Some(value()?),
            "--settings" => options.settings = settings(&value()?)?,
            "--model" => options.model = value()?,
            "-p" | "--print" => options.print = true,
            "--output-format" => options.json = value()? == "json",
            "--plugin-dir" => options.mods = true,
            "--no-session-persistence" => options.keep_no_session = true,
            // The rest changes nothing that the demo shows.
            _ => {}
        }
    }
    Ok(options)
}

fn settings(given: &str) -> Result<Value, String> {
    let text = if given.trim_start().starts_with('{') {
        given.to_owned()
    } else {
        fs::read_to_string(given).map_err(|_| format!("Error: Settings file not found: {given}"))?
    };
    serde_json::from_str(&text).map_err(|error| format!("Error: Invalid settings: {error}"))
}

/// The value of a variable that is set to something.
fn variable(name: &str) -> Option<String> {
    env::var(name).ok().filter(|value| !value.is_empty())
}

fn control() -> Result<Control, String> {
    let home_config = || Some(Path::new(&variable("HOME")?).join(".claude"));
    let control = Control {
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
        ..Control::default()
    };
    #[cfg(debug_assertions)]
    let control = switches::read(control)?;
    Ok(control)
}

/// The id, the transcript's path and the conversation that a session starts with.
fn opening(
    options: &Options,
    control: &Control,
) -> Result<(SessionId, PathBuf, Conversation), String> {
    let path = |id| record::path_of(&control.config_dir, &control.cwd, id);
    if let Some(wanted) = &options.resume {
        let unknown = || format!("No conversation found with session ID: {wanted}");
        let id = wanted.parse().map_err(|_| unknown())?;
        let resumed = record::conversation(&path(id)).ok_or_else(unknown)?;
        return Ok((id, path(id), resumed));
    }
    let id = options
        .session
        .unwrap_or_else(|| SessionId::new(Uuid::new_v4()));
    if path(id).exists() {
        return Err(format!("Error: Session ID {id} is already in use."));
    }
    Ok((id, path(id), (Vec::new(), BASE_LOAD)))
}

/// Answers one prompt on stdout, as `claude -p` does.
fn print(options: &Options, control: &Control) -> Result<i32, String> {
    let began = Instant::now();
    let mut prompt = options.prompt.clone().unwrap_or_default();
    if !io::stdin().is_terminal() {
        let mut input = String::new();
        io::stdin()
            .read_to_string(&mut input)
            .map_err(|error| format!("Error: {error}"))?;
        prompt = format!("{prompt}\n{input}");
    }
    let prompt = prompt.trim();
    if prompt.is_empty() {
        return Err("Error: Input must be provided either through stdin or as a prompt".into());
    }
    let (id, path, (_, context)) = opening(options, control)?;
    let asked = asks_for_a_summary(prompt);
    if asked {
        // A model takes its time for so much text.
        thread::sleep(control.pace * SUMMARY_PACES);
    }
    let (reply, failed) = match (&control.summary, &control.reply) {
        (Some(word), _) if asked && word == "hang" => hang(),
        (Some(word), _) if asked && word == "fail" => (OVERLOADED.to_owned(), true),
        (Some(summary), _) if asked => (summary.clone(), false),
        (_, Some(reply)) if !asked => (reply.clone(), false),
        _ => (answer(prompt), false),
    };
    let usage = turn::split_usage(context + (prompt.len() / 4) as u64, context);
    if !options.keep_no_session {
        let block = json!({ "type": "text", "text": reply });
        record::Record::open(path, id, &options.model, &control.cwd)
            .and_then(|mut record| {
                record.prompt(prompt)?;
                record.block(
                    &Uuid::new_v4().simple().to_string(),
                    &block,
                    usage,
                    "end_turn",
                )
            })
            .map_err(|error| format!("Error: {error}"))?;
    }
    if options.json {
        let duration = u64::try_from(began.elapsed().as_millis()).unwrap_or(u64::MAX);
        println!(
            "{}",
            json!({
                "type": "result", "subtype": "success", "is_error": failed, "duration_ms": duration,
                "duration_api_ms": duration, "num_turns": 1, "result": reply,
                "session_id": id.to_string(), "total_cost_usd": if failed { 0.0 } else { turn::cost(usage) },
                "usage": record::wire(usage),
            })
        );
    } else {
        println!("{reply}");
    }
    Ok(i32::from(failed))
}

/// Says nothing until it is killed.
fn hang() -> ! {
    loop {
        thread::sleep(Duration::from_secs(3600));
    }
}

/// Whether a prompt names all sections of a summary.
fn asks_for_a_summary(prompt: &str) -> bool {
    let mut titles = SUMMARY.lines().filter_map(|line| line.strip_prefix("## "));
    titles.all(|title| prompt.contains(title))
}

/// What `-p` says: a summary when one is asked for.
fn answer(prompt: &str) -> String {
    if !asks_for_a_summary(prompt) {
        return "Understood.".into();
    }
    format!("<analysis>Read it all.</analysis>\n\n{SUMMARY}")
}

/// The demo's story as a model would sum it up.
const SUMMARY: &str = include_str!("../../../assets/demo/summary.md");

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(args: &[&str]) -> Result<Options, String> {
        options(&args.iter().map(ToString::to_string).collect::<Vec<_>>())
    }

    #[test]
    fn the_flags_of_a_hosted_start_are_understood() {
        let id = "8f14e45f-ceea-467f-a8b5-2a8b9d3c1e70";
        let options = parse(&[
            "--add-dir",
            "/a",
            "/b",
            "--session-id",
            id,
            "--settings",
            r#"{"hooks":{}}"#,
            "--append-system-prompt",
            "-p",
            "--model",
            "m[1m]",
            "--",
            "--go",
        ])
        .unwrap();
        assert_eq!(options.session, Some(id.parse().unwrap()));
        assert_eq!(options.prompt.as_deref(), Some("--go"));
        assert_eq!(options.model, "m[1m]");
        assert!(!options.print);
    }

    #[test]
    fn what_the_real_one_refuses_is_refused() {
        assert!(
            parse(&["--session-id", "x"])
                .unwrap_err()
                .contains("valid UUID")
        );
        assert!(
            parse(&["--settings", "/nowhere.json"])
                .unwrap_err()
                .contains("not found")
        );
        assert!(
            parse(&["--session-id"])
                .unwrap_err()
                .contains("wants a value")
        );
    }

    #[test]
    fn a_summary_has_the_seven_sections_when_they_are_asked_for() {
        let prompt = "User Intent, Technical Context, Files & Code, Errors & Fixes, Key Decisions, \
                      Pending Tasks, Current State";
        assert_eq!(answer(prompt).matches("## ").count(), 7);
        assert_eq!(answer("hello"), "Understood.");
    }
}
