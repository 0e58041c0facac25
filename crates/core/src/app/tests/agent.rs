//! What the agent reports, and what becomes of its state.

use pitstop_agent::TimedPrompt;
use pitstop_transcript::human::HumanWords;
use serde_json::{Value, json};

use super::*;
use crate::{api::wire::NeedKind, app::event::TranscriptFacts};

#[test]
fn events_of_another_session_change_nothing() {
    let mut bench = Bench::new();
    let start = bench.rebooted();
    bench.spawned(3);
    bench.prompted(OLD, &start.prompt.unwrap());
    bench.turn_ended(OLD);
    assert_eq!(bench.step(), Some(Step::Verifying));
    assert_eq!(bench.model.session.agent.turns, 0);
    let stale = Event::Pane(PaneEvent::Exited {
        iteration: crate::lineage::IterationId::FIRST,
        exit: Exit::Code(0),
    });
    bench.send(stale);
    assert_ne!(bench.model.session.agent.state, AgentState::Exited);
}

/// A transcript with these words and records.
pub(super) fn transcribed(bench: &mut Bench, typed: &[&str], records: &[Value]) {
    let mut words = HumanWords::default();
    for prompt in typed {
        words.take_prompt(prompt, None);
    }
    for record in records {
        words.take_record(record);
    }
    bench.facts_read(TranscriptFacts {
        human: Some(words),
        whole: true,
        ..TranscriptFacts::default()
    });
}

#[test]
fn a_prompt_that_the_client_gives_by_itself_is_no_request() {
    for prompt in ["check the build", "Goal set: tests pass", "続けて確認"] {
        let given = json!({"type": "user", "isMeta": true, "message": {"content": prompt}});
        let said = |bench: &Bench| -> Vec<String> {
            let prompts = bench.model.draft.signalled.prompts();
            prompts.map(|one| one.said.text.clone()).collect()
        };
        let latest = |bench: &Bench| {
            bench
                .model
                .draft
                .requests
                .latest
                .clone()
                .map(|one| one.text)
        };
        let mut bench = Bench::new();
        bench.prompted(OLD, "Build it");
        bench.prompted(OLD, "with tests");
        for _ in 0..2 {
            // The hook does not tell of whom it is.
            bench.prompted(OLD, prompt);
            assert_eq!(latest(&bench).as_deref(), Some(prompt));
            transcribed(
                &mut bench,
                &["Build it", "with tests"],
                std::slice::from_ref(&given),
            );
            assert_eq!(latest(&bench).as_deref(), Some("with tests"));
            assert_eq!(said(&bench), ["Build it", "with tests"]);
        }
        // Then a person says the same.
        bench.prompted(OLD, prompt);
        let mut words = HumanWords::default();
        words.take_record(&given);
        words.take_prompt(prompt, None);
        bench.model.draft.words_read(words, None);
        assert_eq!(said(&bench), ["Build it", "with tests", prompt]);
        // A person has said the same in an earlier session.
        let mut bench = Bench::new();
        let mut words = HumanWords::default();
        words.take_prompt(prompt, None);
        bench.model.draft.human_said(&words, None);
        bench.prompted(OLD, prompt);
        transcribed(&mut bench, &["Build it"], &[given]);
        assert!(
            said(&bench).contains(&prompt.to_owned()),
            "{:?}",
            said(&bench)
        );
    }
}

/// A prompt that the client gives again and again.
fn every_five_minutes(prompt: &str) -> Background {
    Background {
        prompts: vec![TimedPrompt {
            id: "c1".into(),
            recurs: true,
            schedule: "*/5 * * * *".into(),
            prompt: prompt.into(),
        }],
        ..Background::default()
    }
}

#[test]
fn a_goal_and_prompts_at_set_times_go_over_into_a_fresh_session() {
    let goal = |met: bool| {
        json!({"type": "attachment", "attachment": {"type": "goal_status", "sentinel": true,
            "met": met, "condition": "all tests pass"}})
    };
    let secret = format!("ghp_{}", "0123456789".repeat(4));
    for (is_met, typed) in [(false, true), (true, false)] {
        let mut bench = Bench::new();
        bench.prompted(OLD, "Build it");
        transcribed(&mut bench, &["Build it"], &[goal(false), goal(is_met)]);
        let ended = |number| AgentEvent::TurnEnded {
            session: session(number),
            last_message: None,
            background: every_five_minutes(&format!("check\nthe build {secret}")),
            transcript_path: None,
        };
        bench.send(Event::Agent(ended(OLD)));
        // Whoever approves does not wait for a prompt that comes again and again.
        let start = bench.rebooted();
        let handoff = start.prompt.expect("the handoff");
        assert!(handoff.contains("CronList"), "{handoff}");
        assert!(
            handoff.contains("- */5 * * * *: check the build") && !handoff.contains(&secret),
            "{handoff}"
        );
        bench.spawned(3);
        bench.started(NEW);
        bench.prompted(NEW, &handoff);
        // A text of a person's is in the way until it is submitted.
        bench.prompt_box(holds("and the docs"));
        bench.send(Event::Agent(ended(NEW)));
        assert_eq!(bench.model.draft.goal_due.is_some(), typed);
        let waits = |bench: &Bench| {
            bench
                .model
                .view
                .notices
                .iter()
                .any(|one| one.text.contains("not set again yet"))
        };
        assert_eq!(waits(&bench), typed);
        bench.prompted(NEW, "and the docs");
        bench.prompt_box(PromptBox::Empty);
        bench.model.session.agent.takes_pastes = true;
        bench.send(Event::Agent(ended(NEW)));
        let given = bench.model.session.submission.is_open();
        assert_eq!(given, typed, "met: {is_met}");
        assert_eq!(bench.model.draft.goal_due, None);
    }
}

#[test]
fn the_first_prompt_behind_a_clear_is_the_objective_and_the_one_before_is_kept() {
    for (before, after) in [
        ("Port the parser to Rust", "Write the release notes"),
        ("移植解析器", "リリースノートを書く"),
        ("Почини парсер", "Обнови README и примеры"),
    ] {
        let mut bench = Bench::new();
        let ask = |bench: &mut Bench, number: u128, prompt: &str| {
            bench.prompted(number, prompt);
            assert_eq!(bench.state(), AgentState::Busy);
            bench.turn_ended(number);
        };
        let objective = |bench: &Bench| bench.model.draft.preserved.current_objective.clone();
        ask(&mut bench, OLD, before);
        ask(&mut bench, OLD, "and the tests for it");
        bench.session_starts(9, StartSource::Clear);
        assert_eq!(bench.model.session.id, session(9));
        // As long as nothing else is asked for, the work is what it was.
        ask(&mut bench, 9, "continue");
        assert_eq!(objective(&bench).expect("the old one").text, before);
        ask(&mut bench, 9, after);
        assert_eq!(objective(&bench).expect("the new one").text, after);
        assert_eq!(bench.model.draft.requests.latest, None);
        ask(&mut bench, 9, "with an example");
        let handoff = &bench.model.draft.handoff.current().text;
        assert!(
            handoff.contains(&format!("Carry on with \"{after}\"")),
            "{handoff}"
        );
        for said in [before, "and the tests for it", "with an example"] {
            assert!(handoff.contains(said), "{said}: {handoff}");
        }
        assert_eq!(objective(&bench).expect("the new one").text, after);
    }
}

#[test]
fn a_clear_leaves_an_objective_that_was_stated() {
    let mut bench = Bench::new();
    bench.prompted(OLD, "Port the parser");
    bench.said(OLD, "OBJECTIVE: a parser in Rust");
    bench.session_starts(9, StartSource::Clear);
    bench.prompted(9, "Go on with the lexer");
    let objective = bench.model.draft.preserved.current_objective.clone();
    assert_eq!(objective.expect("one").text, "a parser in Rust");
}

#[test]
fn a_model_that_a_person_has_chosen_is_the_one_of_all_later_processes() {
    for name in ["sonnet", "claude-opus-5-5[1m]", "default"] {
        let mut bench = Bench::new();
        bench.send(Event::Agent(AgentEvent::ModelSwitched {
            session: session(OLD),
            chosen: Some(name.to_owned()),
        }));
        assert_eq!(bench.model.identity.agent_args, ["--model", name]);
        for _ in 0..2 {
            assert_eq!(bench.rebooted().model.as_deref(), Some(name));
        }
    }
    assert_eq!(Bench::new().rebooted().model, None);
}

#[test]
fn a_turn_that_the_human_stopped_is_over_when_the_title_says_so() {
    let mut bench = Bench::new();
    bench.prompted(OLD, "work");
    bench.titled("⠂ work");
    assert_eq!(bench.model.session.agent.state, AgentState::Busy);
    let effects = bench.titled("✳ work");
    let calm = TimerId::Calm(bench.model.session.calm_epoch);
    assert!(has!(effects, Effect::SetTimer(id, _) if *id == calm));
    assert_eq!(bench.model.session.agent.state, AgentState::Busy);
    bench.send(Event::TimerFired(calm));
    assert_eq!(bench.model.session.agent.state, AgentState::Idle);
    assert_eq!(bench.model.session.agent.turns, 1);
    // Its hook was late, and the turn is counted once.
    bench.turn_ended(OLD);
    assert_eq!(bench.model.session.agent.turns, 1);
    bench.prompted(OLD, "go on");
    bench.turn_ended(OLD);
    assert_eq!(bench.model.session.agent.turns, 2);
}

#[test]
fn a_refused_prompt_is_a_context_limit_and_asks_for_a_reboot() {
    let mut config = Config::default();
    config.guard.replace_compaction = true;
    let mut bench = Bench::with(config);
    bench.press(KeyCode::F(7));
    bench.model.reboot.mode = RebootMode::Manual;
    bench.used(178_000);
    bench.prompted(OLD, "more");
    assert_eq!(
        (bench.model.session.agent.state, bench.step()),
        (AgentState::Limit, None)
    );
    bench.model.reboot.mode = RebootMode::Ask;
    bench.prompted(OLD, "more");
    assert!(bench.step().is_some());
}

#[test]
fn a_client_that_compacts_by_itself_takes_prompts_to_the_end_of_its_window() {
    let mut bench = Bench::new();
    bench.model.reboot.mode = RebootMode::Manual;
    bench.used(178_000);
    bench.prompted(OLD, "more");
    assert_eq!(bench.model.session.agent.state, AgentState::Busy);
    // If it did refuse, its title says that no turn runs, and no hook reports an end.
    bench.wait(Duration::from_secs(1));
    bench.titled("✳ work");
    let calm = TimerId::Calm(bench.model.session.calm_epoch);
    let effects = bench.send(Event::TimerFired(calm));
    assert_eq!(bench.model.session.agent.state, AgentState::Limit);
    let called = all!(effects, Effect::Call(need) | Effect::Settled(need) => need.kind);
    assert_eq!(called, [NeedKind::ContextRefused]);
    // It is not a usage limit, and no limit of an earlier turn is shown for it.
    bench.model.session.agent.limit_reset = Some(bench.at().wall);
    let phrase = crate::app::session::activity::phrase(&bench.model);
    assert_eq!(phrase, "window full");
    let report = crate::app::outside::report::status(&bench.model).agent;
    assert_eq!(report.reason.as_deref(), Some("its context window is full"));
    assert_eq!(report.limit_reset, None);
}

#[test]
fn the_pane_of_an_ended_agent_and_the_history_resume_it_after_its_dialog_is_hidden() {
    type Way = fn(&mut Bench) -> Vec<Effect>;
    let ways: [Way; 2] = [
        |bench| bench.press(KeyCode::Enter),
        |bench| {
            bench.press(KeyCode::F(6));
            bench.press(KeyCode::Char('R'))
        },
    ];
    for way in ways {
        let mut bench = Bench::new();
        bench.exited(0);
        bench.press(KeyCode::Esc);
        assert_eq!(bench.model.view.overlay, None);
        bench.press(KeyCode::Char('x'));
        let start = starts(&way(&mut bench)).pop().expect("it is resumed");
        assert_eq!((start.session, start.resume), (session(OLD), true));
    }
}

#[test]
fn a_suspended_agent_is_unknown_until_a_key_continues_it() {
    let mut bench = Bench::new();
    bench.prompted(OLD, "work");
    bench.send(Event::Pane(PaneEvent::Suspended));
    assert_eq!(bench.state(), AgentState::Unknown);
    let reason = crate::app::facts::agent_reason(&bench.model).unwrap_or_default();
    assert!(reason.contains("any key"), "{reason}");
    // Its turn may end meanwhile: what it has suspended is only its terminal.
    bench.turn_ended(OLD);
    assert_eq!(bench.state(), AgentState::Unknown);
    let effects = bench.press(KeyCode::Char('x'));
    let continues = |effect: &Effect| matches!(effect, Effect::ContinueAgent);
    assert!(effects.iter().any(continues), "{effects:?}");
    let forwards = |effect: &Effect| matches!(effect, Effect::Forward(_));
    assert!(!effects.iter().any(forwards), "{effects:?}");
    assert_eq!(bench.state(), AgentState::Idle);
    // A paste continues it with its end, and no piece of it is passed on.
    bench.send(Event::Pane(PaneEvent::Suspended));
    let chunk = HostInput::PasteChunk(b"text".to_vec());
    let pieces = [HostInput::PasteStart, chunk, HostInput::PasteEnd];
    let pasted = pieces.map(|piece| bench.send(Event::Host(HostEvent::Input(piece))));
    assert!(!pasted.iter().flatten().any(forwards), "{pasted:?}");
    assert!(pasted[2].iter().any(continues), "{pasted:?}");
    assert_eq!(bench.state(), AgentState::Idle);
    // It may be killed meanwhile.
    bench.send(Event::Pane(PaneEvent::Suspended));
    bench.exited(0);
    bench.send(Event::Pane(PaneEvent::Continued));
    assert_eq!(bench.state(), AgentState::Exited);
}

#[test]
fn an_agent_that_ends_by_itself_can_be_resumed() {
    let mut bench = Bench::new();
    bench.exited(0);
    assert_eq!(bench.model.view.overlay, Some(Overlay::Exited));
    assert_eq!(bench.ended(0), Some(EndReason::Natural));
    let effects = bench.press(KeyCode::Enter);
    let start = starts(&effects).remove(0);
    assert_eq!((start.session, start.resume), (session(OLD), true));
    assert!(
        bench.journaled.is_empty(),
        "nothing is at stake: {:?}",
        bench.journaled
    );
}

#[test]
fn a_line_that_is_passed_is_shown_in_words_that_need_no_manual() {
    let mut bench = Bench::new();
    let mut reported = |used| {
        bench.used(used);
        bench.model.view.notices.back().unwrap().text.clone()
    };
    assert_eq!(reported(95_000), "the context is past the notice line");
    assert_eq!(reported(130_000), "the context is past the warn line");
    assert_eq!(reported(155_000), "the context is past the compact line");
}

#[test]
fn the_outcome_of_a_test_run_reaches_the_handoff() {
    let mut bench = Bench::new();
    bench.started(1);
    let mut ran = |stdout: &str, stderr: &str| {
        let call = ToolCall {
            name: "Bash".to_owned(),
            command: Some("cargo test".to_owned()),
            ..ToolCall::default()
        };
        let output = ToolOutput {
            stdout: stdout.to_owned(),
            stderr: stderr.to_owned(),
            ..ToolOutput::default()
        };
        bench.tool_ran(call, output);
        bench.model.draft.handoff.generated.text.clone()
    };
    let failed = "running 1 test\ntest tests::adds ... FAILED\n\ntest result: FAILED. 0 passed; 1 failed; 0 ignored\n";
    assert!(ran(failed, "").contains("## Failing tests\n\n- tests::adds\n"));
    let broken = "error: could not compile `x` (lib test) due to 1 previous error\n";
    assert!(ran("", broken).contains("- (cargo test could not be built)"));
    let passed = "running 1 test\ntest tests::adds ... ok\n\ntest result: ok. 1 passed; 0 failed; 0 ignored\n";
    let text = ran(passed, "");
    assert!(!text.contains("Failing tests"), "{text}");
    assert_eq!(
        bench.model.draft.preserved.test_state.fixed,
        ["tests::adds"]
    );
}

#[test]
fn a_limit_that_is_used_up_counts_before_one_that_nearly_is() {
    let reset = |hours: u64| 1_800_000_000 + hours * 3_600;
    let limit = |used_percentage, hours| {
        let resets_at = Some(reset(hours));
        Some(pitstop_agent::RateLimit {
            used_percentage,
            resets_at,
        })
    };
    let mut bench = Bench::new();
    for (five_hour, seven_day, hours) in [
        (limit(100.0, 2), limit(99.0, 96), 2),
        (limit(99.0, 2), limit(99.4, 96), 96),
        (limit(100.0, 2), limit(100.0, 96), 96),
    ] {
        let line = StatusLine {
            five_hour,
            seven_day,
            ..status_line(OLD)
        };
        bench.send(Event::Agent(AgentEvent::StatusLine(Box::new(line))));
        let found = bench.model.session.agent.limit_reset;
        let found = found.map(|at| at.timestamp());
        assert_eq!(found, Some(reset(hours).cast_signed()));
    }
}

#[test]
fn a_full_window_is_over_with_its_conversation() {
    type End = fn(&mut Bench) -> Vec<Effect>;
    let ends: [End; 4] = [
        |bench| bench.session_starts(9, StartSource::Clear),
        |bench| bench.resumed(9),
        |bench| bench.session_starts(OLD, StartSource::Compact),
        |bench| {
            bench.send(Event::Agent(AgentEvent::Compacted {
                session: session(OLD),
            }))
        },
    ];
    for (at, end) in ends.into_iter().enumerate() {
        let mut bench = Bench::new();
        bench.model.reboot.mode = RebootMode::Manual;
        bench.prompted(OLD, "work");
        bench.failed(Failure::ContextLimit, "prompt is too long");
        assert_eq!(bench.state(), AgentState::Limit, "{at}");
        let effects = end(&mut bench);
        assert_eq!(bench.state(), AgentState::Idle, "{at}");
        let settled = has!(effects, Effect::Settled(need) if need.kind == NeedKind::ContextRefused);
        assert!(settled, "{at}: {effects:?}");
    }
    // A usage limit is of the account.
    let mut bench = Bench::new();
    bench.prompted(OLD, "work");
    bench.failed(Failure::UsageLimit, "limit reached");
    bench.session_starts(9, StartSource::Clear);
    assert_eq!(bench.state(), AgentState::Limit);
}

#[test]
fn the_last_words_are_of_the_conversation_that_is_there() {
    let mut bench = Bench::new();
    bench.prompted(OLD, "work");
    bench.said(OLD, "The port is done.");
    let words = |bench: &Bench| {
        let report = crate::app::outside::report::status(&bench.model);
        report.agent.last_words
    };
    assert_eq!(words(&bench).as_deref(), Some("The port is done."));
    bench.session_starts(9, StartSource::Clear);
    assert_eq!(words(&bench), None);
}
