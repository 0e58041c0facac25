//! The side process: its pipes, its time and its end.

use std::{
    cell::Cell,
    io,
    os::unix::process::ExitStatusExt as _,
    process::{Child, Command, ExitStatus},
    sync::atomic::{AtomicBool, Ordering},
    time::{Duration, Instant},
};

use rustix::{
    io::Errno,
    process::{Pid, Signal, WaitId, WaitIdOptions, kill_process_group, waitid},
};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    process::{ChildStderr, ChildStdin, ChildStdout},
};

use pitstop_base::process;
use pitstop_core::lineage::ProcessStamp;
use pitstop_handoff::{
    breakpoint::git,
    summary::{Ended, Ran},
};

use crate::runtime::user_command::LAST_WORDS;

/// The number of bytes of the client's standard output that are kept at most; one that prints more is ended.
pub(super) const OUTPUT_CAP: usize = 4 * 1024 * 1024;

/// The number of bytes of its standard error that are kept at most; more is read and dropped.
const COMPLAINT_CAP: usize = 16 * 1024;

/// The time between two checks of the process.
const TICK: Duration = Duration::from_millis(50);

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
    let mut ran = Ran {
        ended: Ended::Cancelled,
        stdout: Vec::new(),
        stderr: Vec::new(),
        took: Duration::ZERO,
    };
    let began = Instant::now();
    let mut child = match ask.command.spawn() {
        Ok(child) => child,
        Err(error) => {
            ran.ended = Ended::NotStarted(error.to_string());
            return (ran, None);
        }
    };
    let stamp = process::stamp(child.id());
    if let Some(stamp) = &stamp {
        started(stamp);
    }
    let mut side = Side {
        pid: Pid::from_child(&child),
        began,
        limit: ask.timeout,
        ending: None,
        killed: false,
        why: None,
    };
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build();
    let served = runtime
        .and_then(|runtime| runtime.block_on(side.serve(&mut child, prompt, stop, &mut ran)));
    if let Err(error) = served {
        side.signal(Signal::KILL);
        side.why = Some(Ended::NotStarted(error.to_string()));
    }
    let status = child.wait();
    ran.ended = side.why.unwrap_or_else(|| Ended::Exited(how(status.ok())));
    ran.took = began.elapsed();
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

    /// Writes the prompt and takes the output until the process is dead; what is left of its group goes with it.
    async fn serve(
        &mut self,
        child: &mut Child,
        prompt: &[u8],
        stop: &AtomicBool,
        ran: &mut Ran,
    ) -> io::Result<()> {
        let stdin = child.stdin.take().map(ChildStdin::from_std).transpose()?;
        let stdout = child.stdout.take().map(ChildStdout::from_std).transpose()?;
        let stderr = child.stderr.take().map(ChildStderr::from_std).transpose()?;
        let (printed, complained) = (&mut ran.stdout, &mut ran.stderr);
        let flooded = Cell::new(false);
        // A process may refuse to read, and a pipe that cannot be read counts as one at its end.
        let give = async {
            if let Some(mut stdin) = stdin {
                let _ = stdin.write_all(prompt).await;
            }
        };
        let take = async {
            if let Some(stdout) = stdout {
                let _ = stdout
                    .take(OUTPUT_CAP as u64 + 1)
                    .read_to_end(printed)
                    .await;
                flooded.set(printed.len() > OUTPUT_CAP);
            }
        };
        let listen = async {
            if let Some(stderr) = stderr {
                let _ = git::read_all(stderr, complained, COMPLAINT_CAP).await;
            }
        };
        let mut talk = std::pin::pin!(async { tokio::join!(give, take, listen) });
        let mut talks = true;
        while !self.is_dead() {
            self.look_after(stop);
            if flooded.get() {
                self.end(Ended::Flooded);
            }
            tokio::select! {
                _ = &mut talk, if talks => talks = false,
                () = tokio::time::sleep(TICK) => {}
            }
        }
        // The leader, dead but not reaped, still holds the group's number.
        self.signal(Signal::KILL);
        if talks {
            // A process that has left the group may hold the pipes open.
            let _ = tokio::time::timeout(LAST_WORDS, talk).await;
        }
        if flooded.get() {
            self.end(Ended::Flooded);
        }
        Ok(())
    }
}
