//! The sequences that the grid does not keep: notifications, progress, marks, and the queries that the engine does
//! not know.
//!
//! The side channel reads the same bytes as the engine, one step ahead: [`SideChannel::next`] stops right after a
//! sequence that we act on, so that the screen can bring the engine to the same point
//! before it answers. Plain text is skipped with `memchr`, never parsed.
//!
//! A sequence's own bytes leave this file only as cleaned text of bounded length.

mod decode;
mod facts;
mod string_cap;

use decode::capability_names;
pub(super) use decode::decode_base64;
pub use facts::{Mark, Progress, ScreenFact};
use facts::{Notice, osc_fact};
pub(super) use string_cap::StringCap;

use vte::{Params, Parser, Perform};

use super::screen::engine::{RUN, is_text};

/// The longest DCS query kept, in bytes. Real ones have a few dozen.
const QUESTION_LIMIT: usize = 1024;

const ESC: u8 = 0x1b;

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
fn says_overline(parameters: &[u8]) -> bool {
    parameters
        .split(|byte| *byte == b';')
        .any(|one| matches!(one, b"53" | b"55"))
}

/// The length of the longest colour, `#rrrrggggbbbb`, in bytes.
const COLOUR_LIMIT: usize = 13;

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
}
