//! The sessions of other machines: those of `[fleet] hosts`, each of which is asked over the system's ssh, and those that a store on a
//! shared server has a record of. Each is asked by a process of its own that outlives a list. So no list ever waits for one; it shows
//! what was said last, and how long ago.

use std::{
    env,
    fs::{self, File},
    io::Read as _,
    os::unix::process::CommandExt as _,
    path::PathBuf,
    process::{Command, Stdio},
    thread,
    time::{Duration, Instant},
};

use chrono::{DateTime, TimeDelta, Utc};
use rustix::fs::FlockOperation;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::{
    here::Here,
    out::{self, Failure, Outcome},
};
use crate::runtime::{daemon::wait_until, wall};
use pitstop_agent::AgentKind;
use pitstop_core::{
    api::wire::{AgentState, StatusReport},
    config::is_host,
    lineage::Iteration,
};
use pitstop_store::{PrivateDir, RunHistory, StoreTarget};

/// The flags by which this program has itself ask a host, and print only the sessions of this machine.
pub(super) const ASK_FLAG: &str = "--ask-host";
const LOCAL_FLAG: &str = "--local";

/// The time that a host has to answer.
const ANSWER_LIMIT: Duration = Duration::from_secs(15);

/// The time between two questions to a host.
const FRESH: Duration = Duration::from_secs(5);

/// The longest answer that is taken, in bytes.
const LONGEST: u64 = 4 << 20;

/// The error of a host that was asked for the first time and has not answered yet.
pub(super) const NOT_YET: &str = "it has not answered yet";

/// The word for the shared store in the place of a host; no host is named so.
const SHARED_STORE: &str = "shared store";

/// The most runs of other machines that are read from the store, and the age at which one is taken to be dead.
const RUNS: u32 = 200;
const DEAD: TimeDelta = TimeDelta::days(7);

/// The directory of the answers, below the state directory.
const PLACE: &str = "fleet";

/// How a shell on another machine finds pitstop: one that is not a login shell often lacks these places.
const THERE: &str = "PATH=\"$PATH:$HOME/.cargo/bin:$HOME/.local/bin:/usr/local/bin\" exec pitstop";

/// The exit codes of ssh where it has failed itself, and of a shell that finds no such program.
const SSH_FAILED: i32 = 255;
const NOT_FOUND: i32 = 127;

/// What a host said last.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub(super) struct HostAnswer {
    /// The name by which ssh knows the host.
    pub host: String,
    /// The time of its last answer; `None` if it has never answered.
    pub answered_at: Option<DateTime<Utc>>,
    /// Why the last question got no answer; `None` if it got one.
    pub error: Option<String>,
    /// The sessions of that answer.
    pub sessions: Vec<Value>,
}

impl HostAnswer {
    /// Reports whether it may not be true any more.
    pub fn is_old(&self, now: DateTime<Utc>) -> bool {
        let age = self.answered_at.map(|at| now.signed_duration_since(at));
        // One from the future was given before the clock was set back.
        let is_aged = |age: TimeDelta| age.to_std().map_or(true, |age| age > 2 * ANSWER_LIMIT);
        self.error.is_some() || age.is_some_and(is_aged)
    }

    /// Returns its sessions, each with its status, if this version can read that.
    pub fn read_reports(&self) -> impl Iterator<Item = (Option<StatusReport>, &Value)> {
        let read = |one| (serde_json::from_value(Value::clone(one)).ok(), one);
        self.sessions.iter().map(read)
    }

    /// Returns the host of one of its sessions: only the shared store names another one.
    pub fn host_of(&self, session: &Value) -> String {
        let named = session["host"]
            .as_str()
            .filter(|_| self.host == SHARED_STORE);
        named.unwrap_or(&self.host).to_owned()
    }

    /// Returns what is known of the host itself, for scripts.
    pub fn host_json(&self) -> Value {
        json!({ "host": self.host, "answered_at": self.answered_at, "error": self.error })
    }
}

/// What is listed beside this machine.
#[derive(Clone, Debug)]
pub(super) struct Fleet {
    /// The hosts, and the word for the shared store if there is one.
    hosts: Vec<String>,
    /// The state directory.
    state: PathBuf,
}

impl Fleet {
    /// Returns the fleet by the configuration; with `local` there is none.
    pub fn of(here: &Here, local: bool) -> Self {
        let mut hosts = here.config.fleet.hosts.clone();
        if !matches!(here.target, StoreTarget::Sqlite(_)) {
            hosts.push(SHARED_STORE.to_owned());
        }
        hosts.retain(|_| !local);
        Self {
            hosts,
            state: here.paths.state_dir().to_owned(),
        }
    }

    /// Has every host asked that was not asked just now, and returns what each has said last, at once.
    pub fn ask_hosts(&self) -> Vec<HostAnswer> {
        for host in &self.hosts {
            if self.asked_since(host).is_none_or(|age| age > FRESH) {
                ask_apart(host);
            }
        }
        self.hosts
            .iter()
            .map(|host| self.known_answer(host))
            .collect()
    }

    /// Returns how long ago a host was asked; `None` if it never was.
    fn asked_since(&self, host: &str) -> Option<Duration> {
        let file = self.state.join(PLACE).join(lock_of(host));
        let asked = file.metadata().and_then(|file| file.modified()).ok()?;
        // One ahead of the clock was asked before that was set back: how long ago is not known.
        asked.elapsed().ok()
    }

    fn known_answer(&self, host: &str) -> HostAnswer {
        let read = fs::read(self.state.join(PLACE).join(file_of(host))).ok();
        let known: Option<HostAnswer> = read.and_then(|text| serde_json::from_slice(&text).ok());
        HostAnswer {
            host: host.to_owned(),
            ..known.unwrap_or_else(|| HostAnswer {
                error: Some(NOT_YET.to_owned()),
                ..HostAnswer::default()
            })
        }
    }
}

/// Has another process ask a host, which goes on when this one ends.
fn ask_apart(host: &str) {
    let started = env::current_exe().and_then(|own| {
        Command::new(own)
            .args(["ls", ASK_FLAG, host])
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .process_group(0)
            .spawn()
    });
    match started {
        // Nothing is left of it when it has ended.
        Ok(mut child) => drop(thread::spawn(move || child.wait())),
        Err(error) => tracing::warn!(host, %error, "a host cannot be asked"),
    }
}

/// Asks a host and keeps its answer. Only one process at a time asks a host.
pub(super) fn ask_host(host: &str, here: &Here) -> Outcome {
    if !is_host(host) && host != SHARED_STORE {
        return Err(out::misused("expected the name of a host", ""));
    }
    let state = here.paths.state_dir();
    let kept = PrivateDir::open_path(state)?.dir(PLACE)?;
    let lock = File::create(kept.path().join(lock_of(host)));
    let alone = lock.as_ref().is_ok_and(|lock| {
        rustix::fs::flock(lock, FlockOperation::NonBlockingLockExclusive).is_ok()
    });
    if !alone {
        return Ok(out::OK);
    }
    let mut answer = Fleet::of(here, true).known_answer(host);
    let sessions = if host == SHARED_STORE {
        recorded_sessions(here)
    } else {
        ask_machine(host)
    };
    match sessions {
        Ok(sessions) => {
            answer.answered_at = Some(wall());
            answer.error = None;
            answer.sessions = sessions;
        }
        Err(error) => answer.error = Some(error),
    }
    let text = json!(answer).to_string();
    kept.write_private(&file_of(host), text.as_bytes())?;
    Ok(out::OK)
}

/// Asks a host for its sessions.
fn ask_machine(host: &str) -> Result<Vec<Value>, String> {
    let mut ssh = Command::new("ssh")
        .args(["-T", "-o", "BatchMode=yes", "-o", "ConnectTimeout=10", "--"])
        .arg(host)
        .arg(in_sh(&format!("{THERE} ls --json {LOCAL_FLAG}")))
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .map_err(|error| format!("ssh cannot be started: {error}"))?;
    let (mut stdout, mut stderr) = (ssh.stdout.take(), ssh.stderr.take());
    let answer = thread::spawn(move || read_stream(stdout.as_mut()));
    let complaint = thread::spawn(move || read_stream(stderr.as_mut()));
    let limit = Instant::now() + ANSWER_LIMIT;
    let Some(status) = wait_until(limit, &mut ssh) else {
        return Err(format!("no answer in {} s", ANSWER_LIMIT.as_secs()));
    };
    let answer = answer.join().unwrap_or_default();
    if !status.success() {
        let complaint = complaint.join().unwrap_or_default();
        return Err(describe_failure(status.code(), &complaint));
    }
    // Some logins greet, in front of the answer or behind it.
    let mut lines = answer.lines().rev();
    let sessions = lines.find_map(|line| {
        let read: Value = serde_json::from_str(line).ok()?;
        read["sessions"].as_array().cloned()
    });
    sessions.ok_or_else(|| "its answer is no list of sessions".to_owned())
}

/// Returns a line for a shell of any kind that has the usual one run this.
fn in_sh(line: &str) -> String {
    format!("exec sh -c {}", shell_words::quote(line))
}

/// Returns why a host gave no answer, by the exit code of ssh and what was printed as errors.
fn describe_failure(code: Option<i32>, complaint: &str) -> String {
    if code == Some(NOT_FOUND) {
        return "pitstop is not installed there: it is in none of the PATH, ~/.cargo/bin, ~/.local/bin and /usr/local/bin".to_owned();
    }
    let whose = match code {
        Some(SSH_FAILED) | None => "ssh",
        Some(_) => "pitstop there",
    };
    let mut lines = complaint.trim().lines();
    let said = lines.clone().find_map(|line| line.strip_prefix("error: "));
    let said = said.or(lines.next_back()).unwrap_or("no reason given");
    let said: String = said.chars().take(200).collect();
    format!("{whose}: {said}")
}

/// Returns the sessions of other machines by their records in the shared store.
fn recorded_sessions(here: &Here) -> Result<Vec<Value>, String> {
    let host = &here.project.host;
    let read = here.with_store(async |store| store.open_elsewhere(host, RUNS).await);
    let runs = read.map_err(|_| "the store cannot be read".to_owned())?;
    let now = wall();
    let lives = |one: &&RunHistory| now.signed_duration_since(one.run.started_at) < DEAD;
    Ok(runs.iter().filter(lives).map(session_of).collect())
}

/// Returns what a record says of a run, in the form of a status. What only its supervisor knows is not in it.
fn session_of(RunHistory { run, iterations }: &RunHistory) -> Value {
    let last = iterations.last();
    let used = last.and_then(|one| one.tokens_at_end.or(one.tokens_at_birth));
    let costs = iterations.iter().filter_map(Iteration::total_cost);
    let cost = costs.reduce(|sum, one| sum + one);
    json!({
        "host": run.project.host,
        "project": run.project.path,
        "version": run.version,
        "pid": run.process.pid,
        "run_id": run.run.to_string(),
        "session_id": last.and_then(|one| one.session_id).map(|id| id.to_string()),
        "iteration": last.map_or(1, |one| one.iteration.get()),
        "mode": "",
        "zoomed": false,
        "objective": run.task,
        "started_at": run.started_at,
        "agent": {
            "kind": AgentKind::Claude,
            "command": run.agent,
            "state": AgentState::Unknown,
            "reason": "known by its record in the shared store only",
        },
        "context": { "used": used.map(|tokens| tokens.0) },
        "reboot": { "phase": "idle", "blocked_by": [] },
        "cost_usd": cost,
    })
}

fn read_stream(stream: Option<&mut impl std::io::Read>) -> String {
    let mut bytes = Vec::new();
    if let Some(stream) = stream {
        // An error ends the reading; the caller checks what came before it.
        let _ = stream.take(LONGEST).read_to_end(&mut bytes);
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

/// Shows a session of another machine in this terminal; returns only if that cannot be started.
pub(super) fn attach_host(host: &str, project: &str) -> Failure {
    let there = in_sh(&format!(
        "cd -- {} && {THERE} attach",
        shell_words::quote(project)
    ));
    let error = Command::new("ssh").args(["-t", "--", host, &there]).exec();
    out::failed(format!("ssh cannot be started: {error}"), "")
}

/// Returns the name of the file that the process that asks a host has locked; it was written when the host was last asked.
fn lock_of(host: &str) -> String {
    format!("{host}.lock")
}

fn file_of(host: &str) -> String {
    format!("{host}.json")
}

#[cfg(test)]
mod tests {
    use super::*;
    use pitstop_core::lineage::{EndReason, Lineage, ProcessStamp, Project, RunId};
    use pitstop_handoff::summary::{SummaryMade, SummarySource};
    use pitstop_store::RunRecord;

    #[test]
    fn an_answer_from_before_the_clock_was_set_back_is_old() {
        let now = wall();
        let answer = |seconds| HostAnswer {
            answered_at: Some(now + TimeDelta::seconds(seconds)),
            ..HostAnswer::default()
        };
        assert!(!answer(-1).is_old(now));
        assert!(answer(-3_600).is_old(now));
        assert!(answer(3_600).is_old(now));
    }

    #[test]
    fn a_recorded_run_costs_what_its_iterations_have_cost_and_nothing_is_made_up() {
        let started = wall();
        for (costs, expected) in [
            (&[][..], json!(null)),
            (&[(None, None), (None, None)][..], json!(null)),
            (&[(Some(1.5), None), (None, Some(0.25))][..], json!(1.75)),
        ] {
            let mut lineage = Lineage::new(RunId::new(started, [1, 2, 3]));
            for (cost, summary) in costs {
                lineage.open(None, None, started).unwrap();
                let current = lineage.current_mut().unwrap();
                current.cost_usd = *cost;
                current.summary_made = Some(SummaryMade {
                    source: SummarySource::Model,
                    cost_usd: *summary,
                    duration_ms: None,
                    reason: None,
                });
                lineage.close(started, EndReason::Shutdown).unwrap();
            }
            let history = RunHistory {
                run: RunRecord {
                    run: RunId::new(started, [1, 2, 3]),
                    project: Project::new(std::path::Path::new("/p"), "desk"),
                    process: ProcessStamp {
                        pid: 1,
                        start_time: "x".to_owned(),
                    },
                    agent: "claude".to_owned(),
                    version: "0".to_owned(),
                    task: None,
                    started_at: started,
                    ended_at: None,
                    end_reason: None,
                },
                iterations: lineage.iterations().to_vec(),
            };
            assert_eq!(session_of(&history)["cost_usd"], expected);
        }
    }
}
