//! What a session carries of its lineage: over quits, crashes, undos and other sessions, and what a way back takes back.

use crate::app::{
    carried,
    model::{Editor, carried::Carried},
};

use super::*;

const SAID: &str = "DECISION: use sqlite | one file\nREJECTED: redis | a server\nISSUE[high]: the parser panics in `src/a.rs`\n\
                    OBJECTIVE: port it\nTODO: the tests\nDONE: the parser\nSTATE port=8080";

impl Bench {
    fn says(&mut self, number: u128, text: &str) -> Vec<Effect> {
        self.prompted(number, "work");
        self.said(number, text)
    }

    /// The moment for changes to come together is over: what was kept, with its session.
    fn keeps_carried(&mut self) -> Option<(SessionId, Carried)> {
        let effects = self.send(Event::TimerFired(TimerId::KeepCarried));
        kept(&effects)
    }

    fn handoff(&self) -> &str {
        &self.model.draft.handoff.current().text
    }
}

fn kept(effects: &[Effect]) -> Option<(SessionId, Carried)> {
    all!(effects, Effect::KeepCarried(session, carried) => (*session, (**carried).clone())).pop()
}

fn drafts(effects: &[Effect]) -> Vec<Option<&str>> {
    all!(effects, Effect::KeepDraft(text) => text.as_deref())
}

/// The same project in a process that comes later, and resumes this session.
fn resumed(carried: Carried) -> Bench {
    let mut bench = Bench::bare(Config::default());
    carried::take_up(&mut bench.model, None, Ok(Some(Box::new(carried))));
    crate::app::iteration::begin(&mut bench.model, true, None, None);
    bench.spawned(NEW);
    bench.started(OLD);
    bench.ready();
    bench
}

#[test]
fn what_was_signalled_stands_in_the_handoff_of_a_later_process() {
    let mut bench = Bench::new();
    bench.prompted(OLD, "Always run the linter. Port the parser");
    let effects = bench.says(OLD, SAID);
    let armed = |effect: &Effect| matches!(effect, Effect::SetTimer(TimerId::KeepCarried, after) if *after < Duration::from_secs(1));
    assert!(effects.iter().any(armed) || bench.model.draft.keeping.due);
    let (of, carried) = bench.keeps_carried().expect("within a second");
    assert_eq!(of, session(OLD));
    assert_eq!(carried.args, ["--model", "opus"]);
    // As the store has it.
    let stored = serde_json::to_value(&carried).unwrap();
    let later = resumed(serde_json::from_value(stored).unwrap());
    for words in [
        "use sqlite",
        "redis",
        "the parser panics",
        "port it",
        "the tests",
        "8080",
        "Always run the linter",
    ] {
        assert!(
            later.handoff().contains(words),
            "{words}:\n{}",
            later.handoff()
        );
    }
    assert_eq!(bench.keeps_carried(), None, "nothing has changed since");
}

/// What was written there behind the last state that was kept is still to be read, in whichever session the work goes on.
#[test]
fn a_transcript_counts_as_read_as_far_as_the_kept_state_has_it() {
    let mut bench = Bench::new();
    let carried = Carried {
        read: 500,
        ..Carried::default()
    };
    let found = Ok(Some(Box::new(carried)));
    carried::take_up(&mut bench.model, Some(session(NEW)), found);
    let read = |number| carried::read_before(&bench.model.draft, session(number));
    assert_eq!((read(OLD), read(NEW)), (None, Some(500)));
    // It is kept so until the transcript has been read here.
    bench.model.session.id = session(NEW);
    let again = kept(&bench.send(Event::TimerFired(TimerId::Age)));
    assert_eq!(
        again.map(|(of, kept)| (of, kept.read)),
        Some((session(NEW), 500))
    );
}

/// Whoever comes back to it finds what the session before had, though it has said nothing itself.
#[test]
fn what_a_session_begins_with_is_kept_at_once() {
    let mut bench = Bench::new();
    bench.says(OLD, "DECISION: first | a");
    bench.keeps_carried();
    bench.approve();
    let effects = bench.exited(0);
    let start = starts(&effects).remove(0);
    let (of, carried) = kept(&effects).expect("with its start");
    assert_eq!(of, start.session);
    assert_eq!(carried.state.decisions.len(), 1);
}

#[test]
fn leaving_keeps_what_has_changed_just_now() {
    let mut bench = Bench::new();
    bench.says(OLD, "DECISION: late | by a word");
    let effects = bench.press(KeyCode::F(10));
    let (_, carried) = kept(&effects).expect("at once");
    assert_eq!(carried.state.decisions.len(), 1);
}

#[test]
fn an_undo_takes_back_what_the_new_session_said_and_no_word_of_a_humans() {
    let mut bench = Bench::new();
    bench.says(OLD, "DECISION: first | a");
    bench.rebooted_to_new();
    assert!(bench.handoff().contains("first"));
    bench.prompted(NEW, "Never touch the lock file.");
    bench.says(NEW, "DECISION: second | b\nRESOLVED: nothing");
    bench.control(Control::Undo);
    bench.exited(0);
    assert_eq!(bench.model.session.id, session(OLD));
    bench.spawned(4);
    let (first, second) = (
        bench.handoff().contains("first"),
        bench.handoff().contains("second"),
    );
    assert_eq!((first, second), (true, false), "{}", bench.handoff());
    assert!(bench.handoff().contains("Never touch the lock file"));
}

#[test]
fn another_session_that_is_resumed_in_the_client_has_its_own() {
    for known in [true, false] {
        let mut bench = Bench::new();
        bench.says(OLD, "DECISION: of the old one | a");
        let effects = bench.resumed(9);
        assert_eq!(kept(&effects).expect("the old one's").0, session(OLD));
        let read = Effect::ReadCarried {
            of: session(9),
            session: session(9),
        };
        assert!(effects.contains(&read), "{effects:?}");
        let mut carried = Carried::default();
        carried
            .state
            .set_custom("port", "8080", pitstop_handoff::preserved::Origin::Signal);
        bench.send(Event::Store(StoreEvent::CarriedRead {
            session: session(9),
            found: Ok(known.then(|| Box::new(carried))),
        }));
        assert!(!bench.handoff().contains("of the old one"));
        assert_eq!(bench.handoff().contains("8080"), known);
        // An answer about a session that was left meanwhile changes nothing.
        let stale = StoreEvent::CarriedRead {
            session: session(OLD),
            found: Ok(None),
        };
        bench.send(Event::Store(stale));
        assert_eq!(bench.handoff().contains("8080"), known);
    }
}

/// A person takes the session before the reboot from the client's own list.
#[test]
fn a_session_that_a_reboot_ended_may_be_resumed_in_the_client() {
    let resumes = |bench: &mut Bench, source| {
        bench.send(Event::Agent(AgentEvent::SessionStarted {
            session: session(OLD),
            source,
            model: None,
            transcript_path: Some("/old.jsonl".to_owned()),
            prompt_cache: None,
        }))
    };
    let mut bench = Bench::new();
    bench.says(OLD, "DECISION: of the old one | a");
    bench.rebooted_to_new();
    bench.says(NEW, "DECISION: of the new one | b");
    // A report of the ended process that comes late.
    resumes(&mut bench, StartSource::Startup);
    assert_eq!(bench.model.session.id, session(NEW));
    let effects = resumes(&mut bench, StartSource::Resume);
    assert_eq!(bench.model.session.id, session(OLD));
    assert!(effects.contains(&Effect::FollowTranscript {
        session: session(OLD),
        path: "/old.jsonl".to_owned(),
    }));
    assert_eq!(kept(&effects).expect("the new one's").0, session(NEW));
    assert!(effects.contains(&Effect::ReadCarried {
        of: session(OLD),
        session: session(OLD),
    }));
    assert!(!bench.handoff().contains("of the new one"));
    let present = bench.model.lineage.current().expect("an iteration");
    assert_eq!(present.session_id, Some(session(OLD)));
}

/// Before the new process has spoken, a report of the ended session is one that was under way.
#[test]
fn a_late_report_of_the_ended_session_is_no_move() {
    for source in [StartSource::Resume, StartSource::Startup] {
        let mut bench = Bench::new();
        bench.says(OLD, "work");
        bench.approve();
        bench.exited(0);
        bench.spawned(NEW);
        let now = bench.model.session.id;
        bench.session_starts(OLD, source);
        assert_eq!(bench.model.session.id, now);
    }
}

/// Not only in the message that they wrote into.
#[test]
fn what_a_human_writes_into_a_handoff_is_in_all_later_ones() {
    let mut bench = Bench::new();
    bench.says(OLD, "DECISION: use sqlite | one file");
    let base = bench.model.draft.handoff.editable().to_owned();
    let body = base.replace("- use sqlite (because: one file)\n", "") + "\nThe port is 9999.\n";
    let follows = bench.model.draft.take_text(&base, &body);
    follows.carry_out(&mut bench.model);
    // An unfinished one that is still in the editor survives a quit, too.
    bench.model.draft.handoff.edit(0);
    let (_, carried) = bench.keeps_carried().expect("within a second");
    let mut later = resumed(carried);
    for bench in [&mut bench, &mut later] {
        bench.model.draft.handoff.editor = None;
        bench.rebooted_to_new();
        bench.says(NEW, "work");
        let handoff = bench.handoff();
        assert!(handoff.contains("The port is 9999."), "{handoff}");
        assert!(!handoff.contains("use sqlite"), "{handoff}");
    }
}

#[test]
fn an_edit_of_the_handoff_is_offered_back() {
    let mut bench = Bench::new();
    bench.keeps_carried();
    bench.model.draft.handoff.editor = Some(Editor::new("my own words, unfinished"));
    bench.send(Event::TimerFired(TimerId::Typing));
    let (_, carried) = bench.keeps_carried().expect("while it is open");
    let later = resumed(carried);
    assert!(later.handoff().contains("my own words, unfinished"));
    assert!(later.model.draft.handoff.edited.is_some());
    assert!(
        later
            .model
            .view
            .notices
            .iter()
            .any(|one| one.text.contains("your edit"))
    );
}

#[test]
fn an_unsent_prompt_is_on_disk_within_a_second_until_it_is_sent() {
    let mut bench = Bench::new();
    bench.keeps_carried();
    bench.prompt_box(holds("half a thought"));
    let effects = bench.send(Event::TimerFired(TimerId::KeepCarried));
    assert_eq!(drafts(&effects), [Some("half a thought")]);
    bench.prompt_box(holds("half a thought, más"));
    let effects = bench.send(Event::TimerFired(TimerId::KeepCarried));
    assert_eq!(drafts(&effects), [Some("half a thought, más")]);
    bench.prompted(OLD, "half a thought, más");
    let effects = bench.send(Event::TimerFired(TimerId::KeepCarried));
    assert_eq!(drafts(&effects), [None]);
    bench.turn_ended(OLD);
    // Typed just before we leave; the client clears its box when it ends.
    bench.prompt_box(holds("and one more"));
    bench.press(KeyCode::F(10));
    assert_eq!(bench.model.view.overlay, Some(Overlay::Quit), "it asks");
    let mut effects = bench.press(KeyCode::Enter);
    effects.extend(bench.prompt_box(PromptBox::Empty));
    effects.extend(bench.send(Event::TimerFired(TimerId::KeepCarried)));
    assert_eq!(drafts(&effects), [Some("and one more")]);
}

#[test]
fn nothing_is_kept_over_what_a_store_has_not_told_yet() {
    for told in [Some(true), Some(false), None] {
        let mut bench = Bench::new();
        bench.says(OLD, "DECISION: of the old one | a");
        bench.resumed(9);
        assert_eq!(bench.keeps_carried(), None, "it was asked about");
        let found = match told {
            Some(known) => Ok(known.then(Box::default)),
            None => Err("the server does not answer".to_owned()),
        };
        let why = found.clone().err();
        let session = session(9);
        bench.send(Event::Store(StoreEvent::CarriedRead { session, found }));
        bench.says(9, "DECISION: of the other | b");
        assert_eq!(bench.keeps_carried().is_some(), told.is_some());
        assert!(!bench.handoff().contains("of the old one"));
        let mut log = bench.model.view.log.iter();
        let said = why.is_none_or(|why| log.any(|said| said.text.contains(&why)));
        assert!(said, "a person is told");
    }
}

#[test]
fn an_edit_of_the_handoff_is_on_disk_before_the_reboot_goes_on_and_outlives_it() {
    let edits = |effects: &[Effect]| {
        let edited = all!(effects, Effect::KeepCarried(_, carried) => carried.edited.clone());
        edited.into_iter().flatten().collect::<Vec<_>>()
    };
    let mut bench = Bench::new();
    bench.prompted(OLD, "work");
    bench.review();
    bench.edit_handoff("", "approved");
    assert_eq!(edits(&bench.press(KeyCode::Enter)), ["approved"]);
    assert_eq!(bench.step(), Some(Step::Waiting));
    bench.edit_handoff("approved", "changed while it waits");
    let effects = bench.turn_ended(OLD);
    assert_eq!(bench.step(), Some(Step::Ending));
    assert_eq!(edits(&effects), ["changed while it waits"]);

    // A later process takes the reboot back, whose message is the older one.
    crate::app::handoff::draft(&mut bench.model);
    bench.model.draft.restore_body("approved");
    let body = bench.model.draft.handoff.current().body().to_owned();
    assert_eq!(body, "changed while it waits");
}

#[test]
fn a_model_that_is_chosen_last_is_kept_though_nothing_is_said_any_more() {
    let mut bench = Bench::new();
    bench.says(OLD, SAID);
    bench.keeps_carried().expect("what was said");
    bench.send(Event::Agent(AgentEvent::ModelSwitched {
        session: session(OLD),
        chosen: Some("sonnet".to_owned()),
    }));
    let (_, carried) = bench.keeps_carried().expect("the model, too");
    assert_eq!(carried.args, ["--model", "sonnet"]);
    assert_eq!(bench.keeps_carried(), None, "nothing has changed since");
}
