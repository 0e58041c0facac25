//! The stream of events (`GET /events`) as a client without a runtime waits for it.

use std::{
    io::{ErrorKind, Read as _},
    os::{fd::AsFd, unix::net::UnixStream},
    time::Instant,
};

use rustix::{
    event::{PollFd, PollFlags, poll},
    io::Errno,
};

use super::{ApiClient, ClientError, HEAD_LIMIT, connect, garbled, read_more, write_all};

/// An open stream of events, by which a client learns that there is something new to ask for.
#[derive(Debug)]
pub struct Events(UnixStream);

impl ApiClient {
    /// Opens the stream of events before `deadline`. What has come with the answer's head is dropped: it describes the present.
    pub fn events(&self, deadline: Instant) -> Result<Events, ClientError> {
        let mut stream = connect(&self.socket, deadline)?;
        // By the older HTTP the events come as they are, until the connection ends.
        let head = self.head("GET /events HTTP/1.0", "");
        write_all(&mut stream, head.as_bytes(), deadline)?;
        let mut bytes = Vec::new();
        while memchr::memmem::find(&bytes, b"\r\n\r\n").is_none() {
            if !read_more(&mut stream, &mut bytes, deadline)? {
                return Err(garbled("an answer cut short"));
            }
            if bytes.len() > HEAD_LIMIT {
                return Err(garbled("a head that is too long"));
            }
        }
        let line = bytes.split(|&byte| byte == b'\r').next();
        if line.and_then(|line| line.split(|&byte| byte == b' ').nth(1)) != Some(b"200") {
            return Err(garbled("a refusal of the events"));
        }
        Ok(Events(stream))
    }
}

impl Events {
    /// Waits until something comes, which is every 10 seconds even if nothing happens, and takes all that has come; returns false
    /// once the stream has ended, or the reader of `out` has gone.
    pub fn wait(&mut self, out: &impl AsFd) -> Result<bool, ClientError> {
        let mut ends = [
            PollFd::new(&self.0, PollFlags::IN),
            // An error or a hang-up is reported without being asked for.
            PollFd::new(out, PollFlags::empty()),
        ];
        match poll(&mut ends, None) {
            Ok(_) | Err(Errno::INTR) => {}
            Err(errno) => {
                return Err(ClientError::io("wait for the supervisor")(errno.into()));
            }
        }
        if !ends[1].revents().is_empty() {
            return Ok(false);
        }
        let mut chunk = [0_u8; 8192];
        loop {
            match self.0.read(&mut chunk) {
                Ok(0) => return Ok(false),
                Ok(_) => {}
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(true),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                // The supervisor was killed.
                Err(error) if error.kind() == ErrorKind::ConnectionReset => return Ok(false),
                Err(error) => return Err(ClientError::io("read the events")(error)),
            }
        }
    }
}
