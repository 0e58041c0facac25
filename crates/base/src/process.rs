//! Processes by number and start time: which still live, which are left over, and the sequence of signals that ends those
//! that a crashed supervisor left behind.
//!
//! A number alone proves nothing, because the system gives it out again; with the start time (and
//! on Linux the boot it is counted from) it names one process for good.

#![allow(
    clippy::disallowed_methods,
    reason = "it touches the world: deadlines of real processes"
)]

use std::{
    thread,
    time::{Duration, Instant},
};

use rustix::process::{Pid, Signal, kill_process, kill_process_group};
use serde::{Deserialize, Serialize};

/// The time between two looks of a wait for a group's end: short against any patience, cheap to do.
const POLL: Duration = Duration::from_millis(10);

/// A process, distinct from any later one that is given its number.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct ProcessStamp {
    /// The process id.
    pub pid: u32,
    /// The start time, as the system reports it: compared for equality, never computed with.
    pub start_time: String,
}

/// A process found in a group or session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Member {
    /// The stamp of the process.
    pub stamp: ProcessStamp,
    /// The name as the system reports it; chosen by the process, so clean it before showing.
    pub name: String,
}

/// A signal sent to a whole group to ask it to end, and the time it has to be gone.
pub type StopStep = (Signal, Duration);

/// The signals for agents whose supervisor is gone, in order: they have no terminal any more, so it starts with the hang-up
/// that they should have had.
pub const LEFTOVER_STEPS: [StopStep; 3] = [
    // The client runs its own SessionEnd hooks for up to 1.5 s.
    (Signal::HUP, Duration::from_secs(2)),
    (Signal::TERM, Duration::from_millis(1_500)),
    (Signal::KILL, Duration::from_secs(1)),
];

/// The outcome of ending a group.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ended {
    /// The group had no living process any more, or its number now belongs to another process.
    AlreadyGone,
    /// The group is gone, by this signal.
    By(Signal),
    /// Some of its processes outlived every signal.
    Leftovers(Vec<Member>),
}

/// Returns the stamp of the process `pid`; `None` when there is none or it is a zombie.
pub fn stamp(pid: u32) -> Option<ProcessStamp> {
    Some(system::look(pid)?.member.stamp)
}

/// Reports whether the very process of that stamp still lives; a zombie does not.
pub fn alive(stamp: &ProcessStamp) -> bool {
    self::stamp(stamp.pid).as_ref() == Some(stamp)
}

/// Returns the living processes of the group `pgid`.
pub fn members_of_group(pgid: u32) -> Vec<Member> {
    members(|seen| seen.group == pgid)
}

/// Returns the living processes of the session `sid`: also those that made a group of their own.
pub fn members_of_session(sid: u32) -> Vec<Member> {
    members(|seen| seen.session == sid)
}

/// Returns the living processes that the process `pid` has started, and those that they have, in whatever group or session
/// they are now.
pub fn descendants(pid: u32) -> Vec<Member> {
    let mut rest = system::all();
    let mut known = vec![pid];
    let mut found = Vec::new();
    while let Some(parent) = known.pop() {
        let (children, others) = rest.into_iter().partition(|seen| seen.parent == parent);
        rest = others;
        let children: Vec<Seen> = children;
        known.extend(children.iter().map(|child| child.member.stamp.pid));
        found.extend(children.into_iter().map(|child| child.member));
    }
    found.sort_by_key(|member| member.stamp.pid);
    found
}

fn members(belongs: impl Fn(&Seen) -> bool) -> Vec<Member> {
    let mut members: Vec<_> = system::all()
        .into_iter()
        .filter(belongs)
        .map(|seen| seen.member)
        .collect();
    members.sort_by_key(|member| member.stamp.pid);
    members
}

/// Reports whether this process ignores any of these signals. `None` where that cannot be known: only Linux shows it.
pub fn ignores(signals: &[Signal]) -> Option<bool> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let mask = status
        .lines()
        .find_map(|line| line.strip_prefix("SigIgn:"))?;
    let mask = u64::from_str_radix(mask.trim(), 16).ok()?;
    let ignored = |signal: &Signal| mask & (1 << (signal.as_raw() - 1)) != 0;
    Some(signals.iter().any(ignored))
}

/// Sends a signal to a child that is not reaped yet, so that the number is still its own. A child without a number has been reaped, and
/// gets nothing.
pub fn send_signal(pid: Option<u32>, signal: Signal) {
    let pid = pid.and_then(|pid| Pid::from_raw(i32::try_from(pid).ok()?));
    if let Some(pid) = pid {
        // It may have ended meanwhile, which is all that a signal is for.
        let _ = kill_process(pid, signal);
    }
}

/// Kills the very process of that stamp, if it still lives.
pub fn kill(stamp: &ProcessStamp) {
    if alive(stamp) {
        send_signal(Some(stamp.pid), Signal::KILL);
    }
}

/// Ends the process group led by `leader`, signal by signal, and waits; blocks up to the sum of their patience.
///
/// The group of a dead leader still belongs to it as long as no process has the leader's number: the system gives no number
/// out again while a group or session of that number lives.
pub fn end_group(leader: &ProcessStamp, steps: &[StopStep]) -> Ended {
    let Some(group) = i32::try_from(leader.pid).ok().and_then(Pid::from_raw) else {
        return Ended::AlreadyGone;
    };
    if leader.pid <= 1 || !is_ours(leader) {
        return Ended::AlreadyGone;
    }
    for (signal, patience) in steps {
        match kill_process_group(group, *signal) {
            Ok(()) => {}
            Err(error) if error == rustix::io::Errno::SRCH => return Ended::By(*signal),
            Err(error) => tracing::warn!(pid = leader.pid, %error, "could not signal the group"),
        }
        if gone_within(leader.pid, *patience) {
            return Ended::By(*signal);
        }
    }
    Ended::Leftovers(members_of_group(leader.pid))
}

fn is_ours(leader: &ProcessStamp) -> bool {
    match stamp(leader.pid) {
        Some(bearer) => bearer == *leader,
        None => members_of_group(leader.pid).iter().any(|member| {
            system::look(member.stamp.pid).is_some_and(|seen| seen.session == leader.pid)
        }),
    }
}

fn gone_within(pgid: u32, patience: Duration) -> bool {
    let deadline = Instant::now() + patience;
    loop {
        if members_of_group(pgid).is_empty() {
            return true;
        }
        if Instant::now() >= deadline {
            return false;
        }
        thread::sleep(POLL);
    }
}

/// Returns the name of this machine, for records on a shared database.
pub fn host_name() -> String {
    system::host_name()
        .map(|name| name.trim().to_owned())
        .ok()
        .filter(|name| !name.is_empty())
        .unwrap_or_else(|| "localhost".to_owned())
}

/// A process as the system shows it.
#[derive(Clone, Debug)]
struct Seen {
    member: Member,
    parent: u32,
    group: u32,
    session: u32,
}

#[cfg(target_os = "linux")]
mod system {
    use std::{fs, io, sync::LazyLock};

    use super::{Member, ProcessStamp, Seen};

    /// The id of the boot: ticks count from the boot, so its id goes with them.
    static BOOT: LazyLock<String> = LazyLock::new(|| {
        fs::read_to_string("/proc/sys/kernel/random/boot_id")
            .map(|id| id.chars().filter(char::is_ascii_hexdigit).take(8).collect())
            .unwrap_or_default()
    });

    pub(super) fn look(pid: u32) -> Option<Seen> {
        let stat = fs::read(format!("/proc/{pid}/stat")).ok()?;
        parse(pid, &stat, &BOOT)
    }

    pub(super) fn all() -> Vec<Seen> {
        let Ok(entries) = fs::read_dir("/proc") else {
            return Vec::new();
        };
        entries
            .filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok())
            .filter_map(look)
            .collect()
    }

    pub(super) fn host_name() -> io::Result<String> {
        fs::read_to_string("/proc/sys/kernel/hostname")
    }

    /// Reads `pid (name) state ppid pgrp session …`; the name may hold spaces and parentheses, so
    /// the fields are counted from the last one. Field 22 is the start time in ticks.
    pub(super) fn parse(pid: u32, stat: &[u8], boot: &str) -> Option<Seen> {
        let stat = String::from_utf8_lossy(stat);
        let open = stat.find('(')?;
        let close = stat.rfind(')')?;
        let name = stat.get(open + 1..close)?.to_owned();
        let fields: Vec<_> = stat.get(close + 1..)?.split_ascii_whitespace().collect();
        // The list starts with field 3, the state: Z is a zombie, X and x are dead.
        if matches!(*fields.first()?, "Z" | "X" | "x") {
            return None;
        }
        let start_time = format!("{}@{boot}", fields.get(19)?.parse::<u64>().ok()?);
        let stamp = ProcessStamp { pid, start_time };
        Some(Seen {
            member: Member { stamp, name },
            parent: fields.get(1)?.parse().ok()?,
            group: fields.get(2)?.parse().ok()?,
            session: fields.get(3)?.parse().ok()?,
        })
    }
}

#[cfg(not(target_os = "linux"))]
mod system {
    use std::{io, process::Command};

    use rustix::process::{Pid, getsid};

    use super::{Member, ProcessStamp, Seen};

    pub(super) fn look(pid: u32) -> Option<Seen> {
        ps(&["-p", &pid.to_string()]).into_iter().next()
    }

    pub(super) fn all() -> Vec<Seen> {
        ps(&["-A"])
    }

    pub(super) fn host_name() -> io::Result<String> {
        let output = Command::new("hostname").output()?;
        Ok(String::from_utf8_lossy(&output.stdout).into_owned())
    }

    fn ps(which: &[&str]) -> Vec<Seen> {
        let output = Command::new("ps")
            .args(which)
            .args(["-o", "pid=,ppid=,pgid=,stat=,lstart=,comm="])
            .env("LC_ALL", "C")
            .env("TZ", "UTC")
            .output();
        match output {
            Ok(output) => String::from_utf8_lossy(&output.stdout)
                .lines()
                .filter_map(parse)
                .collect(),
            Err(error) => {
                tracing::warn!(%error, "could not run ps");
                Vec::new()
            }
        }
    }

    /// Reads `pid ppid pgid stat Sat Nov 21 07:51:44 2026 name`.
    fn parse(line: &str) -> Option<Seen> {
        let fields: Vec<_> = line.split_ascii_whitespace().collect();
        let pid: u32 = fields.first()?.parse().ok()?;
        if fields.get(3)?.starts_with('Z') {
            return None;
        }
        // `ps` shows no session number here; the call does.
        let session = i32::try_from(pid)
            .ok()
            .and_then(Pid::from_raw)
            .and_then(|pid| getsid(Some(pid)).ok())
            .map_or(0, |sid| sid.as_raw_nonzero().get().unsigned_abs());
        let start_time = fields.get(4..9)?.join(" ");
        let stamp = ProcessStamp { pid, start_time };
        let name = fields.get(9..)?.join(" ");
        Some(Seen {
            member: Member { stamp, name },
            parent: fields.get(1)?.parse().ok()?,
            group: fields.get(2)?.parse().ok()?,
            session,
        })
    }
}

#[cfg(test)]
mod tests {
    use std::{
        os::unix::process::CommandExt,
        process::{Child, Command, Stdio},
    };

    use super::*;

    /// Starts a shell that leads a group of its own.
    fn shell(script: &str) -> Child {
        Command::new("sh")
            .args(["-c", script])
            .process_group(0)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap()
    }

    /// Waits until the shell has reported that its traps are set.
    fn ready(child: &mut Child) {
        use std::io::Read;
        let mut byte = [0];
        child
            .stdout
            .as_mut()
            .unwrap()
            .read_exact(&mut byte)
            .unwrap();
    }

    fn signals(patience: u64) -> Vec<StopStep> {
        LEFTOVER_STEPS
            .iter()
            .map(|(signal, _)| (*signal, Duration::from_millis(patience)))
            .collect()
    }

    #[test]
    fn we_are_alive_and_our_number_with_another_start_is_not() {
        let me = stamp(std::process::id()).unwrap();
        assert!(alive(&me));
        assert!(!alive(&ProcessStamp {
            start_time: "1@0".to_owned(),
            ..me
        }));
    }

    #[test]
    fn a_dead_child_is_dead_before_it_is_reaped() {
        let mut child = shell("echo; sleep 30");
        ready(&mut child);
        let stamp = stamp(child.id()).unwrap();
        child.kill().unwrap();
        let deadline = Instant::now() + Duration::from_secs(5);
        while alive(&stamp) && Instant::now() < deadline {
            thread::yield_now();
        }
        assert!(!alive(&stamp));
        child.wait().unwrap();
        let _ = end_group(&stamp, &signals(200));
    }

    #[test]
    fn a_group_ends_whole_by_the_first_signal_that_works() {
        let mut child = shell("sleep 30 & sleep 30 & echo; wait");
        ready(&mut child);
        let leader = stamp(child.id()).unwrap();
        assert!(members_of_group(leader.pid).len() >= 3);
        let reaper = thread::spawn(move || child.wait());
        // Under `nohup` the children ignore SIGHUP from the start.
        let ignored = ignores(&[Signal::HUP]) == Some(true);
        let works = if ignored { Signal::TERM } else { Signal::HUP };
        assert_eq!(end_group(&leader, &signals(2_000)), Ended::By(works));
        assert_eq!(members_of_group(leader.pid), []);
        reaper.join().unwrap().unwrap();
    }

    #[test]
    fn a_stubborn_group_ends_by_the_last_signal() {
        let mut child = shell("trap '' HUP TERM; echo; while :; do sleep 30; done");
        ready(&mut child);
        let leader = stamp(child.id()).unwrap();
        let reaper = thread::spawn(move || child.wait());
        let mut signals = signals(200);
        signals[2].1 = Duration::from_secs(5);
        assert_eq!(end_group(&leader, &signals), Ended::By(Signal::KILL));
        reaper.join().unwrap().unwrap();
    }

    #[test]
    fn a_number_that_now_belongs_to_another_is_left_alone() {
        let mut child = shell("echo; sleep 30");
        ready(&mut child);
        let mut other = stamp(child.id()).unwrap();
        other.start_time.push('x');
        assert_eq!(end_group(&other, &signals(10)), Ended::AlreadyGone);
        assert!(stamp(child.id()).is_some());
        let real = stamp(child.id()).unwrap();
        let reaper = thread::spawn(move || child.wait());
        let _ = end_group(&real, &signals(5_000));
        reaper.join().unwrap().unwrap();
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn a_name_full_of_parentheses_does_not_move_the_fields() {
        let stat = b"42 (a) S 1 (b)) R 1 40 39 0 -1 0 0 0 0 0 1 2 3 4 20 0 1 0 777 0 0";
        let seen = system::parse(42, stat, "boot").unwrap();
        assert_eq!((seen.group, seen.session), (40, 39));
        assert_eq!(seen.member.stamp.start_time, "777@boot");
        assert_eq!(seen.member.name, "a) S 1 (b)");
        assert!(system::parse(42, b"42 (z) Z 1 40 39 0", "boot").is_none());
        for cut in 0..stat.len() {
            let _ = system::parse(42, &stat[..cut], "boot");
        }
    }
}
