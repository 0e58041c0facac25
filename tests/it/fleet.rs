//! `[fleet] hosts`: the sessions of other machines, over a stand-in for ssh that runs what it is asked to in another home, hangs, or
//! answers with nonsense.

use std::{
    fs,
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

use serde_json::Value;

use crate::{
    attach::{call, same_screen},
    kit::{
        output::all,
        supervisor::{Launch, PITSTOP, SOON, Supervisor},
    },
};

/// The time that a list may take in a debug build on a busy machine; a host that hangs would take all of 15 s.
const AT_ONCE: Duration = Duration::from_secs(3);

const SIZE: (u16, u16) = (140, 45);

/// A machine with these hosts in its fleet, of which `box` is the home of another launch.
fn fleet(hosts: &str, there: &Launch) -> Launch {
    let here = Launch::quiet_demo();
    let home = here.the_home();
    let bin = home.path("bin");
    let environment = there.environment();
    let theirs = environment
        .iter()
        .filter(|(name, _)| !matches!(name.to_str(), Some("PATH" | "TERM")));
    let exports: Vec<String> = theirs
        .map(|(name, value)| format!("export {}='{}'", name.display(), value.display()))
        .collect();
    let exports = exports.join("\n");
    // The last word is what the shell there runs.
    let ssh = format!(
        "#!/bin/sh\necho \"$*\" >>{asked}\nwhile [ \"$1\" != -- ]; do shift; done\n\
         case $2 in hangs) exec sleep 1000;; greets) echo Welcome; echo 'for members only' >&2; trap 'echo Bye' EXIT;;\n\
         old) echo \"error: unexpected argument '--local' found\" >&2; echo \"try '--help'\" >&2; exit 2;; bare) exit 127;;\n\
         down) echo 'ssh: no route to host' >&2; exit 255;; nonsense) cat {nonsense}; exit;; esac\n\
         [ -e {gone} ] && exit 255\n{exports}\ncd {dir}; (eval \"$3\")\n",
        asked = home.path("asked").display(),
        nonsense = home.path("nonsense").display(),
        gone = home.path("gone").display(),
        dir = there.the_home().path("").display(),
    );
    for (name, text) in [
        ("ssh", ssh),
        ("pitstop", format!("#!/bin/sh\nexec {PITSTOP} \"$@\"\n")),
    ] {
        home.program(&format!("bin/{name}"), &text);
    }
    let path = std::env::var("PATH").unwrap();
    let config = home.path("config/pitstop");
    fs::create_dir_all(&config).unwrap();
    fs::write(
        config.join("config.toml"),
        format!("[fleet]\nhosts = {hosts}\n"),
    )
    .unwrap();
    here.env("PATH", format!("{}:{path}", bin.display()))
}

/// Lists the sessions of other hosts by `ls --json`, which must not wait for any host. A test beside this one, whose runtime directory
/// is gone, has its session in the directory that all sessions of this user share then.
fn listed(launch: &Launch) -> Value {
    let began = Instant::now();
    let output = launch.command(&["ls", "--json"]).output().unwrap();
    assert!(began.elapsed() < AT_ONCE, "{:?}", began.elapsed());
    assert_eq!(output.status.code(), Some(0), "{}", all(&output));
    let mut list: Value = serde_json::from_slice(&output.stdout).unwrap();
    if let Some(sessions) = list["sessions"].as_array_mut() {
        sessions.retain(|session| !session["host"].is_null());
    }
    list
}

/// Lists until the sessions of `box` are there.
fn answered(launch: &Launch, there: &Supervisor) -> Value {
    let sessions = || listed(launch)["sessions"].as_array().map_or(0, Vec::len);
    there.wait_until("the host has answered", || sessions() > 0);
    listed(launch)
}

fn asked(home: &Path) -> usize {
    let text = fs::read_to_string(home).unwrap_or_default();
    text.lines().count()
}

#[test]
fn the_sessions_of_other_machines_are_listed_and_attached_to_and_no_host_delays_the_list() {
    let there = Launch::quiet_demo().size(SIZE.0, SIZE.1).start_idle();
    let here = fleet(r#"["box", "hangs", "down"]"#, &there.launch);
    let list = answered(&here, &there);
    let session = &list["sessions"][0];
    let project = there.launch.project().display().to_string();
    assert_eq!(session["host"], "box", "{list}");
    assert_eq!(session["project"], project.as_str());

    // It is in the list of which one chooses, and ssh shows it in this terminal.
    let terminal = call(&here, here.project(), SIZE, &["ls"]);
    terminal.wait_for_text(
        &format!("box:{project}")
            .chars()
            .take(20)
            .collect::<String>(),
        SOON,
    );
    terminal.send("/box:\r\r");
    same_screen(&there.terminal, &terminal, SOON);
    terminal.send("\u{11}d");
    assert_eq!(terminal.wait_for_exit(SOON).code, 0);

    // One that does not answer any more keeps its place, by what it said last, and says why.
    let gone: PathBuf = here.the_home().path("gone");
    fs::write(gone, "").unwrap();
    let table = || all(&here.command(&["ls"]).output().unwrap());
    there.wait_until("it is old", || table().contains("idle ("));
    let says_why = || table().contains("does not answer: ssh: ");
    there.wait_until("a host that is down", says_why);
    let silent = || listed(&here)["silent_hosts"].to_string();
    there.wait_until("the reason", || silent().contains("no route to host"));
    // A list asks each host at most once in five seconds, however often it is called.
    assert!(asked(&here.the_home().path("asked")) < 40);
    let local = all(&here.command(&["ls", "--local"]).output().unwrap());
    assert!(!local.contains("box") && !local.contains("down"), "{local}");
}

#[test]
fn a_host_may_greet_and_one_without_a_pitstop_that_can_answer_is_told() {
    let there = Launch::quiet_demo().start_idle();
    let here = fleet(r#"["greets", "bare", "old"]"#, &there.launch);
    let list = answered(&here, &there);
    assert_eq!(list["sessions"][0]["host"], "greets", "{list}");
    let silent = || listed(&here)["silent_hosts"].to_string();
    for why in [
        "pitstop is not installed there",
        "pitstop there: unexpected argument '--local' found",
    ] {
        there.wait_until(why, || silent().contains(why));
    }
}

#[test]
fn a_host_that_answers_with_nonsense_is_no_danger() {
    let there = Launch::quiet_demo().start_idle();
    let here = fleet(r#"["nonsense"]"#, &there.launch);
    let nonsense = here.the_home().path("nonsense");
    let status: Value = serde_json::from_str(&all(&there.run(&["status", "--json"]))).unwrap();
    let mut evil = status.clone();
    evil["project"] = "/p\u{1b}]0;owned\u{7}'; touch owned; '".into();
    // Only the shared store names the host of a session.
    evil["host"] = "-oProxyCommand=touch owned".into();
    evil["objective"] = "\u{1b}[2J\u{202e}evil".into();
    let answers = [
        "not json".to_owned(),
        "{\"sessions\": 3}".to_owned(),
        format!("{{\"sessions\": [{{\"pid\": \"x\"}}, {evil}]}}"),
    ];
    for answer in answers {
        fs::write(&nonsense, &answer).unwrap();
        let status = here
            .command(&["ls", "--ask-host", "nonsense"])
            .status()
            .unwrap();
        assert!(status.success());
        let output = here.command(&["ls"]).output().unwrap();
        assert!(output.status.success());
        let text = all(&output);
        assert!(
            !text.contains('\u{1b}') && !text.contains('\u{202e}'),
            "{text}"
        );
        assert!(text.contains("nonsense"), "{text}");
    }
    for host in ["-oProxyCommand=touch owned", "../../x", "a b", ""] {
        let output = here.command(&["ls", "--ask-host", host]).output().unwrap();
        assert_eq!(output.status.code(), Some(2), "{}", all(&output));
    }
    // The project's path is one word for the shell there.
    let terminal = call(&here, here.project(), SIZE, &["ls"]);
    terminal.wait_for_text("Enter attach", SOON);
    terminal.send("\r");
    terminal.wait_for_exit(SOON);
    for place in [
        here.project(),
        there.launch.project(),
        &here.the_home().path(""),
    ] {
        assert!(!place.join("owned").exists());
    }
}
