//! Submitting: what pitstop types for others arrives at the real client whole and exactly once, whatever the client
//! and the machine are busy with.
//!
//! The client takes a carriage return for Enter only when it comes in a read of its own, so a client that was busy
//! while text and Enter arrived has both in one read and submits nothing. The hook that reports each prompt is the
//! proof, and the stand-in API counts what was asked.

use std::{
    fs,
    process::{Child, Command, Stdio},
    thread,
    time::{Duration, Instant},
};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

use crate::kit::{
    client::{is_at_least, live_client},
    events::Events,
    messages_api::user_texts,
    supervisor::{Launch, SOON, Supervisor, key, processes_of},
};

/// What keeps the client from its input while a prompt arrives.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Busy {
    No,
    /// It is stopped for so long: the text and its Enter arrive in that time.
    Stopped(Duration),
    /// As many programs as the machine has cores want them for themselves.
    Hogs,
}

/// How long the client is stopped: its Enter arrives in that time.
const STOPPED: Duration = Duration::from_millis(400);

/// How long it is stopped once more: a second Enter arrives in that time, too.
const LONG_STOPPED: Duration = Duration::from_millis(2_000);

/// Programs that only burn time.
struct Hogs(Vec<Child>);

impl Hogs {
    fn two() -> Self {
        let hog = |_| {
            let mut command = Command::new("sh");
            command.args(["-c", "while :; do :; done"]);
            command.stdin(Stdio::null()).spawn().expect("a hog")
        };
        Self((0..2).map(hog).collect())
    }
}

impl Drop for Hogs {
    fn drop(&mut self) {
        for hog in &mut self.0 {
            let _ = hog.kill();
            let _ = hog.wait();
        }
    }
}

/// The texts of the prompts by what could go wrong with them.
fn texts() -> Vec<(&'static str, String)> {
    let lines = |count: usize, line: &str| {
        let lines: Vec<_> = (0..count).map(|n| format!("{n:04} {line}")).collect();
        lines.join("\n")
    };
    let words =
        |length: usize| "one more word ".repeat(length / 14 + 1)[..length - 1].to_owned() + ".";
    let mut texts = vec![
        ("2 characters", "ok".to_owned()),
        ("66 characters", words(66)),
        ("900 characters", words(900)),
        ("12 lines", lines(12, "a line of its own")),
        (
            "any script",
            "it's \"quoted\" $HOME `x` 日本 \u{1f469}\u{200d}\u{1f467} ÿ".to_owned(),
        ),
        ("a backslash at the end", "look into C:\\work\\".to_owned()),
        ("a file at the end", "look into @notes".to_owned()),
        ("8 KB in one line", words(8_000)),
        ("30 lines", lines(30, "a line")),
        (
            "30 lines, wide",
            lines(30, "日本語のテキスト。한국어도 있습니다"),
        ),
        (
            "lines of 300 columns",
            lines(9, &format!("{}\n{}", words(300), "x".repeat(300))),
        ),
        ("100 lines", lines(100, "of a text")),
    ];
    // The oldest client gets it at once, see `lines`: such a one stays in its box at times, unsubmitted, with a word about it. So does
    // Devanagari, of which it draws cells over others.
    if is_at_least(330) {
        let more = lines(30, "हिन्दी में पाठ\n\nالعربية ไทย 🦀");
        texts.push(("more scripts", more));
        texts.push(("30 KB in 600 lines", lines(600, &words(45))));
        texts.push(("64 KB", lines(1_100, &words(60))[..64 * 1024].to_owned()));
    }
    texts
}

/// The bytes of the notes. The oldest client has to get the handoff at once: the more there is, the more often a read cuts the mark of
/// a paste in two (1 of 4 at 186 KB and 1 of 7 at 44 KB, while it was stopped).
fn size() -> usize {
    if is_at_least(330) { 186_000 } else { 8_000 }
}

/// Notes that make a long handoff. Their lines are long: a newer client gets three of them at once, and many short ones would only
/// take longer.
fn notes() -> String {
    let line = |n| {
        let words = "what one must know of this part of the work, and why it is so; ".repeat(4);
        format!("{n:04} {}\n", words.trim_end())
    };
    let length = line(0).len();
    let lines: String = (0..size() / length).map(line).collect();
    format!("# Scratchpad\n\n## Current Plan\n- [ ] go on\n\n## Current Understanding\n{lines}")
}

/// A client that writes each prompt it takes to a file, and that is no child of pitstop's: a child that is stopped
/// would be continued at once.
fn client() -> Launch {
    let mut launch = Launch::live()
        .set("reboot.mode=\"manual\"")
        .set("reboot.typing_quiet=\"100ms\"")
        .set("reboot.delivery=\"paste\"")
        .set("reboot.warmup_delay=\"10ms\"")
        .set("reboot.warmup_prompt=\"and now go on\"")
        .set("handoff.max_state_size=400000")
        .notes(&notes())
        .agent_args(["--model", "claude-sonnet-4-5"]);
    let home = launch.the_home().path("");
    let hook = format!("(cat; echo) >>{}/prompts", home.display());
    let settings = serde_json::json!({ "hooks": { "UserPromptSubmit": [
        { "hooks": [{ "type": "command", "command": hook }] }
    ] } });
    fs::write(
        launch.the_home().path(".claude/settings.json"),
        settings.to_string(),
    )
    .expect("settings");
    for name in ["notes.md", "notes.txt"] {
        fs::write(launch.project().join(name), "notes\n").expect("a file");
    }
    let text = format!(
        "#!/bin/sh\ntrap 'kill -INT $child' INT\n{} \"$@\" <&0 &\nchild=$!\nwait $child\nwait $child\n",
        live_client().display()
    );
    let wrapper = launch.the_home().program("client", &text);
    launch = launch.client(&wrapper);
    launch
}

/// The prompts that the client has told of.
fn prompts(launch: &Launch) -> Vec<String> {
    let text = fs::read_to_string(launch.the_home().path("prompts")).unwrap_or_default();
    let parsed = text
        .lines()
        .filter_map(|line| serde_json::from_str::<Value>(line).ok());
    parsed
        .filter_map(|one| one["prompt"].as_str().map(str::to_owned))
        .collect()
}

/// The client's process below the wrapper's.
#[track_caller]
fn client_pid(supervisor: &Supervisor) -> Pid {
    let wrapper = supervisor.agent_pid().as_raw_nonzero().get();
    let found = processes_of(supervisor.launch.the_home())
        .into_iter()
        .find(|one| one.parent == wrapper && one.command.contains("claude"));
    Pid::from_raw(found.expect("a client").pid).expect("a process")
}

fn passes(time: Duration) {
    let end = Instant::now() + time;
    while let Some(left) = end.checked_duration_since(Instant::now()) {
        thread::park_timeout(left);
    }
}

/// Says something as a script does; returns whether it was taken. A title that the client has set before its turn was over may be
/// read after the hook that ends it: then there is no safe moment for a moment. And a client that is stopped just then may not
/// have drawn its prompt box yet, or not empty.
#[track_caller]
fn say(supervisor: &Supervisor, text: &str) -> bool {
    let output = supervisor.run_with_input(&["ctl", "say", "-"], text.as_bytes());
    let why = String::from_utf8_lossy(&output.stderr).into_owned();
    let taken = output.status.success();
    let not_yet = [
        "not a safe moment",
        "holds a text that was not submitted",
        "prompt box is not on the screen",
    ];
    assert!(
        taken || not_yet.iter().any(|one| why.contains(one)),
        "{why}"
    );
    if !taken {
        eprintln!("not yet: {why}");
    }
    taken
}

/// Waits until something may be said.
#[track_caller]
fn safe(supervisor: &Supervisor) {
    supervisor.wait_for_status(|status| {
        status["agent"]["state"] == "idle" && status["reboot"]["phase"] == "idle"
    });
}

/// Keeps the client from its input while something is sent to it; returns whether it was sent.
fn while_busy(busy: Busy, client: Pid, send: impl FnOnce() -> bool) -> bool {
    let Busy::Stopped(time) = busy else {
        return send();
    };
    kill_process(client, Signal::STOP).expect("it runs");
    let taken = send();
    passes(time);
    kill_process(client, Signal::CONT).expect("it is there");
    taken
}

/// What the service was asked last.
fn last_asked(launch: &Launch) -> String {
    let calls = launch.api().main_calls();
    let texts = calls.last().map(user_texts).unwrap_or_default();
    texts.last().cloned().unwrap_or_default()
}

/// That all of these were submitted once, in this order, by the client's own word and by what the service was asked.
#[track_caller]
fn check(supervisor: &Supervisor, sent: &[String], kind: &str) {
    let launch = &supervisor.launch;
    let arrived =
        || launch.api().main_calls().len() >= sent.len() && prompts(launch).len() >= sent.len();
    supervisor.wait_until(kind, arrived);
    let (prompts, calls) = (prompts(launch), launch.api().main_calls().len());
    let expected = sent.last().expect("one");
    assert_eq!((prompts.len(), calls), (sent.len(), sent.len()), "{kind}");
    same(&last_asked(launch), expected, kind);
    same(&prompts[sent.len() - 1], expected, kind);
}

/// That a text has arrived whole; if not, its first difference is shown.
#[track_caller]
fn same(found: &str, expected: &str, kind: &str) {
    let pairs = found.chars().zip(expected.chars());
    let alike = pairs.take_while(|(one, other)| one == other).count();
    let there = |text: &str| {
        let skipped = alike.saturating_sub(80);
        text.chars().skip(skipped).take(240).collect::<String>()
    };
    assert!(
        found == expected,
        "{kind}: {} bytes for {}, from character {alike} on:\n{:?}\nfor\n{:?}",
        found.len(),
        expected.len(),
        there(found),
        there(expected)
    );
}

/// A prompt of a script's, which is submitted once.
#[track_caller]
fn give(
    supervisor: &Supervisor,
    (kind, text): (&str, String),
    busy: Busy,
    client: Pid,
    sent: &mut Vec<String>,
) {
    safe(supervisor);
    let began = Instant::now();
    let _hogs = (busy == Busy::Hogs).then(Hogs::two);
    while !while_busy(busy, client, || say(supervisor, &text)) {
        assert!(
            began.elapsed() < SOON,
            "never a safe moment:\n{}\n{}",
            supervisor.screen(),
            supervisor.log()
        );
        safe(supervisor);
    }
    sent.push(text);
    check(supervisor, sent, kind);
    eprintln!("{kind}: {:?}", began.elapsed());
}

/// Prompts of a script's; then a handoff that is pasted, and the prompt behind it.
fn every_kind_is_submitted_once(busy: Busy) {
    let launch = client();
    let supervisor = launch.start_idle();
    let client = client_pid(&supervisor);
    let mut sent = Vec::new();
    let kinds = texts().into_iter().map(|(kind, text)| (kind, text, busy));
    let mut kinds: Vec<_> = kinds.collect();
    if let Busy::Stopped(_) = busy {
        let text = "a prompt for one that sleeps".to_owned();
        kinds.push(("a long stop", text, Busy::Stopped(LONG_STOPPED)));
    }
    for (kind, text, busy) in kinds {
        give(&supervisor, (kind, text), busy, client, &mut sent);
    }
    // What is approved is what was shown: nothing that was said may still be on its way from the transcript.
    let last = ("before the handoff", "a prompt like no other".to_owned());
    let step = format!("human: {}\nagent: ", last.1);
    give(&supervisor, last, Busy::No, client, &mut sent);
    supervisor.wait_for_handoff(&step);
    safe(&supervisor);

    let began = Instant::now();
    let mut events = Events::of(launch.the_home());
    supervisor.review();
    let shown = supervisor.handoff_text();
    assert!(shown.len() > size(), "{} bytes", shown.len());
    supervisor.keys([key::ENTER]);
    events.wait_for("reboot", |one| one["phase"] == "verifying", SOON);
    let hogs = (busy == Busy::Hogs).then(Hogs::two);
    while_busy(busy, client_pid(&supervisor), || true);
    sent.push(shown);
    sent.push("and now go on".to_owned());
    let arrived = || prompts(&launch).len() >= sent.len();
    supervisor.wait_until_within(SOON * 2, "the handoff and the prompt behind it", arrived);
    drop(hogs);
    let bytes = sent[sent.len() - 2].len();
    eprintln!(
        "{bytes} bytes and a prompt behind it: {:?}",
        began.elapsed()
    );
    supervisor.wait_for_iteration(2, SOON);
    check(&supervisor, &sent, "a prompt behind the handoff");
    for (found, expected) in prompts(&launch).iter().zip(&sent) {
        same(found, expected, "at the end");
    }
    safe(&supervisor);
    // An Enter too many would have submitted something by now.
    assert_eq!(launch.api().main_calls().len(), sent.len());
}

#[test]
#[ignore = "live: needs PITSTOP_CLAUDE"]
fn every_kind_of_prompt_is_submitted_once_to_an_idle_client() {
    every_kind_is_submitted_once(Busy::No);
}

/// The box's height is the screen's: most of these are higher at the least one.
#[test]
#[ignore = "live: needs PITSTOP_CLAUDE"]
fn every_kind_of_prompt_is_submitted_once_at_every_height_by_the_bridge_and_typed() {
    for (rows, bridge) in [(24, false), (24, true), (48, false), (60, false)] {
        let launch = client().set(&format!("agent.bridge={bridge}"));
        let supervisor = launch.size(140, rows).start_idle();
        let client = client_pid(&supervisor);
        let mut sent = Vec::new();
        for named in texts() {
            give(&supervisor, named, Busy::No, client, &mut sent);
        }
    }
}

#[test]
#[ignore = "live: needs PITSTOP_CLAUDE"]
fn every_kind_of_prompt_is_submitted_once_to_a_client_that_was_busy() {
    every_kind_is_submitted_once(Busy::Stopped(STOPPED));
}

#[test]
#[ignore = "live: needs PITSTOP_CLAUDE"]
fn every_kind_of_prompt_is_submitted_once_on_a_busy_machine() {
    every_kind_is_submitted_once(Busy::Hogs);
}
