//! `GET /events`: the feed as server-sent events.
//!
//! ```text
//!   feed ──► feeder task ── bounded channel ──► body ──► socket
//! ```
//!
//! The feeder waits for its reader no longer than [`READER_LIMIT`], and never while the ring overtakes it: then the
//! connection is closed, and the reader may reconnect with the id it saw last (`Last-Event-ID`). A stream keeps its
//! connection for as long as it lives, so few are allowed.

use std::convert::Infallible;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use axum::body::{Body, Bytes};
use axum::extract::{Request as HttpRequest, State};
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse as _, Response};
use serde_json::json;
use tokio::sync::{OwnedSemaphorePermit, mpsc, watch};
use tokio::time::{sleep, timeout};

use super::routes::{Answered, HttpError, ServerState, call, connection_of};
use super::{Connection, Feed};
use pitstop_core::api::events::{ApiEvent, ApiEventKind};
use pitstop_core::api::wire::{Reply, Request};

/// The most streams of one door at a time.
pub const STREAM_COUNT: usize = 16;

/// The longest time a reader may take for a piece before it is dropped.
const READER_LIMIT: Duration = Duration::from_secs(5);

/// The interval at which a silent stream shows that it lives; it also bounds the time to notice that a reader has gone.
const KEEP_ALIVE: Duration = Duration::from_secs(10);

/// The most events that are sent in one piece.
const BATCH: usize = 64;

/// The most pieces that may wait for the reader.
const PIECES: usize = 4;

/// The state of one reader.
struct Reader {
    feed: Feed,
    seen: u64,
    out: mpsc::Sender<String>,
    closing: watch::Receiver<bool>,
    connection: Arc<Connection>,
    /// The place of the stream, held for as long as the stream lives.
    _place: OwnedSemaphorePermit,
}

pub(super) async fn events(State(state): State<ServerState>, request: HttpRequest) -> Answered {
    let crowded = |_| {
        HttpError::new(
            StatusCode::SERVICE_UNAVAILABLE,
            format!("too many streams of events: at most {STREAM_COUNT} at a time"),
            "close one of them",
        )
    };
    let place = Arc::clone(&state.streams)
        .try_acquire_owned()
        .map_err(crowded)?;
    let connection = connection_of(&request);
    let feed = state.requests.feed.clone();
    let last = request.headers().get("last-event-id");
    let known = last
        .and_then(|id| feed.number(id.to_str().ok()?))
        .filter(|seen| feed.after(*seen, 0).is_some());
    let (seen, first) = match known {
        Some(seen) => (seen, String::new()),
        None => begin(&state, last.is_some()).await?,
    };
    // From here on the connection has no time limit.
    connection.streams.store(true, Ordering::Release);
    let (out, pieces) = mpsc::channel(PIECES);
    let reader = Reader {
        feed,
        seen,
        out,
        closing: state.closing.clone(),
        connection,
        _place: place,
    };
    tokio::spawn(reader.feed(first));
    Ok(event_stream(pieces))
}

/// Returns an answer whose body is the pieces of a stream of events, as they come.
pub(super) fn event_stream<T>(pieces: mpsc::Receiver<T>) -> Response
where
    T: Into<Bytes> + Send + 'static,
{
    let body = futures_util::stream::unfold(pieces, |mut pieces| async {
        let piece = pieces.recv().await?;
        Some((Ok::<_, Infallible>(piece), pieces))
    });
    let kind = [(header::CONTENT_TYPE, "text/event-stream")];
    (kind, Body::from_stream(body)).into_response()
}

/// Returns the number from which to continue and the first events: the status, after a gap event if events are missing.
async fn begin(state: &ServerState, missing: bool) -> Result<(u64, String), HttpError> {
    // The number is taken before the status: an event in between is sent twice rather than not at all.
    let seen = state.requests.feed.newest();
    let mut first = String::new();
    if missing {
        let gap = ApiEvent {
            kind: ApiEventKind::Gap,
            data: json!({"message": "events after the given id are no longer kept"}),
        };
        first.push_str(&gap.to_event(None));
    }
    let Reply::Status(status) = call(state, Request::Status).await? else {
        return Err(HttpError::ending());
    };
    let status = ApiEvent {
        kind: ApiEventKind::Status,
        data: serde_json::to_value(status).unwrap_or_default(),
    };
    first.push_str(&status.to_event(Some(&state.requests.feed.id(seen))));
    Ok((seen, first))
}

impl Reader {
    async fn feed(mut self, first: String) {
        if !first.is_empty() && !self.send(first).await {
            return;
        }
        let mut event = self.feed.watch();
        loop {
            let Some(batch) = self.feed.after(self.seen, BATCH) else {
                return self.give_up("events went past it");
            };
            if let Some((last, _)) = batch.last() {
                self.seen = *last;
                let piece = batch
                    .iter()
                    .map(|(number, one)| one.to_event(Some(&self.feed.id(*number))))
                    .collect();
                if !self.send(piece).await {
                    return;
                }
                continue;
            }
            let silent = tokio::select! {
                // Both senders live as long as the door.
                _ = event.changed() => false,
                _ = self.closing.wait_for(|closing| *closing) => return,
                () = self.out.closed() => return,
                () = sleep(KEEP_ALIVE) => true,
            };
            if silent && !self.send(":\n\n".to_owned()).await {
                return;
            }
        }
    }

    /// Sends a piece; returns false once there is no reader.
    async fn send(&self, piece: String) -> bool {
        if let Ok(sent) = timeout(READER_LIMIT, self.out.send(piece)).await {
            return sent.is_ok();
        }
        self.give_up("it does not read");
        false
    }

    fn give_up(&self, why: &str) {
        tracing::warn!(why, "a listener to events was dropped");
        self.connection.lost.notify_one();
    }
}
