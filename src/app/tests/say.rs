//! A prompt typed for somebody: one text, and Enters until it is taken.

use super::*;

/// A bench that was asked to say this, with the prompt's timer.
fn saying(text: &str) -> (Bench, TimerId) {
    let mut bench = Bench::new();
    let effects = say(&mut bench, text);
    let timer = timer_of(&effects).expect("an Enter is due");
    (bench, timer)
}

fn say(bench: &mut Bench, text: &str) -> Vec<Effect> {
    bench.tell(Event::ControlAsked {
        call: CallId(1),
        control: Control::Say(text.to_owned()),
    })
}

fn timer_of(effects: &[Effect]) -> Option<TimerId> {
    effects.iter().find_map(|effect| match effect {
        Effect::SetTimer(id @ TimerId::Enter(_), _) => Some(*id),
        _ => None,
    })
}

/// Lets the prompt's timer run out; gives the Enters that this sends, and whether the prompt is looked at again.
fn look(bench: &mut Bench, timer: TimerId) -> (usize, bool) {
    bench.wait(Duration::from_secs(2));
    let effects = bench.tell(Event::TimerFired(timer));
    assert!(!effects.iter().any(|one| matches!(one, Effect::Paste(_))));
    let enters = effects
        .iter()
        .filter(|one| matches!(one, Effect::Type(_)))
        .count();
    (enters, timer_of(&effects).is_some())
}

#[test]
fn a_prompt_that_is_taken_gets_one_enter() {
    let (mut bench, timer) = saying("hello");
    assert_eq!(look(&mut bench, timer), (1, true));
    bench.prompted(OLD, "hello");
    assert_eq!(look(&mut bench, timer), (0, false));
}

#[test]
fn a_prompt_that_is_not_taken_gets_three_enters_and_then_the_human_is_told() {
    let (mut bench, timer) = saying("hello");
    for _ in 0..3 {
        assert_eq!(look(&mut bench, timer), (1, true));
    }
    assert_eq!(look(&mut bench, timer), (0, false));
    let notice = &bench.model.notices.back().expect("a notice").text;
    assert!(notice.contains("not confirmed"), "{notice}");
    assert_eq!(look(&mut bench, timer), (0, false));
}

#[test]
fn no_enter_goes_into_a_dialog_or_among_what_a_person_types() {
    let (mut bench, timer) = saying("hello");
    look(&mut bench, timer);
    bench.tell(Event::Agent(AgentEvent::DialogOpened {
        session: session(OLD),
        about: "Bash".to_owned(),
    }));
    assert_eq!(look(&mut bench, timer), (0, false));

    let (mut bench, timer) = saying("hello");
    look(&mut bench, timer);
    bench.press(KeyCode::Char('x'));
    assert_eq!(look(&mut bench, timer), (0, false));
}

#[test]
fn what_no_hook_tells_of_gets_one_enter() {
    for text in ["/compact", "!ls"] {
        let (mut bench, timer) = saying(text);
        assert_eq!(look(&mut bench, timer), (1, false), "{text}");
    }
}

#[test]
fn a_prompt_before_its_enter_is_somebody_elses() {
    let (mut bench, timer) = saying("hello");
    bench.prompted(OLD, "mine");
    assert_eq!(look(&mut bench, timer), (1, true));
}

#[test]
fn nothing_is_said_into_the_agent_view() {
    let mut bench = Bench::new();
    let refused = |effects: &[Effect]| {
        effects
            .iter()
            .any(|one| matches!(one, Effect::Answer(_, Reply::Refused { .. })))
    };
    let title = |title: &str| Event::Pane(PaneEvent::Screen(ScreenFact::Title(title.to_owned())));
    bench.tell(title("1 awaiting input · claude agents"));
    let notice = &bench.model.notices.back().expect("a notice").text;
    assert!(notice.starts_with("agent view:"), "{notice}");
    assert!(refused(&say(&mut bench, "hello")));
    bench.tell(title("✳ Claude Code"));
    assert!(!refused(&say(&mut bench, "hello")));
}
