//! Recognises a test run and its outcome in shell output.
//!
//! The text is whatever a tool printed: coloured, cut, several runs in one, or no run at all. A runner is known by its
//! own lines (a start line, a verdict line, a summary), and what its tests print is separated as far as the runner
//! does so. Nothing is executed and nothing can fail: what is not understood is no test run.
//!
//! - `cargo`: `cargo test` and `cargo nextest`
//! - `pytest`: pytest, also with xdist
//! - `go`: `go test`, plain and `-json`
//! - `script`: jest and vitest

mod cargo;
mod go;
mod pytest;
mod script;

use std::collections::BTreeSet;

use strum::VariantArray as _;

use crate::clean;

/// The most test names kept of one run, of each kind: a handoff shows a few dozen at most.
const NAMES_CAP: usize = 2_000;

/// The longest test name, in bytes; generated names can be whole documents.
const NAME_CAP: usize = 300;

/// The most output that is read, in bytes: of a longer one the end, where the summary is.
const OUTPUT_CAP: usize = 4 * 1024 * 1024;

/// A program that runs tests.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, strum::VariantArray)]
pub enum Runner {
    /// `cargo test`.
    Cargo,
    /// `cargo nextest run`.
    Nextest,
    /// pytest.
    Pytest,
    /// `go test`.
    Go,
    /// jest.
    Jest,
    /// vitest.
    Vitest,
}

impl Runner {
    /// The command that people know it by.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Cargo => "cargo test",
            Self::Nextest => "cargo nextest",
            Self::Pytest => "pytest",
            Self::Go => "go test",
            Self::Jest => "jest",
            Self::Vitest => "vitest",
        }
    }
}

/// What one test run showed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TestOutcome {
    /// What ran the tests.
    pub runner: Runner,
    /// Whether the tests could be built or collected; if not, the counts mean little.
    pub built: bool,
    /// Whether the run reported its end; if not, the output was cut or the run stopped.
    pub complete: bool,
    /// Whether all tests of the project were asked for, as far as the command and the output show.
    pub whole: bool,
    /// How many tests passed, if reported.
    pub passed: Option<u64>,
    /// How many tests failed, if reported.
    pub failed: Option<u64>,
    /// The tests that passed, by name, as far as reported.
    pub passing: Vec<String>,
    /// The tests that failed, by name; a file or package whose tests could not be built counts as one.
    pub failing: Vec<String>,
    /// Files or packages all of whose tests passed, where the runner names no more than those.
    pub passing_groups: Vec<String>,
}

impl TestOutcome {
    const fn new(runner: Runner) -> Self {
        Self {
            runner,
            built: true,
            complete: false,
            whole: false,
            passed: None,
            failed: None,
            passing: Vec::new(),
            failing: Vec::new(),
            passing_groups: Vec::new(),
        }
    }

    /// Whether every test that ran passed, and at least one did.
    #[must_use]
    pub fn is_success(&self) -> bool {
        let ran = self.passed.unwrap_or(0) > 0
            || !self.passing.is_empty()
            || !self.passing_groups.is_empty();
        self.built
            && self.complete
            && ran
            && self.failed.unwrap_or(0) == 0
            && self.failing.is_empty()
    }

    /// Whether something failed or could not be built.
    #[must_use]
    pub fn is_failure(&self) -> bool {
        !self.built || self.failed.unwrap_or(0) > 0 || !self.failing.is_empty()
    }

    /// How many tests ran, as far as reported.
    #[must_use]
    pub fn ran(&self) -> u64 {
        let known = |reported: Option<u64>, names: usize| reported.unwrap_or(0).max(names as u64);
        known(self.passed, self.passing.len()) + known(self.failed, self.failing.len())
    }

    /// What it means for the moment; nothing if no test ran to its end.
    #[must_use]
    pub fn breakpoint(&self) -> Option<super::BreakpointKind> {
        if self.is_failure() {
            let reported = self.failed.filter(|count| *count > 0);
            return Some(super::BreakpointKind::TestsFailed { failed: reported });
        }
        self.is_success()
            .then_some(super::BreakpointKind::TestsPassed { count: self.passed })
    }

    /// Whether a test of this name could be one of this runner's: each has its own way to name them.
    #[must_use]
    pub fn could_own(&self, name: &str) -> bool {
        let of_script = name.contains(" > ") || name.contains(" › ") || is_script(name);
        let of_pytest =
            name.contains(".py::") || name.rsplit_once('.').is_some_and(|(_, end)| end == "py");
        let of_go = name.rsplit(['.', '/']).next().is_some_and(|last| {
            last.starts_with("Test") || last.starts_with("Example") || last.starts_with("Fuzz")
        }) && !name.contains("::");
        match self.runner {
            Runner::Jest | Runner::Vitest => of_script,
            Runner::Pytest => of_pytest,
            Runner::Go => of_go,
            Runner::Cargo | Runner::Nextest => !of_script && !of_pytest && !of_go,
        }
    }

    fn passed_one(&mut self, name: &str) {
        keep(&mut self.passing, name);
    }

    fn failed_one(&mut self, name: &str) {
        keep(&mut self.failing, name);
    }

    /// Drops doubles, and lets a failure win over a pass of the same name.
    fn settle(mut self) -> Self {
        let mut seen = BTreeSet::new();
        self.failing.retain(|name| seen.insert(name.clone()));
        self.passing.retain(|name| seen.insert(name.clone()));
        self
    }
}

/// What all test runs of one command came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Total {
    /// Whether every one of them passed.
    pub passed: bool,
    /// How many tests ran, if reported.
    pub count: Option<u64>,
    /// How many of them failed, if reported.
    pub failed: Option<u64>,
}

/// Sums up the runs of one command; nothing if none of them ran to its end or failed.
#[must_use]
pub fn total(outcomes: &[TestOutcome]) -> Option<Total> {
    let settled: Vec<&TestOutcome> = outcomes
        .iter()
        .filter(|one| one.breakpoint().is_some())
        .collect();
    let sum = |of: fn(&TestOutcome) -> u64| -> Option<u64> {
        let sum = settled.iter().map(|one| of(one)).sum();
        (sum > 0).then_some(sum)
    };
    let failed = |one: &TestOutcome| one.failed.unwrap_or(0).max(one.failing.len() as u64);
    let count = sum(TestOutcome::ran);
    (!settled.is_empty()).then(|| Total {
        passed: settled.iter().all(|one| one.is_success()),
        count,
        failed: count.map(|_| settled.iter().map(|one| failed(one)).sum()),
    })
}

fn keep(names: &mut Vec<String>, text: &str) {
    let name = name(text);
    if !name.is_empty() && names.len() < NAMES_CAP {
        names.push(name);
    }
}

/// A test's name as it is kept: on one line, safe to show and of a bounded length.
#[must_use]
pub fn name(text: &str) -> String {
    let name = clean::one_line(text.trim());
    name[..name.floor_char_boundary(NAME_CAP)].to_owned()
}

/// Whether a command line asks for every test of a runner that this test could be one of.
#[must_use]
pub fn asks_for(command: &str, name: &str) -> bool {
    Runner::VARIANTS
        .iter()
        .any(|runner| asks_for_all(*runner, command) && TestOutcome::new(*runner).could_own(name))
}

fn add(total: &mut Option<u64>, more: u64) {
    *total = Some(total.unwrap_or(0).saturating_add(more));
}

fn is_script(name: &str) -> bool {
    [".js", ".ts", ".jsx", ".tsx", ".mjs", ".cjs", ".mts", ".cts"]
        .iter()
        .any(|ending| name.ends_with(ending))
}

/// The number and the word of `12 passed`.
fn count(item: &str) -> Option<(u64, &str)> {
    let (number, word) = item.trim().split_once(' ')?;
    Some((number.parse().ok()?, word.trim()))
}

/// The outcomes of the test runs in the output of one shell command, in order of the runners.
///
/// `output` is what the command printed, standard output and standard error one behind the other. Without a command
/// line the output alone decides.
#[must_use]
pub fn recognise(command: Option<&str>, output: &str) -> Vec<TestOutcome> {
    if command.is_some_and(only_shows) {
        return Vec::new();
    }
    let start = output.ceil_char_boundary(output.len().saturating_sub(OUTPUT_CAP));
    let text = clean::without_escapes(&output[start..]);
    let lines: Vec<&str> = text.lines().collect();
    let (nextest, rest) = cargo::nextest(&lines);
    let found = [
        cargo::test(&rest),
        nextest,
        pytest::read(&lines),
        go::read(&lines),
        script::jest(&lines),
        script::vitest(&lines),
    ];
    found
        .into_iter()
        .flatten()
        .map(TestOutcome::settle)
        .map(|mut one| {
            one.whole &= command.is_some_and(|command| asks_for_all(one.runner, command));
            one
        })
        .collect()
}

/// The commands of a line: what stands between `&&`, `||`, `;`, `|` and line ends, as words. Quotes are not read,
/// because a wrong guess here costs no more than a run that is not recognised as whole.
fn commands(line: &str) -> impl Iterator<Item = Vec<&str>> {
    line.split(['&', '|', ';', '\n', '(', ')'])
        .map(|part| part.split_whitespace().collect::<Vec<_>>())
        .filter(|words| !words.is_empty())
}

/// Whether the line does nothing but show text: a log of a test run is no run.
fn only_shows(line: &str) -> bool {
    const SHOW: [&str; 16] = [
        "cat", "head", "tail", "less", "more", "grep", "rg", "sed", "awk", "echo", "printf", "git",
        "cd", "ls", "find", "bat",
    ];
    let mut any = false;
    let all = commands(line).all(|words| {
        any = true;
        SHOW.contains(&words[0])
    });
    any && all
}

/// Whether the command line asks for every test: it names the runner, and neither a path nor a filter.
fn asks_for_all(runner: Runner, line: &str) -> bool {
    const NARROW: [&str; 17] = [
        "-k",
        "-m",
        "-p",
        "--package",
        "--lib",
        "--test",
        "--bin",
        "--doc",
        "--example",
        "-E",
        "-run",
        "-t",
        "--testNamePattern",
        "--lf",
        "--last-failed",
        "--ff",
        "--skip",
    ];
    // `go test` and `cargo test` share their verb.
    let (program, name, plain): (&str, &str, &[&str]) = match runner {
        Runner::Cargo => ("cargo", "test", &[]),
        Runner::Nextest => ("cargo", "nextest", &["run"]),
        Runner::Pytest => ("", "pytest", &["."]),
        Runner::Go => ("go", "test", &["./..."]),
        Runner::Jest => ("", "jest", &["run"]),
        Runner::Vitest => ("", "vitest", &["run"]),
    };
    let of_scripts = matches!(runner, Runner::Jest | Runner::Vitest);
    commands(line).any(|words| {
        // `npm test` and its like run what the project calls all.
        let by_script = words.len() <= 3
            && match words[0] {
                "make" | "just" => true,
                "npm" | "pnpm" | "yarn" | "bun" => of_scripts,
                _ => false,
            }
            && words.last().is_some_and(|word| word.starts_with("test"));
        let base = |word: &&str| word.rsplit('/').next().unwrap_or_default().to_owned();
        let at = words.iter().position(|word| base(word) == name);
        let at = at.filter(|at| {
            let mut before = words[..*at].iter();
            program.is_empty() || before.any(|word| base(word) == program)
        });
        by_script
            || at.is_some_and(|at| {
                words[at + 1..].iter().all(|word| {
                    let narrow = NARROW
                        .iter()
                        .any(|flag| word.split('=').next() == Some(flag));
                    let redirection = word.starts_with("2>") || word.starts_with('>');
                    (word.starts_with('-') && !narrow)
                        || plain.contains(word)
                        || redirection
                        || word.chars().all(|c| c.is_ascii_digit())
                })
            })
    })
}

#[cfg(test)]
mod tests;
