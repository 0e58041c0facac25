//! Living processes, as the system lists them.

// The kit is shared, and each test uses a part of it.
#![allow(dead_code)]

use std::fs;

use rustix::process::Pid;

/// A process.
#[derive(Clone, Debug)]
pub struct Process {
    pub pid: i32,
    pub parent: i32,
    pub group: i32,
    pub session: i32,
    pub command: String,
}

impl Process {
    /// Whether it has a terminal of its own, as the agent in a pane has; git and the writers of summaries lead a group alone.
    pub fn leads_session(&self) -> bool {
        self.session == self.pid
    }

    /// Whether it is the supervisor of a terminal's session.
    pub fn is_server(&self) -> bool {
        self.command.trim_end() == "pitstop server"
    }

    /// Whether it writes a summary.
    pub fn is_side(&self) -> bool {
        self.command.contains("--no-session-persistence")
    }
}

/// A living process by its number; none for a zombie.
pub fn look(pid: i32) -> Option<Process> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The name stands in parentheses and may hold anything.
    let mut words = stat.rsplit_once(')')?.1.split_whitespace();
    let state = words.next()?;
    let parent = words.next()?.parse().ok()?;
    let group = words.next()?.parse().ok()?;
    let session = words.next()?.parse().ok()?;
    let command = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    let command = String::from_utf8_lossy(&command).replace('\0', " ");
    (!matches!(state, "Z" | "X")).then_some(Process {
        pid,
        parent,
        group,
        session,
        command: command.chars().take(400).collect(),
    })
}

/// The supervisor that a client has started, while the client lives.
pub fn server_of(client: Pid) -> Option<Pid> {
    let client = client.as_raw_nonzero().get();
    let entries = fs::read_dir("/proc").ok()?.flatten();
    let found = entries
        .filter_map(|entry| look(entry.file_name().to_str()?.parse().ok()?))
        .find(|one| one.parent == client && one.is_server())?;
    Pid::from_raw(found.pid)
}
