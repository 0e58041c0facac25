//! Turns as real sessions have them: many calls of tools, in which the context grows to the line and past it. The real client
//! plays their shapes under pitstop.

mod eight_sessions;
mod kills;
mod last_step;
mod thrash;

use std::{collections::BTreeMap, time::Duration};

use serde_json::Value;

use crate::{
    autopilot::{self, PROMISE, RUN, meta, reasons, sessions},
    bridge::{MODS_FROM, wait_until_it_rests},
    kit::{
        client::is_at_least,
        events::{Events, Received},
        played::{Played, PlayedCall},
        shape::Shape,
        supervisor::{Launch, SOON},
    },
};

/// A model with a window of 200 000 tokens.
const MODEL: [&str; 2] = ["--model", "claude-sonnet-4-5"];

/// How long a run of eight full sessions may take on a machine that others use too.
const LONG_RUN: Duration = Duration::from_mins(15);

/// How far a figure may lie above what the service reports of a call's input: its output, where the source counts that, too.
const OUTPUT: u64 = 25;

/// By how many steps a figure may lag behind the tools on a machine that others use too: a step takes a fifth of a second, and
/// without the bridge a figure comes about once in a second.
fn most_lag() -> usize {
    if is_at_least(MODS_FROM) { 10 } else { 24 }
}

/// How often each tool was reported by hooks of these names, by the tool's id.
fn reported<'a>(heard: &'a [Received], events: &[&str]) -> BTreeMap<&'a str, usize> {
    let mut found = BTreeMap::new();
    for (name, data) in heard {
        let event = data["event"].as_str().unwrap_or_default();
        if name == "hook" && events.contains(&event) {
            *found
                .entry(data["tool_use_id"].as_str().unwrap_or_default())
                .or_default() += 1;
        }
    }
    found
}

/// The step whose call reported this figure.
fn step_of(calls: &[&PlayedCall], used: u64) -> Option<usize> {
    let fits = |call: &&&PlayedCall| (call.tokens..=call.tokens + OUTPUT).contains(&used);
    calls.iter().find(fits).and_then(|call| call.step)
}

/// By how many steps the figures that were heard lag behind the tools at most; each is one that the service has reported.
#[track_caller]
fn lag(heard: &[Received], played: &Played) -> usize {
    let calls: Vec<_> = played.main().collect();
    let (mut step, mut shown, mut most) = (0, 0, 0);
    for (name, data) in heard {
        if name == "context" && !data["used"].is_null() {
            let used = data["used"].as_u64().unwrap();
            let now = step_of(&calls, used);
            let now = now.unwrap_or_else(|| panic!("no call has reported {used}"));
            assert!(
                now >= shown,
                "the figure of step {now} after that of {shown}"
            );
            shown = now;
        } else if data["event"] == "PreToolUse" {
            let id = data["tool_use_id"].as_str().unwrap_or_default();
            let number = id
                .split("_S")
                .nth(1)
                .and_then(|rest| rest.split('_').next());
            step = number
                .and_then(|number| number.parse().ok())
                .unwrap_or(step);
        }
        most = most.max(step - shown.min(step));
    }
    most
}

#[test]
#[ignore = "live: needs PITSTOP_CLAUDE"]
fn the_figure_the_hooks_and_the_state_follow_a_turn_of_sixty_calls() {
    let shape = Shape::long_turn(60, 20_000, 120_000);
    let launch = Launch::live()
        .agent_args(MODEL)
        .set("reboot.mode=\"ask\"")
        .playing(&shape);
    let supervisor = launch.start_idle();
    let mut events = Events::of(launch.the_home());
    supervisor.prompt("go");
    let heard = events.up_to("hook", |hook| hook["event"] == "Stop", SOON);
    let last = shape.steps().count();
    let played = launch.api().wait_for_step(last, SOON);
    check_whole(&played, last);
    assert_eq!(played.seams().len(), 0);

    let before = reported(&heard, &["PreToolUse"]);
    let after = reported(&heard, &["PostToolUse", "PostToolUseFailure"]);
    assert_eq!(before.len(), shape.tool_calls());
    assert_eq!(before, after);
    assert!(before.values().all(|count| *count == 1), "{before:?}");

    let changes = heard.iter().filter(|(name, _)| name == "agent");
    let changes: Vec<_> = changes.map(|(_, data)| &data["state"]).collect();
    assert_eq!(changes, ["busy"]);
    let lag = lag(&heard, &played);
    println!("the figure lags {lag} steps behind at most");
    assert!(lag <= most_lag(), "{lag} steps");

    let tokens = played.main().last().expect("a call").tokens;
    let status =
        supervisor.wait_for_status(|status| status["context"]["used"].as_u64() >= Some(tokens));
    assert!(status["context"]["used"].as_u64() <= Some(tokens + OUTPUT));
    assert_eq!(
        (&status["iteration"], &status["reboot"]["phase"]),
        (&1.into(), &"idle".into())
    );
    supervisor.wait_for_state("idle", SOON);
}

/// A run that was played to its end.
struct Run {
    launch: Launch,
    code: Option<i32>,
    /// What it has told, without a terminal.
    events: Vec<Value>,
    /// The run's record.
    meta: Value,
    played: Played,
    /// How many steps the shape has.
    steps: usize,
}

/// Runs the real client over this shape, with the stop phrase as its last words, until the run is over.
#[track_caller]
fn play(launch: &Launch, shape: Shape) -> Run {
    let shape = shape.ending_with(PROMISE);
    let launch = launch.clone().playing(&shape);
    let mut headless = launch.start_headless();
    let code = headless.wait_for_exit(LONG_RUN);
    Run::over(launch, code, headless.events(), &shape)
}

/// A run whose turns are cut soon after the line, as it cannot go on the fly.
fn impatient(launch: Launch) -> Launch {
    launch
        .set("agent.bridge=false")
        .set("context.window=200000")
        .set("reboot.turn_patience=\"1s\"")
}

impl Run {
    #[track_caller]
    fn over(launch: Launch, code: Option<i32>, events: Vec<Value>, shape: &Shape) -> Self {
        Self {
            code,
            events,
            meta: meta(&launch),
            played: launch.api().played(),
            steps: shape.steps().count(),
            launch,
        }
    }

    /// What holds of every run that ends well: the stop phrase, each tool once and whole, no turn that failed, no summary.
    #[track_caller]
    fn check(&self) {
        assert_eq!(self.code, Some(0), "{:#?}", self.events);
        check_whole(&self.played, self.steps);
        assert_eq!(self.count("turn_failed"), 0, "{:#?}", self.events);
        assert_eq!(reasons(&self.meta).last(), Some(&"promise_found"));
    }

    /// How often this event was told.
    fn count(&self, event: &str) -> usize {
        let told = self.events.iter().filter(|told| told["event"] == event);
        told.count()
    }

    /// How many turns there were, as the run counts them.
    #[track_caller]
    fn turns(&self) -> usize {
        let end = self.events.last().expect("it has said something");
        let turns = end["turns"].as_u64().expect("a count") as usize;
        assert_eq!(self.count("turn_ended"), turns);
        turns
    }

    /// What `pitstop history --json` says.
    #[track_caller]
    fn history(&self) -> Value {
        let output = self.launch.command(&["history", "--json"]).output();
        serde_json::from_slice(&output.unwrap().stdout).expect("a history")
    }
}

/// Every step was given once, each of its tools ran once and to its end, and the model was asked for no summary.
#[track_caller]
fn check_whole(played: &Played, steps: usize) {
    assert_eq!(played.faults(), [""; 0]);
    assert_eq!(played.steps(), (1..=steps).collect::<Vec<_>>());
    assert_eq!(played.summaries(), 0);
}

/// Prints a line for each reboot: the pause, and the tokens before and after; and how long the pause between two steps is
/// where there is none, in which the tools run as well.
fn print_seams(played: &Played) {
    println!("usual pause: {:?}", played.usual_pause());
    for seam in played.seams() {
        let (step, pause) = (seam.after.step.unwrap_or(0), seam.pause);
        let (before, after) = (seam.before.tokens, seam.after.tokens);
        println!("before step {step}: {pause:?}, {before} -> {after} tokens");
    }
}

/// The line is crossed by the last call of the first turn alone.
#[test]
#[ignore = "live: needs PITSTOP_CLAUDE"]
fn a_run_over_two_sessions_of_one_turn_each_ends_by_the_stop_phrase() {
    let shape = Shape::sessions(2, 24, 20_000, 153_000);
    let run = play(&autopilot::live(&["--headless", "--json"]), shape);
    print_seams(&run.played);
    run.check();
    let seams = run.played.seams();
    assert_eq!((seams.len(), sessions(&run.meta).len()), (1, 2));
    assert!(seams[0].after.has_handoff && seams[0].after.tokens < 40_000);
    assert_eq!(run.turns(), 2);
}

/// The client's own line lies below pitstop's, which is pulled below that: the turn is rebooted on the fly before the client compacts by
/// itself.
#[test]
#[ignore = "live: needs PITSTOP_CLAUDE"]
fn a_turn_that_fills_the_window_goes_on_in_the_same_client() {
    assert!(is_at_least(MODS_FROM), "this client runs no mods");
    // So that the line is crossed by a step that calls one tool.
    let shape = Shape::long_turn(80, 20_000, 190_000);
    let launch = Launch::live()
        .agent_args(MODEL)
        .set("reboot.mode=\"auto\"")
        .env("CLAUDE_CODE_AUTO_COMPACT_WINDOW", "170000")
        .playing(&shape);
    let supervisor = launch.start();
    wait_until_it_rests(&supervisor);
    supervisor.prompt("go");
    let last = shape.steps().count();
    let played = launch.api().wait_for_step(last, RUN);
    print_seams(&played);
    check_whole(&played, last);
    assert_eq!(played.sessions().len(), 1);
    let [seam] = &played.seams()[..] else {
        panic!("{} reboots", played.seams().len());
    };
    assert!(seam.after.has_handoff && seam.after.tokens < 40_000);
    // The client's line is at 137 000 and pitstop's some way below it; a step adds 2 700 tokens.
    let before = seam.before.tokens;
    assert!((110_000..130_000).contains(&before), "{before}");
    // What the last tools have said is not lost.
    assert_eq!(seam.after.present.last().copied(), seam.before.step);
    supervisor.wait_for_state("idle", SOON);
}
