//! What a child reports besides cells: notifications, progress and marks.

use pitstop_base::clean::stripped;

use super::decode_base64;

/// The longest notification text, in characters; longer than any desktop shows.
const NOTIFICATION_LIMIT: usize = 1024;

/// A report of the child that is not a cell.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ScreenFact {
    /// The title changed; the text is cleaned and has at most 256 characters.
    Title(String),
    /// The bell rang.
    Bell,
    /// The child wants this text in the clipboard (OSC 52).
    ClipboardStore(String),
    /// The child notifies the user (OSC 9, 99, 777); the text is cleaned.
    Notification {
        /// The heading; empty if none was given.
        title: String,
        /// The message; empty if none was given.
        body: String,
    },
    /// The child shows its progress (OSC 9;4).
    Progress(Progress),
    /// A shell-integration mark (OSC 133).
    Mark(Mark),
}

/// A task's progress as reported by OSC 9;4; percentages are 0 to 100.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Progress {
    /// The child has no task in progress.
    None,
    /// A task in progress, this many percent done.
    Percent(u8),
    /// A task that failed at this many percent.
    Error(u8),
    /// A task in progress whose percentage is not known.
    Indeterminate,
    /// A task that is paused at this many percent.
    Paused(u8),
}

/// The marks of OSC 133; `B`, where the command line begins, is not used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mark {
    /// `A`: a prompt begins.
    PromptStart,
    /// `C`: the command runs, its output begins.
    OutputStart,
    /// `D`: the command ended.
    CommandEnd,
}

/// A kitty notification (OSC 99) under construction.
#[derive(Default)]
pub(super) struct Notice {
    id: Vec<u8>,
    title: String,
    body: String,
}

pub(super) fn osc_fact(params: &[&[u8]], notice: &mut Notice) -> Option<ScreenFact> {
    match params {
        [b"9", b"4", rest @ ..] => progress(rest).map(ScreenFact::Progress),
        // The other numbered forms of OSC 9 are ConEmu's own commands, not messages.
        [b"9", number, _, ..] if number.len() <= 2 && number.iter().all(u8::is_ascii_digit) => None,
        [b"9", text @ ..] if !text.is_empty() => Some(ScreenFact::Notification {
            title: String::new(),
            body: message(text),
        }),
        [b"777", b"notify", title, body @ ..] => Some(ScreenFact::Notification {
            title: message(&[title]),
            body: message(body),
        }),
        [b"99", metadata, payload @ ..] => notice.take(metadata, payload),
        [b"133", b"A", ..] => Some(ScreenFact::Mark(Mark::PromptStart)),
        [b"133", b"C", ..] => Some(ScreenFact::Mark(Mark::OutputStart)),
        [b"133", b"D", ..] => Some(ScreenFact::Mark(Mark::CommandEnd)),
        _ => None,
    }
}

fn message(parts: &[&[u8]]) -> String {
    stripped(
        &String::from_utf8_lossy(&parts.join(&b';')),
        NOTIFICATION_LIMIT,
    )
}

fn progress(params: &[&[u8]]) -> Option<Progress> {
    let percent = params.get(1).map_or(0, |text| percent(text));
    match *params.first()? {
        b"0" => Some(Progress::None),
        b"1" => Some(Progress::Percent(percent)),
        b"2" => Some(Progress::Error(percent)),
        b"3" => Some(Progress::Indeterminate),
        b"4" => Some(Progress::Paused(percent)),
        _ => None,
    }
}

/// Parses a percentage: a number above 100 of any length counts as 100, text that is not a number as 0.
fn percent(text: &[u8]) -> u8 {
    if text.is_empty() || !text.iter().all(u8::is_ascii_digit) {
        return 0;
    }
    let number = str::from_utf8(text)
        .ok()
        .and_then(|text| text.parse::<u8>().ok());
    number.unwrap_or(100).min(100)
}

impl Notice {
    /// Takes one part of a kitty notification; the last part returns the whole.
    fn take(&mut self, metadata: &[u8], payload: &[&[u8]]) -> Option<ScreenFact> {
        let field = |name: &[u8]| {
            metadata
                .split(|&byte| byte == b':')
                .find_map(|pair| pair.strip_prefix(name)?.strip_prefix(b"="))
        };
        let id = field(b"i").unwrap_or_default();
        if self.id != id {
            *self = Self {
                id: id[..id.len().min(64)].to_vec(),
                ..Self::default()
            };
        }
        let raw = payload.join(&b';');
        let bytes = if field(b"e") == Some(b"1") {
            decode_base64(&raw)?
        } else {
            raw
        };
        let part = match field(b"p").unwrap_or(b"title") {
            b"title" => &mut self.title,
            b"body" => &mut self.body,
            // Icons, buttons, queries, closing: only the text of a notification is used.
            _ => return None,
        };
        let room = NOTIFICATION_LIMIT.saturating_sub(part.chars().count());
        part.push_str(&stripped(&String::from_utf8_lossy(&bytes), room));
        if field(b"d") == Some(b"0") {
            return None;
        }
        let done = std::mem::take(self);
        let empty = done.title.is_empty() && done.body.is_empty();
        (!empty).then_some(ScreenFact::Notification {
            title: done.title,
            body: done.body,
        })
    }
}
