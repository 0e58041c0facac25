//! The output of the run: its log, its report for scripts, and calls to a person.

use crate::app::{
    effect::{Effect, run_event},
    facts::spent,
    forecast,
    model::{Model, Notice, needs::Need, run::Run},
};
use crate::{
    api::wire::{NeedKind, RunPhase, RunReport},
    autopilot::{Autopilot, End, Phase, RunEvent, events::first_line},
};

use super::{Acts, run_facts::RunFacts};

/// The number of the newest lines of a run that scripts are given.
const TIMELINE_REPORTED: usize = 20;

/// Returns the event of the run's end, with all that it has used.
pub fn run_ended(model: &Model, code: i32) -> RunEvent {
    let spent = spent(model);
    let pilot = model.autopilot.as_ref().map(|run| &run.pilot);
    let why = match pilot.map(|pilot| &pilot.phase) {
        Some(Phase::Ended(end)) => end.to_string(),
        _ => End::Stopped { code }.to_string(),
    };
    RunEvent::RunEnded {
        code,
        why,
        iterations: spent.iterations,
        turns: pilot.map_or(0, |pilot| pilot.turns),
        cost_usd: spent.cost_usd,
        seconds: spent.time.as_secs(),
    }
}

/// Adds, at the end of every update, the run's own events and those for what is shown in the footer, before the supervisor quits.
pub fn publish(model: &mut Model) {
    let run = model.autopilot.as_ref();
    let of_update = run.map(|_| update_events(model, &model.scratch.effects));
    if let Some((run, events)) = model.autopilot.as_mut().zip(of_update) {
        let runs = model.session.agent.process.is_some();
        let events = run
            .iteration_events(&model.lineage, runs)
            .into_iter()
            .chain(events);
        let effects = &mut model.scratch.effects;
        let leaving = |effect: &Effect| matches!(effect, Effect::Quit(_));
        let at = effects.iter().position(leaving).unwrap_or(effects.len());
        effects.splice(at..at, events.map(run_event));
        run.remember(effects, model.now.wall);
    }
}

/// Returns the events for what an update with these effects shows in the footer, and for the run's end if the supervisor quits.
fn update_events(model: &Model, effects: &[Effect]) -> Vec<RunEvent> {
    let mut events = notices(model, effects);
    events.extend(effects.iter().find_map(|effect| match effect {
        Effect::Quit(code) => Some(run_ended(model, *code)),
        _ => None,
    }));
    events
}

/// Returns the events for what the footer shows. A notice with the same text as a line among these effects, such as that of a commit, is
/// left out.
fn notices(model: &Model, effects: &[Effect]) -> Vec<RunEvent> {
    let said = |text: &str| {
        let logged =
            |effect: &Effect| matches!(effect, Effect::LogRun(event) if event.to_string() == text);
        effects.iter().any(logged)
    };
    let notices = model.view.notices.iter();
    let fresh = notices.filter(|notice| notice.at == model.now && !said(&notice.text));
    let event = |notice: &Notice| RunEvent::Notice {
        text: notice.text.clone(),
        bad: notice.bad,
    };
    fresh.map(event).collect()
}

impl Run {
    /// Reports the turn that has ended, with the figures as they are by now.
    pub(super) fn report_turn(&mut self, facts: &RunFacts, acts: &mut Acts) {
        let Some(message) = self.unreported.take() else {
            return;
        };
        let figure = facts.context.figure.as_ref();
        acts.log(RunEvent::TurnEnded {
            iteration: facts.iteration,
            turn: self.pilot.turns,
            used_tokens: figure.map(|figure| figure.used),
            percent: figure.map(|figure| (figure.percent * 10.0).round() / 10.0),
            cost_usd: (facts.spent.cost_usd * 1e4).round() / 1e4,
            done: facts.done,
            open: facts.open,
            message,
        });
    }
}

/// Returns the beginning of a prompt, which names it in a line: those of the run are all alike.
pub(super) fn start_of(text: &str) -> String {
    let line = first_line(text);
    let start: String = line.chars().take(60).collect();
    if start.len() < line.len() {
        format!("{start}…")
    } else {
        start
    }
}

/// Returns the report of the run that scripts read.
pub fn report(model: &Model) -> Option<RunReport> {
    let run = model.autopilot.as_ref()?;
    let pilot = &run.pilot;
    let plan = &pilot.plan;
    let spent = spent(model);
    let state = &model.draft.preserved;
    let waits = match &pilot.phase {
        Phase::Waiting(wait) => Some(wait),
        _ => None,
    };
    let waits_ms = waits.map(|wait| wait.left(model.now).as_millis());
    let (phase, why) = match (phase(pilot), asks(model)) {
        (RunPhase::Working, Some(need)) => (RunPhase::Waiting, Some(need.in_words())),
        (phase, _) => (phase, why(pilot)),
    };
    let iterations = model.lineage.iterations().iter();
    let skipped = run.timeline.len().saturating_sub(TIMELINE_REPORTED);
    Some(RunReport {
        phase,
        task: first_line(&plan.task),
        stop_phrase: plan.stop_phrase.clone(),
        headless: !plan.attended,
        iteration: spent.iterations,
        max_iterations: plan.caps.max_iterations,
        turns: pilot.turns,
        elapsed_s: spent.time.as_secs(),
        max_time_s: plan.caps.max_time.map(|time| time.as_secs()),
        cost_usd: spent.cost_usd,
        max_cost_usd: plan.caps.max_cost_usd,
        paused_by: pilot.paused_by.clone(),
        why,
        waits_until: waits.and_then(|wait| wait.reset),
        waits_s: waits_ms.map(|ms| u64::try_from(ms.div_ceil(1_000)).unwrap_or(u64::MAX)),
        done: state.completed_items.len(),
        open: state.pending_items.len(),
        next: state.pending_items.first().map(|item| item.text.clone()),
        reboots: iterations.filter(|one| one.reboot.is_some()).count(),
        commits: model.outside.counters.commits,
        tests_passed: model.outside.counters.tests_passed,
        tests_failed: model.outside.counters.tests_failed,
        forecast: forecast::report(model),
        timeline: run.timeline.iter().skip(skipped).cloned().collect(),
    })
}

/// Returns what the agent at work waits for a person for.
fn asks(model: &Model) -> Option<&Need> {
    let kinds = [
        NeedKind::Permission,
        NeedKind::Question,
        NeedKind::Suspended,
    ];
    let mut needs = model.outside.needs().iter();
    needs.find(|need| kinds.contains(&need.kind))
}

/// Returns the phase of a run for the report.
const fn phase(pilot: &Autopilot) -> RunPhase {
    if pilot.paused_by.is_some() {
        return RunPhase::Paused;
    }
    match &pilot.phase {
        Phase::Working | Phase::Settling | Phase::Sent => RunPhase::Working,
        Phase::Waiting(_) => RunPhase::Waiting,
        Phase::Tripped(_) => RunPhase::Tripped,
        Phase::Ended(_) => RunPhase::Ended,
    }
}

/// Returns what the run waits for, or the reason that it is stopped.
pub(super) fn why(pilot: &Autopilot) -> Option<String> {
    match &pilot.phase {
        Phase::Waiting(wait) => Some(wait.why.clone()),
        Phase::Tripped(trip) => Some(format!("{}: {trip}", trip.name())),
        Phase::Ended(end) => Some(end.to_string()),
        Phase::Working | Phase::Settling | Phase::Sent => None,
    }
}
