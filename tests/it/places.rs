//! Where pitstop keeps its own things: one supervisor a project, and what happens when these places vanish.

use std::{fs, os::unix::fs::symlink, path::PathBuf, time::Duration};

use rustix::process::Pid;

use crate::kit::{
    supervisor::{Launch, SOON, Supervisor, group_members},
    terminal::Exit,
};

fn demo() -> Launch {
    Launch::quiet_demo().env("PITSTOP_DEMO_REPLY", "Understood.")
}

/// A directory below `state/pitstop`.
fn state(launch: &Launch, name: &str) -> PathBuf {
    launch.the_home().path("state/pitstop").join(name)
}

/// Starts a second supervisor, which is refused in these words; the first one's agent goes on.
#[track_caller]
fn a_second_is_refused(first: &Supervisor, second: &Launch, words: &str) {
    let agent = first.agent_pid();
    let mut second = second.start();
    second.check_nothing();
    let exit = second.wait_for_exit(SOON);
    assert_eq!((exit.code, exit.signal), (1, None));
    second.terminal.wait_for_text(words, SOON);
    assert_eq!(first.agent_pid(), agent);
    assert!(!group_members(agent).is_empty(), "the agent goes on");
    first.wait_for_state("idle", SOON);
}

#[test]
fn a_second_pitstop_is_refused_and_the_agent_of_the_first_goes_on() {
    let first = demo().start();
    first.wait_for_state("idle", SOON);
    let launch = first.launch.clone();
    a_second_is_refused(&first, &launch, "pitstop is already running here (pid");

    let link = launch.the_home().path("link");
    symlink(launch.project(), &link).expect("a link");
    let by_link = launch.clone().in_directory(&link);
    a_second_is_refused(&first, &by_link, "pitstop is already running here (pid");

    // As `git clean -fdx` does.
    fs::remove_dir_all(launch.project().join(".pitstop")).expect("removed");
    a_second_is_refused(&first, &launch, "pitstop is already running here (pid");
}

#[test]
fn with_the_lock_removed_the_socket_of_the_first_keeps_a_second_out() {
    let first = demo().start();
    first.wait_for_state("idle", SOON);
    let launch = first.launch.clone();
    fs::remove_dir_all(state(&launch, "projects")).expect("removed");
    a_second_is_refused(&first, &launch, "pitstop is already running here");
}

#[test]
fn of_five_that_start_at_once_exactly_one_gets_in() {
    let launch = demo();
    let mut racers: Vec<Supervisor> = (0..5).map(|_| launch.start()).collect();
    for racer in &mut racers {
        racer.check_nothing();
    }
    let own: Vec<Pid> = racers.iter().map(|racer| racer.terminal.pid()).collect();
    racers[0].wait_until(
        "four are refused",
        || {
            let alive = |pid: &&Pid| !group_members(**pid).is_empty();
            own.iter().filter(alive).count() <= 1
        },
        SOON,
    );
    let status = racers[0].wait_for_state("idle", SOON);
    let winner = status["pid"].as_i64().expect("its number");
    for racer in &racers {
        if i64::from(racer.terminal.pid().as_raw_nonzero().get()) == winner {
            racer.terminal.signal(rustix::process::Signal::TERM);
        }
        let exit: Exit = racer.wait_for_exit(SOON + Duration::from_secs(1));
        assert_eq!(exit.signal, None);
        if i64::from(racer.terminal.pid().as_raw_nonzero().get()) != winner {
            assert_eq!(exit.code, 1, "{}", racer.screen());
        }
    }
}
