//! Orders for the client's own side of the session: given, taken back, and ended once.
//!
//! ```text
//!   give ──▶ open ──answer──▶ answered
//!             ├── not taken in time, or taken back before that ──▶ not taken: nothing was done
//!             └── taken, but not answered in time, or the agent is gone ──▶ may have been carried out
//! ```
//!
//! The place where polls are answered is the only one that knows whether an order was taken: so one whose time is over is taken
//! back there, and the answer to that shows how it ended. The consequences of an end are left to the feature that gave the order.

use std::time::Duration;

use crate::app::{
    effect::Effect,
    event::TimerId,
    model::{
        Model,
        orders::{EndedOrder, OpenOrder, OrderEnd, OrderTime, Purpose},
    },
};
use pitstop_agent::bridge::{BridgeOrder, OrderId, Outcome};

/// The time that an order may wait to be taken. A bridge in force polls all the time and takes one within 20 ms, unless it is busy
/// with the order before.
pub const TAKEN_WITHIN: Duration = Duration::from_secs(2);

/// Gives an order to the hosted session, which may take `answered_within` to answer it once it is taken.
pub fn give(
    model: &mut Model,
    purpose: Purpose,
    order: BridgeOrder,
    answered_within: Duration,
) -> OrderId {
    let session = model.session.id;
    let orders = &mut model.session.orders;
    orders.last += 1;
    let id = OrderId(orders.last);
    let open = OpenOrder {
        purpose,
        session,
        time: OrderTime::Take(answered_within),
        gone: false,
    };
    orders.open.insert(id, open);
    model.emit(Effect::OrderBridge { id, session, order });
    model.emit(Effect::SetTimer(TimerId::Order(id), TAKEN_WITHIN));
    id
}

/// Reports whether an order for this purpose is under way.
#[must_use]
pub fn is_open(model: &Model, purpose: Purpose) -> bool {
    let mut open = model.session.orders.open.values();
    open.any(|open| open.purpose == purpose)
}

/// Takes back an order whose time is over: it ends as not taken, or goes on if a process has taken it already.
pub fn timer(model: &mut Model, id: OrderId) {
    if let Some(open) = model.session.orders.open.get_mut(&id) {
        if open.time == OrderTime::Answer {
            open.time = OrderTime::Over;
        }
        model.emit(Effect::CancelOrder(id));
    }
}

/// Takes back all orders because the agent has ended: they are not answered any more.
pub fn agent_gone(model: &mut Model) {
    for (id, open) in &mut model.session.orders.open {
        open.gone = true;
        model.scratch.effects.push(Effect::CancelOrder(*id));
    }
}

/// Ends an order that the client's side has answered.
pub fn answered(model: &mut Model, id: OrderId, outcome: Outcome) -> Option<EndedOrder> {
    end(model, id, OrderEnd::Answered(outcome))
}

/// Handles an order that was taken back, or could not be because it `was_taken`; returns how it ended by that, if it did.
pub fn cancelled(model: &mut Model, id: OrderId, was_taken: bool) -> Option<EndedOrder> {
    if !was_taken {
        return end(model, id, OrderEnd::NotTaken);
    }
    let open = model.session.orders.open.get_mut(&id)?;
    if open.gone {
        return end(model, id, OrderEnd::Gone);
    }
    match open.time {
        OrderTime::Take(answered_within) => {
            open.time = OrderTime::Answer;
            model.emit(Effect::SetTimer(TimerId::Order(id), answered_within));
            None
        }
        OrderTime::Answer => None,
        OrderTime::Over => end(model, id, OrderEnd::Unanswered),
    }
}

fn end(model: &mut Model, id: OrderId, end: OrderEnd) -> Option<EndedOrder> {
    let OpenOrder {
        purpose, session, ..
    } = model.session.orders.open.remove(&id)?;
    tracing::debug!(order = %id, ?purpose, "an order for the bridge has ended");
    Some(EndedOrder {
        id,
        purpose,
        session,
        end,
    })
}
