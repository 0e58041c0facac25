//! `pitstop test -- CMD…`: runs a test command and reports its outcome; nothing else about it changes.
//!
//! | pitstop's standard input, output and error | the command's streams |
//! |---|---|
//! | all three a terminal | a terminal of its own of the same size, behind the raw outer one: colours, progress bars, prompts and Ctrl-C work, and pitstop reads along |
//! | a pipe or a file for output or error | a pipe for that one, passed on as it comes; a stream that is a terminal is handed down itself |
//! | `--inherit` | the same streams; the exit code alone is reported |
//!
//! The last megabytes of the output are kept for the counts. The exit code is the command's, 128 + N if signal N ended it, 127
//! if there is no such command, 126 if it cannot be run. If there is no supervisor, nothing is reported.

#![allow(
    clippy::disallowed_methods,
    reason = "it touches the world: how long a command takes"
)]

use std::env;
use std::ffi::OsString;
use std::io::{self, IsTerminal, Read, Write};
use std::os::unix::process::ExitStatusExt;
use std::process::Stdio;
use std::thread;
use std::time::{Duration, Instant};

use clap::Args;
use rustix::process::{Signal, kill_process};
use rustix::termios::tcgetwinsize;
use tokio::io::{AsyncRead, AsyncReadExt};
use tokio::process::Command;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::mpsc;
use tokio::time::timeout;

use super::{
    observer,
    out::{self, Outcome},
};
use pitstop_base::process::send_signal;
use pitstop_core::api::wire::{TEST_NAMES_LIMIT, TestBody};
use pitstop_handoff::breakpoint::test_run::{self, TestOutcome};
use pitstop_terminal::pane::pty::{self, PtyEvent};
use pitstop_terminal::{PaneSize, pane::PaneSpec};

/// The number of bytes at the end of the output that are kept for the counts: as much as the recogniser reads.
const KEPT: usize = 4 * 1024 * 1024;

/// The time that output may still come once the command has ended: a process that it left may hold the pipe for ever.
const REST_LIMIT: Duration = Duration::from_millis(500);

/// The most pieces of typed input that may wait.
const INPUT_PIECES: usize = 16;

/// The exit code if there is no such command.
const NOT_FOUND: i32 = 127;

/// The exit code if the command cannot be run.
const NOT_RUN: i32 = 126;

/// Run a test command and report its result to the supervisor of this directory.
///
/// The command's output, input and exit code are its own.
#[derive(Args, Clone, Debug)]
pub struct TestArgs {
    /// Hand the terminal itself down, and report the exit code without counts
    #[arg(long)]
    pub inherit: bool,
    /// The command and its arguments
    #[arg(required = true, trailing_var_arg = true, allow_hyphen_values = true)]
    pub command: Vec<OsString>,
}

/// Runs the command; the exit code is the test command's.
pub fn run(args: &TestArgs) -> Outcome {
    let began = Instant::now();
    let runtime = out::runtime()?;
    let ran = runtime.block_on(attend(args));
    // A pipe that another process still holds must not delay the exit.
    runtime.shutdown_background();
    Ok(match ran {
        Ok(ran) => {
            report(args, &ran, began.elapsed());
            ran.code
        }
        Err(error) => {
            let name = args.command[0].to_string_lossy();
            out::complain(&format!("cannot run `{name}`: {}", out::chain(&error)), "");
            if error.kind() == io::ErrorKind::NotFound {
                NOT_FOUND
            } else {
                NOT_RUN
            }
        }
    })
}

/// The result of the command.
struct Ran {
    code: i32,
    /// The end of what it printed: output and error one behind the other, as far as they could be read.
    printed: Vec<u8>,
}

async fn attend(args: &TestArgs) -> io::Result<Ran> {
    let terminals = [
        io::stdin().is_terminal(),
        io::stdout().is_terminal(),
        io::stderr().is_terminal(),
    ];
    if args.inherit || terminals != [true; 3] {
        return piped(args, terminals).await;
    }
    in_terminal(args).await
}

fn report(args: &TestArgs, ran: &Ran, took: Duration) {
    let Ok(here) = env::current_dir() else { return };
    // The report goes to the supervisor that hosts this process, else to the nearest one.
    let Some(door) = observer::find_doors(&here, None).into_iter().next() else {
        return;
    };
    let words: Vec<_> = args
        .command
        .iter()
        .map(|word| word.to_string_lossy())
        .collect();
    let command = words.join(" ");
    let printed = String::from_utf8_lossy(&ran.printed);
    let directory = here.to_string_lossy();
    let shell = test_run::Shell {
        command: Some(&command),
        directory: Some(&directory),
        failed: false,
    };
    let mut outcomes = shell.recognise_runs(&printed);
    if outcomes.is_empty() {
        // A command that looks as if it only showed a text was given as a test run, and is one.
        let unnamed = test_run::Shell {
            command: None,
            ..shell
        };
        outcomes = unnamed.recognise_runs(&printed);
    }
    let total = test_run::sum_up(&outcomes);
    // With several runs it is not known which test belongs to which.
    let runner = match &outcomes[..] {
        [only] => Some(only.runner.to_owned()),
        _ => None,
    };
    let (failing, passing) = names_in(outcomes);
    let named = |mut names: Vec<String>| {
        names.truncate(TEST_NAMES_LIMIT);
        (!names.is_empty()).then_some(names)
    };
    let body = TestBody {
        environment: None,
        passed: ran.code == 0,
        test_count: total.and_then(|total| total.count),
        failed_count: total.and_then(|total| total.failed),
        duration_seconds: Some((took.as_secs_f64() * 1e3).round() / 1e3),
        runner,
        directory: Some(directory.into_owned()),
        test_command: Some(command),
        failing_tests: named(failing),
        passing_tests: named(passing),
    };
    observer::post_report(&door, "/hooks/test-result", &body);
}

/// Returns the names of the tests that failed and of those that passed. A run without a verdict is counted only if there is no
/// other, and no more tests may be named than are counted.
fn names_in(outcomes: Vec<TestOutcome>) -> (Vec<String>, Vec<String>) {
    let counts = |one: &TestOutcome| one.is_failure() || one.is_success();
    let any = outcomes.iter().any(counts);
    let (mut failing, mut passing) = (Vec::new(), Vec::new());
    for one in outcomes {
        if !any || counts(&one) {
            failing.extend(one.failing);
            passing.extend(one.passing);
        }
    }
    (failing, passing)
}

/// The end of a stream of any length.
#[derive(Default)]
struct Tail(Vec<u8>);

impl Tail {
    fn push(&mut self, bytes: &[u8]) {
        self.0.extend_from_slice(bytes);
        // The buffer is cut in large steps: each cut moves the kept bytes.
        if self.0.len() > 2 * KEPT {
            self.0.drain(..self.0.len() - KEPT);
        }
    }
}

/// Runs the command as a child process, with pipes where there is no terminal.
async fn piped(args: &TestArgs, terminals: [bool; 3]) -> io::Result<Ran> {
    // From here on these signals do not end this process: Ctrl-C reaches the command from the terminal, which may handle it.
    let _interrupt = signal(SignalKind::interrupt())?;
    let _quit = signal(SignalKind::quit())?;
    let mut terminate = signal(SignalKind::terminate())?;
    let mut hangup = signal(SignalKind::hangup())?;
    let pipe = |terminal: bool| {
        if terminal || args.inherit {
            Stdio::inherit()
        } else {
            Stdio::piped()
        }
    };
    let mut child = Command::new(&args.command[0])
        .args(&args.command[1..])
        .stdout(pipe(terminals[1]))
        .stderr(pipe(terminals[2]))
        .spawn()?;
    let pid = child.id();
    let output = tokio::spawn(tee(child.stdout.take(), io::stdout));
    let errors = tokio::spawn(tee(child.stderr.take(), io::stderr));
    let status = loop {
        tokio::select! {
            ended = child.wait() => break ended?,
            _ = terminate.recv() => send_signal(pid, Signal::TERM),
            _ = hangup.recv() => send_signal(pid, Signal::HUP),
        }
    };
    let mut printed = Vec::new();
    for stream in [output, errors] {
        if let Ok(Ok(tail)) = timeout(REST_LIMIT, stream).await {
            printed.extend_from_slice(&tail.0);
            printed.push(b'\n');
        }
    }
    let code = status
        .code()
        .or_else(|| status.signal().map(|signal| 128 + signal));
    Ok(Ran {
        code: code.unwrap_or(out::FAILED),
        printed,
    })
}

/// Passes a stream on as it comes and keeps its end. Once the target has no reader, the command's pipe is closed, too.
async fn tee<W: Write>(from: Option<impl AsyncRead + Unpin>, to: impl Fn() -> W) -> Tail {
    let mut tail = Tail::default();
    let Some(mut from) = from else { return tail };
    let mut chunk = vec![0_u8; 64 * 1024];
    while let Ok(count @ 1..) = from.read(&mut chunk).await {
        tail.push(&chunk[..count]);
        let mut to = to();
        if to
            .write_all(&chunk[..count])
            .and_then(|()| to.flush())
            .is_err()
        {
            break;
        }
    }
    tail
}

/// Runs the command in a terminal of its own behind the outer one.
async fn in_terminal(args: &TestArgs) -> io::Result<Ran> {
    let mut terminate = signal(SignalKind::terminate())?;
    let mut hangup = signal(SignalKind::hangup())?;
    let mut resized = signal(SignalKind::window_change())?;
    let spec = PaneSpec {
        program: args.command[0].clone(),
        args: args.command[1..].to_vec(),
        env: env::vars_os().collect(),
        cwd: env::current_dir()?,
    };
    let (events, mut messages) = pty::channel();
    let pty =
        pty::spawn(spec, size(), 0, &events).map_err(|error| not_run(&args.command[0], &error))?;
    // The outer terminal is raw, so that the command's own terminal handles the typed input.
    let mut raw = out::Raw::begin()?;
    let (keys, mut typed) = mpsc::channel(INPUT_PIECES);
    // The thread ends with this process: nothing can wake a read of a terminal.
    thread::spawn(move || read_input(&keys));
    let mut tail = Tail::default();
    let mut code = None;
    loop {
        // If the command has ended and its children still hold its terminal, more output is waited for no longer than this.
        let rest = async {
            match code {
                Some(_) => tokio::time::sleep(REST_LIMIT).await,
                None => std::future::pending().await,
            }
        };
        let message = tokio::select! {
            message = messages.recv() => message,
            Some(bytes) = typed.recv() => {
                // A command that has read nothing for megabytes will not miss the rest.
                pty.try_write(bytes).ok();
                continue;
            }
            _ = terminate.recv() => { pty.signal(pty::Signal::TERM).ok(); continue }
            _ = hangup.recv() => { pty.signal(pty::Signal::HUP).ok(); continue }
            _ = resized.recv() => { pty.resize(size()).ok(); continue }
            () = rest => None,
        };
        match message.map(|message| message.event) {
            Some(PtyEvent::Output(bytes)) => {
                tail.push(&bytes);
                let mut stdout = io::stdout().lock();
                // A terminal that has gone away sends SIGHUP.
                stdout.write_all(&bytes).and_then(|()| stdout.flush()).ok();
            }
            Some(PtyEvent::Stopped(_)) => {
                // This process stops, too, with the terminal restored, until the shell continues it.
                drop(raw);
                kill_process(rustix::process::getpid(), Signal::STOP)?;
                raw = out::Raw::begin()?;
                pty.signal(pty::Signal::CONT).ok();
            }
            Some(PtyEvent::Exited(exit)) => {
                let signal = exit.signal.map(|signal| 128 + signal);
                code = Some(exit.code.or(signal).unwrap_or(out::FAILED));
            }
            Some(PtyEvent::Continued) => {}
            Some(PtyEvent::OutputEnded) if code.is_none() => {}
            Some(PtyEvent::OutputEnded) | None => break,
        }
    }
    pty.release();
    drop(raw);
    Ok(Ran {
        code: code.unwrap_or(out::FAILED),
        printed: tail.0,
    })
}

fn read_input(keys: &mpsc::Sender<Vec<u8>>) {
    let mut chunk = [0_u8; 4096];
    let mut stdin = io::stdin().lock();
    while let Ok(count @ 1..) = stdin.read(&mut chunk) {
        if keys.blocking_send(chunk[..count].to_vec()).is_err() {
            return;
        }
    }
}

fn size() -> PaneSize {
    match tcgetwinsize(io::stdout()) {
        Ok(size) if size.ws_col > 0 && size.ws_row > 0 => PaneSize::new(size.ws_col, size.ws_row),
        _ => PaneSize::new(80, 24),
    }
}

/// Returns the error of a command that could not be run: the terminal's library reports a missing program only in words.
fn not_run(program: &OsString, error: &pty::PtyError) -> io::Error {
    let path = env::var_os("PATH").unwrap_or_default();
    let named = std::path::Path::new(program);
    let there = named.components().count() > 1 && named.exists()
        || env::split_paths(&path).any(|place| place.join(named).is_file());
    let kind = if there {
        io::ErrorKind::PermissionDenied
    } else {
        io::ErrorKind::NotFound
    };
    io::Error::new(kind, out::chain(error))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_a_long_output_the_end_is_kept() {
        let mut tail = Tail::default();
        for number in 0..300_u16 {
            tail.push(&vec![(number % 256) as u8; 64 * 1024]);
        }
        assert!((KEPT..=2 * KEPT).contains(&tail.0.len()));
        assert_eq!(tail.0.last(), Some(&43));
    }

    #[test]
    fn no_more_tests_are_named_than_counted() {
        let passed =
            "running 1 test\ntest a ... ok\n\ntest result: ok. 1 passed; 0 failed; 0 ignored\n";
        let failed = "running 1 test\ntest a ... FAILED\n\ntest result: FAILED. 0 passed; 1 failed; 0 ignored\n";
        // It was stopped, so it has no verdict.
        let cut =
            "===== test session starts =====\nt.py::x PASSED   [ 50%]\nt.py::y PASSED   [ 99%]\n";
        let cases: [(String, &[&str], &[&str]); 3] = [
            (format!("{passed}{cut}"), &[], &["a"]),
            (format!("{failed}{cut}"), &["a"], &[]),
            (cut.to_owned(), &[], &["t.py::x", "t.py::y"]),
        ];
        for (output, failing, passing) in cases {
            let found = test_run::recognise_runs(None, &output);
            let count = test_run::sum_up(&found).and_then(|total| total.count);
            let (failed, passed) = names_in(found);
            let named = (failed.len() + passed.len()) as u64;
            assert!(count.is_none_or(|count| named <= count), "{output}");
            assert_eq!(failed, failing, "{output}");
            assert_eq!(passed, passing, "{output}");
        }
    }
}
