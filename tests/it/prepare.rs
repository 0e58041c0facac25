//! Before the old agent is touched: what the new one needs is there and the user's own command has agreed; else the reboot is
//! refused with the reason, and the agent goes on.

use std::fs;

use rustix::process::{Pid, Resource, Rlimit, getrlimit, prlimit};
use serde_json::Value;

use crate::kit::{
    small_disk::SmallDisk,
    supervisor::{Launch, SOON, Supervisor, key, remove, replace_by_file, session_of},
};

const NOTES: &str = "# Scratchpad\n\n## Current Understanding\nfeeds are parsed\n\n## Current Plan\n- [ ] write the store\n";

/// Approves a reboot, at the keyboard alone.
#[track_caller]
fn approve(supervisor: &Supervisor) {
    supervisor.keys([key::F5]);
    supervisor.wait_for_text("approve", SOON);
    supervisor.keys([key::ENTER]);
}

/// A reboot is refused for this reason.
#[track_caller]
fn refused(supervisor: &Supervisor, why: &str) {
    supervisor.wait_for_log(why, SOON);
    // In the footer another message may stand in its place at once: what was moved away is reported, too.
    supervisor.wait_for_log("the reboot is refused", SOON);
}

/// Approves a reboot that is refused for this reason; the agent goes on as the same one.
#[track_caller]
fn is_refused(supervisor: &Supervisor, why: &str) {
    let before = supervisor.status();
    let agent = supervisor.agent_pid();
    approve(supervisor);
    refused(supervisor, why);
    same_agent(supervisor, &before, agent);
}

#[track_caller]
fn same_agent(supervisor: &Supervisor, before: &Value, agent: Pid) {
    supervisor.wait_for_state("idle", SOON);
    let status = supervisor.wait_for_phase("idle", SOON);
    assert_eq!(status["iteration"], before["iteration"]);
    assert_eq!(session_of(&status), session_of(before));
    assert_eq!(supervisor.agent_pid(), agent);
}

/// Approves a reboot that goes ahead.
#[track_caller]
fn goes_ahead(supervisor: &Supervisor, iteration: u64) {
    approve(supervisor);
    supervisor.wait_for_iteration(iteration, SOON);
    supervisor.wait_for_status(|status| {
        status["reboot"]["phase"] == "idle" && status["agent"]["state"] == "idle"
    });
}

fn the_users_commands_have_their_say(launch: Launch) {
    let launch = launch
        .set("reboot.mode=\"manual\"")
        .set("hooks.pre_reboot=\"cat >pre.json; test -e allowed || { echo 'the tests fail' >&2; exit 1; }\"")
        .set("hooks.post_reboot=\"cat >post.new; mv post.new post.json\"")
        .notes(NOTES);
    let project = launch.project().to_owned();
    let supervisor = launch.start_idle();
    supervisor.prompt("begin the work");
    supervisor.wait_until("a turn is over", || {
        let history = supervisor.history();
        history["iterations"][0]["tokens"]["output"]
            .as_u64()
            .is_some_and(|tokens| tokens > 0)
    });
    supervisor.wait_for_state("idle", SOON);
    is_refused(&supervisor, "pre_reboot has failed: the tests fail");
    assert!(!project.join("post.json").exists(), "nothing was done");

    fs::write(project.join("allowed"), "").expect("a file");
    goes_ahead(&supervisor, 2);
    let json = |name: &str| -> Value {
        let text = fs::read(project.join(name)).expect("a file");
        serde_json::from_slice(&text).expect("JSON")
    };
    supervisor.wait_until("post_reboot has run", || project.join("post.json").exists());
    let (pre, post) = (json("pre.json"), json("post.json"));
    assert_eq!(
        (&pre["hook"], &pre["iteration"], pre.get("result")),
        (&"pre_reboot".into(), &1.into(), None)
    );
    assert_eq!(
        (&post["hook"], &post["result"], &post["verified"]),
        (&"post_reboot".into(), &"done".into(), &true.into())
    );
    let handoff = pre["handoff"].as_str().expect("the handoff");
    assert!(handoff.contains("write the store"), "{handoff}");
    assert_eq!(post["new_session"], session_of(&supervisor.status()));
}

#[test]
fn the_users_commands_around_a_reboot_have_their_say() {
    the_users_commands_have_their_say(Launch::manual_demo(NOTES));
}

#[test]
fn a_run_s_directory_that_is_gone_is_made_again_for_a_reboot_or_it_is_refused() {
    let launch = Launch::manual_demo(NOTES);
    let supervisor = launch.start_idle();
    let runs = launch.project().join(".pitstop/runs");
    remove(&runs);
    goes_ahead(&supervisor, 2);
    replace_by_file(&runs);
    is_refused(&supervisor, "no settings for the new session");
}

#[test]
fn without_its_directory_or_descriptors_a_reboot_is_refused_and_the_agent_goes_on() {
    let launch = Launch::manual_demo(NOTES);
    let supervisor = launch.start_idle();

    let project = launch.project();
    let aside = project.with_extension("aside");
    let before = supervisor.status();
    let agent = supervisor.agent_pid();
    fs::rename(project, &aside).expect("moved away");
    // A command that asks for the status would have to run there.
    approve(&supervisor);
    refused(&supervisor, "the project's directory is gone");
    fs::rename(&aside, project).expect("moved back");
    same_agent(&supervisor, &before, agent);

    let pid = supervisor.status()["pid"].as_i64().expect("its number");
    let pid = Pid::from_raw(i32::try_from(pid).expect("a number")).expect("a process");
    let count = fs::read_dir(format!("/proc/{}/fd", pid.as_raw_nonzero()))
        .expect("its descriptors")
        .count();
    let few = Rlimit {
        current: Some(count as u64 + 8),
        ..getrlimit(Resource::Nofile)
    };
    let before = prlimit(Some(pid), Resource::Nofile, few).expect("a limit");
    is_refused(&supervisor, "files can be opened for the new session");
    prlimit(Some(pid), Resource::Nofile, before).expect("a limit");
    goes_ahead(&supervisor, 2);
}

#[test]
#[ignore = "needs PITSTOP_TEST_SMALL_DISK=<a directory on a file system of about 1 MiB>"]
fn with_the_state_s_disk_full_a_reboot_is_refused_and_the_agent_goes_on() {
    let disk = SmallDisk::new();
    let launch = Launch::manual_demo(NOTES).env("XDG_STATE_HOME", disk.path());
    let supervisor = launch.start_idle();
    let before = supervisor.status();
    let agent = supervisor.agent_pid();

    disk.fill();
    approve(&supervisor);
    // There is no log on a full disk.
    supervisor.wait_for_text("the reboot is refused", SOON);
    let status = supervisor.wait_for_phase("idle", SOON);
    let reason = status["reboot"]["reason"].as_str().unwrap_or_default();
    assert!(
        reason.starts_with("refused: the disk of pitstop's state is full: 0 B are free"),
        "{reason}"
    );
    same_agent(&supervisor, &before, agent);

    disk.empty();
    goes_ahead(&supervisor, 2);
}
