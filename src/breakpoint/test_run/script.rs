//! jest and vitest.

use super::{Runner, TestOutcome, add, count, is_script};

/// Reads the lines of jest.
pub(super) fn jest(lines: &[&str]) -> Option<TestOutcome> {
    let mut outcome = TestOutcome::new(Runner::Jest);
    let mut seen = false;
    let mut file = "";
    // The describe blocks around a verbose line, by their indentation.
    let mut path: Vec<(usize, &str)> = Vec::new();
    let mut in_list = false;
    for line in lines {
        let passed = file_line(line, "PASS ");
        if let Some(named) = passed.or_else(|| file_line(line, "FAIL ")) {
            (file, in_list) = (named, true);
            path.clear();
            if passed.is_some() {
                outcome.passing_groups.push(named.to_owned());
            }
        } else if let Some(counts) = line.strip_prefix("Tests:  ") {
            totals(&mut outcome, counts.split(',').filter_map(count));
            (seen, outcome.complete) = (true, true);
        } else if line.starts_with("Test Suites: ") {
            seen = true;
            (file, in_list) = ("", false);
        } else if line.starts_with("No tests found, exiting with code") {
            (seen, outcome.complete) = (true, true);
        } else if let Some(title) = line.strip_prefix("  ● ") {
            in_list = false;
            match title {
                "Console" => {}
                "Test suite failed to run" => {
                    outcome.built = false;
                    outcome.failed_one(file);
                }
                title if !file.is_empty() => outcome.failed_one(&format!("{file} › {title}")),
                _ => {}
            }
        } else if in_list {
            in_list = verbose(line, file, &mut path, &mut outcome);
        }
    }
    outcome.whole = outcome.complete && outcome.built;
    seen.then_some(outcome)
}

/// `FAIL ./orchard.test.js (5.2 s)`: the file.
fn file_line<'a>(line: &'a str, verdict: &str) -> Option<&'a str> {
    // In colour the word has room around it.
    let line = line.strip_prefix(' ').unwrap_or(line);
    let rest = line.strip_prefix(verdict)?.trim();
    let file = rest.rsplit_once(" (").map_or(rest, |(file, _)| file);
    is_script(file).then_some(file)
}

/// One line of jest's tree of tests; returns whether the tree goes on.
fn verbose<'a>(
    line: &'a str,
    file: &str,
    path: &mut Vec<(usize, &'a str)>,
    outcome: &mut TestOutcome,
) -> bool {
    let text = line.trim_start();
    let indentation = line.len() - text.len();
    if text.is_empty() || indentation == 0 {
        return false;
    }
    path.retain(|(have, _)| *have < indentation);
    let mark = text.chars().next().unwrap_or(' ');
    let name = text[mark.len_utf8()..].trim();
    let name = name
        .strip_suffix("ms)")
        .or_else(|| name.strip_suffix(" s)"))
        .and_then(|rest| rest.rsplit_once(" ("))
        .map_or(name, |(name, _)| name);
    let whole = || {
        let blocks = path.iter().map(|(_, block)| *block);
        let parts: Vec<&str> = [file].into_iter().chain(blocks).chain([name]).collect();
        parts.join(" › ")
    };
    match mark {
        '✓' | '√' => outcome.passed_one(&whole()),
        '✕' | '×' => outcome.failed_one(&whole()),
        '○' | '✎' => {}
        _ => path.push((indentation, text)),
    }
    true
}

fn totals<'a>(outcome: &mut TestOutcome, counts: impl Iterator<Item = (u64, &'a str)>) {
    for (number, word) in counts {
        match word {
            "passed" => add(&mut outcome.passed, number),
            "failed" => add(&mut outcome.failed, number),
            _ => {}
        }
    }
    outcome.passed = outcome.passed.or(Some(0));
    outcome.failed = outcome.failed.or(Some(0));
}

/// Reads the lines of vitest.
pub(super) fn vitest(lines: &[&str]) -> Option<TestOutcome> {
    let mut outcome = TestOutcome::new(Runner::Vitest);
    let mut seen = false;
    // The counts of tests follow those of files; what tests print can look like them.
    let mut after_files = false;
    for line in lines {
        let text = line.trim();
        let is_total = std::mem::replace(&mut after_files, text.starts_with("Test Files  "));
        if let Some(version) = text
            .strip_prefix("RUN ")
            .or_else(|| text.strip_prefix("DEV "))
        {
            let version = version.trim_start();
            seen |=
                version.starts_with('v') && version[1..].starts_with(|c: char| c.is_ascii_digit());
        } else if text.starts_with("Test Files  ") {
            seen = true;
        } else if !seen {
        } else if let Some(counts) = text.strip_prefix("Tests  ").filter(|_| is_total) {
            // The total stands in brackets behind the last count.
            let counts = counts
                .rsplit_once(" (")
                .map_or(counts, |(counts, _)| counts);
            totals(&mut outcome, counts.split('|').filter_map(count));
            outcome.complete = true;
        } else if text.starts_with("No test files found, exiting with code") {
            outcome.complete = true;
        } else if let Some(name) = text.strip_prefix("FAIL  ") {
            fail(name, &mut outcome);
        } else {
            mark(text, &mut outcome);
        }
    }
    outcome.whole = outcome.complete && outcome.built;
    seen.then_some(outcome)
}

/// `orchard.test.js > orchard > pears`, or of a suite that could not run `bad.test.js [ bad.test.js ]`.
fn fail(name: &str, outcome: &mut TestOutcome) {
    if name.contains(" > ") {
        outcome.failed_one(name);
    } else if let Some((file, _)) = name.split_once(" [ ") {
        outcome.built = false;
        outcome.failed_one(file);
    }
}

/// `✓ orchard.test.js > orchard > apples 1ms`, or of a whole file `✓ orchard.test.js (3 tests) 4ms`.
fn mark(text: &str, outcome: &mut TestOutcome) {
    let Some(mark) = text.chars().next().filter(|c| matches!(c, '✓' | '√' | '×')) else {
        return;
    };
    let rest = text[mark.len_utf8()..].trim();
    let (name, time) = rest.rsplit_once(' ').unwrap_or((rest, ""));
    let timed = time
        .strip_suffix("ms")
        .or_else(|| time.strip_suffix('s'))
        .is_some_and(|number| number.parse::<f64>().is_ok());
    let name = if timed { name } else { rest };
    let passed = mark != '×';
    if let Some((file, _)) = name.split_once(" (").filter(|(file, _)| is_script(file)) {
        if passed {
            outcome.passing_groups.push(file.to_owned());
        }
    } else if name.split(" > ").next().is_some_and(is_script) && name.contains(" > ") {
        if passed {
            outcome.passed_one(name);
        } else {
            outcome.failed_one(name);
        }
    }
}
