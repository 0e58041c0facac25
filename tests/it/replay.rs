//! Recordings, played in the history and elsewhere.

use std::{
    fs,
    path::PathBuf,
    process::{Command, Stdio},
};

use crate::kit::supervisor::{Launch, SOON, Supervisor, key};

/// A supervisor whose hosted program has written this by a shell script and waits.
fn recorded(script: &str) -> Supervisor {
    recorded_by(Launch::generic("sh child.sh"), script)
}

fn recorded_by(launch: Launch, script: &str) -> Supervisor {
    let launch = launch.set("reboot.mode=\"manual\"");
    let text = format!("{script}; printf READY; exec sleep 1000\n");
    fs::write(launch.project().join("child.sh"), text).expect("a script");
    launch.start_showing("READY")
}

fn recording(supervisor: &Supervisor) -> PathBuf {
    let runs = supervisor.launch.project().join(".pitstop/runs");
    let run = fs::read_dir(runs).expect("runs").flatten().next();
    run.expect("a run").path().join("iteration-1/pane.cast")
}

#[test]
fn the_recording_of_an_iteration_is_played_in_the_history() {
    let supervisor = recorded("echo first words; sleep 0.3; clear; echo later words");
    let terminal = &supervisor.terminal;
    supervisor.keys([key::F6, "p"]);
    terminal.wait_for_text("Recording of iteration 1", SOON);
    // It plays by itself, to the end.
    terminal.wait_for(
        |screen| screen.contains("later wordsREADY") || screen.contains("later words"),
        SOON,
    );
    supervisor.keys(["G"]);
    terminal.wait_for_text("READY", SOON);
    supervisor.keys([",", ",", ","]);
    terminal.wait_for_text("first words", SOON);
    terminal.wait_for_text("‖ 0:00", SOON);
    supervisor.keys([key::ESC]);
    terminal.wait_for(
        |screen| !screen.contains("Recording of") && screen.contains("later words"),
        SOON,
    );
}

/// Where the person is five hours ahead of UTC.
#[test]
fn times_on_the_screen_are_local_and_those_for_programs_are_not() {
    let launch = Launch::generic("sh child.sh").env("TZ", "XYZ-5");
    let supervisor = recorded_by(launch, "echo hello");
    let history = supervisor.history();
    let started = history["iterations"][0]["started_at"].as_str();
    let started = started.and_then(|at| at.parse::<chrono::DateTime<chrono::Utc>>().ok());
    let local = started.expect("a moment in UTC") + chrono::TimeDelta::hours(5);
    supervisor.keys([key::F6, key::ENTER]);
    let said = local.format("%Y-%m-%d %H:%M, with the run").to_string();
    supervisor.wait_for_text(&said, SOON);
}

#[test]
fn what_is_typed_is_recorded_only_where_that_is_wanted() {
    for wanted in [true, false] {
        let launch =
            Launch::generic("sh child.sh").set(&format!("recording.record_input={wanted}"));
        let supervisor = recorded_by(launch, "true");
        let path = recording(&supervisor);
        supervisor.keys(["ä", key::ENTER]);
        supervisor.wait_for_text("ä", SOON);
        supervisor.ctl("stop");
        supervisor.wait_for_exit(SOON);
        let lines = fs::read_to_string(path).expect("a recording");
        let typed = |text: &str| lines.contains(&format!("\"i\",\"{text}\""));
        assert_eq!(typed("ä\\r"), wanted, "{lines}");
        assert!(wanted || !lines.contains("\"i\""), "{lines}");
    }
}

#[test]
fn a_recording_that_was_tampered_with_is_reported_and_harms_nothing() {
    let supervisor = recorded("true");
    let path = recording(&supervisor);
    fs::remove_file(&path).expect("a recording");
    fs::write(&path, "{\"version\": 9}\u{1b}]52;c;x\u{7}\n").expect("a file");
    supervisor.keys([key::F6, "p"]);
    supervisor.wait_for_text("cannot be replayed", SOON);
    fs::remove_file(&path).expect("a file");
    supervisor.keys(["p"]);
    supervisor.wait_for_text("it was not recorded", SOON);
}

#[test]
#[ignore = "needs asciinema"]
fn asciinema_plays_the_recording() {
    let supervisor = recorded("printf 'r\\303\\251sum\\303\\251 \\033[31mred\\033[0m\\r\\n'");
    let path = recording(&supervisor);
    // The recording is written in blocks: an agent that has ended has been written whole.
    supervisor.keys([key::F6, "p"]);
    supervisor.wait_for_text("Recording of iteration 1", SOON);
    // It wants a terminal of its own, even to print.
    let output = Command::new("script")
        .arg("-qec")
        .arg(format!("asciinema cat '{}'", path.display()))
        .arg("/dev/null")
        .stdin(Stdio::null())
        .output()
        .expect("script");
    assert!(output.status.success(), "{output:?}");
    let text = String::from_utf8(output.stdout).expect("UTF-8");
    assert!(text.contains("résumé \u{1b}[31mred\u{1b}[0m"), "{text:?}");
}
