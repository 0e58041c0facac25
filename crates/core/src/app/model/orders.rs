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

use std::{collections::BTreeMap, time::Duration};

use crate::app::{effect::Effect, event::TimerId};
use pitstop_agent::bridge::{BridgeOrder, OrderId, Outcome};
use pitstop_transcript::SessionId;

/// The time that an order may wait to be taken. A bridge in force polls all the time and takes one within 20 ms, unless it is busy
/// with the order before.
pub const TAKEN_WITHIN: Duration = Duration::from_secs(2);

/// The purpose of an order, which decides who is notified of its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Purpose {
    /// Reads the prompt box before its first change is reported.
    FirstDraft,
    /// Gives the client the prompt that is on its way.
    Prompt,
    /// Finds out whether a dialog has the keys, when title and prompt box do not show it.
    Dialog,
    /// Reads the prompt box before a session is ended.
    LastDraft,
    /// Replaces the conversation by the handoff.
    Replace,
    /// Sets the client's compaction trigger back.
    Trigger,
}

/// The end of an order. Each order ends once.
#[derive(Clone, Debug, PartialEq)]
pub enum OrderEnd {
    /// The client's side has answered that it was carried out, or why it was not.
    Answered(Outcome),
    /// It was taken by no process and will not be: nothing was done.
    NotTaken,
    /// A process took it and has not answered in time: it may have been carried out.
    Unanswered,
    /// A process took it, and the agent has ended since: it may have been carried out.
    Gone,
}

/// An order that has ended.
#[derive(Clone, Debug, PartialEq)]
pub struct EndedOrder {
    /// Its number.
    pub id: OrderId,
    /// Its purpose.
    pub purpose: Purpose,
    /// The session that it was given to.
    pub session: SessionId,
    /// Its end.
    pub end: OrderEnd,
}

/// An order under way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct OpenOrder {
    purpose: Purpose,
    session: SessionId,
    /// The state of its time limit.
    time: OrderTime,
    /// True if the agent has ended since it was given.
    gone: bool,
}

/// The state of an order's time limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum OrderTime {
    /// A process still has to take it, and then answer within this time.
    Take(Duration),
    /// It was taken, and still has to be answered.
    Answer,
    /// The time is over.
    Over,
}

/// The orders of this supervisor.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Orders {
    /// The number of the last order. Each order has its own number.
    last: u64,
    /// The orders that have not ended.
    open: BTreeMap<OrderId, OpenOrder>,
}

impl Orders {
    /// Gives an order to this session, which may take `answered_within` to answer it once it is taken.
    pub(in crate::app) fn give(
        &mut self,
        session: SessionId,
        purpose: Purpose,
        order: BridgeOrder,
        answered_within: Duration,
        effects: &mut Vec<Effect>,
    ) -> OrderId {
        self.last += 1;
        let id = OrderId(self.last);
        let open = OpenOrder {
            purpose,
            session,
            time: OrderTime::Take(answered_within),
            gone: false,
        };
        self.open.insert(id, open);
        effects.push(Effect::OrderBridge { id, session, order });
        effects.push(Effect::SetTimer(TimerId::Order(id), TAKEN_WITHIN));
        id
    }

    /// Returns the orders under way for this purpose.
    pub(in crate::app) fn open(&self, purpose: Purpose) -> impl Iterator<Item = OrderId> {
        let of = move |(_, open): &(&OrderId, &OpenOrder)| open.purpose == purpose;
        self.open.iter().filter(of).map(|(id, _)| *id)
    }

    /// Takes back an order whose time is over: it ends as not taken, or goes on if a process has taken it already.
    pub(in crate::app) fn time_over(&mut self, id: OrderId) -> Option<Effect> {
        let open = self.open.get_mut(&id)?;
        if open.time == OrderTime::Answer {
            open.time = OrderTime::Over;
        }
        Some(Effect::CancelOrder(id))
    }

    /// Takes back all orders because the agent has ended: they are not answered any more.
    pub(in crate::app) fn agent_gone(&mut self) -> impl Iterator<Item = Effect> {
        self.open.iter_mut().map(|(id, open)| {
            open.gone = true;
            Effect::CancelOrder(*id)
        })
    }

    /// Ends an order that the client's side has answered.
    pub(in crate::app) fn answered(&mut self, id: OrderId, outcome: Outcome) -> Option<EndedOrder> {
        self.end(id, OrderEnd::Answered(outcome))
    }

    /// Handles an order that was taken back, or could not be because it `was_taken`; returns how it ended by that, if it did.
    pub(in crate::app) fn cancelled(
        &mut self,
        id: OrderId,
        was_taken: bool,
        effects: &mut Vec<Effect>,
    ) -> Option<EndedOrder> {
        if !was_taken {
            return self.end(id, OrderEnd::NotTaken);
        }
        let open = self.open.get_mut(&id)?;
        if open.gone {
            return self.end(id, OrderEnd::Gone);
        }
        match open.time {
            OrderTime::Take(answered_within) => {
                open.time = OrderTime::Answer;
                effects.push(Effect::SetTimer(TimerId::Order(id), answered_within));
                None
            }
            OrderTime::Answer => None,
            OrderTime::Over => self.end(id, OrderEnd::Unanswered),
        }
    }

    fn end(&mut self, id: OrderId, end: OrderEnd) -> Option<EndedOrder> {
        let OpenOrder {
            purpose, session, ..
        } = self.open.remove(&id)?;
        tracing::debug!(order = %id, ?purpose, "an order for the bridge has ended");
        Some(EndedOrder {
            id,
            purpose,
            session,
            end,
        })
    }
}
