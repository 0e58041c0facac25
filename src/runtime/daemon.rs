//! Looks for sessions that the client has moved to its daemon, and ends them, on threads of their own.
//!
//! ```text
//!   loop ── FindMoved ──► thread: roster ──────────────────────── Moved ──► loop
//!        ── EndMoved ───► thread: roster, `claude stop`, roster ─ MovedEnded ─► loop
//! ```

use std::{
    ffi::OsString,
    io,
    os::unix::process::CommandExt as _,
    path::{Path, PathBuf},
    process::{Child, Command, ExitStatus, Stdio},
    thread,
    time::{Duration, Instant},
};

use pitstop_agent::{
    self as agent,
    claude::daemon::{self, Worker},
};
use pitstop_base::{clean::chain, private_file::read_at_most, process};
use pitstop_core::{
    app::{Event, event::ReadEvent},
    lineage::ProcessStamp,
};
use pitstop_transcript::{SessionId, tail};

use super::{Shell, agent::transcript_in};

/// The time that a worker may take to be listed: the client shows its list of agents first.
const APPEARS: Duration = Duration::from_secs(1);

/// The time that a fork may take to be listed after the agent view was seen.
const FORKS: Duration = Duration::from_secs(5);

/// The pause between two looks.
const BETWEEN_LOOKS: Duration = Duration::from_millis(25);

/// The facts about the client that a thread needs.
struct Client {
    program: PathBuf,
    env: Vec<(OsString, OsString)>,
    project: PathBuf,
    config_dir: PathBuf,
}

impl Shell {
    fn client(&self) -> Option<Client> {
        let plan = &self.agent;
        Some(Client {
            program: plan.program.clone(),
            env: agent::child_env(std::env::vars_os(), &plan.env),
            project: plan.project.clone(),
            config_dir: plan.config_dir.clone()?,
        })
    }

    /// Checks whether the daemon runs a fork of one of `from`; reports it only if it does.
    pub(super) fn find_moved(&mut self, from: Vec<SessionId>) {
        let Some(client) = self.client() else { return };
        let events = self.events.clone();
        let look = move || {
            let is_it =
                |worker: &Worker| worker.belongs_to(&from) && !from.contains(&worker.session);
            let found = until(Instant::now() + FORKS, || {
                client.workers().into_iter().find(is_it)
            });
            if let Some(Worker { session, .. }) = found {
                // The loop is gone, then.
                let _ = events.blocking_send(Event::Read(ReadEvent::Moved { session }));
            }
        };
        if let Err(error) = spawn(look) {
            tracing::warn!(%error, "the client's daemon cannot be looked at");
        }
    }

    /// Ends the workers that the daemon runs for these sessions, within about `limit`.
    pub(super) fn end_moved(&mut self, sessions: Vec<SessionId>, limit: Duration) {
        let events = self.events.clone();
        let client = self.client();
        let end = move || {
            let (holds, left) = client.map_or((None, None), |client| {
                let left = client.end(&sessions, limit).err();
                (client.holding(&sessions), left)
            });
            let _ = events.blocking_send(Event::Read(ReadEvent::MovedEnded { holds, left }));
        };
        if let Err(error) = spawn(end) {
            let (holds, left) = (None, Some(format!("no thread to end it: {error}")));
            self.post(Event::Read(ReadEvent::MovedEnded { holds, left }));
        }
    }
}

fn spawn(work: impl FnOnce() + Send + 'static) -> io::Result<()> {
    thread::Builder::new()
        .name("daemon".to_owned())
        .spawn(work)
        .map(drop)
}

/// Asks until there is an answer or the time is over; asks at least once.
pub(super) fn until<T>(end: Instant, mut ask: impl FnMut() -> Option<T>) -> Option<T> {
    loop {
        let answer = ask();
        if answer.is_some() || Instant::now() >= end {
            return answer;
        }
        thread::park_timeout(BETWEEN_LOOKS);
    }
}

/// Waits for the end of a process; one that takes too long is killed.
pub fn wait_until(end: Instant, child: &mut Child) -> Option<ExitStatus> {
    let status = until(end, || child.try_wait().transpose());
    let status = status.and_then(Result::ok);
    if status.is_none() {
        let _ = child.kill();
        let _ = child.wait();
    }
    status
}

impl Client {
    /// Returns the workers that the daemon lists; none if there is no daemon.
    fn workers(&self) -> Vec<Worker> {
        read_roster(&self.config_dir)
            .inspect_err(|error| tracing::warn!(error, "the daemon's roster cannot be read"))
            .unwrap_or_default()
    }

    /// Returns the last of these sessions that has a conversation on disk.
    fn holding(&self, sessions: &[SessionId]) -> Option<SessionId> {
        let holds = |session: &SessionId| {
            let transcript = transcript_in(&self.config_dir, *session);
            transcript.is_some_and(|path| tail::holds_conversation(path).unwrap_or_default())
        };
        sessions.iter().rev().copied().find(holds)
    }

    fn end(&self, sessions: &[SessionId], limit: Duration) -> Result<(), String> {
        let began = Instant::now();
        let end = began + limit;
        let mine = || {
            let mut all = self.workers();
            all.retain(|worker| worker.belongs_to(sessions));
            (!all.is_empty()).then_some(all)
        };
        let found = until(end.min(began + APPEARS), mine).unwrap_or_default();
        // The processes that they were when they were found: a number may be another's by then.
        let stamps: Vec<Option<ProcessStamp>> =
            found.iter().map(|one| process::stamp(one.pid)).collect();
        let mut failed = Vec::new();
        for (Worker { name, session, .. }, stamp) in found.iter().zip(&stamps) {
            if let Err(why) = self.end_one(name, stamp.as_ref(), end) {
                tracing::error!(
                    worker = name,
                    why,
                    "a session in the client's daemon goes on"
                );
                failed.push(format!("{name} ({why})"));
            } else {
                tracing::info!(worker = name, %session, "a session in the client's daemon was ended");
            }
        }
        if failed.is_empty() {
            return Ok(());
        }
        Err(failed.join(", "))
    }

    fn end_one(
        &self,
        name: &str,
        stamp: Option<&ProcessStamp>,
        end: Instant,
    ) -> Result<(), String> {
        let stopped = self.stop(name, end);
        let Some(stamp) = stamp else {
            return stopped;
        };
        let gone = || (!process::alive(stamp)).then_some(());
        if until(end, gone).is_some() {
            return Ok(());
        }
        // The client could not end it, so that we do.
        match process::end_group(stamp, &process::LEFTOVER_STEPS) {
            process::Ended::Leftovers(_) => Err(stopped
                .err()
                .unwrap_or_else(|| "it outlives SIGKILL".to_owned())),
            process::Ended::AlreadyGone | process::Ended::By(_) => Ok(()),
        }
    }

    /// Has the client end the worker of this name.
    fn stop(&self, name: &str, end: Instant) -> Result<(), String> {
        let mut child = Command::new(&self.program)
            .args(["stop", name])
            .env_clear()
            .envs(self.env.iter().cloned())
            .current_dir(&self.project)
            .process_group(0)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .map_err(|error| chain(&error))?;
        match wait_until(end, &mut child) {
            Some(status) if status.success() => Ok(()),
            Some(status) => Err(format!("`claude stop {name}` failed: {status}")),
            None => Err(format!("`claude stop {name}` took too long")),
        }
    }
}

fn read_roster(config_dir: &Path) -> Result<Vec<Worker>, String> {
    let path = config_dir.join(daemon::ROSTER);
    let Some(file) = tail::open_ours(&path).map_err(|error| chain(&error))? else {
        return Ok(Vec::new());
    };
    let bytes = read_at_most(daemon::ROSTER_CAP, file).map_err(|error| chain(&error))?;
    Ok(daemon::workers(&bytes))
}

#[cfg(test)]
mod tests {
    use std::{fs, os::unix::fs::PermissionsExt as _};

    use super::*;

    const OURS: &str = "00000000-0000-4000-8000-000000000001";
    const FORK: &str = "00000000-0000-4000-8000-000000000002";

    /// Sets up a daemon that lists one worker, a real process, forked from our session; `claude` is this script.
    fn daemon(script: &str) -> (tempfile::TempDir, Client, std::process::Child) {
        let home = tempfile::tempdir().unwrap();
        let worker = Command::new("sleep")
            .arg("600")
            .process_group(0)
            .spawn()
            .unwrap();
        fs::create_dir_all(home.path().join("daemon")).unwrap();
        let roster = serde_json::json!({"workers": {"00aa": {
            "pid": worker.id(), "sessionId": FORK,
            "dispatch": {"launch": {"fork": true, "sessionId": format!("/x/{OURS}.jsonl")}},
        }}});
        fs::write(home.path().join(daemon::ROSTER), roster.to_string()).unwrap();
        let program = home.path().join("claude");
        fs::write(&program, format!("#!/bin/sh\n{script}\n")).unwrap();
        fs::set_permissions(&program, fs::Permissions::from_mode(0o700)).unwrap();
        let client = Client {
            program,
            env: vec![
                ("PATH".into(), "/usr/bin:/bin".into()),
                ("WORKER".into(), worker.id().to_string().into()),
            ],
            project: home.path().to_owned(),
            config_dir: home.path().to_owned(),
        };
        (home, client, worker)
    }

    /// Reports whether the worker has ended; reaps it, because it is this test's child.
    fn is_over(worker: &mut std::process::Child) -> bool {
        worker.try_wait().unwrap().is_some()
    }

    #[test]
    fn a_fork_of_ours_is_stopped_by_the_client() {
        let (home, client, mut worker) =
            daemon(r#"[ "$*" = "stop 00aa" ] && kill "$WORKER" && echo "$*" > said"#);
        let limit = Duration::from_secs(10);
        client.end(&[OURS.parse().unwrap()], limit).unwrap();
        assert!(is_over(&mut worker));
        assert_eq!(
            fs::read_to_string(home.path().join("said")).unwrap(),
            "stop 00aa\n"
        );
    }

    #[test]
    fn one_that_the_client_cannot_stop_in_time_is_ended_all_the_same() {
        let (_home, client, mut worker) = daemon("sleep 600");
        let limit = Duration::from_millis(300);
        client.end(&[FORK.parse().unwrap()], limit).unwrap();
        assert!(is_over(&mut worker));
    }

    #[test]
    fn a_session_of_another_is_left_alone() {
        let (home, client, mut worker) = daemon("touch ran");
        let other = "00000000-0000-4000-8000-000000000009".parse().unwrap();
        client.end(&[other], Duration::from_millis(100)).unwrap();
        assert!(!is_over(&mut worker) && !home.path().join("ran").exists());
        worker.kill().unwrap();
        worker.wait().unwrap();
        // No daemon at all.
        fs::remove_dir_all(home.path().join("daemon")).unwrap();
        client.end(&[other], Duration::ZERO).unwrap();
    }
}
