//! The orders that the client's own side of the session was given.

use std::collections::BTreeMap;

use crate::{
    bridge::{OrderId, Outcome},
    transcript::SessionId,
};

/// What an order is for: its end goes to who asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Purpose {
    /// To know what stands in the prompt box before its first change is reported.
    FirstDraft,
    /// To give the prompt that is on its way.
    Prompt,
    /// To know whether a dialog has the keys, where title and prompt box do not say.
    Dialog,
    /// To know what stands in the prompt box before a session is ended.
    LastDraft,
    /// To put the handoff in the place of the conversation.
    Replace,
    /// To set the client's compaction trigger back.
    Trigger,
}

/// How an order ended. Each order ends once.
#[derive(Clone, Debug, PartialEq)]
pub enum OrderEnd {
    /// It was carried out, or the client's side says why not.
    Answered(Outcome),
    /// No process took it, and none will: nothing was done.
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
    /// What it was for.
    pub purpose: Purpose,
    /// The session that it was given to.
    pub session: SessionId,
    /// How it ended.
    pub end: OrderEnd,
}

/// An order under way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::app) struct OpenOrder {
    pub(in crate::app) purpose: Purpose,
    pub(in crate::app) session: SessionId,
    /// How far its time is.
    pub(in crate::app) time: OrderTime,
    /// Whether the agent has ended since it was given.
    pub(in crate::app) gone: bool,
}

/// How far the time of an order is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::app) enum OrderTime {
    /// It is to be taken, and answered within this time after that.
    Take(std::time::Duration),
    /// It was taken, and is to be answered.
    Answer,
    /// It is over.
    Over,
}

/// The orders of this supervisor.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Orders {
    /// The number of the last one: no order has the number of another.
    pub(in crate::app) last: u64,
    /// Those that have not ended.
    pub(in crate::app) open: BTreeMap<OrderId, OpenOrder>,
}
