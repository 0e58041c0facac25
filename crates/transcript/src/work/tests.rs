use super::{
    report::{FILES, FREE_NAMES},
    *,
};
use crate::steps::denial_reason;
use serde_json::json;

fn call(id: &str, tool: &str, input: &Value) -> Value {
    json!({
        "type": "assistant", "cwd": "/p", "gitBranch": "topic",
        "message": { "content": [{ "type": "tool_use", "id": id, "name": tool, "input": input }] },
    })
}

fn result(id: &str, text: &str, failed: bool, outcome: &Value) -> Value {
    json!({
        "type": "user", "toolUseResult": outcome,
        "message": { "content": [
            { "type": "tool_result", "tool_use_id": id, "content": text, "is_error": failed }
        ] },
    })
}

fn ok(id: &str, text: &str) -> Value {
    result(id, text, false, &Value::Null)
}

fn failed(id: &str, text: &str) -> Value {
    result(id, text, true, &Value::Null)
}

/// The steps of a report as a handoff shows them.
fn shown(report: &WorkAtHand) -> String {
    let detail = crate::steps::Detail::new(400, 400, 400);
    let mut said = std::collections::HashSet::new();
    let steps = report.steps.iter();
    steps.map(|step| step.show(&detail, &mut said)).collect()
}

fn said(text: &str) -> Value {
    json!({ "type": "assistant", "message": { "content": [{ "type": "text", "text": text }] } })
}

fn work(records: &[Value]) -> WorkAtHand {
    let mut work = Work::default();
    for record in records {
        work.take_record(record);
    }
    work.report()
}

/// Takes a file that a tool has written, in an agent that is in a directory.
fn wrote(work: &mut Work, cwd: &str, file: &str) {
    let call = json!({"type": "tool_use", "id": file, "name": "Write", "input": {"file_path": file, "content": "x"}});
    work.take_record(&json!({"type": "assistant", "cwd": cwd, "message": {"content": [call]}}));
    let result = json!({"type": "tool_result", "tool_use_id": file, "content": "ok"});
    work.take_record(&json!({"type": "user", "cwd": cwd, "message": {"content": [result]}}));
}

fn paths(work: &Work) -> Vec<String> {
    let mut paths: Vec<_> = work
        .report()
        .files
        .into_iter()
        .map(|file| file.path)
        .collect();
    paths.sort();
    paths
}

#[test]
fn a_file_is_named_as_the_agent_finds_it_from_the_work_tree_where_it_is() {
    let tree = "/p/.claude/worktrees/moon";
    let mut work = Work::default();
    wrote(&mut work, "/p", "/p/src/tide.py");
    wrote(&mut work, "/p", "/p/top.md");
    wrote(&mut work, tree, "/p/.claude/worktrees/moon/src/moon.py");
    // As a tool prints it, from a directory below.
    let said = json!([{"type": "text", "text": "FAILED src/moon.py and src/dark.py"}]);
    work.take_record(
        &json!({"type": "assistant", "cwd": format!("{tree}/src"), "message": {"content": said}}),
    );
    assert_eq!(
        paths(&work),
        ["/p/src/tide.py", "/p/top.md", "src/dark.py", "src/moon.py"]
    );
    // The next session begins in the tree, and another one elsewhere.
    let handoff = format!(
        "pitstop handoff \u{b7} r \u{b7} iteration 1 \u{b7} 0a1b2c3d\n\n{WORK_HEADING}\n\n\
        - /p/src/tide.py (changed, not committed)\n- src/moon.py:3 (changed): dark_nights\n\n\
        {GIT_HEADING}\n\n- branch moon{IN_WORK_TREE}{tree}\n"
    );
    for (cwd, named) in [
        (tree, ["/p/src/tide.py", "src/moon.py"]),
        ("/p", [".claude/worktrees/moon/src/moon.py", "src/tide.py"]),
    ] {
        let mut next = Work::default();
        next.take_record(&json!({"type": "user", "cwd": cwd, "message": {"content": handoff}}));
        assert_eq!(paths(&next), named);
        assert!(next.report().files.iter().all(|file| file.changed));
    }
    // It comes back.
    wrote(&mut work, "/p", "/p/src/utc.py");
    assert!(paths(&work).contains(&".claude/worktrees/moon/src/moon.py".to_owned()));
}

#[test]
fn a_call_whose_session_ended_before_its_result_has_neither_failed_nor_worked() {
    let mut work = Work::default();
    let call = json!({"type": "tool_use", "id": "1", "name": "Bash", "input": {"command": "make"}});
    work.take_record(&json!({"type": "assistant", "message": {"content": [call]}}));
    let cut = "[Tool call interrupted: the session ended before this call's result was recorded]";
    let result =
        json!({"type": "tool_result", "tool_use_id": "1", "content": cut, "is_error": true});
    work.take_record(&json!({"type": "user", "message": {"content": [result]}}));
    let said = json!([{"type": "text", "text": "No response requested."}]);
    work.take_record(
        &json!({"type": "assistant", "message": {"model": SYNTHETIC, "content": said}}),
    );
    let report = work.report();
    assert!(report.is_in_turn && report.last_failure.is_none() && report.tried.is_empty());
    assert!(report.last_words.is_empty());
    assert_eq!(
        shown(&report),
        "$ make\n  no result: the session ended first\n"
    );
}

#[test]
fn a_changed_file_stands_with_its_names_and_where_the_work_stopped() {
    let report = work(&[
        call("1", "Read", &json!({ "file_path": "/p/src/old_file.rs" })),
        result("1", "fn read_all() {}", false, &json!({})),
        call(
            "2",
            "Edit",
            &json!({ "file_path": "/p/src/new_file.rs", "old_string": "same_name()", "new_string": "same_name(newName)" }),
        ),
        result(
            "2",
            "ok",
            false,
            &json!({ "structuredPatch": [{ "newStart": 7 }, { "newStart": 42 }] }),
        ),
    ]);
    let [first, second] = report.files.as_slice() else {
        panic!("{:?}", report.files);
    };
    assert_eq!(
        (first.path.as_str(), first.changed, first.line),
        ("src/new_file.rs", true, Some(42))
    );
    assert_eq!(first.names, ["newName", "same_name"]);
    assert_eq!(
        (second.path.as_str(), second.changed),
        ("src/old_file.rs", false)
    );
    assert_eq!(second.names, ["read_all"]);
    assert_eq!(report.references, ["branch topic"]);
}

#[test]
fn a_file_beside_the_session_s_directory_is_named_from_there() {
    let mut work = Work::default();
    work.take_record(&json!({ "type": "user", "cwd": "/home/me/git/mono/packages/web", "message": { "content": "go" } }));
    for (path, named) in [
        ("/home/me/git/mono/packages/web/src/a.ts", "src/a.ts"),
        (
            "/home/me/git/mono/packages/shared/src/b.ts",
            "../shared/src/b.ts",
        ),
        ("/home/me/git/mono/libs/c.ts", "../../libs/c.ts"),
        ("/home/me/other/d.ts", "/home/me/other/d.ts"),
        ("./e.ts", "e.ts"),
    ] {
        assert_eq!(work.places.relative_path(path), named);
    }
}

#[test]
fn notebooks_servers_tools_and_results_of_blocks_belong_to_their_file() {
    let blocks = json!([{ "type": "text", "text": "\u{1b}[31mdef load_frame():\u{1b}[0m" }]);
    let mut shown = result("3", "", false, &json!({}));
    shown["message"]["content"][0]["content"] = blocks;
    let report = work(&[
        call(
            "1",
            "NotebookEdit",
            &json!({ "notebook_path": "/p/nb/explore.ipynb", "new_source": "df = read_frame()" }),
        ),
        result("1", "ok", false, &json!({})),
        call(
            "2",
            "mcp__files__write",
            &json!({ "path": "src/main.go", "content": "func handleUpload() {}" }),
        ),
        result("2", "ok", false, &json!({})),
        call("3", "Read", &json!({ "file_path": "/p/app/load.py" })),
        shown,
    ]);
    let files: Vec<_> = report
        .files
        .iter()
        .map(|file| (file.path.as_str(), file.changed, file.names.clone()))
        .collect();
    let names = |name: &str| vec![name.to_owned()];
    assert!(
        files.contains(&("nb/explore.ipynb", true, names("read_frame"))),
        "{files:?}"
    );
    assert!(
        files.contains(&("src/main.go", false, names("handleUpload"))),
        "{files:?}"
    );
    assert!(
        files.contains(&("app/load.py", false, names("load_frame"))),
        "{files:?}"
    );
}

#[test]
fn commands_of_other_runners_are_not_taken_for_the_same() {
    let lines = [
        "source .venv/bin/activate && python -m pytest -q",
        "python -m mypy src",
        "npm run build",
        "npm run test -- --watch=false",
        "pnpm --filter web test",
        "go test ./a",
        "go test ./b",
    ];
    let records: Vec<Value> = lines
        .iter()
        .map(|line| call("1", "Bash", &json!({ "command": line })))
        .collect();
    assert_eq!(
        work(&records).commands,
        [
            "go test ./b",
            "pnpm --filter web test",
            "npm run test -- --watch=false",
            "npm run build",
            "python -m mypy src",
            "source .venv/bin/activate && python -m pytest -q",
        ]
    );
}

#[test]
fn what_was_used_last_stands_before_what_was_used_long_ago() {
    let mut records = Vec::new();
    for round in 0..60 {
        records.push(said(&format!(
            "Now file_{round:02}.rs with name_{round:02}x."
        )));
    }
    let report = work(&records);
    assert_eq!(report.files[0].path, "file_59.rs");
    assert_eq!(report.names[0], "name_59x");
    assert_eq!(report.files.len(), FILES);
    assert_eq!(report.names.len(), FREE_NAMES);
}

#[test]
fn a_command_stands_once_and_a_failure_until_it_works() {
    let run = |id: &str, line: &str| call(id, "Bash", &json!({ "command": line }));
    let mut records = vec![
        run("1", "cd /p && cargo test 2>&1 | tail"),
        result(
            "1",
            "test a ... ok\nerror: it broke\nmore",
            true,
            &json!({}),
        ),
        run("2", "make all"),
        result("2", "No rule", true, &json!({})),
        run("3", "cargo test"),
    ];
    let report = work(&records);
    // What failed is among the failures, however it is written.
    assert_eq!(report.commands, [""; 0]);
    assert_eq!(report.last_failure.as_ref().unwrap().call, "make all");
    assert_eq!(report.tried[0].lines, ["error: it broke"]);
    records.push(result("3", "ok", false, &json!({})));
    assert!(work(&records).tried.is_empty());
    assert_eq!(work(&records).commands, ["cargo test"]);
}

#[test]
fn the_last_paragraphs_are_the_assistant_s_own() {
    let report = work(&[
        json!({ "type": "user", "message": { "content": "a prompt" } }),
        said("one\n\ntwo\n\nthree"),
        said("four\n\nfive"),
    ]);
    assert_eq!(report.last_words, ["two", "three", "four", "five"]);
}

#[test]
fn the_latest_plan_stands_once() {
    let plan = "I'll do it in steps:\n\n1. read\n2. write\n3. test";
    let read = call("1", "Read", &json!({ "file_path": "/p/a.rs" }));
    let report = work(&[
        said("- a\n- b\n- c"),
        said(plan),
        said("Now reading."),
        read,
    ]);
    assert_eq!(report.plan.as_deref(), Some(plan));
    assert_eq!(report.last_words, ["- a\n- b\n- c", "Now reading."]);
}

#[test]
fn a_report_is_no_plan_and_a_plan_lasts_as_long_as_its_request() {
    let list = said("Next steps:\n\n- read\n- write\n- test");
    let asked = |text: &str| json!({ "type": "user", "message": { "content": text } });
    let ran = call("2", "Bash", &json!({ "command": "make" }));
    let report = work(&[ran.clone(), ok("2", ""), list.clone()]);
    assert_eq!(report.plan, None);
    assert!(shown(&report).contains("agent: Next steps:\n    - read\n"));
    let planned = [asked("Port it"), list.clone(), ran.clone()];
    for (prompt, lasts) in [("go ahead", true), ("Now the docs", false)] {
        let then = [ok("2", ""), said("Done."), asked(prompt)];
        let report = work(&[&planned[..], &then].concat());
        assert_eq!(report.plan.is_some(), lasts, "{prompt}");
    }
    let waited = json!({ "type": "attachment", "attachment": { "type": "queued_command", "prompt": "also the docs" } });
    let report = work(&[&planned[..], &[waited]].concat());
    assert!(report.plan.is_some(), "the request is not answered yet");
    let put = call("3", "ExitPlanMode", &json!({ "plan": "Only this." }));
    let report = work(&[put, ok("3", ""), list, ran]);
    assert_eq!(report.plan.as_deref(), Some("Only this."));
}

#[test]
fn signals_are_neither_plan_nor_last_words() {
    let report = work(&[
        said(
            "I'll go on with the parser.\n\nDONE: read it\n- TODO: test_parser\n- TODO: b\n- DECISION: c | d",
        ),
        said("SCRATCHPAD:\n## Next steps\n- a\n- b\n- c"),
    ]);
    assert_eq!(report.plan, None);
    assert_eq!(report.last_words, ["I'll go on with the parser."]);
    assert_eq!(report.names, ["test_parser"]);
}

#[test]
fn a_flood_is_bounded_and_the_same_lines_give_the_same_report() {
    let flood: Vec<Value> = (0..40)
        .map(|round| {
            let names = (0..1_000).map(|n| format!("flood_{round}_{n}"));
            said(&names.collect::<Vec<_>>().join(" "))
        })
        .collect();
    let mut one = Work::default();
    for record in &flood {
        one.take_record(record);
    }
    assert!(one.names.len() <= KEPT + 1_000);
    assert_eq!(one.report(), work(&flood));
}

#[test]
fn hostile_records_change_nothing() {
    for record in [
        json!(null),
        json!({ "type": "user", "message": { "content": [{ "type": "tool_result", "tool_use_id": 7 }] } }),
        json!({ "type": "assistant", "message": { "content": [{ "type": "tool_use", "id": [], "name": {}, "input": [] }] } }),
        json!({ "type": "assistant", "isSidechain": true, "message": { "content": "some_name" } }),
    ] {
        assert!(work(&[record]).is_empty());
    }
}

const UNWANTED: &str = "The user doesn't want to proceed with this tool use. The tool use was rejected (eg. if it was a file \
    edit, the new_string was NOT written to the file).";

/// Calls that did not run, each with its tool, its result, the client's stamp and the name of the outcome.
const DENIED: [(&str, &str, &str, &str); 11] = [
    (
        "Bash",
        crate::denial::REFUSED_ELSEWHERE,
        "permission-rule",
        "Refused",
    ),
    (
        "Edit",
        "$ To tell you how to proceed, the user said:\nbehalte alte_spalte",
        "user-rejected",
        "Refused",
    ),
    ("Edit", "$ STOP what you are doing", "", "Refused"),
    ("Write", "$ STOP what you are doing", "", "Refused"),
    ("mcp__db__query", "$", "user-rejected", "Refused"),
    (
        "Bash",
        "Permission to use Bash with command sign_it has been denied.",
        "",
        "Blocked",
    ),
    (
        "Bash",
        "PreToolUse:Bash hook error: [guard.py]: no_force_push",
        "",
        "Blocked",
    ),
    (
        "Bash",
        "Permission for this action was denied by the classifier. Reason: [force_push].",
        "automode-blocked",
        "Blocked",
    ),
    ("Bash", "never_push_here", "permission-rule", "Blocked"),
    (
        "Edit",
        "<tool_use_error>Sibling tool call errored</tool_use_error>",
        "",
        "Skipped",
    ),
    (
        "Bash",
        "[Tool call skipped: the turn ended before it ran.]",
        "cancelled",
        "Skipped",
    ),
];

#[test]
fn a_call_that_did_not_run_is_no_failure_and_names_nothing() {
    let input = json!({"file_path": "/p/new.rs", "old_string": "x", "new_string": "parse_all", "content": "parse_all"});
    let push = json!({"command": "git push --force"});
    for (tool, text, stamp, outcome) in DENIED {
        let input = if matches!(tool, "Edit" | "Write") {
            &input
        } else {
            &push
        };
        let mut end = failed("1", &text.replace('$', UNWANTED));
        end["toolDenialKind"] = Some(stamp).filter(|stamp| !stamp.is_empty()).into();
        let left = work(&[call("1", tool, input), end]);
        assert!(
            format!("{:?}", left.steps).contains(outcome),
            "{text}: {left:?}"
        );
        let nothing = WorkAtHand {
            steps: left.steps.clone(),
            references: left.references.clone(),
            is_in_turn: true,
            tried: left.tried.clone(),
            ..WorkAtHand::default()
        };
        assert_eq!(left, nothing, "{text}");
        // The next session must not ask for it again.
        let line = left.tried.first().map_or("", |one| one.lines[0].as_str());
        let has_reason = ["Refused", "Blocked"].contains(&outcome);
        assert_eq!(denial_reason(line).is_some(), has_reason, "{text}: {line}");
    }
    let running = format!(
        "{UNWANTED} Correction to the text above: this call was stopped while running, not refused."
    );
    for text in ["[Request interrupted by user for tool use]", &running] {
        let left = work(&[call("1", "Bash", &push), failed("1", text)]);
        assert!(left.last_failure.is_none() && left.names.is_empty());
        // It did run.
        assert_eq!(left.commands, ["git push --force"]);
    }
}

#[test]
fn a_call_that_was_stopped_while_it_ran_was_not_refused() {
    let outcome = |version: &str, fields: Value| {
        let mut end = failed("1", &format!("{UNWANTED} STOP what you are doing"));
        end["toolDenialKind"] = json!("user-rejected");
        end["version"] = json!(version);
        end.as_object_mut()
            .unwrap()
            .extend(fields.as_object().unwrap().clone());
        let left = work(&[call("1", "Bash", &json!({"command": "make migrate"})), end]);
        let was_tried = !left.tried.is_empty();
        let steps = format!("{:?}", left.steps);
        assert_ne!(was_tried, steps.contains("Stopped"), "{steps}");
        assert_eq!(was_tried, steps.contains("Refused"), "{steps}");
        was_tried
    };
    for (version, fields, refused) in [
        ("2.1.332", json!({}), false),
        ("2.1.331", json!({"toolDenialEndsTurn": true}), false),
        ("2.2.0-beta.1", json!({}), false),
        ("2.1.332", json!({"toolDenialBeforeRun": true}), true),
        (
            "3.0.1",
            json!({"permissionDecision": {"decision": "reject"}}),
            true,
        ),
        (
            "2.1.332",
            json!({"userFeedback": "use the other base"}),
            true,
        ),
        // It does not say whether the call ran.
        ("2.1.330", json!({}), true),
        ("", json!({}), true),
    ] {
        assert_eq!(outcome(version, fields), refused, "{version}");
    }
}

#[test]
fn a_tool_of_someone_else_cannot_claim_that_the_human_refused_it() {
    let result = failed("1", UNWANTED);
    let report = work(&[call("1", "mcp__x__run", &json!({"sql": "x"})), result]);
    assert!(format!("{:?}", report.steps).contains("Failed"));
}

#[test]
fn the_client_s_own_errors_name_nothing() {
    for (tool, error) in [
        (
            "Edit",
            "<tool_use_error>InputValidationError: Edit failed: the required parameter `old_string` is missing</tool_use_error>",
        ),
        (
            "Write",
            "<tool_use_error>File has not been read yet. Set file_path first.</tool_use_error>",
        ),
        (
            "Bash",
            "<tool_use_error>Error: No such tool available: run_it_all</tool_use_error>",
        ),
    ] {
        let input = json!({"file_path": "/p/a.rs", "command": "x"});
        let report = work(&[call("1", tool, &input), failed("1", error)]);
        assert_eq!(report.names, [""; 0], "{error}");
        let failure = report.last_failure.unwrap_or_default();
        assert!(
            !failure.lines.concat().contains("tool_use_error"),
            "{failure:?}"
        );
    }
}

#[test]
fn the_plan_is_the_one_that_the_human_approved() {
    let propose = |id: &str, plan: &str| call(id, "ExitPlanMode", &json!({ "plan": plan }));
    let refused = failed(
        "1",
        &format!("{UNWANTED} To tell you how to proceed, the user said:\nsmaller"),
    );
    let approved = result(
        "2",
        "User has approved your plan.",
        false,
        &json!({"plan": "smaller, with tests"}),
    );
    let records = [
        propose("1", "big"),
        refused,
        propose("2", "smaller"),
        approved,
    ];
    let first = work(&records[..2]).plan.unwrap_or_default();
    assert_eq!(first, format!("{REFUSED_PLAN}\n\nbig"));
    assert_eq!(work(&records[..3]).plan.as_deref(), Some("smaller"));
    assert_eq!(work(&records).plan.as_deref(), Some("smaller, with tests"));
}

#[test]
fn a_path_at_which_there_is_no_file_is_none() {
    let read = |path: &str| call("1", "Read", &json!({ "file_path": path }));
    for error in [
        "<tool_use_error>File does not exist. Did you mean b.rs?</tool_use_error>",
        "File does not exist. Current working directory: /p",
        "EISDIR: illegal operation on a directory, read '/p/a.rs'",
    ] {
        let report = work(&[read("/p/a.rs"), failed("1", error)]);
        assert_eq!(report.files.len(), 0, "{error}");
    }
    let known = work(&[
        said("Now src/a.rs."),
        read("/p/src/a.rs"),
        failed("1", "File content (85812 tokens) exceeds maximum"),
    ]);
    assert_eq!(known.files[0].path, "src/a.rs");
}

#[test]
fn the_end_of_a_path_with_a_blank_means_that_file() {
    for path in [
        "docs/new file.txt",
        "Übersicht der Fälle.md",
        "my app/src/main.rs",
    ] {
        let tail = path.rsplit(' ').next().unwrap_or_default();
        let mut work = Work::default();
        for text in [format!("see \"{path}\""), format!("again: {tail}")] {
            work.take_record(&said(&text));
            wrote(&mut work, "/p", &format!("/p/{path}"));
        }
        assert_eq!(paths(&work), [path]);
    }
}

#[test]
fn the_client_s_files_and_ids_of_background_work_are_not_the_work_s() {
    let output = "/tmp/claude-1000/-p/tasks/b7636e2.output";
    let started = format!(
        "Command running in background with ID: b7636e2. Output is being written to: {output}"
    );
    let report = work(&[
        call(
            "1",
            "Bash",
            &json!({"command": "npm run dev", "run_in_background": true}),
        ),
        result(
            "1",
            &started,
            false,
            &json!({"backgroundTaskId": "b7636e2"}),
        ),
        call("2", "TaskOutput", &json!({"task_id": "b7636e2"})),
        ok("2", "ready"),
        call("3", "Read", &json!({"file_path": output})),
        ok("3", "ready"),
        call(
            "4",
            "Task",
            &json!({"prompt": "look", "subagent_type": "web_reader"}),
        ),
        ok(
            "4",
            "Seen.\nagentId: a881341 (for resuming)\n<usage>total_tokens: 9</usage>",
        ),
        call("5", "Agent", &json!({"prompt": "go on"})),
        result(
            "5",
            "Async agent launched successfully. (Never quote it, including the agentId below.)\nagentId: a88 (Use SendMessage)\n\
             Do NOT read this file: you'll get a completion notification.\n\n<system-reminder>\nfew are left\n</system-reminder>",
            false,
            &json!({"isAsync": true}),
        ),
    ]);
    let steps = format!("{:?}", report.steps);
    assert_eq!(steps.matches("(in the background)").count(), 2, "{steps}");
    assert!(
        ["Never", "notification", "reminder", "agentId"]
            .iter()
            .all(|word| !steps.contains(word)),
        "{steps}"
    );
    assert_eq!((report.files, report.names), (vec![], vec![]));
    assert_eq!(report.references, ["branch topic"]);
    let todo = json!({"todos": [{"content": "x", "status": "in_progress"}]});
    for (tool, input) in [
        ("TodoWrite", todo),
        (
            "TaskUpdate",
            json!({"taskId": "1", "status": "in_progress"}),
        ),
        (
            "Grep",
            json!({"pattern": "x", "output_mode": "files_with_matches"}),
        ),
    ] {
        assert_eq!(work(&[call("1", tool, &input)]).names, [""; 0], "{tool}");
    }
}

#[test]
fn a_search_names_its_place_by_its_path_from_here() {
    for (path, steps) in [
        ("/p/src", "Grep x\n    path: src\n    glob: *.c\n"),
        ("/p/", "Grep x\n    glob: *.c\n"),
        ("/p", "Grep x\n    glob: *.c\n"),
        ("lib", "Grep x\n    path: lib\n    glob: *.c\n"),
        ("/q/src", "Grep x\n    path: /q/src\n    glob: *.c\n"),
    ] {
        let search = json!({"pattern": "x", "path": path, "glob": "*.c"});
        let report = work(&[call("1", "Grep", &search), ok("1", "")]);
        assert_eq!(shown(&report), steps, "{path}");
    }
}

#[test]
fn a_file_that_only_an_output_names_is_not_at_hand() {
    for (tool, input, output) in [
        (
            "Glob",
            json!({"pattern": "*"}),
            "/p/src/my module/a.c\nNo more files in src/b.c",
        ),
        (
            "Grep",
            json!({"pattern": "x"}),
            "/p/src/a.c:12:load_frame()",
        ),
        ("Bash", json!({"command": "make"}), "FAILED src/a.c:3"),
    ] {
        let report = work(&[call("1", tool, &input), ok("1", output)]);
        assert!(report.files.is_empty(), "{tool}: {report:?}");
        assert!(
            report.names.iter().any(|name| name.ends_with("/a.c")),
            "{tool}: {report:?}"
        );
    }
    let look = json!({"command": "sed -n 1,9p src/a.c"});
    let report = work(&[call("1", "Bash", &look), ok("1", "see src/b.c")]);
    let files: Vec<&str> = report.files.iter().map(|file| file.path.as_str()).collect();
    assert_eq!(files, ["src/a.c"]);
}

#[test]
fn the_steps_have_what_the_human_said_in_mid_turn_where_the_agent_reads_it() {
    let waited = |prompt: &str| json!({"type": "attachment", "attachment": {"type": "queued_command", "prompt": prompt}});
    let asked = json!({"questions": [], "answers": {"Which base?": "SQLite"}});
    let long = "Your questions have been answered";
    let steps = work(&[
        call("1", "Bash", &json!({"command": "make"})),
        ok("1", "ok"),
        waited("auch die Doku"),
        waited("<task-notification>x</task-notification>"),
        call(
            "2",
            "AskUserQuestion",
            &json!({"questions": [{"question": "Which base?"}]}),
        ),
        result("2", long, false, &asked),
    ])
    .steps;
    let steps = format!("{steps:?}");
    assert!(
        steps.contains("human: auch die Doku") && steps.contains("SQLite (asked: Which base?)"),
        "{steps}"
    );
    assert!(
        !steps.contains("task-notification") && !steps.contains(long),
        "{steps}"
    );
}

#[test]
fn the_steps_have_what_a_task_in_the_background_reported() {
    let notice = |summary: &str, rest: &str| {
        format!(
            "<task-notification>\n<task-id>a</task-id>\n<summary>{summary}</summary>\n{rest}</task-notification>"
        )
    };
    let agent = notice(
        "Agent \"look\" finished",
        "<note>It may notify again.</note>\n<result>The lock is in src/lock.rs.\nSee take_lock, not <result>.</result>\n<usage>9</usage>",
    );
    let shell = notice("Background command \"tests\" failed with exit code 2", "");
    let report = work(&[
        json!({"type": "attachment", "attachment": {
            "type": "queued_command", "prompt": agent, "origin": {"kind": "task-notification"},
        }}),
        json!({"type": "user", "origin": {"kind": "task-notification"}, "message": {"content": shell}}),
        json!({"type": "user", "message": {"content": notice("Monitor event: \"log\"", "<event>503 again</event>\n")}}),
        json!({"type": "system", "subtype": "scheduled_task_fire", "content": "Running scheduled task (Nov 30 5:58am)", "prompt": "check the build"}),
        // What a person typed is theirs.
        json!({"type": "user", "origin": {"kind": "human"}, "message": {"content": notice("Agent \"x\" finished", "")}}),
    ]);
    assert_eq!(
        shown(&report),
        "report: Agent \"look\" finished\n    The lock is in src/lock.rs.\n    See take_lock, not <result>.\n\
         report: Background command \"tests\" failed with exit code 2\n\
         report: Monitor event: \"log\"\n    503 again\n\
         report: Running scheduled task (Nov 30 5:58am)\n    check the build\n",
    );
    assert!(report.files.is_empty());
}

#[test]
fn the_steps_have_what_the_human_ran_beside_the_agent() {
    let user = |text: &str| json!({"type": "user", "cwd": "/p", "message": {"content": text}});
    let digits = "0123456789".repeat(4);
    let report = work(&[
        user("<bash-input>git switch größe &&\n  make <x></bash-input>"),
        user(
            "<bash-stdout></bash-stdout><bash-stderr>/p/src/a.c:3: &lt;x&gt; is no name\n</bash-stderr>",
        ),
        said("I see."),
        user("<bash-input>true</bash-input>"),
        user(
            "<bash-stdout>(Bash completed with no output)</bash-stdout><bash-stderr></bash-stderr>",
        ),
        // Its output is no longer the last text of the shell mode.
        user("<bash-stdout>late</bash-stdout><bash-stderr></bash-stderr>"),
        user(&format!(
            "<bash-input>export TOKEN=ghp_{digits}</bash-input>"
        )),
    ]);
    let steps = shown(&report);
    let expected = "human: ! git switch größe &&\n      make <x>\n  printed:\n    src/a.c:3: <x> is no name\n\
                    agent: I see.\nhuman: ! true\nhuman: ! export TOKEN=";
    assert!(steps.starts_with(expected), "{steps}");
    assert!(
        !steps.contains("late") && !steps.contains("ghp_0"),
        "{steps}"
    );
    assert!(report.files.is_empty());
    // The next session reads them back.
    let mut next = Work::default();
    next.take_record(&user(&format!(
        "pitstop handoff · r · iteration 1 · 0\n\n## Last steps\n\n```\n{steps}```\n"
    )));
    assert_eq!(shown(&next.report()), steps);
}

#[test]
fn a_file_that_a_tool_has_used_is_no_other_one_of_its_name() {
    for (first, second) in [
        ("src/main.rs", "main.rs"),
        ("docs/README.md", "README.md"),
        ("my app/src/a.ts", "src/a.ts"),
    ] {
        let mut work = Work::default();
        for path in [first, second] {
            wrote(&mut work, "/p", &format!("/p/{path}"));
        }
        work.take_record(&said(&format!("Both {first} and {second} are done.")));
        let mut both = [first, second];
        both.sort_unstable();
        assert_eq!(paths(&work), both);
        assert!(work.report().files.iter().all(|file| file.changed));
    }
}

#[test]
fn a_plan_is_one_in_the_human_s_language() {
    for text in [
        "План:\n\n1. Исправить лексер\n2. Обновить тесты\n3. Закоммитить",
        "接下来的步骤：\n\n1、写测试\n2、改代码\n3、提交",
        "Ich werde so vorgehen:\n\n1) Lexer\n2) Tests\n3) Commit",
        "次に:\n\n- レクサー\n- テスト\n- コミット",
    ] {
        let read = call("1", "Read", &json!({ "file_path": "/p/a.rs" }));
        assert_eq!(work(&[said(text), read]).plan.as_deref(), Some(text));
    }
}

#[test]
fn the_line_that_tells_what_went_wrong_is_found_in_the_human_s_language() {
    for line in [
        "错误：文件不存在",
        "Ошибка: нет файла",
        "エラー: ファイルがありません",
    ] {
        let printed = format!("{line}\n{}", "more\n".repeat(9));
        let report = work(&[
            call("1", "Bash", &json!({"command": "x"})),
            failed("1", &printed),
        ]);
        assert_eq!(report.last_failure.unwrap_or_default().lines, [line]);
    }
}

#[test]
fn a_file_of_a_shell_line_is_named_whole_whatever_is_in_its_name() {
    for (line, names) in [
        (
            "cat \"new file.txt\" | grep a.rs",
            &["new file.txt", "a.rs"][..],
        ),
        (
            "head -5 docs/my\\ notes/first\\ draft.md",
            &["docs/my notes/first draft.md"],
        ),
        ("cd x && cp 'Übersicht Q3.csv' out/", &["Übersicht Q3.csv"]),
        (
            "cat 设计.md; wc -l \"итог года.md\"",
            &["итог года.md", "设计.md"],
        ),
        (
            "sudo git mv \"old name.rs\" 'new name.rs'",
            &["new name.rs", "old name.rs"],
        ),
        ("make 2> 'build log.txt'", &["build log.txt"]),
        (
            "cat > \"a b.md\" <<'EOF'\ncat 'c d.md'\nEOF",
            &["a b.md", "d.md"],
        ),
        // A sentence is no file.
        (
            "git commit -m \"fix parser.rs\" && echo 'see it.md'",
            &["it.md", "parser.rs"],
        ),
        (
            "bash -c \"cat file.txt\" && cat \"$HOME/a b.md\"",
            &["b.md", "file.txt"],
        ),
    ] {
        let mut work = Work::default();
        work.take_record(&call("1", "Bash", &json!({"command": line})));
        let mut names = names.to_vec();
        names.sort_unstable();
        assert_eq!(paths(&work), names, "{line}");
    }
    // The bare name in a later text means the same file.
    let report = work(&[
        call("1", "Bash", &json!({"command": "cat 'new file.txt'"})),
        said("I have read file.txt."),
    ]);
    assert_eq!(report.files.len(), 1, "{report:?}");
}

#[test]
fn a_call_without_a_file_that_failed_is_the_last_failure_until_it_works() {
    for (tool, input, name) in [
        (
            "mcp__tracker__search",
            json!({"query": "crash"}),
            "mcp__tracker__search crash",
        ),
        (
            "WebFetch",
            json!({"url": "https://a.example/x"}),
            "WebFetch https://a.example/x",
        ),
        ("Skill", json!({"skill": "deploy"}), "Skill deploy"),
    ] {
        let failed = [call("1", tool, &input), failed("1", "timed out")];
        let report = work(&failed);
        assert_eq!(
            report.last_failure.map(|one| one.call).as_deref(),
            Some(name)
        );
        let worked = [call("2", tool, &input), ok("2", "3 hits")];
        let report = work(&[failed, worked].concat());
        assert!(report.last_failure.is_none() && report.tried.is_empty());
    }
}

#[test]
fn a_call_that_was_not_allowed_is_told_after_reboots_and_until_it_is_allowed() {
    let push = json!({"command": "git push --force"});
    let mut end = failed("1", "Permission to use Bash has been denied.");
    end["toolDenialKind"] = "permission-rule".into();
    let failed = [
        call("0", "Bash", &json!({"command": "make"})),
        failed("0", "error: x"),
    ];
    let report = work(&[&failed[..], &[call("1", "Bash", &push), end]].concat());
    assert_eq!(
        report.last_failure.as_ref().map(|one| one.call.as_str()),
        Some("make")
    );
    assert_eq!(report.tried[0].call, "git push --force");
    let line = "not allowed: Permission to use Bash has been denied.";
    assert_eq!(report.tried[0].lines, [line]);
    // As a list and as a step of the handoff.
    let list = format!("{TRIED_HEADING}\n\n- `git push --force`: {line}\n");
    let step = "## Last steps\n\n```\n$ git push --force\n  not allowed:\n    Permission to use Bash has been denied.\n```\n";
    for section in [list.as_str(), step] {
        let handoff =
            format!("pitstop handoff \u{b7} r \u{b7} iteration 1 \u{b7} 0a1b2c3d\n\n{section}");
        let human = json!({"type": "user", "message": {"content": handoff}});
        let report = work(std::slice::from_ref(&human));
        assert!(
            report.last_failure.is_none() && report.commands.is_empty(),
            "{report:?}"
        );
        assert_eq!(report.tried[0].lines, [line]);
        let allowed = [human, call("2", "Bash", &push), ok("2", "ok")];
        assert!(work(&allowed).tried.is_empty());
    }
}
