//! An agent whose hooks are silent.

use super::*;
use crate::app::event::{Closing, MadeAgain, PlacesSeen, Ran, TranscriptFacts};

/// Its process runs, and no hook has spoken.
fn silent() -> Bench {
    let mut bench = Bench::bare(Config::default());
    bench.model.config.summary.generate_summaries = false;
    crate::app::iteration::begin(&mut bench.model, false, None, None);
    bench.spawned(NEW);
    bench
}

impl Bench {
    pub(super) fn facts_read(&mut self, facts: TranscriptFacts) -> Vec<Effect> {
        let session = self.model.session.id;
        let facts = Box::new(facts);
        self.send(Event::Read(ReadEvent::Transcript { session, facts }))
    }
}

fn turns(turns: u64) -> TranscriptFacts {
    TranscriptFacts {
        turns,
        ..TranscriptFacts::default()
    }
}

#[test]
fn the_title_shows_the_state_and_turns_are_counted() {
    let mut bench = silent();
    assert_eq!(bench.state(), AgentState::Starting);
    bench.titled("✳ work");
    assert_eq!(bench.state(), AgentState::Starting, "it must stand");
    bench.stands();
    assert_eq!(bench.state(), AgentState::Idle);
    bench.titled("⠂ work");
    // Its frames are one sign.
    let epoch = bench.model.session.calm_epoch;
    bench.titled("⠐ work");
    assert_eq!(bench.model.session.calm_epoch, epoch);
    bench.stands();
    assert_eq!(bench.state(), AgentState::Busy);
    bench.titled("✳ work");
    bench.stands();
    bench.is_idle_after(1);
}

#[test]
fn a_new_prompt_in_the_transcript_begins_a_turn_at_once() {
    let mut bench = silent();
    bench.titled("✳ work");
    // Those of a session that is resumed are none.
    bench.facts_read(turns(7));
    bench.stands();
    assert_eq!(bench.state(), AgentState::Idle);
    bench.facts_read(turns(8));
    assert_eq!(bench.state(), AgentState::Busy);
    bench.stands();
    bench.is_idle_after(1);
}

#[test]
fn a_calm_title_over_an_open_call_may_be_a_question() {
    let mut bench = silent();
    bench.titled("⠂ work");
    bench.stands();
    bench.facts_read(TranscriptFacts {
        calls_open: 1,
        ..turns(1)
    });
    bench.titled("✳ work");
    bench.stands();
    assert_eq!(bench.state(), AgentState::Unknown);
    bench.facts_read(turns(1));
    bench.stands();
    assert_eq!(bench.state(), AgentState::Idle);
}

#[test]
fn a_turn_that_the_last_client_of_a_session_left_open_is_over_once_that_is_resumed() {
    let mut bench = silent();
    bench.titled("✳ work");
    bench.prompt_box(PromptBox::Empty);
    // A supervisor that was killed in a call: its client had written more when the transcript was read again.
    bench.facts_read(turns(1));
    bench.facts_read(TranscriptFacts {
        calls_open: 1,
        ..turns(2)
    });
    bench.stands();
    assert_eq!(bench.state(), AgentState::Unknown);
    bench.resumed(NEW);
    assert_eq!(bench.state(), AgentState::Idle);
    bench.stands();
    assert_eq!(bench.state(), AgentState::Idle);
    assert_eq!(bench.model.session.agent.turns, 0);
}

#[test]
fn tests_and_commits_in_the_transcript_count_where_no_hook_reports_them() {
    let ran = || {
        TranscriptFacts {
        ran: vec![Ran {
            command: "cargo test".to_owned(),
            output: "running 2 tests\ntest a ... ok\ntest b ... FAILED\n\ntest result: FAILED. 1 passed; 1 failed; 0 ignored; 0 measured; 0 filtered out\n".to_owned(),
            directory: Some("/p".to_owned()),
            failed: true,
            ..Ran::default()
        }],
        ..turns(1)
    }
    };
    let mut bench = silent();
    bench.facts_read(ran());
    assert_eq!(bench.model.draft.signalled.test_state.failing, ["b"]);
    // A hook that speaks has reported it already.
    let mut bench = Bench::new();
    bench.facts_read(ran());
    assert!(bench.model.draft.signalled.test_state.failing.is_empty());
}

#[test]
fn nothing_is_typed_before_the_prompt_box_is_seen() {
    let mut bench = silent();
    bench.titled("✳ work");
    bench.stands();
    let say = |bench: &mut Bench| bench.control(Control::Say("go on".to_owned()));
    let refused = say(&mut bench);
    assert!(
        matches!(&refused[0], Effect::Answer(_, Reply::Refused { why }) if why.contains("prompt box")),
        "{refused:?}"
    );
    bench.ready();
    assert!(ordered(&say(&mut bench)).contains("typed"));
}

#[test]
fn a_reboot_by_key_waits_for_no_hook() {
    let mut bench = silent();
    bench.titled("✳ work");
    bench.stands();
    assert_eq!(signals(&bench.approve()), [StopSignal::Exit]);
}

/// The control socket was gone, and is there again.
fn socket_made_again() -> Event {
    Event::PlacesChecked(Box::new(PlacesSeen {
        made: MadeAgain {
            socket: true,
            ..MadeAgain::default()
        },
        missing: None,
        project_gone: false,
        socket: "/run/p.sock".into(),
        observe: "/run/p.observe".into(),
    }))
}

#[test]
fn a_prompt_whose_hook_was_lost_is_not_of_another_process() {
    // Its line in the transcript is read before the socket is made again, or after.
    for read_before in [true, false] {
        let mut bench = Bench::new();
        bench.prompted(OLD, "count the herons");
        bench.said_by(1, 20);
        bench.turn_ended(OLD);
        if read_before {
            bench.said_by(2, 20);
        }
        bench.send(socket_made_again());
        // The end of that turn is the first that counts again.
        bench.turn_ended(OLD);
        bench.said_by(2, 45);
        assert_eq!(bench.state(), AgentState::Idle, "{read_before}");
    }
}

#[test]
fn while_hooks_were_lost_the_transcript_proves_what_was_typed() {
    let mut bench = Bench::new();
    bench.facts_read(turns(1));
    bench.shows = false;
    bench.control(Control::Say("hello".to_owned()));
    bench.prompt_box(holds("hello"));
    bench.send(socket_made_again());
    assert!(bench.model.session.submission.is_open());
    bench.facts_read(TranscriptFacts {
        last_prompt: Some("hello".to_owned()),
        ..turns(2)
    });
    assert!(!bench.model.session.submission.is_open());
    assert_eq!(bench.state(), AgentState::Busy);
    // The next hook is believed again.
    bench.turn_ended(OLD);
    assert!(bench.model.session.agent.hooked);
    assert_eq!(bench.state(), AgentState::Idle);
}

#[test]
fn a_prompt_whose_hook_is_lost_begins_its_turn_by_the_transcript() {
    let read = |turns: u64| TranscriptFacts {
        turns,
        whole: true,
        last_prompt: Some("hello".to_owned()),
        ..TranscriptFacts::default()
    };
    let mut bench = Bench::new();
    bench.facts_read(read(1));
    bench.shows = false;
    bench.control(Control::Say("hello".to_owned()));
    bench.prompt_box(holds("hello"));
    bench.titled("⠂ work");
    assert!(bench.model.session.submission.is_open());
    bench.facts_read(read(2));
    assert!(!bench.model.session.submission.is_open());
    assert_eq!(bench.state(), AgentState::Busy);
    bench.titled("✳ work");
    bench.turn_ended(OLD);
    // The hook was not lost, but late.
    bench.prompted(OLD, "hello");
    bench.is_idle_after(1);
}

#[test]
fn the_first_prompt_counts_where_both_its_hooks_are_lost_however_it_was_given() {
    let read = |turns: u64, closings: u64| TranscriptFacts {
        turns,
        closings,
        closing: (closings > 0).then_some(Closing::Answered),
        old_turns: Some(0),
        whole: true,
        said: Some("4".to_owned()),
        ..TranscriptFacts::default()
    };
    // The answer may be read with the prompt, or after it; and so may the title be seen to spin.
    for (typed, spins, at_once) in [
        (true, true, false),
        (true, true, true),
        (true, false, true),
        (false, true, false),
        (false, false, true),
    ] {
        let mut bench = Bench::new();
        bench.titled("✳ work");
        bench.stands();
        if typed {
            bench.press(KeyCode::Enter);
        }
        if spins {
            bench.titled("⠂ work");
        }
        if !at_once {
            bench.facts_read(read(1, 0));
            assert_eq!(bench.state(), AgentState::Busy);
        }
        bench.facts_read(read(1, 1));
        bench.titled("✳ work");
        bench.stands();
        let after = (bench.state(), bench.model.session.agent.turns);
        assert_eq!(after, (AgentState::Idle, 1), "{typed} {spins} {at_once}");
        // They were late only.
        bench.prompted(OLD, "two and two?");
        bench.turn_ended(OLD);
        bench.stands();
        let after = (bench.state(), bench.model.session.agent.turns);
        assert_eq!(after, (AgentState::Idle, 1), "{typed} {spins} {at_once}");
    }
    // The turns of a session that is resumed are none of these.
    let mut bench = Bench::new();
    bench.facts_read(TranscriptFacts {
        old_turns: Some(7),
        ..read(7, 0)
    });
    bench.stands();
    let after = (bench.state(), bench.model.session.agent.turns);
    assert_eq!(after, (AgentState::Idle, 0));
}

#[test]
fn the_calls_of_a_subagent_count_once_whether_hooks_report_them_or_its_transcript() {
    let passed = "running 1 test\ntest a ... ok\n\ntest result: ok. 1 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out\n";
    let shown = || TranscriptFacts {
        ran: vec![Ran {
            call: Some("t1".to_owned()),
            command: "cargo test".to_owned(),
            output: passed.to_owned(),
            directory: Some("/p".to_owned()),
            by_subagent: true,
            ..Ran::default()
        }],
        ..turns(1)
    };
    let hooked = || {
        Event::Agent(AgentEvent::ToolFinished {
            session: session(OLD),
            call: ToolCall {
                id: Some("t1".to_owned()),
                name: "Bash".to_owned(),
                command: Some("cargo test".to_owned()),
                directory: Some("/p".to_owned()),
                by_subagent: true,
                ..ToolCall::default()
            },
            output: ToolOutput {
                stdout: passed.to_owned(),
                ..ToolOutput::default()
            },
        })
    };
    for order in [&[true, false][..], &[false, true], &[true], &[false]] {
        let mut bench = Bench::new();
        for by_transcript in order {
            if *by_transcript {
                bench.facts_read(shown());
            } else {
                bench.send(hooked());
            }
        }
        assert_eq!(bench.model.outside.counters.tests_passed, 1, "{order:?}");
        assert_eq!(bench.model.draft.signalled.test_state.passing, ["a"]);
        assert_eq!(bench.state(), AgentState::Idle, "{order:?}");
    }
}

#[test]
fn a_turn_whose_end_no_hook_could_report_is_over_by_its_title_with_its_last_words() {
    let mut bench = Bench::new();
    bench.prompted(OLD, "work");
    bench.titled("⠂ work");
    bench.facts_read(TranscriptFacts {
        said: Some("it is done".to_owned()),
        ..turns(1)
    });
    bench.titled("✳ work");
    bench.send(socket_made_again());
    bench.stands();
    bench.is_idle_after(1);
    assert_eq!(
        bench.model.session.agent.last_message.as_deref(),
        Some("it is done")
    );
    let said = &bench.model.view.notices.back().expect("a notice").text;
    assert_eq!(
        said,
        "the control socket (/run/p.sock) was removed: made again"
    );
}

/// The client's own record names a session, in the process of this iteration.
fn named(iteration: crate::lineage::IterationId, id: u128, source: StartSource) -> Event {
    let started = Box::new(AgentEvent::SessionStarted {
        session: session(id),
        source,
        model: None,
        transcript_path: Some(format!("/c/{id}.jsonl")),
        prompt_cache: None,
    });
    Event::Read(ReadEvent::SessionNamed(iteration, started))
}

#[test]
fn a_session_whose_beginning_no_hook_reports_is_followed_by_the_clients_own_record() {
    for source in [StartSource::Clear, StartSource::Resume] {
        for begin in [Bench::new, silent as fn() -> Bench] {
            let mut bench = begin();
            let pane = bench.model.session.pane();
            let known = bench.model.session.id;
            let effects = bench.send(named(pane, 77, source.clone()));
            assert_eq!(bench.model.session.id, session(77));
            let followed =
                first!(effects, Effect::FollowTranscript { session, path } => (*session, &**path));
            assert_eq!(followed, Some((session(77), "/c/77.jsonl")), "{known:?}");
            // It is known by now; its hook comes late.
            let effects = bench.send(named(pane, 77, source.clone()));
            assert!(!has!(effects, Effect::FollowTranscript { .. }));
            bench.prompted(77, "go on");
            assert_eq!(bench.state(), AgentState::Busy);
        }
    }
}

#[test]
fn the_record_of_another_process_and_one_in_a_reboot_or_behind_the_agent_view_change_nothing() {
    let unmoved = |bench: &mut Bench, iteration: crate::lineage::IterationId| {
        bench.send(named(iteration, 77, StartSource::Clear));
        assert_eq!(bench.model.session.id, session(OLD));
    };
    let mut bench = Bench::new();
    let pane = bench.model.session.pane();
    unmoved(&mut bench, pane.next());
    bench.titled("1 awaiting input · claude agents");
    unmoved(&mut bench, pane);
    let mut bench = Bench::new();
    bench.approve();
    assert!(bench.model.reboot.attempt.is_some());
    unmoved(&mut bench, pane);
    let mut bench = Bench::new();
    bench.exited(0);
    unmoved(&mut bench, pane);
}
