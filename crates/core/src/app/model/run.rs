//! The state of an autonomous run.

use std::collections::{BTreeSet, VecDeque};

use chrono::{DateTime, Utc};

use crate::{
    api::wire::RunLine,
    app::effect::Effect,
    autopilot::{Autopilot, End, Phase, RunEvent},
    lineage::{Cause, IterationId, Lineage},
};
use pitstop_agent::{ToolCall, ToolOutput};
use pitstop_base::{clean, recent};
use pitstop_transcript::Tokens;

/// The number of lines of a run that are remembered.
const TIMELINE: usize = 500;

/// The purpose of the run's timer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::app) enum Due {
    Settle,
    Figure,
    SubmitTimeout,
    WaitOver,
    SilentStart,
    StartupTimeout,
    Dialog,
    Undelivered,
    Background,
    PromptBox,
}

/// The known figures of a session's turns at one moment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(in crate::app) struct Judged {
    /// The number of tokens in use.
    pub(in crate::app) used: Option<Tokens>,
    /// The number of turns whose figure the bridge has given.
    pub(in crate::app) turns: u64,
}

/// The run, with the state that is kept between events.
#[derive(Debug)]
pub struct Run {
    /// The rules and their counts.
    pub pilot: Autopilot,
    /// True if the task is a file that is read again before each prompt.
    pub(in crate::app) reads_task: bool,
    epoch: u64,
    pub(in crate::app) due: Option<Due>,
    pub(in crate::app) rebooting: bool,
    /// The reason why the run does not get on without a person though nothing has stopped it.
    pub(in crate::app) stuck: Option<&'static str>,
    /// True if a text was typed while the run is held, and no turn has begun since.
    pub(in crate::app) said: bool,
    /// The last words of a turn that has not been reported yet, because its figures have not come.
    pub(in crate::app) unreported: Option<String>,
    /// True if the figure of the last turn has come, or is no longer awaited.
    pub(in crate::app) figure_in: bool,
    /// The figures that were known when the previous turn was judged.
    pub(in crate::app) judged: Judged,
    /// The ids of background work that was waited for long enough: servers never end by themselves.
    waited_for: BTreeSet<String>,
    /// The newest iterations that were reported to have begun and to have ended.
    begun: Option<IterationId>,
    ended: Option<IterationId>,
    /// The run's lines, oldest first.
    pub timeline: VecDeque<RunLine>,
}

impl Run {
    /// Creates a run that has prompted nothing yet. Iterations up to the one that has `ended` are not reported.
    pub(in crate::app) fn new(
        pilot: Autopilot,
        reads_task: bool,
        rebooting: bool,
        ended: Option<IterationId>,
    ) -> Self {
        Self {
            pilot,
            reads_task,
            epoch: 0,
            due: None,
            rebooting,
            stuck: None,
            said: false,
            unreported: None,
            figure_in: true,
            judged: Judged::default(),
            waited_for: BTreeSet::new(),
            begun: None,
            ended,
            timeline: VecDeque::new(),
        }
    }

    /// Waits for this; what was waited for before is void. Returns the epoch of the timer that ends the wait.
    pub(in crate::app) const fn await_next(&mut self, due: Due) -> u64 {
        (self.epoch, self.due) = (self.epoch + 1, Some(due));
        self.epoch
    }

    /// Reports whether one of these tasks goes on in the background that was not waited for long enough.
    pub(in crate::app) fn awaits<'a>(&self, mut ids: impl Iterator<Item = &'a str>) -> bool {
        ids.any(|id| !self.waited_for.contains(id))
    }

    /// Goes over to a phase in which nothing is due yet.
    pub(in crate::app) fn enter(&mut self, phase: Phase) {
        self.pilot.phase = phase;
        self.due = None;
    }

    /// Returns what is due when the timer of this epoch has run out, if it is the run's last one.
    pub(in crate::app) fn take_due(&mut self, epoch: u64) -> Option<Due> {
        let waits = self.epoch == epoch && !self.pilot.is_over();
        self.due.take_if(|_| waits)
    }

    /// Reports whether this was due, which is over now.
    pub(in crate::app) fn was_due(&mut self, due: Due) -> bool {
        self.due.take_if(|one| *one == due).is_some()
    }

    /// Holds the run until a person resumes it. Returns false if it is held already, or over.
    pub(in crate::app) fn pause(&mut self, by: &str) -> bool {
        if self.pilot.is_over() || self.pilot.paused_by.is_some() {
            return false;
        }
        self.pilot.paused_by = Some(by.to_owned());
        self.due = None;
        true
    }

    /// Ends the run because someone ends the supervisor with this exit code.
    pub(in crate::app) fn stop(&mut self, code: i32) {
        let end = match &self.pilot.phase {
            Phase::Ended(_) => return,
            Phase::Tripped(trip) if code == 0 => End::Tripped(trip.clone()),
            _ => End::Stopped { code },
        };
        self.pilot.phase = Phase::Ended(end);
    }

    /// Returns the exit code of the run that is over.
    pub(in crate::app) const fn end_code(&self) -> Option<i32> {
        match &self.pilot.phase {
            Phase::Ended(end) => Some(end.code()),
            _ => None,
        }
    }

    /// Takes note of a tool that has run, and of whether it got work done.
    pub(in crate::app) fn tool_finished(
        &mut self,
        call: &ToolCall,
        output: &ToolOutput,
        worked: bool,
    ) {
        let printed = format!("{}\n{}", output.stdout, output.stderr);
        let failed = output.failed && !output.interrupted;
        let command = call.command.as_deref();
        self.pilot.tool_ran(worked, command, &printed, failed);
    }

    /// Stops waiting for background work, of which these are the ids, if it waits for that.
    pub(in crate::app) fn give_up_background<'a>(&mut self, ids: impl Iterator<Item = &'a str>) {
        if matches!(&self.pilot.phase, Phase::Waiting(wait) if wait.background) {
            self.waited_for.extend(ids.map(str::to_owned));
        }
    }

    /// Returns the events for iterations that have begun or ended since the last look; `runs` is true if an agent's process runs.
    pub(in crate::app) fn iteration_events(
        &mut self,
        lineage: &Lineage,
        runs: bool,
    ) -> Vec<RunEvent> {
        let mut events = Vec::new();
        let unseen = lineage.iterations().iter().rev();
        let unseen: Vec<_> = unseen
            .take_while(|one| Some(one.iteration) > self.ended)
            .collect();
        for one in unseen.into_iter().rev() {
            if (runs || !one.is_open()) && Some(one.iteration) > self.begun {
                self.begun = Some(one.iteration);
                events.extend(one.session_id.map(|session_id| RunEvent::IterationStarted {
                    iteration: one.iteration,
                    session_id,
                    cause: one.cause.map_or("start", Cause::as_str).to_owned(),
                }));
            }
            if let Some(end_reason) = one.end_reason {
                self.ended = Some(one.iteration);
                events.push(RunEvent::IterationEnded {
                    iteration: one.iteration,
                    end_reason,
                });
            }
        }
        events
    }

    /// Remembers the lines that these effects print, for the run view and for scripts.
    pub(in crate::app) fn remember(&mut self, effects: &[Effect], at: DateTime<Utc>) {
        for effect in effects {
            let Effect::LogRun(event) = effect else {
                continue;
            };
            let text = clean::one_line(&event.to_string()).into_owned();
            recent::push(&mut self.timeline, RunLine { at, text }, TIMELINE);
        }
    }
}
