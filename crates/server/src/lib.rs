//! The control socket and the loopback port, with the rights, sizes and times that are allowed there.
//!
//! # Trust boundary
//!
//! A client is not trusted until it has proved itself: on the Unix socket the kernel gives the peer's user
//! id, which must be ours, and both doors require a bearer token too. One token *observes* (posts
//! events, reads the usage figure) and is all that the hosted agent's hooks get; one is the *bridge's*,
//! which observes too and answers orders; the third one *controls*. A web page in the user's browser is
//! the classic enemy of local servers, so any `Origin` is refused, the port checks `Host`, a change of
//! state needs `application/json`, and no `GET` changes anything.
//!
//! On a port there may be the [`phone`] page too, for the user's paired devices; it has checks of its own.
//!
//! # Wire format
//!
//! HTTP/1.1, one request per connection, JSON both ways, except for the text of `/metrics` and the events of `/events`.
//! Every answer that is not a success carries `{"error", "hint"}`, and `"field"` where one is wrong, except to requests too
//! broken to be HTTP, which hyper answers with a bare status code. `assets/openapi.json` describes all of it.
//!
//! # Order
//!
//! An observation is answered once it is in the loop's one queue. A hook is a process of its own that ends when it has
//! its answer, and the agent continues when the hook has ended: so if the agent waits for one hook before it starts
//! the next, the loop gets the two in that order. Hooks that the agent runs in parallel have no order in the first place.
//!
//! # Limits
//!
//! The limits are the constants below, each with its reason.

pub mod attach;
mod bridge;
pub mod client;
mod door;
mod feed;
pub mod phone;
mod routes;
mod secrets;
mod stream;
mod tls;

use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Weak};
use std::time::Duration;

use axum::Router;
use hyper::body::{Body as _, Incoming};
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use parking_lot::Mutex;
use rustix::process::{Pid, test_kill_process};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpStream, UnixStream};
use tokio::sync::{Notify, OwnedSemaphorePermit, Semaphore, mpsc, oneshot, watch};
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep, timeout};

pub use attach::Attachment;
pub use bridge::Mailbox;
pub use door::{Listening, SocketFile, bind_control_socket, bind_loopback, bind_port};
pub use feed::Feed;
pub use secrets::{Keys, Secrets};
pub use stream::STREAM_COUNT;
pub use tls::Tls;

use pitstop_core::api::metrics::HookTimes;
use pitstop_core::api::wire::{Reply, Request};
use pitstop_core::config::load::paths::DirError;

/// The longest body, in bytes: the largest hook payloads seen are a file's text, and our own hook client
/// cuts longer ones to exactly this length.
pub const BODY_LIMIT: usize = 1024 * 1024;

/// The most header lines of a request: browsers send about 20.
pub const HEADER_LIMIT: usize = 64;

/// The longest request line and headers together, in bytes: the least that hyper accepts.
const HEAD_BYTES: usize = 16 * 1024;

/// The longest time a request may take to arrive completely, counted from the connection.
pub const READ_LIMIT: Duration = Duration::from_secs(5);

/// The longest total time of a connection: reading, the loop's answer, and a slow reader.
const CONNECTION_LIMIT: Duration = Duration::from_secs(15);

/// The most connections of one door at a time, out of the 1 024 descriptors that a process usually may have. Others wait in the
/// kernel's queue, no longer than `SENDING_LIMIT` behind connections that send nothing.
pub const CONNECTION_COUNT: usize = 256;

/// The longest time that a request may take to arrive while others wait for its place: a hook has this long for everything, and our
/// own clients send theirs at once.
const SENDING_LIMIT: Duration = Duration::from_millis(300);

/// The longest wait of a call for room in the loop's queue: a hook has 300 ms for everything.
const QUEUE_LIMIT: Duration = Duration::from_millis(100);

/// The longest time the loop may take to answer a call: on a machine with twenty busy processes two seconds were not enough.
const ANSWER_LIMIT: Duration = Duration::from_secs(8);

/// The time that who asks should wait for an answer: longer than the loop's own limit, so that its explanation arrives.
pub const CLIENT_LIMIT: Duration = Duration::from_secs(ANSWER_LIMIT.as_secs() + 2);

/// The longest time the loop may take to write the status line; its client has 300 ms for everything.
const LINE_LIMIT: Duration = Duration::from_millis(150);

/// The longest time the loop may take to refuse a hook; `pitstop hook` waits a little longer for the answer.
const REFUSAL_LIMIT: Duration = Duration::from_millis(1_500);

/// The longest time for pending answers to finish once the door closes.
const CLOSING_LIMIT: Duration = Duration::from_millis(500);

/// The time between two looks at whether the process of a held hook still lives.
const LIFE_LOOK: Duration = Duration::from_millis(50);

/// The pause after a failed accept, which means that file descriptors have run out.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);

/// A request on its way to the loop, with the channel for its answer.
///
/// The caller of an observation may not wait: then sending the reply fails, and that must be ignored.
#[derive(Debug)]
pub struct Call {
    /// The request.
    pub request: Request,
    /// The sender for the answer.
    pub reply: oneshot::Sender<Reply>,
}

/// The reason why a door could not be opened or its secrets not be written.
#[derive(Debug, thiserror::Error)]
pub enum ApiError {
    /// The socket's path does not fit the kernel's address.
    #[error(
        "the control socket's path must be at most {most} bytes long, but `{path}` has {found}"
    )]
    PathTooLong {
        /// The path.
        path: PathBuf,
        /// The greatest allowed length, in bytes.
        most: usize,
        /// The length of the path, in bytes.
        found: usize,
    },
    /// The directory is not one that only we can enter.
    #[error(transparent)]
    Directory(#[from] DirError),
    /// Others can swap what is in the directory above it.
    #[error("expected `{path}` to keep our directory in its place, but it {fault}")]
    UnsafeDirectory {
        /// The directory above.
        path: PathBuf,
        /// Its fault.
        fault: String,
    },
    /// The path is occupied by something other than a socket of ours.
    #[error("expected no file or an old socket at `{path}`, but found {found}")]
    Occupied {
        /// The path.
        path: PathBuf,
        /// A description of the thing that was found.
        found: String,
    },
    /// Another supervisor answers on that socket.
    #[error("another supervisor answers on `{path}`")]
    Live {
        /// The socket's path.
        path: PathBuf,
    },
    /// The address is one that other machines can reach.
    #[error("the API listens on loopback addresses only (127.0.0.1 or [::1]), not on {address}")]
    NotLoopback {
        /// The requested address.
        address: SocketAddr,
    },
    /// A path or command cannot be written into the secrets' line format.
    #[error("`{path}` has a line break in it, which the secrets' files cannot hold")]
    LineBreak {
        /// The offending path.
        path: PathBuf,
    },
    /// A certificate or its key cannot be used.
    #[error("cannot use `{path}` for TLS")]
    Tls {
        /// The file.
        path: PathBuf,
        /// The reason.
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// A system call failed.
    #[error("cannot {act} `{path}`")]
    Io {
        /// The action that failed, as a verb.
        act: &'static str,
        /// The path of the action.
        path: PathBuf,
        /// The system's reason.
        source: io::Error,
    },
}

impl ApiError {
    /// Reports whether a system call failed, as each does on a disk that is full or read-only.
    #[must_use]
    pub const fn is_io(&self) -> bool {
        matches!(self, Self::Io { .. } | Self::Directory(DirError::Io { .. }))
    }

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
    /// The feed of events, for `GET /events`.
    pub feed: Feed,
    /// The orders for the client's own side of the session.
    pub mailbox: Mailbox,
    /// The way to the loop for terminals that want to be attached.
    pub attachments: mpsc::Sender<Attachment>,
    hooks: Arc<Mutex<HookTimes>>,
}

impl RequestQueue {
    /// Creates a queue whose calls go to the loop through `calls`, and terminals through `attachments`.
    pub fn new(
        calls: mpsc::Sender<Call>,
        feed: Feed,
        attachments: mpsc::Sender<Attachment>,
    ) -> Self {
        Self {
            calls,
            feed,
            mailbox: Mailbox::default(),
            attachments,
            hooks: Arc::default(),
        }
    }
}

/// Serves one door until `shutdown` resolves, then lets pending answers finish and removes the socket.
///
/// Observations are answered as soon as the loop's queue has taken them, in order of arrival; if the queue
/// stays full, the answer is 503 and not a longer wait.
pub async fn serve(
    listening: Listening,
    keys: Keys,
    requests: RequestQueue,
    shutdown: impl Future<Output = ()> + Send,
) {
    let (close, closing) = watch::channel(false);
    let router = script_router(&listening, (keys, requests), closing);
    serve_router((listening, None), router, close, shutdown).await;
}

/// Serves a port as [`serve`] does: the page for paired devices, and for scripts everything else, if they are to be served there; over
/// TLS, if a certificate is given.
pub async fn serve_port(
    listening: Listening,
    tls: Option<Tls>,
    gateway: &phone::Gateway,
    scripts: Option<(Keys, RequestQueue)>,
    shutdown: impl Future<Output = ()> + Send,
) {
    let (close, closing) = watch::channel(false);
    let mut router = match listening.address() {
        Some(address) => gateway.router(address, tls.is_some(), closing.clone()),
        None => Router::new(),
    };
    if let Some(scripts) = scripts {
        let scripts = script_router(&listening, scripts, closing);
        router = router.fallback_service(scripts);
    }
    serve_router((listening, tls), router, close, shutdown).await;
}

/// Returns the endpoints for scripts.
fn script_router(
    listening: &Listening,
    (keys, requests): (Keys, RequestQueue),
    closing: watch::Receiver<bool>,
) -> Router {
    routes::router(&routes::ServerState {
        requests,
        keys,
        port: listening.port(),
        streams: Arc::new(Semaphore::new(STREAM_COUNT)),
        polls: Arc::new(Semaphore::new(bridge::POLL_COUNT)),
        terminals: Arc::new(Semaphore::new(attach::TERMINAL_COUNT)),
        watchers: Arc::new(Semaphore::new(attach::TERMINAL_COUNT)),
        takers: Arc::new(Semaphore::new(1)),
        closing,
    })
}

/// Serves routes at a door until `shutdown` resolves; then `close` says so to the streams.
async fn serve_router(
    (listening, tls): (Listening, Option<Tls>),
    router: Router,
    close: watch::Sender<bool>,
    shutdown: impl Future<Output = ()> + Send,
) {
    let mut places = Places::new();
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
            (accepted, place) = accept(&listening, &mut places) => match accepted {
                Ok((stream, process)) => {
                    let (router, tls) = (router.clone(), tls.clone());
                    let connection = places.register(process);
                    connections.spawn(async move {
                        attend(stream, (router, tls), connection).await;
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
trait Stream: AsyncRead + AsyncWrite + Send + Unpin {
    /// Returns the Unix socket, if it is one.
    fn into_unix(self: Box<Self>) -> Option<UnixStream>;
}

impl Stream for UnixStream {
    fn into_unix(self: Box<Self>) -> Option<UnixStream> {
        Some(*self)
    }
}

impl Stream for TcpStream {
    fn into_unix(self: Box<Self>) -> Option<UnixStream> {
        None
    }
}

/// The places for the connections of a door.
#[derive(Debug)]
struct Places {
    free: Arc<Semaphore>,
    /// The connections whose request may not have arrived yet.
    sending: Vec<Weak<Connection>>,
}

impl Places {
    fn new() -> Self {
        Self {
            free: Arc::new(Semaphore::new(CONNECTION_COUNT)),
            sending: Vec::new(),
        }
    }

    /// Waits for a free place. While there is none, connections that are slow to send give theirs up.
    async fn next(&mut self) -> Option<OwnedSemaphorePermit> {
        loop {
            let free = Arc::clone(&self.free).acquire_owned();
            // The semaphore is never closed.
            if let Ok(place) = timeout(SENDING_LIMIT / 10, free).await {
                return place.ok();
            }
            for connection in self.sending.iter().filter_map(Weak::upgrade) {
                if !connection.has_asked() && connection.came.elapsed() > SENDING_LIMIT {
                    connection.lost.notify_one();
                }
            }
        }
    }

    /// Notes a connection that has been accepted.
    fn register(&mut self, process: Option<u32>) -> Arc<Connection> {
        let connection = Arc::new(Connection {
            process,
            came: Instant::now(),
            asked: AtomicBool::new(false),
            streams: AtomicBool::new(false),
            lost: Notify::new(),
        });
        let is_sending = |one: &Weak<Connection>| one.upgrade().is_some_and(|one| !one.has_asked());
        self.sending.retain(is_sending);
        self.sending.push(Arc::downgrade(&connection));
        connection
    }
}

/// Accepts the next connection once there is a place for it.
async fn accept(
    listening: &Listening,
    places: &mut Places,
) -> (
    io::Result<(Box<dyn Stream>, Option<u32>)>,
    Option<OwnedSemaphorePermit>,
) {
    let place = places.next().await;
    (listening.accept().await, place)
}

/// Answers the one request of a connection.
async fn attend(
    stream: Box<dyn Stream>,
    (router, tls): (Router, Option<Tls>),
    connection: Arc<Connection>,
) {
    let service = TowerToHyperService::new(router);
    let mark = Arc::clone(&connection);
    let service = hyper::service::service_fn(move |mut request: hyper::Request<Incoming>| {
        if request.body().is_end_stream() {
            mark.note_asked();
        }
        request.extensions_mut().insert(Arc::clone(&mark));
        hyper::service::Service::call(&service, request)
    });
    let exchange = async {
        let Some(stream) = tls::secured(stream, tls).await else {
            return Ok(());
        };
        http1::Builder::new()
            .timer(TokioTimer::new())
            .header_read_timeout(READ_LIMIT)
            .max_headers(HEADER_LIMIT)
            .max_buf_size(HEAD_BYTES)
            // A client that has sent everything may close its side and still wait for the answer.
            .half_close(true)
            .keep_alive(false)
            .serve_connection(TokioIo::new(stream), service)
            .with_upgrades()
            .await
    };
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
        () = connection.lost.notified() => tracing::debug!("a connection that is not used was closed"),
    }
}

impl Connection {
    /// Reports whether its whole request has arrived.
    fn has_asked(&self) -> bool {
        self.asked.load(Ordering::Acquire)
    }

    /// Notes that its whole request has arrived.
    fn note_asked(&self) {
        self.asked.store(true, Ordering::Release);
    }

    /// Waits until the process at its other end has ended; for ever if that is not known.
    async fn process_ended(&self) {
        let process = self.process.and_then(|id| Pid::from_raw(id.cast_signed()));
        let Some(process) = process else {
            return std::future::pending().await;
        };
        while test_kill_process(process).is_ok() {
            sleep(LIFE_LOOK).await;
        }
    }
}

/// A connection as the endpoints know it.
#[derive(Debug)]
struct Connection {
    /// The id of the process at its other end, where the system reports it.
    process: Option<u32>,
    /// The time at which it was accepted.
    came: Instant,
    /// True once its whole request has arrived.
    asked: AtomicBool,
    /// True if it is a stream of events, which lives for as long as it is read.
    streams: AtomicBool,
    /// A notice that its stream is not read any more, or that another needs its place.
    lost: Notify,
}
