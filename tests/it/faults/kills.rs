//! Kills at moments that no test has chosen, and signals.

use std::{fs, thread};

use rustix::process::{Pid, Signal};

use super::{Moments, Trial, demo};
use crate::kit::{
    home::handoffs,
    poll,
    supervisor::{Launch, PITSTOP, SOON, Supervisor, agents, key, processes_of, wait_for_end},
    terminal::{Answers, Spec, Terminal},
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
    supervisor.wait_for_status(
        |status| status["reboot"]["phase"] == "idle" && status["agent"]["state"] == "idle",
        SOON * 2,
    );
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
        supervisor.keys([key::F5]);
        supervisor.wait_for_phase("review", SOON);
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
    trial.supervisor.terminal.signal(Signal::PIPE);
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
        supervisor.wait_until("it is stopped", || is_stopped(pid), SOON);
        supervisor.terminal.signal(Signal::CONT);
        supervisor.wait_until("it goes on", || !is_stopped(pid), SOON);
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
    let args: Vec<_> = ["--norc", "--noprofile", "-i"].map(Into::into).into();
    let shell = Terminal::spawn(&Spec {
        program: "bash".as_ref(),
        args: &args,
        env: &launch.environment(),
        dir: launch.project(),
        columns: 140,
        rows: 45,
        answers: Answers::All,
    });
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
