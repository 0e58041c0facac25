//! Parses the output of a command by the [table](super::table) of runners.

use std::sync::{LazyLock, OnceLock};

use regex::{Captures, Regex, RegexSet};

use super::{
    TestOutcome,
    table::{Meaning, PATTERNS, Part, ROWS, Row},
};

static ALL: LazyLock<RegexSet> = LazyLock::new(|| {
    RegexSet::new(PATTERNS.iter().map(|one| one.4)).expect("the table's patterns are valid")
});

static EACH: [OnceLock<Regex>; PATTERNS.len()] = [const { OnceLock::new() }; PATTERNS.len()];

/// The patterns of a count: `3 passed`, and if a line has no such count, `Passed: 3`, `pass 3` and `failures=3`.
static COUNTS: LazyLock<[Regex; 2]> = LazyLock::new(|| {
    let counts = [
        r"(?<count>[0-9]+) (?<word>[a-z]+)",
        r"(?<word>[A-Za-z]+)(?:=|:? +)(?<count>[0-9]+)",
    ];
    counts.map(|one| Regex::new(one).expect("a valid pattern"))
});

/// The most runs of one runner that are distinguished: each is added to the state separately, and a command has only a few.
pub(super) const RUNS_CAP: usize = 16;

/// The words that count failed tests: `timed out` and `exec failed` are those of nextest.
const FAILED: [&str; 9] = [
    "failed", "failing", "failure", "failures", "fail", "error", "errors", "timed", "exec",
];

/// Returns the runs in these lines, in order of the runners.
pub(super) fn read_runs(lines: &[&str]) -> Vec<TestOutcome> {
    let fits = lines
        .iter()
        .map(|line| ALL.matches(line).into_iter().collect());
    let mut fits: Vec<Vec<usize>> = fits.collect();
    let mut found = Vec::new();
    for row in &ROWS {
        let mut reader = Reader {
            row,
            found: Vec::new(),
            now: TestOutcome::new(row.word),
            run: Run::default(),
        };
        let mut own = None;
        for (at, line) in lines.iter().enumerate() {
            let fit = fits[at].iter().find(|at| {
                let (runner, part) = (PATTERNS[**at].0, PATTERNS[**at].1);
                runner == row.word && (part == Part::Any || part == reader.run.part)
            });
            if let Some(fit) = fit {
                let first = own.map_or(at, |(first, _)| first);
                own = Some((first, at));
                reader.take_line(*fit, line);
            }
        }
        reader.close_run();
        // A test that nextest runs prints the same lines as `cargo test`.
        if let ("cargo nextest", Some((first, last))) = (row.word, own) {
            let built = reader.found.iter().all(|one| one.built);
            fits[if built { first } else { 0 }..=last].fill(Vec::new());
        }
        found.append(&mut reader.found);
    }
    found
}

/// A reader of the runs of one runner, line by line.
struct Reader {
    row: &'static Row,
    found: Vec<TestOutcome>,
    now: TestOutcome,
    run: Run,
}

/// The other data about the run that is being read.
#[derive(Default)]
struct Run {
    part: Part,
    seen: bool,
    /// True if a summary has come and no later start.
    ended: bool,
    /// The number of tests according to the summary, which may lack the number that passed; 0 if the summary lacks this number.
    all: Option<u64>,
    /// True if tests were left out.
    narrowed: bool,
    listed: Vec<String>,
    said: Vec<String>,
    /// The tests whose package is not known yet, each with whether it passed.
    waiting: Vec<(bool, String)>,
    file: String,
    /// The blocks that enclose a line of a tree, each with its indentation in bytes.
    path: Vec<(usize, String)>,
}

impl Reader {
    fn take_line(&mut self, at: usize, line: &str) {
        let pattern = &PATTERNS[at];
        let regex = EACH[at].get_or_init(|| Regex::new(pattern.4).expect("it is in the set, too"));
        let Some(groups) = regex.captures(line) else {
            return;
        };
        let group = |name| groups.name(name).map_or("", |found| found.as_str());
        let name = if group("name").is_empty() {
            group("spec")
        } else {
            group("name")
        };
        match pattern.2 {
            Meaning::Start => {
                self.begin_run();
                (self.run.seen, self.run.ended) = (true, false);
            }
            Meaning::Seen => {
                self.begin_run();
                self.run.seen = true;
            }
            Meaning::Summary => {
                self.begin_run();
                (self.run.seen, self.run.ended) = (true, true);
                self.count_tests(line);
            }
            Meaning::More => self.count_tests(line),
            Meaning::Ended => (self.run.seen, self.run.ended) = (true, true),
            Meaning::Broken => {
                (self.run.seen, self.now.built) = (true, false);
                let name = if self.run.file.is_empty() {
                    name
                } else {
                    &self.run.file
                };
                self.run.said.push(name.to_owned());
            }
            // Where no failure was shown, the part that has failed was not.
            Meaning::PartFailed => {
                self.run.ended &= self.now.failed.unwrap_or(0) > 0 || !self.run.said.is_empty();
            }
            Meaning::Passed => self.now.passed_one(name),
            Meaning::PassedAfterAll => {
                self.run.said.retain(|failed| failed != name);
                self.now.passed_one(name);
            }
            Meaning::Said if self.run.file.is_empty() => self.run.said.push(name.to_owned()),
            Meaning::Said => self.run.said.push(format!("{} › {name}", self.run.file)),
            Meaning::Listed => self.run.listed.push(name.to_owned()),
            Meaning::OnePassed | Meaning::OneFailed => {
                self.count_one(pattern.2 == Meaning::OnePassed, group("package"), name);
            }
            Meaning::PackagePassed | Meaning::PackageFailed | Meaning::PackageEnded => {
                self.take_package(pattern.2, name);
            }
            Meaning::FilePassed | Meaning::FileFailed => self.take_file(pattern.2, name),
            Meaning::Tree => self.take_tree_line(&groups, line),
            Meaning::Nothing => {}
        }
        if pattern.3 != Part::Any {
            self.run.part = pattern.3;
        }
    }

    /// Closes a run that has ended before another one begins.
    fn begin_run(&mut self) {
        if self.run.ended && !self.row.many && self.found.len() + 1 < RUNS_CAP {
            self.close_run();
        }
    }

    fn count_tests(&mut self, line: &str) {
        // `12/30 tests run`: it has stopped.
        let mut shares = line.split(' ').filter_map(|word| word.split_once('/'));
        self.run.narrowed |= self.row.word == "cargo nextest"
            && shares.any(|(ran, all)| ran != all && all.parse::<u64>().is_ok());
        let all = self.run.all.get_or_insert(0);
        let failed = self.now.failed.get_or_insert(0);
        for pattern in &*COUNTS {
            let mut any = false;
            for found in pattern.captures_iter(line) {
                let count = found["count"].parse().unwrap_or(0);
                match found["word"].to_ascii_lowercase().as_str() {
                    "passed" | "xpassed" | "passing" | "pass" | "succeeded" => {
                        add_count(&mut self.now.passed, count);
                    }
                    "test" | "tests" | "example" | "examples" | "doctests" | "run" | "runs" => {
                        *all = all.saturating_add(count);
                    }
                    "filtered" | "deselected" => self.run.narrowed |= count > 0,
                    word if FAILED.contains(&word) => *failed = failed.saturating_add(count),
                    _ => continue,
                }
                any = true;
            }
            if any {
                break;
            }
        }
    }

    /// Counts one test by its line; its package may be named on a later line.
    fn count_one(&mut self, passed: bool, package: &str, name: &str) {
        self.run.seen = true;
        let outcome = &mut self.now;
        let counts = (&mut outcome.passed, &mut outcome.failed);
        add_count(if passed { counts.0 } else { counts.1 }, 1);
        if package.is_empty() {
            self.run.waiting.push((passed, name.to_owned()));
        } else if passed {
            outcome.passed_one(&format!("{package}.{name}"));
        } else {
            self.run.said.push(format!("{package}.{name}"));
        }
    }

    fn take_package(&mut self, meaning: Meaning, package: &str) {
        (self.run.seen, self.run.ended) = (true, true);
        for (passed, name) in std::mem::take(&mut self.run.waiting) {
            let name = format!("{package}.{name}");
            if passed {
                self.now.passed_one(&name);
            } else {
                self.run.said.push(name);
            }
        }
        let own = format!("{package}.");
        if meaning == Meaning::PackagePassed {
            self.now.passing_groups.push(package.to_owned());
        } else if meaning == Meaning::PackageFailed
            && !self.run.said.iter().any(|name| name.starts_with(&own))
        {
            // It panicked or was stopped before a test could be named.
            self.run.said.push(package.to_owned());
        }
    }

    /// Records a file with its outcome; a tree of its tests may follow.
    fn take_file(&mut self, meaning: Meaning, file: &str) {
        self.begin_run();
        self.run.path.clear();
        if meaning == Meaning::FilePassed {
            self.now.passing_groups.push(file.to_owned());
        }
        if self.row.word == "jest" {
            file.clone_into(&mut self.run.file);
        }
    }

    fn take_tree_line(&mut self, groups: &Captures<'_>, line: &str) {
        let indentation = line.len() - line.trim_start().len();
        self.run.path.retain(|(have, _)| *have < indentation);
        let verdict =
            ["passed", "failed", "block"].map(|name| groups.name(name).map(|one| one.as_str()));
        let blocks = self.run.path.iter().map(|(_, block)| block.as_str());
        let whole = |name| {
            let parts: Vec<&str> = [self.run.file.as_str()]
                .into_iter()
                .chain(blocks)
                .chain([name])
                .collect();
            parts.join(" › ")
        };
        match verdict {
            [Some(name), _, _] => self.now.passed_one(&whole(name)),
            [_, Some(name), _] => self.run.said.push(whole(name)),
            [_, _, Some(block)] => self.run.path.push((indentation, block.to_owned())),
            _ => {}
        }
    }

    /// Ends the run that is being read, and begins the next.
    fn close_run(&mut self) {
        let mut run = std::mem::take(&mut self.run);
        let mut now = std::mem::replace(&mut self.now, TestOutcome::new(self.row.word));
        if !run.seen {
            return;
        }
        now.complete = (run.ended && run.waiting.is_empty()) || !now.built;
        for (passed, name) in run.waiting {
            if passed {
                now.passed_one(&name);
            } else {
                run.said.push(name);
            }
        }
        // A test may have printed lines that look like verdicts; the list at the end is the runner's own.
        if !run.listed.is_empty() && now.failed == Some(run.listed.len() as u64) {
            run.said.clear();
        }
        for name in run.said.iter().chain(&run.listed) {
            now.failed_one(name);
        }
        if let Some(all) = run.all {
            let passed = all.saturating_sub(now.failed.unwrap_or(0));
            now.passed = now.passed.or(Some(passed));
        }
        now.whole = now.complete && now.built && !run.narrowed;
        self.found.push(now.settle());
    }
}

fn add_count(total: &mut Option<u64>, more: u64) {
    *total = Some(total.unwrap_or(0).saturating_add(more));
}
