//! Checkpoints: when one is saved, what it holds, who is answered, and how work is taken up from one.

use crate::{
    api::wire::CheckpointBody,
    app::{
        event::{Kept, StoreAway},
        model::{Editor, NotesPanel},
    },
    lineage::{Cause, checkpoint::Checkpoint},
};
use pitstop_handoff::{
    preserved::{Item, Origin},
    scratchpad::{TEMPLATE, versions::Versions},
};
use pitstop_transcript::todo::Status;

use super::*;

#[test]
fn everything_is_saved_once_at_each_line_from_warn_on() {
    let mut bench = Bench::new();
    assert_eq!(saved(&bench.used(100_000)), []);
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
    let (mut turns, mut ids) = (Vec::new(), Vec::new());
    for turn in 1..=11 {
        bench.prompted(OLD, "work");
        if let [one] = &saved(&bench.turn_ended(OLD))[..] {
            assert_eq!(one.tags, ["auto-save".to_owned(), format!("turn-{turn}")]);
            assert_eq!(one.next_steps, ["next"]);
            turns.push(turn);
            ids.push(one.id);
        }
    }
    assert_eq!(turns, [5, 10]);
    assert_eq!(ids[0], ids[1], "the later one takes the place");
    bench.model.config.context.checkpoint_interval = None;
    for _ in 0..10 {
        assert!(saved(&bench.turn_ended(OLD)).is_empty());
    }
}

#[test]
fn a_reboot_saves_what_it_sends() {
    let mut bench = Bench::new();
    bench.review();
    let shown = bench.model.draft.handoff.current().text.clone();
    let effects = bench.press(KeyCode::Enter);
    let [one] = &saved(&effects)[..] else {
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
        let effects = bench.send(Event::ControlAsked {
            call: CallId(number),
            control: Control::Save(body),
        });
        assert!(!has!(effects, Effect::Answer(..)));
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
    assert!(!bench.model.draft.handoff.current().text.contains("ship it"));

    let mut kept = |id, kept| {
        let effects = bench.send(Event::Store(StoreEvent::CheckpointKept { id, kept }));
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

    let effects = bench.send(Event::ControlAsked {
        call: CallId(3),
        control: Control::Save(CheckpointBody::EMPTY),
    });
    let id = saved(&effects)[0].id;
    let lost = Kept::Lost("no".to_owned());
    let effects = bench.send(Event::Store(StoreEvent::CheckpointKept { id, kept: lost }));
    let why = "no".to_owned();
    assert_eq!(
        effects[0],
        Effect::Answer(CallId(3), Reply::Refused { why })
    );
}

#[test]
fn the_work_of_a_checkpoint_is_taken_up_in_a_fresh_session_and_proven() {
    let mut old = Bench::new();
    old.model.draft.signalled.record_decision(
        "SQLite",
        "one file",
        Some(old.at().wall),
        Origin::Human,
    );
    let effects = old.control(Control::Save(CheckpointBody::EMPTY));
    let checkpoint = saved(&effects)[0].clone();

    let mut bench = Bench::bare(Config::default());
    bench.model.reboot.new_ids = new_ids(9);
    crate::app::restore::begin(&mut bench.model, &checkpoint, &GitState::NoRepository);
    let effects = bench.model.take_effects();
    let effects = bench.settle(effects);
    let start = starts(&effects).pop().expect("the agent is started");
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
    // What was known then is said the next time, too.
    assert_eq!(bench.model.draft.signalled.decisions.len(), 1);
}

/// It may have been saved by a command, without a supervisor.
#[test]
fn a_checkpoint_without_a_session_leaves_nothing_to_undo() {
    for (saved_in, undone) in [(None, false), (Some(session(NEW)), true)] {
        let (_, mut checkpoint) = worked();
        checkpoint.session = saved_in;
        let mut bench = restored(&checkpoint, "");
        let result =
            crate::app::reboot::act(&mut bench.model, crate::app::reboot::RebootAction::Undo);
        let refused = matches!(result, Err(crate::app::refusal::Refusal::NothingToUndo));
        assert_eq!(refused, !undone);
    }
}

/// A supervisor in another directory, with this scratchpad there, that goes on from a checkpoint in session [`OLD`].
fn restored(checkpoint: &Checkpoint, notes: &str) -> Bench {
    let mut bench = Bench::bare(Config::default());
    bench.model.config.summary.generate_summaries = false;
    bench.model.draft.notes = NotesPanel::new(notes.to_owned());
    bench.model.reboot.new_ids = new_ids(9);
    crate::app::restore::begin(&mut bench.model, checkpoint, &GitState::NoRepository);
    let effects = bench.model.take_effects();
    let start = starts(&bench.settle(effects)).remove(0);
    bench.spawned(NEW);
    bench.send(Event::Read(ReadEvent::Versions(Versions::default())));
    bench.started(OLD);
    bench.ready();
    if let Some(prompt) = start.prompt {
        bench.prompted(OLD, &prompt);
        bench.turn_ended(OLD);
    }
    bench
}

/// A session with something from every source, saved.
fn worked() -> (Bench, Checkpoint) {
    let mut bench = Bench::new();
    bench.prompted(OLD, "build the lighthouse");
    bench.plans(list(
        "t1",
        &[("dig", Status::Completed), ("lay stones", Status::Pending)],
    ));
    bench.said(OLD, "DECISION: granite | it lasts\nISSUE[high]: the crane leaks\nSTATE height=40 m\nTODO: order glass\nDONE: survey\n\
         SCRATCHPAD:\n## Current Understanding\nthe rock is sound\n- [x] clear the site\n- [ ] paint it\nSIGNAL:",
    );
    let text = format!("{}never on Sundays\n", bench.model.draft.notes.text());
    bench.press(KeyCode::F(3));
    bench.press(KeyCode::Char('e'));
    let base = bench.model.draft.notes.text().to_owned();
    *bench.model.draft.notes.editor_mut().expect("an editor") = Editor {
        base,
        ..Editor::new(&text)
    };
    bench.press(KeyCode::Esc);
    let effects = bench.control(Control::Save(CheckpointBody::EMPTY));
    let checkpoint = saved(&effects)[0].clone();
    (bench, checkpoint)
}

#[test]
fn a_restored_checkpoint_brings_everything_back_for_this_handoff_and_the_ones_after_it() {
    let (old, checkpoint) = worked();
    for there in [TEMPLATE, "## Current Plan\n- [ ] mind the gulls\n"] {
        let mut bench = restored(&checkpoint, there);
        let notes = bench.model.draft.notes.text();
        for line in there.lines().chain(old.model.draft.notes.text().lines()) {
            let heading = line.starts_with('#');
            assert!(
                heading || notes.contains(line),
                "{line:?} is lost in {notes}"
            );
        }
        assert_eq!(bench.model.draft.notes.disk(), notes);
        let was = &old.model.draft.preserved;
        for session in [NEW, NEW + 1] {
            let now = &bench.model.draft.preserved;
            assert_eq!(now.current_objective, was.current_objective);
            assert_eq!(now.custom, was.custom);
            assert_eq!(now.decisions, was.decisions);
            assert_eq!(now.known_issues, was.known_issues);
            let all = |items: &[Item], of: &[Item]| items.iter().all(|item| of.contains(item));
            assert!(
                all(&was.pending_items, &now.pending_items),
                "{:?}",
                now.pending_items
            );
            assert!(
                all(&was.completed_items, &now.completed_items),
                "{:?}",
                now.completed_items
            );
            let prompt = bench.rebooted().prompt.expect("a handoff");
            for word in [
                "lighthouse",
                "granite",
                "the crane leaks",
                "40 m",
                "order glass",
                "survey",
                "paint it",
                "dig",
                "lay stones",
                "clear the site",
                "the rock is sound",
                "never on Sundays",
            ] {
                assert!(prompt.contains(word), "{word} is not in {prompt}");
            }
            bench.spawned(session + 1);
            bench.started(session);
            bench.ready();
            bench.prompted(session, &prompt);
            bench.turn_ended(session);
            assert_eq!(bench.step(), None);
        }
    }
}

#[test]
fn what_is_restored_belongs_to_its_source_again() {
    let (_, checkpoint) = worked();
    let mut bench = restored(&checkpoint, "- [ ] mind the gulls\n");
    // The agent's own lines are the agent's to remove, those of a person are not: of neither directory.
    bench.said(
        OLD,
        "SCRATCHPAD:\n## Objective\na taller one\n## Current Plan\n- [x] paint it\nSIGNAL:",
    );
    let notes = bench.model.draft.notes.text().to_owned();
    for (line, stays) in [
        ("mind the gulls", true),
        ("never on Sundays", true),
        ("clear the site", false),
        ("the rock", false),
    ] {
        assert_eq!(notes.contains(line), stays, "{line} in {notes}");
    }
    bench.plans(list("t2", &[("lay bricks", Status::Pending)]));
    let state = &bench.model.draft.preserved;
    let pending: Vec<&str> = state.pending_items.iter().map(Item::as_str).collect();
    assert_eq!(pending, ["order glass", "mind the gulls", "lay bricks"]);
    let objective = state.current_objective.as_ref().map(Item::as_str);
    assert_eq!(
        objective,
        Some("a taller one"),
        "it stands over a first prompt"
    );
}

#[test]
fn a_checkpoint_without_its_scratchpad_is_restored_as_far_as_it_goes() {
    let (old, mut checkpoint) = worked();
    checkpoint.scratchpad = None;
    let bench = restored(&checkpoint, "- [ ] mind the gulls\n");
    assert_eq!(bench.model.draft.notes.text(), "- [ ] mind the gulls\n");
    let state = &bench.model.draft.preserved;
    assert_eq!(
        state.current_objective,
        old.model.draft.preserved.current_objective
    );
    for item in &old.model.draft.preserved.pending_items {
        assert!(state.pending_items.contains(item), "{item} is lost");
    }
}

#[test]
fn a_scratchpad_is_restored_also_where_its_versions_cannot_be_read() {
    let (_, checkpoint) = worked();
    let mut bench = Bench::bare(Config::default());
    crate::app::restore::begin(&mut bench.model, &checkpoint, &GitState::NoRepository);
    let effects = bench.model.take_effects();
    bench.settle(effects);
    bench.send(Event::Read(ReadEvent::VersionsUnreadable));
    let notes = bench.model.draft.notes.text().to_owned();
    assert!(
        notes.contains("- [ ] next") && notes.contains("the rock is sound"),
        "{notes}"
    );
    bench.send(Event::Read(ReadEvent::VersionsUnreadable));
    assert_eq!(bench.model.draft.notes.text(), notes);
}

#[test]
fn a_checkpoint_keeps_no_secret_of_the_scratchpad() {
    let mut bench = Bench::new();
    let secret = format!("ghp_{}", "16C7e42F292c6912E7710c838347Ae178B4a");
    bench.model.draft.notes = NotesPanel::new(format!("- [ ] rotate {secret}\n"));
    let effects = bench.control(Control::Save(CheckpointBody::EMPTY));
    let checkpoint = saved(&effects)[0].clone();
    let kept = checkpoint.scratchpad.expect("a scratchpad").text;
    assert!(kept.contains("rotate") && !kept.contains(&secret), "{kept}");
}

#[test]
fn an_unavailable_store_has_a_sign_until_it_is_well() {
    let mut bench = Bench::new();
    let error = |kept: Option<bool>| {
        let why = "locked".to_owned();
        let away = kept.map(|is_kept| StoreAway { why, is_kept });
        Event::Store(StoreEvent::ErrorChanged(away))
    };
    for (kept, words) in [
        (false, "history waits in memory for the database: locked"),
        (true, "history waits on disk for the database: locked"),
    ] {
        bench.send(error(Some(kept)));
        assert_eq!(bench.model.view.notices.back().unwrap().text, words);
        let report = crate::app::report::status(&bench.model);
        assert_eq!(
            (report.store_error.as_deref(), report.store_kept),
            (Some("locked"), Some(kept))
        );
    }
    bench.wait(Duration::from_secs(60));
    bench.send(Event::TimerFired(TimerId::Notice));
    assert!(bench.model.view.notices.is_empty());
    bench.send(error(None));
    assert_eq!(bench.model.outside.store_away, None);
    assert!(!bench.model.view.notices.back().unwrap().bad);
}

#[test]
fn a_cleared_state_is_saved_first_and_an_undo_brings_it_back() {
    let said = "DECISION: sqlite | small\nTODO: port\nCONSTRAINT: never push";
    for reboots in [false, true] {
        let mut bench = Bench::new();
        let follows = bench.model.draft.take_hooked(said, bench.model.now);
        follows.carry_out(&mut bench.model);
        let before = bench.model.draft.signalled.clone();
        let effects = bench.control(Control::ClearState);
        let [kept] = &saved(&effects)[..] else {
            panic!("{effects:?}")
        };
        assert_eq!(kept.tags, ["manual", "clear-state"]);
        assert_eq!(kept.state["decisions"][0]["description"], "sqlite");
        let text = bench.model.draft.handoff.current().text.clone();
        assert!(!text.contains("sqlite") && !text.contains("port"), "{text}");
        // What the transcript says once more does not come back by it.
        let rule = before.constraints[0].said.clone();
        bench
            .model
            .draft
            .signalled
            .add_constraint(rule, Origin::Human);
        assert!(bench.model.draft.signalled.constraints.is_empty());
        if reboots {
            bench.rebooted_to_new();
        }
        bench.control(Control::Undo);
        // Behind a reboot it is the reboot that is undone.
        assert_eq!(bench.model.draft.signalled == before, !reboots);
    }
}

#[test]
fn a_checkpoint_keeps_the_last_error_and_restoring_it_says_so() {
    let failed = |failure, message: &str| AgentEvent::TurnFailed {
        session: session(OLD),
        failure,
        message: message.to_owned(),
    };
    let tool = |command: Option<&str>, stderr: &str| AgentEvent::ToolFinished {
        session: session(OLD),
        call: ToolCall {
            name: "Edit".to_owned(),
            command: command.map(str::to_owned),
            ..ToolCall::default()
        },
        output: ToolOutput {
            stderr: stderr.to_owned(),
            failed: true,
            ..ToolOutput::default()
        },
    };
    for (event, said, hint) in [
        (
            tool(Some("make größe"), "no rule\n"),
            "make größe: no rule",
            "try it again",
        ),
        (tool(None, ""), "Edit: ", "try it again"),
        (
            failed(Failure::Service, "529"),
            "the turn failed: 529",
            "send the prompt again",
        ),
        (
            failed(Failure::UsageLimit, "5h"),
            "the turn failed: 5h",
            "is reset",
        ),
    ] {
        let mut bench = Bench::new();
        bench.send(Event::Agent(event));
        let effects = bench.used(127_000);
        let one = saved(&effects)[0].clone();
        let error = one.last_error().unwrap();
        assert_eq!((error.message.as_str(), error.at), (said, bench.at().wall));
        assert!(error.hint.contains(hint), "{}", error.hint);
        let mut bench = Bench::bare(Config::default());
        crate::app::restore::begin(&mut bench.model, &one, &GitState::NoRepository);
        let notice = &bench.model.view.notices.back().unwrap().text;
        let parts = ["0 of 1 done", said.trim(), &error.hint];
        assert!(parts.iter().all(|part| notice.contains(part)), "{notice}");
    }
}

#[test]
fn a_task_that_a_person_has_named_is_the_objective_and_the_first_request_stays_theirs() {
    for (asked, task) in [
        ("Port the parser to Rust", Some("Ship the release")),
        ("移植解析器", Some("Выпустить версию")),
        ("Port the parser to Rust", None),
    ] {
        let mut bench = Bench::new();
        bench.prompted(OLD, asked);
        bench.turn_ended(OLD);
        let effects = bench.control(Control::Save(CheckpointBody {
            task: task.map(str::to_owned),
            ..CheckpointBody::default()
        }));
        let mut later = restored(&saved(&effects)[0], "");
        for _ in 0..2 {
            let objective = later.model.draft.preserved.current_objective.clone();
            assert_eq!(objective.expect("one").text, task.unwrap_or(asked));
            let first = later.model.draft.requests.first.clone();
            assert_eq!(first.expect("the human's").text, asked);
            later.rebooted();
        }
        let handoff = &later.model.draft.handoff.current().text;
        assert!(handoff.contains(asked), "{handoff}");
    }
}

#[test]
fn an_undo_brings_back_what_was_cleared_more_than_once() {
    for (orders, between) in [(2, ""), (3, ""), (2, "TODO: port")] {
        let mut bench = Bench::new();
        let take = |bench: &mut Bench, said: &str| {
            let follows = bench.model.draft.take_hooked(said, bench.model.now);
            follows.carry_out(&mut bench.model);
        };
        take(&mut bench, "DECISION: sqlite | small");
        for _ in 0..orders {
            bench.control(Control::ClearState);
            take(&mut bench, between);
        }
        bench.control(Control::Undo);
        let state = &bench.model.draft.signalled;
        assert_eq!(state.decisions.len(), 1);
        assert_eq!(state.pending_items.len(), usize::from(!between.is_empty()));
    }
}
