//! The turn and the place of a real client whose user has a Stop hook and work trees.

use std::{fs, path::Path, process::Command, sync::Arc};

use pitstop_agent::claude::project_slug;
use serde_json::json;

use crate::kit::{
    home::Home,
    messages_api::{Answer, user_texts},
    supervisor::{Launch, SOON, key, session_of},
};

/// Sends the agent on twice, in both ways that a Stop hook has.
const SENDS_ON: &str = r#"echo >> "$HOME/stops"; case $(wc -l < "$HOME/stops") in
1) echo 'go on' >&2; exit 2;; 2) echo '{"decision":"block","reason":"go on"}';; esac"#;

#[test]
#[ignore = "live: needs PITSTOP_CLAUDE"]
fn a_turn_that_a_stop_hook_of_the_users_sends_on_is_not_killed() {
    for bridge in [true, false] {
        let launch = Launch::live()
            .agent_args(["--model", "claude-sonnet-4-5", "--allowed-tools", "Bash"])
            .set("reboot.mode=\"auto\"")
            .set("reboot.auto_delay=\"0s\"")
            .set(&format!("agent.bridge={bridge}"));
        let settings = launch.the_home().path(".claude/settings.json");
        let hook = json!({ "hooks": [{ "type": "command", "command": SENDS_ON }] });
        fs::write(settings, json!({ "hooks": { "Stop": [hook] } }).to_string()).unwrap();
        let call = |number| Answer::shell(&format!("sleep 2; echo {number} $PPID >> calls"));
        let said = || Answer::text("Is that all?");
        launch.api().report_usage([20_000, 160_000]);
        let answers = [call(1), said(), call(2), said(), call(3), said()];
        launch.api().answer(answers);
        let supervisor = launch.start_idle();
        let client = supervisor.agent_pid().as_raw_pid();
        supervisor.prompt("go");
        let calls = || fs::read_to_string(launch.project().join("calls")).unwrap_or_default();
        supervisor.wait_until("three calls", || calls().lines().count() == 3);
        // With the bridge it was rebooted on the fly before, in the same client and turn.
        supervisor.wait_for_iteration(2, SOON);
        assert_eq!(calls(), format!("1 {client}\n2 {client}\n3 {client}\n"));
    }
}

/// Makes the project a repository.
#[track_caller]
fn git_begins(home: &Home) {
    let git =
        "git init -qb trunk; git -c user.name=a -c user.email=a@b commit -qm begin --allow-empty";
    let mut shell = Command::new("sh");
    let shell = shell.args(["-c", git]).current_dir(home.project());
    assert!(shell.status().unwrap().success());
}

#[test]
fn git_is_asked_where_the_hooks_say_that_the_agent_works() {
    let supervisor = Launch::manual_demo("").start();
    let home = supervisor.launch.the_home();
    git_begins(home);
    let session = session_of(&supervisor.wait_for_state("idle", SOON));
    let (project, tree) = (home.project(), home.project().join("bäume/ein (1)"));
    let mut git = Command::new("git");
    let add = git.args(["worktree", "add", "-qb", "side"]).arg(&tree);
    assert!(add.current_dir(project).status().unwrap().success());
    let says = |cwd: &Path, place: &Path, agent: Option<&str>| {
        let transcript = format!("/c/projects/{}/{session}.jsonl", project_slug(place));
        let payload = json!({
            "session_id": session, "cwd": cwd, "transcript_path": transcript, "tool_name": "Bash",
            "agent_id": agent,
        });
        supervisor.run_with_input(&["hook", "PostToolUse"], payload.to_string().as_bytes());
    };
    let branch = |name: &str| {
        supervisor.wait_for_handoff(name);
    };
    // It enters the tree, leaves it, goes there by a shell, and to a directory below; what a subagent does is its own.
    for (cwd, place, name) in [
        (&*tree, &*tree, "side"),
        (project, project, "trunk"),
        (&tree.join("src"), project, "side"),
        (&tree.join("src"), &*tree, "side"),
    ] {
        says(cwd, place, None);
        says(project, project, Some("a1"));
        branch(name);
    }
    // The turn that the hooks have opened is over.
    let ended = json!({ "session_id": session, "cwd": tree, "last_assistant_message": "Done." });
    supervisor.run_with_input(&["hook", "Stop"], ended.to_string().as_bytes());
    fs::remove_dir_all(&tree).unwrap();
    supervisor.review();
    supervisor.keys([key::ENTER]);
    supervisor.wait_for_iteration(2, SOON);
    supervisor.wait_for_log("the agent's directory is gone", SOON);
    branch("trunk");
}

/// Reboots by hand after a turn in a work tree: the next session runs there, and is told of its branch and files.
#[track_caller]
fn the_work_tree_is_kept(project: &str, args: &[&str], tree: &str, enter: Option<Answer>) {
    let home = Arc::new(Home::with_project(project).unwrap());
    let launch = Launch::live().agent_args(["--allowed-tools", "Bash,EnterWorktree"]);
    let launch = launch.agent_args(args.iter().copied()).home(&home);
    git_begins(&home);
    let tree_path = home.project().join(".claude/worktrees").join(tree);

    launch.api().answer(enter);
    let write = "echo x > only-here; pwd > \"$HOME/first\"";
    launch
        .api()
        .answer([Answer::shell(write), Answer::text("Written.")]);
    let supervisor = launch.start_idle();
    supervisor.prompt("go");
    supervisor.wait_until("the call", || home.path("first").exists());
    supervisor.wait_for_state("idle", SOON);
    let trim = launch.command(&["trim", "--dry-run"]).output().unwrap();
    assert!(trim.status.success(), "{trim:?}");
    let next = Answer::shell("pwd > \"$HOME/second\"");
    launch.api().answer([next, Answer::text("Done.")]);
    supervisor.review();
    supervisor.keys([key::ENTER]);
    // The shell makes the file before it writes into it.
    let written = || fs::read_to_string(home.path("second")).is_ok_and(|text| !text.is_empty());
    supervisor.wait_until("the next session's call", written);
    let handoff = user_texts(launch.api().main_calls().last().unwrap()).concat();
    for (word, is_there) in [
        (&*format!("worktree-{tree}"), true),
        ("only-here", true),
        ("trunk", false),
    ] {
        assert_eq!(handoff.contains(word), is_there, "{word}: {handoff}");
    }
    for file in ["first", "second"] {
        let place = fs::read_to_string(home.path(file)).unwrap();
        assert_eq!(place.trim_end(), tree_path.to_string_lossy(), "{file}");
    }
    supervisor.wait_for_state("idle", SOON);
}

#[test]
#[ignore = "live: needs PITSTOP_CLAUDE"]
fn the_session_after_a_reboot_runs_in_the_work_tree_that_the_client_or_its_agent_has_made() {
    the_work_tree_is_kept("project", &["--worktree", "feat"], "feat", None);
    let name = format!("仕事 (1) & mehr'/{}été.x", "long/".repeat(30));
    let enter = Answer::Tool {
        name: "EnterWorktree".into(),
        input: json!({ "name": "wx" }),
    };
    the_work_tree_is_kept(&name, &[], "wx", Some(enter));
}
