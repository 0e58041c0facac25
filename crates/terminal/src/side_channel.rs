//! The sequences that the grid does not keep: notifications, progress, marks, and the queries that the engine does
//! not know.
//!
//! The side channel reads the same bytes as the engine, one step ahead: [`SideChannel::next`] stops right after a
//! sequence that we act on, so that the screen can bring the engine to the same point
//! before it answers. Plain text is skipped with `memchr`, never parsed.
//!
//! A sequence's own bytes leave this file only as cleaned text of bounded length.

use memchr::memchr;
use vte::{Params, Parser, Perform};

use super::screen::engine::{RUN, is_text};
use pitstop_base::clean::stripped;

/// The longest notification text, in characters; longer than any desktop shows.
const NOTIFICATION_LIMIT: usize = 1024;

/// The longest DCS query kept, in bytes. Real ones have a few dozen.
const QUESTION_LIMIT: usize = 1024;

/// The most capabilities that are answered for one query.
const CAPABILITY_LIMIT: usize = 32;

const ESC: u8 = 0x1b;

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

/// A sequence that the side channel has found, on which the screen must act where it stopped.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Finding {
    /// `CSI > q`.
    VersionQuery,
    /// `CSI ? 6 n`.
    ExtendedCursorQuery,
    /// `CSI ? 996 n`.
    SchemeQuery,
    /// `CSI 16 t`.
    CellSizeQuery,
    /// XTGETTCAP, with the names decoded.
    CapabilityQuery(Vec<Vec<u8>>),
    /// DECRQSS.
    SettingQuery(Setting),
    /// DECSTR.
    SoftReset,
    /// SGR 53 or 55: true if the following text has a line above it.
    Overline(bool),
    /// REP; its final byte is the last one consumed.
    Repeat(u16),
    /// A colour with more digits than a colour can have, for which the engine's parser would overflow a shift. Its end is
    /// the last byte consumed.
    EndlessColour,
    /// `CSI ? 2026 h`.
    FrameBegin,
    /// `CSI ? 2026 l`.
    FrameEnd,
    /// A fact for the loop.
    Fact(ScreenFact),
}

/// The settings that DECRQSS may ask for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Setting {
    /// `m`.
    Rendition,
    /// `SP q`.
    CursorStyle,
    /// Any other setting.
    Unknown,
}

/// The second reader of the child's bytes, in addition to the engine.
#[derive(Default)]
pub(super) struct SideChannel {
    parser: Parser,
    watch: Watch,
}

impl SideChannel {
    /// Reports whether the next byte begins a text, a control or a sequence.
    pub(super) const fn is_between_sequences(&self) -> bool {
        self.watch.ground
    }

    /// Reads until the screen has to act or a sequence has ended, and returns the number of bytes that it took. The caller
    /// handles the bytes between sequences that are [`plain`].
    pub(super) fn next(&mut self, bytes: &[u8]) -> (usize, Option<Finding>) {
        let mut done = 0;
        self.watch.ground = false;
        while done < bytes.len() && !self.watch.ground {
            self.watch.stop = false;
            done += self
                .parser
                .advance_until_terminated(&mut self.watch, &bytes[done..]);
            if let Some(finding) = self.watch.finding.take() {
                return (done, Some(finding));
            }
        }
        (done, None)
    }

    /// Forgets a half-read sequence and frees its memory.
    pub(super) fn forget_sequence(&mut self) {
        self.parser = Parser::new();
        self.watch.ground = true;
        self.watch.question = None;
    }
}

/// Returns the length of the part at the start that the side channel can ignore: a sequence, or texts and controls up to one or
/// to a text that is worth writing at once. A text at the very start is part of it. The first byte must be between sequences.
pub(super) fn plain(bytes: &[u8]) -> usize {
    let mut at = 0;
    loop {
        let rest = &bytes[at..];
        if at > 0 && rest.len() >= RUN && rest[..RUN].iter().all(|byte| is_text(*byte)) {
            return at;
        }
        at += rest.iter().take_while(|byte| is_text(**byte)).count();
        at += match bytes.get(at) {
            None => return at,
            Some(&ESC) if at > 0 => return at,
            Some(&ESC) => return ordinary_sequence(bytes).unwrap_or(0),
            Some(_) => 1,
        };
    }
}

/// Returns the length of a whole control sequence at the start that the side channel can ignore: one without a
/// private mark and with an end other than those of [`csi_finding`]. Most sequences of a frame are of
/// this kind (colours, moves, erasures) and need not be parsed twice.
fn ordinary_sequence(bytes: &[u8]) -> Option<usize> {
    let body = bytes.strip_prefix(b"\x1b[")?;
    let length = body.iter().position(|byte| !matches!(byte, b'0'..=b';'))?;
    let ordinary = match body[length] {
        b'b' | b's' | b't' => false,
        b'm' => !says_overline(&body[..length]),
        end => matches!(end, b'@'..=b'~'),
    };
    ordinary.then_some(length + 3)
}

/// Reports whether these parameters of SGR may contain a 53 or a 55, which the engine does not know.
pub(super) fn says_overline(parameters: &[u8]) -> bool {
    parameters
        .split(|byte| *byte == b';')
        .any(|one| matches!(one, b"53" | b"55"))
}

/// The longest OSC string let through, in bytes, which is the limit of tmux. The parser's own buffer has no
/// bound, so an unterminated string would grow it for ever. Strings of the other kinds (DCS, APC,
/// SOS, PM) are never buffered by the parser and need no cap.
pub(super) const STRING_LIMIT: usize = 1 << 20;

/// The gate in front of both parsers: it drops an OSC string that grows too long, up to its end, and each `ESC k` with the
/// string after it, which neither parser knows to be a string.
///
/// `ESC k` is the title of a window of GNU screen, which prompts send because of a `TERM` that is not ours. It is not used as
/// a title: tmux takes it as a window's name and by default does not either. It is not kept, so its length needs no cap.
#[derive(Default)]
pub(super) struct StringCap {
    state: CapState,
    length: usize,
}

#[derive(Clone, Copy, Default, PartialEq, Eq)]
enum CapState {
    #[default]
    Outside,
    AfterEscape,
    InString,
    Dropping,
}

/// The gate's decision about the next bytes.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Passage {
    /// The number of bytes that the gate has handled.
    pub consumed: usize,
    /// The number of these bytes, from the start, that may pass.
    pub passed: usize,
    /// True if a string was too long: after the passed bytes the parsers must forget it.
    pub overflow: bool,
    /// True if a title is dropped: after the passed bytes the parsers wait for the rest of an ESC sequence and must be reset.
    pub title: bool,
}

/// The length of the longest colour, `#rrrrggggbbbb`, in bytes.
const COLOUR_LIMIT: usize = 13;

impl StringCap {
    /// Reports whether the next byte is outside any sequence.
    pub(super) fn is_outside(&self) -> bool {
        self.state == CapState::Outside
    }

    /// Examines the next bytes; the caller calls again with those that were not consumed.
    pub(super) fn next(&mut self, bytes: &[u8]) -> Passage {
        let mut at = 0;
        while at < bytes.len() {
            let rest = &bytes[at..];
            match self.state {
                CapState::Outside => match memchr(ESC, rest) {
                    None => break,
                    Some(text) => {
                        at += text + 1;
                        self.state = CapState::AfterEscape;
                    }
                },
                // Nearly every sequence is of this kind.
                CapState::AfterEscape if rest[0] == b'[' => {
                    at += 1;
                    self.state = CapState::Outside;
                }
                CapState::AfterEscape if rest[0] == b'k' => {
                    self.state = CapState::Dropping;
                    return Passage {
                        consumed: at + 1,
                        passed: at,
                        title: true,
                        ..Passage::default()
                    };
                }
                CapState::AfterEscape => {
                    at += 1;
                    self.state = after_escape(rest[0]);
                    self.length = 0;
                }
                CapState::InString => {
                    let body = string_end(rest);
                    self.length += body;
                    if self.length > STRING_LIMIT {
                        self.state = CapState::Dropping;
                        return Passage {
                            consumed: at + body,
                            passed: at,
                            overflow: true,
                            ..Passage::default()
                        };
                    }
                    at += body;
                    if let Some(&end) = bytes.get(at) {
                        at += 1;
                        self.state = if end == ESC {
                            CapState::AfterEscape
                        } else {
                            CapState::Outside
                        };
                    }
                }
                // This is only reached at the start of a call, because the arms that set this state return.
                CapState::Dropping => {
                    let body = string_end(rest);
                    let end = rest.get(body);
                    if end.is_some() {
                        self.state = CapState::Outside;
                    }
                    if body == 0 && end == Some(&ESC) {
                        continue;
                    }
                    let own_end = usize::from(end.is_some_and(|&byte| byte != ESC));
                    return Passage {
                        consumed: at + body + own_end,
                        passed: at,
                        ..Passage::default()
                    };
                }
            }
        }
        Passage {
            consumed: bytes.len(),
            passed: bytes.len(),
            ..Passage::default()
        }
    }
}

/// Returns the state after ESC and this byte. Controls and bytes that the parser ignores do not change it.
fn after_escape(byte: u8) -> CapState {
    match byte {
        b']' => CapState::InString,
        0x18 | 0x1a | 0x20..=0x7e => CapState::Outside,
        _ => CapState::AfterEscape,
    }
}

/// Returns the number of bytes before the one that ends an OSC string: BEL, ESC, CAN or SUB.
fn string_end(bytes: &[u8]) -> usize {
    bytes
        .iter()
        .position(|byte| matches!(*byte, 0x07 | 0x18 | 0x1a | ESC))
        .unwrap_or(bytes.len())
}

struct Watch {
    /// True if the parser is certainly between sequences, so that text need not be parsed. It is set only by the
    /// dispatches that end a sequence by their own last byte: text callbacks may come after the
    /// parser has already taken the next ESC.
    ground: bool,
    stop: bool,
    finding: Option<Finding>,
    question: Option<Question>,
    notice: Notice,
}

impl Default for Watch {
    fn default() -> Self {
        Self {
            ground: true,
            stop: false,
            finding: None,
            question: None,
            notice: Notice::default(),
        }
    }
}

struct Question {
    capabilities: bool,
    body: Vec<u8>,
    overlong: bool,
}

/// A kitty notification (OSC 99) under construction.
#[derive(Default)]
struct Notice {
    id: Vec<u8>,
    title: String,
    body: String,
}

impl Watch {
    fn end(&mut self, finding: Option<Finding>) {
        self.ground = true;
        self.stop = true;
        self.finding = finding;
    }
}

impl Perform for Watch {
    fn csi_dispatch(&mut self, params: &Params, intermediates: &[u8], ignore: bool, action: char) {
        let finding = if ignore {
            None
        } else {
            csi_finding(params, intermediates, action)
        };
        self.end(finding);
    }

    fn esc_dispatch(&mut self, _intermediates: &[u8], _ignore: bool, _byte: u8) {
        self.end(None);
    }

    fn osc_dispatch(&mut self, params: &[&[u8]], bell_terminated: bool) {
        let endless = |text: &&[u8]| text.starts_with(b"#") && text.len() > COLOUR_LIMIT;
        let finding = if params.iter().any(endless) {
            Some(Finding::EndlessColour)
        } else {
            osc_fact(params, &mut self.notice).map(Finding::Fact)
        };
        self.end(finding);
        // If ESC ended it, the string terminator's second half is still to come.
        self.ground = bell_terminated;
    }

    fn hook(&mut self, _params: &Params, intermediates: &[u8], ignore: bool, action: char) {
        self.question = match (intermediates, action) {
            ([b'+'], 'q') if !ignore => Some(true),
            ([b'$'], 'q') if !ignore => Some(false),
            _ => None,
        }
        .map(|capabilities| Question {
            capabilities,
            body: Vec::new(),
            overlong: false,
        });
    }

    fn put(&mut self, byte: u8) {
        if let Some(question) = &mut self.question {
            question.overlong |= question.body.len() >= QUESTION_LIMIT;
            if !question.overlong {
                question.body.push(byte);
            }
        }
    }

    fn unhook(&mut self) {
        if let Some(question) = self.question.take().filter(|question| !question.overlong) {
            self.stop = true;
            self.finding = Some(if question.capabilities {
                Finding::CapabilityQuery(capability_names(&question.body))
            } else {
                Finding::SettingQuery(match question.body.as_slice() {
                    b"m" => Setting::Rendition,
                    b" q" => Setting::CursorStyle,
                    _ => Setting::Unknown,
                })
            });
        }
    }

    fn terminated(&self) -> bool {
        self.stop
    }
}

fn csi_finding(params: &Params, intermediates: &[u8], action: char) -> Option<Finding> {
    let mut numbers = params
        .iter()
        .map(|param| param.first().copied().unwrap_or(0));
    let first = numbers.next().unwrap_or(0);
    let frame = || params.iter().any(|param| param == [2026]);
    match (intermediates, action) {
        ([b'>'], 'q') if first == 0 => Some(Finding::VersionQuery),
        ([b'?'], 'n') if first == 6 => Some(Finding::ExtendedCursorQuery),
        ([b'?'], 'n') if first == 996 => Some(Finding::SchemeQuery),
        ([], 't') if first == 16 => Some(Finding::CellSizeQuery),
        ([b'!'], 'p') => Some(Finding::SoftReset),
        ([], 'b') => Some(Finding::Repeat(first.max(1))),
        ([b'?'], 'h') if frame() => Some(Finding::FrameBegin),
        ([b'?'], 'l') if frame() => Some(Finding::FrameEnd),
        ([], 'm') => overline(params).map(Finding::Overline),
        _ => None,
    }
}

/// Returns what these attributes set for the line above a text: the last one of them counts.
fn overline(params: &Params) -> Option<bool> {
    let mut said = None;
    let mut rest = params.iter();
    while let Some(param) = rest.next() {
        match param {
            [0] => said = said.map(|_| false),
            [53] => said = Some(true),
            [55] => said = Some(false),
            // The numbers of a colour are not attributes.
            [38 | 48 | 58] => match rest.next() {
                Some([2]) => {
                    rest.nth(2);
                }
                Some([5]) => {
                    rest.next();
                }
                _ => {}
            },
            _ => {}
        }
    }
    said
}

fn osc_fact(params: &[&[u8]], notice: &mut Notice) -> Option<ScreenFact> {
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

fn capability_names(body: &[u8]) -> Vec<Vec<u8>> {
    body.split(|&byte| byte == b';')
        .take(CAPABILITY_LIMIT)
        .map(|name| decode_hex(name).unwrap_or_default())
        .collect()
}

fn decode_hex(text: &[u8]) -> Option<Vec<u8>> {
    let digit = |byte: u8| char::from(byte).to_digit(16);
    let (pairs, []) = text.as_chunks::<2>() else {
        return None;
    };
    pairs
        .iter()
        .map(|[high, low]| Some((digit(*high)? * 16 + digit(*low)?) as u8))
        .collect()
}

/// Decodes standard base64 with or without padding; returns `None` if it contains any other byte.
///
/// It is written here because the two uses of it (OSC 52 and OSC 99) do not justify a crate.
pub(super) fn decode_base64(text: &[u8]) -> Option<Vec<u8>> {
    let unpadded = text
        .strip_suffix(b"==")
        .or(text.strip_suffix(b"="))
        .unwrap_or(text);
    let mut bytes = Vec::with_capacity(unpadded.len() / 4 * 3 + 2);
    for group in unpadded.chunks(4) {
        if group.len() == 1 {
            return None;
        }
        let mut bits = 0_u32;
        for &symbol in group {
            bits = bits << 6 | u32::from(base64_value(symbol)?);
        }
        bits <<= 6 * (4 - group.len());
        bytes.extend_from_slice(&bits.to_be_bytes()[1..group.len()]);
    }
    Some(bytes)
}

fn base64_value(symbol: u8) -> Option<u8> {
    match symbol {
        b'A'..=b'Z' => Some(symbol - b'A'),
        b'a'..=b'z' => Some(symbol - b'a' + 26),
        b'0'..=b'9' => Some(symbol - b'0' + 52),
        b'+' => Some(62),
        b'/' => Some(63),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn findings(bytes: &[u8]) -> Vec<Finding> {
        read(&mut SideChannel::default(), bytes)
    }

    /// Reads as the screen does: plain bytes bypass the side channel.
    fn read(side_channel: &mut SideChannel, bytes: &[u8]) -> Vec<Finding> {
        let mut rest = bytes;
        let mut found = Vec::new();
        while !rest.is_empty() {
            let past = if side_channel.is_between_sequences() {
                plain(rest)
            } else {
                0
            };
            let (done, finding) = side_channel.next(&rest[past..]);
            rest = &rest[past + done..];
            found.extend(finding);
        }
        found
    }

    fn facts(bytes: &[u8]) -> Vec<ScreenFact> {
        findings(bytes)
            .into_iter()
            .filter_map(|finding| match finding {
                Finding::Fact(fact) => Some(fact),
                _ => None,
            })
            .collect()
    }

    fn notification(title: &str, body: &str) -> ScreenFact {
        ScreenFact::Notification {
            title: title.into(),
            body: body.into(),
        }
    }

    #[test]
    fn it_stops_right_behind_a_question() {
        let mut side_channel = SideChannel::default();
        let bytes = b"text\x1b[31mred\r\n\x1b[>0qmore";
        assert_eq!(plain(bytes), 4);
        assert_eq!(plain(&bytes[4..]), 5);
        assert_eq!(plain(&bytes[9..]), 5);
        assert_eq!(
            side_channel.next(&bytes[14..]),
            (5, Some(Finding::VersionQuery))
        );
        assert!(side_channel.is_between_sequences());
        assert_eq!(plain(&bytes[19..]), 4);
    }

    #[test]
    fn a_sequence_and_a_long_text_end_what_is_plain_but_at_the_start() {
        assert_eq!(plain(b"a long text"), 11);
        assert_eq!(plain(b"x\r\na long text"), 3);
        assert_eq!(plain(b"x\r\n\x1b[1mshort"), 3);
        assert_eq!(plain(b"\x1b[1mshort"), 4);
        assert_eq!(plain(b"\x1b[>q"), 0);
        assert_eq!(plain(b"x\x1b[1"), 1);
    }

    #[test]
    fn a_question_is_found_wherever_the_bytes_are_cut() {
        let bytes = b"\xe2\x9c\xb3x\x1b[1;2;;mq\x1b]0;t\x1b\\\x1b[?996n\x1b[?2026h\x1b[?2026l";
        let whole = findings(bytes);
        assert_eq!(
            whole,
            [Finding::SchemeQuery, Finding::FrameBegin, Finding::FrameEnd]
        );
        for cut in 0..bytes.len() {
            let mut side_channel = SideChannel::default();
            let mut found = read(&mut side_channel, &bytes[..cut]);
            found.extend(read(&mut side_channel, &bytes[cut..]));
            assert_eq!(found, whole, "cut at {cut}");
        }
    }

    #[test]
    fn an_ignored_sequence_does_not_hide_the_next_question() {
        assert_eq!(findings(b"\x1b[1?2zplain\x1b[>q"), [Finding::VersionQuery]);
        assert_eq!(findings(b"\x1b[1\x18plain\x1b[>q"), [Finding::VersionQuery]);
        assert_eq!(findings(b"\x1b_apc\x1b\\\x1b[>q"), [Finding::VersionQuery]);
        assert_eq!(
            findings(b"\x1bP1;2|dcs\x9ctext\x1b[>q"),
            [Finding::VersionQuery]
        );
    }

    #[test]
    fn all_forms_of_notification_are_seen_and_cleaned() {
        assert_eq!(
            facts(b"\x1b]9;done; really\x07"),
            [notification("", "done; really")]
        );
        assert_eq!(
            facts(b"\x1b]777;notify;T;B\x1b\\"),
            [notification("T", "B")]
        );
        assert_eq!(facts(b"\x1b]99;;hello\x1b\\"), [notification("hello", "")]);
        assert_eq!(
            facts(b"\x1b]99;i=1:d=0;Head\x1b\\\x1b]99;i=1:p=body:e=1;Ym9keQ==\x1b\\"),
            [notification("Head", "body")]
        );
        let hostile = "\u{1b}]9;a\u{202e}b\u{9b}c\u{7}".as_bytes();
        assert_eq!(facts(hostile), [notification("", "abc")]);
        assert_eq!(facts(b"\x1b]9;2;messagebox\x07"), []);
    }

    #[test]
    fn progress_and_marks_are_read() {
        let progress = |text: &[u8]| facts(text);
        assert_eq!(
            progress(b"\x1b]9;4;1;42\x07"),
            [ScreenFact::Progress(Progress::Percent(42))]
        );
        for huge in ["200", "256", "300000000000000000000", "0000100"] {
            let text = format!("\x1b]9;4;1;{huge}\x07");
            let percent = ScreenFact::Progress(Progress::Percent(100));
            assert_eq!(progress(text.as_bytes()), [percent], "{huge}");
        }
        assert_eq!(
            progress(b"\x1b]9;4;1;-5\x07"),
            [ScreenFact::Progress(Progress::Percent(0))]
        );
        assert_eq!(
            progress(b"\x1b]9;4;0\x07"),
            [ScreenFact::Progress(Progress::None)]
        );
        assert_eq!(
            progress(b"\x1b]9;4;3\x07"),
            [ScreenFact::Progress(Progress::Indeterminate)]
        );
        assert_eq!(progress(b"\x1b]9;4;9\x07"), []);
        assert_eq!(
            facts(b"\x1b]133;A\x07"),
            [ScreenFact::Mark(Mark::PromptStart)]
        );
        assert_eq!(
            facts(b"\x1b]133;D;130\x07"),
            [ScreenFact::Mark(Mark::CommandEnd)]
        );
        assert_eq!(
            facts(b"\x1b]133;D\x07"),
            [ScreenFact::Mark(Mark::CommandEnd)]
        );
    }

    #[test]
    fn questions_in_strings_are_decoded() {
        assert_eq!(
            findings(b"\x1bP+q544e;zz\x1b\\"),
            [Finding::CapabilityQuery(vec![b"TN".to_vec(), Vec::new()])]
        );
        assert_eq!(
            findings(b"\x1bP$qm\x1b\\"),
            [Finding::SettingQuery(Setting::Rendition)]
        );
        assert_eq!(
            findings(b"\x1bP$q q\x1b\\"),
            [Finding::SettingQuery(Setting::CursorStyle)]
        );
        assert_eq!(
            findings(b"\x1bP$qz\x1b\\"),
            [Finding::SettingQuery(Setting::Unknown)]
        );
        let overlong = [b"\x1bP$q".as_slice(), &[b'm'; 4096], b"\x1b\\"].concat();
        assert_eq!(findings(&overlong), []);
    }

    /// Returns the bytes that pass the gate, with `!` where the parsers had to forget, and `~` for a title.
    fn through_the_gate(parts: &[&[u8]]) -> Vec<u8> {
        let mut cap = StringCap::default();
        let mut out = Vec::new();
        for part in parts {
            let mut rest = *part;
            while !rest.is_empty() {
                let passage = cap.next(rest);
                out.extend_from_slice(&rest[..passage.passed]);
                if passage.overflow {
                    out.push(b'!');
                }
                if passage.title {
                    out.push(b'~');
                }
                rest = &rest[passage.consumed..];
            }
        }
        out
    }

    #[test]
    fn an_endless_string_is_dropped_up_to_its_end() {
        let block = vec![b'x'; 64 * 1024];
        for end in [b"\x1b\\".as_slice(), b"\x07", b"\x18", b"\x1a"] {
            let mut parts = vec![b"a\x1b]0;".as_slice()];
            parts.extend(std::iter::repeat_n(block.as_slice(), 1024));
            parts.extend([end, b"OK\x1b]0;t\x07".as_slice()]);
            let out = through_the_gate(&parts);
            let overflow = out
                .iter()
                .position(|&byte| byte == b'!')
                .expect("an overflow");
            assert!(overflow <= STRING_LIMIT + 8);
            let after: &[u8] = &out[overflow + 1..];
            let expected = if end[0] == ESC {
                b"\x1b\\OK\x1b]0;t\x07".as_slice()
            } else {
                b"OK\x1b]0;t\x07"
            };
            assert_eq!(after, expected);
        }
    }

    #[test]
    fn what_is_short_enough_comes_through_unchanged() {
        let long = [
            b"\x1b]52;c;".as_slice(),
            &vec![b'A'; STRING_LIMIT - 10],
            b"\x07after",
        ]
        .concat();
        assert_eq!(through_the_gate(&[&long]), long);
        let other = [
            b"\x1bP".as_slice(),
            &vec![b'A'; 3 * STRING_LIMIT],
            b"\x1b\\after",
        ]
        .concat();
        assert_eq!(through_the_gate(&[&other]), other);
        let tricky = b"\x1b\x1b]0;a\x1b]0;b\x18c\x1b(]x\x1b\x00]0;d\x07";
        for cut in 0..tricky.len() {
            assert_eq!(through_the_gate(&[&tricky[..cut], &tricky[cut..]]), tricky);
        }
    }

    #[test]
    fn a_title_of_screen_is_dropped_wherever_it_is_cut() {
        for (bytes, passed) in [
            (
                b"a\x1bktitle\x1b\\b".as_slice(),
                b"a\x1b~\x1b\\b".as_slice(),
            ),
            (b"a\x1bktitle\x07b\x1bk\x18c", b"a\x1b~b\x1b~c"),
            (b"\x1bka\x1bkb\x1b[mc", b"\x1b~\x1b~\x1b[mc"),
            (b"\x1b]0;t\x1bkx\x1b\\k", b"\x1b]0;t\x1b~\x1b\\k"),
            // These have neither an introducer nor a title sequence.
            (b"\x1b(k\x1b[kk", b"\x1b(k\x1b[kk"),
        ] {
            for cut in 0..=bytes.len() {
                let found = through_the_gate(&[&bytes[..cut], &bytes[cut..]]);
                assert_eq!(found, passed, "{bytes:?} cut at {cut}");
            }
            let single: Vec<&[u8]> = bytes.chunks(1).collect();
            assert_eq!(through_the_gate(&single), passed, "{bytes:?} byte by byte");
        }
    }

    #[test]
    fn base64_is_read_strictly() {
        assert_eq!(
            decode_base64(b"aGVsbG8=").as_deref(),
            Some(b"hello".as_slice())
        );
        assert_eq!(
            decode_base64(b"aGVsbG8").as_deref(),
            Some(b"hello".as_slice())
        );
        assert_eq!(decode_base64(b"").as_deref(), Some(b"".as_slice()));
        assert_eq!(decode_base64(b"aGVs bG8="), None);
        assert_eq!(decode_base64(b"a"), None);
    }
}
