//! The output to the host terminal beside the cells: clipboard, title, bell, notifications, progress.
//!
//! Each is rebuilt from clean text, and of each kind only the newest waits for the next frame: a flood costs no memory,
//! and a terminal that is slow gets what still counts.

use pitstop_base::clean;
use pitstop_terminal::screen::Progress;

use super::{clipboard, paint::Abilities};

/// The longest title, in characters.
const TITLE_LIMIT: usize = 256;

/// The longest message of a notification, in characters: desktops show less.
const MESSAGE_LIMIT: usize = 1024;

/// The output that waits for the next frame.
#[derive(Debug, Default)]
pub struct HostOutput {
    abilities: Abilities,
    raw: Vec<u8>,
    bell: bool,
    clipboard: Option<Vec<u8>>,
    title: Option<String>,
    message: Option<String>,
    progress: Option<Progress>,
    /// True while the host terminal shows progress.
    progresses: bool,
}

impl HostOutput {
    /// Creates an empty output for a host terminal with these abilities.
    pub fn new(abilities: Abilities) -> Self {
        Self {
            abilities,
            ..Self::default()
        }
    }

    /// Adds a sequence of ours as it is.
    pub fn raw(&mut self, sequence: &[u8]) {
        self.raw.extend_from_slice(sequence);
    }

    /// Rings the bell.
    pub const fn bell(&mut self) {
        self.bell = true;
    }

    /// Stores a text in the host's clipboard; false if it is too large.
    pub fn store_clipboard(&mut self, text: &str) -> bool {
        let sequence = clipboard::sequence(text);
        let fits = sequence.is_some();
        if fits {
            self.clipboard = sequence;
        }
        fits
    }

    /// Names the host's window or tab.
    pub fn title(&mut self, text: &str) {
        let clean = clean::stripped(text, TITLE_LIMIT);
        self.title = Some(format!("\x1b]2;{clean}\x1b\\"));
    }

    /// Shows a message on the desktop.
    pub fn notify(&mut self, title: &str, body: &str) {
        let title = clean::stripped(title, MESSAGE_LIMIT);
        let body = clean::stripped(body, MESSAGE_LIMIT);
        let message = if self.abilities.notifies_by_777 {
            // The first semicolon ends the title.
            format!("\x1b]777;notify;{};{body}\x1b\\", title.replace(';', ","))
        } else {
            let parts = [title, body];
            let text = parts.iter().filter(|part| !part.is_empty());
            let text = text.map(String::as_str).collect::<Vec<_>>().join(": ");
            // A number and a semicolon would make it another command.
            let gap = if text.starts_with(|c: char| c.is_ascii_digit()) {
                " "
            } else {
                ""
            };
            format!("\x1b]9;{gap}{text}\x1b\\")
        };
        self.message = Some(if self.abilities.wraps {
            format!("\x1bPtmux;{}\x1b\\", message.replace('\x1b', "\x1b\x1b"))
        } else {
            message
        });
    }

    /// Shows the progress of something.
    pub const fn progress(&mut self, progress: Progress) {
        if self.abilities.progress {
            self.progress = Some(progress);
        }
    }

    /// Reports whether nothing waits.
    pub fn is_empty(&self) -> bool {
        self.raw.is_empty()
            && !self.bell
            && self.clipboard.is_none()
            && self.title.is_none()
            && self.message.is_none()
            && self.progress.is_none()
    }

    /// Takes everything that waits, as bytes.
    pub fn take(&mut self) -> Vec<u8> {
        let mut bytes = std::mem::take(&mut self.raw);
        bytes.extend(self.clipboard.take().into_iter().flatten());
        for text in [self.title.take(), self.message.take()]
            .into_iter()
            .flatten()
        {
            bytes.extend_from_slice(text.as_bytes());
        }
        if let Some(progress) = self.progress.take() {
            self.progresses = progress != Progress::None;
            bytes.extend_from_slice(sequence(progress).as_bytes());
        }
        if std::mem::take(&mut self.bell) {
            bytes.push(7);
        }
        bytes
    }

    /// Returns the sequence that ends a shown progress, which would stay after we leave.
    pub fn leave(&mut self) -> Vec<u8> {
        if std::mem::take(&mut self.progresses) {
            sequence(Progress::None).into_bytes()
        } else {
            Vec::new()
        }
    }
}

fn sequence(progress: Progress) -> String {
    let (state, percent) = match progress {
        Progress::None => (0, 0),
        Progress::Percent(percent) => (1, percent),
        Progress::Error(percent) => (2, percent),
        Progress::Indeterminate => (3, 0),
        Progress::Paused(percent) => (4, percent),
    };
    format!("\x1b]9;4;{state};{}\x1b\\", percent.min(100))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(host_output: &mut HostOutput) -> String {
        String::from_utf8(host_output.take()).expect("text")
    }

    #[test]
    fn of_each_kind_the_newest_is_sent_once() {
        let mut host_output = HostOutput::new(Abilities {
            progress: true,
            ..Abilities::default()
        });
        for number in 0..1000 {
            host_output.title(&format!("title {number}"));
            host_output.notify("", &format!("message {number}"));
            assert!(host_output.store_clipboard("x"));
            host_output.progress(Progress::Percent(50));
            host_output.bell();
        }
        assert_eq!(
            text(&mut host_output),
            "\x1b]52;c;eA==\x1b\\\x1b]2;title 999\x1b\\\x1b]9;message 999\x1b\\\x1b]9;4;1;50\x1b\\\x07"
        );
        assert!(host_output.is_empty());
        assert_eq!(host_output.leave(), b"\x1b]9;4;0;0\x1b\\");
        assert_eq!(host_output.leave(), b"");
    }

    #[test]
    fn no_byte_of_a_text_ends_its_sequence() {
        let evil = "a\x1b]52;c;x\x07\u{9c}\u{202e}b";
        for by_777 in [false, true] {
            let mut host_output = HostOutput::new(Abilities {
                notifies_by_777: by_777,
                ..Abilities::default()
            });
            host_output.title(evil);
            host_output.notify(evil, evil);
            let sent = text(&mut host_output);
            assert_eq!(sent.matches('\x1b').count(), 4, "{sent:?}");
            assert!(!sent.contains(['\x07', '\u{9c}', '\u{202e}']), "{sent:?}");
        }
    }

    #[test]
    fn in_tmux_a_message_is_wrapped_for_the_terminal_around_it() {
        let mut host_output = HostOutput::new(Abilities {
            wraps: true,
            ..Abilities::default()
        });
        host_output.notify("", "a");
        let wrapped = "\x1bPtmux;\x1b\x1b]9;a\x1b\x1b\\\x1b\\";
        assert_eq!(text(&mut host_output), wrapped);
    }

    #[test]
    fn a_message_is_never_another_command() {
        let mut host_output = HostOutput::default();
        host_output.notify("", "4;1;50");
        assert_eq!(text(&mut host_output), "\x1b]9; 4;1;50\x1b\\");
        host_output.progress(Progress::Percent(1));
        assert!(
            host_output.is_empty(),
            "not for a terminal that would show it"
        );
        let mut host_output = HostOutput::new(Abilities {
            notifies_by_777: true,
            ..Abilities::default()
        });
        host_output.notify("a;b", "c;d");
        assert_eq!(text(&mut host_output), "\x1b]777;notify;a,b;c;d\x1b\\");
    }
}
