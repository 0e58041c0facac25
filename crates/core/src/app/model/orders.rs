//! The orders that the client's own side of the session was given.

use std::collections::BTreeMap;

use pitstop_agent::bridge::{OrderId, Outcome};
use pitstop_transcript::SessionId;

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
pub(in crate::app) struct OpenOrder {
    pub(in crate::app) purpose: Purpose,
    pub(in crate::app) session: SessionId,
    /// The state of its time limit.
    pub(in crate::app) time: OrderTime,
    /// True if the agent has ended since it was given.
    pub(in crate::app) gone: bool,
}

/// The state of an order's time limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::app) enum OrderTime {
    /// A process still has to take it, and then answer within this time.
    Take(std::time::Duration),
    /// It was taken, and still has to be answered.
    Answer,
    /// The time is over.
    Over,
}

/// The orders of this supervisor.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Orders {
    /// The number of the last order. Each order has its own number.
    pub(in crate::app) last: u64,
    /// The orders that have not ended.
    pub(in crate::app) open: BTreeMap<OrderId, OpenOrder>,
}
