use super::*;

fn run(command: &str, output: &str) -> Vec<TestOutcome> {
    let found = test_run::Shell::in_p(command, false).recognise_runs(output);
    assert_eq!(found.len(), 1, "{output}");
    found
}

/// The output of `cargo test` with these verdicts.
fn output(verdicts: &[(&str, &str)]) -> String {
    let line = |(name, word): &(&str, &str)| format!("test {name} ... {word}\n");
    let lines: String = verdicts.iter().map(line).collect();
    let count = |word: &str| verdicts.iter().filter(|(_, have)| *have == word).count();
    let (ok, failed) = (count("ok"), count("FAILED"));
    format!(
        "running {} tests\n{lines}\ntest result: ok. {ok} passed; {failed} failed; 0 ignored; 0 measured; 0 filtered out\n",
        ok + failed
    )
}

fn cargo(command: &str, verdicts: &[(&str, &str)]) -> Vec<TestOutcome> {
    run(command, &output(verdicts))
}

#[test]
fn fixed_and_regressed_come_from_the_run_before() {
    let mut state = TestState::default();
    state.apply_outcomes(&cargo(
        "cargo test",
        &[("a", "ok"), ("b", "FAILED"), ("c", "ok")],
    ));
    state.apply_outcomes(&cargo(
        "cargo test",
        &[("a", "FAILED"), ("b", "ok"), ("c", "ok")],
    ));
    let tests = &state;
    assert_eq!(
        (tests.fixed.as_slice(), tests.regressed.as_slice()),
        (&["b".to_owned()][..], &["a".to_owned()][..])
    );
    assert_eq!(
        (tests.failing.as_slice(), tests.passing.len()),
        (&["a".to_owned()][..], 2)
    );
    state.apply_outcomes(&cargo(
        "cargo test",
        &[("a", "FAILED"), ("b", "ok"), ("c", "ok")],
    ));
    assert!(state.fixed.is_empty() && state.regressed.is_empty());
}

#[test]
fn a_run_of_some_tests_leaves_what_is_known_of_the_others() {
    let mut state = TestState::default();
    state.apply_outcomes(&cargo(
        "cargo test",
        &[("a", "FAILED"), ("b", "FAILED"), ("c", "ok")],
    ));
    state.apply_outcomes(&cargo("cargo test a", &[("a", "ok")]));
    assert_eq!(state.failing, ["b"]);
    assert_eq!(state.fixed, ["a"]);
    // A whole run drops tests that no longer exist.
    state.apply_outcomes(&cargo("cargo test", &[("a", "ok"), ("c", "ok")]));
    assert!(state.failing.is_empty());
    assert_eq!(state.passing, ["a", "c"]);
}

#[test]
fn a_run_that_cannot_be_built_is_reported_until_one_can() {
    let mut state = TestState::default();
    state.apply_outcomes(&cargo("cargo test", &[("a", "FAILED"), ("b", "ok")]));
    let broken = "error: could not compile `x` (lib test) due to 1 previous error";
    state.apply_outcomes(&run("cargo test", broken));
    assert_eq!(state.failing, ["a", "(cargo test could not be built)"]);
    assert_eq!(state.passing, ["b"]);
    state.apply_outcomes(&cargo("cargo test", &[("a", "ok"), ("b", "ok")]));
    assert!(state.failing.is_empty());
    assert_eq!(state.fixed, ["a"]);
}

#[test]
fn runners_that_name_only_failures_fix_by_silence_in_whole_runs_alone() {
    let mut state = TestState::default();
    state.apply_outcomes(&cargo("cargo test", &[("of_cargo", "FAILED")]));
    let failed = "FAILED t.py::x - E\nFAILED t.py::y\n2 failed, 3 passed in 0.1s\n";
    let failed = format!("=== short test summary info ===\n{failed}");
    state.apply_outcomes(&run("pytest -q", &failed));
    assert_eq!(state.failing, ["of_cargo", "t.py::x", "t.py::y"]);
    state.apply_outcomes(&run("pytest -q other.py", "4 passed in 0.1s\n"));
    assert_eq!(state.failing.len(), 3);
    state.apply_outcomes(&run("pytest -q", "5 passed in 0.1s\n"));
    assert_eq!(state.failing, ["of_cargo"]);
    assert_eq!(state.fixed, ["t.py::x", "t.py::y"]);
}

#[test]
fn a_package_that_passes_fixes_its_tests() {
    let mut state = TestState::default();
    state.apply_outcomes(&run(
        "go test ./a",
        "--- FAIL: TestX (0.00s)\nFAIL\nFAIL\tm/a\t0.1s\n",
    ));
    assert_eq!(state.failing, ["m/a.TestX"]);
    state.apply_outcomes(&run("go test ./ab", "ok  \tm/ab\t0.1s\n"));
    assert_eq!(state.failing, ["m/a.TestX"]);
    state.apply_outcomes(&run("go test ./a", "ok  \tm/a\t0.1s\n"));
    assert_eq!(state.fixed, ["m/a.TestX"]);
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
    state.apply_outcomes(&cargo("cargo test", &[("a", "ok"), ("b", "ok")]));
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
        let found = test_run::Shell::in_p(command, false).recognise_runs(output);
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
    let [cargo_failed, cargo_passed] = ["FAILED", "ok"].map(|verdict| output(&[("a", verdict)]));
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
        ("pytest -q", &*failed, "pytest -x -q", passed, true),
        ("pytest", &*failed, "pytest -n auto", passed, true),
        ("npm test", jest_failed, "npm test -- --ci", "Tests:       1 passed, 1 total\n", true),
        ("cd api && pytest", &*failed, "cd web && pytest", passed, false),
        ("cd api && pytest", &*failed, "cd /p/api && pytest -q", passed, true),
        ("(cd api; pytest)", &failed, "pytest", passed, false),
        ("pytest sub/", &in_sub, "pytest other/", passed, false),
        ("pytest", &in_sub, "pytest --ignore=sub", passed, false),
        ("pytest", &in_sub, "pytest --ignore sub", passed, false),
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
        ("cargo test", &cargo_failed, "cargo test --manifest-path x/Cargo.toml", &cargo_passed, false),
        ("cargo test --manifest-path=x/Cargo.toml", &cargo_failed, "(cd x && cargo test)", &cargo_passed, true),
        ("npm --prefix a test", jest_failed, "npm --prefix b test", jest_passed, false),
        ("npm --prefix a test", jest_failed, "cd a && npx jest", jest_passed, true),
        ("npm test -w a", jest_failed, "npm test -w b", jest_passed, false),
        ("go -C x test ./...", go_failed, "go -C y test ./...", go_passed, false),
        ("go -C x test ./...", go_failed, "cd x/../x && go test ./...", go_passed, true),
        ("make test", jest_failed, "make test", passed, false),
        (&long("a"), &failed, &long("b"), passed, false),
        (&long("a"), &failed, &long("a"), passed, true),
        ("cargo test", &cargo_failed, "go test ./...", go_passed, false),
        ("npm test", jest_failed, "npm run test:e2e", "PASS ./b.test.js\nTests:       1 passed, 1 total\n", false),
        ("npm test", jest_failed, "yarn test:unit", "Tests:       1 passed, 1 total\n", false),
        ("npm test", jest_failed, "npm run test:ci", "Tests:       1 passed, 1 total\n", true),
        ("npm run test:e2e", jest_failed, "npm run test:e2e", jest_passed, true),
        ("go test ./...", go_failed, "go test ./... 2>&1 | tail -2", "ok  \tm/z\t0.1s\nFAIL\n", false),
        ("go test ./...", go_failed, "go test ./... 2>&1 | tail -2", go_passed, true),
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
    let cargo = |verdict: &str| output(&[("a::b", verdict)]);
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
    let shell = test_run::Shell::in_p("pitstop test -- make test", true);
    state.apply_outcomes(&shell.recognise_runs(output));
    assert_eq!(state.failing, ["a", "m/a.TestX"]);
    reported(&mut state, "./check", 1, &["b"]);
    reported(&mut state, "cd sub; ./check", 1, &["b"]);
    assert_eq!(state.failing.len(), 4, "these two may be different");
}

#[test]
fn several_runs_of_one_command_keep_what_each_of_them_changed() {
    let cargo = |verdict: &str| output(&[("a", verdict)]);
    let go = |verdict: &str| {
        format!(
            "--- {verdict}: TestX (0.00s)\n{}\tm/a\t0.1s\n",
            if verdict == "PASS" { "ok" } else { "FAIL" }
        )
    };
    let command = "cargo test; go test -v ./...";
    let state = ran(&[
        (command, &(cargo("FAILED") + &go("FAIL"))),
        (command, &(cargo("ok") + &go("PASS"))),
    ]);
    assert_eq!(state.fixed, ["a", "m/a.TestX"]);
    assert!(state.failing.is_empty());
}

#[test]
fn tests_that_an_older_version_kept_belong_to_the_first_run_that_names_them() {
    let json = r#"{"passing": ["b"], "failing": ["a", "c"], "fixed": [], "regressed": [], "command": "cargo test"}"#;
    let mut state: TestState = serde_json::from_str(json).unwrap();
    let cargo = |directory, verdicts: &[(&str, &str)]| {
        let shell = test_run::Shell {
            directory: Some(directory),
            ..test_run::Shell::in_p("cargo test", false)
        };
        shell.recognise_runs(&output(verdicts))
    };
    let both = [("a", "ok"), ("b", "FAILED")];
    state.apply_outcomes(&cargo("/p/x", &both));
    assert_eq!(
        (&*state.fixed, &*state.regressed),
        (&["a".to_owned()][..], &["b".to_owned()][..])
    );
    assert_eq!(state.failing, ["c", "b"]);
    let again: TestState = serde_json::from_str(&serde_json::to_string(&state).unwrap()).unwrap();
    assert_eq!(again, state);
    state.apply_outcomes(&cargo("/p/y", &[("a", "FAILED")]));
    assert_eq!((state.failing.len(), state.passing.len()), (3, 1));
    // Shares that do not match must not lose a test.
    let json = r#"{"passing": [], "failing": ["a"], "fixed": [], "regressed": [], "owners": [{"runner": "jest", "passing": 9, "failing": 7}]}"#;
    let mut state: TestState = serde_json::from_str(json).unwrap();
    assert_eq!(state.failures().count(), 1);
    state.apply_outcomes(&cargo("/p", &both));
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
fn a_failure_without_a_name_is_one_that_is_known_where_there_are_no_more() {
    let mut state = TestState::default();
    state.apply_outcomes(&cargo("cargo test", &[("a", "FAILED"), ("b", "ok")]));
    for (failed, listed) in [(1, 1), (2, 2)] {
        let output = format!(
            "test result: FAILED. 1 passed; {failed} failed; 0 ignored; 0 measured; 0 filtered out\n"
        );
        state.apply_outcomes(&run("cargo test 2>&1 | tail -3", &output));
        assert_eq!(
            (state.failing[0].as_str(), state.failing.len()),
            ("a", listed)
        );
    }
}

#[test]
fn a_run_that_is_seen_twice_keeps_what_it_changed() {
    let mut state = TestState::default();
    state.apply_outcomes(&cargo("cargo test", &[("a", "ok"), ("b", "FAILED")]));
    reported(&mut state, "cargo test", 1, &["a"]);
    assert_eq!(
        (&*state.fixed, &*state.regressed),
        (&["b".to_owned()][..], &["a".to_owned()][..])
    );
    let before = state.clone();
    state.apply_outcomes(&cargo("cargo test", &[("a", "FAILED"), ("b", "ok")]));
    assert!(state.fixed.is_empty() && state.regressed.is_empty());
    state.keep_changes(before);
    assert_eq!(
        (&*state.fixed, &*state.regressed),
        (&["b".to_owned()][..], &["a".to_owned()][..])
    );
}

#[test]
fn failures_whose_names_a_filter_has_left_out_are_noted_until_a_run_of_all_tests() {
    let mut tests = TestState::default();
    let result = "test result: FAILED. 1 passed; 1 failed; 0 ignored; 0 measured; 0 filtered out\n";
    let grep = "cargo test 2>&1 | grep";
    tests.apply_outcomes(&run(grep, &format!("test a::b ... FAILED\n{result}")));
    assert_eq!(tests.failing, ["a::b"]);
    for (command, output) in [
        (grep, result),
        ("cargo test | tail -1", result),
        ("cargo test || true", result),
    ] {
        let mut tests = TestState::default();
        tests.apply_outcomes(&run(command, output));
        let note = format!("(failing tests of `{command}` that were not named)");
        assert_eq!(tests.failing, [note]);
        let one = "running 1 test\ntest a::c ... ok\ntest result: ok. 1 passed; 0 failed; 0 ignored; 0 measured; 1 filtered out\n";
        tests.apply_outcomes(&run("cargo test c", one));
        assert_eq!(tests.failing.len(), 1);
        tests.apply_outcomes(&cargo("cargo test", &[("a::b", "FAILED"), ("a::c", "ok")]));
        assert_eq!(tests.failing, ["a::b"]);
        tests.apply_outcomes(&run(command, output));
        tests.apply_outcomes(&cargo(
            "timeout 60 cargo test; echo done",
            &[("a::b", "ok")],
        ));
        assert!(tests.failing.is_empty(), "{tests:?}");
    }
}

#[test]
fn a_run_that_stopped_early_shows_nothing_of_the_tests_behind_it() {
    let pytest = |names: &[&str], passed: u64| {
        let lines = names.iter().map(|name| format!("FAILED {name} - E\n"));
        let lines = lines.collect::<String>();
        format!(
            "=== short test summary info ===\n{lines}{} failed, {passed} passed in 0.1s\n",
            names.len()
        )
    };
    let cargo = |name: &str, passed: u64| {
        format!(
            "running {0} tests\ntest {name} ... FAILED\n\nfailures:\n    {name}\n\ntest result: FAILED. {passed} passed; 1 failed; 0 ignored\n",
            passed + 1
        )
    };
    let nextest = |name: &str, ran: &str| {
        format!(
            " Nextest run ID 2f6c with nextest profile: default\n        FAIL [   0.013s] tide {name}\n     Summary [   0.047s] {ran} tests run: 0 passed, 1 failed, 0 skipped\n"
        )
    };
    let go = |name: &str| format!("--- FAIL: {name} (0.00s)\nFAIL\nFAIL\tm/a\t0.1s\n");
    let (all, early) = (pytest(&["t.py::x", "t.py::y"], 28), pytest(&["t.py::x"], 3));
    let passed = "31 passed in 0.1s\n".to_owned();
    #[rustfmt::skip]
    let cases = [
        ("cargo test", cargo("b", 29), "cargo test", cargo("a", 11), &["b", "a"][..]),
        ("cargo nextest run b", nextest("b", "1"), "cargo nextest run", nextest("a", "1/4"), &["tide b", "tide a"]),
        ("pytest -q", all.clone(), "pytest -q --maxfail=1", early.clone(), &["t.py::y", "t.py::x"]),
        ("pytest -q", all.clone(), "pytest -q", early.clone(), &["t.py::y", "t.py::x"]),
        ("pytest -k x", all.clone(), "pytest -k x", early, &["t.py::y", "t.py::x"]),
        ("go test ./...", go("TestX"), "go test -failfast ./...", go("TestA"), &["m/a.TestX", "m/a.TestA"]),
        // They ran to the end.
        ("cargo test", cargo("b", 29), "cargo test", cargo("a", 29), &["a"]),
        ("pytest -q", all.clone(), "pytest", pytest(&["t.py::x"], 29), &["t.py::x"]),
        ("pytest -q", all.clone(), "pytest --maxfail=1", passed, &[]),
        ("pytest t.py", all, "pytest t.py", pytest(&["t.py::x"], 30), &["t.py::x"]),
        ("go test ./...", go("TestX"), "go test ./...", go("TestA"), &["m/a.TestA"]),
    ];
    for (first, failed, second, output, open) in cases {
        let state = ran(&[(first, &failed), (second, &output)]);
        assert_eq!(state.failing, open, "{first}; {second}");
    }
}

#[test]
fn a_filter_by_name_fixes_only_the_tests_that_it_names() {
    let go_failed = "--- FAIL: TestX (0.00s)\nFAIL\nFAIL\tm/a\t0.1s\n";
    let go_passed = "ok  \tm/a\t0.1s\n";
    let none_ran = "ok  \tm/a\t0.1s [no tests to run]\n";
    let jest_failed = "FAIL ./a.test.js\n  ● cart › adds up\n\nTests:       1 failed, 1 total\n";
    let jest_passed = "PASS ./a.test.js\nTests:       1 skipped, 1 passed, 2 total\n";
    let vitest_failed = " RUN  v3.2.4 /p\n FAIL  a.test.ts > cart > adds up\n\n Test Files  1 failed (1)\n      Tests  1 failed (1)\n";
    let vitest_passed = " RUN  v3.2.4 /p\n ✓ a.test.ts (2 tests | 1 skipped) 4ms\n\n Test Files  1 passed (1)\n      Tests  1 passed | 1 skipped (2)\n";
    let mvn_failed = "[ERROR] com.acme.ATest.adds -- Time elapsed: 0.004 s <<< FAILURE!\n[ERROR] Tests run: 2, Failures: 1, Errors: 0, Skipped: 0\n";
    let mvn_passed = "[INFO] Tests run: 1, Failures: 0, Errors: 0, Skipped: 0, Time elapsed: 0.05 s -- in com.acme.ATest\n[INFO] Tests run: 1, Failures: 0, Errors: 0, Skipped: 0\n";
    let projects_failed = " RUN  v3.2.4 /p\n FAIL  |web| a.test.ts > adds up\n\n Test Files  1 failed (1)\n      Tests  1 failed (1)\n";
    let projects_passed = " RUN  v3.2.4 /p\n ✓ |web| a.test.ts (1 test) 4ms\n\n Test Files  1 passed (1)\n      Tests  1 passed (1)\n";
    #[rustfmt::skip]
    let cases = [
        ("npx vitest run", projects_failed, "npx vitest run a.test.ts", projects_passed, true),
        ("go test ./...", go_failed, "go test -run TestY ./a", go_passed, false),
        ("go test ./...", go_failed, "go test -run '^TestX$' ./a", go_passed, true),
        ("go test ./...", go_failed, "go test -run='TestY|TestX' ./a", go_passed, true),
        ("go test ./...", go_failed, "go test -run '^$' -bench . ./a", go_passed, false),
        ("go test ./...", go_failed, "go test -skip TestX ./...", go_passed, false),
        ("go test ./...", go_failed, "go test -skip=TestX ./...", go_passed, false),
        ("go test ./...", go_failed, "go test -bench . ./a", none_ran, false),
        ("npx jest", jest_failed, "npx jest -t holds", jest_passed, false),
        ("npx jest", jest_failed, "npm test -- -t 'cart adds'", jest_passed, true),
        ("npx vitest run", vitest_failed, "npx vitest run -t holds", vitest_passed, false),
        ("npx vitest run", vitest_failed, "npx vitest run -t 'cart adds up'", vitest_passed, true),
        ("mvn test", mvn_failed, "mvn test -Dtest=ATest#holds", mvn_passed, false),
        ("mvn test", mvn_failed, "mvn test -Dtest=ATest#adds", mvn_passed, true),
        ("mvn test", mvn_failed, "mvn test -Dtest=ATest", mvn_passed, true),
    ];
    for (first, failed, second, passed, clears) in cases {
        let state = ran(&[(first, failed), (second, passed)]);
        assert_eq!(state.failing.is_empty(), clears, "{second}: {state:?}");
    }
}

#[test]
fn the_anchors_and_the_group_of_a_filter_count() {
    let failed = "--- FAIL: TestX (0.00s)\n--- FAIL: TestXY (0.00s)\n    --- FAIL: TestXY/one (0.00s)\nFAIL\nFAIL\tm/a\t0.1s\n";
    let first = ran(&[("go test ./...", failed)]).failing;
    assert_eq!(first, ["m/a.TestX", "m/a.TestXY", "m/a.TestXY/one"]);
    for (filter, open) in [
        ("'^TestX$'", &["m/a.TestXY", "m/a.TestXY/one"][..]),
        ("'^(TestX|TestZ)$'", &["m/a.TestXY", "m/a.TestXY/one"]),
        (
            "'^(TestY|TestZ)$'",
            &["m/a.TestX", "m/a.TestXY", "m/a.TestXY/one"],
        ),
        ("'^TestXY$/^one$'", &["m/a.TestX", "m/a.TestXY"]),
        ("'^TestXY$'", &["m/a.TestX"]),
        ("'(TestX|TestZ)'", &[]),
        ("TestX", &[]),
    ] {
        let again = format!("go test -run {filter} ./a");
        let state = ran(&[("go test ./...", failed), (&again, "ok  \tm/a\t0.1s\n")]);
        assert_eq!(state.failing, open, "{filter}");
    }
}

#[test]
fn a_run_that_shows_no_test_or_only_its_last_part_clears_nothing() {
    let ended = |passed: u64, after: &str| {
        format!(
            "running {passed} tests\n\ntest result: ok. {passed} passed; 0 failed; 0 ignored; 0 measured; 0 filtered out\n\n{after}"
        )
    };
    let lost = "error: 1 target failed:\n    `--lib`\n";
    for (command, output) in [
        ("cargo test --no-fail-fast 2>&1 | tail -8", ended(0, lost)),
        ("cargo test --no-fail-fast 2>&1 | tail -8", ended(2, lost)),
        ("cargo test --no-fail-fast | tail -3", ended(0, "")),
        ("cargo test", ended(0, "")),
    ] {
        let mut state = TestState::default();
        state.apply_outcomes(&cargo("cargo test", &[("a", "FAILED"), ("b", "ok")]));
        let found = run(command, &output);
        assert!(!found[0].is_success(), "{output}");
        state.apply_outcomes(&found);
        assert_eq!(state.failing, ["a"], "{output}");
        assert_eq!(state.passing, ["b"], "{output}");
        assert!(state.fixed.is_empty(), "{output}");
        state.apply_outcomes(&cargo("cargo test", &[("a", "ok"), ("b", "ok")]));
        assert!(state.failing.is_empty(), "{output}");
    }
    let failed = "=== short test summary info ===\nFAILED t.py::x - E\n1 failed in 0.1s\n";
    let state = ran(&[("pytest", failed), ("pytest", "no tests ran in 0.01s\n")]);
    assert_eq!(state.failing, ["t.py::x"]);
}

#[test]
fn a_run_of_a_command_fixes_nothing_that_another_run_of_it_has_failed() {
    let named = "=== short test summary info ===\nFAILED t.py::x - E\n1 failed, 3 passed in 0.1s\n";
    let unnamed = "1 failed, 3 passed in 0.1s\n";
    let passed = "4 passed in 0.1s\n";
    for (command, failed) in [("tox", named), ("tox | grep passed", unnamed)] {
        let both = format!("{failed}{passed}");
        let state = ran(&[(command, &both), (command, &both)]);
        assert_eq!(state.failing.len(), 1, "{command}: {state:?}");
        assert!(state.fixed.is_empty(), "{command}: {state:?}");
        let state = ran(&[(command, &both), (command, &passed.repeat(2))]);
        assert!(state.failing.is_empty(), "{command}: {state:?}");
    }
    // Two libraries in one run of one program.
    let both = "Test Case 'CartTests.testAdds' failed (0.002 seconds)\nTest Suite 'All tests' failed at 2026-11-20\n\
        \t Executed 2 tests, with 1 failure (0 unexpected) in 0.003 (0.003) seconds\n✔ Test run with 2 tests passed after 0.001 seconds.\n";
    assert_eq!(ran(&[("swift test", both)]).failing, ["CartTests.testAdds"]);
}

#[test]
fn a_run_that_leaves_tests_out_fixes_none_of_them() {
    let maven = "[ERROR] com.acme.CartTest.adds -- Time elapsed: 0.004 s <<< FAILURE!\n[ERROR] Tests run: 2, Failures: 1, Errors: 0, Skipped: 0\n";
    let maven_passed = "[INFO] Tests run: 1, Failures: 0, Errors: 0, Skipped: 0, Time elapsed: 0.05 s -- in com.acme.CartTest\n\
        [INFO] Tests run: 1, Failures: 0, Errors: 0, Skipped: 0\n";
    let jest = "FAIL ./a.test.js\n  ● adds\n\nTests:       1 failed, 1 total\n";
    let jest_passed =
        |file: &str| format!("PASS ./{file}.test.js\nTests:       1 passed, 1 total\n");
    let (same, other) = (jest_passed("a"), jest_passed("b"));
    for (first, failed, second, passed) in [
        (
            "mvn test",
            maven,
            "mvn test -Dtest='!CartTest#adds'",
            maven_passed,
        ),
        ("npx jest", jest, "npx jest -t '(?!x|adds|y)'", &*same),
        ("npx jest", jest, "npx jest --testPathPattern=b", &*other),
        ("npx jest", jest, "npx jest --shard=2/2", &*other),
    ] {
        let state = ran(&[(first, failed), (second, passed)]);
        assert_eq!(state.failing.len(), 1, "{second}: {state:?}");
        assert!(state.fixed.is_empty(), "{second}");
    }
}

#[test]
fn a_run_of_one_suite_or_of_ignored_tests_clears_no_other_and_a_format_hinders_none() {
    let phpunit = "There was 1 failure:\n\n1) T\\ATest::testB\nFailed asserting\n\nFAILURES!\nTests: 3, Assertions: 3, Failures: 1.\n";
    let rspec = "..F\n\nFinished in 0.01 seconds\n3 examples, 1 failure\n\nFailed examples:\n\nrspec ./spec/a_spec.rb:5 # Basket holds\n";
    for (first, failed, second, passed, clears) in [
        (
            "vendor/bin/phpunit",
            phpunit,
            "vendor/bin/phpunit --testsuite=Unit",
            "OK (3 tests, 5 assertions)\n",
            false,
        ),
        (
            "bundle exec rspec",
            rspec,
            "bundle exec rspec --format documentation",
            "Finished in 0.01 seconds\n3 examples, 0 failures\n",
            true,
        ),
    ] {
        let state = ran(&[(first, failed), (second, passed)]);
        assert_eq!(state.failing.is_empty(), clears, "{second}: {state:?}");
    }
    let mut state = TestState::default();
    state.apply_outcomes(&cargo("cargo test", &[("a", "FAILED"), ("b", "ok")]));
    state.apply_outcomes(&cargo("cargo test -- --ignored", &[("slow", "ok")]));
    assert_eq!(state.failing, ["a"]);
}
