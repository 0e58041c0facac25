//! Broken and hostile inputs, each with the outcome it must have.
//!
//! `tests/fixtures/hostile/*.jsonl` hold one input a line: `name`; `input`, a list of texts, `{"bytes": hex}` for what
//! is no text and `{"repeat": text, "times": n}` for what is long; and `expect`, the outcome in words. The whole
//! transcripts under `tests/fixtures/transcript/` are run through the same readers.

use std::{
    fmt::Write as _,
    fs::{self, File},
    io::Write as _,
    path::Path,
    time::{Duration, Instant},
};

use pitstop_handoff::signal::{self, Signal};
use pitstop_transcript::{
    SessionId, Tokens,
    commands::{Chunk, CommandReader, Direction},
    tail::Tail,
    trim::{Survey, TrimSettings},
    usage::{Usage, UsageScan},
};
use serde_json::Value;

/// How much of a long text stands in an outcome, in characters.
const SHOWN: usize = 60;

/// No input of a few megabytes may take longer, in a debug build on a crowded machine.
const LIMIT: Duration = Duration::from_secs(60);

pub struct Case {
    name: String,
    input: Vec<u8>,
    expect: Vec<String>,
}

pub fn cases(file: &str) -> Vec<Case> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/hostile");
    let text = fs::read_to_string(path.join(file)).unwrap();
    text.lines().map(case).collect()
}

fn case(line: &str) -> Case {
    let value: Value = serde_json::from_str(line).unwrap();
    let mut input = Vec::new();
    for part in value["input"].as_array().unwrap() {
        match part {
            Value::String(text) => input.extend_from_slice(text.as_bytes()),
            part if part["bytes"].is_string() => input.extend(hex(part["bytes"].as_str().unwrap())),
            part => {
                let times = usize::try_from(part["times"].as_u64().unwrap()).unwrap();
                input.extend(part["repeat"].as_str().unwrap().repeat(times).into_bytes());
            }
        }
    }
    let expect = value["expect"].as_array().into_iter().flatten();
    Case {
        name: value["name"].as_str().unwrap().to_owned(),
        input,
        expect: expect.map(|one| one.as_str().unwrap().to_owned()).collect(),
    }
}

fn hex(digits: &str) -> Vec<u8> {
    let pairs = digits.as_bytes().chunks(2);
    pairs
        .map(|pair| u8::from_str_radix(std::str::from_utf8(pair).unwrap(), 16).unwrap())
        .collect()
}

/// A text as an outcome shows it.
fn shown(text: &str) -> String {
    let escaped = text.escape_debug().to_string();
    if escaped.chars().count() <= SHOWN {
        return escaped;
    }
    let start: String = escaped.chars().take(SHOWN).collect();
    format!("{start}… ({} bytes)", text.len())
}

fn settings() -> TrimSettings {
    TrimSettings {
        compact_line: Tokens(153_000),
        max_recent_messages: 0,
    }
}

/// What the gauge, the handoff and the trim make of a transcript.
pub fn transcript(bytes: &[u8]) -> Vec<String> {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("session.jsonl");
    fs::write(&path, bytes).unwrap();
    let mut tail = Tail::open(&path).unwrap();
    while tail.read_new(1 << 20).unwrap().more {}
    let mut outcome = vec![reported(tail.scan(), &tail)];
    in_pieces_it_is_the_same(bytes, &tail);
    outcome.extend(commands(bytes));
    outcome.push(trimmed(bytes));
    outcome
}

fn reported(scan: &UsageScan, tail: &Tail) -> String {
    let faults = tail.faults();
    let used = tail.latest().map(Usage::context);
    let mut text = used.map_or("no figure".to_owned(), |used| format!("{} tokens", used.0));
    for (count, word) in [
        (scan.records(), "records"),
        (scan.turns(), "turns"),
        (scan.calls(), "calls"),
        (scan.compactions(), "compactions"),
        (scan.totals().output.0, "tokens of output"),
        (faults.broken, "broken"),
        (faults.joined, "joined"),
        (faults.nul_runs, "runs of NULs"),
        (faults.oversized, "oversized"),
    ] {
        if count > 0 {
            write!(text, ", {count} {word}").unwrap();
        }
    }
    text
}

/// However the bytes arrive, they mean the same.
fn in_pieces_it_is_the_same(bytes: &[u8], whole: &Tail) {
    // Byte by byte costs a system call each; a prime tears every line somewhere else.
    let step = if bytes.len() < 1_500 {
        1
    } else {
        bytes.len() / 23 + 7
    };
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("session.jsonl");
    let mut file = File::create(&path).unwrap();
    let mut tail = Tail::open(&path).unwrap();
    for piece in bytes.chunks(step) {
        file.write_all(piece).unwrap();
        tail.read_new(u64::MAX).unwrap();
    }
    if !bytes.is_empty() {
        assert_eq!((tail.scan(), tail.faults()), (whole.scan(), whole.faults()));
    }
}

fn commands(bytes: &[u8]) -> Vec<String> {
    let mut reader = CommandReader::new(3);
    for piece in bytes.chunks(4_093) {
        reader.push(piece);
    }
    let log = reader.finish();
    let records = log.records();
    let lines = records.iter().map(|record| {
        let output: Vec<u8> = log
            .read(record)
            .iter()
            .flat_map(|chunk| match chunk {
                Chunk::Bytes(Direction::Output, bytes) => bytes.clone(),
                Chunk::Bytes(Direction::Input, _) => Vec::new(),
                Chunk::Gap { lines } => format!("[gap of {lines} lines]").into_bytes(),
            })
            .collect();
        let command = record.command.as_deref().unwrap_or("(unknown)");
        format!(
            "$ {} → {}",
            shown(command),
            shown(&String::from_utf8_lossy(&output))
        )
    });
    lines.collect()
}

/// All responses are removed, and what is left reads as before.
fn trimmed(bytes: &[u8]) -> String {
    let session = SessionId::new(uuid::Uuid::from_u128(7));
    let survey = match Survey::read(bytes) {
        Ok(survey) => survey,
        Err(error) => return format!("no trim: {error}"),
    };
    let plan = survey.plan(&settings());
    assert_eq!(plan.levels.len(), 5);
    assert!(plan.levels.is_sorted_by_key(|level| level.responses));
    let mut copy = Vec::new();
    match survey.write(bytes, 100, session, &settings(), &mut copy) {
        Err(error) => format!("no trim: {error}"),
        Ok(trimmed) => {
            let again = Survey::read(&copy[..]).expect("a copy that can be read");
            let left = again.plan(&settings()).levels[4];
            assert!(left.tokens_after <= left.tokens_before);
            let figure = trimmed.figure;
            assert!(figure.tokens_after <= figure.tokens_before);
            format!("trim: {} responses", figure.responses)
        }
    }
}

fn signals(message: &str) -> Vec<String> {
    let found = signal::parse_signals(message);
    let count = found.len();
    let words = found.into_iter().map(|signal| match signal {
        Signal::Scratchpad(text) => format!("scratchpad: {}", shown(&text)),
        Signal::Objective(text) => format!("objective: {}", shown(&text)),
        Signal::Decision { text, why } => format!("decision: {} | {}", shown(&text), shown(&why)),
        Signal::Constraint(text) => format!("constraint: {}", shown(&text)),
        Signal::Rejected { what, why } => format!("rejected: {} | {}", shown(&what), shown(&why)),
        Signal::Issue { severity, text } => format!("issue {}: {}", severity.word(), shown(&text)),
        Signal::Resolved(text) => format!("resolved: {}", shown(&text)),
        Signal::Done(text) => format!("done: {}", shown(&text)),
        Signal::Todo(text) => format!("to do: {}", shown(&text)),
        Signal::State { key, value } => format!("state {} = {}", shown(&key), shown(&value)),
    });
    let mut reported: Vec<String> = words.take(6).collect();
    if count > reported.len() {
        reported.push(format!("{count} signals in all"));
    }
    reported
}

/// Runs every case and shows all that differ together.
#[track_caller]
fn each_gives_what_is_stated(file: &str, least: usize, outcome: impl Fn(&[u8]) -> Vec<String>) {
    let cases = cases(file);
    assert!(cases.len() >= least, "{} cases", cases.len());
    let mut wrong = String::new();
    for case in &cases {
        let began = Instant::now();
        let found = outcome(&case.input);
        assert!(
            began.elapsed() < LIMIT,
            "{}: {:?}",
            case.name,
            began.elapsed()
        );
        if found != case.expect {
            let (name, expect) = (&case.name, &case.expect);
            writeln!(wrong, "{name}\n  stated {expect:?}\n  found  {found:?}").unwrap();
        }
    }
    assert!(wrong.is_empty(), "{file}:\n{wrong}");
    let mut names: Vec<_> = cases.iter().map(|case| &case.name).collect();
    names.sort();
    assert!(names.is_sorted_by(|one, next| one < next), "a name twice");
}

#[test]
fn broken_transcripts_give_what_is_stated() {
    each_gives_what_is_stated("transcripts.jsonl", 150, transcript);
}

#[test]
fn broken_signals_give_what_is_stated() {
    each_gives_what_is_stated("signals.jsonl", 100, |input| {
        signals(std::str::from_utf8(input).expect("messages are text"))
    });
}

#[test]
fn the_whole_transcripts_go_through_every_reader() {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/transcript");
    let mut count = 0;
    for entry in fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_some_and(|ending| ending == "jsonl") {
            transcript(&fs::read(path).unwrap());
            count += 1;
        }
    }
    assert!(count >= 40, "{count} transcripts");
}
