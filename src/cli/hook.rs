//! `pitstop hook EVENT [--observe FILE]`: reports to the supervisor that a hook of the hosted agent fired.
//!
//! It runs inside the agent's turn, many times a minute, so it has no effect on the agent: it prints nothing, exits 0, is
//! done in 300 ms whatever the supervisor does, and reads no configuration. Only an agent that is itself slow to write the payload
//! is waited for longer. There are two exceptions. The event that the supervisor can
//! refuse: its refusal is printed (see `refuse`), and may take 2 s. And the permission, which a person may answer from afar while the
//! dialog is open: their answer is printed (see `decide`). Every error is silent: with the supervisor gone the
//! agent continues undisturbed. `main` comes here before it parses arguments or starts a runtime.

use std::env;
use std::ffi::{OsStr, OsString};
use std::io::Write as _;
use std::os::fd::AsFd;
use std::panic::{self, AssertUnwindSafe};
use std::path::PathBuf;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;

use serde::de::IgnoredAny;
use serde_json::{Value, json};

use pitstop_agent::claude::PERMISSION_SECONDS;
use pitstop_core::api::wire::{self, HookVerdict, PermissionAnswer, PermissionVerdict};
use pitstop_core::config::load::paths::secrets_file_here;
use pitstop_server::client::{self, ApiClient};
use pitstop_transcript::{denial::REFUSED_ELSEWHERE, record::mend_json};

/// The time that the whole command may take.
pub(super) const BUDGET: Duration = Duration::from_millis(300);

/// The time that the refusable event may take. A compaction is rare and takes the agent half a minute; on a busy machine
/// an answer that came 300 ms late would lose the conversation to it.
const REFUSAL_BUDGET: Duration = Duration::from_secs(2);

/// The time that a permission's hook waits for a person's answer, beside the dialog. The supervisor answers at once where no one can
/// answer from afar, and when the dialog is answered at the desk.
const PERMISSION_BUDGET: Duration = Duration::from_secs(PERMISSION_SECONDS);

/// The time that standard input may take: some callers never close it.
pub(super) const INPUT_TIME: Duration = Duration::from_millis(250);

/// The time that a payload may take that is not whole by then: on a busy machine the agent may write it a second after it has
/// started the command. The agent waits for five seconds.
const LATE_INPUT_TIME: Duration = Duration::from_secs(2);

/// The most bytes of standard input that are passed on: as many as the server takes.
const INPUT_LIMIT: usize = 1024 * 1024;

/// The most bytes of standard input that are kept until then: the result of a tool may hold a picture.
const READ_LIMIT: usize = 32 * 1024 * 1024;

/// The length to which the texts of a payload are cut that is larger than is passed on, in bytes. The supervisor keeps less of any of
/// them, and so knows that it has not the whole.
const TEXT_LIMIT: usize = 128 * 1024;

/// Runs the command with the arguments after `hook`; the exit code is always 0.
pub fn run(args: &[OsString]) -> i32 {
    run_quietly(|| post_event(args, Instant::now()));
    0
}

/// Runs `work` so that not even a panic prints or shows in the exit code.
pub(super) fn run_quietly<T>(work: impl FnOnce() -> T) -> Option<T> {
    panic::set_hook(Box::new(|_| {}));
    panic::catch_unwind(AssertUnwindSafe(work)).ok()
}

/// Posts the event; any fault ends it early, and there is no one to report it to.
fn post_event(args: &[OsString], began: Instant) -> Option<()> {
    // The input is read to its end even if it is not wanted: a caller that cannot finish writing would
    // show the user a broken pipe.
    let body = fitted(read_input(std::io::stdin(), began, LATE_INPUT_TIME));
    let late = began.elapsed().saturating_sub(INPUT_TIME);
    let (event, observe) = parse(args);
    let event = event?;
    let client = ApiClient::from_file(&observe_file(observe)?).ok()?;
    let budget = match event {
        wire::REFUSABLE_EVENT => REFUSAL_BUDGET,
        // For a subagent the agent shows its dialog only once this has ended, and a supervisor that hangs must not delay it.
        wire::PERMISSION_EVENT if !is_of_subagent(&body) => PERMISSION_BUDGET,
        _ => BUDGET,
    };
    let answer = client
        .post(
            &format!("/hooks/claude/{event}"),
            &body,
            began + late + budget,
        )
        .ok()?;
    match event {
        wire::REFUSABLE_EVENT if answer.status == 200 => print_refusal(&answer.body),
        wire::PERMISSION_EVENT if answer.status == 200 => print_decision(&answer.body),
        _ => Some(()),
    }
}

/// Reports whether a payload may be of a subagent. It is read as JSON only where it holds the word, which may be a tool's own
/// parameter; what is cut short counts as one.
fn is_of_subagent(body: &[u8]) -> bool {
    #[derive(serde::Deserialize)]
    struct Sender {
        agent_id: Option<serde::de::IgnoredAny>,
    }
    memchr::memmem::find(body, b"\"agent_id\"").is_some()
        && serde_json::from_slice(body).map_or(true, |sender: Sender| sender.agent_id.is_some())
}

/// Prints a person's answer to a permission in the form that the agent reads, in one write. For an answer of any other form nothing
/// is printed: then the dialog alone decides.
fn print_decision(answer: &[u8]) -> Option<()> {
    let verdict: PermissionVerdict = serde_json::from_slice(answer).ok()?;
    let decision = match verdict.answer {
        PermissionAnswer::Allow => json!({"behavior": "allow"}),
        PermissionAnswer::Deny => {
            json!({"behavior": "deny", "message": REFUSED_ELSEWHERE})
        }
    };
    let output = json!({"hookSpecificOutput": {"hookEventName": wire::PERMISSION_EVENT, "decision": decision}});
    let line = format!("{output}\n");
    std::io::stdout().write_all(line.as_bytes()).ok()
}

/// Prints the supervisor's refusal in the form that the agent reads, in one write. For an answer of any other form
/// nothing is printed, and the agent continues as it would.
fn print_refusal(answer: &[u8]) -> Option<()> {
    let verdict: HookVerdict = serde_json::from_slice(answer).ok()?;
    if verdict.decision != HookVerdict::BLOCK {
        return None;
    }
    let line = format!("{}\n", serde_json::to_string(&verdict).ok()?);
    std::io::stdout().write_all(line.as_bytes()).ok()
}

/// Returns the event's name and the observe file from the arguments, in any order; all else is ignored,
/// so that an agent's settings written by another version of pitstop still report.
pub(super) fn parse(args: &[OsString]) -> (Option<&str>, Option<&OsStr>) {
    let (mut event, mut observe) = (None, None);
    let mut rest = args.iter();
    while let Some(arg) = rest.next() {
        if arg == "--observe" {
            observe = rest.next().map(OsString::as_os_str);
        } else if let Some(text) = arg.to_str() {
            if let Some(file) = text.strip_prefix("--observe=") {
                observe = Some(OsStr::new(file));
            } else if event.is_none() && wire::is_event_name(text) {
                event = Some(text);
            }
        }
    }
    (event, observe)
}

/// Returns the observe file: as given, else by the environment, else that of the current project. A missing one was in
/// a directory that was removed: the supervisor may have found another place.
pub(super) fn observe_file(given: Option<&OsStr>) -> Option<PathBuf> {
    given
        .map(PathBuf::from)
        .or_else(|| env::var_os(client::OBSERVE_VARIABLE).map(PathBuf::from))
        .filter(|file| file.exists())
        .or_else(|| secrets_file_here("observe").ok())
}

/// Returns a payload that is larger than is passed on with its longest texts cut, or without the result of its call; where that is not
/// enough, or it is no JSON, its beginning.
fn fitted(mut body: Vec<u8>) -> Vec<u8> {
    if body.len() <= INPUT_LIMIT {
        return body;
    }
    if let Ok(mut payload) = serde_json::from_str(&mend_json(&body)) {
        cut_texts(&mut payload);
        let mut cut = payload.to_string();
        if cut.len() > INPUT_LIMIT
            && let Some(fields) = payload.as_object_mut()
        {
            // Pictures, or the lines of a patch: of such a result the supervisor reads nothing.
            fields.remove("tool_response");
            cut = payload.to_string();
        }
        if cut.len() <= INPUT_LIMIT {
            return cut.into_bytes();
        }
    }
    body.truncate(INPUT_LIMIT);
    body
}

fn cut_texts(value: &mut Value) {
    match value {
        Value::String(text) => text.truncate(text.floor_char_boundary(TEXT_LIMIT)),
        Value::Array(list) => list.iter_mut().for_each(cut_texts),
        Value::Object(fields) => fields.values_mut().for_each(cut_texts),
        _ => {}
    }
}

/// Reads the input up to the limits of time and size: `INPUT_TIME`, or `most` where there is no whole payload by then. Bytes beyond
/// the size limit are read and dropped.
pub(super) fn read_input(stdin: impl AsFd, began: Instant, most: Duration) -> Vec<u8> {
    let is_whole = |bytes: &[u8]| serde_json::from_slice::<IgnoredAny>(bytes).is_ok();
    // The time is counted from the start and not from the last byte: slow input must leave time for the post.
    let mut last = began + INPUT_TIME;
    let mut bytes = Vec::new();
    let mut chunk = vec![0_u8; 64 * 1024];
    loop {
        let left = last.saturating_duration_since(Instant::now());
        let Ok(timeout) = Timespec::try_from(left) else {
            return bytes;
        };
        let mut ready = [PollFd::from_borrowed_fd(stdin.as_fd(), PollFlags::IN)];
        match poll(&mut ready, Some(&timeout)) {
            Ok(0) if last < began + most && !is_whole(&bytes) => {
                last = began + most;
                continue;
            }
            Ok(0) => return bytes,
            Ok(_) => {}
            Err(Errno::INTR) => continue,
            Err(_) => return bytes,
        }
        match rustix::io::read(&stdin, &mut chunk) {
            Ok(0) => return bytes,
            Ok(count) => {
                let room = READ_LIMIT - bytes.len();
                bytes.extend_from_slice(&chunk[..count.min(room)]);
                if last > began + INPUT_TIME && is_whole(&bytes) {
                    return bytes;
                }
            }
            Err(Errno::INTR | Errno::AGAIN) => {}
            Err(_) => return bytes,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn args(texts: &[&str]) -> Vec<OsString> {
        texts.iter().map(OsString::from).collect()
    }

    #[test]
    fn the_event_and_its_file_are_found_in_any_order() {
        let file = Some(OsStr::new("/run/x"));
        for given in [
            &["Stop", "--observe", "/run/x"][..],
            &["--observe", "/run/x", "Stop"],
            &["--observe=/run/x", "Stop"],
            &["--later-option", "Stop", "--observe", "/run/x", "more"],
        ] {
            assert_eq!(parse(&args(given)), (Some("Stop"), file), "{given:?}");
        }
        assert_eq!(parse(&args(&["Stop"])), (Some("Stop"), None));
        assert_eq!(parse(&args(&["Stop", "--observe"])), (Some("Stop"), None));
    }

    #[test]
    fn a_payload_that_is_written_late_is_waited_for_and_one_without_an_end_is_not() {
        let (reader, mut writer) = std::io::pipe().unwrap();
        let written = std::thread::spawn(move || {
            std::thread::sleep(2 * INPUT_TIME);
            writer.write_all(b"{\"a\": 1}").unwrap();
            writer
        });
        let most = Duration::from_secs(20);
        assert_eq!(read_input(&reader, Instant::now(), INPUT_TIME), b"");
        let began = Instant::now();
        assert_eq!(read_input(&reader, began, most), b"{\"a\": 1}");
        let mut writer = written.join().unwrap();
        writer.write_all(b"{}").unwrap();
        assert_eq!(read_input(&reader, Instant::now(), most), b"{}");
        assert!(began.elapsed() < most / 2);
    }

    #[test]
    fn a_name_that_is_no_event_is_not_reported() {
        for given in [
            &[][..],
            &["../Stop"],
            &["--observe", "Stop"],
            &["St\u{f6}p"],
        ] {
            assert_eq!(parse(&args(given)).0, None, "{given:?}");
        }
    }

    #[test]
    fn a_tool_s_own_parameter_makes_no_subagent() {
        for (body, is_one) in [
            (r#"{"agent_id": "a1", "tool_input": {}}"#, true),
            (r#"{"tool_input": {"agent_id": "a1"}}"#, false),
            (r#"{"agent_id": null}"#, false),
            (r#"{"agent_id": "a"#, true),
            (r"{}", false),
        ] {
            assert_eq!(is_of_subagent(body.as_bytes()), is_one, "{body}");
        }
    }

    #[test]
    fn of_a_payload_that_is_too_large_the_longest_texts_are_cut_and_no_field_is_lost() {
        for result in [
            json!({"file": {"base64": "A".repeat(3 << 20)}}),
            json!([{"type": "image", "source": {"data": "B".repeat(2 << 20)}}]),
            json!("ü".repeat(1 << 20)),
        ] {
            let payload = json!({"tool_use_id": "t1", "tool_response": result, "z": 1});
            let cut = fitted(payload.to_string().into_bytes());
            assert!(cut.len() <= INPUT_LIMIT);
            let cut: Value = serde_json::from_slice(&cut).unwrap();
            assert_eq!((&cut["tool_use_id"], &cut["z"]), (&json!("t1"), &json!(1)));
        }
        let small = b"{ \"a\": 1 }".to_vec();
        assert_eq!(fitted(small.clone()), small);
        for hopeless in [
            vec![b'a'; 2 * INPUT_LIMIT],
            json!(vec!["x".repeat(TEXT_LIMIT); 20])
                .to_string()
                .into_bytes(),
        ] {
            assert_eq!(fitted(hopeless.clone()), hopeless[..INPUT_LIMIT]);
        }
    }

    #[test]
    fn a_payload_of_very_many_texts_is_reported_without_its_result() {
        let cell = json!({"image": "A".repeat(100 * 1024)});
        let shot = json!({"type": "image", "data": "B".repeat(TEXT_LIMIT)});
        for result in [
            json!({"file": {"cells": vec![cell; 16]}}),
            json!(vec![shot; 9]),
            json!({"structuredPatch": [{"lines": vec!["+ a line of a lock file"; 60_000]}]}),
        ] {
            let input = json!({"file_path": "/p/a"});
            let payload =
                json!({"tool_use_id": "t1", "tool_input": input, "tool_response": result, "z": 1});
            let body = payload.to_string().into_bytes();
            assert!(body.len() > INPUT_LIMIT);
            let mut expected = payload;
            expected.as_object_mut().unwrap().remove("tool_response");
            let cut: Value = serde_json::from_slice(&fitted(body)).unwrap();
            assert_eq!(cut, expected);
        }
    }
}
