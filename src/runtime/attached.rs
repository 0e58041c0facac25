//! The clients that have handed their terminals over: they come, report a new size, stop for a while, and go.

use pitstop_server::{
    Attachment,
    attach::{Answers, ClientMessage, Messages, ServerMessage},
};
use tokio::{sync::mpsc, task::JoinHandle};

use super::{Shell, host::TerminalId, terminal::Looks};

/// The client of a terminal.
#[derive(Debug)]
pub struct Client {
    messages: mpsc::UnboundedSender<ServerMessage>,
    writer: JoinHandle<()>,
}

impl Client {
    /// Begins to write to a client.
    fn new(mut answers: Answers) -> Self {
        let (messages, mut waiting) = mpsc::unbounded_channel();
        let writer = tokio::spawn(async move {
            while let Some(message) = waiting.recv().await {
                // A client that has gone is noticed by the reader of its messages.
                if answers.send(&message).await.is_err() {
                    break;
                }
            }
        });
        Self { messages, writer }
    }

    /// Sends a message.
    pub fn send(&self, message: ServerMessage) {
        // The writer ends with the client.
        let _ = self.messages.send(message);
    }

    /// Sends a last message, and waits until it is written.
    pub async fn end(self, message: ServerMessage) {
        self.send(message);
        drop(self.messages);
        let _ = self.writer.await;
    }
}

/// Passes a client's messages on until it has gone, which is the last one.
async fn listen(
    id: TerminalId,
    mut messages: Messages,
    to: mpsc::UnboundedSender<(TerminalId, Option<ClientMessage>)>,
) {
    loop {
        let message = messages.next().await;
        let is_last = message.is_none();
        if to.send((id, message)).is_err() || is_last {
            return;
        }
    }
}

impl Shell {
    /// Takes a terminal that a client hands over.
    pub(super) fn attach(&mut self, attachment: Attachment) {
        let Attachment {
            hello,
            terminal,
            messages,
            answers,
        } = attachment;
        let looks =
            Looks::of(|name: &str| hello.environment.get(name).cloned().unwrap_or_default());
        let client = Client::new(answers);
        client.send(ServerMessage::Attached);
        let model = self.core.view();
        let (theme, screen) = (model.config.ui.theme, model.view.host);
        let client = (client, hello.watch);
        match self
            .terminals
            .attach(terminal, client, looks, theme, screen)
        {
            Ok(id) => {
                if hello.take {
                    self.detach_all(Some(id), "another terminal has taken over");
                }
                tokio::spawn(listen(id, messages, self.terminals.clients.clone()));
                if !hello.watch {
                    self.enter_herdr(id, &hello.environment);
                }
                self.became_active();
            }
            Err(error) => tracing::warn!(%error, "a terminal cannot be attached"),
        }
    }

    /// Handles a message of a client; none means that it has gone.
    pub(super) fn client_message(&mut self, id: TerminalId, message: Option<ClientMessage>) {
        match message {
            None => self.terminal_lost(id),
            Some(ClientMessage::Detach) => self.detach(id, "as you asked"),
            Some(ClientMessage::Resized) => {
                self.resized();
                self.reflowed(id);
            }
            Some(ClientMessage::Suspend) => self.suspend(id),
            Some(ClientMessage::Taken) => self.taken(id),
            Some(ClientMessage::Ran { success }) => self.editor_left(id, success),
        }
    }
}
