//! The sessions of this user on this machine, and the way to their control sockets.

#![allow(
    clippy::disallowed_methods,
    reason = "it touches the world: deadlines of real connections"
)]

use std::{
    collections::BTreeMap,
    fs, io,
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

use axum::http::{StatusCode, header};
use axum::response::{IntoResponse as _, Response};
use serde::Serialize;
use serde_json::Value;
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::UnixStream,
    task::{JoinSet, spawn_blocking},
    time::timeout,
};

use crate::CLIENT_LIMIT;
use crate::client::{Answer, ApiClient, ClientError, is_answered};
use crate::routes::{HttpError, is_session_id};
use pitstop_core::api::wire::ErrorBody;

/// The time that a session may take to answer for the list: one that hangs must not hold up the others.
const LIST_LIMIT: Duration = Duration::from_secs(1);

/// The most sessions that are listed.
const SESSION_COUNT: usize = 64;

/// The longest head or refusal of a stream that is read, in bytes.
const HEAD_LIMIT: usize = 16 * 1024;

/// A session in the list.
#[derive(Debug, Serialize)]
pub(super) struct Listed {
    id: String,
    project: String,
    status: Option<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<&'static str>,
}

/// A request to a session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Ask {
    /// Asks for what is at this path.
    Get(&'static str),
    /// Sends an order with its body.
    Post(String, Vec<u8>),
}

/// Returns the path at which a session has what a device wants to see of it.
pub(super) fn view(name: &str) -> Option<&'static str> {
    match name {
        "status" => Some("/status"),
        "handoff" => Some("/api/sessions/current/handoff"),
        "screen" => Some("/screen"),
        "permission" => Some("/permission"),
        _ => None,
    }
}

/// Returns the files of the sessions by their ids; those in the usual directory win.
fn control_files(run_dirs: &[PathBuf]) -> BTreeMap<String, PathBuf> {
    let mut found = BTreeMap::new();
    for directory in run_dirs {
        let entries = fs::read_dir(directory).into_iter().flatten().flatten();
        for path in entries.map(|entry| entry.path()) {
            let is_control = path.extension().is_some_and(|end| end == "control");
            let id = path.file_stem().and_then(|stem| stem.to_str());
            if let Some(id) = id.filter(|id| is_control && is_session_id(id)) {
                found.entry(id.to_owned()).or_insert(path);
            }
        }
    }
    found
}

/// Reports whether a session of this directory answers.
pub(super) fn has_any(run_dir: &Path) -> bool {
    let files = control_files(&[run_dir.to_owned()]);
    let clients = files
        .values()
        .filter_map(|file| ApiClient::from_file(file).ok());
    let mut sockets = clients.map(|client| client.socket().to_owned());
    sockets.any(|socket| is_answered(&socket))
}

/// Finds the socket of a session.
pub(super) fn find(run_dirs: &[PathBuf], id: &str, device: &str) -> Result<ApiClient, HttpError> {
    if !is_session_id(id) {
        return Err(gone());
    }
    let name = format!("{id}.control");
    let mut clients = run_dirs
        .iter()
        .filter_map(|directory| client(&directory.join(&name), device));
    clients.next().ok_or_else(gone)
}

fn client(file: &Path, device: &str) -> Option<ApiClient> {
    let client = ApiClient::from_file(file).ok()?;
    Some(client.on_behalf_of(device))
}

fn gone() -> HttpError {
    HttpError::new(StatusCode::NOT_FOUND, "this session does not run", "")
}

/// Asks each session for its status.
pub(super) async fn list(run_dirs: Vec<PathBuf>, device: String) -> Vec<Listed> {
    let files = spawn_blocking(move || control_files(&run_dirs)).await;
    let mut asked = JoinSet::new();
    for (id, file) in files.unwrap_or_default().into_iter().take(SESSION_COUNT) {
        let device = device.clone();
        asked.spawn_blocking(move || {
            let answer = client(&file, &device)?.get("/status", Instant::now() + LIST_LIMIT);
            listed(id, answer)
        });
    }
    let mut found: Vec<Listed> = asked.join_all().await.into_iter().flatten().collect();
    found.sort_by(|a, b| (&a.project, &a.id).cmp(&(&b.project, &b.id)));
    found
}

/// Returns what is listed of a session; nothing, if it has ended.
fn listed(id: String, answer: Result<Answer, ClientError>) -> Option<Listed> {
    let status = match answer {
        Ok(answer) if answer.status == 200 => serde_json::from_slice::<Value>(&answer.body).ok(),
        Ok(_) | Err(ClientError::Late) => None,
        Err(_) => return None,
    };
    let project = status
        .as_ref()
        .and_then(|status| status["project"].as_str());
    Some(Listed {
        id,
        project: project.unwrap_or_default().to_owned(),
        error: status.is_none().then_some("it does not answer"),
        status,
    })
}

/// Asks a session, and returns its answer.
pub(super) async fn ask(client: ApiClient, ask: Ask) -> Result<Response, HttpError> {
    let exchange = move || {
        let deadline = Instant::now() + CLIENT_LIMIT;
        match ask {
            Ask::Get(path) => client.get(path, deadline),
            Ask::Post(path, body) => client.post(&path, &body, deadline),
        }
    };
    let answer = spawn_blocking(exchange).await;
    let answer = answer.map_err(|_| HttpError::ending())?.map_err(failed)?;
    passed_on(answer)
}

fn failed(error: ClientError) -> HttpError {
    match error {
        ClientError::NoSupervisor { .. } => gone(),
        ClientError::Late => HttpError::new(
            StatusCode::GATEWAY_TIMEOUT,
            "the session did not answer in time",
            "an order may have been carried out: look before you try again",
        ),
        error => {
            tracing::warn!(%error, "a session cannot be asked");
            unreachable_session()
        }
    }
}

fn unreachable_session() -> HttpError {
    HttpError::new(
        StatusCode::SERVICE_UNAVAILABLE,
        "the session cannot be reached",
        "try again",
    )
}

/// Returns a session's answer as it is. What would mean something else to the device (that it is not paired, or may only look) is
/// an answer to us, and becomes another.
fn passed_on(answer: Answer) -> Result<Response, HttpError> {
    let status = StatusCode::from_u16(answer.status).unwrap_or(StatusCode::BAD_GATEWAY);
    let of_the_device = status.is_success()
        || matches!(
            status,
            StatusCode::BAD_REQUEST
                | StatusCode::NOT_FOUND
                | StatusCode::CONFLICT
                | StatusCode::PAYLOAD_TOO_LARGE
                | StatusCode::SERVICE_UNAVAILABLE
                | StatusCode::GATEWAY_TIMEOUT
        );
    if !of_the_device {
        let said = serde_json::from_slice::<ErrorBody>(&answer.body);
        let said = said.map(|said| said.error).unwrap_or_default();
        tracing::warn!(
            status = answer.status,
            said,
            "a session has refused a request"
        );
        return Err(unreachable_session());
    }
    let kind = [(header::CONTENT_TYPE, "application/json")];
    Ok((status, kind, answer.body).into_response())
}

/// Opens the stream of events of a session; returns it with what was read of it.
pub(super) async fn events(
    client: &ApiClient,
    last_id: Option<&str>,
) -> Result<(UnixStream, Vec<u8>), HttpError> {
    let opened = timeout(CLIENT_LIMIT, open_events(client, last_id)).await;
    let opened = opened.map_err(|_| failed(ClientError::Late))?;
    let (stream, head, rest) = opened.map_err(|error| match error.kind() {
        io::ErrorKind::NotFound | io::ErrorKind::ConnectionRefused => gone(),
        _ => unreachable_session(),
    })?;
    match head.split(' ').nth(1) {
        Some("200") => Ok((stream, rest)),
        Some("404") => Err(gone()),
        status => {
            tracing::warn!(status, "a session has refused its events");
            Err(unreachable_session())
        }
    }
}

/// Asks for the events by the older HTTP, whose answers come as they are until the connection ends.
async fn open_events(
    client: &ApiClient,
    last_id: Option<&str>,
) -> io::Result<(UnixStream, String, Vec<u8>)> {
    let last = last_id.map(|id| format!("Last-Event-ID: {id}\r\n"));
    let head = client.head("GET /events HTTP/1.0", &last.unwrap_or_default());
    let mut stream = UnixStream::connect(client.socket()).await?;
    stream.write_all(head.as_bytes()).await?;
    let mut bytes = Vec::new();
    loop {
        if let Some(end) = memchr::memmem::find(&bytes, b"\r\n\r\n") {
            let rest = bytes.split_off(end + 4);
            return Ok((stream, String::from_utf8_lossy(&bytes).into_owned(), rest));
        }
        let read = stream.read_buf(&mut bytes).await?;
        if read == 0 || bytes.len() > HEAD_LIMIT {
            return Err(io::ErrorKind::InvalidData.into());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_is_a_plain_name_and_names_a_file_in_the_first_directory_that_has_it() {
        for id in [
            "",
            "..",
            "../x",
            "a/b",
            "a\0",
            "a.control",
            &"a".repeat(65),
            "é",
        ] {
            assert!(!is_session_id(id), "{id}");
        }
        let home = tempfile::tempdir().unwrap();
        let dirs = ["one", "two"].map(|name| home.path().join(name));
        for dir in &dirs {
            fs::create_dir(dir).unwrap();
            for name in ["0a1b.control", "0a1b.sock", "x.y.control", ".control"] {
                fs::write(dir.join(name), "").unwrap();
            }
        }
        fs::write(dirs[1].join("2c.control"), "").unwrap();
        let found = control_files(&dirs);
        let found: Vec<_> = found.iter().map(|(id, path)| (&**id, &**path)).collect();
        let expected = [dirs[0].join("0a1b.control"), dirs[1].join("2c.control")];
        assert_eq!(found, [("0a1b", &*expected[0]), ("2c", &*expected[1])]);
        assert!(
            find(&dirs, "0a1b", "phone").is_err(),
            "no file of a session"
        );
    }

    #[test]
    fn what_a_session_says_to_us_is_not_passed_on() {
        let answer = |status| Answer {
            status,
            body: b"{}".to_vec(),
        };
        for status in [200, 202, 400, 404, 409, 413, 503, 504] {
            let response = passed_on(answer(status)).unwrap();
            assert_eq!(response.status().as_u16(), status);
        }
        for status in [301, 401, 403, 421, 429, 500] {
            let response = passed_on(answer(status)).unwrap_err().into_response();
            assert_eq!(response.status().as_u16(), 503, "{status}");
        }
    }
}
