//! Terminals that hand themselves over: `POST /attach`, and the messages after it.
//!
//! ```text
//!   client ── request with the control token ──► 101 ── Hello, with the descriptors of its terminal ──► the loop
//!   client ◄── Attached ── the loop            client takes the terminal ── Taken ──► the loop draws
//!   client ◄──────────────── one JSON object a line, in both directions ──────────────────────────────► the loop
//! ```
//!
//! The supervisor reads and writes the terminal itself, so that no byte is copied on its way. The client keeps the terminal's
//! settings, which it alone can restore whatever happens here: it waits, reports a new size, and gives the terminal back when the
//! connection ends. A supervisor that was started for a terminal has the connection from its beginning.

use std::{
    collections::BTreeMap,
    io::{self, IoSlice, IoSliceMut},
    mem::MaybeUninit,
    os::{
        fd::{AsFd, BorrowedFd, OwnedFd},
        unix::net::UnixStream as BlockingStream,
    },
    path::PathBuf,
    sync::Arc,
};

use axum::{
    body::Body,
    extract::{Request as HttpRequest, State},
    http::{StatusCode, header},
    response::Response,
};
use hyper_util::rt::TokioIo;
use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, recvmsg, sendmsg,
};
use serde::{Deserialize, Serialize};
use tokio::{
    io::{
        AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader, Interest, ReadHalf,
        WriteHalf,
    },
    net::UnixStream,
    sync::OwnedSemaphorePermit,
    time::timeout,
};

use super::{
    READ_LIMIT, Stream,
    routes::{Answered, HttpError, ServerState},
};

/// The protocol's name in the `Upgrade` header, with the version of the messages. [`ClientMessage::Detach`],
/// [`ServerMessage::Detached`] and [`ServerMessage::Ended`] never change, and neither do the orders `detach` and `stop` of the API, so
/// that a supervisor of any version can be left and ended.
pub const PROTOCOL: &str = "pitstop-attach/1";

/// The query by which a client asks for a place although all are taken, because it sends the others away.
pub const TAKE_QUERY: &str = "take";

/// The query by which a client asks for one of the places of those that only watch, which take none from a terminal that types.
pub const WATCH_QUERY: &str = "watch";

/// The most terminals that are attached at a time, beside one that takes over from them and as many that watch.
pub(super) const TERMINAL_COUNT: usize = 16;

/// The longest message, in bytes.
const MESSAGE_LIMIT: usize = 64 * 1024;

/// The most variables that a client may name, and the longest value of one in bytes: those that describe a terminal are few.
const VARIABLES: (usize, usize) = (64, 1024);

/// The first message of a client, with which it sends its terminal's descriptors: for input, then for output.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Hello {
    /// True if the terminal only looks: it neither types nor sets the size.
    #[serde(default)]
    pub watch: bool,
    /// True if all other terminals are to be detached.
    #[serde(default)]
    pub take: bool,
    /// The variables of the client's environment that describe the terminal: its abilities, and the pane of a manager it is in.
    #[serde(default)]
    pub environment: BTreeMap<String, String>,
}

/// A later message of a client.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum ClientMessage {
    /// The terminal may have a new size.
    Resized,
    /// The client is about to be stopped by its shell, and gives the terminal back once the answer has come.
    Suspend,
    /// The client has taken the terminal, for the first time or again.
    Taken,
    /// The editor has ended.
    Ran {
        /// True if it reports success.
        success: bool,
    },
    /// The client wants to leave.
    Detach,
}

/// A message to a client.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum ServerMessage {
    /// The terminal is among those attached; nothing is drawn before [`ClientMessage::Taken`].
    Attached,
    /// Nothing is drawn any more until [`ClientMessage::Taken`].
    Suspended,
    /// The client is to have this file edited in the terminal by the user's editor, and to take the terminal back then.
    Edit {
        /// The file.
        file: PathBuf,
    },
    /// The terminal is detached, and the session goes on.
    Detached {
        /// The reason, as a clause for the person.
        why: String,
        /// The command that comes back to the session, where `pitstop attach` does not find it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        attach: Option<String>,
    },
    /// Nothing is drawn any more: the supervisor is about to end, and [`ServerMessage::Ended`] follows.
    Released,
    /// The supervisor could not start.
    Failed {
        /// The exit code.
        code: i32,
        /// What is wrong.
        error: String,
        /// What to do about it; empty if the error is enough.
        hint: String,
    },
    /// The supervisor has ended.
    Ended {
        /// The exit code.
        code: i32,
        /// The last lines for the person.
        text: String,
    },
}

/// A terminal that a client has handed over.
#[derive(Debug)]
pub struct Attachment {
    /// The client's first message.
    pub hello: Hello,
    /// The terminal's descriptors: for input and for output.
    pub terminal: (OwnedFd, OwnedFd),
    /// The messages of the client.
    pub messages: Messages,
    /// The way for messages to the client.
    pub answers: Answers,
}

/// The messages of a client, in their order.
#[derive(Debug)]
pub struct Messages {
    lines: BufReader<ReadHalf<UnixStream>>,
    /// The place of the terminal among those attached; none for that of the start.
    place: Option<OwnedSemaphorePermit>,
}

impl Messages {
    /// Waits for the next message; none if the client has gone, or sends what is no line. What a newer client may say beyond this
    /// version is passed over.
    pub async fn next(&mut self) -> Option<ClientMessage> {
        loop {
            let mut line = Vec::new();
            let mut bounded = (&mut self.lines).take(MESSAGE_LIMIT as u64);
            bounded.read_until(b'\n', &mut line).await.ok()?;
            if !line.ends_with(b"\n") {
                return None;
            }
            match serde_json::from_slice(&line) {
                Ok(message) => return Some(message),
                Err(error) => {
                    tracing::warn!(%error, "a message of an attached client is not known");
                }
            }
        }
    }
}

/// The way for messages to a client.
#[derive(Debug)]
pub struct Answers(WriteHalf<UnixStream>);

impl Answers {
    /// Sends a message; fails if the client has gone.
    pub async fn send(&mut self, message: &ServerMessage) -> io::Result<()> {
        self.0.write_all(&line(message)).await
    }
}

/// Returns a message as the line in which it is sent.
pub fn line(message: &impl Serialize) -> Vec<u8> {
    // Plain data with text keys always becomes JSON.
    let mut bytes = serde_json::to_vec(message).unwrap_or_default();
    bytes.push(b'\n');
    bytes
}

pub(super) async fn attach(State(state): State<ServerState>, mut request: HttpRequest) -> Answered {
    if state.port.is_some() {
        return Err(HttpError::new(
            StatusCode::FORBIDDEN,
            "a terminal attaches by the control socket, not by a port",
            "use `pitstop attach`",
        ));
    }
    let asked = request.headers().get(header::UPGRADE);
    if asked.is_none_or(|protocol| protocol.as_bytes() != PROTOCOL.as_bytes()) {
        return Err(HttpError::new(
            StatusCode::UPGRADE_REQUIRED,
            format!("expected `Upgrade: {PROTOCOL}`"),
            "use `pitstop attach`",
        ));
    }
    let crowded = |_| {
        HttpError::new(
            StatusCode::SERVICE_UNAVAILABLE,
            format!("too many terminals: at most {TERMINAL_COUNT} at a time"),
            "detach one of them, or use `pitstop attach --take`",
        )
    };
    let query = request.uri().query();
    let (takes, watches) = (query == Some(TAKE_QUERY), query == Some(WATCH_QUERY));
    let places = match (takes, watches) {
        (true, _) => &state.takers,
        (_, true) => &state.watchers,
        _ => &state.terminals,
    };
    let place = Arc::clone(places).try_acquire_owned().map_err(crowded)?;
    let upgrade = hyper::upgrade::on(&mut request);
    let attachments = state.requests.attachments.clone();
    tokio::spawn(async move {
        let received = async {
            let mut attachment = receive(upgraded(upgrade).await?, Some(place)).await?;
            attachment.hello.watch |= watches;
            if takes {
                // The places of the others become free, and the next one that takes over needs this one.
                attachment.hello.take = true;
                attachment.messages.place = None;
            }
            Ok::<_, io::Error>(attachment)
        };
        match received.await {
            // It cannot be sent only if the loop is gone.
            Ok(attachment) => drop(attachments.send(attachment).await),
            Err(error) => tracing::warn!(%error, "a terminal could not be attached"),
        }
    });
    let response = Response::builder()
        .status(StatusCode::SWITCHING_PROTOCOLS)
        .header(header::UPGRADE, PROTOCOL)
        .header(header::CONNECTION, "upgrade")
        .body(Body::empty());
    response.map_err(|_| HttpError::ending())
}

/// Returns the socket of a connection that was upgraded.
async fn upgraded(upgrade: hyper::upgrade::OnUpgrade) -> io::Result<UnixStream> {
    let upgraded = upgrade.await.map_err(io::Error::other)?;
    let parts = upgraded.downcast::<TokioIo<Box<dyn Stream>>>();
    let parts = parts.map_err(|_| io::Error::other("the connection is of another kind"))?;
    if !parts.read_buf.is_empty() {
        return Err(invalid("the client sent its message before the answer"));
    }
    let stream = parts.io.into_inner().into_unix();
    stream.ok_or_else(|| io::Error::other("the connection is no Unix socket"))
}

/// Receives the client's first message and its terminal, which must come within [`READ_LIMIT`].
async fn receive(
    stream: UnixStream,
    place: Option<OwnedSemaphorePermit>,
) -> io::Result<Attachment> {
    let (hello, terminal) = timeout(READ_LIMIT, receive_hello(&stream)).await??;
    // Not its own `into_split`, whose halves shut the connection down: a supervisor that fails at its start still says why.
    let (read, write) = tokio::io::split(stream);
    Ok(Attachment {
        hello,
        terminal,
        messages: Messages {
            lines: BufReader::new(read),
            place,
        },
        answers: Answers(write),
    })
}

/// Receives the terminal for which this supervisor was started, from the client at the other end of a socket.
pub async fn receive_first(stream: BlockingStream) -> io::Result<Attachment> {
    stream.set_nonblocking(true)?;
    receive(UnixStream::from_std(stream)?, None).await
}

fn invalid(what: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, what)
}

/// Receives the line of the first message, and the two descriptors that come with its beginning.
async fn receive_hello(stream: &UnixStream) -> io::Result<(Hello, (OwnedFd, OwnedFd))> {
    let mut text = Vec::new();
    let mut descriptors = Vec::new();
    while !text.ends_with(b"\n") {
        stream.readable().await?;
        let received = stream.try_io(Interest::READABLE, || {
            receive_once(stream.as_fd(), &mut text, &mut descriptors)
        });
        match received {
            Ok(0) => return Err(invalid("the client has gone")),
            Ok(_) if text.len() > MESSAGE_LIMIT => return Err(invalid("too long a message")),
            Ok(_) if descriptors.len() > 2 => return Err(invalid("too many descriptors")),
            Ok(_) => {}
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            Err(error) => return Err(error),
        }
    }
    let hello: Hello = serde_json::from_slice(&text)?;
    let (most, longest) = VARIABLES;
    let values = hello.environment.values();
    if hello.environment.len() > most || values.clone().any(|value| value.len() > longest) {
        return Err(invalid("too large an environment"));
    }
    let Ok([input, output]) = <[OwnedFd; 2]>::try_from(descriptors) else {
        return Err(invalid("expected two descriptors"));
    };
    if !rustix::termios::isatty(&input) || !rustix::termios::isatty(&output) {
        return Err(invalid("expected the descriptors of a terminal"));
    }
    Ok((hello, (input, output)))
}

/// Reads what has arrived: bytes, and descriptors if there are some. Descriptors beyond two are closed.
fn receive_once(
    socket: BorrowedFd<'_>,
    text: &mut Vec<u8>,
    descriptors: &mut Vec<OwnedFd>,
) -> io::Result<usize> {
    let mut bytes = [0; 4096];
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(2))];
    let mut control = RecvAncillaryBuffer::new(&mut space);
    let into = &mut [IoSliceMut::new(&mut bytes)];
    let received = recvmsg(socket, into, &mut control, RecvFlags::empty())?;
    for message in control.drain() {
        if let RecvAncillaryMessage::ScmRights(rights) = message {
            for descriptor in rights {
                // macOS has no flag by which they would arrive so.
                rustix::io::fcntl_setfd(&descriptor, rustix::io::FdFlags::CLOEXEC)?;
                descriptors.push(descriptor);
            }
        }
    }
    text.extend_from_slice(&bytes[..received.bytes]);
    Ok(received.bytes)
}

/// Sends the first message of a client with its terminal's descriptors.
pub fn send_hello(
    stream: &BlockingStream,
    hello: &Hello,
    terminal: [BorrowedFd<'_>; 2],
) -> io::Result<()> {
    let line = line(hello);
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(2))];
    let mut control = SendAncillaryBuffer::new(&mut space);
    control.push(SendAncillaryMessage::ScmRights(&terminal));
    let flags = SendFlags::empty();
    let sent = sendmsg(stream, &[IoSlice::new(&line)], &mut control, flags)?;
    // The descriptors have gone with the first byte.
    io::Write::write_all(&mut &*stream, &line[sent..])
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Programs of one version of the protocol are mixed when pitstop is updated beside a session, so a change of these lines needs
    /// another version; and those of leaving and ending may never change.
    #[test]
    fn the_lines_of_a_version_of_the_protocol_stay_as_they_are() {
        let hello = Hello {
            watch: true,
            take: false,
            environment: [("TERM".to_owned(), "xterm".to_owned())].into(),
        };
        let text = |line: Vec<u8>| String::from_utf8(line).unwrap().trim_end().to_owned();
        let lines = [
            text(line(&hello)),
            text(line(&ClientMessage::Resized)),
            text(line(&ClientMessage::Suspend)),
            text(line(&ClientMessage::Taken)),
            text(line(&ClientMessage::Ran { success: true })),
            text(line(&ClientMessage::Detach)),
            text(line(&ServerMessage::Attached)),
            text(line(&ServerMessage::Suspended)),
            text(line(&ServerMessage::Edit { file: "/f".into() })),
            text(line(&ServerMessage::Detached {
                why: "w".to_owned(),
                attach: None,
            })),
            text(line(&ServerMessage::Released)),
            text(line(&ServerMessage::Failed {
                code: 1,
                error: "e".to_owned(),
                hint: "h".to_owned(),
            })),
            text(line(&ServerMessage::Ended {
                code: 0,
                text: "t".to_owned(),
            })),
        ];
        let expected = [
            r#"{"watch":true,"take":false,"environment":{"TERM":"xterm"}}"#,
            r#"{"type":"resized"}"#,
            r#"{"type":"suspend"}"#,
            r#"{"type":"taken"}"#,
            r#"{"type":"ran","success":true}"#,
            r#"{"type":"detach"}"#,
            r#"{"type":"attached"}"#,
            r#"{"type":"suspended"}"#,
            r#"{"type":"edit","file":"/f"}"#,
            r#"{"type":"detached","why":"w"}"#,
            r#"{"type":"released"}"#,
            r#"{"type":"failed","code":1,"error":"e","hint":"h"}"#,
            r#"{"type":"ended","code":0,"text":"t"}"#,
        ];
        assert_eq!(
            (PROTOCOL, &lines[..]),
            ("pitstop-attach/1", &expected.map(str::to_owned)[..])
        );
    }
}
