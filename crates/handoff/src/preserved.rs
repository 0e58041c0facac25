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

use std::{
    collections::{BTreeMap, BTreeSet, HashMap, HashSet},
    fmt,
};

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};

use crate::{
    breakpoint::{
        git::{GitFacts, Renamed, RunStart},
        test_run::{self, Owner, TestOutcome},
    },
    scratchpad::Parsed,
};
use pitstop_base::redact;
use pitstop_transcript::{
    human::{HumanWords, KEPT_PROMPTS, Said},
    words::plain_key,
};

/// The source of something that is preserved.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[derive(strum::IntoStaticStr)]
#[strum(serialize_all = "lowercase")]
pub enum Origin {
    /// A person: a prompt, or a call of this type's own methods. A record without an origin counts as this.
    #[default]
    Human,
    /// A signal line in the assistant's words.
    Signal,
    /// The scratchpad, by any author.
    Scratchpad,
    /// The agent's own to-do tool.
    Todo,
    /// The repository, as git reports it.
    Git,
    /// A test run.
    Tests,
    /// The agent's own tools, through the files that they have changed.
    Tools,
}

impl Origin {
    /// Returns the word for it, as in JSON.
    #[must_use]
    pub fn word(self) -> &'static str {
        self.into()
    }
}

/// A text with its source. It displays and compares with a string as its text; in JSON it is an object, and a plain string is
/// read as one too.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(from = "Stored")]
pub struct Item {
    /// The text itself.
    pub text: String,
    /// The source of the text.
    pub origin: Origin,
}

impl Item {
    /// Creates an item from a text, without the blank space around it.
    #[must_use]
    pub fn new(text: &str, origin: Origin) -> Self {
        Self {
            text: text.trim().to_owned(),
            origin,
        }
    }

    /// Returns the text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.text
    }
}

impl AsRef<str> for Item {
    fn as_ref(&self) -> &str {
        &self.text
    }
}

impl fmt::Display for Item {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl PartialEq<&str> for Item {
    fn eq(&self, other: &&str) -> bool {
        self.text == *other
    }
}

/// An item as it is stored in records: earlier records had the text alone.
#[derive(Deserialize)]
#[serde(untagged)]
enum Stored {
    Text(String),
    Item {
        text: String,
        #[serde(default)]
        origin: Origin,
    },
}

impl From<Stored> for Item {
    fn from(stored: Stored) -> Self {
        match stored {
            Stored::Text(text) => Self {
                text,
                origin: Origin::default(),
            },
            Stored::Item { text, origin } => Self { text, origin },
        }
    }
}

/// The most items kept in each list: far more than a handoff can hold, and a bound against endless output.
const KEPT_ITEMS: usize = 2_000;

/// The most decisions and blockers taken from the scratchpad, each of which is compared with the known ones.
const FED_ITEMS: usize = 200;

/// The severity of an issue.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[derive(strum::IntoStaticStr)]
#[strum(serialize_all = "lowercase")]
pub enum Severity {
    /// A minor flaw.
    Low,
    /// A problem that is worth fixing.
    #[default]
    Medium,
    /// A problem that blocks the objective.
    High,
    /// A problem that blocks all work until it is fixed.
    Critical,
}

impl Severity {
    /// Returns the word that handoffs and signals use.
    #[must_use]
    pub fn word(self) -> &'static str {
        self.into()
    }

    /// Returns the severity of this word, in upper or lower case.
    #[must_use]
    pub fn read(word: &str) -> Option<Self> {
        [Self::Low, Self::Medium, Self::High, Self::Critical]
            .into_iter()
            .find(|severity| severity.word().eq_ignore_ascii_case(word.trim()))
    }

    /// Returns the severity of a blocker in the scratchpad, and the rest of its words. One without a severity is high, because it
    /// blocks the work.
    #[must_use]
    pub fn of_blocker(text: &str) -> (Self, &str) {
        let graded = text.strip_prefix("ISSUE").unwrap_or(text);
        let graded = graded
            .strip_prefix('[')
            .and_then(|text| text.split_once(']'));
        let read = graded.and_then(|(word, rest)| Some((Self::read(word)?, rest)));
        let (severity, rest) = read.unwrap_or((Self::High, text));
        (severity, rest.trim_start_matches([':', ' ']).trim())
    }
}

/// A decision with its reason.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Decision {
    /// The decision itself.
    pub description: String,
    /// The reason; empty if not given.
    pub rationale: String,
    /// The time at which it was recorded; for a decision in the scratchpad it is known only if a date is given there.
    #[serde(default)]
    pub timestamp: Option<DateTime<Utc>>,
    /// The source of the decision.
    #[serde(default)]
    pub origin: Origin,
}

/// A rule that must hold for the rest of the work: a prompt of the human, or a constraint that the agent stated.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Constraint {
    /// The words, verbatim, and the time at which they were said.
    #[serde(flatten)]
    pub said: Said,
    /// The source of the constraint.
    #[serde(default)]
    pub origin: Origin,
    /// True if the human wants it in every handoff, however much was said since.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub pinned: bool,
}

/// An approach that was considered and rejected.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Rejected {
    /// The approach.
    pub what: String,
    /// The reason; empty if it was not given.
    pub why: String,
    /// The source of the rejection.
    #[serde(default)]
    pub origin: Origin,
}

/// A known problem.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Issue {
    /// The description of the problem.
    pub description: String,
    /// The severity of the problem.
    pub severity: Severity,
    /// The files that it concerns.
    pub files: Vec<String>,
    /// True if the issue is resolved.
    pub addressed: bool,
    /// The source of the issue.
    #[serde(default)]
    pub origin: Origin,
}

/// The results of the last test runs, by test name.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct TestState {
    /// The tests that passed.
    pub passing: Vec<String>,
    /// The tests that failed.
    pub failing: Vec<String>,
    /// The tests that failed in the run before and pass now.
    pub fixed: Vec<String>,
    /// The tests that passed in the run before and fail now.
    pub regressed: Vec<String>,
    /// The command line of the last run, if it is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub command: Option<String>,
    /// The failing tests that the last run named: the same command runs the same tests.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub named: Vec<String>,
    /// The owners of the tests, with the owner that ran last at the end: `passing` and `failing` end with the tests of these, in
    /// this order. The owners of the tests before them, which an older version has kept, are not known.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub owners: Vec<Share>,
}

/// The numbers of tests that belong to an owner.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Share {
    /// The owner of the tests.
    #[serde(flatten)]
    pub owner: Owner,
    /// The number of its tests among those that passed.
    pub passing: usize,
    /// The number of its tests among those that failed.
    pub failing: usize,
}

/// The tests of one owner, or of an unknown one.
#[derive(Default)]
struct Group {
    owner: Option<Owner>,
    passing: Vec<String>,
    failing: Vec<String>,
}

/// The verdicts of a run on its owner's tests.
struct Verdicts<'a> {
    owner: &'a Owner,
    passing: BTreeSet<&'a str>,
    failing: BTreeSet<&'a str>,
    /// True if every test that failed has a name.
    all_named: bool,
    /// True if tests without a name passed.
    unnamed: bool,
    /// A note that is kept among the failing tests from now on and is not a test's name.
    note: Option<String>,
}

/// A test run as a report describes it, in which not every name is known.
#[derive(Clone, Copy, Debug)]
pub struct ReportedRun<'a> {
    /// The command line; empty if it is not known.
    pub command: &'a str,
    /// The runner, if the command line does not name it.
    pub runner: Option<&'a str>,
    /// The directory that it ran in.
    pub directory: Option<&'a str>,
    /// True if the run passed.
    pub passed: bool,
    /// The number of tests that failed, if known.
    pub failed: Option<u64>,
    /// The names of the tests that failed, as far as known.
    pub failing: &'a [String],
    /// The names of the tests that passed.
    pub passing: &'a [String],
}

/// Returns the note that represents, among the failing tests, those that a report did not name.
fn unnamed_note(command: &str) -> String {
    match command {
        "" => format!("(failing tests {UNNAMED}"),
        command => format!("(failing tests of `{command}` {UNNAMED}"),
    }
}

/// The end of such a note.
const UNNAMED: &str = "that were not named)";

/// Reports whether an entry is a note about tests and not the name of one.
fn is_note(name: &str) -> bool {
    name.starts_with('(') && name.ends_with(')')
}

/// Adds the names that are not in the list yet.
fn add_new<'a>(list: &mut Vec<String>, names: impl Iterator<Item = &'a String>) {
    let mut have: BTreeSet<String> = list.iter().cloned().collect();
    list.extend(names.filter(|name| have.insert((*name).clone())).cloned());
}

/// Removes and returns the tests of the run's owner. Tests whose owner is not known, or of whose owner only the directory is
/// known and is the run's, belong to the first run that names them.
fn take_group(groups: &mut Vec<Group>, run: &Verdicts<'_>) -> Group {
    let is_known = run.owner.command.as_deref() != Some("");
    let owner = is_known.then(|| run.owner.clone());
    let at = groups.iter().position(|group| group.owner == owner);
    let mut own = at.map_or_else(Group::default, |at| groups.remove(at));
    own.owner = owner;
    let unclear = |group: &&mut Group| {
        let owner = group.owner.as_ref();
        owner.is_none_or(|owner| {
            owner.runner.is_empty()
                && !run.owner.runner.is_empty()
                && owner.directory.is_some()
                && owner.directory == run.owner.directory
        })
    };
    for unknown in groups.iter_mut().filter(unclear) {
        let named = |name: &mut String| {
            run.failing.contains(name.as_str()) || run.passing.contains(name.as_str())
        };
        own.failing.extend(unknown.failing.extract_if(.., named));
        own.passing.extend(unknown.passing.extract_if(.., named));
    }
    own
}

impl TestState {
    /// Applies the outcome of one test run; see [`Self::apply_outcomes`].
    pub fn apply_outcome(&mut self, outcome: &TestOutcome) {
        self.apply_outcomes(std::slice::from_ref(outcome));
    }

    /// Applies the outcomes of the test runs of one command. `fixed` and `regressed` compare with the runs before it; a run of some
    /// tests, or of another owner's tests, does not change the results of the others. A run that could not be built shows nothing
    /// about any test: it is listed in `failing` by the runner's name until one of that owner can be built again.
    pub fn apply_outcomes(&mut self, outcomes: &[TestOutcome]) {
        let Some(command) = outcomes.first().map(|one| one.command.as_str()) else {
            return;
        };
        let again = self.begin_command(command);
        for outcome in outcomes {
            let known: BTreeSet<&str> = outcome.passing.iter().map(String::as_str).collect();
            let failing: BTreeSet<&str> = outcome.failing.iter().map(String::as_str).collect();
            let built = outcome.built || !outcome.passing.is_empty();
            let broken = format!("({} could not be built)", outcome.runner.word());
            let in_group = |name: &str| {
                let rest = |group: &String| name.strip_prefix(group.as_str());
                let mut rests = outcome.passing_groups.iter().filter_map(rest);
                rests.any(|rest| rest.is_empty() || rest.starts_with(['.', ' ']))
            };
            let ended = built && outcome.complete && !outcome.spoilt;
            let covers = |name: &str| {
                let same = ended && again.iter().any(|named| named == name);
                built && (outcome.covers_test(name) || same)
            };
            let verdicts = Verdicts {
                owner: &outcome.owner,
                all_named: outcome
                    .failed
                    .is_none_or(|count| count <= failing.len() as u64),
                unnamed: outcome
                    .passed
                    .is_none_or(|count| count > known.len() as u64),
                passing: known,
                failing,
                note: (!built).then_some(broken),
            };
            self.apply_verdicts(
                &verdicts,
                &outcome.failing,
                &outcome.passing,
                in_group,
                covers,
            );
        }
    }

    /// Applies a test run that was reported. A test that failed before and is not named now has passed if the run is of the same
    /// command, or of one that requests all tests of the owner, and every failure has a name.
    pub fn apply_report(&mut self, run: &ReportedRun<'_>) {
        let names = |names: &[String]| -> Vec<String> {
            let names = names.iter().map(|name| test_run::kept_name(name));
            names.filter(|name| !name.is_empty()).collect()
        };
        let (failing, passing) = (names(run.failing), names(run.passing));
        let again = self.begin_command(run.command);
        let (owner, whole) = test_run::owner_of(run.command, run.runner, run.directory);
        let by_command = owner.command.is_some() && !run.command.is_empty();
        let failed: BTreeSet<&str> = failing.iter().map(String::as_str).collect();
        let counted = run.failed.is_none_or(|count| count <= failed.len() as u64);
        let all_named = counted && (run.passed || !failed.is_empty());
        let verdicts = Verdicts {
            owner: &owner,
            passing: passing.iter().map(String::as_str).collect(),
            failing: failed,
            all_named,
            unnamed: true,
            note: (!all_named).then(|| unnamed_note(run.command)),
        };
        let covers = |name: &str| {
            whole
                || by_command
                || again.iter().any(|named| named == name)
                || name == unnamed_note(run.command)
        };
        self.apply_verdicts(&verdicts, &failing, &passing, |_| false, covers);
    }

    /// Begins to apply a command's runs: returns the failing tests that it named last time, if the previous command was the same.
    fn begin_command(&mut self, command: &str) -> Vec<String> {
        (self.fixed, self.regressed) = (Vec::new(), Vec::new());
        let same = !command.is_empty() && self.command.as_deref() == Some(command);
        self.command = (!command.is_empty()).then(|| command.to_owned());
        let named = std::mem::take(&mut self.named);
        if same { named } else { Vec::new() }
    }

    /// Applies a run's verdicts; `in_group` selects tests that passed together, and `covers` those that it ran or dropped.
    fn apply_verdicts(
        &mut self,
        run: &Verdicts<'_>,
        failing: &[String],
        passing: &[String],
        in_group: impl Fn(&str) -> bool,
        covers: impl Fn(&str) -> bool,
    ) {
        let mut groups = self.take_groups();
        let before = take_group(&mut groups, run);
        let mut now = Group {
            owner: before.owner,
            ..Group::default()
        };
        let covered = |name: &str| run.all_named && covers(name);
        for name in before.failing {
            let passes = run.passing.contains(&*name) || in_group(&name);
            if run.failing.contains(&*name) || run.note.as_ref() == Some(&name) {
            } else if is_note(&name) {
                // A note about a failed build or unnamed tests is dropped once a run has come further than that.
                let over = name.ends_with(UNNAMED) && !covered(&name);
                if over {
                    now.failing.push(name);
                }
            } else if passes || run.unnamed && covered(&name) {
                self.fixed.push(name.clone());
                now.passing.push(name);
            } else if run.unnamed || !covered(&name) {
                now.failing.push(name);
            }
        }
        for name in before.passing {
            if run.failing.contains(&*name) {
                self.regressed.push(name);
            } else if run.passing.contains(&*name) || run.unnamed || !covered(&name) {
                now.passing.push(name);
            }
        }
        let own = |name: &&String| !run.failing.contains(name.as_str());
        add_new(&mut now.passing, passing.iter().filter(own));
        add_new(&mut now.failing, failing.iter().chain(&run.note));
        self.named.extend(failing.iter().cloned());
        let at = if now.owner.is_some() { groups.len() } else { 0 };
        groups.insert(at, now);
        self.put_groups(groups);
    }

    /// Removes and returns the tests, grouped by their owners: those without a known owner come first.
    fn take_groups(&mut self) -> Vec<Group> {
        let (mut passing, mut failing) = (
            std::mem::take(&mut self.passing),
            std::mem::take(&mut self.failing),
        );
        let tail = |names: &mut Vec<String>, count: usize| {
            names.split_off(names.len().saturating_sub(count))
        };
        let shares = std::mem::take(&mut self.owners).into_iter().rev();
        let mut groups: Vec<Group> = shares
            .map(|share| Group {
                passing: tail(&mut passing, share.passing),
                failing: tail(&mut failing, share.failing),
                owner: Some(share.owner),
            })
            .collect();
        groups.push(Group {
            owner: None,
            passing,
            failing,
        });
        groups.reverse();
        groups
    }

    /// Puts the tests back; if there are too many, the oldest ones are left out.
    fn put_groups(&mut self, groups: Vec<Group>) {
        let (mut passing, mut failing) = (KEPT_NAMES, KEPT_NAMES);
        let mut kept: Vec<Group> = groups.into_iter().rev().collect();
        for group in &mut kept {
            for (names, room) in [
                (&mut group.passing, &mut passing),
                (&mut group.failing, &mut failing),
            ] {
                names.drain(..names.len().saturating_sub(*room));
                *room -= names.len();
            }
        }
        for group in kept.into_iter().rev() {
            let (passing, failing) = (group.passing.len(), group.failing.len());
            if let Some(owner) = group.owner.filter(|_| passing + failing > 0) {
                self.owners.push(Share {
                    owner,
                    passing,
                    failing,
                });
            }
            self.passing.extend(group.passing);
            self.failing.extend(group.failing);
        }
    }

    /// Returns the failing tests, each with whether it passed before, and its directory if its runner has tests in several.
    pub fn failures(&self) -> impl Iterator<Item = (&str, bool, Option<&str>)> {
        let of_runner = |owner: &Owner| {
            let runners = self.owners.iter().map(|one| &one.owner.runner);
            runners.filter(|runner| **runner == owner.runner).count()
        };
        let shares = self.owners.iter().flat_map(move |share| {
            let place = share.owner.directory.as_deref();
            let place = place.filter(|_| of_runner(&share.owner) > 1);
            std::iter::repeat_n(place, share.failing)
        });
        let owned = self.owners.iter().map(|one| one.failing);
        let owned = owned.fold(0, usize::saturating_add);
        let unknown = self.failing.len().saturating_sub(owned);
        let places = std::iter::repeat_n(None, unknown).chain(shares);
        let named = self.failing.iter().enumerate().zip(places);
        named.map(|((at, name), place)| {
            // Of two tests of one name the verdict of the last run counts, and its tests come last.
            let regressed = self.regressed.contains(name) && !self.failing[at + 1..].contains(name);
            (name.as_str(), regressed, place)
        })
    }

    /// Keeps the changes in `before`: the run just applied is the same run as that of `before`, seen in another way.
    pub fn keep_changes(&mut self, before: Self) {
        for name in before.fixed {
            if !self.failing.contains(&name) && !self.fixed.contains(&name) {
                self.fixed.push(name);
            }
        }
        for name in before.regressed {
            if self.failing.contains(&name) && !self.regressed.contains(&name) {
                self.regressed.push(name);
            }
        }
    }
}

/// The most test names kept of each kind; the latest ones are kept.
const KEPT_NAMES: usize = 5_000;

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

impl PreservedState {
    /// Sets the purpose of the work; an empty text clears it.
    pub fn set_objective(&mut self, objective: &str, origin: Origin) {
        let objective = Item::new(objective, origin);
        self.current_objective = (!objective.text.is_empty()).then_some(objective);
    }

    /// Adds a rule that must hold, unless it is known or was removed by the human.
    pub fn add_constraint(&mut self, said: Said, origin: Origin) {
        self.add_constraints([Constraint {
            said,
            origin,
            pinned: false,
        }]);
    }

    /// Applies the words of the human.
    pub fn feed_human(&mut self, words: &HumanWords) {
        if !words.taken_back.is_empty() {
            self.constraints.retain(|have| {
                have.origin != Origin::Human
                    || !words.taken_back.contains(&plain_key(&have.said.text))
            });
        }
        self.add_constraints(words.prompts.iter().map(|said| Constraint {
            said: said.clone(),
            origin: Origin::Human,
            pinned: false,
        }));
    }

    /// Adds several constraints, in time that grows only with their number.
    pub fn add_constraints(&mut self, new: impl IntoIterator<Item = Constraint>) {
        let known = self.constraints.iter().enumerate();
        let mut known: HashMap<String, usize> = known
            .map(|(at, have)| (plain_key(&have.said.text), at))
            .collect();
        for constraint in new {
            let key = plain_key(&constraint.said.text);
            if key.is_empty() || self.withdrawn.contains(&key) {
                continue;
            }
            match known.get(&key) {
                // A constraint that the agent noted becomes the human's when they state it themselves.
                Some(&at) if constraint.origin == Origin::Human => {
                    let have = &mut self.constraints[at];
                    let pinned = have.pinned || constraint.pinned;
                    if have.origin != Origin::Human {
                        *have = constraint;
                    }
                    have.pinned = pinned;
                }
                Some(_) => {}
                None => {
                    known.insert(key, self.constraints.len());
                    self.constraints.push(constraint);
                }
            }
        }
        let mut over = self.constraints.len().saturating_sub(KEPT_PROMPTS);
        self.constraints.retain(|have| {
            let stays = over == 0 || have.pinned;
            over -= usize::from(!stays);
            stays
        });
    }

    /// Pins a prompt of the human, so that every handoff has it, or unpins it; returns whether it is pinned now, or
    /// `None` if it is not known.
    pub fn toggle_pin(&mut self, said: &Said) -> Option<bool> {
        let key = plain_key(&said.text);
        let mut all = self.constraints.iter_mut();
        let found = all.find(|one| plain_key(&one.said.text) == key)?;
        found.pinned = !found.pinned;
        Some(found.pinned)
    }

    /// Returns the prompts of the human, oldest first.
    #[must_use]
    pub fn prompts(&self) -> impl DoubleEndedIterator<Item = &Constraint> {
        let all = self.constraints.iter();
        all.filter(|one| one.origin == Origin::Human)
    }

    /// Removes a prompt or a constraint permanently, as the human wants.
    pub fn withdraw_constraint(&mut self, said: &Said) {
        let key = plain_key(&said.text);
        self.constraints
            .retain(|have| plain_key(&have.said.text) != key);
        self.withdrawn.insert(key);
    }

    /// Removes the constraints that a human has removed elsewhere, by [`plain_key`].
    pub fn withdraw_all(&mut self, withdrawn: &BTreeSet<String>) {
        self.withdrawn.extend(withdrawn.iter().cloned());
        let is_out = |have: &Constraint| self.withdrawn.contains(&plain_key(&have.said.text));
        self.constraints.retain(|have| !is_out(have));
    }

    /// Admits prompts again that were removed before.
    pub fn readmit_prompts(&mut self, words: &HumanWords) {
        for said in &words.prompts {
            self.withdrawn.remove(&plain_key(&said.text));
        }
    }

    /// Adds a prompt that the human wrote, even if it was removed before.
    pub fn restate_constraint(&mut self, said: Said) {
        self.withdrawn.remove(&plain_key(&said.text));
        self.add_constraint(said, Origin::Human);
    }

    /// Adds a rejected approach. The same one again only supplies a missing reason.
    pub fn add_rejected(&mut self, what: &str, why: &str, origin: Origin) {
        let (what, why) = (what.trim(), why.trim());
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
        let (description, rationale) = (description.trim(), rationale.trim());
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
            None if description.is_empty() || issues.len() >= KEPT_ITEMS => {}
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
        let item = Item::new(item, origin);
        self.pending_items
            .retain(|have| !is_same_item(&have.text, &item.text));
        let listed = |have: &Item| is_same_item(&have.text, &item.text);
        if item.text.is_empty() || self.completed_items.iter().any(listed) {
            return;
        }
        if self.completed_items.len() >= KEPT_ITEMS {
            self.completed_items.remove(0);
        }
        self.completed_items.push(item);
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

    /// Returns the progress of the work, `3 of 7 done`; `None` if no items are listed.
    #[must_use]
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

    /// Applies git's state of the files: those that this run has changed, and those that are not committed. If the run's start is
    /// not known, all uncommitted files count as the run's.
    pub fn feed_git(&mut self, git: &GitFacts) {
        (self.branch, self.head) = (git.branch.clone(), git.head.clone());
        let uncommitted: BTreeSet<&String> = git.uncommitted_files().collect();
        let start = git.since_start.as_ref().and(self.run_start.as_ref());
        let before = start.map_or(&[][..], |start| &start.uncommitted);
        let before: HashSet<&String> = before.iter().collect();
        let since = git.since_start.clone().unwrap_or_default();
        let of_run = |committed: &[String], now: &[String]| {
            let mut known = HashSet::new();
            let files = committed.iter().chain(now);
            let of_run = files
                .filter(|file| !(before.contains(file) && uncommitted.contains(file)))
                .filter(|file| known.insert(*file));
            of_run.map(|file| Item::new(file, Origin::Git)).collect()
        };
        // A file that the run has created and then changed counts as created.
        let made: HashSet<&String> = since.created.iter().collect();
        let modified = git.modified.iter().filter(|file| !made.contains(file));
        let modified: Vec<String> = modified.cloned().collect();
        let moved = |name: fn(&Renamed) -> &String, files: &[String], renamed: &[Renamed]| {
            let moved = renamed.iter().map(name);
            files.iter().chain(moved).cloned().collect::<Vec<_>>()
        };
        let created = moved(|one| &one.to, &git.created, &git.renamed);
        let deleted = moved(|one| &one.from, &git.deleted, &git.renamed);
        self.modified_files = of_run(&since.modified, &modified);
        self.created_files = of_run(
            &moved(|one| &one.to, &since.created, &since.renamed),
            &created,
        );
        self.deleted_files = of_run(
            &moved(|one| &one.from, &since.deleted, &since.renamed),
            &deleted,
        );
        let renamed = since.renamed.iter().chain(&git.renamed);
        let mut known = HashSet::new();
        self.renamed_files = renamed
            .filter(|one| known.insert(&one.to))
            .cloned()
            .collect();
        let item = |file: &String| Item::new(file, Origin::Git);
        self.uncommitted_files = git.uncommitted_files().map(item).collect();
    }

    /// Clears all files and the start of the run, because another run begins.
    pub fn forget_files(&mut self) {
        self.modified_files.clear();
        self.created_files.clear();
        self.deleted_files.clear();
        self.renamed_files.clear();
        self.uncommitted_files.clear();
        (self.branch, self.head) = (None, None);
        self.run_start = None;
        self.other_trees.clear();
    }

    /// Adds the files that the agent's own tools have changed and that git does not ascribe to the run: those that were
    /// uncommitted before, and all files if there is no repository.
    pub fn feed_changed<'a>(&mut self, files: impl Iterator<Item = &'a str>, has_git: bool) {
        for file in files {
            let is = |item: &Item| item.text == file;
            let known = [&self.modified_files, &self.created_files];
            let known = known.into_iter().flatten().any(is);
            if !known && (!has_git || self.uncommitted_files.iter().any(is)) {
                self.modified_files.push(Item::new(file, Origin::Tools));
            }
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
    #[must_use]
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

/// Returns the files that a text names between back quotes: `src/a.rs`, not `Vec<T>` and not `a::b`.
pub(super) fn named_files(text: &str) -> Vec<String> {
    let is_path = |word: &&str| {
        let plain = |c: char| c.is_alphanumeric() || matches!(c, '/' | '.' | '_' | '-' | '+' | '@');
        let ending = word.rsplit_once('.').map_or("", |(_, ending)| ending);
        word.chars().all(plain)
            && !word.starts_with(['/', '.', '-'])
            && !word.contains("..")
            && (1..=5).contains(&ending.len())
            && ending.starts_with(|c: char| c.is_ascii_alphabetic())
    };
    let quoted = text.split('`').skip(1).step_by(2).filter(is_path);
    quoted.map(str::to_owned).collect()
}

/// Returns the texts of some items.
#[must_use]
pub fn texts(items: &[Item]) -> Vec<String> {
    items.iter().map(|item| item.text.clone()).collect()
}

/// Returns the characters by which two wordings of an item are compared: lower case, without marks of Markdown or a full stop.
fn plain_chars(item: &str) -> impl Iterator<Item = char> {
    item.trim()
        .trim_end_matches('.')
        .chars()
        .filter(|c| !matches!(c, '*' | '`'))
        .flat_map(char::to_lowercase)
}

/// Reports whether two wordings are of the same item.
#[must_use]
pub fn is_same_item(one: &str, other: &str) -> bool {
    plain_chars(one).eq(plain_chars(other))
}

/// Returns the key that all wordings of an item have in common.
#[must_use]
pub fn item_key(text: &str) -> String {
    plain_chars(text).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_state_says_how_much_of_its_items_is_done() {
        let mut state = PreservedState::default();
        assert_eq!(state.progress(), None);
        for (done, open, progress) in [("a", "b", "1 of 2 done"), ("c", "ö", "2 of 4 done")] {
            state.mark_completed(done, Origin::Human);
            state.add_pending(open, Origin::Human);
            assert_eq!(state.progress().as_deref(), Some(progress));
        }
        state.mark_completed("ö", Origin::Human);
        assert_eq!(state.progress().as_deref(), Some("3 of 4 done"));
    }

    #[test]
    fn marking_an_item_completed_takes_it_out_of_pending() {
        let mut state = PreservedState::default();
        state.add_pending("write tests", Origin::Human);
        state.add_pending("write tests", Origin::Human);
        assert_eq!(state.pending_items, ["write tests"]);
        state.mark_completed("write tests", Origin::Human);
        assert!(state.pending_items.is_empty());
        assert_eq!(state.completed_items, ["write tests"]);
    }

    #[test]
    fn prompts_taken_in_at_once_are_those_taken_in_one_by_one() {
        let mut words = HumanWords::default();
        for number in 0..300 {
            words.take_prompt(&format!("Never do number {number}."), None);
        }
        let mut at_once = PreservedState::default();
        for rule in ["Never do number 7!", "Never do that."] {
            let text = rule.to_owned();
            at_once.add_constraint(Said { text, at: None }, Origin::Signal);
        }
        at_once.withdrawn.insert(plain_key("Never do number 9."));
        let mut one_by_one = at_once.clone();
        for said in &words.prompts {
            one_by_one.add_constraint(said.clone(), Origin::Human);
        }
        at_once.feed_human(&words);
        assert_eq!(at_once, one_by_one);
        assert_eq!(at_once.constraints.len(), 300);
        assert_eq!(at_once.prompts().count(), 299, "one is the agent's alone");
    }

    #[test]
    fn an_item_that_is_added_again_after_it_was_done_is_to_do_again() {
        let mut state = PreservedState::default();
        state.mark_completed("Write the *parser*.", Origin::Human);
        state.mark_completed("lexer", Origin::Human);
        state.add_pending("write the parser", Origin::Human);
        assert_eq!(state.pending_items, ["write the parser"]);
        assert_eq!(state.completed_items, ["lexer"]);
        // Two lists that contradict each other have no order in time: an item that is done in one counts as done.
        state.feed_scratchpad(&Parsed::read("- [x] Write the parser\n- [ ] lexer\n"));
        assert!(state.pending_items.is_empty());
    }

    fn run(command: &str, output: &str) -> TestOutcome {
        let shell = test_run::Shell {
            command: Some(command),
            directory: Some("/p"),
            failed: false,
        };
        let mut found = shell.recognise_runs(output);
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
        state.test_state.apply_outcome(&cargo(
            "cargo test",
            &[("a", "ok"), ("b", "FAILED"), ("c", "ok")],
        ));
        state.test_state.apply_outcome(&cargo(
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
        state.test_state.apply_outcome(&cargo(
            "cargo test",
            &[("a", "FAILED"), ("b", "ok"), ("c", "ok")],
        ));
        assert!(state.test_state.fixed.is_empty() && state.test_state.regressed.is_empty());
    }

    #[test]
    fn a_run_of_some_tests_leaves_what_is_known_of_the_others() {
        let mut state = PreservedState::default();
        state.test_state.apply_outcome(&cargo(
            "cargo test",
            &[("a", "FAILED"), ("b", "FAILED"), ("c", "ok")],
        ));
        state
            .test_state
            .apply_outcome(&cargo("cargo test a", &[("a", "ok")]));
        assert_eq!(state.test_state.failing, ["b"]);
        assert_eq!(state.test_state.fixed, ["a"]);
        // A whole run drops tests that no longer exist.
        state
            .test_state
            .apply_outcome(&cargo("cargo test", &[("a", "ok"), ("c", "ok")]));
        assert!(state.test_state.failing.is_empty());
        assert_eq!(state.test_state.passing, ["a", "c"]);
    }

    #[test]
    fn a_run_that_cannot_be_built_is_reported_until_one_can() {
        let mut state = PreservedState::default();
        state
            .test_state
            .apply_outcome(&cargo("cargo test", &[("a", "FAILED"), ("b", "ok")]));
        let broken = "error: could not compile `x` (lib test) due to 1 previous error";
        state.test_state.apply_outcome(&run("cargo test", broken));
        assert_eq!(
            state.test_state.failing,
            ["a", "(cargo test could not be built)"]
        );
        assert_eq!(state.test_state.passing, ["b"]);
        state
            .test_state
            .apply_outcome(&cargo("cargo test", &[("a", "ok"), ("b", "ok")]));
        assert!(state.test_state.failing.is_empty());
        assert_eq!(state.test_state.fixed, ["a"]);
    }

    #[test]
    fn runners_that_name_only_failures_fix_by_silence_in_whole_runs_alone() {
        let mut state = PreservedState::default();
        state
            .test_state
            .apply_outcome(&cargo("cargo test", &[("of_cargo", "FAILED")]));
        let failed = "FAILED t.py::x - E\nFAILED t.py::y\n2 failed, 3 passed in 0.1s\n";
        let failed = format!("=== short test summary info ===\n{failed}");
        state.test_state.apply_outcome(&run("pytest -q", &failed));
        assert_eq!(state.test_state.failing, ["of_cargo", "t.py::x", "t.py::y"]);
        state
            .test_state
            .apply_outcome(&run("pytest -q other.py", "4 passed in 0.1s\n"));
        assert_eq!(state.test_state.failing.len(), 3);
        state
            .test_state
            .apply_outcome(&run("pytest -q", "5 passed in 0.1s\n"));
        assert_eq!(state.test_state.failing, ["of_cargo"]);
        assert_eq!(state.test_state.fixed, ["t.py::x", "t.py::y"]);
    }

    #[test]
    fn a_package_that_passes_fixes_its_tests() {
        let mut state = PreservedState::default();
        state.test_state.apply_outcome(&run(
            "go test ./a",
            "--- FAIL: TestX (0.00s)\nFAIL\nFAIL\tm/a\t0.1s\n",
        ));
        assert_eq!(state.test_state.failing, ["m/a.TestX"]);
        state
            .test_state
            .apply_outcome(&run("go test ./ab", "ok  \tm/ab\t0.1s\n"));
        assert_eq!(state.test_state.failing, ["m/a.TestX"]);
        state
            .test_state
            .apply_outcome(&run("go test ./a", "ok  \tm/a\t0.1s\n"));
        assert_eq!(state.test_state.fixed, ["m/a.TestX"]);
    }

    fn reported(state: &mut TestState, command: &str, failed: u64, failing: &[&str]) {
        let failing: Vec<String> = failing.iter().map(|name| (*name).to_owned()).collect();
        state.apply_report(&ReportedRun {
            command,
            runner: None,
            directory: Some("/p"),
            passed: failed == 0,
            failed: Some(failed),
            passing: &[],
            failing: &failing,
        });
    }

    #[test]
    fn a_reported_run_keeps_the_names_and_the_command() {
        let mut state = TestState::default();
        state.apply_outcome(&cargo("cargo test", &[("a", "ok"), ("b", "ok")]));
        reported(&mut state, "cargo test", 2, &["b", "c", "c"]);
        assert_eq!(
            (&*state.passing, &*state.failing),
            (&["a".to_owned()][..], &["b".to_owned(), "c".to_owned()][..])
        );
        assert_eq!(state.regressed, ["b"]);
        assert_eq!(state.command.as_deref(), Some("cargo test"));
        // This runs only some of the tests: it may not have run those that it does not name.
        reported(&mut state, "cargo test c", 0, &[]);
        assert_eq!((state.failing.len(), state.fixed.len()), (2, 0));
        reported(&mut state, "cargo test", 1, &["c"]);
        assert_eq!(
            (&*state.failing, &*state.fixed),
            (&["c".to_owned()][..], &["b".to_owned()][..])
        );
        assert!(state.passing.contains(&"b".to_owned()));
        // The same command as before reports on the same tests, whatever it is.
        reported(&mut state, "./check x", 1, &["d"]);
        reported(&mut state, "./check x", 0, &[]);
        assert_eq!(
            (&*state.failing, &*state.fixed),
            (&["c".to_owned()][..], &["d".to_owned()][..])
        );
    }

    /// Returns the state after these commands in `/p`, each with its output.
    fn ran(runs: &[(&str, &str)]) -> TestState {
        let mut state = TestState::default();
        for (command, output) in runs {
            let shell = test_run::Shell {
                command: Some(command),
                directory: Some("/p"),
                failed: false,
            };
            let found = shell.recognise_runs(output);
            assert!(!found.is_empty(), "{command}");
            state.apply_outcomes(&found);
        }
        state
    }

    #[test]
    fn a_passing_run_clears_the_failing_tests_of_its_runner_and_directory_alone() {
        let pytest = |name: &str| {
            format!("=== short test summary info ===\nFAILED {name} - E\n1 failed in 0.1s\n")
        };
        let (failed, passed) = (pytest("tests/test_a.py::test_x"), "5 passed in 0.1s\n");
        let cargo_failed = "running 1 test\ntest a ... FAILED\n\ntest result: FAILED. 0 passed; 1 failed; 0 ignored\n";
        let cargo_passed =
            "running 1 test\ntest a ... ok\n\ntest result: ok. 1 passed; 0 failed; 0 ignored\n";
        let jest_failed = "FAIL ./a.test.js\n  ● it works\n\nTests:       1 failed, 1 total\n";
        let jest_passed = "PASS ./a.test.js\nTests:       1 passed, 1 total\n";
        let go_failed = "--- FAIL: TestX (0.00s)\nFAIL\nFAIL\tm/a\t0.1s\n";
        let go_passed = "ok  \tm/a\t0.1s\n";
        let in_sub = pytest("sub/test_a.py::test_x");
        let long = |service: &str| {
            format!(
                "docker compose {} exec {service} pytest",
                "-f x.yaml ".repeat(40)
            )
        };
        #[rustfmt::skip]
        let cases = [
            ("cd api && pytest", &*failed, "cd web && pytest", passed, false),
            ("cd api && pytest", &failed, "cd /p/api && pytest -q", passed, true),
            ("(cd api; pytest)", &failed, "pytest", passed, false),
            ("pytest sub/", &in_sub, "pytest other/", passed, false),
            ("pytest sub/", &in_sub, "pytest sub/", passed, true),
            ("pytest sub/", &in_sub, "pytest -q", passed, true),
            ("pytest -k x", &failed, "pytest -k x", passed, true),
            ("pytest -k x", &failed, "pytest -k y", passed, false),
            ("cd $A && pytest", &failed, "cd $B && pytest", passed, false),
            ("cd $A && pytest", &failed, "pytest", passed, false),
            ("docker compose exec a pytest", &failed, "docker compose exec b pytest", passed, false),
            ("docker compose exec a pytest", &failed, "docker compose exec a pytest", passed, true),
            ("make -C x test", &failed, "make -C y test", passed, false),
            ("make -C x test", &failed, "cd x && make test", passed, true),
            ("cargo test", cargo_failed, "cargo test --manifest-path x/Cargo.toml", cargo_passed, false),
            ("cargo test --manifest-path=x/Cargo.toml", cargo_failed, "(cd x && cargo test)", cargo_passed, true),
            ("npm --prefix a test", jest_failed, "npm --prefix b test", jest_passed, false),
            ("npm --prefix a test", jest_failed, "cd a && npx jest", jest_passed, true),
            ("npm test -w a", jest_failed, "npm test -w b", jest_passed, false),
            ("go -C x test ./...", go_failed, "go -C y test ./...", go_passed, false),
            ("go -C x test ./...", go_failed, "cd x/../x && go test ./...", go_passed, true),
            ("make test", jest_failed, "make test", passed, false),
            (&long("a"), &failed, &long("b"), passed, false),
            (&long("a"), &failed, &long("a"), passed, true),
            ("cargo test", cargo_failed, "go test ./...", go_passed, false),
        ];
        for (first, failed, second, passed, clears) in cases {
            let state = ran(&[(first, failed), (second, passed)]);
            assert_eq!(
                state.failing.is_empty(),
                clears,
                "{first}; {second}: {state:?}"
            );
            assert_eq!(state.fixed.len(), usize::from(clears), "{first}; {second}");
        }
    }

    #[test]
    fn a_name_in_two_directories_is_two_tests() {
        let cargo = |verdict: &str| {
            let counts = if verdict == "ok" {
                "1 passed; 0"
            } else {
                "0 passed; 1"
            };
            format!(
                "running 1 test\ntest a::b ... {verdict}\n\ntest result: x. {counts} failed; 0 ignored\n"
            )
        };
        let state = ran(&[
            ("cd x && cargo test", &cargo("ok")),
            ("cd y && cargo test", &cargo("FAILED")),
        ]);
        assert_eq!((state.failing.len(), state.passing.len()), (1, 1));
        assert!(state.regressed.is_empty(), "it passed elsewhere");
        let found: Vec<_> = state.failures().collect();
        assert_eq!(found, [("a::b", false, Some("/p/y"))]);
        let state = ran(&[
            ("cd x && cargo test", &cargo("FAILED")),
            ("cd y && cargo test", &cargo("ok")),
            ("cd y && cargo test", &cargo("FAILED")),
        ]);
        let found: Vec<_> = state.failures().collect();
        assert_eq!(
            found,
            [("a::b", false, Some("/p/x")), ("a::b", true, Some("/p/y"))]
        );
        // If a runner has only one owner, the directory adds no information.
        let state = ran(&[("cd x && cargo test", &cargo("FAILED"))]);
        let found: Vec<_> = state.failures().collect();
        assert_eq!(found, [("a::b", false, None)]);
    }

    #[test]
    fn a_run_of_several_runners_that_is_reported_and_seen_has_each_test_once() {
        let mut state = TestState::default();
        reported(&mut state, "make test", 2, &["a", "m/a.TestX"]);
        let output = "running 1 test\ntest a ... FAILED\n\ntest result: FAILED. 0 passed; 1 failed; 0 ignored\n\
            --- FAIL: TestX (0.00s)\nFAIL\nFAIL\tm/a\t0.1s\n";
        let shell = test_run::Shell {
            command: Some("pitstop test -- make test"),
            directory: Some("/p"),
            failed: true,
        };
        state.apply_outcomes(&shell.recognise_runs(output));
        assert_eq!(state.failing, ["a", "m/a.TestX"]);
        reported(&mut state, "./check", 1, &["b"]);
        reported(&mut state, "cd sub; ./check", 1, &["b"]);
        assert_eq!(state.failing.len(), 4, "these two may be different");
    }

    #[test]
    fn several_runs_of_one_command_keep_what_each_of_them_changed() {
        let cargo = |verdict: &str, counts: &str| {
            format!("running 1 test\ntest a ... {verdict}\n\ntest result: x. {counts}; 0 ignored\n")
        };
        let go = |verdict: &str| {
            format!(
                "--- {verdict}: TestX (0.00s)\n{}\tm/a\t0.1s\n",
                if verdict == "PASS" { "ok" } else { "FAIL" }
            )
        };
        let command = "cargo test; go test -v ./...";
        let state = ran(&[
            (
                command,
                &(cargo("FAILED", "0 passed; 1 failed") + &go("FAIL")),
            ),
            (command, &(cargo("ok", "1 passed; 0 failed") + &go("PASS"))),
        ]);
        assert_eq!(state.fixed, ["a", "m/a.TestX"]);
        assert!(state.failing.is_empty());
    }

    #[test]
    fn tests_that_an_older_version_kept_belong_to_the_first_run_that_names_them() {
        let json = r#"{"passing": ["b"], "failing": ["a", "c"], "fixed": [], "regressed": [], "command": "cargo test"}"#;
        let mut state: TestState = serde_json::from_str(json).unwrap();
        let cargo = |directory, output: &str| {
            let shell = test_run::Shell {
                command: Some("cargo test"),
                directory: Some(directory),
                failed: false,
            };
            shell.recognise_runs(output)
        };
        let output = "running 2 tests\ntest a ... ok\ntest b ... FAILED\n\ntest result: FAILED. 1 passed; 1 failed; 0 ignored\n";
        state.apply_outcomes(&cargo("/p/x", output));
        assert_eq!(
            (&*state.fixed, &*state.regressed),
            (&["a".to_owned()][..], &["b".to_owned()][..])
        );
        assert_eq!(state.failing, ["c", "b"]);
        let again: TestState =
            serde_json::from_str(&serde_json::to_string(&state).unwrap()).unwrap();
        assert_eq!(again, state);
        state.apply_outcomes(&cargo("/p/y", "running 1 test\ntest a ... FAILED\n\ntest result: FAILED. 0 passed; 1 failed; 0 ignored\n"));
        assert_eq!((state.failing.len(), state.passing.len()), (3, 1));
        // Shares that do not match must not lose a test.
        let json = r#"{"passing": [], "failing": ["a"], "fixed": [], "regressed": [], "owners": [{"runner": "jest", "passing": 9, "failing": 7}]}"#;
        let mut state: TestState = serde_json::from_str(json).unwrap();
        assert_eq!(state.failures().count(), 1);
        state.apply_outcomes(&cargo("/p", output));
        assert_eq!(state.failing, ["a", "b"]);
    }

    #[test]
    fn failures_without_names_stand_as_such_until_their_command_passes() {
        let mut state = TestState::default();
        reported(&mut state, "./check", 3, &[]);
        assert_eq!(
            state.failing,
            ["(failing tests of `./check` that were not named)"]
        );
        reported(&mut state, "./check", 2, &["a"]);
        assert_eq!(
            state.failing,
            ["a", "(failing tests of `./check` that were not named)"]
        );
        reported(&mut state, "other", 0, &[]);
        assert_eq!(state.failing.len(), 2);
        reported(&mut state, "./check", 1, &["a"]);
        assert_eq!(state.failing, ["a"]);
        assert!(state.fixed.is_empty());
    }

    #[test]
    fn a_run_that_is_seen_twice_keeps_what_it_changed() {
        let mut state = TestState::default();
        state.apply_outcome(&cargo("cargo test", &[("a", "ok"), ("b", "FAILED")]));
        reported(&mut state, "cargo test", 1, &["a"]);
        assert_eq!(
            (&*state.fixed, &*state.regressed),
            (&["b".to_owned()][..], &["a".to_owned()][..])
        );
        let before = state.clone();
        state.apply_outcome(&cargo("cargo test", &[("a", "FAILED"), ("b", "ok")]));
        assert!(state.fixed.is_empty() && state.regressed.is_empty());
        state.keep_changes(before);
        assert_eq!(
            (&*state.fixed, &*state.regressed),
            (&["b".to_owned()][..], &["a".to_owned()][..])
        );
    }

    #[test]
    fn the_scratchpad_feeds_decisions_and_issues() {
        let mut state = PreservedState::default();
        state.record_decision("**use sqlite**", "", None, Origin::Signal);
        state.resolve_issue("CI is red", Origin::Human);
        let notes = "## Key Decisions\n- Use SQLite | one file\n- 2026-01-02: no rayon\n## Blockers\n- CI is red.\n\
            - [low]: `src/a.rs` squeaks\n- the disk is full\n- ~~it leaks~~\n";
        for _ in 0..2 {
            state.feed_scratchpad(&Parsed::read(notes));
        }
        let decided: Vec<_> = state
            .decisions
            .iter()
            .map(|one| (one.description.as_str(), one.rationale.as_str(), one.origin))
            .collect();
        assert_eq!(
            decided,
            [
                ("**use sqlite**", "one file", Origin::Signal),
                ("no rayon", "", Origin::Scratchpad)
            ]
        );
        assert_eq!(
            state.decisions[1].timestamp,
            "2026-01-02T00:00:00Z".parse().ok()
        );
        let issues: Vec<_> = state
            .known_issues
            .iter()
            .map(|one| (one.description.as_str(), one.severity, one.addressed))
            .collect();
        assert_eq!(
            issues,
            [
                ("CI is red", Severity::Medium, true),
                ("`src/a.rs` squeaks", Severity::Low, false),
                ("the disk is full", Severity::High, false),
                ("it leaks", Severity::Medium, true),
            ]
        );
        assert_eq!(state.known_issues[1].files, ["src/a.rs"]);
    }

    #[test]
    fn the_scratchpad_feeds_checklist_and_objective() {
        let mut state = PreservedState::default();
        state.feed_scratchpad(&Parsed::read(
            "## Objective\nShip it\n## Current Plan\n- [x] a\n- [ ] b\n",
        ));
        assert_eq!(
            state.current_objective,
            Some(Item::new("Ship it", Origin::Scratchpad))
        );
        assert_eq!(state.completed_items, ["a"]);
        assert_eq!(state.pending_items, ["b"]);
    }

    #[test]
    fn an_objective_that_is_already_known_wins_over_the_scratchpad() {
        let mut state = PreservedState::default();
        state.set_objective("the task", Origin::Human);
        state.feed_scratchpad(&Parsed::read("## Objective\nanother\n"));
        assert_eq!(
            state.current_objective,
            Some(Item::new("the task", Origin::Human))
        );
    }

    #[test]
    fn done_wins_over_open_from_any_source() {
        for (done, open) in [
            (Origin::Signal, Origin::Todo),
            (Origin::Todo, Origin::Signal),
            (Origin::Scratchpad, Origin::Human),
        ] {
            let mut state = PreservedState::default();
            state.add_pending("the lexer", open);
            state.feed_list(["**The lexer**."].into_iter(), std::iter::empty(), done);
            state.feed_list(std::iter::empty(), ["the lexer"].into_iter(), open);
            assert_eq!(
                state.completed_items,
                [Item::new("**The lexer**.", done)],
                "{open:?}"
            );
            assert!(state.pending_items.is_empty());
        }
    }

    #[test]
    fn an_item_of_several_sources_is_listed_once_by_the_first() {
        let mut state = PreservedState::default();
        state.add_pending("write tests", Origin::Signal);
        state.feed_scratchpad(&Parsed::read("- [ ] `write tests`\n- [ ] docs\n"));
        state.feed_list(
            std::iter::empty(),
            ["Write tests.", "Docs", "release"].into_iter(),
            Origin::Todo,
        );
        assert_eq!(
            state.pending_items,
            [
                Item::new("write tests", Origin::Signal),
                Item::new("docs", Origin::Scratchpad),
                Item::new("release", Origin::Todo),
            ]
        );
    }

    #[test]
    fn what_is_stated_twice_is_recorded_once() {
        let mut state = PreservedState::default();
        for severity in [Severity::Low, Severity::High] {
            state.record_decision(
                "sqlite",
                "one file",
                Some(DateTime::UNIX_EPOCH),
                Origin::Human,
            );
            state.record_issue("it leaks", severity, Vec::new(), Origin::Human);
        }
        assert_eq!((state.decisions.len(), state.known_issues.len()), (1, 1));
        assert_eq!(state.known_issues[0].severity, Severity::High);
        state.resolve_issue("it leaks", Origin::Human);
        state.record_issue("it leaks", Severity::Low, Vec::new(), Origin::Human);
        assert_eq!(state.known_issues.len(), 2, "it came back");
    }

    #[test]
    fn clearing_forgets_everything() {
        let mut state = PreservedState::default();
        state.set_objective("o", Origin::Human);
        state.add_pending("p", Origin::Human);
        state.mark_completed("c", Origin::Human);
        state.record_decision("d", "", Some(DateTime::UNIX_EPOCH), Origin::Human);
        state.record_issue("i", Severity::Low, Vec::new(), Origin::Human);
        state.set_custom("k", "v", Origin::Human);
        state.feed_git(&GitFacts {
            modified: vec!["m".to_owned()],
            ..GitFacts::default()
        });
        state.test_state.failing.push("t".to_owned());
        assert_ne!(state, PreservedState::default());
        assert_eq!(state.items().len(), 9);
        state.clear();
        assert_eq!(state, PreservedState::default());
    }

    #[test]
    fn no_list_grows_without_end() {
        let mut state = PreservedState::default();
        for n in 0..KEPT_ITEMS + 5 {
            let text = format!("item {n}");
            state.record_decision(&text, "", Some(DateTime::UNIX_EPOCH), Origin::Human);
            state.record_issue(&text, Severity::Low, Vec::new(), Origin::Human);
            state.set_custom(&text, "v", Origin::Human);
        }
        let many: Vec<String> = (0..3 * KEPT_ITEMS).map(|n| format!("item {n}")).collect();
        let items = || many.iter().map(String::as_str);
        state.feed_list(std::iter::empty(), items(), Origin::Todo);
        state.feed_list(items(), std::iter::empty(), Origin::Todo);
        state.mark_completed("one more", Origin::Human);
        for length in [
            state.decisions.len(),
            state.known_issues.len(),
            state.custom.len(),
            state.completed_items.len(),
        ] {
            assert_eq!(length, KEPT_ITEMS);
        }
        assert!(state.pending_items.is_empty());
        assert_eq!(state.completed_items.last().unwrap(), &"one more");
    }

    #[test]
    fn it_goes_through_json_with_its_origins_and_reads_plain_texts() {
        let mut state = PreservedState::default();
        state.set_objective("o", Origin::Signal);
        state.add_pending("p", Origin::Todo);
        state.set_custom("k", "v", Origin::Human);
        let json = serde_json::to_value(&state).unwrap();
        assert_eq!(
            json["pending_items"][0],
            serde_json::json!({"text": "p", "origin": "todo"})
        );
        assert_eq!(
            serde_json::from_value::<PreservedState>(json).unwrap(),
            state
        );
        let plain = r#"{"current_objective":"o","pending_items":["p"],"custom":{"k":"v"},
            "decisions":[{"description":"d","rationale":"","timestamp":"2026-01-01T00:00:00Z"}]}"#;
        let read: PreservedState = serde_json::from_str(plain).unwrap();
        assert_eq!(read.pending_items, [Item::new("p", Origin::Human)]);
        assert_eq!(read.decisions[0].origin, Origin::Human);
    }
}
