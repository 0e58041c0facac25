//! The keyboard between three languages: the outer terminal's, ours, and the hosted program's.

use std::fs;

use rustix::process::{Signal, kill_process};

use crate::kit::supervisor::{Launch, SOON, Supervisor, key};

/// A program that asks for these modes, and keeps what it reads.
fn keeping(modes: &str) -> Launch {
    let launch = Launch::generic("sh child.sh").set("reboot.mode=\"manual\"");
    script(&launch, modes, "READY");
    launch
}

/// The next program: it asks for these modes and says this word.
fn script(launch: &Launch, modes: &str, word: &str) {
    let text = format!("stty raw -echo\nrm -f typed\nprintf '{modes}{word}'\nexec cat >typed\n");
    fs::write(launch.project().join("child.sh"), text).expect("a script");
}

/// Types these in the terminal; the program gets those, and nothing more before an end mark.
#[track_caller]
fn gives(supervisor: &Supervisor, typed: &[&str], expected: &str) {
    let end = "END";
    supervisor.keys(typed.iter().copied());
    supervisor.keys([end]);
    let file = supervisor.launch.project().join("typed");
    let got = || String::from_utf8_lossy(&fs::read(&file).unwrap_or_default()).into_owned();
    supervisor.wait_until("the end mark", || got().ends_with(end));
    assert_eq!(got(), format!("{expected}{end}"), "{typed:?}");
}

/// What a picture's paste is to a terminal: a key that the program reads the clipboard at, and a paste of nothing.
const PICTURES: [&str; 2] = ["\x16", "\x1b[200~\x1b[201~"];

#[test]
fn a_terminal_without_the_kitty_protocol_is_asked_for_modify_other_keys() {
    let supervisor = keeping("\\033[?2004h").xterm().start_showing("READY");
    supervisor.wait_for_request("\x1b[>4;1m", 1);
    let [key, paste] = PICTURES;
    gives(
        &supervisor,
        &["\x1b[27;2;13~", "\x1b[27;6;65~", "\r", key, paste],
        "\x1b[13;2u\x01\r\x16\x1b[200~\x1b[201~",
    );
    supervisor.wait_for_request("\x1b[>5u", 0);
    supervisor.signal(Signal::TERM);
    supervisor.wait_for_exit(SOON);
    let output = supervisor.terminal.output();
    let output = String::from_utf8_lossy(&output);
    assert!(output.rfind("\x1b[>4m") > output.rfind("\x1b[>4;1m"));
}

#[test]
fn keys_of_a_terminal_with_the_kitty_protocol_are_sent_in_the_programs_language() {
    let typed = [
        "\x1b[13;2u",
        "\x1b[118;5u",
        "\x1b[200~\x1b[201~",
        "\x1b[27u",
    ];
    let started = |modes: &str| {
        let supervisor = keeping(modes).start_showing("READY");
        supervisor.wait_for_request("\x1b[>5u", 1);
        supervisor
    };
    let supervisor = started("");
    // It has not asked for the marks of pastes, so it gets none.
    gives(&supervisor, &typed, "\x1b[13;2u\x16\x1b");
    let supervisor = started("\\033[>1u\\033[?2004h");
    gives(
        &supervisor,
        &typed,
        "\x1b[13;2u\x1b[118;5u\x1b[200~\x1b[201~\x1b[27u",
    );
    let supervisor = started("\\033[>4;2m");
    gives(&supervisor, &typed, "\x1b[27;2;13~\x1b[27;5;118~\x1b");
}

/// Ctrl-C and the prefix, typed on a Russian, a Greek and a Hebrew keyboard, as a terminal with the kitty protocol names them. All other
/// chords are in the tests of the decoder.
#[test]
fn chords_are_the_same_in_each_keyboard_layout() {
    let supervisor = keeping("\\033[>4;2m").start_showing("READY");
    supervisor.wait_for_request("\x1b[>5u", 1);
    let typed = ["\x1b[1089::99;5u", "\x1b[968::99;5u", "\x1b[1489::99;5u"];
    gives(&supervisor, &typed, &"\x1b[27;5;99~".repeat(3));
    for prefix in ["\x1b[1081::113;5u", "\x1b[59::113;5u", "\x1b[47::113;5u"] {
        supervisor.keys([prefix, "?"]);
        supervisor.wait_for_text("show every key", SOON);
        supervisor.keys(["\x1b[27u"]);
        supervisor
            .terminal
            .wait_for(|screen| !screen.contains("show every key"), SOON);
    }
}

#[test]
fn keys_differ_again_after_a_suspension() {
    let supervisor = keeping("").start_showing("READY");
    supervisor.wait_for_request("\x1b[>5u", 1);
    let pid = supervisor.terminal.pid().as_raw_nonzero();
    supervisor.terminal.signal(Signal::TSTP);
    let stopped = || {
        let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
        stat.rsplit_once(')')
            .is_some_and(|(_, rest)| rest.trim_start().starts_with('T'))
    };
    supervisor.wait_until("it is stopped", stopped);
    supervisor.wait_for_request("\x1b[<1u", 1);
    supervisor.terminal.signal(Signal::CONT);
    supervisor.wait_for_request("\x1b[>5u", 2);
    gives(&supervisor, &["\x1b[13;2u"], "\x1b[13;2u");
}

#[test]
fn the_modes_of_a_program_that_was_killed_are_gone_with_it() {
    let all = "\\033[?1049h\\033[?1003h\\033[?1006h\\033[?1004h\\033[?2004h\\033[?2031h\\033[?1h\\033=\\033[>1u";
    let launch = keeping(all);
    let supervisor = launch.start_showing("READY");
    let [focus, click] = ["\x1b[I", "\x1b[<0;20;20M"];
    // They are on: the terminal's own column 20 is the pane's 19th, in the row below its title.
    gives(&supervisor, &[click, focus], "\x1b[<0;19;19M\x1b[I");
    script(&launch, "", "AGAIN");
    kill_process(supervisor.agent_pid(), Signal::KILL).expect("it runs");
    supervisor.wait_for_text("is not running", SOON);
    supervisor.keys([key::ENTER]);
    supervisor.wait_for_iteration(2, SOON);
    supervisor.wait_for_text("AGAIN", SOON);
    gives(
        &supervisor,
        &[
            "\x1b[O",
            focus,
            click,
            "\x1b[<0;20;20m",
            "\x1b[<35;21;21M",
            "\x1b[?997;2n",
            "\x1b[200~pasted\x1b[201~",
            "\x1b[A",
            "\x1b[27u",
        ],
        "pasted\x1b[A\x1b",
    );
}
