//! Reboots in the middle of turns: the long sessions of the shared transcripts are played to the real client in `auto`, from their
//! first call to their last.
//!
//! ```text
//! PITSTOP_CLAUDE=PATH cargo bench --bench long_turn                      five sessions, some four minutes
//! PITSTOP_CLAUDE=PATH PITSTOP_TRANSCRIPTS=PATH cargo bench --bench …     from another place than ../shared/transcripts
//! ```
//!
//! The model answers a hundred times as fast as it did, and tools take a hundredth of their time. The compact line is lowered to 40 %,
//! for one short session to 20 %, so that each session is rebooted, most of them several times. A pause is the time from the last byte of
//! an answer to the next request at the stand-in API, in which the tools of the answer run: the time that these sleep is taken off, what
//! it takes to start them is not. It is compared with the middle one of the pauses of the same session in which nothing is rebooted.

#![allow(clippy::disallowed_methods, reason = "it measures real time")]
#![allow(
    clippy::too_many_lines,
    reason = "a measurement is one sequence from beginning to end"
)]

use std::{fs, process::Command, time::Duration};

#[path = "../tests/it/kit/mod.rs"]
#[allow(dead_code, reason = "the kit is shared, and a part of it is used here")]
mod kit;

use kit::{
    client::live_client,
    played::{Played, Seam, middle},
    shape::Shape,
    supervisor::Launch,
};

/// How long a turn may take.
const LIMIT: Duration = Duration::from_mins(5);

/// A shape that was played, with the line that it was rebooted at, in tokens.
struct Session {
    name: &'static str,
    line: u64,
    played: Played,
    /// What went wrong with the calls of tools, read while their files are still there.
    faults: Vec<String>,
}

/// The lines for this shape, in percent: a short session is given low ones.
fn lines(shape: &Shape) -> [&'static str; 3] {
    if shape.tool_calls() < 50 {
        return ["notice=10", "warn=15", "compact=20"];
    }
    ["notice=20", "warn=30", "compact=40"]
}

/// Plays a shape to its end; where a turn ends a person says to go on.
fn play(name: &'static str, shape: &Shape) -> Session {
    let mut launch = Launch::live()
        .agent_args(["--model", "claude-sonnet-4-5"])
        .set("reboot.mode=\"auto\"")
        .set("reboot.auto_delay=\"200ms\"");
    for line in lines(shape) {
        launch = launch.set(&format!("guard.{line}"));
    }
    let launch = launch.playing(shape);
    let supervisor = launch.start();
    let rests = |status: &serde_json::Value| {
        status["agent"]["state"] == "idle" && status["reboot"]["phase"] == "idle"
    };
    supervisor.wait_for_status_within(LIMIT, |status| {
        rests(status) && status["agent"]["bridge"]["state"] == "in_force"
    });
    let last = shape.steps().count();
    let mut end = 0;
    for turn in &shape.turns {
        end += turn.len();
        // A reboot at a turn's end begins the next turn by itself.
        if launch.api().played().steps().last() < Some(&end) {
            supervisor.prompt("go on");
        }
        launch.api().wait_for_step(end, LIMIT);
        supervisor.wait_for_status_within(LIMIT, rests);
    }
    let status = supervisor.status();
    let line = status["context"]["lines"]["compact"].as_u64();
    let played = launch.api().wait_for_step(last, LIMIT);
    Session {
        name,
        line: line.expect("a line"),
        faults: played.faults(),
        played,
    }
}

/// How many calls of the model came from the one that told a figure past the line to the reboot.
fn calls_past(session: &Session, seam: &Seam) -> usize {
    let calls = session.played.main();
    let before = calls.take_while(|call| call.arrived <= seam.before.arrived);
    let all: Vec<_> = before.collect();
    let past = all
        .iter()
        .rev()
        .take_while(|call| call.tokens >= session.line);
    past.count()
}

/// The reboots between two calls of tools; the others come at the end of a turn.
fn on_the_fly(played: &Played) -> Vec<Seam> {
    let mut seams = played.seams();
    seams.retain(|seam| {
        let step = seam.before.step;
        step.is_some_and(|step| !played.steps[step - 1].is_empty())
    });
    seams
}

fn milliseconds(time: Duration) -> u128 {
    time.as_millis()
}

fn report(session: &Session) {
    let (played, name) = (&session.played, session.name);
    let usual = played.usual_pause();
    let calls = played.main().count();
    println!(
        "{name}: {calls} calls, line {}, summaries {}, faults {:?}",
        session.line,
        played.summaries(),
        session.faults
    );
    println!();
    println!(
        "| before step | calls from the line on | tokens before | after | usual pause, ms | pause, ms | more, ms |"
    );
    println!("|---|---|---|---|---|---|---|");
    for seam in on_the_fly(played) {
        let more = seam.pause.saturating_sub(usual);
        println!(
            "| {} | {} | {} | {} | {} | {} | {} |",
            seam.after.step.unwrap_or(0),
            calls_past(session, &seam),
            seam.before.tokens,
            seam.after.tokens,
            milliseconds(usual),
            milliseconds(seam.pause),
            milliseconds(more),
        );
    }
    println!();
}

fn load() -> String {
    let load = fs::read_to_string("/proc/loadavg").unwrap_or_default();
    load.split(' ').take(3).collect::<Vec<_>>().join(" ")
}

fn main() {
    let client = Command::new(live_client()).arg("--version").output();
    let client = client.expect("the client says its version");
    println!("client {}", String::from_utf8_lossy(&client.stdout).trim());
    println!("load at the start {}", load());
    let shapes = Shape::long_sessions();
    let sessions: Vec<Session> = shapes
        .iter()
        .map(|(name, shape)| play(name, shape))
        .collect();
    println!("load at the end {}\n", load());
    sessions.iter().for_each(report);
    println!(
        "| session | calls of tools | reboots | calls from the line on, most | tokens before | after | usual pause, ms | pause, ms | more, ms |"
    );
    println!("|---|---|---|---|---|---|---|---|---|");
    let mut all = Vec::new();
    for session in &sessions {
        let seams = on_the_fly(&session.played);
        let usual = session.played.usual_pause();
        let more: Vec<Duration> = seams
            .iter()
            .map(|seam| seam.pause.saturating_sub(usual))
            .collect();
        let tokens = |of: fn(&Seam) -> u64| {
            let mut all: Vec<u64> = seams.iter().map(of).collect();
            all.sort_unstable();
            all.get(all.len() / 2).copied().unwrap_or(0)
        };
        let past = seams.iter().map(|seam| calls_past(session, seam)).max();
        println!(
            "| {} | {} | {} | {} | {} | {} | {} | {} | {} |",
            session.name,
            session.played.steps.iter().map(Vec::len).sum::<usize>(),
            seams.len(),
            past.unwrap_or(0),
            tokens(|seam| seam.before.tokens),
            tokens(|seam| seam.after.tokens),
            milliseconds(usual),
            milliseconds(middle(seams.iter().map(|seam| seam.pause))),
            milliseconds(middle(more.clone())),
        );
        all.extend(more);
    }
    let p50 = middle(all.iter().copied());
    println!(
        "\n{} reboots, p50 {} ms more than usual",
        all.len(),
        milliseconds(p50)
    );
}
