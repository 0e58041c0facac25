//! The history: earlier runs behind this one, and the details that the store is asked for.

use crate::{
    app::history::{self, EarlierRun},
    lineage::{Cause, IterationId, Lineage, RunId, journal::JournalEntry, past::PastSession},
};

use super::*;

fn earlier() -> EarlierRun {
    let wall = Utc.timestamp_opt(1_700_000_000, 0).unwrap();
    let mut lineage = Lineage::new(RunId::new(wall, [9, 9, 9]));
    for number in [7, 8] {
        lineage.open(Some(session(number)), None, wall).unwrap();
        lineage.close(wall, EndReason::Shutdown).unwrap();
    }
    EarlierRun {
        run: lineage.run().clone(),
        iterations: lineage.iterations().to_vec(),
    }
}

fn sessions(bench: &Bench) -> Vec<SessionId> {
    let listed = history::listed(&bench.model);
    listed.filter_map(|(_, one)| one.session_id).collect()
}

fn looked_for(effects: &[Effect]) -> Option<(RunId, IterationId)> {
    effects.iter().find_map(|effect| match effect {
        Effect::ReadPast(run, iteration) => Some((run.clone(), *iteration)),
        _ => None,
    })
}

#[test]
fn earlier_runs_stand_behind_this_one_and_are_read_when_they_are_opened() {
    let mut bench = Bench::new();
    let before = earlier();
    bench.tell(Event::Store(StoreEvent::EarlierRuns(vec![before.clone()])));
    assert_eq!(sessions(&bench), [session(OLD), session(8), session(7)]);

    bench.press(KeyCode::F(6));
    for _ in 0..9 {
        bench.press(KeyCode::Down);
    }
    assert_eq!(bench.model.history.selected, 2);
    let effects = bench.press(KeyCode::Enter);
    let first = (before.run.clone(), IterationId::FIRST);
    assert_eq!(looked_for(&effects), Some(first.clone()));
    assert_eq!(history::past_of_selected(&bench.model), None);

    // Another is selected before the answer has come: that answer is late.
    let effects = bench.press(KeyCode::Up);
    let (run, iteration) = looked_for(&effects).expect("the next one");
    assert_eq!(iteration, IterationId::FIRST.next());
    let found = |number: u128| {
        let iteration = before.iterations[number as usize].clone();
        Ok(Box::new(PastSession {
            run: before.run.clone(),
            task: None,
            iteration,
            got: None,
            gave: None,
            state: None,
            checkpoint: None,
        }))
    };
    for (run, iteration, found) in [(first.0, first.1, found(0)), (run, iteration, found(1))] {
        bench.tell(Event::Store(StoreEvent::PastRead {
            run,
            iteration,
            found,
        }));
    }
    let shown = history::past_of_selected(&bench.model).expect("it is there");
    let shown = shown.as_ref().expect("it was found");
    assert_eq!(shown.iteration.session_id, Some(session(8)));

    // A page down and another iteration: from its top.
    bench.press(KeyCode::PageDown);
    assert!(bench.model.history.scroll > 0);
    bench.press(KeyCode::Down);
    assert_eq!(bench.model.history.scroll, 0);
    // The recording of an earlier run is not beside those of this one.
    let effects = bench.press(KeyCode::Char('p'));
    assert!(
        !effects
            .iter()
            .any(|effect| matches!(effect, Effect::ReadRecording(_)))
    );
}

#[test]
fn a_session_that_has_ended_is_reported_by_what_is_kept_of_it() {
    let before = earlier();
    let mut past = PastSession {
        run: before.run,
        task: Some("build it".to_owned()),
        iteration: before.iterations[0].clone(),
        got: None,
        gave: None,
        state: Some(
            serde_json::json!({"pending_items": ["go on"], "current_objective": "ship it"}),
        ),
        checkpoint: None,
    };
    let report = crate::app::report::past_handoff(&past);
    assert_eq!((report.kind.as_str(), report.text.as_str()), ("none", ""));
    assert_eq!(report.task_title.as_deref(), Some("build it"));
    assert_eq!(report.warnings.len(), 1);
    past.iteration.summary = Some("did it".to_owned());
    let report = crate::app::report::past_handoff(&past);
    assert_eq!(
        (report.kind.as_str(), report.text.as_str()),
        ("summary", "did it")
    );
    let entry = JournalEntry {
        reboot_id: uuid::Uuid::from_u128(1),
        run: past.run.clone(),
        iteration: IterationId::FIRST,
        step: Step::Done,
        way: crate::lineage::Way::Fresh,
        old_session: past.iteration.session_id,
        new_session: None,
        nonce: String::new(),
        handoff: "# Work".to_owned(),
        trim: None,
        old_agent: None,
        new_agent: None,
        cause: Cause::Key,
        at: Utc.timestamp_opt(1_700_000_060, 0).unwrap(),
        outcome: None,
    };
    past.got = Some(entry.clone());
    assert_eq!(crate::app::report::past_handoff(&past).kind, "received");
    past.gave = Some(entry);
    let report = crate::app::report::past_handoff(&past);
    assert_eq!(
        (report.kind.as_str(), report.text.as_str()),
        ("given", "# Work")
    );
    assert_eq!(report.remaining_items, ["go on"]);
    assert_eq!(report.task_title.as_deref(), Some("ship it"));
    assert_eq!(report.bytes, 6);
    assert!(report.warnings.is_empty() && report.generated_at.is_some());
}
