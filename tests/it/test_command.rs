//! `pitstop test -- CMD…`: the command is left as it is, and its outcome is reported.

use std::{
    fs,
    io::Read as _,
    os::unix::fs::PermissionsExt as _,
    path::PathBuf,
    process::{Output, Stdio},
    time::{Duration, Instant},
};

use serde_json::Value;

use crate::kit::{
    events::Events,
    supervisor::{Launch, PITSTOP, SOON, Supervisor},
    terminal::Terminal,
};

const PASSES: &str = "echo 'running 2 tests'; echo 'test a ... ok'; echo 'test b ... ok'; echo; \
                      echo 'test result: ok. 2 passed; 0 failed; 0 ignored'";

const FAILS: &str = "echo 'running 2 tests'; echo 'test a ... ok'; echo 'test b ... FAILED'; echo; \
                     echo 'test result: FAILED. 1 passed; 1 failed; 0 ignored'; exit 101";

fn start() -> (Supervisor, Events) {
    let supervisor = Launch::quiet_demo().start_idle();
    let events = Events::of(supervisor.launch.the_home());
    (supervisor, events)
}

fn test(launch: &Launch, script: &str) -> Output {
    launch.run(&["test", "--", "sh", "-c", script])
}

#[track_caller]
fn tags(events: &mut Events) -> Vec<String> {
    let reported = events.wait_for("checkpoint", |_| true, SOON);
    serde_json::from_value(reported["tags"].clone()).unwrap()
}

#[test]
fn an_outcome_is_reported_with_its_counts_and_the_exit_code_is_kept() {
    let (supervisor, mut events) = start();
    let output = test(&supervisor.launch, PASSES);
    assert_eq!(output.status.code(), Some(0));
    assert!(output.stderr.is_empty(), "{output:?}");
    let reported = events.wait_for("tests", |_| true, SOON);
    assert_eq!(
        (&reported["passed"], &reported["test_count"]),
        (&true.into(), &2.into())
    );
    assert!(
        reported["test_command"]
            .as_str()
            .unwrap()
            .starts_with("sh -c echo")
    );
    assert!(
        reported["duration_seconds"]
            .as_f64()
            .is_some_and(|seconds| seconds > 0.0)
    );
    assert_eq!(tags(&mut events), ["tests-passed", "tests-2"]);
    let output = test(&supervisor.launch, FAILS);
    assert_eq!(output.status.code(), Some(101));
    let reported = events.wait_for("tests", |_| true, SOON);
    assert_eq!(reported["failing_tests"], serde_json::json!(["b"]));
    assert_eq!(tags(&mut events), ["tests-failed", "tests-2", "failed-1"]);
    supervisor.wait_until("the failing test in the handoff", || {
        supervisor
            .handoff_text()
            .contains("## Failing tests\n\n- b (passed before)\n")
    });
    // Nothing to count: the exit code alone.
    assert_eq!(test(&supervisor.launch, "exit 3").status.code(), Some(3));
    assert_eq!(tags(&mut events), ["tests-failed"]);
}

#[test]
fn a_run_in_a_subdirectory_is_reported_to_the_supervisor_above() {
    let (supervisor, mut events) = start();
    let below = supervisor.launch.project().join("crates/one");
    fs::create_dir_all(&below).unwrap();
    let mut command = supervisor.launch.command(&["test", "--", "true"]);
    assert!(command.current_dir(below).status().unwrap().success());
    assert_eq!(tags(&mut events), ["tests-passed"]);
}

#[test]
fn output_errors_and_input_are_the_commands_own() {
    let launch = Launch::quiet_demo();
    let output = test(
        &launch,
        "printf 'out\\n'; printf 'err\\033[31m' >&2; exit 5",
    );
    assert_eq!(output.status.code(), Some(5));
    assert_eq!(
        (&*output.stdout, &*output.stderr),
        (&b"out\n"[..], &b"err\x1b[31m"[..])
    );
    let mut child = launch
        .command(&["test", "--", "cat"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let big: Vec<u8> = (0..20_000_000_u32).map(|n| (n % 251) as u8).collect();
    let (mut stdin, sent) = (child.stdin.take().unwrap(), big.clone());
    let writer = std::thread::spawn(move || std::io::Write::write_all(&mut stdin, &sent));
    let mut passed = Vec::new();
    child
        .stdout
        .take()
        .unwrap()
        .read_to_end(&mut passed)
        .unwrap();
    writer.join().unwrap().unwrap();
    assert!(child.wait().unwrap().success());
    assert!(passed == big, "{} of {} bytes", passed.len(), big.len());
}

#[test]
fn what_cannot_be_run_is_reported_as_a_shell_would() {
    let launch = Launch::quiet_demo();
    let code = |args: &[&str]| {
        let output = launch.command(args).output().unwrap();
        assert!(output.stdout.is_empty());
        (output.status.code(), !output.stderr.is_empty())
    };
    assert_eq!(
        code(&["test", "--", "no-such-command-here"]),
        (Some(127), true)
    );
    let file = launch.project().join("plain");
    fs::write(&file, "no program").unwrap();
    fs::set_permissions(&file, fs::Permissions::from_mode(0o644)).unwrap();
    assert_eq!(
        code(&["test", "--", file.to_str().unwrap()]),
        (Some(126), true)
    );
    assert_eq!(
        code(&["test", "--", "sh", "-c", "kill -TERM $$"]),
        (Some(143), false)
    );
    assert_eq!(code(&["test"]), (Some(2), true));
}

#[test]
fn a_reader_that_leaves_ends_the_command_as_it_would_without_us() {
    let launch = Launch::quiet_demo();
    let mut child = launch
        .command(&["test", "--", "yes"])
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut first = [0_u8; 2];
    child.stdout.take().unwrap().read_exact(&mut first).unwrap();
    let began = Instant::now();
    let status = child.wait().unwrap();
    assert!(began.elapsed() < SOON && !status.success(), "{status:?}");
}

#[test]
fn a_child_that_lives_on_with_the_pipe_does_not_hold_us() {
    let launch = Launch::quiet_demo();
    let began = Instant::now();
    let output = launch
        .command(&["test", "--", "sh", "-c", "sleep 4 & echo done"])
        .stderr(Stdio::null())
        .stdout(Stdio::null())
        .status()
        .unwrap();
    assert!(output.success() && began.elapsed() < Duration::from_secs(4));
}

/// `pitstop test` in a terminal.
fn in_terminal(launch: &Launch, args: &[&str]) -> Terminal {
    launch.terminal(PITSTOP, args, (93, 27))
}

/// A script in the project, by its path.
fn script(launch: &Launch, text: &str) -> PathBuf {
    let path = launch.project().join("tests.sh");
    fs::write(&path, text).unwrap();
    path
}

#[test]
fn in_a_terminal_the_command_has_one_and_is_counted_all_the_same() {
    let (supervisor, mut events) = start();
    let path = script(
        &supervisor.launch,
        &format!(
            "[ -t 0 ] && [ -t 1 ] && [ -t 2 ] && echo \"terminal $(stty size)\"\n\
             printf 'name? '; read name; printf 'hello \\033[32m%s\\033[0m\\n' \"$name\"\n{PASSES}\nexit 9\n"
        ),
    );
    let terminal = in_terminal(
        &supervisor.launch,
        &["test", "--", "sh", path.to_str().unwrap()],
    );
    terminal.wait_for_text("terminal 27 93", SOON);
    terminal.wait_for_text("name?", SOON);
    terminal.send("world\r");
    terminal.wait_for_text("hello world", SOON);
    let exit = terminal.wait_for_exit(SOON);
    assert_eq!((exit.code, exit.signal), (9, None));
    assert!(terminal.output().windows(5).any(|part| part == b"\x1b[32m"));
    let reported = events.wait_for("tests", |_| true, SOON);
    assert_eq!(
        (&reported["passed"], &reported["test_count"]),
        (&Value::Bool(false), &2.into())
    );
}

#[test]
fn ctrl_c_and_a_new_size_reach_the_command_and_the_terminal_gets_its_settings_back() {
    let launch = Launch::quiet_demo();
    let path = script(
        &launch,
        "trap 'echo \"size $(stty size)\"' WINCH\ntrap 'echo interrupted; exit 4' INT\necho ready\n\
         while :; do sleep 0.1; done\n",
    );
    // A shell around it, which is still there to be asked for the settings.
    let line = format!(
        "'{PITSTOP}' test -- sh '{}'; echo \"code $?\"; read x",
        path.display()
    );
    let terminal = launch.terminal("sh", ["-c", &line], (80, 24));
    terminal.wait_for_text("ready", SOON);
    terminal.resize(101, 31);
    terminal.wait_for_text("size 31 101", SOON);
    terminal.send("\x03");
    terminal.wait_for_text("interrupted", SOON);
    terminal.wait_for_text("code 4", SOON);
    assert!(terminal.has_its_settings_back());
    terminal.send("\r");
    assert_eq!(terminal.wait_for_exit(SOON).code, 0);
}

#[test]
fn the_terminal_itself_is_handed_down_if_asked_for() {
    let (supervisor, mut events) = start();
    let path = script(&supervisor.launch, &format!("tty\n{PASSES}\n"));
    let args = ["test", "--inherit", "--", "sh", path.to_str().unwrap()];
    let terminal = in_terminal(&supervisor.launch, &args);
    assert_eq!(terminal.wait_for_exit(SOON).code, 0);
    let reported = events.wait_for("tests", |_| true, SOON);
    assert_eq!(
        (&reported["passed"], &reported["test_count"]),
        (&true.into(), &Value::Null)
    );
}
