//! The control socket and the loopback port: who may speak, how much, and how long it may take.
//!
//! # Trust boundary
//!
//! A client is a stranger until proven: on the Unix socket the kernel gives the peer's user
//! id, which must be ours, and both doors want a bearer token besides. One token *observes* (posts
//! events, reads the usage figure) and is all that the hosted agent's hooks get; one is the *bridge's*,
//! which observes too and answers what it is asked; the third one *controls*. A web page in the user's browser is the classic enemy of local servers, so any
//! `Origin` is refused, the port checks `Host`, a change of state needs `application/json`, and no
//! `GET` changes anything.
//!
//! # Wire format
//!
//! HTTP/1.1, one request a connection, JSON both ways, but for the text of `/metrics` and the events of `/events`.
//! Every answer that is not a success carries `{"error", "hint"}`, and `"field"` where one is wrong, but for requests too broken to be HTTP, which hyper
//! answers with a bare code. `assets/openapi.json` describes it all.
//!
//! # Order
//!
//! An observation is answered once it stands in the loop's one queue. A hook is a process of its own that ends when it has
//! its answer, and the agent goes on when the hook has ended: so of two hooks of which the agent waits for the first before
//! it starts the second, the first comes first. Hooks that it runs side by side have no order to begin with.
//!
//! # Limits
//!
//! They stand below, each with its reason.

mod bridge;
mod door;
mod feed;
mod routes;
mod secrets;
mod stream;

use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use axum::Router;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::{Notify, OwnedSemaphorePermit, Semaphore, mpsc, oneshot, watch};
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep, timeout};

pub use bridge::Mailbox;
pub use door::{Listening, SocketFile, bind_control_socket, bind_loopback};
pub use feed::Feed;
pub use secrets::{Keys, Secrets};
pub use stream::STREAM_COUNT;

use super::metrics::HookTimes;
use super::wire::{Reply, Request};

/// The longest body, in bytes: the largest hook payloads seen are a file's text, and one that is
/// longer is cut by our own hook client to just this.
pub const BODY_LIMIT: usize = 1024 * 1024;

/// The most header lines of a request: browsers send about 20.
pub const HEADER_LIMIT: usize = 64;

/// The longest request line and headers together, in bytes: hyper's least.
const HEAD_BYTES: usize = 16 * 1024;

/// How long a request may take to arrive whole, counted from the connection.
pub const READ_LIMIT: Duration = Duration::from_secs(5);

/// How long a connection may last altogether: reading, the loop's answer, and a slow reader.
const CONNECTION_LIMIT: Duration = Duration::from_secs(15);

/// The most connections of one door at a time, of the 1 024 descriptors that a process usually may have. Others wait in the kernel's
/// queue, no longer than [`READ_LIMIT`] behind a crowd that sends nothing.
pub const CONNECTION_COUNT: usize = 256;

/// How long a call may wait for room in the loop's queue: a hook has 300 ms for everything.
const QUEUE_LIMIT: Duration = Duration::from_millis(100);

/// How long the loop may take to answer a call.
const ANSWER_LIMIT: Duration = Duration::from_secs(2);

/// How long the loop may take to word the status line; its client has 300 ms for everything.
const LINE_LIMIT: Duration = Duration::from_millis(150);

/// How long the loop may take to refuse a hook; [`crate::cli::hook`] waits a little longer for the answer.
const REFUSAL_LIMIT: Duration = Duration::from_millis(1_500);

/// How long answers under way may take once the door closes.
const CLOSING_LIMIT: Duration = Duration::from_millis(500);

/// How long to wait after a failed accept, which means that file descriptors have run out.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);

/// A request on its way to the loop, with the way back.
///
/// For an observation no caller may be waiting: then sending the reply fails, which is to be ignored.
#[derive(Debug)]
pub struct Call {
    /// What is wanted.
    pub request: Request,
    /// Where the answer goes.
    pub reply: oneshot::Sender<Reply>,
}

/// Why a door could not be opened or its secrets not be written.
#[derive(Debug, thiserror::Error)]
pub enum ApiError {
    /// The socket's path does not fit the kernel's address.
    #[error(
        "the control socket's path must be at most {most} bytes long, but `{path}` has {found}"
    )]
    PathTooLong {
        /// The path.
        path: PathBuf,
        /// How many bytes it may have.
        most: usize,
        /// How many bytes it has.
        found: usize,
    },
    /// The directory is not one that only we can write to.
    #[error("`{path}` must be a directory of our own with mode 0700, but {found}")]
    UnsafeDirectory {
        /// The directory.
        path: PathBuf,
        /// What was found instead.
        found: String,
    },
    /// Something stands at the path that is not a socket of ours.
    #[error("expected no file or an old socket at `{path}`, but found {found}")]
    Occupied {
        /// The path.
        path: PathBuf,
        /// What was found.
        found: String,
    },
    /// Another supervisor answers on that socket.
    #[error("another supervisor answers on `{path}`")]
    Live {
        /// The socket's path.
        path: PathBuf,
    },
    /// The address is one that others can reach.
    #[error("the API listens on loopback addresses only (127.0.0.1 or [::1]), not on {address}")]
    NotLoopback {
        /// The address asked for.
        address: SocketAddr,
    },
    /// A path or command cannot be written into the secrets' line format.
    #[error("`{path}` has a line break in it, which the secrets' files cannot hold")]
    LineBreak {
        /// The offending path.
        path: PathBuf,
    },
    /// The system refused.
    #[error("cannot {act} `{path}`")]
    Io {
        /// What was tried, as a verb.
        act: &'static str,
        /// On what.
        path: PathBuf,
        /// The system's reason.
        source: io::Error,
    },
}

impl ApiError {
    fn io(act: &'static str, path: impl Into<PathBuf>) -> impl FnOnce(io::Error) -> Self {
        let path = path.into();
        move |source| Self::Io { act, path, source }
    }
}

/// The state that the endpoints of every door share: the queue of calls, the feed of events, the bridge's mailbox, the hooks' times.
#[derive(Clone, Debug)]
pub struct RequestQueue {
    /// The loop's queue.
    pub calls: mpsc::Sender<Call>,
    /// What happens, for `GET /events`.
    pub feed: Feed,
    /// Orders for the client's own side of the session.
    pub mailbox: Mailbox,
    hooks: Arc<Mutex<HookTimes>>,
}

impl RequestQueue {
    /// A queue whose calls go to the loop by `calls`.
    #[must_use]
    pub fn new(calls: mpsc::Sender<Call>, feed: Feed) -> Self {
        Self {
            calls,
            feed,
            mailbox: Mailbox::default(),
            hooks: Arc::default(),
        }
    }

    /// How long hooks have taken so far.
    fn hooks(&self) -> MutexGuard<'_, HookTimes> {
        // Figures are whole between any two statements, so a panic elsewhere cannot have torn them.
        self.hooks.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Serves one door until `shutdown` resolves, then lets answers under way finish and removes the socket.
///
/// Observations are answered as soon as the loop's queue has taken them, in the order in which they came; a
/// queue that stays full is answered with 503, never waited for.
pub async fn serve(
    listening: Listening,
    keys: Keys,
    requests: RequestQueue,
    shutdown: impl Future<Output = ()> + Send,
) {
    let (close, closing) = watch::channel(false);
    let router = routes::router(&routes::ServerState {
        requests,
        keys,
        port: listening.port(),
        streams: Arc::new(Semaphore::new(STREAM_COUNT)),
        polls: Arc::new(Semaphore::new(bridge::POLL_COUNT)),
        closing,
    });
    let places = Arc::new(Semaphore::new(CONNECTION_COUNT));
    let mut connections = JoinSet::new();
    tokio::pin!(shutdown);
    loop {
        tokio::select! {
            () = &mut shutdown => break,
            Some(ended) = connections.join_next(), if !connections.is_empty() => {
                if let Err(error) = ended && error.is_panic() {
                    tracing::error!(%error, "a connection's task panicked; the door stays open");
                }
            }
            (accepted, place) = accept(&listening, &places) => match accepted {
                Ok((stream, process)) => {
                    let router = router.clone();
                    connections.spawn(async move {
                        attend(stream, router, process).await;
                        drop(place);
                    });
                }
                Err(error) => {
                    tracing::warn!(%error, "cannot accept a connection");
                    sleep(ACCEPT_PAUSE).await;
                }
            }
        }
    }
    close.send_replace(true);
    let closing = async { while connections.join_next().await.is_some() {} };
    if timeout(CLOSING_LIMIT, closing).await.is_err() {
        connections.abort_all();
    }
    listening.remove();
}

/// A connection of either kind.
trait Stream: AsyncRead + AsyncWrite + Send + Unpin {}
impl<T: AsyncRead + AsyncWrite + Send + Unpin> Stream for T {}

/// Accepts the next connection once there is a place for it.
async fn accept(
    listening: &Listening,
    places: &Arc<Semaphore>,
) -> (
    io::Result<(Box<dyn Stream>, Option<u32>)>,
    Option<OwnedSemaphorePermit>,
) {
    // The semaphore is never closed.
    let place = Arc::clone(places).acquire_owned().await.ok();
    (listening.accept().await, place)
}

/// Answers the one request of a connection.
async fn attend(stream: Box<dyn Stream>, router: Router, process: Option<u32>) {
    let connection = Arc::new(Connection {
        process,
        came: Instant::now(),
        streams: AtomicBool::new(false),
        lost: Notify::new(),
    });
    let service = TowerToHyperService::new(router);
    let mark = Arc::clone(&connection);
    let service = hyper::service::service_fn(move |mut request: hyper::Request<Incoming>| {
        request.extensions_mut().insert(Arc::clone(&mark));
        hyper::service::Service::call(&service, request)
    });
    let exchange = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(READ_LIMIT)
        .max_headers(HEADER_LIMIT)
        .max_buf_size(HEAD_BYTES)
        // A client that has said everything may close its side and still wait for the answer.
        .half_close(true)
        .keep_alive(false)
        .serve_connection(TokioIo::new(stream), service);
    let limit = async {
        sleep(CONNECTION_LIMIT).await;
        if connection.streams.load(Ordering::Acquire) {
            std::future::pending::<()>().await;
        }
    };
    tokio::select! {
        ended = exchange => if let Err(error) = ended {
            tracing::debug!(%error, "a connection ended early");
        },
        () = limit => tracing::warn!("a connection outlived its time limit and was closed"),
        () = connection.lost.notified() => tracing::debug!("a stream that nobody reads was closed"),
    }
}

/// A connection as the endpoints know it.
#[derive(Debug)]
struct Connection {
    /// The process at its other end, where the system says so.
    process: Option<u32>,
    /// When it was accepted.
    came: Instant,
    /// Whether it is a stream of events, which lives for as long as it is read.
    streams: AtomicBool,
    /// Notified when its stream is not read any more.
    lost: Notify,
}
