//! `pitstop attach`, and the terminal of every other command that shows a session: it is handed to the supervisor, which is another
//! process, and taken back on every way out.
//!
//! ```text
//!   Hello, with the terminal's descriptors ──►
//!                                      ◄── Attached       the terminal is made raw
//!   Taken ──►                                             the supervisor draws and reads
//!                                      ◄── Detached, Ended, or the end of the connection: the terminal is restored
//! ```

use std::{
    env, io,
    os::{
        fd::AsFd as _,
        unix::{net::UnixStream as BlockingStream, process::ExitStatusExt as _},
    },
    path::Path,
    process::{Child, ExitStatus},
    time::{Duration, Instant},
};

use clap::Args;
use rustix::process::{Pid, Signal as Number, kill_process};
use tokio::{
    io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader, Lines},
    net::{
        UnixStream,
        unix::{OwnedReadHalf, OwnedWriteHalf},
    },
    process::Command as AsyncCommand,
    signal::unix::{Signal, SignalKind, signal},
    time::{sleep, timeout},
};

use crate::{
    runtime::{HERDR_VARIABLES, TERMINAL_VARIABLES, tty},
    supervisor::StartError,
};
use pitstop_base::clean::one_line;
use pitstop_core::{api::endpoint::Endpoint, config::load::paths::secrets_file_of};
use pitstop_server::{
    CLIENT_LIMIT,
    attach::{
        ClientMessage, Hello, PROTOCOL, ServerMessage, TAKE_QUERY, WATCH_QUERY, line, send_hello,
    },
    client::{ClientError, OBSERVE_VARIABLE},
};

use super::{
    editor, ls,
    out::{self, Failure, Outcome},
};

/// The statuses of an answer after which the connection goes on as an attachment, and of one of another version.
const SWITCHING: u16 = 101;
const OTHER_VERSION: u16 = 426;

/// The time that the supervisor may take to let go of the terminal before it is given back all the same.
const RELEASE_LIMIT: Duration = Duration::from_secs(2);

/// The pause between two looks at whether the supervisor has ended.
const WAIT_PAUSE: Duration = Duration::from_millis(5);

/// The time that an editor may take to end when the session has, before it is killed.
const EDITOR_LIMIT: Duration = Duration::from_secs(1);

/// Show the session of this directory, or of another project, in this terminal.
///
/// Several terminals may be attached at once: all show the same, in the size of the one that was typed in last. `Ctrl-q d` detaches,
/// and so does closing the terminal. Exit codes: 0 detached · the session's own when it ends · 3 no supervisor runs here.
#[derive(Args, Clone, Debug, Default)]
pub struct AttachArgs {
    /// The project of the session, as a path or a part of one (of a renamed project: its old path); without it this directory's
    pub name: Option<String>,
    /// Only watch: type nothing and leave the size alone; q leaves
    #[arg(long)]
    pub watch: bool,
    /// Detach all other terminals
    #[arg(long, conflicts_with = "watch")]
    pub take: bool,
}

/// Runs the command; returns the exit code.
pub fn run(args: &AttachArgs) -> Outcome {
    if let Err(why) = out::check_terminal() {
        let error = StartError::NoTerminal { why, run: false };
        return Err(out::not_started(&error));
    }
    if env::var_os(OBSERVE_VARIABLE).is_some() {
        return Err(out::failed(
            "this terminal is inside a session of pitstop",
            "attach from another terminal",
        ));
    }
    let door = match &args.name {
        Some(name) => {
            let project = ls::find_project(name)?;
            // What follows is done there, unless the directory is gone by now: the session goes on.
            let _ = out::enter(&project);
            out::client_of(secrets_file_of(&project, "control"))
        }
        None => out::here(),
    };
    let mut stream = None;
    let asked = door.and_then(|door| {
        let deadline = Instant::now() + CLIENT_LIMIT;
        let path = Endpoint::Attach.path();
        let path = match (args.take, args.watch) {
            (true, _) => format!("{path}?{TAKE_QUERY}"),
            (_, true) => format!("{path}?{WATCH_QUERY}"),
            _ => path.to_owned(),
        };
        let (answer, upgraded) = door.upgrade(&path, PROTOCOL, deadline)?;
        stream = Some(upgraded);
        Ok(answer)
    });
    match (asked, stream) {
        (Ok(answer), Some(stream)) if answer.status == SWITCHING => {
            show_session(stream, args, None).map_err(|not_begun| match not_begun {
                NotBegun::Refused(failure) => failure,
                NotBegun::Silent => {
                    out::failed("the supervisor has ended", "`pitstop` starts another one")
                }
            })
        }
        (Ok(answer), _) if answer.status == OTHER_VERSION => {
            let flags = [("--watch", args.watch), ("--take", args.take)];
            let flags = flags.into_iter().filter(|(_, is_set)| *is_set);
            let words = std::iter::once("attach").chain(flags.map(|(flag, _)| flag));
            Err(out::by_own_program(words))
        }
        (Ok(answer), _) => Err(out::refused(&answer)),
        (Err(ClientError::NoSupervisor { .. }), _) => Err(out::none_runs()),
        (Err(error), _) => Err(error.into()),
    }
}

/// The supervisor has ended before it took the terminal.
pub(super) enum NotBegun {
    /// It has said why it could not start.
    Refused(Failure),
    /// It has given no reason.
    Silent,
}

/// Hands this terminal to the supervisor at the other end of a connection, which is a child of this process if it was just started,
/// and waits until the terminal is free again; returns the exit code.
pub(super) fn show_session(
    stream: BlockingStream,
    args: &AttachArgs,
    server: Option<Child>,
) -> Result<i32, NotBegun> {
    let hello = Hello {
        watch: args.watch,
        take: args.take,
        environment: TERMINAL_VARIABLES
            .iter()
            .chain(&HERDR_VARIABLES)
            .filter_map(|name| Some(((*name).to_owned(), env::var(name).ok()?)))
            .collect(),
    };
    tty::restore_on_panic();
    let ended = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .and_then(|runtime| {
            runtime.block_on(async { Client::new(stream, &hello, server)?.wait_for_end().await })
        });
    tty::restore();
    let code = match ended {
        Ok(End::NotBegun(not_begun)) => return Err(not_begun),
        Ok(End::Over { code, text }) => {
            tty::last_words(&text);
            code
        }
        // Writing to a terminal that has stalled would never return.
        Ok(End::Failed(failure)) if tty::is_stalled() => failure.code,
        Ok(End::Failed(failure)) => failure.show(),
        Err(error) => out::failed(format!("the terminal cannot be attached: {error}"), "").show(),
    };
    Ok(code)
}

/// The end of an attachment.
enum End {
    /// It is over in order.
    Over {
        code: i32,
        /// The text to print once the terminal has its own settings back.
        text: String,
    },
    /// The supervisor has ended before it took the terminal.
    NotBegun(NotBegun),
    /// The supervisor has ended without a message.
    Failed(Failure),
}

/// The process that has handed its terminal over.
struct Client {
    lines: Lines<BufReader<OwnedReadHalf>>,
    messages: OwnedWriteHalf,
    /// The supervisor, if this process has started it.
    server: Option<Child>,
    is_attached: bool,
    resized: Signal,
    stopped: Signal,
    ended: Signal,
    interrupted: Signal,
    hung_up: Signal,
}

impl Client {
    fn new(stream: BlockingStream, hello: &Hello, server: Option<Child>) -> io::Result<Self> {
        let listen = |number: Number| signal(SignalKind::from_raw(number.as_raw()));
        let (resized, stopped) = (listen(Number::WINCH)?, listen(Number::TSTP)?);
        let (ended, interrupted) = (listen(Number::TERM)?, listen(Number::INT)?);
        let hung_up = listen(Number::HUP)?;
        stream.set_nonblocking(false)?;
        send_hello(&stream, hello, [io::stdin().as_fd(), io::stdout().as_fd()])?;
        stream.set_nonblocking(true)?;
        let (lines, messages) = UnixStream::from_std(stream)?.into_split();
        Ok(Self {
            lines: BufReader::new(lines).lines(),
            messages,
            server,
            is_attached: false,
            resized,
            stopped,
            ended,
            interrupted,
            hung_up,
        })
    }

    /// Waits until the terminal is free again.
    async fn wait_for_end(&mut self) -> io::Result<End> {
        loop {
            tokio::select! {
                line = self.lines.next_line() => {
                    let end = match line.ok().flatten() {
                        Some(line) => self.handle_line(&line).await?,
                        None => Some(self.lost_supervisor().await),
                    };
                    if let Some(end) = end {
                        return Ok(end);
                    }
                }
                // A supervisor that has not taken the terminal yet expects no message, and asks for the size then.
                _ = self.resized.recv(), if self.is_attached => self.send_message(&ClientMessage::Resized).await,
                _ = self.stopped.recv(), if self.is_attached => self.suspend_job().await?,
                _ = self.ended.recv() => return Ok(self.leave_on(Number::TERM).await),
                _ = self.interrupted.recv() => return Ok(self.leave_on(Number::INT).await),
                // The supervisor finds the connection closed, and does as the user wants it.
                _ = self.hung_up.recv() => return Ok(over_by(Number::HUP)),
            }
        }
    }

    /// Sends a message. A supervisor that has gone is noticed by the end of its own messages.
    async fn send_message(&mut self, message: &ClientMessage) {
        let _ = self.messages.write_all(&line(message)).await;
    }

    /// Handles a message of the supervisor; returns the end if it is one.
    async fn handle_line(&mut self, line: &str) -> io::Result<Option<End>> {
        let end = match serde_json::from_str(line) {
            Ok(ServerMessage::Attached) => {
                self.is_attached = true;
                self.take_terminal().await?;
                None
            }
            Ok(ServerMessage::Edit { file }) => self.edit_file(&file).await?,
            Ok(ServerMessage::Released) => {
                // The person has the terminal back while the last processes are ended.
                tty::restore();
                None
            }
            Ok(ServerMessage::Detached { why, attach }) => Some(End::Over {
                code: 0,
                text: format!(
                    "pitstop: detached ({}); the session goes on: `{}` comes back to it\n",
                    one_line(&why),
                    one_line(attach.as_deref().unwrap_or("pitstop attach"))
                ),
            }),
            Ok(ServerMessage::Ended { code, text }) => Some(End::Over { code, text }),
            Ok(ServerMessage::Failed { code, error, hint }) => {
                let failure = out::failed(error, hint).with_code(code);
                Some(End::NotBegun(NotBegun::Refused(failure)))
            }
            // What a newer supervisor may say beyond this is not for this version.
            Ok(ServerMessage::Suspended) | Err(_) => None,
        };
        Ok(end)
    }

    /// Takes the terminal and has the supervisor draw on it.
    async fn take_terminal(&mut self) -> io::Result<()> {
        tty::take()?;
        self.send_message(&ClientMessage::Taken).await;
        Ok(())
    }

    /// Returns how a supervisor has ended that has closed the connection without a message.
    async fn lost_supervisor(&mut self) -> End {
        let limit = Instant::now() + RELEASE_LIMIT;
        let mut status = None;
        // One that goes on has only let go of this terminal.
        while let Some(server) = &mut self.server
            && Instant::now() < limit
            && status.is_none()
        {
            status = server.try_wait().ok().flatten();
            sleep(WAIT_PAUSE).await;
        }
        if status.and_then(|status| status.code()) == Some(StartError::Broken.code()) {
            return End::Failed(out::not_started(&StartError::Broken));
        }
        let signal = status.as_ref().and_then(ExitStatus::signal);
        if !self.is_attached && signal.is_none() {
            return End::NotBegun(NotBegun::Silent);
        }
        let (code, error) = match signal {
            Some(number) => (
                128 + number,
                format!("pitstop's supervisor was ended by signal {number}"),
            ),
            None => (
                out::FAILED,
                "pitstop's supervisor has ended without a message".to_owned(),
            ),
        };
        End::Failed(out::failed(error, StartError::Broken.hint()).with_code(code))
    }

    /// Detaches, as a signal asks. A supervisor that this process has started and that has not come so far is ended.
    async fn leave_on(&mut self, signal: Number) -> End {
        match &self.server {
            Some(server) if !self.is_attached => {
                let _ = kill_process(Pid::from_child(server), Number::TERM);
            }
            _ => {
                self.send_message(&ClientMessage::Detach).await;
                self.skip_to(|message| matches!(message, ServerMessage::Detached { .. }))
                    .await;
            }
        }
        over_by(signal)
    }

    /// Waits for a message, but not so long that the terminal seems dead.
    async fn skip_to(&mut self, is_it: impl Fn(&ServerMessage) -> bool) {
        let reached = async {
            while let Ok(Some(line)) = self.lines.next_line().await {
                if serde_json::from_str(&line).is_ok_and(|message| is_it(&message)) {
                    break;
                }
            }
        };
        let _ = timeout(RELEASE_LIMIT, reached).await;
    }

    /// Has the user's editor edit a file in the terminal; returns the end of the session if that comes first.
    async fn edit_file(&mut self, file: &Path) -> io::Result<Option<End>> {
        tty::restore();
        let before = std::fs::read(file).ok();
        let counts = |status: ExitStatus| {
            status.success() || is_killed(status) && has_saved(file, before.as_deref())
        };
        let mut editor = AsyncCommand::new("sh")
            .args(editor::editor_arguments(file))
            .spawn()?;
        let success = loop {
            tokio::select! {
                status = editor.wait() => break status.is_ok_and(counts),
                line = self.lines.next_line() => {
                    let end = match line.ok().flatten() {
                        Some(line) => Box::pin(self.handle_line(&line)).await?,
                        None => Some(self.lost_supervisor().await),
                    };
                    if let Some(end) = end {
                        editor::hang_up(&mut editor, EDITOR_LIMIT).await;
                        return Ok(Some(end));
                    }
                }
                // It is stopped by the same key, and keeps the terminal.
                _ = self.stopped.recv() => tty::stop(),
                _ = self.ended.recv() => {
                    editor::hang_up(&mut editor, EDITOR_LIMIT).await;
                    return Ok(Some(self.leave_on(Number::TERM).await));
                }
                _ = self.hung_up.recv() => {
                    editor::hang_up(&mut editor, EDITOR_LIMIT).await;
                    return Ok(Some(over_by(Number::HUP)));
                }
                // The key is meant for the editor.
                _ = self.interrupted.recv() => {}
            }
        };
        self.take_terminal().await?;
        self.send_message(&ClientMessage::Ran { success }).await;
        Ok(None)
    }

    /// Stops this process as a shell's job, and takes the terminal again when it is continued.
    async fn suspend_job(&mut self) -> io::Result<()> {
        self.send_message(&ClientMessage::Suspend).await;
        self.skip_to(|message| matches!(message, ServerMessage::Suspended))
            .await;
        tty::restore();
        tty::stop();
        self.take_terminal().await
    }
}

/// Reports whether a signal has ended an editor, which its shell says by a code: it has not said itself that it failed.
fn is_killed(status: ExitStatus) -> bool {
    let by_shell = |code: i32| (129..=192).contains(&code);
    status.signal().is_some() || status.code().is_some_and(by_shell)
}

/// Reports whether a file has another text by now, and has one at all: a signal may have come in the middle of the writing.
fn has_saved(file: &Path, before: Option<&[u8]>) -> bool {
    std::fs::read(file).is_ok_and(|now| !now.is_empty() && Some(&now[..]) != before)
}

/// Returns the end that a signal brings.
fn over_by(signal: Number) -> End {
    End::Over {
        code: 128 + signal.as_raw(),
        text: String::new(),
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::process::ExitStatusExt as _;

    use super::*;

    #[test]
    fn an_editor_that_was_killed_has_not_said_that_it_failed() {
        for (raw, killed) in [
            (9, true),
            (139 << 8, true),
            (0, false),
            (1 << 8, false),
            (255 << 8, false),
        ] {
            assert_eq!(is_killed(ExitStatus::from_raw(raw)), killed, "{raw}");
        }
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("notes.md");
        assert!(!has_saved(&file, None));
        for (text, saved) in [("old", false), ("", false), ("new", true)] {
            std::fs::write(&file, text).unwrap();
            assert_eq!(has_saved(&file, Some(b"old")), saved, "{text}");
        }
    }
}
