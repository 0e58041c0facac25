//! What the commands promise, all in one table; and `pitstop context`, which reads files alone.

use std::{
    ffi::OsStr,
    fs,
    process::{Command, Output},
};

use serde_json::{Value, json};

use crate::kit::{
    home::Home,
    output::{all, text},
    supervisor::{Launch, PITSTOP, SOON, pitstop_at},
    terminal::{Answers, Spec, Terminal},
};

const FIRST: &str = "0a0b0c0d-0001-4002-8003-000000000001";
const SECOND: &str = "0a0b0c0d-0001-4002-8003-000000000002";

fn context(home: &Home, args: &[&str]) -> Output {
    pitstop_at(home, &["context"]).args(args).output().unwrap()
}

fn transcript(home: &Home, session: &str, command: &str, printed: &str) {
    let call = json!({"type": "assistant", "sessionId": session, "message": {"content": [
        {"type": "tool_use", "id": "t1", "name": "Bash", "input": {"command": command}}]}});
    let result = json!({"type": "user", "sessionId": session, "toolUseResult": {"stdout": printed, "stderr": ""},
        "message": {"content": [{"type": "tool_result", "tool_use_id": "t1", "content": printed}]}});
    let directory = home.claude_dir().join("projects/anything");
    fs::create_dir_all(&directory).unwrap();
    let file = directory.join(format!("{session}.jsonl"));
    fs::write(file, format!("{call}\n{result}\n")).unwrap();
}

/// A run whose iterations spoke in these sessions.
fn run(home: &Home, sessions: &[Option<&str>]) {
    let directory = home.project().join(".pitstop/runs/20260101-000000-abcdef");
    fs::create_dir_all(&directory).unwrap();
    let iterations: Vec<Value> = sessions
        .iter()
        .enumerate()
        .map(|(n, session)| {
            let mut one = json!({"iteration": n + 1, "started_at": "2026-01-01T00:00:00Z", "tokens": {"input": 0, "output": 0}});
            if let Some(session) = session {
                one["session_id"] = json!(session);
            }
            one
        })
        .collect();
    let meta = json!({"run": "20260101-000000-abcdef", "iterations": iterations});
    fs::write(directory.join("meta.json"), meta.to_string()).unwrap();
}

#[test]
fn the_present_session_is_the_last_one_of_the_newest_run() {
    let home = Home::new().unwrap();
    run(&home, &[Some(FIRST), Some(SECOND)]);
    transcript(&home, FIRST, "make", "old\n");
    transcript(&home, SECOND, "cargo test", "\u{1b}[32mok\u{1b}[0m\n");
    assert_eq!(text(&context(&home, &[])), "$ cargo test\nok\n");
    assert_eq!(
        text(&context(&home, &["--all"])),
        format!(
            "=== Session {FIRST} ===\n$ make\nold\n\n=== Session {SECOND} ===\n$ cargo test\nok\n"
        )
    );
    let json: Value = serde_json::from_str(&text(&context(&home, &["--json"]))).unwrap();
    assert_eq!(json["sessions"][0]["id"], SECOND);
    assert_eq!(json["sessions"][0]["commands"][0]["output"], "ok\n");
    assert_eq!(json["sessions"][1], Value::Null);
}

#[test]
fn an_agent_without_a_transcript_has_its_recording() {
    let home = Home::new().unwrap();
    run(&home, &[None]);
    let iteration = home
        .project()
        .join(".pitstop/runs/20260101-000000-abcdef/iteration-1");
    fs::create_dir_all(&iteration).unwrap();
    let event = json!([
        0.1,
        "o",
        "\u{1b}]133;B\u{7}ls\r\n\u{1b}]133;C\u{7}a\r\n\u{1b}]133;D;0\u{7}"
    ]);
    let header = json!({"version": 2, "width": 80, "height": 24});
    fs::write(iteration.join("pane.cast"), format!("{header}\n{event}\n")).unwrap();
    assert_eq!(text(&context(&home, &[])), "$ ls\na\n");
    assert!(
        text(&context(&home, &["--all"]))
            .starts_with("=== Session 20260101-000000-abcdef/1 ===\n$ ls\n")
    );
}

#[test]
fn a_project_without_sessions_says_so() {
    let home = Home::new().unwrap();
    let output = context(&home, &[]);
    assert_eq!(output.status.code(), Some(1));
    assert!(
        String::from_utf8_lossy(&output.stderr).contains("no session of this project is on record")
    );
    assert_eq!(text(&context(&home, &["--json"])), "{\"sessions\":[]}\n");
}

// What every command promises, in one table.

/// A command: its words, its exit code where no supervisor runs and nothing is kept, and its code beside one.
const COMMANDS: [(&[&str], i32, i32); 59] = [
    (&["--help"], 0, 0),
    (&["--version"], 0, 0),
    (&["help", "restore"], 0, 0),
    (&["status"], 3, 0),
    (&["status", "--json"], 3, 0),
    (&["status", "--line"], 3, 0),
    (&["status", "--watch"], 2, 2),
    (&["history"], 3, 0),
    (&["history", "--json"], 3, 0),
    (&["history", "--totals"], 3, 0),
    (&["history", "--totals", "--json"], 3, 0),
    (&["history", "--all", "--json"], 3, 0),
    (&["history", "--search", "no such words"], 3, 0),
    (&["history", "no-such-session"], 3, 1),
    (&["history", "--chart"], 3, 1),
    (&["api", "GET", "/status"], 3, 0),
    (&["api", "get", "/no-such-path"], 3, 1),
    (&["api", "GET", "status"], 2, 2),
    (&["api", "post", "/control/resume"], 3, 0),
    (&["api", "DELETE", "/status"], 2, 2),
    (&["handoff"], 3, 0),
    (&["handoff", "--json"], 3, 0),
    (&["handoff", "--check"], 3, 0),
    (&["handoff", "--check", "--json"], 3, 0),
    (&["ctl", "resume"], 3, 0),
    (&["ctl", "undo"], 3, 1),
    (&["check"], 0, 0),
    (&["check", "--json"], 0, 0),
    (&["context", "--json"], 0, 0),
    (&["trust", "--show"], 2, 2),
    (&["trim", "no-such-session"], 1, 1),
    (&["save"], 1, 0),
    (&["save", "--task", "x", "--json"], 0, 0),
    (&["restore", "--list"], 0, 0),
    (&["restore", "--list", "--json"], 0, 0),
    (&["restore", "nowhere"], 1, 1),
    (&["prune"], 0, 0),
    (&["prune", "--dry-run", "--json"], 0, 0),
    (&["doctor"], 1, 1),
    (&["doctor", "--json"], 1, 1),
    (&["phone", "list"], 0, 0),
    (&["phone", "list", "--json"], 0, 0),
    (&["phone", "revoke", "no-such-device"], 1, 1),
    (&["phone", "--url", "nowhere"], 2, 2),
    (&["plugin", "install", "bare", "--json"], 0, 0),
    (&["plugin", "remove", "nowhere"], 1, 1),
    (&["plugin", "gauge"], 2, 2),
    (&["completions", "bash"], 0, 0),
    (&["completions", "zsh"], 0, 0),
    (&["completions", "fish"], 0, 0),
    (&["man"], 0, 0),
    (&["hook", "NoSuchEvent"], 0, 0),
    (&["statusline"], 0, 0),
    (&["no-such-command"], 2, 2),
    (&["prune", "--older-than", "soon"], 2, 2),
    (&["attach", ""], 2, 2),
    (&["ctl", "reboot", "--yes"], 2, 2),
    (&["api", "GET", "/status", "--data", "{}"], 2, 2),
    (&["save", "--tag", "two words"], 2, 2),
];

#[test]
fn a_mistyped_command_gets_the_nearest_one() {
    let home = Home::new().unwrap();
    for (word, meant) in [
        ("demmo", Some("did you mean `pitstop demo`?")),
        ("undo", Some("did you mean `pitstop ctl undo`?")),
        ("reboot", Some("did you mean `pitstop ctl reboot`?")),
        ("frobnicate", None),
    ] {
        let output = pitstop_at(&home, &[word]).output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(2), "{said}");
        assert!(
            said.contains(&format!("there is no command \"{word}\"")),
            "{said}"
        );
        assert_eq!(said.contains("did you mean"), meant.is_some(), "{said}");
        assert!(said.contains(meant.unwrap_or("--help")), "{said}");
    }
    let output = pitstop_at(&home, &["resume"]).output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(
        said.contains("`pitstop` alone lists the sessions"),
        "{said}"
    );
}

#[test]
fn help_lists_a_command_s_own_flags_before_those_of_every_command_and_the_commands_in_order() {
    let help = |args: &[&str]| {
        let output = std::process::Command::new(PITSTOP).args(args).output();
        text(&output.unwrap())
    };
    let listed = |page: &str, from: &str, indent: &str| -> Vec<String> {
        let (_, rows) = page.split_once(from).expect(page);
        let rows = rows.lines().filter(|row| row.starts_with(indent));
        let words = rows.filter_map(|row| row[indent.len()..].split(' ').next());
        let words = words.filter(|word| word.starts_with(|c: char| c == '-' || c.is_alphabetic()));
        words.map(str::to_owned).collect()
    };
    let page = help(&["--help"]);
    let (commands, _) = page.split_once("\nArguments:").expect(&page);
    let commands = listed(commands, "Commands:", "  ");
    let [demo, others @ .., last] = &commands[..] else {
        panic!("{commands:?}");
    };
    assert_eq!((demo.as_str(), last.as_str()), ("demo", "help"));
    assert!(others.is_sorted() && others.len() > 20, "{others:?}");
    for command in others {
        let page = help(&[command, "-h"]);
        let flags = listed(&page, "Options:", "      ");
        assert!(
            flags.ends_with(&["--config".to_owned(), "--set".to_owned()]),
            "{page}"
        );
    }
}

/// Its code is the promised one; what it prints is clean, is one JSON object where that was asked for, and needs
/// no one who reads it.
fn keeps_its_promise(launch: &Launch, args: &[&str], code: i32) {
    let output = launch.run(args);
    let reported = format!(
        "{args:?}: {}{}",
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    );
    assert_eq!(output.status.code(), Some(code), "{reported}");
    for raw in ['\u{1b}', '\u{7}', '\u{9b}'] {
        assert!(!reported.contains(raw), "{reported:?}");
    }
    if args.contains(&"--json") && !output.stdout.is_empty() {
        let json: Value = serde_json::from_slice(&output.stdout).expect(&reported);
        assert!(json.is_object(), "{reported}");
        assert_eq!(
            String::from_utf8_lossy(&output.stdout).lines().count(),
            1,
            "{reported}"
        );
    }
    if code != 0 && output.stdout.is_empty() {
        assert!(reported.contains("error: "), "{reported}");
    }

    let mut alone = launch.command(args);
    let (reader, writer) = std::io::pipe().unwrap();
    drop(reader);
    alone.stdout(writer).stderr(std::process::Stdio::piped());
    let output = alone.output().unwrap();
    let reported = String::from_utf8_lossy(&output.stderr);
    assert!(!reported.contains("panicked"), "{args:?}: {reported}");
    assert_eq!(
        output.status.code(),
        Some(code),
        "{args:?} with no one to read it: {reported}"
    );
}

#[test]
fn every_command_keeps_its_promises_where_no_supervisor_runs() {
    for (args, code, _) in COMMANDS {
        // Each in a place of its own: some leave something behind.
        let launch = Launch::quiet_demo().set("agent.command=\"no-such-client\"");
        keeps_its_promise(&launch, args, code);
    }
}

#[test]
fn every_command_keeps_its_promises_beside_a_supervisor() {
    let supervisor = Launch::quiet_demo().start_idle();
    for (args, _, code) in COMMANDS {
        keeps_its_promise(&supervisor.launch, args, code);
    }
}

#[test]
fn colours_are_for_terminals_that_want_them() {
    let launch = Launch::quiet_demo();
    let faulty = launch.project().join("faulty.toml");
    fs::write(&faulty, "[guard]\nwarn = \"x\"\n").unwrap();
    let args = [OsStr::new("check"), faulty.as_os_str()].map(Into::into);
    for (no_color, coloured) in [(false, true), (true, false)] {
        let mut env = launch.the_home().env();
        if no_color {
            env.push(("NO_COLOR".into(), "1".into()));
        }
        // In a terminal, then in a pipe.
        let terminal = Terminal::spawn(&Spec {
            program: OsStr::new(PITSTOP),
            args: &args,
            env: &env,
            dir: launch.project(),
            columns: 100,
            rows: 30,
            answers: Answers::All,
        });
        let exit = terminal.wait_for_exit(SOON);
        assert_eq!(terminal.output().contains(&0x1b), coloured, "{exit:?}");
        let output = Command::new(PITSTOP)
            .args(&args)
            .env_clear()
            .envs(env)
            .output()
            .unwrap();
        assert_eq!(output.status.code(), Some(2));
        assert!(![output.stdout, output.stderr].concat().contains(&0x1b));
    }
}

#[test]
fn the_manual_has_a_page_for_each_command() {
    let home = Home::new().unwrap();
    let run = pitstop_at(&home, &["man", "pages"]).output().unwrap();
    assert!(run.status.success(), "{run:?}");
    for page in ["pitstop.1", "pitstop-restore.1", "pitstop-doctor.1"] {
        let text = fs::read_to_string(home.project().join("pages").join(page)).expect(page);
        assert!(text.contains(".SH NAME"), "{page}");
    }
}

#[test]
fn a_run_that_is_alive_is_never_forgotten_and_its_checkpoint_neither() {
    // It runs no tests, whose outcome would be a checkpoint of its own.
    let supervisor = Launch::quiet_demo()
        .env("PITSTOP_DEMO_REPLY", "Understood.")
        .start_idle();
    supervisor.turn("begin", "Understood.");
    let run = supervisor.status()["run_id"].as_str().unwrap().to_owned();
    for tag in ["first", "second"] {
        assert!(supervisor.run(&["ss", "--tag", tag]).status.success());
    }
    let prune = |args: &[&str]| -> Value {
        let mut all = vec!["prune", "--json", "--older-than", "0"];
        all.extend(args);
        serde_json::from_str(&text(&supervisor.run(&all))).unwrap()
    };
    let would = prune(&["--dry-run"]);
    assert_eq!(would["runs"], json!([]));
    assert!(would["checkpoints"].as_u64() >= Some(1), "{would}");
    let did = prune(&[]);
    assert_eq!(did["checkpoints"], would["checkpoints"]);
    let directory = supervisor.launch.project().join(".pitstop/runs").join(&run);
    assert!(directory.join("iteration-1").is_dir());
    let list = text(&supervisor.run(&["restore", "--list"]));
    assert!(list.contains("second") && !list.contains("first"), "{list}");

    let launch = supervisor.kill();
    let list = text(&launch.run(&["restore", "--list"]));
    let newest = list.lines().nth(1).and_then(|line| line.get(..8)).unwrap();
    let did: Value = serde_json::from_str(&text(&launch.run(&[
        "prune",
        "--json",
        "--older-than",
        "0",
    ])))
    .unwrap();
    assert_eq!(did["runs"], json!([run]));
    assert_eq!(did["directories"], 1);
    assert!(!directory.exists());
    assert_eq!(launch.run(&["history"]).status.code(), Some(3));
    assert!(text(&launch.run(&["restore", "--list"])).contains(newest));
}

#[test]
fn the_doctor_names_what_is_amiss_and_what_to_do() {
    let supervisor = Launch::quiet_demo().start_idle();
    supervisor.prompt("begin");
    let examine = |launch: &Launch| -> Value {
        let output = launch.run(&["doctor", "--json"]);
        serde_json::from_slice(&output.stdout).unwrap()
    };
    let state = |report: &Value, name: &str| -> String {
        let checks = report["checks"].as_array().unwrap();
        let check = checks.iter().find(|check| check["name"] == name);
        check.unwrap_or_else(|| panic!("no {name}"))["state"]
            .as_str()
            .unwrap()
            .to_owned()
    };
    supervisor.wait_until("all is seen", || {
        let report = examine(&supervisor.launch);
        [
            "supervisor",
            "session id",
            "hooks",
            "client's limit",
            "store",
        ]
        .iter()
        .all(|name| state(&report, name) == "ok")
    });
    let report = examine(&supervisor.launch);
    // The real client is not there: what is broken has a remedy.
    assert_eq!(
        (state(&report, "client").as_str(), &report["ok"]),
        ("broken", &json!(false))
    );
    for check in report["checks"].as_array().unwrap() {
        let fine = check["state"] == "ok" || check["name"] == "terminal's answers";
        assert!(fine || check["remedy"] != "", "{check}");
    }

    let launch = supervisor.kill();
    let database = launch.the_home().path("state/pitstop/pitstop.db");
    let settings = launch.the_home().claude_dir().join("settings.json");
    fs::write(settings, "{\"disableAllHooks\": true}").unwrap();
    fs::create_dir_all(launch.the_home().path("config/pitstop")).unwrap();
    fs::write(
        launch.the_home().path("config/pitstop/config.toml"),
        "nonsense",
    )
    .unwrap();
    fs::remove_file(&database).unwrap();
    fs::create_dir(&database).unwrap();
    let report = examine(&launch);
    for name in ["configuration", "hooks", "store"] {
        assert_eq!(state(&report, name), "broken", "{report:#}");
    }
}

/// A shell that is no login shell lacks the first in its `PATH`; the second is only named by an alias.
#[test]
fn the_client_is_found_where_its_installers_put_it() {
    for place in [".local/bin", ".claude/local"] {
        let home = Home::new().unwrap();
        let client = "#!/bin/sh\necho '2.1.330 (Claude Code)'\n";
        let program = home.program(&format!("{place}/claude"), client);
        let mut doctor = pitstop_at(&home, &["doctor", "--json"]);
        let output = doctor.env("PATH", "/bin").output().unwrap();
        let program = program.to_str().unwrap();
        assert!(text(&output).contains(program), "{}", all(&output));
    }
}

#[test]
fn with_faults_in_the_configuration_no_record_is_read_written_or_deleted() {
    let home = Home::new().unwrap();
    for args in [
        &["save", "--task", "x"][..],
        &["save", "--task", "x", "--to", "kept.json"],
        &["history"],
        &["restore", "--list"],
        &["prune"],
        &["handoff", "--check"],
        &["status"],
    ] {
        let faulty = ["--set", "store.ulr=postgres://host/fleet"];
        let output = pitstop_at(&home, &faulty).args(args).output().unwrap();
        assert_eq!(output.status.code(), Some(2), "{args:?}: {output:?}");
        let said = all(&output);
        assert!(
            said.contains("configuration has faults"),
            "{args:?}: {said}"
        );
    }
    let listed = pitstop_at(&home, &["restore", "--list", "--json"]).output();
    assert_eq!(text(&listed.unwrap()), "{\"checkpoints\":[]}\n");
}

/// A command in a mount namespace of its own, in which the whole home is read-only; none where there are no such namespaces.
#[cfg(target_os = "linux")]
fn where_nothing_can_be_written(launch: &Launch, args: &[&str]) -> Option<Output> {
    let home = launch.the_home().path("").display().to_string();
    let project = launch.project().display();
    let script = format!(
        "mount --bind '{home}' '{home}' && mount -o remount,ro,bind '{home}' && cd '{project}' || exit 99; \
         touch '{home}/x' 2>/dev/null && exit 99; exec \"$0\" \"$@\""
    );
    // As root there may be no user namespaces, and as another user there is no other way.
    let flags = if rustix::process::geteuid().is_root() {
        "-m"
    } else {
        "-rm"
    };
    let output = Command::new("unshare")
        .args([flags, "/bin/sh", "-c", &script, PITSTOP])
        .args(args)
        .env_clear()
        .envs(launch.environment())
        .output();
    let output = output
        .ok()
        .filter(|output| output.status.code() != Some(99));
    if output.is_none() {
        println!("skipped: needs mount namespaces");
    }
    output
}

#[cfg(target_os = "linux")]
#[test]
fn commands_that_read_need_nothing_that_can_be_written() {
    let supervisor = Launch::quiet_demo().start_idle();
    supervisor.run(&["save", "--task", "count the herons"]);
    let read = |launch: &Launch, args: &[&str]| {
        let there = where_nothing_can_be_written(launch, args)?;
        let here = launch.command(args).output().unwrap();
        assert_eq!(
            there.status.code(),
            here.status.code(),
            "{args:?}: {}",
            all(&there)
        );
        Some((all(&there), all(&here)))
    };
    let lists: [&[&str]; 8] = [
        &["prune", "--dry-run", "--older-than", "0"],
        &["history"],
        &["history", "--totals"],
        &["history", "--search", "heron"],
        &["restore", "--list"],
        &["check"],
        &["context"],
        &["doctor", "--json"],
    ];
    // Beside a supervisor, whose database is in use, and after it.
    for args in [&["status"][..], &["ls"], &["handoff"]]
        .iter()
        .chain(&lists)
    {
        let Some((there, _)) = read(&supervisor.launch, args) else {
            return;
        };
        assert!(
            !there.contains("database cannot be used"),
            "{args:?}: {there}"
        );
    }
    supervisor.quit();
    let launch = supervisor.launch.clone();
    for args in lists.iter().take(6) {
        let (there, here) = read(&launch, args).unwrap();
        assert_eq!(there, here, "{args:?}");
    }
    let said = all(&where_nothing_can_be_written(&launch, &["doctor"]).unwrap());
    let row = said.lines().find(|line| line.contains("state directory"));
    assert!(
        row.is_some_and(|row| row.contains("cannot be written: ")),
        "{said}"
    );
    for args in [
        &["save", "--task", "x"][..],
        &["prune", "--older-than", "0"],
    ] {
        let refused = where_nothing_can_be_written(&launch, args).unwrap();
        let said = all(&refused);
        assert_ne!(refused.status.code(), Some(0), "{args:?}: {said}");
        assert!(said.contains("cannot be written"), "{args:?}: {said}");
    }
}

#[test]
fn the_file_that_a_checkpoint_is_written_to_is_named() {
    let home = Home::new().unwrap();
    let args = ["save", "--task", "x", "--to", "kept.json"];
    let said = text(&pitstop_at(&home, &args).output().unwrap());
    let named = "written to kept.json, for `pitstop restore --from` on another machine\n";
    assert!(said.ends_with(named), "{said}");
}

#[test]
fn a_password_of_the_configuration_is_not_printed() {
    let home = Home::new().unwrap();
    for url in [
        "postgres://ada:hunter2secret@host/db",
        "mysql://ada:hunter2secret@host/db",
    ] {
        for args in [
            &["check"][..],
            &["check", "--json"],
            &["run", "--task", "a b", "--headless"],
        ] {
            let setting = format!("store.url={url}");
            let output = pitstop_at(&home, &["--set", &setting])
                .args(args)
                .output()
                .unwrap();
            let said = all(&output);
            assert!(!said.contains("hunter2secret"), "{args:?}: {said}");
        }
    }
}

#[test]
fn a_save_whose_file_cannot_be_written_says_that_it_is_kept() {
    let home = Home::new().unwrap();
    let args = ["save", "--task", "x", "--to", "none/such.json"];
    let output = pitstop_at(&home, &args).output().unwrap();
    let said = all(&output);
    assert_eq!(output.status.code(), Some(1), "{said}");
    let listed = pitstop_at(&home, &["restore", "--list", "--json"]).output();
    let listed: Value = serde_json::from_slice(&listed.unwrap().stdout).unwrap();
    let id = &listed["checkpoints"][0]["id"].as_str().unwrap()[..8];
    assert!(
        said.contains(&format!("the checkpoint {id} is saved, but")),
        "{said}"
    );
}

#[test]
fn the_details_of_an_iteration_that_runs_are_those_of_now() {
    let there = Launch::quiet_demo().start_idle();
    let one = text(&there.run(&["history", "1", "--json"]));
    let one: Value = serde_json::from_str(&one).unwrap();
    assert_eq!(one["iteration"]["ended_at"], Value::Null);
    assert!(one["iteration"]["duration_ms"].as_u64() > Some(0), "{one}");
}

#[test]
fn the_doctor_says_that_a_corrupt_database_was_set_aside() {
    let launch = Launch::quiet_demo();
    let database = launch.the_home().path("state/pitstop/pitstop.db");
    fs::create_dir_all(database.parent().unwrap()).unwrap();
    for corrupt in [
        vec![0x5a; 8192],
        b"no database at all".repeat(40),
        vec![0xff; 100],
    ] {
        for file in fs::read_dir(database.parent().unwrap()).unwrap().flatten() {
            // The file of the test before, and its WAL.
            let _ = fs::remove_file(file.path());
        }
        fs::write(&database, corrupt).unwrap();
        let report = launch.run(&["doctor", "--json"]);
        let report: Value = serde_json::from_slice(&report.stdout).unwrap();
        let checks = report["checks"].as_array().unwrap();
        let store = checks
            .iter()
            .find(|check| check["name"] == "store")
            .unwrap();
        assert_eq!(store["state"], "broken", "{store}");
        let found = store["found"].as_str().unwrap();
        assert!(
            found.starts_with("the database was corrupt: it is kept as "),
            "{found}"
        );
    }
}

#[test]
fn a_project_in_which_nothing_ran_has_no_history_beside_others_that_have_one() {
    let home = Home::new().unwrap();
    // From here on there is a database.
    let saved = pitstop_at(&home, &["save", "--task", "x"])
        .output()
        .unwrap();
    assert!(saved.status.success(), "{}", all(&saved));
    for args in [
        &["history"][..],
        &["history", "--all"],
        &["history", "--search", "x"],
        &["history", "--totals"],
        &["history", "--chart"],
        &["history", "1"],
        &["handoff", "--check"],
    ] {
        let output = pitstop_at(&home, args).output().unwrap();
        let said = all(&output);
        assert_eq!(output.status.code(), Some(3), "{args:?}: {said}");
        assert!(
            said.contains("no earlier run of it is on record"),
            "{args:?}: {said}"
        );
    }
}
