//! What the real client does, as it is seen: its dialogs stay unanswered, its background work is waited for, and its own
//! words are not taken for the human's.

use std::{
    fs,
    time::{Duration, Instant},
};

use serde_json::{Value, json};

use crate::kit::{
    client::{is_at_least, live_client},
    messages_api::{Answer, user_texts},
    supervisor::{Headless, Launch, SOON, Supervisor, key, session_of},
};

/// How long a run with the client's own pauses may take: a wake-up comes after one to two minutes.
const RUN: Duration = Duration::from_secs(480);

const PROMISE: &str = "ALL DONE";

/// A client in auto mode, whose check the stand-in API does not serve: it asks at the first risky call.
fn auto_mode() -> Launch {
    let launch = Launch::live_without_mode()
        .agent_args(["--permission-mode", "auto", "--model", "claude-sonnet-5"])
        .set("summary.generate_summaries=false");
    // Outside the project: within it, auto mode needs no check.
    let file = launch.the_home().path("touched");
    let touch = Answer::shell(&format!("touch {}", file.display()));
    launch.api().answer([touch.clone(), touch]);
    launch
}

/// Whether the call that the dialog is about was made.
fn is_touched(launch: &Launch) -> bool {
    launch.the_home().path("touched").exists()
}

fn run(launch: Launch) -> Launch {
    launch
        .order(["--task", "Touch the file", "--until", PROMISE])
        .order(["--headless", "--json"])
}

fn of_kind<'a>(lines: &'a [Value], event: &str) -> Vec<&'a Value> {
    lines.iter().filter(|one| one["event"] == event).collect()
}

#[track_caller]
fn ended(launch: &Launch) -> (Option<i32>, Headless) {
    let mut run = launch.start_headless();
    (run.wait_for_exit(RUN), run)
}

#[test]
#[ignore = "live: needs PITSTOP_CLAUDE"]
fn auto_modes_dialog_stays_unanswered_through_a_headless_run_that_ends_with_the_reason() {
    let launch = run(auto_mode());
    let (code, run) = ended(&launch);
    let lines = run.events();
    assert_eq!(code, Some(4), "{lines:#?}");
    let tripped = of_kind(&lines, "tripped");
    assert_eq!(tripped[0]["breaker"], "dialog", "{lines:#?}");
    let evidence = tripped[0]["evidence"].as_str().unwrap();
    assert!(evidence.contains("can't check actions"), "{evidence}");
    assert!(!is_touched(&launch), "the dialog was answered");
    assert_eq!(launch.api().main_calls().len(), 1, "{lines:#?}");
    assert_eq!(of_kind(&lines, "prompted").len(), 0, "{lines:#?}");
}

#[test]
#[ignore = "live: needs PITSTOP_CLAUDE"]
fn past_the_compact_line_no_reboot_goes_ahead_under_auto_modes_dialog() {
    let launch = auto_mode()
        .set("context.window=200000")
        .set("reboot.mode=\"auto\"")
        .set("reboot.auto_delay=\"100ms\"")
        .set("reboot.typing_quiet=\"100ms\"");
    launch.api().report_usage([170_000]);
    let supervisor = launch.start_idle();
    supervisor.prompt("touch it");
    supervisor.wait_for_text("can't check actions", SOON);
    // At first no hook speaks of it, and the bridge does not know what it is about.
    let open = |status: &Value| {
        let reason = status["agent"]["reason"].as_str().unwrap_or_default();
        reason.contains("prompt box") || reason.contains("by the bridge")
    };
    supervisor.wait_for_status(open);
    let blocked = |status: &Value| {
        let reason = status["agent"]["reason"].as_str().unwrap_or_default();
        let reboot = &status["reboot"];
        // Armed, or on the fly at the agent's next step: that comes behind the dialog.
        let waits = reboot["phase"] == "armed" || reboot["way"] == "on-the-fly";
        reason.contains("check") && waits && reboot["blocked_by"] == json!(["dialog"])
    };
    let status = supervisor.wait_for_status(blocked);
    let said = String::from_utf8(supervisor.run(&["status"]).stdout).unwrap();
    assert!(said.contains("asks you: Auto mode can't check"), "{said}");
    assert_eq!(
        (status["iteration"].as_u64(), is_touched(&launch)),
        (Some(1), false)
    );

    // The human stays in auto mode, and approves each call that needs the check: another dialog.
    supervisor.keys([key::ENTER]);
    supervisor.wait_for_text("touch ", SOON);
    let open = |status: &Value| {
        let state = status["agent"]["state"].as_str().unwrap_or_default();
        state == "dialog" || state == "unknown"
    };
    let status = supervisor.wait_for_status(open);
    assert_eq!(
        (status["iteration"].as_u64(), is_touched(&launch)),
        (Some(1), false)
    );
    // Denied: the turn is over, and the moment is safe.
    supervisor.keys([key::ESC]);
    supervisor.wait_for_iteration(2, SOON);
    assert!(!is_touched(&launch));
}

/// A dialog that the human has opened, of which no hook speaks.
#[test]
#[ignore = "live: needs PITSTOP_CLAUDE"]
fn a_list_that_the_human_has_opened_is_no_safe_moment() {
    let launch = Launch::live()
        .set("reboot.mode=\"manual\"")
        .agent_args(["--model", "claude-sonnet-4-5"]);
    let supervisor = launch.start_idle();
    supervisor.prompt("/model");
    supervisor.wait_for_text("Select model", SOON);
    supervisor.wait_for_state("unknown", SOON);
    if is_at_least(287) {
        let known = |status: &Value| {
            let reason = status["agent"]["reason"].as_str().unwrap_or_default();
            reason.contains("by the bridge")
        };
        supervisor.wait_for_status(known);
    }
    let (code, said) = supervisor.ctl("reboot");
    assert_eq!(code, 0, "{said}");
    supervisor.ctl("approve");
    supervisor.wait_for_phase("waiting", SOON);
    // The bridge knows what it is.
    let why = if is_at_least(287) {
        "dialog"
    } else {
        "unknown"
    };
    let blocked = |status: &Value| status["reboot"]["blocked_by"] == json!([why]);
    supervisor.wait_for_status(blocked);
    supervisor.keys([key::ESC]);
    supervisor.wait_for_iteration(2, SOON);
}

fn tool(name: &str, input: Value) -> Answer {
    Answer::Tool {
        name: name.to_owned(),
        input,
    }
}

/// A run that leaves something behind and waits for it goes on to its stop phrase; nothing was prompted meanwhile.
#[track_caller]
fn is_waited_for(launch: &Launch, named: &str) {
    let launch = launch
        .clone()
        .agent_args(["--model", "claude-sonnet-5"])
        .set("summary.generate_summaries=false")
        .set("loop.same_message_limit=1")
        .set("loop.no_change_limit=1");
    let launch = run(launch);
    let (code, run) = ended(&launch);
    let lines = run.events();
    assert_eq!(code, Some(0), "{lines:#?}\n{}", run.lines().join("\n"));
    let waited: Vec<_> = of_kind(&lines, "waiting");
    let is_named = |one: &&Value| {
        one["why"]
            .as_str()
            .is_some_and(|why| why.starts_with(named))
    };
    assert!(waited.iter().any(is_named), "{lines:#?}");
    assert_eq!(of_kind(&lines, "prompted").len(), 0, "{lines:#?}");
}

#[test]
#[ignore = "live: needs PITSTOP_CLAUDE"]
fn a_run_waits_for_a_subagent_in_the_background() {
    let launch = Launch::live();
    let agent = json!({
        "description": "Count", "prompt": "count the herons", "subagent_type": "general-purpose",
    });
    launch.api().answer([
        tool("Agent", agent),
        Answer::text("I wait for it."),
        Answer::text(PROMISE),
    ]);
    launch.api().answer_in(
        "count the herons",
        [Answer::shell("sleep 4"), Answer::text("Seven.")],
    );
    is_waited_for(&launch, "1 background agent");
    let calls = launch.api().main_calls();
    let reported = |call: &Value| {
        let texts = call["messages"].to_string();
        texts.contains("task-notification") && texts.contains("Seven.")
    };
    assert!(calls.iter().any(reported), "{calls:#?}");
}

#[test]
#[ignore = "live: needs PITSTOP_CLAUDE"]
fn a_run_waits_for_a_wake_up() {
    let launch = Launch::live();
    let wake_up = json!({ "delaySeconds": 60, "reason": "a build", "prompt": "look again" });
    launch.api().answer([
        tool("ScheduleWakeup", wake_up),
        Answer::text("I look again in a minute."),
        Answer::text(PROMISE),
    ]);
    let began = Instant::now();
    is_waited_for(&launch, "1 wake-up");
    eprintln!("with the wake-up: {:?}", began.elapsed());
}

/// What a script says, and a task that is changed while the run goes on, arrive in the human's own words.
#[test]
#[ignore = "live: needs PITSTOP_CLAUDE"]
fn what_is_typed_arrives_byte_for_byte_and_without_a_tag() {
    let launch = Launch::live()
        .set("reboot.mode=\"manual\"")
        .agent_args(["--model", "claude-sonnet-4-5"]);
    let supervisor = launch.start_idle();
    let line = "a line of some words that make it up to one hundred and seventy characters, so that twelve of them are two kilobytes in all, which is what a script may well have to say to it";
    let lines: Vec<_> = (0..12)
        .map(|number| format!("{number:02} {line}"))
        .collect();
    let text = lines.join("\n");
    assert!(text.len() > 2_000);
    says(&supervisor, &text);
    let task: Vec<_> = (0..64)
        .map(|number| format!("- [ ] {number:02} {}", &line[..72]))
        .collect();
    let task = task.join("\n");
    assert!(task.len() > 5_000);
    says(&supervisor, &task);
}

#[track_caller]
fn says(supervisor: &Supervisor, text: &str) {
    let launch = &supervisor.launch;
    let before = launch.api().main_calls().len();
    let output = supervisor.run_with_input(&["ctl", "say", "-"], text.as_bytes());
    assert!(output.status.success());
    let calls = launch.api().wait_for_calls(before + 1, SOON);
    assert_eq!(calls.len(), before + 1);
    assert_eq!(
        user_texts(&calls[before]).last().map(String::as_str),
        Some(text)
    );
    supervisor.wait_for_state("idle", SOON);
}

/// An unsent prompt of three lines stands, unsent, in the next session's prompt box.
#[test]
#[ignore = "live: needs PITSTOP_CLAUDE"]
fn an_unsent_prompt_goes_over_into_the_next_session() {
    let launch = Launch::live().set("reboot.mode=\"manual\"");
    launch
        .api()
        .answer((0..4).map(|n| Answer::text(&format!("Answer {n}."))));
    let supervisor = launch.start_idle();
    supervisor.turn("begin", "Answer 0.");
    let rest = "and the lexer, with words enough that the client has to break the line somewhere in the middle of it, twice even: \
        one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen";
    supervisor.keys([
        "\x1b[200~fix the parser\n",
        rest,
        "\nthen run the tests\x1b[201~",
    ]);
    supervisor.wait_for_text("then run the tests", SOON);
    let calls = launch.api().main_calls().len();
    supervisor.keys([key::F5]);
    supervisor.wait_for_text("Your unsent prompt goes over, unsent (3 lines): fix", SOON);
    supervisor.keys([key::ENTER]);
    supervisor.wait_for_iteration(2, SOON);
    supervisor.wait_for_text("your unsent prompt stands", SOON);
    supervisor.wait_for_text("❯\u{a0}fix the parser", SOON);
    // Nothing was submitted but the handoff; and then all of it, as it was written.
    supervisor.wait_for_state("idle", SOON);
    assert_eq!(launch.api().main_calls().len(), calls + 1);
    supervisor.keys([key::ENTER]);
    let submitted = || launch.api().main_calls().len() == calls + 2;
    supervisor.wait_until("the draft is submitted", submitted);
    let texts = user_texts(&launch.api().main_calls()[calls + 1]);
    let wanted = format!("fix the parser\n{rest}\nthen run the tests");
    assert!(texts.contains(&wanted), "{texts:?}");
}

/// A second client resumes the session, as in another window: its turn is in the transcript, and no hook speaks of it.
#[test]
#[ignore = "live: needs PITSTOP_CLAUDE"]
fn a_session_that_another_client_goes_on_with_is_shown_so_until_a_prompt_is_given_here() {
    let launch = Launch::live().set("reboot.mode=\"manual\"");
    let answers = (0..3).map(|n| Answer::text(&format!("Answer {n}.")));
    launch.api().answer(answers);
    let supervisor = launch.start_idle();
    supervisor.prompt("begin");
    supervisor.wait_for_text("Answer 0.", SOON);
    let status = supervisor.wait_for_state("idle", SOON);
    let other = std::process::Command::new(live_client())
        .args(["-p", "--resume", &session_of(&status), "go on"])
        .env_clear()
        .envs(launch.environment())
        .current_dir(launch.project())
        .stdin(std::process::Stdio::null())
        .output()
        .expect("the second client runs");
    assert!(other.status.success(), "{other:?}");
    let status = supervisor.wait_for_state("elsewhere", SOON);
    let reason = status["agent"]["reason"].as_str().unwrap_or_default();
    assert!(reason.contains("another process"), "{reason}");
    supervisor.wait_for_text("resumed elsewhere", SOON);
    supervisor.turn("and here", "Answer 2.");
}

/// Two turns that decide, and the client's own rewind takes the second one back.
#[test]
#[ignore = "live: needs PITSTOP_CLAUDE"]
fn what_was_decided_behind_a_rewind_is_in_no_handoff() {
    let launch = Launch::live().set("summary.generate_summaries=false");
    launch.api().answer([
        Answer::text("It is so.\nDECISION: use sqlite | one file"),
        Answer::text("Then so.\nDECISION: use redis | fast\nTODO: start a server"),
        Answer::text("As you say.\nDECISION: no cache | simple"),
    ]);
    let supervisor = launch.start_idle();
    for (prompt, answer) in [
        ("Always count the herons", "It is so."),
        ("Never count the storks", "Then so."),
    ] {
        supervisor.turn(prompt, answer);
    }
    let has = |needle: &str| supervisor.handoff_text().contains(needle);
    supervisor.wait_until("it is decided", || has("use redis") && has("storks"));
    supervisor.rewind(1, "Then so.");
    // It is unsent again, and nothing else of the turn is left.
    supervisor.wait_until("it is taken back at once", || !has("use redis"));
    assert!(has("use sqlite") && !has("start a server"));
    supervisor.keys([key::CTRL_U]);
    supervisor.turn("Always count the egrets", "As you say.");
    // The client may write its transcript behind the turn.
    supervisor.wait_until("it is taken back", || !has("redis"));
    supervisor.wait_until("it is decided anew", || has("no cache"));
    let text = supervisor.handoff_text();
    for kept in ["use sqlite", "herons", "egrets"] {
        assert!(text.contains(kept), "{kept}: {text}");
    }
    for gone in ["redis", "storks", "start a server"] {
        assert!(!text.contains(gone), "{gone}: {text}");
    }
}

/// The client names the end of the old conversation as the parent of the prompt that begins the new one.
#[test]
#[ignore = "live: needs PITSTOP_CLAUDE"]
fn what_a_rewind_to_the_beginning_took_back_is_not_read_after_a_crash() {
    let launch = Launch::live().set("summary.generate_summaries=false");
    launch.api().answer([
        Answer::text("Then so.\nDECISION: use redis | fast"),
        Answer::text("Now it runs.\nTODO: start a server"),
        Answer::text("As you say.\nDECISION: no cache | simple"),
    ]);
    let supervisor = launch.start_idle();
    for (prompt, answer) in [
        ("Never count the storks", "Then so."),
        ("Count the gulls", "Now it runs."),
    ] {
        supervisor.turn(prompt, answer);
    }
    supervisor.rewind(2, "Then so.");
    supervisor.keys([key::CTRL_U]);
    supervisor.turn("Always count the egrets", "As you say.");
    let is_read = |supervisor: &Supervisor| {
        let text = supervisor.handoff_text();
        let has = |word| text.contains(word);
        ["no cache", "egrets"].into_iter().all(has)
            && !["redis", "storks", "gulls", "start a server"]
                .into_iter()
                .any(has)
    };
    supervisor.wait_until("it is taken back", || is_read(&supervisor));
    let session = session_of(&supervisor.status());
    let launch = supervisor.kill().agent_args(["--resume", &session]);
    let supervisor = launch.start_showing("As you say.");
    supervisor.wait_for_state("idle", SOON);
    supervisor.wait_until("it is read so", || is_read(&supervisor));
}

/// `--fork-session` and `/branch` go on in the pane, under a new id, and nothing of them is in the client's daemon.
#[test]
#[ignore = "live: needs PITSTOP_CLAUDE"]
fn a_fork_and_a_branch_are_followed_in_the_pane() {
    let launch = Launch::live().set("summary.generate_summaries=false");
    let answers = (0..3).map(|n| Answer::text(&format!("Answer {n}.")));
    launch.api().answer(answers);
    let supervisor = launch.start_idle();
    supervisor.turn("Count the herons", "Answer 0.");
    let first = session_of(&supervisor.status());
    let forks = ["--resume", &first, "--fork-session"];
    let launch = supervisor.kill().agent_args(forks);
    let supervisor = launch.start_showing("Answer 0.");
    let is_new = |status: &Value, before: &str| {
        status["agent"]["state"] == "idle" && session_of(status) != before
    };
    let status = supervisor.wait_for_status(|status| is_new(status, &first));
    let forked = session_of(&status);
    supervisor.turn("Count the storks", "Answer 1.");
    assert_eq!(session_of(&supervisor.status()), forked);
    supervisor.prompt("/branch");
    let status = supervisor.wait_for_status(|status| is_new(status, &forked));
    assert_ne!(session_of(&status), first);
    supervisor.turn("Count the gulls", "Answer 2.");
    let said = ["herons", "storks", "gulls"];
    supervisor.wait_until("all of it is read", || {
        let text = supervisor.handoff_text();
        said.iter().all(|word| text.contains(word))
    });
    assert_eq!(supervisor.status()["iteration"], 1);
    supervisor.quit();
    supervisor.wait_for_exit(SOON);
    assert!(!supervisor.screen().contains("in the background"));
}

/// A client that meets its home for the first time: it asks about the project, and then about the key.
fn at_its_first_start() -> Launch {
    let launch = Launch::live();
    let file = launch.the_home().path(".claude.json");
    let text = fs::read_to_string(&file).unwrap();
    let mut known: Value = serde_json::from_str(&text).unwrap();
    known["projects"] = json!({});
    known["customApiKeyResponses"] = json!({ "approved": [], "rejected": [] });
    fs::write(&file, known.to_string()).unwrap();
    launch
}

#[test]
#[ignore = "live: needs PITSTOP_CLAUDE"]
fn the_dialogs_before_the_first_prompt_box_are_questions_one_after_another() {
    let launch = at_its_first_start();
    let supervisor = launch.start();
    let asks = |about: &'static str| {
        move |status: &Value| {
            let needs = &status["needs"];
            status["agent"]["state"] == "dialog"
                && needs[0]["kind"] == "question"
                && needs[0]["why"]
                    .as_str()
                    .is_some_and(|why| why.contains(about))
        }
    };
    for about in ["workspace", "API key"] {
        supervisor.wait_for_status(asks(about));
        for command in ["status", "ls"] {
            let said = String::from_utf8(supervisor.run(&[command]).stdout).unwrap();
            assert!(said.contains("asks you"), "{command}: {said}");
        }
        // Its own answer is no.
        supervisor.keys(["\x1b[A", key::ENTER]);
    }
    let status = supervisor.wait_for_state("idle", SOON);
    assert_eq!(status["needs"], json!([]));
}

#[test]
#[ignore = "live: needs PITSTOP_CLAUDE"]
fn a_headless_run_ends_at_a_dialog_of_the_client_s_start() {
    let launch = run(at_its_first_start());
    let (code, run) = ended(&launch);
    let lines = run.events();
    assert_eq!(code, Some(4), "{lines:#?}");
    let tripped = of_kind(&lines, "tripped");
    assert_eq!(tripped[0]["breaker"], "dialog", "{lines:#?}");
    assert_eq!(launch.api().main_calls().len(), 0, "{lines:#?}");
}
