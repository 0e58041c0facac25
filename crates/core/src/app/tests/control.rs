//! Orders by people and scripts, and leaving.

use std::collections::BTreeSet;

use super::*;
use crate::api::{
    endpoint::Endpoint,
    wire::{
        ApiEvent, ApiEventKind, ApproveBody, CommitBody, PermissionAnswer, PermissionBody, Report,
        SaveBody, TestBody,
    },
};
use crate::app::{
    changes::ModelSnapshot, event::TranscriptFacts, model::view::NOTICE_TIME, report,
};
use crate::lineage::Cause;
use pitstop_agent::bridge::{Caller, Tool};

#[test]
fn quitting_asks_in_a_turn_and_ends_the_agent_first() {
    let mut bench = Bench::new();
    bench.prompted(OLD, "work");
    assert!(signals(&bench.press(KeyCode::F(10))).is_empty());
    assert_eq!(bench.model.view.overlay, Some(Overlay::Quit));
    bench.press(KeyCode::Enter);
    assert_eq!(
        bench.model.reboot.ending.map(|ending| ending.signal),
        Some(StopSignal::Interrupt)
    );
    let effects = bench.exited(0);
    assert!(effects.contains(&Effect::Quit(0)));
    let ended = bench.model.lineage.iterations()[0].end_reason;
    assert_eq!(ended, Some(EndReason::Shutdown));
}

#[test]
fn no_queued_prompt_is_begun_by_the_end_of_the_agent() {
    let mut bench = Bench::new();
    bench.prompted(OLD, "work");
    bench.facts_read(TranscriptFacts {
        queued: vec!["then the docs".to_owned()],
        ..TranscriptFacts::default()
    });
    bench.press(KeyCode::F(10));
    // An Escape would have the client begin it, and it is kept for the next one, too.
    let effects = bench.press(KeyCode::Enter);
    assert!(!effects.contains(&Effect::Type(b"\x1b".to_vec())));
    assert_eq!(signals(&effects), [StopSignal::Exit]);
    let draft = &bench.model.draft.keeping.draft;
    assert_eq!(draft.as_deref(), Some("then the docs"));
}

#[test]
fn the_question_at_the_quit_key_offers_to_detach() {
    let mut bench = Bench::new();
    bench.prompted(OLD, "work");
    bench.press(KeyCode::F(10));
    let effects = bench.press(KeyCode::Char('d'));
    assert!(effects.contains(&Effect::Detach), "{effects:?}");
    assert_eq!(bench.model.view.overlay, None);
    assert!(bench.model.outside.quitting().is_none());
}

#[test]
fn a_signal_leaves_no_time_for_questions() {
    let mut bench = Bench::new();
    bench.prompted(OLD, "work");
    let effects = bench.send(Event::ShutdownAsked { signal: "SIGTERM" });
    assert_eq!(signals(&effects), [StopSignal::Hangup]);
}

#[test]
fn an_agent_that_nothing_ends_does_not_keep_a_person_here() {
    let mut bench = Bench::new();
    let mut effects = bench.send(Event::ShutdownAsked { signal: "SIGTERM" });
    for signal in [StopSignal::Hangup, StopSignal::Terminate, StopSignal::Kill] {
        assert_eq!(signals(&effects), [signal]);
        let timer = first!(effects, Effect::SetTimer(id @ TimerId::StopTimeout(_), _) => *id);
        effects = bench.send(Event::TimerFired(timer.expect("a deadline")));
    }
    assert!(effects.contains(&Effect::Quit(130)), "{effects:?}");
    let ended = bench.model.lineage.iterations()[0].end_reason;
    assert_eq!(ended, Some(EndReason::Shutdown));
}

#[test]
fn the_record_names_what_ended_a_session_and_whether_that_cut_a_turn() {
    for (signal, in_turn, words) in [
        (None, false, "quit"),
        (None, true, "quit in mid-turn"),
        (Some("SIGHUP"), false, "terminal closed"),
        (Some("SIGHUP"), true, "terminal closed in mid-turn"),
        (Some("SIGTERM"), true, "ended by a signal in mid-turn"),
    ] {
        let mut bench = Bench::new();
        if in_turn {
            bench.prompted(OLD, "work");
        }
        match signal {
            Some(signal) => bench.send(Event::ShutdownAsked { signal }),
            None => bench.control(Control::Stop),
        };
        // The client ends the turn before it ends itself.
        bench.turn_ended(OLD);
        bench.exited(129);
        let ended = bench.model.view.history.ended(
            &bench.model.lineage,
            bench.model.run(),
            &bench.model.lineage.iterations()[0],
        );
        assert_eq!(ended.as_deref(), Some(words), "{signal:?}");
    }
    let mut bench = Bench::new();
    bench.prompted(OLD, "work");
    bench.exited(1);
    let last = &bench.model.lineage.iterations()[0];
    assert_eq!(
        bench
            .model
            .view
            .history
            .ended(&bench.model.lineage, bench.model.run(), last)
            .as_deref(),
        Some("died in mid-turn")
    );
}

#[test]
fn a_session_that_the_client_resumes_is_recorded_as_resumed() {
    let mut bench = Bench::new();
    let effects = bench.resumed(OLD);
    let saved = |effect: &Effect| matches!(effect, Effect::SaveIteration(one, _) if one.cause == Some(Cause::Resume));
    assert!(effects.iter().any(saved), "{effects:?}");
    // On a busy machine the first turn is over before the hook comes; a resume of the same session later on is no beginning.
    for (is_late, expected) in [(true, Some(Cause::Resume)), (false, None)] {
        let mut bench = Bench::new();
        bench.model.session.agent.started = !is_late;
        bench.prompted(OLD, "work");
        bench.turn_ended(OLD);
        bench.used(20_000);
        bench.resumed(OLD);
        assert_eq!(bench.model.lineage.iterations()[0].cause, expected);
    }
}

#[test]
fn whoever_gives_an_order_hears_what_follows_from_it() {
    let mut bench = Bench::new();
    let order = |bench: &mut Bench, control: Control| {
        let effects = bench.control(control);
        ordered(&effects).to_owned()
    };
    let reported = order(&mut bench, Control::Reboot);
    assert!(reported.contains("`pitstop ctl approve`"), "{reported}");
    bench.git();
    bench.prompted(OLD, "one more thing");
    let reported = order(&mut bench, Control::Approve);
    assert!(
        reported.contains("it waits for the turn to end"),
        "{reported}"
    );
    let reported = order(&mut bench, Control::Approve);
    assert!(reported.contains("the session ends now"), "{reported}");
    let mut bench = Bench::new();
    order(&mut bench, Control::Reboot);
    let reported = order(&mut bench, Control::Defer);
    assert!(reported.contains("3 turns"), "{reported}");
    let reported = order(&mut bench, Control::Say("go".to_owned()));
    assert!(reported.contains("typed"), "{reported}");
    let reported = order(&mut bench, Control::Stop);
    assert!(reported.contains("the agent is ended"), "{reported}");
}

#[test]
fn a_refusal_is_described_for_just_the_endpoints_that_give_one() {
    let reported = |report| Event::Reported {
        call: CallId(1),
        report,
    };
    let asked = |control| Event::ControlAsked {
        call: CallId(1),
        control,
    };
    // Those two are refused by the server and by the store, not by the core.
    let mut refusing = BTreeSet::from([Endpoint::Bridge.path(), Endpoint::Handoff.path()]);
    let permission = PermissionBody {
        id: 9,
        answer: PermissionAnswer::Allow,
    };
    let mut bench = Bench::new();
    bench.prompted(OLD, "work");
    // More than are kept in a minute.
    for number in 0..100 {
        let commit = CommitBody {
            commit_sha: format!("{number:07x}"),
            ..CommitBody::default()
        };
        for (endpoint, event) in [
            (Endpoint::GitCommit, reported(Report::Commit(commit))),
            (
                Endpoint::TestResult,
                reported(Report::Tests(TestBody::default())),
            ),
            (
                Endpoint::AutoSave,
                reported(Report::AutoSave(SaveBody::default())),
            ),
            (Endpoint::Say, asked(Control::Say("hello".to_owned()))),
            (Endpoint::Order, asked(Control::Undo)),
            (
                Endpoint::Decide,
                asked(Control::Permission(permission.clone())),
            ),
            (
                Endpoint::Tool,
                Event::ToolCalled {
                    call: CallId(1),
                    caller: Caller {
                        session: Some(session(NEW)),
                        ..Caller::default()
                    },
                    tool: Tool::Context,
                },
            ),
        ] {
            let effects = bench.send(event);
            if matches!(
                effects.first(),
                Some(Effect::Answer(_, Reply::Refused { .. }))
            ) {
                refusing.insert(endpoint.path());
            }
        }
    }
    let description = include_str!("../../../../../assets/openapi.json");
    let description: serde_json::Value = serde_json::from_str(description).expect("JSON");
    let is_described = |endpoint: &&Endpoint| {
        let method = endpoint.method().word().to_lowercase();
        !description["paths"][endpoint.path()][method]["responses"]["409"].is_null()
    };
    let described = Endpoint::ALL.iter().filter(is_described);
    assert_eq!(
        described.map(|one| one.path()).collect::<BTreeSet<_>>(),
        refusing
    );
}

#[test]
fn an_effect_that_failed_is_shown_listed_published_and_taken_down_as_any_error() {
    let mut bench = Bench::new();
    let before = ModelSnapshot::of(&bench.model);
    let what = "the clipboard cannot be written: Broken pipe".to_owned();
    let effects = bench.send(Event::EffectFailed { what: what.clone() });
    let shown = |bench: &Bench| {
        let newest = bench.model.view.notices.back();
        newest.map(|one| (one.text.clone(), one.bad))
    };
    assert_eq!(shown(&bench), Some((what.clone(), true)), "in the footer");
    let listed = |bench: &Bench| {
        let newest = bench.model.view.log.back();
        newest.map(|one| (one.text.clone(), one.bad))
    };
    assert_eq!(listed(&bench), shown(&bench), "among the messages");
    let published = ApiEvent {
        kind: ApiEventKind::Notice,
        data: serde_json::json!({"text": what, "bad": true}),
    };
    assert_eq!(before.events(&bench.model, &effects), [published]);
    let timer = first!(effects, Effect::SetTimer(TimerId::Notice, time) => *time);
    let time = timer.expect("a timer takes it down");
    assert!(time >= NOTICE_TIME);
    bench.wait(time);
    bench.send(Event::TimerFired(TimerId::Notice));
    assert_eq!(shown(&bench), None);
    assert_eq!(listed(&bench), Some((what, true)), "the messages keep it");
}

#[test]
fn a_text_for_a_suspended_agent_is_refused_with_what_continues_it() {
    let mut bench = Bench::new();
    bench.send(Event::Pane(PaneEvent::Suspended));
    let asked = bench.control(Control::Say("go".to_owned()));
    let reported = format!("{asked:?}");
    assert!(reported.contains("any key"), "{reported}");
}

#[test]
fn an_objective_of_several_lines_is_reported_on_one() {
    let mut bench = Bench::new();
    bench.prompted(OLD, "port it:\n\n\t- the parser\r\n  - the lexer");
    let reported = crate::app::report::status(&bench.model).objective;
    let line = "port it: - the parser - the lexer";
    assert_eq!(reported.as_deref(), Some(line));
}

#[test]
fn a_session_that_is_resumed_after_a_crash_has_not_rebooted() {
    let mut bench = Bench::new();
    bench.exited(137);
    bench.press(KeyCode::Enter);
    bench.spawned(OLD + 1);
    bench.started(OLD);
    assert_eq!(bench.model.lineage.iterations().len(), 2);
    let last = |bench: &Bench| crate::app::report::status(&bench.model).last_reboot;
    assert_eq!(last(&bench), None);
    bench.ready();
    bench.review();
    let handoff = bench.model.draft.handoff.current().text.clone();
    bench.press(KeyCode::Enter);
    bench.exited(0);
    bench.spawned(NEW + 1);
    bench.started(NEW);
    bench.prompted(NEW, &handoff);
    let at = bench.model.lineage.iterations()[2].started_at;
    assert_eq!(last(&bench).map(|last| last.at), Some(at));
}

#[test]
fn a_text_waits_for_nothing_that_runs_in_the_background() {
    for kind in ["shell", "subagent", "monitor"] {
        let mut bench = Bench::new();
        bench.prompt_box(PromptBox::Empty);
        bench.send(Event::Pane(PaneEvent::PasteModeSet { on: true }));
        bench.prompted(OLD, "start the server");
        let mut background = in_background(&["b1"]);
        background.tasks[0].kind = kind.into();
        bench.left(OLD, None, background);
        assert_eq!(
            crate::app::facts::blocked_by(&bench.model),
            [Block::Background]
        );
        let asked = bench.control(Control::Say("and the docs".to_owned()));
        let reported = format!("{asked:?}");
        assert!(reported.contains("typed"), "{kind}: {reported}");
    }
}

#[test]
fn what_was_read_is_approved_once() {
    let mut bench = Bench::new();
    bench.control(Control::Reboot);
    bench.git();
    bench.prompted(OLD, "one more thing");
    let revision = report::revision(&bench.model.draft.handoff.current().text);
    let body = ApproveBody {
        revision: Some(revision),
        ..ApproveBody::default()
    };
    bench.control(Control::ApproveAs(body.clone()));
    assert_eq!(bench.step(), Some(Step::Waiting));
    let effects = bench.control(Control::ApproveAs(body));
    assert!(
        has!(effects, Effect::Answer(_, Reply::Refused { .. })),
        "{effects:?}"
    );
    assert!(!has!(effects, Effect::Type(_)), "the turn goes on");
    assert_eq!(bench.step(), Some(Step::Waiting));
}

#[test]
fn what_counts_from_the_next_start_is_named_when_the_configuration_is_read_again() {
    use crate::config::Config;
    let mut bench = Bench::new();
    let mut said = |change: fn(&mut Config)| {
        let mut config = bench.model.config.clone();
        change(&mut config);
        bench.send(Event::Read(ReadEvent::Config(Box::new(config))));
        bench.model.view.notices.back().unwrap().text.clone()
    };
    let at_once: [fn(&mut Config); 3] = [
        |config| config.guard.warn = 60,
        |config| config.agent.tools = false,
        // There is no run that would keep its cap.
        |config| config.autopilot.max_cost_usd = Some(1.0),
    ];
    for change in at_once {
        assert_eq!(said(change), "the configuration was read again");
    }
    let late = said(|config| {
        config.agent.args = vec!["--model".to_owned(), "opus".to_owned()];
        config.log.keep_days = 1;
    });
    assert_eq!(
        late,
        "the configuration was read again ([agent], [log]: from the next start on)"
    );
}
