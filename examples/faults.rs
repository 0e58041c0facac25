//! Breaks things on purpose and prints what became of it: a line for each fault of `tests/fixtures/faults.toml`.
//!
//! ```text
//! cargo run --example faults                      every fault
//! cargo run --example faults -- store clock       those whose name or group contains one of these words
//! cargo run --example faults -- --list            their names, and what is expected
//! cargo run --example faults -- --times 10        each ten times; one passes if all ten do
//! cargo run --example faults -- --jobs 4          four at a time (2)
//! cargo run --example faults -- --write FILE      the table as Markdown too
//! ```
//!
//! A fault is a test of `tests/it`, or several: each runs in a process of its own, with a home, sockets and directories of
//! its own. One that needs what this machine does not have is skipped, with what it needs. The exit code is 1 if a fault
//! fails, and 2 if the table or the arguments are wrong.

#![allow(clippy::disallowed_methods, reason = "real programs take real time")]

use std::{
    collections::BTreeSet,
    env,
    fmt::Write as _,
    fs,
    os::unix::process::CommandExt as _,
    path::{Path, PathBuf},
    process::{Command, ExitCode, Stdio},
    sync::Mutex,
    thread,
    time::{Duration, Instant},
};

use serde::Deserialize;
use serde_json::Value;

const TABLE: &str = include_str!("../tests/fixtures/faults.toml");

/// No test of a fault takes so long, on a machine that others use too; one that does hangs.
const LIMIT: Duration = Duration::from_secs(400);

/// How many lines of a failure are shown.
const SHOWN: usize = 60;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Table {
    group: Vec<Group>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Group {
    name: String,
    fault: Vec<Fault>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Fault {
    name: String,
    /// What is done.
    done: String,
    /// What is expected.
    expect: String,
    /// The tests that do it; one that ends in `*` stands for all that begin so.
    #[serde(default)]
    tests: Vec<String>,
    /// Why no test does it.
    skip: Option<String>,
}

struct Options {
    list: bool,
    times: usize,
    jobs: usize,
    write: Option<PathBuf>,
    words: Vec<String>,
}

/// What became of a fault.
enum Outcome {
    Pass,
    Fail(String),
    Skipped(String),
}

impl Outcome {
    fn word(&self) -> String {
        match self {
            Self::Pass => "pass".to_owned(),
            Self::Fail(_) => "FAIL".to_owned(),
            Self::Skipped(why) => format!("skipped: {why}"),
        }
    }
}

/// A fault with its place in the table.
struct Line<'a> {
    group: &'a str,
    fault: &'a Fault,
    tests: Vec<&'a str>,
}

fn main() -> ExitCode {
    match run() {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::from(1),
        Err(error) => {
            eprintln!("faults: {error}");
            ExitCode::from(2)
        }
    }
}

fn run() -> Result<bool, String> {
    let options = options(env::args().skip(1))?;
    let table: Table = toml::from_str(TABLE).map_err(|error| error.to_string())?;
    if options.list {
        for (group, fault) in chosen(&table, &options.words) {
            println!("{group} · {}: {}: {}", fault.name, fault.done, fault.expect);
        }
        return Ok(true);
    }
    let program = test_program()?;
    let known = known_tests(&program)?;
    let lines = chosen(&table, &options.words)
        .map(|(group, fault)| {
            let tests = expand(fault, &known)?;
            Ok(Line {
                group,
                fault,
                tests,
            })
        })
        .collect::<Result<Vec<_>, String>>()?;
    if lines.is_empty() {
        return Err("no fault has such a name; --list shows them".to_owned());
    }
    let outcomes = run_all(&program, &lines, &options);
    let count = |word: &str| {
        outcomes
            .iter()
            .filter(|(one, _)| one.word().starts_with(word))
            .count()
    };
    println!(
        "{} passed, {} failed, {} skipped",
        count("pass"),
        count("FAIL"),
        count("skipped")
    );
    if let Some(path) = &options.write {
        fs::write(path, markdown(&lines, &outcomes, options.times))
            .map_err(|error| format!("{}: {error}", path.display()))?;
    }
    Ok(count("FAIL") == 0)
}

fn options(mut args: impl Iterator<Item = String>) -> Result<Options, String> {
    let mut options = Options {
        list: false,
        times: 1,
        jobs: 2,
        write: None,
        words: Vec::new(),
    };
    while let Some(arg) = args.next() {
        let mut value = || args.next().ok_or(format!("{arg} expects a value"));
        let number = |value: String| match value.parse() {
            Ok(number @ 1..) => Ok(number),
            _ => Err(format!("expected a number from 1 on, found {value}")),
        };
        match arg.as_str() {
            "--list" => options.list = true,
            "--times" => options.times = number(value()?)?,
            "--jobs" => options.jobs = number(value()?)?,
            "--write" => options.write = Some(value()?.into()),
            flag if flag.starts_with('-') => return Err(format!("unknown flag {flag}")),
            _ => options.words.push(arg),
        }
    }
    Ok(options)
}

fn chosen<'a>(table: &'a Table, words: &'a [String]) -> impl Iterator<Item = (&'a str, &'a Fault)> {
    let all = table
        .group
        .iter()
        .flat_map(|group| group.fault.iter().map(|fault| (group.name.as_str(), fault)));
    all.filter(|(group, fault)| {
        let fits = |word: &String| group.contains(word) || fault.name.contains(word);
        words.is_empty() || words.iter().any(fits)
    })
}

/// Builds the test program, and gives its path.
fn test_program() -> Result<PathBuf, String> {
    let cargo = env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let output = Command::new(cargo)
        .args(["test", "--test", "it", "--no-run", "--message-format=json"])
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .stderr(Stdio::inherit())
        .output()
        .map_err(|error| format!("cargo does not run: {error}"))?;
    let messages = String::from_utf8_lossy(&output.stdout).into_owned();
    messages
        .lines()
        .filter_map(|line| serde_json::from_str::<Value>(line).ok())
        .filter(|message| message["target"]["name"] == "it")
        .find_map(|message| message["executable"].as_str().map(PathBuf::from))
        .ok_or_else(|| "the tests cannot be built".to_owned())
}

fn known_tests(program: &Path) -> Result<BTreeSet<String>, String> {
    let output = Command::new(program)
        .args(["--list", "--format", "terse"])
        .output()
        .map_err(|error| format!("{}: {error}", program.display()))?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let names = text.lines().filter_map(|line| line.strip_suffix(": test"));
    Ok(names.map(str::to_owned).collect())
}

fn expand<'a>(fault: &Fault, known: &'a BTreeSet<String>) -> Result<Vec<&'a str>, String> {
    if fault.tests.is_empty() != fault.skip.is_some() {
        return Err(format!(
            "{}: expected either tests or a reason to skip it",
            fault.name
        ));
    }
    let mut tests = Vec::new();
    for wanted in &fault.tests {
        let before = tests.len();
        tests.extend(known.iter().map(String::as_str).filter(|name| {
            wanted
                .strip_suffix('*')
                .map_or(name == wanted, |begin| name.starts_with(begin))
        }));
        if tests.len() == before {
            return Err(format!("{}: no test is called {wanted}", fault.name));
        }
    }
    Ok(tests)
}

/// Runs some faults at a time and prints each as soon as it is over.
fn run_all(program: &Path, lines: &[Line], options: &Options) -> Vec<(Outcome, Duration)> {
    let next = Mutex::new(lines.iter().enumerate());
    let outcomes = Mutex::new(Vec::new());
    thread::scope(|scope| {
        for _ in 0..options.jobs {
            scope.spawn(|| {
                loop {
                    let Some((at, line)) = next.lock().expect("a list").next() else {
                        return;
                    };
                    let began = Instant::now();
                    let outcome = outcome(program, line, options.times);
                    let took = began.elapsed();
                    let mut outcomes = outcomes.lock().expect("a list");
                    let Fault {
                        name, done, expect, ..
                    } = line.fault;
                    let word = outcome.word();
                    println!(
                        "{} · {name}: {done}: {expect}: {word} ({:.1} s)",
                        line.group,
                        took.as_secs_f64()
                    );
                    if let Outcome::Fail(output) = &outcome {
                        println!("{output}");
                    }
                    outcomes.push((at, outcome, took));
                }
            });
        }
    });
    let mut outcomes = outcomes.into_inner().expect("a list");
    outcomes.sort_by_key(|(at, ..)| *at);
    outcomes
        .into_iter()
        .map(|(_, outcome, took)| (outcome, took))
        .collect()
}

fn outcome(program: &Path, line: &Line, times: usize) -> Outcome {
    if let Some(why) = &line.fault.skip {
        return Outcome::Skipped(why.clone());
    }
    let mut skipped = None;
    let mut passed = 0;
    for _ in 0..times {
        for test in &line.tests {
            match one_test(program, test) {
                Outcome::Pass => passed += 1,
                Outcome::Fail(output) => return Outcome::Fail(output),
                Outcome::Skipped(why) => skipped = Some(why),
            }
        }
    }
    match skipped {
        Some(why) if passed == 0 => Outcome::Skipped(why),
        // The rest of it holds without what is missing.
        _ => Outcome::Pass,
    }
}

/// Runs a test; one that is ignored too, unless it needs a variable that is not set.
fn one_test(program: &Path, test: &str) -> Outcome {
    let (output, passed) = run_test(program, test, &[]);
    let ignored = output.lines().find_map(|line| {
        let (_, why) = line.split_once(" ... ignored")?;
        Some(why.trim_start_matches(", ").to_owned())
    });
    let (output, passed) = match ignored {
        None => (output, passed),
        Some(why) => match missing(&why) {
            Some(missing) => return Outcome::Skipped(missing),
            None => run_test(program, test, &["--include-ignored"]),
        },
    };
    let skipped = output
        .lines()
        .find_map(|line| line.trim().strip_prefix("skipped: "));
    match skipped {
        Some(why) => Outcome::Skipped(why.to_owned()),
        None if passed => Outcome::Pass,
        None => Outcome::Fail(format!("{test}:\n{}", last_lines(&output))),
    }
}

/// The words of a reason to ignore a test that name a variable which is not set.
fn missing(why: &str) -> Option<String> {
    let words = why.split(|letter: char| !(letter.is_ascii_uppercase() || letter == '_'));
    let variables = words.filter(|word| word.starts_with("PITSTOP_"));
    let missing: Vec<&str> = variables
        .filter(|name| env::var_os(name).is_none())
        .collect();
    (!missing.is_empty()).then(|| why.to_owned())
}

fn run_test(program: &Path, test: &str, more: &[&str]) -> (String, bool) {
    let file = tempfile::tempfile().expect("a file");
    let handle = || file.try_clone().expect("a handle");
    let mut child = Command::new(program)
        .args(["--exact", test, "--nocapture"])
        .args(more)
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .stdin(Stdio::null())
        .stdout(handle())
        .stderr(handle())
        .process_group(0)
        .spawn()
        .expect("the tests run");
    let end = Instant::now() + LIMIT;
    let status = loop {
        if let Some(status) = child.try_wait().expect("a child") {
            break Some(status);
        }
        if Instant::now() > end {
            child.kill().expect("a child");
            child.wait().expect("a child");
            break None;
        }
        thread::sleep(Duration::from_millis(20));
    };
    let mut output = read(file);
    if status.is_none() {
        writeln!(output, "it was killed after {LIMIT:?}").expect("a text");
    }
    (output, status.is_some_and(|status| status.success()))
}

fn read(mut file: fs::File) -> String {
    use std::io::{Read as _, Seek as _};
    let mut bytes = Vec::new();
    file.rewind().expect("a file");
    file.read_to_end(&mut bytes).expect("a file");
    String::from_utf8_lossy(&bytes).into_owned()
}

fn last_lines(text: &str) -> String {
    let lines: Vec<&str> = text.lines().collect();
    lines[lines.len().saturating_sub(SHOWN)..].join("\n")
}

fn markdown(lines: &[Line], outcomes: &[(Outcome, Duration)], times: usize) -> String {
    let mut text = String::new();
    let mut group = "";
    for (line, (outcome, took)) in lines.iter().zip(outcomes) {
        if line.group != group {
            group = line.group;
            writeln!(
                text,
                "\n## {group}\n\n| fault | done | expected | outcome | s |\n|---|---|---|---|---|"
            )
            .expect("a text");
        }
        let Fault {
            name, done, expect, ..
        } = line.fault;
        let word = match (outcome.word(), times) {
            (word, 1) => word,
            (word, times) if word == "pass" => format!("pass {times} of {times}"),
            (word, _) => word,
        };
        writeln!(
            text,
            "| {name} | {done} | {expect} | {word} | {:.1} |",
            took.as_secs_f64()
        )
        .expect("a text");
    }
    text
}
