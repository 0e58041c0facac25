//! `$EDITOR` while it has a host terminal, as a child of the client that has handed that over: the loop goes on, without keys and
//! without frames there.

use std::io::{self, Write as _};

use tempfile::NamedTempFile;

use pitstop_core::app::{Event, event::ReadEvent};
use pitstop_server::attach::ServerMessage;

use super::{Shell, host::TerminalId};

/// An editor that has a host terminal.
#[derive(Debug)]
pub(super) struct Editing {
    pub terminal: TerminalId,
    file: NamedTempFile,
}

impl Shell {
    /// Lends the active terminal to `$EDITOR` with the text in a file of its own. An event reports when the editor was left.
    pub(super) fn open_editor(&mut self, text: &str) {
        if self.terminals.editing.is_some() {
            return;
        }
        if let Err(error) = self.start_editor(text) {
            tracing::warn!(%error, "the editor failed");
            self.post(Event::Read(ReadEvent::EditorClosed(None)));
        }
    }

    /// Takes up what the editor has saved so far, once we leave: it is ended with us, and its file is removed.
    pub(super) fn take_up_saved(&mut self) {
        let editing = self.terminals.editing.as_ref().map(|one| one.terminal);
        if let Some(id) = editing.filter(|_| self.core.view().outside.quitting().is_some()) {
            self.editor_left(id, true);
        }
    }

    fn start_editor(&mut self, text: &str) -> io::Result<()> {
        let mut file = tempfile::Builder::new()
            .prefix("pitstop-")
            .suffix(".md")
            .tempfile()?;
        file.write_all(text.as_bytes())?;
        file.flush()?;
        let no_terminal = || io::Error::other("there is no terminal for it");
        let active = self.terminals.active_mut().ok_or_else(no_terminal)?;
        active.pause()?;
        active.client.send(ServerMessage::Edit {
            file: file.path().to_path_buf(),
        });
        self.terminals.editing = Some(Editing {
            terminal: active.id,
            file,
        });
        Ok(())
    }

    /// Takes up the text once the editor was left, or its terminal was lost. What it has saved counts, unless it reports a failure.
    pub(super) fn editor_left(&mut self, id: TerminalId, success: bool) {
        let is_its = |editing: &mut Editing| editing.terminal == id;
        let Some(editing) = self.terminals.editing.take_if(is_its) else {
            return;
        };
        let text = if success {
            // As the scratchpad itself is read: one wrong byte does not cost the rest.
            std::fs::read(editing.file.path())
                .map(|bytes| String::from_utf8_lossy(&bytes).into_owned())
        } else {
            Err(io::Error::other("it has reported a failure"))
        };
        let text = text
            .inspect_err(|error| tracing::warn!(%error, "the editor failed"))
            .ok();
        self.post(Event::Read(ReadEvent::EditorClosed(text)));
    }
}
