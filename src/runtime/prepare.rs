//! The preparation of a reboot: its files are made and checked before the old agent is touched, and the user's own commands
//! around a reboot are run, all of it off the loop.
//!
//! ```text
//!   loop ── Prepare ──► directories, settings, handoff.md, program, descriptors, disks ──► pre_reboot ── Prepared ──► loop
//!        ── RunPostReboot ─► post_reboot ── EffectFailed, if it fails ──► loop
//! ```

use std::{fs::File, io, path::Path, sync::Arc, time::Duration};

use rustix::fs::Access;

use pitstop_agent::bridge::ToolsBy;
use pitstop_base::{clean::chain, format};
use pitstop_core::app::{
    Event,
    effect::{Preparation, RebootResult, ReplacedCopy},
    event::ReadEvent,
};
use pitstop_store::run_dir::HANDOFF;

use super::{Shell, agent::AgentPlan, trim, user_command::UserCommand};

/// The time that the files may take: a disk that hangs must not leave the reboot waiting for ever.
const FILES_LIMIT: Duration = Duration::from_secs(10);

/// The number of times that the reboot of an unattended run is prepared before it is refused, which ends the run: an update
/// removes the agent's program before the new one is unpacked, and a disk that is full may be emptied.
const TRIES_OF_RUN: u32 = 120;

/// The pause between two of them.
const TRY_AGAIN: Duration = Duration::from_secs(1);

/// The number of bytes of address space that a start needs. Threads and their heaps reserve far more than they use; with less, an
/// allocation fails some time later, which ends the process at once and leaves the host terminal in disorder.
pub const ADDRESS_SPACE: u64 = 1 << 30;

/// The number of files that must be free to be opened when the supervisor starts: its own, the first agent's, and a reboot's.
pub const DESCRIPTORS_AT_START: usize = 40;

/// The number of files that must be free to be opened for a reboot: the new agent's terminal, its recording, pipes and threads' own.
const DESCRIPTORS: usize = 24;

/// The number of bytes that a disk must have free: each step of a reboot is journaled with the handoff, and the agent writes that
/// into its transcript.
pub const ROOM: u64 = 256 * 1024;

impl Shell {
    /// Makes and checks what the next agent needs; then runs the user's `pre_reboot`, which may refuse the reboot.
    pub(super) fn prepare(&self, preparation: Preparation) {
        let plan = Arc::clone(&self.agent);
        let no_compaction = self.core.view().session.agent.holds_compaction;
        let hooks = &self.core.view().config.hooks;
        let (command, limit) = (hooks.pre_reboot.clone(), hooks.timeout);
        self.spawn(async move {
            let attempt = preparation.attempt;
            let hook = command.zip(preparation.hook.clone());
            let project = plan.project.clone();
            let preparation = Arc::new(preparation);
            let tries = if preparation.is_patient {
                TRIES_OF_RUN
            } else {
                1
            };
            let mut outcome = try_often(tries, TRY_AGAIN, || {
                let (plan, preparation) = (Arc::clone(&plan), Arc::clone(&preparation));
                let work =
                    tokio::task::spawn_blocking(move || make(&plan, &preparation, no_compaction));
                async move {
                    match tokio::time::timeout(FILES_LIMIT, work).await {
                        Ok(Ok(done)) => done,
                        Ok(Err(error)) => Err(chain(&error)),
                        Err(_) => Err(format!(
                            "what the new session needs could not be written within {} s",
                            FILES_LIMIT.as_secs()
                        )),
                    }
                }
            })
            .await;
            if let (Ok(()), Some((command, about))) = (&outcome, hook) {
                outcome = run(&command, &about, &project, limit).await;
            }
            let refused = outcome.err();
            Some(Event::Read(ReadEvent::Prepared { attempt, refused }))
        });
    }

    /// Runs the user's `post_reboot`. Its failure changes nothing any more.
    pub(super) fn run_post_reboot(&self, about: RebootResult) {
        let hooks = &self.core.view().config.hooks;
        let Some(command) = hooks.post_reboot.clone() else {
            return;
        };
        let (project, limit) = (self.agent.project.clone(), hooks.timeout);
        self.spawn(async move {
            let failed = run(&command, &about, &project, limit).await.err();
            failed.map(|what| Event::EffectFailed { what })
        });
    }
}

/// Tries until it succeeds, at most this often; returns the last outcome.
async fn try_often<F: Future<Output = Result<(), String>>>(
    tries: u32,
    pause: Duration,
    attempt: impl Fn() -> F,
) -> Result<(), String> {
    let mut outcome = attempt().await;
    for _ in 1..tries {
        let Err(why) = &outcome else { break };
        tracing::warn!(%why, "the reboot cannot be prepared yet");
        tokio::time::sleep(pause).await;
        outcome = attempt().await;
    }
    outcome
}

/// Makes what the new session needs and checks the rest; the error names what is missing.
fn make(plan: &AgentPlan, preparation: &Preparation, no_compaction: bool) -> Result<(), String> {
    let project = &plan.project;
    if !project.is_dir() {
        return Err(format!(
            "the project's directory is gone: {}",
            project.display()
        ));
    }
    for program in [&plan.exe, &plan.program] {
        rustix::fs::access(program, Access::EXEC_OK)
            .map_err(|error| format!("{} cannot be run: {}", program.display(), chain(&error)))?;
    }
    let iteration = preparation.iteration;
    // They are written once more when it is known how the agent gets its tools.
    plan.write_settings(iteration, no_compaction, ToolsBy::None, false)
        .map_err(|error| format!("no settings for the new session: {}", chain(&error)))?;
    if let (Some(text), Some(files)) = (&preparation.handoff, &plan.files) {
        files
            .iteration(iteration)
            .and_then(|directory| directory.write_masked(HANDOFF, text))
            .map_err(|error| format!("the handoff cannot be written: {}", chain(&error)))?;
    }
    if let Some(copy) = &preparation.copy {
        copy_replaced(plan, copy)
            .map_err(|why| format!("the conversation before cannot be had back: {why}"))?;
    }
    can_open(DESCRIPTORS).map_err(|error| {
        format!(
            "no {DESCRIPTORS} files can be opened for the new session (ulimit -n): {}",
            chain(&error)
        )
    })?;
    check_room(&plan.state_dir, "pitstop's state", ROOM)?;
    match &plan.config_dir {
        Some(agents) => check_room(agents, "the agent's transcripts", ROOM),
        None => Ok(()),
    }
}

/// Makes the session that will be resumed. One that exists already was made by an undo that was taken back.
fn copy_replaced(plan: &AgentPlan, copy: &ReplacedCopy) -> Result<(), String> {
    if plan.transcript_of(copy.to).is_some() {
        return Ok(());
    }
    let path = plan
        .transcript_of(copy.from)
        .ok_or("the session has no transcript")?;
    let made = trim::copy_replaced(&path, &copy.nonce, copy.to);
    made.map(drop).map_err(|error| chain(&error))
}

/// Checks that the disk of a directory has this much room, as far as that can be known. It is not tested by writing: in the agent's
/// own directory nothing is written.
pub fn check_room(directory: &Path, whose: &str, bytes: u64) -> Result<(), String> {
    let Ok(disk) = rustix::fs::statvfs(directory) else {
        return Ok(());
    };
    let free = disk.f_bavail.saturating_mul(disk.f_frsize);
    if free >= bytes {
        return Ok(());
    }
    Err(format!(
        "the disk of {whose} is full: {} are free in {}, {} are needed",
        format::bytes(free),
        directory.display(),
        format::bytes(bytes)
    ))
}

/// Checks that this many files can be opened at once.
pub fn can_open(files: usize) -> io::Result<()> {
    let opened: io::Result<Vec<File>> = (0..files).map(|_| File::open("/dev/null")).collect();
    opened.map(drop)
}

/// Runs one of the user's commands around a reboot.
async fn run(
    command: &str,
    about: &RebootResult,
    project: &Path,
    limit: Duration,
) -> Result<(), String> {
    let command = UserCommand {
        table: "hooks",
        key: about.hook,
        command,
        limit,
    };
    command.run(about, project).await
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use rustix::process::Pid;

    use pitstop_core::lineage::{Cause, IterationId, RunId, Way};
    use pitstop_transcript::SessionId;

    #[tokio::test]
    async fn what_is_missing_for_the_reboot_of_a_run_may_come_back() {
        for (tries, fails, made) in [(1, 0, 1), (1, 1, 1), (3, 2, 3), (3, 9, 3)] {
            let count = std::cell::Cell::new(0);
            let outcome = try_often(tries, Duration::ZERO, || {
                count.set(count.get() + 1);
                let there = count.get() > fails;
                std::future::ready(there.then_some(()).ok_or_else(|| "no claude".to_owned()))
            });
            assert_eq!(outcome.await.is_ok(), fails < tries, "{tries} {fails}");
            assert_eq!(count.get(), made, "{tries} {fails}");
        }
    }

    fn about(hook: &'static str) -> RebootResult {
        let session = SessionId::new(uuid::Uuid::from_u128(7));
        RebootResult {
            hook,
            reboot_id: uuid::Uuid::from_u128(1),
            run_id: RunId::new(chrono::DateTime::UNIX_EPOCH, [1, 2, 3]),
            project: "/p".to_owned(),
            iteration: IterationId::FIRST,
            cause: Cause::Key,
            way: Way::Fresh,
            old_session: session,
            new_session: session,
            used_tokens: Some(12),
            preserved_state: pitstop_handoff::PreservedState::default(),
            handoff: Some("# Handoff".to_owned()),
            result: None,
            reason: None,
            verified: None,
            took_ms: None,
        }
    }

    async fn ran(command: &str, project: &Path) -> Result<(), String> {
        run(
            command,
            &about("pre_reboot"),
            project,
            Duration::from_secs(20),
        )
        .await
    }

    #[test]
    fn a_disk_with_too_little_room_is_named() {
        let place = tempfile::tempdir().unwrap();
        let path = place.path();
        assert_eq!(check_room(path, "pitstop's state", 1), Ok(()));
        let said = check_room(path, "pitstop's state", u64::MAX).unwrap_err();
        assert!(
            said.starts_with("the disk of pitstop's state is full: "),
            "{said}"
        );
        assert!(said.contains(path.to_str().unwrap()), "{said}");
        // What is not there yet may be made there.
        assert_eq!(check_room(&path.join("no"), "it", u64::MAX), Ok(()));
    }

    #[tokio::test]
    async fn a_failure_is_named_with_its_last_words() {
        let project = tempfile::tempdir().unwrap();
        let said = ran(
            "echo printed; echo 'the tests fail' >&2; exit 3",
            project.path(),
        )
        .await;
        assert_eq!(
            said.unwrap_err(),
            "[hooks] pre_reboot has failed: the tests fail"
        );
        let said = ran("exit 3", project.path()).await;
        assert_eq!(
            said.unwrap_err(),
            "[hooks] pre_reboot has failed with exit code 3"
        );
        let said = ran("sleep 3 & echo no >&2; exit 1", project.path()).await;
        assert_eq!(said.unwrap_err(), "[hooks] pre_reboot has failed: no");
        // It need not read what it is given, and may say a lot.
        ran("exec <&-; head -c 1000000 /dev/zero", project.path())
            .await
            .unwrap();
    }

    #[tokio::test]
    async fn one_that_takes_too_long_is_ended_with_all_that_it_started() {
        let project = tempfile::tempdir().unwrap();
        let command = "sleep 600 & echo $! >pid; wait";
        let limit = Duration::from_secs(1);
        let said = run(command, &about("pre_reboot"), project.path(), limit).await;
        assert_eq!(
            said.unwrap_err(),
            "[hooks] pre_reboot has taken longer than 1 s ([hooks] timeout)"
        );
        let pid = fs::read_to_string(project.path().join("pid")).unwrap();
        let pid = Pid::from_raw(pid.trim().parse().unwrap()).unwrap();
        // Killed, and reaped by the process that adopts orphans.
        let end = std::time::Instant::now() + Duration::from_secs(10);
        while is_running(pid) {
            assert!(std::time::Instant::now() < end, "it goes on");
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    }

    fn is_running(pid: Pid) -> bool {
        let stat = fs::read_to_string(format!("/proc/{}/stat", pid.as_raw_nonzero()));
        stat.is_ok_and(|stat| !stat.contains(") Z "))
    }
}
