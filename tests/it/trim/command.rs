//! `pitstop trim` in a home of its own.

use std::{
    fs,
    os::unix::fs::{PermissionsExt as _, symlink},
    path::{Path, PathBuf},
    process::Output,
};

use pitstop_agent::claude::project_slug;
use serde_json::{Value, json};

use super::{OLD, PLACEHOLDERS, Session, calls, gone};
use crate::kit::supervisor::Launch;

/// A session of the project of a fresh home, and where its transcript lies.
fn at_home(session: &Session) -> (Launch, PathBuf) {
    let launch = Launch::demo();
    let directory = launch.the_home().claude_dir().join("projects");
    let directory = directory.join(project_slug(launch.project()));
    fs::create_dir_all(&directory).unwrap();
    let transcript = directory.join(format!("{OLD}.jsonl"));
    fs::write(&transcript, session.bytes()).unwrap();
    (launch, transcript)
}

/// Ten responses of 10 000 tokens in a context of 150 000.
fn full() -> Session {
    let mut session = Session::default();
    for at in 0..10 {
        session
            .prompt("go")
            .call(&format!("t{at}"), json!("x".repeat(40_000)));
    }
    session.said("end", json!([]), 150_000);
    session
}

#[track_caller]
fn reported(output: &Output) -> Value {
    serde_json::from_slice(&output.stdout)
        .unwrap_or_else(|_| panic!("no JSON: {}", String::from_utf8_lossy(&output.stderr)))
}

fn entries(transcript: &Path) -> usize {
    fs::read_dir(transcript.parent().unwrap()).unwrap().count()
}

#[test]
fn a_dry_run_prints_the_table_and_writes_nothing() {
    let (launch, transcript) = at_home(&full());
    let output = launch.run(&["trim", OLD, "--dry-run"]);
    let text = String::from_utf8(output.stdout).unwrap();
    let expected = "\
level  responses  tokens before  after
0 %    0          150k           150k
10 %   1          150k           140k
20 %   2          150k           130k
50 %   5          150k           100.1k  ← the first below 122.4k
100 %  10         150k           50.2k
122.4k is 80 % of the compact line (153k of a window of 200k)
";
    assert_eq!(text, expected);
    assert!(output.status.success());
    assert_eq!(entries(&transcript), 1);
}

#[test]
fn without_a_session_the_newest_of_the_directory_is_taken_and_named() {
    let (launch, transcript) = at_home(&full());
    let older = transcript.with_file_name("33333333-3333-4333-8333-333333333333.jsonl");
    fs::write(&older, calls(3).bytes()).unwrap();
    let file = fs::File::options().append(true).open(&older).unwrap();
    file.set_modified(std::time::SystemTime::UNIX_EPOCH)
        .unwrap();
    let output = launch.run(&["trim", "--dry-run"]);
    assert!(output.status.success(), "{output:?}");
    let text = String::from_utf8(output.stdout).unwrap();
    let head = format!("the newest session here: {OLD}, last written at ");
    assert!(text.starts_with(&head), "{text}");
    assert!(text.contains("50 %   5          150k"), "{text}");
    assert_eq!(entries(&transcript), 2);
    let reported = reported(&launch.run(&["trim", "--json"]));
    assert_eq!(reported["transcript"], json!(transcript));
    assert_eq!(entries(&transcript), 3);
    // Where there is none, the error says so.
    let output = launch
        .command(&["trim"])
        .current_dir(launch.the_home().claude_dir())
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(1));
    let error = String::from_utf8(output.stderr).unwrap();
    assert!(error.contains("no session of"), "{error}");
}

#[test]
fn the_least_level_that_is_enough_is_written_as_a_private_copy() {
    let session = full();
    let (launch, transcript) = at_home(&session);
    let output = launch.run(&["trim", OLD, "--json"]);
    let reported = reported(&output);
    assert_eq!(
        (&reported["advice"], &reported["chosen"]),
        (&json!("trim"), &json!(50))
    );
    let id = reported["copy"]["session_id"].as_str().unwrap();
    let path = transcript.with_file_name(format!("{id}.jsonl"));
    assert_eq!(reported["copy"]["path"], json!(path));
    assert_eq!(
        reported["copy"]["resume"],
        format!("pitstop -- --resume {id}")
    );
    assert_ne!(id, OLD);
    let copy = fs::read(&path).unwrap();
    assert_eq!(gone(&copy).len(), 5);
    let mode = fs::metadata(&path).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    // The original is untouched, and nothing is left aside.
    assert_eq!(fs::read(&transcript).unwrap(), session.bytes());
    assert_eq!(entries(&transcript), 2);
}

#[test]
fn a_level_and_a_path_can_be_given_and_the_way_on_is_shown() {
    let (launch, transcript) = at_home(&calls(3));
    let output = launch.run(&["trim", transcript.to_str().unwrap(), "--level", "100"]);
    let text = String::from_utf8(output.stdout).unwrap();
    let id = text.trim_end().rsplit(' ').next().unwrap();
    assert!(
        text.ends_with(&format!("to go on: pitstop -- --resume {id}\n")),
        "{text}"
    );
    let copy = fs::read(transcript.with_file_name(format!("{id}.jsonl"))).unwrap();
    assert_eq!(gone(&copy).len(), 3);
    assert!(String::from_utf8(copy).unwrap().contains(PLACEHOLDERS[0]));
}

#[test]
fn a_torn_last_line_is_reported() {
    let mut session = calls(1);
    session.text.push_str("{\"torn");
    let (launch, transcript) = at_home(&session);
    let output = launch.run(&["trim", OLD, "--level", "10"]);
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(
        text.contains("note: the last line is incomplete; its 6 bytes are not in the copy\n"),
        "{text}"
    );
    assert_eq!(entries(&transcript), 2);
}

#[test]
fn without_a_level_that_is_enough_a_fresh_session_is_advised() {
    let mut session = calls(3);
    session.said("end", json!([]), 170_000);
    let (launch, transcript) = at_home(&session);
    let output = launch.run(&["trim", OLD]);
    assert_eq!(output.status.code(), Some(1));
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(
        text.contains("no level is enough: reboot into a fresh session"),
        "{text}"
    );
    assert_eq!(
        reported(&launch.run(&["trim", OLD, "--json"]))["advice"],
        "fresh"
    );
    assert_eq!(entries(&transcript), 1);
}

#[test]
fn a_session_that_is_small_enough_is_left_alone() {
    let (launch, transcript) = at_home(&calls(3));
    let output = launch.run(&["trim", OLD]);
    assert!(output.status.success());
    assert!(
        String::from_utf8(output.stdout)
            .unwrap()
            .contains("small enough as it is")
    );
    assert_eq!(entries(&transcript), 1);
}

#[test]
fn the_user_s_own_line_counts() {
    let (launch, _) = at_home(&full());
    let output = launch.run(&[
        "--set",
        "guard.compact_tokens=128000",
        "--set",
        "guard.warn_tokens=120000",
        "trim",
        OLD,
        "--json",
        "--dry-run",
    ]);
    let reported = reported(&output);
    assert_eq!(
        (&reported["compact_line"], &reported["chosen"]),
        (&json!(128_000), &json!(50))
    );
    let output = launch.run(&[
        "--set",
        "context.window=1000000",
        "--set",
        "guard.preset=late",
        "trim",
        OLD,
        "--json",
        "--dry-run",
    ]);
    assert_eq!(super::command::reported(&output)["chosen"], 0);
}

#[test]
fn links_and_what_is_no_transcript_are_refused() {
    let (launch, transcript) = at_home(&calls(1));
    let link = transcript.with_file_name("link.jsonl");
    symlink(&transcript, &link).unwrap();
    let empty = transcript.with_file_name("empty.jsonl");
    fs::write(&empty, "").unwrap();
    let other = "33333333-3333-4333-8333-333333333333";
    let cases = [
        (link.to_str().unwrap(), "found a symbolic link"),
        (
            transcript.parent().unwrap().to_str().unwrap(),
            "no regular file",
        ),
        (
            empty.to_str().unwrap(),
            "expected a transcript with messages",
        ),
        (other, "no session 33333333"),
        ("no-such-file", "no transcript at no-such-file"),
    ];
    for (session, expected) in cases {
        let output = launch.run(&["trim", session, "--level", "100"]);
        let error = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(1), "{session}");
        assert!(error.contains(expected), "{session}: {error}");
    }
    assert_eq!(
        launch.run(&["trim", OLD, "--level", "30"]).status.code(),
        Some(2)
    );
    assert_eq!(entries(&transcript), 3);
}
