//! Good moments: what is reported of them, what is saved, and when the guard takes one.

use serde_json::{Value, json};

use crate::{
    api::wire::{
        ApiEventKind, CommitBody, NotedReply, Report, SaveBody, TestBody, UsageActionKind,
        UsageQuery,
    },
    app::{
        breakpoint,
        changes::ModelSnapshot,
        event::Kept,
        metrics,
        reboot::{Banner, banner},
        report, restore,
    },
    lineage::Cause,
};
use pitstop_handoff::breakpoint::git::{Commit, GitFacts, OtherTree};

use super::*;

const SHA: &str = "1a2b3c4d1a2b3c4d1a2b3c4d1a2b3c4d1a2b3c4d";

/// Past the warn line of the default window, 126 000 of 180 000 usable.
const PAST_WARN: u64 = 130_000;

fn commit(sha: &str) -> Report {
    Report::Commit(CommitBody {
        commit_sha: sha.to_owned(),
        commit_message: Some("parser: read dates\n\nlong".to_owned()),
        branch: Some("main".to_owned()),
        files_changed: Some(3),
        ..CommitBody::default()
    })
}

fn tests(passed: bool) -> Report {
    Report::Tests(TestBody {
        passed,
        test_count: Some(14),
        failed_count: Some(if passed { 0 } else { 2 }),
        ..TestBody::default()
    })
}

fn facts(head: &str, at: At) -> GitState {
    let top = Commit {
        sha: head.to_owned(),
        subject: "s".to_owned(),
        at: at.wall,
    };
    GitState::Facts(Box::new(GitFacts {
        branch: Some("main".to_owned()),
        head: Some(head.to_owned()),
        commits: vec![top],
        ..GitFacts::default()
    }))
}

impl Bench {
    fn report(&mut self, report: Report) -> (Reply, Vec<Effect>) {
        let call = CallId(7);
        let mut effects = self.send(Event::Reported { call, report });
        match effects.remove(0) {
            Effect::Answer(answered, reply) if answered == call => (reply, effects),
            other => panic!("no answer first, but {other:?}"),
        }
    }

    /// The answer comes once the checkpoint is kept.
    fn auto_save(&mut self, body: SaveBody) -> (Reply, Vec<Effect>) {
        let call = CallId(7);
        let report = Report::AutoSave(body);
        let effects = self.send(Event::Reported { call, report });
        if let [Effect::Answer(_, reply)] = &effects[..] {
            return (reply.clone(), Vec::new());
        }
        let id = saved(&effects)[0].id;
        let kept = Kept::Durable;
        let answered = self.send(Event::Store(StoreEvent::CheckpointKept { id, kept }));
        match &answered[0] {
            Effect::Answer(answered, reply) if *answered == call => (reply.clone(), effects),
            other => panic!("no answer, but {other:?}"),
        }
    }

    fn status_of(&mut self, report: Report) -> String {
        match self.report(report).0 {
            Reply::Noted(noted) if noted.known => format!("{}, known", noted.status),
            Reply::Noted(noted) => noted.status,
            other => panic!("{other:?}"),
        }
    }

    fn git_is(&mut self, head: &str) -> Vec<Effect> {
        let facts = facts(head, self.at());
        let mut effects = self.send(Event::Read(ReadEvent::Git(facts)));
        effects.extend(self.send(Event::Read(ReadEvent::HandoffFiles(Box::default()))));
        effects
    }

    /// The level changes only with the next event.
    fn filled(used: u64, config: Config) -> Self {
        let mut bench = Self::with(config);
        bench.used(used);
        bench
    }

    fn waits_for_review(&self) -> bool {
        self.step() == Some(Step::Review) && self.model.view.overlay.is_none()
    }
}

fn tags(effects: &[Effect]) -> Vec<Vec<String>> {
    saved(effects).into_iter().map(|one| one.tags).collect()
}

#[test]
fn a_reported_commit_is_saved_once_git_shows_it() {
    let mut bench = Bench::new();
    let (reply, effects) = bench.report(commit(SHA));
    let expected = NotedReply {
        status: "saved".to_owned(),
        known: false,
        session_id: Some(session(OLD).to_string()),
        commit: Some("1a2b3c4d".to_owned()),
        tests_passed: None,
    };
    assert_eq!(reply, Reply::Noted(expected));
    assert!(effects.contains(&Effect::ReadGit) && saved(&effects).is_empty());
    let event = first!(effects, Effect::Publish(event) => (**event).clone());
    assert_eq!(event.unwrap().kind, ApiEventKind::Commit);
    let effects = bench.git_is(SHA);
    let saved = saved(&effects);
    assert_eq!(saved[0].tags, ["git-commit", "main", "1a2b3c4", "files-3"]);
    assert_eq!(saved[0].environment, "p");
    assert_eq!(saved[0].task, "Commit: parser: read dates");
    assert_eq!(
        saved[0].state["breakpoint"],
        json!({"commit_sha": SHA, "branch": "main", "commit_message": "parser: read dates\n\nlong", "files_changed": 3})
    );
    assert_eq!(bench.status_of(commit(SHA)), "saved, known");
    assert!(tags(&bench.git_is(SHA)).is_empty());
    assert_eq!(metrics::metrics(&bench.model).commits, 1);
    assert_eq!(metrics::metrics(&bench.model).checkpoints, 1);
}

#[test]
fn a_stale_answer_of_git_is_asked_again_and_no_more_than_that() {
    let mut bench = Bench::new();
    bench.git_is("aaaaaaaa");
    bench.wait(Duration::from_secs(100));
    bench.report(commit(SHA));
    let old = facts(
        "aaaaaaaa",
        At {
            wall: chrono::DateTime::UNIX_EPOCH,
            ..bench.at()
        },
    );
    let effects = bench.send(Event::Read(ReadEvent::Git(old.clone())));
    assert_eq!(
        (tags(&effects).len(), effects.contains(&Effect::ReadGit)),
        (0, true)
    );
    let effects = bench.send(Event::Read(ReadEvent::Git(old)));
    assert_eq!(
        (tags(&effects).len(), effects.contains(&Effect::ReadGit)),
        (1, false)
    );
}

#[test]
fn without_git_a_report_is_saved_all_the_same() {
    let mut bench = Bench::new();
    bench.report(commit(SHA));
    assert_eq!(tags(&bench.git()).len(), 1);
}

#[test]
fn a_commit_that_is_seen_in_two_ways_counts_once() {
    let printed = "[main 1a2b3c4] parser: read dates\n 3 files changed, 1 insertion(+)\n";
    let command = "git commit -am x";
    let mut bench = Bench::new();
    bench.report(commit(SHA));
    bench.shell(command, printed);
    assert_eq!(tags(&bench.git_is(SHA)).len(), 1);
    let mut bench = Bench::new();
    bench.shell(command, printed);
    assert_eq!(bench.status_of(commit(&SHA.to_uppercase())), "saved, known");
    let effects = bench.git_is(SHA);
    assert_eq!(
        tags(&effects),
        [["git-commit", "main", "1a2b3c4", "files-3"]]
    );
    // Nor does the head count that git shows in the end.
    assert!(tags(&bench.git_is(SHA)).is_empty());
    assert_eq!(bench.model.outside.counters.commits, 1);
}

#[test]
fn a_new_head_is_a_commit_and_one_checked_out_is_none() {
    let mut bench = Bench::new();
    bench.git_is("aaaaaaaa1");
    bench.wait(Duration::from_secs(60));
    let effects = bench.git_is(SHA);
    assert!(tags(&effects).is_empty(), "another may report more of it");
    let timer = new_head(&effects).expect("a timer");
    bench.send(Event::TimerFired(timer));
    assert_eq!(
        tags(&bench.git_is(SHA)),
        [["git-commit", "main", "1a2b3c4"]]
    );
    bench.wait(Duration::from_secs(60));
    let hour_ago = At {
        wall: bench.at().wall - chrono::TimeDelta::hours(1),
        ..bench.at()
    };
    let old = facts("bbbbbbbb1", hour_ago);
    let effects = bench.send(Event::Read(ReadEvent::Git(old)));
    assert_eq!(new_head(&effects), None);
}

#[test]
fn commits_of_a_rebase_count_once_it_is_over_and_the_first_of_a_repository_does() {
    let mut bench = Bench::new();
    let empty = GitState::Facts(Box::default());
    bench.send(Event::Read(ReadEvent::Git(empty)));
    bench.wait(Duration::from_secs(60));
    let timer = new_head(&bench.git_is("aaaaaaaa1")).expect("a timer");
    bench.send(Event::TimerFired(timer));
    assert_eq!(bench.model.outside.counters.commits, 1);
    for (operation, step) in [
        ("rebase of topic, step 1 of 3", "bbbbbbbb1"),
        ("rebase of topic, step 2 of 3", "bbbbbbbb2"),
        ("cherry-pick", "bbbbbbbb3"),
        ("bisection", "bbbbbbbb4"),
    ] {
        let mut state = facts(step, bench.at());
        if let GitState::Facts(facts) = &mut state {
            facts.operation = Some(operation.to_owned());
        }
        let effects = bench.send(Event::Read(ReadEvent::Git(state)));
        assert_eq!(new_head(&effects), None, "{operation}");
    }
    let timer = new_head(&bench.git_is(SHA)).expect("a timer");
    bench.send(Event::TimerFired(timer));
    assert_eq!(bench.model.outside.counters.commits, 2);
}

#[test]
fn several_commits_between_two_looks_are_seen_each_and_the_last_ones_of_a_run_too() {
    let sha = |number: usize| format!("{number}").repeat(40);
    let grown = |bench: &Bench, commits: std::ops::RangeInclusive<usize>| {
        let at = bench.at();
        let mut state = facts(&sha(*commits.end()), at);
        if let GitState::Facts(facts) = &mut state {
            let one = |number: usize| Commit {
                sha: sha(number),
                subject: format!("number {number}"),
                at: at.wall,
            };
            facts.commits = commits.rev().map(one).collect();
        }
        Event::Read(ReadEvent::Git(state))
    };
    let mut bench = Bench::new();
    bench.send(grown(&bench, 1..=1));
    bench.wait(Duration::from_secs(60));
    bench.send(grown(&bench, 1..=3));
    // Two more within the time in which others may report them.
    let effects = bench.send(grown(&bench, 1..=5));
    let timer = new_head(&effects).expect("a timer");
    bench.send(Event::TimerFired(timer));
    assert_eq!(bench.model.outside.counters.commits, 4);
    let known = bench.model.draft.moments.commits.iter();
    assert_eq!(known.cloned().collect::<Vec<_>>(), [2, 3, 4, 5].map(sha));
    // Nobody waits once pitstop is being left.
    bench.press(KeyCode::F(10));
    bench.send(grown(&bench, 1..=6));
    assert_eq!(bench.model.outside.counters.commits, 5);
}

#[test]
fn commits_in_another_work_tree_count_where_the_agent_has_named_it() {
    for (command, is_named) in [
        ("cd ../side && git commit -qam x", true),
        ("git -C /w/side commit -qam x", true),
        ("cargo test side", false),
    ] {
        let mut bench = Bench::new();
        bench.git_is("aaaaaaaa1");
        bench.wait(Duration::from_secs(60));
        bench.shell(command, "");
        let mut state = facts("aaaaaaaa1", bench.at());
        let made = Commit {
            sha: SHA.to_owned(),
            subject: "made there".to_owned(),
            at: bench.at().wall,
        };
        if let GitState::Facts(facts) = &mut state {
            facts.other_trees = vec![OtherTree {
                top: "/w/side".to_owned(),
                branch: Some("topic".to_owned()),
                commits: vec![made],
            }];
        }
        let effects = bench.send(Event::Read(ReadEvent::Git(state)));
        if let Some(timer) = new_head(&effects) {
            bench.send(Event::TimerFired(timer));
        }
        assert_eq!(
            bench.model.outside.counters.commits,
            u64::from(is_named),
            "{command}"
        );
        let line = "- also worked in /w/side: branch topic, last commit 1a2b3c4";
        let handoff = &bench.model.draft.handoff.current().text;
        assert_eq!(handoff.contains(line), is_named, "{command}: {handoff}");
    }
}

#[test]
fn a_head_that_git_shows_before_its_hook_reports_keeps_the_hooks_words() {
    let mut bench = Bench::new();
    bench.git_is("aaaaaaaa1");
    let effects = bench.git_is(SHA);
    let timer = new_head(&effects).expect("a timer");
    assert_eq!(bench.status_of(commit(SHA)), "saved");
    assert_eq!(tags(&bench.git_is(SHA))[0][3], "files-3");
    let effects = bench.send(Event::TimerFired(timer));
    assert!(!effects.contains(&Effect::ReadGit));
    assert_eq!(bench.model.outside.counters.commits, 1);
}

#[test]
fn commits_that_no_hook_reports_are_seen_while_more_of_them_come() {
    let mut bench = Bench::new();
    bench.git_is("aaaaaaaa1");
    let first = bench.git_is(SHA);
    bench.wait(Duration::from_secs(4));
    let second = bench.git_is("cccccccc3");
    let timers = [first, second].map(|seen| new_head(&seen).expect("a timer"));
    bench.send(Event::TimerFired(timers[0]));
    assert_eq!(bench.model.outside.counters.commits, 1);
    bench.edit("src/lib.rs");
    bench.send(Event::TimerFired(timers[1]));
    assert_eq!(bench.model.outside.counters.commits, 2);
    assert_eq!(
        bench.model.draft.moments.good, None,
        "an edit came behind it"
    );
}

fn new_head(effects: &[Effect]) -> Option<TimerId> {
    first!(effects, Effect::SetTimer(id @ TimerId::NewHead(_), _) => *id)
}

#[test]
fn a_test_run_is_saved_with_its_counts() {
    let mut bench = Bench::new();
    assert_eq!(bench.status_of(tests(false)), "saved");
    assert_eq!(
        tags(&bench.git()),
        [["tests-failed", "tests-14", "failed-2"]]
    );
    let (reply, _) = bench.report(tests(true));
    assert!(matches!(
        reply,
        Reply::Noted(NotedReply {
            tests_passed: Some(true),
            ..
        })
    ));
    assert_eq!(tags(&bench.git()), [["tests-passed", "tests-14"]]);
    let metrics = metrics::metrics(&bench.model);
    assert_eq!(metrics.tests, (1, 1));
}

#[test]
fn reported_failing_tests_reach_the_handoff_by_name() {
    let mut bench = Bench::new();
    let report = Report::Tests(TestBody {
        passed: false,
        test_count: Some(14),
        failed_count: Some(2),
        test_command: Some("cargo test -p parser".to_owned()),
        failing_tests: Some(vec!["parser::dates".to_owned(), "a\u{1b}[2Jb".to_owned()]),
        ..TestBody::default()
    });
    let (_, effects) = bench.report(report.clone());
    let names = json!(["parser::dates", "a\\u{1b}[2Jb"]);
    assert!(
        has!(effects, Effect::Publish(event) if event.data["failing_tests"] == names
            && event.data["test_command"] == "cargo test -p parser")
    );
    let effects = bench.git();
    let one = &saved(&effects)[0];
    assert_eq!(one.state["breakpoint"]["failing_tests"], names);
    assert_eq!(one.state["test_state"]["failing"], names);
    assert_eq!(
        one.state["test_state"]["command"],
        json!("cargo test -p parser")
    );
    let text = bench.rebooted().prompt.expect("a handoff");
    assert!(text.contains("- parser::dates\n"), "{text}");
    assert!(text.contains("`cargo test -p parser`"), "{text}");
    // The next session has them too.
    bench.spawned(3);
    assert_eq!(bench.model.draft.preserved.test_state.failing.len(), 2);
}

#[test]
fn a_run_of_the_agents_shell_that_is_reported_too_keeps_what_it_changed() {
    let run = |verdict: &str, counts: &str| {
        format!(
            "running 1 test\ntest a ... {verdict}\n\ntest result: {counts}; 0 ignored; 0 measured; 0 filtered out\n"
        )
    };
    let mut bench = Bench::new();
    bench.shell("cargo test", &run("ok", "ok. 1 passed; 0 failed"));
    bench.report(Report::Tests(TestBody {
        passed: false,
        test_count: Some(1),
        failed_count: Some(1),
        test_command: Some("cargo test".to_owned()),
        failing_tests: Some(vec!["a".to_owned()]),
        ..TestBody::default()
    }));
    bench.shell(
        "pitstop test -- cargo test",
        &run("FAILED", "FAILED. 0 passed; 1 failed"),
    );
    let tests = &bench.model.draft.preserved.test_state;
    assert_eq!(
        (&*tests.failing, &*tests.regressed),
        (&["a".to_owned()][..], &["a".to_owned()][..])
    );
}

/// `line` runs in a shell that is in `before`, and leaves it in `after`.
fn ran(bench: &mut Bench, line: &str, [before, after]: [Option<&str>; 2], stdout: &str) {
    let call = |directory: Option<&str>| ToolCall {
        id: Some("t1".to_owned()),
        name: "Bash".to_owned(),
        command: Some(line.to_owned()),
        directory: directory.map(str::to_owned),
        ..ToolCall::default()
    };
    bench.send(Event::Agent(AgentEvent::ToolStarted {
        session: session(OLD),
        call: call(before),
    }));
    bench.tool(call(after), stdout);
}

#[test]
fn a_test_belongs_to_the_directory_in_which_its_command_began() {
    let failed =
        "=== short test summary info ===\nFAILED test_a.py::test_x - E\n1 failed in 0.1s\n";
    let passed = "3 passed in 0.1s\n";
    for (second, [before, after], clears) in [
        // The shell has moved with the first one.
        ("pytest -q", ["/p/api", "/p/api"], true),
        ("cd ../web && pytest -q", ["/p/api", "/p/web"], false),
        ("cd /p/api && pytest -q", ["/p", "/p/api"], true),
        ("cd api && pytest -q", ["/p/api", "/p/api/api"], false),
        ("pytest -q", ["/p", "/p"], false),
    ] {
        let mut bench = Bench::new();
        ran(
            &mut bench,
            "cd api && pytest",
            [Some("/p"), Some("/p/api")],
            failed,
        );
        ran(&mut bench, second, [Some(before), Some(after)], passed);
        let failing = &bench.model.draft.signalled.test_state.failing;
        assert_eq!(
            failing.is_empty(),
            clears,
            "{second} in {before}: {failing:?}"
        );
    }
    // Where no hook has said where it began, its end says so only of a line that stays where it is.
    for (line, known) in [
        ("pytest", true),
        ("cd api && pytest", false),
        ("cd /x && pytest", true),
    ] {
        let mut bench = Bench::new();
        ran(&mut bench, line, [None, Some("/p/api")], failed);
        let owner = &bench.model.draft.signalled.test_state.owners[0].owner;
        assert_eq!(owner.directory.is_some(), known, "{line}");
    }
}

#[test]
fn a_report_names_the_directory_of_its_tests() {
    let report = |directory: &str, passed: bool| {
        let body = json!({"passed": passed, "failed_count": u8::from(!passed), "runner": "jest", "directory": directory,
            "test_command": "npm test", "failing_tests": if passed { vec![] } else { vec!["a.test.js › works"] }});
        Report::Tests(serde_json::from_value(body).unwrap())
    };
    let mut bench = Bench::new();
    bench.report(report("/p/a", false));
    bench.report(report("/p/b", false));
    let text = bench.model.draft.handoff.generated.text.clone();
    assert!(
        text.contains("- a.test.js › works in /p/a\n- a.test.js › works in /p/b\n"),
        "{text}"
    );
    bench.report(report("/p/b", true));
    ran(
        &mut bench,
        "npx jest",
        [Some("/p/c"); 2],
        "PASS ./a.test.js\nTests:       1 passed, 1 total\n",
    );
    let state = &bench.model.draft.signalled.test_state;
    assert_eq!(state.failing, ["a.test.js › works"]);
    assert_eq!(state.owners[0].owner.directory.as_deref(), Some("/p/a"));
    ran(
        &mut bench,
        "npx jest",
        [Some("/p/a"); 2],
        "PASS ./a.test.js\nTests:       1 passed, 1 total\n",
    );
    assert!(bench.model.draft.signalled.test_state.failing.is_empty());
}

#[test]
fn a_run_that_is_reported_and_seen_counts_once() {
    let printed = "running 2 tests\ntest a ... ok\ntest b ... ok\n\ntest result: ok. 2 passed; 0 failed; 0 ignored\n";
    let report = Report::Tests(TestBody {
        passed: true,
        test_count: Some(2),
        failed_count: Some(0),
        ..TestBody::default()
    });
    let mut bench = Bench::new();
    bench.report(report.clone());
    bench.shell("pitstop test -- cargo test", printed);
    assert_eq!(tags(&bench.git()), [["tests-passed", "tests-2"]]);
    // The same outcome is another run, a minute later or at once.
    assert_eq!(bench.status_of(report.clone()), "saved");
    bench.shell("cargo test", printed);
    bench.shell("cargo test", printed);
    assert_eq!(bench.model.outside.counters.tests_passed, 3);
    bench.wait(Duration::from_secs(61));
    assert_eq!(bench.status_of(report), "saved");
}

#[test]
fn a_commit_behind_the_warn_line_asks_with_its_reason() {
    let mut bench = Bench::filled(PAST_WARN, Config::default());
    assert_eq!(bench.step(), None, "the warn line alone asks for nothing");
    bench.report(commit(SHA));
    bench.git_is(SHA);
    assert!(bench.waits_for_review());
    let attempt = bench.model.reboot.attempt.as_ref().unwrap();
    assert_eq!(attempt.cause, Cause::Breakpoint);
    assert_eq!(
        breakpoint::reason(&bench.model),
        "a good moment: commit 1a2b3c4 parser: read dates"
    );
    assert_eq!(
        report::status(&bench.model).reboot.reason.as_deref(),
        Some("breakpoint")
    );
}

#[test]
fn tests_that_pass_are_a_good_moment_and_tests_that_fail_end_one() {
    let mut bench = Bench::filled(PAST_WARN, Config::default());
    bench.report(tests(true));
    assert!(bench.step().is_some());
    let mut bench = Bench::filled(PAST_WARN, Config::default());
    bench.prompted(OLD, "work");
    bench.report(commit(SHA));
    bench.report(tests(false));
    bench.turn_ended(OLD);
    assert_eq!(bench.step(), None);
}

#[test]
fn below_the_warn_line_by_hand_or_paused_a_commit_asks_for_nothing() {
    let mut bench = Bench::filled(125_000, Config::default());
    bench.report(commit(SHA));
    assert_eq!(bench.step(), None);
    let mut config = Config::default();
    config.reboot.mode = RebootMode::Manual;
    let mut bench = Bench::filled(PAST_WARN, config);
    bench.report(commit(SHA));
    assert_eq!(bench.step(), None);
    let mut bench = Bench::filled(PAST_WARN, Config::default());
    bench.model.reboot.paused = true;
    bench.report(commit(SHA));
    assert_eq!(bench.step(), None);
}

#[test]
fn auto_mode_goes_at_a_good_moment() {
    let mut config = Config::default();
    config.reboot.mode = RebootMode::Auto;
    let mut bench = Bench::filled(PAST_WARN, config);
    bench.report(commit(SHA));
    let effects = bench.git_is(SHA);
    let delay = reboot::clock(&effects);
    bench.wait(Duration::from_secs(10));
    let effects = bench.send(Event::TimerFired(delay.expect("a delay")));
    assert_eq!(signals(&effects), [StopSignal::Exit]);
    bench.exited(0);
    assert_eq!(bench.ended(0), Some(EndReason::ContextLimit));
}

#[test]
fn a_good_moment_in_a_turn_waits_for_its_end_unless_work_goes_on() {
    for (file, stands) in [
        (None, true),
        (Some("/p/.pitstop/scratchpad.md"), true),
        (Some("/p/src/main.rs"), false),
    ] {
        let mut bench = Bench::filled(PAST_WARN, Config::default());
        bench.prompted(OLD, "work");
        bench.shell("git commit -m x", "[main 1a2b3c4] x\n 1 file changed\n");
        assert_eq!(bench.step(), None, "the turn runs");
        if let Some(file) = file {
            bench.edit(file);
        }
        bench.shell("git status", "nothing to commit");
        bench.turn_ended(OLD);
        assert_eq!(bench.step().is_some(), stands, "{file:?}");
    }
}

#[test]
fn the_next_prompt_ends_a_good_moment() {
    let mut bench = Bench::new();
    bench.report(commit(SHA));
    bench.prompted(OLD, "more");
    bench.used(PAST_WARN);
    bench.turn_ended(OLD);
    assert_eq!(bench.step(), None);
    let mut bench = Bench::new();
    bench.used(PAST_WARN);
    bench.report(tests(true));
    bench.git();
    assert_eq!(banner(&bench.model), Some(Banner::Asks));
    bench.prompted(OLD, "and now the next thing");
    assert_eq!((bench.step(), banner(&bench.model)), (None, None));
}

#[test]
fn a_good_moment_that_was_turned_down_does_not_come_back() {
    let mut bench = Bench::filled(PAST_WARN, Config::default());
    bench.report(commit(SHA));
    bench.git_is(SHA);
    bench.press(KeyCode::F(5));
    bench.press(KeyCode::Char('d'));
    bench.send(Event::TimerFired(TimerId::Age));
    assert_eq!(bench.step(), None);
    let reboots = metrics::metrics(&bench.model).reboots;
    assert_eq!(reboots, [("breakpoint", "deferred", 1)]);
}

#[test]
fn a_report_may_name_any_environment_and_is_filed_under_our_own() {
    for (named, kept) in [
        ("staging", json!("staging")),
        ("q\u{1b}", json!("q")),
        (" ", json!(null)),
    ] {
        let mut bench = Bench::new();
        let saves = SaveBody {
            environment: Some(named.to_owned()),
            ..SaveBody::default()
        };
        let of_save = saved(&bench.auto_save(saves).1)[0].clone();
        assert_eq!(
            (
                &*of_save.environment,
                &of_save.state["auto_save"]["environment"]
            ),
            ("p", &kept)
        );
        for mut report in [commit(SHA), tests(true)] {
            match &mut report {
                Report::Commit(body) => body.environment = Some(named.to_owned()),
                Report::Tests(body) => body.environment = Some(named.to_owned()),
                Report::AutoSave(_) => {}
            }
            assert_eq!(bench.status_of(report), "saved");
            let one = saved(&bench.git_is(SHA))[0].clone();
            assert_eq!(
                (&*one.environment, &one.state["breakpoint"]["environment"]),
                ("p", &kept)
            );
        }
    }
}

#[test]
fn a_checkpoint_of_a_test_run_says_how_many_ran_and_how_long() {
    for (body, task) in [
        (
            r#"true, "test_count": 5, "duration_seconds": 0.3"#,
            "passed: 5 tests in 0.3s",
        ),
        (
            r#"true, "test_count": 1, "failed_count": 0"#,
            "passed: 1 test",
        ),
        (r#"true, "duration_seconds": 61.04"#, "passed in 61.0s"),
        (
            r#"false, "test_count": 14, "failed_count": 2"#,
            "failed: 2 of 14 tests",
        ),
        ("false", "failed"),
    ] {
        let body = format!(r#"{{"passed": {body}}}"#);
        let mut bench = Bench::new();
        bench.report(Report::Tests(serde_json::from_str(&body).unwrap()));
        let task = format!("Tests {task}");
        assert_eq!(saved(&bench.git_is(SHA))[0].task, task);
    }
}

#[test]
fn an_auto_save_says_how_to_go_on() {
    let mut bench = Bench::filled(90_000, Config::default());
    bench.model.identity.environment = "it's mine".to_owned();
    let (reply, effects) = bench.auto_save(SaveBody::default());
    let Reply::Saved(saved_reply) = reply else {
        panic!("{reply:?}")
    };
    assert_eq!(saved_reply.status, "saved");
    assert_eq!(saved_reply.percent_at_save, Some(50.0));
    assert_eq!(
        saved_reply.restart_command,
        r"pitstop restore 'it'\''s mine'"
    );
    assert_eq!(tags(&effects), [["auto-save", "tokens-90000"]]);
}

#[test]
fn all_that_an_auto_save_says_is_kept_and_restored() {
    let mut bench = Bench::filled(90_000, Config::default());
    let body = SaveBody {
        environment: Some("p".to_owned()),
        used_tokens: Some(126_000),
        inferred_task: Some("port the parser".to_owned()),
        inferred_context: Some("dates are done\nnumbers are next".to_owned()),
    };
    let (reply, effects) = bench.auto_save(body);
    let one = saved(&effects)[0].clone();
    let Reply::Saved(reply) = reply else {
        panic!("{reply:?}")
    };
    assert_eq!(reply.checkpoint_id, one.id.to_string());
    assert_eq!(reply.percent_at_save, Some(70.0));
    assert_eq!(one.tags, ["auto-save", "tokens-126000"]);
    assert_eq!(one.task, "port the parser");
    assert_eq!(
        one.state["auto_save"],
        json!({"environment": "p", "used_tokens": 126_000, "inferred_task": "port the parser",
            "inferred_context": "dates are done\nnumbers are next"})
    );
    // It is of that checkpoint alone.
    assert!(bench.model.draft.signalled.custom.is_empty());

    let mut bench = Bench::bare(Config::default());
    restore::begin(&mut bench.model, &one, &GitState::NoRepository);
    let effects = bench.model.take_effects();
    let effects = bench.settle(effects);
    let prompt = starts(&effects).remove(0).prompt.expect("a handoff");
    for part in [
        "Tokens in use: 126000",
        "> port the parser",
        "> dates are done\n> numbers are next",
    ] {
        assert!(prompt.contains(part), "{part}: {prompt}");
    }
    // And goes on from there.
    let custom = &bench.model.draft.signalled.custom;
    assert_eq!(custom["inferred_task"].as_str(), "port the parser");
    assert_eq!(
        custom["inferred_context"].as_str(),
        "dates are done\nnumbers are next"
    );
}

#[test]
fn no_flood_of_reports_fills_the_disk() {
    let mut bench = Bench::new();
    let kept = |bench: &mut Bench| match bench.auto_save(SaveBody::default()) {
        (Reply::Saved(_), effects) => saved(&effects).len(),
        (Reply::Refused { .. }, _) => 0,
        (other, _) => panic!("{other:?}"),
    };
    let first: usize = (0..100).map(|_| kept(&mut bench)).sum();
    assert_eq!(first, 60);
    bench.wait(Duration::from_secs(61));
    assert_eq!(kept(&mut bench), 1);
}

#[test]
fn each_checkpoint_has_an_id_of_its_own() {
    let mut bench = Bench::new();
    let mut ids = Vec::new();
    for _ in 0..5 {
        let (_, effects) = bench.auto_save(SaveBody::default());
        ids.extend(saved(&effects).into_iter().map(|one| one.id));
        let effects = bench.control(Control::Save(crate::api::wire::CheckpointBody::EMPTY));
        ids.extend(saved(&effects).into_iter().map(|one| one.id));
    }
    let mut distinct = ids.clone();
    distinct.sort();
    distinct.dedup();
    assert_eq!((distinct.len(), ids.len()), (10, 10));
}

#[test]
fn usage_is_calculated_as_the_guard_does_with_the_thresholds_of_the_config() {
    use UsageActionKind::{None as Nothing, Save, SaveAndRestart};
    let plain = Config::default();
    let mut capped = Config::default();
    capped.guard.warn_tokens = Some(100_000);
    let mut late = Config::default();
    (late.guard.warn, late.guard.compact) = (80, 90);
    (
        late.guard.notice_tokens,
        late.guard.warn_tokens,
        late.guard.compact_tokens,
    ) = (None, None, None);
    let mut odd = Config::default();
    (odd.guard.warn, odd.guard.compact) = (60, 75);
    odd.context.reserve = 40_000;
    let cases = [
        (&plain, 0, 200_000, 0.0, "healthy", Nothing),
        (&plain, 89_999, 200_000, 50.0, "healthy", Nothing),
        (&plain, 90_000, 200_000, 50.0, "warning", Nothing),
        (&plain, 125_999, 200_000, 70.0, "warning", Nothing),
        (&plain, 126_000, 200_000, 70.0, "critical", Save),
        (&plain, 150_000, 200_000, 83.3, "critical", Save),
        (&plain, 152_999, 200_000, 85.0, "critical", Save),
        (&plain, 153_000, 200_000, 85.0, "overflow", SaveAndRestart),
        (&plain, 180_000, 200_000, 100.0, "overflow", SaveAndRestart),
        (&plain, 250_000, 200_000, 138.9, "overflow", SaveAndRestart),
        (&plain, 89_999, 1_000_000, 9.2, "healthy", Nothing),
        (&plain, 153_000, 1_000_000, 15.6, "overflow", SaveAndRestart),
        (&late, 150_000, 1_000_000, 15.3, "healthy", Nothing),
        (&late, 882_000, 1_000_000, 90.0, "overflow", SaveAndRestart),
        (&plain, 5_000, 10_000, 50.0, "warning", Nothing),
        (&plain, 9_000, 12_500, 72.0, "critical", Save),
        (&plain, 10_000, 40_000, 25.0, "healthy", Nothing),
        (&plain, 11_000, 44_000, 45.8, "healthy", Nothing),
        (&capped, 99_999, 200_000, 55.6, "warning", Nothing),
        (&capped, 100_000, 200_000, 55.6, "critical", Save),
        (&odd, 96_000, 200_000, 60.0, "critical", Save),
        (&odd, 120_000, 200_000, 75.0, "overflow", SaveAndRestart),
    ];
    for (config, used, max, percent, status, kind) in cases {
        // What is measured has no say in it.
        let bench = Bench::filled(170_000, config.clone());
        let query = UsageQuery {
            used_tokens: Some(used),
            max_tokens: Some(max),
        };
        let reported = report::usage(&bench.model, query);
        assert_eq!((reported.used, reported.max), (Some(used), Some(max)));
        assert_eq!(reported.percent, Some(percent), "{used} of {max}");
        assert_eq!(reported.status.as_deref(), Some(status), "{used} of {max}");
        assert_eq!(reported.action.kind, kind, "{used} of {max}");
        assert!(!reported.action.auto);
    }
    let live = report::usage(&Bench::filled(130_000, plain).model, UsageQuery::default());
    assert_eq!(
        (live.used, live.max, live.usable),
        (Some(130_000), Some(200_000), Some(180_000))
    );
    assert_eq!(live.action.kind, Save);
}

#[test]
fn turns_and_reboots_are_counted_over_iterations() {
    let mut bench = Bench::new();
    for _ in 0..2 {
        bench.prompted(OLD, "work");
        bench.turn_ended(OLD);
    }
    bench.rebooted();
    bench.spawned(3);
    bench.started(NEW);
    let text = bench.model.lineage.iterations().len();
    assert_eq!(text, 2);
    let handoff = bench
        .model
        .reboot
        .attempt
        .as_ref()
        .unwrap()
        .handoff
        .clone()
        .unwrap();
    bench.prompted(NEW, &handoff.text);
    bench.turn_ended(NEW);
    let metrics = metrics::metrics(&bench.model);
    assert_eq!((metrics.turns, metrics.iteration), (3, 2));
    assert_eq!(metrics.reboots, [("key", "done", 1)]);
    assert!(
        metrics
            .transitions
            .iter()
            .any(|(step, _, count)| (*step, *count) == ("ending", 1))
    );
}

#[test]
fn what_changes_is_reported_and_what_does_not_is_not() {
    let mut bench = Bench::new();
    let look = ModelSnapshot::of(&bench.model);
    assert_eq!(look.events(&bench.model, &[]), []);
    bench.prompted(OLD, "work");
    bench.used(PAST_WARN);
    let (_, effects) = bench.auto_save(SaveBody::default());
    let events = look.events(&bench.model, &effects);
    let kinds: Vec<ApiEventKind> = events.iter().map(|one| one.kind).collect();
    let expected = [
        ApiEventKind::Agent,
        ApiEventKind::Context,
        ApiEventKind::Level,
        ApiEventKind::Notice,
        ApiEventKind::Checkpoint,
    ];
    assert_eq!(kinds, expected);
    let of = |kind| {
        events
            .iter()
            .find(|one| one.kind == kind)
            .map(|one| one.data.clone())
    };
    assert_eq!(of(ApiEventKind::Agent), Some(json!({"state": "busy"})));
    assert_eq!(
        of(ApiEventKind::Level),
        Some(json!({"level": "critical", "before": Value::Null}))
    );
    assert_eq!(of(ApiEventKind::Context).unwrap()["used"], PAST_WARN);
}

#[test]
fn commits_and_tests_make_no_checkpoint_where_that_is_not_wanted() {
    let saved = |config: &Config, report: Report| {
        let mut bench = Bench::with(config.clone());
        let (_, effects) = bench.report(report);
        let published = has!(effects, Effect::Publish(_));
        assert!(published, "it is published all the same");
        has!(bench.git_is(SHA), Effect::SaveCheckpoint(_))
    };
    let mut config = Config::default();
    assert!(saved(&config, commit(SHA)) && saved(&config, tests(true)));
    config.context.checkpoint_at_commits = false;
    assert!(!saved(&config, commit(SHA)) && saved(&config, tests(true)));
    config.context.checkpoint_at_tests = false;
    assert!(!saved(&config, commit(SHA)) && !saved(&config, tests(true)));
}

#[test]
fn commits_and_tests_are_lines_of_a_run_and_each_is_one() {
    let plan = crate::autopilot::Plan {
        task: "build a boat".to_owned(),
        stop_phrase: "ALL DONE".to_owned(),
        caps: crate::autopilot::Caps::default(),
        limits: crate::autopilot::Limits::default(),
        fresh: crate::autopilot::Fresh::Threshold,
        attended: false,
    };
    let lines = |effects: &[Effect]| -> Vec<String> {
        all!(effects, Effect::LogRun(event) => event.to_string())
    };
    let mut bench = Bench::new();
    let (_, effects) = bench.report(tests(true));
    assert_eq!(lines(&effects), [""; 0], "there is no run");
    let mut bench = Bench::new();
    super::autopilot::begin(&mut bench, plan);
    bench.prompted(OLD, "the start prompt");
    let mut later = |report| {
        bench.wait(Duration::from_secs(1));
        bench.report(report).1
    };
    let committed = later(commit(SHA));
    let (passed, failed) = (later(tests(true)), later(tests(false)));
    let said = [lines(&committed), lines(&passed), lines(&failed)].concat();
    let expected = [
        "commit 1a2b3c4 parser: read dates",
        "14 tests passed",
        "2 tests failed",
    ];
    assert_eq!(said, expected);
    // The run view and `pitstop status` show the same lines.
    let report = crate::app::report::status(&bench.model);
    let timeline = report.run.expect("a run").timeline;
    let timeline: Vec<String> = timeline.into_iter().map(|line| line.text).collect();
    assert!(timeline.ends_with(&said), "{timeline:#?}");
}
