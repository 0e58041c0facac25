//! The endpoints: the mapping from requests to calls, with the checks on the way.
//!
//! ```text
//!   front (shape: Origin, Host, URI, size)  →  route  →  enter (token, lane)  →  body  →  the loop
//! ```

mod answers;
mod body;
mod checks;
mod gate;

pub(super) use answers::{Answered, HttpError, accepted, exact};
use answers::{Json, late, respond};
pub(super) use body::{parse, read_body, too_large};
use checks::{check_commit, check_save, check_tests, figure, unknown};
pub(super) use gate::check_plain;
use gate::{enter, front, private};

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use axum::Router;
use axum::extract::rejection::{PathRejection, QueryRejection};
use axum::extract::{Path, Query, Request as HttpRequest, State};
use axum::http::{HeaderMap, StatusCode, header};
use axum::middleware::{from_fn, from_fn_with_state};
use axum::response::{IntoResponse, Response};
use axum::routing::{MethodRouter, get, post};
use serde::{
    Deserialize, Serialize,
    de::{DeserializeOwned, IgnoredAny},
};
use tokio::sync::{Semaphore, oneshot, watch};
use tokio::time::{Instant, timeout};

use super::attach::attach;
use super::bridge::bridge;
use super::phone::devices::NAME_LIMIT;
use super::secrets::Keys;
use super::stream::events;
use super::{ANSWER_LIMIT, Call, Connection, LINE_LIMIT, QUEUE_LIMIT, REFUSAL_LIMIT, RequestQueue};
use pitstop_agent::bridge::{Tool, ToolBody};
use pitstop_base::clean;
use pitstop_core::api::endpoint::Endpoint;
use pitstop_core::api::metrics;
use pitstop_core::api::wire::{
    ApproveBody, CheckpointBody, Control, FieldError, PERMISSION_EVENT, PermissionBody,
    REFUSABLE_EVENT, RebootBody, Reply, Report, Request, SAY_LIMIT, SayBody, UsageQuery,
    is_event_name,
};

/// The header by which an order names the device that a person gives it from.
const DEVICE: &str = "x-pitstop-device";

/// The word for the present session in `GET /api/sessions/{id}/handoff`.
const PRESENT_SESSION: &str = "current";

/// The longest accepted session id, in bytes: a UUID has 36, the id of a project 16.
const SESSION_ID_LIMIT: usize = 64;

/// The state that all endpoints of a door share.
#[derive(Clone, Debug)]
pub(super) struct ServerState {
    pub requests: RequestQueue,
    pub keys: Keys,
    /// The port that a `Host` must name; `None` on the Unix socket, which no browser can reach.
    pub port: Option<u16>,
    /// The places for streams of events.
    pub streams: Arc<Semaphore>,
    /// The places for the bridge's polls, which wait for an order.
    pub polls: Arc<Semaphore>,
    /// The places for attached terminals.
    pub terminals: Arc<Semaphore>,
    /// The places for those that only watch.
    pub watchers: Arc<Semaphore>,
    /// The place of a terminal that is about to take over from the others.
    pub takers: Arc<Semaphore>,
    /// A value that becomes true when the door closes.
    pub closing: watch::Receiver<bool>,
}

pub(super) fn router(state: &ServerState) -> Router {
    let routed = Endpoint::ALL.iter().fold(Router::new(), |router, &one| {
        let gate = (state.clone(), one);
        let method = handler(one).route_layer(from_fn_with_state(gate, enter));
        router.route(one.path(), method)
    });
    routed
        .fallback(unknown_route)
        .method_not_allowed_fallback(wrong_method)
        .layer(from_fn(private))
        .layer(from_fn_with_state(state.port, front))
        .with_state(state.clone())
}

fn handler(endpoint: Endpoint) -> MethodRouter<ServerState> {
    match endpoint {
        Endpoint::Attach => post(attach),
        Endpoint::Hook => post(hook),
        Endpoint::StatusLine => post(status_line),
        Endpoint::Usage => get(usage),
        Endpoint::AutoSave => post(auto_save),
        Endpoint::Bridge => post(bridge),
        Endpoint::Tool => post(tool),
        Endpoint::GitCommit => post(git_commit),
        Endpoint::TestResult => post(test_result),
        Endpoint::Metrics => get(metrics),
        Endpoint::Status => get(status),
        Endpoint::History => get(history),
        Endpoint::Events => get(events),
        Endpoint::Handoff => get(handoff),
        Endpoint::Screen => get(screen),
        Endpoint::Permission => get(permission),
        Endpoint::Say => post(prompt),
        Endpoint::Decide => post(decide),
        Endpoint::Order => post(order),
    }
}

async fn unknown_route() -> HttpError {
    HttpError::new(StatusCode::NOT_FOUND, "there is no such endpoint", "")
}

async fn wrong_method() -> HttpError {
    HttpError::new(
        StatusCode::METHOD_NOT_ALLOWED,
        "the endpoint does not know this method",
        "the Allow header names those it knows",
    )
}

async fn hook(
    State(state): State<ServerState>,
    event: Result<Path<String>, PathRejection>,
    request: HttpRequest,
) -> Answered {
    let event = event
        .ok()
        .map(|Path(event)| event)
        .filter(|event| is_event_name(event))
        .ok_or_else(|| FieldError::new("event", "a name of 1 to 40 letters", "something else"))?;
    let connection = connection_of(&request);
    let came = connection.came;
    let body = read_body(request).await?;
    // The payload is passed on unparsed, valid or not: the loop decides how to treat a broken one,
    // and even then the event's name counts.
    let (refusable, is_held) = (event == REFUSABLE_EVENT, event == PERMISSION_EVENT);
    let queued = send_call(&state, Request::Hook { event, body }).await;
    count(&state, came, queued.is_ok());
    let answer = queued?;
    if is_held {
        return Ok(held(&state, answer, &connection).await);
    }
    if !refusable {
        return Ok(accepted());
    }
    Ok(match timeout(REFUSAL_LIMIT, answer).await {
        Ok(Ok(reply @ Reply::Blocked { .. })) => respond(reply, Vec::new()),
        // The hook no longer waits, so the agent proceeds.
        _ => accepted(),
    })
}

/// Waits for a person's answer to a permission for as long as the hook's process lives. The agent ends it when the dialog is answered
/// at the desk.
async fn held(
    state: &ServerState,
    answer: oneshot::Receiver<Reply>,
    connection: &Connection,
) -> Response {
    connection.streams.store(true, Ordering::Release);
    tokio::select! {
        reply = answer => reply.map_or_else(|_| accepted(), |reply| respond(reply, Vec::new())),
        () = connection.process_ended() => {
            // The answer is not waited for any more, which the loop sees with the next call.
            let _ = send_call(state, Request::HookGone).await;
            accepted()
        }
    }
}

/// Counts a hook, and notes the time it took to reach the loop.
fn count(state: &ServerState, came: Instant, taken: bool) {
    let mut hooks = state.requests.hooks.lock();
    if taken {
        hooks.note(u64::try_from(came.elapsed().as_micros()).unwrap_or(u64::MAX));
    } else {
        hooks.lost += 1;
    }
}

async fn status_line(State(state): State<ServerState>, request: HttpRequest) -> Answered {
    let body = read_body(request).await?;
    let answer = send_call(&state, Request::StatusLine { body }).await?;
    Ok(match timeout(LINE_LIMIT, answer).await {
        Ok(Ok(Reply::StatusLine(line))) => Json(line).into_response(),
        // The figure has been taken; a late line is of no use.
        _ => accepted(),
    })
}

async fn usage(
    State(state): State<ServerState>,
    query: Result<Query<Vec<(String, String)>>, QueryRejection>,
) -> Answered {
    let Query(given) = query.map_err(|_| {
        HttpError::bad(
            "expected a query such as ?used_tokens=130000&max_tokens=200000, found another",
        )
    })?;
    let query = UsageQuery {
        used_tokens: figure(&given, "used_tokens", 0)?,
        max_tokens: figure(&given, "max_tokens", 1)?,
    };
    let unknown = unknown(given.into_iter().map(|(name, _)| name), &query);
    let reply = call(&state, Request::Usage(query)).await?;
    Ok(respond(reply, unknown))
}

/// The body of an order that takes none.
#[derive(Serialize, Deserialize)]
struct NoBody {}

/// Reads a body, has the loop answer the request made from it, and names the fields that were not used.
async fn ask_by<T: DeserializeOwned + Serialize>(
    state: &ServerState,
    body: &[u8],
    check: impl FnOnce(&T) -> Result<(), FieldError>,
    request: impl FnOnce(T) -> Request,
) -> Answered {
    let read: T = parse(body)?;
    check(&read)?;
    // The fields' values are skipped: only their names matter here.
    #[allow(clippy::zero_sized_map_values, reason = "only a map reads an object")]
    let given: BTreeMap<String, IgnoredAny> = parse(body)?;
    let unknown = unknown(given.into_keys(), &read);
    let reply = call(state, request(read)).await?;
    Ok(respond(reply, unknown))
}

async fn auto_save(State(state): State<ServerState>, request: HttpRequest) -> Answered {
    let body = read_body(request).await?;
    let body = if body.is_empty() { b"{}" } else { &body[..] };
    let request = |body| Request::Reported(Report::AutoSave(body));
    ask_by(&state, body, check_save, request).await
}

async fn git_commit(State(state): State<ServerState>, request: HttpRequest) -> Answered {
    let body = read_body(request).await?;
    let request = |body| Request::Reported(Report::Commit(body));
    ask_by(&state, &body, check_commit, request).await
}

async fn test_result(State(state): State<ServerState>, request: HttpRequest) -> Answered {
    let body = read_body(request).await?;
    let request = |body| Request::Reported(Report::Tests(body));
    ask_by(&state, &body, check_tests, request).await
}

async fn metrics(State(state): State<ServerState>) -> Answered {
    let Reply::Metrics(report) = call(&state, Request::Metrics).await? else {
        return Err(HttpError::ending());
    };
    let text = metrics::text(&report, &state.requests.hooks.lock());
    Ok(([(header::CONTENT_TYPE, metrics::CONTENT_TYPE)], text).into_response())
}

async fn status(State(state): State<ServerState>) -> Answered {
    ask(&state, Request::Status).await
}

async fn screen(State(state): State<ServerState>) -> Answered {
    ask(&state, Request::Screen).await
}

/// Answers with the permission as it is: a person who decides about a command must see all of it.
async fn permission(State(state): State<ServerState>) -> Answered {
    match call(&state, Request::Permission).await? {
        Reply::Permission(report) => Ok(exact(&report)),
        other => Ok(respond(other, Vec::new())),
    }
}

async fn history(State(state): State<ServerState>) -> Answered {
    ask(&state, Request::History).await
}

async fn handoff(
    State(state): State<ServerState>,
    id: Result<Path<String>, PathRejection>,
) -> Answered {
    let id = id
        .ok()
        .map(|Path(id)| id)
        .filter(|id| is_session_id(id))
        .ok_or_else(|| FieldError::new("id", "a session's id or `current`", "something else"))?;
    let session = (id != PRESENT_SESSION).then_some(id);
    ask(&state, Request::Handoff { session }).await
}

/// Reports whether a text may be the id of a session: it becomes the name of a file.
pub(crate) fn is_session_id(text: &str) -> bool {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_';
    (1..=SESSION_ID_LIMIT).contains(&text.len()) && text.bytes().all(plain)
}

async fn order(
    State(state): State<ServerState>,
    name: Result<Path<String>, PathRejection>,
    request: HttpRequest,
) -> Answered {
    let device = device(request.headers());
    let order = name.ok().and_then(|Path(name)| Control::plain(&name));
    let Some(order) = order else {
        return Err(HttpError::new(
            StatusCode::NOT_FOUND,
            "there is no such order",
            "known are reboot, approve, permission, defer, save, pause, resume, undo, clear-state, detach, stop and say",
        ));
    };
    let body = read_body(request).await?;
    let body = if body.is_empty() { b"{}" } else { &body[..] };
    let any = |_: &_| Ok(());
    let all = |control| given(device.clone(), control);
    match order {
        Control::Approve => {
            let check = ApproveBody::check;
            ask_by(&state, body, check, |body| all(Control::ApproveAs(body))).await
        }
        Control::Reboot => {
            let by = |body: RebootBody| body.way.map_or(Control::Reboot, Control::RebootBy);
            ask_by(&state, body, any, |body| all(by(body))).await
        }
        Control::Save(_) => {
            let check = CheckpointBody::check;
            ask_by(&state, body, check, |body| all(Control::Save(body))).await
        }
        order => ask_by(&state, body, |_: &NoBody| Ok(()), |_| all(order)).await,
    }
}

async fn decide(State(state): State<ServerState>, request: HttpRequest) -> Answered {
    let device = device(request.headers());
    let body = read_body(request).await?;
    let request = |body| given(device, Control::Permission(body));
    ask_by(&state, &body, |_: &PermissionBody| Ok(()), request).await
}

/// Returns the name of the device that a person gives the order from, if it is not the desk.
fn device(headers: &HeaderMap) -> Option<String> {
    let name = String::from_utf8_lossy(headers.get(DEVICE)?.as_bytes());
    Some(clean::stripped(&name, NAME_LIMIT)).filter(|name| !name.trim().is_empty())
}

fn given(device: Option<String>, control: Control) -> Request {
    Request::Control(match device {
        Some(device) => Control::From(device, Box::new(control)),
        None => control,
    })
}

async fn tool(
    State(state): State<ServerState>,
    name: Result<Path<String>, PathRejection>,
    request: HttpRequest,
) -> Answered {
    let name = name.map(|Path(name)| name).unwrap_or_default();
    let body = read_body(request).await?;
    let ToolBody { caller, input } = parse(&body)?;
    let Some(tool) = Tool::read(&name, &input) else {
        return Err(HttpError::new(
            StatusCode::NOT_FOUND,
            "there is no such tool",
            "known are context, note, decision, done, handoff_preview and request_reboot",
        ));
    };
    ask(&state, Request::Tool(caller, tool?)).await
}

async fn prompt(State(state): State<ServerState>, request: HttpRequest) -> Answered {
    let device = device(request.headers());
    let body = read_body(request).await?;
    let length = parse::<SayBody>(&body)?.text.len();
    if length > SAY_LIMIT {
        return Err(HttpError::too_large(FieldError::bytes(
            "text", SAY_LIMIT, length,
        )));
    }
    let check = |SayBody { text }: &SayBody| match text.trim() {
        "" => Err(FieldError::text("text", "some text", text)),
        _ => Ok(()),
    };
    let request = |body: SayBody| given(device, Control::Say(body.text));
    ask_by(&state, &body, check, request).await
}

pub(super) fn connection_of(request: &HttpRequest) -> Arc<Connection> {
    let connection = request.extensions().get::<Arc<Connection>>();
    Arc::clone(connection.expect("every request is marked with its connection before it is routed"))
}

/// Puts a call into the loop's queue, waiting a moment if that is full.
pub(super) async fn send_call(
    state: &ServerState,
    request: Request,
) -> Result<oneshot::Receiver<Reply>, HttpError> {
    let (reply, answer) = oneshot::channel();
    let call = Call { request, reply };
    match timeout(QUEUE_LIMIT, state.requests.calls.send(call)).await {
        Ok(Ok(())) => Ok(answer),
        Ok(Err(_)) => Err(HttpError::ending()),
        Err(_) => Err(HttpError::new(
            StatusCode::SERVICE_UNAVAILABLE,
            "the supervisor's queue is full",
            "try again in a moment",
        )),
    }
}

async fn ask(state: &ServerState, request: Request) -> Answered {
    let reply = call(state, request).await?;
    Ok(respond(reply, Vec::new()))
}

/// Sends a request to the loop and waits for its reply, within the time limit.
pub(super) async fn call(state: &ServerState, request: Request) -> Result<Reply, HttpError> {
    let answer = send_call(state, request).await?;
    match timeout(ANSWER_LIMIT, answer).await {
        Ok(Ok(reply)) => Ok(reply),
        Ok(Err(_)) => Err(HttpError::ending()),
        Err(_) => Err(late(ANSWER_LIMIT)),
    }
}
