//! Kills while a run is under way, or while a person writes, at moments that no test has chosen.

use std::{env, fs, thread, time::Duration};

use rustix::process::{Signal, kill_process};
use serde_json::Value;

use super::{Moments, demo};
use crate::{
    attach::call,
    autopilot::{RUN, meta, reasons, run_of, sessions},
    kit::{
        home::handoffs,
        poll,
        supervisor::{Launch, SOON, Supervisor, agents, key, wait_for_end},
        terminal::Terminal,
    },
};

/// How many kills of each kind are made; `PITSTOP_TEST_KILLS` asks for more.
fn wanted() -> usize {
    let wanted = env::var("PITSTOP_TEST_KILLS").ok();
    wanted.and_then(|count| count.parse().ok()).unwrap_or(8)
}

/// The kills of one run, each of which adds an iteration; then it goes on to its end.
const KILLS_A_RUN: usize = 6;

/// A run over several sessions, each of a second or two.
fn run() -> Launch {
    run_of("Build tidepool with care")
        .order(["--headless", "--json"])
        .env("PITSTOP_DEMO_PACE_MS", "30")
        .env("PITSTOP_DEMO_GROWTH", "45000")
        .env("PITSTOP_DEMO_ITEMS", "14")
        .set("reboot.auto_delay=\"100ms\"")
}

/// Plays one run to its end, with kills of the supervisor or of the agent at random moments; returns the number of kills.
#[track_caller]
fn play_a_run(moments: &mut Moments) -> usize {
    let launch = run();
    let home = launch.the_home();
    let mut kills = 0;
    let mut known = (0, 0);
    let ended = loop {
        let mut run = launch.start_headless();
        if kills >= KILLS_A_RUN {
            break run.wait_for_exit(RUN);
        }
        // A moment is wanted here and no condition.
        thread::park_timeout(moments.up_to(2_500));
        // One in four is of the agent.
        if moments.up_to(4).is_zero()
            && let Some(agent) = run.agent_pid()
        {
            // It may have ended at this very moment.
            let _ = kill_process(agent, Signal::KILL);
            kills += 1;
            thread::park_timeout(moments.up_to(2_500));
        }
        let alive = agents(home);
        assert!(alive.len() <= 1, "one agent: {alive:#?}");
        run.signal(Signal::KILL);
        let code = run.wait_for_exit(RUN);
        wait_for_end(home);
        if code == Some(0) {
            break code;
        }
        kills += 1;
        let now = (turns_of(&meta(&launch)), items_done(&launch));
        let less = now.0 < known.0 || now.1 < known.1;
        assert!(
            !less,
            "turns and items that are done: {now:?} after {known:?}"
        );
        known = now;
    };
    let meta = meta(&launch);
    assert_eq!(ended, Some(0), "{meta:#}");
    assert_eq!(reasons(&meta).last(), Some(&"promise_found"), "{meta:#}");
    let numbers: Vec<_> = iterations(&meta)
        .map(|one| one["iteration"].as_u64())
        .collect();
    let expected: Vec<_> = (1..).map(Some).take(numbers.len()).collect();
    assert_eq!(numbers, expected);
    let counts = handoffs(home);
    assert!(counts.values().all(|count| *count <= 1), "{counts:#?}");
    let of_run = sessions(&meta);
    let stray = counts.keys().find(|id| !of_run.contains(id.as_str()));
    assert_eq!(stray, None, "{counts:#?}\n{meta:#}");
    assert!(items_done(&launch) >= known.1);
    println!("{kills} kills: {:?}", reasons(&meta));
    kills
}

fn iterations(meta: &Value) -> impl Iterator<Item = &Value> {
    meta["iterations"].as_array().into_iter().flatten()
}

fn turns_of(meta: &Value) -> u64 {
    iterations(meta)
        .filter_map(|one| one["turns"].as_u64())
        .sum()
}

#[test]
fn a_run_that_is_killed_at_random_moments_goes_on_with_its_counts_to_its_end() {
    let mut moments = Moments(20_261_127);
    let mut kills = 0;
    while kills < wanted() {
        kills += play_a_run(&mut moments);
    }
}

/// The number of items that the agent's notes name as done.
fn items_done(launch: &Launch) -> usize {
    let notes = fs::read_to_string(launch.scratchpad()).unwrap_or_default();
    notes.matches("- [x]").count()
}

/// Where a person writes.
#[derive(Clone, Copy, Debug)]
enum Place {
    PromptBox,
    Handoff,
    Scratchpad,
}

impl Place {
    const ALL: [Self; 3] = [Self::PromptBox, Self::Handoff, Self::Scratchpad];

    /// Goes there.
    #[track_caller]
    fn open(self, supervisor: &Supervisor) {
        let keys: &[&str] = match self {
            Self::PromptBox => return,
            Self::Handoff => &[key::F4, "e"],
            Self::Scratchpad => &[key::F3, "e"],
        };
        supervisor.keys(keys.iter().copied());
        supervisor.terminal.wait_for_text("Esc", SOON);
    }

    /// Returns the text that was written there, as a supervisor has it that was started again.
    fn text(self, supervisor: &Supervisor) -> String {
        match self {
            Self::PromptBox => supervisor.screen(),
            Self::Handoff => supervisor.handoff_text(),
            Self::Scratchpad => supervisor.notes(),
        }
    }
}

/// Writes there, and kills the supervisor, its terminal's client or both; what was written is there once after coming back.
#[track_caller]
fn kill_a_writer(launch: Launch, place: Place, round: usize, moments: &mut Moments) -> Launch {
    let supervisor = launch.start();
    supervisor.wait_for_state("idle", SOON);
    place.open(&supervisor);
    let text = format!("mine {round} of {place:?} é");
    supervisor.keys([text.as_str()]);
    supervisor.terminal.wait_for_text(&text, SOON);
    // A second is what the contract allows, and a machine that others use too takes a part of it.
    thread::park_timeout(Duration::from_millis(1_200) + moments.up_to(800));
    let home = launch.the_home();
    let (of_client, of_server) = [(true, true), (true, false), (false, true)][round % 3];
    if of_client {
        supervisor.terminal.signal(Signal::KILL);
    }
    let (supervisor, attached) = if of_server {
        let launch = supervisor.kill();
        wait_for_end(home);
        (launch.start(), None)
    } else {
        supervisor.wait_for_exit(SOON);
        let attached = call(&launch, launch.project(), (140, 45), &["attach"]);
        (supervisor, Some(attached))
    };
    supervisor.wait_for_state("idle", SOON);
    // Attached again, a person goes on where they were.
    let now = || {
        let attached = attached.as_ref();
        attached.map_or_else(|| place.text(&supervisor), Terminal::screen_text)
    };
    let there = || now().matches(&text).count() == 1;
    poll::until_true(SOON, there, || {
        let log = supervisor.log();
        format!("client {of_client}, server {of_server}: {}\n{log}", now())
    });
    assert_eq!(agents(home).len(), 1);
    let launch = supervisor.kill();
    wait_for_end(home);
    launch
}

#[test]
fn what_a_person_is_writing_survives_kills_at_random_moments() {
    let mut moments = Moments(20_261_128);
    for place in Place::ALL {
        let mut launch = demo();
        for round in 0..wanted().div_ceil(3) {
            launch = kill_a_writer(launch, place, round, &mut moments);
        }
    }
}
