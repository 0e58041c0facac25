//! Runs a command of the user's configuration: by `sh -c`, with JSON on its standard input, within a time.

use std::{
    path::Path,
    process::{ExitStatus, Stdio},
    time::Duration,
};

use rustix::process::{Pid, Signal, kill_process_group};
use serde::Serialize;
use tokio::{
    io::{AsyncRead, AsyncWriteExt as _},
    process::{Child, Command},
};

use pitstop_base::{
    clean::{self, chain},
    redact,
};
use pitstop_handoff::breakpoint::git;

/// The time after a command's end during which its output is still read.
pub(super) const LAST_WORDS: Duration = Duration::from_millis(200);

/// The number of bytes of a user command's output that are kept at most; the rest is read and dropped.
const SAID_CAP: usize = 64 * 1024;

/// The number of characters of it that are shown at most.
const SHOWN: usize = 300;

/// A command of the user's configuration.
#[derive(Clone, Copy, Debug)]
pub struct UserCommand<'a> {
    /// The table that it and its `timeout` stand in, such as `hooks`.
    pub table: &'static str,
    /// The key of the table.
    pub key: &'a str,
    /// The command itself.
    pub command: &'a str,
    /// The time that it may take.
    pub limit: Duration,
}

/// A command of the user's that ends with us, together with its whole group.
struct Hook(Child);

impl Drop for Hook {
    fn drop(&mut self) {
        let group = self.0.id().and_then(|id| Pid::from_raw(id.cast_signed()));
        if let Some(group) = group {
            // Gone already, which is as good.
            let _ = kill_process_group(group, Signal::KILL);
        }
    }
}

impl UserCommand<'_> {
    /// Runs it with this on its standard input, secrets masked; the error describes how it failed, with its last output.
    pub async fn run(&self, about: &impl Serialize, project: &Path) -> Result<(), String> {
        let failed = |why: &str| format!("[{}] {} {why}", self.table, self.key);
        let json = serde_json::to_string(about).map_err(|error| failed(&chain(&error)))?;
        let json = redact::json(&json).into_owned();
        let child = Command::new("sh")
            .arg("-c")
            .arg(self.command)
            .current_dir(project)
            .process_group(0)
            .kill_on_drop(true)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .map_err(|error| failed(&format!("cannot be run: {}", chain(&error))))?;
        let mut child = Hook(child);
        let (stdin, stdout, stderr) = (
            child.0.stdin.take(),
            child.0.stdout.take(),
            child.0.stderr.take(),
        );
        let give = async {
            if let Some(mut stdin) = stdin {
                // It need not read it.
                let _ = stdin.write_all(json.as_bytes()).await;
            }
        };
        let (mut printed, mut complained) = (Vec::new(), Vec::new());
        let ended = {
            let mut talk = std::pin::pin!(async {
                tokio::join!(
                    give,
                    read(stdout, &mut printed),
                    read(stderr, &mut complained)
                )
            });
            let mut talks = true;
            let ended = async {
                loop {
                    tokio::select! {
                        status = child.0.wait() => break status,
                        _ = &mut talk, if talks => talks = false,
                    }
                }
            };
            let ended = tokio::time::timeout(self.limit, ended).await;
            if talks {
                // A process that it has left in the background may hold its output open.
                let _ = tokio::time::timeout(LAST_WORDS, talk).await;
            }
            ended
        };
        drop(child);
        let said = if complained.trim_ascii().is_empty() {
            printed
        } else {
            complained
        };
        match ended {
            Ok(Ok(status)) if status.success() => Ok(()),
            Ok(Ok(status)) => Err(failed(&how(status, &said))),
            Ok(Err(error)) => Err(failed(&chain(&error))),
            Err(_) => Err(failed(&format!(
                "has taken longer than {} s ([{}] timeout)",
                self.limit.as_secs_f64(),
                self.table
            ))),
        }
    }
}

/// Reads all, and keeps what fits below the cap.
async fn read(from: Option<impl AsyncRead + Unpin>, into: &mut Vec<u8>) {
    if let Some(from) = from {
        // Output that cannot be read counts as none.
        let _ = git::read_all(from, into, SAID_CAP).await;
    }
}

/// Describes how a command failed, with its last output.
fn how(status: ExitStatus, said: &[u8]) -> String {
    let said = String::from_utf8_lossy(said);
    let last = clean::one_line(said.trim());
    let count = last.chars().count();
    let last: String = last.chars().skip(count.saturating_sub(SHOWN)).collect();
    match status.code() {
        _ if !last.is_empty() => format!("has failed: {last}"),
        Some(code) => format!("has failed with exit code {code}"),
        None => format!("has failed: {status}"),
    }
}
