//! The host terminal and the host machine: how pitstop starts, what it leaves behind, and what it bears.

use std::{
    fs,
    os::unix::fs::{MetadataExt as _, PermissionsExt as _, symlink},
    path::Path,
    process::{Command, Stdio},
    sync::atomic::{AtomicBool, Ordering},
    thread,
    time::{Duration, Instant},
};

use rustix::{process::Signal, pty::OpenptFlags};
use serde_json::Value;

use crate::attach::call;
use crate::kit::{
    messages_api::Answer,
    output::all,
    supervisor::{Launch, PITSTOP, SOON, Supervisor, key, look, processes_of},
    terminal::{Exit, beside_no_opening, open_pty},
};

/// How long a supervisor that is told to go may take, with a margin for a debug build on a
/// shared machine.
const LEAVE: Duration = Duration::from_secs(6);

fn demo() -> Launch {
    Launch::quiet_demo().env("PITSTOP_DEMO_REPLY", "Noted.")
}

/// The terminal is as it was, and nothing of the home lives.
#[track_caller]
fn check_clean(supervisor: &Supervisor, code: u32) -> Exit {
    let began = Instant::now();
    let exit = supervisor.wait_for_exit(LEAVE);
    println!("left after {:?}", began.elapsed());
    let terminal = &supervisor.terminal;
    assert_eq!(terminal.modes_left_on(), Vec::<&str>::new());
    assert!(
        terminal.has_its_settings_back(),
        "the line settings are as before"
    );
    assert_eq!(exit.code, code, "{exit:?}\n{}", supervisor.screen());
    supervisor.wait_until("no process is left", || {
        processes_of(supervisor.launch.the_home()).is_empty()
    });
    exit
}

/// How the last run's only iteration ended, by `meta.json` and by the store.
#[track_caller]
fn check_record(launch: &Launch, reason: &str) {
    check_ends(launch, reason, reason);
}

/// The only iteration has ended for one reason, the run for another.
#[track_caller]
fn check_ends(launch: &Launch, reason: &str, of_run: &str) {
    let output = launch.run(&["history", "--json"]);
    assert_eq!(output.status.code(), Some(0), "{}", all(&output));
    let history: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    assert_eq!(
        history["iterations"][0]["end_reason"], reason,
        "{history:#}"
    );
    let run = history["run_id"].as_str().expect("a run");
    let meta = launch
        .project()
        .join(".pitstop/runs")
        .join(run)
        .join("meta.json");
    let meta: Value = serde_json::from_slice(&fs::read(meta).expect("meta.json")).expect("JSON");
    assert_eq!(meta["iterations"][0]["end_reason"], reason, "{meta:#}");
    assert_eq!(meta["end"]["reason"], of_run, "{meta:#}");
    assert!(
        meta["end"]["exit_code"].is_u64() && meta["ended_at"].is_string(),
        "{meta:#}"
    );
}

#[test]
fn after_the_quit_key_the_terminal_is_as_before() {
    let supervisor = demo().start_idle();
    supervisor.quit();
    check_clean(&supervisor, 0);
    assert!(supervisor.screen().contains("1 iteration in run"));
    check_record(&supervisor.launch, "shutdown");
}

#[test]
fn a_signal_closes_the_record_and_restores_the_terminal() {
    for signal in [Signal::TERM, Signal::HUP, Signal::INT] {
        let supervisor = demo().start_idle();
        supervisor.signal(signal);
        check_clean(&supervisor, 130);
        check_record(&supervisor.launch, "shutdown");
    }
}

#[test]
fn a_signal_that_ends_programs_does_not_leave_the_terminal_in_disorder() {
    for signal in [
        Signal::QUIT,
        Signal::USR1,
        Signal::USR2,
        Signal::ALARM,
        Signal::XCPU,
        Signal::ABORT,
        Signal::XFSZ,
        Signal::VTALARM,
        Signal::PROF,
    ] {
        let supervisor = Launch::generic("cat").start_showing("F10 quit");
        supervisor.signal(signal);
        check_clean(&supervisor, 130);
    }
}

/// An agent of whose output no frame is like the one before.
const FLOOD: &str = "sh -c \"while :; do seq 1000 99999999; done\"";

/// A supervisor that is told to end while its terminal takes no more of a flood.
#[track_caller]
fn ended_while_stalled() -> Supervisor {
    let supervisor = Launch::generic(FLOOD).start();
    let terminal = &supervisor.terminal;
    terminal.wait_for_text("000", SOON);
    terminal.stall(true);
    supervisor.wait_until("the terminal is full", || terminal.is_full());
    supervisor.signal(Signal::TERM);
    supervisor
}

#[test]
fn a_terminal_that_stalls_while_output_flows_does_not_hold_up_the_end() {
    let supervisor = ended_while_stalled();
    let terminal = &supervisor.terminal;
    let began = Instant::now();
    assert_eq!(terminal.wait_for_end(LEAVE).code, 130);
    println!("left after {:?}", began.elapsed());
    assert!(terminal.has_its_settings_back());
    assert!(supervisor.log().contains("SIGTERM"));
    terminal.stall(false);
    supervisor.wait_for_exit(SOON);
}

#[test]
fn a_slow_terminal_is_restored_though_the_last_frame_is_cut() {
    let supervisor = ended_while_stalled();
    supervisor.terminal.stall(false);
    check_clean(&supervisor, 130);
    assert!(supervisor.screen().contains("1 iteration in run"));
}

#[test]
fn of_an_agents_group_nothing_is_left_and_what_has_left_it_is_named() {
    let launch = Launch::generic("sh many.sh");
    let script = "
        (trap '' HUP INT TERM; exec sleep 1000) &
        setsid sh -c 'trap \"\" HUP INT TERM; echo $$ >apart; exec sleep 1001' &
        exec cat";
    fs::write(launch.project().join("many.sh"), script).expect("written");
    let supervisor = launch.start();
    let apart = supervisor.launch.project().join("apart");
    let pid = || fs::read_to_string(&apart).ok()?.trim().parse::<i32>().ok();
    supervisor.wait_until("all are there", || pid().is_some());
    let runs = |command: &str| {
        let all = processes_of(supervisor.launch.the_home());
        all.iter().any(|one| one.command.starts_with(command))
    };
    let both = || runs("sleep 1000") && runs("sleep 1001");
    supervisor.wait_until("they ignore signals", both);
    assert_eq!(supervisor.quit().code, 0);
    let apart = pid().expect("a number");
    assert!(!runs("sleep 1000"), "it was in the agent's group");
    let screen = supervisor.screen();
    let flat = screen.replace('\n', "");
    assert!(flat.contains(&format!("kill -9 {apart}")), "{screen}");
    let apart = rustix::process::Pid::from_raw(apart).expect("a process");
    let _ = rustix::process::kill_process(apart, Signal::KILL);
}

#[test]
fn of_a_client_that_must_be_killed_no_command_is_left() {
    // Its version is asked for first.
    let deaf = "[ \"$1\" = --version ] ||
        { setsid sleep 1002 & trap '' HUP INT TERM; while :; do sleep 1; done; }";
    let supervisor = Launch::demo().behind(deaf).start();
    let runs = || {
        let all = processes_of(supervisor.launch.the_home());
        all.iter()
            .any(|one| one.command.starts_with("sleep 1002") && one.leads_session())
    };
    supervisor.wait_until("its command runs apart", runs);
    supervisor.signal(Signal::HUP);
    supervisor.wait_for_exit(SOON);
    assert!(!runs(), "{}", supervisor.log());
}

#[test]
#[ignore = "live: needs PITSTOP_CLAUDE"]
fn live_a_signal_closes_the_record_and_restores_the_terminal() {
    for signal in [Signal::TERM, Signal::HUP, Signal::INT] {
        let supervisor = Launch::live().start_idle();
        supervisor.signal(signal);
        check_clean(&supervisor, 130);
        check_record(&supervisor.launch, "shutdown");
    }
}

#[test]
fn a_signal_in_the_middle_of_a_turn_ends_it_all_in_time() {
    let supervisor = Launch::demo().start();
    supervisor.wait_for_state("busy", SOON);
    supervisor.signal(Signal::TERM);
    check_clean(&supervisor, 130);
    check_record(&supervisor.launch, "shutdown");
}

#[test]
fn a_panic_leaves_a_usable_terminal_its_report_and_no_agent() {
    let supervisor = demo().env("PITSTOP_PANIC_AT", "draw").start();
    check_clean(&supervisor, 101);
    let screen = supervisor.screen();
    assert!(screen.contains("this is a bug in pitstop"), "{screen}");
    assert!(screen.contains("start it again"), "{screen}");
    let log = supervisor.log();
    assert!(log.contains("PITSTOP_PANIC_AT=draw"), "{log}");
    let launch = supervisor.launch.clone().without_env("PITSTOP_PANIC_AT");
    let next = launch.start_showing("the last run ended without notice");
    next.wait_for_state("idle", SOON);
    let runs = fs::read_dir(launch.project().join(".pitstop/runs")).unwrap();
    let metas = runs.map(|run| fs::read(run.unwrap().path().join("meta.json")).unwrap());
    let mut ends = metas.map(|meta| serde_json::from_slice::<Value>(&meta).unwrap()["end"].clone());
    let end = ends
        .find(|end| end["reason"] == "crash")
        .expect("the end of the dead run");
    assert!(
        end["exit_code"].is_null() && end["evidence"].is_string(),
        "{end}"
    );
}

#[test]
fn after_a_crash_of_the_agent_quitting_restores_the_terminal() {
    let launch = Launch::quiet_demo();
    let script = launch.the_home().path("script");
    fs::write(&script, "Noted.\t$ kill -9 $PPID").expect("a script");
    let supervisor = launch.env("PITSTOP_DEMO_SCRIPT", script).start_idle();
    supervisor.prompt("go");
    supervisor.wait_for_state("exited", SOON);
    supervisor.quit();
    check_clean(&supervisor, 0);
    check_ends(&supervisor.launch, "crash", "shutdown");
}

#[test]
fn a_closed_terminal_ends_pitstop_and_the_agent_where_that_is_wanted() {
    let launch = demo();
    // Inherited, it would keep the terminal open.
    let flags = OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC;
    let master = rustix::pty::openpt(flags).expect("a pty");
    rustix::pty::grantpt(&master).expect("granted");
    rustix::pty::unlockpt(&master).expect("unlocked");
    let name = rustix::pty::ptsname(&master, Vec::new()).expect("a name");
    let slave = || {
        let path = name.to_str().expect("a path");
        let opened = fs::OpenOptions::new().read(true).write(true).open(path);
        opened.expect("the other side")
    };
    // It becomes the program, with the terminal as its controlling one.
    let mut command = launch.command(&[
        "demo",
        "--here",
        "--set",
        "session.on_hangup=\"end\"",
        "--",
        "--model",
        "claude-demo-1",
    ]);
    let program = command.get_program().to_owned();
    let args: Vec<_> = command.get_args().map(ToOwned::to_owned).collect();
    let envs: Vec<_> = command
        .get_envs()
        .filter_map(|(name, value)| Some((name.to_owned(), value?.to_owned())))
        .collect();
    command = std::process::Command::new("setsid");
    command
        .arg("--ctty")
        .arg(program)
        .args(args)
        .env_clear()
        .envs(envs);
    command.current_dir(launch.project());
    command.stdin(slave()).stdout(slave()).stderr(slave());
    let mut child = command.spawn().expect("setsid runs");
    drop(command);
    let mut bytes = vec![0; 65536];
    let mut seen = Vec::new();
    while !String::from_utf8_lossy(&seen).contains("\u{1b}[?1049h") {
        let count = rustix::io::read(&master, &mut bytes[..]).expect("output");
        seen.extend_from_slice(&bytes[..count]);
    }
    let limit = Instant::now() + SOON;
    while launch.run(&["status"]).status.code() != Some(0) {
        assert!(Instant::now() < limit, "it never answered");
    }
    let began = Instant::now();
    drop(master);
    let limit = began + LEAVE;
    let status = loop {
        if let Some(status) = child.try_wait().expect("a child") {
            break status;
        }
        assert!(
            Instant::now() < limit,
            "still alive: {:#?}",
            processes_of(launch.the_home())
        );
        std::thread::park_timeout(Duration::from_millis(10));
    };
    println!("gone {:?} after its terminal: {status:?}", began.elapsed());
    while !processes_of(launch.the_home()).is_empty() {
        assert!(
            Instant::now() < limit,
            "{:#?}",
            processes_of(launch.the_home())
        );
        std::thread::park_timeout(Duration::from_millis(10));
    }
    check_record(&launch, "shutdown");
}

/// What a start says that must fail before the terminal is touched.
#[track_caller]
fn refused(launch: &Launch, code: u32, words: &[&str]) {
    let supervisor = launch.start();
    let exit = supervisor.wait_for_exit(SOON);
    let screen = supervisor.screen();
    assert_eq!(exit.code, code, "{exit:?}\n{screen}");
    let flat = screen.replace('\n', "");
    for word in words {
        assert!(flat.contains(word), "expected {word:?} in:\n{screen}");
    }
    let output = supervisor.terminal.output();
    assert!(
        !output.windows(2).any(|two| two == b"\x1b["),
        "the terminal was not touched"
    );
    assert!(supervisor.terminal.has_its_settings_back());
}

#[test]
fn a_missing_agent_is_reported_with_the_offer_of_the_demo() {
    let launch = demo().client(Path::new("/nowhere/claude"));
    refused(&launch, 5, &["/nowhere/claude", "pitstop demo"]);
    refused(
        &Launch::generic("no-such-agent-here"),
        5,
        &["no-such-agent-here"],
    );
}

#[test]
fn without_a_terminal_it_says_so() {
    let output = demo().command(&["demo"]).output().expect("it runs");
    assert_eq!(output.status.code(), Some(2));
    assert!(
        all(&output).contains("pitstop needs a terminal"),
        "{}",
        all(&output)
    );
}

#[test]
fn a_terminal_that_cannot_be_drawn_on_is_refused() {
    for (term, why) in [("dumb", "TERM=dumb"), ("", "TERM is not set")] {
        for args in [&["demo"][..], &["attach"]] {
            let launch = demo().env("TERM", term);
            let refused = call(&launch, launch.project(), (200, 24), args);
            refused.wait_for_text(why, SOON);
            refused.wait_for_text("pitstop run --headless", SOON);
            assert_eq!(refused.wait_for_exit(SOON).code, 2, "{term:?} {args:?}");
            assert!(!refused.output().contains(&b'\x1b'), "nothing is drawn");
        }
    }
}

#[test]
fn a_second_supervisor_names_the_one_that_holds_the_project() {
    let launch = demo();
    let first = launch.start_idle();
    let mut second = launch.start();
    second.check_nothing();
    let exit = second.wait_for_exit(SOON);
    assert_eq!(exit.code, 1);
    let pid = first.pid().as_raw_nonzero().to_string();
    let flat = second.screen().replace('\n', "");
    assert!(flat.contains(&format!("running here (pid {pid}")), "{flat}");
    assert!(flat.contains("pitstop attach"), "{flat}");
    assert_eq!(first.status()["agent"]["state"], "idle");
}

#[test]
fn all_faults_of_a_config_are_reported_before_the_terminal_is_touched() {
    let launch = demo();
    let file = launch.the_home().path("config/pitstop/config.toml");
    fs::create_dir_all(file.parent().expect("a directory")).expect("made");
    fs::write(&file, "[guard]\nwarm = 60\n[reboot]\nmode = \"never\"\n").expect("written");
    let supervisor = launch.start();
    assert_eq!(supervisor.wait_for_exit(SOON).code, 2);
    let screen = supervisor.screen();
    for words in ["warm", "warn", "never", "pitstop check"] {
        assert!(screen.contains(words), "{words}: {screen}");
    }
    assert_eq!(supervisor.terminal.modes_left_on(), Vec::<&str>::new());
    assert!(!String::from_utf8_lossy(&supervisor.terminal.output()).contains("\x1b[?1049h"));
}

#[test]
fn links_in_the_place_of_our_files_are_refused() {
    for name in [".pitstop", ".pitstop/scratchpad.md"] {
        let launch = demo();
        let outside = launch.the_home().path("outside");
        if name == ".pitstop" {
            fs::create_dir(&outside).expect("made");
        } else {
            fs::create_dir(launch.project().join(".pitstop")).expect("made");
            fs::write(&outside, "secret").expect("written");
        }
        symlink(&outside, launch.project().join(name)).expect("a link");
        refused(&launch, 1, &["expected no link"]);
        if outside.is_dir() {
            assert_eq!(fs::read_dir(&outside).expect("a directory").count(), 0);
        } else {
            assert_eq!(fs::read(&outside).expect("a file"), b"secret");
        }
    }
}

#[test]
fn without_any_home_it_says_what_to_set_and_with_the_xdg_variables_it_runs() {
    let launch = demo().env("HOME", "");
    let _supervisor = launch.start_idle();
}

#[test]
fn no_git_and_no_repository_are_no_hindrance() {
    let launch = demo().env("PATH", "/nowhere");
    let supervisor = launch.start_idle();
    supervisor.review();
    supervisor.keys([key::ENTER]);
    supervisor.wait_for_iteration(2, SOON);
}

#[test]
fn server_clients_and_hooks_meet_in_the_state_directory() {
    let launch = demo();
    let supervisor = launch.start();
    // The status comes by a client, the state by a hook.
    supervisor.wait_for_state("idle", SOON);
    let directory = launch.the_home().path("state/pitstop/run");
    assert_eq!(
        fs::metadata(&directory).expect("made").mode() & 0o777,
        0o700
    );
    // A hook that is not told where finds the same place.
    let body = br#"{"hook_event_name":"Stop","session_id":"00000000-0000-4000-8000-000000000000"}"#;
    let output = supervisor.run_with_input(&["hook", "Stop"], body);
    assert_eq!(output.status.code(), Some(0));
    supervisor.wait_for_log("another session was ignored", SOON);
}

#[test]
fn a_socket_whose_path_is_too_long_is_no_hindrance() {
    let launch = demo();
    let deep = launch.the_home().path(&"x".repeat(100));
    let launch = launch.env("XDG_STATE_HOME", &deep);
    let supervisor = launch.start_idle();
    // Nor is it one for a terminal that attaches.
    supervisor.terminal.send("\u{11}d");
    supervisor.wait_for_exit(SOON);
    let launch = &supervisor.launch;
    let again = call(launch, launch.project(), (120, 40), &["attach"]);
    again.wait_for_text("idle", SOON);
    supervisor.signal(Signal::TERM);
    again.wait_for_exit(SOON);
}

#[test]
fn with_no_supervisor_the_commands_say_so_with_code_3() {
    let launch = demo();
    for args in [
        &["status"][..],
        &["status", "--json"],
        &["history"],
        &["handoff"],
        &["ctl", "save"],
    ] {
        let output = launch.command(args).output().expect("it runs");
        assert_eq!(output.status.code(), Some(3), "{args:?}");
        assert!(
            all(&output).contains("no supervisor runs"),
            "{args:?} {}",
            all(&output)
        );
    }
    assert!(
        !launch.the_home().path("state/pitstop").exists(),
        "asking leaves no trace"
    );
}

#[test]
fn the_history_of_a_run_that_is_over_is_read_from_the_store() {
    let supervisor = demo().start();
    let session = supervisor.wait_for_state("idle", SOON)["session_id"].clone();
    let launch = supervisor.launch.clone();
    drop(supervisor);
    check_record(&launch, "shutdown");
    let output = launch.command(&["history"]).output().expect("it runs");
    let session = session.as_str().expect("a session");
    assert!(all(&output).contains(&session[..8]), "{}", all(&output));
    assert_eq!(launch.run(&["status"]).status.code(), Some(3));
}

#[test]
fn a_project_that_cannot_be_written_has_its_notes_elsewhere() {
    // No one may make directories there, root neither.
    let launch = demo();
    let supervisor = launch.in_directory(Path::new("/sys/kernel")).start();
    supervisor.wait_for_text("notes and runs are kept in", SOON);
    supervisor.wait_for_state("idle", SOON);
    supervisor.review();
    supervisor.keys([key::ENTER]);
    supervisor.wait_for_iteration(2, SOON);
    let kept = supervisor.launch.the_home().path("state/pitstop/projects");
    assert_eq!(fs::read_dir(kept).expect("a directory").count(), 1);
}

#[test]
fn a_database_that_takes_connections_and_says_nothing_holds_up_no_start() {
    let silent = std::net::TcpListener::bind("127.0.0.1:0").expect("a socket");
    let port = silent.local_addr().expect("an address").port();
    let url = format!("store.url=\"postgres://user@127.0.0.1:{port}/pitstop\"");
    let supervisor = demo().set(&url).start();
    // It is looked for again meanwhile, and said to be away for as long as it is.
    supervisor.wait_for_text("database away", SOON);
    let status = supervisor.wait_for_state("idle", SOON);
    assert!(status["store_error"].is_string(), "{status:#}");
    let status = supervisor.wait_for_status(|status| status["store_kept"] == true);
    assert_eq!(status["agent"]["state"], "idle");
    let kept = supervisor.launch.the_home().path("state/pitstop/projects");
    let kept = fs::read_dir(kept).expect("a directory").flatten();
    let files =
        kept.flat_map(|project| fs::read_dir(project.path()).expect("a directory").flatten());
    let names: Vec<_> = files
        .map(|file| file.file_name().into_string().expect("a name"))
        .collect();
    assert!(
        names.iter().any(|name| name.starts_with("unwritten-")),
        "{names:?}"
    );
    let log = supervisor.log();
    assert!(log.contains("no answer within 2s"), "{log}");
}

#[test]
fn a_store_that_cannot_be_opened_is_reported_once_and_the_session_goes_on() {
    let launch = demo();
    let database = launch.the_home().path("state/pitstop/pitstop.db");
    fs::create_dir_all(&database).expect("a directory in its place");
    let supervisor = launch.start();
    // The footer keeps saying it: a notice may be covered by the next one.
    supervisor.wait_for_text("database away", SOON);
    supervisor.wait_for_state("idle", SOON);
    supervisor.review();
    supervisor.keys([key::ENTER]);
    supervisor.wait_for_iteration(2, SOON);
    assert_eq!(
        supervisor.history()["iterations"].as_array().map(Vec::len),
        Some(2)
    );
}

#[test]
fn a_corrupt_database_is_set_aside_and_that_is_said() {
    let launch = demo();
    let database = launch.the_home().path("state/pitstop/pitstop.db");
    fs::create_dir_all(database.parent().expect("a directory")).expect("made");
    fs::write(&database, [0x5a; 8192]).expect("written");
    let supervisor = launch.start();
    supervisor.wait_for_text("the database was corrupt", SOON);
    supervisor.wait_for_state("idle", SOON);
}

#[test]
fn a_full_log_directory_is_a_warning() {
    let launch = demo();
    let log = launch.the_home().path("state/pitstop/log");
    fs::create_dir_all(log.parent().expect("a directory")).expect("made");
    fs::write(&log, "a file in its place").expect("written");
    let _supervisor = launch.start_idle();
}

#[test]
fn a_key_continues_an_agent_that_is_stopped() {
    let supervisor = demo().start_idle();
    let agent = supervisor.agent_pid();
    rustix::process::kill_process(agent, Signal::STOP).expect("stopped");
    let stopped = supervisor.wait_for_state("unknown", SOON);
    let reason = stopped["agent"]["reason"].as_str().unwrap_or_default();
    assert!(reason.contains("any key"), "{stopped:#}");
    supervisor.wait_for_text("suspended", SOON);
    supervisor.keys(["x"]);
    supervisor.wait_for_state("idle", SOON);
    supervisor.prompt("still there?");
    supervisor.wait_for_text("Noted.", SOON);
    assert!(!supervisor.screen().contains("xstill"));

    // Another process may continue it, too.
    rustix::process::kill_process(agent, Signal::STOP).expect("stopped");
    supervisor.wait_for_state("unknown", SOON);
    rustix::process::kill_process(agent, Signal::CONT).expect("continued");
    supervisor.wait_for_state("idle", SOON);

    // Without a terminal there is no key.
    supervisor.terminal.send("\u{11}d");
    supervisor.wait_for_exit(SOON);
    rustix::process::kill_process(agent, Signal::STOP).expect("stopped");
    let stat = format!("/proc/{}/stat", agent.as_raw_nonzero());
    let stopped = || fs::read_to_string(&stat).unwrap().contains(") T ");
    supervisor.wait_until("it is continued", || !stopped());
    supervisor.wait_for_state("idle", SOON);
}

#[test]
#[ignore = "live: needs PITSTOP_CLAUDE"]
fn the_real_client_s_way_to_go_on_is_printed_only_after_something_was_said() {
    let launch = Launch::live();
    let says = |prompt: Option<&str>| {
        let supervisor = launch.start_idle();
        if let Some(prompt) = prompt {
            supervisor.prompt(prompt);
            launch.api().wait_for_calls(1, SOON);
            supervisor.wait_for_state("idle", SOON);
        }
        supervisor.signal(Signal::TERM);
        supervisor.wait_for_exit(SOON);
        String::from_utf8_lossy(&supervisor.terminal.output()).contains("to go on: pitstop")
    };
    assert!(!says(None));
    assert!(says(Some("hello")));
}

#[test]
#[ignore = "live: needs PITSTOP_CLAUDE"]
fn a_key_continues_the_real_client_after_it_has_suspended_itself() {
    let supervisor = Launch::live().start_idle();
    supervisor.terminal.send("half a th");
    supervisor.wait_for_text("half a th", SOON);
    supervisor.terminal.send("\x1a");
    supervisor.wait_for_state("unknown", SOON);
    supervisor.wait_for_text("any key", SOON);
    supervisor.terminal.send("z");
    supervisor.wait_for_state("idle", SOON);
    supervisor.terminal.send("ought");
    supervisor.wait_for_text("half a thought", SOON);
}

#[test]
fn the_agent_has_a_terminal_and_nothing_else_of_ours() {
    // A shell of its own, because the first one keeps the script open. The last seven digits are the usual signals.
    let look = r#"
        exec >seen 2>&1
        echo $(sh -c 'ls /proc/$$/fd')
        grep SigIgn /proc/$$/status | tail -c 8
        set -- $(cut -d' ' -f5,6,8 /proc/$$/stat); echo leads $(($1==$$ && $2==$$ && $3==$$))
        pwd; stty size; tty | cut -c1-9; echo "$PITSTOP_TEST_WORD"; env | cut -d= -f1 | grep -vx SHELL | sort
        echo end
        exec cat >/dev/tty"#;
    let seen = |before: &str| {
        let launch = Launch::generic("sh look.sh")
            .env("PITSTOP_TEST_WORD", "two\nlines =")
            .after(before);
        fs::write(launch.project().join("look.sh"), look).unwrap();
        let supervisor = launch.start();
        let seen = launch.project().join("seen");
        let read = || fs::read_to_string(&seen).unwrap_or_default();
        supervisor.wait_until("the agent has looked", || read().ends_with("end\n"));
        read().replace(&launch.project().display().to_string(), "PROJECT")
    };
    let usual = seen("exec 7</dev/null");
    let lines: Vec<&str> = usual.lines().collect();
    assert_eq!(
        lines[..5],
        ["0 1 2", "0000000", "leads 1", "PROJECT", "42 96"],
        "{usual}"
    );
    // What is ignored then is not ignored by the agent.
    let under_nohup = seen("exec 7</dev/null; trap '' HUP INT QUIT TERM");
    assert_eq!(usual, under_nohup);
}

#[test]
fn a_suspended_supervisor_gives_the_terminal_back_and_takes_it_again() {
    let supervisor = demo().start_idle();
    let pid = supervisor.terminal.pid();
    supervisor.terminal.signal(Signal::TSTP);
    let stopped = || {
        let stat =
            fs::read_to_string(format!("/proc/{}/stat", pid.as_raw_nonzero())).unwrap_or_default();
        stat.rsplit_once(')')
            .is_some_and(|(_, rest)| rest.trim_start().starts_with('T'))
    };
    supervisor.wait_until("it is stopped", stopped);
    // What it wrote last may still be on its way to the terminal.
    let all_off = || supervisor.terminal.modes_left_on().is_empty();
    supervisor.wait_until("all modes are off", all_off);
    assert!(supervisor.terminal.has_its_settings_back());
    supervisor.terminal.signal(Signal::CONT);
    supervisor.wait_for_text("F10 quit", SOON);
    assert!(!supervisor.terminal.has_its_settings_back(), "raw again");
    supervisor.prompt("awake?");
    supervisor.wait_for_text("Noted.", SOON);
}

/// The shims of tool managers are links to one program that goes by the name it is called by.
#[test]
fn an_agent_behind_a_link_is_called_by_the_name_of_the_link() {
    let launch = Launch::generic("");
    let manager = launch.project().join("manager");
    // A binary would see it as `argv[0]`; the kernel hands a script the path that was executed.
    fs::write(&manager, "#!/bin/sh\necho \"called ${0##*/}\"; exec cat\n").unwrap();
    fs::set_permissions(&manager, fs::Permissions::from_mode(0o700)).unwrap();
    let shim = launch.project().join("shim");
    symlink(&manager, &shim).unwrap();
    let _by_path = Launch::generic(shim.to_str().unwrap()).start_showing("called shim");
    // Started the plain way, without the process that waits.
    let plainly = Launch::generic(shim.to_str().unwrap()).after("trap '' HUP");
    let _plainly = plainly.start_showing("called shim");
}

#[test]
fn a_storm_of_resizes_ends_with_the_right_size() {
    let command = "sh -c \"trap 'stty size' WINCH; stty size; while :; do sleep 0.05; done\"";
    let supervisor = Launch::generic(command).start_showing("42 96");
    for round in 0_u16..20 {
        supervisor.terminal.resize(60 + round * 5, 20 + round);
    }
    supervisor.terminal.resize(90, 33);
    // Below 100 columns the pane is alone and as wide as its frame lets it; the last size must be the one
    // that the child was given, so nothing smaller or larger stands below it.
    let last_size = |text: &str| {
        let words = |line: &str| -> Option<(u16, u16)> {
            let line = line.trim_matches(|c: char| !c.is_ascii_digit());
            let (rows, columns) = line.split_once(' ')?;
            Some((rows.parse().ok()?, columns.parse().ok()?))
        };
        text.lines().rev().find_map(words)
    };
    let fits = |(rows, columns)| (29..=33).contains(&rows) && (88..=90).contains(&columns);
    let screen = supervisor
        .terminal
        .wait_for(|text| last_size(text).is_some_and(fits), SOON);
    println!("the child's last size: {:?}", last_size(&screen));
    assert!(supervisor.try_status().is_some());
}

#[test]
fn no_size_of_the_terminal_is_a_panic() {
    let supervisor = demo().start_idle();
    for (columns, rows) in [
        (1, 1),
        (2, 1),
        (1, 50),
        (39, 9),
        (40, 10),
        (99, 20),
        (100, 2),
        (131, 30),
        (132, 3),
        (500, 200),
        (80, 24),
    ] {
        supervisor.terminal.resize(columns, rows);
        let before = supervisor.terminal.output().len();
        // Something is drawn for each; a size of few cells may draw hardly anything.
        supervisor.keys([key::F1, key::F1, key::F5]);
        assert!(
            supervisor.try_status().is_some(),
            "{columns}×{rows} after {before} bytes"
        );
        supervisor.keys([key::ESC]);
    }
    supervisor.wait_for_text("idle", SOON);
}

#[test]
fn a_terminal_that_answers_nothing_is_served_all_the_same() {
    let supervisor = demo().mute().start_idle();
    supervisor.turn("hello", "Noted.");
    supervisor.quit();
    check_clean(&supervisor, 0);
}

#[test]
fn a_good_edit_of_the_config_takes_effect_and_a_bad_one_does_not() {
    let launch = demo();
    let file = launch.the_home().path("config/pitstop/config.toml");
    let supervisor = launch.start_idle();
    assert_eq!(supervisor.status()["mode"], "ask");
    fs::create_dir_all(file.parent().expect("a directory")).expect("made");
    fs::write(&file, "[reboot]\nmode = \"manual\"\n[guard]\nwarn = 60\n").expect("written");
    supervisor.wait_for_status(|status| status["mode"] == "manual");
    supervisor.wait_for_text("warn 108k", SOON);
    fs::write(&file, "[reboot]\nmode = \"whatever\"\n").expect("written");
    supervisor.wait_for_text("the configuration is not taken", SOON);
    assert_eq!(supervisor.status()["mode"], "manual");
    supervisor.wait_for_text("warn 108k", SOON);
    // A directory that is made again, as a checkout of dotfiles does, is watched like the first one.
    fs::remove_dir_all(file.parent().expect("a directory")).expect("removed");
    supervisor.wait_for_status(|status| status["mode"] == "ask");
    fs::create_dir_all(file.parent().expect("a directory")).expect("made");
    for mode in ["manual", "ask", "manual"] {
        fs::write(&file, format!("[reboot]\nmode = \"{mode}\"\n")).expect("written");
        supervisor.wait_for_status(|status| status["mode"] == mode);
    }
}

/// All files and directories below a directory.
pub fn files(root: &Path) -> Vec<(std::path::PathBuf, fs::Metadata)> {
    let mut found = Vec::new();
    let mut left = vec![root.to_owned()];
    while let Some(directory) = left.pop() {
        for entry in fs::read_dir(&directory).into_iter().flatten().flatten() {
            let Ok(meta) = entry.path().symlink_metadata() else {
                continue;
            };
            if meta.is_dir() {
                left.push(entry.path());
            }
            found.push((entry.path(), meta));
        }
    }
    found
}

#[test]
fn what_we_write_is_ours_alone_and_the_tokens_are_nowhere_else() {
    let supervisor = demo().start_idle();
    let home = supervisor.launch.the_home().clone();
    let project = supervisor.launch.project().to_owned();
    let mut tokens = Vec::new();
    for (path, _) in files(&home.path("state/pitstop/run")) {
        if path
            .extension()
            .is_some_and(|end| end == "observe" || end == "control")
        {
            let text = fs::read_to_string(&path).expect("a secret");
            tokens.push(text.lines().nth(1).expect("a token").to_owned());
        }
    }
    assert_eq!(tokens.len(), 2);
    supervisor.prompt("look around");
    supervisor.wait_for_text("Noted.", SOON);
    supervisor.review();
    supervisor.keys([key::ENTER]);
    supervisor.wait_for_iteration(2, SOON);
    supervisor.wait_for_state("idle", SOON);

    let holds = |bytes: &[u8]| {
        tokens.iter().any(|token| {
            bytes
                .windows(token.len())
                .any(|part| part == token.as_bytes())
        })
    };
    for one in processes_of(&home) {
        for file in ["cmdline", "environ"] {
            let bytes = fs::read(format!("/proc/{}/{file}", one.pid)).unwrap_or_default();
            assert!(!holds(&bytes), "a token in {file} of {one:?}");
        }
    }
    assert!(
        !holds(&supervisor.terminal.output()),
        "a token on the screen"
    );
    let own = [
        home.path("state/pitstop"),
        home.path("state/pitstop/run"),
        project.join(".pitstop"),
    ];
    for root in &own {
        assert_eq!(
            fs::metadata(root).expect("ours").mode() & 0o777,
            0o700,
            "{}",
            root.display()
        );
        for (path, meta) in files(root) {
            // The demo's own directory is the agent's, as ~/.claude is.
            if path.starts_with(home.path("state/pitstop/demo")) {
                continue;
            }
            let expected = if meta.is_dir() { 0o700 } else { 0o600 };
            assert_eq!(meta.mode() & 0o777, expected, "{}", path.display());
            let secret = path
                .extension()
                .is_some_and(|end| end == "observe" || end == "control");
            if meta.is_file() && !secret {
                // What is written beside a file and then takes its place may be gone by now: it is read in that place.
                let bytes = fs::read(&path).unwrap_or_default();
                assert!(!holds(&bytes), "a token in {}", path.display());
            }
        }
    }
    assert_eq!(
        fs::read_to_string(project.join(".pitstop/.gitignore")).expect("written"),
        "*\n"
    );
    let strays: Vec<_> = fs::read_dir(&project)
        .expect("a project")
        .flatten()
        .map(|one| one.file_name())
        .collect();
    assert_eq!(strays, [".pitstop"]);
}

#[test]
#[ignore = "live: needs PITSTOP_CLAUDE"]
fn live_no_file_of_the_users_is_written_but_by_the_client() {
    let launch = Launch::live();
    let home = launch.the_home().clone();
    let settings = home.path(".claude/settings.json");
    let own = r#"{"statusLine":{"type":"command","command":"echo mine"}}"#;
    fs::write(&settings, own).expect("written");
    fs::set_permissions(&settings, fs::Permissions::from_mode(0o644)).expect("a mode");
    let before = fs::metadata(&settings)
        .expect("there")
        .modified()
        .expect("a time");
    launch.api().answer([Answer::text("Seen it.")]);
    let supervisor = launch.start();
    let pid = supervisor.pid();
    supervisor.wait_for_state("idle", SOON);
    supervisor.turn("look around", "Seen it.");
    supervisor.quit();
    check_clean(&supervisor, 0);
    assert_eq!(fs::read_to_string(&settings).expect("there"), own);
    assert_eq!(
        fs::metadata(&settings)
            .expect("there")
            .modified()
            .expect("a time"),
        before
    );
    // Nothing of ours anywhere but in our own places.
    let ours = |path: &Path| path.starts_with(home.path("state/pitstop"));
    for (path, meta) in files(&home.path("")) {
        let inside = path.starts_with(launch.project().join(".pitstop")) || ours(&path);
        if meta.is_file() && !inside && meta.len() < 4 << 20 {
            let text = fs::read(&path).unwrap_or_default();
            let text = String::from_utf8_lossy(&text);
            assert!(
                !text.contains("pitstop hook"),
                "our hooks in {}",
                path.display()
            );
        }
    }
    assert_eq!(look(pid.as_raw_nonzero().get()).map(|one| one.pid), None);
    assert!(Path::new(PITSTOP).exists());
}

#[test]
fn a_host_terminal_that_reports_an_absurd_size_is_drawn_on_as_far_as_a_screen_goes() {
    let supervisor = demo().start_idle();
    for size in [30_000, u16::MAX] {
        let frames = supervisor.terminal.reads().len();
        supervisor.terminal.report_size(size, size);
        supervisor.wait_until("it is drawn", || supervisor.terminal.reads().len() > frames);
        supervisor.wait_for_state("idle", SOON);
    }
    let pid = supervisor.pid().as_raw_nonzero();
    let memory = fs::read_to_string(format!("/proc/{pid}/statm")).expect("its memory");
    let pages: u64 = memory
        .split(' ')
        .nth(1)
        .expect("the second")
        .parse()
        .expect("a number");
    assert!(pages * 4 < 1_000_000, "{pages} pages");
    supervisor.terminal.report_size(140, 45);
    supervisor.wait_for_state("idle", SOON);
}

#[test]
fn with_too_few_files_to_open_it_says_what_to_do() {
    for limit in [8, 10, 12, 24, 40] {
        let mut supervisor = demo().after(&format!("ulimit -n {limit}")).start();
        supervisor.check_nothing();
        let exit = supervisor.wait_for_exit(SOON);
        assert_eq!((exit.code, exit.signal), (1, None), "{limit}");
        supervisor.wait_for_text("raise the limit, for example by `ulimit -n 1024`", SOON);
    }
}

/// A library that sets the clock of a process back to 1969.
const BEFORE_1970: &str = "
#include <time.h>
#include <sys/syscall.h>
#include <unistd.h>
int clock_gettime(clockid_t id, struct timespec *time) {
    int done = syscall(SYS_clock_gettime, id, time);
    if (id == CLOCK_REALTIME) time->tv_sec = -86400;
    return done;
}
";

#[cfg(target_os = "linux")]
#[test]
fn a_clock_before_1970_is_an_error() {
    let launch = demo();
    let (source, library) = (
        launch.the_home().path("clock.c"),
        launch.the_home().path("clock.so"),
    );
    fs::write(&source, BEFORE_1970).expect("written");
    let built = std::process::Command::new("cc")
        .args(["-shared", "-fPIC", "-o"])
        .args([&library, &source])
        .status();
    assert!(built.expect("a C compiler").success());
    let mut supervisor = launch.env("LD_PRELOAD", &library).start();
    supervisor.check_nothing();
    let exit = supervisor.wait_for_exit(SOON);
    assert_eq!((exit.code, exit.signal), (1, None));
    supervisor.wait_for_text("the system's clock is set before 1970", SOON);
}

#[test]
fn a_start_in_a_project_with_earlier_work_asks_and_resumes_the_session_that_is_chosen() {
    let launch = Launch::demo().env("PITSTOP_DEMO_AUTO", "0");
    let started = launch.the_home().path("started");
    let launch = launch
        .behind(&format!("echo \"$*\" >>{}", started.display()))
        .asking();
    // Nothing to ask about yet, nor after a session in which nothing was said.
    for _ in 0..2 {
        let supervisor = launch.start_idle();
        let (code, said) = supervisor.ctl("stop");
        assert_eq!(code, 0, "{said}");
        supervisor.wait_for_exit(LEAVE);
    }
    let supervisor = launch.start_idle();
    supervisor.prompt("begin");
    let status = supervisor.wait_for_status(|status| {
        status["context"]["used"].is_u64() && status["agent"]["state"] == "idle"
    });
    let session = status["session_id"].as_str().expect("a session").to_owned();
    let (code, said) = supervisor.ctl("stop");
    assert_eq!(code, 0, "{said}");
    supervisor.wait_for_exit(LEAVE);

    let supervisor = launch.start();
    let terminal = &supervisor.terminal;
    terminal.wait_for_text("Enter resume", SOON);
    supervisor.keys(["\r"]);
    supervisor.wait_for_state("idle", SOON);
    let arguments = fs::read_to_string(&started).expect("the script has run");
    assert!(
        arguments.contains(&format!("--resume {session}")),
        "{}",
        arguments.len()
    );
}

#[test]
fn a_program_that_is_started_while_terminals_are_opened_holds_none_of_them() {
    let held = |_| {
        let mut list = Command::new("ls");
        list.args(["-l", "/proc/self/fd"]);
        list.stdin(Stdio::null()).stdout(Stdio::piped());
        let child = beside_no_opening(|| list.spawn());
        let output = child.expect("ls").wait_with_output().expect("a list");
        String::from_utf8_lossy(&output.stdout)
            .matches("/dev/pts/")
            .count()
    };
    let ended = AtomicBool::new(false);
    let held: usize = thread::scope(|scope| {
        for _ in 0..3 {
            scope.spawn(|| {
                while !ended.load(Ordering::SeqCst) {
                    drop(open_pty(80, 24));
                }
            });
        }
        let held = (0..200).map(held).sum();
        ended.store(true, Ordering::SeqCst);
        held
    });
    assert_eq!(held, 0);
}
