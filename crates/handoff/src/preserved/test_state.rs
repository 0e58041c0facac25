//! The results of the tests: each run changes what it has run, and nothing else.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use crate::breakpoint::test_run::{self, Owner, TestOutcome};

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
    /// The number of tests that the last run ran, as far as reported.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub ran: u64,
    /// The owners of the tests, with the owner that ran last at the end: `passing` and `failing` end with the tests of these, in
    /// this order. The owners of the tests before them, which an older version has kept, are not known.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub owners: Vec<OwnerCounts>,
}

/// The numbers of tests that belong to an owner.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct OwnerCounts {
    /// The owner of the tests.
    #[serde(flatten)]
    pub owner: Owner,
    /// The number of its tests among those that passed.
    pub passing: usize,
    /// The number of its tests among those that failed.
    pub failing: usize,
    /// The number of tests that its last whole run ran; 0 if that is not known.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub ran: u64,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde hands it so")]
const fn is_zero(number: &u64) -> bool {
    *number == 0
}

/// The tests of one owner, or of an unknown one.
#[derive(Default)]
struct Group {
    owner: Option<Owner>,
    passing: Vec<String>,
    failing: Vec<String>,
    ran: u64,
}

/// The verdicts of a run on its owner's tests.
struct Verdicts<'a> {
    owner: &'a Owner,
    passing: BTreeSet<&'a str>,
    failing: BTreeSet<&'a str>,
    /// The number of tests that failed, at least.
    failed: u64,
    /// True if every test that failed has a name.
    all_named: bool,
    /// True if tests without a name passed.
    unnamed: bool,
    /// A note that is kept among the failing tests from now on and is not a test's name.
    note: Option<String>,
    /// The number of tests that it ran, if it was a whole run.
    ran: Option<u64>,
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

/// Reports whether a filter by these parts of names selects the test of this name, in whose name they may be apart.
fn picks(parts: &[String], name: &str) -> bool {
    let joined = name.replace(" › ", " ").replace(" > ", " ");
    let is_in = |part: &String| {
        let words = part.trim_matches(['^', '$']);
        let fits = |(at, _): (usize, &str)| {
            let (before, behind) = (&joined[..at], &joined[at + words.len()..]);
            // A test that is selected has its subtests run.
            (!part.starts_with('^') || before.is_empty() || before.ends_with(['.', ' ']))
                && (!part.ends_with('$') || behind.is_empty() || behind.starts_with('/'))
        };
        !words.is_empty() && joined.match_indices(words).any(fits)
    };
    parts.iter().any(is_in)
}

/// Reports whether a run has failed the test of this name or, if it is a note about them, tests without names.
fn leaves_failing(run: &TestOutcome, name: &str) -> bool {
    let is_unnamed = run.failed > Some(run.failing.len() as u64);
    run.failing.iter().any(|failing| failing == name) || is_unnamed && name.ends_with(UNNAMED)
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
    /// Applies the outcomes of the test runs of one command. `fixed` and `regressed` compare with the runs before it; a run of some
    /// tests, or of another owner's tests, does not change the results of the others. A run that could not be built shows nothing
    /// about any test: it is listed in `failing` by the runner's name until one of that owner can be built again. A run that failed may
    /// have stopped early: it shows nothing of the tests that it does not name, unless it ran as many as the run before.
    pub fn apply_outcomes(&mut self, outcomes: &[TestOutcome]) {
        let Some(command) = outcomes.first().map(|one| one.command.as_str()) else {
            return;
        };
        let ran = self.ran;
        let again = self.begin_command(command);
        for (at, outcome) in outcomes.iter().enumerate() {
            // Another run of the same command, as of another package, is no later one of the tests that an earlier one has failed.
            let failed_beside = |name: &str| {
                let mut beside = outcomes[..at].iter();
                beside.any(|one| one.owner == outcome.owner && leaves_failing(one, name))
            };
            let count = outcome.count_tests();
            // A run of no tests, or of which only the last part was shown, says nothing about a test.
            let none_ran =
                outcome.passed == Some(0) && count == 0 && outcome.passing_groups.is_empty();
            self.ran = self.ran.saturating_add(count);
            let counts = outcome.is_failure() && outcome.passed.is_some();
            let mut owners = self.owners.iter();
            let own = owners.find(|one| one.owner == outcome.owner);
            let whole = own.map_or(0, |own| own.ran);
            let is_short = counts && (whole == 0 || count < whole);
            let known: BTreeSet<&str> = outcome.passing.iter().map(String::as_str).collect();
            let failing: BTreeSet<&str> = outcome.failing.iter().map(String::as_str).collect();
            let built = outcome.built || !outcome.passing.is_empty();
            let broken = format!("({} could not be built)", outcome.runner);
            let unnamed = unnamed_note(command);
            let failed = outcome.failed.unwrap_or(0);
            let all_named = failed <= failing.len() as u64;
            let in_group = |name: &str| {
                let rest = |group: &String| name.strip_prefix(group.as_str());
                let mut rests = outcome.passing_groups.iter().filter_map(rest);
                let is_picked = outcome.picked.is_empty() || picks(&outcome.picked, name);
                is_picked
                    && !failed_beside(name)
                    && rests.any(|rest| rest.is_empty() || rest.starts_with(['.', ' ']))
            };
            let ended = built && outcome.complete && !outcome.spoilt;
            let covers = |name: &str| {
                let same = ended && again.iter().any(|named| named == name);
                let is_known = if outcome.whole {
                    !is_short
                } else {
                    outcome.covers_test(name)
                };
                built
                    && !none_ran
                    && !failed_beside(name)
                    && (is_known || same && !(counts && count < ran) || name == unnamed)
            };
            let verdicts = Verdicts {
                owner: &outcome.owner,
                all_named,
                unnamed: outcome
                    .passed
                    .is_none_or(|count| count > known.len() as u64),
                passing: known,
                failing,
                failed,
                note: if built {
                    (!all_named).then(|| unnamed.clone())
                } else {
                    Some(broken)
                },
                ran: (outcome.whole && !none_ran && !(counts && count < whole)).then_some(count),
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
            failed: run.failed.unwrap_or(1),
            all_named,
            unnamed: true,
            note: (!all_named).then(|| unnamed_note(run.command)),
            ran: None,
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
        self.ran = 0;
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
            ran: run.ran.unwrap_or(before.ran),
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
        add_new(&mut now.failing, failing.iter());
        // A test that failed before and is not known to pass now is taken for one of those without a name.
        let named = now.failing.iter().filter(|name| !is_note(name)).count() as u64;
        let is_left = |note: &&String| !note.ends_with(UNNAMED) || run.failed > named;
        add_new(&mut now.failing, run.note.iter().filter(is_left));
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
                ran: share.ran,
            })
            .collect();
        groups.push(Group {
            passing,
            failing,
            ..Group::default()
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
                self.owners.push(OwnerCounts {
                    owner,
                    passing,
                    failing,
                    ran: group.ran,
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

#[cfg(test)]
mod tests;
