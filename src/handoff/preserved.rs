//! `PreservedState`: the facts that must survive a reboot, and how each source feeds it.

use std::collections::BTreeMap;

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};

use crate::scratchpad;

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
