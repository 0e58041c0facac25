//! Checkpoints end to end: saved, everything killed, taken up again.

use std::{
    fs,
    os::unix::fs::PermissionsExt as _,
    path::Path,
    process::Output,
    time::{Duration, Instant},
};

use pitstop_core::lineage::checkpoint::Checkpoint;
use pitstop_store::{Checkpoints, Store, StoreOptions, StoreTarget};
use serde_json::Value;

use crate::{
    kit::{
        home::Home,
        messages_api::{Answer, user_texts},
        output::text,
        supervisor::{Launch, SOON, Supervisor, key},
    },
    lineage::{play, reported},
};

const NOTES: &str = "# Scratchpad\n\n## Current Understanding\nthe lamp is out\n\n## Current Plan\n- [x] climb\n- [ ] change the bulb\n";

fn demo() -> Launch {
    Launch::manual_demo(NOTES)
}

fn live() -> Launch {
    Launch::live()
        .set("reboot.mode=\"manual\"")
        .set("summary.generate_summaries=false")
        .agent_args(["--model", "claude-sonnet-4-5"])
        .notes(NOTES)
}

fn json(output: &Output) -> Value {
    serde_json::from_str(&text(output)).unwrap()
}

/// All checkpoints of a home, newest first.
fn kept(home: &Home) -> Vec<Checkpoint> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    runtime.block_on(async {
        let file = home.path("state/pitstop/pitstop.db");
        let options = StoreOptions::new(StoreTarget::Sqlite(file));
        let store = Store::open(options).await.unwrap().store;
        let all = Checkpoints {
            limit: 1_000,
            ..Checkpoints::default()
        };
        let found = store.checkpoints(&all).await.unwrap();
        store.close().await;
        found
    })
}

fn body(message: &str) -> &str {
    message.split_once('\n').unwrap().1
}

/// The first prompt that the agent of a session got, by its transcript.
fn first_prompt(home: &Home, session: &str) -> Option<String> {
    fn find(place: &Path, name: &str) -> Option<String> {
        let projects = fs::read_dir(place.join("projects")).ok()?;
        projects
            .flatten()
            .find_map(|project| fs::read_to_string(project.path().join(name)).ok())
    }
    let name = format!("{session}.jsonl");
    let transcript = find(&home.path("state/pitstop/demo"), &name)
        .or_else(|| find(&home.claude_dir(), &name))?;
    let record = transcript
        .lines()
        .filter_map(|line| serde_json::from_str::<Value>(line).ok())
        .find(|record| record["type"] == "user" && record["isMeta"] != true)?;
    let content = &record["message"]["content"];
    let text = content.as_str().or_else(|| content[0]["text"].as_str());
    text.map(str::to_owned)
}

/// Says something, saves, kills everything; a restored supervisor's agent is given just what was saved.
fn saved_killed_and_taken_up(launch: &Launch) {
    let supervisor = launch.start_idle();
    supervisor.prompt("begin the work");
    supervisor.wait_until("the turn is counted", || {
        supervisor.history()["iterations"][0]["tokens"]["output"].as_u64() > Some(0)
    });
    supervisor.wait_for_state("idle", SOON);
    let old = supervisor.status()["session_id"]
        .as_str()
        .unwrap()
        .to_owned();
    let saved = json(&supervisor.run(&[
        "ss",
        "--json",
        "--task",
        "light the lamp",
        "--next",
        "buy a bulb",
        "--tag",
        "night",
    ]));
    assert_eq!(saved["status"], "saved", "{saved}");
    assert_eq!(saved["environment"], "project");
    assert_eq!(saved["session_id"], old.as_str());
    let agent = supervisor.agent_pid();
    let launch = supervisor.kill();
    // It dies with its supervisor; this is for a machine on which it does not.
    let _ = rustix::process::kill_process(agent, rustix::process::Signal::KILL);

    let [newest, ..] = &kept(launch.the_home())[..] else {
        panic!("nothing was kept");
    };
    assert_eq!(saved["checkpoint_id"], newest.id.to_string());
    assert_eq!(newest.task, "light the lamp");
    assert_eq!(newest.next_steps[0], "buy a bulb");

    let second = launch.clone().restoring(&[]).start();
    second.wait_for_iteration(1, SOON * 2);
    second.wait_until_within(SOON * 2, "the proof", || {
        second.history()["iterations"][0]["handoff_bytes"].is_u64()
    });
    let history = second.history();
    let first = &history["iterations"][0];
    eprintln!("steps: {}", first["transition_time_ms"]);
    assert_eq!(first["cause"], "restore", "{history:#}");
    assert_eq!(first["previous_session_id"], old.as_str());
    let session = first["session_id"].as_str().unwrap();
    assert_ne!(session, old);
    second.wait_until("the prompt is in the transcript", || {
        first_prompt(launch.the_home(), session).is_some()
    });
    let prompt = first_prompt(launch.the_home(), session).unwrap();
    assert_eq!(body(&prompt), body(&newest.context));
    assert!(prompt.contains("light the lamp") && prompt.contains("buy a bulb"));
    if launch.has_api() {
        let reported = || {
            let calls = launch.api().main_calls();
            let mut texts = calls.iter().flat_map(user_texts);
            texts.any(|one| one.contains(prompt.trim_end()))
        };
        second.wait_until("the model is told", reported);
    }
    // What was decided then is reported again the next time.
    assert!(second.handoff_text().contains("buy a bulb"));
}

#[test]
fn the_demo_goes_on_from_a_checkpoint_after_everything_was_killed() {
    saved_killed_and_taken_up(&demo());
}

#[test]
#[ignore = "live: needs PITSTOP_CLAUDE"]
fn the_real_client_goes_on_from_a_checkpoint_after_everything_was_killed() {
    let launch = live();
    launch.api().answer([
        Answer::text("I begin."),
        Answer::text("I go on where the last one stopped."),
    ]);
    saved_killed_and_taken_up(&launch);
}

/// A scratchpad with a line of a person's in it.
const OF_A_PERSON: &str = "## Objective\nlight the lamp by dusk\n\n## Current Understanding\nthe lamp is out\n\n\
    ## Current Plan\n- [x] climb\n- [ ] change the bulb\n\n## Notes\nnever touch the lens\n";

/// What the agent says of its work, in signals.
const SIGNALS: &str = "DECISION: a halogen bulb | it is bright\nISSUE[high]: the ladder shakes\nSTATE watts=40\n\
    TODO: oil the hinge\nDONE: buy a ladder\nSCRATCHPAD:\n## Objective\nlight the lamp by dusk\n\n## Current Understanding\n\
    the lamp is out, and so is the fuse\n\n## Current Plan\n- [x] climb\n- [ ] change the bulb\nSIGNAL:";

/// All of it that a person wrote or an agent found out.
const KNOWN: [&str; 11] = [
    "light the lamp by dusk",
    "the lamp is out, and so is the fuse",
    "never touch the lens",
    "climb",
    "change the bulb",
    "a halogen bulb",
    "it is bright",
    "the ladder shakes",
    "watts",
    "oil the hinge",
    "buy a ladder",
];

/// A session whose agent has told all that there is to know, and a person's line beside it; the checkpoint of it.
fn known_and_saved(launch: &Launch, args: &[&str]) -> (Value, String) {
    let supervisor = launch.start_idle();
    supervisor.prompt("begin the work");
    supervisor.wait_until("what the agent says is known", || {
        supervisor.notes().contains("so is the fuse")
    });
    supervisor.wait_for_state("idle", SOON);
    let saved = json(&supervisor.run(args));
    assert_eq!(saved["status"], "saved", "{saved}");
    let notes = supervisor.notes();
    (saved, notes)
}

#[test]
fn what_is_saved_without_a_supervisor_keeps_what_the_session_carried() {
    // Real work does not go on with a demo's: this agent is none to pitstop.
    let launch = Launch::manual_demo(NOTES)
        .env("PITSTOP_DEMO_REPLY", SIGNALS)
        .behind("");
    let supervisor = launch.start_idle();
    supervisor.prompt("begin the work");
    supervisor.wait_until("what the agent says is known", || {
        supervisor.notes().contains("so is the fuse")
    });
    supervisor.wait_for_state("idle", SOON);
    supervisor.quit();
    let saved = json(
        &launch
            .command(&["save", "--json", "--next", "dust"])
            .output()
            .unwrap(),
    );
    assert!(saved["session_id"].is_string(), "{saved}");
    let id = saved["checkpoint_id"].as_str().unwrap().to_owned();
    let all = kept(launch.the_home());
    let one = all.iter().find(|one| one.id.to_string() == id).unwrap();
    for known in [
        "a halogen bulb",
        "it is bright",
        "the ladder shakes",
        "oil the hinge",
        "begin the work",
        "dust",
    ] {
        assert!(one.context.contains(known), "{known}: {}", one.context);
    }
    assert_eq!(one.state["requests"]["first"]["text"], "begin the work");
}

/// Reboots a restored session twice: each session is given all that was known, and the scratchpad here has it, too.
fn nothing_is_lost(second: &Supervisor, notes: &str, mine: &str) {
    let is_back = || {
        let here = second.notes();
        here.contains(mine) && notes.lines().all(|line| here.contains(line))
    };
    second.wait_until_within(SOON * 2, "the scratchpad is back", is_back);
    for iteration in 1..=3 {
        second.wait_for_iteration(iteration, SOON * 2);
        second.wait_for_state("idle", SOON);
        let session = second.status()["session_id"].as_str().unwrap().to_owned();
        let home = second.launch.the_home();
        second.wait_until("the prompt is in the transcript", || {
            first_prompt(home, &session).is_some()
        });
        let prompt = first_prompt(home, &session).unwrap();
        for known in KNOWN {
            assert!(prompt.contains(known), "{known:?} is lost: {prompt}");
        }
        // The line of this directory is not part of what was saved, but of the scratchpad from then on.
        assert_eq!(prompt.contains(mine), iteration > 1, "{prompt}");
        if iteration < 3 {
            second.review();
            second.keys([key::ENTER]);
        }
    }
    assert!(is_back(), "{}", second.notes());
}

#[test]
fn what_is_saved_here_and_restored_in_another_directory_loses_nothing_over_two_reboots() {
    let launch = Launch::manual_demo(OF_A_PERSON).env("PITSTOP_DEMO_REPLY", SIGNALS);
    let (_, notes) = known_and_saved(&launch, &["save", "--json"]);
    assert!(notes.contains("never touch the lens"), "{notes}");

    let other = launch.the_home().path("other");
    fs::create_dir(&other).unwrap();
    let mine = "- [ ] mind the gulls";
    let second = Launch::manual_demo("")
        .home(launch.the_home())
        .in_directory(&other.canonicalize().unwrap())
        .notes(&format!("## Current Plan\n{mine}\n"))
        .restoring(&["project"])
        .start();
    nothing_is_lost(&second, &notes, mine);
}

/// The other machine has another database and another home.
#[test]
fn a_checkpoint_in_a_file_is_restored_on_another_machine() {
    let launch = Launch::manual_demo(OF_A_PERSON).env("PITSTOP_DEMO_REPLY", SIGNALS);
    let file = launch.the_home().path("lamp.json");
    let name = file.to_str().unwrap().to_owned();
    let (saved, notes) = known_and_saved(&launch, &["save", "--json", "--to", &name]);
    let mode = fs::metadata(&file).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    let written = Checkpoint::from_json(&fs::read_to_string(&file).unwrap()).unwrap();
    assert_eq!(saved["checkpoint_id"], written.id.to_string());

    let mine = "- [ ] mind the gulls";
    let second =
        Launch::manual_demo(&format!("## Current Plan\n{mine}\n")).restoring(&["--from", &name]);
    nothing_is_lost(&second.behind("").start(), &notes, mine);
}

#[test]
fn a_file_that_is_no_checkpoint_is_refused_with_a_reason() {
    let launch = demo();
    let file = launch.the_home().path("wrong.json");
    let name = file.to_str().unwrap().to_owned();
    for (text, why) in [
        (None, "No such file"),
        (Some("{}"), "expected a checkpoint"),
        (Some("\u{0}\u{ff}[[[["), "expected a checkpoint"),
        (
            Some(r#"{"format":3,"checkpoint":{}}"#),
            "a newer pitstop wrote it",
        ),
    ] {
        if let Some(text) = text {
            fs::write(&file, text).unwrap();
        }
        let output = launch.run(&["restore", "--from", &name]);
        assert_eq!(output.status.code(), Some(2), "{output:?}");
        let error = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(
            error.contains(why) && error.contains("wrong.json"),
            "{error}"
        );
    }
}

#[test]
#[ignore = "live: needs PITSTOP_CLAUDE"]
fn a_checkpoint_of_the_real_client_brings_the_scratchpad_to_another_directory() {
    let launch = live().notes(OF_A_PERSON);
    launch.api().answer([
        Answer::text(SIGNALS),
        Answer::text("I go on."),
        Answer::text("I go on."),
        Answer::text("I go on."),
    ]);
    let (_, notes) = known_and_saved(&launch, &["save", "--json"]);
    // Another directory that the client knows: it would ask whether to trust a new one.
    let other = launch.the_home().trusted("other");
    let mine = "- [ ] mind the gulls";
    let second = launch
        .clone()
        .in_directory(&other)
        .notes(&format!("## Current Plan\n{mine}\n"))
        .restoring(&["project"])
        .start();
    nothing_is_lost(&second, &notes, mine);
}

#[test]
fn a_checkpoint_is_saved_by_itself_at_the_warn_line_and_with_a_reboot() {
    let supervisor = demo().env("PITSTOP_DEMO_USAGE", "130000").start_idle();
    supervisor.prompt("fill it");
    let tags = || -> Vec<Vec<String>> {
        let list = json(&supervisor.run(&["restore", "--list", "--json"]));
        let list = list["checkpoints"].as_array().unwrap().clone();
        list.iter()
            .map(|one| serde_json::from_value(one["tags"].clone()).unwrap())
            .collect()
    };
    supervisor.wait_until("a checkpoint of the warn line", || {
        tags().iter().any(|tags| {
            tags[0] == "auto-save" && tags.get(1).is_some_and(|tag| tag.starts_with("tokens-13"))
        })
    });
    supervisor.wait_for_state("idle", SOON);
    supervisor.review();
    supervisor.keys([key::ENTER]);
    supervisor.wait_for_iteration(2, SOON * 2);
    supervisor.wait_until("a checkpoint of the reboot", || tags()[0] == ["reboot"]);
    // The figures of the reboot are kept too.
    supervisor.wait_until("the totals", || {
        let totals = json(&supervisor.run(&["history", "--totals", "--json"]));
        let steps = totals["steps"].as_array().unwrap().len();
        totals["reboots"][0]["cause"] == "key"
            && totals["reboots"][0]["outcome"] == "done"
            && steps >= 3
    });
}

#[test]
fn without_a_supervisor_the_notes_and_git_are_saved_and_found_again() {
    let launch = demo();
    let run = |args: &[&str]| launch.command(args).output().unwrap();
    let saved = json(&run(&["save", "--json", "--next", "first", "--tag", "v1"]));
    assert_eq!(saved["session_id"], Value::Null);
    assert_eq!(saved["next_steps"][0], "first");
    assert_eq!(saved["next_steps"][1], "change the bulb");
    let [one] = &kept(launch.the_home())[..] else {
        panic!("not one checkpoint");
    };
    assert!(one.context.contains("the lamp is out"), "{}", one.context);
    let scratchpad = one.scratchpad.as_ref().unwrap();
    assert_eq!(scratchpad.text, NOTES);
    assert!(scratchpad.human.contains(&"change the bulb".to_owned()));

    let mut named = launch.command(&["save", "--json", "--task", "x"]);
    let named = json(&named.env("PITSTOP_ENV", "elsewhere").output().unwrap());
    assert_eq!(named["environment"], "elsewhere");
    let configured = json(&run(&[
        "save",
        "--json",
        "--set",
        "store.environment=\"third\"",
    ]));
    assert_eq!(configured["environment"], "third");

    let listed = |args: &[&str]| -> Vec<String> {
        let mut all = vec!["restore", "--list", "--json"];
        all.extend(args);
        let list = json(&run(&all))["checkpoints"].as_array().unwrap().clone();
        list.iter()
            .map(|one| one["id"].as_str().unwrap().to_owned())
            .collect()
    };
    let id = |saved: &Value| saved["checkpoint_id"].as_str().unwrap().to_owned();
    assert_eq!(listed(&[]), [id(&saved)]);
    assert_eq!(listed(&["elsewhere"]), [id(&named)]);
    assert_eq!(
        listed(&["--set", "store.environment=\"third\""]),
        [id(&configured)]
    );
    assert_eq!(listed(&["--tag", "v1"]), [id(&saved)]);
    assert_eq!(listed(&["--tag", "v"]), Vec::<String>::new());
    assert_eq!(listed(&["--at", &id(&named)[..6]]), [id(&named)]);
    let table = text(&run(&["rs", "--list"]));
    assert!(table.contains("BY HAND") && table.contains("v1"), "{table}");

    for (args, code, reported) in [
        (&["restore", "nowhere"][..], 1, "there are checkpoints of"),
        (&["restore", "--at", "zz"], 2, "hex digits"),
        (&["restore", "--json"], 2, "--list"),
        (&["save", "--tag", "two words"], 2, "as tags[0]"),
        (&["save", "--task", ""], 2, "some text as task"),
    ] {
        let output = run(args);
        assert_eq!(output.status.code(), Some(code), "{args:?} {output:?}");
        let error = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(error.contains(reported), "{args:?}: {error}");
    }
}

#[test]
fn an_empty_place_has_nothing_to_save_and_is_left_empty() {
    let launch = Launch::quiet_demo();
    let output = launch.command(&["save"]).output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&output.stderr).contains("nothing to save"));
    assert_eq!(fs::read_dir(launch.project()).unwrap().count(), 0);
    assert!(!launch.the_home().path("state/pitstop/pitstop.db").exists());
}

/// A restore wins over a reboot that was left half done: one handoff is sent, the chosen one.
#[test]
fn a_restore_takes_the_place_of_a_reboot_that_was_left_half_done() {
    let launch = demo();
    let supervisor: Supervisor = launch
        .clone()
        .env("PITSTOP_CRASH_AT", "starting:after")
        .start();
    supervisor.wait_for_state("idle", SOON);
    let saved = json(&supervisor.run(&["ss", "--json", "--task", "the chosen one"]));
    supervisor.review();
    supervisor.keys([key::ENTER]);
    supervisor.wait_for_exit(SOON);
    let mut supervisor = supervisor;
    supervisor.check_nothing();
    drop(supervisor);

    let id = saved["checkpoint_id"].as_str().unwrap();
    let second = launch.clone().restoring(&["--at", id]).start();
    second.wait_for_iteration(1, SOON * 2);
    second.wait_until_within(SOON * 2, "the proof", || {
        second.history()["iterations"][0]["handoff_bytes"].is_u64()
    });
    let session = second.status()["session_id"].as_str().unwrap().to_owned();
    // The proof may be its hook: the transcript is written a moment later.
    let prompt = || first_prompt(launch.the_home(), &session);
    second.wait_until("the prompt", || prompt().is_some());
    let prompt = prompt().unwrap();
    assert!(prompt.contains("the chosen one"), "{prompt}");
    assert_eq!(second.history()["iterations"].as_array().unwrap().len(), 1);
}

/// The issue's half minute, in which another program holds the database: nothing waits for it but what is kept.
#[test]
#[ignore = "takes half a minute"]
fn a_database_locked_for_half_a_minute_stops_nothing_and_loses_nothing() {
    let supervisor = demo().start_idle();
    let file = supervisor
        .launch
        .the_home()
        .path("state/pitstop/pitstop.db");
    let mut other = play("lock", &file);
    let mut words = reported(&mut other);
    assert_eq!(words.next().as_deref(), Some("locked"));
    let began = Instant::now();
    supervisor.prompt("begin the work");
    supervisor.wait_for_text("database away", SOON);
    let saved = json(&supervisor.run(&["ss", "--json", "--tag", "while-locked"]));
    assert_eq!(saved["status"], "queued", "{saved}");
    let mut slowest = Duration::ZERO;
    while began.elapsed() < Duration::from_secs(30) {
        let asked = Instant::now();
        let status = supervisor.status();
        slowest = slowest.max(asked.elapsed());
        assert!(status["store_error"].is_string(), "{status:#}");
        std::thread::park_timeout(Duration::from_millis(200));
    }
    eprintln!("the slowest answer while the database was locked: {slowest:?}");
    assert!(slowest < Duration::from_secs(3), "{slowest:?}");

    drop(other.stdin.take());
    assert!(other.wait().unwrap().success());
    let status = supervisor.wait_for_status(|status| status["store_error"].is_null());
    assert_eq!(status["agent"]["state"], "idle");
    supervisor.wait_until("the sign is gone", || {
        !supervisor.screen().contains("database away")
    });
    let all = kept(supervisor.launch.the_home());
    let id = saved["checkpoint_id"].as_str().unwrap();
    assert!(all.iter().any(|one| one.id.to_string() == id));
}

#[test]
fn two_supervisors_in_two_projects_share_the_store_and_keep_apart() {
    let first = demo();
    let other = first.the_home().path("other");
    fs::create_dir(&other).unwrap();
    let other = other.canonicalize().unwrap();
    let second = Launch::quiet_demo()
        .home(first.the_home())
        .in_directory(&other);
    let mut running = [first.start(), second.start()];
    let names = ["project", "other"];
    for (supervisor, name) in running.iter().zip(names) {
        supervisor.wait_for_state("idle", SOON);
        let saved = json(&supervisor.run(&["ss", "--json", "--tag", name]));
        assert_eq!(
            (&saved["status"], &saved["environment"]),
            (&"saved".into(), &name.into())
        );
    }
    for (supervisor, name) in running.iter().zip(names) {
        let list = json(&supervisor.run(&["rs", "--list", "--json"]));
        let list = list["checkpoints"].as_array().unwrap();
        assert_eq!(list.len(), 1, "{list:?}");
        assert_eq!(list[0]["environment"], name);
        // By name, from anywhere.
        let by_name = json(&running[0].run(&["rs", name, "--list", "--json"]));
        assert_eq!(by_name["checkpoints"][0]["id"], list[0]["id"]);
    }
    // Each would take the other's processes for its own leftovers: both have the same home.
    running[0].check_nothing();
    for supervisor in &running {
        supervisor.signal(rustix::process::Signal::TERM);
        supervisor.wait_for_exit(SOON);
    }
}
