//! What feeds the handoff: signals, to-dos, commands, files, and when it is saved.

use super::*;
use crate::app::event::{HandoffFiles, TranscriptFacts};
use pitstop_handoff::{
    IncludedFile,
    breakpoint::git::{Commit, GitFacts},
    preserved::{Item, Origin},
    signal,
};
use pitstop_transcript::todo::Todos;

fn written(bench: &mut Bench, message: &str) -> Vec<Effect> {
    let signals = signal::parse_signals(message);
    bench.facts_read(TranscriptFacts {
        signals,
        said: Some(message.to_owned()),
        ..TranscriptFacts::default()
    })
}

fn repository(head: &str, modified: &[&str]) -> ReadEvent {
    let commit = Commit {
        sha: head.to_owned(),
        subject: "a commit".to_owned(),
        at: Utc.timestamp_opt(0, 0).unwrap(),
    };
    ReadEvent::Git(GitState::Facts(Box::new(GitFacts {
        branch: Some("main".to_owned()),
        head: Some(head.to_owned()),
        commits: vec![commit],
        modified: modified.iter().map(|name| (*name).to_owned()).collect(),
        ..GitFacts::default()
    })))
}

fn notes_written(effects: &[Effect]) -> Option<&str> {
    first!(effects, Effect::WriteScratchpad { text, .. } => text.as_str())
}

#[test]
fn a_message_of_hook_and_transcript_counts_once() {
    let mut bench = Bench::new();
    let message = "SCRATCHPAD:\n- [ ] **bold**\nSIGNAL:\nISSUE: it leaks\nOBJECTIVE: ship it";
    let effects = bench.said(OLD, message);
    assert_eq!(notes_written(&effects), Some("- [ ] **bold**\n"));
    // The human goes on writing before the transcript shows the same.
    bench.send(Event::Read(ReadEvent::Scratchpad(Some(
        "- [ ] mine\n".to_owned(),
    ))));
    let effects = written(&mut bench, message);
    assert_eq!(notes_written(&effects), None);
    assert_eq!(bench.model.draft.notes.text(), "- [ ] mine\n");
    assert_eq!(bench.model.draft.preserved.known_issues.len(), 1);
    assert_eq!(
        bench.model.draft.preserved.current_objective,
        Some(Item::new("ship it", Origin::Signal))
    );
}

#[test]
fn a_turn_without_its_hook_is_read_from_the_transcript() {
    for how in ["no hooks", "a failure", "an interruption"] {
        let mut bench = Bench::new();
        let effects = written(&mut bench, "SCRATCHPAD:\nnew notes\nSIGNAL:\nDONE: next");
        assert_eq!(notes_written(&effects), Some("new notes\n"), "{how}");
        if how == "a failure" {
            bench.failed(Failure::Service, "529");
        }
        assert_eq!(bench.model.draft.preserved.completed_items, ["next"]);
        assert!(bench.model.draft.preserved.pending_items.is_empty());
    }
}

#[test]
fn the_signals_of_another_session_are_not_read() {
    let mut bench = Bench::new();
    let facts = Box::new(TranscriptFacts {
        signals: signal::parse_signals("DONE: forged"),
        ..TranscriptFacts::default()
    });
    let session = session(99);
    bench.send(Event::Read(ReadEvent::Transcript { session, facts }));
    assert!(bench.model.draft.signalled.completed_items.is_empty());
}

#[test]
fn a_generic_agent_is_read_from_its_pane() {
    let mut bench = Bench::new();
    let iteration = bench.model.session.iteration();
    let mut look = |text: &str, iteration| {
        let signals = signal::parse_pane(text);
        bench.send(Event::Read(ReadEvent::PaneSignals { iteration, signals }))
    };
    let text = "● DONE: next\nSCRATCHPAD:\nPlan\nSIGNAL:\n";
    assert_eq!(notes_written(&look(text, iteration)), Some("Plan\n"));
    assert_eq!(notes_written(&look(text, iteration)), None, "redrawn");
    let late = look("OBJECTIVE: late", iteration.next());
    assert!(late.is_empty());
    assert_eq!(bench.model.draft.signalled.completed_items, ["next"]);
}

#[test]
fn to_dos_come_from_hooks_and_from_the_transcript_and_stay_over_a_reboot() {
    let mut bench = Bench::new();
    let first = list(
        "t1",
        &[("one", Status::Completed), ("two", Status::Pending)],
    );
    bench.plans(first.clone());
    let state = &bench.model.draft.preserved;
    assert_eq!(state.completed_items, [Item::new("one", Origin::Todo)]);
    assert_eq!(
        state.pending_items,
        [
            Item::new("next", Origin::Scratchpad),
            Item::new("two", Origin::Todo)
        ]
    );
    let mut todos = Todos::default();
    todos.apply(&first);
    todos.apply(&list("t2", &[("three", Status::InProgress)]));
    bench.facts_read(TranscriptFacts {
        todos,
        ..TranscriptFacts::default()
    });
    assert_eq!(bench.model.draft.preserved.pending_items, ["next", "three"]);
    assert!(
        bench
            .model
            .draft
            .handoff
            .generated
            .text
            .contains("- [ ] three")
    );
    bench.rebooted();
    bench.spawned(3);
    assert_eq!(bench.model.draft.preserved.pending_items, ["next", "three"]);
}

#[test]
fn the_last_commands_are_carried_while_their_session_lasts() {
    let mut bench = Bench::new();
    let commands = Some(vec!["$ ls\na\n".to_owned()]);
    bench.facts_read(TranscriptFacts {
        commands,
        ..TranscriptFacts::default()
    });
    // Facts without new commands leave them.
    bench.facts_read(TranscriptFacts::default());
    let text = &bench.model.draft.handoff.generated.text;
    assert!(
        text.contains("## Recent commands\n\n```\n$ ls\na\n```"),
        "{text}"
    );
    let iteration = bench.model.session.iteration();
    let commands = vec!["$ make\n".to_owned()];
    bench.send(Event::Read(ReadEvent::Recorded(iteration, commands)));
    assert!(bench.model.draft.handoff.generated.text.contains("$ make"));
    bench.rebooted();
    bench.spawned(3);
    assert!(!bench.model.draft.handoff.generated.text.contains("$ make"));
}

#[test]
fn the_files_of_the_handoff_are_looked_at_when_it_is_drafted() {
    let mut config = Config::default();
    config.handoff.include_files = vec!["notes.md".to_owned(), "gone.md".to_owned()];
    let mut bench = Bench::with(config);
    bench.said(OLD, "ISSUE: `src/b.rs` leaks");
    bench.press(KeyCode::F(5));
    let effects = bench.send(Event::Read(repository("3f786850aa", &["src/a.rs"])));
    assert!(
        effects.contains(&Effect::ReadHandoffFiles {
            named: vec!["src/a.rs".to_owned(), "src/b.rs".to_owned()],
            include: vec!["notes.md".to_owned(), "gone.md".to_owned()],
        }),
        "{effects:?}"
    );
    assert_eq!(bench.step(), Some(Step::Drafting), "it waits for the files");
    bench.send(Event::Read(ReadEvent::HandoffFiles(Box::new(
        HandoffFiles {
            missing: vec!["src/b.rs".to_owned()],
            included: vec![IncludedFile::new("notes.md", "# Mine")],
            warnings: vec!["include_files: gone.md: it is not there".to_owned()],
        },
    ))));
    assert_eq!(bench.step(), Some(Step::Review));
    let handoff = &bench.model.draft.handoff.generated;
    assert!(handoff.text.contains("### notes.md\n\n```\n# Mine\n```"));
    let warnings = handoff.warnings.join("\n");
    assert!(
        warnings.contains("named but not there: src/b.rs"),
        "{warnings}"
    );
    assert!(warnings.contains("gone.md: it is not there"), "{warnings}");
}

#[test]
fn a_message_of_the_human_s_own_is_warned_of_when_the_head_moves() {
    let mut bench = Bench::new();
    bench.send(Event::Read(repository("3f786850aa", &[])));
    let base = bench.model.draft.handoff.current().body().to_owned();
    let body = format!("{base}\nmine");
    bench.edit_handoff(&base, &body);
    bench.send(Event::Read(repository("3f786850aa", &[])));
    assert_eq!(
        bench.model.draft.handoff.current().warnings,
        Vec::<String>::new()
    );
    bench.send(Event::Read(repository("89e6c98dbb", &[])));
    assert_eq!(
        bench.model.draft.handoff.current().warnings,
        ["the head has moved: the handoff names 3f786850, checked out is 89e6c98d"]
    );
}

#[test]
fn without_generate_handoff_a_fresh_session_starts_empty() {
    let mut config = Config::default();
    config.handoff.generate_handoff = false;
    let mut bench = Bench::with(config);
    let current = bench.model.draft.handoff.current();
    assert_eq!(current.text, "");
    assert!(current.warnings[0].contains("generate_handoff is off"));
    assert_eq!(bench.rebooted().prompt, None);
    bench.spawned(3);
    assert_eq!(bench.step(), None, "nothing has to arrive");
    let record = bench.model.lineage.iterations()[1].reboot.clone().unwrap();
    assert_eq!((record.verified, record.handoff_bytes), (false, 0));
}

#[test]
fn without_generate_handoff_a_message_of_the_human_s_own_is_sent() {
    let mut config = Config::default();
    config.handoff.generate_handoff = false;
    let mut bench = Bench::with(config);
    bench.review();
    bench.edit_handoff("", "\n\ngo on with the store");
    bench.press(KeyCode::Enter);
    let effects = bench.exited(0);
    let prompt = starts(&effects).remove(0).prompt.expect("a prompt");
    assert!(prompt.starts_with("pitstop handoff") && prompt.ends_with("go on with the store"));
}

#[test]
fn the_tests_are_shown_when_they_are_to_be_and_preserved_in_any_case() {
    for enabled in [true, false] {
        let mut config = Config::default();
        config.handoff.include_test_state = enabled;
        let mut bench = Bench::with(config);
        let stdout = "running 2 tests\ntest a ... ok\ntest b ... FAILED\n\n\
            test result: FAILED. 1 passed; 1 failed; 0 ignored; 0 measured; 0 filtered out\n";
        bench.shell("cargo test", stdout);
        let start = bench.rebooted();
        let text = start.prompt.expect("a handoff");
        assert_eq!(
            text.contains("## Failing tests\n\n- b\n"),
            enabled,
            "{text}"
        );
        // The state itself goes on to the next iteration, whatever is said of it.
        bench.spawned(3);
        assert_eq!(bench.model.draft.preserved.test_state.failing, ["b"]);
    }
}

#[test]
fn the_json_handoff_names_its_sources_and_its_message_masks() {
    let mut bench = Bench::new();
    // Put together here, for no scanner likes a whole one.
    let key = format!("{}{}", "ghp_", "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8");
    bench.said(OLD,
        &format!(
            "DECISION: use {key} | it works\nTODO: revoke {key}\nSTATE token={key}\nISSUE: {key} leaks\nDONE: {key}\nOBJECTIVE: hide {key}"
        ),
    );
    bench.send(Event::Read(repository("3f786850aa", &["src/a.rs"])));
    let report = crate::app::report::handoff(&bench.model);
    assert!(!report.text.contains("a1B2c3D4e5F6"), "{}", report.text);
    // The rest is masked where it is answered.
    let json = serde_json::to_string(&report).unwrap();
    let answered = pitstop_base::redact::json(&json);
    assert!(!answered.contains("a1B2c3D4e5F6"), "{answered}");
    assert_eq!(report.branch.as_deref(), Some("main"));
    assert_eq!(report.head_commit.as_deref(), Some("3f786850aa"));
    assert_eq!(report.modified_files, ["src/a.rs"]);
    let of = |field: &str| {
        let found = report.sources.iter().filter(|item| item.field == field);
        found.map(|item| item.source.as_str()).collect::<Vec<_>>()
    };
    assert_eq!(of("pending_items"), ["signal", "scratchpad"]);
    assert_eq!(of("modified_files"), ["git"]);
    assert_eq!(of("current_objective"), ["signal"]);
}

#[test]
fn the_objective_is_what_a_person_asked_for_first() {
    let mut bench = Bench::new();
    bench.model.config.reboot.warmup_prompt = Some("Read the README first.".to_owned());
    for prompt in [
        "pitstop handoff · r · iteration 1 · 0a\n\ngo on",
        "<task-notification>done</task-notification>",
        "/clear",
        "Read the README first.",
        &crate::autopilot::prompt::go_on(),
    ] {
        bench.prompted(OLD, prompt);
        assert_eq!(
            bench.model.draft.preserved.current_objective, None,
            "{prompt}"
        );
    }
    bench.prompted(OLD, "<pasted_content id=\"1\">\nship it\n</pasted_content>");
    let objective = &bench.model.draft.preserved.current_objective;
    assert_eq!(objective, &Some(Item::new("ship it", Origin::Human)));
}

/// The panel, the state, the handoff and its warnings go by one reading of the notes.
#[test]
fn decisions_and_blockers_of_the_notes_reach_the_handoff_once() {
    let mut bench = Bench::new();
    let notes = "**Objective:** ship it\n\n## Key Decisions\n- sqlite because it is one file\n\n## Blockers\n- [low]: CI is slow\n\n\
        ## Next\n1. the printer of the entries\n";
    bench.send(Event::Read(ReadEvent::Scratchpad(Some(notes.to_owned()))));
    let state = &bench.model.draft.preserved;
    assert_eq!(state.decisions[0].rationale, "it is one file");
    assert_eq!(state.decisions[0].timestamp, None);
    assert_eq!(state.known_issues[0].description, "CI is slow");
    assert_eq!(state.pending_items, ["the printer of the entries"]);
    let handoff = &bench.model.draft.handoff.generated;
    assert_eq!(handoff.warnings, [""; 0]);
    assert!(!handoff.text.contains("## Scratchpad"), "{}", handoff.text);
    let report = crate::app::report::handoff(&bench.model);
    assert_eq!(report.key_decisions[0].text, "sqlite");
    assert_eq!(
        report.key_decisions[0].reason.as_deref(),
        Some("it is one file")
    );
    assert_eq!(
        report.next_step.as_deref(),
        Some("the printer of the entries")
    );
    let closing = report.continuation_prompt.expect("it has one");
    assert!(
        closing.starts_with("Carry on with \"ship it\"; the next step is"),
        "{closing}"
    );
    assert!(handoff.text.ends_with(&closing));
}
