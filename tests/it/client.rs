//! The real client in both of its renderers, in terminals that tell keys apart and in one that does not.

use std::{
    fs,
    time::{Duration, Instant},
};

use rustix::process::{Signal, kill_process};

use serde_json::{Value, json};

use crate::{
    kit::{
        messages_api::{Answer, user_texts},
        poll,
        supervisor::{Launch, SOON, Supervisor, key, look, processes_of},
        terminal::Seen,
    },
    reboot::reboot,
};
use alacritty_terminal::vte::ansi::Color;

/// How the client draws.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Renderer {
    /// In line, which one sets: what is over goes to the pane's scrollback.
    InLine,
    /// The default: on the alternate screen, with the mouse and a scrollback of its own.
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
        Renderer::InLine => launch.env("CLAUDE_CODE_NO_FLICKER", "0"),
        Renderer::FullScreen => launch,
    }
}

/// A prompt of two lines, by what the terminal sends for Shift+Enter, arrives as one.
#[track_caller]
fn breaks_a_line(supervisor: &Supervisor, newline: &[&str]) {
    let before = supervisor.launch.api().main_calls().len();
    supervisor.keys(["upper"]);
    supervisor.wait_for_text("upper", SOON);
    supervisor.keys(newline.iter().copied());
    supervisor.keys(["lower"]);
    supervisor.wait_for_text("lower", SOON);
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

/// The client's own choice of colours fits a terminal with such a background: what it shows of its account is grey.
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
        supervisor.wait_until(wanted, moved);
    }
    supervisor.wait_until(wanted, shown);
}

/// A session from the first key to the reboot and the end.
fn a_whole_session(launch: &Launch, newline: &str, dark: bool) {
    let lines: Vec<_> = (1..=90).map(|n| format!("- line {n:02} of it")).collect();
    launch
        .api()
        .answer([Answer::text("Broken."), Answer::text(&lines.join("\n"))]);
    launch.api().report_usage([40_000, 60_000]);
    let supervisor = launch.start_idle();
    suits(&supervisor, dark);
    breaks_a_line(&supervisor, &[newline]);
    supervisor.wait_for_text("40k of 180k usable", SOON);

    let agent = supervisor.agent_pid();
    kill_process(agent, Signal::TSTP).expect("it runs");
    let began = Instant::now();
    supervisor.prompt("tell me all");
    supervisor.wait_for_text("line 90 of it", SOON);
    eprintln!("from SIGTSTP to its answer: {:?}", began.elapsed());
    assert!(look(agent.as_raw_nonzero().get()).is_some());
    supervisor.wait_for_text("60k of 180k usable", SOON);
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
        poll::within(SOON / 20, copied)
    };
    supervisor.wait_until("the line is copied", drag);
    supervisor.keys([key::F9]);
    supervisor.keys(["q"]);
    scrolls_to(&supervisor, 65, "line 90 of it");

    let (shown, got) = reboot(&supervisor);
    assert_eq!(shown, got);
    supervisor.wait_for_text("iteration 2", SOON);
    supervisor.wait_for_state("idle", SOON);
    assert_eq!(supervisor.quit().code, 0);
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
    let supervisor = client(Renderer::InLine).xterm().start_idle();
    suits(&supervisor, false);
    breaks_a_line(&supervisor, &["\x1b[27;2;13~"]);
}

#[test]
#[ignore = "live: needs PITSTOP_CLAUDE"]
fn a_terminal_that_reports_nothing_breaks_lines_by_alt_enter_and_backslash() {
    let supervisor = client(Renderer::FullScreen).mute().start_idle();
    suits(&supervisor, true);
    breaks_a_line(&supervisor, &["\x1b\r"]);
    breaks_a_line(&supervisor, &["\\", "\r"]);
}

/// Longer than the client's daemon goes on without any session: 5 s.
const DAEMON_LINGERS: Duration = Duration::from_secs(15);

/// Opens the agent view after a turn; gives the session's id before and the one that the daemon runs it under.
#[track_caller]
fn moved_to_the_daemon(supervisor: &Supervisor) -> [String; 2] {
    let session = || {
        supervisor.status()["session_id"]
            .as_str()
            .map(str::to_owned)
    };
    supervisor.wait_for_state("idle", SOON);
    supervisor.prompt("count the herons");
    supervisor.wait_for_status(|status| status["context"]["used"].as_u64() > Some(0));
    supervisor.wait_for_state("idle", SOON);
    let before = session().expect("a session");
    let began = Instant::now();
    supervisor.keys(["\x1b[D"]);
    supervisor.wait_for_text("agent view:", SOON);
    eprintln!("from the key to the notice: {:?}", began.elapsed());
    let moved = || session().as_ref() != Some(&before);
    supervisor.wait_until("the session is followed", moved);
    [before.clone(), session().expect("a session")]
}

/// Waits until no process of this home has one of these in its command line.
#[track_caller]
fn gone(supervisor: &Supervisor, marks: &[&str], limit: Duration) {
    let left = || {
        let mut all = processes_of(supervisor.launch.the_home());
        all.retain(|one| marks.iter().any(|mark| one.command.contains(mark)));
        all
    };
    supervisor.wait_until_within(limit, &format!("nothing of {marks:?}"), || {
        left().is_empty()
    });
}

#[test]
#[ignore = "live: needs PITSTOP_CLAUDE"]
fn a_reboot_out_of_the_agent_view_leaves_nothing_of_the_old_session() {
    let launch = client(Renderer::FullScreen);
    launch.api().answer([Answer::text("Twelve herons.")]);
    let supervisor = launch.start();
    let [before, moved] = moved_to_the_daemon(&supervisor);
    // There it would be the task of another session.
    let output = supervisor.run(&["ctl", "say", "hello"]);
    let why = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(
        !output.status.success() && why.contains("not a safe moment"),
        "{why}"
    );
    let began = Instant::now();
    reboot(&supervisor);
    eprintln!("rebooted after {:?}", began.elapsed());
    // The old process had the old id, the worker has both.
    gone(&supervisor, &[&before, &moved], Duration::from_secs(2));
    gone(&supervisor, &["daemon run", "bg-spare"], DAEMON_LINGERS);
    let iterations = supervisor.history()["iterations"].clone();
    assert_eq!(iterations[0]["end_reason"], "user_reboot", "{iterations}");
    let new = supervisor.status()["session_id"].clone();
    assert_eq!(iterations[1]["session_id"], new);
    assert_ne!(new, json!(moved));
    // What history names holds the whole conversation, so that it can be resumed: the session, or its fork once the client has written
    // that, which it does not always before it ends.
    let named = iterations[0]["session_id"].as_str().unwrap_or_default();
    assert!(
        [before, moved].iter().any(|one| one == named),
        "{iterations}"
    );
    let transcripts = launch.the_home().transcripts();
    let old = transcripts
        .iter()
        .find(|path| path.ends_with(format!("{named}.jsonl")));
    let text = fs::read_to_string(old.expect("its transcript")).unwrap();
    assert!(text.contains("count the herons") && text.contains("Twelve herons."));
}

#[test]
#[ignore = "live: needs PITSTOP_CLAUDE"]
fn a_session_back_from_the_agent_view_goes_on_and_quitting_ends_it_in_the_daemon() {
    let launch = client(Renderer::FullScreen);
    launch
        .api()
        .answer([Answer::text("Twelve herons."), Answer::text("No egrets.")]);
    let supervisor = launch.start();
    let [_, moved] = moved_to_the_daemon(&supervisor);
    supervisor.keys([key::ENTER]);
    let back = || {
        let screen = supervisor.screen();
        !screen.contains("agent view:") && !screen.contains("describe a task")
    };
    supervisor.wait_until("the session is back, the banner gone", back);
    supervisor.wait_for_text("Twelve herons.", SOON);
    supervisor.prompt("count the egrets");
    // A worker of 2.1.197 reaches no stand-in; its turn fails, which is a turn all the same.
    let answered = || {
        let screen = supervisor.screen();
        screen.contains("No egrets.") || screen.contains("API Error: Unable to connect")
    };
    supervisor.wait_until("the answer", answered);
    supervisor.wait_for_state("idle", SOON);
    assert_eq!(supervisor.status()["session_id"], json!(moved));
    supervisor.quit();
    gone(&supervisor, &[&moved], Duration::ZERO);
    let home = launch.the_home();
    let all = || processes_of(home).is_empty();
    supervisor.wait_until_within(DAEMON_LINGERS, "the daemon has ended by itself", all);
}

/// A name that no test has would be left out without a word.
#[test]
fn the_contract_names_tests_that_exist_and_are_live() {
    let tests = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it");
    let clients: toml::Table = include_str!("../../assets/clients.toml")
        .parse()
        .expect("TOML");
    let contract = clients["contract"].as_array().expect("a list");
    assert!(contract.len() > 10);
    for name in contract.iter().filter_map(|name| name.as_str()) {
        let (module, function) = name.rsplit_once("::").expect("a module");
        let file = tests.join(format!("{}.rs", module.replace("::", "/")));
        let text = fs::read_to_string(&file).expect(name);
        let live = format!("#[ignore = \"live: needs PITSTOP_CLAUDE\"]\nfn {function}()");
        assert!(text.contains(&live), "{name}");
    }
}
