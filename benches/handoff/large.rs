//! What a handoff costs in a session of 100 MB: from the key to the message, and the memory that following it takes.
//!
//! Each case runs in a process of its own, so that its highest memory is its own: `PITSTOP_HANDOFF_LARGE=100` runs this program
//! again with the name of the case.

#![allow(clippy::disallowed_methods, reason = "it measures real time")]

use std::{
    env,
    error::Error,
    fs::{self, File},
    io::{BufRead as _, BufReader, BufWriter, Write as _},
    path::Path,
    process::Command,
    time::{Duration, Instant},
};

use serde_json::{Value, json};

use super::product::Product;

type Outcome<T> = Result<T, Box<dyn Error>>;

/// Which case this process runs.
const CASE: &str = "PITSTOP_HANDOFF_LARGE_CASE";

/// Where the session lies.
const SESSION: &str = "PITSTOP_HANDOFF_LARGE_SESSION";

/// In how many steps the session grows while it is followed.
const STEPS: u64 = 400;

/// How often the time from the key to the message is measured.
const KEYS: usize = 9;

/// The cases, and what each is.
const CASES: [(&str, &str); 3] = [
    ("idle", "a session without a word"),
    ("followed", "followed from its first line on"),
    ("resumed", "read as a whole, as `--resume` does"),
];

/// Runs the case that the environment names, or all of them on a session of so many megabytes.
pub fn run(megabytes: &str) -> Outcome<()> {
    if let Ok(case) = env::var(CASE) {
        let session = env::var(SESSION)?;
        return measure(&case, Path::new(&session));
    }
    let directory = tempfile::tempdir()?;
    let session = directory.path().join("large.jsonl");
    let bytes = generate(&session, megabytes.parse()?)?;
    println!(
        "| a session of {} MB | until it was read, ms | from the key to the message, ms (median, worst of {KEYS}) | bytes of the message | highest memory, MB |",
        bytes / 1_000_000
    );
    println!("|---|---|---|---|---|");
    for (case, name) in CASES {
        let out = Command::new(env::current_exe()?)
            .env(CASE, case)
            .env(SESSION, &session)
            .output()?;
        if !out.status.success() {
            return Err(String::from_utf8_lossy(&out.stderr).into());
        }
        println!(
            "| {name} | {} |",
            String::from_utf8_lossy(&out.stdout).trim()
        );
    }
    Ok(())
}

fn measure(case: &str, large: &Path) -> Outcome<()> {
    let directory = tempfile::tempdir()?;
    let own = directory.path().join("session.jsonl");
    let began = Instant::now();
    let mut product = match case {
        "idle" => {
            fs::write(&own, "")?;
            Product::new(&own, "/p")?
        }
        "followed" => grown(large, &own)?,
        _ => {
            let mut product = Product::resuming(large, "/p")?;
            product.read()?;
            product
        }
    };
    let read = began.elapsed();
    if case == "idle" {
        println!("– | – | – | {}", memory());
        return Ok(());
    }
    let mut took = Vec::new();
    let mut bytes = 0;
    for _ in 0..KEYS {
        let began = Instant::now();
        bytes = product.handoff()?.len();
        took.push(began.elapsed());
        product.put_off()?;
    }
    took.sort_unstable();
    let (median, worst) = (took[KEYS / 2], took[KEYS - 1]);
    // How long it took to grow is the copying, mostly.
    let read = if case == "followed" {
        "–".to_owned()
    } else {
        ms(read)
    };
    println!(
        "{read} | {}, {} | {bytes} | {}",
        ms(median),
        ms(worst),
        memory()
    );
    Ok(())
}

/// A product that has followed a session while it grew.
fn grown(large: &Path, own: &Path) -> Outcome<Product> {
    File::create(own)?;
    let mut product = Product::new(own, "/p")?;
    let size = fs::metadata(large)?.len();
    let mut from = BufReader::new(File::open(large)?);
    let mut to = File::options().append(true).open(own)?;
    // Whole lines: without a new record the follower has nothing to report.
    let mut step = Vec::new();
    loop {
        let count = from.read_until(b'\n', &mut step)?;
        if count > 0 && (step.len() as u64) < size / STEPS {
            continue;
        }
        if step.is_empty() {
            return Ok(product);
        }
        to.write_all(&step)?;
        step.clear();
        product.follow_on()?;
    }
}

fn ms(time: Duration) -> String {
    format!("{:.0}", time.as_secs_f64() * 1e3)
}

/// The most memory that this process has held, where the system says so.
fn memory() -> String {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let kib = line.and_then(|line| line.trim().trim_end_matches(" kB").parse::<f64>().ok());
    kib.map_or_else(
        || "–".to_owned(),
        |kib| format!("{:.1}", kib * 1024.0 / 1e6),
    )
}

/// Writes a session of the usual mix: prompts with rules, reads and edits of many files with names of their own, commands with
/// output of up to 44 kB, now and then an image.
fn generate(path: &Path, megabytes: u64) -> Outcome<u64> {
    let mut file = BufWriter::new(File::create(path)?);
    let mut written = 0;
    for turn in 0_u64.. {
        if written >= megabytes * 1_000_000 {
            break;
        }
        for line in turn_of(turn) {
            let line = line.to_string();
            file.write_all(line.as_bytes())?;
            file.write_all(b"\n")?;
            written += line.len() as u64 + 1;
        }
    }
    file.flush()?;
    Ok(written)
}

fn turn_of(turn: u64) -> Vec<Value> {
    let mut lines = Vec::new();
    let mut push = |kind: &str, message: Value, copy: Value| {
        let number = lines.len();
        lines.push(json!({
            "parentUuid": format!("{turn}-{number}"), "isSidechain": false, "userType": "external", "cwd": "/p",
            "sessionId": "00000000-0000-4000-8000-000000000001", "version": "2.1.330", "gitBranch": "main",
            "type": kind, "message": message, "uuid": format!("{turn}-{}", number + 1),
            "timestamp": "2026-11-18T11:00:00.000Z", "toolUseResult": copy,
        }));
    };
    let said = |block: Value| {
        json!({
            "id": format!("msg_{turn}"), "type": "message", "role": "assistant", "model": "claude-opus-4-8", "content": [block],
            "usage": { "input_tokens": 3, "cache_creation_input_tokens": 400, "cache_read_input_tokens": 50_000, "output_tokens": 90 },
        })
    };
    let call = |id: &str, tool: &str, input: Value| {
        said(
            json!({ "type": "tool_use", "id": format!("{id}{turn}"), "name": tool, "input": input }),
        )
    };
    let result = |id: &str, content: Value| json!({ "role": "user", "content": [{ "type": "tool_result", "tool_use_id": format!("{id}{turn}"), "content": content }] });
    if turn.is_multiple_of(8) {
        let prompt = format!(
            "Now part {turn} of the importer. Never change column_{turn} because reports read it."
        );
        push(
            "user",
            json!({ "role": "user", "content": prompt }),
            Value::Null,
        );
    }
    let path = format!("/p/src/area_{}/module_{}.rs", turn % 37, turn % 911);
    let mut code = String::new();
    for line in 0..20 + turn * 37 % 300 {
        code.push_str(&format!(
            "    let value_{turn}_{line} = load_entry(\"{line}\").map_or_default();\n"
        ));
    }
    push(
        "assistant",
        said(
            json!({ "type": "text", "text": format!("Next I look at module_{}.rs.", turn % 911) }),
        ),
        Value::Null,
    );
    push(
        "assistant",
        call("r", "Read", json!({ "file_path": path })),
        Value::Null,
    );
    push(
        "user",
        result("r", json!(code)),
        json!({ "file": { "content": code, "startLine": 1, "numLines": 20 } }),
    );
    let edit = json!({ "file_path": path, "old_string": &code[..200], "new_string": format!("fn changed_{turn}() {{}}") });
    push("assistant", call("e", "Edit", edit), Value::Null);
    push(
        "user",
        result("e", json!("The file has been updated.")),
        json!({ "structuredPatch": [{ "newStart": turn % 900 }] }),
    );
    let command = format!("cd /p && cargo test area_{} 2>&1 | tail -50", turn % 37);
    push(
        "assistant",
        call("b", "Bash", json!({ "command": command })),
        Value::Null,
    );
    let output = "test parser::reads_all ... ok\n".repeat(5 + (turn * 53 % 1_500) as usize);
    push(
        "user",
        result("b", json!(output)),
        json!({ "stdout": output, "stderr": "", "interrupted": false }),
    );
    if turn.is_multiple_of(60) {
        let image = json!([{ "type": "image", "source": { "type": "base64", "data": "iVBORw0K".repeat(60_000) } }]);
        push(
            "assistant",
            call("i", "Read", json!({ "file_path": "/p/shot.png" })),
            Value::Null,
        );
        push("user", result("i", image), json!({ "type": "image" }));
    }
    lines
}
