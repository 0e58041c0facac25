//! Tests of the steps that follow from the events of a run.

use chrono::{TimeZone as _, Utc};

use super::*;

fn at(seconds: u64) -> At {
    At {
        since_start: Duration::from_secs(seconds),
        asleep: Duration::ZERO,
        wall: Utc.timestamp_opt(1_795_000_000, 0).unwrap() + Duration::from_secs(seconds),
        zone: pitstop_base::clock::UTC,
    }
}

fn plan() -> Plan {
    Plan {
        task: "build it".to_owned(),
        stop_phrase: "ALL DONE".to_owned(),
        caps: Caps {
            max_iterations: Some(3),
            max_cost_usd: Some(5.0),
            max_time: Some(Duration::from_secs(100)),
        },
        limits: Limits {
            same_command: Some(3),
            no_change: Some(3),
            same_message: Some(3),
        },
        fresh: Fresh::Threshold,
        attended: true,
    }
}

fn run() -> Autopilot {
    Autopilot::new(plan(), at(0))
}

fn spent(iterations: u64) -> Spent {
    Spent {
        iterations,
        ..Spent::default()
    }
}

/// Runs a turn with a message of its own that changed something.
fn turn(run: &mut Autopilot, number: u64, iterations: u64) -> Verdict {
    let said = format!("step {number}");
    assert_eq!(
        run.turn_ended(Some(&said), &spent(iterations)),
        Verdict::Settle
    );
    run.settled(number, false, &spent(iterations))
}

#[test]
fn turns_go_on_until_the_stop_phrase_is_given() {
    let mut run = run();
    for number in 1..10 {
        assert_eq!(turn(&mut run, number, 1), Verdict::Prompt);
        assert_eq!(run.next_prompt(), prompt::go_on());
    }
    let over = run.turn_ended(Some("It works.\n\nALL DONE"), &spent(1));
    assert_eq!(over, Verdict::End(End::StopPhrase));
    assert_eq!(run.turns, 10);
}

#[test]
fn a_full_window_asks_for_another_session_and_the_cap_forbids_it() {
    let mut run = run();
    run.turn_ended(Some("a"), &spent(1));
    assert_eq!(run.settled(1, true, &spent(1)), Verdict::Fresh);
    run.turn_ended(Some("b"), &spent(3));
    assert_eq!(
        run.settled(2, false, &spent(3)),
        Verdict::Prompt,
        "the last one is used up"
    );
    run.turn_ended(Some("c"), &spent(3));
    let end = End::Cap(Cap::Iterations(3));
    assert_eq!(run.settled(3, true, &spent(3)), Verdict::End(end.clone()));
    assert_eq!((end.code(), end.reason()), (3, EndReason::Limit));
}

#[test]
fn every_turn_is_a_session_of_its_own_when_asked_for() {
    let mut run = run();
    run.plan.fresh = Fresh::Always;
    assert_eq!(turn(&mut run, 1, 1), Verdict::Fresh);
    assert_eq!(turn(&mut run, 2, 2), Verdict::Fresh);
    run.prompt("mind the gap".to_owned()).unwrap();
    assert_eq!(
        turn(&mut run, 3, 2),
        Verdict::Prompt,
        "what is to be said comes first"
    );
    assert_eq!(run.next_prompt(), "mind the gap");
    assert_eq!(
        turn(&mut run, 4, 3),
        Verdict::End(End::Cap(Cap::Iterations(3)))
    );
}

#[test]
fn cost_and_time_end_it_and_the_stop_phrase_wins_over_them() {
    let over = Spent {
        iterations: 1,
        cost_usd: 5.0,
        time: Duration::from_secs(100),
    };
    let mut one = run();
    assert_eq!(
        one.turn_ended(Some("x"), &over),
        Verdict::End(End::Cap(Cap::Cost(5.0)))
    );
    let mut two = run();
    assert_eq!(
        two.turn_ended(Some("ALL DONE"), &over),
        Verdict::End(End::StopPhrase)
    );
    assert_eq!(run().time_left(at(30)), Some(Duration::from_secs(70)));
    assert_eq!(run().time_left(at(300)), Some(Duration::ZERO));
}

#[test]
fn a_pause_holds_everything_and_the_stop_phrase_is_not_forgotten() {
    let mut run = run();
    run.paused_by = Some("a key".to_owned());
    assert_eq!(run.turn_ended(Some("ALL DONE"), &spent(9)), Verdict::Settle);
    run.resume();
    assert_eq!(run.phase, Phase::Settling);
    assert_eq!(
        run.settled(1, false, &spent(1)),
        Verdict::End(End::StopPhrase)
    );
}

#[test]
fn a_trip_waits_for_a_person_and_ends_a_headless_run() {
    let trip = Trip::NoChange { turns: 3 };
    let mut watched = run();
    for number in 0..2 {
        let said = format!("hm {number}");
        watched.turn_ended(Some(&said), &spent(1));
        assert_eq!(watched.settled(7, false, &spent(1)), Verdict::Prompt);
    }
    watched.turn_ended(Some("hm"), &spent(1));
    assert_eq!(
        watched.settled(7, false, &spent(1)),
        Verdict::Trip(trip.clone())
    );
    assert_eq!(watched.trip(trip.clone()), Phase::Tripped(trip.clone()));
    assert!(watched.is_held());
    watched.resume();
    assert!(!watched.is_held());
    watched.turn_ended(Some("on"), &spent(1));
    assert_eq!(
        watched.settled(7, false, &spent(1)),
        Verdict::Prompt,
        "the count begins again"
    );

    let mut headless = run();
    headless.plan.attended = false;
    let Phase::Ended(end) = headless.trip(trip) else {
        panic!("{:?}", headless.phase);
    };
    assert_eq!((end.code(), end.reason()), (4, EndReason::Breaker));
    headless.resume();
    assert!(headless.is_over());
}

#[test]
fn a_tool_that_gets_work_done_is_a_change_and_another_is_none() {
    let mut run = run();
    for number in 0..6 {
        run.tool_ran(true, None, "", false);
        run.turn_ended(Some(&format!("e {number}")), &spent(1));
        assert_eq!(run.settled(7, false, &spent(1)), Verdict::Prompt);
    }
    for number in 0..3 {
        run.tool_ran(false, None, "", false);
        run.turn_ended(Some(&format!("r {number}")), &spent(1));
        let tripped = matches!(run.settled(7, false, &spent(1)), Verdict::Trip(_));
        assert_eq!(tripped, number == 2);
    }
    assert!(
        changes_work("TodoWrite") && changes_work("TaskUpdate") && changes_work("NotebookEdit")
    );
    for looks in ["Task", "TaskGet", "TaskList", "TaskOutput", "TaskStop"] {
        assert!(!changes_work(looks), "{looks}");
    }
}

#[test]
fn a_turn_is_judged_once() {
    let mut run = run();
    run.turn_ended(Some("a"), &spent(1));
    for _ in 0..9 {
        assert_eq!(run.settled(7, false, &spent(1)), Verdict::Prompt);
    }
}

#[test]
fn a_turn_that_a_reboot_followed_at_once_counts_too() {
    let mut run = run();
    run.turn_ended(Some("stuck"), &spent(1));
    assert_eq!(run.settled(7, false, &spent(1)), Verdict::Prompt);
    run.turn_ended(Some("stuck"), &spent(1));
    // The reboot begins before the figures have settled.
    let verdict = run.turn_ended(Some("stuck"), &spent(2));
    assert_eq!(verdict, Verdict::Settle);
    let verdict = run.settled(7, false, &spent(2));
    assert!(
        matches!(&verdict, Verdict::Trip(trip) if trip.name() == "same_message"),
        "{verdict:?}"
    );
}

#[test]
fn failures_are_waited_out_and_trip_in_the_end() {
    let mut run = run();
    let mut waits = 0;
    let trip = loop {
        match run.turn_failed("API Error: 529 overloaded", Failure::Service, &spent(0)) {
            Verdict::Wait(_) => waits += 1,
            verdict => break verdict,
        }
    };
    assert_eq!(waits, patience::MAX_FAILURES - 1);
    assert!(
        matches!(&trip, Verdict::Trip(trip @ Trip::Service { times: 10, .. }) if trip.to_string().contains("529")),
        "{trip:?}"
    );
}

#[test]
fn a_refused_conversation_is_left_once_for_a_fresh_session() {
    let fail = |run: &mut Autopilot, iterations| {
        run.turn_failed("API Error: 400", Failure::Conversation, &spent(iterations))
    };
    let mut refused = run();
    refused.turn_ended(Some("a"), &spent(1));
    let verdicts: Vec<_> = (0..4).map(|_| fail(&mut refused, 1)).collect();
    assert!(
        matches!(
            verdicts[..],
            [
                Verdict::Wait(_),
                Verdict::Wait(_),
                Verdict::Fresh,
                Verdict::Wait(_)
            ]
        ),
        "{verdicts:?}"
    );
    let mut capped = run();
    capped.turn_ended(Some("a"), &spent(3));
    for _ in 0..4 {
        assert!(matches!(fail(&mut capped, 3), Verdict::Wait(_)));
    }
}

#[test]
fn an_agent_that_fails_from_the_start_could_not_run() {
    let fail = |run: &mut Autopilot| {
        for _ in 1..FIRST_FAILURES {
            assert!(matches!(
                run.turn_failed("please log in", Failure::Other, &spent(0)),
                Verdict::Wait(_)
            ));
        }
        run.turn_failed("please log in", Failure::Other, &spent(0))
    };
    let end = End::NoAgent("please log in".to_owned());
    assert_eq!(fail(&mut run()), Verdict::End(end));
    let mut worked = run();
    worked.turn_ended(Some("a"), &spent(1));
    assert!(matches!(fail(&mut worked), Verdict::Wait(_)));
}

#[test]
fn a_usage_limit_is_waited_for_by_the_status_line_or_the_message() {
    let reset = at(0).wall + Duration::from_secs(600);
    let Verdict::Wait(pause) = run().limited(Some(reset), "limit", at(0)) else {
        panic!("it waits");
    };
    assert_eq!(pause.reset, Some(reset));
    let message = format!("limit reached|{}", reset.timestamp());
    let Verdict::Wait(pause) = run().limited(None, &message, at(0)) else {
        panic!("it waits");
    };
    assert_eq!(pause.reset, Some(reset));
}

#[test]
fn an_agent_that_never_worked_could_not_run_and_one_that_did_trips() {
    let die = |run: &mut Autopilot| {
        for _ in 0..3 {
            assert!(matches!(
                run.agent_died("exit code 1", &spent(1)),
                Verdict::Wait(_)
            ));
        }
        run.agent_died("exit code 1", &spent(1))
    };
    let Verdict::End(end) = die(&mut run()) else {
        panic!("it is over");
    };
    assert_eq!(end.code(), 5);
    let mut worked = run();
    worked.turn_ended(Some("a"), &spent(1));
    let Verdict::Trip(trip) = die(&mut worked) else {
        panic!("it trips");
    };
    assert_eq!(trip.name(), "agent_dies");
    let mut capped = run();
    assert_eq!(
        capped.agent_died("signal 9", &spent(3)),
        Verdict::End(End::Cap(Cap::Iterations(3)))
    );
}

#[test]
fn a_changed_task_is_sent_once() {
    let mut run = run();
    assert!(!run.task_read("build it\n".to_owned()));
    assert!(run.task_read("build it better".to_owned()));
    assert!(run.next_prompt().contains("build it better"));
    assert_eq!(run.next_prompt(), prompt::go_on());
}

#[test]
fn what_waits_to_be_said_is_bounded() {
    let mut run = run();
    for _ in 0..QUEUE {
        run.prompt("x".to_owned()).unwrap();
    }
    assert!(run.prompt("x".to_owned()).is_err());
}

#[test]
fn every_end_has_the_code_of_the_contract() {
    let trip = Trip::NoChange { turns: 1 };
    for (end, code, reason) in [
        (End::StopPhrase, 0, EndReason::StopPhraseFound),
        (End::Stopped { code: 0 }, 0, EndReason::Shutdown),
        (End::Cap(Cap::Iterations(1)), 3, EndReason::Limit),
        (End::Tripped(trip), 4, EndReason::Breaker),
        (End::NoAgent("x".to_owned()), 5, EndReason::Crash),
        (End::Stopped { code: 130 }, 130, EndReason::Shutdown),
    ] {
        assert_eq!((end.code(), end.reason()), (code, reason), "{end}");
    }
}

#[test]
fn a_refused_conversation_is_left_though_another_failure_came_between() {
    let mut refused = run();
    refused.turn_ended(Some("a"), &spent(1));
    let mut fail = |failure| refused.turn_failed("API Error", failure, &spent(1));
    for failure in [
        Failure::Conversation,
        Failure::Conversation,
        Failure::Service,
    ] {
        assert!(matches!(fail(failure), Verdict::Wait(_)));
    }
    assert_eq!(fail(Failure::Conversation), Verdict::Fresh);
    assert!(matches!(fail(Failure::Conversation), Verdict::Wait(_)));
}
