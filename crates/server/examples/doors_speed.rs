//! How fast the doors are: 10 000 requests from 64 connections, and hooks while 200 connections dawdle.
//!
//! `cargo run --release --example doors_speed [CONTROL_FILE]`: against the supervisor of that file, else against a served API
//! whose loop answers at once.

#![allow(clippy::disallowed_methods, reason = "real programs take real time")]

use std::{
    io::Write as _,
    os::unix::net::UnixStream,
    path::PathBuf,
    sync::atomic::{AtomicUsize, Ordering},
    thread,
    time::{Duration, Instant},
};

use pitstop_core::api::wire::{
    Reply, Request, StatusLineReply, UsageAction, UsageActionKind, UsageReply,
};
use pitstop_server::{
    Call, Feed, RequestQueue, Secrets, bind_control_socket, client::ApiClient, serve,
};
use tokio::{runtime::Runtime, sync::mpsc};

const REQUESTS: usize = 10_000;
const CONNECTIONS: usize = 64;
const DAWDLERS: usize = 200;

async fn stand_in(mut calls: mpsc::Receiver<Call>) {
    while let Some(Call { request, reply }) = calls.recv().await {
        let answer = match request {
            Request::Usage(_) => Reply::Usage(UsageReply {
                used: Some(128_400),
                max: Some(200_000),
                usable: Some(180_000),
                percent: Some(71.3),
                status: Some("critical".to_owned()),
                action: UsageAction {
                    kind: UsageActionKind::Save,
                    message: String::new(),
                    auto: false,
                },
            }),
            Request::StatusLine { .. } => Reply::StatusLine(StatusLineReply::default()),
            _ => Reply::Accepted,
        };
        // The one who asked may be gone.
        let _ = reply.send(answer);
    }
}

fn reported(what: &str, mut times: Vec<Duration>) {
    times.sort();
    let at = |share: usize| times[(times.len() - 1) * share / 1000];
    println!(
        "{what}: {} answered, p50 {:?}, p99 {:?}, p99.9 {:?}",
        times.len(),
        at(500),
        at(990),
        at(999)
    );
}

fn crowd(client: &ApiClient, exchange: impl Fn(&ApiClient) -> u16 + Sync) -> Vec<Duration> {
    let made = AtomicUsize::new(0);
    thread::scope(|scope| {
        let threads: Vec<_> = (0..CONNECTIONS)
            .map(|_| {
                scope.spawn(|| {
                    let mut times = Vec::new();
                    while made.fetch_add(1, Ordering::Relaxed) < REQUESTS {
                        let began = Instant::now();
                        let status = exchange(client);
                        times.push(began.elapsed());
                        assert!(status < 300, "answered with {status}");
                    }
                    times
                })
            })
            .collect();
        threads
            .into_iter()
            .flat_map(|one| one.join().expect("every request is answered"))
            .collect()
    })
}

fn soon() -> Instant {
    Instant::now() + Duration::from_secs(20)
}

fn ask(client: &ApiClient) -> u16 {
    client
        .get("/context/usage", soon())
        .expect("an answer")
        .status
}

fn hook(client: &ApiClient) -> u16 {
    let body =
        br#"{"hook_event_name":"PreToolUse","session_id":"00000000-0000-4000-8000-000000000000"}"#;
    let answer = client.post("/hooks/claude/PreToolUse", body, soon());
    answer.expect("an answer").status
}

fn main() {
    let runtime = Runtime::new().expect("a runtime");
    let dir = tempfile::tempdir().expect("a directory");
    let own = std::env::args_os().nth(1).is_none();
    let mut secrets = None;
    let file = std::env::args_os().nth(1).map_or_else(
        || {
            let run = dir.path().join("run");
            let socket = run.join("p.sock");
            let made = Secrets::create(&run, "p", &socket, None).expect("secrets");
            let (calls, queue) = mpsc::channel(1024);
            let _in = runtime.enter();
            let (listening, _) = bind_control_socket(&socket).expect("a socket");
            runtime.spawn(stand_in(queue));
            let desk = RequestQueue::new(calls, Feed::new("speed"), mpsc::channel(1).0);
            runtime.spawn(serve(listening, made.keys(), desk, std::future::pending()));
            let file = made.control_file().to_owned();
            secrets = Some(made);
            file
        },
        PathBuf::from,
    );
    let client = ApiClient::from_file(&file).expect("a supervisor's control file");
    println!(
        "{}",
        if own {
            "a loop that answers at once"
        } else {
            "a real supervisor"
        }
    );
    reported("GET /context/usage", crowd(&client, ask));
    reported("POST /hooks/claude/PreToolUse", crowd(&client, hook));
    // One hook at a time among connections that send half a request and wait.
    let mut dawdlers = Vec::new();
    let mut times = Vec::new();
    for number in 0..DAWDLERS * 5 {
        if number < DAWDLERS {
            let mut stream = UnixStream::connect(client.socket()).expect("a connection");
            // One that was pushed out already cannot be written to.
            let _ = stream.write_all(b"POST /hooks/claude/Stop HTTP/1.1\r\nX");
            dawdlers.push(stream);
        }
        let began = Instant::now();
        hook(&client);
        times.push(began.elapsed());
    }
    reported("hooks among 200 that dawdle", times);
    drop(secrets);
}
