//! `PreservedState`: the facts that must survive a reboot, and the way that each source feeds it.
//!
//! Every item knows its source: its [`Origin`]. If sources contradict each other:
//!
//! | fact | the value that counts |
//! |---|---|
//! | the objective | the last `OBJECTIVE:` signal, then the scratchpad's *Objective* section, then the first prompt |
//! | an item that is open in one source and done in another | done, by any source: it is better to check work again than to do it again |
//! | an item that is done and then named as to do again (`TODO:` after `DONE:`, a next step of a person) | to do |
//! | an item that several name | the first of signals, scratchpad, to-do tool; bold marks, case and a full stop are ignored |
//! | a decision or an open issue stated twice | the first; a reason that the first lacks is taken from the second |
//! | an issue that is open in the scratchpad and resolved by a signal | resolved |
//! | a value under a key | the last |
//! | files | git; the files that the agent's tools changed if there is no git, or if git cannot tell them from earlier changes |
//! | a test | the last run of its runner and directory that reports on it |

mod files;
mod item;
mod prompts;
mod test_state;

use std::collections::{BTreeMap, BTreeSet, HashSet};

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};

use crate::{
    breakpoint::git::{Renamed, RunStart},
    scratchpad::Parsed,
};
use pitstop_base::redact;
use pitstop_transcript::words::plain_key;

pub(crate) use item::named_files;
pub use item::{
    Constraint, Decision, Issue, Item, Origin, Rejected, Severity, is_same_item, item_key, texts,
};
pub use test_state::{OwnerCounts, ReportedRun, TestState};

/// The most items kept in each list: far more than a handoff can hold, and a bound against endless output.
const KEPT_ITEMS: usize = 2_000;

/// The most decisions and blockers taken from the scratchpad, each of which is compared with the known ones.
const FED_ITEMS: usize = 200;

/// The facts that must survive a reboot.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(default)]
pub struct PreservedState {
    /// The purpose of the work.
    pub current_objective: Option<Item>,
    /// The files that this run has changed, in commits or not.
    pub modified_files: Vec<Item>,
    /// The files that this run has created, in commits or not.
    pub created_files: Vec<Item>,
    /// The files that this run has deleted.
    pub deleted_files: Vec<Item>,
    /// The files that this run has renamed; they are among the deleted and the created ones, too.
    pub renamed_files: Vec<Renamed>,
    /// The files that have uncommitted changes now according to git, no matter who changed them.
    pub uncommitted_files: Vec<Item>,
    /// The branch that is checked out, if there is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub branch: Option<String>,
    /// The commit that is checked out, by its full id.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub head: Option<String>,
    /// The state of the repository when the run began.
    pub run_start: Option<RunStart>,
    /// The tops of the repository's other work trees that the agent's commands and edits name.
    #[serde(skip_serializing_if = "BTreeSet::is_empty")]
    pub other_trees: BTreeSet<String>,
    /// The rules that must hold, oldest first: the human's prompts, and the constraints that the agent stated.
    pub constraints: Vec<Constraint>,
    /// The prompts and constraints that the human removed, by [`plain_key`]: reading a transcript again does not bring them back.
    pub withdrawn: BTreeSet<String>,
    /// The approaches that were rejected, oldest first.
    pub rejected: Vec<Rejected>,
    /// The decisions, oldest first.
    pub decisions: Vec<Decision>,
    /// The known problems.
    pub known_issues: Vec<Issue>,
    /// The items that are done.
    pub completed_items: Vec<Item>,
    /// The items that are still to do.
    pub pending_items: Vec<Item>,
    /// The other values to keep, by key.
    pub custom: BTreeMap<String, Item>,
    /// The results of the tests; a test run is their only origin.
    pub test_state: TestState,
}

/// Returns a reason without the word that opens it: handoffs show it behind that word.
fn without_because(reason: &str) -> &str {
    let mut words = ["because of ", "because: ", "because "].into_iter();
    let found = words.find_map(|word| {
        let (start, rest) = reason.split_at_checked(word.len())?;
        start.eq_ignore_ascii_case(word).then(|| rest.trim_start())
    });
    found.unwrap_or(reason)
}

impl PreservedState {
    /// Sets the purpose of the work; an empty text clears it.
    pub fn set_objective(&mut self, objective: &str, origin: Origin) {
        let objective = Item::new(objective, origin);
        self.current_objective = (!objective.text.is_empty()).then_some(objective);
    }

    /// Adds a rejected approach. The same one again only supplies a missing reason.
    pub fn add_rejected(&mut self, what: &str, why: &str, origin: Origin) {
        let (what, why) = (what.trim(), without_because(why.trim()));
        if what.is_empty() {
            return;
        }
        if let Some(have) = self
            .rejected
            .iter_mut()
            .find(|have| is_same_item(&have.what, what))
        {
            if have.why.is_empty() {
                why.clone_into(&mut have.why);
            }
            return;
        }
        if self.rejected.len() >= KEPT_ITEMS {
            self.rejected.remove(0);
        }
        self.rejected.push(Rejected {
            what: what.to_owned(),
            why: why.to_owned(),
            origin,
        });
    }

    /// Records a decision with its reason. The same one again is recorded only if it has a new reason.
    pub fn record_decision(
        &mut self,
        description: &str,
        rationale: &str,
        at: Option<DateTime<Utc>>,
        origin: Origin,
    ) {
        let (description, rationale) = (description.trim(), without_because(rationale.trim()));
        if description.is_empty() {
            return;
        }
        for have in &mut self.decisions {
            if !is_same_item(&have.description, description) {
                continue;
            }
            if have.rationale.is_empty() {
                rationale.clone_into(&mut have.rationale);
                return;
            }
            if rationale.is_empty() || is_same_item(&have.rationale, rationale) {
                return;
            }
        }
        if self.decisions.len() >= KEPT_ITEMS {
            self.decisions.remove(0);
        }
        self.decisions.push(Decision {
            description: description.to_owned(),
            rationale: rationale.to_owned(),
            timestamp: at,
            origin,
        });
    }

    /// Records an open problem. The same one again, while it is open, only updates the severity.
    pub fn record_issue(
        &mut self,
        description: &str,
        severity: Severity,
        files: Vec<String>,
        origin: Origin,
    ) {
        let description = description.trim();
        let issues = &mut self.known_issues;
        let same = |have: &&mut Issue| !have.addressed && have.description == description;
        if let Some(have) = issues.iter_mut().find(same) {
            have.severity = severity;
            return;
        }
        if issues.len() >= KEPT_ITEMS {
            // The resolved ones are removed first.
            let oldest = issues.iter().position(|issue| issue.addressed);
            issues.remove(oldest.unwrap_or(0));
        }
        issues.push(Issue {
            description: description.to_owned(),
            severity,
            files,
            addressed: false,
            origin,
        });
    }

    /// Marks the issue with this description as resolved; else the newest open one that contains the text. An issue that
    /// has not been reported yet is recorded as resolved: it may be in the scratchpad.
    pub fn resolve_issue(&mut self, description: &str, origin: Origin) {
        let description = description.trim();
        if description.is_empty() {
            return;
        }
        let open = |issue: &Issue| !issue.addressed;
        let exact = |issue: &Issue| open(issue) && issue.description == description;
        let similar = |issue: &Issue| open(issue) && issue.description.contains(description);
        let issues = &mut self.known_issues;
        let found = issues
            .iter()
            .rposition(exact)
            .or_else(|| issues.iter().rposition(similar));
        match found {
            Some(at) => issues[at].addressed = true,
            None if issues.len() >= KEPT_ITEMS => {}
            None if issues.iter().any(|issue| issue.description == description) => {}
            None => issues.push(Issue {
                description: description.to_owned(),
                severity: Severity::default(),
                files: Vec::new(),
                addressed: true,
                origin,
            }),
        }
    }

    /// Adds an item to do, unless it is already listed as to do; one that was done becomes to do again.
    pub fn add_pending(&mut self, item: &str, origin: Origin) {
        let item = Item::new(item, origin);
        let is_it = |have: &Item| is_same_item(&have.text, &item.text);
        if item.text.is_empty()
            || self.pending_items.len() >= KEPT_ITEMS
            || self.pending_items.iter().any(is_it)
        {
            return;
        }
        self.completed_items.retain(|have| !is_it(have));
        self.pending_items.push(item);
    }

    /// Marks an item as done, which removes it from the items to do.
    pub fn mark_completed(&mut self, item: &str, origin: Origin) {
        self.feed_list(std::iter::once(item), std::iter::empty(), origin);
    }

    /// Keeps a value under a key; an empty value removes the key. A value that only its key shows to be a secret is masked
    /// here, because later this cannot be seen.
    pub fn set_custom(&mut self, key: &str, value: &str, origin: Origin) {
        if value.is_empty() {
            self.custom.remove(key);
        } else if self.custom.len() < KEPT_ITEMS || self.custom.contains_key(key) {
            let value = redact::named(key, value);
            self.custom
                .insert(key.to_owned(), Item::new(&value, origin));
        }
    }

    /// Clears everything. Prompts that a transcript still has do not come back from it.
    pub fn clear(&mut self) {
        let withdrawn = self.constraints.iter();
        let withdrawn = withdrawn.map(|one| plain_key(&one.said.text));
        let withdrawn = self.withdrawn.iter().cloned().chain(withdrawn).collect();
        *self = Self {
            withdrawn,
            ..Self::default()
        };
    }

    /// Takes up again what was cleared, and keeps what was recorded since.
    pub fn take_up(&mut self, cleared: Self) {
        let since = std::mem::replace(self, cleared);
        self.current_objective = since.current_objective.or(self.current_objective.take());
        self.add_constraints(since.constraints);
        for one in since.rejected {
            self.add_rejected(&one.what, &one.why, one.origin);
        }
        for one in since.decisions {
            self.record_decision(&one.description, &one.rationale, one.timestamp, one.origin);
        }
        for one in since.known_issues {
            if one.addressed {
                self.resolve_issue(&one.description, one.origin);
            } else {
                self.record_issue(&one.description, one.severity, one.files, one.origin);
            }
        }
        for one in since.pending_items {
            self.add_pending(&one.text, one.origin);
        }
        for one in since.completed_items {
            self.mark_completed(&one.text, one.origin);
        }
        self.custom.extend(since.custom);
        if since.test_state != TestState::default() {
            self.test_state = since.test_state;
        }
    }

    /// Returns the progress of the work, `3 of 7 done`; `None` if no items are listed.
    pub fn progress(&self) -> Option<String> {
        let done = self.completed_items.len();
        let all = done + self.pending_items.len();
        (all > 0).then(|| format!("{done} of {all} done"))
    }

    /// Applies the scratchpad: its checklists, its *Key Decisions*, its *Blockers* and, if no objective is known, its
    /// *Objective*. The rest of it is passed on unchanged, in the handoff's scratchpad section.
    pub fn feed_scratchpad(&mut self, notes: &Parsed) {
        let done = notes.completed().map(|item| item.text.as_str());
        let open = notes.pending().map(|item| item.text.as_str());
        self.feed_list(done, open, Origin::Scratchpad);
        let first = notes.decisions.len().saturating_sub(FED_ITEMS);
        for one in &notes.decisions[first..] {
            self.record_decision(&one.text, &one.reason, one.at, Origin::Scratchpad);
        }
        for blocker in notes.blockers.iter().take(FED_ITEMS) {
            let (severity, text) = Severity::of_blocker(&blocker.text);
            let known = |issue: &Issue| is_same_item(&issue.description, text);
            if blocker.resolved {
                self.resolve_issue(text, Origin::Scratchpad);
            } else if !self.known_issues.iter().any(known) {
                let files = named_files(text);
                self.record_issue(text, severity, files, Origin::Scratchpad);
            }
        }
        if self.current_objective.is_none()
            && let Some(objective) = &notes.objective
        {
            self.set_objective(objective, Origin::Scratchpad);
        }
    }

    /// Applies a whole list at once, in time that grows only with its length.
    pub fn feed_list<'a>(
        &mut self,
        completed: impl Iterator<Item = &'a str>,
        pending: impl Iterator<Item = &'a str>,
        origin: Origin,
    ) {
        let mut done: HashSet<String> = self
            .completed_items
            .iter()
            .map(|have| item_key(&have.text))
            .collect();
        for item in completed
            .take(KEPT_ITEMS)
            .map(|text| Item::new(text, origin))
        {
            if !item.text.is_empty() && done.insert(item_key(&item.text)) {
                self.completed_items.push(item);
            }
        }
        let over = self.completed_items.len().saturating_sub(KEPT_ITEMS);
        self.completed_items.drain(..over);
        self.pending_items
            .retain(|have| !done.contains(&item_key(&have.text)));
        let mut open: HashSet<String> = self
            .pending_items
            .iter()
            .map(|have| item_key(&have.text))
            .collect();
        for item in pending.take(KEPT_ITEMS).map(|text| Item::new(text, origin)) {
            let key = item_key(&item.text);
            if !item.text.is_empty() && !done.contains(&key) && open.insert(key) {
                self.pending_items.push(item);
            }
        }
        self.pending_items.truncate(KEPT_ITEMS);
    }

    /// Returns every item of every list with its field and its source, in the order of the fields.
    pub fn items(&self) -> Vec<(&'static str, String, Origin)> {
        fn of<'a>(
            field: &'static str,
            items: impl IntoIterator<Item = &'a Item>,
        ) -> impl Iterator<Item = (&'static str, String, Origin)> {
            let items = items.into_iter();
            items.map(move |item| (field, item.text.clone(), item.origin))
        }
        let mut all: Vec<_> = of("current_objective", &self.current_objective).collect();
        for one in &self.constraints {
            all.push(("constraints", one.said.text.clone(), one.origin));
        }
        for one in &self.rejected {
            all.push(("rejected", one.what.clone(), one.origin));
        }
        all.extend(of("completed_items", &self.completed_items));
        all.extend(of("pending_items", &self.pending_items));
        for one in &self.decisions {
            all.push(("decisions", one.description.clone(), one.origin));
        }
        for one in &self.known_issues {
            all.push(("known_issues", one.description.clone(), one.origin));
        }
        for (key, value) in &self.custom {
            all.push(("custom", format!("{key}={value}"), value.origin));
        }
        for (field, names) in [
            ("test_state.passing", &self.test_state.passing),
            ("test_state.failing", &self.test_state.failing),
        ] {
            all.extend(
                names
                    .iter()
                    .map(|name| (field, name.clone(), Origin::Tests)),
            );
        }
        all.extend(of("modified_files", &self.modified_files));
        all.extend(of("created_files", &self.created_files));
        all.extend(of("deleted_files", &self.deleted_files));
        all.extend(of("uncommitted_files", &self.uncommitted_files));
        all
    }
}

#[cfg(test)]
mod tests;
