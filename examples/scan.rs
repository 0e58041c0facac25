//! Prints how fast a transcript is read: the time to the first figure and the rate of a full scan, with all that the
//! handoff tells of it gathered on the way.
//!
//! `cargo run --release --example scan [FILE | MEGABYTES]`; without a file one is generated (200 MB).

#![allow(clippy::disallowed_methods, reason = "it measures real time")]

use std::{
    fs::File,
    io::{BufWriter, Write},
    path::{Path, PathBuf},
    time::Instant,
};

use pitstop::transcript::{digest::Digest, tail::Tail, usage::Usage};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let dir = tempfile::tempdir()?;
    let wanted = std::env::args().nth(1);
    let path = match wanted.as_deref().map(str::parse::<u64>) {
        None => generate(dir.path(), 200)?,
        Some(Ok(megabytes)) => generate(dir.path(), megabytes)?,
        Some(Err(_)) => PathBuf::from(wanted.unwrap_or_default()),
    };

    let start = Instant::now();
    let mut tail = Tail::open(&path)?;
    tail.read_new(1)?;
    let first = start.elapsed();
    println!(
        "first figure {:?} after {:.2} ms",
        tail.latest().map(Usage::context),
        first.as_secs_f64() * 1e3
    );

    let start = Instant::now();
    let mut bytes = 0;
    // All of it is history, as for a session that is resumed.
    let (mut digest, mut history) = (Digest::new(10), std::fs::metadata(&path)?.len());
    loop {
        let report = tail.read_into(16 << 20, &mut digest, &mut history)?;
        bytes += report.bytes;
        if !report.more {
            break;
        }
    }
    let took = start.elapsed().as_secs_f64();
    println!(
        "full scan of {} MB at {:.0} MB/s",
        bytes / 1_000_000,
        bytes as f64 / 1e6 / took
    );
    println!(
        "{} records, {} calls, {:?}",
        tail.scan().records(),
        tail.scan().calls(),
        tail.faults()
    );
    if let Ok(status) = std::fs::read_to_string("/proc/self/status") {
        println!(
            "peak memory {}",
            status
                .lines()
                .find(|line| line.starts_with("VmHWM"))
                .unwrap_or("unknown")
        );
    }
    Ok(())
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
