//! Where pitstop keeps its own things: one supervisor a project, and what happens when these places vanish.

use std::{
    cell::Cell,
    fs,
    os::unix::fs::symlink,
    path::PathBuf,
    time::{Duration, Instant},
};

use pitstop_base::process;
use pitstop_core::lineage::Project;
use pitstop_store::{HistoryOf, RunHistory, Store, StoreOptions, StoreTarget};
use rustix::process::{Pid, Signal};
use serde_json::Value;

use crate::attach::call;
use crate::kit::{
    client::is_at_least,
    messages_api::Answer,
    small_disk::SmallDisk,
    supervisor::{
        Launch, SOON, Supervisor, group_members, key, remove, replace_by_file, wait_for_end,
    },
    terminal::{Exit, Terminal},
};

/// How long nothing is to happen until a supervisor is asleep.
const ASLEEP: Duration = Duration::from_secs(10);

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
    second.wait_for_text(words, SOON);
    assert_eq!(first.agent_pid(), agent);
    assert!(!group_members(agent).is_empty(), "the agent goes on");
    first.wait_for_state("idle", SOON);
}

#[test]
fn a_second_pitstop_is_refused_and_the_agent_of_the_first_goes_on() {
    let first = demo().start_idle();
    let launch = first.launch.clone();
    a_second_is_refused(&first, &launch, "pitstop is already running here (pid");

    let link = launch.the_home().path("link");
    symlink(launch.project(), &link).expect("a link");
    let by_link = launch.clone().in_directory(&link);
    a_second_is_refused(&first, &by_link, "pitstop is already running here (pid");

    // As `git clean -fdx` does.
    remove(&launch.project().join(".pitstop"));
    a_second_is_refused(&first, &launch, "pitstop is already running here (pid");
}

/// An agent that ends once this file is in its project, whatever it is sent before.
const UNTIL: &str = "the-end";

/// Has a session end whose agent does not, starts this beside it, and then lets the agent end.
#[track_caller]
fn is_waited_for(first: &Supervisor, second: impl FnOnce() -> Terminal) -> Terminal {
    first.wait_for_text("READY", SOON);
    let agent = first.agent_pid();
    assert_eq!(first.ctl("stop").0, 0);
    first.wait_for_status(|status| status["quitting"] == true);
    let second = second();
    second.wait_for_text("waiting for the session before to end", SOON);
    assert!(!group_members(agent).is_empty(), "it goes on");
    fs::write(first.launch.project().join(UNTIL), "").expect("a file");
    assert_eq!(first.wait_for_exit(SOON).code, 0);
    second
}

#[test]
fn a_session_that_ends_is_waited_for_by_the_next_start() {
    let slow = format!("until [ -e {UNTIL} ]; do sleep 0.1; done");
    let agent = format!("sh -c \"trap '' HUP INT TERM; echo READY; {slow}\"");
    let launch = Launch::generic(&agent).set("reboot.exit_timeout=\"30s\"");
    let plain = "#!/bin/sh\necho PLAIN\nexec cat\n";
    let script = launch.the_home().program("plain.sh", plain);
    let config = launch.the_home().path("config/pitstop/config.toml");
    fs::create_dir_all(config.parent().expect("a directory")).expect("a directory");
    let command = format!("[agent]\ncommand = \"{}\"\n", script.display());
    fs::write(config, command).expect("a configuration");

    let mut first = launch.start();
    first.check_nothing();
    let size = (140, 45);
    // With words of its own, and as it is called most often, where it would otherwise show what ends.
    let demo = is_waited_for(&first, || {
        call(
            &launch,
            launch.project(),
            size,
            &["demo", "--here", "--", "--model", "claude-demo-1"],
        )
    });
    demo.wait_for_text("idle", SOON);
    assert_eq!(first.ctl("stop").0, 0);
    assert_eq!(demo.wait_for_exit(SOON).code, 0);
    fs::remove_file(launch.project().join(UNTIL)).expect("removed");

    let mut first = launch.start();
    first.check_nothing();
    let plain = is_waited_for(&first, || call(&launch, launch.project(), size, &[]));
    plain.wait_for_text("PLAIN", SOON);
    assert_eq!(first.ctl("stop").0, 0);
    assert_eq!(plain.wait_for_exit(SOON).code, 0);
    wait_for_end(launch.the_home());
}

#[test]
fn with_the_lock_removed_the_socket_of_the_first_keeps_a_second_out() {
    let first = demo().start_idle();
    let launch = first.launch.clone();
    remove(&state(&launch, "projects"));
    a_second_is_refused(&first, &launch, "pitstop is already running here");
}

#[test]
fn of_five_that_start_at_once_exactly_one_gets_in() {
    let launch = demo();
    let mut racers: Vec<Supervisor> = (0..5).map(|_| launch.start()).collect();
    for racer in &mut racers {
        racer.check_nothing();
    }
    racers[0].wait_until("four are refused", || {
        racers
            .iter()
            .filter(|racer| !racer.terminal.has_ended())
            .count()
            <= 1
    });
    let status = racers[0].wait_for_state("idle", SOON);
    let winner = status["pid"].as_i64().expect("its number");
    for racer in &racers {
        let wins = !racer.terminal.has_ended();
        if wins {
            assert_eq!(i64::from(racer.pid().as_raw_nonzero().get()), winner);
            racer.signal(rustix::process::Signal::TERM);
        }
        let exit: Exit = racer.wait_for_exit(SOON + Duration::from_secs(1));
        assert_eq!(exit.signal, None);
        assert_eq!(exit.code == 1, !wins, "{}", racer.screen());
    }
}

/// The whole of a turn, reported by hooks.
#[track_caller]
fn a_turn(supervisor: &Supervisor, number: usize) {
    supervisor.wait_for_state("idle", SOON);
    supervisor.prompt(&format!("prompt {number}"));
    // The handoff's panel quotes the last one, with a mark of its own.
    let texts = ["\u{25cf} Understood.", "\u{23fa} Understood."];
    let replies = || {
        let screen = supervisor.screen();
        let counts = texts.iter().map(|text| screen.matches(text).count());
        counts.sum::<usize>() == number
    };
    supervisor.wait_until("the turn's reply", replies);
    let rests =
        |status: &Value| status["agent"]["state"] == "idle" && status["agent"]["hooked"] == true;
    supervisor.wait_for_status(rests);
}

fn a_removed_directory_of_the_socket_is_made_again(launch: &Launch) {
    let supervisor = launch.start();
    a_turn(&supervisor, 1);
    let agent = supervisor.agent_pid();
    remove(&supervisor.launch.the_home().path("state/pitstop/run"));
    supervisor.wait_for_log("was removed: made again", SOON);
    a_turn(&supervisor, 2);
    assert_eq!(supervisor.agent_pid(), agent);
    a_second_is_refused(&supervisor, &supervisor.launch, "already running here");
}

#[test]
fn a_removed_directory_of_the_socket_is_made_again_and_hooks_arrive_again() {
    a_removed_directory_of_the_socket_is_made_again(&demo());
}

#[test]
#[ignore = "live: needs PITSTOP_CLAUDE"]
fn the_real_client_s_hooks_arrive_again_once_the_socket_is_made_again() {
    let launch = Launch::live().agent_args(["--model", "claude-sonnet-4-5"]);
    launch
        .api()
        .answer([Answer::text("Understood."), Answer::text("Understood.")]);
    a_removed_directory_of_the_socket_is_made_again(&launch);
}

#[test]
#[ignore = "live: needs PITSTOP_CLAUDE"]
fn the_real_client_goes_on_when_the_run_s_directory_was_removed() {
    let launch = Launch::live().agent_args(["--model", "claude-sonnet-4-5"]);
    launch
        .api()
        .answer([Answer::text("Understood."), Answer::text("Understood.")]);
    let supervisor = launch.start();
    a_turn(&supervisor, 1);
    remove(&launch.project().join(".pitstop"));
    supervisor.wait_for_log("the run's directory was removed: made again", SOON);
    // Its settings are gone and there again: its hooks are in force.
    a_turn(&supervisor, 2);
}

#[test]
fn where_the_directory_of_the_socket_cannot_be_made_another_serves() {
    let supervisor = demo().start();
    a_turn(&supervisor, 1);
    let run = supervisor.launch.the_home().path("state/pitstop/run");
    replace_by_file(&run);
    supervisor.wait_for_log("/tmp/pitstop-", SOON);
    // The hooks of this session were given a path that is gone.
    a_turn(&supervisor, 2);
    supervisor.keys([key::F5]);
    supervisor.wait_for_text("approve", SOON);
    supervisor.keys([key::ENTER]);
    supervisor.wait_for_iteration(2, SOON);
    // And when it can be made again, it is.
    fs::remove_file(&run).expect("removed");
    let control = || fs::read_dir(&run).is_ok_and(|files| files.count() >= 2);
    supervisor.wait_until("the tokens are back", control);
    supervisor.wait_for_state("idle", SOON);
}

#[test]
#[ignore = "live: needs PITSTOP_CLAUDE"]
fn the_real_client_s_bridge_finds_a_socket_that_was_made_again_and_one_that_has_moved() {
    assert!(is_at_least(287), "this client runs no mods");
    let supervisor = Launch::live().set("reboot.mode=\"manual\"").start();
    let reports = |characters: u64| {
        supervisor
            .wait_for_status(|status| status["agent"]["bridge"]["draft_characters"] == characters);
    };
    reports(0);
    supervisor.wait_for_state("idle", SOON);
    let run = supervisor.launch.the_home().path("state/pitstop/run");
    remove(&run);
    supervisor.wait_for_log("was removed: made again", SOON);
    // What is reported while there is no socket is lost: typing goes on until one is heard.
    let hears = |text: &str| {
        let before = supervisor.status()["agent"]["bridge"]["draft_characters"].as_u64();
        supervisor.keys([text]);
        let status = supervisor.status();
        status["agent"]["bridge"]["draft_characters"].as_u64() != before
    };
    supervisor.wait_until("a draft is reported", || hears("a"));
    replace_by_file(&run);
    supervisor.wait_for_log("/tmp/pitstop-", SOON);
    supervisor.wait_until("a draft is reported again", || hears("b"));
    assert_eq!(supervisor.status()["agent"]["bridge"]["state"], "in_force");
}

/// A client that looks for them only then reads them again.
#[test]
fn the_mods_of_a_session_are_written_again_with_the_run_s_directory() {
    let supervisor = demo().env("PITSTOP_DEMO_BRIDGE", "1").start();
    let in_force = |status: &Value| status["agent"]["bridge"]["state"] == "in_force";
    supervisor.wait_for_status(in_force);
    let files = supervisor.launch.project().join(".pitstop");
    let runs = fs::read_dir(files.join("runs")).expect("runs");
    let run = runs.flatten().next().expect("the run").path();
    let mods = run.join("iteration-1/bridge");
    let text = |file: &str| fs::read_to_string(mods.join(file)).unwrap_or_default();
    let written = [
        "pitstop/hooks/register.js",
        "pitstop/hooks/tools.js",
        "pitstop-answer/hooks/register.js",
    ];
    let before = written.map(text);
    assert!(before.iter().all(|text| !text.is_empty()));
    remove(&files);
    let back = || written.map(text) == before;
    supervisor.wait_until("the mods are back", back);
}

#[test]
fn what_is_removed_of_the_project_s_own_files_is_made_again() {
    const NOTES: &str = "# Scratchpad\n\n## Current Understanding\nfeeds are parsed\n";
    let launch = demo().notes(NOTES);
    let supervisor = launch.start();
    a_turn(&supervisor, 1);
    let files = launch.project().join(".pitstop");
    let run = || fs::read_dir(files.join("runs")).ok()?.next()?.ok();
    let run = run().expect("the run").path();
    remove(&files);
    // As any write of a file in it does, most often before anything looks.
    fs::create_dir_all(&run).expect("made");
    supervisor.wait_for_log("the run's directory was removed: made again", SOON);
    let back = || fs::read_to_string(files.join("scratchpad.md")).is_ok_and(|text| text == NOTES);
    supervisor.wait_until("the scratchpad is back", back);
    let has = |name: &str| run.join(name).exists();
    let all = || has("meta.json") && has("iteration-1/settings.json");
    supervisor.wait_until("its record and settings are back", all);
    let recording = run.join("iteration-1/pane.cast");
    // An edit of the file is seen again.
    fs::write(files.join("scratchpad.md"), format!("{NOTES}by hand\n")).expect("written");
    supervisor.wait_for_handoff("by hand");
    drop(supervisor);
    let cast = fs::read_to_string(recording).expect("a recording");
    assert!(cast.contains("Understood."), "what was drawn is in it");
}

#[test]
fn a_supervisor_whose_project_another_has_taken_leaves_its_places_alone() {
    let first = demo().start_idle();
    let (launch, pid) = (first.launch.clone(), first.pid());
    // It sees nothing while its state directory is removed and made again by another one.
    rustix::process::kill_process(pid, Signal::STOP).expect("stopped");
    remove(&launch.the_home().path("state/pitstop"));
    let second = launch.start_idle();
    rustix::process::kill_process(pid, Signal::CONT).expect("continued");
    first.wait_for_text("files are gone", SOON);
    a_turn(&second, 1);
    let log = second.log();
    assert!(!log.contains("was removed: made again"), "{log}");
    let (mut first, mut second) = (first, second);
    for one in [pid, second.pid()] {
        rustix::process::kill_process(one, Signal::TERM).expect("asked to end");
    }
    first.check_nothing();
    second.check_nothing();
    wait_for_end(launch.the_home());
}

#[test]
fn a_lock_that_is_removed_is_made_again() {
    let supervisor = demo().start();
    a_turn(&supervisor, 1);
    let launch = supervisor.launch.clone();
    remove(&state(&launch, "projects"));
    supervisor.wait_for_log("the project's lock was removed: made again", SOON);
    a_second_is_refused(&supervisor, &launch, "pitstop is already running here (pid");
    // An agent that outlives a killed supervisor is still found.
    let agent = supervisor.agent_pid();
    let held = group_members(agent);
    assert!(!held.is_empty());
    let text = fs::read_dir(state(&launch, "projects"))
        .expect("projects")
        .flatten()
        .find_map(|project| fs::read_to_string(project.path().join("agents")).ok());
    let number = format!("\"pid\":{}", agent.as_raw_nonzero());
    assert!(text.is_some_and(|text| text.contains(&number)));
}

#[test]
fn an_unattended_run_outlives_the_directory_of_its_socket() {
    let launch = Launch::demo()
        .env("PITSTOP_DEMO_PACE_MS", "150")
        .env("PITSTOP_DEMO_ITEMS", "8")
        .order([
            "--task",
            "Build tidepool",
            "--until",
            "ALL DONE",
            "--headless",
            "--json",
        ]);
    let mut run = launch.start_headless();
    run.wait_until("a turn is over", |run| run.count("turn_ended") >= 1);
    replace_by_file(&launch.the_home().path("state/pitstop/run"));
    let code = run.wait_for_exit(SOON * 3);
    let lines = run.lines().join("\n");
    assert_eq!(code, Some(0), "{lines}");
    let said = |line: &&str| line.contains("notice") && line.contains("made again");
    assert!(lines.lines().any(|line| said(&line)), "{lines}");
}

/// How often the threads of a process have gone to sleep so far.
fn sleeps(process: Pid) -> u64 {
    let tasks = format!("/proc/{}/task", process.as_raw_nonzero());
    let status = |task: fs::DirEntry| fs::read_to_string(task.path().join("status")).ok();
    let count = |status: String| {
        let line = "voluntary_ctxt_switches:";
        let found = status.lines().find_map(|found| found.strip_prefix(line));
        found.and_then(|count| count.trim().parse::<u64>().ok())
    };
    let tasks = fs::read_dir(tasks).expect("Linux").flatten();
    tasks.filter_map(status).filter_map(count).sum()
}

/// Waits until nothing has woken a supervisor for [`ASLEEP`].
#[track_caller]
fn falls_asleep(supervisor: &Supervisor) {
    let own = || sleeps(supervisor.pid());
    let last = Cell::new((own(), Instant::now()));
    let sleeps = || {
        let now = own();
        if now != last.get().0 {
            last.set((now, Instant::now()));
        }
        last.get().1.elapsed() > ASLEEP
    };
    supervisor.wait_until("nothing wakes it", sleeps);
}

#[test]
fn an_idle_supervisor_sleeps_and_wakes_when_a_place_of_its_own_is_removed() {
    // The bridge asks for orders every ten seconds.
    let supervisor = demo().set("agent.bridge=false").start();
    a_turn(&supervisor, 1);
    falls_asleep(&supervisor);
    remove(&supervisor.launch.the_home().path("state/pitstop/run"));
    supervisor.wait_for_log("was removed: made again", SOON);
    falls_asleep(&supervisor);
    // What was made again is watched as well.
    remove(&supervisor.launch.the_home().path("state/pitstop/run"));
    let again = || supervisor.log().matches("was removed: made again").count() == 2;
    supervisor.wait_until("it is made again", again);
    a_turn(&supervisor, 2);
}

#[test]
fn an_idle_supervisor_of_any_other_program_sleeps_too() {
    let supervisor = Launch::generic("sh -c 'echo READY; cat'").start();
    supervisor.wait_for_text("READY", SOON);
    falls_asleep(&supervisor);
}

/// The project's runs in the database, newest first.
fn history(launch: &Launch) -> Vec<RunHistory> {
    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    runtime.block_on(async {
        let target = StoreTarget::new(None, &state(launch, "")).expect("a target");
        let opened = Store::open(StoreOptions::new(target)).await;
        let store = opened.expect("a store").store;
        let project = Project::new(launch.project(), &process::host_name());
        let found = store.history(&HistoryOf::Project(project), 5).await;
        store.close().await;
        found.expect("a history")
    })
}

#[test]
fn a_database_that_is_removed_is_made_again_from_what_the_runs_know() {
    let launch = demo();
    let first = launch.start();
    a_turn(&first, 1);
    drop(first);
    let second = launch.start();
    a_turn(&second, 1);
    let run = second.status()["run_id"].as_str().unwrap().to_owned();
    for end in ["", "-wal", "-shm"] {
        // The last two may not be there.
        let _ = fs::remove_file(state(&launch, &format!("pitstop.db{end}")));
    }
    second.wait_for_log("pitstop.db was removed", SOON);
    second.wait_for_text("works again", SOON);
    drop(second);
    let known = history(&launch);
    let turns: Vec<usize> = known.iter().map(|run| run.iterations.len()).collect();
    assert_eq!(turns, [1, 1], "both runs are known");
    // Two runs of one second have no order but that of their names.
    let ours = known.iter().find(|known| known.run.run.to_string() == run);
    assert_eq!(ours.expect("the run itself").run.agent, "pitstop demo");
    assert!(known.iter().all(|run| run.run.ended_at.is_some()));
}

#[test]
#[ignore = "needs PITSTOP_TEST_SMALL_DISK=<a directory on a file system of about 1 MiB>"]
fn with_the_state_s_disk_full_at_the_start_one_gets_in_and_a_second_does_not() {
    let disk = SmallDisk::new();
    disk.fill();
    // The demo keeps its own sessions there.
    let launch = Launch::generic("sh -c 'echo READY; cat'").env("XDG_STATE_HOME", disk.path());
    let first = launch.start_showing("READY");
    let agent = first.agent_pid();
    let mut second = launch.start();
    second.check_nothing();
    assert_eq!(second.wait_for_exit(SOON).code, 1);
    second.wait_for_text("already running here", SOON);
    assert!(!group_members(agent).is_empty(), "the agent goes on");
}
