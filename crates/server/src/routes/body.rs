//! The body of a request: it is read within the limits of size and time, and must be one JSON object.

use axum::body::Body;
use axum::extract::Request as HttpRequest;
use axum::http::{HeaderMap, StatusCode, header};
use futures_util::StreamExt as _;
use serde::de::DeserializeOwned;
use tokio::time::timeout_at;

use crate::{BODY_LIMIT, READ_LIMIT};
use pitstop_agent::hook::{MAX_DEPTH, nesting_depth};
use pitstop_core::api::wire::field;

use super::{HttpError, connection_of};

/// Reads a state-changing request's body, within the limits of size and time.
pub(crate) async fn read_body(request: HttpRequest) -> Result<Vec<u8>, HttpError> {
    if !is_json(request.headers()) {
        return Err(HttpError::new(
            StatusCode::UNSUPPORTED_MEDIA_TYPE,
            "expected `Content-Type: application/json`",
            "",
        ));
    }
    let connection = connection_of(&request);
    let body = timeout_at(connection.came + READ_LIMIT, collect(request.into_body())).await;
    connection.note_asked();
    body.map_err(|_| {
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

pub(crate) fn too_large() -> HttpError {
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

pub(crate) fn parse<T: DeserializeOwned>(body: &[u8]) -> Result<T, HttpError> {
    // Serde would also accept a list of the fields' values for the object.
    if body.trim_ascii_start().first() != Some(&b'{') {
        return Err(HttpError::bad(
            "expected a JSON object, found something else",
        ));
    }
    if nesting_depth(body) > MAX_DEPTH {
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
