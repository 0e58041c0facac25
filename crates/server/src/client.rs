//! The small client through which `hook`, `statusline`, `status` and `ctl` talk to the supervisor.
//!
//! One request, one answer, over the control socket, without a runtime: a hook's time is added to the
//! session it reports from, so this path starts no threads, parses no JSON and never waits past the
//! deadline it was given. The socket is non-blocking from before the connect, because even a connect
//! hangs when a stopped supervisor's backlog is full.
//!
//! A file that names a socket and a token is believed only if it is ours, regular, no link and closed
//! to others: otherwise another user could have the events sent to a socket of theirs.

#![allow(
    clippy::disallowed_methods,
    reason = "it touches the world: deadlines of a real connection"
)]

use std::ffi::OsStr;
use std::io::{self, ErrorKind, Read, Write};
use std::os::fd::OwnedFd;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::MetadataExt;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::OFlags;
use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketAddrUnix, SocketType};

mod events;

pub use events::Events;
pub use pitstop_agent::claude::OBSERVE_VARIABLE;
use pitstop_base::private_file::{self, OpenError};

/// The header that names the paired device for which a request is sent, in UTF-8. Only on the Unix socket does it mean anything.
pub const DEVICE_HEADER: &str = "X-Pitstop-Device";

/// The largest secrets file read, in bytes: two short lines and a command.
const FILE_LIMIT: u64 = 64 * 1024;

/// The largest answer read, in bytes: a history of some thousand iterations.
const ANSWER_LIMIT: usize = 16 * 1024 * 1024;

/// The longest head of an answer, in bytes.
const HEAD_LIMIT: usize = 16 * 1024;

/// The status of an answer after which both sides go on in another protocol.
const SWITCHING: u16 = 101;

/// The pause before another attempt to connect to a socket whose backlog is full.
const BACKLOG_PAUSE: Duration = Duration::from_millis(2);

/// The longest time a supervisor may take to accept a connection before it counts as alive but busy.
const PROBE_LIMIT: Duration = Duration::from_millis(50);

/// The reason why there is no answer.
#[derive(Debug, thiserror::Error)]
pub enum ClientError {
    /// There is no listening process: the secrets file, the socket, or the process behind it is missing.
    #[error("no supervisor answers at `{path}`")]
    NoSupervisor {
        /// The secrets file or the socket.
        path: PathBuf,
    },
    /// The file cannot be trusted, or is not a secrets file.
    #[error("expected `{path}` to be a file of our own with mode 0600, but {found}")]
    BadFile {
        /// The path of the file.
        path: PathBuf,
        /// The fault of the file.
        found: &'static str,
    },
    /// The deadline passed.
    #[error("the supervisor did not answer in time; an order may still be carried out")]
    Late,
    /// The answer was not in the HTTP format that we read.
    #[error("expected an HTTP/1.1 answer, found {found}")]
    Garbled {
        /// A description of the found text.
        found: &'static str,
    },
    /// A system call failed.
    #[error("cannot {act}")]
    Io {
        /// The action that failed.
        act: &'static str,
        /// The system's reason.
        source: io::Error,
    },
}

impl ClientError {
    fn io(act: &'static str) -> impl Fn(io::Error) -> Self {
        move |source| Self::Io { act, source }
    }
}

/// An answer as it was received.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answer {
    /// The HTTP status code.
    pub status: u16,
    /// The body as bytes.
    pub body: Vec<u8>,
}

/// A supervisor's socket with the token that opens it.
#[derive(Clone)]
pub struct ApiClient {
    socket: PathBuf,
    token: String,
    status_line: Option<std::ffi::OsString>,
    /// The paired device for which it speaks.
    device: Option<String>,
}

impl std::fmt::Debug for ApiClient {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ApiClient")
            .field("socket", &self.socket)
            .finish_non_exhaustive()
    }
}

impl ApiClient {
    /// Reads an observe file, which hooks and the status line may use, or a control file, which the user's own commands may.
    pub fn from_file(path: &Path) -> Result<Self, ClientError> {
        let bad = |found| ClientError::BadFile {
            path: path.to_owned(),
            found,
        };
        let bytes = read_private(path)?;
        let mut lines = bytes.splitn(3, |&byte| byte == b'\n');
        let (Some(socket), Some(token)) = (lines.next(), lines.next()) else {
            return Err(bad("it has no two lines"));
        };
        let token = std::str::from_utf8(token).unwrap_or_default();
        if socket.first() != Some(&b'/') {
            return Err(bad("it names no socket"));
        }
        if token.is_empty() || !token.bytes().all(|byte| byte.is_ascii_hexdigit()) {
            return Err(bad("it holds no token"));
        }
        let command = lines.next().map(<[u8]>::trim_ascii).unwrap_or_default();
        Ok(Self {
            socket: PathBuf::from(OsStr::from_bytes(socket)),
            token: token.to_owned(),
            status_line: (!command.is_empty())
                .then(|| std::ffi::OsString::from_vec(command.to_vec())),
            device: None,
        })
    }

    /// Has each request name the paired device for which it is sent. The name must be free of control characters.
    #[must_use]
    pub fn on_behalf_of(mut self, device: &str) -> Self {
        self.device = Some(device.to_owned());
        self
    }

    /// Returns the socket's path.
    pub fn socket(&self) -> &Path {
        &self.socket
    }

    /// Returns the user's own status line command, if an observe file names one.
    pub fn status_line(&self) -> Option<&OsStr> {
        self.status_line.as_deref()
    }

    /// Posts JSON to `path`, which must be plain ASCII, and reads the answer, all before `deadline`.
    pub fn post(&self, path: &str, json: &[u8], deadline: Instant) -> Result<Answer, ClientError> {
        let more = format!(
            "Connection: close\r\nContent-Type: application/json\r\nContent-Length: {}\r\n",
            json.len()
        );
        let (answer, _) = self.exchange("POST", path, &more, json, deadline)?;
        Ok(answer)
    }

    /// Gets `path`, which must be plain ASCII, before `deadline`.
    pub fn get(&self, path: &str, deadline: Instant) -> Result<Answer, ClientError> {
        let (answer, _) = self.exchange("GET", path, "Connection: close\r\n", b"", deadline)?;
        Ok(answer)
    }

    /// Posts a request to `path` to go on in another protocol; if the answer's status is 101, the stream is the caller's, which does
    /// not block.
    pub fn upgrade(
        &self,
        path: &str,
        protocol: &str,
        deadline: Instant,
    ) -> Result<(Answer, UnixStream), ClientError> {
        let more = format!("Connection: upgrade\r\nUpgrade: {protocol}\r\nContent-Length: 0\r\n");
        self.exchange("POST", path, &more, b"", deadline)
    }

    /// Returns the head of a request with this first line and these further headers.
    pub(super) fn head(&self, first: &str, more: &str) -> String {
        let device = self.device.as_ref();
        let device = device.map(|name| format!("{DEVICE_HEADER}: {name}\r\n"));
        format!(
            "{first}\r\nHost: pitstop\r\nAuthorization: Bearer {}\r\n{}{more}\r\n",
            self.token,
            device.unwrap_or_default()
        )
    }

    /// Sends a request and reads its answer; the connection is open still.
    fn exchange(
        &self,
        method: &str,
        path: &str,
        more: &str,
        body: &[u8],
        deadline: Instant,
    ) -> Result<(Answer, UnixStream), ClientError> {
        let head = self.head(&format!("{method} {path} HTTP/1.1"), more);
        let mut stream = connect(&self.socket, deadline)?;
        // One buffer, one write: head and body reach the server in one wake-up.
        let mut message = head.into_bytes();
        message.extend_from_slice(body);
        let sent = write_all(&mut stream, &message, deadline);
        if matches!(sent, Err(ClientError::Late)) {
            return Err(ClientError::Late);
        }
        // A server that refuses a request may answer and close while we still write: its answer gives the reason.
        match (read_answer(&mut stream, deadline), sent) {
            (Err(_), Err(unsent)) => Err(unsent),
            (answer, _) => Ok((answer?, stream)),
        }
    }
}

/// Reports whether a process listens on the socket at `path`; one whose backlog is full counts as alive.
pub fn is_answered(path: &Path) -> bool {
    let outcome = connect(path, Instant::now() + PROBE_LIMIT);
    !matches!(outcome, Err(ClientError::NoSupervisor { .. }))
}

fn read_private(path: &Path) -> Result<Vec<u8>, ClientError> {
    let bad = |found| ClientError::BadFile {
        path: path.to_owned(),
        found,
    };
    let file = match private_file::open(path, OFlags::RDONLY) {
        Ok(file) => file,
        Err(OpenError::Link) => return Err(bad("it is a link")),
        Err(OpenError::NotRegular) => return Err(bad("it is no regular file")),
        Err(OpenError::Io(error))
            if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) =>
        {
            return Err(ClientError::NoSupervisor {
                path: path.to_owned(),
            });
        }
        Err(OpenError::Io(error)) => return Err(ClientError::io("open the secrets file")(error)),
    };
    let metadata = file
        .metadata()
        .map_err(ClientError::io("examine the secrets file"))?;
    if metadata.uid() != rustix::process::geteuid().as_raw() {
        return Err(bad("it belongs to another user"));
    }
    if metadata.mode() & 0o077 != 0 {
        return Err(bad("it is open to others"));
    }
    private_file::read_at_most(FILE_LIMIT, file).map_err(ClientError::io("read the secrets file"))
}

fn connect(path: &Path, deadline: Instant) -> Result<UnixStream, ClientError> {
    let act = ClientError::io("connect to the control socket");
    let address = SocketAddrUnix::new(path).map_err(|errno| act(errno.into()))?;
    let socket = new_socket().map_err(|errno| act(errno.into()))?;
    loop {
        match rustix::net::connect(&socket, &address) {
            Ok(()) => return Ok(UnixStream::from(socket)),
            Err(Errno::CONNREFUSED | Errno::NOENT | Errno::NOTDIR | Errno::NOTSOCK) => {
                return Err(ClientError::NoSupervisor {
                    path: path.to_owned(),
                });
            }
            // The backlog is full, and unlike for TCP there is nothing to poll for.
            Err(Errno::AGAIN | Errno::INTR) if Instant::now() + BACKLOG_PAUSE < deadline => {
                thread::sleep(BACKLOG_PAUSE);
            }
            Err(Errno::AGAIN | Errno::INTR) => return Err(ClientError::Late),
            Err(errno) => return Err(act(errno.into())),
        }
    }
}

/// Creates a non-blocking socket, in three calls because macOS has no flags for it.
fn new_socket() -> Result<OwnedFd, Errno> {
    let socket = rustix::net::socket(AddressFamily::UNIX, SocketType::STREAM, None)?;
    rustix::io::fcntl_setfd(&socket, rustix::io::FdFlags::CLOEXEC)?;
    rustix::io::ioctl_fionbio(&socket, true)?;
    Ok(socket)
}

fn write_all(
    stream: &mut UnixStream,
    mut rest: &[u8],
    deadline: Instant,
) -> Result<(), ClientError> {
    while !rest.is_empty() {
        match stream.write(rest) {
            Ok(count) => rest = &rest[count..],
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                wait_for(stream, PollFlags::OUT, deadline)?;
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(ClientError::io("send the request")(error)),
        }
    }
    Ok(())
}

/// Waits until the stream is ready, or fails if the deadline has passed.
fn wait_for(stream: &UnixStream, flags: PollFlags, deadline: Instant) -> Result<(), ClientError> {
    let left = deadline.saturating_duration_since(Instant::now());
    if left.is_zero() {
        return Err(ClientError::Late);
    }
    let timeout = Timespec::try_from(left).unwrap_or(Timespec {
        tv_sec: 1,
        tv_nsec: 0,
    });
    match poll(&mut [PollFd::new(stream, flags)], Some(&timeout)) {
        Ok(0) => Err(ClientError::Late),
        Ok(_) | Err(Errno::INTR) => Ok(()),
        Err(errno) => Err(ClientError::io("wait for the supervisor")(errno.into())),
    }
}

fn read_answer(stream: &mut UnixStream, deadline: Instant) -> Result<Answer, ClientError> {
    let mut bytes = Vec::new();
    while read_more(stream, &mut bytes, deadline)? {
        if let Some(answer) = parse_answer(&bytes, false)? {
            return Ok(answer);
        }
        if bytes.len() > ANSWER_LIMIT {
            return Err(garbled("one that is too long"));
        }
    }
    parse_answer(&bytes, true)?.ok_or(garbled("an answer cut short"))
}

/// Appends what comes next before `deadline`; returns false if no more bytes will come.
fn read_more(
    stream: &mut UnixStream,
    bytes: &mut Vec<u8>,
    deadline: Instant,
) -> Result<bool, ClientError> {
    let mut chunk = [0_u8; 8192];
    loop {
        match stream.read(&mut chunk) {
            Ok(count) => {
                bytes.extend_from_slice(&chunk[..count]);
                return Ok(count > 0);
            }
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                wait_for(stream, PollFlags::IN, deadline)?;
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(ClientError::io("read the answer")(error)),
        }
    }
}

fn garbled(found: &'static str) -> ClientError {
    ClientError::Garbled { found }
}

/// Returns the answer once it is complete; `ended` means that no more bytes will come.
fn parse_answer(bytes: &[u8], ended: bool) -> Result<Option<Answer>, ClientError> {
    let Some(end) = memchr::memmem::find(bytes, b"\r\n\r\n") else {
        if bytes.len() > HEAD_LIMIT {
            return Err(garbled("a head that is too long"));
        }
        return Ok(None);
    };
    let head =
        std::str::from_utf8(&bytes[..end]).map_err(|_| garbled("a head that is not text"))?;
    let body = &bytes[end + 4..];
    let mut lines = head.split("\r\n");
    let status = lines
        .next()
        .and_then(|line| line.strip_prefix("HTTP/1.1 "))
        .and_then(|line| line.get(..3)?.parse().ok())
        .ok_or_else(|| garbled("another first line"))?;
    let mut length = None;
    for (name, value) in lines.filter_map(|line| line.split_once(':')) {
        if name.eq_ignore_ascii_case("content-length") {
            let value = value.trim().parse::<usize>();
            length = Some(value.map_err(|_| garbled("a length that is no number"))?);
        } else if name.eq_ignore_ascii_case("transfer-encoding") {
            return Err(garbled("a transfer encoding"));
        }
    }
    let whole = match length {
        Some(length) => body.get(..length),
        // What follows is in the other protocol.
        None if status == SWITCHING => Some(&body[..0]),
        None if ended => Some(body),
        None => None,
    };
    Ok(whole.map(|body| Answer {
        status,
        body: body.to_vec(),
    }))
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::{PermissionsExt, symlink};
    use std::os::unix::net::UnixListener;

    use super::*;

    fn secrets_file(dir: &Path, text: &str) -> PathBuf {
        let path = dir.join("p.observe");
        fs::write(&path, text).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
        path
    }

    fn soon() -> Instant {
        Instant::now() + Duration::from_millis(200)
    }

    #[test]
    fn an_observe_file_names_socket_token_and_command() {
        let dir = tempfile::tempdir().unwrap();
        let path = secrets_file(dir.path(), "/run/p.sock\nab12\nmy line\n second\n");
        let client = ApiClient::from_file(&path).unwrap();
        assert_eq!(client.socket(), Path::new("/run/p.sock"));
        assert_eq!(client.status_line(), Some(OsStr::new("my line\n second")));
        assert!(!format!("{client:?}").contains("ab12"));
        let path = secrets_file(dir.path(), "/run/p.sock\nab12\n");
        assert_eq!(ApiClient::from_file(&path).unwrap().status_line(), None);
    }

    #[test]
    fn a_file_that_is_open_a_link_or_nonsense_is_not_believed() {
        let dir = tempfile::tempdir().unwrap();
        let refused =
            |path: &Path| matches!(ApiClient::from_file(path), Err(ClientError::BadFile { .. }));
        let path = secrets_file(dir.path(), "/run/p.sock\nab12\n");
        let link = dir.path().join("link");
        symlink(&path, &link).unwrap();
        assert!(refused(&link));
        fs::set_permissions(&path, fs::Permissions::from_mode(0o640)).unwrap();
        assert!(refused(&path));
        assert!(refused(dir.path()));
        for text in [
            "",
            "/run/p.sock",
            "relative\nab12\n",
            "/s\nnot hex\n",
            "/s\n\n",
        ] {
            assert!(refused(&secrets_file(dir.path(), text)), "{text:?}");
        }
        let missing = ApiClient::from_file(&dir.path().join("none"));
        assert!(matches!(missing, Err(ClientError::NoSupervisor { .. })));
    }

    #[test]
    fn answers_are_parsed_whole_and_only_whole() {
        let text = b"HTTP/1.1 202 Accepted\r\nContent-LENGTH: 3\r\nX: y\r\n\r\nabc";
        for cut in 0..text.len() {
            assert_eq!(parse_answer(&text[..cut], false).unwrap(), None, "{cut}");
        }
        let answer = parse_answer(text, false).unwrap().unwrap();
        assert_eq!((answer.status, answer.body.as_slice()), (202, &b"abc"[..]));
        let unbounded = b"HTTP/1.1 200 OK\r\n\r\nabc";
        assert_eq!(parse_answer(unbounded, false).unwrap(), None);
        assert_eq!(parse_answer(unbounded, true).unwrap().unwrap().body, b"abc");
    }

    #[test]
    fn what_is_no_answer_is_refused() {
        for text in [
            &b"SSH-2.0\r\n\r\n"[..],
            b"HTTP/1.1 xyz\r\n\r\n",
            b"HTTP/1.1 2\r\n\r\n",
            b"HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n",
            b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n",
            b"\xff\xfe\r\n\r\n",
            &vec![b'a'; HEAD_LIMIT + 1],
        ] {
            assert!(parse_answer(text, true).is_err(), "{} bytes", text.len());
        }
    }

    #[test]
    fn a_supervisor_that_never_answers_costs_no_more_than_the_deadline() {
        let dir = tempfile::tempdir().unwrap();
        let socket = dir.path().join("p.sock");
        // No process accepts: the kernel takes the connection and as many bytes as fit.
        let _listener = UnixListener::bind(&socket).unwrap();
        let path = secrets_file(dir.path(), &format!("{}\nab12\n", socket.display()));
        let client = ApiClient::from_file(&path).unwrap();
        for body in [vec![b'x'; 10], vec![b'x'; 1024 * 1024]] {
            let began = Instant::now();
            let outcome = client.post("/hooks/claude/Stop", &body, soon());
            assert!(matches!(outcome, Err(ClientError::Late)));
            assert!(began.elapsed() < Duration::from_millis(400));
        }
    }

    #[test]
    fn a_full_backlog_is_waited_for_and_given_up_in_time() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("p.sock");
        let socket = rustix::net::socket(AddressFamily::UNIX, SocketType::STREAM, None).unwrap();
        rustix::net::bind(&socket, &SocketAddrUnix::new(&path).unwrap()).unwrap();
        rustix::net::listen(&socket, 0).unwrap();
        let held: Vec<_> = (0..16)
            .filter_map(|_| connect(&path, soon()).ok())
            .take(2)
            .collect();
        assert!(!held.is_empty());
        if cfg!(target_os = "linux") {
            let began = Instant::now();
            assert!(matches!(connect(&path, soon()), Err(ClientError::Late)));
            assert!(began.elapsed() < Duration::from_millis(400));
            assert!(is_answered(&path), "alive, though busy");
        }
    }

    #[test]
    fn no_process_answers_on_a_dead_socket_or_none() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("p.sock");
        assert!(!is_answered(&path));
        drop(UnixListener::bind(&path).unwrap());
        assert!(!is_answered(&path));
        let _alive = UnixListener::bind(dir.path().join("q.sock")).unwrap();
        assert!(is_answered(&dir.path().join("q.sock")));
    }
}
