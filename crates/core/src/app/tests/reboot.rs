//! The reboot as a state machine: its steps, what begins it and what takes it back.

use super::*;
use crate::app::{
    event::{Ran, ReadEvent, TranscriptFacts},
    model::reboot::Breaker,
    reboot::{Attempt, Banner, QuietReason, banner},
    report,
};
use crate::config::Delivery;
use pitstop_transcript::{human::HumanWords, prompts::HANDOFF};
use serde_json::json;

#[test]
fn a_reboot_by_key_goes_through_every_step_in_order() {
    let mut bench = Bench::new();
    bench.press(KeyCode::F(5));
    assert_eq!(bench.model.view.overlay, Some(Overlay::Review));
    bench.git();
    assert_eq!(bench.step(), Some(Step::Review));
    let shown = bench.model.draft.handoff.current().text.clone();
    let effects = bench.press(KeyCode::Enter);
    assert_eq!(signals(&effects), [StopSignal::Exit]);
    assert_eq!(bench.model.view.overlay, None);

    let effects = bench.exited(0);
    let start = StartAgent {
        prompt_if_new: None,
        iteration: bench.model.session.iteration(),
        session: session(NEW),
        resume: false,
        after: Some(session(OLD)),
        model: None,
        prompt: Some(shown.clone()),
        first: false,
    };
    assert!(effects.contains(&Effect::Start(start)), "{effects:?}");
    assert_eq!(bench.model.session.iteration().get(), 2);
    bench.spawned(3);
    bench.started(NEW);
    assert_eq!(bench.step(), Some(Step::Verifying));
    bench.prompted(NEW, &shown);
    assert_eq!(bench.step(), None);
    bench.is_done_without(&[Step::Warming]);
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
    bench.review();
    bench.journal_answers = false;
    let effects = bench.press(KeyCode::Enter);
    assert!(signals(&effects).is_empty());
    let reboot = bench.model.reboot.attempt.as_ref().unwrap().id;
    for (step, next) in [
        (Step::Preparing, Step::Waiting),
        (Step::Waiting, Step::Ending),
    ] {
        assert_eq!(bench.step(), Some(step));
        assert!(bench.prepared.is_empty() == (step == Step::Preparing));
        let effects = bench.send(Event::Store(StoreEvent::Journaled { reboot, step }));
        assert_eq!(bench.step(), Some(next));
        assert!(signals(&effects).is_empty(), "{next} is not on disk yet");
    }
    let effects = bench.send(Event::Store(StoreEvent::Journaled {
        reboot,
        step: Step::Ending,
    }));
    assert_eq!(signals(&effects), [StopSignal::Exit]);
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
fn a_late_proof_is_shown_and_still_counts() {
    let mut bench = Bench::new();
    let start = bench.rebooted();
    let effects = bench.spawned(3);
    let timer = first!(effects, Effect::SetTimer(id @ TimerId::Verify(_), _) => *id);
    bench.wait(Duration::from_secs(20));
    let effects = bench.send(Event::TimerFired(timer.unwrap()));
    assert!(!has!(effects, Effect::Type(_) | Effect::Paste(_)));
    assert!(bench.model.view.notices.back().unwrap().bad);
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
    let start = starts(&effects).pop().expect("the old session is resumed");
    assert_eq!(
        (start.session, start.resume, start.prompt),
        (session(OLD), true, None)
    );
    assert_eq!(bench.ended(1), Some(EndReason::Crash));
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

impl Bench {
    /// What was written ahead last is on disk.
    pub(super) fn last_is_on_disk(&mut self) -> Vec<Effect> {
        let entry = self.entries.last().expect("a step was written");
        let (reboot, step) = (entry.reboot_id, entry.step);
        self.send(Event::Store(StoreEvent::Journaled { reboot, step }))
    }
}

#[test]
fn a_new_agent_that_dies_behind_its_proof_has_ended_like_any_other() {
    let mut bench = Bench::new();
    let start = bench.rebooted();
    bench.journal_answers = false;
    bench.spawned(3);
    bench.last_is_on_disk();
    assert_eq!(bench.step(), Some(Step::Verifying));
    bench.started(NEW);
    bench.prompted(NEW, &start.prompt.unwrap());
    // The step is not on disk yet.
    bench.exited(1);
    assert_eq!(bench.step(), Some(Step::Verifying));
    let effects = bench.last_is_on_disk();
    assert_eq!((bench.step(), starts(&effects)), (None, vec![]));
    let last = bench.model.lineage.iterations().last().unwrap();
    assert_eq!(last.end_reason, Some(EndReason::Crash));
    assert!(last.reboot.as_ref().is_some_and(|record| record.verified));
    assert_eq!(bench.model.view.overlay, Some(Overlay::Exited));
}

#[test]
fn a_second_approval_interrupts_the_turn() {
    let mut bench = Bench::new();
    bench.prompted(OLD, "work");
    let effects = bench.approve();
    assert_eq!(
        (bench.step(), signals(&effects)),
        (Some(Step::Waiting), vec![])
    );
    bench.press(KeyCode::F(5));
    let effects = bench.press(KeyCode::Enter);
    assert!(
        effects.contains(&Effect::Type(b"\x1b".to_vec())),
        "{effects:?}"
    );
    assert_eq!(
        bench.model.reboot.ending.map(|ending| ending.signal),
        Some(StopSignal::Interrupt)
    );
    let effects = bench.turn_ended(OLD);
    assert_eq!(signals(&effects), [StopSignal::Exit]);
}

#[test]
fn a_rung_that_does_not_help_is_followed_by_the_next() {
    let mut bench = Bench::new();
    let mut effects = bench.approve();
    for signal in [
        StopSignal::Exit,
        StopSignal::Hangup,
        StopSignal::Terminate,
        StopSignal::Kill,
    ] {
        assert_eq!(signals(&effects), [signal]);
        let timer = first!(effects, Effect::SetTimer(id @ TimerId::StopTimeout(_), _) => *id);
        effects = bench.send(Event::TimerFired(timer.unwrap()));
    }
    assert_eq!(bench.step(), None, "given up");
    assert!(bench.model.reboot.failure.is_some());
    assert_eq!(
        bench.model.session.iteration().get(),
        1,
        "no second agent was started"
    );
}

#[test]
fn it_is_seen_when_a_person_has_stopped_typing() {
    let mut bench = Bench::new();
    bench.prompted(OLD, "work");
    bench.turn_ended(OLD);
    let quiet = bench.model.config.reboot.typing_quiet;
    let effects = bench.press(KeyCode::Char('x'));
    assert!(effects.contains(&Effect::SetTimer(TimerId::Typing, quiet)));
    assert_eq!(
        crate::app::reboot::blocked_by(&bench.model),
        [Block::Typing]
    );
    bench.wait(quiet);
    bench.send(Event::TimerFired(TimerId::Typing));
    assert_eq!(crate::app::reboot::blocked_by(&bench.model), []);
}

#[test]
fn what_blocks_a_reboot_has_the_words_that_scripts_read() {
    for (block, word) in [
        (Block::Turn, "turn"),
        (Block::Background, "background task"),
        (Block::Unknown, "unknown"),
        (Block::Dialog, "dialog"),
        (Block::Elsewhere, "elsewhere"),
        (Block::Typing, "typing"),
        (Block::Editor, "editor"),
        (Block::Unsent, "unsent prompt"),
    ] {
        assert_eq!(block.to_string(), word);
    }
}

#[test]
fn the_compact_line_asks_and_opens_nothing_over_a_person() {
    let mut bench = Bench::new();
    bench.prompted(OLD, "work");
    let effects = bench.used(155_000);
    assert_eq!(
        (bench.step(), bench.model.view.overlay),
        (Some(Step::Armed), None)
    );
    assert_eq!(banner(&bench.model), Some(Banner::Asks));
    let calls = |effects: &[Effect]| all!(effects, Effect::Call(_) => ()).len();
    assert_eq!(calls(&effects), 1, "a person is called");
    bench.press(KeyCode::Char('x'));
    bench.turn_ended(OLD);
    assert_eq!(bench.step(), Some(Step::Armed), "the human types");
    bench.wait(Duration::from_secs(4));
    let quiet = TimerId::Quiet;
    let mut effects = bench.send(Event::TimerFired(quiet));
    effects.extend(bench.git());
    assert_eq!(
        (bench.step(), bench.model.view.overlay),
        (Some(Step::Review), None)
    );
    assert_eq!(calls(&effects), 0, "once is enough");
    for code in "and y, t, x, e".chars().map(KeyCode::Char) {
        assert_reaches_pane(&mut bench, code);
    }
    for code in [KeyCode::Enter, KeyCode::Esc, KeyCode::Char('d')] {
        bench.wait(Duration::from_secs(4));
        assert_reaches_pane(&mut bench, code);
    }
    assert_eq!(
        (bench.step(), banner(&bench.model)),
        (Some(Step::Review), Some(Banner::Asks)),
        "no key but ours decides"
    );
    bench.press(KeyCode::F(5));
    assert_eq!(bench.model.view.overlay, Some(Overlay::Review));
    assert_eq!(banner(&bench.model), None, "the review says it all");
    let effects = bench.press(KeyCode::Enter);
    assert_eq!(signals(&effects), [StopSignal::Exit]);
    bench.exited(0);
    assert_eq!(bench.ended(0), Some(EndReason::ContextLimit));
}

fn assert_reaches_pane(bench: &mut Bench, code: KeyCode) {
    let effects = bench.press(code);
    let forwarded =
        has!(effects, Effect::Forward(HostInput::Key { event, .. }) if event.code == code);
    assert!(forwarded, "{code:?}");
}

/// Presses a key behind the prefix.
pub(super) fn prefixed(bench: &mut Bench, code: KeyCode) -> Vec<Effect> {
    bench.key(KeyCode::Char('q'), KeyModifiers::CONTROL);
    bench.press(code)
}

#[test]
fn esc_closes_the_list_behind_the_prefix_in_silence_and_another_key_is_answered() {
    let mut bench = Bench::new();
    prefixed(&mut bench, KeyCode::Esc);
    assert!(bench.model.view.notices.is_empty());
    prefixed(&mut bench, KeyCode::Char('ü'));
    let said = &bench.model.view.notices.back().expect("a notice").text;
    assert_eq!(said, "no such key after Ctrl-q: F1 shows all keys");
}

#[test]
fn what_a_script_has_asked_for_opens_nothing_and_is_approved_by_a_script() {
    let mut bench = Bench::new();
    let effects = bench.control(Control::Reboot);
    assert!(ordered(&effects).contains("F5"), "{effects:?}");
    bench.git();
    assert_eq!(
        (bench.step(), bench.model.view.overlay),
        (Some(Step::Review), None)
    );
    assert_eq!(banner(&bench.model), Some(Banner::Asks));
    assert_reaches_pane(&mut bench, KeyCode::Char('a'));
    let effects = bench.control(Control::Approve);
    assert_eq!(signals(&effects), [StopSignal::Exit]);
}

#[test]
fn a_review_that_is_opened_late_looks_at_its_sources_again() {
    let mut bench = Bench::new();
    bench.used(155_000);
    bench.send(Event::TimerFired(TimerId::Age));
    bench.git();
    bench.prompted(OLD, "the person goes on working");
    bench.turn_ended(OLD);
    assert_eq!(bench.step(), Some(Step::Review));
    let effects = bench.press(KeyCode::F(5));
    assert!(
        effects.contains(&Effect::ReadGit) && effects.contains(&Effect::ReadScratchpad),
        "{effects:?}"
    );
}

/// Reports whether a notice says what became of the review.
fn answered(bench: &Bench) -> bool {
    let mut notices = bench.model.view.notices.iter();
    notices.any(|notice| notice.text.starts_with("reboot "))
}

#[test]
fn a_cancelled_review_comes_back_after_a_turn_and_a_deferred_one_after_three() {
    let mut bench = Bench::new();
    bench.used(155_000);
    bench.send(Event::TimerFired(TimerId::Age));
    bench.git();
    prefixed(&mut bench, KeyCode::Char('D'));
    assert_eq!((bench.step(), bench.model.view.overlay), (None, None));
    assert!(!answered(&bench), "the banner says it");
    for turn in 1..=3 {
        bench.prompted(OLD, "work");
        bench.turn_ended(OLD);
        bench.git();
        assert_eq!(bench.step().is_some(), turn == 3, "after turn {turn}");
    }
    bench.press(KeyCode::F(5));
    bench.press(KeyCode::Esc);
    bench.send(Event::TimerFired(TimerId::Age));
    assert_eq!(bench.step(), None);
    let quiet = Banner::Quiet(QuietReason::Cancelled, 1);
    assert_eq!(banner(&bench.model), Some(quiet));
    assert!(!answered(&bench), "the banner says it");
    bench.prompted(OLD, "work");
    assert_eq!(bench.step(), None);
    bench.turn_ended(OLD);
    assert!(bench.step().is_some(), "the next turn has ended");
}

#[test]
fn a_cancelled_review_without_a_banner_says_that_nothing_was_changed() {
    for (mode, tokens) in [
        (RebootMode::Ask, 50_000),
        (RebootMode::Auto, 100_000),
        (RebootMode::Manual, 155_000),
    ] {
        let mut bench = Bench::in_mode(mode);
        bench.used(tokens);
        bench.git();
        bench.press(KeyCode::F(5));
        bench.press(KeyCode::Esc);
        assert_eq!(banner(&bench.model), None);
        assert!(answered(&bench), "at {tokens}");
    }
}

#[test]
fn a_review_that_is_cancelled_in_a_turn_does_not_come_back_at_its_end() {
    let mut bench = Bench::in_mode(RebootMode::Auto);
    bench.prompted(OLD, "work");
    bench.used(155_000);
    bench.git();
    bench.press(KeyCode::F(5));
    bench.press(KeyCode::Esc);
    bench.send(Event::TimerFired(TimerId::Age));
    assert_eq!(bench.step(), None);
    bench.turn_ended(OLD);
    assert_eq!(bench.step(), None, "the turn in which it was refused");
    bench.prompted(OLD, "work");
    bench.turn_ended(OLD);
    assert!(bench.step().is_some(), "the next turn has ended");
}

#[test]
fn manual_mode_and_a_pause_leave_it_to_the_human() {
    let mut bench = Bench::in_mode(RebootMode::Manual);
    bench.used(155_000);
    bench.send(Event::TimerFired(TimerId::Age));
    assert_eq!(bench.step(), None);

    let mut bench = Bench::new();
    let effects = bench.control(Control::Pause);
    assert!(ordered(&effects).contains("until `pitstop ctl resume`"));
    bench.used(155_000);
    bench.send(Event::TimerFired(TimerId::Age));
    assert_eq!(bench.step(), None);
}

#[test]
fn auto_mode_goes_ahead_after_its_delay_unless_a_person_opens_the_review() {
    for stopped in [false, true] {
        let mut bench = Bench::in_mode(RebootMode::Auto);
        bench.used(155_000);
        bench.send(Event::TimerFired(TimerId::Age));
        let effects = bench.git();
        let timer = clock(&effects);
        bench.wait(Duration::from_secs(10));
        if stopped {
            bench.press(KeyCode::F(5));
        }
        let effects = bench.send(Event::TimerFired(timer.unwrap()));
        assert_eq!(signals(&effects).is_empty(), stopped);
    }
}

#[test]
fn the_breaker_judges_what_sessions_get_done_and_not_their_turns() {
    let held = |bench: &Bench| match banner(&bench.model) {
        Some(Banner::Held(breaker)) => Some(breaker),
        _ => None,
    };
    let full = |bench: &mut Bench| {
        bench.used(40_000);
        bench.used(160_000);
    };
    // The third session in a row that has only looked at things, in one turn or in many.
    for turns in [0, 1, 9] {
        let mut bench = Bench::in_mode(RebootMode::Auto);
        bench.git();
        bench.model.reboot.progress.idle_sessions = 2;
        for number in 0..turns {
            bench.prompted(OLD, "look");
            bench.tool_starts("Read", &number.to_string());
            bench.tool_ends("Read", &number.to_string());
            bench.turn_ended(OLD);
        }
        full(&mut bench);
        assert_eq!(bench.step(), None);
        assert_eq!(held(&bench), Some(Breaker::Idle(3)));
        // The notice goes, the reason stands.
        bench.wait(Duration::from_secs(60));
        bench.send(Event::TimerFired(TimerId::Notice));
        assert_eq!(held(&bench), Some(Breaker::Idle(3)));
        let reported = report::status(&bench.model).reboot.held;
        assert!(reported.is_some_and(|one| one.reason.contains("3 sessions")));
        // Work ends it, and a key goes ahead in spite of it.
        if turns == 1 {
            bench.prompted(OLD, "work");
            bench.tool_starts("Edit", "e");
            bench.tool_ends("Edit", "e");
            assert!(bench.step().is_some(), "it has got something done");
            assert_eq!(held(&bench), None);
        } else {
            bench.press(KeyCode::F(5));
            assert!(bench.step().is_some());
        }
    }
    // One turn after the last reboot, with work in it, is a good session.
    let mut bench = Bench::in_mode(RebootMode::Auto);
    bench.git();
    bench.model.reboot.progress.idle_sessions = 2;
    bench.prompted(OLD, "work");
    bench.tool_starts("Write", "1");
    bench.tool_ends("Write", "1");
    full(&mut bench);
    assert_eq!((held(&bench), bench.step()), (None, Some(Step::Armed)));
    // So many in an hour, until the first of them is an hour old, awake or asleep.
    for (awake, asleep) in [(60, 0), (0, 60), (20, 40)] {
        let mut bench = Bench::in_mode(RebootMode::Auto);
        bench.model.reboot.done = vec![bench.at(); 20];
        full(&mut bench);
        let until = bench.at().wall + Duration::from_hours(1);
        assert!(matches!(held(&bench), Some(Breaker::TooMany { until: one, .. }) if one == until));
        bench.asleep += Duration::from_mins(asleep);
        bench.wait(Duration::from_mins(awake));
        bench.send(Event::TimerFired(TimerId::Age));
        assert!(bench.step().is_some(), "{awake} {asleep}");
    }
}

#[test]
fn a_service_that_takes_no_prompt_holds_an_automatic_reboot_back() {
    for failure in [Failure::UsageLimit, Failure::RateLimit, Failure::Account] {
        // The line is reached before the failure, or behind it.
        for before in [true, false] {
            let mut bench = Bench::in_mode(RebootMode::Auto);
            bench.prompted(OLD, "work");
            if before {
                bench.used(160_000);
                assert!(bench.step().is_some());
            }
            bench.failed(failure, "refused");
            bench.used(161_000);
            assert_eq!(bench.step(), None, "{failure:?}");
            let held = banner(&bench.model);
            assert!(
                matches!(held, Some(Banner::Held(Breaker::NoService(_)))),
                "{held:?}"
            );
            bench.prompted(OLD, "again");
            bench.turn_ended(OLD);
            assert!(bench.step().is_some(), "{failure:?}");
        }
    }
    let mut bench = Bench::in_mode(RebootMode::Auto);
    bench.prompted(OLD, "work");
    bench.used(160_000);
    bench.failed(Failure::Service, "refused");
    assert!(bench.step().is_some());
}

#[test]
fn an_undo_resumes_the_old_session_and_asks_nothing_for_a_while() {
    let mut bench = Bench::new();
    bench.used(155_000);
    bench.rebooted_to_new();
    bench.turn_ended(NEW);
    bench.model.view.history.selected = 1;
    let effects = bench.control(Control::Undo);
    assert_eq!(signals(&effects), [StopSignal::Exit]);
    let effects = bench.exited(0);
    let start = starts(&effects).remove(0);
    assert_eq!(
        (start.session, start.resume, start.prompt),
        (session(OLD), true, None)
    );
    bench.spawned(4);
    bench.started(OLD);
    let iterations = bench.model.lineage.iterations();
    assert_eq!(iterations[2].parent, Some(iterations[0].iteration));
    let selected = bench.model.view.history.selected;
    assert_eq!(selected, 2, "it is still the first iteration");
    bench.used(155_000);
    let said = bench.model.view.notices.back().unwrap().text.clone();
    assert!(said.contains("the earlier session is back"), "{said}");
    bench.send(Event::TimerFired(TimerId::Age));
    assert_eq!(bench.step(), None);
    let effects = bench.control(Control::Undo);
    assert!(
        matches!(effects[0], Effect::Answer(_, Reply::Refused { .. })),
        "nothing to undo now"
    );
}

#[test]
fn a_handoff_that_a_hook_has_refused_behind_ours_brings_the_old_session_back() {
    let shown = format!("\n\n\nOriginal prompt: {HANDOFF}run");
    for (turns, shown) in [(0, shown.as_str()), (0, ""), (1, &shown)] {
        let mut bench = Bench::new();
        bench.used(155_000);
        bench.rebooted_to_new();
        let given = bench.model.lineage.current().expect("one").reboot.clone();
        assert!(given.expect("a reboot").verified, "our hook came first");
        let refused = "UserPromptSubmit operation blocked by hook:\n[gate.sh]: no ticket";
        let record = json!({
            "type": "system", "content": format!("{refused}{shown}"),
        });
        let mut words = HumanWords::default();
        words.take_record(&record);
        let human = Some(words);
        let facts = TranscriptFacts {
            human,
            turns,
            whole: true,
            ..TranscriptFacts::default()
        };
        let read = Event::Read(ReadEvent::Transcript {
            session: session(NEW),
            facts: Box::new(facts),
        });
        let effects = bench.send(read.clone());
        // What has had a turn was given something.
        if turns > 0 {
            assert_eq!(bench.step(), None);
            continue;
        }
        let stop = first!(effects, Effect::SetTimer(id @ TimerId::StopTimeout(_), _) => *id);
        bench.send(Event::TimerFired(stop.expect("it is stopped")));
        let start = starts(&bench.exited(0)).pop().expect("the old session");
        assert_eq!((start.session, start.resume), (session(OLD), true));
        bench.spawned(4);
        bench.started(OLD);
        let why = "a hook has refused the handoff: [gate.sh]: no ticket";
        assert_eq!(bench.model.reboot.failure.as_deref(), Some(why));
        let card = bench.model.view.card.as_ref().expect("a card");
        assert!(card.is_failure());
        assert_eq!(
            signals(&bench.send(read)),
            [],
            "it is another session's now"
        );
    }
}

#[test]
fn a_reboot_is_undone_before_its_proof_has_come() {
    let mut bench = Bench::new();
    let undo = |bench: &mut Bench| bench.control(Control::Undo);
    bench.used(155_000);
    bench.rebooted();
    let effects = undo(&mut bench);
    assert!(
        matches!(effects[0], Effect::Answer(_, Reply::Refused { .. })),
        "its agent does not run yet"
    );
    bench.spawned(3);
    bench.started(NEW);
    assert_eq!(bench.step(), Some(Step::Verifying));
    assert_eq!(signals(&undo(&mut bench)), [StopSignal::Exit]);
    assert_eq!(bench.journaled.last(), Some(&Step::Done));
    let start = starts(&bench.exited(0)).pop().expect("the old session");
    assert_eq!((start.session, start.resume), (session(OLD), true));
    bench.spawned(4);
    bench.started(OLD);
    assert_eq!(bench.step(), None);
    assert_eq!(bench.model.view.card, None, "it would offer the undo again");
    let record = bench.model.lineage.iterations()[1].reboot.as_ref();
    let record = record.expect("a reboot");
    assert_eq!(
        (record.verified, record.old_session),
        (false, Some(session(OLD)))
    );
}

#[test]
fn an_undo_leaves_off_typing_the_handoff() {
    let mut config = Config::default();
    config.reboot.delivery = crate::config::Delivery::Paste;
    let mut bench = Bench::with(config);
    bench.rebooted();
    bench.shows = false;
    bench.spawned(3);
    bench.started(NEW);
    bench.ready();
    assert_eq!(bench.step(), Some(Step::Verifying));
    assert!(bench.model.session.submission.is_open());
    bench.control(Control::Undo);
    assert_eq!(starts(&bench.exited(0)).len(), 1);
    assert!(!bench.model.session.submission.is_open());
    assert_eq!(
        bench.model.reboot.unsent, None,
        "it is no text of a person's"
    );
}

#[test]
fn an_estimate_alone_opens_no_review() {
    let mut bench = Bench::new();
    bench.reading(175_000, None, Source::Estimate);
    bench.send(Event::TimerFired(TimerId::Age));
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
        let warnings = &bench.model.draft.handoff.generated.warnings;
        warnings
            .iter()
            .any(|warning| warning.contains("would save little"))
    };
    assert!(
        warned(140_000, 155_000),
        "140k of 155k are there from the start"
    );
    assert!(!warned(20_000, 155_000));
    assert!(!warned(20_000, 21_000), "it has hardly begun");
}

/// `auto`, idle at this figure, with its draft made.
fn announced(used: u64) -> (Bench, Vec<Effect>) {
    let mut bench = Bench::in_mode(RebootMode::Auto);
    bench.used(used);
    let mut effects = bench.send(Event::TimerFired(TimerId::Age));
    effects.extend(bench.git());
    (bench, effects)
}

pub(super) fn clock(effects: &[Effect]) -> Option<TimerId> {
    all!(effects, Effect::SetTimer(id @ TimerId::AutoDelay(_), _) => *id).pop()
}

/// The second is over: the clock hears of it as long as it runs.
fn second_passes(bench: &mut Bench, timer: TimerId) -> Vec<Effect> {
    bench.wait(Duration::from_secs(1));
    bench.send(Event::TimerFired(timer))
}

#[test]
fn the_countdown_is_shown_by_the_second_and_reading_does_not_end_it() {
    let (mut bench, effects) = announced(155_000);
    assert_eq!(all!(effects, Effect::Call(_) => ()).len(), 1);
    let timer = clock(&effects).expect("the clock runs");
    assert_eq!(bench.model.view.overlay, None);
    for left in (1..=9).rev() {
        let effects = second_passes(&mut bench, timer);
        assert_eq!(clock(&effects), Some(timer), "it goes on");
        let shown = Banner::CountsDown(Duration::from_secs(left));
        assert_eq!(banner(&bench.model), Some(shown));
        if left == 5 {
            // Another word does not take its place, nor does copy mode stop it.
            bench.model.info("something else");
            bench.press(KeyCode::F(9));
            bench.press(KeyCode::Up);
            bench.press(KeyCode::Char('k'));
        }
    }
    let effects = second_passes(&mut bench, timer);
    assert_eq!(signals(&effects), [StopSignal::Exit]);
}

#[test]
fn typing_restarts_the_countdown_and_a_turn_makes_it_wait() {
    let (mut bench, effects) = announced(155_000);
    let timer = clock(&effects).expect("the clock runs");
    bench.wait(Duration::from_secs(9));
    let effects = bench.press(KeyCode::Char('x'));
    assert!(has!(effects, Effect::Forward(_)));
    assert_eq!(
        banner(&bench.model),
        Some(Banner::Waits(vec![Block::Typing])),
        "what is waited for is said"
    );
    bench.wait(Duration::from_secs(1));
    let effects = bench.send(Event::TimerFired(timer));
    assert!(signals(&effects).is_empty());
    bench.wait(Duration::from_secs(3));
    let quiet = TimerId::Quiet;
    let effects = bench.send(Event::TimerFired(quiet));
    assert!(clock(&effects).is_some_and(|next| next != timer));
    let whole = Banner::CountsDown(Duration::from_secs(10));
    assert_eq!(banner(&bench.model), Some(whole));
    // A turn does not begin it again, or a busy agent would never be rebooted: once it is due the turn's end is the moment.
    bench.prompted(OLD, "x");
    assert_eq!(banner(&bench.model), Some(Banner::Waits(vec![Block::Turn])));
    bench.wait(Duration::from_secs(100));
    bench.send(Event::TimerFired(TimerId::Age));
    assert_eq!(bench.step(), Some(Step::Review), "the turn runs");
    let effects = bench.turn_ended(OLD);
    assert_eq!(signals(&effects), [StopSignal::Exit]);
}

#[test]
fn the_countdown_stands_while_the_review_is_open_and_is_put_off_by_its_key() {
    let (mut bench, effects) = announced(155_000);
    let timer = clock(&effects).expect("the clock runs");
    bench.press(KeyCode::F(5));
    bench.wait(Duration::from_secs(60));
    let effects = bench.send(Event::TimerFired(timer));
    assert!(signals(&effects).is_empty() && clock(&effects).is_none());
    // Help over it, and back: it is announced again and not forgotten.
    bench.press(KeyCode::F(1));
    let effects = bench.press(KeyCode::Esc);
    assert!(clock(&effects).is_some());
    prefixed(&mut bench, KeyCode::Char('D'));
    let put_off = Banner::Quiet(QuietReason::Deferred, 3);
    assert_eq!((bench.step(), banner(&bench.model)), (None, Some(put_off)));
}

#[test]
fn the_mode_key_ends_what_holds_reboots_back() {
    let (mut bench, _) = announced(155_000);
    bench.press(KeyCode::F(5));
    bench.press(KeyCode::Esc);
    assert_eq!(bench.step(), None);
    for _ in 0..3 {
        bench.press(KeyCode::F(7));
    }
    assert_eq!(bench.model.reboot.mode, RebootMode::Auto);
    assert!(bench.step().is_some(), "armed again");
}

#[test]
fn past_the_force_line_neither_a_breaker_nor_an_earlier_no_counts() {
    // A session that has got nothing done: a breaker holds, until the force line.
    let mut bench = Bench::new();
    bench.model.reboot.mode = RebootMode::Auto;
    bench.model.reboot.progress.idle_sessions = 2;
    bench.used(40_000);
    bench.used(160_000);
    bench.send(Event::TimerFired(TimerId::Age));
    assert_eq!(bench.step(), None);
    bench.used(175_000);
    bench.send(Event::TimerFired(TimerId::Age));
    assert!(bench.step().is_some(), "past the force line");
    // A session that begins above the compact line is not helped by another one.
    for (mode, born, said) in [
        (RebootMode::Auto, 155_000, "no automatic reboot: "),
        (RebootMode::Auto, 175_000, "no automatic reboot: "),
        // It has none that could be held back.
        (RebootMode::Ask, 155_000, "no reboot is advised: "),
    ] {
        let mut bench = Bench::new();
        bench.model.reboot.mode = mode;
        bench.rebooted_to_new();
        bench.used(born);
        bench.turn_ended(NEW);
        bench.used(176_000);
        bench.send(Event::TimerFired(TimerId::Age));
        assert_eq!(bench.step(), None, "the breaker holds");
        let held = Banner::Held(Breaker::BornFull(Tokens(born)));
        assert_eq!(banner(&bench.model), Some(held));
        let mut notices = bench.model.view.notices.iter();
        assert!(
            notices.any(|notice| notice.text.starts_with(said)),
            "{said}"
        );
    }
    // Put off below it, due again behind it; put off behind it, it stays so.
    let (mut bench, _) = announced(155_000);
    prefixed(&mut bench, KeyCode::Char('D'));
    bench.used(175_000);
    bench.send(Event::TimerFired(TimerId::Age));
    assert!(bench.step().is_some());
    prefixed(&mut bench, KeyCode::Char('D'));
    bench.send(Event::TimerFired(TimerId::Age));
    assert_eq!(bench.step(), None);
}

#[test]
fn past_the_force_line_auto_interrupts_a_turn_that_does_not_end() {
    for (mode, used, interrupted) in [
        (RebootMode::Auto, 175_000, true),
        (RebootMode::Auto, 160_000, false),
        (RebootMode::Ask, 175_000, false),
    ] {
        let mut bench = Bench::in_mode(mode);
        bench.prompted(OLD, "work without an end");
        bench.used(used);
        bench.send(Event::TimerFired(TimerId::Age));
        let effects = bench.git();
        let timer = clock(&effects);
        assert_eq!(timer.is_some(), interrupted, "{mode:?} {used}");
        if let Some(timer) = timer {
            bench.wait(Duration::from_secs(10));
            let effects = bench.send(Event::TimerFired(timer));
            assert!(effects.contains(&Effect::Type(b"\x1b".to_vec())));
        }
    }
}

/// So many calls of the main conversation have no result in the transcript, and these have one now.
fn calls_read(bench: &mut Bench, calls_open: usize, ended: &[&str]) -> Vec<Effect> {
    let ran = ended.iter().map(|id| Ran {
        call: Some((*id).to_owned()),
        ..Ran::default()
    });
    bench.facts_read(TranscriptFacts {
        calls_open,
        ran: ran.collect(),
        whole: true,
        ..TranscriptFacts::default()
    })
}

fn is_cut(effects: &[Effect]) -> bool {
    effects.contains(&Effect::Type(b"\x1b".to_vec()))
}

/// Has `auto` wait for the next moment between two steps of a turn in which this many calls are known by now.
fn awaits_seam(calls_open: usize) -> Bench {
    let mut bench = Bench::new();
    bench.model.reboot.mode = RebootMode::Auto;
    bench.prompted(OLD, "a long piece of work");
    bench.tool_starts("Bash", "t1");
    calls_read(&mut bench, calls_open, &[]);
    bench.used(155_000);
    bench.send(Event::TimerFired(TimerId::Age));
    assert_eq!(clock(&bench.git()), None, "its end is waited for");
    bench.wait(Duration::from_secs(599));
    let effects = bench.send(Event::TimerFired(TimerId::Age));
    assert_eq!(clock(&effects), None, "still");
    bench.wait(Duration::from_secs(1));
    let mut effects = bench.send(Event::TimerFired(TimerId::Age));
    effects.extend(bench.git());
    let timer = clock(&effects).expect("it is announced");
    bench.wait(Duration::from_secs(10));
    let mut effects = bench.send(Event::TimerFired(timer));
    effects.extend(bench.git());
    assert!(!is_cut(&effects), "within a step");
    bench
}

#[test]
fn once_the_patience_is_over_a_turn_is_cut_between_two_steps() {
    // The transcript may have none of the step's calls yet when the first of them ends.
    for known in [2, 0] {
        let mut bench = awaits_seam(known);
        let mut effects = bench.tool_ends("Bash", "t1");
        effects.extend(calls_read(&mut bench, 1, &["t1"]));
        effects.extend(bench.tool_starts("Bash", "t2"));
        effects.extend(bench.tool_ends("Bash", "t2"));
        assert!(
            !is_cut(&effects),
            "within a step, of which {known} were known"
        );
        let effects = calls_read(&mut bench, 0, &["t2"]);
        assert!(is_cut(&effects), "behind its last result");
    }
    // A call and its result may be read at once, before its hook or behind it.
    for is_read_first in [true, false] {
        let mut bench = awaits_seam(0);
        let read = |bench: &mut Bench| is_cut(&calls_read(bench, 0, &["t1"]));
        let reported = |bench: &mut Bench| is_cut(&bench.tool_ends("Bash", "t1"));
        let cuts = if is_read_first {
            [read(&mut bench), reported(&mut bench)]
        } else {
            [reported(&mut bench), read(&mut bench)]
        };
        assert_eq!(cuts, [false, true]);
    }
    // One that cannot be read shows nothing.
    let mut bench = awaits_seam(0);
    bench.send(Event::Read(ReadEvent::TranscriptLost {
        session: session(OLD),
        why: "it is gone".to_owned(),
    }));
    assert!(is_cut(&bench.tool_ends("Bash", "t1")));
}

#[test]
fn what_is_armed_ends_with_the_session_that_it_is_about() {
    for mode in [RebootMode::Ask, RebootMode::Auto] {
        for source in [StartSource::Clear, StartSource::Resume] {
            let mut bench = Bench::in_mode(mode);
            bench.prompted(OLD, "work");
            bench.used(155_000);
            bench.send(Event::TimerFired(TimerId::Age));
            assert_eq!(bench.step(), Some(Step::Armed));
            let mut effects = bench.session_starts(9, source.clone());
            assert_eq!((bench.step(), banner(&bench.model)), (None, None));
            bench.wait(Duration::from_secs(60));
            effects.extend(bench.send(Event::TimerFired(TimerId::Age)));
            effects.extend(bench.git());
            assert!(signals(&effects).is_empty() && clock(&effects).is_none());
            assert_eq!(bench.model.reboot.failure, None, "nothing went wrong");
            // The figure of the session that it went to counts.
            bench.used(160_000);
            bench.send(Event::TimerFired(TimerId::Age));
            assert!(bench.step().is_some());
        }
    }
}

#[test]
fn a_figure_below_the_line_ends_the_countdown() {
    let (mut bench, effects) = announced(155_000);
    let timer = clock(&effects).expect("the clock runs");
    // `/rewind` takes turns back, and no hook reports it.
    bench.used(40_000);
    assert_eq!((bench.step(), banner(&bench.model)), (None, None));
    bench.wait(Duration::from_secs(10));
    let effects = bench.send(Event::TimerFired(timer));
    assert!(signals(&effects).is_empty());
    let reboots = crate::app::metrics::metrics(&bench.model).reboots;
    assert_eq!(reboots, [("threshold", "withdrawn", 1)]);
    let note = bench.model.view.log.back();
    let why = "the reboot is no longer due: the context is not full any more";
    assert_eq!(note.map(|note| note.text.as_str()), Some(why));
}

#[test]
fn a_larger_window_ends_what_was_armed() {
    let mut config = Config::default();
    config.reboot.mode = RebootMode::Auto;
    config.guard.compact_tokens = None;
    let mut bench = Bench::with(config);
    bench.used(155_000);
    bench.send(Event::TimerFired(TimerId::Age));
    bench.git();
    assert!(bench.step().is_some());
    bench.reading(155_000, Some(1_000_000), Source::StatusLine);
    assert_eq!(bench.step(), None);
}

#[test]
fn a_review_that_a_person_reads_is_not_taken_from_them() {
    let (mut bench, _) = announced(155_000);
    bench.press(KeyCode::F(5));
    bench.used(40_000);
    assert_eq!(
        (bench.step(), bench.model.view.overlay),
        (Some(Step::Review), Some(Overlay::Review))
    );
    let effects = bench.press(KeyCode::Enter);
    assert_eq!(signals(&effects), [StopSignal::Exit]);
}

#[test]
fn manual_mode_and_a_pause_end_what_was_announced() {
    let (mut bench, effects) = announced(155_000);
    let timer = clock(&effects).expect("the clock runs");
    bench.press(KeyCode::F(7));
    assert_eq!(
        (bench.model.reboot.mode, bench.step()),
        (RebootMode::Manual, None)
    );
    bench.wait(Duration::from_secs(10));
    assert!(signals(&bench.send(Event::TimerFired(timer))).is_empty());
    let (mut bench, _) = announced(155_000);
    prefixed(&mut bench, KeyCode::Char('p'));
    assert_eq!((bench.model.reboot.paused, bench.step()), (true, None));
    prefixed(&mut bench, KeyCode::Char('p'));
    assert!(bench.step().is_some(), "resumed");
}

#[test]
fn an_agent_that_its_user_ends_is_not_rebooted() {
    let (mut bench, effects) = announced(155_000);
    let timer = clock(&effects).expect("the clock runs");
    bench.exited(0);
    assert_eq!(
        (bench.step(), bench.model.view.overlay),
        (None, Some(Overlay::Exited))
    );
    bench.wait(Duration::from_secs(10));
    assert!(starts(&bench.send(Event::TimerFired(timer))).is_empty());
}

#[test]
fn a_note_that_is_being_written_makes_the_countdown_wait() {
    let (mut bench, effects) = announced(155_000);
    let timer = clock(&effects).expect("the clock runs");
    bench.press(KeyCode::F(3));
    bench.press(KeyCode::Char('e'));
    bench.press(KeyCode::Char('x'));
    assert_eq!(
        banner(&bench.model),
        Some(Banner::Waits(vec![Block::Editor]))
    );
    bench.wait(Duration::from_secs(10));
    assert!(signals(&bench.send(Event::TimerFired(timer))).is_empty());
    let effects = bench.press(KeyCode::Esc);
    assert!(clock(&effects).is_some(), "it begins again");
}

#[test]
fn what_the_new_session_needs_is_there_before_the_old_one_is_touched() {
    let mut bench = Bench::new();
    bench.review();
    bench.missing = Some("no room on the disk".to_owned());
    let shown = bench.model.draft.handoff.current().text.clone();
    let effects = bench.press(KeyCode::Enter);
    let prepared = bench.prepared.pop().unwrap();
    assert_eq!(prepared.iteration.get(), 2);
    assert_eq!(prepared.handoff, Some(shown));
    assert_eq!(prepared.hook, None, "no hook is set");
    assert!(signals(&effects).is_empty() && starts(&effects).is_empty());
    assert_eq!((bench.step(), bench.state()), (None, AgentState::Idle));
    let said = &bench.model.view.notices.back().unwrap().text;
    assert_eq!(
        said,
        "the reboot is refused, and the agent goes on: no room on the disk"
    );
    assert_eq!(
        bench.model.reboot.failure.as_deref(),
        Some("no room on the disk")
    );
    // The next one finds room.
    bench.missing = None;
    assert_eq!(signals(&bench.approve()), [StopSignal::Exit]);
}

#[test]
fn why_a_reboot_was_refused_stands_until_something_changes() {
    let refused = || {
        let mut bench = Bench::new();
        bench.missing = Some("no room on the disk".to_owned());
        bench.approve();
        bench.wait(Duration::from_mins(1));
        bench.send(Event::TimerFired(TimerId::Notice));
        assert!(bench.model.view.notices.is_empty());
        let why = "no room on the disk".to_owned();
        assert_eq!(banner(&bench.model), Some(Banner::Refused(why)));
        let reason = report::status(&bench.model).reboot.reason;
        assert_eq!(reason.as_deref(), Some("refused: no room on the disk"));
        bench
    };
    let mut bench = refused();
    prefixed(&mut bench, KeyCode::Char('m'));
    assert_eq!(banner(&bench.model), None);
    let mut bench = refused();
    prefixed(&mut bench, KeyCode::Char('D'));
    assert_eq!(banner(&bench.model), None);
    let quiet = bench.model.reboot.quiet.as_ref().map(|one| &one.reason);
    assert_eq!(quiet, Some(&QuietReason::Deferred));
    let mut bench = refused();
    bench.session_starts(9, StartSource::Clear);
    assert_eq!(banner(&bench.model), None);
    let mut bench = refused();
    bench.press(KeyCode::F(5));
    bench.press(KeyCode::Esc);
    assert_eq!(banner(&bench.model), None, "it was tried again");
}

#[test]
fn a_refused_automatic_reboot_is_tried_again_after_the_next_turn() {
    let mut config = Config::default();
    config.reboot.mode = RebootMode::Auto;
    config.reboot.auto_delay = Duration::ZERO;
    let mut bench = Bench::with(config);
    bench.missing = Some("no room on the disk".to_owned());
    let full = |bench: &mut Bench, used| {
        bench.used(used);
        bench.send(Event::TimerFired(TimerId::Age));
        bench.git();
    };
    full(&mut bench, 155_000);
    assert_eq!((bench.step(), bench.prepared.len()), (None, 1));
    let reason = QuietReason::Refused("no room on the disk".to_owned());
    assert_eq!(banner(&bench.model), Some(Banner::Quiet(reason, 1)));
    full(&mut bench, 155_001);
    assert_eq!(bench.step(), None, "not at once");
    bench.missing = None;
    bench.prompted(OLD, "go on");
    bench.turn_ended(OLD);
    full(&mut bench, 155_002);
    assert_eq!(bench.step(), Some(Step::Ending));
}

#[test]
fn a_reboot_that_was_taken_back_does_not_wait_for_its_preparation() {
    let mut config = Config::default();
    config.hooks.pre_reboot = Some("sleep 20".to_owned());
    let mut bench = Bench::with(config);
    bench.review();
    let at = bench.at();
    let first = bench.model.reboot.attempt.as_ref().unwrap();
    let (reboot, attempt) = (first.id, first.epoch);
    let (call, control) = (CallId(1), Control::Approve);
    update(&mut bench.model, at, Event::ControlAsked { call, control });
    let step = Step::Preparing;
    let journaled = Event::Store(StoreEvent::Journaled { reboot, step });
    let effects = update(&mut bench.model, at, journaled);
    let asked = first!(effects, Effect::Prepare(one) => one.hook.clone()).flatten();
    let asked = asked.expect("the hook is run");
    assert_eq!(
        (asked.hook, asked.iteration.get(), asked.result),
        ("pre_reboot", 1, None)
    );
    assert_eq!(asked.new_session, session(NEW));
    bench.press(KeyCode::F(5));
    bench.press(KeyCode::Esc);
    assert_eq!(bench.step(), None);
    // The answer is not for the next reboot either, whatever it is.
    for refused in [None, Some("not today".to_owned())] {
        let late = Event::Read(ReadEvent::Prepared { attempt, refused });
        assert!(signals(&bench.send(late.clone())).is_empty());
        assert_eq!(bench.step(), None);
        bench.missing = Some("the hook of the second one".to_owned());
        bench.press(KeyCode::F(5));
        bench.git();
        let at = bench.at();
        let (call, control) = (CallId(1), Control::Approve);
        update(&mut bench.model, at, Event::ControlAsked { call, control });
        update(
            &mut bench.model,
            at,
            Event::Store(StoreEvent::Journaled { reboot, step }),
        );
        assert!(signals(&update(&mut bench.model, at, late)).is_empty());
        assert_eq!(bench.step(), Some(step), "its own answer is awaited");
        bench.press(KeyCode::F(5));
        bench.press(KeyCode::Esc);
    }
}

#[test]
fn the_command_after_a_reboot_gets_its_outcome() {
    let mut config = Config::default();
    config.hooks.post_reboot = Some("true".to_owned());
    let reported = |effects: &[Effect]| {
        let result = first!(effects, Effect::RunPostReboot(result) => result)?;
        let state = &serde_json::to_value(result).unwrap()["preserved_state"];
        assert_eq!(state["decisions"][0]["description"], "sqlite", "{state}");
        assert_eq!(state["known_issues"][0]["files"][0], "src/a.rs");
        assert_eq!(state["test_state"]["passing"], json!(["a::b", "größe"]));
        Some((result.result.unwrap(), result.verified.unwrap()))
    };
    let with_state = |config: Config| {
        let mut bench = Bench::with(config);
        let report = r#"{"passed": true, "passing_tests": ["a::b", "größe"]}"#;
        let report = crate::api::wire::Report::Tests(serde_json::from_str(report).unwrap());
        let call = CallId(7);
        bench.send(Event::Reported { call, report });
        let now = bench.model.now;
        let said = bench.model.draft.take_hooked(
            "DECISION: sqlite | small\nISSUE[high]: `src/a.rs` panics",
            now,
        );
        said.carry_out(&mut bench.model);
        bench
    };
    let mut bench = with_state(config.clone());
    let effects = bench.rebooted_to_new();
    assert_eq!(reported(&effects), Some(("done", true)));
    let history = report::history(&bench.model);
    let kept = history.iterations[1].preserved_state.as_ref().unwrap();
    assert_eq!(kept["decisions"][0]["rationale"], "small");
    assert_eq!(report::handoff(&bench.model).current_hat, None);
    let mode = "plan".to_owned();
    let session = session(NEW);
    bench.send(Event::Agent(AgentEvent::ModeSeen { session, mode }));
    let handoff = report::handoff(&bench.model);
    assert_eq!(handoff.current_hat.as_deref(), Some("plan"));
    bench.model.identity.agent_args = vec!["--agent=größe".to_owned()];
    let hat = report::handoff(&bench.model).current_hat;
    assert_eq!(hat.as_deref(), Some("größe"));
    assert_eq!(handoff.key_decision_texts, ["sqlite (because: small)"]);
    let passing = |one: &&crate::api::wire::SourcedItem| one.field == "test_state.passing";
    assert_eq!(handoff.sources.iter().filter(passing).count(), 2);

    // One that failed and was taken back.
    let mut bench = with_state(config.clone());
    bench.rebooted();
    bench.spawned(3);
    bench.exited(1);
    let effects = bench.spawned(4);
    assert_eq!(reported(&effects), Some(("rolled_back", false)));

    // One that never began.
    let mut bench = Bench::with(config);
    bench.review();
    assert_eq!(reported(&bench.press(KeyCode::Esc)), None);
}

#[test]
fn a_roll_back_that_fails_too_says_that_no_agent_runs() {
    let ways: [fn(&mut Bench); 4] = [
        |bench| drop(bench.rebooted()),
        |bench| {
            bench.rebooted();
            bench.spawned(3);
            bench.exited(1);
        },
        |bench| {
            let ask = bench.trimming();
            bench.copied(ask, Ok(super::trim::trim_record()));
        },
        // The session from before is resumed by an undo.
        |bench| {
            bench.rebooted_to_new();
            bench.control(Control::Undo);
            bench.exited(0);
        },
    ];
    for (number, begin) in ways.into_iter().enumerate() {
        let mut bench = Bench::new();
        bench.used(155_000);
        begin(&mut bench);
        while bench.step().is_some() || bench.model.session.agent.state != AgentState::Exited {
            let why = "too many open files".to_owned();
            let iteration = bench.model.session.iteration();
            bench.send(Event::Pane(PaneEvent::SpawnFailed { iteration, why }));
        }
        let model = &bench.model;
        assert_eq!(model.view.overlay, Some(Overlay::Exited), "{number}");
        assert_eq!(model.view.card, None, "{number}");
        let mut log = model.view.log.iter();
        assert!(log.any(|said| said.bad && said.text.contains("too many open files")));
        assert!(model.current_iteration().is_none_or(|one| !one.is_open()));
    }
}

#[test]
fn a_hold_stays_on_the_screen_and_in_the_status_with_its_reason() {
    for why in ["170", "have filled", "in the last hour", "no room"] {
        let mut config = Config::default();
        config.reboot.mode = RebootMode::Auto;
        config.reboot.auto_delay = Duration::ZERO;
        let mut bench = Bench::with(config);
        match why {
            "170" => drop(bench.rebooted_to_new()),
            "have filled" => bench.model.reboot.progress.idle_sessions = 2,
            "in the last hour" => bench.model.reboot.done = vec![bench.at(); 40],
            _ => bench.missing = Some(why.to_owned()),
        }
        bench.used(170_000);
        for _ in 0..3 {
            bench.send(Event::TimerFired(TimerId::Age));
            bench.git();
            bench.wait(Duration::from_secs(2));
            bench.model.info("something else");
        }
        let status = report::status(&bench.model).reboot;
        let held = status.held.map_or_else(String::new, |held| held.reason);
        assert_eq!(status.phase, "idle", "{why}");
        assert!(held.contains(why), "{held}");
    }
}

#[test]
fn the_card_waits_for_the_new_figure_and_then_stands_its_time() {
    let mut bench = Bench::new();
    bench.used(160_000);
    bench.rebooted_to_new();
    assert_eq!(bench.step(), None);
    let stands = |bench: &mut Bench, seconds: u64| {
        bench.wait(Duration::from_secs(seconds));
        bench.send(Event::TimerFired(TimerId::Moment));
        bench.model.view.card.is_some()
    };
    assert!(stands(&mut bench, 12), "there is no figure yet");
    bench.used(21_000);
    assert!(stands(&mut bench, 8));
    assert!(!stands(&mut bench, 3));
}

#[test]
fn a_handoff_that_waits_for_the_end_of_a_turn_has_what_came_meanwhile_unless_it_was_edited() {
    let edit = |bench: &mut Bench, marks: &str| {
        bench.press(KeyCode::Char('e'));
        for mark in marks.chars() {
            bench.press(KeyCode::Char(mark));
        }
        bench.press(KeyCode::Esc);
    };
    for (before, meanwhile) in [("", ""), ("?", ""), ("", "!"), ("?", "!")] {
        let mut bench = Bench::new();
        bench.prompted(OLD, "work");
        bench.review();
        if !before.is_empty() {
            edit(&mut bench, before);
        }
        bench.press(KeyCode::Enter);
        assert_eq!(bench.step(), Some(Step::Waiting));
        if !meanwhile.is_empty() {
            bench.review();
            edit(&mut bench, meanwhile);
        }
        let notes = "- [x] mend the parser\n- [ ] mend the printer\n".to_owned();
        bench.send(Event::Read(ReadEvent::Scratchpad(Some(notes))));
        bench.turn_ended(OLD);
        let given = bench.model.reboot.attempt.as_ref().unwrap().handoff.clone();
        let text = given.unwrap().text;
        assert_eq!(bench.step(), Some(Step::Ending));
        let edited = [before, meanwhile].concat();
        assert_eq!(
            text.contains("mend the printer"),
            edited.is_empty(),
            "{text}"
        );
        assert!(edited.chars().all(|mark| text.contains(mark)), "{text}");
    }
}

#[test]
fn a_handoff_goes_once_whatever_becomes_of_the_configuration_meanwhile() {
    for is_pasted in [false, true] {
        let mut bench = Bench::new();
        let usual = bench.model.config.reboot.delivery;
        let mut deliveries = [usual, Delivery::Paste];
        if is_pasted {
            deliveries.reverse();
        }
        bench.model.config.reboot.delivery = deliveries[0];
        let start = bench.rebooted();
        assert_eq!(start.prompt.is_none(), is_pasted);
        bench.model.config.reboot.delivery = deliveries[1];
        let effects = [bench.spawned(3), bench.started(NEW), bench.ready()].concat();
        assert_eq!(has!(effects, Effect::Paste(_)), is_pasted);
    }
}

#[test]
fn a_reboot_begins_in_a_turn_that_a_warm_up_prompt_is_to_follow() {
    for by in ["key", "script", "line"] {
        let mut config = Config::default();
        config.reboot.warmup_prompt = Some("Run the tests.".to_owned());
        let mut bench = Bench::with(config);
        bench.rebooted_to_new();
        assert_eq!(bench.step(), Some(Step::Warming));
        match by {
            "key" => bench.press(KeyCode::F(5)),
            "script" => bench.control(Control::Reboot),
            _ => {
                bench.used(20_000);
                bench.used(155_000)
            }
        };
        assert!(bench.model.reboot.has_attempt(Attempt::is_open), "{by}");
        assert!(bench.journaled.contains(&Step::Done), "{by}");
        let record = bench.model.lineage.iterations()[1].reboot.as_ref();
        let record = record.expect("the reboot is on record");
        assert!(record.verified && !record.warmed_up, "{by}");
    }
}

#[test]
fn a_handoff_that_another_prompt_has_passed_is_not_left_to_be_given_again() {
    for (prompt, last) in [
        (Some("something else"), Step::Done),
        (Some("数える"), Step::Done),
        (Some("и ещё"), Step::Done),
        (None, Step::Verifying),
    ] {
        let mut bench = Bench::new();
        bench.rebooted();
        bench.spawned(3);
        bench.started(NEW);
        if let Some(prompt) = prompt {
            bench.prompted(NEW, prompt);
        }
        assert_eq!(bench.step(), Some(Step::Verifying));
        bench.send(Event::ShutdownAsked { signal: "SIGTERM" });
        assert_eq!(bench.journaled.last(), Some(&last), "{prompt:?}");
        let record = bench.model.lineage.iterations()[1].reboot.as_ref();
        let verified = record.map(|record| record.verified);
        assert_eq!(verified, prompt.map(|_| false));
    }
}

#[test]
fn a_prompt_that_a_hook_has_refused_in_a_cleared_session_undoes_no_reboot() {
    for why in ["[gate.sh]: no ticket", "нет задачи", "票がない"] {
        let mut bench = Bench::new();
        bench.used(155_000);
        bench.rebooted_to_new();
        bench.turn_ended(NEW);
        bench.session_starts(9, StartSource::Clear);
        let mut words = HumanWords::default();
        // The hook has kept the prompt out of the record.
        let content = format!("UserPromptSubmit operation blocked by hook:\n{why}");
        words.take_record(&json!({"type": "system", "content": content}));
        let effects = bench.facts_read(TranscriptFacts {
            human: Some(words),
            whole: true,
            ..TranscriptFacts::default()
        });
        assert_eq!((bench.step(), signals(&effects)), (None, vec![]), "{why}");
        assert_eq!(bench.model.session.id, session(9));
    }
}

#[test]
fn an_agent_that_ends_before_its_warm_up_has_ended_like_any_other() {
    for (code, reason) in [
        (0, EndReason::Natural),
        (1, EndReason::Crash),
        (137, EndReason::Crash),
    ] {
        let mut config = Config::default();
        config.reboot.warmup_prompt = Some("Run the tests.".to_owned());
        let mut bench = Bench::with(config);
        bench.rebooted_to_new();
        assert_eq!(bench.step(), Some(Step::Warming));
        bench.exited(code);
        assert_eq!(
            (bench.step(), bench.ended(1)),
            (None, Some(reason)),
            "{code}"
        );
        assert_eq!(bench.journaled.last(), Some(&Step::Done));
        assert_eq!(bench.model.view.overlay, Some(Overlay::Exited));
        let record = bench.model.lineage.iterations()[1].reboot.as_ref();
        assert!(record.is_some_and(|record| record.verified && !record.warmed_up));
    }
}

#[test]
fn an_agent_that_a_person_ends_behind_another_prompt_is_not_rolled_back() {
    for prompt in ["something else", "数える", "и ещё"] {
        let mut bench = Bench::new();
        bench.rebooted();
        bench.spawned(3);
        bench.started(NEW);
        bench.prompted(NEW, prompt);
        assert_eq!(bench.step(), Some(Step::Verifying));
        let effects = bench.exited(0);
        assert_eq!((bench.step(), starts(&effects)), (None, vec![]), "{prompt}");
        assert_eq!(bench.journaled.last(), Some(&Step::Done), "{prompt}");
        assert_eq!(bench.model.session.id, session(NEW), "{prompt}");
        assert_eq!(bench.ended(1), Some(EndReason::Natural), "{prompt}");
    }
    // One that has died at once is still rolled back.
    let mut bench = Bench::new();
    bench.rebooted();
    bench.spawned(3);
    bench.started(NEW);
    let effects = bench.exited(0);
    let back: Vec<_> = starts(&effects).iter().map(|one| one.session).collect();
    assert_eq!(back, [session(OLD)]);
}

#[test]
fn more_reboots_than_allowed_in_an_hour_hold_the_next_one_back_until_enough_are_old() {
    let mut bench = Bench::in_mode(RebootMode::Auto);
    let first = bench.at();
    bench.wait(Duration::from_mins(10));
    let later = bench.at();
    bench.model.reboot.done = vec![first; 5];
    bench.model.reboot.done.extend([later; 20]);
    bench.used(40_000);
    bench.used(160_000);
    let held = banner(&bench.model);
    let until = later.wall + Duration::from_hours(1);
    assert!(
        matches!(held, Some(Banner::Held(Breaker::TooMany { done: 25, until: one, .. })) if one == until),
        "{held:?}"
    );
}

#[test]
fn a_turn_that_begins_long_after_the_arming_has_the_whole_patience() {
    let mut bench = Bench::in_mode(RebootMode::Auto);
    bench.prompted(OLD, "a long piece of work");
    bench.left(OLD, Some("I wait"), in_background(&["a1"]));
    bench.used(155_000);
    bench.send(Event::TimerFired(TimerId::Age));
    let effects = bench.git();
    assert_eq!(clock(&effects), None, "the background work is waited for");
    assert!(bench.model.reboot.attempt.is_some());
    bench.wait(Duration::from_secs(700));
    let mut effects = bench.prompted(OLD, "its report");
    effects.extend(bench.tool_starts("Bash", "t1"));
    effects.extend(calls_read(&mut bench, 1, &[]));
    effects.extend(bench.send(Event::TimerFired(TimerId::Age)));
    effects.extend(bench.git());
    assert_eq!(clock(&effects), None, "its turn has just begun");
    bench.wait(Duration::from_secs(599));
    let mut effects = bench.send(Event::TimerFired(TimerId::Age));
    effects.extend(bench.git());
    assert_eq!(clock(&effects), None, "still");
    bench.wait(Duration::from_secs(1));
    let mut effects = bench.send(Event::TimerFired(TimerId::Age));
    effects.extend(bench.git());
    assert!(clock(&effects).is_some(), "it is announced");
}
