//! The history: earlier runs behind this one, and the details that the store is asked for.

use crate::{
    app::history::EarlierRun,
    lineage::{
        Cause, Iteration, IterationId, Lineage, RunId,
        journal::JournalEntry,
        metrics::TurnFigures,
        past::{Found, PastSession},
    },
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

/// What the store keeps of a session of which there is no more than its record.
fn past(run: &RunId, iteration: &Iteration) -> PastSession {
    PastSession {
        run: run.clone(),
        task: None,
        iteration: iteration.clone(),
        got: None,
        gave: None,
        state: None,
        checkpoint: None,
    }
}

fn entry(run: &RunId, handoff: &str) -> JournalEntry {
    JournalEntry {
        reboot_id: uuid::Uuid::from_u128(1),
        run: run.clone(),
        iteration: IterationId::FIRST,
        step: Step::Done,
        way: crate::lineage::Way::Fresh,
        old_session: Some(session(OLD)),
        new_session: None,
        nonce: String::new(),
        handoff: handoff.to_owned(),
        trim: None,
        cause: Cause::Key,
        at: Utc.timestamp_opt(1_700_000_060, 0).unwrap(),
        outcome: None,
    }
}

fn sessions(bench: &Bench) -> Vec<SessionId> {
    let listed = bench.model.view.history.listed(&bench.model.lineage);
    listed.filter_map(|(_, one)| one.session_id).collect()
}

fn looked_for(effects: &[Effect]) -> Option<(RunId, IterationId)> {
    first!(effects, Effect::ReadPast(run, iteration) => (run.clone(), *iteration))
}

#[test]
fn an_iteration_is_as_long_as_it_was_however_the_clock_was_set_and_though_the_machine_slept() {
    for (clock_set, asleep, minutes) in [
        (0, 0, 7),
        (-7_200, 0, 7),
        (3 * 3_600, 0, 7),
        (-400 * 86_400, 0, 7),
        (0, 3_600, 67),
        (-3_600, 3_600, 67),
    ] {
        let mut bench = Bench::new();
        bench.wait(Duration::from_secs(5 * 60));
        bench.clock_set = clock_set;
        bench.asleep = Duration::from_secs(asleep);
        bench.wait(Duration::from_secs(2 * 60));
        bench.prompted(OLD, "go on");
        let lived = |bench: &Bench| {
            let report = crate::app::report::history(&bench.model).iterations[0].duration_ms;
            let shown =
                crate::app::facts::lasted(&bench.model.lineage.iterations()[0], &bench.model);
            [report, u64::try_from(shown.as_millis()).unwrap()]
        };
        assert_eq!(lived(&bench), [minutes * 60_000; 2], "{clock_set} {asleep}");
        bench.exited(1);
        assert!(!bench.model.lineage.iterations()[0].is_open());
        assert_eq!(lived(&bench), [minutes * 60_000; 2], "{clock_set} {asleep}");
    }
}

/// What the store has of the selected iteration, once it was read.
fn read(bench: &Bench) -> Option<&Result<Box<PastSession>, String>> {
    let history = &bench.model.view.history;
    history
        .asked_of_selected(&bench.model.lineage)?
        .found
        .as_ref()
}

#[test]
fn earlier_runs_stand_behind_this_one_and_are_read_when_they_are_opened() {
    let mut bench = Bench::new();
    let before = earlier();
    bench.send(Event::Store(StoreEvent::EarlierRuns(vec![before.clone()])));
    assert_eq!(sessions(&bench), [session(OLD), session(8), session(7)]);

    bench.press(KeyCode::F(6));
    for _ in 0..9 {
        bench.press(KeyCode::Down);
    }
    assert_eq!(bench.model.view.history.selected, 2);
    let effects = bench.press(KeyCode::Enter);
    let first = (before.run.clone(), IterationId::FIRST);
    assert_eq!(looked_for(&effects), Some(first.clone()));
    assert_eq!(read(&bench), None);

    // Another is selected before the answer has come: that answer is late.
    let effects = bench.press(KeyCode::Up);
    let (run, iteration) = looked_for(&effects).expect("the next one");
    assert_eq!(iteration, IterationId::FIRST.next());
    let found = |number: u128| {
        let iteration = &before.iterations[number as usize];
        Ok(Box::new(past(&before.run, iteration)))
    };
    for (run, iteration, found) in [(first.0, first.1, found(0)), (run, iteration, found(1))] {
        bench.send(Event::Store(StoreEvent::PastRead {
            run,
            iteration,
            found,
        }));
    }
    let shown = read(&bench).expect("it is there");
    let shown = shown.as_ref().expect("it was found");
    assert_eq!(shown.iteration.session_id, Some(session(8)));

    // A page down and another iteration: from its top.
    bench.press(KeyCode::PageDown);
    assert!(bench.model.view.history.scroll > 0);
    bench.press(KeyCode::Down);
    assert_eq!(bench.model.view.history.scroll, 0);
    // An earlier run's recording is played like this one's.
    let effects = bench.press(KeyCode::Char('p'));
    assert_eq!(
        effects,
        [Effect::ReadRecording(before.run, IterationId::FIRST)]
    );
}

fn copied(bench: &mut Bench) -> String {
    let effects = bench.press(KeyCode::Char('y'));
    first!(effects, Effect::Copy(text) => text.clone()).expect("something is copied")
}

fn typed(bench: &mut Bench, text: &str) {
    for c in text.chars() {
        bench.press(KeyCode::Char(c));
    }
}

#[test]
fn a_search_looks_through_the_list_at_once_and_through_handoffs_at_the_enter() {
    let mut bench = Bench::new();
    let before = earlier();
    bench.send(Event::Store(StoreEvent::EarlierRuns(vec![before.clone()])));
    bench.press(KeyCode::F(6));
    typed(&mut bench, "G");
    assert_eq!(bench.model.view.history.selected, 2, "the oldest");
    typed(&mut bench, "g");
    assert_eq!(bench.model.view.history.selected, 0, "the newest");
    bench.press(KeyCode::Down);
    typed(&mut bench, "/QUIT");
    assert_eq!(
        sessions(&bench),
        [session(8), session(7)],
        "as the list says"
    );
    typed(&mut bench, "E");
    assert_eq!(sessions(&bench), [], "nothing says that");
    for _ in 0..5 {
        bench.press(KeyCode::Backspace);
    }
    typed(&mut bench, "asked to end");
    assert_eq!(sessions(&bench), [session(8), session(7)]);
    assert_eq!(bench.model.view.history.selected, 0);

    // What only the store has: an answer to another question is late.
    let effects = bench.press(KeyCode::Enter);
    assert_eq!(effects, [Effect::SearchHistory("asked to end".to_owned())]);
    let has_found = |text: &str| {
        let own = (
            RunId::new(Utc.timestamp_opt(1_795_000_000, 0).unwrap(), [1, 2, 3]),
            1,
        );
        Event::Store(StoreEvent::HistoryFound {
            text: text.to_owned(),
            found: Ok(vec![Found {
                run: own.0,
                iteration: IterationId::new(own.1).unwrap(),
                excerpt: None,
            }]),
        })
    };
    bench.send(has_found("else"));
    assert_eq!(sessions(&bench).len(), 2);
    bench.send(has_found("asked to end"));
    assert_eq!(sessions(&bench), [session(OLD), session(8), session(7)]);

    // Letters are the panel's again; Esc takes the search back first.
    bench.press(KeyCode::Char('j'));
    assert_eq!(bench.model.view.history.selected, 1);
    bench.press(KeyCode::Esc);
    assert_eq!(
        (bench.model.view.focus, sessions(&bench).len()),
        (Focus::History, 3)
    );
    bench.press(KeyCode::Esc);
    assert_eq!(bench.model.view.focus, Focus::Pane);
}

#[test]
fn any_earlier_session_is_resumed_and_a_turn_is_interrupted_only_by_the_second_press() {
    let mut bench = Bench::new();
    bench.send(Event::Store(StoreEvent::EarlierRuns(vec![earlier()])));
    bench.press(KeyCode::F(6));
    bench.press(KeyCode::Char('R'));
    assert_eq!(bench.step(), None, "the present session is there already");
    bench.prompted(OLD, "work");
    bench.press(KeyCode::Down);
    bench.press(KeyCode::Char('R'));
    assert_eq!(bench.step(), None);
    let said = bench.model.view.notices.back().unwrap().text.clone();
    assert!(said.contains("press R again"), "{said}");
    // Another one was not asked for yet.
    bench.press(KeyCode::Down);
    bench.press(KeyCode::Char('R'));
    assert_eq!(bench.step(), None);
    bench.press(KeyCode::Char('R'));
    assert_eq!(bench.model.view.focus, Focus::Pane);
    let effects = bench.exited(0);
    let start = starts(&effects).pop().expect("it is resumed");
    assert_eq!((start.session, start.resume), (session(7), true));
}

#[test]
fn the_details_show_and_copy_what_changed_between_the_two_handoffs() {
    let mut bench = Bench::new();
    let run = bench.model.run();
    let past = PastSession {
        got: Some(entry(run, "# Work\n- read\n- write\n")),
        gave: Some(entry(run, "# Work\n- write\n- test\n")),
        ..past(run, &bench.model.lineage.iterations()[0])
    };
    bench.press(KeyCode::F(6));
    assert_eq!(copied(&mut bench), session(OLD).to_string());
    bench.press(KeyCode::Enter);
    let (run, iteration) = (past.run.clone(), past.iteration.iteration);
    let gave = past.gave.as_ref().unwrap().handoff.clone();
    bench.send(Event::Store(StoreEvent::PastRead {
        run,
        iteration,
        found: Ok(Box::new(past)),
    }));
    assert_eq!(copied(&mut bench), gave);
    bench.press(KeyCode::Char('d'));
    let difference = "@@ -1,3 +1,3 @@\n # Work\n-- read\n - write\n+- test\n";
    assert_eq!(copied(&mut bench), difference.to_owned());
}

#[test]
fn the_figures_of_each_turn_are_kept() {
    let mut bench = Bench::new();
    bench.prompted(OLD, "work");
    bench.turn_ended(OLD);
    bench.used(40_000);
    let mut line = status_line(OLD);
    line.cost_usd = Some(0.5);
    bench.send(Event::Agent(AgentEvent::StatusLine(Box::new(line))));
    let effects = bench.prompted(OLD, "more");
    let kept = first!(effects, Effect::KeepTurn(turn) => *turn).expect("the turn before");
    assert_eq!((kept.used, kept.cost_usd), (Tokens(40_000), Some(0.5)));
}

#[test]
fn a_session_that_has_ended_is_reported_by_what_is_kept_of_it() {
    let before = earlier();
    let mut past = PastSession {
        task: Some("build it".to_owned()),
        state: Some(serde_json::json!({
            "pending_items": ["go on"], "current_objective": "ship it", "branch": "work", "head": "ab12",
        })),
        ..past(&before.run, &before.iterations[0])
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
        old_session: past.iteration.session_id,
        ..entry(&past.run, "# Work")
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
    assert_eq!(report.branch.as_deref(), Some("work"));
    assert_eq!(report.head_commit.as_deref(), Some("ab12"));
    assert_eq!(report.next_step.as_deref(), Some("go on"));
    let continuation = report.continuation_prompt.expect("it is known");
    assert!(
        continuation.contains("\"ship it\"; the next step is \"go on\""),
        "{continuation}"
    );
    assert_eq!(report.bytes, 6);
    assert!(report.warnings.is_empty() && report.generated_at.is_some());
}

#[test]
fn two_iterations_are_compared_from_the_older_to_the_newer_whichever_is_marked() {
    let compared = |marks_the_newer: bool| {
        let mut bench = Bench::new();
        let before = earlier();
        bench.send(Event::Store(StoreEvent::EarlierRuns(vec![before.clone()])));
        bench.press(KeyCode::F(6));
        bench.press(KeyCode::Down);
        let other = if marks_the_newer {
            KeyCode::Down
        } else {
            bench.press(KeyCode::Down);
            KeyCode::Up
        };
        let mut wanted: Vec<_> = looked_for(&bench.press(KeyCode::Char('m')))
            .into_iter()
            .collect();
        assert_eq!(
            bench.press(KeyCode::Char('d')),
            [],
            "nothing else is selected"
        );
        bench.press(other);
        wanted.extend(looked_for(&bench.press(KeyCode::Char('d'))));
        assert_eq!(wanted.len(), 2, "both are read");
        for (run, iteration) in wanted {
            let at = usize::try_from(iteration.get()).unwrap() - 1;
            let mut one = before.iterations[at].clone();
            one.summary = Some(format!("plan\nstep {iteration}\n"));
            let found = Ok(Box::new(past(&run, &one)));
            bench.send(Event::Store(StoreEvent::PastRead {
                run,
                iteration,
                found,
            }));
        }
        let text = copied(&mut bench);
        let past = bench
            .model
            .view
            .history
            .asked_of_selected(&bench.model.lineage)
            .expect("the details are open");
        let heading = past
            .difference
            .as_ref()
            .expect("both are there")
            .heading
            .clone();
        bench.press(KeyCode::Esc);
        bench.press(KeyCode::Esc);
        assert!(
            bench.model.view.history.marked.as_ref().is_none(),
            "Esc takes the mark back"
        );
        assert_eq!(bench.model.view.focus, Focus::History);
        (text, heading)
    };
    let (text, heading) = compared(false);
    assert_eq!(text, "@@ -1,2 +1,2 @@\n plan\n-step 1\n+step 2\n");
    assert!(
        heading.starts_with("What changed from iteration 1 of run "),
        "{heading}"
    );
    assert!(
        heading.contains(" (its summary) to iteration 2 of run "),
        "{heading}"
    );
    assert_eq!(compared(true), (text, heading));
}

/// The sessions whose transcripts these effects read.
fn transcripts(effects: &[Effect]) -> Vec<(SessionId, u64)> {
    all!(effects, Effect::ReadTranscript(session, iteration) => (*session, iteration.get()))
}

#[test]
fn a_transcript_is_read_where_the_pane_keeps_nothing_and_from_the_history() {
    let mut bench = Bench::new();
    bench.rebooted();
    bench.spawned(3);
    let (old, new) = (session(OLD), bench.model.session.id);
    // With a scrollback copy mode reads the pane.
    assert_eq!(transcripts(&bench.press(KeyCode::F(9))), []);
    assert!(bench.model.view.copy.is_on());
    bench.press(KeyCode::F(9));
    assert!(!bench.model.view.copy.is_on());
    bench.send(Event::Pane(PaneEvent::FullScreenSet { on: true }));
    assert_eq!(transcripts(&bench.press(KeyCode::F(9))), [(new, 2)]);
    let read = |iteration: u64, talk: Result<(), &str>| {
        Event::Read(ReadEvent::Talk {
            iteration: IterationId::new(iteration).unwrap(),
            talk: talk
                .map(|()| std::sync::Arc::default())
                .map_err(str::to_owned),
        })
    };
    // Without one, it is the screen all the same.
    bench.send(read(2, Err("it has none yet")));
    let what = |bench: &Bench| bench.model.view.copy.mode().map(|copy| copy.transcript);
    assert_eq!(what(&bench), Some(None));
    bench.press(KeyCode::Esc);
    let effects = bench.send(read(2, Ok(())));
    assert!(has!(effects, Effect::ShowTranscript(_)));
    assert_eq!(what(&bench), Some(IterationId::new(2)));
    // The session before, no session behind the last, and the same one again.
    assert_eq!(transcripts(&bench.press(KeyCode::Char('['))), [(old, 1)]);
    assert_eq!(transcripts(&bench.press(KeyCode::Char(']'))), []);
    assert_eq!(transcripts(&bench.press(KeyCode::Char('r'))), [(new, 2)]);
    // The key goes on to the screen, and then leaves.
    bench.press(KeyCode::F(9));
    assert_eq!(what(&bench), Some(None));
    bench.press(KeyCode::F(9));
    assert_eq!(what(&bench), None);
    bench.press(KeyCode::F(6));
    bench.press(KeyCode::Down);
    assert_eq!(transcripts(&bench.press(KeyCode::Char('v'))), [(old, 1)]);
}

#[test]
fn of_an_agent_that_has_ended_the_transcript_is_read_if_something_was_said() {
    for (turns, read) in [(1, vec![(session(OLD), 1)]), (0, vec![])] {
        let mut bench = Bench::new();
        bench.model.session.transcript.turns = turns;
        bench.exited(0);
        assert_eq!(bench.model.view.overlay, Some(Overlay::Exited));
        bench.press(KeyCode::Esc);
        assert_eq!(transcripts(&bench.press(KeyCode::F(9))), read);
    }
}

/// Returns the tokens after each turn of an iteration.
fn turns(bench: &Bench, iteration: u64) -> Vec<u64> {
    let of = bench.model.turns.of(IterationId::new(iteration).unwrap());
    of.map(|used| used.0).collect()
}

#[test]
fn the_turns_of_earlier_iterations_stay_and_those_before_a_restart_are_read_back() {
    let mut bench = Bench::new();
    for used in [20_000, 40_000, 90_000] {
        bench.prompted(OLD, "work");
        bench.turn_ended(OLD);
        bench.used(used);
    }
    bench.rebooted_to_new();
    assert_eq!(turns(&bench, 1), [20_000, 40_000, 90_000]);
    // The store knows these too: none is there twice.
    let figures = |iteration: u64, used: u64| TurnFigures {
        iteration: IterationId::new(iteration).unwrap(),
        at: bench.model.now.wall,
        used: Tokens(used),
        usable: Tokens(180_000),
        cost_usd: None,
    };
    let read = vec![figures(1, 20_000), figures(1, 40_000)];
    bench.send(Event::Store(StoreEvent::TurnsRead(read.clone())));
    assert_eq!(turns(&bench, 1), [20_000, 40_000, 90_000]);
    let mut restarted = Bench::new();
    let second = IterationId::new(2).unwrap();
    let now = restarted.model.now;
    restarted.model.session.begin_in_place(second, now);
    restarted.send(Event::Store(StoreEvent::TurnsRead(read)));
    assert_eq!(turns(&restarted, 1), [20_000, 40_000]);
}

/// The agent has reported no figure.
#[test]
fn the_time_of_an_iteration_is_shown_again_by_the_second_then_by_the_minute() {
    let mut bench = Bench::new();
    let mut lasted = 0;
    for (seconds, next) in [(0, 1), (9, 1), (10, 50), (60, 60), (75, 45), (3_599, 1)] {
        bench.wait(Duration::from_secs(seconds - lasted));
        lasted = seconds;
        let effects = bench.send(Event::TimerFired(TimerId::Age));
        let age = Effect::SetTimer(TimerId::Age, Duration::from_secs(next));
        assert!(effects.contains(&age), "after {seconds} s: {effects:?}");
    }
}

#[test]
fn a_search_shows_the_words_around_what_it_has_found() {
    let before = earlier();
    let mut iteration = before.iterations[0].clone();
    iteration.summary =
        Some("the queue loses its first job\nÄNDERN: the Queue is bounded\n".to_owned());
    let past = PastSession {
        task: Some("build a queue".to_owned()),
        ..past(&before.run, &iteration)
    };
    let words = |wanted: &str| past.excerpt(wanted).map(|found| (found.of, found.words));
    let line = "the queue loses its first job".to_owned();
    assert_eq!(words("QUEUE LOSES"), Some(("summary", line)));
    let line = "ÄNDERN: the Queue is bounded".to_owned();
    assert_eq!(words("ändern"), Some(("summary", line)));
    assert_eq!(words("build a"), Some(("task", "build a queue".to_owned())));
    assert_eq!(words("absent"), None);
}

#[test]
fn a_search_finds_each_word_of_the_list() {
    for (cause, words) in [
        (Cause::Ctl, "from the command line"),
        (Cause::Compaction, "in place of a compaction"),
        (Cause::Breakpoint, "at a good moment"),
    ] {
        let wall = Utc.timestamp_opt(1_700_000_000, 0).unwrap();
        let mut lineage = Lineage::new(RunId::new(wall, [9, 9, 9]));
        lineage.open(Some(session(7)), Some(cause), wall).unwrap();
        lineage.close(wall, EndReason::Shutdown).unwrap();
        let mut bench = Bench::new();
        bench.send(Event::Store(StoreEvent::EarlierRuns(vec![EarlierRun {
            run: lineage.run().clone(),
            iterations: lineage.iterations().to_vec(),
        }])));
        bench.press(KeyCode::F(6));
        typed(&mut bench, "/");
        typed(&mut bench, words);
        assert_eq!(sessions(&bench), [session(7)], "{words}");
    }
    // The end of the one before is written in capitals: "rebooted by API".
    let wall = Utc.timestamp_opt(1_700_000_000, 0).unwrap();
    let mut lineage = Lineage::new(RunId::new(wall, [9, 9, 9]));
    lineage.open(Some(session(7)), None, wall).unwrap();
    lineage.close(wall, EndReason::UserReboot).unwrap();
    lineage
        .open(Some(session(8)), Some(Cause::Api), wall)
        .unwrap();
    lineage.close(wall, EndReason::Shutdown).unwrap();
    let mut bench = Bench::new();
    bench.send(Event::Store(StoreEvent::EarlierRuns(vec![EarlierRun {
        run: lineage.run().clone(),
        iterations: lineage.iterations().to_vec(),
    }])));
    bench.press(KeyCode::F(6));
    typed(&mut bench, "/rebooted by api");
    assert_eq!(sessions(&bench), [session(7)]);
}

#[test]
fn a_selection_stays_when_a_session_begins_whether_the_search_finds_that_or_not() {
    for (search, before, after) in [("", 1, 2), ("/quit", 1, 1), ("/by key", 0, 0)] {
        let mut bench = Bench::new();
        bench.send(Event::Store(StoreEvent::EarlierRuns(vec![earlier()])));
        bench.press(KeyCode::F(6));
        typed(&mut bench, search);
        if !search.is_empty() {
            bench.press(KeyCode::Enter);
        }
        for _ in 0..before {
            bench.press(KeyCode::Down);
        }
        let selected = |bench: &Bench| {
            let history = &bench.model.view.history;
            let (_, one) = history.selection(&bench.model.lineage)?;
            one.session_id
        };
        let chosen = selected(&bench);
        bench.rebooted_to_new();
        assert_eq!(bench.model.view.history.selected, after, "{search:?}");
        if before > 0 {
            assert_eq!(selected(&bench), chosen, "{search:?}");
        }
    }
}

#[test]
fn a_recording_goes_with_whatever_takes_its_place() {
    for key in [KeyCode::F(4), KeyCode::Esc] {
        let mut bench = Bench::new();
        let file = "{\"version\": 2, \"width\": 20, \"height\": 4}\n[0.5, \"o\", \"one\"]\n";
        let cast = pitstop_terminal::pane::replay::Cast::parse(file.as_bytes());
        let cast = cast.map_err(|error| error.to_string());
        let iteration = IterationId::FIRST;
        bench.send(Event::Read(ReadEvent::Recording { iteration, cast }));
        assert!(bench.model.view.replay.is_some());
        bench.press(key);
        assert_eq!(bench.model.view.overlay, None);
        assert!(bench.model.view.replay.is_none(), "{key:?}");
    }
}

#[test]
fn each_iteration_of_one_session_has_its_own_handoffs() {
    use crate::lineage::past::{gave, got};
    let run = earlier().run;
    let own = session(OLD);
    let marked = |run: &str, n: u64| format!("pitstop handoff · {run} · iteration {n} · 0a1b2c3d");
    let by = |n: u64| marked(run.as_str(), n);
    let entry = |text: &str, new: SessionId| JournalEntry {
        new_session: Some(new),
        ..entry(&run, text)
    };
    let of = |entries: &[JournalEntry], n: u64| {
        let n = IterationId::new(n).unwrap();
        let text = |one: &JournalEntry| one.handoff.clone();
        (
            got(entries, own, n).map(text),
            gave(entries, own, n).map(text),
        )
    };
    // Newest first: the conversation was replaced twice.
    let in_place = [entry(&by(2), own), entry(&by(1), own)];
    assert_eq!(of(&in_place, 1), (None, Some(by(1))));
    assert_eq!(of(&in_place, 2), (Some(by(1)), Some(by(2))));
    assert_eq!(of(&in_place, 3), (Some(by(2)), None));
    // It died in the first, handed over in the second, and was brought back in the fourth.
    let undone = [entry(&by(2), session(NEW))];
    for (n, given) in [(1, None), (2, Some(by(2))), (4, None)] {
        assert_eq!(of(&undone, n), (None, given), "{n}");
    }
    // A checkpoint of another run, and one that was saved without a session.
    for text in [marked("elsewhere", 7), by(0)] {
        let restored = [entry(&text, own)];
        assert_eq!(of(&restored, 1), (Some(text), None));
    }
}
