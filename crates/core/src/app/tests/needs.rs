//! What a person is needed for: called once for each occasion, and taken back.

use super::*;
use crate::api::wire::NeedKind;
use pitstop_agent::Failure;

/// The calls, and the calls that are taken back.
fn calls(effects: &[Effect]) -> (Vec<NeedKind>, Vec<NeedKind>) {
    let called = effects.iter().filter_map(|effect| match effect {
        Effect::Call(need) => Some(need.kind),
        _ => None,
    });
    let settled = effects.iter().filter_map(|effect| match effect {
        Effect::Settled(need) => Some(need.kind),
        _ => None,
    });
    (called.collect(), settled.collect())
}

fn asks(about: &str) -> Event {
    Event::Agent(AgentEvent::DialogOpened {
        session: session(OLD),
        about: about.to_owned(),
    })
}

#[test]
fn a_question_is_called_once_and_taken_back_and_the_next_is_another() {
    let mut bench = Bench::new();
    bench.prompted(OLD, "work");
    let effects = bench.send(asks("Bash"));
    assert_eq!(calls(&effects), (vec![NeedKind::Question], vec![]));
    let first = bench.model.outside.needs[0].clone();
    assert_eq!((first.why.as_str(), first.called), ("Bash", true));
    // The client reports it twice.
    bench.wait(Duration::from_millis(400));
    let effects = bench.send(asks("Claude needs your permission to use Bash"));
    assert_eq!(calls(&effects), (vec![], vec![]));
    assert_eq!(bench.model.outside.needs[0].id, first.id);
    let effects = bench.prompted(OLD, "more");
    assert_eq!(calls(&effects), (vec![], vec![NeedKind::Question]));
    let effects = bench.send(asks("Edit"));
    assert_eq!(calls(&effects), (vec![NeedKind::Question], vec![]));
    assert_ne!(bench.model.outside.needs[0].id, first.id);
}

#[test]
fn a_reboot_waits_once_for_each_level_and_one_of_a_person_calls_nobody() {
    let mut bench = Bench::new();
    bench.prompted(OLD, "work");
    let effects = bench.used(155_000);
    assert_eq!(calls(&effects), (vec![NeedKind::Review], vec![]));
    assert_eq!(bench.model.outside.needs[0].why, "the context is 86 % full");
    bench.turn_ended(OLD);
    let effects = bench.send(control(Control::Approve));
    assert_eq!(calls(&effects).1, [NeedKind::Review]);

    let mut bench = Bench::new();
    bench.prompted(OLD, "work");
    bench.turn_ended(OLD);
    let effects = bench.press(KeyCode::F(5));
    assert_eq!(calls(&effects), (vec![], vec![]));
    assert_eq!(
        bench.model.outside.needs[0].kind,
        NeedKind::Review,
        "but it is seen"
    );
}

fn control(control: Control) -> Event {
    let call = CallId(9);
    Event::ControlAsked { call, control }
}

#[test]
fn a_usage_limit_calls_when_it_is_reached_and_when_it_is_over() {
    let mut bench = Bench::new();
    bench.prompted(OLD, "work");
    bench.model.session.agent.limit_reset = Some(bench.at().wall + Duration::from_secs(600));
    let effects = bench.send(Event::Agent(AgentEvent::TurnFailed {
        session: session(OLD),
        failure: Failure::UsageLimit,
        message: "limit reached".to_owned(),
    }));
    assert_eq!(calls(&effects), (vec![NeedKind::Limit], vec![]));
    let timer = Effect::SetTimer(TimerId::LimitOver, Duration::from_secs(600));
    assert!(effects.contains(&timer), "{effects:?}");
    bench.wait(Duration::from_secs(600));
    let effects = bench.send(Event::TimerFired(TimerId::LimitOver));
    assert_eq!(
        calls(&effects),
        (vec![NeedKind::LimitOver], vec![NeedKind::Limit])
    );
    let effects = bench.prompted(OLD, "go on");
    assert_eq!(calls(&effects), (vec![], vec![NeedKind::LimitOver]));
}

#[test]
fn a_full_window_and_an_end_are_called_each_as_what_it_is() {
    let mut bench = Bench::new();
    bench.model.reboot.mode = RebootMode::Manual;
    bench.prompted(OLD, "work");
    let effects = bench.send(Event::Agent(AgentEvent::TurnFailed {
        session: session(OLD),
        failure: Failure::ContextLimit,
        message: "prompt is too long".to_owned(),
    }));
    assert_eq!(calls(&effects), (vec![NeedKind::ContextRefused], vec![]));
    let effects = bench.exited(1);
    assert_eq!(
        calls(&effects),
        (vec![NeedKind::AgentEnded], vec![NeedKind::ContextRefused])
    );
}
