//! `PreservedState`: the facts that must survive a reboot, and how each source feeds it.

use std::collections::{BTreeMap, BTreeSet};

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};

use crate::{breakpoint::test_run::TestOutcome, scratchpad};

/// How much an issue hurts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    /// A blemish.
    Low,
    /// Worth fixing.
    #[default]
    Medium,
    /// Stands in the way of the objective.
    High,
    /// Nothing goes on before it is fixed.
    Critical,
}

impl Severity {
    /// The word that stands in handoffs and signals.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Low => "low",
            Self::Medium => "medium",
            Self::High => "high",
            Self::Critical => "critical",
        }
    }
}

/// Something that was decided, and why.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Decision {
    /// What was decided.
    pub description: String,
    /// Why; empty if nobody said.
    pub rationale: String,
    /// When it was recorded.
    pub timestamp: DateTime<Utc>,
}

/// A known problem.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Issue {
    /// What is wrong.
    pub description: String,
    /// How much it hurts.
    pub severity: Severity,
    /// The files it concerns.
    pub files: Vec<String>,
    /// Whether it has been dealt with.
    pub addressed: bool,
}

/// What the last test run showed, by test name.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TestState {
    /// Tests that passed.
    pub passing: Vec<String>,
    /// Tests that failed.
    pub failing: Vec<String>,
    /// Tests that failed in the run before and pass now.
    pub fixed: Vec<String>,
    /// Tests that passed in the run before and fail now.
    pub regressed: Vec<String>,
}

impl TestState {
    /// Takes in what a test run showed. `fixed` and `regressed` are against the runs before this one; a run of some of
    /// the tests leaves what is known of the others. A run that could not be built says nothing about any test: it
    /// stands in `failing` by the runner's name until one can be built again.
    pub fn update(&mut self, outcome: &TestOutcome) {
        let broken = format!("({} could not be built)", outcome.runner.word());
        (self.fixed, self.regressed) = (Vec::new(), Vec::new());
        self.failing.retain(|name| *name != broken);
        if !outcome.built && outcome.passing.is_empty() {
            self.failing.push(broken);
            for name in &outcome.failing {
                if !self.failing.contains(name) {
                    self.failing.push(name.clone());
                }
            }
            return;
        }
        let known: BTreeSet<&str> = outcome.passing.iter().map(String::as_str).collect();
        let failing: BTreeSet<&str> = outcome.failing.iter().map(String::as_str).collect();
        let in_group = |name: &str| {
            let rest = |group: &String| name.strip_prefix(group.as_str()).map(str::to_owned);
            outcome
                .passing_groups
                .iter()
                .filter_map(rest)
                .any(|rest| rest.is_empty() || rest.starts_with(['.', ' ']))
        };
        // A runner that does not name what passed: whatever a whole run does not call failed.
        let unnamed = outcome
            .passed
            .is_none_or(|count| count > known.len() as u64);
        let all_failures_named = outcome
            .failed
            .is_none_or(|count| count <= failing.len() as u64);
        let by_silence =
            |name: &str| outcome.whole && unnamed && all_failures_named && outcome.could_own(name);
        let passes = |name: &str| {
            !failing.contains(name) && (known.contains(name) || in_group(name) || by_silence(name))
        };
        // A whole run that names its tests is the truth about which there are.
        let gone = |name: &str| {
            let told = known.contains(name) || failing.contains(name);
            outcome.whole && !unnamed && all_failures_named && outcome.could_own(name) && !told
        };
        let before = std::mem::take(self);
        for name in before.failing {
            if passes(&name) {
                self.fixed.push(name.clone());
                self.passing.push(name);
            } else if !gone(&name) && !failing.contains(name.as_str()) {
                self.failing.push(name);
            }
        }
        for name in before.passing {
            if failing.contains(name.as_str()) {
                self.regressed.push(name);
            } else if !gone(&name) && !known.contains(name.as_str()) {
                self.passing.push(name);
            }
        }
        let have: BTreeSet<String> = self.passing.iter().cloned().collect();
        let new = outcome.passing.iter().filter(|name| !have.contains(*name));
        self.passing.extend(new.cloned());
        self.failing.extend(outcome.failing.iter().cloned());
        for names in [&mut self.passing, &mut self.failing] {
            let over = names.len().saturating_sub(KEPT_NAMES);
            names.drain(..over);
        }
    }
}

/// The most test names kept of each kind, the latest ones.
const KEPT_NAMES: usize = 5_000;

/// The facts that must survive a reboot.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PreservedState {
    /// What the work is for.
    pub current_objective: Option<String>,
    /// Tracked files that differ from the last commit.
    pub modified_files: Vec<String>,
    /// Files that git does not know yet.
    pub created_files: Vec<String>,
    /// What was decided, oldest first.
    pub decisions: Vec<Decision>,
    /// What is known to be wrong.
    pub known_issues: Vec<Issue>,
    /// What is done.
    pub completed_items: Vec<String>,
    /// What is still to do.
    pub pending_items: Vec<String>,
    /// Whatever else the agent asked to keep.
    pub custom: BTreeMap<String, String>,
    /// What the tests said.
    pub test_state: TestState,
}

impl PreservedState {
    /// Sets what the work is for; an empty text clears it.
    pub fn set_objective(&mut self, objective: &str) {
        let objective = objective.trim();
        self.current_objective = (!objective.is_empty()).then(|| objective.to_owned());
    }

    /// Records a decision with its reason.
    pub fn record_decision(&mut self, description: &str, rationale: &str, at: DateTime<Utc>) {
        self.decisions.push(Decision {
            description: description.trim().to_owned(),
            rationale: rationale.trim().to_owned(),
            timestamp: at,
        });
    }

    /// Records a problem that is not yet dealt with.
    pub fn record_issue(&mut self, description: &str, severity: Severity, files: Vec<String>) {
        self.known_issues.push(Issue {
            description: description.trim().to_owned(),
            severity,
            files,
            addressed: false,
        });
    }

    /// Marks the issue with this description as dealt with; else the newest open one that contains the text.
    pub fn resolve_issue(&mut self, description: &str) {
        let description = description.trim();
        let open = |issue: &Issue| !issue.addressed;
        let exact = |issue: &Issue| open(issue) && issue.description == description;
        let similar = |issue: &Issue| open(issue) && issue.description.contains(description);
        let issues = &mut self.known_issues;
        let found = issues
            .iter()
            .rposition(exact)
            .or_else(|| issues.iter().rposition(similar));
        if let Some(at) = found {
            issues[at].addressed = true;
        }
    }

    /// Adds an item to do, unless it is already listed as to do or done.
    pub fn add_pending(&mut self, item: &str) {
        let item = item.trim();
        let listed = |list: &[String]| list.iter().any(|have| have == item);
        if !item.is_empty() && !listed(&self.pending_items) && !listed(&self.completed_items) {
            self.pending_items.push(item.to_owned());
        }
    }

    /// Marks an item as done, which takes it out of the items to do.
    pub fn mark_completed(&mut self, item: &str) {
        let item = item.trim();
        self.pending_items.retain(|have| have != item);
        if !item.is_empty() && !self.completed_items.iter().any(|have| have == item) {
            self.completed_items.push(item.to_owned());
        }
    }

    /// Takes in the outcome of a test run.
    pub fn update_tests(&mut self, outcome: &TestOutcome) {
        self.test_state.update(outcome);
    }

    /// Keeps a value under a key; an empty value removes the key.
    pub fn set_custom(&mut self, key: &str, value: &str) {
        if value.is_empty() {
            self.custom.remove(key);
        } else {
            self.custom.insert(key.to_owned(), value.to_owned());
        }
    }

    /// Takes in what the scratchpad says: its checklist and, if it has one, its *Objective* section.
    /// The other sections travel as they stand, in the handoff's scratchpad section.
    pub fn feed_scratchpad(&mut self, notes: &str) {
        let list = scratchpad::checklist(notes);
        for item in &list.completed {
            self.mark_completed(item);
        }
        for item in &list.pending {
            self.add_pending(item);
        }
        if self.current_objective.is_none()
            && let Some(objective) = scratchpad::section(notes, "Objective")
        {
            self.set_objective(&objective);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn marking_an_item_completed_takes_it_out_of_pending() {
        let mut state = PreservedState::default();
        state.add_pending("write tests");
        state.add_pending("write tests");
        assert_eq!(state.pending_items, ["write tests"]);
        state.mark_completed("write tests");
        assert!(state.pending_items.is_empty());
        assert_eq!(state.completed_items, ["write tests"]);
        state.add_pending("write tests");
        assert!(
            state.pending_items.is_empty(),
            "a done item is not to do again"
        );
    }

    fn run(command: &str, output: &str) -> TestOutcome {
        let mut found = crate::breakpoint::test_run::recognise(Some(command), output);
        assert_eq!(found.len(), 1, "{output}");
        found.remove(0)
    }

    fn cargo(command: &str, verdicts: &[(&str, &str)]) -> TestOutcome {
        let lines: Vec<_> = verdicts
            .iter()
            .map(|(name, word)| format!("test {name} ... {word}\n"))
            .collect();
        let lines = lines.concat();
        let count = |word: &str| verdicts.iter().filter(|(_, have)| *have == word).count();
        let (ok, failed) = (count("ok"), count("FAILED"));
        run(
            command,
            &format!(
                "running {} tests\n{lines}\ntest result: ok. {ok} passed; {failed} failed; 0 ignored; 0 measured; 0 filtered out\n",
                ok + failed
            ),
        )
    }

    #[test]
    fn fixed_and_regressed_come_from_the_run_before() {
        let mut state = PreservedState::default();
        state.update_tests(&cargo(
            "cargo test",
            &[("a", "ok"), ("b", "FAILED"), ("c", "ok")],
        ));
        state.update_tests(&cargo(
            "cargo test",
            &[("a", "FAILED"), ("b", "ok"), ("c", "ok")],
        ));
        let tests = &state.test_state;
        assert_eq!(
            (tests.fixed.as_slice(), tests.regressed.as_slice()),
            (&["b".to_owned()][..], &["a".to_owned()][..])
        );
        assert_eq!(
            (tests.failing.as_slice(), tests.passing.len()),
            (&["a".to_owned()][..], 2)
        );
        state.update_tests(&cargo(
            "cargo test",
            &[("a", "FAILED"), ("b", "ok"), ("c", "ok")],
        ));
        assert!(state.test_state.fixed.is_empty() && state.test_state.regressed.is_empty());
    }

    #[test]
    fn a_run_of_some_tests_leaves_what_is_known_of_the_others() {
        let mut state = PreservedState::default();
        state.update_tests(&cargo(
            "cargo test",
            &[("a", "FAILED"), ("b", "FAILED"), ("c", "ok")],
        ));
        state.update_tests(&cargo("cargo test a", &[("a", "ok")]));
        assert_eq!(state.test_state.failing, ["b"]);
        assert_eq!(state.test_state.fixed, ["a"]);
        // A whole run drops tests that are no more.
        state.update_tests(&cargo("cargo test", &[("a", "ok"), ("c", "ok")]));
        assert!(state.test_state.failing.is_empty());
        assert_eq!(state.test_state.passing, ["a", "c"]);
    }

    #[test]
    fn a_run_that_cannot_be_built_is_told_until_one_can() {
        let mut state = PreservedState::default();
        state.update_tests(&cargo("cargo test", &[("a", "FAILED"), ("b", "ok")]));
        let broken = "error: could not compile `x` (lib test) due to 1 previous error";
        state.update_tests(&run("cargo test", broken));
        assert_eq!(
            state.test_state.failing,
            ["a", "(cargo test could not be built)"]
        );
        assert_eq!(state.test_state.passing, ["b"]);
        state.update_tests(&cargo("cargo test", &[("a", "ok"), ("b", "ok")]));
        assert!(state.test_state.failing.is_empty());
        assert_eq!(state.test_state.fixed, ["a"]);
    }

    #[test]
    fn runners_that_name_only_failures_fix_by_silence_in_whole_runs_alone() {
        let mut state = PreservedState::default();
        state.update_tests(&cargo("cargo test", &[("of_cargo", "FAILED")]));
        let failed = "FAILED t.py::x - E\nFAILED t.py::y\n2 failed, 3 passed in 0.1s\n";
        let failed = format!("=== short test summary info ===\n{failed}");
        state.update_tests(&run("pytest -q", &failed));
        assert_eq!(state.test_state.failing, ["of_cargo", "t.py::x", "t.py::y"]);
        state.update_tests(&run("pytest -q other.py", "4 passed in 0.1s\n"));
        assert_eq!(state.test_state.failing.len(), 3);
        state.update_tests(&run("pytest -q", "5 passed in 0.1s\n"));
        assert_eq!(state.test_state.failing, ["of_cargo"]);
        assert_eq!(state.test_state.fixed, ["t.py::x", "t.py::y"]);
    }

    #[test]
    fn a_package_that_passes_fixes_its_tests() {
        let mut state = PreservedState::default();
        state.update_tests(&run(
            "go test ./a",
            "--- FAIL: TestX (0.00s)\nFAIL\nFAIL\tm/a\t0.1s\n",
        ));
        assert_eq!(state.test_state.failing, ["m/a.TestX"]);
        state.update_tests(&run("go test ./ab", "ok  \tm/ab\t0.1s\n"));
        assert_eq!(state.test_state.failing, ["m/a.TestX"]);
        state.update_tests(&run("go test ./a", "ok  \tm/a\t0.1s\n"));
        assert_eq!(state.test_state.fixed, ["m/a.TestX"]);
    }

    #[test]
    fn the_scratchpad_feeds_checklist_and_objective() {
        let mut state = PreservedState::default();
        state.feed_scratchpad("## Objective\nShip it\n## Current Plan\n- [x] a\n- [ ] b\n");
        assert_eq!(state.current_objective.as_deref(), Some("Ship it"));
        assert_eq!(state.completed_items, ["a"]);
        assert_eq!(state.pending_items, ["b"]);
    }

    #[test]
    fn an_objective_that_is_already_known_wins_over_the_scratchpad() {
        let mut state = PreservedState::default();
        state.set_objective("the task");
        state.feed_scratchpad("## Objective\nanother\n");
        assert_eq!(state.current_objective.as_deref(), Some("the task"));
    }
}
