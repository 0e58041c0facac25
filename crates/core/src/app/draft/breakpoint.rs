//! Breakpoints, the good moments: commits and test runs, whatever reports them, what is saved at them, and whether the guard uses one.
//!
//! ```text
//!   post-commit hook ─┐
//!   pitstop test     ─┼─► reported ─┐
//!   curl             ─┘             ├─► known already? ─► checkpoint, once git has been read
//!   the agent's shell ─► tool_finished ─┤                      │
//!   a new head        ─► git_read ──────┘                      └─► a good moment lasts until work goes on
//! ```
//!
//! The same commit or run may be reported in several ways; it counts once. All of it is observed, none of it ordered: from the warn
//! line on, a good moment may *ask* for a reboot, as the compact line does.

use std::time::Duration;

use serde_json::{Value, json};

use crate::{
    api::wire::{ApiEvent, ApiEventKind},
    autopilot::RunEvent,
    guard::{Figure, Level},
};
use pitstop_agent::ToolCall;
use pitstop_base::clock::At;
use pitstop_handoff::breakpoint::{
    Breakpoint, BreakpointKind,
    commit::{self, Made},
    git::{Commit, GitState},
    test_run::{self, TestOutcome, Total, quote_command},
};

use crate::app::{
    draft::{checkpoint, handoff},
    effect::{Effect, run_event},
    event::TimerId,
    facts::is_safe,
    model::{
        Model,
        draft::HandoffDraft,
        moments::{Moments, SeenBy, Waiting},
    },
};

/// The number of commits that are remembered, to recognize one that is reported again: more than a turn makes.
const COMMITS_KEPT: usize = 256;

/// The time that a new head waits for the hook or the agent's shell, which know its size too.
const REPORT_TIME: Duration = Duration::from_secs(5);

/// The longest time before the arrival of a reading of git in which a commit counts as made after it: the answer may be seconds old
/// when it arrives, and git counts in whole seconds. A commit that was counted already does not count again.
const READING_TIME: chrono::TimeDelta = chrono::TimeDelta::seconds(30);

/// The time within which the same outcome of a test run, seen by the agent's shell and by a report, counts as one run.
const SAME_RUN: Duration = Duration::from_secs(60);

/// The number of checkpoints a minute that observed facts may make: the agent could otherwise fill the disk.
pub(in crate::app) const SAVES_A_MINUTE: usize = 60;

/// The number of running commands that are remembered: more than a client runs side by side.
const RUNNING_KEPT: usize = 64;

/// The number of failing tests that an event and a checkpoint's record name; the preserved state has them all.
const NAMES_LISTED: usize = 100;

impl Moments {
    /// Notes the directory in which a shell command of the agent begins: when it is over, the shell may be elsewhere.
    pub(in crate::app) fn tool_started(&mut self, call: &ToolCall) {
        if let (Some(_), Some(directory)) = (&call.command, &call.directory) {
            self.running.push_back((call.id.clone(), directory.clone()));
        }
        if self.running.len() > RUNNING_KEPT {
            self.running.pop_front();
        }
    }

    /// Returns the directory in which the shell command of a finished call began, if that is known.
    pub(in crate::app) fn directory_of(&mut self, call: &ToolCall) -> Option<String> {
        let at = self.running.iter().position(|(id, _)| *id == call.id);
        if let Some((_, directory)) = at.and_then(|at| self.running.remove(at)) {
            return Some(directory);
        }
        let line = call.command.as_deref().unwrap_or_default();
        let stays = !test_run::changes_directory(line);
        call.directory.clone().filter(|_| stays)
    }

    /// Notes a tool that has run: it may have named another work tree, and an edit begins new work.
    fn tool_finished(&mut self, call: &ToolCall) {
        let edited = call.file.as_ref().filter(|_| edits(call));
        self.named.extend(call.command.as_ref().or(edited).cloned());
        if self.named.len() > RUNNING_KEPT {
            self.named.pop_front();
        }
        if call.command.is_none() && edits(call) {
            self.pass();
        }
    }

    /// Notes a commit. Returns false if it was known.
    fn note_commit(&mut self, made: &Made) -> bool {
        if let Some(known) = self.commits.iter_mut().find(|sha| made.is(sha)) {
            if known.len() < made.sha.len() {
                known.clone_from(&made.sha);
            }
            return false;
        }
        self.commits.push_back(made.sha.clone());
        if self.commits.len() > COMMITS_KEPT {
            self.commits.pop_front();
        }
        true
    }

    /// Reports whether this is the test run that was seen last, seen in the other way.
    pub(in crate::app) fn is_known(&self, by: SeenBy, total: Total, now: At) -> bool {
        self.tests.is_some_and(|(last, seen_by, at)| {
            last == total && seen_by != by && now.since(at) < SAME_RUN
        })
    }

    /// Reports whether one more checkpoint may be made by an observed fact in this minute, and counts it.
    pub(in crate::app) fn may_save(&mut self, now: At) -> bool {
        self.saves
            .retain(|at| now.since(*at) < Duration::from_secs(60));
        let may = self.saves.len() < SAVES_A_MINUTE;
        if may {
            self.saves.push_back(now);
        }
        may
    }

    /// Ends the good moment, which was taken up, or turned down by a breaker: either way it is not asked for again.
    pub(in crate::app) fn take_up(&mut self) {
        if let Some(good) = self.good.take() {
            self.taken = Some(good);
        }
    }
}

impl HandoffDraft {
    /// Adds the outcomes of a shell command's test runs to what survives a reboot.
    fn take_outcomes(&mut self, outcomes: &[TestOutcome], now: At) {
        if outcomes.is_empty() {
            return;
        }
        let total = test_run::sum_up(outcomes);
        let is_known = |total| self.moments.is_known(SeenBy::Shell, total, now);
        let again = total.is_some_and(is_known);
        let tests = &mut self.signalled.test_state;
        let before = again.then(|| tests.clone());
        tests.apply_outcomes(outcomes);
        if let Some(before) = before {
            tests.keep_changes(before);
        }
    }

    /// Returns the commits on top of the earlier head that were made since, oldest first: one that was only checked out is older.
    fn take_new_heads(&mut self, now: At) -> Vec<Made> {
        let GitState::Facts(facts) = &self.git else {
            return Vec::new();
        };
        if facts.operation.is_some() {
            return Vec::new();
        }
        let head_at = &mut self.moments.head_at;
        let Some((head, read)) = head_at.replace((facts.head.clone(), now)) else {
            return Vec::new();
        };
        let since = read.wall - READING_TIME;
        let commits = facts.commits.iter();
        let new_here = commits.take_while(|one| head.as_ref() != Some(&one.sha) && one.at >= since);
        let made_on = |branch: Option<&str>, one: &Commit| {
            Made::from_report(&one.sha, branch, &one.subject, None)
        };
        let mut made: Vec<Made> = new_here
            .map(|one| made_on(facts.branch.as_deref(), one))
            .collect();
        made.reverse();
        let known = &self.signalled.other_trees;
        let trees = facts.other_trees.iter();
        for tree in trees.filter(|tree| known.contains(&tree.top)) {
            let new = tree.commits.iter().rev().filter(|one| one.at >= since);
            made.extend(new.map(|one| made_on(tree.branch.as_deref(), one)));
        }
        made
    }
}

/// Handles a tool of the agent that has run; `printed` is the output of its shell command and `outcomes` the tests in it.
pub fn tool_finished(model: &mut Model, call: &ToolCall, printed: &str, outcomes: &[TestOutcome]) {
    model.draft.moments.tool_finished(call);
    let Some(command) = &call.command else {
        return;
    };
    model.draft.take_outcomes(outcomes, model.now);
    if let Some(total) = test_run::sum_up(outcomes) {
        let failing: Vec<String> = outcomes
            .iter()
            .flat_map(|one| one.failing.iter().cloned())
            .collect();
        tested(
            model,
            SeenBy::Shell,
            total,
            &quote_command(command),
            None,
            &failing,
        );
    }
    for made in commit::find_commits(command, printed) {
        committed(model, &made);
    }
}

/// The tools that write files.
const EDITORS: [&str; 4] = ["Edit", "MultiEdit", "NotebookEdit", "Write"];

/// Reports whether a tool begins new work: from there on the last commit is no good place to stop any more.
fn edits(call: &ToolCall) -> bool {
    // Notes are no work: an agent that ends a turn well writes them last.
    EDITORS.contains(&call.name.as_str()) && !writes_notes(call)
}

/// Reports whether a call writes the scratchpad; for a shell command only its text shows it.
pub fn writes_notes(call: &ToolCall) -> bool {
    const NOTES: &str = ".pitstop/scratchpad.md";
    let names = |text: &Option<String>| text.as_deref().is_some_and(|text| text.contains(NOTES));
    let by_tool = EDITORS.contains(&call.name.as_str())
        && call
            .file
            .as_deref()
            .is_some_and(|file| file.ends_with(NOTES));
    by_tool || names(&call.command)
}

/// Takes over the state that was read from git. A head that was made since the time before is a commit that no hook reported.
pub fn git_read(model: &mut Model, state: GitState) {
    model.draft.git = state;
    let named = std::mem::take(&mut model.draft.moments.named);
    if let GitState::Facts(facts) = &model.draft.git {
        let state = &mut model.draft.signalled;
        state.run_start.get_or_insert_with(|| facts.as_ref().into());
        let trees = named.iter().flat_map(|text| facts.trees_named_in(text));
        state.other_trees.extend(trees.map(|tree| tree.top.clone()));
    }
    handoff::draft(model);
    let files = &model.config.handoff.include_files;
    let reads = handoff::read_files(&model.draft, files);
    model.emit(reads);
    let new = model.draft.take_new_heads(model.now);
    if !new.is_empty() {
        let epoch = model.next_epoch();
        let heads = &mut model.draft.moments.heads;
        heads.0.extend(new);
        heads.1 = epoch;
        if model.outside.quitting().is_some() {
            // Nobody waits for a timer any more.
            head_unreported(model, epoch);
        } else {
            model.emit(Effect::SetTimer(TimerId::NewHead(epoch), REPORT_TIME));
        }
    }
    let state = model.draft.work_state();
    model.reboot.progress.looked(state);
    let head = match &model.draft.git {
        GitState::Facts(facts) => facts.head.clone(),
        _ => None,
    };
    let shown = |sha: &str| head.as_deref().is_some_and(|head| head.starts_with(sha));
    for mut one in std::mem::take(&mut model.draft.moments.waiting) {
        let unseen = one.sha.as_deref().is_some_and(|sha| !shown(sha));
        if unseen && !one.again && head.is_some() {
            // The answer may be older than the commit.
            one.again = true;
            model.draft.moments.waiting.push(one);
        } else {
            save(model, one);
        }
    }
    if !model.draft.moments.waiting.is_empty() {
        model.emit(Effect::ReadGit);
    }
}

/// Counts the new commits once the hooks that know more of them have had their time to report them.
pub fn head_unreported(model: &mut Model, epoch: u64) {
    let (heads, waited) = &mut model.draft.moments.heads;
    if *waited == epoch {
        for made in std::mem::take(heads) {
            committed(model, &made);
        }
    }
}

/// Counts a commit and returns whether a checkpoint of it is kept; `None` if the commit was known.
pub(in crate::app) fn committed(model: &mut Model, made: &Made) -> Option<bool> {
    if !model.draft.moments.note_commit(made) {
        return None;
    }
    model.outside.counters.count_commit();
    let mut tags = vec!["git-commit".to_owned()];
    tags.extend(made.branch.clone());
    tags.push(made.short_id().to_owned());
    tags.extend(made.files.map(|files| format!("files-{files}")));
    let about = json!({
        "commit_sha": made.sha, "branch": made.branch, "commit_message": made.message,
        "files_changed": made.files,
    });
    let kind = BreakpointKind::Committed {
        sha: made.sha.clone(),
        subject: made.subject.clone(),
    };
    let what = described(&kind);
    model.info(what.clone());
    let subject = Some(made.subject.as_str()).filter(|subject| !subject.is_empty());
    let task = format!("Commit: {}", subject.unwrap_or(made.short_id()));
    let saved = seen(model, kind, task, tags, about, Some(made.sha.clone()));
    if model.autopilot.is_some() {
        model.emit(run_event(RunEvent::Committed {
            iteration: model.session.iteration(),
            sha: made.sha.clone(),
            what,
        }));
    }
    Some(saved)
}

/// Counts a test run that has ended and returns whether a checkpoint of it is kept; `None` if the run was known.
pub(in crate::app) fn tested(
    model: &mut Model,
    by: SeenBy,
    total: Total,
    command: &str,
    seconds: Option<f64>,
    failing: &[String],
) -> Option<bool> {
    let known = model.draft.moments.is_known(by, total, model.now);
    model.draft.moments.tests = (!known).then_some((total, by, model.now));
    if known {
        return None;
    }
    let word = if total.passed { "passed" } else { "failed" };
    model.outside.counters.count_tests(total.passed);
    let mut tags = vec![format!("tests-{word}")];
    tags.extend(total.count.map(|count| format!("tests-{count}")));
    let failed = total.failed.filter(|failed| *failed > 0);
    tags.extend(failed.map(|failed| format!("failed-{failed}")));
    let about = json!({
        "passed": total.passed, "test_count": total.count, "failed_count": total.failed,
        "duration_seconds": seconds, "test_command": command,
        "failing_tests": failing.iter().take(NAMES_LISTED).map(|name| test_run::kept_name(name)).collect::<Vec<_>>(),
    });
    let kind = if total.passed {
        BreakpointKind::TestsPassed { count: total.count }
    } else {
        BreakpointKind::TestsFailed { failed }
    };
    let what = described(&kind);
    let saved = seen(model, kind, run_task(total, seconds), tags, about, None);
    if model.autopilot.is_some() {
        model.emit(run_event(RunEvent::TestsEnded {
            iteration: model.session.iteration(),
            passed: total.passed,
            count: total.count,
            failed: total.failed,
            what,
            command: command.to_owned(),
        }));
    }
    Some(saved)
}

/// Returns the task of a test run's checkpoint: `Tests passed: 5 tests in 0.3s`.
fn run_task(total: Total, seconds: Option<f64>) -> String {
    let word = if total.passed { "passed" } else { "failed" };
    let failed = total.failed.filter(|failed| *failed > 0);
    let failed = failed.map_or_else(String::new, |failed| format!(" {failed} of"));
    let count = total.count.map_or_else(String::new, |count| {
        format!("{failed} {count} test{}", if count == 1 { "" } else { "s" })
    });
    let time = seconds.map_or_else(String::new, |seconds| format!(" in {seconds:.1}s"));
    let colon = if count.is_empty() { "" } else { ":" };
    format!("Tests {word}{colon}{count}{time}")
}

/// Does what every breakpoint brings: publishes an event, sets the good moment and, where that is wanted, orders a checkpoint named
/// by `task` for after the next answer of git. Returns whether a checkpoint is kept.
fn seen(
    model: &mut Model,
    kind: BreakpointKind,
    task: String,
    tags: Vec<String>,
    about: Value,
    sha: Option<String>,
) -> bool {
    let at = model.now;
    let settings = &model.config.context;
    let (event, wanted) = match &kind {
        BreakpointKind::Committed { .. } => (ApiEventKind::Commit, settings.checkpoint_at_commits),
        _ => (ApiEventKind::Tests, settings.checkpoint_at_tests),
    };
    if kind.is_good() {
        model.draft.moments.good = Some(Breakpoint { kind, at });
    } else {
        model.draft.moments.pass();
    }
    let data = about.clone();
    model.emit(Effect::Publish(Box::new(ApiEvent { kind: event, data })));
    if !wanted {
        return false;
    }
    let saves = model.draft.moments.may_save(at);
    if saves {
        model.draft.moments.waiting.push(Waiting {
            task,
            tags,
            about,
            sha,
            again: false,
        });
        model.emit(Effect::ReadGit);
    } else {
        tracing::warn!(?tags, "too many checkpoints a minute: this one is not kept");
    }
    saves
}

/// Saves everything that a later session needs, and the breakpoint that it was saved for.
fn save(model: &mut Model, what: Waiting) {
    model.draft.notes.save(model.now).carry_out(model);
    let id = checkpoint::next_id(model);
    let mut checkpoint = checkpoint::snapshot(model, id, what.tags);
    checkpoint.task = what.task;
    if let Value::Object(fields) = &mut checkpoint.state {
        fields.insert("breakpoint".to_owned(), what.about);
    }
    model.emit(Effect::SaveCheckpoint(Box::new(checkpoint)));
}

/// Reports whether this is a moment to ask for a reboot though the compact line is not reached: from the warn line on, right after
/// something was finished, and while nothing runs.
pub fn is_good(model: &Model, figure: &Figure) -> bool {
    figure.level >= Level::Critical && model.draft.moments.good.is_some() && is_safe(model)
}

/// Returns the reason for which the reboot was asked for, in words.
pub fn reason(model: &Model) -> String {
    what(model).map_or_else(
        || "a good moment".to_owned(),
        |what| format!("a good moment: {what}"),
    )
}

/// Returns what makes the moment of the reboot a good one: `5 tests passed`.
pub fn what(model: &Model) -> Option<String> {
    let taken = model.draft.moments.taken.as_ref();
    taken.map(|taken| described(&taken.kind))
}

fn described(kind: &BreakpointKind) -> String {
    match kind {
        BreakpointKind::Committed { sha, subject } => {
            let short = sha.get(..7).unwrap_or(sha);
            format!("commit {short} {subject}").trim_end().to_owned()
        }
        BreakpointKind::TestsPassed { count: Some(1) } => "1 test passed".to_owned(),
        BreakpointKind::TestsPassed { count: Some(count) } => format!("{count} tests passed"),
        BreakpointKind::TestsPassed { count: None } => "the tests passed".to_owned(),
        BreakpointKind::TestsFailed { failed: Some(1) } => "1 test failed".to_owned(),
        BreakpointKind::TestsFailed {
            failed: Some(count),
        } => format!("{count} tests failed"),
        BreakpointKind::TestsFailed { failed: None } => "the tests failed".to_owned(),
    }
}
