//! The steps of the run: what it does about what is true now, and what it waits for.

use std::time::Duration;

use crate::{
    api::wire::AgentState,
    app::{
        effect::Effect,
        event::TimerId,
        model::run::{Due, Run},
    },
    autopilot::{End, Fresh, Pause, Phase, RunEvent, Trip, Verdict, Wait, cap::duration},
};
use pitstop_base::clock::look_within;

use super::{Act, Acts, RunInput, run_facts::RunFacts};

/// The time that the figures may take after a turn: the client waits 300 ms before it updates its status line.
const SETTLE: Duration = Duration::from_millis(600);

/// The time for the figures where nothing depends on them: each turn has its own session, and the cost has no cap.
pub(super) const SETTLE_FRESH: Duration = Duration::from_millis(20);

/// The time that an idle agent that should be at work is left alone for: its start prompt may be on its way.
const IDLE: Duration = Duration::from_secs(20);

/// The time after which a typed prompt that was not seen to arrive is given up: its further Enters are over by then.
pub(super) const SUBMIT_TIMEOUT: Duration = Duration::from_secs(45);

/// The time that an agent may take from the start of its process to its first report; a dialog at its start keeps it silent for ever.
const SILENT: Duration = Duration::from_secs(90);

/// The part of [`SILENT`] after which an unattended run reports what it waits for: no person sees the dialog.
const SILENT_START: Duration = Duration::from_secs(20);

/// The state of an agent whose process runs but reports nothing.
const SILENT_AGENT: &str = "the agent does not respond: a dialog at its start may wait (trust, login); start it once by hand";

/// The time that a dialog may be open in a headless run: another hook of the user's may answer it.
pub(super) const DIALOG: Duration = Duration::from_secs(30);

/// The time that a handoff may stay unconfirmed in a headless run, beyond the time after which a person would be notified.
const UNDELIVERED: Duration = Duration::from_secs(60);

/// The interval at which the elapsed time on the screen is updated.
const CLOCK: Duration = Duration::from_secs(10);

/// The remaining time at which the countdown of a wait is shown by the second.
const LAST_MINUTE: Duration = Duration::from_secs(60);
const SECOND: Duration = Duration::from_secs(1);

impl Run {
    /// Takes an input in.
    pub(super) fn on(&mut self, input: RunInput, facts: &RunFacts, acts: &mut Acts) {
        match input {
            RunInput::TakenOver(by) => self.hold(by, acts),
            RunInput::Resumed => self.resume(facts, acts),
            RunInput::Intervened => {
                facts.taken_over.iter().for_each(|by| self.hold(by, acts));
                let trips = facts.not_rebooted.iter().cloned();
                trips.for_each(|trip| self.trip(trip, facts, acts));
            }
            RunInput::CapReached(cap) => self.finish(End::Cap(cap), facts, acts),
            RunInput::Stopped(code) => self.stop(code),
            RunInput::ClockDue => acts.0.extend(self.clock(facts).map(Act::Do)),
            RunInput::TaskKept(state) => self.decide(state, facts, acts),
            RunInput::SessionAsked => self.go_on_without_reboot(facts, acts),
            _ if self.pilot.is_over() || facts.quits => {}
            RunInput::TurnEnded(message) => self.turn_ended(message, facts, acts),
            RunInput::TurnFailed(failure, message) => {
                self.turn_failed(failure, message, facts, acts);
            }
            RunInput::ToolFinished(call, output, worked) => {
                self.tool_finished(call, output, worked);
            }
            RunInput::StatusLineSeen => self.status_line_seen(facts, acts),
            RunInput::FigureObserved => {
                self.figure_in |= facts.context.known != self.judged;
                if self.figure_in && self.was_due(Due::Figure) {
                    self.settle(facts, acts);
                }
            }
            RunInput::TaskRead(task) => self.task_read(task, facts, acts),
            RunInput::TimerFired(epoch) => {
                if let Some(due) = self.take_due(epoch) {
                    self.time_over(due, facts, acts);
                }
            }
            RunInput::PersonTyped => self.person_typed(facts, acts),
            // A person has to decide which of the two is to be continued.
            RunInput::ResumedElsewhere => self.hold("another process in its session", acts),
            RunInput::Settled => self.watch(facts, acts),
        }
    }

    /// Waits for this, for at most this time; what was waited for before is void.
    pub(super) fn wait_for(&mut self, due: Due, time: Duration, acts: &mut Acts) {
        let epoch = self.await_next(due);
        acts.push(Act::Do(Effect::SetTimer(TimerId::Run(epoch), time)));
    }

    /// Waits as [`Run::wait_for`] does, unless it waits for that already.
    fn wait_once_for(&mut self, due: Due, time: Duration, acts: &mut Acts) {
        if self.due != Some(due) {
            self.wait_for(due, time, acts);
        }
    }

    /// Brings the run in line with what is true now.
    fn watch(&mut self, facts: &RunFacts, acts: &mut Acts) {
        let state = facts.agent.state;
        let rebooting = facts.reboot.is_some();
        let ended = std::mem::replace(&mut self.rebooting, rebooting) && !rebooting;
        if ended && !self.pilot.is_held() {
            // A fresh session works by its handoff, a restarted one by its prompt; one that was trimmed, or resumed because
            // the reboot failed, has no prompt to work by.
            self.enter(Phase::Working);
            // The handoff names the task; without one (`generate_handoff = false`) the first prompt has to.
            self.pilot.task_changed = facts.untold.unwrap_or(self.pilot.task_changed);
            if state == AgentState::Idle {
                return self.follow(Verdict::Settle, "", facts, acts);
            }
        }
        if matches!(state, AgentState::Dialog | AgentState::Unknown) {
            return self.wait_at_dialog(facts, acts);
        }
        if self.was_due(Due::Dialog) && self.resume_wait(facts, acts) {
            return;
        }
        // An agent that reports again, and a prompt box that is there, are no longer waited for.
        let awaited = state == AgentState::Starting || self.due == Some(Due::PromptBox);
        self.stuck = self.stuck.filter(|_| awaited);
        self.said &= state != AgentState::Busy;
        if let Some(reboot) = &facts.reboot {
            // The reboot has the agent, and only what it cannot do by itself is done here.
            if reboot.is_overdue && !self.pilot.plan.attended {
                self.wait_once_for(Due::Undelivered, UNDELIVERED, acts);
            } else if reboot.awaits_background && !reboot.is_overdue {
                // What was waited for long enough at the end of a turn is not waited for again.
                let time = if self.awaits(facts.agent.background.ids()) {
                    facts.agent.background_wait
                } else {
                    SETTLE
                };
                self.wait_once_for(Due::Background, time, acts);
            } else if state == AgentState::Busy {
                // A turn that has begun meanwhile is not cut by that wait.
                self.was_due(Due::Background);
            }
            // The reboot was begun because the figures are in.
            if state != AgentState::Busy {
                self.report_turn(facts, acts);
            }
            return;
        }
        if let Some(end) = self.end_now(facts) {
            return self.finish(end, facts, acts);
        }
        if self.pilot.is_held() {
            return self.type_queued(facts, acts);
        }
        self.watch_agent(facts, acts);
    }

    /// Waits while a dialog is open. In an unattended run it stays unanswered, but for an answer from afar, which has time up to a cap.
    fn wait_at_dialog(&mut self, facts: &RunFacts, acts: &mut Acts) {
        if self.pilot.plan.attended {
            return;
        }
        if !facts.agent.asks_from_afar {
            return self.wait_once_for(Due::Dialog, DIALOG, acts);
        }
        if let Some(end) = self.end_now(facts).filter(|_| facts.reboot.is_none()) {
            self.finish(end, facts, acts);
        }
    }

    /// Brings the run in line with what the agent does, while nothing else has it.
    fn watch_agent(&mut self, facts: &RunFacts, acts: &mut Acts) {
        let state = facts.agent.state;
        match (state, &self.pilot.phase) {
            (AgentState::Starting, _) if self.pilot.plan.attended => {
                self.wait_once_for(Due::StartupTimeout, SILENT, acts);
            }
            (AgentState::Starting, _) if self.stuck.is_none() => {
                self.wait_once_for(Due::SilentStart, SILENT_START, acts);
            }
            (AgentState::Starting, _) => {
                self.wait_once_for(
                    Due::StartupTimeout,
                    SILENT.saturating_sub(SILENT_START),
                    acts,
                );
            }
            (AgentState::Busy, Phase::Settling | Phase::Sent) => self.enter(Phase::Working),
            (AgentState::Busy, Phase::Waiting(wait)) if wait.background => {
                self.enter(Phase::Working);
            }
            (AgentState::Busy, _) => {
                self.due = self.due.filter(|due| *due == Due::WaitOver);
            }
            (AgentState::Exited, Phase::Waiting(wait)) if !wait.background => {}
            (AgentState::Exited, _) => {
                let exit = facts.agent.exit.as_deref().unwrap_or_default();
                let verdict = self.pilot.agent_died(exit, &facts.spent);
                self.follow(
                    verdict,
                    &format!("the agent has ended ({exit})"),
                    facts,
                    acts,
                );
            }
            (AgentState::Idle | AgentState::Limit, Phase::Working) => {
                // A session that goes on and was not given the task has no prompt on its way.
                let told = !self.pilot.task_changed;
                self.enter(Phase::Settling);
                self.wait_for(Due::Settle, if told { IDLE } else { SETTLE }, acts);
            }
            (AgentState::Idle | AgentState::Limit, _) => self.prompt_box_seen(facts, acts),
            _ => {}
        }
    }

    /// Returns the end that applies whatever the agent does. A cap does not interrupt a person who holds the run, and does not end a
    /// turn that is at work: the turn goes on to its end, or until the next session would begin.
    fn end_now(&self, facts: &RunFacts) -> Option<End> {
        let plan = &self.pilot.plan;
        let cap = plan.caps.reached(&facts.spent).map(End::Cap)?;
        match &self.pilot.phase {
            Phase::Tripped(trip) => Some(End::Tripped(trip.clone())),
            _ if self.pilot.is_held() && plan.attended => None,
            _ if facts.agent.is_at_work => None,
            _ => Some(cap),
        }
    }

    /// Waits again for what was waited for before a dialog. Returns false if that was nothing.
    fn resume_wait(&mut self, facts: &RunFacts, acts: &mut Acts) -> bool {
        let (due, time) = match &self.pilot.phase {
            Phase::Settling => (Due::Settle, SETTLE),
            Phase::Sent => (Due::SubmitTimeout, SUBMIT_TIMEOUT),
            Phase::Waiting(wait) => (Due::WaitOver, look_within(wait.left(facts.now))),
            Phase::Working | Phase::Tripped(_) | Phase::Ended(_) => return false,
        };
        self.wait_for(due, time, acts);
        true
    }

    /// Does what the verdict of the rules demands.
    pub(super) fn follow(
        &mut self,
        verdict: Verdict,
        why: &str,
        facts: &RunFacts,
        acts: &mut Acts,
    ) {
        match verdict {
            Verdict::Settle => {
                self.enter(Phase::Settling);
                let blind = self.is_always_fresh() && self.pilot.plan.caps.max_cost_usd.is_none();
                let time = if blind { SETTLE_FRESH } else { SETTLE };
                self.wait_for(Due::Settle, time, acts);
            }
            Verdict::Prompt => self.type_prompt(facts, acts),
            Verdict::Fresh => acts.push(Act::BeginSession {
                is_full: facts.context.is_full,
            }),
            Verdict::Wait(pause) => self.pause_for(pause, why, facts, acts),
            Verdict::Trip(trip) => self.trip(trip, facts, acts),
            Verdict::End(end) => self.finish(end, facts, acts),
        }
    }

    /// Reports whether every turn has a session of its own.
    pub(super) fn is_always_fresh(&self) -> bool {
        self.pilot.plan.fresh == Fresh::Always
    }

    fn pause_for(&mut self, pause: Pause, why: &str, facts: &RunFacts, acts: &mut Acts) {
        if self.pilot.plan.attended {
            let time = duration(pause.time);
            acts.push(Act::Warn(format!("{why}: the run goes on in {time}")));
        }
        let wait = Wait {
            why: why.to_owned(),
            until: facts.now.since_start + pause.time,
            reset: pause.reset,
            background: false,
        };
        self.wait_in_phase(wait, pause.time, acts);
    }

    /// Enters the phase that waits, for this time.
    pub(super) fn wait_in_phase(&mut self, wait: Wait, time: Duration, acts: &mut Acts) {
        acts.log(RunEvent::Waiting {
            why: wait.why.clone(),
            seconds: time.as_secs(),
            until: wait.reset,
        });
        self.enter(Phase::Waiting(wait));
        self.wait_for(Due::WaitOver, look_within(time), acts);
    }

    /// Stops or ends the run because a breaker has tripped.
    pub(super) fn trip(&mut self, trip: Trip, facts: &RunFacts, acts: &mut Acts) {
        if self.pilot.is_over() {
            return;
        }
        let phase = self.pilot.trip(trip.clone());
        self.due = None;
        acts.log(RunEvent::Tripped {
            breaker: trip.name().to_owned(),
            evidence: trip.to_string(),
        });
        match phase {
            Phase::Ended(end) => self.finish(end, facts, acts),
            _ => acts.push(Act::Stop(trip)),
        }
    }

    /// Ends the run: the agent is ended cleanly and the record closed.
    fn finish(&mut self, end: End, facts: &RunFacts, acts: &mut Acts) {
        let (code, reason) = (end.code(), end.reason());
        self.enter(Phase::Ended(end));
        self.report_turn(facts, acts);
        acts.push(Act::Leave(code, reason));
    }

    /// Handles the end of the time that this was waited for.
    fn time_over(&mut self, due: Due, facts: &RunFacts, acts: &mut Acts) {
        let trip = match due {
            Due::Settle => return self.settle(facts, acts),
            Due::Figure => return self.go_on_without_figure(facts, acts),
            Due::SubmitTimeout => return self.prompt_late(facts, acts),
            Due::WaitOver => return self.wait_over(facts, acts),
            Due::SilentStart => {
                self.stuck = Some(SILENT_AGENT);
                return self.watch_agent(facts, acts);
            }
            Due::StartupTimeout => return self.agent_silent(facts, acts),
            Due::Background => return acts.push(Act::PushReboot),
            Due::PromptBox => return self.prompt_box_late(facts, acts),
            // The device was asked while the wait went on.
            Due::Dialog if facts.agent.asks_from_afar => return,
            Due::Dialog => Trip::Dialog {
                about: facts.agent.reason.clone().unwrap_or_default(),
            },
            Due::Undelivered => Trip::NoAnswer {
                what: "the handoff",
            },
        };
        self.trip(trip, facts, acts);
    }

    /// Handles an agent whose process runs but reports nothing.
    fn agent_silent(&mut self, facts: &RunFacts, acts: &mut Acts) {
        if !self.pilot.plan.attended {
            return self.finish(End::NoAgent(SILENT_AGENT.to_owned()), facts, acts);
        }
        acts.push(Act::Warn(SILENT_AGENT.to_owned()));
        self.stuck = Some(SILENT_AGENT);
    }

    /// Returns the timer for the time on the screen and for the cap on the time.
    pub(super) fn clock(&self, facts: &RunFacts) -> Option<Effect> {
        let left = self.pilot.time_left(facts.now);
        let left = left.map(look_within).map(|left| match left {
            // The run ends with this event, or waits for a turn, a reboot or a person first.
            Duration::ZERO => CLOCK,
            left => left.max(Duration::from_millis(100)),
        });
        let waits = match &self.pilot.phase {
            Phase::Waiting(wait) => Some(wait.left(facts.now)),
            _ => None,
        };
        // The countdown of a wait is shown by the minute, and in the last one by the second.
        let beat = match waits {
            Some(left) if left <= LAST_MINUTE => SECOND,
            Some(left) => CLOCK.min(left.saturating_sub(LAST_MINUTE)).max(SECOND),
            None => CLOCK,
        };
        let tick = self.pilot.plan.attended.then_some(beat);
        let next = match (left, tick) {
            (Some(left), Some(tick)) => Some(left.min(tick)),
            (left, tick) => left.or(tick),
        };
        next.map(|next| Effect::SetTimer(TimerId::RunClock, next))
    }
}
