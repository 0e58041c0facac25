//! The bridge: the reports of the client's own side of a hosted session, and the orders to it.
//!
//! Claude Code runs *mods*, handlers inside the client. Ours (`assets/bridge/`) is loaded for one session by `--plugin-dir` and
//! speaks with the control socket, by a right of its own:
//!
//! ```text
//!   POST /bridge/hello    protocol and version of the client ──▶ accepted or not      nothing else is taken before
//!   POST /bridge/fact     usage, turn, prompt, draft                                  moves figures, is never an order
//!   POST /bridge/poll     ──▶ an order that waits for this session, or none after a while
//!   POST /bridge/take     the order's number ──▶ whether it is the caller's           the first who asks has it; one that replaces
//!                             the conversation is answered once the second mod is loaded, or not in time
//!   POST /bridge/answer   what came of it
//!   POST /bridge/answers  the second mod, `pitstop-answer`, is loaded: without it no conversation is replaced
//!   POST /bridge/compact  ──▶ what a compaction that is about to begin leaves      by the second mod, `pitstop-answer`,
//!                             or to ask again: it is not decided yet                which waits for it
//! ```
//!
//! Each names the session and the process (*instance*) that it comes from: a fork, a spare process of the client and one that
//! was replaced speak on the same socket. An order is shown to every poll of its session, and carried out by the one process
//! that takes it; a poll whose client has died shows an order to no one, and so takes none.
//!
//! This module owns the messages and their validity, the right of each process to take orders, and the state of the bridge. It
//! has no clock and no socket.

mod files;
mod link;
mod message;
mod orders;
mod tools;

pub use files::{FILES, FIRST_VERSION, PLUGIN, place_of, text_of};
pub use link::{Absence, Link, Reported, SILENCE, too_old};
pub use message::{
    Category, CategoryKind, CompactBody, Decision, Fact, HelloBody, InstanceName, Invalid,
    OrderBody, Outcome, OutcomeBody, Part, PromptBody, PutBack, QuestionId, Refusal, Sender,
    Trigger, TurnEnd, UnsentPrompt, Usage,
};
pub use orders::{BridgeOrder, OrderId, Orders, Owner, Rejection, ReplaceWhen, Waiting};
pub use tools::{Caller, TOOLS, Tool, ToolBody, ToolsBy};

use pitstop_transcript::SessionId;

/// The protocol that both sides must speak; raised with each change that the other side would misunderstand.
pub const PROTOCOL: u32 = 1;

/// Something that the client's side of a session said.
#[derive(Clone, Debug, PartialEq)]
pub struct Report {
    /// The session that it speaks for.
    pub session: SessionId,
    /// The client's version, by its hello.
    pub client: String,
    /// The content of the report.
    pub said: Said,
}

/// The content of a report.
#[derive(Clone, Debug, PartialEq)]
pub enum Said {
    /// It is there and may go on.
    Hello,
    /// It speaks another protocol, this one, and was refused.
    WrongProtocol(u32),
    /// It asks for orders.
    Polled,
    /// Something happened.
    Fact(Fact),
    /// It has received the text that is to replace its conversation, by this order.
    HandedOut(OrderId),
    /// It is about to compact by itself or at its person's word, and waits with that until it is decided what is left.
    Compacting(QuestionId, Trigger),
    /// Its person has submitted this prompt, and it waits with that until it is decided whether the prompt is sent.
    Prompting(QuestionId, String),
    /// An order had this outcome.
    Answered(OrderId, Outcome),
}
