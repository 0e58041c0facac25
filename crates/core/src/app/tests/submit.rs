//! A prompt typed on request: one text, and Enters until it is taken.

use crate::app::{event::BridgeEvent, submit::GIVEN_WITHIN};
use pitstop_agent::bridge::{BridgeOrder, OrderId, Outcome, Refusal, Said};

use super::*;

/// A bench that was asked to type this, with the prompt's timer.
fn submission(text: &str) -> (Bench, TimerId) {
    let mut bench = Bench::new();
    bench.shows = false;
    let effects = say(&mut bench, text);
    let timer = timer_of(&effects).expect("it is looked whether it is shown");
    (bench, timer)
}

/// The same when the prompt box shows it and it is submitted.
fn submitted(text: &str) -> (Bench, TimerId) {
    let (mut bench, timer) = submission(text);
    assert_eq!(enters(&bench.prompt_box(holds(text))), 1);
    (bench, timer)
}

fn say(bench: &mut Bench, text: &str) -> Vec<Effect> {
    bench.control(Control::Say(text.to_owned()))
}

fn timer_of(effects: &[Effect]) -> Option<TimerId> {
    first!(effects, Effect::SetTimer(id @ TimerId::Enter(_), _) => *id)
}

fn enters(effects: &[Effect]) -> usize {
    assert!(!has!(effects, Effect::Paste(_)));
    all!(effects, Effect::Type(_) => ()).len()
}

/// Lets the prompt's timer run out; gives the Enters that this sends, and whether the prompt is looked at again.
fn look(bench: &mut Bench, timer: TimerId) -> (usize, bool) {
    bench.wait(Duration::from_secs(2));
    let effects = bench.send(Event::TimerFired(timer));
    (enters(&effects), timer_of(&effects).is_some())
}

fn pasted(effects: &[Effect]) -> Option<Vec<String>> {
    first!(effects, Effect::Paste(pieces) => pieces.clone())
}

fn refused(effects: &[Effect]) -> Option<&str> {
    first!(effects, Effect::Answer(_, Reply::Refused { why }) => why.as_str())
}

#[test]
fn a_prompt_that_is_taken_gets_one_enter() {
    let (mut bench, timer) = submitted("hello");
    bench.prompted(OLD, "hello");
    bench.prompt_box(PromptBox::Empty);
    assert_eq!(look(&mut bench, timer), (0, false));
}

#[test]
fn no_enter_is_pressed_before_the_prompt_box_shows_the_text_and_nothing_else() {
    let (mut bench, timer) = submission("hello");
    for other in [
        PromptBox::Absent,
        holds("hel"),
        holds("hello there"),
        PromptBox::Empty,
    ] {
        assert_eq!(enters(&bench.prompt_box(other)), 0);
    }
    assert_eq!(look(&mut bench, timer), (0, false));
    assert!(
        bench.notice().contains("does not show"),
        "{}",
        bench.notice()
    );
    assert_eq!(
        enters(&bench.prompt_box(holds("hello"))),
        0,
        "it was given up"
    );
}

#[test]
fn a_prompt_that_is_not_taken_gets_three_enters_and_then_an_error_is_shown() {
    let (mut bench, timer) = submitted("hello");
    assert_eq!(look(&mut bench, timer), (1, true));
    assert_eq!(look(&mut bench, timer), (1, true));
    assert_eq!(look(&mut bench, timer), (0, false));
    assert!(
        bench.notice().contains("not confirmed"),
        "{}",
        bench.notice()
    );
    assert_eq!(look(&mut bench, timer), (0, false));
}

#[test]
fn no_further_enter_goes_into_a_dialog_or_among_what_a_person_types() {
    let (mut bench, timer) = submitted("hello");
    bench.prompt_box(PromptBox::Absent);
    assert_eq!(look(&mut bench, timer), (0, true));
    bench.prompt_box(holds("hello"));
    assert_eq!(look(&mut bench, timer), (1, true), "the dialog is over");

    let (mut bench, timer) = submitted("hello");
    bench.press(KeyCode::Char('x'));
    bench.prompt_box(holds("hellox"));
    assert_eq!(look(&mut bench, timer), (0, true));

    let (mut bench, _) = submission("hello");
    bench.press(KeyCode::Left);
    assert_eq!(enters(&bench.prompt_box(holds("hello"))), 0);
    assert!(bench.notice().contains("you typed"), "{}", bench.notice());
}

#[test]
fn what_no_hook_reports_gets_one_enter() {
    for text in ["/compact", "!ls"] {
        let (mut bench, timer) = submitted(text);
        bench.prompt_box(PromptBox::Empty);
        assert_eq!(look(&mut bench, timer), (0, false), "{text}");
        assert!(!bench.model.session.submission.is_open());
    }
}

#[test]
fn another_prompt_is_no_proof() {
    let (mut bench, timer) = submitted("hello");
    bench.prompted(OLD, "<task-notification>");
    assert_eq!(look(&mut bench, timer), (1, true));
    bench.prompted(OLD, "<pasted_content>hello</pasted_content>");
    assert!(!bench.model.session.submission.is_open());
    assert!(
        bench.notice().contains("other text around it"),
        "{}",
        bench.notice()
    );
}

#[test]
fn nothing_is_joined_to_a_draft() {
    let mut bench = Bench::new();
    bench.prompt_box(holds("half written"));
    let effects = say(&mut bench, "go on");
    assert!(refused(&effects).is_some_and(|why| why.contains("not submitted")));
    assert!(!has!(effects, Effect::Paste(_)));
    bench.ready();
    assert_eq!(refused(&say(&mut bench, "go on")), None);
    // One at a time.
    assert!(refused(&say(&mut bench, "and on")).is_some_and(|why| why.contains("on its way")));
}

#[test]
fn a_long_text_goes_in_pieces_that_the_client_takes_for_the_humans_words() {
    let text = "a line of its own\n".repeat(40) + &"x".repeat(2_000);
    let mut bench = Bench::new();
    let effects = say(&mut bench, &text);
    let pieces = pasted(&effects).expect("a paste");
    assert_eq!(pieces.concat(), text);
    assert!(pieces.iter().all(|piece| piece.lines().count() <= 3));
    assert!(pieces.iter().all(|piece| piece.chars().count() <= 800));
}

#[test]
fn a_longer_text_waits_until_the_prompt_box_shows_what_was_typed_of_it() {
    let text = "日本語 and words\n".repeat(600);
    let mut bench = Bench::new();
    bench.shows = false;
    let wanted = text.trim_end();
    let mut typed = String::new();
    let mut portions = 0;
    let mut effects = say(&mut bench, &text);
    while let Some(pieces) = pasted(&effects) {
        let size: usize = pieces.iter().map(|piece| piece.len() + 12).sum();
        assert!(size <= 4_000, "{size}");
        typed.push_str(&pieces.concat());
        portions += 1;
        // What is not all of it makes nothing go on.
        assert_eq!(pasted(&bench.prompt_box(holds(&typed[3..]))), None);
        effects = bench.prompt_box(holds(&typed));
    }
    assert!(typed == wanted, "{} bytes typed", typed.len());
    assert_eq!(portions, 4);
    assert_eq!(enters(&effects), 1);

    // An older client would mix it up.
    let mut bench = Bench::new();
    bench.shows = false;
    bench.model.session.agent.version = Some("2.1.197".to_owned());
    let all = pasted(&say(&mut bench, &text)).expect("a paste").concat();
    assert!(all == wanted, "{} bytes", all.len());

    let mut bench = Bench::new();
    bench.shows = false;
    let first = pasted(&say(&mut bench, &text)).expect("a paste").concat();
    bench.press(KeyCode::Left);
    assert_eq!(pasted(&bench.prompt_box(holds(&first))), None);
    assert!(bench.notice().contains("you typed"), "{}", bench.notice());
}

#[test]
fn another_program_gets_the_text_and_then_a_carriage_return() {
    let mut bench = Bench::new();
    bench.model.session.is_generic = true;
    bench.prompt_box(PromptBox::Absent);
    let effects = say(&mut bench, "hello\nyou");
    assert!(effects.contains(&Effect::Paste(vec!["hello\nyou".to_owned()])));
    let timer = timer_of(&effects).expect("an Enter");
    let effects = bench.send(Event::TimerFired(timer));
    assert!(effects.contains(&Effect::Type(b"\r".to_vec())));
    assert!(!bench.model.session.submission.is_open());
}

#[test]
fn nothing_is_said_into_the_agent_view() {
    let mut bench = Bench::new();
    let refused = |effects: &[Effect]| refused(effects).is_some();
    bench.titled("1 awaiting input · claude agents");
    let notice = &bench.model.view.notices.back().expect("a notice").text;
    assert!(notice.starts_with("agent view:"), "{notice}");
    assert!(refused(&say(&mut bench, "hello")));
    bench.titled("✳ Claude Code");
    assert!(!refused(&say(&mut bench, "hello")));
}

/// A session with the bridge in force, that was asked to say this; with the order, if one was given.
fn said_by_bridge(text: &str) -> (Bench, Vec<Effect>, Option<OrderId>) {
    let mut bench = Bench::bridged();
    bench.shows = false;
    let effects = say(&mut bench, text);
    let order = first!(effects, Effect::OrderBridge {
        id,
        order: BridgeOrder::FillDraft { text: given, .. },
        ..
    } => {
        assert_eq!(given.trim_end(), text);
        *id
    });
    (bench, effects, order)
}

/// The same, where the order must be given and nothing typed.
fn ordered_prompt(text: &str) -> (Bench, OrderId) {
    let (bench, effects, order) = said_by_bridge(text);
    types_nothing(&effects);
    (
        bench,
        order.expect("the client's own side is to fill it in"),
    )
}

fn filled(id: OrderId) -> Said {
    Said::Answered(id, Outcome::Filled(Ok(())))
}

/// A box that shows the end of a text, and no more.
fn scrolled(end: &str) -> PromptBox {
    PromptBox::Holds(ShownPrompt {
        rows: vec![end.to_owned()],
        whole: false,
        scrolled: Some((7, 0)),
        room: 80,
    })
}

fn taken_back(bench: &mut Bench, id: OrderId, was_taken: bool) -> Vec<Effect> {
    bench.send(Event::Bridge(BridgeEvent::Cancelled { id, was_taken }))
}

fn order_timer(bench: &mut Bench, id: OrderId) -> Vec<Effect> {
    bench.send(Event::TimerFired(TimerId::Order(id)))
}

fn types_nothing(effects: &[Effect]) {
    let typed = has!(effects, Effect::Paste(_) | Effect::Type(_));
    assert!(!typed, "{effects:?}");
}

#[test]
fn what_the_bridge_has_filled_in_gets_a_real_enter_once_the_box_holds_it() {
    let long = "word ".repeat(9_000);
    for text in [
        "hello\nand more",
        "look at @src/lib.rs",
        "日本語\n\n\t한국어",
        long.trim(),
    ] {
        // By the screen, and where that shows its end alone by the client's own word.
        for by_screen in [true, false] {
            let (mut bench, id) = ordered_prompt(text);
            types_nothing(&bench.bridge_says(OLD, filled(id)));
            types_nothing(&order_timer(&mut bench, id));
            let effects = if by_screen {
                bench.prompt_box(holds(text))
            } else {
                types_nothing(&bench.prompt_box(scrolled("of an end")));
                bench.drafts(&format!("{text} "), 0)
            };
            assert_eq!(enters(&effects), 1, "{text}");
            types_nothing(&bench.prompted(OLD, text));
            assert!(!bench.model.session.submission.is_open());
        }
    }
}

#[test]
fn no_enter_follows_what_the_bridge_has_filled_in_where_a_dialog_or_a_person_came_between() {
    let (mut bench, id) = ordered_prompt("hello");
    bench.prompt_box(PromptBox::Absent);
    let mut effects = bench.bridge_says(OLD, filled(id));
    effects.extend(bench.drafts("hello", 5));
    types_nothing(&effects);
    // The dialog is gone.
    assert_eq!(enters(&bench.prompt_box(holds("hello"))), 1);

    let (mut bench, id) = ordered_prompt("hello");
    bench.bridge_says(OLD, filled(id));
    bench.press(KeyCode::Char('x'));
    types_nothing(&bench.prompt_box(holds("hello")));
    assert!(bench.notice().contains("you typed"), "{}", bench.notice());
}

#[test]
fn a_prompt_that_the_bridge_is_known_not_to_have_filled_in_is_typed_once() {
    let unanswered = Outcome::Filled(Err(Refusal::Unanswered));
    let unknown = Outcome::Filled(Err(Refusal::Unknown));
    let failed = Outcome::Failed("dropped".into());
    for outcome in [None, Some(unanswered), Some(unknown), Some(failed)] {
        let (mut bench, id) = ordered_prompt("hello");
        let effects = if let Some(outcome) = outcome {
            bench.bridge_says(OLD, Said::Answered(id, outcome))
        } else {
            let effects = order_timer(&mut bench, id);
            assert_eq!(effects, [Effect::CancelOrder(id)]);
            taken_back(&mut bench, id, false)
        };
        assert_eq!(pasted(&effects), Some(vec!["hello".to_owned()]));
        // What comes late changes nothing.
        types_nothing(&bench.bridge_says(OLD, filled(id)));
        types_nothing(&taken_back(&mut bench, id, false));
        bench.prompted(OLD, "hello");
        assert!(!bench.model.session.submission.is_open());
    }
}

#[test]
fn a_prompt_that_the_bridge_may_have_filled_in_is_not_given_again() {
    for end in ["unanswered", "gone"] {
        let (mut bench, id) = ordered_prompt("hello");
        let mut effects = if end == "unanswered" {
            order_timer(&mut bench, id);
            let effects = taken_back(&mut bench, id, true);
            assert!(effects.contains(&Effect::SetTimer(TimerId::Order(id), GIVEN_WITHIN)));
            order_timer(&mut bench, id);
            taken_back(&mut bench, id, true)
        } else {
            bench.exited(1);
            taken_back(&mut bench, id, true)
        };
        effects.extend(bench.prompt_box(PromptBox::Empty));
        types_nothing(&effects);
        assert!(!bench.model.session.submission.is_open(), "{end}");
        let reported = bench.notice().contains("not known");
        assert!(reported, "{end}: {}", bench.notice());
    }
}

#[test]
fn the_hook_s_proof_counts_before_the_bridge_s_answer() {
    let (mut bench, id) = ordered_prompt("hello");
    bench.prompted(OLD, "hello");
    assert!(!bench.model.session.submission.is_open());
    let before = bench.model.view.notices.len();
    types_nothing(&taken_back(&mut bench, id, false));
    assert_eq!(bench.model.view.notices.len(), before);
}

#[test]
fn a_prompt_goes_neither_into_a_dialog_nor_over_a_draft_that_the_bridge_knows_of() {
    for refusal in [Refusal::Dialog, Refusal::Draft] {
        let (mut bench, id) = ordered_prompt("hello");
        let refused = Said::Answered(id, Outcome::Filled(Err(refusal)));
        types_nothing(&bench.bridge_says(OLD, refused));
        assert!(bench.notice().contains("not given"), "{}", bench.notice());
    }
    let (mut bench, id) = ordered_prompt("hello");
    bench.press(KeyCode::Char('x'));
    types_nothing(&taken_back(&mut bench, id, false));
    assert!(bench.notice().contains("you typed"), "{}", bench.notice());
}

#[test]
fn what_changes_the_box_s_mode_by_being_typed_is_typed() {
    for text in ["/compact", "!ls", "#note"] {
        let (_, effects, order) = said_by_bridge(text);
        assert_eq!(order, None, "{text}");
        let typed = pasted(&effects).map(|pieces| pieces.concat());
        assert_eq!(typed.as_deref().map(str::trim_end), Some(text));
    }
}
