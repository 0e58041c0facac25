//! The autonomous run: one task over many sessions, watched and headless, on the demo and on the real client.

use std::{
    collections::BTreeSet,
    fs,
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

use rustix::process::Signal;
use serde_json::Value;

use crate::kit::{
    messages_api::{Answer, user_texts},
    output::all,
    played::call_id,
    schema,
    shape::Shape,
    side_by_side::side_by_side,
    supervisor::{Headless, Launch, SOON, Supervisor, key, look, processes_of},
};

/// How long a whole run may take on a machine that others use too.
pub(crate) const RUN: Duration = Duration::from_secs(600);

pub(crate) const PROMISE: &str = "ALL DONE";

/// A run of the demo with this task and the stop phrase.
pub(crate) fn run_of(task: &str) -> Launch {
    Launch::demo().order(["--task", task, "--until", PROMISE])
}

fn demo() -> Launch {
    run_of("Build tidepool with care")
}

/// With an agent that plays these turns in each session.
pub(crate) fn playing(launch: Launch, turns: &[&str]) -> Launch {
    let script = launch.the_home().path("script");
    fs::write(&script, turns.join("\n")).expect("the script is written");
    launch.env("PITSTOP_DEMO_SCRIPT", script)
}

fn scripted(turns: &[&str]) -> Launch {
    playing(demo(), turns)
}

fn json(launch: Launch) -> Launch {
    launch.order(["--headless", "--json"])
}

/// Runs without a terminal to its end.
#[track_caller]
pub(crate) fn outcome(launch: &Launch) -> (Option<i32>, Headless) {
    let mut run = launch.start_headless();
    let code = run.wait_for_exit(RUN);
    (code, run)
}

fn last(run: &Headless) -> Value {
    run.events().pop().expect("it has said something")
}

/// The files of the only run.
#[track_caller]
pub(crate) fn run_dir(launch: &Launch) -> PathBuf {
    let runs = launch.project().join(".pitstop/runs");
    let mut found: Vec<_> = fs::read_dir(&runs).unwrap().flatten().collect();
    assert_eq!(found.len(), 1, "one run in {}", runs.display());
    found.remove(0).path()
}

/// The record of the only run: whole, and as its schema says.
#[track_caller]
pub(crate) fn meta(launch: &Launch) -> Value {
    let text = fs::read_to_string(run_dir(launch).join("meta.json")).expect("a record");
    let meta: Value = serde_json::from_str(&text).expect("whole JSON");
    let schema = Path::new(env!("CARGO_MANIFEST_DIR")).join("assets/meta.schema.json");
    let schema: Value = serde_json::from_str(&fs::read_to_string(schema).unwrap()).unwrap();
    assert_eq!(schema::faults(&schema, &meta), [""; 0], "{meta:#}");
    assert!(!text.contains("null"), "nulls are left out: {text}");
    meta
}

pub(crate) fn reasons(meta: &Value) -> Vec<&str> {
    let iterations = meta["iterations"].as_array().unwrap();
    iterations
        .iter()
        .map(|one| one["end_reason"].as_str().unwrap_or("open"))
        .collect()
}

pub(crate) fn sessions(meta: &Value) -> BTreeSet<&str> {
    let iterations = meta["iterations"].as_array().unwrap();
    iterations
        .iter()
        .map(|one| one["session_id"].as_str().expect("a session"))
        .collect()
}

/// The number of reboots into the running turn, as happen on a busy machine: they go on in the same session.
fn on_the_fly(lines: &[String]) -> usize {
    let is_one = |line: &&String| line.contains("\"rebooted on the fly in ");
    lines.iter().filter(is_one).count()
}

/// The handoffs that the later iterations were given, in order.
fn handoffs(launch: &Launch) -> Vec<String> {
    let dir = run_dir(launch);
    (2..)
        .map_while(|number| {
            fs::read_to_string(dir.join(format!("iteration-{number}/handoff.md"))).ok()
        })
        .collect()
}

/// Five sessions of the demo, by a window that three turns fill.
fn five_sessions() -> Launch {
    demo()
        .env("PITSTOP_DEMO_PACE_MS", "5")
        .env("PITSTOP_DEMO_GROWTH", "45000")
        .env("PITSTOP_DEMO_ITEMS", "14")
}

#[track_caller]
fn check_five_sessions(launch: &Launch) {
    let meta = meta(launch);
    let mut expected = vec!["context_limit"; 4];
    expected.push("promise_found");
    assert_eq!(reasons(&meta), expected);
    assert_eq!(sessions(&meta).len(), 5);
    assert_eq!(meta["end"]["reason"], "promise_found");
    let evidence = meta["end"]["evidence"].as_str().unwrap();
    assert!(
        evidence.starts_with("the agent said: ") && evidence.contains(PROMISE),
        "{evidence}"
    );
    let iterations = meta["iterations"].as_array().unwrap();
    assert_eq!(
        (&iterations[0]["cause"], &iterations[0]["handoff"]),
        (&Value::Null, &Value::Null)
    );
    for one in &iterations[1..] {
        let named = run_dir(launch).join(one["handoff"].as_str().expect("a handoff"));
        assert!(named.is_file() && one["cause"].is_string(), "{one:#}");
    }
    let handoffs = handoffs(launch);
    assert_eq!(handoffs.len(), 4);
    for (number, handoff) in handoffs.iter().enumerate() {
        assert!(
            handoff.contains("Build tidepool with care"),
            "the task is the objective"
        );
        assert!(
            handoff.contains(&format!("\n{PROMISE}")),
            "it says how to end: {handoff}"
        );
        let done = handoff.matches("- [x] ").count();
        assert!(
            done >= 3 * (number + 1),
            "handoff {number} carries {done}:\n{handoff}"
        );
    }
}

#[test]
fn a_task_over_five_sessions_of_the_demo_ends_by_the_stop_phrase() {
    let launch = five_sessions().set("reboot.auto_delay=\"100ms\"");
    let supervisor = launch.start();
    supervisor.terminal.wait_for(
        |text| text.contains("iteration 2/50") && text.contains("until \"ALL DONE\""),
        RUN,
    );
    let exit = supervisor.wait_for_exit(RUN);
    assert_eq!(exit.code, 0, "{}", supervisor.log());
    check_five_sessions(&launch);
    let said = String::from_utf8_lossy(&supervisor.terminal.output()).into_owned();
    assert!(said.contains("\x1b]9;pitstop: The run is over: the stop phrase was given"));
    let (_, report) = said
        .split_once("the run is over: the stop phrase was given\r\n")
        .expect("the report of the run");
    assert!(
        report.starts_with("5 iterations, ")
            && report.contains(" turns, $")
            && report.ends_with(" s\r\n"),
        "{report:?}"
    );
    assert_eq!(supervisor.terminal.modes_left_on(), [""; 0]);
}

#[test]
fn a_headless_task_over_five_sessions_of_the_demo_ends_by_the_stop_phrase() {
    let launch = json(five_sessions());
    let (code, run) = outcome(&launch);
    assert_eq!(code, Some(0), "{:#?}", run.lines());
    check_five_sessions(&launch);
    assert_eq!(run.count("iteration_started"), 5);
    assert_eq!(run.count("iteration_ended"), 5);
    assert_eq!(run.count("turn_ended"), 14);
    let end = last(&run);
    assert_eq!(
        (&end["event"], &end["code"], &end["turns"]),
        (&"run_ended".into(), &0.into(), &14.into())
    );
    let history = run.run(&["history", "--json"]);
    let history: Value = serde_json::from_slice(&history.stdout).unwrap();
    assert_eq!(history["iterations"].as_array().unwrap().len(), 5);
}

/// Prompts that the bridge gives are turns as typed ones are: none is lost, and none comes twice.
#[test]
fn a_task_over_five_sessions_of_the_demo_goes_the_same_way_by_its_bridge() {
    let launch = json(five_sessions()).env("PITSTOP_DEMO_BRIDGE", "1");
    let (code, run) = outcome(&launch);
    assert_eq!(code, Some(0), "{:#?}", run.lines());
    check_five_sessions(&launch);
    assert_eq!(run.count("turn_ended"), 14);
}

/// The conversation is replaced four times inside one client.
#[test]
fn a_task_over_five_iterations_of_the_demo_goes_the_same_way_in_place() {
    let launch = json(five_sessions())
        .env("PITSTOP_DEMO_BRIDGE", "1")
        .set("reboot.way=\"in-place\"");
    let (code, run) = outcome(&launch);
    assert_eq!(code, Some(0), "{:#?}", run.lines());
    assert_eq!(run.count("turn_ended"), 14);
    let history = run.run(&["history", "--json"]);
    let history: Value = serde_json::from_slice(&history.stdout).unwrap();
    let iterations = history["iterations"].as_array().unwrap();
    assert_eq!(iterations.len(), 5);
    for one in &iterations[1..] {
        assert_eq!(one["way"], "in-place", "{one:#}");
        assert_eq!(one["session_id"], iterations[0]["session_id"]);
        assert_eq!(one["compactions"], 0);
    }
    assert_eq!(handoffs(&launch).len(), 4);
}

/// The exit code and end reason of a run, and what its last line says.
#[track_caller]
fn check_end(launch: Launch, code: i32, reason: &str, why: &str) {
    let launch = json(launch);
    let (found, run) = outcome(&launch);
    let end = last(&run);
    assert_eq!(found, Some(code), "{why}: {:#?}", run.lines());
    assert_eq!(end["code"], code);
    assert!(end["why"].as_str().unwrap().contains(why), "{why}: {end}");
    let meta = meta(&launch);
    assert_eq!(reasons(&meta).last(), Some(&reason), "{why}");
    // How the run ended is not how its last iteration did: that may have died.
    let end = &meta["end"];
    let expected = if code == 4 { "breaker" } else { "limit" };
    assert_eq!(
        (&end["reason"], &end["exit_code"]),
        (&expected.into(), &code.into()),
        "{meta:#}"
    );
    assert!(end["evidence"].as_str().unwrap().contains(why), "{end}");
    assert_eq!(meta["task"], "Build tidepool with care", "{meta:#}");
    assert!(
        meta["ended_at"].is_string() && meta["run_id"].is_string(),
        "{meta:#}"
    );
}

#[test]
fn each_cap_ends_the_run_with_its_code() {
    let busy = || demo().env("PITSTOP_DEMO_PACE_MS", "5");
    let began = Instant::now();
    let always_fresh = ["--fresh", "always", "--max-iterations", "3"];
    let caps = [
        (
            busy().order(always_fresh).order(["--max-cost", "0"]),
            "iteration cap of 3 reached (max_iterations)",
        ),
        (
            busy().order(["--max-cost", "0.5"]),
            "cost cap of $0.50 reached (max_cost_usd)",
        ),
        // In the middle of a turn, which goes on to its end.
        (
            scripted(&["$ sleep 4; echo whole > whole", "$ echo more > more"])
                .order(["--max-time", "2s"]),
            "time cap of 2 s reached (max_time)",
        ),
    ];
    side_by_side(caps, |(launch, why)| check_end(launch, 3, "limit", why));
    assert!(
        began.elapsed() < Duration::from_secs(50),
        "{:?}",
        began.elapsed()
    );
}

#[test]
fn each_breaker_ends_a_headless_run_with_its_evidence() {
    let failing = [
        "$ echo broken 1; false\tfirst",
        "$ echo broken 2; false\tsecond",
        "$ echo broken 3; false\tthird",
    ];
    let breakers = [
        (
            scripted(&failing).set("loop.same_command_limit=1"),
            "breaker same_command tripped: `echo broken 1; false` failed once: broken 1",
        ),
        (
            scripted(&["$ false\ta", "$ false\tb", "$ false\tc", "d"])
                .set("loop.same_command_limit=3"),
            "`false` failed 3 times",
        ),
        (
            scripted(&["a", "b", "c", "d", "e"]).set("loop.no_change_limit=4"),
            "breaker no_change tripped: 4 turns in a row",
        ),
        (
            scripted(&["a", "stuck", "stuck", "stuck", "e"]).set("loop.same_message_limit=3"),
            "breaker same_message tripped: 3 turns in a row ended with the same words: stuck",
        ),
        (
            // Two turns are wanted between two reboots, and one fills the window.
            demo()
                .env("PITSTOP_DEMO_PACE_MS", "5")
                .env("PITSTOP_DEMO_GROWTH", "140000"),
            "breaker reboot_thrash tripped",
        ),
    ];
    // It dies before it has said a word in every life but the first.
    let dying = scripted(&["first", "second\t$ kill -9 $PPID"]).order(["--max-iterations", "3"]);
    let dying = (
        dying,
        3,
        "crash",
        "iteration cap of 3 reached (max_iterations)",
    );
    let breakers = breakers.map(|(launch, why)| (launch, 4, "breaker", why));
    side_by_side(
        breakers.into_iter().chain([dying]),
        |(launch, code, reason, why)| check_end(launch, code, reason, why),
    );
}

/// Exit code 0.
#[track_caller]
fn the_user_quits() {
    let launch = json(scripted(&["$ sleep 60"]));
    let mut run = launch.start_headless();
    run.wait_until("it works", |run| run.count("iteration_started") == 1);
    assert_eq!(run.run(&["ctl", "stop"]).status.code(), Some(0));
    assert_eq!(run.wait_for_exit(SOON), Some(0));
    assert_eq!(
        last(&run)["why"],
        "stopped by the user",
        "{:#?}",
        run.lines()
    );
    assert_eq!(reasons(&meta(&launch)), ["shutdown"]);
}

/// Exit code 1.
#[track_caller]
fn somebody_else_holds_the_project() {
    let launch = json(scripted(&["$ sleep 60"]));
    let mut first = launch.start_headless();
    first.wait_until("it holds the project", |run| {
        run.count("iteration_started") == 1
    });
    let second = launch.run(&["run", "--demo", "--here", "--headless", "--task", "a task"]);
    assert_eq!(second.status.code(), Some(1), "{}", all(&second));
    first.signal(Signal::INT);
    assert_eq!(first.wait_for_exit(SOON), Some(130));
}

/// Exit code 2.
#[track_caller]
fn usage_and_configuration() {
    let launch = demo();
    for (args, what) in [
        (&["run"][..], "--task"),
        (
            &["run", "--task", "no/such.md", "--headless"],
            "there is no task file",
        ),
        (
            &["run", "--task", "a b", "--max-time", "soon", "--headless"],
            "such as 4h",
        ),
        (&["run", "--task", "a b", "--json"], "--headless"),
        (&["run", "--task", "a b", "--demo"], "--headless"),
        (
            &["--agent", "cat", "run", "--task", "a b", "--headless"],
            "--agent",
        ),
        (
            &[
                "run",
                "--task",
                "a b",
                "--demo",
                "--headless",
                "--set",
                "loop.max_tme=\"1h\"",
            ],
            "max_time",
        ),
    ] {
        let output = launch.command(args).output().unwrap();
        assert_eq!(output.status.code(), Some(2), "{args:?}: {}", all(&output));
        assert!(all(&output).contains(what), "{args:?}: {}", all(&output));
    }
}

/// Exit code 5.
#[track_caller]
fn there_is_no_agent() {
    let launch = demo();
    let agent = "agent.command=\"no-such-agent\"";
    let output = launch.run(&["run", "--task", "a b", "--headless", "--set", agent]);
    assert_eq!(output.status.code(), Some(5), "{}", all(&output));
}

/// Exit code 5 as well, after three more tries.
#[track_caller]
fn an_agent_ends_at_once() {
    let launch = json(
        Launch::demo()
            .client(Path::new("/bin/false"))
            .order(["--task", "a b"]),
    );
    let (code, run) = outcome(&launch);
    assert_eq!(code, Some(5), "{:#?}", run.lines());
    assert!(
        last(&run)["why"]
            .as_str()
            .unwrap()
            .contains("the agent could not run")
    );
}

#[test]
fn the_exit_codes_are_those_of_the_contract() {
    let codes: [fn(); 5] = [
        the_user_quits,
        somebody_else_holds_the_project,
        usage_and_configuration,
        there_is_no_agent,
        an_agent_ends_at_once,
    ];
    side_by_side(codes, |code| code());
}

#[test]
fn the_stop_phrase_counts_only_in_the_assistants_own_words() {
    let turns = [
        "$ echo ALL DONE\tThe tool says so.",
        "For example:\\n\\n```\\nALL DONE\\n```",
        "You said:\\n\\n> ALL DONE",
        "I shall say `ALL DONE`, or \"ALL DONE\", when I am.",
        "NOT_ALL DONE_YET, UNALL DONE",
        "Everything is built and checked.\\n\\nALL DONE",
    ];
    // The task and so the prompts hold it too.
    let launch = json(playing(run_of("Say ALL DONE at last"), &turns));
    let (code, run) = outcome(&launch);
    assert_eq!(code, Some(0), "{:#?}", run.lines());
    assert_eq!(last(&run)["turns"], turns.len());
    assert_eq!(reasons(&meta(&launch)), ["promise_found"]);
}

#[test]
fn the_task_is_read_again_before_each_prompt() {
    let turns = ["one", "two", "three", "four", "five", "ALL DONE"];
    let launch = json(playing(run_of("task.md"), &turns));
    let task = launch.project().join("task.md");
    fs::write(&task, "# Build a boat\n").unwrap();
    let mut run = launch.start_headless();
    run.wait_until("a turn", |run| run.count("turn_ended") >= 1);
    fs::write(&task, "# Build a submarine\n").unwrap();
    assert_eq!(run.wait_for_exit(RUN), Some(0));
    assert_eq!(run.count("task_changed"), 1);
    let reported = run
        .events()
        .into_iter()
        .find(|one| one["event"] == "task_changed")
        .unwrap();
    assert_eq!(reported["task"], "Build a submarine");
    let prompts: Vec<_> = run
        .events()
        .into_iter()
        .filter(|one| one["event"] == "prompted")
        .map(|one| one["prompt"].as_str().unwrap().to_owned())
        .collect();
    let changed = prompts
        .iter()
        .filter(|prompt| prompt.contains("the task as it stands now"));
    assert_eq!(changed.count(), 1, "{prompts:?}");
}

#[test]
fn a_run_can_be_paused_spoken_to_and_resumed() {
    let launch = json(
        demo()
            .env("PITSTOP_DEMO_PACE_MS", "10")
            .env("PITSTOP_DEMO_ITEMS", "100"),
    );
    let mut run = launch.start_headless();
    let ctl = |run: &Headless, action: &str| {
        let output = run.run(&["ctl", action]);
        assert_eq!(output.status.code(), Some(0), "{action}: {}", all(&output));
    };
    run.wait_until("a turn", |run| run.count("turn_ended") >= 1);
    ctl(&run, "pause");
    run.wait_until("paused", |run| run.count("paused") == 1);
    let report = |run: &Headless| -> Value {
        let output = run.run(&["status", "--json"]);
        serde_json::from_slice(&output.stdout).unwrap()
    };
    assert_eq!(report(&run)["run"]["phase"], "paused");
    assert_eq!(report(&run)["run"]["headless"], true);
    // The turn that was under way, or whose prompt was in the box already, still ends.
    let still = Duration::from_secs(2);
    let (mut turns, mut since) = (run.count("turn_ended"), Instant::now());
    let first = turns;
    while since.elapsed() < still {
        if run.count("turn_ended") != turns {
            (turns, since) = (run.count("turn_ended"), Instant::now());
        }
        assert!(turns <= first + 1, "it holds still");
        std::thread::park_timeout(Duration::from_millis(50));
    }
    ctl(&run, "resume");
    run.wait_until("it goes on", |run| run.count("turn_ended") > turns);
    ctl(&run, "stop");
    assert_eq!(run.wait_for_exit(SOON), Some(0));
    assert_eq!((run.count("paused"), run.count("resumed")), (1, 1));
}

#[test]
fn a_person_who_types_has_the_run_until_they_give_it_back() {
    let launch = demo()
        .env("PITSTOP_DEMO_PACE_MS", "10")
        .env("PITSTOP_DEMO_ITEMS", "100");
    let supervisor = launch.start();
    let turns = |supervisor: &Supervisor| supervisor.status()["run"]["turns"].as_u64().unwrap();
    supervisor.wait_for_status(|status| status["run"]["turns"].as_u64() > Some(0));
    supervisor.keys(["x"]);
    supervisor.wait_for_status(|status| status["run"]["phase"] == "paused");
    // By the typing, or by what it left in the prompt, if the turn was over just then.
    supervisor.wait_for_text("paused by", SOON);
    supervisor.wait_for_state("idle", SOON);
    let before = turns(&supervisor);
    // Its own text is not submitted with someone else's. The prompt box is read a moment after it was drawn: until then the
    // run goes on as far as its next prompt.
    supervisor.keys([key::PREFIX, "p"]);
    // Refused, or where the prompt box has not been read yet, taken back as soon as it is.
    let kept = |screen: &str| {
        screen.contains("holds text of yours")
            || screen.contains("paused by the text in the agent's prompt")
    };
    supervisor.terminal.wait_for(kept, SOON);
    assert_eq!(turns(&supervisor), before);
    supervisor.keys([key::CTRL_C]);
    let cleared = || !supervisor.screen().contains("❯\u{a0}x");
    supervisor.wait_until("the prompt is empty", cleared);
    let goes_on = || supervisor.ctl("resume").0 == 0;
    supervisor.wait_until("it goes on", goes_on);
    supervisor.wait_for_status(|status| status["run"]["turns"].as_u64() > Some(before));
    assert_eq!(supervisor.quit().code, 0);
}

#[test]
fn a_tripped_breaker_calls_a_person_who_may_reset_it() {
    let launch =
        scripted(&["stuck", "stuck", "stuck", "free", "ALL DONE"]).set("loop.same_message_limit=3");
    let supervisor = launch.start();
    let status =
        supervisor.wait_for_status_within(RUN, |status| status["run"]["phase"] == "tripped");
    let why = status["run"]["why"].as_str().unwrap();
    assert!(
        why.contains("same_message") && why.contains("stuck"),
        "{why}"
    );
    supervisor.wait_until("a notification", || {
        let said = String::from_utf8_lossy(&supervisor.terminal.output()).into_owned();
        said.contains("\x1b]9;pitstop: The run has stopped: 3 turns in a row")
    });
    assert_eq!(supervisor.ctl("resume").0, 0);
    assert_eq!(supervisor.wait_for_exit(RUN).code, 0);

    // One that is left alone and quit ends with the breaker's code.
    let launch = scripted(&["stuck", "stuck"]).set("loop.same_message_limit=2");
    let supervisor = launch.start();
    supervisor.wait_for_status_within(RUN, |status| status["run"]["phase"] == "tripped");
    assert_eq!(supervisor.quit().code, 4);
    assert_eq!(reasons(&meta(&launch)), ["shutdown"]);
}

#[test]
fn one_interrupt_ends_a_headless_run_cleanly_and_two_at_once() {
    let launch = json(demo().env("PITSTOP_DEMO_PACE_MS", "10"));
    let mut run = launch.start_headless();
    run.wait_until("a turn", |run| run.count("turn_ended") >= 1);
    run.signal(Signal::INT);
    assert_eq!(run.wait_for_exit(SOON), Some(130));
    assert_eq!(last(&run)["why"], "interrupted");
    assert_eq!(reasons(&meta(&launch)), ["shutdown"]);

    // An agent that takes its time, and one second signal.
    let launch =
        json(scripted(&["$ trap '' HUP INT TERM; sleep 60"])).set("reboot.exit_timeout=\"60s\"");
    let mut run = launch.start_headless();
    run.wait_until("it works", |run| run.agent_pid().is_some());
    run.signal(Signal::INT);
    run.wait_until("it is ending", |run| {
        run.lines()
            .iter()
            .any(|line| line.contains("SIGINT: the agent is ended cleanly"))
    });
    run.signal(Signal::INT);
    assert_eq!(run.wait_for_exit(SOON), Some(130));
    assert_eq!(reasons(&meta(&launch)), ["shutdown"]);
}

#[test]
fn a_run_goes_on_without_its_terminal_unless_it_should_not() {
    let launch = demo()
        .env("PITSTOP_DEMO_PACE_MS", "10")
        .env("PITSTOP_DEMO_ITEMS", "8");
    let supervisor = launch.start();
    supervisor.wait_for_status(|status| status["run"]["turns"].as_u64() > Some(0));
    let run = supervisor.pid();
    supervisor.terminal.signal(Signal::HUP);
    supervisor.terminal.wait_for_exit(SOON);
    supervisor.wait_until_within(RUN, "it ends", || {
        look(run.as_raw_nonzero().get()).is_none()
    });
    assert_eq!(reasons(&meta(&launch)), ["promise_found"]);

    let launch = demo()
        .env("PITSTOP_DEMO_PACE_MS", "10")
        .set("session.on_hangup=\"end\"");
    let supervisor = launch.start();
    supervisor.wait_for_status(|status| status["run"]["turns"].as_u64() > Some(0));
    let run = supervisor.pid();
    supervisor.terminal.signal(Signal::HUP);
    supervisor.wait_until("it ends", || look(run.as_raw_nonzero().get()).is_none());
    assert_eq!(reasons(&meta(&launch)), ["shutdown"]);
}

#[test]
fn an_agent_that_is_killed_from_outside_is_resumed() {
    let launch = json(
        demo()
            .env("PITSTOP_DEMO_PACE_MS", "30")
            .env("PITSTOP_DEMO_ITEMS", "5"),
    );
    let mut run = launch.start_headless();
    run.wait_until("a turn", |run| run.count("turn_ended") >= 1);
    let agent = run.agent_pid().expect("an agent");
    rustix::process::kill_process(agent, Signal::KILL).unwrap();
    assert_eq!(run.wait_for_exit(RUN), Some(0), "{:#?}", run.lines());
    let meta = meta(&launch);
    assert_eq!(reasons(&meta), ["crash", "promise_found"]);
    assert_eq!(sessions(&meta).len(), 1, "the same session goes on");
}

#[test]
fn a_run_whose_supervisor_was_killed_goes_on_with_its_counts_when_it_is_called_again() {
    let launch = json(
        demo()
            .env("PITSTOP_DEMO_PACE_MS", "30")
            .env("PITSTOP_DEMO_ITEMS", "5"),
    );
    let mut first = launch.start_headless();
    first.wait_until("a turn", |run| run.count("turn_ended") >= 1);
    first.signal(Signal::KILL);
    first.wait_for_exit(SOON);
    let before = meta(&launch);

    let mut again = launch.start_headless();
    assert_eq!(again.wait_for_exit(RUN), Some(0), "{:#?}", again.lines());
    let after = meta(&launch);
    assert_eq!(after["run_id"], before["run_id"], "{after:#}");
    assert_eq!(reasons(&after), ["crash", "promise_found"]);
    assert_eq!(sessions(&after).len(), 1, "the same session goes on");
    // Its warnings stand among its lines.
    let ended = |line: &String| serde_json::from_str::<Value>(line).ok();
    let end = again.lines().iter().rev().find_map(ended).unwrap();
    let turns = end["turns"].as_u64().unwrap();
    assert!(turns > again.count("turn_ended") as u64, "{end}");
    assert_eq!(end["iterations"], 2);

    // Neither does a run that has ended go on, nor one with another task, nor any with `--new`.
    let runs = || {
        fs::read_dir(launch.project().join(".pitstop/runs"))
            .unwrap()
            .count()
    };
    let killed = || {
        let mut run = launch.start_headless();
        run.wait_until("a turn", |run| run.count("turn_ended") >= 1);
        run.signal(Signal::KILL);
        run.wait_for_exit(SOON);
        runs()
    };
    assert_eq!(killed(), 2);
    let flags = "--demo --here --headless --max-time 1s --task";
    let other = |before: &[&str], task: &str| {
        let args = before
            .iter()
            .copied()
            .chain(["run"])
            .chain(flags.split(' '));
        let args: Vec<&str> = args.chain([task]).collect();
        launch.command(&args).output().unwrap();
        runs()
    };
    assert_eq!(other(&[], "Another task"), 3);
    assert_eq!(killed(), 4);
    assert_eq!(other(&["--new"], "Build tidepool with care"), 5);
}

/// Its counts do not begin again either: an agent that takes its supervisor with it, whenever that is called, reaches a cap.
#[test]
fn a_run_that_dies_before_the_first_word_of_its_agent_goes_on_with_its_counts() {
    // The agent itself does not begin, or it could say its first word before it is hung up.
    let begun = "until ls .pitstop/runs/*/meta.json; do sleep 0.1; done";
    let deadly = format!(
        "[ -e deadly ] && {{ {begun}; sleep 0.5; kill -9 $PPID; exec sleep 1000; }} >/dev/null 2>&1"
    );
    let launch = json(demo())
        .behind(&format!("case \"$*\" in *--settings*) {deadly}; esac"))
        .env("PITSTOP_DEMO_AUTO", "0")
        .env("PITSTOP_DEMO_STOP_PHRASE", PROMISE)
        .env("PITSTOP_DEMO_PACE_MS", "10")
        .env("PITSTOP_DEMO_ITEMS", "2")
        .order(["--max-iterations", "3"]);
    let deadly = launch.project().join("deadly");
    fs::write(&deadly, "").unwrap();
    let mut run = launch.start_headless();
    assert_eq!(run.wait_for_exit(SOON), None, "{:#?}", run.lines());
    let before = meta(&launch);
    fs::remove_file(&deadly).unwrap();
    let (code, run) = outcome(&launch);
    assert_eq!(code, Some(0), "{:#?}", run.lines());
    let after = meta(&launch);
    assert_eq!(after["run_id"], before["run_id"]);
    assert_eq!(reasons(&after), ["crash", "promise_found"]);

    // And with a cap that is reached.
    fs::remove_dir_all(launch.project().join(".pitstop")).unwrap();
    fs::write(&deadly, "").unwrap();
    let codes = [(); 4].map(|()| launch.start_headless().wait_for_exit(SOON));
    assert_eq!(codes, [None, None, None, Some(3)]);
    assert_eq!(reasons(&meta(&launch)), ["crash"; 3]);
}

#[test]
fn a_failing_service_is_waited_out() {
    let launch = json(scripted(&[
        "one",
        "! overloaded",
        "three",
        "! server_error",
        "ALL DONE",
    ]));
    let (code, run) = outcome(&launch);
    assert_eq!(code, Some(0), "{:#?}", run.lines());
    assert_eq!((run.count("turn_failed"), run.count("waiting")), (2, 2));
    assert_eq!(reasons(&meta(&launch)), ["promise_found"]);
}

/// Figures of a process, from the system.
fn resident_kib(pid: rustix::process::Pid) -> u64 {
    let status = fs::read_to_string(format!("/proc/{}/status", pid.as_raw_nonzero())).unwrap();
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix("VmRSS:"))
        .unwrap();
    line.trim().trim_end_matches(" kB").parse().unwrap()
}

fn open_files(pid: rustix::process::Pid) -> usize {
    fs::read_dir(format!("/proc/{}/fd", pid.as_raw_nonzero()))
        .unwrap()
        .count()
}

/// The issue wants 200 in under 5 minutes; `PITSTOP_TEST_ITERATIONS` asks for more than the suite has time for.
#[test]
fn many_iterations_leave_nothing_behind() {
    let wanted: usize = std::env::var("PITSTOP_TEST_ITERATIONS")
        .ok()
        .and_then(|count| count.parse().ok())
        .unwrap_or(24);
    let number = wanted.to_string();
    let launch = demo();
    let scratch = launch.the_home().path("tmp");
    fs::create_dir_all(&scratch).unwrap();
    let launch = json(launch)
        .env("PITSTOP_DEMO_PACE_MS", "1")
        .env("PITSTOP_DEMO_ITEMS", "100000")
        .env("TMPDIR", &scratch)
        .order([
            "--fresh",
            "always",
            "--max-iterations",
            &number,
            "--max-cost",
            "0",
        ]);
    let began = Instant::now();
    let mut run = launch.start_headless();
    let figures = |run: &Headless| {
        (
            resident_kib(run.pid()),
            open_files(run.pid()),
            processes_of(run.launch.the_home()).len(),
        )
    };
    run.wait_until_within(RUN, "12 iterations", |run| {
        run.count("iteration_started") >= 12
    });
    let early = figures(&run);
    run.wait_until_within(RUN * 2, "most of them", |run| {
        run.count("iteration_started") >= wanted - 1
    });
    let late = figures(&run);
    assert_eq!(run.wait_for_exit(SOON), Some(3));
    let took = began.elapsed();
    println!(
        "{wanted} iterations in {took:?}; RSS KiB, files, processes at 12: {early:?}, at the end: {late:?}"
    );
    assert!(late.0 < early.0 + 10 * 1024, "memory: {early:?} {late:?}");
    assert!(late.1 <= early.1 + 4, "open files: {early:?} {late:?}");
    assert!(late.2 <= early.2 + 4, "processes: {early:?} {late:?}");
    // 307 s were seen on a machine that was busy with seven others.
    assert!(took < RUN, "{took:?}");
    let left: Vec<_> = fs::read_dir(&scratch)
        .unwrap()
        .flatten()
        .map(|one| one.path())
        .collect();
    assert!(left.is_empty(), "temporary files: {left:?}");
    assert!(processes_of(launch.the_home()).is_empty());
    assert_eq!(
        meta(&launch)["iterations"].as_array().unwrap().len(),
        wanted
    );
}

#[track_caller]
fn sigterm_at_a_moment(moment: u64) {
    let launch = five_sessions()
        .env("PITSTOP_DEMO_GROWTH", "70000")
        .set("reboot.auto_delay=\"50ms\"");
    let supervisor = launch.start();
    let random = u64::from(uuid::Uuid::new_v4().as_fields().0) % 6_000;
    let until = Instant::now() + Duration::from_millis(random);
    while Instant::now() < until {
        std::thread::park_timeout(until.saturating_duration_since(Instant::now()));
    }
    supervisor.signal(Signal::TERM);
    let exit = supervisor.wait_for_exit(SOON);
    let what = format!("moment {moment}, after {random} ms: {exit:?}");
    assert_eq!(supervisor.terminal.modes_left_on(), [""; 0], "{what}");
    assert!(supervisor.terminal.has_its_settings_back(), "{what}");
    supervisor.wait_until("no orphan", || processes_of(launch.the_home()).is_empty());
    let history = launch.command(&["history", "--json"]).output().unwrap();
    let history: Value = serde_json::from_slice(&history.stdout).unwrap_or_default();
    let recorded = history["iterations"]
        .as_array()
        .cloned()
        .unwrap_or_default();
    // Before it listens for signals there is nothing to close; a breaker may have come first, and stopped it.
    if exit.code == 143 {
        assert!(recorded.is_empty(), "{what}: {history:#}");
        return;
    }
    assert_eq!(exit.code, 130, "{what}");
    for one in &recorded {
        assert!(one["end_reason"].is_string(), "{what}: {history:#}");
    }
    let reason = recorded.last().map(|one| one["end_reason"].clone());
    let meta = meta(&launch);
    println!("{what}: {} iterations, {reason:?}", recorded.len());
    assert_eq!(reasons(&meta).len(), recorded.len(), "{what}");
    assert!(!reasons(&meta).contains(&"open"), "{what}: {meta:#}");
    // Between two sessions the last one that lived has its own reason.
    assert!(
        reason
            .as_ref()
            .is_some_and(|one| one == "shutdown" || one == "context_limit"),
        "{what}: {history:#}"
    );
    let status = launch.command(&["status"]).output().unwrap();
    assert_eq!(status.status.code(), Some(3), "{what}");
}

/// The issue wants 50 moments; `PITSTOP_TEST_MOMENTS` asks for more than the suite has time for.
#[test]
fn sigterm_at_any_moment_closes_the_record_and_gives_the_terminal_back() {
    let moments: u64 = std::env::var("PITSTOP_TEST_MOMENTS")
        .ok()
        .and_then(|count| count.parse().ok())
        .unwrap_or(6);
    // Three at once: each mostly waits.
    side_by_side(0..3, |first| {
        (first..moments).step_by(3).for_each(sigterm_at_a_moment);
    });
}

/// A run of the real client.
pub(crate) fn live(order: &[&str]) -> Launch {
    Launch::live()
        .agent_args(["--model", "claude-sonnet-4-5"])
        .set("summary.generate_summaries=false")
        .set("reboot.auto_delay=\"200ms\"")
        .order(["--task", "Port the parser", "--until", PROMISE])
        .order(order.iter().copied())
}

/// So many turns of twelve calls of tools, each of which fills a session by its last step; longer ones are in `long_turn`.
fn sessions_of_work(count: usize) -> Shape {
    Shape::sessions(count, 12, 20_000, 158_000).ending_with(PROMISE)
}

/// Every step was given once and its tools ran once; so many sessions each began with the task and with what those before had
/// completed.
#[track_caller]
fn check_played(launch: &Launch, shape: &Shape, sessions: usize) {
    let played = launch.api().played();
    let all: Vec<usize> = (1..=shape.steps().count()).collect();
    assert_eq!((played.steps(), played.faults()), (all, Vec::new()));
    let ends = shape.turns.iter().scan(0, |end, turn| {
        *end += turn.len();
        Some(*end)
    });
    let ends: Vec<usize> = ends.collect();
    let starts: Vec<_> = played
        .main()
        .filter_map(|call| Some((call, call.body.as_ref()?)))
        .filter(|(call, _)| call.step.is_some())
        .collect();
    assert_eq!(starts.len(), sessions, "session starts");
    for (number, (call, body)) in starts.into_iter().enumerate() {
        let reported = user_texts(body).join("\n");
        for needle in ["Port the parser", PROMISE] {
            assert!(reported.contains(needle), "session {number}: {reported}");
        }
        for end in ends.iter().filter(|end| Some(**end) < call.step) {
            let line = format!("- [x] the part up to step {end}\n");
            assert!(
                reported.contains(&line),
                "session {number} lacks {end}: {reported}"
            );
        }
        assert_eq!(call.has_handoff, number > 0);
    }
}

#[test]
#[ignore = "live: needs PITSTOP_CLAUDE"]
fn a_headless_task_over_five_sessions_of_the_real_client_ends_by_the_stop_phrase() {
    let shape = sessions_of_work(5);
    let launch = live(&["--headless", "--json"]).playing(&shape);
    let (code, run) = outcome(&launch);
    assert_eq!(code, Some(0), "{:#?}", run.lines());
    check_played(&launch, &shape, 5);
    let (meta, in_turn) = (meta(&launch), on_the_fly(&run.lines()));
    let counts = (reasons(&meta).len(), sessions(&meta).len() + in_turn);
    assert_eq!(counts, (5, 5));
}

#[test]
#[ignore = "live: needs PITSTOP_CLAUDE"]
fn a_task_survives_a_failing_service_and_a_killed_client() {
    let error = |status, kind: &str| Answer::Error {
        status,
        kind: kind.to_owned(),
        message: "try later".to_owned(),
    };
    let busy = error(529, "overloaded_error");
    let broken = error(500, "api_error");
    let shape = sessions_of_work(3);
    // In the middle of the last turn.
    let killed = shape.turns[..2].iter().map(Vec::len).sum::<usize>() + 9;
    // The client tries once more by itself, so two in a row fail a turn.
    let shape = shape
        .failing_before(4, busy.clone())
        .failing_before(9, Answer::Close)
        .failing_before(14, broken.clone())
        .failing_before(14, broken)
        .failing_before(killed - 12, busy.clone())
        .failing_before(killed - 12, busy)
        .failing_before(killed, Answer::Stall);
    let launch = live(&["--headless", "--json"]).playing(&shape);
    let mut run = launch.start_headless();
    // It is killed where it waits for the model: not before it has asked, or the next one would wait for ever.
    let last = call_id(killed - 1, 0);
    let has_asked = || {
        let played = launch.api().played();
        let mut results = played.main().flat_map(|call| &call.results);
        results.any(|result| result.id == last)
    };
    run.wait_until_within(RUN, "the call behind it", |_| has_asked());
    // The client keeps what a tool has said some moments later.
    let result = format!("\"tool_use_id\":\"{last}\"");
    let is_kept = || {
        let files = launch.the_home().transcripts();
        let texts = files
            .iter()
            .filter_map(|file| fs::read_to_string(file).ok());
        texts.into_iter().any(|text| text.contains(&result))
    };
    run.wait_until_within(RUN, "the last result on disk", |_| is_kept());
    rustix::process::kill_process(run.agent_pid().unwrap(), Signal::KILL).unwrap();
    let code = run.wait_for_exit(RUN);
    assert_eq!(code, Some(0), "{:#?}", run.lines());
    println!("{}", run.lines().join("\n"));
    check_played(&launch, &shape, 3);
    let meta = meta(&launch);
    let reasons = reasons(&meta);
    // Three begun by a start or a reboot, and one resumed.
    assert_eq!(reasons.len(), 4);
    assert_eq!(sessions(&meta).len() + on_the_fly(&run.lines()), 3);
    assert_eq!(reasons.iter().filter(|one| **one == "crash").count(), 1);
    assert_eq!(reasons.last(), Some(&"promise_found"));
}
