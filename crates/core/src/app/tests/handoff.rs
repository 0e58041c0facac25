//! When a handoff is drafted, and what it does not say of its session: found, listed, added by key.

use super::*;
use crate::app::handoff::draft;
use pitstop_transcript::work::{FileAtHand, Work, WorkAtHand};

const RULE: &str = "Never touch main.";

/// A review of a session with three prompts, a file with an identifier, and a command.
fn reviewed() -> Bench {
    let mut bench = Bench::new();
    for prompt in ["Port the parser.", RULE, "Go on with the tests."] {
        bench.prompted(OLD, prompt);
        bench.turn_ended(OLD);
    }
    bench.model.draft.work = WorkAtHand {
        files: vec![FileAtHand {
            path: "src/parse.rs".to_owned(),
            names: vec!["read_all".to_owned()],
            ..FileAtHand::default()
        }],
        commands: vec!["cargo test".to_owned()],
        ..WorkAtHand::default()
    };
    draft(&mut bench.model);
    bench.review();
    assert_eq!(bench.step(), Some(Step::Review));
    bench
}

#[test]
fn the_handoff_says_whether_the_turn_runs() {
    let mut bench = Bench::new();
    bench.prompted(OLD, "Port the parser.");
    let mut work = Work::default();
    let said = serde_json::json!([{ "type": "text", "text": "I read it first." }]);
    work.take_record(&serde_json::json!({ "type": "assistant", "message": { "content": said } }));
    bench.model.draft.work = work.report();
    draft(&mut bench.model);
    let steps = "```\nagent: I read it first.\n```";
    for words in [
        "The turn was running when this was written",
        "The turn was over.",
    ] {
        let body = body(&bench);
        assert!(body.contains(words) && body.contains(steps), "{body}");
        bench.turn_ended(OLD);
    }
}

fn body(bench: &Bench) -> String {
    bench.model.draft.handoff.current().body().to_owned()
}

/// Takes a prompt and the identifier out.
fn shortened(bench: &mut Bench) {
    let base = body(bench);
    let line = base
        .lines()
        .find(|line| line.ends_with(&format!(": {RULE}")));
    let line = line.expect("the prompt in its list").to_owned();
    let body = base.replace(&format!("{line}\n"), "");
    let body = body.replace(": read_all", "");
    bench.edit_handoff(&base, &body);
}

fn finding(bench: &Bench) -> String {
    bench.model.draft.handoff.check.to_string()
}

#[test]
fn what_an_edit_took_out_is_found_listed_and_added_by_key() {
    let mut bench = reviewed();
    let whole = "nothing is missing: 3 prompts of yours and 3 recent facts were looked for";
    assert_eq!(finding(&bench), whole);
    bench.press(KeyCode::Char('m'));
    assert!(
        !bench.model.draft.handoff.lists_missing,
        "there is nothing to list"
    );
    bench.press(KeyCode::Char('+'));
    assert!(bench.model.draft.handoff.edited.is_none(), "nor to add");

    shortened(&mut bench);
    let part = "1 prompt of yours and 1 of 3 recent facts are not in it";
    assert_eq!(finding(&bench), part);
    bench.press(KeyCode::Char('m'));
    assert!(bench.model.draft.handoff.lists_missing);
    let list = bench.model.draft.handoff.check.to_document();
    assert!(
        list.contains(RULE) && list.contains("- read_all (src/parse.rs)"),
        "{list}"
    );
    assert!(!body(&bench).contains(RULE), "a look adds nothing");
    bench.press(KeyCode::Char('+'));
    assert_eq!(finding(&bench), whole);
    assert!(!bench.model.draft.handoff.lists_missing);
    let body = body(&bench);
    assert!(
        body.contains(RULE) && body.contains("- src/parse.rs: read_all\n"),
        "{body}"
    );
    assert!(
        bench.model.draft.handoff.edited.is_some(),
        "it is an edit like any other"
    );
    bench.press(KeyCode::Char('x'));
    assert!(bench.model.draft.handoff.edited.is_none());
    assert_eq!(finding(&bench), whole);
}

#[test]
fn a_prompt_that_was_taken_out_on_purpose_is_not_asked_for_again() {
    let mut bench = reviewed();
    shortened(&mut bench);
    bench.git();
    assert!(
        !body(&bench).contains(RULE),
        "it comes back by the key alone"
    );
    bench.press(KeyCode::Enter);
    bench.exited(0);
    bench.spawned(3);
    assert_eq!(bench.model.draft.signalled.prompts().count(), 2);
    assert_eq!(bench.model.draft.handoff.check.prompts, 2);
}

#[test]
fn where_no_handoff_is_wanted_none_is_compared() {
    let mut config = Config::default();
    config.handoff.generate_handoff = false;
    let mut bench = Bench::with(config);
    bench.prompted(OLD, RULE);
    bench.git();
    assert_eq!(
        bench.model.draft.handoff.check,
        pitstop_handoff::Check::default()
    );
    assert_eq!(crate::app::report::handoff(&bench.model).check, None);
}

/// An event that changes nothing.
fn look(bench: &mut Bench) {
    bench.send(Event::TimerFired(TimerId::Quiet));
}

fn add(bench: &mut Bench, item: &str) {
    let state = &mut bench.model.draft.signalled;
    state.add_pending(item, pitstop_handoff::preserved::Origin::Signal);
}

#[test]
fn it_is_drafted_by_the_next_event_when_what_it_is_made_of_has_changed_and_only_then() {
    let mut bench = Bench::new();
    bench.model.draft.handoff.generated.text = "not drafted again".to_owned();
    look(&mut bench);
    bench.used(50_000);
    bench.git();
    let text = |bench: &Bench| bench.model.draft.handoff.generated.text.clone();
    assert_eq!(text(&bench), "not drafted again");
    add(&mut bench, "mind the gulls");
    look(&mut bench);
    assert!(text(&bench).contains("mind the gulls"));
}

#[test]
fn it_stands_as_it_was_sent_until_the_process_of_the_next_session_runs() {
    let mut bench = Bench::new();
    let sent = bench.rebooted().prompt;
    add(&mut bench, "mind the gulls");
    look(&mut bench);
    let current = |bench: &Bench| Some(bench.model.draft.handoff.current().text.clone());
    assert_eq!(current(&bench), sent);
    bench.spawned(3);
    assert!(current(&bench).is_some_and(|text| text.contains("mind the gulls")));
}

#[test]
fn a_key_pins_a_prompt_or_drops_it_for_good() {
    let mut bench = reviewed();
    let line = |bench: &Bench| {
        let text = bench.model.draft.handoff.current().text.clone();
        text.lines()
            .find(|line| line.ends_with(RULE))
            .map(str::to_owned)
    };
    bench.press(KeyCode::Char('P'));
    let pinned = line(&bench).expect("it stands there");
    assert!(pinned.contains(", pinned: "), "{pinned}");
    bench.press(KeyCode::Char('P'));
    assert!(!line(&bench).expect("it stands there").contains("pinned"));
    bench.press(KeyCode::Char('D'));
    assert_eq!(line(&bench), None);
    bench.git();
    assert_eq!(line(&bench), None, "it does not come back");
    // Objective and latest request have sections of their own.
    bench.press(KeyCode::Char('D'));
    assert_eq!(bench.model.draft.signalled.prompts().count(), 2);
    bench.press(KeyCode::Esc);
    bench.prompted(OLD, RULE);
    assert_eq!(
        bench.model.draft.signalled.prompts().count(),
        3,
        "said anew"
    );
}

#[test]
fn the_list_of_what_is_missing_is_not_the_handoff_for_the_keys_about_prompts() {
    for key in ['P', 'D'] {
        let mut bench = reviewed();
        shortened(&mut bench);
        let before = (body(&bench), bench.model.draft.signalled.prompts().count());
        bench.press(KeyCode::Char('m'));
        assert!(bench.model.draft.handoff.lists_missing);
        bench.press(KeyCode::Char(key));
        let after = (body(&bench), bench.model.draft.signalled.prompts().count());
        assert_eq!(after, before, "{key}");
        assert!(
            bench.model.view.notices.back().is_some_and(|one| one.bad),
            "{key}"
        );
    }
    let mut bench = reviewed();
    shortened(&mut bench);
    bench.press(KeyCode::Char('m'));
    let effects = bench.press(KeyCode::Char('y'));
    let copied = first!(effects, Effect::Copy(text) => text.clone());
    assert_eq!(
        copied,
        Some(bench.model.draft.handoff.current().text.clone())
    );
}
