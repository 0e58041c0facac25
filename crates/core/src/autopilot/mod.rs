//! The unattended run: stop phrase, caps, breakers, when to go on.
//!
//! ```text
//!            prompt seen                turn over              nothing speaks against it
//!   sent ───────────────► working ───────────────► settling ───────────────────────────────► sent
//!    ▲                      │  │                       │                                      or a reboot
//!    │                      │  └─ failed, died ──► waiting ──► settling
//!    └──────────────────────┴─ stop phrase, cap ─► ended        breaker ──► tripped ──(a person)──► settling
//! ```
//!
//! This module owns the rules: it gets the events and returns the next step. It types, starts and ends nothing; `app`
//! does, on the same events as in a session that a person leads. Pure: it does no input or output.

pub mod breaker;
pub mod cap;
pub mod events;
pub mod patience;
pub mod prompt;
pub mod stop_phrase;

use std::{collections::VecDeque, time::Duration};

use chrono::{DateTime, Utc};

pub use breaker::{Breakers, Limits, Thrash, Trip};
pub use cap::{Cap, Caps, Spent};
pub use events::RunEvent;
pub use patience::{Patience, Pause};

use patience::AFTER_RESET;

use crate::lineage::{EndReason, RunEnd};
use pitstop_agent::Failure;
use pitstop_base::{clock::At, exit};

/// The number of failures of an unknown kind which, with nothing else from the start, mean that the agent cannot work.
const FIRST_FAILURES: u32 = 4;

/// The number of refusals, with no turn that ended well among them, after which a conversation that the service refuses is left.
const REFUSALS: u32 = 3;

/// The number of texts of `say` that may wait for their moment.
const QUEUE: usize = 16;

/// The error that as many texts wait as are kept.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{QUEUE} texts wait already for a safe moment")]
pub struct QueueFull;

/// The moment at which a new session begins.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Fresh {
    /// A new session begins when the context window is full.
    #[default]
    Threshold,
    /// A new session begins after every turn.
    Always,
}

/// The settings that a run is started with.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Plan {
    /// The task, as it was read last.
    pub task: String,
    /// The text that ends the run.
    pub stop_phrase: String,
    /// The caps of the run.
    pub caps: Caps,
    /// The limits that trip its breakers.
    pub limits: Limits,
    /// The moment at which a new session begins.
    pub fresh: Fresh,
    /// True if a person can see and answer: not in a headless run.
    pub attended: bool,
}

/// A wait of the run, and its reason.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Wait {
    /// The reason for the wait, in words.
    pub why: String,
    /// The end of the wait, by the monotonic clock, unless it waits for a reset.
    pub until: Duration,
    /// The moment at which the usage limit resets, if that is known: the wall clock decides then.
    pub reset: Option<DateTime<Utc>>,
    /// True if the run waits for work of the agent in the background: its next turn ends the wait.
    pub background: bool,
}

impl Wait {
    /// Returns the time that is left of the wait.
    pub fn left(&self, now: At) -> Duration {
        match self.reset {
            Some(reset) => (reset + AFTER_RESET - now.wall)
                .to_std()
                .unwrap_or_default(),
            None => self.until.saturating_sub(now.since_start),
        }
    }
}

/// The phase that a run is in.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum Phase {
    /// The agent works, or is about to.
    #[default]
    Working,
    /// A turn is over; the figures are awaited.
    Settling,
    /// A prompt was typed and has not been seen to arrive yet.
    Sent,
    /// Something has failed, or a limit holds.
    Waiting(Wait),
    /// A breaker has tripped.
    Tripped(Trip),
    /// The run is over.
    Ended(End),
}

/// The reason why a run is over.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum End {
    /// The stop phrase was given.
    #[error("the stop phrase was given")]
    StopPhrase,
    /// A cap was reached.
    #[error("{0}")]
    Cap(Cap),
    /// A breaker tripped.
    #[error("breaker {} tripped: {}", .0.name(), .0)]
    Tripped(Trip),
    /// The agent could not run.
    #[error("the agent could not run: {0}")]
    NoAgent(String),
    /// A person, or a signal, ended it.
    #[error("{}", if *.code == exit::INTERRUPTED { "interrupted" } else { "stopped by the user" })]
    Stopped {
        /// The exit code.
        code: i32,
    },
}

impl End {
    /// Returns the exit code.
    pub const fn code(&self) -> i32 {
        match self {
            Self::StopPhrase => exit::OK,
            Self::Cap(_) => exit::CAP,
            Self::Tripped(_) => exit::BREAKER,
            Self::NoAgent(_) => exit::NO_AGENT,
            Self::Stopped { code } => *code,
        }
    }

    /// Returns the reason why the last iteration ended, in the words of its record.
    pub const fn reason(&self) -> EndReason {
        match self {
            Self::StopPhrase => EndReason::StopPhraseFound,
            Self::Cap(_) => EndReason::Limit,
            Self::Tripped(_) => EndReason::Breaker,
            Self::NoAgent(_) => EndReason::Crash,
            Self::Stopped { .. } => EndReason::Shutdown,
        }
    }
}

/// The next step of the run after an event.
#[derive(Clone, Debug, PartialEq)]
pub enum Verdict {
    /// The run looks again when the figures are in.
    Settle,
    /// The run goes on in the same session.
    Prompt,
    /// The run goes on in a new session.
    Fresh,
    /// The run waits, then looks again.
    Wait(Pause),
    /// The run stops until a person has looked.
    Trip(Trip),
    /// The run is over.
    End(End),
}

/// An autonomous run.
#[derive(Clone, Debug)]
pub struct Autopilot {
    /// The settings that the run was started with.
    pub plan: Plan,
    /// The phase that the run is in.
    pub phase: Phase,
    /// The source of the pause, while the run is paused.
    pub paused_by: Option<String>,
    /// The texts that a person wants typed at the next moment.
    pub queue: VecDeque<String>,
    /// The number of turns that have ended, over all iterations.
    pub turns: u64,
    /// True if the task has changed since the agent was given it.
    pub task_changed: bool,
    /// The breakers.
    pub breakers: Breakers,
    /// The counts of failures in a row.
    pub patience: Patience,
    /// The agent's message at the end of the last turn.
    message: Option<String>,
    /// True if the breakers have judged that message.
    judged: bool,
    /// True if a tool has changed something within the turn that runs; the next field holds the same for the turn before.
    touched: bool,
    was_touched: bool,
    /// The time that it had taken before this supervisor began.
    pub worked: Duration,
    /// A number for the state of the notes, git and the signals at the last look.
    state: Option<u64>,
    began: At,
}

impl Autopilot {
    /// Creates a run that begins now.
    pub fn new(plan: Plan, now: At) -> Self {
        Self {
            breakers: Breakers::new(plan.limits),
            plan,
            phase: Phase::Working,
            paused_by: None,
            queue: VecDeque::new(),
            turns: 0,
            task_changed: false,
            patience: Patience::default(),
            message: None,
            judged: true,
            touched: false,
            was_touched: false,
            state: None,
            worked: Duration::ZERO,
            began: now,
        }
    }

    /// Returns the time that the run has taken.
    pub fn time(&self, now: At) -> Duration {
        self.worked + now.whole_time_since(self.began)
    }

    /// Returns the time left until the cap on its time, if there is one.
    pub fn time_left(&self, now: At) -> Option<Duration> {
        let most = self.plan.caps.max_time?;
        Some(most.saturating_sub(self.time(now)))
    }

    /// Reports whether the run is over.
    pub const fn is_over(&self) -> bool {
        matches!(self.phase, Phase::Ended(_))
    }

    /// Reports whether the run waits for a person: paused or tripped.
    pub const fn is_held(&self) -> bool {
        self.paused_by.is_some() || matches!(self.phase, Phase::Tripped(_))
    }

    /// Records that a tool has run, and whether it `worked`: changed a file or a to-do, or was a new command that does more than look.
    pub fn tool_ran(&mut self, worked: bool, command: Option<&str>, output: &str, failed: bool) {
        if let Some(command) = command {
            self.breakers.command_ran(command, output, failed);
        }
        self.touched |= worked;
    }

    /// Records that a turn has ended with this message, and returns the next step.
    pub fn turn_ended(&mut self, message: Option<&str>, spent: &Spent) -> Verdict {
        self.turns += 1;
        self.patience.succeed();
        let late = self.judge_unseen();
        self.message = message.map(str::to_owned);
        self.judged = false;
        self.was_touched = std::mem::take(&mut self.touched);
        if self.is_held() {
            return Verdict::Settle;
        }
        let end = self.ended(spent).map(Verdict::End);
        end.or(late.map(Verdict::Trip)).unwrap_or(Verdict::Settle)
    }

    /// Judges the turn before if it was not judged: a reboot followed it at once. The state of git and the notes behind it
    /// is not known; the next look at them covers both turns.
    fn judge_unseen(&mut self) -> Option<Trip> {
        if std::mem::replace(&mut self.judged, true) {
            return None;
        }
        self.breakers
            .turn_ended(self.was_touched, self.message.as_deref())
    }

    /// Marks a turn that has left work in the background as judged: the agent waits for good reason.
    pub const fn excuse_turn(&mut self) {
        self.judged = true;
    }

    /// Returns the end of the run if the last message or a cap brings it.
    pub fn ended(&self, spent: &Spent) -> Option<End> {
        let said = self.message.as_deref().unwrap_or_default();
        if stop_phrase::is_given(&self.plan.stop_phrase, said) {
            return Some(End::StopPhrase);
        }
        self.plan.caps.reached(spent).map(End::Cap)
    }

    /// Decides how to go on, now that the figures are in. `state` is a number for git, the notes and the signals; `full` is
    /// true if a reboot is due.
    pub fn settled(&mut self, state: u64, full: bool, spent: &Spent) -> Verdict {
        if let Some(end) = self.ended(spent) {
            return Verdict::End(end);
        }
        if let Some(trip) = self.judge(state) {
            return Verdict::Trip(trip);
        }
        // A person's prompt is typed to the agent that it was meant for.
        let another = full || (self.plan.fresh == Fresh::Always && self.queue.is_empty());
        if !another {
            return Verdict::Prompt;
        }
        match self.plan.caps.forbids_another(spent) {
            Some(cap) => Verdict::End(End::Cap(cap)),
            None => Verdict::Fresh,
        }
    }

    fn judge(&mut self, state: u64) -> Option<Trip> {
        if std::mem::replace(&mut self.judged, true) {
            return None;
        }
        let moved = self
            .state
            .replace(state)
            .is_some_and(|before| before != state);
        let changed = self.was_touched || moved;
        self.breakers.turn_ended(changed, self.message.as_deref())
    }

    /// Records that a turn has failed, by the fault of the service or of something unknown. A fault that is not a passing
    /// one of the service, and holds from the first turn on, will not pass: no login, no such model. A conversation that is refused
    /// is left for a fresh session once; a fault that holds there as well lies elsewhere.
    pub fn turn_failed(&mut self, message: &str, failure: Failure, spent: &Spent) -> Verdict {
        self.message = None;
        let pause = self.patience.service_failed();
        let failures = self.patience.failures();
        if failure != Failure::Service && self.turns == 0 && failures >= FIRST_FAILURES {
            return Verdict::End(End::NoAgent(breaker::excerpt(message)));
        }
        let is_refused = failure == Failure::Conversation
            && self.patience.refused() == REFUSALS
            && self.turns > 0;
        match pause {
            Some(_) if is_refused && self.plan.caps.forbids_another(spent).is_none() => {
                Verdict::Fresh
            }
            Some(pause) => Verdict::Wait(pause),
            None => Verdict::Trip(Trip::Service {
                times: self.patience.failures(),
                message: breaker::excerpt(message),
            }),
        }
    }

    /// Records that a turn has failed because a usage limit holds.
    pub fn limited(&mut self, reset: Option<DateTime<Utc>>, message: &str, now: At) -> Verdict {
        self.message = None;
        // The message is about the limit that was reached; the status line shows them all.
        let reset = patience::reset_in(message, now.wall).or(reset);
        Verdict::Wait(self.patience.limited(reset, now.wall))
    }

    /// Records that the agent's process has ended by itself.
    pub fn agent_died(&mut self, exit: &str, spent: &Spent) -> Verdict {
        if let Some(cap) = self.plan.caps.forbids_another(spent) {
            return Verdict::End(End::Cap(cap));
        }
        match self.patience.agent_died() {
            Some(pause) => Verdict::Wait(pause),
            None if self.turns == 0 => Verdict::End(End::NoAgent(exit.to_owned())),
            None => Verdict::Trip(Trip::Deaths {
                times: self.patience.deaths(),
                exit: exit.to_owned(),
            }),
        }
    }

    /// Records that a breaker has tripped: with no person there the run is over.
    pub fn trip(&mut self, trip: Trip) -> Phase {
        self.phase = if self.plan.attended {
            Phase::Tripped(trip)
        } else {
            Phase::Ended(End::Tripped(trip))
        };
        self.phase.clone()
    }

    /// Returns how the run ended, once it is over.
    pub fn end(&self) -> Option<RunEnd> {
        let Phase::Ended(end) = &self.phase else {
            return None;
        };
        let said = self.message.as_deref().unwrap_or_default();
        let line = stop_phrase::line(&self.plan.stop_phrase, said);
        let evidence = match (end, line) {
            (End::StopPhrase, Some(line)) => format!("the agent said: {}", breaker::excerpt(line)),
            _ => end.to_string(),
        };
        Some(RunEnd {
            reason: end.reason(),
            exit_code: Some(end.code()),
            evidence,
        })
    }

    /// Resumes the run for a person: everything that was tripped or waited for is forgotten. A stop phrase given meanwhile
    /// still counts.
    pub fn resume(&mut self) {
        self.paused_by = None;
        if let Phase::Tripped(_) = self.phase {
            self.breakers.reset();
            self.patience.succeed();
        }
        if !self.is_over() {
            self.phase = Phase::Settling;
        }
    }

    /// Keeps a text to be typed at the next moment.
    pub fn prompt(&mut self, text: String) -> Result<(), QueueFull> {
        if self.queue.len() >= QUEUE {
            return Err(QueueFull);
        }
        self.queue.push_back(text);
        Ok(())
    }

    /// Records that the task was read again, and reports whether it has changed.
    pub fn task_read(&mut self, task: String) -> bool {
        let changed = task.trim() != self.plan.task.trim();
        if changed {
            self.plan.task = task;
            self.task_changed = true;
        }
        changed
    }

    /// Returns the text of the next prompt.
    pub fn next_prompt(&mut self) -> String {
        if let Some(said) = self.queue.pop_front() {
            return said;
        }
        if std::mem::take(&mut self.task_changed) {
            return prompt::changed(&self.plan.task, &self.plan.stop_phrase);
        }
        prompt::go_on()
    }
}

/// Reports whether a tool of this name changes files or to-dos.
pub fn changes_work(tool: &str) -> bool {
    matches!(tool, "Edit" | "Write" | "MultiEdit" | "NotebookEdit")
        || tool.contains("Todo")
        || matches!(tool, "TaskCreate" | "TaskUpdate")
}

#[cfg(test)]
mod tests;
