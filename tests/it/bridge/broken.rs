//! The real client where mods of ours fail, or are kept out: everything of before works, and it is said what is in force.

use serde_json::{Value, json};

use super::{MODS_FROM, bridge, live, wait_for};
use crate::{
    kit::{
        client::{is_at_least, live_client},
        messages_api::Answer,
        side_by_side::side_by_side,
        supervisor::{Launch, SOON, Supervisor, remove, session_of},
    },
    reboot::reboot,
    tools::managed,
};

/// What every handoff begins with.
const MARKER: &str = "pitstop handoff · ";

/// The real client, before whose start `sed` has changed this file of the mods by that script.
fn with_mods_changed(launch: Launch, file: &str, script: &str) -> Launch {
    let text = format!(
        "#!/bin/sh\n\
         mods=; before=\n\
         for one in \"$@\"; do\n\
         [ \"$before\" = --plugin-dir ] && mods=$one\n\
         before=$one\n\
         done\n\
         [ -n \"$mods\" ] && sed -i '{script}' \"$mods/{file}\"\n\
         exec {} \"$@\"\n",
        live_client().display()
    );
    let client = launch.the_home().program("client.sh", &text);
    launch.client(&client)
}

/// A script for `sed` by which every handler of a mod throws, but those of this event.
fn throws_but(event: &str) -> String {
    let throw = r#"s/async (\$, e, next) => {/& throw new Error("broken");/"#;
    format!(r#"/on("{event}"/!{throw}"#)
}

/// Why the bridge is not in force, as it is reported: scripts, `doctor`, the Context panel.
#[track_caller]
fn is_absent(supervisor: &Supervisor, why: &str) {
    // Until a client that says nothing is given up.
    let absent = |status: &Value| bridge(status)["state"] == "absent";
    let status = supervisor.wait_for_status(absent);
    assert_eq!(bridge(&status)["why"], why);
    let reason = bridge(&status)["reason"].as_str().expect("a reason");
    let doctor = supervisor.run(&["doctor"]);
    let text = String::from_utf8_lossy(&doctor.stdout).into_owned();
    let named = |line: &&str| line.contains("bridge") && line.contains(reason);
    assert!(text.lines().any(|line| named(&line)), "{reason}: {text}");
    let start: String = reason.chars().take(20).collect();
    let panel = format!("no bridge: {start}");
    supervisor.wait_for_text(&panel, SOON);
}

/// Everything of before: a turn, its figure, and a reboot into a fresh session that is proven.
#[track_caller]
fn works_as_before(supervisor: &Supervisor) {
    let api = supervisor.launch.api();
    supervisor.wait_for_state("idle", SOON);
    let calls = api.main_calls().len();
    supervisor.prompt("step one");
    api.wait_for_calls(calls + 1, SOON);
    let used = |status: &Value| {
        let used = status["context"]["used"].as_u64();
        used.is_some_and(|used| used.abs_diff(42_000) < 100)
    };
    supervisor.wait_for_status(used);
    let before = session_of(&supervisor.wait_for_state("idle", SOON));
    let (shown, got) = reboot(supervisor);
    assert!(shown.contains(MARKER) && got.contains(MARKER), "{got}");
    let status = supervisor.wait_for_iteration(2, SOON);
    assert_ne!(session_of(&status), before);
    supervisor.wait_for_text("handoff confirmed", SOON);
    assert_eq!(supervisor.history()["iterations"][1]["way"], "fresh");
}

/// A launch whose model says this much is in use.
fn used(launch: Launch) -> Launch {
    launch.api().report_usage([42_000; 8]);
    launch
        .api()
        .answer((0..8).map(|_| Answer::text("Understood.")));
    launch
}

#[test]
#[ignore = "live: needs PITSTOP_CLAUDE"]
fn a_mod_that_throws_leaves_everything_of_before() {
    assert!(is_at_least(MODS_FROM), "this client runs no mods");
    // With its first handler it polls, and so is in force, but says nothing of turns and the prompt box.
    let scripts = [
        (r#"1i throw new Error("broken");"#.to_owned(), false),
        (throws_but("no such event"), false),
        (throws_but("session.start"), true),
    ];
    side_by_side(scripts, |(script, polls)| {
        let file = "pitstop/hooks/register.js";
        let supervisor = with_mods_changed(used(live()), file, &script).start();
        if polls {
            wait_for(&supervisor, |bridge| bridge["state"] == "in_force");
        } else {
            is_absent(&supervisor, "no_hello");
        }
        works_as_before(&supervisor);
    });
}

/// What `pitstop-answer` does not answer the client would summarize itself, and the handoff would be nowhere.
#[test]
#[ignore = "live: needs PITSTOP_CLAUDE"]
fn where_the_mod_that_answers_fails_no_conversation_is_replaced() {
    assert!(is_at_least(MODS_FROM), "this client runs no mods");
    let file = "pitstop-answer/hooks/register.js";
    let scripts = [
        (
            r#"1i throw new Error("broken");"#.to_owned(),
            "is not loaded",
        ),
        (throws_but("session.start"), "pitstop does not answer"),
    ];
    side_by_side(scripts, |(script, why)| {
        let supervisor = with_mods_changed(used(live()), file, &script).start();
        wait_for(&supervisor, |bridge| bridge["state"] == "in_force");
        supervisor.wait_for_state("idle", SOON);
        supervisor.prompt("the old talk");
        supervisor.launch.api().wait_for_calls(1, SOON);
        supervisor.wait_for_state("idle", SOON);
        let asked = supervisor.run(&["ctl", "reboot", "--way", "in-place"]);
        assert!(asked.status.success(), "{asked:?}");
        supervisor.wait_for_phase("review", SOON);
        assert_eq!(supervisor.ctl("approve").0, 0);
        let status = supervisor.wait_for_phase("idle", SOON);
        assert_eq!(status["iteration"], 1, "{status:#}");
        supervisor.wait_for_text("nothing was changed", SOON);
        supervisor.wait_until(why, || supervisor.screen().replace('\n', "").contains(why));
        assert_eq!(supervisor.launch.api().main_calls().len(), 1, "no summary");
        works_as_before(&supervisor);
    });
}

#[test]
#[ignore = "live: needs PITSTOP_CLAUDE"]
fn flags_and_settings_that_keep_mods_out_leave_everything_of_before() {
    assert!(is_at_least(MODS_FROM), "this client runs no mods");
    let kept_out = [
        (&["--safe-mode"][..], "flag"),
        (&["--bare"], "flag"),
        (&["--settings", r#"{"disableAllHooks":true}"#], "hooks_off"),
    ];
    side_by_side(kept_out, |(args, why)| {
        let supervisor = used(live().agent_args(args.iter().copied())).start();
        is_absent(&supervisor, why);
        if why == "hooks_off" {
            // The agent has its tools all the same.
            assert_eq!(supervisor.status()["agent"]["tools"], "mcp");
        }
        works_as_before(&supervisor);
    });
}

#[test]
#[ignore = "live: needs PITSTOP_CLAUDE and namespaces"]
fn managed_settings_that_keep_mods_out_leave_everything_of_before() {
    assert!(is_at_least(MODS_FROM), "this client runs no mods");
    // The second is an option of a plugin that the client brings along; releases name it differently.
    let only = json!({ "options": { "allowManagedModsOnly": true } });
    let plugins = json!({ "cc-plugin-sec-default@builtin": only, "sec-default@builtin": only });
    let both = [
        (json!({ "allowManagedHooksOnly": true }), "hooks_off"),
        (json!({ "pluginConfigs": plugins }), "no_hello"),
    ];
    side_by_side(both, |(settings, why)| {
        let supervisor = used(managed("managed-settings.json", &settings)).start();
        is_absent(&supervisor, why);
        works_as_before(&supervisor);
    });
}

/// The bridge's socket is gone and does not come back: hooks, status line and transcript serve.
#[test]
#[ignore = "live: needs PITSTOP_CLAUDE"]
fn a_bridge_whose_right_is_lost_in_mid_session_leaves_everything_of_before() {
    assert!(is_at_least(MODS_FROM), "this client runs no mods");
    let supervisor = used(live()).start();
    wait_for(&supervisor, |bridge| bridge["state"] == "in_force");
    supervisor.wait_for_state("idle", SOON);
    remove(&supervisor.launch.the_home().path("state/pitstop/run"));
    supervisor.wait_for_log("was removed: made again", SOON);
    works_as_before(&supervisor);
}
