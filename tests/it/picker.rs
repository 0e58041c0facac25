//! The list that `pitstop` shows at its start where there is earlier work, and `pitstop ls` on a terminal.

use std::fs;

use rustix::process::Signal;

use crate::{
    attach::{call, same_screen},
    kit::{
        messages_api::Answer,
        supervisor::{Launch, SOON, Supervisor, wait_for_end},
    },
};

/// A size in which the details of a row are seen.
const SIZE: (u16, u16) = (140, 45);

#[test]
fn a_session_is_chosen_among_those_that_run() {
    let home = Launch::quiet_demo().the_home().clone();
    let began = |name: &str| {
        let project = home.path(name);
        fs::create_dir_all(&project).unwrap();
        let launch = Launch::quiet_demo().home(&home).in_directory(&project);
        let mut pitstop = launch.size(SIZE.0, SIZE.1).start();
        // Both have the same home, in which each would take the other for its own leftovers.
        pitstop.check_nothing();
        pitstop.wait_for_state("idle", SOON);
        pitstop
    };
    let (harbour, tides) = (began("harbour"), began("tides"));
    let list = || {
        let list = call(&harbour.launch, &home.path(""), SIZE, &["ls"]);
        list.wait_for_text("Enter attach", SOON);
        list
    };
    let chosen = list();
    chosen.send("/TIDES\r\r");
    same_screen(&tides.terminal, &chosen, SOON);
    chosen.send("\u{11}d");
    assert_eq!(chosen.wait_for_exit(SOON).code, 0);
    // It follows the sessions.
    let watched = list();
    tides.signal(Signal::TERM);
    watched.wait_for(|text| !text.contains("tides"), SOON);
    watched.send("q");
    assert_eq!(watched.wait_for_exit(SOON).code, 0);
    assert_eq!(watched.modes_left_on(), [""; 0]);
    assert!(watched.has_its_settings_back());
    // A signal leaves a usable terminal, too.
    let signalled = list();
    signalled.signal(Signal::TERM);
    assert_eq!(signalled.wait_for_exit(SOON).code, 143);
    assert_eq!(signalled.modes_left_on(), [""; 0]);
    assert!(signalled.has_its_settings_back());
    harbour.signal(Signal::TERM);
    for one in [&harbour, &tides] {
        one.wait_for_exit(SOON);
    }
}

#[test]
#[ignore = "live: needs PITSTOP_CLAUDE"]
fn a_session_that_was_cut_is_offered_with_what_it_was_about_and_how_it_ended() {
    let away = "pitstop or the machine went away in the middle of a turn";
    cut(away, "died", |supervisor| supervisor.signal(Signal::KILL));
    let closed = "its terminal was closed in the middle of a turn";
    cut(closed, "terminal closed in mid-turn", |supervisor| {
        supervisor.terminal.signal(Signal::HUP);
    });
}

/// Ends a session in the middle of a turn, and resumes it from the start screen.
fn cut(why: &str, listed: &str, end: impl FnOnce(&Supervisor)) {
    let launch = Launch::live()
        .size(SIZE.0, SIZE.1)
        .set("session.on_hangup=\"end\"")
        .asking();
    launch
        .api()
        .answer([Answer::text("I read the parser."), Answer::Stall]);
    let supervisor = launch.start_idle();
    supervisor.turn("Port the parser to Rust", "I read the parser.");
    supervisor.prompt("And its tests");
    launch.api().wait_for_calls(2, SOON);
    let kept = || {
        let transcripts = launch.the_home().transcripts();
        let said = |path| fs::read_to_string(path).unwrap_or_default();
        transcripts
            .iter()
            .any(|path| said(path).contains("And its tests"))
    };
    supervisor.wait_until("the prompt is on disk", kept);
    end(&supervisor);
    supervisor.wait_for_exit(SOON);
    wait_for_end(launch.the_home());

    launch.api().answer([Answer::text("Understood.")]);
    let again = launch.start();
    let offer = again.wait_for_text("Enter resume", SOON);
    for text in [
        "Port the parser to Rust",
        "And its tests",
        "I read the parser.",
        why,
    ] {
        assert!(offer.contains(text), "{text} in\n{offer}");
    }
    // What is typed behind the choice is typed into the session.
    again.terminal.send("\rtyped ahead");
    again.wait_for_state("idle", SOON);
    again.wait_for_text("typed ahead", SOON);
    again.wait_for_text("I read the parser.", SOON);
    // The client reports its start by a hook, which may come behind its first screen.
    let history = || String::from_utf8_lossy(&again.run(&["history", "--all"]).stdout).into_owned();
    again.wait_until("it is resumed", || history().contains(" resumed "));
    let history = history();
    assert!(history.contains(listed), "{listed} in\n{history}");
}

#[test]
fn a_session_that_runs_is_not_shown_for_a_new_one_that_is_asked_for() {
    let pitstop = Launch::quiet_demo().size(SIZE.0, SIZE.1).start_idle();
    let launch = &pitstop.launch;
    let list = call(launch, launch.project(), SIZE, &["ls"]);
    list.wait_for_text("Enter attach", SOON);
    list.send("n");
    // If it had attached, it would go on.
    assert_ne!(list.wait_for_exit(SOON).code, 0);
    assert!(list.has_its_settings_back());
}
