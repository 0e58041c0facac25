//! What a hook costs the session it reports from: `pitstop hook` beside `true`, which is the floor of
//! starting any process here.
//!
//! ```text
//! cargo build --release && cargo run --release --example hook_latency [ROUNDS]
//! ```
//!
//! The cases take turns, so that a busy moment of the machine burdens all of them alike.

use std::error::Error;
use std::fs;
use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use pitstop::api::{Call, Reply, Secrets, bind_control_socket, serve};
use tokio::sync::mpsc;

/// A payload of the usual size.
const PAYLOAD: &[u8] = br#"{"session_id":"3f0c1c9e-5f0a-4f0e-9f57-0d7f6f1f3a11","transcript_path":"/home/me/.claude/projects/p/3f0c1c9e.jsonl","cwd":"/home/me/p","hook_event_name":"Stop","stop_hook_active":false,"last_assistant_message":"Done: the parser reads every line, and the tests pass."}"#;

fn main() -> Result<(), Box<dyn Error>> {
    let rounds = match std::env::args().nth(1) {
        Some(text) => text.parse()?,
        None => 300,
    };
    let program = beside_this_example()?;
    let dir = tempfile::Builder::new()
        .permissions(fs::Permissions::from_mode(0o700))
        .tempdir()?;
    let socket = dir.path().join("p.sock");
    let secrets = Secrets::create(dir.path(), "p", &socket, None)?;
    let runtime = tokio::runtime::Runtime::new()?;
    let (calls, queue) = mpsc::channel(64);
    let listening = runtime.block_on(async { bind_control_socket(&socket) })?;
    let keys = secrets.keys();
    runtime.spawn(serve(listening, keys, calls, std::future::pending()));
    runtime.spawn(take_all(queue));

    let hook = |file: &Path| {
        let mut command = Command::new(&program);
        command.args(["hook", "Stop", "--observe"]).arg(file);
        command
    };
    let mut cases = [
        ("true", Command::new("true"), Vec::new()),
        (
            "hook, no supervisor",
            hook(Path::new("/nowhere")),
            Vec::new(),
        ),
        ("hook, supervisor", hook(secrets.observe_file()), Vec::new()),
    ];
    for _ in 0..rounds {
        for (_, command, times) in &mut cases {
            times.push(time(command)?);
        }
    }
    for (name, _, times) in &mut cases {
        times.sort();
        println!(
            "{name:20} p50 {:6.2} ms   p99 {:6.2} ms",
            percentile(times, 50),
            percentile(times, 99)
        );
    }
    Ok(())
}

/// The program built with the same profile as this example.
fn beside_this_example() -> Result<PathBuf, Box<dyn Error>> {
    let program = std::env::current_exe()?
        .parent()
        .and_then(Path::parent)
        .map(|profile| profile.join("pitstop"))
        .filter(|program| program.exists());
    program.ok_or_else(|| "build the program first, with the same profile".into())
}

/// Stands in for the loop: takes every call at once.
async fn take_all(mut queue: mpsc::Receiver<Call>) {
    while let Some(call) = queue.recv().await {
        // Nobody waits for the reply to a hook.
        call.reply.send(Reply::Accepted).ok();
    }
}

/// Runs a command as the hosted agent would and measures from start to end.
fn time(command: &mut Command) -> Result<Duration, Box<dyn Error>> {
    let began = Instant::now();
    let mut child = command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()?;
    if let Some(mut stdin) = child.stdin.take() {
        // `true` may be gone before it has been written to.
        stdin.write_all(PAYLOAD).ok();
    }
    let output = child.wait_with_output()?;
    let took = began.elapsed();
    if !output.status.success() || !output.stdout.is_empty() || !output.stderr.is_empty() {
        return Err(format!("expected silence and success, found {output:?}").into());
    }
    Ok(took)
}

/// That percentile of sorted times, in milliseconds.
fn percentile(times: &[Duration], percent: usize) -> f64 {
    let at = (times.len() * percent / 100).min(times.len().saturating_sub(1));
    times.get(at).map_or(0.0, Duration::as_secs_f64) * 1e3
}
