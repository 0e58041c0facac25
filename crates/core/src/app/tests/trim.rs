//! The trim as the third way of a reboot.

use super::*;

/// A plan with these tokens after each level, of 40 responses in a context of 155k.
fn plan(after: [u64; 5]) -> TrimPlan {
    let before = Tokens(155_000);
    let levels: Vec<_> = LEVELS
        .into_iter()
        .zip(after)
        .map(|(percent, after)| LevelFigure {
            percent,
            responses: 40 * usize::from(percent) / 100,
            tokens_before: before,
            tokens_after: Tokens(after),
        })
        .collect();
    let fits = |level: &&LevelFigure| level.tokens_after.0 < 122_400;
    TrimPlan {
        chosen: levels.iter().find(fits).map(|level| level.percent),
        levels,
        estimated: false,
    }
}

/// A plan whose level of 20 % wins.
pub(super) fn good_plan() -> TrimPlan {
    plan([155_000, 140_000, 110_000, 80_000, 40_000])
}

pub(super) fn surveys(effects: &[Effect]) -> Vec<u64> {
    all!(effects, Effect::SurveyTrim { ask, .. } => *ask)
}

pub(super) fn copies(effects: &[Effect]) -> Vec<(u64, SessionId, SessionId)> {
    all!(effects, Effect::TrimTranscript { ask, from, to, .. } => (*ask, *from, *to))
}

pub(super) fn trim_record() -> TrimRecord {
    TrimRecord {
        level: 20,
        responses: 8,
        of: 40,
        tokens_before: Tokens(155_000),
        tokens_after: Tokens(110_000),
    }
}

impl Bench {
    pub(super) fn planned(&mut self, ask: u64, plan: Result<TrimPlan, String>) -> Vec<Effect> {
        self.send(Event::Read(ReadEvent::TrimPlanned { ask, plan }))
    }

    pub(super) fn copied(&mut self, ask: u64, made: Result<TrimRecord, String>) -> Vec<Effect> {
        self.send(Event::Read(ReadEvent::Trimmed { ask, made }))
    }

    fn grown(&mut self, turns: u64) -> Vec<Effect> {
        self.facts_read(crate::app::event::TranscriptFacts {
            used: Some(Tokens(155_000)),
            turns,
            ..Default::default()
        })
    }

    /// A review with a trim that is offered.
    pub(super) fn offered(&mut self) {
        let effects = self.press(KeyCode::F(5));
        self.git();
        self.planned(surveys(&effects)[0], Ok(good_plan()));
    }

    /// Goes as far as the order of the copy; its number.
    pub(super) fn trimming(&mut self) -> u64 {
        self.offered();
        self.press(KeyCode::Char('t'));
        let effects = self.press(KeyCode::Enter);
        assert_eq!(signals(&effects), [StopSignal::Exit]);
        let effects = self.exited(0);
        assert_eq!(starts(&effects), [], "no agent before the copy is there");
        let (ask, from, to) = copies(&effects)[0];
        assert_eq!((from, to), (session(OLD), session(NEW)));
        ask
    }
}

#[test]
fn a_trim_copies_the_ended_session_and_resumes_the_copy() {
    let mut bench = Bench::new();
    bench.used(155_000);
    let ask = bench.trimming();
    assert_eq!(bench.model.session.iteration().get(), 1);
    let effects = bench.copied(ask, Ok(trim_record()));
    let start = StartAgent {
        prompt_if_new: None,
        iteration: bench.model.session.iteration(),
        session: session(NEW),
        resume: true,
        after: Some(session(OLD)),
        model: None,
        prompt: None,
        first: false,
    };
    assert_eq!(starts(&effects), [start]);
    let saved = has!(effects, Effect::SaveHandoff { .. });
    assert!(!saved, "no handoff was given");
    bench.spawned(3);
    assert_eq!(bench.step(), Some(Step::Verifying));
    bench.resumed(NEW);
    assert_eq!(bench.step(), None);
    bench.is_done_without(&[Step::Delivering, Step::Warming]);
    let record = bench.model.lineage.iterations()[1].reboot.clone().unwrap();
    assert_eq!((record.way, record.trim), (Way::Trim, Some(trim_record())));
    assert_eq!(
        (record.old_session, record.new_session, record.handoff_bytes),
        (Some(session(OLD)), Some(session(NEW)), 0)
    );
    assert!(record.verified);
}

#[test]
fn the_way_is_journaled_from_the_approval_on() {
    let mut bench = Bench::new();
    bench.offered();
    bench.press(KeyCode::Char('t'));
    bench.journal_answers = false;
    bench.press(KeyCode::Enter);
    let entry = bench.entries.last().unwrap();
    assert_eq!((entry.step, entry.way), (Step::Preparing, Way::Trim));
    assert_eq!(entry.trim, Some(trim_record()));
}

#[test]
fn t_chooses_the_trim_and_chooses_back() {
    let mut bench = Bench::new();
    bench.offered();
    let kind = |bench: &Bench| bench.model.reboot.attempt.as_ref().unwrap().kind;
    assert_eq!(kind(&bench), Kind::Fresh);
    bench.press(KeyCode::Char('t'));
    assert_eq!(kind(&bench), Kind::Trim);
    bench.press(KeyCode::Char('t'));
    bench.press(KeyCode::Enter);
    let effects = bench.exited(0);
    assert!(copies(&effects).is_empty() && starts(&effects)[0].prompt.is_some());
}

#[test]
fn a_trim_that_is_not_enough_or_not_needed_is_not_offered() {
    let cases = [
        (
            Ok(plan([155_000, 150_000, 145_000, 140_000, 130_000])),
            "without any tool output 130k would be left",
        ),
        (Ok(plan([90_000; 5])), "already below 122k"),
        (Err("no transcript".to_owned()), "no transcript"),
    ];
    for (plan, expected) in cases {
        let mut bench = Bench::new();
        let effects = bench.press(KeyCode::F(5));
        bench.planned(surveys(&effects)[0], plan);
        bench.press(KeyCode::Char('t'));
        let said = bench.model.view.notices.back().unwrap();
        assert!(said.bad && said.text.contains(expected), "{}", said.text);
        let kind = bench.model.reboot.attempt.as_ref().unwrap().kind;
        assert_eq!(kind, Kind::Fresh);
    }
}

#[test]
fn a_trim_chosen_before_it_is_known_waits_for_the_survey() {
    let mut bench = Bench::new();
    let effects = bench.press(KeyCode::F(5));
    bench.git();
    bench.press(KeyCode::Char('t'));
    assert!(signals(&bench.press(KeyCode::Enter)).is_empty());
    assert_eq!(bench.step(), Some(Step::Review));
    let bad = plan([155_000; 5]);
    bench.planned(surveys(&effects)[0], Ok(bad));
    assert!(
        signals(&bench.press(KeyCode::Enter)).is_empty(),
        "and it never becomes a fresh one by itself"
    );
    bench.press(KeyCode::Char('t'));
    assert_eq!(signals(&bench.press(KeyCode::Enter)), [StopSignal::Exit]);
}

#[test]
fn a_session_that_grows_under_review_is_surveyed_again_with_pauses() {
    let mut bench = Bench::new();
    let effects = bench.press(KeyCode::F(5));
    let first = surveys(&effects)[0];
    assert!(surveys(&bench.grown(2)).is_empty(), "one survey at a time");
    bench.wait(Duration::from_millis(500));
    let effects = bench.planned(first, Ok(good_plan()));
    let pause = first!(effects, Effect::SetTimer(id @ TimerId::Survey(_), pause) => (*id, *pause));
    let (timer, pause) = pause.unwrap();
    assert_eq!(pause, Duration::from_millis(4500));
    assert!(surveys(&bench.grown(3)).is_empty());
    let effects = bench.send(Event::TimerFired(timer));
    let second = surveys(&effects)[0];
    bench.planned(first, Err("late".to_owned()));
    bench.planned(second, Ok(good_plan()));
    bench.press(KeyCode::Esc);
    assert!(surveys(&bench.grown(4)).is_empty(), "no one looks");
}

#[test]
fn a_copy_that_cannot_be_made_takes_the_reboot_back() {
    let mut bench = Bench::new();
    let ask = bench.trimming();
    let effects = bench.copied(ask, Err("no space".to_owned()));
    let start = starts(&effects).remove(0);
    assert_eq!(
        (start.session, start.resume, start.prompt),
        (session(OLD), true, None)
    );
    bench.spawned(4);
    assert_eq!(bench.step(), None);
    let failure = bench.model.reboot.failure.clone().unwrap();
    assert!(failure.contains("no space"), "{failure}");
    assert_eq!(
        bench.journaled.iter().rev().take(2).collect::<Vec<_>>(),
        [&Step::Failed, &Step::RollingBack]
    );
    let iterations = bench.model.lineage.iterations();
    assert_eq!(iterations[1].parent, Some(iterations[0].iteration));
    assert_eq!(iterations.len(), 2);
}

#[test]
fn a_client_that_refuses_the_copy_takes_the_reboot_back() {
    let mut bench = Bench::new();
    let ask = bench.trimming();
    bench.copied(ask, Ok(trim_record()));
    bench.spawned(3);
    let start = starts(&bench.exited(1)).remove(0);
    assert_eq!((start.session, start.resume), (session(OLD), true));
    bench.spawned(4);
    bench.resumed(OLD);
    assert_eq!((bench.step(), bench.model.session.id), (None, session(OLD)));
}

#[test]
fn without_hooks_a_calm_title_or_a_growing_copy_proves_a_trim() {
    let mut bench = Bench::new();
    let ask = bench.trimming();
    bench.copied(ask, Ok(trim_record()));
    let effects = bench.spawned(3);
    let timer = first!(effects, Effect::SetTimer(id @ TimerId::Verify(_), _) => *id);
    bench.titled("✳ work");
    bench.send(Event::TimerFired(timer.unwrap()));
    assert_eq!(
        bench.step(),
        Some(Step::Verifying),
        "a dialog may stand there"
    );
    bench.ready();
    bench.send(Event::TimerFired(timer.unwrap()));
    assert_eq!(bench.step(), None);

    let mut bench = Bench::new();
    let ask = bench.trimming();
    bench.copied(ask, Ok(trim_record()));
    bench.spawned(3);
    bench.grown(4);
    assert_eq!(bench.step(), Some(Step::Verifying), "that is the copy");
    bench.grown(5);
    assert_eq!(bench.step(), None);
}

#[test]
fn late_words_of_the_old_session_prove_no_trim() {
    let mut bench = Bench::new();
    let ask = bench.trimming();
    bench.turn_ended(OLD);
    bench.copied(ask, Ok(trim_record()));
    bench.turn_ended(OLD);
    bench.spawned(3);
    assert_eq!(bench.step(), Some(Step::Verifying));
}

#[test]
fn an_undo_of_a_trim_resumes_the_whole_session() {
    let mut bench = Bench::new();
    let ask = bench.trimming();
    bench.copied(ask, Ok(trim_record()));
    bench.spawned(3);
    bench.resumed(NEW);
    assert_eq!(signals(&bench.control(Control::Undo)), [StopSignal::Exit]);
    let start = starts(&bench.exited(0)).remove(0);
    assert_eq!((start.session, start.resume), (session(OLD), true));
}

#[test]
fn a_script_may_choose_the_way() {
    let mut bench = Bench::new();
    let effects = bench.control(Control::RebootBy(Way::Trim));
    assert!(ordered(&effects).starts_with("the reboot waits for an approval"));
    bench.git();
    let refused = bench.control(Control::Approve);
    assert!(
        matches!(&refused[0], Effect::Answer(_, Reply::Refused { why }) if why.contains("still being read"))
    );
    bench.planned(surveys(&effects)[0], Ok(good_plan()));
    assert_eq!(
        signals(&bench.control(Control::Approve)),
        [StopSignal::Exit]
    );
    assert_eq!(copies(&bench.exited(0)).len(), 1);
}

#[test]
fn an_agent_without_transcripts_has_one_way() {
    let mut bench = Bench::new();
    bench.model.session.is_generic = true;
    let effects = bench.press(KeyCode::F(5));
    assert!(surveys(&effects).is_empty());
    bench.press(KeyCode::Char('t'));
    let kind = bench.model.reboot.attempt.as_ref().unwrap().kind;
    assert_eq!(kind, Kind::Fresh);
}

#[test]
fn a_session_left_under_review_is_not_the_one_that_is_trimmed() {
    let mut bench = Bench::new();
    bench.offered();
    bench.press(KeyCode::Char('t'));
    let effects = bench.session_starts(9, StartSource::Clear);
    let ask = surveys(&effects)[0];
    assert!(
        signals(&bench.press(KeyCode::Enter)).is_empty(),
        "nothing is known of it yet"
    );
    bench.planned(ask, Ok(good_plan()));
    bench.press(KeyCode::Enter);
    let effects = bench.exited(0);
    assert_eq!(copies(&effects)[0].1, session(9));
}
