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

use serde_json::json;

use crate::{
    api::wire::{ApiEvent, ApiEventKind},
    autopilot::RunEvent,
    guard::{Figure, Level},
    lineage::IterationId,
};
use pitstop_agent::{ToolCall, ToolOutput};
use pitstop_base::{clock::At, format, recent};
use pitstop_handoff::breakpoint::{
    Breakpoint, BreakpointKind,
    commit::{self, Made},
    git::{Commit, GitState, RunStart},
    test_run::{self, Shell, TestOutcome, Total, quote_command},
};

use crate::app::{
    consequences::Consequences,
    draft::{
        checkpoint::{self, SaveOrder},
        handoff,
    },
    effect::{Effect, run_event},
    event::TimerId,
    facts::is_safe,
    model::{
        CarryOut, Model,
        draft::HandoffDraft,
        moments::{Moments, SeenBy, Unreported, Waiting},
        progress::only_looks,
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
            let started = (call.id.clone(), directory.clone());
            recent::push(&mut self.running, started, RUNNING_KEPT);
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
        if let Some(named) = call.command.as_ref().or(edited) {
            recent::push(&mut self.named, named.clone(), RUNNING_KEPT);
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
        recent::push(&mut self.commits, made.sha.clone(), COMMITS_KEPT);
        true
    }

    /// Notes a test run. Returns false if it was known.
    fn note_run(&mut self, run: &TestRun, now: At) -> bool {
        let known = self.is_known(run.by, run.total, now);
        self.tests = (!known).then_some((run.total, run.by, now));
        !known
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

/// What decides about a commit or a test run.
pub(in crate::app) struct MomentFacts {
    saves_commits: bool,
    saves_tests: bool,
    now: At,
    /// The present iteration, in a run.
    run_iteration: Option<IterationId>,
}

impl MomentFacts {
    pub(in crate::app) fn of(model: &Model) -> Self {
        let settings = &model.config.context;
        let run = model.autopilot.as_ref();
        Self {
            saves_commits: settings.checkpoint_at_commits,
            saves_tests: settings.checkpoint_at_tests,
            now: model.now,
            run_iteration: run.map(|_| model.session.iteration()),
        }
    }
}

/// A commit or a test run that was observed.
pub(in crate::app) enum Observed {
    /// A commit was made.
    Commit(Made),
    /// Tests were run.
    Tests(TestRun),
}

/// A test run that has ended.
pub(in crate::app) struct TestRun {
    pub(in crate::app) by: SeenBy,
    pub(in crate::app) total: Total,
    pub(in crate::app) command: String,
    pub(in crate::app) seconds: Option<f64>,
    pub(in crate::app) failing: Vec<String>,
}

impl Observed {
    fn kind(&self) -> BreakpointKind {
        match self {
            Self::Commit(made) => BreakpointKind::Committed {
                sha: made.sha.clone(),
                subject: made.subject.clone(),
            },
            Self::Tests(run) if run.total.passed => BreakpointKind::TestsPassed {
                count: run.total.count,
            },
            Self::Tests(run) => BreakpointKind::TestsFailed {
                failed: run.failed(),
            },
        }
    }

    /// Returns the checkpoint that is saved for it.
    fn checkpoint(&self) -> Waiting {
        match self {
            Self::Commit(made) => {
                let mut tags = vec!["git-commit".to_owned()];
                tags.extend(made.branch.clone());
                tags.push(made.short_id().to_owned());
                tags.extend(made.files.map(|files| format!("files-{files}")));
                let subject = Some(made.subject.as_str()).filter(|subject| !subject.is_empty());
                Waiting {
                    task: format!("Commit: {}", subject.unwrap_or(made.short_id())),
                    tags,
                    about: json!({
                        "commit_sha": made.sha, "branch": made.branch, "commit_message": made.message,
                        "files_changed": made.files,
                    }),
                    sha: Some(made.sha.clone()),
                    again: false,
                }
            }
            Self::Tests(run) => {
                let (total, failed) = (run.total, run.failed());
                let word = if total.passed { "passed" } else { "failed" };
                let mut tags = vec![format!("tests-{word}")];
                tags.extend(total.count.map(|count| format!("tests-{count}")));
                tags.extend(failed.map(|failed| format!("failed-{failed}")));
                let failing = run.failing.iter().take(NAMES_LISTED);
                let failing: Vec<_> = failing.map(|name| test_run::kept_name(name)).collect();
                Waiting {
                    task: run_task(total, run.seconds),
                    tags,
                    about: json!({
                        "passed": total.passed, "test_count": total.count, "failed_count": total.failed,
                        "duration_seconds": run.seconds, "test_command": run.command,
                        "failing_tests": failing,
                    }),
                    sha: None,
                    again: false,
                }
            }
        }
    }

    /// Returns the event of an autonomous run.
    fn into_event(self, iteration: IterationId, what: String) -> RunEvent {
        match self {
            Self::Commit(made) => RunEvent::Committed {
                iteration,
                sha: made.sha,
                what,
            },
            Self::Tests(run) => RunEvent::TestsEnded {
                iteration,
                passed: run.total.passed,
                count: run.total.count,
                failed: run.failed(),
                what,
                command: run.command,
            },
        }
    }
}

impl TestRun {
    fn failed(&self) -> Option<u64> {
        self.total.failed.filter(|failed| *failed > 0)
    }
}

impl HandoffDraft {
    /// Takes in a tool of the agent that has run: what it did to the to-do list and the notes, and the test runs and the commits that
    /// its shell command shows.
    pub(in crate::app) fn tool_finished(
        &mut self,
        call: &ToolCall,
        output: &ToolOutput,
        facts: &MomentFacts,
    ) -> Consequences {
        let printed = format!("{}\n{}", output.stdout, output.stderr);
        if output.failed && !output.interrupted {
            let file = call.file.as_deref().unwrap_or_default();
            let named = format!("{} {file}", call.name);
            let named = call.command.as_deref().unwrap_or(named.trim_end());
            let said = format!("{}\n{}", output.stderr, output.stdout);
            let message = format!("{named}: {}", said.trim());
            let hint = "mend its cause, then try it again";
            self.note_error(&message, hint, facts.now);
        }
        if let Some(todo) = &call.todo {
            self.todo.hooked(todo);
        }
        // An edit that was refused wrote nothing: often because a person has just changed the file.
        let wrote = writes_notes(call) && (call.command.is_some() || !output.failed);
        let reads = wrote.then(|| self.notes.agent_wrote());
        let follows = Consequences::from(reads);
        self.moments.tool_finished(call);
        let Some(command) = &call.command else {
            return follows;
        };
        let outcomes = self.take_printed(call, output, facts.now);
        let run = test_run::sum_up(&outcomes).map(|total| {
            Observed::Tests(TestRun {
                by: SeenBy::Shell,
                total,
                command: quote_command(command),
                seconds: None,
                failing: outcomes.into_iter().flat_map(|one| one.failing).collect(),
            })
        });
        let commits = commit::find_commits(command, &printed).into_iter();
        let observed = run.into_iter().chain(commits.map(Observed::Commit));
        observed.fold(follows, |follows, one| {
            follows.then(self.take_in(one, facts).1)
        })
    }

    /// Takes in the new commits that no hook has reported, now that the timer of this epoch has run out.
    pub(in crate::app) fn heads_over(&mut self, epoch: u64, facts: &MomentFacts) -> Consequences {
        let mut follows = Consequences::default();
        // Those whose timer still runs may be reported by a hook that knows more of them.
        let is_over = |one: &mut Unreported| one.epoch <= epoch;
        while let Some(one) = self.moments.unreported.pop_front_if(is_over) {
            let good = self.moments.good.clone();
            follows = follows.then(self.take_in(Observed::Commit(one.made), facts).1);
            if !one.is_latest {
                self.moments.good = good;
            }
        }
        follows
    }

    /// Takes in a commit or a test run: publishes an event, sets the good moment and, where that is wanted, orders a checkpoint
    /// for after the next answer of git. Returns whether a checkpoint is kept, `None` if it was known, and what follows.
    pub(in crate::app) fn take_in(
        &mut self,
        observed: Observed,
        facts: &MomentFacts,
    ) -> (Option<bool>, Consequences) {
        let mut follows = Consequences::default();
        let (moments, now) = (&mut self.moments, facts.now);
        let kind = observed.kind();
        let what = described(&kind);
        let (is_new, event, wanted) = match &observed {
            Observed::Commit(made) => {
                let is_new = moments.note_commit(made);
                (is_new, ApiEventKind::Commit, facts.saves_commits)
            }
            Observed::Tests(run) => {
                let is_new = moments.note_run(run, now);
                (is_new, ApiEventKind::Tests, facts.saves_tests)
            }
        };
        if !is_new {
            return (None, follows);
        }
        if kind.is_good() {
            moments.good = Some(Breakpoint { kind, at: now });
        } else {
            moments.pass();
        }
        let checkpoint = observed.checkpoint();
        let saves = wanted && moments.may_save(now);
        if wanted && !saves {
            let tags = &checkpoint.tags;
            tracing::warn!(?tags, "too many checkpoints a minute: this one is not kept");
        }
        let data = checkpoint.about.clone();
        if saves {
            moments.waiting.push(checkpoint);
        }
        if event == ApiEventKind::Commit {
            follows.info(what.clone());
        }
        follows.emit(Effect::Publish(Box::new(ApiEvent { kind: event, data })));
        follows.effects.extend(saves.then_some(Effect::ReadGit));
        if let Some(iteration) = facts.run_iteration {
            follows.emit(run_event(observed.into_event(iteration, what)));
        }
        (Some(saves), follows)
    }

    /// Takes in the outcomes of the test runs that a shell command has printed, and returns them.
    pub(in crate::app) fn take_printed(
        &mut self,
        call: &ToolCall,
        output: &ToolOutput,
        now: At,
    ) -> Vec<TestOutcome> {
        let printed = format!("{}\n{}", output.stdout, output.stderr);
        let directory = self.moments.directory_of(call);
        let shell = Shell {
            command: call.command.as_deref(),
            directory: directory.as_deref(),
            failed: output.failed,
        };
        let outcomes = shell.recognise_runs(&printed);
        self.take_outcomes(&outcomes, now);
        outcomes
    }

    /// Takes over the state that was read from git.
    fn take_git(&mut self, state: GitState, now: At) {
        self.git = state;
        let named = std::mem::take(&mut self.moments.named);
        if let GitState::Facts(facts) = &self.git {
            let state = &mut self.signalled;
            state.run_start.get_or_insert_with(|| RunStart {
                since: Some(now.wall - READING_TIME),
                ..RunStart::from(&**facts)
            });
            let trees = named.iter().flat_map(|text| facts.trees_named_in(text));
            state.other_trees.extend(trees.map(|tree| tree.top.clone()));
        }
    }

    /// Takes the checkpoints that waited for this state of git. The answer may be older than a commit, so one that it does not show
    /// waits for another answer.
    fn take_ready(&mut self) -> Vec<Waiting> {
        let head = match &self.git {
            GitState::Facts(facts) => facts.head.as_deref(),
            _ => None,
        };
        let (later, ready) = std::mem::take(&mut self.moments.waiting)
            .into_iter()
            .partition(|one| {
                let sha = one.sha.as_deref();
                let unseen = sha
                    .zip(head)
                    .is_some_and(|(sha, head)| !head.starts_with(sha));
                unseen && !one.again
            });
        self.moments.waiting = later;
        for one in &mut self.moments.waiting {
            one.again = true;
        }
        ready
    }

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
    let writes = |command: &str| command.contains(NOTES) && !only_looks(command);
    let by_tool = EDITORS.contains(&call.name.as_str())
        && call
            .file
            .as_deref()
            .is_some_and(|file| file.ends_with(NOTES));
    by_tool || call.command.as_deref().is_some_and(writes)
}

/// Takes over the state that was read from git. A head that was made since the time before is a commit that no hook reported.
pub fn git_read(model: &mut Model, state: GitState) {
    model.draft.take_git(state, model.now);
    handoff::draft(model);
    let reads = handoff::read_files(model);
    model.emit(reads);
    let new = model.draft.take_new_heads(model.now);
    if !new.is_empty() {
        let epoch = model.next_epoch();
        let seen = new.into_iter().map(|made| Unreported {
            made,
            epoch,
            is_latest: true,
        });
        model.draft.moments.unreported.extend(seen);
        if model.outside.quitting().is_some() {
            // The supervisor ends before a timer could run out.
            let facts = MomentFacts::of(model);
            model.draft.heads_over(epoch, &facts).carry_out(model);
        } else {
            model.emit(Effect::SetTimer(TimerId::NewHead(epoch), REPORT_TIME));
        }
    }
    let state = model.draft.work_state();
    model.reboot.progress.looked(state);
    for one in model.draft.take_ready() {
        checkpoint::save(model, SaveOrder::Breakpoint(one));
    }
    if !model.draft.moments.waiting.is_empty() {
        model.emit(Effect::ReadGit);
    }
}

/// Returns the task of a test run's checkpoint: `Tests passed: 5 tests in 0.3s`.
fn run_task(total: Total, seconds: Option<f64>) -> String {
    let word = if total.passed { "passed" } else { "failed" };
    let failed = total.failed.filter(|failed| *failed > 0);
    let failed = failed.map_or_else(String::new, |failed| format!(" {failed} of"));
    let count = total.count.map(|count| format::count(count, "test"));
    let count = count.map_or_else(String::new, |count| format!("{failed} {count}"));
    let time = seconds.map_or_else(String::new, |seconds| format!(" in {seconds:.1}s"));
    let colon = if count.is_empty() { "" } else { ":" };
    format!("Tests {word}{colon}{count}{time}")
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
        BreakpointKind::TestsPassed { count: Some(count) } => {
            format!("{} passed", format::count(*count, "test"))
        }
        BreakpointKind::TestsPassed { count: None } => "the tests passed".to_owned(),
        BreakpointKind::TestsFailed {
            failed: Some(count),
        } => {
            format!("{} failed", format::count(*count, "test"))
        }
        BreakpointKind::TestsFailed { failed: None } => "the tests failed".to_owned(),
    }
}
