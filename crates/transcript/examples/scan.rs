//! Prints what it costs to read a transcript: the time to the first figure, the rate of a full scan with all that the
//! handoff has of it gathered on the way, what following it costs as it grows, and the most memory that was held.
//!
//! `cargo run --release --example scan [FILE | MEGABYTES]`; without a file one is generated (200 MB). A file of the
//! caller's is copied before it is appended to.

#![allow(clippy::disallowed_methods, reason = "it measures real time")]

use std::{
    fs::{self, File, OpenOptions},
    io::{BufWriter, Write},
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

use pitstop_transcript::{digest::Digest, tail::Tail, usage::Usage};

/// Full scans, of which the fastest is reported: the first warms the system's cache.
const SCANS: usize = 5;

/// How often the file grows while it is followed.
const APPENDS: usize = 1_000;

/// How much a full scan reads before it lets its caller do something else, in bytes, as the supervisor does.
const PORTION: u64 = 4 << 20;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let dir = tempfile::tempdir()?;
    let wanted = std::env::args().nth(1);
    let path = match wanted.as_deref().map(str::parse::<u64>) {
        None => generate(dir.path(), 200)?,
        Some(Ok(megabytes)) => generate(dir.path(), megabytes)?,
        Some(Err(_)) => {
            let copy = dir.path().join("copy.jsonl");
            fs::copy(wanted.unwrap_or_default(), &copy)?;
            copy
        }
    };
    println!("peak memory before {}", peak_memory());

    let mut first = Duration::MAX;
    let mut rate: f64 = 0.0;
    let mut followed = None;
    for _ in 0..SCANS {
        let start = Instant::now();
        let mut tail = Tail::open(&path)?;
        tail.read_new(1)?;
        let took = start.elapsed();
        if first == Duration::MAX {
            let figure = tail.latest().map(Usage::context);
            println!("first figure {figure:?}, the first time after {}", ms(took));
        }
        first = first.min(took);

        let start = Instant::now();
        let mut bytes = 0;
        // All of it is history, as for a session that is resumed.
        let (mut digest, mut history) = (Digest::new(10), fs::metadata(&path)?.len());
        loop {
            let report = tail.read_into(PORTION, &mut digest, &mut history)?;
            bytes += report.bytes;
            if !report.more {
                break;
            }
        }
        rate = rate.max(bytes as f64 / 1e6 / start.elapsed().as_secs_f64());
        followed = Some((tail, bytes));
    }
    let (mut tail, bytes) = followed.ok_or("no scan")?;
    println!("first figure warm after {}", ms(first));
    println!(
        "full scan of {} MB at {rate:.0} MB/s, the fastest of {SCANS}",
        bytes / 1_000_000
    );
    println!(
        "{} records, {} calls, {:?}",
        tail.scan().records(),
        tail.scan().calls(),
        tail.faults()
    );
    follow(&mut tail, &path)?;
    println!("peak memory {}", peak_memory());
    Ok(())
}

/// Appends turn after turn and reads each.
fn follow(tail: &mut Tail, path: &Path) -> Result<(), Box<dyn std::error::Error>> {
    let mut file = OpenOptions::new().append(true).open(path)?;
    let (mut appended, mut reported, mut times) = (0_u64, 0, Vec::new());
    let before = bytes_read();
    for turn in 0..APPENDS {
        let line = format!(
            "{{\"type\":\"assistant\",\"requestId\":\"f{turn}\",\"message\":{{\"id\":\"f{turn}\",\"model\":\"m\",\"content\":[{{\"type\":\"text\",\"text\":\"{}\"}}],\"usage\":{{\"input_tokens\":{turn}}}}}}}\n",
            "word ".repeat(turn % 400)
        );
        file.write_all(line.as_bytes())?;
        appended += line.len() as u64;
        let start = Instant::now();
        reported += tail.read_new(u64::MAX)?.bytes;
        times.push(start.elapsed());
    }
    times.sort_unstable();
    let read = bytes_read()
        .zip(before)
        .map(|(after, before)| after - before);
    println!(
        "following {APPENDS} appends of {appended} bytes in all: {reported} bytes taken in, {} read of files; {} in the median, {} at p99",
        read.map_or_else(|| "unknown".to_owned(), |read| read.to_string()),
        ms(times[APPENDS / 2]),
        ms(times[APPENDS * 99 / 100])
    );
    Ok(())
}

fn ms(time: Duration) -> String {
    format!("{:.3} ms", time.as_secs_f64() * 1e3)
}

/// Bytes that this thread has read of files, where the system reports them.
fn bytes_read() -> Option<u64> {
    let counters = fs::read_to_string("/proc/thread-self/io").ok()?;
    let line = counters.lines().find(|line| line.starts_with("rchar:"))?;
    line.split_whitespace().nth(1)?.parse().ok()
}

/// The most memory that the process has held, where the system reports them.
fn peak_memory() -> String {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    line.unwrap_or("unknown").trim().to_owned()
}

/// Writes a transcript of the usual mix: short records, and tool results of 200 bytes to 60 kB with code in them.
fn generate(dir: &Path, megabytes: u64) -> std::io::Result<PathBuf> {
    let path = dir.join("generated.jsonl");
    let mut file = BufWriter::new(File::create(&path)?);
    let code = r#"    let value = map.get(\"key\").copied().unwrap_or_default();\n    println!(\"{value}\");\n"#;
    let mut written = 0;
    let mut turn = 0_u64;
    while written < megabytes * 1_000_000 {
        turn += 1;
        let head = format!(
            r#"{{"parentUuid":"p{turn}","isSidechain":false,"userType":"external","cwd":"/project","sessionId":"s","version":"2.1.197","gitBranch":"main""#
        );
        let usage = format!(
            r#""usage":{{"input_tokens":3,"cache_creation_input_tokens":400,"cache_read_input_tokens":{},"output_tokens":120,"service_tier":"standard"}}"#,
            20_000 + turn * 7 % 150_000
        );
        let output = code.repeat(2 + (turn * 37 % 700) as usize);
        let lines = format!(
            "{head},\"type\":\"assistant\",\"uuid\":\"a{turn}\",\"requestId\":\"r{turn}\",\"message\":{{\"id\":\"m{turn}\",\"type\":\"message\",\"role\":\"assistant\",\"model\":\"claude-opus-4-8\",\"content\":[{{\"type\":\"text\",\"text\":\"Next I look at the file.\"}}],{usage}}}}}\n\
             {head},\"type\":\"assistant\",\"uuid\":\"b{turn}\",\"requestId\":\"r{turn}\",\"message\":{{\"id\":\"m{turn}\",\"type\":\"message\",\"role\":\"assistant\",\"model\":\"claude-opus-4-8\",\"content\":[{{\"type\":\"tool_use\",\"id\":\"t{turn}\",\"name\":\"Write\",\"input\":{{\"file_path\":\"src/x.rs\",\"content\":\"{}\"}}}}],{usage}}}}}\n\
             {head},\"type\":\"user\",\"uuid\":\"c{turn}\",\"message\":{{\"role\":\"user\",\"content\":[{{\"type\":\"tool_result\",\"tool_use_id\":\"t{turn}\",\"content\":\"{output}\"}}]}},\"toolUseResult\":{{\"stdout\":\"{output}\",\"stderr\":\"\"}}}}\n",
            code.repeat(20),
        );
        file.write_all(lines.as_bytes())?;
        written += lines.len() as u64;
    }
    file.flush()?;
    Ok(path)
}
