//! `POST /bridge/{message}`: the client's own side of the hosted session.
//!
//! ```text
//!   core ── place ──▶ mailbox ◀── poll, take, answer ── the mod in the client
//!                        └── what it said ──▶ the loop's queue
//! ```
//!
//! Polls are answered from the mailbox, so they cost the loop nothing. A fact is answered once it is in the loop's
//! queue, as a hook is.

use std::sync::Arc;
use std::time::Duration;

use axum::extract::rejection::PathRejection;
use axum::extract::{Path, Request as HttpRequest, State};
use axum::http::StatusCode;
use parking_lot::{Mutex, MutexGuard};
use serde_json::json;
use tokio::sync::{SemaphorePermit, watch};
use tokio::time::sleep_until;

use super::Connection;
use super::routes::{
    Answered, HttpError, ServerState, accepted, connection_of, exact, parse, read_body, send_call,
};
use pitstop_agent::bridge::{
    BridgeOrder, CompactBody, Decision, Fact, HelloBody, Invalid, OrderBody, OrderId, Orders,
    OutcomeBody, Owner, PROTOCOL, PromptBody, QuestionId, Rejection, Report, Said, Sender, Trigger,
};
use pitstop_core::api::wire::Request;
use pitstop_transcript::{SessionId, record::mend_json};

/// The longest wait of a poll for an order: below the client's limit of 30 s for one call, and below a connection's limit.
const HOLD: Duration = Duration::from_secs(10);

/// The longest wait for the second mod of a client that has just started: on a busy machine it is loaded 3 s behind the first one
/// (2.1.332). The one who gave the order waits for 10 s.
const LOADED_WITHIN: Duration = Duration::from_secs(7);

/// The most polls of one door at a time: of a session, its forks, a spare process, and clients that have died.
pub const POLL_COUNT: usize = 16;

/// The orders for the client's side. All doors and the loop share one.
#[derive(Clone, Debug)]
pub struct Mailbox(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    orders: Mutex<Orders>,
    changed: watch::Sender<()>,
}

impl Default for Mailbox {
    fn default() -> Self {
        Self(Arc::new(Shared {
            orders: Mutex::default(),
            changed: watch::Sender::new(()),
        }))
    }
}

impl Mailbox {
    /// Places an order for the client's side.
    pub fn place(&self, id: OrderId, session: SessionId, order: BridgeOrder) {
        self.change(|orders| orders.place(id, session, order));
    }

    /// Takes an order back; false if the client's side may carry it out already.
    pub fn cancel(&self, id: OrderId) -> bool {
        self.lock().cancel(id)
    }

    /// Takes back the order to replace the conversation; false if the client has the text.
    pub fn revoke(&self, id: OrderId) -> bool {
        self.lock().revoke(id)
    }

    /// Says whether the client's side asks about each prompt before it is sent.
    pub fn ask_of_prompts(&self, asks: bool) {
        self.lock().asks_of_prompts = asks;
    }

    /// Records the decision about a question of the client's side.
    pub fn decide(&self, id: QuestionId, decision: Decision) {
        self.change(|orders| orders.decide(id, decision));
    }

    /// Notes that an agent is about to be started: facts about the one before do not count for it.
    pub fn agent_starts(&self) {
        self.lock().owner = Owner::default();
    }

    /// Notes that the agent runs as this process from now on.
    pub fn owned_by(&self, process: u32) {
        self.lock().owner.set_process(process);
    }

    fn lock(&self) -> MutexGuard<'_, Orders> {
        self.0.orders.lock()
    }

    /// Changes the orders and makes all polls check them again.
    fn change<T>(&self, change: impl FnOnce(&mut Orders) -> T) -> T {
        let result = change(&mut self.lock());
        self.0.changed.send_replace(());
        result
    }

    /// Identifies the sender of a message and returns the client's version.
    fn identify(&self, sender: &Sender) -> Result<String, Rejection> {
        self.change(|orders| orders.identify(sender).map(str::to_owned))
    }
}

impl From<Invalid> for HttpError {
    fn from(error: Invalid) -> Self {
        Self::bad_field(error.field, error.to_string())
    }
}

impl From<Rejection> for HttpError {
    fn from(error: Rejection) -> Self {
        Self::new(StatusCode::CONFLICT, error.to_string(), "")
    }
}

pub(super) async fn bridge(
    State(state): State<ServerState>,
    message: Result<Path<String>, PathRejection>,
    request: HttpRequest,
) -> Answered {
    let message = message.map(|Path(message)| message).unwrap_or_default();
    let connection = connection_of(&request);
    let body = read_body(request).await?;
    // The client may cut a prompt between the halves of a surrogate pair.
    let body = mend_json(&body);
    let body = body.as_bytes();
    let sender = parse::<Sender>(body)?.check()?;
    let (session, mailbox) = (sender.session, &state.requests.mailbox);
    mailbox.lock().owner.check_process(connection.process)?;
    match message.as_str() {
        "hello" => hello(&state, &sender, parse(body)?).await,
        "fact" => {
            let fact = parse::<Fact>(body)?.check()?;
            let client = mailbox.identify(&sender)?;
            said(&state, session, client, Said::Fact(fact)).await
        }
        "poll" => poll(&state, &sender, &connection).await,
        "take" => {
            let OrderBody { order } = parse(body)?;
            mailbox.identify(&sender)?;
            if !mailbox.lock().take(&sender, order) {
                return Ok(exact(&json!({ "taken": false })));
            }
            if !mailbox.lock().replaces(order) {
                return Ok(exact(&json!({ "taken": true })));
            }
            let loaded = |orders: &Orders| orders.owner.answers.then_some(());
            let answers = held(&state, &connection, LOADED_WITHIN, loaded).await?;
            Ok(exact(
                &json!({ "taken": true, "answers": answers.is_some() }),
            ))
        }
        "answer" => {
            let OrderBody { order } = parse(body)?;
            let outcome = parse::<OutcomeBody>(body)?.check()?;
            let client = mailbox.identify(&sender)?;
            mailbox.lock().answer(&sender, order, &outcome)?;
            said(&state, session, client, Said::Answered(order, outcome)).await
        }
        "answers" => {
            mailbox.change(|orders| orders.owner.answers = true);
            Ok(accepted())
        }
        "compact" => compact(&state, sender, parse(body)?, &connection).await,
        "prompt" => {
            let PromptBody { prompt, text } = parse::<PromptBody>(body)?.check()?;
            let asks = |id| Said::Prompting(id, text);
            hold(&state, sender, prompt, asks, &connection).await
        }
        _ => Err(HttpError::new(
            StatusCode::NOT_FOUND,
            "there is no such message",
            "known are hello, fact, poll, take, answer, answers, compact and prompt",
        )),
    }
}

async fn hello(state: &ServerState, sender: &Sender, hello: HelloBody) -> Answered {
    let hello = hello.check()?;
    let mailbox = &state.requests.mailbox;
    let what = match mailbox.change(|orders| orders.register_instance(sender, &hello)) {
        Err(Rejection::WrongProtocol(found)) => Said::WrongProtocol(found),
        greeted => greeted.map(|()| Said::Hello)?,
    };
    let accepted = what == Said::Hello;
    said(state, sender.session, hello.client, what).await?;
    let asks = mailbox.lock().asks_of_prompts;
    Ok(exact(
        &json!({ "protocol": PROTOCOL, "accepted": accepted, "asks_of_prompts": asks }),
    ))
}

/// Passes a message on to the loop.
async fn said(state: &ServerState, session: SessionId, client: String, said: Said) -> Answered {
    let report = Report {
        session,
        client,
        said,
    };
    // The answer confirms only that the message has been taken.
    send_call(state, Request::Bridge(Box::new(report))).await?;
    Ok(accepted())
}

/// Takes a place for a call that is held.
fn place(state: &ServerState) -> Result<SemaphorePermit<'_>, HttpError> {
    state.polls.try_acquire().map_err(|_| {
        HttpError::new(
            StatusCode::SERVICE_UNAVAILABLE,
            format!("too many polls: at most {POLL_COUNT} at a time"),
            "try again in a moment",
        )
    })
}

async fn poll(state: &ServerState, sender: &Sender, connection: &Connection) -> Answered {
    let mailbox = &state.requests.mailbox;
    let client = mailbox.identify(sender)?;
    let _place = place(state)?;
    let number = mailbox.change(|orders| orders.begin_poll(sender))?;
    said(state, sender.session, client, Said::Polled).await?;
    let answer = held(state, connection, HOLD, |orders| {
        if orders.is_poll_over(sender, number) {
            return Some(None);
        }
        orders.next(sender.session).map(Some)
    });
    let order = answer.await?.flatten();
    let asks = mailbox.lock().asks_of_prompts;
    Ok(exact(&json!({ "order": order, "asks_of_prompts": asks })))
}

/// Holds a call until the orders yield its answer; `None` if there is none within this time.
async fn held<T>(
    state: &ServerState,
    connection: &Connection,
    within: Duration,
    answer: impl Fn(&Orders) -> Option<T>,
) -> Result<Option<T>, HttpError> {
    let mailbox = &state.requests.mailbox;
    let end = connection.came + within;
    let mut changed = mailbox.0.changed.subscribe();
    let mut closing = state.closing.clone();
    loop {
        changed.mark_unchanged();
        if let Some(answer) = answer(&mailbox.lock()) {
            return Ok(Some(answer));
        }
        tokio::select! {
            _ = changed.changed() => {}
            _ = closing.wait_for(|closing| *closing) => return Err(HttpError::ending()),
            () = sleep_until(end) => return Ok(None),
        }
    }
}

/// Answers a client that is about to compact and asks for the replacement of its conversation.
async fn compact(
    state: &ServerState,
    sender: Sender,
    asked: CompactBody,
    connection: &Connection,
) -> Answered {
    let mailbox = &state.requests.mailbox;
    // A compaction that the client begins by itself precedes a pending order, and is answered with that order.
    let by_itself = || mailbox.lock().in_turn(sender.session);
    let order = asked
        .order
        .or_else(|| (asked.trigger == Trigger::Auto).then(by_itself)?);
    let Some(order) = order else {
        let trigger = asked.trigger;
        let asks = |id| Said::Compacting(id, trigger);
        return hold(state, sender, asked.compaction, asks, connection).await;
    };
    let handed_out = mailbox.lock().hand_out(sender.session, order);
    let Some((text, client)) = handed_out else {
        let why = "pitstop has taken the order back".to_owned();
        return Ok(exact(&Decision::Skip { why }));
    };
    // The core learns of it before the client, because the client's next actions result from this answer.
    said(state, sender.session, client, Said::HandedOut(order)).await?;
    Ok(exact(&Decision::Replace { text }))
}

/// Holds the question of this number until it is decided, or for the longest time of one call: a compaction that is not ours, or a
/// prompt.
async fn hold(
    state: &ServerState,
    sender: Sender,
    number: u64,
    asks: impl FnOnce(QuestionId) -> Said,
    connection: &Connection,
) -> Answered {
    let mailbox = &state.requests.mailbox;
    // If no process of this session has sent its hello, the session is not known.
    let client = mailbox.lock().client_in(sender.session).map(str::to_owned);
    let Some(client) = client else {
        return Ok(exact(&Decision::Client));
    };
    let _place = place(state)?;
    let id = QuestionId {
        instance: sender.instance,
        number,
    };
    if mailbox.lock().decision(&id).is_none() {
        said(state, sender.session, client, asks(id.clone())).await?;
    }
    let decided = held(state, connection, HOLD, |orders| {
        orders.decision(&id).cloned()
    })
    .await?;
    Ok(exact(&decided.unwrap_or(Decision::Wait)))
}
