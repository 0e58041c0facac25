//! The checks of a request before its endpoint sees it: its shape, its host and its token.

use axum::extract::{Request as HttpRequest, State};
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::middleware::Next;
use axum::response::Response;

use crate::BODY_LIMIT;
use pitstop_core::api::endpoint::{Endpoint, Right};

use super::{Answered, HttpError, ServerState, too_large};

pub(super) async fn front(
    State(port): State<Option<u16>>,
    request: HttpRequest,
    next: Next,
) -> Answered {
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
    check_plain(request, request.uri().path() == Endpoint::Attach.path())?;
    port.map_or(Ok(()), |port| check_host(headers, port))
}

/// Refuses a request whose target is more than a path, that wants another protocol where it may not, or whose body is said to be too
/// long.
pub(crate) fn check_plain(request: &HttpRequest, may_upgrade: bool) -> Result<(), HttpError> {
    let (headers, uri) = (request.headers(), request.uri());
    if uri.scheme().is_some() || uri.authority().is_some() {
        let error = "expected a path as the request's target, found a whole URI";
        return Err(HttpError::bad(error));
    }
    if headers.contains_key(header::UPGRADE) && !may_upgrade {
        return Err(HttpError::bad("expected plain HTTP/1.1, found an upgrade"));
    }
    let length = headers.get(header::CONTENT_LENGTH);
    let length = length.and_then(|length| length.to_str().ok()?.parse::<u64>().ok());
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
pub(super) async fn private(request: HttpRequest, next: Next) -> Response {
    let mut response = next.run(request).await;
    let headers = response.headers_mut();
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    headers.insert(
        header::X_CONTENT_TYPE_OPTIONS,
        HeaderValue::from_static("nosniff"),
    );
    response
}

/// Admits a request whose token may use the endpoint.
pub(super) async fn enter(
    State((state, endpoint)): State<(ServerState, Endpoint)>,
    request: HttpRequest,
    next: Next,
) -> Answered {
    check_right(&state, request.headers(), endpoint.right())?;
    Ok(next.run(request).await)
}

/// Returns the token of a header of the scheme `Bearer`, whose name may be written in any case (RFC 9110, 11.1).
fn bearer_of(header: &[u8]) -> Option<&[u8]> {
    let (scheme, token) = header.split_at_checked(b"bearer ".len())?;
    scheme.eq_ignore_ascii_case(b"bearer ").then_some(token)
}

fn check_right(state: &ServerState, headers: &HeaderMap, needed: Right) -> Result<(), HttpError> {
    let mut given = headers.get_all(header::AUTHORIZATION).iter();
    let token = match (given.next(), given.next()) {
        (Some(value), None) => bearer_of(value.as_bytes()),
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_scheme_of_a_token_is_read_in_any_case() {
        for header in ["Bearer abc", "bearer abc", "BEARER abc"] {
            assert_eq!(bearer_of(header.as_bytes()), Some(&b"abc"[..]), "{header}");
        }
        for header in ["", "Bearer", "Bearerabc", "Basic abc", "abc"] {
            assert_eq!(bearer_of(header.as_bytes()), None, "{header}");
        }
    }
}
