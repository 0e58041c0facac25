//! The parts of texts and outputs that count for the work.

use std::{borrow::Cow, collections::BTreeSet, sync::LazyLock};

use regex::Regex;
use serde_json::Value;

use super::LINE_CAP;
use crate::words::{clipped, own_lines, split_ends};
use pitstop_base::redact;

/// The most of a text that is searched for names, in bytes: half at its start and half at its end.
const SEARCHED: usize = 256 * 1024;

/// The most lines of the last failure that are reported.
const FAILURE_LINES: usize = 12;

/// Reports whether a text lists several things, as a plan does, and many a report.
pub(super) fn is_list(text: &str) -> bool {
    let is_item = |line: &&str| {
        let line = line.trim_start();
        let digits = line.trim_start_matches(|c: char| c.is_ascii_digit());
        line.starts_with("- ")
            || line.starts_with("* ")
            || digits.len() < line.len()
                && [". ", ") ", "、", "．"]
                    .iter()
                    .any(|mark| digits.starts_with(mark))
    };
    own_lines(text).filter(is_item).count() >= 3
}

/// Returns the line at which a call that changed or read a file stopped, as the client reports it.
pub(super) fn stopped_at(outcome: &Value, changed: bool) -> Option<u64> {
    if changed {
        let last = outcome["structuredPatch"].as_array()?.last()?;
        // The patch begins with a few lines before the change.
        let lines = last["lines"].as_array().into_iter().flatten();
        let around =
            lines.take_while(|line| line.as_str().is_some_and(|line| line.starts_with(' ')));
        return Some(last["newStart"].as_u64()? + around.count() as u64);
    }
    let file = &outcome["file"];
    let (start, lines) = (file["startLine"].as_u64()?, file["numLines"].as_u64()?);
    let whole = file["totalLines"].as_u64() == Some(lines);
    (!whole).then_some(start)
}

/// Returns the part of a text that is searched: all of it, or its start and its end, without the words of masks.
pub(super) fn searched_part(text: &str) -> Cow<'_, str> {
    let part = split_ends(text, SEARCHED).map_or(Cow::Borrowed(text), |(head, tail)| {
        format!("{head}\n{tail}").into()
    });
    if !part.contains(redact::MASK) {
        return part;
    }
    let mut pieces = part.split(redact::MASK);
    let mut plain = pieces.next().unwrap_or_default().to_owned();
    for piece in pieces {
        plain.push(' ');
        plain.push_str(piece.split_once(']').map_or(piece, |(_, behind)| behind));
    }
    plain.into()
}

/// The forms of a line that says what went wrong, whatever is around it: the word of the program itself at the start or behind a
/// place, the name of an exception, the verdict of a test or a build.
const STRONG: &str = concat!(
    r"^\s*(?:\S+:\s+|\S*\d[:)]?\s+)?\[?(?i:fatal error|error|fatal)(?:\]|\[\w+\])?(?:[:!\s]|$)",
    r"|^E(?::|\s{2})\s*\S|^npm ERR!|^npm error|^make(?:\[\d+\])?: \*\*\*|^\s*[✕✗✖✘×]\s|^\S+\.\w+:\d+:\d+: ",
    r"|(?:^|[\s:(.$])\w*(?:Error|Exception)(?: \[\w+\])?:\s|\bpanicked at|^Traceback \(",
    r"|(?:^|[\s(\[])FAIL(?:ED|URE)?(?:$|[\s.:!)\]])",
);

/// The forms of a line that counts what went wrong.
const COUNTS: &str = r"(?:^|[^\w.])[1-9]\d* (?:\w+ )?(?:errors?|failed|failures?|failing)\b";

/// The words that a line about a failure may have, in small letters, where they are no part of a name or a path.
const WEAK: &str = concat!(
    r"(?:^|[^\w./:-])(?:fehler|erreur|ошибка|не удалось|errors?|fail(?:ed|ing|s|ures?)?|panic(?:ked)?|exceptions?|fatal|",
    r"assert(?:ion)?|expected|not found|denied|undefined|unknown|cannot|no such|traceback)(?:$|[^\w./-]|\.(?:\W|$))",
    r"|错误|失败|エラー|失敗",
);

/// The forms of a line that only warns or explains.
const WARNS: &str = concat!(
    r"^\s*(?:\S+:\s+|\S*\d:\d+\s+)?\[?(?i:warn(?:ing)?|note|info|hint|help)\b",
    r"|^✖ \d+ problems? \(0 errors|, 0 remaining\)",
);

/// The forms of a line that says that a run went well.
const WORKED: &str = concat!(
    r"(?i)\b[1-9]\d* (?:\w+ )?(?:passed|passing)\b|(?:^|[^\w.])0 (?:errors?|failed|failures?)\b|test result: ok",
    r"|\bsuccess(?:ful(?:ly)?)?\b|^\s*(?:finished|ok)\b|\bbuilt in\b",
);

/// Returns whether a line fits one of these forms.
fn fits(form: usize, line: &str) -> bool {
    static FORMS: LazyLock<[Regex; 5]> = LazyLock::new(|| {
        [STRONG, WEAK, WARNS, WORKED, COUNTS].map(|form| Regex::new(form).expect("a valid pattern"))
    });
    FORMS[form].is_match(line)
}

/// Reports whether a line says by itself that something went wrong.
fn is_strong(line: &str) -> bool {
    fits(0, line) && !fits(2, line)
}

/// Returns whether a run has worked, by the last line of its output that says so; none if no line does.
pub(super) fn verdict(output: &str) -> Option<bool> {
    // Playwright counts those that failed in a line above those that passed.
    let counts_failed = |line: &str| {
        let count = line.strip_prefix("  ")?.strip_suffix(" failed")?;
        count.parse::<u32>().ok().filter(|count| *count > 0)
    };
    if output.lines().any(|line| counts_failed(line).is_some()) {
        return Some(false);
    }
    // ESLint counts there what `--fix` would mend, and above it what it has found.
    let lines = output.lines().rev();
    let mut lines = lines.filter(|line| !line.contains("potentially fixable with"));
    lines.find_map(|line| {
        let failed = is_strong(line) || fits(4, line) && !fits(2, line);
        (failed || fits(3, line)).then_some(!failed)
    })
}

/// Returns the lines of an output that say what went wrong; its last lines if there are none. Below the first line that is sure, the
/// lines count that may say more of it.
pub(super) fn lines_that_matter(output: &str) -> Vec<String> {
    let lines = output
        .lines()
        .map(str::trim_end)
        .filter(|line| !line.trim().is_empty());
    let mut lines: Vec<&str> = lines.collect();
    // The client's own first line says only that the command failed.
    if lines.len() > 1 && lines[0].starts_with("Exit code ") {
        lines.remove(0);
    }
    let sure = lines.iter().position(|line| is_strong(line));
    let (mut chosen, mut is_below) = (Vec::new(), false);
    for line in &lines[sure.unwrap_or_default()..] {
        let is_place = line.trim_start().starts_with("--> ");
        let is_weak = || fits(4, line) || fits(1, &line.to_lowercase());
        let matters = || is_strong(line) || is_weak() && !fits(2, line);
        is_below = if is_place { is_below } else { matters() };
        if is_below {
            chosen.push(*line);
        }
    }
    if chosen.is_empty() {
        chosen = lines[lines.len().saturating_sub(FAILURE_LINES / 2)..].to_vec();
    }
    let mut seen = BTreeSet::new();
    chosen.retain(|line| seen.insert(line.trim()));
    if chosen.len() > FAILURE_LINES && sure.is_some() {
        chosen.retain(|line| is_strong(line) || line.trim_start().starts_with("--> "));
    }
    // What came last has ended the run.
    chosen.drain(..chosen.len().saturating_sub(FAILURE_LINES));
    chosen.iter().map(|line| clipped(line, LINE_CAP)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_lines_of_a_failure_are_those_that_are_sure_and_what_is_below_them() {
        let warning =
            "warning: unused import: `crate::errors::Fail`\n --> src/errors.rs:3:5\n".repeat(13);
        let cargo = format!(
            "Compiling proc-macro-error v1.0.4\n{warning}error[E0308]: mismatched types\n  --> src/main.rs:10:5\n   |\n   | expected `u8`\n"
        );
        for (output, lines) in [
            (
                &*cargo,
                &[
                    "error[E0308]: mismatched types",
                    "--> src/main.rs:10:5",
                    "| expected `u8`",
                ][..],
            ),
            (
                "Collecting exceptiongroup\nCollecting pytest-failed-first\nERROR: No matching distribution found for foo==9",
                &["ERROR: No matching distribution found for foo==9"],
            ),
            (
                "Setting up libgpg-error0 (1.47) ...\nE: Unable to locate package foo",
                &["E: Unable to locate package foo"],
            ),
            (
                "cc -c src/error.c -o build/error.o\nmain.c:2:1: warning: unknown pragma\nmain.c:3:1: error: expected ';'\nmake: *** [main.o] Error 1",
                &[
                    "main.c:3:1: error: expected ';'",
                    "make: *** [main.o] Error 1",
                ],
            ),
            (
                "ok  \tm/errors\t0.1s\ncore/a.go:3:2: cannot use x\nFAIL\tm/core [build failed]",
                &["core/a.go:3:2: cannot use x", "FAIL\tm/core [build failed]"],
            ),
            (
                "In it a/error.rs\nE       assert 1 == 2\n1 failed in 0.1s",
                &["E       assert 1 == 2", "1 failed in 0.1s"],
            ),
            (
                "  1) test sums (T)\n     Assertion with == failed\n     left: 1\n58 tests, 1 failure",
                &["Assertion with == failed", "58 tests, 1 failure"],
            ),
            // Without a sure line the words decide, and without those the end.
            (
                "see m/errors\n  exit: it was denied.",
                &["exit: it was denied."],
            ),
            (
                "see m/errors\nthiserror v1",
                &["see m/errors", "thiserror v1"],
            ),
        ] {
            assert_eq!(lines_that_matter(output), lines, "{output}");
        }
        let many: Vec<String> = (0..30)
            .map(|n| format!("a.ts({n},4): error TS{n}: x"))
            .collect();
        assert_eq!(lines_that_matter(&many.join("\n")), many[18..]);
    }

    #[test]
    fn the_last_line_that_says_so_decides_whether_a_run_has_worked() {
        for (output, worked) in [
            ("✖ 3 problems (0 errors, 3 warnings)", Some(true)),
            (
                "✖ 5 problems (3 errors, 2 warnings)\n  0 errors and 1 warning potentially fixable with the `--fix` option.",
                Some(false),
            ),
            ("Found 3 errors (3 fixed, 0 remaining).", None),
            ("Found 4 errors (3 fixed, 1 remaining).", Some(false)),
            (
                "  1 failed\n    [chromium] › a.spec.ts:7:1 › adds\n  2 passed (3.4s)",
                Some(false),
            ),
            (
                "  1 flaky\n    [chromium] › a.spec.ts:7:1 › adds\n  2 passed (3.4s)",
                Some(true),
            ),
            ("a.ts(3,4): error TS2322: x\nFound 1 error.", Some(false)),
            ("test result: FAILED. 1 passed; 1 failed", Some(false)),
            ("Tests: 1 failed, 30 passed\nTime: 2 s", Some(false)),
            ("npm ERR! code ELIFECYCLE\n", Some(false)),
            (
                "TypeError: x is not a function\n    at main.js:3",
                Some(false),
            ),
            ("Error: as it should be\nTests: 30 passed", Some(true)),
            ("3 tests, 0 failures", Some(true)),
            ("✓ built in 2.3s", Some(true)),
            (
                "see src/error.c and m/errors, 10 errors of style",
                Some(false),
            ),
            (
                "drwxr-xr-x error-pages\nthiserror 1.0\nno errors, error handling",
                None,
            ),
            ("", None),
        ] {
            assert_eq!(verdict(output), worked, "{output}");
        }
    }
}
