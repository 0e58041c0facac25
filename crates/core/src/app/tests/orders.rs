//! Orders for the client's own side: each ends once, and what is not known of it is not taken for done or undone.

use crate::app::{
    event::BridgeEvent,
    model::orders::{EndedOrder, OrderEnd, Purpose, TAKEN_WITHIN},
};
use pitstop_agent::bridge::{BridgeOrder, OrderId, Outcome, Said, UnsentPrompt};

use super::*;

const ANSWERED_WITHIN: Duration = Duration::from_secs(5);

/// A session in which an order was given.
fn given() -> (Bench, OrderId) {
    let mut bench = Bench::new();
    let (purpose, order) = (Purpose::FirstDraft, BridgeOrder::Probe);
    let id = bench.model.order(purpose, order, ANSWERED_WITHIN);
    let place = Effect::OrderBridge {
        id,
        session: session(OLD),
        order: BridgeOrder::Probe,
    };
    let time = Effect::SetTimer(TimerId::Order(id), TAKEN_WITHIN);
    assert_eq!(bench.model.take_effects(), [place, time]);
    (bench, id)
}

/// What follows once the order's time is over.
fn time_over(bench: &mut Bench, id: OrderId) -> Vec<Effect> {
    bench.send(Event::TimerFired(TimerId::Order(id)))
}

/// How the order ended once it was taken back, or could not be; and what follows.
fn taken_back(bench: &mut Bench, id: OrderId, was_taken: bool) -> (Option<OrderEnd>, Vec<Effect>) {
    let (orders, effects) = (&mut bench.model.session.orders, &mut Vec::new());
    let ended = orders.cancelled(id, was_taken, effects);
    (ended.map(|ended| ended.end), std::mem::take(effects))
}

#[test]
fn an_answer_ends_an_order_once_and_stops_its_time() {
    let (mut bench, id) = given();
    let outcome = Outcome::Filled(Ok(()));
    let ended = bench.model.session.orders.answered(id, outcome.clone());
    assert_eq!(
        ended,
        Some(EndedOrder {
            id,
            purpose: Purpose::FirstDraft,
            session: session(OLD),
            end: OrderEnd::Answered(outcome.clone()),
        })
    );
    assert_eq!(bench.model.session.orders.answered(id, outcome), None);
    assert_eq!(time_over(&mut bench, id), []);
    assert_eq!(taken_back(&mut bench, id, false), (None, Vec::new()));
}

#[test]
fn an_order_that_no_process_takes_in_time_ends_as_not_taken() {
    let (mut bench, id) = given();
    let take_back = [Effect::CancelOrder(id)];
    assert_eq!(time_over(&mut bench, id), take_back);
    let ended = taken_back(&mut bench, id, false);
    assert_eq!(ended, (Some(OrderEnd::NotTaken), Vec::new()));
    let late = bench
        .model
        .session
        .orders
        .answered(id, Outcome::Filled(Ok(())));
    assert_eq!(late, None, "what was taken back has ended");
}

#[test]
fn an_order_that_was_taken_has_its_time_to_be_answered_and_may_have_been_carried_out() {
    let (mut bench, id) = given();
    time_over(&mut bench, id);
    let time = Effect::SetTimer(TimerId::Order(id), ANSWERED_WITHIN);
    let taken = taken_back(&mut bench, id, true);
    assert_eq!(taken, (None, vec![time]));
    let again = taken_back(&mut bench, id, true);
    assert_eq!(
        again,
        (None, Vec::new()),
        "taken back once more: its time runs on"
    );
    assert_eq!(time_over(&mut bench, id), [Effect::CancelOrder(id)]);
    let ended = taken_back(&mut bench, id, true);
    assert_eq!(ended, (Some(OrderEnd::Unanswered), Vec::new()));
}

#[test]
fn the_end_of_the_agent_ends_its_orders() {
    for (was_taken, end) in [(false, OrderEnd::NotTaken), (true, OrderEnd::Gone)] {
        let (mut bench, id) = given();
        let effects = bench.exited(1);
        assert!(effects.contains(&Effect::CancelOrder(id)), "{effects:?}");
        let ended = taken_back(&mut bench, id, was_taken);
        assert_eq!(ended, (Some(end), Vec::new()));
        assert_eq!(bench.model.session.orders.agent_gone().next(), None);
    }
}

#[test]
fn who_took_an_order_answers_it_in_its_later_session_too() {
    let mut bench = Bench::bridged();
    let open = |bench: &Bench| bench.model.session.orders.open(Purpose::FirstDraft).next();
    let id = open(&bench).expect("the prompt box is read");
    let read = Outcome::Draft(UnsentPrompt::default());
    bench.bridge_says(NEW, Said::Answered(id, read));
    assert_eq!(open(&bench), None);
    let late = BridgeEvent::Cancelled {
        id,
        was_taken: true,
    };
    assert_eq!(bench.send(Event::Bridge(late)), []);
}
