//! The orders that wait for the client's side, and who may take them.
//!
//! ```text
//!   place ──▶ waiting ──poll──▶ shown, and still waiting ──take──▶ taken by one process ──answer──▶ gone
//!                └── cancel ──▶ gone                                  └── nothing more: gone when there are too many
//! ```
//!
//! The text that replaces a conversation is handed out only when the client asks for it, in mid-compaction, and once: until then
//! the order can be revoked although it was taken.

use std::{
    collections::{BTreeMap, VecDeque},
    fmt,
};

use serde::{Deserialize, Serialize};

use super::{
    PROTOCOL,
    message::{Decision, HelloBody, InstanceName, Outcome, QuestionId, Sender},
};
use pitstop_transcript::SessionId;

/// The largest number of processes that are known at a time: a session, its forks and a spare. The one silent for longest goes.
const INSTANCE_COUNT: usize = 16;

/// The largest number of orders at a time; the core has one or two. The oldest goes: its process has not carried it out, or is gone.
const ORDER_COUNT: usize = 16;

/// The largest number of questions whose decision is remembered: a client asks again about its last one only.
const QUESTION_COUNT: usize = 16;

/// The number of an order, which no other order of this run has.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct OrderId(pub u64);

impl fmt::Display for OrderId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// An order to the client's side.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum BridgeOrder {
    /// Read the prompt box.
    ReadDraft,
    /// Put nothing into the prompt box: the answer reports whether a dialog has the keys.
    Probe,
    /// Put this into the prompt box, if that is empty.
    FillDraft {
        /// The text.
        text: String,
        /// The position that the cursor is to have, in UTF-16 units.
        cursor: usize,
    },
    /// Put this in the place of the conversation, then begin a turn.
    ReplaceConversation {
        /// The text that the new conversation begins with: handed out once, when the client asks what its compaction leaves.
        #[serde(skip)]
        text: String,
        /// A mark in the turn's prompt, to recognise the turn by.
        nonce: String,
        /// The moment of the replacement.
        when: ReplaceWhen,
    },
    /// Set the client's compaction trigger back, which an order to replace the conversation in a turn has lowered.
    RestoreTrigger,
}

/// The moment at which a conversation is replaced.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum ReplaceWhen {
    /// It is replaced between two turns; then one is begun.
    Idle,
    /// The same, after the running turn was stopped for it, with the shell commands that it runs.
    Interrupting,
    /// It is replaced at the next step of the running turn, which goes on.
    NextStep,
}

impl BridgeOrder {
    /// Reports whether the outcome is one that this order can have.
    pub const fn can_end_in(&self, outcome: &Outcome) -> bool {
        match outcome {
            Outcome::Draft(_) => matches!(self, Self::ReadDraft),
            Outcome::Filled(_) => matches!(self, Self::Probe | Self::FillDraft { .. }),
            Outcome::Replaced { .. } | Outcome::Lowered => {
                matches!(self, Self::ReplaceConversation { .. })
            }
            Outcome::Restored => matches!(self, Self::RestoreTrigger),
            Outcome::Failed(_) => true,
        }
    }
}

/// An order as a poll shows it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Waiting {
    /// Its number.
    pub id: OrderId,
    /// The order itself.
    #[serde(flatten)]
    pub order: BridgeOrder,
}

/// The reason why a message is not taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Rejection {
    /// It speaks another protocol.
    #[error("expected protocol {PROTOCOL}, found {0}")]
    WrongProtocol(u32),
    /// It has not said hello, or that is forgotten.
    #[error("expected a hello of this instance first")]
    NoHello,
    /// The order is not one that this process has taken.
    #[error("expected an order that this instance has taken, found {0}")]
    NotTaken(OrderId),
    /// The outcome belongs to another kind of order.
    #[error("expected an outcome of the order's kind for order {0}")]
    OtherKind(OrderId),
    /// The agent's own process speaks, and this is another one.
    #[error("expected the process that pitstop hosts")]
    OtherProcess,
}

/// The agent's process. Once it has spoken itself no other is accepted, whatever token that has: not a program that the agent
/// runs, nor a client of the same user in another terminal. If a program in between starts the client, its process is not
/// known, and the token alone counts.
#[derive(Clone, Copy, Debug, Default)]
pub struct Owner {
    process: Option<u32>,
    has_spoken: bool,
    /// True if its second mod, which answers compactions, is loaded.
    pub answers: bool,
}

impl Owner {
    /// Notes that the agent that was just started is this process, which may have reported before its number was known here.
    pub const fn set_process(&mut self, process: u32) {
        self.process = Some(process);
    }

    /// Checks that this process may report; none if the system does not tell which one it is.
    pub fn check_process(&mut self, process: Option<u32>) -> Result<(), Rejection> {
        self.has_spoken |= process.is_some() && process == self.process;
        if self.has_spoken && process != self.process {
            return Err(Rejection::OtherProcess);
        }
        Ok(())
    }
}

#[derive(Debug)]
struct Placed {
    session: SessionId,
    order: BridgeOrder,
    taken_by: Option<InstanceName>,
    /// True if the client has the text that replaces its conversation.
    is_handed_out: bool,
}

#[derive(Debug)]
struct Instance {
    client: String,
    session: SessionId,
    /// The count of messages when it last spoke.
    spoke: u64,
    /// The number of its newest poll: an older one of the same process is answered at once.
    poll: u64,
}

/// The orders, and the processes that may take them.
#[derive(Debug, Default)]
pub struct Orders {
    /// The process whose reports count.
    pub owner: Owner,
    placed: BTreeMap<OrderId, Placed>,
    instances: BTreeMap<InstanceName, Instance>,
    messages: u64,
    /// True if a prompt is asked about before it is sent.
    pub asks_of_prompts: bool,
    /// The decisions about the latest questions.
    decided: VecDeque<(QuestionId, Decision)>,
}

impl Orders {
    /// Registers a process that says hello.
    pub fn register_instance(
        &mut self,
        sender: &Sender,
        hello: &HelloBody,
    ) -> Result<(), Rejection> {
        if hello.protocol != PROTOCOL {
            self.instances.remove(&sender.instance);
            return Err(Rejection::WrongProtocol(hello.protocol));
        }
        let known = self.instances.contains_key(&sender.instance);
        if !known && self.instances.len() >= INSTANCE_COUNT {
            let silent = self.instances.iter().min_by_key(|(_, one)| one.spoke);
            let name = silent.map(|(name, _)| name.clone());
            name.map(|name| self.instances.remove(&name));
        }
        self.messages += 1;
        self.instances.insert(
            sender.instance.clone(),
            Instance {
                client: hello.client.clone(),
                session: sender.session,
                spoke: self.messages,
                poll: 0,
            },
        );
        Ok(())
    }

    /// Notes that a process has spoken; returns the client's version by its hello.
    pub fn identify(&mut self, sender: &Sender) -> Result<&str, Rejection> {
        self.messages += 1;
        let instance = self
            .instances
            .get_mut(&sender.instance)
            .ok_or(Rejection::NoHello)?;
        instance.spoke = self.messages;
        instance.session = sender.session;
        Ok(&instance.client)
    }

    /// Begins a poll of a process, which has spoken already; returns the poll's number.
    pub fn begin_poll(&mut self, sender: &Sender) -> Result<u64, Rejection> {
        self.messages += 1;
        let instance = self
            .instances
            .get_mut(&sender.instance)
            .ok_or(Rejection::NoHello)?;
        instance.poll = self.messages;
        Ok(instance.poll)
    }

    /// Reports whether a poll is over although no order waits for it: its process polls again, has changed its session, or is
    /// forgotten.
    pub fn is_poll_over(&self, sender: &Sender, poll: u64) -> bool {
        self.instances
            .get(&sender.instance)
            .is_none_or(|instance| instance.poll != poll || instance.session != sender.session)
    }

    /// Returns the oldest order that waits for a session. It goes on waiting until it is taken.
    pub fn next(&self, session: SessionId) -> Option<Waiting> {
        let mut waiting = self.placed.iter();
        let (id, placed) =
            waiting.find(|(_, one)| one.session == session && one.taken_by.is_none())?;
        Some(Waiting {
            id: *id,
            order: placed.order.clone(),
        })
    }

    /// Reports whether an order replaces the conversation: then the second mod must be there, or the client would summarize.
    pub fn replaces(&self, id: OrderId) -> bool {
        let placed = self.placed.get(&id);
        placed.is_some_and(|placed| matches!(placed.order, BridgeOrder::ReplaceConversation { .. }))
    }

    /// Gives an order to a process that wants to carry it out; returns true if the process is to do so.
    pub fn take(&mut self, sender: &Sender, id: OrderId) -> bool {
        let Some(placed) = self.placed.get_mut(&id) else {
            return false;
        };
        if placed.session != sender.session || placed.taken_by.is_some() {
            return false;
        }
        placed.taken_by = Some(sender.instance.clone());
        true
    }

    /// Takes a process's outcome of an order that it has taken.
    pub fn answer(
        &mut self,
        sender: &Sender,
        id: OrderId,
        outcome: &Outcome,
    ) -> Result<(), Rejection> {
        let mine = |placed: &&Placed| placed.taken_by.as_ref() == Some(&sender.instance);
        let placed = self.placed.get(&id).filter(mine);
        let placed = placed.ok_or(Rejection::NotTaken(id))?;
        if !placed.order.can_end_in(outcome) {
            return Err(Rejection::OtherKind(id));
        }
        // The client asks for what takes the place of its conversation at its next step.
        if *outcome != Outcome::Lowered {
            self.placed.remove(&id);
        }
        Ok(())
    }

    /// Returns the order to replace a session's conversation in its running turn, if one was given and the client has not asked for
    /// the text.
    pub fn in_turn(&self, session: SessionId) -> Option<OrderId> {
        let mut placed = self.placed.iter();
        let waits = |one: &Placed| {
            let in_turn = matches!(
                one.order,
                BridgeOrder::ReplaceConversation {
                    when: ReplaceWhen::NextStep,
                    ..
                }
            );
            in_turn && one.session == session && !one.is_handed_out
        };
        placed.find(|(_, one)| waits(one)).map(|(id, _)| *id)
    }

    /// Places an order of the core.
    pub fn place(&mut self, id: OrderId, session: SessionId, order: BridgeOrder) {
        if self.placed.len() >= ORDER_COUNT {
            self.placed.pop_first();
        }
        let placed = Placed {
            session,
            order,
            taken_by: None,
            is_handed_out: false,
        };
        self.placed.insert(id, placed);
    }

    /// Takes an order of the core back; returns false if a process has taken it, which may carry it out and answer it still. An
    /// order that is not here any more was answered, and the answer is on its way to the core.
    pub fn cancel(&mut self, id: OrderId) -> bool {
        let placed = self.placed.get(&id);
        let waits = placed.is_some_and(|placed| placed.taken_by.is_none());
        if waits {
            self.placed.remove(&id);
        }
        waits
    }

    /// Takes back the text that replaces a conversation, although the order was taken; returns false if the client has it already.
    pub fn revoke(&mut self, id: OrderId) -> bool {
        let handed_out = self.placed.get(&id).is_none_or(|one| one.is_handed_out);
        if !handed_out {
            self.placed.remove(&id);
        }
        !handed_out
    }

    /// Hands out the text that replaces the conversation, to a client that is about to compact because of this order, with the
    /// client's version by the hello of the process that has taken the order. It returns none if the order is cancelled, was not
    /// taken, or has been handed out already.
    pub fn hand_out(&mut self, session: SessionId, id: OrderId) -> Option<(String, String)> {
        let placed = self.placed.get_mut(&id)?;
        let BridgeOrder::ReplaceConversation { text, when, .. } = &placed.order else {
            return None;
        };
        let in_turn = *when == ReplaceWhen::NextStep;
        if placed.session != session || placed.is_handed_out {
            return None;
        }
        // In a turn the client may ask by itself before the order is taken.
        let taker = placed.taken_by.as_ref().map(|by| self.instances.get(by));
        if taker.is_none() && !in_turn {
            return None;
        }
        let taker = taker.flatten();
        let client = taker.map_or_else(String::new, |one| one.client.clone());
        let handed_out = (text.clone(), client);
        placed.is_handed_out = true;
        Some(handed_out)
    }

    /// Notes the decision about a question; the first decision about one counts.
    pub fn decide(&mut self, id: QuestionId, decision: Decision) {
        if self.decision(&id).is_some() {
            return;
        }
        if self.decided.len() >= QUESTION_COUNT {
            self.decided.pop_front();
        }
        self.decided.push_back((id, decision));
    }

    /// Returns the decision about a question.
    pub fn decision(&self, id: &QuestionId) -> Option<&Decision> {
        let mut decided = self.decided.iter();
        decided
            .find(|(one, _)| one == id)
            .map(|(_, decision)| decision)
    }

    /// Returns the client's version, by the hello of a process in this session.
    pub fn client_in(&self, session: SessionId) -> Option<&str> {
        let mut instances = self.instances.values();
        let instance = instances.find(|one| one.session == session)?;
        Some(&instance.client)
    }
}

#[cfg(test)]
mod tests {
    use uuid::Uuid;

    use super::*;
    use crate::bridge::UnsentPrompt;

    fn session(number: u128) -> SessionId {
        SessionId::new(Uuid::from_u128(number))
    }

    fn sender(name: &str, number: u128) -> Sender {
        Sender {
            session: session(number),
            instance: InstanceName(name.to_owned()),
        }
    }

    fn hello(protocol: u32) -> HelloBody {
        HelloBody {
            protocol,
            client: "2.1.330".into(),
        }
    }

    fn greeted(names: &[(&str, u128)]) -> Orders {
        let mut orders = Orders::default();
        for (name, number) in names {
            let said = orders.register_instance(&sender(name, *number), &hello(PROTOCOL));
            said.unwrap();
        }
        orders
    }

    const READ: OrderId = OrderId(7);

    #[test]
    fn an_order_is_shown_to_its_session_only_and_belongs_to_the_first_who_takes_it() {
        let mut orders = greeted(&[("old", 1), ("new", 1), ("fork", 2)]);
        orders.place(READ, session(1), BridgeOrder::ReadDraft);
        assert_eq!(orders.next(session(2)), None);
        for _ in 0..3 {
            // A poll of a client that has died takes nothing.
            assert_eq!(orders.next(session(1)).map(|one| one.id), Some(READ));
        }
        assert!(!orders.take(&sender("fork", 2), READ));
        assert!(orders.take(&sender("new", 1), READ));
        assert!(!orders.take(&sender("old", 1), READ));
        assert!(!orders.take(&sender("new", 1), READ), "not even twice");
        assert_eq!(orders.next(session(1)), None);
        let read = Outcome::Draft(UnsentPrompt::default());
        let other = orders.answer(&sender("old", 1), READ, &read);
        assert_eq!(other, Err(Rejection::NotTaken(READ)));
        assert_eq!(orders.answer(&sender("new", 1), READ, &read), Ok(()));
        let again = orders.answer(&sender("new", 1), READ, &read);
        assert_eq!(again, Err(Rejection::NotTaken(READ)));
    }

    #[test]
    fn an_order_that_a_process_took_is_answered_by_it_in_its_later_session_too() {
        let mut orders = greeted(&[("a", 1)]);
        orders.place(READ, session(1), BridgeOrder::Probe);
        assert!(orders.take(&sender("a", 1), READ));
        let filled = Outcome::Filled(Ok(()));
        assert_eq!(orders.answer(&sender("a", 2), READ, &filled), Ok(()));
    }

    #[test]
    fn an_outcome_of_another_kind_is_no_answer() {
        let mut orders = greeted(&[("a", 1)]);
        let text = "x".to_owned();
        orders.place(READ, session(1), BridgeOrder::FillDraft { text, cursor: 1 });
        orders.take(&sender("a", 1), READ);
        for outcome in [
            Outcome::Draft(UnsentPrompt::default()),
            Outcome::Lowered,
            Outcome::Replaced { begun: true },
        ] {
            let answer = orders.answer(&sender("a", 1), READ, &outcome);
            assert_eq!(answer, Err(Rejection::OtherKind(READ)));
        }
        let failed = Outcome::Failed("no".into());
        assert_eq!(orders.answer(&sender("a", 1), READ, &failed), Ok(()));
    }

    #[test]
    fn what_is_cancelled_is_carried_out_by_none_unless_it_was_taken() {
        let mut orders = greeted(&[("a", 1)]);
        orders.place(READ, session(1), BridgeOrder::ReadDraft);
        assert!(orders.cancel(READ));
        assert!(!orders.take(&sender("a", 1), READ));
        orders.place(OrderId(8), session(1), BridgeOrder::ReadDraft);
        orders.take(&sender("a", 1), OrderId(8));
        assert!(!orders.cancel(OrderId(8)));
        let draft = Outcome::Draft(UnsentPrompt {
            text: String::new(),
            cursor: 0,
        });
        let answered = orders.answer(&sender("a", 1), OrderId(8), &draft);
        assert_eq!(answered, Ok(()));
        assert!(!orders.cancel(OrderId(8)), "it was carried out");
    }

    #[test]
    fn what_replaces_a_conversation_is_handed_out_once_and_to_its_session_only() {
        let replace = || BridgeOrder::ReplaceConversation {
            text: "the handoff".into(),
            nonce: "n1".into(),
            when: ReplaceWhen::Idle,
        };
        let mut orders = greeted(&[("a", 1)]);
        orders.place(READ, session(1), replace());
        let shown = serde_json::to_value(orders.next(session(1))).unwrap();
        assert_eq!(
            shown,
            serde_json::json!({"id": 7, "kind": "replace_conversation", "nonce": "n1", "when": "idle"})
        );
        assert!(orders.replaces(READ) && !orders.replaces(OrderId(8)));
        assert_eq!(orders.hand_out(session(1), READ), None, "not taken yet");
        orders.take(&sender("a", 1), READ);
        assert_eq!(orders.hand_out(session(2), READ), None);
        let text = orders.hand_out(session(1), READ).map(|(text, _)| text);
        assert_eq!(text.as_deref(), Some("the handoff"));
        assert_eq!(orders.hand_out(session(1), READ), None, "once");
        assert!(!orders.revoke(READ), "the client has it");

        orders.place(OrderId(8), session(1), replace());
        orders.take(&sender("a", 1), OrderId(8));
        assert!(!orders.cancel(OrderId(8)), "it was taken");
        assert!(orders.revoke(OrderId(8)), "the client has not asked for it");
        assert_eq!(orders.hand_out(session(1), OrderId(8)), None);
    }

    #[test]
    fn a_question_is_decided_once_and_its_decision_is_had_again() {
        let mut orders = greeted(&[("a", 1)]);
        let id = |number| QuestionId {
            instance: InstanceName("answers".to_owned()),
            number,
        };
        assert_eq!(orders.decision(&id(1)), None);
        orders.decide(id(1), Decision::Client);
        let text = "the handoff".to_owned();
        orders.decide(id(1), Decision::Replace { text });
        assert_eq!(orders.decision(&id(1)), Some(&Decision::Client));
        assert_eq!(orders.decision(&id(2)), None);
        for number in 2..40 {
            orders.decide(id(number), Decision::Client);
        }
        assert_eq!(orders.decided.len(), QUESTION_COUNT);
        assert_eq!(orders.client_in(session(1)), Some("2.1.330"));
        assert_eq!(orders.client_in(session(2)), None);
    }

    #[test]
    fn once_the_agent_s_own_process_has_spoken_no_other_is_accepted() {
        let mut owner = Owner::default();
        assert_eq!(owner.check_process(Some(1)), Ok(()));
        // The mods of a fast agent may report before its number is known.
        owner.answers = true;
        owner.set_process(7);
        assert!(owner.answers);
        // Started by a program in between it would never speak itself.
        assert_eq!(owner.check_process(Some(8)), Ok(()));
        assert_eq!(owner.check_process(Some(7)), Ok(()));
        assert_eq!(owner.check_process(Some(8)), Err(Rejection::OtherProcess));
        assert_eq!(owner.check_process(None), Err(Rejection::OtherProcess));
        assert_eq!(owner.check_process(Some(7)), Ok(()));
        // The next agent begins with nothing.
        owner = Owner::default();
        assert!(!owner.answers);
        owner.set_process(9);
        assert_eq!(owner.check_process(Some(8)), Ok(()));
    }

    #[test]
    fn nothing_is_taken_from_a_process_that_has_not_said_hello_in_our_protocol() {
        let mut orders = Orders::default();
        let stranger = sender("a", 1);
        assert_eq!(orders.identify(&stranger), Err(Rejection::NoHello));
        let wrong = orders.register_instance(&stranger, &hello(PROTOCOL + 1));
        assert_eq!(wrong, Err(Rejection::WrongProtocol(PROTOCOL + 1)));
        assert_eq!(orders.begin_poll(&stranger), Err(Rejection::NoHello));
        orders
            .register_instance(&stranger, &hello(PROTOCOL))
            .unwrap();
        assert_eq!(orders.identify(&stranger), Ok("2.1.330"));
    }

    #[test]
    fn a_poll_ends_when_its_process_polls_again_or_changes_its_session() {
        let mut orders = greeted(&[("a", 1)]);
        let first = orders.begin_poll(&sender("a", 1)).unwrap();
        assert!(!orders.is_poll_over(&sender("a", 1), first));
        let second = orders.begin_poll(&sender("a", 1)).unwrap();
        assert!(orders.is_poll_over(&sender("a", 1), first));
        assert!(!orders.is_poll_over(&sender("a", 1), second));
        // `/clear`: the next thing that it says names the new session.
        orders.identify(&sender("a", 2)).unwrap();
        assert!(orders.is_poll_over(&sender("a", 1), second));
    }

    #[test]
    fn crowds_of_processes_and_orders_are_bounded() {
        let mut orders = greeted(&[("first", 1)]);
        for number in 0..INSTANCE_COUNT * 2 {
            let name = format!("i{number}");
            orders
                .register_instance(&sender(&name, 1), &hello(PROTOCOL))
                .unwrap();
        }
        assert_eq!(orders.instances.len(), INSTANCE_COUNT);
        assert_eq!(
            orders.identify(&sender("first", 1)),
            Err(Rejection::NoHello)
        );
        for number in 0..100 {
            orders.place(OrderId(number), session(1), BridgeOrder::Probe);
        }
        assert_eq!(orders.placed.len(), ORDER_COUNT);
        assert!(orders.placed.contains_key(&OrderId(99)));
    }

    #[test]
    fn an_order_is_written_as_the_mod_reads_it() {
        let waiting = Waiting {
            id: OrderId(3),
            order: BridgeOrder::FillDraft {
                text: "é\n".into(),
                cursor: 1,
            },
        };
        assert_eq!(
            serde_json::to_value(waiting).unwrap(),
            serde_json::json!({"id": 3, "kind": "fill_draft", "text": "é\n", "cursor": 1})
        );
    }
}
