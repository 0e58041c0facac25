//! Every parser of transcripts over real sessions: below `PITSTOP_TRANSCRIPTS`, else `../shared/transcripts` beside the
//! repository, where the bench of the handoff looks, too. As they are, and torn.

use std::{collections::BTreeSet, fs, path::Path};

use pitstop_handoff::{
    Generator, Marker, PreservedState, Sources,
    claims::Claims,
    signal,
    summary::{self, History},
};
use pitstop_transcript::{
    Tokens,
    digest::Digest,
    human::HumanWords,
    tail::{Tail, find_prompt, holds_conversation, read_pieces},
    trim::{Survey, TrimSettings},
    usage::Usage,
};
use serde_json::Value;

use crate::kit::transcripts;

const SETTINGS: TrimSettings = TrimSettings {
    compact_line: Tokens(100_000),
    max_recent_messages: 4,
};

fn sessions() -> Vec<(String, Vec<u8>)> {
    let place = transcripts::place();
    let files = transcripts::below(&place);
    assert!(!files.is_empty(), "no sessions at {}", place.display());
    let name = |path: &Path| path.strip_prefix(&place).unwrap().display().to_string();
    files
        .iter()
        .map(|path| (name(path), transcripts::bytes_of(path).unwrap()))
        .collect()
}

/// What a reader that knows nothing of ours makes of a file.
#[derive(Default)]
struct Plainly {
    records: Vec<Value>,
    /// The numbers of the lines that are no record, from 1.
    broken: Vec<usize>,
}

impl Plainly {
    fn read(bytes: &[u8]) -> Self {
        let mut plainly = Self::default();
        for (number, line) in bytes.split(|byte| *byte == b'\n').enumerate() {
            if line.trim_ascii().is_empty() {
                continue;
            }
            match serde_json::from_slice::<Value>(line) {
                Ok(record) if record.is_object() => plainly.records.push(record),
                _ => plainly.broken.push(number + 1),
            }
        }
        plainly
    }

    fn compactions(&self) -> u64 {
        let is_boundary =
            |record: &&Value| record["type"] == "system" && record["subtype"] == "compact_boundary";
        self.records.iter().filter(is_boundary).count() as u64
    }

    /// The figure of the last call of the main chain, if nothing was compacted behind it.
    fn used(&self) -> Option<Tokens> {
        let mut used = None;
        for record in &self.records {
            if record["subtype"] == "compact_boundary" {
                used = None;
            }
            let message = &record["message"];
            let genuine = record["type"] == "assistant"
                && record["isSidechain"] != true
                && record["isApiErrorMessage"] != true
                && message["model"] != "<synthetic>";
            let count = |key: &str| message["usage"][key].as_u64().unwrap_or(0);
            let sum = count("input_tokens")
                + count("cache_creation_input_tokens")
                + count("cache_read_input_tokens")
                + count("output_tokens");
            if genuine && sum > 0 {
                used = Some(Tokens(sum));
            }
        }
        used
    }

    /// All that stands in records that may be a human's, blanks as one.
    fn prompts(&self) -> String {
        let mut all = String::new();
        for record in &self.records {
            let is_prompt = record["type"] == "user" && record["isMeta"] != true;
            let waited = record["type"] == "queue-operation" || record["type"] == "attachment";
            // What they chose when the agent asked is listed with the question.
            let answers = record["toolUseResult"]["answers"].as_object();
            for (question, answer) in answers.into_iter().flatten() {
                let answer = answer.as_str().unwrap_or_default();
                all.push_str(&format!("{answer} (asked: {question})\n"));
            }
            if is_prompt || waited {
                texts(record, &mut all);
            }
        }
        // A typed command is told as it was typed, without the tags between its name and its words.
        joined(&all).replace("</command-name> <command-args>", " ")
    }
}

/// The texts of a record that no tool has answered.
fn texts(value: &Value, out: &mut String) {
    match value {
        Value::String(text) => {
            out.push_str(text);
            out.push('\n');
        }
        Value::Array(values) => values.iter().for_each(|value| texts(value, out)),
        Value::Object(fields) if value["type"] != "tool_result" => {
            let fields = fields.iter().filter(|(key, _)| *key != "toolUseResult");
            fields.for_each(|(_, value)| texts(value, out));
        }
        _ => {}
    }
}

fn joined(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Has every parser read a file; what they find is looked at by those who call this.
struct Read {
    digest: Digest,
    human: HumanWords,
    records: u64,
    broken: u64,
}

fn read_by_all(path: &Path, portion: u64) -> Read {
    let mut tail = Tail::open(path).unwrap();
    let (mut digest, mut history) = (Digest::new(10), 0);
    let (mut human, mut records) = (HumanWords::default(), 0);
    loop {
        let report = tail.read_into(portion, &mut digest, &mut history).unwrap();
        records += report.records;
        if let Some(words) = digest.take_human() {
            human = words;
        }
        for said in digest.take_said() {
            let _ = signal::parse_signals(&said);
        }
        digest.take_ran();
        if !report.more {
            break;
        }
    }
    let mut whole = History::default();
    read_pieces(path, u64::MAX / 2, 0, |piece| {
        whole.push(piece);
        true
    })
    .unwrap();
    let whole = whole.finish();
    assert!(
        summary::make_prompt(
            &whole,
            pitstop_transcript::SessionId::new(uuid::Uuid::nil()),
            ""
        )
        .contains("<history>")
    );
    find_prompt(path, "0a1b2c3d").unwrap();
    holds_conversation(path).unwrap();
    // A subagent's own file has nothing that could be resumed.
    let bytes = fs::read(path).unwrap();
    if let Ok(survey) = Survey::read(bytes.as_slice()) {
        assert!(
            survey
                .plan(&SETTINGS)
                .levels
                .iter()
                .all(|level| level.tokens_after <= level.tokens_before)
        );
    }
    Read {
        broken: tail.faults().broken,
        digest,
        human,
        records,
    }
}

#[test]
#[ignore = "needs the sessions of PITSTOP_TRANSCRIPTS or ../shared/transcripts"]
fn every_line_of_the_shared_sessions_is_read_as_it_stands() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("session.jsonl");
    let (mut records, mut broken) = (0, 0);
    for (name, mut bytes) in sessions() {
        let plainly = Plainly::read(&bytes);
        records += plainly.records.len();
        broken += plainly.broken.len();
        if !plainly.broken.is_empty() {
            eprintln!("{name}: no record in lines {:?}", plainly.broken);
        }
        if !bytes.ends_with(b"\n") {
            bytes.push(b'\n');
        }
        fs::write(&path, &bytes).unwrap();
        let mut tail = Tail::open(&path).unwrap();
        tail.read_new(u64::MAX).unwrap();
        let (scan, faults) = (tail.scan(), tail.faults());
        assert_eq!(scan.records(), plainly.records.len() as u64, "{name}");
        assert_eq!(faults.broken, plainly.broken.len() as u64, "{name}");
        assert_eq!(faults.skipped(), faults.broken, "{name}");
        assert_eq!(faults.joined, 0, "{name}");
        assert_eq!(scan.compactions(), plainly.compactions(), "{name}");
        assert_eq!(scan.last().map(Usage::context), plainly.used(), "{name}");
        let mut read = read_by_all(&path, 64 * 1024);
        assert_eq!(read.records, scan.records(), "{name}");
        assert_eq!(read.broken, faults.broken, "{name}");
        // Nothing that a tool or the client has said is the human's.
        let prompts = plainly.prompts();
        for said in &read.human.prompts {
            for part in said.text.split('…').map(joined) {
                assert!(prompts.contains(&part), "{name}: {}", said.text);
            }
        }
        // Every file that is named stands in the session.
        let work = read.digest.take_work().unwrap_or_default();
        let text = String::from_utf8_lossy(&bytes);
        for file in &work.files {
            let bare = file.path.rsplit('/').next().unwrap();
            assert!(text.contains(bare), "{name}: {}", file.path);
        }
        let commands: BTreeSet<_> = work.commands.iter().collect();
        assert_eq!(commands.len(), work.commands.len(), "{name}");
    }
    eprintln!("{records} records, {broken} lines that are none");
    assert!(records > 0);
}

/// The handoffs of a session, of its first half, and of its first quarter claim only what is in that session.
#[test]
#[ignore = "needs the sessions of PITSTOP_TRANSCRIPTS or ../shared/transcripts"]
fn a_handoff_of_a_shared_session_claims_nothing_that_does_not_stand_there() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("session.jsonl");
    let marker = Marker::read("pitstop handoff · r1 · iteration 1 · 0a1b2c3d").unwrap();
    let mut lines = 0;
    for (name, bytes) in sessions() {
        let all: Vec<&[u8]> = bytes.split_inclusive(|byte| *byte == b'\n').collect();
        for part in [all.len(), all.len() / 2, all.len() / 4] {
            let session = all[..part].concat();
            fs::write(&path, &session).unwrap();
            let mut read = read_by_all(&path, 1 << 20);
            let work = read.digest.take_work().unwrap_or_default();
            let mut state = PreservedState::default();
            state.feed_human(&read.human);
            let summary = summary::fallback(&state, &[], &work);
            let sources = Sources {
                summary: summary.as_deref(),
                work: Some(&work),
                ..Sources::new(&marker, &state)
            };
            let handoff = Generator::default().generate(&sources, 50_000).unwrap();
            let mut claims = Claims::of_handoff(&handoff.text);
            claims.push(&session);
            assert_eq!(claims.into_unfounded(), [], "{name}: {part} lines");
            lines += handoff.text.lines().count();
        }
    }
    assert!(lines > 1_000, "{lines}");
}

/// Numbers that look like chance and are the same in every run.
struct Chance(u64);

impl Chance {
    fn below(&mut self, limit: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % limit.max(1) as u64) as usize
    }
}

/// The lines of a file, some of them cut, with runs of NUL bytes in them, or run together; and how many whole lines were
/// left as they were.
fn torn(bytes: &[u8], chance: &mut Chance) -> (Vec<u8>, u64) {
    let mut out = Vec::with_capacity(bytes.len());
    let mut untouched = 0;
    for line in bytes.split(|byte| *byte == b'\n') {
        let at = chance.below(line.len());
        match chance.below(16) {
            0 | 1 => out.extend_from_slice(&line[..at]),
            2 | 3 => {
                out.extend_from_slice(&line[..at]);
                let length = 1 + chance.below(5_000);
                out.resize(out.len() + length, 0);
                out.extend_from_slice(&line[at..]);
            }
            4 => out.extend_from_slice(&line[at..]),
            // Torn, and the next line behind it without a line's end.
            5 => {
                out.extend_from_slice(&line[..at]);
                continue;
            }
            _ => {
                let whole = serde_json::from_slice::<Value>(line).is_ok_and(|one| one.is_object());
                untouched += u64::from(whole && out.last().is_none_or(|last| *last == b'\n'));
                out.extend_from_slice(line);
            }
        }
        out.push(b'\n');
    }
    (out, untouched)
}

#[test]
#[ignore = "needs the sessions of PITSTOP_TRANSCRIPTS or ../shared/transcripts"]
fn the_shared_sessions_are_read_however_they_are_torn() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("session.jsonl");
    let mut chance = Chance(0x9e37_79b9_7f4a_7c15);
    for (name, bytes) in sessions() {
        for _ in 0..2 {
            let (torn, untouched) = torn(&bytes, &mut chance);
            fs::write(&path, &torn).unwrap();
            let portion = 1 + chance.below(200_000) as u64;
            let read = read_by_all(&path, portion.max(4_096));
            assert!(
                read.records >= untouched,
                "{name}: {} of {untouched}",
                read.records
            );
        }
    }
}
