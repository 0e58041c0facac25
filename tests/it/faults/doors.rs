//! Floods at the control socket, its secrets gone, and a repository that is broken.

use std::{
    fs,
    io::{Read as _, Write as _},
    os::unix::net::{UnixListener, UnixStream},
    path::{Path, PathBuf},
    thread,
    time::{Duration, Instant},
};

use super::{Trial, demo, remove};
use crate::kit::supervisor::SOON;

/// A file beside the socket by its ending.
#[track_caller]
fn file(trial: &Trial, ending: &str) -> PathBuf {
    let files = fs::read_dir(trial.path("state/pitstop/run")).expect("a directory");
    let mut paths = files.flatten().map(|file| file.path());
    paths
        .find(|path| path.extension().is_some_and(|end| end == ending))
        .expect("a file")
}

/// The socket and the token that a secret names.
#[track_caller]
fn secret(trial: &Trial, right: &str) -> (PathBuf, String) {
    let text = fs::read_to_string(file(trial, right)).expect("a secret");
    let mut lines = text.lines();
    let socket = lines.next().expect("a socket").into();
    (socket, lines.next().expect("a token").to_owned())
}

/// Posts a hook; false if it was not taken.
fn post(socket: &Path, token: &str) -> bool {
    let body =
        br#"{"hook_event_name":"PreToolUse","session_id":"00000000-0000-4000-8000-000000000000"}"#;
    let Ok(mut stream) = UnixStream::connect(socket) else {
        return false;
    };
    let head = format!(
        "POST /hooks/claude/PreToolUse HTTP/1.1\r\nHost: pitstop\r\nAuthorization: Bearer {token}\r\nContent-Type: application/json\r\nContent-Length: {}\r\nConnection: close\r\n\r\n",
        body.len()
    );
    let mut answer = String::new();
    stream.write_all(head.as_bytes()).is_ok()
        && stream.write_all(body).is_ok()
        && stream.read_to_string(&mut answer).is_ok()
        && answer.starts_with("HTTP/1.1 202")
}

/// As many hooks as four threads can post in five seconds.
#[test]
#[ignore = "a fault of `cargo run --example faults`"]
fn hooks_as_fast_as_they_can_be_posted() {
    let trial = Trial::begin(&demo());
    let (socket, key) = secret(&trial, "observe");
    let end = Instant::now() + Duration::from_secs(5);
    let taken = thread::scope(|scope| {
        let posters: Vec<_> = (0..4)
            .map(|_| {
                scope.spawn(|| {
                    let mut count = 0;
                    while Instant::now() < end {
                        count += usize::from(post(&socket, &key));
                    }
                    count
                })
            })
            .collect();
        trial.answers();
        posters
            .into_iter()
            .map(|one| one.join().expect("posted"))
            .sum::<usize>()
    });
    println!("{} hooks a second were taken", taken / 5);
    assert!(taken > 500, "{taken}");
    let log: u64 = fs::read_dir(trial.path("state/pitstop/log"))
        .expect("a log")
        .flatten()
        .filter_map(|file| Some(file.metadata().ok()?.len()))
        .sum();
    assert!(log < 20 << 20, "the log has {log} bytes");
    trial.goes_on();
}

#[test]
#[ignore = "a fault of `cargo run --example faults`"]
fn four_hundred_clients_that_say_nothing() {
    let trial = Trial::begin(&demo());
    let (socket, _) = secret(&trial, "observe");
    let dawdlers: Vec<_> = (0..400)
        .filter_map(|_| {
            let mut stream = UnixStream::connect(&socket).ok()?;
            stream.write_all(b"POST /hooks/cla").ok()?;
            Some(stream)
        })
        .collect();
    assert!(dawdlers.len() > 100, "{}", dawdlers.len());
    trial.turn("with all of them there");
    trial.answers();
    drop(dawdlers);
    trial.goes_on();
}

#[test]
#[ignore = "a fault of `cargo run --example faults`"]
fn two_hundred_event_streams_that_are_not_read() {
    let trial = Trial::begin(&demo());
    let (socket, token) = secret(&trial, "control");
    let request =
        format!("GET /events HTTP/1.1\r\nHost: pitstop\r\nAuthorization: Bearer {token}\r\n\r\n");
    let streams: Vec<_> = (0..200)
        .filter_map(|_| {
            let mut stream = UnixStream::connect(&socket).ok()?;
            stream.write_all(request.as_bytes()).ok()?;
            Some(stream)
        })
        .collect();
    assert!(streams.len() > 50, "{}", streams.len());
    trial.turn("with all of them there");
    trial.answers();
    drop(streams);
    trial.goes_on();
}

#[test]
#[ignore = "a fault of `cargo run --example faults`"]
fn a_body_of_100_mib() {
    let trial = Trial::begin(&demo());
    let (socket, token) = secret(&trial, "observe");
    let before = super::memory(&trial.supervisor);
    for length in ["Content-Length: 104857600", "Transfer-Encoding: chunked"] {
        let mut stream = UnixStream::connect(&socket).expect("a socket");
        stream.set_write_timeout(Some(SOON)).expect("a limit");
        let head = format!(
            "POST /hooks/claude/Stop HTTP/1.1\r\nHost: pitstop\r\nAuthorization: Bearer {token}\r\nContent-Type: application/json\r\n{length}\r\n\r\n"
        );
        stream.write_all(head.as_bytes()).expect("a head");
        let piece = vec![b'a'; 1 << 20];
        for _ in 0..100 {
            let chunk = if length.starts_with('T') {
                "100000\r\n"
            } else {
                ""
            };
            // It is hung up on, sooner or later.
            let sent = stream
                .write_all(chunk.as_bytes())
                .and_then(|()| stream.write_all(&piece));
            if sent.is_err() {
                break;
            }
        }
    }
    let after = super::memory(&trial.supervisor);
    assert!(after < before + 30, "{before} to {after} MiB");
    trial.goes_on();
}

#[test]
#[ignore = "a fault of `cargo run --example faults`"]
fn its_secrets_deleted() {
    let trial = Trial::begin(&demo());
    let files = ["observe", "control"].map(|ending| file(&trial, ending));
    for path in &files {
        remove(path);
    }
    let back = || files.iter().all(|path| path.exists());
    trial.supervisor.wait_until("they are back", back);
    trial.goes_on();
}

#[test]
#[ignore = "a fault of `cargo run --example faults`"]
fn its_socket_taken_by_a_stale_one_or_a_file() {
    let launch = demo();
    let trial = Trial::begin(&launch);
    let (socket, _) = secret(&trial, "observe");
    trial.ends();
    assert!(!socket.exists(), "removed at the end");
    drop(UnixListener::bind(&socket).expect("a socket"));
    Trial::begin(&launch).ends();
    // What is no socket is never removed.
    fs::write(&socket, "a user's").expect("a file");
    let mut refused = launch.start();
    refused.check_nothing();
    let exit = refused.wait_for_exit(SOON);
    assert_eq!((exit.code, exit.signal), (1, None));
    let screen = refused.screen();
    assert!(screen.contains("something that is no socket"), "{screen}");
    assert!(refused.terminal.has_its_settings_back());
    assert_eq!(fs::read_to_string(&socket).expect("a file"), "a user's");
}

/// Sets up a repository, spoils it, and works in it.
#[track_caller]
fn repository(spoil: impl Fn(&Path)) {
    let launch = demo();
    crate::feed::repository(&launch);
    spoil(launch.project());
    Trial::begin(&launch).goes_on();
}

#[test]
#[ignore = "a fault of `cargo run --example faults`"]
fn git_head_is_broken() {
    repository(|project| fs::write(project.join(".git/HEAD"), [0xff; 300]).expect("written"));
}

#[test]
#[ignore = "a fault of `cargo run --example faults`"]
fn git_index_is_broken() {
    repository(|project| fs::write(project.join(".git/index"), [0x5a; 3_000]).expect("written"));
}

#[test]
#[ignore = "a fault of `cargo run --example faults`"]
fn git_has_30_000_untracked_files() {
    repository(|project| {
        let directory = project.join("many");
        fs::create_dir(&directory).expect("a directory");
        for number in 0..30_000 {
            fs::File::create(directory.join(format!("file-{number}"))).expect("a file");
        }
    });
}
