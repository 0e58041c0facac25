//! The scratchpad between a person, the agent and the disk, from end to end.

use std::fs;

use crate::{
    kit::{
        events::Events,
        messages_api::Answer,
        supervisor::{Launch, SOON, Supervisor, key},
    },
    reboot::reboot,
};

const MINE: &str = "- [ ] never touch the release branch";

fn signal(n: usize) -> String {
    format!(
        "SCRATCHPAD:\n## Current Plan\n- [x] step {n}\n- [ ] step {}\nSIGNAL:\nnoted {n}",
        n + 1
    )
}

fn live(turns: &[String]) -> Launch {
    let launch = Launch::live().set("reboot.mode=\"manual\"");
    launch
        .api()
        .answer(turns.iter().map(|turn| Answer::text(turn)));
    launch
}

/// Types a line at the top of the scratchpad's panel.
fn write_by_hand(supervisor: &Supervisor, line: &str) {
    supervisor.keys([key::F3, "e", line, "\r", key::ESC]);
    supervisor.wait_for_notes(line);
    supervisor.keys([key::ESC]);
}

/// What a person has written survives signals, two reboots and a crash.
#[test]
#[ignore = "live: needs PITSTOP_CLAUDE"]
fn a_line_by_hand_survives_signals_reboots_and_a_crash() {
    let handoff = || "Understood.".to_owned();
    let turns = [
        signal(1),
        signal(2),
        handoff(),
        signal(3),
        handoff(),
        signal(4),
    ];
    let launch = live(&turns);
    let supervisor = launch.start_idle();
    write_by_hand(&supervisor, MINE);
    let noted = |supervisor: &Supervisor, n: usize| {
        supervisor.prompt(&format!("go on {n}"));
        supervisor.wait_for_notes(&format!("- [x] step {n}\n"));
        supervisor.wait_for_state("idle", SOON);
        let notes = supervisor.notes();
        assert!(notes.contains(MINE), "after signal {n}:\n{notes}");
        assert!(!notes.contains(&format!("step {}\n", n + 2)), "{notes}");
    };
    noted(&supervisor, 1);
    noted(&supervisor, 2);
    reboot(&supervisor);
    noted(&supervisor, 3);
    let (shown, _) = reboot(&supervisor);
    assert!(shown.contains("never touch the release branch"), "{shown}");
    supervisor.wait_for_state("idle", SOON);
    let launch = supervisor.kill();
    let supervisor = launch.start_idle();
    assert!(supervisor.notes().contains(MINE), "{}", supervisor.notes());
    noted(&supervisor, 4);
    // An earlier version can be looked at.
    supervisor.keys([key::F3, "v"]);
    supervisor.wait_for_text("written by", SOON);
    supervisor.keys([key::ESC, key::ESC]);
}

#[test]
#[ignore = "live: needs PITSTOP_CLAUDE"]
fn the_real_clients_own_write_leaves_a_persons_line() {
    let launch = live(&[]);
    let write = Answer::Tool {
        name: "Write".into(),
        input: serde_json::json!({
            "file_path": launch.scratchpad(),
            "content": "## Current Plan\n- [ ] by the tool\n",
        }),
    };
    let read = Answer::Tool {
        name: "Read".into(),
        input: serde_json::json!({ "file_path": launch.scratchpad() }),
    };
    let done = Answer::text("Done.");
    let after = Answer::text(&signal(1));
    launch.api().answer([read, write, done, after]);
    let supervisor = launch.start_idle();
    write_by_hand(&supervisor, MINE);
    supervisor.prompt("write your plan");
    let both = || {
        let notes = supervisor.notes();
        notes.contains("- [ ] by the tool\n") && notes.contains(MINE)
    };
    supervisor.wait_until("both are in the file", both);
    supervisor.wait_for_state("idle", SOON);
    // The agent's own line is the agent's to remove.
    supervisor.prompt("go on");
    let gone = || !supervisor.notes().contains("by the tool");
    supervisor.wait_until("the agent's line is gone", gone);
    assert!(supervisor.notes().contains(MINE), "{}", supervisor.notes());
}

/// A demo with a note that cannot be saved: nothing can be written where a directory stands.
fn with_unsaved_note() -> Supervisor {
    let launch = Launch::manual_demo("- [ ] next\n");
    let supervisor = launch.start_idle();
    fs::remove_file(launch.scratchpad()).expect("it is there");
    fs::create_dir(launch.scratchpad()).expect("a directory");
    supervisor.keys([key::F3, "e", "mine ", key::ESC]);
    supervisor.wait_for_text("Scratchpad · not saved", SOON);
    supervisor
}

#[test]
fn a_note_that_the_disk_does_not_take_is_marked_asked_about_and_comes_back() {
    let supervisor = with_unsaved_note();
    let launch = &supervisor.launch;
    supervisor.keys([key::ESC, key::F10]);
    supervisor.wait_for_text("The scratchpad is not saved", SOON);
    supervisor.keys([key::ENTER]);
    assert_eq!(supervisor.wait_for_exit(SOON).code, 0);
    fs::remove_dir(launch.scratchpad()).expect("a directory");
    let supervisor = launch.start();
    supervisor.wait_for_notes("mine \n- [ ] next");
}

#[test]
fn a_note_is_saved_as_soon_as_the_disk_takes_it() {
    let supervisor = with_unsaved_note();
    let launch = &supervisor.launch;
    fs::remove_dir(launch.scratchpad()).expect("a directory");
    let saved = || supervisor.notes().contains("mine \n- [ ] next");
    supervisor.wait_until("the note is in the file", saved);
    supervisor
        .terminal
        .wait_for(|screen| !screen.contains("not saved"), SOON);
}

/// What the supervisor itself finds wrong is shown as anything else is.
#[test]
fn an_error_of_the_file_is_drawn_published_listed_and_taken_down() {
    let launch = Launch::manual_demo("- [ ] next\n");
    let supervisor = launch.start_idle();
    let mut events = Events::of(launch.the_home());
    let elsewhere = launch.the_home().path("elsewhere");
    fs::rename(launch.scratchpad(), &elsewhere).expect("it is there");
    std::os::unix::fs::symlink(&elsewhere, launch.scratchpad()).expect("a link");
    let text = "the scratchpad cannot be read: expected no link";
    supervisor.wait_for_text(text, SOON);
    let is_it = |notice: &serde_json::Value| {
        notice["text"]
            .as_str()
            .is_some_and(|one| one.starts_with(text))
            && notice["bad"] == true
    };
    events.wait_for("notice", is_it, SOON);
    supervisor
        .terminal
        .wait_for(|screen| !screen.contains(text), SOON);
    supervisor.keys([key::PREFIX, "l"]);
    supervisor.wait_for_text(text, SOON);
}

#[test]
fn a_scratchpad_that_was_removed_is_written_again() {
    let launch = Launch::manual_demo("- [ ] next\n");
    let supervisor = launch.start_idle();
    fs::remove_file(launch.scratchpad()).expect("it is there");
    let back = || fs::read_to_string(launch.scratchpad()).is_ok_and(|text| text == "- [ ] next\n");
    supervisor.wait_until("the file is back", back);
}
