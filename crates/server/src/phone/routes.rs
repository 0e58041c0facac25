//! The routes of the page, with the checks on the way.
//!
//! ```text
//!   front (anyone to serve, shape, Host, Origin, Sec-Fetch-Site)  →  device (cookie and key)  →  right, limit  →  a session
//! ```

#![allow(
    clippy::disallowed_methods,
    reason = "it touches the world: limits over real time"
)]

use std::sync::Arc;

use axum::Router;
use axum::extract::rejection::PathRejection;
use axum::extract::{Path, Request as HttpRequest, State};
use axum::http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, header};
use axum::middleware::{Next, from_fn, from_fn_with_state};
use axum::response::{IntoResponse, Response};
use axum::routing::{any, get, post};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use tokio::sync::watch;
use tokio::task::spawn_blocking;
use tokio::time::Instant;

use super::devices::{Device, DeviceError, DeviceRight, Moment};
use super::sessions::{self, Ask, Listed};
use super::stream::Forward;
use super::{Gateway, Host, page};
use crate::routes::{Answered, HttpError, check_plain, connection_of, exact, parse, read_body};
use pitstop_base::{clean, process};

/// The name of the cookie, and with a port behind it that of a page at that port.
const COOKIE: &str = "pitstop";

/// The header of the key.
const KEY: HeaderName = HeaderName::from_static("x-pitstop-key");

/// The longest time for which a browser keeps the cookie, in seconds: 400 days, which is the most that browsers allow.
const COOKIE_TIME: u32 = 34_560_000;

/// The most cookies of our name that are tried: others on the same host may have set some.
const COOKIES: usize = 4;

/// The longest id of an event, in bytes.
const EVENT_ID_LIMIT: usize = 64;

/// The orders that a device may give.
const ORDERS: [&str; 8] = [
    "reboot",
    "approve",
    "defer",
    "say",
    "pause",
    "resume",
    "stop",
    "permission",
];

/// The state that the routes share.
#[derive(Clone, Debug)]
pub(super) struct PhoneState {
    pub gateway: Gateway,
    /// The names that a `Host` may have.
    pub hosts: Arc<[Host]>,
    /// True if the door itself speaks TLS.
    pub is_tls: bool,
    /// A value that becomes true when the door closes.
    pub closing: watch::Receiver<bool>,
}

pub(super) fn router(state: PhoneState) -> Router {
    let gate = from_fn_with_state(state.clone(), enter);
    Router::new()
        .route("/phone/sessions", get(list))
        .route("/phone/sessions/{id}/events", get(events))
        .route("/phone/sessions/{id}/{what}", get(show).post(order))
        .route_layer(gate)
        .route("/", get(show_page))
        .route("/phone/pair", post(pair))
        .route("/phone", any(unknown_route))
        .route("/phone/{*rest}", any(unknown_route))
        .fallback(unknown_route)
        .method_not_allowed_fallback(wrong_method)
        .layer(from_fn_with_state(state.clone(), front))
        .layer(from_fn(private))
        .with_state(state)
}

async fn unknown_route() -> HttpError {
    HttpError::new(StatusCode::NOT_FOUND, "there is no such address", "")
}

async fn wrong_method() -> HttpError {
    HttpError::new(
        StatusCode::METHOD_NOT_ALLOWED,
        "the address does not know this method",
        "",
    )
}

/// Adds the headers by which a browser keeps other pages away.
async fn private(request: HttpRequest, next: Next) -> Response {
    let mut response = next.run(request).await;
    response.headers_mut().extend(page::headers());
    response
}

async fn front(State(state): State<PhoneState>, request: HttpRequest, next: Next) -> Answered {
    // Without a paired device there is no page.
    if !state.gateway.is_active() {
        return Ok(unknown_route().await.into_response());
    }
    check_plain(&request, false)?;
    // A code in a query would end up in logs and histories.
    if request.uri().query().is_some() {
        let error = "expected no query in the address, found one";
        return Err(HttpError::bad(error));
    }
    let host = check_host(request.headers(), &state.hosts)?;
    check_origin(&request, &host.name, host.is_https || state.is_tls)?;
    Ok(next.run(request).await)
}

/// Returns the value of a header that occurs exactly once.
fn only<'a>(headers: &'a HeaderMap, name: &HeaderName) -> Option<&'a str> {
    let mut values = headers.get_all(name).iter();
    match (values.next(), values.next()) {
        (Some(value), None) => value.to_str().ok(),
        _ => None,
    }
}

/// Returns the name by which the page was reached, if it is one of ours.
fn check_host<'a>(headers: &HeaderMap, hosts: &'a [Host]) -> Result<&'a Host, HttpError> {
    let given = only(headers, &header::HOST)
        .ok_or_else(|| HttpError::bad("expected exactly one Host header"))?;
    let known = hosts
        .iter()
        .find(|host| host.name.eq_ignore_ascii_case(given));
    known.ok_or_else(|| {
        HttpError::new(
            StatusCode::MISDIRECTED_REQUEST,
            "the Host header names another host",
            "use 127.0.0.1 or localhost with the port, or the address in [api] url",
        )
    })
}

/// Refuses what a page of another origin has sent. A browser names the page that a request comes from; other clients
/// name none.
fn check_origin(request: &HttpRequest, host: &str, is_https: bool) -> Result<(), HttpError> {
    let headers = request.headers();
    let foreign = || {
        HttpError::new(
            StatusCode::FORBIDDEN,
            "requests of other web pages are refused",
            "open the address itself",
        )
    };
    if headers.contains_key(header::ORIGIN) {
        let origin = only(headers, &header::ORIGIN);
        let origin = origin.and_then(|origin| origin.split_once("://"));
        let is_ours = origin.is_some_and(|(scheme, name)| {
            scheme == (if is_https { "https" } else { "http" }) && name.eq_ignore_ascii_case(host)
        });
        if !is_ours {
            return Err(foreign());
        }
    }
    let site = HeaderName::from_static("sec-fetch-site");
    if headers.contains_key(&site) {
        let is_page = request.uri().path() == "/";
        let shown_as = only(headers, &HeaderName::from_static("sec-fetch-dest"));
        match only(headers, &site) {
            Some("same-origin") => {}
            // A person has typed the address, or scanned it.
            Some("none") if is_page => {}
            // A person has followed a link to it, such as that of a call: the page holds no data.
            Some("cross-site" | "same-site") if is_page && shown_as == Some("document") => {}
            _ => return Err(foreign()),
        }
    }
    Ok(())
}

/// The body of a request to pair.
#[derive(Deserialize)]
struct PairBody {
    code: String,
    name: String,
}

/// The answer to a device that was paired.
#[derive(Serialize)]
struct PairReply {
    key: String,
    right: DeviceRight,
    device: String,
}

async fn pair(State(state): State<PhoneState>, request: HttpRequest) -> Answered {
    let host = check_host(request.headers(), &state.hosts)?;
    let is_https = state.is_tls || host.is_https;
    let body = read_body(request).await?;
    let PairBody { code, name } = parse(&body)?;
    if !state.gateway.admits_pairing(Instant::now()) {
        return Err(HttpError::new(
            StatusCode::TOO_MANY_REQUESTS,
            "too many pairings have failed",
            "wait a minute",
        ));
    }
    let store = state.gateway.store().clone();
    let paired = spawn_blocking(move || store.pair(&code, &name, Moment::now())).await;
    let paired = paired.map_err(|_| HttpError::ending())?;
    let paired = paired.map_err(|error| match error {
        DeviceError::Code => {
            tracing::warn!("a code that is not open was refused");
            HttpError::new(
                StatusCode::FORBIDDEN,
                error.to_string(),
                "run `pitstop phone` again",
            )
        }
        DeviceError::Full => HttpError::new(
            StatusCode::CONFLICT,
            error.to_string(),
            "revoke one with `pitstop phone revoke`",
        ),
        DeviceError::Name(fault) => {
            state.gateway.has_paired();
            fault.into()
        }
        error => broken(&error),
    })?;
    state.gateway.has_paired();
    let device = &paired.device;
    tracing::info!(
        device = device.name,
        right = device.right.word(),
        "paired a device"
    );
    let secure = if is_https { "; Secure" } else { "" };
    let name = cookie_name(&host.name);
    let cookie = format!(
        "{name}={}; Path=/; Max-Age={COOKIE_TIME}; HttpOnly; SameSite=Strict{secure}",
        paired.cookie
    );
    let reply = PairReply {
        key: paired.key,
        right: device.right,
        device: device.name.clone(),
    };
    Ok(([(header::SET_COOKIE, cookie)], exact(&reply)).into_response())
}

fn broken(error: &DeviceError) -> HttpError {
    tracing::warn!(error = clean::chain(error), "the devices cannot be used");
    HttpError::new(
        StatusCode::INTERNAL_SERVER_ERROR,
        "the paired devices cannot be read or written",
        "the log of pitstop says why",
    )
}

fn not_paired() -> HttpError {
    HttpError::new(
        StatusCode::UNAUTHORIZED,
        "this device is not paired",
        "run `pitstop phone` on the machine",
    )
}

/// Admits a paired device, and no order of one that may only watch.
async fn enter(State(state): State<PhoneState>, mut request: HttpRequest, next: Next) -> Answered {
    let device = device_of(&state, request.headers()).ok_or_else(not_paired)?;
    let changes = !matches!(*request.method(), Method::GET | Method::HEAD);
    if changes && device.right != DeviceRight::Decide {
        tracing::warn!(
            device = device.name,
            "an order of a device that may only watch was refused"
        );
        return Err(HttpError::new(
            StatusCode::FORBIDDEN,
            "this device may only watch",
            "`pitstop phone` on the machine pairs one that may decide",
        ));
    }
    let (store, seen) = (state.gateway.store().clone(), device.clone());
    // Nothing waits for it: it is shown to a person, and decides nothing.
    spawn_blocking(move || {
        if let Err(error) = store.note_seen(&seen, Moment::now()) {
            tracing::warn!(
                error = clean::chain(&error),
                "a device's request was not noted"
            );
        }
    });
    request.extensions_mut().insert(Arc::new(device));
    Ok(next.run(request).await)
}

/// Returns the name of the cookie for the page of this host. A browser keeps one of a name for all ports of a host, and at another
/// port there may be the page of another machine.
fn cookie_name(host: &str) -> String {
    let port = host.rsplit_once(':').map(|(_, port)| port.parse::<u16>());
    match port {
        Some(Ok(port)) => format!("{COOKIE}-{port}"),
        _ => COOKIE.to_owned(),
    }
}

fn device_of(state: &PhoneState, headers: &HeaderMap) -> Option<Device> {
    let key = only(headers, &KEY)?;
    let own_name = cookie_name(only(headers, &header::HOST)?);
    let all = headers.get_all(header::COOKIE).iter();
    let pairs = all
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(';'));
    let named = pairs.filter_map(|pair| pair.trim().split_once('='));
    // An older version gave the same name to all.
    let ours = named.filter(|(name, _)| *name == own_name || *name == COOKIE);
    let cookies: Vec<&str> = ours.map(|(_, value)| value).take(COOKIES).collect();
    state.gateway.0.devices.find(&cookies, key)
}

/// Returns the device that sends a request, which [`enter`] has admitted.
fn sender(request: &HttpRequest) -> Arc<Device> {
    let device = request.extensions().get::<Arc<Device>>();
    Arc::clone(device.expect("every request here was admitted for a device"))
}

/// The list of sessions.
#[derive(Serialize)]
struct List {
    device: String,
    right: DeviceRight,
    host: String,
    sessions: Vec<Listed>,
}

async fn list(State(state): State<PhoneState>, request: HttpRequest) -> Response {
    let device = sender(&request);
    let run_dirs = state.gateway.0.run_dirs.clone();
    exact(&List {
        device: device.name.clone(),
        right: device.right,
        host: process::host_name(),
        sessions: sessions::list(run_dirs, device.name.clone()).await,
    })
}

async fn show(
    State(state): State<PhoneState>,
    path: Result<Path<(String, String)>, PathRejection>,
    request: HttpRequest,
) -> Answered {
    let (id, what) = path.map(|Path(parts)| parts).unwrap_or_default();
    let Some(view) = sessions::view(&what) else {
        let is_order = ORDERS.contains(&&*what);
        let error = if is_order {
            wrong_method().await
        } else {
            unknown_route().await
        };
        return Err(error);
    };
    let device = sender(&request);
    let client = sessions::find(&state.gateway.0.run_dirs, &id, &device.name)?;
    sessions::ask(client, Ask::Get(view)).await
}

async fn order(
    State(state): State<PhoneState>,
    path: Result<Path<(String, String)>, PathRejection>,
    request: HttpRequest,
) -> Answered {
    let (id, what) = path.map(|Path(parts)| parts).unwrap_or_default();
    let device = sender(&request);
    if !ORDERS.contains(&&*what) {
        return Err(unknown_route().await);
    }
    let body = read_body(request).await?;
    // The device may have been revoked while its order arrived.
    if !state.gateway.is_paired(&device) {
        return Err(not_paired());
    }
    // The session reads it again: here it must only be an object.
    parse::<Map<String, Value>>(&body)?;
    let client = sessions::find(&state.gateway.0.run_dirs, &id, &device.name)?;
    if !state.gateway.admits_order(&device, Instant::now()) {
        return Err(HttpError::new(
            StatusCode::TOO_MANY_REQUESTS,
            "this device has given too many orders",
            "wait a minute",
        ));
    }
    tracing::info!(
        device = device.name,
        order = what,
        session = id,
        "an order from afar"
    );
    sessions::ask(client, Ask::Post(format!("/control/{what}"), body)).await
}

async fn events(
    State(state): State<PhoneState>,
    path: Result<Path<String>, PathRejection>,
    request: HttpRequest,
) -> Answered {
    let id = path.map(|Path(id)| id).unwrap_or_default();
    let device = sender(&request);
    let client = sessions::find(&state.gateway.0.run_dirs, &id, &device.name)?;
    let is_plain =
        |id: &&str| id.len() <= EVENT_ID_LIMIT && id.bytes().all(|b| b.is_ascii_graphic());
    let last = only(request.headers(), &HeaderName::from_static("last-event-id"));
    let (session, first) = sessions::events(&client, last.filter(is_plain)).await?;
    let forward = Forward {
        gateway: state.gateway.clone(),
        device: Device::clone(&device),
        connection: connection_of(&request),
        closing: state.closing.clone(),
        replaced: state.gateway.admit_stream(&device),
    };
    Ok(forward.start(session, first))
}

/// Returns the page: it holds no data.
async fn show_page() -> Response {
    let kind = HeaderValue::from_static("text/html; charset=utf-8");
    ([(header::CONTENT_TYPE, kind)], page::PAGE).into_response()
}
