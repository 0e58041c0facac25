//! The supervisor of a terminal's session, as a process of its own that outlives the terminal.
//!
//! `pitstop` starts itself again by the word [`SERVER`]: what to host comes on standard input, and standard output is the connection
//! over which the terminal is attached. The new process leaves the session of the terminal, so that its hang-up does not reach it.

use std::{
    env,
    fs::File,
    io::{self, Read as _, Write as _},
    os::{
        fd::{AsFd as _, OwnedFd},
        unix::{net::UnixStream, process::CommandExt as _},
    },
    process::{Child, Command, Stdio},
};

use pitstop_server::attach::{ServerMessage, line};

use super::{
    attach::{self, AttachArgs, NotBegun},
    host::{self, Request},
    login,
    out::{self, Failure, Outcome},
};
use crate::supervisor::StartError;

/// The word by which a supervisor is started; it is no command for people.
pub const SERVER: &str = "server";

/// Starts a supervisor and shows its session in this terminal; returns the exit code.
pub(super) fn start(request: &Request) -> Outcome {
    let mut scoped = login::has_scope();
    loop {
        let shown = match spawn(request, scoped) {
            Ok((stream, server)) => {
                attach::show_session(stream, &AttachArgs::default(), Some(server))
            }
            Err(error) if !scoped => {
                let error = format!("the supervisor cannot be started: {error}");
                return Err(out::failed(error, ""));
            }
            Err(_) => Err(NotBegun::Silent),
        };
        match shown {
            Ok(code) => return Ok(code),
            Err(NotBegun::Refused(failure)) => return Err(failure),
            // The service manager may refuse to make a scope.
            Err(NotBegun::Silent) if scoped => scoped = false,
            Err(NotBegun::Silent) => return Err(out::not_started(&StartError::Broken)),
        }
    }
}

fn spawn(request: &Request, scoped: bool) -> io::Result<(UnixStream, Child)> {
    let (ours, theirs) = UnixStream::pair()?;
    let own = env::current_exe()?;
    let mut command = if scoped {
        let mut command = Command::new("systemd-run");
        command
            .args(["--user", "--scope", "--quiet", "--collect", "--"])
            .arg(own);
        command
    } else {
        let mut command = Command::new(own);
        command.arg0("pitstop");
        command
    };
    let mut server = command
        .arg(SERVER)
        .stdin(Stdio::piped())
        .stdout(OwnedFd::from(theirs))
        .stderr(Stdio::null())
        .spawn()?;
    if let Some(mut input) = server.stdin.take() {
        // One that has ended already is noticed by the end of the connection.
        let _ = input.write_all(&serde_json::to_vec(request)?);
    }
    Ok((ours, server))
}

/// Supervises what standard input asks for, until that is over; returns the exit code.
pub fn run() -> i32 {
    match begin() {
        Ok((request, stream)) => serve(request, stream),
        Err(error) => out::misused(
            format!("`pitstop {SERVER}` is how pitstop starts its own supervisor: {error}"),
            "`pitstop` starts a session",
        )
        .show(),
    }
}

/// Reads the request and leaves the session of the terminal.
fn begin() -> io::Result<(Request, UnixStream)> {
    let stream = UnixStream::from(io::stdout().as_fd().try_clone_to_owned()?);
    // Fails where standard output is no socket.
    stream.peer_addr()?;
    let mut text = Vec::new();
    io::stdin().lock().read_to_end(&mut text)?;
    let request = serde_json::from_slice(&text)?;
    let null = File::options().read(true).write(true).open("/dev/null")?;
    rustix::stdio::dup2_stdin(&null)?;
    rustix::stdio::dup2_stdout(&null)?;
    // Fails only where it leads one already.
    let _ = rustix::process::setsid();
    Ok((request, stream))
}

fn serve(request: Request, stream: UnixStream) -> i32 {
    let mut terminal = Some(stream);
    let outcome = host::host_session(request, &mut terminal);
    outcome.unwrap_or_else(|error| {
        let Failure { code, error, hint } = out::not_started(&error);
        // A loop that has begun has the connection, and its clients find that closed.
        if let Some(mut stream) = terminal {
            let failed = ServerMessage::Failed { code, error, hint };
            let _ = stream.write_all(&line(&failed));
        }
        code
    })
}
