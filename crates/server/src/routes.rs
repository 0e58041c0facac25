//! The endpoints: the mapping from requests to calls, with the checks on the way.
//!
//! ```text
//!   front (shape: Origin, Host, URI, size)  →  route  →  enter (token, lane)  →  body  →  the loop
//! ```

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::extract::rejection::{PathRejection, QueryRejection};
use axum::extract::{Path, Query, Request as HttpRequest, State};
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::middleware::{Next, from_fn, from_fn_with_state};
use axum::response::{IntoResponse, Response};
use axum::routing::{MethodRouter, get, post};
use futures_util::StreamExt;
use serde::{
    Deserialize, Serialize,
    de::{DeserializeOwned, IgnoredAny},
};
use serde_json::json;
use tokio::sync::{Semaphore, oneshot, watch};
use tokio::time::{Instant, timeout, timeout_at};

use super::attach::attach;
use super::bridge::bridge;
use super::phone::devices::NAME_LIMIT;
use super::secrets::Keys;
use super::stream::events;
use super::{
    ANSWER_LIMIT, BODY_LIMIT, Call, Connection, LINE_LIMIT, QUEUE_LIMIT, READ_LIMIT, REFUSAL_LIMIT,
    RequestQueue,
};
use pitstop_agent::bridge::{Tool, ToolBody};
use pitstop_base::{clean, redact};
use pitstop_core::api::endpoint::{Endpoint, Right};
use pitstop_core::api::metrics;
use pitstop_core::api::wire::{
    ApproveBody, CheckpointBody, CommitBody, Control, ErrorBody, FieldError, HookVerdict,
    PERMISSION_EVENT, PermissionBody, PermissionVerdict, REFUSABLE_EVENT, RebootBody, Reply,
    Report, Request, SAVE_CONTEXT_LIMIT, SAVE_TEXT_LIMIT, SAY_LIMIT, SHA_DIGITS, SaveBody, SayBody,
    TEST_NAME_LIMIT, TEST_NAMES_LIMIT, TestBody, UsageQuery, field, is_event_name, is_sha,
    is_shallow,
};

/// The header by which an order names the device that a person gives it from.
const DEVICE: &str = "x-pitstop-device";

/// The word for the present session in `GET /api/sessions/{id}/handoff`.
const PRESENT_SESSION: &str = "current";

/// The longest accepted session id, in bytes: a UUID has 36.
const SESSION_ID_LIMIT: usize = 64;

/// The largest accepted number of tokens: far above any model, far below an overflow.
const TOKENS_LIMIT: u64 = 1_000_000_000_000;

/// The largest accepted count of tests or files.
const COUNT_LIMIT: u64 = 1_000_000_000;

/// The most unknown fields that are named, and the most characters of each name.
const NAMED: usize = 80;

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

/// The result of a handler.
pub(super) type Answered = Result<Response, HttpError>;

/// An error answer to a request.
#[derive(Debug)]
pub(super) struct HttpError {
    status: StatusCode,
    error: String,
    hint: &'static str,
    field: Option<String>,
}

impl HttpError {
    pub(super) fn new(status: StatusCode, error: impl Into<String>, hint: &'static str) -> Self {
        Self {
            status,
            error: error.into(),
            hint,
            field: None,
        }
    }

    pub(super) fn bad(error: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, error, "")
    }

    pub(super) fn ending() -> Self {
        Self::new(
            StatusCode::SERVICE_UNAVAILABLE,
            "the supervisor is ending",
            "",
        )
    }
}

impl From<FieldError> for HttpError {
    fn from(error: FieldError) -> Self {
        Self {
            field: Some(error.field.clone()),
            ..Self::bad(error.to_string())
        }
    }
}

/// An answer in JSON with its secrets masked.
struct Json<T>(T);

impl<T: Serialize> IntoResponse for Json<T> {
    fn into_response(self) -> Response {
        // Plain data with text keys always becomes JSON.
        let text = serde_json::to_string(&self.0).unwrap_or_default();
        let kind = [(header::CONTENT_TYPE, "application/json")];
        (kind, redact::json(&text).into_owned()).into_response()
    }
}

impl IntoResponse for HttpError {
    fn into_response(self) -> Response {
        let body = ErrorBody {
            error: self.error,
            hint: self.hint.to_owned(),
            field: self.field,
        };
        let mut response = (self.status, Json(body)).into_response();
        if self.status == StatusCode::UNAUTHORIZED {
            response
                .headers_mut()
                .insert(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
        }
        response
    }
}

async fn front(State(port): State<Option<u16>>, request: HttpRequest, next: Next) -> Answered {
    check_shape(&request, port)?;
    Ok(next.run(request).await)
}

fn check_shape(request: &HttpRequest, port: Option<u16>) -> Result<(), HttpError> {
    let headers = request.headers();
    if headers.contains_key(header::ORIGIN) {
        return Err(HttpError::new(
            StatusCode::FORBIDDEN,
            "requests from web pages are refused",
            "send no Origin header",
        ));
    }
    if request.uri().scheme().is_some() || request.uri().authority().is_some() {
        return Err(HttpError::bad(
            "expected a path as the request's target, found a whole URI",
        ));
    }
    if headers.contains_key(header::UPGRADE) && request.uri().path() != Endpoint::Attach.path() {
        return Err(HttpError::bad("expected plain HTTP/1.1, found an upgrade"));
    }
    if let Some(port) = port {
        check_host(headers, port)?;
    }
    let length = headers
        .get(header::CONTENT_LENGTH)
        .and_then(|length| length.to_str().ok()?.parse::<u64>().ok());
    if length.is_some_and(|length| length > BODY_LIMIT as u64) {
        return Err(too_large());
    }
    Ok(())
}

/// Refuses every `Host` except the loopback names with the right port: a page whose own name has been
/// made to resolve to 127.0.0.1 still sends that name.
fn check_host(headers: &HeaderMap, port: u16) -> Result<(), HttpError> {
    let mut hosts = headers.get_all(header::HOST).iter();
    let (Some(host), None) = (hosts.next(), hosts.next()) else {
        return Err(HttpError::bad("expected exactly one Host header"));
    };
    let known = ["127.0.0.1", "localhost", "[::1]"]
        .iter()
        .any(|name| host.as_bytes() == format!("{name}:{port}").as_bytes());
    if known {
        return Ok(());
    }
    Err(HttpError::new(
        StatusCode::MISDIRECTED_REQUEST,
        "the Host header names another host",
        "use 127.0.0.1, localhost or [::1] with the port",
    ))
}

/// Adds headers that forbid clients to store an answer or to guess its type.
async fn private(request: HttpRequest, next: Next) -> Response {
    let mut response = next.run(request).await;
    let headers = response.headers_mut();
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    headers.insert(
        header::X_CONTENT_TYPE_OPTIONS,
        HeaderValue::from_static("nosniff"),
    );
    response
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

/// Admits a request whose token may use the endpoint.
async fn enter(
    State((state, endpoint)): State<(ServerState, Endpoint)>,
    request: HttpRequest,
    next: Next,
) -> Answered {
    check_right(&state, request.headers(), endpoint.right())?;
    Ok(next.run(request).await)
}

fn check_right(state: &ServerState, headers: &HeaderMap, needed: Right) -> Result<(), HttpError> {
    let mut given = headers.get_all(header::AUTHORIZATION).iter();
    let token = match (given.next(), given.next()) {
        (Some(value), None) => value.as_bytes().strip_prefix(b"Bearer "),
        _ => None,
    };
    let right = token.and_then(|token| state.keys.right_of(token));
    match right {
        Some(right) if right >= needed => Ok(()),
        Some(right) => {
            tracing::warn!(
                token = right.word(),
                "a request beyond its token's right was refused"
            );
            let error = match right {
                Right::Bridge => "this token may only observe and answer what it is asked",
                _ => "this token may only observe",
            };
            Err(HttpError::new(
                StatusCode::FORBIDDEN,
                error,
                "orders need the control token, which is the user's own",
            ))
        }
        None => Err(HttpError::new(
            StatusCode::UNAUTHORIZED,
            "expected `Authorization: Bearer TOKEN` with a token of this run",
            "the token is the second line of the .control or .observe file beside the socket",
        )),
    }
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
    let queued = send(&state, Request::Hook { event, body }).await;
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
            let _ = send(state, Request::HookGone).await;
            accepted()
        }
    }
}

/// Counts a hook, and notes the time it took to reach the loop.
fn count(state: &ServerState, came: Instant, taken: bool) {
    let mut hooks = state.requests.hooks();
    if taken {
        hooks.note(u64::try_from(came.elapsed().as_micros()).unwrap_or(u64::MAX));
    } else {
        hooks.lost += 1;
    }
}

async fn status_line(State(state): State<ServerState>, request: HttpRequest) -> Answered {
    let body = read_body(request).await?;
    let answer = send(&state, Request::StatusLine { body }).await?;
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

/// Returns the fields that an endpoint does not know. They are ignored, because a newer or older caller may send some, and the
/// answer names them, because one may be misspelt.
fn unknown(given: impl Iterator<Item = String>, read: &impl Serialize) -> Vec<String> {
    let known = serde_json::to_value(read).unwrap_or_default();
    let unknown = given.filter(|name| known.get(name).is_none());
    let shown = unknown.map(|name| clean::stripped(&name, NAMED));
    shown.take(NAMED).collect()
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

/// Returns the number of tokens of that name in a query, if it is given.
fn figure(given: &[(String, String)], name: &str, least: u64) -> Result<Option<u64>, FieldError> {
    let mut values = given.iter().filter(|(have, _)| have == name);
    let Some((_, value)) = values.next() else {
        return Ok(None);
    };
    if values.next().is_some() {
        return Err(FieldError::new(name, "one value", "a second one"));
    }
    let number = value.parse().ok();
    let number = number.filter(|number| (least..=TOKENS_LIMIT).contains(number));
    let expected = || format!("a whole number of {least} to {TOKENS_LIMIT}");
    number.map_or_else(
        || Err(FieldError::text(name, expected(), value)),
        |number| Ok(Some(number)),
    )
}

async fn auto_save(State(state): State<ServerState>, request: HttpRequest) -> Answered {
    let body = read_body(request).await?;
    let body = if body.is_empty() { b"{}" } else { &body[..] };
    let request = |body| Request::Reported(Report::AutoSave(body));
    ask_by(&state, body, check_save, request).await
}

fn check_save(body: &SaveBody) -> Result<(), FieldError> {
    if let Some(used) = body.used_tokens.filter(|used| *used > TOKENS_LIMIT) {
        let expected = format!("a whole number of 0 to {TOKENS_LIMIT}");
        return Err(FieldError::new("used_tokens", expected, used));
    }
    for (name, text, limit) in [
        ("inferred_task", &body.inferred_task, SAVE_TEXT_LIMIT),
        (
            "inferred_context",
            &body.inferred_context,
            SAVE_CONTEXT_LIMIT,
        ),
    ] {
        let length = text.as_ref().map_or(0, String::len);
        if length > limit {
            return Err(FieldError::bytes(name, limit, length));
        }
    }
    Ok(())
}

async fn git_commit(State(state): State<ServerState>, request: HttpRequest) -> Answered {
    let body = read_body(request).await?;
    let request = |body| Request::Reported(Report::Commit(body));
    ask_by(&state, &body, check_commit, request).await
}

fn check_commit(body: &CommitBody) -> Result<(), FieldError> {
    if !is_sha(&body.commit_sha) {
        let (least, most) = (SHA_DIGITS.start(), SHA_DIGITS.end());
        let expected = format!("{least} to {most} hexadecimal digits");
        return Err(FieldError::text("commit_sha", expected, &body.commit_sha));
    }
    check_count("files_changed", body.files_changed)
}

async fn test_result(State(state): State<ServerState>, request: HttpRequest) -> Answered {
    let body = read_body(request).await?;
    let request = |body| Request::Reported(Report::Tests(body));
    ask_by(&state, &body, check_tests, request).await
}

fn check_tests(body: &TestBody) -> Result<(), FieldError> {
    check_count("test_count", body.test_count)?;
    check_count("failed_count", body.failed_count)?;
    if let (Some(failed), Some(all)) = (body.failed_count, body.test_count)
        && failed > all
    {
        let expected = format!("a number of at most {all}, the test_count,");
        return Err(FieldError::new("failed_count", expected, failed));
    }
    if let Some(seconds) = body.duration_seconds.filter(|one| one.is_sign_negative()) {
        return Err(FieldError::new(
            "duration_seconds",
            "a number of 0 or more",
            seconds,
        ));
    }
    let failed = body.failed_count;
    check_names("failing_tests", body.failing_tests.as_deref(), failed)?;
    let passed = body.test_count.map(|all| all - failed.unwrap_or(0));
    check_names("passing_tests", body.passing_tests.as_deref(), passed)
}

fn check_names(list: &str, names: Option<&[String]>, count: Option<u64>) -> Result<(), FieldError> {
    let names = names.unwrap_or_default();
    let most = count.unwrap_or(u64::MAX).min(TEST_NAMES_LIMIT as u64);
    if names.len() as u64 > most {
        let expected = format!("a list of at most {most} names");
        return Err(FieldError::new(list, expected, names.len()));
    }
    for (at, name) in names.iter().enumerate() {
        if name.trim().is_empty() || name.len() > TEST_NAME_LIMIT {
            let expected = format!("a name of 1 to {TEST_NAME_LIMIT} bytes");
            return Err(FieldError::text(format!("{list}[{at}]"), expected, name));
        }
    }
    Ok(())
}

fn check_count(name: &str, count: Option<u64>) -> Result<(), FieldError> {
    match count.filter(|count| *count > COUNT_LIMIT) {
        Some(count) => {
            let expected = format!("a whole number of at most {COUNT_LIMIT}");
            Err(FieldError::new(name, expected, count))
        }
        None => Ok(()),
    }
}

async fn metrics(State(state): State<ServerState>) -> Answered {
    let Reply::Metrics(report) = call(&state, Request::Metrics).await? else {
        return Err(HttpError::ending());
    };
    let text = metrics::text(&report, &state.requests.hooks());
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
        Reply::Permission(report) => {
            let text = serde_json::to_string(&report).unwrap_or_default();
            let kind = [(header::CONTENT_TYPE, "application/json")];
            Ok((kind, text).into_response())
        }
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

fn is_session_id(text: &str) -> bool {
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
            "known are reboot, approve, permission, defer, save, pause, resume, undo, clear-state, stop and say",
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
        return Err(HttpError {
            status: StatusCode::PAYLOAD_TOO_LARGE,
            ..FieldError::bytes("text", SAY_LIMIT, length).into()
        });
    }
    let check = |SayBody { text }: &SayBody| match text.trim() {
        "" => Err(FieldError::text("text", "some text", text)),
        _ => Ok(()),
    };
    let request = |body: SayBody| given(device, Control::Say(body.text));
    ask_by(&state, &body, check, request).await
}

/// Reads a state-changing request's body, within the limits of size and time.
pub(super) async fn read_body(request: HttpRequest) -> Result<Vec<u8>, HttpError> {
    if !is_json(request.headers()) {
        return Err(HttpError::new(
            StatusCode::UNSUPPORTED_MEDIA_TYPE,
            "expected `Content-Type: application/json`",
            "",
        ));
    }
    let read_by = connection_of(&request).came + READ_LIMIT;
    timeout_at(read_by, collect(request.into_body()))
        .await
        .map_err(|_| {
            HttpError::new(
                StatusCode::REQUEST_TIMEOUT,
                format!(
                    "the request did not arrive within {} s",
                    READ_LIMIT.as_secs()
                ),
                "",
            )
        })?
}

async fn collect(body: Body) -> Result<Vec<u8>, HttpError> {
    let mut stream = body.into_data_stream();
    let mut bytes = Vec::new();
    while let Some(chunk) = stream.next().await {
        let chunk = chunk.map_err(|_| HttpError::bad("the body broke off"))?;
        if bytes.len() + chunk.len() > BODY_LIMIT {
            return Err(too_large());
        }
        bytes.extend_from_slice(&chunk);
    }
    Ok(bytes)
}

pub(super) fn too_large() -> HttpError {
    HttpError::new(
        StatusCode::PAYLOAD_TOO_LARGE,
        format!("the body is too large: at most {BODY_LIMIT} bytes are read"),
        "",
    )
}

/// Reports whether exactly one content type is given and it is JSON: a web page cannot send that type without
/// a preflight request, which is refused.
fn is_json(headers: &HeaderMap) -> bool {
    let mut types = headers.get_all(header::CONTENT_TYPE).iter();
    let (Some(kind), None) = (types.next(), types.next()) else {
        return false;
    };
    kind.to_str().is_ok_and(|kind| {
        let essence = kind.split(';').next().unwrap_or_default();
        essence.trim().eq_ignore_ascii_case("application/json")
    })
}

pub(super) fn parse<T: DeserializeOwned>(body: &[u8]) -> Result<T, HttpError> {
    // Serde would also accept a list of the fields' values for the object.
    if body.trim_ascii_start().first() != Some(&b'{') {
        return Err(HttpError::bad(
            "expected a JSON object, found something else",
        ));
    }
    if !is_shallow(body) {
        return Err(HttpError::bad("the JSON is nested too deeply"));
    }
    let mut reader = serde_json::Deserializer::from_slice(body);
    let torn = |path: &str, error: &serde_json::Error| match field::of_json(path, error) {
        Ok(error) => error.into(),
        Err(error) => HttpError::bad(error),
    };
    let parsed = serde_path_to_error::deserialize(&mut reader)
        .map_err(|error| torn(&error.path().to_string(), error.inner()))?;
    reader.end().map_err(|error| torn("", &error))?;
    Ok(parsed)
}

pub(super) fn connection_of(request: &HttpRequest) -> Arc<Connection> {
    let connection = request.extensions().get::<Arc<Connection>>();
    Arc::clone(connection.expect("every request is marked with its connection before it is routed"))
}

/// Puts a call into the loop's queue, waiting a moment if that is full.
pub(super) async fn send(
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
    let answer = send(state, request).await?;
    match timeout(ANSWER_LIMIT, answer).await {
        Ok(Ok(reply)) => Ok(reply),
        Ok(Err(_)) => Err(HttpError::ending()),
        Err(_) => Err(late(ANSWER_LIMIT)),
    }
}

fn late(limit: Duration) -> HttpError {
    HttpError::new(
        StatusCode::GATEWAY_TIMEOUT,
        format!("the supervisor did not answer within {} s", limit.as_secs()),
        "it may be busy; try again",
    )
}

/// An answer that names the unknown fields of the request.
#[derive(Serialize)]
struct Naming<T> {
    #[serde(flatten)]
    reply: T,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    unknown_fields: Vec<String>,
}

fn naming<T>(reply: T, unknown_fields: Vec<String>) -> Json<Naming<T>> {
    Json(Naming {
        reply,
        unknown_fields,
    })
}

fn respond(reply: Reply, unknown: Vec<String>) -> Response {
    match reply {
        Reply::Accepted => accepted(),
        Reply::Ordered(ordered) => (StatusCode::ACCEPTED, naming(ordered, unknown)).into_response(),
        Reply::Blocked { reason } => Json(HookVerdict {
            decision: HookVerdict::BLOCK.to_owned(),
            reason,
        })
        .into_response(),
        Reply::Refused { why } => HttpError::new(StatusCode::CONFLICT, why, "").into_response(),
        Reply::NotFound { why } => HttpError::new(StatusCode::NOT_FOUND, why, "").into_response(),
        Reply::StatusLine(line) => Json(line).into_response(),
        Reply::Status(report) => Json(report).into_response(),
        Reply::History(report) => Json(report).into_response(),
        Reply::Handoff(report) => Json(report).into_response(),
        Reply::Screen(report) => Json(report).into_response(),
        Reply::Decided(answer) => Json(PermissionVerdict { answer }).into_response(),
        Reply::Usage(usage) => naming(usage, unknown).into_response(),
        Reply::Checkpoint(saved) => (StatusCode::ACCEPTED, naming(saved, unknown)).into_response(),
        Reply::Noted(noted) => (StatusCode::ACCEPTED, naming(noted, unknown)).into_response(),
        Reply::Saved(saved) => (StatusCode::ACCEPTED, naming(saved, unknown)).into_response(),
        Reply::Tool(said) => Json(said).into_response(),
        // Only endpoints that write these themselves ask for them.
        Reply::Metrics(_) | Reply::Permission(_) => HttpError::ending().into_response(),
    }
}

pub(super) fn accepted() -> Response {
    (StatusCode::ACCEPTED, Json(json!({"status": "accepted"}))).into_response()
}
