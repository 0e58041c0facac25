//! The answers: errors, JSON with its secrets masked, and the loop's replies as responses.

use std::time::Duration;

use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde::Serialize;
use serde_json::json;

use pitstop_base::redact;
use pitstop_core::api::wire::{ErrorBody, FieldError, HookVerdict, PermissionVerdict, Reply};

/// The result of a handler.
pub(crate) type Answered = Result<Response, HttpError>;

/// An error answer to a request.
#[derive(Debug)]
pub(crate) struct HttpError {
    status: StatusCode,
    error: String,
    hint: &'static str,
    field: Option<String>,
}

impl HttpError {
    pub(crate) fn new(status: StatusCode, error: impl Into<String>, hint: &'static str) -> Self {
        Self {
            status,
            error: error.into(),
            hint,
            field: None,
        }
    }

    pub(crate) fn bad(error: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, error, "")
    }

    /// Creates the error of a field whose value is not acceptable.
    pub(crate) fn bad_field(field: impl Into<String>, error: impl Into<String>) -> Self {
        Self {
            field: Some(field.into()),
            ..Self::bad(error)
        }
    }

    pub(crate) fn ending() -> Self {
        Self::new(
            StatusCode::SERVICE_UNAVAILABLE,
            "the supervisor is ending",
            "",
        )
    }

    /// Creates the error of a field that is longer than may be.
    pub(super) fn too_large(error: FieldError) -> Self {
        Self {
            status: StatusCode::PAYLOAD_TOO_LARGE,
            ..error.into()
        }
    }
}

impl From<FieldError> for HttpError {
    fn from(error: FieldError) -> Self {
        Self::bad_field(error.field.as_str(), error.to_string())
    }
}

/// An answer in JSON with its secrets masked.
pub(super) struct Json<T>(pub T);

impl<T: Serialize> IntoResponse for Json<T> {
    fn into_response(self) -> Response {
        json_of(redact::json(&text_of(&self.0)).into_owned())
    }
}

/// Returns an answer in JSON as it is: a device's key, text for the prompt box or the conversation, and the command that a person
/// decides about must arrive exactly.
pub(crate) fn exact(value: &impl Serialize) -> Response {
    json_of(text_of(value))
}

/// Returns plain data with text keys, which always becomes JSON.
fn text_of(value: &impl Serialize) -> String {
    serde_json::to_string(value).unwrap_or_default()
}

fn json_of(text: String) -> Response {
    ([(header::CONTENT_TYPE, "application/json")], text).into_response()
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

pub(super) fn late(limit: Duration) -> HttpError {
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

pub(super) fn respond(reply: Reply, unknown: Vec<String>) -> Response {
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

pub(crate) fn accepted() -> Response {
    (StatusCode::ACCEPTED, Json(json!({"status": "accepted"}))).into_response()
}
