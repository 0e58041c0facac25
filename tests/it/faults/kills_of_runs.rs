//! Kills of a watched run while it works and reboots, and while a person writes into its notes.
//!
//! What is killed, and when, is chosen at random from a seed, which is printed. `PITSTOP_TEST_KILLS` is how many kills are made,
//! `PITSTOP_TEST_SEED` has the sequence of another seed.

use std::{
    collections::{BTreeMap, BTreeSet, VecDeque},
    env, fs,
    path::PathBuf,
    thread,
    time::{Duration, Instant},
};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

use super::{MINE, Moments};
use crate::{
    attach::call,
    autopilot::{PROMISE, RUN, meta, reasons, run_dir, sessions},
    kit::{
        home::{handoff_markers, handoffs},
        poll,
        supervisor::{
            Launch, Process, SOON, Supervisor, agents, group_members, key, look, processes_of,
            wait_for_end,
        },
    },
    recovery::open_reboot,
};

const TASK: &str = "Build tidepool with care";

/// What the agent decides in its first turn.
const DECISION: &str = "keep entries in one type";

/// The caps, which no run reaches.
const ITERATIONS: u64 = 400;
const DOLLARS: f64 = 300.0;

/// How many kills a run of the whole suite has time for.
const USUAL_KILLS: u32 = 6;

/// What a person has typed, and what the counts were, is on disk after a second; a machine that others use too takes a part of it.
const KEPT_AFTER: Duration = Duration::from_millis(1_300);

/// The pause between two looks at a run that is left alone.
const PAUSE: Duration = Duration::from_millis(60);

/// The title of the scratchpad's panel in focus, and while it is edited.
const IN_FOCUS: &str = "▸Scratchpad";
const EDITING: &str = "Scratchpad · editing";

/// What is killed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Victim {
    Supervisor,
    Client,
    Agent,
    ClientAndSupervisor,
    AgentAndSupervisor,
}

impl Victim {
    const ALL: [Self; 5] = [
        Self::Supervisor,
        Self::Client,
        Self::Agent,
        Self::ClientAndSupervisor,
        Self::AgentAndSupervisor,
    ];

    fn ends_supervisor(self) -> bool {
        !matches!(self, Self::Client | Self::Agent)
    }
}

/// What a run must not lose.
#[derive(Clone, Debug, PartialEq)]
struct Counts {
    run: String,
    iterations: u64,
    turns: u64,
    cost: f64,
    elapsed: u64,
}

impl Counts {
    /// Reads the counts, and checks what never changes.
    #[track_caller]
    fn read(status: &Value) -> Option<Self> {
        let run = &status["run"];
        assert_eq!(run["task"], TASK, "{status:#}");
        assert_eq!(run["stop_phrase"], PROMISE, "{status:#}");
        assert_eq!(run["max_iterations"], ITERATIONS, "{status:#}");
        assert_eq!(run["max_cost_usd"], DOLLARS, "{status:#}");
        Some(Self {
            run: status["run_id"].as_str()?.to_owned(),
            iterations: run["iteration"].as_u64()?,
            turns: run["turns"].as_u64()?,
            cost: run["cost_usd"].as_f64()?,
            elapsed: run["elapsed_s"].as_u64()?,
        })
    }

    /// Checks that the counts go on from `before`.
    #[track_caller]
    fn go_on_from(&self, before: &Self, what: &str) {
        let goes_on = self.run == before.run
            && self.iterations >= before.iterations
            && self.turns >= before.turns
            // The sum of the same calls in another order.
            && self.cost > before.cost - 1e-6
            // What lies between two sessions, and behind the last word before a kill, is not known.
            && self.elapsed as f64 + 5.0 >= before.elapsed as f64 * 0.8;
        assert!(goes_on, "{what}: {before:#?}\nafter it: {self:#?}");
    }
}

/// What was done in all runs.
#[derive(Debug, Default)]
struct Tally {
    kills: BTreeMap<Victim, u32>,
    /// How many of them fell into a reboot, or where no supervisor answered.
    in_reboots: usize,
    /// How often a note was typed before.
    notes: usize,
    /// How many handoffs have arrived.
    handoffs: usize,
}

/// A run with a person at its terminal.
struct Watched {
    launch: Launch,
    supervisor: Supervisor,
    /// The counts of the last moments.
    seen: VecDeque<(Instant, Counts)>,
    /// The notes that the person has typed, each a line.
    typed: Vec<String>,
    /// True if it was over when its supervisor was killed.
    was_over: bool,
}

/// A run over several sessions, each of some seconds, whose agent has a child. Each time it is rebooted in the next of the ways.
fn launch(number: usize) -> Launch {
    let ways = ["", "agent.bridge=false", "reboot.way=\"in-place\""];
    let order = [
        "--task",
        TASK,
        "--until",
        PROMISE,
        "--max-iterations",
        "400",
        "--max-cost",
        "300",
    ];
    let launch = match ways[number % ways.len()] {
        "" => Launch::demo(),
        way => Launch::demo().set(way),
    };
    launch
        .behind("case \"$*\" in *--settings*) sleep 1000 & esac")
        .order(order)
        .env("PITSTOP_DEMO_AUTO", "0")
        .env("PITSTOP_DEMO_STOP_PHRASE", PROMISE)
        .env("PITSTOP_DEMO_PACE_MS", "40")
        .env("PITSTOP_DEMO_GROWTH", "45000")
        .env("PITSTOP_DEMO_ITEMS", "9")
        .set("reboot.auto_delay=\"50ms\"")
        .notes(&format!(
            "# Scratchpad\n\n## Current Understanding\n{MINE}\n"
        ))
}

impl Watched {
    fn begin(launch: Launch) -> Self {
        Self {
            supervisor: launch.start(),
            launch,
            seen: VecDeque::new(),
            typed: Vec::new(),
            was_over: false,
        }
    }

    /// Looks at the run, and returns its status if its supervisor answers.
    #[track_caller]
    fn look(&mut self) -> Option<Value> {
        let alive = agents(self.launch.the_home());
        assert!(alive.len() <= 1, "one agent: {alive:#?}");
        let status = self.supervisor.try_status()?;
        let counts = Counts::read(&status)?;
        if let Some((_, last)) = self.seen.back() {
            counts.go_on_from(last, "between two looks");
        }
        self.seen.push_back((Instant::now(), counts));
        Some(status)
    }

    /// Looks at the run for so long, or until it is over.
    #[track_caller]
    fn watch(&mut self, time: Duration) -> Option<Value> {
        let end = Instant::now() + time;
        let mut last = None;
        while Instant::now() < end && !self.supervisor.terminal.has_ended() {
            last = self.look().or(last);
            thread::park_timeout(PAUSE.min(end.saturating_duration_since(Instant::now())));
        }
        last
    }

    /// Types a note into the scratchpad's panel, and leaves it open.
    #[track_caller]
    fn type_note(&mut self) {
        let note = format!("note {} is mine", self.typed.len() + 1);
        // It has the focus still where a person comes back to a session that went on.
        if !self.supervisor.screen().contains(IN_FOCUS) {
            self.supervisor.keys([key::F3]);
        }
        for (keys, shown) in [
            (&["e", key::CTRL_END][..], EDITING),
            (&[key::ENTER, &note], &note),
        ] {
            if !self.shows(IN_FOCUS) {
                return;
            }
            self.supervisor.keys(keys.iter().copied());
            if !self.shows(shown) {
                return;
            }
        }
        self.typed.push(note);
        self.watch(KEPT_AFTER);
    }

    /// Waits until this is on the screen; false if the run is over first.
    #[track_caller]
    fn shows(&self, text: &str) -> bool {
        let shown = || self.supervisor.screen().contains(text);
        let either = || shown() || self.is_over();
        self.supervisor.wait_until(text, either);
        !self.is_over()
    }

    /// Kills, and checks what is left; the person comes back.
    #[track_caller]
    fn kill(&mut self, victim: Victim) {
        let home = self.launch.the_home().clone();
        let kill = |pid: Pid| {
            // It may end at this very moment.
            let _ = kill_process(pid, Signal::KILL);
        };
        let server = self.supervisor.pid();
        let agent = agents(&home).first().and_then(|one| Pid::from_raw(one.pid));
        let family = agent.map(group_members).unwrap_or_default();
        if matches!(victim, Victim::Agent | Victim::AgentAndSupervisor) {
            agent.into_iter().for_each(kill);
        }
        if matches!(victim, Victim::Client | Victim::ClientAndSupervisor) {
            self.supervisor.terminal.kill();
        }
        if victim.ends_supervisor() {
            kill(server);
        }
        let now = Instant::now();
        self.seen.retain(|(at, _)| now - *at > KEPT_AFTER);
        if victim != Victim::Agent {
            self.supervisor.check_nothing();
            self.supervisor.wait_for_exit(SOON);
        }
        if victim.ends_supervisor() {
            wait_for_end(&home);
            self.was_over = has_ended(&self.launch);
            if self.was_over {
                return;
            }
            self.supervisor = self.launch.start();
        } else if victim == Victim::Client {
            self.supervisor.terminal = call(&self.launch, self.launch.project(), (140, 45), &[]);
        } else {
            let gone = || !family.iter().any(is_alive);
            self.supervisor
                .wait_until("the agent's children are ended", gone);
        }
    }

    /// Waits until the run goes on after a kill, or is over.
    #[track_caller]
    fn comes_back(&mut self, victim: Victim) {
        let before = self.seen.drain(..).next_back();
        let end = Instant::now() + SOON;
        loop {
            if self.is_over() {
                return;
            }
            // A run that was over before the person came back is earlier work.
            if self.supervisor.screen().contains("Start a fresh session") {
                self.supervisor.keys(["q"]);
            }
            // What is being written holds reboots as long as a person is there.
            if self.supervisor.screen().contains(EDITING) {
                self.supervisor.keys([key::ESC]);
            }
            if let Some(status) = self.look() {
                if let (Some((_, before)), Some((_, now))) = (&before, self.seen.back()) {
                    now.go_on_from(before, &format!("after a kill of {victim:?}"));
                }
                let works =
                    status["agent"]["state"] == "busy" || status["agent"]["state"] == "idle";
                if works && agents(self.launch.the_home()).len() == 1 {
                    return;
                }
            }
            let screen = self.supervisor.screen();
            assert!(
                Instant::now() < end,
                "{victim:?}: it does not come back:\n{screen}\n{}",
                self.supervisor.log()
            );
            thread::park_timeout(PAUSE);
        }
    }

    /// Reports whether the run has said that all is done.
    fn is_over(&self) -> bool {
        self.supervisor.terminal.has_ended()
    }
}

/// Reports whether this process still lives.
fn is_alive(process: &Process) -> bool {
    look(process.pid).is_some_and(|now| now.group == process.group)
}

/// Plays one run to its end, with kills at random moments.
#[track_caller]
fn play(number: usize, moments: &mut Moments, tally: &mut Tally) {
    let mut run = Watched::begin(launch(number));
    loop {
        let status = run.watch(moments.up_to(2_200));
        let writes = moments.up_to(4).is_zero();
        if writes && !run.is_over() && status.is_some() {
            run.type_note();
            tally.notes += 1;
        }
        if run.is_over() {
            break;
        }
        let victim = Victim::ALL[moments.up_to(5).as_millis() as usize];
        let phase = run.supervisor.try_status();
        let phase = phase.map(|status| status["reboot"]["phase"].to_string());
        println!("{victim:?} at {phase:?}");
        tally.in_reboots += usize::from(phase.is_none_or(|phase| phase != "\"idle\""));
        *tally.kills.entry(victim).or_default() += 1;
        run.kill(victim);
        run.comes_back(victim);
        if run.is_over() {
            break;
        }
    }
    check(&run, tally);
}

/// Checks the whole record of a run that is over.
#[track_caller]
fn check(run: &Watched, tally: &mut Tally) {
    let (launch, log) = (&run.launch, run.supervisor.log());
    let exit = run.supervisor.terminal.wait_for_exit(RUN);
    let killed = run.was_over && exit.code != 0;
    assert!(killed || exit.code == 0, "{exit:?}\n{log}");
    wait_for_end(launch.the_home());
    let meta = meta(launch);
    assert_eq!(reasons(&meta).last(), Some(&"promise_found"), "{meta:#}");
    assert_eq!(meta["task"], TASK);
    let iterations = meta["iterations"].as_array().expect("iterations");
    for (number, one) in (1..).zip(iterations) {
        assert_eq!(one["iteration"], number, "{meta:#}");
    }
    // Each handoff has arrived once, in a session that the record knows, and has what must survive.
    let arrived = handoffs(launch.the_home());
    let (mut seen, markers) = (BTreeSet::new(), handoff_markers(launch.the_home()));
    let twice = markers.iter().find(|marker| !seen.insert(*marker));
    assert_eq!(twice, None, "{arrived:#?}");
    let known = sessions(&meta);
    let told = arrived.iter().filter(|(_, count)| **count > 0);
    let unknown: Vec<_> = told
        .filter(|(id, _)| !known.contains(id.as_str()))
        .collect();
    assert!(unknown.is_empty(), "{unknown:?}\n{meta:#}");
    let files: Vec<PathBuf> = iterations
        .iter()
        .filter_map(|one| one["handoff"].as_str())
        .map(|name| run_dir(launch).join(name))
        .collect();
    tally.handoffs += arrived.values().sum::<usize>();
    for file in files {
        let text = fs::read_to_string(&file).expect("a handoff");
        for needle in [TASK, PROMISE, MINE, DECISION] {
            assert!(
                text.contains(needle),
                "{needle} in {}: {text}\n{log}",
                file.display()
            );
        }
    }
    assert!(open_reboot(launch).is_none());
    let notes = fs::read_to_string(launch.scratchpad()).expect("notes");
    for line in run.typed.iter().map(String::as_str).chain([MINE]) {
        assert_eq!(notes.matches(line).count(), 1, "{line}: {notes}");
    }
    assert!(!log.contains("panic"), "{log}");
    assert!(processes_of(launch.the_home()).is_empty());
}

/// Reports whether a run has been recorded as one that has said that all is done. It may not have come to its record.
fn has_ended(launch: &Launch) -> bool {
    let is_recorded = launch.project().join(".pitstop/runs").is_dir();
    is_recorded && meta(launch)["end"]["reason"] == "promise_found"
}

#[test]
fn a_watched_run_survives_kills_of_all_its_processes_at_random_moments() {
    let number = |name: &str| env::var(name).ok().and_then(|text| text.parse().ok());
    let seed = number("PITSTOP_TEST_SEED").unwrap_or(20_261_127);
    let wanted = number("PITSTOP_TEST_KILLS").unwrap_or(USUAL_KILLS);
    println!("PITSTOP_TEST_SEED={seed}");
    let mut moments = Moments(seed);
    let mut tally = Tally::default();
    let mut runs = 0;
    while tally.kills.values().sum::<u32>() < wanted {
        play(runs, &mut moments, &mut tally);
        runs += 1;
    }
    println!("{runs} runs: {tally:?}");
}

#[test]
#[ignore = "a fault of `cargo run --example faults`"]
fn what_the_agent_says_just_before_a_kill_is_in_the_next_handoff() {
    let mut moments = Moments(20_261_128);
    for round in 0..20 {
        let launch = launch(round);
        let supervisor = launch.start();
        let said = || {
            let files = launch.the_home().transcripts();
            let texts = files
                .iter()
                .filter_map(|file| fs::read_to_string(file).ok());
            texts.into_iter().any(|text| text.contains(DECISION))
        };
        supervisor.wait_until("it decides", said);
        // A moment is wanted here and no condition.
        let moment = moments.up_to(500);
        thread::park_timeout(moment);
        let launch = supervisor.kill();
        wait_for_end(launch.the_home());
        let supervisor = launch.start();
        supervisor.wait_for_status(|status| status["agent"]["state"] == "busy");
        // The run may be between two sessions.
        let handoff = || String::from_utf8_lossy(&supervisor.run(&["handoff"]).stdout).into_owned();
        let kept = || handoff().contains(DECISION);
        let is_kept = poll::within(Duration::from_secs(20), kept);
        let (handoff, log) = (handoff(), supervisor.log());
        assert!(is_kept, "round {round} after {moment:?}: {handoff}\n{log}");
        println!("round {round} after {moment:?}");
    }
}
