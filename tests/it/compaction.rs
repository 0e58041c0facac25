//! The client's own compactions: counted once each, and replaced by a reboot where the user wants that.

use std::fs;

use serde_json::Value;

use crate::kit::{
    shape::Shape,
    supervisor::{Launch, SOON, Supervisor, key},
};

const VARIABLE: &str = "DISABLE_AUTO_COMPACT";

/// The real client, which compacts before its third turn. By itself this version waits for the service to refuse;
/// with a window set it compacts at window − 20 000 − 13 000.
fn live() -> Launch {
    Launch::live()
        .agent_args(["--model", "claude-sonnet-4-5"])
        .env("CLAUDE_CODE_AUTO_COMPACT_WINDOW", "200000")
        .set("guard.compact=96")
        .set("reboot.mode=\"manual\"")
        .set("reboot.typing_quiet=\"300ms\"")
        .notes("# Scratchpad\n\n## Current Plan\n- [ ] write the store\n")
}

/// Turns of four calls of tools each: the second one ends past the point at which the client compacts, the next ones add little.
fn turns() -> Shape {
    let mut shape = Shape::sessions(4, 4, 20_000, 94_000);
    for step in shape.turns.iter_mut().skip(2).flatten() {
        step.growth = step.growth.min(200);
    }
    shape
}

/// The real client with these turns.
fn growing() -> Launch {
    live().playing(&turns())
}

/// In the place of the client, one on which our variable has no effect: its user's settings may say otherwise,
/// and other versions may not know it.
fn deaf(launch: Launch) -> Launch {
    launch.behind(&format!("unset {VARIABLE}"))
}

/// Types a prompt and waits until its turn is over: by its last answer, as the state may be read before the turn is heard of.
#[track_caller]
fn turn(supervisor: &Supervisor, prompt: &str) {
    let before = answered(supervisor);
    supervisor.prompt(prompt);
    supervisor.wait_until("the answer", || answered(supervisor) > before);
    supervisor.wait_for_status(|status| status["agent"]["state"] != "busy");
}

/// The lines of all transcripts that hold this.
fn lines_with(supervisor: &Supervisor, needle: &str) -> usize {
    let files = supervisor.launch.the_home().transcripts();
    let texts = files
        .into_iter()
        .filter_map(|path| fs::read_to_string(path).ok());
    texts
        .map(|text| text.lines().filter(|line| line.contains(needle)).count())
        .sum()
}

/// Answers so far that end a turn.
fn answered(supervisor: &Supervisor) -> usize {
    lines_with(supervisor, "\"stop_reason\":\"end_turn\"")
}

fn boundaries(supervisor: &Supervisor) -> usize {
    lines_with(supervisor, "\"compact_boundary\"")
}

fn compactions(history: &Value) -> u64 {
    let iterations = history["iterations"].as_array().expect("iterations");
    let counts = iterations
        .iter()
        .map(|one| one["compactions"].as_u64().expect("a count"));
    counts.sum()
}

#[track_caller]
fn wait_for_compactions(supervisor: &Supervisor, count: u64) {
    let all = || compactions(&supervisor.history()) == count;
    supervisor.wait_until(&format!("{count} compactions"), all);
}

fn meta(launch: &Launch) -> Value {
    let runs = fs::read_dir(launch.project().join(".pitstop/runs")).unwrap();
    let run = runs.flatten().next().expect("a run").path();
    serde_json::from_slice(&fs::read(run.join("meta.json")).unwrap()).unwrap()
}

fn started(launch: &Launch) -> Supervisor {
    let supervisor = launch.start_idle();
    turn(&supervisor, "the first");
    turn(&supervisor, "the second");
    supervisor
}

/// Whether the agent's environment switches its auto-compaction off.
fn is_switched_off(supervisor: &Supervisor) -> bool {
    let pid = supervisor.agent_pid().as_raw_nonzero();
    let environment = fs::read(format!("/proc/{pid}/environ")).unwrap();
    let wanted = format!("{VARIABLE}=1");
    environment
        .split(|byte| *byte == 0)
        .any(|one| one == wanted.as_bytes())
}

/// Left alone the client compacts, and each compaction is counted once, everywhere.
#[test]
#[ignore = "live: needs PITSTOP_CLAUDE"]
fn each_compaction_of_the_real_client_is_counted_once() {
    let launch = growing();
    let supervisor = started(&launch);
    assert!(!is_switched_off(&supervisor), "it is not to be touched");
    assert_eq!(compactions(&supervisor.history()), 0);
    turn(&supervisor, "the third");
    wait_for_compactions(&supervisor, 1);
    supervisor.wait_until("the boundary", || boundaries(&supervisor) == 1);
    supervisor.wait_for_text("1 compaction", SOON);
    turn(&supervisor, "the fourth");
    assert_eq!(
        compactions(&supervisor.history()),
        1,
        "every source has reported"
    );

    supervisor.prompt("/compact");
    wait_for_compactions(&supervisor, 2);
    let table = String::from_utf8(supervisor.run(&["history"]).stdout).unwrap();
    assert!(table.contains("(compacted 2 times)"), "{table}");
    supervisor.wait_for_text("2 compactions", SOON);

    assert_eq!(supervisor.ctl("stop").0, 0);
    supervisor.wait_for_exit(SOON);
    assert_eq!(
        compactions(&supervisor.history()),
        2,
        "the store tells it too"
    );
    let meta = meta(&launch);
    assert_eq!(meta["iterations"][0]["compactions"], 2, "{meta}");
}

/// The variable goes to the hosted session and is all that is done.
#[test]
#[ignore = "live: needs PITSTOP_CLAUDE"]
fn auto_compaction_of_the_real_client_is_switched_off_by_environment() {
    let launch = growing();
    let supervisor = started(&launch.clone().set("guard.replace_compaction=true"));
    assert!(is_switched_off(&supervisor));
    turn(&supervisor, "the third");
    assert_eq!(
        boundaries(&supervisor),
        0,
        "the client does not compact by itself"
    );
    // The human may.
    supervisor.prompt("/compact");
    wait_for_compactions(&supervisor, 1);
    // The client writes it when it finds the time.
    supervisor.wait_until("the boundary", || boundaries(&supervisor) == 1);
    assert_eq!(supervisor.status()["reboot"]["phase"], "idle");
}

/// The reason of a reboot that comes before a compaction: that one was refused. The real client also says on its screen at
/// which point it compacts; where that is read in time, the lines move below it, and the reboot comes without a refusal.
#[track_caller]
fn assert_before_compaction(reason: &Value) {
    assert!(
        reason == "threshold" || reason == "context_limit",
        "{reason}"
    );
}

/// A client that would compact all the same is refused and a reboot asked for. The turn goes on.
#[test]
#[ignore = "live: needs PITSTOP_CLAUDE"]
fn compaction_of_the_real_client_is_held_back_with_a_review() {
    let launch = growing();
    let launch = deaf(launch)
        .set("guard.replace_compaction=true")
        .set("reboot.mode=\"ask\"");
    let supervisor = started(&launch);
    turn(&supervisor, "the third");
    let status = supervisor.wait_for_phase("review", SOON);
    assert_before_compaction(&status["reboot"]["reason"]);
    assert_eq!(boundaries(&supervisor), 0);
    assert_eq!(
        compactions(&supervisor.history()),
        0,
        "what was held back did not happen"
    );
    supervisor.keys([key::F5]);
    supervisor.wait_for_text("review the handoff", SOON);
    supervisor.keys([key::ESC]);
    supervisor.wait_for_phase("idle", SOON);
}

/// In `auto` it is a reboot.
#[test]
#[ignore = "live: needs PITSTOP_CLAUDE"]
fn compaction_of_the_real_client_is_replaced_by_a_reboot() {
    let launch = growing();
    let launch = deaf(launch)
        .set("guard.replace_compaction=true")
        .set("reboot.mode=\"auto\"")
        .set("reboot.auto_delay=\"200ms\"");
    let supervisor = started(&launch);
    supervisor.prompt("the third");
    supervisor.wait_for_iteration(2, SOON * 2);
    let history = supervisor.history();
    assert_before_compaction(&history["iterations"][1]["cause"]);
    assert_eq!(compactions(&history), 0);
}

/// In `manual` nothing is begun, but it is reported.
#[test]
#[ignore = "live: needs PITSTOP_CLAUDE"]
fn compaction_of_the_real_client_is_reported_in_manual() {
    let launch = growing();
    let supervisor = started(&deaf(launch).set("guard.replace_compaction=true"));
    turn(&supervisor, "the third");
    supervisor.wait_for_log("wanted to compact and was held back", SOON);
    assert_eq!(supervisor.status()["reboot"]["phase"], "idle");
    assert_eq!(boundaries(&supervisor), 0);
}

/// The hook is as silent as the others unless the supervisor refuses.
#[test]
fn the_hook_prints_a_refusal_and_nothing_else() {
    let payload = |supervisor: &Supervisor, trigger: &str| {
        let session = supervisor.status()["session_id"].clone();
        serde_json::json!({ "session_id": session, "hook_event_name": "PreCompact", "trigger": trigger }).to_string()
    };
    let supervisor = Launch::quiet_demo()
        .set("reboot.mode=\"manual\"")
        .start_idle();
    let ask = |supervisor: &Supervisor, trigger: &str| {
        let input = payload(supervisor, trigger);
        let output = supervisor.run_with_input(&["hook", "PreCompact"], input.as_bytes());
        assert!(
            output.status.success() && output.stderr.is_empty(),
            "{output:?}"
        );
        String::from_utf8(output.stdout).unwrap()
    };
    assert_eq!(ask(&supervisor, "auto"), "", "it is not to be touched");
    drop(supervisor);

    let launch = Launch::quiet_demo()
        .set("reboot.mode=\"manual\"")
        .set("guard.replace_compaction=true");
    let supervisor = launch.start_idle();
    assert_eq!(ask(&supervisor, "manual"), "", "the human asked for it");
    assert_eq!(
        ask(&supervisor, "auto"),
        "{\"decision\":\"block\",\"reason\":\"pitstop holds compaction back and offers a reboot with a handoff instead\"}\n"
    );
    let other = serde_json::json!({ "session_id": "00000000-0000-4000-8000-000000000000", "trigger": "auto" });
    let output = supervisor.run_with_input(&["hook", "PreCompact"], other.to_string().as_bytes());
    assert!(output.stdout.is_empty(), "another session's");
    let launch = supervisor.kill();
    let mut nobody = launch.command(&["hook", "PreCompact"]);
    let output = nobody.output().unwrap();
    assert!(
        output.status.success() && output.stdout.is_empty(),
        "no one listens: {output:?}"
    );
}
