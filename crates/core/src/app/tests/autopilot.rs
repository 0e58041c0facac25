//! The autonomous run on the same bench: what is typed, waited for and ended.

use crate::{
    api::wire::RunPhase,
    app::{
        autopilot,
        event::{Closing, MadeAgain, PlacesSeen, TranscriptFacts},
    },
    autopilot::{Caps, End, Fresh, Limits, Phase, Plan, RunEvent, prompt},
    lineage::Cause,
};
use pitstop_agent::{PermissionRequest, RateLimit, claude};
use pitstop_transcript::usage::Usage;

use super::*;

fn plan() -> Plan {
    Plan {
        task: "build a boat".to_owned(),
        stop_phrase: "ALL DONE".to_owned(),
        caps: Caps {
            max_iterations: Some(3),
            max_cost_usd: Some(5.0),
            max_time: Some(Duration::from_hours(1)),
        },
        limits: Limits::default(),
        fresh: Fresh::Threshold,
        attended: true,
    }
}

/// The run begins beside an agent that is there already.
pub(super) fn begin(bench: &mut Bench, plan: Plan) {
    let model = &mut bench.model;
    autopilot::begin(model, plan, false, Some(Vec::new()), Duration::ZERO);
}

/// A run whose agent is at its first turn.
fn run(plan: Plan) -> Bench {
    let mut bench = Bench::new();
    begin(&mut bench, plan);
    bench.model.autopilot.as_mut().unwrap().pilot.task_changed = false;
    bench.prompted(OLD, "the start prompt");
    bench
}

fn headless() -> Bench {
    run(Plan {
        attended: false,
        ..plan()
    })
}

impl Bench {
    fn phase(&self) -> &Phase {
        &self.model.autopilot.as_ref().unwrap().pilot.phase
    }

    /// Returns the name of the breaker that has ended the run.
    #[track_caller]
    fn trip_at_end(&self) -> &str {
        match self.phase() {
            Phase::Ended(End::Tripped(trip)) => trip.name(),
            other => panic!("{other:?}"),
        }
    }

    /// Lets time pass, with every timer that falls into it.
    fn pass(&mut self, time: Duration, timers: &mut Vec<(TimerId, Duration)>) -> Vec<Effect> {
        let end = self.since_start + time;
        let mut done = Vec::new();
        loop {
            let next = timers
                .iter()
                .enumerate()
                .filter(|(_, (_, due))| *due <= end)
                .min_by_key(|(_, (_, due))| *due)
                .map(|(at, _)| at);
            let Some(next) = next else { break };
            let (id, due) = timers.swap_remove(next);
            self.since_start = due;
            let effects = self.send(Event::TimerFired(id));
            keep_timers(self.since_start, &effects, timers);
            done.extend(effects);
        }
        self.since_start = end;
        done
    }

    fn status_line(&mut self, used: u64, cost: f64, limit: Option<RateLimit>) -> Vec<Effect> {
        let session = self.model.session.id;
        self.send(Event::Agent(AgentEvent::StatusLine(Box::new(StatusLine {
            session,
            window: Some(Tokens(200_000)),
            usage: Some(Usage {
                input: Tokens(used),
                ..Usage::default()
            }),
            cost_usd: Some(cost),
            five_hour: limit,
            ..StatusLine::default()
        }))))
    }
}

/// Notes the timers that were set; one that is set again is postponed.
fn keep_timers(now: Duration, effects: &[Effect], timers: &mut Vec<(TimerId, Duration)>) {
    for effect in effects {
        if let Effect::SetTimer(id, after) = effect {
            timers.retain(|(known, _)| known != id);
            timers.push((*id, now + *after));
        }
    }
}

fn pastes(effects: &[Effect]) -> Vec<String> {
    all!(effects, Effect::Paste(pieces) => pieces.concat())
}

fn enters(effects: &[Effect]) -> usize {
    all!(effects, Effect::Type(keys) if keys == claude::ENTER || keys == b"\r" => ()).len()
}

fn run_events(effects: &[Effect]) -> Vec<&RunEvent> {
    all!(effects, Effect::LogRun(event) => &**event)
}

fn calls(effects: &[Effect]) -> usize {
    all!(effects, Effect::Call(_) => ()).len()
}

/// A turn ends with these words, its figure comes, and a second passes.
fn turn(bench: &mut Bench, message: &str) -> Vec<Effect> {
    let mut timers = Vec::new();
    let mut effects = bench.said(OLD, message);
    keep_timers(bench.since_start, &effects, &mut timers);
    let used = bench.model.used().map_or(50_000, |used| used.0);
    bench.used(used);
    effects.extend(bench.pass(Duration::from_secs(1), &mut timers));
    effects
}

const MINUTE: Duration = Duration::from_secs(60);

#[test]
fn at_the_end_of_a_turn_the_next_prompt_is_typed_with_its_own_enter() {
    let mut bench = run(plan());
    let effects = turn(&mut bench, "one");
    assert_eq!(pastes(&effects), [prompt::go_on()]);
    assert_eq!(enters(&effects), 1);
    bench.prompted(OLD, &prompt::go_on());
    assert_eq!(*bench.phase(), Phase::Working);
}

#[test]
fn a_prompt_that_does_not_arrive_gets_more_enters_and_then_trips() {
    let mut bench = run(plan());
    // It stays in the prompt box.
    let mut timers = Vec::new();
    let effects = bench.said(OLD, "one");
    keep_timers(bench.since_start, &effects, &mut timers);
    let effects = bench.pass(MINUTE, &mut timers);
    assert_eq!(pastes(&effects).len(), 1, "the text is never typed twice");
    assert_eq!(enters(&effects), 3);
    assert!(matches!(bench.phase(), Phase::Tripped(trip) if trip.name() == "no_answer"));
    assert_eq!(calls(&effects), 1);
}

#[test]
fn the_stop_phrase_ends_the_agent_and_closes_the_record() {
    let mut bench = run(plan());
    let effects = bench.said(OLD, "ALL DONE");
    assert_eq!(signals(&effects), [StopSignal::Exit]);
    assert_eq!(calls(&effects), 1);
    let effects = bench.exited(0);
    assert_eq!(effects.last(), Some(&Effect::Quit(0)));
    let last = bench.model.lineage.iterations().last().unwrap();
    assert_eq!(last.end_reason, Some(EndReason::StopPhraseFound));
    assert!(
        matches!(
            run_events(&effects)[..],
            [
                ..,
                RunEvent::IterationEnded { .. },
                RunEvent::RunEnded { code: 0, .. }
            ]
        ),
        "{effects:#?}"
    );
}

/// The turn of a run ends as the transcript shows, and its hook does not come.
fn ended_without_hook(message: &str, closing: Closing) -> (Bench, Vec<Effect>) {
    let mut bench = run(plan());
    bench.titled("⠂ boat");
    bench.facts_read(TranscriptFacts {
        turns: 1,
        whole: true,
        said: Some(message.to_owned()),
        closing: Some(closing),
        closings: 1,
        ..TranscriptFacts::default()
    });
    bench.titled("✳ boat");
    let effects = bench.stands();
    (bench, effects)
}

#[test]
fn a_turn_whose_hook_is_lost_ends_as_the_transcript_shows() {
    let (_, effects) = ended_without_hook("ALL DONE", Closing::Answered);
    assert_eq!(signals(&effects), [StopSignal::Exit]);
    let failed = Closing::Failed {
        word: "rate_limit".to_owned(),
        message: "You have reached your limit.".to_owned(),
    };
    let (mut bench, _) = ended_without_hook("one", failed);
    assert_eq!(bench.state(), AgentState::Limit);
    bench.failed(Failure::UsageLimit, "You have reached your limit.");
    assert_eq!(bench.model.session.agent.turns, 1);
    // A hook that comes late tells nothing new.
    let (mut bench, effects) = ended_without_hook("one", Closing::Answered);
    let is_failure = has!(run_events(&effects), RunEvent::TurnFailed { .. });
    assert!(!is_failure, "{effects:#?}");
    bench.said(OLD, "one");
    let turns = bench.model.autopilot.as_ref().unwrap().pilot.turns;
    assert_eq!((turns, bench.model.session.agent.turns), (1, 1));
    // Once the agent works again, it is the hook of that turn.
    bench.prompted(OLD, "go on");
    bench.said(OLD, "two");
    assert_eq!(bench.model.session.agent.turns, 2);
}

#[test]
fn a_turn_that_a_busy_client_does_not_show_yet_has_not_ended() {
    let mut bench = run(plan());
    bench.titled("✳ boat");
    bench.facts_read(TranscriptFacts {
        turns: 1,
        whole: true,
        closing: Some(Closing::Answered),
        closings: 1,
        ..TranscriptFacts::default()
    });
    bench.said(OLD, "one");
    bench.prompted(OLD, "go on");
    for _ in 0..4 {
        let effects = bench.stands();
        assert_eq!(run_events(&effects), [] as [&RunEvent; 0]);
        assert_eq!(bench.state(), AgentState::Busy);
        bench.send(Event::Agent(AgentEvent::ToolStarted {
            session: session(OLD),
            call: ToolCall::default(),
        }));
    }
    // It never shows: it was stopped at once, and the answer in the transcript is of the turn before.
    bench.wait(Duration::from_secs(10));
    let effects = bench.stands();
    assert!(
        matches!(run_events(&effects)[..], [RunEvent::TurnFailed { .. }, ..]),
        "{effects:#?}"
    );
}

#[test]
fn the_hook_of_a_tool_that_comes_behind_that_of_its_turn_ends_no_turn_again() {
    for closings in [0, 1] {
        let mut bench = run(plan());
        bench.titled("✳ boat");
        bench.said(OLD, "one");
        let turns = bench.model.session.agent.turns;
        bench.tool(ToolCall::default(), "");
        bench.facts_read(TranscriptFacts {
            turns: 1,
            whole: true,
            said: Some("one".to_owned()),
            closing: (closings > 0).then_some(Closing::Answered),
            closings,
            ..TranscriptFacts::default()
        });
        let effects = bench.stands();
        assert_eq!(run_events(&effects), [] as [&RunEvent; 0]);
        assert_eq!(bench.state(), AgentState::Idle);
        assert_eq!((turns, bench.model.session.agent.turns), (1, 1));
        let run = bench.model.autopilot.as_ref().unwrap();
        assert_eq!(run.pilot.turns, 1, "{closings}");
    }
}

#[test]
fn a_usage_limit_is_waited_for_by_the_status_line_and_gone_on_from_once() {
    let mut bench = run(plan());
    let reset = bench.at().wall + Duration::from_mins(30);
    bench.status_line(
        50_000,
        1.0,
        Some(RateLimit {
            used_percentage: 100.0,
            resets_at: u64::try_from(reset.timestamp()).ok(),
        }),
    );
    let mut timers = Vec::new();
    let effects = bench.failed(Failure::UsageLimit, "limit reached");
    keep_timers(bench.since_start, &effects, &mut timers);
    assert!(matches!(bench.phase(), Phase::Waiting(wait) if wait.reset == Some(reset)));
    let effects = bench.pass(Duration::from_mins(29), &mut timers);
    assert!(pastes(&effects).is_empty());
    let effects = bench.pass(Duration::from_secs(80), &mut timers);
    assert_eq!(pastes(&effects), [prompt::go_on()]);
    bench.prompted(OLD, &prompt::go_on());
    // It holds on: the next wait is a guess, and again one prompt follows.
    let effects = bench.failed(Failure::UsageLimit, "limit reached");
    keep_timers(bench.since_start, &effects, &mut timers);
    assert!(matches!(bench.phase(), Phase::Waiting(wait) if wait.reset.is_none()));
    let effects = bench.pass(Duration::from_secs(121), &mut timers);
    assert_eq!(pastes(&effects).len(), 1);
}

#[test]
fn a_usage_limit_is_over_by_the_wall_clock_whatever_the_machine_does_meanwhile() {
    // The machine sleeps for this long, in seconds, and the clock is set by that; how long the run waits then while it is awake.
    for (asleep, set, left) in [
        (0, 0, 30 * 60),
        (25 * 60, 0, 5 * 60),
        (10 * 60 * 60, 0, 0),
        (0, 20 * 60, 10 * 60),
        (0, -20 * 60, 50 * 60),
    ] {
        for attended in [true, false] {
            let caps = Caps::default();
            let mut bench = run(Plan {
                caps,
                attended,
                ..plan()
            });
            let reset = bench.at().wall + Duration::from_mins(30);
            bench.model.session.agent.limit_reset = Some(reset);
            let mut timers = Vec::new();
            let effects = bench.failed(Failure::UsageLimit, "limit reached");
            keep_timers(bench.since_start, &effects, &mut timers);
            bench.asleep += Duration::from_secs(asleep);
            bench.clock_set += set;
            let mut effects = Vec::new();
            if left > 0 {
                effects.extend(bench.pass(Duration::from_secs(left - 1), &mut timers));
            }
            assert_eq!(pastes(&effects).len(), 0, "{asleep} {set}: too early");
            let effects = bench.pass(Duration::from_secs(50), &mut timers);
            assert_eq!(pastes(&effects).len(), 1, "{asleep} {set}: too late");
        }
    }
}

#[test]
fn a_turn_that_fails_is_tried_again_after_a_while() {
    let mut bench = run(plan());
    let mut timers = Vec::new();
    for wait in [5, 10, 20] {
        let effects = bench.failed(Failure::Service, "API Error: 529");
        keep_timers(bench.since_start, &effects, &mut timers);
        let effects = bench.pass(Duration::from_secs(wait - 1), &mut timers);
        assert!(pastes(&effects).is_empty(), "{wait}");
        let effects = bench.pass(Duration::from_secs(2), &mut timers);
        assert_eq!(pastes(&effects).len(), 1, "{wait}");
        bench.prompted(OLD, &prompt::go_on());
    }
}

#[test]
fn a_run_calls_a_person_to_log_in_at_once_and_once() {
    let mut bench = headless();
    let mut timers = Vec::new();
    let effects = turn(&mut bench, "one");
    keep_timers(bench.since_start, &effects, &mut timers);
    let mut called = Vec::new();
    for wait in [6, 11, 21] {
        let effects = bench.failed(Failure::Account, "Please run /login");
        called.extend(bench.model.outside.needs().iter().map(|one| one.id));
        keep_timers(bench.since_start, &effects, &mut timers);
        bench.pass(Duration::from_secs(wait), &mut timers);
        bench.prompted(OLD, &prompt::go_on());
    }
    assert_eq!(called.len(), 3);
    called.dedup();
    assert_eq!(called.len(), 1, "{called:?}");
    turn(&mut bench, "two");
    assert!(bench.model.outside.needs().is_empty());
}

#[test]
fn a_conversation_that_is_refused_again_and_again_is_left_for_a_fresh_session() {
    let mut bench = headless();
    let mut timers = Vec::new();
    let effects = turn(&mut bench, "one");
    keep_timers(bench.since_start, &effects, &mut timers);
    for wait in [6, 11] {
        let effects = bench.failed(Failure::Conversation, "API Error: 400 messages.3");
        assert!(bench.model.reboot.attempt.is_none());
        keep_timers(bench.since_start, &effects, &mut timers);
        bench.pass(Duration::from_secs(wait), &mut timers);
        bench.prompted(OLD, &prompt::go_on());
    }
    bench.failed(Failure::Conversation, "API Error: 400 messages.3");
    let attempt = bench.model.reboot.attempt.as_ref();
    assert_eq!(attempt.map(|one| one.cause), Some(Cause::Autopilot));
}

#[test]
fn a_service_that_never_comes_back_ends_a_headless_run() {
    let mut bench = headless();
    for _ in 0..10 {
        bench.failed(Failure::Service, "API Error: 529");
    }
    assert_eq!(bench.trip_at_end(), "service");
    let effects = bench.exited(0);
    assert!(effects.contains(&Effect::Quit(4)), "{effects:?}");
}

#[test]
fn typing_holds_the_run_and_answering_a_dialog_does_not() {
    let mut bench = run(plan());
    let effects = bench.asks("Bash");
    assert_eq!(calls(&effects), 1);
    assert_eq!(calls(&bench.asks("Bash")), 0, "once is enough");
    let report = crate::app::autopilot::report(&bench.model).expect("a run");
    assert_eq!(report.phase, RunPhase::Waiting);
    assert_eq!(report.why.as_deref(), Some("The agent asks you: Bash"));
    bench.prompt_box(PromptBox::Absent);
    bench.press(KeyCode::Enter);
    assert!(!bench.model.reboot.paused);
    bench.ready();
    bench.stands();
    bench.press(KeyCode::Char('x'));
    assert!(bench.model.reboot.paused);
    let effects = turn(&mut bench, "one");
    assert!(pastes(&effects).is_empty());
    // What was typed was submitted, so nothing of it is left in the prompt.
    bench.prompted(OLD, "x");
    bench.said(OLD, "ALL DONE");
    assert!(
        bench.model.outside.quitting().is_none(),
        "the person has it"
    );
    let mut timers = Vec::new();
    let effects = bench.control(Control::Resume);
    keep_timers(bench.since_start, &effects, &mut timers);
    bench.pass(Duration::from_secs(10), &mut timers);
    assert!(
        bench.model.outside.quitting().is_some(),
        "the stop phrase was not forgotten"
    );
}

#[test]
fn a_dialog_in_a_headless_run_trips_after_a_while() {
    let mut bench = headless();
    let mut timers = Vec::new();
    let effects = bench.asks("Bash");
    keep_timers(bench.since_start, &effects, &mut timers);
    bench.prompt_box(PromptBox::Absent);
    bench.pass(Duration::from_secs(29), &mut timers);
    assert!(bench.model.outside.quitting().is_none());
    let effects = bench.pass(Duration::from_secs(2), &mut timers);
    assert!(bench.model.outside.quitting().is_some());
    assert!(has!(run_events(&effects), RunEvent::Tripped { breaker, .. } if breaker == "dialog"));
}

#[test]
fn the_end_at_a_dialog_names_the_question_and_not_the_clients_notification() {
    let question = r#"{"questions":[{"question":"Which colour?"}]}"#;
    for (tool, input, named) in [
        ("AskUserQuestion", question, "Which colour?"),
        ("ExitPlanMode", "{}", "its plan waits for approval"),
        ("Bash", "cargo test", "permission for Bash: cargo test"),
    ] {
        let mut bench = headless();
        let mut timers = Vec::new();
        let request = Box::new(PermissionRequest {
            session: session(OLD),
            tool: tool.to_owned(),
            input: input.to_owned(),
            whole: true,
            is_plain: false,
            by_subagent: false,
        });
        let mut effects = bench.send(Event::PermissionAsked {
            call: None,
            request,
        });
        effects.extend(bench.asks("Claude needs your permission"));
        keep_timers(bench.since_start, &effects, &mut timers);
        bench.prompt_box(PromptBox::Absent);
        let effects = bench.pass(Duration::from_secs(31), &mut timers);
        let trip = run_events(&effects)
            .into_iter()
            .find_map(|event| match event {
                RunEvent::Tripped { evidence, .. } => Some(evidence.clone()),
                _ => None,
            });
        assert!(
            trip.as_ref().is_some_and(|said| said.ends_with(named)),
            "{trip:?}"
        );
    }
}

#[test]
fn a_refused_reboot_ends_a_headless_run_only_once_the_turn_is_over() {
    let mut bench = headless();
    bench.missing = Some("no room on the disk".to_owned());
    bench.model.config.reboot.mode = RebootMode::Auto;
    bench.model.reboot.mode = RebootMode::Auto;
    bench.tool_starts("Bash", "1");
    bench.tool_ends("Bash", "1");
    bench.used(178_000);
    bench.send(Event::TimerFired(TimerId::Age));
    bench.git();
    bench.wait(Duration::from_mins(11));
    bench.send(Event::TimerFired(TimerId::Age));
    bench.git();
    let tried: Vec<_> = bench.prepared.iter().map(|one| one.is_patient).collect();
    assert_eq!(tried, [true]);
    assert!(
        bench.model.outside.quitting().is_none(),
        "{:?}",
        bench.phase()
    );
    turn(&mut bench, "one");
    bench.git();
    assert_eq!(bench.trip_at_end(), "reboot_refused");
}

#[test]
fn a_run_whose_projects_directory_is_gone_ends_with_its_turn_and_names_it() {
    let mut bench = headless();
    bench.send(Event::PlacesChecked(Box::new(PlacesSeen {
        made: MadeAgain::default(),
        missing: Some("cannot open /home/ada/tide".to_owned()),
        project_gone: true,
        socket: "/run/p.sock".into(),
        observe: "/run/p.observe".into(),
    })));
    assert!(
        bench.model.outside.quitting().is_none(),
        "a turn is at work"
    );
    let effects = turn(&mut bench, "one");
    assert!(pastes(&effects).is_empty());
    assert_eq!(bench.trip_at_end(), "project_gone");
}

#[test]
fn a_persons_reboot_in_a_run_is_refused_without_a_second_try() {
    let mut bench = run(plan());
    turn(&mut bench, "one");
    bench.missing = Some("no room on the disk".to_owned());
    bench.approve();
    let tried: Vec<_> = bench.prepared.iter().map(|one| one.is_patient).collect();
    assert_eq!(tried, [false]);
}

#[test]
fn what_is_said_by_a_script_is_typed_at_the_next_safe_moment() {
    let mut bench = run(plan());
    let say = |bench: &mut Bench, text: &str| bench.control(Control::Say(text.to_owned()));
    let effects = say(&mut bench, "mind the gap");
    assert!(ordered(&effects).contains("next safe moment"));
    assert!(pastes(&effects).is_empty(), "a turn runs");
    let effects = turn(&mut bench, "one");
    assert_eq!(pastes(&effects), ["mind the gap"]);
    bench.prompted(OLD, "mind the gap");
    // Though it is paused, a person's word is typed.
    bench.control(Control::Pause);
    bench.said(OLD, "two");
    let effects = say(&mut bench, "and the other");
    assert_eq!(pastes(&effects), ["and the other"]);
}

#[test]
fn cost_and_time_end_the_run_when_its_turn_is_over_or_the_next_session_would_begin() {
    let code = |bench: &Bench| bench.model.outside.quitting().map(|one| one.code);
    let mut bench = run(plan());
    bench.status_line(50_000, 5.1, None);
    bench.tool_starts("Bash", "1");
    bench.tool_ends("Bash", "1");
    assert_eq!(code(&bench), None, "a turn that is at work is not ended");
    turn(&mut bench, "one");
    assert_eq!(code(&bench), Some(3));

    let mut bench = run(plan());
    bench.status_line(160_000, 5.1, None);
    bench.tool_starts("Bash", "1");
    assert_eq!(code(&bench), None, "nor is a call of a tool");
    bench.tool_ends("Bash", "1");
    assert_eq!(code(&bench), Some(3), "no other session may follow");

    let mut bench = run(plan());
    bench.wait(Duration::from_hours(1));
    let effects = bench.send(Event::TimerFired(TimerId::RunClock));
    assert_eq!(code(&bench), None);
    let again = |effect: &Effect| matches!(effect, Effect::SetTimer(TimerId::RunClock, after) if after.as_secs() >= 1);
    assert!(effects.iter().any(again), "it does not look all the time");
    turn(&mut bench, "one");
    assert_eq!(code(&bench), Some(3));
}

#[test]
fn a_full_window_reboots_at_once_where_no_person_watches() {
    let mut bench = headless();
    bench.status_line(160_000, 1.0, None);
    bench.said(OLD, "one");
    let effects = bench.git();
    assert_eq!(signals(&effects), [StopSignal::Exit], "no countdown");
    let effects = bench.exited(0);
    let start = starts(&effects).pop().expect("the next session");
    let handoff = start.prompt.expect("the handoff");
    assert!(handoff.contains("build a boat"), "{handoff}");
    assert!(handoff.contains("\n\nALL DONE"), "{handoff}");
    let first = &bench.model.lineage.iterations()[0];
    assert_eq!(first.end_reason, Some(EndReason::ContextLimit));
}

#[test]
fn the_last_iteration_is_used_up_and_not_rebooted() {
    let mut bench = run(Plan {
        caps: Caps {
            max_iterations: Some(1),
            ..Caps::default()
        },
        ..plan()
    });
    bench.status_line(160_000, 1.0, None);
    assert_eq!(bench.step(), None, "it may end its turn");
    turn(&mut bench, "one");
    assert_eq!(bench.model.outside.quitting().map(|one| one.code), Some(3));
}

#[test]
fn background_tasks_do_not_hold_up_a_reboot_for_ever() {
    let mut bench = headless();
    let mut timers = Vec::new();
    bench.status_line(160_000, 1.0, None);
    let effects = bench.left(OLD, Some("the server runs"), in_background(&["a1"]));
    keep_timers(bench.since_start, &effects, &mut timers);
    assert_eq!(bench.step(), Some(Step::Armed));
    let effects = bench.pass(Duration::from_secs(29 * 60), &mut timers);
    assert!(signals(&effects).is_empty());
    bench.pass(Duration::from_secs(61), &mut timers);
    assert_eq!(bench.step(), Some(Step::Ending));
}

#[test]
fn a_run_waits_for_background_work_and_counts_no_breaker_meanwhile() {
    let mut bench = run(Plan {
        attended: false,
        limits: Limits {
            same_message: Some(2),
            no_change: Some(2),
            ..Limits::default()
        },
        ..plan()
    });
    let mut timers = Vec::new();
    for _ in 0..5 {
        let effects = bench.left(OLD, Some("I wait"), in_background(&["a1"]));
        keep_timers(bench.since_start, &effects, &mut timers);
        let effects = bench.pass(Duration::from_secs(5 * 60), &mut timers);
        assert!(pastes(&effects).is_empty());
        let report = autopilot::report(&bench.model).unwrap();
        assert_eq!(
            (report.phase, report.why.as_deref()),
            (
                RunPhase::Waiting,
                Some("1 background agent, for at most 30 min")
            )
        );
        // The client comes back by itself.
        bench.prompted(OLD, "<task-notification>");
        assert_eq!(*bench.phase(), Phase::Working);
    }
    bench.said(OLD, "ALL DONE");
    assert_eq!(bench.model.outside.quitting().map(|one| one.code), Some(0));
}

#[test]
fn a_run_s_lines_are_remembered_and_its_wait_is_counted_down() {
    let mut bench = run(plan());
    let mut timers = Vec::new();
    let effects = bench.left(OLD, Some("I wait"), in_background(&["a1"]));
    keep_timers(bench.since_start, &effects, &mut timers);
    bench.pass(Duration::from_secs(60), &mut timers);
    bench.send(Event::TimerFired(TimerId::Age));
    let before = autopilot::report(&bench.model).unwrap();
    let left = before.waits_s.expect("it waits");
    assert!((1..=30 * 60).contains(&left), "{left}");
    let lines: Vec<_> = before.timeline.iter().map(|line| &line.text).collect();
    assert!(
        lines[0].starts_with("run started: build a boat"),
        "{lines:#?}"
    );
    assert!(
        lines.iter().any(|line| line.starts_with("turn 1 ended")),
        "{lines:#?}"
    );
    bench.wait(Duration::from_secs(90));
    bench.send(Event::TimerFired(TimerId::Age));
    let after = autopilot::report(&bench.model).unwrap();
    assert_eq!(after.waits_s, Some(left - 90));
    // In the last minute the screen is brought up to date by the second.
    bench.wait(Duration::from_secs(left - 90 - 30));
    let effects = bench.send(Event::TimerFired(TimerId::RunClock));
    let second = Effect::SetTimer(TimerId::RunClock, Duration::from_secs(1));
    assert!(effects.contains(&second), "{effects:#?}");
}

/// Returns a run, with its timers, that has waited for a server in vain and goes on beside it.
fn waited_for_a_server() -> (Bench, Vec<(TimerId, Duration)>) {
    let mut bench = headless();
    let mut timers = Vec::new();
    let effects = bench.left(OLD, Some("the server runs"), in_background(&["server"]));
    keep_timers(bench.since_start, &effects, &mut timers);
    let effects = bench.pass(Duration::from_secs(30 * 60 + 10), &mut timers);
    assert_eq!(pastes(&effects), [prompt::go_on()]);
    bench.prompted(OLD, &prompt::go_on());
    (bench, timers)
}

#[test]
fn background_work_is_waited_for_once_and_not_for_ever() {
    let (mut bench, mut timers) = waited_for_a_server();
    let effects = bench.left(OLD, Some("it runs on"), in_background(&["server"]));
    keep_timers(bench.since_start, &effects, &mut timers);
    let effects = bench.pass(Duration::from_secs(10), &mut timers);
    assert_eq!(pastes(&effects), [prompt::go_on()]);
    bench.prompted(OLD, &prompt::go_on());
    // Another one is waited for.
    let effects = bench.left(
        OLD,
        Some("and another"),
        in_background(&["server", "build"]),
    );
    keep_timers(bench.since_start, &effects, &mut timers);
    let effects = bench.pass(MINUTE, &mut timers);
    assert!(pastes(&effects).is_empty());
}

#[test]
fn a_wake_up_is_waited_for_as_long_as_the_client_may_set_it() {
    let mut bench = headless();
    let mut timers = Vec::new();
    let wake_up = Background {
        prompts: vec![pitstop_agent::TimedPrompt {
            id: "c1".to_owned(),
            recurs: false,
            ..Default::default()
        }],
        ..Background::default()
    };
    bench
        .model
        .autopilot
        .as_mut()
        .unwrap()
        .pilot
        .plan
        .caps
        .max_time = None;
    let effects = bench.left(OLD, Some("I look again in an hour"), wake_up);
    keep_timers(bench.since_start, &effects, &mut timers);
    let effects = bench.pass(Duration::from_secs(64 * 60), &mut timers);
    assert!(pastes(&effects).is_empty());
    let effects = bench.pass(Duration::from_secs(2 * 60), &mut timers);
    assert_eq!(pastes(&effects), [prompt::go_on()]);
}

#[test]
fn a_headless_run_types_nothing_under_a_dialog_of_which_no_hook_speaks() {
    let mut bench = headless();
    let mut timers = Vec::new();
    bench.send(Event::Agent(AgentEvent::ToolStarted {
        session: session(OLD),
        call: ToolCall {
            id: Some("t1".to_owned()),
            name: "Bash".to_owned(),
            ..ToolCall::default()
        },
    }));
    bench.titled("✳ work");
    bench.prompt_box(PromptBox::Absent);
    let effects = bench.stands();
    assert_eq!(bench.state(), AgentState::Unknown);
    keep_timers(bench.since_start, &effects, &mut timers);
    let effects = bench.pass(MINUTE, &mut timers);
    assert!(pastes(&effects).is_empty() && enters(&effects) == 0);
    assert_eq!(bench.model.outside.quitting().map(|one| one.code), Some(4));
    let because = |event: &&RunEvent| matches!(event, RunEvent::Tripped { breaker, evidence } if breaker == "dialog" && evidence.contains("prompt box"));
    assert!(run_events(&effects).iter().any(because), "{effects:?}");
}

#[test]
fn a_draft_of_the_humans_pauses_the_run_and_nothing_is_joined_to_it() {
    let mut bench = run(plan());
    bench.prompt_box(holds("half written"));
    let effects = turn(&mut bench, "one");
    assert!(pastes(&effects).is_empty());
    assert!(bench.model.reboot.paused);
    let resume = |bench: &mut Bench| bench.control(Control::Resume);
    // However often it is resumed.
    for _ in 0..3 {
        let effects = resume(&mut bench);
        assert!(matches!(
            &effects[0],
            Effect::Answer(_, Reply::Refused { .. })
        ));
    }
    bench.ready();
    let mut timers = Vec::new();
    let effects = resume(&mut bench);
    keep_timers(bench.since_start, &effects, &mut timers);
    let effects = bench.pass(MINUTE, &mut timers);
    assert_eq!(pastes(&effects), [prompt::go_on()]);
}

#[test]
fn a_text_that_was_typed_while_the_prompt_came_pauses_the_run() {
    let mut bench = run(plan());
    bench.shows = false;
    let mut timers = Vec::new();
    let effects = bench.said(OLD, "one");
    keep_timers(bench.since_start, &effects, &mut timers);
    bench.used(50_000);
    let effects = bench.pass(Duration::from_secs(1), &mut timers);
    assert_eq!(pastes(&effects), [prompt::go_on()]);
    let joined = format!("x{}", prompt::go_on());
    let mut effects = bench.prompt_box(holds(&joined));
    keep_timers(bench.since_start, &effects, &mut timers);
    effects.extend(bench.pass(MINUTE, &mut timers));
    assert_eq!(enters(&effects), 0);
    let paused = |event: &&RunEvent| matches!(event, RunEvent::Paused { by } if by == "the text in the agent's prompt");
    assert!(run_events(&effects).iter().any(paused), "{effects:?}");
}

#[test]
fn a_prompt_waits_for_the_prompt_box() {
    let mut bench = headless();
    bench.prompt_box(PromptBox::Absent);
    let mut timers = Vec::new();
    let effects = bench.said(OLD, "one");
    keep_timers(bench.since_start, &effects, &mut timers);
    bench.used(50_000);
    let effects = bench.pass(Duration::from_secs(1), &mut timers);
    assert!(pastes(&effects).is_empty());
    assert_eq!(pastes(&bench.ready()), [prompt::go_on()]);
}

#[test]
fn an_agent_that_shows_no_life_could_not_run() {
    let mut bench = headless();
    bench.model.session.agent.state = AgentState::Starting;
    let mut timers = Vec::new();
    let effects = bench.git();
    keep_timers(bench.since_start, &effects, &mut timers);
    let effects = bench.pass(Duration::from_secs(30), &mut timers);
    assert_eq!(bench.model.outside.quitting(), None);
    assert!(
        has!(run_events(&effects), RunEvent::PersonNeeded { why } if why.contains("a dialog at its start")),
        "an unattended run reports what it waits for: {effects:?}"
    );
    bench.pass(Duration::from_secs(61), &mut timers);
    assert_eq!(bench.model.outside.quitting().map(|one| one.code), Some(5));
}

#[test]
fn a_headless_run_names_the_dialog_at_the_start_of_its_agent_and_ends() {
    let mut bench = Bench::bare(Config::default());
    super::super::iteration::begin(&mut bench.model, false, None, None);
    bench.spawned(NEW);
    let plan = Plan {
        attended: false,
        ..plan()
    };
    begin(&mut bench, plan);
    bench.prompt_box(PromptBox::Dialog("Do you trust it?".to_owned()));
    let mut timers = Vec::new();
    let mut effects = bench.stands();
    keep_timers(bench.since_start, &effects, &mut timers);
    effects.extend(bench.pass(Duration::from_secs(31), &mut timers));
    let needed = |event: &&RunEvent| matches!(event, RunEvent::PersonNeeded { why } if why == "The agent asks you: Do you trust it?");
    assert!(run_events(&effects).iter().any(needed), "{effects:?}");
    let tripped = |event: &&RunEvent| matches!(event, RunEvent::Tripped { breaker, evidence } if breaker == "dialog" && evidence.contains("Do you trust it?"));
    assert!(run_events(&effects).iter().any(tripped), "{effects:?}");
    assert_eq!(bench.model.outside.quitting().map(|one| one.code), Some(4));
}

#[test]
fn a_dead_agent_is_resumed_with_the_task() {
    let mut bench = run(plan());
    let mut timers = Vec::new();
    let effects = bench.exited(1);
    keep_timers(bench.since_start, &effects, &mut timers);
    assert_eq!(bench.model.view.overlay, None, "the run sees to it");
    let effects = bench.pass(Duration::from_secs(2), &mut timers);
    let start = starts(&effects).pop().expect("it is started again");
    assert!(start.resume && start.session == session(OLD));
    assert!(start.prompt.as_ref().unwrap().contains("build a boat"));
    // On a busy machine the transcript shows the prompt that it was given, and the answer, before the hook does.
    bench.resumed(OLD);
    bench.said_by(1, 20);
    bench.said_by(2, 45);
    assert_eq!(bench.state(), AgentState::Idle);
    assert!(!bench.model.reboot.paused, "no other process has said it");

    // One that the person has ended is theirs.
    let mut bench = run(plan());
    bench.exited(0);
    assert_eq!(bench.model.view.overlay, Some(Overlay::Exited));
    assert!(bench.model.reboot.paused);
}

#[test]
fn a_run_waits_for_the_figure_of_its_turn_before_it_prompts() {
    let mut bench = headless();
    let mut timers = Vec::new();
    bench.status_line(50_000, 1.0, None);
    let effects = bench.said(OLD, "one");
    keep_timers(bench.since_start, &effects, &mut timers);
    bench.status_line(60_000, 1.0, None);
    assert_eq!(
        pastes(&bench.pass(Duration::from_secs(2), &mut timers)).len(),
        1
    );
    // The next one fills the window, and that is reported late: behind a figure that is still about the one before.
    let effects = bench.said(OLD, "two");
    keep_timers(bench.since_start, &effects, &mut timers);
    bench.status_line(60_000, 1.1, None);
    let effects = bench.pass(Duration::from_secs(2), &mut timers);
    assert!(pastes(&effects).is_empty(), "the figure is an old one");
    let effects = bench.status_line(170_000, 1.1, None);
    assert!(pastes(&effects).is_empty());
    assert!(bench.step().is_some(), "it reboots instead");
}

#[test]
fn a_figure_that_never_comes_does_not_hang_a_run() {
    let mut bench = headless();
    let mut timers = Vec::new();
    let effects = bench.said(OLD, "one");
    keep_timers(bench.since_start, &effects, &mut timers);
    let effects = bench.pass(Duration::from_secs(10), &mut timers);
    assert_eq!(pastes(&effects), [prompt::go_on()]);
}

#[test]
fn a_run_that_goes_on_behind_a_cap_starts_no_agent() {
    let begun = |worked| {
        let mut bench = Bench::bare(Config::default());
        autopilot::begin(&mut bench.model, plan(), false, None, worked);
        bench.model.take_effects()
    };
    let effects = begun(Duration::from_secs(59));
    assert_eq!(starts(&effects).len(), 1, "{effects:?}");
    let effects = begun(Duration::from_hours(1));
    assert!(has!(effects, Effect::Quit(3)), "{effects:?}");
    assert!(starts(&effects).is_empty(), "{effects:?}");
}

#[test]
fn a_run_whose_agent_works_by_new_commands_is_at_work_though_git_shows_no_change() {
    let phase_after = |command: &dyn Fn(usize) -> String| {
        let mut bench = run(Plan {
            attended: false,
            limits: Limits {
                no_change: Some(3),
                ..Limits::default()
            },
            ..plan()
        });
        let mut timers = Vec::new();
        for number in 0..6 {
            bench.shell(&command(number), "");
            let effects = bench.said(OLD, &format!("step {number}"));
            keep_timers(bench.since_start, &effects, &mut timers);
            bench.pass(Duration::from_secs(10), &mut timers);
            bench.prompted(OLD, "go on");
        }
        bench.phase().clone()
    };
    assert_eq!(
        phase_after(&|number| format!("echo row-{number} >> data.csv")),
        Phase::Working
    );
    for idle in ["cat data.csv", "make check"] {
        let phase = phase_after(&|_| idle.to_owned());
        assert!(matches!(phase, Phase::Ended(End::Tripped(_))), "{idle}");
    }
}

#[test]
fn a_trim_of_a_run_that_no_one_watches_is_approved_once_it_is_known() {
    for helps in [true, false] {
        let mut bench = headless();
        let effects = bench.control(Control::RebootBy(Way::Trim));
        bench.git();
        let plan = helps.then(trim::good_plan);
        let plan = plan.ok_or_else(|| "no such file".to_owned());
        bench.planned(trim::surveys(&effects)[0], plan);
        assert_eq!(bench.step(), helps.then_some(Step::Waiting), "{helps}");
    }
}

#[test]
fn what_a_run_has_waited_for_long_enough_does_not_hold_up_its_reboot_again() {
    let (mut bench, mut timers) = waited_for_a_server();
    bench.status_line(160_000, 1.0, None);
    let effects = bench.left(OLD, Some("it runs on"), in_background(&["server"]));
    keep_timers(bench.since_start, &effects, &mut timers);
    assert_eq!(bench.step(), Some(Step::Armed));
    bench.pass(Duration::from_secs(10), &mut timers);
    assert_eq!(bench.step(), Some(Step::Ending));
}

#[test]
fn a_turn_that_a_subagent_begins_is_not_cut_by_the_wait_for_background_work() {
    let mut bench = headless();
    let mut timers = Vec::new();
    bench.status_line(160_000, 1.0, None);
    let effects = bench.left(OLD, Some("they work"), in_background(&["a1", "a2"]));
    keep_timers(bench.since_start, &effects, &mut timers);
    bench.pass(Duration::from_secs(29 * 60), &mut timers);
    let effects = bench.prompted(OLD, "<task-notification>");
    keep_timers(bench.since_start, &effects, &mut timers);
    bench.pass(Duration::from_secs(2 * 60), &mut timers);
    assert_eq!(bench.state(), AgentState::Busy);
    assert!(bench.step() < Some(Step::Preparing), "{:?}", bench.step());
}

#[test]
fn a_run_that_is_held_beyond_its_time_does_not_look_all_the_time() {
    let mut bench = run(plan());
    bench.control(Control::Pause);
    bench.said(OLD, "one");
    bench.wait(Duration::from_hours(2));
    let effects = bench.send(Event::TimerFired(TimerId::RunClock));
    let again = all!(effects, Effect::SetTimer(TimerId::RunClock, after) => *after);
    assert_eq!(again, [Duration::from_secs(10)]);
    assert_eq!(bench.model.outside.quitting(), None);
}

#[test]
fn a_watched_run_goes_on_behind_a_dialog_that_was_open_when_it_was_to_settle() {
    let mut bench = run(plan());
    let mut timers = Vec::new();
    let effects = bench.said(OLD, "one");
    keep_timers(bench.since_start, &effects, &mut timers);
    bench.used(50_000);
    let effects = bench.asks("a form of a server");
    keep_timers(bench.since_start, &effects, &mut timers);
    bench.prompt_box(PromptBox::Absent);
    assert_eq!(bench.state(), AgentState::Dialog);
    let effects = bench.pass(MINUTE, &mut timers);
    assert!(pastes(&effects).is_empty());
    let mut effects = bench.ready();
    effects.extend(bench.stands());
    keep_timers(bench.since_start, &effects, &mut timers);
    effects.extend(bench.pass(Duration::from_secs(10), &mut timers));
    assert_eq!(pastes(&effects), [prompt::go_on()]);
}

#[test]
fn a_headless_run_waits_for_an_answer_from_afar_no_longer_than_to_its_cap() {
    let mut bench = headless();
    let mut timers = Vec::new();
    // The dialog is seen, and half a minute begins, before the device is asked.
    let effects = bench.asks("Bash");
    keep_timers(bench.since_start, &effects, &mut timers);
    bench.wait(Duration::from_secs(20));
    let request = Box::new(PermissionRequest {
        session: session(OLD),
        tool: "Bash".to_owned(),
        input: "cargo test".to_owned(),
        whole: true,
        is_plain: true,
        by_subagent: false,
    });
    let effects = bench.send(Event::PermissionAsked {
        call: Some(CallId(7)),
        request,
    });
    keep_timers(bench.since_start, &effects, &mut timers);
    bench.prompt_box(PromptBox::Absent);
    bench.pass(Duration::from_mins(5), &mut timers);
    assert_eq!(bench.model.outside.quitting(), None);
    bench.wait(Duration::from_hours(1));
    bench.send(Event::TimerFired(TimerId::RunClock));
    assert_eq!(bench.model.outside.quitting().map(|one| one.code), Some(3));
}

#[test]
fn the_sessions_that_a_run_begins_for_each_turn_do_not_count_towards_the_breaker() {
    let mut bench = run(Plan {
        attended: false,
        caps: Caps::default(),
        fresh: Fresh::Always,
        ..plan()
    });
    let mut timers = Vec::new();
    let effects = bench.said(OLD, "one");
    keep_timers(bench.since_start, &effects, &mut timers);
    bench.pass(Duration::from_secs(1), &mut timers);
    bench.git();
    let start = starts(&bench.exited(0)).pop().expect("the next session");
    bench.spawned(3);
    bench.started(NEW);
    bench.prompted(NEW, &start.prompt.expect("the handoff"));
    assert_eq!(bench.step(), None);
    let cause = bench.model.lineage.current().and_then(|one| one.cause);
    assert_eq!(cause, Some(Cause::Autopilot));
    assert!(bench.model.reboot.done.is_empty());
}
