//! The reboot as a state machine: its steps, what begins it and what takes it back.

use super::*;

#[test]
fn a_reboot_by_key_goes_through_every_step_in_order() {
    let mut bench = Bench::new();
    bench.press(KeyCode::F(5));
    assert!(matches!(
        bench.model.overlay,
        Some(Overlay::Review { asked: true, .. })
    ));
    bench.git();
    assert_eq!(bench.step(), Some(Step::Review));
    let shown = bench.model.handoff.current().text.clone();
    let effects = bench.press(KeyCode::Enter);
    assert_eq!(signals(&effects), [Rung::Exit]);
    assert_eq!(bench.model.overlay, None);

    let effects = bench.exited(0);
    let start = StartAgent {
        anew: None,
        iteration: bench.model.iteration,
        session: session(NEW),
        resume: false,
        prompt: Some(shown.clone()),
        first: false,
    };
    assert!(effects.contains(&Effect::Start(start)), "{effects:?}");
    assert_eq!(bench.model.iteration.get(), 2);
    bench.spawned(3);
    bench.started(NEW);
    assert_eq!(bench.step(), Some(Step::Verifying));
    bench.prompted(NEW, &shown);
    assert_eq!(bench.step(), None);
    assert_eq!(
        bench.journaled,
        [
            Step::Armed,
            Step::Drafting,
            Step::Review,
            Step::Waiting,
            Step::Ending,
            Step::Starting,
            Step::Delivering,
            Step::Verifying,
            Step::Done
        ]
    );
    let iterations = bench.model.lineage.iterations();
    assert_eq!(iterations[0].end_reason, Some(EndReason::UserReboot));
    let record = iterations[1].reboot.as_ref().unwrap();
    assert!(record.verified);
    assert_eq!(
        (record.old_session, record.new_session),
        (Some(session(OLD)), Some(session(NEW)))
    );
    assert_eq!(record.handoff_bytes, shown.len() as u64);
}

#[test]
fn nothing_is_done_before_its_step_is_on_disk() {
    let mut bench = Bench::new();
    bench.press(KeyCode::F(5));
    bench.git();
    bench.journal_answers = false;
    let effects = bench.press(KeyCode::Enter);
    assert_eq!(bench.step(), Some(Step::Waiting));
    assert!(signals(&effects).is_empty());
    let reboot = bench.model.reboot.attempt.as_ref().unwrap().id;
    let effects = bench.tell(Event::Store(StoreEvent::Journaled {
        reboot,
        step: Step::Waiting,
    }));
    assert_eq!(bench.step(), Some(Step::Ending));
    assert!(signals(&effects).is_empty(), "ending is not on disk yet");
    let effects = bench.tell(Event::Store(StoreEvent::Journaled {
        reboot,
        step: Step::Ending,
    }));
    assert_eq!(signals(&effects), [Rung::Exit]);
}

#[test]
fn a_proof_that_comes_early_counts() {
    let mut bench = Bench::new();
    let start = bench.rebooted();
    bench.journal_answers = false;
    bench.started(NEW);
    bench.prompted(NEW, &start.prompt.unwrap());
    assert_eq!(
        bench.step(),
        Some(Step::Starting),
        "not spawned yet, as far as we know"
    );
    bench.journal_answers = true;
    bench.spawned(3);
    assert_eq!(bench.step(), None, "all steps follow at once");
}

#[test]
fn another_prompt_is_no_proof() {
    let mut bench = Bench::new();
    let start = bench.rebooted();
    bench.spawned(3);
    bench.started(NEW);
    bench.prompted(NEW, "something else");
    assert_eq!(bench.step(), Some(Step::Verifying));
    let forged = start.prompt.unwrap().replace("00000002", "deadbeef");
    bench.prompted(NEW, &forged);
    assert_eq!(bench.step(), Some(Step::Verifying));
}

#[test]
fn a_late_proof_is_told_and_still_counts() {
    let mut bench = Bench::new();
    let start = bench.rebooted();
    let effects = bench.spawned(3);
    let timer = effects.iter().find_map(|effect| match effect {
        Effect::SetTimer(id @ TimerId::Verify(_), _) => Some(*id),
        _ => None,
    });
    bench.wait(Duration::from_secs(20));
    let effects = bench.tell(Event::TimerFired(timer.unwrap()));
    assert!(
        !effects
            .iter()
            .any(|effect| matches!(effect, Effect::Type(_) | Effect::Paste(_)))
    );
    assert!(bench.model.notices.back().unwrap().bad);
    assert_eq!(bench.step(), Some(Step::Verifying));
    bench.started(NEW);
    bench.prompted(NEW, &start.prompt.unwrap());
    assert_eq!(bench.step(), None);
}

#[test]
fn a_new_agent_that_dies_takes_the_reboot_back() {
    let mut bench = Bench::new();
    bench.rebooted();
    bench.spawned(3);
    let effects = bench.exited(1);
    let start = effects.iter().find_map(|effect| match effect {
        Effect::Start(start) => Some(start.clone()),
        _ => None,
    });
    let start = start.expect("the old session is resumed");
    assert_eq!(
        (start.session, start.resume, start.prompt),
        (session(OLD), true, None)
    );
    assert_eq!(
        bench.model.lineage.iterations()[1].end_reason,
        Some(EndReason::Crash)
    );
    bench.spawned(4);
    assert_eq!(bench.step(), None);
    assert_eq!(bench.journaled.last(), Some(&Step::Failed));
    assert!(
        bench
            .model
            .reboot
            .failure
            .as_ref()
            .unwrap()
            .contains("exit code 1")
    );
}

#[test]
fn a_running_turn_holds_an_approved_reboot_back_until_it_ends() {
    let mut bench = Bench::new();
    bench.prompted(OLD, "work");
    bench.press(KeyCode::F(5));
    bench.git();
    let effects = bench.press(KeyCode::Enter);
    assert_eq!(
        (bench.step(), signals(&effects)),
        (Some(Step::Waiting), vec![])
    );
    let effects = bench.turn_ended(OLD);
    assert_eq!(signals(&effects), [Rung::Exit]);
}

#[test]
fn a_second_approval_interrupts_the_turn() {
    let mut bench = Bench::new();
    bench.prompted(OLD, "work");
    bench.press(KeyCode::F(5));
    bench.git();
    bench.press(KeyCode::Enter);
    bench.press(KeyCode::F(5));
    let effects = bench.press(KeyCode::Enter);
    assert!(
        effects.contains(&Effect::Type(b"\x1b".to_vec())),
        "{effects:?}"
    );
    assert_eq!(
        bench.model.ending.map(|ending| ending.rung),
        Some(Rung::Interrupt)
    );
    let effects = bench.turn_ended(OLD);
    assert_eq!(signals(&effects), [Rung::Exit]);
}

#[test]
fn a_rung_that_does_not_help_is_followed_by_the_next() {
    let mut bench = Bench::new();
    bench.press(KeyCode::F(5));
    bench.git();
    let mut effects = bench.press(KeyCode::Enter);
    for rung in [Rung::Exit, Rung::Hangup, Rung::Terminate, Rung::Kill] {
        assert_eq!(signals(&effects), [rung]);
        let timer = effects.iter().find_map(|effect| match effect {
            Effect::SetTimer(id @ TimerId::EndRung(_), _) => Some(*id),
            _ => None,
        });
        effects = bench.tell(Event::TimerFired(timer.unwrap()));
    }
    assert_eq!(bench.step(), None, "given up");
    assert!(bench.model.reboot.failure.is_some());
    assert_eq!(
        bench.model.iteration.get(),
        1,
        "no second agent was started"
    );
}

#[test]
fn it_is_seen_when_somebody_has_stopped_typing() {
    let mut bench = Bench::new();
    bench.prompted(OLD, "work");
    bench.turn_ended(OLD);
    let quiet = bench.model.config.reboot.typing_quiet;
    let effects = bench.press(KeyCode::Char('x'));
    assert!(effects.contains(&Effect::SetTimer(TimerId::Typing, quiet)));
    assert_eq!(crate::app::reboot::blocked_by(&bench.model), ["typing"]);
    bench.wait(quiet);
    bench.tell(Event::TimerFired(TimerId::Typing));
    assert_eq!(
        crate::app::reboot::blocked_by(&bench.model),
        Vec::<&str>::new()
    );
}

#[test]
fn the_compact_line_opens_the_review_at_a_safe_moment_only() {
    let mut bench = Bench::new();
    bench.prompted(OLD, "work");
    bench.used(155_000);
    bench.tell(Event::TimerFired(TimerId::Age));
    assert_eq!(
        (bench.step(), bench.model.overlay),
        (Some(Step::Armed), None)
    );
    bench.press(KeyCode::Char('x'));
    bench.turn_ended(OLD);
    assert_eq!(bench.model.overlay, None, "the human types");
    bench.wait(Duration::from_secs(4));
    let quiet = TimerId::Quiet(bench.model.quiet_epoch);
    bench.tell(Event::TimerFired(quiet));
    bench.git();
    assert!(matches!(
        bench.model.overlay,
        Some(Overlay::Review { asked: false, .. })
    ));
    bench.press(KeyCode::Enter);
    assert_eq!(
        bench.step(),
        Some(Step::Review),
        "an Enter that was under way approves nothing"
    );
    bench.wait(Duration::from_secs(1));
    let effects = bench.press(KeyCode::Enter);
    assert_eq!(signals(&effects), [Rung::Exit]);
    bench.exited(0);
    assert_eq!(
        bench.model.lineage.iterations()[0].end_reason,
        Some(EndReason::ContextLimit)
    );
}

#[test]
fn a_cancelled_review_does_not_come_back_and_a_deferred_one_does() {
    let mut bench = Bench::new();
    bench.used(155_000);
    bench.tell(Event::TimerFired(TimerId::Age));
    bench.git();
    bench.press(KeyCode::Char('d'));
    assert_eq!((bench.step(), bench.model.overlay), (None, None));
    for turn in 1..=3 {
        bench.prompted(OLD, "work");
        bench.turn_ended(OLD);
        bench.git();
        assert_eq!(bench.step().is_some(), turn == 3, "after turn {turn}");
    }
    bench.press(KeyCode::Esc);
    for _ in 0..5 {
        bench.prompted(OLD, "work");
        bench.turn_ended(OLD);
        assert_eq!(bench.step(), None);
    }
}

#[test]
fn manual_mode_and_a_pause_leave_it_to_the_human() {
    let mut config = Config::default();
    config.reboot.mode = RebootMode::Manual;
    let mut bench = Bench::with(config);
    bench.used(155_000);
    bench.tell(Event::TimerFired(TimerId::Age));
    assert_eq!(bench.step(), None);

    let mut bench = Bench::new();
    let pause = Event::ControlAsked {
        call: CallId(1),
        control: Control::Pause,
    };
    let effects = bench.tell(pause);
    assert!(ordered(&effects).contains("until `pitstop ctl resume`"));
    bench.used(155_000);
    bench.tell(Event::TimerFired(TimerId::Age));
    assert_eq!(bench.step(), None);
}

#[test]
fn auto_mode_goes_ahead_after_its_delay_unless_a_key_stops_it() {
    let mut config = Config::default();
    config.reboot.mode = RebootMode::Auto;
    for stopped in [false, true] {
        let mut bench = Bench::with(config.clone());
        bench.used(155_000);
        bench.tell(Event::TimerFired(TimerId::Age));
        let effects = bench.git();
        let timer = effects.iter().find_map(|effect| match effect {
            Effect::SetTimer(id @ TimerId::AutoDelay(_), _) => Some(*id),
            _ => None,
        });
        bench.wait(Duration::from_secs(10));
        if stopped {
            bench.press(KeyCode::Esc);
        }
        let effects = bench.tell(Event::TimerFired(timer.unwrap()));
        assert_eq!(signals(&effects).is_empty(), stopped);
    }
}

#[test]
fn the_breaker_stops_reboots_by_themselves_and_not_those_by_key() {
    let mut bench = Bench::new();
    let start = bench.rebooted();
    bench.spawned(3);
    bench.started(NEW);
    bench.prompted(NEW, &start.prompt.unwrap());
    bench.turn_ended(NEW);
    bench.used(170_000);
    bench.tell(Event::TimerFired(TimerId::Age));
    assert_eq!(
        bench.step(),
        None,
        "full again after one turn: a reboot would not help"
    );
    assert!(
        bench
            .model
            .notices
            .iter()
            .any(|notice| notice.text.contains("only 1 turns"))
    );
    bench.press(KeyCode::F(5));
    assert!(bench.step().is_some());
}

#[test]
fn an_undo_resumes_the_old_session_and_asks_nothing_for_a_while() {
    let mut bench = Bench::new();
    bench.used(155_000);
    let start = bench.rebooted();
    bench.spawned(3);
    bench.started(NEW);
    bench.prompted(NEW, &start.prompt.unwrap());
    bench.turn_ended(NEW);
    bench.model.history.selected = 1;
    let effects = bench.tell(Event::ControlAsked {
        call: CallId(1),
        control: Control::Undo,
    });
    assert_eq!(signals(&effects), [Rung::Exit]);
    let effects = bench.exited(0);
    let start = effects.iter().find_map(|effect| match effect {
        Effect::Start(start) => Some(start.clone()),
        _ => None,
    });
    let start = start.unwrap();
    assert_eq!(
        (start.session, start.resume, start.prompt),
        (session(OLD), true, None)
    );
    bench.spawned(4);
    bench.started(OLD);
    let iterations = bench.model.lineage.iterations();
    assert_eq!(iterations[2].parent, Some(iterations[0].iteration));
    let selected = bench.model.history.selected;
    assert_eq!(selected, 2, "it is still the first iteration");
    bench.used(155_000);
    let said = bench.model.notices.back().unwrap().text.clone();
    assert!(
        said.contains("the session before the reboot is back"),
        "{said}"
    );
    bench.tell(Event::TimerFired(TimerId::Age));
    assert_eq!(bench.step(), None);
    let undone = Event::ControlAsked {
        call: CallId(2),
        control: Control::Undo,
    };
    let effects = bench.tell(undone);
    assert!(
        matches!(effects[0], Effect::Answer(_, Reply::Refused { .. })),
        "nothing to undo now"
    );
}

#[test]
fn an_estimate_alone_opens_no_review() {
    let mut bench = Bench::new();
    let at = bench.at();
    let (used, window, source) = (Tokens(175_000), None, Source::Estimate);
    let reading = Reading {
        used,
        window,
        source,
        at,
    };
    bench.tell(Event::Read(ReadEvent::Estimate(reading)));
    bench.tell(Event::TimerFired(TimerId::Age));
    assert_eq!(bench.step(), None);
}

#[test]
fn a_reboot_that_wins_little_is_said_to() {
    let warned = |base: u64, now: u64| {
        let mut bench = Bench::new();
        bench.used(base);
        bench.turn_ended(OLD);
        bench.used(now);
        bench.git();
        let warnings = &bench.model.handoff.generated.warnings;
        warnings
            .iter()
            .any(|warning| warning.contains("would win little"))
    };
    assert!(
        warned(140_000, 155_000),
        "140k of 155k are there from the start"
    );
    assert!(!warned(20_000, 155_000));
    assert!(!warned(20_000, 21_000), "it has hardly begun");
}
