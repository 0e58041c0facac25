//! A transcript is followed whatever happens to its file.
//!
//! The bad inputs under `tests/fixtures/transcript/` each come with the outcome they must have.

use std::{
    fs::{self, File, OpenOptions},
    io::{Seek, SeekFrom, Write},
    os::unix::fs::symlink,
    path::PathBuf,
};

use pitstop_transcript::{
    Tokens,
    digest::Digest,
    record::{Faults, LINE_CAP},
    tail::{Tail, TailError, find_prompt, read_pieces},
    usage::{Usage, UsageScan},
};
use proptest::prelude::*;
use tempfile::TempDir;

const EVERYTHING: u64 = u64::MAX;

struct Session {
    dir: TempDir,
}

impl Session {
    fn new() -> Self {
        Self {
            dir: tempfile::tempdir().unwrap(),
        }
    }

    fn with(bytes: impl AsRef<[u8]>) -> Self {
        let session = Self::new();
        session.append(bytes);
        session
    }

    fn path(&self) -> PathBuf {
        self.dir.path().join("session.jsonl")
    }

    fn append(&self, bytes: impl AsRef<[u8]>) {
        let mut file = OpenOptions::new()
            .append(true)
            .create(true)
            .open(self.path())
            .unwrap();
        file.write_all(bytes.as_ref()).unwrap();
    }

    fn cut(&self, length: u64) {
        OpenOptions::new()
            .write(true)
            .open(self.path())
            .unwrap()
            .set_len(length)
            .unwrap();
    }

    /// Another file under the same name.
    fn replace(&self, bytes: impl AsRef<[u8]>) {
        let aside = self.dir.path().join("aside");
        fs::write(&aside, bytes).unwrap();
        fs::rename(aside, self.path()).unwrap();
    }

    /// The same file with other contents.
    fn rewrite(&self, bytes: impl AsRef<[u8]>) {
        fs::write(self.path(), bytes).unwrap();
    }

    fn tail(&self) -> Tail {
        Tail::open(self.path()).unwrap()
    }
}

fn call(id: u64) -> String {
    format!(
        "{{\"type\":\"assistant\",\"requestId\":\"req_{id}\",\"message\":{{\"id\":\"msg_{id}\",\"model\":\"claude-opus-4-8\",\"content\":[{{\"type\":\"text\",\"text\":\"answer {id}\"}}],\"usage\":{{\"input_tokens\":1,\"cache_read_input_tokens\":{},\"output_tokens\":10}}}}}}\n",
        id * 1000
    )
}

fn prompt(text: &str) -> String {
    format!(
        "{{\"type\":\"user\",\"uuid\":\"u\",\"message\":{{\"role\":\"user\",\"content\":\"{text}\"}}}}\n"
    )
}

fn tool_result(size: usize) -> String {
    format!(
        "{{\"type\":\"user\",\"message\":{{\"content\":[{{\"type\":\"tool_result\",\"tool_use_id\":\"t\",\"content\":\"{}\"}}]}},\"toolUseResult\":\"x\"}}\n",
        "y\\n".repeat(size / 3)
    )
}

fn context(id: u64) -> Tokens {
    Tokens(id * 1000 + 11)
}

fn used(tail: &Tail) -> Option<Tokens> {
    tail.latest().map(Usage::context)
}

/// What someone who reads the file for the first time makes of it.
fn fresh(session: &Session) -> (UsageScan, Faults) {
    let mut tail = session.tail();
    tail.read_new(EVERYTHING).unwrap();
    (tail.scan().clone(), tail.faults())
}

fn assert_as_fresh(tail: &Tail, session: &Session) {
    assert_eq!((tail.scan().clone(), tail.faults()), fresh(session));
}

#[test]
fn only_what_is_new_is_read() {
    let session = Session::with(prompt("go") + &call(1));
    let mut tail = session.tail();
    let first = tail.read_new(EVERYTHING).unwrap();
    assert_eq!(
        (first.records, first.reset, first.vanished, first.more),
        (2, false, false, false)
    );
    assert_eq!((first.moved, used(&tail)), (true, Some(context(1))));

    let again = tail.read_new(EVERYTHING).unwrap();
    assert_eq!((again.bytes, again.records, again.moved), (0, 0, false));

    session.append(call(2));
    let next = tail.read_new(EVERYTHING).unwrap();
    assert_eq!((next.bytes, next.records), (call(2).len() as u64, 1));
    assert_eq!((next.moved, used(&tail)), (true, Some(context(2))));
    assert_as_fresh(&tail, &session);
}

fn said(text: &str) -> String {
    format!(
        r#"{{"type":"assistant","message":{{"model":"m","content":[{{"type":"text","text":"{text}"}}]}}}}"#
    ) + "\n"
}

#[test]
fn what_stood_there_before_is_history_and_not_read() {
    let session = Session::with(said("old") + &said("older"));
    let mut tail = Tail::open(session.path()).unwrap();
    let mut digest = Digest::new(10);
    let mut history = fs::metadata(session.path()).unwrap().len();
    session.append(said("new"));
    while tail
        .read_into(EVERYTHING, &mut digest, &mut history)
        .unwrap()
        .more
    {}
    assert_eq!(digest.take_said(), ["new"]);
    assert_eq!(tail.scan().records(), 3);
    session.append(said("newer"));
    tail.read_into(EVERYTHING, &mut digest, &mut history)
        .unwrap();
    assert_eq!(digest.take_said(), ["newer"]);
}

#[test]
fn a_file_that_takes_the_place_of_another_is_history_as_far_as_it_goes() {
    let session = Session::with(said("one"));
    let mut tail = Tail::open(session.path()).unwrap();
    let (mut digest, mut history) = (Digest::new(10), 0);
    let mut read = |digest: &mut Digest| {
        while tail
            .read_into(EVERYTHING, digest, &mut history)
            .unwrap()
            .more
        {}
    };
    read(&mut digest);
    assert_eq!(digest.take_said(), ["one"]);
    let other = session.dir.path().join("other");
    fs::write(&other, said("one") + &said("two")).unwrap();
    fs::rename(&other, session.path()).unwrap();
    read(&mut digest);
    assert!(digest.take_said().is_empty(), "nothing is heard twice");
    session.append(said("three"));
    read(&mut digest);
    assert_eq!(digest.take_said(), ["three"]);
}

#[test]
fn a_file_that_is_not_there_yet_is_waited_for() {
    let session = Session::new();
    let mut tail = session.tail();
    let none = tail.read_new(EVERYTHING).unwrap();
    assert_eq!((none.vanished, none.moved), (true, false));
    session.append(call(1));
    let some = tail.read_new(EVERYTHING).unwrap();
    assert!(!some.vanished && !some.reset);
    assert_eq!(used(&tail), Some(context(1)));
}

/// Bytes that this thread has read of any file; none where the system does not say.
fn bytes_read() -> Option<u64> {
    let counters = fs::read_to_string("/proc/thread-self/io").ok()?;
    let line = counters.lines().find(|line| line.starts_with("rchar:"))?;
    line.split_whitespace().nth(1)?.parse().ok()
}

#[test]
#[cfg_attr(
    not(target_os = "linux"),
    ignore = "counts what a thread reads, as only Linux tells"
)]
fn following_reads_what_was_appended_and_little_more() {
    const APPENDS: u64 = 200;
    // What says that it is still the same file, and the counters themselves.
    const OVERHEAD: u64 = 512;
    let session = Session::with(prompt("go"));
    for id in 1..=20 {
        session.append(call(id) + &tool_result(400_000));
    }
    let mut tail = session.tail();
    while tail.read_new(EVERYTHING).unwrap().more {}
    let mut appended = 0;
    let before = bytes_read().expect("counters of this thread");
    for id in 21..21 + APPENDS {
        let lines = call(id) + &tool_result(id as usize * 10);
        session.append(&lines);
        let report = tail.read_new(EVERYTHING).unwrap();
        assert_eq!((report.bytes, report.more), (lines.len() as u64, false));
        appended += report.bytes;
    }
    let read = bytes_read().unwrap() - before;
    assert!(
        (appended..appended + APPENDS * OVERHEAD).contains(&read),
        "{read} bytes were read for {appended} appended"
    );
    assert_as_fresh(&tail, &session);
}

// The eight mutations: after each, the totals are those of a fresh full read.

#[test]
fn mutation_1_a_torn_last_line_waits_for_its_end() {
    let line = call(2);
    for cut in [1, line.len() / 2, line.len() - 1] {
        let session = Session::with(call(1) + &line[..cut]);
        let mut tail = session.tail();
        let report = tail.read_new(EVERYTHING).unwrap();
        assert_eq!(
            (report.records, tail.faults()),
            (1, Faults::default()),
            "cut at {cut}"
        );
        session.append(&line[cut..]);
        tail.read_new(EVERYTHING).unwrap();
        assert_eq!(used(&tail), Some(context(2)));
        assert_as_fresh(&tail, &session);
    }
}

type Mutation = fn(&Session);

#[test]
fn mutations_2_to_6_of_what_was_read_are_noticed_and_read_again() {
    let cases: [(&str, Mutation, Option<u64>); 5] = [
        (
            "cut in mid-line",
            |session| session.cut(call(1).len() as u64 + 30),
            Some(1),
        ),
        ("cut to nothing", |session| session.cut(0), None),
        (
            "another file under the name",
            |session| session.replace(call(7) + &call(8) + &call(9)),
            Some(9),
        ),
        (
            "shrunk and grown past the offset",
            |session| {
                session.cut(call(1).len() as u64);
                session.append(call(3) + &call(4) + &call(5));
            },
            Some(5),
        ),
        (
            "copied and truncated in place",
            |session| session.rewrite(call(5) + &call(6) + &call(7)),
            Some(7),
        ),
    ];
    for (name, change, last) in cases {
        let session = Session::with(call(1) + &call(2));
        let mut tail = session.tail();
        tail.read_new(EVERYTHING).unwrap();
        change(&session);
        let report = tail.read_new(EVERYTHING).unwrap();
        assert!(report.reset && report.moved, "{name}: {report:?}");
        assert_eq!(used(&tail), last.map(context), "{name}");
        assert_as_fresh(&tail, &session);
        // The client goes on, behind a torn record on its line.
        session.append(call(3));
        assert!(!tail.read_new(EVERYTHING).unwrap().reset, "{name}");
        assert_as_fresh(&tail, &session);
    }
}

#[test]
fn mutation_7_gone_and_back_is_told_and_survived() {
    let session = Session::with(call(1));
    let mut tail = session.tail();
    tail.read_new(EVERYTHING).unwrap();
    let elsewhere = session.dir.path().join("elsewhere");
    fs::rename(session.path(), &elsewhere).unwrap();
    let gone = tail.read_new(EVERYTHING).unwrap();
    assert_eq!((gone.vanished, gone.moved), (true, true));
    assert!(!tail.read_new(EVERYTHING).unwrap().moved);
    fs::rename(&elsewhere, session.path()).unwrap();
    session.append(call(2));
    let back = tail.read_new(EVERYTHING).unwrap();
    assert!(!back.reset && back.moved);
    assert_eq!(used(&tail), Some(context(2)));
    assert_as_fresh(&tail, &session);
}

#[test]
fn mutation_8_nul_runs_joined_records_and_bad_bytes_are_passed() {
    let session = Session::with(call(1));
    let mut tail = session.tail();
    tail.read_new(EVERYTHING).unwrap();
    session.append([0; 5000]);
    session.append(call(2));
    session.append(prompt("a").trim_end());
    session.append(call(3));
    session.append(b"\xff\xfe\x80 not json\n");
    session.append(b"{\"type\":\"user\",\"message\":{\"content\":\"bad \xff text\"}}\r\n");
    session.append(call(4));
    let report = tail.read_new(EVERYTHING).unwrap();
    assert!(!report.reset);
    assert_eq!(
        tail.faults(),
        Faults {
            broken: 1,
            joined: 1,
            nul_runs: 1,
            oversized: 0
        }
    );
    assert_eq!((tail.scan().calls(), tail.scan().turns()), (4, 2));
    assert_as_fresh(&tail, &session);
}

#[test]
fn the_last_figure_of_a_large_file_is_there_at_once() {
    let session = Session::with(prompt("go"));
    for id in 1..=40 {
        session.append(call(id) + &tool_result(400_000));
    }
    session.append("{\"type\":\"assistant\",\"message\":{\"to");
    let mut tail = session.tail();
    let first = tail.read_new(1).unwrap();
    assert_eq!((first.moved, used(&tail)), (true, Some(context(40))));
    assert!(first.more && !tail.caught_up());
    session.append("rn\":1}}\n".to_owned() + &call(41));
    let mut rounds = 0;
    loop {
        let report = tail.read_new(1 << 20).unwrap();
        rounds += 1;
        assert!(
            matches!(used(&tail), Some(found) if found == context(41)),
            "round {rounds}"
        );
        if !report.more {
            break;
        }
    }
    assert!(rounds > 10);
    assert_as_fresh(&tail, &session);
}

#[test]
fn a_compaction_at_the_end_of_a_large_file_leaves_no_figure() {
    let session = Session::with(call(1) + &tool_result(6_000_000));
    session.append(
        "{\"type\":\"system\",\"subtype\":\"compact_boundary\"}\n".to_owned() + &prompt("x"),
    );
    let mut tail = session.tail();
    let report = tail.read_new(1).unwrap();
    assert_eq!((report.moved, used(&tail)), (false, None));
    tail.read_new(EVERYTHING).unwrap();
    assert_eq!((used(&tail), tail.scan().compactions()), (None, 1));
}

/// The most memory this process ever held, in kilobytes; none where the system does not say.
fn peak_memory() -> Option<u64> {
    let status = fs::read_to_string("/proc/self/status").ok()?;
    status
        .lines()
        .find_map(|line| line.strip_prefix("VmHWM:"))?
        .split_whitespace()
        .next()?
        .parse()
        .ok()
}

/// Set in the process that measures, in which no other test runs beside.
const ALONE: &str = "PITSTOP_TEST_ALONE";

#[test]
fn a_line_of_50_mb_costs_its_own_size_in_memory_and_no_more() {
    if std::env::var_os(ALONE).is_none() {
        let name = "transcript::a_line_of_50_mb_costs_its_own_size_in_memory_and_no_more";
        let alone = std::process::Command::new(std::env::current_exe().unwrap())
            .args(["--exact", name])
            .env(ALONE, "1")
            .output()
            .unwrap();
        assert!(
            alone.status.success(),
            "{}",
            String::from_utf8_lossy(&alone.stdout)
        );
        return;
    }
    let session = Session::with(call(1));
    session.append(
        "{\"type\":\"user\",\"message\":{\"content\":[{\"type\":\"tool_result\",\"content\":\"",
    );
    let megabyte = vec![b'z'; 1 << 20];
    for _ in 0..50 {
        session.append(&megabyte);
    }
    session.append("\"}]}}\n".to_owned() + &call(2));
    let before = peak_memory();
    let mut tail = session.tail();
    assert!(tail.read_new(1).unwrap().moved);
    assert_eq!(used(&tail), Some(context(2)));
    while tail.read_new(1 << 24).unwrap().more {}
    assert_eq!(
        (tail.scan().records(), tail.faults()),
        (3, Faults::default())
    );
    if let (Some(before), Some(after)) = (before, peak_memory()) {
        assert!(
            after - before < 70 * 1024,
            "{} MB for a line of 50 MB",
            (after - before) / 1024
        );
    }
}

#[test]
fn a_line_over_the_cap_is_streamed_past_and_counted() {
    let session = Session::with(call(1));
    let mut file = OpenOptions::new()
        .append(true)
        .open(session.path())
        .unwrap();
    file.write_all(b"{\"type\":\"user\",\"x\":\"").unwrap();
    let megabyte = vec![b'z'; 1 << 20];
    for _ in 0..=(LINE_CAP >> 20) {
        file.write_all(&megabyte).unwrap();
    }
    file.write_all(("\"}\n".to_owned() + &call(2)).as_bytes())
        .unwrap();
    let mut tail = session.tail();
    tail.read_new(EVERYTHING).unwrap();
    assert_eq!(
        (used(&tail), tail.faults().oversized),
        (Some(context(2)), 1)
    );
}

#[test]
fn a_hole_of_gigabytes_is_passed() {
    let session = Session::with(call(1));
    let mut file = OpenOptions::new().write(true).open(session.path()).unwrap();
    file.seek(SeekFrom::Start(1 << 30)).unwrap();
    file.write_all(call(2).as_bytes()).unwrap();
    let mut tail = session.tail();
    assert!(tail.read_new(1).unwrap().moved);
    assert_eq!(used(&tail), Some(context(2)));
    tail.read_new(EVERYTHING).unwrap();
    assert_eq!((tail.scan().calls(), tail.faults().nul_runs), (2, 1));
}

#[test]
fn links_directories_and_pipes_are_refused() {
    let session = Session::with(call(1));
    let link = session.dir.path().join("link.jsonl");
    symlink(session.path(), &link).unwrap();
    let pipe = session.dir.path().join("pipe.jsonl");
    assert!(
        std::process::Command::new("mkfifo")
            .arg(&pipe)
            .status()
            .unwrap()
            .success()
    );
    for path in [&link, &pipe, &session.dir.path().to_owned()] {
        assert!(
            matches!(Tail::open(path), Err(TailError::Refused { .. })),
            "{}",
            path.display()
        );
    }
}

#[test]
fn a_transcript_that_turns_into_a_link_is_refused_and_comes_back() {
    let session = Session::with(call(1));
    let mut tail = session.tail();
    tail.read_new(EVERYTHING).unwrap();
    let target = session.dir.path().join("target");
    fs::rename(session.path(), &target).unwrap();
    symlink(&target, session.path()).unwrap();
    assert!(matches!(
        tail.read_new(EVERYTHING),
        Err(TailError::Refused { .. })
    ));
    fs::remove_file(session.path()).unwrap();
    fs::rename(&target, session.path()).unwrap();
    session.append(call(2));
    tail.read_new(EVERYTHING).unwrap();
    assert_as_fresh(&tail, &session);
}

#[test]
fn a_handoff_is_found_in_a_prompt_and_nowhere_else() {
    let marker = "pitstop handoff · run-7 · 3 · 9f8e7d6c5b";
    let prompt_with = |text: &str| prompt(&format!("{text} {marker} more"));
    let escaped = prompt_with("x").replace('·', "\\u00b7");
    let cases = [
        (prompt_with("x"), true),
        (escaped, true),
        (prompt_with("x").trim_end().to_owned(), true),
        (call(1) + &prompt_with("x") + &call(2), true),
        (prompt("nothing"), false),
        (call(1).replace("answer", marker), false),
        (tool_result(10).replace("y\\n", marker), false),
        (
            prompt_with("x").replace(
                "\"type\":\"user\"",
                "\"isSidechain\":true,\"type\":\"user\"",
            ),
            false,
        ),
        (
            prompt_with("x").replace("\"type\":\"user\"", "\"type\":\"queue-operation\""),
            false,
        ),
        (String::new(), false),
    ];
    for (text, expected) in cases {
        let session = Session::with(&text);
        assert_eq!(
            find_prompt(session.path(), marker).unwrap(),
            expected,
            "{text}"
        );
    }
    assert!(!find_prompt(Session::new().path(), marker).unwrap());
    // What was not written yet is nowhere.
    let session = Session::with(prompt_with("x"));
    assert!(!find_prompt(session.path(), "").unwrap());
}

/// Every fixture is fed whole, byte by byte, and in pieces, and must give what stands in its `.expected` file.
#[test]
fn the_fixtures_give_what_is_written_beside_them() {
    let fixtures = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/fixtures/transcript");
    let mut count = 0;
    for entry in fs::read_dir(fixtures).unwrap() {
        let path = entry.unwrap().path();
        if path
            .extension()
            .is_none_or(|extension| extension != "jsonl")
        {
            continue;
        }
        count += 1;
        let expected = fs::read_to_string(path.with_extension("expected")).unwrap();
        let bytes = fs::read(&path).unwrap();
        for step in [bytes.len().max(1), 1, 7] {
            let session = Session::new();
            File::create(session.path()).unwrap();
            let mut tail = session.tail();
            for piece in bytes.chunks(step) {
                session.append(piece);
                tail.read_new(EVERYTHING).unwrap();
            }
            let (scan, faults) = (tail.scan(), tail.faults());
            let found = format!(
                "records {}\nturns {}\ncalls {}\ncompactions {}\nused {}\noutput {}\nbroken {}\njoined {}\nnul {}\n",
                scan.records(),
                scan.turns(),
                scan.calls(),
                scan.compactions(),
                scan.last().map_or(0, |usage| usage.context().0),
                scan.totals().output.0,
                faults.broken,
                faults.joined,
                faults.nul_runs,
            );
            assert_eq!(found, expected, "{} in steps of {step}", path.display());
        }
    }
    assert!(count >= 20, "only {count} fixtures");
}

#[derive(Clone, Debug)]
enum Change {
    Append(Vec<u8>),
    Cut(prop::sample::Index),
    Replace(Vec<u8>),
    Remove,
    Read(u64),
}

fn line() -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![
        6 => (1u64..60).prop_map(|id| call(id).into_bytes()),
        2 => "[a-z]{0,9}".prop_map(|text| prompt(&text).into_bytes()),
        1 => Just(tool_result(3000).into_bytes()),
        1 => Just(b"{\"type\":\"system\",\"subtype\":\"compact_boundary\"}\n".to_vec()),
        1 => Just(vec![0; 70]),
        1 => proptest::collection::vec(any::<u8>(), 0..90),
        1 => (1u64..60, any::<prop::sample::Index>()).prop_map(|(id, at)| {
            let mut line = call(id).into_bytes();
            line.truncate(at.index(line.len()));
            line
        }),
    ]
}

fn change() -> impl Strategy<Value = Change> {
    prop_oneof![
        5 => proptest::collection::vec(line(), 1..5).prop_map(|lines| Change::Append(lines.concat())),
        1 => any::<prop::sample::Index>().prop_map(Change::Cut),
        1 => proptest::collection::vec(line(), 0..5).prop_map(|lines| Change::Replace(lines.concat())),
        1 => Just(Change::Remove),
        5 => prop_oneof![Just(EVERYTHING), 1u64..400].prop_map(Change::Read),
    ]
}

/// Whether what was read has changed in a way that the contract of the tail does not notice: neither in its first nor
/// in its last 64 bytes. Repetitive test data can do that by chance; records with their ids and times cannot.
fn changed_unseen(seen: &[u8], now: &[u8]) -> bool {
    let length = seen.len();
    let (head, before) = (length.min(64), length.saturating_sub(64));
    now.len() >= length
        && now[..length] != *seen
        && now[..head] == seen[..head]
        && now[before..length] == seen[before..]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 128, ..ProptestConfig::default() })]

    #[test]
    fn any_history_of_the_file_gives_what_a_fresh_read_gives(changes in proptest::collection::vec(change(), 1..30)) {
        let session = Session::new();
        let mut tail = session.tail();
        let mut seen = Vec::new();
        for change in changes.into_iter().chain([Change::Read(EVERYTHING), Change::Read(EVERYTHING)]) {
            match change {
                Change::Append(bytes) => session.append(bytes),
                Change::Cut(at) => {
                    if let Ok(metadata) = fs::metadata(session.path()) {
                        session.cut(at.index(metadata.len() as usize + 1) as u64);
                    }
                }
                Change::Replace(bytes) => session.replace(bytes),
                Change::Remove => drop(fs::remove_file(session.path())),
                Change::Read(budget) => {
                    let now = fs::read(session.path()).unwrap_or_default();
                    if changed_unseen(&seen, &now) {
                        return Ok(());
                    }
                    let report = tail.read_new(budget).unwrap();
                    let from = if report.reset || report.vanished { 0 } else { seen.len() };
                    if !report.vanished {
                        seen = now[..from + report.bytes as usize].to_vec();
                    }
                }
            }
        }
        if session.path().exists() {
            prop_assert_eq!((tail.scan().clone(), tail.faults()), fresh(&session));
        }
    }
}

#[test]
fn a_transcript_is_read_in_pieces_and_of_a_long_one_its_two_ends() {
    let file = Session::with("0123456789");
    let read = |start, end, most| {
        let mut got = Vec::new();
        let mut pieces = 0;
        read_pieces(file.path(), start, end, |piece| {
            got.extend_from_slice(piece);
            pieces += 1;
            pieces < most
        })
        .unwrap();
        String::from_utf8(got).unwrap()
    };
    assert_eq!(read(5, 5, 9), "0123456789");
    assert_eq!(read(2, 3, 9), "01\n789");
    assert_eq!(read(0, 1, 9), "\n9");
    assert_eq!(read(2, 3, 1), "01", "the reader that has enough says so");
    let nowhere = file.path().with_extension("none");
    read_pieces(nowhere, 5, 5, |_| {
        panic!("a file that is not there is empty")
    })
    .unwrap();
    let link = file.path().with_extension("link");
    symlink(file.path(), &link).unwrap();
    assert!(read_pieces(link, 5, 5, |_| true).is_err());
}
