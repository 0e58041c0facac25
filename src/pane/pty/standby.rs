//! A process that waits to become the program of a pane: loaded while its supervisor is still reading its configuration,
//! it costs the first pane of a run no fork of a large process and no loading.
//!
//! ```text
//!   Standby::start ───────────────▶ await_order: leaves our session
//!     (configuration, lock, doors)  b"\n" ──▶     ready
//!   Standby::order ─ the order ───▶ takes the terminal
//!     (threads, screen)             end of file ─▶ becomes the program
//!   Ordered::child
//! ```
//!
//! Whatever goes wrong before the program is there, the pane is started the plain way. A standby that is not wanted ends
//! with the pipe that its order would come by.

#![allow(
    clippy::disallowed_methods,
    reason = "how long another process is waited for"
)]

use std::ffi::{OsStr, OsString};
use std::io::{self, Read, Write};
use std::os::fd::AsFd;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{Mode, OFlags};
use rustix::process::Signal;

use crate::pane::PaneSpec;

/// How long it may take to be ready, and to take its terminal.
const PATIENCE: Duration = Duration::from_millis(500);

/// What it says when it is ready.
const READY: u8 = b'\n';

/// The signals that a program in a pane must not find ignored, as `nohup` leaves them. portable-pty sets them right between
/// fork and exec; here nothing can.
const HEARD: [Signal; 6] = [
    Signal::HUP,
    Signal::INT,
    Signal::QUIT,
    Signal::ALARM,
    Signal::TERM,
    Signal::CHILD,
];

/// A process that waits. Dropped, it is ended.
#[derive(Debug)]
pub struct Standby {
    /// `None` once it has its order.
    process: Option<Child>,
    program: OsString,
    lead: Vec<OsString>,
}

/// A standby that was told what to become. Dropped, it is ended.
#[derive(Debug)]
pub struct Ordered {
    /// `None` once it is somebody else's.
    process: Option<Child>,
    news: ChildStdout,
}

/// What a standby is to become.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Order {
    /// The child's side of the terminal.
    terminal: PathBuf,
    /// The directory to start in.
    pub cwd: PathBuf,
    /// The arguments after those that it was started with.
    pub args: Vec<OsString>,
    /// The complete environment.
    pub env: Vec<(OsString, OsString)>,
}

impl Standby {
    /// Starts `program` with the arguments `lead`, which must call [`await_order`]. It may serve a pane whose program and
    /// first arguments are these.
    pub fn start(program: &Path, lead: &[&str]) -> io::Result<Self> {
        let process = Command::new(program)
            .args(lead)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()?;
        Ok(Self {
            process: Some(process),
            program: program.into(),
            lead: lead.iter().map(OsString::from).collect(),
        })
    }

    /// Tells it to become the program of a pane; `None` if it cannot.
    pub(super) fn order(mut self, spec: &PaneSpec, terminal: &Path) -> Option<Ordered> {
        self.try_order(spec, terminal).inspect_err(not_taken).ok()
    }

    fn try_order(&mut self, spec: &PaneSpec, terminal: &Path) -> io::Result<Ordered> {
        let other = || io::Error::other("the pane is to have another program");
        let args = spec.args.strip_prefix(self.lead.as_slice());
        let args = args.filter(|_| spec.program == self.program);
        let order = Order {
            terminal: terminal.to_owned(),
            cwd: spec.cwd.clone(),
            args: args.ok_or_else(other)?.to_vec(),
            env: spec.env.clone(),
        };
        let pipes = self
            .process
            .as_mut()
            .and_then(|process| process.stdin.take().zip(process.stdout.take()));
        let (mut orders, news) = pipes.ok_or_else(other)?;
        let mut ordered = Ordered {
            process: self.process.take(),
            news,
        };
        if ordered.next_byte()? != Some(READY) {
            return Err(io::Error::other("it has ended"));
        }
        orders.write_all(&order.encode()?)?;
        Ok(ordered)
    }
}

impl Drop for Standby {
    fn drop(&mut self) {
        end(self.process.take());
    }
}

impl Ordered {
    /// The process when it has opened the terminal; `None` if it could not.
    pub(super) fn child(mut self) -> Option<Child> {
        let error = match self.next_byte() {
            Ok(None) => return self.process.take(),
            Ok(Some(_)) => io::Error::other("it has not taken the terminal"),
            Err(error) => error,
        };
        not_taken(&error);
        None
    }

    /// The next byte that it sends, `None` at the end.
    fn next_byte(&mut self) -> io::Result<Option<u8>> {
        let until = Instant::now() + PATIENCE;
        loop {
            let left = until.saturating_duration_since(Instant::now());
            let limit = Timespec {
                tv_sec: 0,
                tv_nsec: left.subsec_nanos().into(),
            };
            let descriptor = self.news.as_fd();
            match poll(&mut [PollFd::new(&descriptor, PollFlags::IN)], Some(&limit)) {
                Ok(0) => return Err(io::ErrorKind::TimedOut.into()),
                Ok(_) => break,
                Err(rustix::io::Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
        }
        let mut byte = [0];
        Ok((self.news.read(&mut byte)? == 1).then_some(byte[0]))
    }
}

impl Drop for Ordered {
    fn drop(&mut self) {
        end(self.process.take());
    }
}

fn not_taken(error: &io::Error) {
    tracing::debug!(%error, "the agent is started without its standby");
}

fn end(process: Option<Child>) {
    if let Some(mut process) = process {
        let _ = process.kill();
        let _ = process.wait();
    }
}

/// In the process that was started: waits to be told what to become, and takes its terminal as the leader of a session of
/// its own, with no open file but that. `None` if it is not wanted.
pub fn await_order() -> io::Result<Option<Order>> {
    if ignores(&HEARD) != Some(false) {
        return Err(io::Error::other("it was started with signals ignored"));
    }
    // Before it is ready: its number is its process group's from here on.
    rustix::process::setsid()?;
    io::stdout().write_all(&[READY])?;
    io::stdout().flush()?;
    let mut bytes = Vec::new();
    io::stdin().read_to_end(&mut bytes)?;
    let Some(order) = Order::decode(&bytes) else {
        return Ok(None);
    };
    let flags = OFlags::RDWR | OFlags::CLOEXEC;
    let terminal = rustix::fs::open(&order.terminal, flags, Mode::empty())?;
    rustix::process::ioctl_tiocsctty(&terminal)?;
    rustix::stdio::dup2_stdin(&terminal)?;
    rustix::stdio::dup2_stderr(&terminal)?;
    // Last: it is the news that the terminal is taken.
    rustix::stdio::dup2_stdout(&terminal)?;
    drop(terminal);
    portable_pty::unix::close_random_fds();
    Ok(Some(order))
}

/// Whether this process ignores any of these signals. `None` where that cannot be told: only Linux tells.
#[must_use]
pub fn ignores(signals: &[Signal]) -> Option<bool> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let mask = status
        .lines()
        .find_map(|line| line.strip_prefix("SigIgn:"))?;
    let mask = u64::from_str_radix(mask.trim(), 16).ok()?;
    let ignored = |signal: &Signal| mask & (1 << (signal.as_raw() - 1)) != 0;
    Some(signals.iter().any(ignored))
}

impl Order {
    /// Its parts, each with a NUL behind it, which none may hold: terminal, directory, the number of arguments, the
    /// arguments, then name and value of each variable.
    fn encode(&self) -> io::Result<Vec<u8>> {
        let count = OsString::from(self.args.len().to_string());
        let fixed = [
            self.terminal.as_os_str(),
            self.cwd.as_os_str(),
            count.as_os_str(),
        ];
        let args = self.args.iter().map(OsString::as_os_str);
        let env = self
            .env
            .iter()
            .flat_map(|(name, value)| [name.as_os_str(), value.as_os_str()]);
        let mut bytes = Vec::new();
        for part in fixed.into_iter().chain(args).chain(env) {
            if part.as_bytes().contains(&0) {
                return Err(io::Error::other("a part of the order holds a NUL"));
            }
            bytes.extend_from_slice(part.as_bytes());
            bytes.push(0);
        }
        Ok(bytes)
    }

    /// `None` for anything but a whole order.
    fn decode(bytes: &[u8]) -> Option<Self> {
        let mut parts = bytes
            .strip_suffix(&[0])?
            .split(|byte| *byte == 0)
            .map(|part| OsString::from_vec(part.to_vec()));
        let (terminal, cwd) = (parts.next()?.into(), parts.next()?.into());
        let count: usize = parts
            .next()
            .as_deref()
            .and_then(OsStr::to_str)?
            .parse()
            .ok()?;
        let args: Vec<OsString> = parts.by_ref().take(count).collect();
        let mut env = Vec::new();
        while let Some(name) = parts.next() {
            env.push((name, parts.next()?));
        }
        (args.len() == count).then_some(Self {
            terminal,
            cwd,
            args,
            env,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn order() -> Order {
        Order {
            terminal: "/dev/pts/7".into(),
            cwd: OsString::from_vec(b"/odd \xff\n".to_vec()).into(),
            args: vec!["roll".into(), "".into(), "two\nlines".into()],
            env: vec![("A".into(), "1=2".into()), ("EMPTY".into(), "".into())],
        }
    }

    #[test]
    fn an_order_arrives_as_it_was_given() {
        let bare = Order {
            terminal: "/dev/pts/7".into(),
            ..Order::default()
        };
        for order in [order(), bare] {
            assert_eq!(Order::decode(&order.encode().unwrap()), Some(order));
        }
    }

    #[test]
    fn an_order_that_is_cut_short_is_none() {
        let whole = order().encode().unwrap();
        // At the end of a whole variable the rest is not missed, but the pipe is written by us alone.
        let complete = [
            whole.len(),
            whole.len() - b"EMPTY\0\0".len(),
            whole.len() - b"A\x001=2\0EMPTY\0\0".len(),
        ];
        for end in (0..whole.len()).filter(|end| !complete.contains(end)) {
            assert_eq!(Order::decode(&whole[..end]), None, "{end}");
        }
    }

    #[test]
    fn a_nul_is_refused() {
        let mut order = order();
        order.args.push("a\0b".into());
        assert!(order.encode().is_err());
    }
}
