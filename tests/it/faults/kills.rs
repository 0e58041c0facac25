//! Kills at moments that no test has chosen, and signals.

use std::{fs, thread, time::Duration};

use pitstop_core::lineage::journal::Step;
use rustix::process::{Pid, Signal};
use serde_json::Value;

use super::{Moments, Trial, demo};
use crate::{
    bridge::MODS_FROM,
    kit::{
        client::is_at_least,
        home::handoffs,
        poll,
        supervisor::{
            Launch, PITSTOP, SOON, Supervisor, agents, key, processes_of, session_of, wait_for_end,
        },
    },
    recovery::open_reboot,
};

#[track_caller]
fn kill(supervisor: Supervisor) -> Launch {
    let launch = supervisor.kill();
    wait_for_end(launch.the_home());
    launch
}

/// It rests, with one agent and no session that got a handoff twice.
#[track_caller]
fn check_rest(supervisor: &Supervisor) {
    supervisor.wait_for_status_within(SOON * 2, |status| {
        status["reboot"]["phase"] == "idle" && status["agent"]["state"] == "idle"
    });
    let home = supervisor.launch.the_home();
    let alive = agents(home);
    assert_eq!(alive.len(), 1, "one agent: {alive:#?}");
    let counts = handoffs(home);
    assert!(counts.values().all(|count| *count <= 1), "{counts:#?}");
}

#[test]
#[ignore = "a fault of `cargo run --example faults`"]
fn at_random_moments_of_a_reboot_and_of_its_recovery() {
    let mut moments = Moments(20_261_122);
    let mut launch = demo();
    for round in 0..10 {
        let supervisor = launch.start();
        check_rest(&supervisor);
        let before = handoffs(launch.the_home()).values().sum::<usize>();
        supervisor.prompt("go on");
        supervisor.wait_for_state("idle", SOON);
        supervisor.review();
        supervisor.keys([key::ENTER]);
        // A moment is wanted here and no condition.
        thread::park_timeout(moments.up_to(1_500));
        launch = kill(supervisor);
        if round % 5 < 2 {
            let supervisor = launch.start();
            thread::park_timeout(moments.up_to(1_500));
            launch = kill(supervisor);
        }
        let supervisor = launch.start();
        check_rest(&supervisor);
        let now = handoffs(launch.the_home()).values().sum::<usize>();
        assert!(now <= before + 1, "{before} before, {now} after");
        launch = kill(supervisor);
    }
    let trial = Trial::begin(&launch);
    trial.goes_on();
}

/// What is said before the conversation is replaced, and what stands in the prompt box then.
const TALK: &str = "the old talk";
const DRAFT: &str = "half a thought";

/// A session with the bridge in force, a turn and a draft, whose reboot in place is approved by the next Enter.
fn before_a_reboot_in_place(launch: &Launch) -> Supervisor {
    let supervisor = launch.start();
    let bridge = |status: &Value, name: &str| status["agent"]["bridge"][name].clone();
    supervisor.wait_for_status(|status| bridge(status, "state") == "in_force");
    supervisor.wait_for_state("idle", SOON);
    supervisor.prompt(TALK);
    supervisor.wait_until("the turn is kept", || {
        transcripts(launch).iter().any(|text| text.contains(TALK))
    });
    supervisor.wait_for_status(|status| bridge(status, "turn_runs") == false);
    supervisor.wait_for_state("idle", SOON);
    supervisor.keys([DRAFT]);
    let count = DRAFT.len();
    supervisor.wait_for_status(|status| bridge(status, "draft_characters") == count);
    let output = supervisor.run(&["ctl", "reboot", "--way", "in-place"]);
    assert!(output.status.success(), "{output:?}");
    supervisor.wait_for_phase("review", SOON);
    supervisor.keys([key::F5]);
    supervisor.wait_for_text("approve", SOON);
    supervisor
}

/// How long a reboot in place takes that nothing disturbs, by its own record.
fn a_whole_reboot_in_place(launch: &Launch) -> Duration {
    let supervisor = before_a_reboot_in_place(launch);
    supervisor.keys([key::ENTER]);
    supervisor
        .wait_for_status(|status| status["iteration"] == 2 && status["reboot"]["phase"] == "idle");
    let history = supervisor.history();
    let steps = history["iterations"][1]["transition_time_ms"].clone();
    let steps = steps.as_object().expect("its steps");
    Duration::from_millis(steps.values().filter_map(Value::as_u64).sum())
}

fn transcripts(launch: &Launch) -> Vec<String> {
    let of_demo = launch.the_home().path("state/pitstop/demo/projects");
    let of_demo = fs::read_dir(of_demo).into_iter().flatten().flatten();
    let of_demo = of_demo.flat_map(|one| fs::read_dir(one.path()).into_iter().flatten().flatten());
    let files = launch.the_home().transcripts().into_iter();
    files
        .chain(of_demo.map(|one| one.path()))
        .filter_map(|path| fs::read_to_string(path).ok())
        .collect()
}

/// The step that the journal holds open, and whether the handoff has arrived.
struct Kill {
    step: Option<Step>,
    arrived: bool,
}

/// A reboot in place whose supervisor or agent is killed so long after its approval.
#[track_caller]
fn kill_in_place(launch: &Launch, moment: Duration, of_agent: bool) -> Kill {
    let supervisor = before_a_reboot_in_place(launch);
    let old = session_of(&supervisor.status());
    let agent = supervisor.agent_pid();
    supervisor.keys([key::ENTER]);
    // A moment is wanted here and no condition.
    thread::park_timeout(moment);
    let (supervisor, step) = if of_agent {
        rustix::process::kill_process(agent, Signal::KILL).expect("killed");
        (supervisor, None)
    } else {
        let launch = kill(supervisor);
        let step = open_reboot(&launch).map(|entry| entry.step);
        (launch.start(), step)
    };
    let is_said = || {
        if of_agent {
            let history = supervisor.history();
            let mut iterations = history["iterations"].as_array().into_iter().flatten();
            return iterations.any(|one| one["end_reason"] == "crash");
        }
        let log = supervisor.log();
        let starts = [
            "pitstop was stopped while the reboot",
            "ended without notice",
        ];
        starts.iter().any(|text| log.contains(text))
    };
    supervisor.wait_until("what happened is said", is_said);
    let status = supervisor.wait_for_status_within(SOON * 2, |status| {
        let (state, phase) = (&status["agent"]["state"], &status["reboot"]["phase"]);
        // Gone before its approval was heard, or behind the end.
        let gone = of_agent && state == "exited" && (phase == "review" || phase == "idle");
        gone || (state == "idle" && phase == "idle")
    });
    let goes_on = status["agent"]["state"] == "idle";
    let one_agent = || agents(launch.the_home()).len() == usize::from(goes_on);
    supervisor.wait_until("one agent, or none", one_agent);
    let (session, log) = (session_of(&status), supervisor.log());
    let counts = handoffs(launch.the_home());
    let count: usize = counts.values().sum();
    assert!(count <= 1, "{counts:?}\n{log}");
    // An agent that is gone before the order is given is followed by a fresh session.
    let session_told = if of_agent { &session } else { &old };
    let reported = counts.get(session_told).copied();
    assert_eq!(reported.unwrap_or_default(), count, "{counts:?}\n{log}");
    let open = step.is_some_and(|step| step != Step::Done && step != Step::Failed);
    assert!(!open || session == old, "the session goes on: {log}");
    assert!(transcripts(launch).iter().any(|text| text.contains(TALK)));
    if matches!(step, Some(Step::Delivering | Step::Verifying)) || (of_agent && goes_on) {
        supervisor.wait_for_text(DRAFT, SOON);
    }
    Kill {
        step,
        arrived: count == 1,
    }
}

/// So many reboots in place, each killed at a random moment; of every five kills two are of the agent.
#[track_caller]
fn kill_reboots_in_place(count: u32, launch: &dyn Fn() -> Launch) {
    // One may have been disturbed.
    let whole = (0..3).map(|_| a_whole_reboot_in_place(&launch()));
    let whole = whole.min().expect("three");
    println!("undisturbed: {whole:?}");
    let mut moments = Moments(20_261_123);
    let mut arrived = 0;
    for round in 0..count {
        // Some fall behind its end.
        let share = moments.up_to(1_200).as_secs_f64();
        let moment = whole.mul_f64(share);
        let of_agent = round % 5 < 2;
        let kill = kill_in_place(&launch(), moment, of_agent);
        let who = if of_agent { "agent" } else { "pitstop" };
        let how = if kill.arrived { "once" } else { "not at all" };
        println!("{round}: {who} after {moment:?} at {:?}: {how}", kill.step);
        arrived += u32::from(kill.arrived);
    }
    println!(
        "{count} kills: {arrived} handoffs arrived once, {} not at all",
        count - arrived
    );
}

#[test]
#[ignore = "a fault of `cargo run --example faults`"]
fn fifty_times_at_random_moments_of_a_reboot_in_place() {
    kill_reboots_in_place(50, &|| demo().env("PITSTOP_DEMO_BRIDGE", "1"));
}

#[test]
#[ignore = "live: needs PITSTOP_CLAUDE"]
fn at_random_moments_of_a_reboot_in_place_of_the_real_client() {
    assert!(is_at_least(MODS_FROM), "this client runs no mods");
    kill_reboots_in_place(6, &|| Launch::live().set("reboot.mode=\"manual\""));
}

#[test]
#[ignore = "a fault of `cargo run --example faults`"]
fn fifty_times_during_the_start() {
    let mut moments = Moments(50);
    let mut launch = demo();
    for _ in 0..50 {
        let supervisor = launch.start();
        thread::park_timeout(moments.up_to(500));
        launch = kill(supervisor);
    }
    let trial = Trial::begin(&launch);
    trial.goes_on();
}

#[test]
#[ignore = "a fault of `cargo run --example faults`"]
fn f10_after_a_reboot() {
    let trial = Trial::begin(&demo());
    trial.reboots();
    trial.ends();
}

#[test]
#[ignore = "a fault of `cargo run --example faults`"]
fn a_broken_pipe_is_no_end() {
    let trial = Trial::begin(&demo());
    trial.supervisor.signal(Signal::PIPE);
    trial.goes_on();
}

fn is_stopped(pid: Pid) -> bool {
    let stat = fs::read_to_string(format!("/proc/{}/stat", pid.as_raw_nonzero()));
    stat.is_ok_and(|stat| {
        let state = stat.rsplit_once(')').map(|(_, rest)| rest.trim_start());
        state.is_some_and(|state| state.starts_with('T'))
    })
}

#[test]
#[ignore = "a fault of `cargo run --example faults`"]
fn suspended_and_continued_a_hundred_times() {
    let trial = Trial::begin(&demo());
    let supervisor = &trial.supervisor;
    let pid = supervisor.terminal.pid();
    for _ in 0..100 {
        supervisor.terminal.signal(Signal::TSTP);
        supervisor.wait_until("it is stopped", || is_stopped(pid));
        supervisor.terminal.signal(Signal::CONT);
        supervisor.wait_until("it goes on", || !is_stopped(pid));
    }
    trial.goes_on();
}

#[test]
#[ignore = "a fault of `cargo run --example faults`"]
fn two_thousand_changes_of_the_size() {
    let trial = Trial::begin(&demo());
    for round in 0..2_000_u16 {
        trial.supervisor.terminal.report_size(132 + round % 9, 45);
        trial.supervisor.terminal.signal(Signal::WINCH);
    }
    trial.supervisor.terminal.report_size(140, 45);
    trial.goes_on();
}

#[test]
#[ignore = "a fault of `cargo run --example faults`"]
fn suspended_in_a_shell_and_brought_back_by_fg_and_bg() {
    if !super::can("bash", "bash -c :") {
        return;
    }
    let launch = Launch::manual_demo("");
    let home = launch.the_home();
    let shell = launch.terminal("bash", ["--norc", "--noprofile", "-i"], (140, 45));
    shell.send("PS1='shell> '\r");
    shell.wait_for_text("shell> ", SOON);
    shell.send(format!("{PITSTOP} demo --here -- --model claude-demo-1\r"));
    shell.wait_for_text("F10 quit", SOON);
    let own = shell.pid().as_raw_nonzero().get();
    let pitstop = processes_of(home).into_iter().find(|one| one.parent == own);
    let pitstop = pitstop
        .and_then(|one| Pid::from_raw(one.pid))
        .expect("it runs");
    for way in ["fg", "bg"] {
        rustix::process::kill_process(pitstop, Signal::TSTP).expect("stopped");
        shell.wait_for_text("Stopped", SOON);
        if way == "bg" {
            // In the background it may not touch the terminal: it is stopped again.
            shell.send("bg\r");
            let stopped = || is_stopped(pitstop);
            poll::until_true(SOON, stopped, || "it runs in the background".to_owned());
            shell.send("echo still $((40 + 2))\r");
            shell.wait_for_text("still 42", SOON);
        }
        shell.send("fg\r");
        shell.wait_for_text("F10 quit", SOON);
    }
    shell.send("are you there?");
    shell.wait_for_text("are you there?", SOON);
    shell.send(key::ENTER);
    // While a turn runs it would ask first.
    shell.wait_for(
        |screen| screen.contains("Understood.") && screen.contains("idle · reboots: ask"),
        SOON,
    );
    shell.send(key::F10);
    shell.wait_for(
        |screen| !screen.contains("F10 quit") && screen.contains("shell> "),
        SOON,
    );
    wait_until_gone(pitstop);
    shell.send("exit\r");
    shell.wait_for_exit(SOON);
    wait_for_end(home);
}

#[track_caller]
fn wait_until_gone(pid: Pid) {
    let gone = || rustix::process::test_kill_process(pid).is_err();
    poll::until_true(SOON, gone, || "it lives on".to_owned());
}
