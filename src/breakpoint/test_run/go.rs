//! `go test`, plain, `-v` and `-json`.
//!
//! Plain output names the package only behind its tests (`FAIL  example.com/x  0.1s`), so the names wait for it.

use super::{Runner, TestOutcome, add};

/// Reads the lines of `go test`.
pub(super) fn read(lines: &[&str]) -> Option<TestOutcome> {
    let mut reader = Reader {
        outcome: TestOutcome::new(Runner::Go),
        passing: Vec::new(),
        failing: Vec::new(),
        seen: false,
    };
    for line in lines {
        if line.starts_with("{\"") && line.contains("\"Action\":") {
            reader.event(line);
        } else {
            reader.line(line);
        }
    }
    reader.finish()
}

struct Reader {
    outcome: TestOutcome,
    /// Names whose package is not known yet.
    passing: Vec<String>,
    failing: Vec<String>,
    seen: bool,
}

impl Reader {
    fn line(&mut self, line: &str) {
        if let Some((verdict, name)) = verdict(line) {
            self.seen = true;
            match verdict {
                "PASS" => {
                    add(&mut self.outcome.passed, 1);
                    self.passing.push(name.to_owned());
                }
                "FAIL" => {
                    add(&mut self.outcome.failed, 1);
                    self.failing.push(name.to_owned());
                }
                _ => {}
            }
            return;
        }
        let mut fields = line.split('\t').map(str::trim);
        let (Some(word), Some(package)) = (fields.next(), fields.next()) else {
            // `FAIL example.com/x [build failed]` has a tab too; a lone FAIL or PASS is the end of a run.
            return;
        };
        // The time behind a package shows that its name is whole.
        let timed = fields.next().is_some_and(|time| !time.is_empty());
        let package_name = package.split(' ').next().unwrap_or_default();
        if package_name.is_empty() || package_name.starts_with('-') {
            return;
        }
        match word {
            "ok" if timed => self.package(package_name, true),
            "FAIL" if package.ends_with("failed]") => {
                self.outcome.built = false;
                self.outcome.failed_one(package_name);
                (self.seen, self.outcome.complete) = (true, true);
            }
            "FAIL" if timed => self.package(package_name, false),
            "?" if line.ends_with("[no test files]") => {
                (self.seen, self.outcome.complete) = (true, true);
            }
            _ => {}
        }
    }

    fn package(&mut self, package: &str, passed: bool) {
        (self.seen, self.outcome.complete) = (true, true);
        for name in std::mem::take(&mut self.passing) {
            self.outcome.passed_one(&format!("{package}.{name}"));
        }
        let failing = std::mem::take(&mut self.failing);
        if !passed && failing.is_empty() {
            // It panicked or was stopped before a test could be named.
            self.outcome.failed_one(package);
        }
        for name in failing {
            self.outcome.failed_one(&format!("{package}.{name}"));
        }
        if passed {
            self.outcome.passing_groups.push(package.to_owned());
        }
    }

    fn event(&mut self, line: &str) {
        let Ok(event) = serde_json::from_str::<serde_json::Value>(line) else {
            return;
        };
        let text = |field: &str| event[field].as_str().unwrap_or_default();
        let (action, package, name) = (text("Action"), text("Package"), text("Test"));
        if package.is_empty() {
            return;
        }
        self.seen = true;
        let full = format!("{package}.{name}");
        match (action, name) {
            ("fail", "") => {
                let own = format!("{package}.");
                let mut failing = self.outcome.failing.iter();
                if !failing.any(|name| name.starts_with(&own)) {
                    self.outcome.failed_one(package);
                }
                self.outcome.complete = true;
            }
            ("pass" | "skip", "") => {
                self.outcome.complete = true;
                if action == "pass" {
                    self.outcome.passing_groups.push(package.to_owned());
                }
            }
            ("pass", _) => {
                add(&mut self.outcome.passed, 1);
                self.outcome.passed_one(&full);
            }
            ("fail", _) => {
                add(&mut self.outcome.failed, 1);
                self.outcome.failed_one(&full);
            }
            ("output", "") if text("Output").contains("[build failed]") => {
                self.outcome.built = false;
            }
            _ => {}
        }
    }

    fn finish(mut self) -> Option<TestOutcome> {
        // Cut before the package was named.
        if !self.passing.is_empty() || !self.failing.is_empty() {
            self.outcome.complete = false;
        }
        for name in self.passing {
            self.outcome.passed_one(&name);
        }
        for name in self.failing {
            self.outcome.failed_one(&name);
        }
        self.outcome.whole = self.outcome.complete && self.outcome.built;
        // Without -v only failures are named: how many passed is not known.
        self.seen.then_some(self.outcome)
    }
}

/// `--- FAIL: TestTable/two (0.00s)`, which may stand behind what the test has printed without a line end.
fn verdict(line: &str) -> Option<(&str, &str)> {
    let (_, rest) = line.rsplit_once("--- ")?;
    let (verdict, rest) = rest.split_once(": ")?;
    let (name, time) = rest.rsplit_once(" (")?;
    let timed = time.strip_suffix("s)")?.parse::<f64>().is_ok();
    (timed && matches!(verdict, "PASS" | "FAIL" | "SKIP") && !name.contains(' '))
        .then_some((verdict, name))
}
