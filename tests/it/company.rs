//! In company: the line for status bars, and tmux and herdr as the terminal around.

use std::{
    fs,
    io::{BufRead as _, BufReader},
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    sync::mpsc::{Receiver, channel},
    thread,
};

use crate::{
    attach::call,
    kit::{
        poll,
        supervisor::{Launch, PITSTOP, SOON, Supervisor, key},
    },
};

/// What a program prints, line by line, while it runs.
fn lines_of(child: &mut Child) -> Receiver<String> {
    let out = BufReader::new(child.stdout.take().expect("its output"));
    let (sender, lines) = channel();
    thread::spawn(move || {
        for line in out.lines().map_while(Result::ok) {
            let _ = sender.send(line);
        }
    });
    lines
}

/// Waits for a line of which something holds; each line before it is another than the one before.
#[track_caller]
fn wait_for_line(lines: &Receiver<String>, holds: impl Fn(&str) -> bool) -> String {
    let mut last = None;
    loop {
        let line = lines.recv_timeout(SOON).expect("a line");
        assert_ne!(last.as_ref(), Some(&line), "only what is new is printed");
        if holds(&line) {
            return line;
        }
        last = Some(line);
    }
}

/// Runs what a status bar runs.
fn watch(pitstop: &Supervisor) -> Child {
    let mut command = pitstop.launch.command(&["status", "--line", "--watch"]);
    command.stdout(Stdio::piped()).spawn().expect("it runs")
}

#[test]
fn a_status_bar_gets_a_line_whenever_it_changes_and_an_empty_one_at_the_end() {
    let pitstop = Launch::quiet_demo()
        .env("PITSTOP_DEMO_GROWTH", "150000")
        .start_idle();
    let once = pitstop.run(&["status", "--line"]);
    let once = String::from_utf8(once.stdout).expect("text");
    assert!(
        once.ends_with("idle\n") || once.contains("idle · $"),
        "{once:?}"
    );
    let mut watching = watch(&pitstop);
    let lines = lines_of(&mut watching);
    assert_eq!(wait_for_line(&lines, |_| true), once.trim_end());
    pitstop.prompt("Fill the window.");
    let due = wait_for_line(&lines, |line| line.starts_with("! review · "));
    assert!(due.contains(" % "), "{due}");
    pitstop.quit();
    assert_eq!(wait_for_line(&lines, str::is_empty), "");
    assert_eq!(watching.wait().expect("it ends").code(), Some(3));
}

#[test]
fn a_status_bar_and_a_list_whose_reader_has_gone_leave_no_process_behind() {
    let pitstop = Launch::quiet_demo().start_idle();
    let mut list = pitstop.launch.command(&["ls", "--watch"]);
    let list = list.stdout(Stdio::piped()).spawn().expect("it runs");
    for mut watching in [watch(&pitstop), list] {
        let mut out = BufReader::new(watching.stdout.take().expect("its output"));
        let mut line = String::new();
        out.read_line(&mut line).expect("a line");
        drop(out);
        let ended = || watching.try_wait().expect("a child").is_some();
        poll::until_true(SOON, ended, || "it goes on".to_owned());
    }
}

/// A stand-in for herdr that notes the pane's variables and its arguments, and the environment of a pane.
fn in_herdr(launch: Launch, script: &str) -> (Launch, PathBuf) {
    let calls = launch.the_home().path("calls");
    let text = format!(
        "#!/bin/sh\necho \"$HERDR_ENV $HERDR_SOCKET_PATH $*\" >>{}\n{script}\n",
        calls.display()
    );
    let program = launch.the_home().program("herdr", &text);
    let launch = launch
        .env("HERDR_ENV", "1")
        .env("HERDR_PANE_ID", "w1:p2")
        .env("HERDR_SOCKET_PATH", "/run/herdr.sock")
        .env("HERDR_BIN_PATH", &program);
    (launch, calls)
}

/// The commands that herdr was given.
fn calls(file: &Path) -> Vec<String> {
    let text = fs::read_to_string(file).unwrap_or_default();
    text.lines().map(str::to_owned).collect()
}

const REPORT: &str =
    "1 /run/herdr.sock pane report-agent w1:p2 --source custom:pitstop --agent pitstop";
const RELEASE: &str =
    "1 /run/herdr.sock pane release-agent w1:p2 --source custom:pitstop --agent pitstop";

#[test]
fn herdr_gets_state_session_and_context_and_is_left_with_the_terminal() {
    let launch = Launch::quiet_demo().env("PITSTOP_DEMO_GROWTH", "150000");
    let (launch, file) = in_herdr(launch, "");
    let pitstop = launch.start();
    let status = pitstop.wait_for_state("idle", SOON);
    let has = |wanted: &str| calls(&file).iter().any(|call| call.starts_with(wanted));
    let comes = |wanted: &str| {
        poll::until_true(
            SOON,
            || has(wanted),
            || format!("{wanted}: {:#?}", calls(&file)),
        );
    };
    let session = status["session_id"].as_str().expect("a session");
    comes(&format!(
        "{REPORT} --state idle --agent-session-id {session}"
    ));
    pitstop.prompt("Fill the window.");
    comes(&format!(
        "{REPORT} --state blocked --agent-session-id {session} --message A reboot waits for your review"
    ));
    comes("1 /run/herdr.sock pane report-metadata w1:p2 --source custom:pitstop --token context=");
    assert!(!has(RELEASE));
    // The pane is released when its terminal is detached, and the other one is not in herdr.
    pitstop.keys([key::PREFIX, "d"]);
    pitstop.terminal.wait_for_exit(SOON);
    comes(RELEASE);
    let metadata = "1 /run/herdr.sock pane report-metadata w1:p2 --source custom:pitstop";
    assert!(has(&format!("{metadata} --clear-token context")));
    let before = calls(&file).len();
    let elsewhere = pitstop.launch.clone().without_env("HERDR_ENV");
    let terminal = call(&elsewhere, elsewhere.project(), (140, 45), &["attach"]);
    terminal.wait_for_text("compact", SOON);
    pitstop.ctl("stop");
    terminal.wait_for_exit(SOON);
    assert_eq!(calls(&file).len(), before, "{:#?}", calls(&file));
}

#[test]
fn a_herdr_that_fails_or_hangs_is_logged_once_and_holds_nothing_up() {
    for script in ["echo no such pane >&2; exit 1", "exec sleep 100"] {
        let (launch, file) = in_herdr(Launch::quiet_demo(), script);
        let pitstop = launch.start_idle();
        pitstop.wait_for_log("herdr did not take a report", SOON);
        pitstop.prompt("Go on.");
        pitstop.wait_until("more reports", || calls(&file).len() > 2);
        pitstop.quit();
        let log = pitstop.log();
        assert_eq!(
            log.matches("herdr did not take a report").count(),
            1,
            "{log}"
        );
    }
}

#[test]
fn in_tmux_the_pane_has_the_title_while_pitstop_runs_and_its_status_bar_the_line() {
    let launch = Launch::quiet_demo();
    let pitstop = format!("{PITSTOP} demo --here -- --model claude-demo-1");
    let tmux = |args: &[&str]| {
        let output = Command::new("tmux")
            .env_clear()
            .envs(launch.environment())
            .arg("-S")
            .arg(launch.the_home().path("tmux"))
            .args(["-f", "/dev/null"])
            .args(args)
            .current_dir(launch.project())
            .output()
            .expect("tmux runs");
        String::from_utf8_lossy(&output.stdout)
            .trim_end()
            .to_owned()
    };
    let socket = launch.the_home().path("tmux");
    let bar = format!("[#(cd #{{q:pane_current_path}} && {PITSTOP} status --line)]");
    let bar = ["set-option", "-g", "status-right", &bar, ";"];
    let length = ["set-option", "-g", "status-right-length", "60", ";"];
    let interval = ["set-option", "-g", "status-interval", "1", ";"];
    let begin = ["-f", "/dev/null", "-S", socket.to_str().expect("text")];
    let args = [&begin[..], &bar, &length, &interval, &["new-session", "sh"]].concat();
    let terminal = launch.terminal("tmux", args, (140, 45));
    // Where no session runs there is nothing between the marks.
    terminal.wait_for_text("[]", SOON);
    let title = || tmux(&["display-message", "-p", "#{pane_title}"]);
    tmux(&["select-pane", "-T", "mine"]);
    assert_eq!(title(), "mine");
    tmux(&["send-keys", &pitstop, "Enter"]);
    poll::until_true(SOON, || title().starts_with("project"), title);
    let shown = |text: &str| text.contains("[idle · $0.00]") || text.contains(" % ok · idle");
    terminal.wait_for(shown, SOON);
    let stopped = launch.command(&["stop"]).output().expect("it runs");
    assert!(stopped.status.success(), "{stopped:?}");
    poll::until_true(SOON, || title() == "mine", title);
    terminal.wait_for_text("[]", SOON);
    tmux(&["kill-server"]);
}

#[test]
fn a_report_that_herdr_has_not_taken_is_given_again() {
    // It refuses the first report of this state.
    let launch = Launch::quiet_demo();
    let mark = launch.the_home().path("refused");
    let script = format!(
        "case \"$*\" in *'--state idle'*) [ -e {0} ] || {{ : >{0}; exit 1; }};; esac",
        mark.display()
    );
    let (launch, file) = in_herdr(launch, &script);
    let pitstop = launch.start_idle();
    let idle = || {
        calls(&file)
            .iter()
            .filter(|call| call.contains("--state idle"))
            .count()
    };
    // Nothing changes, and it comes again until it is taken.
    pitstop.wait_until("it comes again", || idle() > 1);
}
