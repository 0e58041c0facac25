//! What the agent says beside its cells, as it reaches the host terminal.

use std::fs;

use crate::kit::{
    client::is_at_least,
    supervisor::{Launch, SOON, Supervisor},
};

/// A supervisor in a terminal of this name whose hosted program prints this and stays.
fn printing(terminal: &str, text: &str) -> Supervisor {
    let launch = Launch::generic("sh child.sh")
        .set("reboot.mode=\"manual\"")
        .env("TERM_PROGRAM", terminal);
    let script = format!("printf '{text}READY'; exec sleep 1000\n");
    fs::write(launch.project().join("child.sh"), script).expect("a script");
    launch.start_showing("READY")
}

#[track_caller]
fn reaches(supervisor: &Supervisor, wanted: &str) {
    let output = || String::from_utf8_lossy(&supervisor.terminal.output()).into_owned();
    supervisor.wait_until(wanted, || output().contains(wanted));
}

#[track_caller]
fn never_reached(supervisor: &Supervisor, unwanted: &str) {
    let output = String::from_utf8_lossy(&supervisor.terminal.output()).into_owned();
    assert!(!output.contains(unwanted), "{unwanted:?}");
}

#[test]
fn notifications_progress_title_and_clipboard_reach_the_host() {
    let supervisor = printing(
        "ghostty",
        concat!(
            r"\033]777;notify;Build;all \001green\033\\",
            r"\033]9;4;1;42\007\033]2;my title\007\033]52;c;aGVsbG8=\007\033]52;c;?\007",
        ),
    );
    reaches(&supervisor, "\x1b]9;Build: all green\x1b\\");
    reaches(&supervisor, "\x1b]9;4;1;42\x1b\\");
    reaches(&supervisor, "\x1b]2;project · my title\x1b\\");
    reaches(&supervisor, "\x1b]52;c;aGVsbG8=\x1b\\");
    let screen = supervisor.wait_for_text("42 %", SOON);
    assert!(
        screen.contains("the agent says: Build: all green"),
        "{screen}"
    );
    assert!(screen.contains("“my title”"), "{screen}");
}

/// The 13 things that programs say to more than their grid, and what of each reaches the host: nothing
/// of the last two, because where the shell stands and where its prompts are is true of the pane's rows alone.
const OUTPUTS: [(&str, Option<&str>); 13] = [
    (
        r"\033]2;a title\007",
        Some("\x1b]2;project · a title\x1b\\"),
    ),
    (r"\033]9;nine\007", Some("\x1b]9;nine\x1b\\")),
    (r"\033]9;4;1;42\007", Some("\x1b]9;4;1;42\x1b\\")),
    (r"\033]777;notify;T;B\033\\", Some("\x1b]9;T: B\x1b\\")),
    (r"\033]99;;kitty\033\\", Some("\x1b]9;kitty\x1b\\")),
    (r"\033]52;c;aGVsbG8=\007", Some("\x1b]52;c;aGVsbG8=\x1b\\")),
    (
        r"\033]8;;https://example.org/\033\\link\033]8;;\033\\",
        Some(";https://example.org/\x1b\\"),
    ),
    (r"\033[38;2;1;2;3mtruecolor\033[m", Some("38;2;1;2;3")),
    (r"\033[4:3mcurly\033[m", Some("\x1b[4:3")),
    (r"\033[5 q", Some("\x1b[5 q")),
    (r"\033[?2026hframe\033[?2026l", Some("\x1b[?2026h")),
    (r"\033]7;file:///elsewhere\007", None),
    (r"\033]133;A\007", None),
];

#[test]
fn of_thirteen_outputs_each_reaches_the_host_by_the_policy() {
    // Calls are passed on one in two seconds: those but the first have a supervisor each.
    let calls = [r"\033]777", r"\033]99"];
    let is_call = |said: &str| calls.iter().any(|call| said.starts_with(call));
    let (alone, together): (Vec<_>, Vec<_>) = OUTPUTS.iter().partition(|(said, _)| is_call(said));
    let said = together.iter().map(|(said, _)| *said).collect::<String>();
    let supervisor = printing("ghostty", &said);
    for (said, wanted) in together {
        match wanted {
            Some(wanted) => reaches(&supervisor, wanted),
            None => never_reached(
                &supervisor,
                said.trim_start_matches(r"\033").trim_end_matches(r"\007"),
            ),
        }
    }
    for (said, wanted) in alone {
        let supervisor = printing("ghostty", said);
        reaches(&supervisor, wanted.expect("a call is passed on"));
    }
}

#[test]
fn the_clipboard_is_written_from_the_alternate_screen_too_and_never_read() {
    let store = r"\033[?1049h\033]52;c;aGVsbG8=\007\033]52;c;?\007\033]52;p;?\033\\";
    let launch = Launch::generic("sh child.sh").set("reboot.mode=\"manual\"");
    let script = format!("stty raw -echo; printf '{store}READY'; exec cat >typed\n");
    fs::write(launch.project().join("child.sh"), script).expect("a script");
    let supervisor = launch.start_showing("READY");
    reaches(&supervisor, "\x1b]52;c;aGVsbG8=\x1b\\");
    // An answer would stand before what is typed.
    supervisor.keys(["x"]);
    let typed = || fs::read(supervisor.launch.project().join("typed")).unwrap_or_default();
    supervisor.wait_until("a key", || !typed().is_empty());
    assert_eq!(typed(), b"x");
}

#[test]
fn the_child_finds_the_name_of_our_terminal() {
    let text = "$TERM $COLORTERM $TERM_PROGRAM";
    let launch = Launch::generic("sh child.sh").env("TERM_PROGRAM", "kitty");
    let script = format!("echo \"{text}\"; exec sleep 1000\n");
    fs::write(launch.project().join("child.sh"), script).expect("a script");
    let supervisor = launch.start();
    let wanted = "xterm-256color truecolor pitstop";
    supervisor.wait_for_text(wanted, SOON);
}

#[test]
#[ignore = "live: needs PITSTOP_CLAUDE"]
fn the_client_turns_on_frames_and_the_keyboard_protocol() {
    let supervisor = Launch::live().start_idle();
    let runs = fs::read_dir(supervisor.launch.project().join(".pitstop/runs")).expect("runs");
    let run = runs.flatten().next().expect("a run").path();
    // The recording is what it has sent; it is on disk once it is played.
    supervisor.keys([crate::kit::supervisor::key::F6, "p"]);
    supervisor.wait_for_text("Recording of", SOON);
    let sent = fs::read_to_string(run.join("iteration-1/pane.cast")).expect("a recording");
    // Newer clients want more of the protocol.
    let keyboard = if is_at_least(330) {
        "\\u001b[>5u"
    } else {
        "\\u001b[>1u"
    };
    for wanted in ["\\u001b[?2026h", keyboard] {
        assert!(sent.contains(wanted), "{wanted} is not among what it sent");
    }
}
