//! The real client in both of its renderers, in terminals that tell keys apart and in one that does not.

use std::{fs, time::Instant};

use rustix::process::{Signal, kill_process};
use serde_json::{Value, json};

use crate::{
    kit::{
        messages_api::{Answer, user_texts},
        supervisor::{Launch, SOON, Supervisor, key, look, processes_of},
        terminal::Seen,
    },
    reboot::reboot,
};
use alacritty_terminal::vte::ansi::Color;

/// How the client draws.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Renderer {
    /// In line: what is over goes to the pane's scrollback.
    InLine,
    /// On the alternate screen, with the mouse and a scrollback of its own.
    FullScreen,
}

/// The client with a theme by the terminal's background.
fn client(renderer: Renderer) -> Launch {
    let launch = Launch::live()
        .set("reboot.mode=\"manual\"")
        .agent_args(["--model", "claude-sonnet-4-5"])
        .notes("# Scratchpad\n\n## Current Plan\n- [ ] go on\n");
    let file = launch.the_home().path(".claude.json");
    let mut state: Value = serde_json::from_slice(&fs::read(&file).expect("a file")).expect("JSON");
    state["theme"] = json!("auto");
    fs::write(file, state.to_string()).expect("written");
    match renderer {
        Renderer::InLine => launch,
        Renderer::FullScreen => launch.env("CLAUDE_CODE_NO_FLICKER", "1"),
    }
}

/// A prompt of two lines, by what the terminal sends for Shift+Enter, arrives as one.
#[track_caller]
fn breaks_a_line(supervisor: &Supervisor, newline: &[&str]) {
    let before = supervisor.launch.api().main_calls().len();
    supervisor.keys(["upper"]);
    supervisor.terminal.wait_for_text("upper", SOON);
    supervisor.keys(newline.iter().copied());
    supervisor.keys(["lower"]);
    supervisor.terminal.wait_for_text("lower", SOON);
    supervisor.keys([key::ENTER]);
    let calls = supervisor.launch.api().wait_for_calls(before + 1, SOON);
    let texts = calls.last().map(user_texts).unwrap_or_default();
    let last = texts.last().map(String::as_str);
    assert_eq!(last, Some("upper\nlower"), "{newline:?}");
    supervisor.wait_for_state("idle", SOON);
}

/// Where a text stands on the screen, from 0.
fn place(cells: &[Vec<Seen>], wanted: &str) -> Option<(usize, usize)> {
    cells.iter().enumerate().find_map(|(row, cells)| {
        let at = |column: usize| {
            let text = cells[column..].iter().map(|cell| cell.text.as_str());
            text.take(wanted.chars().count()).collect::<String>() == wanted
        };
        (0..cells.len())
            .find(|column| at(*column))
            .map(|column| (row, column))
    })
}

/// The lightness of the first cell of a text, from 0 to 255.
fn lightness(cells: &[Vec<Seen>], text: &str) -> Option<u32> {
    let (row, column) = place(cells, text)?;
    match cells[row][column].foreground {
        Color::Spec(rgb) => Some((u32::from(rgb.r) + u32::from(rgb.g) + u32::from(rgb.b)) / 3),
        _ => None,
    }
}

/// The client's own choice of colours fits a terminal with such a background: what it tells of its account is grey.
#[track_caller]
fn suits(supervisor: &Supervisor, dark: bool) {
    let fits = |cells: &[Vec<Seen>], _| {
        lightness(cells, "API Usage").is_some_and(|level| (level > 127) == dark)
    };
    assert!(
        supervisor.terminal.wait_for_cells(fits, SOON),
        "dark: {dark}, found {:?}\n{}",
        lightness(&supervisor.terminal.cells(), "API Usage"),
        supervisor.screen()
    );
}

/// A button's report as the terminal sends it, of a cell counted from 0.
fn mouse(button: u8, (row, column): (usize, usize), end: char) -> String {
    format!("\x1b[<{button};{};{}{end}", column + 1, row + 1)
}

/// Turns the wheel until a text is on the screen.
#[track_caller]
fn scrolls_to(supervisor: &Supervisor, button: u8, wanted: &str) {
    let shown = || supervisor.screen().contains(wanted);
    for _ in 0..60 {
        if shown() {
            return;
        }
        let before = supervisor.terminal.output().len();
        supervisor.keys([mouse(button, (20, 20), 'M').as_str()]);
        let moved = || shown() || supervisor.terminal.output().len() > before;
        supervisor.wait_until(wanted, moved, SOON);
    }
    supervisor.wait_until(wanted, shown, SOON);
}

/// A session from the first key to the reboot and the end.
fn a_whole_session(launch: &Launch, newline: &str, dark: bool) {
    let lines: Vec<_> = (1..=90).map(|n| format!("- line {n:02} of it")).collect();
    launch
        .api()
        .answer([Answer::text("Broken."), Answer::text(&lines.join("\n"))]);
    launch.api().report_usage([40_000, 60_000]);
    let supervisor = launch.start();
    supervisor.wait_for_state("idle", SOON);
    suits(&supervisor, dark);
    breaks_a_line(&supervisor, &[newline]);
    supervisor
        .terminal
        .wait_for_text("40k of 180k usable", SOON);

    let agent = supervisor.agent_pid();
    kill_process(agent, Signal::TSTP).expect("it runs");
    let began = Instant::now();
    supervisor.prompt("tell me all");
    supervisor.terminal.wait_for_text("line 90 of it", SOON);
    eprintln!("from SIGTSTP to its answer: {:?}", began.elapsed());
    assert!(look(agent.as_raw_nonzero().get()).is_some());
    supervisor
        .terminal
        .wait_for_text("60k of 180k usable", SOON);
    supervisor.wait_for_state("idle", SOON);

    assert!(!supervisor.screen().contains("line 05 of it"));
    scrolls_to(&supervisor, 64, "line 05 of it");
    let copied = || {
        let output = supervisor.terminal.output();
        String::from_utf8_lossy(&output).contains("\x1b]52;c;bGluZSAwNQ==\x1b\\")
    };
    // The client may still scroll: then another line is copied, and it takes one more try.
    let drag = || {
        let Some((row, column)) = place(&supervisor.terminal.cells(), "line 05") else {
            return false;
        };
        let end = (row, column + "line 05".len() - 1);
        for (button, cell, end) in [(4, (row, column), 'M'), (36, end, 'M'), (4, end, 'm')] {
            supervisor.keys([mouse(button, cell, end).as_str()]);
        }
        let end = Instant::now() + SOON / 20;
        while !copied() && Instant::now() < end {
            std::thread::sleep(std::time::Duration::from_millis(20));
        }
        copied()
    };
    supervisor.wait_until("the line is copied", drag, SOON);
    supervisor.keys([key::F9]);
    supervisor.keys(["q"]);
    scrolls_to(&supervisor, 65, "line 90 of it");

    let (shown, got) = reboot(&supervisor);
    assert_eq!(shown, got);
    supervisor.terminal.wait_for_text("iteration 2", SOON);
    supervisor.wait_for_state("idle", SOON);
    supervisor.keys([key::F10]);
    assert_eq!(supervisor.wait_for_exit(SOON).code, 0);
    assert_eq!(supervisor.terminal.modes_left_on(), [""; 0]);
}

/// What the client wrote in its first iteration.
fn written(launch: &Launch) -> String {
    let runs = fs::read_dir(launch.project().join(".pitstop/runs")).expect("runs");
    let run = runs.flatten().next().expect("a run").path();
    fs::read_to_string(run.join("iteration-1/pane.cast")).expect("a recording")
}

#[test]
#[ignore = "live: needs PITSTOP_CLAUDE"]
fn a_session_in_line_in_a_dark_terminal_with_the_kitty_protocol() {
    let launch = client(Renderer::InLine);
    a_whole_session(&launch, "\x1b[13;2u", true);
    assert!(!written(&launch).contains("\\u001b[?1049h"));
}

#[test]
#[ignore = "live: needs PITSTOP_CLAUDE"]
fn a_session_full_screen_in_a_light_terminal_with_modify_other_keys() {
    // Started inside another client, too: none of its marks may reach ours, or its hooks would not fire.
    let marks = [
        ("CLAUDECODE", "1"),
        ("CLAUDE_CODE_ENTRYPOINT", "cli"),
        (
            "CLAUDE_CODE_SESSION_ID",
            "2baa54e0-3f7f-4168-9977-e8622e7e025c",
        ),
        ("CLAUDE_CODE_CHILD_SESSION", "1"),
        ("CLAUDE_CODE_SSE_PORT", "1"),
        ("GIT_EDITOR", "true"),
    ];
    let launch = client(Renderer::FullScreen).xterm();
    let launch = marks
        .into_iter()
        .fold(launch, |launch, (name, value)| launch.env(name, value));
    a_whole_session(&launch, "\x1b[27;2;13~", false);
    assert!(written(&launch).contains("\\u001b[?1049h"));
}

#[test]
#[ignore = "live: needs PITSTOP_CLAUDE"]
fn shift_enter_in_line_in_a_light_terminal_with_modify_other_keys() {
    let supervisor = client(Renderer::InLine).xterm().start();
    supervisor.wait_for_state("idle", SOON);
    suits(&supervisor, false);
    breaks_a_line(&supervisor, &["\x1b[27;2;13~"]);
}

#[test]
#[ignore = "live: needs PITSTOP_CLAUDE"]
fn a_terminal_that_tells_nothing_breaks_lines_by_alt_enter_and_backslash() {
    let supervisor = client(Renderer::FullScreen).mute().start();
    supervisor.wait_for_state("idle", SOON);
    suits(&supervisor, true);
    breaks_a_line(&supervisor, &["\x1b\r"]);
    breaks_a_line(&supervisor, &["\\", "\r"]);
}

#[test]
#[ignore = "live: needs PITSTOP_CLAUDE"]
fn the_agent_view_is_noticed() {
    let mut supervisor = client(Renderer::InLine).start();
    supervisor.wait_for_state("idle", SOON);
    let began = Instant::now();
    supervisor.keys(["\x1b[D"]);
    supervisor.terminal.wait_for_text("agent view:", SOON);
    eprintln!("from the key to the notice: {:?}", began.elapsed());
    // There it would be the task of another session.
    let output = supervisor.run(&["ctl", "say", "hello"]);
    let why = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(!output.status.success() && why.contains("dialog"), "{why}");
    // The daemon that it has started is its own, and outlives everything.
    supervisor.check_nothing();
    let home = supervisor.launch.the_home().clone();
    supervisor.terminal.signal(Signal::TERM);
    supervisor.wait_for_exit(SOON);
    let gone = || {
        for one in processes_of(&home) {
            if let Some(pid) = rustix::process::Pid::from_raw(one.pid) {
                let _ = kill_process(pid, Signal::KILL);
            }
        }
        processes_of(&home).is_empty()
    };
    supervisor.wait_until("nothing of it is left", gone, SOON);
}
