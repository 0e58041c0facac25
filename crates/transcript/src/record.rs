//! The parser from one line of a transcript to its records; unknown kinds are kept, not refused.
//!
//! A transcript is JSON, one record a line, written by a program that may be killed in mid-write. In the field
//! such files hold runs of NUL bytes, two records on one line, cut tails, bad UTF-8 and lines of hundreds of
//! megabytes. No fault stops the reading: what cannot be read is skipped and counted in [`Faults`].
//!
//! ```text
//!   bytes ──Splitter──▶ stretches ──each_record──▶ records
//!           ends at LF        one, or two that ran together;
//!           and at NUL        a torn one is given up, the next one behind it found
//! ```
//!
//! Only the fields that are needed are read, and strings are borrowed from the line where they hold no
//! escapes, because tool output makes up most of a transcript and it is not needed here.

use std::{borrow::Cow, fmt, ops::Range};

use memchr::{memchr2, memmem};
use serde::{
    Deserialize, Deserializer,
    de::{IgnoredAny, SeqAccess, Visitor},
};
use serde_json::Value;

use super::usage::{Usage, in_window, paid_usage};

/// The longest line that is kept in memory, in bytes; a longer one is streamed past and counted.
///
/// Claude Code has written single lines of 144 MB; they hold pasted or tool data, never usage.
pub const LINE_CAP: usize = 64 * 1024 * 1024;

/// The counts of what was met during reading and is not a clean record.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Faults {
    /// The number of stretches, or remains of a line, that are not a JSON record.
    pub broken: u64,
    /// The number of records that followed another one on the same line.
    pub joined: u64,
    /// The number of runs of NUL bytes.
    pub nul_runs: u64,
    /// The number of lines longer than the cap.
    pub oversized: u64,
}

impl Faults {
    /// Returns the number of stretches that were skipped.
    pub const fn skipped(self) -> u64 {
        self.broken + self.oversized
    }

    /// Adds the counts from elsewhere.
    pub const fn add(&mut self, other: Self) {
        self.broken += other.broken;
        self.joined += other.joined;
        self.nul_runs += other.nul_runs;
        self.oversized += other.oversized;
    }
}

/// One record of a transcript, borrowed from its line.
#[derive(Clone, Debug, PartialEq)]
pub enum Record<'a> {
    /// A message to the model: a prompt, or the results of its tools.
    User(User<'a>),
    /// A message of the model; one call is several of these, one for each block.
    Assistant(Assistant<'a>),
    /// The client replaced what came before by a summary.
    CompactBoundary,
    /// A record of any other kind, by its name.
    Unknown(Cow<'a, str>),
}

/// A record of kind `user`.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct User<'a> {
    /// True if it is part of a subagent's conversation.
    pub sidechain: bool,
    /// True if the client itself wrote it, not the human, and it begins no turn: a caveat, the summary of a compaction, the report at
    /// a resume on what was left running (measured with 2.1.332).
    pub meta: bool,
    /// The number of tool results that it carries.
    pub tool_results: usize,
    /// Its text blocks.
    pub texts: Vec<Cow<'a, str>>,
}

/// The start of the text that the client records when a person has stopped a turn.
pub(super) const STOPPED: &str = "[Request interrupted by user";

impl User<'_> {
    /// Returns the prompt, if this record is one that a human or a host gave on the main chain.
    ///
    /// Slash commands and commands of the shell mode are recorded as text in tags of the client's own. They are no prompts, although
    /// the agent answers what a command of the shell mode printed.
    pub fn prompt(&self) -> Option<Cow<'_, str>> {
        const OWN_TAGS: &str =
            "<command-name>|<command-message>|<local-command-|<bash-input>|<bash-stdout>";
        if self.sidechain || self.meta || self.tool_results > 0 {
            return None;
        }
        let first = self.texts.first()?.trim_start();
        if first.starts_with(STOPPED) || OWN_TAGS.split('|').any(|tag| first.starts_with(tag)) {
            return None;
        }
        match self.texts.as_slice() {
            [only] => Some(Cow::Borrowed(only)),
            several => Some(Cow::Owned(several.join("\n"))),
        }
    }
}

/// A record of kind `assistant`.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Assistant<'a> {
    /// The message's id; the same on every record of one call.
    pub message_id: Option<Cow<'a, str>>,
    /// The request's id.
    pub request_id: Option<Cow<'a, str>>,
    /// The model's bare id.
    pub model: Option<Cow<'a, str>>,
    /// True if it is part of a subagent's conversation.
    pub sidechain: bool,
    /// True if it is an error that the client shows as an answer.
    pub api_error: bool,
    /// The client's word for that error.
    pub error: Option<String>,
    /// The usage of the call, all its steps together.
    pub usage: Option<Usage>,
    /// The usage in the context window at its last step, if the figure is plausible.
    pub context: Option<Usage>,
    /// Its text blocks.
    pub texts: Vec<Cow<'a, str>>,
    /// The number of tools that it calls.
    pub tool_uses: usize,
}

impl Assistant<'_> {
    /// Reports whether a model made this message, as opposed to one that the client wrote in the model's place.
    pub fn is_genuine(&self) -> bool {
        !self.api_error && self.model.as_deref() != Some("<synthetic>")
    }
}

/// Hands every record of one stretch (a line without its end) to `sink`, and returns the faults that were met.
pub fn each_record<'a>(stretch: &'a [u8], sink: &mut impl FnMut(Record<'a>)) -> Faults {
    each_of(stretch, first_record, |record, _| sink(record))
}

/// Returns the records of a stretch with all of their fields.
pub fn parsed_records(stretch: &[u8]) -> Vec<Value> {
    let mut found = Vec::new();
    each_of(stretch, parse_record, |record, _| found.push(record));
    found
}

/// Reads the whole record that `rest` begins with, and its length. One with damaged text must be alone.
fn parse_record(rest: &[u8]) -> Option<(Value, usize)> {
    let mut stream = serde_json::Deserializer::from_slice(rest).into_iter::<Value>();
    let (record, length) = match stream.next()? {
        Ok(record) => (record, stream.byte_offset()),
        Err(_) => (
            serde_json::from_str(mend_json(rest).trim_end()).ok()?,
            rest.len(),
        ),
    };
    record.is_object().then_some((record, length))
}

/// Hands what `read` finds at the start of every record of a stretch to `sink`, with its byte range, and returns the faults
/// that were met. `read` returns the length of the record, too.
pub(super) fn each_of<'a, T>(
    stretch: &'a [u8],
    read: impl Fn(&'a [u8]) -> Option<(T, usize)>,
    mut sink: impl FnMut(T, Range<usize>),
) -> Faults {
    let mut faults = Faults::default();
    let (mut at, mut found) = (0, 0);
    // Torn records are skipped a limited number of times, so that a hostile line costs linear time.
    let mut tries = 16;
    loop {
        at = stretch.len() - without_lead(&stretch[at..]).len();
        let rest = &stretch[at..];
        if rest.is_empty() {
            return faults;
        }
        found += 1;
        if let Some((one, length)) = read(rest) {
            faults.joined += u64::from(found > 1);
            sink(one, at..at + length);
            at += length;
        } else {
            faults.broken += 1;
            let Some(behind) = record_behind(rest, &mut tries) else {
                return faults;
            };
            at += behind;
        }
    }
}

/// Reports whether `line` needs no parsing by a caller that looks for usage, prompts and compactions only.
///
/// This holds for tool results, the bulk of a transcript. The marks hold unescaped quotes, so they cannot match
/// inside a JSON string.
pub(super) fn is_plain_tool_result(line: &[u8]) -> bool {
    // Short lines are parsed as quickly as they are searched.
    line.len() > 2048
        && line.starts_with(b"{")
        && line.ends_with(b"}")
        && memmem::find(line, b"\"tool_result\"").is_some()
        && memmem::find(line, b"\"usage\":").is_none()
        && memmem::find(line, b"}{\"").is_none()
}

/// Cuts a stream of bytes, handed over in any pieces, into stretches between line feeds and NUL bytes.
///
/// Memory is bounded by [`LINE_CAP`]; complete lines are handed out from the piece itself, without a copy.
#[derive(Debug, Default)]
pub struct Splitter {
    /// The start of a stretch whose end has not come yet.
    carry: Vec<u8>,
    /// True if the stretch under way is over the cap; its bytes are dropped up to its end.
    overflowing: bool,
    /// True if the last byte was a NUL.
    in_nul_run: bool,
    faults: Faults,
}

/// The capacity in bytes that a [`Splitter`] keeps of its buffer between long lines.
const CARRY_KEPT: usize = 1024 * 1024;

impl Splitter {
    /// Takes the next piece and hands every stretch that ends in it to `sink`, empty ones left out.
    pub fn push(&mut self, mut piece: &[u8], mut sink: impl FnMut(&[u8])) {
        while let Some(end) = memchr2(b'\n', 0, piece) {
            self.end_stretch(&piece[..end], &mut sink);
            let separator = piece[end];
            piece = &piece[end + 1..];
            if separator == 0 {
                self.faults.nul_runs += u64::from(end > 0 || !self.in_nul_run);
                piece = without_nuls(piece);
            }
            self.in_nul_run = separator == 0;
        }
        if !piece.is_empty() {
            self.in_nul_run = false;
            self.keep_piece(piece);
        }
    }

    /// Returns the stretch whose end has not come yet; a torn tail, or a file without a last line feed.
    pub fn pending(&self) -> &[u8] {
        &self.carry
    }

    /// Returns the faults that were met so far.
    pub const fn faults(&self) -> Faults {
        self.faults
    }

    fn end_stretch(&mut self, last: &[u8], sink: &mut impl FnMut(&[u8])) {
        if self.overflowing {
            self.overflowing = false;
            return;
        }
        if self.carry.is_empty() {
            if !last.is_empty() {
                sink(last);
            }
            return;
        }
        if self.carry.len() + last.len() > LINE_CAP {
            self.faults.oversized += 1;
        } else {
            self.carry.extend_from_slice(last);
            sink(&self.carry);
        }
        self.drop_carry();
    }

    fn keep_piece(&mut self, piece: &[u8]) {
        if self.overflowing {
            return;
        }
        if self.carry.len() + piece.len() > LINE_CAP {
            self.overflowing = true;
            self.faults.oversized += 1;
            self.drop_carry();
            return;
        }
        self.carry.extend_from_slice(piece);
    }

    fn drop_carry(&mut self) {
        self.carry.clear();
        self.carry.shrink_to(CARRY_KEPT);
    }
}

/// Skips the NUL bytes at the start, in strides: a hole in a sparse file can be gigabytes long.
fn without_nuls(mut piece: &[u8]) -> &[u8] {
    const STRIDE: [u8; 256] = [0; 256];
    while let Some(rest) = piece.strip_prefix(&STRIDE) {
        piece = rest;
    }
    let more = piece
        .iter()
        .position(|&byte| byte != 0)
        .unwrap_or(piece.len());
    &piece[more..]
}

/// Returns the bytes without white space (CR included) and a byte order mark at their start.
fn without_lead(bytes: &[u8]) -> &[u8] {
    let bytes = bytes.trim_ascii_start();
    bytes
        .strip_prefix(b"\xef\xbb\xbf")
        .map_or(bytes, <[u8]>::trim_ascii_start)
}

/// Returns the JSON as it came, but with U+FFFD in place of bad UTF-8 and of half surrogate pairs, which shell output may
/// well hold, and without a byte order mark.
pub fn mend_json(json: &[u8]) -> Cow<'_, str> {
    let text = String::from_utf8_lossy(without_lead(json));
    let is_surrogate = |at: usize| leads_pair(&text[at..]).is_some();
    if !memmem::find_iter(text.as_bytes(), b"\\u").any(is_surrogate) {
        return text;
    }
    let mut out = String::with_capacity(text.len());
    let mut rest = text.as_ref();
    while let Some(at) = rest.find('\\') {
        let (before, escape) = rest.split_at(at);
        out.push_str(before);
        let length = escape.chars().nth(1).map_or(1, |c| 1 + c.len_utf8());
        let (lead, trail) = (
            leads_pair(escape),
            leads_pair(escape.get(6..).unwrap_or("")),
        );
        let length = match (lead, trail) {
            (Some(true), Some(false)) => 12,
            (Some(_), _) => {
                out.push('\u{fffd}');
                rest = &escape[6..];
                continue;
            }
            (None, _) => length,
        };
        out.push_str(&escape[..length]);
        rest = &escape[length..];
    }
    out.push_str(rest);
    Cow::Owned(out)
}

/// Returns whether a surrogate escape at the start leads a pair; `None` if there is no such escape.
fn leads_pair(text: &str) -> Option<bool> {
    let digits = text.strip_prefix("\\u")?.get(..4)?;
    match u32::from_str_radix(digits, 16).ok()? {
        0xd800..=0xdbff => Some(true),
        0xdc00..=0xdfff => Some(false),
        _ => None,
    }
}

/// Reads the record that `rest` begins with, and its length.
fn first_record(rest: &[u8]) -> Option<(Record<'_>, usize)> {
    // An array would be accepted as a struct by position.
    if rest.first() != Some(&b'{') {
        return None;
    }
    let mut stream = serde_json::Deserializer::from_slice(rest).into_iter::<Wire<'_>>();
    match stream.next()? {
        Ok(wire) => Some((wire.into_record(), stream.byte_offset())),
        // The record is JSON, but a field is of an unknown type: it is kept by its kind.
        Err(error) if error.is_data() => {
            let mut stream = serde_json::Deserializer::from_slice(rest).into_iter::<Bare<'_>>();
            let bare = stream.next()?.ok()?;
            Some((
                Record::Unknown(bare.kind.map(Text::into_lossy).unwrap_or_default()),
                stream.byte_offset(),
            ))
        }
        Err(_) => None,
    }
}

/// Returns the offset of a whole record behind the torn one that `rest` starts with.
///
/// A candidate begins with the first keys that the client writes; what is inside a string cannot look like one,
/// because its quotes are escaped.
fn record_behind(rest: &[u8], tries: &mut u32) -> Option<usize> {
    const FIRST_KEYS: [&[u8]; 4] = [
        b"{\"parentUuid\":",
        b"{\"type\":\"",
        b"{\"sessionId\":",
        b"{\"uuid\":",
    ];
    let mut from = 1;
    while *tries > 0 {
        *tries -= 1;
        let tail = rest.get(from..)?;
        let start = from
            + FIRST_KEYS
                .iter()
                .filter_map(|key| memmem::find(tail, key))
                .min()?;
        if is_record(&rest[start..]) {
            return Some(start);
        }
        from = start + 1;
    }
    None
}

/// Reports whether `rest` begins with a whole record that names its session or itself, and that ends the line or
/// comes before another.
fn is_record(rest: &[u8]) -> bool {
    let mut stream = serde_json::Deserializer::from_slice(rest).into_iter::<Bare<'_>>();
    let Some(Ok(bare)) = stream.next() else {
        return false;
    };
    let after = without_lead(&rest[stream.byte_offset()..]);
    bare.kind.is_some()
        && (bare.uuid.is_some() || bare.session_id.is_some())
        && after.first().is_none_or(|&byte| byte == b'{')
}

/// A string as the client wrote it. As bytes, `serde_json` neither checks UTF-8 nor refuses half a surrogate pair.
#[derive(Deserialize)]
pub(super) struct Text<'a>(#[serde(borrow)] pub(super) Cow<'a, [u8]>);

impl<'a> Text<'a> {
    /// Returns the text, with U+FFFD in place of what is not a character.
    fn into_lossy(self) -> Cow<'a, str> {
        match self.0 {
            Cow::Borrowed(bytes) => String::from_utf8_lossy(bytes),
            Cow::Owned(bytes) => String::from_utf8_lossy(&bytes).into_owned().into(),
        }
    }
}

/// The content of a message: one string, or blocks.
#[derive(Default)]
struct Content<'a> {
    texts: Vec<Cow<'a, str>>,
    tool_uses: usize,
    tool_results: usize,
}

impl<'a> Content<'a> {
    fn of(text: Cow<'a, [u8]>) -> Self {
        Self {
            texts: vec![Text(text).into_lossy()],
            ..Self::default()
        }
    }
}

#[derive(Deserialize)]
struct Block<'a> {
    #[serde(borrow, rename = "type")]
    kind: Option<Text<'a>>,
    #[serde(borrow)]
    text: Option<Text<'a>>,
}

impl<'de: 'a, 'a> Deserialize<'de> for Content<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct ContentVisitor;
        impl<'de> Visitor<'de> for ContentVisitor {
            type Value = Content<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a string or blocks")
            }

            fn visit_borrowed_bytes<E>(self, bytes: &'de [u8]) -> Result<Self::Value, E> {
                Ok(Content::of(bytes.into()))
            }

            fn visit_bytes<E>(self, bytes: &[u8]) -> Result<Self::Value, E> {
                Ok(Content::of(bytes.to_vec().into()))
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut blocks: A) -> Result<Self::Value, A::Error> {
                let mut content = Content::default();
                while let Some(block) = blocks.next_element::<Block<'de>>()? {
                    match (block.kind.as_ref().map(|kind| &*kind.0), block.text) {
                        (Some(b"text"), Some(text)) => content.texts.push(text.into_lossy()),
                        (Some(b"tool_use"), _) => content.tool_uses += 1,
                        (Some(b"tool_result"), _) => content.tool_results += 1,
                        _ => {}
                    }
                }
                Ok(content)
            }
        }
        deserializer.deserialize_bytes(ContentVisitor)
    }
}

#[derive(Deserialize, Default)]
struct WireMessage<'a> {
    #[serde(borrow)]
    id: Option<Text<'a>>,
    #[serde(borrow)]
    model: Option<Text<'a>>,
    usage: Option<Value>,
    #[serde(borrow)]
    content: Option<Content<'a>>,
}

/// The needed fields of a line.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Wire<'a> {
    #[serde(borrow, rename = "type")]
    kind: Option<Text<'a>>,
    #[serde(borrow)]
    subtype: Option<Text<'a>>,
    #[serde(borrow)]
    request_id: Option<Text<'a>>,
    is_sidechain: Option<bool>,
    is_api_error_message: Option<bool>,
    error: Option<Value>,
    is_meta: Option<bool>,
    is_compact_summary: Option<bool>,
    queue_transcript_only: Option<bool>,
    #[serde(borrow)]
    message: Option<WireMessage<'a>>,
}

/// The fields that every record has, whatever else is in it.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Bare<'a> {
    #[serde(borrow, rename = "type")]
    kind: Option<Text<'a>>,
    uuid: Option<IgnoredAny>,
    session_id: Option<IgnoredAny>,
}

impl<'a> Wire<'a> {
    fn into_record(self) -> Record<'a> {
        let kind = self.kind.map(Text::into_lossy).unwrap_or_default();
        let subtype = self.subtype.map(|subtype| subtype.0);
        let sidechain = self.is_sidechain.unwrap_or(false);
        let message = self.message.unwrap_or_default();
        let content = message.content.unwrap_or_default();
        match kind.as_ref() {
            "user" => Record::User(User {
                sidechain,
                meta: [
                    self.is_meta,
                    self.is_compact_summary,
                    self.queue_transcript_only,
                ]
                .contains(&Some(true)),
                tool_results: content.tool_results,
                texts: content.texts,
            }),
            "assistant" => Record::Assistant(Assistant {
                message_id: message.id.map(Text::into_lossy),
                request_id: self.request_id.map(Text::into_lossy),
                model: message.model.map(Text::into_lossy),
                sidechain,
                api_error: self.is_api_error_message.unwrap_or(false),
                error: self
                    .error
                    .and_then(|error| Some(error.as_str()?.to_owned())),
                context: message.usage.as_ref().and_then(in_window),
                usage: message.usage.as_ref().map(paid_usage),
                texts: content.texts,
                tool_uses: content.tool_uses,
            }),
            "system" if subtype.as_deref() == Some(b"compact_boundary") => Record::CompactBoundary,
            _ => Record::Unknown(kind),
        }
    }
}

/// Reports whether `stretch` is empty, apart from white space and a byte order mark.
pub(super) fn is_blank(stretch: &[u8]) -> bool {
    without_lead(stretch).is_empty()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::{super::Tokens, *};

    fn records(line: &[u8]) -> (Vec<Record<'_>>, Faults) {
        let mut found = Vec::new();
        let faults = each_record(line, &mut |record| found.push(record));
        (found, faults)
    }

    fn only(line: &str) -> Record<'_> {
        let (mut found, faults) = records(line.as_bytes());
        assert_eq!((found.len(), faults), (1, Faults::default()), "{line}");
        found.remove(0)
    }

    fn broken(count: u64) -> Faults {
        Faults {
            broken: count,
            ..Faults::default()
        }
    }

    const ASSISTANT: &str = r#"{"parentUuid":"p","type":"assistant","uuid":"u","requestId":"req_1","isSidechain":false,"message":{"id":"msg_1","model":"claude-opus-4-8","role":"assistant","content":[{"type":"thinking","thinking":"hm"},{"type":"text","text":"hi"},{"type":"tool_use","id":"t","name":"Bash","input":{"command":"ls"}}],"usage":{"input_tokens":3,"cache_creation_input_tokens":10,"cache_read_input_tokens":100,"output_tokens":7,"service_tier":"x"}}}"#;
    const PROMPT: &str =
        r#"{"type":"user","uuid":"u2","message":{"role":"user","content":"do it"}}"#;

    #[test]
    fn an_assistant_record_gives_usage_ids_and_text() {
        let Record::Assistant(said) = only(ASSISTANT) else {
            panic!("not an assistant record")
        };
        assert_eq!(said.message_id.as_deref(), Some("msg_1"));
        assert_eq!(said.request_id.as_deref(), Some("req_1"));
        assert_eq!(said.model.as_deref(), Some("claude-opus-4-8"));
        assert_eq!(said.texts, ["hi"]);
        assert_eq!(said.tool_uses, 1);
        assert_eq!(said.usage.map(Usage::context), Some(Tokens(120)));
        assert!(said.is_genuine());
    }

    #[test]
    fn content_may_be_a_string_or_blocks() {
        let blocks = r#"{"type":"user","message":{"content":[{"type":"text","text":"a"},{"type":"image","source":{}},{"type":"text","text":"b"}]}}"#;
        for (line, prompt) in [(PROMPT, "do it"), (blocks, "a\nb")] {
            let Record::User(user) = only(line) else {
                panic!("not a user record")
            };
            assert_eq!(user.prompt().as_deref(), Some(prompt));
        }
    }

    #[test]
    fn only_a_prompt_of_the_main_chain_is_a_prompt() {
        let cases = [
            r#"{"type":"user","isSidechain":true,"message":{"content":"x"}}"#,
            r#"{"type":"user","isMeta":true,"message":{"content":"x"}}"#,
            r#"{"type":"user","isCompactSummary":true,"message":{"content":"x"}}"#,
            r#"{"type":"user","queueTranscriptOnly":true,"message":{"content":"<task-notification>x"}}"#,
            r#"{"type":"user","message":{"content":[{"type":"tool_result","tool_use_id":"t","content":"x"}]}}"#,
            r#"{"type":"user","message":{"content":"<command-name>/exit</command-name>"}}"#,
            r#"{"type":"user","message":{"content":"<local-command-stdout>x</local-command-stdout>"}}"#,
            r#"{"type":"user","message":{"content":[{"type":"text","text":"[Request interrupted by user]"}]}}"#,
            r#"{"type":"user","message":{}}"#,
        ];
        for line in cases {
            let Record::User(user) = only(line) else {
                panic!("not a user record: {line}")
            };
            assert_eq!(user.prompt(), None, "{line}");
        }
    }

    #[test]
    fn unknown_kinds_and_odd_types_are_kept_by_name() {
        let cases = [
            (
                r#"{"type":"file-history-snapshot","snapshot":{}}"#,
                "file-history-snapshot",
            ),
            (r#"{"type":"system","subtype":"other"}"#, "system"),
            (r#"{"type":"user","message":"just text"}"#, "user"),
            (
                r#"{"type":"assistant","message":{"content":{"a":1}}}"#,
                "assistant",
            ),
            (r#"{"type":"user","isSidechain":"yes"}"#, "user"),
            (r#"{"summary":"x"}"#, ""),
            (r"{}", ""),
        ];
        for (line, kind) in cases {
            assert_eq!(only(line), Record::Unknown(Cow::Borrowed(kind)), "{line}");
        }
        assert_eq!(
            only(r#"{"type":"system","subtype":"compact_boundary","content":"x"}"#),
            Record::CompactBoundary
        );
    }

    #[test]
    fn counts_that_are_no_counts_are_none() {
        let line = r#"{"type":"assistant","message":{"usage":{"input_tokens":null,"cache_read_input_tokens":-5,"cache_creation_input_tokens":12.0,"output_tokens":1e300}}}"#;
        let Record::Assistant(said) = only(line) else {
            panic!("not an assistant record")
        };
        assert_eq!(said.usage.map(Usage::context), Some(Tokens(12)));
        assert_eq!(said.context, None, "and no figure");
    }

    #[test]
    fn lone_surrogates_and_bad_utf8_become_replacement_characters() {
        let lone = r#"{"type":"user","message":{"content":"a\ud800b"}}"#;
        let Record::User(user) = only(lone) else {
            panic!("not a user record")
        };
        assert!(
            user.prompt()
                .is_some_and(|text| text.starts_with('a') && text.ends_with('b'))
        );
        let mut bytes = br#"{"type":"user","message":{"content":"a"#.to_vec();
        bytes.extend_from_slice(b"\xff\xc3b\"}}");
        let (found, faults) = records(&bytes);
        assert_eq!(faults, Faults::default());
        let Record::User(user) = &found[0] else {
            panic!("not a user record")
        };
        assert_eq!(user.prompt().as_deref(), Some("a\u{fffd}\u{fffd}b"));
    }

    #[test]
    fn marks_and_white_space_round_a_record_do_not_matter() {
        for line in [
            format!("\u{feff}{PROMPT}"),
            format!("{PROMPT}\r"),
            format!("  {PROMPT} \r"),
        ] {
            assert!(matches!(only(&line), Record::User(_)));
        }
        for blank in ["", "\r", "   ", "\u{feff}"] {
            assert_eq!(records(blank.as_bytes()), (vec![], Faults::default()));
        }
    }

    #[test]
    fn two_records_on_a_line_are_split_and_counted() {
        for between in ["", " ", "\r"] {
            let line = format!("{ASSISTANT}{between}{PROMPT}");
            let (found, faults) = records(line.as_bytes());
            assert!(matches!(
                found.as_slice(),
                [Record::Assistant(_), Record::User(_)]
            ));
            assert_eq!(
                faults,
                Faults {
                    joined: 1,
                    ..Faults::default()
                }
            );
        }
    }

    #[test]
    fn a_record_behind_a_torn_one_is_found_at_every_cut() {
        for cut in 1..ASSISTANT.len() {
            let line = format!("{}{PROMPT}", &ASSISTANT[..cut]);
            let (found, faults) = records(line.as_bytes());
            assert_eq!(found.len(), 1, "cut at {cut}");
            assert!(matches!(found[0], Record::User(_)), "cut at {cut}");
            assert_eq!((faults.broken, faults.joined), (1, 1), "cut at {cut}");
        }
    }

    #[test]
    fn a_torn_record_never_yields_one_of_its_own_blocks() {
        for cut in 1..ASSISTANT.len() {
            let line = &ASSISTANT[..cut];
            assert_eq!(
                records(line.as_bytes()),
                (vec![], broken(1)),
                "cut at {cut}"
            );
        }
    }

    #[test]
    fn garbage_is_counted_once_a_line() {
        for line in [
            "nonsense",
            "[1,2]",
            "\"text\"",
            "17",
            "{",
            "}{",
            "[[[[[[",
            "{\"type\":",
        ] {
            assert_eq!(records(line.as_bytes()), (vec![], broken(1)), "{line}");
        }
        let line = format!("{PROMPT}garbage");
        let (found, faults) = records(line.as_bytes());
        assert_eq!((found.len(), faults), (1, broken(1)));
    }

    #[test]
    fn nesting_without_end_is_no_danger() {
        let deep = format!("{{\"type\":\"x\",\"a\":{}", "[".repeat(1_000_000));
        assert_eq!(records(deep.as_bytes()), (vec![], broken(1)));
        let closed = format!(
            "{{\"type\":\"x\",\"a\":{}{}}}",
            "[".repeat(100_000),
            "]".repeat(100_000)
        );
        assert_eq!(only(&closed), Record::Unknown(Cow::Borrowed("x")));
    }

    #[test]
    fn a_tool_result_is_known_without_parsing_but_never_a_prompt() {
        let long = "x".repeat(4000);
        let result = format!(
            r#"{{"type":"user","message":{{"content":[{{"type":"tool_result","content":"{long}"}}]}}}}"#
        );
        assert!(is_plain_tool_result(result.as_bytes()));
        let quoting =
            format!(r#"{{"type":"user","message":{{"content":"say \"tool_result\" {long}"}}}}"#);
        assert!(!is_plain_tool_result(quoting.as_bytes()));
        assert!(!is_plain_tool_result(
            format!("{result}{ASSISTANT}").as_bytes()
        ));
        assert!(!is_plain_tool_result(
            format!("{result}{PROMPT}").as_bytes()
        ));
    }

    fn split(pieces: &[&[u8]]) -> (Vec<Vec<u8>>, Splitter) {
        let mut splitter = Splitter::default();
        let mut lines = Vec::new();
        for piece in pieces {
            splitter.push(piece, |line| lines.push(line.to_vec()));
        }
        (lines, splitter)
    }

    #[test]
    fn a_run_of_nul_ends_a_stretch_and_counts_once() {
        let (lines, splitter) = split(&[b"a\n\0\0", b"\0b\nc"]);
        assert_eq!(lines, [b"a", b"b"]);
        assert_eq!(splitter.faults().nul_runs, 1);
        assert_eq!(splitter.pending(), b"c");
    }

    #[test]
    fn a_line_over_the_cap_is_passed_with_little_memory() {
        let piece = vec![b'x'; 1024 * 1024];
        let mut splitter = Splitter::default();
        let mut lines = Vec::new();
        for _ in 0..100 {
            splitter.push(&piece, |line| lines.push(line.len()));
        }
        assert!(splitter.carry.capacity() <= CARRY_KEPT);
        splitter.push(b"\nnext\n", |line| lines.push(line.len()));
        assert_eq!(lines, [4]);
        assert_eq!(splitter.faults().oversized, 1);
    }

    proptest! {
        #[test]
        fn any_cuts_give_the_same_stretches(
            bytes in proptest::collection::vec(prop_oneof![Just(b'\n'), Just(0), Just(b'{'), any::<u8>()], 0..300),
            cuts in proptest::collection::vec(0usize..300, 0..8),
        ) {
            let whole = split(&[&bytes]);
            let mut cuts: Vec<_> = cuts.into_iter().map(|cut| cut.min(bytes.len())).collect();
            cuts.sort_unstable();
            cuts.push(bytes.len());
            let mut start = 0;
            let pieces: Vec<&[u8]> = cuts.iter().map(|&end| { let piece = &bytes[start..end]; start = end; piece }).collect();
            let cut = split(&pieces);
            prop_assert_eq!(whole.0, cut.0);
            prop_assert_eq!(whole.1.pending(), cut.1.pending());
            prop_assert_eq!(whole.1.faults(), cut.1.faults());
        }

        #[test]
        fn any_damage_is_survived(cut in 0usize..400, byte in any::<u8>(), tail in proptest::collection::vec(any::<u8>(), 0..40)) {
            let mut line = ASSISTANT.as_bytes().to_vec();
            let at = cut.min(line.len() - 1);
            line[at] = byte;
            line.extend_from_slice(&tail);
            let (found, faults) = records(&line);
            prop_assert!(found.len() as u64 + faults.broken >= 1);
        }
    }
}
