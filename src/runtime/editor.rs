//! `$EDITOR` while it has the host terminal: the loop goes on, without keys and without frames.

use std::{
    io::{self, Write as _},
    time::Duration,
};

use tempfile::NamedTempFile;
use tokio::{
    process::{Child, Command},
    sync::{mpsc, oneshot},
    task::JoinHandle,
};

use pitstop_core::app::{
    Event,
    event::{Document, ReadEvent},
};

use super::Shell;

/// The time that an editor may take to end when we leave, before it is killed.
const END_LIMIT: Duration = Duration::from_secs(1);

/// An editor that has the host terminal.
#[derive(Debug)]
pub(super) struct Editing {
    /// The sender that asks the editor to end when it is dropped.
    end: oneshot::Sender<()>,
    wait: JoinHandle<()>,
}

impl Editing {
    /// Ends the editor: it must not keep the terminal after we have left.
    pub(super) async fn end(self) {
        drop(self.end);
        // The wait has limits of its own.
        let _ = self.wait.await;
    }
}

impl Shell {
    /// Lends the host terminal to `$EDITOR` with the text in a file of its own. An event reports when the editor was left.
    pub(super) fn open_editor(&mut self, document: Document, text: &str) {
        if self.terminals.editing.is_some() {
            return;
        }
        match self.start_editor(document, text) {
            Ok(editing) => self.terminals.editing = Some(editing),
            Err(error) => {
                tracing::warn!(%error, "the editor failed");
                self.editor_left();
                let text = None;
                self.post(Event::Read(ReadEvent::EditorClosed { document, text }));
            }
        }
    }

    fn start_editor(&mut self, document: Document, text: &str) -> io::Result<Editing> {
        let mut file = tempfile::Builder::new()
            .prefix("pitstop-")
            .suffix(".md")
            .tempfile()?;
        file.write_all(text.as_bytes())?;
        file.flush()?;
        let editor = chosen();
        if let Some(active) = self.terminals.active_mut() {
            active.host.lend()?;
        }
        let child = Command::new("sh")
            .arg("-c")
            .arg(line(&editor))
            .arg(&editor)
            .arg(file.path())
            .spawn()?;
        let (end, ended) = oneshot::channel();
        let events = self.events.clone();
        let wait = tokio::spawn(wait(child, ended, document, file, editor, events));
        Ok(Editing { end, wait })
    }

    /// Takes the host terminal back once the editor was left, or could not be started.
    pub(super) fn editor_left(&mut self) {
        self.terminals.editing = None;
        for terminal in self.terminals.all_mut() {
            if let Err(error) = terminal.host.take_back() {
                tracing::warn!(%error, "the terminal cannot be taken back");
            }
        }
        self.redraw();
    }
}

/// Returns the command of the user's editor, as a shell reads it.
fn chosen() -> String {
    let variable = |name| {
        std::env::var(name)
            .ok()
            .filter(|value| !value.trim().is_empty())
    };
    variable("VISUAL")
        .or_else(|| variable("EDITOR"))
        .unwrap_or_else(|| "vi".to_owned())
}

/// Returns the shell's line for an editor. The variable may hold arguments, so a shell reads it, as git does. A plain command
/// replaces the shell: then the editor itself is asked to end.
fn line(editor: &str) -> String {
    let assigns = editor
        .split_whitespace()
        .next()
        .is_some_and(|word| word.contains('='));
    let is_plain = !assigns && !editor.contains([';', '|', '&', '<', '>', '(', '$', '`', '\n']);
    let exec = if is_plain { "exec " } else { "" };
    format!("{exec}{editor} \"$1\"")
}

/// Waits for the editor, and then reports the content of its file.
async fn wait(
    mut child: Child,
    ended: oneshot::Receiver<()>,
    document: Document,
    file: NamedTempFile,
    editor: String,
    events: mpsc::Sender<Event>,
) {
    let status = tokio::select! {
        status = child.wait() => status,
        _ = ended => return hang_up(&mut child).await,
    };
    let read = match status {
        Ok(status) if status.success() => std::fs::read_to_string(file.path()),
        Ok(status) => Err(io::Error::other(format!("{editor}: {status}"))),
        Err(error) => Err(error),
    };
    let text = read
        .inspect_err(|error| tracing::warn!(%error, "the editor failed"))
        .ok();
    // The loop is gone, then.
    let _ = events
        .send(Event::Read(ReadEvent::EditorClosed { document, text }))
        .await;
}

/// Hangs up on the editor, which then saves what it can and restores the terminal; kills it if it does not end.
async fn hang_up(child: &mut Child) {
    let pid = child
        .id()
        .and_then(|pid| i32::try_from(pid).ok())
        .and_then(rustix::process::Pid::from_raw);
    if let Some(pid) = pid {
        // Not waited for yet: the number is still its own.
        let _ = rustix::process::kill_process(pid, rustix::process::Signal::HUP);
    }
    if tokio::time::timeout(END_LIMIT, child.wait()).await.is_err() {
        let _ = child.kill().await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_plain_command_takes_the_shells_place() {
        assert_eq!(line("vi"), "exec vi \"$1\"");
        assert_eq!(line("code --wait"), "exec code --wait \"$1\"");
        for other in ["LANG=C vi", "cd /tmp && vi", "$(which vi)", "vi; true"] {
            assert_eq!(line(other), format!("{other} \"$1\""));
        }
    }
}
