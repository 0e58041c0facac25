//! Recognises a test run and its outcome in shell output.
//!
//! The text is whatever a tool printed: coloured, cut, several runs in one, or no run at all. A runner is recognised by its
//! own lines (a start line, a verdict line, a summary), and the output of its tests is separated as far as the runner
//! does so. Nothing is executed and nothing can fail: output that is not understood is not a test run.
//!
//! - `table`: the runners, and the patterns of their lines
//! - `reader`: reads lines by the table
//! - `command`: which tests a command line asks for, and where it runs
//!
//! A test belongs to an [`Owner`]: its runner and the directory that the runner ran in (`command`), because two programs of
//! one repository may have tests of the same name.

mod command;
mod reader;
mod table;

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use pitstop_base::clean;

pub use command::changes_directory;
use command::{Command, Scope};
use table::{ROWS, Row};

/// The most test names kept of one run, of each kind: a handoff shows a few dozen at most.
const NAMES_CAP: usize = 2_000;

/// The longest test name, in bytes; generated names can be whole documents.
const NAME_CAP: usize = 300;

/// The longest command line that is quoted back, in characters.
const COMMAND_CAP: usize = 200;

/// The longest command line that identifies an owner, in characters: two longer ones with the same start count as one.
const OWNER_COMMAND_CAP: usize = 2_000;

/// The most output that is read, in bytes; if it is longer, its end is read, where the summary is.
const OUTPUT_CAP: usize = 4 * 1024 * 1024;

/// The owner of a test: a runner in a directory. Two tests of one name and different owners are two tests.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(default)]
pub struct Owner {
    /// The runner, by the command that people know it by; empty if it is not known.
    pub runner: String,
    /// The directory that it ran in; `None` if that is not known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub directory: Option<String>,
    /// The command line, if the runner or the directory is not known: then only the very same command has the same tests.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub command: Option<String>,
}

impl Owner {
    fn new(runner: &str, directory: Option<&str>, command: &str) -> Self {
        let unknown = runner.is_empty() || directory.is_none();
        // `pitstop test` itself reports the command that it runs without this prefix.
        let command = command.trim_start_matches("pitstop test -- ");
        Self {
            runner: runner.to_owned(),
            directory: directory.map(|path| clean::one_line(path).into_owned()),
            command: unknown.then(|| clean::stripped(command, OWNER_COMMAND_CAP)),
        }
    }
}

/// A shell command that has run, as far as it is known.
#[derive(Clone, Copy, Debug, Default)]
pub struct Shell<'a> {
    /// The command line; without one the output alone decides.
    pub command: Option<&'a str>,
    /// The working directory of the shell when the command began.
    pub directory: Option<&'a str>,
    /// True if it is known to have failed.
    pub failed: bool,
}

/// The outcome of one test run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TestOutcome {
    /// The program that ran the tests, by the command that people know it by.
    pub runner: &'static str,
    /// The owner of the tests.
    pub owner: Owner,
    /// The command line as it is quoted; empty if it is not known.
    pub command: String,
    /// True if the tests could be built or collected; if not, the counts mean little.
    pub built: bool,
    /// True if the run reported its end; if not, the output was cut or the run stopped.
    pub complete: bool,
    /// True if all tests of the owner were requested, as far as the command and the output show.
    pub whole: bool,
    /// The paths below which all tests were requested: the names of these tests begin with them.
    pub below: Vec<String>,
    /// True if the command failed though no test did: another part of it may have failed, so this is not a success.
    pub spoilt: bool,
    /// The number of tests that passed, if reported.
    pub passed: Option<u64>,
    /// The number of tests that failed, if reported.
    pub failed: Option<u64>,
    /// The tests that passed, by name, as far as reported.
    pub passing: Vec<String>,
    /// The tests that failed, by name; a file or package whose tests could not be built counts as one.
    pub failing: Vec<String>,
    /// The files or packages all of whose tests passed, if the runner names only those and not the tests.
    pub passing_groups: Vec<String>,
    /// The parts of names by which a filter has selected the tests of these, with their anchors; empty without a filter.
    pub picked: Vec<String>,
}

impl TestOutcome {
    fn new(runner: &'static str) -> Self {
        Self {
            runner,
            built: true,
            ..Self::default()
        }
    }

    /// Reports whether at least one test ran and every test that ran passed.
    pub fn is_success(&self) -> bool {
        let ran = self.passed.unwrap_or(0) > 0
            || !self.passing.is_empty()
            || !self.passing_groups.is_empty();
        self.built
            && self.complete
            && !self.spoilt
            && ran
            && self.failed.unwrap_or(0) == 0
            && self.failing.is_empty()
    }

    /// Reports whether something failed or could not be built.
    pub fn is_failure(&self) -> bool {
        !self.built || self.failed.unwrap_or(0) > 0 || !self.failing.is_empty()
    }

    /// Returns the number of tests that ran, as far as reported.
    pub fn count_tests(&self) -> u64 {
        let known = |reported: Option<u64>, names: usize| reported.unwrap_or(0).max(names as u64);
        known(self.passed, self.passing.len()) + known(self.failed, self.failing.len())
    }

    /// Reports whether a complete run would include the test of this name.
    pub fn covers_test(&self, name: &str) -> bool {
        let name = name.trim_start_matches("./");
        let begins = |path: &String| {
            let rest = name.strip_prefix(path.as_str());
            rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(['/', ':', ' ', '[']))
        };
        self.whole || self.below.iter().any(begins)
    }

    fn passed_one(&mut self, name: &str) {
        keep_name(&mut self.passing, name);
    }

    fn failed_one(&mut self, name: &str) {
        keep_name(&mut self.failing, name);
    }

    /// Removes duplicates, and lets a failure take precedence over a pass of the same name.
    fn settle(mut self) -> Self {
        let mut seen = BTreeSet::new();
        self.failing.retain(|name| seen.insert(name.clone()));
        self.passing.retain(|name| seen.insert(name.clone()));
        self
    }
}

/// The total of all test runs of one command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Total {
    /// True if every one of them passed.
    pub passed: bool,
    /// The number of tests that ran, if reported.
    pub count: Option<u64>,
    /// The number of tests that failed, if reported.
    pub failed: Option<u64>,
}

/// Sums up the runs of one command; returns `None` if none of them passed or failed.
pub fn sum_up(outcomes: &[TestOutcome]) -> Option<Total> {
    let settled: Vec<&TestOutcome> = outcomes
        .iter()
        .filter(|one| one.is_failure() || one.is_success())
        .collect();
    let sum = |of: fn(&TestOutcome) -> u64| -> Option<u64> {
        let sum = settled.iter().map(|one| of(one)).sum();
        (sum > 0).then_some(sum)
    };
    let failed = |one: &TestOutcome| one.failed.unwrap_or(0).max(one.failing.len() as u64);
    let count = sum(TestOutcome::count_tests);
    (!settled.is_empty()).then(|| Total {
        passed: settled.iter().all(|one| one.is_success()),
        count,
        failed: count.map(|_| settled.iter().map(|one| failed(one)).sum()),
    })
}

fn keep_name(names: &mut Vec<String>, text: &str) {
    let name = kept_name(text);
    if !name.is_empty() && names.len() < NAMES_CAP {
        names.push(name);
    }
}

/// Returns a test's name as it is kept: on one line, safe to show and of a bounded length.
pub fn kept_name(text: &str) -> String {
    let name = clean::one_line(text.trim());
    name[..name.floor_char_boundary(NAME_CAP)].to_owned()
}

/// Returns the owner of the tests that a command line runs, without its output, and whether it requests all of them.
///
/// The runner may be given by its word. The directory is that of the shell.
pub fn owner_of(command: &str, runner: Option<&str>, directory: Option<&str>) -> (Owner, bool) {
    let commands = command::read_commands(command, directory);
    let asked = |row: &Row| commands.iter().any(|one| one.asks_of(row).0 == 2);
    let is_it = |row: &&Row| runner.map_or_else(|| asked(row), |word| word == row.word);
    let mut named = ROWS.iter().filter(is_it);
    let (Some(row), None) = (named.next(), named.next()) else {
        return (Owner::new("", directory, command), false);
    };
    let runs = runs_of(&commands, row);
    let (place, scope) = if runs.is_empty() {
        // The command only shows a text, but was reported as a test run.
        let first = commands.first().and_then(|one| one.directory.clone());
        (first, Scope::Some)
    } else {
        place_of_runs(&runs, row, false)
    };
    let place = place.as_deref();
    (Owner::new(row.word, place, command), scope == Scope::All)
}

/// Returns the commands that are most certainly runs of this runner.
fn runs_of<'a>(commands: &'a [Command], row: &Row) -> Vec<&'a Command> {
    let acting = commands.iter().filter(|command| !command.only_shows());
    let surest = acting.clone().map(|one| one.asks_of(row).0).max();
    acting
        .filter(|one| Some(one.asks_of(row).0) == surest)
        .collect()
}

/// Returns the directory that these commands run in, if it is a single one, and the tests that they request.
fn place_of_runs(runs: &[&Command], row: &Row, failed: bool) -> (Option<String>, Scope) {
    let Some(first) = runs.first() else {
        return (None, Scope::Some);
    };
    let one_place = runs.iter().all(|one| one.directory == first.directory);
    let mut scopes = runs.iter().map(|one| one.asks_of(row).1);
    // A failure may have kept the later commands from running.
    let is_all = |scope: Scope| scope == Scope::All;
    let all = if failed {
        scopes.all(is_all)
    } else {
        scopes.any(is_all)
    };
    let scope = match runs {
        _ if failed && runs.iter().any(|one| one.stops_early()) => Scope::Some,
        _ if all => Scope::All,
        [only] => only.asks_of(row).1,
        _ => Scope::Some,
    };
    (first.directory.clone().filter(|_| one_place), scope)
}

/// Returns a command line as it is kept and quoted.
pub fn quote_command(command: &str) -> String {
    clean::stripped(command, COMMAND_CAP)
}

/// Returns the outcomes of the test runs in the output of a command whose directory is not known.
pub fn recognise_runs(command: Option<&str>, output: &str) -> Vec<TestOutcome> {
    let shell = Shell {
        command,
        ..Shell::default()
    };
    shell.recognise_runs(output)
}

#[cfg(test)]
impl<'a> Shell<'a> {
    /// Describes a command in the directory `/p`.
    pub(crate) fn in_p(command: &'a str, failed: bool) -> Self {
        Self {
            command: Some(command),
            directory: Some("/p"),
            failed,
        }
    }
}

impl Shell<'_> {
    /// Returns the outcomes of the test runs in the output of this command, in order of the runners.
    ///
    /// `output` is its standard output followed by its standard error.
    pub fn recognise_runs(&self, output: &str) -> Vec<TestOutcome> {
        let line = self.command.unwrap_or_default();
        let commands = command::read_commands(line, self.directory);
        if !commands.is_empty() && commands.iter().all(Command::only_shows) {
            return Vec::new();
        }
        let start = output.ceil_char_boundary(output.len().saturating_sub(OUTPUT_CAP));
        let text = clean::without_escapes(&output[start..]);
        let lines: Vec<&str> = text.lines().collect();
        let mut found = reader::read_runs(&lines);
        let spoilt = self.failed && !found.iter().any(TestOutcome::is_failure);
        for outcomes in found.chunk_by_mut(|a, b| a.runner == b.runner) {
            let row = ROWS.iter().find(|row| row.word == outcomes[0].runner);
            let Some(row) = row else { continue };
            let runs = runs_of(&commands, row);
            // If there are as many runs as commands, each belongs to its own; if there are fewer, it is unknown which is missing.
            let each_own = runs.len() == outcomes.len();
            for (nth, one) in outcomes.iter_mut().enumerate() {
                let own = if each_own {
                    &runs[nth..=nth]
                } else {
                    &runs[..]
                };
                let (place, scope) = place_of_runs(own, row, one.is_failure());
                one.command = quote_command(line);
                one.owner = Owner::new(one.runner, place.as_deref(), line);
                one.spoilt = spoilt;
                one.picked = own.iter().flat_map(|run| run.picked_names()).collect();
                if !std::mem::take(&mut one.whole) || spoilt {
                    continue;
                }
                match scope {
                    Scope::All => one.whole = true,
                    Scope::Below(paths) => one.below = paths,
                    Scope::Some => {}
                }
            }
        }
        found
    }
}

#[cfg(test)]
mod tests;
