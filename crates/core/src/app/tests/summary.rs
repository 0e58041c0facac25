//! When a summary is ordered, which one counts, and what the record says of it.

use crate::{api::wire::ApiEventKind, app::event::SummaryId};
use pitstop_handoff::summary::{Outcome, SummaryMade, SummarySource};

use super::*;

const WARN: u64 = 130_000;
const COMPACT: u64 = 160_000;

/// A supervisor that asks a model, which has answered nothing yet.
fn asking() -> Bench {
    let mut config = Config::default();
    config.reboot.mode = RebootMode::Manual;
    let mut bench = Bench::as_configured(config);
    bench.reads = false;
    bench
}

fn ordered(effects: &[Effect]) -> Option<(SummaryId, bool)> {
    first!(effects, Effect::Summarize { id, ask } => (*id, *ask))
}

/// The order that asks a model.
#[track_caller]
fn asked(effects: &[Effect]) -> SummaryId {
    match ordered(effects) {
        Some((id, true)) => id,
        other => panic!("expected an order that asks, found {other:?}"),
    }
}

/// Usage has passed the warn line, and what was under way has had its time.
#[track_caller]
fn warned(bench: &mut Bench) -> Vec<Effect> {
    let timer = settling(&bench.used(WARN));
    bench.send(Event::TimerFired(timer))
}

#[track_caller]
fn settling(effects: &[Effect]) -> TimerId {
    first!(effects, Effect::SetTimer(id @ TimerId::Summary(_), _) => *id).expect("a timer")
}

/// The transcript has been read; these are the last words in it.
fn read(bench: &mut Bench, id: SummaryId, last: &str) -> Vec<Effect> {
    bench.model.draft.work.last_words = vec![last.to_owned()];
    bench.send(Event::Read(ReadEvent::TranscriptRead { id, read: Ok(()) }))
}

/// The summary without a model of a session with one thing to do, as the bench's scratchpad says, and these last words.
fn plain(last: &str) -> String {
    format!(
        "### Pending Tasks\n\n- next\n\n### Current State\n\n0 of 1 items are done.\n\nThe last words: {last}"
    )
}

fn answered(bench: &mut Bench, id: SummaryId, text: Result<&str, &str>) -> Vec<Effect> {
    let outcome = Outcome {
        text: text.map(str::to_owned).map_err(str::to_owned),
        cost_usd: Some(0.25),
        duration_ms: 9_000,
    };
    bench.send(Event::Read(ReadEvent::Summarized { id, outcome }))
}

fn made(bench: &Bench, iteration: usize) -> SummaryMade {
    let record = &bench.model.lineage.iterations()[iteration - 1];
    record
        .summary_made
        .clone()
        .expect("a record of the summary")
}

/// The summary in the first iteration's record.
fn summary(bench: &Bench) -> &str {
    let record = &bench.model.lineage.iterations()[0];
    record.summary.as_deref().unwrap_or_default()
}

fn shown(bench: &Bench) -> &str {
    &bench.model.draft.handoff.current().text
}

fn cancelled(effects: &[Effect]) -> bool {
    effects.contains(&Effect::CancelSummary)
}

fn fallback(reason: &str) -> SummaryMade {
    SummaryMade {
        source: SummarySource::Fallback,
        cost_usd: None,
        duration_ms: None,
        reason: Some(reason.to_owned()),
    }
}

#[test]
fn a_model_is_asked_once_at_the_warn_line() {
    let mut bench = asking();
    assert_eq!(ordered(&bench.used(100_000)), None);
    let id = asked(&warned(&mut bench));
    assert_eq!(ordered(&bench.used(WARN + 1_000)), None);
    assert_eq!(ordered(&bench.used(COMPACT)), None);
    let effects = read(&mut bench, id, "plain");
    let iteration = bench.model.session.iteration();
    let text = plain("plain");
    assert!(effects.contains(&Effect::SaveSummary { iteration, text }));
    // The handoff says it by itself.
    assert!(!shown(&bench).contains("## Summary"));
    assert_eq!(made(&bench, 1), fallback("the model has not answered yet"));
    let effects = answered(&mut bench, id, Ok("### User Intent\n\nwise"));
    assert!(has!(effects, Effect::SaveIteration(..)));
    assert!(shown(&bench).contains("## Summary of the session before\n\n### User Intent\n\nwise"));
    let by_model = SummaryMade {
        source: SummarySource::Model,
        cost_usd: Some(0.25),
        duration_ms: Some(9_000),
        reason: None,
    };
    assert_eq!(made(&bench, 1), by_model);
    // Nothing has happened since: a reboot takes it as it is, and need not wait.
    assert_eq!(ordered(&bench.press(KeyCode::F(5))), None);
    bench.git();
    assert_eq!(bench.step(), Some(Step::Review));
}

#[test]
fn what_the_session_does_not_show_is_counted_when_the_summary_comes() {
    for (text, said) in [
        ("wise", "the summary is written, in 9 s"),
        (
            "a.rs (not found in the session)",
            "in 9 s; 1 name or number in it is not found in the session, and marked",
        ),
        (
            "a (not found in the session)\n(not found in the session: `b`)",
            "; 2 names or numbers in it are not found in the session, and marked",
        ),
    ] {
        let mut bench = asking();
        let id = asked(&warned(&mut bench));
        read(&mut bench, id, "plain");
        answered(&mut bench, id, Ok(text));
        let mut shown = bench.model.view.notices.iter();
        assert!(!shown.any(|one| one.text.contains("summary is written")));
        let noted = &bench.model.view.log.back().expect("a message").text;
        assert!(noted.ends_with(said), "{noted}");
    }
}

#[test]
fn a_line_crossed_in_a_turn_waits_for_its_end_but_not_for_ever() {
    let mut bench = asking();
    bench.prompted(OLD, "work");
    let effects = bench.used(WARN);
    assert_eq!(ordered(&effects), None);
    asked(&bench.turn_ended(OLD));

    let mut bench = asking();
    bench.prompted(OLD, "work");
    let timer = settling(&bench.used(WARN));
    asked(&bench.send(Event::TimerFired(timer)));
    assert_eq!(ordered(&bench.send(Event::TimerFired(timer))), None);
    assert_eq!(ordered(&bench.turn_ended(OLD)), None);

    // The figure was here before the hook that says that a turn runs.
    let mut bench = asking();
    assert_eq!(ordered(&bench.used(WARN)), None);
    bench.prompted(OLD, "work");
    asked(&bench.turn_ended(OLD));
}

#[test]
fn a_reboot_has_it_written_again_only_if_turns_have_passed() {
    let mut bench = asking();
    let first = asked(&warned(&mut bench));
    read(&mut bench, first, "plain");
    answered(&mut bench, first, Ok("wise"));
    bench.turn_ended(OLD);
    bench.git();
    assert!(shown(&bench).contains("(Written 1 turn before the end of the session.)\n\nwise"));
    let second = asked(&bench.press(KeyCode::F(5)));
    bench.git();
    // The review waits for the transcript alone.
    assert_eq!(bench.step(), Some(Step::Drafting));
    read(&mut bench, second, "plainer");
    assert_eq!(bench.step(), Some(Step::Review));
    assert!(
        shown(&bench).contains("\n\nwise"),
        "better a little old than without a model"
    );
    answered(&mut bench, second, Ok("wiser"));
    assert!(shown(&bench).contains("\n\nwiser") && !shown(&bench).contains("(Written"));
    assert_eq!(ordered(&answered(&mut bench, first, Ok("late"))), None);
    assert!(!shown(&bench).contains("late"));
}

#[test]
fn what_the_human_has_edited_stays_when_the_summary_arrives() {
    let mut bench = asking();
    let id = asked(&bench.press(KeyCode::F(5)));
    bench.git();
    read(&mut bench, id, "plain");
    bench.edit_handoff("", "\nmine");
    answered(&mut bench, id, Ok("wise"));
    assert!(shown(&bench).ends_with("\nmine"));
    assert_eq!(made(&bench, 1).source, SummarySource::Model);
}

#[test]
fn an_approval_waits_for_no_model_and_the_record_says_so() {
    let mut bench = asking();
    let id = asked(&bench.press(KeyCode::F(5)));
    bench.git();
    read(&mut bench, id, "plain");
    let effects = bench.press(KeyCode::Enter);
    assert!(cancelled(&effects), "{effects:?}");
    let why = "the reboot was approved before the model had answered";
    assert_eq!(made(&bench, 1), fallback(why));
    answered(&mut bench, id, Ok("late"));
    let effects = bench.exited(0);
    let prompt = starts(&effects).remove(0).prompt;
    assert!(!prompt.unwrap().contains("## Summary"));
    let text = format!("Summary generation failed: {why}\n\n{}", plain("plain"));
    assert_eq!(summary(&bench), text);
    assert_eq!(made(&bench, 1), fallback(why));
    bench.spawned(3);
    let next = &bench.model.lineage.iterations()[1];
    assert_eq!(next.summary, None, "the next session has none yet");
}

#[test]
fn a_failure_leaves_the_one_without_a_model_and_its_reason() {
    let mut bench = asking();
    let id = asked(&warned(&mut bench));
    read(&mut bench, id, "plain");
    for why in [
        "no section \"Code\"",
        "größer als erlaubt",
        "over $0.10",
        "API Error: 529 Overloaded",
    ] {
        let mut bench = asking();
        let id = asked(&warned(&mut bench));
        read(&mut bench, id, "plain");
        assert_eq!(summary(&bench), plain("plain"));
        let effects = answered(&mut bench, id, Err(why));
        let line = format!("Summary generation failed: {why}");
        assert_eq!(summary(&bench), format!("{line}\n\n{}", plain("plain")));
        assert!(
            has!(effects, Effect::Publish(event) if event.kind == ApiEventKind::Summary
                && event.data["message"] == line)
        );
        // Read again for a reboot, it still says so; and so does the file.
        let effects = bench.press(KeyCode::F(5));
        assert!(summary(&bench).starts_with(&line), "{effects:?}");
    }
    answered(&mut bench, id, Err("API Error: 529 Overloaded"));
    let expected = SummaryMade {
        cost_usd: Some(0.25),
        duration_ms: Some(9_000),
        ..fallback("API Error: 529 Overloaded")
    };
    assert_eq!(made(&bench, 1), expected);
    let view = &bench.model.view;
    let shown = view
        .notices
        .iter()
        .any(|notice| notice.text.contains("529"));
    assert!(!shown, "{:?}", view.notices);
    let message = view.log.back().unwrap();
    assert!(!message.bad, "the handoff has a summary all the same");
    let said = "no summary by the model: API Error: 529 Overloaded; \
        the handoff has one made from the transcript instead ([summary] sets the model and its limits)";
    assert_eq!(message.text, said);
    // In the same breath it is not asked again; after a turn it is.
    let effects = bench.press(KeyCode::F(5));
    let Some((again, false)) = ordered(&effects) else {
        panic!("the transcript is read again, no model is asked: {effects:?}")
    };
    bench.git();
    read(&mut bench, again, "plain as well");
    assert_eq!(made(&bench, 1), expected);
    assert!(summary(&bench).ends_with(&plain("plain as well")));
    bench.press(KeyCode::Esc);
    bench.turn_ended(OLD);
    asked(&bench.press(KeyCode::F(5)));
}

#[test]
fn a_renewal_that_fails_leaves_the_older_one_with_its_age() {
    let mut bench = asking();
    let first = asked(&warned(&mut bench));
    read(&mut bench, first, "plain");
    answered(&mut bench, first, Ok("wise"));
    bench.turn_ended(OLD);
    bench.turn_ended(OLD);
    let second = asked(&bench.press(KeyCode::F(5)));
    bench.git();
    read(&mut bench, second, "plainer");
    answered(&mut bench, second, Err("no answer within 60 s"));
    assert!(shown(&bench).contains("(Written 2 turns before the end of the session.)\n\nwise"));
    let message = &bench.model.view.log.back().unwrap().text;
    assert!(
        message.contains("the handoff keeps the earlier one"),
        "{message}"
    );
    let found = made(&bench, 1);
    assert_eq!(found.source, SummarySource::Model);
    assert_eq!(found.cost_usd, Some(0.5));
    assert_eq!(
        found.reason.as_deref(),
        Some("written 2 turns before the end, and not again: no answer within 60 s")
    );
}

#[test]
fn switched_off_no_model_is_asked_and_the_transcript_is_read_at_the_reboot() {
    let mut bench = Bench::new();
    bench.reads = false;
    assert_eq!(ordered(&bench.used(WARN)), None);
    let effects = bench.press(KeyCode::F(5));
    let Some((id, false)) = ordered(&effects) else {
        panic!("{effects:?}")
    };
    bench.git();
    assert_eq!(bench.step(), Some(Step::Drafting));
    read(&mut bench, id, "plain");
    assert_eq!(bench.step(), Some(Step::Review));
    assert_eq!(made(&bench, 1), fallback("generate_summaries is off"));
}

#[test]
fn a_transcript_that_cannot_be_read_holds_nothing_up() {
    let mut bench = asking();
    let id = asked(&bench.press(KeyCode::F(5)));
    bench.git();
    let read = Err("no transcript is known".to_owned());
    bench.send(Event::Read(ReadEvent::TranscriptRead { id, read }));
    assert_eq!(bench.step(), Some(Step::Review));
    assert!(!shown(&bench).contains("## Summary"));
    assert_eq!(bench.model.lineage.iterations()[0].summary_made, None);

    // One that is read for ever, neither.
    let mut bench = asking();
    let id = asked(&bench.press(KeyCode::F(5)));
    bench.git();
    assert_eq!(bench.step(), Some(Step::Drafting));
    bench.send(Event::TimerFired(TimerId::Summary(id.0)));
    assert_eq!(bench.step(), Some(Step::Review));
    self::read(&mut bench, id, "after all");
    assert_eq!(summary(&bench), plain("after all"));
    let effects = bench.send(Event::TimerFired(TimerId::Summary(id.0)));
    assert!(cancelled(&effects), "{effects:?}");
    assert_eq!(made(&bench, 1).reason.as_deref(), Some("no answer"));
}

/// A supervisor in `auto` mode at the compact line, with its order.
fn automatic() -> (Bench, SummaryId) {
    let mut config = Config::default();
    config.reboot.mode = RebootMode::Auto;
    let mut bench = Bench::as_configured(config);
    bench.reads = false;
    bench.turn_ended(OLD);
    bench.turn_ended(OLD);
    let id = asked(&bench.used(COMPACT));
    bench.send(Event::TimerFired(TimerId::Age));
    bench.git();
    read(&mut bench, id, "plain");
    (bench, id)
}

#[test]
fn auto_mode_waits_for_the_model() {
    let (mut bench, id) = automatic();
    assert_eq!(bench.step(), Some(Step::Drafting));
    answered(&mut bench, id, Ok("wise"));
    assert_eq!(bench.step(), Some(Step::Review));
    assert!(shown(&bench).contains("wise"));

    let (mut bench, id) = automatic();
    answered(&mut bench, id, Err("no"));
    assert_eq!(bench.step(), Some(Step::Review));

    let (mut bench, id) = automatic();
    bench.send(Event::TimerFired(TimerId::Summary(id.0)));
    assert_eq!(bench.step(), Some(Step::Review), "even if no one answers");
}

#[test]
fn a_person_who_cannot_wait_need_not() {
    let (mut bench, _) = automatic();
    bench.press(KeyCode::F(5));
    let effects = bench.press(KeyCode::Enter);
    assert!(cancelled(&effects));
    assert_eq!(bench.step(), Some(Step::Ending));
}

#[test]
fn whoever_leaves_or_loses_the_agent_asks_no_model_any_more() {
    let mut bench = asking();
    asked(&warned(&mut bench));
    assert!(cancelled(&bench.press(KeyCode::F(10))));

    let mut bench = asking();
    bench.press(KeyCode::F(10));
    assert_eq!(ordered(&bench.used(WARN)), None, "nor begins to ask one");

    let mut bench = asking();
    let id = asked(&warned(&mut bench));
    assert!(cancelled(&bench.exited(1)));
    read(&mut bench, id, "late");
    assert_ne!(summary(&bench), plain("late"));
}

#[test]
fn another_session_has_another_summary() {
    let mut bench = asking();
    let id = asked(&warned(&mut bench));
    read(&mut bench, id, "plain");
    let effects = bench.session_starts(9, StartSource::Clear);
    assert!(cancelled(&effects), "{effects:?}");
    assert_eq!(bench.model.draft.summary.current, None);
}

#[test]
fn a_generic_agent_has_no_summary() {
    let mut bench = asking();
    bench.model.session.is_generic = true;
    assert_eq!(ordered(&bench.used(WARN)), None);
    assert_eq!(ordered(&bench.press(KeyCode::F(5))), None);
    bench.git();
    assert_eq!(bench.step(), Some(Step::Review));
}

#[test]
fn what_a_summary_has_cost_counts_for_the_cap_of_a_run() {
    let mut bench = asking();
    let spent = |bench: &Bench| crate::app::facts::spent(&bench.model).cost_usd;
    let before = spent(&bench);
    let id = asked(&warned(&mut bench));
    read(&mut bench, id, "plain");
    answered(&mut bench, id, Ok("wise"));
    let more = spent(&bench) - before;
    assert!((more - 0.25).abs() < 0.001, "{more}");
}

#[test]
fn each_asking_has_its_cost_on_record() {
    let mut bench = asking();
    let first = asked(&warned(&mut bench));
    read(&mut bench, first, "plain");
    answered(&mut bench, first, Ok("wise"));
    assert_eq!(made(&bench, 1).cost_usd, Some(0.25));
    bench.turn_ended(OLD);
    let second = asked(&bench.press(KeyCode::F(5)));
    bench.git();
    read(&mut bench, second, "plainer");
    answered(&mut bench, second, Ok("wiser"));
    assert_eq!(made(&bench, 1).cost_usd, Some(0.5));
}

#[test]
fn no_model_is_asked_on_about_what_a_rewind_has_taken_back() {
    let facts = |prompt: &str, rewound: Option<&str>| crate::app::event::TranscriptFacts {
        prompt: Some(prompt.to_owned()),
        rewound: rewound.map(str::to_owned),
        whole: true,
        ..Default::default()
    };
    let mut bench = asking();
    bench.prompted(OLD, "build it");
    bench.facts_read(facts("u1", None));
    asked(&warned(&mut bench));
    assert!(!cancelled(&bench.facts_read(facts("u1", None))));
    assert!(cancelled(&bench.facts_read(facts("u2", Some("u1")))));
}

#[test]
fn a_summary_that_a_rewind_or_a_clear_has_dropped_has_cost_its_price() {
    let facts = |prompt: &str, rewound: Option<&str>| crate::app::event::TranscriptFacts {
        prompt: Some(prompt.to_owned()),
        rewound: rewound.map(str::to_owned),
        whole: true,
        ..Default::default()
    };
    for is_cleared in [false, true] {
        let mut bench = asking();
        bench.prompted(OLD, "build it");
        bench.facts_read(facts("u1", None));
        let first = asked(&warned(&mut bench));
        read(&mut bench, first, "plain");
        answered(&mut bench, first, Ok("wise"));
        assert_eq!(made(&bench, 1).cost_usd, Some(0.25));
        if is_cleared {
            bench.session_starts(9, StartSource::Clear);
        } else {
            bench.facts_read(facts("u2", Some("u1")));
        }
        assert_eq!(bench.model.draft.summary.current, None);
        let second = asked(&bench.press(KeyCode::F(5)));
        bench.git();
        read(&mut bench, second, "plainer");
        assert_eq!(made(&bench, 1).cost_usd, Some(0.25), "{is_cleared}");
        answered(&mut bench, second, Ok("wiser"));
        assert_eq!(made(&bench, 1).cost_usd, Some(0.5), "{is_cleared}");
    }
}
