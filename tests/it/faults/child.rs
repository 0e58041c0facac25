//! What an agent does that no agent should.

use std::fs;

use rustix::process::{Pid, Signal};

use super::{Trial, demo};
use crate::kit::supervisor::{Launch, SOON, Supervisor, key, processes_of};

/// Quits; the terminal is as it was and no process is left.
#[track_caller]
fn leaves(supervisor: &Supervisor) {
    let exit = supervisor.quit();
    assert_eq!(
        (exit.code, exit.signal),
        (0, None),
        "{}",
        supervisor.screen()
    );
    assert_eq!(supervisor.terminal.modes_left_on(), Vec::<&str>::new());
    assert!(supervisor.terminal.has_its_settings_back());
    let home = supervisor.launch.the_home();
    let over = || processes_of(home).is_empty();
    supervisor.wait_until("no process is left", over);
}

fn shell(commands: &str) -> Launch {
    let launch = Launch::generic("sh agent.sh");
    fs::write(launch.project().join("agent.sh"), commands).expect("written");
    launch
}

#[test]
#[ignore = "a fault of `cargo run --example faults`"]
fn killed_that_is_said_and_the_work_goes_on() {
    let trial = Trial::begin(&demo());
    let supervisor = &trial.supervisor;
    let session = supervisor.status()["session_id"].clone();
    let agent = supervisor.agent_pid();
    rustix::process::kill_process(agent, Signal::KILL).expect("killed");
    supervisor.wait_for_state("exited", SOON);
    trial.answers();
    // What is offered then is to resume it.
    supervisor.review();
    supervisor.keys([key::ENTER]);
    let status = supervisor.wait_for_iteration(2, SOON);
    println!("before {session}, after {}", status["session_id"]);
    trial.goes_on();
}

#[test]
#[ignore = "a fault of `cargo run --example faults`"]
fn stopped_again_and_again_it_is_continued_by_keys() {
    let trial = Trial::begin(&demo());
    let supervisor = &trial.supervisor;
    let agent = supervisor.agent_pid();
    for _ in 0..20 {
        rustix::process::kill_process(agent, Signal::STOP).expect("stopped");
        supervisor.wait_for_state("unknown", SOON);
        supervisor.keys(["x"]);
        supervisor.wait_for_state("idle", SOON);
    }
    trial.goes_on();
}

#[test]
#[ignore = "a fault of `cargo run --example faults`"]
fn that_stops_itself_is_continued_by_a_key() {
    let supervisor = shell("echo BEFORE; kill -STOP $$; echo BEHIND; exec cat").start();
    supervisor.wait_for_state("unknown", SOON);
    supervisor.keys(["x"]);
    supervisor.wait_for_text("BEHIND", SOON);
    leaves(&supervisor);
}

#[test]
#[ignore = "a fault of `cargo run --example faults`"]
fn that_exits_at_once_leaves_its_last_words() {
    let supervisor = shell("echo LAST WORDS; exit 7").start();
    supervisor.wait_for_text("LAST WORDS", SOON);
    supervisor.wait_for_state("exited", SOON);
    supervisor.wait_for_text("7", SOON);
    leaves(&supervisor);
}

#[test]
#[ignore = "a fault of `cargo run --example faults`"]
fn that_closes_its_terminal_is_ended_all_the_same() {
    let supervisor = shell("echo BEFORE; exec <&- >&- 2>&-; exec sleep 1000").start();
    supervisor.wait_for_text("BEFORE", SOON);
    supervisor.keys([key::F1]);
    supervisor.wait_for_text("In the review", SOON);
    supervisor.keys([key::ESC]);
    leaves(&supervisor);
}

#[test]
#[ignore = "a fault of `cargo run --example faults`"]
fn that_leaves_a_process_on_its_terminal_is_rebooted() {
    let trial = Trial::begin(&demo().behind("set -m; sleep 60 & set +m"));
    trial.answers();
    trial.reboots();
    let left = || {
        let all = processes_of(trial.home()).into_iter();
        all.filter(|one| one.command.starts_with("sleep 60"))
            .map(|one| one.pid)
    };
    assert!(left().count() > 0, "the first agent has left one");
    trial.supervisor.keys([key::F10]);
    let exit = trial.supervisor.wait_for_exit(SOON);
    assert_eq!((exit.code, exit.signal), (0, None));
    // They have left the agent's group, and are not ours to end.
    for pid in left() {
        let pid = Pid::from_raw(pid).expect("a process");
        let _ = rustix::process::kill_process(pid, Signal::KILL);
    }
}

#[test]
#[ignore = "a fault of `cargo run --example faults`"]
fn that_dies_in_a_synchronized_frame_leaves_what_it_has_drawn() {
    let supervisor =
        shell("printf '\\033[?1003h\\033[?2004h\\033[?2026hHALF A FRAME'; kill -KILL $$").start();
    supervisor.wait_for_text("HALF A FRAME", SOON);
    supervisor.wait_for_state("exited", SOON);
    supervisor.keys([key::F1]);
    supervisor.wait_for_text("In the review", SOON);
    supervisor.keys([key::ESC]);
    leaves(&supervisor);
}
