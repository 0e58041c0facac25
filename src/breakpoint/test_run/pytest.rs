//! pytest, plain, verbose, quiet and spread over processes by xdist.

use super::{Runner, TestOutcome, add, count};

/// Reads the lines of pytest.
pub(super) fn read(lines: &[&str]) -> Option<TestOutcome> {
    let mut outcome = TestOutcome::new(Runner::Pytest);
    let (mut seen, mut deselected) = (false, 0);
    let mut in_summary = false;
    // What a test printed is shown again where it failed, and may look like anything.
    let mut in_capture = false;
    for line in lines {
        let is_heading = line.starts_with("---") && line.contains(" Captured ");
        in_capture =
            is_heading || (in_capture && !line.starts_with("===") && !line.starts_with("___"));
        if in_capture {
            continue;
        }
        let bare = line.trim_matches(['=', ' ']);
        let is_rule = line.starts_with("===");
        if is_rule && bare == "test session starts" {
            (seen, in_summary) = (true, false);
            continue;
        }
        if is_rule {
            in_summary = bare == "short test summary info";
            seen |= in_summary;
        }
        if let Some(counts) = last_line(bare) {
            deselected += totals(&mut outcome, counts);
            (seen, outcome.complete) = (true, true);
        } else if line.starts_with("!!!") && line.contains("during collection") {
            outcome.built = false;
        } else if in_summary {
            of_summary(line, &mut outcome);
        } else if seen {
            of_verbose(line, &mut outcome);
        }
    }
    if outcome.complete {
        outcome.passed = outcome.passed.or(Some(0));
        outcome.failed = outcome.failed.or(Some(0));
    }
    outcome.whole = outcome.complete && outcome.built && deselected == 0;
    seen.then_some(outcome)
}

/// The counts of `2 failed, 3 passed in 0.04s`, which may stand in a rule of `=`.
fn last_line(bare: &str) -> Option<&str> {
    let (counts, time) = bare.rsplit_once(" in ")?;
    let time = time.split(' ').next()?.strip_suffix('s')?;
    time.parse::<f64>().ok()?;
    let known = |item: &str| {
        count(item).is_some_and(|(_, word)| {
            matches!(
                word,
                "passed"
                    | "failed"
                    | "error"
                    | "errors"
                    | "skipped"
                    | "deselected"
                    | "xfailed"
                    | "xpassed"
                    | "warning"
                    | "warnings"
                    | "rerun"
                    | "subtests passed"
            )
        })
    };
    (counts == "no tests ran" || counts.split(", ").all(known)).then_some(counts)
}

/// Adds the counts; returns how many tests were deselected.
fn totals(outcome: &mut TestOutcome, counts: &str) -> u64 {
    let mut deselected = 0;
    for (number, word) in counts.split(", ").filter_map(count) {
        match word {
            "passed" | "xpassed" => add(&mut outcome.passed, number),
            "failed" | "error" | "errors" => add(&mut outcome.failed, number),
            "deselected" => deselected += number,
            _ => {}
        }
    }
    deselected
}

/// `FAILED test_a.py::test_b - AssertionError: …`.
fn of_summary(line: &str, outcome: &mut TestOutcome) {
    // A part of a test, with what it was run with: the test has failed.
    if line.starts_with("SUBFAIL") {
        let name = line.split(' ').find(|word| word.contains(".py::"));
        return name.into_iter().for_each(|name| outcome.failed_one(name));
    }
    let Some((verdict, rest)) = line.split_once(' ') else {
        return;
    };
    let name = rest.split_once(" - ").map_or(rest, |(name, _)| name);
    let name = name.strip_suffix(" -").unwrap_or(name);
    if !name.contains(".py") && !name.contains("::") {
        return;
    }
    match verdict {
        "FAILED" | "ERROR" => outcome.failed_one(name),
        "PASSED" | "XPASS" => outcome.passed_one(name),
        _ => {}
    }
}

/// `test_a.py::test_b PASSED [ 12%]`, and of xdist `[gw0] [ 12%] PASSED test_a.py::test_b`.
fn of_verbose(line: &str, outcome: &mut TestOutcome) {
    let (name, verdict) = if line.starts_with("[gw") {
        let Some((verdict, name)) = line
            .splitn(3, "] ")
            .nth(2)
            .and_then(|rest| rest.split_once(' '))
        else {
            return;
        };
        (name, verdict)
    } else {
        let line = line.trim_end();
        let line = line
            .strip_suffix("%]")
            .and_then(|rest| rest.rsplit_once('['))
            .map_or(line, |(rest, _)| rest.trim_end());
        let Some(parts) = line.rsplit_once(' ') else {
            return;
        };
        parts
    };
    // Parameters may hold anything, also spaces; the file's name does not.
    if !name.contains("::") || name.starts_with(' ') {
        return;
    }
    match verdict {
        "PASSED" | "XPASS" => outcome.passed_one(name),
        "FAILED" | "ERROR" => outcome.failed_one(name),
        _ => {}
    }
}
