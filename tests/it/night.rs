//! A simulated night: one run over many sessions of the real client, with all that a night brings. `cargo run --example night`
//! starts it; it is not part of CI.
//!
//! The shapes are random, by a seed that is printed. In them stand usage limits, errors of the service, streams that are cut,
//! requests that are too long, permissions that are open for a while, subagents, and kills of the client. The run must end by
//! its stop phrase, with each step once, what was said at its beginning in the last handoff, and no more memory, descriptors and
//! threads than after its first sessions.

use std::{
    collections::BTreeSet,
    env, fs,
    path::PathBuf,
    thread,
    time::{Duration, Instant},
};

use rustix::process::{Pid, Signal};
use serde_json::{Value, json};

use crate::{
    autopilot::{self, PROMISE},
    kit::{
        messages_api::Answer,
        player::TOOLS,
        shape::{ASKED, Shape, Step, ToolCall},
        supervisor::{Headless, Launch, Supervisor, processes_of},
    },
};

/// What is said in the first session, and must stand in the last handoff.
const RULE: &str = "never write to the harbour tables";
const DECISION: &str = "keep all tides in UTC";

/// The growth of a session from its start to the compact line, of a model with 200 000 tokens and the early lines.
const SESSION: u64 = 72_000;

/// The session from whose figures on nothing may grow.
const SETTLED: usize = 10;

/// No night takes longer.
const LIMIT: Duration = Duration::from_secs(5_400);

/// Numbers that look random and are the same ones for each seed: splitmix64.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut next = self.0;
        next = (next ^ (next >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        next = (next ^ (next >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        next ^ (next >> 31)
    }

    /// From `low` up to below `high`.
    fn between(&mut self, low: u64, high: u64) -> u64 {
        low + self.next() % (high - low)
    }
}

/// What a night brings, and when.
struct Night {
    shape: Shape,
    /// The steps after which the client is killed.
    kills: Vec<usize>,
    /// How many of each are planned, and before which steps, for the report.
    planned: String,
}

/// Turns of 5 to 30 steps, until they fill so many sessions.
fn turns(random: &mut Random, sessions: usize) -> Vec<Vec<Step>> {
    let (mut turns, mut filled) = (Vec::new(), 0);
    while filled < SESSION * sessions as u64 {
        let mut turn = Vec::new();
        for _ in 0..random.between(5, 31) {
            let bytes = 100 + usize::try_from(random.between(0, 4_000)).expect("small");
            let call = match random.between(0, 20) {
                0..5 => ToolCall::Read { bytes },
                5..8 => ToolCall::Write { bytes },
                8..10 => ToolCall::Edit { bytes },
                10 => ToolCall::Failing { bytes },
                _ => ToolCall::shell(bytes),
            };
            let growth = random.between(2_000, 9_000);
            filled += growth;
            turn.push(Step {
                calls: vec![call; usize::from(random.between(0, 6) == 0) + 1],
                growth,
                pause: Duration::from_millis(20),
            });
        }
        // Each turn leaves a file, so that no breaker takes it for one that does nothing.
        turn[0].calls[0] = ToolCall::Write { bytes: 400 };
        turn.push(Step {
            pause: Duration::from_millis(20),
            ..Step::default()
        });
        turns.push(turn);
    }
    turns
}

fn night(seed: u64, sessions: usize) -> Night {
    let mut random = Random(seed);
    let mut shape = Shape {
        base: 20_000,
        turns: turns(&mut random, sessions),
        ..Shape::default()
    };
    let calling: Vec<usize> = (1..)
        .zip(shape.steps())
        .filter(|(_, step)| !step.calls.is_empty())
        .map(|(number, _)| number)
        .collect();
    let mut taken = BTreeSet::new();
    let mut place = |random: &mut Random| {
        loop {
            let at = random.between(4, calling.len() as u64 - 4);
            // What one leaves behind is over when the next comes.
            if (at.saturating_sub(3)..at + 4).all(|near| !taken.contains(&near)) {
                taken.insert(at);
                return calling[usize::try_from(at).expect("small")];
            }
        }
    };
    let error = |status, kind: &str, message: &str| Answer::Error {
        status,
        kind: kind.to_owned(),
        message: message.to_owned(),
    };
    let often = |of_sixty: usize| (of_sixty * sessions).div_ceil(60);
    let mut planned = Vec::new();
    let mut failing = |what: &str, count: usize, answers: &[Answer], shape: &mut Shape| {
        let mut steps = Vec::new();
        for _ in 0..count {
            let step = place(&mut random);
            steps.push(step);
            for answer in answers {
                *shape = std::mem::take(shape).failing_before(step, answer.clone());
            }
        }
        planned.push(format!("{count} {what} {steps:?}"));
    };
    // The client tries once more by itself, so two in a row fail a turn.
    let limit = Answer::Limited(Duration::from_secs(6));
    failing(
        "usage limits",
        often(3),
        &[limit.clone(), limit],
        &mut shape,
    );
    let busy = error(529, "overloaded_error", "Overloaded");
    failing(
        "times 529",
        often(4),
        std::slice::from_ref(&busy),
        &mut shape,
    );
    failing(
        "times 529 twice",
        often(3),
        &[busy.clone(), busy],
        &mut shape,
    );
    failing("cut streams", often(3), &[Answer::Cut], &mut shape);
    let long = "prompt is too long: 205000 tokens > 200000 maximum";
    let long = error(400, "invalid_request_error", long);
    failing("times 400", often(2), &[long], &mut shape);
    for (what, count, call) in [
        ("dialogs", often(4), ToolCall::Asked { bytes: 300 }),
        ("subagents", often(6), ToolCall::Subagent { calls: 2 }),
    ] {
        let mut steps = Vec::new();
        for _ in 0..count {
            let step = place(&mut random);
            steps.push(step);
            shape = shape.also(step, call);
        }
        planned.push(format!("{count} {what} {steps:?}"));
    }
    let count = often(3);
    let mut kills: Vec<usize> = (0..count).map(|_| place(&mut random)).collect();
    kills.sort_unstable();
    planned.push(format!("{count} kills of the client {kills:?}"));
    let said = format!("CONSTRAINT: {RULE}\nDECISION: {DECISION} | the gauges report UTC");
    Night {
        shape: shape.saying(2, &said).ending_with(PROMISE),
        kills,
        planned: planned.join(", "),
    }
}

/// What a process has: memory in KiB, all and what is its own alone, descriptors, threads; and its children that are dead and were
/// not waited for.
#[derive(Clone, Copy, Debug, Default)]
pub struct Figures {
    pub memory: u64,
    pub own: u64,
    pub descriptors: usize,
    pub threads: usize,
    pub zombies: usize,
}

fn figures(pid: Pid) -> Option<Figures> {
    let pid = pid.as_raw_nonzero().get();
    let status = fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let size = |name: &str| -> Option<u64> {
        let line = status.lines().find(|line| line.starts_with(name))?;
        line.split_whitespace().nth(1)?.parse().ok()
    };
    let entries =
        |name: &str| fs::read_dir(format!("/proc/{pid}/{name}")).map_or(0, Iterator::count);
    let processes = fs::read_dir("/proc").ok()?.flatten();
    let is_zombie = |entry: &fs::DirEntry| {
        let stat = fs::read_to_string(entry.path().join("stat")).unwrap_or_default();
        let mut words = stat
            .rsplit_once(')')
            .map_or("", |(_, rest)| rest)
            .split_whitespace();
        words.next() == Some("Z") && words.next() == Some(pid.to_string().as_str())
    };
    Some(Figures {
        memory: size("VmRSS:")?,
        own: size("RssAnon:")?,
        descriptors: entries("fd"),
        threads: entries("task"),
        zombies: processes.filter(is_zombie).count(),
    })
}

/// The lowest of some figures in half a second: a descriptor that is open for a moment is none that is left open.
pub fn rests(pid: Pid) -> Option<Figures> {
    let mut lowest = figures(pid)?;
    for _ in 0..5 {
        thread::sleep(Duration::from_millis(100));
        let now = figures(pid)?;
        lowest.memory = lowest.memory.min(now.memory);
        lowest.own = lowest.own.min(now.own);
        lowest.descriptors = lowest.descriptors.min(now.descriptors);
        lowest.threads = lowest.threads.min(now.threads);
        lowest.zombies = lowest.zombies.min(now.zombies);
    }
    Some(lowest)
}

/// A run that is played, without a terminal or in one.
enum Run {
    Headless(Box<Headless>),
    Watched(Box<Supervisor>),
}

impl Run {
    fn pid(&self) -> Pid {
        match self {
            Self::Headless(run) => run.pid(),
            Self::Watched(run) => run.pid(),
        }
    }

    fn agent(&self) -> Option<Pid> {
        match self {
            Self::Headless(run) => run.agent_pid(),
            Self::Watched(run) => Some(run.agent_pid()),
        }
    }

    /// Whether it runs no more.
    fn is_over(&self) -> bool {
        let stat = format!("/proc/{}/stat", self.pid().as_raw_nonzero());
        let stat = fs::read_to_string(stat).unwrap_or_default();
        let state = stat
            .rsplit_once(')')
            .map_or("Z", |(_, rest)| rest.trim_start());
        state.starts_with('Z') || state.is_empty()
    }

    /// Its exit code.
    fn code(&mut self) -> Option<i32> {
        let soon = Duration::from_secs(60);
        match self {
            Self::Headless(run) => run.wait_for_exit(soon),
            Self::Watched(run) => i32::try_from(run.wait_for_exit(soon).code).ok(),
        }
    }

    fn said(&self) -> String {
        match self {
            Self::Headless(run) => run.lines().join("\n"),
            Self::Watched(run) => run.screen(),
        }
    }
}

/// The client's own settings: it asks before some commands, and a hook of its person's says yes after a while.
fn let_it_ask(launch: &Launch) {
    let decision = json!({ "hookSpecificOutput": {
        "hookEventName": "PermissionRequest", "decision": { "behavior": "allow" },
    } });
    let command = format!("sleep 4; echo '{decision}'");
    let settings = json!({
        "permissions": { "ask": [ASKED] },
        "hooks": { "PermissionRequest": [{ "hooks": [{ "type": "command", "command": command }] }] },
    });
    let file = launch.the_home().claude_dir().join("settings.json");
    fs::write(file, settings.to_string()).expect("written");
}

fn launch(shape: &Shape, order: &[&str]) -> Launch {
    let launch = autopilot::live(order)
        .set("guard.preset=\"early\"")
        .set("loop.max_iterations=0")
        .set("loop.max_cost_usd=0")
        .set("reboot.max_reboots_per_hour=1000")
        // So that the pane's history, 2.8 MiB a thousand lines, has its full size before the memory is compared.
        .set("ui.scrollback_lines=1000");
    launch.api().play(shape, launch.project());
    let mut launch = launch.agent_args(["--allowed-tools", TOOLS]);
    let_it_ask(&launch);
    // By them what the allocator keeps is told from what is lost.
    for (name, value) in env::vars().filter(|(name, _)| name.starts_with("MALLOC_")) {
        launch = launch.env(&name, value);
    }
    launch
}

/// The handoffs of a run, oldest first.
fn handoffs(launch: &Launch) -> Vec<String> {
    let runs = fs::read_dir(launch.project().join(".pitstop/runs"))
        .into_iter()
        .flatten()
        .flatten();
    let iterations = runs.flat_map(|run| fs::read_dir(run.path()).into_iter().flatten().flatten());
    let number = |path: &PathBuf| -> Option<usize> {
        path.file_name()?
            .to_str()?
            .strip_prefix("iteration-")?
            .parse()
            .ok()
    };
    let mut found: Vec<(usize, PathBuf)> = iterations
        .filter_map(|one| Some((number(&one.path())?, one.path().join("handoff.md"))))
        .collect();
    found.sort();
    let texts = found
        .into_iter()
        .filter_map(|(_, path)| fs::read_to_string(path).ok());
    texts.collect()
}

/// How often the record says that an iteration has begun.
fn begun(launch: &Launch) -> usize {
    let runs = fs::read_dir(launch.project().join(".pitstop/runs"))
        .into_iter()
        .flatten()
        .flatten();
    let read = |path: PathBuf| serde_json::from_str::<Value>(&fs::read_to_string(path).ok()?).ok();
    let metas = runs.filter_map(|run| read(run.path().join("meta.json")));
    metas
        .filter_map(|meta| Some(meta["iterations"].as_array()?.len()))
        .sum()
}

/// Plays the night to its end.
#[track_caller]
fn play(night: &Night, order: &[&str]) {
    let launch = launch(&night.shape, order);
    let began = Instant::now();
    let mut run = if order.contains(&"--headless") {
        Run::Headless(Box::new(launch.start_headless()))
    } else {
        Run::Watched(Box::new(launch.start()))
    };
    let mut kills = night.kills.iter().copied().peekable();
    let mut cut = BTreeSet::new();
    let mut table: Vec<Figures> = Vec::new();
    println!("| session | step | s | memory MiB | its own | descriptors | threads | zombies |");
    println!("|---|---|---|---|---|---|---|---|");
    while !run.is_over() {
        assert!(began.elapsed() < LIMIT, "it runs on:\n{}", run.said());
        thread::sleep(Duration::from_millis(50));
        let given = launch.api().played().steps().last().copied().unwrap_or(0);
        if kills.next_if(|at| given >= *at).is_some()
            && let Some(agent) = run.agent()
        {
            let _ = rustix::process::kill_process(agent, Signal::KILL);
            thread::sleep(Duration::from_millis(100));
            let now = launch.api().played().steps().last().copied().unwrap_or(0);
            // The client keeps what a tool has said some moments later.
            cut.extend(given.saturating_sub(2)..=now);
            println!("killed after step {given}");
        }
        if begun(&launch) > table.len()
            && let Some(now) = rests(run.pid())
        {
            table.push(now);
            let mib = |size: u64| size as f64 / 1024.0;
            println!(
                "| {} | {given} | {} | {:.1} | {:.1} | {} | {} | {} |",
                table.len(),
                began.elapsed().as_secs(),
                mib(now.memory),
                mib(now.own),
                now.descriptors,
                now.threads,
                now.zombies
            );
        }
    }
    let code = run.code();
    let took = began.elapsed();
    let played = launch.api().played();
    let steps = night.shape.steps().count();
    println!(
        "code {code:?} after {took:?}: {} iterations, {} of {steps} steps, {} reboots, {} calls of the model, {} summaries",
        begun(&launch),
        played.steps().len(),
        played.seams().len(),
        played.calls.len(),
        played.summaries(),
    );
    let is_cut = |fault: &String| {
        cut.iter().any(|step| {
            fault.contains(&format!("_S{step:05}_")) || fault.contains(&format!("step {step} "))
        })
    };
    let (by_kills, faults): (Vec<_>, Vec<_>) = played.faults().into_iter().partition(is_cut);
    println!("cut by kills: {by_kills:?}");
    assert_eq!(faults, [""; 0]);
    assert_eq!(code, Some(0), "{}", run.said());
    assert_eq!(played.steps(), (1..=steps).collect::<Vec<_>>());
    assert_eq!(played.summaries(), 0);
    let last = handoffs(&launch).pop().expect("a handoff");
    assert!(last.contains(RULE) && last.contains(DECISION), "{last}");
    assert_eq!(processes_of(launch.the_home()).len(), 0, "orphans");
    check_flat(&table);
}

/// Nothing grows from the tenth session on, or from the middle of a short night.
#[track_caller]
fn check_flat(table: &[Figures]) {
    let settled = SETTLED.min(table.len() / 2);
    let (from, to) = (table[settled], table[table.len() - 1]);
    let grown = (to.memory as f64 / from.memory as f64 - 1.0) * 100.0;
    println!(
        "from session {} to {}: memory {grown:+.1} %, {from:?} -> {to:?}",
        settled + 1,
        table.len()
    );
    assert!(
        table.len() <= SETTLED || grown <= 10.0,
        "memory grows by {grown:.1} %"
    );
    assert!(to.descriptors <= from.descriptors + 3, "{from:?} {to:?}");
    assert!(to.threads <= from.threads + 3, "{from:?} {to:?}");
    assert!(table.iter().all(|one| one.zombies == 0), "zombies");
}

fn number(name: &str, otherwise: u64) -> u64 {
    let asked = env::var(name).ok();
    asked.map_or(otherwise, |text| text.parse().expect("a number"))
}

/// The night that was asked for.
fn asked_for(part: u64) -> Night {
    let seed = number("PITSTOP_NIGHT_SEED", 20_261_125);
    let sessions = usize::try_from(number("PITSTOP_NIGHT_SESSIONS", 60) / part).expect("small");
    let night = night(seed, sessions.max(2));
    let (turns, steps) = (night.shape.turns.len(), night.shape.steps().count());
    println!(
        "seed {seed}: {sessions} sessions, {turns} turns, {steps} steps: {}",
        night.planned
    );
    night
}

#[test]
#[ignore = "minutes: `cargo run --example night` runs it"]
fn a_headless_run_through_a_night() {
    play(&asked_for(1), &["--headless", "--json"]);
}

#[test]
#[ignore = "minutes: `cargo run --example night` runs it"]
fn a_watched_run_through_a_tenth_of_a_night() {
    play(&asked_for(10), &[]);
}
