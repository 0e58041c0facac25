//! The side process that writes a summary: `claude -p`, in a process group of its own, on a thread of its own.
//!
//! ```text
//!   loop ── Summarize ──► thread: transcript ─► History ── TranscriptRead ───────────────► loop
//!        ── CancelSummary ──┐         └─ prompt ─► client ─► envelope, evidence ── Summarized ─► loop
//!                           └─► SIGTERM, SIGKILL to the group
//! ```
//!
//! - The thread that starts the process outlives it: on Linux it is the death of that thread of which the process is notified
//!   if we are killed (see `exec-agent`). The next start's sweep knows the process, too.
//! - The dead process is left unreaped until its group has been killed, so that the group's number is still its own.
//! - Its end is learned from the process, not from the end of its output: a process it left behind may hold the pipes.
//! - One at a time: a new request ends the one before. Dropping the owner ends all and waits for it.

mod side;

use side::{Ask, ask_client};

use std::{
    io,
    os::unix::process::CommandExt as _,
    path::{Path, PathBuf},
    process::{Command, Stdio},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
        mpsc as std_mpsc,
    },
    thread,
    time::{Duration, Instant},
};

use tokio::sync::mpsc;

use pitstop_agent::{self as agent, claude::question};
use pitstop_base::clean::chain;
use pitstop_core::{
    app::{
        Event,
        event::{ReadEvent, SummaryId},
        facts::run_task,
    },
    config::SummaryConfig,
    lineage::{IterationId, ProcessStamp},
};
use pitstop_handoff::summary::{self, Evidence, History};
use pitstop_transcript::{SessionId, tail::read_pieces};

use super::{
    Shell,
    agent::{AgentPlan, SHIM},
    store_writer::Job,
};

/// The number of bytes that are read at the end of a transcript: far more than a summary can hold, and read in well under the
/// 300 ms that a person who looks at a handoff waits.
const TAIL_READ: u64 = 8 * 1024 * 1024;

/// The number of bytes that are read at its start, where the task is.
const HEAD_READ: u64 = 2 * 1024 * 1024;

/// The time that a transcript must have stayed unchanged: the client writes it after the turn, the last words last.
const SETTLED: Duration = Duration::from_millis(300);

/// The longest time that this is waited for. The first turn of a session has been seen to take a second.
const SETTLE_LIMIT: Duration = Duration::from_secs(3);

/// The pause between two looks at the transcript.
const BETWEEN_LOOKS: Duration = Duration::from_millis(50);

/// The time that leaving waits for the thread: its grace, and some more.
const LEAVING: Duration = Duration::from_secs(3);

/// The side processes: at most one that has a waiting caller, and those that are being ended.
#[derive(Debug, Default)]
pub struct SideProcesses(Vec<Running>);

#[derive(Debug)]
struct Running {
    stop: Arc<AtomicBool>,
    /// The channel that is closed when the thread is done.
    done: std_mpsc::Receiver<()>,
}

impl SideProcesses {
    /// Ends what runs, without waiting for it.
    pub fn cancel(&mut self) {
        self.0.retain(|one| {
            one.stop.store(true, Ordering::Relaxed);
            matches!(one.done.try_recv(), Err(std_mpsc::TryRecvError::Empty))
        });
    }

    fn start(&mut self, job: SummaryJob) -> io::Result<()> {
        self.cancel();
        let (ending, done) = std_mpsc::channel();
        let stop = Arc::clone(&job.stop);
        thread::Builder::new()
            .name("summary".to_owned())
            .spawn(move || {
                job.run();
                drop(ending);
            })?;
        self.0.push(Running { stop, done });
        Ok(())
    }
}

impl Drop for SideProcesses {
    fn drop(&mut self) {
        self.cancel();
        let end = Instant::now() + LEAVING;
        for one in self.0.drain(..) {
            let left = end.saturating_duration_since(Instant::now());
            if one.done.recv_timeout(left) == Err(std_mpsc::RecvTimeoutError::Timeout) {
                tracing::error!("the process that writes a summary does not end");
            }
        }
    }
}

/// The work of a thread.
struct SummaryJob {
    id: SummaryId,
    iteration: IterationId,
    session: SessionId,
    /// The task for which the session was begun.
    task: String,
    transcript: Option<PathBuf>,
    /// The prompt that pitstop types after a reboot, which is no person's.
    warmup: Option<String>,
    /// The client to ask a model with, if one should be asked.
    ask: Option<Ask>,
    events: mpsc::Sender<Event>,
    store_writer: mpsc::Sender<Job>,
    stop: Arc<AtomicBool>,
}

impl Shell {
    /// Reads the transcript and, if wanted, has a model write a summary of it.
    pub(super) fn summarize(&mut self, id: SummaryId, ask: bool) {
        let model = self.core.view();
        let settings = &model.config.summary;
        let first = model.draft.requests.first.as_ref();
        let task = run_task(model).or_else(|| first.map(|said| said.text.as_str()));
        let job = SummaryJob {
            id,
            iteration: model.session.iteration(),
            session: model.session.id,
            task: task.unwrap_or_default().to_owned(),
            transcript: self.services.transcript.clone(),
            warmup: model.config.reboot.warmup_prompt.clone(),
            ask: ask.then(|| Ask {
                command: command(
                    &self.agent,
                    settings,
                    model.session.agent.model_id.as_deref(),
                ),
                timeout: settings.timeout,
            }),
            events: self.events.clone(),
            store_writer: self.services.store_writer.clone(),
            stop: Arc::default(),
        };
        if let Err(error) = self.services.summaries.start(job) {
            let why = format!("no thread for it: {error}");
            self.post(Event::Read(ReadEvent::TranscriptRead {
                id,
                read: Err(why),
            }));
        }
    }
}

/// Returns the command of the client, started like the hosted one: it dies with us, and gets the same environment.
///
/// Unless the user has set a model for it, it is the hosted session's own (`session_model`): the client's default may be
/// another one, since a session may have been given one by flag or have been switched.
fn command(plan: &AgentPlan, settings: &SummaryConfig, session_model: Option<&str>) -> Command {
    let user_settings = plan.user_settings().ok().flatten();
    let asked = question::Question {
        tools: &settings.summary_allowed_tools,
        model: settings
            .model
            .as_deref()
            .or_else(|| question::without_window_mark(session_model?)),
        max_cost_usd: settings.max_cost_usd,
        user_settings: user_settings.as_deref(),
    };
    let mut extra = plan.env.clone();
    extra.extend(question::environment());
    let mut command = Command::new(&plan.exe);
    command
        .arg(SHIM)
        .arg(&plan.registry)
        .arg(&plan.program)
        .args(&plan.lead_args)
        .args(question::arguments(asked))
        .env_clear()
        .envs(agent::child_env(std::env::vars_os(), &extra))
        .current_dir(&plan.project)
        .process_group(0)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    command
}

impl SummaryJob {
    fn run(mut self) {
        let history = self.read().and_then(|history| {
            if history.is_empty() {
                return Err("nothing was said yet".to_owned());
            }
            Ok(history)
        });
        let id = self.id;
        let read = history.as_ref().map(|_| ()).map_err(Clone::clone);
        if !self.send(ReadEvent::TranscriptRead { id, read }) {
            return;
        }
        let (Some(ask), Ok(history)) = (self.ask.take(), history) else {
            return;
        };
        let prompt = summary::make_prompt(&history, self.session, &self.task);
        drop(history);
        let started = |stamp: &ProcessStamp| {
            let job = Job::Agent(self.iteration, stamp.clone());
            // Full, it means a store that hangs, which the user has been shown.
            let _ = self.store_writer.try_send(job);
        };
        let (ran, stamp) = ask_client(ask, prompt.as_bytes(), &self.stop, started);
        if let Some(stamp) = stamp {
            let _ = self.store_writer.try_send(Job::AgentGone(stamp));
        }
        let mut outcome = summary::read_outcome(&ran);
        outcome.text = outcome.text.map(|text| self.compared(&text));
        tracing::info!(
            ended = ?ran.ended, ms = outcome.duration_ms, cost = outcome.cost_usd, bytes = ran.stdout.len(),
            "a summary was asked for"
        );
        // The loop is gone, then.
        let _ = self
            .events
            .blocking_send(Event::Read(ReadEvent::Summarized { id, outcome }));
    }

    /// Returns the summary with a mark after everything that is nowhere in the transcript, all of which is read for it.
    fn compared(&self, text: &str) -> String {
        let mut evidence = Evidence::of_summary(text);
        let path = self.transcript.as_deref().unwrap_or(Path::new(""));
        let read = read_pieces(path, u64::MAX, 0, |piece| {
            evidence.push(piece) && !self.stop.load(Ordering::Relaxed)
        });
        match read {
            Ok(()) => evidence.into_marked(),
            Err(error) => {
                let why = chain(&error);
                format!("(What it names could not be looked for in the session: {why})\n\n{text}")
            }
        }
    }

    /// Sends an event; returns false if the loop is gone, or if the thread should stop.
    fn send(&self, event: ReadEvent) -> bool {
        self.events.blocking_send(Event::Read(event)).is_ok() && !self.stop.load(Ordering::Relaxed)
    }

    fn read(&self) -> Result<History, String> {
        let path = self.transcript.as_deref();
        let path = path.ok_or_else(|| "no transcript is known".to_owned())?;
        let end = Instant::now() + SETTLE_LIMIT;
        loop {
            let late = Instant::now() >= end || self.stop.load(Ordering::Relaxed);
            if late || is_settled(path) {
                let history = read_history(path, self.warmup.as_deref(), &self.stop)?;
                if late || !history.is_empty() {
                    return Ok(history);
                }
            }
            thread::park_timeout(BETWEEN_LOOKS);
        }
    }
}

/// Reports whether the client has written all that it had to write. A file that is not there yet counts as unwritten.
fn is_settled(path: &Path) -> bool {
    let changed = std::fs::symlink_metadata(path).and_then(|file| file.modified());
    // A clock that was set back gives no age: the limit decides then.
    changed.is_ok_and(|at| at.elapsed().is_ok_and(|age| age >= SETTLED))
}

/// Reads a transcript: all of it, or of a very long one its start and its end.
pub fn read_history(
    path: &Path,
    warmup: Option<&str>,
    stop: &AtomicBool,
) -> Result<History, String> {
    let mut history = History::with_own_prompts(warmup.map(str::to_owned));
    let read = read_pieces(path, HEAD_READ, TAIL_READ, |piece| {
        history.push(piece);
        !stop.load(Ordering::Relaxed)
    });
    read.map_err(|error| chain(&error))?;
    Ok(history.finish())
}

#[cfg(test)]
mod tests {
    use pitstop_base::process;
    use pitstop_handoff::summary::{Ended, Ran};

    use super::{side::OUTPUT_CAP, *};

    fn shell(script: &str) -> Ask {
        let mut command = Command::new("sh");
        command
            .args(["-c", script])
            .process_group(0)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        Ask {
            command,
            timeout: Duration::from_secs(60),
        }
    }

    fn asked(ask: Ask, prompt: &[u8]) -> (Ran, u32) {
        let stop = AtomicBool::new(false);
        let (ran, stamp) = ask_client(ask, prompt, &stop, |_: &ProcessStamp| {});
        (ran, stamp.map_or(0, |stamp| stamp.pid))
    }

    /// Asserts that no process is left of the group. A process that was killed takes a moment to go.
    #[track_caller]
    fn gone(group: u32) {
        let end = Instant::now() + Duration::from_secs(10);
        while !process::members_of_group(group).is_empty() {
            assert!(
                Instant::now() < end,
                "{:?}",
                process::members_of_group(group)
            );
            thread::park_timeout(Duration::from_millis(5));
        }
    }

    #[test]
    fn a_prompt_larger_than_any_pipe_goes_in_while_as_much_comes_out() {
        let prompt = "0123456789abcdef".repeat(100_000).into_bytes();
        let (ran, _) = asked(shell("cat; echo oops >&2; exit 3"), &prompt);
        assert_eq!(ran.ended, Ended::Exited("exit code 3".to_owned()));
        assert!(ran.stdout == prompt, "{} bytes", ran.stdout.len());
        assert_eq!(ran.stderr, b"oops\n");
    }

    #[test]
    fn one_that_reads_nothing_is_no_error() {
        let (ran, _) = asked(
            shell("exec <&-; echo done; kill -9 $$"),
            &vec![b'x'; 1 << 20],
        );
        assert_eq!(ran.ended, Ended::Exited("signal 9".to_owned()));
        assert_eq!(ran.stdout, b"done\n");
    }

    #[test]
    fn a_flood_and_a_delay_are_ended_with_their_whole_group() {
        let mut slow = shell("sleep 600 & sleep 600");
        slow.timeout = Duration::from_millis(100);
        let (ran, group) = asked(slow, b"");
        assert_eq!(ran.ended, Ended::TimedOut(Duration::from_millis(100)));
        gone(group);
        let (ran, group) = asked(shell("yes"), b"");
        assert_eq!(ran.ended, Ended::Flooded);
        assert_eq!(ran.stdout.len(), OUTPUT_CAP + 1);
        gone(group);
    }

    #[test]
    fn one_that_ignores_signals_is_killed_and_what_it_leaves_behind_goes_too() {
        let mut stubborn = shell("trap '' TERM; echo on; while :; do sleep 1; done");
        stubborn.timeout = Duration::from_millis(300);
        let (ran, group) = asked(stubborn, b"");
        let limit = Duration::from_millis(300);
        assert_eq!(
            (ran.ended, ran.stdout),
            (Ended::TimedOut(limit), b"on\n".to_vec())
        );
        gone(group);
        // A child that holds the pipes open does not hold us. Its parent stays until its input is closed: one that is
        // dead before it was looked at has no stamp.
        let (ran, group) = asked(shell("sleep 600 & echo said; cat"), b"");
        assert_eq!(ran.ended, Ended::Exited("exit code 0".to_owned()));
        assert_eq!(ran.stdout, b"said\n");
        gone(group);
    }

    #[test]
    fn a_program_that_is_not_there_is_reported() {
        let mut ask = shell("");
        ask.command = Command::new("/nowhere/claude");
        let (ran, _) = asked(ask, b"");
        assert!(matches!(ran.ended, Ended::NotStarted(_)), "{ran:?}");
    }

    #[test]
    fn dropping_the_owner_ends_the_process() {
        let home = tempfile::tempdir().unwrap();
        let transcript = home.path().join("t.jsonl");
        std::fs::write(
            &transcript,
            "{\"type\":\"user\",\"message\":{\"content\":\"hi\"}}\n",
        )
        .unwrap();
        let (events, mut received) = mpsc::channel(8);
        let (store_writer, mut jobs) = mpsc::channel(8);
        let job = SummaryJob {
            id: SummaryId(1),
            iteration: IterationId::FIRST,
            session: SessionId::new(uuid::Uuid::nil()),
            task: String::new(),
            transcript: Some(transcript),
            warmup: None,
            ask: Some(shell(
                "trap '' TERM; cat >/dev/null; while :; do sleep 1; done",
            )),
            events,
            store_writer,
            stop: Arc::default(),
        };
        let mut side = SideProcesses::default();
        side.start(job).unwrap();
        let Some(Event::Read(ReadEvent::TranscriptRead { read: Ok(()), .. })) =
            received.blocking_recv()
        else {
            panic!("the transcript is read first")
        };
        let Some(Job::Agent(_, stamp)) = jobs.blocking_recv() else {
            panic!("a process that must not outlive us is recorded")
        };
        drop(side);
        gone(stamp.pid);
        let cancelled = |event| matches!(event, Some(Event::Read(ReadEvent::Summarized { outcome, .. })) if outcome.text == Err("cancelled".to_owned()));
        assert!(cancelled(received.blocking_recv()));
        assert!(matches!(jobs.blocking_recv(), Some(Job::AgentGone(gone)) if gone == stamp));
    }

    #[test]
    fn without_a_transcript_there_is_a_reason() {
        let (events, mut received) = mpsc::channel(8);
        let job = SummaryJob {
            id: SummaryId(1),
            iteration: IterationId::FIRST,
            session: SessionId::new(uuid::Uuid::nil()),
            task: String::new(),
            transcript: None,
            warmup: None,
            ask: Some(shell("exit 0")),
            events,
            store_writer: mpsc::channel(1).0,
            stop: Arc::default(),
        };
        job.run();
        let Some(Event::Read(ReadEvent::TranscriptRead { read, .. })) = received.blocking_recv()
        else {
            panic!("an answer comes in any case")
        };
        assert_eq!(read, Err("no transcript is known".to_owned()));
        assert_eq!(received.blocking_recv(), None);
    }
}
