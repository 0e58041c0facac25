//! Compactions of the client's own: counted, or replaced by a reboot.

use super::*;

pub(super) fn compacting(automatic: bool) -> Event {
    let session = session(OLD);
    Event::Agent(AgentEvent::Compacting {
        session,
        automatic,
        ordered: false,
    })
}

/// The mode's answer to a client that is about to compact, with compaction replaced or not.
fn announced(mode: RebootMode, replace: bool, automatic: bool) -> (Bench, bool) {
    let mut config = Config::default();
    config.guard.replace_compaction = replace;
    config.reboot.mode = mode;
    let mut bench = Bench::with(config);
    bench.used(100_000);
    bench.prompted(OLD, "work");
    let Event::Agent(event) = compacting(automatic) else {
        unreachable!()
    };
    let refused = crate::app::compaction::refusal(&bench.model, &event).is_some();
    bench.send(compacting(automatic));
    (bench, refused)
}

#[test]
fn only_automatic_compaction_is_replaced_and_only_where_the_user_wants_it() {
    for mode in [RebootMode::Manual, RebootMode::Ask, RebootMode::Auto] {
        for (replace, automatic) in [(false, true), (true, false), (false, false)] {
            let (bench, refused) = announced(mode, replace, automatic);
            assert!(!refused, "{mode:?}");
            assert_eq!(bench.step(), None);
            let mut shown = bench.model.view.notices.iter();
            assert!(
                shown.all(|notice| !notice.text.contains("held back")),
                "{mode:?}"
            );
        }
        let (bench, refused) = announced(mode, true, true);
        assert!(refused, "{mode:?}");
        match mode {
            RebootMode::Manual => {
                let shown = &bench.model.view.notices.back().expect("a notice").text;
                assert_eq!(
                    *shown,
                    "the client wanted to compact and was held back: F5 reboots it"
                );
                assert_eq!(bench.step(), None);
            }
            // It waits for the end of the turn.
            _ => assert_eq!(bench.step(), Some(Step::Armed)),
        }
    }
}

#[test]
fn a_client_that_asks_again_opens_no_second_review_and_respects_a_no() {
    let (mut bench, _) = announced(RebootMode::Ask, true, true);
    bench.send(compacting(true));
    bench.turn_ended(OLD);
    bench.git();
    assert_eq!(bench.step(), Some(Step::Review));
    bench.press(KeyCode::F(5));
    bench.press(KeyCode::Esc);
    bench.prompted(OLD, "more");
    bench.send(compacting(true));
    assert_eq!(bench.step(), None, "no is no");
    let event = AgentEvent::Compacting {
        session: session(OLD),
        automatic: true,
        ordered: false,
    };
    assert!(crate::app::compaction::refusal(&bench.model, &event).is_some());
    let event = AgentEvent::Compacting {
        session: session(NEW),
        automatic: true,
        ordered: false,
    };
    assert_eq!(crate::app::compaction::refusal(&bench.model, &event), None);
}

#[test]
fn a_compaction_is_counted_in_the_record_of_its_iteration() {
    let mut bench = Bench::new();
    let facts = |compactions, used: Option<u64>| crate::app::event::TranscriptFacts {
        compactions,
        used: used.map(Tokens),
        whole: true,
        ..Default::default()
    };
    bench.facts_read(facts(0, Some(100_000)));
    bench.turn_ended(OLD);
    bench.facts_read(facts(0, Some(140_000)));
    bench.prompted(OLD, "more");
    bench.facts_read(facts(1, None));
    bench.session_starts(OLD, StartSource::Compact);
    let session = session(OLD);
    bench.send(Event::Agent(AgentEvent::Compacted { session }));
    bench.facts_read(facts(1, Some(30_000)));
    bench.turn_ended(OLD);
    bench.facts_read(facts(1, Some(34_000)));
    assert_eq!(bench.model.lineage.iterations()[0].compactions, 1);
    let notices = bench.model.view.notices.iter();
    let reported = notices.filter(|notice| notice.text.contains("compacted its context"));
    assert_eq!(reported.count(), 1);
    bench.exited(0);
    bench.press(KeyCode::Enter);
    bench.facts_read(facts(1, Some(34_000)));
    let counts: Vec<u32> = bench
        .model
        .lineage
        .iterations()
        .iter()
        .map(|one| one.compactions)
        .collect();
    assert_eq!(
        counts,
        [1, 0],
        "the resumed session brings its boundaries along"
    );
}

#[test]
fn a_figure_that_falls_is_no_compaction_where_hooks_or_a_transcript_would_report_one() {
    let falls = |bench: &mut Bench| {
        bench.used(150_000);
        bench.used(40_000);
        bench.model.session.compactions.count()
    };
    let mut hooked = Bench::new();
    assert!(hooked.model.session.agent.hooked);
    assert_eq!(falls(&mut hooked), 0, "it was /rewind");

    let mut silent = Bench::new();
    silent.model.session.agent.hooked = false;
    assert_eq!(falls(&mut silent), 1);

    let mut followed = Bench::new();
    followed.model.session.agent.hooked = false;
    followed.model.session.transcript.whole = true;
    assert_eq!(falls(&mut followed), 0);
}

#[test]
fn everything_is_saved_before_a_compaction_that_is_not_held_back() {
    for automatic in [true, false] {
        let mut bench = Bench::new();
        bench.used(100_000);
        let effects = bench.send(compacting(automatic));
        let tags: Vec<_> = saved(&effects)
            .into_iter()
            .flat_map(|one| one.tags)
            .collect();
        assert!(
            tags.iter().any(|tag| tag == "before-compaction"),
            "{tags:?}"
        );
    }
    let mut config = Config::default();
    config.guard.replace_compaction = true;
    let mut bench = Bench::with(config);
    bench.used(100_000);
    let effects = bench.send(compacting(true));
    let is_saved = has!(effects, Effect::SaveCheckpoint(_));
    assert!(!is_saved, "it asks again before each call");
}
