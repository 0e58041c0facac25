//! Kills while a person writes, at moments that no test has chosen.

use std::{env, thread, time::Duration};

use rustix::process::Signal;

use super::{Moments, demo};
use crate::{
    attach::call,
    kit::{
        poll,
        supervisor::{Launch, SOON, Supervisor, agents, key, wait_for_end},
    },
};

/// How many kills are made for each place; `PITSTOP_TEST_KILLS` asks for more.
fn wanted() -> usize {
    let wanted = env::var("PITSTOP_TEST_KILLS").ok();
    wanted.and_then(|count| count.parse().ok()).unwrap_or(3)
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
        supervisor.wait_for_text("Esc", SOON);
    }

    /// Returns the text that was written there, as the supervisor has it now.
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
fn kill_a_writer(launch: &Launch, place: Place, round: usize, moments: &mut Moments) -> Launch {
    let supervisor = launch.start_idle();
    place.open(&supervisor);
    let text = format!("mine {round} of {place:?} é");
    supervisor.keys([text.as_str()]);
    supervisor.wait_for_text(&text, SOON);
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
        let attached = call(launch, launch.project(), (140, 45), &["attach"]);
        (supervisor, Some(attached))
    };
    supervisor.wait_for_state("idle", SOON);
    let now = || match (place, &attached) {
        (Place::PromptBox, Some(attached)) => attached.screen_text(),
        _ => place.text(&supervisor),
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
        for round in 0..wanted() {
            // The texts that are put back must stand in one row, to be found on the screen.
            if round % 3 == 0 {
                launch = demo();
            }
            launch = kill_a_writer(&launch, place, round, &mut moments);
        }
    }
}
