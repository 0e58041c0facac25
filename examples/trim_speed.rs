//! Prints how fast a transcript is trimmed, as `pitstop trim` and the reboot do it, and the peak of memory. Processor
//! time is reported beside the time on the clock (Linux), which on a busy machine says little.
//!
//! `cargo run --release --example trim_speed [MEGABYTES [RESPONSE]]`; 386 MB with tool responses of about 12 000
//! bytes are generated unless told otherwise.

#![allow(clippy::disallowed_methods, reason = "it measures real time")]

use std::{
    fs::{self, File},
    io::{BufWriter, Write},
    path::{Path, PathBuf},
    time::Instant,
};

use pitstop::runtime::trim::Surveyed;
use pitstop_transcript::{SessionId, Tokens, trim::TrimSettings};
use uuid::Uuid;

const SETTINGS: TrimSettings = TrimSettings {
    compact_line: Tokens(153_000),
    max_recent_messages: 10,
};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut wanted = std::env::args().skip(1).map(|text| text.parse::<u64>());
    let megabytes = wanted.next().transpose()?.unwrap_or(386);
    let response = wanted.next().transpose()?.unwrap_or(12_000);
    let dir = tempfile::tempdir()?;
    let path = generate(dir.path(), megabytes, response)?;
    let bytes = fs::metadata(&path)?.len();
    println!("before: {}", peak());

    let start = (Instant::now(), processor());
    let read = Surveyed::read(&path)?;
    let plan = read.survey.plan(&SETTINGS);
    reported("survey and plan", bytes, start);
    println!("{} responses; {}", plan.responses(), peak());

    let start = (Instant::now(), processor());
    let session = SessionId::new(Uuid::new_v4());
    let copied = read.copy(50, session, &SETTINGS)?;
    reported("copy at 50 %, synced and checked", bytes, start);
    let left = fs::metadata(&copied.path)?.len();
    println!("{} MB left; {}", left / 1_000_000, peak());
    Ok(())
}

fn reported(what: &str, bytes: u64, (start, before): (Instant, f64)) {
    let seconds = start.elapsed().as_secs_f64();
    let used = processor() - before;
    let rate = |seconds: f64| bytes as f64 / 1e6 / seconds;
    println!(
        "{what}: {seconds:.2} s, {:.0} MB/s; {used:.2} s of a processor, {:.0} MB/s",
        rate(seconds),
        rate(used)
    );
}

/// The processor time used so far, in seconds: Linux counts it in hundredths.
fn processor() -> f64 {
    let stat = fs::read_to_string("/proc/self/stat").unwrap_or_default();
    let fields = stat.rsplit_once(')').map_or("", |(_, fields)| fields);
    let times = fields.split_whitespace().skip(11).take(2);
    times
        .filter_map(|time| time.parse::<f64>().ok())
        .sum::<f64>()
        / 100.0
}

fn peak() -> String {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = |name: &str| {
        let found = status.lines().find(|line| line.starts_with(name));
        found.map(|line| {
            line.split_whitespace()
                .skip(1)
                .collect::<Vec<_>>()
                .join(" ")
        })
    };
    format!("peak memory {}", line("VmHWM").unwrap_or_default())
}

/// Writes a session of prompts, calls and responses of about so many bytes, each with the client's copy beside it.
fn generate(dir: &Path, megabytes: u64, response: u64) -> std::io::Result<PathBuf> {
    let path = dir.join("generated.jsonl");
    let mut file = BufWriter::new(File::create(&path)?);
    let code = r#"    let value = map.get(\"key\").copied().unwrap_or_default();\n    println!(\"{value}\");\n"#;
    let (mut written, mut turn) = (0, 0_u64);
    let mut parent = "null".to_owned();
    while written < megabytes * 1_000_000 {
        turn += 1;
        let mut record = |kind: &str, message: &str, more: &str| {
            let uuid = format!("\"{}\"", Uuid::new_v4());
            let line = format!(
                "{{\"parentUuid\":{parent},\"isSidechain\":false,\"userType\":\"external\",\"cwd\":\"/project\",\"sessionId\":\"8f14e45f-ceea-467f-a8b5-2a8b9d3c1e70\",\"version\":\"2.1.197\",\"gitBranch\":\"main\",\"type\":\"{kind}\",\"uuid\":{uuid},\"message\":{message}{more}}}\n"
            );
            parent = uuid;
            line
        };
        // The sizes differ, as those of real responses do.
        let size = response / 4 + turn * 37 % (response * 3 / 2).max(1);
        let output = code.repeat((size / code.len() as u64) as usize + 1);
        let usage = format!(
            "\"usage\":{{\"input_tokens\":3,\"cache_creation_input_tokens\":400,\"cache_read_input_tokens\":{},\"output_tokens\":120}}",
            20_000 + turn % 140_000
        );
        let call = format!(
            "{{\"id\":\"m{turn}\",\"role\":\"assistant\",\"model\":\"claude-opus-4-8\",\"content\":[{{\"type\":\"tool_use\",\"id\":\"t{turn}\",\"name\":\"Bash\",\"input\":{{\"command\":\"cat src/x.rs\"}}}}],{usage}}}"
        );
        let answer = format!(
            "{{\"role\":\"user\",\"content\":[{{\"type\":\"tool_result\",\"tool_use_id\":\"t{turn}\",\"content\":\"{output}\"}}]}}"
        );
        let lines = [
            record("assistant", &call, ""),
            record(
                "user",
                &answer,
                &format!(",\"toolUseResult\":{{\"stdout\":\"{output}\",\"stderr\":\"\"}}"),
            ),
        ];
        for line in lines {
            file.write_all(line.as_bytes())?;
            written += line.len() as u64;
        }
    }
    file.flush()?;
    println!("{} MB in {} records", written / 1_000_000, turn * 2);
    Ok(path)
}
