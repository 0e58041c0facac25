//! The side process: its pipes, its time and its end.

use std::{
    io,
    os::{
        fd::{AsFd as _, BorrowedFd, OwnedFd},
        unix::process::ExitStatusExt as _,
    },
    process::{Child, Command, ExitStatus},
    sync::atomic::{AtomicBool, Ordering},
    time::{Duration, Instant},
};

use rustix::{
    event::{PollFd, PollFlags, Timespec, poll},
    fs::{OFlags, fcntl_setfl},
    io::Errno,
    process::{Pid, Signal, WaitId, WaitIdOptions, kill_process_group, waitid},
};

use pitstop_base::process;
use pitstop_core::lineage::ProcessStamp;
use pitstop_handoff::summary::{Ended, Ran};

/// The number of bytes of the client's standard output that are kept at most; one that prints more is ended.
pub(super) const OUTPUT_CAP: usize = 4 * 1024 * 1024;

/// The number of bytes of its standard error that are kept at most; more is read and dropped.
const COMPLAINT_CAP: usize = 16 * 1024;

/// The time between two checks of the process while its pipes are quiet.
const TICK: Timespec = Timespec {
    tv_sec: 0,
    tv_nsec: 50_000_000,
};

/// The time after SIGTERM at which the group is killed. The client ends within 50 ms of it (measured).
const GRACE: Duration = Duration::from_secs(1);

/// The client's command line and its limits.
pub(super) struct Ask {
    pub command: Command,
    pub timeout: Duration,
}

/// Runs the client to its end, one way or the other; calls `started` when it runs, and returns the process that is gone.
pub(super) fn ask_client(
    mut ask: Ask,
    prompt: &[u8],
    stop: &AtomicBool,
    started: impl Fn(&ProcessStamp),
) -> (Ran, Option<ProcessStamp>) {
    let began = Instant::now();
    let failed = |why: String| Ran {
        ended: Ended::NotStarted(why),
        stdout: Vec::new(),
        stderr: Vec::new(),
        took: Duration::ZERO,
    };
    let mut child = match ask.command.spawn() {
        Ok(child) => child,
        Err(error) => return (failed(error.to_string()), None),
    };
    let stamp = process::stamp(child.id());
    if let Some(stamp) = &stamp {
        started(stamp);
    }
    let pipes = Pipes::of(&mut child);
    let mut side = Side {
        pid: Pid::from_child(&child),
        began,
        limit: ask.timeout,
        ending: None,
        killed: false,
        why: None,
    };
    let (stdout, stderr) = match pipes {
        Ok(mut pipes) => {
            pipes.serve(prompt, &mut side, stop);
            (pipes.printed, pipes.complained)
        }
        Err(error) => {
            side.signal(Signal::KILL);
            side.why = Some(Ended::NotStarted(error.to_string()));
            (Vec::new(), Vec::new())
        }
    };
    // What is left of its group goes with it; the leader, dead or dying, still holds the number.
    side.signal(Signal::KILL);
    let status = child.wait();
    let ran = Ran {
        ended: side.why.unwrap_or_else(|| Ended::Exited(how(status.ok()))),
        stdout,
        stderr,
        took: began.elapsed(),
    };
    (ran, stamp)
}

/// Describes in words how a process ended.
fn how(status: Option<ExitStatus>) -> String {
    match status.map(|status| (status.code(), status.signal())) {
        Some((Some(code), _)) => format!("exit code {code}"),
        Some((None, Some(signal))) => format!("signal {signal}"),
        _ => "an unknown status".to_owned(),
    }
}

/// The process, with the state of its ending.
struct Side {
    pid: Pid,
    began: Instant,
    /// The time that it may take.
    limit: Duration,
    /// The time since which it has been ending.
    ending: Option<Instant>,
    killed: bool,
    why: Option<Ended>,
}

impl Side {
    fn signal(&self, signal: Signal) {
        // Gone already, which is as good.
        let _ = kill_process_group(self.pid, signal);
    }

    fn end(&mut self, why: Ended) {
        if self.ending.is_none() {
            self.ending = Some(Instant::now());
            self.why = Some(why);
            self.signal(Signal::TERM);
        }
    }

    /// Ends or kills the process if that is due by the clock.
    fn look_after(&mut self, stop: &AtomicBool) {
        if stop.load(Ordering::Relaxed) {
            self.end(Ended::Cancelled);
        } else if self.began.elapsed() >= self.limit {
            self.end(Ended::TimedOut(self.limit));
        }
        if !self.killed && self.ending.is_some_and(|since| since.elapsed() >= GRACE) {
            self.killed = true;
            self.signal(Signal::KILL);
        }
    }

    /// Reports whether it is dead; it stays unreaped.
    fn is_dead(&self) -> bool {
        let options = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
        // A process that cannot be waited for is as good as dead.
        !matches!(
            waitid(WaitId::Pid(self.pid), options),
            Ok(None) | Err(Errno::INTR)
        )
    }
}

/// The three pipes, none of which may block us.
struct Pipes {
    stdin: Option<OwnedFd>,
    stdout: Option<OwnedFd>,
    stderr: Option<OwnedFd>,
    printed: Vec<u8>,
    complained: Vec<u8>,
}

impl Pipes {
    fn of(child: &mut Child) -> io::Result<Self> {
        let pipes = Self {
            stdin: child.stdin.take().map(OwnedFd::from),
            stdout: child.stdout.take().map(OwnedFd::from),
            stderr: child.stderr.take().map(OwnedFd::from),
            printed: Vec::new(),
            complained: Vec::new(),
        };
        for pipe in [&pipes.stdin, &pipes.stdout, &pipes.stderr]
            .into_iter()
            .flatten()
        {
            fcntl_setfl(pipe, OFlags::NONBLOCK)?;
        }
        Ok(pipes)
    }

    /// Writes the prompt and takes the output, until the process is dead.
    fn serve(&mut self, prompt: &[u8], side: &mut Side, stop: &AtomicBool) {
        let mut unsent = prompt;
        loop {
            side.look_after(stop);
            let dead = side.is_dead();
            self.wait();
            unsent = self.write(unsent);
            drain(&mut self.stdout, &mut self.printed, OUTPUT_CAP + 1);
            drain(&mut self.stderr, &mut self.complained, COMPLAINT_CAP);
            if self.printed.len() > OUTPUT_CAP {
                self.stdout = None;
                side.end(Ended::Flooded);
            }
            // Its output before its death has been read by now.
            if dead {
                return;
            }
        }
    }

    /// Waits until a pipe has something, or for a tick.
    fn wait(&self) {
        let reading = [&self.stdout, &self.stderr].into_iter().flatten();
        let mut polled: Vec<PollFd<'_>> = reading
            .map(|pipe| PollFd::from_borrowed_fd(pipe.as_fd(), PollFlags::IN))
            .collect();
        let writing: Option<BorrowedFd<'_>> = self.stdin.as_ref().map(|pipe| pipe.as_fd());
        polled.extend(writing.map(|pipe| PollFd::from_borrowed_fd(pipe, PollFlags::OUT)));
        // Interrupted or not: the next look shows it.
        let _ = poll(&mut polled, Some(&TICK));
    }

    /// Writes more of the prompt, and closes the pipe after the last byte; returns what is left.
    fn write<'a>(&mut self, mut unsent: &'a [u8]) -> &'a [u8] {
        while let Some(pipe) = &self.stdin {
            if unsent.is_empty() {
                self.stdin = None;
                break;
            }
            match rustix::io::write(pipe, unsent) {
                Ok(count) => unsent = &unsent[count..],
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => break,
                // It does not want to read more.
                Err(_) => self.stdin = None,
            }
        }
        unsent
    }
}

/// Reads the output that is there; bytes beyond `cap` are read and dropped. A pipe that is at its end is closed.
fn drain(pipe: &mut Option<OwnedFd>, into: &mut Vec<u8>, cap: usize) {
    let mut buffer = [0; 16 * 1024];
    // A process that prints without end must not keep us here.
    for _ in 0..64 {
        let Some(open) = &*pipe else { return };
        match rustix::io::read(open, &mut buffer) {
            Ok(0) => *pipe = None,
            Ok(count) => {
                let room = cap.saturating_sub(into.len());
                into.extend_from_slice(&buffer[..count.min(room)]);
            }
            Err(Errno::INTR) => {}
            Err(Errno::AGAIN) => return,
            Err(_) => *pipe = None,
        }
    }
}
