//! The client's compactions, answered with the handoff.

use crate::{
    app::{
        event::TranscriptFacts,
        reboot::{Banner, banner, compaction},
    },
    config::Unanswered,
    lineage::Cause,
};
use pitstop_agent::bridge::{Decision, Fact, Said, Trigger, TurnEnd};

use super::*;
use crate::app::model::reboot::Kind;

const LEFT: &[(u64, Decision)] = &[(1, Decision::Client)];

impl Bench {
    /// A session with the bridge in force, of which the client has a prompt and is about to compact.
    fn in_compaction(mode: RebootMode, unanswered: Unanswered) -> (Self, Vec<Effect>) {
        let mut config = Config::default();
        config.reboot.mode = mode;
        config.guard.unanswered = unanswered;
        let mut bench = Self::with(config);
        bench.with_bridge(None);
        bench.bridge_says(OLD, Said::Hello);
        bench.used(100_000);
        bench.prompted(OLD, "go on with the parser");
        let effects = bench.compacts(1, Trigger::Auto);
        (bench, effects)
    }

    fn compacts(&mut self, number: u64, trigger: Trigger) -> Vec<Effect> {
        self.bridge_says(OLD, Said::Compacting(question(number), trigger))
    }

    /// The client has put the handoff in force, as hook and transcript say.
    fn in_force(&mut self) {
        let text = self.model.draft.handoff.current().text.clone();
        self.send(Event::Agent(AgentEvent::Compacted {
            session: session(OLD),
        }));
        self.transcript_with(text.lines().next());
    }

    fn transcript_with(&mut self, handoff: Option<&str>) {
        self.facts_read(TranscriptFacts {
            handoff: handoff.map(str::to_owned),
            last_prompt: Some("go on with the parser".to_owned()),
            whole: true,
            ..Default::default()
        });
    }

    /// The time of the compaction's timer passes.
    fn waits_in_vain(&mut self) -> Vec<Effect> {
        let mut effects = Vec::new();
        for _ in 0..200 {
            let Some(epoch) = self.model.reboot.held().map(|held| held.epoch) else {
                break;
            };
            self.wait(Duration::from_secs(1));
            effects.extend(self.send(Event::TimerFired(TimerId::Compaction(epoch))));
        }
        effects
    }

    fn notified(&self, words: &str) -> bool {
        let mut notices = self.model.view.notices.iter();
        notices.any(|notice| notice.text.contains(words))
    }
}

#[test]
fn what_was_reviewed_takes_the_place_of_the_client_s_summary() {
    let (mut bench, effects) = Bench::in_compaction(RebootMode::Ask, Unanswered::Client);
    assert_eq!(decisions(&effects), []);
    let called = has!(effects, Effect::Call(need) if need.what.contains("compact"));
    assert!(called, "{effects:?}");
    assert!(matches!(banner(&bench.model), Some(Banner::Holds(_))));
    assert_eq!(
        decisions(&bench.compacts(1, Trigger::Auto)),
        [],
        "asked again"
    );

    bench.review();
    let shown = bench.model.draft.handoff.current().text.clone();
    assert!(shown.contains("go on with the parser"));
    let effects = bench.press(KeyCode::Enter);
    let text = shown.clone();
    assert_eq!(decisions(&effects), [(1, Decision::Replace { text })]);
    assert_eq!(signals(&effects), [], "the agent is not ended");
    assert_eq!(decisions(&bench.compacts(1, Trigger::Auto)), []);
    assert_eq!(
        bench.model.session.iteration().get(),
        1,
        "no sign of it yet"
    );

    bench.in_force();
    assert_eq!(bench.step(), None);
    bench.is_done_without(&[Step::Ending, Step::Starting, Step::Warming]);
    let model = &bench.model;
    assert_eq!(model.session.iteration().get(), 2);
    assert_eq!(
        bench.state(),
        AgentState::Busy,
        "the prompt is answered now"
    );
    assert_eq!(model.session.compactions.count(), 0, "it is our own");
    let record = model.lineage.iterations()[1].reboot.as_ref().unwrap();
    assert_eq!(
        (record.cause, record.way, record.verified),
        (Cause::Compaction, Way::InPlace, true)
    );
}

#[test]
fn what_it_writes_into_the_transcript_is_of_no_other_process() {
    let (mut bench, _) = Bench::in_compaction(RebootMode::Ask, Unanswered::Client);
    bench.approve();
    bench.in_force();
    bench.turn_ended(OLD);
    // The handoff, the prompt once more, and the answer, read once all is over.
    for (turns, output) in [(1, 10), (3, 20)] {
        bench.said_by(turns, output);
    }
    assert_eq!(bench.state(), AgentState::Idle);
}

#[test]
fn the_proof_is_this_handoff_and_no_other() {
    let (mut bench, _) = Bench::in_compaction(RebootMode::Ask, Unanswered::Client);
    bench.approve();
    bench.send(Event::Agent(AgentEvent::Compacted {
        session: session(OLD),
    }));
    for line in [
        None,
        Some("pitstop handoff · other · iteration 1 · 0a1b2c3d"),
    ] {
        bench.transcript_with(line);
        assert_eq!(bench.step(), Some(Step::Verifying), "{line:?}");
    }
    bench.in_force();
    assert_eq!(bench.step(), None);
}

#[test]
fn auto_answers_at_once() {
    let (mut bench, effects) = Bench::in_compaction(RebootMode::Auto, Unanswered::Client);
    assert_eq!(decisions(&effects), [], "the facts are read first");
    let decided = decisions(&bench.git());
    assert!(
        matches!(&decided[..], [(1, Decision::Replace { text })] if text.contains("go on with the parser")),
        "{decided:?}"
    );
    assert!(!bench.notified("review"));
}

#[test]
fn by_the_command_it_is_called_so_in_the_history() {
    let (mut bench, _) = Bench::in_compaction(RebootMode::Auto, Unanswered::Client);
    bench.git();
    bench.in_force();
    bench.compacts(2, Trigger::Manual);
    bench.git();
    bench.in_force();
    let iterations = bench.model.lineage.iterations();
    let causes = iterations
        .iter()
        .map(|one| one.reboot.as_ref().map(|one| one.cause));
    let expected = [None, Some(Cause::Compaction), Some(Cause::CompactCommand)];
    assert_eq!(causes.collect::<Vec<_>>(), expected);
}

#[test]
fn without_an_answer_in_time_the_choice_is_taken() {
    for unanswered in [Unanswered::Client, Unanswered::Handoff] {
        let (mut bench, _) = Bench::in_compaction(RebootMode::Ask, unanswered);
        bench.git();
        let before = bench.since_start;
        let decided = decisions(&bench.waits_in_vain());
        let waited = bench.since_start.saturating_sub(before);
        match (unanswered, &decided[..]) {
            (Unanswered::Client, LEFT) => {
                assert!(bench.notified("no answer in time"));
                assert_eq!(bench.step(), None);
                assert_eq!(bench.journaled.last(), Some(&Step::Failed));
                assert!(waited.as_secs().abs_diff(120) <= 1, "{waited:?}");
            }
            (Unanswered::Handoff, [(1, Decision::Replace { .. })]) => {
                bench.in_force();
                assert_eq!(bench.model.session.iteration().get(), 2);
            }
            _ => panic!("{unanswered:?}: {decided:?}"),
        }
    }
}

#[test]
fn a_person_says_no_and_the_client_goes_its_own_way() {
    for key in [KeyCode::Esc, KeyCode::Char('d')] {
        let (mut bench, _) = Bench::in_compaction(RebootMode::Ask, Unanswered::Handoff);
        bench.git();
        bench.press(KeyCode::F(5));
        assert_eq!(decisions(&bench.press(key)), LEFT, "{key:?}");
        assert_eq!(bench.step(), None);
        assert!(!matches!(banner(&bench.model), Some(Banner::Holds(_))));
    }
}

#[test]
fn what_is_not_to_be_answered_is_left_to_the_client_at_once() {
    type Case = (&'static str, fn(&mut Bench));
    let cases: [Case; 5] = [
        ("held back", |bench| {
            bench.model.config.guard.replace_compaction = true;
        }),
        ("manual", |bench| {
            bench.model.reboot.mode = RebootMode::Manual;
        }),
        ("paused", |bench| bench.model.reboot.paused = true),
        ("quitting", |bench| {
            bench.send(Event::ShutdownAsked { signal: "SIGTERM" });
        }),
        ("a reboot goes on", |bench| {
            bench.review();
            bench.press(KeyCode::Char('w'));
            bench.press(KeyCode::Enter);
            assert_eq!(bench.step(), Some(Step::Delivering));
        }),
    ];
    for (name, prepare) in cases {
        let mut bench = Bench::bridged();
        bench.used(100_000);
        prepare(&mut bench);
        assert_eq!(decisions(&bench.compacts(1, Trigger::Auto)), LEFT, "{name}");
    }
    let mut bench = Bench::bridged();
    for trigger in [Trigger::Plugin, Trigger::Other] {
        assert_eq!(decisions(&bench.compacts(1, trigger)), LEFT, "{trigger:?}");
    }
    let other = bench.bridge_says(NEW, Said::Compacting(question(1), Trigger::Auto));
    assert_eq!(decisions(&other), LEFT, "another session's");
    assert_eq!(bench.step(), None);
}

#[test]
fn a_reboot_that_waits_already_becomes_the_answer() {
    let mut bench = Bench::bridged();
    bench.used(165_000);
    assert!(bench.model.reboot.attempt.is_some(), "it is due");
    bench.review();
    let effects = bench.compacts(1, Trigger::Auto);
    assert_eq!(decisions(&effects), []);
    // Only in place answers it.
    bench.press(KeyCode::Char('t'));
    bench.press(KeyCode::Char('w'));
    let effects = bench.press(KeyCode::Enter);
    assert!(matches!(
        &decisions(&effects)[..],
        [(1, Decision::Replace { .. })]
    ));
}

#[test]
fn a_reboot_that_is_approved_already_is_the_answer_at_once() {
    let mut bench = Bench::bridged();
    bench.prompted(OLD, "work");
    bench.used(155_000);
    bench.approve();
    assert_eq!(bench.step(), Some(Step::Waiting), "the turn runs");
    let decided = decisions(&bench.compacts(1, Trigger::Auto));
    assert!(
        matches!(&decided[..], [(1, Decision::Replace { .. })]),
        "{decided:?}"
    );
}

#[test]
fn an_approved_trim_stays_one_when_the_client_compacts_meanwhile() {
    let (auto, typed) = (Trigger::Auto, Trigger::Manual);
    for (trigger, used, skipped) in [
        (auto, 156_000, true),
        (auto, 173_000, true),
        (auto, 175_000, false),
        (typed, 156_000, false),
    ] {
        let mut bench = Bench::bridged();
        bench.prompted(OLD, "work");
        bench.used(155_000);
        bench.offered();
        bench.press(KeyCode::Char('t'));
        bench.press(KeyCode::Enter);
        assert_eq!(bench.step(), Some(Step::Waiting), "the turn runs");
        bench.used(used);
        for number in 1..3 {
            let decided = decisions(&bench.compacts(number, trigger)).remove(0).1;
            assert_eq!(matches!(decided, Decision::Skip { .. }), skipped);
            assert!(skipped || decided == Decision::Client, "{decided:?}");
        }
        let way = bench.model.reboot.attempt.as_ref().map(|one| one.kind);
        assert_eq!(way, Some(Kind::Trim), "{trigger:?} {used}");
    }
}

#[test]
fn an_agent_that_ends_or_leaves_the_session_waits_no_more() {
    let ends: [fn(&mut Bench) -> Vec<Effect>; 2] =
        [|bench| bench.exited(1), |bench| bench.resumed(NEW)];
    for end in ends {
        for review in [false, true] {
            let (mut bench, _) = Bench::in_compaction(RebootMode::Ask, Unanswered::Handoff);
            bench.git();
            if review {
                bench.press(KeyCode::F(5));
            }
            assert_eq!(decisions(&end(&mut bench)), LEFT);
            assert!(!compaction::is_held(&bench.model));
            assert_eq!(decisions(&bench.waits_in_vain()), []);
        }
    }
}

#[test]
fn one_that_is_stopped_in_the_client_has_changed_nothing() {
    let stopped = Said::Fact(Fact::TurnEnded {
        turn: "1".to_owned(),
        reason: TurnEnd::Aborted,
    });
    let (mut bench, _) = Bench::in_compaction(RebootMode::Ask, Unanswered::Client);
    assert_eq!(decisions(&bench.bridge_says(OLD, stopped.clone())), LEFT);
    assert_eq!(bench.step(), None);

    for by_turn in [true, false] {
        let (mut bench, _) = Bench::in_compaction(RebootMode::Ask, Unanswered::Client);
        let effects = bench.approve();
        if by_turn {
            bench.bridge_says(OLD, stopped.clone());
        } else {
            let timer = first!(effects, Effect::SetTimer(id @ TimerId::Verify(_), _) => *id);
            bench.wait(Duration::from_secs(20));
            bench.send(Event::TimerFired(timer.expect("its sign has its time")));
        }
        assert_eq!(bench.step(), None);
        assert!(bench.notified("its compaction was stopped"));
        assert_eq!(bench.model.session.iteration().get(), 1);
    }
}

#[test]
fn a_typed_compact_that_is_stopped_in_the_client_waits_for_nobody() {
    let mut bench = Bench::bridged();
    bench.used(100_000);
    bench.compacts(1, Trigger::Manual);
    bench.git();
    bench.titled("⠂ work");
    assert!(compaction::is_held(&bench.model));
    // Esc, at once: the client is calm again, and says nothing of it.
    bench.titled("✳ work");
    assert_eq!(decisions(&bench.stands()), LEFT);
    assert!(!compaction::is_held(&bench.model));
    assert_eq!((bench.step(), banner(&bench.model)), (None, None));
    assert!(bench.notified("was stopped in the client"));
}

#[test]
fn the_end_of_the_turn_before_it_does_not_stop_a_compact_that_was_queued() {
    let mut bench = Bench::bridged();
    bench.prompted(OLD, "work");
    bench.used(100_000);
    bench.compacts(1, Trigger::Manual);
    assert_eq!(decisions(&bench.turn_ended(OLD)), []);
    bench.titled("✳ work");
    assert_eq!(decisions(&bench.stands()), []);
    assert!(compaction::is_held(&bench.model));
}

#[test]
fn a_compaction_that_the_client_begins_anew_takes_the_place_of_the_one_before() {
    let mut bench = Bench::bridged();
    bench.used(100_000);
    bench.compacts(1, Trigger::Manual);
    bench.git();
    assert_eq!(decisions(&bench.compacts(2, Trigger::Manual)), LEFT);
    let decided = decisions(&bench.approve());
    assert!(
        matches!(&decided[..], [(2, Decision::Replace { .. })]),
        "{decided:?}"
    );
}
