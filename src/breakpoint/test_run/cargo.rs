//! `cargo test` (the harness of the standard library) and `cargo nextest`.

use super::{Runner, TestOutcome, add, count};

/// What the lines of `cargo test` are about.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Part {
    /// Before, between and after the test binaries.
    Outside,
    /// Verdicts come in.
    Running,
    /// What the failed tests have printed: none of it is ours.
    Printed,
    /// The list of the failed tests' names.
    List,
}

/// Reads the lines of `cargo test`.
pub(super) fn test(lines: &[&str]) -> Option<TestOutcome> {
    let mut outcome = TestOutcome::new(Runner::Cargo);
    let mut part = Part::Outside;
    let (mut seen, mut open, mut filtered) = (false, false, 0);
    let (mut listed, mut said) = (Vec::new(), Vec::new());
    let mut failures = 0;
    for line in lines {
        if let Some(counts) = line.strip_prefix("test result: ") {
            filtered += summary(&mut outcome, counts);
            (part, open, failures) = (Part::Outside, false, 0);
            continue;
        }
        if is_start(line) {
            (part, open, seen, failures) = (Part::Running, true, true, 0);
            continue;
        }
        if *line == "failures:" && seen {
            failures += 1;
            part = if failures == 1 {
                Part::Printed
            } else {
                Part::List
            };
            continue;
        }
        match part {
            Part::Running => verdict(line, &mut outcome, &mut said),
            Part::List => {
                if let Some(name) = line.strip_prefix("    ") {
                    listed.push(name.to_owned());
                }
            }
            Part::Printed => {
                let named = line.strip_prefix("---- ");
                if let Some(name) = named.and_then(|rest| rest.strip_suffix(" stdout ----")) {
                    said.push(name.to_owned());
                }
            }
            Part::Outside => {}
        }
        if is_broken_build(line) {
            (outcome.built, seen) = (false, true);
        }
    }
    // The list is the harness's own word; the verdict lines may be something that a test printed.
    let whole_list = outcome.failed == Some(listed.len() as u64);
    let failing = if whole_list {
        listed
    } else {
        said.extend(listed);
        said
    };
    for name in failing {
        outcome.failed_one(without_mark(&name));
    }
    outcome.complete = !open && (outcome.passed.is_some() || !outcome.built);
    outcome.whole = outcome.complete && outcome.built && filtered == 0;
    seen.then_some(outcome)
}

/// `running 12 tests`.
fn is_start(line: &str) -> bool {
    line.strip_prefix("running ")
        .and_then(count)
        .is_some_and(|(_, word)| matches!(word, "test" | "tests"))
}

/// ``could not compile `x` (lib test)``: a test build that failed.
fn is_broken_build(line: &str) -> bool {
    line.starts_with("error: could not compile `")
        && (line.contains(" test) ") || line.contains(" (test ") || line.ends_with(" test)"))
}

/// `test a::b ... ok`, and in quiet mode `a::b --- FAILED`.
fn verdict(line: &str, outcome: &mut TestOutcome, failing: &mut Vec<String>) {
    if let Some(name) = line.strip_suffix(" --- FAILED") {
        failing.push(name.to_owned());
        return;
    }
    let Some((name, verdict)) = line
        .strip_prefix("test ")
        .and_then(|rest| rest.rsplit_once(" ... "))
    else {
        return;
    };
    match verdict.trim() {
        "ok" => outcome.passed_one(without_mark(name)),
        "FAILED" => failing.push(name.to_owned()),
        // With the time it took, as the unstable options print it.
        timed if timed.starts_with("ok <") => outcome.passed_one(without_mark(name)),
        timed if timed.starts_with("FAILED <") => failing.push(name.to_owned()),
        _ => {}
    }
}

fn without_mark(name: &str) -> &str {
    name.strip_suffix(" - should panic").unwrap_or(name)
}

/// `FAILED. 2 passed; 1 failed; 1 ignored; 0 measured; 0 filtered out; …`: returns how many were filtered out.
fn summary(outcome: &mut TestOutcome, counts: &str) -> u64 {
    let counts = counts.split_once(". ").map_or(counts, |(_, counts)| counts);
    let mut filtered = 0;
    for (number, word) in counts.split(';').filter_map(count) {
        match word {
            "passed" => add(&mut outcome.passed, number),
            "failed" => add(&mut outcome.failed, number),
            "filtered out" => filtered += number,
            _ => {}
        }
    }
    filtered
}

/// Reads the lines of nextest; returns also the lines that are not its own, where `cargo test` may have run too.
pub(super) fn nextest<'a>(lines: &[&'a str]) -> (Option<TestOutcome>, Vec<&'a str>) {
    let is_own = |line: &&str| {
        let line = line.trim_start();
        line.starts_with("Nextest run ID ")
            || (line.starts_with("Summary [") && line.contains(" run: "))
            || (line.starts_with("Starting ") && line.contains(" across "))
            || line.contains("cargo test --no-run --message-format json-render-diagnostics")
    };
    let Some(first) = lines.iter().position(is_own) else {
        return (None, lines.to_vec());
    };
    let mut outcome = TestOutcome::new(Runner::Nextest);
    let mut last = lines.len();
    for (at, line) in lines.iter().enumerate().skip(first) {
        let line = line.trim();
        if line.contains("cargo test --no-run --message-format json-render-diagnostics") {
            outcome.built = false;
            (outcome.complete, last) = (true, at + 1);
        } else if let Some((_, counts)) = line
            .strip_prefix("Summary [")
            .and_then(|rest| rest.split_once(" run: "))
        {
            for (number, word) in counts.split(',').filter_map(count) {
                match word.split(' ').next() {
                    Some("passed") => add(&mut outcome.passed, number),
                    Some("failed" | "timed" | "exec") => add(&mut outcome.failed, number),
                    _ => {}
                }
            }
            (outcome.complete, last) = (true, at + 1);
        } else {
            line_of_nextest(line, &mut outcome);
        }
    }
    outcome.failed = outcome.failed.or(outcome.passed.map(|_| 0));
    outcome.whole = outcome.complete && outcome.built;
    let mut rest = lines[..if outcome.built { first } else { 0 }].to_vec();
    rest.extend(&lines[last..]);
    (Some(outcome), rest)
}

/// `PASS [   0.025s] (1/4) orchard tests::apples`.
fn line_of_nextest(line: &str, outcome: &mut TestOutcome) {
    let Some((verdict, rest)) = line.split_once(" [") else {
        return;
    };
    let Some((time, name)) = rest.split_once(']') else {
        return;
    };
    if !time.trim_start_matches(['>', ' ']).ends_with('s') {
        return;
    }
    let mut name = name.trim();
    // The running number, which older versions do not print.
    if let Some((number, rest)) = name
        .strip_prefix('(')
        .and_then(|rest| rest.split_once(") "))
        && number
            .chars()
            .all(|c| c.is_ascii_digit() || matches!(c, '/' | ' ' | '─'))
    {
        // A rule stands for the number while the test will be tried again: that is no verdict yet.
        if number.starts_with('─') {
            return;
        }
        name = rest.trim_start();
    }
    if !name.contains(' ') {
        return;
    }
    match verdict.rsplit(' ').next().unwrap_or_default() {
        "PASS" | "LEAK" => {
            // An earlier try may have failed, and older versions do not say that there will be another.
            outcome.failing.retain(|failed| failed != name);
            outcome.passed_one(name);
        }
        "SLOW" | "RETRY" => {}
        // A try that failed is reported again if it was the last one.
        _ if verdict.starts_with("TRY ") && outcome.passing.iter().any(|have| have == name) => {}
        "FAIL" | "TIMEOUT" | "ABORT" | "TMT" => outcome.failed_one(name),
        signal if signal.starts_with("SIG") => outcome.failed_one(name),
        _ => {}
    }
}
