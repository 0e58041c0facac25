//! `pitstop statusline [--observe FILE]`: passes the agent's figures on and prints its status line.
//!
//! The line is the user's own if they had a status line command of their own, which gets the same
//! input; else pitstop's: the supervisor's text, or a line from the figures alone. It is printed in one write, because two
//! of these commands may run at once. The exit code is always 0.

use std::ffi::{OsStr, OsString};
use std::io::{ErrorKind, Read, Write};
use std::os::unix::process::CommandExt;
use std::process::{Child, ChildStdout, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{OFlags, fcntl_getfl, fcntl_setfl};
use rustix::process::{Pid, Signal, kill_process_group};

use super::hook;
use pitstop_agent::parse_status_line;
use pitstop_base::clean::one_line;
use pitstop_core::api::wire::StatusLineReply;
use pitstop_core::app::report::line_of;
use pitstop_core::guard::{GuardSettings, assess, reading::WindowEvidence};
use pitstop_server::client::{ApiClient, OBSERVE_VARIABLE};

/// The time that the user's own command may take. The agent ends it earlier, with all that it has started, when its next line is due
/// (read in 2.1.332).
const OWN_LIMIT: Duration = Duration::from_secs(10);

/// The most bytes of the user's command's output that are passed on: some coloured lines.
const OWN_OUTPUT_LIMIT: u64 = 64 * 1024;

/// The interval between checks whether a command that has closed no pipe has exited.
const EXIT_STEP: Timespec = Timespec {
    tv_sec: 0,
    tv_nsec: 10_000_000,
};

/// Runs the command with the arguments after `statusline`; the exit code is always 0.
pub fn run(args: &[OsString]) -> i32 {
    if let Some(Some(line)) = hook::run_quietly(|| line(args)) {
        let mut stdout = std::io::stdout().lock();
        // A reader that has gone away needs no line.
        stdout.write_all(&line).and_then(|()| stdout.flush()).ok();
    }
    0
}

fn line(args: &[OsString]) -> Option<Vec<u8>> {
    let began = Instant::now();
    let (deadline, body) = (
        began + hook::BUDGET,
        hook::read_input(std::io::stdin(), began, hook::INPUT_TIME),
    );
    let (_, observe) = hook::parse(args);
    let client = hook::observe_file(observe).and_then(|file| ApiClient::from_file(&file).ok());
    let Some(client) = client else {
        return printed(&of_figures(&body)?);
    };
    let Some(own) = client.status_line().map(OsStr::to_owned) else {
        return ours(&client, &body, deadline);
    };
    // The figures must not wait for the user's command, nor the command for the supervisor.
    thread::scope(|scope| {
        scope.spawn(|| ours(&client, &body, deadline));
        users(&own, &body, OWN_LIMIT)
    })
}

/// Posts the figures; the supervisor answers with a line of plain text. If it is gone or busy, the line is made from
/// the figures alone.
fn ours(client: &ApiClient, body: &[u8], deadline: Instant) -> Option<Vec<u8>> {
    printed(&asked(client, body, deadline).or_else(|| of_figures(body))?)
}

fn asked(client: &ApiClient, body: &[u8], deadline: Instant) -> Option<String> {
    let answer = client.post("/statusline", body, deadline).ok()?;
    let reply: StatusLineReply = serde_json::from_slice(&answer.body).ok()?;
    (!reply.line.is_empty()).then_some(reply.line)
}

fn printed(line: &str) -> Option<Vec<u8>> {
    let line = one_line(line);
    (!line.is_empty()).then(|| format!("{line}\n").into_bytes())
}

/// Returns a line from the payload alone, by the default thresholds: no supervisor is there that knows the user's.
fn of_figures(body: &[u8]) -> Option<String> {
    let figures = parse_status_line(body).ok()?;
    let used = figures.usage?.context();
    let evidence = WindowEvidence {
        status_line: figures.window,
        model: figures.model_id,
        most_used: used,
        ..WindowEvidence::default()
    };
    let measured = assess(used, evidence.window(), &GuardSettings::default(), None);
    Some(line_of(
        measured.level,
        measured.percent,
        None,
        figures.cost_usd,
    ))
}

/// Runs the user's own command and returns its output unchanged, because it is theirs.
fn users(command: &OsStr, input: &[u8], limit: Duration) -> Option<Vec<u8>> {
    let mut child = Command::new("sh")
        .arg("-c")
        .arg(command)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        // It may call this command itself, which then must not run it again.
        .env(OBSERVE_VARIABLE, "/dev/null")
        // It gets its own process group, so that the processes it started can be ended with it.
        .process_group(0)
        .spawn()
        .ok()?;
    let (mut stdin, stdout) = (child.stdin.take()?, child.stdout.take()?);
    let input = input.to_vec();
    // This thread is not waited for: it may hang on a pipe that a stray grandchild holds open.
    thread::spawn(move || stdin.write_all(&input));
    let output = printed_until_exit(&mut child, stdout, limit);
    if output.is_none() {
        end(&mut child);
    }
    // A command that is done is left alone: a process that it keeps running behind (a cache being filled) is its own.
    output
}

/// Returns the output of a command up to its exit; nothing if it takes too long. The pipe's end is not waited for: a process
/// that the command has left behind may hold it open for hours.
fn printed_until_exit(child: &mut Child, stdout: ChildStdout, limit: Duration) -> Option<Vec<u8>> {
    let deadline = Instant::now() + limit;
    let flags = fcntl_getfl(&stdout).ok()?;
    fcntl_setfl(&stdout, flags | OFlags::NONBLOCK).ok()?;
    let mut stdout = stdout.take(OWN_OUTPUT_LIMIT);
    let mut output = Vec::new();
    while Instant::now() < deadline {
        // The exit is checked before the pipe is read: then all that the command has printed is in the pipe.
        let exited = child.try_wait().ok()?.is_some();
        match stdout.read_to_end(&mut output) {
            Err(error) if error.kind() == ErrorKind::WouldBlock && !exited => {}
            Err(error) if error.kind() == ErrorKind::Interrupted => continue,
            _ => return Some(output),
        }
        let mut pipe = [PollFd::new(stdout.get_ref(), PollFlags::IN)];
        poll(&mut pipe, Some(&EXIT_STEP)).ok();
    }
    None
}

/// Ends a command that hangs, with all it started.
fn end(child: &mut Child) {
    // The group is ended first: until it is waited for, even a child that has exited keeps its number taken.
    kill_process_group(Pid::from_child(child), Signal::KILL).ok();
    child.wait().ok();
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The time that a command has in these tests.
    const LIMIT: Duration = Duration::from_secs(2);

    fn output(command: &str, input: &[u8]) -> Option<String> {
        let bytes = users(OsStr::new(command), input, LIMIT);
        bytes.map(|bytes| String::from_utf8(bytes).unwrap())
    }

    #[test]
    fn the_users_command_gets_the_input_and_its_output_is_kept_as_it_is() {
        let shown = output("printf '\\033[31m'; cat", b"{\"a\":1}");
        assert_eq!(shown.as_deref(), Some("\u{1b}[31m{\"a\":1}"));
    }

    #[test]
    fn a_command_that_reads_nothing_or_prints_without_end_is_no_trouble() {
        assert_eq!(
            output("echo x", &vec![b'a'; 1 << 20]).as_deref(),
            Some("x\n")
        );
        let flood = output("yes", b"").unwrap();
        assert_eq!(flood.len() as u64, OWN_OUTPUT_LIMIT);
    }

    #[test]
    fn a_process_that_is_left_behind_is_not_waited_for() {
        let dir = tempfile::tempdir().unwrap();
        let note = dir.path().join("pid");
        for command in [
            "echo shown; sleep 600 &",
            "(sleep 600; echo late) & printf 'sho'; sleep 0.1; echo wn",
            "setsid -f sleep 5; echo shown",
        ] {
            let began = Instant::now();
            let noted = format!("{command}\necho $$ > {}", note.display());
            assert_eq!(
                output(&noted, b"x").as_deref(),
                Some("shown\n"),
                "{command}"
            );
            assert!(began.elapsed() < LIMIT / 2, "{command}");
            let group = std::fs::read_to_string(&note).unwrap();
            let group = Pid::from_raw(group.trim().parse().unwrap()).unwrap();
            kill_process_group(group, Signal::KILL).ok();
        }
    }

    #[test]
    fn a_command_that_hangs_is_ended_with_all_it_started() {
        let dir = tempfile::tempdir().unwrap();
        let note = dir.path().join("pid");
        let began = Instant::now();
        let command = format!("sleep 600 & echo $! > {}; echo early; wait", note.display());
        assert_eq!(output(&command, b""), None);
        assert!(began.elapsed() < LIMIT + Duration::from_secs(1));
        let pid: i32 = std::fs::read_to_string(note)
            .unwrap()
            .trim()
            .parse()
            .unwrap();
        let pid = Pid::from_raw(pid).unwrap();
        // It is gone once the process that adopted it has waited for it.
        while rustix::process::test_kill_process(pid).is_ok() {
            assert!(began.elapsed() < Duration::from_secs(10), "still alive");
            thread::yield_now();
        }
    }

    #[test]
    fn the_figures_alone_make_a_line() {
        let body = |usage: &str| {
            format!(
                "{{\"session_id\":\"00000000-0000-4000-8000-000000000001\",\"cost\":{{\"total_cost_usd\":4.125}},\
                 \"context_window\":{{\"context_window_size\":200000,\"current_usage\":{usage}}}}}"
            )
        };
        let usage = "{\"input_tokens\":5,\"output_tokens\":395,\"cache_creation_input_tokens\":0,\
                     \"cache_read_input_tokens\":129600}";
        let line = of_figures(body(usage).as_bytes());
        assert_eq!(line.as_deref(), Some("warn 72% · $4.12"));
        for nothing in [body("null").as_str(), "{", ""] {
            assert_eq!(of_figures(nothing.as_bytes()), None);
        }
    }

    #[test]
    fn a_slow_command_of_the_user_s_has_its_time() {
        let slow = users(OsStr::new("sleep 2.2; echo mine"), b"", OWN_LIMIT);
        assert_eq!(slow.as_deref(), Some(&b"mine\n"[..]));
    }
}
