//! The ways back to a session: what was promised, put off or held there is not forgotten, and what brought it back does not begin again.

use pitstop_handoff::preserved;
use serde_json::json;

use super::*;
use crate::{
    app::{carried, facts, iteration, model::carried::Carried},
    lineage::Cause,
};

fn takes_a_turn(bench: &mut Bench, number: u128) {
    bench.prompted(number, "work");
    bench.turn_ended(number);
}

#[test]
fn a_session_that_an_undo_brings_back_full_is_left_alone_for_a_while() {
    // Left below the force line or past it; what it has again when it is back.
    for (left, back, at_once) in [
        (155_000, 155_000, false),
        (178_000, 178_000, false),
        (190_000, 191_000, false),
        (155_000, 178_000, true),
    ] {
        let mut bench = Bench::in_mode(RebootMode::Auto);
        bench.used(left);
        bench.rebooted_to_new();
        takes_a_turn(&mut bench, NEW);
        bench.control(Control::Undo);
        bench.exited(0);
        bench.spawned(4);
        bench.started(OLD);
        bench.used(back);
        bench.send(Event::TimerFired(TimerId::Age));
        assert_eq!(bench.step().is_some(), at_once, "{left} {back}");
        if !at_once {
            for _ in 0..3 {
                assert_eq!(bench.step(), None, "{left} {back}");
                takes_a_turn(&mut bench, OLD);
            }
            assert!(bench.step().is_some(), "{left} {back}: it is full still");
        }
    }
}

#[test]
fn a_reboot_by_itself_that_is_rolled_back_does_not_begin_again_at_once() {
    for used in [155_000, 178_000] {
        let mut bench = Bench::in_mode(RebootMode::Auto);
        bench.used(used);
        bench.rebooted();
        bench.spawned(3);
        bench.exited(1);
        bench.spawned(4);
        bench.started(OLD);
        assert_eq!(bench.step(), None, "{used}: rolled back");
        bench.used(used);
        bench.send(Event::TimerFired(TimerId::Age));
        assert_eq!(bench.step(), None, "{used}: it would fail again");
        let held = facts::is_quiet(&bench.model);
        assert!(held, "{used}: and the reason is shown");
        for _ in 0..3 {
            takes_a_turn(&mut bench, OLD);
        }
        assert!(bench.step().is_some(), "{used}");
    }
}

#[test]
fn a_reboot_can_be_undone_after_its_agent_has_ended() {
    // Still ended, or started again once and more often.
    for (restarts, code) in [(0, 0), (0, 1), (1, 0), (3, 1)] {
        let mut bench = Bench::new();
        bench.used(155_000);
        bench.rebooted_to_new();
        takes_a_turn(&mut bench, NEW);
        bench.exited(code);
        for number in 0..restarts {
            bench.press(KeyCode::Enter);
            bench.spawned(4 + number);
            bench.resumed(NEW);
            takes_a_turn(&mut bench, NEW);
            if number > 0 {
                bench.exited(code);
            }
        }
        let mut effects = bench.control(Control::Undo);
        if restarts == 1 {
            effects = bench.exited(0);
        }
        let start = starts(&effects);
        let back: Vec<_> = start.iter().map(|one| (one.session, one.resume)).collect();
        assert_eq!(back, [(session(OLD), true)], "{restarts} {code}");
    }
}

#[test]
fn what_was_recorded_since_a_clearing_outlives_its_undo() {
    let mut bench = Bench::new();
    let said = |bench: &mut Bench, text: &str| {
        let follows = bench.model.draft.take_hooked(text, bench.model.now);
        follows.carry_out(&mut bench.model);
    };
    said(
        &mut bench,
        "OBJECTIVE: ship\nDECISION: sqlite | small\nTODO: port\nTODO: docs",
    );
    bench.control(Control::ClearState);
    said(
        &mut bench,
        "DECISION: toml | plain\nDONE: port\nISSUE: slow start\nREJECTED: xml | old",
    );
    bench.control(Control::Undo);
    let state = &bench.model.draft.signalled;
    let decided: Vec<_> = state
        .decisions
        .iter()
        .map(|one| one.description.as_str())
        .collect();
    assert_eq!(decided, ["sqlite", "toml"]);
    let pending = preserved::texts(&state.pending_items);
    assert_eq!(
        (pending, state.completed_items.len()),
        (vec!["docs".to_owned()], 1)
    );
    assert_eq!((state.known_issues.len(), state.rejected.len()), (1, 1));
    assert!(state.current_objective.is_some());
}

/// The conversation may have been replaced without a new process meanwhile: then that is what is taken back.
#[test]
fn an_undo_behind_a_reboot_in_place_is_not_that_of_a_clearing() {
    let mut bench = Bench::new();
    bench
        .model
        .draft
        .take_hooked("DECISION: sqlite", bench.model.now)
        .carry_out(&mut bench.model);
    bench.control(Control::ClearState);
    bench.model.draft.conversation_replaced();
    bench.control(Control::Undo);
    assert!(bench.model.draft.signalled.decisions.is_empty());
}

/// A session with a goal that is not met.
fn with_goal() -> Bench {
    let mut bench = Bench::new();
    bench.prompted(OLD, "Build it");
    let goal = json!({"type": "attachment", "attachment": {"type": "goal_status",
        "sentinel": true, "met": false, "condition": "all tests pass"}});
    super::agent::transcribed(&mut bench, &["Build it"], &[goal]);
    bench.turn_ended(OLD);
    bench
}

#[test]
fn a_goal_that_a_session_was_not_given_yet_is_due_in_whatever_goes_on_with_it() {
    let due = |bench: &Bench| bench.model.draft.goal_due.clone();
    let goal = Some("all tests pass".to_owned());
    let keeps = |bench: &mut Bench, step: &str| {
        let follows = (bench.model.draft).take_hooked(&format!("TODO: {step}"), bench.model.now);
        follows.carry_out(&mut bench.model);
        let effects = bench.send(Event::TimerFired(TimerId::KeepCarried));
        effects.into_iter().rev().find_map(|effect| match effect {
            Effect::KeepCarried(_, carried) => Some(*carried),
            _ => None,
        })
    };
    let next = |carried: Carried| {
        let mut bench = Bench::bare(Config::default());
        carried::take_up(&mut bench.model, None, Ok(Some(Box::new(carried))));
        bench
    };
    // The agent ends in its first turn, and is started again.
    let mut bench = with_goal();
    let own = keeps(&mut bench, "port").expect("kept");
    bench.rebooted_to_new();
    bench.exited(1);
    bench.press(KeyCode::Enter);
    bench.spawned(4);
    bench.resumed(NEW);
    assert_eq!(due(&bench), goal);
    // It is left, and resumed by the next process.
    let kept = keeps(&mut bench, "docs").expect("kept");
    let mut later = next(kept);
    iteration::begin(&mut later.model, true, Some(Cause::Resume), None);
    assert_eq!(due(&later), goal);
    // A session that was given its goal has it when it is resumed: the client keeps it.
    assert_eq!(
        (own.goal.clone(), own.goal_due.clone()),
        (goal.clone(), None)
    );
    let mut later = next(own);
    iteration::begin(&mut later.model, true, Some(Cause::Resume), None);
    assert_eq!(due(&later), None);
    // Back in the session that has it.
    let mut bench = with_goal();
    bench.rebooted_to_new();
    bench.control(Control::Undo);
    bench.exited(0);
    bench.spawned(4);
    bench.resumed(OLD);
    assert_eq!(due(&bench), None);
}

#[test]
fn a_handoff_that_is_never_confirmed_is_closed_once_its_session_goes_on() {
    for is_late_first in [true, false] {
        let mut bench = Bench::new();
        bench.rebooted();
        let effects = bench.spawned(3);
        let effects = [effects, bench.started(NEW)].concat();
        let timer = first!(effects, Effect::SetTimer(id @ TimerId::Verify(_), _) => *id).unwrap();
        if is_late_first {
            bench.send(Event::TimerFired(timer));
            assert_eq!(bench.step(), Some(Step::Verifying));
            bench.prompted(NEW, "something else");
        } else {
            takes_a_turn(&mut bench, NEW);
            assert_eq!(bench.step(), Some(Step::Verifying), "it is not late yet");
            bench.send(Event::TimerFired(timer));
        }
        assert_eq!(bench.step(), None, "{is_late_first}");
        let journaled = bench.journaled.last().copied();
        assert_eq!(
            journaled,
            Some(Step::Done),
            "the next start leaves it alone"
        );
        let record = bench.model.lineage.iterations()[1].reboot.as_ref();
        assert!(record.is_some_and(|record| !record.verified));
        let effects = bench.exited(0);
        assert_eq!(starts(&effects).len(), 0, "the old session is not resumed");
    }
}
