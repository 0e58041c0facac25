//! Checkpoints: when one is saved, what it holds, who is answered, and how work is taken up from one.

use crate::{
    api::wire::CheckpointBody,
    app::event::Kept,
    lineage::{Cause, checkpoint::Checkpoint},
};

use super::*;

fn saved(effects: &[Effect]) -> Vec<&Checkpoint> {
    effects
        .iter()
        .filter_map(|effect| match effect {
            Effect::SaveCheckpoint(checkpoint) => Some(&**checkpoint),
            _ => None,
        })
        .collect()
}

#[test]
fn everything_is_saved_once_at_each_line_from_warn_on() {
    let mut bench = Bench::new();
    assert_eq!(saved(&bench.used(100_000)), Vec::<&Checkpoint>::new());
    let effects = bench.used(127_000);
    let tags: Vec<_> = saved(&effects).iter().map(|one| one.tags.clone()).collect();
    assert_eq!(tags, [["auto-save", "tokens-127000"]]);
    assert!(saved(&bench.used(128_000)).is_empty());
    let effects = bench.used(154_000);
    assert_eq!(saved(&effects)[0].tags, ["auto-save", "tokens-154000"]);
}

#[test]
fn everything_is_saved_every_so_many_turns() {
    let mut bench = Bench::new();
    let mut turns = Vec::new();
    for turn in 1..=11 {
        bench.prompted(OLD, "work");
        if let [one] = saved(&bench.turn_ended(OLD))[..] {
            assert_eq!(one.tags, ["auto-save".to_owned(), format!("turn-{turn}")]);
            turns.push(turn);
        }
    }
    assert_eq!(turns, [5, 10]);
    bench.model.config.context.checkpoint_interval = None;
    for _ in 0..10 {
        assert!(saved(&bench.turn_ended(OLD)).is_empty());
    }
}

#[test]
fn a_reboot_saves_what_it_sends() {
    let mut bench = Bench::new();
    bench.press(KeyCode::F(5));
    bench.git();
    let shown = bench.model.handoff.current().text.clone();
    let effects = bench.press(KeyCode::Enter);
    let [one] = saved(&effects)[..] else {
        panic!("{effects:?}");
    };
    assert_eq!(
        (one.context.as_str(), &one.tags[..]),
        (shown.as_str(), &["reboot".to_owned()][..])
    );
}

#[test]
fn an_ordered_checkpoint_is_answered_once_it_is_kept_and_has_the_words_of_the_order() {
    let mut bench = Bench::new();
    let mut order = |number: u64, body: CheckpointBody| {
        let effects = bench.tell(Event::ControlAsked {
            call: CallId(number),
            control: Control::Save(body),
        });
        assert!(
            !effects
                .iter()
                .any(|effect| matches!(effect, Effect::Answer(..)))
        );
        saved(&effects)[0].clone()
    };
    let plain = order(1, CheckpointBody::EMPTY);
    let worded = order(
        2,
        CheckpointBody {
            task: Some("ship it".to_owned()),
            next_steps: vec!["test".to_owned()],
            tags: vec!["v1".to_owned(), "manual".to_owned()],
        },
    );
    assert_ne!(plain.id, worded.id);
    assert_eq!(
        (plain.task.as_str(), &plain.next_steps[..]),
        ("", &["next".to_owned()][..])
    );
    assert_eq!(worded.task, "ship it");
    assert_eq!(worded.next_steps, ["test", "next"]);
    assert_eq!(worded.tags, ["manual", "v1"]);
    assert!(worded.context.contains("ship it") && worded.context.contains("test"));
    // The words are of that checkpoint alone.
    assert!(!bench.model.handoff.current().text.contains("ship it"));

    let mut kept = |id, kept| {
        let effects = bench.tell(Event::Store(StoreEvent::CheckpointKept { id, kept }));
        match effects.into_iter().next() {
            Some(Effect::Answer(call, reply)) => Some((call, reply)),
            _ => None,
        }
    };
    let Some((CallId(2), Reply::Checkpoint(reply))) = kept(worded.id, Kept::Durable) else {
        panic!("no answer");
    };
    assert_eq!(
        (reply.status.as_str(), reply.checkpoint_id),
        ("saved", worded.id.to_string())
    );
    assert_eq!(kept(worded.id, Kept::Durable), None, "answered once");
    let waiting = kept(plain.id, Kept::Waiting("locked".to_owned()));
    let Some((CallId(1), Reply::Checkpoint(reply))) = waiting else {
        panic!("no answer");
    };
    assert_eq!(
        (reply.status.as_str(), reply.message.as_str()),
        ("queued", "locked")
    );

    let effects = bench.tell(Event::ControlAsked {
        call: CallId(3),
        control: Control::Save(CheckpointBody::EMPTY),
    });
    let id = saved(&effects)[0].id;
    let lost = Kept::Lost("no".to_owned());
    let effects = bench.tell(Event::Store(StoreEvent::CheckpointKept { id, kept: lost }));
    let why = "no".to_owned();
    assert_eq!(
        effects[0],
        Effect::Answer(CallId(3), Reply::Refused { why })
    );
}

#[test]
fn the_work_of_a_checkpoint_is_taken_up_in_a_fresh_session_and_proven() {
    let mut old = Bench::new();
    old.model
        .told
        .record_decision("SQLite", "one file", old.at().wall);
    let effects = old.tell(Event::ControlAsked {
        call: CallId(1),
        control: Control::Save(CheckpointBody::EMPTY),
    });
    let checkpoint = saved(&effects)[0].clone();

    let mut bench = Bench::bare(Config::default());
    bench.model.lots = lots(9);
    let effects = crate::app::checkpoint::restore(&mut bench.model, &checkpoint);
    let effects = bench.obey(effects);
    let start = effects.iter().find_map(|effect| match effect {
        Effect::Start(start) => Some(start.clone()),
        _ => None,
    });
    let start = start.expect("the agent is started");
    let prompt = start.prompt.expect("with the handoff");
    assert!(!start.resume);
    let body = |text: &str| text.split_once('\n').unwrap().1.to_owned();
    assert_eq!(body(&prompt), body(&checkpoint.context));
    assert_ne!(prompt, checkpoint.context, "under a marker of its own");

    bench.spawned(NEW);
    bench.started(OLD);
    assert_eq!(bench.step(), Some(Step::Verifying));
    bench.prompted(OLD, &prompt);
    assert_eq!(bench.step(), None);
    let first = &bench.model.lineage.iterations()[0];
    assert_eq!(first.cause, Some(Cause::Restore));
    assert!(first.reboot.as_ref().unwrap().verified);
    // What was known then is told the next time, too.
    assert_eq!(bench.model.told.decisions.len(), 1);
}

#[test]
fn a_store_in_trouble_has_a_sign_until_it_is_well() {
    let mut bench = Bench::new();
    let trouble =
        |why: Option<&str>| Event::Store(StoreEvent::TroubleChanged(why.map(str::to_owned)));
    bench.tell(trouble(Some("locked")));
    bench.wait(Duration::from_secs(60));
    bench.tell(Event::TimerFired(TimerId::Notice));
    assert!(bench.model.notices.is_empty());
    assert_eq!(bench.model.store_trouble.as_deref(), Some("locked"));
    bench.tell(trouble(None));
    assert_eq!(bench.model.store_trouble, None);
    assert!(!bench.model.notices.back().unwrap().bad);
}
